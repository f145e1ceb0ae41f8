// The address holds everything that makes a view: a link shows exactly this one.

export function here() {
  const [path, query] = (location.hash.slice(1) || '/').split('?');
  return { path, parameters: Object.fromEntries(new URLSearchParams(query ?? '')) };
}

export function link(path, parameters = {}) {
  const kept = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== '' && value !== false);
  const query = new URLSearchParams(kept).toString();
  return `#${path}${query ? `?${query}` : ''}`;
}

export function go(path, parameters) {
  location.hash = link(path, parameters);
}

// Change some of the parameters of this view; without leaving a step back where `quiet`.
export function change(parameters, quiet = false) {
  const { path, parameters: before } = here();
  const address = link(path, { ...before, ...parameters });
  if (address === (location.hash || '#/')) return;
  if (quiet) {
    history.replaceState(null, '', address);
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  } else location.hash = address;
}

// Names in one parameter. They are parted by commas, which the name of a folder may hold too.
export const joined = (names) => names.map((name) => name.replace(/[%,]/g, encodeURIComponent)).join(',');
export const parted = (text) => (text ?? '').split(',').map((name) => name.replace(/%2C|%25/g, decodeURIComponent));

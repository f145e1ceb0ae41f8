// Elements and words. Text reaches the page as text nodes only: nothing here, or elsewhere, parses HTML.

const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]|[\ud800-\udfff]/gu;

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (name === 'value' || name === 'checked') element[name] = value;
    else element.setAttribute(name, value === true ? '' : value);
  }
  fill(element, ...children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
}

// What a model wrote may hold characters that cannot be seen, or that turn the others round: these are named.
export function seen(text) {
  return String(text ?? '').replace(/\r\n/g, '\n').replace(HIDDEN, (c) => `⟦U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, '0')}⟧`);
}

export function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return '–';
  if (Number.isInteger(value)) return value.toLocaleString('en');
  const size = Math.abs(value);
  if (size >= 1000) return Math.round(value).toLocaleString('en');
  return size > 0 && size < 0.001 ? value.toExponential(1) : String(Number(value.toPrecision(digits)));
}

export const percent = (value) => (value === null || value === undefined ? '–' : `${(100 * value).toFixed(1)}%`);

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return '–';
  const minutes = Math.floor(Math.round(seconds) / 60);
  if (minutes < 1) return seconds < 10 ? `${seconds.toFixed(1)}s` : `${Math.round(seconds)}s`;
  if (minutes < 60) return `${minutes}m${String(Math.round(seconds) % 60).padStart(2, '0')}s`;
  return `${Math.floor(minutes / 60)}h${String(minutes % 60).padStart(2, '0')}m`;
}

// How long ago, in one unit: nobody wants the seconds of an hour.
export function ago(seconds) {
  for (const [unit, size] of [['d', 86400], ['h', 3600], ['min', 60]]) if (seconds >= size) return `${Math.floor(seconds / size)} ${unit} ago`;
  return seconds < 10 ? 'just now' : `${Math.floor(seconds)} s ago`;
}

export function when(text) {
  const date = new Date(text);
  return text && !Number.isNaN(date.getTime()) ? date.toLocaleString('en-GB', { dateStyle: 'medium', timeStyle: 'short' }) : '–';
}

export const day = (seconds) => (seconds ? new Date(1000 * seconds).toLocaleDateString('en-GB', { dateStyle: 'medium' }) : '–');

export function say(text) {
  document.getElementById('said').textContent = text;
}

export const empty = (title, ...words) => h('div', { class: 'empty' }, h('h2', {}, title), ...words.map((line) => h('p', {}, line)));
export const kbd = (...keys) => keys.flatMap((key, n) => [n ? ' ' : null, h('kbd', {}, key)]);
export const badge = (words, kind = '') => h('span', { class: `badge ${kind}` }, words);

export function field(label, control) {
  return h('label', { class: 'field' }, h('span', {}, label), control);
}

export function choose(options, value, change) {
  const select = h('select', { onchange: () => change(select.value) });
  fill(select, options.map(([key, words]) => h('option', { value: key, selected: key === value }, words)));
  return select;
}

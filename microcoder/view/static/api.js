// Questions and answers: from the server, or from what an exported file holds.

const held = new Map(); // what was answered, by its question, with its tag
let packed = null;

export class Refused extends Error {}

export async function begin() {
  const element = document.getElementById('packed');
  if (!element) return;
  const bytes = Uint8Array.from(atob(element.textContent.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  packed = JSON.parse(await new Response(stream).text());
}

export const exported = () => packed?.about ?? null;

// The answer to a question; `changed` tells whether it differs from the one given before.
export async function ask(question, parameters = {}) {
  const asked = Object.entries(parameters).filter(([, value]) => value !== null && value !== undefined && value !== '').sort();
  if (packed) {
    const key = [question, ...asked.map(([name, value]) => `${name}=${value}`)].join('\n');
    if (!(key in packed.answers)) throw new Refused('this is not in the exported file; `microcoder view` shows all of a run');
    return { value: packed.answers[key], changed: !held.has(key) && Boolean(held.set(key, true)) };
  }
  const address = `/api/${question}?${new URLSearchParams(asked)}`;
  const before = held.get(address);
  let response;
  try {
    response = await fetch(address, { headers: before ? { 'If-None-Match': before.tag } : {}, cache: 'no-store' });
  } catch {
    throw new Refused('the server does not answer; has `microcoder view` ended?');
  }
  if (response.status === 304) return { value: before.value, changed: false };
  if (!response.ok) throw new Refused((await response.text()).trim().slice(0, 500) || `the server said ${response.status}`);
  const value = await response.json();
  held.delete(address);
  held.set(address, { tag: response.headers.get('ETag'), value });
  while (held.size > 60) held.delete(held.keys().next().value);
  return { value, changed: true };
}

export const answer = async (question, parameters) => (await ask(question, parameters)).value;

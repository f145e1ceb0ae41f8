// Python in colours: one pattern cuts the text into tokens, each of which becomes a span of plain text.

import { h, seen } from './dom.js';

const TOKENS = new RegExp([
  '(?<comment>#[^\\n]*)',
  '(?<string>[rbfuRBFU]{0,2}(?:"""(?:[^\\\\]|\\\\[^])*?(?:"""|$)|\'\'\'(?:[^\\\\]|\\\\[^])*?(?:\'\'\'|$)|"(?:[^"\\\\\\n]|\\\\.)*"?|\'(?:[^\'\\\\\\n]|\\\\.)*\'?))',
  '(?<number>\\b(?:0[xXoObB][\\da-fA-F_]+|\\d[\\d_]*(?:\\.[\\d_]*)?(?:[eE][+-]?\\d+)?)\\b)',
  '(?<keyword>\\b(?:and|as|assert|async|await|break|class|continue|def|del|elif|else|except|finally|for|from|global|if|import|in|is|lambda|nonlocal|not|or|pass|raise|return|try|while|with|yield|match|case|None|True|False)\\b)',
  '(?<name>\\b[A-Za-z_]\\w*(?=\\s*\\())',
  '(?<word>[A-Za-z_]\\w*)',
].join('|'), 'gu');
const LARGEST = 200000; // characters: beyond that, colours cost more than they tell

export function python(code) {
  const text = seen(code);
  if (text.length > LARGEST) return [text];
  const found = [];
  let at = 0;
  for (const match of text.matchAll(TOKENS)) {
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    if (kind === 'word') continue;
    if (match.index > at) found.push(text.slice(at, match.index));
    found.push(h('span', { class: `py-${kind}` }, match[0]));
    at = match.index + match[0].length;
  }
  found.push(text.slice(at));
  return found;
}

// A completion as it was written: prose as text, fenced blocks as code.
export function completion(text) {
  const parts = [];
  let lines = [], fence = null;
  const flush = () => {
    const body = lines.join('\n');
    if (fence !== null) parts.push(h('pre', { class: 'code', tabindex: '0' }, h('code', {}, fence === 'python' ? python(body) : seen(body))));
    else if (body.trim()) parts.push(h('p', { class: 'prose' }, seen(body.replace(/^\n+/, '').trimEnd())));
    lines = [];
  };
  for (const line of String(text ?? '').split(/\r?\n/)) {
    const mark = /^\s*(`{3,}|~{3,})\s*([\w.{}-]*)/.exec(line);
    if (!mark) lines.push(line);
    else if (fence === null) { flush(); fence = /^(|python3?|py3?)$/i.test(mark[2].replace(/[{}.]/g, '')) ? 'python' : mark[2]; }
    else { flush(); fence = null; }
  }
  if (lines.length || fence !== null) flush();
  return parts;
}

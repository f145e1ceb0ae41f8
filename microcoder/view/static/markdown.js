// The Markdown that our own reports use, as elements: headings, tables, lists, code, pictures. Text stays text.

import { h, seen } from './dom.js';

const INLINE = /!\[([^\][]*)\]\(([^()\s]+)\)|\[((?:!\[[^\][]*\]\([^()\s]+\)|\\.|[^\][\\])+)\]\([^()\s]+\)|`([^`]+)`|\*\*([^*]+)\*\*|(<br>)|\\([\\`*_{}[\]()#+\-.!|<>~$&])/g;

function inline(text, picture) {
  const found = [];
  let at = 0;
  for (const match of text.matchAll(INLINE)) {
    found.push(seen(text.slice(at, match.index)));
    at = match.index + match[0].length;
    const [, alt, source, linked, code, strong, line, escaped] = match;
    if (source !== undefined) found.push(picture(source, seen(alt)));
    else if (linked !== undefined) found.push(...inline(linked, picture));
    else if (code !== undefined) found.push(h('code', {}, seen(code)));
    else if (strong !== undefined) found.push(h('strong', {}, seen(strong)));
    else if (line !== undefined) found.push(h('br'));
    else found.push(escaped);
  }
  found.push(seen(text.slice(at)));
  return found;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, '').split(/(?<!\\)\|/).map((cell) => cell.trim());
const isTable = (line) => line.trim().startsWith('|');
const isItem = (line) => /^\s*([-*]|\d+\.)\s/.test(line);
const isFence = (line) => /^\s*```/.test(line);

export function markdown(text, picture, lowest = 2) {
  const lines = text.replace(/\r\n/g, '\n').split('\n');
  const found = [];
  let at = 0, level = lowest - 1;
  const take = (test) => { const from = at; while (at < lines.length && test(lines[at])) at += 1; return lines.slice(from, at); };

  function tabled() {
    const [head, rule, ...rows] = take(isTable).map(cells);
    const side = rule.map((cell) => (cell.endsWith(':') ? 'number' : null));
    const row = (tag) => (values) => h('tr', {}, values.map((value, n) => h(tag, { class: side[n], scope: tag === 'th' ? 'col' : null }, inline(value, picture))));
    return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Table' }, h('table', {}, h('thead', {}, row('th')(head)), h('tbody', {}, rows.map(row('td')))));
  }

  while (at < lines.length) {
    const line = lines[at];
    const heading = /^(#{1,6})\s+(.*)/.exec(line);
    if (!line.trim()) at += 1;
    else if (heading) {
      level = Math.min(level + 1, heading[1].length + lowest - 1, 6); // none is left out on the way down
      found.push(h(`h${level}`, {}, inline(heading[2], picture)));
      at += 1;
    } else if (isFence(line)) {
      at += 1;
      found.push(h('pre', { class: 'code', tabindex: '0' }, seen(take((one) => !isFence(one)).join('\n'))));
      at += 1;
    } else if (isTable(line) && /^[\s|:-]+$/.test(lines[at + 1] ?? '')) found.push(tabled());
    else if (isItem(line)) {
      const items = take((one) => isItem(one) || /^\s{2,}\S/.test(one)).reduce((all, one) => (isItem(one) ? [...all, one] : [...all.slice(0, -1), `${all.at(-1)} ${one.trim()}`]), []);
      found.push(h(/^\s*\d/.test(line) ? 'ol' : 'ul', {}, items.map((one) => h('li', {}, inline(one.replace(/^\s*([-*]|\d+\.)\s+/, ''), picture)))));
    } else {
      const words = take((one) => one.trim() && !/^#{1,6}\s/.test(one) && !isFence(one) && !isTable(one) && !isItem(one));
      if (!words.length) words.push(lines[at++]);
      found.push(h('p', {}, inline(words.join(' '), picture)));
    }
  }
  return found;
}

// A table that sorts by its columns. The order is part of the address.

import { fill, h } from './dom.js';
import { change } from './route.js';

// columns: [{ key, title, cell(row), value(row), number, wrap, plain, hidden }]; rows are sorted by `sort`, "key" or "-key".
export function table(caption, columns, rows, sort) {
  const down = sort?.startsWith('-');
  const by = columns.find((column) => column.key === sort?.replace(/^-/, ''));
  const sorted = by?.value ? [...rows].sort((a, b) => order(by.value(a), by.value(b), down ? -1 : 1)) : rows;
  const head = columns.map((column) => {
    const current = by === column;
    const state = current ? (down ? 'descending' : 'ascending') : column.value ? 'none' : null;
    const next = current && !down ? `-${column.key}` : column.key;
    const title = column.value
      ? h('button', { type: 'button', class: 'sorter', onclick: () => change({ sort: next }, true) }, column.title,
        h('span', { 'aria-hidden': 'true' }, current ? (down ? ' ↓' : ' ↑') : ''))
      : column.hidden ? h('span', { class: 'sr' }, column.title) : column.title;
    return h('th', { scope: 'col', 'aria-sort': state, class: column.number ? 'number' : null }, title);
  });
  const naming = columns.findIndex((column) => !column.plain); // the column that names a row
  const body = sorted.map((item) => h('tr', {}, columns.map((column, n) =>
    h(n === naming ? 'th' : 'td', { scope: n === naming ? 'row' : null, class: column.number ? 'number' : column.wrap ? 'wrap' : null }, column.cell(item)))));
  const element = h('table', {}, h('caption', { class: 'sr' }, caption), h('thead', {}, h('tr', {}, head)), h('tbody', {}, body));
  return h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption }, element);
}

function order(a, b, sign) {
  const none = (value) => value === null || value === undefined || value === '';
  if (none(a) || none(b)) return none(a) - none(b); // what has no value comes last, either way
  return sign * (typeof a === 'number' && typeof b === 'number' ? a - b : String(a).localeCompare(String(b), 'en', { numeric: true }));
}

// Scrolls a list to one of its entries, and nothing but the list.
export function reveal(list, entry) {
  if (!entry) return;
  const [box, one] = [list.getBoundingClientRect(), entry.getBoundingClientRect()];
  if (one.top < box.top) list.scrollTop -= box.top - one.top + 8;
  else if (one.bottom > box.bottom) list.scrollTop += one.bottom - box.bottom + 8;
}

// Keeps the place of the focus where a part of the page is drawn anew.
export function redraw(element, ...children) {
  const active = document.activeElement;
  const inside = element.contains(active) ? [...element.querySelectorAll('a, button, input, select, [tabindex]')].indexOf(active) : -1;
  fill(element, ...children);
  if (inside >= 0) element.querySelectorAll('a, button, input, select, [tabindex]')[inside]?.focus({ preventScroll: true });
}

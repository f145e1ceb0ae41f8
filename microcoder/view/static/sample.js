// One sample of a group, and a group of them side by side.

import { badge, fill, h, number, seen } from './dom.js';
import { completion } from './highlight.js';

const VERDICT = { accepted: 'good', internal_error: 'warn', no_code: 'warn' };
const MARKS = [['truncated', 'cut off at the length limit'], ['repeated', 'ends in repetition'], ['masked', 'its advantage was set to 0 by the truncation mask'], ['discarded', 'replaced by dynamic sampling'], ['cut', 'its verdict was not waited for']];
const TALL = 30; // lines that are shown at once

// A try that was followed by another: its verdict, what it wrote, and what the model was told of it.
function earlier(one, n) {
  return h('section', { class: 'earlier', 'aria-label': `try ${n + 1}, ${one.verdict}` },
    h('header', {}, h('span', { class: 'quiet' }, `try ${n + 1}`), badge(seen(String(one.verdict ?? 'unknown').replace(/_/g, ' ')), VERDICT[one.verdict] ?? 'bad'),
      one.truncated ? h('span', { class: 'badge mark', title: MARKS[0][1] }, 'truncated') : null,
      h('span', { class: 'row' }, `${number(one.length)} tokens`)),
    one.message ? h('p', { class: 'message' }, h('span', { class: 'quiet' }, 'judge: '), seen(one.message)) : null,
    h('div', { class: 'text' }, completion(String(one.completion ?? ''))),
    one.told ? h('p', { class: 'message' }, h('span', { class: 'quiet' }, 'told: '), seen(one.told)) : null);
}

export function sample(row, chosen) {
  const before = row.earlier ?? [];
  const text = String(row.completion ?? '');
  const body = h('div', { class: 'text' }, completion(text));
  const long = text.split('\n').length > TALL || text.length > 2500;
  const more = h('button', { type: 'button', class: 'plain', 'aria-expanded': 'false', onclick: () => {
    const open = body.classList.toggle('short') === false;
    more.textContent = open ? 'Show less' : 'Show all';
    more.setAttribute('aria-expanded', String(open));
  } }, 'Show all');
  if (long) body.classList.add('short');
  const numbers = [['reward', row.reward], ['advantage', row.advantage], ['tokens', row.length]].filter(([name, value]) => value !== undefined && !(name === 'tokens' && value === null));
  return h('article', { class: `sample ${row.verdict === 'accepted' ? 'right' : ''} ${chosen ? 'chosen' : ''}`, 'aria-label': `sample ${row.row ?? ''}, ${row.verdict}` },
    h('header', {}, badge(seen(String(row.verdict ?? 'unknown').replace(/_/g, ' ')), VERDICT[row.verdict] ?? 'bad'),
      MARKS.filter(([name]) => row[name]).map(([name, words]) => h('span', { class: 'badge mark', title: words }, name)),
      h('span', { class: 'row' }, `row ${number(row.row)}`)),
    h('dl', { class: 'numbers' }, numbers.map(([name, value]) => h('div', {}, h('dt', {}, name), h('dd', { class: name === 'advantage' && value ? (value > 0 ? 'plus' : 'minus') : null }, value === null ? '–' : name === 'advantage' && value > 0 ? `+${number(value)}` : number(value)))),
      row.strategy ? h('div', {}, h('dt', {}, 'accepted by'), h('dd', {}, seen(row.strategy))) : null),
    before.map(earlier),
    before.length ? h('p', { class: 'quiet' }, `try ${before.length + 1}`) : null,
    row.message ? h('p', { class: 'message' }, h('span', { class: 'quiet' }, 'judge: '), seen(row.message)) : null,
    body, long ? more : null);
}

export function group(element, rows, chosen = null) {
  fill(element, rows.map((row) => sample(row, chosen !== null && String(row.row) === String(chosen))));
}

// What the model was asked: the prompt as it saw it; of a run that kept none, the statement of the problem.
export function asked(found) {
  const text = found.prompt || found.statement;
  return text ? h('div', { class: 'asked' }, h('h3', {}, found.prompt ? 'Prompt' : 'Statement'), h('p', { class: 'statement', tabindex: '0' }, seen(text))) : null;
}

// Filled for each accepted sample, hollow for each other one.
export function dots(accepted, rows) {
  const words = `${accepted} of ${rows} accepted`;
  if (rows > 16) return h('span', { class: 'share' }, words.replace(' accepted', ''));
  return h('span', { class: 'dots', role: 'img', 'aria-label': words }, Array.from({ length: rows }, (_, n) => h('i', { class: n < accepted ? 'on' : null })));
}

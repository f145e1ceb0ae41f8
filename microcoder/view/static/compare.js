// Two runs, or two evaluations, on the same problems: what the second wins and loses, sample by sample.

import { answer } from './api.js';
import { badge, choose, empty, field, fill, h, number, percent, seen } from './dom.js';
import { change, here, link } from './route.js';
import { asked, dots, group } from './sample.js';
import { redraw, reveal } from './table.js';

const SHOWN = 300;
const gain = (line) => line[2][1] / line[2][2] - line[1][1] / line[1][2];
const outcome = (line) => (gain(line) > 0 ? 'won' : gain(line) < 0 ? 'lost' : 'same');

export async function comparePage(root) {
  const list = await answer('list');
  const names = [...list.runs.map((run) => [run.name, seen(run.name)]), ...list.bench.map((one) => [one.name, `${seen(one.name)} (evaluation)`])];
  let parameters = {}, found = null, loaded = '', shown = '';
  const bar = h('div', { class: 'bar' }), sums = h('div'), side = h('ol', { class: 'picks', 'aria-label': 'Problems' }), main = h('section', { class: 'group', 'aria-label': 'Samples' });
  const filter = h('input', { type: 'search', 'data-search': true, placeholder: 'problem', oninput: () => change({ q: filter.value }, true) });
  fill(root, h('h1', {}, 'Compare'), h('p', { class: 'quiet' }, 'Two runs or evaluations on the same problems; of a run, each problem as it was sampled last.'), bar, sums, h('div', { class: 'split' }, side, main));

  const items = () => found.problems.filter((line) => (!parameters.find || outcome(line) === parameters.find) && (!parameters.q || line[0].toLowerCase().includes(parameters.q.toLowerCase())));
  const count = (kind) => found.problems.filter((line) => outcome(line) === kind).length;

  function controls() {
    const pick = (label, key) => field(label, choose([['', 'choose…'], ...names], parameters[key] ?? '', (value) => change({ [key]: value, problem: '' })));
    if (document.activeElement !== filter) filter.value = parameters.q ?? '';
    redraw(bar, pick('First', 'a'), pick('Second', 'b'), h('button', { type: 'button', onclick: () => change({ a: parameters.b, b: parameters.a }) }, 'Swap'),
      found ? field('Show', choose([['', `all (${found.problems.length})`], ...['won', 'lost', 'same'].map((kind) => [kind, `${kind} (${count(kind)})`])], parameters.find ?? '', (find) => change({ find, problem: '' }))) : null,
      found ? field('Filter', filter) : null);
  }

  function summary() {
    const mean = (n) => found.problems.reduce((sum, line) => sum + line[n][1] / line[n][2], 0) / found.problems.length;
    const facts = [['Problems of both', number(found.problems.length)], [`Accepted in ${parameters.a}`, percent(mean(1))], [`Accepted in ${parameters.b}`, percent(mean(2))], ['Won by the second', number(count('won'))], ['Lost by the second', number(count('lost'))]];
    fill(sums, h('dl', { class: 'facts' }, facts.map(([key, value]) => h('div', {}, h('dt', {}, seen(key)), h('dd', {}, value)))),
      h('p', { class: 'quiet' }, seen([`${number(found.only_one)} problems only in the first, ${number(found.only_other)} only in the second`, found.note].filter(Boolean).join('; '))));
  }

  function draw() {
    const wanted = items();
    const entry = (line) => h('li', {}, h('a', { href: link('/compare', { ...parameters, problem: line[0] }), 'aria-current': line[0] === parameters.problem ? 'true' : null },
      h('span', { class: 'name' }, seen(line[0])), badge(outcome(line), { won: 'good', lost: 'bad' }[outcome(line)] ?? ''), h('span', { class: 'words pair' }, dots(line[1][1], line[1][2]), '→', dots(line[2][1], line[2][2]))));
    fill(side, wanted.slice(0, SHOWN).map(entry), wanted.length > SHOWN ? h('li', { class: 'quiet' }, `and ${number(wanted.length - SHOWN)} more: filter by name`) : null);
    reveal(side, side.querySelector('[aria-current]'));
  }

  async function samples() {
    const line = items().find((one) => one[0] === parameters.problem);
    if (!line) { shown = ''; return fill(main, empty('No problem is like that', 'Choose another filter.')); }
    const key = `${parameters.a} ${parameters.b} ${line[0]}`;
    if (shown === key) return;
    shown = key;
    const sides = await Promise.all([['a', 1], ['b', 2]].map(async ([name, n]) => [parameters[name], line[n], await answer('group', { of: parameters[name], step: line[n][0], problem: line[0] })]));
    fill(main, h('h2', {}, seen(line[0])), asked(sides.map(([, , got]) => got).find((got) => got.prompt || got.statement) ?? {}),
      h('div', { class: 'sides' }, sides.map(([name, visit, got]) => {
        const box = h('div', { class: 'samples' });
        group(box, got.rows);
        return h('section', { 'aria-label': name }, h('h3', {}, seen(name)), h('p', { class: 'quiet' }, `${list.bench.some((one) => one.name === name) ? (visit[0] ? `limit ${number(visit[0])}` : 'no limit') : `step ${number(visit[0])}`}: ${visit[1]} of ${visit[2]} accepted; in all ${percent(visit[3] / visit[4])} of ${number(visit[4])}`), box);
      })));
  }

  function move(by) {
    const wanted = items().slice(0, SHOWN);
    const next = wanted[wanted.findIndex((line) => line[0] === here().parameters.problem) + by]; // the page may still wait for it
    if (next) change({ problem: next[0] });
  }

  function nothing(...words) {
    fill(sums);
    fill(side);
    fill(main, empty(...words));
  }

  return {
    update: async (now) => {
      parameters = now;
      const both = parameters.a && parameters.b;
      const key = `${parameters.a} ${parameters.b}`;
      if (both && key !== loaded) { found = await answer('compare', { a: parameters.a, b: parameters.b }); loaded = key; }
      if (!both) [found, loaded] = [null, ''];
      controls();
      if (!both) return names.length < 2 ? nothing('Nothing to compare yet', 'It takes two runs with rollouts, or two evaluations, under this folder.') : nothing('Choose two', 'Pick the first and the second above, or tick two runs in the table of runs.');
      if (!found.problems.length) return nothing('No problem in common', `Their rollouts have no problem in common. ${found.note}`);
      summary();
      if (!items().some((line) => line[0] === parameters.problem) && items()[0]) {
        parameters = { ...parameters, problem: items()[0][0] };
        history.replaceState(null, '', link('/compare', parameters));
      }
      draw();
      await samples();
    },
    keys: (key) => {
      if (!found || (key !== 'j' && key !== 'k')) return false;
      move(key === 'j' ? 1 : -1);
      return true;
    },
  };
}

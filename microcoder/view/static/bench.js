// Evaluations: their reports, and the tries at each problem.

import { answer } from './api.js';
import { choose, empty, field, fill, h, number, percent, seen } from './dom.js';
import { markdown } from './markdown.js';
import { change, here, link } from './route.js';
import { dots, group } from './sample.js';
import { redraw, reveal, table } from './table.js';

const MOST = 300; // problems in the list
const SOLVED = { some: (line) => line[1] > 0 && line[1] < line[2], all: (line) => line[1] === line[2], none: (line) => line[1] === 0 };

// A picture of a report is one of its folder; one of another server is only named.
export const figureOf = (of) => (path, words) => (/^([a-z]+:|\/)/i.test(path) ? h('span', { class: 'quiet' }, `[${words || 'a picture'}: not in this folder]`)
  : h('img', { src: `/figure?${new URLSearchParams({ of, path })}`, alt: words, loading: 'lazy' }));

function best(one) {
  const [limit, scores] = Object.entries(one.scores ?? {}).at(-1) ?? [];
  const robust = scores?.robust ?? scores?.exact;
  return { limit: Number(limit), accuracy: robust?.accuracy ?? null, low: robust?.low ?? null, high: robust?.high ?? null };
}

const COLUMNS = [
  { key: 'name', title: 'Folder', wrap: true, value: (one) => one.name, cell: (one) => h('a', { href: link('/bench', { bench: one.name }) }, seen(one.name)) },
  { key: 'model', title: 'Model', wrap: true, value: (one) => one.model, cell: (one) => seen(one.model ?? '–') },
  { key: 'suite', title: 'Suite', wrap: true, value: (one) => one.suite, cell: (one) => seen(one.suite ?? '–') },
  { key: 'accuracy', title: 'Accuracy', number: true, value: (one) => best(one).accuracy, cell: (one) => percent(best(one).accuracy) },
  { key: 'interval', title: '95% interval', number: true, cell: (one) => (best(one).low === null ? '–' : `${percent(best(one).low)} to ${percent(best(one).high)}`) },
  { key: 'problems', title: 'Problems', number: true, value: (one) => one.problems, cell: (one) => number(one.problems) },
  { key: 'tries', title: 'Tries', number: true, value: (one) => one.tries, cell: (one) => number(one.tries) },
  { key: 'limit', title: 'Limit', number: true, value: (one) => best(one).limit, cell: (one) => (best(one).limit ? number(best(one).limit) : '–') },
];

export async function benchPage(root) {
  const list = await answer('list');
  const body = h('div');
  const filter = h('input', { type: 'search', 'data-search': true, placeholder: 'problem', oninput: () => change({ q: filter.value }, true) });
  let parameters = {}, found = null, wanted = [], shown = '';
  const side = h('ol', { class: 'picks', 'aria-label': 'Problems' }), main = h('section', { class: 'group', 'aria-label': 'Samples' }), bar = h('div', { class: 'bar' });
  fill(root, h('h1', {}, 'Evaluations'), body);

  function listing() {
    found = null;
    redraw(body, list.bench.length ? table('Evaluations', COLUMNS, list.bench, parameters.sort ?? 'name')
      : empty('No evaluations yet', 'Nothing under this folder holds a scores.json. Evaluations of a run are written into it; those of other models below bench, which `microcoder view bench` shows. Score a run, and look again:', h('code', {}, `microcoder eval ${list.root}/NAME --suite starter`)));
  }

  function problems() {
    const limits = found.limits.map((one) => [String(one.limit), one.limit ? `${number(one.limit)} tokens` : 'no limit']);
    const limit = found.limits.find((one) => String(one.limit) === parameters.limit) ?? found.limits.at(-1);
    wanted = (limit?.problems ?? []).filter((line) => (!parameters.find || SOLVED[parameters.find]?.(line)) && (!parameters.q || line[0].toLowerCase().includes(parameters.q.toLowerCase())));
    if (document.activeElement !== filter) filter.value = parameters.q ?? '';
    redraw(bar, field('Show', choose([['', 'all problems'], ['all', 'always solved'], ['some', 'sometimes solved'], ['none', 'never solved']], parameters.find ?? '', (find) => change({ find, problem: '' }))),
      limits.length > 1 ? field('Limit', choose(limits, String(limit.limit), (value) => change({ limit: value }))) : null, field('Filter', filter));
    const current = wanted.some((line) => line[0] === parameters.problem) ? parameters.problem : wanted[0]?.[0];
    const entry = (line) => h('li', {}, h('a', { href: link('/bench', { ...parameters, problem: line[0] }), 'aria-current': line[0] === current ? 'true' : null }, h('span', { class: 'name' }, seen(line[0])), dots(line[1], line[2])));
    fill(side, wanted.slice(0, MOST).map(entry), wanted.length > MOST ? h('li', { class: 'quiet' }, `and ${number(wanted.length - MOST)} more: filter by name`) : null);
    reveal(side, side.querySelector('[aria-current]'));
    return { problem: current, limit: limit?.limit };
  }

  async function detail() {
    if (found?.name !== parameters.bench) {
      found = await answer('bench', { bench: parameters.bench });
      shown = '';
      const report = h('details', { open: !parameters.problem, class: 'report' }, h('summary', {}, 'Report'), markdown(found.report || 'There is no report.md.', figureOf(found.name)));
      fill(body, h('p', {}, h('a', { href: '#/bench' }, '← all evaluations')), found.fault ? h('p', { class: 'note' }, seen(found.fault)) : null, report, h('h2', {}, 'Problems'), bar, h('div', { class: 'split' }, side, main));
    }
    const { problem, limit } = problems();
    if (problem === undefined) { shown = ''; return fill(main, empty('No problem is like that', 'Choose another filter.')); }
    if (`${problem} ${limit}` === shown) return;
    shown = `${problem} ${limit}`;
    const got = await answer('group', { of: found.name, step: limit, problem });
    const samples = h('div', { class: 'samples' });
    group(samples, got.rows);
    fill(main, h('h3', {}, seen(problem)), samples);
  }

  function move(by) {
    const next = wanted[Math.max(0, wanted.findIndex((line) => line[0] === here().parameters.problem)) + by];
    if (next) change({ problem: next[0] });
  }

  return {
    update: async (now) => { parameters = now; if (now.bench) await detail(); else listing(); },
    keys: (key) => {
      if (!found || (key !== 'j' && key !== 'k')) return false;
      move(key === 'j' ? 1 : -1);
      return true;
    },
  };
}

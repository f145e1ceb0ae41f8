// All runs in a table: filter, sort, pick several to lay over each other.

import { ask, exported } from './api.js';
import { ago, badge, choose, day, duration, empty, field, fill, h, number, percent, say, seen } from './dom.js';
import { change, go, joined, link } from './route.js';
import { redraw, table } from './table.js';

const STATUS = { running: 'good', finished: 'done', failed: 'bad', stopped: 'warn', interrupted: 'warn', silent: 'warn', unknown: '' };

const since = (seconds) => ago(Math.max(0, Date.now() / 1000 - seconds));

export const statusBadge = (run) => badge(run.status, STATUS[run.status] ?? '');

export async function runsPage(root) {
  let list = null;
  let parameters = {};
  const picked = new Set();
  const body = h('div');
  const count = h('p', { class: 'quiet' });
  const bar = h('div', { class: 'bar' });
  const filter = h('input', { type: 'search', placeholder: 'name, model, preset', 'data-search': true, oninput: () => change({ q: filter.value }, true) });
  const states = h('span');
  const overlay = h('button', { type: 'button', class: 'primary', onclick: () => { const [run, ...others] = picked; go('/run', { run, with: joined(others) }); } });
  const facing = h('button', { type: 'button', onclick: () => { const [a, b] = picked; go('/compare', { a, b }); } }, 'Compare rollouts');
  fill(bar, field('Filter', filter), states, overlay, exported() ? null : facing);
  fill(root, h('h1', {}, 'Runs'), count, bar, body);

  const COLUMNS = [
    { key: 'pick', title: 'Pick', hidden: true, plain: true, cell: (run) => h('input', { type: 'checkbox', 'aria-label': `pick ${run.name}`, checked: picked.has(run.name), onchange: (event) => pick(run.name, event.target.checked) }) },
    { key: 'name', title: 'Run', wrap: true, value: (run) => run.name, cell: (run) => [h('a', { href: link('/run', { run: run.name }) }, seen(run.name)), run.faults.length ? [' ', badge('damaged', 'bad')] : null] },
    { key: 'status', title: 'Status', value: (run) => run.status, cell: statusBadge },
    { key: 'preset', title: 'Preset', wrap: true, value: (run) => run.preset, cell: (run) => seen(run.preset ?? '–') },
    { key: 'model', title: 'Model', wrap: true, value: (run) => run.model, cell: (run) => seen(run.model ?? '–') },
    { key: 'step', title: 'Step', number: true, value: (run) => run.step, cell: (run) => `${number(run.step)}${run.steps ? ` / ${number(run.steps)}` : ''}` },
    { key: 'reward', title: 'Reward', number: true, value: (run) => run.reward, cell: (run) => number(run.reward) },
    { key: 'accuracy', title: 'Accuracy', number: true, value: (run) => run.accuracy, cell: (run) => percent(run.accuracy) },
    { key: 'test', title: 'Test', number: true, value: (run) => run.test_accuracy, cell: (run) => percent(run.test_accuracy) },
    { key: 'd', title: 'D', number: true, value: (run) => run.diversity, cell: (run) => number(run.diversity) },
    { key: 'length', title: 'Length', number: true, value: (run) => run.length_mean, cell: (run) => number(run.length_mean) },
    { key: 'left', title: 'Time left', number: true, value: (run) => run.left_s, cell: (run) => duration(run.left_s) },
    { key: 'changed', title: 'Last news', number: true, value: (run) => run.changed, cell: (run) => (exported() ? day(run.changed) : h('time', { 'data-at': run.changed }, since(run.changed))) },
  ];

  function pick(name, on) {
    if (on) picked.add(name);
    else picked.delete(name);
    buttons();
    say(`${picked.size} runs picked`);
  }

  function buttons() {
    overlay.disabled = picked.size === 0;
    overlay.textContent = picked.size > 1 ? `Overlay ${picked.size} runs` : picked.size ? 'Open the run' : 'Pick runs to overlay';
    facing.disabled = picked.size !== 2;
  }

  function draw() {
    const words = (parameters.q ?? '').toLowerCase().split(/\s+/).filter(Boolean);
    const match = (run) => words.every((word) => `${run.name} ${run.model} ${run.preset} ${run.status}`.toLowerCase().includes(word));
    const shown = list.runs.filter((run) => match(run) && (!parameters.status || run.status === parameters.status));
    if (document.activeElement !== filter) filter.value = parameters.q ?? '';
    const kinds = [...new Set(list.runs.map((run) => run.status))].sort();
    redraw(states, field('Status', choose([['', 'all'], ...kinds.map((kind) => [kind, kind])], parameters.status ?? '', (status) => change({ status }, true))));
    const more = [
      list.refused.length ? `not followed, as they lead out of the folder: ${list.refused.slice(0, 3).join(', ')}${list.refused.length > 3 ? ', …' : ''}` : null,
      list.complete ? null : 'there are too many folders to look at all; name one further down',
    ].filter(Boolean);
    fill(count, seen(`${shown.length} of ${list.runs.length} runs under ${list.root}: a name opens its curves and rollouts; ticked ones can be laid over each other${more.map((line) => `; ${line}`).join('')}`));
    buttons();
    bar.hidden = !list.runs.length;
    if (!list.runs.length) {
      fill(body, empty('No runs yet', `Nothing under ${list.root} is a run. In another terminal, begin one; it appears here by itself:`, h('code', {}, 'microcoder train demo')));
    } else if (!shown.length) fill(body, empty('No run is like that', h('button', { type: 'button', onclick: () => change({ q: '', status: '' }, true) }, 'Show all')));
    else redraw(body, table('Runs', COLUMNS, shown, parameters.sort ?? '-changed'));
  }

  async function refresh() {
    const got = await ask('list');
    const first = list === null;
    list = got.value;
    document.querySelector('.live').hidden = exported() !== null || !list.runs.some((run) => run.status === 'running');
    if (first || got.changed) draw();
    else body.querySelectorAll('time').forEach((element) => fill(element, since(Number(element.dataset.at)))); // of a run that is silent too
  }

  await refresh();
  return {
    update: async (now) => { parameters = now; draw(); },
    tick: refresh,
  };
}

// A run: what it is, what the advisor says of it, and its curves; other runs may be laid over them.

import { answer, ask, exported, Refused } from './api.js';
import { chartGrid, fetchPlotly } from './charts.js';
import { badge, choose, duration, empty, field, fill, h, number, percent, say, seen, when } from './dom.js';
import { change, joined, link, parted } from './route.js';
import { statusBadge } from './runs.js';
import { redraw } from './table.js';
import { COLOURS, STROKES } from './traces.js';

const WIDTHS = [1, 3, 5, 9, 15, 31, 61, 121];
const WHOLE = 1500; // points that are sent: of more steps, a part that is zoomed into is asked for again
const REMARKS = 4;

export const tabs = (run, current) => h('nav', { class: 'tabs', 'aria-label': 'Views of this run' },
  [['/run', 'Curves'], ['/rollouts', 'Rollouts']].map(([path, words]) => h('a', { href: link(path, { run }), 'aria-current': path === current ? 'page' : null }, words)));

export async function runPage(root, first) {
  fetchPlotly();
  const name = first.run;
  const got = await Promise.all([answer('list'), answer('run', { run: name }), answer('metrics', { run: name })]);
  const list = got[0];
  let run = got[1];
  let parameters = first, remarks = [], loaded = [], part = null;
  const head = h('div'), said = h('section', { class: 'remarks', 'aria-label': 'The advisor’s remarks' }), bar = h('div', { class: 'bar' }), notes = h('p', { class: 'note', hidden: true });
  const grid = h('div', { class: 'charts' });
  const charts = chartGrid(grid, list.panels, (range) => change({ range: range ? range.map((x) => Math.round(x * 10) / 10).join('_') : '' }, true));
  const hint = h('p', { class: 'quiet' }, 'Drag in a chart to zoom into all of them; double-click to go back. Ticks below: evaluations; dashed lines: stages; triangles above: remarks.');
  fill(root, head, said, bar, notes, grid, hint, setup(run));

  const others = () => parted(parameters.with).filter((other) => other && other !== name);

  function title() {
    const facts = [
      ['Step', `${number(run.step)}${run.steps ? ` of ${number(run.steps)}` : ''}`], ['Reward', number(run.reward)], ['Accuracy', percent(run.accuracy)],
      ['Test accuracy', percent(run.test_accuracy)], ['D', number(run.diversity)], ['Length', number(run.length_mean)],
      ['Time left', duration(run.left_s)], ['Step takes', duration(run.step_s)],
    ].filter(([, value]) => value !== '–');
    const times = [['began', run.started], ['ended', run.ended]].filter(([, at]) => at).map(([words, at]) => `, ${words} ${when(at)}`);
    const lines = [`${run.model ?? 'unknown model'}, ${run.preset ?? 'no preset'}${run.seed === null ? '' : `, seed ${run.seed}`}${times.join('')}`, ...(run.reason ? [`${run.status}: ${run.reason}`] : []), ...run.faults];
    redraw(head, h('div', { class: 'title' }, h('h1', {}, seen(name)), statusBadge(run)), lines.map((line, n) => h('p', { class: n ? 'note' : 'quiet' }, seen(line))), tabs(name, '/run'),
      h('dl', { class: 'facts' }, facts.map(([key, value]) => h('div', {}, h('dt', {}, key), h('dd', {}, value)))));
    document.querySelector('.live').hidden = exported() !== null || run.status !== 'running';
  }

  function advice() {
    const newest = [...remarks].reverse();
    const line = (remark) => h('li', {}, badge(remark.severity, remark.severity === 'error' ? 'bad' : 'warn'), ' ', h('strong', {}, `step ${remark.step}: ${remark.message}`), h('br'), `${remark.reason}${remark.claim ? ` (claim ${remark.claim} of the paper${remark.figure ? `, figure ${remark.figure}` : ''})` : ''}. `, h('span', { class: 'try' }, 'Try: ', h('code', {}, remark.remedy)));
    const rest = newest.slice(REMARKS);
    redraw(said, newest.length ? [h('h2', {}, `Remarks (${newest.length})`), h('ul', {}, newest.slice(0, REMARKS).map(line)), rest.length ? h('details', {}, h('summary', {}, `${rest.length} earlier`), h('ul', {}, rest.map(line))) : null] : null);
  }

  function controls() {
    const at = Math.max(0, WIDTHS.indexOf(Number(parameters.smooth ?? 1)));
    const shown = h('output', {}, at ? `${WIDTHS[at]} steps` : 'off');
    const slider = h('input', { type: 'range', min: 0, max: WIDTHS.length - 1, value: at, 'aria-valuetext': shown.textContent, oninput: () => change({ smooth: Number(slider.value) ? WIDTHS[slider.value] : '' }, true) });
    const log = h('input', { type: 'checkbox', checked: parameters.log === '1', onchange: () => change({ log: log.checked ? '1' : '' }, true) });
    const free = list.runs.filter((other) => other.name !== name && !others().includes(other.name)).map((other) => [other.name, seen(other.name)]);
    redraw(bar, field('Smoothing', h('span', { class: 'pair' }, slider, shown)), h('label', { class: 'check' }, log, 'Log scale'),
      parameters.range ? h('button', { type: 'button', onclick: () => change({ range: '' }, true) }, 'Whole run') : null,
      free.length ? field('Overlay', choose([['', 'add a run…'], ...free], '', (other) => other && change({ with: joined([...others(), other]) }))) : null,
      others().length ? h('span', { class: 'chip' }, swatch(0), seen(name)) : null,
      others().map((other, n) => h('button', { type: 'button', class: 'chip', 'aria-label': `remove ${other}`, onclick: () => change({ with: joined(others().filter((one) => one !== other)) }) }, swatch(n + 1), `${seen(other)} ×`)));
  }

  function draw() {
    const range = parameters.range?.split('_').map(Number);
    const usable = range?.length === 2 && range.every(Number.isFinite) ? range : null;
    const runs = loaded.map((one, n) => (n === 0 && part && usable ? { ...one, data: { ...part, stages: one.data.stages } } : one));
    charts.show(runs, { smooth: Number(parameters.smooth ?? 1), log: parameters.log === '1', range: usable }, remarks);
    const broken = loaded.filter((one) => one.data.broken).map((one) => `${one.data.broken} lines of ${one.name}’s metrics.jsonl cannot be read and are left out`);
    const faults = [...broken, ...loaded.map((one) => one.fault).filter(Boolean)];
    fill(notes, seen(faults.join('; ')));
    notes.hidden = !faults.length;
    const nothing = grid.querySelector('.empty');
    if (loaded[0]?.data.steps) nothing?.remove();
    else if (!nothing) grid.append(['running', 'silent', 'unknown'].includes(run.status) ? empty('No steps yet', 'The first line of metrics.jsonl is written when the first step has ended; it appears here by itself.') : empty('No steps', 'This run ended before its first step.'));
  }

  async function detail() {
    const [low, high] = (parameters.range ?? '').split('_').map(Number);
    part = null;
    if (exported() || !parameters.range || (loaded[0]?.data.steps ?? 0) <= WHOLE || !Number.isFinite(low + high)) return;
    part = await answer('metrics', { run: name, first: low - 1, last: high + 1 });
  }

  async function load() {
    let fresh = false;
    const found = [];
    for (const other of [name, ...others()]) {
      try {
        const got = await ask('metrics', { run: other });
        fresh ||= got.changed;
        found.push({ name: other, data: got.value });
      } catch (error) {
        if (other === name || !(error instanceof Refused)) throw error;
        found.push({ name: other, data: { steps: 0, series: {} }, fault: error.message }); // the others keep their colours
      }
    }
    fresh ||= found.length !== loaded.length;
    loaded = found;
    return fresh;
  }

  async function tell() {
    const got = await ask('remarks', { run: name });
    remarks = got.value;
    advice();
    if (remarks.length) draw();
  }

  title();
  await load();
  let began = false;
  return {
    update: async (now) => {
      if (now.run !== name) return location.reload();
      const [before, overlaid] = [parameters, others().join()];
      parameters = now;
      if (others().join() !== overlaid || !began) await load();
      if (before.range !== now.range || !began) await detail();
      controls();
      draw();
      if (!began) tell();
      began = true;
    },
    tick: async () => {
      const got = await ask('run', { run: name });
      if (got.changed) { run = got.value; title(); }
      if (await load()) { await detail(); draw(); await tell(); say(`step ${run.step}`); }
    },
    end: charts.end,
  };
}

// The line by which a run is told from the others.
function swatch(n) {
  const picture = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  const line = document.createElementNS('http://www.w3.org/2000/svg', 'line');
  const colours = COLOURS[document.documentElement.dataset.theme];
  for (const [key, value] of Object.entries({ width: 28, height: 10, 'aria-hidden': 'true' })) picture.setAttribute(key, value);
  for (const [key, value] of Object.entries({ x1: 0, y1: 5, x2: 28, y2: 5, stroke: colours[n % colours.length], 'stroke-width': 2.4, 'stroke-dasharray': STROKES[n % STROKES.length] })) line.setAttribute(key, value);
  picture.append(line);
  return picture;
}

function setup(run) {
  const line = ([key, value]) => h('tr', {}, h('th', { scope: 'row' }, seen(key)), h('td', {}, seen(typeof value === 'object' ? JSON.stringify(value) : value)));
  return h('section', { class: 'setup' },
    h('details', {}, h('summary', {}, 'Settings (config.toml)'), h('pre', { tabindex: '0' }, seen(run.config || 'none'))),
    h('details', {}, h('summary', {}, 'Machine and versions (run.json)'), h('div', { class: 'scroll' }, h('table', {}, h('tbody', {}, Object.entries(run.info).map(line))))));
}

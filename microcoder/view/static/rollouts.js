// Rollouts by step and problem: the samples of a group side by side, and ways to find the ones worth reading.

import { answer, ask, exported } from './api.js';
import { badge, choose, empty, field, fill, h, number, say, seen } from './dom.js';
import { change, here, link } from './route.js';
import { tabs } from './run.js';
import { asked, dots, group } from './sample.js';
import { redraw, reveal } from './table.js';

const KINDS = [['', 'the problems of a step'], ['worst', 'worst: lowest advantage'], ['longest', 'longest'], ['truncated', 'truncated'], ['masked', 'masked'], ['solved', 'newly solved'], ['lost', 'lost'], ['hacks', 'suspected hacks'], ['text', 'text search']];
const ABOUT = {
  worst: 'groups with the lowest advantage of a sample, over the whole run', longest: 'groups with the longest response, over the whole run', truncated: 'groups with responses cut off at the limit, newest first',
  masked: 'groups with responses masked by the truncation mask, newest first', solved: 'no sample was accepted at the problem’s last visit, and one is at this', lost: 'a sample was accepted at the problem’s last visit, and none is at this',
  hacks: 'accepted programs that look like a cheat: a heuristic, newest first; judge for yourself', text: 'in what the model wrote, in the judge’s messages and in the problems’ names',
};

export async function rolloutsPage(root, first) {
  const run = first.run;
  let known = await answer('steps', { run });
  let parameters = first, items = [], listed = '', shown = '';
  const bar = h('div', { class: 'bar' }), note = h('p', { class: 'quiet' }), side = h('ol', { class: 'picks', 'aria-label': 'Groups' }), main = h('section', { class: 'group', 'aria-label': 'Samples' });
  const search = h('input', { type: 'search', 'data-search': true, placeholder: 'in text and messages', onchange: () => change({ find: search.value ? 'text' : '', q: search.value, problem: '', row: '' }) });
  fill(root, h('div', { class: 'title' }, h('h1', {}, `${seen(run)}: rollouts`)), tabs(run, '/rollouts'), bar, note, h('div', { class: 'split' }, side, main));

  const test = (of = parameters) => of.of === 'test';
  const steps = () => (test() ? known.test : known.train);
  const kind = (of = parameters) => (!test(of) && KINDS.some(([name]) => name === of.find) ? of.find : '');
  const step = (of = parameters) => (of.step !== undefined && of.step !== '' ? Number(of.step) : steps().at(-1));
  const at = (of = parameters) => items.findIndex((item) => item.problem === of.problem && item.step === step(of) && (item.row === undefined || String(item.row) === String(of.row ?? item.row)));

  function controls() {
    const all = steps(), place = all.indexOf(step());
    const slider = h('input', { type: 'range', min: 0, max: Math.max(0, all.length - 1), value: Math.max(0, place), 'aria-label': 'Step', 'aria-valuetext': `step ${step()}`, onchange: () => move(Number(slider.value)) });
    const exact = h('input', { type: 'number', class: 'narrow', value: step(), min: all[0], max: all.at(-1), 'aria-label': 'Step number', onchange: () => { const near = all.reduce((a, b) => (Math.abs(b - exact.value) < Math.abs(a - exact.value) ? b : a)); move(all.indexOf(near)); } });
    const button = (words, name, by) => h('button', { type: 'button', 'aria-label': name, disabled: all[place + by] === undefined, onclick: () => move(place + by) }, words);
    if (document.activeElement !== search) search.value = parameters.q ?? '';
    const kinds = exported() ? KINDS.filter(([name]) => name !== 'text') : KINDS;
    redraw(bar, known.test.length || test() ? field('Answers of', choose([['', 'training'], ['test', 'evaluations']], parameters.of ?? '', (of) => change({ of, step: '', problem: '', row: '', find: '', q: '' }))) : null,
      test() || !all.length ? null : field('Find', choose(kinds, kind(), (find) => change({ find, q: find === 'text' ? parameters.q : '', problem: '', row: '' }))), exported() || test() || !all.length ? null : field('Search', search),
      kind() || !all.length ? null : h('div', { class: 'field' }, h('span', {}, `Step (${number(all.length)} with ${test() ? 'evaluations' : 'rollouts'})`), h('span', { class: 'pair' }, button('‹', 'Previous step', -1), exact, slider, button('›', 'Next step', 1))));
  }

  function move(place) {
    if (steps()[place] === undefined) return;
    change({ step: steps()[place], problem: '', row: '', find: '', q: '' });
  }

  const listing = (of) => (kind(of) ? `${kind(of)} ${of.q ?? ''}` : `${of.of ?? ''} step ${step(of)}`);

  function pick(of, by) {
    const item = listing(of) === listed ? items[at(of) + by] : null; // else its list is still on the way
    if (item) change({ step: item.step, problem: item.problem, row: item.row ?? '' });
  }

  const entry = (item) => h('li', {}, h('a', { href: link('/rollouts', { ...parameters, step: item.step, problem: item.problem, row: item.row }) },
    h('span', { class: 'name' }, seen(item.problem)), item.rows ? dots(item.accepted, item.rows) : h('span', { class: 'quiet' }, `step ${item.step}`),
    h('span', { class: 'words' }, h('span', { class: 'two' }, seen(item.why ?? item.title)), item.truncated && !item.why ? [' ', badge(`${item.truncated} truncated`, 'mark')] : null, item.masked && !item.why ? [' ', badge(`${item.masked} masked`, 'mark')] : null)));

  async function list() {
    const key = listing(parameters);
    if (key === listed) return;
    listed = '';
    if (!kind()) {
      const found = await answer('step', { run, step: step(), test: test() || null });
      items = found.groups.map((one) => ({ ...one, step: found.step }));
      fill(note, seen([`${test() ? 'evaluation after ' : ''}step ${found.step}: ${number(found.rows)} ${test() ? 'answers to' : 'rollouts of'} ${items.length} problems`, found.fault].filter(Boolean).join('; ')));
    } else {
      fill(note, 'Looking…');
      items = [];
      await further(null);
    }
    listed = key;
    fill(side, items.map(entry), more());
  }

  let next = null;
  async function further(before) {
    const list = items;
    const found = parameters.find === 'text' && !parameters.q ? { found: [], next: null, note: 'type what to look for' } : await answer('find', { run, kind: kind(), q: kind() === 'text' ? parameters.q : '', before });
    if (list !== items) return; // another list was asked for meanwhile
    items.push(...found.found);
    next = found.next;
    const words = `${number(items.length)} found: ${ABOUT[kind()]}${found.note ? `; ${found.note}` : ''}`;
    fill(note, seen(words));
    say(words);
  }

  const more = () => (kind() && next !== null && !exported() ? h('li', {}, h('button', { type: 'button', onclick: async (event) => { event.target.disabled = true; try { await further(next); } finally { fill(side, items.map(entry), more()); mark(); } } }, `Look further back than step ${next}`)) : null);

  function mark() {
    const place = at();
    side.querySelectorAll('a').forEach((anchor, n) => {
      if (n === place) { anchor.setAttribute('aria-current', 'true'); reveal(side, anchor); } else anchor.removeAttribute('aria-current');
    });
  }

  async function draw() {
    const item = parameters.problem ? { problem: parameters.problem, step: step() } : items[0];
    if (!item) { shown = ''; return fill(main, empty('Nothing found', 'Nothing is like that in what was looked at.')); }
    if (!parameters.problem) { parameters = { ...parameters, problem: item.problem, step: String(item.step), row: item.row ?? '' }; history.replaceState(null, '', link('/rollouts', parameters)); }
    const key = `${parameters.of ?? ''} ${item.step} ${item.problem} ${parameters.row ?? ''}`;
    if (key === shown) return;
    shown = key;
    const found = await answer('group', { of: run, step: item.step, problem: item.problem, test: test() || null });
    const samples = h('div', { class: 'samples' }), history_ = h('p', { class: 'visits' });
    const accepted = found.rows.filter((row) => row.verdict === 'accepted').length;
    fill(main, h('h2', {}, seen(found.problem)), h('p', { class: 'quiet' }, `step ${found.step}, ${accepted} of ${found.rows.length} accepted `, dots(accepted, found.rows.length)), asked(found), history_, samples);
    group(samples, found.rows, parameters.row === '' ? null : parameters.row);
    say(`${found.problem}: ${accepted} of ${found.rows.length} accepted`);
    samples.querySelector('.chosen')?.scrollIntoView({ block: 'nearest' });
    if (!exported() && !test()) visits(history_, found);
  }

  async function visits(element, found) {
    const all = await answer('visits', { run, problem: found.problem });
    const some = all.length > 40 ? all.slice(-40) : all;
    if (all.length < 2 || !element.isConnected) return;
    fill(element, h('span', { class: 'quiet' }, `Sampled ${all.length} times${some.length < all.length ? ', the last 40' : ''}: `), some.map(([when, accepted, rows]) => h('a', { class: accepted === 0 ? 'none' : accepted === rows ? 'all' : 'some', 'aria-current': when === found.step ? 'true' : null, title: `step ${when}: ${accepted} of ${rows} accepted`, href: link('/rollouts', { run, step: when, problem: found.problem }) }, `${when}`, h('span', { class: 'sr' }, `: ${accepted} of ${rows} accepted`))));
  }

  return {
    update: async (now) => {
      if (now.run !== run) return location.reload();
      parameters = now;
      if (!steps().length) {
        listed = shown = '';
        controls();
        fill(note);
        fill(side);
        return fill(main, test() ? empty('No answers of evaluations', 'They are kept with the rollouts of a run.') : known.running ? empty('No rollouts yet', 'A run writes what it sampled after each step; it appears here by itself.') : empty('No rollouts', 'This run has ended and holds no rollouts: none were written, or they were removed.'));
      }
      controls();
      await list();
      await draw();
      mark();
    },
    keys: (key) => {
      const now = here().parameters; // the page may still wait for what it shows
      if (key === 'j') pick(now, 1);
      else if (key === 'k') pick(now, -1);
      else if (key === 'n') move(steps().indexOf(step(now)) + 1);
      else if (key === 'p') move(steps().indexOf(step(now)) - 1);
      else return false;
      return true;
    },
    tick: async () => {
      const got = await ask('steps', { run });
      if (!got.changed) return;
      const began = steps().length > 0;
      known = got.value;
      if (!began && here().path === '/rollouts') window.dispatchEvent(new HashChangeEvent('hashchange'));
      else if (steps().length) controls();
    },
  };
}

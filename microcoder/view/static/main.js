// The frame around the pages: which one is shown, the theme, the keys, and asking again while a run goes on.

import { begin, exported } from './api.js';
import { benchPage } from './bench.js';
import { comparePage } from './compare.js';
import { empty, fill, h, kbd, say } from './dom.js';
import { rolloutsPage } from './rollouts.js';
import { here, link } from './route.js';
import { runPage } from './run.js';
import { runsPage } from './runs.js';
import { studiesPage } from './studies.js';

const POLL_MS = 2000;
const PAGES = { '/': runsPage, '/run': runPage, '/rollouts': rolloutsPage, '/compare': comparePage, '/bench': benchPage, '/studies': studiesPage };
const KEYS = [
  [['j', 'k'], 'next and previous problem, or what was found'],
  [['n', 'p'], 'next and previous step'],
  [['/'], 'search, or filter'],
  [['r'], 'all runs'],
  [['t'], 'dark or light'],
  [['?'], 'this help'],
];
const main = document.getElementById('main');
const help = document.getElementById('help');
let page = null; // { path, update, updated, tick, keys, end }; null while one is made
let turn = 0;

async function show() {
  const { path, parameters } = here();
  const mine = ++turn;
  for (const anchor of document.querySelectorAll('[data-page]')) {
    const current = anchor.dataset.page === (['/run', '/rollouts'].includes(path) ? '/' : path);
    if (current) anchor.setAttribute('aria-current', 'page');
    else anchor.removeAttribute('aria-current');
  }
  try {
    if (page?.path === path) {
      await page.updated?.catch(() => {}); // one after the other, or a slow answer would take the place of a later one
      if (mine !== turn) return;
      await (page.updated = page.update(parameters));
      return;
    }
    page?.end?.();
    page = null;
    document.querySelector('.live').hidden = true; // pages about runs show it
    const moved = main.querySelector('.page') !== null;
    const root = h('div', { class: 'page' });
    const make = PAGES[path];
    if (!make) throw new Error(`there is no page ${path}`);
    const made = { path, ...(await make(root, parameters)) };
    if (mine !== turn) return made.end?.();
    page = made;
    fill(main, root);
    await (page.updated = page.update(parameters));
    document.title = `${root.querySelector('h1')?.textContent ?? 'MicroCoder'} – MicroCoder`;
    if (moved) main.focus({ preventScroll: true });
  } catch (error) {
    if (mine !== turn) return;
    page = null;
    fill(main, empty('This cannot be shown', error.message, h('a', { href: '#/' }, 'All runs')));
    say(error.message);
  }
}

async function tick() {
  if (!document.hidden && page?.tick) {
    try {
      await page.tick();
      main.classList.remove('stale');
    } catch (error) {
      main.classList.add('stale');
      main.dataset.stale = `${error.message}; what is shown may be old`;
      say(error.message);
    }
  }
  setTimeout(tick, POLL_MS);
}

function theme() {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  document.documentElement.dataset.theme = next;
  try { localStorage.setItem('microcoder-theme', next); } catch { /* a browser may keep nothing */ }
  name();
  window.dispatchEvent(new Event('themechange'));
}

function name() {
  document.getElementById('theme-button').textContent = document.documentElement.dataset.theme === 'dark' ? 'Light' : 'Dark';
}

function pressed(event) {
  const writing = event.target.closest('input, select, textarea') && event.target.type !== 'checkbox';
  if (event.ctrlKey || event.metaKey || event.altKey || help.open) return;
  if (writing) {
    if (event.key === 'Escape') event.target.blur();
    return;
  }
  const search = main.querySelector('[data-search]');
  if (event.key === '?') help.showModal();
  else if (event.key === 't') theme();
  else if (event.key === 'r') location.hash = '#/';
  else if (event.key === '/' && search) search.focus();
  else if (!page?.keys?.(event.key)) return;
  event.preventDefault();
}

function frame() {
  name();
  const close = h('button', { type: 'button', onclick: () => help.close() }, 'Close');
  const lines = KEYS.map(([keys, what]) => [h('dt', {}, kbd(...keys)), h('dd', {}, what)]);
  const words = 'The address of a page holds its run, step, problem and zoom: send it, and the other sees the same.';
  fill(help, h('h2', { id: 'help-title' }, 'Keys'), h('dl', { class: 'keys' }, lines), h('p', {}, words), close);
  document.getElementById('help-button').addEventListener('click', () => help.showModal());
  document.getElementById('theme-button').addEventListener('click', theme);
  document.querySelector('.skip').addEventListener('click', (event) => { event.preventDefault(); main.focus(); });
  document.addEventListener('keydown', pressed);
  window.addEventListener('hashchange', show);
}

frame();
begin().then(async () => {
  const about = exported();
  if (about) {
    document.querySelector('header').after(h('p', { class: 'note banner' }, about.words));
    for (const anchor of document.querySelectorAll('[data-page="/compare"], [data-page="/bench"], [data-page="/studies"]')) anchor.remove();
    if (!location.hash && about.only) history.replaceState(null, '', link('/run', { run: about.only }));
  }
  await show();
  document.body.dataset.ready = 'true';
  if (!about) setTimeout(tick, POLL_MS);
});

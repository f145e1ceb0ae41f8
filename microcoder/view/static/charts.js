// The charts of a run: made when they come into sight, zoomed and pointed at together.

import { fill, h, number, say, seen } from './dom.js';
import { sketch } from './sketch.js';
import { COLOURS, label, marks, metricsOf, traces } from './traces.js';

let loading = null;

const SCRIPT = '/static/plotly.js'; // of the plotly package: so large that to read it keeps the page busy for a second

// It is on its way while the rest of a page is asked for.
export function fetchPlotly() {
  if (!globalThis.Plotly && !loading) document.head.append(h('link', { rel: 'preload', as: 'script', href: SCRIPT }));
}

function plotly() {
  loading ??= globalThis.Plotly ? Promise.resolve() : new Promise((done, failed) => {
    const script = h('script', { src: SCRIPT, onload: () => done(), onerror: () => failed(new Error('the charts\' script cannot be loaded')) });
    document.head.append(script);
  });
  return loading;
}

const moment = () => new Promise((next) => setTimeout(next));
const painted = () => new Promise((next) => { requestAnimationFrame(() => setTimeout(next)); setTimeout(next, 200); }); // a page in the background is not painted
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const coarse = () => matchMedia('(pointer: coarse)').matches;

export function chartGrid(host, panels, zoomed) {
  const cards = new Map(); // panel id -> { panel, figure, plot, table, drawn, near }
  let runs = [], options = {}, remarks = [];
  const watch = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const card = [...cards.values()].find((one) => one.plot === entry.target);
      if (card) card.near = entry.isIntersecting;
    }
    draw();
  }, { rootMargin: '300px' });

  for (const panel of panels) {
    const plot = h('div', { class: 'plot', role: 'img', 'aria-label': `${panel.title}: ${panel.about}` });
    const values = h('details', { ontoggle: () => values.open && tabulate(cards.get(panel.id)) }, h('summary', {}, 'Values'), h('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Values of ${panel.title}` }));
    const figure = h('figure', { class: 'chart', hidden: true, id: `chart-${panel.id}` }, h('figcaption', {}, h('h3', {}, panel.title), h('p', {}, panel.about)), plot, values);
    cards.set(panel.id, { panel, figure, plot, values, drawn: 0, near: false });
    host.append(figure);
    watch.observe(plot);
  }

  let version = 0, waiting = false;
  async function draw() {
    if (waiting || !runs.length) return; // the script comes after the first curves
    waiting = true;
    try {
      if (!globalThis.Plotly) await painted(); // the sketches
      await plotly();
    } catch (error) {
      say(error.message); // the tables of values are there without it
      return;
    }
    await moment();
    waiting = false;
    for (const card of cards.values()) {
      if (!card.near || card.drawn === version || card.figure.hidden) continue;
      card.drawn = version;
      await one(card);
      await moment(); // it is seen before the next one is drawn
    }
    (globalThis.requestIdleCallback ?? setTimeout)(rest);
  }

  function sketchAll() {
    const { height, margin, font } = layout(panels[0]);
    for (const { panel, plot, figure } of cards.values()) {
      if (figure.hidden || plot.children.length || plot.getBoundingClientRect().top > innerHeight) continue;
      const found = traces(panel, runs, options, COLOURS[document.documentElement.dataset.theme]);
      sketch(plot, found, { height, margin, range: options.range, log: options.log && !panel.stacked, share: panel.share || panel.id === 'verdicts', colour: font.color });
    }
  }

  // What is out of sight is drawn once, in idle moments: to be there when somebody scrolls or prints.
  async function rest() {
    const card = [...cards.values()].find((other) => !other.drawn && !other.figure.hidden);
    if (!card || !host.isConnected) return;
    card.drawn = version;
    await one(card);
    (globalThis.requestIdleCallback ?? setTimeout)(rest);
  }

  async function one(card) {
    const theme = document.documentElement.dataset.theme;
    const colours = COLOURS[theme];
    const found = [...traces(card.panel, runs, options, colours), ...marks(runs[0], remarks, colours)];
    if (!card.listening) card.plot.replaceChildren(); // the sketch
    await globalThis.Plotly.react(card.plot, found, layout(card.panel), { displayModeBar: false, responsive: true, doubleClick: 'reset' });
    if (!card.listening) {
      card.listening = true;
      card.plot.on('plotly_relayout', (event) => {
        if (event['xaxis.range[0]'] !== undefined) zoomed([event['xaxis.range[0]'], event['xaxis.range[1]']]);
        else if (event['xaxis.autorange']) zoomed(null);
      });
      card.plot.on('plotly_hover', (event) => others(card, (plot) => globalThis.Plotly.Fx.hover(plot, { xval: event.xvals[0] }, 'xy', true)));
      card.plot.on('plotly_unhover', () => others(card, (plot) => globalThis.Plotly.Fx.unhover(plot, {}, 'xy', true)));
    }
    card.plot.dataset.drawn = String(runs[0]?.data.last ?? 0);
    if (card.values.open) tabulate(card);
  }

  function others(card, act) {
    for (const other of cards.values()) {
      if (other === card || !other.listening || !other.near) continue;
      try { act(other.plot); } catch { /* a chart without a point there */ }
    }
  }

  function layout(panel) {
    const [text, grid, quiet] = [css('--text'), css('--line'), css('--quiet')];
    const stages = runs[0]?.data.stages ?? [];
    const log = options.log && !panel.stacked;
    return {
      height: 230, margin: { l: 48, r: 12, t: 20, b: 30 }, paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { family: 'system-ui, sans-serif', size: 11, color: quiet }, showlegend: runs.length === 1 && metricsOf(panel, runs).length > 1, // of several runs there is one legend for all charts
      legend: { orientation: 'h', y: -0.16, x: 0, yanchor: 'top', font: { color: text } },
      hovermode: 'x unified', hoverlabel: { bgcolor: css('--panel'), bordercolor: grid, font: { color: text } }, dragmode: coarse() ? false : 'zoom',
      xaxis: { gridcolor: grid, zeroline: false, range: options.range ?? undefined, autorange: !options.range, showspikes: true, spikemode: 'across', spikethickness: 1, spikedash: 'dot', spikecolor: quiet, hoverformat: 'd', title: { text: '' } },
      yaxis: { gridcolor: grid, zeroline: false, fixedrange: true, type: log ? 'log' : 'linear', tickformat: panel.share || panel.id === 'verdicts' ? '.2~%' : '', exponentformat: panel.id === 'learning-rate' ? 'e' : 'B', rangemode: log ? 'normal' : 'tozero', nticks: 6 },
      yaxis2: { overlaying: 'y', range: [0, 1], visible: false, fixedrange: true },
      shapes: stages.map((stage) => ({ type: 'line', x0: stage.step - 0.5, x1: stage.step - 0.5, y0: 0, y1: 1, yref: 'paper', line: { color: quiet, width: 1, dash: 'dash' } })),
      annotations: stages.slice(0, 8).map((stage) => ({ x: stage.step - 0.5, y: 1, yref: 'paper', yanchor: 'bottom', xanchor: 'left', text: stage.words, showarrow: false, font: { size: 10, color: quiet } })),
      uirevision: 'same',
    };
  }

  function tabulate(card) {
    const metrics = [...metricsOf(card.panel, runs), card.panel.overlay].filter((name, n, all) => name && all.indexOf(name) === n);
    const rows = runs.flatMap((run) => metrics.filter((name) => run.data.series[name]).map((name) => {
      const { x, y } = run.data.series[name];
      return h('tr', {}, h('th', { scope: 'row' }, seen(runs.length > 1 ? `${run.name}: ${label(name)}` : label(name))), [y[0], Math.min(...y), Math.max(...y), y[y.length - 1]].map((value) => h('td', { class: 'number' }, number(value))), h('td', { class: 'number' }, number(x[x.length - 1])));
    }));
    const head = ['Metric', 'First', 'Least', 'Most', 'Last', 'At step'].map((words, n) => h('th', { scope: 'col', class: n ? 'number' : null }, words));
    fill(card.values.querySelector('.scroll'), h('table', {}, h('thead', {}, h('tr', {}, head)), h('tbody', {}, rows)));
  }

  function show(given, settings, said) {
    [runs, options, remarks] = [given, settings, said];
    version += 1;
    for (const card of cards.values()) {
      const names = runs.length > 1 ? [card.panel.overlay ?? card.panel.metrics[0]] : metricsOf(card.panel, runs);
      card.figure.hidden = (runs.length > 1 && card.panel.alone) || !names.some((name) => runs.some((run) => run.data.series[name]?.y.some((value) => value !== 0 || card.panel.id !== 'kl')));
    }
    if (!globalThis.Plotly) sketchAll();
    draw();
  }

  const themed = () => show(runs, options, remarks);
  window.addEventListener('themechange', themed);
  return { show, end: () => { watch.disconnect(); window.removeEventListener('themechange', themed); for (const card of cards.values()) if (card.listening) globalThis.Plotly.purge(card.plot); } };
}

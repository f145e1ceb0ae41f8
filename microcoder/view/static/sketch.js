// The curves while plotly's script, which is large, is still being read: the same lines at the same place, and no more.

import { DASHES, STROKES } from './traces.js';

const SVG = 'http://www.w3.org/2000/svg';

function part(tag, attributes, text = '') {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.textContent = text;
  return element;
}

const short = (value, share) => (share ? `${Number((100 * value).toFixed(2))}%` : String(Number(value.toPrecision(3))));

// `found`: plotly's traces; `look`: { height, margin, range, log, share, colour }
export function sketch(plot, found, { height, margin, range, log, share, colour }) {
  const curves = piled(found.filter((trace) => trace.yaxis !== 'y2' && trace.x.length));
  const usable = (value) => Number.isFinite(value) && (!log || value > 0);
  const scale = log ? Math.log10 : (value) => value;
  const xs = range ?? ends(curves.flatMap((curve) => ends(curve.x)));
  const ys = curves.flatMap((curve) => ends(curve.y.filter(usable))).map(scale).filter(Number.isFinite);
  if (!ys.length) return;
  const [low, high] = log ? ends(ys) : [Math.min(0, ...ys), Math.max(0, ...ys)];
  const width = plot.clientWidth, wide = width - margin.l - margin.r, tall = height - margin.t - margin.b;
  const across = (x) => margin.l + ((x - xs[0]) / (xs[1] - xs[0] || 1)) * wide;
  const down = (y) => margin.t + (1 - (scale(y) - low) / (high - low || 1)) * tall;
  const picture = part('svg', { width, height, 'aria-hidden': 'true', 'font-size': 11, fill: colour });
  for (const curve of curves) {
    const points = curve.x.flatMap((x, n) => (usable(curve.y[n]) && x >= xs[0] && x <= xs[1] ? [`${across(x).toFixed(1)},${down(curve.y[n]).toFixed(1)}`] : []));
    const line = { points: points.join(' '), fill: curve.fillcolor ?? 'none', stroke: curve.line.color ?? 'none', 'stroke-width': curve.line.width, opacity: curve.opacity ?? 1 };
    picture.append(part('polyline', { ...line, 'stroke-dasharray': STROKES[Math.max(0, DASHES.indexOf(curve.line.dash))] }));
  }
  const value = (y) => short(log ? 10 ** y : y, share);
  picture.append(part('text', { x: margin.l - 6, y: margin.t + 4, 'text-anchor': 'end' }, value(high)), part('text', { x: margin.l - 6, y: margin.t + tall + 4, 'text-anchor': 'end' }, value(low)));
  picture.append(part('text', { x: margin.l, y: height - 14 }, short(xs[0])), part('text', { x: width - margin.r, y: height - 14, 'text-anchor': 'end' }, short(xs[1])));
  plot.replaceChildren(picture);
  plot.dataset.sketched = '';
}

const ends = (values) => values.reduce(([low, high], value) => [Math.min(low, value), Math.max(high, value)], [Infinity, -Infinity]);

// Parts of a whole lie one upon the other.
function piled(found) {
  if (!found.some((trace) => trace.stackgroup)) return found;
  const whole = found[0].x.map((_, n) => (found[0].groupnorm ? found.reduce((sum, trace) => sum + (trace.y[n] ?? 0), 0) || 1 : 1));
  const below = whole.map(() => 0);
  return found.map((trace) => ({ ...trace, line: { ...trace.line, width: 1.4 }, y: trace.y.map((value, n) => (below[n] += (value ?? 0) / whole[n])) }));
}

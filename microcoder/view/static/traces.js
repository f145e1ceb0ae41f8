// Curves -> what plotly draws. Colours that the colour-blind can tell apart; runs also differ in their dashes.

export const COLOURS = {
  light: ['#0067a5', '#c25e00', '#00785a', '#a8467f', '#6b5b00', '#4a4fb5', '#b3261e', '#3d7a9e', '#5f6368'],
  dark: ['#5cb3ea', '#f0a341', '#3fc79a', '#e08fbd', '#d8c84a', '#9ea2f5', '#ff8a80', '#8fc7e0', '#a9afb6'],
};
export const DASHES = ['solid', 'dash', 'dot', 'dashdot', 'longdash', 'longdashdot'];
const MARKS = 100; // beyond so many points, marks are a blur and take long to draw
const SETTINGS = ['max_response_tokens', 'temperature', 'learning_rate']; // what was set is not smoothed
export const STROKES = ['', '7 4', '2 3', '7 3 2 3', '11 4', '11 3 2 3']; // the same, as SVG says it

// The mean of what lies within half a window of each point.
export function smooth(x, y, width) {
  const means = new Array(y.length);
  let low = 0, high = 0, sum = 0;
  for (let n = 0; n < y.length; n++) {
    while (high < y.length && x[high] <= x[n] + width / 2) sum += y[high++];
    while (x[low] < x[n] - width / 2) sum -= y[low++];
    means[n] = sum / (high - low);
  }
  return means;
}

// Of a panel with a prefix, whatever the runs have recorded under it.
export const metricsOf = (panel, runs) => (panel.prefix ? [...new Set(runs.flatMap((run) => Object.keys(run.data.series)))].filter((name) => name.startsWith(panel.prefix)) : panel.metrics);

export const label = (metric) => metric.replace(/^(verdicts|test_by_difficulty)\./, '').replace(/_s$/, '').replace(/_/g, ' ');

export function traces(panel, runs, options, colours) {
  const several = runs.length > 1;
  if (panel.stacked && !several) return stacked(panel, runs[0], colours);
  const found = [];
  runs.forEach((run, n) => {
    const metrics = several ? [panel.overlay ?? panel.metrics[0], ...(panel.band ? ['test_accuracy'] : [])] : metricsOf(panel, runs);
    metrics.forEach((metric, m) => {
      const curve = run.data.series[metric];
      if (!curve) return;
      const colour = colours[(several ? n : m) % colours.length];
      const name = several ? (m ? `${run.name}, ${label(metric)}` : run.name) : label(metric);
      const line = { color: colour, width: 1.8, dash: several ? DASHES[n % DASHES.length] : 'solid' };
      const base = { type: 'scatter', name, hovertemplate: `%{y:.4~g} ${name}<extra></extra>` };
      if (metric.startsWith('test_')) {
        if (!several && panel.band) found.push(...band(run, panel.band, colour));
        found.push({ ...base, x: curve.x, y: curve.y, mode: curve.x.length > MARKS ? 'lines' : 'lines+markers', line: { ...line, width: 1.4, dash: several ? line.dash : 'dot' }, marker: { size: 7, color: colour, symbol: m ? 'diamond' : 'circle' } });
      } else if (SETTINGS.includes(metric)) {
        const limit = !several && metric === 'max_response_tokens' ? { name: 'limit', line: { color: colours[8], width: 1.2, dash: 'dash', shape: 'hv' } } : { line: { ...line, shape: 'hv' } };
        found.push({ ...base, x: curve.x, y: curve.y, mode: 'lines', ...limit });
      } else if (options.smooth > 1) {
        const [x, y] = curve.mean_x ? [curve.mean_x, curve.mean_y] : [curve.x, curve.y];
        found.push({ ...base, x: curve.x, y: curve.y, mode: 'lines', line: { ...line, width: 1 }, opacity: 0.28, hoverinfo: 'skip', hovertemplate: null, showlegend: false });
        found.push({ ...base, x, y: smooth(x, y, options.smooth), mode: 'lines', line });
      } else {
        found.push({ ...base, x: curve.x, y: curve.y, mode: curve.x.length === 1 ? 'markers' : 'lines', line, marker: { color: colour } });
      }
    });
  });
  return found;
}

function stacked(panel, run, colours) {
  const total = panel.metrics[0].startsWith('verdicts.');
  const tints = total ? [2, 1, 3, 4, 8, 5, 6, 7, 0] : [0, 1, 2, 3, 8]; // what was accepted is green
  return panel.metrics.filter((metric) => run.data.series[metric]).map((metric) => {
    const tint = colours[tints[panel.metrics.indexOf(metric)]];
    const curve = run.data.series[metric];
    const [x, y] = curve.mean_x ? [curve.mean_x, curve.mean_y] : [curve.x, curve.y]; // extremes of several curves do not add up
    return { type: 'scatter', name: label(metric), x, y, mode: 'lines', stackgroup: 'all', groupnorm: total ? 'fraction' : '', line: { width: 0.6, color: tint }, hovertemplate: `%{y:.3~g} ${label(metric)}<extra></extra>` };
  });
}

function band(run, [low, high], colour) {
  const [under, over] = [run.data.series[low], run.data.series[high]];
  if (!under || !over) return [];
  const x = [...over.x, ...[...under.x].reverse()];
  const y = [...over.y, ...[...under.y].reverse()];
  return [{ type: 'scatter', x, y, fill: 'toself', fillcolor: `${colour}22`, line: { width: 0 }, mode: 'lines', hoverinfo: 'skip', showlegend: false }];
}

// Evaluations as ticks below, the advisor's remarks as triangles above; on an axis of their own from 0 to 1.
export function marks(run, remarks, colours) {
  const tested = run.data.series.test_accuracy?.x ?? [];
  const evaluations = tested.length > MARKS ? [] : tested;
  const base = { type: 'scatter', yaxis: 'y2', mode: 'markers', showlegend: false, cliponaxis: false };
  const found = [];
  if (evaluations.length) found.push({ ...base, x: evaluations, y: evaluations.map(() => 0.03), hoverinfo: 'skip', marker: { symbol: 'line-ns-open', size: 7, color: colours[8], line: { width: 1.4 } } });
  if (remarks.length) {
    const text = remarks.map((remark) => `${remark.severity}: ${remark.message}`.replace(/[<>&]/g, ' '));
    const colour = remarks.map((remark) => (remark.severity === 'error' ? colours[6] : colours[1]));
    found.push({ ...base, x: remarks.map((remark) => remark.step), y: remarks.map(() => 0.96), text, hovertemplate: '%{text}<extra></extra>', marker: { symbol: 'triangle-down', size: 9, color: colour } });
  }
  return found;
}

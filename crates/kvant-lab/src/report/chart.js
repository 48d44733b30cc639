// Charts by uPlot in the page's colours. A chart is made anew whenever its size, the theme or the
// language changes.

import { themeColor } from '../front/colors.js';
import { amount } from '../front/format.js';

const charts = new Set();
const FONT = '12px system-ui, sans-serif';

// Distinct colours of the style sheet, for servers and cases.
const COLOR_COUNT = 8;

export function seriesColor(index) {
  return themeColor(`series-${index % COLOR_COUNT}`);
}

export class Chart {
  // `make()` returns [options without size, data] or null for no chart.
  constructor(box, height, make) {
    Object.assign(this, { box, height, make, plot: null });
    charts.add(this);
  }

  draw() {
    this.plot?.destroy();
    this.plot = null;
    const made = this.make();
    this.box.hidden = made === null;
    const width = this.box.clientWidth;
    if (made === null || width === 0) {
      return;
    }
    const [options, data] = made;
    const style = getComputedStyle(this.box);
    const inner = width - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    const height = typeof this.height === 'function' ? this.height(inner) : this.height;
    const target = this.box.querySelector('.plot') ?? this.box;
    this.plot = new uPlot({ legend: { show: false }, ...options, width: inner, height }, data, target);
  }
}

export function drawCharts() {
  charts.forEach((chart) => chart.draw());
}

// An axis in the page's colours.
export function axis(details) {
  return {
    stroke: themeColor('faint'),
    font: FONT,
    labelFont: FONT,
    labelSize: 18,
    labelGap: 0,
    grid: { stroke: themeColor('grid'), width: 1 },
    ticks: { show: false },
    ...details,
  };
}

export function shortNumber(value) {
  if (value === null || value === undefined) {
    return '';
  }
  const size = Math.abs(value);
  const [factor, unit] = size >= 1e6 ? [1e6, 'M'] : size >= 1e3 ? [1e3, 'k'] : [1, ''];
  return `${Number((value / factor).toPrecision(3))}${unit}`;
}

// A logarithmic axis of times with labels at powers of ten.
export function decadeAxis(details) {
  return axis({ ...details, values: timeLabels, filter: (plot, splits) => splits, splits: (plot, index, min, max) => {
    const first = Math.ceil(Math.log10(min) - 1e-9);
    const count = Math.floor(Math.log10(max) + 1e-9) - first + 1;
    return Array.from({ length: Math.max(0, count) }, (_, number) => 10 ** (first + number));
  } });
}

export function timeLabels(plot, splits) {
  return splits.map((value) => (value === null ? '' : roundTime(value)));
}

// Without the zeros behind the point.
export function roundTime(ns) {
  return amount(ns, 'time').replace(/\.0+(?= )/, '');
}

// Tables of [xs, ys] as one table with gaps.
export function joined(tables) {
  return tables.length === 1 ? tables[0] : uPlot.join(tables);
}

export function line(color, details = {}) {
  return { stroke: color, width: 2, spanGaps: true, points: { show: false }, ...details };
}

// Draws in the coordinates of the plot, clipped to its area.
export function onPlot(plot, draw) {
  const { ctx, bbox } = plot;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  draw(ctx, bbox, devicePixelRatio);
  ctx.restore();
}

// Shows a tooltip for the value of x under the pointer. `describe(index)` returns its title and
// lines, or null.
export function tooltipHooks(tooltip, describe) {
  return {
    setCursor: [(plot) => {
      const { left, top, idx } = plot.cursor;
      const lines = idx === null || idx === undefined || left < 0 ? null : describe(idx, plot);
      if (lines === null) {
        tooltip.hide();
        return;
      }
      const bounds = plot.over.getBoundingClientRect();
      tooltip.show(lines, bounds.left + left, bounds.top + top);
    }],
  };
}

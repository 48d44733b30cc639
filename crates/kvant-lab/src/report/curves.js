// Throughput-latency curves: the response time and the goodput over the offered rate, of all
// servers of a workload and a cell; and the universal scalability law.

import { themeColor } from '../front/colors.js';
import { byId, element, select } from '../front/controls.js';
import { amount } from '../front/format.js';
import { Chart, axis, decadeAxis, joined, line, onPlot, seriesColor, shortNumber, tooltipHooks } from './chart.js';
import { cellParts, onLanguageChange, said, say, sayText } from './say.js';

// Rates up to this many times the least of them are one place of a line.
const SAME_RATE = 1.02;
const PERCENTILES = [
  { field: 'p50_ns', name: 'p50', width: 1.5, dash: [2, 3] },
  { field: 'p99_ns', name: 'p99', width: 2.5 },
  { field: 'p999_ns', name: 'p99.9', width: 1.5, dash: [8, 4] },
];
const MARK = 4.5;
const chartHeight = () => (innerWidth < 620 ? 270 : 350);

export class Curves {
  constructor(data, subjects, tooltip) {
    Object.assign(this, { data, subjects, tooltip });
    const keys = data.curves.map(({ workload, cell }) => JSON.stringify([workload, cell]));
    // A cell that axes do not concern is shown beside all others of its workload.
    const isPart = (key) => keys.some((other) => other !== key && this.isIn(...JSON.parse(key), other));
    this.keys = [...new Set(keys)].filter((key) => !isPart(key));
    // The cell in which the highest rate was found.
    const best = (key) => Math.max(...this.of(key).map((curve) => this.maximumOf(curve)?.rate_per_s?.median ?? 0));
    this.key = this.keys.reduce((a, b) => (best(b) > best(a) ? b : a), this.keys[0]);
    this.latency = new Chart(byId('curve-latency'), chartHeight, () => this.makeLatency());
    this.rate = new Chart(byId('curve-rate'), chartHeight, () => this.makeRate());
    this.law = null;
    this.build();
    onLanguageChange(() => this.build());
  }

  of(key) {
    return this.data.curves.filter(({ workload, cell }) => this.isIn(workload, cell, key));
  }

  isIn(workload, cell, key) {
    const [wantedWorkload, wantedCell] = JSON.parse(key);
    return workload === wantedWorkload && cell.every((value, index) => value === '' || value === wantedCell[index]);
  }

  get shown() {
    return this.of(this.key);
  }

  maximumOf({ subject, workload, cell }) {
    return this.data.maxima.find(({ case: id }) => {
      const found = this.data.cases[id];
      return found.subject === subject && found.workload === workload && found.cell.join('\n') === cell.join('\n');
    });
  }

  colorOf({ subject }) {
    return seriesColor(this.subjects.indexOf(subject));
  }

  build() {
    const label = (key) => {
      const [workload, cell] = JSON.parse(key);
      return [workload, ...cellParts(this.data.sweep, cell)].join(', ');
    };
    for (const [chart, title] of [[this.latency, 'curves.latency'], [this.rate, 'curves.rate']]) {
      chart.box.replaceChildren(said(title, 'figcaption'), element('div', { class: 'plot' }));
    }
    byId('curve-tools').hidden = this.keys.length < 2;
    byId('curve-tools').replaceChildren(select(say('curves.chosen'), this.keys.map((key) => [key, label(key)]), this.key, (key) => {
      this.key = key;
      this.draw();
    }));
    this.showLaw();
    this.showLegend();
  }

  draw() {
    this.showLaw();
    this.latency.draw();
    this.rate.draw();
    this.law?.draw();
    this.showLegend();
  }

  showLegend() {
    const names = this.shown.map((curve) => element('span', {}, element('i', { class: 'dot', style: `background: ${this.colorOf(curve)}` }), curve.subject));
    const styles = PERCENTILES.map(({ name, width, dash }) => element('span', {},
      element('i', { class: 'stroke', style: `border-top: ${width}px ${dash === undefined ? 'solid' : dash[0] > 4 ? 'dashed' : 'dotted'}` }), name));
    byId('curve-legend').replaceChildren(...names, ...styles, element('span', {}, '\u25cf ', say('held')), element('span', {}, '\u2715 ', say('failed')));
  }

  // A line through the medians of points of about the same rate, such as those of repeats. Points of
  // a closed loop have no offered rate: they stand at what they achieved.
  table(curve, field) {
    const x = (point) => point.offered_per_s || point.achieved_per_s;
    const groups = [];
    for (const point of [...curve.points].sort((a, b) => x(a) - x(b))) {
      if (groups.length > 0 && x(point) <= x(groups.at(-1)[0]) * SAME_RATE) {
        groups.at(-1).push(point);
      } else {
        groups.push([point]);
      }
    }
    const median = (values) => values.sort((a, b) => a - b)[values.length >> 1];
    return [groups.map((group) => median(group.map(x))), groups.map((group) => median(group.map((point) => point[field])) || null)];
  }

  makeLatency() {
    const curves = this.shown;
    if (curves.length === 0) {
      return null;
    }
    const lines = curves.flatMap((curve) => PERCENTILES.map((percentile) => ({ curve, ...percentile })));
    const data = joined(lines.map(({ curve, field }) => this.table(curve, field)));
    return [{
      padding: [10, 14, 0, 0],
      scales: { x: { time: false, range: (plot, min, max) => [0, max * 1.03] }, y: { distr: 3, range: (plot, min, max) => [min * 0.7, max * 1.5] } },
      axes: [
        axis({ size: 28, label: say('curves.offered'), values: (plot, splits) => splits.map(shortNumber), space: 60 }),
        decadeAxis({ size: 64 }),
      ],
      series: [{}, ...lines.map(({ curve, width, dash }) => line(this.colorOf(curve), { width, dash }))],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      hooks: {
        drawClear: [(plot) => this.drawKnees(plot)],
        draw: [(plot) => curves.forEach((curve) => this.drawMarks(plot, curve, 'p99_ns'))],
        ...this.tooltipOf(data),
      },
    }, data];
  }

  makeRate() {
    const curves = this.shown;
    if (curves.length === 0) {
      return null;
    }
    const tables = curves.map((curve) => this.table(curve, 'achieved_per_s'));
    const most = Math.max(...tables.flatMap(([xs]) => xs));
    const data = joined([[[0, most], [0, most]], ...tables]);
    return [{
      padding: [10, 14, 0, 0],
      scales: { x: { time: false, range: (plot, min, max) => [0, max * 1.03] }, y: { range: (plot, min, max) => [0, max * 1.05] } },
      axes: [
        axis({ size: 28, label: say('curves.offered'), values: (plot, splits) => splits.map(shortNumber), space: 60 }),
        axis({ size: 52, values: (plot, splits) => splits.map(shortNumber) }),
      ],
      series: [{}, line(themeColor('line'), { width: 1, dash: [4, 4] }), ...curves.map((curve) => line(this.colorOf(curve), { width: 2.5 }))],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      hooks: {
        drawClear: [(plot) => this.drawKnees(plot)],
        draw: [(plot) => curves.forEach((curve) => this.drawMarks(plot, curve, 'achieved_per_s'))],
        ...this.tooltipOf(data),
      },
    }, data];
  }

  // The highest rate with its interval, and 80 % of it.
  drawKnees(plot) {
    onPlot(plot, (context, box, ratio) => {
      for (const curve of this.shown) {
        const maximum = this.maximumOf(curve);
        if (!maximum?.rate_per_s) {
          continue;
        }
        const at = (rate) => plot.valToPos(rate, 'x', true);
        const rate = maximum.rate_per_s.median;
        context.fillStyle = this.colorOf(curve);
        context.globalAlpha = 0.13;
        const [low, high] = maximum.interval_per_s ?? [rate, rate];
        context.fillRect(at(low), box.top, at(high) - at(low), box.height);
        context.globalAlpha = 0.9;
        context.strokeStyle = this.colorOf(curve);
        context.lineWidth = ratio;
        for (const [x, dash] of [[at(rate), []], [at(0.8 * rate), [2 * ratio, 4 * ratio]]]) {
          context.setLineDash(dash);
          context.beginPath();
          context.moveTo(x, box.top);
          context.lineTo(x, box.top + box.height);
          context.stroke();
        }
        context.globalAlpha = 1;
      }
    });
  }

  // Rates that held are dots, those that failed crosses.
  drawMarks(plot, curve, field) {
    const { ctx } = plot;
    const size = MARK * devicePixelRatio;
    ctx.save();
    ctx.strokeStyle = this.colorOf(curve);
    ctx.fillStyle = this.colorOf(curve);
    ctx.lineWidth = 2 * devicePixelRatio;
    ctx.setLineDash([]);
    for (const point of curve.points.filter((each) => each[field] > 0)) {
      const x = plot.valToPos(point.offered_per_s || point.achieved_per_s, 'x', true);
      const y = plot.valToPos(point[field], 'y', true);
      ctx.beginPath();
      if (point.holds === false) {
        ctx.moveTo(x - size, y - size);
        ctx.lineTo(x + size, y + size);
        ctx.moveTo(x - size, y + size);
        ctx.lineTo(x + size, y - size);
        ctx.stroke();
      } else {
        ctx.arc(x, y, 0.8 * size, 0, 7);
        ctx.fill();
      }
    }
    ctx.restore();
  }

  tooltipOf(data) {
    return tooltipHooks(this.tooltip, (index) => {
      const x = data[0][index];
      const lines = [];
      for (const curve of this.shown) {
        const point = curve.points.find((each) => (each.offered_per_s || each.achieved_per_s) === x);
        if (point !== undefined) {
          lines.push(`${curve.subject}: ${say('curves.rate')} ${shortNumber(point.achieved_per_s)}/s${point.holds === false ? `, ${say('failed')}` : ''}`,
            ...PERCENTILES.map(({ field, name }) => `${name} ${amount(point[field], 'time')}`), `max ${amount(point.max_ns, 'time')}`);
        }
      }
      return lines.length === 0 ? null : [`${Math.round(x).toLocaleString('en-US')} /s`, ...lines];
    });
  }

  // The law over connections, with what was measured at each number of them.
  showLaw() {
    const curves = this.shown.filter((curve) => curve.usl !== null);
    const texts = this.shown.filter(({ usl_text: text }) => text.en !== '').map((curve) => element('p', { class: 'note' },
      element('b', {}, curve.subject), ` ${sayText(curve.usl_text)}`));
    const box = element('figure', {}, said('curves.law', 'figcaption'), element('div', { class: 'plot' }));
    byId('curve-law').replaceChildren(...texts, ...(curves.length === 0 ? [] : [box]));
    this.law = curves.length === 0 ? null : new Chart(box, 220, () => this.makeLaw(curves));
  }

  makeLaw(curves) {
    const end = 2 * Math.max(16, ...curves.map(({ usl }) => usl.peak ?? 0));
    const xs = Array.from({ length: 120 }, (_, index) => 1 + ((end - 1) * index) / 119);
    const rateAt = ({ lambda, sigma, kappa }, n) => (lambda * n) / (1 + sigma * (n - 1) + kappa * n * (n - 1));
    const axisIndex = this.data.sweep.findIndex(({ name }) => name === 'connections');
    const measured = curves.map((curve) => this.data.curves
      .filter((each) => axisIndex >= 0 && each.subject === curve.subject && each.workload === curve.workload)
      .map((each) => [Number(each.cell[axisIndex]), Math.max(...each.points.map((point) => point.achieved_per_s))]));
    return [{
      padding: [10, 14, 0, 0],
      scales: { x: { time: false }, y: { range: (plot, min, max) => [0, max * 1.08] } },
      axes: [axis({ size: 28, label: say('curves.connections') }), axis({ size: 52, values: (plot, splits) => splits.map(shortNumber) })],
      series: [{}, ...curves.map((curve) => line(this.colorOf(curve)))],
      cursor: { y: false, drag: { x: false, y: false } },
      hooks: {
        draw: [(plot) => onPlot(plot, (context, bounds, ratio) => curves.forEach((curve, index) => {
          context.fillStyle = this.colorOf(curve);
          for (const [n, rate] of measured[index]) {
            context.beginPath();
            context.arc(plot.valToPos(n, 'x', true), plot.valToPos(rate, 'y', true), MARK * ratio, 0, 7);
            context.fill();
          }
          if (curve.usl.peak !== null) {
            context.fillRect(plot.valToPos(curve.usl.peak, 'x', true), bounds.top, ratio, bounds.height);
          }
        }))],
        ...tooltipHooks(this.tooltip, (index) => [`${xs[index].toFixed(0)} ${say('curves.connections')}`,
          ...curves.map((curve) => `${curve.subject}: ${shortNumber(rateAt(curve.usl, xs[index]))}/s`)]),
      },
    }, [xs, ...curves.map(({ usl }) => xs.map((n) => rateAt(usl, n)))]];
  }
}

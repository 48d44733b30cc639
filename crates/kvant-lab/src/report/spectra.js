// Percentile spectra over each other, on the axis 1 / (1 - percentile).

import { themeColor } from '../front/colors.js';
import { byId, element, select } from '../front/controls.js';
import { amount } from '../front/format.js';
import { Chart, axis, decadeAxis, joined, line, onPlot, seriesColor, timeLabels, tooltipHooks } from './chart.js';
import { cellParts, onLanguageChange, say, sayName } from './say.js';

const SHOWN_MAX = 4;
// The seeds' rule: fewer samples than this above a percentile leave it to chance.
const FEW = 10;

// 1 is 0 %, 10 is 90 %, 100 is 99 %.
function percentileLabel(x) {
  const nines = Math.round(Math.log10(x));
  return nines === 0 ? '0 %' : nines === 1 ? '90 %' : nines === 2 ? '99 %' : `99.${'9'.repeat(nines - 2)} %`;
}

export class Spectra {
  constructor(data, tooltip) {
    Object.assign(this, { data, tooltip });
    this.whats = [...new Set(data.spectra.map(({ what }) => what))];
    this.what = this.whats[0];
    this.isLogarithmic = true;
    this.chosen = new Set(this.all.slice(0, SHOWN_MAX));
    this.chart = new Chart(byId('spectrum'), (width) => Math.max(300, Math.min(460, width * 0.45)), () => this.make());
    this.build();
    onLanguageChange(() => this.build());
  }

  // A colour belongs to a case.
  get all() {
    return this.data.spectra.filter(({ what }) => what === this.what);
  }

  colorOf(spectrum) {
    return seriesColor(this.all.indexOf(spectrum));
  }

  label({ case: id, step }) {
    const { subject, workload, phase, cell } = this.data.cases[id];
    return [subject, workload, phase, step, ...cellParts(this.data.sweep, cell)].filter((part) => part !== '').join(', ');
  }

  build() {
    byId('spectrum').replaceChildren(element('div', { class: 'plot' }));
    const tools = [select(say('spectra.scale'), [['log', say('scale.log')], ['linear', say('scale.linear')]], this.isLogarithmic ? 'log' : 'linear', (value) => {
      this.isLogarithmic = value === 'log';
      this.chart.draw();
    })];
    if (this.whats.length > 1) {
      tools.unshift(select(say('spectra.what'), this.whats.map((what) => [what, sayName('what', what)]), this.what, (what) => {
        const cases = new Set([...this.chosen].map(({ case: id, step }) => `${id} ${step}`));
        this.what = what;
        this.chosen = new Set(this.all.filter(({ case: id, step }) => cases.has(`${id} ${step}`)));
        this.build();
        this.chart.draw();
      }));
    }
    byId('spectrum-tools').replaceChildren(...tools);
    byId('spectrum-cases').replaceChildren(...this.all.map((spectrum) => {
      const input = element('input', { type: 'checkbox', checked: this.chosen.has(spectrum), change: ({ target }) => {
        this.chosen[target.checked ? 'add' : 'delete'](spectrum);
        this.chart.draw();
      } });
      return element('label', {}, input, element('i', { class: 'dot', style: `background: var(--series-${this.all.indexOf(spectrum) % 8})` }), this.label(spectrum));
    }));
  }

  make() {
    const shown = this.all.filter((spectrum) => this.chosen.has(spectrum) && spectrum.points.length > 1);
    if (shown.length === 0) {
      return [{ axes: [axis({}), axis({})], series: [{}, {}] }, [[], []]];
    }
    // Each as two lines: what many samples support, and the rest.
    const tables = shown.flatMap(({ points, count }) => {
      const few = count / FEW;
      const part = (isWanted) => {
        const kept = points.filter(isWanted);
        return [kept.map(([x]) => x), kept.map(([, ns]) => ns)];
      };
      const last = points.filter(([x]) => x <= few).at(-1)?.[0] ?? 1;
      return [part(([x]) => x <= few), part(([x]) => x >= last)];
    });
    const data = joined(tables);
    const few = Math.min(...shown.map(({ count }) => count / FEW));
    const end = Math.max(...shown.map(({ points }) => points.at(-1)[0]));
    return [{
      padding: [10, 18, 0, 0],
      scales: { x: { time: false, distr: 3, range: () => [1, end * 1.15] },
        y: this.isLogarithmic ? { distr: 3, range: (plot, min, max) => [min * 0.7, max * 1.5] } : { range: (plot, min, max) => [0, max * 1.05] } },
      axes: [
        axis({ size: 28, label: say('spectra.x'), splits: () => Array.from({ length: Math.ceil(Math.log10(end)) + 1 }, (_, index) => 10 ** index),
          filter: (plot, splits) => splits, values: (plot, splits) => splits.map(percentileLabel), space: 40 }),
        this.isLogarithmic ? decadeAxis({ size: 64 }) : axis({ size: 64, values: timeLabels }),
      ],
      series: [{}, ...shown.flatMap((spectrum) => [line(this.colorOf(spectrum), { width: 2.5 }), line(this.colorOf(spectrum), { width: 1, dash: [3, 3] })])],
      cursor: { y: false, drag: { x: false, y: false }, points: { size: 7 } },
      hooks: {
        drawClear: [(plot) => this.shade(plot, few)],
        ...tooltipHooks(this.tooltip, (index) => {
          const x = data[0][index];
          const lines = shown.map((spectrum) => [this.label(spectrum), spectrum.points.find(([at]) => at >= x)?.[1]])
            .filter(([, ns]) => ns !== undefined).map(([label, ns]) => `${amount(ns, 'time')}  ${label}`);
          return [`${Number((100 * (1 - 1 / x)).toFixed(Math.max(1, Math.ceil(Math.log10(x)))))} %`, ...lines];
        }),
      },
    }, data];
  }

  shade(plot, few) {
    onPlot(plot, (context, box, ratio) => {
      const x = plot.valToPos(few, 'x', true);
      context.fillStyle = themeColor('shade');
      context.fillRect(x, box.top, box.left + box.width - x, box.height);
      context.fillStyle = themeColor('faint');
      context.font = `${11 * ratio}px system-ui, sans-serif`;
      context.textBaseline = 'bottom';
      const text = say('spectra.few');
      const isInside = context.measureText(text).width + 12 * ratio < box.left + box.width - x;
      context.textAlign = isInside ? 'left' : 'right';
      context.fillText(text, isInside ? x + 6 * ratio : box.left + box.width - 4 * ratio, box.top + box.height - 4 * ratio);
    });
  }
}

// The time line of a case: rows over one time axis, and the selection that they share.

import { Frames, VIEWS, decodeRecording, eachSample } from '../front/data.js';
import { heatColor, onThemeChange, themeColor } from '../front/colors.js';
import { byId, element, select } from '../front/controls.js';
import { amount } from '../front/format.js';
import { Lanes } from '../front/lanes.js';
import { Chart, axis, line, roundTime, shortNumber } from './chart.js';
import { Flames } from './flames.js';
import { RANGE_PERCENTILES, columnsOf, figuresOf, snapped } from './ranges.js';
import { cellParts, onLanguageChange, said, say, sayText } from './say.js';
import { TimeMap } from './timemap.js';

const LATENCY_HEIGHT = 232;
const KIND_HEIGHT = 13;
const WAITS = ['contention', 'backpressure', 'io', 'scheduler'];
const CHART_HEIGHT = 74;
const SERIES_HEIGHT = 58;
const AXIS_HEIGHT = 22;
// Distances of labels on axes of bytes.
const BYTE_STEPS_UP = Array.from({ length: 46 }, (_, power) => 2 ** power);
// Columns of the maps of a recording.
const KIND_COLUMNS_MAX = 600;

export class Times {
  // `sources`: { lines: [{ index, decode }], recordings: Map of index to { decode, offsetUs,
  // factor }, leftOut: [time lines, recordings] }.
  constructor(sources, data, tooltip) {
    Object.assign(this, { sources, data, tooltip });
    this.rowsBox = byId('time-rows');
    this.selection = null;
    this.flames = new Flames(byId('flames'), tooltip);
    onLanguageChange(() => this.build());
    onThemeChange(() => this.draw());
    byId('time-rows').addEventListener('pointermove', (event) => this.showCrosshair(event));
    byId('time-rows').addEventListener('pointerleave', () => this.showCrosshair(null));
    byId('time-rows').addEventListener('keydown', (event) => {
      if (event.key === 'Escape' && this.selection !== null) {
        this.select(null);
      }
    });
  }

  // Opens the n-th time line, unless another one is asked for before it was decoded.
  async open(number) {
    this.wanted = number;
    const source = this.sources.lines[number];
    const recording = this.sources.recordings.get(source.index);
    const frames = new Frames();
    const line = await source.decode();
    const decoded = recording === undefined ? null : await decodeRecording(recording.text, frames);
    if (this.wanted !== number) {
      return;
    }
    this.number = number;
    this.line = line;
    this.offsetUs = recording?.offsetUs ?? 0;
    this.factor = recording?.factor ?? 1;
    this.lengthUs = Math.max(1, line.length_ns / 1e3);
    this.frames = frames;
    this.recording = decoded;
    this.flames.open(frames, decoded, line.recording === null ? 'flame.none' : 'flame.absent');
    this.selection = null;
    this.build();
    this.rowsBox.dataset.shown = String(number);
  }

  async openCase(id) {
    const number = this.sources.lines.findIndex((source) => source.case === id);
    if (number >= 0 && number !== this.wanted) {
      await this.open(number);
    }
  }

  labelOf(id) {
    const { subject, workload, phase, cell } = this.data.cases[id];
    return [subject, workload, phase, ...cellParts(this.data.sweep, cell)].join(', ');
  }

  // ---- Building.

  build() {
    this.buildTools();
    this.buildRows();
    this.flames.build();
    this.drawRows();
    // Draws the flame graph too.
    this.showSelection();
  }

  buildTools() {
    const field = (id, key) => element('input', { type: 'number', id, min: '0', step: 'any', 'aria-label': say(key), change: () => this.typeRange() });
    this.fromInput = field('time-from', 'times.from');
    this.toInput = field('time-to', 'times.to');
    this.whole = said('times.whole', 'button', { id: 'time-whole', click: () => this.select(null) });
    byId('time-tools').replaceChildren(
      select(say('times.case'), this.sources.lines.map((source, number) => [String(number), this.labelOf(source.case)]), String(this.number),
        (number) => this.open(Number(number))),
      element('span', { class: 'group' }, said('range.selected'), this.fromInput, '\u2013', this.toInput, 's'), this.whole);
    const [lines, recordings] = this.sources.leftOut;
    const parts = [[lines, 'times.left_out.lines'], [recordings, 'times.left_out.recordings']].filter(([count]) => count > 0);
    const notes = parts.length === 0 ? [] : [`${say('times.left_out')} ${parts.map(([count, key]) => `${say(key)}: ${count}`).join(', ')}; ${say('times.left_out.where')}`];
    if (this.factor > 1) {
      notes.push(`${say('times.thinned')}: ${this.factor}.`);
    }
    byId('time-left-out').textContent = notes.join(' ');
  }

  // A row: its title, labels at the left, and what is drawn.
  row(title, gutter, ...content) {
    const made = element('div', { class: 'row' }, element('div', { class: 'row-title' }, ...title),
      element('div', { class: 'map' }, element('div', { class: 'gutter', 'aria-hidden': 'true' }, ...gutter), element('div', { class: 'scroller' }, ...content)));
    return made;
  }

  buildRows() {
    this.maps = [];
    this.charts = [];
    this.readout = element('p', { id: 'readout', 'aria-live': 'polite' });
    this.band = [element('div', { class: 'dim' }), element('div', { class: 'dim' }), element('div', { class: 'edges' })];
    this.crosshair = element('div', { class: 'crosshair', hidden: true });
    this.rowsBox.replaceChildren(this.readout, this.latencyRow(), ...this.lanesRow(), this.rateRow(), this.backlogRow(), ...this.recordingRows(),
      ...this.seriesRows(), element('div', { class: 'over' }, ...this.band, this.crosshair));
  }

  latencyRow() {
    const { line } = this;
    const rows = Math.max(1, line.rows_ns.length - 1);
    const counts = line.columns.flatMap((column) => column.counts.map(([row]) => row));
    // Rows without requests above and below are left out.
    this.firstRow = counts.length === 0 ? 0 : counts.reduce((least, row) => Math.min(least, row), rows);
    const lastRow = counts.length === 0 ? rows - 1 : counts.reduce((most, row) => Math.max(most, row), 0);
    const shownRows = lastRow - this.firstRow + 1;
    const blockHeight = Math.max(3, Math.min(10, Math.round(LATENCY_HEIGHT / shownRows)));
    const canvas = element('canvas', { class: 'heat', id: 'latency', tabindex: '0', role: 'application', 'data-label': 'times.latency.aria', 'aria-label': say('times.latency.aria') });
    const map = new TimeMap(canvas, { rows: shownRows, blockHeight, isUpward: true, isLogarithmic: true }, this.mapHooks());
    const weights = new Float64Array(line.columns.length * shownRows);
    line.columns.forEach((column, index) => column.counts.forEach(([row, count]) => {
      weights[index * shownRows + row - this.firstRow] = count;
    }));
    map.setData(weights, [...line.columns.map((column) => column.start_ns / 1e3), this.lengthUs]);
    canvas.toggleAttribute('hidden', line.columns.length === 0);
    this.maps.push(map);
    this.latency = map;
    return this.row([said('times.latency', 'b'), this.legend(map)], this.latencyLabels(shownRows, blockHeight), canvas);
  }

  // Labels at powers of ten, and at the halves between them if there is room.
  latencyLabels(rows, blockHeight) {
    const bounds = this.line.rows_ns.slice(this.firstRow, this.firstRow + rows + 1);
    const labels = [];
    if (bounds.length < 2) {
      return labels;
    }
    const [low, high] = [Math.log(bounds[0]), Math.log(bounds.at(-1))];
    for (let power = 3; power < 12; power += 1) {
      const at = (Math.log(10 ** power) - low) / (high - low);
      if (at >= 0.01 && at <= 0.99) {
        labels.push(element('span', { class: 'tick', style: `top: ${(1 - at) * rows * blockHeight}px` }, roundTime(10 ** power)));
      }
    }
    return labels;
  }

  legend(map) {
    const stops = Array.from({ length: 9 }, (_, index) => index / 8);
    const ramp = element('i', { class: 'ramp' });
    const text = element('span', {});
    map.showLegend = (colorOf) => {
      ramp.style.background = `linear-gradient(to right, ${stops.map(colorOf).join(', ')})`;
      const [least, most] = [map.colors.valueAt(0), map.colors.valueAt(1)];
      text.textContent = map.unit === undefined ? `${shortNumber(Math.round(least))} \u2013 ${shortNumber(Math.round(most))} ${say('times.requests')}`
        : `${amount(least, map.unit)} \u2013 ${amount(most, map.unit)}`;
    };
    return element('span', { class: 'row-legend' }, element('i', { class: 'swatch', style: 'background: var(--zero)' }), said('times.zero'), ramp, text);
  }

  lanesRow() {
    const spans = this.line.lanes.flatMap(({ name, spans: of }) => of.map(([start, end, words]) => ({ kind: name, startUs: start / 1e3, endUs: end / 1e3,
      isOpen: false, fields: words === '' ? [] : [words] })));
    const canvas = element('canvas', { class: 'lanes' });
    this.lanes = new Lanes(canvas, { spans }, {
      onSelect: (fromUs, toUs) => this.select({ fromUs, toUs }),
      onHover: (span, event) => this.showSpan(span, event),
    });
    const labels = this.lanes.labels.map(({ text, y }) => element('span', { style: `top: ${y}px` }, text));
    return [this.row(spans.length === 0 ? [] : [said('times.events', 'b')], labels, canvas)];
  }

  rateRow() {
    const { columns } = this.line;
    const seconds = columns.map((column) => (column.end_ns - column.start_ns) / 1e9);
    const perSecond = (field) => columns.map((column, index) => column[field] / seconds[index]);
    // Columns without errors are gaps.
    const errors = columns.map((column, index) => (column.errors > 0 ? column.errors / seconds[index] : null));
    const lines = [['times.planned', 'planned', 'faint', { width: 1, dash: [4, 3] }], ['times.completed', 'completed', 'series-0', { width: 1.5 }],
      ['times.errors', 'errors', 'series-1', { width: 1.5, spanGaps: false, points: { show: true, size: 5 } }]].filter(([, field]) => field !== 'errors' || columns.some((column) => column.errors > 0));
    return this.chartRow([said('times.rate', 'b'), ...lines.map(([key, , color]) => this.key(key, color))], CHART_HEIGHT,
      lines.map(([, field, color, details]) => ({ values: field === 'errors' ? errors : perSecond(field), color, details })));
  }

  backlogRow() {
    const values = this.line.columns.map(({ backlog }) => backlog);
    return this.chartRow([said('times.backlog', 'b')], SERIES_HEIGHT, [{ values, color: 'series-3', isFilled: true }]);
  }

  key(word, color) {
    return element('span', { class: 'row-key' }, element('i', { class: 'stroke', style: `border-top: 2px solid var(--${color})` }), said(word));
  }

  // Lines over the columns' centres, or over `xs` in seconds.
  chartRow(title, height, lines, { show = shortNumber, incrs, hasAxis = false, xs = this.line.columns.map((column) => (column.start_ns + column.end_ns) / 2e9) } = {}) {
    const box = element('div', { class: 'chart' });
    const made = element('div', { class: 'row' }, element('div', { class: 'row-title' }, ...title), box);
    const chart = new Chart(box, height + (hasAxis ? AXIS_HEIGHT : 0), () => [{
      padding: [6, 0, hasAxis ? 0 : 6, 0],
      scales: { x: { time: false, range: () => [0, this.lengthUs / 1e6] }, y: { range: (plot, min, max) => [0, max > 0 ? max * 1.12 : 1] } },
      axes: [axis({ show: hasAxis, size: AXIS_HEIGHT, values: (plot, splits) => splits.map((value) => (value < this.lengthUs / 1e6 ? `${value} s` : '')) }),
        axis({ size: this.gutter, space: 24, gap: 4, ...(incrs === undefined ? {} : { incrs }), font: '11px system-ui, sans-serif', values: (plot, splits) => splits.map(show) })],
      series: [{}, ...lines.map(({ color, details, isFilled }) => ({ ...this.lineOf(color), ...details, ...(isFilled ? { fill: `${themeColor(color)}33` } : {}) }))],
      cursor: { x: false, y: false, points: { show: false }, drag: { x: true, y: false, setScale: false } },
      hooks: { setSelect: [(plot) => {
        if (plot.select.width > 0) {
          const at = (x) => Math.max(0, plot.posToVal(x, 'x') * 1e6);
          const range = { fromUs: at(plot.select.left), toUs: at(plot.select.left + plot.select.width) };
          plot.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          this.select(range);
        }
      }] },
    }, [xs, ...lines.map(({ values }) => values)]]);
    this.charts.push(chart);
    return made;
  }

  lineOf(color) {
    return line(themeColor(color), { width: 1.5 });
  }

  // ---- Rows of the recording: CPU and allocation by activity, waits by kind.

  recordingRows() {
    const { recording } = this;
    if (recording === null) {
      return [];
    }
    const byActivity = (view) => {
      const samples = recording.samples[view.kind];
      const kinds = recording.activities.filter((_, activity) => samples.activity.includes(activity));
      const rowOf = recording.activities.map((name) => kinds.indexOf(name));
      return { kinds, sources: [[view, (index) => rowOf[samples.activity[index]]]] };
    };
    const view = (id) => VIEWS.find((each) => each.id === id);
    const rows = [];
    for (const [key, id] of [['times.cpu', 'cpu'], ['times.alloc', 'alloc']]) {
      if (recording.has(view(id))) {
        rows.push(this.kindsRow(key, view(id).unit, byActivity(view(id))));
      }
    }
    const waits = WAITS.filter((id) => recording.has(view(id)));
    if (waits.length > 0) {
      rows.push(this.kindsRow('times.waits', 'time', { kinds: waits, sources: waits.map((id, row) => [view(id), () => row]) }));
    }
    return rows;
  }

  kindsRow(key, unit, { kinds, sources }) {
    const columns = Math.max(1, Math.min(KIND_COLUMNS_MAX, this.line.columns.length));
    const blockUs = this.lengthUs / columns;
    const weights = new Float64Array(columns * kinds.length);
    for (const [view, rowOf] of sources) {
      const { startUs, endUs } = this.recording.samples[view.kind];
      eachSample(this.recording, view, 0, Infinity, (index, weight) => {
        const start = startUs[index] + this.offsetUs;
        const end = Math.max(endUs[index] + this.offsetUs, start + 1);
        // A wait is spread over the blocks that it overlaps.
        for (let block = Math.max(0, Math.floor(start / blockUs)); block < columns && block * blockUs < end; block += 1) {
          const overlap = Math.min(end, (block + 1) * blockUs) - Math.max(start, block * blockUs);
          weights[block * kinds.length + rowOf(index)] += (weight * overlap) / (end - start);
        }
      });
    }
    const canvas = element('canvas', { class: 'heat', 'data-kinds': key });
    const map = new TimeMap(canvas, { rows: kinds.length, blockHeight: KIND_HEIGHT, isUpward: false, isLogarithmic: key !== 'times.cpu' }, this.mapHooks((block, place) =>
      `${kinds[block % kinds.length]}: ${amount(weights[block], unit)}${place}`));
    map.unit = unit;
    map.setData(weights, Array.from({ length: columns + 1 }, (_, index) => index * blockUs));
    this.maps.push(map);
    return this.row([said(key, 'b'), this.legend(map)], kinds.map((kind, row) => element('span', { style: `top: ${row * KIND_HEIGHT}px` }, kind)), canvas);
  }

  seriesRows() {
    const shows = { part: (value) => `${Math.round(100 * value)} %`, bytes: (value) => amount(value, 'bytes'), 'bytes/s': (value) => `${amount(value, 'bytes')}/s` };
    const show = (unit) => (value) => (shows[unit] ?? shortNumber)(value).replace(/\.0+(?= )/, '');
    const isShown = ({ points }) => points.some(([, value]) => value !== 0);
    const shown = this.line.series.filter(isShown);
    const rows = shown.map(({ title, unit, points, name }, index) => this.chartRow([element('b', { 'data-series': name }, sayText(title))], SERIES_HEIGHT,
      [{ values: points.map(([, value]) => value), color: 'series-0', isFilled: true }], { show: show(unit), incrs: unit.startsWith('bytes') ? BYTE_STEPS_UP : undefined,
        xs: points.map(([ns]) => ns / 1e9), hasAxis: index === shown.length - 1 }));
    const zero = this.line.series.filter((series) => !isShown(series)).map(({ title }) => sayText(title));
    return zero.length === 0 ? rows : [...rows, element('p', { class: 'note' }, said('times.zero_throughout'), `: ${zero.join('; ')}.`)];
  }

  // ---- Drawing.

  get gutter() {
    return innerWidth < 620 ? 62 : 84;
  }

  draw() {
    if (this.line !== undefined) {
      this.drawRows();
      this.flames.draw();
    }
  }

  drawRows() {
    const width = this.latency.canvas.parentElement.clientWidth;
    if (width === 0) {
      return;
    }
    for (const map of this.maps) {
      map.show(width);
      map.showLegend(heatColor);
    }
    this.lanes.draw(this.lengthUs, width, 1);
    this.charts.forEach((chart) => chart.draw());
    this.showBand();
  }

  mapHooks(describe) {
    return {
      onSelect: (map, fromUs, toUs) => this.select({ fromUs, toUs }),
      onPreview: (map, block) => {
        if (block === null) {
          this.readout.textContent = '';
          return;
        }
        const { fromUs, toUs } = map.spanOf(block, block);
        this.showReadout((fromUs + toUs) / 2, describe === undefined ? this.cellText(map, block) : describe(block, ''));
      },
    };
  }

  cellText(map, block) {
    const row = this.firstRow + (block % map.rows);
    const bounds = [this.line.rows_ns[row], this.line.rows_ns[row + 1]].map((ns) => amount(ns, 'time')).join(' \u2013 ');
    return `${map.weights[block].toLocaleString('en-US')} ${say('times.requests')} ${bounds}`;
  }

  showReadout(us, first) {
    const column = this.line.columns.find(({ start_ns: start, end_ns: end }) => start <= us * 1e3 && us * 1e3 < end);
    const parts = [`${(us / 1e6).toFixed(1)} s`, first];
    if (column !== undefined) {
      parts.push(`p50 ${amount(column.p50_ns, 'time')}, p99 ${amount(column.p99_ns, 'time')}, max ${amount(column.max_ns, 'time')}`,
        `${say('times.backlog')} ${Math.round(column.backlog).toLocaleString('en-US')}`);
    }
    const during = this.line.lanes.filter(({ spans }) => spans.some(([start, end]) => start <= us * 1e3 && us * 1e3 <= end)).map(({ name }) => name);
    this.readout.textContent = [...parts, during.join(', ')].filter((part) => part !== '').join('  \u00b7  ');
  }

  showSpan(span, event) {
    if (span === null) {
      this.tooltip.hide();
      return;
    }
    this.tooltip.show([`${span.kind}, ${amount((span.endUs - span.startUs) * 1e3, 'time')}`, `${say('times.from')} ${(span.startUs / 1e6).toFixed(2)} s`, ...span.fields],
      event.clientX, event.clientY);
  }

  showCrosshair(event) {
    const over = this.rowsBox.querySelector('.over');
    const bounds = over?.getBoundingClientRect();
    const isInside = event !== null && bounds !== undefined && event.clientX >= bounds.left && event.clientX <= bounds.right;
    if (this.crosshair !== undefined) {
      this.crosshair.hidden = !isInside;
      if (isInside) {
        this.crosshair.style.left = `${event.clientX - bounds.left}px`;
      }
    }
  }

  // ---- Selecting.

  typeRange() {
    const to = this.toInput.value === '' ? this.lengthUs : Number(this.toInput.value) * 1e6;
    const range = { fromUs: Number(this.fromInput.value) * 1e6, toUs: to };
    const isValid = range.fromUs < range.toUs;
    [this.fromInput, this.toInput].forEach((input) => input.setAttribute('aria-invalid', String(!isValid)));
    if (isValid) {
      this.select(range);
    }
  }

  // Ranges begin and end with columns.
  select(range) {
    this.selection = range === null ? null : snapped(this.line, range.fromUs, range.toUs);
    this.latency.draw();
    this.showSelection();
  }

  showSelection() {
    const { selection } = this;
    const shown = (us) => String(Number((us / 1e6).toFixed(3)));
    // The ends of the time line are placeholders.
    this.fromInput.value = selection === null || selection.fromUs === 0 ? '' : shown(selection.fromUs);
    this.toInput.value = selection === null || selection.toUs === this.lengthUs ? '' : shown(selection.toUs);
    this.fromInput.placeholder = '0';
    this.toInput.placeholder = shown(this.lengthUs);
    this.whole.disabled = selection === null;
    this.showBand();
    this.showFigures();
    if (this.recording !== null) {
      const at = (us) => Math.min(this.recording.durationUs, Math.max(0, us - this.offsetUs));
      this.flames.setRange(selection === null ? null : { fromUs: at(selection.fromUs), toUs: at(selection.toUs) });
    }
  }

  showBand() {
    const { selection } = this;
    const [before, after, edges] = this.band;
    this.band.forEach((each) => {
      each.hidden = selection === null;
    });
    if (selection !== null) {
      const part = (us) => (100 * us) / this.lengthUs;
      before.style.cssText = `left: 0; width: ${part(selection.fromUs)}%`;
      after.style.cssText = `left: ${part(selection.toUs)}%; right: 0`;
      edges.style.cssText = `left: ${part(selection.fromUs)}%; width: ${part(selection.toUs - selection.fromUs)}%`;
    }
  }

  showFigures() {
    const { line, selection } = this;
    const inside = selection === null ? line.columns : columnsOf(line, selection.fromUs, selection.toUs);
    const known = new Set(inside);
    const parts = [['range.selected', selection === null ? [] : inside], ['range.rest', selection === null ? [] : line.columns.filter((column) => !known.has(column))],
      ['range.whole', line.columns]];
    const heads = ['range.time', 'range.requests', 'range.rate', 'range.errors'].map((key) => said(key, 'th', { scope: 'col' }));
    const percentiles = RANGE_PERCENTILES.map((part) => element('th', { scope: 'col' }, `p${Number((100 * part).toFixed(1))}`));
    const rows = parts.map(([key, columns]) => {
      const { seconds, completed, errors, percentiles: values, maxNs } = figuresOf(line, columns);
      const cells = columns.length === 0 ? Array.from({ length: RANGE_PERCENTILES.length + 5 }, () => '\u2013') : [`${seconds.toFixed(1)} s`, completed.toLocaleString('en-US'), `${shortNumber(seconds > 0 ? completed / seconds : 0)}/s`, Math.round(errors).toLocaleString('en-US'),
        ...values.map((ns) => (ns === null ? '\u2013' : amount(ns, 'time'))), amount(maxNs, 'time')];
      const made = element('tr', { 'data-range': key }, said(key, 'th', { scope: 'row', class: 'words' }), ...cells.map((text) => element('td', { class: columns.length === 0 ? 'zero' : '' }, text)));
      // The exact figures, for programs.
      made.dataset.figures = JSON.stringify({ completed, errors, percentiles: values, maxNs });
      return made;
    });
    const events = selection === null ? [] : line.lanes.map(({ name, spans }) => [name, spans.filter(([start, end]) => start < selection.toUs * 1e3 && end > selection.fromUs * 1e3).length])
      .filter(([, count]) => count > 0).map(([name, count]) => `${name} ${count}`);
    byId('range').replaceChildren(element('div', { class: 'wide', tabindex: '0' }, element('table', {}, element('thead', {}, element('tr', {}, element('th', {}), ...heads, ...percentiles, element('th', { scope: 'col' }, 'max'))),
        element('tbody', {}, ...rows))),
      element('p', { class: 'note' }, ...(events.length === 0 ? [] : [said('range.events'), `: ${events.join(', ')}. `]), said(selection === null ? 'range.none' : 'range.note')));
  }
}

// Heat maps: blocks of time whose colours are their weights, and the selection of ranges in them.

import { eachSample } from './data.js';
import { heatColor, laneColor, themeColor } from './colors.js';

export const SCALES = [
  { id: 'second', title: '1 s', columnUs: 1e6, rows: 50, untilUs: 300e6, label: '20 ms' },
  { id: 'minute', title: '1 min', columnUs: 60e6, rows: 60, untilUs: 6 * 3600e6, label: '1 s' },
  { id: 'five', title: '5 min', columnUs: 300e6, rows: 60, untilUs: Infinity, label: '5 s' },
];

const BLOCK_HEIGHT = 5;
const COLUMN_MIN = 4;

export function scaleFor(durationUs) {
  return SCALES.find((scale) => durationUs <= scale.untilUs);
}

// The weight of each block. A wait is spread over the blocks that it overlaps. `isWanted` selects
// samples; null selects all.
export function blockWeights(recording, view, scale, isWanted) {
  const blockUs = scale.columnUs / scale.rows;
  const weights = new Float64Array(Math.max(1, Math.ceil(recording.durationUs / blockUs)));
  const last = weights.length - 1;
  const samples = recording.samples[view.kind];
  eachSample(recording, view, 0, Infinity, (index, weight) => {
    if (isWanted !== null && !isWanted(recording, samples, index)) {
      return;
    }
    const start = samples.startUs[index];
    const end = samples.endUs[index];
    const first = Math.min(last, Math.floor(start / blockUs));
    const final = Math.min(last, Math.floor(end / blockUs));
    if (first === final) {
      weights[first] += weight;
      return;
    }
    const perUs = weight / (end - start);
    for (let block = first; block <= final; block += 1) {
      const from = Math.max(start, block * blockUs);
      weights[block] += perUs * ((block === final ? end : (block + 1) * blockUs) - from);
    }
  });
  return weights;
}

// The scale from weights to colours, linear or logarithmic. If there are outliers, its top is the
// 99.5th percentile.
export function colorScale(weightLists, isLogarithmic) {
  const sorted = weightLists.flatMap((weights) => [...weights.filter((weight) => weight > 0)]).sort((a, b) => a - b);
  const most = sorted.at(-1) ?? 0;
  const common = sorted[Math.floor(sorted.length * 0.995)] ?? 0;
  const top = most > 2 * common && !isLogarithmic ? common : most;
  const bottom = isLogarithmic ? Math.max(sorted[Math.floor(sorted.length * 0.005)] ?? 1, top / 1e6) : 0;
  const partOf = (weight) => {
    const part = isLogarithmic ? Math.log(weight / bottom) / Math.log(top / bottom || 1) : weight / top;
    return Number.isFinite(part) ? Math.min(1, Math.max(0, part)) : 1;
  };
  const valueAt = (part) => (isLogarithmic ? bottom * (top / bottom) ** part : top * part);
  return { bottom, top, most, partOf, valueAt, isCut: most > top };
}

// Columns fill the space; if that makes them too narrow, the map scrolls.
export function columnWidth(durationUs, scale, spaceWidth) {
  const width = Math.floor(spaceWidth / Math.max(1, Math.ceil(durationUs / scale.columnUs)));
  return Math.max(COLUMN_MIN, width);
}

// A map in which ranges of time can be selected by pointer and keys. Blocks are numbered down the
// columns. Subclasses say where blocks are:
// - `columns`, `rows`, `columnWidth`, `blockHeight`, `count` (of blocks);
// - `paint()` draws all blocks on `image`;
// - `place(block)` is its left upper corner, `rowAt(y)` a row; `spanOf(first, last)` the time of
//   blocks, `outline(range)` a path around it; `steps` are the distances that arrow keys move.
export class HeatMap {
  // hooks: onSelect(map, fromUs, toUs, isSecond), onPreview(map, block or null, event).
  constructor(canvas, hooks) {
    Object.assign(this, { canvas, hooks });
    this.image = document.createElement('canvas');
    this.ranges = [];
    this.cursor = null;
    this.anchor = null;
    canvas.addEventListener('pointerdown', (event) => this.down(event));
    canvas.addEventListener('pointermove', (event) => this.move(event));
    canvas.addEventListener('pointerup', (event) => this.up(event));
    canvas.addEventListener('pointerleave', () => this.setCursor(null));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('contextmenu', (event) => event.ctrlKey && event.preventDefault());
  }

  get width() {
    return this.columns * this.columnWidth;
  }

  get height() {
    return this.rows * this.blockHeight;
  }

  // Empties the image for blocks; returns its context, in CSS pixels.
  clearImage() {
    const { image } = this;
    const ratio = devicePixelRatio;
    image.width = Math.round(this.width * ratio);
    image.height = Math.round(this.height * ratio);
    const context = image.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    return context;
  }

  // Selections are drawn over a copy of the image.
  draw() {
    const { canvas, image } = this;
    const ratio = devicePixelRatio;
    canvas.width = image.width;
    canvas.height = image.height;
    canvas.style.width = `${this.width}px`;
    canvas.style.height = `${this.height}px`;
    canvas.dataset.columns = this.columns;
    const context = canvas.getContext('2d');
    context.drawImage(image, 0, 0);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const selecting = this.anchor === null ? [] : [{ ...this.dragged(), name: '' }];
    const ranges = [...this.ranges, ...selecting];
    if (ranges.length > 0) {
      context.fillStyle = themeColor('page');
      context.globalAlpha = 0.62;
      context.fillRect(0, 0, this.width, this.height);
      context.globalAlpha = 1;
      const outlines = ranges.map((range) => this.outline(range));
      for (const path of outlines) {
        context.save();
        context.clip(path);
        context.drawImage(image, 0, 0, this.width, this.height);
        context.restore();
      }
      outlines.forEach((path, index) => this.drawOutline(context, path, ranges[index]));
    }
    if (this.cursor !== null) {
      context.strokeStyle = themeColor('text');
      context.lineWidth = 1.5;
      context.strokeRect(...this.place(this.cursor), this.columnWidth, this.blockHeight);
    }
  }

  drawOutline(context, path, { name, fromUs }) {
    context.strokeStyle = themeColor('text');
    context.lineWidth = 2;
    context.setLineDash(name === 'B' ? [5, 3] : []);
    context.stroke(path);
    context.setLineDash([]);
    if (name !== '') {
      const [x, y] = this.place(Math.floor(fromUs / this.blockUs));
      const top = Math.min(Math.max(0, y - 15), this.height - 15);
      context.fillStyle = themeColor('text');
      context.fillRect(x, top, 14, 14);
      context.fillStyle = themeColor('page');
      context.font = '600 11px system-ui, sans-serif';
      context.fillText(name, x + 3, top + 11);
    }
  }

  blockAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - bounds.left) / this.columnWidth);
    const row = this.rowAt(event.clientY - bounds.top);
    const block = Math.min(this.columns - 1, Math.max(0, column)) * this.rows + Math.min(this.rows - 1, Math.max(0, row));
    return Math.min(this.count - 1, block);
  }

  dragged() {
    return this.spanOf(Math.min(this.anchor, this.cursor), Math.max(this.anchor, this.cursor));
  }

  setCursor(block, event) {
    this.cursor = block;
    this.draw();
    this.hooks.onPreview(this, block, event);
  }

  down(event) {
    if (event.button !== 0) {
      return;
    }
    const block = this.blockAt(event);
    // Shift extends the last selection.
    this.anchor = event.shiftKey && this.latest !== undefined ? this.latest : block;
    this.isSecond = event.ctrlKey || event.metaKey;
    this.canvas.setPointerCapture(event.pointerId);
    this.setCursor(block, event);
  }

  move(event) {
    this.setCursor(this.blockAt(event), event);
  }

  up() {
    if (this.anchor !== null) {
      this.select(this.isSecond);
    }
  }

  select(isSecond) {
    const { fromUs, toUs } = this.dragged();
    this.latest = this.anchor;
    this.anchor = null;
    this.hooks.onSelect(this, fromUs, toUs, isSecond);
  }

  // Arrows move by a block, with Shift they select; Enter confirms the range, with Ctrl as the
  // second.
  key(event) {
    const { steps } = this;
    if (event.key in steps) {
      event.preventDefault();
      const from = this.cursor ?? 0;
      this.anchor = event.shiftKey ? (this.anchor ?? from) : null;
      this.setCursor(Math.min(this.count - 1, Math.max(0, from + steps[event.key])));
    } else if (event.key === 'Enter' && this.cursor !== null) {
      event.preventDefault();
      this.anchor ??= this.cursor;
      this.select(event.ctrlKey || event.metaKey);
    } else if (event.key === 'Escape' && this.anchor !== null) {
      event.stopPropagation();
      this.anchor = null;
      this.draw();
    }
  }
}

// A recording as a calendar: time runs down each column, then to the next.
export class Calendar extends HeatMap {
  constructor(canvas, recording, hooks) {
    super(canvas, hooks);
    this.recording = recording;
    this.blockHeight = BLOCK_HEIGHT;
  }

  get blockUs() {
    return this.scale.columnUs / this.scale.rows;
  }

  get rows() {
    return this.scale.rows;
  }

  get count() {
    return this.weights.length;
  }

  get steps() {
    return { ArrowUp: -1, ArrowDown: 1, ArrowLeft: -this.rows, ArrowRight: this.rows };
  }

  // isWanted: the test by which the weights' samples were selected, or null.
  show({ scale, weights, isWanted, colors, columnWidth }) {
    Object.assign(this, { scale, weights, isWanted, colors, columnWidth });
    this.columns = Math.ceil(weights.length / scale.rows);
    this.paint();
    this.draw();
  }

  paint() {
    const { columnWidth, weights } = this;
    const context = this.clearImage();
    const gap = columnWidth > 5 ? 1 : 0;
    const zero = themeColor('zero');
    for (let block = 0; block < weights.length; block += 1) {
      const [x, y] = this.place(block);
      context.fillStyle = weights[block] > 0 ? heatColor(this.colors.partOf(weights[block])) : zero;
      context.fillRect(x, y, columnWidth - gap, BLOCK_HEIGHT - gap);
    }
    this.paintSpans(context);
  }

  // Marks blocks during an event at their left edge, in the colour of its lane.
  paintSpans(context) {
    const width = Math.max(2, Math.min(4, this.columnWidth / 6));
    for (const span of this.recording.spans) {
      context.fillStyle = laneColor(span.kind);
      const final = Math.min(this.weights.length - 1, Math.floor(span.endUs / this.blockUs));
      for (let block = Math.floor(span.startUs / this.blockUs); block <= final; block += 1) {
        context.fillRect(...this.place(block), width, BLOCK_HEIGHT);
      }
    }
  }

  place(block) {
    return [Math.floor(block / this.rows) * this.columnWidth, (block % this.rows) * BLOCK_HEIGHT];
  }

  rowAt(y) {
    return Math.floor(y / BLOCK_HEIGHT);
  }

  spanOf(first, last) {
    return { fromUs: first * this.blockUs, toUs: (last + 1) * this.blockUs };
  }

  // The outline of a range: part of the first column, whole columns, part of the last.
  outline({ fromUs, toUs }) {
    const first = Math.floor(fromUs / this.blockUs);
    const last = Math.max(first, Math.min(this.weights.length, Math.ceil(toUs / this.blockUs)) - 1);
    const [x0, y0] = this.place(first);
    const [x1, y1] = this.place(last);
    const path = new Path2D();
    if (x0 === x1) {
      path.rect(x0, y0, this.columnWidth, y1 + BLOCK_HEIGHT - y0);
      return path;
    }
    const right = x1 + this.columnWidth;
    const corners = [[x0, y0], [x0 + this.columnWidth, y0], [x0 + this.columnWidth, 0], [right, 0], [right, y1 + BLOCK_HEIGHT], [x1, y1 + BLOCK_HEIGHT],
      [x1, this.height], [x0, this.height]];
    corners.forEach(([x, y]) => path.lineTo(x, y));
    path.closePath();
    return path;
  }

  // What a block's weight consists of: the number of samples, and of the heaviest function
  // `top`, [frame, weight], or null.
  contentOf(view, block) {
    const weights = new Map();
    let sampleCount = 0;
    const { nodes, samples } = this.recording;
    eachSample(this.recording, view, block * this.blockUs, (block + 1) * this.blockUs, (index, weight) => {
      if (this.isWanted !== null && !this.isWanted(this.recording, samples[view.kind], index)) {
        return;
      }
      const frame = nodes.frame[samples[view.kind].node[index]];
      weights.set(frame, (weights.get(frame) ?? 0) + weight);
      sampleCount += 1;
    });
    return { sampleCount, top: [...weights].sort((a, b) => b[1] - a[1])[0] ?? null };
  }
}

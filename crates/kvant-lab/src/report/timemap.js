// A heat map whose columns are intervals of time, and whose rows are values or kinds.

import { heatColor, themeColor } from '../front/colors.js';
import { HeatMap, colorScale } from '../front/heat.js';

const PALETTE_COUNT = 256;

// The bytes of colours from 0 to 1.
function palette() {
  const context = new OffscreenCanvas(PALETTE_COUNT, 1).getContext('2d', { willReadFrequently: true });
  for (let at = 0; at < PALETTE_COUNT; at += 1) {
    context.fillStyle = heatColor(at / (PALETTE_COUNT - 1));
    context.fillRect(at, 0, 1, 1);
  }
  return new Uint32Array(context.getImageData(0, 0, PALETTE_COUNT, 1).data.buffer);
}

function bytesOf(color) {
  const context = new OffscreenCanvas(1, 1).getContext('2d', { willReadFrequently: true });
  context.fillStyle = color;
  context.fillRect(0, 0, 1, 1);
  return new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0];
}

export class TimeMap extends HeatMap {
  // `isUpward`: row 0 is at the bottom.
  constructor(canvas, { rows, blockHeight, isUpward, isLogarithmic }, hooks) {
    super(canvas, hooks);
    Object.assign(this, { rows, blockHeight, isUpward, isLogarithmic });
  }

  // `weights` by column and row; `timesUs` are the columns' bounds, the last that of the time line.
  // Columns may have different lengths, and the first may begin late.
  setData(weights, timesUs) {
    this.weights = weights;
    this.timesUs = timesUs;
    this.columns = timesUs.length - 1;
    this.count = this.columns * this.rows;
    this.colors = colorScale([weights], this.isLogarithmic);
  }

  // `width`: of the whole time line.
  show(width) {
    this.wholeWidth = width;
    this.columnWidth = width / Math.max(1, this.columns);
    this.paint();
    this.draw();
  }

  get width() {
    return this.wholeWidth;
  }

  // The column at a part of the time line; -1 before the first.
  columnAt(part) {
    const us = part * this.timesUs.at(-1);
    let [low, high] = [0, this.columns];
    while (low < high) {
      const middle = (low + high) >> 1;
      [low, high] = this.timesUs[middle] <= us ? [middle + 1, high] : [low, middle];
    }
    return low - 1;
  }

  blockAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    return Math.max(0, this.columnAt((event.clientX - bounds.left) / this.width)) * this.rows + this.rowAt(event.clientY - bounds.top);
  }

  get steps() {
    const up = this.isUpward ? 1 : -1;
    return { ArrowUp: up, ArrowDown: -up, ArrowLeft: -this.rows, ArrowRight: this.rows };
  }

  // Cells in device pixels, so that columns of fractional width have no seams.
  paint() {
    this.clearImage();
    const context = this.image.getContext('2d');
    const { width, height } = this.image;
    const pixels = context.createImageData(width, height);
    const words = new Uint32Array(pixels.data.buffer);
    words.fill(bytesOf(themeColor('zero')));
    const colors = palette();
    const line = new Uint32Array(width);
    const columns = Int32Array.from({ length: width }, (_, x) => this.columnAt((x + 0.5) / width));
    let painted = -1;
    for (let y = 0; y < height; y += 1) {
      const row = this.rowAt(((y + 0.5) * this.height) / height);
      if (row !== painted) {
        painted = row;
        const zero = words[y * width];
        for (let x = 0; x < width; x += 1) {
          const weight = columns[x] < 0 ? 0 : this.weights[columns[x] * this.rows + row];
          line[x] = weight > 0 ? colors[Math.round(this.colors.partOf(weight) * (PALETTE_COUNT - 1))] : zero;
        }
      }
      words.set(line, y * width);
    }
    context.putImageData(pixels, 0, 0);
  }

  place(block) {
    const row = block % this.rows;
    const startUs = this.timesUs[Math.floor(block / this.rows)];
    return [(startUs / this.timesUs.at(-1)) * this.width, (this.isUpward ? this.rows - 1 - row : row) * this.blockHeight];
  }

  rowAt(y) {
    const row = Math.min(this.rows - 1, Math.max(0, Math.floor(y / this.blockHeight)));
    return this.isUpward ? this.rows - 1 - row : row;
  }

  spanOf(first, last) {
    const column = (block) => Math.floor(block / this.rows);
    const [a, b] = [column(first), column(last)].sort((x, y) => x - y);
    return { fromUs: this.timesUs[a], toUs: this.timesUs[b + 1] };
  }

  outline({ fromUs, toUs }) {
    const end = this.timesUs.at(-1);
    const path = new Path2D();
    path.rect((fromUs / end) * this.width, 0, ((toUs - fromUs) / end) * this.width, this.height);
    return path;
  }
}

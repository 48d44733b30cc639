// Activities of the engine and the server as bars along the heat map's time axis, and the axis.

import { laneColor, themeColor } from './colors.js';
import { element } from './controls.js';

const KINDS = ['flush', 'compaction', 'stall', 'fsync', 'overload'];
const BAR = 11;
const AXIS = 18;
const AXIS_STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400];

export class Lanes {
  // hooks: onSelect(fromUs, toUs, isSecond), onHover(span or null, event).
  constructor(canvas, recording, hooks) {
    Object.assign(this, { canvas, recording, hooks });
    this.lanes = arrange(recording.spans);
    canvas.addEventListener('mousemove', (event) => {
      const span = this.spanAt(event);
      canvas.style.cursor = span === undefined ? 'default' : 'pointer';
      hooks.onHover(span ?? null, event);
    });
    canvas.addEventListener('mouseleave', (event) => hooks.onHover(null, event));
    canvas.addEventListener('click', (event) => {
      const span = this.spanAt(event);
      if (span !== undefined) {
        hooks.onSelect(span.startUs, Math.max(span.endUs, span.startUs + 1), event.ctrlKey || event.metaKey);
      }
    });
  }

  // The lanes' names with their distances from the top.
  get labels() {
    return this.lanes.map((lane) => ({ text: lane.kind, y: lane.row * BAR }));
  }

  get axisTop() {
    return this.lanes.reduce((sum, lane) => sum + lane.rows.length, 0) * BAR + 2;
  }

  get height() {
    return this.axisTop + AXIS;
  }

  draw(columnUs, columnWidth, columns) {
    const { canvas } = this;
    const ratio = devicePixelRatio;
    const width = columns * columnWidth;
    this.pxPerUs = columnWidth / columnUs;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(this.height * ratio);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${this.height}px`;
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.bars = [];
    for (const lane of this.lanes) {
      context.fillStyle = themeColor('panel');
      context.fillRect(0, lane.row * BAR, width, lane.rows.length * BAR - 1);
      lane.rows.forEach((spans, index) => {
        for (const span of spans) {
          const x = span.startUs * this.pxPerUs;
          const bar = { span, x, y: (lane.row + index) * BAR, width: Math.max(2, (span.endUs - span.startUs) * this.pxPerUs) };
          context.fillStyle = laneColor(lane.kind);
          context.fillRect(bar.x, bar.y, bar.width, BAR - 1);
          this.bars.push(bar);
        }
      });
    }
    this.drawAxis(context, width);
  }

  drawAxis(context, width) {
    const columnS = 1 / (this.pxPerUs * 1e6);
    const step = AXIS_STEPS_S.find((candidate) => candidate / columnS >= 46) ?? AXIS_STEPS_S.at(-1);
    context.font = '11px system-ui, sans-serif';
    context.fillStyle = themeColor('faint');
    context.textBaseline = 'top';
    for (let time = 0; time / columnS <= width; time += step) {
      const x = time / columnS;
      context.fillRect(x, this.axisTop, 1, 4);
      const text = timeLabel(time, step);
      if (x + context.measureText(text).width + 3 < width) {
        context.fillText(text, x + 3, this.axisTop + 3);
      }
    }
  }

  spanAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const y = event.clientY - bounds.top;
    // Two pixels of tolerance, as many bars are that narrow.
    return this.bars?.find((bar) => x >= bar.x - 2 && x < bar.x + bar.width + 2 && y >= bar.y && y < bar.y + BAR)?.span;
  }
}

function timeLabel(time, step) {
  if (step < 60) {
    return `${time} s`;
  }
  return step < 3600 ? `${time / 60} min` : `${time / 3600} h`;
}

// Assigns spans to lanes by kind. Overlapping spans of a kind get separate rows.
function arrange(spans) {
  const kinds = [...KINDS, ...spans.map((span) => span.kind)].filter((kind, index, all) => all.indexOf(kind) === index);
  const lanes = [];
  let row = 0;
  for (const kind of kinds) {
    const rows = [];
    const ofKind = spans.filter((span) => span.kind === kind).sort((a, b) => a.startUs - b.startUs);
    for (const span of ofKind) {
      const free = rows.find((placed) => placed.at(-1).endUs <= span.startUs);
      if (free === undefined) {
        rows.push([span]);
      } else {
        free.push(span);
      }
    }
    if (rows.length > 0) {
      lanes.push({ kind, row, rows });
      row += rows.length;
    }
  }
  return lanes;
}

// Labels the space left of a heat map: times within a column, and the lanes' names below.
export function showGutter(gutter, heat, lanes) {
  const { scale, height, blockUs } = heat;
  const [unit, factor] = scale.id === 'second' ? ['ms', 1e3] : ['s', 1e6];
  const label = (text, y) => element('span', { style: `top: ${y}px` }, text);
  const rows = [0, 1, 2, 3, 4].map((fifth) => label(`${((fifth * scale.rows) / 5) * (blockUs / factor)} ${unit}`, (fifth * height) / 5));
  gutter.replaceChildren(...rows, ...lanes.labels.map(({ text, y }) => label(text, height + y)));
}

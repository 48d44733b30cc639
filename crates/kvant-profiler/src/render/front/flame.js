// A flame graph on a canvas: layout, drawing, zoom, keyboard focus. Hooks supply texts and colours
// of nodes.

import { shortName } from './format.js';
import { themeColor } from './colors.js';

const BOX_HEIGHT = 19;
// The band at the upper edge of a box with frames folded above it.
const FOLD_HEIGHT = 3;
const NARROWEST = 0.4;
const CANVAS_HEIGHT_MAX = 16000;

export class FlameGraph {
  // hooks: colorOf(node) -> colour, isNew(node), isNoise(node), describe(node) -> [title,
  // ...lines], onZoom(node), onRemove(frame).
  constructor(canvas, frames, tooltip, hooks) {
    Object.assign(this, { canvas, frames, tooltip, hooks });
    this.root = null;
    this.zoomed = null;
    this.focused = null;
    this.isRootAtBottom = false;
    this.isByWeight = false;
    this.leastPart = 0;
    this.isMatching = null;
    this.widths = new Map();
    canvas.addEventListener('mousemove', (event) => this.hover(event));
    canvas.addEventListener('mouseleave', () => this.setFocus(null));
    canvas.addEventListener('click', (event) => this.click(event));
    canvas.addEventListener('keydown', (event) => this.key(event));
    canvas.addEventListener('blur', () => this.setFocus(null));
  }

  // Shows a new tree. The zoom is kept as far as the new tree has the same path.
  show(root) {
    const path = this.zoomed === null ? [] : pathOf(this.zoomed);
    this.root = root;
    this.focused = null;
    this.zoomed = root;
    for (const frame of path) {
      const next = [...this.zoomed.children.values()].find((child) => child.frame === frame && child.total > 0);
      if (next === undefined) {
        break;
      }
      this.zoomed = next;
    }
    this.draw();
    this.hooks.onZoom(this.zoomed);
  }

  zoom(node) {
    this.zoomed = node;
    this.draw();
    this.hooks.onZoom(node);
  }

  click(event) {
    const node = this.nodeAt(event) ?? this.zoomed;
    if (event.altKey && node.frame >= 0) {
      this.hooks.onRemove(node.frame);
    } else {
      this.zoom(node);
    }
  }

  nameOf(node) {
    return node.frame < 0 ? 'all' : this.frames.names[node.frame];
  }

  // Children sorted by name, so that functions keep their places when the range changes; or
  // heaviest first.
  sorted(node) {
    const byName = (a, b) => (this.nameOf(a) < this.nameOf(b) ? -1 : 1);
    node.sorted ??= [...node.children.values()].sort((a, b) => (this.isByWeight && b.total - a.total) || byName(a, b));
    return node.sorted;
  }

  isMatch(node) {
    return this.isMatching !== null && node.frame >= 0 && (node.hasFoldedMatch || this.isMatching(node.frame));
  }

  // The matching boxes, heaviest first.
  matches() {
    const found = [];
    const open = [this.root];
    while (open.length > 0) {
      const node = open.pop();
      if (this.isMatch(node) && node.total > 0) {
        found.push(node);
      }
      open.push(...node.children.values());
    }
    return found.sort((a, b) => b.total - a.total);
  }

  // Brings a node's box into view, changing the zoom if it is not drawn.
  reveal(node) {
    const box = () => this.boxes.find((candidate) => candidate.node === node);
    for (const zoomed of [this.root, node]) {
      if (box() === undefined) {
        this.zoom(zoomed);
      }
    }
    this.focusBox(box());
  }

  focusBox({ node, level, x, width }) {
    let bounds = this.canvas.getBoundingClientRect();
    const top = bounds.top + this.top(level);
    if (top < BOX_HEIGHT || top > innerHeight - 5 * BOX_HEIGHT) {
      scrollBy(0, top - innerHeight / 2);
      bounds = this.canvas.getBoundingClientRect();
    }
    this.setFocus(node, bounds.left + x + Math.min(width / 2, 200), bounds.top + this.top(level) + BOX_HEIGHT);
  }

  layout(width) {
    this.boxes = [];
    for (let node = this.zoomed; node !== null; node = node.parent) {
      this.boxes.push({ node, level: node.depth, x: 0, width });
    }
    this.levels = this.zoomed.depth + 1;
    const scale = this.zoomed.total > 0 ? width / this.zoomed.total : 0;
    const least = Math.max(NARROWEST, this.leastPart * width);
    const place = (node, start) => {
      let x = start;
      for (const child of this.sorted(node)) {
        const childWidth = child.total * scale;
        if (childWidth >= least && child.depth < CANVAS_HEIGHT_MAX / BOX_HEIGHT) {
          this.boxes.push({ node: child, level: child.depth, x, width: childWidth });
          this.levels = Math.max(this.levels, child.depth + 1);
          place(child, x);
        }
        x += childWidth;
      }
    };
    place(this.zoomed, 0);
  }

  draw() {
    const { canvas } = this;
    const width = canvas.parentElement.clientWidth;
    if (this.root === null || width === 0) {
      return;
    }
    this.layout(width);
    const ratio = devicePixelRatio;
    canvas.style.height = `${this.levels * BOX_HEIGHT}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(this.levels * BOX_HEIGHT * ratio);
    const context = canvas.getContext('2d');
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.textBaseline = 'middle';
    for (const box of this.boxes) {
      this.drawBox(context, box);
    }
  }

  drawBox(context, { node, level, x, width }) {
    const y = this.top(level);
    const isMatch = this.isMatch(node);
    const inner = width > 3 ? width - 1 : width;
    context.clearRect(x, y, inner, BOX_HEIGHT - 1);
    context.globalAlpha = level < this.zoomed.depth ? 0.55 : 1;
    context.fillStyle = this.hooks.colorOf(node);
    context.fillRect(x, y, inner, BOX_HEIGHT - 1);
    if (this.hooks.isNew(node) && width > 3) {
      hatch(context, x, y, inner);
    }
    if (node.folded > 0 && width > 3) {
      context.fillStyle = themeColor('fold');
      context.fillRect(x, y, inner, FOLD_HEIGHT);
    }
    const isFaded = this.isMatching === null ? this.hooks.isNoise(node) : !isMatch;
    if (isFaded) {
      context.globalAlpha = 0.6;
      context.fillStyle = themeColor('page');
      context.fillRect(x, y, inner, BOX_HEIGHT - 1);
    }
    context.globalAlpha = 1;
    if (isMatch || node === this.focused) {
      context.strokeStyle = themeColor('text');
      context.lineWidth = node === this.focused ? 2 : 1;
      context.strokeRect(x + 0.5, y + 0.5, Math.max(inner - 1, 0.5), BOX_HEIGHT - 2);
    }
    if (width > 24) {
      context.font = `${2 * node.inlined > node.total + node.baseTotal ? 'italic ' : ''}${isMatch ? '600 ' : ''}12px system-ui, sans-serif`;
      context.fillStyle = themeColor('text');
      // Labels are cut by the mean width of their letters; the last argument compresses those that
      // are still too wide.
      context.fillText(this.label(context, node, width - 7), x + 3, y + BOX_HEIGHT / 2, width - 6);
    }
  }

  top(level) {
    return (this.isRootAtBottom ? this.levels - 1 - level : level) * BOX_HEIGHT;
  }

  // The longest form of the name that fits: whole, short, or cut with an ellipsis.
  label(context, node, space) {
    const name = this.nameOf(node);
    const short = shortName(name);
    for (const text of [name, short]) {
      if (this.textWidth(context, text) <= space) {
        return text;
      }
    }
    const letters = Math.floor((short.length * space) / this.textWidth(context, short)) - 1;
    return letters > 1 ? `${short.slice(0, letters)}\u2026` : '';
  }

  textWidth(context, text) {
    const key = context.font + text;
    let width = this.widths.get(key);
    if (width === undefined) {
      width = context.measureText(text).width;
      this.widths.set(key, width);
    }
    return width;
  }

  nodeAt(event) {
    const bounds = this.canvas.getBoundingClientRect();
    const x = event.clientX - bounds.left;
    const row = Math.floor((event.clientY - bounds.top) / BOX_HEIGHT);
    const level = this.isRootAtBottom ? this.levels - 1 - row : row;
    return this.boxes?.find((box) => box.level === level && x >= box.x && x < box.x + box.width)?.node ?? null;
  }

  hover(event) {
    const node = this.nodeAt(event);
    this.canvas.style.cursor = node === null ? 'default' : 'pointer';
    this.setFocus(node, event.clientX, event.clientY);
  }

  setFocus(node, x = 0, y = 0) {
    if (node !== this.focused) {
      const changed = [this.focused, node];
      this.focused = node;
      const context = this.canvas.getContext('2d');
      this.boxes?.filter((box) => changed.includes(box.node)).forEach((box) => this.drawBox(context, box));
    }
    if (node === null) {
      this.tooltip.hide();
    } else {
      this.tooltip.show(this.hooks.describe(node), x, y);
    }
  }

  // Up and down follow the drawing: towards the root or away from it.
  key(event) {
    const at = this.focused ?? this.zoomed;
    const shown = new Set(this.boxes.map((box) => box.node));
    const siblings = at.parent === null ? [at] : this.sorted(at.parent).filter((node) => shown.has(node));
    const place = siblings.indexOf(at);
    const away = this.sorted(at).filter((node) => shown.has(node)).sort((a, b) => b.total - a.total)[0];
    const moves = {
      ArrowLeft: siblings[place - 1],
      ArrowRight: siblings[place + 1],
      [this.isRootAtBottom ? 'ArrowDown' : 'ArrowUp']: at.parent,
      [this.isRootAtBottom ? 'ArrowUp' : 'ArrowDown']: this.focused === null ? at : away,
    };
    if (event.key in moves) {
      event.preventDefault();
      const node = moves[event.key];
      if (node) {
        this.focusBox(this.boxes.find((candidate) => candidate.node === node));
      }
    } else if (event.key === 'Enter' || event.key === ' ') {
      event.preventDefault();
      this.zoom(at);
    } else if (event.key === 'Delete' && at.frame >= 0) {
      this.hooks.onRemove(at.frame);
    }
  }
}

function pathOf(node) {
  const path = [];
  for (let at = node; at.parent !== null; at = at.parent) {
    path.unshift(at.frame);
  }
  return path;
}

function hatch(context, x, y, width) {
  context.save();
  context.beginPath();
  context.rect(x, y, width, BOX_HEIGHT - 1);
  context.clip();
  context.strokeStyle = themeColor('page');
  context.globalAlpha = 0.5;
  context.lineWidth = 2;
  context.beginPath();
  for (let at = x - BOX_HEIGHT; at < x + width; at += 9) {
    context.moveTo(at, y + BOX_HEIGHT);
    context.lineTo(at + BOX_HEIGHT, y);
  }
  context.stroke();
  context.restore();
}

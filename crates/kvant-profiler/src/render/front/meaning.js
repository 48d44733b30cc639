// The meaning of flame graph boxes: colours and descriptions.

import { NOT_SAMPLED, ORIGINS } from './data.js';
import { amount, percent, rate } from './format.js';
import { changeColor, newColor, originColor } from './colors.js';
import { element } from './controls.js';
import { phrase } from './phrase.js';

// Smaller relative changes are shown as no change.
const SAME = 0.05;
// A difference of fewer standard deviations may be due to chance.
const NOISE_DEVIATIONS = 2;
const MEANINGS = {
  request: 'width: B; colour: how the amount per request changed',
  second: 'width: B; colour: how the amount per second changed',
  total: 'width: B; colour: how the share of the total changed',
};
const ORIGIN_TEXTS = ["Kvant's own", 'std and libraries', 'kernel', 'C', 'unknown', 'thread, activity', 'lock or queue waited for'];

export class Meaning {
  // `comparison`: null, or { by: request, second or total, norms: [of A, of B] by which amounts are
  // divided }.
  constructor(frames, view, root, isReversed, comparison) {
    Object.assign(this, { frames, view, root, isReversed, comparison });
    if (comparison !== null) {
      this.norms = comparison.by === 'total' ? [root.baseTotal || 1, root.total || 1] : comparison.norms;
    }
  }

  isNew(node) {
    return this.comparison !== null && node.baseTotal === 0;
  }

  // Whether the difference may be due to chance. Samples are random: the variance of a sum is about
  // the sum of the squares of their weights.
  isNoise(node) {
    if (this.comparison === null || node.samples + node.baseSamples === 0) {
      return false;
    }
    const [base, now] = this.norms;
    const difference = node.total / now - node.baseTotal / base;
    return Math.abs(difference) < NOISE_DEVIATIONS * Math.sqrt(node.square / now ** 2 + node.baseSquare / base ** 2);
  }

  isInlined(node) {
    return 2 * node.inlined > node.total + node.baseTotal;
  }

  colorOf(node) {
    const { frames } = this;
    if (this.comparison !== null) {
      return this.isNew(node) ? newColor() : changeColor(this.change(node));
    }
    return node.frame < 0 ? originColor(5, '', false) : originColor(frames.origins[node.frame], frames.names[node.frame], this.isInlined(node));
  }

  // From -1 (gone) to 1 (many times as much).
  change(node) {
    const base = node.baseTotal / this.norms[0];
    const now = node.total / this.norms[1];
    const change = (now - base) / Math.max(now, base);
    return Math.abs(change) < SAME ? 0 : change;
  }

  // A title and lines.
  describe(node) {
    const { frames, root } = this;
    const lines = [];
    if (node.frame >= 0) {
      lines.push(this.placeOf(node));
    }
    if (node.folded > 0) {
      lines.push(node.folded === 1 ? phrase('1 frame of libraries folded between this function and its caller')
        : phrase('up to {0} frames of libraries folded between this function and its caller', node.folded));
    }
    if (this.comparison === null) {
      lines.push(this.weights(node.total, node.self, root.total));
    } else {
      lines.push(`A: ${this.weights(node.baseTotal, node.baseSelf, root.baseTotal)}`);
      lines.push(`B: ${this.weights(node.total, node.self, root.total)}`);
      lines.push(this.changeText(node));
      const counts = phrase('{0} and {1} samples', node.baseSamples.toLocaleString('en-US'), node.samples.toLocaleString('en-US'));
      lines.push(this.isNoise(node) ? phrase('within the noise of {0}', counts) : counts);
    }
    return [node.frame < 0 ? 'all' : frames.names[node.frame], ...lines];
  }

  placeOf(node) {
    const { names, files, origins } = this.frames;
    if (names[node.frame] === NOT_SAMPLED) {
      return phrase('CPU time of the process, as the kernel accounts it, that no sample accounts for');
    }
    const file = files[node.frame];
    return `${file === '' ? '' : `${file}${lineOf(node)}, `}${phrase(ORIGINS[origins[node.frame]])}${this.isInlined(node) ? `, ${phrase('inlined')}` : ''}`;
  }

  weights(total, self, whole) {
    const { unit } = this.view;
    const text = `${amount(total, unit)} (${percent(total, whole)})`;
    // In a reversed graph only the root level has a meaningful self weight.
    return this.isReversed ? text : phrase('{0}, self {1}', text, `${amount(self, unit)} (${percent(self, whole)})`);
  }

  changeText(node) {
    const base = node.baseTotal / this.norms[0];
    const now = node.total / this.norms[1];
    const { by } = this.comparison;
    const shown = (value) => (by === 'total' ? percent(value, 1) : by === 'second' ? rate(value, this.view.unit) : amount(value, this.view.unit));
    const factor = base === 0 ? phrase('new') : phrase('{0} times', (now / base).toFixed(2));
    return `${shown(base)} \u2192 ${shown(now)}: ${factor}`;
  }

  legend() {
    const swatch = (color, text) => element('span', {}, element('span', { class: 'swatch', style: `background: ${color}` }), text);
    const inlined = element('span', {}, element('i', {}, phrase('italic')), `: ${phrase('inlined')}`);
    if (this.comparison !== null) {
      const changes = [[1, 'more than in A'], [0.4, 'a little more'], [0, 'the same'], [-0.4, 'a little less'], [-0.9, 'less']];
      const meaning = MEANINGS[this.comparison.by];
      return [...changes.map(([change, text]) => swatch(changeColor(change), phrase(text))), swatch(newColor(), phrase('new: not in A (hatched)')),
        element('span', {}, phrase('faded: may be due to chance')),
        inlined,
        element('span', {}, phrase(meaning))];
    }
    const isPresent = (origin) => origin < 4 || this.frames.origins.includes(origin);
    return [...ORIGIN_TEXTS.map((text, origin) => [text, origin]).filter(([, origin]) => isPresent(origin))
      .map(([text, origin]) => swatch(originColor(origin, '', false), phrase(text))), inlined];
  }
}

// The line of a node; of several lines the heaviest.
function lineOf(node) {
  if (node.lines === null) {
    return node.line > 0 ? `:${node.line}` : '';
  }
  const [line] = [...node.lines].sort((a, b) => b[1] - a[1])[0];
  return phrase(':{0} and {1} other lines', line, node.lines.size - 1);
}

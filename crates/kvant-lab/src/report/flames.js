// The flame graph of a range of a recording, and how the range differs from the rest.

import { Frames, OWN, VIEWS } from '../front/data.js';
import { amount, percent, perSecond } from '../front/format.js';
import { ownTree, wholeTree } from '../front/fold.js';
import { frameMatcher, notSampledFrame, sampleTest, weightOf } from '../front/search.js';
import { buildTree } from '../front/tree.js';
import { element } from '../front/controls.js';
import { FlameGraph } from '../front/flame.js';
import { Meaning } from '../front/meaning.js';
import { said, say, sayName } from './say.js';

export class Flames {
  constructor(box, tooltip) {
    Object.assign(this, { box, tooltip, recording: null, view: VIEWS[0], isDifference: false, isOwnOnly: true, query: '', range: null });
  }

  // What `build` and `draw` show. `recording`: null without one, for the reason `why` (a key of the
  // words). Its whole range is chosen.
  open(frames, recording, why) {
    Object.assign(this, { frames: frames ?? new Frames(), recording, why, range: null });
    this.trees = new Map();
  }

  build() {
    if (this.recording === null) {
      this.box.replaceChildren(said('flame', 'h3'), said(this.why, 'p', { class: 'note' }));
      return;
    }
    const canvas = element('canvas', { id: 'flame', tabindex: '0', role: 'application', 'data-label': 'flame.aria', 'aria-label': say('flame.aria') });
    this.views = VIEWS.filter((view) => this.recording.has(view));
    this.view = this.views.find(({ id }) => id === this.view.id) ?? this.views[0] ?? VIEWS[0];
    this.viewBox = element('div', { class: 'tabs' });
    this.modeBox = element('div', { class: 'tabs' });
    this.summary = element('p', { id: 'flame-summary', 'aria-live': 'polite' });
    this.legend = element('p', { class: 'legend' });
    this.matched = element('output', {});
    const search = element('input', { type: 'search', id: 'flame-search', value: this.query, placeholder: say('flame.search'), 'data-label': 'flame.search',
      'aria-label': say('flame.search'), input: () => {
        this.query = search.value;
        this.draw();
      } });
    const own = element('input', { type: 'checkbox', checked: this.isOwnOnly, change: () => {
      this.isOwnOnly = own.checked;
      this.draw();
    } });
    this.unzoom = said('flame.unzoom', 'button', { click: () => this.graph.zoom(this.graph.root) });
    this.graph = new FlameGraph(canvas, this.frames, this.tooltip, {
      colorOf: (node) => this.meaning.colorOf(node),
      isNew: (node) => this.meaning.isNew(node),
      isNoise: (node) => this.meaning.isNoise(node),
      describe: (node) => this.meaning.describe(node),
      onZoom: () => {
        this.unzoom.disabled = this.graph.zoomed === this.graph.root;
      },
      onRemove: () => {},
    });
    canvas.addEventListener('keydown', (event) => event.key === 'Escape' && this.graph.zoom(this.graph.root));
    this.box.replaceChildren(said('flame', 'h3'),
      element('div', { class: 'toolbar' }, this.viewBox, this.modeBox),
      element('div', { class: 'toolbar' }, search, this.matched, element('label', {}, own, ' ', said('flame.own')), this.unzoom),
      this.summary, element('div', { class: 'graph' }, canvas), this.legend);
  }

  setRange(range) {
    this.range = range;
    this.draw();
  }

  showButtons() {
    const { recording } = this;
    this.viewBox.replaceChildren(...this.views.map((view) => element('button', { 'data-view': view.id, 'aria-pressed': String(view === this.view), click: () => {
      this.view = view;
      this.draw();
    } }, sayName('view', view.id), element('small', {}, amount(weightOf({ recording, ...(this.range ?? { fromUs: 0, toUs: Infinity }) }, view, null), view.unit)))));
    const mode = (isDifference, key) => said(key, 'button', { 'aria-pressed': String(this.isDifference === isDifference),
      disabled: isDifference && this.range === null, 'data-mode': isDifference ? 'difference' : 'range', click: () => {
        this.isDifference = isDifference;
        this.draw();
      } });
    this.modeBox.replaceChildren(mode(false, 'flame.range'), mode(true, 'flame.difference'));
  }

  // The ranges of the graph: the rest is the base of a difference.
  get ranges() {
    const { recording } = this;
    const end = recording.durationUs;
    const { fromUs, toUs } = this.range ?? { fromUs: 0, toUs: end };
    const rest = this.isDifference && this.range !== null ? [[0, fromUs], [toUs, end]].filter(([from, to]) => to > from) : [];
    return [...rest.map(([from, to]) => ({ recording, fromUs: from, toUs: to, isBase: true })), { recording, fromUs, toUs }];
  }

  tree() {
    if (!this.trees.has(this.isOwnOnly)) {
      const isFolded = this.isOwnOnly && this.frames.origins.includes(OWN);
      this.trees.set(this.isOwnOnly, isFolded ? ownTree(this.frames, this.recording) : wholeTree(this.recording));
    }
    return this.trees.get(this.isOwnOnly);
  }

  draw() {
    if (this.recording === null) {
      return;
    }
    this.showButtons();
    const { frames, view, recording } = this;
    const isMatching = frameMatcher(frames, this.query);
    // Waits for a processor have no stacks.
    const roots = view.id === 'scheduler' ? 'thread' : 'none';
    const options = { roots, hasLines: false, hasNames: true, isReversed: false, isWanted: () => true };
    const ranges = this.ranges.map((range) => ({ ...range, tree: this.tree(), foldedMatches: null,
      notSampled: { frame: notSampledFrame(frames), weight: recording.notSampled(view, range.fromUs, range.toUs) } }));
    const root = buildTree(frames, view, ranges, options);
    const lengthS = (isBase) => ranges.filter((range) => Boolean(range.isBase) === isBase).reduce((sum, { fromUs, toUs }) => sum + (toUs - fromUs) / 1e6, 0);
    const isComparing = ranges.length > 1;
    this.meaning = new Meaning(frames, view, root, false, isComparing ? { by: 'second', norms: [lengthS(true), lengthS(false)] } : null);
    this.graph.isMatching = isMatching;
    this.graph.show(root);
    this.legend.replaceChildren(...this.meaning.legend());
    const part = (name, weight, seconds) => `${name} ${seconds.toFixed(2)} s: ${amount(weight, view.unit)} (${perSecond(weight, view, seconds)})`;
    const texts = isComparing ? [part(`A, ${say('range.rest')}`, root.baseTotal, lengthS(true)), part(`B, ${say('range.selected')}`, root.total, lengthS(false))]
      : [part(say(this.range === null ? 'range.whole' : 'range.selected'), root.total, lengthS(false))];
    this.summary.textContent = texts.join('; ');
    // The exact weights, for programs.
    this.summary.dataset.weights = JSON.stringify(isComparing ? [root.baseTotal, root.total] : [root.total]);
    const matching = isMatching === null ? null : sampleTest(frames, [recording], isMatching, options);
    const range = ranges.at(-1);
    this.matched.textContent = matching === null ? '' : percent(weightOf(range, view, matching), root.total);
  }
}

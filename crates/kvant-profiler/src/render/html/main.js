// The page: the user's choices, and what to redraw when they change.
//
// Two ranges of time can be selected, A and B. With A alone the graph shows A; with both it
// compares B with A. On a page of two recordings, A is a range of the first and B of the second,
// and the graph always compares.

import { Frames, OWN, VIEWS, decodeRecording } from '../front/data.js';
import { amount, percent } from '../front/format.js';
import { foldedMatches, ownTree, wholeTree } from '../front/fold.js';
import { frameMatcher, notSampledFrame, sampleTest, weightOf } from '../front/search.js';
import { buildTree } from '../front/tree.js';
import { onThemeChange } from '../front/colors.js';
import { FlameGraph } from '../front/flame.js';
import { Calendar, blockWeights, colorScale, columnWidth, scaleFor } from '../front/heat.js';
import { Lanes, showGutter } from '../front/lanes.js';
import { Meaning } from '../front/meaning.js';
import { factsOf } from './facts.js';
import { Tooltip, byId, element } from '../front/controls.js';
import { buildGraphTools, buildTimeTools, showRemoved } from './tools.js';
import { buildHelp } from './help.js';
import { showLegend, showPreview, showSpan, showSummary, showTables } from './words.js';

class Page {
  constructor(frames, recordings) {
    Object.assign(this, { frames, recordings });
    this.isPair = recordings.length > 1;
    this.views = VIEWS.filter((view) => recordings.some((recording) => recording.has(view)));
    this.view = this.views[0] ?? VIEWS[0];
    this.scale = scaleFor(Math.max(...recordings.map((recording) => recording.durationUs)));
    // Selected ranges: { fromUs, toUs }, or null for the whole recording.
    this.ranges = { A: null, B: null };
    this.isSecondNext = false;
    this.tab = 'flame';
    // A recording without names has no known own code.
    this.options = { roots: 'none', hasLines: false, hasNames: true, isReversed: false, isOwnOnly: frames.origins.includes(OWN) };
    this.query = '';
    this.isOnlyMatching = false;
    // Functions whose stacks are hidden.
    this.removed = [];
    this.trees = new Map();
    this.match = -1;
    // Requests per second of A and B; null if unknown.
    this.ratesPerS = JSON.parse(byId('rates')?.textContent ?? 'null');
    this.comparedBy = this.ratesPerS === null ? 'second' : 'request';
    this.isLogarithmic = null;
    this.tooltip = new Tooltip(byId('tooltip'));
    this.flame = new FlameGraph(byId('flame'), frames, this.tooltip, {
      colorOf: (node) => this.meaning.colorOf(node),
      isNew: (node) => this.meaning.isNew(node),
      isNoise: (node) => this.meaning.isNoise(node),
      describe: (node) => this.meaning.describe(node),
      onZoom: () => showSummary(this),
      onRemove: (frame) => this.remove(frame),
    });
    this.build();
    this.update();
  }

  // What amounts are divided by.
  normsOf(lengthsS) {
    return this.comparedBy === 'request' ? lengthsS.map((seconds, side) => seconds * this.ratesPerS[side]) : lengthsS;
  }

  // The ranges that the graph shows; of two the base comes first.
  get shown() {
    const range = (name, index) => {
      const recording = this.recordings[index];
      const { fromUs, toUs } = this.ranges[name] ?? { fromUs: 0, toUs: recording.durationUs };
      return { recording, fromUs, toUs, isWhole: this.ranges[name] === null };
    };
    if (this.isPair) {
      return [{ ...range('A', 0), isBase: true }, range('B', 1)];
    }
    return this.ranges.B === null ? [range('A', 0)] : [{ ...range('A', 0), isBase: true }, range('B', 0)];
  }

  get isDifference() {
    return this.isPair || this.ranges.B !== null;
  }

  // ---- Building.

  build() {
    byId('loading').hidden = true;
    byId('times').hidden = false;
    byId('paths').hidden = false;
    byId('facts').append(...this.recordings.map((recording, index) => factsOf(recording, this.isPair ? ['A (base)', 'B'][index] : null)));
    buildTimeTools(this);
    buildGraphTools(this);
    buildHelp();
    this.maps = this.recordings.map((recording, index) => this.buildMap(recording, index));
    let resized;
    addEventListener('resize', () => {
      clearTimeout(resized);
      resized = setTimeout(() => this.update(), 100);
    });
    onThemeChange(() => this.update());
    addEventListener('keydown', (event) => this.key(event));
  }

  buildMap(recording, number) {
    const gutter = element('div', { class: 'gutter', 'aria-hidden': 'true' });
    const lanesCanvas = element('canvas', { class: 'lanes' });
    const canvas = element('canvas', { class: 'heat', tabindex: '0', role: 'application',
      'aria-label': 'Heat map: arrow keys move, Shift selects, Enter shows the range' });
    const scroller = element('div', { class: 'scroller' }, canvas, lanesCanvas);
    if (this.isPair) {
      byId('maps').append(element('div', { class: 'map-title' }, `${['A', 'B'][number]}: ${recording.facts.command}`));
    }
    byId('maps').append(element('div', { class: 'map' }, gutter, scroller));
    const heat = new Calendar(canvas, recording, {
      onSelect: (_, fromUs, toUs, isSecond) => this.select(number, fromUs, toUs, isSecond),
      onPreview: (map, block) => showPreview(this, map, block),
    });
    const lanes = new Lanes(lanesCanvas, recording, {
      onSelect: (fromUs, toUs, isSecond) => this.select(number, fromUs, toUs, isSecond),
      onHover: (span, event) => showSpan(this, span, event),
    });
    return { heat, lanes, gutter, scroller, recording };
  }

  // ---- Choosing.

  select(number, fromUs, toUs, isSecond) {
    const range = { fromUs, toUs: Math.min(toUs, this.recordings[number].durationUs) };
    if (this.isPair) {
      this.setRanges(...(number === 0 ? [range, this.ranges.B] : [this.ranges.A, range]));
    } else if (isSecond || this.isSecondNext) {
      this.isSecondNext = false;
      this.setRanges(this.ranges.A, range);
    } else {
      this.setRanges(range, null);
    }
  }

  setRanges(a, b) {
    this.ranges = { A: a, B: b };
    this.showRanges();
    this.showGraph();
  }

  swap() {
    const { A, B } = this.ranges;
    const whole = { fromUs: 0, toUs: this.recordings[0].durationUs };
    this.setRanges(B, A ?? whole);
  }

  typeRange(name) {
    const recording = this.recordings[this.isPair && name === 'B' ? 1 : 0];
    const [fromUs, toUs] = ['fromUs', 'toUs'].map((end) => byId(`${name}-${end}`).value);
    const range = {
      fromUs: Math.max(0, Number(fromUs) * 1e6),
      toUs: toUs === '' ? recording.durationUs : Math.min(Number(toUs) * 1e6, recording.durationUs),
    };
    const isValid = range.fromUs < range.toUs;
    ['fromUs', 'toUs'].forEach((end) => byId(`${name}-${end}`).setAttribute('aria-invalid', String(!isValid)));
    if (isValid) {
      this.setRanges(name === 'A' ? range : this.ranges.A, name === 'B' ? range : this.ranges.B);
    }
  }

  setTab(tab) {
    this.tab = tab;
    this.options.isReversed = tab === 'reversed';
    this.showGraph();
  }

  setQuery(query) {
    this.query = query;
    this.search.value = query;
    this.showMaps();
    this.showGraph();
  }

  nextMatch(by) {
    const matches = this.flame.matches();
    if (this.tab !== 'table' && matches.length > 0) {
      this.match = (Math.max(this.match, by < 0 ? 0 : -1) + by + matches.length) % matches.length;
      this.flame.reveal(matches[this.match]);
      byId('matched').dataset.match = `${this.match + 1} of ${matches.length}`;
    }
  }

  remove(frame) {
    if (frame >= 0 && !this.removed.includes(frame)) {
      this.removed.push(frame);
      this.update();
    }
  }

  restore(frames) {
    this.removed = this.removed.filter((frame) => !frames.includes(frame));
    this.update();
  }

  key(event) {
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key === 'f') {
      event.preventDefault();
      this.search.focus();
      this.search.select();
    } else if (event.key === 'Escape') {
      if (document.activeElement === this.search && this.query !== '') {
        this.setQuery('');
      } else if (this.flame.zoomed !== this.flame.root) {
        this.flame.zoom(this.flame.root);
      }
    } else if (event.altKey && ['1', '2', '3'].includes(event.key)) {
      event.preventDefault();
      this.setTab(['flame', 'reversed', 'table'][event.key - 1]);
    } else if (!isCommand && !event.altKey && !event.target.matches('input:not([type=checkbox]), select') && !byId('help').open) {
      this.letter(event.key);
    }
  }

  letter(key) {
    const actions = {
      n: () => this.nextMatch(1),
      N: () => this.nextMatch(-1),
      u: () => this.restore(this.removed.slice(-1)),
      '?': () => byId('help').showModal(),
    };
    actions[key]?.();
  }

  // ---- Showing.

  update() {
    this.showViews();
    this.showMaps();
    this.showRanges();
    this.showGraph();
  }

  showViews() {
    const buttons = this.views.map((view) => {
      const totals = this.recordings.map((recording) =>
        amount(weightOf({ recording, fromUs: 0, toUs: Infinity }, view, null) + recording.notSampled(view, 0, Infinity), view.unit));
      return element('button', { 'data-view': view.id, 'aria-current': String(view === this.view), title: view.what, click: () => {
        this.view = view;
        this.update();
      } }, view.title, element('small', {}, totals.join(' \u2192 ')));
    });
    byId('views').replaceChildren(...buttons);
  }

  // The options with which the graph is drawn. Waits for a processor have no stacks: they are
  // grouped by thread.
  get drawnOptions() {
    const isByThread = this.view.id === 'scheduler' && this.options.roots === 'none';
    return isByThread ? { ...this.options, roots: 'thread' } : this.options;
  }

  // Tests for the samples that are shown and for those that match; null passes all.
  get filters() {
    const test = (isMeant) => sampleTest(this.frames, this.recordings, isMeant, this.drawnOptions);
    const isMatching = frameMatcher(this.frames, this.query);
    const isRemoved = this.removed.length === 0 ? () => false : test((frame) => this.removed.includes(frame));
    const isKept = (...sample) => !isRemoved(...sample);
    const matches = isMatching === null ? null : test(isMatching);
    const isMatch = (...sample) => matches(...sample) && isKept(...sample);
    return {
      isMatching,
      shown: this.isOnlyMatching && matches !== null ? isMatch : isKept,
      matching: matches === null ? null : isMatch,
    };
  }

  // The CPU time without samples, unless the filters exclude it.
  notSampled({ recording, fromUs, toUs }, isMatching) {
    const frame = notSampledFrame(this.frames);
    const isLeftOut = this.removed.includes(frame) || (isMatching !== null && !isMatching(frame));
    return { frame, weight: isLeftOut ? 0 : recording.notSampled(this.view, fromUs, toUs) };
  }

  // The recording's tree for the graph. Tables always have all functions.
  treeOf(recording) {
    const isOwnOnly = this.options.isOwnOnly && this.tab !== 'table';
    const known = this.trees.get(recording) ?? new Map();
    this.trees.set(recording, known);
    if (!known.has(isOwnOnly)) {
      known.set(isOwnOnly, isOwnOnly ? ownTree(this.frames, recording) : wholeTree(recording));
    }
    return known.get(isOwnOnly);
  }

  // During a search the maps show only matching samples.
  showMaps() {
    const { view, scale } = this;
    const { shown, matching } = this.filters;
    const isWanted = matching ?? (this.removed.length > 0 ? shown : null);
    const weights = this.recordings.map((recording) => blockWeights(recording, view, scale, isWanted));
    this.colors = colorScale(weights, this.isLogarithmic ?? view.kind !== 'cpu');
    this.maps.forEach(({ heat, lanes, gutter, scroller }, number) => {
      // All maps use the width of the longest.
      const width = columnWidth(Math.max(...this.recordings.map((each) => each.durationUs)), scale, scroller.clientWidth);
      heat.show({ scale, weights: weights[number], isWanted, colors: this.colors, columnWidth: width });
      lanes.draw(scale.columnUs, heat.columnWidth, heat.columns);
      showGutter(gutter, heat, lanes);
    });
    showLegend(this);
  }

  showRanges() {
    const { A, B } = this.ranges;
    const named = (range, name) => (range === null ? [] : [{ ...range, name }]);
    this.maps.forEach(({ heat }, number) => {
      heat.ranges = this.isPair ? named(number === 0 ? A : B, number === 0 ? 'A' : 'B') : [...named(A, 'A'), ...named(B, 'B')];
      heat.draw();
    });
    for (const [name, range] of Object.entries(this.ranges)) {
      for (const end of ['fromUs', 'toUs']) {
        const input = byId(`${name}-${end}`);
        // The ends of the recording are placeholders.
        const limit = end === 'fromUs' ? 0 : this.recordings.at(name === 'A' ? 0 : -1).durationUs;
        input.value = range === null || range[end] === limit ? '' : String(Number((range[end] / 1e6).toFixed(3)));
        input.placeholder = String(Number((limit / 1e6).toFixed(2)));
        input.removeAttribute('aria-invalid');
      }
    }
    this.compareButton.setAttribute('aria-pressed', String(this.isSecondNext));
    byId('whole').disabled = A === null && B === null;
    if (!this.isPair) {
      byId('swap').disabled = B === null;
    }
  }

  showGraph() {
    const { isMatching, shown, matching } = this.filters;
    const ranges = this.shown.map((range) => {
      const tree = this.treeOf(range.recording);
      return {
        ...range,
        tree,
        foldedMatches: isMatching === null || !this.options.isOwnOnly ? null : foldedMatches(this.frames, range.recording, tree, isMatching),
        notSampled: this.notSampled(range, this.isOnlyMatching ? isMatching : null),
      };
    });
    this.root = buildTree(this.frames, this.view, ranges, { ...this.drawnOptions, isWanted: shown });
    for (const id of ['flame', 'reversed', 'table']) {
      byId(`tab-${id}`).setAttribute('aria-current', String(id === this.tab));
    }
    byId('graph').hidden = this.tab === 'table';
    byId('tables').hidden = this.tab !== 'table';
    const lengthsS = this.shown.map(({ fromUs, toUs }) => (toUs - fromUs) / 1e6);
    this.meaning = new Meaning(this.frames, this.view, this.root, this.options.isReversed,
      this.isDifference ? { by: this.comparedBy, norms: this.normsOf(lengthsS) } : null);
    this.flame.isByWeight = this.options.isReversed;
    this.flame.isMatching = isMatching;
    this.flame.show(this.root);
    if (this.tab === 'table') {
      showTables(this);
    }
    this.showMatches(isMatching, matching);
    showRemoved(this);
    byId('graph-legend').replaceChildren(...this.meaning.legend());
    byId('compare-by').hidden = !this.isDifference;
  }

  showMatches(isMatching, matching) {
    let text = '';
    let weight = 0;
    if (this.query !== '' && isMatching === null) {
      text = 'not a regular expression';
    } else if (isMatching !== null) {
      const range = this.shown.at(-1);
      weight = weightOf(range, this.view, matching) + this.notSampled(range, isMatching).weight;
      text = `matched ${amount(weight, this.view.unit)}, ${percent(weight, this.root.total)}`;
    }
    this.match = -1;
    byId('matched').textContent = text;
    byId('matched').dataset.weight = String(weight);
    for (const id of ['previous-match', 'next-match']) {
      byId(id).disabled = isMatching === null;
    }
  }

}

const frames = new Frames();
const recordings = [];
for (const script of document.querySelectorAll('script.recording')) {
  recordings.push(await decodeRecording(script.textContent, frames));
}
new Page(frames, recordings);

// Tables: weights by activity and stage, the heaviest functions, locks, events.

import { NOT_SAMPLED, OWN, VIEWS, eachSample } from './data.js';
import { amount, fieldText, percent, seconds } from './format.js';
import { element } from './controls.js';
import { frameWeights } from './tree.js';

const ROWS_MAX = 50;

function table(heads, rows) {
  const head = heads.map(([text, isWords]) => element('th', { scope: 'col', class: isWords ? 'words' : '' }, text));
  return element('div', { class: 'wide' }, element('table', {},
    element('thead', {}, element('tr', {}, ...head)), element('tbody', {}, ...rows)));
}

function row(isTotal, ...cells) {
  return element('tr', { class: isTotal ? 'total' : '' }, ...cells);
}

function words(...contents) {
  return element('td', { class: 'words' }, ...contents);
}

function number(value, text) {
  return element('td', { class: value === 0 ? 'zero' : '' }, text);
}

function share(part, whole) {
  return `${((100 * part) / whole).toFixed(1)} %`;
}

// All views of a range side by side, with stages below their activities.
export function activityTable({ recording, fromUs, toUs }) {
  const views = VIEWS.filter((view) => recording.has(view));
  const sums = new Map();
  const totals = new Float64Array(views.length);
  const add = (key, column, weight) => {
    if (!sums.has(key)) {
      sums.set(key, new Float64Array(views.length));
    }
    sums.get(key)[column] += weight;
  };
  views.forEach((view, column) => {
    const samples = recording.samples[view.kind];
    eachSample(recording, view, fromUs, toUs, (index, weight) => {
      add(`${samples.activity[index]}`, column, weight);
      add(`${samples.activity[index]} ${samples.stage[index]}`, column, weight);
      totals[column] += weight;
    });
  });
  const gaps = Float64Array.from(views, (view) => recording.notSampled(view, fromUs, toUs));
  gaps.forEach((weight, column) => {
    totals[column] += weight;
  });
  const order = (key) => key.split(' ').map(Number);
  const keys = [...sums.keys()].sort((a, b) => order(a)[0] - order(b)[0] || (order(a)[1] ?? -1) - (order(b)[1] ?? -1));
  const cells = (weights) => views.map((view, column) => (weights[column] === 0 ? element('td', { class: 'zero' }, '\u2013')
    : element('td', {}, amount(weights[column], view.unit), element('small', {}, share(weights[column], totals[column])))));
  const rows = keys.map((key) => {
    const [activity, stage] = order(key);
    const isActivity = stage === undefined;
    const name = isActivity ? recording.activities[activity] : `\u2003${recording.stages[stage]}`;
    return row(isActivity, element('td', { class: 'words name' }, name), ...cells(sums.get(key)));
  });
  const heads = views.map((view) => [view.title]);
  const gapRows = gaps.some((weight) => weight > 0) ? [row(true, words(NOT_SAMPLED), ...cells(gaps))] : [];
  return table([['activity / stage', true], ...heads], [row(true, words('all'), ...cells(totals)), ...rows, ...gapRows]);
}

// The functions with the largest self weights. Choosing one calls `onSearch(name)`.
export function frameTable(frames, root, view, onSearch) {
  const weights = frameWeights(root).filter((entry) => entry.self > 0).sort((a, b) => b.self - a.self);
  const rows = weights.slice(0, ROWS_MAX).map((entry) => row(false,
    number(entry.self, amount(entry.self, view.unit)), number(entry.self, percent(entry.self, root.total)),
    number(entry.total, amount(entry.total, view.unit)), number(entry.total, percent(entry.total, root.total)),
    words(element('button', { click: () => onSearch(frames.names[entry.frame]), title: 'search' }, frames.names[entry.frame])),
    words(frames.files[entry.frame])));
  return table([['self'], ['%'], ['total'], ['%'], ['function', true], ['file', true]], rows);
}

// The locks with the longest waits, with their main waiters and holders.
export function lockTable(frames, { recording, fromUs, toUs }) {
  const locks = new Map();
  const collect = (id, side) => {
    const view = VIEWS.find((candidate) => candidate.id === id);
    const samples = recording.samples[view.kind];
    eachSample(recording, view, fromUs, toUs, (index, weight) => {
      const name = recording.names[samples.name[index]];
      if (!locks.has(name)) {
        locks.set(name, { waiter: { weight: 0, frames: new Map() }, holder: { weight: 0, frames: new Map() } });
      }
      const lock = locks.get(name)[side];
      const frame = ownFrame(frames, recording, samples.node[index]);
      lock.weight += weight;
      lock.frames.set(frame, (lock.frames.get(frame) ?? 0) + weight);
    });
  };
  collect('contention', 'waiter');
  collect('holder', 'holder');
  const all = [...locks.values()].reduce((sum, lock) => sum + lock.waiter.weight, 0);
  const most = (side) => {
    const [frame, weight] = [...side.frames].sort((a, b) => b[1] - a[1])[0] ?? [undefined, 0];
    return frame === undefined ? '\u2013' : `${frames.names[frame] ?? 'unknown'} (${percent(weight, side.weight)})`;
  };
  const rows = [...locks].sort((a, b) => b[1].waiter.weight - a[1].waiter.weight).slice(0, ROWS_MAX).map(([name, lock]) => row(false,
    words(name || 'without a name'), number(lock.waiter.weight, amount(lock.waiter.weight, 'time')),
    number(lock.waiter.weight, percent(lock.waiter.weight, all)), words(most(lock.waiter)), words(most(lock.holder))));
  return table([['lock', true], ['waited'], ['%'], ['main waiter', true], ['main holder', true]], rows);
}

// The innermost frame of own code, or else the innermost frame.
function ownFrame(frames, recording, leaf) {
  const { parent, frame } = recording.nodes;
  for (let node = leaf; node !== 0; node = parent[node]) {
    if (frames.origins[frame[node]] === OWN && !frames.names[frame[node]].startsWith('kvant_base::')) {
      return frame[node];
    }
  }
  return frame[leaf];
}

// The longest events of a range. Choosing one calls `onSelect(span)`.
export function spanTable({ recording, fromUs, toUs }, onSelect) {
  const spans = recording.spans.filter((span) => span.startUs < toUs && span.endUs > fromUs);
  const rows = spans.sort((a, b) => b.endUs - b.startUs - (a.endUs - a.startUs)).slice(0, ROWS_MAX).map((span) => row(false,
    words(element('button', { click: () => onSelect(span), title: 'select its time' }, span.kind)),
    number(1, seconds(span.startUs)), number(1, span.isOpen ? 'in progress' : amount((span.endUs - span.startUs) * 1e3, 'time')),
    words(span.fields.map(fieldText).join(', '))));
  return table([['event', true], ['from'], ['lasted'], ['', true]], rows);
}

// The toolbars: the choices, and the parts of the page that they change.

import { SCALES } from '../front/heat.js';
import { byId, checkbox, element, select } from '../front/controls.js';

export function buildTimeTools(page) {
  const field = (name, end) => element('input', {
    type: 'number', min: '0', step: 'any', 'aria-label': `${name} ${end === 'fromUs' ? 'from' : 'to'}, seconds`, id: `${name}-${end}`,
    change: () => page.typeRange(name),
  });
  const range = (name) => element('span', { class: 'group', id: `range-${name}` }, `${name} `, field(name, 'fromUs'), '\u2013',
    field(name, 'toUs'), ' s');
  page.compareButton = element('button', { title: 'make the next selection B (like Ctrl)', 'aria-pressed': 'false', click: () => {
    page.isSecondNext = !page.isSecondNext;
    page.showRanges();
  } }, 'Compare');
  byId('time-tools').append(
    range('A'), range('B'),
    ...(page.isPair ? [] : [page.compareButton]),
    ...(page.isPair ? [] : [element('button', { id: 'swap', title: 'exchange A and B', click: () => page.swap() }, 'Swap')]),
    element('button', { id: 'whole', click: () => page.setRanges(null, null) }, 'Whole range'),
    select('Column', SCALES.map((scale) => [scale.id, `${scale.title}, blocks of ${scale.label}`]), page.scale.id, (id) => {
      page.scale = SCALES.find((scale) => scale.id === id);
      page.update();
    }),
    select('Colours', [['auto', 'automatic'], ['linear', 'linear'], ['log', 'logarithmic']], 'auto', (choice) => {
      page.isLogarithmic = { auto: null, linear: false, log: true }[choice];
      page.showMaps();
    }));
}

export function buildGraphTools(page) {
  const tab = (id, text) => element('button', { id: `tab-${id}`, click: () => page.setTab(id) }, text);
  byId('tabs').append(tab('flame', 'Flame graph'), tab('reversed', 'Reversed'), tab('table', 'Tables'),
    element('button', { id: 'help-button', title: 'keys, and what the views mean (?)', click: () => byId('help').showModal() }, 'Help'));
  const option = (name) => (value) => {
    page.options[name] = value;
    page.showMaps();
    page.showGraph();
  };
  byId('graph-tools').append(
    searchTools(page),
    checkbox('only matching', 'hide stacks without a match, in the heat map too', false, (isOn) => {
      page.isOnlyMatching = isOn;
      page.update();
    }),
    checkbox('own code only', 'fold library frames, except the innermost of a stack', page.options.isOwnOnly, option('isOwnOnly')),
    select('Group by', [['none', 'nothing'], ['thread', 'thread'], ['activity', 'activity and stage']], 'none', option('roots')),
    checkbox('lines', 'one frame per line of code', false, option('hasLines')),
    checkbox('names', 'show the lock or queue waited for as a frame', true, option('hasNames')),
    select('Narrowest', [['0', 'all'], ['0.001', '0.1 %'], ['0.005', '0.5 %'], ['0.02', '2 %']], '0', (value) => {
      page.flame.leastPart = Number(value);
      page.flame.draw();
    }),
    checkbox('root at bottom', '', false, (isOn) => {
      page.flame.isRootAtBottom = isOn;
      page.flame.draw();
    }),
    element('span', { id: 'compare-by' }, select('Compare', comparisons(page), page.comparedBy, (value) => {
      page.comparedBy = value;
      page.showGraph();
    })),
    element('button', { id: 'unzoom', click: () => page.flame.zoom(page.flame.root) }, 'Zoom out'),
    element('button', { id: 'remove', title: 'hide all stacks with this function (Alt+click on a box, or Delete)',
      click: () => page.remove(page.flame.zoomed.frame) }, 'Remove'),
    element('span', { id: 'removed', class: 'group' }));
}

function comparisons(page) {
  const perRequest = page.ratesPerS === null ? [] : [['request', 'amounts per request']];
  return [...perRequest, ['second', 'amounts per second'], ['total', 'shares of totals']];
}

function searchTools(page) {
  page.search = element('input', { type: 'search', placeholder: 'Search (regular expression)', 'aria-label': 'Search', id: 'search',
    input: () => page.setQuery(page.search.value) });
  page.search.addEventListener('keydown', (event) => {
    if (event.key === 'Enter') {
      page.nextMatch(event.shiftKey ? -1 : 1);
    }
  });
  const step = (id, text, title, by) => element('button', { id, title, 'aria-label': title, click: () => page.nextMatch(by) }, text);
  return element('span', { class: 'group' }, page.search, step('previous-match', '\u2191', 'previous match (Shift+N)', -1),
    step('next-match', '\u2193', 'next match (N)', 1), element('output', { id: 'matched', 'aria-live': 'polite' }));
}

// Lists the removed functions, each with a button that restores it.
export function showRemoved(page) {
  const { names } = page.frames;
  const chips = page.removed.map((frame) => element('button', { title: `restore ${names[frame]}`, class: 'chip', click: () =>
    page.restore([frame]) }, `${names[frame]} \u00d7`));
  const all = chips.length > 1 ? [element('button', { id: 'restore', click: () => page.restore(page.removed) }, 'Restore all')] : [];
  byId('removed').replaceChildren(...(chips.length > 0 ? ['removed: ', ...chips, ...all] : []));
}

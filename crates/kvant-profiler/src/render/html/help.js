// Help on the page: keys, and what the views mean.

import { VIEWS } from './data.js';
import { byId, element } from './controls.js';

const KEYS = [
  ['Ctrl+F', 'search: a regular expression over names'],
  ['N, Shift+N', 'next and previous match, the heaviest first; in the search field Enter, Shift+Enter'],
  ['Click, Enter', 'zoom into a box; Escape zooms out, or clears the search'],
  ['Alt+click, Delete', 'remove a function: leave out all stacks with it'],
  ['U', 'bring back what was removed last'],
  ['Arrows', 'move along boxes, or along blocks of the heat map'],
  ['Drag, Shift+arrows', 'select a time in the heat map; with Ctrl a second one, B, to compare'],
  ['Alt+1, Alt+2, Alt+3', 'flame graph, reversed, tables'],
  ['?', 'this help'],
];

export function buildHelp() {
  const list = (rows) => element('dl', {}, ...rows.flatMap(([term, text]) => [element('dt', {}, term), element('dd', {}, text)]));
  byId('help').append(
    element('button', { class: 'close', autofocus: true, click: () => byId('help').close() }, 'Close'),
    element('h2', {}, 'Keys'), list(KEYS),
    element('h2', {}, 'Views: what a large number means'), list(VIEWS.map(({ title, what, means }) => [title, `${what}: ${means}`])),
    element('h2', {}, 'Boxes'),
    element('p', {}, 'The width of a box is its share of the weight, with all that it called. A band at its upper edge: frames of libraries are '
      + 'folded away above it; the innermost frame of a stack always stays. Comparing, a faded box differs by less than two standard deviations '
      + 'of what its number of samples leaves to chance. "[not sampled]" is CPU time of the process that no sample stands for.'));
}

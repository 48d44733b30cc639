// The help dialog: keys, and the meaning of views and boxes.

import { VIEWS } from '../front/data.js';
import { byId, element } from '../front/controls.js';

const KEYS = [
  ['Ctrl+F', 'search: a regular expression over names'],
  ['N, Shift+N', 'next and previous match, heaviest first; in the search field Enter and Shift+Enter'],
  ['Click, Enter', 'zoom into a box; Escape zooms out, or clears the search'],
  ['Alt+click, Delete', 'remove a function: hide all stacks that contain it'],
  ['U', 'restore the last removed function'],
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
    element('h2', {}, 'Views: the meaning of a large number'), list(VIEWS.map(({ title, what, means }) => [title, `${what}: ${means}`])),
    element('h2', {}, 'Boxes'),
    element('p', {}, 'The width of a box is its share of the weight, including everything it called. A band at its upper edge means that library '
      + 'frames are folded above it; the innermost frame of a stack is never folded. In a comparison, boxes are faded whose difference is less than '
      + 'two standard deviations, given their numbers of samples. "[not sampled]" is CPU time of the process that no sample accounts for.'));
}

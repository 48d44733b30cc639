// The texts of the page: summary, scale, the block under the pointer, events, tables.

import { amount, fieldText, percent, perSecond, seconds, wallClock } from '../front/format.js';
import { heatColor } from '../front/colors.js';
import { byId, element } from '../front/controls.js';
import { activityTable, frameTable, lockTable, spanTable } from '../front/table.js';

export function showLegend(page) {
  const { colors, view } = page;
  const stops = Array.from({ length: 11 }, (_, index) => heatColor(index / 10));
  const ramp = element('span', { class: 'ramp', style: `background: linear-gradient(to right, ${stops.join(', ')})` });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const text = `${part === 1 && colors.isCut ? '\u2265 ' : ''}${amount(colors.valueAt(part), view.unit)}`;
    ramp.append(element('span', { style: `left: ${part * 100}%` }, text));
  }
  const most = colors.isCut ? `, at most ${amount(colors.most, view.unit)}` : '';
  byId('legend').replaceChildren(
    element('span', {}, `${view.what} in ${page.scale.label}${page.query === '' ? '' : ', matching samples only'}${most}`), ramp,
    element('span', {}, element('span', { class: 'swatch', style: 'background: var(--zero)' }), 'none'));
}

export function showSummary(page) {
  const ranges = page.shown.map((range, index) => {
    const name = page.isDifference ? ['A', 'B'][index] : 'A';
    const total = page.isDifference && index === 0 ? page.root.baseTotal : page.root.total;
    const time = range.isWhole ? `whole range (${seconds(range.toUs)})`
      : `${name}: ${seconds(range.fromUs)} \u2013 ${seconds(range.toUs)} (${amount((range.toUs - range.fromUs) * 1e3, 'time')})`;
    return `${range.isWhole && page.isDifference ? `${name}: ` : ''}${time}: ${amount(total, page.view.unit)} of ${page.view.what}` +
      ` (${perSecond(total, page.view, (range.toUs - range.fromUs) / 1e6)})`;
  });
  const { zoomed } = page.flame;
  const zoom = zoomed === page.root ? '' : `; zoomed into ${page.flame.nameOf(zoomed)}: ${amount(zoomed.total, page.view.unit)}, ` +
    `${percent(zoomed.total, page.root.total)}`;
  // The exact weights, for programs.
  byId('summary').dataset.weights = JSON.stringify(page.isDifference ? [page.root.baseTotal, page.root.total] : [page.root.total]);
  byId('summary').textContent = `${page.view.title}. ${ranges.join('; ')}${zoom}`;
  byId('unzoom').disabled = zoomed === page.root;
  byId('remove').disabled = zoomed === page.root;
}

export function showPreview(page, map, block) {
  const box = byId('preview');
  if (block === null) {
    box.textContent = '';
    return;
  }
  const fromUs = block * map.blockUs;
  const { sampleCount, top } = map.contentOf(page.view, block);
  // A block is short: one or two samples say little about it.
  const from = sampleCount === 0 ? '' : ` from ${sampleCount.toLocaleString('en-US')} sample${sampleCount === 1 ? '' : 's'}`;
  const name = top === null ? '' : `, most in ${page.frames.names[top[0]] || 'the scheduler'} (${amount(top[1], page.view.unit)})`;
  const during = map.recording.spans.filter((span) => span.startUs < fromUs + map.blockUs && span.endUs >= fromUs).map((span) => span.kind);
  const events = during.length === 0 ? '' : `; during ${[...new Set(during)].join(', ')}`;
  box.textContent = `${(fromUs / 1e6).toFixed(2)} s (${wallClock(map.recording, fromUs)} UTC): ` +
    `${amount(map.weights[block], page.view.unit)}${from}${name}${events}`;
}

export function showTables(page) {
  const range = page.shown.at(-1);
  const section = (title, content) => [element('h2', {}, page.isDifference ? `${title}, B` : title), content];
  byId('tables').replaceChildren(
    ...section('By activity and stage', activityTable(range)),
    ...section(`Functions by ${page.view.what}`, frameTable(page.frames, page.root, page.view, (name) => {
      page.setQuery(`^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`);
      page.setTab('flame');
    })),
    ...(range.recording.samples.contention || range.recording.samples.holder ? section('Locks', lockTable(page.frames, range)) : []),
    ...(range.recording.spans.length > 0 ? section('Events', spanTable(range, (span) =>
      page.select(page.recordings.indexOf(range.recording), span.startUs, Math.max(span.endUs, span.startUs + 1), false))) : []));
}

export function showSpan(page, span, event) {
  if (span === null) {
    page.tooltip.hide();
    return;
  }
  const lasted = span.isOpen ? 'in progress' : amount((span.endUs - span.startUs) * 1e3, 'time');
  page.tooltip.show([`${span.kind}, ${lasted}`, `from ${seconds(span.startUs)}`, ...span.fields.map(fieldText)],
    event.clientX, event.clientY);
}

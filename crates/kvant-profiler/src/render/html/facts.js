// The header of the page: what was recorded, when and how.

import { amount, percent, seconds } from '../front/format.js';
import { element } from '../front/controls.js';

// `name`: which of two recordings this is, or null.
export function factsOf(recording, name) {
  const { facts, notSampledNs } = recording;
  const { cpu } = facts;
  const list = element('dl');
  const add = (term, text, isWarning = false) => {
    list.append(element('div', { class: isWarning ? 'warning' : '' }, element('dt', {}, term), element('dd', {}, text)));
  };
  const busy = facts.processCpuNs / 1e3 / recording.durationUs;
  add('command', facts.command || 'unknown');
  add('started', new Date(facts.startedWallNs / 1e6).toISOString().replace('T', ' ').replace(/\.\d+Z$/, ' UTC'));
  add('lasted', seconds(recording.durationUs));
  add('process', `${facts.processId}, Kvant ${facts.version}`);
  add('CPU time', `${amount(facts.processCpuNs, 'time')}, ${busy.toFixed(2)} of ${facts.cpuCount} CPUs`);
  if (notSampledNs > 0) {
    add('not sampled', `${amount(notSampledNs, 'time')}, ${percent(notSampledNs, facts.processCpuNs)}`);
  }
  add('CPU samples', cpu === null ? 'off'
    : `${cpu.engine}, ${Math.round(1e9 / cpu.periodNs)} Hz, ${cpu.hasKernelFrames ? 'with' : 'without'} kernel frames`);
  add('allocations', facts.allocMeanBytes === null ? 'off' : `one in ${amount(facts.allocMeanBytes, 'bytes')}`);
  add('waits', facts.waitMeanNs === null ? 'off' : `one in ${amount(facts.waitMeanNs[0], 'time')}`);
  add('samples', recording.sampleCount.toLocaleString('en-US'));
  add('dropped', facts.droppedCount.toLocaleString('en-US'), facts.droppedCount > 0);
  if (recording.blindSpot !== null) {
    add('not seen', recording.blindSpot, true);
  }
  if (!recording.hasSymbols) {
    add('function names', 'not resolved', true);
  }
  return element('div', {}, element('h1', {}, name === null ? 'Kvant profile' : `Kvant profile ${name}`), list);
}

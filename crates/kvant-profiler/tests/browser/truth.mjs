// Sums over a recording's samples, computed without code of the page.

import { readFile } from 'node:fs/promises';

// The recordings of a file, with stacks as lists of names, outermost first.
export async function readRecordings(path) {
  const recordings = JSON.parse(await readFile(path, 'utf8'));
  for (const recording of recordings) {
    const stacks = [[]];
    for (const [parent, names] of recording.stacks.slice(1)) {
      stacks.push([...stacks[parent], ...names]);
    }
    recording.stacks = stacks;
  }
  return recordings;
}

export function view(id) {
  return {
    kind: id === 'live' ? 'alloc' : id,
    isWanted: (sample) => id !== 'live' || sample.is_live,
  };
}

// The part of a sample in a range: of a wait its overlap, of others all or nothing. Rounded to
// microseconds like pages.
function part(sample, fromUs, toUs) {
  const start = Math.floor(sample.start_ns / 1000);
  const end = Math.floor(sample.end_ns / 1000);
  if (start === end) {
    return start >= fromUs && start < toUs ? 1 : 0;
  }
  return Math.max(0, Math.min(end, toUs) - Math.max(start, fromUs)) / (end - start);
}

// The weight of a view in a range, of the samples that pass `isWanted(sample, names of its stack)`.
export function weight(recording, id, fromUs = 0, toUs = Infinity, isWanted = () => true) {
  const { kind, isWanted: isOfView } = view(id);
  let sum = 0;
  for (const sample of recording.samples) {
    if (sample.kind === kind && isOfView(sample) && isWanted(sample, recording.stacks[sample.stack])) {
      sum += sample.weight * part(sample, fromUs, toUs);
    }
  }
  return sum;
}

// CPU time of the process that no sample accounts for: for the whole recording, not for ranges.
export function notSampled(recording) {
  return recording.process_cpu_ns - weight(recording, 'cpu');
}

// What the page shows for a whole recording.
export function total(recording, id) {
  return weight(recording, id) + (id === 'cpu' ? notSampled(recording) : 0);
}

// The number of samples and the sum of their squared weights, which estimate the noise of a sum.
export function chance(recording, id, fromUs, toUs, isWanted) {
  const { kind, isWanted: isOfView } = view(id);
  const found = { samples: 0, square: 0 };
  for (const sample of recording.samples) {
    const share = part(sample, fromUs, toUs);
    if (sample.kind === kind && share > 0 && isOfView(sample) && isWanted(sample, recording.stacks[sample.stack])) {
      found.samples += 1;
      found.square += (sample.weight * share) ** 2;
    }
  }
  return found;
}

export function has(recording, id) {
  const { kind, isWanted } = view(id);
  return recording.samples.some((sample) => sample.kind === kind && isWanted(sample));
}

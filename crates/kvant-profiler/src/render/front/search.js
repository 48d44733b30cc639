// Which samples and boxes match: by a regular expression over names, or a set of functions.

import { NOT_SAMPLED, UNKNOWN, WAITED, eachSample, framesAbove, matchingNodes } from './data.js';

// Returns a test whether a frame's name matches `query`; null if the query is empty or no valid
// expression.
export function frameMatcher(frames, query) {
  if (query === '') {
    return null;
  }
  let expression;
  try {
    expression = new RegExp(query, 'i');
  } catch {
    return null;
  }
  const known = new Map();
  return (frame) => {
    if (!known.has(frame)) {
      known.set(frame, expression.test(frames.names[frame]));
    }
    return known.get(frame);
  };
}

// Returns a test whether `isMeant` holds for one of a sample's frames: on its stack, folded ones
// included, in the groups above it, or the lock waited for.
export function sampleTest(frames, recordings, isMeant, { hasNames, roots }) {
  const known = new Map(recordings.map((recording) => [recording, {
    nodes: matchingNodes(recording, isMeant),
    names: recording.names.map((name) => hasNames && name !== '' && isMeant(frames.intern(name, '', WAITED))),
  }]));
  return (recording, samples, index) => {
    const { nodes, names } = known.get(recording);
    return nodes[samples.node[index]] === 1 || names[samples.name[index]]
      || framesAbove(frames, recording, samples, index, roots).some(isMeant);
  };
}

export function notSampledFrame(frames) {
  return frames.intern(NOT_SAMPLED, '', UNKNOWN);
}

// The weight of a range's samples that pass `isWanted`; null passes all.
export function weightOf({ recording, fromUs, toUs }, view, isWanted) {
  const samples = recording.samples[view.kind];
  let sum = 0;
  eachSample(recording, view, fromUs, toUs, (index, weight) => {
    if (isWanted === null || isWanted(recording, samples, index)) {
      sum += weight;
    }
  });
  return sum;
}

// The tree of weights that a flame graph draws, made from the samples of a time range; or of two, for a difference.

import { GROUP, WAITED, eachSample } from './data.js';

// Weights of the first range are `base...`; without a comparison they stay 0.
export class Node {
  constructor(frame, parent) {
    this.frame = frame;
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.children = new Map();
    this.total = 0;
    this.self = 0;
    this.baseTotal = 0;
    this.baseSelf = 0;
    this.inlined = 0;
    this.line = 0;
    this.lines = null;
  }

  child(key, frame) {
    let child = this.children.get(key);
    if (child === undefined) {
      child = new Node(frame, this);
      this.children.set(key, child);
    }
    return child;
  }

  // Most nodes have one line: a map only for those with more.
  addLine(line, weight) {
    if (this.lines !== null) {
      this.lines.set(line, (this.lines.get(line) ?? 0) + weight);
    } else if (this.line === 0 || this.line === line) {
      this.line = line;
    } else {
      this.lines = new Map([[this.line, this.total + this.baseTotal - weight], [line, weight]]);
    }
  }
}

// `ranges`: [{ recording, fromUs, toUs, isBase }]. `options`: roots (`none`, `thread`, `activity`), isReversed, hasLines,
// hasNames (what was waited for as a frame of its own), and isWanted(recording, samples, index) to leave samples out.
export function buildTree(frames, view, ranges, options) {
  const root = new Node(-1, null);
  for (const range of ranges) {
    for (const group of groupsOf(view, range, options)) {
      insert(frames, root, range, group, options);
    }
  }
  return root;
}

// Samples with the same path count together: a path is walked once. `group.sample` is one of them.
function groupsOf(view, { recording, fromUs, toUs }, options) {
  const groups = new Map();
  const samples = recording.samples[view.kind];
  const { threads, names, activities, stages } = recording;
  eachSample(recording, view, fromUs, toUs, (index, weight) => {
    if (!options.isWanted(recording, samples, index)) {
      return;
    }
    let key = samples.node[index];
    key = key * names.length + (options.hasNames ? samples.name[index] : 0);
    if (options.roots === 'thread') {
      key = key * threads.length + samples.thread[index];
    } else if (options.roots === 'activity') {
      key = (key * activities.length + samples.activity[index]) * stages.length + samples.stage[index];
    }
    const group = groups.get(key);
    if (group === undefined) {
      groups.set(key, { sample: index, samples, weight });
    } else {
      group.weight += weight;
    }
  });
  return groups.values();
}

function insert(frames, root, range, { sample, samples, weight }, options) {
  const { recording, isBase } = range;
  const { parent, frame, line, isInlined } = recording.nodes;
  const path = [];
  const name = recording.names[samples.name[sample]];
  if (options.hasNames && name !== '') {
    path.push({ frame: frames.intern(name, '', WAITED), line: 0, isInlined: 0 });
  }
  for (let node = samples.node[sample]; node !== 0; node = parent[node]) {
    path.push({ frame: frame[node], line: line[node], isInlined: isInlined[node] });
  }
  if (!options.isReversed) {
    path.reverse();
  }
  path.unshift(...groupFrames(frames, recording, samples, sample, options.roots));

  let at = root;
  add(root, weight, isBase);
  for (const step of path) {
    const key = options.hasLines ? step.frame * 0x100000 + step.line : step.frame;
    at = at.child(key, step.frame);
    add(at, weight, isBase);
    if (step.isInlined) {
      at.inlined += weight;
    }
    if (step.line > 0) {
      at.addLine(step.line, weight);
    }
  }
  if (isBase) {
    at.baseSelf += weight;
  } else {
    at.self += weight;
  }
}

function add(node, weight, isBase) {
  if (isBase) {
    node.baseTotal += weight;
  } else {
    node.total += weight;
  }
}

function groupFrames(frames, recording, samples, sample, roots) {
  const group = (name) => ({ frame: frames.intern(name, '', GROUP), line: 0, isInlined: 0 });
  if (roots === 'thread') {
    const [id, name] = recording.threads[samples.thread[sample]];
    return [group(`${name} (${id})`)];
  }
  if (roots === 'activity') {
    const stage = recording.stages[samples.stage[sample]];
    const activity = group(recording.activities[samples.activity[sample]]);
    return stage === 'none' ? [activity] : [activity, group(stage)];
  }
  return [];
}

// The weight under frames that match, each part counted once however many frames of its path match.
export function matchedWeight(root, isFrameMatching) {
  let sum = 0;
  const open = [root];
  while (open.length > 0) {
    const node = open.pop();
    if (node.frame >= 0 && isFrameMatching(node.frame)) {
      sum += node.total;
    } else {
      open.push(...node.children.values());
    }
  }
  return sum;
}

// By frame: the weight that ends in it (`self`), and that of all paths with it (`total`, recursion counted once).
export function frameWeights(root) {
  const weights = new Map();
  const onPath = new Set();
  const visit = (node) => {
    const isFirst = node.frame >= 0 && !onPath.has(node.frame);
    if (node.frame >= 0) {
      let entry = weights.get(node.frame);
      if (entry === undefined) {
        entry = { frame: node.frame, self: 0, total: 0 };
        weights.set(node.frame, entry);
      }
      entry.self += node.self;
      if (isFirst) {
        entry.total += node.total;
        onPath.add(node.frame);
      }
    }
    for (const child of node.children.values()) {
      visit(child);
    }
    if (isFirst) {
      onPath.delete(node.frame);
    }
  };
  visit(root);
  return [...weights.values()];
}

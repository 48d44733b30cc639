// The tree of weights that a flame graph draws, made from the samples of a time range; or of two, for a difference.

import { GROUP, WAITED, eachSample } from './data.js';

const LINES_MAX = 0x100000;

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
    for (const group of groupsOf(frames, view, range, options)) {
      const insert = options.isReversed ? insertReversed : insertTree;
      insert(root, range, group, options);
    }
  }
  return root;
}

// The weight of each of the recording's nodes by what stands above it: `{ above: [frame ...], weights, named }`. What ends in
// something waited for is in `named`, by node and then by the name's frame.
function groupsOf(frames, view, { recording, fromUs, toUs }, options) {
  const groups = new Map();
  const samples = recording.samples[view.kind];
  const nameFrames = recording.names.map((name) => (options.hasNames && name !== '' ? frames.intern(name, '', WAITED) : -1));
  eachSample(recording, view, fromUs, toUs, (index, weight) => {
    if (!options.isWanted(recording, samples, index)) {
      return;
    }
    const above = framesAbove(frames, recording, samples, index, options.roots);
    const key = above.join(' ');
    let group = groups.get(key);
    if (group === undefined) {
      group = { above, weights: new Float64Array(recording.nodes.parent.length), named: new Map() };
      groups.set(key, group);
    }
    const node = samples.node[index];
    const nameFrame = nameFrames[samples.name[index]];
    if (nameFrame < 0) {
      group.weights[node] += weight;
      return;
    }
    const names = group.named.get(node) ?? new Map();
    names.set(nameFrame, (names.get(nameFrame) ?? 0) + weight);
    group.named.set(node, names);
  });
  return groups.values();
}

function framesAbove(frames, recording, samples, index, roots) {
  if (roots === 'thread') {
    const [id, name] = recording.threads[samples.thread[index]];
    return [frames.intern(`${name} (${id})`, '', GROUP)];
  }
  if (roots === 'activity') {
    const activity = frames.intern(recording.activities[samples.activity[index]], '', GROUP);
    const stage = recording.stages[samples.stage[index]];
    return stage === 'none' ? [activity] : [activity, frames.intern(stage, '', GROUP)];
  }
  return [];
}

// The recording has a tree already, whose parents come before their children: each node is visited once.
function insertTree(root, { recording, isBase }, { above, weights, named }, options) {
  const { parent, frame, line, isInlined } = recording.nodes;
  const totals = weights.slice();
  named.forEach((names, node) => names.forEach((weight) => {
    totals[node] += weight;
  }));
  for (let node = totals.length - 1; node > 0; node -= 1) {
    totals[parent[node]] += totals[node];
  }
  const made = [enter(root, above, totals[0], isBase)];
  for (let node = 0; node < totals.length; node += 1) {
    if (totals[node] > 0) {
      if (node > 0) {
        made[node] = step(made[parent[node]], frame[node], line[node], isInlined[node], totals[node], isBase, options);
      }
      end(made[node], weights[node], isBase);
    }
  }
  named.forEach((names, node) => names.forEach((weight, nameFrame) => {
    end(step(made[node], nameFrame, 0, 0, weight, isBase, options), weight, isBase);
  }));
}

// From where samples ended up to the root: each such place is a path of its own.
function insertReversed(root, { recording, isBase }, { above, weights, named }, options) {
  const { parent, frame, line, isInlined } = recording.nodes;
  const insert = (leaf, nameFrame, weight) => {
    let at = enter(root, above, weight, isBase);
    if (nameFrame >= 0) {
      at = step(at, nameFrame, 0, 0, weight, isBase, options);
    }
    for (let node = leaf; node !== 0; node = parent[node]) {
      at = step(at, frame[node], line[node], isInlined[node], weight, isBase, options);
    }
    end(at, weight, isBase);
  };
  weights.forEach((weight, node) => weight > 0 && insert(node, -1, weight));
  named.forEach((names, node) => names.forEach((weight, nameFrame) => insert(node, nameFrame, weight)));
}

function enter(root, above, weight, isBase) {
  add(root, weight, isBase);
  let at = root;
  for (const frame of above) {
    at = at.child(frame, frame);
    add(at, weight, isBase);
  }
  return at;
}

function step(from, frame, line, isInlined, weight, isBase, options) {
  const node = from.child(options.hasLines ? frame * LINES_MAX + line : frame, frame);
  add(node, weight, isBase);
  if (isInlined) {
    node.inlined += weight;
  }
  if (line > 0) {
    node.addLine(line, weight);
  }
  return node;
}

function end(node, weight, isBase) {
  if (isBase) {
    node.baseSelf += weight;
  } else {
    node.self += weight;
  }
}

function add(node, weight, isBase) {
  if (isBase) {
    node.baseTotal += weight;
  } else {
    node.total += weight;
  }
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

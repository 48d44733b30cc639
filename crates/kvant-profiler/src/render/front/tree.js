// The tree of weights that a flame graph draws, from the samples of one time range, or of two to
// compare.

import { WAITED, eachSample, framesAbove } from './data.js';

const LINES_MAX = 0x100000;

// A box. `total` and `self` are weights; `square` (the sum of the squares of the samples' weights)
// and `samples` (their number) estimate the noise. In a comparison `base...` are those of the first
// range.
export class Node {
  constructor(frame, parent) {
    this.frame = frame;
    this.parent = parent;
    this.depth = parent === null ? 0 : parent.depth + 1;
    this.children = new Map();
    this.total = 0;
    this.self = 0;
    this.square = 0;
    this.samples = 0;
    this.baseTotal = 0;
    this.baseSelf = 0;
    this.baseSquare = 0;
    this.baseSamples = 0;
    this.inlined = 0;
    this.folded = 0;
    this.hasFoldedMatch = false;
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

  add({ weight, square, samples }, isBase) {
    if (isBase) {
      this.baseTotal += weight;
      this.baseSquare += square;
      this.baseSamples += samples;
    } else {
      this.total += weight;
      this.square += square;
      this.samples += samples;
    }
  }

  end(weight, isBase) {
    if (isBase) {
      this.baseSelf += weight;
    } else {
      this.self += weight;
    }
  }

  // Most nodes have one line: only others get a map.
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

// Sums over samples: weights, their squares, and the number of samples.
class Sums {
  constructor(rowCount) {
    this.weight = new Float64Array(rowCount);
    this.square = new Float64Array(rowCount);
    this.samples = new Float64Array(rowCount);
  }

  add(row, { weight, square, samples }) {
    this.weight[row] += weight;
    this.square[row] += square;
    this.samples[row] += samples;
  }

  at(row) {
    return { weight: this.weight[row], square: this.square[row], samples: this.samples[row] };
  }
}

// `ranges`: [{ recording, fromUs, toUs, isBase, tree, foldedMatches, notSampled }], with `tree`
// from fold.js and `notSampled` { frame, weight }. `options`: roots (`none`, `thread`, `activity`),
// isReversed, hasLines, hasNames (locks and queues waited for become frames), and
// isWanted(recording, samples, index), which selects samples.
export function buildTree(frames, view, ranges, options) {
  const root = new Node(-1, null);
  for (const range of ranges) {
    for (const group of groupsOf(frames, view, range, options)) {
      const insert = options.isReversed ? insertReversed : insertTree;
      insert(root, range, group, options);
    }
    const { frame, weight } = range.notSampled;
    if (weight > 0) {
      enter(root, [frame], { weight, square: 0, samples: 0 }, range.isBase).end(weight, range.isBase);
    }
  }
  return root;
}

// The self weights of the range's nodes, grouped by the frames above the stacks:
// `{ above: [frame ...], ends, named }`. Waits with a name are in `named`, by node and then by the
// name's frame.
function groupsOf(frames, view, { recording, fromUs, toUs, tree }, options) {
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
      group = { above, ends: new Sums(tree.parent.length), named: new Map() };
      groups.set(key, group);
    }
    const node = tree.of[samples.node[index]];
    const nameFrame = nameFrames[samples.name[index]];
    const sum = { weight, square: weight * weight, samples: 1 };
    if (nameFrame < 0) {
      group.ends.add(node, sum);
      return;
    }
    const names = group.named.get(node) ?? new Map();
    const before = names.get(nameFrame) ?? { weight: 0, square: 0, samples: 0 };
    names.set(nameFrame, { weight: before.weight + weight, square: before.square + sum.square, samples: before.samples + 1 });
    group.named.set(node, names);
  });
  return groups.values();
}

// Parents precede their children in the range's tree, so each node is visited once.
function insertTree(root, range, { above, ends, named }, options) {
  const { tree, isBase } = range;
  const totals = new Sums(tree.parent.length);
  for (let node = 0; node < tree.parent.length; node += 1) {
    totals.add(node, ends.at(node));
  }
  named.forEach((names, node) => names.forEach((sum) => totals.add(node, sum)));
  for (let node = tree.parent.length - 1; node > 0; node -= 1) {
    totals.add(tree.parent[node], totals.at(node));
  }
  const made = [enter(root, above, totals.at(0), isBase)];
  for (let node = 0; node < tree.parent.length; node += 1) {
    if (totals.weight[node] > 0) {
      if (node > 0) {
        made[node] = step(made[tree.parent[node]], range, node, totals.at(node), options);
      }
      made[node].end(ends.weight[node], isBase);
    }
  }
  named.forEach((names, node) => names.forEach((sum, nameFrame) =>
    descend(made[node], [nameFrame], sum, isBase).end(sum.weight, isBase)));
}

// From the innermost frames up to the root: each innermost node is a path of its own.
function insertReversed(root, range, { above, ends, named }, options) {
  const { tree, isBase } = range;
  const insert = (leaf, nameFrame, sum) => {
    let at = enter(root, above, sum, isBase);
    if (nameFrame >= 0) {
      at = descend(at, [nameFrame], sum, isBase);
    }
    for (let node = leaf; node !== 0; node = tree.parent[node]) {
      at = step(at, range, node, sum, options);
    }
    at.end(sum.weight, isBase);
  };
  ends.weight.forEach((weight, node) => weight > 0 && insert(node, -1, ends.at(node)));
  named.forEach((names, node) => names.forEach((sum, nameFrame) => insert(node, nameFrame, sum)));
}

function enter(root, above, sum, isBase) {
  root.add(sum, isBase);
  return descend(root, above, sum, isBase);
}

// Adds a sum to a path of frames that are no code; returns the path's last node.
function descend(from, path, sum, isBase) {
  let at = from;
  for (const frame of path) {
    at = at.child(frame, frame);
    at.add(sum, isBase);
  }
  return at;
}

function step(from, { tree, isBase, foldedMatches }, place, sum, options) {
  const [frame, line] = [tree.frame[place], tree.line[place]];
  const node = from.child(options.hasLines ? frame * LINES_MAX + line : frame, frame);
  node.add(sum, isBase);
  node.folded = Math.max(node.folded, tree.folded[place]);
  node.hasFoldedMatch ||= foldedMatches !== null && foldedMatches[place] === 1;
  if (tree.isInlined[place]) {
    node.inlined += sum.weight;
  }
  if (line > 0) {
    node.addLine(line, sum.weight);
  }
  return node;
}

// By frame: its own weight (`self`), and that of all paths that contain it (`total`, recursion
// counted once).
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

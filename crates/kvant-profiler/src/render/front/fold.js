// "Own code only": a recording's tree without library frames.
//
// A stack keeps its frames of own code and its innermost frame, which ran, allocated or waited. The
// others are folded.

import { OWN } from './data.js';

// The unchanged tree. `of` maps a node of the recording to its node in the result.
export function wholeTree({ nodes }) {
  const count = nodes.parent.length;
  return { ...nodes, of: Uint32Array.from({ length: count }, (_, node) => node), folded: new Uint32Array(count) };
}

// The tree of own code. `folded`: the largest number of frames folded between a node and its
// parent.
export function ownTree(frames, { nodes }) {
  const count = nodes.parent.length;
  const tree = { parent: [0], frame: [0], line: [0], isInlined: [0], folded: [0], of: new Uint32Array(count) };
  const known = new Map();
  const add = (parent, node, skippedCount) => {
    const key = `${parent} ${nodes.frame[node]} ${nodes.line[node]} ${nodes.isInlined[node]}`;
    let made = known.get(key);
    if (made === undefined) {
      made = tree.parent.length;
      known.set(key, made);
      tree.parent.push(parent);
      for (const column of ['frame', 'line', 'isInlined']) {
        tree[column].push(nodes[column][node]);
      }
      tree.folded.push(0);
    }
    tree.folded[made] = Math.max(tree.folded[made], skippedCount);
    return made;
  };
  // The innermost own frame of each stack, and the number of other frames below it.
  const own = new Uint32Array(count);
  const others = new Uint32Array(count);
  for (let node = 1; node < count; node += 1) {
    const caller = nodes.parent[node];
    tree.of[node] = add(own[caller], node, others[caller]);
    const isOwn = frames.origins[nodes.frame[node]] === OWN;
    own[node] = isOwn ? tree.of[node] : own[caller];
    others[node] = isOwn ? 0 : others[caller] + 1;
  }
  return tree;
}

// For each node of `tree`, whether a frame folded above it matches.
export function foldedMatches(frames, { nodes }, tree, isMatching) {
  const matches = new Uint8Array(tree.parent.length);
  const isOpen = new Uint8Array(nodes.parent.length);
  for (let node = 1; node < isOpen.length; node += 1) {
    const caller = nodes.parent[node];
    const frame = nodes.frame[node];
    matches[tree.of[node]] |= isOpen[caller];
    isOpen[node] = frames.origins[frame] !== OWN && (isOpen[caller] === 1 || isMatching(frame)) ? 1 : 0;
  }
  return matches;
}

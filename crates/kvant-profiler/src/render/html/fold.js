// Own code only: a recording's tree without the frames of libraries between those of the program.
//
// A stack keeps its frames of own code and its innermost frame, which is what ran, allocated or
// waited. The others are folded away.

import { OWN } from './data.js';

// The tree as it is; `of` leads from a recording's node to the one that stands for it.
export function wholeTree({ nodes }) {
  const count = nodes.parent.length;
  return { ...nodes, of: Uint32Array.from({ length: count }, (_, node) => node), folded: new Uint32Array(count) };
}

// The tree of own code. `folded`: how many frames are folded away between a node and its parent, at
// most.
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
  // The innermost own frame of each stack, and how many others stand below it.
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

// Of each node of `tree`, whether a frame that is folded away above it matches.
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

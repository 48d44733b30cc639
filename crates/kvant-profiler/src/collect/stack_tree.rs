//! The stack tree of a recording while it grows: equal callers share nodes.
//!
//! Invariants: those of [`Recording`](crate::recording::Recording): the first node is the root, and
//! parents precede their children.
//!
//! Threads: one, the drain.

use crate::recording::{Frame, Stack};
use indexmap::IndexSet;
use rustc_hash::FxBuildHasher;

/// Limits the tree to about 32 MB.
const NODES_MAX: usize = 1 << 20;

/// The parent of the root while the tree grows, so that no other node equals the root.
const NO_PARENT: u32 = u32::MAX;

/// The hash need not resist attacks: the keys are addresses of this process.
pub(super) struct StackTree {
    frames: IndexSet<Frame, FxBuildHasher>,
    nodes: IndexSet<Stack, FxBuildHasher>,
}

impl StackTree {
    pub(super) fn new() -> StackTree {
        let root = Frame { address: 0, is_kernel: false, is_return: false };
        StackTree {
            frames: IndexSet::from_iter([root]),
            nodes: IndexSet::from_iter([Stack { parent: NO_PARENT, frame: 0 }]),
        }
    }

    /// The node of a stack, given from the outermost frame inwards; `None` if the tree is full.
    pub(super) fn node(&mut self, frames: impl Iterator<Item = Frame>) -> Option<u32> {
        let mut parent = 0;
        for frame in frames {
            let frame = self.frames.insert_full(frame).0 as u32;
            let stack = Stack { parent, frame };
            parent = match self.nodes.len() < NODES_MAX {
                true => self.nodes.insert_full(stack).0,
                false => self.nodes.get_index_of(&stack)?,
            } as u32;
        }
        Some(parent)
    }

    pub(super) fn finish(self) -> (Vec<Frame>, Vec<Stack>) {
        let mut nodes: Vec<Stack> = self.nodes.into_iter().collect();
        nodes[0].parent = 0;
        (self.frames.into_iter().collect(), nodes)
    }
}

#[cfg(test)]
mod tests;

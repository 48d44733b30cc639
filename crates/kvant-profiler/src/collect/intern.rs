//! The tree of stacks of a recording while it grows: equal callers share nodes.
//!
//! Invariants: those of [`Recording`](crate::recording::Recording): the first node is the root,
//! parents come before their children.
//!
//! Threads: one, the drain.

use crate::recording::{Frame, Stack};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Nodes of the tree: 16 MB, and as much again to find them.
const NODES_MAX: usize = 1 << 20;

pub(super) struct Interner {
    frames: Vec<Frame>,
    stacks: Vec<Stack>,
    frame_indexes: HashMap<Frame, u32, BuildHasherDefault<Mixer>>,
    children: HashMap<(u32, Frame), u32, BuildHasherDefault<Mixer>>,
}

impl Interner {
    pub(super) fn new() -> Interner {
        let root = Frame { address: 0, is_kernel: false, is_return: false };
        Interner {
            frames: vec![root],
            stacks: vec![Stack { parent: 0, frame: 0 }],
            frame_indexes: HashMap::from_iter([(root, 0)]),
            children: HashMap::default(),
        }
    }

    /// The node of a stack, given from the outermost frame inwards. `None` when there is no room
    /// for more nodes.
    pub(super) fn node(&mut self, frames: impl Iterator<Item = Frame>) -> Option<u32> {
        let mut node = 0;
        for frame in frames {
            node = match self.children.get(&(node, frame)) {
                Some(&child) => child,
                None => self.add(node, frame)?,
            };
        }
        Some(node)
    }

    fn add(&mut self, parent: u32, frame: Frame) -> Option<u32> {
        if self.stacks.len() >= NODES_MAX {
            return None;
        }
        let next_frame = self.frames.len() as u32;
        let frame_index = *self.frame_indexes.entry(frame).or_insert(next_frame);
        if frame_index == next_frame {
            self.frames.push(frame);
        }
        let node = self.stacks.len() as u32;
        self.stacks.push(Stack { parent, frame: frame_index });
        self.children.insert((parent, frame), node);
        Some(node)
    }

    /// The frames and the nodes.
    pub(super) fn finish(self) -> (Vec<Frame>, Vec<Stack>) {
        (self.frames, self.stacks)
    }
}

/// Mixes the numbers of a key. They come from our own stacks, so nobody can choose colliding ones.
#[derive(Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x9e37_79b9_7f4a_7c15) * 0xd6e8_feb8_6659_fd93;
        self.0 = product as u64 ^ (product >> 64) as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests;

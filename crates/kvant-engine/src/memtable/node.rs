//! The memory layout of a node: one piece of the arena.
//!
//! ```text
//! [older] next[height-1] ... next[1] next[0] | trailer  value_bytes  key_bytes | key ... | value ...
//!                                            ^ NodePtr
//! ```
//!
//! As in RocksDB's `InlineSkipList`, the links lie in front of the key, so that the lowest one
//! shares its cache line. Only a node whose key had a version before has `older`: the top bit of
//! `value_bytes` says so.

use super::arena::{ALIGN, ArenaWriter};
use crate::format::InternalKeyRef;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicPtr, Ordering};

/// The fixed part of a node. Handled by raw pointers only, because a reference to it would not
/// cover what lies before and after it.
#[repr(C)]
pub(super) struct NodeHeader {
    trailer: u64,
    value_bytes: u32,
    key_bytes: u32,
}

pub(super) type NodePtr = NonNull<NodeHeader>;
pub(super) type Link = AtomicPtr<NodeHeader>;

const HAS_OLDER: u32 = 1 << 31;

const _: () = assert!(align_of::<NodeHeader>() <= ALIGN && align_of::<Link>() <= ALIGN);
const _: () = assert!(size_of::<Link>().is_multiple_of(align_of::<NodeHeader>()));

/// Writes a node that is not linked anywhere. `older` is the version of its key before it.
pub(super) fn new_node(
    arena: &mut ArenaWriter,
    height: usize,
    key: InternalKeyRef<'_>,
    value: &[u8],
    older: Option<NodePtr>,
) -> NodePtr {
    let key_bytes = u32::try_from(key.user_key.len()).expect("keys are at most 16 KiB");
    let value_bytes = u32::try_from(value.len()).expect("values are at most 1 GiB");
    assert!(value_bytes < HAS_OLDER, "values are at most 1 GiB");
    let value_bytes = value_bytes | if older.is_some() { HAS_OLDER } else { 0 };
    let slot_count = height + usize::from(older.is_some());
    let tower_bytes = slot_count * size_of::<Link>();
    let piece =
        arena.allocate(tower_bytes + size_of::<NodeHeader>() + key.user_key.len() + value.len());
    // SAFETY: the piece is ours alone until the node is linked, and is as large as what is written:
    // tower, header, key, value. It is aligned for links, and the tower's size keeps the header
    // aligned.
    unsafe {
        for slot in 0..slot_count {
            piece.cast::<Link>().add(slot).write(Link::new(ptr::null_mut()));
        }
        if let Some(older) = older {
            piece.cast::<Link>().write(Link::new(older.as_ptr()));
        }
        let node = piece.add(tower_bytes).cast::<NodeHeader>();
        node.write(NodeHeader { trailer: key.trailer, value_bytes, key_bytes });
        let data = node.as_ptr().add(1).cast::<u8>();
        ptr::copy_nonoverlapping(key.user_key.as_ptr(), data, key.user_key.len());
        ptr::copy_nonoverlapping(value.as_ptr(), data.add(key.user_key.len()), value.len());
        node
    }
}

/// The key of a node.
///
/// # Safety
/// `node` is a node of a list that is alive for `'a`, and was published to this thread.
#[inline]
pub(super) unsafe fn key_of<'a>(node: NodePtr) -> InternalKeyRef<'a> {
    // SAFETY: header and key were written before the node was published, and do not change
    // (invariants 1 and 5 of the list).
    unsafe {
        let NodeHeader { trailer, key_bytes, .. } = node.read();
        let user_key = slice::from_raw_parts(data_of(node), key_bytes as usize);
        InternalKeyRef { user_key, trailer }
    }
}

/// The value of a node.
///
/// # Safety
/// As for [`key_of`].
#[inline]
pub(super) unsafe fn value_of<'a>(node: NodePtr) -> &'a [u8] {
    // SAFETY: as in `key_of`.
    unsafe {
        let NodeHeader { value_bytes, key_bytes, .. } = node.read();
        let value_bytes = value_bytes & !HAS_OLDER;
        slice::from_raw_parts(data_of(node).add(key_bytes as usize), value_bytes as usize)
    }
}

/// Length of a node's header, key and value.
///
/// # Safety
/// As for [`key_of`].
#[inline]
pub(super) unsafe fn bytes_of(node: NodePtr) -> usize {
    // SAFETY: as in `key_of`.
    let NodeHeader { value_bytes, key_bytes, .. } = unsafe { node.read() };
    size_of::<NodeHeader>() + key_bytes as usize + (value_bytes & !HAS_OLDER) as usize
}

/// The version before this one of the node's key, if the index knew it. `height` is the node's.
///
/// # Safety
/// As for [`key_of`].
#[inline]
pub(super) unsafe fn older_of(node: NodePtr, height: usize) -> Option<NodePtr> {
    // SAFETY: as in `key_of`. The slot above the highest link was written by `new_node`.
    unsafe {
        let NodeHeader { value_bytes, .. } = node.read();
        if value_bytes & HAS_OLDER == 0 {
            return None;
        }
        NonNull::new(node.cast::<Link>().sub(height + 1).as_ref().load(Ordering::Relaxed))
    }
}

/// Where the key starts; the value follows it.
///
/// # Safety
/// `node` is a node of a list that is alive.
#[inline]
unsafe fn data_of(node: NodePtr) -> *const u8 {
    // SAFETY: key and value follow the header in the same piece of the arena.
    unsafe { node.as_ptr().add(1).cast::<u8>() }
}

/// The node after another in `level`.
///
/// # Safety
/// As for [`link_of`].
#[inline]
pub(super) unsafe fn next_of(node: NodePtr, level: usize) -> *mut NodeHeader {
    // SAFETY: the caller's promise. Acquire pairs with the release of the insert.
    unsafe { link_of(node, level) }.load(Ordering::Acquire)
}

/// The link of a node in `level`.
///
/// # Safety
/// `node` is a node of a list that is alive for `'a`, with a height above `level`.
#[inline]
pub(super) unsafe fn link_of<'a>(node: NodePtr, level: usize) -> &'a Link {
    // SAFETY: the links lie in front of the header, lowest last, in the same piece of the arena,
    // and were written by `new_node`.
    unsafe { node.cast::<Link>().sub(level + 1).as_ref() }
}

//! Crash images: what survives a power loss, by the rules of [`super`].

use super::crash_style::CrashStyle;
use super::disk::{Disk, InodeCell, SyncTarget, new_inode, touches};
use super::inode::{Edit, Inode};
use super::journal::Fate;
use super::tree::{Change, Node, Tree};
use crate::rng::Rng;
use std::collections::HashSet;
use std::sync::Arc;

/// The unit that disks write atomically.
const SECTOR_BYTES: u64 = 512;

/// The disk that a restarted machine finds. The sync `completed` was in progress and took effect.
pub(super) fn image(
    disk: &Disk,
    completed: Option<&SyncTarget>,
    style: CrashStyle,
    mut rng: Rng,
) -> Disk {
    assert!(disk.has_journal, "a disk in memory has no crash images");
    let names = surviving_names(disk, completed, style, &mut rng);
    // Tree order makes the draws a function of the seed.
    let names = names.map_reachable(&mut |cell| {
        let is_completed =
            matches!(completed, Some(SyncTarget::File(synced)) if Arc::ptr_eq(synced, cell));
        new_inode(surviving_contents(&cell.lock(), is_completed, style, &mut rng))
    });
    Disk::with_names(names, disk.capacity_bytes, rng)
}

/// Which of the open changes survive.
enum Draw {
    None,
    All,
    /// This many of the oldest.
    First(u64),
    /// An independent draw for each.
    Any,
}

impl Draw {
    fn new(style: CrashStyle, open_count: usize, rng: &mut Rng) -> Draw {
        match style {
            CrashStyle::DropUnsynced => Draw::None,
            CrashStyle::KeepAll => Draw::All,
            CrashStyle::Random => match rng.below(4) {
                0 => Draw::None,
                1 => Draw::All,
                2 => Draw::First(rng.below(open_count as u64 + 1)),
                _ => Draw::Any,
            },
        }
    }
}

fn surviving_names(
    disk: &Disk,
    completed: Option<&SyncTarget>,
    style: CrashStyle,
    rng: &mut Rng,
) -> Tree<InodeCell> {
    let operations: Vec<_> = disk.name_journal.entries().collect();
    let mut draw = Draw::new(style, operations.len(), rng);
    let mut survives: Vec<bool> = Vec::with_capacity(operations.len());
    for (changes, fate) in &operations {
        let is_completed =
            matches!(completed, Some(SyncTarget::Dir(dir)) if touches(changes, *dir));
        survives.push(match (fate, &mut draw) {
            (Fate::Durable, _) => true,
            (Fate::Pending, _) if is_completed => true,
            (_, Draw::None) => false,
            (_, Draw::All) => true,
            (_, Draw::First(left)) => {
                let is_first = *left > 0;
                *left = left.saturating_sub(1);
                is_first
            }
            (_, Draw::Any) => rng.one_in(2),
        });
    }

    keep_dependencies(&operations, &mut survives);
    let mut names = disk.durable_names.clone();
    for (survives, (changes, _)) in survives.iter().zip(&operations) {
        if *survives {
            for change in changes {
                names.apply(change);
            }
        }
    }
    names
}

/// Marks the operations that survivors depend on as survivors.
fn keep_dependencies(operations: &[&(Vec<Change<InodeCell>>, Fate)], survives: &mut [bool]) {
    let mut needed_names = HashSet::new();
    let mut needed_dirs = HashSet::new();
    for (survives, (changes, _)) in survives.iter_mut().zip(operations).rev() {
        let is_needed_dir = changes.iter().any(
            |change| matches!(&change.node, Some(Node::Dir(child)) if needed_dirs.contains(child)),
        );
        // Earlier changes of the same name share a directory block with the survivor.
        *survives |= is_needed_dir
            || changes.iter().any(|change| needed_names.contains(&(change.dir, &change.name)));
        if *survives {
            needed_names.extend(changes.iter().map(|change| (change.dir, &change.name)));
            let crosses_dirs = changes.iter().any(|change| change.dir != changes[0].dir);
            if crosses_dirs || is_needed_dir {
                needed_dirs.extend(changes.iter().map(|change| change.dir));
            }
        }
    }
}

/// The remains of an edit: any number of pieces.
struct Survivor {
    pieces: Vec<Edit>,
    /// Whether it may be reordered with its neighbours.
    is_movable: bool,
}

fn surviving_contents(
    inode: &Inode,
    is_completed: bool,
    style: CrashStyle,
    rng: &mut Rng,
) -> Arc<Vec<u8>> {
    let edits = inode.journal.entries();
    if edits.len() == 0 {
        return Arc::clone(&inode.durable);
    }
    let mut draw = Draw::new(style, edits.len(), rng);
    let mut survivors = Vec::with_capacity(edits.len());
    for (edit, fate) in edits {
        let is_certain = *fate == Fate::Durable || (*fate == Fate::Pending && is_completed);
        let pieces = match &mut draw {
            _ if is_certain => vec![edit.clone()],
            Draw::None => Vec::new(),
            Draw::All => vec![edit.clone()],
            Draw::First(0) => {
                draw = Draw::None;
                tear(edit, rng)
            }
            Draw::First(left) => {
                *left -= 1;
                vec![edit.clone()]
            }
            Draw::Any => match rng.below(3) {
                0 => Vec::new(),
                1 => tear(edit, rng),
                _ => vec![edit.clone()],
            },
        };
        let is_movable = !is_certain && matches!(edit, Edit::Write { .. });
        survivors.push(Survivor { pieces, is_movable });
    }
    if matches!(draw, Draw::Any) && rng.one_in(2) {
        for run in survivors.chunk_by_mut(|a, b| a.is_movable && b.is_movable) {
            rng.shuffle(run);
        }
    }

    let mut contents = inode.durable.to_vec();
    for edit in survivors.iter().flat_map(|survivor| &survivor.pieces) {
        edit.apply(&mut contents).expect("no longer than the live contents once were");
    }
    Arc::new(contents)
}

/// The remains of a write that a power loss interrupts. Changes of length are metadata and are not
/// torn.
fn tear(edit: &Edit, rng: &mut Rng) -> Vec<Edit> {
    let Edit::Write { offset_bytes, bytes } = edit else {
        return if rng.one_in(2) { vec![edit.clone()] } else { Vec::new() };
    };
    let whole_len = Edit::Extend(offset_bytes + bytes.len() as u64);
    match rng.below(4) {
        // Truncated at any byte: the file grew in steps.
        0 => {
            let cut = rng.below(bytes.len() as u64 + 1) as usize;
            vec![Edit::Write { offset_bytes: *offset_bytes, bytes: bytes[..cut].to_vec() }]
        }
        // Truncated between two sectors.
        1 => {
            let sectors = sectors(*offset_bytes, bytes);
            let count = rng.below(sectors.len() as u64 + 1) as usize;
            sectors.into_iter().take(count).collect()
        }
        // Some sectors, with or without the length.
        2 => {
            let mut pieces = sectors(*offset_bytes, bytes);
            pieces.retain(|_| rng.one_in(2));
            if rng.one_in(2) {
                pieces.push(whole_len);
            }
            pieces
        }
        // The length without the bytes.
        _ => vec![whole_len],
    }
}

/// Splits a write into one write per sector.
fn sectors(offset_bytes: u64, bytes: &[u8]) -> Vec<Edit> {
    let mut sectors = Vec::new();
    let mut rest = bytes;
    let mut offset_bytes = offset_bytes;
    while !rest.is_empty() {
        let sector_rest_bytes = (SECTOR_BYTES - offset_bytes % SECTOR_BYTES) as usize;
        let (sector, after) = rest.split_at(sector_rest_bytes.min(rest.len()));
        sectors.push(Edit::Write { offset_bytes, bytes: sector.to_vec() });
        offset_bytes += sector.len() as u64;
        rest = after;
    }
    sectors
}

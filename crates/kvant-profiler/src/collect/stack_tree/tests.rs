use super::*;

fn frame(address: u64) -> Frame {
    Frame { address, is_kernel: false, is_return: true }
}

#[test]
fn equal_callers_share_nodes_and_parents_precede_children() {
    let mut tree = StackTree::new();
    let mut node = |addresses: &[u64]| tree.node(addresses.iter().map(|&address| frame(address)));
    assert_eq!(node(&[]), Some(0));
    let deep = node(&[1, 2, 3]);
    assert_eq!(node(&[1, 2, 3]), deep);
    assert_ne!(node(&[1, 3]), deep);
    assert_ne!(node(&[2, 3]), deep);
    let (frames, stacks) = tree.finish();
    // The root and three addresses; the root and 1, 1-2, 1-2-3, 1-3, 2, 2-3.
    assert_eq!((frames.len(), stacks.len()), (4, 7));
    assert_eq!(stacks[0], Stack { parent: 0, frame: 0 });
    for (index, stack) in stacks.iter().enumerate().skip(1) {
        assert!((stack.parent as usize) < index);
    }
    let mut path = Vec::new();
    let mut at = deep.expect("enough space") as usize;
    while at != 0 {
        path.push(frames[stacks[at].frame as usize].address);
        at = stacks[at].parent as usize;
    }
    assert_eq!(path, [3, 2, 1]);
}

#[test]
fn kernel_and_user_frames_at_the_same_address_differ() {
    let mut tree = StackTree::new();
    let kernel = Frame { is_kernel: true, ..frame(1) };
    let nodes = [frame(1), kernel].map(|frame| tree.node(std::iter::once(frame)));
    assert_ne!(nodes[0], nodes[1]);
}

/// A jump to a null pointer is sampled at address 0.
#[test]
fn a_frame_at_address_zero_is_not_the_root() {
    let mut tree = StackTree::new();
    let null = Frame { is_return: false, ..frame(0) };
    assert_eq!(tree.node(std::iter::once(null)), Some(1));
}

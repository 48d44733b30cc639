use super::*;

fn frame(address: u64) -> Frame {
    Frame { address, is_kernel: false, is_return: true }
}

#[test]
fn equal_callers_share_nodes_and_parents_come_first() {
    let mut interner = Interner::new();
    let mut node =
        |addresses: &[u64]| interner.node(addresses.iter().map(|&address| frame(address)));
    assert_eq!(node(&[]), Some(0));
    let deep = node(&[1, 2, 3]);
    assert_eq!(node(&[1, 2, 3]), deep);
    assert_ne!(node(&[1, 3]), deep);
    assert_ne!(node(&[2, 3]), deep);
    let (frames, stacks) = interner.finish();
    // The root and three addresses; the root and 1, 1-2, 1-2-3, 1-3, 2, 2-3.
    assert_eq!((frames.len(), stacks.len()), (4, 7));
    for (index, stack) in stacks.iter().enumerate().skip(1) {
        assert!((stack.parent as usize) < index);
    }
    let mut path = Vec::new();
    let mut at = deep.expect("there is room") as usize;
    while at != 0 {
        path.push(frames[stacks[at].frame as usize].address);
        at = stacks[at].parent as usize;
    }
    assert_eq!(path, [3, 2, 1]);
}

#[test]
fn an_address_of_the_kernel_is_another_frame_than_the_same_of_the_process() {
    let mut interner = Interner::new();
    let kernel = Frame { is_kernel: true, ..frame(1) };
    let nodes = [frame(1), kernel].map(|frame| interner.node(std::iter::once(frame)));
    assert_ne!(nodes[0], nodes[1]);
}

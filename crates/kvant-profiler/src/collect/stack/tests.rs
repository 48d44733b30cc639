use super::*;

#[test]
fn a_threads_stack_ends_above_its_frames_in_the_same_mapping() {
    learn();
    let here = arch::frame_pointer();
    let extent = StackBounds::new().extent_from(here);
    assert!(extent.start == here && extent.end > here);
    let maps = mappings();
    let mapping = mapping_of(&maps, here).expect("the stack is mapped");
    assert!(mapping.contains(extent.end - 1));
}

#[test]
fn the_main_threads_stack_is_known_after_learning() {
    learn();
    let maps = mappings();
    let main = maps.iter().find(|mapping| mapping.name == "[stack]");
    assert_eq!(main.expect("a mapping of the stack").end, MAIN_END.load(Ordering::Relaxed));
}

#[test]
fn an_unknown_stack_is_read_to_the_end_of_its_page_until_the_drain_looks_it_up() {
    let here = arch::frame_pointer();
    let unknown = StackBounds::new();
    unknown.end.store(1, Ordering::Relaxed);
    let page_end = (here + 1).next_multiple_of(PAGE_BYTES);
    assert_eq!(unknown.extent_from(here).end, page_end);

    let unknown = StackBounds::new();
    unknown.probe.store(here, Ordering::Relaxed);
    unknown.resolve();
    let extent = unknown.extent_from(here);
    let maps = mappings();
    assert_eq!(Some(extent.end), mapping_of(&maps, here).map(|mapping| mapping.end));
}

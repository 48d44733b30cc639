use super::*;

#[test]
fn a_threads_stack_ends_above_all_of_its_frames_in_the_same_mapping() {
    learn();
    let stack = Stack::new();
    let here = arch::frame_pointer();
    let extent = stack.from(here);
    assert!(extent.start == here && extent.end > here);
    let maps = read_mappings();
    let mapping = mapping_of(&maps, here).expect("the stack is mapped");
    assert!(mapping.contains(extent.end - 1));
}

#[test]
fn the_main_threads_stack_is_known_after_learning() {
    learn();
    let maps = read_mappings();
    let main = maps.iter().find(|mapping| mapping.is_main_stack);
    assert_eq!(main.expect("there is one").end, MAIN_END.load(Ordering::Relaxed));
}

#[test]
fn an_unknown_stack_is_read_to_the_end_of_the_page_until_the_drain_has_looked_it_up() {
    let here = arch::frame_pointer();
    let unknown = Stack::new();
    unknown.end.store(1, Ordering::Relaxed);
    let page_end = (here + 1).next_multiple_of(PAGE_BYTES);
    assert_eq!(unknown.from(here).end, page_end);

    let unknown = Stack::new();
    unknown.probe.store(here, Ordering::Relaxed);
    unknown.resolve();
    let extent = unknown.from(here);
    let maps = read_mappings();
    assert_eq!(Some(extent.end), mapping_of(&maps, here).map(|mapping| mapping.end));
}

#[test]
fn lines_of_mappings_are_understood() {
    let line = "7ffc0c12d000-7ffc0c14e000 rw-p 00000000 00:00 0                          [stack]";
    let mapping = Mapping::parse(line).expect("a mapping");
    assert_eq!((mapping.start, mapping.end), (0x7ffc_0c12_d000, 0x7ffc_0c14_e000));
    assert!(mapping.is_main_stack);
    let line = "55d0c0000000-55d0c0001000 r-xp 00001000 fe:00 325835     /usr/bin/kvant";
    assert!(!Mapping::parse(line).expect("a mapping").is_main_stack);
    assert_eq!(Mapping::parse(""), None);
    assert_eq!(Mapping::parse("nonsense-here"), None);
}

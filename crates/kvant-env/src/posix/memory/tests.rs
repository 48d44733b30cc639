use super::*;

#[test]
fn long_mappings_are_aligned_to_huge_pages() {
    for bytes in [1, 4096, 5000, 1 << 20, HUGE_PAGE_BYTES, 5 << 20] {
        let mapping = Mapping::new(bytes).unwrap();
        assert!(mapping.bytes() >= bytes && mapping.bytes() < bytes + page_bytes());
        let alignment = if bytes < HUGE_PAGE_BYTES { page_bytes() } else { HUGE_PAGE_BYTES };
        assert!(mapping.start().addr().get().is_multiple_of(alignment), "{bytes}");
    }
}

#[test]
fn touched_memory_keeps_its_contents_until_it_is_zeroed() {
    let mut mapping = Mapping::new(5 << 20).unwrap();
    let byte = mapping.start().as_ptr();
    // SAFETY: within the mapping.
    unsafe { byte.write(7) };
    mapping.touch();
    // SAFETY: as above.
    assert_eq!(unsafe { byte.read() }, 7);
    mapping.zero();
    // SAFETY: as above.
    assert_eq!(unsafe { byte.read() }, 0);
}

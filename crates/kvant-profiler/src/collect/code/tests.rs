use super::*;

#[test]
fn our_own_functions_and_those_of_the_c_library_are_code_and_data_is_not() {
    let modules = refresh();
    let own = refresh as *const () as usize;
    let foreign = libc::getppid as *const () as usize;
    let data = Box::new(1);
    assert!(is_code(own) && is_own_code(own));
    assert!(is_code(foreign));
    assert!(!is_code(&raw const *data as usize) && !is_code(0) && !is_code(usize::MAX));

    let executable = std::env::current_exe().expect("a test has a binary");
    assert_eq!(modules[0].path, executable.to_string_lossy());
    assert!(modules.iter().all(|module| module.start < module.end));
}

#[test]
fn a_build_id_is_found_among_other_notes() {
    let note = |name: &[u8], kind: u32, contents: &[u8]| {
        let mut bytes = Vec::new();
        for number in [name.len() as u32, contents.len() as u32, kind] {
            bytes.extend(number.to_ne_bytes());
        }
        for part in [name, contents] {
            bytes.extend(part);
            bytes.resize(bytes.len().next_multiple_of(4), 0);
        }
        bytes
    };
    let mut notes = note(b"GNU\0", 1, &[9; 16]);
    notes.extend(note(b"Other\0", 3, &[8; 5]));
    assert_eq!(build_id_of(&notes), None);
    notes.extend(note(b"GNU\0", 3, &[1, 2, 3, 4, 5, 6]));
    assert_eq!(build_id_of(&notes), Some(vec![1, 2, 3, 4, 5, 6]));
    for cut in 0..notes.len() {
        // Never beyond the end.
        let found = build_id_of(&notes[..cut]);
        assert!(found.is_none() || cut >= notes.len() - 2, "{cut}");
    }
}

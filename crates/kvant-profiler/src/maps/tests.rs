use super::*;

#[test]
fn lines_are_parsed_and_malformed_ones_skipped() {
    let line = "7ffc0c12d000-7ffc0c14e000 rw-p 00000000 00:00 0                          [stack]";
    let stack = Mapping::parse(line).expect("a mapping");
    assert_eq!((stack.start, stack.end), (0x7ffc_0c12_d000, 0x7ffc_0c14_e000));
    assert_eq!((&stack.name[..], stack.is_executable), ("[stack]", false));
    assert!(stack.contains(0x7ffc_0c12_d000) && !stack.contains(0x7ffc_0c14_e000));
    let line = "55d0c0000000-55d0c0001000 r-xp 00001000 fe:00 325835     /usr/bin/a b (deleted)";
    let file = Mapping::parse(line).expect("a mapping");
    assert_eq!((&file.name[..], file.is_executable), ("/usr/bin/a b (deleted)", true));
    assert_eq!(file.file_offset_bytes, 0x1000);
    let anonymous = Mapping::parse("7f0000000000-7f0000001000 rw-p 00000000 00:00 0 ");
    assert_eq!(anonymous.expect("a mapping").name, "");
    for malformed in ["", "nonsense-here", "2000-1000 r-xp 0 00:00 0 x"] {
        assert_eq!(Mapping::parse(malformed), None, "{malformed}");
    }
}

use super::*;

#[test]
fn lines_without_a_function_or_an_address_are_skipped() {
    let text = "ffffffff81000100 T later\nffffffff81000000 t first\nffffffff81000200 D data\n\
                0000000000000000 T hidden\nffffffffa0000000 t read [ext4]\nnonsense\n";
    assert_eq!(
        functions_of(text),
        [
            (0xffff_ffff_8100_0000, "first", ""),
            (0xffff_ffff_8100_0100, "later", ""),
            (0xffff_ffff_a000_0000, "read", "[ext4]"),
        ]
    );
    assert_eq!((file_of(""), file_of("[ext4]")), ("kernel".into(), "kernel [ext4]".into()));
}

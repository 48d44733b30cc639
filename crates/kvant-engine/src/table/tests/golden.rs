//! The worked example of `docs/formats/table.md`, byte for byte.

use super::*;

const DOCUMENT: &str = include_str!("../../../../../docs/formats/table.md");

/// The hexadecimal dump of the document's example: lines of `offset bytes | remark`.
fn documented_bytes() -> Vec<u8> {
    let (_, example) =
        DOCUMENT.split_once("<!-- example -->").expect("the document marks its example");
    let (example, _) = example.split_once("<!-- end of example -->").expect("the example ends");
    let lines = example.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit()));
    let mut bytes = Vec::new();
    for line in lines {
        let mut words = line.split('|').next().expect("bytes").split_whitespace();
        let offset: usize = words.next().expect("offset").parse().expect("a decimal offset");
        assert_eq!(offset, bytes.len(), "{line}");
        bytes.extend(words.map(|word| u8::from_str_radix(word, 16).expect("a byte")));
    }
    bytes
}

fn example_entries() -> Vec<Entry> {
    vec![
        put("apple", 3, "red"),
        put("apple", 1, "green"),
        ("apricot".into(), 4, ValueKind::Delete, vec![]),
        (
            "banana".into(),
            2,
            ValueKind::PutExpiring,
            [&1_700_000_000_000u64.to_le_bytes()[..], b"ripe"].concat(),
        ),
    ]
}

#[test]
fn the_documented_example_is_written() {
    let mut builder = new_builder(plain());
    builder.properties.created_by = "kvant 0.1.0".to_string();
    for entry in example_entries() {
        builder.add(key_of(&entry), &entry.3, None).expect("add");
    }
    let finished = builder.finish().expect("finish");
    assert_eq!(hex(&file_contents(&*finished.file)), hex(&documented_bytes()));
}

#[test]
fn the_documented_example_is_read() {
    let table = open(file_of(&documented_bytes()), roomy()).expect("open");
    table.verify().expect("undamaged");
    let mut iter = table.iter(true, Consumer::Iterators);
    iter.seek_to_first().expect("seek");
    assert_eq!(rest_of(&mut iter).expect("iterate"), example_entries());
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x} ")).collect()
}

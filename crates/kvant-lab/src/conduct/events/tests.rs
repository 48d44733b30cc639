use super::*;

#[test]
fn begin_and_end_of_an_event_are_one() {
    let text = "id: 1\nevent: flush\ndata: {\"edge\":\"begin\",\"span\":7,\"start\":\"x\",\"start_ns\":1000,\"fields\":{\"level\":0}}\n\n\
                : still here\n\n\
                id: 2\nevent: fsync\ndata: {\"edge\":\"end\",\"span\":8,\"start\":\"x\",\"start_ns\":3000,\"duration_us\":2.5,\"fields\":{}}\n\n\
                id: 3\nevent: flush\ndata: {\"edge\":\"end\",\"span\":7,\"start\":\"x\",\"start_ns\":1000,\"duration_us\":1.25,\"fields\":{\"level\":0,\"table_bytes\":9}}\n\n\
                id: 4\nevent: stall\ndata: {\"edge\":\"begin\",\"span\":9,\"start\":\"x\",\"start_ns\":5000,\"fields\":{}}\n\n\
                id: 5\nevent: stall\ndata: {\"edge\":\"be";
    let mut joined = Joined::default();
    joined.read(text.as_bytes());
    let found: Vec<_> = joined
        .events
        .values()
        .map(|event| (event.kind.as_str(), event.start_ns, event.end_ns, event.fields.len()))
        .collect();
    let expected =
        [("flush", 1000, Some(2250), 2), ("fsync", 3000, Some(5500), 0), ("stall", 5000, None, 0)];
    assert_eq!(found, expected);
}

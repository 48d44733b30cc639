use super::each;

#[test]
fn a_backlog_that_can_be_gone_through_is_exact() {
    let mut shown = Vec::new();
    each(
        2,
        35,
        80,
        |at_ns| at_ns.div_ceil(10),
        |number| Some(number * 10),
        |at_ns, count| shown.push((at_ns, count)),
    );
    assert_eq!(shown, [(40, 1), (50, 1), (60, 1), (70, 1)]);
}

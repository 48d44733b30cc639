use super::number_after;

#[test]
fn the_number_after_a_text_is_found() {
    let said = "Summary\n  throughput: 81,300.25 requests per second\nrequests=12\n";
    assert_eq!(number_after(said, "throughput:"), Some(81_300.25));
    assert_eq!(number_after(said, "requests="), Some(12.0));
    assert_eq!(number_after("done: 1200.\n", "done:"), Some(1200.0));
    assert_eq!(number_after(said, "latency:"), None);
    assert_eq!(number_after("requests= none\n", "requests="), None);
}

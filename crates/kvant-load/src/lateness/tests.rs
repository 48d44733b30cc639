use super::*;

#[test]
fn classes_ascend_and_are_an_eighth_wide() {
    let mut last = 0;
    for ns in (0..100_000)
        .chain((17..60).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) * 9 / 8]))
    {
        let class = class_of(ns);
        assert!(class < CLASSES && class >= last, "{ns}");
        last = class;
        if ns >= 8 {
            assert_ne!(class, class_of(ns - ns / 8), "{ns}");
        }
    }
    assert!(class_of(u64::MAX) < CLASSES);
}

#[test]
fn the_part_is_that_of_requests_of_the_same_class() {
    let mut fast = Lateness::default();
    (0..90).for_each(|_| fast.record_ns(20_000_000, 50_000));
    let mut all = Lateness::default();
    (0..10).for_each(|_| all.record_ns(24_000_000, 4_000_000));
    all.add(&fast);
    assert_eq!(all.of_response_ns(20_000_000), 50_000);
    assert_eq!(all.of_response_ns(24_000_000), 4_000_000);
    assert_eq!(all.of_response_ns(1_000_000_000), 0, "no request took that long");
    // The lag is at most the response time.
    all.record_ns(1_000, 5_000);
    assert_eq!(all.of_response_ns(1_000), 1_000);
    all.clear();
    assert_eq!(all.of_response_ns(20_000_000), 0);
}

use super::*;
use crate::histogram::HIGHEST_NS;

fn sample() -> Histogram {
    let mut histogram = Histogram::new();
    for i in 0..10_000_u64 {
        histogram.record_ns(i * i * 37);
    }
    histogram.record_many_ns(0, 5);
    histogram.record_ns(HIGHEST_NS * 2);
    histogram
}

#[test]
fn text_keeps_every_count() {
    for histogram in [sample(), Histogram::new()] {
        let read = decode(&encode(&histogram)).unwrap();
        assert_eq!(read.as_hdr(), histogram.as_hdr());
        assert_eq!(read.max_ns(), histogram.max_ns());
        assert_eq!(read.min_ns(), histogram.min_ns());
        assert_eq!(read.mean_ns(), histogram.mean_ns());
        assert_eq!(read.stdev_ns(), histogram.stdev_ns());
    }
}

#[test]
fn text_begins_with_the_cookie_of_other_libraries() {
    assert!(encode(&sample()).starts_with("HISTFAAA"), "{}", &encode(&sample())[..16]);
}

#[test]
fn a_plain_histogram_is_read() {
    let mut bytes = Vec::new();
    hdrhistogram::serialization::V2Serializer::new()
        .serialize(sample().as_hdr(), &mut bytes)
        .unwrap();
    assert_eq!(decode(&STANDARD.encode(bytes)).unwrap().as_hdr(), sample().as_hdr());
}

#[test]
fn a_histogram_of_another_resolution_is_read_into_ours() {
    let mut coarse = Hdr::<u64>::new_with_bounds(1, 60_000_000_000, 2).unwrap();
    coarse.record_n(5_000_000, 3).unwrap();
    let mut bytes = Vec::new();
    V2DeflateSerializer::new().serialize(&coarse, &mut bytes).unwrap();
    let read = decode(&STANDARD.encode(bytes)).unwrap();
    assert_eq!(read.count(), 3);
    assert!((4_950_000..=5_050_000).contains(&read.percentile_ns(50.0)));
}

#[test]
fn malformed_text_is_rejected() {
    let good = encode(&sample());
    let cut = &good[..good.len() / 2 / 4 * 4];
    for bad in ["", "====", "AAAA", "HISTFAAA", cut, &good[4..]] {
        assert!(decode(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_wrong_size_is_rejected() {
    let mut bytes = Vec::new();
    hdrhistogram::serialization::V2Serializer::new()
        .serialize(sample().as_hdr(), &mut bytes)
        .unwrap();
    bytes[4..8].copy_from_slice(&u32::MAX.to_be_bytes());
    assert!(decode(&STANDARD.encode(&bytes)).is_err());
}

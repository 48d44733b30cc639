use super::*;
use crate::format::key_hash;

/// Share of absent keys that pass a filter over `key_count` keys.
fn measured_rate(key_count: u64, bits_per_key: f64, probe_count: u64) -> f64 {
    let hashes: Vec<u64> =
        (0..key_count).map(|n| key_hash(format!("key{n:012}").as_bytes())).collect();
    let filter = Filter::build(&hashes, bits_per_key);
    assert!(hashes.iter().all(|&hash| filter.may_contain(hash)));
    let passed = (0..probe_count)
        .filter(|n| filter.may_contain(key_hash(format!("absent{n:012}").as_bytes())))
        .count();
    passed as f64 / probe_count as f64
}

/// Rows of the table in section 3 of the format document: bits per key, bits set, measured share in
/// per cent.
fn documented_rows() -> Vec<(f64, u32, f64)> {
    let document = include_str!("../../../../../docs/formats/table.md");
    let rows = document.lines().skip_while(|line| !line.starts_with("| bits per key |")).skip(2);
    rows.take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
            let per_cent = cells[2].strip_suffix(" %").expect("per cent").parse().expect("a rate");
            (cells[0].parse().expect("bits"), cells[1].parse().expect("probes"), per_cent)
        })
        .collect()
}

#[test]
fn measured_rates_match_the_document() {
    let rows = documented_rows();
    assert!(rows.len() >= 5);
    for (bits_per_key, probes, per_cent) in rows {
        assert_eq!(best_probe_count(bits_per_key).0, probes, "{bits_per_key} bits");
        let measured = measured_rate(1_000_000, bits_per_key, 1_000_000) * 100.0;
        let ratio = measured / per_cent;
        assert!(
            (0.85..1.15).contains(&ratio),
            "{bits_per_key} bits: {measured:.4} %, documented {per_cent} %"
        );
    }
}

#[test]
fn chosen_bits_meet_the_rate_for_small_and_large_tables() {
    for rate in [0.1, 0.01, 0.002] {
        let bits_per_key = bits_per_key_for(rate);
        for key_count in [10_000, 2_000_000] {
            let measured = measured_rate(key_count, bits_per_key, 1_000_000);
            // Four standard deviations of the rate that a million probes measure.
            let noise = 4.0 * (rate / 1e6).sqrt();
            assert!(
                measured <= rate + noise,
                "{bits_per_key:.2} bits, {key_count} keys: {measured} for {rate}"
            );
            assert!(
                measured > rate * 0.7,
                "{bits_per_key:.2} bits are too many: {measured} for {rate}"
            );
        }
    }
    assert_eq!(bits_per_key_for(1.0), 0.0);
}

#[test]
fn decoding_rejects_malformed_filters() {
    let good = Filter::build(&[1, 2, 3], 10.0).encode();
    assert!(Filter::decode(&good).is_ok());
    let (no_probes, too_many) = ([&good[..64], &[0]].concat(), [&good[..64], &[25]].concat());
    for bad in [&good[..0], &good[..1], &good[..64], &no_probes, &too_many] {
        assert!(Filter::decode(bad).is_err());
    }
}

#[test]
fn a_decoded_filter_says_what_the_built_one_says() {
    let hashes: Vec<u64> = (0..40_000_u64).map(|n| key_hash(&n.to_be_bytes())).collect();
    // 63 lines in the heap; in pages: one; twelve, the last of them not full, or full; and more.
    for key_count in [3_225, 3_276, 39_270, 39_320, 40_000] {
        let built = Filter::build(&hashes[..key_count], 10.0);
        let decoded = Filter::decode(&built.encode()).expect("decode");
        let is_in_pages = key_count > 3_225 && Page::new().is_some();
        assert_eq!(matches!(decoded.lines, Lines::Pages { .. }), is_in_pages);
        assert_eq!(decoded.encode(), built.encode());
        for number in 0..50_000_u64 {
            let hash = key_hash(&number.to_be_bytes());
            assert_eq!(decoded.may_contain(hash), built.may_contain(hash));
            assert!(decoded.may_contain(hash) || number >= key_count as u64);
        }
        let stored_bytes = built.encode().len();
        let bytes_max = Filter::memory_bytes_max(stored_bytes as u32);
        assert!((stored_bytes as u64 - 1..=bytes_max).contains(&(decoded.memory_bytes() as u64)));
    }
}

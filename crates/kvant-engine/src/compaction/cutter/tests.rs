use super::*;

#[test]
fn outputs_are_cut_at_the_table_size() {
    let mut cutter = OutputCutter::new(100, &[]);
    let cuts = [0, 60, 99, 100, 0, 250].map(|output_bytes| cutter.cut_before(b"k", output_bytes));
    assert_eq!(cuts, [false, false, false, true, false, true]);
}

#[test]
fn outputs_are_cut_where_they_would_overlap_too_much() {
    let largest: Vec<[u8; 1]> = (0..60).map(|index| [index]).collect();
    let grandparents: Vec<(&[u8], u64)> = largest.iter().map(|key| (&key[..], 100)).collect();
    let mut cutter = OutputCutter::new(100, &grandparents);
    let mut output_bytes = 0;
    let mut cuts = Vec::new();
    for key in 0..60 {
        if cutter.cut_before(&[key], output_bytes) {
            cuts.push(key);
            output_bytes = 0;
        }
        output_bytes += 1;
    }
    assert_eq!(cuts, [16, 32, 48]);
    assert!(
        !cutter.cut_before(&[200], 0),
        "an output that starts here overlaps no grandparent before it"
    );
}

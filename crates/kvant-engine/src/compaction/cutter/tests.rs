use super::*;

#[test]
fn outputs_are_cut_at_the_table_size() {
    let mut cutter = OutputCutter::new(100, &[]);
    let cuts =
        [0, 60, 99, 100, 0, 250].map(|output_bytes| cutter.cut_before(b"k", output_bytes, false));
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
        if cutter.cut_before(&[key], output_bytes, false) {
            cuts.push(key);
            output_bytes = 0;
        }
        output_bytes += 1;
    }
    assert_eq!(cuts, [16, 32, 48]);
    assert!(
        !cutter.cut_before(&[200], 0, false),
        "an output that starts here overlaps no grandparent before it"
    );
}

#[test]
fn outputs_are_cut_around_long_runs_of_tombstones() {
    let mut cutter = OutputCutter::new(1 << 20, &[]);
    let run_min = (1 << 20) / RUN_SHARE_BYTES as usize;
    let mut cuts_of = |tombstones: &[bool]| {
        let cut = |(index, &is_tombstone): (usize, &bool)| {
            let output_bytes = u64::from(index > 0);
            cutter.cut_before(b"k", output_bytes, is_tombstone).then_some(index)
        };
        tombstones.iter().enumerate().filter_map(cut).collect::<Vec<_>>()
    };
    let runs = |lengths: &[usize]| {
        let runs = lengths.iter().enumerate();
        runs.flat_map(|(index, &length)| vec![index % 2 == 1; length]).collect::<Vec<bool>>()
    };
    assert_eq!(cuts_of(&runs(&[5, run_min - 1, 5, run_min - 1, 5])), []);
    let end = 5 + 3 * run_min;
    assert_eq!(cuts_of(&runs(&[5, 3 * run_min, 5])), [5 + run_min - 1, end]);
    assert_eq!(cuts_of(&runs(&[0, 3 * run_min, 5])), [3 * run_min], "it starts the output");
}

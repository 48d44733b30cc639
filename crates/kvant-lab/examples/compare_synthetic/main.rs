//! Judges made-up comparisons, and prints how often a difference is claimed.
//!
//! `compare_synthetic COUNT SEED FACTOR`
//!
//! B takes `FACTOR` times the time of A; with 1, each claim is wrong. Prints one JSON object.
#![allow(clippy::print_stdout, reason = "what it prints is its purpose")]

#[path = "../../tests/synthetic/mod.rs"]
mod synthetic;

use kvant_lab::comparison::intervals::Interval;
use serde_json::json;
use std::io;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [count, seed, factor] = arguments.as_slice() else {
        return Err(io::Error::other("usage: compare_synthetic COUNT SEED FACTOR"));
    };
    let count: u64 = count.parse().map_err(io::Error::other)?;
    let seed: u64 = seed.parse().map_err(io::Error::other)?;
    let factor: f64 = factor.parse().map_err(io::Error::other)?;
    let (mut claimed, mut slower, mut detectable) = (0, 0, Vec::new());
    for index in 0..count {
        // Far apart: a comparison uses the seeds after its own.
        let made = synthetic::compare(seed.wrapping_add(index << 32), factor);
        let differs = |one: &Interval| one.difference().is_some();
        claimed += u64::from(made.intervals.iter().flatten().any(differs));
        let median = made.intervals[0].ok_or_else(|| io::Error::other("too few blocks"))?;
        slower += u64::from(median.difference() == Some(true));
        detectable.push(median.detectable_part);
    }
    detectable.sort_by(f64::total_cmp);
    let answer = json!({
        "count": count,
        "seed": seed,
        "blocks": synthetic::BLOCKS,
        "figures": synthetic::FIGURES,
        "claimed": claimed,
        "median_slower": slower,
        "detectable_part_of_median": detectable[detectable.len() / 2],
    });
    println!("{answer}");
    Ok(())
}

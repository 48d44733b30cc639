//! Judges made-up comparisons, and prints how often a difference is claimed.
//!
//! `compare_synthetic COUNT SEED BLOCKS FACTOR`
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
    let [count, seed, blocks, factor] = arguments.as_slice() else {
        return Err(io::Error::other("usage: compare_synthetic COUNT SEED BLOCKS FACTOR"));
    };
    let count: u64 = count.parse().map_err(io::Error::other)?;
    let seed: u64 = seed.parse().map_err(io::Error::other)?;
    let blocks: u32 = blocks.parse().map_err(io::Error::other)?;
    let factor: f64 = factor.parse().map_err(io::Error::other)?;
    let (mut more, mut less, mut median_more, mut detectable) = (0, 0, 0, Vec::new());
    for index in 0..count {
        // Far apart: a comparison uses the seeds after its own.
        let made = synthetic::compare(seed.wrapping_add(index << 32), blocks, factor);
        let has = |wanted| {
            let is_wanted = |one: &Interval| one.difference() == Some(wanted);
            u64::from(made.iter().flatten().any(is_wanted))
        };
        more += has(true);
        less += has(false);
        let median = made[0].ok_or_else(|| io::Error::other("too few blocks"))?;
        median_more += u64::from(median.difference() == Some(true));
        detectable.push(median.detectable_part);
    }
    detectable.sort_by(f64::total_cmp);
    let answer = json!({
        "count": count,
        "seed": seed,
        "blocks": blocks,
        "figures": synthetic::FIGURES,
        "with_more_in_b": more,
        "with_less_in_b": less,
        "with_more_median_in_b": median_more,
        "detectable_part_of_median": detectable[detectable.len() / 2],
    });
    println!("{answer}");
    Ok(())
}

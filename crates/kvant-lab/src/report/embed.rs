//! The data of the scripts: curves and spectra, then time lines and recordings as far as they fit,
//! each a script element with base64 of zlib.

use crate::model::{Report, TimeLine};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use kvant_profiler::recording::{Recording, Sample, Stack};
use kvant_profiler::render::front;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::io::Write as _;

/// The part of the space that time lines may take; recordings get the rest.
const TIME_LINES_PART: f64 = 0.5;
/// A recording is thinned at most so far that one sample stands for this many.
const THINNING_MAX: u64 = 16;
/// Characters of a script element besides its data.
const ELEMENT_BYTES: usize = 200;

/// All script elements, in at most `bytes_max`.
pub(super) fn data(
    report: &Report,
    recordings: &dyn Fn(&str) -> Option<Recording>,
    bytes_max: usize,
) -> String {
    let head = packed(&json!({
        "cases": report.run.cases,
        "sweep": report.run.sweep,
        "maxima": report.maxima,
        "curves": report.curves,
        "spectra": report.spectra,
    }));
    let mut space = bytes_max.saturating_sub(head.len() + 2 * ELEMENT_BYTES);
    let lines = time_lines(report, (space as f64 * TIME_LINES_PART) as usize);
    space = space.saturating_sub(lines.iter().map(|line| line.len() + ELEMENT_BYTES).sum());
    let mut markup = String::new();
    let mut left_out = 0;
    for (index, line) in report.time_lines.iter().enumerate() {
        if let Some(encoded) = lines.get(index) {
            let attributes = format!("data-index=\"{index}\" data-case=\"{}\"", line.case);
            markup += &element("time-line", &attributes, encoded);
        }
        let Some(file) = &line.recording else { continue };
        let recording = if index < lines.len() { recordings(file) } else { None };
        let Some((recording, (encoded, factor))) =
            recording.and_then(|found| Some((found.clone(), fitting(found, space)?)))
        else {
            left_out += 1;
            continue;
        };
        space = space.saturating_sub(encoded.len() + ELEMENT_BYTES);
        let offset_us = offset_us(report, line, &recording);
        let attributes = format!(
            "data-index=\"{index}\" data-factor=\"{factor}\" data-offset-us=\"{offset_us}\""
        );
        markup += &element("recording", &attributes, &encoded);
    }
    let attributes = format!(
        "data-lines-left-out=\"{}\" data-recordings-left-out=\"{left_out}\"",
        report.time_lines.len() - lines.len()
    );
    element("head", &attributes, &head) + &markup
}

fn element(class: &str, attributes: &str, encoded: &str) -> String {
    format!(
        "<script type=\"application/octet-stream\" class=\"{class}\" {attributes}>{encoded}</script>\n"
    )
}

/// The first time lines, as many as fit.
fn time_lines(report: &Report, mut space: usize) -> Vec<String> {
    let encoded = report.time_lines.iter().map(packed);
    let fitting = encoded.take_while(|line| {
        let needed = line.len() + ELEMENT_BYTES;
        let fits = needed <= space;
        space = space.saturating_sub(needed);
        fits
    });
    fitting.collect()
}

/// Base64 of zlib of JSON.
fn packed(value: &impl Serialize) -> String {
    let text = serde_json::to_vec(value).expect("maps of reports have text keys");
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
    let written = encoder.write_all(&text).and_then(|()| encoder.finish());
    BASE64_STANDARD.encode(written.expect("a vector takes all"))
}

/// The recording encoded in at most `space`, and how many samples one stands for.
fn fitting(recording: Recording, space: usize) -> Option<(String, u64)> {
    let mut factor = 1;
    while factor <= THINNING_MAX {
        let encoded = if factor == 1 {
            front::encode(&recording)
        } else {
            front::encode(&thinned(&recording, factor))
        };
        if encoded.len() + ELEMENT_BYTES <= space {
            return Some((encoded, factor));
        }
        factor *= 2;
    }
    None
}

/// One of each `factor` samples of a kind, with the weight of all of them, and their stacks.
fn thinned(recording: &Recording, factor: u64) -> Recording {
    let mut seen = BTreeMap::new();
    let mut samples: Vec<Sample> = Vec::new();
    for sample in &recording.samples {
        let count: &mut u64 = seen.entry(sample.kind.code()).or_default();
        if count.is_multiple_of(factor) {
            samples.push(Sample { weight: sample.weight.saturating_mul(factor), ..*sample });
        }
        *count += 1;
    }
    let mut is_used = vec![false; recording.stacks.len()];
    for sample in &samples {
        is_used[sample.stack as usize] = true;
    }
    // A stack's parent precedes it.
    for index in (1..is_used.len()).rev() {
        is_used[recording.stacks[index].parent as usize] |= is_used[index];
    }
    is_used[0] = true;
    let mut new_index = vec![0; is_used.len()];
    let mut stacks = Vec::new();
    for (index, stack) in recording.stacks.iter().enumerate().filter(|(index, _)| is_used[*index]) {
        new_index[index] = stacks.len() as u32;
        stacks.push(Stack { parent: new_index[stack.parent as usize], frame: stack.frame });
    }
    for sample in &mut samples {
        sample.stack = new_index[sample.stack as usize];
    }
    Recording { samples, stacks, ..recording.clone() }
}

/// The start of a recording on the axis of its time line. Recordings have wall times; the attempt
/// relates them to the monotonic clock.
fn offset_us(report: &Report, line: &TimeLine, recording: &Recording) -> i64 {
    let Some(attempt) = report.attempts.iter().find(|attempt| attempt.number == line.attempt)
    else {
        return 0;
    };
    let begin_ns = attempt.monotonic_ns(recording.facts.started_wall_ns);
    begin_ns.saturating_sub_unsigned(line.start_ns) / 1_000
}

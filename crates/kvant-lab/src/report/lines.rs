//! A comparison as JSON for version control: one figure a line, in the order of the plan, rounded,
//! without times and paths of the run, so that a difference of two files is one of figures.

use crate::comparison::assertion::{Decision, Figure};
use crate::model::{Asserted, Compared, Sides};
use serde::Serialize;

/// The value of `format`.
const FORMAT: &str = "kvant-lab-comparison";
/// The value of `version`.
const VERSION: u32 = 1;
const DIGITS: i32 = 3;

#[derive(Serialize)]
struct FigureLine<'a> {
    case: String,
    #[serde(skip_serializing_if = "str::is_empty")]
    layer: &'a str,
    figure: Figure,
    a: Option<f64>,
    b: Option<f64>,
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    detectable_part: Option<f64>,
    blocks: usize,
    claim: &'static str,
}

#[derive(Serialize)]
struct AssertionLine<'a> {
    assertion: &'a str,
    case: &'a str,
    ratio: Option<f64>,
    interval: Option<[f64; 2]>,
    decision: Decision,
}

/// The text of `comparison.json`.
pub fn comparison_json(sides: &Sides) -> String {
    let figures = sides.figures.iter().map(|one| line(&figure_line(one)));
    let assertions = sides.assertions.iter().map(|one| line(&assertion_line(one)));
    format!(
        "{{\n\"format\": {},\n\"version\": {VERSION},\n\"a\": {},\n\"b\": {},\n\"blocks\": {},\n\
         \"seed\": {},\n\"confidence\": {},\n\"figures\": [{}],\n\"assertions\": [{}]\n}}\n",
        line(&FORMAT),
        line(&sides.a),
        line(&sides.b),
        sides.block_count,
        sides.seed,
        sides.confidence,
        rows(figures),
        rows(assertions)
    )
}

fn rows(lines: impl Iterator<Item = String>) -> String {
    let lines: Vec<String> = lines.collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join(",\n")) }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("all keys are strings")
}

fn figure_line(one: &Compared) -> FigureLine<'_> {
    FigureLine {
        case: one.case(),
        layer: &one.layer,
        figure: one.figure,
        a: one.a.map(significant),
        b: one.b.map(significant),
        ratio: one.ratio.map(decimals),
        interval: one.interval.map(rounded),
        detectable_part: one.detectable_part.map(decimals),
        blocks: one.block_count,
        claim: match (one.is_b_better(), one.interval) {
            (Some(true), _) => "better",
            (Some(false), _) => "worse",
            (None, Some(_)) if !one.is_withheld() => "same",
            (None, _) => "none",
        },
    }
}

fn assertion_line(one: &Asserted) -> AssertionLine<'_> {
    AssertionLine {
        assertion: &one.text,
        case: &one.case,
        ratio: one.ratio.map(decimals),
        interval: one.interval.map(rounded),
        decision: one.decision,
    }
}

fn rounded((low, high): (f64, f64)) -> [f64; 2] {
    [low, high].map(decimals)
}

fn decimals(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// A value with three significant digits.
fn significant(value: f64) -> f64 {
    if value == 0.0 {
        return 0.0;
    }
    let places = DIGITS - 1 - value.abs().log10().floor() as i32;
    match places >= 0 {
        true => (value * 10f64.powi(places)).round() / 10f64.powi(places),
        false => (value / 10f64.powi(-places)).round() * 10f64.powi(-places),
    }
}

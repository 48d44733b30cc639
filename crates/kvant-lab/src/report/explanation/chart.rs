//! The pictures of an explanation as inline SVG.

use super::super::markup::escape;
use super::super::numbers::{number, time};
use super::colors::Colors;
use crate::explain::model::{Explanation, Moment, Overview};
use crate::explain::words::clock;

const WIDTH: f64 = 1120.0;
/// Space for the names of rows and the values of the axis.
const GUTTER: f64 = 190.0;
const PLOT_HEIGHT: f64 = 210.0;
/// The row of rates below the plot.
const RATES_HEIGHT: f64 = 40.0;
const LANE_HEIGHT: f64 = 17.0;
const LABEL_HEIGHT: f64 = 20.0;
/// Names of lanes are cut after so many characters.
const NAME_CHARS_MAX: usize = 31;
/// Lanes of a moment.
const MOMENT_LANES_MAX: usize = 8;
/// Letters of 11 px are about so wide.
const LETTER_WIDTH: f64 = 6.2;

/// Response times over time, with lanes of events.
pub(super) fn overview(explanation: &Explanation, colors: &Colors) -> String {
    let overview = &explanation.overview;
    let scale = Scale::of(overview);
    let count = overview.counts.len();
    let width = WIDTH - GUTTER;
    let x = |ns: f64| GUTTER + width * ns / explanation.length_ns.max(1) as f64;
    let column = |at: usize| x(overview.starts_ns[at] as f64);
    let column_width = x(overview.column_ns as f64) - GUTTER;
    let mut svg = String::new();
    for decade in scale.low..=scale.high {
        let y = scale.y(10f64.powi(decade));
        svg += &format!(
            "<line x1=\"{GUTTER}\" x2=\"{WIDTH}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"grid\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text>",
            GUTTER - 6.0,
            y + 4.0,
            time(10f64.powi(decade))
        );
    }
    // A bar from the median to the longest, and the p99 on it.
    for at in (0..count).filter(|at| overview.counts[*at] > 0) {
        let left = column(at);
        let wide = (column_width - 0.4).clamp(0.6, (WIDTH - left).max(0.6));
        let y = |ns: u64| scale.y(ns as f64);
        let (max, p99, p50) =
            (y(overview.max_ns[at]), y(overview.p99_ns[at]), y(overview.p50_ns[at]));
        svg += &format!(
            "<rect x=\"{left:.1}\" y=\"{max:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" class=\"max\"/>\
             <rect x=\"{left:.1}\" y=\"{p99:.1}\" width=\"{wide:.1}\" height=\"{:.1}\" class=\"p99\"/>\
             <rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"2\" class=\"p50\"/>",
            (p50 - max).max(0.5),
            (p50 - p99).max(0.5),
            p50 - 1.0
        );
    }
    let lanes: Vec<(String, Vec<(f64, f64)>)> = overview
        .lanes
        .iter()
        .map(|(name, spans)| {
            (
                name.clone(),
                spans.iter().map(|(from, to)| (x(*from as f64), x(*to as f64))).collect(),
            )
        })
        .collect();
    svg += &rates(explanation, &column, column_width);
    let top = PLOT_HEIGHT + RATES_HEIGHT + 8.0;
    svg += &lane_rows(&lanes, top, colors);
    let bottom = top + lanes.len() as f64 * LANE_HEIGHT;
    for tick in 0..=4 {
        let at_ns = explanation.length_ns / 4 * tick;
        let class = if tick == 4 {
            "end"
        } else if tick == 0 {
            ""
        } else {
            "middle"
        };
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"{class}\">{}</text>",
            x(at_ns as f64),
            bottom + 15.0,
            escape(&axis_clock(explanation, at_ns))
        );
    }
    let legend = "<p class=\"legend\"><span><i class=\"key max\"></i>longest</span><span><i \
                  class=\"key p99\"></i>p99</span><span><i class=\"key p50\"></i>median</span></p>\n";
    format!(
        "{}{legend}",
        framed(&svg, bottom + LABEL_HEIGHT, "Response times and events over time")
    )
}

/// Requests a second, as bars from zero.
fn rates(explanation: &Explanation, column: &impl Fn(usize) -> f64, column_width: f64) -> String {
    let Overview { starts_ns, counts, .. } = &explanation.overview;
    // Columns have as many windows each, but windows may be longer than usual.
    let ends_ns = starts_ns.iter().skip(1).copied().chain([explanation.length_ns]);
    let lengths_ns = ends_ns.zip(starts_ns).map(|(end_ns, start_ns)| end_ns - start_ns);
    let per_second: Vec<f64> = counts
        .iter()
        .zip(lengths_ns)
        .map(|(count, length_ns)| *count as f64 * 1e9 / length_ns.max(1) as f64)
        .collect();
    let most = per_second.iter().copied().fold(1.0, f64::max);
    let bottom = PLOT_HEIGHT + RATES_HEIGHT;
    let height = RATES_HEIGHT - 10.0;
    let mut svg = format!(
        "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">requests/s, up to {}</text><line \
         x1=\"{GUTTER}\" x2=\"{WIDTH}\" y1=\"{bottom:.1}\" y2=\"{bottom:.1}\" class=\"grid\"/>",
        GUTTER - 6.0,
        bottom - 8.0,
        number(most.round())
    );
    for (at, rate) in per_second.iter().enumerate().filter(|(_, rate)| **rate > 0.0) {
        let (left, tall) = (column(at), (height * rate / most).max(0.7));
        svg += &format!(
            "<rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{tall:.1}\" class=\"rate\"/>",
            bottom - tall,
            (column_width - 0.4).clamp(0.6, (WIDTH - left).max(0.6)),
        );
    }
    svg
}

/// A logarithmic axis in decades of nanoseconds.
struct Scale {
    low: i32,
    high: i32,
}

impl Scale {
    fn of(overview: &Overview) -> Scale {
        let low = overview.p50_ns.iter().filter(|ns| **ns > 0).min().copied().unwrap_or(1);
        let high = overview.max_ns.iter().max().copied().unwrap_or(1).max(low);
        let decade = |ns: u64| (ns.max(1) as f64).log10();
        let low = decade(low).floor() as i32;
        Scale { low, high: (decade(high).ceil() as i32).max(low + 1) }
    }

    fn y(&self, ns: f64) -> f64 {
        let part = (ns.max(1.0).log10() - f64::from(self.low)) / f64::from(self.high - self.low);
        8.0 + (PLOT_HEIGHT - 8.0) * (1.0 - part.clamp(0.0, 1.0))
    }
}

fn lane_rows(lanes: &[(String, Vec<(f64, f64)>)], top: f64, colors: &Colors) -> String {
    let mut svg = String::new();
    for (index, (name, spans)) in lanes.iter().enumerate() {
        let y = top + index as f64 * LANE_HEIGHT;
        svg += &format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"end\">{}</text><line x1=\"{GUTTER}\" \
             x2=\"{WIDTH}\" y1=\"{:.1}\" y2=\"{:.1}\" class=\"grid\"/>",
            GUTTER - 6.0,
            y + 12.0,
            escape(&shortened(name)),
            y + LANE_HEIGHT - 1.0,
            y + LANE_HEIGHT - 1.0
        );
        for (from, to) in spans {
            let (from, to) = (from.max(GUTTER), to.min(WIDTH));
            svg += &format!(
                "<rect x=\"{from:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"10\" rx=\"1.5\" \
                 style=\"fill:{}\"/>",
                y + 3.0,
                (to - from).max(1.5),
                colors.of(name)
            );
        }
    }
    svg
}

fn shortened(name: &str) -> String {
    match name.chars().count() {
        count if count > NAME_CHARS_MAX => {
            name.chars().take(NAME_CHARS_MAX - 1).chain(['\u{2026}']).collect()
        }
        _ => name.to_owned(),
    }
}

/// A request with its phases, and what happened around it.
pub(super) fn moment(moment: &Moment, colors: &Colors) -> String {
    let total = moment.total_ns.max(1) as f64;
    // Half of its length before and after it.
    let x = |ns: f64| GUTTER + (WIDTH - GUTTER) * (ns + total / 2.0) / (total * 2.0);
    let mut svg = format!(
        "<text x=\"{:.1}\" y=\"16\" class=\"end\">{}</text>",
        GUTTER - 6.0,
        escape(&moment.operation)
    );
    if moment.phases.is_empty() {
        svg += &phase_bar(x(0.0), x(total), "", "phase-none");
    }
    for (name, from, length) in &moment.phases {
        let (left, right) = (x(*from as f64), x((from + length) as f64));
        let part = *length as f64 / total;
        let text = format!("{name} {}", time(*length as f64));
        let is_short = (right - left) < text.len() as f64 * LETTER_WIDTH || part < 0.02;
        let shown = if is_short { "" } else { text.as_str() };
        svg += &phase_bar(left, right, shown, &format!("phase-{name}"));
    }
    let mut lanes: Vec<(String, Vec<(f64, f64)>)> = Vec::new();
    for (name, from, to) in &moment.events {
        let span = (x(*from as f64), x(*to as f64));
        match lanes.iter_mut().find(|(other, _)| other == name) {
            Some((_, spans)) => spans.push(span),
            None => lanes.push((name.clone(), vec![span])),
        }
    }
    lanes.truncate(MOMENT_LANES_MAX);
    svg += &lane_rows(&lanes, 28.0, colors);
    let bottom = 28.0 + lanes.len() as f64 * LANE_HEIGHT;
    for (at, class, text) in [
        (x(0.0), "", "arrived".to_owned()),
        (x(total), "end", format!("done after {}", time(total))),
    ] {
        svg += &format!(
            "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"2\" y2=\"{bottom:.1}\" class=\"edge\"/>\
             <text x=\"{at:.1}\" y=\"{:.1}\" class=\"{class}\">{text}</text>",
            bottom + 14.0
        );
    }
    format!("<div class=\"wide\">{}</div>", framed(&svg, bottom + LABEL_HEIGHT, &moment.sentence))
}

fn phase_bar(left: f64, right: f64, text: &str, class: &str) -> String {
    format!(
        "<rect x=\"{left:.1}\" y=\"4\" width=\"{:.1}\" height=\"18\" rx=\"2\" class=\"{}\"/><text \
         x=\"{:.1}\" y=\"17\" class=\"inside\">{}</text>",
        (right - left).max(1.0),
        escape(class),
        left + 5.0,
        escape(text)
    )
}

fn framed(svg: &str, height: f64, label: &str) -> String {
    format!(
        "<svg viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" role=\"img\" \
         aria-label=\"{}\">{svg}</svg>\n",
        escape(label)
    )
}

/// A time of day for an axis.
fn axis_clock(explanation: &Explanation, at_ns: u64) -> String {
    match explanation.wall_origin_ns {
        Some(_) => {
            let text = clock(explanation.start_ns + at_ns, explanation.wall_origin_ns);
            text.split('.').next().unwrap_or_default().to_owned()
        }
        None => format!("{:.0} s", at_ns as f64 / 1e9),
    }
}

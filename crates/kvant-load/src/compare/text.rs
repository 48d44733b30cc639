//! A comparison as text.

use super::comparison::{Comparison, RateComparison, Row, Spread, Unit, rate_text};
use std::fmt;

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "A: {}", self.names[0])?;
        writeln!(f, "B: {}", self.names[1])?;
        for rate in &self.rates {
            writeln!(f)?;
            write_rate(f, rate)?;
        }
        for (title, sentences) in [("Warnings:", &self.warnings), ("Notes:", &self.notes)] {
            if !sentences.is_empty() {
                writeln!(f, "\n{title}")?;
            }
            for sentence in sentences {
                writeln!(f, "  {sentence}")?;
            }
        }
        Ok(())
    }
}

fn write_rate(f: &mut fmt::Formatter<'_>, rate: &RateComparison) -> fmt::Result {
    let [a, b] = rate.run_counts;
    let is_repeated = a > 1 || b > 1;
    // A median with its range needs more columns.
    let width = if is_repeated { 30 } else { 12 };
    let runs = |count: usize| format!("{count} run{}", if count == 1 { "" } else { "s" });
    writeln!(f, "{}: A {}, B {}", rate_text(rate.rate), runs(a), runs(b))?;
    writeln!(f, "  {:<18} {:>width$} {:>width$} {:>8}", "", "A", "B", "B/A")?;
    let mut kind = "";
    for row in &rate.rows {
        if row.kind != kind {
            kind = &row.kind;
            writeln!(f, "  {kind}")?;
        }
        write_row(f, row, width)?;
    }
    Ok(())
}

fn write_row(f: &mut fmt::Formatter<'_>, row: &Row, width: usize) -> fmt::Result {
    let [a, b] = row
        .sides
        .map(|side| side.map_or_else(|| "-".to_owned(), |spread| spread_text(row.unit, spread)));
    let ratio = row.ratio().map_or_else(|| "-".to_owned(), |ratio| format!("{ratio:.3}"));
    write!(f, "  {:<18} {a:>width$} {b:>width$} {ratio:>8}", row.what)?;
    if row.is_thin {
        write!(f, " ~")?;
    }
    if row.is_apart() {
        write!(f, " apart")?;
    }
    writeln!(f)
}

fn spread_text(unit: Unit, spread: Spread) -> String {
    let text = |figure: f64| figure_text(unit, figure);
    match spread.count {
        1 => text(spread.median),
        _ => format!("{} ({}..{})", text(spread.median), text(spread.min), text(spread.max)),
    }
}

fn figure_text(unit: Unit, figure: f64) -> String {
    match unit {
        Unit::Ns if figure >= 1e9 => format!("{:.2}s", figure / 1e9),
        Unit::Ns if figure >= 1e6 => format!("{:.2}ms", figure / 1e6),
        Unit::Ns => format!("{:.1}us", figure / 1e3),
        Unit::PerSecond => format!("{figure:.1}/s"),
        Unit::Part => format!("{:.3}%", 100.0 * figure),
        Unit::Count => format!("{figure}"),
    }
}

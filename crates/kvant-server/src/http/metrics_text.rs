//! The Prometheus text format.

use std::fmt::{Arguments, Display, Write};

/// Appends a metric without labels.
pub(crate) fn metric(out: &mut String, name: &str, kind: &str, help: &str, value: impl Display) {
    header(out, name, kind, help);
    append(out, format_args!("{name} {value}\n"));
}

/// Appends a metric with one row for each set of labels.
pub(crate) fn family<V: Display>(
    out: &mut String,
    name: &str,
    kind: &str,
    help: &str,
    rows: impl IntoIterator<Item = (String, V)>,
) {
    header(out, name, kind, help);
    for (labels, value) in rows {
        append(out, format_args!("{name}{{{labels}}} {value}\n"));
    }
}

pub(crate) fn header(out: &mut String, name: &str, kind: &str, help: &str) {
    append(out, format_args!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
}

pub(crate) fn append(out: &mut String, text: Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all text");
}

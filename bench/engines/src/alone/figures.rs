//! What the benchmarks print.

/// A figure with a `target`, such as `< 192`.
pub(crate) fn targeted(name: &str, value: f64, unit: &str, target: &str) {
    println!("{name}\t{}\t{unit}\t{target}", shown(value));
}

/// A figure without a target.
pub(crate) fn plain(name: &str, value: f64, unit: &str) {
    targeted(name, value, unit, "-");
}

/// Integers exactly, others with enough digits to compare.
fn shown(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.4}") }
}

/// Mebibytes.
pub(crate) fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

/// `part / whole`, or 0 if `whole` is 0.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

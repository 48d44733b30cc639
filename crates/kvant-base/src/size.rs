//! The syntax of byte sizes in settings: `4096`, `64KiB`, `4MiB`, `1GiB`.

const UNITS: [(&str, u64); 4] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1)];

/// Parses a size in bytes. Decimal units such as `MB` are rejected as ambiguous.
///
/// # Errors
/// A sentence with the text and the accepted forms.
pub fn parse(text: &str) -> Result<u64, String> {
    let trimmed = text.trim();
    let (digits, factor) = UNITS
        .iter()
        .find_map(|(unit, factor)| {
            trimmed.strip_suffix(unit).map(|digits| (digits.trim_end(), *factor))
        })
        .unwrap_or((trimmed, 1));
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    plain.then(|| digits.parse::<u64>().ok()?.checked_mul(factor)).flatten().ok_or_else(|| {
        format!("`{text}` is not a size: write bytes, or KiB, MiB or GiB, such as 64KiB")
    })
}

/// The shortest exact form: `64KiB`, `1GiB`, `1000`.
pub fn format(bytes: u64) -> String {
    let unit = UNITS[..3].iter().find(|(_, factor)| bytes != 0 && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| bytes.to_string(), |(name, factor)| format!("{}{name}", bytes / factor))
}

#[cfg(test)]
mod tests;

//! Wall-clock times as text.

/// `wall_ms` milliseconds after 1970-01-01T00:00:00Z as RFC 3339 in UTC, with milliseconds.
pub fn format(wall_ms: u64) -> String {
    let (seconds, ms) = (wall_ms / 1000, wall_ms % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil_date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}

/// Gregorian year, month and day, `days` days after 1970-01-01. Years begin in March, so that the
/// leap day is the last day of its year (H. Hinnant, "chrono-Compatible Low-Level Date
/// Algorithms").
fn civil_date(days: u64) -> (u64, u64, u64) {
    const DAYS_TO_1970_FROM_MARCH_OF_YEAR_0: u64 = 719_468;
    const DAYS_OF_400_YEARS: u64 = 146_097;
    let days = days + DAYS_TO_1970_FROM_MARCH_OF_YEAR_0;
    let (era, day_of_era) = (days / DAYS_OF_400_YEARS, days % DAYS_OF_400_YEARS);
    let year_of_era =
        (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let (month, next_year) =
        if month_from_march < 10 { (month_from_march + 3, 0) } else { (month_from_march - 9, 1) };
    (400 * era + year_of_era + next_year, month, day)
}

#[cfg(test)]
mod tests;

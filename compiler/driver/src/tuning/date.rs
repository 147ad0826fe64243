//! Days of the calendar.

/// The day of a time in seconds since 1970, UTC: `2026-11-29`. The formula for the proleptic Gregorian calendar is
/// counted in eras of 400 years from 1 March of the year 0, so that the leap day is the last of a year.
pub fn of(seconds: u64) -> String {
    let days = seconds / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (of_month, month) = (of_year - (153 * month + 2) / 5 + 1, if month < 10 { month + 3 } else { month - 9 });
    let year = 400 * era + year + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{of_month:02}")
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn days() {
        for (seconds, day) in [
            (0, "1970-01-01"),
            (951_782_399, "2000-02-28"),
            (951_782_400, "2000-02-29"),
            (951_868_800, "2000-03-01"),
            (1_709_164_800, "2024-02-29"),
            (1_795_910_400, "2026-11-29"),
            (4_107_542_400, "2100-03-01"),
        ] {
            assert_eq!(of(seconds), day, "{seconds}");
        }
    }
}

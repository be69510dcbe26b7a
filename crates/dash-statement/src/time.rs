//! A time as people write it.

/// Milliseconds since 1970 as `2026-11-25 21:26:41.123`, UTC.
#[must_use]
pub fn utc(millis: i64) -> String {
    let (seconds, milli) = (millis.div_euclid(1000), millis.rem_euclid(1000));
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    // Years begin in March here, so that a leap day is the last one. 719,468 days before 1970 a
    // cycle of 400 years began.
    let day = days + 719_468;
    let (cycle, day) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (year + 400 * cycle, month + 3),
        _ => (year + 400 * cycle + 1, month - 9),
    };
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{date:02} {hour:02}:{minute:02}:{second:02}.{milli:03}")
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn as_sqlite_shows_it() {
        // strftime('%Y-%m-%d %H:%M:%f', ?1 / 1000.0, 'unixepoch')
        for (millis, shown) in [
            (0, "1970-01-01 00:00:00.000"),
            (951_782_400_000, "2000-02-29 00:00:00.000"),
            (951_868_799_000, "2000-02-29 23:59:59.000"),
            (1_709_164_800_500, "2024-02-29 00:00:00.500"),
            (1_795_642_001_123, "2026-11-25 21:26:41.123"),
            (-1_000, "1969-12-31 23:59:59.000"),
        ] {
            assert_eq!(utc(millis), shown);
        }
    }
}

//! Tests that explore or wait take a moment in `cargo test`. Under `DASH_LONG=1` they take longer,
//! as `.ci/run` has them do, and under `DASH_LONG=all` those as well for which that has no time.

/// Whether there is time.
pub fn is_long() -> bool {
    std::env::var_os("DASH_LONG").is_some_and(|value| !value.is_empty() && value != "0")
}

/// How long, or how often: one of both.
pub fn moment<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// The same for a test whose long form is run by hand.
pub fn moment_by_hand<T>(short: T, long: T) -> T {
    if std::env::var_os("DASH_LONG").is_some_and(|value| value == "all") { long } else { short }
}

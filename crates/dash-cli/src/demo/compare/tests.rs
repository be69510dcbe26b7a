//! Comparisons that come to what a test needs.

use super::*;

/// A comparison with these rates, in the order of [`MODES`].
pub fn of_rates(kind: Kind, rates: [f64; 4]) -> Comparison {
    let side = |(mode, rate)| Figures {
        mode,
        rate,
        half_us: 200.0,
        slowest_us: 4_400.0,
        cost: Some((1.0, 8.5)),
        errors: 0,
        may_lose: None,
    };
    Comparison {
        kind,
        title: "A <title>".into(),
        sides: MODES.iter().zip(rates).map(side).collect(),
        source: Source::SharedDevice,
        throttled: false,
    }
}

#[test]
fn those_within_a_twentieth_of_the_top_are_fastest_together() {
    let run = of_rates(Kind::Writer, [10.0, 100.0, 50.0, 97.0]);
    let fastest = MODES.each_ref().map(|mode| run.is_fastest(mode));
    assert_eq!(fastest, [false, true, false, true]);
    let nothing = of_rates(Kind::Recorded, [0.0; 4]);
    assert!(MODES.iter().all(|mode| !nothing.is_fastest(mode)));
}

#[test]
fn a_slow_disk_has_small_blocks_and_short_time_short_shifts() {
    let plan = |seconds, flush_us| Plan {
        base: None,
        replay: None,
        on: Where::Dir,
        time: Duration::from_secs(seconds),
        flush_us,
    };
    let usual = options(Kind::Writer, &plan(50, 100.0)).block;
    assert!(usual.is_some_and(|block| (300..BLOCK_MAX).contains(&block)), "{usual:?}");
    let slow = options(Kind::Writer, &plan(50, 10_000.0)).block;
    assert!(slow.is_some_and(|block| (2..20).contains(&block)), "{slow:?}");
    assert_eq!(options(Kind::Processes, &plan(50, 100.0)).shift, 750);
    assert_eq!(options(Kind::Processes, &plan(1, 100.0)).shift, 50);
}

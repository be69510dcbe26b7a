//! How often SQLite has read the clock of our VFS in this thread, and what it was told at first.
//!
//! SQLite reads it once before a traced program begins and once after it has ended. What it reads
//! in between the program itself asked for: `'now'`, `CURRENT_TIMESTAMP`.

use core::cell::Cell;

/// Milliseconds from SQLite's day 0, in 4714 BC, to 1970.
const TO_1970: i64 = 210_866_760_000_000;

/// Readings since somebody looked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Readings {
    /// How many.
    pub count: u32,
    /// What the first two gave, in milliseconds since 1970.
    pub first: [i64; 2],
}

thread_local! {
    static READINGS: Cell<Readings> = const { Cell::new(Readings { count: 0, first: [0; 2] }) };
}

/// The clock was read, in milliseconds as SQLite counts them.
pub(crate) fn note(time: i64) {
    // A thread that ends has no statement under way.
    let _ = READINGS.try_with(|readings| {
        let Readings { count, mut first } = readings.get();
        let place = usize::try_from(count).ok().and_then(|at| first.get_mut(at));
        if let Some(place) = place {
            *place = time.saturating_sub(TO_1970);
        }
        readings.set(Readings { count: count.saturating_add(1), first });
    });
}

/// The readings of this thread since the last time that this was asked.
pub fn take() -> Readings {
    READINGS.try_with(Cell::take).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_readings_since_the_last_look_are_kept() {
        let looked = std::thread::spawn(|| {
            assert_eq!(take(), Readings::default());
            note(TO_1970 + 5);
            note(TO_1970 + 6);
            note(TO_1970 + 7);
            assert_eq!(take(), Readings { count: 3, first: [5, 6] });
            note(TO_1970 - 1);
            assert_eq!(take(), Readings { count: 1, first: [-1, 0] });
        });
        looked.join().unwrap();
    }
}

//! Connections of dash's own, while SQLite opens them. They have none of dash's functions and
//! tables, and they alone find what goes by a name that no file has.

use core::cell::Cell;

thread_local! {
    static OPENS: Cell<bool> = const { Cell::new(false) };
}

/// Opens one.
pub(crate) fn opening<T>(open: impl FnOnce() -> T) -> T {
    let before = OPENS.replace(true);
    let opened = open();
    OPENS.set(before);
    opened
}

/// Whether what SQLite opens now, on this thread, is one of them.
#[must_use]
pub fn is_own() -> bool {
    OPENS.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_may_be_opened_while_another_one_is() {
        assert!(!is_own());
        opening(|| {
            opening(|| assert!(is_own()));
            assert!(is_own());
        });
        assert!(!is_own());
    }
}

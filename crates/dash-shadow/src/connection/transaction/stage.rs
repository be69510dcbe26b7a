//! Where a write transaction stands, and the edges between: those of the table of states in
//! FORMAT.md. Between transactions there is no stage; a commit over several databases that could
//! not be published is a debt of the connection.

/// Where a write transaction stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Writer: pages gather in memory, and no byte of the shadow has changed.
    Gathering,
    /// In flight: the fences stand, and the shadow is being written. `block`: a commit block of
    /// this transaction may be there, of pages that have changed since.
    Writing {
        /// Whether one may be.
        block: bool,
    },
    /// Pages, page list and commit block are in the shadow (FCNTL_SYNC).
    Prepared {
        /// Whether the commit counts only once a super-journal is gone.
        of_several: bool,
    },
    /// They are durable (xSync): the commit point.
    Durable {
        /// See [`Prepared`](Self::Prepared).
        of_several: bool,
    },
}

impl Stage {
    /// Whether a byte of the shadow may have changed.
    pub fn is_in_flight(self) -> bool {
        self != Self::Gathering
    }

    /// Whether it can be published as it is.
    pub fn is_prepared(self) -> bool {
        matches!(self, Self::Prepared { .. } | Self::Durable { .. })
    }

    /// Whether it was flushed.
    pub fn is_durable(self) -> bool {
        matches!(self, Self::Durable { .. })
    }

    /// Whether it is part of a transaction over several databases.
    pub fn is_of_several(self) -> bool {
        matches!(self, Self::Prepared { of_several: true } | Self::Durable { of_several: true })
    }

    /// Whether a commit block of this transaction may be in the shadow.
    pub fn has_block(self) -> bool {
        self.is_prepared() || self == Self::Writing { block: true }
    }

    /// SQLite writes on: what was prepared lists no longer all of it.
    pub fn writes_on(&mut self) {
        if self.is_prepared() {
            self.become_(Self::Writing { block: true });
        }
    }

    /// Goes on to another stage.
    pub fn become_(&mut self, next: Self) {
        debug_assert!(self.leads_to(next), "a transaction went from {self:?} to {next:?}");
        *self = next;
    }

    fn leads_to(self, next: Self) -> bool {
        match (self, next) {
            // `begin_writing_shadow`, `write_units`, `take_block_back`.
            (Self::Gathering | Self::Writing { .. }, Self::Writing { block }) => {
                !block || self.is_in_flight()
            }
            // `prepare`.
            (Self::Writing { block: true }, Self::Prepared { .. })
            // `write`, `truncate`, `take_block_back`.
            | (Self::Prepared { .. } | Self::Durable { .. }, Self::Writing { .. }) => true,
            // `flush`.
            (Self::Prepared { of_several: was }, Self::Durable { of_several }) => was == of_several,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Stage;

    const ALL: [Stage; 7] = [
        Stage::Gathering,
        Stage::Writing { block: false },
        Stage::Writing { block: true },
        Stage::Prepared { of_several: false },
        Stage::Prepared { of_several: true },
        Stage::Durable { of_several: false },
        Stage::Durable { of_several: true },
    ];

    #[test]
    fn nothing_is_durable_that_was_not_prepared_and_nothing_prepared_without_a_block() {
        for from in ALL {
            for to in ALL.into_iter().filter(|to| from.leads_to(*to)) {
                assert!(!to.is_durable() || from.is_prepared(), "{from:?} to {to:?}");
                assert!(!to.is_prepared() || from.has_block(), "{from:?} to {to:?}");
                assert!(!to.has_block() || from.is_in_flight(), "{from:?} to {to:?}");
                assert_ne!(to, Stage::Gathering, "from {from:?}");
            }
        }
    }
}

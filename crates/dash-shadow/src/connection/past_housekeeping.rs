//! Waiting for housekeeping: see [`crate::shared::housekeeping`]. A stopped process keeps its
//! locks: after [`PATIENCE`] the answer is `Busy`, and for [`GRUDGE`] it is given at once.

use crate::connection::state::Connection;
use crate::shared::locks;
use dash_engine::error::Result;
use dash_storage::Storage;
use std::ops::Range;
use std::time::Duration;

/// How long housekeeping is waited for: longer than any one write takes on a slow device.
const PATIENCE: Duration = Duration::from_secs(10);

/// For how long it is not waited for again when that was in vain.
const GRUDGE: Duration = Duration::from_secs(60);

/// How often a waiting connection looks again.
const PAUSE: Duration = Duration::from_micros(100);

impl<S: Storage> Connection<S> {
    /// Takes WRITER, past housekeeping; `false` if somebody writes.
    pub(crate) fn writer_past_housekeeping(&self) -> Result<bool> {
        let given_back = self.pair.coordination.given_back();
        let attempt = || self.pair.coordination.try_writer();
        Ok(attempt()? || self.past_housekeeping(&locks::KEEPS_WRITER, given_back, attempt)?)
    }

    /// An attempt has failed: makes it again until it is not housekeeping that is in the way.
    /// `given_back` is what was read before it.
    pub(crate) fn past_housekeeping(
        &self,
        kept: &Range<u64>,
        mut given_back: u64,
        attempt: impl Fn() -> Result<bool>,
    ) -> Result<bool> {
        let begun = self.pair.storage.monotonic_nanos();
        let since = |at| Duration::from_nanos(self.pair.storage.monotonic_nanos().wrapping_sub(at));
        let grudge = self.gave_up_at.get().is_some_and(|at| since(at) < GRUDGE);
        while self.pair.coordination.met_housekeeping(kept, given_back)? {
            if self.pair.coordination.given_back() == given_back {
                if grudge {
                    return Ok(false);
                }
                if since(begun) > PATIENCE {
                    self.gave_up_at.set(Some(self.pair.storage.monotonic_nanos()));
                    return Ok(false);
                }
                if *kept == locks::KEEPS_SHADOW {
                    self.pair.coordination.want_shadow(true);
                }
                self.pair.storage.sleep(PAUSE);
            }
            given_back = self.pair.coordination.given_back();
            if attempt()? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

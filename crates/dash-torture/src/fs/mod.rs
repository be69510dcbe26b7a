//! Real file systems: a device that records is made a file system of, and a stock SQLite with the
//! loaded extension works on it. From the record, images are rebuilt as power cuts may leave them:
//! at every flush, and with any part of what was written since. Each is mounted by the real kernel,
//! read by stock SQLite, recovered by the engine and checked against a ledger of the commits that
//! were acknowledged.
//!
//! Stock SQLite goes through the same, in modes that must lose nothing, and in modes that must be
//! seen to lose commits or to corrupt: a rig that finds nothing there would be blind, one that
//! finds fault with WAL and `synchronous=FULL` over-strict. Only databases that become smaller are
//! no measure with a rollback journal and FULL: stock SQLite damages them on ext4, see
//! `Opened::may_shrink`.
//!
//! It takes root, FUSE, loop devices and `mkfs`; what is missing is said and skipped. Limits: no
//! real power cut, a loop device, this machine's kernel, an honest flush, sectors of 512 bytes
//! written as a whole.
//!
//! | file | what it owns |
//! |---|---|
//! | `driver`, `plan`, `job` | workers, what they do, what they found |
//! | `parts`, `worker` | the other processes |
//! | `rig`, `device`, `log`, `kind` | the device, and file systems on it |
//! | `program`, `record`, `ledger`, `database` | what is recorded |
//! | `guests`, `play`, `stock`, `actor` | programs in which stock SQLite writes, too, in processes that die |
//! | `cuts`, `blocks`, `stage`, `images` | images |
//! | `check`, `visit`, `saved` | a look at an image, its first visitor, and a look at one that failed before |
//! | `failing`, `session` | devices that fail, fill up, turn read-only |

mod actor;
mod blocks;
mod check;
mod cuts;
mod database;
mod device;
mod driver;
mod failing;
mod guests;
mod images;
mod job;
mod journal;
mod kind;
mod ledger;
mod log;
mod parts;
mod plan;
mod play;
mod program;
mod record;
mod rig;
mod saved;
mod session;
mod stage;
mod stock;
mod visit;
mod worker;

use crate::{Options, Summary, Watch};

pub use parts::play_part;
pub use plan::Calibration;

/// All that the ring tries, if it can be done here.
pub fn targets() -> Vec<String> {
    plan::targets()
}

/// Runs the ring: one summary for each engine and variant on each file system.
///
/// The program that calls it must have called [`play_part`] before anything else.
pub fn run(options: &Options, watch: &dyn Watch) -> Vec<Summary> {
    plan::run(options, watch)
}

/// Tries stock SQLite only: so many images on ext4 for each of its modes. `Err`: why it can't be
/// done here.
pub fn calibrate(
    options: &Options,
    images: u64,
    watch: &dyn Watch,
) -> Result<Vec<Calibration>, String> {
    plan::calibrate(options, images, watch)
}

//! Forged databases on real files: what the simulated machine does not have, such as lengths that
//! cost nothing, and calls that never come back.

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use dash_shadow::format::{BLOCK, CommitBlock, IntentBlock, TAIL_LEN, first_page};
use dash_shadow::{Connection, LockLevel, OpenOptions, ReadOnly, Tuning, inspect};
use dash_simulated::Machine;
use dash_storage::real::Real;

use super::neighbours;
use crate::faults::part::case_folder;
use crate::random::Dice;

/// What takes longer does not come to an end.
const PATIENCE: Duration = Duration::from_secs(20);
/// Bytes that are read of a database that claims to be longer.
const ENOUGH: u64 = 1 << 20;

/// A block as it is in a file whose inode has another number.
fn moved(bytes: &mut [u8], inode: u64) {
    let len = bytes.len();
    if len < 2 * BLOCK {
        return;
    }
    let (_, tail) = bytes.split_at_mut(len - 2 * BLOCK);
    if let Ok(block) = IntentBlock::decode(&tail[..BLOCK]) {
        tail[..BLOCK].copy_from_slice(&*IntentBlock { inode, ..block }.encode());
    }
    if let Ok(block) = CommitBlock::decode(&tail[BLOCK..]) {
        tail[BLOCK..].copy_from_slice(&*CommitBlock { inode, ..block }.encode());
    }
    if let Ok(block) = first_page::extract(bytes) {
        first_page::blank(bytes);
        first_page::insert(&CommitBlock { inode, ..block }, bytes);
    }
}

/// Brings the files of a machine into a folder; a long hole comes before the tail of some.
fn bring(machine: &Machine, folder: &Path, dice: &mut Dice) -> std::io::Result<()> {
    for name in ["app.db", "app.db-shadow"] {
        let Some(mut bytes) = machine.file_view(format!("/{name}")) else { continue };
        let file = fs::File::create_new(folder.join(name))?;
        if !dice.one_in(8) {
            moved(&mut bytes, file.metadata()?.ino());
        }
        file.write_all_at(&bytes, 0)?;
        if dice.one_in(8) {
            let tail = usize::try_from(TAIL_LEN).unwrap_or(0).min(bytes.len());
            let len = 1 << (20 + dice.below(20));
            file.set_len(len)?;
            file.write_all_at(&bytes[bytes.len() - tail..], len - tail as u64)?;
        }
    }
    for name in neighbours::NAMES {
        fs::write(folder.join(name), neighbours::CONTENT)?;
    }
    if machine.exists("/app.db-journal") || dice.one_in(8) {
        fs::create_dir(folder.join("app.db-journal"))?;
    }
    Ok(())
}

/// Looks, reads, opens, reads, writes and closes; errors are welcome.
fn use_it(path: &Path) -> dash_shadow::Result<()> {
    drop(inspect(&Real, path));
    let mut buffer = vec![0; 4096];
    if let Ok(mut reader) = ReadOnly::open(&Real, path, false) {
        reader.lock(LockLevel::Shared)?;
        for offset in (0..reader.size().min(ENOUGH)).step_by(buffer.len()) {
            reader.read(&mut buffer, offset)?;
        }
        reader.close()?;
    }
    let options = OpenOptions { tuning: Tuning::tiny(), ..OpenOptions::default() };
    let mut connection = Connection::open(&Real, path, &options)?;
    connection.lock(LockLevel::Shared)?;
    for offset in (0..connection.size().min(ENOUGH)).step_by(buffer.len()) {
        connection.read(&mut buffer, offset)?;
    }
    let written = write(&mut connection, &mut buffer);
    connection.close()?;
    written
}

fn write(connection: &mut Connection<Real>, page: &mut [u8]) -> dash_shadow::Result<()> {
    // Longer copies are for longer tests.
    if connection.size() > ENOUGH {
        return Ok(());
    }
    let page = &mut page[..512];
    connection.read(page, 0)?;
    connection.lock(LockLevel::Reserved)?;
    connection.lock(LockLevel::Exclusive)?;
    page[27] = page[27].wrapping_add(1);
    page[95] = page[27];
    connection.write(page, 0)?;
    connection.prepare(None)?;
    connection.flush()?;
    connection.publish()
}

/// One case, on what was forged on a machine.
///
/// # Errors
///
/// What must never happen.
pub fn run(machine: &Machine, dice: &mut Dice) -> Result<(), String> {
    let folder = case_folder(None)?;
    bring(machine, folder.path(), dice).map_err(|error| format!("making files: {error}"))?;
    let path = folder.path().join("app.db");
    let (done, wait) = mpsc::channel();
    let thread = std::thread::spawn(move || {
        let used = catch_unwind(AssertUnwindSafe(|| use_it(&path)));
        // A driver that has lost patience does not listen any more.
        drop(done.send(used.map(drop).map_err(|_| "a panic, on files".to_owned())));
    });
    let Ok(used) = wait.recv_timeout(PATIENCE) else {
        let kept = folder.keep();
        return Err(format!("on files it does not come to an end: {}", kept.display()));
    };
    drop(thread.join());
    used.and_then(|()| neighbours::untouched_in(folder.path()))
}

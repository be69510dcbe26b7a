//! The rules of the module's documentation, each attacked by a test that is named as the rule.

mod byte_addressable;
mod data;
mod direct;
mod exploring;
mod faults;
mod killed;
mod names;
mod processes;
mod survivors;
mod switches;
mod without_a_journal;

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;

use super::{Directory, Enumerate, File, Machine, Simulated};
use dash_storage::{Directory as _, File as _, OpenMode, Storage as _};

const NEW: OpenMode = OpenMode::Create { permissions: 0o644 };

fn root(process: &Simulated) -> Directory {
    process.open_directory(Path::new("/")).unwrap()
}

fn open(directory: &Directory, name: &str) -> File {
    directory.open(OsStr::new(name), NEW).unwrap()
}

/// A machine with a file `db` of `len` bytes 0xdd, all durable.
fn with_file(len: usize) -> (Machine, Directory, File) {
    let machine = Machine::new(1);
    let directory = root(&machine.process());
    let file = open(&directory, "db");
    file.write_at(&vec![0xdd; len], 0).unwrap();
    file.flush().unwrap();
    directory.flush().unwrap();
    (machine, directory, file)
}

/// Every content that a power loss may leave under a name.
fn outcomes(machine: &Machine, name: &str) -> BTreeSet<Option<Vec<u8>>> {
    let mut all = Enumerate::new(10_000);
    let mut seen = BTreeSet::new();
    while all.advance() {
        seen.insert(machine.power_loss(&mut all).file_view(name));
    }
    assert!(all.is_complete());
    assert_eq!(u128::from(all.walked()), machine.survivor_count());
    seen
}

/// The first bytes of each sector, as text.
fn sectors(content: &[u8]) -> String {
    content.chunks(512).map(|sector| char::from(sector[0])).collect()
}

/// Every text of [`sectors`] that a power loss may leave.
fn sector_outcomes(machine: &Machine, name: &str) -> Vec<String> {
    let all = outcomes(machine, name).into_iter();
    let texts = all.map(|content| content.map_or("none".into(), |content| sectors(&content)));
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}

fn sector(byte: u8) -> [u8; 512] {
    [byte; 512]
}

//! Copying databases, and writing out what is kept back.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use crate::failure::{Explain, Result};
use crate::interrupt;

/// Bytes of a write. How a file is written decides how the page cache holds it: large writes make
/// large folios, and every later commit into one pays for its size.
const PIECE: usize = 16 << 10;

/// Copies a file, and flushes it.
pub fn copy(from: &Path, to: &Path) -> Result<()> {
    let what = || format!("copying {} to {}", from.display(), to.display());
    let mut source = File::open(from).explain(what())?;
    let mut target = File::create(to).explain(what())?;
    let mut piece = vec![0; PIECE];
    loop {
        let read = source.read(&mut piece).explain(what())?;
        if read == 0 {
            break;
        }
        target.write_all(&piece[..read]).explain(what())?;
        interrupt::check()?;
    }
    target.sync_all().explain(what())
}

/// Flushes everything in a folder: whatever a side keeps back falls to that side, and to no other.
pub fn settle(folder: &Path) -> Result<()> {
    let what = || format!("flushing {}", folder.display());
    for entry in std::fs::read_dir(folder).explain(what())? {
        let path = entry.explain(what())?.path();
        // One that went meanwhile keeps nothing back.
        if let Ok(file) = File::open(&path) {
            file.sync_all().explain(what())?;
        }
    }
    File::open(folder).and_then(|folder| folder.sync_all()).explain(what())
}

//! An image that failed, kept for another look: a folder with the image itself (sparse; `mount -o
//! loop` works on it) and what was to be found in it. Runs on a real kernel do not repeat to the
//! byte, so the seed alone would not bring it back.

use std::fs::{self, File};
use std::io::{Error, Result};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::blocks::{BLOCK, Blocks, Delta};
use super::check::Look;
use super::database::Opened;
use super::kind::Kind;
use super::ledger::Allowed;

const IMAGE: &str = "image";
const CASE: &str = "case.json";

/// A saved image.
#[derive(Debug)]
pub struct Saved {
    /// The file system.
    pub kind: Kind,
    /// How the databases were opened.
    pub opened: Opened,
    /// Whether there are two.
    pub is_attached: bool,
    /// What may be found.
    pub allowed: Allowed,
    /// The device's content.
    pub blocks: Delta,
}

/// Keeps an image in a new folder inside `folder`.
pub fn save(
    folder: &Path,
    look: &Look<'_>,
    (base, delta): (&Blocks, &Delta),
    what: &str,
) -> Result<PathBuf> {
    let place = folder.join(format!("dash-torture-image-{:016x}", base.hash_with(delta)));
    fs::create_dir_all(&place)?;
    let image = File::create(place.join(IMAGE))?;
    image.set_len(look.kind.size())?;
    for (number, block) in base.iter() {
        image.write_all_at(block, number * BLOCK as u64)?;
    }
    for (number, block) in &delta.blocks {
        image.write_all_at(&block[..], number * BLOCK as u64)?;
    }
    let case = json!({
        "file_system": look.kind.name(),
        "engine": look.opened.name(),
        "attached": look.is_attached,
        "allowed": look.allowed.to_json(),
        "what": what,
    });
    fs::write(place.join(CASE), format!("{case:#}\n"))?;
    Ok(place)
}

/// Reads it again.
pub fn load(place: &Path) -> Result<Saved> {
    let wrong = || Error::other(format!("{} is not a saved image", place.display()));
    let case: Value = serde_json::from_str(&fs::read_to_string(place.join(CASE))?)?;
    let name = |key: &str| case.get(key).and_then(Value::as_str).unwrap_or_default();
    let kind = Kind::named(name("file_system")).ok_or_else(wrong)?;
    let image = fs::read(place.join(IMAGE))?;
    let mut blocks = Delta::default();
    for (number, block) in (0..).zip(image.chunks(BLOCK)) {
        if block.iter().any(|byte| *byte != 0) {
            blocks.write(&Blocks::default(), number * BLOCK as u64, block);
        }
    }
    Ok(Saved {
        kind,
        opened: Opened::named(name("engine")).ok_or_else(wrong)?,
        is_attached: case.get("attached").and_then(Value::as_bool).ok_or_else(wrong)?,
        allowed: case.get("allowed").and_then(Allowed::from_json).ok_or_else(wrong)?,
        blocks,
    })
}

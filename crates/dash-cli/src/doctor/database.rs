//! One database: its mode, whether an open would be refused, what it was left in, what it needs.

use std::path::Path;

use dash_storage::real::{Real, is_read_only};
use dash_storage::{Directory, Storage};
use serde_json::json;

use super::access;
use super::finding::{Level, Section};
use super::leftovers;
use super::names::beside;
use super::space::Space;
use crate::engine::Findings;
use crate::engines;
use crate::out::Shown;

/// The largest that a log of mode wal grows.
const LARGEST_LOG: u64 = 64 << 20;

/// Looks at the database `file` in `folder`.
pub fn examine(folder: &Path, file: &Path) -> Section {
    let name = Path::new(file.file_name().unwrap_or_default()).shown();
    let mut section = Section::new(format!("database {name}"));
    let looked = engines::look(file);
    access::examine(&mut section, file, looked.as_deref().ok());
    if section.findings.iter().any(|finding| finding.level == Level::Refused) {
        return section;
    }
    let mode = engines::beside(file).map(|engine| engine.name);
    match looked {
        Err(failure) => section.say(Level::Refused, failure.to_string()),
        Ok(found) => {
            opening(&mut section, file, mode, &*found);
            leftovers::beside_database(&mut section, file, found.is_open());
            section.facts = json!({
                "file": file.to_string_lossy(),
                "mode": mode.unwrap_or("plain"),
                "open": found.is_open(),
                "refused": found.is_refused() || is_mounted_alone(file),
                "opening": found.opening(),
                "inspect": found.json(),
            });
        }
    }
    if is_mounted_alone(file) {
        section.advise(
            Level::Refused,
            "the file is mounted by itself, and what dash keeps beside it would lie in another folder",
            format!("mount its folder instead (docker: -v ./data:/data, not -v ./data/{name}:/data/{name})"),
        );
    }
    space(&mut section, folder, file, mode);
    section
}

fn opening(section: &mut Section, file: &Path, mode: Option<&str>, found: &dyn Findings) {
    let (opening, shown) = (found.opening(), file.shown());
    let is = match (mode, found.is_open()) {
        (Some(mode), true) => format!("mode {mode}, open"),
        (Some(mode), false) => format!("mode {mode}, nobody of dash has it open"),
        (None, true) => "open".to_owned(),
        (None, false) => {
            "a plain SQLite file, which dash opens in mode shadow unless WAL is asked for"
                .to_owned()
        }
    };
    if found.is_refused() && found.is_open() {
        section.say(Level::Note, format!("{is}; opening it through dash {opening}"));
    } else if found.is_refused() {
        let remedy = format!(
            "`sqlite-dash inspect {shown}` shows what is there, `sqlite-dash recover {shown}` what can be done"
        );
        section.advise(Level::Refused, format!("{is}; opening it through dash {opening}"), remedy);
    } else if !found.is_open() && beside(file, "-journal").is_dir() {
        section.advise(
            Level::Warning,
            format!("{is}; it was cut off, and stock SQLite is kept out (\"disk I/O error\") until dash has opened it, which {opening}"),
            access::mends(file),
        );
    } else {
        section.say(Level::Good, format!("{is}; opening it through dash {opening}"));
    }
}

fn is_mounted_alone(file: &Path) -> bool {
    let (Some(folder), Some(name)) = (file.parent(), file.file_name()) else { return false };
    Real.open_directory(folder).and_then(|folder| folder.is_mount_point(name)).unwrap_or(false)
}

/// Whether there is room for what dash may still write beside it.
fn space(section: &mut Section, folder: &Path, file: &Path, mode: Option<&str>) {
    if is_read_only(file) {
        return;
    }
    let len = |path: &Path| path.metadata().map_or(0, |found| found.len());
    let (has, wants, what) = match mode {
        Some("wal") => (len(&beside(file, "-dashlog")), LARGEST_LOG, "its log"),
        _ => (len(&beside(file, "-shadow")), len(file), "its second copy, in mode shadow"),
    };
    let Some(Space { free, .. }) = Space::of(folder) else { return };
    let needs = wants.saturating_sub(has);
    if needs > free {
        section.advise(
            Level::Warning,
            format!(
                "{what} may take another {} MiB, and {} MiB are free",
                needs.div_ceil(1 << 20),
                free >> 20
            ),
            "make room in the folder",
        );
    }
}

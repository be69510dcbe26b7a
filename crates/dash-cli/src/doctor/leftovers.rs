//! What lies in the folder, or beside a database, and belongs to nobody any more.

use std::path::Path;

use super::finding::{Level, Section};
use super::names::{Folder, beside};
use crate::out::Shown;

/// Looks for it; a section, if there is any.
pub fn examine(folder: &Folder) -> Option<Section> {
    let mut section = Section::new("left behind");
    for (owner, suffix) in &folder.orphans {
        orphan(&mut section, owner, suffix);
    }
    (!section.findings.is_empty()).then_some(section)
}

fn name(path: &Path) -> String {
    Path::new(path.file_name().unwrap_or_default()).shown()
}

/// A removed database's second copy can't be put aside.
fn folder_in_the_way(section: &mut Section, database: &Path) {
    let (shown, database) = (name(&beside(database, "-shadow-old")), name(database));
    section.advise(
        Level::Note,
        format!("{shown}: a folder; the second copy of a removed {database} is to be put aside under that name"),
        "give the folder another name",
    );
}

/// A file whose database is not there.
fn orphan(section: &mut Section, owner: &Path, suffix: &str) {
    let (file, db) = (beside(owner, suffix), owner.shown());
    let (shown, database) = (name(&file), name(owner));
    match suffix {
        "-shadow" => section.advise(
            Level::Warning,
            format!("{shown}: {database} is missing, and this copy may hold its newest commit"),
            format!("`sqlite-dash inspect {db}` tells; `sqlite-dash recover {db}` brings the database back"),
        ),
        "-shadow-old" if file.is_dir() => folder_in_the_way(section, owner),
        "-shadow-old" => section.advise(
            Level::Note,
            format!("{shown}: the second copy of a database {database} that was removed"),
            "remove it, unless its content is wanted",
        ),
        // As dash calls a log that `dash_log` puts into a folder.
        "-dashlog" if database.rsplit('-').next().is_some_and(is_number) => section.say(
            Level::Note,
            format!("{shown}: the log of a database in another folder, which has a sign that leads here; leave it"),
        ),
        "-dashlog" => section.advise(
            Level::Warning,
            format!("{shown}: {database} is missing, and this log may hold commits of it"),
            format!("`sqlite-dash inspect {db}` tells; put the database back, or remove the log if it is not wanted"),
        ),
        "-wal" => section.advise(
            Level::Warning,
            format!("{shown}: {database} is missing, and this log may hold commits of it"),
            "put the database back, or remove the log if it is not wanted",
        ),
        "-journal" if file.is_dir() => section.advise(
            Level::Warning,
            format!("{shown}/: the name fence of {database}, which is missing: SQLite can't make a database of that name"),
            format!("put the database back, or remove the folder {}", file.shown()),
        ),
        ".dash-backup-unfinished" => section.advise(
            Level::Warning,
            format!("{shown}: a backup is being made, or was killed"),
            format!("if no `sqlite-dash backup` to {db} is running, remove it; the next one there does"),
        ),
        "-journal" => section.advise(
            Level::Warning,
            format!("{shown}: a rollback journal of stock SQLite without its database"),
            "put the database back, or remove the journal if it is not wanted",
        ),
        _ => section.advise(
            Level::Warning,
            format!("{shown}: {database} is missing, and this holds nothing of it"),
            format!("remove it, unless the database is to come back: {}", file.shown()),
        ),
    }
}

fn is_number(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// What lies beside a database and has nothing to do there. `open`: dash has it open.
pub fn beside_database(section: &mut Section, file: &Path, open: bool) {
    let is_there = |suffix: &str| beside(file, suffix).symlink_metadata().is_ok();
    let shown = |suffix: &str| name(&beside(file, suffix));
    if is_there(".dash-backup-unfinished") {
        section.advise(
            Level::Warning,
            format!(
                "{}: a second name of a backup, or one that is being made",
                shown(".dash-backup-unfinished")
            ),
            "if no `sqlite-dash backup` is running, remove it: dash refuses a database with two names",
        );
    }
    if beside(file, "-shadow-old").is_dir() {
        folder_in_the_way(section, file);
    } else if is_there("-shadow-old") {
        section.advise(
            Level::Note,
            format!(
                "{}: the second copy of a database of this name that was removed",
                shown("-shadow-old")
            ),
            "remove it, unless its content is wanted",
        );
    }
    if open {
        return;
    }
    for (suffix, what) in [
        ("-dash", "shared memory of connections that were killed"),
        ("-dash-fence", "a name fence that was being put up or taken down"),
        ("-dash-new", "shared memory that was being made"),
        ("-dash-sign", "a sign that was being written"),
        ("-shadow-tmp", "an exchange of names that was cut off"),
    ] {
        if is_there(suffix) {
            section.say(
                Level::Note,
                format!("{}: {what}; the next opening through dash sees to it", shown(suffix)),
            );
        }
    }
}

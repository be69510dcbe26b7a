//! SQLite before 3.31 doesn't see a folder of length 0 where it looks for a hot journal. An empty
//! one has that length on btrfs. The note in the name fence gives it another, and says what to do.

use std::fs;
use std::path::Path;
use std::process::Command;

mod suite;

use dash_testing::Need;
use dash_testing::drivers::installed;
use dash_testing::mounts::{Kind, Mount};
use dash_testing::names::beside;
use suite::fence::note;
use suite::parts::Part;
use suite::peers::Writer;
use suite::workload;

const MODES: [&str; 3] = ["wal", "statement", "shadow"];

/// Leaves a database whose writer was killed; the newest commit that was acknowledged.
fn killed(path: &Path, mode: &str) -> i64 {
    let parameters = format!("&journal_mode={mode}");
    let db = suite::open_dash(path.as_os_str(), &parameters).expect("opens");
    workload::make(&db);
    db.close().expect("closes");
    let part = Part { parameters: &parameters, ..Part::default() };
    let mut writer = Writer::start(path, part);
    writer.reaches(6);
    writer.kill()
}

/// dash opens it, and takes away what kept others out.
fn is_recovered(path: &Path, acknowledged: i64, about: &str) {
    let db = suite::open(path);
    let found = workload::state(&db);
    assert!((acknowledged..=acknowledged + 1).contains(&found), "{about}: {found}");
    workload::commit_next(&db).expect("goes on");
    db.close().expect("closes");
    for ending in ["-journal", "-dash-fence"] {
        assert!(!beside(path, ending).exists(), "{about}: {ending} is left");
    }
}

#[test]
fn on_btrfs_too() {
    let Some(mount) = Mount::image(Kind::Btrfs, 256, &["-q"]) else { return };
    let Some(sql) = installed(Need::OlderSqlites, "sqlite/0.16.0/sql") else { return };
    let ask = |path: &Path, sql_of: &str| {
        let told = Command::new(&sql).arg(path).arg(sql_of).output().expect("it runs");
        String::from_utf8_lossy(&[told.stdout, told.stderr].concat()).trim().to_owned()
    };
    for mode in MODES {
        let path = mount.path().join(format!("{mode}.db"));
        let acknowledged = killed(&path, mode);
        for question in ["SELECT count(*) FROM log", "INSERT INTO log VALUES (1000000, 'x')"] {
            assert_eq!(ask(&path, question), "disk I/O error", "{mode}: {question}");
        }
        // So it is the note that keeps this version out.
        let text = fs::read(note(&path)).expect("the note");
        fs::remove_file(note(&path)).expect("the note");
        let seen = ask(&path, "PRAGMA user_version");
        assert_ne!(seen, "disk I/O error", "{mode}: the rig sees what an empty folder does");
        fs::write(note(&path), text).expect("the note again");
        is_recovered(&path, acknowledged, mode);
    }
}

#[test]
fn with_a_note_that_says_what_to_do() {
    let Some(mount) = Mount::image(Kind::Btrfs, 256, &["-q"]) else { return };
    for mode in MODES {
        let path = mount.path().join(format!("{mode}.db"));
        let acknowledged = killed(&path, mode);
        let text = fs::read_to_string(note(&path)).expect("the note");
        assert!(text.contains(&format!("sqlite-dash recover {mode}.db")), "{text}");
        is_recovered(&path, acknowledged, mode);
    }
}

/// Those of versions of dash that made none, and one that a crash left as it was being made.
#[test]
fn fences_without_a_note_go_like_others() {
    let folder = tempfile::tempdir().expect("a folder");
    for mode in MODES {
        let path = folder.path().join(format!("{mode}.db"));
        let acknowledged = killed(&path, mode);
        assert!(!note(&path).exists(), "on a file system where a folder has a length");
        fs::create_dir_all(beside(&path, "-dash-fence")).expect("a folder");
        let unfinished =
            beside(&path, "-dash-fence").join(note(&path).file_name().expect("a name"));
        fs::write(unfinished, "").expect("writes");
        is_recovered(&path, acknowledged, mode);
    }
}

/// What else lies in a folder of that name stays.
#[test]
fn nothing_of_somebody_elses_is_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    for mode in MODES {
        let path = folder.path().join(format!("{mode}.db"));
        killed(&path, mode);
        fs::write(beside(&path, "-journal").join("mine"), "kept").expect("writes");
        for _ in 0..3 {
            let db = suite::open(&path);
            for _ in 0..3 {
                workload::commit_next(&db).expect("commits");
            }
            db.close().expect("closes");
        }
        assert!(!beside(&path, "-journal").exists(), "{mode}: it keeps nobody out at rest");
        let kept = beside(&path, "-dash-fence").join("mine");
        assert_eq!(fs::read_to_string(kept).expect("it is there"), "kept", "{mode}");
    }
}

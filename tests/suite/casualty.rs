//! Databases that are damaged on purpose, in every state that they can come to rest in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use rusqlite::Connection;

use super::damage::{blocks, reseal, shadow};
use super::peers::{Part, Writer, last_error};
use super::{uri, workload};

/// How the database came to rest.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Left {
    /// Closed.
    Closed,
    /// `kill -9` in the middle of commits.
    Killed,
}

/// The files of a database in some state, to be damaged again and again.
pub struct Original {
    folder: tempfile::TempDir,
    /// The newest commit that was acknowledged.
    pub acknowledged: i64,
    /// The commit that an undamaged copy has; one more if it was flushed, but not acknowledged.
    pub newest: i64,
}

impl Original {
    /// Makes one; `commits` before it is closed, and more before it is killed.
    pub fn new(left: Left, commits: i64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("app.db");
        let db = super::open(&path);
        workload::make(&db);
        for _ in 0..commits {
            workload::commit_next(&db).expect("commits");
        }
        db.close().expect("closes");
        let mut acknowledged = commits;
        if left == Left::Killed {
            let mut writer = Writer::start(&path, Part::default());
            writer.reaches(commits + 3);
            acknowledged = writer.kill();
        }
        // What a later opening of an undamaged copy finds.
        let original = Self { folder, acknowledged, newest: 0 };
        let (_copy, path) = original.copy();
        let db = super::open(&path);
        let newest = workload::state(&db);
        assert!((acknowledged..=acknowledged + 1).contains(&newest), "{newest} of {acknowledged}");
        Self { newest, ..original }
    }

    /// Fresh files like the original's, byte by byte, in inodes of their own. So that the blocks
    /// are bound to these, the folder is copied as `cp -r` does, which dash knows as "moved
    /// together".
    pub fn copy(&self) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let status = Command::new("cp")
            .arg("-r")
            .arg(self.folder.path().join("."))
            .arg(folder.path())
            .status();
        assert!(status.is_ok_and(|status| status.success()));
        let path = folder.path().join("app.db");
        // The blocks name the inodes they were written into.
        for file in [path.clone(), shadow(&path)] {
            rebind(&file, &self.folder.path().join(file.file_name().expect("a name")));
        }
        (folder, path)
    }
}

/// Makes the blocks of a copied file those of its own inode, as if it were the original.
fn rebind(copy: &Path, original: &Path) {
    use std::os::unix::fs::MetadataExt;
    let inode = |path: &Path| path.metadata().expect("there").ino().to_le_bytes();
    let (old, new) = (inode(original), inode(copy));
    let bytes = fs::read(copy).expect("reads");
    for (block, start) in blocks(copy) {
        let field = usize::try_from(block.start).expect("small") + start + 24;
        if bytes[field..field + 8] == old {
            reseal(copy, block, start, &|block| block[24..32].copy_from_slice(&new));
        }
    }
}

/// CRC-32 (IEEE), as in FORMAT.md.
pub fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xEDB8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

/// Opens a damaged database: either its newest state is there and it goes on, or the refusal names
/// a remedy and the files are left as they are.
pub fn mended_or_refused(path: &Path, original: &Original, what: &str) -> bool {
    super::load();
    let before = (fs::read(path).ok(), fs::read(shadow(path)).ok());
    let opened = Connection::open(uri(path, "")).and_then(|db| {
        db.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get::<_, i64>(0))?;
        Ok(db)
    });
    match opened {
        Ok(db) => {
            let state = workload::state(&db);
            assert!(
                (original.acknowledged..=original.newest).contains(&state),
                "{what}: {state} of {}",
                original.acknowledged
            );
            for more in 1..=3 {
                let committed = workload::commit_next(&db)
                    .unwrap_or_else(|error| panic!("{what}: {error}; {}", last_error()));
                assert_eq!(committed, state + more, "{what}");
                assert_eq!(workload::state(&db), state + more, "{what}");
            }
            db.close().unwrap_or_else(|(_, error)| panic!("{what}: {error}"));
            let stock = super::stock(path);
            assert_eq!(workload::state(&stock), state + 3, "{what}");
            true
        }
        Err(error) => {
            let message = last_error();
            let remedies =
                ["sqlite-dash recover", "remove", "backup", "newer dash", "not an SQLite database"];
            assert!(
                remedies.iter().any(|remedy| message.contains(remedy)),
                "{what}: {error}: {message}"
            );
            assert!(
                before == (fs::read(path).ok(), fs::read(shadow(path)).ok()),
                "{what}: refused, but written to"
            );
            false
        }
    }
}

/// Does `damage` to copies of databases in all states; how many could be opened, and how many not.
pub fn after(what: &str, damage: &dyn Fn(&Path)) -> (usize, usize) {
    let mut counts = (0, 0);
    for left in [Left::Closed, Left::Killed] {
        for commits in [1, 2] {
            let original = Original::new(left, commits);
            let (_folder, path) = original.copy();
            damage(&path);
            if mended_or_refused(&path, &original, &format!("{what}; {left:?} after {commits}")) {
                counts.0 += 1;
            } else {
                counts.1 += 1;
            }
        }
    }
    println!("{what}: {} mended, {} refused", counts.0, counts.1);
    counts
}

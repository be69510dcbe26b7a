//! The sign under a log's name leads a process to a file elsewhere. Whoever may make files beside a
//! database, and not write it, planted one, and a process with more rights made, gave away or
//! removed a file of his choice. Such a sign is not followed now; nor is anything done to a file
//! that is not the database owner's; and nobody makes a log who was not told to.
//! WAL-25, WAL-26.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::path::{Path, PathBuf};

use dash_testing::machine::root_for;
use dash_testing::names::{beside, exists, names};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{allow, give};
use suite::sql::run;

const OWNER: u32 = 2001;
const MEMBER: u32 = 2002;
const STRANGER: u32 = 2003;
const GROUP: u32 = 5000;

/// Where a sign says whether the log was made.
const STATE: u64 = 32;

/// A database of `OWNER`'s, in a folder that everybody may write, and another such folder.
struct Place {
    folder: tempfile::TempDir,
    logs: tempfile::TempDir,
}

impl Place {
    fn new(bits: u32) -> Option<Self> {
        if !root_for("giving files away") {
            return None;
        }
        let place =
            Self { folder: tempfile::tempdir().unwrap(), logs: tempfile::tempdir().unwrap() };
        run(&suite::stock(&place.db()), "CREATE TABLE t(v)");
        run(&suite::stock(&place.db()), "PRAGMA journal_mode=wal");
        give(&place.db(), (OWNER, GROUP));
        allow(&place.db(), bits);
        allow(place.folder.path(), 0o777);
        allow(place.logs.path(), 0o777);
        Some(place)
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("app.db")
    }

    fn sign(&self) -> PathBuf {
        beside(&self.db(), "-dashlog")
    }

    fn log(&self) -> PathBuf {
        self.logs.path().join("the-log")
    }

    /// The parameter that says where the log is to lie.
    fn told(&self) -> String {
        format!("&dash_log={}", self.log().display())
    }

    /// So many commits of a user's; or why there is none.
    fn commits(&self, count: usize, user: Option<u32>, more: &str) -> Result<String, String> {
        let group = user.is_some_and(|user| user != STRANGER).then_some(GROUP);
        let part = Part { parameters: more, user, group, ..Part::default() };
        let mut session = Session::dash(&self.db(), part)?;
        for _ in 0..count {
            session.sql("INSERT INTO t VALUES (1)")?;
        }
        let said = session.must("SELECT ifnull(dash_last_error(), '')");
        session.close();
        Ok(said)
    }

    /// A sign that says that no log was made yet.
    fn signed(bits: u32) -> Option<Self> {
        let place = Self::new(bits)?;
        place.commits(0, None, &place.told()).unwrap();
        assert!(exists(&place.sign()) && !exists(&place.log()));
        Some(place)
    }

    /// A log that was made, at rest.
    fn logged(bits: u32) -> Option<Self> {
        let place = Self::new(bits)?;
        place.commits(12, None, &place.told()).unwrap();
        assert!(exists(&place.sign()) && exists(&place.log()));
        Some(place)
    }

    fn says(&self, state: &[u8; 4]) {
        let sign = fs::OpenOptions::new().write(true).open(self.sign()).unwrap();
        sign.write_all_at(state, STATE).unwrap();
    }

    /// Whatever root does with the database, it is refused with this word, and the folder elsewhere
    /// stays as it is.
    fn is_refused(&self, what: &str, word: &str) {
        let before = seen(self.logs.path());
        let folder = format!("&dash_log={}", self.logs.path().display());
        for more in ["", &self.told(), &folder, "&journal_mode=wal"] {
            let said = self.commits(3, None, more).expect_err(what);
            assert!(said.contains(word), "{what} {more}: {said}");
            assert_eq!(seen(self.logs.path()), before, "{what} {more}");
        }
        // These may succeed: without what is elsewhere.
        for mode in ["delete", "shadow"] {
            drop(self.commits(1, None, &format!("&journal_mode={mode}")));
            assert_eq!(seen(self.logs.path()), before, "{what} {mode}");
        }
    }
}

fn owners(path: &Path) -> (u32, u32) {
    let found = fs::metadata(path).unwrap();
    (found.uid(), found.gid())
}

/// All that is in a folder: names, what they are, whose, when that changed last, and the content.
fn seen(folder: &Path) -> Vec<(String, [u64; 6], Option<Vec<u8>>)> {
    let one = |name: String| {
        let path = folder.join(&name);
        let found = path.symlink_metadata().unwrap();
        let bits = u64::from(found.mode());
        let (user, group) = (u64::from(found.uid()), u64::from(found.gid()));
        let changed = [found.ctime(), found.ctime_nsec()].map(|time| u64::try_from(time).unwrap());
        let is = [found.ino(), bits, user, group, changed[0], changed[1]];
        (name, is, found.is_file().then(|| fs::read(&path).unwrap()))
    };
    let mut found: Vec<_> = names(folder).into_iter().map(one).collect();
    found.sort();
    found
}

/// What may lie at a path, and how it comes there.
type Lying = (&'static str, fn(&Path));

/// The last ones are names of a file of root's.
const LYING: [Lying; 6] = [
    ("nothing", |_| {}),
    ("an empty file", |path| fs::write(path, "").unwrap()),
    ("zeros", |path| fs::write(path, vec![0; 300 << 10]).unwrap()),
    ("text", |path| fs::write(path, "root:x:0:0").unwrap()),
    ("a hard link", |path| {
        fs::write(path.with_extension("other"), vec![0; 8192]).unwrap();
        fs::hard_link(path.with_extension("other"), path).unwrap();
    }),
    ("a symbolic link", |path| {
        fs::write(path.with_extension("other"), vec![0; 8192]).unwrap();
        symlink(path.with_extension("other"), path).unwrap();
    }),
];

#[test]
fn that_somebody_has_planted() {
    for (what, lay) in LYING {
        for state in [b"NONE", b"MADE"] {
            let Some(place) = Place::signed(0o644) else { return };
            lay(&place.log());
            place.says(state);
            give(&place.sign(), (STRANGER, STRANGER));
            allow(&place.sign(), 0o666);
            place.is_refused(what, "is not followed");
        }
    }
}

/// Not even to the database's own log.
#[test]
fn to_a_log_that_is_there() {
    for (user, group) in [(STRANGER, STRANGER), (STRANGER, GROUP), (0, 0)] {
        let Some(place) = Place::logged(0o644) else { return };
        give(&place.sign(), (user, group));
        place.is_refused("planted", "is not followed");
    }
    let Some(place) = Place::logged(0o644) else { return };
    fs::hard_link(place.sign(), place.folder.path().join("other")).unwrap();
    place.is_refused("with another name", "is not followed");
}

/// By the database's owner, who may lead root nowhere either.
#[test]
fn to_a_file_of_somebody_else() {
    for (what, lay) in LYING.into_iter().skip(1) {
        for state in [b"NONE", b"MADE"] {
            for user in [0, STRANGER] {
                let Some(place) = Place::signed(0o644) else { return };
                lay(&place.log());
                place.says(state);
                // Links are left alone by whomever.
                if !what.ends_with("link") {
                    give(&place.log(), (user, GROUP));
                }
                place.is_refused(what, "is left alone");
            }
        }
    }
    for (user, group) in [(STRANGER, STRANGER), (STRANGER, GROUP), (0, 0)] {
        let Some(place) = Place::logged(0o644) else { return };
        give(&place.log(), (user, group));
        place.is_refused("a log", "is left alone");
    }
}

/// Hard links of the owner's own are other files, too; and so is what is no log.
#[test]
fn to_a_file_of_its_own_that_is_no_log() {
    for (what, lay) in LYING.into_iter().skip(1) {
        let Some(place) = Place::signed(0o644) else { return };
        lay(&place.log());
        for name in names(place.logs.path()) {
            std::os::unix::fs::lchown(place.logs.path().join(name), Some(OWNER), Some(GROUP))
                .unwrap();
        }
        let before = seen(place.logs.path());
        match what {
            // It may be one that was being made: only who names its place makes it anew.
            "an empty file" | "zeros" => {
                let said = place.commits(12, None, "").unwrap();
                assert!(said.contains("become durable by a flush"), "{said}");
                drop(place.commits(1, None, "&journal_mode=delete"));
            }
            "text" => place.is_refused(what, "is not the log of app.db"),
            _ => place.is_refused(what, "is left alone"),
        }
        assert_eq!(seen(place.logs.path()), before, "{what}");
    }
    // Something behind zeros is no log that was being made.
    let Some(place) = Place::signed(0o644) else { return };
    let mut image = vec![0; 300 << 10];
    image[200 << 10] = 1;
    fs::write(place.log(), image).unwrap();
    give(&place.log(), (OWNER, GROUP));
    let before = seen(place.logs.path());
    let said = place.commits(12, None, &place.told()).unwrap();
    assert!(said.contains("a file is there that is no log"), "{said}");
    assert_eq!(seen(place.logs.path()), before);
}

/// What a connection makes that was not told where the log is to lie: nothing.
#[test]
fn unless_it_was_told() {
    let Some(place) = Place::signed(0o644) else { return };
    for user in [None, Some(OWNER)] {
        let said = place.commits(20, user, "").unwrap();
        assert!(said.contains("only a connection with dash_log in its URI makes it"), "{said}");
        assert_eq!(names(place.logs.path()), [""; 0]);
    }
    // Said once, and no reason for others to go without it.
    let mut untold = Session::dash(&place.db(), Part::default()).unwrap();
    (0..12).for_each(|_| drop(untold.must("INSERT INTO t VALUES (1)")));
    place.commits(12, Some(OWNER), &place.told()).unwrap();
    assert_eq!(names(place.logs.path()), ["the-log"]);
    let before = fs::read(place.log()).unwrap();
    untold.must("INSERT INTO t VALUES (1)");
    assert_ne!(fs::read(place.log()).unwrap(), before, "it uses what others have made");
    assert_eq!(untold.must("SELECT count(*) FROM t"), "65");
    untold.close();
}

/// The owner, and root for him, make it, and all who may write the database use it.
#[test]
fn but_all_who_may_write_the_database() {
    for maker in [None, Some(OWNER)] {
        let Some(place) = Place::new(0o664) else { return };
        place.commits(12, maker, &place.told()).unwrap();
        for file in [place.sign(), place.log()] {
            assert_eq!(owners(&file), (OWNER, GROUP), "{maker:?}");
        }
        let mut before = fs::read(place.log()).unwrap();
        for user in [Some(OWNER), Some(MEMBER), None] {
            let said = place.commits(12, user, "").unwrap();
            let after = fs::read(place.log()).unwrap();
            assert_ne!(after, before, "{maker:?} {user:?}: {said}");
            before = after;
        }
        give(&place.sign(), (MEMBER, GROUP));
        place.is_refused("a member's", "is not followed");
    }
}

/// Whose sign nobody follows goes without a log.
#[test]
fn and_who_can_not_have_it_followed_makes_none() {
    for (bits, user) in [(0o666, STRANGER), (0o664, MEMBER)] {
        let Some(place) = Place::new(bits) else { return };
        let said = place.commits(12, Some(user), &place.told()).unwrap();
        assert!(
            said.contains("only the owner of app.db, or root, has its log elsewhere"),
            "{said}"
        );
        assert!(said.contains("become durable by a flush") && !said.contains("  "), "{said}");
        assert!(!exists(&place.sign()), "{user}");
        assert_eq!(names(place.logs.path()), [""; 0]);
        // Nor where a sign of the owner's has led nowhere so far.
        let Some(place) = Place::signed(bits) else { return };
        let said = place.commits(12, Some(user), &place.told()).unwrap();
        assert!(
            said.contains("only the database's owner, or root, makes a log elsewhere"),
            "{said}"
        );
        assert_eq!(names(place.logs.path()), [""; 0]);
    }
}

/// A sign that was being written is never written over.
#[test]
fn nor_writes_over_what_lies_where_it_is_written() {
    let Some(place) = Place::new(0o644) else { return };
    let victim = place.logs.path().join("victim");
    fs::write(&victim, "root:x:0:0").unwrap();
    fs::hard_link(&victim, beside(&place.db(), "-dash-sign")).unwrap();
    place.commits(12, None, &place.told()).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"root:x:0:0");
    assert_eq!(owners(&victim), (0, 0));
    assert!(exists(&place.log()) && !exists(&beside(&place.db(), "-dash-sign")));
}

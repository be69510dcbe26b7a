//! Files beside a database were told by whose they are. Any file of its owner's, or of root's, may
//! be given such a name by somebody who may rename it, and who keeps it open, or could not read it
//! until then: a private file was given to the database's owner, and a database was written into a
//! file that others had open. What a file says decides now. SHADOW-28, WAL-48.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use dash_testing::names::{beside, exists, names};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{GROUP as OF_GROUP, LIST, MASK, OTHERS, OWNER as OF_OWNER, USER};
use suite::rights::{allow, encode, give};
use suite::sql::run;
use suite::strangers::{GROUP, OWNER, Place, STRANGER};

const SHADOW: &str = "&journal_mode=shadow";
const WAL: &str = "&journal_mode=wal&dash_rest=off";

const MODES: [&str; 3] = [SHADOW, WAL, "&journal_mode=wal&dash_wal=memory"];

impl Place {
    fn new(whose: u32, bits: u32) -> Option<Self> {
        let place = Self::made(bits, "CREATE TABLE t(v); INSERT INTO t VALUES ('SECRET')")?;
        give(&place.db(), (whose, GROUP));
        Some(place)
    }

    /// Commits something else again and again, while somebody reads what was there before.
    fn is_used(&self, opener: Option<u32>, mode: &str) -> Session {
        let mut session = self.open(opener, mode).expect("opens");
        session.must("PRAGMA synchronous=FULL");
        for _ in 0..12 {
            // Beside a file of root's the owner may have it for reading only.
            let done = session.sql("UPDATE t SET v = 'SECRET' || hex(randomblob(4))");
            assert!(done.as_ref().err().is_none_or(|why| why.contains("readonly")), "{done:?}");
        }
        session
    }
}

/// What a file is.
fn seen(file: &File) -> (Vec<u8>, [u32; 3]) {
    let (mut content, found) = (vec![0; 1 << 20], file.metadata().unwrap());
    let len = file.read_at(&mut content, 0).unwrap();
    content.truncate(len);
    (content, [found.uid(), found.gid(), found.mode()])
}

/// Whether a file is what it was, or lets fewer people in.
fn is_as(file: &File, (content, rights): &(Vec<u8>, [u32; 3])) -> bool {
    let (now, [user, group, bits]) = seen(file);
    now == *content && [user, group] == rights[..2] && bits & !rights[2] == 0
}

/// A side file of another database, which its owner lets everybody read. That database stays, as
/// its inode number tells it from all others.
fn anothers(name: &str, mode: &str) -> (tempfile::TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let part = Part { parameters: mode, ..Part::default() };
    let mut session = Session::dash(&path, part).unwrap();
    session.must("CREATE TABLE t(v)");
    (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
    session.kill();
    let content = fs::read(beside(&path, name)).unwrap_or_default();
    (folder, content)
}

#[test]
fn not_by_whose_it_is_where_somebody_keeps_it_open() {
    for mode in MODES {
        for name in ["-shadow", "-shadow-tmp", "-dash", "-dashlog"] {
            let (_stays, other) = anothers(name, mode);
            for content in [&b""[..], b"text", &[0; 70_000], &other] {
                for (whose, opener, bits) in [
                    (OWNER, Some(OWNER), 0o644),
                    (OWNER, Some(OWNER), 0o600),
                    (OWNER, None, 0o600),
                    (0, None, 0o600),
                    (0, Some(OWNER), 0o644),
                ] {
                    if whose == 0 && opener.is_some() && name == "-dash" {
                        continue; // he is told to remove it
                    }
                    let Some(place) = Place::new(OWNER, 0o600) else { return };
                    let planted = beside(&place.db(), name);
                    fs::write(&planted, content).unwrap();
                    give(&planted, (whose, GROUP));
                    allow(&planted, bits);
                    let kept = File::open(&planted).unwrap();
                    let before = seen(&kept);
                    let what =
                        format!("{mode} {name} {} {whose} {opener:?} {bits:o}", content.len());
                    for _ in 0..2 {
                        match place.open(opener, mode) {
                            // Another database's log, with commits; or root's, with what to do.
                            Err(why) => assert!(
                                why.contains("don't belong to app.db")
                                    || (whose == 0 && why.contains("root mends that")),
                                "{what}: {why}"
                            ),
                            Ok(session) => {
                                session.close();
                                place.is_used(opener, mode).close();
                            }
                        }
                        assert!(is_as(&kept, &before), "{what}: {:?}", seen(&kept).1);
                    }
                }
            }
        }
    }
}

/// One that was in a session once, in which its rights were changed, says what the database's says.
#[test]
fn nor_by_the_rights_that_it_has_by_now() {
    for mode in MODES {
        let Some(place) = Place::new(OWNER, 0o644) else { return };
        let [named, away] = ["-dash", "-away"].map(|name| beside(&place.db(), name));
        let session = place.is_used(Some(OWNER), mode);
        let kept = File::open(&named).unwrap();
        for path in [&named, &place.db()] {
            allow(path, 0o600);
        }
        fs::rename(&named, &away).unwrap();
        session.close();
        fs::rename(&away, &named).unwrap();
        let before = seen(&kept);
        let session = place.is_used(Some(OWNER), mode);
        assert_ne!(fs::metadata(&named).unwrap().ino(), kept.metadata().unwrap().ino(), "{mode}");
        session.close();
        assert!(is_as(&kept, &before), "{mode}");
    }
}

#[test]
fn nor_where_it_was_somebodys_alone() {
    const PARAMETERS: [&str; 5] = ["", "&mode=ro", SHADOW, WAL, "&journal_mode=delete"];
    const NAMES: [&str; 7] =
        ["-shadow", "-shadow-tmp", "-dash", "-dashlog", "-wal", "-shm", "-shadow-old"];
    for mode in ["&journal_mode=delete", SHADOW, WAL] {
        for name in NAMES {
            for parameters in PARAMETERS {
                for (whose, bits, len) in
                    [(0, 0o644, 70_000), (OWNER, 0o666, 70_000), (OWNER, 0o666, 0)]
                {
                    if ["-wal", "-shm"].contains(&name)
                        && (mode != WAL || !["", WAL].contains(&parameters))
                    {
                        continue; // stock SQLite opens it, by its rules
                    }
                    let Some(place) = Place::new(STRANGER, bits) else { return };
                    place.is_used(None, mode).close();
                    let private = place.0.path().join("private");
                    fs::write(&private, vec![b'P'; len]).unwrap();
                    give(&private, (whose, whose));
                    allow(&private, 0o600);
                    let kept = File::open(&private).unwrap();
                    let rights = seen(&kept).1;
                    fs::rename(&private, beside(&place.db(), name)).unwrap();
                    let opener = Some(whose).filter(|&whose| whose != 0);
                    let what = format!("{mode} {name} {parameters} {whose} {len}");
                    let Ok(mut session) = place.open(opener, parameters) else { continue };
                    drop(session.sql("SELECT count(*) FROM t"));
                    drop(session.sql("INSERT INTO t VALUES (1)"));
                    for _ in 0..2 {
                        assert_eq!(seen(&kept).1, rights, "{what}");
                        for name in names(place.0.path()) {
                            let path = place.0.path().join(&name);
                            let is_it = path.is_file()
                                && fs::read(&path).unwrap().windows(9).any(|it| it == b"PPPPPPPPP");
                            let bits = fs::metadata(&path).unwrap().mode() & 0o077;
                            assert!(!is_it || bits == 0, "{what}: {name} {bits:o}");
                        }
                        drop(session.sql("SELECT dash_backup('copy')"));
                    }
                    session.close();
                    assert_eq!(seen(&kept).1, rights, "{what}");
                }
            }
        }
    }
}

/// A sign for another user's log, of which everybody may read the id.
fn sign(log: &Path, database: &Path) -> Vec<u8> {
    let head = fs::read(log).unwrap();
    let path = log.to_str().unwrap().as_bytes();
    let mut sign = [&head[..8], &[0xFF; 4], &[0; 4], &head[16..24], &[0; 12]].concat();
    sign.extend(u16::try_from(path.len()).unwrap().to_le_bytes());
    sign.extend(path);
    let sum = crc32fast::hash(&sign).to_le_bytes();
    sign[12..16].copy_from_slice(&sum);
    sign[24..32].copy_from_slice(&fs::metadata(database).unwrap().ino().to_le_bytes());
    sign[32..36].copy_from_slice(b"MADE");
    sign
}

/// The owner of a database writes into its list what he likes.
#[test]
fn nor_by_a_list() {
    let list = [
        (OF_OWNER, 6, u32::MAX),
        (USER, 6, 0),
        (USER, 6, OWNER),
        (OF_GROUP, 0, u32::MAX),
        (MASK, 6, u32::MAX),
        (OTHERS, 0, u32::MAX),
    ];
    for whose in [0, OWNER] {
        for parameters in ["", "&mode=ro", WAL, SHADOW, "&dash_log=FOLDER"] {
            let Some(place) = Place::new(STRANGER, 0o600) else { return };
            run(&suite::stock(&place.db()), "PRAGMA journal_mode=wal");
            let theirs = tempfile::tempdir().unwrap();
            let other = theirs.path().join("other.db");
            run(&suite::stock(&other), "CREATE TABLE t(v)");
            let part = Part { parameters: WAL, ..Part::default() };
            let mut session = Session::dash(&other, part).unwrap();
            (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
            session.kill();
            let log = beside(&other, "-dashlog");
            give(&log, (whose, whose));
            allow(&log, 0o644);
            allow(theirs.path(), 0o755);
            let kept = File::open(&log).unwrap();
            let before = seen(&kept);
            let planted = beside(&place.db(), "-dashlog");
            fs::write(&planted, sign(&log, &place.db())).unwrap();
            give(&planted, (STRANGER, STRANGER));
            if xattr::set(place.db(), LIST, &encode(&list)).is_err() {
                return;
            }
            let opener = Some(whose).filter(|&whose| whose != 0);
            let parameters = parameters.replace("FOLDER", place.0.path().to_str().unwrap());
            if let Ok(mut session) = place.open(opener, &parameters) {
                (0..12).for_each(|_| drop(session.sql("INSERT INTO t VALUES (1)")));
                session.close();
            }
            assert!(seen(&kept) == before && exists(&log), "{whose} {parameters}");
        }
    }
}

/// unlink(2) counts a name less before the name is gone.
#[test]
fn nor_by_its_links_while_they_change() {
    for (name, parameters) in
        [("-shadow", SHADOW), ("-dash", SHADOW), ("-dash", WAL), ("-wal", WAL), ("-shm", WAL)]
    {
        let Some(place) = Place::new(STRANGER, 0o600) else { return };
        place.is_used(None, parameters).close();
        let (precious, planted) = (place.0.path().join("precious"), beside(&place.db(), name));
        fs::write(&precious, vec![b'P'; 70_000]).unwrap();
        allow(&precious, 0o666);
        let kept = File::open(&precious).unwrap();
        let (before, ends) = (seen(&kept), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !ends.load(SeqCst) {
                    drop(fs::hard_link(&precious, &planted));
                    drop(fs::remove_file(&planted));
                }
            });
            for _ in 0..300 {
                if let Ok(db) = suite::open_dash(place.db().as_os_str(), parameters) {
                    drop(db.execute_batch("INSERT INTO t VALUES (1)"));
                }
                if seen(&kept) != before {
                    break;
                }
            }
            ends.store(true, SeqCst);
        });
        assert!(seen(&kept) == before, "{name} {parameters}: {:?}", seen(&kept).1);
    }
}

/// A file that is no folder, where a name fence is to be made or taken away, kept commits out.
#[test]
fn nor_is_what_is_no_folder_a_fence() {
    for mode in [SHADOW, WAL] {
        for (bits, opener) in [(0o777, Some(OWNER)), (0o1777, Some(OWNER)), (0o1777, None)] {
            let Some(place) = Place::new(OWNER, 0o600) else { return };
            let planted = beside(&place.db(), "-dash-fence");
            fs::write(&planted, "SQLite format 3").unwrap();
            give(&planted, (STRANGER, STRANGER));
            allow(place.0.path(), bits);
            for _ in 0..2 {
                let mut session = place.open(opener, mode).unwrap();
                for number in 0..12 {
                    session.must(&format!("INSERT INTO t VALUES ({number})"));
                }
                session.close();
            }
        }
    }
}

/// The shadow of a database that was removed stays where it was put, whatever is planted there.
#[test]
fn nor_does_a_strangers_shadow_take_the_place_of_one_that_was_kept() {
    for opener in [Some(OWNER), None] {
        let Some(place) = Place::new(OWNER, 0o600) else { return };
        place.is_used(Some(OWNER), SHADOW).close();
        let his = fs::read(beside(&place.db(), "-shadow")).unwrap();
        let [shadow, kept] = ["-shadow", "-shadow-old"].map(|name| beside(&place.db(), name));
        fs::write(&kept, "PRECIOUS").unwrap();
        give(&kept, (OWNER, GROUP));
        fs::remove_file(&shadow).unwrap();
        fs::write(&shadow, his).unwrap();
        give(&shadow, (STRANGER, STRANGER));
        fs::remove_file(place.db()).unwrap();
        if let Ok(mut session) = place.open(opener, SHADOW) {
            drop(session.sql("CREATE TABLE t(v)"));
            session.close();
        }
        assert_eq!(fs::read(&kept).unwrap(), b"PRECIOUS", "{opener:?}");
    }
}

/// What those who share a database have from each other stays: by a group, or as root's.
#[test]
fn but_what_a_killed_process_left_is_taken_over() {
    for mode in [SHADOW, WAL] {
        for (one, other) in [(Some(OWNER), None), (None, Some(OWNER)), (Some(OWNER), Some(OWNER))] {
            let Some(place) = Place::new(OWNER, 0o660) else { return };
            place.is_used(one, mode).kill();
            let ids = |place: &Place| -> Vec<Option<u64>> {
                let id = |name| fs::metadata(beside(&place.db(), name)).ok().map(|it| it.ino());
                ["-shadow", "-dashlog", "-wal"].map(id).to_vec()
            };
            let before = ids(&place);
            allow(&place.db(), 0o640);
            let mut session = place.open(other, mode).unwrap();
            session.must("INSERT INTO t VALUES ('new')");
            assert_eq!(session.must("SELECT count(*) FROM t"), "2", "{mode} {one:?} {other:?}");
            for (name, bits) in
                [("-shadow", 0o640), ("-dash", 0o640), ("-dashlog", 0o660), ("-wal", 0o660)]
            {
                let Ok(found) = fs::metadata(beside(&place.db(), name)) else { continue };
                let rights = (found.uid(), found.gid(), found.mode() & 0o777);
                assert_eq!(rights, (OWNER, GROUP, bits), "{mode} {name} {one:?} {other:?}");
            }
            let mut after = ids(&place);
            if mode == SHADOW {
                // The copies have changed places.
                after[0] = before[0];
            }
            assert_eq!(after, before, "{mode} {one:?} {other:?}");
            session.close();
        }
    }
}

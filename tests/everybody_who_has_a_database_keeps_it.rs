//! The second copy becomes the database, so who may use the one may use the other: whatever the
//! umask, the user who writes, or a chmod in between. Where that can't be, nothing is written. A
//! tester had two users lock each other out of a database that both could use.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};

use dash_testing::machine::{is_root, root_for};
use dash_testing::names::beside;
use dash_testing::{Need, skip};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights;
use suite::sql::run;

const GROUP: u32 = 5000;
const USERS: [u32; 2] = [2001, 2002];

/// A folder and a database of one user's, with these permission bits.
fn made(folder_bits: u32, bits: u32, group: u32) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    let db = rusqlite::Connection::open(&path).unwrap();
    run(&db, "CREATE TABLE t(v)");
    drop(db);
    if is_root() {
        chown(folder.path(), Some(USERS[0]), Some(group)).unwrap();
        chown(&path, Some(USERS[0]), Some(group)).unwrap();
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(folder_bits)).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
    (folder, path)
}

fn bits(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn insert(path: &Path, part: Part<'_>) -> Result<String, String> {
    let mut session = Session::dash(path, part)?;
    let done = match session.sql("INSERT INTO t VALUES (1) RETURNING (SELECT count(*) FROM t)") {
        Err(error) => Err(format!("{error}; {}", session.must("SELECT dash_last_error()"))),
        done => done,
    };
    session.close();
    done
}

/// While it is open, too: of the file beside it that connections share.
#[test]
fn whatever_the_umask() {
    for wanted in [0o666, 0o640, 0o600] {
        let (_folder, path) = made(0o777, wanted, GROUP);
        let mut session =
            Session::dash(&path, Part { umask: Some(0o077), ..Part::default() }).unwrap();
        for _ in 0..3 {
            session.must("INSERT INTO t VALUES (1)");
            for name in ["", "-shadow", "-dash"] {
                assert_eq!(bits(&beside(&path, name)), wanted, "app.db{name}");
            }
        }
    }
}

#[test]
fn after_a_chmod_while_it_is_open_and_while_it_is_closed() {
    let (_folder, path) = made(0o777, 0o600, GROUP);
    for wanted in [0o644, 0o666, 0o640] {
        let mut session = Session::dash(&path, Part::default()).unwrap();
        session.must("INSERT INTO t VALUES (1)");
        fs::set_permissions(&path, fs::Permissions::from_mode(wanted)).unwrap();
        for _ in 0..2 {
            session.must("INSERT INTO t VALUES (1)");
            let both = [path.clone(), beside(&path, "-shadow")].map(|file| bits(&file));
            assert_eq!(both, [wanted; 2]);
        }
        drop(session);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).unwrap();
        insert(&path, Part::default()).unwrap();
        assert_eq!(bits(&path), 0o660);
    }
}

#[test]
fn users_of_a_group_share_it() {
    if !root_for("becoming another user") {
        return;
    }
    let (_folder, path) = made(0o2770, 0o660, GROUP);
    for round in 0..6 {
        let user = Some(USERS[round % 2]);
        let part = Part { user, group: Some(GROUP), umask: Some(0o022), ..Part::default() };
        assert_eq!(insert(&path, part).unwrap(), (round + 1).to_string(), "round {round}");
        let found = fs::metadata(&path).unwrap();
        assert_eq!((found.gid(), found.mode() & 0o777), (GROUP, 0o660), "round {round}");
    }
}

/// The owner is not in the file's group, and can't give the second copy to it.
#[test]
fn who_would_lock_others_out_does_not_write() {
    if !root_for("becoming another user") {
        return;
    }
    let owner = Part { user: Some(USERS[0]), ..Part::default() };
    let (_folder, path) = made(0o777, 0o660, GROUP);
    let error = insert(&path, owner).unwrap_err();
    assert!(error.contains("readonly") && error.contains("locking others out"), "{error}");
    let member = Part { user: Some(USERS[1]), group: Some(GROUP), ..Part::default() };
    assert_eq!(insert(&path, member).unwrap(), "1", "who can give it to the group writes");
    let found = fs::metadata(&path).unwrap();
    assert_eq!((found.gid(), found.mode() & 0o777), (GROUP, 0o660));
    // Nobody but its owner has it: then the group does not matter.
    let (_folder, path) = made(0o777, 0o600, GROUP);
    assert_eq!(insert(&path, owner).unwrap(), "1");
    assert_eq!(bits(&path), 0o600);
}

/// Who may only read leaves nothing behind that is in the way of who may write.
#[test]
fn who_may_only_read_leaves_nothing_behind() {
    if !root_for("becoming another user") {
        return;
    }
    let (_folder, path) = made(0o777, 0o644, GROUP);
    insert(&path, Part { user: Some(USERS[1]), ..Part::default() }).unwrap_err();
    assert!(!beside(&path, "-dash").exists());
    assert_eq!(insert(&path, Part { user: Some(USERS[0]), ..Part::default() }).unwrap(), "1");
}

/// A job of root's that was killed left a fence that nobody else could flush: every commit of the
/// owner was refused for good.
#[test]
fn whoever_was_killed_with_whatever_umask() {
    if !root_for("becoming another user") {
        return;
    }
    let owner = Part { user: Some(USERS[0]), group: Some(GROUP), ..Part::default() };
    let member = Part { user: Some(USERS[1]), group: Some(GROUP), ..Part::default() };
    let cases = [(0o755, 0o644, Part::default()), (0o2770, 0o660, member)];
    for parameters in ["", "&journal_mode=wal", "&journal_mode=statement"] {
        for (folder_bits, bits, killed) in cases {
            let (_folder, path) = made(folder_bits, bits, GROUP);
            let left = beside(&path, "-dash-fence"); // Of an older dash, too.
            fs::create_dir(&left).unwrap();
            fs::set_permissions(&left, fs::Permissions::from_mode(0o700)).unwrap();
            let mut job =
                Session::dash(&path, Part { parameters, umask: Some(0o077), ..killed }).unwrap();
            (0..3).for_each(|_| drop(job.must("INSERT INTO t VALUES (1)")));
            job.kill();
            let fence = beside(&path, "-journal");
            let found = fs::metadata(&fence).unwrap();
            let wanted = bits | (bits & 0o444) >> 2;
            assert_eq!(found.mode() & 0o777, (wanted | 0o300) & !0o022, "{parameters}");
            assert_eq!(found.gid(), GROUP, "{parameters}");
            if killed.user.is_none() {
                assert_eq!(found.uid(), USERS[0], "{parameters}");
            }
            for left in [false, true] {
                if left {
                    // As an older dash has left it.
                    fs::set_permissions(&fence, fs::Permissions::from_mode(0o700)).unwrap();
                    chown(&fence, Some(0), Some(0)).unwrap();
                }
                let mut next = Session::dash(&path, Part { parameters, ..owner }).unwrap();
                for _ in 0..2 {
                    next.must("INSERT INTO t VALUES (1)");
                    assert_eq!(next.must("SELECT dash_last_error()"), "Null", "{parameters}");
                }
                next.kill();
                assert!(fence.is_dir(), "{parameters}");
            }
            Session::dash(&path, Part { parameters, ..owner }).unwrap().close();
            assert!(!fence.exists() && !left.exists(), "{parameters}");
        }
    }
}

/// A database made under a tight umask is opened to a group or to all by `chmod`, while nobody has
/// it open. Its shadow may not be read by them, and stock SQLite needs none.
#[test]
fn who_is_let_in_at_rest() {
    if !root_for("becoming another user") {
        return;
    }
    let (_folder, path) = made(0o2775, 0o600, GROUP);
    let owner = Part { user: Some(USERS[0]), group: Some(GROUP), ..Part::default() };
    let member = Part { user: Some(USERS[1]), group: Some(GROUP), ..Part::default() };
    let reader = Part { user: Some(USERS[1]), parameters: "&mode=ro", ..Part::default() };
    insert(&path, owner).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o664)).unwrap();
    let mut reads = Session::dash(&path, reader).unwrap();
    assert_eq!(reads.must("SELECT count(*) FROM t"), "1");
    reads.close();
    for (number, user) in ["2", "3", "4"].into_iter().zip([member, owner, member]) {
        assert_eq!(insert(&path, user).as_deref(), Ok(number));
    }
}

/// A user who only reads leaves `-wal` and `-shm` of his own, and the owner was locked out. Where
/// nobody has the database open they make room; a `-wal` that is used stays his.
#[test]
fn what_a_mere_reader_left_makes_room() {
    if !root_for("becoming another user") {
        return;
    }
    let parameters = "&journal_mode=wal";
    let [owner, reader] = USERS.map(|user| Part {
        parameters,
        user: Some(user),
        group: Some(GROUP),
        ..Part::default()
    });
    let reader = Part { parameters: "", ..reader };
    let of_reader = |path: &Path| fs::metadata(beside(path, "-wal")).unwrap().uid() == USERS[1];
    for (stays, is_killed) in [(false, true), (false, false), (true, false)] {
        let (_folder, path) = made(0o2770, 0o640, GROUP);
        insert(&path, owner).unwrap();
        let mut reads = Session::dash(&path, reader).unwrap();
        reads.must("SELECT count(*) FROM t");
        assert!(of_reader(&path), "{stays}");
        let stays = stays.then_some(reads);
        let mut root = Session::dash(&path, Part { parameters, ..Part::default() }).unwrap();
        (0..3).for_each(|_| drop(root.must("INSERT INTO t VALUES (1)")));
        if stays.is_some() {
            assert!(of_reader(&path));
            root.close();
            continue;
        }
        for name in ["-wal", "-shm"] {
            let found = fs::metadata(beside(&path, name)).unwrap();
            let rights = (found.uid(), found.gid(), found.mode() & 0o777);
            assert_eq!(rights, (USERS[0], GROUP, 0o640), "app.db{name}");
        }
        match is_killed {
            true => root.kill(),
            false => assert_eq!(insert(&path, owner).unwrap(), "5", "beside root"),
        }
        let stands = beside(&path, "-journal").exists();
        if is_killed && stands {
            // As an older dash has left it.
            chown(beside(&path, "-wal"), Some(USERS[1]), None).unwrap();
            let error = insert(&path, owner).unwrap_err();
            for word in ["app.db-wal", "of user 2002", "root mends that"] {
                assert!(error.contains(word), "{error}");
            }
            assert!(!error.contains("name fence"), "{error}");
            drop(insert(&path, Part { parameters, ..Part::default() }).unwrap());
        }
        insert(&path, owner).unwrap();
    }
}

/// Root, or a user, made the database, closed it and gave it away: what lies beside it stayed. The
/// new owner was kept from writing for good, or got stock SQLite's durability.
#[test]
fn whom_a_database_is_given_to_at_rest() {
    if !root_for("giving files away") {
        return;
    }
    let maker = Part { user: Some(USERS[1]), ..Part::default() };
    let owner = Part { user: Some(USERS[0]), ..Part::default() };
    for (parameters, side) in [
        ("", "-shadow"),
        ("&journal_mode=wal", "-dashlog"),
        ("&journal_mode=statement", "-dashlog"),
    ] {
        for maker in [Part::default(), maker] {
            let (folder, path) = made(0o777, 0o644, GROUP);
            let give = |to: u32| {
                chown(folder.path(), Some(to), Some(to)).unwrap();
                chown(&path, Some(to), Some(to)).unwrap();
            };
            give(maker.user.unwrap_or(0));
            let mut session = Session::dash(&path, Part { parameters, ..maker }).unwrap();
            (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
            session.close();
            give(USERS[0]);
            let mut session = Session::dash(&path, Part { parameters, ..owner }).unwrap();
            let said = session.must("SELECT dash_last_error()");
            assert_eq!(said, "Null", "{parameters}");
            (0..3).for_each(|_| drop(session.must("INSERT INTO t VALUES (2)")));
            assert_eq!(session.must("SELECT count(*) FROM t"), "15", "{parameters}");
            assert_ne!(session.must("SELECT dash_engine()"), "plain", "{parameters}");
            let found = fs::metadata(beside(&path, side)).unwrap();
            assert_eq!(found.uid(), USERS[0], "{parameters}");
            session.close();
        }
    }
}

/// The same after a kill, or where the power was lost after the first commit of a session, whose
/// names were not yet on the disk: the shadow has the newest commit. It stays.
#[test]
fn what_may_have_a_commit_is_kept_when_the_database_is_given_away() {
    if !root_for("giving files away") {
        return;
    }
    let owner = Part { user: Some(USERS[0]), ..Part::default() };
    for (power, hidden) in [(false, false), (true, false), (true, true)] {
        let (folder, path) = made(0o777, 0o644, GROUP);
        let give = |to: u32| {
            chown(folder.path(), Some(to), Some(to)).unwrap();
            chown(&path, Some(to), Some(to)).unwrap();
        };
        give(0);
        insert(&path, Part::default()).unwrap();
        let mut killed = Session::dash(&path, Part::default()).unwrap();
        killed.must("INSERT INTO t VALUES (2)");
        if !power {
            (0..2).for_each(|_| drop(killed.must("INSERT INTO t VALUES (2)")));
        }
        killed.kill();
        let shadow = beside(&path, "-shadow");
        fs::remove_file(beside(&path, "-dash")).unwrap();
        if power {
            let aside = beside(&path, "-aside");
            fs::rename(&path, &aside).unwrap();
            fs::rename(&shadow, &path).unwrap();
            fs::rename(&aside, &shadow).unwrap();
        }
        if hidden {
            fs::set_permissions(&shadow, fs::Permissions::from_mode(0o600)).unwrap();
        }
        give(USERS[0]);
        let error = insert(&path, owner).unwrap_err();
        for word in ["app.db-shadow", "of user 0", "root mends that"] {
            assert!(error.contains(word), "{power} {hidden}: {error}");
        }
        // As it is told then.
        chown(&shadow, Some(USERS[0]), Some(USERS[0])).unwrap();
        fs::set_permissions(&shadow, fs::Permissions::from_mode(0o644)).unwrap();
        let rows = if power { "3" } else { "5" };
        assert_eq!(insert(&path, owner).unwrap(), rows, "{power} {hidden}");
    }
}

/// Whom an access control list lets in can't give a file to the database's owner: who was killed
/// left `app.db-dash`, and a log, that the owner could not open.
#[test]
fn who_is_let_in_by_a_list_locks_the_owner_out_of_nothing() {
    if !root_for("becoming another user") {
        return;
    }
    let [owner, other] = USERS.map(|user| Part { user: Some(user), ..Part::default() });
    for parameters in ["", "&journal_mode=wal", "&journal_mode=statement"] {
        let (_folder, path) = made(0o777, 0o660, USERS[0]);
        let none = u32::MAX;
        let list = [
            (rights::OWNER, 6, none),
            (rights::USER, 6, USERS[1]),
            (rights::GROUP, 4, none),
            (rights::MASK, 6, none),
            (rights::OTHERS, 0, none),
        ];
        if xattr::set(&path, rights::LIST, &rights::encode(&list)).is_err() {
            return skip(Need::Lists, "this file system has no access control lists");
        }
        // Both copies are there, and have the list.
        drop(insert(&path, Part { parameters, ..owner }).unwrap());
        for is_killed in [false, true] {
            let mut let_in = Session::dash(&path, Part { parameters, ..other }).unwrap();
            (0..3).for_each(|_| drop(let_in.must("INSERT INTO t VALUES (1)")));
            let beside_him = Session::dash(&path, Part { parameters, ..owner });
            let mut beside_him = beside_him.unwrap_or_else(|error| panic!("{parameters}: {error}"));
            beside_him.must("INSERT INTO t VALUES (1)");
            assert_ne!(beside_him.must("SELECT dash_engine()"), "plain", "{parameters}");
            beside_him.close();
            match is_killed {
                true => let_in.kill(),
                false => let_in.close(),
            }
            insert(&path, Part { parameters, ..owner }).unwrap();
        }
    }
}

/// In a folder with the sticky bit nobody but the owner may exchange the names.
#[test]
fn who_can_not_exchange_the_names_is_told_of_the_sticky_bit() {
    if !root_for("becoming another user") {
        return;
    }
    let (folder, path) = made(0o1777, 0o666, USERS[0]);
    chown(folder.path(), Some(0), Some(0)).unwrap();
    let [owner, other] = USERS.map(|user| Part { user: Some(user), ..Part::default() });
    insert(&path, owner).unwrap();
    let error = insert(&path, other).unwrap_err();
    for word in ["exchanging the names of app.db", "sticky bit", "journal_mode=wal"] {
        assert!(error.contains(word), "{error}");
    }
}

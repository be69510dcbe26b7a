//! Who opens a file keeps it open, whatever is done about its rights later. `app.db-dashlog` and
//! `app.db-wal` had the database's permission bits and their maker's group for an instant, and a
//! neighbour in that group caught them, for writing, hundreds of times a minute. Here the process
//! that makes files is stopped at each of its system calls, and no file beside the database may
//! give anybody what the database does not give. SEC S2-5.

#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

mod suite;

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use dash_testing::machine::root_for;
use dash_testing::names::{beside, names};
use dash_testing::{Need, skip};
use suite::parts::Part;
use suite::peers::Session;
use suite::rights::{self, Entry, Person, allow, encode, may};
use suite::sql::run;
use suite::steps::Steps;

const OWNER: u32 = 4001;
/// Of the group; his files begin with another one.
const MEMBER: u32 = 4002;
/// By the database's access control list alone.
const NAMED: u32 = 4005;
const GROUP: u32 = 5001;
const NAMED_GROUP: u32 = 5002;

/// Everybody who may look.
const PEOPLE: [Person; 8] = [
    Person { user: OWNER, groups: &[OWNER] },
    Person { user: 4010, groups: &[GROUP] },
    // Neighbours in the makers' own groups.
    Person { user: 4003, groups: &[MEMBER] },
    Person { user: 4006, groups: &[NAMED] },
    Person { user: 4007, groups: &[0] },
    Person { user: NAMED, groups: &[NAMED] },
    Person { user: 4008, groups: &[NAMED_GROUP, MEMBER] },
    Person { user: 4009, groups: &[4009] },
];

/// A database, and a folder for logs, that all may make files in.
struct Place {
    folder: tempfile::TempDir,
    logs: tempfile::TempDir,
    scratch: tempfile::TempDir,
}

impl Place {
    /// At rest, in WAL mode; with these bits, or this list.
    fn new(bits: u32, list: &[Entry]) -> Option<Self> {
        let [folder, logs, scratch] = [(); 3].map(|()| tempfile::tempdir().unwrap());
        let place = Self { folder, logs, scratch };
        run(&suite::stock(&place.db()), "CREATE TABLE t(v)");
        run(&suite::stock(&place.db()), "PRAGMA journal_mode=wal");
        chown(place.db(), Some(OWNER), Some(GROUP)).unwrap();
        allow(&place.db(), bits);
        for folder in [&place.folder, &place.logs, &place.scratch] {
            allow(folder.path(), 0o777);
        }
        if !list.is_empty() && xattr::set(place.db(), rights::LIST, &encode(list)).is_err() {
            skip(Need::Lists, "this file system has no access control lists");
            return None;
        }
        Some(place)
    }

    fn db(&self) -> PathBuf {
        self.folder.path().join("app.db")
    }

    /// Has the database opened, written and closed twice by somebody, and looks on; answers how
    /// often.
    fn watch(&self, user: Option<u32>, parameters: &str) -> usize {
        let group = user.map(|user| if user == MEMBER { GROUP } else { user });
        let part = Part { user, group, umask: Some(0), ..Part::default() };
        let mut session = Session::dash(&self.scratch.path().join("other.db"), part).unwrap();
        let (db, maker) = (self.db(), user.unwrap_or(0));
        if parameters.contains("shadow") {
            // What stock SQLite makes to leave its own mode is made by its rules.
            run(&suite::stock(&db), "PRAGMA journal_mode=delete");
        }
        let folders = [self.folder.path(), self.logs.path()].map(Path::to_owned);
        let given = PEOPLE.map(|who| may(&db, who));
        let steps = Steps::of(session.id(), move || wider(&given, &folders, maker));
        let told = parameters.replace("LOGS", self.logs.path().to_str().unwrap());
        for _ in 0..2 {
            session.must(&format!("ATTACH '{}' AS a", suite::uri(self.db(), &told)));
            session.must("PRAGMA a.synchronous=FULL");
            for number in 0..12 {
                session.must(&format!("INSERT INTO a.t VALUES ({number})"));
            }
            session.must("PRAGMA a.wal_checkpoint(TRUNCATE)");
            session.must("INSERT INTO a.t VALUES (1)");
            session.must("DETACH a");
        }
        let (seen, wider) = steps.end(|| drop(session.must("SELECT 1")));
        session.close();
        let what = format!("{user:?} with {parameters:?} and {:?}", rights::entries(&self.db()));
        assert!(wider.is_empty(), "{what}: {wider:#?}");
        seen
    }
}

/// Files in these folders that let somebody in whom the database does not, or not so far.
fn wider(given: &[u16; PEOPLE.len()], folders: &[PathBuf], maker: u32) -> Vec<String> {
    let mut wider = Vec::new();
    let files = folders.iter().flat_map(|it| names(it).into_iter().map(move |name| it.join(name)));
    for path in files {
        let Ok(found) = path.symlink_metadata() else { continue };
        let people = PEOPLE.iter().zip(given);
        for (who, given) in people.filter(|(who, _)| found.is_file() && who.user != maker) {
            let more = may(&path, *who) & !given;
            if more != 0 {
                let name = path.file_name().unwrap().to_string_lossy();
                let entries = rights::entries(&path);
                let is = format!("{:o} {}:{}", found.mode() & 0o7777, found.uid(), found.gid());
                wider.push(format!("{name} ({is}, {entries:?}) gives {who:?} {more}"));
            }
        }
    }
    wider
}

const PARAMETERS: [&str; 5] = [
    "",
    "&journal_mode=statement&dash_commit=paper",
    "&dash_log=LOGS/the-log",
    "&dash_wal=memory",
    "&journal_mode=shadow",
];

#[test]
fn while_a_member_of_its_group_uses_it() {
    if !root_for("becoming other users") {
        return;
    }
    for parameters in PARAMETERS {
        let Some(place) = Place::new(0o660, &[]) else { return };
        assert!(place.watch(Some(MEMBER), parameters) > 1000, "{parameters}");
    }
}

#[test]
fn while_root_and_the_owner_use_it() {
    if !root_for("becoming other users") {
        return;
    }
    for user in [None, Some(OWNER)] {
        for bits in [0o640, 0o604] {
            let Some(place) = Place::new(bits, &[]) else { return };
            place.watch(user, "");
            place.watch(user, "&dash_log=LOGS/the-log");
        }
    }
}

/// Bits of the group say no more than the most that entries may give.
#[test]
fn by_its_access_control_list() {
    if !root_for("becoming other users") {
        return;
    }
    // Some are named, and the database's group is let in less than these.
    let for_some: [Entry; 6] = [
        (rights::OWNER, 6, u32::MAX),
        (rights::USER, 6, NAMED),
        (rights::GROUP, 0, u32::MAX),
        (rights::NAMED_GROUP, 0, NAMED_GROUP),
        (rights::MASK, 6, u32::MAX),
        (rights::OTHERS, 0, u32::MAX),
    ];
    // All but some are let in.
    let mut for_all = for_some;
    (for_all[2].1, for_all[5].1) = (6, 6);
    for list in [for_some, for_all] {
        for user in [None, Some(OWNER), Some(NAMED)] {
            let Some(place) = Place::new(0o660, &list) else { return };
            place.watch(user, "");
        }
    }
}

/// A folder may have new files begin with a list.
#[test]
fn in_a_folder_with_a_list_for_new_files() {
    if !root_for("becoming other users") {
        return;
    }
    let Some(place) = Place::new(0o660, &[]) else { return };
    let list: [Entry; 5] = [
        (rights::OWNER, 7, u32::MAX),
        (rights::USER, 7, 4009),
        (rights::GROUP, 7, u32::MAX),
        (rights::MASK, 7, u32::MAX),
        (rights::OTHERS, 7, u32::MAX),
    ];
    if xattr::set(place.folder.path(), rights::DEFAULT_LIST, &encode(&list)).is_err() {
        return skip(Need::Lists, "this file system has no access control lists");
    }
    for user in [None, Some(MEMBER)] {
        place.watch(user, "");
    }
}

/// What is done to the database at rest reaches the files that are there, when they are made anew:
/// a log before a commit gets into it, and a `-wal` at the next opening that finds it empty.
#[test]
fn after_a_chmod_at_rest() {
    if !root_for("becoming other users") {
        return;
    }
    let Some(place) = Place::new(0o666, &[]) else { return };
    let mut session = Session::dash(&place.db(), Part::default()).unwrap();
    (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
    session.kill();
    allow(&place.db(), 0o600);
    let found = |name: &str| fs::metadata(beside(&place.db(), name)).unwrap().mode() & 0o777;
    for name in ["-wal", "-dashlog"] {
        assert_eq!(found(name), 0o666, "it was killed");
    }
    let owner = Part { user: Some(OWNER), ..Part::default() };
    for (round, wal) in [0o666, 0o600].into_iter().enumerate() {
        let mut session = Session::dash(&place.db(), owner).unwrap();
        assert_eq!(session.must("SELECT count(*) FROM t"), [12, 24][round].to_string());
        (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
        assert_eq!((found("-wal"), found("-dashlog")), (wal, 0o600), "{round}");
        session.close();
    }
}

/// Whoever was killed while he made a file has left it to himself alone. Others are told whose it
/// is, and what to do; who may open it goes on, and so do all after him.
#[test]
fn what_a_killed_maker_has_left_locks_nobody_out_for_ever() {
    if !root_for("becoming other users") {
        return;
    }
    for name in ["-wal", "-shm", "-dashlog", "-dash"] {
        for user in [None, Some(MEMBER)] {
            let Some(place) = Place::new(0o660, &[]) else { return };
            let left = beside(&place.db(), name);
            fs::write(&left, "").unwrap();
            chown(&left, Some(MEMBER), Some(MEMBER)).unwrap();
            allow(&left, 0o600);
            let open = |user: Option<u32>| {
                let group = user.map(|_| GROUP);
                let mut session =
                    Session::dash(&place.db(), Part { user, group, ..Part::default() })?;
                (0..12).for_each(|_| drop(session.must("INSERT INTO t VALUES (1)")));
                let said = session.must("SELECT ifnull(dash_last_error(), '')");
                session.close();
                Ok::<_, String>(said)
            };
            let said = open(Some(OWNER));
            match said {
                // It was empty and unused, and so it was made anew.
                Ok(said) if said.is_empty() && ["-wal", "-shm"].contains(&name) => {}
                // By stock SQLite's rules.
                Ok(said) if name == "-dashlog" => {
                    assert!(said.contains("app.db-dashlog"), "{said}")
                }
                said => {
                    let whose = format!("app.db{name} belongs to user {MEMBER} alone");
                    assert!(said.as_ref().is_err_and(|said| said.contains(&whose)), "{said:?}");
                }
            }
            open(user).unwrap_or_else(|said| panic!("{name} {user:?}: {said}"));
            let said = open(Some(OWNER)).unwrap_or_else(|said| panic!("{name} {user:?}: {said}"));
            assert_eq!(said, "", "{name} {user:?}");
        }
    }
}

/// A copy has the rights of the file that is read, and of no other one that this process has
/// locked: by a transaction of another database, or as its `-shm`.
#[test]
fn nor_is_a_copy_by_what_has_the_name_of_its_source() {
    drop(suite::open_dash(":memory:".as_ref(), "").unwrap());
    for mode in ["delete", "wal"] {
        for others in [None, Some("-shm"), Some("-other")] {
            if (mode, others) == ("delete", Some("-shm")) {
                continue;
            }
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("app.db");
            let [away, copy] = ["-away", "-copy"].map(|name| beside(&path, name));
            run(&suite::stock(&path), "CREATE TABLE t(v)");
            run(&suite::stock(&path), &format!("PRAGMA journal_mode={mode}"));
            allow(&path, 0o640);
            let other = suite::stock(&beside(&path, "-other"));
            run(&other, "CREATE TABLE t(v); BEGIN; SELECT * FROM t");
            if mode == "wal" {
                fs::write(beside(&path, "-shm"), "x").unwrap();
                allow(&beside(&path, "-shm"), 0o666);
            }
            allow(&beside(&path, "-other"), 0o666);
            let db = suite::stock(&path);
            run(&db, "INSERT INTO t VALUES (1)");
            if let Some(name) = others {
                fs::rename(&path, away).unwrap();
                fs::rename(beside(&path, name), &path).unwrap();
            }
            let sql = format!("SELECT dash_backup('{}')", copy.display());
            let made = db.query_row(&sql, [], |_| Ok(()));
            // Without the program's leave nothing tells that the folder is the database's.
            assert_eq!(made.is_ok(), others.is_none(), "{mode} {others:?}: {made:?}");
            let found = fs::metadata(copy).ok().map(|found| found.mode() & 0o777);
            assert_eq!(found, made.ok().map(|()| 0o640), "{mode} {others:?}");
        }
    }
}

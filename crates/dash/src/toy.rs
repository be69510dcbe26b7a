//! A mode of the tests, to show what a new one takes: two traits, and a line in [`crate::modes`].
//! Its databases are files of the host, and count what is written.

use std::path::Path;

use dash_ffi::{File, HostFile, HostVfs, OpenFlags, Opened, Result};

use crate::delegate::delegate;
use crate::main_file::opened;
use crate::mode::Parameters;
use crate::mode::{Database, Mode, Parameter, Statistic};
use crate::mode::{Opening, Place, Switching};

/// The mode.
pub const MODE: &dyn Mode = &Toy;

/// See [`MODE`].
pub struct Toy;

impl Mode for Toy {
    fn engine(&self) -> &'static str {
        "toy"
    }

    fn names(&self) -> &'static [&'static str] {
        &["toy"]
    }

    fn pragmas(&self) -> &'static [&'static str] {
        &["dash_toys"]
    }

    fn parameters(&self) -> &'static [Parameter] {
        &[Parameter {
            name: "dash_toy_size",
            value: "METRES",
            check: |text| text.parse::<u32>().map(drop).map_err(|error| error.to_string()),
        }]
    }

    /// The mode stays with a file as long as another one lies beside it.
    fn recognises(&self, place: &Place<'_>) -> Result<bool> {
        Ok(place.path.with_extension("toy").exists())
    }

    fn open(&self, opening: Opening<'_>) -> Result<Opened> {
        let Opening { request, membership, .. } = opening;
        let (file, flags) = request.host.open(request.name, request.flags)?;
        Ok(opened(&request, (MODE, Box::new(Open { file, writes: 0 })), flags, Some(membership)))
    }

    fn enter(&self, switching: &Switching<'_>) -> Result<Box<dyn Database>> {
        let flags = OpenFlags::MAIN_DB | OpenFlags::READWRITE;
        let (file, _) = switching.host.open_path(switching.path, flags)?;
        Ok(Box::new(Open { file, writes: 0 }))
    }
}

struct Open {
    file: HostFile,
    writes: u64,
}

impl Database for Open {
    fn engine(&self) -> &'static str {
        MODE.engine()
    }

    fn pragma(&mut self, name: &str, _: Option<&str>) -> Option<Result<String>> {
        (name == "dash_toys").then(|| Ok(self.writes.to_string()))
    }

    fn statistics(&self) -> Option<Vec<Statistic>> {
        Some(vec![Statistic::alone(("writes", self.writes))])
    }

    fn may_leave(&mut self) -> Result<()> {
        Ok(())
    }

    fn leave(self: Box<Self>, _: &mut Parameters, _: &Path, _: &HostVfs) -> Result<()> {
        self.close()
    }

    fn end(self: Box<Self>, _: &HostVfs) -> Result<()> {
        self.close()
    }
}

impl File for Open {
    delegate!([file] read truncate sync size lock unlock check_reserved_lock file_control sector_size device_characteristics);

    fn write(&mut self, data: &[u8], offset: u64) -> Result<()> {
        self.writes += 1;
        self.file.write(data, offset)
    }

    fn close(self: Box<Self>) -> Result<()> {
        Box::new(self.file).close()
    }
}

/// From the URI and from the files, by PRAGMA there and back, and as `dash_stats` and the error
/// messages see it.
#[test]
#[expect(unsafe_code, reason = "registering calls SQLite")]
fn a_mode_is_two_traits_and_a_line() {
    crate::register!(rusqlite).expect("registers");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("app.db");
    let open =
        |more: &str| rusqlite::Connection::open(format!("file:{}?vfs=dash{more}", path.display()));
    let text = |db: &rusqlite::Connection, sql: &str| -> String {
        db.query_row(sql, [], |row| row.get(0)).expect(sql)
    };
    let db = open("").expect("opens");
    db.execute_batch("CREATE TABLE t(x); INSERT INTO t VALUES (1)").expect("writes");
    assert_eq!(text(&db, "SELECT dash_engine()"), "shadow");
    let error = db.execute_batch("PRAGMA dash_toys").expect_err("shadow has none");
    assert!(error.to_string().contains("PRAGMA journal_mode=toy first"), "{error}");
    assert_eq!(text(&db, "PRAGMA journal_mode = toy"), "toy");
    assert_eq!(text(&db, "SELECT dash_engine()"), "toy");
    db.execute_batch("INSERT INTO t VALUES (2)").expect("writes");
    let writes = "SELECT value FROM dash_stats WHERE name = 'writes'";
    let counted = db.query_row(writes, [], |row| row.get::<_, i64>(0)).expect("counts");
    assert!(counted > 0);
    assert_eq!(text(&db, "PRAGMA dash_toys"), counted.to_string());
    assert_eq!(text(&db, "PRAGMA journal_mode = shadow"), "shadow");
    db.close().expect("closes");

    std::fs::write(path.with_extension("toy"), "").expect("a mark");
    let db = open("").expect("opens");
    assert_eq!(text(&db, "PRAGMA journal_mode"), "toy");
    assert_eq!(text(&db, "SELECT count(*) || '' FROM t"), "2");
    assert_eq!(text(&db, "PRAGMA journal_mode = delete"), "delete");
    assert_eq!(text(&db, "SELECT dash_engine()"), "plain");
    db.close().expect("closes");
    open("&journal_mode=toy&dash_toy_size=3").expect("opens").close().expect("closes");
    open("&journal_mode=toy&dash_toy_size=big").expect_err("no number");
    open("&dash_toy_sise=3").expect_err("misspelt");
}

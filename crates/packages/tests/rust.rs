//! The crates, as the registry would hand them out, in a project that has none of the workspace.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::programs::{killed, stock};
use crate::common::{Made, done, make};
use dash_testing::long::is_long;
use dash_testing::machine::has_sqlite3;

const PROGRAM: &str = r#"fn main() -> Result<(), Box<dyn std::error::Error>> {
    dash::register!(rusqlite)?;
    let db = rusqlite::Connection::open("file:app.db?vfs=dash")?;
    db.pragma_update(None, "journal_mode", "WAL")?;
    db.execute_batch("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7)")?;
    let asked = "SELECT dash_engine() || ' ' || value FROM dash_stats WHERE name = 'durability'";
    println!("{}", db.query_row(asked, [], |row| row.get::<_, String>(0))?);
    if std::env::args().len() > 1 {
        std::process::abort();
    }
    Ok(())
}
"#;

/// Unpacks the crates; those of them that `sqlite-dash` takes are taken from here.
fn project(made: &Made) {
    let folder = made.folder.path().join("app");
    fs::create_dir_all(folder.join("src")).expect("a folder");
    fs::write(folder.join("src/main.rs"), PROGRAM).expect("a file");
    let mut text = "[package]\nname = \"app\"\nedition = \"2024\"\n[dependencies]\n\
        rusqlite = { version = \"0.41\", features = [\"bundled\"] }\n\
        sqlite-dash = \"*\"\n[patch.crates-io]\n"
        .to_owned();
    for file in &made.files {
        // As new as they are, or cargo takes what it compiled in a run before.
        done(Command::new("tar").arg("-xmf").arg(file).current_dir(&folder));
        let unpacked = file.file_stem().expect("a name").to_string_lossy();
        let (name, _) = unpacked.rsplit_once('-').expect("a version");
        writeln!(text, "{name} = {{ path = \"{unpacked}\" }}").expect("memory");
    }
    fs::write(folder.join("Cargo.toml"), text).expect("a file");
}

#[test]
fn a_program_links_it_in() {
    // Compiling SQLite and dash takes a minute.
    if !is_long() {
        return;
    }
    if !has_sqlite3() {
        return;
    }
    let Some(made) = make("rust") else { return };
    project(&made);
    let folder = made.folder.path().join("app");
    // SQLite is compiled once for all runs.
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rust");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--offline", "--target-dir"]).arg(&target);
    cargo.env("CFLAGS", "-O0").env_remove("RUSTC_WRAPPER");
    done(cargo.current_dir(&folder));
    let app = |arguments: &[&str]| {
        let mut app = Command::new(target.join("debug/app"));
        app.args(arguments).current_dir(&folder);
        app
    };
    assert_eq!(killed(&mut app(&["dies"])), "wal full\n");
    assert_eq!(done(&mut app(&[])), "wal full\n");
    assert_eq!(stock(&folder, "app.db", "SELECT count(*) FROM t"), "2\n");
}

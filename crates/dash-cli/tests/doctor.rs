//! `sqlite-dash doctor` says what is wrong with a folder and what is in it, and changes nothing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use super::common::killed::run_and_kill;
use super::common::{Home, Run};
use dash_testing::machine::is_root;
use dash_testing::mounts::Mount;
use serde_json::Value;

/// What it says, without the programs of this machine.
fn doctor(home: &Home, path: &str) -> Value {
    let run = home.dash(&["doctor", path, "--json", "--no-hosts"]);
    let report: Value = serde_json::from_str(&run.out()).unwrap();
    let bad = report["refused"] != 0 || report["warnings"] != 0;
    run.is(i32::from(bad));
    report
}

/// The findings of one section that are of this level, a line each.
fn findings(report: &Value, section: &str, level: &str) -> String {
    let sections = report["sections"].as_array().unwrap();
    let found = sections.iter().filter(|it| it["about"].as_str().unwrap().starts_with(section));
    let lines =
        found.flat_map(|it| it["findings"].as_array().unwrap()).filter(|it| it["level"] == level);
    lines.map(|it| format!("{} -> {}\n", it["says"], it["remedy"])).collect()
}

#[test]
fn a_sound_folder_has_nothing_to_do_and_stays_as_it_is() {
    let home = Home::new();
    home.shadowed();
    fs::write(home.file("notes.txt"), "no database").unwrap();
    let state = || (home.contents(), home.path().metadata().unwrap().modified().unwrap());
    let before = state();
    let report = doctor(&home, ".");
    for level in ["refused", "warning", "note"] {
        assert_eq!(findings(&report, "database", level), "", "{report:#}");
        assert_eq!(findings(&report, "left behind", level), "");
    }
    let sections = report["sections"].as_array().unwrap();
    assert_eq!(sections.len(), 2, "{report:#}");
    assert_eq!(sections[1]["facts"]["mode"], "shadow");
    assert!(sections[0]["facts"]["space"]["free_bytes"].as_u64().unwrap() > 0);
    assert_eq!(before, state());
    // The database alone is the same.
    let report = doctor(&home, "app.db");
    assert_eq!(report["sections"].as_array().unwrap().len(), 2);
}

#[test]
fn an_open_database_is_left_to_who_has_it() {
    let home = Home::new();
    home.shadowed();
    let mut shell = home.shell();
    let mut input = shell.stdin.take().unwrap();
    let mut output = BufReader::new(shell.stdout.take().unwrap()).lines();
    writeln!(input, "BEGIN IMMEDIATE; SELECT 'begun';").unwrap();
    assert_eq!(output.next().unwrap().unwrap(), "begun");
    let report = doctor(&home, ".");
    assert!(findings(&report, "database", "ok").contains("joins the connections"), "{report:#}");
    assert_eq!(findings(&report, "database", "warning"), "");
    writeln!(input, "INSERT INTO t (body) VALUES ('beside it'); COMMIT; SELECT 'done';").unwrap();
    assert_eq!(output.next().unwrap().unwrap(), "done");
    drop(input);
    shell.wait().unwrap();
}

#[test]
fn a_killed_session_is_to_be_recovered() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    let insert = |number| format!("INSERT INTO t (body) VALUES ('by dash {number}');");
    run_and_kill(&home, &(0..3).map(insert).collect::<Vec<_>>());
    let before = home.contents();
    let report = doctor(&home, ".");
    let warning = findings(&report, "database", "warning");
    assert!(
        warning.contains("it was cut off") && warning.contains("sqlite-dash recover"),
        "{report:#}"
    );
    assert!(findings(&report, "database", "note").contains("app.db-dash:"), "{report:#}");
    assert_eq!(before, home.contents());
    home.dash(&["recover", "app.db", "--yes"]).is(0);
    let report = doctor(&home, ".");
    assert_eq!(findings(&report, "database", "warning"), "", "{report:#}");
    assert!(findings(&report, "database", "ok").contains("mode wal"));
}

#[test]
fn what_would_be_refused_says_so_with_the_remedy() {
    let home = Home::new();
    home.shadowed();
    fs::hard_link(home.db(), home.file("other")).unwrap();
    let report = doctor(&home, "app.db");
    let refused = findings(&report, "database", "refused");
    assert!(
        refused.contains("hard links") && refused.contains("sqlite-dash inspect"),
        "{report:#}"
    );
    fs::remove_file(home.file("other")).unwrap();
    fs::write(home.file("app.db"), "no database".repeat(1000)).unwrap();
    home.dash(&["doctor", "app.db", "--no-hosts"]).is(1).says("refused");
}

#[test]
fn files_without_their_database_are_named() {
    let home = Home::new();
    home.shadowed();
    fs::remove_file(home.db()).unwrap();
    fs::write(home.file("gone.db-dashlog"), "x").unwrap();
    fs::write(home.file("far.db-0123456789abcdef-dashlog"), "x").unwrap();
    fs::create_dir(home.file("old.db-journal")).unwrap();
    fs::write(home.file("copy.db.dash-backup-unfinished"), "x").unwrap();
    let report = doctor(&home, ".");
    let warnings = findings(&report, "left behind", "warning");
    for words in [
        "app.db-shadow: app.db is missing",
        "gone.db-dashlog: gone.db is missing",
        "old.db-journal/: the name fence of old.db",
        "copy.db.dash-backup-unfinished: a backup is being made, or was killed",
    ] {
        assert!(warnings.contains(words), "{words}: {report:#}");
    }
    assert!(!warnings.contains("far.db"), "{report:#}");
    assert!(findings(&report, "left behind", "note").contains("database in another folder"));
    // The one database, whose file is missing.
    let report = doctor(&home, "app.db");
    assert!(findings(&report, "left behind", "warning").contains("app.db-shadow"), "{report:#}");
    assert!(!findings(&report, "left behind", "warning").contains("gone.db"), "{report:#}");
}

#[test]
fn rights_that_others_lack_are_named() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    home.sql("INSERT INTO t (body) VALUES ('one')");
    home.sql("INSERT INTO t (body) VALUES ('two'); INSERT INTO t (body) VALUES ('three');");
    fs::set_permissions(home.db(), fs::Permissions::from_mode(0o664)).unwrap();
    fs::set_permissions(home.file("app.db-dashlog"), fs::Permissions::from_mode(0o600)).unwrap();
    let report = doctor(&home, ".");
    let warning = findings(&report, "database", "warning");
    assert!(warning.contains("app.db-dashlog is 0600"), "{report:#}");
    // chmod follows a link that somebody puts there by then.
    assert!(!warning.contains("chmod") && !warning.contains("chown"), "{report:#}");
    assert!(warning.contains("sqlite-dash shell"), "{report:#}");
    home.sql("SELECT 1");
    assert_eq!(findings(&doctor(&home, "."), "database", "warning"), "");
    if is_root() {
        // The next commits make another one.
        home.sql("INSERT INTO t (body) VALUES ('4'); INSERT INTO t (body) VALUES ('5'); INSERT INTO t (body) VALUES ('6');");
        std::os::unix::fs::chown(home.file("app.db-dashlog"), Some(65_534), None).unwrap();
        let warning = findings(&doctor(&home, "."), "database", "warning");
        assert!(warning.contains("remove it, as dash makes another one: rm "), "{warning}");
        fs::remove_file(home.file("app.db-dashlog")).unwrap();
    }
    fs::set_permissions(home.db(), fs::Permissions::from_mode(0o644)).unwrap();
    let Some(mut other) = home.forbidden(&["doctor", ".", "--no-hosts"]) else { return };
    Run(other.output().unwrap()).is(1).says("may not write it");
}

#[test]
fn mounts_are_judged() {
    let home = Home::new();
    home.shadowed();
    let Some(memory) = Mount::tmpfs("4m") else { return };
    let report = doctor(&home, &memory.path().display().to_string());
    assert!(findings(&report, "folder", "warning").contains("nothing here survives"), "{report:#}");
    assert_eq!(report["sections"][0]["facts"]["file_system"], "tmpfs");
    let Some(same) = Mount::read_only(home.path()) else { return };
    let report = doctor(&home, &same.path().display().to_string());
    assert!(findings(&report, "folder", "warning").contains("mounted read-only"), "{report:#}");
    let warning = findings(&report, "database", "warning");
    assert!(warning.contains("mounted read-only") && !warning.contains("may not"), "{report:#}");
    assert!(report.to_string().contains("mode=ro&immutable=1"), "{report:#}");
    assert!(!findings(&report, "folder", "warning").contains("may not write"), "{report:#}");
    let inside = tempfile::tempdir().unwrap();
    let point = inside.path().join("app.db");
    fs::write(&point, "").unwrap();
    let Some(_alone) = Mount::file(&home.db(), &point) else { return };
    let report = doctor(&home, &inside.path().display().to_string());
    assert!(findings(&report, "database", "refused").contains("mounted by itself"), "{report:#}");
}

#[test]
fn programs_of_the_path_are_asked_for_their_sqlite() {
    let home = Home::new();
    drop(home.plain());
    let programs = home.file("programs");
    fs::create_dir(&programs).unwrap();
    let program = |name: &str, script: &str| {
        let path = programs.join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    program("sqlite3", "echo sqlite=3.30.1; echo extensions=1");
    program("python3", "echo sqlite=3.54.0; echo extensions=0");
    program("ruby", "exit 3");
    fs::write(programs.join("perl"), "not to be run").unwrap();
    let run = |path: &Path| {
        let mut command = home.command(&["doctor", "."]);
        Run(command.env("PATH", path).stdin(Stdio::null()).output().unwrap())
    };
    let run_here = run(&programs)
        .says("SQLite 3.30.1")
        .says("dash needs SQLite 3.31 or newer")
        .says("SQLite 3.54.0; it loads no extensions")
        .says("ctypes")
        .says("did not answer");
    assert!(!run_here.out().contains("perl"), "{}", run_here.out());
    // A host is no reason for a warning: nobody may want it.
    let report = doctor(&home, ".");
    let bad = report["refused"] != 0 || report["warnings"] != 0;
    run_here.is(i32::from(bad));
    run(home.path()).says("none that is known to bring an SQLite");
}

#[test]
fn what_is_no_database_is_said_to_be_none() {
    let home = Home::new();
    home.dash(&["doctor", "app.db"]).is(2).says("does not exist");
    home.dash(&["doctor", "nowhere/app.db"]).is(2).says("looking at nowhere/app.db");
    fs::write(home.file("notes"), "no database").unwrap();
    home.dash(&["doctor", "notes"]).is(2).says("is no SQLite database");
    // One that nobody has written yet is as good as its folder.
    fs::write(home.file("app.db"), "").unwrap();
    let of_folder = home.dash(&["doctor", "--no-hosts", "."]);
    home.dash(&["doctor", "--no-hosts", "app.db"]).is(of_folder.0.status.code().unwrap());
}

/// Read as it stands, -wal and the log left out, such a database is an old one.
#[test]
fn on_a_read_only_mount_one_that_was_cut_off_is_not_to_be_read_as_it_stands() {
    for mode in ["shadow", "wal", "stock"] {
        let home = Home::new();
        let stock = home.plain();
        if mode == "stock" {
            stock.pragma_update(None, "journal_mode", "wal").unwrap();
            stock.execute_batch("INSERT INTO t (body) VALUES ('in -wal')").unwrap();
        } else {
            drop(stock);
            home.dash(&["convert", "app.db", "--to", mode]).is(0);
            run_and_kill(&home, &vec!["INSERT INTO t (body) VALUES ('x');".to_owned(); 12]);
        }
        let Some(mount) = Mount::read_only(home.path()) else { return };
        let path = mount.path().join("app.db").display().to_string();
        let report = doctor(&home, &path);
        let warning = findings(&report, "database", "warning");
        assert!(!warning.contains("immutable"), "{mode}: {warning}");
        assert!(!warning.contains("make room"), "{mode}: {warning}");
        assert!(
            warning.contains("mount it for writing, or copy all of app.db*"),
            "{mode}: {warning}"
        );
        drop(mount);
        if mode != "stock" {
            home.dash(&["recover", "app.db"]).is(0);
            let Some(mount) = Mount::read_only(home.path()) else { return };
            let path = mount.path().join("app.db").display().to_string();
            let warning = findings(&doctor(&home, &path), "database", "warning");
            assert!(warning.contains("mode=ro&immutable=1"), "{mode}: {warning}");
            assert!(!warning.contains("make room"), "{mode}: {warning}");
        }
    }
}

/// With mode=ro SQLite makes `-shm`, for which there is no right.
#[test]
fn who_may_only_read_is_told_how() {
    let home = Home::new();
    drop(home.plain());
    home.dash(&["convert", "app.db", "--to", "wal"]).is(0);
    let ask = || {
        let mut other = home.forbidden(&["doctor", "app.db", "--no-hosts"])?;
        Some(Run(other.output().unwrap()).is(1).out())
    };
    let Some(said) = ask() else { return };
    assert!(said.contains("mode=ro&immutable=1"), "{said}");
    run_and_kill(&home, &vec!["INSERT INTO t (body) VALUES ('x');".to_owned(); 12]);
    let said = ask().unwrap();
    assert!(!said.contains("mode=ro"), "{said}");
    assert!(said.contains("sqlite-dash recover"), "{said}");
}

/// A line of a name might be taken for one of the program's.
#[test]
fn the_newline_of_a_name_begins_no_line() {
    for mode in ["shadow", "wal"] {
        let home = Home::new();
        drop(home.plain());
        let name = "a\nroot: run this.db";
        fs::rename(home.db(), home.file(name)).unwrap();
        home.dash(&["convert", name, "--to", mode]).is(0);
        for command in ["inspect", "doctor", "replay", "log", "recover", "top"] {
            let all =
                if command == "top" { vec![command, name, "--once"] } else { vec![command, name] };
            let run = home.dash(&all);
            let all = format!("{}{}", run.out(), run.errors());
            assert!(!all.contains("\nroot: run"), "{command}, {mode}: {all}");
        }
        fs::rename(home.file(name), home.file("gone")).unwrap();
        fs::write(home.file(&format!("{name}-wal")), "x").unwrap();
        for command in [&["doctor", "."][..], &["inspect", name], &["recover", name]] {
            let run = home.dash(command);
            let all = format!("{}{}", run.out(), run.errors());
            assert!(!all.contains("\nroot: run"), "{command:?}, {mode}: {all}");
        }
    }
}

/// A command that root is to give would change the rights of what a link leads to.
#[test]
fn it_gives_nothing_away_through_a_link() {
    for name in ["app.db-dashlog", "app.db-wal", "app.db-dash"] {
        let home = Home::new();
        home.shadowed();
        fs::write(home.file("private"), "").unwrap();
        fs::set_permissions(home.file("private"), fs::Permissions::from_mode(0o400)).unwrap();
        std::os::unix::fs::symlink(home.file("private"), home.file(name)).unwrap();
        let said = findings(&doctor(&home, "app.db"), "database", "warning");
        assert!(said.contains(name) && said.contains("remove it: rm "), "{said}");
        assert!(!said.contains("chown") && !said.contains("chmod"), "{said}");
    }
}

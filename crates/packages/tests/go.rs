//! The Go module: a program on mattn/go-sqlite3 that names another driver.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::programs::{killed, stock};
use crate::common::{done, make};
use dash_testing::Need;
use dash_testing::drivers::installed;
use dash_testing::long::moment_by_hand;
use dash_testing::machine::has_sqlite3;

const PROGRAM: &str = r#"package main

import (
	"database/sql"
	"fmt"
	"os"
	"syscall"

	_ "sqlite-dash"
)

func check(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

func main() {
	db, err := sql.Open("sqlite3-dash", os.Args[1])
	check(err)
	if len(os.Args) > 2 && os.Args[2] == "waits" {
		waits(db)
		return
	}
	_, err = db.Exec("CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7)")
	check(err)
	var engine, durability string
	asked := "SELECT dash_engine(), value FROM dash_stats WHERE name = 'durability'"
	check(db.QueryRow(asked).Scan(&engine, &durability))
	fmt.Println(engine, durability)
	if len(os.Args) > 2 {
		check(syscall.Kill(os.Getpid(), syscall.SIGKILL))
	}
	check(db.Close())
}
"#;

/// It prints why a wait for a lock ended that was given a context for a moment.
const WAITS: &str = r#"package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"
)

func waits(db *sql.DB) {
	all := context.Background()
	holder, err := db.Conn(all)
	check(err)
	_, err = holder.ExecContext(all, "BEGIN IMMEDIATE")
	check(err)
	moment, cancel := context.WithTimeout(all, 300*time.Millisecond)
	defer cancel()
	waiter, err := db.Conn(all)
	check(err)
	_, err = waiter.ExecContext(moment, "BEGIN IMMEDIATE")
	fmt.Println(err)
}
"#;

/// The module's own `go.mod` says of what else it is made.
fn project(folder: &Path, module: &Path) {
    fs::write(folder.join("main.go"), PROGRAM).expect("a file");
    fs::write(folder.join("waits.go"), WAITS).expect("a file");
    let sums = fs::read(module.join("go.sum")).expect("its sums");
    fs::write(folder.join("go.sum"), sums).expect("a file");
    let theirs = fs::read_to_string(module.join("go.mod")).expect("its go.mod");
    let mattn = theirs.lines().find(|line| line.contains("mattn")).expect("a driver");
    let text = format!(
        "module app\n\ngo 1.22\n\nrequire sqlite-dash v0.0.0\n\n{mattn} // indirect\n\nreplace sqlite-dash => {}\n",
        module.display()
    );
    fs::write(folder.join("go.mod"), text).expect("a file");
}

/// With SQLite compiled as the other drivers are, so that Go has it already.
fn go(folder: &Path, flags: &[&str], output: &str) {
    let mut go = Command::new("go");
    let path = std::env::var("PATH").unwrap_or_default();
    go.env("PATH", format!("{path}:/usr/local/go/bin")).env("CGO_CFLAGS", "-O0");
    go.env("GOFLAGS", "-mod=mod").arg("build").args(flags).args(["-o", output, "."]);
    done(go.current_dir(folder));
}

#[test]
fn another_driver_name_makes_commits_durable() {
    // Compiling dash once more takes a minute.
    if !moment_by_hand(false, true) {
        return;
    }
    if installed(Need::Go, "go/app").is_none() || !has_sqlite3() {
        return;
    }
    let Some(made) = make("go") else { return };
    let folder = made.folder.path().join("app");
    fs::create_dir(&folder).expect("a folder");
    project(&folder, &made.files[0]);
    go(&folder, &[], "app");
    let app = |arguments: &[&str]| {
        let mut app = Command::new(folder.join("app"));
        app.args(arguments).current_dir(&folder);
        app
    };
    assert_eq!(killed(&mut app(&["app.db", "dies"])), "wal full\n");
    assert_eq!(done(&mut app(&["app.db?_txlock=immediate"])), "wal full\n");
    // What a program says counts.
    assert_eq!(done(&mut app(&["file:app.db?_synchronous=NORMAL"])), "wal normal\n");
    assert_eq!(stock(&folder, "app.db", "SELECT count(*) FROM t"), "3\n");
    assert_eq!(done(&mut app(&["app.db", "waits"])), "context deadline exceeded\n");
    let said = app(&["no/folder.db"]).output().expect("runs").stdout;
    assert!(String::from_utf8_lossy(&said).contains("No such file"), "it says why");
    // A program without any library beside it.
    go(&folder, &["-ldflags", "-linkmode external -extldflags -static"], "static");
    let mut whole = Command::new(folder.join("static"));
    assert_eq!(done(whole.arg("static.db").current_dir(&folder)), "wal full\n");
}

//! The folder for PHP: one file to require, once php.ini names the folder.

use std::fs;
use std::process::Command;

use crate::common::programs::{killed, stock};
use crate::common::{done, make};
use dash_testing::machine::{has_sqlite3, runs};
use dash_testing::{Need, skip};

const OPENS: &str = "require 'sqlite-dash/sqlite_dash.php';
$db = SqliteDash\\open('app ?#%.db');
$db->exec('CREATE TABLE IF NOT EXISTS t(x); INSERT INTO t VALUES (7)');
$asked = \"SELECT dash_engine() || ' ' || value FROM dash_stats WHERE name = 'durability'\";
echo $db->query($asked)->fetchColumn(), \"\\n\";
if ($argc > 1) exec('kill -9 ' . getmypid());
";

#[test]
fn a_database_is_opened_durably() {
    if !runs("php", &["-r", "new SQLite3(':memory:'); new PDO('sqlite::memory:');"]) {
        skip(Need::Php, "php with sqlite3 and PDO is not installed");
        return;
    }
    if !has_sqlite3() {
        return;
    }
    let Some(made) = make("php") else { return };
    let folder = made.folder.path();
    done(Command::new("tar").arg("-xf").arg(&made.files[0]).current_dir(folder));
    let php = |program: &str, arguments: &[&str]| {
        let mut php = Command::new("php");
        let setting = format!("sqlite3.extension_dir={}", folder.join("sqlite-dash").display());
        php.args(["-d", &setting, "-r", program]).args(arguments).current_dir(folder);
        php
    };
    assert_eq!(killed(&mut php(OPENS, &["dies"])), "wal full\n");
    assert_eq!(done(&mut php(OPENS, &[])), "wal full\n");
    assert_eq!(stock(folder, "app ?#%.db", "SELECT count(*) FROM t"), "2\n");
    let by_default = "(new SQLite3(':memory:'))->loadExtension('libdashdefault.so');
$db = new SQLite3('app ?#%.db');
echo $db->querySingle('SELECT dash_engine()'), \"\\n\";";
    assert_eq!(done(&mut php(by_default, &[])), "wal\n");
    let no_file = "require 'sqlite-dash/sqlite_dash.php';
echo SqliteDash\\open(':memory:')->query('SELECT dash_engine()')->fetchColumn();";
    assert_eq!(done(&mut php(no_file, &[])), "none");
    assert!(!folder.join(":memory:").exists());
    let nowhere = said(&mut php(&OPENS.replace("app ?#%.db", "nowhere/a.db"), &[]));
    assert!(nowhere.contains("/nowhere: No such file"), "{nowhere}");
    let by_hand = format!("(new SQLite3(':memory:'))->loadExtension('libdash.so');\n{OPENS}");
    assert_eq!(done(&mut php(&by_hand, &[])), "wal full\n");
    fs::write(folder.join("sqlite-dash/version.php"), "<?php return '9.9.9';").expect("a file");
    let twice = said(&mut php(&by_hand, &[]));
    assert!(twice.contains("already, and this package has 9.9.9"), "{twice}");
    // Without the setting it says which line is missing.
    let without = said(Command::new("php").args(["-r", OPENS]).current_dir(folder));
    assert!(without.contains("sqlite3.extension_dir = "), "{without}");
}

/// All that a program says, however it ends.
fn said(command: &mut Command) -> String {
    let output = command.output().expect("runs");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

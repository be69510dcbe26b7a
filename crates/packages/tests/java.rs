//! The jar: an application on sqlite-jdbc whose URL begins otherwise.

use std::fs;
use std::process::Command;

use crate::common::programs::{killed, stock};
use crate::common::{done, make};
use dash_testing::Need;
use dash_testing::drivers::installed;
use dash_testing::extension::library;
use dash_testing::machine::has_sqlite3;

const APP: &str = r#"import java.sql.*;
import java.util.Properties;

public class App {
    public static void main(String[] arguments) throws SQLException {
        if (arguments.length > 2) {
            Properties settings = new Properties();
            settings.setProperty("enable_load_extension", "true");
            try (Connection db = DriverManager.getConnection("jdbc:sqlite::memory:", settings);
                 Statement one = db.createStatement()) {
                one.execute("SELECT load_extension('" + arguments[1] + "')");
            }
        }
        try (Connection db = DriverManager.getConnection(arguments[0]); Statement one = db.createStatement()) {
            one.execute("CREATE TABLE IF NOT EXISTS t(x)");
            one.execute("INSERT INTO t VALUES (7)");
            ResultSet row = one.executeQuery(
                "SELECT dash_engine(), value FROM dash_stats WHERE name = 'durability'");
            row.next();
            System.out.println(row.getString(1) + " " + row.getString(2));
            if (arguments.length == 2) {
                Runtime.getRuntime().halt(9);
            }
        }
    }
}
"#;

#[test]
fn a_url_makes_commits_durable() {
    let Some(worker) = installed(Need::Java, "java/Worker.class") else { return };
    if !has_sqlite3() {
        return;
    }
    let Some(made) = make("java") else { return };
    let folder = made.folder.path();
    fs::write(folder.join("App.java"), APP).expect("a file");
    let drivers = worker.parent().expect("a folder").display();
    let java = |arguments: &[&str]| {
        let mut java = Command::new("java");
        java.args(["-cp", &format!("{}:{drivers}/*", made.files[0].display()), "App.java"]);
        java.args(arguments).current_dir(folder);
        java
    };
    let url = "jdbc:sqlite-dash:app #%.db";
    assert_eq!(killed(&mut java(&[url, "dies"])), "wal full\n");
    assert_eq!(done(&mut java(&[url])), "wal full\n");
    // What a program says counts.
    let normal = format!("{url}?synchronous=NORMAL");
    assert_eq!(done(&mut java(&[&normal])), "wal normal\n");
    assert_eq!(stock(folder, "app #%.db", "SELECT count(*) FROM t"), "3\n");
    // The library was loaded by hand before.
    let library = library();
    let by_hand = [url, library.to_str().expect("a path"), "by hand"];
    assert_eq!(done(&mut java(&by_hand)), "wal full\n");
    let output = java(&["jdbc:sqlite-dash:nowhere/a.db"]).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("/nowhere: No such file"), "{said}");
    let manifest = folder.join("another");
    fs::write(&manifest, "Implementation-Version: 9.9.9\n").expect("a file");
    let mut jar = Command::new("jar");
    done(jar.arg("--update").arg("--file").arg(&made.files[0]).arg("--manifest").arg(&manifest));
    let output = java(&by_hand).output().expect("runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("already, and this jar has 9.9.9"), "{said}");
}

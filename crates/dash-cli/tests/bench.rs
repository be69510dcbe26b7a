//! `sqlite-dash bench` runs every workload, counts exactly where it can, and says so in every
//! format. What is checked are counts and plausibility, never times.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::path::Path;
use std::process::Command;

use super::common::program;
use dash_testing::crew::each;
use dash_testing::long::moment;
use dash_testing::mounts::has_loop_devices;
use serde_json::Value;

/// In memory where there is such a folder: nothing here depends on a disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

fn bench(words: &[&str], folder: &Path) -> String {
    let output =
        Command::new(program()).arg("bench").args(words).arg("--dir").arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

/// The only table of a run of few short blocks.
fn table(words: &[&str]) -> Value {
    let few = ["--json", "--rounds", "2"];
    let report: Value =
        serde_json::from_str(&bench(&[words, &few].concat(), folder().path())).unwrap();
    let overhead = report["head"]["overhead_us"].as_f64().unwrap();
    assert!(overhead > 0.0, "the bench states what it costs itself");
    report["tables"][0].clone()
}

fn lines(table: &Value) -> &Vec<Value> {
    table["lines"].as_array().unwrap()
}

/// What each does, and how many writes that is. Those at the end take long.
const WORKLOADS: [(&str, u64); 8] = [
    ("--workload bulk --block 1", 2),
    ("--workload delete --operations 5 --size 80K --block 8", 16),
    ("--workload insert --operations 3 --block 8", 16),
    ("--workload update --skew zipf --size 80K --block 8", 16),
    ("--workload random-a --block 8", 16),
    ("--workload duplication --operations 4 --share 50 --block 8", 16),
    ("--workload random-b --block 1", 2),
    ("--workload cycles --size 10K --block 3", 6),
];

#[test]
fn every_workload_does_the_same_work_in_every_row() {
    each(WORKLOADS.into_iter().take(moment(3, WORKLOADS.len())), |(words, writes)| {
        let words: Vec<&str> =
            words.split(' ').chain(["--rows", "delete,wal,dash-single"]).collect();
        let table = table(&words);
        assert_eq!(lines(&table).len(), 3);
        for line in lines(&table) {
            // DELETE may have blocks of a part of the others' size.
            let count = line["latency"]["count"].as_u64().unwrap();
            assert_eq!(count, writes, "{words:?}: {}", line["name"]);
            assert_eq!(line["failures"], 0);
            assert!(line["cost"]["kib"].as_f64().unwrap() >= 0.0);
        }
    });
}

#[test]
fn reading_writes_nothing_and_mixing_does_both() {
    for words in ["--workload reads --size 80K --block 50", "--workload scans --size 80K --block 4"]
    {
        let words: Vec<&str> = words.split(' ').collect();
        let table = table(&words);
        assert_eq!(table["writes"], false);
        assert_eq!(table["source"], "nothing");
        assert_eq!(lines(&table).len(), 5, "the shim is beside what it passes through to");
    }
    let mixed = table(&["--workload", "mixed", "--block", "100", "--rows", "wal,dash-single"]);
    for line in lines(&mixed) {
        let writes = line["latency"]["count"].as_u64().unwrap();
        let reads = line["reads"][1]["count"].as_u64().unwrap();
        assert_eq!(writes + reads, 200);
        assert!((50..150).contains(&writes), "{writes} of 200 with a share of a half");
    }
}

#[test]
fn many_connections_all_work() {
    for crew in [["--threads", "4"], ["--processes", "3"]] {
        let table = table(&[&crew[..], &["--rows", "wal,dash-single"]].concat());
        assert_eq!(table["connections"].to_string(), crew[1]);
        for line in lines(&table) {
            assert!(line["latency"]["count"].as_u64().unwrap() > 2, "{}", line["name"]);
            assert_eq!(line["failures"], 0);
            let slowest = line["slowest"].as_f64().unwrap();
            assert!((0.0..=1.0).contains(&slowest), "{slowest}");
        }
        let work = ["--rows", "wal,dash-wal", "--work", "7"];
        let table = self::table(&[&crew[..], &work].concat());
        let connections: u64 = crew[1].parse().unwrap();
        for line in lines(&table) {
            assert_eq!(line["latency"]["count"], 2 * 7 * connections, "{}", line["name"]);
            assert!(line["slowest"].is_null());
        }
    }
}

#[test]
fn on_a_device_of_its_own_the_counts_are_exact() {
    if !has_loop_devices() {
        return;
    }
    let rows =
        "delete,persist,wal-growing,wal-recycled,dash-single,dash-exclusive,dash-paper,limit";
    let table = table(&["--on", "memory", "--block", "200", "--rows", rows]);
    assert_eq!(table["source"], "own_device");
    let flushes = |row: &str| {
        let line = lines(&table).iter().find(|line| line["row"] == row).unwrap();
        line["cost"]["flushes"].as_f64().unwrap()
    };
    // A commit of the file system's journal may come in between, now and then.
    for (row, wanted) in [
        ("dash-single", 1.0),
        ("dash-exclusive", 2.0),
        ("dash-paper", 3.0),
        ("wal-growing", 2.0),
        ("wal-recycled", 1.0),
        ("limit", 1.0),
        ("delete", 4.0),
        ("persist", 6.0),
    ] {
        assert!((flushes(row) - wanted).abs() <= 0.1, "{row}: {} flushes", flushes(row));
    }
    let limit = lines(&table).iter().find(|line| line["row"] == "limit").unwrap();
    assert!((limit["cost"]["kib"].as_f64().unwrap() - 4.0).abs() <= 0.1);
}

/// A commit of the journal takes three blocks at least; dash's log uses none of them.
#[test]
fn what_the_file_system_writes_to_its_journal_is_told_apart() {
    if !has_loop_devices() {
        return;
    }
    let command =
        ["--workload", "update", "--block", "200", "--rows", "delete,wal-growing,dash-wal"];
    let of = |table: &Value, row: &str, figure: &str| {
        let line = lines(table).iter().find(|line| line["row"] == row).unwrap();
        line["cost"][figure].as_f64()
    };
    let all = |table: &Value, row: &str| {
        of(table, row, "kib").unwrap() + of(table, row, "later_kib").unwrap()
    };
    const ROWS: [&str; 3] = ["delete", "wal-growing", "dash-wal"];
    let are_alike = |[whole, apart]: &[Value; 2]| {
        ROWS.iter().all(|row| {
            let (all, apart) = (all(whole, row), all(apart, row));
            println!("{row}: {all} KiB, {apart} KiB");
            (all - apart).abs() < 0.1 * all + 1.0
        })
    };
    // While the machine is busy with something else the file system's timer writes in between.
    let measured = |on| table(&[&["--on", on][..], &command].concat());
    let alike = (0..3).map(|_| ["memory", "journal"].map(measured)).find(are_alike);
    let [whole, apart] = alike.expect("the journal's bytes are among all, as they were before");
    for row in ROWS {
        let apart_all = all(&apart, row);
        let journal = of(&apart, row, "journal_kib").unwrap();
        match row {
            "dash-wal" => assert!(journal < 1.0, "{journal} KiB"),
            _ => assert!(journal > 12.0 && journal < apart_all, "{row}: {journal} KiB"),
        }
        assert_eq!(of(&whole, row, "journal_kib"), None);
    }
}

#[test]
fn a_recording_is_replayed_by_every_row() {
    let trace = folder();
    let benchset = trace.path().join("benchset");
    std::fs::create_dir(&benchset).unwrap();
    std::fs::write(trace.path().join("loading.sql"), "CREATE TABLE t (x);").unwrap();
    let stream: String =
        (0..50).map(|n| format!("INSERT INTO t VALUES ({n})\nSELECT count(*) FROM t\n")).collect();
    std::fs::write(benchset.join("0.sql"), &stream).unwrap();
    std::fs::write(benchset.join("1.sql"), &stream).unwrap();
    let replay = trace.path().to_string_lossy();
    let table = table(&["--replay", &replay, "--rows", "wal,dash-single"]);
    assert_eq!(table["connections"], 2);
    for line in lines(&table) {
        assert_eq!(line["latency"]["count"], 100, "{}", line["name"]);
        assert_eq!(line["reads"][1]["count"], 100);
        assert_eq!(line["failures"], 0);
    }
}

#[test]
fn csv_and_markdown_tell_the_same_rows() {
    let folder = folder();
    let words = ["--rows", "wal,dash-single", "--rounds", "2", "--block", "10"];
    let csv = bench(&[&words[..], &["--csv"]].concat(), folder.path());
    assert_eq!(csv.lines().count(), 3);
    assert!(csv.lines().nth(2).unwrap().contains(",dash-single,keeps every commit,"));
    let markdown = bench(&[&words[..], &["--markdown"]].concat(), folder.path());
    assert!(markdown.starts_with("```\ndash bench --rows wal,dash-single"));
    assert_eq!(markdown.lines().filter(|line| line.starts_with("| ")).count(), 4);
}

#[test]
fn what_makes_no_sense_is_refused_with_the_reason() {
    for (words, reason) in [
        (&["--threads", "4", "--rows", "wal-growing"][..], "regime"),
        (&["--workload", "bulk", "--threads", "2"], "one connection"),
        (&["--workload", "replay"], "--replay FOLDER"),
        (&["--size", "90000000000G"], "too large"),
        (&["--size", "900000G"], "MiB are free"),
        (&["--threads", "65"], "1 to 64"),
    ] {
        let output = Command::new(program())
            .arg("bench")
            .args(words)
            .arg("--dir")
            .arg(folder().path())
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(errors.contains(reason), "{words:?}: {errors}");
    }
}

/// What it would not do as told.
#[test]
fn the_first_look_refuses_what_it_chooses_itself() {
    for option in [
        ["--workload", "reads"],
        ["--rows", "wal"],
        ["--rounds", "3"],
        ["--block", "5"],
        ["--patience", "1"],
        ["--replay", "."],
    ] {
        let output =
            Command::new(program()).args(["bench", "--quick"]).args(option).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{option:?}");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(errors.contains("--quick") && errors.contains(option[0]), "{errors}");
    }
}

/// Three processes work on one database one after the other when strace counts, and one that writes
/// what the last one wrote flushes nothing: `cycles` had 1.2 flushes per commit in mode DELETE.
#[test]
fn a_process_writes_no_value_that_an_earlier_one_wrote() {
    for (workload, table) in [("cycles", "t"), ("update", "t0")] {
        let folder = folder();
        let file = folder.path().join("app.db");
        let db = rusqlite::Connection::open(&file).unwrap();
        db.execute_batch(&format!(
            "CREATE TABLE {table} (id INTEGER PRIMARY KEY, body TEXT);
             WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10)
             INSERT INTO {table} SELECT i, '' FROM n"
        ))
        .unwrap();
        let written = || -> Vec<String> {
            let words = ["worker", "--row", "delete", "--workload", workload];
            let status = Command::new(program())
                .arg("bench")
                .args(words)
                .args(["--size", "1150", "--count", "20"])
                .arg(&file)
                .status();
            assert!(status.unwrap().success(), "{workload}");
            let mut bodies = db.prepare(&format!("SELECT body FROM {table}")).unwrap();
            bodies.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
        };
        let (first, second) = (written(), written());
        let again =
            first.iter().zip(&second).filter(|(one, other)| one == other && !one.is_empty());
        assert_eq!(again.count(), 0, "{workload}: {first:?}");
    }
}

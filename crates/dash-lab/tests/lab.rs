//! `dash-lab` repeats counts, writes its document and sets papers' figures beside measured ones.
//! What is checked are counts and plausibility, never times.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::path::Path;
use std::process::Command;

use dash_testing::Need;
use dash_testing::drivers::installed;
use dash_testing::mounts::has_loop_devices;

/// In memory where there is such a folder: nothing here depends on a disk.
fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

/// Asked when it runs: a shell between cargo and rustc (`.cargo/rustc`) drops a name with a hyphen.
fn program() -> std::ffi::OsString {
    std::env::var_os("CARGO_BIN_EXE_dash-lab").unwrap()
}

fn lab(words: &[&str], folder: &Path) -> String {
    let output = Command::new(program()).args(words).arg("--dir").arg(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words:?}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn counts_repeat() {
    if !has_loop_devices() {
        return;
    }
    let folder = folder();
    let output = Command::new(program())
        .args(["repeat", "--on", "memory", "--rounds", "5"])
        .args(["--rows", "wal-recycled,dash-single,limit", "--dir"])
        .arg(folder.path())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    // Whether speeds agree is the machine's affair, and not asked here.
    let counts: Vec<_> = text
        .lines()
        .filter(|line| line.contains(" flushes ") || line.contains("   KiB "))
        .collect();
    assert_eq!(counts.len(), 6, "{text}");
    assert!(counts.iter().all(|line| line.ends_with("agrees")), "{text}");
}

#[test]
fn the_document_has_a_command_above_each_table() {
    let folder = folder();
    let words = ["document", "--only", "Larger transactions", "--add", "--rounds 2 --block 2"];
    let text = lab(&words, folder.path());
    assert!(text.starts_with("# Benchmarks"));
    assert!(text.contains("```\ndash bench --operations 10 --rows delete,persist,"), "{text}");
    assert!(text.contains("| dash single | keeps every commit |"));
}

/// What most users take, beside what they have now.
#[test]
fn the_document_sets_mode_wal_beside_stock_wal() {
    let folder = folder();
    let words = ["document", "--only", "many writers", "--add", "--rounds 2 --work 5"];
    let text = lab(&words, folder.path());
    for crew in ["--threads 4", "--threads 16", "--processes 16"] {
        let command = format!("```\ndash bench {crew} --work 200 --rows wal,dash-wal ");
        let (_, table) = text.split_once(&command).unwrap_or_else(|| panic!("{crew}: {text}"));
        let table = table.split("## ").next().unwrap();
        for row in ["| stock WAL | keeps every commit |", "| dash WAL | keeps every commit |"] {
            assert!(table.contains(row), "{crew}: {row}: {text}");
        }
    }
}

#[test]
fn waldios_figures_stand_beside_those_of_mode_wal() {
    let folder = folder();
    let text = lab(&["papers", "--only", "waldio", "--quick"], folder.path());
    let figures = |what: &str| -> Vec<&str> {
        let line = text.lines().find(|line| line.trim_start().starts_with(what));
        let line = line.unwrap_or_else(|| panic!("no `{what}`: {text}"));
        line.split_whitespace().rev().take(2).collect()
    };
    assert_eq!(figures("insert: WALDIO, full flush (WALDIO-FS) / stock WAL"), ["-", "2.20"]);
    assert_eq!(figures("insert: WALDIO: share of stock WAL's"), ["-", "0.17"]);
    assert_eq!(figures("insert: stock PERSIST: KiB")[1], "40.0");
    for line in ["insert: dash WAL / stock WAL", "16 threads: dash WAL: flushes a commit"] {
        assert_ne!(figures(line)[0], "-", "{line}");
    }
    if has_loop_devices() {
        let journal: f64 = figures("update: dash WAL: journal")[0].parse().unwrap();
        assert!(journal < 1.0, "{text}");
    }
}

#[test]
fn a_papers_figures_stand_beside_measured_ones() {
    let folder = folder();
    let text = lab(&["papers", "--only", "ssl", "--quick"], folder.path());
    // The paper's 8,319 pages of 3,077 transactions; what is measured is another device's.
    let line = text.lines().find(|line| line.contains("androbench: stock WAL")).unwrap();
    let figures: Vec<&str> = line.split_whitespace().rev().take(2).collect();
    assert_eq!(figures[1], "2.70", "{line}");
    if has_loop_devices() {
        let here: f64 = figures[0].parse().unwrap();
        assert!((1.0..5.0).contains(&here), "{line}");
    }
    for table in ["Table 3", "Table 4", "Table 6", "Table 7"] {
        assert!(text.contains(&format!("SSL, {table}:")), "{text}");
    }
}

/// On both sides, for both kinds of request; of times nothing is said here.
fn answered_is_committed(service: &str, tables: usize) {
    // On a disk: in memory no commit is durable, and Django's backend says so.
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let words = ["services", "--seconds", "1", "--rounds", "1", "--only", service];
    let text = lab(&words, folder.path());
    for side in [": stock WAL ", ": dash WAL "] {
        let lines: Vec<_> = text
            .lines()
            .filter(|line| line.contains(side) && !line.contains("sqlite_version"))
            .collect();
        assert_eq!(lines.len(), tables, "{side}: {text}");
        for line in lines {
            let [committed, answered] = [0, 1].map(|nth| line.split_whitespace().rev().nth(nth));
            assert!(committed == answered && committed != Some("0"), "{text}");
        }
    }
}

#[test]
fn what_a_service_on_django_answered_is_committed() {
    if installed(Need::PythonDrivers, "python/bin/gunicorn").is_some() {
        answered_is_committed("django", 4);
    }
}

#[test]
fn what_a_service_on_go_answered_is_committed() {
    // Built where Go and the driver were had.
    if installed(Need::Go, "go/app").is_some() {
        answered_is_committed("go", 2);
    }
}

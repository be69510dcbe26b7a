//! Every example prints what the transcript at its head says it prints. An example whose host is
//! not installed is skipped.

use std::path::Path;
use std::process::Command;

use dash_testing::drivers;
use dash_testing::extension::library;
use dash_testing::machine::has_sqlite3;
use dash_testing::roles::{LOADS_EXTENSIONS, python_that_runs, pythons_that_run};
use dash_testing::{Need, skip};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// What the lines after the `$` line at the head of an example say.
fn transcript(file: &str) -> String {
    let text = std::fs::read_to_string(root().join(file)).expect("the example is there");
    text.lines()
        .map(|line| {
            line.trim_start_matches("//!").trim_start_matches("//").trim_start_matches('#').trim()
        })
        .skip_while(|line| !line.starts_with("$ "))
        .skip(1)
        .take_while(|line| {
            !line.is_empty()
                && !line.starts_with("use ")
                && !line.starts_with("import ")
                && !line.starts_with("const ")
                && !line.starts_with("set ")
                && !line.starts_with("package ")
        })
        .map(|line| format!("{line}\n"))
        .collect()
}

fn prints_its_transcript(file: &str, command: &mut Command) {
    let folder = tempfile::tempdir().expect("a folder");
    let output = command
        .arg(folder.path().join("app.db"))
        .env("DASH_LIBRARY", library())
        .output()
        .expect("the host runs");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{file}: {printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert_eq!(printed, transcript(file), "{file}");
    // Whoever tries an example tries it again.
    let again = command.output().expect("the host runs");
    assert!(again.status.success(), "{file}, again: {}", String::from_utf8_lossy(&again.stderr));
}

#[test]
fn the_command_line_example_prints_its_transcript() {
    if !has_sqlite3() {
        return;
    }
    let file = "examples/cli/app.sh";
    prints_its_transcript(file, Command::new("sh").arg(root().join(file)));
}

#[test]
fn the_python_examples_print_their_transcripts() {
    let Some(python) = python_that_runs(LOADS_EXTENSIONS) else { return };
    for file in ["examples/python/app.py", "examples/python/wal.py"] {
        prints_its_transcript(file, Command::new(python).arg(root().join(file)));
    }
}

#[test]
fn the_ctypes_example_prints_its_transcript() {
    let file = "examples/python/app_ctypes.py";
    for python in pythons_that_run("import sqlite3") {
        prints_its_transcript(file, Command::new(python).arg(root().join(file)));
    }
}

#[test]
fn the_node_examples_print_their_transcripts() {
    for file in ["examples/node/app.js", "examples/node/wal.js"] {
        let Some(mut node) = drivers::node() else { return };
        prints_its_transcript(file, node.arg(root().join(file)));
    }
}

#[test]
fn the_go_example_prints_its_transcript() {
    let Some(built) = drivers::installed(Need::Go, "go/app") else { return };
    prints_its_transcript("examples/go/main.go", &mut Command::new(built));
}

#[test]
fn the_rust_examples_print_their_transcripts() {
    let own = std::env::current_exe().expect("a test knows its own file");
    let built = own.parent().and_then(Path::parent).expect("a build folder").join("examples");
    for name in ["rust", "rust_wal"] {
        match built.join(name) {
            built if built.exists() => {
                let file = format!("examples/{name}/main.rs");
                prints_its_transcript(&file, &mut Command::new(built));
            }
            _ => skip(Need::Examples, "not built: run all of the package's targets"),
        }
    }
}

#[test]
fn the_session_at_the_head_of_the_readme_prints_what_it_says() {
    if !has_sqlite3() {
        return;
    }
    let readme = std::fs::read_to_string(root().join("README.md")).expect("README.md is there");
    let session = readme.split("```").nth(1).expect("a session");
    let typed: Vec<_> = session.lines().filter_map(|line| line.strip_prefix("sqlite> ")).collect();
    let printed: Vec<_> = session
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("$ ") && !line.starts_with("sqlite> "))
        .collect();
    let query = session
        .lines()
        .rev()
        .find(|line| line.starts_with("$ "))
        .and_then(|line| line.split('\'').nth(1));
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(library(), folder.path().join("libdash.so")).expect("a copy of the library");
    let script = "cd \"$0\" && printf '%s\\n' \"$1\" | sqlite3 && sqlite3 app.db \"$2\"";
    let output = Command::new("sh")
        .args(["-c", script])
        .arg(folder.path())
        .args([&typed.join("\n"), query.unwrap_or_default()])
        .output()
        .expect("sh runs");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).lines().collect::<Vec<_>>(),
        printed,
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

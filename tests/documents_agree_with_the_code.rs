//! The documents name what is there: the reference every name of the code, the pages files and
//! functions that exist, and the README stays short enough to be read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Lines that somebody new reads at once.
const README_LINES: usize = 90;
/// Lines of a page about one framework.
const PAGE_LINES: usize = 40;
/// Columns of the pages that are read in a terminal.
const COLUMNS: usize = 120;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn text(name: &str) -> String {
    fs::read_to_string(root().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn none(offenders: &[String], rule: &str) {
    assert!(offenders.is_empty(), "{rule}:\n  {}", offenders.join("\n  "));
}

/// What no table of the code lists: modes, their PRAGMAs and parameters, functions and tables are
/// looked up in `dash` itself (`reference.rs`). What stands in quotation marks in the lines between
/// two texts, where `chosen` picks the lines.
fn quoted(file: &str, from: &str, to: &str, chosen: &str) -> Vec<String> {
    let text = text(&format!("crates/{file}"));
    let part = text.split_once(from).and_then(|(_, rest)| rest.split_once(to));
    let part = part.unwrap_or_else(|| panic!("{file}: nothing between `{from}` and `{to}`")).0;
    let found: Vec<_> = part
        .lines()
        .map(str::trim)
        .filter(|line| line.contains(chosen))
        .flat_map(|line| line.split("=> Err").next().unwrap_or(line).split('"').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    assert!(!found.is_empty(), "{file}: no name between `{from}` and `{to}`");
    found
}

#[test]
fn the_reference_has_every_name_of_the_code() {
    let reference = text("crates/dash/REFERENCE.md");
    let words: BTreeSet<_> =
        reference.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).collect();
    let metrics = quoted(
        "dash-cli/src/top/prometheus.rs",
        "type Metric",
        "/// The metrics.",
        "\"sqlite_dash_",
    );
    let metrics = metrics.into_iter().filter(|name| name.starts_with("dash_")).collect();
    let names = [
        quoted("dash/src/mode/parameters.rs", "fn take", "_ =>", "\" =>"),
        quoted("dash/src/shadow/database.rs", "fn statistics", "Some(rows)", "(\""),
        quoted("dash/src/latency.rs", "pub fn name", "pub struct", "=> \""),
        quoted("dash-shadow/src/statistics.rs", "pub fn rows", "]\n    }", "(\""),
        quoted("dash-wal/src/statistics.rs", "pub fn rows", "]\n    }", "(\""),
        quoted("dash/src/wal/database.rs", "fn statistics", "Some(rows)", "(\""),
        quoted("dash/src/tables.rs", "fn stats(", "let row =", ".chain("),
        quoted("dash-terminal/src/extension.rs", "const VARIABLE", ";", "= \""),
        metrics,
    ];
    let entries: Vec<_> = text("crates/dash/src/entry.rs")
        .lines()
        .filter_map(|line| line.strip_prefix("pub unsafe extern \"C\" fn sqlite3_"))
        .map(|rest| format!("sqlite3_{}", rest.trim_end_matches('(')))
        .collect();
    let absent: Vec<_> = names
        .into_iter()
        .flatten()
        .chain(entries)
        .filter(|name| !words.contains(name.as_str()))
        .collect();
    none(&absent, "crates/dash/REFERENCE.md lacks");
}

/// The commands of the program, but for those that it runs itself.
#[test]
fn the_reference_has_every_command() {
    let main = text("crates/dash-cli/src/lib.rs");
    let list = main.split_once("enum Command {").and_then(|(_, rest)| rest.split_once("\n}"));
    let lines: Vec<_> = list.expect("the commands").0.lines().map(str::trim).collect();
    let commands: Vec<_> = lines
        .iter()
        .enumerate()
        .filter(|(at, line)| {
            let is_hidden = *at > 0 && lines[at - 1].contains("hide");
            line.starts_with(char::is_uppercase) && !is_hidden
        })
        .filter_map(|(_, line)| line.split(['(', ',']).next())
        .map(str::to_lowercase)
        .collect();
    assert!(commands.len() > 8, "{commands:?}");
    let reference = text("crates/dash/REFERENCE.md");
    let program = reference.split_once("\n## The program\n").expect("a section").1;
    let has = |command: &String| {
        program.lines().any(|line| {
            line.starts_with(&format!("| `sqlite-dash {command}`"))
                || line.starts_with(&format!("| `sqlite-dash {command} "))
        })
    };
    let absent: Vec<_> = commands.into_iter().filter(|command| !has(command)).collect();
    none(&absent, "crates/dash/REFERENCE.md lacks the commands");
}

/// The documents, but for those that a program writes.
fn documents(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in fs::read_dir(folder).expect("a folder").filter_map(|entry| Some(entry.ok()?.path()))
    {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() && !matches!(name.as_str(), "target" | "node_modules" | ".git") {
            found.extend(documents(&path));
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

/// What a link to a heading of the document has behind its `#`.
fn anchors(document: &str) -> BTreeSet<String> {
    let headings = document.lines().filter(|line| line.starts_with('#'));
    let titles = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
    titles.map(|title| title.chars().filter(kept).collect::<String>().replace(' ', "-")).collect()
}

#[test]
fn every_link_leads_to_a_file_and_a_heading() {
    let mut broken = Vec::new();
    for path in documents(root()) {
        let text = fs::read_to_string(&path).expect("a document");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            if file.contains("://") {
                continue;
            }
            let home = path.parent().unwrap_or(root());
            let target = if file.is_empty() { path.clone() } else { home.join(file) };
            let has = || anchors(&fs::read_to_string(&target).unwrap_or_default()).contains(anchor);
            if !target.exists() || !anchor.is_empty() && !has() {
                broken.push(format!("{}: {link}", path.display()));
            }
        }
    }
    none(&broken, "these links lead nowhere");
}

/// The names in backticks: `a.rs` `f` in a document says that `a.rs` has a function `f`.
#[test]
fn the_architecture_names_files_and_functions_that_exist() {
    let architecture = text("crates/ARCHITECTURE.md");
    let sources: Vec<_> =
        ["dash", "dash-engine", "dash-ffi", "dash-log", "dash-shadow", "dash-storage", "dash-wal"]
            .into_iter()
            .chain(["dash-cli"])
            .flat_map(|name| sources(&root().join("crates").join(name).join("src")))
            .collect();
    let spans: Vec<_> = architecture.split('`').collect();
    let mut wrong = Vec::new();
    for at in (1..spans.len()).step_by(2).filter(|at| spans[*at].ends_with(".rs")) {
        let file = spans[at];
        let named: Vec<_> =
            sources.iter().filter(|path| path.ends_with(file) || is(path, file)).collect();
        if named.is_empty() && !root().join("crates").join(file).exists() {
            wrong.push(file.to_owned());
        }
        let function = spans.get(at + 2).filter(|_| spans[at + 1].trim().is_empty());
        let Some(function) = function.filter(|name| !name.ends_with(".rs")) else {
            continue;
        };
        let has = |path: &&PathBuf| {
            let text = fs::read_to_string(path).unwrap_or_default();
            [format!("fn {function}("), format!("fn {function}<")].iter().any(|f| text.contains(f))
        };
        if !named.iter().any(has) {
            wrong.push(format!("{file} {function}"));
        }
    }
    none(&wrong, "crates/ARCHITECTURE.md names what is not there");
}

/// The tests that a text names: `a.rs` `f` is the test `f` of a file `a.rs`.
fn named_tests(text: &str) -> Vec<(String, String)> {
    let names: Vec<_> = text.split('`').skip(1).step_by(2).collect();
    let pairs = names.windows(2).filter(|pair| pair[0].ends_with(".rs"));
    pairs.map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect()
}

/// What is wrong in a document whose tables say what tests show: in the last cell, or in footnotes.
fn unshown(name: &str, is_test: impl Fn(&str, &str) -> bool) -> Vec<String> {
    let document = text(name);
    let notes: BTreeMap<_, _> = document
        .lines()
        .filter_map(|line| line.strip_prefix("[^")?.split_once("]: "))
        .map(|(note, tests)| (note, named_tests(tests)))
        .collect();
    let cited = |line: &str| -> Vec<String> {
        let parts = line.split("[^").skip(1).filter_map(|part| part.split(']').next());
        parts.map(str::to_owned).collect()
    };
    let lines: Vec<_> = document.lines().filter(|line| !line.starts_with("[^")).collect();
    let all: BTreeSet<_> = lines.iter().flat_map(|line| cited(line)).collect();
    let mut wrong: Vec<_> = all
        .iter()
        .filter(|note| !notes.contains_key(&***note))
        .map(|n| format!("no [^{n}]"))
        .collect();
    wrong.extend(
        notes.keys().filter(|n| !all.contains(**n)).map(|n| format!("[^{n}] is not cited")),
    );
    for table in lines.split(|line| !line.starts_with('|')).filter(|table| table.len() > 2) {
        let shown = |line: &str| -> usize {
            let last = line.trim_end_matches('|').rsplit('|').next().unwrap_or_default();
            let noted = cited(line).into_iter().filter_map(|note| notes.get(&*note));
            named_tests(last).len() + noted.map(Vec::len).sum::<usize>()
        };
        // Other pages have tables of options, too.
        let is_promise = !name.ends_with("EXTRAS.md") || table.iter().any(|line| shown(line) > 0);
        let bare = table[2..].iter().filter(|line| is_promise && shown(line) == 0);
        wrong.extend(bare.map(|line| format!("nothing shows: {line}")));
    }
    let tests = notes.into_values().flatten();
    let tests = tests.chain(lines.iter().flat_map(|line| named_tests(line)));
    wrong.extend(
        tests
            .filter(|(file, function)| !is_test(file, function))
            .map(|(file, function)| format!("{file} has no test {function}")),
    );
    wrong.into_iter().map(|wrong| format!("{name}: {wrong}")).collect()
}

#[test]
fn every_line_of_the_guarantees_is_shown_by_tests_that_exist() {
    let tests: Vec<_> = fs::read_dir(root().join("crates"))
        .expect("a folder")
        .filter_map(|entry| Some(entry.ok()?.path().join("tests")))
        .chain([root().join("tests")])
        .filter(|folder| folder.is_dir())
        .flat_map(|folder| sources(&folder))
        .collect();
    let is_test = |file: &str, function: &str| {
        tests.iter().filter(|path| path.ends_with(file)).any(|path| {
            let text = fs::read_to_string(path).expect("a source");
            let found = text.split_once(&format!("fn {function}()")).map(|(before, _)| before);
            found.is_some_and(|before| {
                let attributes = before.lines().rev().take(4);
                attributes.take_while(|line| *line != "}").any(|line| line == "#[test]")
            })
        })
    };
    let wrong: Vec<_> = ["GUARANTEES.md", "BACKUPS.md", "EXTRAS.md"]
        .iter()
        .flat_map(|name| unshown(&format!("crates/dash/{name}"), is_test))
        .collect();
    none(&wrong, "what is promised is shown by a test");
}

/// A mode, a level or a message that the guarantees speak of, and the code does not.
#[test]
fn the_guarantees_have_every_mode_and_level_and_quote_what_is_said() {
    let guarantees = text("crates/dash/GUARANTEES.md");
    let words: BTreeSet<_> = guarantees.split('`').skip(1).step_by(2).collect();
    let levels = ["OFF", "NORMAL", "FULL", "EXTRA"].map(str::to_owned);
    // That these are all of the code's, `reference.rs` makes sure of.
    let reference = text("crates/dash/REFERENCE.md");
    let modes = reference.split("\n## ").find(|section| section.starts_with("Modes\n"));
    let built = modes.expect("the modes").lines().filter(|line| line.contains("| built |"));
    let modes: Vec<_> = built
        .filter_map(|line| line.split('|').nth(1))
        .flat_map(|cell| cell.split('`').skip(1).step_by(2))
        .map(str::to_owned)
        .collect();
    assert!(modes.len() > 3, "{modes:?}");
    let names = [
        modes,
        quoted("dash/src/wal/parameters.rs", "const DURABILITIES", "];", "("),
        quoted("dash/src/wal/parameters.rs", "const READS", "];\n", "("),
        levels.to_vec(),
    ];
    let absent: Vec<_> =
        names.into_iter().flatten().filter(|name| !words.contains(name.as_str())).collect();
    none(&absent, "crates/dash/GUARANTEES.md lacks");
    let code: String = ["crates", "tests"]
        .iter()
        .flat_map(|folder| sources(&root().join(folder)))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .map(|path| fs::read_to_string(path).expect("a source"))
        .collect();
    let said = guarantees.split('"').skip(1).step_by(2);
    let unsaid: Vec<_> = said.filter(|said| !code.contains(said)).map(str::to_owned).collect();
    none(&unsaid, "crates/dash/GUARANTEES.md quotes what nothing says");
}

fn is(path: &Path, file: &str) -> bool {
    path == root().join("crates").join(file)
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn the_readme_is_short_and_the_limits_fit_a_terminal() {
    let lines = text("README.md").lines().count();
    assert!(lines <= README_LINES, "README.md has {lines} lines, more than {README_LINES}");
    let pages = fs::read_dir(root().join("examples")).expect("a folder");
    let pages = pages.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.to_owned()));
    for page in pages.filter(|name| name.ends_with(".md") && name != "README.md") {
        let lines = text(&format!("examples/{page}")).lines().count();
        assert!(lines <= PAGE_LINES, "{page} has {lines} lines, more than {PAGE_LINES}");
    }
    let limits = text("crates/dash/LIMITS.md");
    let prose = limits.lines().filter(|line| !line.starts_with('|'));
    let long = prose.filter(|line| line.chars().count() > COLUMNS);
    none(&long.map(str::to_owned).collect::<Vec<_>>(), "crates/dash/LIMITS.md: lines too long");
}

//! The programs of `PATH` that bring an SQLite: which version, whether they load extensions, and
//! what each needs to open a database through dash. They are run to be asked, in the root folder,
//! without the user's start-up files, and open nothing but databases in memory.

use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::finding::{Level, Section};
use crate::out::Shown;

/// How long one is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(10);

/// A program that brings an SQLite.
struct Host {
    program: &'static str,
    /// What it is given, so that it prints `sqlite=VERSION` and `extensions=1`, or 0; none: each of
    /// its programs has an SQLite of its own. `{}` is the folder.
    asked: &'static [&'static str],
    /// How a database is opened through dash.
    needs: &'static str,
    /// The same where it loads no extensions.
    otherwise: &'static str,
}

const HOSTS: &[Host] = &[
    Host {
        program: "sqlite3",
        asked: &[
            "-batch",
            "-init",
            "/dev/null",
            ":memory:",
            "SELECT 'sqlite=' || sqlite_version(); SELECT 'extensions=' || (sqlite_compileoption_used('OMIT_LOAD_EXTENSION') = 0);",
        ],
        needs: "`.load ./libdash`, then `.open file:app.db?vfs=dash`; `sqlite-dash shell app.db` does both",
        otherwise: "use `sqlite-dash shell app.db`",
    },
    Host {
        program: "python3",
        asked: &[
            "-I",
            "-B",
            "-c",
            "import sqlite3\nprint('sqlite=' + sqlite3.sqlite_version)\n\
             print('extensions=%d' % hasattr(sqlite3.Connection, 'enable_load_extension'))",
        ],
        needs: "enable_load_extension(True) and load_extension('./libdash') on a scratch connection, then \
                connect('file:app.db?vfs=dash', uri=True)",
        otherwise: "register the library through ctypes, as examples/python/app_ctypes.py does",
    },
    Host {
        program: "node",
        asked: &[
            "-e",
            "const v = process.versions.sqlite; if (v) console.log('sqlite=' + v + '\\nextensions=1'); try { console.log('better-sqlite3=' + \
             require(require.resolve('better-sqlite3/package.json', { paths: [process.argv[1]] })).version) } catch (e) {}",
            "{}",
        ],
        needs: "node:sqlite (allowExtension: true): load on a scratch connection, then open the URI; better-sqlite3 opens no URIs: \
                loadExtension('./libdash', 'sqlite3_dashdefault_init') before anything else is opened",
        otherwise: "",
    },
    Host {
        program: "ruby",
        asked: &[
            "-e",
            "begin; require 'sqlite3'; rescue LoadError; exit; end; d = SQLite3::Database.new(':memory:'); \
             puts \"sqlite=#{d.get_first_value('SELECT sqlite_version()')}\"; \
             puts \"extensions=#{d.respond_to?(:enable_load_extension) ? 1 : 0}\"",
        ],
        needs: "enable_load_extension(true) and load_extension on a scratch connection, then open 'file:app.db?vfs=dash'",
        otherwise: "build the gem sqlite3 with extension loading",
    },
    Host {
        program: "perl",
        asked: &[
            "-e",
            "eval { require DBI; require DBD::SQLite; 1 } or exit; my $d = DBI->connect('dbi:SQLite:dbname=:memory:'); \
             print \"sqlite=$DBD::SQLite::sqlite_version\\nextensions=\", $d->can('sqlite_enable_load_extension') ? 1 : 0, \"\\n\"",
        ],
        needs: "sqlite_enable_load_extension(1) and sqlite_load_extension on a scratch connection, then \
                'dbi:SQLite:uri=file:app.db?vfs=dash'",
        otherwise: "build DBD::SQLite with extension loading",
    },
    Host {
        program: "php",
        asked: &[
            "-r",
            "if (!class_exists('SQLite3')) exit; echo 'sqlite=', SQLite3::version()['versionString'], \"\\nextensions=\", \
             ini_get('sqlite3.extension_dir') ? 1 : 0, \"\\n\";",
        ],
        needs: "class SQLite3 loads the library on a scratch connection, PDO opens 'sqlite:file:app.db?vfs=dash'; class SQLite3 opens \
                no URIs",
        otherwise: "set sqlite3.extension_dir in php.ini to the folder of libdash.so",
    },
    Host {
        program: "go",
        asked: &[],
        needs: "mattn/go-sqlite3: load on a scratch connection, then open the URI (examples/go); pure-Go drivers load no native libraries",
        otherwise: "",
    },
    Host {
        program: "java",
        asked: &[],
        needs: "sqlite-jdbc with enableLoadExtension: load on a scratch connection, then open jdbc:sqlite:file:app.db?vfs=dash",
        otherwise: "",
    },
];

/// What is known of versions before this one.
const TROUBLES: &[((u32, u32, u32), &str)] = &[
    ((3, 31, 0), "dash needs SQLite 3.31 or newer, and refuses to be loaded"),
    (
        (3, 39, 0),
        "the mode of an attached database is changed to and from WAL by two PRAGMAs, one after the other",
    ),
    (
        (3, 41, 0),
        "it may leave commits without checksums after a savepoint was rolled back, and stock SQLite loses these, and all later ones, \
         with the next crash; mode wal of dash gives them what they lack",
    ),
    (
        (3, 51, 3),
        "it has SQLite's WAL-reset bug, unless its maker has mended that: a checkpoint beside a writer may lose commits of stock SQLite in \
         WAL mode; through dash it loses none",
    ),
];

/// Asks all of them at once.
pub fn examine(folder: &Path) -> Section {
    let mut section = Section::new("programs in PATH");
    let found: Vec<_> = HOSTS
        .iter()
        .flat_map(|host| in_path(host.program).into_iter().map(move |path| (host, path)))
        .collect();
    let answers: Vec<_> = std::thread::scope(|scope| {
        let asking: Vec<_> =
            found.iter().map(|(host, path)| scope.spawn(move || ask(host, path, folder))).collect();
        asking.into_iter().map(|thread| thread.join().unwrap_or(None)).collect()
    });
    let mut facts = Vec::new();
    for ((host, path), answer) in found.iter().zip(&answers) {
        facts.push(say(&mut section, host, path, answer.as_deref()));
    }
    if found.is_empty() {
        section.say(Level::Note, "none that is known to bring an SQLite");
    }
    section.facts = Value::from(facts);
    section
}

fn say(section: &mut Section, host: &Host, path: &Path, answer: Option<&str>) -> Value {
    let value = |name: &str| {
        answer?.lines().find_map(|line| line.trim().strip_prefix(name)?.strip_prefix('='))
    };
    let (sqlite, better) = (value("sqlite"), value("better-sqlite3"));
    let loads = value("extensions").map(|word| word == "1");
    let shown = format!("{} ({})", host.program, path.shown());
    let brings = match (sqlite, better) {
        (Some(version), Some(better)) => format!("SQLite {version}, better-sqlite3 {better}"),
        (Some(version), None) => format!("SQLite {version}"),
        (None, Some(better)) => format!("better-sqlite3 {better}"),
        (None, None) => String::new(),
    };
    let facts = json!({
        "program": host.program, "path": path.to_string_lossy(), "answered": answer.is_some(), "sqlite": sqlite,
        "loads_extensions": loads, "better_sqlite3": better, "needs": host.needs,
    });
    match (host.asked, answer) {
        ([], _) => section.advise(
            Level::Note,
            format!("{shown}: its programs bring their own SQLite"),
            host.needs,
        ),
        (_, None) => section.say(Level::Note, format!("{shown} did not answer")),
        _ if brings.is_empty() => {
            section.say(Level::Note, format!("{shown} has no SQLite installed"))
        }
        _ if loads == Some(false) => section.advise(
            Level::Note,
            format!("{shown}: {brings}; it loads no extensions"),
            host.otherwise,
        ),
        _ => section.advise(Level::Good, format!("{shown}: {brings}"), host.needs),
    }
    for trouble in sqlite.map(troubles).unwrap_or_default() {
        section.say(Level::Note, format!("{}: {trouble}", host.program));
    }
    facts
}

/// What is known of a version.
fn troubles(version: &str) -> Vec<&'static str> {
    let mut numbers = version.split('.').map(|number| number.parse().unwrap_or(0));
    let (Some(major), Some(minor)) = (numbers.next(), numbers.next()) else { return Vec::new() };
    let version = (major, minor, numbers.next().unwrap_or(0));
    let known = TROUBLES.iter().filter(|(before, _)| version < *before);
    known.map(|(_, says)| *says).collect()
}

/// The programs of this name in `PATH`, each once; the first one is what a shell takes.
fn in_path(program: &str) -> Vec<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let (mut known, mut found) = (Vec::new(), Vec::new());
    for file in std::env::split_paths(&path).map(|folder| folder.join(program)) {
        let runs = |of: std::fs::Metadata| of.is_file() && of.permissions().mode() & 0o111 != 0;
        let Ok(real) = file.canonicalize() else { continue };
        if file.is_absolute() && file.metadata().is_ok_and(runs) && !known.contains(&real) {
            known.push(real);
            found.push(file);
        }
    }
    found
}

/// What it prints; none if it can't be run, fails or takes too long.
fn ask(host: &Host, path: &Path, folder: &Path) -> Option<String> {
    if host.asked.is_empty() {
        return Some(String::new());
    }
    let mut command = Command::new(path);
    for argument in host.asked {
        match *argument {
            "{}" => command.arg(folder),
            argument => command.arg(argument),
        };
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let begun = Instant::now();
    let ended = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status.success(),
            Ok(None) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            _ => {
                drop(child.kill());
                drop(child.wait());
                break false;
            }
        }
    };
    let mut said = String::new();
    child.stdout.take()?.read_to_string(&mut said).ok()?;
    ended.then_some(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_version_has_the_troubles_of_the_newer_ones_too() {
        assert_eq!(troubles("3.54.1").len(), 0);
        assert_eq!(troubles("3.51.3").len(), 0);
        assert_eq!(troubles("3.51.2").len(), 1);
        assert_eq!(troubles("3.41.0").len(), 1);
        assert_eq!(troubles("3.40.1").len(), 2);
        assert_eq!(troubles("3.35.5").len(), 3);
        assert_eq!(troubles("3.7.17").len(), 4);
        assert_eq!(troubles("").len(), 0);
    }

    #[test]
    fn a_host_is_told_by_what_it_prints() {
        let said = |answer: Option<&str>| {
            let mut section = Section::new("hosts");
            let facts = say(&mut section, &HOSTS[1], Path::new("/usr/bin/python3"), answer);
            (section.findings.remove(0), facts)
        };
        let (finding, facts) = said(Some("sqlite=3.54.0\nextensions=1\n"));
        assert_eq!(finding.level, Level::Good);
        assert_eq!(facts["loads_extensions"], true);
        let (finding, _) = said(Some("sqlite=3.54.0\nextensions=0\n"));
        assert!(finding.remedy.is_some_and(|remedy| remedy.contains("ctypes")));
        assert!(said(Some("")).0.says.contains("no SQLite"));
        let (finding, facts) = said(None);
        assert!(finding.says.contains("did not answer") && facts["answered"] == false);
    }
}

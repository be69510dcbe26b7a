//! A test that can't run here says so, with the word for what is missing.
//!
//! | variable | means |
//! |---|---|
//! | `DASH_MUST_RUN=1` | a skip is a failure |
//! | `DASH_MAY_SKIP=overlay,xfs` | but not for want of these |
//! | `DASH_SKIPS=FILE` | each skip is a line at the end of that file |
//!
//! Cargo shows what a test printed only when it failed. Without the variables a skip looks like a
//! success: `.ci/run` sets all three.

use std::fs::OpenOptions;
use std::io::Write;

/// Declares [`Need`], its words, and the list of all.
macro_rules! needs {
    ($($(#[$doc:meta])* $need:ident = $word:literal,)*) => {
        /// What a test may have to do without.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Need {
            $($(#[$doc])* $need,)*
        }

        impl Need {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$need),*];

            /// The word in `DASH_MAY_SKIP`.
            pub const fn word(self) -> &'static str {
                match self {
                    $(Self::$need => $word,)*
                }
            }
        }
    };
}

needs! {
    /// The rights of root: other users, files given away.
    Root = "root",
    /// Another user can run what was built here: every folder above it lets them through.
    Traverse = "traverse",
    /// Programs run with the rights of their owner where they say so.
    Setuid = "setuid",
    /// Access control lists in the temporary folder.
    Lists = "lists",
    /// Names of any bytes in the temporary folder.
    AnyName = "any-name",
    /// Mounting memory.
    Tmpfs = "tmpfs",
    /// Mounting a file or folder a second time.
    Bind = "bind",
    /// Mounting an overlay.
    Overlay = "overlay",
    /// Mounting an image of ext4 as a loop device, and `mkfs.ext4`.
    Ext4 = "ext4",
    /// The same of XFS.
    Xfs = "xfs",
    /// The same of Btrfs.
    Btrfs = "btrfs",
    /// Loop devices with a sector size and direct I/O, for measuring.
    Loop = "loop",
    /// File systems served by a process.
    Fuse = "fuse",
    /// Linux 6.16, which tells what is mapped to copy on write.
    Linux616 = "linux-6.16",
    /// The program `sqlite3`.
    Sqlite3 = "sqlite3",
    /// SQLite as a library of the system, which Python uses, too.
    Libsqlite3 = "libsqlite3",
    /// A Python with an `sqlite3` that loads extensions.
    Python = "python3",
    /// A SQLite built with `SECURE_DELETE`, as Debian's is.
    SecureDelete = "secure-delete",
    /// Node with better-sqlite3.
    Node = "node",
    /// Bun, and a Node with `node:sqlite`.
    Bun = "bun",
    /// A Python with SQLAlchemy, gunicorn and Django.
    PythonDrivers = "python-drivers",
    /// Go, and mattn/go-sqlite3.
    Go = "go-sqlite3",
    /// Java with sqlite-jdbc.
    Java = "sqlite-jdbc",
    /// Ruby with sqlite3, ActiveRecord and Rails.
    Ruby = "ruby-sqlite3",
    /// PHP with sqlite3 and PDO.
    Php = "php",
    /// Rust's sqlx, built outside of the workspace.
    Sqlx = "sqlx",
    /// Older SQLites, compiled from the registry's sources.
    OlderSqlites = "older-sqlites",
    /// The program `litestream`.
    Litestream = "litestream",
    /// The program `dpkg-deb`.
    Dpkg = "dpkg",
    /// Zig, which compiles for other systems, and Rust's standard library for these.
    Zig = "zig",
    /// The dynamic loader of musl.
    Musl = "musl",
    /// The program `qemu-aarch64-static`, which runs programs of another processor.
    Qemu = "qemu-aarch64",
    /// The program `nm`.
    Nm = "nm",
    /// The examples, which cargo builds when all of a package's targets are asked for.
    Examples = "examples",
    /// The program `sqlite-dash`, which cargo builds with the whole workspace.
    Program = "sqlite-dash",
}

/// What a skip comes to.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Skipped,
    Failure,
    /// `DASH_MAY_SKIP` has a word that means nothing.
    Unknown(String),
}

fn verdict(need: Need, must_run: Option<&str>, may_skip: Option<&str>) -> Verdict {
    let words = may_skip.unwrap_or_default().split(',').map(str::trim);
    let words: Vec<_> = words.filter(|word| !word.is_empty()).collect();
    let known = |word: &&&str| Need::ALL.iter().any(|need| need.word() == **word);
    if let Some(unknown) = words.iter().find(|word| !known(word)) {
        return Verdict::Unknown((*unknown).to_owned());
    }
    match must_run {
        None | Some("" | "0") => Verdict::Skipped,
        Some(_) if words.contains(&need.word()) => Verdict::Skipped,
        Some(_) => Verdict::Failure,
    }
}

/// Says that the test that calls it leaves something out, and why. The caller returns.
///
/// # Panics
///
/// Under `DASH_MUST_RUN`, unless `DASH_MAY_SKIP` names the need.
pub fn skip(need: Need, why: &str) {
    let get = |name| std::env::var(name).ok();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // What programs say may be several lines.
    let why = why.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = format!("skipped for want of {}: {test}: {why}", need.word());
    match verdict(need, get("DASH_MUST_RUN").as_deref(), get("DASH_MAY_SKIP").as_deref()) {
        Verdict::Skipped => println!("{line}"),
        Verdict::Failure => panic!(
            "{line}; it must run (DASH_MUST_RUN), or {} be named in DASH_MAY_SKIP",
            need.word()
        ),
        Verdict::Unknown(word) => {
            panic!("DASH_MAY_SKIP names {word}; known are {}", words().join(", "))
        }
    }
    if let Some(path) = std::env::var_os("DASH_SKIPS") {
        let file = OpenOptions::new().append(true).create(true).open(&path);
        // One write a line: tests run side by side.
        let written = file.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
        written.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    }
}

fn words() -> Vec<&'static str> {
    Need::ALL.iter().map(|need| need.word()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skip_is_a_failure_only_where_it_must_run_and_may_not_be_left_out() {
        let xfs = |must_run, may_skip| verdict(Need::Xfs, must_run, may_skip);
        for must_run in [None, Some(""), Some("0")] {
            assert_eq!(xfs(must_run, None), Verdict::Skipped);
            assert_eq!(xfs(must_run, Some("overlay")), Verdict::Skipped);
        }
        for may_skip in [None, Some(""), Some("overlay"), Some("overlay,ext4,")] {
            assert_eq!(xfs(Some("1"), may_skip), Verdict::Failure, "{may_skip:?}");
        }
        for may_skip in ["xfs", "overlay,xfs", "xfs, overlay", ",xfs,"] {
            assert_eq!(xfs(Some("1"), Some(may_skip)), Verdict::Skipped, "{may_skip}");
        }
    }

    #[test]
    fn a_word_that_means_nothing_is_told_whatever_else_holds() {
        for must_run in [None, Some("1")] {
            let verdict = verdict(Need::Xfs, must_run, Some("xfs,fusse"));
            assert_eq!(verdict, Verdict::Unknown("fusse".to_owned()));
        }
    }

    #[test]
    fn every_need_has_a_word_of_its_own() {
        let mut words = words();
        words.sort_unstable();
        let all = words.len();
        words.dedup();
        assert_eq!(words.len(), all);
        assert!(words.iter().all(|word| !word.contains([',', ' '])));
    }
}

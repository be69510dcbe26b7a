//! Files beside a database, and the URI of its name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};

/// What a URI of SQLite's takes for something else than a byte of a name.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.');

/// Bytes of a path as SQLite's URIs want them.
pub fn escape(path: impl AsRef<OsStr>) -> String {
    percent_encode(path.as_ref().as_bytes(), ESCAPED).to_string()
}

/// A URI for `path` in dash, with more parameters such as `&dash_commit=paper`.
pub fn uri(path: impl AsRef<OsStr>, more: &str) -> String {
    format!("file:{}?vfs=dash{more}", escape(path))
}

/// `path` with `ending` behind its name.
pub fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Whether anything has that name.
pub fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}

/// Waits until nothing has that name any more; `what` does not happen if it stays for a minute.
pub fn wait_until_gone(path: &Path, what: &str) {
    let begun = Instant::now();
    while exists(path) {
        assert!(begun.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until the database at `path` is at rest: no connection of mode shadow has it open.
pub fn wait_for_rest(path: &Path) {
    wait_until_gone(&beside(path, "-dash"), "it does not come to rest");
}

/// Every name in a folder, sorted.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let name = |entry: std::fs::DirEntry| entry.file_name().to_string_lossy().into_owned();
    let mut names: Vec<_> = entries.map(|entry| name(entry.expect("readable"))).collect();
    names.sort();
    names
}

#[test]
fn what_a_uri_would_take_for_something_else_is_escaped() {
    assert_eq!(escape("/a b/\u{fc}?#%&=.db"), "/a%20b/%C3%BC%3F%23%25%26%3D.db");
    assert_eq!(escape(OsStr::from_bytes(b"/x-y_\xff")), "/x-y_%FF");
    assert_eq!(uri("/a?", "&mode=ro"), "file:/a%3F?vfs=dash&mode=ro");
}

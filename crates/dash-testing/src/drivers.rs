//! Drivers of other languages, as `tests/fixtures/drivers/install.sh` lays them into a folder.

use std::path::PathBuf;
use std::process::Command;

use crate::{Need, skip};

/// That folder: `DASH_DRIVERS`, or `drivers` in the build folder.
pub fn folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("DASH_DRIVERS") {
        return folder.into();
    }
    let test = std::env::current_exe().expect("a test knows its own file");
    // target/debug/deps/test
    test.ancestors().nth(3).expect("a test lies in the build folder").join("drivers")
}

/// A file of it; otherwise the test is skipped.
pub fn installed(need: Need, file: &str) -> Option<PathBuf> {
    let path = folder().join(file);
    if !path.exists() {
        let what = path.display();
        skip(
            need,
            &format!("there is no {what}: sh tests/fixtures/drivers/install.sh lays it there"),
        );
        return None;
    }
    Some(path)
}

/// Node, which finds better-sqlite3; otherwise the test is skipped.
pub fn node() -> Option<Command> {
    let mut modules = vec![folder().join("node/node_modules")];
    modules.extend(std::env::var_os("NODE_PATH").iter().flat_map(std::env::split_paths));
    let node = || {
        let mut node = Command::new("node");
        node.env("NODE_PATH", std::env::join_paths(&modules).expect("paths"));
        node
    };
    let probe = node().args(["-e", "new (require('better-sqlite3'))(':memory:')"]).output();
    if !probe.is_ok_and(|output| output.status.success()) {
        skip(Need::Node, "node with better-sqlite3 is not installed");
        return None;
    }
    Some(node())
}

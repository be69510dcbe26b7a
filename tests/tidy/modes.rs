//! No mode names another one: what two of them need lies below both.

use crate::allowed::MODES_THAT_NAME_OTHERS;
use crate::rust::{code, product};
use crate::tree::{files, none, root, shown, text};

/// The folder of each mode in `dash`, and the crate of its engine.
const MODES: [(&str, &str); 2] = [("shadow", "dash_shadow"), ("wal", "dash_wal")];

#[test]
fn no_mode_names_another_one() {
    let mut offenders = Vec::new();
    for (folder, _) in MODES {
        for path in files(&root().join("crates/dash/src").join(folder), ".rs") {
            let code = code(product(&text(&path)));
            let others = MODES.iter().filter(|(other, _)| *other != folder);
            let named = others.flat_map(|(folder, engine)| {
                [format!("crate::{folder}"), format!(" {folder}::"), format!("{engine}::")]
            });
            if named.into_iter().any(|name| code.contains(&name)) {
                offenders.push(shown(&path));
            }
        }
    }
    offenders.sort();
    let new = |path: &&String| !MODES_THAT_NAME_OTHERS.contains(&path.as_str());
    none(&offenders.iter().filter(new).cloned().collect::<Vec<_>>(), "ask the table of modes");
    let gone = |path: &&&str| !offenders.iter().any(|found| found == **path);
    let gone: Vec<_> = MODES_THAT_NAME_OTHERS.iter().filter(gone).map(|p| (*p).into()).collect();
    none(&gone, "these name none any more: strike them from MODES_THAT_NAME_OTHERS");
}

//! What happened on a machine, in few lines: names instead of inodes, and one line for all writes
//! that follow each other in a file.

use dash_simulated::{Entry, Machine, OperationKind};

use crate::sim::explore::changes;
use crate::sim::subject::DB;

/// Lines told.
const LINES: usize = 40;

/// The endings of the names that are known.
const ENDINGS: [&str; 6] = ["", "-wal", "-dashlog", "-journal", "-dash", "-shm"];

/// The files of a database, and their sizes.
pub fn files(machine: &Machine) -> String {
    let files = ENDINGS.iter().filter_map(|ending| {
        let path = format!("{DB}{ending}");
        let version = |file: &[u8]| match (ending.is_empty(), file.get(18..20)) {
            (true, Some(version)) => format!(", version {version:?}"),
            _ => String::new(),
        };
        let shown = |file: Vec<u8>| format!("{} bytes{}", file.len(), version(&file));
        let len = machine.file_view(&path).map(shown);
        let what = len.or_else(|| machine.exists(&path).then(|| "a folder".to_owned()))?;
        Some(format!("app.db{ending} ({what})"))
    });
    let files: Vec<_> = files.collect();
    if files.is_empty() { "nothing".to_owned() } else { files.join(", ") }
}

/// The last lines before so many steps.
pub fn story(machine: &Machine, steps: u64) -> String {
    let names: Vec<_> = ENDINGS
        .iter()
        .filter_map(|ending| {
            let file = machine.open_stock(format!("{DB}{ending}")).ok()?;
            Some((file.inode(), format!("app.db{ending}")))
        })
        .collect();
    let name = |entry: &Entry| {
        let inode = entry.operation.inode;
        let found = names.iter().find(|(number, _)| *number == inode);
        found.map_or_else(|| format!("inode {inode}"), |(_, name)| name.clone())
    };
    let mut lines: Vec<(String, u64, String)> = Vec::new();
    for entry in machine.journal().entries {
        let kind = entry.operation.kind;
        if !changes(kind) || entry.step >= steps {
            continue;
        }
        let (name, failed) = (name(&entry), entry.error.is_some());
        let range = entry.operation.range.as_ref();
        let range = range.map_or(String::new(), |range| format!(" {}..{}", range.start, range.end));
        if kind != OperationKind::Write || failed {
            let text =
                entry.to_string().replace(&format!("inode {}", entry.operation.inode), &name);
            lines.push((String::new(), 0, text));
            continue;
        }
        match lines.last_mut() {
            Some((last, times, text)) if *last == name => {
                *times += 1;
                *text = format!(
                    "{}; {times} more, the last{range}",
                    text.split(';').next().unwrap_or("")
                );
            }
            _ => {
                let text =
                    format!("{:>6} process {}: write {name}{range}", entry.step, entry.process);
                lines.push((name, 0, text));
            }
        }
    }
    let from = lines.len().saturating_sub(LINES);
    lines[from..].iter().map(|(_, _, text)| text.as_str()).collect::<Vec<_>>().join("\n")
}

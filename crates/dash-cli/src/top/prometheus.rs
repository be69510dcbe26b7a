//! A look in Prometheus' text format: `# HELP`, `# TYPE`, a sample a line. A metric that the mode
//! does not know is not there.

use std::fmt::Write;
use std::path::Path;

use dash_statement::shown;
use dash_terminal::numbers::{count, float};

use super::json::seconds;
use super::moment::{Moment, Party, Rates};

/// A metric: its name, its type, and what it means.
type Metric = (&'static str, &'static str, &'static str);

const OPEN: Metric = (
    "sqlite_dash_open",
    "gauge",
    "Whether a connection of dash has the database open for writing.",
);
const COMMITS: Metric = (
    "sqlite_dash_commits_total",
    "counter",
    "Commits since the first of the present connections opened the database.",
);
const CONNECTIONS: Metric = ("sqlite_dash_connections", "gauge", "Connections through dash.");
const WRITER: Metric = (
    "sqlite_dash_writer_seconds",
    "gauge",
    "For how long the present writer has had the write lock.",
);
const CHECKPOINT: Metric = (
    "sqlite_dash_checkpoint_seconds",
    "gauge",
    "For how long the present checkpoint has been at work.",
);
const WAITING: Metric =
    ("sqlite_dash_waiting", "gauge", "Connections that wait for the write lock.");
const LONGEST: Metric =
    ("sqlite_dash_waiting_seconds", "gauge", "For how long the one that has waited longest waits.");
const READERS: Metric = ("sqlite_dash_readers", "gauge", "Connections that read at this moment.");
const OLDEST: Metric =
    ("sqlite_dash_reader_seconds", "gauge", "For how long the oldest reader reads.");
const KEPT: Metric = (
    "sqlite_dash_kept_bytes",
    "gauge",
    "Bytes of -wal that no checkpoint can copy before readers end.",
);
const WAL: Metric = (
    "sqlite_dash_wal_bytes_per_second",
    "gauge",
    "Bytes that commits wrote into -wal a second, in the last interval.",
);
const LOG: Metric = (
    "sqlite_dash_log_bytes_per_commit",
    "gauge",
    "Bytes of the log that a commit took, in the last interval.",
);
const GROUP: Metric = (
    "sqlite_dash_group_size",
    "gauge",
    "Commits that became durable with the same record, as a commit sees it, in the last interval.",
);
const FLUSH: Metric = (
    "sqlite_dash_flush_seconds",
    "gauge",
    "From visible until durable, the median of the last interval.",
);

/// The metrics.
pub fn text(path: &Path, now: Option<&Moment>, rates: &Rates) -> String {
    let mut text =
        Text { text: String::new(), file: escape(&shown(path.as_os_str().as_encoded_bytes())) };
    text.add(OPEN, "", Some(f64::from(u8::from(now.is_some()))));
    let Some(now) = now else { return text.text };
    let mode = format!(",mode=\"{}\"", now.mode);
    let held = |party: Option<&Party>| party.and_then(|party| party.age).map(seconds);
    text.add(COMMITS, &mode, Some(float(now.commits)));
    text.add(CONNECTIONS, &mode, Some(float(count(now.connections))));
    text.add(WRITER, &mode, held(now.writer.as_ref()));
    text.add(CHECKPOINT, &mode, held(now.checkpoint.as_ref()));
    text.add(WAITING, &mode, Some(float(count(now.queue.len()))));
    text.add(LONGEST, &mode, now.queue.iter().filter_map(|it| it.age).max().map(seconds));
    let kinds = ["dash", "stock"].map(|kind| {
        let readers = now.readers.iter().filter(|reader| reader.kind == kind);
        (format!("{mode},kind=\"{kind}\""), float(count(readers.count())))
    });
    text.head(READERS);
    for (labels, readers) in &kinds {
        text.sample(READERS, labels, *readers);
    }
    text.add(OLDEST, &mode, now.readers.iter().filter_map(|it| it.age).max().map(seconds));
    text.add(KEPT, &mode, now.readers.iter().filter_map(|it| it.kept_bytes).max().map(float));
    text.add(WAL, &mode, rates.wal_bytes);
    text.add(LOG, &mode, rates.log_bytes_per_commit);
    text.add(GROUP, &mode, rates.group_size);
    text.add(FLUSH, &mode, rates.flush);
    text.text
}

struct Text {
    text: String,
    /// The label of every sample.
    file: String,
}

impl Text {
    fn add(&mut self, metric: Metric, labels: &str, value: Option<f64>) {
        if let Some(value) = value {
            self.head(metric);
            self.sample(metric, labels, value);
        }
    }

    fn head(&mut self, (name, kind, help): Metric) {
        let _ = writeln!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    fn sample(&mut self, (name, ..): Metric, labels: &str, value: f64) {
        let _ = writeln!(self.text, "{name}{{file=\"{}\"{labels}}} {value}", self.file);
    }
}

/// As a label's value has it.
fn escape(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_escaped() {
        let text = text(Path::new("/a \"b\"\\c\nd"), None, &Rates::default());
        assert_eq!(text.lines().count(), 3, "{text}");
        assert!(text.ends_with("sqlite_dash_open{file=\"/a \\\"b\\\"\\\\c\\nd\"} 0\n"), "{text}");
    }
}

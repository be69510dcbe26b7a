//! What may come of opening a damaged database: a state that was committed, made anew if need be,
//! or a refusal with words. Never other content, never a panic, never a search without end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dash_simulated::{Machine, Nothing};

use super::original::Original;
use crate::sim::content::{self, Content, Stock};
use crate::sim::subject::{DB, Outcome, Session, Subject, Trouble};

/// More operations than this no opening of such a small database takes.
const MANY: u64 = 100_000;

/// No database here has so many bytes.
const LARGEST: u64 = 16 << 20;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was opened, and holds this.
    Opened(Content),
    /// It was opened, and pages are not whole.
    Torn(String),
    /// It was refused.
    Refused,
}

fn open(
    subject: &dyn Subject,
    machine: &Machine,
    original: &Original,
) -> Outcome<(Content, Box<dyn Session>)> {
    let process = machine.process();
    let mut session = subject.open(&process, DB, &original.setup)?;
    session.begin_read()?;
    if session.size() > LARGEST {
        let mut page = vec![0; original.setup.page];
        session.read(&mut page, 0)?;
        session.read(&mut page, session.size() - 512)?;
        return Err(Trouble::Wrong(format!("a database of {} bytes", session.size())));
    }
    session.end()?;
    let content = content::read(&mut *session, original.setup.page)?;
    Ok((content, session))
}

/// Opens a damaged database, and goes on with it if `further`.
///
/// # Errors
///
/// What must never happen, whatever the damage.
pub fn of(
    subject: &dyn Subject,
    machine: &Machine,
    original: &Original,
    further: bool,
) -> Result<Verdict, String> {
    let end = machine.steps() + MANY;
    machine.cut_at(end);
    let opened = catch_unwind(AssertUnwindSafe(|| open(subject, machine, original)));
    if machine.steps() >= end {
        return Err("opening does not come to an end".into());
    }
    let Ok(opened) = opened else {
        return Err("a panic".into());
    };
    match opened {
        Err(Trouble::Busy) => Err("busy, where nobody is".into()),
        Err(Trouble::Failed(message)) if message.is_empty() => {
            Err("a refusal without words".into())
        }
        Err(Trouble::Failed(_)) => Ok(Verdict::Refused),
        Err(Trouble::Wrong(what)) => Ok(Verdict::Torn(what)),
        Ok((content, session)) => {
            if further {
                let gone_on = catch_unwind(AssertUnwindSafe(|| {
                    go_on(subject, machine, original, &content, session)
                }));
                gone_on.map_err(|_| "a panic at the next commit".to_owned())??;
            }
            Ok(Verdict::Opened(content))
        }
    }
}

/// The next commit survives.
fn go_on(
    subject: &dyn Subject,
    machine: &Machine,
    original: &Original,
    content: &[u32],
    mut session: Box<dyn Session>,
) -> Result<(), String> {
    let mut next = content.to_vec();
    next.push(77);
    next[0] += 1000;
    let failed = |what: &str, error: Trouble| format!("{what} after the damage: {error}");
    content::commit(&mut *session, original.setup.page, &next)
        .map_err(|error| failed("the next commit", error))?;
    let after = machine.power_loss(&mut Nothing);
    subject.prepare(&after, &original.setup);
    let (found, _session) = open(subject, &after, original)
        .map_err(|error| failed("opening after a power loss", error))?;
    if found != next {
        return Err(format!("the next commit is lost: {found:?} instead of {next:?}"));
    }
    session.close().map_err(|error| failed("closing", error))
}

/// What stock SQLite makes of the bytes under the database's name.
pub fn stock(machine: &Machine) -> Stock {
    content::as_stock(&machine.file_view(DB).unwrap_or_default())
}

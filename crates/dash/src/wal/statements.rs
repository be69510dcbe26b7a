//! The statements of a commit, where the connection records them ([`crate::statements`]): gathered
//! with the transaction's last frame, kept once it is visible. Nothing here fails.

use dash_ffi::{ConnectionRef, Watched};
use dash_statement::{Reason, STEPS_OF_A_BLOCK};
use dash_wal::Said;
use std::any::Any;
use std::time::{SystemTime, UNIX_EPOCH};

use super::link::{Link, State};
use crate::statements::Text;
use crate::statements::capturer::{Captured, Capturer};

/// Shows the capturer of a connection, if it has one.
fn with_capturer<R>(
    connection: &ConnectionRef<'_>,
    show: impl FnOnce(&Capturer, &Watched<'_>) -> R,
) -> Option<R> {
    let watched = connection.watched()?;
    let capturer = (watched.capture() as &dyn Any).downcast_ref::<Capturer>()?;
    Some(show(capturer, &watched))
}

/// Why nobody is told of a connection's statements.
fn unseen(connection: &ConnectionRef<'_>) -> Reason {
    match connection.tells_of_statements() {
        true => Reason::OpenedBefore,
        false => Reason::HostLacks,
    }
}

impl Link {
    /// For `dash_stats`: whether a connection's statements are recorded, or why not.
    pub(super) fn recording(&self, connection: &ConnectionRef<'_>) -> &'static str {
        if !self.records() {
            return "off";
        }
        let lost = with_capturer(connection, |capturer, _| capturer.has_lost_the_hook());
        match lost {
            Some(false) => "on",
            Some(true) => Reason::HookTaken.sentence(),
            None => unseen(connection).sentence(),
        }
    }

    /// Why the statements are not seen of the connection that is calling, though that is wanted.
    pub(super) fn why_unseen(&self, state: &State) -> Option<&'static str> {
        let said = state.kept.as_ref()?.visit(|connection| self.recording(connection))?;
        (said != "on").then_some(said)
    }

    /// SQLite has got WRITER.
    pub(super) fn begins_to_write(&self, state: &State) {
        // More than the log is going to hold is not read.
        let whole = state.text == Text::Full || state.paper.runner.is_some();
        let steps = if whole { usize::MAX } else { STEPS_OF_A_BLOCK };
        self.tell(state, |capturer, watched| capturer.asks_to_write(watched, steps));
    }

    /// SQLite gives WRITER up.
    pub(super) fn ceases_to_write(&self, state: &State) {
        self.tell(state, |capturer, _| capturer.ceases_to_write());
    }

    fn tell(&self, state: &State, tell: impl Fn(&Capturer, &Watched<'_>)) {
        if self.records()
            && let Some(kept) = &state.kept
        {
            kept.visit(|connection| with_capturer(connection, tell));
        }
    }

    /// The last frame of a transaction comes; `several`: the transaction writes another database,
    /// too.
    pub(super) fn capture_statements(&self, state: &mut State, several: bool) {
        if !self.records() {
            return;
        }
        let capture = |connection: &ConnectionRef<'_>| {
            let captured = with_capturer(connection, |capturer, watched| {
                capturer.at_commit(watched, &self.path, several)
            });
            captured.unwrap_or_else(|| Captured::nothing(unseen(connection)))
        };
        state.captured = state.kept.as_ref().and_then(|kept| kept.visit(capture));
        Self::record_statements(state);
    }

    /// Hands them to whoever writes the commit's record.
    fn record_statements(state: &mut State) {
        let State { text, paper, connection, captured, .. } = state;
        let (Some(captured), Some(engine)) = (captured, connection) else { return };
        let runner = paper.judge(engine, &captured.bytes);
        if *text == Text::Off && runner.is_none() {
            return;
        }
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let said = Said {
            process: engine.process_id(),
            connection: captured.connection,
            time: i64::try_from(time.as_millis()).unwrap_or(i64::MAX),
            statements: captured.bytes.clone(),
        };
        engine.say(said, *text == Text::Full, runner);
    }

    /// The transaction is visible.
    pub(super) fn keep_statements(&self, state: &mut State) {
        let Some(captured) = state.captured.take() else { return };
        let is_it = state.kept.as_ref().and_then(|kept| {
            kept.visit(|connection| {
                with_capturer(connection, |capturer, _| capturer.committed(&captured))
            })
        });
        // Nobody knows more of a connection without a capturer.
        if is_it.flatten().unwrap_or(true) {
            self.together.statements.add(captured);
        }
    }
}

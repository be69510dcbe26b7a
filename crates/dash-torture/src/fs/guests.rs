//! Programs that are not of dash alone: sessions of dash and of stock SQLite, in every mode that it
//! has, take turns with one database. Each is a process of its own, which closes what it has open,
//! or is killed, at a call that the seed chooses; some stock connections stay open from before dash
//! came.
//!
//! Of each session it is known beforehand what must be found: a writer that is let in finds the
//! newest commit, or what a killed process had begun; a reader beside it finds a commit, or is
//! refused. Nobody may be refused once the holders of locks are gone.

use std::path::Path;

use fastrand::Rng;
use rusqlite::Connection;
use serde_json::Value;

use super::actor::{Actor, Said};
use super::database::{self, Opened};
use super::kind::Kind;
use super::ledger::Ledger;
use super::play::{BEGIN, DB, Ended, Play, REFUSALS, STAYER, text};
use super::program::Draft;
use super::rig::Rig;
use super::stock::Mode;
use crate::engine::Level;
use crate::sqlite;

/// Sessions of a program.
const SESSIONS: usize = 8;
/// How connections of dash begin.
const BEGINNING: Level = Level::durable("PRAGMA synchronous = EXTRA");
/// Changing calls within which a process dies.
const CALLS: u64 = 40;

/// Runs the program of a seed on the mounted file system.
///
/// # Errors
///
/// What must not be, and the sessions until then.
pub fn perform(
    (rig, kind): (&Rig, Kind),
    library: &Path,
    engine: &'static str,
    seed: u64,
) -> Result<Ledger, String> {
    let mut rng = Rng::with_seed(seed);
    // The first variant twice as often as the others.
    let mut parameters = database::parameters_of(engine);
    // They tell parameters to each other, and a path is of one database; and two of them may have
    // it open. Stock writers are to be refused.
    let others = [sqlite::ELSEWHERE, sqlite::IN_MEMORY, sqlite::STOCK_WRITES];
    parameters.retain(|parameters| !others.iter().any(|other| parameters.contains(other)));
    parameters.insert(0, parameters[0]);
    let parameters = parameters[rng.usize(..parameters.len())];
    let model = Connection::open_in_memory().map_err(text)?;
    let ledger =
        Ledger { empty: database::state(&model, false).map_err(text)?, ..Ledger::default() };
    let mut play = Play {
        rig,
        kind,
        library,
        opened: Opened::Guests(engine),
        parameters,
        draft: Draft::new(rng),
        model,
        ledger,
        pending: None,
        torn: None,
        choice: None,
        is_unnamed: false,
        stayer: None,
        idler: None,
        level: BEGINNING,
        is_at_rest: true,
        may_return: false,
    };
    play.all()
        .map_err(|what| format!("{what}; before: {}", play.ledger.allowed(u64::MAX).story))?;
    Ok(play.ledger)
}

impl Play<'_> {
    fn all(&mut self) -> Result<(), String> {
        for number in 0..SESSIONS {
            match self.rng().u8(..8) {
                0..4 => self.dash()?,
                4..7 => self.stock()?,
                _ if number == 0 => self.stock()?,
                _ => self.stayer()?,
            }
            match self.rng().u8(..8) {
                0 => self.write_back()?,
                1 => {
                    self.tell("all is written to the disk");
                    nix::unistd::syncfs(std::fs::File::open(self.rig.point()).map_err(text)?)
                        .map_err(text)?;
                }
                _ => {}
            }
        }
        (self.stayer, self.idler) = (None, None);
        self.dash()?;
        self.idler = None;
        self.nobody_looks();
        if let Some(begun) = self.torn.take() {
            self.ledger.torn.push(begun..u64::MAX);
        }
        Ok(())
    }

    /// The content of one of the files reaches the disk, as it does after half a minute; its name
    /// need not.
    fn write_back(&mut self) -> Result<(), String> {
        let beside = self.opened.beside();
        let name = match self.rng().bool() || beside.is_empty() {
            true => "app.db".to_owned(),
            false => format!("app.db{}", beside[self.rng().usize(..beside.len())]),
        };
        let Ok(file) = std::fs::File::open(self.rig.point().join(&name)) else { return Ok(()) };
        self.tell(format!("{name} is written back"));
        write_back(&file).map_err(text)
    }

    /// A session of dash.
    fn dash(&mut self) -> Result<(), String> {
        let parameters = format!("?vfs=dash{}", self.parameters);
        self.tell(format!("dash {}", self.parameters));
        let (mut actor, mut said) = self.actor(&parameters)?;
        for _ in 0..2 {
            if matches!(said, Said::Done(_)) {
                said = actor.state(DB)?;
            }
            // The process that stayed may well hold a lock; not for ever.
            if !matches!(said, Said::Done(_)) && self.stayer.take().is_some() {
                (actor, said) = self.actor(&parameters)?;
            }
        }
        match said {
            Said::Done(found) if found.get("state").is_some() => {
                self.finds(&found, true, "dash")?;
                if let Some(since) = self.choice.take() {
                    self.ledger.choices.push(since..self.position()?);
                }
            }
            other => return Err(format!("dash opens: {other:?}")),
        }
        self.is_at_rest = false;
        let small = if self.rng().bool() { "; PRAGMA cache_size = 10" } else { "" };
        self.must(actor.run(DB, &format!("PRAGMA synchronous = EXTRA{small}"))?, "dash, settings")?;
        self.level = BEGINNING;
        let mut is_promised = false;
        let commits = [0, 1, 1, 1, 1, 2, 2, 3, 5][self.rng().usize(..9)];
        let dies = commits > 0 && self.one_in(4);
        for number in 0..commits {
            if dies && number + 1 == commits {
                let calls = self.rng().u64(..CALLS);
                actor.die(calls)?;
                self.tell(format!("to die before changing call {calls}"));
            }
            self.choose_level(&mut actor, is_promised)?;
            match self.transaction(&mut actor, "dash", None)? {
                Ended::Committed => is_promised |= self.level.is_durable,
                Ended::Refused => return Err("dash is refused".to_owned()),
                Ended::Died => return Ok(()),
            }
            if self.one_in(3) {
                self.beside(&mut actor)?;
            }
        }
        let Some(actor) = self.idles(actor, dies)? else { return Ok(()) };
        self.dash_closes(actor, is_promised)
    }

    /// The end of a session of dash.
    fn dash_closes(&mut self, mut actor: Actor, is_promised: bool) -> Result<(), String> {
        match self.rng().u8(..8) {
            0 => {
                self.tell("killed at rest");
                return Ok(());
            }
            1 => {
                let calls = self.rng().u64(..CALLS / 4);
                actor.die(calls)?;
            }
            _ => {}
        }
        match actor.close(DB)? {
            Said::Done(_) if self.idler.is_some() => self.tell("closed beside another one"),
            Said::Done(_) => {
                self.is_at_rest = true;
                self.tell("closed");
                // Nothing is copied while somebody else has the log open.
                if is_promised && self.stayer.is_none() {
                    self.is_whole(self.position()?);
                }
            }
            Said::Died => self.tell("killed in closing"),
            Said::Refused(code, what) => return Err(format!("dash closes: {what} ({code})")),
        }
        Ok(())
    }

    /// A process of dash's may stay and do nothing, unless it is still to die, which coming to rest
    /// would bring about; or one that did so comes to its end. Answers the one that goes on.
    fn idles(&mut self, actor: Actor, dies: bool) -> Result<Option<Actor>, String> {
        if !self.opened.is_wal() {
            return Ok(Some(actor));
        }
        match (self.idler.is_some(), self.rng().u8(..4)) {
            (false, 0) if !dies => {
                self.tell("stays, and does nothing");
                self.idler = Some(actor);
                return Ok(None);
            }
            (true, 0) => {
                self.tell("the idle one is killed");
                self.idler = None;
            }
            (true, 1) => {
                self.tell("the idle one closes");
                if let Some(mut idler) = self.idler.take() {
                    let _may_be_refused = idler.close(DB)?;
                }
            }
            _ => {}
        }
        Ok(Some(actor))
    }

    /// How durable the next commit is, if the engine knows several ways.
    fn choose_level(&mut self, actor: &mut Actor, is_promised: bool) -> Result<(), String> {
        let levels = self.opened.statements().map_or(&[][..], |statements| statements.levels);
        if levels.is_empty() || !self.one_in(3) {
            return Ok(());
        }
        let level = levels[self.rng().usize(..levels.len())];
        if level.needs_a_promise && !is_promised {
            return Ok(());
        }
        self.tell(level.sql);
        self.must(actor.run(DB, level.sql)?, "dash, a level")?;
        self.level = level;
        Ok(())
    }

    /// A stock process looks, or tries to write, while dash has the database open.
    fn beside(&mut self, actor: &mut Actor) -> Result<(), String> {
        // What it has open may be a file from before the first commit.
        let is_old = self.stayer.is_some();
        let (mut guest, opened) = match self.stayer.take() {
            Some(stayer) => (stayer, Said::Done(Value::Null)),
            None => self.actor("")?,
        };
        let said = if matches!(opened, Said::Done(_)) { guest.state(DB)? } else { opened };
        match said {
            Said::Done(found) => {
                let state = (found.get("state").and_then(Value::as_u64).unwrap_or_default(), 0);
                let was_committed = self.ledger.commits.iter().any(|commit| commit.state == state);
                if !was_committed && (!is_old || state != self.ledger.empty) {
                    return Err("a stock reader beside dash finds what no commit made".to_owned());
                }
            }
            Said::Refused(code, _) if REFUSALS.contains(&code) => {}
            other => return Err(format!("a stock reader beside dash: {other:?}")),
        }
        if let Said::Done(_) = guest.run(DB, BEGIN)? {
            // It may have come to rest; in mode wal stock writers are kept out then, too. But the
            // thread that does it makes calls before one of which the process may be to die.
            let is_kept_out = self.opened.is_wal() || !self.parameters.contains("dash_rest");
            if is_kept_out && actor.run(DB, "SELECT 1")? != Said::Died {
                return Err("a stock writer is let in beside dash".to_owned());
            }
            self.must(guest.run(DB, "ROLLBACK")?, "a stock writer beside dash at rest")?;
        }
        if self.one_in(3) {
            self.stayer = Some(guest);
        }
        Ok(())
    }

    /// A session of stock SQLite, in a process of its own.
    fn stock(&mut self) -> Result<(), String> {
        let (mut actor, opened) = self.actor("")?;
        let said = if matches!(opened, Said::Done(_)) { actor.state(DB)? } else { opened };
        match said {
            // A reader does not decide what becomes of a commit of dash's in which somebody died.
            Said::Done(found) => self.finds(&found, false, "a stock reader")?,
            Said::Refused(code, what) => {
                self.refused(code, &what, "a stock reader")?;
                return Ok(());
            }
            Said::Died => return Err("a stock process is gone".to_owned()),
        }
        self.stock_writes(actor, "a stock writer")
    }

    /// The stock process that has the database open writes, or comes to be.
    fn stayer(&mut self) -> Result<(), String> {
        match self.stayer.take() {
            Some(mut stayer) => {
                self.tell("the stock process that stayed:");
                // SQLite that leaves WAL mode goes on with what it has in memory, however old. And
                // it answers the mode that it is asked for before it has noticed that the file was
                // put into WAL mode meanwhile, in which it then commits.
                if (self.opened.is_wal() || self.says_wal())
                    && let Said::Refused(code, what) = stayer.state(DB)?
                {
                    self.refused(code, &what, STAYER)?;
                    return Ok(());
                }
                self.stock_writes(stayer, STAYER)
            }
            None => {
                let (mut actor, opened) = self.actor("")?;
                if matches!(opened, Said::Done(_)) {
                    let _looked = actor.state(DB)?;
                    self.stayer = Some(actor);
                    self.tell("a stock process opens, and stays");
                }
                Ok(())
            }
        }
    }

    /// Whether the header of the database says WAL mode (byte 18).
    fn says_wal(&self) -> bool {
        let header = std::fs::read(self.rig.point().join("app.db")).unwrap_or_default();
        header.get(18) == Some(&2)
    }

    fn stock_writes(&mut self, mut actor: Actor, who: &str) -> Result<(), String> {
        let mut mode = Mode::draw(self.rng());
        if self.may_return && !mode.survives_kills() {
            mode.journal = "truncate";
        }
        // Not earlier: what an earlier journal is rolled back for is flushed.
        let settings = format!(
            "PRAGMA synchronous = {}; PRAGMA cache_size = {}; PRAGMA journal_mode = {}",
            mode.synchronous,
            if self.rng().bool() { 10 } else { 2000 },
            mode.journal
        );
        if mode.synchronous == "off" {
            // The switch to or from a log writes, and deletes `-wal`, before it may be refused.
            let begun = self.position()?;
            self.torn.get_or_insert(begun);
        }
        let mode = match actor.run(DB, &settings)? {
            Said::Done(answer) => {
                let journal = answer.get("value").and_then(Value::as_str).unwrap_or_default();
                mode.in_force(journal).ok_or_else(|| format!("{settings}: {answer}"))?
            }
            Said::Refused(code, what) => {
                self.refused(code, &what, who)?;
                return Ok(());
            }
            Said::Died => return Err("a stock process is gone".to_owned()),
        };
        self.tell(format!("stock {} {}", mode.journal, mode.synchronous));
        let commits = [1, 1, 1, 2, 3][self.rng().usize(..5)];
        let dies = mode.survives_kills() && self.one_in(4);
        for number in 0..commits {
            if dies && number + 1 == commits {
                let calls = self.rng().u64(..CALLS / 2);
                actor.die(calls)?;
            }
            if self.transaction(&mut actor, who, Some(mode))? != Ended::Committed {
                return Ok(());
            }
        }
        // A process that is still to die does not stay: it would die of anything.
        if !dies && self.one_in(4) {
            self.tell("stays");
            self.stayer = Some(actor);
        } else {
            let _closed_or_died = actor.close(DB)?;
        }
        Ok(())
    }
}

#[expect(unsafe_code, reason = "the kernel offers this as a call on a descriptor only")]
fn write_back(file: &std::fs::File) -> nix::Result<()> {
    let flags = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    // SAFETY: the call takes no pointers, and the descriptor is open.
    let done = unsafe { libc::sync_file_range(std::os::fd::AsRawFd::as_raw_fd(file), 0, 0, flags) };
    nix::errno::Errno::result(done).map(drop)
}

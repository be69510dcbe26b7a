//! The engine `shadow` on simulated storage.

use std::ffi::OsStr;
use std::path::Path;

use dash_shadow::format::{Place, State, first_page};
use dash_shadow::inspect::{HeaderSeen, Opening, Report};
use dash_shadow::{
    Connection, Error, LockLevel, OpenOptions, Protocol, ReadOnly, Tuning, inspect, while_closed,
};
use dash_simulated::{Machine, Simulated};

use crate::sim::commit::{CommitStep, Kept, SqliteCall};
use crate::sim::rollback::Rollback;
use crate::sim::subject::{
    Claims, Outcome, Session, Sessions, Setup, Sizes, SqliteFiles, Subject, Trouble,
};
use crate::variant::Variant;

const VARIANTS: &[Variant] = &[
    Variant {
        name: "single",
        what: "one flush",
        // On real systems it comes to rest as often as can be.
        uri: Some("&dash_commit=single&dash_default=shadow&dash_rest=10"),
        every_flush_counts: true,
    },
    // Both flush once more after the commit point.
    Variant {
        name: "paper",
        what: "three flushes: Algorithm 1 of the paper",
        uri: Some("&dash_commit=paper&dash_default=shadow"),
        every_flush_counts: false,
    },
    Variant {
        name: "exclusive",
        what: "two flushes: SHADOW-X of the paper",
        uri: Some("&dash_commit=exclusive&dash_default=shadow"),
        every_flush_counts: false,
    },
    Variant {
        name: "links",
        what: "single, without an atomic exchange of names, with hard links",
        uri: None,
        every_flush_counts: true,
    },
    Variant {
        name: "renames",
        what: "single, with neither: three renames",
        uri: None,
        every_flush_counts: true,
    },
];

/// A step after which a kill or a power loss leaves one state or the other.
const fn undoable(name: &'static str, at: SqliteCall, is_flush: bool) -> CommitStep {
    let (after_kill, after_power_loss, can_be_undone) = (Kept::Perhaps, Kept::Perhaps, true);
    CommitStep { name, at, is_flush, after_kill, after_power_loss, can_be_undone }
}

const PREPARE: usize = 0;
const FLUSH: usize = 1;
const PUBLISH: usize = 2;

const STEPS: &[CommitStep] = &[
    undoable("prepare", SqliteCall::ControlSync, false),
    undoable("flush", SqliteCall::Sync, true),
    CommitStep {
        name: "publish",
        at: SqliteCall::CommitPhaseTwo,
        is_flush: false,
        after_kill: Kept::Always,
        after_power_loss: Kept::Always,
        can_be_undone: false,
    },
];

/// How dash says that both files hold commits that the other lacks, or that `app.db` is not what
/// had that name, which nobody but the user can decide.
const CHOICES: [&str; 2] =
    ["choose one with `sqlite-dash recover", "was made by another program while it had no name"];

/// Two copies, one flush, names exchanged.
#[derive(Debug, Clone, Copy, Default)]
pub struct Simulation;

impl Subject for Simulation {
    fn engine(&self) -> &'static str {
        "shadow"
    }

    fn variants(&self) -> &'static [Variant] {
        VARIANTS
    }

    fn claims(&self) -> Claims {
        Claims {
            wal_mode: None,
            several_databases: true,
            stock_neighbours: true,
            without_journal: true,
        }
    }

    fn sessions(&self) -> Option<&dyn Sessions> {
        Some(self)
    }

    fn sqlite_files(&self) -> &'static dyn SqliteFiles {
        &Rollback
    }

    fn prepare(&self, machine: &Machine, setup: &Setup) {
        machine.set_exchange_supported(!["links", "renames"].contains(&setup.variant));
        machine.set_links_supported(setup.variant != "renames");
    }

    fn beside(&self) -> &'static [&'static str] {
        &["-shadow"]
    }

    fn leaves_a_choice(&self, error: &str) -> bool {
        CHOICES.iter().any(|choice| error.contains(choice))
    }

    fn stock_refuses(&self, machine: &Machine, path: &str) -> Option<&'static str> {
        // A directory in the journal's place: "disk I/O error", nothing touched.
        machine.exists(format!("{path}-journal")).then_some("the name fence stands")
    }

    fn check_at_rest(&self, machine: &Machine, path: &str, held: &[u64]) -> Result<(), String> {
        for name in ["-dash", "-journal", "-shadow-tmp"] {
            if machine.exists(format!("{path}{name}")) {
                return Err(format!("{path}{name} is left behind"));
            }
        }
        let report = look(machine, path)?;
        if let Opening::Refuse(_, message) = &report.opening {
            return Err(message.clone());
        }
        let is_held =
            |name: &str| machine.open_stock(name).is_ok_and(|file| held.contains(&file.inode()));
        let held_shadow = is_held(&format!("{path}-shadow"));
        if held_shadow && !is_held(path) {
            return Err(format!("a stock process that has had {path} open has {path}-shadow now"));
        }
        let Some(header) = report.database.as_ref().and_then(|seen| seen.header) else {
            return Ok(());
        };
        if header.is_demoted || header.is_fenced {
            return Err(format!("{path} is marked at rest"));
        }
        let protected = header.is_protected;
        if protected != (held_shadow && header.is_sqlite) {
            return Err(format!(
                "{path} is protected: {protected}; its other copy is open: {held_shadow}"
            ));
        }
        Ok(())
    }
}

impl Sessions for Simulation {
    fn commit_steps(&self, _: &Setup) -> &'static [CommitStep] {
        STEPS
    }

    fn open(&self, process: &Simulated, path: &str, setup: &Setup) -> Outcome<Box<dyn Session>> {
        let protocol = match setup.variant {
            "paper" => Protocol::Paper,
            "exclusive" => Protocol::Exclusive,
            _ => Protocol::Single,
        };
        let tuning = match setup.sizes {
            Sizes::Usual => Tuning { spill: 4 * setup.page, ..Tuning::default() },
            Sizes::Tiny => Tuning::tiny(),
            Sizes::Wide => Tuning { intent_all: 1 << 20, ..Tuning::tiny() },
        };
        let options = OpenOptions { protocol, tuning, ..OpenOptions::default() };
        let mut connection =
            Connection::open(process, Path::new(path), &options).map_err(trouble)?;
        connection.set_secure_delete(setup.secure);
        Ok(Box::new(Writer(connection)))
    }

    fn open_for_reading(&self, process: &Simulated, path: &str) -> Outcome<Box<dyn Session>> {
        let connection = ReadOnly::open(process, Path::new(path), false).map_err(trouble)?;
        Ok(Box::new(Reader(connection)))
    }

    fn while_closed(&self, process: &Simulated, path: &str, act: &mut dyn FnMut()) -> Outcome<()> {
        while_closed(process, Path::new(path), act).map_err(trouble)
    }

    fn check_committed(&self, machine: &Machine, path: &str) -> Result<(), String> {
        let report = look(machine, path)?;
        let (Some(current), Some(shadow)) = (&report.database, &report.shadow) else {
            return Err("a copy is missing after a commit".into());
        };
        let block = current.commit.as_ref().map_err(|error| format!("{path}: {error:?}"))?;
        if !current.is_bound() || !current.as_committed || block.state != State::Whole {
            return Err(format!("{path} is not as its last commit left it: {:?}", block.state));
        }
        if !shadow.is_bound() && shadow.len > 8192 {
            return Err(format!("{path}-shadow has no block of its own"));
        }
        if current.header.is_some_and(|header| header.is_protected) {
            return Err(format!("{path} is still protected"));
        }
        let unmarked =
            |header: &HeaderSeen| header.is_sqlite && !header.is_demoted && !header.is_fenced;
        if shadow.header.as_ref().is_some_and(unmarked) {
            return Err(format!("a stock descriptor may write {path}-shadow"));
        }
        let page = machine.file_view(path).unwrap_or_default();
        let room = first_page::room(&page).is_some_and(|room| block.unit_count as usize <= room);
        let place = if room { Place::FirstPage } else { Place::Tail };
        if block.place != place && block.super_journal.is_empty() {
            return Err(format!("{path}: its block is in {:?}, not in {place:?}", block.place));
        }
        if block.units.len() != block.unit_count as usize {
            return Ok(()); // a list outside of the block
        }
        let listed =
            |at: u64| block.units.iter().any(|unit| !unit.carried && unit.range().contains(&at));
        let (a, b) = (machine.file_view(path), machine.file_view(format!("{path}-shadow")));
        let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
        for at in (0..block.size).step_by(512) {
            let place = |bytes: &[u8]| {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                bytes.get(at..at + 512).map(<[u8]>::to_vec)
            };
            if !listed(at) && place(&a) != place(&b) {
                return Err(format!("the copies differ at {at}, which no page list names"));
            }
        }
        Ok(())
    }

    fn check_abandoned(&self, machine: &Machine, path: &str, held: &[u64]) -> Result<(), String> {
        let named = machine.open_stock(path).map(|file| file.inode()).ok();
        let header = look(machine, path)?.database.and_then(|seen| seen.header);
        let refused = machine.exists(format!("{path}-journal"))
            || header.is_none_or(|header| header.is_protected);
        if !refused && held.iter().any(|held| Some(*held) != named) {
            return Err(format!(
                "a stock process has a former copy of {path} open, and another one may write {path}"
            ));
        }
        Ok(())
    }
}

fn look(machine: &Machine, path: &str) -> Result<Report, String> {
    inspect(&machine.process(), Path::new(path)).map_err(|error| error.to_string())
}

fn trouble(error: Error) -> Trouble {
    match error {
        Error::Busy | Error::BusySnapshot => Trouble::Busy,
        error => Trouble::Failed(error.to_string()),
    }
}

/// A connection for writing.
struct Writer(Connection<Simulated>);

/// A connection for reading.
struct Reader(ReadOnly<Simulated>);

impl Session for Writer {
    fn begin_read(&mut self) -> Outcome<()> {
        self.0.lock(LockLevel::Shared).map_err(trouble)
    }

    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        self.0.read(buffer, offset).map_err(trouble)
    }

    fn reserve(&mut self) -> Outcome<()> {
        self.0.lock(LockLevel::Reserved).map_err(trouble)
    }

    fn exclude(&mut self) -> Outcome<()> {
        self.0.lock(LockLevel::Exclusive).map_err(trouble)
    }

    fn end_write(&mut self) -> Outcome<()> {
        self.0.unlock(LockLevel::Shared).map_err(trouble)
    }

    fn write(&mut self, page: &[u8], offset: u64) -> Outcome<()> {
        self.0.write(page, offset).map_err(trouble)
    }

    fn truncate(&mut self, size: u64) -> Outcome<()> {
        self.0.truncate(size).map_err(trouble)
    }

    fn commit_steps(&self) -> &'static [CommitStep] {
        STEPS
    }

    fn commit_step(&mut self, step: usize, super_journal: Option<&str>) -> Outcome<()> {
        match step {
            PREPARE => self.0.prepare(super_journal.map(OsStr::new)),
            FLUSH => self.0.flush(),
            PUBLISH => self.0.publish(),
            _ => return Err(Trouble::Failed(format!("a commit has no step {step}"))),
        }
        .map_err(trouble)
    }

    fn end(&mut self) -> Outcome<()> {
        self.0.unlock(LockLevel::None).map_err(trouble)
    }

    fn idle(&mut self) -> Outcome<()> {
        self.0.settle(1).map(drop).map_err(trouble)
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.0.close().map_err(trouble)
    }
}

impl Session for Reader {
    fn begin_read(&mut self) -> Outcome<()> {
        self.0.lock(LockLevel::Shared).map_err(trouble)
    }

    fn size(&self) -> u64 {
        self.0.size()
    }

    fn read(&mut self, buffer: &mut [u8], offset: u64) -> Outcome<usize> {
        self.0.read(buffer, offset).map_err(trouble)
    }

    fn reserve(&mut self) -> Outcome<()> {
        self.0.lock(LockLevel::Reserved).map_err(trouble)
    }

    fn exclude(&mut self) -> Outcome<()> {
        forbidden()
    }

    fn end_write(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn write(&mut self, _: &[u8], _: u64) -> Outcome<()> {
        forbidden()
    }

    fn truncate(&mut self, _: u64) -> Outcome<()> {
        forbidden()
    }

    fn commit_steps(&self) -> &'static [CommitStep] {
        &[]
    }

    fn commit_step(&mut self, _: usize, _: Option<&str>) -> Outcome<()> {
        forbidden()
    }

    fn end(&mut self) -> Outcome<()> {
        self.0.unlock(LockLevel::None).map_err(trouble)
    }

    fn idle(&mut self) -> Outcome<()> {
        Ok(())
    }

    fn close(self: Box<Self>) -> Outcome<()> {
        self.0.close().map_err(trouble)
    }
}

fn forbidden() -> Outcome<()> {
    Err(Trouble::Failed("opened for reading only".into()))
}

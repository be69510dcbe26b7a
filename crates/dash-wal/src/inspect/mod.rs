//! Looking at a database's files without touching them: what each is, who has it open, and what
//! opening it would do. Nothing is written, locked, recovered or flushed.
//!
//! What is said of a database that somebody has open is a moment's view.

mod held;
mod others;
mod report;

use crate::annotation::carried_in;
use crate::context::Generation;
use crate::frames::{Prefix, WalHeader, walk};
use crate::index::FoundIndex;
use crate::logged::{Frames, Logged};
use crate::names::Names;
use crate::recovery::anew::survivor;
use crate::recovery::look::{Chain, Log, Look};
use crate::recovery::orphaned::orphaned;
use crate::recovery::rows::{Boot, Situation, decide, explain};
use crate::shared::coordination::{Beside, Left, left_in};
use dash_engine::coordination::read_coordination;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::fence::{self, Found};
use dash_engine::header::Header;
use dash_engine::io::read_header;
use dash_engine::open::{has_one_name, open_if_there};
use dash_log::file::LogFile;
use dash_log::head::State;
use dash_log::scan::Condition;
use dash_log::session::Place;
use dash_storage::{File, OpenMode, Storage};
use held::locks_in;
use others::Standing;
pub use report::*;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

/// Looks at a database and everything beside it.
///
/// # Errors
///
/// Those of the file system. What is wrong with the log is part of the report.
pub fn inspect<S: Storage>(storage: &S, path: &Path) -> Result<Report> {
    let (folder, mut names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let open = |name| open_if_there::<S>(&directory, name, OpenMode::Read);
    let (db, wal, shm) = (open(&names.db)?, open(&names.wal)?, open(&names.shm)?);
    let db = db.map(Arc::new);
    let coordination = read_coordination::<S>(&directory, names.coordination_file())?;
    let lockable = [
        (LockedFile::Database, db.as_deref()),
        (LockedFile::Index, shm.as_ref()),
        (LockedFile::Coordination, coordination.as_ref()),
    ];
    let locks = locks_in(lockable, names.shown())?;
    let open = locks.iter().any(|lock| lock.place == LockedPlace::Alive);
    let left = coordination.as_ref().map(|file| left_in(file, names.shown())).transpose()?;
    let (beside, of) = left.as_ref().map_or_else(Default::default, |it| (it.beside, it.files[0]));
    let in_memory = left.as_ref().and_then(|left| left.in_memory_of).map(in_memory_seen);
    let stock = left.as_ref().filter(|left| left.is_ours && open).map(|left| left.stock);
    let shared = others::reader(&locks).filter(|_| !open);
    let [database, pages] = [db.as_deref(), wal.as_ref()].map(|file| file.map(File::id));
    let standing = Standing { names: &names, database, index: shm.as_ref(), wal: pages };
    let beside_others = standing.refusal(coordination.as_ref().zip(left.as_ref()), open, shared)?;
    let coordination =
        coordination.as_ref().zip(left).map(|(file, left)| coordination_seen(file, &left));
    let same_cache = coordination.is_some_and(|seen| seen.is_ours && seen.same_cache);
    let boot = Boot::of(same_cache, in_memory.is_some());
    let directory = Arc::new(directory);
    let mut place = Place::beside(&directory, (*names).clone(), db.as_ref());
    let refused = place.follow(storage)?;
    names.set_log(&place.names);
    let (db_file, wal_file) = (db.as_deref(), wal.as_ref());
    let found: Files<'_, S> = Files {
        names: &names,
        place: &place,
        refused,
        db: db_file,
        wal: wal_file,
        beside,
        index: FoundIndex::of_users::<S>(&directory, &names, of).filter(|_| same_cache),
        reader: shared,
    };
    let stands = fence::find(&*directory, &names.fence)?;
    let database = db.as_deref().map(|file| database_seen(file, names.shown())).transpose()?;
    let is_empty = database.as_ref().is_none_or(|database| database.len == 0);
    let orphaned = || orphaned::<S>(&directory, &names, db.is_none());
    let orphaned = || if is_empty { orphaned() } else { Ok(None) };
    let (log, relation, decided) = found.log(boot, stands == Found::Fence, orphaned)?;
    let whose = open.then_some(in_memory);
    let mut opening = opening(database.as_ref(), whose, log.is_some(), decided);
    if let Some(refused) = beside_others {
        opening = Opening::Refuse(Refusal::Others, refused.to_string());
    }
    Ok(Report {
        database,
        wal: wal.as_ref().map(|file| wal_seen(file, names.shown_wal())).transpose()?,
        index: shm.map(|file| len_of(&file, names.shown())).transpose()?,
        log,
        elsewhere: place.sign.as_ref().map(|sign| sign.path.clone()),
        relation,
        fence: stands == Found::Fence,
        journal: stands == Found::Journal,
        coordination,
        in_memory,
        stock,
        locks,
        open,
        opening,
        names,
    })
}

/// The files that decide.
struct Files<'a, S: Storage> {
    names: &'a Names,
    place: &'a Place<S>,
    /// Why what a sign speaks of is not used.
    refused: Option<Strayed>,
    db: Option<&'a S::File>,
    wal: Option<&'a S::File>,
    /// See [`Look::beside`].
    beside: Beside,
    /// See [`Look::index`].
    index: Option<FoundIndex>,
    /// See [`others::reader`].
    reader: Option<i32>,
}

type LogFound = (Option<std::result::Result<LogSeen, String>>, Option<Relation>, Decided);

/// What is to be done, and its story; or why nothing is.
type Decided = std::result::Result<(Action, &'static str), (Refusal, String)>;

impl<'a, S: Storage> Files<'a, S> {
    fn look(&self, database: &'a S::File) -> Look<'a, S> {
        let Self { names, beside, index, .. } = *self;
        Look { names, database, beside, index }
    }

    /// Why no file is opened that has other names.
    fn linked(&self, log: Option<&LogFile<S::File>>) -> Result<Option<String>> {
        let log = log.map(LogFile::file);
        for (file, name) in [(self.wal, self.names.shown_wal()), (log, self.names.shown_log())] {
            match file.map_or(Ok(()), |file| has_one_name(file, name)) {
                Err(Error::CantOpen(text)) => return Ok(Some(text)),
                other => other?,
            }
        }
        Ok(None)
    }

    /// The log, how `-wal` stands to it, and what is to be done, by the table.
    /// `orphaned`: why a database without a byte is not begun anew.
    fn log(
        &self,
        boot: Boot,
        fence: bool,
        orphaned: impl FnOnce() -> Result<Option<Error>>,
    ) -> Result<LogFound> {
        let (log, relation, decided) = self.log_beside(boot, fence)?;
        let refusal = if decided.is_ok() { orphaned()? } else { None };
        let Some(refusal) = refusal.map(|refusal| refusal.to_string()) else {
            return Ok((log, relation, decided));
        };
        let log = if self.db.is_none() { Some(Err(refusal.clone())) } else { log };
        Ok((log, relation, Err((Refusal::DatabaseMissing, refusal))))
    }

    fn log_beside(&self, boot: Boot, fence: bool) -> Result<LogFound> {
        let refused = |kind, text: String| Ok((Some(Err(text.clone())), None, Err((kind, text))));
        let opened =
            match self.refused.map_or_else(|| self.place.open_to_read(), |it| Ok(Err(it)))? {
                Ok(opened) => opened,
                Err(strayed) => {
                    let text = self.place.refusal(strayed).to_string();
                    return refused(Refusal::Strayed(strayed), text);
                }
            };
        if let Some(text) = self.linked(opened.as_ref())? {
            return refused(Refusal::Linked, text);
        }
        let Some(file) = opened else {
            if let Some(database) = self.db {
                let look = self.look(database);
                let action = decide(look.without_log(fence, self.wal, boot)?);
                let refusal = match action {
                    Action::RefuseLost => Some((Refusal::LogMissing, look.missing_log())),
                    other => {
                        look.refusal(other, None).map(|why| (kind_of(other, None, &look), why))
                    }
                };
                if let Some((kind, why)) = refusal {
                    return Ok((None, None, Err((kind, why.to_string()))));
                }
            }
            return Ok((
                None,
                None,
                Ok((Action::Leave, "there is no log, so -wal holds all there is")),
            ));
        };
        let Some(database) = self.db else {
            return Ok((None, None, Ok((Action::Leave, "the log holds nothing"))));
        };
        let len = len_of(file.file(), self.names.shown_log())?;
        let look = self.look(database);
        let log = match look.log(file) {
            Ok(log) => log,
            Err(Error::CantOpen(text)) => return refused(Refusal::Newer, text),
            Err(Error::Corrupt(text)) => return refused(Refusal::Damaged, text),
            Err(other) => return Err(other),
        };
        let whose = look.whose(&log)?;
        let found = look.situation(&log, fence, self.wal, boot).and_then(|situation| {
            Ok((situation, self.decided(&look, &log, situation)?, log_seen(&log, len, whose)?))
        });
        let (situation, decided, seen) = match found.map_err(|error| look.named(error)) {
            // Of what the records hold.
            Err(Error::Corrupt(text)) => return refused(Refusal::Damaged, text),
            found => found?,
        };
        Ok((Some(Ok(seen)), log.generation().map(|_| situation.wal), decided))
    }

    /// What is to be done, by the table, or why nothing is.
    fn decided(
        &self,
        look: &Look<'_, S>,
        log: &Log<S::File>,
        situation: Situation,
    ) -> Result<Decided> {
        let explained = explain(situation);
        let is_gone = self.wal.is_none() || explained.0 == Action::RefuseAbsent;
        if let Some(process) = self.reader.filter(|_| is_gone && log.chain.is_some()) {
            return Ok(Err((Refusal::Others, survivor(self.names, process).to_string())));
        }
        if let Some(why) = look.refusal(explained.0, log.chain.as_ref()) {
            return Ok(Err((kind_of(explained.0, log.chain.as_ref(), look), why.to_string())));
        }
        Ok(match explained {
            done @ (Action::Replay, _) => {
                look.check_images(log)?;
                match look.needs_statements(log, self.wal)? {
                    Some((true, text)) => Err((Refusal::Stranger, text)),
                    Some((false, text)) => Err((Refusal::Statements, text)),
                    None => Ok(done),
                }
            }
            done => Ok(done),
        })
    }
}

/// Of what kind the refusal of a row of the table is.
fn kind_of<S: Storage>(action: Action, chain: Option<&Chain>, look: &Look<'_, S>) -> Refusal {
    let is_cut = || chain.is_some_and(|chain| !chain.carries && look.lacks_before(chain));
    match action {
        Action::RefuseAbsent if !is_cut() => Refusal::WalRemoved,
        Action::RefuseLost => Refusal::LogWiped,
        Action::RefuseAnother => Refusal::Another,
        _ => Refusal::WalCut,
    }
}

/// `whose`: somebody has it open, with `-wal` in that memory.
fn opening(
    database: Option<&DatabaseSeen>,
    whose: Option<Option<InMemorySeen>>,
    has_log: bool,
    decided: Decided,
) -> Opening {
    if let Some(memory) = whose {
        return memory.map_or(Opening::Join, Opening::Held);
    }
    if let Some(database) = database.filter(|database| database.links > 1) {
        return Opening::HardLinks(database.links);
    }
    let is_wal = database.and_then(|found| found.header).is_some_and(|header| header.is_wal);
    match decided {
        Err((kind, text)) => Opening::Refuse(kind, text),
        Ok(_) if database.is_none() => Opening::Create,
        Ok((Action::Leave, _)) if !is_wal && !has_log => Opening::OtherMode,
        Ok((action, story)) => Opening::Row(action, story),
    }
}

fn database_seen<F: File>(file: &F, name: &str) -> Result<DatabaseSeen> {
    let metadata = file.metadata().during(Operation::Stat, name)?;
    let header = read_header(file, name)?;
    let seen = |header: Header| HeaderSeen {
        is_sqlite: header.is_sqlite(),
        is_wal: header.is_sqlite() && header.is_wal(),
        page_size: header.page_size(),
        counter: header.change_counter(),
    };
    let (id, len, links) = (metadata.id, metadata.len, metadata.links);
    Ok(DatabaseSeen { id, len, links, header: header.map(seen) })
}

fn wal_seen<F: File>(file: &F, name: &str) -> Result<WalSeen> {
    let len = len_of(file, name)?;
    let Some(header) = WalHeader::read(file, name)? else {
        return Ok(WalSeen { len, header: None });
    };
    let mut commits = 0;
    let prefix = walk(file, &header, Prefix::before_all(&header), name, |_, frame, _| {
        commits += u32::from(frame.is_commit());
        ControlFlow::Continue(())
    })?;
    let header = WalHeaderSeen {
        page_size: header.page_size,
        sequence: header.sequence,
        salts: header.salts,
        frames: prefix.last,
        committed: prefix.committed,
        commits,
        pages: prefix.pages,
    };
    Ok(WalSeen { len, header: Some(header) })
}

fn log_seen<F: File>(log: &Log<F>, len: u64, whose: Whose) -> Result<LogSeen> {
    let (scan, head) = (&log.scan, &log.scan.head);
    let (mut frames, mut commits, mut carried) = (0, 0, 0);
    for record in scan.records() {
        let record = record?;
        frames += record.count;
        let commits_of = Frames::of(&record)?.1.filter(Logged::is_commit).count();
        let carried_here = carried_in(&record)?.len();
        commits += u32::try_from(commits_of + carried_here).unwrap_or(u32::MAX);
        carried += u32::try_from(carried_here).unwrap_or(u32::MAX);
    }
    let of = |generation: &Generation| GenerationSeen {
        number: generation.number,
        salts: generation.salts(),
        first: generation.first,
    };
    let chain = match (&log.chain, scan.chain.first(), scan.chain.last()) {
        (Some(chain), Some(first), Some(last)) => Some(ChainSeen {
            sequences: (first.sequence, last.sequence),
            place: (first.position, last.position + u64::from(last.padded)),
            bytes: scan.chain.iter().map(|place| u64::from(place.padded)).sum(),
            generation: of(&chain.generation),
            first_frame: chain.first_frame,
            frames,
            commits,
            carried,
        }),
        _ => None,
    };
    let is = match (scan.condition, head.state) {
        (Condition::Whole, State::Clean) => HeadIs::Clean,
        (Condition::Whole, State::InUse) => HeadIs::InUse,
        (Condition::Absent, _) => HeadIs::Absent,
        (Condition::Damaged, _) => HeadIs::Damaged,
    };
    let voids = log.generation().filter(|_| chain.is_none()).map(|generation| of(&generation));
    Ok(LogSeen {
        len,
        head: is,
        id: head.id,
        block: head.block,
        ring: head.ring,
        void: head.sequence,
        greatest: scan.greatest,
        owner: head.owner,
        whose,
        chain,
        voids,
    })
}

fn coordination_seen<F: File>(file: &F, left: &Left) -> CoordinationSeen {
    let same_cache = left.cache_life.is_some() && left.cache_life == file.cache_life();
    CoordinationSeen { is_ours: left.is_ours, same_cache }
}

fn in_memory_seen(process: u64) -> InMemorySeen {
    InMemorySeen { process: u32::try_from(process).ok().filter(|process| *process != 0) }
}

fn len_of<F: File>(file: &F, name: &str) -> Result<u64> {
    Ok(file.metadata().during(Operation::Stat, name)?.len)
}

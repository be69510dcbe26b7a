//! Opening: the first opener recovers, a later one joins. All under the lock OPEN.

use crate::connection::checkpoint::Checkpoint;
use crate::connection::files::Files;
use crate::connection::index::WalIndex;
use crate::connection::same_files::replaced_database;
use crate::connection::state::{Connection, Counters, Settings};
use crate::connection::transaction::Transaction;
use crate::connection::upgrade::reads::Reads;
use crate::connection::wal::Wal;
use crate::index::IndexHeader;
use crate::mounted;
use crate::mutation::{Mutation, broken};
use crate::names::Names;
use crate::options::{OpenOptions, Stock};
use crate::process::{Frames, Process};
use crate::recovery::Choice;
use crate::recovery::orphaned::orphaned;
use crate::rights::explained;
use crate::shared::coordination::{Coordination, Word};
use crate::shared::locks::{ALIVE, OPEN};
use dash_engine::coordination::{OPEN_PATIENCE, Was, check_kept, check_owner, open_coordination};
use dash_engine::database::DatabaseFile;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::memory::{OPENING, headroom};
use dash_engine::open::{ATTEMPTS, replaced};
use dash_log::session::{Counts, Place, Session, Strayed, place_log};
use dash_storage::{Directory, File, FileKind, LockKind, Metadata, OpenMode, Storage};
use std::ffi::OsString;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

impl<S: Storage> Connection<S> {
    /// Opens a database for reading and writing; recovers it first if nobody else has it open.
    ///
    /// # Errors
    ///
    /// `Busy` while a stock program writes it, or beside a file that keeps this engine out;
    /// `CantOpen` with what to do.
    pub fn open(
        storage: &S,
        path: &Path,
        options: &OpenOptions,
        process: &Arc<Process<S>>,
    ) -> Result<Self> {
        Self::open_choosing(storage, path, options, process, Choice::Ask)
    }

    /// The same, with what a person has decided.
    pub(crate) fn open_choosing(
        storage: &S,
        path: &Path,
        options: &OpenOptions,
        process: &Arc<Process<S>>,
        choice: Choice,
    ) -> Result<Self> {
        let (folder, names) = Names::split(path)?;
        for _ in 0..ATTEMPTS {
            let opened = Self::open_named(storage, folder, names.clone(), options, process, choice);
            let opened = opened.map_err(|error| explained(error, storage, folder, &names))?;
            if let Some(connection) = opened {
                return Ok(connection);
            }
        }
        Err(replaced(names.shown_coordination()))
    }

    /// `None`: there is another coordination file.
    fn open_named(
        storage: &S,
        directory_path: &Path,
        names: Names,
        options: &OpenOptions,
        process: &Arc<Process<S>>,
        choice: Choice,
    ) -> Result<Option<Self>> {
        headroom(OPENING)?;
        let directory = storage.open_directory(directory_path);
        let directory = Arc::new(directory.during(Operation::Open, directory_path.display())?);
        let db = names.shown().to_owned();
        let found = directory.metadata(&names.db).during(Operation::Stat, &db)?;
        may_be_opened::<S>(found.as_ref(), (options, choice), &directory, &names)?;
        let which = names.coordination_file();
        let (file, was) =
            open_coordination(storage, &*directory, which, found.as_ref(), OPEN_PATIENCE)?;
        let opened = database_of(storage, &directory, &names, file, options);
        if opened.is_err() && was == Was::New {
            // Of no use to anybody, and its maker's alone.
            drop(directory.unlink(&names.coordination));
        }
        let (coordination, database) = opened?;
        let database = Arc::new(database);
        let files = Files {
            storage: storage.clone(),
            directory,
            path: directory_path.to_owned(),
            database: DatabaseFile::new(database, &*db),
            names,
            may_be_empty: true,
            said_moved: false,
            shared: coordination,
        };
        let mut connection = Self {
            session: session_of(&files, options, process),
            files,
            wal: Wal::default(),
            index: WalIndex::default(),
            transaction: Transaction::default(),
            reads: Reads::default(),
            view: None,
            conflict: None,
            checkpoint: Checkpoint::default(),
            process: Arc::clone(process),
            settings: Settings {
                durability: options.durability,
                barrier: options.barrier,
                durable_reads: options.durable_reads,
                rest: options.rest,
                tuning: options.tuning,
                executor: options.executor.clone(),
            },
            counters: Counters::default(),
        };
        Ok(connection.enter(was, choice, options)?.then_some(connection))
    }

    /// Recovers, or joins the others; OPEN is held, and given up. `false`: there is another
    /// coordination file.
    fn enter(&mut self, was: Was, choice: Choice, options: &OpenOptions) -> Result<bool> {
        let log = options.log.as_deref();
        if let Some(stock @ (Stock::Write | Stock::Checkpoint)) = options.stock
            && options.wal_in_memory == Some(true)
        {
            return Err(Error::CantOpen(format!(
                "dash_stock={} isn't available with dash_wal=memory: what is in memory no stock program sees",
                stock.name()
            )));
        }
        let name = Arc::clone(self.files.names.shown_coordination());
        let file = &self.files.shared.file;
        let alone = file.try_lock(ALIVE, LockKind::Exclusive).during(Operation::Lock, &name)?;
        if alone {
            let (which, database) =
                (self.files.names.coordination_file(), self.files.database.file());
            match was {
                // Its users are gone, and what a lock alone has said counts no more.
                Was::Used => return Ok(false),
                Was::Kept => check_kept(which, file, &**database)?,
                Was::New | Was::Renewed => {}
            }
            drop(file.copy_access(database));
            let recovered = self
                .files
                .refuse_beside(&options.kept_out_by)
                .and_then(|()| self.recover_first(choice))
                .and_then(|()| place_log(self, log)); // WAL-25, WAL-27
            self.files.names.set_log(&self.session.place.names);
            if recovered.is_ok() && options.wal_in_memory == Some(true) {
                self.keep_in_memory();
            }
            // What can't be opened is so before anything is written.
            let is_marked = matches!(
                recovered,
                Err(Error::Io { operation, .. }) if operation != Operation::Open
            );
            if recovered.is_err() && was == Was::New && !is_marked {
                drop(self.files.directory.unlink(&self.files.names.coordination));
            }
            recovered?;
            self.choose_stock(options.stock);
        } else if choice == Choice::Ask && was == Was::Used {
            self.files.join()?;
            self.join_memory(options.wal_in_memory)?;
            self.join_stock(options.stock)?;
            self.session.join_log(log)?; // WAL-29
            self.files.names.set_log(&self.session.place.names);
        } else {
            return Err(Error::Busy);
        }
        let file = &self.files.shared.file;
        if !file.try_lock(ALIVE, LockKind::Shared).during(Operation::Lock, &name)? {
            return Err(Error::Busy);
        }
        self.files.shared.register()?;
        self.files.shared.file.unlock(OPEN).during(Operation::Lock, &name)?;
        Ok(true)
    }

    /// Finds the log: where a sign says, if there is one. What strayed is refused, unless somebody
    /// has decided about it (WAL-26).
    fn find_log(&mut self, choice: Choice) -> Result<()> {
        let (place, storage) = (&mut self.session.place, &self.files.storage);
        match place.follow(storage)? {
            None if place.is_void() => place.forget(storage)?,
            None => {}
            Some(_) if choice == Choice::Discard => place.forget(storage)?,
            Some(Strayed::Copied) if choice == Choice::Keep => place.keep_copied(storage)?,
            Some(strayed) => return Err(place.refusal(strayed)),
        }
        self.files.names.set_log(&place.names);
        Ok(())
    }

    /// Says what the connections of all processes share.
    fn recover_first(&mut self, choice: Choice) -> Result<()> {
        let life = self.files.shared.file.cache_life();
        let left = self.files.shared.get(Word::CacheLife);
        let same_life = self.files.shared.is_ours() && left != 0 && Some(left) == life;
        let recovered =
            self.find_log(choice).and_then(|()| self.recovery().recover(same_life, choice));
        if matches!(recovered, Err(Error::Io { .. })) && !broken(Mutation::FailedRecoveryForgotten)
        {
            // Where a flush failed, what was written is in the cache, clean, and on no device: the
            // next one to come has to know whose cache that is (WAL-11).
            self.files.shared.claim_cache(life);
        }
        let recovered = recovered?;
        self.files.shared.reset();
        let id = self.files.database.file().id();
        let own = self.files.shared.file.id().inode;
        for (word, value) in [(Word::Device, id.device), (Word::Inode, id.inode), (Word::Own, own)]
        {
            self.files.shared.set(word, value);
        }
        for (word, value) in recovered.words() {
            self.files.shared.set(word, value);
        }
        self.files.shared.validate(life);
        Ok(())
    }

    /// Stock SQLite may have written since the database was opened, as nobody of dash had the
    /// wal-index, whose header is `visible`. What is said of `-wal` is looked up again. Nobody else
    /// writes it meanwhile. Whether the wal-index is to be made anew.
    pub(crate) fn look_again(&mut self, visible: Option<IndexHeader>) -> Result<bool> {
        let c = &self.files.shared;
        let known = (c.get(Word::Salts), c.is(Word::Session));
        let recovered = match known {
            (_, true) => {
                let index = self.files.index_found();
                let mut recovery = self.recovery();
                recovery.index = index;
                let recovered = recovery.recover_alone(true, Choice::Ask, visible);
                let is_refusal = |error: &Error| !matches!(error, Error::Busy);
                self.wal.is_refused = recovered.as_ref().err().is_some_and(is_refusal);
                recovered?
            }
            (salts, false) => {
                let found = self.recovery().describe_as_found()?;
                if found.salts == salts {
                    return Ok(false);
                }
                found
            }
        };
        let sequence = self.files.shared.get(Word::Sequence);
        for (word, value) in recovered.words() {
            self.files.shared.set(word, value);
        }
        self.files.shared.word(Word::Sequence).fetch_max(sequence, SeqCst);
        let ended =
            [Word::Session, Word::Window, Word::StockCommits, Word::HeaderNew, Word::LogWritten];
        for word in ended {
            self.files.shared.set(word, 0);
        }
        self.files.expect_strangers();
        Ok(recovered.is_index_behind)
    }
}

impl<S: Storage> Files<S> {
    /// See [`OpenOptions::kept_out_by`] (WAL-22). Nobody can begin in another mode meanwhile, and
    /// what that one's last session says in the coordination file is still there.
    fn refuse_beside(&self, others: &[OsString]) -> Result<()> {
        for name in others {
            let found = self.directory.metadata(name);
            if found.during(Operation::Stat, name.to_string_lossy())?.is_some() {
                return Err(Error::Busy);
            }
        }
        Ok(())
    }

    fn join(&mut self) -> Result<()> {
        if let Some(refusal) = self.shared.refusal(self.names.shown()) {
            return Err(refusal);
        }
        let (id, c) = (self.database.file().id(), &self.shared);
        match (c.get(Word::Device), c.get(Word::Inode)) == (id.device, id.inode) {
            true => Ok(()),
            false => Err(replaced_database(&self.names, &self.others())),
        }
    }
}

/// Opens the database, and maps the coordination file that is to belong to somebody who may write
/// it.
fn database_of<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    names: &Names,
    file: S::File,
    options: &OpenOptions,
) -> Result<(Coordination<S::File>, S::File)> {
    let mode = match options.create {
        true => OpenMode::Create { permissions: options.permissions },
        false => OpenMode::ReadWrite,
    };
    let database = directory.open(&names.db, mode).during(Operation::Open, names.shown())?;
    check_owner(storage, &file, &database, names.coordination_file())?;
    let mapped = Coordination::map(file);
    Ok((mapped.map_err(|error| error.about(names.shown_coordination()))?, database))
}

/// Refuses to begin a database anew whose commits are still in its `-wal` or its log.
///
/// # Errors
///
/// `CantOpen` with what to do; those of looking.
pub fn refuse_orphaned<S: Storage>(storage: &S, path: &Path) -> Result<()> {
    let (folder, names) = Names::split(path)?;
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    let found = directory.metadata(&names.db).during(Operation::Stat, names.shown())?;
    match found {
        Some(found) if found.len > 0 => Ok(()),
        found => orphaned::<S>(&directory, &names, found.is_none())?.map_or(Ok(()), Err),
    }
}

/// Refuses what can't be a database in this mode, by what lies under its name.
fn may_be_opened<S: Storage>(
    found: Option<&Metadata>,
    (options, choice): (&OpenOptions, Choice),
    directory: &S::Directory,
    names: &Names,
) -> Result<()> {
    let db = names.shown();
    match found {
        Some(found) if found.kind != FileKind::Regular => {
            return Err(Error::CantOpen(format!("{db} is not a regular file")));
        }
        Some(found) if found.links > 1 => {
            return Err(Error::CantOpen(format!(
                "{db} has {} hard links, and a log beside each of them would be another one: remove the other links",
                found.links
            )));
        }
        None if !options.create => return Err(Error::CantOpen(format!("{db} does not exist"))),
        Some(found) if found.len > 0 || choice == Choice::Discard => {}
        found => {
            if let Some(refusal) = orphaned::<S>(directory, names, found.is_none())? {
                return Err(refusal);
            }
        }
    }
    mounted::check::<S>(directory, names)
}

/// What a connection knows of the log before anybody has looked: it lies beside the database.
fn session_of<S: Storage>(
    files: &Files<S>,
    options: &OpenOptions,
    process: &Process<S>,
) -> Session<S, Frames> {
    let (names, database) = (&files.names, files.database.file());
    let wal = names.shown_wal();
    Session {
        storage: files.storage.clone(),
        path: files.path.clone(),
        place: Place::beside(&files.directory, (**names).clone(), Some(database)),
        leading: Arc::clone(&process.leading),
        words: files.shared.words(),
        counts: Counts::default(),
        ring: options.tuning.ring_min..=options.tuning.ring_max,
        makes_elsewhere: options.log.is_some(),
        otherwise: format!("commits become durable by a flush of {wal}, as in stock SQLite"),
        notice: None,
        unasked: None,
    }
}

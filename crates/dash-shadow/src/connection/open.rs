//! Opening: the first opener decides, by the recovery table, which file is current; a later one
//! joins what the coordination file says. All under the OPEN lock.

use crate::connection::state::{Connection, Pair};
use crate::mutation::{Mutation, broken};
use crate::names::exchange::{aside, finish_renames, look_up_db, open_db, other_links};
use crate::names::{Names, mounted};
use crate::options::OpenOptions;
use crate::recovery::first_opener::{First, Recovered};
use crate::refusal::was_replaced;
use crate::shared::coordination::Coordination;
use crate::shared::layout::Layout;
use crate::shared::life::{LIFE_PAUSE, LOOKS_AT_LIFE, hold_life, is_alone, refuse_others_memory};
use crate::shared::locks::{self, LockLevel};
use dash_engine::coordination::{
    CoordinationFile, Was, check_kept, check_owner, open_coordination,
};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::locks::{keep_stock_writers_out, share};
use dash_engine::memory::{OPENING, headroom};
use dash_engine::open::{
    ATTEMPTS, Opened, if_there, open_if_there, open_own, replaced, with_remedy,
};
use dash_storage::{Directory, File, FileKind, LockKind, Metadata, OpenMode, Storage};
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

impl<S: Storage> Connection<S> {
    /// Opens a database for reading and writing; recovers it first if nobody else has it open.
    pub fn open(storage: &S, path: &Path, options: &OpenOptions) -> Result<Self> {
        let (directory_path, _) = Names::split(path)?;
        let directory = storage
            .open_directory(directory_path)
            .during(Operation::Open, directory_path.display())?;
        Self::open_in(storage, Arc::new(directory), path, options)
    }

    /// The same, for a caller that has opened the directory that the last component of `path` is
    /// in.
    pub fn open_in(
        storage: &S,
        directory: Arc<S::Directory>,
        path: &Path,
        options: &OpenOptions,
    ) -> Result<Self> {
        let (folder, names) = Names::split(path)?;
        Self::open_named(storage, directory, (folder, names.clone()), options).map_err(|error| {
            let files = [&*names.shadow, &*names.coordination];
            with_remedy(error, storage, folder, (&names.db, &files))
        })
    }

    fn open_named(
        storage: &S,
        directory: Arc<S::Directory>,
        (directory_path, names): (&Path, Names),
        options: &OpenOptions,
    ) -> Result<Self> {
        headroom(OPENING)?;
        let db = names.shown().clone();
        let found = directory.metadata(&names.db).during(Operation::Stat, &db)?;
        match found {
            Some(found) if found.kind != FileKind::Regular => {
                return Err(Error::CantOpen(format!("{db} is not a regular file")));
            }
            Some(found) => {
                let others =
                    if found.links > 1 { other_links::<S>(&directory, &names)? } else { 0 };
                if others > 0 {
                    return Err(Error::CantOpen(format!(
                        "{db} has {} hard links; dash exchanges names, so each would keep another state: remove the other links",
                        others + 1
                    )));
                }
            }
            None if !options.create
                && directory.metadata(&names.shadow).during(Operation::Stat, &db)?.is_none()
                && aside::<S>(&directory, &names)?.is_none() =>
            {
                return Err(Error::CantOpen(format!("{db} does not exist")));
            }
            None => {}
        }
        mounted::check::<S>(&directory, &names)?;
        for _ in 0..ATTEMPTS {
            let taken = coordination_of(storage, &directory, &names, found, options.patience)?;
            let opened =
                Self::open_locked(storage, &directory, (directory_path, &names), taken, options);
            if let Some(connection) = opened? {
                return Ok(connection);
            }
        }
        Err(replaced(names.shown_coordination()))
    }

    /// `None`: there is another coordination file.
    fn open_locked(
        storage: &S,
        directory: &Arc<S::Directory>,
        (directory_path, names): (&Path, &Names),
        (coordination, was): (S::File, Was),
        options: &OpenOptions,
    ) -> Result<Option<Self>> {
        let (name, fresh) = (names.shown_coordination().clone(), was == Was::New);
        let mapped = Coordination::map(coordination, fresh);
        if mapped.is_err() && fresh {
            // Of no use to anybody, and its maker's alone. A process that waits for its OPEN lock
            // looks for the name again.
            drop(directory.unlink(&names.coordination));
        }
        let mut coordination = mapped.map_err(|error| error.about(&name))?;
        let first =
            First { storage, directory, directory_path, names, coordination: &coordination };
        let Some(entered) = first.enter(was, options)? else { return Ok(None) };
        let Entered { files, generation, found, exposed } = entered;
        if let Some(database) = files.iter().flatten().next() {
            check_owner(storage, coordination.file(), &**database, names.coordination_file())?;
        }
        let alive = coordination
            .file()
            .try_lock(locks::ALIVE, LockKind::Shared)
            .during(Operation::Lock, &name)?;
        if !alive {
            return Err(Error::Busy);
        }
        coordination.register(storage.pid_namespace())?;
        let pair = Pair {
            storage: storage.clone(),
            directory: Arc::clone(directory),
            directory_path: directory_path.to_owned(),
            names: names.clone(),
            coordination,
            files,
            generation,
        };
        let mut connection = Self::new(pair, options);
        if let Some(found) = found {
            connection.takes_over = !fresh;
            connection.put_aside = found.put_aside;
            connection.remember_found(found);
        }
        connection.exposed = exposed;
        // For its locks; what can't be found yet is looked for again at the first read.
        drop(connection.reload_if_pair_changed());
        if connection.debts.cut_off.is_some() {
            connection.lock(LockLevel::Exclusive)?;
            connection.unlock(LockLevel::None)?;
        }
        connection.pair.coordination.file().unlock(locks::OPEN).during(Operation::Lock, &name)?;
        Ok(Some(connection))
    }
}

/// Opens the coordination file, which is to belong to somebody who may write what `app.db` stands
/// for right now. `found`: what has that name.
pub(crate) fn coordination_of<S: Storage>(
    storage: &S,
    directory: &S::Directory,
    names: &Names,
    found: Option<Metadata>,
    patience: Duration,
) -> Result<(S::File, Was)> {
    let of_name = found.filter(|found| found.len > 0).map(|found| (names.db.as_os_str(), found));
    let mut db = match of_name {
        None => look_up_db::<S>(directory, names)?,
        found => found,
    };
    let which = names.coordination_file();
    loop {
        let named = db.map_or(which.named, |(name, _)| name);
        let (which, found) = (CoordinationFile { named, ..which }, db.map(|(_, db)| db));
        let opened = open_coordination(storage, directory, which, found.as_ref(), patience);
        if opened.is_ok() || named == names.db {
            return opened;
        }
        // An exchange of names has come to its end meanwhile.
        db = look_up_db::<S>(directory, names)?;
        if db.is_some_and(|(now, _)| now == named) {
            return opened;
        }
    }
}

/// What an opener has, once it has recovered the database or joined the others.
struct Entered<F: File> {
    /// The files of both slots.
    files: [Option<Arc<F>>; 2],
    /// Of this pair; one that no pair has, if a file is still missing.
    generation: u64,
    /// What it found, if it was alone.
    found: Option<Recovered<F>>,
    /// See [`Connection::is_exposed`].
    exposed: bool,
}

impl<S: Storage> First<'_, S> {
    /// Opens the files. Recovers the database, if nobody else has it open; joins the others, if
    /// somebody has. `None`: there is another coordination file.
    fn enter(&self, was: Was, options: &OpenOptions) -> Result<Option<Entered<S::File>>> {
        let (c, names, fresh) = (self.coordination, self.names, was == Was::New);
        // Before the inodes are looked at: a shadow made meanwhile is noticed by the difference.
        let generation = c.generation();
        let open = || {
            let mut looks = 0;
            loop {
                let opened = open_files::<S>(self.directory, names)?;
                // A process that is being killed loses its locks one by one.
                if opened.2 || was == Was::Used || looks == LOOKS_AT_LIFE {
                    return Ok(opened);
                }
                looks += 1;
                self.storage.sleep(LIFE_PAUSE);
            }
        };
        let opened = self.past_the_shadow(open(), options, open);
        if opened.is_err() && fresh {
            // As a process that may only read: nobody else can be using it, as long as its OPEN
            // lock is held.
            drop(self.directory.unlink(&names.coordination));
        }
        let (db, shadow, alone) = opened?;
        // LIFE alone would miss a connection whose two files were both made anew since it looked.
        let alone = alone
            && (c
                .file()
                .try_lock(locks::ALIVE, LockKind::Exclusive)
                .during(Operation::Lock, names.shown_coordination())?
                || broken(Mutation::LifeIgnored));
        if alone {
            let opened = db.as_ref().map(|(db, _)| db);
            let which = names.coordination_file();
            match (was, opened) {
                // Its users are gone, and what a lock alone has said counts no more.
                (Was::Used, _) => return Ok(None),
                (Was::Kept, Some(db)) => check_kept(which, c.file(), db)?,
                _ => {}
            }
            if let Some(db) = opened {
                // All who may use the database must be able to open it, whatever the umask here.
                drop(c.file().copy_access(db));
            }
            let mut found = self.lead([db, shadow], fresh, options)?;
            let files = std::mem::take(&mut found.files);
            let (generation, exposed) = (c.generation(), found.exposed);
            return Ok(Some(Entered { files, generation, found: Some(found), exposed }));
        }
        if was != Was::Used {
            return Err(was_replaced(names.shown()));
        }
        let [db, shadow] = [db, shadow].map(|opened| opened.map(|(file, _)| file));
        if let Some(db) = db.as_ref() {
            let shown = [&**names.shown(), &**names.shown_coordination()];
            refuse_others_memory(c.file(), db, shown)?;
        }
        let (files, complete) = join(c, db, shadow, names)?;
        for file in files.iter().flatten() {
            hold_life(&**file, names.shown())?;
        }
        let generation = if complete { generation } else { u64::MAX };
        Ok(Some(Entered { files, generation, found: None, exposed: false }))
    }
}

impl<S: Storage> First<'_, S> {
    /// Recovers, for a connection that is alone, and says in both files that it lives.
    fn lead(
        &self,
        [db, shadow]: [Option<Opened<S::File>>; 2],
        fresh: bool,
        options: &OpenOptions,
    ) -> Result<Recovered<S::File>> {
        let (c, was_there) = (self.coordination, db.is_some());
        let has_shadow = shadow.as_ref().is_some_and(|(_, len)| *len > 0);
        let mut recovered = self.recover(db, shadow, options);
        if recovered.as_ref().is_err_and(appeared) {
            // An opener that has not chosen a mode yet has made `app.db` before this one could.
            let (db, shadow, _) = open_files::<S>(self.directory, self.names)?;
            recovered = self.recover(db, shadow, options);
            if let Ok(recovered) = &mut recovered {
                recovered.put_aside |= has_shadow;
            }
        }
        // What was committed last (SHADOW-29), or was not.
        let has_newest = || c.left().is_ok_and(|left| left.newest.is_some());
        let tells = c.failed_commit() != 0 || !fresh && (c.in_flight() != 0 || has_newest());
        if recovered.is_err() && !tells {
            // Nobody uses it, and a refusal leaves nothing behind.
            drop(self.directory.unlink(&self.names.coordination));
        }
        let recovered = recovered?;
        if let (false, Some(db)) = (was_there, &recovered.files[c.current().slot]) {
            drop(c.file().copy_access(&**db));
        }
        for file in recovered.files.iter().flatten() {
            share(&**file, locks::LIFE, self.names.shown())?;
        }
        Ok(recovered)
    }
}

/// Whether a file was there already that was to be made.
fn appeared(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::AlreadyExists)
}

/// Both files, as far as they are there, and whether no other connection has them open; then no
/// stock process writes them from here on.
///
/// A connection that is alive goes on exchanging the names while they are opened, and may be
/// killed before LIFE is asked for: so who finds itself alone looks at the names again (T27), and
/// finishes what it left between two renames. With somebody alive that is for the next writer.
#[expect(clippy::type_complexity, reason = "two files and an answer")]
fn open_files<S: Storage>(
    directory: &S::Directory,
    names: &Names,
) -> Result<(Option<Opened<S::File>>, Option<Opened<S::File>>, bool)> {
    // At first by the names that they nearly always have: an opener that is alone looks at these
    // again.
    let mut db = open_if_there::<S>(directory, &names.db, OpenMode::ReadWrite)?;
    let mut looked_up = false;
    loop {
        if db.is_none() || looked_up {
            db = open_db::<S>(directory, names, OpenMode::ReadWrite)?;
            looked_up = true;
        }
        let shadow = open_own::<S>(directory, &names.shadow, OpenMode::ReadWrite);
        let shadow = if_there(shadow, &names.shadow)?;
        let alone = is_alone(&[db.as_ref(), shadow.as_ref()], names.shown())?;
        if !alone && !broken(Mutation::LifeIgnored) {
            let named = look_up_db::<S>(directory, names)?.map(|(_, named)| named.id);
            if looked_up || named == db.as_ref().map(File::id) {
                return Ok((db.map(|file| (file, 0)), shadow.map(|file| (file, 0)), false));
            }
            looked_up = true;
            continue;
        }
        // Before anything is looked at.
        for file in [&db, &shadow].into_iter().flatten() {
            keep_stock_writers_out(file, names.shown())?;
        }
        let mut same = !finish_renames::<S>(directory, names)?;
        let (mut lens, mut links) = ([0; 2], 1);
        let named = [(&names.db, &db), (&names.shadow, &shadow)];
        for (len, (name, file)) in lens.iter_mut().zip(named) {
            let named = directory.metadata(name).during(Operation::Stat, name.to_string_lossy())?;
            same &= named.map(|named| named.id) == file.as_ref().map(File::id);
            *len = named.map_or(0, |named| named.len);
            links = named.map_or(links, |named| named.links);
        }
        if same && shadow.is_some() && links > 1 {
            return Err(Error::CantOpen(format!(
                "{} is another file, too ({links} hard links), which would be overwritten: remove the other links, or this \
                 one if it is not the second copy of {}",
                names.shown_shadow(),
                names.shown()
            )));
        }
        if same {
            let [db_len, shadow_len] = lens;
            return Ok((
                db.map(|file| (file, db_len)),
                shadow.map(|file| (file, shadow_len)),
                true,
            ));
        }
        looked_up = true;
    }
}

/// Takes the files that the coordination file names, whatever they are called right now. `false`
/// with them: one was not found under the two names, because they were exchanged between the two
/// opens (T27) or because a new shadow was made meanwhile; it is looked for at the first read.
fn join<F: File>(
    coordination: &Coordination<F>,
    db: Option<F>,
    shadow: Option<F>,
    names: &Names,
) -> Result<([Option<Arc<F>>; 2], bool)> {
    let wanted = coordination.inodes();
    let known = db.as_ref().is_some_and(|db| wanted.contains(&Some(db.id())));
    let layout = coordination.layout();
    if let Some(refusal) = layout.refusal(names.shown()) {
        return Err(refusal);
    }
    if layout != Layout::Ours || !known {
        return Err(was_replaced(names.shown()));
    }
    let mut found: Vec<F> = [db, shadow].into_iter().flatten().collect();
    let files = wanted.map(|id| {
        let at = found.iter().position(|file| Some(file.id()) == id)?;
        Some(Arc::new(found.swap_remove(at)))
    });
    let complete = wanted.iter().zip(&files).all(|(id, file)| id.is_some() == file.is_some());
    Ok((files, complete))
}

//! Protocol `paper` of mode statement: which transactions their statements carry, in the place of
//! frames (SQLite/SSL, VLDB 2017). That is judged with the transaction's last frame, by what was
//! captured and by the schema as it was before, which is read from pages: SQLite can't be asked
//! while it commits.

use dash_statement::{Schema, Unprovable, decode, provable};
use dash_storage::real::Real;
use dash_wal::{Connection, NewestCommit, Runner};

/// In the database's header: what SQLite counts changes of the schema by, and where the tree of the
/// schema begins.
const COOKIE: std::ops::Range<usize> = 40..44;
const TREE: usize = 100;

/// Of one connection.
#[derive(Default)]
pub struct Paper {
    /// What would run its statements again; `None`: frames carry all of its commits.
    pub runner: Option<Runner>,
    /// `PRAGMA secure_delete` was said: what it leaves in free bytes may be otherwise where
    /// statements are run again, which SQLite's build says there.
    pub deletes_as_told: bool,
    known: Option<Known>,
    /// Somebody has written the schema, and not by SQL: what this connection's SQLite knows of it
    /// is not what another one would. Until SQLite reads it again, as the cookie tells.
    is_stale: bool,
    /// How often each reason was given, in the order of [`Unprovable::ALL`].
    reasons: [u64; Unprovable::ALL.len()],
}

/// What is known of the schema.
struct Known {
    schema: Schema,
    /// The pages that it stands in.
    pages: Vec<u32>,
    /// The first page, as far as it is about that.
    first: Vec<u8>,
    /// As of this commit, or an earlier one.
    seen: NewestCommit,
}

impl Paper {
    /// The mode is left: of what was so the connection keeps what it was told.
    pub fn leave(&mut self) {
        *self = Self { deletes_as_told: self.deletes_as_told, ..Self::default() };
    }

    /// What runs a transaction again that ran this, encoded, and is about to be committed; `None`:
    /// its statements don't carry it, and the reason was counted.
    pub fn judge(&mut self, engine: &mut Connection<Real>, statements: &[u8]) -> Option<Runner> {
        let runner = self.runner?;
        let ran = decode(statements).map_err(|_| Unprovable::Incomplete);
        let judged = ran.and_then(|ran| {
            if self.deletes_as_told {
                return Err(Unprovable::Settings);
            }
            // What is not recorded whole needs no look at the schema.
            if !ran.reasons.is_empty() || ran.dropped > 0 || ran.events.is_empty() {
                return Err(Unprovable::Incomplete);
            }
            match self.schema(engine) {
                Some(schema) => provable(&ran.once(), schema),
                None => Err(Unprovable::Table),
            }
        });
        match judged {
            Ok(()) => Some(runner),
            Err(reason) => {
                let place = Unprovable::ALL.iter().position(|it| *it == reason);
                if let Some(count) = place.and_then(|place| self.reasons.get_mut(place)) {
                    *count += 1;
                }
                None
            }
        }
    }

    /// How often each reason was given, in words; `None`: this is not the protocol.
    pub fn reasons(&self) -> Option<String> {
        self.runner?;
        let counted = Unprovable::ALL.iter().zip(self.reasons).filter(|(_, count)| *count > 0);
        let counted: Vec<_> =
            counted.map(|(reason, count)| format!("{} {count}", reason.name())).collect();
        Some(if counted.is_empty() { "none".to_owned() } else { counted.join(", ") })
    }

    /// The schema as of the newest commit; `None`: it can't be told, or not as this connection's
    /// SQLite has it.
    fn schema(&mut self, engine: &mut Connection<Real>) -> Option<&Schema> {
        let newest = engine.newest_commit()?;
        let may_differ =
            self.known.as_ref().is_none_or(|it| engine.may_differ(it.seen, newest, &it.pages));
        if may_differ && !self.is_as_known(engine, newest) {
            self.read(engine, newest)?;
        }
        let known = self.known.as_mut()?;
        known.seen = newest;
        (!self.is_stale).then_some(&known.schema)
    }

    /// Whether nothing of it was written but the first page, and that says nothing else: that has
    /// the list of free pages, too.
    fn is_as_known(&self, engine: &mut Connection<Real>, newest: NewestCommit) -> bool {
        let Some(known) = &self.known else { return false };
        let others: Vec<_> = known.pages.iter().copied().filter(|page| *page != 1).collect();
        !engine.may_differ(known.seen, newest, &others)
            && engine
                .committed_page(newest, 1)
                .ok()
                .flatten()
                .is_some_and(|first| about_schema(&first) == known.first)
    }

    fn read(&mut self, engine: &mut Connection<Real>, newest: NewestCommit) -> Option<()> {
        let mut pages = Vec::new();
        let schema = Schema::of_pages(|number| {
            pages.push(number);
            engine.committed_page(newest, number)
        });
        let first = engine.committed_page(newest, 1).ok().flatten()?;
        let first = about_schema(&first);
        let schema = schema.ok()?;
        let cookie = COOKIE.len();
        if let Some(before) = &self.known {
            let same = before.first.get(..cookie) == first.get(..cookie);
            self.is_stale = same && (self.is_stale || before.schema != schema);
        }
        self.known = Some(Known { schema, pages, first, seen: newest });
        Some(())
    }
}

fn about_schema(first: &[u8]) -> Vec<u8> {
    let parts = [first.get(COOKIE), first.get(TREE..)];
    parts.into_iter().flatten().flatten().copied().collect()
}

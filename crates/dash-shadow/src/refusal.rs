//! Why a database is not opened: what happened, to which file, and what to do.

use crate::format::FORMAT_VERSION;
use crate::names::Names;
use crate::names::access::Stranger;
use dash_engine::error::Error;
use dash_engine::open::shell_word;

/// A file that a dash of another format wrote.
pub(crate) fn other_format(name: &str, version: u32) -> Error {
    Error::CantOpen(format!("{name} {}", written_by(version)))
}

/// Who wrote another format, and what to do.
#[must_use]
pub fn written_by(version: u32) -> String {
    if version > FORMAT_VERSION {
        return format!("was last written by a newer dash (format {version}); use that version");
    }
    format!(
        "was last written by an older dash (format {version}, from before any release), and this one reads \
         format {FORMAT_VERSION} only; leave mode shadow with that older dash (PRAGMA journal_mode=delete)"
    )
}

/// Why nothing is touched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// `app.db` is gone, the shadow is there.
    Missing,
    /// `app.db` has no bytes, the shadow has.
    Emptied,
    /// `app.db` is something else.
    NotSqlite,
    /// `app.db` has fewer bytes than it says, the shadow is whole.
    Cut,
    /// Both files hold commits the other lacks.
    Diverged,
    /// `app.db` is an older state than the last commit, as a backup that was put there.
    Older,
    /// The shadow is gone, and may have held the newest commit.
    ShadowLost,
    /// `app.db` is a copy of a database that was being written.
    TornCopy,
    /// Neither file is a state after a commit.
    BothTorn,
    /// `app.db` was made by somebody else between two of three renames, and hides a copy.
    Hidden,
    /// The shadow may hold the newest commit, and is a stranger's.
    Stranger(Stranger),
    /// So may the file under the temporary name beside an empty `app.db`.
    StrangeName(Stranger),
}

impl Refusal {
    /// The error that says so.
    pub fn error(self, names: &Names) -> Error {
        let message = self.message(names);
        match self {
            Self::NotSqlite => Error::NotADatabase(message),
            Self::BothTorn | Self::Cut | Self::TornCopy => Error::Corrupt(message),
            Self::Missing
            | Self::Emptied
            | Self::Diverged
            | Self::Older
            | Self::ShadowLost
            | Self::Hidden
            | Self::Stranger(_)
            | Self::StrangeName(_) => Error::CantOpen(message),
        }
    }

    /// What happened and what to do.
    pub fn message(self, names: &Names) -> String {
        let [db, shadow, renaming] = [&names.db, &names.shadow, &names.renaming].map(shell_word);
        match self {
            Self::Missing => format!(
                "{db} is missing but {shadow} exists: to keep its content run `sqlite-dash recover {db}`, to start afresh remove {shadow}"
            ),
            Self::Emptied => format!(
                "{db} is empty but {shadow} holds data: to get it back run `sqlite-dash recover {db}`, to start afresh remove {shadow}"
            ),
            Self::NotSqlite => format!("{db} is not an SQLite database"),
            Self::Cut => format!(
                "{db} is shorter than its header says, {shadow} is whole: to go back to that one run `sqlite-dash recover {db}`"
            ),
            Self::ShadowLost => format!(
                "{db} was not closed cleanly, and {shadow}, which may hold its newest commit, is missing: put that file back, \
                 or take {db} as it is, such as a backup that was put there, with `sqlite-dash recover {db} --keep database`"
            ),
            Self::TornCopy => format!(
                "{db} is a copy that was made while the database was written, and holds pages of two states, or was damaged since: copy it \
                 again with sqlite3's .backup or VACUUM INTO, or save what can be read with `sqlite-dash recover {db}`"
            ),
            Self::Diverged => format!(
                "{db} and {shadow} each hold a commit that the other one lacks: another program wrote one of them after a crash, or \
                 while it was reading since before dash's last commit; choose one with \
                 `sqlite-dash recover {db} --keep database` or `--keep shadow`"
            ),
            Self::Older => format!(
                "{db} is older than the last commit to it, as a backup is that was put there, and the database was not closed cleanly: {shadow} \
                 may hold commits that are nowhere else. Put the newer {db} back; or take the older one with `sqlite-dash recover {db} \
                 --keep database`, which keeps the content of {shadow} aside, or what {shadow} holds with `--keep shadow`"
            ),
            Self::Hidden => format!(
                "{db} was made by another program while it had no name, after a crash between two renames; what it held is in \
                 {renaming} and {shadow}: to go back to that, move {db} away and open the database again; to keep {db}, move those \
                 two away"
            ),
            Self::Stranger(stranger) => not_read(&db, &shadow, "the second copy", stranger),
            Self::StrangeName(stranger) => not_read(&db, &renaming, "a copy", stranger),
            Self::BothTorn => format!(
                "neither {db} nor {shadow} is a whole state: run `sqlite-dash recover {db}`, or restore a backup"
            ),
        }
    }
}

/// What is said of a file of a stranger's, which would be read in the place of `db`.
fn not_read(db: &str, name: &str, what: &str, stranger: Stranger) -> String {
    let Stranger { owner, group, writes } = stranger;
    let (why, rights) = match writes {
        false => {
            let why =
                format!("it belongs to user {owner}, group {group}, and neither may write {db}");
            (why, "the owner and the group")
        }
        true => {
            let why = format!("its rights are not those of {db}, and it does not tell whose it is");
            (why, "the owner, the group and the permissions")
        }
    };
    format!(
        "{name} may hold the newest commit of {db}, and is not read: {why}. Where it is {what} of {db}, give it {rights} of {db}; \
         where somebody has put it there, remove it"
    )
}

/// Says that another coordination file is in use.
pub(crate) fn was_replaced(shown: &str) -> Error {
    Error::CantOpen(format!(
        "{shown} was replaced while other connections have the former one open: close them first. What they have committed is in \
         that one alone; `VACUUM INTO` there makes a copy"
    ))
}

/// What a process says that can't make a second copy for everybody who has the first.
pub(crate) fn locks_out(db: &str) -> Error {
    Error::ReadOnly(format!(
        "{db} belongs to another user or group, and this one can't make the second copy that dash needs without locking others out: \
         write it as its owner or as root, or let all its users be in its group and the group have its owner's rights (chmod g=u)"
    ))
}

//! Series of cases: what is done, how, and what fails.

use dash_simulated::Effect;

use super::operation::Operation;
use crate::sim::commit::undoable;
use crate::sim::subject::{Setup, Sizes, Subject};
use crate::variant::Variant;

/// What a call does instead. A read never returns less than there is: the real home reads on.
const EFFECTS: [(&str, Effect); 6] = [
    ("eio", Effect::Error(libc::EIO)),
    ("enospc", Effect::Error(libc::ENOSPC)),
    ("edquot", Effect::Error(libc::EDQUOT)),
    ("eintr", Effect::Error(libc::EINTR)),
    ("lost-flush", Effect::LostFlush(libc::EIO)),
    ("half-then-full", Effect::ShortWrite(700, libc::ENOSPC)),
];
/// How many commits come before the operation: the first ones take paths of their own.
const BEFORE: [u32; 3] = [0, 1, 3];

/// A series of cases: the first call fails, then the second, until no call is left.
#[derive(Clone, Copy)]
pub struct Series {
    /// What is done.
    pub operation: Operation,
    /// How the database is.
    pub setup: Setup,
    /// Commits before it.
    pub commits: u32,
    /// What the call does instead, and its name.
    pub effect: (&'static str, Effect),
    /// Whether all later ones do, too.
    pub forever: bool,
}

impl Series {
    /// All for an engine.
    pub fn all(subject: &dyn Subject) -> Vec<Self> {
        let mut all = Vec::new();
        for &Variant { name: variant, .. } in subject.variants() {
            let setup = Setup { variant, page: 512, sizes: Sizes::Tiny, secure: false };
            for operation in Operation::all(undoable(subject.commit_steps(&setup))) {
                for commits in BEFORE {
                    for effect in EFFECTS {
                        // For ever interrupted nobody gets anywhere.
                        let ways: &[bool] =
                            if effect.0 == "eintr" { &[false] } else { &[false, true] };
                        all.extend(ways.iter().map(|&forever| Self {
                            operation,
                            setup,
                            commits,
                            effect,
                            forever,
                        }));
                    }
                }
            }
        }
        all
    }

    /// In words, as in `--case`, without the number of the call.
    pub fn name(&self) -> String {
        let forever = if self.forever { "ever" } else { "once" };
        let Self { operation, setup, commits, effect, .. } = self;
        format!("calls/{}/{}/{commits}/{}/{forever}", operation.name(), setup.variant, effect.0)
    }
}

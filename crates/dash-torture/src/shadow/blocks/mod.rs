//! Damage to what the engine keeps besides SQLite's pages, on the simulated home: every single bit,
//! every length, and blocks that are well-formed and lie; some of it on real files.

mod damage;
mod decode;
mod edge;
mod forged;
mod forged_first_page;
pub mod neighbours;
mod on_files;
mod original;
mod run;
mod verdict;

pub use run::{damage_on, damage_part, decode_part, forged_part};

use original::{Fate, Left, Original, Size};

use crate::sim::subject::{Outcome, Setup, Sizes, Subject};

/// The states of databases that are damaged.
fn originals(subject: &dyn Subject) -> Outcome<Vec<Original>> {
    let setup = |variant| Setup { variant, page: 512, sizes: Sizes::Tiny, secure: false };
    let cut = |fate| Left::Cut(2, fate);
    let small = [
        ("single", Left::Closed, 1),
        ("single", Left::Closed, 2),
        ("single", Left::Closed, 3),
        ("single", Left::Killed(0), 2),
        ("single", Left::Killed(1), 2),
        ("single", Left::Killed(2), 3),
        ("single", cut(Fate::Nothing), 3),
        ("single", cut(Fate::Everything), 3),
        ("single", cut(Fate::Some(1)), 2),
        ("paper", Left::Closed, 2),
        ("paper", Left::Killed(2), 3),
        ("paper", cut(Fate::Nothing), 2),
    ];
    let mut all = Vec::new();
    for (variant, left, commits) in small {
        all.push(Original::new(subject, setup(variant), left, commits, Size::Small)?);
    }
    for left in [Left::Closed, Left::Killed(1), cut(Fate::Nothing)] {
        all.push(Original::new(subject, setup("single"), left, 3, Size::Long)?);
    }
    Ok(all)
}

//! What a power loss left: the first processes to look at it, what each may see, and what dash
//! makes of it.

use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

use dash_simulated::{Everything, Machine, OperationKind, Random};
use dash_storage::{Directory, File, FileKind, OpenMode, Storage};
use rusqlite::{Connection, ErrorCode};

use super::open_dash;
use crate::random::Dice;
use crate::sim::content::Content;
use crate::sim::explore::{Checked, Explorer, Violation, changes, wrong};
use crate::sim::model::{Model, short};
use crate::sim::sql::failed;
use crate::sim::sql::statements::{digest, is_sound, transaction};
use crate::sim::stock::{Journal, Level, Manner, Stock};
use crate::sim::subject::DB;

/// Cuts the power now, with so many fates: all that there are, if they are not more.
pub fn cut(
    explorer: &Arc<Explorer>,
    machine: &Machine,
    model: &Model,
    fates: u64,
    depth: usize,
    dice: &mut Dice,
) {
    explorer.cut_and(machine, fates, dice, |after, dice| {
        // Not drawn from the image: SQLite's journals hold random numbers of its own.
        check(explorer, after, model, depth + 1, dice.draw())
    });
}

/// Cuts at the steps of a recovery.
fn watch(explorer: &Arc<Explorer>, machine: &Machine, model: &Model, depth: usize) {
    let (explorer, model) = (Arc::clone(explorer), model.clone());
    let mut dice = Dice::new(explorer.plan.seed, 5100 + depth as u64);
    machine.watch(move |machine, operation| {
        if !changes(operation.kind) || explorer.result().is_err() {
            return;
        }
        let flush = operation.kind == OperationKind::Flush;
        let fates = u64::from(flush || dice.one_in(4));
        cut(&explorer, machine, &model, fates, depth, &mut dice);
    });
}

fn check(
    explorer: &Arc<Explorer>,
    image: &Machine,
    model: &Model,
    depth: usize,
    seed: u64,
) -> Checked<()> {
    if !explorer.is_new(image.state_hash(), model.floor(), depth) {
        return Ok(());
    }
    let mut dice = Dice::new(seed, 5200);
    let mut before = String::new();
    stock_first(explorer, &image.power_loss(&mut Everything), model, &mut dice)?;
    if dice.one_in(4) {
        copied_by_hand(explorer, image, &mut dice).map_err(|error| Violation(error.to_string()))?;
        before = "copied by hand, ".into();
    } else if depth < explorer.plan.depth && dice.one_in(12) {
        watch(explorer, image, model, depth);
    }
    let (db, content) = match dash_opens(explorer, image, &before) {
        Err(Violation(what))
            if model.may_have_to_choose && explorer.subject.leaves_a_choice(&what) =>
        {
            return Ok(());
        }
        opened => opened?,
    };
    if !model.allows(&content) {
        return wrong!("{before}recovered {}, not {}", short(&content), model.shown());
    }
    // It goes on, and what is committed now is durable.
    image.watch(|_, _| {});
    let new = transaction(&db, &mut dice).and_then(|()| digest(&db));
    let new = new.map_err(|error| failed("a statement after the recovery", &error))?;
    db.execute_batch("COMMIT").map_err(|error| failed("COMMIT after the recovery", &error))?;
    if dice.one_in(2) {
        db.close().map_err(|(_, error)| failed("closing after the recovery", &error))?;
    }
    let after = image.power_loss(&mut Random::new(seed));
    let (_, found) = dash_opens(explorer, &after, "recovered, committed, cut: ")?;
    match found == new {
        true => Ok(()),
        false => wrong!("recovered, committed {}, cut: then {}", short(&new), short(&found)),
    }
}

/// Opens it through dash: what there is is sound.
fn dash_opens(
    explorer: &Arc<Explorer>,
    machine: &Machine,
    before: &str,
) -> Checked<(Connection, Content)> {
    let opened = open_dash(explorer, &machine.process());
    explorer.result()?;
    let db = opened.map_err(|Violation(what)| Violation(format!("{before}{what}")))?;
    let read = is_sound(&db).and_then(|sound| digest(&db).map(|content| (sound, content)));
    let (sound, content) =
        read.map_err(|error| failed(&format!("{before}reading what was recovered"), &error))?;
    match sound {
        true => Ok((db, content)),
        false => wrong!("{before}what was recovered fails integrity_check"),
    }
}

/// Stock SQLite opens it before dash does, reads, and perhaps writes. Then dash has what stock
/// SQLite wrote, or refuses because that was made on a state that was not the last.
fn stock_first(
    explorer: &Arc<Explorer>,
    image: &Machine,
    model: &Model,
    dice: &mut Dice,
) -> Checked<()> {
    let Ok(stock) = Stock::open(image) else {
        return Ok(());
    };
    let (sound, seen) = match stock.checked() {
        Ok(checked) => checked,
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::DatabaseCorrupt) => {
            return wrong!("a stock reader finds the file malformed");
        }
        Err(_) => return Ok(()),
    };
    if !sound || !model.allows_ever(&seen) {
        let seen = short(&seen);
        return wrong!("a stock reader sees {seen}, no committed state; sound: {sound}");
    }
    let newest = model.allows(&seen);
    if !dice.one_in(2) {
        return Ok(());
    }
    let journal = [Journal::Memory, Journal::Off, Journal::Delete][dice.index(3)];
    let manner = Manner { journal, level: Level::Extra };
    if stock.set(manner).is_err() {
        return Ok(());
    }
    // Its own journal must not come back over what it writes without one.
    image.write_back();
    let written = transaction(&stock.db, dice)
        .and_then(|()| stock.content())
        .and_then(|new| stock.db.execute_batch("COMMIT").map(|()| new));
    let Ok(new) = written else {
        return Ok(());
    };
    drop(stock);
    let after = match dice.one_in(2) {
        true => image.power_loss(&mut Random::new(dice.below(1 << 40))),
        false => image.clone(),
    };
    match dash_opens(explorer, &after, &format!("stock SQLite wrote by {manner}: ")) {
        Ok((_, content)) if newest && content == new => Ok(()),
        Err(Violation(what)) if explorer.subject.leaves_a_choice(&what) => Ok(()),
        Ok((_, content)) => {
            let (seen, new, content) = (short(&seen), short(&new), short(&content));
            wrong!(
                "stock SQLite saw {seen} and made {new} of it by {manner}, dash opens {content}; \
                 there was {}",
                model.shown()
            )
        }
        Err(violation) => Err(violation),
    }
}

/// All files of a database are copied, and take the places of those they were copied from. One
/// inode number may be that of before.
fn copied_by_hand(explorer: &Explorer, machine: &Machine, dice: &mut Dice) -> std::io::Result<()> {
    machine.set_inode_reuse(true);
    let folder = machine.process().open_directory(Path::new("/"))?;
    let mut copies = Vec::new();
    let endings = std::iter::once(&"").chain(explorer.subject.beside());
    let mut names: Vec<_> = endings.map(|ending| format!("{}{ending}", &DB[1..])).collect();
    if dice.one_in(2) {
        names.reverse();
    }
    for name in names {
        let is_file = folder.metadata(OsStr::new(&name))?;
        if is_file.is_some_and(|found| found.kind == FileKind::Regular) {
            copies.push((machine.file_view(format!("/{name}")).unwrap_or_default(), name));
        }
    }
    for (_, name) in &copies {
        folder.unlink(OsStr::new(name))?;
    }
    if dice.one_in(3) {
        // Something else takes a number first.
        folder.open(OsStr::new("other"), OpenMode::Create { permissions: 0o644 })?;
    }
    for (bytes, name) in copies {
        let mode = OpenMode::CreateNew { permissions: 0o644 };
        folder.open(OsStr::new(&name), mode)?.write_at(&bytes, 0)?;
    }
    machine.write_back();
    machine.set_inode_reuse(false);
    Ok(())
}

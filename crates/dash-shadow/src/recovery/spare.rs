//! A shadow without its database: whether that was closed cleanly, and somebody has removed it
//! then, or moved it away. Whoever did so knows of the database, and not of the shadow, which holds
//! nothing that was not in the database: it is put aside ([`put_aside`]), and a new one begins.
//! What is not provably so is refused.

use crate::names::Names;
use crate::recovery::examine::{Found, ShadowKind};
use crate::recovery::left::Left;
use dash_engine::error::{Context, Operation, Result};
use dash_storage::{Directory, File, Storage};

/// Whether the shadow, which is of this kind, holds nothing that `app.db` did not hold when it was
/// closed.
pub(crate) fn is_spare<F: File>(shadow: Option<&Found<F>>, kind: ShadowKind, left: Left) -> bool {
    let Some(found) = shadow.filter(|_| !left.fence && !left.open) else {
        return false;
    };
    let vouched = || found.block(false).and_then(|block| block.vouched);
    let closed = || vouched().is_some_and(|vouched| vouched.names_durable && !vouched.held);
    match kind {
        ShadowKind::Superseded => closed(),
        // Of a database that was committed to once.
        ShadowKind::Unrelated => found.tail.len == 0,
        _ => false,
    }
}

/// Puts it aside, durably: a power loss must not find it beside the new database. An empty one is
/// removed, and so is one in whose place another user's lies. Whether it was put aside.
pub(crate) fn put_aside<S: Storage>(
    directory: &S::Directory,
    names: &Names,
    shadow: &Found<S::File>,
) -> Result<bool> {
    let name = names.shown_shadow();
    let owner = shadow.file.metadata().during(Operation::Stat, name)?.owner;
    let lies = directory.metadata(&names.aside).during(Operation::Stat, name)?;
    let holds_data = shadow.tail.len > 0 && lies.is_none_or(|lies| lies.owner == owner);
    if holds_data {
        directory.rename(&names.shadow, &names.aside).during(Operation::Exchange, name)?;
    } else {
        directory.unlink(&names.shadow).during(Operation::Delete, name)?;
    }
    directory.flush().during(Operation::FlushDirectory, name)?;
    Ok(holds_data)
}

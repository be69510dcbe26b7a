//! Taking a database as it is, where the shadow that may have held its newest commit is gone for
//! good.

use crate::file::tail::Tail;
use crate::file::void_commit::void_commit;
use crate::format::TAIL_LEN;
use crate::format::header::{FENCE_OFFSET, Header, Marks};
use crate::names::Names;
use crate::while_closed::while_closed;
use dash_engine::error::{Context, Error, Operation, Result};
use dash_engine::io::{read_header, write_zeros};
use dash_engine::locks::keep_stock_writers_out;
use dash_engine::note;
use dash_engine::open::has_one_name;
use dash_storage::{Directory, File, OpenMode, Storage};
use std::io::ErrorKind;
use std::path::Path;

/// Takes the file at `path` as it is: what dash noted beside it of the last session goes, and what
/// it noted in it, if that says that the file is the older one of two. The content stays. Durable
/// when it returns.
///
/// # Errors
///
/// [`Error::Busy`] while somebody has it open for writing; [`Error::Refused`] where there is a
/// shadow.
pub fn forget<S: Storage>(storage: &S, path: &Path) -> Result<()> {
    while_closed(storage, path, || forget_closed(storage, path))?
}

fn forget_closed<S: Storage>(storage: &S, path: &Path) -> Result<()> {
    let (folder, names) = Names::split(path)?;
    let shown = names.shown();
    let directory = storage.open_directory(folder).during(Operation::Open, folder.display())?;
    if directory.metadata(&names.shadow).during(Operation::Stat, names.shown_shadow())?.is_some() {
        return Err(Error::Refused(format!(
            "{} is there: opening {shown} decides between the two",
            names.shown_shadow()
        )));
    }
    let file = directory.open(&names.db, OpenMode::ReadWrite).during(Operation::Open, shown)?;
    has_one_name(&file, shown)?;
    keep_stock_writers_out(&file, shown)?;
    let tail = Tail::read(&file, shown)?;
    // Only one that says of itself that it is the older one of two has to be told otherwise.
    if tail.commit.as_ref().is_ok_and(|block| block.vouched.is_some()) {
        if let Some(header) = read_header(&file, shown)?.filter(Header::is_demoted) {
            file.write_at(&header.promotion(), FENCE_OFFSET).during(Operation::Write, shown)?;
        }
        void_commit(&file, tail.len, shown)?;
        write_zeros(&file, tail.len - TAIL_LEN, tail.len, shown)?;
        file.flush().during(Operation::Flush, shown)?;
    }
    for gone in [
        note::remove_folder(&directory, &names.fence),
        // What it says of the last session is forgotten, too.
        directory.unlink(&names.coordination),
    ] {
        match gone {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).during(Operation::Delete, shown);
            }
            _ => {}
        }
    }
    directory.flush().during(Operation::FlushDirectory, shown)
}

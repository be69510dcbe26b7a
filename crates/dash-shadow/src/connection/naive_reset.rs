//! What SHADOW-X as printed does with the page list of the current copy. Only a mutation uses it.

use crate::connection::state::Connection;
use crate::file::tail::{Tail, write_commit};
use crate::format::{Place, SECTOR_BYTES, first_page};
use dash_engine::error::{Context, Operation, Result};
use dash_engine::io::read_padded;
use dash_storage::{File, Storage};

impl<S: Storage> Connection<S> {
    /// What the mutation `NaiveListReset` does.
    pub(crate) fn reset_list(&mut self) -> Result<()> {
        let (file, name) = (self.current_file()?, self.role(self.view.current.slot));
        let tail = Tail::read(&*file, &name)?;
        if let Ok(mut block) = tail.commit {
            let mut sector = [0; SECTOR_BYTES];
            read_padded(&*file, &mut sector, 0).during(Operation::Read, &name)?;
            first_page::blank(&mut sector);
            file.write_at(&sector, 0).during(Operation::Write, &name)?;
            block.place = Place::Tail;
            write_commit(&*file, tail.len, &mut block, Vec::new(), &name)?;
        }
        self.memo.page_list = None;
        Ok(())
    }
}

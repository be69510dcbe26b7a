//! Which medium a log's file is written to: memory where it is laid out for that and lies in some,
//! else around the page cache, else through it (LOG-13).

use crate::format::Form;
use crate::mapped::{Mapped, is_refusal};
use crate::medium::{Buffered, Direct, Medium};
use dash_engine::error::{Context, Error, Operation, Result};
use dash_storage::{File, Persistence};
use std::sync::Arc;

/// What a log is opened for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// Reading only; the medium is one whose writes fail.
    Read,
    /// Reading and writing.
    Write,
    /// The same of a log that is being made. Of one of lines nothing but memory will do; `None`: it
    /// becomes what it lies in.
    Make(Option<Form>),
}

/// A medium, and what it is.
pub(crate) struct Written {
    pub(crate) medium: Box<dyn Medium>,
    pub(crate) direct: bool,
    pub(crate) persistence: Option<Persistence>,
}

/// The medium of a file that is laid out so; as far as that is known.
pub(crate) fn open<F: File>(
    file: &Arc<F>,
    access: Access,
    form: Option<Form>,
    name: &str,
) -> Result<Written> {
    if form == Some(Form::Lines) && access != Access::Read {
        match Mapped::open(Arc::clone(file), name.to_owned()) {
            Ok(medium) => {
                let persistence = Some(medium.persistence());
                return Ok(Written { medium: Box::new(medium), direct: false, persistence });
            }
            Err(error) if is_refusal(&error) && access == Access::Write => {}
            // Whatever is in the way of mapping it: a file can be written.
            Err(Error::Io { operation: Operation::Map, .. }) if access == Access::Make(None) => {}
            Err(error) => return Err(error),
        }
    }
    let block = match access {
        Access::Read => None,
        Access::Write | Access::Make(_) => file.make_direct().during(Operation::Open, name)?,
    };
    let (file, name) = (Arc::clone(file), name.to_owned());
    let medium: Box<dyn Medium> = match block {
        Some(block) => Box::new(Direct::new(file, block, name)),
        None => Box::new(Buffered::new(file, name)),
    };
    Ok(Written { medium, direct: block.is_some(), persistence: None })
}

//! What every run begins with: mounts of its own, Ctrl-C, the extension, places, priority.

use std::path::Path;

use crate::extension::Extension;
use crate::failure::Result;
use crate::head::Head;
use crate::interrupt::Interrupt;
use crate::place::{Place, Places};
use crate::{loops, priority};

/// A run.
pub struct Bench {
    /// Where things can be measured.
    pub places: Places,
    /// The loaded extension.
    pub extension: Extension,
    /// Whether the measuring thread goes before others.
    pub real_time: bool,
    _interrupt: Interrupt,
}

impl Bench {
    /// Begins, with databases below `folder`.
    pub fn start(folder: &Path) -> Result<Self> {
        if loops::allowed() {
            loops::isolate()?;
        }
        let interrupt = Interrupt::catch()?;
        let extension = Extension::load()?;
        let places = Places::new(folder)?;
        Ok(Self { places, extension, real_time: priority::raise(), _interrupt: interrupt })
    }

    /// The head of a report about a place.
    pub fn head(&self, place: &Place) -> Result<Head> {
        Head::of(place, &self.extension, self.real_time)
    }
}

/// The command line that was given, to be printed above what it made.
pub fn command() -> String {
    let words: Vec<_> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    format!("dash {}", words.join(" "))
}

//! What every run begins with: mounts of its own, Ctrl-C, the extension, volumes, priority.

use std::path::Path;

use crate::extension::Extension;
use crate::failure::Result;
use crate::header::Header;
use crate::interrupt::Interrupt;
use crate::volume::{Volume, Volumes};
use crate::{loops, priority};

/// A run.
pub struct Bench {
    /// Where things can be measured.
    pub volumes: Volumes,
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
        let volumes = Volumes::new(folder)?;
        Ok(Self { volumes, extension, real_time: priority::raise(), _interrupt: interrupt })
    }

    /// The header of a report about a volume.
    pub fn header(&self, volume: &Volume) -> Result<Header> {
        Header::of(volume, &self.extension, self.real_time)
    }
}

/// The command line that was given, to be printed above what it made.
pub fn command() -> String {
    let words: Vec<_> =
        std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    format!("dash {}", words.join(" "))
}

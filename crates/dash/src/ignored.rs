//! Parameters of the URI that are of another mode than the one that the database is in. They are no
//! error, for a program may choose the mode after it has opened the database.

use std::collections::BTreeSet;

use dash_ffi::Code;

use crate::main_file::MainFile;
use crate::mode::{DEFAULT, Mode};
use crate::modes::MODES;

impl MainFile {
    /// Says which parameters of the URI mean nothing in the mode that the database has got.
    /// `is_refused`: why it can't be written has just been said, and stays the last error.
    pub(crate) fn note_ignored(&self, mode: &'static dyn Mode, is_refused: bool) {
        let foreign = MODES.foreign(mode).filter(|(parameter, _)| parameter.name != DEFAULT);
        // Modes may have one in common.
        let mut seen = BTreeSet::new();
        let foreign = foreign.filter(|(parameter, _)| seen.insert(parameter.name));
        let given = foreign.filter(|(parameter, _)| self.parameters.own(parameter.name).is_some());
        let (names, of): (Vec<_>, Vec<_>) =
            given.map(|(parameter, mode)| (parameter.name, mode.names()[0])).unzip();
        let Some(theirs) = of.first() else { return };
        let (path, names, is) = (self.path.display(), names.join(", "), mode.described());
        let message = format!(
            "{path} is open {is}, where these mean nothing: {names}; they are of mode {theirs}"
        );
        match is_refused {
            true => self.host.log(Code::NOTICE, &message),
            false => self.host.note(Code::NOTICE, &message),
        }
    }
}

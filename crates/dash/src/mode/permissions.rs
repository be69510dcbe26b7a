//! What the URI says of a new database's permissions, and of the device.

use dash_storage::real::Real;
use dash_storage::{Directory, Storage};

use super::Parameters;

/// Permissions of a new database, before the umask; SQLite's own.
const PERMISSIONS: u32 = 0o644;

impl Parameters {
    /// Whether to promise powersafe overwrite.
    pub(crate) fn psow(&self) -> bool {
        self.powersafe_overwrite.unwrap_or(true)
    }

    /// The permissions of a new database.
    pub(crate) fn permissions(&self) -> u32 {
        let of = || {
            let model = self.mode_of.as_deref()?;
            let folder = Real.open_directory(model.parent()?).ok()?;
            let found = folder.metadata(model.file_name()?).ok()??;
            Some(found.permissions)
        };
        of().unwrap_or(PERMISSIONS)
    }
}

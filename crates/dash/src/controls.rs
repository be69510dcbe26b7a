//! What every engine's file answers alike: lock levels by their two names, and file controls that
//! need no engine.

use std::path::PathBuf;

use dash_ffi::{Code, File, FileControl, Handled, LockLevel, Result, TempFilename};
use dash_storage::Storage;
use dash_storage::real::Real;

use crate::mapping::Maps;

/// The engines' name of a lock level.
pub fn engine_level(level: LockLevel) -> dash_shadow::LockLevel {
    match level {
        LockLevel::None => dash_shadow::LockLevel::None,
        LockLevel::Shared => dash_shadow::LockLevel::Shared,
        LockLevel::Reserved => dash_shadow::LockLevel::Reserved,
        LockLevel::Pending => dash_shadow::LockLevel::Pending,
        LockLevel::Exclusive => dash_shadow::LockLevel::Exclusive,
    }
}

/// `SQLITE_FCNTL_LOCKSTATE`: its number.
pub fn lock_number(level: dash_shadow::LockLevel) -> i32 {
    match level {
        dash_shadow::LockLevel::None => 0,
        dash_shadow::LockLevel::Shared => 1,
        dash_shadow::LockLevel::Reserved => 2,
        dash_shadow::LockLevel::Pending => 3,
        dash_shadow::LockLevel::Exclusive => 4,
    }
}

/// Sets a truth value, or answers it if the setting is negative.
pub fn toggle(value: &mut bool, setting: &mut i32) {
    if *setting < 0 {
        *setting = i32::from(*value);
    } else {
        *value = *setting != 0;
    }
}

/// A length in whole chunks of so many bytes, as the stock VFS counts them; 0: any length will do.
///
/// # Errors
///
/// `SQLITE_FULL`
pub fn in_chunks(size: u64, chunk: u64) -> Result<u64> {
    match chunk {
        0 => Ok(size),
        chunk => size.checked_next_multiple_of(chunk).ok_or(Code::FULL.into()),
    }
}

/// `SQLITE_FCNTL_MMAP_SIZE`: sets the limit, unless it is negative, and answers what it was.
pub fn set_mmap_size(maps: &mut Maps, size: &mut i64) {
    let old = match u64::try_from(*size) {
        Ok(limit) => maps.set_limit(limit),
        Err(_) => maps.limit(),
    };
    *size = i64::try_from(old).unwrap_or(i64::MAX);
}

/// `SQLITE_FCNTL_TEMPFILENAME`: a path for a temporary file, as the stock VFS answers it. Nobody
/// will draw it again, so nobody looks whether it is free.
///
/// # Errors
///
/// `SQLITE_CANTOPEN` for a folder's name that is none.
pub fn answer_temporary_name(mut name: TempFilename<'_>) -> Result<Handled> {
    let folder = std::env::var_os("SQLITE_TMPDIR").map(PathBuf::from).filter(|path| path.is_dir());
    let folder = folder.unwrap_or_else(std::env::temp_dir);
    name.answer(&folder.join(format!("etilqs_{:016x}", Real.random())))?;
    Ok(Handled::Yes)
}

/// Whether the name of a plain file stands for another one now, or for none.
pub fn has_moved(file: &mut dyn File) -> Result<bool> {
    let mut moved = false;
    file.file_control(FileControl::HasMoved(&mut moved))?;
    Ok(moved)
}

/// Whether `PRAGMA secure_delete = value` switches it on. Fast, too: it leaves whole pages as they
/// were, and overwrites the rest.
pub fn deletes_securely(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let number = value.parse::<i64>().is_ok_and(|number| number != 0);
    number || ["on", "yes", "true", "fast"].contains(&value.as_str())
}

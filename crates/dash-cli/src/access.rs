//! What the user who runs this program may do with files, and what is in the way.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dash_storage::real::is_read_only;
use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::{AccessFlags, Gid, Group, Uid, User, faccessat, geteuid};

use crate::out::Shown;

/// Whether this user may do that. An access control list and a read-only mount count.
pub fn may(path: &Path, what: AccessFlags) -> bool {
    faccessat(AT_FDCWD, path, what, AtFlags::AT_EACCESS).is_ok()
}

/// Why this user can't read it, or write it, and what to do; `None`: they can.
pub fn hindrance(path: &Path, what: AccessFlags) -> Option<String> {
    if may(path, what) {
        return None;
    }
    let shown = path.shown();
    Some(match path.metadata() {
        Ok(_) if is_read_only(path) => format!(
            "the file system of {shown} is mounted read-only: mount it for writing, or copy the database with all that lies \
             beside it where it can be written"
        ),
        Ok(found) => format!(
            "{} may not {} {shown} ({}): run this as root, or as {}",
            user(),
            if what == AccessFlags::W_OK { "write" } else { "read" },
            brief(&found),
            named(found.uid().into())
        ),
        Err(error) => format!("{shown}: {error}"),
    })
}

/// The user, for messages.
pub fn user() -> String {
    named(geteuid())
}

/// Another user.
pub fn named(user: Uid) -> String {
    match User::from_uid(user) {
        Ok(Some(found)) => format!("user {}", found.name),
        _ => format!("user {user}"),
    }
}

/// `0755 root:root`.
fn brief(found: &Metadata) -> String {
    let (user, group) = (Uid::from(found.uid()), Gid::from(found.gid()));
    let user = User::from_uid(user).ok().flatten().map_or(user.to_string(), |user| user.name);
    let group = Group::from_gid(group).ok().flatten().map_or(group.to_string(), |group| group.name);
    format!("{:04o} {user}:{group}", found.mode() & 0o7777)
}

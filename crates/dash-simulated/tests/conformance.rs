//! What [`dash_storage::Storage`] promises, asked of every home with the same functions.

#![expect(clippy::unwrap_used, reason = "a check that fails should panic")]

mod homes {
    pub mod direct;
    pub mod files;
    pub mod locks;
    pub mod names;
    pub mod shared;
}

use std::ffi::OsStr;
use std::path::Path;

use dash_simulated::Machine;
use dash_storage::real::Real;
use dash_storage::{Directory, OpenMode, Storage};

/// A file that is made if need be.
const NEW: OpenMode = OpenMode::Create { permissions: 0o644 };

/// The root of a fresh directory of some home.
struct Place<S: Storage> {
    storage: S,
    directory: S::Directory,
}

impl<S: Storage> Place<S> {
    fn new(storage: S, path: &Path) -> Self {
        let directory = storage.open_directory(path).unwrap();
        Self { storage, directory }
    }

    fn open(&self, name: &str) -> S::File {
        self.directory.open(OsStr::new(name), NEW).unwrap()
    }
}

fn in_real(check: impl FnOnce(Place<Real>, &Path)) {
    let directory = tempfile::tempdir().unwrap();
    check(Place::new(Real, directory.path()), directory.path());
}

fn in_simulated(check: impl FnOnce(Place<dash_simulated::Simulated>, &Path)) {
    let path = Path::new("/");
    check(Place::new(Machine::new(1).process(), path), path);
}

macro_rules! conformance {
    ($($room:ident: $($rule:ident)*;)*) => {
        mod real {
            $($(#[test] fn $rule() { super::in_real(super::homes::$room::$rule); })*)*
        }
        mod simulated {
            $($(#[test] fn $rule() { super::in_simulated(super::homes::$room::$rule); })*)*
        }
    };
}

conformance! {
    files:
        bytes_written_are_read_back
        a_read_is_short_only_at_the_end
        a_write_behind_the_end_leaves_zeros
        buffers_are_written_one_behind_the_other
        setting_the_length_cuts_and_extends_with_zeros
        allocating_extends_and_never_shrinks
        making_room_leaves_the_length
        a_flush_succeeds_in_every_mode
        going_around_holes_misses_nothing
        a_file_open_for_reading_is_not_written
        who_else_has_a_file_open_is_told
        offsets_beyond_the_largest_are_errors
        a_clone_is_a_copy_or_unsupported;
    direct:
        what_is_written_around_the_cache_is_read_through_it
        what_is_written_through_the_cache_is_read_around_it
        a_direct_read_is_short_only_at_the_end
        initializing_extends_and_leaves_zeros
        a_direct_file_is_initialized_in_blocks
        durable_writes_are_read_back
        a_file_open_for_reading_takes_none_of_these;
    names:
        modes_open_and_make_as_documented
        metadata_tells_kind_size_and_identity
        an_exchange_swaps_two_files
        an_exchange_needs_both_names
        an_exchange_swaps_a_file_and_a_directory
        nothing_is_mounted_over_a_file_of_ours
        a_link_is_a_second_name
        a_rename_replaces
        a_file_without_a_name_lives_on
        directories_are_made_and_removed_when_empty
        unlink_is_for_files_and_remove_for_directories
        names_are_single_components
        a_missing_directory_is_not_opened
        a_handle_follows_its_directory;
    locks:
        shared_locks_share_and_exclusive_ones_do_not
        locks_of_one_description_do_not_conflict
        locks_convert
        unlocking_the_middle_splits
        a_conflict_has_no_owner
        an_empty_range_is_nothing
        a_range_may_go_to_the_end_of_all_bytes
        locks_go_with_the_file
        locks_follow_the_inode_not_the_name
        an_exclusive_lock_needs_a_writable_file;
    shared:
        words_are_shared_between_openings
        a_word_out_of_range_panics
        memory_outlives_its_file
        memory_extends_the_file
        a_region_is_shared_wherever_it_begins
        a_region_has_the_bytes_of_the_file
        words_can_be_covered_for_a_while
        the_words_of_a_region_lie_together_and_stay
        a_wait_ends_when_the_word_changes_or_the_time_is_over
        random_numbers_are_not_zero_and_differ
        the_clock_never_goes_back;
}

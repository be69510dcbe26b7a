//! The engine `wal`, invariant by invariant: the real SQLite on simulated storage, and accidents
//! that fit together. Each story is told once more over an engine that is broken in the way that it
//! is about, and must fail then. `DASH_MUTATION` breaks it in one way for all stories.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate dash_wal_mutants as dash_wal;

use dash_torture::{sim, variant};
#[path = "../../src/wal/subject/mod.rs"]
mod subject;

mod common;

mod a_checkpoint_copies_what_it_has_read_of;
mod a_checkpoint_in_off_takes_nothing_from_others;
mod a_closed_database_is_plain_whatever_is_lost;
mod a_commit_is_as_durable_as_was_chosen;
mod a_commit_is_known_by_its_own_frame;
mod a_database_comes_to_rest_while_it_is_open;
mod a_difference_is_made_against_the_window;
mod a_file_moved_over_an_open_database_is_whole;
mod a_flush_that_failed_is_made_good;
mod a_frame_that_was_written_twice_is_as_the_log_has_it;
mod a_generation_is_announced_before_its_header;
mod a_leader_that_dies_leaves_no_hole;
mod a_log_at_rest_says_where_it_goes_on;
mod a_log_elsewhere_is_found_or_refused;
mod a_log_elsewhere_is_made_before_it_is_used;
mod a_log_in_memory_costs_no_flush;
mod a_log_of_another_state_is_refused;
mod a_log_that_is_kept_is_kept_whole;
mod a_log_that_is_not_its_own_changes_nothing;
mod a_log_without_its_wal_is_void;
mod a_lost_log_is_noticed;
mod a_normal_commit_is_durable_with_the_next_checkpoint;
mod a_process_that_is_killed_takes_nobody_along;
mod a_stock_writers_frames_get_their_checksums;
mod a_stopped_leader_stops_nobody;
mod a_transaction_that_has_read_goes_on_to_write;
mod a_wal_in_memory_is_one_processs;
mod a_wal_that_lost_its_blocks_is_missed;
mod a_writer_that_dies_leaves_no_frame_without_checksum;
mod all_have_the_same_files_or_are_refused;
mod before_the_first_record_all_names_are_durable;
mod entering_and_leaving_the_mode_loses_nothing;
mod every_way_to_break_it_is_seen;
mod older_headers_are_told_from_newer_ones;
mod statements_carry_commits;
mod stock_sqlite_checkpoints_where_it_may;
mod stock_sqlite_reads_along_and_does_not_write;
mod stock_sqlite_writes_along_where_it_is_let_in;
mod the_ring_overwrites_nothing_that_is_needed;
mod what_a_commit_ran_is_said_of_it_alone;
mod what_a_kill_took_from_memory_nobody_misses;
mod what_a_killed_process_left_is_written_again;
mod what_a_stock_survivor_writes_after_a_kill_is_kept;
mod what_is_not_in_the_database_is_not_deleted;
mod what_may_be_rolled_back_is_not_in_the_log;
mod what_shm_says_of_a_missing_wal_counts;
mod what_was_left_is_told_from_what_was_put_there;
mod whoever_flushes_takes_everybody_along;
mod without_a_log_commits_are_durable_in_wal;

//! What the boundary must hold, one rule in a file, named as the sentence that holds.

#![expect(unsafe_code, reason = "tests call SQLite's C interface directly")]
#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

#[path = "../common/mod.rs"]
mod common;

mod a_busy_handler_is_called_only_inside_its_file;
mod a_file_may_know_its_connection;
mod a_method_table_follows_the_mode;
mod a_panic_becomes_an_error_and_latches_the_file;
mod commit_phase_two_errors_reach_the_application;
mod databases_work_in_every_journal_mode;
mod functions_take_and_give_every_type;
mod names_of_our_own_open_files_of_the_host;
mod nobody_opens_a_file_meanwhile;
mod pragma_texts_reach_the_user;
mod statements_are_told_until_the_host_takes_the_hook;
mod statements_run_before_a_pragma_is_answered;
mod tables_are_eponymous_and_know_their_schema;
mod typed_controls_reach_the_wrapped_file;
mod uri_parameters_come_with_non_utf8_paths;
mod with_file_sees_only_its_own_files;
mod x_delete_passes_sync_dir;
mod x_fetch_gives_the_hosts_pages;
mod x_full_pathname_tells_of_symbolic_links;
mod x_open_clears_methods_on_failure;
mod x_read_zero_fills_short_reads;
mod x_set_system_call_reaches_the_host;
mod x_shm_map_absent_keeps_rollback_mode;
mod x_sync_passes_its_flags;

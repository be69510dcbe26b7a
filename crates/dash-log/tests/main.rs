//! The log on simulated storage, and on files.

mod common;

mod a_mapped_log_is_stored_to_and_read_back;
mod a_power_loss_in_memory_leaves_a_prefix;
mod a_power_loss_leaves_the_chain_or_a_part_of_it;
mod a_record_counts_whole_or_not_at_all;
mod a_session_serves_any_engine;
mod an_annotation_changes_nothing;
mod differences_turn_one_image_into_another;
mod format_md_shows_the_bytes;
mod no_number_is_believed;
mod nobody_who_waits_is_overlooked;
mod released_formats_are_read_for_ever;
mod the_file_is_made_once;
mod the_newest_window_is_what_counts;
mod the_ring_never_eats_its_window;
mod what_it_costs;

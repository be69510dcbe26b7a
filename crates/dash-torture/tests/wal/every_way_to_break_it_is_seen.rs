//! Each way to break the engine, and the stories that see it, which are told over an engine that is
//! broken so, and must fail.

use dash_wal::mutation::{self, Mutation};

use crate::a_checkpoint_copies_what_it_has_read_of as copies;
use crate::a_checkpoint_in_off_takes_nothing_from_others as off;
use crate::a_closed_database_is_plain_whatever_is_lost as closed;
use crate::a_commit_is_known_by_its_own_frame as own_frame;
use crate::a_database_comes_to_rest_while_it_is_open as rest;
use crate::a_difference_is_made_against_the_window as difference;
use crate::a_file_moved_over_an_open_database_is_whole as moved;
use crate::a_flush_that_failed_is_made_good as failed;
use crate::a_frame_that_was_written_twice_is_as_the_log_has_it as twice;
use crate::a_generation_is_announced_before_its_header as generation;
use crate::a_log_at_rest_says_where_it_goes_on as at_rest;
use crate::a_log_elsewhere_is_found_or_refused as elsewhere;
use crate::a_log_elsewhere_is_made_before_it_is_used as made;
use crate::a_log_in_memory_costs_no_flush as memory;
use crate::a_log_of_another_state_is_refused as another;
use crate::a_log_that_is_kept_is_kept_whole as kept;
use crate::a_log_without_its_wal_is_void as absent;
use crate::a_lost_log_is_noticed as lost;
use crate::a_normal_commit_is_durable_with_the_next_checkpoint as normal;
use crate::a_stock_writers_frames_get_their_checksums as sums;
use crate::a_stopped_leader_stops_nobody as stopped;
use crate::a_transaction_that_has_read_goes_on_to_write as upgraded;
use crate::a_wal_in_memory_is_one_processs as alone;
use crate::a_wal_that_lost_its_blocks_is_missed as blocks;
use crate::a_writer_that_dies_leaves_no_frame_without_checksum as unsummed;
use crate::all_have_the_same_files_or_are_refused as same;
use crate::before_the_first_record_all_names_are_durable as names;
use crate::statements_carry_commits as carry;
use crate::stock_sqlite_checkpoints_where_it_may as checkpointed;
use crate::stock_sqlite_reads_along_and_does_not_write as stock;
use crate::stock_sqlite_writes_along_where_it_is_let_in as beside;
use crate::the_ring_overwrites_nothing_that_is_needed as ring;
use crate::what_a_commit_ran_is_said_of_it_alone as said_alone;
use crate::what_a_kill_took_from_memory_nobody_misses as taken;
use crate::what_a_killed_process_left_is_written_again as rewritten;
use crate::what_a_stock_survivor_writes_after_a_kill_is_kept as survivor;
use crate::what_is_not_in_the_database_is_not_deleted as uncopied;
use crate::what_may_be_rolled_back_is_not_in_the_log as undeferred;
use crate::what_shm_says_of_a_missing_wal_counts as says;
use crate::what_was_left_is_told_from_what_was_put_there as put;
use crate::without_a_log_commits_are_durable_in_wal as without_log;

/// A way to break the engine, and the stories that see it.
type Told = (Mutation, &'static [fn()]);

const TOLD: &[Told] = &[
    (Mutation::AnnotationAddsBlocks, &[said_alone::at_the_cost_of_nothing]),
    (Mutation::NoteOfAnother, &[said_alone::where_one_writes_the_record_of_several]),
    (Mutation::RolledBackNoteKept, &[said_alone::and_nothing_of_what_was_rolled_back]),
    (Mutation::RecordNotFlushed, &[normal::and_a_full_one_at_once]),
    (Mutation::NoBarrier, &[normal::in_the_same_connection]),
    (Mutation::JournalPromisesNothing, &[off::after_commits_in_a_rollback_mode]),
    (Mutation::NoForcedBarrier, &[off::passive, off::restart]),
    (Mutation::ResetUnseen, &[copies::not_where_a_writer_has_begun_anew]),
    (Mutation::BarrierOutlivesFrames, &[off::alone_and_without_locks]),
    (
        Mutation::DatabaseNotFlushed,
        &[off::and_then_somebody_else_begins_anew, closed::when_a_checkpoint_truncates_it],
    ),
    (Mutation::OwnFramesOnly, &[own_frame::and_others_may_be_further]),
    (
        Mutation::BaseBeforeWindow,
        &[difference::after_a_failed_flush, difference::after_a_large_transaction],
    ),
    (Mutation::FrameBefore, &[difference::after_others_wrote_several_pages]),
    (Mutation::OwnFramesOutlive, &[twice::after_others_wrote_over_what_was_rolled_back]),
    (Mutation::SpoiltFramesLogged, &[twice::after_a_savepoint_was_rolled_back]),
    (Mutation::DeadLeftUnsummed, &[unsummed::to_the_next_writer, unsummed::nor_to_a_checkpoint]),
    (Mutation::IndexRemovedEarly, &[taken::nor_is_it_left_with_an_index_of_its_own]),
    (
        Mutation::UnsealedEarly,
        &[taken::where_recovery_is_refused, taken::where_recovery_is_cut_off],
    ),
    (Mutation::LeftUnsummed, &[unsummed::nor_does_the_last_one_to_close_leave_one]),
    (Mutation::FoundUnsummed, &[unsummed::nor_to_who_opens_it_beside_a_stock_reader]),
    (Mutation::UnseenTaken, &[rewritten::but_for_frames_that_nobody_could_see]),
    (Mutation::UnsummedTaken, &[unsummed::while_it_stands_still]),
    (Mutation::WrapsOverWindow, &[ring::within_a_generation]),
    (Mutation::WrapWithoutFlush, &[ring::within_a_generation]),
    (Mutation::BeginningNotKept, &[ring::that_grows]),
    (Mutation::GenerationOverFullRing, &[ring::at_the_end_of_one]),
    (Mutation::HeaderNotFlushed, &[generation::and_on_the_device_before_its_frames]),
    (Mutation::TruncationEndsGeneration, &[closed::not_by_a_limit_in_its_first_commit]),
    (Mutation::UndeferredInLog, &[undeferred::where_it_is_rolled_back]),
    (Mutation::OwnHeaderPut, &[generation::and_a_stock_writer_goes_on_with_it]),
    (Mutation::NoGuard, &[beside::and_checkpoints_at_rest_alone]),
    (Mutation::GuardedAtRest, &[beside::and_checkpoints_at_rest_alone]),
    (
        Mutation::NotAdopted,
        &[beside::and_its_generations_are_gone_on_with, checkpointed::in_a_session],
    ),
    (Mutation::AdoptedOverDirty, &[beside::also_those_that_are_on_no_device]),
    (
        Mutation::HeaderTrusted,
        &[beside::also_where_it_writes_the_header_that_a_dead_writer_announced],
    ),
    (
        Mutation::CopiedForStrangers,
        &[
            beside::nor_from_a_checkpoint_of_dash_in_off,
            checkpointed::and_begins_anew_what_dash_has_copied_in_off,
        ],
    ),
    (Mutation::ReadersUnguarded, &[beside::nor_where_the_one_that_began_the_session_was_killed]),
    (Mutation::ReadUnadopted, &[checkpointed::and_a_reader_that_waits_sees_what_is_durable]),
    (
        Mutation::RestartsBesideCheckpoint,
        &[
            checkpointed::and_dash_begins_anew_beside_none_of_its_checkpoints,
            beside::and_nothing_is_begun_anew_beside_its_checkpoint,
        ],
    ),
    (Mutation::StrangersCopyAtRestAlone, &[checkpointed::and_dash_flushes_what_it_copied_in_off]),
    (Mutation::RoundsUnsummed, &[sums::before_they_are_logged_or_copied]),
    (Mutation::StrangersCopyNothing, &[beside::and_a_checkpoint_of_it_in_off_takes_nothing]),
    (Mutation::StrangersPromiseNothing, &[beside::nor_from_itself]),
    (Mutation::StrangersUnsummed, &[sums::from_the_next_writer]),
    (Mutation::NoNameFence, &[names::at_its_first_byte]),
    (Mutation::FenceRemovedEarly, &[closed::when_a_part_of_wal_would_come_back]),
    (Mutation::DirectoryNotFlushed, &[names::at_its_first_byte]),
    (Mutation::NoEnd, &[closed::and_an_older_value_may_come_back]),
    (Mutation::DeletedFull, &[closed::and_nothing_is_in_what_is_deleted]),
    (
        Mutation::DeletedUncopied,
        &[
            uncopied::by_the_last_one_to_close,
            uncopied::nor_by_one_that_has_the_database_for_itself,
            uncopied::nor_what_was_there_before,
            uncopied::nor_is_it_emptied,
            uncopied::nor_is_wal_mode_left,
            uncopied::nor_from_memory,
        ],
    ),
    (Mutation::EndIgnored, &[closed::when_a_part_of_wal_would_come_back]),
    (Mutation::MovedEnded, &[moved::or_refused]),
    (Mutation::KeptNotFlushed, &[closed::when_it_is_to_stay]),
    (
        Mutation::PrefixByNumber,
        &[
            twice::after_a_process_died_before_its_commit_was_visible,
            twice::after_a_transaction_that_spilled_was_rolled_back,
        ],
    ),
    (Mutation::RecoveredNotFlushed, &[normal::and_a_full_one_at_once]),
    (Mutation::FailedRecoveryForgotten, &[failed::by_the_next_recovery]),
    (Mutation::UnusedTrusted, &[failed::and_the_next_session_takes_no_head_for_durable]),
    (Mutation::HeadUnclaimed, &[carry::or_whoever_recovers_is_killed]),
    (Mutation::FailedFlushForgotten, &[failed::and_the_next_session_writes_what_was_copied_again]),
    (Mutation::WalNotRewritten, &[failed::and_the_next_opener_believes_nothing]),
    (Mutation::OlderLogReplayed, &[survivor::that_it_writes_under_another_header]),
    (Mutation::OrderBySequence, &[generation::whichever_connection_announced_it]),
    (Mutation::HeaderLeftOld, &[generation::and_whoever_comes_next_goes_on]),
    (Mutation::LogNotNamed, &[lost::and_its_name_is_durable_before_the_fence_stands]),
    (Mutation::HeadNotDurable, &[lost::whatever_is_lost_when_a_new_one_is_made]),
    (Mutation::WipedLogTaken, &[lost::also_where_it_was_written_over]),
    (Mutation::LostLogIgnored, &[lost::after_a_power_loss, lost::also_where_it_was_written_over]),
    (Mutation::AbsentRefused, &[absent::after_a_stock_survivor_deleted_it]),
    (Mutation::CheckpointTaken, &[absent::once_what_it_held_is_durable]),
    (Mutation::AbsentBelieved, &[absent::unless_the_database_lacks_what_it_says]),
    (Mutation::UnsharedBelieved, &[absent::after_a_stock_survivor_left_no_page_of_it]),
    (Mutation::IndexUnread, &[says::where_no_page_of_the_log_is_missing]),
    (Mutation::AnyIndexBelieved, &[put::nor_where_shm_is_of_nobody_who_was_killed]),
    (Mutation::LeftUnsummedMissed, &[unsummed::nor_is_it_taken_for_one_that_was_cut]),
    (Mutation::LeftGoneTaken, &[put::where_wal_is_gone]),
    (Mutation::LeftCutTaken, &[put::where_wal_was_cut_or_is_an_older_one]),
    (Mutation::LeftStrangeTaken, &[put::where_wal_is_of_a_session_before]),
    (Mutation::LeftVoidTaken, &[put::where_wal_is_gone, put::where_the_database_is_of_before]),
    (Mutation::LeftUnsaid, &[put::where_the_power_was_lost_at_rest]),
    (Mutation::LeftAnotherTaken, &[put::where_the_database_is_an_older_one]),
    (Mutation::SurvivorOverlooked, &[kept::but_not_beside_who_has_the_removed_one]),
    (Mutation::HoleBelieved, &[kept::where_a_survivor_copied_a_hole]),
    (
        Mutation::IndexOutvoted,
        &[says::where_the_header_is_newer_than_the_logs, says::where_statements_carry_commits],
    ),
    (
        Mutation::IndexEmptied,
        &[
            says::where_no_page_of_the_log_is_missing,
            says::also_after_openers_that_were_killed,
            says::also_to_who_had_only_opened,
        ],
    ),
    (Mutation::GapKept, &[says::a_log_is_kept_behind_no_gap]),
    (
        Mutation::RemovedTakenForAnother,
        &[says::a_log_is_of_a_database_into_which_nothing_was_copied],
    ),
    (Mutation::AnewInPlace, &[kept::wherever_that_is_cut_off]),
    (Mutation::AnewInGeneration, &[kept::wherever_that_is_cut_off]),
    (Mutation::AnewNotFlushed, &[kept::wherever_that_is_cut_off]),
    (Mutation::UncopiedBelieved, &[absent::nor_where_a_page_was_written_as_it_was]),
    (Mutation::LostTakenForDeleted, &[blocks::where_the_log_has_each_frame]),
    (Mutation::StoppedBelieved, &[stopped::who_commits]),
    (Mutation::RecoversBesideExclusive, &[survivor::while_it_has_the_database_for_itself]),
    (Mutation::SessionBeginsElsewhere, &[at_rest::after_flushes_that_failed_too]),
    (Mutation::FirstRecordNotFlushed, &[at_rest::with_a_record_that_is_flushed]),
    (Mutation::StampNotFlushed, &[another::but_not_where_a_killed_process_had_copied_into_it]),
    (
        Mutation::AnotherTaken,
        &[
            another::where_an_older_database_is_put_back,
            another::where_the_log_is_another_databases,
        ],
    ),
    (Mutation::CopyForgotten, &[another::but_not_where_a_stock_survivor_has_changed_every_page]),
    (
        Mutation::HalfMadeTaken,
        &[made::also_where_its_maker_was_killed, lost::nor_where_its_maker_was_killed],
    ),
    (
        Mutation::ReplacedIndexJoined,
        &[same::where_shm_was_replaced, same::nor_does_one_that_leaves_end_their_session],
    ),
    (Mutation::OtherFilesOverlooked, &[same::nor_beside_a_stock_survivor_that_has_the_former_one]),
    (Mutation::ReplacedWalJoined, &[same::where_wal_was_replaced]),
    (Mutation::ReplacedWalWritten, &[same::where_wal_was_replaced]),
    (
        Mutation::JoinsWithoutLog,
        &[lost::by_who_comes_while_others_use_it, elsewhere::not_where_only_others_find_it],
    ),
    (Mutation::SignNotMade, &[elsewhere::as_its_sign_says_before_the_first_record]),
    (
        Mutation::SignNotChecked,
        &[elsewhere::not_where_it_is_lost, elsewhere::nor_where_it_was_cut_or_wiped],
    ),
    (Mutation::ForeignLogTaken, &[elsewhere::not_where_another_one_lies]),
    (Mutation::LostPlaceEmpty, &[elsewhere::not_where_it_is_lost]),
    (Mutation::CopiedSignTaken, &[elsewhere::not_by_a_copy]),
    (Mutation::PlantedSignFollowed, &[elsewhere::not_by_a_sign_with_another_name]),
    (Mutation::AlienLogTaken, &[elsewhere::not_where_another_name_leads_to_it]),
    (Mutation::MadeUnasked, &[made::and_is_made_only_by_who_names_its_place]),
    (Mutation::RetiredEarly, &[elsewhere::and_moves_at_rest]),
    (Mutation::MovedBehindFence, &[elsewhere::also_once_it_was_recovered]),
    (Mutation::SumsBegunAnew, &[memory::by_one_fence_each, memory::whatever_is_lost_at_any_step]),
    (Mutation::EndsUnsaid, &[memory::by_one_fence_each, memory::whatever_is_lost_at_any_step]),
    (Mutation::StoredNotFenced, &[memory::also_what_is_only_to_be_written]),
    (Mutation::RestsUnfenced, &[rest::and_is_plain_whatever_is_lost]),
    (Mutation::RestsUnflushed, &[rest::and_is_plain_whatever_is_lost]),
    (Mutation::RestsAfterFailedFlush, &[rest::or_goes_on_whatever_fails]),
    (Mutation::FenceForgotten, &[rest::and_somebody_else_goes_on_with_it]),
    (Mutation::RestsUnsaid, &[rest::also_where_who_does_it_is_killed]),
    (Mutation::StoppedWaitedForAgain, &[rest::but_who_is_stopped_in_it_is_waited_for_once]),
    (Mutation::RestsUnseen, &[rest::unless_somebody_commits_meanwhile]),
    (Mutation::FramesBehindStatements, &[carry::with_frames_behind_them]),
    (Mutation::CarriedNotFlushed, &[carry::until_a_checkpoint_copies_their_pages]),
    (Mutation::EndForgotten, &[carry::until_a_checkpoint_copies_their_pages]),
    (Mutation::ExecutedOnTop, &[carry::though_recovery_is_cut_off_again]),
    (Mutation::NotExecuted, &[carry::whatever_is_lost]),
    (Mutation::OthersExecute, &[carry::but_another_sqlite_does_not_run_them]),
    (Mutation::TwoRunners, &[carry::never_of_two_sqlites_in_a_window]),
    (Mutation::OtherwiseTaken, &[carry::but_are_not_run_on_what_they_have_made]),
    (Mutation::GoneTaken, &[carry::unless_the_wal_that_they_are_of_is_gone]),
    (Mutation::NoLife, &[failed::and_the_next_opener_believes_nothing]),
    (
        Mutation::CommitFailsForLog,
        &[without_log::where_it_can_not_be_begun, without_log::nor_is_any_other_call_a_reason],
    ),
    (Mutation::MemoryWithoutRoom, &[alone::and_a_full_disk_takes_no_commit]),
    (Mutation::OthersLetIn, &[alone::and_no_other_one_joins]),
    (Mutation::WalNotSealed, &[alone::nor_does_one_that_is_opening_it_at_a_kill]),
    (Mutation::LeftToUnread, &[stock::beside_those_that_have_not_read_it_finds_a_plain_database]),
    (Mutation::StockLetIn, &[alone::stock_sqlite_sees_nothing_of_it]),
    (Mutation::MemoryOutlivesProcess, &[alone::nor_one_that_was_not_flushed]),
    (Mutation::LeftInMemory, &[alone::nobody_leaves_it_behind]),
    (
        Mutation::MemoryNotWritten,
        &[alone::and_what_the_log_has_no_room_for_is_written_back, alone::and_comes_to_rest],
    ),
    (Mutation::FullForgotten, &[alone::and_a_flush_that_finds_no_space_is_made_later]),
    (Mutation::HeaderInMemory, &[alone::its_header_is_on_the_device]),
    (Mutation::CachedPagesKept, &[upgraded::what_it_has_dropped_since_is_no_reason]),
    (Mutation::CachedPagesForgotten, &[upgraded::nor_what_it_has_of_earlier_transactions]),
    (Mutation::RestartForgetsReads, &[upgraded::nor_what_it_had_before_it_began_wal_anew]),
    (Mutation::PaddingMoved, &[upgraded::also_where_it_counts_frames_that_pad_a_sector]),
    (Mutation::ViewOvertaken, &[upgraded::also_where_sqlite_does_not_tell_that_it_reads]),
    (Mutation::ExclusiveReadsKept, &[upgraded::nor_what_it_has_read_as_the_only_one]),
    (Mutation::ReadsUnseen, &[upgraded::but_not_where_they_wrote_what_it_has_read]),
    (Mutation::SnapshotRead, &[upgraded::where_others_wrote_elsewhere]),
    (Mutation::RolledBackSummed, &[upgraded::with_frames_that_are_written_over]),
    (Mutation::ViewedUnsummed, &[upgraded::with_frames_that_are_written_again]),
    (Mutation::GoesOnPoisoned, &[failed::or_nothing_is_written_any_more]),
];

/// Ways that break nothing by themselves, and what stands behind each.
const HARMLESS: &[(Mutation, &str)] = &[
    (
        Mutation::DeletionUndone,
        "a -wal is cut to nothing, durably, before it is deleted: one that comes back is empty",
    ),
    (
        Mutation::BarrierTakenForCommit,
        "CKPT_START makes the barrier that a checkpoint's flush was not",
    ),
    (
        Mutation::SaltsNotChecked,
        "whoever reads frames back holds a read lock, or CKPT, until that is done",
    ),
    (
        Mutation::WordsBeforeFlush,
        "who finds the word Writes set flushes -wal, and skips the number",
    ),
    (
        Mutation::NoGenerationRecord,
        "the header is on the device before a frame follows it, and an empty generation holds nothing",
    ),
    (Mutation::GenerationNotFlushed, "so it is with a record that is not durable"),
    (
        Mutation::SuccessorOnly,
        "the header is on the device before a frame follows it, so only the one before is found",
    ),
    (
        Mutation::LogTrustedAfterKill,
        "recovery makes -wal durable, and the log void, before anybody goes on",
    ),
    (
        Mutation::SequenceReused,
        "a session begins behind the sequence in the head, which is the greatest",
    ),
];

#[test]
fn each_by_its_stories() {
    let mut unseen = Vec::new();
    for (mutation, stories) in TOLD {
        for (number, story) in stories.iter().enumerate() {
            mutation::set(Some(*mutation));
            let passed = std::panic::catch_unwind(story).is_ok();
            mutation::set(None);
            let reached = mutation::hits();
            println!("{mutation:?} {number}: seen {}, reached {reached} times", !passed);
            if passed || reached == 0 {
                unseen.push((mutation, number));
            }
        }
    }
    assert!(unseen.is_empty(), "no story sees {unseen:?}");
}

#[test]
fn and_is_in_a_table() {
    let told = TOLD.iter().map(|(mutation, _)| mutation);
    let all: Vec<_> = told.chain(HARMLESS.iter().map(|(mutation, _)| mutation)).collect();
    let absent: Vec<_> =
        Mutation::ALL.iter().map(|(mutation, _)| mutation).filter(|m| !all.contains(m)).collect();
    assert!(absent.is_empty(), "no story for {absent:?}");
}

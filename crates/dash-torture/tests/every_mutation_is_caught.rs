//! The test of the tests: each named way to break an engine is caught, by a case of the explorer or
//! by a test of the engine, and the unbroken engine passes both.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

extern crate dash_shadow_mutants as dash_shadow;

// The same subject, over the engine with the ways to break it.
use dash_torture::{sim, variant};
#[path = "../src/shadow/subject.rs"]
mod shadow;

// Tests of the engine and what they share, over the engine with the ways to break it.
#[path = "../../dash-shadow/tests/common/mod.rs"]
mod common;
#[path = "../../dash-shadow/tests/files_copied_together_belong_together.rs"]
mod copied;
#[path = "../../dash-shadow/tests/the_current_copy_is_not_written.rs"]
mod current_copy;
#[path = "../../dash-shadow/tests/readers_finish_what_was_decided.rs"]
mod decided;
#[path = "../../dash-shadow/tests/an_exchange_that_was_cut_off_is_finished.rs"]
mod exchange;
#[path = "../../dash-shadow/tests/a_flush_that_failed_is_never_believed.rs"]
mod failed_flush;
#[path = "../../dash-shadow/tests/nobody_sees_an_empty_file_for_a_database_with_a_commit.rs"]
mod first_name;
#[path = "../../dash-shadow/tests/a_flushed_commit_keeps_what_it_was_made_on.rs"]
mod flushed_on;
#[path = "../../dash-shadow/tests/a_former_copy_that_is_open_elsewhere_is_not_forgotten.rs"]
mod former_copy;
#[path = "../../dash-shadow/tests/what_is_kept_for_readers_is_given_back.rs"]
mod kept;
#[path = "../../dash-shadow/tests/a_killed_writer_leaves_nothing_that_the_next_one_trusts.rs"]
mod killed_writer;
#[path = "../../dash-shadow/tests/giving_the_name_back_loses_nothing.rs"]
mod name_back;
#[path = "../../dash-shadow/tests/without_an_exchange_or_a_journal_no_name_is_lost.rs"]
mod names_kept;
#[path = "../../dash-shadow/tests/a_narrowed_intent_hides_nothing.rs"]
mod narrowed;
#[path = "../../dash-shadow/tests/a_commit_that_nobody_was_told_of_gives_way.rs"]
mod not_told;
#[path = "../../dash-shadow/tests/a_backup_in_the_place_of_what_was_killed_is_refused.rs"]
mod older;
#[path = "../../dash-shadow/tests/names_that_an_older_dash_left_behind_are_flushed.rs"]
mod older_names;
#[path = "../../dash-shadow/tests/what_was_put_back_is_flushed_before_it_is_built_on.rs"]
mod put_back;
#[path = "../../dash-shadow/tests/read_only_connections_see_what_was_acknowledged.rs"]
mod read_only;
#[path = "../../dash-shadow/tests/settling_is_in_nobodys_way.rs"]
mod settling;
#[path = "../../dash-shadow/tests/a_commit_over_several_databases_is_published_in_the_end.rs"]
mod several;
#[path = "../../dash-shadow/tests/what_a_smaller_database_leaves_is_given_back.rs"]
mod smaller;
#[path = "../../dash-shadow/tests/a_commit_that_stands_is_no_error.rs"]
mod stands;
#[path = "../../dash-shadow/tests/what_stock_sqlite_writes_after_a_session_is_kept.rs"]
mod stock_after;
#[path = "../../dash-shadow/tests/a_torn_list_names_no_commit.rs"]
mod torn_list;
#[path = "../../dash-shadow/tests/what_was_undone_stays_undone.rs"]
mod undone;

use std::sync::{Arc, Mutex};

use dash_shadow_mutants::mutation::{self, Mutation};
use dash_torture::sim::plan::Plan;
use dash_torture::sim::{Seen, Violation, run_case};
use shadow::Simulation;

/// A way, the variant and the case that catch it, and the seed. The seed was found by trying one
/// after the other from 0; where a change of the engine has moved it, the next ones are tried.
type Row = (Mutation, &'static str, &'static str, u64);

const TABLE: &[Row] = &[
    (Mutation::CommitNotFlushed, "single", "two_processes/page=512", 0),
    (Mutation::ExchangeBeforeFlush, "single", "two_processes/page=512", 0),
    (Mutation::PreparedAgain, "single", "two_processes/page=512", 0),
    (Mutation::FailedFlushRetried, "single", "many_processes/page=512", 9),
    (Mutation::FailedFlushNotUndone, "single", "many_processes/page=512", 4),
    (Mutation::NothingCarried, "single", "two_processes/page=512", 0),
    (Mutation::SpilledPagesNotListed, "single", "two_processes/page=512", 1),
    (Mutation::FirstPageNotCleared, "single", "two_processes/page=512", 0),
    (Mutation::TailAlwaysCounts, "single", "two_processes/page=512", 0),
    (Mutation::NoParent, "single", "two_processes/page=512", 0),
    (Mutation::PagesNotPutAside, "single", "many_processes/page=512", 0),
    (Mutation::OverwritingNotAnnounced, "single", "many_processes/page=512", 0),
    (Mutation::PinnedReadersIgnored, "single", "many_processes/page=512", 0),
    (Mutation::StockReadersIgnored, "single", "many_processes/page=512", 0),
    (Mutation::NotDemoted, "single", "two_processes/page=512", 0),
    (Mutation::NoNameFence, "single", "two_processes/page=512", 0),
    (Mutation::NameFenceNotFlushed, "single", "two_processes/page=512", 0),
    (Mutation::FenceInodeNotFlushed, "single", "two_processes/page=512/names=sector", 0),
    (Mutation::EmptyFileNotFlushed, "single", "two_processes/page=512/names=sector", 0),
    (Mutation::ShadowRemovedBesideFence, "single", "two_processes/page=512", 0),
    (Mutation::NoHeaderFence, "single", "many_processes/page=512", 0),
    (Mutation::PageChecksumsIgnored, "single", "two_processes/page=512", 0),
    (Mutation::FirstUnitOnlyChecked, "single", "two_processes/page=4096", 0),
    (Mutation::LongListBelieved, "single", "two_processes/page=4096", 2),
    (Mutation::BlockChecksumIgnored, "single", "two_processes/page=512", 9),
    (Mutation::NoIntent, "single", "many_processes/page=512", 25),
    (Mutation::IntentNotFlushed, "single", "many_processes/page=512", 110),
    (Mutation::NarrowedUnflushed, "single", "sessions/page=512", 0),
    (Mutation::UnflushedBuiltOn, "single", "sessions/page=512", 0),
    (Mutation::RepairIgnoresIntent, "single", "two_processes/page=512", 0),
    (Mutation::GrowthNotFlushed, "single", "two_processes/page=4096", 1),
    (Mutation::NoUndo, "single", "two_processes/page=512", 1),
    (Mutation::UndoneInPart, "single", "many_processes/page=512", 6),
    (Mutation::RestoreNotFlushed, "single", "two_processes/page=512", 1),
    (Mutation::SettledWithoutCopying, "single", "two_processes/page=512", 7),
    (Mutation::PaperLiteral, "paper", "two_processes/page=512", 0),
    (Mutation::WinnerNotRewritten, "single", "many_processes/page=512", 173),
    (Mutation::WriterLockLost, "single", "many_processes/page=512", 8),
    (Mutation::StaleSnapshotMayWrite, "single", "many_processes/page=512", 11),
    (Mutation::FirstPageFirst, "single", "many_processes/page=512", 32),
    (Mutation::FirstPageWithOthers, "single", "many_processes/page=65536", 9),
    (Mutation::WinnerNotMadeDurable, "single", "two_processes/page=512", 2),
    (Mutation::WinnerNotFlushed, "single", "two_processes/page=512", 2),
    (Mutation::UndoneByNames, "single", "two_processes/page=512", 0),
    (Mutation::DeadWriterIgnored, "single", "two_processes/page=4096", 0),
    (Mutation::LifeIgnored, "single", "two_processes/page=512", 0),
    (Mutation::NewShadowNotFlushed, "single", "two_processes/page=4096", 5),
    (Mutation::NewShadowNameNotFlushed, "single", "two_processes/page=512", 0),
    (Mutation::GoneSuperJournalNotFlushed, "single", "attached/page=512", 24),
    (Mutation::SuperJournalIgnored, "single", "attached/page=512", 0),
    (Mutation::SuperJournalRemovedEarly, "single", "attached/page=512", 0),
    (Mutation::DeadWriterUndone, "single", "many_processes/page=512", 201),
    (Mutation::SettledBelieved, "single", "many_processes/page=512", 483),
    (Mutation::SupersededBeforeFlush, "single", "many_processes/page=512", 483),
    (Mutation::NaiveListReset, "single", "many_processes/page=512", 132),
    (Mutation::NameKeptFromStock, "single", "two_processes/page=512", 0),
    (Mutation::NotProtected, "single", "two_processes/page=65536", 10),
    (Mutation::ReplacedNotFenced, "single", "two_processes/page=512", 8),
    (Mutation::FoundFenceBelieved, "single", "two_processes/page=512/names=sector", 2),
];

/// A way, and the tests of the engine that catch it: what needs two accidents that fit together, or
/// few and certain sectors, is told as a story there.
type Told = (Mutation, &'static [fn()]);

const TOLD: &[Told] = &[
    (Mutation::UnlockingFailsCommit, &[stands::whatever_lock_can_not_be_given_back]),
    (
        Mutation::NamesTakenBackNotFlushed,
        &[first_name::a_first_commit_whose_name_is_not_flushed_leaves_a_database],
    ),
    (Mutation::CutBeforeTail, &[smaller::whenever_the_power_goes_nothing_is_lost]),
    (Mutation::CutNotFlushed, &[smaller::a_cut_is_durable_whatever_fails_later]),
    (Mutation::CutNotRepeated, &[smaller::a_cut_whose_flush_failed_is_made_again]),
    (Mutation::CutWhileOpen, &[smaller::not_of_a_file_that_somebody_else_has_open]),
    (Mutation::PunchedUnderReader, &[smaller::nothing_that_a_reader_needs]),
    (Mutation::ListPunched, &[smaller::nor_the_page_list]),
    (Mutation::ListChecksumIgnored, &[torn_list::a_list_of_two_commits]),
    (Mutation::PreparedAgain, &[undone::under_an_exclusive_lock_what_comes_after_a_rollback]),
    (Mutation::StaleIntentTrusted, &[failed_flush::f4_an_intent_that_was_being_widened]),
    (Mutation::IntentNotRewritten, &[failed_flush::f4_an_intent_that_was_being_widened]),
    (Mutation::SettledBelieved, &[failed_flush::f3_a_shadow_that_was_being_mended]),
    (
        Mutation::SupersededBeforeFlush,
        &[
            failed_flush::f3_a_shadow_that_was_being_mended,
            undone::a12_what_the_next_writer_decided,
            undone::a12_what_the_next_opener_decided,
        ],
    ),
    (Mutation::FencedBesideWriter, &[settling::who_commits_between_any_two_calls]),
    (Mutation::SettledNotFlushed, &[settling::what_is_settled_is_durable]),
    (Mutation::SettledForAnother, &[settling::who_commits_meanwhile]),
    (Mutation::SettlerKeepsNobodyOff, &[settling::who_commits_meanwhile]),
    (Mutation::GrowthTakenOver, &[settling::a_tail_that_was_being_moved]),
    (Mutation::OldRecordsCount, &[kept::what_only_those_needed_who_have_left_is_not_kept]),
    (
        Mutation::KeptForgotten,
        &[
            kept::each_page_is_kept_once_for_one_reader,
            kept::what_only_those_needed_who_have_left_is_not_kept,
        ],
    ),
    (Mutation::TrimmedTooFar, &[kept::what_only_those_needed_who_have_left_is_not_kept]),
    (Mutation::DecidedNotRead, &[decided::by_the_one_that_died, decided::and_by_who_may_only_read]),
    (Mutation::NarrowedToMore, &[narrowed::not_what_only_it_marks]),
    (Mutation::NarrowedUnflushed, &[narrowed::not_what_was_never_flushed]),
    (Mutation::UnflushedBuiltOn, &[flushed_on::on_commits_that_were_not]),
    (
        Mutation::ModifiedTakenForTorn,
        &[stock_after::after_a_kill_as_far_as_the_block_in_page_1_is_left],
    ),
    (Mutation::NamesBelievedDurable, &[older_names::by_the_first_commit_of_the_next_session]),
    (Mutation::TemporaryNameIgnored, &[read_only::where_the_newest_has_the_temporary_name]),
    (Mutation::NamesLeftBehind, &[stock_after::after_a_clean_close_whatever_is_left_of_the_blocks]),
    (
        Mutation::FirstNameNotFlushed,
        &[first_name::the_first_commit_has_the_name_when_it_is_acknowledged],
    ),
    (
        Mutation::NoLeap,
        &[first_name::nor_is_a_later_one_for_an_older_copy_that_shows_nothing_of_dash_any_more],
    ),
    (
        Mutation::CounterIgnored,
        &[first_name::nor_is_a_later_one_for_an_older_copy_that_shows_nothing_of_dash_any_more],
    ),
    (
        Mutation::InodesBelieved,
        &[
            copied::whichever_of_the_two_has_the_inode_number_of_its_block,
            copied::also_where_the_database_is_an_empty_file,
            copied::also_where_the_database_was_about_to_grow,
            copied::also_where_nothing_of_dash_is_left_in_the_database,
        ],
    ),
    (
        Mutation::StaleBlockCounts,
        &[first_name::nor_where_a_block_of_an_earlier_pair_is_left_in_page_1],
    ),
    (
        Mutation::FoundBelievedDurable,
        &[
            put_back::a_backup_of_both_files_or_of_one,
            put_back::names_that_were_changed_by_hand,
            put_back::the_name_of_the_shadow,
        ],
    ),
    (
        Mutation::HeldShadowReplaced,
        &[former_copy::where_it_is_the_empty_file_that_the_first_commit_replaced],
    ),
    (
        Mutation::UnchangedTakenForChange,
        &[name_back::nor_does_what_stock_sqlite_writes_on_the_commit_before],
    ),
    (
        Mutation::WrittenBehindIgnored,
        &[
            former_copy::nor_what_a_reader_wrote_there,
            former_copy::nor_what_it_wrote_over_every_trace,
        ],
    ),
    (
        Mutation::NamedFileRemoved,
        &[names_kept::of_the_empty_file_that_a_cut_off_first_commit_replaced],
    ),
    (Mutation::ReaderMayWrite, &[former_copy::where_the_current_copy_is_being_read]),
    (Mutation::HiddenCopyIgnored, &[exchange::what_a_stock_process_wrote_there_is_refused]),
    (Mutation::OlderTaken, &[older::after_any_number_of_commits, older::also_after_a_power_loss]),
    (Mutation::UnpublishedTaken, &[not_told::to_what_stock_sqlite_wrote_after_it]),
    (Mutation::CoordinationOutlivesPower, &[not_told::and_not_after_a_power_loss]),
    (Mutation::MoveNotFlushed, &[failed_flush::f13_a_tail_that_was_being_moved]),
    (Mutation::BuriedBelieved, &[failed_flush::f3_a_commit_that_was_being_buried]),
    (Mutation::NaiveListReset, &[current_copy::not_by_settling]),
    (
        Mutation::CutOffCommitNotForgotten,
        &[undone::a12_what_the_next_writer_decided, undone::a12_what_the_next_opener_decided],
    ),
    (
        Mutation::BuriedNotFlushed,
        &[undone::a12_what_the_next_writer_decided, undone::a12_what_the_next_opener_decided],
    ),
    (
        Mutation::DeadWriterUndone,
        &[
            killed_writer::a11_a_writer_dies_inside_the_three_renames,
            several::by_the_same_connection,
            several::by_another_writer,
        ],
    ),
];

/// Seeds tried after the one in the table: many processes take milliseconds, others up to a second.
fn more(case: &str) -> u64 {
    if case.starts_with("many_processes/") { 2000 } else { 24 }
}

fn run(mutation: Option<Mutation>, variant: &'static str, plan: &Plan) -> Result<(), Violation> {
    mutation::set(mutation);
    let result = run_case(&Simulation, variant, plan, &Arc::new(Mutex::new(Seen::default())));
    mutation::set(None);
    result
}

/// The first of some seeds that catches it, and what was wrong then.
fn catch(row: &Row, seeds: impl Iterator<Item = u64>) -> Option<(u64, String)> {
    let (mutation, variant, case, _) = row;
    let mut reached = 0;
    let caught = seeds.into_iter().find_map(|seed| {
        let plan = Plan::read(case, seed).unwrap();
        let broken = run(Some(*mutation), variant, &plan);
        reached += mutation::hits();
        // An overflow that debug builds notice is nobody's check.
        let Violation(what) = broken.err().filter(|error| !error.0.starts_with("a panic"))?;
        // Not because the engine is broken anyway.
        if let Err(Violation(what)) = run(None, variant, &plan) {
            panic!("the unbroken engine fails {case}, seed {seed}: {what}");
        }
        Some((seed, what.lines().next().unwrap_or_default().chars().take(160).collect()))
    });
    if caught.is_none() {
        println!("    {mutation:?} goes unseen in {variant} {case}; reached {reached} times");
    }
    caught
}

/// Catches rows on two threads; answers those that nothing catches.
fn catch_all(rows: &[Row], seeds: Option<u64>) -> Vec<Mutation> {
    let (next, missed) = (Mutex::new(rows.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let Some(row) = next.lock().unwrap().next() else {
                        break;
                    };
                    let (mutation, variant, case, seed) = row;
                    let began = std::time::Instant::now();
                    match catch(row, *seed..=seed + seeds.unwrap_or(more(case))) {
                        Some((seed, what)) => println!(
                            "    (Mutation::{mutation:?}, \"{variant}\", \"{case}\", {seed}), // {:.1?}: {what}",
                            began.elapsed()
                        ),
                        None => missed.lock().unwrap().push(*mutation),
                    }
                }
            });
        }
    });
    missed.into_inner().unwrap()
}

#[test]
fn every_way_in_the_table() {
    let missed = catch_all(TABLE, None);
    assert!(missed.is_empty(), "nothing catches {missed:?}");
}

#[test]
fn every_way_that_is_told() {
    for (mutation, tests) in TOLD {
        for (number, test) in tests.iter().enumerate() {
            test();
            mutation::set(Some(*mutation));
            let passed = std::panic::catch_unwind(test).is_ok();
            mutation::set(None);
            let reached = mutation::hits();
            assert!(!passed, "{mutation:?} passes its test {number}; reached {reached} times");
            assert!(reached > 0, "test {number} of {mutation:?} fails for another reason");
        }
    }
}

#[test]
fn every_way_is_in_a_table() {
    let caught = TABLE.iter().map(|(mutation, ..)| mutation);
    let all: Vec<_> = caught.chain(TOLD.iter().map(|(mutation, _)| mutation)).collect();
    let absent: Vec<_> =
        Mutation::ALL.iter().map(|(mutation, _)| mutation).filter(|m| !all.contains(m)).collect();
    assert!(absent.is_empty(), "no case for {absent:?}");
}

/// For a new row: `DASH_MUTATION=a,b` names ways, `DASH_CASES` cases, such as
/// two_processes/page=512,many_processes/page=512.
#[test]
#[ignore = "how the table is made"]
fn look_for_rows() {
    let wanted = std::env::var("DASH_MUTATION").unwrap_or_default();
    let cases = std::env::var("DASH_CASES").unwrap_or_else(|_| "two_processes/page=512".to_owned());
    let cases: &'static str = cases.leak();
    let seeds = std::env::var("DASH_SEEDS").map(|seeds| seeds.parse().unwrap()).ok();
    let mut rows = Vec::new();
    for (mutation, _) in Mutation::ALL {
        if wanted.split(',').any(|name| name == format!("{mutation:?}")) {
            for variant in ["single", "paper", "renames"] {
                rows.extend(cases.split(',').map(|case| (*mutation, variant, case, 0)));
            }
        }
    }
    println!("missed: {:?}", catch_all(&rows, seeds));
}

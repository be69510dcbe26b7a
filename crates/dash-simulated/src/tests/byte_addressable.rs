//! Rule 12: stores to a mapping, lines that are written back, fences.

use std::collections::BTreeSet;

use dash_storage::{Directory as _, File as _, LINE, Persistence, PersistentMemory as _};

use super::{NEW, outcomes, root};
use crate::{
    Effect, Everything, Fault, File, Machine, Nothing, OperationKind, Persistent, Question, Random,
    Survivors,
};

/// Lines of the file.
const LINES: u64 = 4;

/// A file of zeros, mapped; all durable.
fn mapped() -> (Machine, File, Persistent) {
    let machine = Machine::new(1);
    machine.set_byte_addressable();
    let directory = root(&machine.process());
    let file = directory.open("db".as_ref(), NEW).unwrap();
    file.initialize(0..LINES * LINE).unwrap();
    file.flush().unwrap();
    directory.flush().unwrap();
    let memory = file.map_persistent(LINES * LINE).unwrap();
    (machine, file, memory)
}

/// What a power loss may leave: a digit for each word that is all of that byte.
fn texts(machine: &Machine) -> BTreeSet<String> {
    let digits = |content: Option<Vec<u8>>| {
        let content = content.unwrap();
        let words = content.chunks(8).map(|word| {
            assert!(word.iter().all(|byte| *byte == word[0]), "a word is torn: {word:?}");
            char::from(b'0' + word[0])
        });
        words.collect::<String>().trim_end_matches('0').to_owned()
    };
    outcomes(machine, "db").into_iter().map(digits).collect()
}

fn set<const N: usize>(texts: [&str; N]) -> BTreeSet<String> {
    texts.map(str::to_owned).into()
}

/// Tears no line.
struct WholeLines(super::Enumerate);

impl Survivors for WholeLines {
    fn begin(&mut self) {
        self.0.begin();
    }

    fn choose(&mut self, question: Question, answers: usize, newest: usize) -> usize {
        let line = matches!(question, Question::Line { .. });
        self.0.choose(question, if line { 2 } else { answers }, newest)
    }
}

#[test]
fn lines_that_were_fenced_survive_always() {
    let (machine, _file, memory) = mapped();
    memory.store(&[1; 128], 64).unwrap();
    memory.write_back(64..192).unwrap();
    memory.fence().unwrap();
    assert_eq!(texts(&machine), set(["000000001111111111111111"]));
    assert_eq!(machine.survivor_count(), 1);
    assert_eq!(machine.power_loss(&mut Nothing).file_view("db").unwrap()[64..192], [1; 128]);
}

#[test]
fn lines_that_were_not_fenced_survive_in_every_subset() {
    let (machine, _file, memory) = mapped();
    memory.store(&[1; 192], 0).unwrap();
    let mut all = WholeLines(super::Enumerate::new(100));
    let mut seen = BTreeSet::new();
    while all.0.advance() {
        let content = machine.power_loss(&mut all).file_view("db").unwrap();
        seen.insert([0, 64, 128].map(|at| {
            assert_eq!(content[at..at + 64], [content[at]; 64]);
            content[at]
        }));
    }
    assert!(all.0.is_complete());
    assert_eq!((all.0.walked(), seen.len()), (8, 8));
}

#[test]
fn words_of_a_line_tear_in_any_order_and_never_within() {
    let (machine, _file, memory) = mapped();
    memory.store(&[1; 8], 0).unwrap();
    memory.store(&[2; 8], 8).unwrap();
    memory.store(&[3; 8], 56).unwrap();
    let all = ["", "1", "02", "12", "00000003", "10000003", "02000003", "12000003"];
    assert_eq!(texts(&machine), set(all));
    let mut torn = BTreeSet::new();
    for seed in 0..2000 {
        torn.insert(machine.power_loss(&mut Random::new(seed)).file_view("db").unwrap());
    }
    assert_eq!(torn.len(), all.len(), "a random fate finds them all");
    assert_eq!(machine.power_loss(&mut Everything).file_view("db"), machine.file_view("db"));
}

#[test]
fn a_line_may_go_out_early_with_any_value_it_had() {
    let (machine, _file, memory) = mapped();
    for byte in [1, 2, 3, 1] {
        memory.store(&[byte; 8], 0).unwrap();
    }
    assert_eq!(texts(&machine), set(["", "1", "2", "3"]));
    memory.write_back(0..8).unwrap();
    memory.fence().unwrap();
    assert_eq!(texts(&machine), set(["1"]));
}

#[test]
fn without_the_fence_or_the_write_back_nothing_is_promised() {
    for left_out in [OperationKind::WriteBack, OperationKind::Fence, OperationKind::Store] {
        let (machine, _file, memory) = mapped();
        machine.fail(Fault::new(Effect::LeftOut).on(left_out));
        memory.store(&[1; 8], 0).unwrap();
        memory.write_back(0..8).unwrap();
        memory.fence().unwrap();
        let stored = left_out != OperationKind::Store;
        assert_eq!(texts(&machine), if stored { set(["", "1"]) } else { set([""]) });
        // The next fence waits for what was begun; what was not, it knows nothing of.
        memory.fence().unwrap();
        let begun = left_out == OperationKind::Fence;
        assert_eq!(texts(&machine).len(), if stored && !begun { 2 } else { 1 }, "{left_out}");
    }
}

#[test]
fn a_fence_is_that_of_its_thread() {
    let (machine, _file, memory) = mapped();
    memory.store(&[1; 8], 0).unwrap();
    std::thread::scope(|scope| scope.spawn(|| memory.write_back(0..8).unwrap()).join().unwrap());
    memory.fence().unwrap();
    assert_eq!(texts(&machine), set(["", "1"]));
    memory.write_back(0..8).unwrap();
    memory.fence().unwrap();
    assert_eq!(texts(&machine), set(["1"]));
}

#[test]
fn what_is_stored_before_the_fence_is_in_doubt_word_by_word() {
    let (machine, _file, memory) = mapped();
    memory.store(&[1; 16], 0).unwrap();
    memory.write_back(0..16).unwrap();
    memory.store(&[2; 8], 8).unwrap();
    memory.fence().unwrap();
    assert_eq!(texts(&machine), set(["1", "11", "12"]));
}

#[test]
fn lines_are_written_back_whole_whoever_stored_to_them() {
    let (machine, file, memory) = mapped();
    let other = root(&machine.process()).open("db".as_ref(), NEW).unwrap();
    other.map_persistent(128).unwrap().store(&[1; 16], 48).unwrap();
    memory.store(&[2; 8], 128).unwrap();
    memory.write_back(56..64).unwrap();
    memory.fence().unwrap();
    assert_eq!(texts(&machine), set(["00000011", "00000011000000002"]));
    // A flush of the file covers all, as it does anything else.
    file.flush().unwrap();
    assert_eq!(texts(&machine), set(["00000011000000002"]));
}

#[test]
fn a_kill_loses_nothing_and_promises_nothing() {
    let (machine, _file, memory) = mapped();
    memory.store(&[1; 8], 0).unwrap();
    memory.write_back(0..8).unwrap();
    let killed = machine.killed();
    assert_eq!(killed.file_view("db").unwrap()[..8], [1; 8]);
    assert_eq!(texts(&killed), set(["", "1"]));
    let heir = root(&killed.process()).open("db".as_ref(), NEW).unwrap();
    let heir = heir.map_persistent(LINE).unwrap();
    heir.fence().unwrap();
    assert_eq!(texts(&killed), set(["", "1"]));
    heir.write_back(0..8).unwrap();
    heir.fence().unwrap();
    assert_eq!(texts(&killed), set(["1"]));
}

#[test]
fn a_writer_may_be_killed_within_a_store() {
    let (machine, _file, memory) = mapped();
    machine.fail(Fault::new(Effect::ShortWrite(20, libc::EINTR)).on(OperationKind::Store));
    memory.store(&[1; 64], 0).unwrap_err();
    assert_eq!(machine.file_view("db").unwrap()[..24], [[1; 8], [1; 8], [0; 8]].concat());
}

#[test]
fn writes_tear_in_words_too() {
    let (machine, file, _memory) = mapped();
    file.write_at(&[1; 16], 0).unwrap();
    assert_eq!(texts(&machine), set(["", "1", "01", "11"]));
    file.write_durable_at(&[2; 8], 8).unwrap();
    assert_eq!(texts(&machine), set(["02", "12"]));
}

#[test]
fn files_of_a_disk_are_not_mapped() {
    let (machine, _directory, file) = super::with_file(4096);
    let refused = file.map_persistent(4096).err().unwrap();
    assert_eq!(refused.kind(), std::io::ErrorKind::Unsupported);
    assert_eq!(
        machine.journal().entries.last().unwrap().operation.kind,
        OperationKind::MapPersistent
    );
}

#[test]
fn the_power_may_go_before_each_of_the_three_steps() {
    let (machine, _file, memory) = mapped();
    assert_eq!(memory.persistence(), Persistence::Synchronous);
    let first = machine.steps();
    memory.store(&[1; 8], 0).unwrap();
    memory.write_back(0..8).unwrap();
    memory.fence().unwrap();
    let journal = machine.journal();
    let kinds = journal.entries[usize::try_from(first).unwrap()..].iter();
    let kinds: Vec<_> = kinds.map(|entry| entry.operation.kind).collect();
    assert_eq!(kinds, [OperationKind::Store, OperationKind::WriteBack, OperationKind::Fence]);
    // Of the three a write-back changes nothing that survives.
    let mut points = machine.crash_points();
    points.retain(|point| *point >= first);
    assert_eq!(points, [first, first + 2, first + 3]);
    machine.cut_at(machine.steps());
    assert!(memory.store(&[2; 8], 0).is_err() && memory.fence().is_err());
    assert_eq!(texts(&machine), set(["1"]));
}

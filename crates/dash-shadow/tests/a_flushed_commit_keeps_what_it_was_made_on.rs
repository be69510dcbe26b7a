//! SHADOW-17: a commit under synchronous=OFF, a flushed one on top of it, and a power loss. The
//! copy with the former was never flushed, and without it the table could not tell what the latter
//! was made on: it was refused, or lost. Stock SQLite's flushed commit makes durable what came
//! before it; so does this one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::sim::{start, tiny};
use super::common::{Content, commit, commit_unflushed, read, write};
use dash_simulated::{Effect, Fault, Machine, OperationKind, Question, Survivors};

/// Nothing that was not flushed survives, or all of it but what is in files.
#[derive(Clone, Copy)]
struct Flushed {
    names_too: bool,
}

impl Survivors for Flushed {
    fn choose(&mut self, question: Question, _: usize, newest: usize) -> usize {
        match question {
            Question::Unit { .. } => 0,
            _ if self.names_too => newest,
            _ => 0,
        }
    }
}

fn made(machine: &Machine) -> Content {
    let content = vec![1; 12];
    let (_process, mut connection) = start(machine, &tiny());
    commit(&mut connection, &content).unwrap();
    commit(&mut connection, &[&[5], &content[1..]].concat()).unwrap();
    connection.close().unwrap();
    [&[5], &content[1..]].concat()
}

fn survives(machine: &Machine, content: &Content, story: &str) {
    for names_too in [false, true] {
        let after = machine.power_loss(&mut Flushed { names_too });
        let (_process, mut connection) = start(&after, &tiny());
        assert_eq!(&read(&mut connection).unwrap(), content, "{story}");
        connection.close().unwrap();
    }
}

/// In one session; across a clean close; and after whoever made them was killed.
#[test]
pub(crate) fn on_commits_that_were_not() {
    for unflushed in 1..4 {
        for way in ["in one session", "closed", "killed"] {
            let machine = Machine::new(1);
            let mut content = made(&machine);
            let (process, mut connection) = start(&machine, &tiny());
            for i in 0..unflushed {
                content[3 + i] = 9;
                commit_unflushed(&mut connection, &content);
            }
            content[9] = 77;
            let story = format!("{unflushed} unflushed, {way}");
            match way {
                "in one session" => commit(&mut connection, &content).unwrap(),
                closed => {
                    if closed == "closed" {
                        connection.close().unwrap();
                    } else {
                        machine.kill(&process);
                        drop(connection);
                    }
                    let (_process, mut connection) = start(&machine, &tiny());
                    commit(&mut connection, &content).unwrap();
                }
            }
            survives(&machine, &content, &story);
        }
    }
}

/// After that flush failed, nothing in this session is promised on top of it.
#[test]
fn and_a_failed_flush_of_theirs_is_not_tried_again() {
    let machine = Machine::new(1);
    let mut content = made(&machine);
    let (_process, mut connection) = start(&machine, &tiny());
    let (_other, mut other) = start(&machine, &tiny());
    content[3] = 9;
    commit_unflushed(&mut connection, &content);
    let before = content.clone();
    content[9] = 77;
    machine.fail(Fault::new(Effect::LostFlush(5)).on(OperationKind::Flush));
    commit(&mut connection, &content).unwrap_err();
    machine.stop_failing();
    for connection in [&mut connection, &mut other] {
        write(connection, &content).unwrap();
        connection.prepare(None).unwrap();
        connection.flush().unwrap_err();
        connection.unlock(dash_shadow::LockLevel::None).unwrap();
        assert_eq!(read(connection).unwrap(), before);
    }
}

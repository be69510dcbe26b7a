//! Finds of the crash explorer, against SHADOW-17: commits under synchronous=OFF, a clean close
//! that flushed the newer copy only, and a power loss. The older copy had the durable name, so that
//! stock SQLite read it; and the next commit listed what it wrote there, not what had been lost
//! before.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common;
use super::common::sim::{start, tiny};
use super::common::{commit, commit_unflushed};
use dash_simulated::{Machine, Nothing};

#[test]
fn also_the_older_one() {
    for unflushed in 1..5 {
        let machine = Machine::new(1);
        let mut content = vec![1; 12];
        let (_process, mut connection) = start(&machine, &tiny());
        commit(&mut connection, &content).unwrap();
        commit(&mut connection, &content).unwrap();
        connection.close().unwrap();
        let (_process, mut connection) = start(&machine, &tiny());
        for i in 0..unflushed {
            content[3 + i] = 9;
            commit_unflushed(&mut connection, &content);
        }
        connection.close().unwrap();
        let after = machine.power_loss(&mut Nothing);
        let [newer, older] = ["/app.db", "/app.db-shadow"].map(|name| {
            let bytes = [&machine, &after].map(|machine| machine.file_view(name).unwrap());
            // The head of page 1 and the blocks at the end say more than was committed.
            bytes.map(|bytes| bytes[common::PAGE..12 * common::PAGE].to_vec())
        });
        assert!(newer[0] == newer[1] && older[0] == older[1], "{unflushed} unflushed");
    }
}

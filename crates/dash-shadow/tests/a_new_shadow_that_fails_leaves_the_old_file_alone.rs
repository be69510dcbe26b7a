//! A new shadow is made beside a name fence (SHADOW-21), and that fails before it has a byte. What
//! is cut then is the new file, not the old one, which a stock process may have open.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use super::common::commit;
use super::common::sim::{start, tiny};
use dash_simulated::{Effect, Fault, Machine, OperationKind};
use dash_storage::{Directory, Storage};
use std::path::Path;

#[test]
fn whoever_has_it_open() {
    let machine = Machine::new(1);
    let (process, mut connection) = start(&machine, &tiny());
    for value in 0..4 {
        commit(&mut connection, &[1, value, 3]).unwrap();
    }
    assert!(machine.exists("/app.db-journal"), "no name fence");
    let stock = machine.open_stock("app.db-shadow").unwrap();
    let before = stock.read_all();
    let root = process.open_directory(Path::new("/")).unwrap();
    root.unlink("app.db-shadow".as_ref()).unwrap();
    machine.fail(Fault::new(Effect::Error(5)).on(OperationKind::Write).forever());
    commit(&mut connection, &[1, 9, 3]).unwrap_err();
    machine.stop_failing();
    assert!(!before.is_empty());
    assert_eq!(stock.read_all(), before);
    assert!(machine.exists("/app.db-shadow"), "a shadow is missing beside a name fence");
}

//! While dash closes a file no stock connection of this SQLite gets through its opening of one: it
//! takes its first lock behind that.

use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::common::Database;

#[test]
fn nobody_opens_a_file_meanwhile() {
    let (ours, stock) = (Database::new(), Database::new());
    // It is known by that, and stays so.
    drop(ours.open("").unwrap());
    let path = stock.path.clone();
    let (opened, told) = channel();
    let (mut opener, mut early) = (None, false);
    dash_ffi::while_nobody_opens(
        &mut || {
            let (path, opened) = (path.clone(), opened.clone());
            opener = Some(thread::spawn(move || {
                let uri = format!("file:{}?vfs=unix", path.display());
                let db = rusqlite::Connection::open(uri).unwrap();
                db.execute_batch("CREATE TABLE t(x)").unwrap();
                opened.send(()).unwrap();
            }));
            early = told.recv_timeout(Duration::from_millis(200)).is_ok();
        },
        None,
    );
    opener.unwrap().join().unwrap();
    assert!(!early && told.try_recv().is_ok());
}

/// A thread that ends the process may have the mutex itself.
#[test]
fn it_is_given_up_where_patience_ends() {
    drop(Database::new().open("").unwrap());
    let patience = Some(Duration::from_millis(10));
    let (mut outer, mut inner) = (None, None);
    let done = dash_ffi::while_nobody_opens(
        &mut || {
            outer = Some(());
            let again = dash_ffi::while_nobody_opens(&mut || inner = Some(()), patience);
            assert!(!again);
        },
        None,
    );
    assert_eq!((done, outer, inner), (true, Some(()), None));
    assert!(dash_ffi::while_nobody_opens(&mut || inner = Some(()), patience));
    assert_eq!(inner, Some(()));
}

//! An error in COMMIT_PHASETWO is the result of COMMIT, code and all.

use crate::common::{Database, Fault};
use dash_ffi::Code;

#[test]
fn commit_phase_two_errors_reach_the_application() {
    let database = Database::new();
    let db = database.open("").unwrap();
    for mode in ["DELETE", "PERSIST", "MEMORY", "WAL"] {
        database.probe.heal();
        db.execute_batch(&format!("PRAGMA journal_mode={mode}; CREATE TABLE IF NOT EXISTS t(x)"))
            .unwrap();
        let fault = Fault::Error(Code::IOERR_FSYNC, Some("the publication failed"));
        database.probe.fail("COMMIT_PHASETWO", fault);
        let error = db.execute_batch("BEGIN; INSERT INTO t VALUES (1); COMMIT").unwrap_err();
        let code = error.sqlite_error().unwrap().extended_code;
        assert_eq!(code, Code::IOERR_FSYNC.raw(), "{mode}: {error}");
        let said = format!("the publication failed (in {})", database.directory.path().display());
        assert_eq!(dash_ffi::last_error().unwrap(), said);
        let _ = db.execute_batch("ROLLBACK");
    }
}

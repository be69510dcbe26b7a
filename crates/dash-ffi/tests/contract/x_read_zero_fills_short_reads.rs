//! What lies behind the end of the file reads as zeros, with SHORT_READ; what lies before it is
//! kept.

use crate::common::{Database, Fault, file_pointer};
use core::ffi::c_int;
use dash_ffi::Code;

/// Reads 64 bytes through the method that SQLite calls.
fn read(file: *mut rusqlite::ffi::sqlite3_file, offset: i64) -> (c_int, [u8; 64]) {
    let mut buffer = [0xaa; 64];
    // SAFETY: an open file, and a buffer of 64 bytes.
    let code =
        unsafe { (*(*file).pMethods).xRead.unwrap()(file, buffer.as_mut_ptr().cast(), 64, offset) };
    (code, buffer)
}

#[test]
fn x_read_zero_fills_short_reads() {
    let database = Database::new();
    let db = database.open("").unwrap();
    db.execute_batch("CREATE TABLE t(x)").unwrap();
    let content = std::fs::read(&database.path).unwrap();
    let size = i64::try_from(content.len()).unwrap();
    let file = file_pointer(&db);

    let (code, bytes) = read(file, 0);
    assert_eq!((code, &bytes[..]), (0, &content[..64]));
    let short = Code::IOERR_SHORT_READ.raw();
    assert_eq!(read(file, size), (short, [0; 64]));
    assert_eq!(read(file, size + 1000), (short, [0; 64]));

    let (code, bytes) = read(file, size - 10);
    assert_eq!(code, short);
    assert_eq!(bytes[..10], content[content.len() - 10..]);
    assert_eq!(bytes[10..], [0; 54]);

    database.probe.fail("xRead", Fault::Claim(7));
    let (code, bytes) = read(file, 0);
    assert_eq!(code, short);
    assert_eq!((&bytes[..7], &bytes[7..]), (&content[..7], &[0; 57][..]));

    database.probe.fail("xRead", Fault::Claim(65));
    assert_eq!(read(file, 0).0, Code::IOERR_READ.raw());
}

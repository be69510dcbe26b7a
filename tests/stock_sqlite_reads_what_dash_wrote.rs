//! At rest the file is a plain SQLite database, for reading and for writing.

mod suite;

#[test]
fn and_dash_goes_on_with_what_stock_sqlite_wrote() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("app.db");
    for round in 0..5 {
        let dash = suite::open(&path);
        dash.execute_batch("CREATE TABLE IF NOT EXISTS t(a); INSERT INTO t VALUES ('dash')")
            .unwrap();
        assert_eq!(suite::one::<i64>(&dash, "SELECT count(*) FROM t"), 2 * round + 1);
        suite::check(&dash);
        drop(dash);
        let stock = suite::stock(&path);
        stock.execute_batch("INSERT INTO t VALUES ('stock')").unwrap();
        assert_eq!(suite::one::<i64>(&stock, "SELECT count(*) FROM t"), 2 * round + 2);
        suite::check(&stock);
    }
}

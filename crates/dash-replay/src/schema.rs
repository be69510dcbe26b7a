//! The schema of a database, for whoever asks whether a transaction provably replays on it.

use dash_statement::Schema;

use crate::Result;
use crate::image::Image;

/// Reads it.
pub fn of(image: &Image) -> Result<Schema> {
    Schema::of_pages(|number| image.get(number))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;
    use dash_testing::random::Random;
    use rusqlite::Connection;

    /// By SQLite.
    fn by_sql(db: &Connection) -> Schema {
        let mut schema = Schema::default();
        let mut prepared = db.prepare("SELECT type, tbl_name, sql FROM sqlite_master").unwrap();
        let mut rows = prepared.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let text = |column| row.get::<_, Option<String>>(column).unwrap();
            let (kind, table, sql) = (text(0).unwrap(), text(1).unwrap(), text(2));
            schema.add(kind.as_bytes(), table.as_bytes(), sql.as_deref().map(str::as_bytes));
        }
        schema
    }

    /// A file with `tables` tables, among them one with a long definition.
    fn file(folder: &std::path::Path, page: u32, tables: usize) -> (Connection, Image) {
        let path = folder.join(format!("{page}-{tables}.db"));
        let db = Connection::open(&path).unwrap();
        db.execute_batch(&format!("PRAGMA page_size={page}; PRAGMA synchronous=OFF; BEGIN"))
            .unwrap();
        for number in 0..tables {
            let columns: Vec<_> = (0..number % 90).map(|it| format!("column_{it} INT")).collect();
            let columns = [vec!["id INTEGER PRIMARY KEY".to_owned()], columns].concat().join(", ");
            db.execute_batch(&format!(
                "CREATE TABLE t{number}({columns}, u UNIQUE); CREATE INDEX i{number} ON t{number}(u DESC)"
            ))
            .unwrap();
        }
        let comment = "x".repeat(50_000);
        db.execute_batch(&format!(
            "CREATE TABLE long(a /* {comment} */ PRIMARY KEY); CREATE VIEW v AS SELECT 1;
             CREATE TRIGGER g AFTER INSERT ON long BEGIN SELECT 1; END; COMMIT"
        ))
        .unwrap();
        let image = Image::open(&path, page).unwrap();
        (db, image)
    }

    #[test]
    fn the_pages_say_what_sqlite_does() {
        let folder = tempfile::tempdir().unwrap();
        for page in [512, 1024, 4096, 65536] {
            for tables in [0, 3, 400] {
                let (db, image) = file(folder.path(), page, tables);
                assert_eq!(of(&image).unwrap(), by_sql(&db), "{tables} tables, pages of {page}");
            }
        }
        let db = Connection::open(folder.path().join("empty.db")).unwrap();
        let image = || Image::open(&folder.path().join("empty.db"), 4096).unwrap();
        drop(std::fs::File::create(folder.path().join("empty.db")).unwrap());
        assert_eq!(of(&image()).unwrap(), Schema::default());
        db.execute_batch("PRAGMA encoding='UTF-16'; CREATE TABLE t(x)").unwrap();
        let mut other = Schema::default();
        other.is_not_utf8();
        assert_eq!(of(&image()).unwrap(), other);
    }

    /// It ends, and does not panic, whatever is there.
    #[test]
    fn damaged_pages_have_some_schema_or_none() {
        let folder = tempfile::tempdir().unwrap();
        let (_, image) = file(folder.path(), 512, 40);
        let pages: Vec<_> = (1..=image.pages().unwrap()).map(|it| image.get(it).unwrap()).collect();
        let mut random = Random(1);
        for _ in 0..300 {
            let mut pages: Vec<_> = pages.iter().flatten().cloned().collect();
            for _ in 0..1 + random.below(40) {
                let page = random.below(pages.len().min(60));
                let at = if page == 0 { 100 + random.below(412) } else { random.below(512) };
                pages[page][at] = u8::try_from(random.below(256)).unwrap();
            }
            let page = |number: u32| -> Result<_> { Ok(pages.get(number as usize - 1).cloned()) };
            drop(Schema::of_pages(page).unwrap());
        }
    }

    /// What SQLite knows for an index, or a trigger, and others may not. SEC S2-1
    #[test]
    fn a_row_that_sqlite_does_not_write_so_makes_it_unreadable() {
        let folder = tempfile::tempdir().unwrap();
        for (number, (column, value)) in [
            ("type", "'INDEX'"),
            ("type", "CAST('index' AS BLOB)"),
            ("type", "'index' || char(0) || 'x'"),
            ("type", "NULL"),
            ("tbl_name", "CAST('t' AS BLOB)"),
            ("tbl_name", "'t' || char(0) || 'x'"),
            ("name", "CAST('i' AS BLOB)"),
            ("sql", "CAST(sql AS BLOB)"),
            ("sql", "sql || char(0)"),
        ]
        .into_iter()
        .enumerate()
        {
            let path = folder.path().join(format!("{number}.db"));
            let db = Connection::open(&path).unwrap();
            db.execute_batch(&format!(
                "CREATE TABLE t(k INTEGER PRIMARY KEY, v); CREATE INDEX i ON t(abs(v));
                PRAGMA writable_schema=ON; UPDATE sqlite_schema SET {column} = {value} WHERE name = 'i'"
            ))
            .unwrap();
            let image = Image::open(&path, 4096).unwrap();
            assert_eq!(of(&image).unwrap(), Schema::unreadable(), "{column} = {value}");
        }
    }
}

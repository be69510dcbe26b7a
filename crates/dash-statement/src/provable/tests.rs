//! Each rule by itself, and what must not slip past it. That what is called provable does replay is
//! tried in `tests/statements_run_again_come_to_the_same.rs`.

mod sizes;

use super::*;
use crate::context::Context;
use crate::model::{Sql, Value};
use crate::reason::Reason;

fn schema(sql: &[&str]) -> Schema {
    let mut schema = Schema::default();
    for sql in sql {
        let words: Vec<_> = sql.split([' ', '(', '\n']).filter(|word| !word.is_empty()).collect();
        let on = words.iter().position(|word| *word == "ON").map_or(2, |at| at + 1);
        let (kind, table) = match words[1] {
            "TABLE" => ("table", words[2]),
            "VIEW" => ("view", words[2]),
            "VIRTUAL" => ("table", words[3]),
            "TRIGGER" => ("trigger", words[on]),
            _ => ("index", words[on]),
        };
        schema.add(kind.as_bytes(), table.trim_matches('"').as_bytes(), Some(sql.as_bytes()));
    }
    schema
}

fn ran(sql: &str) -> Transaction {
    let values = Some(vec![Value::Null; 4]);
    let statement = Statement { sql: Sql::from(sql.as_bytes()), values, clock: None, nested: 0 };
    let (events, context) = (vec![Event::Statement(statement)], Some(Context::default()));
    Transaction { events, context, ..Transaction::default() }
}

fn judge(sql: &str, schema: &Schema) -> Result<(), Unprovable> {
    provable(&ran(sql), schema)
}

const TABLE: &str =
    "CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT NOT NULL, n NUM DEFAULT -1.5e-3, UNIQUE (k, n))";

/// `STATEMENT-6`
#[test]
fn one_row_of_values_and_one_row_by_its_key_are_provable() {
    let schema = schema(&[TABLE, "CREATE INDEX tn ON t(n DESC)"]);
    for sql in [
        "INSERT INTO t VALUES (?, ?, ?)",
        "insert into T(k, n) values (:k, -1.5e-3);",
        "INSERT OR IGNORE INTO main.t(k) VALUES ('it''s; RETURNING')",
        "REPLACE INTO \"t\"([id], `k`) VALUES (NULL, x'00' || ?)",
        "INSERT INTO t(k) /* one */ VALUES ((1 + 2) * ?3) -- no more",
        "UPDATE t SET n = n + 1 WHERE id = ?",
        "UPDATE t SET n = t.n + ?, k = k || 'x' WHERE (t.id == ?) AND n IS NOT NULL",
        "UPDATE OR REPLACE t SET id = ? WHERE ? = id",
        "UPDATE t SET n = ? WHERE k = ? AND n = -5 AND (id < 7 OR id > 9)",
        "DELETE FROM t WHERE \"id\" = x'00'",
        "DELETE FROM t WHERE rowid = 7;",
        "; -- the first one\n; INSERT INTO 't'('k') VALUES ('k')",
        "UPDATE 'main'.'t' SET 'n' = 'n' WHERE t.id = 'id'",
    ] {
        assert_eq!(judge(sql, &schema), Ok(()), "{sql}");
    }
}

/// `STATEMENT-6`
#[test]
fn statements_of_other_forms_are_not() {
    let schema = schema(&[TABLE]);
    for sql in [
        "INSERT INTO t(k) VALUES (?), (?)",
        "INSERT INTO t(k) SELECT ?",
        "INSERT INTO t(k) VALUES ((SELECT max(k) FROM t))",
        "INSERT INTO t(k) VALUES (?) ON CONFLICT DO NOTHING",
        "INSERT INTO t(k) VALUES (?) RETURNING id",
        "INSERT OR ROLLBACK INTO t(k) VALUES (?)",
        "INSERT INTO t DEFAULT VALUES",
        "INSERT INTO t AS u VALUES (?)",
        "INSERT INTO t(k) VALUES (\"k\")",
        "INSERT INTO t(k) VALUES (k)",
        "INSERT INTO t(k) VALUES ()",
        "WITH u AS (SELECT 1) INSERT INTO t(k) VALUES (?)",
        "UPDATE t SET n = 1",
        "UPDATE t SET n = 1 WHERE k = ?",
        "UPDATE t SET n = 1 WHERE id = ? OR n = 2",
        "UPDATE t SET n = 1 WHERE n OR k AND id = ?",
        "UPDATE t SET n = 1 WHERE (n OR k AND id = ?)",
        "UPDATE t SET n = 1 WHERE id > ?",
        "UPDATE t SET n = 1 WHERE id <= ?",
        "UPDATE t SET n = 1 WHERE NOT id = ?",
        "UPDATE t SET n = 1 WHERE NOT (id = ?)",
        "UPDATE t SET n = 1 WHERE (id = ?) = 0",
        "UPDATE t SET n = 1 WHERE id = ? IS NULL",
        "UPDATE t SET n = 1 WHERE id = n",
        "UPDATE t SET n = 1 WHERE 'id' = 'id'",
        "UPDATE t SET n = 1 WHERE 'id' = ?",
        "UPDATE t SET n = 1 WHERE id = \"k\"",
        "UPDATE t SET n = 1 WHERE (id = ? OR 1) AND n = 2",
        "UPDATE t SET n = 1 WHERE n BETWEEN 1 AND id = ?",
        "UPDATE t SET n = 1 WHERE CASE WHEN n AND id = ? AND k THEN 1 END",
        "UPDATE t SET n = 1 WHERE id IN (?)",
        "UPDATE t SET n = 1 WHERE id = ? LIMIT 1",
        "UPDATE t SET n = 1 WHERE id = ? RETURNING n",
        "UPDATE t SET n = 1 FROM t AS u WHERE id = ?",
        "UPDATE t SET (k, n) = (1, 2) WHERE id = ?",
        "UPDATE t AS u SET n = 1 WHERE id = ?",
        "UPDATE t INDEXED BY i SET n = 1 WHERE id = ?",
        "UPDATE t SET n = \"text\" WHERE id = ?",
        "DELETE FROM t",
        "DELETE FROM t WHERE id = ? ORDER BY n LIMIT 1",
        "CREATE TABLE u(x)",
        "DROP TABLE t",
        "PRAGMA user_version = 1",
        "ANALYZE",
        "VACUUM",
        "",
    ] {
        assert_eq!(judge(sql, &schema), Err(Unprovable::Form), "{sql}");
    }
}

/// `STATEMENT-6`
#[test]
fn what_another_one_may_answer_otherwise_is_not() {
    let schema = schema(&[TABLE]);
    for (sql, why) in [
        ("INSERT INTO t(k) VALUES (random())", Unprovable::Function),
        ("INSERT INTO t(k) VALUES (:a(')+random()+:b('))", Unprovable::Function),
        ("INSERT INTO t(k) VALUES (current_timestamp)", Unprovable::Function),
        ("UPDATE t SET n = \"abs\" (n) WHERE id = ?", Unprovable::Function),
        ("UPDATE t SET n = k -> '$' WHERE id = ?", Unprovable::Function),
        ("UPDATE t SET n = k ->> '$' WHERE id = ?", Unprovable::Function),
        ("UPDATE t SET n = k LIKE ? WHERE id = ?", Unprovable::Function),
        ("DELETE FROM t WHERE id = ? AND k COLLATE mine = ?", Unprovable::Collation),
        ("INSERT INTO temp.t(k) VALUES (?)", Unprovable::OtherDatabase),
        ("INSERT INTO 'temp'.t(k) VALUES (?)", Unprovable::OtherDatabase),
        ("DELETE FROM other.t WHERE id = ?", Unprovable::OtherDatabase),
        ("DELETE FROM u WHERE id = ?", Unprovable::Table),
        ("DELETE FROM sqlite_sequence WHERE rowid = 1", Unprovable::Table),
    ] {
        assert_eq!(judge(sql, &schema), Err(why), "{sql}");
    }
}

/// `STATEMENT-6`
#[test]
fn a_table_of_which_more_than_its_rows_counts_is_not() {
    for (definition, more, why) in [
        ("id INTEGER PRIMARY KEY, CHECK (id > 0)", "", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY CHECK (id > 0)", "", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY, a DEFAULT (random())", "", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY, a DEFAULT \"x\"", "", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY, a DEFAULT CURRENT_TIME", "", Unprovable::Function),
        ("id INTEGER PRIMARY KEY, a AS (id * 2)", "", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY, a GENERATED ALWAYS AS (id)", "", Unprovable::Expression),
        ("id TEXT COLLATE NOCASE PRIMARY KEY", "", Unprovable::Collation),
        ("id TEXT, PRIMARY KEY (id COLLATE mine)", "", Unprovable::Collation),
        ("id INTEGER PRIMARY KEY, a REFERENCES u(x)", "", Unprovable::ForeignKey),
        ("id INTEGER PRIMARY KEY, a, FOREIGN KEY (a) REFERENCES u", "", Unprovable::ForeignKey),
        ("id INTEGER PRIMARY KEY ON CONFLICT ROLLBACK", "", Unprovable::Table),
        ("id INTEGER PRIMARY KEY, a FANCY WORD(1) ?", "", Unprovable::Table),
        ("id INTEGER PRIMARY KEY", "CREATE TABLE c(x, y REFERENCES \"T\")", Unprovable::ForeignKey),
        ("id INTEGER PRIMARY KEY", "CREATE TABLE c(x, y REFERENCES 't')", Unprovable::ForeignKey),
        (
            "id INTEGER PRIMARY KEY",
            "CREATE TABLE c(x, FOREIGN KEY (x) REFERENCES 'T'('id'))",
            Unprovable::ForeignKey,
        ),
        ("id INTEGER PRIMARY KEY, a", "CREATE INDEX i ON t(a + 1)", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY, a", "CREATE INDEX i ON t(lower(a))", Unprovable::Expression),
        ("id INTEGER PRIMARY KEY, a", "CREATE INDEX i ON t(a) WHERE a > 1", Unprovable::Expression),
        (
            "id INTEGER PRIMARY KEY, a",
            "CREATE INDEX i ON t(a COLLATE NOCASE)",
            Unprovable::Collation,
        ),
        (
            "id INTEGER PRIMARY KEY",
            "CREATE TRIGGER g AFTER UPDATE OF id ON t BEGIN SELECT 1; END",
            Unprovable::Trigger,
        ),
        ("id INT", "", Unprovable::Form),
        ("id INT", "CREATE UNIQUE INDEX i ON t(id, rest)", Unprovable::Form),
    ] {
        let table = format!("CREATE TABLE t({definition})");
        let all: Vec<_> = [&table[..], more].into_iter().filter(|sql| !sql.is_empty()).collect();
        assert_eq!(judge("DELETE FROM t WHERE id = ?", &schema(&all)), Err(why), "{all:?}");
    }
    for table in ["CREATE VIEW t AS SELECT 1 AS id", "CREATE VIRTUAL TABLE t USING fts5(id)"] {
        assert_eq!(judge("DELETE FROM t WHERE id = ?", &schema(&[table])), Err(Unprovable::Table));
    }
    let mut other = schema(&[TABLE]);
    other.is_not_utf8();
    assert_eq!(judge("DELETE FROM t WHERE id = ?", &other), Err(Unprovable::Encoding));
}

/// `STATEMENT-6`: SQLite ends at a zero byte, and whoever reads on reads another statement.
#[test]
fn a_text_with_a_zero_byte_is_not() {
    let schema = schema(&[TABLE]);
    for sql in ["DELETE FROM t WHERE id = ? --\0", "DELETE FROM t WHERE id = 'a\0b'"] {
        assert_eq!(judge(sql, &schema), Err(Unprovable::Form));
    }
}

/// `STATEMENT-6`: a connection with `SQLITE_DBCONFIG_DEFENSIVE` may not write them.
#[test]
fn tables_in_which_virtual_ones_keep_something_are_not() {
    let virtual_one = "CREATE VIRTUAL TABLE ft USING fts5(a)";
    let schema =
        schema(&[virtual_one, "CREATE TABLE ft_data(id INTEGER PRIMARY KEY, block BLOB)", TABLE]);
    assert_eq!(judge("DELETE FROM ft_data WHERE id = ?", &schema), Err(Unprovable::Table));
    assert_eq!(judge("DELETE FROM t WHERE id = ?", &schema), Ok(()));
}

/// `STATEMENT-6`
#[test]
fn definitions_of_many_kinds_are_read() {
    for definition in [
        "id INTEGER PRIMARY KEY ASC ON CONFLICT REPLACE AUTOINCREMENT",
        "a VARCHAR(10, -2) UNIQUE ON CONFLICT IGNORE, id UNSIGNED BIG INT CONSTRAINT k UNIQUE NOT NULL",
        "id, a DEFAULT 'x', b DEFAULT .5, c DEFAULT +7, d DEFAULT x'00', CONSTRAINT u UNIQUE (id) PRIMARY KEY (a)",
        "\"check\" INT DEFAULT NULL, [references] TEXT, id \"quoted type\" PRIMARY KEY -- key",
        "'a' 'quoted type', 'id' INT, PRIMARY KEY ('id')",
    ] {
        let table = format!("CREATE TABLE \"t\" ({definition}\n) STRICT");
        let judged = judge("DELETE FROM t WHERE id = ?", &schema(&[&table]));
        assert_eq!(judged, Ok(()), "{definition}");
    }
    let table = "CREATE TABLE t(id TEXT PRIMARY KEY, a) WITHOUT ROWID";
    let schema_of = |more: &[&str]| schema(&[&[table], more].concat());
    assert_eq!(judge("DELETE FROM t WHERE id = ?", &schema_of(&[])), Ok(()));
    assert_eq!(judge("DELETE FROM t WHERE rowid = ?", &schema_of(&[])), Err(Unprovable::Form));
    let index = "CREATE UNIQUE INDEX i ON t(a)";
    assert_eq!(judge("DELETE FROM t WHERE a = ?", &schema_of(&[index])), Ok(()));
    // A column of that name is not the number of the row.
    let table = schema(&["CREATE TABLE t(rowid, a)"]);
    assert_eq!(judge("DELETE FROM t WHERE rowid = ?", &table), Err(Unprovable::Form));
    assert_eq!(judge("DELETE FROM t WHERE oid = ?", &table), Ok(()));
}

/// `STATEMENT-6`
#[test]
fn what_is_not_all_recorded_is_not() {
    let schema = schema(&[TABLE]);
    let whole = ran("INSERT INTO t(k) VALUES (?)");
    let with = |change: &dyn Fn(&mut Transaction)| {
        let mut changed = whole.clone();
        change(&mut changed);
        provable(&changed, &schema)
    };
    let statement = |change: &dyn Fn(&mut Statement)| {
        with(&|all| match all.events.first_mut() {
            Some(Event::Statement(statement)) => change(statement),
            _ => panic!("no statement"),
        })
    };
    let control = |control: Control| {
        let sql = if control == Control::Release { "RELEASE s" } else { "SAVEPOINT s" };
        let event = Event::Control(control, Sql::from(sql.as_bytes()));
        with(&|all| all.events.push(event.clone()))
    };
    let forged = Event::Control(Control::Release, Sql::from(&b"VACUUM INTO 'x'"[..]));
    assert_eq!(with(&|all| all.events.push(forged.clone())), Err(Unprovable::Form));
    assert_eq!(with(&|_| {}), Ok(()));
    assert_eq!(with(&|all| all.events.clear()), Err(Unprovable::Incomplete));
    assert_eq!(with(&|all| all.dropped = 1), Err(Unprovable::Incomplete));
    assert_eq!(with(&|all| all.context = None), Err(Unprovable::Incomplete));
    for (circumstance, why) in [
        (Circumstance::Temporary, Unprovable::Temporary),
        (Circumstance::OtherDatabase, Unprovable::OtherDatabase),
        (Circumstance::Settings, Unprovable::Settings),
        (Circumstance::SchemaWritten, Unprovable::Table),
        (Circumstance::Unconfirmed, Unprovable::Unconfirmed),
    ] {
        let mut context = Context::default();
        context.add(circumstance);
        assert_eq!(with(&|all| all.context = Some(context)), Err(why));
    }
    for reason in Reason::ALL {
        assert_eq!(with(&|all| all.reasons.add(reason)), Err(Unprovable::Incomplete));
    }
    assert_eq!(statement(&|it| it.values = None), Err(Unprovable::Incomplete));
    assert_eq!(statement(&|it| it.nested = 1), Err(Unprovable::Trigger));
    assert_eq!(statement(&|it| it.clock = Some(7)), Err(Unprovable::Function));
    assert_eq!(control(Control::Savepoint), Ok(()));
    assert_eq!(control(Control::Release), Ok(()));
    assert_eq!(control(Control::RollbackTo), Err(Unprovable::RolledBack));
}

/// `STATEMENT-6`
#[test]
fn what_may_write_the_schema_by_hand_is_told() {
    for (sql, writes) in [
        ("UPDATE SQLITE_master SET sql = ?", true),
        ("DELETE FROM \"sqlite_schema\"", true),
        ("; INSERT INTO 'main'.'sqlite_master' VALUES (?)", true),
        ("UPDATE\u{feff}sqlite_master SET sql = ?", true),
        ("; CREATE TABLE t AS SELECT * FROM sqlite_master", false),
        ("INSERT INTO weather(temp) VALUES (?)", false),
        ("", false),
    ] {
        assert_eq!(writes_schema(sql.as_bytes()), writes, "{sql}");
    }
}

/// `STATEMENT-6`: a commit may cut off what several statements have made.
#[test]
fn several_statements_are_not_where_pages_are_cut_off() {
    let mut schema = schema(&[TABLE]);
    let mut twice = ran("DELETE FROM t WHERE id = ?");
    twice.events.extend(twice.events.clone());
    assert_eq!(provable(&twice, &schema), Ok(()));
    schema.is_cut = true;
    assert_eq!(provable(&twice, &schema), Err(Unprovable::Vacuum));
    assert_eq!(judge("DELETE FROM t WHERE id = ?", &schema), Ok(()));
}

//! What is called provable by its text is that to SQLite, too: an authorizer sees one table and no
//! function, and the program that SQLite makes has no loop and no program inside. Texts are valid
//! statements that were spoilt at random; most are none by then, which says nothing.
#![allow(clippy::unwrap_used, reason = "a test that can't go on fails where it stands")]

use std::sync::{Arc, Mutex};

use dash_statement::{Context, Event, Schema, Sql, Statement, Transaction, Value, provable};
use dash_testing::random::Random;
use rusqlite::Connection;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};

const TABLES: [(&str, &str); 4] = [
    ("table", "CREATE TABLE t(id INTEGER PRIMARY KEY, k TEXT, n DEFAULT 1, UNIQUE (k, n))"),
    ("index", "CREATE INDEX tn ON t(n)"),
    ("table", "CREATE TABLE u(id INTEGER PRIMARY KEY, k UNIQUE, n CHECK (n > 0))"),
    ("trigger", "CREATE TRIGGER g AFTER INSERT ON u BEGIN DELETE FROM t; END"),
];

const VALID: [&str; 10] = [
    "INSERT INTO t VALUES ( ? , ?1 , 'x' )",
    "INSERT INTO t ( k , n ) VALUES ( :a , 1 + ? )",
    "REPLACE INTO main . t ( id ) VALUES ( - 1.5 )",
    "INSERT OR IGNORE INTO \"t\" ( [k] ) VALUES ( x'00' || ? )",
    "UPDATE t SET n = n + 1 , k = ? WHERE id = ?",
    "UPDATE OR REPLACE t SET id = ? WHERE ( k = 'x' ) AND n = 5",
    "UPDATE t SET n = t . n * 2 WHERE k = ? AND ? == n AND id IS NOT NULL",
    "DELETE FROM t WHERE rowid = ?",
    "DELETE FROM t WHERE \"id\" = 7 AND ( n < 1 OR n > 2 )",
    "DELETE FROM t WHERE k = ? AND n = ? ;",
];

const WORDS: [&str; 91] = [
    "INSERT",
    "INTO",
    "OR",
    "IGNORE",
    "REPLACE",
    "ROLLBACK",
    "UPDATE",
    "SET",
    "DELETE",
    "FROM",
    "WHERE",
    "AND",
    "NOT",
    "IS",
    "NULL",
    "BETWEEN",
    "CASE",
    "WHEN",
    "THEN",
    "END",
    "IN",
    "LIKE",
    "GLOB",
    "COLLATE",
    "NOCASE",
    "VALUES",
    "SELECT",
    "RETURNING",
    "LIMIT",
    "ORDER",
    "BY",
    "ON",
    "CONFLICT",
    "DO",
    "NOTHING",
    "DISTINCT",
    "ISNULL",
    "NOTNULL",
    "DEFAULT",
    "AS",
    "WITH",
    "EXISTS",
    "INDEXED",
    "(",
    ")",
    "( (",
    ") )",
    ",",
    ".",
    "=",
    "==",
    "<",
    ">",
    "!=",
    "<>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "||",
    "->",
    "->>",
    "~",
    ";",
    "?",
    "?2",
    ":a",
    "$b",
    "$b::c(d)",
    ":a(')",
    "'x'",
    "'id'",
    "'t'",
    "'main'",
    "\"zz\"",
    "\"id\"",
    "x'00'",
    "1",
    ".5",
    "id",
    "k",
    "n",
    "t",
    "u",
    "main",
    "temp",
    "rowid",
    "abs ( n )",
    "random ( )",
    "current_time",
];

/// A valid statement, spoilt at a few places.
fn text(random: &mut Random) -> String {
    let mut at = |end: usize| random.below(end);
    let mut words: Vec<&str> = VALID[at(VALID.len())].split(' ').collect();
    for _ in 0..1 + at(4) {
        let place = at(words.len());
        match at(5) {
            0 => drop(words.remove(place)),
            1 => words[place] = WORDS[at(WORDS.len())],
            2 => {
                let other = at(words.len());
                words.swap(place, other);
            }
            _ => words.insert(place, WORDS[at(WORDS.len())]),
        }
        if words.is_empty() {
            break;
        }
    }
    words.join([" ", " ", "\n", "/**/", " -- \n"][at(5)])
}

fn is_provable(sql: &str, schema: &Schema) -> bool {
    let values = Some(vec![Value::Null; 9]);
    let statement = Statement { sql: Sql::from(sql.as_bytes()), values, clock: None, nested: 0 };
    let (events, context) = (vec![Event::Statement(statement)], Some(Context::default()));
    provable(&Transaction { events, context, ..Transaction::default() }, schema).is_ok()
}

/// What SQLite says of a statement that is against it; `None`: it is no statement.
fn against(db: &Connection, asked: &Mutex<Vec<String>>, sql: &str) -> Option<Vec<String>> {
    asked.lock().unwrap().clear();
    let mut program = db.prepare(&format!("EXPLAIN {sql}")).ok()?;
    let mut found = std::mem::take(&mut *asked.lock().unwrap());
    let (mut rows, mut names) = (program.raw_query(), Vec::new());
    while let Some(row) = rows.next().unwrap() {
        names.push(row.get::<_, String>("opcode").unwrap());
    }
    let is_bad = |name: &String| {
        ["Next", "Prev", "Yield", "Program", "Function", "PureFunc", "VUpdate", "Rewind", "Last"]
            .contains(&&name[..])
    };
    found.extend(names.into_iter().filter(is_bad));
    Some(found)
}

#[test]
fn spoilt_statements() {
    let mut db = Connection::open_in_memory().unwrap();
    let mut schema = Schema::default();
    for (kind, sql) in TABLES {
        db.execute_batch(sql).unwrap();
        let table = if sql.contains(" u") { "u" } else { "t" };
        schema.add(kind.as_bytes(), table.as_bytes(), Some(sql.as_bytes()));
    }
    let asked = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&asked);
    db.authorizer(Some(move |it: AuthContext<'_>| {
        let is_good = match it.action {
            AuthAction::Insert { table_name }
            | AuthAction::Delete { table_name }
            | AuthAction::Update { table_name, .. }
            | AuthAction::Read { table_name, .. } => {
                table_name == "t" && it.database_name == Some("main") && it.accessor.is_none()
            }
            _ => false,
        };
        if !is_good {
            seen.lock().unwrap().push(format!("{:?}", it.action));
        }
        Authorization::Allow
    }))
    .unwrap();
    let (mut random, mut called, mut valid) = (Random(1), 0_u64, 0_u64);
    let texts = 200_000;
    for _ in 0..texts {
        let sql = text(&mut random);
        if !is_provable(&sql, &schema) {
            continue;
        }
        called += 1;
        if let Some(found) = against(&db, &asked, &sql) {
            assert!(found.is_empty(), "{sql}\n{found:?}");
            valid += 1;
        }
    }
    println!("{texts} texts: {called} were called provable, {valid} of them are statements");
    assert!(valid * 100 > texts, "{valid} of {texts}: hardly any is a statement");
}

//! Texts of SQL: such as mode statement carries, spoilt ones, and such as must never be run.

use dash_statement::{Control, Event, Sql, Statement, Transaction, Value};

use crate::random::Dice;

/// What reaches beyond a table's rows, or never ends; `{}` is a folder that is nobody's here.
const FOREIGN: [&str; 38] = [
    "ATTACH '{}/new.db' AS p",
    "ATTACH ('{}'||'/secret.db') AS p",
    "ATTACH 'file:{}/new.db?vfs=dash&dash_log={}/log' AS p",
    "CREATE TABLE p.made(a)",
    "INSERT INTO p.secret VALUES ('changed')",
    "CREATE TABLE main.stolen AS SELECT * FROM p.secret",
    "DETACH main",
    "VACUUM",
    "VACUUM INTO '{}/copy.db'",
    "VACUUM INTO ('{}'||'/copy.db')",
    "SELECT dash_backup('{}/authorized_keys','main','replace')",
    "SELECT dash_backup('{}/copy.db')",
    "INSERT INTO t VALUES (NULL,1,dash_backup('{}/copy.db'))",
    "SELECT load_extension('{}/x.so')",
    "SELECT writefile('{}/x',x)FROM t",
    "PRAGMA writable_schema=ON",
    "PRAGMA journal_mode=DELETE",
    "PRAGMA temp_store_directory='{}'",
    "SELECT * FROM pragma_temp_store_directory('{}')",
    "CREATE TABLE made(a)",
    "CREATE TEMP TABLE made(a)",
    "CREATE VIRTUAL TABLE made USING fts5(a)",
    "CREATE TRIGGER made AFTER UPDATE ON t BEGIN SELECT dash_backup('{}/copy.db'); END",
    "DROP TABLE t",
    "ALTER TABLE t ADD COLUMN made",
    "ANALYZE",
    "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c) SELECT count(*) FROM c",
    "INSERT INTO t VALUES (NULL,1,randomblob(900000000))",
    "INSERT INTO t VALUES (NULL,1,printf('%900000000d',1))",
    "SAVEPOINT a; ATTACH '{}/new.db' AS p",
    "RELEASE a\0; VACUUM INTO '{}/copy.db'",
    "BEGIN",
    "COMMIT",
    "ROLLBACK",
    ".shell touch {}/OWNED",
    "SELECT 1;\n.shell touch {}/OWNED",
    "/* a */\n.shell touch {}/OWNED",
    "UPDATE t SET v=';\n.shell touch {}/OWNED\n' WHERE k=1",
];

/// Words to spoil a text with.
const WORDS: &str = "INSERT INTO OR IGNORE REPLACE ROLLBACK UPDATE SET DELETE FROM WHERE AND NOT IS NULL BETWEEN CASE WHEN THEN \
    END IN LIKE GLOB MATCH REGEXP COLLATE NOCASE VALUES SELECT RETURNING LIMIT ORDER BY ON CONFLICT DO NOTHING DISTINCT ISNULL \
    NOTNULL DEFAULT AS WITH EXISTS INDEXED EXPLAIN PRAGMA ATTACH SAVEPOINT RELEASE TO ( ) (( )) , . = == < > != <> + - * / % || \
    -> ->> ~ ; -- /* */ ? ?2 :a $b $b::c(d) :a(') $a(abs(1)) 'x' 'k' 't' 'main' \"zz\" \"k\" [k] `k` x'00' 1 .5 1e3 k v x t u \
    main temp sqlite_schema rowid abs(v) random() zeroblob(9) \"abs\"(1) abs/**/(1) current_time raise(ignore) iif(1,2,3) \
    (select(1)) exists(select(1)) (1,2) 1in(u) \u{feff} \0 \u{b}";

/// A table that statements are about.
pub struct Table {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    /// Columns of which each has one row at most.
    pub key: &'static [&'static str],
}

/// The table of forged sets.
pub const T: Table = Table { name: "t", columns: &["k", "v", "x"], key: &["k"] };

/// One that reaches for `folder`.
pub fn foreign(dice: &mut Dice, folder: &str) -> String {
    dice.pick(&FOREIGN).unwrap_or_default().replace("{}", folder)
}

fn name(dice: &mut Dice, name: &str) -> String {
    match dice.below(if name.contains('-') || name == "order" { 3 } else { 8 }) {
        0 => format!("\"{name}\""),
        1 => format!("[{name}]"),
        2 => format!("`{name}`"),
        3 => name.to_uppercase(),
        _ => name.to_owned(),
    }
}

fn constant(dice: &mut Dice) -> String {
    const ALL: [&str; 12] =
        ["?", "?2", ":a", "$b", "@c", "1", "- 1.5", "1e3", "'x'", "'it''s--x'", "x'00'", "7"];
    dice.pick(&ALL).unwrap_or_default().to_owned()
}

fn value(dice: &mut Dice, table: Option<&Table>, depth: u64) -> String {
    match dice.below(9) {
        0 if depth > 0 => format!("( {} )", value(dice, table, depth - 1)),
        1 | 2 if depth > 0 => {
            let sign = dice.pick(&["+", "-", "||", "*", "<", "AND", "IS NOT"]).unwrap_or("+");
            format!("{} {sign} {}", value(dice, table, depth - 1), value(dice, table, depth - 1))
        }
        3 => dice.pick(&["NULL", "TRUE", "+ 1", "NOT 0", "~ 1"]).unwrap_or("1").to_owned(),
        4 | 5 => match table.and_then(|table| dice.pick(table.columns)) {
            Some(column) => name(dice, column),
            None => constant(dice),
        },
        _ => constant(dice),
    }
}

fn condition(dice: &mut Dice, table: &Table) -> String {
    let mut all = Vec::new();
    for column in table.key {
        let (column, constant) = (name(dice, column), constant(dice));
        all.push(match dice.below(4) {
            0 => format!("{constant} = {column}"),
            1 => format!("( {column} == {constant} )"),
            _ => format!("{column} = {constant}"),
        });
    }
    if dice.one_in(4) {
        all.push(format!("( {} )", value(dice, Some(table), 2)));
    }
    all.join(" AND ")
}

/// A statement that writes a row.
pub fn statement(dice: &mut Dice, table: &Table) -> String {
    let or = dice.pick(&["", "", "OR IGNORE", "OR REPLACE", "OR FAIL"]).unwrap_or_default();
    let main = if dice.one_in(4) { "main . " } else { "" };
    let target = format!("{main}{}", name(dice, table.name));
    let end = if dice.one_in(4) { ";" } else { "" };
    match dice.below(3) {
        0 => {
            let values: Vec<_> = table.columns.iter().map(|_| value(dice, None, 2)).collect();
            format!("INSERT {or} INTO {target} VALUES ( {} ) {end}", values.join(" , "))
        }
        1 => {
            let changed = dice.pick(table.columns).unwrap_or_default();
            let changed = format!("{} = {}", name(dice, changed), value(dice, Some(table), 2));
            format!("UPDATE {or} {target} SET {changed} WHERE {} {end}", condition(dice, table))
        }
        _ => format!("DELETE FROM {target} WHERE {} {end}", condition(dice, table)),
    }
}

/// What divides a transaction.
pub fn control(dice: &mut Dice) -> String {
    let name = dice.pick(&["a", "\"a-b\"", "'a'", "[;]", "release", "`x`"]).unwrap_or_default();
    let begin = dice.pick(&["SAVEPOINT", "RELEASE", "RELEASE SAVEPOINT"]).unwrap_or_default();
    format!("{begin} {name} {}", if dice.one_in(4) { ";" } else { "" })
}

/// The same with other spaces, and at times spoilt at a few places.
pub fn spoilt(text: &str, dice: &mut Dice) -> String {
    let mut words: Vec<&str> = text.split(' ').filter(|word| !word.is_empty()).collect();
    let more: Vec<&str> = WORDS.split(' ').filter(|word| !word.is_empty()).collect();
    for _ in 0..[0, 0, 1, 1, 2, 4][dice.index(6)] {
        let (place, other) = (dice.index(words.len()), dice.index(words.len()));
        match dice.below(5) {
            _ if words.is_empty() => break,
            0 => drop(words.remove(place)),
            1 => words[place] = more[dice.index(more.len())],
            2 => words.swap(place, other),
            _ => words.insert(place, more[dice.index(more.len())]),
        }
    }
    words.join(dice.pick(&[" ", " ", "\n", "/**/", " -- \n", "\t"]).unwrap_or(" "))
}

/// A condition nested so deep.
fn nested(depth: usize) -> String {
    format!("DELETE FROM t WHERE {}k=?{}", "k=?and(".repeat(depth), ")".repeat(depth))
}

fn bound(dice: &mut Dice) -> Value {
    match dice.below(8) {
        0 => Value::Null,
        1 => Value::Text(b"it's\0\x1b]0;\xe2\x80\xae".to_vec()),
        2 => Value::Blob(vec![7; dice.index(2000)]),
        3 if dice.one_in(4) => Value::Zeroblob([9, 70_000, 500_000_000, 1 << 40][dice.index(4)]),
        4 => Value::Real(dice.draw()),
        _ => Value::Integer(dice.below(9).cast_signed()),
    }
}

/// A step with this text, of any kind.
fn step(text: &str, dice: &mut Dice) -> Event {
    let sql = Sql::from(text.as_bytes());
    let kinds = [Control::Savepoint, Control::Release, Control::RollbackTo];
    match dice.below(8) {
        kind @ 0..3 => Event::Control(kinds[usize::try_from(kind).unwrap_or(0)], sql),
        _ => {
            let values = Some((0..3).map(|_| bound(dice)).collect());
            Event::Statement(Statement { sql, values, clock: None, nested: 0 })
        }
    }
}

/// What a transaction is said to have run that has run something else, if anything.
pub fn forge(ran: &mut Transaction, dice: &mut Dice, folder: &str) {
    let any = |dice: &mut Dice| match dice.below(8) {
        0..3 => foreign(dice, folder),
        3 => control(dice),
        4 => nested([50, 150, 1000, 4000, 7900][dice.index(5)]),
        _ => {
            let text = statement(dice, &T);
            spoilt(&text, dice)
        }
    };
    let mut texts: Vec<_> = (0..=dice.index(4)).map(|_| any(dice)).collect();
    let mut steps: Vec<_> = texts.iter().map(|text| step(text, dice)).collect();
    if dice.one_in(3) {
        // Out of the transaction, and into another one.
        texts = vec!["COMMIT".to_owned(), foreign(dice, folder), "BEGIN".to_owned()];
        let control = |text: &String| Event::Control(Control::Savepoint, text.as_bytes().into());
        steps = texts.iter().map(control).collect();
    }
    if dice.one_in(8) {
        steps = vec![steps[0].clone(); dice.index(2000)];
    }
    match dice.below(3) {
        0 => ran.events = steps,
        1 => ran.events.extend(steps),
        _ => drop(ran.events.splice(..0, steps)),
    }
    if dice.one_in(16) {
        ran.context = None;
    }
}

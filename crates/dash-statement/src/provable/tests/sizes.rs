//! What is too large to be judged, and too much to be read, is not provable.

use super::*;

/// `STATEMENT-6`, SEC S2-6: no data decides how deep the stack is.
#[test]
fn what_is_long_or_deep_is_not() {
    let schema = schema(&[TABLE]);
    let nested = |count: usize| {
        format!(
            "DELETE FROM t WHERE id=?and({}1{})",
            "?=?and(".repeat(count - 1),
            ")".repeat(count - 1)
        )
    };
    assert_eq!(judge(&nested(99), &schema), Ok(()));
    for count in [200, 8_000, 200_000] {
        assert_eq!(judge(&nested(count), &schema), Err(Unprovable::Form));
    }
    for count in [400, 8_000, 200_000] {
        let braces = format!("{}1{}", "(".repeat(count), ")".repeat(count));
        let values = format!("INSERT INTO t VALUES ({braces}, 1, 1)");
        assert_eq!(judge(&values, &schema).is_ok(), count == 400);
        let key = format!("DELETE FROM t WHERE {braces}=id");
        assert_eq!(judge(&key, &schema), Err(Unprovable::Form));
    }
    let sum = |count: usize| format!("UPDATE t SET n = 1{} WHERE id = ?", "+1".repeat(count));
    assert_eq!(judge(&sum(400), &schema), Ok(()));
    assert_eq!(judge(&sum(500), &schema), Err(Unprovable::Form));
}

/// `STATEMENT-6`, SEC A10-1: a value may be as long as the database, and SQLite has all at once.
#[test]
fn many_copies_of_a_value_are_not() {
    let schema = schema(&[TABLE]);
    let update = |value: &str| judge(&format!("UPDATE t SET n = {value} WHERE id = ?"), &schema);
    let key = |of: &str, count: usize| {
        let nested = format!("{}?{}", format!("({of}=").repeat(count), ")".repeat(count));
        judge(&format!("DELETE FROM t WHERE id = ? AND {nested}"), &schema)
    };
    for count in [3, 4, 5, 300] {
        let judged = if count <= 4 { Ok(()) } else { Err(Unprovable::Form) };
        assert_eq!(update(&format!("({}'')isnull", "?1||".repeat(count))), judged, "{count}");
        assert_eq!(update(&format!("({}'')isnull", "k||".repeat(count))), judged, "{count}");
        for of in ["k", "\"K\"", "t.k", "t.'k'", "t.[k]"] {
            assert_eq!(key(of, count.min(200)), judged, "{of} {count}");
        }
        assert_eq!(key("?", count.min(200)), Ok(()), "{count}");
        // They are counted in all of its expressions together.
        let values = (0..3).map(|value| "?||".repeat(count / 3 + usize::from(value < count % 3)));
        let values: Vec<_> = values.map(|value| value + "''").collect();
        let insert = format!("INSERT INTO t VALUES ({})", values.join(", "));
        assert_eq!(judge(&insert, &schema), judged, "{insert}");
    }
    let texts = "INSERT INTO t(k, n) VALUES ('k|k||k|||k||||k||k||k||k', 'k'='k'='k'='k'='k'='k')";
    assert_eq!(judge(texts, &schema), Ok(()));
    assert_eq!(update("n|1|2|4|8|16|32"), Ok(()));
}

/// `STATEMENT-6`, SEC A10-1: SQLite makes the entries of all indexes before it writes the first.
#[test]
fn a_column_in_many_indexes_is_not() {
    let with = |indexes: usize, columns: &str| {
        let index = |number| format!("CREATE INDEX i{number} ON t({columns})");
        let all: Vec<_> = (0..indexes).map(index).collect();
        let all: Vec<_> = [TABLE].into_iter().chain(all.iter().map(String::as_str)).collect();
        judge("UPDATE t SET n = ? WHERE id = ?", &schema(&all))
    };
    assert_eq!(with(14, "n, k"), Ok(()));
    assert_eq!(with(15, "n"), Err(Unprovable::Table));
    assert_eq!(with(1, "n, k, N"), Err(Unprovable::Table));
}

/// `STATEMENT-6`, SEC S2-7: a few bytes of a log stand for so many zeros.
#[test]
fn many_zeros_are_not() {
    let schema = schema(&[TABLE]);
    let zeros = |counts: &[u64]| {
        let mut all = ran("INSERT INTO t(k) VALUES (?)");
        let step = all.events.pop().unwrap();
        for count in counts {
            let Event::Statement(mut it) = step.clone() else { panic!("a statement") };
            it.values = Some(vec![Value::Zeroblob(*count)]);
            all.events.push(Event::Statement(it));
        }
        provable(&all, &schema)
    };
    assert_eq!(zeros(&[1 << 20]), Ok(()));
    assert_eq!(zeros(&[1 << 20, 1]), Err(Unprovable::Form));
    assert_eq!(zeros(&[u64::MAX, u64::MAX]), Err(Unprovable::Form));
}

/// A page that names one long row thirty thousand times, in a tree that names the page as often:
/// whoever reads the schema reads so much, and calls nothing provable. SEC S2-12
#[test]
fn a_schema_that_is_too_long_is_not_read_to_its_end() {
    const PAGE: usize = 1 << 16;
    const COUNT: u16 = 30_000;
    let pointers = |page: &mut [u8], begin: usize, kind: u8, head: usize, to: u16| {
        page[begin] = kind;
        page[begin + 3..begin + 5].copy_from_slice(&COUNT.to_be_bytes());
        let all = &mut page[begin + head..begin + head + 2 * usize::from(COUNT)];
        all.as_chunks_mut().0.fill(to.to_be_bytes());
    };
    let mut first = vec![0; PAGE];
    first[59] = 1;
    first[PAGE - 5] = 2;
    pointers(&mut first, 100, 5, 12, u16::MAX - 7);
    // A row of 2500 bytes with a table's definition.
    let definition = format!("{TABLE}{}", " ".repeat(2400 - TABLE.len()));
    let columns = ["table", "t", "t"].map(|text| (13 + 2 * text.len(), text.to_owned()));
    let mut row = vec![7];
    row.extend(columns.iter().map(|(kind, _)| u8::try_from(*kind).expect("short")));
    row.push(8);
    let kind = 13 + 2 * definition.len();
    row.extend([
        0x80 | u8::try_from(kind >> 7).expect("short"),
        u8::try_from(kind & 127).expect("seven bits"),
    ]);
    row.extend(columns.iter().flat_map(|(_, text)| text.bytes()));
    row.extend(definition.bytes());
    let mut leaf = vec![0; PAGE];
    let at = PAGE - 2600;
    let mut cell = vec![0x80 | u8::try_from(row.len() >> 7).expect("short")];
    cell.extend([u8::try_from(row.len() & 127).expect("seven bits"), 1]);
    cell.extend(&row);
    leaf[at..at + cell.len()].copy_from_slice(&cell);
    pointers(&mut leaf, 0, 13, 8, u16::try_from(at).expect("in the page"));
    let mut seen = 0;
    let schema = Schema::of_pages(|number| {
        seen += 1;
        match number {
            _ if seen > 300 => Err("many pages are read"),
            1 => Ok(Some(first.clone())),
            2 => Ok(Some(leaf.clone())),
            _ => Ok(None),
        }
    });
    let judged = judge("DELETE FROM t WHERE k = ?", &schema.expect("is read"));
    assert_eq!(judged, Err(Unprovable::Table));
}

/// `STATEMENT-6`
#[test]
fn nothing_is_provable_where_a_part_of_the_schema_cant_be_read() {
    let judge = |schema| judge("DELETE FROM t WHERE id = ?", schema);
    assert_eq!(judge(&Schema::unreadable()), Err(Unprovable::Table));
    // A tree that leads back to its first page, and one whose page is not there.
    for child in [1, 9] {
        let mut page = vec![0; 512];
        page[56..60].copy_from_slice(&1_u32.to_be_bytes());
        page[100] = 5;
        page[108..112].copy_from_slice(&u32::to_be_bytes(child));
        let read = |number| Ok::<_, ()>((number == 1).then(|| page.clone()));
        assert_eq!(Schema::of_pages(read), Ok(Schema::unreadable()));
    }
}

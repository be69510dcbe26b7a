//! What is encoded is what is decoded, and junk is told from it.

use dash_statement::{
    Circumstance, Context, Control, Event, Malformed, Reason, Reasons, Sql, Statement, Transaction,
    Value, decode, encode, encode_within,
};
use proptest::prelude::*;

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<i64>().prop_map(Value::Integer),
        any::<u64>().prop_map(Value::Real),
        any::<Vec<u8>>().prop_map(Value::Text),
        any::<Vec<u8>>().prop_map(Value::Blob),
        any::<u64>().prop_map(Value::Zeroblob),
        Just(Value::Pointer),
    ]
}

fn sql() -> impl Strategy<Value = Sql> {
    prop_oneof![
        Just(Sql::from(&b"INSERT INTO t VALUES (?)"[..])),
        any::<Vec<u8>>().prop_map(Sql::from)
    ]
}

fn event() -> impl Strategy<Value = Event> {
    let values = proptest::option::of(proptest::collection::vec(value(), 0..6));
    let statement = (sql(), values, any::<Option<i64>>(), any::<u32>()).prop_map(
        |(sql, values, clock, nested)| Event::Statement(Statement { sql, values, clock, nested }),
    );
    let control =
        prop_oneof![Just(Control::Savepoint), Just(Control::Release), Just(Control::RollbackTo)];
    prop_oneof![statement, (control, sql()).prop_map(|(control, sql)| Event::Control(control, sql))]
}

fn transaction() -> impl Strategy<Value = Transaction> {
    let reasons = 0..1_u32 << Reason::ALL.len();
    let context = proptest::option::of(0..1_u32 << Circumstance::ALL.len());
    (proptest::collection::vec(event(), 0..8), any::<u32>(), reasons, context).prop_map(
        |(events, dropped, reasons, context)| Transaction {
            events,
            dropped,
            reasons: Reasons::of_bits(reasons).expect("known reasons"),
            context: context.map(|bits| Context::of_bits(bits).expect("known ones")),
        },
    )
}

proptest! {
    /// `STATEMENT-1`: nothing is lost, to the last bit.
    #[test]
    fn what_is_encoded_is_decoded(transaction in transaction()) {
        prop_assert_eq!(decode(&encode(&transaction)), Ok(transaction));
    }

    /// `STATEMENT-4`: the first steps, what is missing, and why.
    #[test]
    fn in_little_room_the_first_steps_are_kept(transaction in transaction(), room in 0..600_usize) {
        let transaction = Transaction { dropped: transaction.dropped / 2, ..transaction };
        let whole = encode(&transaction);
        let Some(bytes) = encode_within(&transaction, room) else {
            prop_assert!(whole.len() > room);
            return Ok(());
        };
        prop_assert!(bytes.len() <= room);
        let known = decode(&bytes).expect("is decoded");
        let kept = known.events.len();
        prop_assert_eq!(&known.events[..], &transaction.events[..kept]);
        prop_assert_eq!(known.dropped as usize, transaction.dropped as usize + transaction.events.len() - kept);
        prop_assert_eq!(kept == transaction.events.len(), bytes == whole);
        prop_assert!(bytes == whole || known.reasons.has(Reason::NoRoom));
        let more = Transaction { events: transaction.events[..(kept + 1).min(transaction.events.len())].to_vec(), ..transaction };
        prop_assert!(bytes == whole || encode(&more).len() > room);
    }

    /// `STATEMENT-3`.
    #[test]
    fn junk_is_refused_without_a_panic(mut bytes in any::<Vec<u8>>()) {
        drop(decode(&bytes));
        if let Some(first) = bytes.first_mut() {
            *first = 1 + *first % 2;
        }
        drop(decode(&bytes));
    }

    /// `STATEMENT-3`, close to the truth: one byte is another, or the end is missing.
    #[test]
    fn what_is_damaged_or_cut_is_refused_without_a_panic(
        transaction in transaction(),
        at in any::<prop::sample::Index>(),
        bit in 0..8_u8,
    ) {
        let mut bytes = encode(&transaction);
        let at = at.index(bytes.len());
        prop_assert!(decode(&bytes[..at]).is_err());
        bytes[at] ^= 1 << bit;
        drop(decode(&bytes));
    }
}

#[test]
fn the_layout_is_that_of_the_document() {
    let sql = Sql::from(&b"U"[..]);
    let values = Some(vec![Value::Integer(-5), Value::Real(1), Value::Text(b"a".to_vec())]);
    let statement = Statement { sql: sql.clone(), values, clock: Some(7), nested: 2 };
    let mut reasons = Reasons::default();
    reasons.add(Reason::OpenQuery);
    let events = vec![Event::Statement(statement), Event::Control(Control::RollbackTo, sql)];
    let transaction = Transaction { events, dropped: 3, reasons, context: None };
    let bytes = encode(&transaction);
    let expected: &[&[u8]] = &[
        &[1],                            // version
        &[2, 0, 0, 0],                   // reasons
        &[3, 0, 0, 0],                   // dropped
        &[1, 0, 0, 0, 1, 0, 0, 0, b'U'], // texts
        &[2, 0, 0, 0],                   // steps
        &[0, 0, 0, 0, 0, 3, 2, 0, 0, 0], // a statement
        &[7, 0, 0, 0, 0, 0, 0, 0],       // its clock
        &[3, 0, 0, 0],                   // its values
        &[1, 251, 255, 255, 255, 255, 255, 255, 255],
        &[2, 1, 0, 0, 0, 0, 0, 0, 0],
        &[3, 1, 0, 0, 0, b'a'],
        &[3, 0, 0, 0, 0], // ROLLBACK TO
    ];
    assert_eq!(bytes, expected.concat());
    let mut context = Context::default();
    context.add(Circumstance::OtherDatabase);
    let bytes = encode(&Transaction { context: Some(context), ..transaction });
    let mut expected = expected.concat();
    expected[0] = 2;
    expected.splice(9..9, [2, 0, 0, 0]); // the connection, behind what was dropped
    assert_eq!(bytes, expected);
}

#[test]
fn what_is_wrong_is_named() {
    let empty = encode(&Transaction::default());
    assert_eq!(decode(&[]), Err(Malformed::CutOff));
    assert_eq!(decode(&[3]), Err(Malformed::Version(3)));
    assert_eq!(decode(&[&empty[..], &[0]].concat()), Err(Malformed::Trailing));
    let mut unknown = empty.clone();
    unknown[4] = 0x80;
    assert_eq!(decode(&unknown), Err(Malformed::Unknown));
    // A count that the bytes can't hold takes no memory.
    let mut huge = empty;
    huge[9..13].fill(0xff);
    assert_eq!(decode(&huge), Err(Malformed::CutOff));
}

//! What a log of lines leaves out of the headers of frames is what SQLite had written there.

use super::*;
use crate::context::{Generation, WAL_HEADER};
use crate::frames::frame_size;
use crate::stamp::Stamp;
use dash_log::format::Form;
use dash_log::head::{Head, State};
use dash_log::record::{Builder, WINDOW_START};
use proptest::prelude::*;

const PAGE: u32 = 512;
const ID: u64 = 0x1122_3344_5566_7788;

/// A `-wal` that SQLite wrote: its header, and its frames with theirs.
fn wal() -> ([u8; WAL_HEADER], Vec<Vec<u8>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("db");
    let sqlite = rusqlite::Connection::open(&path).unwrap();
    sqlite.pragma_update(None, "page_size", PAGE).unwrap();
    sqlite.pragma_update(None, "journal_mode", "WAL").unwrap();
    sqlite.pragma_update(None, "wal_autocheckpoint", 0).unwrap();
    sqlite.execute_batch("CREATE TABLE t (x)").unwrap();
    for number in 0..9 {
        let rows =
            format!("INSERT INTO t SELECT randomblob({}) FROM json_each('[1,2,3]')", number * 60);
        sqlite.execute_batch(&rows).unwrap();
    }
    let bytes = std::fs::read(folder.path().join("db-wal")).unwrap();
    let (header, frames) = bytes.split_first_chunk().unwrap();
    let size = usize::try_from(frame_size(PAGE)).unwrap();
    (*header, frames.chunks_exact(size).map(<[u8]>::to_vec).collect())
}

/// A log of lines: a window that begins with no frame, or with the first of these, and records of
/// the others, in these parts.
fn log(header: [u8; WAL_HEADER], parts: &[&[Vec<u8>]], first: u32, within: bool) -> Scan {
    let head = Head {
        id: ID,
        state: State::InUse,
        block: 64,
        sequence: 0,
        ring: 0,
        owner: 0,
        next: None,
        context: Vec::new(),
    };
    let mut bytes = vec![0; 4096];
    bytes[512..1024].copy_from_slice(&head.encode_turn(1).unwrap());
    let (mut builder, mut images) = (Builder::new(), Images::new(PAGE));
    builder.set_form(Form::Lines);
    let generation =
        Generation { number: 3, header, first: 1, predecessor: 0, stamp: Stamp::default() };
    let mut number = first;
    let (start, parts) = if within { parts.split_at(1) } else { (&[&[][..]][..], parts) };
    let all = start.iter().map(|part| (part, Some(generation)));
    let all = all.chain(parts.iter().map(|part| (part, None)));
    for (sequence, (part, start)) in (1..).zip(all) {
        let context = RecordContext { generation: 3, first_frame: number, carried: None, start };
        let headers = part.iter().filter_map(|frame| frame.first_chunk());
        let (context, flags, meta) = match start {
            Some(_) => (context.encode(), WINDOW_START, 24),
            None => {
                let mut bytes = context.encode_short();
                put_ends(headers, &mut bytes);
                (bytes, 0, 0)
            }
        };
        builder.begin(ID, sequence, flags, PAGE, meta, &context).unwrap();
        for frame in *part {
            let (header, image) = frame.split_at(FRAME_HEADER);
            let page = FrameHeader::decode(header.try_into().unwrap()).page;
            let old = images.image_of(page).unwrap().map(<[u8]>::to_vec);
            let meta = if start.is_some() { header } else { &[] };
            builder.push(page, meta, old.as_deref(), image).unwrap();
            images.set(page, image).unwrap();
        }
        bytes.extend(builder.finish(64).unwrap());
        number += u32::try_from(part.len()).unwrap();
    }
    Scan::examine(bytes, "log").unwrap()
}

proptest! {
    #[test]
    fn headers_are_as_sqlite_wrote_them(
        cuts in prop::collection::btree_set(1..12_usize, 1..6), skipped in 0..6_usize, within in any::<bool>(),
    ) {
        let (header, frames) = wal();
        let parsed = WalHeader::decode(&header, "wal").unwrap().unwrap();
        // A window that starts with frames has their headers, whatever was before them.
        let skipped = if within { skipped } else { 0 };
        let mut rest = &frames[skipped..];
        let mut parts = Vec::new();
        for cut in cuts {
            let (part, behind) = rest.split_at(cut.min(rest.len()));
            parts.push(part);
            rest = behind;
        }
        parts.push(rest);
        let first = u32::try_from(skipped).unwrap() + 1;
        let scan = log(header, &parts, first, within);
        let found = headers(&scan, &parsed).unwrap();
        prop_assert_eq!(found.all.len(), frames.len() - skipped);
        for (number, frame) in (first..).zip(&frames[skipped..]) {
            prop_assert_eq!(&found.get(number).unwrap()[..], &frame[..FRAME_HEADER], "frame {}", number);
        }
        let commits: Vec<_> = scan
            .records()
            .flat_map(|record| Frames::of(&record.unwrap()).unwrap().1.collect::<Vec<_>>())
            .map(|frame| (frame.entry.unit, frame.commit))
            .collect();
        let wanted = frames[skipped..].iter().map(|frame| {
            let header = FrameHeader::decode(frame.first_chunk().unwrap());
            (header.page, header.commit)
        });
        prop_assert_eq!(commits, wanted.collect::<Vec<_>>());
    }

    #[test]
    fn any_bytes_that_say_where_commits_end_are_read_or_refused(
        bytes in prop::collection::vec(any::<u8>(), 0..12), frames in 0..5_u32,
    ) {
        if let Ok(mut ends) = Ends::of(&bytes, frames) {
            for _ in 0..frames {
                ends.next_frame();
            }
            prop_assert_eq!(ends.next_frame(), 0);
        }
    }
}

#[test]
fn a_frame_behind_a_gap_is_refused() {
    // WAL-31: nobody writes such a log, and its checksum is not guessed.
    let (header, frames) = wal();
    let parsed = WalHeader::decode(&header, "wal").unwrap().unwrap();
    let scan = log(header, &[&frames[3..6]], 4, false);
    assert!(matches!(headers(&scan, &parsed), Err(Error::Corrupt(_))));
    assert!(headers(&log(header, &[&frames[..3]], 1, false), &parsed).is_ok());
}

#[test]
fn what_cannot_be_said_of_commits_is_refused() {
    for (bytes, frames) in
        [(&[1][..], 1), (&[0, 5], 1), (&[2, 5], 1), (&[1, 0], 1), (&[1, 5, 1, 6], 1)]
    {
        assert!(Ends::of(bytes, frames).is_err(), "{bytes:?}");
    }
    assert!(Ends::of(&[1, 5, 1, 6], 2).is_ok() && Ends::of(&[], 3).is_ok());
}

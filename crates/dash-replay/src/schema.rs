//! The schema of a database, for whoever asks whether a transaction provably replays on it.

use dash_statement::Schema;

use crate::Result;
use crate::image::Image;

/// Of page 1: the text encoding, in big-endian order.
const ENCODING: std::ops::Range<usize> = 56..60;
const UTF_8: [u8; 4] = 1_u32.to_be_bytes();

/// Reads it.
pub fn of(image: &Image) -> Result<Schema> {
    let mut schema = Schema::default();
    let first = image.get(1)?.unwrap_or_default();
    if first.get(ENCODING) != Some(&UTF_8) {
        schema.is_not_utf8();
    }
    let db = image.reader()?;
    let mut prepared = db.prepare("SELECT type, tbl_name, sql FROM sqlite_master")?;
    let mut rows = prepared.query([])?;
    while let Some(row) = rows.next()? {
        let text = |column| -> Result<Option<Vec<u8>>> {
            let bytes = row.get_ref(column)?.as_bytes_or_null().map_err(rusqlite::Error::from)?;
            Ok(bytes.map(<[u8]>::to_vec))
        };
        let (kind, table, sql) = (text(0)?, text(1)?, text(2)?);
        schema.add(&kind.unwrap_or_default(), &table.unwrap_or_default(), sql.as_deref());
    }
    Ok(schema)
}

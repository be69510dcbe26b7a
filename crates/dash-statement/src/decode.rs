//! Bytes as a transaction. Nothing is believed: every number is checked against what is there.

use crate::context::Context;
use crate::format::{
    BLOB, HAS_CLOCK, HAS_VALUES, INTEGER, NULL, POINTER, REAL, RELEASE, ROLLBACK_TO, SAVEPOINT,
    STATEMENT, TEXT, VERSION, WITH_CONTEXT, ZEROBLOB,
};
use crate::model::{Control, Event, Sql, Statement, Transaction, Value};
use crate::reason::Reasons;

/// Why bytes are no transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// A version that this dash does not know.
    #[error("the statements are in format {0}, which this dash does not know")]
    Version(u8),
    /// They end before what they announce.
    #[error("the statements are cut off")]
    CutOff,
    /// Something follows the last step.
    #[error("something follows the last statement")]
    Trailing,
    /// A number that means nothing.
    #[error("the statements hold a number that means nothing")]
    Unknown,
}

/// What was encoded.
///
/// # Errors
///
/// Why the bytes are none. `STATEMENT-3`: whatever they are, nothing panics, and no more memory is
/// taken than a small multiple of their number.
pub fn decode(bytes: &[u8]) -> Result<Transaction, Malformed> {
    let mut bytes = Bytes(bytes);
    let has_context = match bytes.u8()? {
        VERSION => false,
        WITH_CONTEXT => true,
        other => return Err(Malformed::Version(other)),
    };
    let reasons = Reasons::of_bits(bytes.u32()?).ok_or(Malformed::Unknown)?;
    let dropped = bytes.u32()?;
    let context = match has_context {
        true => Some(Context::of_bits(bytes.u32()?).ok_or(Malformed::Unknown)?),
        false => None,
    };
    let texts = bytes.list(|bytes| Ok(Sql::from(bytes.content()?)))?;
    let events = bytes.list(|bytes| bytes.event(&texts))?;
    match bytes.0 {
        [] => Ok(Transaction { events, dropped, reasons, context }),
        _ => Err(Malformed::Trailing),
    }
}

/// What is left.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(Malformed::CutOff)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Malformed::CutOff)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    fn length(&mut self) -> Result<usize, Malformed> {
        usize::try_from(self.u32()?).map_err(|_| Malformed::CutOff)
    }

    fn content(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.length()?;
        self.take(length)
    }

    /// So many items. Each takes some of the bytes, and memory only then.
    fn list<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.length()?;
        (0..count).map(|_| item(self)).collect()
    }

    fn sql(&mut self, texts: &[Sql]) -> Result<Sql, Malformed> {
        let number = self.length()?;
        texts.get(number).cloned().ok_or(Malformed::Unknown)
    }

    fn event(&mut self, texts: &[Sql]) -> Result<Event, Malformed> {
        let control = match self.u8()? {
            STATEMENT => return self.statement(texts).map(Event::Statement),
            SAVEPOINT => Control::Savepoint,
            RELEASE => Control::Release,
            ROLLBACK_TO => Control::RollbackTo,
            _ => return Err(Malformed::Unknown),
        };
        Ok(Event::Control(control, self.sql(texts)?))
    }

    fn statement(&mut self, texts: &[Sql]) -> Result<Statement, Malformed> {
        let sql = self.sql(texts)?;
        let flags = self.u8()?;
        if flags & !(HAS_VALUES | HAS_CLOCK) != 0 {
            return Err(Malformed::Unknown);
        }
        let nested = self.u32()?;
        let clock = match flags & HAS_CLOCK {
            0 => None,
            _ => Some(i64::from_le_bytes(self.array()?)),
        };
        let values = match flags & HAS_VALUES {
            0 => None,
            _ => Some(self.list(Self::value)?),
        };
        Ok(Statement { sql, values, clock, nested })
    }

    fn value(&mut self) -> Result<Value, Malformed> {
        Ok(match self.u8()? {
            NULL => Value::Null,
            INTEGER => Value::Integer(i64::from_le_bytes(self.array()?)),
            REAL => Value::Real(u64::from_le_bytes(self.array()?)),
            TEXT => Value::Text(self.content()?.to_vec()),
            BLOB => Value::Blob(self.content()?.to_vec()),
            ZEROBLOB => Value::Zeroblob(u64::from_le_bytes(self.array()?)),
            POINTER => Value::Pointer,
            _ => return Err(Malformed::Unknown),
        })
    }
}

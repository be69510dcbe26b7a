//! The PRAGMAs of mode shadow, and those of SQLite that it takes notice of.

use dash_ffi::{Code, Error, Result};
use dash_shadow::Protocol;

use super::file::ShadowFile;
use super::{parameters, secure_delete};
use crate::controls::deletes_securely;
use crate::latency::times_reads;
use crate::mode::COMMIT;

fn wrong(message: String) -> Error {
    Error::new(Code::ERROR, message)
}

impl ShadowFile {
    /// See [`crate::mode::Database::pragma`].
    pub(super) fn answer(&mut self, name: &str, value: Option<&str>) -> Option<Result<String>> {
        match (name, value) {
            ("locking_mode", Some(value)) => self.locking_mode(value),
            ("secure_delete", Some(value)) => self.set_secure_delete(value),
            ("dash_commit", value) => return Some(self.dash_commit(value).map(str::to_owned)),
            ("dash_kept_limit", value) => return Some(self.dash_kept_limit(value)),
            ("dash_time_reads", value) => {
                return Some(self.dash_time_reads(value).map(str::to_owned));
            }
            _ => {}
        }
        None
    }

    fn locking_mode(&mut self, value: &str) {
        let exclusive = value.eq_ignore_ascii_case("exclusive");
        // Any other name SQLite takes for a question.
        if exclusive || value.eq_ignore_ascii_case("normal") {
            self.exclusive = exclusive;
        }
        if self.protocol == Protocol::Paper {
            let protocol = if exclusive { Protocol::Exclusive } else { Protocol::Paper };
            self.link.choose(COMMIT, protocol.name());
        }
    }

    /// `PRAGMA secure_delete = value`. Fast, too: it leaves whole pages as they were, and
    /// overwrites the rest.
    fn set_secure_delete(&mut self, value: &str) {
        let on = deletes_securely(value);
        if on {
            secure_delete::switch_on();
        }
        self.secure_delete = Some(on);
    }

    fn dash_commit(&mut self, value: Option<&str>) -> Result<&'static str> {
        if let Some(value) = value {
            self.protocol = parameters::protocol(value).map_err(wrong)?;
            self.link.choose(COMMIT, self.protocol.name());
        }
        Ok(self.link.chosen(parameters::protocol_of).name())
    }

    fn dash_kept_limit(&mut self, value: Option<&str>) -> Result<String> {
        if let Some(value) = value {
            parameters::kept_limit(value).map_err(wrong)?;
            self.link.choose(parameters::KEPT_LIMIT, value);
        }
        let limit = self.link.chosen(parameters::kept_limit_of);
        Ok(limit.map_or_else(|| "auto".to_owned(), |limit| limit.to_string()))
    }

    fn dash_time_reads(&mut self, value: Option<&str>) -> Result<&'static str> {
        if let Some(value) = value {
            self.time_reads = times_reads(value).map_err(wrong)?;
        }
        Ok(if self.time_reads { "on" } else { "off" })
    }
}

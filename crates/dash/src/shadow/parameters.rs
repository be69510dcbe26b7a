//! The URI parameters of mode shadow.

use dash_shadow::Protocol;

use crate::mode::{COMMIT, DEFAULT, Parameter, Parameters};
use crate::rest;

/// How many bytes of overwritten pages may be kept for readers.
pub const KEPT_LIMIT: &str = "dash_kept_limit";
/// The least: below it nothing is given back either.
const KEPT_LIMIT_MIN: u64 = 1 << 20;

/// All of them.
pub const ALL: &[Parameter] = &[
    Parameter { name: COMMIT, value: "PROTOCOL", check: |text| protocol(text).map(drop) },
    Parameter { name: DEFAULT, value: "MODE", check: default },
    Parameter { name: KEPT_LIMIT, value: "BYTES", check: |text| kept_limit(text).map(drop) },
    Parameter { name: rest::PARAMETER, value: "MS", check: |text| rest::read(text).map(drop) },
];

/// The PRAGMAs that are its own.
pub const PRAGMAS: &[&str] = &["dash_commit", "dash_kept_limit", "dash_time_reads"];

/// The protocol of a name, or a message with the right names.
pub fn protocol(name: &str) -> Result<Protocol, String> {
    Protocol::from_name(name)
        .ok_or_else(|| format!("no such dash_commit: {name}; there are single, paper, exclusive"))
}

/// What a database stays in that is not told otherwise.
fn default(name: &str) -> Result<(), String> {
    match name {
        "shadow" => Ok(()),
        _ => Err(format!("{DEFAULT}={name}: there is only shadow")),
    }
}

/// The bytes that `dash_kept_limit` names; `None`: dash chooses.
pub fn kept_limit(text: &str) -> Result<Option<u64>, String> {
    if text.eq_ignore_ascii_case("auto") {
        return Ok(None);
    }
    let limit = text.parse().ok().filter(|limit| *limit >= KEPT_LIMIT_MIN);
    limit.map(Some).ok_or_else(|| {
        format!("{KEPT_LIMIT}={text}: give bytes, at least {KEPT_LIMIT_MIN}, or auto")
    })
}

/// What was asked for, or dash's choice.
pub fn kept_limit_of(parameters: &Parameters) -> Option<u64> {
    parameters.own(KEPT_LIMIT).and_then(|text| kept_limit(text).ok()).flatten()
}

/// What was asked for, or the default.
pub fn protocol_of(parameters: &Parameters) -> Protocol {
    parameters.own(COMMIT).and_then(|name| protocol(name).ok()).unwrap_or_default()
}

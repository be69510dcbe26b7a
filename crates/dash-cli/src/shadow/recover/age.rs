//! Which commit a shadow holds that is to take the place of the database, as far as its block
//! tells: what is missing must be known before anybody says yes.

use dash_shadow::Report;
use dash_shadow::format::State;
use dash_shadow::inspect::Refusal;

/// A sentence about the shadow, after the one that says that it is whole.
pub fn words(report: &Report, refusal: Refusal) -> String {
    let unknown = "Which commit it holds can't be told.".to_owned();
    let Some((shadow, block)) =
        report.shadow.as_ref().and_then(|shadow| Some((shadow, shadow.commit.as_ref().ok()?)))
    else {
        return unknown;
    };
    let other = match refusal {
        Refusal::Missing => "the file that is gone",
        Refusal::Emptied => "the file that is empty now",
        _ => "the other file",
    };
    let later = match shadow.is_bound() {
        true => "",
        false => " So are all that were made after this shadow was copied here.",
    };
    let header = shadow.header.as_ref();
    // Otherwise another program has written into the file since: the block is of an earlier time.
    let is_of_block = header.is_some_and(|header| header.counter == block.counter);
    match (block.state, block.vouched) {
        (State::Superseded, Some(vouched)) if is_of_block => format!(
            "It is the state before the last commit, number {}: that commit was made in {other} and is missing from what this makes.{later}",
            vouched.sequence
        ),
        (State::Settled, Some(vouched)) if is_of_block => {
            format!("It is the state after commit number {}.", vouched.sequence)
        }
        (State::Whole | State::Prepared, _) if shadow.as_committed => {
            let sequence = block.sequence;
            match header.is_some_and(|header| header.is_demoted) {
                true => format!(
                    "It is the state after commit number {sequence} and not the newest: a later commit was made in {other} and is missing from what this makes."
                ),
                false => format!("It is the state after commit number {sequence}."),
            }
        }
        _ => unknown,
    }
}

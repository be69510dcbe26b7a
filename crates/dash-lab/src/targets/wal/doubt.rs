//! Times that are worth nothing.

use crate::report::Section;
use crate::table::Table;

/// Times of a throttled disk meet no target and miss none: they are no measurement.
pub fn doubt(section: &mut Section, title: &str, table: &Table) {
    if table.throttled {
        section.fail(format!(
            "{title}: the disk throttled, or the machine was busy, to the end: measure again"
        ));
    }
}

//! Cache lines of an architecture that this home knows no instruction of: none is written back.

#![expect(unsafe_code, reason = "as on other architectures")]

/// How a line is written back: in no way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::real) enum Instruction {}

impl Instruction {
    /// None.
    pub(in crate::real) const ALL: &[Self] = &[];

    /// Whether this processor has it.
    pub(in crate::real) fn is_there(self) -> bool {
        match self {}
    }

    /// Begins to write back the line that has this byte.
    ///
    /// # Safety
    ///
    /// There is no such call.
    pub(in crate::real) unsafe fn write_back(self, _byte: *const u8) {
        match self {}
    }
}

/// Waits for nothing: nothing was begun.
pub(in crate::real) fn fence() {}

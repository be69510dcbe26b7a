//! Cache lines of 64-bit ARM. The instructions are spelled as `sys`, which every assembler takes.

#![expect(unsafe_code, reason = "instructions that have no intrinsic")]

use std::arch::asm;
use std::arch::is_aarch64_feature_detected;

/// How a line is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::real) enum Instruction {
    /// `dc cvap`: to where it survives a power loss.
    ToPersistence,
    /// `dc cvac`: to where all see it, which is memory where the other one is missing.
    ToCoherency,
}

impl Instruction {
    /// All of them, the best one first.
    pub(in crate::real) const ALL: &[Self] = &[Self::ToPersistence, Self::ToCoherency];

    /// Whether this processor has it.
    pub(in crate::real) fn is_there(self) -> bool {
        match self {
            Self::ToPersistence => is_aarch64_feature_detected!("dpb"),
            Self::ToCoherency => true,
        }
    }

    /// Begins to write back the line that has this byte.
    ///
    /// # Safety
    ///
    /// The byte can be read, and the processor has the instruction.
    #[inline]
    pub(in crate::real) unsafe fn write_back(self, byte: *const u8) {
        // SAFETY: the instructions read the byte's line, as the caller says they may, and change
        // neither memory nor registers. Linux lets programs use them. Stores before them are not
        // moved behind them, as these blocks may read any memory.
        unsafe {
            match self {
                Self::ToPersistence => {
                    asm!("sys #3, c7, c12, #1, {}", in(reg) byte, options(nostack, preserves_flags));
                }
                Self::ToCoherency => {
                    asm!("sys #3, c7, c10, #1, {}", in(reg) byte, options(nostack, preserves_flags));
                }
            }
        }
    }
}

/// Waits for the lines that this thread has had written back, and for its stores.
#[inline]
pub(in crate::real) fn fence() {
    // SAFETY: it changes neither memory nor registers.
    unsafe { asm!("dsb sy", options(nostack, preserves_flags)) };
}

//! Cache lines of x86-64.

#![expect(unsafe_code, reason = "instructions that have no intrinsic")]

use std::arch::asm;
use std::arch::x86_64::__cpuid_count;

/// How a line is written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::real) enum Instruction {
    /// It stays in the cache, and others are written back meanwhile.
    Clwb,
    /// It leaves the cache, and others are written back meanwhile.
    ClflushOpt,
    /// One after the other. Every processor of this architecture has it.
    Clflush,
}

/// Leaf 7 of `cpuid`, where it is there: the bits of `ebx` that tell of the instructions.
const LEAF: u32 = 7;
const CLFLUSHOPT: u32 = 1 << 23;
const CLWB: u32 = 1 << 24;

impl Instruction {
    /// All of them, the best one first.
    pub(in crate::real) const ALL: &[Self] = &[Self::Clwb, Self::ClflushOpt, Self::Clflush];

    /// Whether this processor has it.
    pub(in crate::real) fn is_there(self) -> bool {
        let features = if __cpuid_count(0, 0).eax < LEAF { 0 } else { __cpuid_count(LEAF, 0).ebx };
        match self {
            Self::Clwb => features & CLWB != 0,
            Self::ClflushOpt => features & CLFLUSHOPT != 0,
            Self::Clflush => true,
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
        // neither memory nor registers. Stores before them are not moved behind them, as these
        // blocks may read any memory.
        unsafe {
            match self {
                Self::Clwb => asm!("clwb [{}]", in(reg) byte, options(nostack, preserves_flags)),
                Self::ClflushOpt => {
                    asm!("clflushopt [{}]", in(reg) byte, options(nostack, preserves_flags));
                }
                Self::Clflush => {
                    asm!("clflush [{}]", in(reg) byte, options(nostack, preserves_flags));
                }
            }
        }
    }
}

/// Waits for the lines that this thread has had written back, and for its stores.
#[inline]
pub(in crate::real) fn fence() {
    // SAFETY: it changes neither memory nor registers.
    unsafe { asm!("sfence", options(nostack, preserves_flags)) };
}

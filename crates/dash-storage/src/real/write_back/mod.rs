//! Writing cache lines back to memory: which instruction this processor has for it, and the fence
//! that waits for it. One file an architecture; on any other there is none.

#[cfg(target_arch = "aarch64")]
#[path = "aarch64.rs"]
mod processor;
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[path = "none.rs"]
mod processor;
#[cfg(target_arch = "x86_64")]
#[path = "x86_64.rs"]
mod processor;

pub(super) use processor::{Instruction, fence};

use std::sync::OnceLock;

/// The best instruction that this processor has.
pub(super) fn best() -> Option<Instruction> {
    static BEST: OnceLock<Option<Instruction>> = OnceLock::new();
    *BEST.get_or_init(|| Instruction::ALL.iter().copied().find(|it| it.is_there()))
}

#[cfg(test)]
#[expect(unsafe_code, reason = "writes back a line of its own memory")]
mod tests {
    use super::*;

    #[test]
    fn every_instruction_that_is_there_leaves_the_bytes_alone() {
        let bytes: Vec<u8> = (0..=255).collect();
        let mut tried = Vec::new();
        for instruction in Instruction::ALL.iter().copied().filter(|it| it.is_there()) {
            for byte in &bytes {
                // SAFETY: the byte is borrowed.
                unsafe { instruction.write_back(byte) };
            }
            fence();
            assert!(bytes.iter().copied().eq(0..=255), "{instruction:?}");
            tried.push(instruction);
        }
        println!("tried: {tried:?}");
        assert_eq!(best(), tried.first().copied());
        let known = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
        assert_eq!(best().is_some(), known);
    }
}

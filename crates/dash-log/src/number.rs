//! Numbers that are mostly small: seven bits a byte, the lowest first, the upper bit set in all but
//! the last (LEB128).

/// Appends one.
pub fn put(mut number: u64, out: &mut Vec<u8>) {
    while number >= 0x80 {
        out.push(number.to_le_bytes()[0] | 0x80);
        number >>= 7;
    }
    out.push(number.to_le_bytes()[0]);
}

/// Bytes that one takes.
#[must_use]
pub fn len(number: u64) -> usize {
    let mut rest = number >> 7;
    let mut len = 1;
    while rest != 0 {
        rest >>= 7;
        len += 1;
    }
    len
}

/// The one that `bytes` begin with, and what is behind it; `None`: there is none, or it has more
/// than 64 bits.
#[must_use]
pub fn take(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    for (place, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * place;
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            return Some((number, &bytes[place + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_they_were_written() {
        for shift in 0..64 {
            for number in [0, 1, (1 << shift) - 1, 1 << shift, u64::MAX >> shift] {
                let mut bytes = Vec::new();
                put(number, &mut bytes);
                assert_eq!(bytes.len(), len(number), "{number}");
                bytes.push(9);
                assert_eq!(take(&bytes), Some((number, &[9][..])));
                bytes.truncate(len(number) - 1);
                assert_eq!(take(&bytes), None);
            }
        }
        let longest = [[0xff; 9].as_slice(), &[1]].concat();
        assert_eq!(take(&longest), Some((u64::MAX, &[][..])));
        for longer in [[[0xff; 9].as_slice(), &[2]].concat(), vec![0xff; 20]] {
            assert_eq!(take(&longer), None);
        }
    }
}

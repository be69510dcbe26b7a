//! Where two images differ, found 64 bytes at a time: lines that are equal are passed over, and of
//! one that isn't a bit for each byte tells which differ.

/// Bytes looked at together.
pub(crate) const LINE: usize = 64;

const ZEROS: [u8; LINE] = [0; LINE];

/// Calls `each` with beginning and end of each run of bytes in which `new` is not as `old`, which
/// counts as zeros where it is shorter. Runs with up to `gap` equal bytes between them are one.
pub(crate) fn runs(old: &[u8], new: &[u8], gap: usize, mut each: impl FnMut(usize, usize)) {
    // The run that the next one may be joined to.
    let mut last: Option<(usize, usize)> = None;
    for (number, line) in new.chunks(LINE).enumerate() {
        let at = number * LINE;
        let mut differing = differing(old.get(at..).unwrap_or(&[]), line);
        while differing != 0 {
            let first = differing.trailing_zeros();
            let len = (differing >> first).trailing_ones();
            differing &= u64::MAX.checked_shl(first + len).unwrap_or(0);
            let start = at + first as usize;
            let end = start + len as usize;
            last = match last {
                Some((begun, ended)) if start - ended <= gap => Some((begun, end)),
                Some((begun, ended)) => {
                    each(begun, ended);
                    Some((start, end))
                }
                None => Some((start, end)),
            };
        }
    }
    if let Some((start, end)) = last {
        each(start, end);
    }
}

/// A bit for each byte of `line` that `old` begins with another one in place of; the first one is
/// the lowest.
fn differing(old: &[u8], line: &[u8]) -> u64 {
    let whole: Option<&[u8; LINE]> = line.first_chunk();
    let before = if old.is_empty() { Some(&ZEROS) } else { old.first_chunk() };
    if let (Some(line), Some(before)) = (whole, before) {
        return if line == before { 0 } else { bits(before, line) };
    }
    let (mut padded, mut before) = (ZEROS, ZEROS);
    padded[..line.len()].copy_from_slice(line);
    let same = old.len().min(line.len());
    before[..same].copy_from_slice(&old[..same]);
    bits(&before, &padded)
}

fn bits(a: &[u8; LINE], b: &[u8; LINE]) -> u64 {
    /// All bits of each byte but the highest.
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    /// Brings the lowest bits of eight bytes together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    words.enumerate().fold(0, |bits, (place, (a, b))| {
        let changed = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
        // The highest bit of each byte that is not zero: no carry leaves its byte.
        let high = (((changed & LOW) + LOW) | changed) & !LOW;
        bits | ((high >> 7).wrapping_mul(GATHER) >> 56) << (8 * place)
    })
}

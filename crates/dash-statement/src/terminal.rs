//! Characters that a terminal obeys instead of showing them: by an escape sequence it clears the
//! screen, renames its window, or shows something else than what is there; marks of direction do
//! the last in a line. A text of a log may be anybody's.

use std::fmt::Write;

/// Whether a terminal obeys it, or it shows nothing and turns what is beside it. A line break and a
/// tab are what they look like; the joiners of scripts and of emoji belong to words.
#[must_use]
pub fn is_obeyed(c: char) -> bool {
    match c {
        '\t' | '\n' => false,
        '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{feff}' => true,
        '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// A text for people: what a terminal obeys is written as `\u{1b}`, and a byte of no UTF-8 as
/// `\xff`.
#[must_use]
pub fn shown(text: &[u8]) -> String {
    let mut out = String::with_capacity(text.len());
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            if is_obeyed(c) {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            } else {
                out.push(c);
            }
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out
}

/// JSON that says the same, with what a terminal obeys as `\u009b`: outside of its texts there is
/// none.
#[must_use]
pub fn shown_json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if !is_obeyed(c) {
            out.push(c);
            continue;
        }
        for unit in c.encode_utf16(&mut [0; 2]) {
            let _ = write!(out, "\\u{unit:04x}");
        }
    }
    out
}

/// Whether a token, which the text begins with, has something that a terminal obeys: a character,
/// or a byte that is one in an older encoding. A carriage return at the end of a line does no harm.
pub fn has_obeyed(text: &[u8], length: usize) -> bool {
    let mut at = 0;
    for chunk in text[..length].utf8_chunks() {
        for (offset, c) in chunk.valid().char_indices() {
            if is_obeyed(c) && !ends_line(&text[at + offset..]) {
                return true;
            }
        }
        if chunk.invalid().iter().any(|byte| (0x80..0xa0).contains(byte)) {
            return true;
        }
        at += chunk.valid().len() + chunk.invalid().len();
    }
    false
}

/// The same text with a blank for each of those.
pub fn without_obeyed(text: &[u8], length: usize) -> Vec<u8> {
    let mut out = Vec::with_capacity(length);
    let mut at = 0;
    for chunk in text[..length].utf8_chunks() {
        for (offset, c) in chunk.valid().char_indices() {
            match is_obeyed(c) && !ends_line(&text[at + offset..]) {
                true => out.push(b' '),
                false => out.extend(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        let invalid = chunk.invalid().iter();
        out.extend(invalid.map(|byte| if (0x80..0xa0).contains(byte) { b' ' } else { *byte }));
        at += chunk.valid().len() + chunk.invalid().len();
    }
    out
}

/// Whether there are carriage returns, and then a line break.
fn ends_line(text: &[u8]) -> bool {
    let count = text.iter().take_while(|byte| **byte == b'\r').count();
    count > 0 && text.get(count) == Some(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// SEC S2-10
    #[test]
    fn what_a_terminal_obeys_is_written_as_something_else() {
        let text = "a\u{1b}[2J\t\n\u{7}\r\u{7f}\u{9b}31m\u{202e}é\u{200d}\u{e0041}";
        let all = [text.as_bytes(), b"\x9b\xff"].concat();
        assert_eq!(
            shown(&all),
            "a\\u{1b}[2J\t\n\\u{7}\\u{d}\\u{7f}\\u{9b}31m\\u{202e}é\u{200d}\\u{e0041}\\x9b\\xff"
        );
        assert_eq!(shown_json("\"\u{9b}\u{e0041}é\""), "\"\\u009b\\udb40\\udc41é\"");
        let has = |text: &[u8]| has_obeyed(text, text.len());
        assert!(has(b"a\rb") && has(b"\r") && has(b"\xc2\x9b") && has(b"\x9b") && has(b"\0"));
        assert!(!has(b"a\r\r\n") && !has("é\t".as_bytes()) && !has(b"\xff"));
        assert!(!has_obeyed(b"\r\n", 1) && has_obeyed(b"\rx", 1));
        assert_eq!(without_obeyed(b"a\rb\r\n\x1b\xff\x9b", 8), b"a b\r\n \xff ");
    }
}

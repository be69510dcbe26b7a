//! How long a function may be.

use crate::allowed::LONG_FUNCTIONS;
use crate::rust::code;
use crate::tree::{none, shown, sources, text};

/// Lines a function may have, from `fn` to its last brace.
const LONGEST: usize = 70;

/// Every function of `source` that has a body: its name, the line it begins in, how many it has.
fn functions(source: &str) -> Vec<(String, usize, usize)> {
    let code = code(source);
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let is_word = !code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let name: String =
            code[at + 3..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        if let Some(length) = body_end(&code[at..]).filter(|_| is_word && !name.is_empty()) {
            let first = code[..at].matches('\n').count() + 1;
            let lines = code[at..at + length].matches('\n').count() + 1;
            found.push((name, first, lines));
        }
    }
    found
}

/// Where the function that `code` begins with ends; `None` if it has no body.
fn body_end(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0, 0);
    for (at, byte) in code.bytes().enumerate() {
        match byte {
            b'(' | b'[' => round += 1,
            b')' | b']' => round -= 1,
            b'{' => curly += 1,
            b'}' => {
                curly -= 1;
                if curly == 0 {
                    return Some(at + 1);
                }
            }
            b';' if round == 0 && curly == 0 => return None,
            _ => {}
        }
    }
    None
}

#[test]
fn no_function_is_longer_than_a_reader_can_hold() {
    let mut offenders = Vec::new();
    let mut met = vec![false; LONG_FUNCTIONS.len()];
    for path in sources() {
        let file = shown(&path);
        for (name, first, lines) in functions(&text(&path)) {
            if lines <= LONGEST {
                continue;
            }
            let listed = LONG_FUNCTIONS.iter().position(|known| *known == (file.as_str(), &*name));
            match listed.and_then(|at| met.get_mut(at)) {
                Some(met) => *met = true,
                None => offenders.push(format!("{file}:{first}: {name}: {lines} lines")),
            }
        }
    }
    none(&offenders, "one thought a function, at most 70 lines");
    let gone: Vec<_> = LONG_FUNCTIONS
        .iter()
        .zip(met)
        .filter(|(_, met)| !met)
        .map(|((file, name), _)| format!("{file}: {name}"))
        .collect();
    none(&gone, "these are short or gone by now: strike them from LONG_FUNCTIONS");
}

#[test]
fn lines_are_counted_from_fn_to_the_last_brace() {
    let source = "trait A {\n    fn a(b: [u8; 2]);\n    fn c(\n    ) {\n        \"}\";\n    }\n}\n";
    assert_eq!(functions(source), [("c".to_owned(), 3, 4)]);
}

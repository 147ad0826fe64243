//! Texts that nobody writes: no panic, and what is wrong has a place inside the text.

use crate::texts;
use proptest::prelude::*;
use ptoc_diagnostics::{Diagnostic, FileId};
use ptoc_pto::{format, parse, print, translate};

fn all_of(text: &str) {
    let (_, found) = translate(FileId(0), text, &|_| false, &[]);
    let inside = |d: &Diagnostic| d.span.is_none_or(|s| text.get(s.range()).is_some());
    assert!(found.iter().all(inside), "{found:?}");
    let parsed = parse(FileId(0), text);
    if parsed.diagnostics.is_empty() {
        let printed = print(&parsed.module);
        let again = parse(FileId(0), &printed);
        assert!(again.diagnostics.is_empty(), "{:?}\n{printed}", again.diagnostics);
        assert_eq!(print(&again.module), printed);
    }
    let formatted = format::format(text);
    let squeezed = |s: &str| s.split_whitespace().collect::<String>();
    assert_eq!(squeezed(&formatted), squeezed(text));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases::<u32>(100, 20_000)))]

    #[test]
    fn changed_texts(
        which in 0..texts::all().len(),
        edits in prop::collection::vec((any::<u32>(), any::<u32>(), 0..8u8), 1..6),
    ) {
        let (_, text) = texts::all()[which];
        let mut text: Vec<char> = text.chars().collect();
        for (at, from, what) in edits {
            let (at, from) = (at as usize % (text.len() + 1), from as usize % (text.len() + 1));
            let (low, high) = (at.min(from), at.max(from).min(at.min(from) + 40));
            match what {
                0 => drop(text.drain(low..high)),
                1 => {
                    let copy: Vec<char> = text[low..high].to_vec();
                    text.splice(at..at, copy);
                }
                2 => text.insert(at, ['{', '}', '<', '>', '(', ')', '%', '"'][from % 8]),
                3 => text.insert(at, ['é', '\0', '\n', '9', '-', '#', '!', '?'][from % 8]),
                4 => text.truncate(at),
                _ => text.splice(low..high, "999999999999999999999".chars()).for_each(drop),
            }
        }
        all_of(&text.into_iter().collect::<String>());
    }

    #[test]
    fn any_text(text in "(?s).{0,200}") {
        all_of(&text);
    }
}

#[test]
fn nesting_is_bounded() {
    for (open, close) in [("scf.if %c {\n", "}\n"), ("module {\n", "}\n"), ("%x = arith.constant [", "]")] {
        let body = format!("{}{}", open.repeat(5_000), close.repeat(5_000));
        let text = format!("func.func @f(%c: i1) {{\n{body}return\n}}\n");
        let found = parse(FileId(0), &text).diagnostics.len();
        assert!((1..=2).contains(&found), "{found}");
        all_of(&text);
        all_of(&body);
    }
}

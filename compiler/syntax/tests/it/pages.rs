//! The pages of the syntax codes: what they call wrong is reported under their code, what they call right is right.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use ptoc_diagnostics::{Code, FileId};
use ptoc_syntax::parse;

/// The fenced examples of a page: info string and text.
fn examples(page: &str) -> Vec<(String, String)> {
    let mut list = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```").filter(|i| !i.is_empty()) {
            let text: Vec<&str> = lines.by_ref().take_while(|l| *l != "```").collect();
            list.push((info.to_owned(), text.join("\n") + "\n"));
        }
    }
    list
}

#[test]
fn examples_of_codes() {
    let mut shown = BTreeSet::new();
    let syntax = Code::all().iter().filter(|c| c.code.as_str().starts_with("E00"));
    for info in syntax {
        for (fence, text) in examples(info.page) {
            let found: Vec<_> = parse(FileId(0), &text).diagnostics.iter().map(|d| d.code).collect();
            match fence.replace(" syntax", "").as_str() {
                "tile error" => {
                    assert!(
                        !found.is_empty() && found.iter().all(|c| *c == info.code),
                        "{}: {found:?}\n{text}",
                        info.code
                    );
                    shown.insert(info.code);
                }
                "tile" => assert!(found.is_empty(), "{}: {found:?}\n{text}", info.code),
                _ => {}
            }
        }
        // More than a hundred errors are no example.
        let exempt = info.name == "too_many_syntax_errors";
        assert!(exempt || shown.contains(&info.code), "{} has no example", info.code);
    }
}

#[test]
fn examples_of_the_grammar() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/grammar.md");
    let page = fs::read_to_string(path).expect("spec/grammar.md exists");
    let all = examples(&page);
    assert!(all.len() > 5);
    for (fence, text) in all {
        let found = parse(FileId(0), &text).diagnostics;
        match fence.replace(" syntax", "").as_str() {
            "tile" => assert_eq!(found, [], "{text}"),
            "tile error" => assert!(!found.is_empty(), "{text}"),
            _ => {}
        }
    }
}

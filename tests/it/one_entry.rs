//! An element-wise instruction is one entry of the table: nothing else in the compiler knows it by name.

use ptoc_isa::{Sem, TABLE};
use std::path::{Path, PathBuf};

fn sources(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).expect("a folder").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() {
            sources(&entry, out);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            out.push(entry);
        }
    }
}

/// Whether `name` is a word of the text.
fn names(text: &str, name: &str) -> bool {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| !text[..at].ends_with(word) && !text[at + name.len()..].starts_with(word))
}

#[test]
fn an_element_wise_instruction_is_named_by_its_row_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    for part in ["compiler", "runtime", "tests/it"] {
        sources(&root.join(part), &mut files);
    }
    let expressions: Vec<&str> = TABLE.iter().filter(|r| matches!(r.sem, Sem::Map(_))).map(|r| r.name).collect();
    assert!(expressions.len() >= 20, "{}", expressions.len());
    let mut wrong = Vec::new();
    for file in files {
        // The table with its tests is the one place.
        if file.components().any(|c| c.as_os_str() == "table") {
            continue;
        }
        let text = std::fs::read_to_string(&file).expect("readable");
        wrong.extend(expressions.iter().filter(|n| names(&text, n)).map(|n| format!("{n} in {}", file.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // One line in the list of names, of which it is no longer part, one row, one page.
    for name in &expressions {
        let rows = ["elementwise.rs", "formulas.rs", "reduce.rs"].map(|f| root.join("compiler/isa/src/table").join(f));
        let text: String = rows.iter().map(|f| std::fs::read_to_string(f).expect("readable")).collect();
        assert_eq!(text.matches(&format!("\"{name}\"")).count(), 1, "{name}");
    }
}

//! PTO text that nobody writes, through `ptoc check`: no panic, an answer in time, every error at a place of the file.
//! `PTOC_TEST_BUDGET=N` makes it longer (CONTRIBUTING.md).

use crate::pto::{kernels_of, written};
use proptest::prelude::*;
use ptoc_driver::stages::Level;
use std::path::Path;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// Words of texts that are right: those of ptoc-pto's tests, and some of kernels that ptoc writes.
static TEXTS: LazyLock<Vec<Vec<String>>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/pto/tests/it/texts");
    let files = std::fs::read_dir(folder).expect("texts").map(|e| e.expect("an entry").path());
    let mut texts: Vec<String> = files.map(|p| std::fs::read_to_string(p).expect("readable")).collect();
    texts.sort();
    for (path, name, text) in kernels_of(Path::new("../examples")).into_iter().step_by(4) {
        for level in [Level::Automatic, Level::Explicit] {
            texts.extend(written(&path, text.clone(), Some(&name), "a2a3", level));
        }
    }
    assert!(texts.len() > 20, "{}", texts.len());
    texts.iter().map(|t| words(t)).collect()
});

/// Names, numbers and marks, with the white space in front of each.
fn words(text: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '%' | '@' | '!' | '#' | '"');
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for c in text.chars() {
        match found.last_mut() {
            Some(last) if open && (part(c) || last.chars().all(char::is_whitespace)) => last.push(c),
            Some(last) if c.is_whitespace() && last.chars().all(char::is_whitespace) => last.push(c),
            _ => found.push(c.to_string()),
        }
        open = part(c) || c.is_whitespace();
    }
    found
}

const STRANGE: [&str; 16] = [
    " 0",
    " -1",
    " 9223372036854775807",
    " 18446744073709551616",
    " 1.0e+999",
    "?",
    "x",
    " index",
    " i1",
    " bf16",
    " {",
    "}",
    " %c0",
    " pto.trap",
    " scf.yield",
    " !pto.tile<16x64xf32>",
];

#[derive(Clone, Debug)]
enum Change {
    Drop(usize),
    Twice(usize, usize),
    Swap(usize, usize),
    From(usize, usize, usize),
    Strange(usize, usize),
}

fn change() -> impl Strategy<Value = Change> {
    let n = any::<u32>().prop_map(|n| n as usize);
    prop_oneof![
        n.clone().prop_map(Change::Drop),
        (n.clone(), n.clone()).prop_map(|(a, b)| Change::Twice(a, b)),
        (n.clone(), n.clone()).prop_map(|(a, b)| Change::Swap(a, b)),
        (n.clone(), n.clone(), n.clone()).prop_map(|(a, b, c)| Change::From(a, b, c)),
        (n.clone(), n).prop_map(|(a, b)| Change::Strange(a, b)),
    ]
}

fn apply(words: &mut Vec<String>, change: &Change) {
    let len = words.len().max(1);
    if words.is_empty() {
        return;
    }
    match *change {
        Change::Drop(at) => drop(words.remove(at % len)),
        Change::Twice(at, from) => {
            let from = from % len;
            let part = words[from..(from + 12).min(len)].to_vec();
            words.splice(at % len..at % len, part).for_each(drop);
        }
        Change::Swap(a, b) => words.swap(a % len, b % len),
        Change::From(at, text, word) => {
            let other = &TEXTS[text % TEXTS.len()];
            words[at % len] = other[word % other.len()].clone();
        }
        Change::Strange(at, which) => words[at % len] = STRANGE[which % STRANGE.len()].into(),
    }
}

/// What `ptoc check` says of a text, on a target.
fn checked(text: &str, target: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hostile.pto");
    std::fs::write(&file, text).expect("a file");
    let args = ["ptoc", "check", &file.display().to_string(), "--target", target, "--message-format", "json"];
    let (mut shown, mut err) = (Vec::new(), Vec::new());
    let mut io = ptoc_cli::io::Io::new(&mut shown, &mut err);
    let began = Instant::now();
    let status = ptoc_cli::execute(args.map(Into::into), &mut io);
    assert!(began.elapsed() < Duration::from_secs(60), "took {:?}:\n{text}", began.elapsed());
    assert!(status <= 1, "status {status}:\n{text}");
    let said = String::from_utf8_lossy(&[shown, err].concat()).into_owned();
    let mut errors = 0;
    for line in said.lines().filter(|l| l.starts_with('{')) {
        let entry: serde_json::Value = serde_json::from_str(line).expect("an object a line");
        for d in entry["diagnostics"].as_array().cloned().unwrap_or_else(|| vec![entry.clone()]) {
            if d["severity"] == "error" {
                errors += 1;
                let inside =
                    d["span"]["start"]["line"].as_u64().is_some_and(|n| n as usize <= text.lines().count() + 1);
                assert!(inside, "without a place: {d}\n{text}");
            }
        }
    }
    assert_eq!(status == 1, errors > 0, "{said}\n{text}");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(60, 600),
        failure_persistence: None,
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn changed_texts_are_judged(
        text in any::<u32>(),
        changes in prop::collection::vec(change(), 1..5),
        target in prop::sample::select(vec!["a2a3", "a5", "kirin9030"]),
    ) {
        let mut words = TEXTS[text as usize % TEXTS.len()].clone();
        changes.iter().for_each(|c| apply(&mut words, c));
        checked(&words.concat(), target);
    }
}

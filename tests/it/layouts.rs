//! What `spec/` says of layouts is true: sessions of `ptoc layout` give what they show, pictures are those of the
//! expressions beside them, and the table of operations is that of the crate: `UPDATE_SPEC=1` writes all three anew.
//! Kernels give what their `ensures` says.

use crate::engine::command;
use ptoc_diagnostics::Code;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::ops::Range;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Whether the pages are to be written anew.
fn update() -> bool {
    std::env::var_os("UPDATE_SPEC").is_some()
}

/// Pages with sessions.
fn pages() -> Vec<PathBuf> {
    let spec = std::fs::read_dir(root().join("spec")).expect("spec/").map(|e| e.expect("readable").path());
    let mut pages: Vec<_> = spec.filter(|p| p.extension().is_some_and(|e| e == "md")).collect();
    pages.push(root().join("README.md"));
    pages.sort();
    pages
}

/// The words of a command line: quotes keep spaces, nothing else is special.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), None::<String>, false);
    for c in line.chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            c if c.is_whitespace() && !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// A command in a `console` fence, and what the page shows of its output.
struct Session<'t> {
    command: &'t str,
    shown: Vec<&'t str>,
    /// Bytes of the output in the page.
    at: Range<usize>,
}

fn sessions(text: &str) -> Vec<Session<'_>> {
    let mut found: Vec<Session<'_>> = Vec::new();
    let (mut at, mut inside, mut fenced) = (0, false, false);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        let bare = line.trim_end();
        if bare.starts_with("```") {
            inside = !fenced && bare == "```console";
            fenced = !fenced;
        } else if inside && let Some(command) = bare.strip_prefix("$ ") {
            found.push(Session { command, shown: Vec::new(), at: end..end });
        } else if inside && let Some(session) = found.last_mut() {
            session.shown.push(bare);
            session.at.end = end;
        }
        at = end;
    }
    found.retain(|s| s.command.starts_with("ptoc layout "));
    found
}

/// Output and diagnostics, as a terminal shows them.
fn run(line: &str) -> (u8, Vec<String>) {
    let words = words(line);
    let outcome = command(&words[1..]);
    let text = format!("{}{}", outcome.out, outcome.err);
    let mut lines: Vec<String> = text.lines().map(|l| l.trim_end().to_owned()).collect();
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    (outcome.status, lines)
}

#[test]
fn sessions_give_what_they_show() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("UTF-8");
        let mut new = text.clone();
        for session in sessions(&text).iter().rev() {
            seen += 1;
            let (_, all) = run(session.command);
            // A line of three points at the end stands for the rest; an empty line parts sessions.
            let mut shown = session.shown.clone();
            let tail = shown.iter().rev().take_while(|l| l.is_empty()).count();
            shown.truncate(shown.len() - tail);
            let cut = shown.last() == Some(&"...");
            let kept = if cut { all.len().min(shown.len() - 1) } else { all.len() };
            let mut want = all[..kept].to_vec();
            if cut {
                want.push("...".into());
            }
            if want != shown {
                wrong.push(format!("{}: {}\n{}\n", page.display(), session.command, want.join("\n")));
                let mut lines = want;
                lines.extend(std::iter::repeat_n(String::new(), tail));
                new.replace_range(session.at.clone(), &(lines.join("\n") + "\n"));
            }
        }
        if update() && new != text {
            std::fs::write(&page, new).expect("written");
        }
    }
    assert!(seen > 10, "only {seen} sessions");
    assert!(
        update() || wrong.is_empty(),
        "`UPDATE_SPEC=1 cargo test -p ptoc-tests layouts` writes these anew:\n{}",
        wrong.join("\n")
    );
}

/// An example with `// run:` lines is run on the backends that it names, and held to its `ensures`.
#[test]
fn examples_that_say_how_they_are_run_pass() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("UTF-8");
        for example in ptoc_diagnostics::examples(&text).iter().filter(|e| e.codes.is_empty() && !e.expect_error) {
            if !example.text.lines().any(|l| l.starts_with("// run:")) {
                continue;
            }
            seen += 1;
            let file = folder.path().join("example.tile");
            std::fs::write(&file, example.text).expect("written");
            let outcome = command(&["test", file.to_str().expect("UTF-8")]);
            if outcome.status != 0 {
                wrong.push(format!("{}:\n{}\n{}{}", page.display(), example.text, outcome.out, outcome.err));
            }
        }
    }
    assert!(seen > 5, "only {seen} examples");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pages of codes show an expression that is refused, and then what mends it.
#[test]
fn pages_of_codes_show_the_refusal_and_the_repair() {
    let mut wrong = Vec::new();
    for info in Code::all() {
        for (k, session) in sessions(info.page).iter().enumerate() {
            let (status, text) = run(session.command);
            let refused = text.iter().any(|l| l.contains(&format!("[{}]", info.code)));
            if (status != 0, refused) != (k == 0, k == 0) {
                wrong.push(format!("{}: {}\n{}", info.code, session.command, text.join("\n")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// `![expression](images/layouts/name.svg)`, with the expression alone in the brackets.
fn pictures(text: &str) -> Vec<(&str, &str)> {
    text.lines().filter_map(|l| l.strip_prefix("![")?.strip_suffix(".svg)")?.split_once("](images/layouts/")).collect()
}

#[test]
fn pictures_are_those_of_their_expressions() {
    let folder = root().join("spec/images/layouts");
    let scratch = tempfile::tempdir().expect("a folder");
    let (mut wrong, mut named) = (Vec::new(), BTreeSet::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("UTF-8");
        for (expression, name) in pictures(&text) {
            assert!(named.insert(format!("{name}.svg")), "{name}.svg stands for two expressions");
            let file = scratch.path().join(name).with_extension("svg");
            let outcome = command(&["layout", expression, "--svg", file.to_str().expect("UTF-8")]);
            assert_eq!(outcome.status, 0, "{expression}: {}", outcome.err);
            let new = std::fs::read_to_string(file).expect("written");
            let kept = folder.join(name).with_extension("svg");
            if update() {
                std::fs::create_dir_all(&folder).expect("a folder");
                std::fs::write(&kept, &new).expect("written");
            }
            if std::fs::read_to_string(&kept).ok().as_deref() != Some(&new) {
                wrong.push(format!("{name}.svg is not the picture of {expression}"));
            }
        }
    }
    for file in std::fs::read_dir(&folder).expect("the pictures") {
        let name = file.expect("readable").file_name().into_string().expect("UTF-8");
        if !named.contains(&name) {
            wrong.push(format!("no page shows {name}"));
        }
    }
    assert!(named.len() > 5, "only {named:?}");
    assert!(
        wrong.is_empty(),
        "`UPDATE_SPEC=1 cargo test -p ptoc-tests layouts` draws them anew:\n{}",
        wrong.join("\n")
    );
}

/// The table of what CuTe accepts and ptoc does not: every such golden case is there, and the code is the one given.
#[test]
fn what_is_stricter_than_cute_is_listed() {
    let page = std::fs::read_to_string(root().join("spec/layouts.md")).expect("UTF-8");
    let (_, table) = page.split_once("| kind | example | CuTe gives | ptoc |").expect("the table");
    let mut listed = BTreeSet::new();
    for row in table.lines().skip(2).take_while(|l| l.starts_with('|')) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [_, example, _, code] = cells[..] else { panic!("{row}") };
        let example = example.trim_matches('`');
        let (status, text) = run(&format!("ptoc layout '{example}'"));
        assert!(status != 0 && text[0].contains(&format!("[{code}]")), "{example}: {}", text.join("\n"));
        listed.insert(example.replace(' ', ""));
    }
    let cases = std::fs::read_to_string(root().join("tests/golden/layout/cases.json")).expect("UTF-8");
    let cases: serde_json::Value = serde_json::from_str(&cases).expect("JSON");
    for case in cases["cases"].as_array().expect("cases").iter().filter(|c| c.get("quirk").is_some()) {
        let args: Vec<&str> = case["args"].as_array().expect("args").iter().filter_map(|a| a.as_str()).collect();
        let text = format!("{}({})", case["op"].as_str().expect("op"), args.join(","));
        assert!(listed.contains(&text.replace(' ', "")), "spec/layouts.md does not list {text}");
    }
}

/// What the tables of operations are about, by an operation of each.
const TOPICS: &[(&str, &str)] = &[
    ("rank", "Sizes and modes"),
    ("make_layout", "Layouts from shapes"),
    ("congruent", "Relations of shapes and coordinates"),
    ("eval", "Coordinates, indices, offsets"),
    ("slice", "Slices"),
    ("coalesce", "Fewer modes"),
    ("composition", "Composition"),
    ("complement", "Complement"),
    ("right_inverse", "Inverses"),
    ("is_bijection", "Bijections"),
    ("logical_divide", "Division"),
    ("logical_product", "Product"),
    ("upcast", "Other widths"),
    ("swizzle", "Swizzles"),
    ("local_tile", "Partitions"),
    ("tiled_copy_tv", "Tiled copies"),
    ("copy_plan", "Plans of copies"),
    ("copy_blocks", "Plans of copies in blocks"),
    ("tv", "Pictures"),
    ("tiled_mma", "Matrix instructions"),
];

fn reference() -> String {
    let mut out = String::from(
        "# Operations of the layout algebra\n\n\
         Generated from the table in `compiler/layout/src/ops` (`UPDATE_SPEC=1 cargo test -p ptoc-tests layouts`). The \
         names are those of the\n\
         language and of `ptoc layout`; `ptoc layout --list` prints the same. What the operations mean, with examples, \
         is in\n\
         [layouts.md](layouts.md).\n",
    );
    for table in ptoc_layout::ops::TABLES.iter().filter(|t| !t.is_empty()) {
        let of = |name: &str| table.iter().any(|op| op.name == name);
        let topic = TOPICS.iter().find(|(name, _)| of(name)).map_or("Others", |(_, topic)| topic);
        let _ = write!(out, "\n## {topic}\n\n| operation | call | |\n|---|---|---|\n");
        let cell = |text: &str| text.replace('|', "\\|");
        for op in *table {
            let _ = writeln!(out, "| `{}` | `{}` | {} |", op.name, cell(op.usage), cell(op.doc));
        }
    }
    out
}

#[test]
fn the_table_of_operations_is_up_to_date() {
    let path = root().join("spec/layout_operations.md");
    let new = reference();
    if update() {
        std::fs::write(&path, &new).expect("written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == new, "`UPDATE_SPEC=1 cargo test -p ptoc-tests layouts` writes spec/layout_operations.md anew");
}

//! The tutorial and the pages for newcomers: their programs pass their own test lines, their sessions show what ptoc
//! prints.

use super::{Sandbox, readme};
use std::fs::{self, File};
use std::path::Path;

/// Pages of `spec/`, each with the fewest programs with `run:` lines and the fewest commands that it has.
const PAGES: [(&str, usize, usize); 6] = [
    ("tutorial", 10, 15),
    ("idioms", 10, 0),
    ("from_triton", 2, 0),
    ("from_cuda", 2, 0),
    ("from_cute", 2, 0),
    ("from_pto", 2, 0),
];

/// A fenced block, with the file that the line above it names, as in `` `add.tile`: ``.
struct Block<'a> {
    info: &'a str,
    text: &'a str,
    stem: Option<&'a str>,
}

impl Block<'_> {
    /// How many `run:` lines there are, if this is a program.
    fn run_lines(&self) -> usize {
        let program = self.info.split_whitespace().next() == Some("tile");
        if program { self.text.lines().filter(|l| l.starts_with("// run:")).count() } else { 0 }
    }
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let (mut stem, mut at) = (None, 0);
    for line in page.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(info) = line.strip_prefix("```") {
            open = match open {
                None => Some((info.trim(), end)),
                Some((info, start)) => {
                    blocks.push(Block { info, text: &page[start..at], stem: stem.take() });
                    None
                }
            };
        } else if open.is_none() && !line.trim().is_empty() {
            stem = line.trim().strip_prefix('`').and_then(|l| l.strip_suffix(".tile`:"));
        }
        at = end;
    }
    assert!(open.is_none(), "the last fence is open");
    blocks
}

fn text(page: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../spec/{page}.md"));
    fs::read_to_string(&path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

#[test]
fn programs_pass_their_test_lines() {
    for (page, least, _) in PAGES {
        let s = Sandbox::new();
        let text = text(page);
        let mut seen = 0;
        for (k, block) in blocks(&text).iter().enumerate().filter(|(_, b)| b.run_lines() > 0) {
            let file = format!("{page}_{k}.tile");
            s.file(&file, block.text);
            let said = s.run(&format!("test {file}"));
            let passed = said.lines().filter(|l| l.starts_with("ok ") && l.contains(": run: ")).count();
            assert!(said.contains("\nexit 0\n"), "{page}, fence {}:\n{}\n{said}", k + 1, block.text);
            assert_eq!(passed, block.run_lines(), "{page}, fence {}:\n{said}", k + 1);
            seen += 1;
        }
        assert!(seen >= least, "{page}: only {seen} programs with run lines");
    }
}

/// What a debugger is told in a session: the text behind its prompts.
fn typed(shown: &str) -> String {
    shown.lines().filter_map(|l| l.strip_prefix("(ptoc) ")).map(|l| format!("{l}\n")).collect()
}

#[test]
fn sessions_show_what_ptoc_prints() {
    for (page, _, least) in PAGES {
        let s = Sandbox::new();
        let text = text(page);
        let blocks = blocks(&text);
        for block in &blocks {
            if let Some(stem) = block.stem {
                s.file(&format!("{stem}.tile"), block.text);
            }
        }
        let mut ran = 0;
        for session in blocks.iter().filter(|b| b.info == "console").flat_map(|b| b.text.split("$ ptoc ").skip(1)) {
            let (command, shown) = session.split_once('\n').expect("what it prints");
            ran += 1;
            if command.contains("--step") && !cfg!(feature = "debugger") {
                continue;
            }
            s.file("typed.txt", typed(shown));
            let input = File::open(s.path().join("typed.txt")).unwrap();
            let output = s.command(command).stdin(input).output().unwrap();
            let printed = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap()).concat();
            let answers: Vec<&str> = shown.lines().filter(|l| !l.starts_with("(ptoc) ")).collect();
            if let Some(line) = readme::missing(&answers.join("\n"), &printed) {
                panic!("{page}: `ptoc {command}` does not print, or not in this order:\n{line}\n{printed}");
            }
        }
        assert!(ran >= least, "{page}: only {ran} commands");
    }
}

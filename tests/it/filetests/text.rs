//! The text of a filetest: its directives, and whether an output is as they say.

use ptoc_driver::stages::steps;
use ptoc_lower::row_pipelining;
use std::fmt::Write as _;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Check,
    NextLine,
    Not,
    Unchanged,
    Error,
}

const KINDS: [(&str, Kind); 5] = [
    ("check:", Kind::Check),
    ("nextln:", Kind::NextLine),
    ("not:", Kind::Not),
    ("unchanged", Kind::Unchanged),
    ("error:", Kind::Error),
];

/// A directive, and the line it stands in, from 1 on.
pub struct Directive {
    pub line: usize,
    pub kind: Kind,
    pub text: String,
}

/// A file taken apart.
pub struct Test {
    pub passes: Vec<String>,
    /// The IR; lines that are none are empty.
    pub ir: String,
    pub directives: Vec<Directive>,
}

/// What is wrong with a file, and in which line.
#[derive(Debug)]
pub struct Failure {
    pub line: usize,
    pub what: String,
}

pub fn fail<T>(line: usize, what: impl Into<String>) -> Result<T, Failure> {
    Err(Failure { line, what: what.into() })
}

/// Runs of blanks as one.
pub fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Test {
    pub fn parse(text: &str) -> Result<Test, Failure> {
        let first = text.lines().next().unwrap_or("");
        let Some(passes) = first.strip_prefix("; pass: ") else {
            return fail(1, "the first line is `; pass: NAME`");
        };
        let passes: Vec<String> = passes.split(',').map(|p| p.trim().to_owned()).collect();
        in_order(&passes)?;
        let (mut ir, mut directives) = (String::new(), Vec::new());
        for (n, line) in text.lines().enumerate() {
            if !line.starts_with([';', '#']) {
                ir.push_str(line);
            } else if n > 0
                && let Some(rest) = line.strip_prefix("; ")
            {
                directives.extend(directive(n + 1, rest)?);
            }
            ir.push('\n');
        }
        let has = |kind| directives.iter().any(|d: &Directive| d.kind == kind);
        if !has(Kind::Check) && !has(Kind::Unchanged) && !has(Kind::Error) {
            return fail(1, "there is no `check:`, no `unchanged` and no `error:`");
        }
        if has(Kind::Error) && directives.len() > 1 {
            return fail(directives[0].line, "what is refused has no output: `error:` stands alone");
        }
        Ok(Test { passes, ir, directives })
    }

    pub fn find(&self, kind: Kind) -> Option<&Directive> {
        self.directives.iter().find(|d| d.kind == kind)
    }
}

/// Checks that these are passes that a filetest can run, in their order.
fn in_order(passes: &[String]) -> Result<(), Failure> {
    let mut before = None;
    for name in passes {
        let Some(at) = place_of(name).filter(|at| Some(*at) >= place_of("bounds")) else {
            return fail(1, format!("there is no pass `{name}` of tile IR with addresses"));
        };
        if before >= Some(at) {
            return fail(1, format!("`{name}` comes before the passes that are named before it"));
        }
        before = Some(at);
    }
    let has = |name| passes.iter().any(|p| p == name);
    if has(row_pipelining::NAME) && !has("lowering") {
        return fail(1, "row-pipelining works on loop IR: `lowering, row-pipelining`");
    }
    Ok(())
}

/// Where in the pipeline a step is.
fn place_of(name: &str) -> Option<usize> {
    steps().into_iter().position(|s| s.0 == name)
}

/// What a line behind `; ` says, if it is no comment.
fn directive(line: usize, rest: &str) -> Result<Option<Directive>, Failure> {
    for (word, kind) in KINDS {
        let Some(text) = rest.strip_prefix(word) else { continue };
        let text = squeezed(text);
        match (kind, text.is_empty()) {
            (Kind::Unchanged, false) => continue,
            (Kind::Unchanged, true) | (_, false) => return Ok(Some(Directive { line, kind, text })),
            (_, true) => return fail(line, format!("`{word}` of nothing")),
        }
    }
    // A directive with a slip of the pen would hold nothing.
    match rest.split_once(':') {
        Some((word, _)) if !word.contains(' ') => fail(line, format!("`{word}:` is no directive")),
        _ => Ok(None),
    }
}

/// Where in a line a pattern is, with `...` for anything: from, to.
fn within(line: &str, pattern: &str) -> Option<(usize, usize)> {
    let mut parts = pattern.split("...").map(str::trim).filter(|p| !p.is_empty());
    let first = parts.next()?;
    let from = line.find(first)?;
    let mut end = from + first.len();
    for part in parts {
        end += line[end..].find(part)? + part.len();
    }
    Some((from, end))
}

/// Goes through the directives and the output in their order.
pub fn matches(directives: &[Directive], output: &str) -> Result<(), Failure> {
    let lines: Vec<String> = output.lines().map(squeezed).collect();
    // Where the last match ended: its line, and the place in it.
    let (mut line, mut at) = (0, 0);
    let mut nots: Vec<&Directive> = Vec::new();
    let none = |nots: &mut Vec<&Directive>, from: (usize, usize), to: (usize, usize)| {
        for d in nots.drain(..) {
            for (n, text) in lines.iter().enumerate().take(to.0 + 1).skip(from.0) {
                let end = if n == to.0 { to.1 } else { text.len() };
                let start = if n == from.0 { from.1 } else { 0 };
                if within(&text[start..end.max(start)], &d.text).is_some() {
                    return fail(d.line, format!("not: `{}` is there\n{}", d.text, near(output, n)));
                }
            }
        }
        Ok(())
    };
    for d in directives {
        let found = match d.kind {
            Kind::Not => {
                nots.push(d);
                continue;
            }
            Kind::Unchanged | Kind::Error => continue,
            Kind::Check => (line..lines.len()).find_map(|n| {
                let start = if n == line { at } else { 0 };
                within(&lines[n][start..], &d.text).map(|(a, b)| (n, a + start, b + start))
            }),
            Kind::NextLine => {
                let next = lines.get(line + 1).and_then(|l| within(l, &d.text));
                next.map(|(a, b)| (line + 1, a, b))
            }
        };
        let Some((n, from, to)) = found else {
            let (word, _) = KINDS.iter().find(|k| k.1 == d.kind).expect("a kind");
            return fail(d.line, format!("{word} `{}` is not there\n{}", d.text, near(output, line)));
        };
        none(&mut nots, (line, at), (n, from))?;
        (line, at) = (n, to);
    }
    none(&mut nots, (line, at), (lines.len(), usize::MAX))
}

/// The output around a line.
fn near(output: &str, line: usize) -> String {
    let mut out = String::new();
    for (n, text) in output.lines().enumerate().skip(line.saturating_sub(4)).take(16) {
        let _ = writeln!(out, "{} {:>4} | {text}", if n == line { ">" } else { " " }, n + 1);
    }
    out
}

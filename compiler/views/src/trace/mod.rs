//! The page of `emit --html`: a kernel after each pass that changed it, down to machine code, beside its source. What a
//! pass changed is a diff; lines that stem from the same source light up together.
//!
//! It is made of plain data ([`TracePage`]), and knows neither IR nor spans.

use crate::page::{Page, escape};
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::collections::BTreeSet;
use std::fmt::Write as _;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Unchanged lines that are shown on both sides of a change.
const AROUND: usize = 4;
/// Fewer unchanged lines than that are not worth folding away.
const FOLDED: usize = 4;

/// What the page shows.
#[derive(Debug)]
pub struct TracePage {
    /// The kernel or program.
    pub name: String,
    /// The target.
    pub target: String,
    /// The first is that of the kernel.
    pub files: Vec<SourceFile>,
    /// The kernel, or those that a program launches.
    pub kernels: Vec<KernelTrace>,
}

/// A source file.
#[derive(Debug)]
pub struct SourceFile {
    /// As diagnostics call it.
    pub name: String,
    /// All of it.
    pub text: String,
}

/// A kernel on its way to machine code.
#[derive(Debug)]
pub struct KernelTrace {
    /// The kernel.
    pub name: String,
    /// In the order of the passes.
    pub stages: Vec<TraceStage>,
}

/// A kernel as a pass left it.
#[derive(Debug)]
pub struct TraceStage {
    /// The pass.
    pub name: String,
    /// What the pass does, in a line.
    pub about: String,
    /// What it is written in.
    pub form: StageForm,
    /// Its text.
    pub lines: Vec<StageLine>,
}

/// What a stage is written in: neighbours in the same are shown by what differs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StageForm {
    /// Tile IR.
    Tile,
    /// What a pass decided, in words.
    Decided,
    /// Loop IR.
    Loop,
    /// Code of the machine.
    Code,
}

/// A line of a stage.
#[derive(Debug)]
pub struct StageLine {
    /// As it is printed.
    pub text: String,
    /// What it stems from.
    pub places: Vec<SourceLines>,
}

/// Lines of a source file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SourceLines {
    /// By its number.
    pub file: usize,
    /// From 1.
    pub first: u32,
    /// The last line.
    pub last: u32,
}

/// What became of a line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum LineChange {
    Kept,
    Removed,
    Added,
}

/// A line of a stage or, if it is gone, of the stage before.
type DiffRow<'t> = (LineChange, &'t StageLine);

impl TracePage {
    /// The page.
    pub fn html(&self) -> String {
        let (mut bar, mut main) = (String::new(), String::new());
        let mut used: BTreeSet<(usize, u32)> = BTreeSet::new();
        for (k, kernel) in self.kernels.iter().enumerate() {
            if self.kernels.len() > 1 {
                writeln!(bar, "<b>{}</b>", escape(&kernel.name)).ok();
            }
            for (n, stage) in kernel.stages.iter().enumerate() {
                used.extend(stage.lines.iter().flat_map(|line| &line.places).map(|at| (at.file, at.first)));
                let before = n.checked_sub(1).map(|n| &kernel.stages[n]).filter(|before| before.form == stage.form);
                let rows = rows(before, stage);
                let id = format!("k{k}-{n}");
                let changes = changes(before.is_some(), &rows);
                let name = escape(&stage.name);
                writeln!(bar, "<a href=\"#{id}\">{name} {changes}<u></u></a>").ok();
                let of = match self.kernels.len() {
                    1 => String::new(),
                    _ => format!("{}: ", escape(&kernel.name)),
                };
                let about = escape(&stage.about);
                writeln!(main, "<section class=\"stage\" id=\"{id}\">\n<h2>{of}{name} {changes}</h2>").ok();
                writeln!(main, "<p class=\"about\">{about}</p>").ok();
                listing(&mut main, stage.form, &rows, before.is_some());
                main.push_str("</section>\n");
            }
        }
        let file = self.files.first().map_or("", |f| f.name.as_str());
        let (name, target) = (escape(&self.name), escape(&self.target));
        let page = Page {
            title: format!("{} on {}: passes", self.name, self.target),
            style: STYLE.into(),
            header: format!("<h1>{name}</h1><p>on {target} <span class=\"file\">{}</span></p>{HELP}", escape(file)),
            main: format!("<nav class=\"stages\" aria-label=\"passes\">\n{bar}</nav>\n{main}"),
            source: self.source(&used),
            script: SCRIPT.into(),
        };
        page.html()
    }

    /// The files that something stems from, and always the first.
    fn source(&self, used: &BTreeSet<(usize, u32)>) -> String {
        let mut out = String::new();
        for (f, file) in self.files.iter().enumerate() {
            if f > 0 {
                writeln!(out, "<p class=\"file\">{}</p>", escape(&file.name)).ok();
            }
            out.push_str("<ol>\n");
            for (n, line) in (1u32..).zip(file.text.lines()) {
                let at = match used.contains(&(f, n)) {
                    true => format!(" data-at=\"{f}:{n}\" tabindex=\"0\""),
                    false => String::new(),
                };
                writeln!(out, "<li{at}><code>{}</code></li>", escape(line)).ok();
            }
            out.push_str("</ol>\n");
        }
        out
    }
}

const HELP: &str = "<p class=\"legend\">A click on a line lights what stems from the same source, in every stage; \
    Escape puts it out. The arrow keys go from stage to stage. <label><input type=\"checkbox\" id=\"whole\"> whole \
    stages, not only what changed</label></p>";

/// A stage's lines and those of the stage before that are gone.
fn rows<'t>(before: Option<&'t TraceStage>, stage: &'t TraceStage) -> Vec<DiffRow<'t>> {
    let Some(before) = before else { return stage.lines.iter().map(|line| (LineChange::Kept, line)).collect() };
    let texts = |stage: &'t TraceStage| stage.lines.iter().map(|line| line.text.as_str()).collect::<Vec<_>>();
    let (old, new) = (texts(before), texts(stage));
    let mut rows = Vec::with_capacity(stage.lines.len());
    for op in capture_diff_slices(Algorithm::Patience, &old, &new) {
        let removed = before.lines[op.old_range()].iter().map(|line| (LineChange::Removed, line));
        let of_new = |change: LineChange| stage.lines[op.new_range()].iter().map(move |line| (change, line));
        match op {
            DiffOp::Equal { .. } => rows.extend(of_new(LineChange::Kept)),
            DiffOp::Delete { .. } => rows.extend(removed),
            DiffOp::Insert { .. } => rows.extend(of_new(LineChange::Added)),
            DiffOp::Replace { .. } => rows.extend(removed.chain(of_new(LineChange::Added))),
        }
    }
    rows
}

/// `+3 −5`
fn changes(is_diff: bool, rows: &[DiffRow<'_>]) -> String {
    let count = |change: LineChange| rows.iter().filter(|row| row.0 == change).count();
    match is_diff {
        true => {
            let (added, removed) = (count(LineChange::Added), count(LineChange::Removed));
            format!("<small><ins>+{added}</ins> <del>\u{2212}{removed}</del></small>")
        }
        false => format!("<small>{} lines</small>", rows.len()),
    }
}

/// The rows as a list, what is far from changes behind a button that unfolds it.
fn listing(out: &mut String, form: StageForm, rows: &[DiffRow<'_>], is_diff: bool) {
    let changed: Vec<usize> = (0..rows.len()).filter(|&n| rows[n].0 != LineChange::Kept).collect();
    let mut near = vec![!is_diff; rows.len()];
    for at in changed {
        near[at.saturating_sub(AROUND)..(at + AROUND + 1).min(rows.len())].fill(true);
    }
    let runs: Vec<(bool, usize)> = near.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
    let mut folds = vec![0; rows.len()];
    let mut at = 0;
    for (is_near, length) in runs {
        if !is_near && length >= FOLDED {
            folds[at] = length;
        } else {
            near[at..at + length].fill(true);
        }
        at += length;
    }
    out.push_str("<div class=\"scroll\"><ol class=\"code\">\n");
    for (n, (change, line)) in rows.iter().enumerate() {
        if folds[n] > 0 {
            writeln!(out, "<li class=\"fold\"><button>{} lines unchanged</button></li>", folds[n]).ok();
        }
        let class = match change {
            LineChange::Kept if form == StageForm::Code && line.text.starts_with(';') => " class=\"note\"",
            LineChange::Kept if near[n] => "",
            LineChange::Kept => " class=\"far\"",
            LineChange::Removed => " class=\"del\"",
            LineChange::Added => " class=\"add\"",
        };
        let text = escape(&line.text);
        writeln!(out, "<li{class}{}>{text}</li>", attributes(&line.places)).ok();
    }
    out.push_str("</ol></div>\n");
}

/// `data-at` has the lines where places begin; `data-in` has whole places, where they are of several lines.
fn attributes(places: &[SourceLines]) -> String {
    let at: Vec<String> = places.iter().map(|at| format!("{}:{}", at.file, at.first)).collect();
    let long = places.iter().filter(|at| at.last > at.first);
    let long: Vec<String> = long.map(|at| format!("{}:{}:{}", at.file, at.first, at.last)).collect();
    let attribute = |name: &str, list: &[String]| match list {
        [] => String::new(),
        list => format!(" data-{name}=\"{}\"", list.join(" ")),
    };
    attribute("at", &at) + &attribute("in", &long)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stage(name: &str, text: &str) -> TraceStage {
        let place = |n: usize| SourceLines { file: 0, first: n as u32 + 1, last: n as u32 + 1 };
        let places = |n: usize| if n.is_multiple_of(2) { vec![place(n)] } else { Vec::new() };
        let lines = text.lines().enumerate().map(|(n, text)| StageLine { text: text.into(), places: places(n) });
        TraceStage { name: name.into(), about: "an <about>".into(), form: StageForm::Tile, lines: lines.collect() }
    }

    fn trace(stages: Vec<TraceStage>) -> TracePage {
        let files = vec![SourceFile { name: "k.tile".into(), text: "a\nb\nc <d>\n".into() }];
        let kernels = vec![KernelTrace { name: "k".into(), stages }];
        TracePage { name: "k".into(), target: "a5".into(), files, kernels }
    }

    #[test]
    fn what_changed_is_marked_and_the_rest_folded() {
        let long: Vec<String> = (0..20).map(|n| format!("line {n}")).collect();
        let (old, new) = (format!("x\n{}", long.join("\n")), format!("y\nz\n{}", long.join("\n")));
        let html = trace(vec![stage("one", &old), stage("two", &new)]).html();
        let second = &html[html.find("id=\"k0-1\"").unwrap()..];
        assert!(second.contains("<ins>+2</ins> <del>\u{2212}1</del>"));
        assert!(second.contains("<li class=\"del\" data-at=\"0:1\">x</li>"));
        assert!(second.contains("<li class=\"add\" data-at=\"0:1\">y</li>"));
        assert!(second.contains("<li class=\"add\">z</li>"));
        assert!(second.contains("<button>16 lines unchanged</button>"));
        assert_eq!(second.matches("class=\"far\"").count(), 16);
        let first = &html[html.find("id=\"k0-0\"").unwrap()..html.find("id=\"k0-1\"").unwrap()];
        assert!(first.contains("<small>21 lines</small>") && !first.contains("far"));
    }

    #[test]
    fn other_forms_are_shown_whole() {
        let mut last = stage("lowering", "x\nw");
        last.form = StageForm::Loop;
        let html = trace(vec![stage("one", "x\ny"), last]).html();
        assert!(!html.contains("class=\"del\"") && !html.contains("class=\"add\""));
    }

    #[test]
    fn places_of_several_lines_are_told() {
        let mut one = stage("one", "x\ny");
        one.lines[0].places =
            vec![SourceLines { file: 0, first: 1, last: 3 }, SourceLines { file: 0, first: 2, last: 2 }];
        let html = trace(vec![one]).html();
        assert!(html.contains("<li data-at=\"0:1 0:2\" data-in=\"0:1:3\">x</li>"), "{html}");
    }

    #[test]
    fn the_source_says_which_lines_have_something() {
        let html = trace(vec![stage("one", "x\ny\nz")]).html();
        assert!(html.contains("<li data-at=\"0:1\" tabindex=\"0\"><code>a</code></li>\n<li><code>b</code></li>"));
        assert!(html.contains("<code>c &lt;d&gt;</code>") && html.contains("an &lt;about&gt;"));
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let html = trace(vec![stage("one", "x")]).html();
        for reference in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!html.contains(reference), "{reference}");
        }
    }
}

//! `--print-tile NAME@LINE`: prints whenever the statements of a line have run.

use super::command::is_name;
use super::names::{Viewpoint, find, visible};
use super::slice::Slice;
use super::statements::StatementId;
use super::values::Look;
use super::watcher::DebuggedProgram;
use ptoc_analysis::debug::NameMeaning;
use ptoc_diagnostics::{Diagnostic, FileId, codes, suggest};

/// One option, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintTile {
    /// As it was typed.
    pub text: String,
    /// What is printed.
    pub slice: Slice,
    /// The file, if it is another than the one that runs.
    pub file: Option<String>,
    /// The line, from 1.
    pub line: u32,
}

impl PrintTile {
    /// `NAME@LINE`, `NAME[0:4, 0:8]@FILE:LINE`
    pub fn parse(text: &str) -> Result<PrintTile, String> {
        let form = "expected NAME@LINE or NAME[0:4, 0:8]@LINE";
        let (what, place) = text.rsplit_once('@').ok_or(form)?;
        let (file, line) = place.rsplit_once(':').map_or((None, place), |(f, l)| (Some(f.to_owned()), l));
        let line = line.trim().parse().ok().filter(|&l: &u32| l > 0);
        let line = line.ok_or_else(|| format!("`{place}` is no line; {form}"))?;
        let slice = Slice::parse(what)?.filter(|s| is_name(&s.name)).ok_or(form)?;
        Ok(PrintTile { text: text.to_owned(), slice, file, line })
    }
}

/// What a run prints so.
#[derive(Debug, Default)]
pub struct Prints {
    /// Each with the statement whose end it waits for.
    list: Vec<(PrintTile, StatementId)>,
    /// What was printed and not yet taken.
    out: String,
    /// The first mistake that only the run has shown.
    pub wrong: Option<Diagnostic>,
}

impl Prints {
    /// Finds lines and names. All that is wrong is returned.
    pub fn new(options: &[PrintTile], program: &DebuggedProgram<'_>) -> Result<Prints, Vec<Diagnostic>> {
        let (mut prints, mut wrong) = (Prints::default(), Vec::new());
        for option in options {
            match resolve(option, program) {
                Ok(id) => prints.list.push((option.clone(), id)),
                Err(d) => wrong.push(*d),
            }
        }
        if wrong.is_empty() { Ok(prints) } else { Err(wrong) }
    }

    /// A statement of IR has run.
    pub fn after(&mut self, program: &DebuggedProgram<'_>, launch: usize, point: usize, look: &Look<'_>) {
        let points = &program.launches[launch].points;
        for (option, id) in &self.list {
            // The point may belong to a function that the statement has called; the name is one of the statement's.
            let Some(&(_, scope)) = points.list[point].ends.iter().find(|(ended, _)| ended == id) else { continue };
            let span = program.statements.list[*id].span;
            let from = Viewpoint { scope, at: span.after() };
            let look = Look { from, ..*look };
            let mut heading = vec![program.place(span)];
            heading.extend(program.role(launch, point).map(|r| format!("role {r}")));
            let block = program.block(&look.state);
            if !block.is_empty() {
                heading.push(format!("block {block}"));
            }
            heading.extend(program.loop_variables(launch, &look));
            let text = match look.print(&option.slice, &|span| program.place(span)) {
                Ok(text) => text,
                Err(message) => {
                    let d =
                        Diagnostic::error(codes::BAD_SLICE, span, format!("--print-tile {}: {message}", option.text));
                    self.wrong.get_or_insert(d.with_label("after this"));
                    continue;
                }
            };
            self.out.push_str(&format!("[{}] {text}", heading.join(", ")));
        }
    }

    /// Takes what was printed.
    pub fn take(&mut self) -> String {
        std::mem::take(&mut self.out)
    }

    /// Whether there is nothing to print.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

fn resolve(option: &PrintTile, program: &DebuggedProgram<'_>) -> Result<StatementId, Box<Diagnostic>> {
    let fail = |message: String| Box::new(Diagnostic::global(codes::NO_STATEMENT, message));
    let file: FileId = match &option.file {
        Some(name) => program.file_named(name).map_err(|e| fail(format!("--print-tile {}: {e}", option.text)))?,
        None => program.file,
    };
    let Some(id) = program.end_of_line(file, option.line) else {
        let place = format!("{}:{}", program.sources.name(file), option.line);
        let d = fail(format!("--print-tile {}: {place} has no statement that runs", option.text));
        return Err(Box::new(d.with_note(program.near(file, option.line))));
    };
    let span = program.statements.list[id].span;
    let mut names: Vec<String> = Vec::new();
    let mut elsewhere = None;
    for launch in &program.launches {
        let all = launch.step.debug.scopes.iter().flat_map(|s| &s.names);
        elsewhere = elsewhere.or(all.filter(|n| n.name == option.slice.name).map(|n| n.span).next());
        for &(_, scope) in launch.points.list.iter().flat_map(|p| &p.ends).filter(|(ended, _)| *ended == id) {
            let from = Viewpoint { scope, at: span.after() };
            if find(&launch.step.debug, from, &option.slice.name).is_ok() {
                return Ok(id);
            }
            for named in visible(&launch.step.debug, from) {
                if matches!(named.what, NameMeaning::Tile(_) | NameMeaning::TileArray(..) | NameMeaning::View(_)) {
                    names.push(named.name.to_string());
                }
            }
        }
    }
    names.sort();
    names.dedup();
    let why = match elsewhere {
        Some(_) => format!("`{}` is not visible there", option.slice.name),
        None => format!("nothing is called `{}` there", option.slice.name),
    };
    let message = format!("--print-tile {}: {why}", option.text);
    let mut d = Diagnostic::error(codes::UNKNOWN_PRINT_NAME, span, message).with_label("after this statement");
    if !names.is_empty() {
        d = d.with_note(format!("here are {}", ptoc_diagnostics::list(names.iter().map(String::as_str))));
    }
    if let Some(defined) = elsewhere {
        return Err(Box::new(d.with_secondary(defined, format!("`{}` is defined here", option.slice.name))));
    }
    if let Some(near) = suggest(&option.slice.name, names.iter().map(String::as_str)) {
        d = d.with_help(format!("did you mean `{near}`?"));
    }
    Err(Box::new(d))
}

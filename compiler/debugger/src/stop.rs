//! A place where the run stands: what is around it, and how it is told.

use super::names::Viewpoint;
use super::points::{Begin, StatementPart};
use super::statements::StatementId;
use super::values::Look;
use super::watcher::DebuggedProgram;
use ptoc_diagnostics::Span;

/// Where the run has stopped.
#[derive(Clone, Copy)]
pub struct StopPlace<'s> {
    /// All launches.
    pub program: &'s DebuggedProgram<'s>,
    /// Which of them.
    pub launch: usize,
    /// The statement of IR.
    pub point: usize,
    /// Names and values.
    pub look: &'s Look<'s>,
    /// The statement of the source that begins here; `None` in the middle of one.
    pub begin: Option<&'s Begin>,
    /// The statement has run.
    pub after: bool,
    /// After `up`: the call that the function looked at makes.
    pub caller: Option<Span>,
}

impl StopPlace<'_> {
    /// The statement of IR.
    pub fn point(&self) -> &super::points::Point {
        &self.program.launches[self.launch].points.list[self.point]
    }

    /// Its kernel's name.
    pub fn kernel(&self) -> &str {
        &self.program.launches[self.launch].step.kernel.name
    }

    /// The statement of the source, if the point is a part of one.
    pub fn statement(&self) -> Option<StatementId> {
        self.begin.map(|b| b.statement).or(self.point().part_of)
    }

    /// `TMOV on MTE1, commit on MTE1`: what the pipes have to do for the statement.
    pub fn on_pipes(&self) -> String {
        let runs = self.begin.map_or(self.point().run.as_slice(), |b| &b.runs);
        let runs = runs.iter().map(|r| match r {
            StatementPart::Instruction(name, Some(pipe)) | StatementPart::Order(name, Some(pipe)) => {
                format!("{name} on {pipe}")
            }
            StatementPart::Instruction(name, None) | StatementPart::Order(name, None) => (*name).to_owned(),
            StatementPart::Call(name) => format!("call {name}"),
        });
        runs.collect::<Vec<_>>().join(", ")
    }

    /// Its scope.
    pub fn scope(&self) -> u32 {
        self.look.from.scope
    }

    /// From where names are seen here and in the functions that called this one, innermost first, with the call.
    pub fn views(&self) -> Vec<(Viewpoint, Option<Span>)> {
        let debug = self.look.debug;
        let mut views = vec![(self.look.from, self.caller)];
        let mut frame = debug.frame(self.scope());
        while let Some((_, call)) = &debug.scopes[frame as usize].call {
            let scope = debug.scopes[frame as usize].parent;
            views.push((Viewpoint { scope, at: *call }, Some(*call)));
            frame = debug.frame(scope);
        }
        views
    }

    /// Its place; the kernel's name where there is none.
    pub fn span(&self) -> Span {
        if let Some(call) = self.caller {
            return call;
        }
        self.statement().map_or(self.look.state.kernel().span, |id| self.program.statements.list[id].head)
    }

    /// The functions around, innermost first, each with the place where it is: this one, or that of its call.
    pub fn stack(&self) -> Vec<(String, Span)> {
        let debug = self.look.debug;
        let (mut frame, mut at) = (debug.frame(self.scope()), self.span());
        let mut stack = Vec::new();
        while frame != 0 {
            let entered = &debug.scopes[frame as usize];
            let Some((name, call)) = &entered.call else { break };
            stack.push((name.to_string(), at));
            at = *call;
            frame = debug.frame(entered.parent);
        }
        stack.push((self.kernel().to_owned(), at));
        stack
    }

    /// The role that issues the statement.
    pub fn role(&self) -> Option<&str> {
        self.program.role(self.launch, self.point)
    }

    /// `role load, block i=0 j=1, k=2`, or nothing.
    pub fn position(&self) -> String {
        let role = self.role().map_or(String::new(), |r| format!("role {r}"));
        let block = self.program.block(&self.look.state);
        let block = if block.is_empty() { block } else { format!("block {block}") };
        let loops = self.program.loop_variables(self.launch, self.look);
        [vec![role, block], loops].concat().into_iter().filter(|s| !s.is_empty()).collect::<Vec<_>>().join(", ")
    }

    /// Where it is, the line, and what is about to run.
    pub fn header(&self, reason: &str) -> String {
        let stack = self.stack();
        let mut text = format!("{reason}{} in {}", self.program.place(self.span()), stack[0].0);
        if stack.len() > 1 {
            text.push_str(&format!(", called from {}", stack[1].0));
        }
        let position = self.position();
        if !position.is_empty() {
            text.push_str(&format!(", {position}"));
        }
        text.push('\n');
        text.push_str(&self.excerpt(0));
        let p = self.point();
        if !self.after {
            match (self.begin, p.operation()) {
                (Some(b), _) => {
                    let runs = b.runs.iter().filter_map(|r| match r {
                        StatementPart::Instruction(name, _) => Some((*name).to_owned()),
                        StatementPart::Call(name) => Some(format!("call {name}")),
                        // As written in the line above.
                        StatementPart::Order(..) => None,
                    });
                    let runs: Vec<String> = runs.collect();
                    if !runs.is_empty() {
                        text.push_str(&format!("runs {}\n", runs.join(", ")));
                    }
                }
                (None, Some(name)) => text.push_str(&format!("next is {name}\n")),
                _ => {}
            }
        }
        text
    }

    /// The line of the statement with the statement marked, and lines around it.
    pub fn excerpt(&self, around: u32) -> String {
        let (span, sources) = (self.span(), &self.program.sources);
        let (begin, end) = sources.range(span);
        let first = begin.line.saturating_sub(around).max(1);
        let width = (end.line + around).to_string().len();
        let mut text = String::new();
        for line in first..=begin.line + around {
            let source = sources.line(span.file, line - 1);
            if line > begin.line && sources.line_start(span.file, line - 1) >= sources.text(span.file).len() {
                break;
            }
            let arrow = if around > 0 && line == begin.line { "->" } else { "  " };
            text.push_str(format!("{arrow} {line:>width$} | {source}").trim_end());
            text.push('\n');
            if line == begin.line {
                let last =
                    if end.line == begin.line { end.column } else { source.trim_end().chars().count() as u32 + 1 };
                let marks = last.saturating_sub(begin.column).max(1) as usize;
                // A tab takes the place of a tab.
                let lead: String = source
                    .chars()
                    .take(begin.column as usize - 1)
                    .map(|c| if c == '\t' { '\t' } else { ' ' })
                    .collect();
                text.push_str(&format!("   {:>width$} | {lead}{}\n", "", "^".repeat(marks)));
            }
        }
        text
    }
}

//! Breakpoints on lines, names and data.

use super::adapter::{Adapter, in_frame};
use super::connection::Request;
use super::requests::{
    BreakpointLocations, DataBreakpointInfo, SetBreakpoints, SetDataBreakpoints, SetFunctionBreakpoints, read,
};
use ptoc_debugger::Debugger;
use ptoc_debugger::breakpoints::{Breakpoint, HitCount, Target};
use ptoc_debugger::condition;
use ptoc_debugger::stop::StopPlace;
use ptoc_debugger::watch::Watch;
use ptoc_diagnostics::FileId;
use ptoc_syntax::ast::Expr;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Whose the breakpoints of a debugger are: a client sets all of one kind at once.
#[derive(Default)]
pub(crate) struct Kinds {
    /// By file.
    lines: HashMap<FileId, Vec<usize>>,
    functions: Vec<usize>,
    /// What `dataBreakpointInfo` has promised, by its identifier.
    promised: HashMap<String, Watch>,
}

impl Kinds {
    /// The protocol's word for a stop at these.
    pub fn word(&self, ids: &[usize]) -> &'static str {
        match ids.iter().any(|id| self.lines.values().flatten().any(|of| of == id)) {
            true => "breakpoint",
            false => "function breakpoint",
        }
    }
}

/// A condition as it was typed, and parsed.
fn parsed(condition: Option<&String>) -> Result<Option<(String, Expr)>, String> {
    let text = condition.map(|text| text.trim()).filter(|text| !text.is_empty());
    text.map(|text| condition::parse(text).map(|e| (text.to_owned(), e))).transpose()
}

fn counted(hits: Option<&String>) -> Result<Option<HitCount>, String> {
    hits.map(|text| text.trim()).filter(|text| !text.is_empty()).map(HitCount::parse).transpose()
}

/// What is said of a line of a file that is another one than the program was compiled from.
const CHANGED: &str = "the source has changed: lines are those of the text that was launched";

fn refused(why: &str) -> Value {
    json!({"verified": false, "message": why, "reason": "failed"})
}

impl Adapter<'_, '_, '_> {
    /// `setBreakpoints`: all of one file.
    pub(crate) fn set_breakpoints(&mut self, debugger: &mut Debugger, request: &Request) -> Result<Value, String> {
        let asked: SetBreakpoints = read(request)?;
        let file = match self.sources.find(&asked.source) {
            Ok(file) => file,
            // A client has breakpoints in other files, too.
            Err(why) => {
                return Ok(json!({"breakpoints": asked.breakpoints.iter().map(|_| refused(&why)).collect::<Vec<_>>()}));
            }
        };
        let old = self.kinds.lines.remove(&file).unwrap_or_default();
        debugger.breakpoints.retain(|b| !old.contains(&b.id));
        let mut answers = Vec::new();
        let mut ids = Vec::new();
        for b in &asked.breakpoints {
            let line = self.connection.line_in(b.line);
            let made = self.program.target(&line.to_string(), file).and_then(|(target, said)| {
                let (condition, hit_count) = (parsed(b.condition.as_ref())?, counted(b.hit_condition.as_ref())?);
                let log = b.log_message.clone().filter(|text| !text.is_empty());
                Ok((Breakpoint { id: debugger.next_id, target, condition, hit_count, log, hits: 0 }, said))
            });
            let (made, said) = match made {
                Ok(made) => made,
                Err(why) => {
                    answers.push(refused(&why));
                    continue;
                }
            };
            let mut answer = self.verified(&made);
            let said = if self.sources.has_changed(file) { Some(CHANGED.to_owned()) } else { said };
            if let Some(said) = said {
                answer["message"] = json!(said);
            }
            answers.push(answer);
            ids.push(made.id);
            debugger.next_id += 1;
            debugger.breakpoints.push(made);
        }
        self.kinds.lines.insert(file, ids);
        Ok(json!({"breakpoints": answers}))
    }

    /// A breakpoint with the place where it stops.
    fn verified(&self, b: &Breakpoint) -> Value {
        let mut answer = json!({"id": b.id, "verified": true});
        if let Target::Statement(id) = b.target {
            let span = self.program.statements.list[id].head;
            let (begin, end) = self.program.sources.range(span);
            answer["source"] = self.sources.describe(span.file);
            answer["line"] = json!(self.connection.line_out(begin.line));
            answer["column"] = json!(self.connection.column_out(begin.column));
            answer["endLine"] = json!(self.connection.line_out(end.line));
            answer["endColumn"] = json!(self.connection.column_out(end.column));
        }
        answer
    }

    /// `setFunctionBreakpoints`: kernels, functions, roles, instructions, and what is written.
    pub(crate) fn set_function_breakpoints(
        &mut self,
        debugger: &mut Debugger,
        request: &Request,
    ) -> Result<Value, String> {
        let asked: SetFunctionBreakpoints = read(request)?;
        let old = std::mem::take(&mut self.kinds.functions);
        debugger.breakpoints.retain(|b| !old.contains(&b.id));
        let mut answers = Vec::new();
        for b in &asked.breakpoints {
            let made = self.program.target(b.name.trim(), self.program.file).and_then(|(target, _)| {
                let (condition, hit_count) = (parsed(b.condition.as_ref())?, counted(b.hit_condition.as_ref())?);
                Ok(Breakpoint { id: debugger.next_id, target, condition, hit_count, log: None, hits: 0 })
            });
            match made {
                Ok(made) => {
                    answers.push(self.verified(&made));
                    self.kinds.functions.push(made.id);
                    debugger.next_id += 1;
                    debugger.breakpoints.push(made);
                }
                Err(why) => answers.push(refused(&why)),
            }
        }
        Ok(json!({"breakpoints": answers}))
    }

    /// `dataBreakpointInfo`: what is watched is what the name means in that frame now.
    pub(crate) fn data_breakpoint_info(&mut self, stop: &StopPlace<'_>, request: &Request) -> Result<Value, String> {
        let asked: DataBreakpointInfo = read(request)?;
        let (text, frame) = match asked.variables_reference.filter(|&r| r > 0) {
            Some(reference) => self.handles.name_in(reference, &asked.name)?,
            None => (asked.name.clone(), asked.frame_id),
        };
        let watch = in_frame(stop, frame, |seen| Watch::new(0, &text, stop.launch, seen.look));
        Ok(match watch {
            Ok(watch) => {
                let id = format!("{}:{}:{text}", stop.launch, stop.scope());
                self.kinds.promised.insert(id.clone(), watch);
                json!({"dataId": id, "description": format!("a change of {text}"), "accessTypes": ["write"],
                       "canPersist": false})
            }
            Err(why) => json!({"dataId": Value::Null, "description": why}),
        })
    }

    /// `setDataBreakpoints`
    pub(crate) fn set_data_breakpoints(&mut self, debugger: &mut Debugger, request: &Request) -> Result<Value, String> {
        let asked: SetDataBreakpoints = read(request)?;
        debugger.watches.clear();
        let mut answers = Vec::new();
        for b in &asked.breakpoints {
            let made = self.kinds.promised.get(&b.data_id).cloned().ok_or("this is not being watched in this run");
            let made = made.map_err(str::to_owned).and_then(|mut watch| {
                if let Some(access) = b.access_type.as_deref().filter(|access| *access != "write") {
                    return Err(format!("`{access}` is not watched: a run stops at changes, which is `write`"));
                }
                watch.condition = parsed(b.condition.as_ref())?;
                watch.hit_count = counted(b.hit_condition.as_ref())?;
                watch.id = debugger.next_id;
                Ok(watch)
            });
            match made {
                Ok(watch) => {
                    answers.push(json!({"id": watch.id, "verified": true}));
                    debugger.next_id += 1;
                    debugger.watch_anew(watch);
                }
                Err(why) => answers.push(refused(&why)),
            }
        }
        Ok(json!({"breakpoints": answers}))
    }

    /// `breakpointLocations`: the lines that have code.
    pub(crate) fn breakpoint_locations(&self, request: &Request) -> Result<Value, String> {
        let asked: BreakpointLocations = read(request)?;
        let file = self.sources.find(&asked.source)?;
        let (first, last) = (asked.line, asked.end_line.unwrap_or(asked.line));
        let lines = self.program.lines(file).into_iter().map(|line| self.connection.line_out(line));
        let within: Vec<Value> = lines.filter(|l| (first..=last).contains(l)).map(|l| json!({"line": l})).collect();
        Ok(json!({"breakpoints": within}))
    }
}

//! The requests of a client while a program is there: answered while the run stands, and between two statements.

use super::breakpoints::Kinds;
use super::connection::{Connection, Incoming, Request};
use super::launch::Ended;
use super::requests::{self, Completions, Evaluate, Granularity, Scopes, SourceText, StackTrace, Step, read};
use super::sources::Sources;
use super::variables::Handles;
use super::{idle, picture};
use ptoc_debugger::actions::{self, block, written};
use ptoc_debugger::debugger::ResumeMode;
use ptoc_debugger::frontend::{Frontend, StopReason};
use ptoc_debugger::inspect::PROPERTIES;
use ptoc_debugger::names::visible;
use ptoc_debugger::replay::Wanted;
use ptoc_debugger::stop::StopPlace;
use ptoc_debugger::values::Look;
use ptoc_debugger::{Console, DebuggedProgram, Debugger, command_line};
use ptoc_diagnostics::{FileId, Span};
use serde_json::{Value, json};
use std::cell::Cell;
use std::ops::ControlFlow;

/// The one thread: blocks run one after another.
const THREAD: i64 = 1;

/// The client's end of a debugger.
pub(crate) struct Adapter<'c, 'o, 'p> {
    pub connection: &'c Connection<'o>,
    pub program: &'p DebuggedProgram<'p>,
    pub sources: Sources<'p>,
    /// Files of which was said that they have changed.
    changed: Vec<FileId>,
    /// What the client's breakpoints are.
    pub kinds: Kinds,
    /// What can be looked into at this stop.
    pub handles: Handles,
    /// What the program prints was printed before.
    replaying: &'c Cell<bool>,
    /// The client wants the run to stop.
    pause: bool,
    /// What the thread was called at the last stop.
    thread: String,
    /// The run is to end.
    pub ending: Option<Ended>,
}

/// What becomes of the run after a request.
enum Next {
    /// It stands where it is.
    Stay,
    /// It goes on, or ends, as the debugger knows.
    Go,
}

/// What a request does: the body of its answer, and what becomes of the run.
type Outcome = Result<(Value, Next), String>;

impl<'c, 'o, 'p> Adapter<'c, 'o, 'p> {
    pub fn new(
        connection: &'c Connection<'o>,
        program: &'p DebuggedProgram<'p>,
        replaying: &'c Cell<bool>,
    ) -> Adapter<'c, 'o, 'p> {
        let thread = program.launches.first().map_or(String::new(), |l| l.step.kernel.name.to_string());
        Adapter {
            connection,
            program,
            sources: Sources::new(program),
            changed: Vec::new(),
            kinds: Kinds::default(),
            handles: Handles::default(),
            replaying,
            pause: false,
            thread,
            ending: None,
        }
    }

    /// Serves what comes while the run does not stand.
    pub fn between(&mut self, debugger: &mut Debugger, incoming: Incoming) {
        let request = match incoming {
            Incoming::Request(request) => request,
            Incoming::Malformed(why) => return self.connection.complain(&why),
        };
        match self.anywhere(debugger, None, &request) {
            Some(answer) => self.answer(&request, answer.map(|body| (body, Next::Stay))),
            None if requests::is_known(&request.command) => {
                self.connection.refuse(&request, "notStopped: the program runs; `pause` stops it", false);
                Next::Stay
            }
            None => {
                self.connection.fail(&request, &idle(&request.command));
                Next::Stay
            }
        };
    }

    fn answer(&self, request: &Request, outcome: Outcome) -> Next {
        match outcome {
            Ok((body, next)) => {
                self.connection.succeed(request, body);
                next
            }
            Err(why) => {
                // What is typed or pointed at may be wrong; that is no reason for a window.
                let quiet = matches!(request.command.as_str(), "evaluate" | "dataBreakpointInfo" | "variables");
                self.connection.refuse(request, &why, !quiet);
                Next::Stay
            }
        }
    }

    /// Requests that are answered whether or not the run stands. `None` for others.
    fn anywhere(
        &mut self,
        debugger: &mut Debugger,
        stop: Option<&StopPlace<'_>>,
        request: &Request,
    ) -> Option<Result<Value, String>> {
        Some(match request.command.as_str() {
            "setBreakpoints" => self.set_breakpoints(debugger, request),
            "setFunctionBreakpoints" => self.set_function_breakpoints(debugger, request),
            "setDataBreakpoints" => self.set_data_breakpoints(debugger, request),
            "setExceptionBreakpoints" => Ok(json!({"breakpoints": []})),
            "breakpointLocations" => self.breakpoint_locations(request),
            "threads" => Ok(json!({"threads": [{"id": THREAD, "name": self.thread}]})),
            "source" => self.source(request),
            "loadedSources" => {
                let all: Vec<Value> = self.sources.all().into_iter().map(|f| self.sources.describe(f)).collect();
                Ok(json!({"sources": all}))
            }
            "pause" => {
                self.pause = stop.is_none();
                Ok(Value::Null)
            }
            "terminate" => {
                self.ending = Some(Ended::Done);
                Ok(Value::Null)
            }
            "disconnect" => {
                self.ending = Some(Ended::Disconnected);
                Ok(Value::Null)
            }
            "initialize" | "launch" | "attach" | "configurationDone" => {
                Err(format!("`{}`: a program is running already", request.command))
            }
            _ => return None,
        })
    }

    fn source(&self, request: &Request) -> Result<Value, String> {
        let asked: SourceText = read(request)?;
        let reference = asked.source.and_then(|s| s.source_reference).unwrap_or(asked.source_reference);
        Ok(json!({"content": self.sources.text(reference)?, "mimeType": "text/x-tile"}))
    }

    /// Requests about a run that stands.
    fn standing(
        &mut self,
        debugger: &mut Debugger,
        stop: &StopPlace<'_>,
        reason: &StopReason,
        request: &Request,
    ) -> Outcome {
        if let Some(answer) = self.anywhere(debugger, Some(stop), request) {
            return Ok((answer?, Next::Stay));
        }
        let stay = |body: Result<Value, String>| Ok((body?, Next::Stay));
        let frame = stop.look.debug.frame(stop.scope());
        let at = stop.span();
        let line = self.program.sources.range(at).0.line;
        let step = || read::<Step>(request).map(|s| s.granularity.unwrap_or(Granularity::Statement));
        let mut go = |mode: ResumeMode| {
            debugger.resume(mode);
            Ok((Value::Null, Next::Go))
        };
        match request.command.as_str() {
            "continue" => {
                let (_, next) = go(ResumeMode::Continue(1))?;
                Ok((json!({"allThreadsContinued": true}), next))
            }
            "next" => match step()? {
                Granularity::Statement => go(ResumeMode::Next(1, frame)),
                Granularity::Line => go(ResumeMode::Line(at.file, line, Some(frame))),
                Granularity::Instruction => go(ResumeMode::Operation(1)),
            },
            "stepIn" => match step()? {
                Granularity::Statement => go(ResumeMode::Step(1)),
                Granularity::Line => go(ResumeMode::Line(at.file, line, None)),
                Granularity::Instruction => go(ResumeMode::Operation(1)),
            },
            "stepOut" => go(ResumeMode::Finish(frame)),
            "stepBack" => {
                debugger.go_back(match step()? {
                    Granularity::Statement | Granularity::Line => Wanted::Statement(stop.launch, frame),
                    Granularity::Instruction => Wanted::Operation,
                });
                Ok((Value::Null, Next::Go))
            }
            "reverseContinue" => {
                debugger.go_back(Wanted::Stop);
                Ok((Value::Null, Next::Go))
            }
            "ptoc/lastWrite" => self.last_write(debugger, stop, request),
            "ptoc/block" => {
                let asked: Evaluate = read(request)?;
                go(block(stop, &asked.expression)?)
            }
            "stackTrace" => stay(self.stack_trace(stop, request)),
            "scopes" => {
                let asked: Scopes = read(request)?;
                stay(in_frame(stop, Some(asked.frame_id), |seen| Ok(self.handles.scopes(seen, level(asked.frame_id)))))
            }
            "variables" => stay(self.handles.variables(stop, request)),
            "evaluate" => self.evaluate(debugger, stop, request),
            "completions" => stay(completions(stop, request)),
            "dataBreakpointInfo" => stay(self.data_breakpoint_info(stop, request)),
            "exceptionInfo" => stay(exception(reason)),
            "ptoc/picture" => {
                let asked: Evaluate = read(request)?;
                stay(in_frame(stop, asked.frame_id, |seen| picture::answer(seen, &asked.expression)))
            }
            command => Err(idle(command)),
        }
    }

    /// Frames from the innermost function to the kernel, and to the program that launches it.
    fn stack_trace(&self, stop: &StopPlace<'_>, request: &Request) -> Result<Value, String> {
        let asked: StackTrace = read(request)?;
        let stack = stop.stack();
        let last = stack.len() - 1;
        let position = stop.position();
        let frame = |(n, (name, span)): (usize, &(String, Span))| {
            let (begin, end) = self.program.sources.range(*span);
            let name = if n == last && !position.is_empty() { format!("{name} ({position})") } else { name.clone() };
            json!({
                "id": n + 1, "name": name, "source": self.sources.describe(span.file),
                "line": self.connection.line_out(begin.line), "column": self.connection.column_out(begin.column),
                "endLine": self.connection.line_out(end.line), "endColumn": self.connection.column_out(end.column),
            })
        };
        let mut frames: Vec<Value> = stack.iter().enumerate().map(frame).collect();
        let launches = self.program.launches.len();
        if launches > 1 {
            let name = format!("launch {} of {launches}", stop.launch + 1);
            frames.push(json!({"id": last + 2, "name": name, "line": 0, "column": 0, "presentationHint": "label"}));
        }
        let total = frames.len();
        let levels = asked.levels.filter(|&n| n > 0).unwrap_or(total);
        let shown: Vec<Value> = frames.into_iter().skip(asked.start_frame.unwrap_or(0)).take(levels).collect();
        Ok(json!({"stackFrames": shown, "totalFrames": total}))
    }

    /// A value, or in the console a command of the debugger.
    fn evaluate(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>, request: &Request) -> Outcome {
        let asked: Evaluate = read(request)?;
        let text = asked.expression.trim();
        let frame = asked.frame_id.unwrap_or(1);
        let typed = asked.context.as_deref() == Some("repl");
        let value = in_frame(stop, asked.frame_id, |seen| {
            seen.look.inspect(text).map(|found| self.handles.describe(seen, frame, text, &found))
        });
        let word = text.split_whitespace().next().unwrap_or("");
        if typed && value.is_err() && OTHERS.contains(&word) {
            return Err(format!("`{word}` is for the debugger in a terminal: here the editor has it"));
        }
        if value.is_ok() || !typed || !CONSOLE.contains(&word) {
            return Ok((value?, Next::Stay));
        }
        if text == "help" {
            let own = actions::described(|command| CONSOLE.contains(&command));
            let body = json!({"result": format!("{own}Breakpoints are the editor's."), "variablesReference": 0});
            return Ok((body, Next::Stay));
        }
        let mut said = Said::default();
        debugger.level = level(asked.frame_id.unwrap_or(1)).min(stop.views().len() - 1);
        let goes_on = command_line::act(debugger, stop, text, &mut said)?;
        let body = json!({"result": said.text.trim_end(), "variablesReference": 0});
        if goes_on {
            self.connection.event("continued", json!({"threadId": THREAD, "allThreadsContinued": true}));
        }
        Ok((body, if goes_on { Next::Go } else { Next::Stay }))
    }

    /// Back to the statement that has written something last.
    fn last_write(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>, request: &Request) -> Outcome {
        let asked: Evaluate = read(request)?;
        let list = in_frame(stop, asked.frame_id, |seen| written(seen, &asked.expression))?;
        debugger.go_back(Wanted::Write(list));
        Ok((Value::Null, Next::Go))
    }

    /// Says once of a file that it is not what runs any more.
    fn tell_of_changes(&mut self, file: FileId) {
        if self.changed.contains(&file) || !self.sources.has_changed(file) {
            return;
        }
        self.changed.push(file);
        let name = self.program.sources.name(file);
        let text =
            format!("`{name}`: the source has changed. What runs is the text that was launched; launch it again.\n");
        self.connection.output("important", &text);
    }

    /// Tells the client where the run stands.
    fn announce(&mut self, debugger: &Debugger, stop: &StopPlace<'_>, reason: &StopReason) {
        let mut body = json!({"threadId": THREAD, "allThreadsStopped": true});
        let (word, text) = match reason {
            StopReason::Arrived if debugger.position() == 1 => ("entry", None),
            StopReason::Arrived => ("step", None),
            StopReason::Interrupted => ("pause", None),
            StopReason::Breakpoints(ids) => {
                body["hitBreakpointIds"] = json!(ids);
                (self.kinds.word(ids), None)
            }
            StopReason::Watches(list) => {
                body["hitBreakpointIds"] = list.iter().map(|(id, ..)| *id).collect();
                ("data breakpoint", Some(list.iter().map(|(.., changes)| changes.as_str()).collect::<String>()))
            }
            StopReason::Trap(trap) => ("exception", Some(format!("{}: {}", trap.code, trap.message))),
        };
        body["reason"] = json!(word);
        if let Some(text) = text {
            body["description"] = json!(text.trim().lines().next().unwrap_or(word));
            body["text"] = json!(text.trim());
        }
        let position = stop.position();
        let separator = if position.is_empty() { "" } else { ", " };
        self.thread = format!("{}{separator}{position}", stop.kernel());
        self.connection.event("stopped", body);
    }
}

impl Frontend for Adapter<'_, '_, '_> {
    fn stopped(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>, reason: &StopReason) -> ControlFlow<()> {
        self.pause = false;
        self.handles.clear();
        if std::mem::take(&mut debugger.fruitless) && matches!(reason, StopReason::Arrived) {
            self.connection.output("console", "Nothing of that kind was before: the run is where it could go.\n");
        }
        self.announce(debugger, stop, reason);
        self.tell_of_changes(stop.span().file);
        loop {
            let request = match self.connection.next() {
                Some(Incoming::Request(request)) => request,
                Some(Incoming::Malformed(why)) => {
                    self.connection.complain(&why);
                    continue;
                }
                None => {
                    self.ending = Some(Ended::Gone);
                    return ControlFlow::Break(());
                }
            };
            let outcome = self.standing(debugger, stop, reason, &request);
            let next = self.answer(&request, outcome);
            match next {
                _ if self.ending.is_some() => return ControlFlow::Break(()),
                Next::Stay => {}
                Next::Go => return ControlFlow::Continue(()),
            }
        }
    }

    fn passing(&mut self, debugger: &mut Debugger, _: &StopPlace<'_>) -> ControlFlow<(), bool> {
        self.replaying.set(debugger.is_replaying());
        loop {
            match self.connection.poll() {
                Ok(Some(incoming)) => self.between(debugger, incoming),
                Ok(None) => break,
                Err(()) => self.ending = Some(Ended::Gone),
            }
            if self.ending.is_some() {
                return ControlFlow::Break(());
            }
        }
        ControlFlow::Continue(self.pause)
    }

    fn write(&mut self, text: &str) {
        self.connection.output("console", text);
    }

    fn note(&mut self, text: &str) {
        self.connection.output("stdout", text);
    }
}

/// The number of calls between a frame and the place where the run stands.
fn level(frame: i64) -> usize {
    usize::try_from(frame - 1).unwrap_or(0)
}

/// Does something with the names of a frame; without one, with those of the innermost.
pub(crate) fn in_frame<T>(
    stop: &StopPlace<'_>,
    frame: Option<i64>,
    f: impl FnOnce(&StopPlace<'_>) -> Result<T, String>,
) -> Result<T, String> {
    let views = stop.views();
    let number = frame.unwrap_or(1);
    let (from, caller) = views.get(level(number)).ok_or_else(|| format!("there is no frame {number}"))?;
    let look = Look { from: *from, ..*stop.look };
    f(&StopPlace { look: &look, caller: *caller, ..*stop })
}

/// What can be typed of the names that are visible, and of the properties behind a dot.
fn completions(stop: &StopPlace<'_>, request: &Request) -> Result<Value, String> {
    let asked: Completions = read(request)?;
    let before: String = asked.text.chars().take(asked.column.saturating_sub(1) as usize).collect();
    let word_of = |text: &str| -> usize {
        text.chars().rev().take_while(|c| c.is_alphanumeric() || *c == '_').map(char::len_utf8).sum()
    };
    let (head, word) = before.split_at(before.len() - word_of(&before));
    in_frame(stop, asked.frame_id, |seen| {
        let names: Vec<(String, &str)> = match head.ends_with('.') {
            true => PROPERTIES.map(|p| (p.to_owned(), "property")).into(),
            false => {
                let all = visible(seen.look.debug, seen.look.from);
                let names = all.into_iter().map(|n| (n.name.to_string(), "variable"));
                let commands = CONSOLE.iter().filter(|_| head.trim().is_empty());
                names.chain(commands.map(|c| ((*c).to_owned(), "keyword"))).collect()
            }
        };
        let fits = names.into_iter().filter(|(name, _)| name.starts_with(word));
        let (start, length) = (head.chars().count(), word.chars().count());
        let one =
            |(label, kind): (String, &str)| json!({"label": label, "type": kind, "start": start, "length": length});
        Ok(json!({"targets": fits.map(one).collect::<Vec<_>>()}))
    })
}

/// What is known of the error with which the run ends.
fn exception(reason: &StopReason) -> Result<Value, String> {
    let StopReason::Trap(trap) = reason else { return Err("the run has not ended with an error".into()) };
    let notes = trap.notes.iter().chain(&trap.help).cloned();
    let details: Vec<String> = std::iter::once(trap.message.clone()).chain(notes).collect();
    Ok(json!({
        "exceptionId": trap.code.as_str(), "description": trap.message, "breakMode": "always",
        "details": {"message": details.join("\n")},
    }))
}

/// Commands of the debugger that the console of a client takes; breakpoints are the client's own.
const CONSOLE: [&str; 14] = [
    "back", "block", "continue", "events", "finish", "help", "info", "list", "next", "print", "step", "tiles", "until",
    "where",
];

/// Those that it does not.
const OTHERS: [&str; 8] = ["break", "watch", "delete", "display", "up", "down", "quit", "backtrace"];

/// What a command says.
#[derive(Default)]
struct Said {
    text: String,
}

impl Console for Said {
    fn read(&mut self, _: &str) -> Option<String> {
        None
    }

    fn write(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn note(&mut self, text: &str) {
        self.text.push_str(text);
    }

    fn is_terminal(&self) -> bool {
        false
    }
}

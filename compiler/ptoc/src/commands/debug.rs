//! `ptoc run --step` and `--print-tile`: a run that someone looks on at.

use crate::args::RunArgs;
use crate::io::Io;
use ptoc_debugger::stop::StopPlace;
use ptoc_debugger::{
    CommandLine, Completions, Console, DebuggedProgram, Debugger, Frontend, Onlookers, Prints, StopReason,
};
use ptoc_diagnostics::Diagnostics;
use ptoc_driver::launch::{CompiledPlan, Plan, RunOptions, RunOutcome};
use ptoc_driver::session::{CompilationUnit, Failed, Session};
use ptoc_driver::signals::Interrupts;
use ptoc_tensor::Tensor;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io::{BufRead as _, Read as _};
use std::ops::ControlFlow;

/// Runs with a debugger, or with tiles to print.
pub(super) fn observed(
    args: &RunArgs,
    session: &mut Session,
    io: &mut Io<'_>,
    (unit, plan, compiled): (&CompilationUnit, &Plan, &CompiledPlan<'_>),
    tensors: &mut [Tensor],
) -> Result<RunOutcome, Failed> {
    let program = DebuggedProgram::new(plan, &unit.modules, unit.file, &session.sources, &session.target);
    let mut prints = match Prints::new(&args.debug.print_tile, &program) {
        Ok(prints) => prints,
        Err(wrong) => {
            session.diagnostics.extend(wrong);
            return Err(Failed);
        }
    };
    let mut debugger = args.debug.step.then(Debugger::default);
    let io = RefCell::new(io);
    let interrupts = if debugger.is_some() && io.borrow().terminal { Interrupts::new() } else { None };
    let mut console = Terminal { io: &io, editor: None, pasted: VecDeque::new(), interrupts };
    if debugger.is_some() {
        console.edit();
    }
    let options = RunOptions { threads: args.threads, ..RunOptions::default() };
    let initial = debugger.is_some().then(|| tensors.to_vec());
    let outcome = loop {
        // What is printed a second time was seen.
        let replays = Cell::new(false);
        let mut front = Front { line: CommandLine { console: &mut console }, replays: &replays };
        let mut onlookers =
            Onlookers { program: &program, debugger: debugger.as_mut(), front: &mut front, prints: &mut prints };
        let mut print = |line: &str| {
            if !replays.get() {
                io.borrow_mut().note(line);
            }
        };
        let outcome = compiled.run(session, tensors, &options, &mut print, Some(&mut onlookers));
        if !debugger.as_mut().is_some_and(Debugger::begins_anew) {
            break outcome?;
        }
        session.diagnostics = Diagnostics::new();
        tensors.clone_from_slice(initial.as_deref().unwrap_or_default());
    };
    if debugger.is_some_and(|d| d.is_attached()) {
        console.write("The run is complete.\n");
    }
    match prints.wrong {
        Some(d) => session.fail(d),
        None => Ok(outcome),
    }
}

/// The command line, and whether the run is where it was before.
struct Front<'f, 'c> {
    line: CommandLine<'c>,
    replays: &'f Cell<bool>,
}

impl Frontend for Front<'_, '_> {
    fn stopped(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>, reason: &StopReason) -> ControlFlow<()> {
        self.line.stopped(debugger, stop, reason)
    }

    fn passing(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>) -> ControlFlow<(), bool> {
        self.replays.set(debugger.is_replaying());
        self.line.passing(debugger, stop)
    }

    fn write(&mut self, text: &str) {
        self.line.write(text);
    }

    fn note(&mut self, text: &str) {
        self.line.note(text);
    }
}

/// Bytes of a line that a debugger's command may have.
const LONGEST_COMMAND: u64 = 1 << 16;

/// What ends a line that is to be passed over: an empty one would repeat the last command.
const NOTHING: &str = "#";

/// The debugger's user: standard input and output.
struct Terminal<'t, 'r, 'i> {
    io: &'t RefCell<&'r mut Io<'i>>,
    /// Edits lines and keeps those before, at a terminal.
    editor: Option<Editor<Words, DefaultHistory>>,
    /// Lines that were pasted at once, and are not read yet: each is a command.
    pasted: VecDeque<String>,
    /// Ctrl-C stops the run, as long as there is somebody to type what comes next.
    interrupts: Option<Interrupts>,
}

/// What Tab completes.
struct Words(Completions);

impl Helper for Words {}
impl Highlighter for Words {}
impl Validator for Words {}

impl Hinter for Words {
    type Hint = String;
}

impl Terminal<'_, '_, '_> {
    /// Lines are edited from now on, at a terminal.
    fn edit(&mut self) {
        if !self.io.borrow().terminal {
            return;
        }
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
        // A terminal that cannot be set up takes lines as they are.
        self.editor = Editor::with_config(config).ok();
        if let Some(editor) = &mut self.editor {
            editor.set_helper(Some(Words(Completions::default())));
        }
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self.0.complete(&line[..at]))
    }
}

impl Console for Terminal<'_, '_, '_> {
    fn read(&mut self, prompt: &str) -> Option<String> {
        let mut io = self.io.borrow_mut();
        if let Some(line) = self.pasted.pop_front() {
            io.print(&format!("{prompt}{line}\n"));
            io.flush();
            return Some(line);
        }
        if let Some(editor) = &mut self.editor {
            io.flush();
            return match editor.readline(prompt) {
                Ok(line) => {
                    let mut lines = line.split(['\r', '\n']).filter(|l| !l.trim().is_empty()).map(str::to_owned);
                    let first = lines.next().unwrap_or_default();
                    self.pasted.extend(lines);
                    Some(first)
                }
                // Ctrl-C drops the line.
                Err(ReadlineError::Interrupted) => Some(NOTHING.into()),
                Err(_) => {
                    self.interrupts = None;
                    None
                }
            };
        }
        if io.interactive {
            io.print(prompt);
        }
        io.flush();
        let mut line = Vec::new();
        // What cannot be read ends like a file, and what has no end in lines of bounded length.
        match io.input.as_mut()?.take(LONGEST_COMMAND).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => None,
            Ok(_) => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        }
    }

    fn write(&mut self, text: &str) {
        self.io.borrow_mut().print(text);
    }

    fn note(&mut self, text: &str) {
        let mut io = self.io.borrow_mut();
        io.flush();
        io.note(text);
    }

    fn is_terminal(&self) -> bool {
        self.io.borrow().interactive
    }

    fn offer(&mut self, words: Completions) {
        if let Some(helper) = self.editor.as_mut().and_then(Editor::helper_mut) {
            helper.0 = words;
        }
    }

    fn interrupted(&mut self) -> bool {
        self.interrupts.as_ref().is_some_and(Interrupts::raised)
    }
}

//! `ptoc run --step` and `--print-tile`: a run that someone looks on at.

use crate::args::RunArgs;
use crate::io::Io;
use ptoc_debugger::{CommandLine, Console, DebuggedProgram, Debugger, Onlookers, Prints};
use ptoc_driver::launch::{CompiledPlan, Plan, RunOptions, RunOutcome};
use ptoc_driver::session::{CompilationUnit, Failed, Session};
use ptoc_tensor::Tensor;
use std::cell::RefCell;
use std::io::{BufRead as _, Read as _};

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
    let mut console = Terminal { io: &io };
    let mut front = CommandLine { console: &mut console };
    let mut onlookers =
        Onlookers { program: &program, debugger: debugger.as_mut(), front: &mut front, prints: &mut prints };
    let options = RunOptions { threads: args.threads, ..RunOptions::default() };
    let mut print = |line: &str| io.borrow_mut().note(line);
    let outcome = compiled.run(session, tensors, &options, &mut print, Some(&mut onlookers))?;
    if debugger.is_some_and(|d| d.is_attached()) {
        console.write("The run is complete.\n");
    }
    match prints.wrong {
        Some(d) => session.fail(d),
        None => Ok(outcome),
    }
}

/// Bytes of a line that a debugger's command may have.
const LONGEST_COMMAND: u64 = 1 << 16;

/// The debugger's user: standard input and output.
struct Terminal<'t, 'r, 'i> {
    io: &'t RefCell<&'r mut Io<'i>>,
}

impl Console for Terminal<'_, '_, '_> {
    fn read(&mut self, prompt: &str) -> Option<String> {
        let mut io = self.io.borrow_mut();
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
}

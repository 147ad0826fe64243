//! The debugger at a console: a stop is told in lines, and commands are lines.

use super::Console;
use super::completion::Completions;
use super::debugger::Debugger;
use super::frontend::{Frontend, StopReason};
use super::stop::StopPlace;
use super::values::Look;
use std::ops::ControlFlow;

/// A console as a frontend.
pub struct CommandLine<'c> {
    /// Who types and reads.
    pub console: &'c mut dyn Console,
}

impl Frontend for CommandLine<'_> {
    /// Says where the run is and takes commands until one of them goes on.
    fn stopped(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>, reason: &StopReason) -> ControlFlow<()> {
        let console = &mut *self.console;
        if std::mem::take(&mut debugger.fruitless) {
            console.write("nothing of that kind was before\n");
        }
        if let Some(launch) = debugger.announce(stop) {
            console.write(&launch);
        }
        console.write(&stop.header(&reason.heading()));
        console.write(&debugger.displayed(stop));
        loop {
            if console.is_terminal() {
                console.offer(Completions::new(debugger, stop));
            }
            let Some(line) = console.read("(ptoc) ") else {
                if console.is_terminal() {
                    console.write("\n");
                }
                debugger.detach();
                return ControlFlow::Continue(());
            };
            let mut line = line.trim();
            let again = debugger.last.clone();
            if line.is_empty() && console.is_terminal() {
                line = &again;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            debugger.last = line.to_owned();
            match act(debugger, stop, line, console) {
                Ok(true) => return ControlFlow::Continue(()),
                Ok(false) if debugger.has_quit() => return ControlFlow::Break(()),
                Ok(false) => {}
                Err(message) => console.write(&format!("error: {message}\n")),
            }
        }
    }

    fn passing(&mut self, _: &mut Debugger, _: &StopPlace<'_>) -> ControlFlow<(), bool> {
        ControlFlow::Continue(self.console.interrupted())
    }

    fn write(&mut self, text: &str) {
        self.console.write(text);
    }

    fn note(&mut self, text: &str) {
        self.console.note(text);
    }
}

/// Does what a line says, where names are those of the function that is looked at. True if the run goes on.
pub fn act(
    debugger: &mut Debugger,
    stop: &StopPlace<'_>,
    line: &str,
    console: &mut dyn Console,
) -> Result<bool, String> {
    let views = stop.views();
    let outer = views.get(debugger.level).map(|(from, caller)| (Look { from: *from, ..*stop.look }, *caller));
    let seen = outer.as_ref().map_or(*stop, |(look, caller)| StopPlace { look, caller: *caller, ..*stop });
    let mode = debugger.act(stop, &seen, line, console)?;
    let goes_on = mode.is_some();
    if let Some(mode) = mode {
        debugger.resume(mode);
    }
    Ok(goes_on)
}

//! Who a debugger works for: a command line, or a client of the Debug Adapter Protocol.

use super::debugger::Debugger;
use super::stop::StopPlace;
use ptoc_interp::Trap;
use std::ops::ControlFlow;

/// Why the run has stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// It has come where it was sent.
    Arrived,
    /// Somebody wants it to.
    Interrupted,
    /// Breakpoints, by number.
    Breakpoints(Vec<usize>),
    /// Watchpoints: number, what is watched, and what has changed, a line each.
    Watches(Vec<(usize, String, String)>),
    /// The run ends with an error.
    Trap(Box<Trap>),
}

impl StopReason {
    /// What is said before the place.
    pub fn heading(&self) -> String {
        match self {
            StopReason::Arrived => String::new(),
            StopReason::Interrupted => "Interrupted at ".into(),
            StopReason::Breakpoints(ids) => ids.first().map_or(String::new(), |id| format!("Breakpoint {id}, ")),
            StopReason::Watches(list) => {
                let one = |(id, text, changes): &(usize, String, String)| format!("Watchpoint {id}: {text}\n{changes}");
                list.iter().map(one).collect::<String>() + "after "
            }
            StopReason::Trap(trap) => format!("The run ends here with {}: {}\n", trap.code, trap.message),
        }
    }
}

/// Who is told where the run is, and says what comes next.
pub trait Frontend {
    /// The run stands at `stop`. What comes next is [`Debugger::mode`]; `Break` ends the run.
    fn stopped(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>, reason: &StopReason) -> ControlFlow<()>;

    /// The run passes a place where it could stop. True stops it there.
    fn passing(&mut self, debugger: &mut Debugger, stop: &StopPlace<'_>) -> ControlFlow<(), bool>;

    /// Shows text of the session.
    fn write(&mut self, text: &str);

    /// Shows text beside the results, as `print` does.
    fn note(&mut self, text: &str);
}

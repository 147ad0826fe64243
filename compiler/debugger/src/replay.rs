//! Going back: the run begins anew and stops at an earlier place.
//!
//! The interpreter is deterministic, so a place is a number: how many times the run could have stopped before. One run
//! looks for the last place that is wanted ([`Survey`]), another goes there. Nothing is recorded while a program runs
//! forwards, and a step back costs two runs up to where it began.

use super::debugger::{Debugger, ResumeMode};
use super::stop::StopPlace;
use super::touches::Stored;

/// What is looked for in the past.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// A breakpoint or watchpoint.
    Stop,
    /// A statement of the source in this launch that is not inside a function called from this frame.
    Statement(usize, u32),
    /// An instruction, or an operation on an event.
    Operation,
    /// A statement of a launch that writes one of these.
    Write(Vec<(usize, Stored)>),
}

/// A run up to a place, which notes the last place before it that is wanted.
#[derive(Clone, Debug, PartialEq)]
pub struct Survey {
    /// The place where it ends.
    pub until: u64,
    /// What is wanted.
    pub wanted: Wanted,
    /// The last so far.
    pub found: Option<u64>,
}

impl Survey {
    /// Notes the place if it is wanted.
    pub(super) fn note(&mut self, position: u64, stop: &StopPlace<'_>, hit: bool) {
        if position < self.until && self.wants(stop, hit) {
            self.found = Some(position);
        }
    }

    fn wants(&self, stop: &StopPlace<'_>, hit: bool) -> bool {
        let debug = stop.look.debug;
        match &self.wanted {
            Wanted::Stop => hit,
            Wanted::Statement(launch, frame) => {
                let begins = stop.begin.is_some();
                begins && (stop.launch != *launch || debug.is_inside(*frame, debug.frame(stop.scope())))
            }
            Wanted::Operation => !stop.after && stop.begin.is_none() && stop.point().operation().is_some(),
            Wanted::Write(list) => {
                let writes = |s: &Stored| stop.point().touches.contains(s);
                !stop.after && stop.begin.is_none() && list.iter().any(|(l, s)| *l == stop.launch && writes(s))
            }
        }
    }

    /// Where to go. If there is no such place: to the first of all; who looks for a write stays.
    fn target(&self) -> u64 {
        let none = if matches!(self.wanted, Wanted::Write(_)) { self.until } else { 1 };
        self.found.unwrap_or(none)
    }
}

impl Debugger {
    /// Ends the run, which is to begin anew and go to the last place before this one that is wanted.
    pub fn go_back(&mut self, wanted: Wanted) {
        self.rerun = Some(ResumeMode::Survey(Survey { until: self.position(), wanted, found: None }));
    }

    /// Whether the run is to begin anew: then all counts begin anew, and it may be started. Call it when the run has
    /// ended, however it did.
    pub fn begins_anew(&mut self) -> bool {
        // A survey whose place does not come back ends with the run.
        if self.rerun.is_none()
            && let ResumeMode::Survey(survey) = &self.mode
        {
            self.rerun = Some(ResumeMode::Seek(survey.target()));
        }
        let Some(mode) = self.rerun.take() else { return false };
        self.mode = mode;
        self.rewind();
        true
    }

    /// Ends a survey that has come to its place. True if it has.
    pub(super) fn end_survey(&mut self) -> bool {
        let position = self.position();
        let ResumeMode::Survey(survey) = &self.mode else { return false };
        if position < survey.until {
            return false;
        }
        self.fruitless = survey.found.is_none();
        self.rerun = Some(ResumeMode::Seek(survey.target()));
        true
    }
}

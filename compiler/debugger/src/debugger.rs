//! Where the run stops, and what is said there.

use super::breakpoints::{Breakpoint, Target};
use super::condition;
use super::frontend::{Frontend, StopReason};
use super::names::Viewpoint;
use super::replay::Survey;
use super::statements::StatementId;
use super::stop::StopPlace;
use super::values::Look;
use super::watch::Watch;
use super::watcher::DebuggedProgram;
use ptoc_diagnostics::{FileId, Span};
use ptoc_interp::{RunningKernel, Trap};
use ptoc_ir::tile::Stmt;
use std::ops::ControlFlow;

/// What the run goes on to.
#[derive(Clone, Debug, PartialEq)]
pub enum ResumeMode {
    /// The n-th next statement.
    Step(u64),
    /// The n-th next statement that is not inside a function called from this one.
    Next(u64, u32),
    /// The next statement on another line of the source; with a frame, outside of functions called from it.
    Line(FileId, u32, Option<u32>),
    /// The n-th next instruction, or operation on an event.
    Operation(u64),
    /// Out of the function with this frame.
    Finish(u32),
    /// A statement after this place in the frame, or one of the callers'.
    Until(u32, Span),
    /// This statement, or the return of the function with the frame.
    To(StatementId, u32),
    /// The n-th breakpoint or watchpoint.
    Continue(u64),
    /// The first statement of a block with these coordinates, by number of the dimension.
    Block(Vec<(usize, i64)>),
    /// The place of this number, whatever is on the way.
    Seek(u64),
    /// Nowhere: to look for an earlier place.
    Survey(Survey),
}

/// The state of a debugging session.
pub struct Debugger {
    /// Breakpoints by number.
    pub breakpoints: Vec<Breakpoint>,
    /// Watchpoints by number.
    pub watches: Vec<Watch>,
    /// What is shown at every stop, by number.
    pub displays: Vec<(usize, String)>,
    /// The number of the next of these.
    pub next_id: usize,
    /// What comes next.
    pub mode: ResumeMode,
    /// The last command on a terminal, for an empty line.
    pub last: String,
    /// How many calls outwards names are looked up, by `up` and `down`.
    pub level: usize,
    /// The line after the last that `list` has shown.
    pub listed: Option<(FileId, u32)>,
    /// There is no more input: the run goes on to its end.
    detached: bool,
    /// The user has ended the run.
    quit: bool,
    /// The launch that was announced last.
    announced: Option<usize>,
    /// A block has begun since the last stop, and in `Next` and its like that is where to stop.
    new_block: bool,
    /// Watchpoints take the values anew.
    stale: bool,
    last_point: Option<usize>,
    /// The statement at whose beginning the run has stopped just now.
    stopped_at: Option<StatementId>,
    /// How often the run could have stopped so far: equal in all runs of the same program.
    position: u64,
    /// The largest of these so far.
    furthest: u64,
    /// The run is to end and begin anew, with this.
    pub(super) rerun: Option<ResumeMode>,
    /// The last look into the past has found nothing.
    pub fruitless: bool,
}

impl Default for Debugger {
    fn default() -> Debugger {
        Debugger {
            breakpoints: Vec::new(),
            watches: Vec::new(),
            displays: Vec::new(),
            next_id: 1,
            mode: ResumeMode::Step(1),
            last: String::new(),
            level: 0,
            listed: None,
            detached: false,
            quit: false,
            announced: None,
            new_block: false,
            stale: false,
            last_point: None,
            stopped_at: None,
            position: 0,
            furthest: 0,
            rerun: None,
            fruitless: false,
        }
    }
}

impl Debugger {
    /// Whether the user has ended the run.
    pub fn has_quit(&self) -> bool {
        self.quit
    }

    /// Whether somebody still looks on: the user has neither detached nor ended the run.
    pub fn is_attached(&self) -> bool {
        !self.detached && !self.quit
    }

    /// The statement of IR that has begun last.
    pub fn last_point(&self) -> Option<usize> {
        self.last_point
    }

    /// The number of the place where the run is.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the run has been here before, and has said what it had to say.
    pub fn is_replaying(&self) -> bool {
        self.position < self.furthest
    }

    /// The run goes on.
    pub fn resume(&mut self, mode: ResumeMode) {
        self.mode = mode;
        self.new_block = false;
    }

    /// Nobody looks on any more: the run goes on to its end.
    pub fn detach(&mut self) {
        self.detached = true;
    }

    /// The line that announces a launch of a program, once.
    pub(super) fn announce(&mut self, stop: &StopPlace<'_>) -> Option<String> {
        let launches = stop.program.launches.len();
        let new = launches > 1 && self.announced != Some(stop.launch);
        self.announced = Some(stop.launch);
        let name = stop.kernel();
        new.then(|| format!("Launch {} of {launches}: {name}\n", stop.launch + 1))
    }

    /// Everything that is counted is as before the run.
    pub(super) fn rewind(&mut self) {
        self.position = 0;
        self.breakpoints.iter_mut().for_each(|b| b.hits = 0);
        self.watches.iter_mut().for_each(|w| w.hits = 0);
        (self.new_block, self.stale) = (false, false);
        (self.announced, self.last_point, self.stopped_at) = (None, None, None);
    }

    /// The run has come to another place.
    fn advance(&mut self) {
        self.furthest = self.furthest.max(self.position);
        self.position += 1;
    }

    /// A block begins.
    pub fn block(&mut self, _: &DebuggedProgram<'_>, _: usize, state: &RunningKernel<'_>) -> ControlFlow<()> {
        self.stale = true;
        self.new_block = true;
        if let ResumeMode::Block(want) = &self.mode
            && want.iter().all(|&(d, at)| state.block().get(d) == Some(&at))
        {
            self.mode = ResumeMode::Step(1);
        }
        ControlFlow::Continue(())
    }

    /// A statement is about to run.
    pub fn before(
        &mut self,
        program: &DebuggedProgram<'_>,
        launch: usize,
        point: usize,
        look: &Look<'_>,
        front: &mut dyn Frontend,
    ) -> ControlFlow<()> {
        self.last_point = Some(point);
        self.stopped_at = None;
        if self.detached {
            return ControlFlow::Continue(());
        }
        if std::mem::take(&mut self.stale) {
            self.watches.iter_mut().filter(|w| w.launch == launch).for_each(|w| w.sync(look));
        }
        let begins = &program.launches[launch].points.list[point].begins;
        for begin in begins {
            let from = Viewpoint { scope: begin.scope, at: program.statements.list[begin.statement].span };
            let look = Look { from, ..*look };
            self.at(
                &StopPlace { program, launch, point, look: &look, begin: Some(begin), after: false, caller: None },
                front,
            )?;
        }
        let stop = StopPlace { program, launch, point, look, begin: None, after: false, caller: None };
        self.at(&stop, front)
    }

    /// Stops if there is a reason to.
    fn at(&mut self, stop: &StopPlace<'_>, front: &mut dyn Frontend) -> ControlFlow<()> {
        if self.detached {
            return ControlFlow::Continue(());
        }
        self.advance();
        let wanted = front.passing(self, stop)?;
        let hit = self.hit(stop, front);
        if self.looks_back(stop, !hit.is_empty())? {
            return ControlFlow::Continue(());
        }
        let hit = if hit.is_empty() || self.is_sent() || !self.counts() { Vec::new() } else { hit };
        let arrived = self.arrived(stop);
        let reason = match hit.is_empty() {
            false => StopReason::Breakpoints(hit),
            true if arrived => StopReason::Arrived,
            true if wanted => StopReason::Interrupted,
            true => return ControlFlow::Continue(()),
        };
        self.stop(stop, &reason, front)
    }

    /// Whether the run goes to some place without stopping on its way.
    fn is_sent(&self) -> bool {
        match self.mode {
            ResumeMode::Block(_) => true,
            ResumeMode::Seek(place) => self.position < place,
            _ => false,
        }
    }

    /// Whether the run only looks for an earlier place; ends it where that is over.
    fn looks_back(&mut self, stop: &StopPlace<'_>, hit: bool) -> ControlFlow<(), bool> {
        if self.end_survey() {
            return ControlFlow::Break(());
        }
        let position = self.position;
        let ResumeMode::Survey(survey) = &mut self.mode else { return ControlFlow::Continue(false) };
        survey.note(position, stop, hit);
        ControlFlow::Continue(true)
    }

    /// The breakpoints that stop here.
    fn hit(&mut self, stop: &StopPlace<'_>, front: &mut dyn Frontend) -> Vec<usize> {
        if matches!(self.mode, ResumeMode::Block(_)) {
            return Vec::new();
        }
        let p = stop.point();
        let replaying = self.is_replaying();
        let begins = stop.begin.map(|b| b.statement);
        let again = begins.is_none() && (self.stopped_at.is_none() || self.stopped_at != p.part_of);
        let mut found = Vec::new();
        for b in &mut self.breakpoints {
            let here = match &b.target {
                Target::Statement(id) => begins == Some(*id),
                Target::Role(name) => {
                    stop.begin.is_some_and(|b| b.enters_role) && stop.role().is_some_and(|r| r == name)
                }
                // Not again where the run stands already.
                Target::Operation(name) => again && (p.operation() == Some(name) || p.alias == Some(name)),
                Target::Name(_, list) => again && list.iter().any(|(l, s)| *l == stop.launch && p.touches.contains(s)),
            };
            if !here {
                continue;
            }
            match b.condition.as_ref().map_or(Ok(true), |(_, e)| condition::holds(stop.look, e)) {
                Ok(false) => continue,
                Ok(true) => {}
                // A condition that has no value is something that its author wants to know.
                Err(_) if replaying => {}
                Err(e) => front.write(&format!("error: the condition of breakpoint {}: {e}\n", b.id)),
            }
            b.hits += 1;
            if b.hit_count.is_some_and(|count| !count.holds(b.hits)) {
                continue;
            }
            match &b.log {
                Some(_) if replaying => {}
                Some(text) => front.note(&format!("{}\n", stop.interpolated(text))),
                None => found.push(b.id),
            }
        }
        found
    }

    /// Whether this is the stop at which `continue N` ends.
    fn counts(&mut self) -> bool {
        match &mut self.mode {
            ResumeMode::Continue(n) if *n > 1 => {
                *n -= 1;
                false
            }
            _ => true,
        }
    }

    /// Whether the run has come where the last command sent it.
    fn arrived(&mut self, stop: &StopPlace<'_>) -> bool {
        let (p, debug) = (stop.point(), stop.look.debug);
        let frame = debug.frame(stop.scope());
        let Some(begun) = stop.begin.map(|b| b.statement) else {
            // The rest of the statement that has called the function.
            let position = self.position;
            return match &mut self.mode {
                ResumeMode::Finish(from) => {
                    let from = *from;
                    p.part_of.is_some() && p.begins.is_empty() && frame != from && debug.is_inside(from, frame)
                }
                ResumeMode::Operation(n) if p.operation().is_some() => {
                    *n = n.saturating_sub(1);
                    *n == 0
                }
                ResumeMode::Seek(place) => position >= *place,
                _ => false,
            };
        };
        let new_block = std::mem::take(&mut self.new_block);
        let left = |from: u32| new_block || frame != from && debug.is_inside(from, frame);
        let list = &stop.program.statements.list;
        let position = self.position;
        match &mut self.mode {
            ResumeMode::Step(n) | ResumeMode::Next(n, _) if *n == 0 => true,
            ResumeMode::Step(n) => {
                *n -= 1;
                *n == 0
            }
            ResumeMode::Next(n, from) => {
                if !(new_block || debug.is_inside(*from, frame)) {
                    return false;
                }
                *n -= 1;
                *n == 0
            }
            ResumeMode::Line(file, line, from) => {
                let elsewhere = (list[begun].span.file, list[begun].line) != (*file, *line);
                new_block || elsewhere && from.is_none_or(|from| debug.is_inside(from, frame))
            }
            ResumeMode::Finish(from) => left(*from),
            ResumeMode::Until(from, place) => {
                let at = list[begun].span;
                left(*from) || frame == *from && at.start > place.start
            }
            ResumeMode::To(id, from) => begun == *id || left(*from),
            ResumeMode::Seek(place) => position >= *place,
            ResumeMode::Operation(_) | ResumeMode::Continue(_) | ResumeMode::Block(_) | ResumeMode::Survey(_) => false,
        }
    }

    /// A statement has run.
    pub fn after(
        &mut self,
        program: &DebuggedProgram<'_>,
        launch: usize,
        point: usize,
        stmt: &Stmt,
        look: &Look<'_>,
        front: &mut dyn Frontend,
    ) -> ControlFlow<()> {
        if self.detached {
            return ControlFlow::Continue(());
        }
        self.advance();
        let changed = self.changes(launch, stmt, look, front);
        let stop = StopPlace { program, launch, point, look, begin: None, after: true, caller: None };
        if self.looks_back(&stop, !changed.is_empty())? {
            return ControlFlow::Continue(());
        }
        let arrived = matches!(self.mode, ResumeMode::Seek(place) if self.position >= place);
        let changed = if changed.is_empty() || self.is_sent() || !self.counts() { Vec::new() } else { changed };
        match (changed.is_empty(), arrived) {
            (false, _) => self.stop(&stop, &StopReason::Watches(changed), front),
            (true, true) => self.stop(&stop, &StopReason::Arrived, front),
            (true, false) => ControlFlow::Continue(()),
        }
    }

    /// The watchpoints that a statement has changed, as far as it counts.
    fn changes(
        &mut self,
        launch: usize,
        stmt: &Stmt,
        look: &Look<'_>,
        front: &mut dyn Frontend,
    ) -> Vec<(usize, String, String)> {
        let replaying = self.is_replaying();
        let mut changed = Vec::new();
        for w in self.watches.iter_mut().filter(|w| w.launch == launch) {
            let Some(changes) = w.changes(look, stmt) else { continue };
            match w.condition.as_ref().map_or(Ok(true), |(_, e)| condition::holds(look, e)) {
                Ok(false) => continue,
                Err(e) if !replaying => front.write(&format!("error: the condition of watchpoint {}: {e}\n", w.id)),
                Ok(true) | Err(_) => {}
            }
            w.hits += 1;
            if w.hit_count.is_none_or(|count| count.holds(w.hits)) {
                changed.push((w.id, w.text.clone(), changes));
            }
        }
        changed
    }

    /// Watches something from the next statement on.
    pub fn watch_anew(&mut self, watch: Watch) {
        self.watches.push(watch);
        self.stale = true;
    }

    /// The run has ended with an error.
    pub fn trapped(
        &mut self,
        program: &DebuggedProgram<'_>,
        launch: usize,
        point: usize,
        trap: &Trap,
        look: &Look<'_>,
        front: &mut dyn Frontend,
    ) {
        if self.detached {
            return;
        }
        self.advance();
        if self.end_survey() {
            return;
        }
        let stop = StopPlace { program, launch, point, look, begin: None, after: false, caller: None };
        // Whatever is typed, there is nothing to go on to.
        let _ = self.stop(&stop, &StopReason::Trap(Box::new(trap.clone())), front);
        self.quit = false;
    }

    /// Says where the run is, and learns what comes next.
    fn stop(&mut self, stop: &StopPlace<'_>, reason: &StopReason, front: &mut dyn Frontend) -> ControlFlow<()> {
        self.stopped_at = stop.begin.map(|b| b.statement);
        self.listed = None;
        self.level = 0;
        self.furthest = self.furthest.max(self.position);
        front.stopped(self, stop, reason)?;
        if self.rerun.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    /// Ends the run.
    pub fn end(&mut self) {
        self.quit = true;
    }
}

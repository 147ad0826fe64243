//! Where the run stops, and what is said there.

use super::Console;
use super::breakpoints::{Breakpoint, Target};
use super::condition;
use super::names::Viewpoint;
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
        console: &mut dyn Console,
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
                console,
            )?;
        }
        let stop = StopPlace { program, launch, point, look, begin: None, after: false, caller: None };
        self.at(&stop, console)
    }

    /// Stops if there is a reason to.
    fn at(&mut self, stop: &StopPlace<'_>, console: &mut dyn Console) -> ControlFlow<()> {
        if self.detached {
            return ControlFlow::Continue(());
        }
        let hit = self.hit(stop, console);
        let arrived = self.arrived(stop);
        match (hit, arrived) {
            (Some(reason), _) => self.stop(stop, &reason, console),
            (None, true) => self.stop(stop, "", console),
            (None, false) => ControlFlow::Continue(()),
        }
    }

    /// The breakpoint that stops here, in words.
    fn hit(&mut self, stop: &StopPlace<'_>, console: &mut dyn Console) -> Option<String> {
        if matches!(self.mode, ResumeMode::Block(_)) {
            return None;
        }
        let p = stop.point();
        let begins = stop.begin.map(|b| b.statement);
        let again = begins.is_none() && (self.stopped_at.is_none() || self.stopped_at != p.part_of);
        let mut reason = None;
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
                Err(e) => console.write(&format!("error: the condition of breakpoint {}: {e}\n", b.id)),
            }
            b.hits += 1;
            reason.get_or_insert_with(|| format!("Breakpoint {}, ", b.id));
        }
        reason.filter(|_| self.counts())
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
            return match self.mode {
                ResumeMode::Finish(from) => {
                    p.part_of.is_some() && p.begins.is_empty() && frame != from && debug.is_inside(from, frame)
                }
                _ => false,
            };
        };
        let new_block = std::mem::take(&mut self.new_block);
        let left = |from: u32| new_block || frame != from && debug.is_inside(from, frame);
        let list = &stop.program.statements.list;
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
            ResumeMode::Finish(from) => left(*from),
            ResumeMode::Until(from, place) => {
                let at = list[begun].span;
                left(*from) || frame == *from && at.start > place.start
            }
            ResumeMode::To(id, from) => begun == *id || left(*from),
            ResumeMode::Continue(_) | ResumeMode::Block(_) => false,
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
        console: &mut dyn Console,
    ) -> ControlFlow<()> {
        if self.detached {
            return ControlFlow::Continue(());
        }
        let mut reason = String::new();
        for w in self.watches.iter_mut().filter(|w| w.launch == launch) {
            if let Some(changes) = w.changes(look, stmt) {
                reason.push_str(&format!("Watchpoint {}: {}\n{changes}", w.id, w.text));
            }
        }
        if reason.is_empty() || matches!(self.mode, ResumeMode::Block(_)) || !self.counts() {
            return ControlFlow::Continue(());
        }
        let stop = StopPlace { program, launch, point, look, begin: None, after: true, caller: None };
        self.stop(&stop, &format!("{reason}after "), console)
    }

    /// The run has ended with an error.
    pub fn trapped(
        &mut self,
        program: &DebuggedProgram<'_>,
        launch: usize,
        point: usize,
        trap: &Trap,
        look: &Look<'_>,
        console: &mut dyn Console,
    ) {
        if !self.detached {
            let stop = StopPlace { program, launch, point, look, begin: None, after: false, caller: None };
            let reason = format!("The run ends here with {}: {}\n", trap.code, trap.message);
            // Whatever is typed, there is nothing to go on to.
            let _ = self.stop(&stop, &reason, console);
            self.quit = false;
        }
    }

    /// Says where the run is and takes commands until one of them goes on.
    fn stop(&mut self, stop: &StopPlace<'_>, reason: &str, console: &mut dyn Console) -> ControlFlow<()> {
        let launches = stop.program.launches.len();
        if launches > 1 && self.announced != Some(stop.launch) {
            let name = &stop.program.launches[stop.launch].step.kernel.name;
            console.write(&format!("Launch {} of {launches}: {name}\n", stop.launch + 1));
        }
        self.announced = Some(stop.launch);
        self.stopped_at = stop.begin.map(|b| b.statement);
        self.listed = None;
        self.level = 0;
        console.write(&stop.header(reason));
        console.write(&self.displayed(stop));
        loop {
            let Some(line) = console.read("(ptoc) ") else {
                if console.is_terminal() {
                    console.write("\n");
                }
                self.detached = true;
                return ControlFlow::Continue(());
            };
            let mut line = line.trim();
            let again = self.last.clone();
            if line.is_empty() && console.is_terminal() {
                line = &again;
            }
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            self.last = line.to_owned();
            let views = stop.views();
            let outer = views.get(self.level).map(|(from, caller)| (Look { from: *from, ..*stop.look }, *caller));
            let seen = outer.as_ref().map_or(*stop, |(look, caller)| StopPlace { look, caller: *caller, ..*stop });
            match self.act(stop, &seen, line, console) {
                Ok(Some(mode)) => {
                    self.mode = mode;
                    self.new_block = false;
                    return ControlFlow::Continue(());
                }
                Ok(None) if self.quit => return ControlFlow::Break(()),
                Ok(None) => {}
                Err(message) => console.write(&format!("error: {message}\n")),
            }
        }
    }

    /// Ends the run.
    pub fn end(&mut self) {
        self.quit = true;
    }
}

//! The observer of a launch: keeps what the interpreter does not (valid shapes), and tells the debugger and those who
//! print.

use super::debugger::Debugger;
use super::events::Events;
use super::frontend::Frontend;
use super::names::Viewpoint;
use super::points::{Point, Points};
use super::print_tile::Prints;
use super::statements::Statements;
use super::values::{Look, Shapes};
use ptoc_analysis::debug::NameMeaning;
use ptoc_diagnostics::{FileId, SourceMap, Span};
use ptoc_driver::launch::{Observers, Plan, PlannedLaunch};
use ptoc_interp::{Observer, RunningKernel, Trap};
use ptoc_ir::tile::{AddrKind, Op, Region, Stmt, Tile, Value};
use ptoc_isa::Target;
use ptoc_names::Modules;
use ptoc_placement::access::{AccessMode, regions, tile_accesses};
use ptoc_placement::physical;
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;

/// A launch of the program that is debugged.
pub struct DebuggedLaunch<'p> {
    /// The kernel and its debug information.
    pub step: &'p PlannedLaunch,
    /// Its statements.
    pub points: Points,
    /// Indices of loops.
    pub loops: HashSet<Value>,
    /// Addresses that the placement gives, copy by copy.
    pub addresses: HashMap<Tile, Vec<u64>>,
}

/// All that does not change while the program runs.
pub struct DebuggedProgram<'p> {
    /// The sources, under the same numbers as in the session.
    pub sources: SourceMap,
    /// The file that was named.
    pub file: FileId,
    /// Statements of the source.
    pub statements: Statements,
    /// Launches in order.
    pub launches: Vec<DebuggedLaunch<'p>>,
}

impl<'p> DebuggedProgram<'p> {
    /// Prepares a plan for observation; it must stay where it is.
    pub fn new(
        plan: &'p Plan,
        modules: &Modules,
        file: FileId,
        sources: &SourceMap,
        target: &Target,
    ) -> DebuggedProgram<'p> {
        let mut own = SourceMap::new();
        for file in sources.files() {
            own.add(sources.name(file), sources.text(file));
        }
        let statements = Statements::new(modules, &own);
        let launches = plan.steps.iter().map(|step| {
            let mut loops = HashSet::new();
            indices(&step.kernel.body, &mut loops);
            let tiles = physical(&step.kernel, &step.placement, target).tiles;
            let addresses = tiles.into_iter().filter_map(|(tile, data)| match data.addr {
                AddrKind::Fixed(all) => Some((tile, all)),
                _ => None,
            });
            let points = Points::new(&step.kernel, &step.debug, &statements);
            DebuggedLaunch { step, points, loops, addresses: addresses.collect() }
        });
        let launches = launches.collect();
        DebuggedProgram { sources: own, file, statements, launches }
    }

    /// The place of a statement as people write it: `gemm.tile:57`.
    pub fn place(&self, span: Span) -> String {
        format!("{}:{}", self.sources.name(span.file), self.sources.range(span).0.line)
    }

    /// The statement that a point is a part of.
    pub fn span(&self, point: &Point) -> Option<Span> {
        point.part_of.map(|id| self.statements.list[id].span)
    }

    /// The role that issues a statement of IR.
    pub fn role(&self, launch: usize, point: usize) -> Option<&str> {
        let launch = &self.launches[launch];
        launch.points.list[point].role.map(|r| launch.step.kernel.roles[r].name.as_str())
    }

    /// The variables of the loops around a scope, outermost first, as `k=1`.
    pub fn loop_variables(&self, launch: usize, look: &Look<'_>) -> Vec<String> {
        let launch = &self.launches[launch];
        let debug = &launch.step.debug;
        let (mut found, mut scope) = (Vec::new(), look.from.scope);
        while scope != 0 {
            for named in debug.scopes[scope as usize].names.iter().rev() {
                let index = match &named.what {
                    NameMeaning::Scalar(v) => *v,
                    NameMeaning::Block(b) => match b.place {
                        Some([index, ..]) => index,
                        None => continue,
                    },
                    _ => continue,
                };
                // The name of the loop itself, not a copy of it.
                let own = look.state.kernel().values[index].span == named.span;
                if launch.loops.contains(&index) && own {
                    found.push(format!("{}={}", named.name, look.index(index)));
                }
            }
            scope = debug.scopes[scope as usize].parent;
        }
        found.reverse();
        found
    }

    /// `i=0 j=1`; empty for a kernel of one block.
    pub fn block(&self, state: &RunningKernel<'_>) -> String {
        let dims = state.kernel().grid.iter().zip(state.block());
        dims.map(|(d, at)| format!("{}={at}", d.name)).collect::<Vec<_>>().join(" ")
    }
}

fn indices(region: &Region, out: &mut HashSet<Value>) {
    fn walk(region: &[Stmt], out: &mut HashSet<Value>) {
        for stmt in region {
            if let Op::For(f) = &stmt.op {
                out.insert(f.index);
            }
            regions(&stmt.op).into_iter().for_each(|r| walk(r, out));
        }
    }
    walk(region, out);
}

/// Who looks on, launch after launch.
pub struct Onlookers<'w, 'p> {
    /// All launches.
    pub program: &'w DebuggedProgram<'p>,
    /// Stops, if somebody debugs.
    pub debugger: Option<&'w mut Debugger>,
    /// Who is told.
    pub front: &'w mut dyn Frontend,
    /// Prints.
    pub prints: &'w mut Prints,
}

impl Observers for Onlookers<'_, '_> {
    fn of_launch(&mut self, launch: usize) -> Box<dyn Observer + '_> {
        Box::new(Watcher {
            program: self.program,
            launch,
            debugger: self.debugger.as_deref_mut(),
            front: &mut *self.front,
            prints: &mut *self.prints,
            shapes: Shapes::default(),
            events: Events::default(),
        })
    }
}

/// The observer of one launch.
pub struct Watcher<'w, 'p> {
    /// All launches.
    pub program: &'w DebuggedProgram<'p>,
    /// Which of them runs.
    pub launch: usize,
    /// Stops, if somebody debugs.
    pub debugger: Option<&'w mut Debugger>,
    /// Who is told.
    pub front: &'w mut dyn Frontend,
    /// Prints.
    pub prints: &'w mut Prints,
    /// Valid shapes.
    pub shapes: Shapes,
    /// Flags and barriers.
    pub events: Events,
}

impl Watcher<'_, '_> {
    fn update(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) {
        let kernel = state.kernel();
        match &stmt.op {
            Op::Alloc { tile } => {
                self.shapes.valid.retain(|(t, _), _| t != tile);
                self.shapes.begun.insert(*tile);
            }
            // One element says nothing of the shape.
            Op::TileSet { .. } => {}
            _ => {
                for (access, t) in tile_accesses(kernel, stmt) {
                    let ty = &kernel.tiles[t.tile].ty;
                    let whole = t.origin.is_none() && (t.rows, t.cols) == (ty.rows, ty.cols);
                    let element = t.element.map_or(Ok(0), |v| usize::try_from(state.value(v) as i64));
                    if let (AccessMode::Write, true, Ok(element)) = (access, whole, element) {
                        let valid = (state.value(t.valid.0) as i64, state.value(t.valid.1) as i64);
                        self.shapes.valid.insert((t.tile, element), valid);
                    }
                }
            }
        }
    }

    /// The view from a point: before it, or with `after` when its statement is over.
    fn look<'l>(
        program: &'l DebuggedProgram<'_>,
        launch: usize,
        (shapes, events): (&'l Shapes, &'l Events),
        state: RunningKernel<'l>,
        point: usize,
        after: bool,
    ) -> Look<'l> {
        let step = program.launches[launch].step;
        let p = &program.launches[launch].points.list[point];
        let span = program.span(p).unwrap_or_default();
        let at = if after { span.after() } else { span };
        let from = Viewpoint { scope: p.scope, at };
        let addresses = &program.launches[launch].addresses;
        Look { state, debug: &step.debug, addresses, shapes, events, from }
    }
}

impl Observer for Watcher<'_, '_> {
    fn block(&mut self, state: &RunningKernel<'_>) -> ControlFlow<()> {
        self.shapes = Shapes::default();
        self.events.begin();
        match &mut self.debugger {
            Some(debugger) => debugger.block(self.program, self.launch, state),
            None => ControlFlow::Continue(()),
        }
    }

    fn before(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()> {
        let (Some(debugger), Some(point)) = (&mut self.debugger, self.program.launches[self.launch].points.find(stmt))
        else {
            return ControlFlow::Continue(());
        };
        let look = Self::look(self.program, self.launch, (&self.shapes, &self.events), *state, point, false);
        debugger.before(self.program, self.launch, point, &look, self.front)
    }

    fn after(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()> {
        self.update(state, stmt);
        self.events.after(state, stmt);
        let Some(point) = self.program.launches[self.launch].points.find(stmt) else {
            return ControlFlow::Continue(());
        };
        let look = Self::look(self.program, self.launch, (&self.shapes, &self.events), *state, point, true);
        self.prints.after(self.program, self.launch, point, &look);
        let text = self.prints.take();
        let said = self.debugger.as_ref().is_some_and(|d| d.is_replaying());
        if !text.is_empty() && !said {
            self.front.note(&text);
        }
        match &mut self.debugger {
            Some(debugger) => debugger.after(self.program, self.launch, point, stmt, &look, self.front),
            None => ControlFlow::Continue(()),
        }
    }

    fn trapped(&mut self, state: &RunningKernel<'_>, trap: &Trap) {
        if let Some(debugger) = &mut self.debugger
            && let Some(point) = debugger.last_point()
        {
            let look = Self::look(self.program, self.launch, (&self.shapes, &self.events), *state, point, false);
            debugger.trapped(self.program, self.launch, point, trap, &look, self.front);
        }
    }
}

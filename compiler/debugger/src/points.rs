//! What a statement of tile IR is in the source: its scope, and whether a statement of the source begins or ends with
//! it.
//!
//! Elaboration moves pure scalar code out of loops and shares equal expressions, so IR does not follow the text. Here a
//! statement of the source is a run of IR statements of one scope whose spans lie in it; code that was moved belongs to
//! none.

use super::statements::{StatementId, Statements};
use super::touches::{Stored, alias, run, touches};
use ptoc_analysis::debug::DebugInfo;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Kernel, Op, RoleId, Stmt, Tile, Trail};
use ptoc_isa::Pipe;
use ptoc_placement::access::{regions, tile_accesses};
use std::collections::{HashMap, HashSet, VecDeque};

/// A statement of the source, once for each time that it was translated.
#[derive(Clone, Debug)]
pub struct Begin {
    /// Which.
    pub statement: StatementId,
    /// Its scope.
    pub scope: u32,
    /// What it is made of, in order.
    pub runs: Vec<StatementPart>,
    /// The first statement in the block of a role.
    pub enters_role: bool,
}

/// A part of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum StatementPart {
    /// An instruction, and the pipe that carries it out.
    Instruction(&'static str, Option<Pipe>),
    /// An operation on an event, and the pipe that carries it out.
    Order(&'static str, Option<Pipe>),
    /// A call of a function.
    Call(String),
}

/// A statement of IR.
#[derive(Clone, Debug, Default)]
pub struct Point {
    /// Its scope, by number in [`DebugInfo::scopes`].
    pub scope: u32,
    /// The statements of the source that begin with it: one that calls a function before those of the function.
    pub begins: Vec<Begin>,
    /// The statement of the source that it is a part of.
    pub part_of: Option<StatementId>,
    /// The statements of the source that end with it, each with its scope.
    pub ends: Vec<(StatementId, u32)>,
    /// What it does on a pipe, if it does.
    pub run: Option<StatementPart>,
    /// PTO's name of the operation on an event.
    pub alias: Option<&'static str>,
    /// Who issues it; `None` is the kernel itself.
    pub role: Option<RoleId>,
    /// What it writes, and the event that it is about.
    pub touches: Vec<Stored>,
    /// The last point in it.
    last: usize,
}

/// All statements of a kernel's body.
#[derive(Debug, Default)]
pub struct Points {
    /// In program order, those around others first.
    pub list: Vec<Point>,
    by_address: HashMap<usize, usize>,
    /// The last point at which a tile is of use.
    last_use: HashMap<Tile, usize>,
    /// The scope that declares a tile.
    homes: HashMap<Tile, u32>,
}

fn address(stmt: &Stmt) -> usize {
    std::ptr::from_ref(stmt).addr()
}

/// Scopes of spans that are not used up, in order.
type Queues = HashMap<Span, VecDeque<u32>>;

impl Point {
    /// The PTO instruction that it is, or the word of the operation on an event.
    pub fn operation(&self) -> Option<&'static str> {
        match self.run.as_ref()? {
            StatementPart::Instruction(name, _) | StatementPart::Order(name, _) => Some(name),
            StatementPart::Call(_) => None,
        }
    }
}

impl Points {
    /// `kernel` must not move as long as its statements are looked up.
    pub fn new(kernel: &Kernel, debug: &DebugInfo, statements: &Statements) -> Points {
        let mut queues = Queues::new();
        for &(span, scope) in &debug.trail.statements {
            queues.entry(span).or_default().push_back(scope);
        }
        let mut scopes = HashMap::new();
        note_scopes(&kernel.body, debug, &mut queues, &mut scopes);
        let mut walk = PointCollector {
            kernel,
            debug,
            statements,
            scopes,
            out: Points::default(),
            known: HashMap::new(),
            role: (None, false),
            open: Vec::new(),
            base: 0,
            loops: Vec::new(),
            alloc_depth: HashMap::new(),
            called: HashSet::from([0]),
            uses: Vec::new(),
        };
        walk.region(&kernel.body);
        let (uses, alloc_depth, mut out) = (walk.uses, walk.alloc_depth, walk.out);
        for (tile, at, loops) in uses {
            // The next iteration of a loop may read a tile that is declared outside of it.
            let outside = loops.get(alloc_depth.get(&tile).copied().unwrap_or(0));
            let until = outside.map_or(at, |&l: &usize| out.list[l].last);
            let last = out.last_use.entry(tile).or_default();
            *last = (*last).max(until);
        }
        out
    }

    /// The point of a statement of the kernel.
    pub fn find(&self, stmt: &Stmt) -> Option<usize> {
        self.by_address.get(&address(stmt)).copied()
    }

    /// Whether what the tile holds will be used at this point or after it.
    pub fn is_of_use(&self, tile: Tile, point: usize) -> bool {
        self.last_use.get(&tile).is_some_and(|&last| point <= last)
    }

    /// The scope that declares the tile.
    pub fn home(&self, tile: Tile) -> u32 {
        self.homes.get(&tile).copied().unwrap_or(0)
    }

    /// Whether a statement of IR begins this statement.
    pub fn has(&self, id: StatementId) -> bool {
        self.list.iter().flat_map(|p| &p.begins).any(|b| b.statement == id)
    }
}

/// Scopes by address. Regions come before what they are in: that is the order of the trail.
fn note_scopes(region: &[Stmt], debug: &DebugInfo, queues: &mut Queues, out: &mut HashMap<usize, u32>) {
    for stmt in region {
        for inner in regions(&stmt.op) {
            note_scopes(inner, debug, queues, out);
        }
        let scope = match &stmt.op {
            op if Trail::lists(op) => queues.get_mut(&stmt.span).and_then(VecDeque::pop_front),
            op => op.def().and_then(|v| debug.trail.values.get(v).copied()),
        };
        // A pass may have added it.
        if let Some(scope) = scope.filter(|&s| (s as usize) < debug.scopes.len()) {
            out.insert(address(stmt), scope);
        }
    }
}

/// A statement of the source that has begun, in its scope.
#[derive(Clone, Copy)]
struct Open {
    scope: u32,
    statement: StatementId,
    /// The point where it began, its place among those that did there, and the last point so far.
    begin: (usize, usize),
    last: usize,
}

struct PointCollector<'a> {
    kernel: &'a Kernel,
    debug: &'a DebugInfo,
    statements: &'a Statements,
    scopes: HashMap<usize, u32>,
    out: Points,
    known: HashMap<Span, Option<StatementId>>,
    /// The role whose block it is, and whether none of its statements has begun.
    role: (Option<RoleId>, bool),
    /// Innermost last; each in a scope inside that of the one before.
    open: Vec<Open>,
    /// How many of them are around the innermost region.
    base: usize,
    /// Points of the loops around.
    loops: Vec<usize>,
    alloc_depth: HashMap<Tile, usize>,
    /// Frames of functions whose calls are noted.
    called: HashSet<u32>,
    uses: Vec<(Tile, usize, Vec<usize>)>,
}

impl PointCollector<'_> {
    fn statement(&mut self, span: Span) -> Option<StatementId> {
        *self.known.entry(span).or_insert_with(|| self.statements.innermost(span))
    }

    fn region(&mut self, region: &[Stmt]) {
        let outer = self.open.clone();
        let base = std::mem::replace(&mut self.base, outer.len());
        for stmt in region {
            self.stmt(stmt, region);
        }
        self.close_to(outer.len());
        (self.open, self.base) = (outer, base);
    }

    fn stmt(&mut self, stmt: &Stmt, region: &[Stmt]) {
        let at = self.out.list.len();
        let inherited = self.open.last().map_or(0, |o| o.scope);
        let mut scope = self.scopes.get(&address(stmt)).copied().unwrap_or(inherited);
        let statement = self.statement(stmt.span);
        if let Some(id) = statement {
            scope = self.own_scope(scope, id);
        }
        let run = run(self.kernel, stmt);
        let (role, alias) = (self.role.0, alias(self.kernel, stmt));
        let touches = touches(self.kernel, stmt);
        self.out.by_address.insert(address(stmt), at);
        self.out.list.push(Point { scope, run: run.clone(), alias, role, touches, last: at, ..Point::default() });
        if let Some(id) = statement.filter(|&id| !self.is_moved(stmt, scope, id, region)) {
            self.out.list[at].part_of = Some(id);
            // A check may stand before what it is for.
            if !matches!(stmt.op, Op::Check { .. }) {
                self.enter(at, scope, id);
                self.note_run(run);
            }
        }
        if let Op::Alloc { tile } = stmt.op {
            self.alloc_depth.insert(tile, self.loops.len());
            self.out.homes.insert(tile, scope);
        }
        for (_, t) in tile_accesses(self.kernel, stmt) {
            self.uses.push((t.tile, at, self.loops.clone()));
        }
        self.inner(stmt, at);
        self.out.list[at].last = self.out.list.len() - 1;
    }

    fn inner(&mut self, stmt: &Stmt, at: usize) {
        let is_loop = matches!(stmt.op, Op::For(_) | Op::While(_));
        if is_loop {
            self.loops.push(at);
        }
        let outer = self.role;
        if let Op::Scope(scope) = &stmt.op
            && scope.role.is_some()
        {
            self.role = (scope.role, true);
        }
        for region in regions(&stmt.op) {
            self.region(region);
        }
        if self.role.0 != outer.0 {
            self.role = outer;
        }
        // The condition is what a `while` does first, and does again in every iteration.
        if matches!(&stmt.op, Op::While(w) if !w.head.is_empty())
            && let Some(first) = self.out.list.get(at + 1)
            && first.part_of == self.out.list[at].part_of
        {
            let begins = std::mem::take(&mut self.out.list[at].begins);
            self.out.list[at + 1].begins.splice(0..0, begins);
        }
        if is_loop {
            self.loops.pop();
        }
    }

    /// Whether it is scalar code that stands before the loop or branch in which the text has it.
    fn is_moved(&mut self, stmt: &Stmt, scope: u32, id: StatementId, region: &[Stmt]) -> bool {
        let pure = matches!(
            stmt.op,
            Op::Unary { .. }
                | Op::Binary { .. }
                | Op::Compare { .. }
                | Op::Select { .. }
                | Op::Convert { .. }
                | Op::Bitcast { .. }
                | Op::Const { .. }
        );
        if !pure {
            return false;
        }
        let compounds = region.iter().filter(|s| !regions(&s.op).is_empty());
        for compound in compounds {
            let Some(&home) = self.scopes.get(&address(compound)) else { continue };
            // Both as places in the text of the function that the compound statement is in.
            let Some(at) = place_in(self.debug, self.debug.frame(home), scope, stmt.span) else { continue };
            let same = at == stmt.span;
            let inner = if same { Some(id) } else { self.statement(at) };
            let outer = self.statement(compound.span);
            if compound.span.contains(at) && inner != outer {
                return true;
            }
        }
        false
    }

    fn enter(&mut self, at: usize, scope: u32, id: StatementId) {
        let around = |o: &Open| self.debug.is_inside(scope, o.scope);
        let keep = self.open.iter().rposition(around).map_or(0, |k| k + 1).max(self.base);
        self.close_to(keep);
        // The calls that lead here, outermost first.
        let mut calls = Vec::new();
        let mut frame = self.debug.frame(scope);
        while let Some((_, span)) = &self.debug.scopes[frame as usize].call {
            let parent = self.debug.scopes[frame as usize].parent;
            if let Some(caller) = self.statement(*span) {
                calls.push((self.own_scope(parent, caller), caller));
            }
            frame = self.debug.frame(parent);
        }
        for (scope, caller) in calls.into_iter().rev() {
            self.open(at, scope, caller);
        }
        self.open(at, scope, id);
        if let Some(top) = self.open.last_mut() {
            top.last = at;
        }
    }

    /// Begins a statement, unless it has begun.
    fn open(&mut self, at: usize, scope: u32, statement: StatementId) {
        let frame = self.debug.frame(scope);
        let same = |o: &Open| o.statement == statement && self.debug.frame(o.scope) == frame;
        if self.open.iter().any(same) {
            return;
        }
        if self.open.len() > self.base && self.open.last().is_some_and(|top| top.scope == scope) {
            self.close_to(self.open.len() - 1);
        }
        if let Some(top) = self.open.last()
            && self.called.insert(frame)
            && let Some((function, _)) = &self.debug.scopes[frame as usize].call
        {
            let (point, n) = top.begin;
            if let Some(begin) = self.out.list[point].begins.get_mut(n) {
                begin.runs.push(StatementPart::Call(function.to_string()));
            }
        }
        let begins = &mut self.out.list[at].begins;
        let enters_role = std::mem::take(&mut self.role.1);
        begins.push(Begin { statement, scope, runs: Vec::new(), enters_role });
        let begin = (at, begins.len() - 1);
        self.open.push(Open { scope, statement, begin, last: at });
    }

    fn note_run(&mut self, run: Option<StatementPart>) {
        if let (Some(run), Some(top)) = (run, self.open.last())
            && let Some(begin) = self.out.list[top.begin.0].begins.get_mut(top.begin.1)
        {
            begin.runs.push(run);
        }
    }

    /// What binds the arguments of a call is done in the function's scope, and belongs to the caller's statement.
    fn own_scope(&self, mut scope: u32, statement: StatementId) -> u32 {
        let item = &self.statements.items[self.statements.list[statement].item].name;
        loop {
            let entered = &self.debug.scopes[self.debug.frame(scope) as usize];
            match &entered.call {
                Some((function, _)) if function != item => scope = entered.parent,
                _ => return scope,
            }
        }
    }

    /// Ends the statements beyond the first `keep`.
    fn close_to(&mut self, keep: usize) {
        while self.open.len() > keep {
            let Some(closed) = self.open.pop() else { return };
            self.out.list[closed.last].ends.push((closed.statement, closed.scope));
            // What a call has run belongs to the statement that calls.
            if let Some(top) = self.open.last_mut() {
                top.last = closed.last;
            }
        }
    }
}

/// Where `span`, which belongs to `scope`, lies in the function whose frame is `frame`: itself, or the call that leads
/// to it.
fn place_in(debug: &DebugInfo, frame: u32, scope: u32, span: Span) -> Option<Span> {
    let (mut scope, mut span) = (scope, span);
    loop {
        let own = debug.frame(scope);
        if own == frame {
            return Some(span);
        }
        let entered = &debug.scopes[own as usize];
        span = entered.call.as_ref()?.1;
        scope = entered.parent;
    }
}

//! Definite initialisation of tiles and scratch tensors, as whole objects, through structured control flow.
//!
//! * A read that is certainly of something unwritten is an error (E0501).
//! * A read of what a loop has written if it ran at all gets a run-time check of the trip count (PA-1041): `K = 0`
//!   leaves an accumulator unwritten, and that is a matter of the launch.
//! * What cannot be decided is a warning (E0502), and runs of the kernel are watched: the launch ends if it happens.
//!
//! Loops are analysed as a first and a later iteration, so `if k.first { TMATMUL } else { TMATMUL_ACC }` is
//! understood: a condition that compares the index with the lower bound is known in each of them.

mod carried;
mod flow;
mod state;

use cranelift_entity::{EntityRef, SecondaryMap};
use flow::{InitAnalysis, IterationClass, Visit};
use ptoc_diagnostics::{Analysis, Budget, Diagnostic, Span, codes};
use ptoc_ir::tile::{
    CheckData, Dim, EventData, Kernel, Op, Operand, Purpose, Region, Stmt, SyncMode, TensorDir, TensorId, Tile, Ty,
    Value, ValueData,
};
use ptoc_isa::{CmpOp, Loc};
use ptoc_placement::access::{AccessedStorage, regions};
use ptoc_placement::liveness::Point;
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use state::S;
use std::collections::BTreeMap;

/// What can be unwritten: tiles, then scratch tensors.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
enum Object {
    Tile(Tile),
    Scratch(TensorId),
}

impl Object {
    fn of(place: &AccessedStorage) -> Object {
        match place {
            AccessedStorage::Tile(t) => Object::Tile(t.tile),
            AccessedStorage::Scratch(t) => Object::Scratch(*t),
        }
    }

    fn index(self, kernel: &Kernel) -> usize {
        match self {
            Object::Tile(t) => t.index(),
            Object::Scratch(t) => kernel.tiles.len() + t.index(),
        }
    }

    fn describe(self, kernel: &Kernel) -> (String, Span) {
        match self {
            Object::Tile(t) => {
                let data = &kernel.tiles[t];
                let what = match kind(kernel, t) {
                    _ if data.hidden => "hidden tile",
                    TileKind::Ring => "a slot of ring",
                    TileKind::Array => "an element of",
                    TileKind::One => "tile",
                };
                (format!("{what} `{}`", data.name), data.span)
            }
            Object::Scratch(t) => {
                let data = &kernel.tensors[t];
                (format!("the space for `{}` in global memory", data.name), data.span)
            }
        }
    }
}

/// What a tile is to its author.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum TileKind {
    /// A tile that is written as a whole.
    One,
    /// An array, whose elements get values one by one.
    Array,
    /// The slots of a ring, which get values between `acquire` and `commit`.
    Ring,
}

/// What `tile` is to its author.
pub fn kind(kernel: &Kernel, tile: Tile) -> TileKind {
    let data = &kernel.tiles[tile];
    let is_ring = |e: &EventData| e.purpose == Purpose::RingFull && (&e.name, e.span) == (&data.name, data.span);
    match kernel.events.values().any(is_ring) {
        true => TileKind::Ring,
        false if data.count > 1 => TileKind::Array,
        false => TileKind::One,
    }
}

/// Facts about the kernel that the analysis looks up.
struct Facts {
    /// Comparisons by the value that they define.
    compares: SecondaryMap<Value, Option<(CmpOp, Value, Value)>>,
    /// Negated conditions.
    nots: SecondaryMap<Value, Option<Value>>,
    /// Known `index` constants.
    consts: SecondaryMap<Value, Option<i64>>,
    /// Operands of pure operations, to find the dimensions behind a bound.
    operands: SecondaryMap<Value, Vec<Value>>,
}

impl Facts {
    fn new(kernel: &Kernel) -> Facts {
        let mut facts = Facts {
            compares: SecondaryMap::new(),
            nots: SecondaryMap::new(),
            consts: SecondaryMap::new(),
            operands: SecondaryMap::new(),
        };
        facts.collect(&kernel.prologue);
        facts.collect(&kernel.body);
        facts
    }

    fn collect(&mut self, region: &Region) {
        for stmt in region {
            if let Some(dst) = stmt.op.def() {
                stmt.op.for_each_use(&mut |v| self.operands[dst].push(v));
            }
            match &stmt.op {
                Op::Compare { dst, op, a, b } => self.compares[*dst] = Some((*op, *a, *b)),
                Op::Unary { dst, op: ptoc_isa::UnOp::Not, a } => self.nots[*dst] = Some(*a),
                Op::Const { dst, value } => self.consts[*dst] = value.as_index(),
                _ => {}
            }
            for region in stmt.op.regions() {
                self.collect(region);
            }
        }
    }
}

/// Everything that was seen at one read.
struct Site {
    span: Span,
    visits: Vec<Visit>,
}

/// Checks `kernel` and inserts the run-time checks that it needs. Errors and warnings.
pub fn check(kernel: &mut Kernel) -> Vec<Diagnostic> {
    check_within(kernel, &Budget::default())
}

/// As [`check`]. Always decided, one way or the other: with fewer steps of `budget`, more reads are only perhaps of
/// something written.
pub fn check_within(kernel: &mut Kernel, budget: &Budget) -> Vec<Diagnostic> {
    let facts = Facts::new(kernel);
    let points = number(&kernel.body);
    let mut flow = InitAnalysis::new(kernel, &facts, budget.account(Analysis::Initialisation));
    flow.run();
    let (visits, loops) = (flow.visits, flow.loops);

    let mut sites: BTreeMap<(Point, Object), Site> = BTreeMap::new();
    for ((stmt, object), (span, seen)) in visits {
        sites.insert((points[&stmt], object), Site { span, visits: seen });
    }
    let mut diagnostics = Vec::new();
    let mut told: FxHashSet<Object> = FxHashSet::default();
    let mut wanted: BTreeMap<Point, Vec<(Object, Vec<usize>)>> = BTreeMap::new();
    for (&(point, object), site) in &sites {
        let needs: Vec<usize> = {
            let mut all: Vec<usize> = site.visits.iter().flat_map(|v| v.state.loops().iter().copied()).collect();
            all.sort_unstable();
            all.dedup();
            all
        };
        let vague = site.visits.iter().any(|v| matches!(v.state, S::No | S::Maybe));
        if certain(&site.visits) {
            if told.insert(object) {
                diagnostics.push(error(kernel, object, site.span));
            }
        } else if vague {
            if told.insert(object) {
                diagnostics.push(warning(kernel, object, site.span));
            }
        } else if !needs.is_empty() {
            wanted.entry(point).or_default().push((object, needs));
        }
    }
    let loops: Vec<LoopFacts> = loops
        .iter()
        .map(|l| LoopFacts {
            lo: l.lo,
            hi: l.hi,
            index: l.index,
            span: l.span,
            dims: dims_behind(kernel, &facts, l.hi),
        })
        .collect();
    insert(kernel, &loops, &wanted);
    diagnostics
}

/// Whether the first read is certainly of something unwritten: either every visit finds it so, or there is a loop such
/// that its first iteration always comes here, and finds it so whatever the loops around do.
fn certain(visits: &[Visit]) -> bool {
    if visits.is_empty() {
        return false;
    }
    if visits.iter().all(|v| v.state == S::No) {
        return true;
    }
    let depth = visits.iter().map(|v| v.passes.len()).max().unwrap_or(0);
    (0..depth).any(|level| {
        let mut first = visits
            .iter()
            .filter(|v| {
                level >= v.clean_from
                    && v.passes.get(level..).is_some_and(|p| p.iter().all(|p| *p == IterationClass::First))
            })
            .peekable();
        first.peek().is_some() && first.all(|v| v.state == S::No)
    })
}

/// Numbers of the statements, by their addresses in the unchanged program.
fn number(body: &Region) -> FxHashMap<*const Stmt, Point> {
    fn walk(region: &[Stmt], out: &mut FxHashMap<*const Stmt, Point>) {
        for stmt in region {
            let next = out.len() as Point;
            out.insert(std::ptr::from_ref(stmt), next);
            for region in regions(&stmt.op) {
                walk(region, out);
            }
        }
    }
    let mut out = FxHashMap::default();
    walk(body, &mut out);
    out
}

/// A statement that gives every element of a tile, or of each tile of an array, a value; or what is to be done where no
/// statement does.
pub fn zeros(kernel: &Kernel, tile: Tile) -> Result<String, String> {
    let data = &kernel.tiles[tile];
    if kernel.sync == SyncMode::Manual && kind(kernel, tile) != TileKind::Ring {
        // A value that the vector unit writes would be one more access for the author to order.
        return Err("write it on every path that leads here".to_owned());
    }
    let zero = if data.ty.dtype.is_float() { "0.0" } else { "0" };
    match (data.ty.loc, kind(kernel, tile)) {
        (_, TileKind::Ring) => {
            Err(format!("fill the whole slot between `{0}.acquire()` and `{0}.commit()`", data.name))
        }
        _ if data.ty.dtype == DType::Bool => Err("compare something into it on every path that leads here".to_owned()),
        (Loc::Vec | Loc::Mat | Loc::Acc, TileKind::One) => Ok(format!("{} = {zero}", data.name)),
        (Loc::Vec | Loc::Mat | Loc::Acc, TileKind::Array) => {
            Ok(format!("for n in 0..{} {{ {}[n] = {zero}; }}", data.count, data.name))
        }
        _ => Err("move something into it on every path that leads here".to_owned()),
    }
}

/// The name of the loop whose body declares the tile, if some statement there writes it too.
fn declared_in_loop(kernel: &Kernel, tile: Tile) -> Option<String> {
    fn find(kernel: &Kernel, region: &Region, tile: Tile, around: Option<&Stmt>) -> Option<String> {
        for stmt in region {
            match (&stmt.op, around.map(|s| &s.op)) {
                (Op::Alloc { tile: t }, Some(Op::For(f))) if *t == tile => {
                    let name = kernel.values[f.index].name.as_ref();
                    return Some(name.map_or("the loop".to_owned(), |n| format!("loop `{n}`")));
                }
                (Op::Alloc { tile: t }, Some(_)) if *t == tile => return Some("the loop".to_owned()),
                _ => {}
            }
            let inner = if matches!(stmt.op, Op::For(_) | Op::While(_)) { Some(stmt) } else { around };
            if let Some(found) = stmt.op.regions().find_map(|r| find(kernel, r, tile, inner)) {
                return Some(found);
            }
        }
        None
    }
    fn written(region: &Region, tile: Tile) -> bool {
        region.iter().any(|s| {
            let here = match &s.op {
                Op::Inst(i) => {
                    i.instr.get().results().any(|k| matches!(&i.operands[k], Operand::Tile(t) if t.tile == tile))
                }
                _ => false,
            };
            here || s.op.regions().any(|r| written(r, tile))
        })
    }
    find(kernel, &kernel.body, tile, None).filter(|_| written(&kernel.body, tile))
}

fn how_to_start(kernel: &Kernel, object: Object) -> String {
    match object {
        Object::Tile(t)
            if !kernel.tiles[t].hidden
                && let Some(name) = declared_in_loop(kernel, t) =>
        {
            format!(
                "a tile that is declared in a loop begins anew in each iteration: declare `{}` before {name} to keep \
                its value",
                kernel.tiles[t].name
            )
        }
        Object::Tile(t) if !kernel.tiles[t].hidden => match (zeros(kernel, t), kernel.tiles[t].ty.loc) {
            (Err(instead), _) => instead,
            (Ok(zeros), Loc::Acc) => {
                format!("start with `{zeros}`, or use TMATMUL or TMATMUL_BIAS in the first iteration: `if k.first`")
            }
            (Ok(zeros), _) => format!("load it, or give it a value first: `{zeros}`"),
        },
        _ => "write it on every path that leads here".to_owned(),
    }
}

fn error(kernel: &Kernel, object: Object, span: Span) -> Diagnostic {
    let (what, declared) = object.describe(kernel);
    Diagnostic::error(codes::UNINITIALISED, span, format!("{what} is read here, and nothing has written it"))
        .with_label("reads what is unwritten")
        .with_secondary(declared, "declared here; a tile starts without a value")
        .with_help(how_to_start(kernel, object))
}

/// What is said of runs with a read that is not proved.
pub const RUNS_ARE_WATCHED: &str = "not proved either way: runs keep a mark for each byte, which takes 20 to 100 times \
    as long, and end here if it happens (PA-1001)";

fn warning(kernel: &Kernel, object: Object, span: Span) -> Diagnostic {
    let (what, declared) = object.describe(kernel);
    Diagnostic::warning(codes::MAYBE_UNINITIALISED, span, format!("{what} may be read here before it is written"))
        .with_label("not written on every path that leads here")
        .with_secondary(declared, "declared here; a tile starts without a value")
        .with_note(RUNS_ARE_WATCHED)
        .with_help(how_to_start(kernel, object))
}

/// What a check of a trip count says.
struct LoopFacts {
    lo: Value,
    hi: Value,
    index: Value,
    span: Span,
    /// The symbolic dimensions and scalar arguments that the upper bound depends on.
    dims: Vec<(String, Value)>,
}

fn dims_behind(kernel: &Kernel, facts: &Facts, value: Value) -> Vec<(String, Value)> {
    let (mut seen, mut work, mut out) = (FxHashSet::default(), vec![value], Vec::new());
    while let Some(v) = work.pop() {
        if !seen.insert(v) {
            continue;
        }
        let dim = kernel.dims.values().find(|d: &&Dim| d.value == v).map(|d| &d.name);
        let name = dim.or_else(|| {
            let scalar = kernel.scalars.iter().find(|s| s.value == v && kernel.values[v].ty == Ty::Index);
            scalar.map(|s| &s.name)
        });
        match name {
            Some(name) => out.push((name.to_string(), v)),
            None => work.extend(&facts.operands[v]),
        }
    }
    out
}

/// Inserts checks before the statements that want them.
fn insert(kernel: &mut Kernel, loops: &[LoopFacts], wanted: &BTreeMap<Point, Vec<(Object, Vec<usize>)>>) {
    if wanted.is_empty() {
        return;
    }
    fn walk(
        kernel: &mut Kernel,
        loops: &[LoopFacts],
        wanted: &BTreeMap<Point, Vec<(Object, Vec<usize>)>>,
        region: &mut Region,
        next: &mut Point,
    ) {
        let mut out = Region::with_capacity(region.len());
        for mut stmt in std::mem::take(region) {
            for (object, needs) in wanted.get(next).into_iter().flatten() {
                for &l in needs {
                    add_check(kernel, &loops[l], *object, stmt.span, &mut out);
                }
            }
            *next += 1;
            match &mut stmt.op {
                Op::For(f) => walk(kernel, loops, wanted, &mut f.body, next),
                Op::If(i) => {
                    walk(kernel, loops, wanted, &mut i.then, next);
                    walk(kernel, loops, wanted, &mut i.els, next);
                }
                Op::While(w) => {
                    walk(kernel, loops, wanted, &mut w.head, next);
                    walk(kernel, loops, wanted, &mut w.body, next);
                }
                Op::Scope(s) => walk(kernel, loops, wanted, &mut s.body, next),
                _ => {}
            }
            out.push(stmt);
        }
        *region = out;
    }
    let mut body = std::mem::take(&mut kernel.body);
    walk(kernel, loops, wanted, &mut body, &mut 0);
    kernel.body = body;
}

fn add_check(kernel: &mut Kernel, l: &LoopFacts, object: Object, span: Span, out: &mut Region) {
    let (what, _) = object.describe(kernel);
    let counter = kernel.values[l.index].name.clone();
    let over = counter.map_or("the loop".to_owned(), |n| format!("the loop over `{n}`"));
    let start = how_to_start(kernel, object);
    let (message, help, args) = match &l.dims[..] {
        [(name, value)] => (
            format!("{name} = {{0}} leaves {what} unwritten: {over} does not run"),
            format!("{start}; or demand more of the launch: `where {name} >= 1`"),
            vec![*value],
        ),
        _ => (
            format!("{over} does not run ({{0}}..{{1}} is empty), which leaves {what} unwritten"),
            start,
            vec![l.lo, l.hi],
        ),
    };
    let check = kernel.checks.push(CheckData { code: codes::EMPTY_LOOP, message, span: l.span, help: Some(help) });
    let cond = kernel.values.push(ValueData { ty: Ty::BOOL, name: None, span });
    out.push(Stmt { op: Op::Compare { dst: cond, op: CmpOp::Lt, a: l.lo, b: l.hi }, span });
    out.push(Stmt { op: Op::Check { cond, check, args }, span });
}

/// All objects of a kernel: how many there are, and which scratch tensors.
fn object_count(kernel: &Kernel) -> usize {
    debug_assert!(kernel.tensors.values().all(|t| t.dir != TensorDir::Scratch || !t.optional));
    kernel.tiles.len() + kernel.tensors.len()
}

//! Accumulators that begin at zero. The dialect fills no tile in Acc: the first product begins it (`tmatmul`) and the
//! others add to it (`tmatmul.acc`). So `acc = 0` in front of products becomes a branch on the first iteration.
//!
//! A loop that may have no iterations would leave the accumulator unwritten; there a trap stands in front of the loop.

use ptoc_diagnostics::{Span, codes};
use ptoc_ir::tile::{
    CheckData, Const, If, Inst, Kernel, Op, Operand, PrintPart, Region, Stmt, Tile, TileRef, Ty, Value, ValueData,
    jumps,
};
use ptoc_isa::{BinOp, CmpOp, InstrId, Loc};
use rustc_hash::FxHashMap;

/// Instructions that add to an accumulator, each with the one that begins it.
const PRODUCTS: [(&str, &str); 2] = [("TMATMUL_ACC", "TMATMUL"), ("TGEMV_ACC", "TGEMV")];

/// The kernel with such fills replaced where it is seen which product is the first.
pub(super) fn begin(kernel: &Kernel) -> Option<Kernel> {
    if !fills(kernel, &kernel.body) {
        return None;
    }
    let mut kernel = kernel.clone();
    let mut body = std::mem::take(&mut kernel.body);
    let mut constants = FxHashMap::default();
    numbers(&kernel.prologue, &mut constants);
    numbers(&body, &mut constants);
    Rewrite { kernel: &mut kernel, constants }.region(&mut body);
    kernel.body = body;
    Some(kernel)
}

fn fills(kernel: &Kernel, region: &Region) -> bool {
    region.iter().any(|s| filled(kernel, &s.op).is_some() || s.op.regions().any(|r| fills(kernel, r)))
}

/// The accumulator that a statement fills, and with what.
fn filled(kernel: &Kernel, op: &Op) -> Option<(TileRef, Value)> {
    let Op::Inst(inst) = op else { return None };
    match (inst.instr.get().name, &inst.operands[..]) {
        ("TEXPANDS", [Operand::Tile(tile), Operand::Scalar(value)])
            if kernel.tiles[tile.tile].ty.loc == Loc::Acc && tile.element.is_none() && tile.origin.is_none() =>
        {
            Some((*tile, *value))
        }
        _ => None,
    }
}

/// The regions of a statement.
pub(super) fn regions(op: &mut Op) -> Vec<&mut Region> {
    match op {
        Op::For(f) => vec![&mut f.body],
        Op::If(i) => vec![&mut i.then, &mut i.els],
        Op::While(w) => vec![&mut w.head, &mut w.body],
        Op::Scope(s) => vec![&mut s.body],
        _ => Vec::new(),
    }
}

fn numbers(region: &Region, found: &mut FxHashMap<Value, Const>) {
    for stmt in region {
        if let Op::Const { dst, value } = stmt.op {
            found.insert(dst, value);
        }
        stmt.op.regions().for_each(|r| numbers(r, found));
    }
}

/// The way from a fill to the product that is first: loops, the outermost first, by their places in their regions.
struct Path {
    steps: Vec<usize>,
    /// Where the loops begin and end.
    bounds: Vec<Value>,
    instr: InstrId,
}

struct Rewrite<'k> {
    kernel: &'k mut Kernel,
    constants: FxHashMap<Value, Const>,
}

impl Rewrite<'_> {
    fn region(&mut self, region: &mut Region) {
        let mut at = 0;
        while at < region.len() {
            let fill = filled(self.kernel, &region[at].op).filter(|(_, v)| self.is_zero(*v));
            let path = fill.and_then(|(tile, _)| path(&region[at + 1..], &tile));
            match (fill, path) {
                (Some(_), Some(path)) => {
                    region.remove(at);
                    self.begin(region, at, &path);
                }
                _ => {
                    regions(&mut region[at].op).into_iter().for_each(|r| self.region(r));
                    at += 1;
                }
            }
        }
    }

    /// Whether it is 0, and not -0.
    fn is_zero(&self, value: Value) -> bool {
        self.constants.get(&value).is_some_and(|c| c.bits == 0)
    }

    /// Makes the product at the end of the path the first one, in a region whose statements it counts from `from`.
    fn begin(&mut self, region: &mut Region, from: usize, path: &Path) {
        let Some((first, inner)) = path.steps.split_first() else { return };
        let at = from + first;
        if inner.is_empty() {
            if let Op::Inst(inst) = &mut region[at].op {
                **inst = first_product(inst, path.instr);
            }
            return;
        }
        let loops = self.branch(&mut region[at], inner, path.instr);
        let traps = self.traps(&loops, &region[..at], region[at].span);
        region.splice(at..at, traps);
    }

    /// Puts the branch into a nest of loops. Their indices and bounds, the outermost first.
    fn branch(&mut self, nest: &mut Stmt, steps: &[usize], first: InstrId) -> Vec<Bounds> {
        let span = nest.span;
        let mut loops = Vec::new();
        let mut stmt = nest;
        let mut rest = steps;
        while let ([step, after @ ..], Op::For(f)) = (rest, &mut stmt.op) {
            loops.push(Bounds { index: f.index, lo: f.lo, hi: f.hi });
            if after.is_empty() {
                let mut made = self.is_first(&loops, span);
                if let [only] = &made[..]
                    && let Some(there) = f.body[..*step].iter().find(|s| same_comparison(&s.op, &only.op))
                {
                    made = vec![there.clone()];
                }
                let (Some(cond), Op::Inst(inst)) = (made.last().and_then(|s| s.op.def()), &f.body[*step].op) else {
                    return loops;
                };
                let own = f.body[*step].span;
                let of = |inst: Inst| vec![Stmt { op: Op::Inst(Box::new(inst)), span: own }];
                let branch = If { cond, then: of(first_product(inst, first)), els: of((**inst).clone()) };
                f.body[*step].op = Op::If(Box::new(branch));
                if f.body[..*step].iter().all(|s| s.op.def() != Some(cond)) {
                    f.body.splice(*step..*step, made.drain(..));
                }
                return loops;
            }
            rest = after;
            stmt = &mut f.body[*step];
        }
        loops
    }

    /// Statements of which the last defines whether every loop is in its first iteration.
    fn is_first(&mut self, loops: &[Bounds], span: Span) -> Vec<Stmt> {
        let mut made = Vec::new();
        let mut all: Option<Value> = None;
        for l in loops {
            let dst = self.flag(span);
            made.push(Stmt { op: Op::Compare { dst, op: CmpOp::Eq, a: l.index, b: l.lo }, span });
            all = Some(match all {
                None => dst,
                Some(a) => {
                    let both = self.flag(span);
                    made.push(Stmt { op: Op::Binary { dst: both, op: BinOp::And, a, b: dst }, span });
                    both
                }
            });
        }
        made
    }

    /// Ends of the launch where a loop has no iterations and may have none, unless one of these `before` is the same.
    fn traps(&mut self, loops: &[Bounds], before: &[Stmt], span: Span) -> Vec<Stmt> {
        let mut made = Vec::new();
        for l in loops {
            let number = |v: &Value| self.constants.get(v).and_then(|c| c.as_index());
            let is = |s: &Stmt, value| match &s.op {
                Op::Compare { dst, op: CmpOp::Lt, a, b } => *dst == value && (*a, *b) == (l.lo, l.hi),
                _ => false,
            };
            let tests = |s: &Stmt| matches!(&s.op, Op::Check { cond, .. } if before.iter().any(|s| is(s, *cond)));
            if number(&l.lo).zip(number(&l.hi)).is_some_and(|(lo, hi)| lo < hi) || before.iter().any(tests) {
                continue;
            }
            let cond = self.flag(span);
            made.push(Stmt { op: Op::Compare { dst: cond, op: CmpOp::Lt, a: l.lo, b: l.hi }, span });
            let check = self.kernel.checks.push(CheckData {
                code: codes::ASSERTION_FAILED,
                message: "the sum has a product".into(),
                span,
                help: None,
            });
            made.push(Stmt { op: Op::Check { cond, check, args: Vec::new() }, span });
        }
        made
    }

    fn flag(&mut self, span: Span) -> Value {
        self.kernel.values.push(ValueData { ty: Ty::BOOL, name: None, span })
    }
}

/// A loop.
struct Bounds {
    index: Value,
    lo: Value,
    hi: Value,
}

/// The product that begins the accumulator: without the operand that is added to.
fn first_product(inst: &Inst, instr: InstrId) -> Inst {
    let mut operands = inst.operands.clone();
    operands.remove(1);
    Inst { instr, operands, ..inst.clone() }
}

/// The way to the first use of an accumulator, if that is a product which adds to all of it, and which every iteration
/// of the loops around it comes to.
fn path(region: &[Stmt], acc: &TileRef) -> Option<Path> {
    let at = region.iter().position(|s| uses(&s.op, acc.tile))?;
    match &region[at].op {
        Op::Inst(inst) => {
            let (_, first) = PRODUCTS.iter().find(|(name, _)| *name == inst.instr.get().name)?;
            let [Operand::Tile(dst), Operand::Tile(src), ..] = &inst.operands[..] else { return None };
            (dst == acc && src == acc).then_some(())?;
            Some(Path { steps: vec![at], bounds: Vec::new(), instr: ptoc_isa::lookup(first)? })
        }
        Op::For(f) => {
            let mut inner = path(&f.body, acc)?;
            // Bounds of inner loops are tested before the outer one, and no iteration ends before the product.
            let own = |v: &Value| *v == f.index || defines(&f.body, *v);
            (!jumps(&f.body) && !inner.bounds.iter().any(own)).then_some(())?;
            inner.steps.insert(0, at);
            inner.bounds.extend([f.lo, f.hi]);
            Some(inner)
        }
        _ => None,
    }
}

/// Whether a statement, or one in it, has the tile as an operand.
fn uses(op: &Op, tile: Tile) -> bool {
    let is = |t: &TileRef| t.tile == tile;
    let own = match op {
        Op::Inst(inst) => {
            inst.scratch.iter().any(is) || inst.operands.iter().any(|o| matches!(o, Operand::Tile(t) if is(t)))
        }
        Op::TileGet { tile: t, .. } | Op::TileSet { tile: t, .. } => is(t),
        Op::Alloc { tile: t } | Op::Assign { tile: t, .. } => *t == tile,
        Op::Print { parts } => parts.iter().any(|p| matches!(p, PrintPart::Tile(t) if is(t))),
        // Neither is said.
        Op::Copy(_) | Op::Mma(_) => true,
        _ => false,
    };
    own || op.regions().any(|r| r.iter().any(|s| uses(&s.op, tile)))
}

/// Whether two statements compare the same numbers in the same way.
fn same_comparison(a: &Op, b: &Op) -> bool {
    let of = |op: &Op| match op {
        Op::Compare { op, a, b, .. } => Some((*op, *a, *b)),
        _ => None,
    };
    of(a).is_some() && of(a) == of(b)
}

/// Whether a value is defined in a region.
fn defines(region: &Region, value: Value) -> bool {
    region.iter().any(|s| s.op.def() == Some(value) || s.op.regions().any(|r| defines(r, value)))
}

//! The program of the abstract interpreter: a kernel as the walk sees it: steps, the statements that matter, loops, and
//! how scalars come about.

use super::domain::AffineValue;
use super::touch::StatementAccess;
use cranelift_entity::{EntitySet, SecondaryMap};
use ptoc_ir::analysis::lcm;
use ptoc_ir::tile::{Kernel, RoleId, Stmt, SyncOp, TensorId, Tile, Value, Var};
use ptoc_isa::{BinOp, CmpOp, Pipe, UnOp};
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;
use std::rc::Rc;

/// Numbers of comparisons up to this one are worth iterations of their own.
const SMALL: i64 = 16;
/// Iterations of a loop that are walked through step by step, where that is worth it.
const STEPWISE: i64 = 128;
/// Periods above this one are not followed.
const LONGEST_PERIOD: i64 = 720;

/// Where a statement is: for each region on the way, which of its parent's (0 or 1), and the statement in it.
pub(super) type Path = Vec<(usize, usize)>;

/// One step.
#[derive(Clone, Copy, Debug)]
pub(super) enum HazardOp {
    /// A scalar that is not known becomes one; it is at least 0 if so.
    Unknown(usize, bool),
    /// Reads a mutable scalar.
    Get(usize, Var),
    /// Writes it.
    Set(Var, Value),
    /// Binds an address to an element of a tile.
    Bind(Tile, Option<Value>, Value),
    /// A statement that touches memory.
    Access(usize),
    /// A statement that orders pipes.
    Sync(usize, SyncOp),
    /// It holds from here on.
    Holds(Value),
    /// Goes on if it holds, else there.
    Branch(Value, usize),
    Jump(usize),
    /// Ways meet here.
    Join,
    Enter(usize),
    /// Another iteration, or out to the step after `Next`.
    Head(usize),
    /// Counts, and back to the head.
    Next(usize),
    Leave(usize),
    End,
}

/// A loop.
#[derive(Clone, Debug)]
pub(super) struct Loop {
    /// How it counts; `None`: a `while` that does not.
    pub(super) counted: Option<Counted>,
    /// Slot of the counter; of a `while` that of the counter's first value.
    pub(super) slot: usize,
    /// One past the last loop inside.
    pub(super) end: usize,
    /// First step of an iteration.
    pub(super) head: usize,
    /// The step that leaves.
    pub(super) leave: usize,
    /// Iterations after which everything is as before.
    pub(super) period: i64,
    /// It is short, of known length, and inside of nothing else: every iteration is walked through, and places have
    /// numbers.
    pub(super) stepwise: bool,
}

/// A loop that counts by one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counted {
    /// The counter.
    pub(super) index: Value,
    /// First; `None`: what the variable is.
    pub(super) lo: Option<Value>,
    /// One past the last.
    pub(super) hi: Value,
    /// The variable that counts, in a `while`.
    pub(super) var: Option<Var>,
}

/// A statement that matters.
#[derive(Clone, Debug)]
pub(super) struct Site<'k> {
    pub(super) stmt: &'k Stmt,
    pub(super) path: Path,
    /// Who issues it.
    pub(super) role: Option<RoleId>,
    /// Where it runs; `None`: a barrier of all pipes.
    pub(super) pipe: Option<Pipe>,
    pub(super) touches: Vec<StatementAccess<'k>>,
    /// The loops around, outermost first.
    pub(super) loops: Vec<usize>,
}

/// How a value comes about.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default, Debug)]
pub(super) enum Def {
    /// Not known, and always the same: an argument, a dimension, the block's number, an element of a tensor that the
    /// kernel only reads. At least 0 if so.
    Given(bool),
    Const(AffineValue),
    Slot(usize),
    Unary(UnOp, Value),
    Binary(BinOp, Value, Value),
    Compare(CmpOp, Value, Value),
    /// The first is at most the second and so much more.
    AtMost(Value, Value, i64),
    Select(Value, Value, Value),
    Same(Value),
    /// A constant that is no integer.
    Bits(u64),
    /// A comparison of such values.
    Test(CmpOp, Value, Value),
    /// Not followed.
    #[default]
    Vague,
}

/// A kernel to be walked through.
pub(super) struct HazardProgram<'k> {
    pub(super) kernel: &'k Kernel,
    /// The values that something uses.
    pub(super) used: EntitySet<Value>,
    pub(super) steps: Vec<HazardOp>,
    pub(super) sites: Vec<Site<'k>>,
    pub(super) loops: Vec<Loop>,
    pub(super) defs: SecondaryMap<Value, Def>,
    /// What a counter is less than: of loops and of the grid.
    pub(super) bounds: FxHashMap<Value, Value>,
    /// The innermost loop that a value changes with.
    pub(super) home: FxHashMap<Value, usize>,
    /// The values that slots hold.
    pub(super) slots: Vec<Option<Value>>,
    /// Variables that count and nothing else, whatever the loop.
    pub(super) counting: FxHashSet<Var>,
    /// First and last iterations that are told apart.
    pub(super) told: i64,
    /// How often a value is used where it decides something.
    pub(super) uses: FxHashMap<Value, u32>,
    /// Of values that are read from one tensor or one tile the first: they may be the same number.
    pub(super) read: FxHashMap<Value, Value>,
    /// Values that are read from variables.
    pub(super) variables: FxHashSet<Value>,
    /// Where the elements are that are read from tensors that nothing writes.
    pub(super) loaded: FxHashMap<Value, (TensorId, Value)>,
    /// What the launch gives, as far as it decides something.
    pub(super) given: Rc<[Value]>,
    /// What a value is computed from that is not followed.
    pub(super) opaque: FxHashMap<Value, Vec<Value>>,
    pub(super) sources: RefCell<FxHashMap<Value, Rc<[Value]>>>,
}

impl<'k> HazardProgram<'k> {
    /// The same with short loops of known length step by step; `None`: there are none.
    pub(super) fn stepwise(kernel: &'k Kernel) -> Option<HazardProgram<'k>> {
        let mut code = HazardProgram::new(kernel);
        let number = |v: Value| match code.defs[code.root(v)] {
            Def::Const(n) => n.constant(),
            _ => None,
        };
        let short = |l: &Loop| {
            let counted = l.counted?;
            let length = number(counted.hi)?.checked_sub(number(counted.lo?)?)?;
            (length <= STEPWISE).then_some(())
        };
        let alone: Vec<bool> = code.loops.iter().map(|l| short(l).is_some()).collect();
        // A loop and all those around it.
        let with_outer = |n: usize| (0..=n).filter(|&o| code.loops[o].end > n).all(|o| alone[o]);
        let all: Vec<bool> = (0..alone.len()).map(with_outer).collect();
        code.loops.iter_mut().zip(&all).for_each(|(l, s)| l.stepwise = *s);
        all.contains(&true).then_some(code)
    }

    /// Periods, and how many iterations are told apart.
    pub(super) fn numbers(&mut self, wanted: &FxHashSet<Value>) {
        let mut moduli: Vec<i64> = Vec::new();
        let counts = self.kernel.events.values().map(|e| e.count).chain(self.kernel.tiles.values().map(|t| t.count));
        moduli.extend(counts.map(i64::from).filter(|n| (2..=SMALL).contains(n)));
        for &value in wanted {
            let small = |v: Value| match self.defs[v] {
                Def::Const(n) => n.constant().filter(|n| (-SMALL..=SMALL).contains(n)),
                _ => None,
            };
            match self.defs[value] {
                // A quotient of a counter changes with it. One of a bound is the same in all iterations: that there are
                // `(n + 63) / 64` tiles makes no loop with that bound, or with `n`, go round in 64.
                Def::Binary(op @ (BinOp::Rem | BinOp::Div), a, b) if self.counts(a, op == BinOp::Rem, 0) => {
                    moduli.extend(match self.defs[b] {
                        Def::Const(n) => n.constant().filter(|n| (2..=LONGEST_PERIOD).contains(n)),
                        _ => None,
                    });
                }
                Def::Binary(BinOp::And, a, b) => moduli
                    .extend([a, b].into_iter().filter_map(small).filter(|n| *n > 0 && (n + 1) & n == 0).map(|n| n + 1)),
                Def::AtMost(a, b, n)
                    if (-SMALL..=SMALL).contains(&n) && (self.counts(a, true, 0) || self.counts(b, true, 0)) =>
                {
                    self.told = self.told.max(n.abs() + 1);
                }
                Def::Binary(BinOp::Add | BinOp::Sub, a, b) | Def::Compare(_, a, b)
                    if self.counts(a, true, 0) || self.counts(b, true, 0) =>
                {
                    for n in [a, b].into_iter().filter_map(small) {
                        self.told = self.told.max(n.abs() + 1);
                    }
                }
                _ => {}
            }
        }
        let mut period = 1;
        for m in moduli {
            if let Some(longer) = lcm(period, m).filter(|n| *n <= LONGEST_PERIOD) {
                period = longer;
            }
        }
        // The parity of a barrier turns at each round.
        if self.kernel.events.values().any(|e| matches!(e.kind, ptoc_ir::tile::EventKind::Barrier { .. })) {
            period = if period * 2 <= LONGEST_PERIOD { period * 2 } else { period };
        }
        self.loops.iter_mut().for_each(|l| l.period = period);
    }

    /// Whether it is the counter of a loop (or, if `bounds`, what one counts to), or moves along with one.
    fn counts(&self, v: Value, bounds: bool, depth: u32) -> bool {
        let constant = matches!(self.defs[v], Def::Const(_));
        let is = |c: Counted| v == c.index || bounds && v == self.root(c.hi);
        if !constant && self.loops.iter().filter_map(|l| l.counted).any(is) {
            return true;
        }
        match self.defs[v] {
            Def::Binary(BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div, a, b) if depth < 8 => {
                self.counts(a, bounds, depth + 1) || self.counts(b, bounds, depth + 1)
            }
            _ => false,
        }
    }

    /// The value that stands for all that are the same.
    pub(super) fn root(&self, mut v: Value) -> Value {
        while let Def::Same(a) = self.defs[v] {
            v = a;
        }
        v
    }

    /// What a value comes from that is not computed. The number of a block is below the grid's extent, and so comes
    /// from that, too.
    pub(super) fn sources(&self, v: Value) -> Rc<[Value]> {
        if let Some(known) = self.sources.borrow().get(&v) {
            return known.clone();
        }
        let (mut out, mut open, mut seen) = (Vec::new(), vec![v], FxHashSet::default());
        while let Some(v) = open.pop() {
            let v = self.root(v);
            if !seen.insert(v) {
                continue;
            }
            match self.defs[v] {
                Def::Const(_) | Def::Bits(_) => {}
                Def::Given(_) => {
                    out.push(v);
                    open.extend(self.kernel.grid.iter().filter(|g| g.index == v).map(|g| g.extent));
                }
                Def::Slot(_) => out.push(v),
                Def::Vague => match self.opaque.get(&v) {
                    Some(operands) => open.extend(operands),
                    None => out.push(v),
                },
                Def::Unary(_, a) | Def::Same(a) => open.push(a),
                Def::Binary(_, a, b) | Def::Compare(_, a, b) | Def::AtMost(a, b, _) | Def::Test(_, a, b) => {
                    open.extend([a, b]);
                }
                Def::Select(c, a, b) => open.extend([c, a, b]),
            }
        }
        out.sort_unstable();
        let out: Rc<[Value]> = out.into();
        self.sources.borrow_mut().insert(v, out.clone());
        out
    }

    /// Whether the value changes with loop `l` or with one inside of it.
    pub(super) fn inside(&self, value: Value, l: usize) -> bool {
        self.home.get(&value).is_some_and(|&h| h >= l && h < self.loops[l].end)
    }
}

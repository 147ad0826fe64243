//! Which bytes a statement reads and writes, where loop counters are known modulo the copies of their pipeline.

use cranelift_entity::EntitySet;
use ptoc_ir::tile::{self, AddrKind, Kernel, Op, Operand, PrintPart, Stmt, TensorId, Tile, TileRef, Update, Value};
use ptoc_isa::{BinOp, Loc, Order, Sem, Target};
use ptoc_placement::access::{AccessMode, inst_operands};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// Storage whose parts do not overlap those of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Space {
    /// By the location that stands for the memory ([`Target::home`]).
    Memory(Loc),
    Tensor(TensorId),
}

/// Bytes that an instruction touches.
#[derive(Clone, Copy, Debug)]
pub(super) struct InstAccess {
    pub space: Space,
    pub start: u64,
    pub end: u64,
    pub write: bool,
    /// Updates global memory in one step, as others may at the same time.
    pub atomic: Option<Update>,
    /// What the source calls it.
    pub tile: Option<Tile>,
    /// Rows and columns of the window, if it is constant: two windows of one tile may interleave.
    window: Option<[u32; 4]>,
    /// Where the tile starts.
    base: u64,
}

impl InstAccess {
    /// Whether two accesses need an order.
    pub fn conflicts(&self, other: &InstAccess) -> bool {
        if self.space != other.space
            || !(self.write || other.write)
            || matches!((self.atomic, other.atomic), (Some(a), Some(b)) if a.commutes(b))
            || self.start >= other.end
            || other.start >= self.end
        {
            return false;
        }
        match (self.window, other.window) {
            (Some([r0, r1, c0, c1]), Some([s0, s1, d0, d1])) if self.tile == other.tile && self.base == other.base => {
                r0 < s1 && s0 < r1 && c0 < d1 && d0 < c1
            }
            _ => true,
        }
    }
}

/// How a value was computed.
#[derive(Clone, Copy)]
enum Def {
    Const(i64),
    Binary(BinOp, Value, Value),
}

/// A residue of a loop's counter: `index - lo` is `phase` modulo `of`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Residue {
    pub index: Value,
    pub lo: Value,
    pub phase: i64,
    pub of: i64,
}

/// Knows the scalar code of a kernel.
pub(super) struct Scalars<'k> {
    kernel: &'k Kernel,
    target: &'k Target,
    defs: FxHashMap<Value, Def>,
    /// The values that something uses.
    used: EntitySet<Value>,
}

impl<'k> Scalars<'k> {
    pub fn new(kernel: &'k Kernel, target: &'k Target) -> Scalars<'k> {
        fn note(region: &[Stmt], defs: &mut FxHashMap<Value, Def>) {
            for stmt in region {
                match stmt.op {
                    Op::Const { dst, value } => defs.extend(value.as_index().map(|n| (dst, Def::Const(n)))),
                    Op::Binary { dst, op, a, b } => {
                        defs.insert(dst, Def::Binary(op, a, b));
                    }
                    _ => stmt.op.regions().for_each(|r| note(r, defs)),
                }
            }
        }
        let mut defs = FxHashMap::default();
        note(&kernel.prologue, &mut defs);
        note(&kernel.body, &mut defs);
        Scalars { kernel, target, defs, used: tile::used_values(kernel) }
    }

    pub fn constant(&self, value: Value) -> Option<i64> {
        match self.defs.get(&value) {
            Some(Def::Const(n)) => Some(*n),
            _ => None,
        }
    }

    /// The modulus of `(index - lo) % n` or `index % n`, if `value` is one.
    pub fn modulus(&self, value: Value, index: Value, lo: Value) -> Option<i64> {
        let Some(Def::Binary(BinOp::Rem, a, n)) = self.defs.get(&value) else { return None };
        let n = self.constant(*n).filter(|n| *n > 1)?;
        self.counter(*a, index, lo).is_some().then_some(n)
    }

    /// `value - (index - lo)` if that is a constant.
    fn counter(&self, value: Value, index: Value, lo: Value) -> Option<i64> {
        if value == index {
            return self.constant(lo);
        }
        match *self.defs.get(&value)? {
            Def::Binary(BinOp::Sub, a, b) if a == index && b == lo => Some(0),
            Def::Binary(BinOp::Sub, a, b) => self.counter(a, index, lo)?.checked_sub(self.constant(b)?),
            Def::Binary(BinOp::Add, a, b) => match self.constant(b) {
                Some(n) => self.counter(a, index, lo)?.checked_add(n),
                None => self.counter(b, index, lo)?.checked_add(self.constant(a)?),
            },
            _ => None,
        }
    }

    fn eval(&self, value: Value, known: &[Residue], fuel: &mut u32) -> Option<i64> {
        *fuel = fuel.checked_sub(1)?;
        match *self.defs.get(&value)? {
            Def::Const(n) => Some(n),
            Def::Binary(BinOp::Rem, a, n) => {
                let modulus = self.constant(n).filter(|n| *n > 0)?;
                let residue = known.iter().filter(|r| r.of % modulus == 0).find_map(|r| {
                    let plus = self.counter(a, r.index, r.lo)?;
                    Some(r.phase.checked_add(plus)?.rem_euclid(modulus))
                });
                residue.or_else(|| Some(self.eval(a, known, fuel)?.rem_euclid(modulus)))
            }
            Def::Binary(op, a, b) => {
                let (a, b) = (self.eval(a, known, fuel)?, self.eval(b, known, fuel)?);
                match op {
                    BinOp::Add => a.checked_add(b),
                    BinOp::Sub => a.checked_sub(b),
                    BinOp::Mul => a.checked_mul(b),
                    BinOp::Div if b > 0 => Some(a.div_euclid(b)),
                    _ => None,
                }
            }
        }
    }

    /// What `stmt` itself touches.
    pub fn touches(&self, stmt: &Stmt, known: &[Residue]) -> Vec<InstAccess> {
        let mut out = Vec::new();
        let mut tile = |r: &TileRef, access: AccessMode| self.tile(r, access == AccessMode::Write, known, &mut out);
        match &stmt.op {
            Op::TileGet { tile: r, .. } => tile(r, AccessMode::Read),
            Op::TileSet { tile: r, .. } => tile(r, AccessMode::Write),
            Op::Print { parts } => parts.iter().for_each(|p| {
                if let PrintPart::Tile(r) = p {
                    tile(r, AccessMode::Read);
                }
            }),
            Op::Load { tensor: t, .. } => out.push(tensor(*t, false, None)),
            Op::Store { tensor: t, .. } => out.push(tensor(*t, true, None)),
            Op::Atomic { tensor: t, .. } => out.push(tensor(*t, true, stmt.op.update(&self.used))),
            // Binding an address touches no element.
            Op::Inst(inst) if inst.instr.get().sem == Sem::Assign => {}
            Op::Inst(inst) => {
                for (access, operand) in inst_operands(inst) {
                    match operand {
                        Operand::Tile(r) => self.tile(r, access == AccessMode::Write, known, &mut out),
                        Operand::View(v) => {
                            let update = inst.attrs.atomic.map(Update::unseen);
                            out.push(tensor(v.tensor, access == AccessMode::Write, update));
                        }
                        Operand::Scalar(_) => {}
                    }
                }
                inst.scratch.iter().for_each(|r| self.tile(r, true, known, &mut out));
            }
            Op::Copy(copy) => {
                self.side(&copy.src, false, known, &mut out);
                self.side(&copy.dst, true, known, &mut out);
            }
            Op::Mma(mma) => {
                self.side(&mma.a, false, known, &mut out);
                self.side(&mma.b, false, known, &mut out);
                self.side(&mma.acc, true, known, &mut out);
            }
            _ => {}
        }
        out
    }

    fn side(&self, side: &tile::NestAccess, write: bool, known: &[Residue], out: &mut Vec<InstAccess>) {
        if let Some(r) = side.tile() {
            // A nest's rows and columns are relative to the window, and inside it.
            self.tile(r, write, known, out);
        }
        out.extend(side.tensor().map(|t| tensor(t, write, None)));
        out.extend(side.tables().map(|t| tensor(t, false, None)));
    }

    fn tile(&self, r: &TileRef, write: bool, known: &[Residue], out: &mut Vec<InstAccess>) {
        let data = &self.kernel.tiles[r.tile];
        let (space, tile) = (Space::Memory(self.target.home(data.ty.loc)), Some(r.tile));
        let touch = |start: u64, end: u64| InstAccess {
            space,
            start,
            end,
            write,
            atomic: None,
            tile,
            window: None,
            base: start,
        };
        let AddrKind::Fixed(at) = &data.addr else {
            // It may be anywhere.
            out.push(touch(0, self.target.capacity(data.ty.loc).max(1)));
            return;
        };
        let element = match r.element {
            None => Some(0),
            Some(e) => self.eval(e, known, &mut 1_000),
        };
        let Some(&base) = element.and_then(|e| at.get(usize::try_from(e).ok()?)) else {
            out.extend(at.iter().map(|&a| touch(a, a + data.ty.bytes())));
            return;
        };
        let mut whole = touch(base, base + data.ty.bytes());
        let origin = match r.origin {
            None => Some((0, 0)),
            Some((row, col)) => self.constant(row).zip(self.constant(col)),
        };
        let plain = data.ty.layout.is_none() && data.ty.dtype != DType::Bool && data.ty.loc.bytes_observable();
        if let Some((row, col)) = origin.filter(|_| plain)
            && let (Ok(row), Ok(col)) = (u32::try_from(row), u32::try_from(col))
            && r.rows > 0
            && r.cols > 0
            && row.saturating_add(r.rows) <= data.ty.rows
            && col.saturating_add(r.cols) <= data.ty.cols
        {
            let size = data.ty.dtype.size() as u64;
            whole.window = Some([row, row + r.rows, col, col + r.cols]);
            whole.start = base + data.ty.element(row, col) * size;
            whole.end = base + (data.ty.element(row + r.rows - 1, col + r.cols - 1) + 1) * size;
            debug_assert!(matches!(data.ty.order, Order::Nd | Order::Dn));
        }
        out.push(whole);
    }
}

/// A tensor counts as one: where windows of it meet is a matter of the launch.
fn tensor(tensor: TensorId, write: bool, atomic: Option<Update>) -> InstAccess {
    let space = Space::Tensor(tensor);
    InstAccess { space, start: 0, end: u64::MAX, write, atomic, tile: None, window: None, base: 0 }
}

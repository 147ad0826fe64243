//! Chains of element-wise instructions: random programs over few tiles, with what may keep instructions apart. Tiles on
//! each other's bytes, windows that overlap, elements of arrays, several readers, writing in place, rows and columns
//! that are broadcast, reductions, loops and conditions, tails.

use crate::harness::*;
use crate::nests::Dice;
use ptoc_ir::loops;
use ptoc_ir::tile::{AddrKind, For, If, Inst, InstAttrs, Kernel, Op, Operand, TensorDir, TensorId, TileRef, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, Loc, Order, RoundMode, TileType};
use ptoc_passes::pipeline;
use ptoc_tensor::DType;

/// Capacity of the tiles.
const ROWS: u32 = 6;
const COLS: u32 = 136;

const DTYPES: [DType; 5] = [DType::F32, DType::F16, DType::BF16, DType::I32, DType::I8];

#[derive(Clone, Copy, PartialEq, Debug)]
enum Kind {
    Whole,
    Column,
    Row,
}

/// A window of a tile under a name of its own.
#[derive(Clone, Debug)]
struct Name {
    at: TileRef,
    dtype: DType,
    kind: Kind,
    order: Order,
    /// Bytes in UB, if the author says.
    bytes: Option<(u64, u64)>,
    /// It was written on every way to here.
    set: bool,
}

struct Gen {
    k: K,
    d: Dice,
    names: Vec<Name>,
    ins: Vec<(TensorId, DType, Kind)>,
    both: Vec<(TensorId, DType)>,
    outs: Vec<(TensorId, DType)>,
    shape: (Value, Value),
    one: Value,
    depth: u32,
}

impl Gen {
    fn valid(&self, kind: Kind) -> (Value, Value) {
        match kind {
            Kind::Whole => self.shape,
            Kind::Column => (self.shape.0, self.one),
            Kind::Row => (self.one, self.shape.1),
        }
    }

    fn name(&mut self, at: TileRef, dtype: DType, kind: Kind, order: Order, bytes: Option<(u64, u64)>) {
        self.names.push(Name { at, dtype, kind, order, bytes, set: false });
    }

    fn tiles(&mut self) {
        let main = self.d.pick(&DTYPES);
        // On bytes of the author's choosing: the same ones, a row further, or apart.
        let spot = self.d.pick(&[0u64, 64, 320, 4096]);
        for n in 0..7 {
            let dtype = if self.d.one_in(4) { self.d.pick(&DTYPES) } else { main };
            let order = if self.d.one_in(8) { Order::Dn } else { Order::Nd };
            let ty = TileType { loc: Loc::Vec, dtype, rows: ROWS, cols: COLS, order, layout: None };
            let size = u64::from(ROWS * COLS) * dtype.size() as u64;
            let valid = self.valid(Kind::Whole);
            match self.d.below(7) {
                0 => {
                    let start = 65536 + if n % 2 == 0 { 0 } else { spot };
                    let tile = self.k.place("f", ty, AddrKind::Fixed(vec![start]), 1, 1);
                    let at = self.k.r(tile, valid);
                    self.name(at, dtype, Kind::Whole, order, Some((start, start + size)));
                }
                1 => {
                    let tile = self.k.place("pair", ty, AddrKind::Auto, 2, 1);
                    for n in 0..2 {
                        let element = Some(self.k.c(n));
                        let at = TileRef { element, ..self.k.r(tile, valid) };
                        self.name(at, dtype, Kind::Whole, order, None);
                    }
                }
                2 => {
                    let ty = TileType { rows: ROWS + 2, order: Order::Nd, ..ty };
                    let tile = self.k.place("big", ty, AddrKind::Auto, 1, 1);
                    let zero = self.k.c(0);
                    for row in [0, 2] {
                        let origin = Some((self.k.c(row), zero));
                        let at = TileRef { origin, rows: ROWS, ..self.k.r(tile, valid) };
                        // Of two windows that overlap, one is known to be written at a time.
                        self.name(
                            at,
                            dtype,
                            Kind::Whole,
                            Order::Nd,
                            Some((1 << 40 | row as u64, 1 << 40 | (row as u64 + 6))),
                        );
                    }
                }
                _ => {
                    let tile = self.k.tile("t", Loc::Vec, dtype, (ROWS, COLS), order);
                    let at = self.k.r(tile, valid);
                    self.name(at, dtype, Kind::Whole, order, None);
                }
            }
        }
        for kind in [Kind::Column, Kind::Column, Kind::Row] {
            let (rows, cols) = if kind == Kind::Column { (ROWS + 2, 1) } else { (1, COLS) };
            let order = if kind == Kind::Column { Order::Dn } else { Order::Nd };
            let tile = self.k.tile("line", Loc::Vec, main, (rows, cols), order);
            let at = self.k.r(tile, self.valid(kind));
            self.name(at, main, kind, order, None);
        }
    }

    fn pick(&mut self, fits: impl Fn(&Name) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.names.len()).filter(|n| fits(&self.names[*n])).collect();
        if all.is_empty() { None } else { Some(self.d.pick(&all)) }
    }

    /// Something that was written.
    fn source(&mut self, dtype: DType, kind: Kind) -> Option<usize> {
        self.pick(|n| n.set && n.dtype == dtype && n.kind == kind)
    }

    fn written(&mut self, n: usize) {
        let this = self.names[n].clone();
        for (m, other) in self.names.iter_mut().enumerate() {
            let meets = match (this.bytes, other.bytes) {
                (Some(a), Some(b)) => a.0 < b.1 && b.0 < a.1,
                _ => false,
            };
            if m != n && meets {
                other.set = false;
            }
        }
        self.names[n].set = true;
    }

    fn inst(&mut self, name: &str, dst: usize, srcs: &[usize], scalar: Option<Value>, attrs: InstAttrs) {
        let tiles = std::iter::once(&dst).chain(srcs).map(|n| Operand::Tile(self.names[*n].at));
        let operands: Vec<Operand> = tiles.chain(scalar.map(Operand::Scalar)).collect();
        if self.d.one_in(2) && (name == "TXOR" || name.starts_with("TROW") && name.len() == 7) {
            // Hidden scratch like the source's tile.
            let (ty, span) = (self.k.b.kernel().tiles[self.names[srcs[0]].at.tile].ty, self.k.span());
            let tile = self.k.tile("scratch", Loc::Vec, ty.dtype, (ty.rows, ty.cols), ty.order);
            let scratch = vec![self.k.b.whole(tile)];
            let instr = ptoc_isa::lookup(name).unwrap();
            self.k.b.inst(Inst { instr, operands, scratch, attrs }, span);
        } else {
            self.k.inst(name, operands, attrs);
        }
        self.written(dst);
    }

    fn load(&mut self) -> Option<()> {
        let d = self.d.below(self.names.len() as u64) as usize;
        let (dtype, kind) = (self.names[d].dtype, self.names[d].kind);
        let (r, c) = self.valid(kind);
        let fits: Vec<TensorId> = self.ins.iter().filter(|i| i.1 == dtype && i.2 == kind).map(|i| i.0).collect();
        let both = self.both.iter().filter(|b| b.1 == dtype && kind == Kind::Whole).map(|b| b.0);
        let all: Vec<TensorId> = fits.into_iter().chain(both).collect();
        if all.is_empty() {
            return None;
        }
        let from = self.d.pick(&all);
        let view = self.k.view(from, r, c);
        let tile = self.names[d].at;
        self.k.load(tile, view);
        self.written(d);
        Some(())
    }

    fn store(&mut self, last: Option<usize>) -> Option<()> {
        let (to, dtype) = match last {
            Some(n) => self.outs[n],
            None if self.d.one_in(2) => self.d.pick(&self.both),
            None => self.d.pick(&self.outs),
        };
        let n = self.source(dtype, Kind::Whole)?;
        let (r, c) = self.shape;
        let view = self.k.view(to, r, c);
        let tile = self.names[n].at;
        self.k.store(view, tile);
        Some(())
    }

    fn element_wise(&mut self) -> Option<()> {
        let d = self.d.below(self.names.len() as u64) as usize;
        let (dtype, kind) = (self.names[d].dtype, self.names[d].kind);
        let plain = InstAttrs::default();
        let float = dtype.is_float();
        match self.d.below(10) {
            0..=3 => {
                let (a, b) = (self.source(dtype, kind)?, self.source(dtype, kind)?);
                let name = match float {
                    true => self.d.pick(&["TADD", "TSUB", "TMUL", "TMAX", "TMIN"]),
                    false => self.d.pick(&["TADD", "TSUB", "TMUL", "TMAX", "TXOR", "TXOR"]),
                };
                self.inst(name, d, &[a, b], None, plain);
            }
            4 => {
                let a = self.source(dtype, kind)?;
                let name = if float {
                    self.d.pick(&["TNEG", "TABS", "TEXP", "TSQRT"])
                } else {
                    self.d.pick(&["TNEG", "TABS"])
                };
                self.inst(name, d, &[a], None, plain);
            }
            5 => {
                let a = self.source(dtype, kind)?;
                let n = self.d.below(7) as f32 - 3.0;
                let s = match float {
                    true => self.k.b.float_const(dtype, n),
                    false => {
                        let bits = ptoc_ir::scalar::from_int(Ty::D(dtype), n as i128);
                        self.k.b.constant(ptoc_ir::tile::Const { ty: Ty::D(dtype), bits })
                    }
                };
                let attrs = InstAttrs { reversed: self.d.one_in(3), ..plain };
                let name = self.d.pick(&["TADDS", "TSUBS", "TMULS"]);
                self.inst(name, d, &[a], Some(s), attrs);
            }
            6 if kind == Kind::Whole => {
                let a = self.source(dtype, kind)?;
                let from_column = self.d.one_in(2);
                let b = self.source(dtype, if from_column { Kind::Column } else { Kind::Row })?;
                let op = self.d.pick(&["ADD", "SUB", "MUL", "MAX"]);
                let name = format!("T{}EXPAND{op}", if from_column { "ROW" } else { "COL" });
                self.inst(&name, d, &[a, b], None, plain);
            }
            7 => {
                // Another dtype.
                let a = self.pick(|n| n.set && n.kind == kind && n.dtype != dtype)?;
                let attrs = InstAttrs { round: Some(RoundMode::Rint), ..plain };
                self.inst("TCVT", d, &[a], None, attrs);
            }
            8 if kind == Kind::Whole => {
                let (a, b) = (self.source(dtype, kind)?, self.source(dtype, kind)?);
                let order = self.names[d].order;
                let mask = self.k.tile("m", Loc::Vec, DType::Bool, (ROWS, COLS), order);
                let mask = self.k.r(mask, self.shape);
                let at = |this: &Self, n: usize| Operand::Tile(this.names[n].at);
                let attrs = InstAttrs { cmp: Some(self.d.pick(&[CmpOp::Lt, CmpOp::Eq, CmpOp::Ge])), ..plain };
                self.k.inst("TCMP", vec![Operand::Tile(mask), at(self, a), at(self, b)], attrs);
                let operands = vec![at(self, d), Operand::Tile(mask), at(self, a), at(self, b)];
                self.k.inst("TSEL", operands, plain);
                self.written(d);
            }
            9 => {
                let a = self.source(dtype, kind)?;
                self.inst("TMOV", d, &[a], None, plain);
            }
            _ => return self.reduction(),
        }
        Some(())
    }

    fn reduction(&mut self) -> Option<()> {
        let d = self.pick(|n| n.kind != Kind::Whole)?;
        let (dtype, kind) = (self.names[d].dtype, self.names[d].kind);
        let a = self.source(dtype, Kind::Whole)?;
        let op = self.d.pick(&["SUM", "MAX", "MIN"]);
        let name = format!("T{}{op}", if kind == Kind::Column { "ROW" } else { "COL" });
        self.inst(&name, d, &[a], None, InstAttrs::default());
        Some(())
    }

    fn nested(&mut self) -> Option<()> {
        if self.depth >= 2 {
            return None;
        }
        let span = self.k.span();
        let before: Vec<bool> = self.names.iter().map(|n| n.set).collect();
        self.depth += 1;
        if self.d.one_in(2) {
            let (lo, hi) = (self.k.c(0), self.k.c(self.d.below(4)));
            let label = self.k.b.label(span);
            let index = self.k.b.new_value(Ty::Index, None, span);
            self.k.b.push_region();
            self.k.b.define_here(index);
            // In the first turn only what was written before is there, and what the turn itself writes.
            self.statements(6);
            let body = self.k.b.pop_region();
            self.k.b.emit(Op::For(Box::new(For { label, index, lo, hi, stages: 1, body })), span);
        } else {
            let (a, b) = (self.shape.0, self.k.c(4));
            let cond = self.k.b.compare(CmpOp::Lt, a, b, span);
            self.k.b.push_region();
            self.statements(5);
            let then = self.k.b.pop_region();
            let after: Vec<bool> = self.names.iter().map(|n| n.set).collect();
            self.names.iter_mut().zip(&before).for_each(|(n, b)| n.set = *b);
            self.k.b.push_region();
            self.statements(3);
            let els = self.k.b.pop_region();
            self.names.iter_mut().zip(after).for_each(|(n, a)| n.set &= a);
            self.k.b.emit(Op::If(Box::new(If { cond, then, els })), span);
        }
        self.depth -= 1;
        self.names.iter_mut().zip(before).for_each(|(n, b)| n.set &= b);
        Some(())
    }

    fn statements(&mut self, most: u64) {
        for _ in 0..1 + self.d.below(most) {
            let _ = match self.d.below(16) {
                0..=2 => self.load(),
                3 | 4 => self.store(None),
                5 | 6 => self.reduction(),
                7 => self.nested(),
                8 => {
                    // Scalars between instructions are nobody's concern.
                    let (r, span) = (self.shape.0, self.k.span());
                    self.k.b.binary(BinOp::Add, r, r, span);
                    Some(())
                }
                _ => self.element_wise(),
            };
        }
    }
}

fn random(seed: u64) -> (Kernel, Args) {
    let mut d = Dice::new(seed);
    let (rows, cols) = (d.pick(&[1i64, 2, 5, 6]), d.pick(&[1i64, 7, 33, 64, 70, 130, 136]));
    let known = d.one_in(3);
    let mut k = K::new("chains");
    let shape = if known { (k.c(rows), k.c(cols)) } else { (k.dim("R"), k.dim("C")) };
    let one = k.c(1);
    let mut g = Gen { k, d, names: vec![], ins: vec![], both: vec![], outs: vec![], shape, one, depth: 0 };
    let mut args = Args { dims: if known { vec![] } else { vec![rows, cols] }, ..Args::default() };
    let extent = |kind: Kind| match kind {
        Kind::Whole => [rows as u64, cols as u64],
        Kind::Column => [rows as u64, 1],
        Kind::Row => [1, cols as u64],
    };
    for dtype in DTYPES {
        for kind in [Kind::Whole, Kind::Whole, Kind::Column, Kind::Row] {
            let (r, c) = g.valid(kind);
            let id = g.k.tensor(&format!("x{}", g.ins.len()), dtype, TensorDir::In, &[r, c]);
            g.ins.push((id, dtype, kind));
            let data = noise(dtype, seed * 91 + g.ins.len() as u64);
            args.tensors.push(tensor(dtype, &extent(kind), data));
        }
    }
    for dtype in DTYPES {
        let id = g.k.tensor(&format!("b{}", g.both.len()), dtype, TensorDir::InOut, &[shape.0, shape.1]);
        g.both.push((id, dtype));
        args.tensors.push(tensor(dtype, &extent(Kind::Whole), tame(dtype, seed + 5)));
        let id = g.k.tensor(&format!("y{}", g.outs.len()), dtype, TensorDir::Out, &[shape.0, shape.1]);
        g.outs.push((id, dtype));
        args.tensors.push(tensor(dtype, &extent(Kind::Whole), []));
    }
    g.k.b.begin_body();
    g.tiles();
    for _ in 0..5 {
        g.load();
    }
    g.statements(24);
    // Every result is written, most from what there is.
    for n in 0..g.outs.len() {
        if g.store(Some(n)).is_none() {
            let dtype = g.outs[n].1;
            let tile = g.k.tile("rest", Loc::Vec, dtype, (ROWS, COLS), Order::Nd);
            let at = g.k.r(tile, g.shape);
            let from = g.ins.iter().find(|i| i.1 == dtype && i.2 == Kind::Whole).unwrap().0;
            let (from, to) = (g.k.view(from, shape.0, shape.1), g.k.view(g.outs[n].0, shape.0, shape.1));
            g.k.load(at, from);
            g.k.store(to, at);
        }
    }
    (g.k.finish(), args)
}

/// The longest body of lanes.
fn longest(region: &loops::Region) -> usize {
    let of = |op: &loops::Op| match op {
        loops::Op::Lanes(l) => l.body.len(),
        loops::Op::For(f) => longest(&f.body),
        loops::Op::If(i) => longest(&i.then).max(longest(&i.els)),
        _ => 0,
    };
    region.iter().map(|s| of(&s.op)).max().unwrap_or(0)
}

#[test]
fn random_chains() {
    let (mut run, mut refused, mut long) = (0, 0, 0);
    for seed in 0..ptoc_tests_budget::cases(225, 900) {
        let (kernel, args) = random(seed);
        // Reading bytes that another tile has written is the author's mistake.
        if pipeline(kernel.clone(), a5()).is_err() || !matches!(run_interpreter(&kernel, &args), End::Done(_)) {
            refused += 1;
            continue;
        }
        agree(&kernel, a5(), &args);
        let block = compile(&kernel, a5()).module.map_or(0, |m| longest(&m.block.body));
        long += usize::from(block > 12);
        run += 1;
    }
    println!("{run} ran, {long} of them with long bodies; {refused} were refused");
    assert!(long > run / 4, "{long} of {run} have a chain of some length");
    assert!(run > 2 * refused, "{run} ran, {refused} were refused");
}

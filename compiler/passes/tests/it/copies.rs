//! Copies that nothing can see, at random: moves between memories, ways through a block's own buffer, products and
//! element-wise instructions that read what was copied, and all that keeps a copy: its source or its source's bytes
//! written in between, other windows, several writers, loops and conditions.

use crate::harness::*;
use crate::nests::Dice;
use ptoc_ir::loops::{self, Base};
use ptoc_ir::tile::{For, If, Kernel, Op, TensorDir, TensorId, TileRef, Ty, Value, ViewRef};
use ptoc_isa::{CmpOp, Loc, Order};
use ptoc_passes::pipeline;
use ptoc_tensor::DType;

const SIDE: u32 = 16;

#[derive(Clone, Debug)]
struct Name {
    at: TileRef,
    loc: Loc,
    dtype: DType,
    /// It was written on every way to here.
    set: bool,
}

struct Gen {
    k: K,
    d: Dice,
    names: Vec<Name>,
    ins: Vec<(TensorId, DType)>,
    outs: Vec<(TensorId, DType)>,
    buffers: Vec<(TensorId, DType)>,
    side: Value,
    /// Half of it, at least 1.
    half: Value,
    depth: u32,
    narrow: DType,
}

impl Gen {
    /// A tile that may be written: mostly a new one, so that bytes change hands.
    fn target(&mut self, loc: Loc, dtype: DType) -> usize {
        let fits: Vec<usize> =
            (0..self.names.len()).filter(|n| (self.names[*n].loc, self.names[*n].dtype) == (loc, dtype)).collect();
        if !fits.is_empty() && self.d.one_in(3) {
            return self.d.pick(&fits);
        }
        let order = if loc == Loc::Mat && self.d.one_in(6) { Order::Dn } else { Order::Nd };
        let tile = self.k.tile("t", loc, dtype, (SIDE, SIDE), order);
        let shape = if self.d.one_in(12) { (self.half, self.side) } else { (self.side, self.side) };
        let at = self.k.r(tile, shape);
        self.names.push(Name { at, loc, dtype, set: false });
        self.names.len() - 1
    }

    fn source(&mut self, fits: impl Fn(&Name) -> bool) -> Option<usize> {
        let all: Vec<usize> = (0..self.names.len()).filter(|n| self.names[*n].set && fits(&self.names[*n])).collect();
        // The last ones are copies of copies.
        let from = if self.d.one_in(2) { all.len().saturating_sub(3) } else { 0 };
        if all.is_empty() { None } else { Some(self.d.pick(&all[from..])) }
    }

    fn view(&mut self, tensor: TensorId, shape: (Value, Value), turned: bool) -> ViewRef {
        let (zero, one, row) = (self.k.c(0), self.k.c(1), self.k.c(i64::from(SIDE)));
        let strides = if turned { vec![one, row] } else { vec![row, one] };
        ViewRef { tensor, offset: zero, shape: vec![shape.0, shape.1], strides }
    }

    fn load(&mut self) -> Option<()> {
        let (from, dtype) = self.d.pick(&self.ins);
        let loc = self.d.pick(&[Loc::Vec, Loc::Vec, Loc::Mat]);
        let d = self.target(loc, dtype);
        let at = self.names[d].at;
        let turned = self.d.one_in(4);
        let view = self.view(from, at.valid, turned);
        self.k.load(at, view);
        self.names[d].set = true;
        Some(())
    }

    fn moved(&mut self) -> Option<()> {
        let s = self.source(|n| !matches!(n.loc, Loc::Left | Loc::Right))?;
        let Name { at, loc, dtype, .. } = self.names[s].clone();
        let to = match loc {
            Loc::Acc => Loc::Vec,
            Loc::Vec => self.d.pick(&[Loc::Vec, Loc::Mat, Loc::Mat]),
            _ => self.d.pick(&[Loc::Left, Loc::Right]),
        };
        let dtype = if loc == Loc::Acc && self.d.one_in(3) { self.narrow } else { dtype };
        let d = self.target(to, dtype);
        self.names[d].at.valid = at.valid;
        let to = self.names[d].at;
        if d != s {
            self.k.tiles("TMOV", &[to, at]);
            self.names[d].set = true;
        }
        Some(())
    }

    fn through_buffer(&mut self) -> Option<()> {
        let s = self.source(|n| !matches!(n.loc, Loc::Left | Loc::Right))?;
        let Name { at, loc, dtype, .. } = self.names[s].clone();
        let dtype = if loc == Loc::Acc && self.d.one_in(3) { self.narrow } else { dtype };
        let fits: Vec<TensorId> = self.buffers.iter().filter(|b| b.1 == dtype).map(|b| b.0).collect();
        let buffer = self.d.pick(&fits);
        let view = self.view(buffer, at.valid, false);
        self.k.store(view.clone(), at);
        if self.d.one_in(4) {
            self.statement();
        }
        for _ in 0..1 + self.d.below(2) {
            let loc = self.d.pick(&[Loc::Vec, Loc::Mat]);
            let d = self.target(loc, dtype);
            self.names[d].at.valid = at.valid;
            let to = self.names[d].at;
            let view = if self.d.one_in(8) { self.view(buffer, at.valid, true) } else { view.clone() };
            self.k.load(to, view);
            self.names[d].set = true;
        }
        // A last load takes what is in the buffer now, whoever was the last to write there.
        Some(())
    }

    fn product(&mut self) -> Option<()> {
        let dtype = self.d.pick(&[DType::F32, self.narrow]);
        let square = (self.side, self.side);
        let a = self.source(|n| n.loc == Loc::Left && n.dtype == dtype && n.at.valid == square)?;
        let b = self.source(|n| n.loc == Loc::Right && n.dtype == dtype && n.at.valid == square)?;
        let d = self.target(Loc::Acc, DType::F32);
        self.names[d].at.valid = square;
        let (d_at, a, b) = (self.names[d].at, self.names[a].at, self.names[b].at);
        match self.names[d].set && self.d.one_in(2) {
            true => self.k.tiles("TMATMUL_ACC", &[d_at, d_at, a, b]),
            false => self.k.tiles("TMATMUL", &[d_at, a, b]),
        }
        self.names[d].set = true;
        Some(())
    }

    fn element_wise(&mut self) -> Option<()> {
        let a = self.source(|n| n.loc == Loc::Vec)?;
        let Name { at, dtype, .. } = self.names[a].clone();
        let b = self.source(|n| n.loc == Loc::Vec && n.dtype == dtype && n.at.valid == at.valid)?;
        let d = self.target(Loc::Vec, dtype);
        self.names[d].at.valid = at.valid;
        let name = self.d.pick(&["TADD", "TSUB", "TMAX"]);
        self.k.tiles(name, &[self.names[d].at, at, self.names[b].at]);
        self.names[d].set = true;
        Some(())
    }

    fn store(&mut self) -> Option<()> {
        let s = self.source(|n| n.loc == Loc::Vec || n.loc == Loc::Mat)?;
        let Name { at, dtype, .. } = self.names[s].clone();
        let fits: Vec<TensorId> = self.outs.iter().filter(|o| o.1 == dtype).map(|o| o.0).collect();
        let to = self.d.pick(&fits);
        let view = self.view(to, at.valid, false);
        self.k.store(view, at);
        Some(())
    }

    fn nested(&mut self) -> Option<()> {
        if self.depth >= 2 {
            return None;
        }
        let span = self.k.span();
        let (known, before) = (self.names.len(), self.names.clone());
        self.depth += 1;
        if self.d.one_in(3) {
            let four = self.k.c(4);
            let cond = self.k.b.compare(CmpOp::Lt, self.side, four, span);
            self.k.b.push_region();
            self.statements(5);
            let then = self.k.b.pop_region();
            self.names = before.clone();
            self.k.b.push_region();
            self.statements(3);
            let els = self.k.b.pop_region();
            self.k.b.emit(Op::If(Box::new(If { cond, then, els })), span);
        } else {
            let (lo, hi) = (self.k.c(0), self.k.c(1 + self.d.below(3)));
            let label = self.k.b.label(span);
            let index = self.k.b.new_value(Ty::Index, None, span);
            self.k.b.push_region();
            self.k.b.define_here(index);
            self.statements(10);
            let body = self.k.b.pop_region();
            self.k.b.emit(Op::For(Box::new(For { label, index, lo, hi, stages: 1, body })), span);
        }
        self.depth -= 1;
        self.names.truncate(known);
        self.names = before;
        Some(())
    }

    fn statement(&mut self) {
        let _ = match self.d.below(16) {
            0..=2 => self.load(),
            3..=6 => self.moved(),
            7..=8 => self.through_buffer(),
            9..=11 => self.product(),
            12..=13 => self.element_wise(),
            14 => self.store(),
            _ => self.nested(),
        };
    }

    fn statements(&mut self, most: u64) {
        for _ in 0..2 + self.d.below(most) {
            self.statement();
        }
    }
}

fn random(seed: u64) -> (Kernel, Args) {
    let mut d = Dice::new(seed);
    let n = d.pick(&[1i64, 3, 8, 16]);
    let narrow = d.pick(&[DType::F16, DType::BF16]);
    let known = d.one_in(3);
    let mut k = K::new("copies");
    let (side, half) = if known { (k.c(n), k.c((n / 2).max(1))) } else { (k.dim("N"), k.dim("H")) };
    let mut g = Gen { k, d, names: vec![], ins: vec![], outs: vec![], buffers: vec![], side, half, depth: 0, narrow };
    let mut args = Args { dims: if known { vec![] } else { vec![n, (n / 2).max(1)] }, ..Args::default() };
    let full = g.k.c(i64::from(SIDE));
    let shape = [u64::from(SIDE); 2];
    for n in 0..6 {
        let dtype = if n % 2 == 0 { DType::F32 } else { narrow };
        if n < 4 {
            let id = g.k.tensor(&format!("x{n}"), dtype, TensorDir::In, &[full, full]);
            g.ins.push((id, dtype));
            args.tensors.push(tensor(dtype, &shape, tame(dtype, seed * 31 + n)));
        }
    }
    for n in 0..4 {
        let dtype = if n % 2 == 0 { DType::F32 } else { narrow };
        let id = g.k.tensor(&format!("y{n}"), dtype, TensorDir::InOut, &[full, full]);
        g.outs.push((id, dtype));
        args.tensors.push(tensor(dtype, &shape, tame(dtype, seed + n)));
    }
    for n in 0..12 {
        let dtype = if n % 2 == 0 { DType::F32 } else { narrow };
        let id = g.k.tensor(&format!("gm{n}"), dtype, TensorDir::Scratch, &[full, full]);
        g.buffers.push((id, dtype));
    }
    g.k.b.begin_body();
    // Something of each kind.
    for _ in 0..4 {
        g.load();
    }
    for _ in 0..4 {
        g.moved();
    }
    g.statements(30);
    for _ in 0..6 {
        g.store();
    }
    (g.k.finish(), args)
}

/// Products that read an operand elsewhere than in L0.
fn in_place(module: &loops::Module, region: &loops::Region) -> usize {
    let elsewhere = |base: Base| match base {
        Base::Space(s) => !matches!(&*module.spaces[s].name, "Left" | "Right"),
        Base::Tensor(_) => false,
    };
    let of = |op: &loops::Op| match op {
        loops::Op::Contract(c) => usize::from(elsewhere(c.a.base)) + usize::from(elsewhere(c.b.base)),
        loops::Op::For(f) => in_place(module, &f.body),
        loops::Op::If(i) => in_place(module, &i.then) + in_place(module, &i.els),
        _ => 0,
    };
    region.iter().map(|s| of(&s.op)).sum()
}

#[test]
fn random_copies() {
    let (mut run, mut refused, mut without) = (0u64, 0, 0u64);
    let all = ptoc_tests_budget::cases(300, 1200);
    for seed in 0..all {
        let (kernel, args) = random(seed);
        let Ok(prepared) = pipeline(kernel.clone(), a5()) else {
            refused += 1;
            continue;
        };
        if !matches!(run_interpreter(&kernel, &args), End::Done(_)) {
            refused += 1;
            continue;
        }
        agree(&kernel, a5(), &args);
        without += prepared.module.map_or(0, |m| u64::from(in_place(&m, &m.block.body) > 0));
        run += 1;
    }
    println!("{run} ran, {without} of them read operands where they were copied from; {refused} were refused");
    assert!(run > all / 2 && without > run / 8, "{run} ran, {without} forwarded, {refused} were refused");
}

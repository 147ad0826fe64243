//! Overlap, use before write and dead stores against runs of the interpreter, on random kernels whose tiles lie on top
//! of each other.

use crate::harness::*;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_interp::{InterpreterLaunch, Options};
use ptoc_ir::tile::{
    AddrKind, Const, For, If, InstAttrs, Kernel, Op, Operand, PrintPart, Region, TensorDir, TensorId, Tile, TileRef,
    Ty, Value, ViewRef,
};
use ptoc_isa::{CmpOp, Loc, Order, Target, TileType};
use ptoc_passes::place;
use ptoc_tensor::DType;
use std::collections::BTreeMap;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % n
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A tile with its shape.
#[derive(Clone, Copy)]
struct T {
    tile: Tile,
    dtype: DType,
    rows: u32,
    cols: u32,
}

struct Gen {
    r: Random,
    k: K,
    tiles: Vec<T>,
    inputs: BTreeMap<DType, TensorId>,
    /// Constants that values differ by.
    next: i64,
    flags: Vec<Value>,
    /// A dimension from 0 on, and one of 1 or 2.
    trips: Value,
    few: Value,
    /// Indices of the loops around, with their trip counts.
    loops: Vec<(Value, u32)>,
    /// Valid shapes may depend on the launch.
    symbolic: bool,
    budget: u32,
}

impl Gen {
    fn window(&mut self, t: T, shape: Option<(u32, u32)>) -> TileRef {
        let whole = shape.is_none() && self.r.below(5) < 3;
        let (rows, cols) = shape.unwrap_or_else(|| match whole {
            true => (t.rows, t.cols),
            false => (1 + self.r.below(t.rows as usize) as u32, 1 + self.r.below(t.cols as usize) as u32),
        });
        let (free_rows, free_cols) = (t.rows - rows, t.cols - cols);
        let mut row = Gen::number(&mut self.k, self.r.below(free_rows as usize + 1));
        // The loop moves the window.
        let fits: Vec<Value> = self.loops.iter().filter(|(_, n)| *n <= free_rows + 1).map(|(v, _)| *v).collect();
        if !fits.is_empty() && self.r.one_in(2) {
            row = fits[self.r.below(fits.len())];
        }
        let col = Gen::number(&mut self.k, self.r.below(free_cols as usize + 1));
        let (mut vr, vc) = (Gen::number(&mut self.k, rows as usize), Gen::number(&mut self.k, cols as usize));
        if rows >= 2 && self.symbolic && shape.is_none() && self.r.one_in(4) {
            vr = self.few;
        }
        let origin = (rows, cols) != (t.rows, t.cols);
        TileRef { tile: t.tile, element: None, origin: origin.then_some((row, col)), rows, cols, valid: (vr, vc) }
    }

    fn number(k: &mut K, n: usize) -> Value {
        k.c(n as i64)
    }

    fn any(&mut self) -> T {
        self.tiles[self.r.below(self.tiles.len())]
    }

    fn scalar(&mut self, dtype: DType) -> Value {
        self.next += 1;
        let bits = ptoc_ir::scalar::from_int(Ty::D(dtype), i128::from(self.next));
        self.k.b.constant(Const { ty: Ty::D(dtype), bits })
    }

    fn write(&mut self) {
        let t = self.any();
        match self.r.below(5) {
            0 => {
                let w = self.window(t, None);
                let (n, offset) = (self.r.below(900), self.inputs[&t.dtype]);
                let (at, stride, one) = (self.k.c(n as i64), self.k.c(40), self.k.c(1));
                let view = ViewRef {
                    tensor: offset,
                    offset: at,
                    shape: vec![w.valid.0, w.valid.1],
                    strides: vec![stride, one],
                };
                self.k.load(w, view);
            }
            1 | 2 => {
                let (w, s) = (self.window(t, None), self.scalar(t.dtype));
                self.k.inst("TEXPANDS", vec![Operand::Tile(w), Operand::Scalar(s)], InstAttrs::default());
            }
            3 => {
                let (i, j) = (self.r.below(t.rows as usize), self.r.below(t.cols as usize));
                let (i, j, value) = (self.k.c(i as i64), self.k.c(j as i64), self.scalar(t.dtype));
                let valid = (self.k.c(i64::from(t.rows)), self.k.c(i64::from(t.cols)));
                let tile = self.k.r(t.tile, valid);
                let span = self.k.span();
                self.k.b.emit(Op::TileSet { tile, row: i, col: j, value }, span);
            }
            _ => {
                let others: Vec<T> = self.tiles.iter().copied().filter(|o| o.dtype == t.dtype).collect();
                let other = others[self.r.below(others.len())];
                let shape = (
                    1 + self.r.below(t.rows.min(other.rows) as usize) as u32,
                    1 + self.r.below(t.cols.min(other.cols) as usize) as u32,
                );
                let (dst, src, s) =
                    (self.window(t, Some(shape)), self.window(other, Some(shape)), self.scalar(t.dtype));
                let dst = TileRef { valid: src.valid, ..dst };
                let operands = vec![Operand::Tile(dst), Operand::Tile(src), Operand::Scalar(s)];
                self.k.inst("TADDS", operands, InstAttrs::default());
                let span = self.k.span();
                self.k.b.emit(Op::Print { parts: vec![PrintPart::Tile(dst)] }, span);
            }
        }
    }

    fn read(&mut self) {
        let t = self.any();
        let w = self.window(t, None);
        let span = self.k.span();
        self.k.b.emit(Op::Print { parts: vec![PrintPart::Tile(w)] }, span);
    }

    fn body(&mut self, depth: u32) {
        for _ in 0..2 + self.r.below(4) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            match self.r.below(10) {
                0..=4 => self.write(),
                5..=7 => self.read(),
                8 if depth < 2 => {
                    let (lo, span) = (self.k.c(0), self.k.span());
                    let known = 1 + self.r.below(4) as u32;
                    let symbolic = self.r.one_in(3);
                    let (hi, most) = if symbolic { (self.trips, 5) } else { (self.k.c(i64::from(known)), known) };
                    let label = self.k.b.label(span);
                    let index = self.k.b.new_value(Ty::Index, Some("i".into()), span);
                    self.k.b.push_region();
                    self.k.b.define_here(index);
                    self.loops.push((index, most));
                    if self.r.one_in(4) && !self.tiles.is_empty() {
                        let c = self.k.b.compare(CmpOp::Eq, index, lo, span);
                        self.choose(c, depth);
                    }
                    self.body(depth + 1);
                    self.loops.pop();
                    let body = self.k.b.pop_region();
                    self.k.b.emit(Op::For(Box::new(For { label, index, lo, hi, stages: 1, body })), span);
                }
                9 if depth < 3 => {
                    let c = self.flags[self.r.below(self.flags.len())];
                    self.choose(c, depth);
                }
                _ => self.write(),
            }
        }
    }

    fn choose(&mut self, cond: Value, depth: u32) {
        let span = self.k.span();
        self.k.b.push_region();
        self.body(depth + 1);
        let then = self.k.b.pop_region();
        self.k.b.push_region();
        if self.r.one_in(2) {
            self.body(depth + 1);
        }
        let els = self.k.b.pop_region();
        self.k.b.emit(Op::If(Box::new(If { cond, then, els })), span);
    }
}

fn symbolic(seed: u64) -> bool {
    seed.is_multiple_of(3)
}

fn random_kernel(seed: u64) -> Kernel {
    let mut k = K::new("random");
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    for _ in 0..5 {
        r.below(2);
    }
    let (trips, few) = (k.dim("N"), k.dim("R"));
    let size = k.c(4096);
    let one = k.c(1);
    let mut inputs = BTreeMap::new();
    for (name, dtype) in [("a", DType::F32), ("b", DType::I32), ("h", DType::F16)] {
        inputs.insert(dtype, k.tensor(name, dtype, TensorDir::In, &[one, size]));
    }
    let symbolic = symbolic(seed);
    let flags: Vec<Value> = ["p", "q"].iter().map(|n| k.b.scalar_param(*n, Ty::BOOL, at(1))).collect();
    k.b.begin_body();
    let mut g =
        Gen { r, k, tiles: Vec::new(), inputs, next: 0, flags, trips, few, loops: Vec::new(), symbolic, budget: 40 };
    for n in 0..2 + g.r.below(3) {
        let dtype = [DType::F32, DType::I32, DType::F16, DType::F32][g.r.below(4)];
        let (rows, cols) = [(4, 8), (2, 16), (8, 8), (6, 16)][g.r.below(4)];
        let order = if g.r.one_in(4) { Order::Dn } else { Order::Nd };
        let addr = match g.r.below(8) {
            0 => AddrKind::Auto,
            _ => AddrKind::Fixed(vec![32 * g.r.below(14) as u64]),
        };
        let ty = TileType { loc: Loc::Vec, dtype, rows, cols, order, layout: None };
        let tile = g.k.place(&format!("t{n}"), ty, addr, 1, 1);
        g.tiles.push(T { tile, dtype, rows, cols });
    }
    // Half of the kernels start with everything written, so that more than the first read counts.
    if g.r.one_in(2) {
        for t in g.tiles.clone() {
            let s = g.scalar(t.dtype);
            let valid = (g.k.c(i64::from(t.rows)), g.k.c(i64::from(t.cols)));
            let w = g.k.r(t.tile, valid);
            g.k.inst("TEXPANDS", vec![Operand::Tile(w), Operand::Scalar(s)], InstAttrs::default());
        }
    }
    g.body(0);
    g.k.finish()
}

/// What a run prints, or the code with which it ends.
fn run(kernel: &Kernel, dims: [i64; 2], flags: u64) -> Result<String, &'static str> {
    let mut printed = String::new();
    let data = |dtype, seed| tensor(dtype, &[1, 4096], tame(dtype, seed));
    let mut launch = InterpreterLaunch {
        tensors: vec![data(DType::F32, 1), data(DType::I32, 2), data(DType::F16, 3)],
        dims: dims.to_vec(),
        scalars: vec![Some(flags & 1), Some(flags >> 1)],
        options: Options::default(),
        print: &mut |line| printed.push_str(line),
    };
    let end = ptoc_interp::run(kernel, &mut launch);
    match end {
        Ok(_) => Ok(printed),
        Err(trap) => Err(trap.code.as_str()),
    }
}

fn runs(kernel: &Kernel, symbolic: bool) -> Vec<Result<String, &'static str>> {
    let mut out = Vec::new();
    for trips in [0, 1, 4] {
        for few in if symbolic { 1..=2 } else { 1..=1 } {
            out.extend((0..4).map(|flags| run(kernel, [trips, few], flags)));
        }
    }
    out
}

/// Without the statements at these places.
fn without(region: &Region, spans: &[Span]) -> Region {
    let kept =
        region.iter().filter(|s| !spans.contains(&s.span) || matches!(s.op, Op::Const { .. } | Op::Alloc { .. }));
    kept.cloned()
        .map(|mut s| {
            match &mut s.op {
                Op::For(f) => f.body = without(&f.body, spans),
                Op::If(i) => {
                    i.then = without(&i.then, spans);
                    i.els = without(&i.els, spans);
                }
                _ => {}
            }
            s
        })
        .collect()
}

#[derive(Default, Debug)]
struct Counts {
    refused: u32,
    warned: u32,
    overlaps: u32,
    destroyed: u32,
    dead: u32,
    clean: u32,
}

fn of(code: ptoc_diagnostics::Code, all: &[Diagnostic]) -> Vec<Span> {
    all.iter().filter(|d| d.code == code).filter_map(|d| d.span).collect()
}

fn try_one(seed: u64, target: &Target, counts: &mut Counts) {
    let kernel = random_kernel(seed);
    let poison = codes::TRAP_POISON_READ_TILE.as_str();
    let found = runs(&kernel, symbolic(seed));
    let (placed, said) = match place(kernel.clone(), target) {
        Ok((placed, said)) => (Some(placed), said),
        Err(said) => (None, said),
    };
    let show = || format!("seed {seed}\n{kernel}\n{said:#?}");
    let refused = !of(codes::UNINITIALISED, &said).is_empty();
    let warned = !of(codes::MAYBE_UNINITIALISED, &said).is_empty();
    assert!(placed.is_some() || refused, "another error\n{}", show());
    if refused {
        counts.refused += 1;
        assert!(found.contains(&Err(poison)), "an error, and no run traps\n{}", show());
        // Where nothing is conditional, every run does.
        if !kernel.body.iter().any(|s| matches!(s.op, Op::If(_) | Op::For(_))) {
            assert!(found.iter().all(|r| *r == Err(poison)), "an error, and some run is right\n{}", show());
        }
        return;
    }
    let placed = placed.expect("no error");
    let checked = runs(&placed.kernel, symbolic(seed));
    for (source, checked) in found.iter().zip(&checked) {
        let covered = warned || *checked == Err(codes::EMPTY_LOOP.as_str());
        assert!(*source != Err(poison) || covered, "a run traps, and nothing was said\n{}", show());
        assert!(source.is_ok() || *source == Err(poison), "{source:?}\n{}", show());
        assert!(placed.watched || *checked != Err(poison), "a run traps, and machine code is not watched\n{}", show());
    }
    counts.warned += u32::from(warned);
    // Each tile in a storage of its own.
    let mut apart = kernel.clone();
    let tiles: Vec<Tile> = apart.tiles.keys().collect();
    for t in tiles {
        apart.tiles[t].addr = AddrKind::Auto;
    }
    let alone = runs(&apart, symbolic(seed));
    let differ = found.iter().zip(&alone).any(|(a, b)| matches!((a, b), (Ok(x), Ok(y)) if x != y));
    let overlaps = !of(codes::OVERLAP, &said).is_empty();
    counts.overlaps += u32::from(overlaps);
    counts.destroyed += u32::from(differ);
    // Where valid shapes are the launch's, blocks are taken as full, which these never are.
    if overlaps && !warned && !symbolic(seed) {
        let other = found.iter().zip(&alone).any(|(a, b)| a != b);
        assert!(other, "an overlap, and every run is the same\n{}", show());
    }
    // A kernel that runs with the tiles apart reads nothing through an alias.
    if !warned && alone.iter().all(Result::is_ok) {
        assert!(!differ || overlaps, "a value was destroyed, and nothing was said\n{}", show());
        counts.clean += u32::from(!overlaps);
    }
    let dead = of(codes::DEAD_STORE, &said);
    if !dead.is_empty() {
        counts.dead += 1;
        let mut shorter = kernel.clone();
        shorter.body = without(&kernel.body, &dead);
        assert_eq!(found, runs(&shorter, symbolic(seed)), "a store was not dead\n{}", show());
    }
}

#[test]
fn findings_are_those_of_the_interpreter() {
    let mut counts = Counts::default();
    let from = std::env::var("BYTES_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1u64);
    let n: u32 = ptoc_tests_budget::cases(100, 300);
    for seed in from..from + u64::from(n) {
        try_one(seed, a5(), &mut counts);
    }
    eprintln!("{counts:?}");
    let Counts { refused, warned, overlaps, destroyed, dead, clean } = counts;
    assert!([refused, overlaps, destroyed, dead, clean].iter().all(|k| *k >= n / 15), "{counts:?}");
    assert!(n < 300 || warned > 0, "{counts:?}");
}

/// 127 of 128 rows are written, then all are read.
const SHORT: &str = "\
kernel \"copy\" target \"a2a3\"
tensor g0 \"a\" in f32 [v0, v1]
tensor g1 \"c\" out f32 [v0, v1]
tile t0 \"x\" Vec<f32, 128, 64>
label l0
prologue {
  v0: index = const 128
  v1: index = const 64
  v2: index = const 0
  v3: index = const 1
  v4: index = const 8192
  v5: index = const 127
}
grid []
body {
  alloc t0
  for l0 v6 \"r\": index in v2..v5 {
    v7: index = mul v6, v1
    tload t0[1x64 v3, v1 at v6, v2], g0[v7 + (v3, v1):(v3, v3)]
  }
  tstore g1[v2 + (v0, v1):(v1, v3)], t0[128x64 v0, v1]
}
";

#[test]
fn scratch_of_the_compiler_is_looked_at() {
    let target = Target::builtin("a2a3").expect("built in");
    let kernel = ptoc_ir::tile::text::parse(SHORT, ptoc_diagnostics::FileId(0)).expect("it parses");
    for hidden in [false, true] {
        let mut kernel = kernel.clone();
        kernel.tiles.values_mut().for_each(|t| t.hidden = hidden);
        let errors = place(kernel, target).expect_err("a row is unwritten");
        let told: Vec<_> = errors.iter().map(|d| (d.code, d.message.contains("a bug of ptoc"))).collect();
        assert_eq!(told, [(codes::UNINITIALISED, hidden)]);
    }
}

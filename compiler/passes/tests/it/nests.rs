//! Copies along random nests of axes: the lowered loops do what the interpreter does, wrong entries of tables included.

use crate::harness::*;
use ptoc_ir::tile::{
    AddrKind, Affine, Const, Copy, Elem, Guard, Kernel, NestAccess, Table, TensorDir, TensorId, Tile, TileRef, Ty,
    Value,
};
use ptoc_isa::{Loc, Oob, Order, TileType};
use ptoc_layout::{Swizzle, TileLayout, parse_value};
use ptoc_tensor::DType;

/// Repeatable random numbers.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// In `0..n`.
    pub fn below(&mut self, n: u64) -> i64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % n) as i64
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    pub fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..n).collect();
        for i in (1..n).rev() {
            order.swap(i, self.below(i as u64 + 1) as usize);
        }
        order
    }
}

/// An affine function with its numbers.
#[derive(Clone, Debug)]
pub struct Line {
    pub start: i64,
    pub steps: Vec<i64>,
}

impl Line {
    /// The least and the greatest value below the extents.
    fn range(&self, extents: &[i64]) -> (i64, i64) {
        self.steps.iter().zip(extents).fold((self.start, self.start), |(low, high), (&s, &e)| {
            let most = s * (e - 1).max(0);
            (low + most.min(0), high + most.max(0))
        })
    }

    /// Moves the start so that nothing is negative; the number of values to make room for.
    fn shifted_to_zero(&mut self, extents: &[i64], slack: i64) -> i64 {
        let (low, _) = self.range(extents);
        self.start += slack - low;
        self.range(extents).1 + 1
    }
}

/// A kernel that copies, in the making: numbers are constants, or arguments of the launch.
pub struct Nest {
    pub k: K,
    pub args: Args,
    pub extents: Vec<i64>,
    pub symbolic: bool,
    /// Data without infinities and NaN, so that sums say something.
    pub tame: bool,
    /// Tensor parameters come first: what the body does is told later.
    later: Vec<(i64, Value)>,
}

impl Nest {
    pub fn new(extents: Vec<i64>, symbolic: bool) -> Nest {
        Nest { k: K::new("nest"), args: Args::default(), extents, symbolic, tame: false, later: Vec::new() }
    }

    /// A number: a constant, or an argument with that value.
    pub fn number(&mut self, d: &mut Dice, n: i64) -> Value {
        // Of a product's side it must be known which axes it does not see.
        if !self.symbolic || d.one_in(2) || (n == 0 && self.tame) {
            return self.k.c(n);
        }
        if let Some((_, v)) = self.later.iter().find(|(m, _)| *m == n) {
            return *v;
        }
        let span = self.k.span();
        let name = format!("s{}", self.args.scalars.len());
        let v = self.k.b.scalar_param(name, Ty::Index, span);
        self.args.scalars.push(n as u64);
        self.later.push((n, v));
        v
    }

    pub fn affine(&mut self, d: &mut Dice, line: &Line) -> Affine {
        let start = self.number(d, line.start);
        let strides = line.steps.iter().map(|&s| self.number(d, s)).collect();
        Affine { start, strides }
    }

    fn data(&self, dtype: DType, seed: u64) -> Box<dyn Iterator<Item = u64>> {
        if self.tame { Box::new(tame(dtype, seed)) } else { Box::new(noise(dtype, seed)) }
    }

    /// A row-major tensor of constant shape with this data, or with nothing in it.
    pub fn tensor(&mut self, name: &str, dtype: DType, shape: &[i64], bits: impl Iterator<Item = u64>) -> TensorId {
        let dims: Vec<Value> = shape.iter().map(|&n| self.k.c(n)).collect();
        let sizes: Vec<u64> = shape.iter().map(|&n| n as u64).collect();
        self.args.tensors.push(tensor(dtype, &sizes, bits));
        self.k.tensor(name, dtype, TensorDir::InOut, &dims)
    }
}

/// What a side of the copy is made of, before there is a body.
pub enum Plan {
    Tensor(NestAccess),
    /// Rows, columns, and the type.
    Tile(Line, Line, TileType, AddrKind, (i64, i64)),
}

/// Steps so that no two elements meet: axis after axis in random order, with gaps.
fn stacked(d: &mut Dice, extents: &[i64], gaps: bool) -> Vec<i64> {
    let mut steps = vec![0; extents.len()];
    let mut next = 1;
    for a in d.shuffled(extents.len()) {
        steps[a] = next + if gaps && d.one_in(4) { d.below(3) } else { 0 };
        next = steps[a] * extents[a].max(1);
    }
    steps
}

fn any_steps(d: &mut Dice, extents: &[i64]) -> Vec<i64> {
    if !d.one_in(3) {
        return stacked(d, extents, true);
    }
    extents.iter().map(|_| d.pick(&[0, 1, 1, 2, 3, 7, -1, -5, 16])).collect()
}

/// A layout for at least rows x cols elements, injective, perhaps swizzled; and what it is for.
fn layout(d: &mut Dice, rows: i64, cols: i64) -> (TileLayout, (u32, u32)) {
    let mut leaves = |n: i64| -> Vec<i64> {
        let parts = d.pick(&[&[1][..], &[2], &[4], &[2, 2], &[8], &[3], &[4, 2]]).to_vec();
        let whole: i64 = parts.iter().product();
        [parts, vec![(n + whole - 1) / whole]].concat()
    };
    let (r, c) = (leaves(rows), leaves(cols));
    let all: Vec<i64> = r.iter().chain(&c).copied().collect();
    let steps = stacked(d, &all, d.0.is_multiple_of(2));
    let list = |xs: &[i64]| format!("({})", xs.iter().map(i64::to_string).collect::<Vec<_>>().join(","));
    let n = r.len();
    let mut text = format!("({},{}):({},{})", list(&r), list(&c), list(&steps[..n]), list(&steps[n..]));
    if d.one_in(2) {
        let (bits, base) = (d.below(3) + 1, d.below(4));
        let shift = bits + d.below(2);
        let shift = if d.one_in(4) { -shift } else { shift };
        text = format!("Sw<{bits},{base},{shift}> o {} o {text}", d.pick(&[0, 0, 3]));
    }
    let value = parse_value(&text).unwrap_or_else(|e| panic!("{text}: {e:?}"));
    let layout = TileLayout::new(&value).unwrap_or_else(|e| panic!("{text}: {e}"));
    (layout, (layout.rows() as u32, layout.cols() as u32))
}

/// A tile side: each axis goes along rows or columns (`apart`: so that no two elements meet).
pub fn tile_plan(d: &mut Dice, dtype: DType, extents: &[i64], apart: bool) -> Plan {
    let zero = vec![0; extents.len()];
    let (mut row, mut col) = (zero.clone(), zero);
    if apart {
        let along: Vec<bool> = extents.iter().map(|_| d.one_in(2)).collect();
        let of = |down: bool| -> Vec<i64> {
            extents.iter().zip(&along).map(|(&e, &a)| if a == down { e } else { 1 }).collect()
        };
        for (steps, down) in [(&mut row, true), (&mut col, false)] {
            let all = stacked(d, &of(down), true);
            for a in 0..extents.len() {
                steps[a] = if along[a] == down { all[a] } else { 0 };
            }
        }
    } else {
        for a in 0..extents.len() {
            (row[a], col[a]) = (d.pick(&[0, 0, 1, 1, 2, -1]), d.pick(&[0, 1, 1, 2, 3]));
        }
    }
    let (mut row, mut col) = (Line { start: 0, steps: row }, Line { start: 0, steps: col });
    let slack = d.below(2);
    let (rows, cols) = (row.shifted_to_zero(extents, slack), col.shifted_to_zero(extents, d.below(3)));
    // A window: the first row and column of the tile that it has.
    let origin = if d.one_in(3) { (d.below(3), 4 * d.below(2)) } else { (0, 0) };
    let (r, c) = ((rows + origin.0) as u32, (cols + origin.1) as u32);
    let plain = |loc, order| TileType { loc, dtype, rows: r, cols: c, order, layout: None };
    let ty = match d.below(if dtype == DType::Bool { 1 } else { 8 }) {
        0 => plain(Loc::Vec, Order::Nd),
        1 => plain(Loc::Vec, Order::Dn),
        2 => plain(Loc::Left, Order::Nd),
        3 => plain(Loc::Right, Order::Dn),
        4 => plain(Loc::Mat, Order::Nd),
        _ => {
            let (layout, (rows, cols)) = layout(d, i64::from(r), i64::from(c));
            let loc = d.pick(&[Loc::Vec, Loc::Mat]);
            TileType { loc, dtype, rows, cols, order: Order::Nd, layout: Some(layout) }
        }
    };
    Plan::Tile(row, col, ty, AddrKind::Auto, origin)
}

/// How a random copy may go wrong.
#[derive(Clone, Copy, PartialEq)]
pub enum Tables {
    None,
    Valid,
    Wrong,
}

/// A tensor side of `count` elements or so.
pub fn tensor_plan(n: &mut Nest, d: &mut Dice, name: &str, dtype: DType, apart: bool, tables: Tables) -> Plan {
    let extents = n.extents.clone();
    let mut steps = if apart { stacked(d, &extents, true) } else { any_steps(d, &extents) };
    let elem = match dtype {
        DType::U8 if !apart && d.one_in(2) => Elem::U4,
        DType::I8 if !apart && d.one_in(2) => Elem::I4,
        _ => Elem::Whole(dtype),
    };
    let mut looked = Vec::new();
    if tables != Tables::None && !extents.is_empty() {
        for t in 0..1 + d.below(2) {
            let a = d.below(extents.len() as u64) as usize;
            let mut line = Line { start: d.below(2), steps: vec![0; extents.len()] };
            line.steps[a] = d.pick(&[1, 1, 2]);
            if !apart && d.one_in(3) {
                line.steps[d.below(extents.len() as u64) as usize] = 1;
            }
            if apart && !looked.is_empty() {
                break;
            }
            let len = line.range(&extents).1 + 1;
            let oob = if apart { d.pick(&[Oob::Undefined, Oob::Clamp]) } else { d.pick(Oob::ALL) };
            let extent = if apart { extents[a].max(1) } else { d.pick(&[1, 3, 5]) };
            let entry_ty = d.pick(&[DType::I32, DType::U32, DType::I64, DType::U8, DType::I16]);
            let order = d.shuffled(extent as usize);
            let entries: Vec<u64> = (0..len)
                .map(|i| {
                    let inside = if apart {
                        order[(((i - line.start) / line.steps[a]).max(0) % extent) as usize] as i64
                    } else {
                        d.below(extent as u64)
                    };
                    let wrong = match oob {
                        Oob::Undefined => tables == Tables::Wrong && d.one_in(6),
                        _ => !apart && d.one_in(4),
                    };
                    let bad = d.pick(&[extent, extent + 7, if entry_ty.is_signed_int() { -3 } else { extent }]);
                    (if wrong { bad } else { inside }) as u64
                })
                .collect();
            let cols = d.pick(&[1, len.max(1)]);
            let shape = match d.below(3) {
                0 => vec![len],
                _ => vec![(len + cols - 1) / cols.max(1), cols],
            };
            let padded = entries.into_iter().chain(std::iter::repeat(0));
            let tensor = n.tensor(&format!("table{t}_{name}"), entry_ty, &shape, padded);
            let span = if apart {
                // The entries of the axis take its place.
                let step = steps[a];
                steps[a] = 0;
                step
            } else {
                d.pick(&[0, 1, 6])
            };
            looked.push((tensor, line, span, extent, oob));
        }
    }
    let mut at = Line { start: 0, steps };
    let mut count = at.shifted_to_zero(&extents, d.below(4));
    for (_, _, stride, extent, _) in &looked {
        count += stride * (extent - 1);
    }
    // Swizzled numbers stay below a power of two.
    let mut swizzle = None;
    if d.one_in(4) {
        let log = 64 - (count as u64).leading_zeros() as i64;
        let (bits, base) = (1 + d.below(3), d.below(4));
        let shift = bits + d.below(2);
        if bits + base + shift <= log + 2 {
            let log = log.max(bits + base + shift);
            count = 1 << log;
            let shift = if d.one_in(3) { -shift } else { shift };
            swizzle = Some(Swizzle::new(bits, base, shift).unwrap());
        }
    }
    // A NaN on its way through widened storage becomes another NaN, which only another dtype would notice.
    let kept = !matches!(dtype, DType::Bool | DType::F16 | DType::BF16);
    let own = match elem {
        Elem::Whole(_) if kept && d.one_in(3) => d.pick(&[DType::U8, DType::I16, DType::F32]),
        Elem::Whole(d) => d,
        _ => DType::U8,
    };
    let bits = count * i64::from(elem.bits());
    let len = (bits + 8 * own.size() as i64 - 1) / (8 * own.size() as i64);
    let seed = d.below(1 << 40) as u64;
    let data = n.data(own, seed);
    let tensor = n.tensor(name, own, &[len], data);
    let at = n.affine(d, &at);
    let tables = looked
        .into_iter()
        .map(|(tensor, line, stride, extent, oob)| Table {
            tensor,
            at: n.affine(d, &line),
            stride: n.number(d, stride),
            extent: n.number(d, extent),
            oob,
        })
        .collect();
    Plan::Tensor(NestAccess::Tensor { tensor, elem, at, swizzle, tables })
}

/// The whole of a tile from or to a tensor of its rows and columns.
fn whole(n: &mut Nest, tile: Tile, ty: TileType, tensor: TensorId, load: bool) {
    let (rows, cols) = (n.k.c(i64::from(ty.rows)), n.k.c(i64::from(ty.cols)));
    let (zero, one) = (n.k.c(0), n.k.c(1));
    let at = |a, b| Affine { start: zero, strides: vec![a, b] };
    let side = NestAccess::Tile { tile: n.k.r(tile, (rows, cols)), row: at(zero, one), col: at(one, zero) };
    let memory =
        NestAccess::Tensor { tensor, elem: Elem::Whole(ty.dtype), at: at(one, cols), swizzle: None, tables: vec![] };
    let (dst, src) = if load { (side, memory) } else { (memory, side) };
    let span = n.k.span();
    let copy = Copy { extents: vec![cols, rows], dst, src, guards: vec![], fill: None, covers: load };
    n.k.b.copy(copy, span);
}

/// The tensors with a tile's first and last contents.
struct Around {
    tile: Tile,
    ty: TileType,
    after: TensorId,
}

/// Row and column of a tile's element, and where its window begins.
type Place = (Affine, Affine, (Value, Value));

/// Makes the sides of a kernel: tensors before the body, tiles in it.
pub struct Sides {
    plans: Vec<(Plan, Option<[TensorId; 2]>)>,
    lines: Vec<Option<Place>>,
}

impl Sides {
    pub fn new(n: &mut Nest, d: &mut Dice, plans: Vec<Plan>) -> Sides {
        let mut out = Sides { plans: Vec::new(), lines: Vec::new() };
        for (number, plan) in plans.into_iter().enumerate() {
            let (tensors, line) = match &plan {
                Plan::Tensor(_) => (None, None),
                Plan::Tile(row, col, ty, _, origin) => {
                    let shape = [i64::from(ty.rows), i64::from(ty.cols)];
                    let seed = d.below(1 << 40) as u64;
                    let data = [n.data(ty.dtype, seed), n.data(ty.dtype, seed)];
                    let [before, after] = data;
                    let before = n.tensor(&format!("before{number}"), ty.dtype, &shape, before);
                    let after = n.tensor(&format!("after{number}"), ty.dtype, &shape, after);
                    let at = (n.number(d, origin.0), n.number(d, origin.1));
                    (Some([before, after]), Some((n.affine(d, row), n.affine(d, col), at)))
                }
            };
            out.plans.push((plan, tensors));
            out.lines.push(line);
        }
        out
    }

    /// In the body: fills the tiles and calls `f` with the sides.
    pub fn run(self, n: &mut Nest, f: impl FnOnce(&mut Nest, Vec<NestAccess>)) {
        let mut around = Vec::new();
        let mut sides = Vec::new();
        for (number, ((plan, tensors), line)) in self.plans.into_iter().zip(self.lines).enumerate() {
            sides.push(match (plan, tensors, line) {
                (Plan::Tile(_, _, ty, addr, origin), Some([before, after]), Some((row, col, at))) => {
                    let tile = n.k.place(&format!("tile{number}"), ty, addr, 1, 1);
                    whole(n, tile, ty, before, true);
                    around.push(Around { tile, ty, after });
                    let zero = n.k.c(0);
                    let r = n.k.r(tile, (zero, zero));
                    let (rows, cols) = (ty.rows - origin.0 as u32, ty.cols - origin.1 as u32);
                    let valid = (n.k.c(i64::from(rows)), n.k.c(i64::from(cols)));
                    NestAccess::Tile { tile: TileRef { origin: Some(at), rows, cols, valid, ..r }, row, col }
                }
                (Plan::Tensor(access), ..) => access,
                _ => unreachable!("tiles have tensors around them"),
            });
        }
        f(n, sides);
        for a in around {
            whole(n, a.tile, a.ty, a.after, false);
        }
    }
}

fn extents(d: &mut Dice) -> Vec<i64> {
    let rank = d.below(6) as usize;
    let small = [1, 2, 3, 4, 5, 8];
    let mut out: Vec<i64> = (0..rank).map(|_| if d.one_in(25) { 0 } else { d.pick(&small) }).collect();
    if rank == 2 && d.one_in(3) {
        out = vec![d.pick(&[16, 40, 70]), d.pick(&[33, 64, 70])];
    }
    while out.iter().product::<i64>() > 5000 {
        out.pop();
    }
    out
}

/// A random copy; none if its tiles are too large for their memories.
fn random_copy(seed: u64, tables: Tables) -> Option<(Kernel, Args)> {
    let mut d = Dice::new(seed);
    let symbolic = d.one_in(3);
    let mut n = Nest::new(extents(&mut d), symbolic);
    let shape = n.extents.clone();
    let all =
        [DType::F32, DType::F16, DType::BF16, DType::U8, DType::I8, DType::I16, DType::U32, DType::I64, DType::Bool];
    let dtype = d.pick(&all);
    let wide = dtype.size() == 8;
    let (to_tile, from_tile) = match tables {
        _ if wide => (false, false),
        Tables::None => (d.one_in(2), d.one_in(2)),
        _ => (d.one_in(2), false),
    };
    let dst_tables = if tables != Tables::None && !to_tile && d.one_in(4) { tables } else { Tables::None };
    let src_tables = if dst_tables == Tables::None { tables } else { Tables::None };
    let dst = if to_tile {
        tile_plan(&mut d, dtype, &shape, true)
    } else {
        tensor_plan(&mut n, &mut d, "dst", dtype, true, dst_tables)
    };
    let src = if from_tile {
        tile_plan(&mut d, dtype, &shape, false)
    } else {
        tensor_plan(&mut n, &mut d, "src", dtype, false, src_tables)
    };
    let large = |p: &Plan| matches!(p, Plan::Tile(_, _, ty, ..) if ty.bytes() > 1 << 15);
    if large(&dst) || large(&src) {
        return None;
    }
    let sides = Sides::new(&mut n, &mut d, vec![dst, src]);
    let axes: Vec<Value> = shape.iter().map(|&e| n.number(&mut d, e)).collect();
    let guards: Vec<(Affine, Value)> = (0..[0, 0, 1, 2][d.below(4) as usize])
        .map(|_| {
            let steps = shape.iter().map(|_| d.pick(&[0, 0, 1, 1, 2, 3, -1, -2])).collect();
            let line = Line { start: d.below(5) - 2, steps };
            let (low, high) = line.range(&shape);
            let bound = low + d.below((high - low + 3) as u64);
            (n.affine(&mut d, &line), n.number(&mut d, bound))
        })
        .collect();
    let fill = d.one_in(2) && dst_tables == Tables::None;
    let bits = noise(dtype, seed).nth(2).unwrap();
    n.k.b.begin_body();
    sides.run(&mut n, |n, sides| {
        let span = n.k.span();
        let [dst, src] = <[NestAccess; 2]>::try_from(sides).unwrap();
        let fill = fill.then(|| n.k.b.constant(Const { ty: Ty::D(dtype), bits }));
        let guards = guards.into_iter().map(|(at, bound)| Guard { at, bound }).collect();
        n.k.b.copy(Copy { extents: axes, dst, src, guards, fill, covers: false }, span);
    });
    Some((n.k.finish(), n.args))
}

#[test]
fn random_copies() {
    for seed in 0..ptoc_tests_budget::cases(150, 600) {
        let Some((kernel, args)) = random_copy(seed, Tables::None) else { continue };
        let end = run_interpreter(&kernel, &args);
        assert!(matches!(end, End::Done(_)), "{seed}: {end:?}\n{kernel}");
        agree(&kernel, a5(), &args);
    }
}

#[test]
fn random_copies_through_tables() {
    for seed in 0..ptoc_tests_budget::cases(100, 400) {
        let Some((kernel, args)) = random_copy(seed, Tables::Valid) else { continue };
        agree(&kernel, a5(), &args);
    }
}

/// The first wrong entry is that of the interpreter, with its words.
#[test]
fn wrong_entries() {
    let (mut failed, all) = (0u64, ptoc_tests_budget::cases::<u64>(150, 500));
    for seed in 1000..1000 + all {
        let Some((kernel, args)) = random_copy(seed, Tables::Wrong) else { continue };
        match run_interpreter(&kernel, &args) {
            End::Done(_) => agree(&kernel, a5(), &args),
            want => {
                let prepared = compile(&kernel, a5());
                assert_eq!(want, run_lowered_and_tell(&prepared, &args), "{seed}\n{kernel}");
                failed += 1;
            }
        }
    }
    // Of few cases the share is less certain.
    let least = if all >= 500 { all / 10 } else { all / 20 };
    assert!(failed > least, "{failed} of {all}");
}

//! Matrix products: register-blocked micro-kernels.
//!
//! Each distinct [`Contract`] (strides, types, known extents) becomes one function of its own, compiled without the
//! mid-end optimiser: that one would move all loads of an unrolled step in front of its multiplications and so spill.
//!
//! The accumulators of a block of some rows and some vectors of columns stay in registers over the whole depth, k
//! ascending, one fused multiply-add a step; so every element has the documented chain of roundings whatever the
//! blocking. Vectors run along the side that is contiguous (the columns of b, else the rows of a); if neither is,
//! the columns of b are gathered.
//!
//! On machines with wider vectors, products of the usual shape call a routine instead (`ptoc-kernels`); so do, on
//! every machine, those of operands in arrays, whose strides are not known or which are narrow.

use crate::effects::dtype;
use crate::func::Emit;
use crate::lanes::WIDTH;
use crate::listing::Sources;
use crate::memory::MachineAddress;
use crate::routines::{Routine, arena};
use crate::shape::Shape;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, F32X4, I32, I32X4, I64};
use cranelift_codegen::ir::{BlockArg, InstBuilder, Type, Value};
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Addr, Base, Contract, LTy, MemTy, Reg, Start, Stride};
use ptoc_kernels::Units;

/// Rows of the blocks, largest first. Four rows of two vectors give eight independent chains of multiply-adds, as many
/// as two units with a latency of four cycles can hold; with operands and temporaries they fit 16 registers. (Larger
/// blocks spill: Cranelift's multiply-add overwrites a factor, not the sum.)
const ROWS: [i64; 3] = [4, 2, 1];
/// Vectors of columns of a full block.
const VECTORS: i64 = 2;
/// Steps of k in a turn of the main loop.
const UNROLL: i64 = 4;

/// What the code of a product depends on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Product {
    /// m, n, k where they are constants.
    extents: [Option<i64>; 3],
    d: (i64, i64),
    d_ty: MemTy,
    /// Row and column strides and type of the start; none for zero.
    start: Option<(i64, i64, MemTy)>,
    a: (i64, i64),
    b: (i64, i64),
    ab_ty: MemTy,
}

impl Product {
    /// None for operands that have to be widened, or whose strides only the launch knows.
    pub(crate) fn new(c: &Contract, known: &SecondaryMap<Reg, Option<u64>>) -> Option<Product> {
        let fixed = |(row, col)| match (row, col) {
            (Stride::Const(row), Stride::Const(col)) => Some((row, col)),
            _ => None,
        };
        let start = match c.start {
            Start::Zero => None,
            Start::At { row, col, ty, .. } => {
                let (row, col) = fixed((row, col))?;
                Some((row, col, ty))
            }
        };
        matches!(c.ab_ty, MemTy::F32 | MemTy::I32).then_some(Product {
            extents: [c.m, c.n, c.k].map(|r| known[r].map(|bits| bits as i64)),
            d: fixed(c.d_strides)?,
            d_ty: c.d_ty,
            start,
            a: fixed(c.a_strides)?,
            b: fixed(c.b_strides)?,
            ab_ty: c.ab_ty,
        })
    }

    /// With rows and columns exchanged: d^T = b^T a^T, the same products in the same order.
    fn transposed(self) -> Product {
        let swap = |(x, y)| (y, x);
        Product {
            extents: [self.extents[1], self.extents[0], self.extents[2]],
            d: swap(self.d),
            start: self.start.map(|(row, col, ty)| (col, row, ty)),
            a: swap(self.b),
            b: swap(self.a),
            ..self
        }
    }

    fn is_float(&self) -> bool {
        self.ab_ty == MemTy::F32
    }
}

/// Parameters of a product's function: m, n, k, then the addresses of d, start, a and b.
pub(crate) const PARAMS: usize = 7;

/// A count that may be known.
#[derive(Clone, Copy)]
struct Extent {
    value: Value,
    known: Option<i64>,
}

/// The blocks' columns: `Some(n)` is n vectors, `None` one column.
type Cols = Option<i64>;

impl Emit<'_, '_> {
    /// Calls the product's function, or the routine.
    pub(crate) fn contract(&mut self, c: &Contract) {
        let own = Product::new(c, &self.known);
        let native = own.is_none() || self.wide_product(c);
        let mut args = [c.m, c.n, c.k].map(|r| self.value(r)).to_vec();
        let d = self.address(&c.d);
        let d = self.pointer(d);
        let start = match &c.start {
            Start::Zero if native => self.b.ins().iconst(I64, 0),
            Start::Zero => d,
            Start::At { addr, .. } => {
                let at = self.address(addr);
                self.pointer(at)
            }
        };
        args.extend([d, start]);
        for addr in [&c.a, &c.b] {
            let at = self.address(addr);
            args.push(self.pointer(at));
        }
        if let (false, Some(product)) = (native, own) {
            if let Some(link) = &mut self.link {
                let callee = link.product(product, Sources::at(self.span));
                self.call(callee, &args);
            }
            return;
        }
        let none = (Stride::Const(0), Stride::Const(0));
        let (start, start_ty) = match c.start {
            Start::Zero => (none, c.d_ty),
            Start::At { row, col, ty, .. } => ((row, col), ty),
        };
        for (row, col) in [c.d_strides, start, c.a_strides, c.b_strides] {
            for stride in [row, col] {
                args.push(match stride {
                    Stride::Const(n) => self.b.ins().iconst(I64, n),
                    Stride::Reg(r) => self.value(r),
                });
            }
        }
        let units = match &self.link {
            _ if !self.vectors => Units::Plain,
            Some(link) if !link.exact => Units::All,
            _ => Units::Exact,
        };
        let launch_invariant = |addr: &Addr| match (addr.base, &self.link) {
            (Base::Tensor(n), Some(link)) => !link.written.contains(&n),
            _ => false,
        };
        let [ab, d, start] = [c.ab_ty, c.d_ty, start_ty].map(|ty| dtype(ty, false));
        let types = ptoc_kernels::types(ab, d, start, units, (launch_invariant(&c.a), launch_invariant(&c.b)));
        args.push(self.b.ins().iconst(I64, types));
        // The panels are behind the module's arena.
        args.push(self.b.ins().iadd_imm_s(self.arena, arena(self.module) as i64));
        args.extend(c.part_of.unwrap_or([c.m, c.n, c.k]).map(|r| self.value(r)));
        if let Some(link) = &mut self.link {
            link.panels = true;
        }
        self.call_routine(Routine::Matmul, &args);
    }

    /// Whether the routine is faster than a function of the product's own.
    fn wide_product(&self, c: &Contract) -> bool {
        let unit = |stride: Stride, ty: MemTy| stride == Stride::Const(4) && ty == MemTy::F32;
        let start = match c.start {
            Start::Zero => true,
            Start::At { col, ty, .. } => unit(col, ty),
        };
        let rows_or_columns = unit(c.b_strides.1, c.ab_ty) || unit(c.b_strides.0, c.ab_ty);
        let shape = unit(c.d_strides.1, c.d_ty) && rows_or_columns && start;
        self.vectors && shape && self.routines.wide()
    }
}

/// The function of one product.
pub(crate) struct Kernel<'e, 'a, 'b> {
    e: &'e mut Emit<'a, 'b>,
    p: Product,
    /// Blocks may use vectors.
    vectors: bool,
    k: Extent,
    d: Value,
    start: Value,
    a: Value,
    b: Value,
}

impl<'e, 'a, 'b> Kernel<'e, 'a, 'b> {
    /// Emits the whole function into the builder of `e`.
    pub(crate) fn emit(e: &'e mut Emit<'a, 'b>, product: Product) {
        let entry = e.b.create_block();
        e.b.append_block_params_for_function_params(entry);
        e.b.switch_to_block(entry);
        e.b.seal_block(entry);
        let mut params: [Value; PARAMS] = std::array::from_fn(|n| e.b.block_params(entry)[n]);
        let mut p = product;
        if p.b.1 != 4 && p.a.0 == 4 {
            p = p.transposed();
            params.swap(0, 1);
            params.swap(5, 6);
        }
        let vectors = e.vectors;
        let extent = |n: usize| Extent { value: params[n], known: p.extents[n] };
        let (m, n, k) = (extent(0), extent(1), extent(2));
        let mut kernel = Kernel { e, p, vectors, k, d: params[3], start: params[4], a: params[5], b: params[6] };
        kernel.columns(m, n);
        kernel.e.b.ins().return_(&[]);
        kernel.e.b.seal_all_blocks();
    }

    fn columns(&mut self, m: Extent, n: Extent) {
        let widths: &[Cols] = if self.vectors { &[Some(VECTORS), Some(1), None] } else { &[None] };
        let mut from = Extent { value: self.e.b.ins().iconst(I64, 0), known: Some(0) };
        for &cols in widths {
            let width = cols.map_or(1, |v| v * WIDTH);
            from = self.blocks(from, n, width, &mut |kernel, j| {
                let mut from = Extent { value: kernel.e.b.ins().iconst(I64, 0), known: Some(0) };
                for rows in ROWS {
                    from = kernel.blocks(from, m, rows, &mut |kernel, i| kernel.block(rows, cols, i, j));
                }
            });
        }
    }

    /// `body` for `from`, `from + step`, ... while a whole step fits below `to`; gives where it stopped.
    fn blocks(&mut self, from: Extent, to: Extent, step: i64, body: &mut dyn FnMut(&mut Self, Value)) -> Extent {
        let known = match (from.known, to.known) {
            (Some(from), Some(to)) => Some(from + (to - from).max(0) / step * step),
            _ => None,
        };
        if known.is_some() && known == from.known {
            return from;
        }
        let b = &mut self.e.b;
        let (head, after) = (b.create_block(), b.create_block());
        let index = b.append_block_param(head, I64);
        let stopped = b.append_block_param(after, I64);
        // The last start that leaves room for a whole step.
        let last = b.ins().iadd_imm_s(to.value, -step);
        let start = [BlockArg::Value(from.value)];
        if known.is_some() {
            b.ins().jump(head, &start);
        } else {
            let any = b.ins().icmp(IntCC::SignedLessThanOrEqual, from.value, last);
            b.ins().brif(any, head, &start, after, &start);
        }
        b.switch_to_block(head);
        body(self, index);
        let b = &mut self.e.b;
        let next = b.ins().iadd_imm_s(index, step);
        let more = b.ins().icmp(IntCC::SignedLessThanOrEqual, next, last);
        let next = [BlockArg::Value(next)];
        b.ins().brif(more, head, &next, after, &next);
        b.switch_to_block(after);
        Extent { value: stopped, known }
    }

    /// `base + i * row + j * col`.
    fn at(&mut self, base: Value, (row, col): (i64, i64), i: Value, j: Value) -> Value {
        let mut place = base;
        for (index, stride) in [(i, row), (j, col)] {
            if stride != 0 {
                let b = &mut self.e.b;
                let offset = b.ins().imul_imm_s(index, stride);
                place = b.ins().iadd(place, offset);
            }
        }
        place
    }

    /// One block of the result at (i, j).
    fn block(&mut self, rows: i64, cols: Cols, i: Value, j: Value) {
        let p = self.p;
        let count = cols.unwrap_or(1);
        let (float, vector) = (p.is_float(), cols.is_some());
        let ty = match (float, vector) {
            (true, true) => F32X4,
            (true, false) => F32,
            (false, true) => I32X4,
            (false, false) => I32,
        };
        let width = if vector { WIDTH } else { 1 };
        let zero = self.e.b.ins().iconst(I64, 0);
        let d = self.at(self.d, p.d, i, j);
        let a = self.at(self.a, (p.a.0, 0), i, zero);
        let b = self.at(self.b, (0, p.b.1), zero, j);
        let mut acc = Vec::new();
        match p.start {
            None => {
                let nothing = if float {
                    let s = if vector { Shape::Four } else { Shape::One };
                    self.e.float(s, 0.0)
                } else {
                    let s = if vector { Shape::Four } else { Shape::One };
                    self.e.int(s, 0)
                };
                acc.resize((rows * count) as usize, nothing);
            }
            Some((row, col, mem)) => {
                let start = self.at(self.start, (row, col), i, j);
                for r in 0..rows {
                    for c in 0..count {
                        let at = self.e.further(MachineAddress { base: start, disp: 0 }, r * row + c * width * col);
                        acc.push(self.load(mem, at, col, vector));
                    }
                }
            }
        }
        let acc = self.depth(ty, rows, count, a, b, acc);
        for r in 0..rows {
            for c in 0..count {
                let at = self.e.further(MachineAddress { base: d, disp: 0 }, r * p.d.0 + c * width * p.d.1);
                self.store(p.d_ty, acc[(r * count + c) as usize], at, p.d.1, vector);
            }
        }
    }

    /// The loop over k: `UNROLL` steps at a time, then single ones.
    fn depth(&mut self, ty: Type, rows: i64, count: i64, a: Value, b: Value, acc: Vec<Value>) -> Vec<Value> {
        let mut state = vec![a, b];
        state.extend(acc);
        let mut left = self.k;
        for steps in [UNROLL, 1] {
            if left.known.is_some_and(|k| k < steps) {
                continue;
            }
            let f = &mut self.e.b;
            let (head, after) = (f.create_block(), f.create_block());
            let mut args = vec![left.value];
            args.extend(&state);
            let args: Vec<BlockArg> = args.into_iter().map(BlockArg::Value).collect();
            for block in [head, after] {
                for n in 0..args.len() {
                    f.append_block_param(block, if n < 3 { I64 } else { ty });
                }
            }
            if left.known.is_some() {
                f.ins().jump(head, &args);
            } else {
                let any = f.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, left.value, steps);
                f.ins().brif(any, head, &args, after, &args);
            }
            f.switch_to_block(head);
            let inside: Vec<Value> = f.block_params(head).to_vec();
            let (a, b) = (inside[1], inside[2]);
            let mut acc = inside[3..].to_vec();
            for step in 0..steps {
                self.step(ty, rows, count, (a, b), step, &mut acc);
            }
            let f = &mut self.e.b;
            let remaining = f.ins().iadd_imm_s(inside[0], -steps);
            let a = f.ins().iadd_imm_s(a, self.p.a.1 * steps);
            let b = f.ins().iadd_imm_s(b, self.p.b.0 * steps);
            let args: Vec<BlockArg> = [remaining, a, b].into_iter().chain(acc).map(BlockArg::Value).collect();
            let more = f.ins().icmp_imm_s(IntCC::SignedGreaterThanOrEqual, remaining, steps);
            f.ins().brif(more, head, &args, after, &args);
            f.switch_to_block(after);
            let outside: Vec<Value> = f.block_params(after).to_vec();
            left = Extent { value: outside[0], known: left.known.map(|k| k % steps) };
            state = outside[1..].to_vec();
        }
        state.split_off(2)
    }

    /// One step of k for the whole block.
    fn step(&mut self, ty: Type, rows: i64, count: i64, (a, b): (Value, Value), step: i64, acc: &mut [Value]) {
        let p = self.p;
        let vector = ty.is_vector();
        let width = if vector { WIDTH } else { 1 };
        let columns: Vec<Value> = (0..count)
            .map(|c| {
                let at = self.e.further(MachineAddress { base: b, disp: 0 }, step * p.b.0 + c * width * p.b.1);
                self.load(p.ab_ty, at, p.b.1, vector)
            })
            .collect();
        for r in 0..rows {
            let at = self.e.further(MachineAddress { base: a, disp: 0 }, r * p.a.0 + step * p.a.1);
            let mut row = self.e.load_raw(p.ab_ty, at);
            if vector {
                row = self.e.b.ins().splat(ty, row);
            }
            for (c, &column) in columns.iter().enumerate() {
                let slot = &mut acc[(r * count) as usize + c];
                *slot = if p.is_float() {
                    self.e.b.ins().fma(row, column, *slot)
                } else {
                    let product = self.e.b.ins().imul(row, column);
                    self.e.b.ins().iadd(*slot, product)
                };
            }
        }
    }

    /// One element, or four that are `stride` bytes apart.
    fn load(&mut self, mem: MemTy, at: MachineAddress, stride: i64, vector: bool) -> Value {
        let e = &mut *self.e;
        if !vector {
            return e.load_one(mem, at);
        }
        let reg = if mem == MemTy::F32 { LTy::F32 } else { LTy::I32 };
        let raw = if stride == i64::from(mem.size()) {
            e.load_vector(mem, at)
        } else if stride == 0 {
            let one = e.load_raw(mem, at);
            e.gathered(reg, [one; 4])
        } else {
            let lanes = [0, 1, 2, 3].map(|n| {
                let at = e.further(at, n * stride);
                e.load_raw(mem, at)
            });
            e.gathered(reg, lanes)
        };
        e.widen(Shape::Four, mem, raw)
    }

    fn store(&mut self, mem: MemTy, value: Value, at: MachineAddress, stride: i64, vector: bool) {
        let e = &mut *self.e;
        if !vector {
            return e.store_one(mem, value, at);
        }
        let raw = e.narrow(Shape::Four, mem, value);
        if stride == i64::from(mem.size()) {
            return e.store_vector(mem, raw, at);
        }
        for n in 0..4 {
            let lane = e.b.ins().extractlane(raw, n as u8);
            let at = e.further(at, n * stride);
            e.store_raw(mem, lane, at);
        }
    }
}

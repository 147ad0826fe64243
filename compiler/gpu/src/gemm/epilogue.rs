//! What consumers do to sums on their way to memory, beyond rounding them: each element goes through the function that
//! the lowering made of the epilogue ([`ptoc_lower::lower_element`]), with the instructions of the SIMT half.
//!
//! Two copies of it: blocks that are inside the result, of which two neighbours are one access in every array, and all
//! others, element by element under predicates. Elements are taken in batches of columns. The loads of a batch are
//! issued before the stores of the one before it.

use super::consumer::Fragment;
use super::{Gemm, PlanArray};
use crate::allocation::Homes;
use crate::emit::{Emit, Val, class, whole};
use cranelift_entity::SecondaryMap;
use ptoc_ir::loops::{Base, LTy, MemTy, Module, Op, Reg, Region, VarId};
use ptoc_ptx::{Address, Arith, Builder, Class, Cmp, Op as Ptx, Round, Space, Special, Src, Type, VReg};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Columns that a lane has two of.
const GROUP: u64 = 8;
/// Elements of a group: two rows, two columns.
const ELEMENTS: usize = 4;
/// Bytes of a narrow element.
const NARROW: u64 = 2;
/// Groups of a batch at most.
const BATCH: usize = 4;

/// An array under a lane's elements.
#[derive(Clone)]
struct LaneArray {
    plan: PlanArray,
    /// The addresses of the lane's first column in its two rows.
    at: [VReg; 2],
    /// Bytes from column to column.
    along: VReg,
    /// Of narrow elements, where the lane stores four in each row.
    quads: Option<[VReg; 2]>,
}

/// Elements of arrays as they were loaded: by array, row, and column of the block without the lane's.
type Loaded = FxHashMap<(usize, usize, u64), VReg>;

/// The elements at hand.
struct Batch {
    groups: Range<usize>,
    values: Vec<SecondaryMap<Reg, Option<Val>>>,
    loaded: Loaded,
}

struct Work<'w, 'm> {
    e: Emit<'m>,
    arrays: Vec<LaneArray>,
    sums: &'w [VReg],
    /// The predicates that the lane's rows are inside, and its first column.
    rows: [VReg; 2],
    column: VReg,
    /// Columns of the result.
    columns: VReg,
    /// The predicate that the lane is an odd one.
    odd: VReg,
    /// Everything is inside, and pairs are aligned.
    fast: bool,
    vars: FxHashMap<(VarId, usize), VReg>,
}

impl Gemm {
    /// The elements of a lane.
    pub(super) fn epilogue(&mut self, module: &Module, f: &Fragment, sums: &[VReg]) {
        let mut e = Emit::new(module, self.plan.threads(), Homes::new(module, 0));
        let odd = self.odd();
        let arrays: Vec<LaneArray> = (0..module.tensors.len()).map(|n| self.lane_array(n, f, odd)).collect();
        let fast = self.inside_and_aligned(f, &arrays);
        std::mem::swap(&mut self.b, &mut e.b);
        for (n, param) in module.block.params.iter().enumerate() {
            let value = e.b.ld(Space::Param, Type::U64, Address::param((self.params + n) as u32));
            e.define(*param, value);
        }
        for stmt in module.block.body.iter().filter(|s| crate::ops::pure(&s.op)) {
            e.compute(&stmt.op);
        }
        let (slow, done) = (e.b.label(), e.b.label());
        e.b.bra_if(fast, false, slow);
        let mut work = Work {
            e,
            arrays,
            sums,
            rows: f.rows,
            column: f.column,
            columns: self.sizes[1],
            odd,
            fast: true,
            vars: FxHashMap::default(),
        };
        let body = module.block.body.iter().find_map(|s| if let Op::Lanes(l) = &s.op { Some(&l.body) } else { None });
        if let Some(body) = body {
            work.all(body);
            work.e.b.bra(done);
            work.e.b.place(slow);
            work.fast = false;
            work.all(body);
        }
        work.e.b.place(done);
        std::mem::swap(&mut self.b, &mut work.e.b);
    }

    fn lane_array(&mut self, n: usize, f: &Fragment, odd: VReg) -> LaneArray {
        let [down, along] = self.arrays[n].1;
        let at = self.array_at(n, f);
        let below = self.b.arith(Arith::Shl, Type::B64, &[down.into(), Src::Imm(3)]);
        let below = self.u64(Arith::Add, at, below);
        let (plan, at) = (self.plan.arrays[n].clone(), [at, below]);
        let quads = (plan.size() == NARROW).then(|| {
            let [none, further] = [0, 12].map(|n| self.b.mov(Type::U64, Src::Imm(n)));
            let further = self.b.selp(Type::B64, further, none, odd);
            at.map(|at| self.u64(Arith::Add, at, further))
        });
        LaneArray { plan, at, along, quads }
    }

    /// The predicate that a lane is an odd one.
    pub(super) fn odd(&mut self) -> VReg {
        let thread = self.b.mov(Type::U32, Src::Special(Special::Tid));
        self.b.is_odd(thread)
    }

    /// The predicate that the block is inside the result, and that neighbours in dense arrays are one access.
    fn inside_and_aligned(&mut self, f: &Fragment, arrays: &[LaneArray]) -> VReg {
        let mut good = None;
        for (side, first) in f.block.iter().enumerate() {
            let end = self.u64(Arith::Add, *first, Src::Imm(u64::from(self.plan.tile[side])));
            let inside = self.b.setp(Cmp::Le, Type::U64, end, self.sizes[side]);
            good = Some(self.and(good, inside));
        }
        for (n, array) in arrays.iter().enumerate().filter(|(_, a)| a.plan.pairs()) {
            let (first, strides) = self.arrays[n];
            let all = self.b.arith(Arith::Or, Type::B64, &[first.into(), strides[0].into()]);
            let count = if array.quads.is_some() { 4 } else { 2 };
            let low = self.b.arith(Arith::And, Type::B64, &[all.into(), Src::Imm(count * array.plan.size() - 1)]);
            let aligned = self.b.setp(Cmp::Eq, Type::B64, low, Src::Imm(0));
            good = Some(self.and(good, aligned));
        }
        good.unwrap_or_else(|| unreachable!("a block has two sides"))
    }

    fn and(&mut self, a: Option<VReg>, b: VReg) -> VReg {
        match a {
            Some(a) => self.b.arith(Arith::And, Type::Pred, &[a.into(), b.into()]),
            None => b,
        }
    }
}

/// The type in which an element is moved.
fn moved(ty: MemTy) -> Type {
    match ty {
        MemTy::F32 => Type::F32,
        MemTy::I32 => Type::B32,
        MemTy::I64 => Type::B64,
        MemTy::F16 | MemTy::BF16 => Type::B16,
        MemTy::I16 => Type::S16,
        MemTy::U16 => Type::U16,
        MemTy::I8 => Type::S8,
        MemTy::Bool | MemTy::U8 | MemTy::F8E4M3 | MemTy::F8E5M2 => Type::U8,
    }
}

/// The register that it is moved in.
fn moved_in(ty: MemTy) -> Class {
    match ty {
        MemTy::I16 | MemTy::U16 => Class::B32,
        ty => moved(ty).class(),
    }
}

impl Work<'_, '_> {
    fn b(&mut self) -> &mut Builder {
        &mut self.e.b
    }

    /// All elements, batch by batch.
    fn all(&mut self, body: &Region) {
        let groups = self.sums.len() / ELEMENTS;
        let loads: Vec<(usize, MemTy)> = body.iter().filter_map(|s| array_load(&s.op)).collect();
        // A column's elements are there for all batches.
        let mut kept = Loaded::default();
        for (n, ty) in &loads {
            for row in 0..if self.arrays[*n].plan.has[1] { 0 } else { 2 } {
                let value = self.load_element(*n, *ty, row, 0);
                kept.insert((*n, row, 0), value);
            }
        }
        let wide = loads.iter().filter(|(n, _)| self.arrays[*n].plan.has == [true; 2]).count();
        let step = (BATCH / wide.max(1)).max(1);
        let batches: Vec<Range<usize>> = (0..groups).step_by(step).map(|g| g..groups.min(g + step)).collect();
        let mut next = batches.first().map(|g| self.load(&loads, g.clone(), &kept));
        for (n, groups) in batches.iter().enumerate() {
            let loaded = next.take().unwrap_or_default();
            next = batches.get(n + 1).map(|g| self.load(&loads, g.clone(), &kept));
            let values = vec![self.e.values.clone(); groups.len() * ELEMENTS];
            let mut batch = Batch { groups: groups.clone(), values, loaded };
            self.region(body, &mut batch);
        }
    }

    /// Elements of arrays for a batch.
    fn load(&mut self, loads: &[(usize, MemTy)], groups: Range<usize>, kept: &Loaded) -> Loaded {
        let mut out = kept.clone();
        for group in groups {
            for (n, ty) in loads {
                self.load_group(*n, *ty, group, &mut out);
            }
        }
        out
    }

    fn load_group(&mut self, n: usize, ty: MemTy, group: usize, out: &mut Loaded) {
        let has = self.arrays[n].plan.has;
        if !has[1] {
            for row in 0..2 {
                if out.contains_key(&(n, row, 0)) {
                    continue;
                }
                let value = self.load_element(n, ty, row, 0);
                out.insert((n, row, 0), value);
            }
            return;
        }
        let first = GROUP * group as u64;
        for row in 0..if has[0] { 2 } else { 1 } {
            if self.fast && self.arrays[n].plan.pairs() {
                let pair = [0, 1].map(|_| self.e.b.reg(moved_in(ty)));
                let at = self.place(n, row, first);
                self.b().push(Ptx::Ld(Space::Global, moved(ty)), &pair, &[Src::Addr(at)]);
                out.extend((first..).zip(pair).map(|(column, value)| ((n, row, column), value)));
            } else {
                for column in [first, first + 1] {
                    let value = self.load_element(n, ty, row, column);
                    out.insert((n, row, column), value);
                }
            }
        }
    }

    fn load_element(&mut self, n: usize, ty: MemTy, row: usize, column: u64) -> VReg {
        let value = self.e.b.reg(moved_in(ty));
        let inside = self.inside(self.arrays[n].plan.has, row, column);
        let at = self.place(n, row, column);
        if let Some(inside) = inside {
            self.b().set(value, value_type(ty), Src::Imm(0));
            self.b().guard = Some((inside, true));
        }
        self.b().push(Ptx::Ld(Space::Global, moved(ty)), &[value], &[Src::Addr(at)]);
        self.b().guard = None;
        value
    }

    /// Where an element of an array is.
    fn place(&mut self, n: usize, row: usize, column: u64) -> Address {
        let (plan, at, along) = (&self.arrays[n].plan, self.arrays[n].at[row], self.arrays[n].along);
        if column == 0 || !plan.has[1] {
            return Address::at(at);
        }
        if plan.dense {
            return Address { disp: (column * plan.size()) as i32, ..Address::at(at) };
        }
        let srcs = [along.into(), Src::Imm(column), at.into()];
        Address::at(self.b().arith(Arith::MadLo, Type::U64, &srcs))
    }

    /// The predicate that an element is inside, if that is not known.
    fn inside(&mut self, has: [bool; 2], row: usize, column: u64) -> Option<VReg> {
        if self.fast {
            return None;
        }
        let of_row = has[0].then_some(self.rows[row]);
        if !has[1] {
            return of_row;
        }
        let column = self.e.u64(Arith::Add, self.column, Src::Imm(column));
        let columns = self.columns;
        let good = self.b().setp(Cmp::Lt, Type::U64, column, columns);
        Some(match of_row {
            Some(row) => self.b().arith(Arith::And, Type::Pred, &[good.into(), row.into()]),
            None => good,
        })
    }

    // ---- statements -------------------------------------------------------------------------------------------------

    fn region(&mut self, region: &Region, batch: &mut Batch) {
        for stmt in region {
            self.statement(&stmt.op, batch);
        }
    }

    fn statement(&mut self, op: &Op, batch: &mut Batch) {
        let count = batch.values.len();
        match op {
            Op::Load { dst, addr, .. } if matches!(addr.base, Base::Space(_)) => {
                for (n, values) in batch.values.iter_mut().enumerate() {
                    values[*dst] = Some(Val::Reg(self.sums[batch.groups.start * ELEMENTS + n]));
                }
            }
            Op::Load { dst, ty, .. } => {
                let Some((n, _)) = array_load(op) else { return };
                for group in batch.groups.clone() {
                    if !batch.loaded.contains_key(&self.key(n, group, 0)) {
                        self.load_group(n, *ty, group, &mut batch.loaded);
                    }
                }
                self.convert(*dst, n, *ty, batch);
            }
            Op::Store { ty, addr, value } => {
                let Base::Tensor(n) = addr.base else { return };
                self.store(n as usize, *ty, *value, batch);
            }
            Op::If(i) => {
                let Some(Val::Reg(cond)) = batch.values[0][i.cond] else {
                    let known = matches!(batch.values[0][i.cond], Some(Val::Known(bits)) if bits != 0);
                    return self.region(if known { &i.then } else { &i.els }, batch);
                };
                let (els, done) = (self.b().label(), self.b().label());
                self.b().bra_if(cond, false, els);
                self.branch(&i.then, batch);
                self.b().bra(done);
                self.b().place(els);
                self.branch(&i.els, batch);
                self.b().place(done);
            }
            Op::Set { var, value } => {
                let ty = self.e.func.vars[*var].ty;
                for n in 0..count {
                    let value =
                        self.with(n, batch, |e| if ty == LTy::Bool { e.reg(*value).into() } else { e.src(*value) });
                    let reg = self.variable(*var, n);
                    self.b().set(reg, whole(ty), value);
                }
            }
            Op::Get { dst, var } => {
                let ty = self.e.func.vars[*var].ty;
                for n in 0..count {
                    // The variable is another one for the next batch.
                    let reg = self.variable(*var, n);
                    let value = self.b().mov(whole(ty), reg);
                    batch.values[n][*dst] = Some(Val::Reg(value));
                }
            }
            op => (0..count).for_each(|n| self.with(n, batch, |e| e.compute(op))),
        }
    }

    /// A branch: what it has loaded is not there behind it.
    fn branch(&mut self, region: &Region, batch: &mut Batch) {
        let loaded = batch.loaded.clone();
        self.region(region, batch);
        batch.loaded = loaded;
    }

    fn variable(&mut self, var: VarId, n: usize) -> VReg {
        let ty = self.e.func.vars[var].ty;
        let b = &mut self.e.b;
        *self.vars.entry((var, n)).or_insert_with(|| b.reg(class(ty)))
    }

    /// Does something with the values of an element.
    fn with<T>(&mut self, n: usize, batch: &mut Batch, f: impl FnOnce(&mut Emit<'_>) -> T) -> T {
        std::mem::swap(&mut self.e.values, &mut batch.values[n]);
        let out = f(&mut self.e);
        std::mem::swap(&mut self.e.values, &mut batch.values[n]);
        out
    }

    /// Where an element of a group is among those that are loaded.
    fn key(&self, n: usize, group: usize, element: usize) -> (usize, usize, u64) {
        let [rows, columns] = self.arrays[n].plan.has;
        let row = if rows { element / 2 } else { 0 };
        let row = if columns { row } else { element / 2 };
        (n, row, if columns { GROUP * group as u64 + (element % 2) as u64 } else { 0 })
    }

    /// Elements as they were loaded become values.
    fn convert(&mut self, dst: Reg, n: usize, ty: MemTy, batch: &mut Batch) {
        let mut done: FxHashMap<VReg, VReg> = FxHashMap::default();
        for (k, group) in batch.groups.clone().enumerate() {
            for element in 0..ELEMENTS {
                let raw = batch.loaded[&self.key(n, group, element)];
                let e = &mut self.e;
                let value = *done.entry(raw).or_insert_with(|| match ty {
                    MemTy::F16 => e.b.cvt(Type::F32, Type::F16, Round::None, raw),
                    MemTy::BF16 => e.bf16(raw),
                    MemTy::Bool => e.b.setp(Cmp::Ne, Type::U32, raw, Src::Imm(0)),
                    _ => raw,
                });
                batch.values[k * ELEMENTS + element][dst] = Some(Val::Reg(value));
            }
        }
    }

    /// Narrow elements of two groups, four neighbours at once ([`Builder::exchanged`]).
    fn store_quads(&mut self, at: [VReg; 2], ty: MemTy, value: Reg, batch: &mut Batch) {
        let odd = self.odd;
        for k in (0..batch.groups.len()).step_by(2) {
            let first = GROUP * (batch.groups.start + k) as u64;
            for row in 0..2 {
                let words = [k, k + 1].map(|k| {
                    let halves = [0, 1].map(|c| {
                        let number = self.with(k * ELEMENTS + 2 * row + c, batch, |e| e.reg(value));
                        self.e.half(ty, number)
                    });
                    self.b().pack(halves[0], halves[1])
                });
                let [low, high] = self.b().exchanged(words, odd);
                let at = Address { disp: (first * NARROW) as i32, ..Address::at(at[row]) };
                self.b().push(Ptx::St(Space::Global, Type::B32), &[], &[Src::Addr(at), low.into(), high.into()]);
            }
        }
    }

    fn store(&mut self, n: usize, ty: MemTy, value: Reg, batch: &mut Batch) {
        if let (true, true, true, Some(at)) =
            (self.fast, self.arrays[n].plan.pairs(), batch.groups.len().is_multiple_of(2), self.arrays[n].quads)
        {
            return self.store_quads(at, ty, value, batch);
        }
        for (k, group) in batch.groups.clone().enumerate() {
            for row in 0..2 {
                let first = GROUP * group as u64;
                let values = [0, 1].map(|c| self.with(k * ELEMENTS + 2 * row + c, batch, |e| e.reg(value)));
                if self.fast && self.arrays[n].plan.pairs() {
                    let at = Src::Addr(self.place(n, row, first));
                    match ty {
                        MemTy::F16 | MemTy::BF16 => {
                            let [low, high] = values.map(|v| self.e.half(ty, v));
                            let word = self.b().pack(low, high);
                            self.b().push(Ptx::St(Space::Global, Type::B32), &[], &[at, word.into()]);
                        }
                        _ => {
                            let [low, high] = values.map(Src::Reg);
                            self.b().push(Ptx::St(Space::Global, moved(ty)), &[], &[at, low, high]);
                        }
                    }
                    continue;
                }
                for (column, value) in (first..).zip(values) {
                    let inside = self.inside([true; 2], row, column);
                    let at = self.place(n, row, column);
                    let ptoc_ptx::AddrBase::Reg(reg) = at.base else { continue };
                    let place = crate::memory::GpuAddress { space: Space::Global, reg, disp: at.disp };
                    self.e.store(ty, place, value, inside.map(|p| (p, true)));
                }
            }
        }
    }
}

/// The array from which an element is loaded.
fn array_load(op: &Op) -> Option<(usize, MemTy)> {
    match op {
        Op::Load { ty, addr, .. } => match addr.base {
            Base::Tensor(n) => Some((n as usize, *ty)),
            Base::Space(_) => None,
        },
        _ => None,
    }
}

/// The type of a register in which an element is moved.
fn value_type(ty: MemTy) -> Type {
    match moved_in(ty) {
        Class::B16 => Type::B16,
        Class::B64 => Type::B64,
        Class::F32 => Type::F32,
        _ => Type::B32,
    }
}

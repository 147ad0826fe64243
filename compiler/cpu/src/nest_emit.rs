//! Calls of nests, and the functions that they call.

use crate::func::Emit;
use crate::listing::Sources;
use crate::nest::{self, COUNT, FIRST_INPUT, Nest, OFFSET, RowStride, Site};
use crate::routines::Routine;
use crate::shape::plain;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::I64;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value};
use ptoc_abi::Frame;
use ptoc_ir::loops::{
    Addr, Base, BinOp, For, Gather, LTy, Lanes, Lists, MemTy, Merge, Op, Reduce, Reg, Sort, Stride, UnOp,
};
use ptoc_kernels::mode;
use std::mem::offset_of;

/// Strided elements that are moved by emitted code.
const FEW: i64 = 64;

impl Emit<'_, '_> {
    /// Calls the function of a loop over rows of lanes, if the loop is one.
    pub(crate) fn nest_of_loop(&mut self, f: &For) -> bool {
        if self.link.is_none() {
            return false;
        }
        let Some((site, addresses)) = nest::of_loop(f, self.func, &self.known) else { return false };
        self.call_rows(f, site, &addresses);
        true
    }

    /// Calls the function of a loop over rows. `addresses` are the statements that compute them.
    pub(crate) fn call_rows(&mut self, f: &For, site: Site, addresses: &[Op]) {
        // Everything in the first row.
        let (lo, hi) = (self.value(f.lo), self.value(f.hi));
        self.define(f.index, lo);
        self.known[f.index] = self.known[f.lo];
        for op in addresses {
            self.address_step(op);
        }
        let rows = if self.known[f.lo] == Some(0) { hi } else { self.b.ins().isub(hi, lo) };
        let known = self.known[f.hi].zip(self.known[f.lo]).map(|(hi, lo)| hi.wrapping_sub(lo) as i64);
        self.call_nest(site, Some(rows), known);
    }

    /// Calls the function of `Lanes`, unless it stays where it is.
    pub(crate) fn nest_of_lanes(&mut self, lanes: &Lanes) -> bool {
        if self.link.is_none() {
            return false;
        }
        let Some(site) = nest::of_lanes(lanes, self.func, &self.known) else { return false };
        self.call_nest(site, None, None);
        true
    }

    /// Address arithmetic, folded where both operands are known (in row 0 most are).
    pub(crate) fn address_step(&mut self, op: &Op) {
        if let &Op::Binary { dst, op: what, a, b } = op
            && let (Some(x), Some(y)) = (self.known[a], self.known[b])
        {
            let bits = match what {
                BinOp::Add => x.wrapping_add(y),
                BinOp::Sub => x.wrapping_sub(y),
                _ => x.wrapping_mul(y),
            };
            return self.scalar(&Op::Const { dst, bits });
        }
        self.scalar(op);
    }

    /// `known` is the number of rows, if it is known.
    fn call_nest(&mut self, site: Site, rows: Option<Value>, known: Option<i64>) {
        let pointers: Vec<Value> = site
            .pointers
            .iter()
            .map(|&(base, offset)| {
                let place = self.origin(base, offset);
                self.pointer(place)
            })
            .collect();
        if self.call_routine_of(&site, (rows, known), &pointers) {
            return;
        }
        let mut args: Vec<Value> = rows.into_iter().collect();
        if site.nest.count.is_none() {
            args.push(self.value(site.count));
        }
        args.extend(pointers);
        args.extend(site.steps.iter().map(|&r| self.value(r)));
        if site.nest.non_temporal != 0 {
            let tensors =
                site.pointers.iter().enumerate().filter(|(n, _)| *n < 64 && site.nest.non_temporal >> n & 1 != 0);
            let tensors = tensors.fold(0u64, |bits, (_, (base, _))| match base {
                Base::Tensor(t) => bits | 1 << t,
                Base::Space(_) => bits,
            });
            args.push(self.non_temporal(tensors));
        }
        args.extend(site.inputs.iter().map(|&r| self.value(r)));
        let sources = Sources::with_parts(self.span, &site.spans);
        if let Some(id) = self.link.as_mut().map(|link| link.nest(site.nest, sources)) {
            self.call(id, &args);
        }
    }

    /// Not zero if all of these tensors are written past the caches.
    fn non_temporal(&mut self, tensors: u64) -> Value {
        let frame = self.frame;
        let flags = plain().with_readonly().with_can_move();
        let non_temporal = self.b.ins().load(I64, flags, frame, offset_of!(Frame, non_temporal) as i32);
        let these = self.b.ins().band_imm_s(non_temporal, tensors as i64);
        if tensors.is_power_of_two() {
            return these;
        }
        let all = self.b.ins().icmp_imm_s(IntCC::Equal, these, tensors as i64);
        self.b.ins().uextend(I64, all)
    }

    /// A routine instead, where the nest is one.
    fn call_routine_of(
        &mut self,
        site: &Site,
        (rows, known): (Option<Value>, Option<i64>),
        pointers: &[Value],
    ) -> bool {
        let Some(found) = Moved::of(&site.nest).filter(|_| self.vectors) else { return false };
        // A few strided elements are moved before the routine has seen how they lie.
        let few = || site.nest.count.zip(known).is_some_and(|(n, rows)| n.saturating_mul(rows) <= FEW);
        if !self.routines.moves(found.routine) || (found.strides.is_some() && few()) {
            return false;
        }
        let rows = rows.unwrap_or_else(|| self.b.ins().iconst(I64, 1));
        let mut count = self.value(site.count);
        if let Some(size) = found.size {
            count = self.b.ins().imul_imm_s(count, size);
        }
        let mut args = vec![pointers[found.to], pointers[found.from], rows, count];
        for n in [found.to, found.from] {
            args.push(match site.nest.steps[n] {
                RowStride::Const(bytes) => self.b.ins().iconst(I64, bytes),
                RowStride::Reg(reg, factor) => {
                    let step = self.value(site.steps[reg.as_u32() as usize]);
                    self.b.ins().imul_imm_s(step, factor)
                }
            });
        }
        for stride in found.strides.into_iter().flatten() {
            args.push(match stride {
                Stride::Const(bytes) => self.b.ins().iconst(I64, bytes),
                // Strides are read from outside: they are inputs, or constants that the body defines anew.
                Stride::Reg(reg) => match site.nest.constant(reg) {
                    Some(bits) => self.b.ins().iconst(I64, bits as i64),
                    None => self.value(site.inputs[(reg.as_u32() - FIRST_INPUT) as usize]),
                },
            });
        }
        if let Routine::Copy | Routine::Move(_) = found.routine {
            let array = |n: usize| if let Base::Tensor(t) = site.pointers[n].0 { Some(t) } else { None };
            let apart = array(found.to) != array(found.from);
            let to = array(found.to).filter(|t| *t < 64 && apart);
            let non_temporal = to.map(|t| self.non_temporal(1 << t));
            args.push(non_temporal.unwrap_or_else(|| self.b.ins().iconst(I64, 0)));
        }
        self.call_routine(found.routine, &args);
        true
    }

    /// Calls the routine of a reduction.
    pub(crate) fn reduce(&mut self, r: &Reduce) {
        let (d, a) = (self.address(&r.d), self.address(&r.a));
        let mut args = vec![self.pointer(d), self.pointer(a), self.value(r.rows), self.value(r.cols)];
        for stride in [r.d_stride, r.a_strides.0, r.a_strides.1] {
            args.push(self.b.ins().iconst(I64, stride));
        }
        self.call_routine(Routine::Reduce(r.op, r.ty), &args);
    }

    /// Calls the routine of a gather.
    pub(crate) fn gather(&mut self, g: &Gather) {
        if let Some((places, place_step)) = &g.places {
            return self.locate(g, places, *place_step);
        }
        let mut args = Vec::new();
        for addr in [&g.d, &g.table, &g.index] {
            let at = self.address(addr);
            args.push(self.pointer(at));
        }
        args.extend([self.value(g.rows), self.value(g.cols)]);
        for stride in [g.d_strides.0, g.d_strides.1, g.index_strides.0, g.index_strides.1] {
            args.push(self.b.ins().iconst(I64, stride));
        }
        args.push(self.value(g.total));
        args.push(self.b.ins().iconst(I64, mode(g.oob, g.unsigned)));
        if let Some(missing) = self.call_routine(Routine::Gather(g.ty.size()), &args) {
            self.define(g.dst, missing);
        }
    }

    /// Calls the routine of a gather that may leave rows where they are.
    fn locate(&mut self, g: &Gather, places: &Addr, place_step: i64) {
        let mut args = Vec::new();
        let (plus, plus_strides) = g.plus.as_ref().map_or((None, (0, 0)), |(addr, strides)| (Some(addr), *strides));
        for addr in [Some(&g.d), Some(&g.table), Some(&g.index), plus, Some(places)] {
            args.push(match addr {
                Some(addr) => {
                    let at = self.address(addr);
                    self.pointer(at)
                }
                None => self.b.ins().iconst(I64, 0),
            });
        }
        args.extend([self.value(g.rows), self.value(g.cols)]);
        for (row, col) in [g.d_strides, g.index_strides, plus_strides] {
            args.extend([row, col].map(|bytes| self.b.ins().iconst(I64, bytes)));
        }
        args.push(self.b.ins().iconst(I64, place_step));
        args.push(self.value(g.total));
        args.push(self.b.ins().iconst(I64, mode(g.oob, g.unsigned)));
        if let Some(missing) = self.call_routine(Routine::Locate(g.ty.size()), &args) {
            self.define(g.dst, missing);
        }
    }

    /// Calls the routine of a sort.
    pub(crate) fn sort(&mut self, s: &Sort) {
        let mut args = Vec::new();
        for addr in [&s.d, &s.a, &s.index] {
            let at = self.address(addr);
            args.push(self.pointer(at));
        }
        args.extend([self.value(s.rows), self.value(s.cols)]);
        for (row, col) in [s.d_strides, s.a_strides, s.index_strides] {
            args.extend([row, col].map(|bytes| self.b.ins().iconst(I64, bytes)));
        }
        self.call_routine(Routine::Sort(s.ty), &args);
    }

    /// Calls the routine of a merge.
    pub(crate) fn merge(&mut self, m: &Merge) {
        let d = self.address(&m.d);
        let mut args = vec![self.pointer(d), self.b.ins().iconst(I64, m.d_stride)];
        for list in m.read() {
            let at = self.address(&list.at);
            args.extend([self.pointer(at), self.b.ins().iconst(I64, list.stride), self.value(list.count)]);
        }
        match m.lists {
            Lists::Runs { length, .. } => {
                args.push(self.value(length));
                self.call_routine(Routine::MergeRuns(m.ty), &args);
            }
            Lists::Each(_) => {
                // Lists that are missing are empty.
                let routine = Routine::Merge(m.ty);
                let none = self.b.ins().iconst(I64, 0);
                args.resize(routine.params().len(), none);
                self.call_routine(routine, &args);
            }
        }
    }

    /// The whole function of a nest.
    pub(crate) fn nest_function(&mut self, nest: &Nest) {
        let entry = self.b.create_block();
        self.b.append_block_params_for_function_params(entry);
        self.b.switch_to_block(entry);
        let params = self.b.block_params(entry).to_vec();
        let mut params = params.into_iter();
        let mut next = || params.next().expect("the signature is the nest's");
        let rows = nest.rows.then(&mut next);
        let (count, offset) = (Reg::from_u32(COUNT), Reg::from_u32(OFFSET));
        match nest.count {
            Some(n) => self.scalar(&Op::Const { dst: count, bits: n as u64 }),
            None => {
                let value = next();
                self.define(count, value);
            }
        }
        self.scalar(&Op::Const { dst: offset, bits: 0 });
        self.tensors = nest.steps.iter().map(|_| next()).collect();
        let steps: Vec<Value> = (0..nest.step_regs()).map(|_| next()).collect();
        if nest.non_temporal != 0 {
            // Vectors of 128 bits are no lines: they go the usual way.
            next();
        }
        for n in 0..nest.inputs {
            let value = next();
            self.define(Reg::from_u32(FIRST_INPUT + n as u32), value);
        }
        let lanes = nest.lanes();
        match rows {
            None => self.lanes(&lanes),
            Some(rows) => self.rows_of_nest(nest, &lanes, rows, &steps),
        }
        self.b.ins().return_(&[]);
        self.b.seal_all_blocks();
    }

    fn rows_of_nest(&mut self, nest: &Nest, lanes: &Lanes, rows: Value, steps: &[Value]) {
        let steps: Vec<Option<Value>> = nest
            .steps
            .iter()
            .map(|step| match *step {
                RowStride::Const(0) => None,
                RowStride::Const(bytes) => Some(self.b.ins().iconst(I64, bytes)),
                RowStride::Reg(reg, factor) => Some(self.b.ins().imul_imm_s(steps[reg.as_u32() as usize], factor)),
            })
            .collect();
        let (head, exit) = (self.b.create_block(), self.b.create_block());
        let left = self.b.append_block_param(head, I64);
        let mut args = vec![BlockArg::Value(rows)];
        for (pointer, _) in self.tensors.iter_mut().zip(&steps).filter(|(_, step)| step.is_some()) {
            args.push(BlockArg::Value(*pointer));
            *pointer = self.b.append_block_param(head, I64);
        }
        let any = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, rows, 0);
        self.b.ins().brif(any, head, &args, exit, &[]);
        self.b.switch_to_block(head);
        if let Some(ending) = nest.ending {
            self.fill_partials(ending);
        }
        self.lanes(lanes);
        if let Some(ending) = nest.ending {
            self.end_row(ending);
        }
        let left = self.b.ins().iadd_imm_s(left, -1);
        let mut args = vec![BlockArg::Value(left)];
        for (pointer, step) in self.tensors.iter().zip(&steps) {
            if let Some(step) = *step {
                args.push(BlockArg::Value(self.b.ins().iadd(*pointer, step)));
            }
        }
        let more = self.b.ins().icmp_imm_s(IntCC::SignedGreaterThan, left, 0);
        self.b.ins().brif(more, head, &args, exit, &[]);
        self.b.switch_to_block(exit);
    }
}

/// A nest that moves elements, perhaps to another type.
struct Moved {
    routine: Routine,
    /// Numbers of the pointers.
    to: usize,
    from: usize,
    /// Bytes of an element, if the routine counts bytes.
    size: Option<i64>,
    /// From column to column of both, if the routine wants to know.
    strides: Option<[Stride; 2]>,
}

impl Moved {
    fn of(nest: &Nest) -> Option<Moved> {
        // Constants are strides.
        let first = nest.body.iter().position(|s| !matches!(s.op, Op::Const { .. }))?;
        let (load, store, round) = match &nest.body[first..] {
            [load, store] => (&load.op, &store.op, None),
            [load, round, store] => (&load.op, &store.op, Some(&round.op)),
            _ => return None,
        };
        let (Op::Load { dst, ty: from_ty, addr: from }, Op::Store { ty: to_ty, addr: to, value }) = (load, store)
        else {
            return None;
        };
        let moved = match round {
            None => *dst,
            // Storing rounds anyway.
            Some(&Op::Unary { dst: rounded, op: UnOp::RoundF16, a }) if a == *dst && *to_ty == MemTy::F16 => rounded,
            Some(_) => return None,
        };
        if *value != moved || from.gather.is_some() || to.gather.is_some() {
            return None;
        }
        let unit = |stride: Stride, ty: MemTy| stride == Stride::Const(i64::from(ty.size()));
        let rows = unit(from.stride, *from_ty) && unit(to.stride, *to_ty);
        // Integers and f32 are stored as they were loaded.
        let kept = from_ty == to_ty && (*from_ty == MemTy::F32 || matches!(from_ty.reg(), LTy::I32 | LTy::I64));
        let (routine, size, strides) = match (*from_ty, *to_ty) {
            (MemTy::F16, MemTy::F32) if rows => (Routine::FromF16, None, None),
            (MemTy::F32, MemTy::F16) if rows => (Routine::ToF16, None, None),
            (ty, _) if rows && kept => (Routine::Copy, Some(i64::from(ty.size())), None),
            // A value for a whole row is better kept in a register.
            (ty, _) if kept && nest.rows && from.stride != Stride::Const(0) => {
                (Routine::Move(ty.size()), None, Some([to.stride, from.stride]))
            }
            _ => return None,
        };
        let number = |base| if let ptoc_ir::loops::Base::Tensor(n) = base { Some(n as usize) } else { None };
        Some(Moved { routine, to: number(to.base)?, from: number(from.base)?, size, strides })
    }
}

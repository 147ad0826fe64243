//! What a thread of a call does: it takes chunks of the grid until none are left, as `ptoc_exec` does.
//!
//! Chunks are handed out in ascending order, and what is above a call of the block function that has failed is not
//! begun: for any number of threads the lowest failing one is what is reported.

use super::Launched;
use super::code::{Code, Maker};
use super::layout::{Job, Seat};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{AtomicRmwOp, InstBuilder, MemFlagsData, Value};
use cranelift_frontend::Variable;
use cranelift_module::{FuncId, Linkage};
use ptoc_abi::{Frame, Raster};
use std::mem::{offset_of, size_of};

/// Defines the function: it takes a [`Seat`], and gives null.
pub(super) fn define(
    maker: &mut Maker,
    launched: &Launched<'_>,
    (clean, silent): (Option<FuncId>, FuncId),
) -> Result<FuncId, String> {
    let symbol = &launched.interface.symbol;
    let id = maker.declare(&format!("{symbol}.worker"), Linkage::Local, &[I64], Some(I64))?;
    maker.function(id, &[I64], Some(I64), |code, args| {
        let seat = args[0];
        let mut worker = Worker { code, launched, seat, job: seat, coords: seat, clean };
        worker.emit(silent);
    })?;
    Ok(id)
}

/// A frame for the launch or the block function: its fields but for the coordinates and the results.
pub(super) fn frame(code: &mut Code<'_>, job: Value, (arena, status): (Value, Value), silent: FuncId) -> Value {
    let frame = code.room(size_of::<Frame>() as u32);
    for (field, from) in [
        (offset_of!(Frame, params), Job::PARAMS),
        (offset_of!(Frame, tensors), Job::TENSORS),
        (offset_of!(Frame, non_temporal), Job::NON_TEMPORAL),
    ] {
        let value = code.load(job, from);
        code.store(value, frame, field as i32);
    }
    code.store(arena, frame, offset_of!(Frame, arena) as i32);
    code.store(status, frame, offset_of!(Frame, status) as i32);
    let hook = code.address(silent);
    code.store(hook, frame, offset_of!(Frame, print) as i32);
    for field in [
        offset_of!(Frame, coords),
        offset_of!(Frame, results),
        offset_of!(Frame, print_ctx),
        offset_of!(Frame, watch),
        offset_of!(Frame, watch_ctx),
    ] {
        code.store_int(0, frame, field as i32);
    }
    frame
}

struct Worker<'w, 'f, 'm> {
    code: &'w mut Code<'f>,
    launched: &'w Launched<'m>,
    seat: Value,
    job: Value,
    /// The coordinates of the first block of a call, then how many blocks it has, along each dimension.
    coords: Value,
    clean: Option<FuncId>,
}

impl Worker<'_, '_, '_> {
    fn rank(&self) -> usize {
        self.launched.module.launch.results.len()
    }

    fn emit(&mut self, silent: FuncId) {
        let seat = self.seat;
        let code = &mut *self.code;
        self.job = code.load(seat, Seat::JOB);
        let arena = code.load(seat, Seat::ARENA);
        let status = code.plus(seat, i64::from(Seat::STATUS));
        let frame = frame(code, self.job, (arena, status), silent);
        self.coords = code.room(16 * self.launched.module.launch.results.len() as u32);
        code.store(self.coords, frame, offset_of!(Frame, coords) as i32);
        if self.launched.panels {
            // Nothing is kept from what this memory was used for before.
            let kept = code.plus(arena, self.launched.arena as i64);
            code.store_int(0, kept, 0);
        }
        let block = code.load(self.job, Job::BLOCK);
        let calls = code.load(self.job, Job::CALLS);
        let chunk = code.load(self.job, Job::CHUNK);
        let zero = code.int(0);
        let number = code.variable(zero);
        let last = code.variable(zero);
        self.code.repeat(|code, end| {
            let flags = MemFlagsData::trusted();
            let next = code.plus(self.job, i64::from(Job::NEXT));
            let first = code.b.ins().atomic_rmw(I64, flags, AtomicRmwOp::Add, next, chunk);
            let none = code.is(IntCC::UnsignedGreaterThanOrEqual, first, calls);
            code.until(none, end);
            code.set(number, first);
            let behind = code.b.ins().iadd(first, chunk);
            let behind = code.b.ins().umin(behind, calls);
            code.set(last, behind);
            code.repeat(|code, done| {
                let (at, behind) = (code.get(number), code.get(last));
                let over = code.is(IntCC::UnsignedGreaterThanOrEqual, at, behind);
                code.until(over, done);
                let failed = code.plus(self.job, i64::from(Job::FAILED));
                let lowest = code.b.ins().atomic_load(I64, flags, failed);
                let in_vain = code.is(IntCC::UnsignedGreaterThan, at, lowest);
                code.until(in_vain, end);
                let mut worker = Worker { code, launched: self.launched, clean: self.clean, ..*self };
                worker.place(at);
                worker.run(at, block, frame);
                let code = worker.code;
                let next = code.plus(at, 1);
                code.set(number, next);
            });
        });
        let code = &mut *self.code;
        let non_temporal = code.load(self.job, Job::NON_TEMPORAL);
        let stored = code.is_int(IntCC::NotEqual, non_temporal, 0);
        // What was written past the caches is seen by others before what this thread writes from here on.
        code.when(stored, |code| {
            code.b.ins().fence();
        });
        code.b.ins().return_(&[zero]);
    }

    /// Calls the block function.
    fn run(&mut self, number: Value, block: Value, frame: Value) {
        let (seat, job) = (self.seat, self.job);
        let code = &mut *self.code;
        if let Some(clean) = self.clean {
            let level = code.load(job, Job::LEVEL);
            let wide = code.is_int(IntCC::UnsignedGreaterThan, level, 1);
            code.when(wide, |code| {
                code.call(clean, &[]);
            });
        }
        let result = code.call_at(block, frame);
        let bad = code.b.ins().icmp_imm_s(IntCC::NotEqual, result, 0);
        code.leave(bad, |code| {
            code.store(number, seat, Seat::FAILED);
            let failed = code.plus(job, i64::from(Job::FAILED));
            let flags = MemFlagsData::trusted();
            code.b.ins().atomic_rmw(I64, flags, AtomicRmwOp::Umin, failed, number);
            code.int(0)
        });
    }

    /// Stores the coordinates of a call, and how many blocks it has.
    fn place(&mut self, number: Value) {
        let rank = self.rank();
        let at = self.places(number);
        for (d, at) in at.into_iter().enumerate() {
            let code = &mut *self.code;
            let (span, extent) = (code.load(self.job, Job::span(rank, d)), code.load(self.job, Job::extent(d)));
            let first = code.b.ins().imul(at, span);
            code.store(first, self.coords, 8 * d as i32);
            let left = code.b.ins().isub(extent, first);
            let count = code.b.ins().umin(span, left);
            code.store(count, self.coords, 8 * (rank + d) as i32);
        }
    }

    /// The place of a call along each dimension: the last one moves fastest, or as [`Raster::place`] says.
    fn places(&mut self, number: Value) -> Vec<Value> {
        let rank = self.rank();
        match self.launched.module.raster.filter(|r| (r.along as usize) < rank) {
            Some(raster) => self.banded(raster, number),
            None => {
                let mut at = vec![number; rank];
                let rest = self.code.variable(number);
                for d in (0..rank).rev() {
                    at[d] = self.next(rest, d);
                }
                at
            }
        }
    }

    fn calls(&mut self, d: usize) -> Value {
        let rank = self.rank();
        self.code.load(self.job, Job::calls(rank, d))
    }

    /// What is left of a number by the calls along a dimension, which it is divided by.
    fn next(&mut self, rest: Variable, d: usize) -> Value {
        let calls = self.calls(d);
        let code = &mut *self.code;
        let n = code.get(rest);
        let at = code.b.ins().urem(n, calls);
        let rest_of = code.b.ins().udiv(n, calls);
        code.set(rest, rest_of);
        at
    }

    fn banded(&mut self, raster: Raster, number: Value) -> Vec<Value> {
        let rank = self.rank();
        let along = raster.along as usize;
        let across = (0..rank).rev().find(|d| *d != along);
        let mut at = vec![number; rank];
        let along_calls = self.calls(along);
        let across_calls = match across {
            Some(d) => self.calls(d),
            None => self.code.int(1),
        };
        let inner = self.code.b.ins().imul(along_calls, across_calls);
        let n = self.code.b.ins().urem(number, inner);
        let rest = self.code.b.ins().udiv(number, inner);
        let rest = self.code.variable(rest);
        for d in (0..rank).rev().filter(|d| *d != along && Some(*d) != across) {
            at[d] = self.next(rest, d);
        }
        let Some(across) = across else {
            at[along] = n;
            return at;
        };
        let code = &mut *self.code;
        let swizzle = code.int(i64::from(raster.swizzle.max(1)));
        let band = code.b.ins().imul(swizzle, along_calls);
        let bands = code.b.ins().udiv(n, band);
        let first = code.b.ins().imul(bands, swizzle);
        let left = code.b.ins().isub(across_calls, first);
        let width = code.b.ins().umin(swizzle, left);
        let n = code.b.ins().urem(n, band);
        at[along] = code.b.ins().udiv(n, width);
        let beside = code.b.ins().urem(n, width);
        at[across] = code.b.ins().iadd(first, beside);
        at
    }
}

/// Defines the hook of `print`, which does nothing.
pub(super) fn silent(maker: &mut Maker, symbol: &str) -> Result<FuncId, String> {
    let params = [I64, I32, I64];
    let id = maker.declare(&format!("{symbol}.silent"), Linkage::Local, &params, None)?;
    maker.function(id, &params, None, |code, _| {
        code.b.ins().return_(&[]);
    })?;
    Ok(id)
}

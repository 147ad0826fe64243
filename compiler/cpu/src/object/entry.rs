//! The function that C calls: it looks at its arguments, prepares the launch, and hands the grid to threads.

use super::code::{Code, Maker};
use super::fail::{self, Messages, Row};
use super::layout::{Job, LINE, Seat, up};
use super::{Extent, Launched, NON_TEMPORAL, Parameter, ParameterKind, SCRATCH, ScalarClass, processor, worker};
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{F32, I8, I16, I32, I64, Type};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cranelift_module::{FuncId, Linkage};
use ptoc_abi::{CALLS_PER_THREAD, COLUMN_WEIGHT, Frame, MOST_BLOCKS, Status};
use ptoc_ir::loops::{Base, Module, Op, Region};
use std::mem::{offset_of, size_of};

/// Most threads of a call.
const MOST_THREADS: i64 = 1024;

/// The functions that the entry calls.
struct Callees {
    fail: FuncId,
    level: FuncId,
    worker: FuncId,
    silent: FuncId,
    /// Bytes that products need beside the tiles.
    scratch: Option<FuncId>,
    /// `pthread_create` and `pthread_join`, where there are such.
    threads: Option<(FuncId, FuncId)>,
}

/// Rows of the messages about arguments.
struct Rows {
    processor: Row,
    grid: Row,
    workspace: Row,
    /// By parameter.
    parameters: Vec<Vec<Row>>,
}

/// Defines the functions of the interface: `NAME` and `NAME_workspace`.
pub(super) fn define(maker: &mut Maker, launched: &Launched<'_>) -> Result<(), String> {
    let interface = launched.interface;
    let symbol = &*interface.symbol;
    let mut messages = Messages::new(interface);
    let rows = rows(launched, &mut messages);
    let fail = fail::declare(maker, symbol)?;
    messages.define(maker, symbol, fail)?;
    let silent = worker::silent(maker, symbol)?;
    let clean = processor::clean(maker, symbol)?;
    let scratch = match launched.panels {
        true => Some(maker.declare(SCRATCH, Linkage::Import, &[], Some(I64))?),
        false => None,
    };
    let threads = match cfg!(windows) {
        true => None,
        false => Some((
            maker.declare("pthread_create", Linkage::Import, &[I64; 4], Some(I32))?,
            maker.declare("pthread_join", Linkage::Import, &[I64; 2], Some(I32))?,
        )),
    };
    let level = processor::level(maker, symbol)?;
    let worker = worker::define(maker, launched, (clean, silent))?;
    let callees = Callees { fail, level, worker, silent, scratch, threads };
    workspace(maker, launched, &callees)?;
    let mut params: Vec<Type> = interface.parameters.iter().map(machine).collect();
    params.extend([I64, I64, I32, I64]);
    let id = maker.declare(symbol, Linkage::Export, &params, Some(I32))?;
    maker.function(id, &params, Some(I32), |code, args| {
        let (own, last) = args.split_at(interface.parameters.len());
        let [workspace, bytes, threads, status] = last[..] else { return };
        let mut entry = Entry { code, launched, callees: &callees, rows: &rows, args: own, status };
        entry.emit((workspace, bytes), threads);
    })
}

/// How a parameter is passed.
fn machine(parameter: &Parameter) -> Type {
    match parameter.kind {
        ParameterKind::Scalar { class: ScalarClass::F32, .. } => F32,
        ParameterKind::Scalar { class: ScalarClass::Int(bits), .. } => match bits {
            1..=8 => I8,
            9..=16 => I16,
            17..=32 => I32,
            _ => I64,
        },
        _ => I64,
    }
}

fn rows(launched: &Launched<'_>, messages: &mut Messages) -> Rows {
    let interface = launched.interface;
    let codes = interface.codes;
    let parameters = interface.parameters.iter().map(|p| {
        let name = &p.name;
        match &p.kind {
            ParameterKind::Scalar { .. } => Vec::new(),
            ParameterKind::Dimension { .. } => {
                vec![messages.row(codes.dimension, format!("dimension `{name}` is {{0}}"))]
            }
            ParameterKind::Tensor { size, .. } => vec![
                messages.row(codes.too_large, format!("the array of `{name}` has more bytes than can be addressed")),
                messages.row(codes.null, format!("the pointer of `{name}` is null")),
                messages.row(codes.misaligned, format!("the array of `{name}` does not begin at a multiple of {size}")),
                messages.row(codes.overlap, format!("the array of `{name}` is written, and shares bytes with another")),
                messages.row(codes.overlap, format!("the array of `{name}` shares bytes with the workspace")),
            ],
        }
    });
    let parameters = parameters.collect();
    Rows {
        processor: messages.row(codes.processor, "the processor lacks SSE 4.2, which the code needs"),
        grid: messages.row(codes.grid, format!("the grid has more than {MOST_BLOCKS} blocks")),
        workspace: messages.row(codes.workspace, "the workspace has {1} bytes, and {0} are needed"),
        parameters,
    }
}

/// Defines `NAME_workspace`: bytes that a call with so many threads needs.
fn workspace(maker: &mut Maker, launched: &Launched<'_>, callees: &Callees) -> Result<(), String> {
    let name = format!("{}_workspace", launched.interface.symbol);
    let id = maker.declare(&name, Linkage::Export, &[I32], Some(I64))?;
    maker.function(id, &[I32], Some(I64), |code, args| {
        let threads = clamped(code, args[0]);
        let each = tiles(code, launched, callees);
        let bytes = needed(code, each, threads);
        let none = code.is_int(IntCC::Equal, bytes, 0);
        let zero = code.int(0);
        let slack = code.plus(bytes, LINE as i64 - 1);
        let bytes = code.b.ins().select(none, zero, slack);
        code.b.ins().return_(&[bytes]);
    })
}

/// A number of threads as it is meant.
fn clamped(code: &mut Code<'_>, threads: Value) -> Value {
    let threads = code.b.ins().sextend(I64, threads);
    let (one, most) = (code.int(1), code.int(MOST_THREADS));
    let threads = code.b.ins().smax(threads, one);
    code.b.ins().smin(threads, most)
}

/// Bytes of tiles of a thread, in whole lines.
fn tiles(code: &mut Code<'_>, launched: &Launched<'_>, callees: &Callees) -> Value {
    let own = code.int(up(launched.arena, LINE) as i64);
    let Some(bytes) = callees.scratch.and_then(|scratch| code.call(scratch, &[])) else { return own };
    let all = code.b.ins().iadd(own, bytes);
    let all = code.plus(all, LINE as i64 - 1);
    code.b.ins().band_imm_s(all, -(LINE as i64))
}

/// Bytes for so many threads, from a whole line on: tiles of each, and the seats of all but the first.
fn needed(code: &mut Code<'_>, each: Value, threads: Value) -> Value {
    let tiles = code.b.ins().imul(each, threads);
    let others = code.plus(threads, -1);
    let seats = code.b.ins().imul_imm_s(others, Seat::SIZE as i64);
    code.b.ins().iadd(tiles, seats)
}

/// The function that is being written.
struct Entry<'e, 'f, 'm> {
    code: &'e mut Code<'f>,
    launched: &'e Launched<'m>,
    callees: &'e Callees,
    rows: &'e Rows,
    args: &'e [Value],
    status: Value,
}

/// A tensor's memory.
struct Memory {
    parameter: usize,
    tensor: usize,
    first: Value,
    behind: Value,
    bytes: Value,
    written: bool,
}

impl Entry<'_, '_, '_> {
    fn emit(&mut self, workspace: (Value, Value), threads: Value) {
        let rank = self.launched.module.launch.results.len();
        self.dimensions();
        let memory = self.memory();
        self.apart(&memory);
        let job = self.code.room(Job::size(rank));
        self.tables(job, &memory);
        let threads = clamped(self.code, threads);
        self.launch(job, rank);
        let threads = self.grid(job, rank, threads);
        self.run(job, workspace, threads, &memory);
        let code = &mut *self.code;
        let done = code.b.ins().iconst(I32, 0);
        code.b.ins().return_(&[done]);
    }

    /// Refuses the call with a row, if `cond`.
    fn refuse(&mut self, cond: Value, row: Row, numbers: &[Value]) {
        let (fail, status) = (self.callees.fail, self.status);
        self.code.leave(cond, |code| code.refuse(fail, status, row, numbers));
    }

    fn dimensions(&mut self) {
        for (n, p) in self.launched.interface.parameters.iter().enumerate() {
            if let ParameterKind::Dimension { .. } = p.kind {
                let negative = self.code.is_int(IntCC::SignedLessThan, self.args[n], 0);
                self.refuse(negative, self.rows.parameters[n][0], &[self.args[n]]);
            }
        }
    }

    /// The memory of each tensor, which must be there and aligned.
    fn memory(&mut self) -> Vec<Memory> {
        let interface = self.launched.interface;
        let mut all = Vec::new();
        for (n, p) in interface.parameters.iter().enumerate() {
            let ParameterKind::Tensor { tensor, size, extents, written } = &p.kind else { continue };
            let rows = &self.rows.parameters[n];
            let mut bytes = self.code.int(i64::from(*size));
            for extent in extents.iter().flatten() {
                let extent = match extent {
                    Extent::Const(number) => self.code.int(*number as i64),
                    Extent::Dimension(slot) => self.dimension(*slot),
                };
                let (product, over) = self.code.b.ins().umul_overflow(bytes, extent);
                self.refuse(over, rows[0], &[]);
                bytes = product;
            }
            let negative = self.code.is_int(IntCC::SignedLessThan, bytes, 0);
            self.refuse(negative, rows[0], &[]);
            let first = self.args[n];
            let (behind, over) = self.code.b.ins().uadd_overflow(first, bytes);
            self.refuse(over, rows[0], &[]);
            let code = &mut *self.code;
            let (null, any) = (code.is_int(IntCC::Equal, first, 0), code.is_int(IntCC::NotEqual, bytes, 0));
            let missing = code.b.ins().band(null, any);
            self.refuse(missing, rows[1], &[]);
            let code = &mut *self.code;
            let odd = code.b.ins().band_imm_s(first, i64::from(*size) - 1);
            let odd = code.is_int(IntCC::NotEqual, odd, 0);
            let misaligned = code.b.ins().band(odd, any);
            self.refuse(misaligned, rows[2], &[]);
            all.push(Memory { parameter: n, tensor: *tensor, first, behind, bytes, written: *written });
        }
        all
    }

    /// The argument of the dimension in a slot.
    fn dimension(&mut self, slot: usize) -> Value {
        let is = |p: &Parameter| p.kind == ParameterKind::Dimension { slot };
        match self.launched.interface.parameters.iter().position(is) {
            Some(n) => self.args[n],
            None => self.code.int(0),
        }
    }

    /// Nothing that is written shares bytes with another array.
    fn apart(&mut self, memory: &[Memory]) {
        for (n, own) in memory.iter().enumerate().filter(|(_, m)| m.written) {
            for other in memory.iter().enumerate().filter(|(k, o)| *k > n || (*k < n && !o.written)).map(|(_, o)| o) {
                let code = &mut *self.code;
                let begins = code.is(IntCC::UnsignedLessThan, own.first, other.behind);
                let ends = code.is(IntCC::UnsignedLessThan, other.first, own.behind);
                let both = code.b.ins().band(begins, ends);
                // Empty arrays are nowhere.
                let any = [own, other].map(|m| code.is_int(IntCC::NotEqual, m.bytes, 0));
                let any = code.b.ins().band(any[0], any[1]);
                let both = code.b.ins().band(both, any);
                self.refuse(both, self.rows.parameters[own.parameter][3], &[]);
            }
        }
    }

    /// Parameters and pointers as the code finds them, and which arrays are written past the caches.
    fn tables(&mut self, job: Value, memory: &[Memory]) {
        let module = self.launched.module;
        let params = self.code.room(8 * module.launch.params.len() as u32);
        for (n, p) in self.launched.interface.parameters.iter().enumerate() {
            let arg = self.args[n];
            let code = &mut *self.code;
            let (slot, value) = match p.kind {
                ParameterKind::Dimension { slot } => (slot, arg),
                ParameterKind::Scalar { slot, class: ScalarClass::F32 } => {
                    let bits = code.b.ins().bitcast(I32, MemFlagsData::new(), arg);
                    (slot, code.b.ins().uextend(I64, bits))
                }
                ParameterKind::Scalar { slot, .. } if machine(p) == I64 => (slot, arg),
                ParameterKind::Scalar { slot, .. } => (slot, code.b.ins().uextend(I64, arg)),
                ParameterKind::Tensor { .. } => continue,
            };
            code.store(value, params, 8 * slot as i32);
        }
        let code = &mut *self.code;
        for &(slot, bits) in &self.launched.interface.constants {
            code.store_int(bits, params, 8 * slot as i32);
        }
        let tensors = code.room(8 * module.tensors.len() as u32);
        let mut non_temporal = code.int(0);
        for m in memory {
            code.store(m.first, tensors, 8 * m.tensor as i32);
            if m.tensor < 64 {
                let large = code.is_int(IntCC::UnsignedGreaterThanOrEqual, m.bytes, NON_TEMPORAL);
                let large = code.b.ins().uextend(I64, large);
                let bit = code.b.ins().ishl_imm_u(large, m.tensor as i64);
                non_temporal = code.b.ins().bor(non_temporal, bit);
            }
        }
        code.store(params, job, Job::PARAMS);
        code.store(tensors, job, Job::TENSORS);
        code.store(non_temporal, job, Job::NON_TEMPORAL);
    }

    /// Chooses the variant, and runs its launch function: checks, and the extents of the grid.
    fn launch(&mut self, job: Value, rank: usize) {
        let code = &mut *self.code;
        let level = code.call(self.callees.level, &[]).unwrap_or(job);
        let none = code.is_int(IntCC::Equal, level, 0);
        self.refuse(none, self.rows.processor, &[]);
        let code = &mut *self.code;
        let mut chosen: Option<(Value, Value)> = None;
        for (n, &(launch, block)) in self.launched.variants.iter().enumerate() {
            let (launch, block) = (code.address(launch), code.address(block));
            chosen = Some(match chosen {
                None => (launch, block),
                Some((launch_before, block_before)) => {
                    let enough = code.is_int(IntCC::UnsignedGreaterThan, level, n as i64);
                    let launch = code.b.ins().select(enough, launch, launch_before);
                    (launch, code.b.ins().select(enough, block, block_before))
                }
            });
        }
        let Some((launch, block)) = chosen else { return };
        code.store(block, job, Job::BLOCK);
        code.store(level, job, Job::LEVEL);
        let status = code.room(size_of::<Status>() as u32);
        // Narrow floats are unpacked by way of memory.
        let arena = match launch_spaces(self.launched.module) {
            None => code.int(0),
            Some((first, behind)) => {
                let room = code.room((behind - first) as u32);
                code.plus(room, -(first as i64))
            }
        };
        let frame = worker::frame(code, job, (arena, status), self.callees.silent);
        let results = code.plus(job, i64::from(Job::EXTENTS));
        code.store(results, frame, offset_of!(Frame, results) as i32);
        let result = code.call_at(launch, frame);
        let bad = code.b.ins().icmp_imm_s(IntCC::NotEqual, result, 0);
        let (fail, own) = (self.callees.fail, self.status);
        code.leave(bad, |code| {
            let no_block = code.int(-1);
            code.report(fail, own, status, no_block)
        });
        for d in 0..rank {
            let extent = code.load(job, Job::extent(d));
            let empty = code.is_int(IntCC::SignedLessThanOrEqual, extent, 0);
            code.leave(empty, |code| code.b.ins().iconst(I32, 0));
        }
    }

    /// Divides the grid into calls of the block function and chunks of them, as `ptoc_exec` does; gives the number of
    /// threads that there is work for.
    fn grid(&mut self, job: Value, rank: usize, threads: Value) -> Value {
        let mut blocks = self.code.int(1);
        for d in 0..rank {
            let extent = self.code.load(job, Job::extent(d));
            let (product, over) = self.code.b.ins().umul_overflow(blocks, extent);
            self.refuse(over, self.rows.grid, &[]);
            let many = self.code.is_int(IntCC::UnsignedGreaterThan, product, i64::from(MOST_BLOCKS));
            self.refuse(many, self.rows.grid, &[]);
            blocks = product;
        }
        let code = &mut *self.code;
        let threads = code.b.ins().umin(threads, blocks);
        self.spans(job, rank, threads);
        let code = &mut *self.code;
        let mut calls = code.int(1);
        for d in 0..rank {
            let (extent, span) = (code.load(job, Job::extent(d)), code.load(job, Job::span(rank, d)));
            let along = code.over(extent, span);
            code.store(along, job, Job::calls(rank, d));
            calls = code.b.ins().imul(calls, along);
        }
        let threads = code.b.ins().umin(threads, calls);
        // Small enough to balance, large enough that the counter is not contended.
        let parts = code.b.ins().imul_imm_s(threads, 8);
        let chunk = code.b.ins().udiv(calls, parts);
        let (least, most) = (code.int(1), code.int(64));
        let chunk = code.b.ins().umax(chunk, least);
        let chunk = code.b.ins().umin(chunk, most);
        let alone = code.is_int(IntCC::Equal, threads, 1);
        let chunk = code.b.ins().select(alone, calls, chunk);
        code.store(chunk, job, Job::CHUNK);
        code.store(calls, job, Job::CALLS);
        code.store_int(0, job, Job::NEXT);
        code.store_int(-1, job, Job::FAILED);
        threads
    }

    /// How many blocks a call runs along each dimension: `spans` of `ptoc_exec`, but for grids with one row of blocks.
    fn spans(&mut self, job: Value, rank: usize, threads: Value) {
        let code = &mut *self.code;
        let spread: Vec<usize> = self.launched.module.spread.iter().map(|d| *d as usize).collect();
        let one = code.int(1);
        let mut spans = Vec::new();
        for d in 0..rank {
            let extent = code.load(job, Job::extent(d));
            let first = if spread.contains(&d) { extent } else { one };
            spans.push(code.variable(first));
        }
        let alone = code.is_int(IntCC::Equal, threads, 1);
        let each = code.b.ins().imul_imm_s(threads, CALLS_PER_THREAD);
        let wanted = code.b.ins().select(alone, one, each);
        code.repeat(|code, end| {
            let mut calls = one;
            for (d, &span) in spans.iter().enumerate() {
                let (extent, span) = (code.load(job, Job::extent(d)), code.get(span));
                let along = code.over(extent, span);
                calls = code.b.ins().imul(calls, along);
            }
            let enough = code.is(IntCC::UnsignedGreaterThanOrEqual, calls, wanted);
            code.until(enough, end);
            // What weighs most, and the last of those that weigh the same.
            let mut most = code.int(0);
            let mut weights = Vec::new();
            for &d in &spread {
                let more = code.get(spans[d]);
                let more = code.plus(more, -1);
                let times = if spread.last() == Some(&d) { COLUMN_WEIGHT } else { 1 };
                let weight = code.b.ins().imul_imm_s(more, times);
                most = code.b.ins().umax(most, weight);
                weights.push(weight);
            }
            let none = code.is_int(IntCC::Equal, most, 0);
            code.until(none, end);
            let mut halved = code.int(0);
            for (&d, weight) in spread.iter().zip(weights).rev() {
                let widest = code.is(IntCC::Equal, weight, most);
                let first = code.is_int(IntCC::Equal, halved, 0);
                let this = code.b.ins().band(widest, first);
                let span = code.get(spans[d]);
                let less = code.plus(span, -1);
                let half = code.b.ins().ushr_imm_u(less, 1);
                let half = code.plus(half, 1);
                let span = code.b.ins().select(this, half, span);
                code.set(spans[d], span);
                halved = code.b.ins().select(this, one, halved);
            }
        });
        for (d, span) in spans.into_iter().enumerate() {
            let span = code.get(span);
            code.store(span, job, Job::span(rank, d));
        }
    }

    /// Runs the grid, on this thread and on others.
    fn run(&mut self, job: Value, (workspace, bytes): (Value, Value), threads: Value, memory: &[Memory]) {
        let each = tiles(self.code, self.launched, self.callees);
        let needs = needed(self.code, each, threads);
        let code = &mut *self.code;
        let aligned = code.plus(workspace, LINE as i64 - 1);
        let aligned = code.b.ins().band_imm_s(aligned, -(LINE as i64));
        let lost = code.b.ins().isub(aligned, workspace);
        let all = code.b.ins().iadd(needs, lost);
        let any = code.is_int(IntCC::NotEqual, needs, 0);
        let null = code.is_int(IntCC::Equal, workspace, 0);
        let few = code.is(IntCC::UnsignedLessThan, bytes, all);
        let bad = code.b.ins().bor(null, few);
        let bad = code.b.ins().band(bad, any);
        self.refuse(bad, self.rows.workspace, &[needs, bytes]);
        let end = self.code.b.ins().iadd(aligned, needs);
        for m in memory {
            let code = &mut *self.code;
            let begins = code.is(IntCC::UnsignedLessThan, m.first, end);
            let ends = code.is(IntCC::UnsignedLessThan, aligned, m.behind);
            let both = code.b.ins().band(begins, ends);
            let array = code.is_int(IntCC::NotEqual, m.bytes, 0);
            let any = code.b.ins().band(any, array);
            let both = code.b.ins().band(both, any);
            self.refuse(both, self.rows.parameters[m.parameter][4], &[]);
        }
        let code = &mut *self.code;
        let own = code.room(Seat::SIZE as u32);
        seat(code, own, job, aligned);
        let Some((create, join)) = self.callees.threads else {
            code.call(self.callees.worker, &[own]);
            self.outcome(own);
            return;
        };
        let tiles = code.b.ins().imul(each, threads);
        let seats = code.b.ins().iadd(aligned, tiles);
        let one = code.int(1);
        let started = code.variable(one);
        let worker = code.address(self.callees.worker);
        let place = |code: &mut Code<'_>, n: Value| {
            let before = code.plus(n, -1);
            let offset = code.b.ins().imul_imm_s(before, Seat::SIZE as i64);
            code.b.ins().iadd(seats, offset)
        };
        code.repeat(|code, end| {
            let n = code.get(started);
            let all = code.is(IntCC::UnsignedGreaterThanOrEqual, n, threads);
            code.until(all, end);
            let at = place(code, n);
            let offset = code.b.ins().imul(each, n);
            let arena = code.b.ins().iadd(aligned, offset);
            seat(code, at, job, arena);
            let handle = code.plus(at, i64::from(Seat::THREAD));
            let null = code.int(0);
            let refused = code.call(create, &[handle, null, worker, at]).unwrap_or(null);
            let refused = code.b.ins().icmp_imm_s(IntCC::NotEqual, refused, 0);
            // Fewer threads do the same.
            code.until(refused, end);
            let next = code.plus(n, 1);
            code.set(started, next);
        });
        code.call(self.callees.worker, &[own]);
        let joined = code.variable(one);
        // The seat that has failed at the lowest block.
        let lowest = code.variable(own);
        code.repeat(|code, end| {
            let (n, all) = (code.get(joined), code.get(started));
            let over = code.is(IntCC::UnsignedGreaterThanOrEqual, n, all);
            code.until(over, end);
            let at = place(code, n);
            let (thread, null) = (code.load(at, Seat::THREAD), code.int(0));
            code.call(join, &[thread, null]);
            let best = code.get(lowest);
            let (this, that) = (code.load(at, Seat::FAILED), code.load(best, Seat::FAILED));
            let lower = code.is(IntCC::UnsignedLessThan, this, that);
            let best = code.b.ins().select(lower, at, best);
            code.set(lowest, best);
            let next = code.plus(n, 1);
            code.set(joined, next);
        });
        let lowest = code.get(lowest);
        self.outcome(lowest);
    }

    /// Reports what a seat has found.
    fn outcome(&mut self, seat: Value) {
        let (fail, own) = (self.callees.fail, self.status);
        let code = &mut *self.code;
        let failed = code.load(seat, Seat::FAILED);
        let bad = code.is_int(IntCC::NotEqual, failed, -1);
        code.leave(bad, |code| {
            let check = code.plus(seat, i64::from(Seat::STATUS));
            code.report(fail, own, check, failed)
        });
    }
}

/// Fills a seat.
fn seat(code: &mut Code<'_>, at: Value, job: Value, arena: Value) {
    code.store(job, at, Seat::JOB);
    code.store(arena, at, Seat::ARENA);
    code.store_int(-1, at, Seat::FAILED);
}

/// First and last-but-one byte of the arena that the launch function uses, if it uses any.
fn launch_spaces(module: &Module) -> Option<(u64, u64)> {
    fn region(module: &Module, of: &Region, found: &mut Option<(u64, u64)>) {
        for stmt in of {
            match &stmt.op {
                Op::Load { addr, .. } | Op::Store { addr, .. } => {
                    let Base::Space(space) = addr.base else { continue };
                    let space = &module.spaces[space];
                    let (first, behind) = found.unwrap_or((u64::MAX, 0));
                    *found = Some((first.min(space.offset), behind.max(space.offset + space.size)));
                }
                Op::If(i) => [&i.then, &i.els].into_iter().for_each(|r| region(module, r, found)),
                Op::While(w) => [&w.head, &w.body].into_iter().for_each(|r| region(module, r, found)),
                Op::For(f) => region(module, &f.body, found),
                Op::Lanes(l) => region(module, &l.body, found),
                Op::Scope(s) => region(module, &s.body, found),
                _ => {}
            }
        }
    }
    let mut found = None;
    region(module, &module.launch.body, &mut found);
    found
}

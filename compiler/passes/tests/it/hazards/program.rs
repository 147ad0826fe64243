//! Small programs of loads, vector work, stores, flags and loops: as tile IR, and unrolled for an oracle.

use crate::harness::*;
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{
    AddrKind, Event, EventData, EventKind, EventRef, For, If, InstAttrs, Kernel, Op, Operand, Purpose, SyncMode,
    SyncOp, TensorDir, TensorId, Tile, TileRef, Ty, Value,
};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, Loc, Order, Pipe, TileType};
use ptoc_tensor::DType;

/// An element of an array of two or three.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum At {
    Fixed(i64),
    /// `(counter + n) % m` of the innermost loop; outside of one, `n % m`.
    Turn(i64, i64),
}

/// A condition on the innermost loop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    First,
    NotFirst,
    Last,
    NotLast,
    /// Of the kernel: not known.
    Argument,
}

/// A statement.
#[derive(Clone, PartialEq, Debug)]
pub enum P {
    /// MTE2 writes `src`.
    Load(At),
    /// V reads `src`, writes `dst`.
    Work(At, At),
    /// V overwrites `dst`.
    Fill(At),
    /// MTE3 reads `dst`.
    Store(At),
    /// S reads an element of `dst`.
    Look(At),
    /// S writes an element of `src`.
    Poke(At),
    /// MTE3 reads `dst` and adds it to `z`.
    Add(At),
    /// S updates an element of `z`, and nobody uses the old value.
    Bump(AtomicOp),
    /// MTE2 reads `z`, writes `src`.
    Fetch(At),
    Set(usize, At),
    Wait(usize, At),
    Barrier(Option<Pipe>),
    Loop(Trip, Vec<P>),
    If(When, Vec<P>),
}

/// How often.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trip {
    /// The first or second dimension of the launch.
    Dim(usize),
    Times(i64),
}

/// The events: pipes.
pub const EVENTS: [(Pipe, Pipe); 6] = [
    (Pipe::Mte2, Pipe::V),
    (Pipe::V, Pipe::Mte2),
    (Pipe::V, Pipe::Mte3),
    (Pipe::Mte3, Pipe::V),
    (Pipe::V, Pipe::S),
    (Pipe::S, Pipe::V),
];

/// Elements of each array.
pub const ELEMENTS: i64 = 3;

struct Build {
    k: K,
    src: Tile,
    dst: Tile,
    x: TensorId,
    y: TensorId,
    z: TensorId,
    dims: Vec<Value>,
    flag: Value,
    loops: Vec<(Value, Value)>,
}

/// The kernel of a program.
pub fn kernel(program: &[P]) -> Kernel {
    let mut k = K::new("program");
    k.b.kernel_mut().target = "a2a3".into();
    let dims = vec![k.dim("N"), k.dim("M")];
    let span = k.span();
    let flag = k.b.scalar_param("flag", Ty::BOOL, span);
    let (rows, cols) = (k.c(8), k.c(64));
    let x = k.tensor("x", DType::F32, TensorDir::In, &[rows, cols]);
    let y = k.tensor("y", DType::F32, TensorDir::Out, &[rows, cols]);
    let z = k.tensor("z", DType::F32, TensorDir::InOut, &[rows, cols]);
    k.b.kernel_mut().sync = SyncMode::Manual;
    for (n, (from, to)) in EVENTS.into_iter().enumerate() {
        let span = k.span();
        let data = EventData {
            name: format!("e{n}").into(),
            kind: EventKind::Flag,
            from,
            to,
            count: ELEMENTS as u32,
            purpose: Purpose::Author,
            span,
        };
        k.b.kernel_mut().events.push(data);
    }
    k.b.begin_body();
    let ty = TileType { loc: Loc::Vec, dtype: DType::F32, rows: 8, cols: 64, order: Order::Nd, layout: None };
    let at = |from: u64| AddrKind::Fixed((0..ELEMENTS as u64).map(|n| from + n * 2048).collect());
    let src = k.place("src", ty, at(0), ELEMENTS as u32, 1);
    let dst = k.place("dst", ty, at(0x4000), ELEMENTS as u32, 1);
    let mut build = Build { k, src, dst, x, y, z, dims, flag, loops: Vec::new() };
    build.all(program);
    build.k.finish()
}

impl Build {
    fn all(&mut self, program: &[P]) {
        program.iter().for_each(|p| self.one(p));
    }

    fn element(&mut self, at: At) -> Value {
        match at {
            At::Fixed(n) => self.k.c(n),
            At::Turn(n, m) => {
                let Some(&(j, _)) = self.loops.last() else { return self.k.c(n % m) };
                let (n, m, span) = (self.k.c(n), self.k.c(m), self.k.span());
                let sum = self.k.b.add(j, n, span);
                self.k.b.binary(BinOp::Rem, sum, m, span)
            }
        }
    }

    fn tile(&mut self, tile: Tile, at: At) -> TileRef {
        let element = Some(self.element(at));
        TileRef { element, ..self.k.b.whole(tile) }
    }

    fn event(&mut self, n: usize, at: At) -> EventRef {
        let element = Some(self.element(at));
        EventRef { event: Event::from_u32(n as u32), element }
    }

    fn condition(&mut self, when: When) -> Option<Value> {
        let Some(&(j, hi)) = self.loops.last() else {
            return (when == When::Argument).then_some(self.flag);
        };
        let (zero, one, span) = (self.k.c(0), self.k.c(1), self.k.span());
        let next = self.k.b.add(j, one, span);
        Some(match when {
            When::First => self.k.b.compare(CmpOp::Eq, j, zero, span),
            When::NotFirst => self.k.b.compare(CmpOp::Gt, j, zero, span),
            When::Last => self.k.b.compare(CmpOp::Eq, next, hi, span),
            When::NotLast => self.k.b.compare(CmpOp::Lt, next, hi, span),
            When::Argument => self.flag,
        })
    }

    fn one(&mut self, p: &P) {
        let (rows, cols) = (self.k.c(8), self.k.c(64));
        let zero = self.k.c(0);
        let span: Span = self.k.span();
        match p {
            P::Load(at) => {
                let t = self.tile(self.src, *at);
                let view = self.k.view(self.x, rows, cols);
                self.k.load(t, view);
            }
            P::Work(a, b) => {
                let (s, d) = (self.tile(self.src, *a), self.tile(self.dst, *b));
                self.k.tiles("TNEG", &[d, s]);
            }
            P::Fill(at) => {
                let d = self.tile(self.dst, *at);
                let x = self.k.b.float_const(DType::F32, 1.0);
                self.k.inst("TEXPANDS", vec![Operand::Tile(d), Operand::Scalar(x)], Default::default());
            }
            P::Store(at) => {
                let t = self.tile(self.dst, *at);
                let view = self.k.view(self.y, rows, cols);
                self.k.store(view, t);
            }
            P::Look(at) => {
                let t = self.tile(self.dst, *at);
                self.k.b.tile_get(t, zero, zero, span);
            }
            P::Poke(at) => {
                let tile = self.tile(self.src, *at);
                let value = self.k.b.float_const(DType::F32, 1.0);
                self.k.b.emit(Op::TileSet { tile, row: zero, col: zero, value }, span);
            }
            P::Add(at) => {
                let t = self.tile(self.dst, *at);
                let view = self.k.view(self.z, rows, cols);
                let attrs = InstAttrs { atomic: Some(AtomicOp::Add), ..InstAttrs::default() };
                self.k.inst("TSTORE", vec![Operand::View(view), Operand::Tile(t)], attrs);
            }
            P::Bump(op) => {
                let value = self.k.b.float_const(DType::F32, 1.0);
                let dst = self.k.b.new_value(Ty::D(DType::F32), None, span);
                self.k.b.define_here(dst);
                let update = Op::Atomic { dst, op: *op, tensor: self.z, offset: zero, expected: None, value };
                self.k.b.emit(update, span);
            }
            P::Fetch(at) => {
                let t = self.tile(self.src, *at);
                let view = self.k.view(self.z, rows, cols);
                self.k.load(t, view);
            }
            P::Set(n, at) => {
                let e = self.event(*n, *at);
                self.k.b.sync(SyncOp::Set(e), span);
            }
            P::Wait(n, at) => {
                let e = self.event(*n, *at);
                self.k.b.sync(SyncOp::Wait(e), span);
            }
            P::Barrier(pipe) => self.k.b.sync(SyncOp::Barrier(*pipe), span),
            P::Loop(trip, body) => {
                let hi = match trip {
                    Trip::Dim(n) => self.dims[*n],
                    Trip::Times(n) => self.k.c(*n),
                };
                let label = self.k.b.label(span);
                let index = self.k.b.new_value(Ty::Index, Some("j".into()), span);
                self.k.b.push_region();
                self.k.b.define_here(index);
                self.loops.push((index, hi));
                self.all(body);
                self.loops.pop();
                let body = self.k.b.pop_region();
                self.k.b.emit(Op::For(Box::new(For { label, index, lo: zero, hi, stages: 1, body })), span);
            }
            P::If(when, body) => {
                let Some(cond) = self.condition(*when) else { return self.all(body) };
                self.k.b.push_region();
                self.all(body);
                let then = self.k.b.pop_region();
                self.k.b.emit(Op::If(Box::new(If { cond, then, els: Vec::new() })), span);
            }
        }
    }
}

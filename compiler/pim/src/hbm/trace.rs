//! What one block does, as stores of expressions to bursts of its unit.
//!
//! Tiles are bursts: element (i, j) is lane `j % 16` of burst `j / 16` of row `i`. A tile's burst holds an expression
//! and how many of its lanes count; what the other lanes hold never reaches a tensor.

mod access;
mod arithmetic;
mod overlaps;

use super::Res;
use super::congruent::Hulls;
use super::node::{BankBurst, Node, NodeId, Nodes};
use super::places::{Home, Places};
use super::refusals;
use super::turn::Turns;
use crate::advice;
use crate::eval::{BlockScalars, Visitor};
use overlaps::Overlaps;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Inst, Kernel, Op, Operand, Stmt, TensorDir, TensorId, Tile, TileRef, Value};
use ptoc_isa::{BinOp, Expr, Loc, Order, Reduce, Sem, TileType, UnOp};
use ptoc_pim_stream::stream::BURST;
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};
use std::cell::RefCell;

/// Lanes of a burst.
pub const LANES: u32 = 16;

/// Operations and operands of a launch, counted once where all units do them at once: so many take seconds to compile.
const OPERATIONS: usize = 1 << 21;

/// A burst that a block stores.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Store {
    /// Where.
    pub at: BankBurst,
    /// What.
    pub node: NodeId,
    /// Lanes that are elements of the tensor.
    pub lanes: u32,
    /// The statement.
    pub span: Span,
}

/// A block's stores in order.
#[derive(Debug, Default)]
pub struct BlockTrace {
    /// See above.
    pub stores: Vec<Store>,
}

impl BlockTrace {
    /// Without stores to bursts that the block stores again: what it reads of them, it has.
    #[must_use]
    pub fn last_stores(self) -> Vec<Store> {
        let mut seen = FxHashSet::default();
        let mut out: Vec<Store> = self.stores.into_iter().rev().filter(|s| seen.insert(s.at)).collect();
        out.reverse();
        out
    }
}

/// What a burst of a tile holds.
#[derive(Clone, Copy)]
struct Slot {
    node: NodeId,
    lanes: u32,
}

/// Whether the columns of such tiles lie in lanes. A single column has its elements next to each other either way.
pub(super) fn is_down(ty: &TileType) -> bool {
    ty.order == Order::Dn || (ty.cols == 1 && ty.rows > 1)
}

/// A window of a tile, in bursts. Of a tile whose columns lie in lanes (`down`), rows are columns here and columns are
/// rows.
pub(super) struct BurstWindow {
    tile: Tile,
    down: bool,
    /// Index of the tile array's element times its rows, plus the window's first row.
    row: u32,
    /// First burst of each row.
    burst: u32,
    pub(super) rows: u32,
    pub(super) cols: u32,
}

impl BurstWindow {
    /// Whether columns lie in lanes.
    pub(super) fn is_down(&self) -> bool {
        self.down
    }

    fn bursts(&self) -> u32 {
        self.cols.div_ceil(LANES)
    }

    /// Lanes of burst `n` of a row.
    fn lanes(&self, n: u32) -> u32 {
        (self.cols - n * LANES).min(LANES)
    }
}

/// Traces a block.
pub struct Tracer<'t> {
    /// The kernel.
    pub kernel: &'t Kernel,
    /// All expressions.
    pub nodes: &'t mut Nodes,
    /// Where tensors are.
    pub places: &'t Places,
    /// Bursts whose lanes become bursts.
    pub turns: &'t mut Turns,
    /// The block's unit.
    pub home: Home,
    tiles: FxHashMap<BurstKey, Slot>,
    /// What this block has stored.
    written: FxHashMap<BankBurst, Slot>,
    /// Values at addresses that are lost.
    overlaps: RefCell<Overlaps>,
    /// What this block touches, if it may stand for others.
    pub hulls: Hulls,
    /// The result.
    pub trace: BlockTrace,
}

/// Where a burst of a tile is: in the tile, which has storage of its own; or, of one that is bound to an address, in
/// the store, where another tile may have it too.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum BurstKey {
    Own(Tile, u32, u32),
    Bound(Loc, u64),
}

fn error<T>(code: ptoc_diagnostics::Code, span: Span, message: String, label: &str, help: &str) -> Res<T> {
    Err(Box::new(Diagnostic::error(code, span, message).with_label(label).with_help(help)))
}

/// A scalar operand.
#[derive(Clone, Copy, Debug)]
pub(in crate::hbm) enum Number {
    /// A number of the launch.
    Known(u16),
    /// An element of an array of the host, by the array's number and the element's first byte.
    Element { tensor: u32, offset: u64, read: Span },
}

/// Lines of a tile, and elements of one: its rows, or the columns of a column tile.
fn lines(ty: &TileType) -> (u32, u32) {
    if is_down(ty) { (ty.cols, ty.rows) } else { (ty.rows, ty.cols) }
}

impl<'t> Tracer<'t> {
    /// For a block of this unit.
    pub fn new(
        kernel: &'t Kernel,
        nodes: &'t mut Nodes,
        places: &'t Places,
        turns: &'t mut Turns,
        home: Home,
    ) -> Tracer<'t> {
        let (tiles, written, trace) = (FxHashMap::default(), FxHashMap::default(), BlockTrace::default());
        let (overlaps, hulls) = (RefCell::default(), Hulls::default());
        Tracer { kernel, nodes, places, turns, home, tiles, written, overlaps, hulls, trace }
    }

    /// The block is over: what it stores, and whether it has read only what was there.
    pub fn finish(self) -> Res<(Hulls, Vec<Store>)> {
        self.overlaps.borrow().end(self.kernel)?;
        Ok((self.hulls, self.trace.last_stores()))
    }

    /// The element of a tile array that a line is of.
    fn part(&self, w: &BurstWindow, i: u32) -> (Tile, u32) {
        (w.tile, (w.row + i) / lines(&self.kernel.tiles[w.tile].ty).0.max(1))
    }

    fn cannot<T>(&self, span: Span, message: String) -> Res<T> {
        Err(refusals::cannot(self.kernel, span, message))
    }

    /// There is no such instruction.
    pub(super) fn lacks<T>(&self, span: Span, name: &str) -> Res<T> {
        Err(refusals::lacks(self.kernel, span, name))
    }

    /// A tile in words: what an expression computes has no name of the author's.
    fn named(&self, tile: Tile) -> String {
        let data = &self.kernel.tiles[tile];
        if data.hidden { "this value".into() } else { format!("`{}`", data.name) }
    }

    pub(super) fn window(&self, numbers: &BlockScalars<'_>, t: &TileRef, span: Span) -> Res<BurstWindow> {
        let data = &self.kernel.tiles[t.tile];
        let (name, ty) = (self.named(t.tile), &data.ty);
        if ty.dtype != DType::F16 {
            return self.cannot(span, format!("{name} is {}, and HBM-PIM's units compute in f16", ty.dtype));
        }
        if !matches!(ty.order, Order::Nd | Order::Dn) || ty.layout.is_some() {
            return self.cannot(span, format!("{name} lies neither row by row nor column by column"));
        }
        let down = self.places.orientation.is_down(self.kernel, t.tile);
        let number = |v: Value| numbers.known_index(v, span);
        let element = t.element.map(number).transpose()?.unwrap_or(0);
        let (row, col) = match t.origin {
            Some((r, c)) => (number(r)?, number(c)?),
            None => (0, 0),
        };
        let (rows, cols) = (number(t.valid.0)?, number(t.valid.1)?);
        let inside = (0..i64::from(data.count)).contains(&element)
            && row >= 0
            && col >= 0
            && rows >= 0
            && cols >= 0
            && row + rows <= i64::from(ty.rows)
            && col + cols <= i64::from(ty.cols);
        if !inside {
            return self.cannot(span, format!("this window reaches out of {name}"));
        }
        let word = if down { "row" } else { "column" };
        let ([row, rows], [col, cols], height) =
            if down { ([col, cols], [row, rows], ty.cols) } else { ([row, rows], [col, cols], ty.rows) };
        if col % i64::from(LANES) != 0 {
            return error(
                codes::UNIT_LANES,
                span,
                format!("this window of {name} begins at {word} {col}, which is lane {} of a burst", col % 16),
                "not a burst's first lane",
                &format!("lanes do not move: begin windows at multiples of 16 {word}s"),
            );
        }
        Ok(BurstWindow {
            tile: t.tile,
            down,
            row: (element * i64::from(height) + row) as u32,
            burst: col as u32 / LANES,
            rows: rows as u32,
            cols: cols as u32,
        })
    }

    pub(super) fn take(&self, w: &BurstWindow, i: u32, b: u32, span: Span) -> Res<NodeId> {
        let (name, key) = (self.named(w.tile), self.key(w, i, b));
        if matches!(key, BurstKey::Bound(..)) {
            self.overlaps.borrow_mut().read(self.part(w, i), key, span);
        }
        match self.tiles.get(&key) {
            Some(slot) if slot.lanes >= w.lanes(b) => Ok(slot.node),
            Some(slot) => error(
                codes::UNIT_LANES,
                span,
                format!("{} lanes of {name} are read, and {} were written together", w.lanes(b), slot.lanes),
                "parts of a burst",
                "a unit's operation writes all 16 lanes: write what is read together in one operation",
            ),
            None => self.cannot(span, format!("{name} is read before it is written")),
        }
    }

    fn key(&self, w: &BurstWindow, i: u32, b: u32) -> BurstKey {
        let (row, burst) = (w.row + i, w.burst + b);
        let data = &self.kernel.tiles[w.tile];
        let AddrKind::Fixed(addresses) = &data.addr else { return BurstKey::Own(w.tile, row, burst) };
        // Lines are whole bursts ([`Tracer::bound`]).
        let (lines, line) = lines(&data.ty);
        let address = addresses.get((row / lines.max(1)) as usize).copied().unwrap_or(0);
        BurstKey::Bound(data.ty.loc, address / BURST as u64 + u64::from(row % lines.max(1) * (line / LANES) + burst))
    }

    /// A tile that is bound to an address lies in whole registers.
    fn bound(&self, tile: Tile, span: Span) -> Res {
        let data = &self.kernel.tiles[tile];
        let (_, line) = lines(&data.ty);
        if line.is_multiple_of(LANES) {
            return Ok(());
        }
        error(
            codes::UNIT_LANES,
            span,
            format!("tile `{}` is bound to an address, and its lines have {line} elements", data.name),
            "no whole registers",
            "give it lines of a multiple of 16 elements, or leave the address out",
        )
    }

    fn put(&mut self, w: &BurstWindow, i: u32, b: u32, node: NodeId, span: Span) -> Res {
        let (key, lanes) = (self.key(w, i, b), w.lanes(b));
        if let Some(old) = self.tiles.get(&key).filter(|old| old.lanes > lanes && old.node != node) {
            return error(
                codes::UNIT_LANES,
                span,
                format!("{lanes} lanes of {} are written, and {} were before", self.named(w.tile), old.lanes),
                "a part of a burst",
                "a unit's operation writes all 16 lanes: give the part a tile of its own",
            );
        }
        if matches!(key, BurstKey::Bound(..)) {
            self.overlaps.borrow_mut().write(self.part(w, i), key, span);
        }
        self.tiles.insert(key, Slot { node, lanes });
        Ok(())
    }

    fn instruction(&mut self, inst: &Inst, span: Span, numbers: &BlockScalars<'_>) -> Res {
        let row = inst.instr.get();
        match (row.sem, &inst.operands[..]) {
            (Sem::Load, [Operand::Tile(d), Operand::View(v)]) => self.load(numbers, d, v, span),
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) if inst.attrs.atomic.is_none() => {
                self.store(numbers, v, a, span)
            }
            (Sem::Store, [Operand::View(_), Operand::Tile(_)]) => {
                self.lacks(span, "TSTORE with `atomic`: it writes a burst, and reads nothing first")
            }
            (Sem::Expand, [Operand::Tile(d), Operand::Scalar(s)]) => {
                let w = self.window(numbers, d, span)?;
                let node = match self.scalar(numbers, *s, span)? {
                    Number::Known(bits) => Node::Const(bits),
                    Number::Element { read, .. } => return self.no_scalar(read, span),
                };
                let node = self.nodes.intern(node, span);
                self.each(&w, span, |_, _, _| Ok(node))
            }
            (Sem::Matmul, [Operand::Tile(d), Operand::Tile(a), Operand::Tile(b)]) if inst.attrs.stepwise => {
                self.matmul(numbers, d, None, [a, b], span)
            }
            (Sem::MatmulAcc, [Operand::Tile(d), Operand::Tile(c), Operand::Tile(a), Operand::Tile(b)])
                if inst.attrs.stepwise =>
            {
                self.matmul(numbers, d, Some(c), [a, b], span)
            }
            (_, [Operand::Tile(d), Operand::Tile(a), rest @ ..]) => {
                let (w, x) = (self.window(numbers, d, span)?, self.window(numbers, a, span)?);
                let y = match rest.first() {
                    Some(Operand::Tile(t)) => Some(self.window(numbers, t, span)?),
                    _ => None,
                };
                let s = match rest.first() {
                    Some(Operand::Scalar(v)) => Some(self.scalar(numbers, *v, span)?),
                    _ => None,
                };
                if matches!(row.sem.expr(), Some(Expr::Fma(..))) {
                    return Err(refusals::no_fused(self.kernel, span, row.name));
                }
                if rest.len() > 1 {
                    return self.lacks(span, row.name);
                }
                let name = row.name;
                let reversed = inst.attrs.reversed;
                if let (Sem::Transpose, None, None) = (row.sem, &y, s) {
                    return self.transposed(&w, &x, span);
                }
                // Each line takes one element of a vector, as a scalar.
                let scalars = match (row.sem, &y) {
                    (Sem::RowExpandBinary(BinOp::Mul), Some(_)) => !w.down && !x.down,
                    (Sem::ColExpandBinary(BinOp::Mul), Some(_)) => w.down && x.down,
                    _ => false,
                };
                if let (true, Some(y)) = (scalars, &y)
                    && ((w.rows, w.cols) != (1, 1) || self.is_last_line(&w, y, span))
                {
                    return self.scaled(&w, [&x, y], row.name, span);
                }
                let sums = matches!(row.sem, Sem::RowReduce(_) | Sem::ColReduce(_));
                let apart = |o: &BurstWindow| o.down != w.down && (o.rows, o.cols) != (1, 1);
                if !sums && (apart(&x) || y.as_ref().is_some_and(apart)) {
                    return self
                        .lacks(span, &format!("{name} of a column and rows: a lane does not reach other lanes"));
                }
                // The rows of a single column are in lanes, of which a value of one element has the first.
                let single = (w.rows, w.cols) == (1, 1);
                match (row.sem, y, s) {
                    (Sem::ColExpandBinary(_) | Sem::ColExpand, _, None) if w.down && !single => self.lacks(
                        span,
                        &format!(
                            "{name} of columns of one element, which lie in lanes: a lane does not reach other lanes"
                        ),
                    ),
                    (Sem::ColReduce(_), ..) if x.down => self.lacks(
                        span,
                        &format!(
                            "{name} of a single column, whose elements lie in lanes: a lane does not reach other lanes"
                        ),
                    ),
                    (Sem::RowExpandBinary(op), Some(y), None) if single || (w.down && x.down && y.down) => {
                        self.each(&w, span, |t, i, b| {
                            let (p, q) = (t.take(&x, i, b, span)?, t.take(&y, 0, b, span)?);
                            t.binary(op, p, q, name, span)
                        })
                    }
                    (Sem::RowExpandBinary(_) | Sem::RowExpand, _, None) => {
                        self.lacks(span, &format!("{name}: a lane does not reach other lanes"))
                    }
                    (Sem::Move, None, None) => self.each(&w, span, |t, i, b| t.take(&x, i, b, span)),
                    (Sem::Unary(op @ (UnOp::Neg | UnOp::Relu)), None, None) => self.each(&w, span, |t, i, b| {
                        let a = t.take(&x, i, b, span)?;
                        let node =
                            if op == UnOp::Neg { Node::MulScalar(a, super::node::MINUS_ONE) } else { Node::Relu(a) };
                        Ok(t.nodes.intern(node, span))
                    }),
                    (Sem::Binary(op), Some(y), None) => self.each(&w, span, |t, i, b| {
                        let (p, q) = (t.take(&x, i, b, span)?, t.take(&y, i, b, span)?);
                        t.binary(op, p, q, name, span)
                    }),
                    (Sem::ColExpandBinary(op), Some(y), None) if !w.down || single => self.each(&w, span, |t, i, b| {
                        let (p, q) = (t.take(&x, i, b, span)?, t.take(&y, 0, b, span)?);
                        t.binary(op, p, q, name, span)
                    }),
                    (Sem::ColExpand, None, None) if !w.down || single => {
                        self.each(&w, span, |t, _, b| t.take(&x, 0, b, span))
                    }
                    (Sem::BinaryScalar(op), None, Some(s)) => self.each(&w, span, |t, i, b| {
                        let a = t.take(&x, i, b, span)?;
                        t.with_scalar(op, a, s, reversed, name, span)
                    }),
                    (Sem::ColReduce(Reduce::Sum), None, None) if inst.attrs.stepwise && !w.down && !x.down => {
                        self.each(&w, span, |t, _, b| t.column_sums(&x, b, span))
                    }
                    (Sem::RowReduce(Reduce::Sum), None, None) if inst.attrs.stepwise && w.rows == 1 => {
                        self.each(&w, span, |t, _, b| t.row_sums(&x, b, span))
                    }
                    _ => self.lacks(span, name),
                }
            }
            _ => self.lacks(span, row.name),
        }
    }

    /// A tile as its transposed one: the same bursts, if the lanes of both are the same elements.
    fn transposed(&mut self, w: &BurstWindow, x: &BurstWindow, span: Span) -> Res {
        if w.down == x.down && w.cols.max(w.rows) > 1 {
            return self
                .lacks(span, "TTRANS of a tile whose lanes another operation has: a lane does not reach others");
        }
        self.each(w, span, |t, i, b| t.take(x, i, b, span))
    }

    /// Whether a window of one element is what is left of a tile of several lines, and the host has its factor: it does
    /// what the other blocks do.
    fn is_last_line(&self, w: &BurstWindow, y: &BurstWindow, span: Span) -> bool {
        let ty = &self.kernel.tiles[w.tile].ty;
        let with_host = |n| matches!(self.nodes.get(n), Node::Host { .. } | Node::Const(_));
        (ty.rows, ty.cols) != (1, 1) && self.take(y, 0, 0, span).is_ok_and(with_host)
    }

    /// The lines of a tile, each times an element of a vector that the host brings.
    fn scaled(&mut self, w: &BurstWindow, [x, y]: [&BurstWindow; 2], name: &str, span: Span) -> Res {
        self.each(w, span, |t, i, b| {
            let a = t.take(x, i, b, span)?;
            let (row, col) = if y.rows == 1 { (0, i) } else { (i, 0) };
            let factor = t.take(y, row, col / LANES, span)?;
            let node = match t.nodes.get(factor) {
                Node::Host { tensor, offset, .. } => {
                    Node::MulElement { a, tensor, offset: offset + 2 * u64::from(col % LANES) }
                }
                Node::Const(c) => Node::MulScalar(a, c),
                _ => {
                    let what =
                        format!("{name} with elements that units have in lanes: a lane does not reach other lanes");
                    return t.lacks(span, &what);
                }
            };
            Ok(t.nodes.intern(node, span))
        })
    }

    /// A scalar as f16: the launch's, or an element that the host has before the units run.
    fn scalar(&self, numbers: &BlockScalars<'_>, v: Value, span: Span) -> Res<Number> {
        let Some(read) = numbers.data(v) else { return Ok(Number::Known(numbers.bits(v) as u16)) };
        let Some((tensor, element)) = numbers.element(v) else { return self.no_scalar(read, span) };
        let t = &self.kernel.tensors[TensorId::from_u32(tensor)];
        let with_host = self.places.placement(tensor as usize).is_none();
        match u64::try_from(element) {
            Ok(element) if with_host && t.dir == TensorDir::In && t.dtype == DType::F16 => {
                Ok(Number::Element { tensor, offset: 2 * element, read })
            }
            _ => self.no_scalar(read, span),
        }
    }

    /// A number that comes too late for a unit's registers.
    fn no_scalar<T>(&self, read: Span, span: Span) -> Res<T> {
        Err(Box::new(
            Diagnostic::error(
                codes::UNIT_DECISION,
                span,
                "the units have no such scalar: it is known only while they run",
            )
            .with_label("an operand of all lanes")
            .with_secondary(read, "read here")
            .with_note(
                "the host writes the units' scalars beforehand: numbers of the launch, and as factors, `tile * x[k]`, \
                     elements of an \
                     `in` array of f16 that the host keeps: without `at`, and not loaded in tiles of the blocks' own",
            )
            .with_help(format!(
                "give it 16 times in an array, and bring it to a register: `GrfA(xs[k, _])` of `xs: in f16[K, 16]`; or \
                {}",
                advice::host(self.kernel)
            )),
        ))
    }

    pub(super) fn each(
        &mut self,
        w: &BurstWindow,
        span: Span,
        mut f: impl FnMut(&mut Self, u32, u32) -> Res<NodeId>,
    ) -> Res {
        // All is read before anything is written: operands may be the destination.
        let mut out = Vec::new();
        for i in 0..w.rows {
            for b in 0..w.bursts() {
                out.push((i, b, f(self, i, b)?));
            }
        }
        out.into_iter().try_for_each(|(i, b, node)| self.put(w, i, b, node, span))
    }
}

impl Visitor for Tracer<'_> {
    fn alloc(&mut self, tile: Tile, span: Span) -> Res {
        let data = &self.kernel.tiles[tile];
        let aliased = self.kernel.aliases.iter().any(|(a, b)| *a == tile || *b == tile);
        match data.addr {
            AddrKind::Fixed(_) => {
                self.overlaps.borrow_mut().begin(tile);
                return self.bound(tile, span);
            }
            AddrKind::Auto if !aliased => {}
            _ => return self.cannot(span, format!("tile `{}` has an address of its own", data.name)),
        }
        self.tiles.retain(|key, _| !matches!(key, BurstKey::Own(t, ..) if *t == tile));
        Ok(())
    }

    fn inst(&mut self, inst: &Inst, span: Span, numbers: &BlockScalars<'_>) -> Res {
        if self.nodes.next() as usize > OPERATIONS {
            let message = format!("the units would do more than {OPERATIONS} different operations in this launch");
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_CANNOT, span, message)
                    .with_label("reached here")
                    .with_note("each is a column command at least, and equal ones of all blocks count once")
                    .with_help(format!(
                        "let loops go round less often, or divide the work between launches; or {}",
                        advice::host(self.kernel)
                    )),
            ));
        }
        self.instruction(inst, span, numbers)
    }

    fn other(&mut self, stmt: &Stmt, _: &BlockScalars<'_>) -> Res {
        let what = match &stmt.op {
            // What depends on it is an error where it decides something.
            Op::Load { .. } | Op::TileGet { .. } => return Ok(()),
            Op::Copy(_) => return Err(refusals::no_copy(self.kernel, stmt.span)),
            Op::Mma(_) => "matrix product",
            Op::Store { .. } | Op::TileSet { .. } => "way to write a single element",
            Op::Atomic { .. } => "atomic access",
            Op::Print { .. } => "`print`",
            _ => "such statement",
        };
        self.lacks(stmt.span, what)
    }
}

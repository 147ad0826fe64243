//! What one block does, as stores of expressions to bursts of its unit.
//!
//! Tiles are bursts: element (i, j) is lane `j % 16` of burst `j / 16` of row `i`. A tile's burst holds an expression and how many
//! of its lanes count; what the other lanes hold never reaches a tensor.

use super::Res;
use super::node::{BankBurst, Node, NodeId, Nodes};
use super::places::{Home, Places, Where};
use super::turn::Turns;
use crate::advice;
use crate::eval::{Numbers, Visitor};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{AddrKind, Inst, Kernel, Op, Operand, Stmt, TensorDir, Tile, TileRef, Value, ViewRef};
use ptoc_isa::{BinOp, Loc, Order, Reduce, Sem, TileType, UnOp};
use ptoc_tensor::DType;
use rustc_hash::{FxHashMap, FxHashSet};

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
pub struct Trace {
    /// See above.
    pub stores: Vec<Store>,
}

impl Trace {
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

/// Do the columns of such tiles lie in lanes? A single column has its elements next to each other either way.
pub(super) fn is_down(ty: &TileType) -> bool {
    ty.order == Order::Dn || (ty.cols == 1 && ty.rows > 1)
}

/// A window of a tile, in bursts. Of a tile whose columns lie in lanes (`down`), rows are columns here and columns are rows.
pub(super) struct Window {
    tile: Tile,
    down: bool,
    /// Index of the tile array's element times its rows, plus the window's first row.
    row: u32,
    /// First burst of each row.
    burst: u32,
    pub(super) rows: u32,
    pub(super) cols: u32,
}

impl Window {
    /// Do columns lie in lanes?
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
    tiles: FxHashMap<(Tile, u32, u32), Slot>,
    /// What this block has stored.
    written: FxHashMap<BankBurst, Slot>,
    /// The result.
    pub trace: Trace,
}

fn error<T>(code: ptoc_diagnostics::Code, span: Span, message: String, label: &str, help: &str) -> Res<T> {
    Err(Box::new(Diagnostic::error(code, span, message).with_label(label).with_help(help)))
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
        let (tiles, written, trace) = (FxHashMap::default(), FxHashMap::default(), Trace::default());
        Tracer { kernel, nodes, places, turns, home, tiles, written, trace }
    }

    fn cannot<T>(&self, span: Span, message: String) -> Res<T> {
        Err(Box::new(
            Diagnostic::error(codes::UNIT_CANNOT, span, message)
                .with_label("no instruction of the unit")
                .with_note(
                    "a unit adds and multiplies 16 lanes of f16, and takes their max with 0; every operation rounds",
                )
                .with_help(advice::host(self.kernel)),
        ))
    }

    /// There is no such instruction.
    fn lacks<T>(&self, span: Span, name: &str) -> Res<T> {
        self.cannot(span, format!("an HBM-PIM unit has no {name}"))
    }

    /// A tile in words: what an expression computes has no name of the author's.
    fn named(&self, tile: Tile) -> String {
        let data = &self.kernel.tiles[tile];
        if data.hidden { "this value".into() } else { format!("`{}`", data.name) }
    }

    fn window(&self, numbers: &Numbers<'_>, t: &TileRef, span: Span) -> Res<Window> {
        let data = &self.kernel.tiles[t.tile];
        let (name, ty) = (self.named(t.tile), &data.ty);
        if ty.dtype != DType::F16 {
            return self.cannot(span, format!("{name} is {}, and HBM-PIM's units compute in f16", ty.dtype));
        }
        if !matches!(ty.order, Order::Nd | Order::Dn) || ty.layout.is_some() {
            return self.cannot(span, format!("{name} lies neither row by row nor column by column"));
        }
        let down = is_down(ty);
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
        Ok(Window {
            tile: t.tile,
            down,
            row: (element * i64::from(height) + row) as u32,
            burst: col as u32 / LANES,
            rows: rows as u32,
            cols: cols as u32,
        })
    }

    pub(super) fn take(&self, w: &Window, i: u32, b: u32, span: Span) -> Res<NodeId> {
        let name = self.named(w.tile);
        match self.tiles.get(&(w.tile, w.row + i, w.burst + b)) {
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

    fn put(&mut self, w: &Window, i: u32, b: u32, node: NodeId, span: Span) -> Res {
        let (key, lanes) = ((w.tile, w.row + i, w.burst + b), w.lanes(b));
        if let Some(old) = self.tiles.get(&key).filter(|old| old.lanes > lanes && old.node != node) {
            return error(
                codes::UNIT_LANES,
                span,
                format!("{lanes} lanes of {} are written, and {} were before", self.named(w.tile), old.lanes),
                "a part of a burst",
                "a unit's operation writes all 16 lanes: give the part a tile of its own",
            );
        }
        self.tiles.insert(key, Slot { node, lanes });
        Ok(())
    }

    fn instruction(&mut self, inst: &Inst, span: Span, numbers: &Numbers<'_>) -> Res {
        let row = inst.instr.get();
        match (row.sem, &inst.operands[..]) {
            (Sem::Load, [Operand::Tile(d), Operand::View(v)]) => self.load(numbers, d, v, span),
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) if !inst.attrs.atomic_add => {
                self.store(numbers, v, a, span)
            }
            (Sem::Expand, [Operand::Tile(d), Operand::Scalar(s)]) => {
                let w = self.window(numbers, d, span)?;
                let node = Node::Const(self.scalar(numbers, *s, span)?);
                let node = self.nodes.intern(node, span);
                self.each(&w, span, |_, _, _| Ok(node))
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
                if rest.len() > 1 {
                    return self.lacks(span, row.name);
                }
                let name = row.name;
                let reversed = inst.attrs.reversed;
                let sums = matches!(row.sem, Sem::RowReduce(_) | Sem::ColReduce(_));
                let apart = |o: &Window| o.down != w.down && (o.rows, o.cols) != (1, 1);
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
                    (Sem::RowExpandBinary(op), Some(y), None) if single || (w.down && x.down && y.down) => {
                        self.each(&w, span, |t, i, b| {
                            let (p, q) = (t.take(&x, i, b, span)?, t.take(&y, i, b, span)?);
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

    /// A scalar of the launch, as f16.
    fn scalar(&self, numbers: &Numbers<'_>, v: Value, span: Span) -> Res<u16> {
        numbers.known(v, span).map(|bits| bits as u16)
    }

    fn each(&mut self, w: &Window, span: Span, mut f: impl FnMut(&mut Self, u32, u32) -> Res<NodeId>) -> Res {
        // All is read before anything is written: operands may be the destination.
        let mut out = Vec::new();
        for i in 0..w.rows {
            for b in 0..w.bursts() {
                out.push((i, b, f(self, i, b)?));
            }
        }
        out.into_iter().try_for_each(|(i, b, node)| self.put(w, i, b, node, span))
    }

    fn binary(&mut self, op: BinOp, a: NodeId, b: NodeId, name: &str, span: Span) -> Res<NodeId> {
        let zero = |n: NodeId, nodes: &Nodes| nodes.get(n) == Node::Const(0);
        Ok(match op {
            BinOp::Add => self.add(a, b, span),
            BinOp::Sub => self.nodes.sub(a, b, span),
            BinOp::Mul => self.nodes.intern(Node::Mul(a, b), span),
            BinOp::Max if zero(b, self.nodes) => self.nodes.intern(Node::Relu(a), span),
            BinOp::Max if zero(a, self.nodes) => self.nodes.intern(Node::Relu(b), span),
            _ => return self.cannot_combine(op, name, span),
        })
    }

    /// Operations that the units lack, with what they would do instead.
    fn cannot_combine<T>(&self, op: BinOp, name: &str, span: Span) -> Res<T> {
        if !matches!(op, BinOp::Max | BinOp::Min) {
            return self.lacks(span, name);
        }
        let (word, instead) = match op {
            BinOp::Max => ("max", "a + max(b - a, 0.0)"),
            _ => ("min", "a - max(a - b, 0.0)"),
        };
        let message = format!("an HBM-PIM unit has no {name}");
        Err(Box::new(
            Diagnostic::error(codes::UNIT_CANNOT, span, message)
                .with_label("no instruction of the unit")
                .with_note(format!(
                    "a unit compares with 0 alone, by MOV with relu; `{instead}` is `{word}(a, b)` only where no operation rounds, \
                     and may be NaN for infinities"
                ))
                .with_help(format!("write `{instead}` if that will do, or {}", advice::host(self.kernel))),
        ))
    }

    /// a + b. What all lanes have alike is a scalar, which needs no register; but a product is added to a register, by a MAC.
    pub(super) fn add(&mut self, a: NodeId, b: NodeId, span: Span) -> NodeId {
        let product = |n| matches!(self.nodes.get(n), Node::Mul(..) | Node::MulScalar(..));
        let node = match (self.nodes.get(a), self.nodes.get(b)) {
            (_, Node::Const(c)) if !product(a) => Node::AddScalar(a, c),
            (Node::Const(c), _) if !product(b) => Node::AddScalar(b, c),
            _ => Node::Add(a, b),
        };
        self.nodes.intern(node, span)
    }

    fn with_scalar(&mut self, op: BinOp, a: NodeId, s: u16, reversed: bool, name: &str, span: Span) -> Res<NodeId> {
        let node = match op {
            BinOp::Add => Node::AddScalar(a, s),
            BinOp::Mul => Node::MulScalar(a, s),
            // x - s is x + (-s); s - x is (-1 * x) + s.
            BinOp::Sub if !reversed => Node::AddScalar(a, s ^ 0x8000),
            BinOp::Sub => {
                let minus = self.nodes.intern(Node::MulScalar(a, super::node::MINUS_ONE), span);
                Node::AddScalar(minus, s)
            }
            BinOp::Max if s == 0 => Node::Relu(a),
            _ => return self.cannot_combine(op, name, span),
        };
        Ok(self.nodes.intern(node, span))
    }

    /// Calls `f` with row, burst, lanes and the number of the first element in the tensor.
    fn view(&self, numbers: &Numbers<'_>, v: &ViewRef, w: &Window, span: Span) -> Res<Vec<(u32, u32, u32, u64)>> {
        let name = &self.kernel.tensors[v.tensor].name;
        if self.kernel.tensors[v.tensor].dtype != DType::F16 {
            return self.cannot(span, format!("`{name}` is not f16, and HBM-PIM's units compute in f16"));
        }
        let offset = numbers.known_index(v.offset, span)?;
        let [rows, cols] = [numbers.known_index(v.strides[0], span)?, numbers.known_index(v.strides[1], span)?];
        let ([rows, cols], word) = if w.down { ([cols, rows], "rows") } else { ([rows, cols], "columns") };
        if cols != 1 && w.cols > 1 {
            return error(
                codes::UNIT_LANES,
                span,
                format!("the {word} of this window of `{name}` are {cols} elements apart"),
                "not next to each other",
                "lanes are successive elements of a burst: let the host move the data, or choose the other dimension",
            );
        }
        let mut out = Vec::new();
        for i in 0..w.rows {
            for b in 0..w.bursts() {
                let at = offset + i64::from(i) * rows + i64::from(b * LANES);
                out.push((i, b, w.lanes(b), at as u64));
            }
        }
        Ok(out)
    }

    fn load(&mut self, numbers: &Numbers<'_>, d: &TileRef, v: &ViewRef, span: Span) -> Res {
        let w = self.window(numbers, d, span)?;
        let file_b = self.kernel.tiles[d.tile].ty.loc == Loc::GrfB;
        let tensor = v.tensor.as_u32();
        for (i, b, lanes, at) in self.view(numbers, v, &w, span)? {
            let node = match self.places.find(tensor, at, lanes, self.home) {
                Where::Host => Node::Host { tensor, offset: 2 * at, file_b },
                Where::Bank(at) => match self.written.get(&at) {
                    // What the block has stored is what it stored.
                    Some(slot) if slot.lanes >= lanes => {
                        let node = slot.node;
                        self.put(&w, i, b, node, span)?;
                        continue;
                    }
                    Some(_) => {
                        return self.cannot(
                            span,
                            "these lanes were stored in several parts, and a unit reads them at once".into(),
                        );
                    }
                    None => Node::Bank { at },
                },
                other => return self.unreachable(v, at, lanes, &other, span),
            };
            let node = self.nodes.intern(node, span);
            self.put(&w, i, b, node, span)?;
        }
        Ok(())
    }

    fn store(&mut self, numbers: &Numbers<'_>, v: &ViewRef, a: &TileRef, span: Span) -> Res {
        let w = self.window(numbers, a, span)?;
        let t = &self.kernel.tensors[v.tensor];
        if t.place.as_ref().is_some_and(|p| p.replicated) {
            let message = format!("`{}` has a copy in every unit's bank, and a block would write one of them", t.name);
            return Err(Box::new(
                Diagnostic::error(codes::UNIT_REACH, span, message)
                    .with_label("one of many copies")
                    .with_secondary(t.span, "`over unit`")
                    .with_help("place what blocks write once: leave `over unit` out"),
            ));
        }
        for (i, b, lanes, at) in self.view(numbers, v, &w, span)? {
            let node = self.take(&w, i, b, span)?;
            let to = match self.places.find(v.tensor.as_u32(), at, lanes, self.home) {
                Where::Bank(to) => to,
                other => return self.unreachable(v, at, lanes, &other, span),
            };
            let more = self.places.elements(self.home, to).saturating_sub(lanes);
            if more > 0 {
                let name = &self.kernel.tensors[v.tensor].name;
                return error(
                    codes::UNIT_LANES,
                    span,
                    format!("{lanes} lanes of a burst of `{name}` are stored, and {more} more of them hold elements"),
                    "a part of a burst",
                    "a unit writes all 16 lanes: store whole bursts, or place the tensor with fewer elements in a burst",
                );
            }
            self.written.insert(to, Slot { node, lanes });
            self.trace.stores.push(Store { at: to, node, lanes, span });
        }
        Ok(())
    }

    fn unreachable<T>(&self, v: &ViewRef, at: u64, lanes: u32, how: &Where, span: Span) -> Res<T> {
        let t = &self.kernel.tensors[v.tensor];
        let (name, home) = (&t.name, self.home);
        let message = match how {
            Where::Other(there) => {
                format!("element {at} of `{name}` is in the banks of unit {there}, and the block runs on unit {home}")
            }
            Where::Lanes => {
                format!("{lanes} elements of `{name}` from element {at} on are not lanes 0 to {} of a burst", lanes - 1)
            }
            _ => format!("`{name}` is not in the memory, where the block stores element {at}"),
        };
        let (placed, blocks) = (t.place.is_some(), self.kernel.on.is_some());
        let input = t.dir == TensorDir::In;
        let help = match (how, placed) {
            (Where::Lanes, true) => {
                "let `at` put 16 successive elements into a burst, `2@byte`, and begin windows at the first of them; or leave `at` out"
            }
            (Where::Lanes, false) => {
                "begin windows at multiples of 16 columns, or say where the tensor is: `at LAYOUT`, 16 successive elements in a burst"
            }
            (Where::Other(_), true) if input => {
                "let `at` of the tensor and `on` of the grid name the same unit for a block and its elements; what all blocks read can \
                 have a copy with every unit: `at LAYOUT over unit`"
            }
            (Where::Other(_), true) if !blocks => {
                "say with `on` of the grid which unit runs a block: the one that `at` gives its elements to"
            }
            (Where::Other(_), true) => {
                "let `at` of the tensor and `on` of the grid name the same unit for a block and its elements"
            }
            (Where::Other(_), false) => {
                "a block reaches its own part of what the compiler places: let it touch that alone, or say where the tensor is: `at LAYOUT`"
            }
            (Where::Host | Where::Bank(_), _) => "say where the tensor is: `at LAYOUT`",
        };
        Err(Box::new(
            Diagnostic::error(codes::UNIT_REACH, span, message)
                .with_label("out of the unit's reach")
                .with_secondary(t.span, if placed { "placed here" } else { "placed by the compiler" })
                .with_note("a unit reads and writes bursts of its own two banks, lane by lane")
                .with_help(help),
        ))
    }
}

impl Visitor for Tracer<'_> {
    fn alloc(&mut self, tile: Tile, span: Span) -> Res {
        let data = &self.kernel.tiles[tile];
        if data.addr != AddrKind::Auto || self.kernel.aliases.iter().any(|(a, b)| *a == tile || *b == tile) {
            return self.cannot(span, format!("tile `{}` has an address of its own", data.name));
        }
        self.tiles.retain(|(t, ..), _| *t != tile);
        Ok(())
    }

    fn inst(&mut self, inst: &Inst, span: Span, numbers: &Numbers<'_>) -> Res {
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

    fn other(&mut self, stmt: &Stmt, _: &Numbers<'_>) -> Res {
        let what = match &stmt.op {
            // What depends on it is an error where it decides something.
            Op::Load { .. } | Op::TileGet { .. } => return Ok(()),
            Op::Copy(_) => "copy of more than rows and columns",
            Op::Mma(_) => "matrix product",
            Op::Store { .. } | Op::TileSet { .. } => "way to write a single element",
            Op::Atomic { .. } => "atomic access",
            Op::Print { .. } => "`print`",
            _ => "such statement",
        };
        self.lacks(stmt.span, what)
    }
}

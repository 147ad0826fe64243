//! What must hold for a statement to stay inside of what it touches.

use super::extents;
use ptoc_diagnostics::{Code, codes};
use ptoc_ir::tile::{
    Access, Affine, Elem, Inst, Kernel, Op, Operand, PrintPart, TensorId, Tile, TileRef, Value, ViewRef,
};
use ptoc_isa::{BinOp, CmpOp, Num, Target};

/// A sum: constants, values, and products of values.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Sum {
    /// Factors, and how often they count.
    pub terms: Vec<(Vec<Value>, i64)>,
    /// The constant.
    pub constant: i64,
}

impl Sum {
    pub fn of(v: Value) -> Sum {
        Sum { terms: vec![(vec![v], 1)], constant: 0 }
    }

    pub fn number(constant: i64) -> Sum {
        Sum { terms: Vec::new(), constant }
    }

    /// The value, if it is one alone.
    pub fn value(&self) -> Option<Value> {
        match &self.terms[..] {
            [(factors, 1)] if self.constant == 0 && factors.len() == 1 => factors.first().copied(),
            _ => None,
        }
    }

    /// The number, if it is one.
    pub fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + n * product`
    pub fn and(mut self, product: &[Value], n: i64) -> Sum {
        self.terms.push((product.to_vec(), n));
        self
    }

    /// `self + n`
    pub fn plus(mut self, n: i64) -> Sum {
        self.constant += n;
        self
    }
}

/// `low <= high`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Claim {
    pub low: Sum,
    pub high: Sum,
    /// If one of these extents is not positive, nothing is touched.
    pub unless_empty: Vec<Value>,
}

/// A claim, and what is wrong where it does not hold.
#[derive(Clone, Debug)]
pub(super) struct Bound {
    pub claim: Claim,
    pub what: What,
}

/// What would lie outside of what.
#[derive(Clone, Copy, Debug)]
pub(super) enum What {
    /// Row or column of an element.
    Element(Tile, &'static str),
    /// An element of a tile array.
    Member(Tile),
    /// The address that a tile is bound to.
    Address(Tile),
    /// The valid rows or columns of a window.
    Valid(Tile, &'static str, u32),
    /// The rows or columns of a window.
    Window(Tile, &'static str, u32),
    /// A point of a nest, in its window.
    Point(Tile),
    Tensor(TensorId),
    /// A demand of an instruction.
    Need(&'static str, &'static str),
}

impl What {
    pub fn code(self) -> Code {
        match self {
            What::Tensor(_) => codes::TRAP_TENSOR_OUT_OF_BOUNDS,
            _ => codes::TRAP_TILE_OUT_OF_BOUNDS,
        }
    }

    /// What a check says.
    pub fn text(self, kernel: &Kernel) -> String {
        let name = |t: Tile| &kernel.tiles[t].name;
        match self {
            What::Element(t, what) => format!("a {what} of tile `{}` lies outside of its valid shape", name(t)),
            What::Member(t) => format!("an element of the array `{}` that it does not have", name(t)),
            What::Address(t) => format!("the address of tile `{}` lies outside of its memory", name(t)),
            What::Valid(t, what, window) => {
                format!("the valid {what} of tile `{}` exceed its window of {window}", name(t))
            }
            What::Window(t, what, capacity) => {
                format!("a window of tile `{}` reaches beyond its {capacity} {what}", name(t))
            }
            What::Point(t) => format!("an element of tile `{}` lies outside of its window", name(t)),
            What::Tensor(t) => format!("an access of `{}` lies outside of it", kernel.tensors[t].name),
            What::Need(instruction, what) => format!("{instruction}: {what}"),
        }
    }
}

/// What belongs together: both ends of what is touched, or one demand alone.
pub(super) type Group = Vec<Bound>;

/// Bounds of one access.
struct Bounds<'k> {
    kernel: &'k Kernel,
    out: Vec<Group>,
}

/// Everything that `op` itself must keep.
pub(super) fn obligations(kernel: &Kernel, target: &Target, op: &Op) -> Vec<Group> {
    let mut b = Bounds { kernel, out: Vec::new() };
    match op {
        Op::Load { tensor, offset, .. } | Op::Store { tensor, offset, .. } | Op::Atomic { tensor, offset, .. } => {
            b.tensor(*tensor, Sum::of(*offset), Sum::of(*offset), &[]);
        }
        Op::TileGet { tile, row, col, .. } | Op::TileSet { tile, row, col, .. } => {
            b.tile(tile);
            for (what, at, valid) in [("row", *row, tile.valid.0), ("column", *col, tile.valid.1)] {
                let what = What::Element(tile.tile, what);
                b.inside(Sum::of(at), Sum::of(at), Sum::of(valid).plus(-1), &[], what);
            }
        }
        Op::Assign { tile, element, addr } => {
            let data = &kernel.tiles[*tile];
            b.element(*tile, *element);
            // The larger of all: what is bound keeps every element of the tile inside of its memory.
            let last = target.capacity(data.ty.loc) as i64 - data.ty.bytes() as i64;
            b.inside(Sum::of(*addr), Sum::of(*addr), Sum::number(last), &[], What::Address(*tile));
        }
        Op::Inst(inst) => b.inst(inst),
        Op::Copy(copy) => {
            let guarded = !copy.guards.is_empty();
            b.nest(&copy.dst, &copy.extents, guarded);
            b.nest(&copy.src, &copy.extents, guarded);
        }
        Op::Mma(mma) => {
            let extents: Vec<Value> = [&mma.m, &mma.n, &mma.k].into_iter().flatten().copied().collect();
            for side in [&mma.acc, &mma.a, &mma.b] {
                b.nest(side, &extents, false);
            }
        }
        Op::Print { parts } => parts.iter().for_each(|p| {
            if let PrintPart::Tile(t) = p {
                b.tile(t);
            }
        }),
        _ => {}
    }
    b.out
}

impl Bounds<'_> {
    /// `0 <= low` and `high <= last`
    fn inside(&mut self, low: Sum, high: Sum, last: Sum, unless_empty: &[Value], what: What) {
        let ends = [(Sum::number(0), low), (high, last)].map(|(low, high)| {
            let claim = Claim { low, high, unless_empty: unless_empty.to_vec() };
            Bound { claim, what }
        });
        self.out.push(ends.to_vec());
    }

    fn element(&mut self, tile: Tile, element: Option<Value>) {
        let data = &self.kernel.tiles[tile];
        if let Some(e) = element {
            let last = Sum::number(i64::from(data.count) - 1);
            self.inside(Sum::of(e), Sum::of(e), last, &[], What::Member(tile));
        }
    }

    /// A window in its tile, its valid shape in the window.
    fn tile(&mut self, t: &TileRef) {
        self.element(t.tile, t.element);
        let ty = self.kernel.tiles[t.tile].ty;
        let axes = [("rows", t.valid.0, t.rows, ty.rows), ("columns", t.valid.1, t.cols, ty.cols)];
        for (k, (what, valid, window, capacity)) in axes.into_iter().enumerate() {
            let exceeds = What::Valid(t.tile, what, window);
            self.inside(Sum::of(valid), Sum::of(valid), Sum::number(i64::from(window)), &[], exceeds);
            if let Some(origin) = t.origin {
                let at = if k == 0 { origin.0 } else { origin.1 };
                let end = Sum::of(at).and(&[valid], 1);
                let last = Sum::number(i64::from(capacity));
                self.inside(Sum::of(at), end, last, &[t.valid.0, t.valid.1], What::Window(t.tile, what, capacity));
            }
        }
    }

    /// Elements `first` to `last` of a tensor.
    fn tensor(&mut self, tensor: TensorId, first: Sum, last: Sum, unless_empty: &[Value]) {
        let end = Sum::number(-1).and(extents(self.kernel, tensor), 1);
        self.inside(first, last, end, unless_empty, What::Tensor(tensor));
    }

    fn view(&mut self, v: &ViewRef) {
        let mut last = Sum::of(v.offset);
        for (&extent, &stride) in v.shape.iter().zip(&v.strides) {
            last = last.and(&[extent, stride], 1).and(&[stride], -1);
        }
        self.tensor(v.tensor, Sum::of(v.offset), last, &v.shape);
    }

    fn inst(&mut self, inst: &Inst) {
        for operand in &inst.operands {
            match operand {
                Operand::Tile(t) => self.tile(t),
                Operand::View(v) => self.view(v),
                Operand::Scalar(_) => {}
            }
        }
        inst.scratch.iter().for_each(|t| self.tile(t));
        // Where an instruction's index operands say what it touches.
        for need in inst.instr.get().sem.needs().iter().filter(|n| n.op != CmpOp::Eq) {
            if let (Some(low), Some(high)) = (self.num(&need.left, inst), self.num(&need.right, inst)) {
                let what = What::Need(inst.instr.get().written_name(), need.what);
                self.out.push(vec![Bound { claim: Claim { low, high, unless_empty: Vec::new() }, what }]);
            }
        }
    }

    /// A number that an instruction's demand speaks of; `None`: it is more than a sum.
    fn num(&self, n: &Num, inst: &Inst) -> Option<Sum> {
        let tile = |k: usize| match inst.operands.get(k)? {
            Operand::Tile(t) => Some(t),
            _ => None,
        };
        Some(match *n {
            Num::Is(n) => Sum::number(n),
            Num::Rows(k) => Sum::of(tile(k)?.valid.0),
            Num::Cols(k) => Sum::of(tile(k)?.valid.1),
            Num::Width(k) => Sum::number(i64::from(tile(k)?.cols)),
            Num::Size(k) => Sum::number(self.kernel.tiles[tile(k)?.tile].ty.dtype.size() as i64),
            Num::Arg(k) => match inst.operands.get(k)? {
                Operand::Scalar(v) => Sum::of(*v),
                _ => return None,
            },
            Num::Bin(op @ (BinOp::Add | BinOp::Sub), a, b) => {
                let (mut a, b) = (self.num(a, inst)?, self.num(b, inst)?);
                let sign = if op == BinOp::Add { 1 } else { -1 };
                a.terms.extend(b.terms.into_iter().map(|(f, n)| (f, sign * n)));
                a.plus(sign * b.constant)
            }
            _ => return None,
        })
    }

    /// One side of a nest. Guards and tables bound its points themselves.
    fn nest(&mut self, side: &Access, extents: &[Value], guarded: bool) {
        let span = |at: &Affine| {
            let ends = extents.iter().zip(&at.strides);
            ends.fold(Sum::of(at.start), |s, (&n, &by)| s.and(&[n, by], 1).and(&[by], -1))
        };
        match side {
            Access::Tile { tile, row, col } => {
                self.tile(tile);
                if guarded {
                    return;
                }
                for (at, capacity) in [(row, tile.rows), (col, tile.cols)] {
                    let last = Sum::number(i64::from(capacity) - 1);
                    self.inside(Sum::of(at.start), span(at), last, extents, What::Point(tile.tile));
                }
            }
            Access::Tensor { tensor, elem, at, swizzle, tables } => {
                let own = self.kernel.tensors[*tensor].dtype;
                let plain = matches!(elem, Elem::Whole(d) if *d == own);
                if !guarded && tables.is_empty() && swizzle.is_none() && plain {
                    self.tensor(*tensor, Sum::of(at.start), span(at), extents);
                }
            }
        }
    }
}

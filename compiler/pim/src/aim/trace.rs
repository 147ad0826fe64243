//! What blocks store, as sums of products of lines.
//!
//! A tile holds a window of a tensor, the products of two, or sums of them; whatever else it would hold is refused.

use super::Res;
use super::place::Line;
use super::refusals::{cannot, cannot_with, lacks, other_dtype};
use crate::eval::{BlockScalars, Visitor};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{AddrKind, Inst, Kernel, Op, Operand, Stmt, TensorId, Tile, TileRef, ViewRef};
use ptoc_isa::{BinOp, Reduce, RoundMode, Sem, UnOp};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// An element that a launch stores.
#[derive(Clone, Debug)]
pub(super) struct Output {
    /// The lines whose products are summed.
    pub a: Line,
    pub b: Line,
    /// Its maximum with 0 is stored.
    pub relu: bool,
    /// The tensor and the element.
    pub to: (u32, i64),
    /// The statement.
    pub span: Span,
}

/// A window of a tensor as a matrix; along a stride of 0 it repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Window {
    tensor: u32,
    offset: i64,
    shape: [i64; 2],
    strides: [i64; 2],
}

impl Window {
    /// The window as one of this shape, where single rows and columns repeat.
    fn spread(self, shape: [i64; 2]) -> Option<Window> {
        let mut out = Window { shape, ..self };
        for ((stride, own), wanted) in out.strides.iter_mut().zip(self.shape).zip(shape) {
            if own == 1 && wanted != 1 {
                *stride = 0;
            } else if own != wanted {
                return None;
            }
        }
        Some(out)
    }

    /// Line `n` along a dimension.
    fn line(&self, along: usize, n: i64) -> Line {
        Line {
            tensor: self.tensor,
            first: self.offset + n * self.strides[1 - along],
            stride: self.strides[along],
            len: self.shape[along],
        }
    }
}

/// What a tile holds.
#[derive(Clone, Copy, Debug)]
enum Held {
    /// Elements of a tensor; in f32 if `wide`.
    Elements { of: Window, wide: bool },
    /// Products, rounded to bf16 or exact; in f32 if `wide`.
    Products { of: [Window; 2], rounded: bool, wide: bool },
    /// Their sums along a dimension, or those of a matrix product; in f32 if `wide`.
    Sums { of: [Window; 2], along: Option<usize>, relu: bool, wide: bool },
}

/// The lines whose products are summed for element (i, j).
fn lines_of([a, b]: [Window; 2], along: Option<usize>, [i, j]: [i64; 2]) -> [Line; 2] {
    match along {
        Some(along) => [a, b].map(|w| w.line(along, [j, i][along])),
        None => [a.line(1, i), b.line(0, j)],
    }
}

impl Held {
    fn shape(&self) -> [i64; 2] {
        match self {
            Held::Elements { of, .. } => of.shape,
            Held::Products { of, .. } => of[0].shape,
            Held::Sums { of, along: None, .. } => [of[0].shape[0], of[1].shape[1]],
            Held::Sums { of, along: Some(along), .. } => {
                let mut shape = of[0].shape;
                shape[*along] = 1;
                shape
            }
        }
    }
}

/// Follows the blocks of a launch.
pub(super) struct Tracer<'k> {
    kernel: &'k Kernel,
    /// The units round products, and have a maximum with 0.
    rounds: bool,
    relu: bool,
    tiles: FxHashMap<Tile, Held>,
    outputs: Vec<Output>,
    /// The place of each element among them.
    known: FxHashMap<(u32, i64), usize>,
    /// Tensors that are read, and where.
    read: FxHashMap<u32, Span>,
}

impl<'k> Tracer<'k> {
    pub(super) fn new(kernel: &'k Kernel, rounds: bool, relu: bool) -> Tracer<'k> {
        let (tiles, known, read) = Default::default();
        Tracer { kernel, rounds, relu, tiles, outputs: Vec::new(), known, read }
    }

    /// Tiles do not live from block to block.
    pub(super) fn end_of_block(&mut self) {
        self.tiles.clear();
    }

    /// The elements, each as it was stored last.
    pub(super) fn outputs(self) -> Res<Vec<Output>> {
        let both = self.outputs.iter().find_map(|o| Some((o, self.read.get(&o.to.0)?)));
        match both {
            None => Ok(self.outputs),
            Some((o, read)) => {
                let name = &self.kernel.tensors[TensorId::from_u32(o.to.0)].name;
                let message =
                    format!("`{name}` is read and written: the host has results, and operands lie in the banks");
                Err(Box::new(cannot(self.kernel, o.span, message).with_secondary(*read, "read here")))
            }
        }
    }

    fn cannot<T>(&self, span: Span, message: String) -> Res<T> {
        Err(cannot(self.kernel, span, message))
    }

    /// The valid extents of a whole tile.
    fn whole(&self, numbers: &BlockScalars<'_>, t: &TileRef, span: Span) -> Res<[i64; 2]> {
        let data = &self.kernel.tiles[t.tile];
        let name = if data.hidden { "this value".to_owned() } else { format!("`{}`", data.name) };
        if data.count > 1 || t.element.is_some() {
            return self
                .cannot(span, format!("{name} is one of an array of tiles, which sums of products have no use for"));
        }
        if !matches!(data.addr, AddrKind::Auto) {
            return self.cannot(span, format!("{name} has an address, and the units have no tiles"));
        }
        if let Some((r, c)) = t.origin
            && (numbers.known_index(r, span)?, numbers.known_index(c, span)?) != (0, 0)
        {
            return self.cannot(span, format!("a part of {name} is used: load the part by itself"));
        }
        Ok([numbers.known_index(t.valid.0, span)?, numbers.known_index(t.valid.1, span)?])
    }

    fn take(&self, numbers: &BlockScalars<'_>, t: &TileRef, span: Span) -> Res<Held> {
        let shape = self.whole(numbers, t, span)?;
        match self.tiles.get(&t.tile) {
            None => self.cannot(span, "this tile is read before it is written".to_owned()),
            Some(held) if held.shape() != shape => {
                self.cannot(span, "a part of this tile is used: load the part by itself".to_owned())
            }
            Some(held) => Ok(*held),
        }
    }

    fn put(&mut self, numbers: &BlockScalars<'_>, t: &TileRef, held: Held, span: Span) -> Res {
        if self.whole(numbers, t, span)? != held.shape() {
            return self.cannot(span, "a part of this tile is written: give the part a tile of its own".to_owned());
        }
        self.tiles.insert(t.tile, held);
        Ok(())
    }

    fn window(&self, numbers: &BlockScalars<'_>, v: &ViewRef, span: Span) -> Res<Window> {
        let t = &self.kernel.tensors[v.tensor];
        if t.dtype != DType::BF16 {
            return Err(other_dtype(self.kernel, span, &t.name, t.dtype));
        }
        let two = |list: &[ptoc_ir::tile::Value]| -> Res<[i64; 2]> {
            Ok([numbers.known_index(list[0], span)?, numbers.known_index(list[1], span)?])
        };
        let (shape, strides) = (two(&v.shape)?, two(&v.strides)?);
        Ok(Window { tensor: v.tensor.as_u32(), offset: numbers.known_index(v.offset, span)?, shape, strides })
    }

    fn store(&mut self, numbers: &BlockScalars<'_>, v: &ViewRef, a: &TileRef, span: Span) -> Res {
        let to = self.window(numbers, v, span)?;
        let held = self.take(numbers, a, span)?;
        let Held::Sums { of, along, relu, .. } = held else {
            return self.cannot(span, "what is stored is no sum of products, rounded to bf16".to_owned());
        };
        // A sum in f32 is rounded as it is stored: `to` is of bf16.
        let [rows, cols] = held.shape();
        for at in (0..rows).flat_map(|i| (0..cols).map(move |j| [i, j])) {
            let key = (to.tensor, to.offset + at[0] * to.strides[0] + at[1] * to.strides[1]);
            let [a, b] = lines_of(of, along, at);
            let output = Output { a, b, relu, to: key, span };
            match self.known.get(&key) {
                Some(at) => self.outputs[*at] = output,
                None => {
                    self.known.insert(key, self.outputs.len());
                    self.outputs.push(output);
                }
            }
        }
        Ok(())
    }

    fn convert(&self, held: Held, to: DType, inst: &Inst, span: Span) -> Res<Held> {
        let nearest = inst.attrs.round.is_none_or(|r| r == RoundMode::Rint);
        Ok(match (held, to) {
            (Held::Elements { of, wide: false }, DType::F32) => Held::Elements { of, wide: true },
            (Held::Products { of, rounded, wide: false }, DType::F32) => Held::Products { of, rounded, wide: true },
            (Held::Sums { of, along, relu, wide: true }, DType::BF16) if nearest => {
                Held::Sums { of, along, relu, wide: false }
            }
            _ => return self.cannot(span, format!("this is not converted to {to} by the units")),
        })
    }

    fn product(&self, a: Held, b: Held, span: Span) -> Res<Held> {
        let (Held::Elements { of: a, wide }, Held::Elements { of: b, wide: other }) = (a, b) else {
            return self.cannot(span, "a factor is no element of a tensor as it is".to_owned());
        };
        let shape = [a.shape[0].max(b.shape[0]), a.shape[1].max(b.shape[1])];
        match (a.spread(shape), b.spread(shape)) {
            (Some(a), Some(b)) if wide == other => Ok(Held::Products { of: [a, b], rounded: !wide, wide }),
            _ => self.cannot(span, "these factors have other shapes".to_owned()),
        }
    }

    fn spread(&self, held: Held, shape: [i64; 2], span: Span) -> Res<Held> {
        let of = match held {
            Held::Elements { of, wide } => of.spread(shape).map(|of| Held::Elements { of, wide }),
            _ => None,
        };
        match of {
            Some(held) => Ok(held),
            None => self.cannot(span, "what is repeated are no elements of a tensor as they are".to_owned()),
        }
    }

    /// A matrix product, whose order of sums is the units' where it is stepwise.
    fn matmul(&self, a: Held, b: Held, inst: &Inst, span: Span) -> Res<Held> {
        let (Held::Elements { of: a, wide: false }, Held::Elements { of: b, wide: false }) = (a, b) else {
            return self.cannot(span, "a factor is no element of a tensor as it is".to_owned());
        };
        if !inst.attrs.stepwise {
            return self.cannot(span, "this sum has another order than the units' adder tree".to_owned());
        }
        Ok(Held::Sums { of: [a, b], along: None, relu: false, wide: true })
    }

    fn sum(&self, held: Held, along: usize, inst: &Inst, span: Span) -> Res<Held> {
        let Held::Products { of, rounded, wide: true } = held else {
            let message = "what is summed are no products in f32".to_owned();
            return Err(cannot_with(span, message, "sum products of operands that are f32: `rowsum(f32(a) * f32(x))`"));
        };
        if !inst.attrs.stepwise {
            return self.cannot(span, "this sum has another order than the units' adder tree".to_owned());
        }
        match (rounded, self.rounds) {
            (true, false) => Err(cannot_with(
                span,
                "these products are rounded to bf16, and the units' are exact (`unit.rounding` is `fused`)".to_owned(),
                "widen the operands first: `rowsum(f32(a) * f32(x))`",
            )),
            (false, true) => Err(cannot_with(
                span,
                "these products are exact, and the units round them to bf16 (`unit.rounding` is `each`)".to_owned(),
                "widen the products: `rowsum(f32(a * x))`",
            )),
            _ => Ok(Held::Sums { of, along: Some(along), relu: false, wide: true }),
        }
    }

    fn largest(&self, held: Held, span: Span) -> Res<Held> {
        match held {
            Held::Sums { of, along, wide, .. } if self.relu => Ok(Held::Sums { of, along, relu: true, wide }),
            Held::Sums { .. } => lacks_relu(self.kernel, span),
            _ => self.cannot(span, "a maximum with 0 is one of sums".to_owned()),
        }
    }
}

fn lacks_relu<T>(kernel: &Kernel, span: Span) -> Res<T> {
    Err(cannot(kernel, span, "this takes RELU of the units, which `unit.operations` does not have".to_owned()))
}

impl Visitor for Tracer<'_> {
    fn alloc(&mut self, tile: Tile, _: Span) -> Res {
        self.tiles.remove(&tile);
        Ok(())
    }

    fn inst(&mut self, inst: &Inst, span: Span, numbers: &BlockScalars<'_>) -> Res {
        let row = inst.instr.get();
        match (row.sem, &inst.operands[..]) {
            (Sem::Load, [Operand::Tile(d), Operand::View(v)]) => {
                let of = self.window(numbers, v, span)?;
                self.read.entry(of.tensor).or_insert(span);
                self.put(numbers, d, Held::Elements { of, wide: false }, span)
            }
            (Sem::Store, [Operand::View(v), Operand::Tile(a)]) if inst.attrs.atomic.is_none() && !inst.attrs.relu => {
                self.store(numbers, v, a, span)
            }
            (sem, [Operand::Tile(d), Operand::Tile(a), rest @ ..]) => {
                let held = self.take(numbers, a, span)?;
                let made = match (sem, rest) {
                    (Sem::Move, []) => match (held, self.kernel.tiles[d.tile].ty.dtype) {
                        // What leaves the accumulators is rounded on the way.
                        (Held::Sums { of, along, relu, .. }, DType::BF16) => {
                            Held::Sums { of, along, relu, wide: false }
                        }
                        _ => held,
                    },
                    (Sem::Matmul, [Operand::Tile(b)]) => self.matmul(held, self.take(numbers, b, span)?, inst, span)?,
                    (Sem::ColExpand | Sem::RowExpand, []) => {
                        let shape = self.whole(numbers, d, span)?;
                        self.spread(held, shape, span)?
                    }
                    (Sem::Convert, []) => self.convert(held, self.kernel.tiles[d.tile].ty.dtype, inst, span)?,
                    (
                        Sem::Binary(BinOp::Mul) | Sem::ColExpandBinary(BinOp::Mul) | Sem::RowExpandBinary(BinOp::Mul),
                        [Operand::Tile(b)],
                    ) => self.product(held, self.take(numbers, b, span)?, span)?,
                    (Sem::RowReduce(Reduce::Sum), []) => self.sum(held, 1, inst, span)?,
                    (Sem::ColReduce(Reduce::Sum), []) => self.sum(held, 0, inst, span)?,
                    (Sem::Unary(UnOp::Relu), []) => self.largest(held, span)?,
                    (Sem::BinaryScalar(BinOp::Max), [Operand::Scalar(s)]) if numbers.known(*s, span)? == 0 => {
                        self.largest(held, span)?
                    }
                    _ => return Err(lacks(self.kernel, span, row.name)),
                };
                self.put(numbers, d, made, span)
            }
            _ => Err(lacks(self.kernel, span, row.name)),
        }
    }

    fn other(&mut self, stmt: &Stmt, _: &BlockScalars<'_>) -> Res {
        let what = match &stmt.op {
            // What depends on it is an error where it decides something.
            Op::Load { .. } | Op::TileGet { .. } => return Ok(()),
            Op::Copy(_) => "`copy` of element by element",
            Op::Mma(_) => "matrix product",
            Op::Store { .. } | Op::TileSet { .. } => "way to write a single element",
            Op::Atomic { .. } => "atomic access",
            Op::Print { .. } => "`print`",
            _ => "such statement",
        };
        Err(lacks(self.kernel, stmt.span, what))
    }
}

//! Matrix products: which operand lies in the banks, and in which direction tiles lie in lanes.
//!
//! Lanes go along k, so a product is the sums of rows of one operand times a row of the other. The operand in the banks
//! has its lines in eights beside each other, and their sums lie in the lanes of a result; the host brings the other
//! one, or a unit has computed it. What is computed with a result lies as the result does. Where the host can bring
//! neither, since the bytes of both go across k, every unit has a copy of the smaller one in its bank.
//!
//! A transposed tile is the same bursts read the other way: what is loaded for it lies so that its lanes are those of
//! the result. A vector that each line of a tile is multiplied with, one element a line, stays with the host, which
//! brings elements as scalars.

use super::Res;
use super::trace::is_down;
use crate::eval::{BlockScalars, Visitor};
use ptoc_diagnostics::Span;
use ptoc_ir::tile::{Inst, Kernel, Op, Operand, Stmt, Tile, TileRef, Value, ViewRef};
use ptoc_isa::{BinOp, Sem};
use rustc_hash::{FxHashMap, FxHashSet};

/// How tiles of a kernel lie, and what its products leave with the host.
#[derive(Clone, Debug, Default)]
pub struct Orientation {
    /// Tiles whose direction follows from a product: whether their columns lie in lanes.
    down: FxHashMap<Tile, bool>,
    /// Arrays that the host brings.
    host: FxHashSet<u32>,
    /// Arrays of which every unit has a copy.
    copied: FxHashSet<u32>,
}

/// Goes through a block for its numbers alone.
struct Passing;

impl Visitor for Passing {
    fn inst(&mut self, _: &Inst, _: Span, _: &BlockScalars<'_>) -> Res {
        Ok(())
    }

    fn other(&mut self, _: &Stmt, _: &BlockScalars<'_>) -> Res {
        Ok(())
    }
}

/// A tile that is loaded.
struct Loaded<'k> {
    tile: Tile,
    view: &'k ViewRef,
}

/// A product: the accumulator, and its operands.
struct Product {
    sums: Tile,
    left: Tile,
    right: Tile,
}

/// What stands in a kernel about tiles.
#[derive(Default)]
struct Found<'k> {
    loads: Vec<Loaded<'k>>,
    products: Vec<Product>,
    /// Tiles and what they are transposed from.
    transposed: Vec<(Tile, Tile)>,
    /// Products, and vectors of which each of their rows (`true`), or columns, takes an element.
    factors: Vec<(Tile, Tile, bool)>,
    /// Tiles that lie alike, as their elements are computed one by one.
    alike: Vec<(Tile, Tile)>,
}

impl Orientation {
    /// That of a launch. What its views are is seen in the first block.
    pub fn of_launch(kernel: &Kernel, numbers: &mut BlockScalars<'_>, first: Option<&Vec<i64>>) -> Res<Self> {
        let mut found = Found::default();
        find(&kernel.body, &mut found);
        let (false, Some(first)) = (found.decides_nothing(), first) else { return Ok(Orientation::default()) };
        numbers.block(first, &mut Passing)?;
        let number = |v: Value| numbers.data(v).is_none().then(|| numbers.index(v));
        let elements = |v: &ViewRef| {
            let shape = &kernel.tensors[v.tensor].shape;
            shape.iter().filter_map(|e| number(*e)).fold(1i64, i64::saturating_mul)
        };
        Ok(Orientation::of(kernel, &found, &elements, &number))
    }

    fn of(
        kernel: &Kernel,
        found: &Found<'_>,
        elements: &dyn Fn(&ViewRef) -> i64,
        number: &dyn Fn(Value) -> Option<i64>,
    ) -> Orientation {
        let mut out = Orientation::default();
        let groups = Groups::of(kernel.tiles.len(), &found.alike);
        for p in &found.products {
            let view = |tile: Tile| found.loads.iter().find(|l| groups.same(l.tile, tile)).map(|l| l.view);
            let (left, right) = (view(p.left), view(p.right));
            // The host's bytes are elements beside each other.
            let beside = |v: Option<&ViewRef>, along: usize| {
                v.is_none_or(|v| number(v.strides[along]) == Some(1) || number(v.shape[along]) == Some(1))
            };
            let lines = |v: Option<&ViewRef>| v.map_or(0, elements);
            let column = kernel.tiles[p.right].ty.cols == 1;
            let may = [right.is_some() && beside(left, 1), left.is_some() && beside(right, 0)];
            // Which operand is larger is which has more lines: both have the same k.
            let larger = column || lines(left) > lines(right);
            let of_left = match may {
                [false, true] => true,
                [true, false] => false,
                _ => larger,
            };
            let kept = if of_left { right } else { left }.map(|v| v.tensor.as_u32());
            let both = left.is_some() && right.is_some();
            if both && may == [false; 2] {
                out.copied.extend(kept)
            } else {
                out.host.extend(kept)
            }
            out.down.insert(p.left, false);
            out.down.insert(p.right, true);
            out.down.entry(p.sums).or_insert(of_left);
        }
        for (to, from) in &found.transposed {
            let down = *out.down.entry(*to).or_insert_with(|| is_down(&kernel.tiles[*to].ty));
            out.down.entry(*from).or_insert(!down);
        }
        let fixed: Vec<(Tile, bool)> = out.down.iter().map(|(t, d)| (*t, *d)).collect();
        for tile in kernel.tiles.keys() {
            if let Some((_, down)) = fixed.iter().filter(|(t, _)| groups.same(*t, tile)).min_by_key(|(t, _)| *t) {
                out.down.entry(tile).or_insert(*down);
            }
        }
        for (product, vector, rows) in &found.factors {
            // Where elements of the vector lie in lanes, they are multiplied lane by lane.
            if out.is_down(kernel, *product) != *rows {
                let of = found.loads.iter().filter(|l| l.tile == *vector);
                out.host.extend(of.map(|l| l.view.tensor.as_u32()));
            }
        }
        out
    }

    /// Whether the columns of a tile lie in lanes.
    pub fn is_down(&self, kernel: &Kernel, tile: Tile) -> bool {
        self.down.get(&tile).copied().unwrap_or_else(|| is_down(&kernel.tiles[tile].ty))
    }

    /// Whether a product says how the tile lies.
    pub fn fixes(&self, tile: Tile) -> bool {
        self.down.contains_key(&tile)
    }

    /// Whether the kernel has products.
    pub fn has_products(&self) -> bool {
        !self.down.is_empty()
    }

    /// Whether every unit has a copy of the array.
    pub fn is_copied(&self, tensor: u32) -> bool {
        self.copied.contains(&tensor)
    }

    /// Whether the host keeps the array, and brings what products take of it.
    pub fn is_host(&self, tensor: u32) -> bool {
        self.host.contains(&tensor)
    }
}

/// Whether nothing of a kernel says in which direction tiles lie in lanes.
pub fn turns_nothing(kernel: &Kernel) -> bool {
    let mut found = Found::default();
    find(&kernel.body, &mut found);
    found.decides_nothing()
}

impl Found<'_> {
    fn decides_nothing(&self) -> bool {
        self.products.is_empty() && self.transposed.is_empty() && self.factors.is_empty()
    }
}

fn find<'k>(region: &'k [Stmt], found: &mut Found<'k>) {
    for stmt in region {
        if let Op::Inst(inst) = &stmt.op {
            instruction(inst, found);
        }
        stmt.op.regions().for_each(|r| find(r, found));
    }
}

fn instruction<'k>(inst: &'k Inst, found: &mut Found<'k>) {
    let tiles: Vec<&TileRef> = inst
        .operands
        .iter()
        .filter_map(|o| match o {
            Operand::Tile(t) => Some(t),
            _ => None,
        })
        .collect();
    match (inst.instr.get().sem, &inst.operands[..], &tiles[..]) {
        (Sem::Load, [Operand::Tile(t), Operand::View(view)], _) => found.loads.push(Loaded { tile: t.tile, view }),
        (Sem::Matmul, _, [d, a, b]) => {
            found.products.push(Product { sums: d.tile, left: a.tile, right: b.tile });
        }
        (Sem::MatmulAcc, _, [d, c, a, b]) => {
            found.products.push(Product { sums: d.tile, left: a.tile, right: b.tile });
            found.alike.push((d.tile, c.tile));
        }
        (Sem::Transpose, _, [d, a]) => found.transposed.push((d.tile, a.tile)),
        (Sem::RowExpandBinary(BinOp::Mul), _, [d, a, y]) => {
            found.alike.push((d.tile, a.tile));
            found.factors.push((d.tile, y.tile, true));
        }
        (Sem::ColExpandBinary(BinOp::Mul), _, [d, a, y]) => {
            found.alike.push((d.tile, a.tile));
            found.factors.push((d.tile, y.tile, false));
        }
        (
            Sem::Move
            | Sem::Unary(_)
            | Sem::Binary(_)
            | Sem::BinaryScalar(_)
            | Sem::ColExpandBinary(_)
            | Sem::RowExpandBinary(_),
            _,
            [d, rest @ ..],
        ) => found.alike.extend(rest.iter().map(|t| (d.tile, t.tile))),
        _ => {}
    }
}

/// Classes of tiles.
struct Groups(Vec<u32>);

impl Groups {
    fn of(tiles: usize, alike: &[(Tile, Tile)]) -> Groups {
        let mut class: Vec<u32> = (0..tiles as u32).collect();
        for (a, b) in alike {
            let (a, b) = (class[a.as_u32() as usize], class[b.as_u32() as usize]);
            class.iter_mut().filter(|c| **c == b).for_each(|c| *c = a);
        }
        Groups(class)
    }

    fn same(&self, a: Tile, b: Tile) -> bool {
        self.0[a.as_u32() as usize] == self.0[b.as_u32() as usize]
    }
}

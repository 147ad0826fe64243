//! Places for tensors where the source names none: the part of a tensor that a block touches is in the banks of the
//! block's unit, at the same rows and columns for all blocks of a round; what all blocks read alike stays with the
//! host, which brings it.

use super::Res;
use super::code::REGISTERS;
use super::congruent::{Hull, Hulls, follow};
use super::contraction::Orientation;
use super::places::{self, pad, room};
use super::row_sharing::{Layouts, RowWindow};
use super::trace::{LANES, is_down};
use crate::eval::{BlockScalars, Visitor};
use crate::slopes;
use ptoc_abi::Coord;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{self, Inst, Kernel, Op, Operand, Stmt, TensorDir, TensorId, ViewRef};
use ptoc_isa::{Loc, Sem, TileType};
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::placement::{ArrayPlacement, Leaf};
use rustc_hash::FxHashMap;

/// The smallest box of a tensor that a block touches.
pub type Touched = Option<Corners>;

/// How the elements of a tensor that lie in lanes are apart.
#[derive(Clone, Copy, Debug)]
pub struct Direction {
    apart: i64,
    /// A window has several of them.
    several: bool,
}

/// By tensor and block what is touched, and by tensor how its lanes lie.
pub type AllTouched = (Vec<Vec<Touched>>, Vec<Option<Direction>>);

/// First and last element along each dimension.
pub type Corners = (Vec<i64>, Vec<i64>);

/// By tensor and block: the box of elements that TLOAD and TSTORE touch; and by tensor how far the elements of lanes
/// are apart, where a window has several.
pub fn touched(
    kernel: &Kernel,
    orientation: &Orientation,
    numbers: &mut BlockScalars<'_>,
    shapes: &[Vec<i64>],
    blocks: &[Vec<i64>],
) -> Res<AllTouched> {
    let out: Vec<Vec<Touched>> = vec![vec![None; blocks.len()]; shapes.len()];
    let directions = vec![None; shapes.len()];
    if kernel.tensors.values().all(|t| t.place.is_some()) {
        return Ok((out, directions));
    }
    let mut boxes = Boxes { kernel, orientation, shapes, block: 0, out, directions, hulls: Hulls::default() };
    numbers.again();
    let grid = numbers.grid();
    // By class of blocks.
    let mut known: FxHashMap<u32, Option<Touching<'_>>> = FxHashMap::default();
    for (n, at) in blocks.iter().enumerate() {
        boxes.block = n;
        let class = slopes::around(&grid, at);
        let leader = class.and_then(|(c, _)| known.get(&c));
        if let Some(Some((from, hulls))) = leader
            && boxes.moved(from, at, hulls).is_some()
        {
            continue;
        }
        boxes.hulls = Hulls::default();
        let stands = follow(numbers, at, class.filter(|_| leader.is_none()), &mut boxes)?.is_some();
        if let (Some((class, _)), None) = (class, leader) {
            let hulls = std::mem::take(&mut boxes.hulls);
            known.insert(class, (stands && !hulls.unknown).then_some((at, hulls.list)));
        }
    }
    Ok((boxes.out, boxes.directions))
}

/// A block that was gone through, and what it touches, for blocks that it stands for.
type Touching<'b> = (&'b [i64], Vec<Hull>);

impl Boxes<'_> {
    /// What the block touches, from what another one does; `None` if that does not move as a whole.
    fn moved(&mut self, from: &[i64], to: &[i64], hulls: &[Hull]) -> Option<()> {
        let mut found: Vec<(usize, Corners)> = Vec::new();
        for hull in hulls {
            let steps = hull.moved(&self.shapes[hull.tensor as usize], slopes::moved(&hull.slope, from, to)?)?;
            let [lo, hi] = [0, 1].map(|n| hull.corners[n].iter().zip(&steps).map(|(c, s)| c + s).collect());
            found.push((hull.tensor as usize, (lo, hi)));
        }
        found.into_iter().for_each(|(t, corners)| join(&mut self.out[t][self.block], corners));
        Some(())
    }
}

/// Collects what a block touches.
struct Boxes<'k> {
    kernel: &'k Kernel,
    orientation: &'k Orientation,
    shapes: &'k [Vec<i64>],
    block: usize,
    out: Vec<Vec<Touched>>,
    directions: Vec<Option<Direction>>,
    /// Of the block at hand.
    hulls: Hulls,
}

impl Visitor for Boxes<'_> {
    fn inst(&mut self, inst: &Inst, span: Span, numbers: &BlockScalars<'_>) -> Res {
        if let [Operand::Tile(t), Operand::View(v)] | [Operand::View(v), Operand::Tile(t)] = &inst.operands[..]
            && let ([rows, cols], [down, across]) = (&v.shape[..], &v.strides[..])
        {
            let lies_down = self.orientation.is_down(self.kernel, t.tile);
            let (extent, stride) = if lies_down { (rows, down) } else { (cols, across) };
            let direction = &mut self.directions[v.tensor.as_u32() as usize];
            let several = numbers.known_index(*extent, span)? > 1;
            // Of a column that is cut to one element, it is still its rows that have lanes.
            let known = several || lies_down || self.orientation.fixes(t.tile);
            if direction.is_none_or(|d| several && !d.several) && known {
                *direction = Some(Direction { apart: numbers.known_index(*stride, span)?, several });
            }
        }
        for operand in &inst.operands {
            let (Operand::View(v), Sem::Load | Sem::Store) = (operand, inst.instr.get().sem) else { continue };
            let t = v.tensor.as_u32() as usize;
            if self.kernel.tensors[v.tensor].place.is_none() {
                let shape = &self.shapes[t];
                if let Some(ends) = ends(numbers, v, span)? {
                    self.hulls.add(v.tensor.as_u32(), numbers.slope(v.offset), shape, ends);
                    let [lo, hi] = ends.map(|n| corner(n, shape));
                    join(&mut self.out[t][self.block], (lo, hi));
                }
            }
        }
        Ok(())
    }

    /// Refused where the block is traced.
    fn other(&mut self, _: &Stmt, _: &BlockScalars<'_>) -> Res {
        Ok(())
    }
}

/// First and last element of a window, if it has any.
fn ends(numbers: &BlockScalars<'_>, v: &ViewRef, span: Span) -> Res<Option<[i64; 2]>> {
    let first = numbers.known_index(v.offset, span)?;
    let mut last = first;
    for (extent, stride) in v.shape.iter().zip(&v.strides) {
        let (extent, stride) = (numbers.known_index(*extent, span)?, numbers.known_index(*stride, span)?);
        if extent == 0 {
            return Ok(None);
        }
        last += (extent - 1) * stride;
    }
    Ok(Some([first, last]))
}

/// Coordinates of an element of a tensor.
fn corner(mut n: i64, shape: &[i64]) -> Vec<i64> {
    let mut out = vec![0; shape.len()];
    for (d, &extent) in shape.iter().enumerate().rev() {
        (out[d], n) = (n % extent.max(1), n / extent.max(1));
    }
    out
}

fn join(found: &mut Touched, (lo, hi): Corners) {
    match found {
        None => *found = Some((lo, hi)),
        Some((a, b)) => {
            a.iter_mut().zip(lo).for_each(|(a, l)| *a = l.min(*a));
            b.iter_mut().zip(hi).for_each(|(b, h)| *b = h.max(*b));
        }
    }
}

/// The part of a tensor that each block has in its unit.
#[derive(Debug)]
pub struct BlockParts<'k> {
    /// The argument.
    span: Span,
    name: &'k str,
    /// Extents of the tensor.
    shape: Vec<i64>,
    /// Extents of a part.
    sizes: Vec<i64>,
    /// The dimension whose elements lie in lanes.
    lanes: usize,
    /// The dimension of the grid along which the parts of each dimension follow each other.
    axes: Vec<Option<usize>>,
    /// Every unit has all of it.
    pub copied: bool,
}

/// The part of a tensor that each block has in its unit. `None`: all blocks read the same, or nobody anything, so the
/// host keeps it.
pub fn chosen<'k>(
    kernel: &'k Kernel,
    (id, shape): (TensorId, &[i64]),
    (boxes, direction): (&[Touched], Option<Direction>),
    blocks: &[Vec<i64>],
    layouts: Layouts<'_>,
) -> Res<Option<BlockParts<'k>>> {
    let t = &kernel.tensors[id];
    let used: Vec<(&Vec<i64>, &Corners)> =
        blocks.iter().zip(boxes).filter_map(|(at, b)| b.as_ref().map(|b| (at, b))).collect();
    // The author wants it brought there then.
    let into_registers = moves(kernel, id, |ty| matches!(ty.loc, Loc::GrfA | Loc::GrfB));
    // What is not f16 is refused where it is loaded.
    let brought = into_registers || layouts.orientation.is_host(id.as_u32());
    if used.is_empty() || t.dtype != ptoc_tensor::DType::F16 || (t.dir == TensorDir::In && brought) {
        return Ok(None);
    }
    let sizes: Vec<i64> =
        (0..shape.len()).map(|d| used.iter().map(|(_, b)| b.1[d] - b.0[d] + 1).max().unwrap_or(1)).collect();
    // Which dimension of the grid moves along which dimension of the tensor.
    let mut axes: Vec<Option<usize>> = Vec::new();
    let copied = t.dir == TensorDir::In && layouts.orientation.is_copied(id.as_u32());
    for (d, &size) in sizes.iter().enumerate() {
        if copied {
            axes.push(None);
            continue;
        }
        let tiles = |b: &Corners| (b.0[d] % size == 0).then_some(b.0[d] / size);
        if used.iter().all(|(_, b)| tiles(b) == Some(0)) {
            axes.push(None);
            continue;
        }
        let axis = (0..kernel.grid.len()).find(|&e| used.iter().all(|(at, b)| tiles(b) == Some(at[e])));
        match axis {
            Some(e) if !axes.contains(&Some(e)) => axes.push(Some(e)),
            _ if t.dir == TensorDir::In => return Ok(None),
            _ => {
                let message = format!("the blocks' parts of `{}` are not boxes that follow the grid", t.name);
                return room(t.span, message, "say where it is: `at LAYOUT`");
            }
        }
    }
    // What a single block touches is in the unit of the first blocks if it is one of them.
    let moved = |e: usize| used.iter().any(|(at, _)| at[e] != 0);
    let apart = (0..kernel.grid.len()).find(|&e| moved(e) && !axes.contains(&Some(e)));
    if let Some(e) = apart.filter(|_| !copied) {
        if t.dir == TensorDir::In {
            // Blocks that one unit runs one after the other find in its banks what they share.
            let places = |l: &tile::PlaceLeaf| l.coord.is_some() && l.extent > 1 && l.stride > 0;
            let apart = |e: usize| moved(e) && !axes.contains(&Some(e)) && layouts.on.dims[e].iter().any(places);
            if (0..kernel.grid.len()).any(apart) {
                return Ok(None);
            }
        } else {
            let name = &kernel.grid[e].name;
            let (message, help) = match &used[..] {
                [(at, _)] => (
                    format!(
                        "block {at:?} alone has a part of `{}`, and it is not the part that follows the grid",
                        t.name
                    ),
                    "let the first block have it (`i.first`), or say where the tensor is and who runs a block (`at`, \
                     `on`)",
                ),
                _ => (
                    format!("blocks that differ in `{name}` share parts of `{}`", t.name),
                    "let each block store a part of its own, or say where the tensor is and who runs a block (`at`, \
                     `on`)",
                ),
            };
            return room(t.span, message, help);
        }
    }
    // Where no dimension of the grid moves, a block's unit has all of it.
    let sizes: Vec<i64> =
        sizes.iter().zip(&axes).zip(shape).map(|((&s, a), &e)| if a.is_some() { s } else { e }).collect();
    // Elements of a column are next to each other where it has no neighbours.
    let elements = |d: usize| shape[d + 1..].iter().product::<i64>();
    // Where single elements are beside single ones, all dimensions are alike.
    let along = |direction: Direction| {
        let here = |d: usize| elements(d) == direction.apart;
        let exact = (0..shape.len()).rfind(|&d| here(d) && (shape[d] != 1) == direction.several);
        exact.or_else(|| (0..shape.len()).rfind(|&d| here(d)))
    };
    let direction = direction.and_then(along);
    let lanes = match moves(kernel, id, is_down) {
        _ if direction.is_some() => direction.unwrap_or_default(),
        true => shape.iter().rposition(|&e| e != 1).unwrap_or_default(),
        false => shape.len().saturating_sub(1),
    };
    Ok(Some(BlockParts { span: t.span, name: &t.name, shape: shape.to_vec(), sizes, lanes, axes, copied }))
}

/// Whether there is a load into such a tile, or a store from one.
pub(super) fn moves(kernel: &Kernel, id: TensorId, tile: impl Fn(&TileType) -> bool) -> bool {
    fn search(kernel: &Kernel, id: TensorId, region: &[tile::Stmt], tile: &dyn Fn(&TileType) -> bool) -> bool {
        let within = |r: &[tile::Stmt]| search(kernel, id, r, tile);
        region.iter().any(|s| match &s.op {
            Op::Inst(inst) => match &inst.operands[..] {
                [Operand::Tile(t), Operand::View(v)] | [Operand::View(v), Operand::Tile(t)] => {
                    v.tensor == id && tile(&kernel.tiles[t.tile].ty)
                }
                _ => false,
            },
            Op::For(x) => within(&x.body),
            Op::If(x) => within(&x.then) || within(&x.els),
            Op::While(x) => within(&x.head) || within(&x.body),
            Op::Scope(x) => within(&x.body),
            _ => false,
        })
    }
    search(kernel, id, &kernel.body, &tile)
}

/// By dimension and leaf of the grid's placement, the leaves of the stream.
fn one_by_one(on: &tile::ElementPlacement, g: &Geometry) -> Option<Vec<Vec<Vec<Leaf>>>> {
    // All leaves are split in the same way, so they are dimensions of their own here.
    let single: Vec<Vec<tile::PlaceLeaf>> = on.leaves().map(|l| vec![*l]).collect();
    let mut parts = places::dims(&single, g)?.into_iter();
    Some(on.dims.iter().map(|d| parts.by_ref().take(d.len()).collect()).collect())
}

/// How many of `extent` places, of which a row takes `most`, are in each row; `None` if a row takes one. Where more
/// parts of the dimension follow, all rows have equally many, because a layout counts these parts by whole ones.
fn row_share(extent: i64, most: i64, last: bool) -> Option<i64> {
    let each = if last { most } else { (1..=most).rev().find(|n| extent % n == 0)? };
    (each > 1).then_some(each)
}

impl BlockParts<'_> {
    /// The lines of what a single block has, and the bursts of each.
    pub fn lines(&self) -> Option<(i64, i64)> {
        let BlockParts { sizes, lanes, axes, .. } = self;
        if axes.iter().any(Option::is_some) || sizes.is_empty() || sizes.contains(&0) {
            return None;
        }
        let all = sizes.iter().try_fold(1i64, |n, size| n.checked_mul(*size))?;
        Some((all / sizes[*lanes], (sizes[*lanes] + i64::from(LANES) - 1) / i64::from(LANES)))
    }

    /// All of it for a single block, from row 0 on: the first burst of each line in the window, then the second one.
    pub fn interleave(&self, window: RowWindow, g: &Geometry) -> Option<ArrayPlacement> {
        let (_, bursts) = self.lines()?;
        let mut dims: Vec<Vec<Leaf>> = vec![Vec::new(); self.sizes.len()];
        let mut step = 1;
        for (d, &size) in self.sizes.iter().enumerate().rev() {
            let size = u32::try_from(size).ok()?;
            if d == self.lanes {
                let each = (g.col / window.every).min(u32::try_from(bursts).ok()?);
                let rows = u32::try_from(bursts).ok()?.div_ceil(each);
                dims[d] = vec![
                    Leaf { extent: size.min(LANES), coord: Coord::Byte, stride: 2 },
                    Leaf { extent: each, coord: Coord::Col, stride: window.every },
                    Leaf { extent: rows, coord: Coord::Row, stride: 1 },
                ];
            } else if size > 1 {
                dims[d].push(Leaf { extent: size, coord: Coord::Col, stride: step });
                step *= size;
            }
        }
        let dims = dims.into_iter().map(pad).collect();
        Some(ArrayPlacement { dims, row: 0, bank: window.bank, col: window.col, replicated: false })
    }

    /// Parts in their units, from row 0 on: lanes, which are elements along one dimension, then columns of the window,
    /// then rows; a unit's further blocks behind the first, in the same row where there is room.
    ///
    /// `beside`: up to eight rows lie beside each other, burst by burst, as a MAC with automatic indices goes
    /// through them.
    pub fn lay_out(
        &self,
        (window, beside): (RowWindow, bool),
        on: &tile::ElementPlacement,
        g: &Geometry,
    ) -> Res<ArrayPlacement> {
        let BlockParts { span, name, shape, sizes, lanes: along, axes, copied } = self;
        let (span, along) = (*span, *along);
        let columns = i64::from(window.columns);
        let mut dims: Vec<Vec<Leaf>> = vec![Vec::new(); sizes.len()];
        // Bursts from one step of the next part to the next.
        let mut step = 1i64;
        // `last`: nothing moves along the dimension behind it, so that the last row may be filled in part.
        let mut place = |extent: i64, last: bool, out: &mut Vec<Leaf>| -> Option<()> {
            if extent <= 1 {
                return Some(());
            }
            let mut part = |extent: i64, coord, stride: i64| -> Option<()> {
                out.push(Leaf { extent: u32::try_from(extent).ok()?, coord, stride: u32::try_from(stride).ok()? });
                Some(())
            };
            let here = columns / step.min(columns);
            if step < columns && extent <= here {
                part(extent, Coord::Col, step)?;
                step *= extent;
                step = u64::try_from(step).unwrap_or(1).next_power_of_two() as i64;
            } else if let Some(each) = row_share(extent, here, last) {
                let rows = (extent + each - 1) / each;
                part(each, Coord::Col, step)?;
                part(rows, Coord::Row, 1)?;
                step = columns * rows;
            } else {
                step = (step + columns - 1) / columns * columns;
                part(extent, Coord::Row, step / columns)?;
                step = step.checked_mul(extent)?;
            }
            Some(())
        };
        let many = || Diagnostic::error(codes::UNIT_ROOM, span, format!("`{name}` takes too many rows"));
        let many = || Box::new(many().with_label("no place for it").with_help("make the arrays smaller"));
        // As many rows as there are registers for their sums, or the most below that which divide them.
        let share = |size: i64| (2..=REGISTERS as i64).rev().find(|n| size > 0 && size % n == 0);
        let rows = sizes
            .iter()
            .enumerate()
            .rev()
            .filter(|(d, _)| beside && *d != along)
            .find_map(|(d, &s)| Some((d, share(s)?)));
        if let Some((d, share)) = rows {
            place(share, false, &mut dims[d]).ok_or_else(many)?;
        }
        // Behind rows that lie beside each other come their next bursts, and not other rows: automatic indices go
        // through all registers of the factors then.
        let (first, others): (Vec<usize>, Vec<usize>) =
            (0..sizes.len()).rev().partition(|d| rows.is_some() && *d == along);
        for d in first.into_iter().chain(others) {
            let size = sizes[d];
            let mut out = std::mem::take(&mut dims[d]);
            let size = match rows {
                Some((own, share)) if own == d => size / share,
                _ => size,
            };
            if d == along {
                let lanes = size.min(i64::from(LANES));
                out.push(Leaf { extent: lanes as u32, coord: Coord::Byte, stride: 2 });
                let bursts = (size + lanes - 1) / lanes;
                if size % lanes != 0 && axes[d].is_some() {
                    let message =
                        format!("the blocks' parts of `{name}` are {size} elements wide, and a burst has {LANES}");
                    return room(
                        span,
                        message,
                        "tiles of a multiple of 16 columns fill bursts; one block for all of them may have any number",
                    );
                }
                place(bursts, axes[d].is_none(), &mut out).ok_or_else(many)?;
            } else {
                place(size, axes[d].is_none(), &mut out).ok_or_else(many)?;
            }
            dims[d] = out;
        }
        let Some(above) = one_by_one(on, g) else {
            return room(span, format!("the units of `on` do not hold `{name}`"), "say where it is: `at LAYOUT`");
        };
        for (d, axis) in axes.iter().enumerate() {
            let Some(e) = axis else { continue };
            // What lies beyond the last block's part comes behind all of them, part by part on the same units.
            let held: i64 = on.dims[*e].iter().map(|leaf| leaf.extent).product::<i64>() * sizes[d];
            let rounds = (shape[d] + held - 1) / held.max(1);
            let leaves = on.dims[*e].iter().zip(&above[*e]).enumerate();
            for (n, (leaf, parts)) in leaves {
                match (leaf.coord, leaf.stride) {
                    // A unit's further blocks are behind its first one.
                    (None, _) | (_, 0) => {
                        let last = n + 1 == on.dims[*e].len() && rounds <= 1;
                        place(leaf.extent, last, &mut dims[d]).ok_or_else(many)?;
                    }
                    _ => dims[d].extend(parts),
                }
            }
            place(rounds, true, &mut dims[d]).ok_or_else(many)?;
        }
        let dims = dims.into_iter().map(pad).collect();
        Ok(ArrayPlacement { dims, row: 0, bank: window.bank, col: window.col, replicated: *copied })
    }
}

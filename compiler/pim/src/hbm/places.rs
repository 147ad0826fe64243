//! Where blocks and tensors are: as the source says, or chosen so that a block finds its operands in its unit's banks, at the
//! same rows and columns as every other block finds its own.

use super::Res;
use super::node::BankBurst;
use super::trace::LANES;
use crate::eval::{Numbers, Visitor};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{self, Inst, Kernel, Op, Operand, PlaceLeaf, Stmt, TensorDir, TensorId, ViewRef};
use ptoc_isa::Sem;
use ptoc_pim_stream::placement::{Coord, Leaf, Placed, Placement};
use ptoc_pim_stream::stream::Pch;
use ptoc_pim_stream::{Geometry, UnitConfig};
use rustc_hash::FxHashMap;
use std::fmt;

/// A unit.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Home {
    /// Its pseudo-channel.
    pub pch: Pch,
    /// Unit of the pseudo-channel: its even bank is twice that.
    pub unit: u32,
}

impl fmt::Display for Home {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of pseudo-channel {}", self.unit, self.pch)
    }
}

/// Where elements are, seen from a unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Where {
    /// With the host, which brings them to all units.
    Host,
    /// In a bank of the unit.
    Bank(BankBurst),
    /// In the banks of another unit.
    Other(Home),
    /// Not lane by lane in one burst.
    Lanes,
}

struct Entry {
    placement: Placement,
    placed: Placed,
    replicated: bool,
}

/// Where all tensors are.
pub struct Places {
    g: Geometry,
    entries: Vec<Option<Entry>>,
    /// Elements in a burst, by its address over the bytes of a burst.
    elements: FxHashMap<u64, u32>,
}

/// An element's place: its unit, burst and lane.
fn split(g: &Geometry, address: u64) -> (Home, BankBurst, u32) {
    let mut rest = address;
    let mut digit = |n: u32| {
        let d = (rest % u64::from(n)) as u32;
        rest /= u64::from(n);
        d
    };
    let byte = digit(g.burst);
    let (col, row) = (digit(g.col), digit(g.row));
    let bank = digit(g.banks_of_pch());
    let pc = digit(g.pch) as u16;
    let channel = digit(g.channel) as u16;
    let home = Home { pch: Pch { channel, pc }, unit: bank / 2 };
    (home, BankBurst { odd: (bank % 2) as u8, row, col }, byte / 2)
}

impl Places {
    /// The placement of a tensor that is in the memory.
    pub fn placement(&self, tensor: usize) -> Option<&Placement> {
        self.entries.get(tensor)?.as_ref().map(|e| &e.placement)
    }

    /// Where `lanes` elements from element `at` on are.
    pub fn find(&self, tensor: u32, at: u64, lanes: u32, home: Home) -> Where {
        let Some(Some(entry)) = self.entries.get(tensor as usize) else { return Where::Host };
        if lanes == 0 || at + u64::from(lanes) > entry.placed.elements() {
            return Where::Lanes;
        }
        let address = entry.placed.address(at);
        let (there, burst, lane) = split(&self.g, address);
        let straight = (1..u64::from(lanes)).all(|n| entry.placed.address(at + n) == address + 2 * n);
        if lane != 0 || !straight {
            return Where::Lanes;
        }
        match entry.replicated || there == home {
            true => Where::Bank(burst),
            false => Where::Other(there),
        }
    }

    /// Elements that a burst of a unit holds.
    pub fn elements(&self, home: Home, at: BankBurst) -> u32 {
        let bank = 2 * home.unit + u32::from(at.odd);
        let place = [u32::from(home.pch.channel), u32::from(home.pch.pc), bank / self.g.bank, bank % self.g.bank];
        let address = self.g.address(place, at.row, at.col);
        self.elements.get(&(address / u64::from(self.g.burst))).copied().unwrap_or(0)
    }
}

fn room<T>(span: Span, message: String, help: &str) -> Res<T> {
    Err(Box::new(Diagnostic::error(codes::UNIT_ROOM, span, message).with_label("no place for it").with_help(help)))
}

/// Digits of a unit's place, the fastest first.
const DIGITS: [Coord; 4] = [Coord::Bank, Coord::Bg, Coord::Pch, Coord::Channel];

fn radix(g: &Geometry, coord: Coord) -> u32 {
    match coord {
        Coord::Bank => g.bank,
        Coord::Bg => g.bg,
        Coord::Pch => g.pch,
        _ => g.channel,
    }
}

/// Steps along a coordinate that is counted through those above it, as leaves of single ones. `first` is the digit that it
/// begins with.
fn digits(extent: i64, stride: i64, first: usize, g: &Geometry) -> Option<Vec<Leaf>> {
    let (mut rest, mut step, mut out) = (u32::try_from(extent).ok()?, u32::try_from(stride).ok()?, Vec::new());
    for (n, &coord) in DIGITS.iter().enumerate().skip(first) {
        let radix = radix(g, coord);
        if step >= radix && n + 1 < DIGITS.len() {
            if !step.is_multiple_of(radix) {
                return None;
            }
            step /= radix;
            continue;
        }
        let here = radix / step;
        if rest <= here || n + 1 == DIGITS.len() {
            out.push(Leaf { extent: rest, coord, stride: step });
            return Some(out);
        }
        if !rest.is_multiple_of(here) || !radix.is_multiple_of(step) {
            return None;
        }
        out.push(Leaf { extent: here, coord, stride: step });
        (rest, step) = (rest / here, 1);
    }
    Some(out)
}

/// A leaf of the source as leaves of the stream.
fn leaves(leaf: &PlaceLeaf, g: &Geometry) -> Option<Vec<Leaf>> {
    let Some(coord) = leaf.coord else { return Some(Vec::new()) };
    let plain = |coord| {
        let leaf = Leaf { extent: u32::try_from(leaf.extent).ok()?, coord, stride: u32::try_from(leaf.stride).ok()? };
        Some(vec![leaf])
    };
    match coord {
        _ if leaf.extent <= 1 => Some(Vec::new()),
        tile::Coord::Channel => plain(Coord::Channel),
        tile::Coord::Pch => digits(leaf.extent, leaf.stride, 2, g),
        tile::Coord::Bg => plain(Coord::Bg),
        tile::Coord::Bank => plain(Coord::Bank),
        tile::Coord::Row => plain(Coord::Row),
        tile::Coord::Col => plain(Coord::Col),
        tile::Coord::Byte => plain(Coord::Byte),
        // Units of a bank group are two banks apart.
        tile::Coord::Unit => digits(leaf.extent, leaf.stride.checked_mul(2)?, 0, g),
    }
}

/// The unit of each block, and which of the unit's blocks it is is their order.
pub fn home(on: &tile::Placement, at: &[i64], g: &Geometry) -> Option<Home> {
    let c = on.at(at);
    let [channel, pch, bg, bank, .., unit] = c;
    let groups = i64::from(g.bank / 2);
    let (bank, bg) = if on.names(tile::Coord::Unit) { (unit % groups * 2, unit / groups) } else { (bank, bg) };
    let (pch, bg) = (pch + bg / i64::from(g.bg), bg % i64::from(g.bg));
    let pch = pch + channel * i64::from(g.pch);
    let (channel, pc) = (pch / i64::from(g.pch), pch % i64::from(g.pch));
    let inside = channel < i64::from(g.channel) && bank < i64::from(g.bank) && c.iter().all(|&n| n >= 0);
    let unit = (bg * groups + bank / 2) as u32;
    inside.then_some(Home { pch: Pch { channel: channel as u16, pc: pc as u16 }, unit })
}

/// Blocks on units where the source does not say: the last dimension of the grid goes through the units of a bank group, then
/// its groups, pseudo-channels and channels, and then comes round again; what it leaves goes to the dimension before it. With `only`,
/// that dimension alone goes through units, and the others are one block after the other.
pub fn choose(grid: &[i64], only: Option<usize>, g: &Geometry) -> tile::Placement {
    use tile::Coord as C;
    let mut free = vec![
        (C::Bank, i64::from(g.bank / 2), 2),
        (C::Bg, i64::from(g.bg), 1),
        (C::Pch, i64::from(g.pch), 1),
        (C::Channel, i64::from(g.channel), 1),
    ];
    let mut dims = Vec::new();
    for (e, &extent) in grid.iter().enumerate().rev() {
        let (mut leaves, mut reached) = (Vec::new(), 1);
        while reached < extent && !free.is_empty() && only.is_none_or(|o| o == e) {
            let (coord, count, stride) = free.remove(0);
            if count > 1 {
                leaves.push(PlaceLeaf { extent: count, coord: Some(coord), stride });
                reached *= count;
            }
        }
        leaves.push(PlaceLeaf { extent: (extent + reached - 1) / reached, coord: None, stride: 0 });
        dims.push(leaves);
    }
    dims.reverse();
    tile::Placement { dims, replicated: false }
}

/// The smallest box of a tensor that a block touches.
type Touched = Option<Corners>;

/// First and last element along each dimension.
type Corners = (Vec<i64>, Vec<i64>);

/// Places all tensors. `blocks` are the grid's coordinates in order.
pub fn plan(
    kernel: &Kernel,
    g: &Geometry,
    unit: &UnitConfig,
    numbers: &mut Numbers<'_>,
    on: &tile::Placement,
    blocks: &[Vec<i64>],
) -> Res<Places> {
    let mut shapes = Vec::new();
    for t in kernel.tensors.values() {
        let extents: Res<Vec<i64>> = t.shape.iter().map(|&v| numbers.known_index(v, t.span)).collect();
        shapes.push(extents?);
    }
    let boxes = touched(kernel, numbers, &shapes, blocks)?;
    let mut places = Places { g: *g, entries: Vec::new(), elements: FxHashMap::default() };
    let mut row = 0u32;
    for ((id, t), shape) in kernel.tensors.iter().zip(&shapes) {
        let n = id.as_u32() as usize;
        let mut placement = match &t.place {
            Some(place) => {
                let dims = place.dims.iter().map(|d| {
                    d.iter().map(|l| leaves(l, g)).collect::<Option<Vec<_>>>().map(|parts| pad(parts.concat()))
                });
                match dims.collect::<Option<Vec<_>>>() {
                    Some(dims) => Placement { dims, row: 0, replicated: place.replicated },
                    None => {
                        let message =
                            format!("the placement of `{}` cannot be split into pseudo-channels and channels", t.name);
                        return room(t.span, message, "let its extents along `pch` and `unit` be those of the device");
                    }
                }
            }
            None => match chosen(kernel, id, shape, &boxes[n], on, blocks, g)? {
                Some(p) => p,
                None => {
                    places.entries.push(None);
                    continue;
                }
            },
        };
        placement.row = row;
        let extents: Vec<u32> = shape.iter().map(|&e| e as u32).collect();
        let placed = match placement.resolve(&extents, t.dtype.size() as u32, g, unit) {
            Ok(placed) => placed,
            Err(e) => {
                let message = format!("`{}` does not fit into the memory: {e}", t.name);
                return room(t.span, message, "make the arrays smaller, or give more units a part (`at`, `on`)");
            }
        };
        let own = placement.dims.iter().flatten().filter(|l| l.coord == Coord::Row);
        row += 1 + own.map(|l| (l.extent - 1) * l.stride).sum::<u32>();
        placed.for_each(|a| *places.elements.entry(a / u64::from(g.burst)).or_default() += 1);
        places.entries.push(Some(Entry { replicated: placement.replicated, placement, placed }));
    }
    Ok(places)
}

/// A dimension of one element has a part too.
fn pad(leaves: Vec<Leaf>) -> Vec<Leaf> {
    if leaves.is_empty() { vec![Leaf { extent: 1, coord: Coord::Row, stride: 0 }] } else { leaves }
}

/// By tensor and block: the box of elements that TLOAD and TSTORE touch.
fn touched(
    kernel: &Kernel,
    numbers: &mut Numbers<'_>,
    shapes: &[Vec<i64>],
    blocks: &[Vec<i64>],
) -> Res<Vec<Vec<Touched>>> {
    let out: Vec<Vec<Touched>> = vec![vec![None; blocks.len()]; shapes.len()];
    if kernel.tensors.values().all(|t| t.place.is_some()) {
        return Ok(out);
    }
    let mut boxes = Boxes { kernel, shapes, block: 0, out };
    for (n, at) in blocks.iter().enumerate() {
        boxes.block = n;
        numbers.block(at, &mut boxes)?;
    }
    Ok(boxes.out)
}

/// Collects what a block touches.
struct Boxes<'k> {
    kernel: &'k Kernel,
    shapes: &'k [Vec<i64>],
    block: usize,
    out: Vec<Vec<Touched>>,
}

impl Visitor for Boxes<'_> {
    fn inst(&mut self, inst: &Inst, span: Span, numbers: &Numbers<'_>) -> Res {
        for operand in &inst.operands {
            let (Operand::View(v), Sem::Load | Sem::Store) = (operand, inst.instr.get().sem) else { continue };
            let t = v.tensor.as_u32() as usize;
            if self.kernel.tensors[v.tensor].place.is_none() {
                grow(numbers, v, &self.shapes[t], &mut self.out[t][self.block], span)?;
            }
        }
        Ok(())
    }

    /// Refused where the block is traced.
    fn other(&mut self, _: &Stmt, _: &Numbers<'_>) -> Res {
        Ok(())
    }
}

fn grow(numbers: &Numbers<'_>, v: &ViewRef, shape: &[i64], found: &mut Touched, span: Span) -> Res {
    let (mut first, mut last) = (numbers.known_index(v.offset, span)?, 0);
    for (extent, stride) in v.shape.iter().zip(&v.strides) {
        let (extent, stride) = (numbers.known_index(*extent, span)?, numbers.known_index(*stride, span)?);
        if extent == 0 {
            return Ok(());
        }
        last += (extent - 1) * stride;
    }
    last += first;
    let (mut lo, mut hi) = (vec![0; shape.len()], vec![0; shape.len()]);
    for (d, &extent) in shape.iter().enumerate().rev() {
        (lo[d], first) = (first % extent.max(1), first / extent.max(1));
        (hi[d], last) = (last % extent.max(1), last / extent.max(1));
    }
    match found {
        None => *found = Some((lo, hi)),
        Some((a, b)) => {
            a.iter_mut().zip(lo).for_each(|(a, l)| *a = l.min(*a));
            b.iter_mut().zip(hi).for_each(|(b, h)| *b = h.max(*b));
        }
    }
    Ok(())
}

/// A placement in which each block's box is in its unit. `None`: all blocks read the same, or nobody anything, so the host keeps it.
fn chosen(
    kernel: &Kernel,
    id: TensorId,
    shape: &[i64],
    boxes: &[Touched],
    on: &tile::Placement,
    blocks: &[Vec<i64>],
    g: &Geometry,
) -> Res<Option<Placement>> {
    let t = &kernel.tensors[id];
    let used: Vec<(&Vec<i64>, &Corners)> =
        blocks.iter().zip(boxes).filter_map(|(at, b)| b.as_ref().map(|b| (at, b))).collect();
    let into_registers = kernel_loads_to_registers(kernel, id);
    // What is not f16 is refused where it is loaded.
    if used.is_empty() || t.dtype != ptoc_tensor::DType::F16 || (t.dir == TensorDir::In && into_registers) {
        return Ok(None);
    }
    let sizes: Vec<i64> =
        (0..shape.len()).map(|d| used.iter().map(|(_, b)| b.1[d] - b.0[d] + 1).max().unwrap_or(1)).collect();
    // Which dimension of the grid moves along which dimension of the tensor.
    let mut axes: Vec<Option<usize>> = Vec::new();
    for (d, &size) in sizes.iter().enumerate() {
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
    let moved = |e: usize| blocks.iter().any(|at| at[e] != 0);
    if let Some(e) = (0..kernel.grid.len()).find(|&e| moved(e) && !axes.contains(&Some(e))) {
        if t.dir == TensorDir::In {
            return Ok(None);
        }
        let message = format!("blocks that differ in `{}` share parts of `{}`", kernel.grid[e].name, t.name);
        return room(t.span, message, "say where it is: `at LAYOUT`");
    }
    // Where no dimension of the grid moves, a block's unit has all of it.
    let sizes: Vec<i64> =
        sizes.iter().zip(&axes).zip(shape).map(|((&s, a), &e)| if a.is_some() { s } else { e }).collect();
    lay_out(t.span, &t.name, &sizes, &axes, on, g).map(Some)
}

/// Is the tensor loaded into registers? The author wants it brought there then.
fn kernel_loads_to_registers(kernel: &Kernel, id: TensorId) -> bool {
    fn search(kernel: &Kernel, id: TensorId, region: &[tile::Stmt]) -> bool {
        region.iter().any(|s| match &s.op {
            Op::Inst(inst) => match &inst.operands[..] {
                [Operand::Tile(d), Operand::View(v)] => {
                    let loc = kernel.tiles[d.tile].ty.loc;
                    v.tensor == id && matches!(loc, ptoc_isa::Loc::GrfA | ptoc_isa::Loc::GrfB)
                }
                _ => false,
            },
            Op::For(x) => search(kernel, id, &x.body),
            Op::If(x) => search(kernel, id, &x.then) || search(kernel, id, &x.els),
            Op::While(x) => search(kernel, id, &x.head) || search(kernel, id, &x.body),
            Op::Scope(x) => search(kernel, id, &x.body),
            _ => false,
        })
    }
    search(kernel, id, &kernel.body)
}

/// Boxes of these sizes in their units: lanes, then columns of the even bank, then rows; a unit's further blocks in further rows.
fn lay_out(
    span: Span,
    name: &str,
    sizes: &[i64],
    axes: &[Option<usize>],
    on: &tile::Placement,
    g: &Geometry,
) -> Res<Placement> {
    let columns = i64::from(g.col);
    let mut dims: Vec<Vec<Leaf>> = vec![Vec::new(); sizes.len()];
    // Bursts from one step of the next part to the next.
    let mut step = 1i64;
    let mut place = |extent: i64, out: &mut Vec<Leaf>| {
        if extent <= 1 {
            return;
        }
        let leaf = |extent: i64, coord, stride: i64| Leaf { extent: extent as u32, coord, stride: stride as u32 };
        let here = columns / step.min(columns);
        if step < columns && extent <= here {
            out.push(leaf(extent, Coord::Col, step));
            step *= extent;
            step = u64::try_from(step).unwrap_or(1).next_power_of_two() as i64;
        } else if step < columns && extent % here == 0 {
            out.push(leaf(here, Coord::Col, step));
            out.push(leaf(extent / here, Coord::Row, 1));
            step = columns * (extent / here);
        } else {
            step = step.max(columns);
            out.push(leaf(extent, Coord::Row, step / columns));
            step *= extent;
        }
    };
    for (d, &size) in sizes.iter().enumerate().rev() {
        let mut out = Vec::new();
        if d + 1 == sizes.len() {
            let lanes = size.min(i64::from(LANES));
            out.push(Leaf { extent: lanes as u32, coord: Coord::Byte, stride: 2 });
            let bursts = (size + lanes - 1) / lanes;
            if size % lanes != 0 && axes[d].is_some() {
                let message =
                    format!("the blocks' parts of `{name}` are {size} elements wide, and a burst has {LANES}");
                return room(span, message, "tiles of a multiple of 16 columns fill bursts");
            }
            place(bursts, &mut out);
        } else {
            place(size, &mut out);
        }
        dims[d] = out;
    }
    // Whole rows for a block.
    let mut rows = (step + columns - 1) / columns;
    for (d, axis) in axes.iter().enumerate() {
        let Some(e) = axis else { continue };
        for leaf in &on.dims[*e] {
            match (leaf.coord, leaf.stride) {
                (None, _) | (_, 0) if leaf.extent > 1 => {
                    let (Ok(extent), Ok(stride)) = (u32::try_from(leaf.extent), u32::try_from(rows)) else {
                        return room(span, format!("`{name}` takes too many rows"), "make the arrays smaller");
                    };
                    dims[d].push(Leaf { extent, coord: Coord::Row, stride });
                    rows = rows.saturating_mul(leaf.extent);
                }
                (None, _) | (_, 0) => {}
                _ => match leaves(leaf, g) {
                    Some(parts) => dims[d].extend(parts),
                    None => {
                        return room(
                            span,
                            format!("the units of `on` do not hold `{name}`"),
                            "say where it is: `at LAYOUT`",
                        );
                    }
                },
            }
        }
    }
    Ok(Placement { dims: dims.into_iter().map(pad).collect(), row: 0, replicated: false })
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { channel: 8, pch: 2, bg: 4, bank: 4, row: 4096, col: 32, burst: 32 };

    fn on(dims: Vec<Vec<(i64, Option<tile::Coord>, i64)>>) -> tile::Placement {
        let leaf = |(extent, coord, stride)| PlaceLeaf { extent, coord, stride };
        tile::Placement {
            dims: dims.into_iter().map(|d| d.into_iter().map(leaf).collect()).collect(),
            replicated: false,
        }
    }

    fn unit(channel: u16, pc: u16, unit: u32) -> Home {
        Home { pch: Pch { channel, pc }, unit }
    }

    /// Units of a bank group, of a pseudo-channel, of all; pseudo-channels through the channels.
    #[test]
    fn coordinates_are_counted_through() {
        let all = on(vec![vec![(128, Some(tile::Coord::Unit), 1)]]);
        for n in 0..128 {
            let pch = n / 8;
            assert_eq!(home(&all, &[n], &G), Some(unit((pch / 2) as u16, (pch % 2) as u16, (n % 8) as u32)));
        }
        let more = on(vec![vec![(129, Some(tile::Coord::Unit), 1)]]);
        assert_eq!(home(&more, &[128], &G), None);
        let pchs = on(vec![vec![(16, Some(tile::Coord::Pch), 1), (3, None, 0)]]);
        assert_eq!([home(&pchs, &[5], &G), home(&pchs, &[21], &G)], [Some(unit(2, 1, 0)); 2]);
    }

    /// A leaf means the same place to the units and to the stream, for every extent and stride that can be split.
    #[test]
    fn leaves_keep_their_places() {
        let config = UnitConfig::HbmPim(ptoc_pim_stream::unit::HbmPim::default());
        let mut split_up = 0;
        for (coord, most) in
            [(tile::Coord::Unit, 128), (tile::Coord::Pch, 16), (tile::Coord::Bg, 4), (tile::Coord::Channel, 8)]
        {
            for stride in 1..most {
                for extent in 2..=(most - 1) / stride + 1 {
                    let leaf = PlaceLeaf { extent, coord: Some(coord), stride };
                    let Some(parts) = leaves(&leaf, &G) else { continue };
                    split_up += usize::from(parts.len() > 1);
                    let p = Placement { dims: vec![parts], row: 0, replicated: false };
                    let placed = p.resolve(&[extent as u32], 2, &G, &config).unwrap_or_else(|e| panic!("{leaf}: {e}"));
                    let blocks = on(vec![vec![(extent, Some(coord), stride)]]);
                    for n in 0..extent {
                        let (there, ..) = split(&G, placed.address(n as u64));
                        assert_eq!(Some(there), home(&blocks, &[n], &G), "{leaf}, {n}");
                    }
                }
            }
        }
        assert!(split_up > 30, "only {split_up} leaves were split");
    }

    /// What is chosen has a unit for every block, and the blocks of a round have units of their own.
    #[test]
    fn chosen_units_exist() {
        for grid in [vec![1], vec![300], vec![5, 7], vec![130, 3], vec![2, 3, 50], vec![1, 1]] {
            for only in std::iter::once(None).chain((0..grid.len()).map(Some)) {
                let on = choose(&grid, only, &G);
                let shape = on.shape().unwrap_or_default();
                assert!(shape.iter().zip(&grid).all(|(have, want)| have >= want), "{grid:?}: {shape:?}");
                for n in 0..grid[0] {
                    let mut at = vec![0; grid.len()];
                    at[0] = n;
                    assert!(home(&on, &at, &G).is_some(), "{grid:?} {at:?}");
                }
            }
        }
    }
}

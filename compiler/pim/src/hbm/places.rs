//! Where blocks and tensors are: as the source says, or chosen so that a block finds its operands in its unit's banks,
//! at the same rows and columns as every other block finds its own.

use super::Res;
use super::chosen::{chosen, touched};
use super::congruent::Hull;
use super::contraction::Orientation;
use super::node::BankBurst;
use super::row_sharing::{self, Layouts, LineOrder, RowWindow};
use super::schedule::Stored;
use crate::eval::BlockScalars;
use crate::rows::{FreeRows, reach};
use ptoc_abi::Coord;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{self, Kernel, PlaceLeaf, TensorData, TensorDir, TensorId};
use ptoc_pim_stream::placement::{ArrayPlacement, Leaf, Placed};
use ptoc_pim_stream::stream::Pch;
use ptoc_pim_stream::{Geometry, UnitConfig};
use std::fmt;
use std::ops::Range;

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
    placement: ArrayPlacement,
    placed: Placed,
    replicated: bool,
    /// Bytes of an element.
    size: u32,
    /// What it has of its rows; all of them where the author has placed it.
    window: Option<RowWindow>,
}

impl Entry {
    /// Whether the burst of a unit is one that no other array has.
    fn has(&self, at: BankBurst) -> bool {
        let rows = self.placement.row..self.placement.row + reach(&self.placement);
        rows.contains(&at.row) && self.window.is_none_or(|w| w.contains(at))
    }
}

/// Where all tensors are.
pub struct Places {
    g: Geometry,
    /// How tiles lie.
    pub orientation: Orientation,
    entries: Vec<Option<Entry>>,
    /// Extents of all tensors.
    shapes: Vec<Vec<i64>>,
    /// Rows of the banks that no tensor has.
    pub free: Range<u32>,
    /// What is read is interleaved.
    pub interleaved: bool,
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
    pub fn placement(&self, tensor: usize) -> Option<&ArrayPlacement> {
        self.entries.get(tensor)?.as_ref().map(|e| &e.placement)
    }

    /// Where `lanes` elements are from element `at` on, `stride` apart.
    pub fn find(&self, tensor: u32, (at, stride): (u64, i64), lanes: u32, home: Home) -> Where {
        let Some(Some(entry)) = self.entries.get(tensor as usize) else { return Where::Host };
        let element = |lane: u32| at.wrapping_add_signed(stride.wrapping_mul(i64::from(lane)));
        let inside = |lane: u32| element(lane) < entry.placed.elements();
        if lanes == 0 || stride < 0 || !inside(0) || !inside(lanes - 1) {
            return Where::Lanes;
        }
        let address = entry.placed.address(at);
        let (there, burst, lane) = split(&self.g, address);
        let straight = match stride {
            1 => entry.placed.is_straight(at, lanes, 2),
            _ => (1..lanes).all(|l| entry.placed.address(element(l)) == address + 2 * u64::from(l)),
        };
        if lane != 0 || !straight {
            return Where::Lanes;
        }
        match entry.replicated || there == home {
            true if entry.replicated => {
                Where::Bank(BankBurst { odd: entry.window.map_or(burst.odd, |w| w.bank as u8), ..burst })
            }
            true => Where::Bank(burst),
            false => Where::Other(there),
        }
    }

    /// A burst of a unit in words: it is one array's.
    pub fn show(&self, kernel: &Kernel, at: BankBurst) -> String {
        let has = |e: &Option<Entry>| e.as_ref().is_some_and(|e| e.has(at));
        match self.entries.iter().zip(kernel.tensors.values()).find(|(e, _)| has(e)) {
            Some((_, t)) => format!("`{}` ({at})", t.name),
            None => at.to_string(),
        }
    }

    /// For each of these tensors, by number, whether all its elements are in these bursts.
    pub fn covered(&self, stored: &Stored) -> Vec<bool> {
        let mut held = vec![0u64; self.entries.len()];
        for &(home, at) in stored {
            if let Some(n) = self.entries.iter().position(|e| e.as_ref().is_some_and(|e| e.has(at))) {
                held[n] += u64::from(self.elements(home, at));
            }
        }
        let all = |e: &Option<Entry>, held: &u64| e.as_ref().is_some_and(|e| e.placed.elements() == *held);
        self.entries.iter().zip(&held).map(|(e, held)| all(e, held)).collect()
    }

    /// Elements that a burst of a unit holds.
    pub fn elements(&self, home: Home, at: BankBurst) -> u32 {
        let bank = 2 * home.unit + u32::from(at.odd);
        let place = [u32::from(home.pch.channel), u32::from(home.pch.pc), bank / self.g.bank, bank % self.g.bank];
        let address = self.g.address(place, at.row, at.col);
        let owner = self.entries.iter().flatten().find(|e| e.has(at));
        owner.map_or(0, |e| e.placed.elements_in(address, self.g.burst, e.size))
    }

    /// Extents of a tensor.
    pub fn shape(&self, tensor: u32) -> &[i64] {
        &self.shapes[tensor as usize]
    }

    /// Whether the elements of a hull that are in bursts of the first unit, moved by so many, are in the same bursts of
    /// the second one; those of an array with the host must not move.
    pub fn carries(&self, hull: &Hull, by: i64, [from, to]: [Home; 2]) -> bool {
        let Some(entry) = &self.entries[hull.tensor as usize] else { return by == 0 };
        let Some(steps) = hull.moved(self.shape(hull.tensor), by) else { return false };
        let [low, high] = &hull.corners;
        let alike =
            |(dim, step): (usize, &i64)| entry.placed.moves_alike(dim, [low[dim], high[dim]].map(|i| i as u64), *step);
        let all_alike = steps.iter().enumerate().all(alike);
        let address = |n: i64| entry.placed.address(n as u64);
        let moved = address(hull.some + by).wrapping_sub(address(hull.some));
        let banks = match entry.replicated {
            true => 0,
            false => self.bank(to).wrapping_sub(self.bank(from)),
        };
        all_alike && moved == banks
    }

    /// The address of a unit's even bank.
    fn bank(&self, home: Home) -> u64 {
        let bank = 2 * home.unit;
        let place = [u32::from(home.pch.channel), u32::from(home.pch.pc), bank / self.g.bank, bank % self.g.bank];
        self.g.address(place, 0, 0)
    }
}

/// No place for something.
pub fn room<T>(span: Span, message: String, help: &str) -> Res<T> {
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

/// Steps along a coordinate that is counted through those above it, as leaves of single ones. `first` is the digit that
/// it begins with.
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
pub fn leaves(leaf: &PlaceLeaf, g: &Geometry) -> Option<Vec<Leaf>> {
    let Some(coord) = leaf.coord else { return Some(Vec::new()) };
    let plain = |coord| {
        let leaf = Leaf { extent: u32::try_from(leaf.extent).ok()?, coord, stride: u32::try_from(leaf.stride).ok()? };
        Some(vec![leaf])
    };
    match coord {
        _ if leaf.extent <= 1 => Some(Vec::new()),
        Coord::Channel => plain(Coord::Channel),
        Coord::Pch => digits(leaf.extent, leaf.stride, 2, g),
        Coord::Bg => plain(Coord::Bg),
        Coord::Bank => plain(Coord::Bank),
        Coord::Row => plain(Coord::Row),
        Coord::Col => plain(Coord::Col),
        Coord::Byte => plain(Coord::Byte),
        // Units of a bank group are two banks apart.
        Coord::Unit => digits(leaf.extent, leaf.stride.checked_mul(2)?, 0, g),
    }
}

/// A leaf of the source in units of the stream, which may have any count: the memory's coordinates above the row are
/// digits of the unit's number. `None`: an odd number of banks, of which a unit has two.
fn of_units(leaf: &PlaceLeaf, g: &Geometry) -> Option<Vec<Leaf>> {
    let Some(coord) = leaf.coord.filter(|_| leaf.extent > 1) else { return Some(Vec::new()) };
    let (extent, stride) = (u32::try_from(leaf.extent).ok()?, u32::try_from(leaf.stride).ok()?);
    let groups = g.bank / 2;
    let units = |extent, each: u32| Some(Leaf { extent, coord: Coord::Unit, stride: stride.checked_mul(each)? });
    let plain = |coord| Some(Leaf { extent, coord, stride });
    let one = match coord {
        Coord::Channel => units(extent, groups * g.bg * g.pch),
        Coord::Pch => units(extent, groups * g.bg),
        Coord::Bg => units(extent, groups),
        Coord::Unit => units(extent, 1),
        Coord::Bank if stride.is_multiple_of(2) => Some(Leaf { extent, coord: Coord::Unit, stride: stride / 2 }),
        Coord::Bank if stride == 1 && extent == 2 => plain(Coord::Bank),
        Coord::Bank if stride == 1 && extent.is_multiple_of(2) => {
            let parts = [(2, Coord::Bank), (extent / 2, Coord::Unit)];
            return Some(parts.map(|(extent, coord)| Leaf { extent, coord, stride: 1 }).into());
        }
        Coord::Bank => None,
        Coord::Row => plain(Coord::Row),
        Coord::Col => plain(Coord::Col),
        Coord::Byte => plain(Coord::Byte),
    };
    one.map(|l| vec![l])
}

/// Dimensions of the source as those of the stream.
pub fn dims(of: &[Vec<PlaceLeaf>], g: &Geometry) -> Option<Vec<Vec<Leaf>>> {
    let each = |f: &dyn Fn(&PlaceLeaf) -> Option<Vec<Leaf>>| -> Option<Vec<Vec<Leaf>>> {
        of.iter().map(|d| d.iter().map(f).collect::<Option<Vec<_>>>().map(|parts| parts.concat())).collect()
    };
    each(&|l| leaves(l, g)).or_else(|| each(&|l| of_units(l, g)))
}

/// The author's placement, from row 0 on. `None`: it cannot be split into units and their banks.
pub fn of_author(place: &tile::ElementPlacement, g: &Geometry) -> Option<ArrayPlacement> {
    let dims = dims(&place.dims, g)?.into_iter().map(pad).collect();
    Some(ArrayPlacement { dims, row: 0, replicated: place.replicated, ..ArrayPlacement::default() })
}

/// The unit of each block, and which of the unit's blocks it is is their order.
pub fn home(on: &tile::ElementPlacement, at: &[i64], g: &Geometry) -> Option<Home> {
    let c = on.at(at);
    let [channel, pch, bg, bank, .., unit] = c;
    let groups = i64::from(g.bank / 2);
    let (bank, bg) = if on.names(Coord::Unit) { (unit % groups * 2, unit / groups) } else { (bank, bg) };
    let (pch, bg) = (pch + bg / i64::from(g.bg), bg % i64::from(g.bg));
    let pch = pch + channel * i64::from(g.pch);
    let (channel, pc) = (pch / i64::from(g.pch), pch % i64::from(g.pch));
    let inside = channel < i64::from(g.channel) && bank < i64::from(g.bank) && c.iter().all(|&n| n >= 0);
    let unit = (bg * groups + bank / 2) as u32;
    inside.then_some(Home { pch: Pch { channel: channel as u16, pc: pc as u16 }, unit })
}

/// Blocks on units where the source does not say: the last dimension of the grid goes through the units of a bank
/// group, then its groups, pseudo-channels and channels, and then comes round again; what it leaves goes to the
/// dimension before it. With `only`, that dimension alone goes through units, and the others are one block after the
/// other.
pub fn choose(grid: &[i64], only: Option<usize>, g: &Geometry) -> tile::ElementPlacement {
    use Coord as C;
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
    tile::ElementPlacement { dims, replicated: false }
}

/// The round of a block that [`choose`] has dealt out: what is left of its coordinates behind those of its unit, in
/// row-major order.
pub fn round(on: &tile::ElementPlacement, grid: &[i64], at: &[i64]) -> usize {
    let along = on.dims.iter().map(|leaves| {
        let units = leaves.iter().filter(|l| l.coord.is_some()).map(|l| l.extent);
        units.product::<i64>().max(1)
    });
    let all = along.zip(grid).zip(at);
    all.fold(0, |n, ((units, extent), at)| n * ((extent + units - 1) / units).max(1) + at / units) as usize
}

/// Places all tensors. `blocks` are the grid's coordinates in order.
pub fn plan(
    kernel: &Kernel,
    unit: &UnitConfig,
    numbers: &mut BlockScalars<'_>,
    layouts: Layouts<'_>,
    blocks: &[Vec<i64>],
    mut rows: FreeRows,
) -> Res<Places> {
    let g = layouts.g;
    let mut shapes = Vec::new();
    for t in kernel.tensors.values() {
        let extents: Res<Vec<i64>> = t.shape.iter().map(|&v| numbers.known_index(v, t.span)).collect();
        shapes.push(extents?);
    }
    let (boxes, directions) = touched(kernel, layouts.orientation, numbers, &shapes, blocks)?;
    let orientation = layouts.orientation.clone();
    let mut places =
        Places { g: *g, orientation, entries: Vec::new(), shapes: shapes.clone(), free: 0..0, interleaved: false };
    let mut found: Vec<Option<(ArrayPlacement, Option<RowWindow>)>> = vec![None; shapes.len()];
    let mut operands = Vec::new();
    let elements = |shape: &[i64]| shape.iter().product::<i64>();
    // Blocks share nothing where there is one: what others would share is what is smaller.
    let single = layouts.lines == LineOrder::Beside && blocks.len() == 1;
    let read = kernel.tensors.values().zip(&shapes).filter(|(t, _)| t.dir == TensorDir::In);
    let largest = read.map(|(_, shape)| elements(shape)).max().unwrap_or(0);
    for ((id, t), shape) in kernel.tensors.iter().zip(&shapes) {
        let n = id.as_u32() as usize;
        if let Some(place) = &t.place {
            let Some(placement) = of_author(place, g) else {
                let message = format!("the placement of `{}` cannot be split into units and their banks", t.name);
                return room(t.span, message, "a unit has two banks: let extents along `bank` be even");
            };
            found[n] = Some((in_rows_of_its_own(t, n, placement, shape, &mut rows, g)?, None));
        } else if t.dir == TensorDir::In
            && single
            && 2 * elements(shape) <= largest
            && !layouts.orientation.is_copied(id.as_u32())
        {
            // Of what is multiplied with the rows of another array, with the host.
        } else if let Some(parts) = chosen(kernel, (id, shape), (&boxes[n], directions[n]), blocks, layouts)? {
            let operand = row_sharing::Operand { tensor: n as u32, written: t.dir != TensorDir::In, parts };
            // Copies are made row by row, in both banks of a unit; the odd one's are read, so that the row of what they
            // are multiplied with stays open.
            if operand.parts.copied && !(blocks.len() == 1 && layouts.lines == LineOrder::Interleaved) {
                let placement = operand.lay_out(RowWindow::whole(0, g), layouts)?;
                let window = RowWindow::whole(1, g);
                found[n] = Some((in_rows_of_its_own(t, n, placement, shape, &mut rows, g)?, Some(window)));
                continue;
            }
            match operand.resident(&rows, layouts)? {
                Some((placement, window)) => found[n] = Some((placement, Some(window))),
                None => operands.push(operand),
            }
        }
    }
    if layouts.lines == LineOrder::Interleaved
        && blocks.len() == 1
        && let Some(all) = row_sharing::interleaved(&operands, &mut rows, g)
    {
        places.interleaved = true;
        operands.retain(|o| o.written);
        all.into_iter().for_each(|(n, (p, window))| found[n as usize] = Some((p, Some(window))));
    }
    match row_sharing::shared(&operands, &mut rows, layouts)? {
        Some(all) => all.into_iter().for_each(|(n, (p, window))| found[n as usize] = Some((p, Some(window)))),
        None => {
            let window = RowWindow::whole(0, g);
            for operand in &operands {
                let n = operand.tensor as usize;
                let t = &kernel.tensors[TensorId::from_u32(operand.tensor)];
                let placement = operand.lay_out(window, layouts)?;
                found[n] = Some((in_rows_of_its_own(t, n, placement, &shapes[n], &mut rows, g)?, Some(window)));
            }
        }
    }
    for ((t, shape), found) in kernel.tensors.values().zip(&shapes).zip(found) {
        let Some((placement, window)) = found else {
            places.entries.push(None);
            continue;
        };
        let placed = match placement.resolve(&extents(shape), t.dtype.size() as u32, g, unit) {
            Ok(placed) => placed,
            Err(e) => {
                let message = format!("`{}` does not fit into the memory: {e}", t.name);
                return room(t.span, message, SMALLER);
            }
        };
        let (replicated, size) = (placement.replicated, t.dtype.size() as u32);
        places.entries.push(Some(Entry { replicated, placement, placed, size, window }));
    }
    places.free = rows.longest_piece();
    Ok(places)
}

/// What helps where there is no room.
const SMALLER: &str = "make the arrays smaller, or give more units a part (`at`, `on`)";

fn extents(shape: &[i64]) -> Vec<u32> {
    shape.iter().map(|&e| e as u32).collect()
}

/// The placement of tensor `n` in rows that no other array has.
fn in_rows_of_its_own(
    t: &TensorData,
    n: usize,
    placement: ArrayPlacement,
    shape: &[i64],
    rows: &mut FreeRows,
    g: &Geometry,
) -> Res<ArrayPlacement> {
    // What does not fit by itself is told with the coordinate that it leaves.
    let needed = reach(&placement);
    if needed > g.row {
        let message = format!("`{}` takes {needed} rows of every bank, and a bank has {} for data", t.name, g.row);
        let d = Diagnostic::error(codes::UNIT_ROOM, t.span, message).with_label("no place for it");
        let d = d.with_note(share(&placement, &extents(shape), u64::from(t.dtype.size() as u32), g, needed));
        return Err(Box::new(d.with_help(SMALLER)));
    }
    let Some(row) = rows.take(Some(n as u32), &placement, needed) else {
        let message = format!(
            "`{}` takes {needed} row{} of every bank, and {} of {} are free in one piece",
            t.name,
            if needed == 1 { "" } else { "s" },
            rows.longest(),
            g.row
        );
        return room(t.span, message, SMALLER);
    };
    Ok(ArrayPlacement { row, ..placement })
}

/// How much of its rows an array fills, in how many of the banks.
fn share(p: &ArrayPlacement, shape: &[u32], size: u64, g: &Geometry, rows: u32) -> String {
    let above = |l: &&Leaf| !matches!(l.coord, Coord::Row | Coord::Col | Coord::Byte) && l.stride > 0;
    let banks: u64 = p.dims.iter().flatten().filter(above).map(|l| u64::from(l.extent)).product();
    let bytes = shape.iter().fold(size, |n, e| n.saturating_mul(u64::from(*e)));
    let all = u64::from(g.channel) * u64::from(g.pch) * u64::from(g.banks_of_pch());
    let room = banks as f64 * f64::from(rows) * f64::from(g.col) * f64::from(g.burst);
    format!(
        "it has {bytes} bytes in {banks} of {all} banks, which fill {:.0} % of its rows of {} bytes there",
        100.0 * bytes as f64 / room,
        g.col * g.burst
    )
}

/// A dimension of one element has a part too.
pub fn pad(leaves: Vec<Leaf>) -> Vec<Leaf> {
    if leaves.is_empty() { vec![Leaf { extent: 1, coord: Coord::Row, stride: 0 }] } else { leaves }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: Geometry = Geometry { channel: 8, pch: 2, bg: 4, bank: 4, row: 4096, col: 32, burst: 32 };

    fn on(dims: Vec<Vec<(i64, Option<Coord>, i64)>>) -> tile::ElementPlacement {
        let leaf = |(extent, coord, stride)| PlaceLeaf { extent, coord, stride };
        tile::ElementPlacement {
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
        let all = on(vec![vec![(128, Some(Coord::Unit), 1)]]);
        for n in 0..128 {
            let pch = n / 8;
            assert_eq!(home(&all, &[n], &G), Some(unit((pch / 2) as u16, (pch % 2) as u16, (n % 8) as u32)));
        }
        let more = on(vec![vec![(129, Some(Coord::Unit), 1)]]);
        assert_eq!(home(&more, &[128], &G), None);
        let pchs = on(vec![vec![(16, Some(Coord::Pch), 1), (3, None, 0)]]);
        assert_eq!([home(&pchs, &[5], &G), home(&pchs, &[21], &G)], [Some(unit(2, 1, 0)); 2]);
    }

    /// A leaf means the same place to the units and to the stream, for every extent and stride that can be split.
    #[test]
    fn leaves_keep_their_places() {
        let config = UnitConfig::HbmPim(ptoc_pim_stream::unit::HbmPim::default());
        let mut split_up = 0;
        for (coord, most) in [(Coord::Unit, 128), (Coord::Pch, 16), (Coord::Bg, 4), (Coord::Channel, 8)] {
            for stride in 1..most {
                for extent in 2..=(most - 1) / stride + 1 {
                    let leaf = PlaceLeaf { extent, coord: Some(coord), stride };
                    let Some(parts) = leaves(&leaf, &G) else { continue };
                    split_up += usize::from(parts.len() > 1);
                    let p =
                        ArrayPlacement { dims: vec![parts], row: 0, replicated: false, ..ArrayPlacement::default() };
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

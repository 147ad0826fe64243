//! Division: a layout into tiles.

use super::Op;
use super::args::Args;
use super::complement::complement_over;
use super::composition::{after, by_mode, extent};
use super::left::{Left, Rule};
use super::make::row;
use super::suggest;
use crate::{Cx, ErrorKind, Int, Layout, LayoutError, Result, Tiler, Value};

const OP: &str = "logical_divide";

/// Each mode that the tiler cuts becomes (tile, rest): an element's place in its tile, and which tile. A tile that does
/// not divide the extent is repeated until it covers it; what lies outside must be predicated.
pub fn logical_divide(cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<Layout> {
    divide_as(OP, cx, a, tiler)
}

/// `((tile, ..), (rest, .., further modes ..))`
pub fn zipped_divide(cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<Layout> {
    let (tile, rest) = zipped("zipped_divide", cx, a, tiler)?;
    Ok(Layout::of_modes(vec![tile, rest]))
}

/// `((tile, ..), rest, .., further modes ..)`
pub fn tiled_divide(cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<Layout> {
    let (tile, rest) = zipped("tiled_divide", cx, a, tiler)?;
    Ok(Layout::of_modes([vec![tile], lifted(rest)].concat()))
}

/// `(tile, .., rest, .., further modes ..)`
pub fn flat_divide(cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<Layout> {
    let (tile, rest) = zipped("flat_divide", cx, a, tiler)?;
    Ok(Layout::of_modes([lifted(tile), lifted(rest)].concat()))
}

fn zipped(op: &'static str, cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<(Layout, Layout)> {
    unzip(op, &divide_as(op, cx, a, tiler)?, tiler)
}

fn divide_as(op: &'static str, cx: &Cx, a: &Layout, tiler: &Tiler) -> Result<Layout> {
    let by_layout = |tile: &Layout| divide_by(cx, a, tile).map_err(|e| explain(op, cx, a, tiler, e));
    match tiler {
        Tiler::Keep => Ok(a.clone()),
        Tiler::Extent(n) => {
            extent(op, n)?;
            if n.is(0) {
                let e = LayoutError::new(ErrorKind::Domain, op, "a tile of 0 elements").in_arg(1);
                return Err(e.with_help("give an extent of at least 1"));
            }
            by_layout(&row(n))
        }
        Tiler::Layout(tile) => by_layout(tile),
        Tiler::ByMode(tiles) => {
            let mut modes = by_mode(op, a, tiles)?;
            for (k, (mode, tile)) in modes.iter_mut().zip(tiles).enumerate() {
                *mode = divide_as(op, cx, mode, tile).map_err(|e| e.within(k))?;
            }
            Ok(Layout::of_modes(modes))
        }
    }
}

/// `A o (tile, complement of the tile)`. The rest rounds up in each mode of the coalesced `A`, and must with the tile
/// reach each index of each mode once.
fn divide_by(cx: &Cx, a: &Layout, tile: &Layout) -> std::result::Result<Layout, DivisionStep> {
    let mut left = Left::new(cx, a).map_err(DivisionStep::Whole)?;
    let inside = match tile.has_basis() {
        true => Err(LayoutError::new(ErrorKind::Kind, OP, format!("strides of {tile} are coordinates")).in_arg(1)),
        false => after(Rule::Exact, cx, &mut left, tile),
    };
    let inside = inside.map_err(DivisionStep::Tile)?;
    let rest = complement_over(cx, tile, &left.extents()).map_err(DivisionStep::Complement)?;
    let outside = after(Rule::RoundUp, cx, &mut left, &rest).map_err(DivisionStep::Rest)?;
    left.covered(cx).map_err(DivisionStep::Rest)?;
    Ok(Layout::of_modes(vec![inside, outside]))
}

/// Which step of a division refused.
enum DivisionStep {
    Whole(LayoutError),
    Tile(LayoutError),
    Complement(LayoutError),
    Rest(LayoutError),
}

/// The steps' errors in terms of the division: which tile of which layout, and what would do instead.
fn explain(op: &'static str, cx: &Cx, a: &Layout, tiler: &Tiler, step: DivisionStep) -> LayoutError {
    let (e, repeated) = match step {
        DivisionStep::Whole(e) => return e.of(op).in_arg(0),
        // The tile is the complement's first argument and our second.
        DivisionStep::Complement(e) => return e.of(op).in_arg(1),
        DivisionStep::Tile(e) => (e, false),
        DivisionStep::Rest(e) => (e, true),
    };
    let mut e = e.of(op).in_arg(1);
    if repeated {
        // The path is one of the complement, which the author did not write.
        e.path.0.clear();
    }
    if matches!(e.kind, ErrorKind::Undecided | ErrorKind::Overflow) {
        return e;
    }
    let what = if repeated { "tile {} does not repeat over {}: " } else { "tile {} does not divide {}: " };
    let what = what.replacen("{}", &tiler.to_string(), 1).replacen("{}", &a.to_string(), 1);
    e.message.insert_str(0, &what);
    e.help = suggest::tiles(a, tiler, |tile| divide_by(cx, a, tile).is_ok());
    e
}

/// The pairs that the tiler made, gathered: all tiles, then all rests and the modes beyond the tiler.
pub(crate) fn unzip(op: &'static str, divided: &Layout, tiler: &Tiler) -> Result<(Layout, Layout)> {
    let mut modes = divided.modes();
    let Tiler::ByMode(tiles) = tiler else {
        return match <[Layout; 2]>::try_from(modes) {
            Ok([tile, rest]) => Ok((tile, rest)),
            Err(_) => {
                let message = format!("the tiler keeps {divided}, which is no pair of a tile and its repetitions");
                let n = divided.size().unwrap_or(Int::ONE);
                Err(LayoutError::new(ErrorKind::Profile, op, message).in_arg(1).with_help(format!(
                    "give the whole extent, {n}, to keep all of it in the tile, or 1 to keep it out of the tile"
                )))
            }
        };
    };
    let further = modes.split_off(tiles.len().min(modes.len()));
    let (mut inside, mut outside) = (Vec::new(), Vec::new());
    for (k, (mode, tile)) in modes.iter().zip(tiles).enumerate() {
        let (x, y) = unzip(op, mode, tile).map_err(|e| e.within(k))?;
        inside.push(x);
        outside.push(y);
    }
    outside.extend(further);
    Ok((Layout::of_modes(inside), Layout::of_modes(outside)))
}

/// The modes of a layout of several; one mode stays as it is.
pub(crate) fn lifted(a: Layout) -> Vec<Layout> {
    match a.rank() {
        1 => vec![a],
        _ => a.modes(),
    }
}

fn table(op: &'static str, cx: &Cx, v: &[Value], f: fn(&Cx, &Layout, &Tiler) -> Result<Layout>) -> Result<Value> {
    let args = Args::new(op, v);
    let tiler = args.tiler(1)?;
    args.view(0)?.map(|a| f(cx, a, &tiler))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: OP,
        usage: "logical_divide(A, tiler)",
        doc: "Each mode becomes (tile, rest): ((TM,RM),(TN,RN),..).",
        arity: (2, 2),
        eval: |cx, v| table(OP, cx, v, logical_divide),
    },
    Op {
        name: "zipped_divide",
        usage: "zipped_divide(A, tiler)",
        doc: "Mode 0 is a tile, mode 1 numbers the tiles: ((TM,TN),(RM,RN,..)).",
        arity: (2, 2),
        eval: |cx, v| table("zipped_divide", cx, v, zipped_divide),
    },
    Op {
        name: "tiled_divide",
        usage: "tiled_divide(A, tiler)",
        doc: "A tile, then the numbers of the tiles mode by mode: ((TM,TN),RM,RN,..).",
        arity: (2, 2),
        eval: |cx, v| table("tiled_divide", cx, v, tiled_divide),
    },
    Op {
        name: "flat_divide",
        usage: "flat_divide(A, tiler)",
        doc: "All modes at one level: (TM,TN,RM,RN,..).",
        arity: (2, 2),
        eval: |cx, v| table("flat_divide", cx, v, flat_divide),
    },
];

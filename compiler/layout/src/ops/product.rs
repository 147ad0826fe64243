//! Products: copies of a layout, laid out by another.

use super::Op;
use super::args::Args;
use super::complement::complement;
use super::composition::{by_mode, compose_as, extent};
use super::divide::{lifted, unzip};
use super::left::Rule;
use super::make::{make_ordered_layout, row};
use crate::error::plural;
use crate::{Condition, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Tiler, Truth, Tuple, Value};

/// `(block, copies)`: mode 0 is the block, mode 1 numbers its copies, which `tiler` orders. By mode as in division.
pub fn logical_product(cx: &Cx, block: &Layout, tiler: &Tiler) -> Result<Layout> {
    product_as("logical_product", cx, block, tiler)
}

/// `((block, ..), (copies, .., further modes ..))`
pub fn zipped_product(cx: &Cx, block: &Layout, tiler: &Tiler) -> Result<Layout> {
    let (tile, rest) = zipped("zipped_product", cx, block, tiler)?;
    Ok(Layout::of_modes(vec![tile, rest]))
}

/// `((block, ..), copies, .., further modes ..)`
pub fn tiled_product(cx: &Cx, block: &Layout, tiler: &Tiler) -> Result<Layout> {
    let (tile, rest) = zipped("tiled_product", cx, block, tiler)?;
    Ok(Layout::of_modes([vec![tile], lifted(rest)].concat()))
}

/// `(block, .., copies, .., further modes ..)`
pub fn flat_product(cx: &Cx, block: &Layout, tiler: &Tiler) -> Result<Layout> {
    let (tile, rest) = zipped("flat_product", cx, block, tiler)?;
    Ok(Layout::of_modes([lifted(tile), lifted(rest)].concat()))
}

/// Mode i is (block's i, tiler's i): blocks stay together.
pub fn blocked_product(cx: &Cx, block: &Layout, tiler: &Layout) -> Result<Layout> {
    let (b, t) = padded_product("blocked_product", cx, block, tiler)?;
    Ok(zip(&b, &t))
}

/// Mode i is (tiler's i, block's i): blocks are interleaved.
pub fn raked_product(cx: &Cx, block: &Layout, tiler: &Layout) -> Result<Layout> {
    let (b, t) = padded_product("raked_product", cx, block, tiler)?;
    Ok(zip(&t, &b))
}

/// The block repeated to fill `shape`, its copies ordered by `order` (without it: leftmost first).
pub fn tile_to_shape(cx: &Cx, block: &Layout, shape: &IntTuple, order: Option<&IntTuple>) -> Result<Layout> {
    const OP: &str = "tile_to_shape";
    if block.rank() > shape.rank() {
        let message = format!(
            "block {block} has {}, the shape {shape} has {}",
            plural(block.rank(), "mode", "modes"),
            shape.rank()
        );
        return Err(LayoutError::new(ErrorKind::Profile, OP, message)
            .in_arg(1)
            .with_help("give the shape an extent for each mode of the block"));
    }
    let block = padded(block, shape.rank());
    let mut copies = Vec::with_capacity(shape.rank());
    for (k, (b, target)) in block.modes().iter().zip(shape.modes()).enumerate() {
        let (b, n) = (b.size()?, super::profile::product(target)?);
        if !cx.require(OP, Condition::Divides(b.clone(), n.clone())).map_err(|e| e.in_arg(1).within(k))? {
            let message = format!("the block's extent {b} does not divide the shape's extent {n} in mode {k}");
            let e = LayoutError::new(ErrorKind::Divisibility, OP, message).in_arg(1).within(k);
            return Err(match (b.as_const(), n.as_const()) {
                (Some(b), Some(n)) if b > 0 && n > 0 => {
                    let above = (n / b + 1).checked_mul(b);
                    let found: Vec<String> =
                        [Some(n / b * b).filter(|n| *n > 0), above].iter().flatten().map(i64::to_string).collect();
                    e.with_help(format!("an extent of {} would do", found.join(" or ")))
                }
                _ => e,
            });
        }
        let count = match b.is(0) {
            true => Int::ONE,
            false => n.div_exact(&b).map_or_else(|| cx.floor_div(&n, &b), Ok)?,
        };
        copies.push(Tuple::Leaf(count));
    }
    let copies = match (copies.as_slice(), block.is_leaf()) {
        ([one], true) => one.clone(),
        _ => Tuple::Node(copies),
    };
    let tiler = make_ordered_layout(cx, &copies, order).map_err(|e| e.of(OP).in_arg(2))?;
    blocked_product(cx, &block, &tiler).map_err(|e| e.of(OP))
}

fn zipped(op: &'static str, cx: &Cx, block: &Layout, tiler: &Tiler) -> Result<(Layout, Layout)> {
    unzip(op, &product_as(op, cx, block, tiler)?, tiler)
}

fn product_as(op: &'static str, cx: &Cx, block: &Layout, tiler: &Tiler) -> Result<Layout> {
    match tiler {
        Tiler::Keep => Ok(block.clone()),
        Tiler::Extent(n) => {
            extent(op, n)?;
            product_by(op, cx, block, &row(n))
        }
        Tiler::Layout(tiler) => product_by(op, cx, block, tiler),
        Tiler::ByMode(tiles) => {
            let mut modes = by_mode(op, block, tiles)?;
            for (k, (mode, tile)) in modes.iter_mut().zip(tiles).enumerate() {
                *mode = product_as(op, cx, mode, tile).map_err(|e| e.within(k))?;
            }
            Ok(Layout::of_modes(modes))
        }
    }
}

fn product_by(op: &'static str, cx: &Cx, block: &Layout, tiler: &Layout) -> Result<Layout> {
    let copies = copies(Rule::Exact, cx, block, tiler).map_err(|e| e.of(op))?;
    Ok(Layout::of_modes(vec![block.clone(), copies]))
}

/// Where the copies go.
fn copies(rule: Rule, cx: &Cx, block: &Layout, tiler: &Layout) -> Result<Layout> {
    let count = tiler.cosize(cx).map_err(|e| e.in_arg(1))?;
    let room = block.size()?.mul(&count)?;
    let mut free = complement(cx, block, &room).map_err(|e| e.in_arg(0))?;
    // So much room is too little for a block that spans more than its size: then the places beyond the last gap count.
    if rule == Rule::Exact && cx.le(&count, &free.size()?) == Truth::No {
        let span = block.cosize(cx).map_err(|e| e.in_arg(0))?;
        free = complement(cx, block, &span.mul(&count)?).map_err(|e| e.in_arg(0))?;
    }
    compose_as(rule, cx, &free, tiler).map_err(|mut e| {
        if !matches!(e.kind, ErrorKind::Undecided | ErrorKind::Overflow) {
            e.message.insert_str(0, &format!("copies of {block} have the places {free}, which {tiler} does not fit: "));
        }
        e.in_arg(1)
    })
}

fn padded_product(op: &'static str, cx: &Cx, block: &Layout, tiler: &Layout) -> Result<(Layout, Layout)> {
    let rank = block.rank().max(tiler.rank());
    let (block, tiler) = (padded(block, rank), padded(tiler, rank));
    let copies = copies(Rule::RoundUp, cx, &block, &tiler).map_err(|e| e.of(op))?;
    Ok((block, copies))
}

/// With modes `1:0` at the end, to this rank.
fn padded(a: &Layout, rank: usize) -> Layout {
    if a.rank() >= rank {
        return a.clone();
    }
    let mut modes = a.modes();
    modes.resize(rank, Layout::unit());
    Layout::of_modes(modes)
}

/// Mode i is (a's i, b's i). Ranks are equal; a leaf pairs with the whole other.
pub(crate) fn zip(a: &Layout, b: &Layout) -> Layout {
    if a.is_leaf() || b.is_leaf() {
        return Layout::of_modes(vec![Layout::of_modes(vec![a.clone(), b.clone()])]);
    }
    let pairs = a.modes().into_iter().zip(b.modes()).map(|(x, y)| Layout::of_modes(vec![x, y]));
    Layout::of_modes(pairs.collect())
}

fn by_tiler(op: &'static str, cx: &Cx, v: &[Value], f: fn(&Cx, &Layout, &Tiler) -> Result<Layout>) -> Result<Value> {
    let args = Args::new(op, v);
    let tiler = args.tiler(1)?;
    args.view(0)?.map(|a| f(cx, a, &tiler))
}

fn by_layout(op: &'static str, cx: &Cx, v: &[Value], f: fn(&Cx, &Layout, &Layout) -> Result<Layout>) -> Result<Value> {
    let args = Args::new(op, v);
    let tiler = args.layout(1)?;
    args.view(0)?.map(|a| f(cx, a, tiler))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "logical_product",
        usage: "logical_product(A, tiler)",
        doc: "(A, copies): the copies of A go where A leaves room, in the order of the tiler.",
        arity: (2, 2),
        eval: |cx, v| by_tiler("logical_product", cx, v, logical_product),
    },
    Op {
        name: "zipped_product",
        usage: "zipped_product(A, tiler)",
        doc: "Mode 0 is the block, mode 1 numbers the copies: ((M,N),(TM,TN,..)).",
        arity: (2, 2),
        eval: |cx, v| by_tiler("zipped_product", cx, v, zipped_product),
    },
    Op {
        name: "tiled_product",
        usage: "tiled_product(A, tiler)",
        doc: "The block, then the numbers of the copies mode by mode: ((M,N),TM,TN,..).",
        arity: (2, 2),
        eval: |cx, v| by_tiler("tiled_product", cx, v, tiled_product),
    },
    Op {
        name: "flat_product",
        usage: "flat_product(A, tiler)",
        doc: "All modes at one level: (M,N,TM,TN,..).",
        arity: (2, 2),
        eval: |cx, v| by_tiler("flat_product", cx, v, flat_product),
    },
    Op {
        name: "blocked_product",
        usage: "blocked_product(A, B)",
        doc: "A tiled by B, mode by mode, each block in one piece.",
        arity: (2, 2),
        eval: |cx, v| by_layout("blocked_product", cx, v, blocked_product),
    },
    Op {
        name: "raked_product",
        usage: "raked_product(A, B)",
        doc: "A tiled by B, mode by mode, blocks interleaved.",
        arity: (2, 2),
        eval: |cx, v| by_layout("raked_product", cx, v, raked_product),
    },
    Op {
        name: "tile_to_shape",
        usage: "tile_to_shape(A, shape)",
        doc: "A repeated to fill a shape; a third argument orders the copies.",
        arity: (2, 3),
        eval: |cx, v| {
            let args = Args::new("tile_to_shape", v);
            let shape = args.shape(1)?;
            let order = if args.len() > 2 { Some(args.ints(2)?) } else { None };
            args.view(0)?.map(|a| tile_to_shape(cx, a, &shape, order.as_ref()))
        },
    },
];

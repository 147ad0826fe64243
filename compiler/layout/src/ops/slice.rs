//! Slices: some modes fixed, the others kept.

use super::Op;
use super::args::{Args, View};
use super::eval::Offset;
use crate::error::plural;
use crate::{Composed, Coord, CoordLeaf, Cx, ErrorKind, Int, Layout, LayoutError, Result, Tuple, Value};

/// The modes where `coord` has `_`, and the offset of the rest. An index removes a mode; a nested coordinate lifts the
/// modes that it keeps into the enclosing level, so `((_,_),5)` keeps two where `(_,5)` keeps one.
pub fn slice(cx: &Cx, a: &Layout, coord: &Coord) -> Result<(Layout, Offset)> {
    let kept = slice_layout("slice", a, coord)?;
    Ok((kept, a.eval_coord(cx, "slice", coord).map_err(|e| e.in_arg(1))?))
}

/// A slice of a swizzled layout: the offset stays within the swizzle.
pub fn slice_composed(cx: &Cx, a: &Composed, coord: &Coord) -> Result<Composed> {
    let (layout, offset) = slice(cx, &a.layout, coord)?;
    let Offset::Int(offset) = offset else {
        let message = format!("{} gives coordinates, which a swizzle cannot take", a.layout);
        return Err(LayoutError::new(ErrorKind::Kind, "slice", message).in_arg(0));
    };
    Ok(Composed { swizzle: a.swizzle, offset: a.offset.add(&offset)?, layout })
}

fn slice_layout(op: &'static str, a: &Layout, coord: &Coord) -> Result<Layout> {
    if let Tuple::Leaf(CoordLeaf::Keep) = coord {
        return Ok(a.clone());
    }
    let mut kept = Vec::new();
    walk(op, a, coord, true, &mut kept)?;
    Ok(Layout::of_modes(kept))
}

/// The modes where `coord` has an index: what a slice leaves out.
pub fn dice(a: &Layout, coord: &Coord) -> Result<Layout> {
    let mut kept = Vec::new();
    walk("dice", a, coord, false, &mut kept)?;
    Ok(match coord {
        Tuple::Leaf(CoordLeaf::At(_)) => a.clone(),
        _ => Layout::of_modes(kept),
    })
}

/// Collects the modes at `_` (or at indices, if not `keep`), and checks indices against extents that are known.
fn walk(op: &'static str, a: &Layout, coord: &Coord, keep: bool, out: &mut Vec<Layout>) -> Result<()> {
    match coord {
        Tuple::Leaf(CoordLeaf::Keep) => {
            if keep {
                out.push(a.clone());
            }
            Ok(())
        }
        Tuple::Leaf(CoordLeaf::At(i)) => {
            in_range(op, a, i)?;
            if !keep {
                out.push(a.clone());
            }
            Ok(())
        }
        Tuple::Node(parts) if !a.is_leaf() && parts.len() == a.rank() => {
            for (k, (part, mode)) in parts.iter().zip(a.modes()).enumerate() {
                walk(op, &mode, part, keep, out).map_err(|e| e.within(k))?;
            }
            Ok(())
        }
        Tuple::Node(parts) => {
            let modes = if a.is_leaf() { "a single extent".into() } else { plural(a.rank(), "mode", "modes") };
            let message =
                format!("coordinate {coord} has {}, {a} has {modes}", plural(parts.len(), "entry", "entries"));
            let help = if a.is_leaf() {
                "give one index, or `_`".to_string()
            } else {
                format!("give {}; `_` keeps a mode", plural(a.rank(), "entry", "entries"))
            };
            Err(LayoutError::new(ErrorKind::Profile, op, message).in_arg(1).with_help(help))
        }
    }
}

/// Numbers that are known must be indices of the mode. (A layout is a function of any index; a slice is of what is
/// there.)
fn in_range(op: &'static str, a: &Layout, i: &Int) -> Result<()> {
    let size = a.size()?;
    match (i.bounds(), size.bounds()) {
        ((_, Some(hi)), _) if hi < 0 => {
            let message = format!("index {i} is below 0");
            Err(LayoutError::new(ErrorKind::OutOfRange, op, message).in_arg(1))
        }
        ((Some(lo), _), (_, Some(n))) if lo >= n => {
            let message = format!("index {i} is outside of extent {size}");
            let e = LayoutError::new(ErrorKind::OutOfRange, op, message).in_arg(1);
            Err(if n > 0 { e.with_help(format!("indices are 0 to {}", n - 1)) } else { e })
        }
        _ => Ok(()),
    }
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "slice",
        usage: "slice(A, (_, 3))",
        doc: "The modes where the coordinate has `_`; its offset is slice_offset.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("slice", v);
            let coord = args.coord(1)?;
            Ok(match args.view(0)? {
                View::Plain(a) => Value::Layout(slice_layout("slice", a, &coord)?),
                View::Swizzled(c) => Value::Composed(slice_composed(cx, c, &coord)?),
            })
        },
    },
    Op {
        name: "slice_offset",
        usage: "slice_offset(A, (_, 3))",
        doc: "The offset at which the slice begins.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("slice_offset", v);
            let coord = args.coord(1)?;
            match args.view(0)? {
                View::Plain(a) => Ok(slice(cx, a, &coord).map_err(|e| e.of("slice_offset"))?.1.value()),
                View::Swizzled(_) => {
                    let message = "the offset of a slice of a swizzled layout stays within the swizzle";
                    Err(LayoutError::new(ErrorKind::Kind, "slice_offset", message)
                        .in_arg(0)
                        .with_help("`slice` gives it with the rest: Sw<..> o offset o layout"))
                }
            }
        },
    },
    Op {
        name: "dice",
        usage: "dice(A, (_, 3))",
        doc: "The modes where the coordinate has an index.",
        arity: (2, 2),
        eval: |_, v| {
            let args = Args::new("dice", v);
            let coord = args.coord(1)?;
            args.view(0)?.map(|a| dice(a, &coord))
        },
    },
];

//! Relations of shapes and coordinates.

use super::Op;
use super::args::Args;
use super::complement::{ceil_div as ceil, complement};
use super::make::row;
use crate::error::plural;
use crate::{Condition, Cx, ErrorKind, Int, IntTuple, LayoutError, Result, Tiler, Truth, Tuple, Value};

/// Product of the leaves.
pub(crate) fn product(shape: &IntTuple) -> Result<Int> {
    match shape {
        Tuple::Leaf(n) => Ok(n.clone()),
        Tuple::Node(modes) => modes.iter().try_fold(Int::ONE, |p, m| p.mul(&product(m)?)),
    }
}

/// Whether `a`'s nesting is a prefix of `b`'s. A leaf of `a` stands for anything.
pub fn weakly_congruent(a: &IntTuple, b: &IntTuple) -> bool {
    match (a, b) {
        (Tuple::Leaf(_), _) => true,
        (Tuple::Node(_), Tuple::Leaf(_)) => false,
        (Tuple::Node(x), Tuple::Node(y)) => x.len() == y.len() && x.iter().zip(y).all(|(x, y)| weakly_congruent(x, y)),
    }
}

/// Whether each coordinate of `a` is a coordinate of `b`. `a`'s nesting is a prefix of `b`'s, with equal sizes: 24,
/// (4,6), ((2,2),6).
pub fn compatible(cx: &Cx, a: &IntTuple, b: &IntTuple) -> Result<bool> {
    if !weakly_congruent(a, b) {
        return Ok(false);
    }
    let mut all = All::default();
    pairs(a, b, &mut |n, part| {
        all.add(cx, Condition::Eq(n.clone(), product(part)?));
        Ok(())
    })?;
    all.result("compatible")
}

/// Whether the tiler `b` cuts `a` into whole tiles. Modes of `a` beyond the tiler's are not cut.
pub fn evenly_divides(cx: &Cx, a: &IntTuple, b: &IntTuple) -> Result<bool> {
    let mut all = All::default();
    if !divides_into(cx, a, b, &mut all)? {
        return Ok(false);
    }
    all.result("evenly_divides")
}

fn divides_into(cx: &Cx, a: &IntTuple, b: &IntTuple, all: &mut All) -> Result<bool> {
    match (a, b) {
        (_, Tuple::Leaf(n)) => {
            all.add(cx, Condition::Divides(n.clone(), product(a)?));
            Ok(true)
        }
        (Tuple::Leaf(_), Tuple::Node(_)) => Ok(false),
        (Tuple::Node(x), Tuple::Node(y)) => {
            for (x, y) in x.iter().zip(y) {
                if !divides_into(cx, x, y, all)? {
                    return Ok(false);
                }
            }
            Ok(x.len() >= y.len())
        }
    }
}

/// Whether each entry of `coord` is below the extent in its place. The predicate of a tail.
pub fn elem_less(cx: &Cx, coord: &IntTuple, shape: &IntTuple) -> Result<bool> {
    if !coord.congruent(shape) {
        let message = format!("coordinate {coord} and shape {shape} are nested differently");
        return Err(LayoutError::new(ErrorKind::Profile, "elem_less", message).in_arg(0));
    }
    let mut all = All::default();
    pairs(coord, shape, &mut |i, n| {
        all.add(cx, Condition::Le(i.add(&Int::ONE)?, product(n)?));
        Ok(())
    })?;
    all.result("elem_less")
}

/// How many tiles it takes to cover `shape`, mode by mode: the shape of the complement of the tiler. Exists also where
/// the division itself is refused.
pub fn ceil_div(cx: &Cx, shape: &IntTuple, tiler: &Tiler) -> Result<IntTuple> {
    const OP: &str = "ceil_div";
    let positive = |n: &Int| match cx.le(n, &Int::ZERO) {
        Truth::Yes => {
            let message = format!("division of {shape} by {n}");
            Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(1).with_help("give an extent of at least 1"))
        }
        _ => Ok(()),
    };
    match (shape, tiler) {
        (_, Tiler::Keep) => Ok(shape.clone()),
        (Tuple::Leaf(n), Tiler::Extent(t)) => {
            positive(t)?;
            ceil(cx, OP, n, t).map(Tuple::Leaf).map_err(|e| e.in_arg(1))
        }
        (_, Tiler::Extent(t)) => {
            positive(t)?;
            let rest = complement(cx, &row(t), &product(shape)?);
            rest.map(|r| r.shape().clone()).map_err(|e| e.of(OP).in_arg(1))
        }
        (_, Tiler::Layout(t)) => {
            let rest = complement(cx, t, &product(shape)?);
            rest.map(|r| r.shape().clone()).map_err(|e| e.of(OP).in_arg(1))
        }
        (_, Tiler::ByMode(tiles)) => {
            let mut modes = shape.modes().to_vec();
            if tiles.len() > modes.len() {
                let message = format!(
                    "the tiler has {}, the shape {shape} has {}",
                    plural(tiles.len(), "mode", "modes"),
                    modes.len()
                );
                return Err(LayoutError::new(ErrorKind::Profile, OP, message).in_arg(1));
            }
            for (k, (m, t)) in modes.iter_mut().zip(tiles).enumerate() {
                *m = ceil_div(cx, m, t).map_err(|e| e.within(k))?;
            }
            Ok(Tuple::Node(modes))
        }
    }
}

/// Each leaf of `a` with what is in its place in `b`; `a` is weakly congruent to `b`.
fn pairs(a: &IntTuple, b: &IntTuple, f: &mut impl FnMut(&Int, &IntTuple) -> Result<()>) -> Result<()> {
    match (a, b) {
        (Tuple::Leaf(n), _) => f(n, b),
        (Tuple::Node(x), _) => x.iter().zip(b.modes()).try_for_each(|(x, y)| pairs(x, y, f)),
    }
}

/// Conditions that must all hold: one that never does decides, whatever the others are.
#[derive(Default)]
pub(crate) struct All {
    never: bool,
    unknown: Option<Condition>,
}

impl All {
    pub fn add(&mut self, cx: &Cx, condition: Condition) {
        match cx.decide(&condition) {
            Truth::Yes => {}
            Truth::No => self.never = true,
            Truth::Unknown => self.unknown = self.unknown.take().or(Some(condition)),
        }
    }

    pub fn result(self, op: &'static str) -> Result<bool> {
        match self.unknown {
            _ if self.never => Ok(false),
            Some(condition) => Err(LayoutError::undecided(op, condition)),
            None => Ok(true),
        }
    }
}

fn two(op: &'static str, v: &[Value]) -> Result<(IntTuple, IntTuple)> {
    let args = Args::new(op, v);
    Ok((args.shape(0)?, args.shape(1)?))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "congruent",
        usage: "congruent(S, T)",
        doc: "Are the two nested alike?",
        arity: (2, 2),
        eval: |_, v| two("congruent", v).map(|(a, b)| Value::Bool(a.congruent(&b))),
    },
    Op {
        name: "weakly_congruent",
        usage: "weakly_congruent(S, T)",
        doc: "Is S's nesting a prefix of T's?",
        arity: (2, 2),
        eval: |_, v| two("weakly_congruent", v).map(|(a, b)| Value::Bool(weakly_congruent(&a, &b))),
    },
    Op {
        name: "compatible",
        usage: "compatible(S, T)",
        doc: "Is each coordinate of S one of T too, with the same sizes?",
        arity: (2, 2),
        eval: |cx, v| two("compatible", v).and_then(|(a, b)| Ok(Value::Bool(compatible(cx, &a, &b)?))),
    },
    Op {
        name: "evenly_divides",
        usage: "evenly_divides(S, T)",
        doc: "Does T cut S into whole tiles?",
        arity: (2, 2),
        eval: |cx, v| two("evenly_divides", v).and_then(|(a, b)| Ok(Value::Bool(evenly_divides(cx, &a, &b)?))),
    },
    Op {
        name: "elem_less",
        usage: "elem_less(coordinate, shape)",
        doc: "Is each entry of the coordinate below the shape's?",
        arity: (2, 2),
        eval: |cx, v| two("elem_less", v).and_then(|(a, b)| Ok(Value::Bool(elem_less(cx, &a, &b)?))),
    },
    Op {
        name: "ceil_div",
        usage: "ceil_div(S, tiler)",
        doc: "How many tiles cover S, mode by mode, tails included.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("ceil_div", v);
            Ok(Value::ints(&ceil_div(cx, &args.shape(0)?, &args.tiler(1)?)?))
        },
    },
];

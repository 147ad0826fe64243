//! The same bytes as wider or narrower elements.

use super::Op;
use super::args::{Args, View};
use crate::{
    Composed, Condition, Cx, ErrorKind, Int, Layout, LayoutError, Result, Stride, Swizzle, Truth, Tuple, Value,
};

/// Of elements that hold `n` of `a`'s each. Leaf `s:d`: a stride of `n` or more must be a multiple of it, a smaller one
/// divide it, and then `n / |d|` steps fall into one element.
pub fn upcast(cx: &Cx, a: &Layout, n: i64) -> Result<Layout> {
    factor("upcast", n)?;
    rebuild(a, &mut |s, d| wider(cx, a, n, s, d))
}

fn wider(cx: &Cx, a: &Layout, n: i64, s: &Int, d: &Stride) -> Result<(Int, Stride)> {
    const OP: &str = "upcast";
    let Some(stride) = d.as_int() else {
        let message = format!("stride {d} of {a} is a coordinate");
        return Err(LayoutError::new(ErrorKind::Kind, OP, message).in_arg(0));
    };
    let wide = Int::Const(n);
    if stride.is(0) || n == 1 {
        return Ok((s.clone(), d.clone()));
    }
    let condition = || Condition::Divides(wide.clone(), stride.clone());
    match (cx.divides(&wide, stride), stride) {
        (Truth::Yes, _) => {
            let q = stride.div_exact(&wide).map_or_else(|| cx.floor_div(stride, &wide), Ok)?;
            Ok((s.clone(), Stride::int(q)))
        }
        (_, Int::Const(d)) if d.checked_abs().is_some_and(|d| n % d == 0) => {
            let steps = n / d.abs();
            let extent = cx.ceil_div(s, &Int::Const(steps)).map_err(|e| e.of(OP))?;
            Ok((extent, Stride::from(d.signum())))
        }
        (Truth::Unknown, _) => Err(LayoutError::undecided(OP, condition()).in_arg(0)),
        _ => {
            let message = format!("stride {stride} of {a} is neither a multiple nor a divisor of {n}");
            let e = LayoutError::new(ErrorKind::Width, OP, message).in_arg(0);
            Err(match stride.as_const().and_then(|d| Some((d, (d.checked_abs()? / n + 1).checked_mul(n)?))) {
                Some((d, above)) => {
                    let d = d.abs();
                    let below = if d > n { d / n * n } else { (1..=d).rev().find(|k| n % k == 0).unwrap_or(1) };
                    e.with_help(format!("a stride of {below} or {above} would do"))
                }
                None => e,
            })
        }
    }
}

/// Of elements of which `n` make one of `a`'s: the mode of stride 1 gets `n` times its extent, other strides grow.
///
/// Refuses, unlike CuTe, more than one mode of stride 1 (1-sized ones included), each of which would grow.
pub fn downcast(a: &Layout, n: i64) -> Result<Layout> {
    const OP: &str = "downcast";
    factor(OP, n)?;
    if n == 1 {
        return Ok(a.clone());
    }
    let unit = |d: &Stride| d.basis.is_empty() && (d.scale.is(1) || d.scale.is(-1));
    let units = a.leaves().iter().filter(|(_, d)| unit(d)).count();
    if units != 1 {
        let message = match units {
            0 => format!("no mode of {a} has the stride 1, so no mode can take the {n} parts of each element"),
            _ => format!("{units} modes of {a} have the stride 1; only one can take the {n} parts of each element"),
        };
        return Err(LayoutError::new(ErrorKind::Width, OP, message)
            .in_arg(0)
            .with_help("give exactly one mode the stride 1; a mode of one element may have any other stride"));
    }
    rebuild(a, &mut |s, d| {
        if unit(d) { Ok((s.mul(&Int::Const(n))?, d.clone())) } else { Ok((s.clone(), d.times(&Int::Const(n))?)) }
    })
}

/// A swizzle and its layout for wider elements: the swizzle must move none of the bits that fall within one.
pub fn upcast_composed(cx: &Cx, c: &Composed, n: i64) -> Result<Composed> {
    const OP: &str = "upcast";
    let bits = width(OP, n)?;
    let s = c.swizzle;
    let layout = upcast(cx, &c.layout, n)?;
    if !s.is_identity() && s.base() < bits {
        let message = format!("{s} moves elements within a group of {n}: it keeps {} in a row", 1i64 << s.base());
        return Err(LayoutError::new(ErrorKind::Width, OP, message)
            .in_arg(0)
            .with_help(format!("use a swizzle with a base of at least {bits}")));
    }
    let wide = Int::Const(n);
    if !cx.require(OP, Condition::Divides(wide.clone(), c.offset.clone())).map_err(|e| e.in_arg(0))? {
        let message = format!("offset {} is no multiple of {n}", c.offset);
        return Err(LayoutError::new(ErrorKind::Width, OP, message).in_arg(0));
    }
    let offset = c.offset.div_exact(&wide).map_or_else(|| cx.floor_div(&c.offset, &wide), Ok)?;
    let base = i64::from(s.base().saturating_sub(bits));
    let swizzle = Swizzle::new(i64::from(s.bits()), base, i64::from(s.shift())).map_err(|e| e.of(OP))?;
    Ok(Composed { swizzle, offset, layout })
}

/// A swizzle and its layout for narrower elements.
pub fn downcast_composed(c: &Composed, n: i64) -> Result<Composed> {
    const OP: &str = "downcast";
    let bits = width(OP, n)?;
    let s = c.swizzle;
    let base = i64::from(s.base()) + i64::from(bits);
    let swizzle = Swizzle::new(i64::from(s.bits()), base, i64::from(s.shift())).map_err(|e| e.of(OP))?;
    Ok(Composed { swizzle, offset: c.offset.mul(&Int::Const(n))?, layout: downcast(&c.layout, n)? })
}

fn factor(op: &'static str, n: i64) -> Result<()> {
    match n >= 1 {
        true => Ok(()),
        false => Err(LayoutError::new(ErrorKind::Domain, op, format!("a ratio of widths of {n}"))
            .in_arg(1)
            .with_help("give at least 1")),
    }
}

/// A ratio of widths that a swizzle can follow.
fn width(op: &'static str, n: i64) -> Result<u32> {
    factor(op, n)?;
    match n.count_ones() {
        1 => Ok(n.trailing_zeros()),
        _ => {
            let message = format!("{n} is no power of 2, so a swizzle of bits cannot follow");
            Err(LayoutError::new(ErrorKind::Width, op, message).in_arg(1))
        }
    }
}

/// The same nesting with other leaves; errors get the leaf's path.
fn rebuild(a: &Layout, f: &mut impl FnMut(&Int, &Stride) -> Result<(Int, Stride)>) -> Result<Layout> {
    if let (Tuple::Leaf(s), Tuple::Leaf(d)) = (a.shape(), a.stride()) {
        return f(s, d).map(|(s, d)| Layout::leaf(s, d));
    }
    let modes = a.modes();
    let modes = modes.iter().enumerate().map(|(k, m)| rebuild(m, f).map_err(|e| e.within(k)));
    Ok(Layout::of_modes(modes.collect::<Result<_>>()?))
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "upcast",
        usage: "upcast(A, n)",
        doc: "The same bytes as elements n times as wide.",
        arity: (2, 2),
        eval: |cx, v| {
            let args = Args::new("upcast", v);
            let n = args.constant(1)?;
            Ok(match args.view(0)? {
                View::Plain(a) => Value::Layout(upcast(cx, a, n)?),
                View::Swizzled(c) => Value::Composed(upcast_composed(cx, c, n)?),
            })
        },
    },
    Op {
        name: "downcast",
        usage: "downcast(A, n)",
        doc: "The same bytes as elements of which n make one of A's.",
        arity: (2, 2),
        eval: |_, v| {
            let args = Args::new("downcast", v);
            let n = args.constant(1)?;
            Ok(match args.view(0)? {
                View::Plain(a) => Value::Layout(downcast(a, n)?),
                View::Swizzled(c) => Value::Composed(downcast_composed(c, n)?),
            })
        },
    },
];

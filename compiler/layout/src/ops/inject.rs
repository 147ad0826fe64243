//! Injective and bijective layouts: whether a layout gives each offset once.

use super::Op;
use super::args::{Args, View};
use crate::{Composed, Cx, ErrorKind, Int, Layout, LayoutError, Result, Truth, Value, gcd};

/// Whether it is a bijection from its coordinates onto `0..size`: exactly when its strides, 1-sized modes left out, are
/// in some order 1 and then each the product of the extents before it.
pub fn is_bijection(cx: &Cx, a: &Layout) -> Result<bool> {
    const OP: &str = "is_bijection";
    let leaves = a.leaves();
    if leaves.iter().any(|(s, _)| s.is(0)) {
        return Ok(true);
    }
    let mut modes = Vec::new();
    for (s, d) in leaves {
        let Some(d) = d.as_int() else {
            let message = format!("stride {d} of {a} is a coordinate");
            return Err(LayoutError::new(ErrorKind::Kind, OP, message)
                .in_arg(0)
                .with_help("is_injective is defined for coordinates too"));
        };
        if cx.eq(s, &Int::ONE) != Truth::Yes {
            modes.push((s, d));
        }
    }
    let mut next = Int::ONE;
    while !modes.is_empty() {
        let found = modes.iter().position(|(_, d)| cx.eq(d, &next) == Truth::Yes);
        let Some(k) = found else {
            // A mode whose extent or stride is not known may fit yet.
            let open = modes.iter().find(|(_, d)| cx.eq(d, &next) == Truth::Unknown);
            let single = modes.iter().find(|(s, _)| cx.eq(s, &Int::ONE) == Truth::Unknown);
            return match (open, single) {
                (Some((_, d)), _) => {
                    Err(LayoutError::undecided(OP, crate::Condition::Eq((*d).clone(), next.clone())).in_arg(0))
                }
                (None, Some((s, _))) => {
                    Err(LayoutError::undecided(OP, crate::Condition::Eq((*s).clone(), Int::ONE)).in_arg(0))
                }
                (None, None) => Ok(false),
            };
        };
        next = next.mul(modes.remove(k).0).map_err(|e| e.of(OP))?;
    }
    Ok(true)
}

/// Whether each coordinate has an offset (or a coordinate) of its own.
pub fn is_injective(cx: &Cx, a: &Layout) -> Result<bool> {
    let leaves = a.leaves();
    if leaves.iter().any(|(s, _)| s.is(0)) {
        return Ok(true);
    }
    // Modes along different units do not meet; along one they are judged by their numbers.
    let mut units: Vec<&[usize]> = leaves.iter().map(|(_, d)| d.basis.as_slice()).collect();
    units.sort_unstable();
    units.dedup();
    for unit in units {
        let modes: Vec<(&Int, &Int)> = leaves
            .iter()
            .filter(|(s, d)| d.basis == unit && cx.eq(s, &Int::ONE) != Truth::Yes)
            .map(|(s, d)| (*s, &d.scale))
            .collect();
        if !distinct(cx, a, &modes)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// No two coordinates of these modes (extents above 1, or not known) have one offset.
fn distinct(cx: &Cx, a: &Layout, modes: &[(&Int, &Int)]) -> Result<bool> {
    const OP: &str = "is_injective";
    let known: Option<Vec<(i128, i128)>> =
        modes.iter().map(|(s, d)| Some((i128::from(s.as_const()?), i128::from(d.as_const()?).abs()))).collect();
    if let Some(mut known) = known {
        known.sort_by_key(|&(_, d)| std::cmp::Reverse(d));
        return distinct_numbers(&known).ok_or_else(|| {
            let message = format!("the modes of {a} interleave in too many ways to tell whether two offsets are equal");
            LayoutError::new(ErrorKind::Kind, OP, message)
                .in_arg(0)
                .with_help("make each stride a multiple of the span of those below it")
        });
    }
    // Symbols: find an order in which each stride is at least the span of the modes before it.
    let mut rest: Vec<(&Int, &Int)> = modes.to_vec();
    let mut reach = Int::ZERO;
    while !rest.is_empty() {
        let mut open = None;
        let found = rest.iter().position(|(_, d)| {
            let above = reach.add(&Int::ONE).map(|n| (cx.le(&n, d), n));
            match above {
                Ok((Truth::Yes, _)) => true,
                Ok((Truth::Unknown, n)) => {
                    open = open.take().or(Some(crate::Condition::Le(n, (*d).clone())));
                    false
                }
                _ => false,
            }
        });
        // Of several that lie above, the one that all others lie above too comes next.
        let least = found.map(|first| {
            (0..rest.len()).fold(first, |best, k| if cx.le(rest[k].1, rest[best].1) == Truth::Yes { k } else { best })
        });
        match (least, open) {
            (Some(k), _) => {
                let (s, d) = rest.remove(k);
                if cx.le(&reach.add(&Int::ONE)?, d) != Truth::Yes {
                    return Err(
                        LayoutError::undecided(OP, crate::Condition::Le(reach.add(&Int::ONE)?, d.clone())).in_arg(0)
                    );
                }
                reach = reach.add(&s.sub(&Int::ONE)?.mul(d)?)?;
            }
            (None, Some(condition)) => return Err(LayoutError::undecided(OP, condition).in_arg(0)),
            (None, None) => {
                // Each remaining stride is provably within the span: they may still interleave, if not at 0.
                if rest.iter().any(|(s, d)| d.is(0) && cx.le(&Int::Const(2), s) == Truth::Yes) {
                    return Ok(false);
                }
                let (s, d) = rest[0];
                let message =
                    format!("mode {s}:{d} of {a} lies within the span of the others, which depends on symbols");
                return Err(LayoutError::new(ErrorKind::Undecided, OP, message).in_arg(0));
            }
        }
    }
    Ok(true)
}

/// Two coordinates have one offset exactly when some differences `x_k`, not all 0 and each below its extent, make
/// `sum x_k * d_k == 0`. Strides descend; the search prunes what the smaller strides cannot make up for. `None` if it
/// grows beyond all measure.
fn distinct_numbers(modes: &[(i128, i128)]) -> Option<bool> {
    // What the modes from k on can add up to, and the number that divides it.
    let mut reach = vec![(0i128, 0i128); modes.len() + 1];
    let number = |n: i128| i64::try_from(n).ok();
    for (k, &(s, d)) in modes.iter().enumerate().rev() {
        let (sum, divisor) = reach[k + 1];
        reach[k] = (sum.checked_add((s - 1).checked_mul(d)?)?, i128::from(gcd(number(divisor)?, number(d)?)));
    }
    let mut fuel = 1_000_000u32;
    meets(modes, &reach, 0, 0, false, &mut fuel).map(|m| !m)
}

/// Whether modes from `k` on can make `-sum`, where some difference before was not 0 (`moved`) or one from here on is.
/// `None` if `fuel` runs out.
fn meets(
    modes: &[(i128, i128)],
    reach: &[(i128, i128)],
    k: usize,
    sum: i128,
    moved: bool,
    fuel: &mut u32,
) -> Option<bool> {
    *fuel = fuel.checked_sub(1)?;
    let Some(&(s, d)) = modes.get(k) else { return Some(moved && sum == 0) };
    let (limit, divisor) = reach[k];
    if sum.abs() > limit || (divisor != 0 && sum % divisor != 0) {
        return Some(false);
    }
    if d == 0 {
        // Extents are above 1: any step along it changes nothing.
        return Some(true);
    }
    // Only the steps that bring the sum into reach of the smaller strides. The first step is not negative: of two
    // coordinates either may come first.
    let below = reach[k + 1].0;
    let first = (-sum - below).div_euclid(d).max(if moved { -(s - 1) } else { 0 });
    let last = (-sum + below).div_euclid(d).min(s - 1);
    let mut x = first;
    while x <= last {
        if meets(modes, reach, k + 1, sum + x * d, moved || x != 0, fuel)? {
            return Some(true);
        }
        x += 1;
    }
    Some(false)
}

/// Behind a swizzle: a swizzle is a bijection of all offsets, so only its ends matter.
fn composed_bijection(cx: &Cx, c: &Composed) -> Result<bool> {
    const OP: &str = "is_bijection";
    if !is_bijection(cx, &c.layout)? {
        // Some other set of offsets could in principle be swizzled onto 0..size.
        return match c.layout.cosize(cx)? == c.layout.size()? || !is_injective(cx, &c.layout)? {
            true => Ok(false),
            false => {
                let message = format!("{} is not a bijection before the swizzle", c.layout);
                Err(LayoutError::new(ErrorKind::Kind, OP, message).in_arg(0).with_help("ask is_injective"))
            }
        };
    }
    if c.layout.size()?.is(0) || (c.swizzle.is_identity() && c.offset.is(0)) {
        return Ok(true);
    }
    // Offsets stay within their aligned block of this many.
    let s = c.swizzle;
    let bits = s.base() + s.bits() + if s.shift() < 0 { s.shift().unsigned_abs() } else { 0 };
    let (size, block) = (c.layout.size()?, Int::Const(1 << bits));
    match (&c.offset, cx.divides(&block, &size)) {
        (offset, _) if cx.le(&Int::ONE, offset) == Truth::Yes && s.is_identity() => Ok(false),
        (offset, Truth::Yes) if offset.is(0) => Ok(true),
        (Int::Const(offset), _) if size.as_const().is_some_and(|n| n <= ENUMERATED) => {
            let n = size.as_const().unwrap_or(0);
            Ok((0..n).all(|i| offset.checked_add(i).is_some_and(|x| (0..n).contains(&s.apply(x)))))
        }
        (offset, _) => {
            let message = format!("whether {s} maps {offset} .. {offset}+{size} onto 0 .. {size} is not decided");
            Err(LayoutError::new(ErrorKind::Kind, OP, message)
                .in_arg(0)
                .with_help(format!("use a size that is a multiple of {block}, and the offset 0")))
        }
    }
}

/// Sizes up to this are enumerated where no rule decides.
const ENUMERATED: i64 = 1 << 20;

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "is_bijection",
        usage: "is_bijection(A)",
        doc: "Does A give each of 0 .. size exactly once?",
        arity: (1, 1),
        eval: |cx, v| {
            Ok(Value::Bool(match Args::new("is_bijection", v).view(0)? {
                View::Plain(a) => is_bijection(cx, a)?,
                View::Swizzled(c) => composed_bijection(cx, c)?,
            }))
        },
    },
    Op {
        name: "is_injective",
        usage: "is_injective(A)",
        doc: "Has each coordinate an offset of its own?",
        arity: (1, 1),
        // A swizzle is a bijection.
        eval: |cx, v| Ok(Value::Bool(is_injective(cx, Args::new("is_injective", v).view(0)?.inner())?)),
    },
];

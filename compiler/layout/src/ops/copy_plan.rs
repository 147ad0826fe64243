//! Plans of strided copies: which loops, in which order, moving how many bytes at a time.
//!
//! Two layouts of one shape say for each element where it comes from and where it goes. The planner makes of them the
//! shortest loop nest with the widest unit that visits the same pairs of addresses. All of a plan is in bytes.

use super::Op;
use super::args::Args;
use super::inject::is_injective;
use crate::error::plural;
use crate::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Path, Result, Stride, Truth, Tuple, Value};
use std::fmt;

const OP: &str = "copy_plan";

/// The widest unit.
const WIDEST: u32 = 32;

/// One loop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyAxis {
    /// Number of steps.
    pub extent: Int,
    /// Bytes of a step in the destination; not negative where its sign is known.
    pub dst: Int,
    /// Bytes of a step in the source.
    pub src: Int,
}

/// How to copy. The destination's and the source's unit at the indices `i` of the loops start at `start + sum i * step`
/// on their sides.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CopyPlan {
    /// Bytes that move together: 1, 2, 4, 8, 16 or 32.
    pub unit: u32,
    /// All units begin at multiples of this on both sides, if the bases do: a power of two, at most `unit`.
    pub align: u32,
    /// The loops, outermost first; none: one unit.
    pub axes: Vec<CopyAxis>,
    /// The loop whose units follow each other in the destination.
    pub dst_fast: Option<usize>,
    /// The same of the source. If both are there and differ, blocks of the two loops should be transposed on the way.
    pub src_fast: Option<usize>,
    /// Where the destination's first unit is.
    pub dst_start: Int,
    /// Where the source's first unit is.
    pub src_start: Int,
    /// There is nothing to copy: an extent is 0.
    pub empty: bool,
}

impl CopyPlan {
    fn nothing() -> CopyPlan {
        CopyPlan {
            unit: 1,
            align: 1,
            axes: Vec::new(),
            dst_fast: None,
            src_fast: None,
            dst_start: Int::ZERO,
            src_start: Int::ZERO,
            empty: true,
        }
    }

    /// The loops of which blocks should be transposed on the way, the destination's first: each side has units that
    /// follow each other, but along different loops.
    pub fn transposed(&self) -> Option<(usize, usize)> {
        match (self.dst_fast, self.src_fast) {
            (Some(d), Some(s)) if d != s => Some((d, s)),
            _ => None,
        }
    }

    /// `(unit, destination, source)`, the layouts in bytes and the innermost loop first.
    fn value(&self) -> Value {
        let side = |step: fn(&CopyAxis) -> &Int| {
            let mut modes: Vec<Layout> =
                self.axes.iter().rev().map(|a| Layout::leaf(a.extent.clone(), Stride::int(step(a).clone()))).collect();
            Value::Layout(match modes.len() {
                0 if self.empty => Layout::leaf(Int::ZERO, Stride::from(0)),
                0 => Layout::unit(),
                1 => modes.remove(0),
                _ => Layout::of_modes(modes),
            })
        };
        Value::Tuple(vec![Value::Int(i64::from(self.unit).into()), side(|a| &a.dst), side(|a| &a.src)])
    }
}

impl fmt::Display for CopyPlan {
    /// `4 bytes; 2 (dst 96, src 96); 8 (dst 12, src 4) fast in src; 3 (dst 4, src 32) fast in dst`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.empty {
            return f.write_str("nothing");
        }
        write!(f, "{} byte{}", self.unit, if self.unit == 1 { "" } else { "s" })?;
        if !(self.dst_start.is(0) && self.src_start.is(0)) {
            write!(f, " from (dst {}, src {})", self.dst_start, self.src_start)?;
        }
        for (k, a) in self.axes.iter().enumerate() {
            write!(f, "; {} (dst {}, src {})", a.extent, a.dst, a.src)?;
            f.write_str(match (self.dst_fast == Some(k), self.src_fast == Some(k)) {
                (true, true) => " fast in both",
                (true, false) => " fast in dst",
                (false, true) => " fast in src",
                (false, false) => "",
            })?;
        }
        Ok(())
    }
}

/// Plans the copy of `src` to `dst`, layouts of one shape, of elements of `element` bytes. The bases are multiples of
/// `align` bytes (`element` itself, where no more is known; it does not limit the unit, only what the plan says of it).
///
/// The destination must have a place of its own for each element; the source may repeat itself.
pub fn copy_plan(cx: &Cx, dst: &Layout, src: &Layout, element: u32, align: u32) -> Result<CopyPlan> {
    if element == 0 {
        return Err(LayoutError::new(ErrorKind::Domain, OP, "an element has 0 bytes")
            .in_arg(2)
            .with_help("give the size of the element type, 1 or more"));
    }
    let places = modes_of(dst).map_err(|e| e.in_arg(0))?;
    modes_of(src).map_err(|e| e.in_arg(1))?;
    let pairs = pair(cx, dst, src)?;
    if pairs.iter().any(|a| a.extent.is(0)) {
        return Ok(CopyPlan::nothing());
    }
    distinct(cx, places)?;
    let bytes = |n: &Int| n.mul(&Int::Const(i64::from(element)));
    // The bytes of an element are one more axis, the fastest.
    let mut axes = vec![CopyAxis { extent: Int::Const(i64::from(element)), dst: Int::ONE, src: Int::ONE }];
    for a in pairs {
        axes.push(CopyAxis { dst: bytes(&a.dst)?, src: bytes(&a.src)?, extent: a.extent });
    }
    axes.retain(|a| !a.extent.is(1));
    let (mut dst_start, mut src_start) = (Int::ZERO, Int::ZERO);
    for a in &mut axes {
        // Downwards in the destination is upwards from the other end.
        if cx.le(&a.dst, &Int::Const(-1)) == Truth::Yes {
            let last = a.extent.sub(&Int::ONE)?;
            dst_start = dst_start.add(&last.mul(&a.dst)?)?;
            src_start = src_start.add(&last.mul(&a.src)?)?;
            (a.dst, a.src) = (a.dst.neg()?, a.src.neg()?);
        }
    }
    coalesce(cx, &mut axes)?;
    let unit = widen(cx, &mut axes)?;
    order(cx, &mut axes);
    let step = Int::Const(i64::from(unit));
    let fast = |step_of: fn(&CopyAxis) -> &Int| axes.iter().rposition(|a| cx.eq(step_of(a), &step) == Truth::Yes);
    let (dst_fast, src_fast) = (fast(|a| &a.dst), fast(|a| &a.src));
    let steps = axes.iter().flat_map(|a| [&a.dst, &a.src]).chain([&dst_start, &src_start]);
    let steps: Vec<&Int> = steps.collect();
    let align = widest(unit, |n| align.is_multiple_of(n) && divides_all(cx, n, &steps));
    let mut plan = CopyPlan { unit, align, axes, dst_fast, src_fast, dst_start, src_start, empty: false };
    plan.innermost();
    Ok(plan)
}

impl CopyPlan {
    /// Moves the fast loops innermost, the destination's last: writes then fill one line after the other.
    fn innermost(&mut self) {
        let mut take = |k: Option<usize>, other: &mut Option<usize>| {
            let k = k?;
            let axis = self.axes.remove(k);
            self.axes.push(axis);
            let last = self.axes.len() - 1;
            *other = other.map(|o| {
                if o == k {
                    last
                } else if o > k {
                    o - 1
                } else {
                    o
                }
            });
            Some(last)
        };
        let (mut dst, mut src) = (self.dst_fast, self.src_fast);
        src = take(src, &mut dst);
        dst = take(dst, &mut src);
        (self.dst_fast, self.src_fast) = (dst, src);
    }
}

/// A leaf with a plain stride.
struct Mode {
    extent: Int,
    stride: Int,
    /// Where it stands in the operand.
    path: Path,
}

fn modes_of(a: &Layout) -> Result<Vec<Mode>> {
    fn walk(a: &Layout, path: Path, out: &mut Vec<Mode>) -> Result<()> {
        if let (Tuple::Leaf(s), Tuple::Leaf(d)) = (a.shape(), a.stride()) {
            let Some(stride) = d.as_int() else {
                let message = format!("stride {d} is a coordinate, not a distance in memory");
                return Err(LayoutError::new(ErrorKind::Kind, OP, message).at(path));
            };
            out.push(Mode { extent: s.clone(), stride: stride.clone(), path });
            return Ok(());
        }
        a.modes().iter().enumerate().try_for_each(|(k, m)| walk(m, path.then(k), out))
    }
    let mut out = Vec::new();
    walk(a, Path::default(), &mut out)?;
    Ok(out)
}

/// The destination's elements must be apart; if not, the first mode, by ascending strides, is to blame that falls among
/// the offsets of those below it.
fn distinct(cx: &Cx, mut modes: Vec<Mode>) -> Result<()> {
    let refuse = |message: String, path: Path| {
        let help = "a copy writes each place once: give the destination's modes strides that keep them apart";
        Err(LayoutError::new(ErrorKind::NotInjective, OP, message).in_arg(0).at(path).with_help(help))
    };
    modes.retain(|m| cx.le(&m.extent, &Int::ONE) != Truth::Yes);
    if let Some(m) = modes.iter().find(|m| cx.eq(&m.stride, &Int::ZERO) == Truth::Yes) {
        let single = Condition::Le(m.extent.clone(), Int::ONE);
        return match cx.decide(&single) {
            Truth::Unknown => Err(LayoutError::undecided(OP, single).in_arg(0).at(m.path.clone())),
            _ => {
                refuse(format!("stride 0 puts {} elements of the destination at one offset", m.extent), m.path.clone())
            }
        };
    }
    let leaves = modes.iter().map(|m| Layout::leaf(m.extent.clone(), Stride::int(m.stride.clone())));
    let dst = Layout::of_modes(leaves.collect());
    if is_injective(cx, &dst).map_err(|e| e.of(OP).in_arg(0))? {
        return Ok(());
    }
    modes.sort_by_key(|m| m.stride.as_const().map(i64::unsigned_abs));
    let mut reach = 0i128;
    for m in modes {
        let (Some(s), Some(d)) = (m.extent.as_const(), m.stride.as_const()) else { break };
        let d = i128::from(d).abs();
        if d <= reach {
            let message = format!(
                "two elements of the destination have one offset: {s}:{} falls among the {} offsets that the modes of \
                 smaller strides span",
                m.stride,
                reach + 1
            );
            return refuse(message, m.path);
        }
        reach = reach.saturating_add(i128::from(s - 1).saturating_mul(d));
    }
    refuse(format!("two elements of the destination {dst} have one offset"), Path::default())
}

/// A leaf of both sides.
pub(super) struct Pair {
    pub(super) extent: Int,
    pub(super) dst: Int,
    pub(super) src: Int,
}

/// The leaves of both sides, refined where one side cuts a mode finer.
fn pair(cx: &Cx, dst: &Layout, src: &Layout) -> Result<Vec<Pair>> {
    if dst.is_leaf() && src.is_leaf() {
        let mut out = Vec::new();
        refine(cx, dst, src, &Path::default(), &mut out)?;
        return Ok(out);
    }
    Ok(paired(cx, dst, src)?.into_iter().flatten().collect())
}

/// The leaves of both sides, mode by mode.
pub(super) fn paired(cx: &Cx, dst: &Layout, src: &Layout) -> Result<Vec<Vec<Pair>>> {
    let (a, b) = (dst.shape(), src.shape());
    if dst.is_leaf() != src.is_leaf() || dst.rank() != src.rank() {
        let modes =
            |s: &crate::IntTuple| if s.is_leaf() { "no modes".into() } else { plural(s.rank(), "mode", "modes") };
        let message = format!("the source {b} has {}, the destination {a} has {}", modes(b), modes(a));
        return Err(LayoutError::new(ErrorKind::Profile, OP, message)
            .in_arg(1)
            .with_help("a copy is between layouts of one shape: reorder or group the modes of one side first"));
    }
    let mut out = Vec::new();
    for (k, (d, s)) in dst.modes().iter().zip(src.modes()).enumerate() {
        let mut pairs = Vec::new();
        refine(cx, d, &s, &Path(vec![k]), &mut pairs)?;
        out.push(pairs);
    }
    Ok(out)
}

/// One mode. Its extents may be factored differently, as long as one loop nest walks both.
fn refine(cx: &Cx, dst: &Layout, src: &Layout, path: &Path, out: &mut Vec<Pair>) -> Result<()> {
    let (n, m) = (dst.size()?, src.size()?);
    let equal = Condition::Eq(m.clone(), n.clone());
    if !cx.require(OP, equal).map_err(|e| e.in_arg(1).at(path.clone()))? {
        let message = format!("{m} elements in the source and {n} in the destination");
        return Err(LayoutError::new(ErrorKind::Size, OP, message)
            .in_arg(1)
            .at(path.clone())
            .with_help("a copy is between layouts of one shape: change the strides, not the extents"));
    }
    let list = |l: &Layout| -> Result<Vec<(Int, Int)>> {
        let leaves = modes_of(l)?.into_iter().map(|Mode { extent, stride, .. }| (extent, stride));
        Ok(leaves.filter(|(s, _)| !s.is(1)).rev().collect())
    };
    let (mut x, mut y) = (list(dst)?, list(src)?);
    while let (Some((s, d)), Some((t, e))) = (x.pop(), y.pop()) {
        if cx.eq(&s, &t) == Truth::Yes {
            out.push(Pair { extent: s, dst: d, src: e });
        } else if cx.divides(&t, &s) == Truth::Yes {
            x.push((cx.floor_div(&s, &t)?, d.mul(&t)?));
            out.push(Pair { extent: t, dst: d, src: e });
        } else if cx.divides(&s, &t) == Truth::Yes {
            y.push((cx.floor_div(&t, &s)?, e.mul(&s)?));
            out.push(Pair { extent: s, dst: d, src: e });
        } else {
            let message = format!("the source counts by {t} and the destination by {s}, no multiples");
            return Err(LayoutError::new(ErrorKind::Divisibility, OP, message)
                .in_arg(1)
                .at(path.clone())
                .with_help("no loop walks both: split both sides at the same extents"));
        }
    }
    // Equal sizes: what is left on one side is 1 whatever the symbols are, or the sizes are 0.
    for (s, d) in x {
        out.push(Pair { extent: s, dst: d, src: Int::ZERO });
    }
    for (s, e) in y {
        out.push(Pair { extent: s, dst: Int::ZERO, src: e });
    }
    Ok(())
}

/// Merges each two axes of which one goes on where the other ends, on both sides.
fn coalesce(cx: &Cx, axes: &mut Vec<CopyAxis>) -> Result<()> {
    let goes_on = |a: &CopyAxis, b: &CopyAxis| -> Result<bool> {
        Ok(cx.eq(&a.extent.mul(&a.dst)?, &b.dst) == Truth::Yes && cx.eq(&a.extent.mul(&a.src)?, &b.src) == Truth::Yes)
    };
    'again: loop {
        for i in 0..axes.len() {
            for j in 0..axes.len() {
                if i != j && goes_on(&axes[i], &axes[j])? {
                    axes[i].extent = axes[i].extent.mul(&axes[j].extent)?;
                    axes.remove(j);
                    continue 'again;
                }
            }
        }
        return Ok(());
    }
}

/// Makes of the bytes that are in a row on both sides as wide units as everything else permits.
fn widen(cx: &Cx, axes: &mut Vec<CopyAxis>) -> Result<u32> {
    let Some(run) = axes.iter().position(|a| a.dst.is(1) && a.src.is(1)) else { return Ok(1) };
    let mut steps = vec![&axes[run].extent];
    for (k, a) in axes.iter().enumerate() {
        if k != run {
            steps.extend([&a.dst, &a.src]);
        }
    }
    let unit = widest(WIDEST, |n| divides_all(cx, n, &steps));
    let by = Int::Const(i64::from(unit));
    let extent = cx.floor_div(&axes[run].extent, &by)?;
    match extent.is(1) {
        true => drop(axes.remove(run)),
        false => axes[run] = CopyAxis { extent, dst: by.clone(), src: by },
    }
    Ok(unit)
}

/// The largest power of two up to `most` that suits.
fn widest(most: u32, suits: impl Fn(u32) -> bool) -> u32 {
    std::iter::successors(Some(most), |n| (*n > 1).then_some(n / 2)).find(|n| suits(*n)).unwrap_or(1)
}

fn divides_all(cx: &Cx, n: u32, steps: &[&Int]) -> bool {
    steps.iter().all(|s| cx.divides(&Int::Const(i64::from(n)), s) == Truth::Yes)
}

/// Descending strides of the destination, so that it is written from front to back; strides that cannot be compared
/// stay as the layout has them, its first mode innermost.
fn order(cx: &Cx, axes: &mut [CopyAxis]) {
    axes.reverse();
    for k in 1..axes.len() {
        for at in (1..=k).rev() {
            let (x, y) = (&axes[at - 1].dst, &axes[at].dst);
            if cx.le(x, y) != Truth::Yes || cx.le(y, x) == Truth::Yes {
                break;
            }
            axes.swap(at - 1, at);
        }
    }
}

pub(crate) static OPS: &[Op] = &[Op {
    name: "copy_plan",
    usage: "copy_plan(dst, src, bytes)",
    doc: "How to copy src to dst: the unit in bytes, then both sides' loops in bytes, the innermost first.",
    arity: (3, 3),
    eval: |cx, v| {
        let args = Args::new(OP, v);
        let bytes = args.constant(2)?;
        let Ok(element) = u32::try_from(bytes) else {
            let message = format!("an element of {bytes} bytes");
            return Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(2));
        };
        Ok(copy_plan(cx, args.layout(0)?, args.layout(1)?, element, element)?.value())
    },
}];

#[cfg(test)]
mod tests;

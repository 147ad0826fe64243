//! Composition: `R(c) = A(B(c))`.

use super::Op;
use super::args::Args;
use super::coalesce::{Leaves, coalesce_open, from_leaves};
use super::suggest;
use crate::{Condition, Cx, ErrorKind, Int, IntTuple, Layout, LayoutError, Result, Stride, Tiler, Truth, Tuple, Value};

const OP: &str = "composition";

/// `R(c) == A(B(c))` for all coordinates `c` of `B`, whose shape `R`'s refines. A tiler composes mode by mode; modes of
/// `A` beyond the tiler's are dropped. Along its last mode `A` goes on beyond its size.
///
/// Stricter than CuTe, which takes some `B` for which no layout is the composition: a stride of `B` that is below the
/// extent of the mode of `A` that it falls into must divide it, unless the mode of `B` ends within it; and the modes of
/// `B` together must not run past it. (For static layouts this is exactly when the equation holds.)
pub fn composition(cx: &Cx, a: &Layout, b: &Tiler) -> Result<Layout> {
    match b {
        Tiler::Keep => Ok(a.clone()),
        Tiler::Extent(n) => {
            extent(OP, n)?;
            compose(cx, a, &Layout::vector(n.clone()))
        }
        Tiler::Layout(b) => compose(cx, a, b),
        Tiler::ByMode(tiles) => {
            let modes = by_mode(OP, a, tiles)?;
            let parts = modes.iter().zip(tiles).enumerate();
            let parts = parts.map(|(k, (m, t))| composition(cx, m, t).map_err(|e| e.within(k)));
            Ok(Layout::of_modes(parts.collect::<Result<_>>()?))
        }
    }
}

/// The modes of `a` for a tiler of so many entries.
pub(crate) fn by_mode(op: &'static str, a: &Layout, tiles: &[Tiler]) -> Result<Vec<Layout>> {
    let modes = a.modes();
    if tiles.len() > modes.len() {
        let message = format!("the tiler has {} modes, {a} has {}", tiles.len(), modes.len());
        return Err(LayoutError::new(ErrorKind::Profile, op, message)
            .in_arg(1)
            .with_help(format!("give at most {} entries; `_` keeps a mode", modes.len())));
    }
    Ok(modes)
}

/// A tile's extent must not be negative.
pub(crate) fn extent(op: &'static str, n: &Int) -> Result<()> {
    match n.bounds().1 {
        Some(hi) if hi < 0 => {
            let message = format!("a tile of {n} elements");
            Err(LayoutError::new(ErrorKind::Domain, op, message).in_arg(1).with_help("give an extent of at least 1"))
        }
        _ => Ok(()),
    }
}

/// Composition with a layout. Strides of `B` that are coordinates select a mode of `A` each.
pub(crate) fn compose(cx: &Cx, a: &Layout, b: &Layout) -> Result<Layout> {
    if !b.has_basis() {
        let mut left = Left::new(cx, a)?;
        return walk(b.shape(), b.stride(), &mut |s, d| left.leaf(cx, s, &d.scale));
    }
    let mut parts: Vec<(Vec<usize>, Left)> = Vec::new();
    walk(b.shape(), b.stride(), &mut |s, d| {
        if d.basis.is_empty() {
            if d.scale.is(0) {
                return Ok(Layout::leaf(s.clone(), d.clone()));
            }
            let message = format!("{b} steps along coordinates and, with stride {d}, along plain offsets");
            return Err(LayoutError::new(ErrorKind::Kind, OP, message).in_arg(1));
        }
        let known = parts.iter().position(|(path, _)| *path == d.basis);
        let part = match known {
            Some(k) => k,
            None => {
                if let Some((path, _)) = parts.iter().find(|(p, _)| p.starts_with(&d.basis) || d.basis.starts_with(p)) {
                    let whole = path.len().min(d.basis.len());
                    let whole = crate::Path(d.basis[..whole].to_vec());
                    let message = format!("{b} steps along {whole} of the left operand and along a part of it");
                    return Err(LayoutError::new(ErrorKind::Profile, OP, message).in_arg(1));
                }
                parts.push((d.basis.clone(), Left::new(cx, &sub_mode(a, &d.basis)?)?));
                parts.len() - 1
            }
        };
        parts[part].1.leaf(cx, s, &d.scale)
    })
}

/// The mode of `a` that a unit vector names.
fn sub_mode(a: &Layout, path: &[usize]) -> Result<Layout> {
    let mut at = a.clone();
    for (depth, &k) in path.iter().enumerate() {
        let inner = if at.is_leaf() { None } else { at.mode(k) };
        at = inner.ok_or_else(|| {
            let wanted = crate::Path(path[..=depth].to_vec());
            let message = format!("a stride of the right operand is along {wanted}, which {a} does not have");
            LayoutError::new(ErrorKind::Profile, OP, message).in_arg(1)
        })?;
    }
    Ok(at)
}

/// One result for each leaf of `B`, nested as `B` is; errors get the leaf's path.
fn walk(
    shape: &IntTuple,
    stride: &Tuple<Stride>,
    leaf: &mut impl FnMut(&Int, &Stride) -> Result<Layout>,
) -> Result<Layout> {
    match (shape, stride) {
        (Tuple::Node(s), Tuple::Node(d)) => {
            let parts = s.iter().zip(d).enumerate();
            let parts = parts.map(|(k, (s, d))| walk(s, d, leaf).map_err(|e| e.within(k)));
            Ok(Layout::of_modes(parts.collect::<Result<_>>()?))
        }
        (Tuple::Leaf(s), Tuple::Leaf(d)) => leaf(s, d),
        // Congruent by construction.
        _ => Err(LayoutError::new(ErrorKind::Profile, OP, "shape and stride are nested differently")),
    }
}

/// The left operand, and how much of each of its modes the leaves of `B` so far reach.
struct Left {
    modes: Leaves,
    /// Greatest index along each mode that the coordinates of `B` so far add up to.
    reach: Vec<Int>,
}

impl Left {
    fn new(cx: &Cx, a: &Layout) -> Result<Left> {
        let modes = coalesce_open(cx, a).map_err(|e| e.of(OP).in_arg(0))?;
        let reach = vec![Int::ZERO; modes.len()];
        Ok(Left { modes, reach })
    }

    /// `A o s:d`
    fn leaf(&mut self, cx: &Cx, s: &Int, d: &Int) -> Result<Layout> {
        if d.is(0) {
            return Ok(Layout::leaf(s.clone(), Stride::from(0)));
        }
        if let [(_, stride)] = self.modes.as_slice() {
            return Ok(Layout::leaf(s.clone(), stride.times(d)?));
        }
        if s.is(0) {
            return Ok(Layout::leaf(Int::ZERO, Stride::from(0)));
        }
        if !s.is(1) && !cx.require(OP, Condition::Le(Int::ONE, d.clone())).map_err(|e| e.in_arg(1))? {
            let message = format!("stride {d} walks to offsets below 0, where {} is not defined", self.text());
            return Err(LayoutError::new(ErrorKind::OutOfRange, OP, message)
                .in_arg(1)
                .with_help("only a left operand that coalesces to one mode goes on below 0"));
        }
        let last = self.modes.len() - 1;
        let (mut rest_s, mut rest_d) = (s.clone(), d.clone());
        // Product of the modes that the stride steps over, for messages.
        let mut stepped = Int::ONE;
        let mut out: Leaves = Vec::new();
        for k in 0..last {
            let (a, stride) = self.modes[k].clone();
            match self.fit(cx, k, &rest_s, &rest_d).map_err(|f| self.refuse(cx, s, d, &stepped, f))? {
                Fit::Over => {
                    stepped = stepped.mul(&a)?;
                    rest_d = quotient(cx, &rest_d, &a)?;
                }
                Fit::Nothing => rest_d = Int::ONE,
                Fit::Part { extent, rest } => {
                    let reach = extent.sub(&Int::ONE)?.mul(&rest_d)?;
                    self.reach[k] = self.reach[k].add(&reach)?;
                    let span = self.reach[k].add(&Int::ONE)?;
                    match within(cx, &span, &span, &a) {
                        Truth::Yes => {}
                        Truth::No => return Err(self.carries(k)),
                        Truth::Unknown => return Err(LayoutError::undecided(OP, Condition::Le(span, a)).in_arg(1)),
                    }
                    out.push((extent, stride.times(&rest_d)?));
                    (rest_s, rest_d) = (rest, Int::ONE);
                }
            }
        }
        // The last mode goes on for ever: no condition.
        if out.is_empty() || !rest_s.is(1) {
            out.push((rest_s, self.modes[last].1.times(&rest_d)?));
        }
        Ok(from_leaves(out))
    }

    /// How much of `s:d` falls into mode `k`, which is not the last.
    fn fit(&self, cx: &Cx, k: usize, s: &Int, d: &Int) -> std::result::Result<Fit, Misfit> {
        let a = &self.modes[k].0;
        if cx.divides(a, d) == Truth::Yes {
            return Ok(Fit::Over);
        }
        let refuse = |why| Misfit::Never { mode: k, s: s.clone(), d: d.clone(), why };
        if s.is(1) {
            // A single element has no stride to speak of; CuTe checks it all the same.
            return match cx.le(a, d) {
                Truth::Yes if a.as_const().is_some() && d.as_const().is_some() => Err(refuse(Why::Stride)),
                _ => Ok(Fit::Nothing),
            };
        }
        // It ends within the mode.
        let span = s.sub(&Int::ONE).and_then(|n| n.mul(d)).and_then(|n| n.add(&Int::ONE))?;
        let within = within(cx, &span, &s.mul(d)?, a);
        if within == Truth::Yes {
            return Ok(Fit::Part { extent: s.clone(), rest: Int::ONE });
        }
        match cx.divides(d, a) {
            Truth::Yes => {
                let whole = quotient(cx, a, d)?;
                match (cx.divides(&whole, s), within) {
                    (Truth::Yes, _) => {
                        let rest = quotient(cx, s, &whole)?;
                        Ok(Fit::Part { extent: whole, rest })
                    }
                    (Truth::No, Truth::No) => Err(refuse(Why::Shape(whole))),
                    (_, Truth::No) => Err(LayoutError::undecided(OP, Condition::Divides(whole, s.clone())).into()),
                    _ => Err(LayoutError::undecided(OP, Condition::Le(span, a.clone())).into()),
                }
            }
            Truth::No if within == Truth::No => Err(refuse(match (a, d, s) {
                // CuTe's name for it depends on how many of the stride fit.
                (Int::Const(a), Int::Const(d), Int::Const(s)) if d < a && s % (a / d + i64::from(a % d != 0)) != 0 => {
                    Why::Shape(Int::Const(a / d + i64::from(a % d != 0)))
                }
                _ => Why::Stride,
            })),
            _ if within == Truth::Unknown => Err(LayoutError::undecided(OP, Condition::Le(span, a.clone())).into()),
            _ => Err(LayoutError::undecided(OP, Condition::Divides(d.clone(), a.clone())).into()),
        }
    }

    fn refuse(&self, _cx: &Cx, s: &Int, d: &Int, stepped: &Int, misfit: Misfit) -> LayoutError {
        let (mode, rest_s, rest_d, why) = match misfit {
            Misfit::Other(e) => return e.in_arg(1),
            Misfit::Never { mode, s, d, why } => (mode, s, d, why),
        };
        let a = &self.modes[mode].0;
        let left = self.text();
        match why {
            Why::Stride => {
                let which = if rest_d == *d {
                    format!("stride {d} neither divides extent {a} of mode {mode} of {left} nor is a multiple of it")
                } else {
                    format!(
                        "stride {d}, of which {rest_d} is left in mode {mode} of {left}, neither divides its extent {a} \
                         nor is a multiple of it"
                    )
                };
                let e = LayoutError::new(ErrorKind::StrideDivisibility, OP, which).in_arg(1);
                match suggest::strides(a, &rest_d, stepped) {
                    Some(help) => e.with_help(help),
                    None => e,
                }
            }
            Why::Shape(whole) => {
                let taken = s.div_exact(&rest_s).unwrap_or(Int::ONE);
                let message = format!(
                    "extent {s} does not fill mode {mode} of {left}: {whole} steps of {rest_d} fit into its extent {a}, \
                     and {whole} does not divide {rest_s}"
                );
                let e = LayoutError::new(ErrorKind::ShapeDivisibility, OP, message).in_arg(1);
                match suggest::extents(&whole, &rest_s, &taken, a.div_exact(&rest_d).is_some()) {
                    Some(help) => e.with_help(help),
                    None => e,
                }
            }
        }
    }

    /// The modes of `B` run past a mode of the left operand together.
    fn carries(&self, k: usize) -> LayoutError {
        let (a, reach) = (&self.modes[k].0, &self.reach[k]);
        let message = format!(
            "together the modes of the right operand reach index {reach} in mode {k} of {}, whose extent is {a}: the \
             sum of their offsets is not the offset of their sum",
            self.text()
        );
        LayoutError::new(ErrorKind::ShapeDivisibility, OP, message)
            .in_arg(1)
            .with_help("make the right operand's modes disjoint: each stride a multiple of the span of those below it")
    }

    fn text(&self) -> String {
        from_leaves(self.modes.clone()).to_string()
    }
}

/// What of a leaf falls into a mode of the left operand.
enum Fit {
    /// The stride steps over the whole mode.
    Over,
    /// A single element: nothing.
    Nothing,
    /// So many, and the rest goes on in the next mode with stride 1.
    Part { extent: Int, rest: Int },
}

enum Misfit {
    Never { mode: usize, s: Int, d: Int, why: Why },
    Other(LayoutError),
}

enum Why {
    Stride,
    /// So many steps fit.
    Shape(Int),
}

impl From<LayoutError> for Misfit {
    fn from(e: LayoutError) -> Misfit {
        Misfit::Other(e)
    }
}

/// `span <= a`; also where `whole`, at least `span`, divides `a`, for then `a` is 0 (and nothing is to be shown) or at
/// least `whole`.
fn within(cx: &Cx, span: &Int, whole: &Int, a: &Int) -> Truth {
    match cx.le(span, a) {
        Truth::Unknown if cx.divides(whole, a) == Truth::Yes => Truth::Yes,
        t => t,
    }
}

/// `a / b` where `b` divides `a`.
fn quotient(cx: &Cx, a: &Int, b: &Int) -> Result<Int> {
    match a.div_exact(b) {
        Some(q) => Ok(q),
        None => cx.floor_div(a, b).map_err(|e| e.of(OP)),
    }
}

pub(crate) static OPS: &[Op] = &[Op {
    name: "composition",
    usage: "composition(A, B)",
    doc: "A after B: R(c) = A(B(c)); a tiler composes mode by mode.",
    arity: (2, 2),
    eval: |cx, v| {
        let args = Args::new(OP, v);
        if let (Value::Swizzle(_), _) | (_, Value::Swizzle(_) | Value::Composed(_)) = (args.value(0)?, args.value(1)?) {
            return super::swizzle::compose(cx, args);
        }
        let tiler = args.tiler(1)?;
        args.view(0)?.map(|a| composition(cx, a, &tiler))
    },
}];

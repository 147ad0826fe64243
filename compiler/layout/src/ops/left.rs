//! The left operand of a composition: how the leaves of the right one fall into its modes.

use super::coalesce::{Leaves, coalesce_open, from_leaves};
use super::suggest;
use crate::{Condition, Cx, ErrorKind, Int, Layout, LayoutError, Result, Stride, Truth};

const OP: &str = "composition";

/// What of a right operand is taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Rule {
    /// What has a layout as its composition.
    Exact,
    /// What CuTe takes: a stride below a mode's extent need not divide it (the mode is cut into `ceil(a / d)` parts,
    /// the last of which overhangs), and modes may run past the extent together. Right where something else tells which
    /// coordinates are there, as in a division, whose rest is rounded up.
    RoundUp,
}

/// The coalesced left operand, and what fell into each of its modes so far.
pub(crate) struct Left {
    modes: Leaves,
    /// Extents below which each index must be reached by a division: those of the modes, or 1 for a last mode that only
    /// says how offsets go on.
    required: Vec<Int>,
    /// For each mode the extents and strides that leaves of the right operand have there.
    parts: Vec<Vec<(Int, Int)>>,
}

impl Left {
    pub fn new(cx: &Cx, a: &Layout) -> Result<Left> {
        let modes = coalesce_open(cx, a).map_err(|e| e.of(OP).in_arg(0))?;
        let mut required: Vec<Int> = modes.iter().map(|(s, _)| s.clone()).collect();
        if let (Some(last), Some((s, _))) = (required.last_mut(), a.leaves().last())
            && s.is(1)
        {
            // Doubled by `coalesce_open`, alone or within a merged mode.
            *last = last.div_exact(&Int::Const(2)).unwrap_or(last.clone());
        }
        let parts = vec![Vec::new(); modes.len()];
        Ok(Left { modes, required, parts })
    }

    /// The extents of the coalesced layout.
    pub fn extents(&self) -> Vec<Int> {
        match self.required.split_last() {
            Some((last, others)) if last.is(1) && !others.is_empty() => others.to_vec(),
            _ => self.required.clone(),
        }
    }

    /// `A o s:d`
    pub fn leaf(&mut self, rule: Rule, cx: &Cx, s: &Int, d: &Int) -> Result<Layout> {
        self.place(rule, cx, s, d).map_err(|misfit| self.refuse(rule, cx, s, d, misfit))
    }

    fn place(&mut self, rule: Rule, cx: &Cx, s: &Int, d: &Int) -> Placed<Layout> {
        if d.is(0) {
            return Ok(Layout::leaf(s.clone(), Stride::from(0)));
        }
        if let [(_, stride)] = self.modes.as_slice() {
            self.parts[0].push((s.clone(), d.clone()));
            return Ok(Layout::leaf(s.clone(), stride.times(d)?));
        }
        if s.is(0) {
            return Ok(Layout::leaf(Int::ZERO, Stride::from(0)));
        }
        if !s.is(1) && !cx.require(OP, Condition::Le(Int::ONE, d.clone()))? {
            let message = format!("stride {d} walks to offsets below 0, where {} is not defined", self.text());
            let e = LayoutError::new(ErrorKind::OutOfRange, OP, message);
            return Err(e.with_help("only a left operand that coalesces to one mode goes on below 0").into());
        }
        let last = self.modes.len() - 1;
        let (mut rest_s, mut rest_d) = (s.clone(), d.clone());
        let mut out: Leaves = Vec::new();
        for k in 0..last {
            match self.fit(rule, cx, k, &rest_s, &rest_d)? {
                Fit::Over => rest_d = quotient(cx, &rest_d, &self.modes[k].0)?,
                Fit::Nothing => rest_d = Int::ONE,
                Fit::Part { extent, rest } => {
                    self.parts[k].push((extent.clone(), rest_d.clone()));
                    if rule == Rule::Exact {
                        self.no_carry(cx, k)?;
                    }
                    out.push((extent, self.modes[k].1.times(&rest_d)?));
                    (rest_s, rest_d) = (rest, Int::ONE);
                }
            }
        }
        // The last mode goes on for ever: no condition.
        if out.is_empty() || !rest_s.is(1) {
            self.parts[last].push((rest_s.clone(), rest_d.clone()));
            out.push((rest_s, self.modes[last].1.times(&rest_d)?));
        }
        Ok(from_leaves(out))
    }

    /// How much of `s:d` falls into mode `k`, which is not the last.
    fn fit(&self, rule: Rule, cx: &Cx, k: usize, s: &Int, d: &Int) -> Placed<Fit> {
        let a = &self.modes[k].0;
        if cx.divides(a, d) == Truth::Yes {
            return Ok(Fit::Over);
        }
        let refuse = |why| Misfit::Never { mode: k, s: s.clone(), d: d.clone(), why };
        let known = a.as_const().is_some() && d.as_const().is_some();
        let steps_over = known && cx.le(a, d) == Truth::Yes;
        if s.is(1) {
            // A single element has no stride to speak of; CuTe checks it all the same.
            return if steps_over { Err(refuse(Why::Stride)) } else { Ok(Fit::Nothing) };
        }
        // It ends within the mode.
        let span = s.sub(&Int::ONE).and_then(|n| n.mul(d)).and_then(|n| n.add(&Int::ONE))?;
        let inside = within(cx, &span, &s.mul(d)?, a);
        if inside == Truth::Yes {
            return Ok(Fit::Part { extent: s.clone(), rest: Int::ONE });
        }
        let even = cx.divides(d, a);
        if rule == Rule::Exact && even != Truth::Yes {
            return Err(match (even, inside) {
                (Truth::No, Truth::No) => match steps_over {
                    true => refuse(Why::Stride),
                    false => self.uneven(cx, a, d, s).map_or_else(Misfit::Other, refuse),
                },
                (_, Truth::Unknown) => LayoutError::undecided(OP, Condition::Le(span, a.clone())).into(),
                _ => LayoutError::undecided(OP, Condition::Divides(d.clone(), a.clone())).into(),
            });
        }
        if steps_over {
            return Err(refuse(Why::Stride));
        }
        // Fills the mode, and goes on in the next one.
        let whole = cx.ceil_div(a, d)?;
        match (cx.divides(&whole, s), cx.le(s, &whole)) {
            (Truth::Yes, _) => Ok(Fit::Part { rest: quotient(cx, s, &whole)?, extent: whole }),
            (_, Truth::Yes) => Ok(Fit::Part { extent: s.clone(), rest: Int::ONE }),
            (Truth::No, Truth::No) => Err(refuse(Why::Shape(whole))),
            (_, Truth::No) => Err(LayoutError::undecided(OP, Condition::Divides(whole, s.clone())).into()),
            (_, Truth::Unknown) => Err(LayoutError::undecided(OP, Condition::Le(span, a.clone())).into()),
        }
    }

    /// Why a stride that does not divide the extent does not do: CuTe names it by whether the parts divide the extent.
    fn uneven(&self, cx: &Cx, a: &Int, d: &Int, s: &Int) -> Result<Why> {
        let whole = cx.ceil_div(a, d)?;
        Ok(if cx.divides(&whole, s) == Truth::No { Why::Shape(whole) } else { Why::Stride })
    }

    /// Together the leaves so far stay below the extent of mode `k`: then offsets add up as indices do. (Where they do
    /// not, some coordinate carries exactly 1 into the next mode, and as the modes are coalesced the offsets differ.)
    fn no_carry(&self, cx: &Cx, k: usize) -> Result<()> {
        let a = &self.modes[k].0;
        let mut span = Int::ONE;
        for (n, d) in &self.parts[k] {
            span = span.add(&n.sub(&Int::ONE)?.mul(d)?)?;
        }
        match within(cx, &span, &span, a) {
            Truth::Yes => Ok(()),
            Truth::Unknown => Err(LayoutError::undecided(OP, Condition::Le(span, a.clone())).in_arg(1)),
            Truth::No => {
                let reach = span.sub(&Int::ONE)?;
                let message = format!(
                    "together the modes of the right operand reach index {reach} in mode {k} of {}, whose extent is \
                     {a}: the sum of their offsets is not the offset of their sum",
                    self.text()
                );
                let help =
                    "make the right operand's modes disjoint: each stride a multiple of the span of those below it";
                Err(LayoutError::new(ErrorKind::ShapeDivisibility, OP, message).in_arg(1).with_help(help))
            }
        }
    }

    /// Checks that each index of each mode is reached exactly once, as a division promises. Parts beyond the extent
    /// only overhang.
    pub fn covered(&self, cx: &Cx) -> Result<()> {
        for (k, (parts, a)) in self.parts.iter().zip(&self.required).enumerate() {
            self.mode_covered(cx, k, parts, a)?;
        }
        Ok(())
    }

    fn mode_covered(&self, cx: &Cx, k: usize, parts: &[(Int, Int)], a: &Int) -> Result<()> {
        let mut rest: Vec<&(Int, Int)> = parts.iter().filter(|(n, _)| !n.is(1)).collect();
        let mut reached = Int::ONE;
        let mut all = cx.le(a, &reached);
        while all != Truth::Yes {
            let Some(next) = rest.iter().position(|(_, d)| cx.eq(d, &reached) == Truth::Yes) else { break };
            let (n, d) = rest.remove(next);
            reached = n.mul(d)?;
            all = match cx.le(a, &reached) {
                Truth::Unknown if cx.ceil_div(a, d)? == *n => Truth::Yes,
                t => t,
            };
        }
        match all {
            Truth::Yes => {}
            Truth::No => {
                let message =
                    format!("its copies leave out index {reached} of mode {k} of {}, whose extent is {a}", self.text());
                return Err(LayoutError::new(ErrorKind::StrideOrder, OP, message).in_arg(1));
            }
            Truth::Unknown => return Err(LayoutError::undecided(OP, Condition::Le(a.clone(), reached)).in_arg(1)),
        }
        for (_, d) in rest {
            match cx.le(a, d) {
                Truth::Yes => {}
                Truth::No => {
                    let message =
                        format!("its copies have index {d} of mode {k} of {}, whose extent is {a}, twice", self.text());
                    return Err(LayoutError::new(ErrorKind::NotInjective, OP, message).in_arg(1));
                }
                Truth::Unknown => {
                    return Err(LayoutError::undecided(OP, Condition::Le(a.clone(), d.clone())).in_arg(1));
                }
            }
        }
        Ok(())
    }

    /// Says why, and which other strides or extents a leaf of its own could have.
    fn refuse(&self, rule: Rule, cx: &Cx, s: &Int, d: &Int, misfit: Misfit) -> LayoutError {
        let (mode, rest_s, rest_d, why) = match misfit {
            Misfit::Other(e) => return e.in_arg(1),
            Misfit::Never { mode, s, d, why } => (mode, s, d, why),
        };
        let places = |s: &Int, d: &Int| {
            let parts = vec![Vec::new(); self.modes.len()];
            let mut alone = Left { modes: self.modes.clone(), required: self.required.clone(), parts };
            alone.place(rule, cx, s, d).is_ok()
        };
        let a = &self.modes[mode].0;
        let left = self.text();
        let (kind, message, help) = match why {
            Why::Stride => {
                let left_of_it = if rest_d == *d { String::new() } else { format!(" (of it {rest_d} is left there)") };
                let message = format!(
                    "stride {d} is neither a multiple nor a divisor of extent {a} of mode {mode} of {left}{left_of_it}"
                );
                let stepped = d.div_exact(&rest_d).unwrap_or(Int::ONE);
                let help = suggest::strides(a, &rest_d, &stepped, |d| places(s, &Int::Const(d)));
                (ErrorKind::StrideDivisibility, message, help)
            }
            Why::Shape(whole) => {
                let taken = s.div_exact(&rest_s).unwrap_or(Int::ONE);
                let of_it = if taken.is(1) { String::new() } else { format!(" (of it {rest_s} is left there)") };
                let message = format!(
                    "extent {s} is no multiple of the {whole} steps of {rest_d} that fit into extent {a} of mode \
                     {mode} of {left}{of_it}"
                );
                let help = suggest::extents(&whole, &rest_s, &taken, |s| places(&Int::Const(s), d));
                (ErrorKind::ShapeDivisibility, message, help)
            }
        };
        let e = LayoutError::new(kind, OP, message).in_arg(1);
        match help {
            Some(help) => e.with_help(help),
            None => e,
        }
    }

    fn text(&self) -> String {
        let modes = self.modes.iter().zip(&self.required).map(|((_, d), s)| (s.clone(), d.clone()));
        from_leaves(modes.collect()).to_string()
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

type Placed<T> = std::result::Result<T, Misfit>;

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

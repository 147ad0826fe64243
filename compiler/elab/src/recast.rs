//! Views that read memory otherwise: `recast<u4>(x)` counts it in elements of another width. Nothing moves.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Elem, Value};
use ptoc_isa::BinOp;
use ptoc_layout::{Condition, Int, Truth};
use ptoc_syntax::ast::{Arg, Expr, ExprKind};
use ptoc_tensor::DType;
use ptoc_values::{Leaf, Quantity, Val, View, WindowMap};

/// Width of an element in bits.
fn bits(elem: Elem) -> u32 {
    match elem {
        Elem::Whole(d) => 8 * d.size() as u32,
        Elem::U4 | Elem::I4 => 4,
    }
}

impl Elaborator<'_> {
    /// `recast<T>(x)`
    pub(crate) fn recast(&mut self, statics: &[Arg], args: &[Arg], span: Span) -> ElabResult<Val> {
        let usage = "recast<dtype>(window)";
        let to = self.exactly(statics, 1, usage, span)?[0];
        let from = self.exactly(args, 1, usage, span)?[0];
        let (elem, dtype) = self.elem_of(to)?;
        match self.expr(from)? {
            Val::View(view) => Ok(Val::View(self.recast_view(&view, (elem, dtype), span, from.span)?.into())),
            Val::Tile(t) if elem == Elem::Whole(dtype) && t.ty.dtype.size() == dtype.size() => {
                self.recast_tile(t, dtype, span, from.span)
            }
            Val::Tile(t) => self.recast_wide_tile(t, (elem, dtype), span, from.span),
            Val::Part(p) => {
                let t = self.part_to_tile(&p, span, from.span)?;
                match elem == Elem::Whole(dtype) && t.ty.dtype.size() == dtype.size() {
                    true => self.recast_tile(t, dtype, span, from.span),
                    false => self.recast_wide_tile(t, (elem, dtype), span, from.span),
                }
            }
            Val::Poison => Err(ErrorReported),
            other => {
                let message = format!("`recast` takes a window of a tensor or a tile, found {}", other.describe());
                self.error(codes::TYPE_MISMATCH, from.span, message)
            }
        }
    }

    /// The window in elements of another width.
    pub(crate) fn recast_view(
        &mut self,
        view: &View,
        (elem, dtype): (Elem, DType),
        span: Span,
        at: Span,
    ) -> ElabResult<View> {
        let (old, new) = (bits(view.elem), bits(elem));
        let mut out = View { elem, dtype, ..view.clone() };
        if old == new {
            return Ok(out);
        }
        if view.swizzle.is_some() {
            return self.not_yet(span, "`recast` of a swizzled window");
        }
        // The axis along which neighbours lie side by side is the one that is counted anew.
        let mut units = Vec::new();
        for (k, m) in view.modes.iter().enumerate() {
            for (l, leaf) in m.tree.leaves().into_iter().enumerate() {
                if self.const_index(leaf.by[0]) == Some(1) && self.const_index(leaf.extent) != Some(1) {
                    units.push((k, l));
                }
            }
        }
        let [(mode, axis)] = units[..] else {
            let d = Diagnostic::error(
                codes::LAYOUT_WIDTH,
                at,
                format!("`recast` counts along the axis of stride 1, and this window has {}", units.len()),
            )
            .with_label(format!("elements of {old} bits"));
            return self.report(d);
        };
        let finer = old > new;
        let n = self.idx(i64::from(if finer { old / new } else { new / old }));
        let scale = Scale { finer, n, mode, old, new, at, span };
        out.window = self.rescaled(view, axis, &scale)?;
        Ok(out)
    }

    fn elem_of(&mut self, e: &Expr) -> ElabResult<(Elem, DType)> {
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
        {
            match n.as_str() {
                "u4" => return Ok((Elem::U4, DType::U8)),
                "i4" => return Ok((Elem::I4, DType::I8)),
                _ => {}
            }
        }
        let d = self.dtype(e)?;
        Ok((Elem::Whole(d), d))
    }

    /// `n` must divide `v`: shown, or checked when the kernel runs.
    fn divided_by(&mut self, v: Value, n: Value, scale: &Scale, what: &str) -> ElabResult<Value> {
        let (x, y) = (self.int_of(v), self.int_of(n));
        match self.cx.divides(&y, &x) {
            Truth::Yes => {}
            Truth::No => {
                let message =
                    format!("`recast` from {} to {} bits: {what} {x} is no multiple of {y}", scale.old, scale.new);
                return self.error(codes::LAYOUT_WIDTH, scale.at, message);
            }
            Truth::Unknown => {
                let rest = self.bin(BinOp::Rem, v, n, scale.span);
                let zero = self.idx(0);
                let cond = self.compare(ptoc_isa::CmpOp::Eq, rest, zero, scale.span);
                let data = ptoc_ir::tile::CheckData {
                    code: codes::LAYOUT_CONDITION,
                    message: format!("`recast`: {what} of {{0}} is no multiple of {{1}}"),
                    span: scale.span,
                    help: None,
                };
                self.check(cond, data, vec![v, n], scale.span)?;
                self.cx.assume(Condition::Divides(y.clone(), x.clone()));
            }
        }
        let quotient = self.cx.floor_div(&x, &y).unwrap_or(Int::ZERO);
        Ok(self.value_of(&quotient, scale.span))
    }

    /// The window counted in the other width. `axis` of `scale.mode` is the one of neighbours.
    fn rescaled(&mut self, view: &View, axis: usize, scale: &Scale) -> ElabResult<WindowMap> {
        let mut out = WindowMap { threads: None, ..view.window.clone() };
        let n = scale.n;
        for q in 0..out.quantities.len() {
            match out.quantities[q] {
                Quantity::Entry(mut lookup) => {
                    lookup.stride = self.scaled(lookup.stride, scale, "the distance of gathered elements")?;
                    out.quantities[q] = Quantity::Entry(lookup);
                }
                Quantity::Guard(bound) => {
                    out.quantities[q] = Quantity::Guard(self.scaled(bound, scale, "a bound")?);
                    out.starts[q] = self.scaled(out.starts[q], scale, "an origin")?;
                }
                _ => out.starts[q] = self.scaled(out.starts[q], scale, "the first element")?,
            }
        }
        for k in 0..out.modes.len() {
            let mut leaves: Vec<Leaf> = out.modes[k].tree.leaves().into_iter().cloned().collect();
            for (l, leaf) in leaves.iter_mut().enumerate() {
                if (k, l) == (scale.mode, axis) {
                    leaf.extent = self.scaled(leaf.extent, scale, "the extent")?;
                    continue;
                }
                for q in 0..leaf.by.len() {
                    if !matches!(out.quantities[q], Quantity::Entry(_)) {
                        leaf.by[q] = self.scaled(leaf.by[q], scale, "a stride")?;
                    }
                }
            }
            let mut leaves = leaves.into_iter();
            out.modes[k].tree = out.modes[k].tree.map(&mut |l: &Leaf| leaves.next().unwrap_or_else(|| l.clone()));
            if k == scale.mode {
                let mode = &out.modes[k];
                let (extent, cap) = (mode.extent, mode.cap);
                out.modes[k].extent = self.scaled(extent, scale, "the extent")?;
                let by = self.const_index(n).and_then(|n| u32::try_from(n).ok()).unwrap_or(1);
                out.modes[k].cap = cap.and_then(|c| if scale.finer { c.checked_mul(by) } else { Some(c / by) });
            }
        }
        Ok(out)
    }

    fn scaled(&mut self, v: Value, scale: &Scale, what: &str) -> ElabResult<Value> {
        match scale.finer {
            true => Ok(self.bin(BinOp::Mul, v, scale.n, scale.span)),
            false => self.divided_by(v, scale.n, scale, what),
        }
    }
}

/// A change of width.
struct Scale {
    /// Whether the recast is to narrower elements.
    finer: bool,
    /// How many narrow ones make a wide one.
    n: Value,
    /// The mode with the axis of neighbours.
    mode: usize,
    /// Width before, in bits.
    old: u32,
    /// Width after.
    new: u32,
    /// The window.
    at: Span,
    /// The call.
    span: Span,
}

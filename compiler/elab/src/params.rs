//! Parameters of inlined functions meet their arguments: types are patterns, and names in them that are not yet known
//! are bound by what the argument has.

use super::labels::count;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Ty, Value};
use ptoc_layout::{Condition, Layout, Truth, Tuple, Value as Algebra};
use ptoc_names::builtins::{SyncFn, Word};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, Val, View};

impl Elaborator<'_> {
    /// A parameter of an inlined function meets its argument.
    pub fn bind_param(&mut self, p: &Param, v: Val, at: Span) -> ElabResult<Val> {
        if matches!(v, Val::Poison) {
            return Err(ErrorReported);
        }
        let mismatch = |s: &mut Self, want: &str, v: &Val| {
            let have = match v {
                Val::Event(e) if s.is_kind(e, SyncFn::MBarrier) => "a transaction barrier",
                v => v.describe(),
            };
            let d = Diagnostic::error(codes::TYPE_MISMATCH, at, format!("`{}` is {want}, this is {have}", p.name.name))
                .with_label(have)
                .with_secondary(p.span, "the parameter");
            s.report(d)
        };
        match (&*p.ty.kind, v) {
            (ExprKind::Name(n), v) if n == "block" => match v {
                Val::Block(_) => Ok(v),
                v => mismatch(self, "a block", &v),
            },
            (_, v) if super::statics::is_layout(&p.ty) => match v {
                Val::Algebra(_) => Ok(v),
                v => mismatch(self, "a layout", &v),
            },
            (ExprKind::Name(n), v) if super::sync::parameter(n).is_some() => match (super::sync::parameter(n), v) {
                (Some(SyncFn::Ring), Val::Ring(r)) => Ok(Val::Ring(r)),
                (Some(what), Val::Event(e)) if self.is_kind(&e, what) => Ok(Val::Event(e)),
                (what, v) => {
                    let want = match what {
                        Some(SyncFn::Ring) => "a ring",
                        Some(SyncFn::MBarrier) => "a transaction barrier",
                        _ => "an event",
                    };
                    mismatch(self, want, &v)
                }
            },
            (ExprKind::Tuple(_), v) => self.bind_parts(p, v, at),
            (ExprKind::FnType, v) => match v {
                Val::Fn(_) | Val::Builtin(_) | Val::Closure(_) => Ok(v),
                v => mismatch(self, "a function", &v),
            },
            (ExprKind::Name(n), v) if n == "view" => match v {
                Val::View(_) | Val::Cut(_) => Ok(v),
                v => mismatch(self, "a window of a tensor", &v),
            },
            (ExprKind::Static(loc, args), v) => {
                let Val::Tile(t) = v else { return mismatch(self, "a tile", &v) };
                self.bind_tile(loc, args, &t, p, at)?;
                Ok(Val::Tile(t))
            }
            (ExprKind::Index(base, dims), v) if matches!(&*base.kind, ExprKind::Static(..)) => {
                self.bind_tiles((base, dims), v, p, at)
            }
            (ExprKind::Index(base, dims), v) => {
                let (Val::View(view) | Val::Cut(view)) = &v else { return mismatch(self, "a window of a tensor", &v) };
                self.bind_view(base, dims, view, p, at)?;
                Ok(v)
            }
            (_, v) => {
                let ty = self.scalar_type(&p.ty)?;
                match v {
                    Val::Int(i) if ty == Ty::Index => Ok(Val::Int(i)),
                    Val::Tile(t) if Ty::D(t.ty.dtype) == ty || (ty == Ty::Index && t.ty.dtype.is_int()) => {
                        Ok(Val::Tile(t))
                    }
                    Val::Mask(m, n) if ty == Ty::BOOL => Ok(Val::Mask(m, n)),
                    Val::Tile(t) => {
                        let d = Diagnostic::error(
                            codes::DTYPE_MISMATCH,
                            at,
                            format!("`{}` is `{ty}`, this is a tile of `{}`", p.name.name, t.ty.dtype),
                        )
                        .with_secondary(p.span, "the parameter")
                        .with_help(format!("convert it by name: `{ty}(..)`"));
                        let d = self.deduced_here(d, &p.ty);
                        self.report(d)
                    }
                    v => {
                        let x = self.scalar_of(&v, ty, at)?;
                        Ok(self.fold(x))
                    }
                }
            }
        }
    }

    fn bind_tile(&mut self, loc: &Expr, args: &[Arg], t: &ptoc_values::TileVal, p: &Param, at: Span) -> ElabResult<()> {
        let Val::Word(Word::Loc(want)) = self.expr(loc)? else {
            return self.error(codes::BAD_TILE_TYPE, loc.span, "expected a location such as `Vec`");
        };
        if want != t.ty.loc {
            let d = Diagnostic::error(
                codes::LOCATION_MISMATCH,
                at,
                format!("`{}` lives in {want}, this tile in {}", p.name.name, t.ty.loc),
            )
            .with_label(format!("in {}", t.ty.loc))
            .with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        let [dtype, rows, cols] = args else {
            return self.error(codes::BAD_TILE_TYPE, p.ty.span, "a tile type is `Location<dtype, rows, cols>`");
        };
        self.bind_dtype(&dtype.value, t.ty.dtype, p, at)?;
        let shape = self.valid_of(t, at)?;
        self.bind_extent(&rows.value, t.rows, shape.0, "rows", p, at)?;
        self.bind_extent(&cols.value, t.cols, shape.1, "columns", p, at)
    }

    /// `Vec<T, r, c>[n]`: an array of tiles, or a list of them, which has no number that is known when the kernel runs.
    fn bind_tiles(&mut self, (element, count): (&Expr, &[Arg]), v: Val, p: &Param, at: Span) -> ElabResult<Val> {
        let ExprKind::Static(loc, args) = &*element.kind else { return Err(ErrorReported) };
        let (first, n) = match &v {
            Val::TileArray(a) => (self.element_of(a, None), a.count as usize),
            Val::List(l) if !l.is_empty() && l.iter().all(|v| matches!(v, Val::Tile(_))) => {
                let Val::Tile(first) = l[0] else { return Err(ErrorReported) };
                (first, l.len())
            }
            other => {
                let have = other.describe();
                let message = format!("`{}` is an array of tiles, this is {have}", p.name.name);
                let d = Diagnostic::error(codes::TYPE_MISMATCH, at, message).with_label(have);
                let d = d.with_secondary(p.span, "the parameter");
                return self.report(match other {
                    Val::Tile(_) => d.with_edits("make it a list of one", super::labels::around(at, "[", "]")),
                    _ => d.with_help("`tile Vec<f32, 16, 64>[2]` declares one; `[a, b]` is a list of two tiles"),
                });
            }
        };
        let rest = match &v {
            Val::List(l) => l[1..].to_vec(),
            _ => Vec::new(),
        };
        self.bind_tile(loc, args, &first, p, at)?;
        for v in rest {
            let Val::Tile(t) = v else { return Err(ErrorReported) };
            self.bind_tile(loc, args, &t, p, at)?;
        }
        let [count] = count else {
            return self.error(codes::BAD_TILE_TYPE, p.ty.span, "an array of tiles has one extent, their number");
        };
        if let ExprKind::Name(name) = &*count.value.kind
            && self.env.get(name).is_none()
            && !self.names_constant(name)
        {
            self.env.define_outer(name.clone(), Binding::Let(Val::Int(n as i128)), count.value.span);
            return Ok(v);
        }
        let want = self.expr(&count.value)?;
        let want = self.static_int(&want, count.value.span, "the number of tiles")?;
        if want != n as i128 {
            let message = format!("`{}` has {want} tiles, this {n}", p.name.name);
            let d = Diagnostic::error(codes::CAPACITY_MISMATCH, at, message)
                .with_label(self::count(n, "tile", "tiles"))
                .with_secondary(p.span, "the parameter")
                .with_help("a name that nothing else defines takes any number: `Vec<f32, r, c>[n]`");
            return self.report(d);
        }
        Ok(v)
    }

    fn bind_dtype(&mut self, e: &Expr, have: DType, p: &Param, at: Span) -> ElabResult<()> {
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
            && ptoc_names::builtins::word(n).is_none()
        {
            self.env.define_outer(n.clone(), Binding::Let(Val::Word(Word::DType(have))), e.span);
            self.deduced.push((e.span, at));
            return Ok(());
        }
        let want = self.dtype(e)?;
        if want == have {
            return Ok(());
        }
        let d = Diagnostic::error(
            codes::DTYPE_MISMATCH,
            at,
            format!("`{}` holds `{want}`, this holds `{have}`", p.name.name),
        )
        .with_secondary(p.span, "the parameter");
        let d = self.deduced_here(d, e);
        self.report(d)
    }

    fn bind_extent(&mut self, e: &Expr, cap: u32, len: Value, what: &str, p: &Param, at: Span) -> ElabResult<()> {
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
            && !self.names_constant(n)
        {
            let v = self.extent_val(cap, len);
            self.env.define_outer(n.clone(), Binding::Let(v), e.span);
            return Ok(());
        }
        let (want, want_len) = self.extent(e, "an extent")?;
        // Of one capacity or not: what is valid counts.
        if want != cap && !self.lengths_agree(want_len, len) {
            let d = Diagnostic::error(
                codes::CAPACITY_MISMATCH,
                at,
                format!("`{}` has {want} {what}, this tile {cap}", p.name.name),
            )
            .with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        self.same_length(want_len, len, what, at, None)
    }

    fn bind_view(&mut self, base: &Expr, dims: &[Arg], view: &View, p: &Param, at: Span) -> ElabResult<()> {
        self.bind_dtype(base, view.dtype, p, at)?;
        if let [one] = dims
            && let ExprKind::Layout(shape, stride) = &*one.value.kind
        {
            self.bind_shape(shape, view, p, at)?;
            let want = self.layout_literal(shape, stride, one.value.span)?;
            return self.same_layout(&want, view, p, at);
        }
        if let [one] = dims
            && let ExprKind::Name(n) = &*one.value.kind
            && let Some((Binding::Let(want @ Val::Algebra(_)), _)) = self.env.get(n)
        {
            let want = want.clone();
            return self.same_layout(&want, view, p, at);
        }
        if dims.len() != view.modes.len() {
            let d = Diagnostic::error(
                codes::RANK_MISMATCH,
                at,
                format!(
                    "`{}` has {}, this window {}",
                    p.name.name,
                    count(dims.len(), "mode", "modes"),
                    view.modes.len()
                ),
            )
            .with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        for (mode, (d, m)) in dims.iter().zip(&view.modes).enumerate() {
            if let ExprKind::Name(n) = &*d.value.kind
                && self.env.get(n).is_none()
                && !self.names_constant(n)
            {
                self.env.define_outer(n.clone(), Binding::Let(Val::Scalar(m.extent)), d.value.span);
                continue;
            }
            let v = self.expr(&d.value)?;
            let v = match v {
                Val::Block(b) => b.len,
                v => self.index_of(&v, d.value.span)?,
            };
            if self.lengths_differ(v, m.extent) {
                let (want, have) = (self.size_shown(v), self.size_shown(m.extent));
                let message = format!("`{}` has {want} elements in mode {mode}, and this window {have}", p.name.name);
                let e = Diagnostic::error(codes::SHAPE_MISMATCH, at, message)
                    .with_label(format!("{have} in mode {mode}"))
                    .with_secondary(d.value.span, format!("the parameter: {want}"));
                return self.report(e);
            }
            self.same_length(v, m.extent, "extents", at, None)?;
        }
        Ok(())
    }

    /// Names in a layout's shape that are not known yet are the window's extents.
    fn bind_shape(&mut self, shape: &Expr, view: &View, p: &Param, at: Span) -> ElabResult<()> {
        let parts = match &*shape.kind {
            ExprKind::Tuple(list) => list.iter().collect(),
            ExprKind::Paren(e) => vec![e],
            _ => vec![shape],
        };
        if parts.len() != view.modes.len() {
            let d = Diagnostic::error(
                codes::RANK_MISMATCH,
                at,
                format!(
                    "`{}` has {}, this window {}",
                    p.name.name,
                    count(parts.len(), "mode", "modes"),
                    view.modes.len()
                ),
            )
            .with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        let extents: Vec<Value> = view.modes.iter().map(|m| m.extent).collect();
        for ((e, m), extent) in parts.into_iter().zip(&view.modes).zip(extents) {
            match (&*e.kind, &m.tree) {
                (ExprKind::Tuple(list), Tuple::Node(trees)) if list.len() == trees.len() => {
                    for (e, t) in list.iter().zip(trees) {
                        let extent = self.span_of(t, at);
                        self.bind_name(e, extent);
                    }
                }
                (ExprKind::Tuple(list), tree) => {
                    let parts = |n: usize| count(n, "part", "parts");
                    let have = match tree {
                        Tuple::Leaf(_) => "is a single axis".to_owned(),
                        Tuple::Node(l) => format!("has {}", parts(l.len())),
                    };
                    let want = parts(list.len());
                    let message = format!("`{}` has a mode of {want} here, the window's {have}", p.name.name);
                    let d = Diagnostic::error(codes::WINDOW_LAYOUT, at, message).with_secondary(e.span, "the mode");
                    return self.report(d);
                }
                _ => self.bind_name(e, extent),
            }
        }
        Ok(())
    }

    fn bind_name(&mut self, e: &Expr, extent: Value) {
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
            && !self.names_constant(n)
        {
            self.env.define_outer(n.clone(), Binding::Let(Val::Scalar(extent)), e.span);
        }
    }

    /// A window must have the layout of its parameter: known, or compared when the kernel runs.
    fn same_layout(&mut self, want: &Val, view: &View, p: &Param, at: Span) -> ElabResult<()> {
        let Val::Algebra(want) = want else { return Err(ErrorReported) };
        let Algebra::Layout(want) = &**want else { return Err(ErrorReported) };
        let have = self.layout_of(&view.window, 0);
        let mismatch = |s: &mut Self, why: String| {
            let d = Diagnostic::error(codes::WINDOW_LAYOUT, at, format!("`{}` takes {want}, {why}", p.name.name))
                .with_label(format!("{have}"))
                .with_secondary(p.span, "the parameter")
                .with_help(format!("for windows of any strides leave the layout out: `{}: T[A, B]`", p.name.name));
            s.report(d)
        };
        if view.swizzle.is_some() || view.quantities.len() != 1 {
            return mismatch(self, "this window has more than strides: a swizzle, a table or a ragged edge".into());
        }
        let modes = |l: &Layout| Tuple::Node(l.modes().iter().map(|m| m.shape().clone()).collect());
        if !modes(want).congruent(&modes(&have)) {
            return mismatch(self, format!("this window is {have}"));
        }
        for (k, (w, h)) in want.modes().iter().zip(have.modes()).enumerate() {
            for ((n, d), (m, e)) in w.leaves().into_iter().zip(h.leaves()) {
                let strides = (!m.is(1)).then_some(("stride", &d.scale, &e.scale));
                for (what, x, y) in [Some(("extent", n, m)), strides].into_iter().flatten() {
                    match self.cx.eq(x, y) {
                        Truth::Yes => continue,
                        Truth::No => return mismatch(self, format!("mode {k} of this window has the {what} {y}")),
                        Truth::Unknown => {}
                    }
                    let (a, b) = (self.value_of(x, at), self.value_of(y, at));
                    let cond = self.compare(ptoc_isa::CmpOp::Eq, a, b, at);
                    let data = ptoc_ir::tile::CheckData {
                        code: codes::LAYOUT_CONDITION,
                        message: format!("`{}` has the {what} {{0}} in mode {k}, this window {{1}}", p.name.name),
                        span: at,
                        help: None,
                    };
                    self.check(cond, data, vec![a, b], at)?;
                    self.cx.assume(Condition::Eq(x.clone(), y.clone()));
                }
            }
        }
        Ok(())
    }
}

//! Layouts as values of the language: literals, and the operations of the algebra on them and on windows of tensors.

use super::copies::CopyEnd;
use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::Coord;
use ptoc_ir::tile::Ty;
use ptoc_layout::{Int, IntTuple, Layout, LayoutError, Stride, Swizzle, Tiler, Tuple, Value as Algebra};
use ptoc_syntax::ast::{Arg, BinaryOp, Expr, ExprKind, Ident};
use ptoc_values::Val;

/// Operations that cut, group or reorder the modes of a window: what they do to its identity layout is done to it.
const ON_WINDOWS: &[&str] = &[
    "composition",
    "logical_divide",
    "zipped_divide",
    "tiled_divide",
    "flat_divide",
    "flatten",
    "group",
    "select",
    "take",
];

/// Which operations take a tile that has a layout of its own.
const OF_TILES: &str = "a tile that was declared with a layout is cut by `composition`, the divisions, `modes`, \
    `local_tile` and `local_partition`, which count its rows and columns";

impl Elaborator<'_> {
    /// A `static_assert` that failed has said in the author's words that the sizes do not fit: what follows from it is
    /// not reported again.
    pub(crate) fn assertion_failed(&self) -> bool {
        self.diags.iter().any(|d| d.code == codes::STATIC_ASSERT)
    }

    /// An algebraic refusal as a diagnostic; `args` are the places of the operation's arguments.
    pub(crate) fn layout_error<T>(&mut self, e: LayoutError, span: Span, args: &[Span]) -> ElabResult<T> {
        if self.assertion_failed() {
            return Err(ErrorReported);
        }
        let at = e.arg.and_then(|k| args.get(k)).copied().unwrap_or(span);
        let mode = if e.path.0.is_empty() { String::new() } else { format!("{}: ", e.path) };
        let mut d = Diagnostic::error(ptoc_names::layout_code(e.kind), at, format!("`{}`: {mode}{}", e.op, e.message));
        if !e.path.0.is_empty() {
            d = d.with_label(format!("{} of this", e.path));
        }
        if at != span {
            d = d.with_secondary(span, format!("in this `{}`", e.op));
        }
        if let Some(h) = e.help {
            d = d.with_help(h);
        }
        if let Some(c) = &e.condition {
            d = d.with_help(self.settled_by(c));
        }
        self.report(d)
    }

    /// The value as one of the algebra, if it is one.
    pub(crate) fn algebra_of(&mut self, v: &Val) -> Option<Algebra> {
        Some(match v {
            Val::Algebra(a) => (**a).clone(),
            Val::Int(i) => Algebra::Int(Int::Const(i64::try_from(*i).ok()?)),
            Val::Scalar(x) if self.ty(*x) == Ty::Index => Algebra::Int(self.int_of(*x)),
            Val::Scalar(_) => Algebra::Int(Int::Const(i64::try_from(self.int_const(v)?).ok()?)),
            Val::Bool(b) => Algebra::Bool(*b),
            Val::Hole => Algebra::Keep,
            Val::Word(ptoc_names::builtins::Word::Skip) => Algebra::Skip,
            Val::Tuple(l) => Algebra::Tuple(l.iter().map(|x| self.algebra_of(x)).collect::<Option<_>>()?),
            Val::View(view) => Algebra::Layout(self.layout_of(&view.window, 0)),
            Val::Part(p) => Algebra::Layout(self.part_layout(p)),
            Val::Tile(t) if self.patterns.contains_key(&t.tile) && t.origin.is_none() => {
                let window = self.patterns[&t.tile].clone();
                Algebra::Layout(self.part_layout(&ptoc_values::TilePartition { tile: *t, window, within: None }))
            }
            Val::Tile(t) => Algebra::Layout(self.rows_and_columns(t)?),
            _ => return None,
        })
    }

    /// A value of the algebra as one of the language.
    pub(crate) fn algebra_value(&mut self, a: Algebra, span: Span) -> Val {
        match a {
            Algebra::Int(Int::Const(n)) => Val::Int(i128::from(n)),
            Algebra::Int(n) => Val::Scalar(self.value_of(&n, span)),
            Algebra::Bool(b) => Val::Bool(b),
            Algebra::Keep => Val::Hole,
            Algebra::Skip => Val::Word(ptoc_names::builtins::Word::Skip),
            Algebra::Tuple(l) => Val::Tuple(l.into_iter().map(|x| self.algebra_value(x, span)).collect()),
            other => Val::Algebra(other.into()),
        }
    }

    fn not_algebra<T>(&mut self, v: &Val, at: Span, want: &str) -> ElabResult<T> {
        if matches!(v, Val::Poison) {
            return Err(ErrorReported);
        }
        let d = Diagnostic::error(codes::TYPE_MISMATCH, at, format!("expected {want}, found {}", v.describe()));
        self.report(match v {
            Val::Tile(_) => d.with_help(OF_TILES),
            Val::TileArray(_) => d.with_help("take a tile of it, `tiles[k]`"),
            _ => d,
        })
    }

    /// `shape : stride`
    pub(crate) fn layout_literal(&mut self, shape: &Expr, stride: &Expr, span: Span) -> ElabResult<Val> {
        let s = self.shape_of(shape)?;
        let d = self.stride_of(stride)?;
        match Layout::new(s, d) {
            Ok(l) => Ok(Val::Algebra(Algebra::Layout(l).into())),
            Err(e) => self.layout_error(e, span, &[]),
        }
    }

    /// An integer or nested tuple of integers.
    pub(crate) fn shape_of(&mut self, e: &Expr) -> ElabResult<IntTuple> {
        let v = self.expr(e)?;
        match self.algebra_of(&v).and_then(|a| a.as_ints()) {
            Some(t) => Ok(t),
            None => self.not_algebra(&v, e.span, "an extent or a tuple of extents"),
        }
    }

    fn stride_of(&mut self, e: &Expr) -> ElabResult<Tuple<Stride>> {
        match &*e.kind {
            ExprKind::Paren(a) => self.stride_of(a),
            ExprKind::Tuple(l) => Ok(Tuple::Node(l.iter().map(|x| self.stride_of(x)).collect::<ElabResult<_>>()?)),
            ExprKind::Basis(..) => Ok(Tuple::Leaf(self.basis(e)?)),
            _ => {
                let v = self.expr(e)?;
                match self.algebra_of(&v).and_then(|a| a.as_ints()) {
                    Some(t) => Ok(t.map(&mut |n| Stride::int(n.clone()))),
                    None => self.not_algebra(&v, e.span, "a stride or a tuple of strides"),
                }
            }
        }
    }

    /// `4@1@0`: the unit vectors from the innermost to the outermost.
    fn basis(&mut self, e: &Expr) -> ElabResult<Stride> {
        let ExprKind::Basis(inner, mode) = &*e.kind else {
            let v = self.expr(e)?;
            return match self.algebra_of(&v) {
                Some(Algebra::Int(n)) => Ok(Stride::int(n)),
                _ => self.not_algebra(&v, e.span, "an integer before `@`"),
            };
        };
        let mut stride = self.basis(inner)?;
        if let Some(c) = Coord::from_name(&mode.name) {
            stride.basis.insert(0, ptoc_layout::NAMED + c as usize);
            return Ok(stride);
        }
        let Ok(k) = mode.name.parse::<usize>() else {
            if self.target.has_banks() {
                let near = ptoc_diagnostics::suggest(&mode.name, Coord::ALL.iter().map(|c| c.name()));
                let message = format!("the memory has no coordinate `{}`", mode.name);
                let mut d = Diagnostic::error(codes::PLACE_COORDINATE, mode.span, message)
                    .with_label("not known")
                    .with_note(format!("the coordinates are {}", super::place::coordinates()));
                if let Some(near) = near {
                    d = d.with_suggestion(format!("did you mean `{near}`?"), mode.span, near);
                }
                return self.report(d);
            }
            let d = Diagnostic::error(
                codes::TYPE_MISMATCH,
                mode.span,
                format!("`@{}`: the modes of a coordinate are numbers here", mode.name),
            )
            .with_help("`1@0` steps along coordinate 0, `1@1` along coordinate 1");
            return self.report(d);
        };
        if k >= ptoc_layout::MAX_DEPTH {
            let most = ptoc_layout::MAX_DEPTH;
            let d = Diagnostic::error(
                codes::RANK_MISMATCH,
                mode.span,
                format!("`@{k}`: a coordinate has at most {most} modes, numbered from 0"),
            )
            .with_label("no such mode");
            return self.report(d);
        }
        stride.basis.insert(0, k);
        Ok(stride)
    }

    /// `<t0, t1>`
    pub(crate) fn tiler_literal(&mut self, modes: &[Expr]) -> ElabResult<Val> {
        let modes = modes.iter().map(|e| self.tiler_of(e)).collect::<ElabResult<_>>()?;
        Ok(Val::Algebra(Algebra::Tiler(Tiler::ByMode(modes)).into()))
    }

    fn tiler_of(&mut self, e: &Expr) -> ElabResult<Tiler> {
        let v = self.expr(e)?;
        match self.algebra_of(&v) {
            Some(Algebra::Keep) => Ok(Tiler::Keep),
            Some(Algebra::Tiler(t)) => Ok(t),
            Some(Algebra::Layout(l)) => Ok(Tiler::Layout(l)),
            Some(a) if a.as_ints().is_some() => Ok(Tiler::of_shape(&a.as_ints().expect("just seen"))),
            _ => self.not_algebra(&v, e.span, "an extent, a layout or `_` in a tiler"),
        }
    }

    /// `swizzle<2, 3, 3>`
    pub(crate) fn swizzle_literal(&mut self, args: &[Arg], span: Span) -> ElabResult<Val> {
        let e = self.exactly(args, 3, "swizzle<bits, base, shift>", span)?;
        let mut n = [0i64; 3];
        for (n, e) in n.iter_mut().zip(e) {
            let v = self.expr(e)?;
            let i = self.static_int(&v, e.span, "a field of a swizzle")?;
            *n = i64::try_from(i).unwrap_or(i64::MAX);
        }
        match Swizzle::new(n[0], n[1], n[2]) {
            Ok(s) => Ok(Val::Algebra(Algebra::Swizzle(s).into())),
            Err(e) => self.layout_error(e, span, &[]),
        }
    }

    /// An operation of the algebra; `statics` choose modes: `size<0>(x)` is the size of mode 0.
    pub(crate) fn layout_op(
        &mut self,
        name: &'static str,
        statics: &[Arg],
        args: &[Arg],
        span: Span,
    ) -> ElabResult<Val> {
        self.no_names(args)?;
        let mut values = Vec::new();
        for a in args {
            values.push((self.operand_value(&a.value)?, a.value.span));
        }
        if values.iter().any(|(v, _)| matches!(v, Val::Poison)) {
            return Err(ErrorReported);
        }
        if !statics.is_empty() {
            let Some((v, at)) = values.first().cloned() else {
                return self.error(codes::WRONG_ARGUMENTS, span, format!("`{name}<..>` takes a layout"));
            };
            values[0] = (self.sub_mode(v, statics, at)?, at);
        }
        if let (Some((x, at)), true) = (values.first().cloned(), ON_WINDOWS.contains(&name))
            && let Some(side) = self.windowed(&x, at)?
        {
            return self.window_op(name, &side, &values[1..], span);
        }
        let spans: Vec<Span> = values.iter().map(|v| v.1).collect();
        let mut operands = Vec::new();
        for (v, at) in &values {
            match self.algebra_of(v) {
                Some(a) => operands.push(a),
                None => return self.not_algebra(v, *at, "a layout, a tuple or an integer"),
            }
        }
        if name == "layout" {
            let [Algebra::Layout(_) | Algebra::Composed(_) | Algebra::Window(_)] = &operands[..] else {
                return self.error(codes::WRONG_ARGUMENTS, span, "`layout(x)` takes one layout or tensor");
            };
            let layout = match operands.remove(0) {
                Algebra::Window(w) => Algebra::Layout(w.layout),
                other => other,
            };
            return Ok(Val::Algebra(layout.into()));
        }
        let Some(op) = ptoc_layout::ops::find(name) else { return Err(ErrorReported) };
        if operands.len() < op.arity.0 || operands.len() > op.arity.1 {
            let d = Diagnostic::error(
                codes::WRONG_ARGUMENTS,
                span,
                format!("`{name}` does not take {}", super::labels::count(operands.len(), "argument", "arguments")),
            )
            .with_note(format!("usage: `{}`: {}", op.usage, op.doc));
            return self.report(d);
        }
        match self.algebra(span, |cx| op.call(cx, &operands))? {
            Ok(a) => {
                self.note_tv(op.name, &operands, &a);
                Ok(self.algebra_value(a, span))
            }
            Err(e) => self.layout_error(e.of(op.name), span, &spans),
        }
    }

    /// `f<k, ..>(x)`: mode k of x, and so on inwards.
    fn sub_mode(&mut self, v: Val, statics: &[Arg], at: Span) -> ElabResult<Val> {
        let mut here = match self.algebra_of(&v) {
            Some(a) => a,
            None => return self.not_algebra(&v, at, "a layout or a tuple"),
        };
        for s in statics {
            let k = self.expr(&s.value)?;
            let k = self.static_int(&k, s.value.span, "the number of a mode")?;
            let k = usize::try_from(k).unwrap_or(usize::MAX);
            let (rank, mode) = match &here {
                Algebra::Layout(l) => (l.rank(), l.mode(k).map(Algebra::Layout)),
                Algebra::Tuple(l) => (l.len(), l.get(k).cloned()),
                other => (1, (k == 0).then(|| other.clone())),
            };
            here = match mode {
                Some(m) => m,
                None => {
                    let message = format!("there is no mode {k}: {here} has {rank}");
                    let d = Diagnostic::error(codes::RANK_MISMATCH, s.value.span, message)
                        .with_label("modes are numbered from 0");
                    return self.report(d);
                }
            };
        }
        Ok(self.algebra_value(here, at))
    }

    /// An operation whose effect on the identity layout is its effect on the window.
    fn window_op(&mut self, name: &'static str, side: &CopyEnd, args: &[(Val, Span)], span: Span) -> ElabResult<Val> {
        let Some(op) = ptoc_layout::ops::find(name) else { return Err(ErrorReported) };
        let mut operands = Vec::new();
        for (v, at) in args {
            match self.algebra_of(v) {
                Some(a) => operands.push(a),
                None => return self.not_algebra(v, *at, "a layout, a tiler or an integer"),
            }
        }
        if operands.len() + 1 < op.arity.0 || operands.len() + 1 > op.arity.1 {
            let d = Diagnostic::error(codes::WRONG_ARGUMENTS, span, format!("usage: `{}`", op.usage));
            return self.report(d);
        }
        // A vector composes and divides as a vector, not as a tuple of one mode; but a tiler by mode is for the mode,
        // whatever axes that has.
        let by_mode = |a: &Algebra| matches!(a, Algebra::Tiler(Tiler::ByMode(_)));
        let single = side.window().modes.len() == 1 && !operands.iter().any(by_mode);
        let spans: Vec<Span> = std::iter::once(span).chain(args.iter().map(|a| a.1)).collect();
        let window = self.apply_layout(side.window(), span, |cx, l| {
            let first = if single { l.mode(0).unwrap_or_else(Layout::unit) } else { l.clone() };
            let mut all = vec![Algebra::Layout(first)];
            all.extend(operands.iter().cloned());
            match (op.eval)(cx, &all)? {
                Algebra::Layout(l) if l.is_leaf() => Ok(Layout::of_modes(vec![l])),
                Algebra::Layout(l) => Ok(l),
                other => Err(LayoutError::new(
                    ptoc_layout::ErrorKind::Kind,
                    op.name,
                    format!("gives {}, no layout", other.describe()),
                )),
            }
        })?;
        match window {
            Ok(w) => {
                let mut w = self.settle(&w, span);
                if let ("composition", [Algebra::Layout(tv)]) = (name, &operands[..]) {
                    w.threads = self.tv_layouts.get(tv).cloned();
                }
                Ok(self.of_window(side, w, span))
            }
            Err(e) => self.layout_error(e.of(op.name), span, &spans),
        }
    }

    /// `==` and `!=` of layouts and tuples: the same modes with the same numbers.
    pub(crate) fn algebra_binary(
        &mut self,
        op: BinaryOp,
        a: &Val,
        b: &Val,
        span: Span,
        at: (Span, Span),
    ) -> ElabResult<Val> {
        if !matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            let (v, at) = if matches!(a, Val::Algebra(_) | Val::Tuple(_)) { (a, at.0) } else { (b, at.1) };
            let message = format!("`{}` is not defined on {}", op.symbol(), v.describe());
            let d = Diagnostic::error(codes::UNDEFINED_OPERATION, at, message)
                .with_help("layouts and tuples compare by `==` and `!=`; `size(x)` is a number");
            return self.report(d);
        }
        let x = match self.algebra_of(a) {
            Some(x) => x,
            None => return self.not_algebra(a, at.0, "a layout or a tuple"),
        };
        let y = match self.algebra_of(b) {
            Some(y) => y,
            None => return self.not_algebra(b, at.1, "a layout or a tuple"),
        };
        let equal = x == y;
        if !equal && (symbolic(&x) || symbolic(&y)) {
            let d = Diagnostic::error(
                codes::NOT_CONSTANT,
                span,
                format!("whether {x} equals {y} depends on sizes that are not known here"),
            )
            .with_help("compare what is static: ranks, strides, sizes of tiles");
            return self.report(d);
        }
        Ok(Val::Bool(equal == (op == BinaryOp::Eq)))
    }

    /// Members of layouts, atoms and MMAs: `l.shape`, `atom.C`, `mma.tiler`; `None` if there is no such one.
    pub(crate) fn member_of(&mut self, a: &Algebra, name: &str, span: Span) -> ElabResult<Option<Val>> {
        let member = match (a, name) {
            (Algebra::Layout(l), "shape") => Some(Algebra::ints(l.shape())),
            (Algebra::Layout(l), "stride") => strides(l.stride()),
            (Algebra::Atom(atom), "A") => Some(Algebra::Layout(atom.a.clone())),
            (Algebra::Atom(atom), "B") => Some(Algebra::Layout(atom.b.clone())),
            (Algebra::Atom(atom), "C") => Some(Algebra::Layout(atom.c.clone())),
            (Algebra::Atom(atom), "thr") => Some(Algebra::Layout(atom.thr.clone())),
            (Algebra::Atom(atom), "shape") => Some(Algebra::ints(&IntTuple::flat(&atom.shape))),
            (Algebra::Mma(mma), name) => self.mma_member(mma, name, span)?,
            _ => None,
        };
        Ok(member.map(|m| self.algebra_value(m, span)))
    }

    /// `l.shape`
    pub(crate) fn algebra_member(&mut self, a: &Algebra, name: &Ident) -> ElabResult<Val> {
        match self.member_of(a, &name.name, name.span)? {
            Some(m) => Ok(m),
            None => {
                let message = format!("{} has no `.{}`", a.describe(), name.name);
                let d = Diagnostic::error(codes::UNKNOWN_MEMBER, name.span, message);
                self.report(match a {
                    Algebra::Layout(_) => {
                        d.with_note("a layout has .shape and .stride; size(l), rank(l) are functions")
                    }
                    Algebra::Atom(_) => d.with_note("an atom has .shape, .thr, .A, .B and .C"),
                    Algebra::Mma(_) => d.with_note("a tiled MMA has .tiler, .atom, .threads and .atoms"),
                    _ => d,
                })
            }
        }
    }
}

/// Whether it has numbers that only the launch knows.
fn symbolic(a: &Algebra) -> bool {
    match a {
        Algebra::Int(n) => n.as_const().is_none(),
        Algebra::Tuple(l) => l.iter().any(symbolic),
        Algebra::Layout(l) => !l.is_static(),
        Algebra::Composed(c) => !c.layout.is_static() || c.offset.as_const().is_none(),
        _ => false,
    }
}

fn strides(t: &Tuple<Stride>) -> Option<Algebra> {
    Some(match t {
        Tuple::Leaf(d) => Algebra::Int(d.as_int()?.clone()),
        Tuple::Node(modes) => Algebra::Tuple(modes.iter().map(strides).collect::<Option<_>>()?),
    })
}

//! Types as written: dtypes, tile types, extents; and constants that must be known now.

use super::{ElabResult, Elaborator, ErrorReported, FLOAT_FOR_INTEGER};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{CheckData, Ty, Value};
use ptoc_isa::{BinOp, CmpOp, Loc, Order, TileType};
use ptoc_names::builtins::Word;
use ptoc_syntax::ast::{Arg, Expr, ExprKind, Name};
use ptoc_tensor::DType;
use ptoc_values::{TileBlock, TileSpec, Val};
use std::rc::Rc;

impl Elaborator<'_> {
    /// A dtype.
    pub fn dtype(&mut self, e: &Expr) -> ElabResult<DType> {
        match self.expr(e)? {
            Val::Word(Word::DType(d)) => Ok(d),
            Val::Poison => Err(ErrorReported),
            other => self.error(
                codes::TYPE_MISMATCH,
                e.span,
                format!("expected a dtype such as `f32`, found {}", other.describe()),
            ),
        }
    }

    /// A scalar type: a dtype or `index`.
    pub fn scalar_type(&mut self, e: &Expr) -> ElabResult<Ty> {
        match self.expr(e)? {
            Val::Word(Word::DType(d)) => Ok(Ty::D(d)),
            Val::Word(Word::Index) => Ok(Ty::Index),
            Val::Poison => Err(ErrorReported),
            other => self.error(codes::TYPE_MISMATCH, e.span, format!("expected a type, found {}", other.describe())),
        }
    }

    /// The value that `v` has once the dimensions that the caller fixed are put in.
    pub(crate) fn known_index(&self, v: Value) -> Option<i64> {
        self.known_at(v, 32)
    }

    fn known_at(&self, v: Value, depth: u32) -> Option<i64> {
        if let Some(c) = self.const_index(v) {
            return Some(c);
        }
        if let Some(name) = self.dims.get(&v) {
            return self.bindings.dims.get(name).copied();
        }
        if depth == 0 {
            return None;
        }
        let (op, a, b) = self.facts.definition(v)?;
        let (a, b) = (self.known_at(a, depth - 1)?, self.known_at(b, depth - 1)?);
        Some(match op {
            BinOp::Add => a.checked_add(b)?,
            BinOp::Sub => a.checked_sub(b)?,
            BinOp::Mul => a.checked_mul(b)?,
            BinOp::Div if b != 0 => a.checked_div_euclid(b).map(|q| if b < 0 && a % b != 0 { q - 1 } else { q })?,
            BinOp::Rem if b > 0 => a.rem_euclid(b),
            BinOp::Min => a.min(b),
            BinOp::Max => a.max(b),
            _ => return None,
        })
    }

    /// The dimensions that `v` is computed from; `None` if it depends on something else as well.
    fn dims_of(&self, v: Value, out: &mut Vec<Name>, depth: u32) -> Option<()> {
        if self.const_index(v).is_some() {
            return Some(());
        }
        if let Some(n) = self.dims.get(&v) {
            if !out.contains(n) {
                out.push(n.clone());
            }
            return Some(());
        }
        if depth == 0 {
            return None;
        }
        let (_, a, b) = self.facts.definition(v)?;
        self.dims_of(a, out, depth - 1)?;
        self.dims_of(b, out, depth - 1)
    }

    /// Whether it is computed from dimensions alone.
    pub fn is_dimensional(&self, v: Value) -> bool {
        self.dims_of(v, &mut Vec::new(), 32).is_some()
    }

    /// An integer that must be known at compile time; `what` says for what ("the number of rows").
    pub fn static_int(&mut self, v: &Val, span: Span, what: &str) -> ElabResult<i128> {
        if let Some(i) = self.int_const(v) {
            return Ok(i);
        }
        match v {
            Val::Poison => Err(ErrorReported),
            Val::Scalar(x) if self.ty(*x) == Ty::Index => {
                let mut names = Vec::new();
                if self.dims_of(*x, &mut names, 32).is_none() {
                    let d =
                        Diagnostic::error(codes::NOT_CONSTANT, span, format!("{what} must be known at compile time"));
                    let argument = self.b.kernel().scalars.iter().find(|s| s.value == *x).map(|s| s.name.clone());
                    // Of a program, it is what the check waits for; else whatever else it sizes is mended with it.
                    let told = |n| self.waits.iter().any(|(w, _)| w == n) || self.told_arguments.contains(n);
                    if argument.as_ref().is_some_and(told) {
                        return Err(ErrorReported);
                    }
                    self.told_arguments.extend(argument.clone());
                    return self.report(match argument {
                        Some(name) => d
                            .with_label(format!("`{name}` is an argument, known when the kernel is launched"))
                            .with_help(format!("make it a static parameter: `kernel name<const {name} = ..>(..)`")),
                        None => d.with_label(self.computed_late()),
                    });
                }
                match self.known_index(*x) {
                    Some(i) => {
                        for n in names {
                            if let Some(value) = self.bindings.dims.get(&n)
                                && !self.specialised.iter().any(|(s, _)| *s == n)
                            {
                                self.specialised.push((n, *value));
                            }
                        }
                        Ok(i128::from(i))
                    }
                    None => {
                        for n in names {
                            if !self.bindings.dims.contains_key(&n) && !self.waits.iter().any(|(w, _)| *w == n) {
                                self.waits.push((n, span));
                            }
                        }
                        Err(ErrorReported)
                    }
                }
            }
            other => {
                let message = format!("{what} must be an integer constant, found {}", other.describe());
                let d = Diagnostic::error(codes::NOT_CONSTANT, span, message);
                self.report(match other {
                    Val::Float(_) => d.with_help(FLOAT_FOR_INTEGER),
                    _ => d,
                })
            }
        }
    }

    /// The label of what is no constant.
    pub(crate) fn computed_late(&self) -> &'static str {
        match (self.in_program, self.loops.is_empty()) {
            (true, _) => "computed while the program runs",
            (false, true) => "computed when the kernel runs",
            (false, false) => "computed when the kernel runs, as everything in a loop is",
        }
    }

    /// A capacity in 1..2^31.
    pub(crate) fn static_extent(&mut self, v: &Val, span: Span, what: &str) -> ElabResult<u32> {
        let i = self.static_int(v, span, what)?;
        if (1..=i128::from(i32::MAX)).contains(&i) {
            return Ok(i as u32);
        }
        let message = format!("{i}, and must be 1 to {}", i32::MAX);
        // It is a dimension's number in this instance: whatever else that sizes is mended with it.
        let same = |d: &Diagnostic| d.code == codes::BAD_EXTENT && d.message.ends_with(&message);
        if matches!(v, Val::Scalar(_)) && self.diags.iter().any(same) {
            return Err(ErrorReported);
        }
        self.error(codes::BAD_EXTENT, span, format!("{what} is {message}"))
    }

    /// An extent of a tile type: capacity and valid length.
    pub(crate) fn extent(&mut self, e: &Expr, what: &str) -> ElabResult<(u32, Value)> {
        let v = self.expr(e)?;
        if let Val::Block(b) = &v {
            return Ok((b.cap, b.len));
        }
        if self.int_const(&v) == Some(0) {
            let d = Diagnostic::error(codes::EMPTY_TILE, e.span, format!("{what} is 0"))
                .with_label("no elements")
                .with_help("a tile's capacity is at least 1; its valid shape may be empty");
            return self.report(d);
        }
        let n = self.static_extent(&v, e.span, what)?;
        Ok((n, self.idx(i64::from(n))))
    }

    /// `Loc<dtype, rows, cols, ..>`
    pub(crate) fn tile_type(&mut self, loc: Loc, args: &[Arg], span: Span) -> ElabResult<TileSpec> {
        let mut positional = Vec::new();
        let (mut valid, mut layout, mut pad) = (None, None, None);
        for a in args {
            match &a.name {
                None => positional.push(&a.value),
                Some(n) if n.name == "valid" => valid = Some(&a.value),
                Some(n) if n.name == "layout" => layout = Some(&a.value),
                Some(n) if n.name == "pad" => pad = Some(self.pad_value(&a.value)?),
                Some(n) if let Some(d) = ptoc_names::resolve::otherwise(&n.name, n.span) => return self.report(d),
                Some(n) => {
                    let d = Diagnostic::error(
                        codes::BAD_TILE_TYPE,
                        n.span,
                        format!("a tile type has no argument `{}`", n.name),
                    )
                    .with_note("it has `valid`, `layout` and `pad`");
                    return self.report(d);
                }
            }
        }
        let [dtype, rows, cols] = positional[..] else {
            let d =
                Diagnostic::error(codes::BAD_TILE_TYPE, span, format!("`{loc}<..>` takes a dtype, rows and columns"))
                    .with_label(format!("{} given", positional.len()))
                    .with_help(format!("for example `{loc}<f32, 16, 64>`"));
            return self.report(d);
        };
        if let ExprKind::Int(_) = &*dtype.kind {
            let d = Diagnostic::error(codes::BAD_TILE_TYPE, dtype.span, "a tile type begins with its dtype")
                .with_label("no dtype")
                .with_help(format!("the order is dtype, rows, columns: `{loc}<f32, 16, 64>`"));
            return self.report(d);
        }
        let written = names_dtype(dtype);
        let dtype = self.dtype(dtype)?;
        let (rows, len_r) = self.extent(rows, "the number of rows")?;
        let (cols, len_c) = self.extent(cols, "the number of columns")?;
        let explicit = valid.is_some();
        let valid =
            match valid {
                None => (len_r, len_c),
                Some(e) => {
                    let message = "`valid` is a pair (rows, columns)";
                    let ExprKind::Tuple(parts) = &*e.kind else {
                        let d = Diagnostic::error(codes::BAD_TILE_TYPE, e.span, message)
                            .with_label("no pair")
                            .with_help(format!("for example `valid = ({rows}, {cols})`"));
                        return self.report(d);
                    };
                    let [r, c] = &parts[..] else {
                        let d = Diagnostic::error(codes::BAD_TILE_TYPE, e.span, message)
                            .with_label(super::labels::count(parts.len(), "part", "parts"));
                        return self.report(d);
                    };
                    let (rv, cv) = (self.length(r)?, self.length(c)?);
                    self.require_valid(rv, rows, "rows", r.span)?;
                    self.require_valid(cv, cols, "columns", c.span)?;
                    (rv, cv)
                }
            };
        // Who says where elements lie has said how long lines are, too.
        let written_layout = layout.is_some();
        let (order, layout) = match layout {
            Some(e) => self.tile_layout(e, rows, cols)?,
            None => (ptoc_isa::default_order(loc, dtype, rows, cols), None),
        };
        let declared = TileType { loc, dtype, rows, cols, order, layout };
        // What is wrong with more than the size is told of the type as it was declared.
        let size = |v: &ptoc_isa::TypeViolation| matches!(v.code(), codes::ROW_ALIGNMENT | codes::FRACTAL_SIZE);
        let padded = !written_layout && ptoc_isa::check_tile_type(self.target, declared).iter().all(size);
        let ty = if padded { ptoc_isa::storage_of(self.target, declared) } else { declared };
        let before = self.diags.len();
        let checked = self.check_tile_type_of(ty, explicit.then_some(valid), span, written);
        let sizes = |d: &&mut Diagnostic| matches!(d.code, codes::ROW_ALIGNMENT | codes::FRACTAL_SIZE);
        if written_layout && self.target.pads_tiles() {
            for d in self.diags[before..].iter_mut().filter(sizes) {
                let help = "or leave `layout` out: then lines and boxes are made whole, and what the program sees \
                    stays as declared";
                d.fixes.push(ptoc_diagnostics::Fix::advice(help));
            }
        }
        checked?;
        Ok(TileSpec { ty, rows, cols, valid, count: 1, array: false, pad: pad.flatten() })
    }

    /// `pad = Zero`
    fn pad_value(&mut self, e: &Expr) -> ElabResult<Option<f64>> {
        match self.expr(e)? {
            Val::Word(Word::Oob(ptoc_isa::Oob::Zero)) => Ok(Some(0.0)),
            Val::Word(Word::Oob(ptoc_isa::Oob::Undefined)) => Ok(None),
            Val::Poison => Err(ErrorReported),
            other => {
                let d = Diagnostic::error(
                    codes::BAD_TILE_TYPE,
                    e.span,
                    format!("`pad` is a word for what fills a tile, found {}", other.describe()),
                )
                .with_label(other.describe())
                .with_help("`pad = Zero` fills what lies beyond the valid shape with zeros; `Undefined` leaves it");
                self.report(d)
            }
        }
    }

    /// `layout = swizzle<2, 3, 3>`, `layout = (16, 32):(32, 1)`: where element (row, column) lies.
    /// PTO's own orders are orders, however they are spelled.
    fn tile_layout(&mut self, e: &Expr, rows: u32, cols: u32) -> ElabResult<(Order, Option<ptoc_layout::TileLayout>)> {
        use ptoc_layout::{Composed, Int, IntTuple, Layout, Value as Algebra};
        let (r, c) = (i64::from(rows), i64::from(cols));
        const FORMS: &str = "for example `DN` (column-major), `swizzle<2, 3, 3>` or `(16, 32):(1, 16)`";
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
            && !self.names_constant(n)
            && ptoc_names::builtins::word(n).is_none()
        {
            let d = ptoc_names::resolve::otherwise(n, e.span).unwrap_or_else(|| {
                Diagnostic::error(codes::BAD_TILE_TYPE, e.span, format!("`{n}` is no layout of a tile"))
                    .with_label("not known")
            });
            return self.report(d.with_help(FORMS));
        }
        let v = self.expr(e)?;
        match v {
            Val::Poison => return Err(ErrorReported),
            Val::Word(Word::Order(order)) => return Ok((order, None)),
            _ => {}
        }
        let function = match self.algebra_of(&v) {
            // A swizzle alone permutes the rows of an ordinary tile.
            Some(Algebra::Swizzle(swizzle)) => {
                let strides = IntTuple::flat(&[c, 1]).map(&mut |n| ptoc_layout::Stride::int(n.clone()));
                match Layout::new(IntTuple::flat(&[r, c]), strides) {
                    Ok(layout) => Algebra::Composed(Composed { swizzle, offset: Int::ZERO, layout }),
                    Err(e2) => return self.layout_error(e2, e.span, &[]),
                }
            }
            Some(a @ (Algebra::Layout(_) | Algebra::Composed(_))) => a,
            _ => {
                let d = Diagnostic::error(
                    codes::BAD_TILE_TYPE,
                    e.span,
                    format!("`layout` is a layout or a swizzle, found {}", v.describe()),
                )
                .with_help(FORMS);
                return self.report(d);
            }
        };
        match ptoc_layout::TileLayout::new(&function) {
            Ok(l) if (l.rows(), l.cols()) == (r, c) => {
                let strides = [0, 1].map(|mode| match (l.leaves(mode), l.swizzle(), l.base()) {
                    (&[(_, stride)], None, 0) => Some(stride),
                    _ => None,
                });
                Ok(match strides {
                    [Some(down), Some(1)] if down == c => (Order::Nd, None),
                    [Some(1), Some(across)] if across == r => (Order::Dn, None),
                    // It has no order then, and equal types are to be equal.
                    _ => (Order::Nd, Some(l)),
                })
            }
            Ok(l) => {
                let message = format!("the tile has {rows} x {cols} elements, its layout {} x {}", l.rows(), l.cols());
                let d = Diagnostic::error(codes::LAYOUT_SHAPE, e.span, message).with_label(l.to_string());
                self.report(d)
            }
            Err(e2) => self.layout_error(e2, e.span, &[]),
        }
    }

    /// A valid length: a block's or an `index`.
    pub(crate) fn length(&mut self, e: &Expr) -> ElabResult<Value> {
        match self.expr(e)? {
            Val::Block(b) => Ok(b.len),
            v => self.index_of(&v, e.span),
        }
    }

    /// `0 <= len <= cap` must hold.
    pub(crate) fn require_valid(&mut self, len: Value, cap: u32, what: &str, span: Span) -> ElabResult<()> {
        let (zero, cap) = (self.idx(0), self.idx(i64::from(cap)));
        if self.facts.min_of(len).is_none_or(|m| m < 0) {
            let message = format!("a valid shape of {{1}} {what} is negative");
            self.require_le(zero, len, codes::EXCEEDS_CAPACITY, message, span)?;
        }
        if self.facts.le_certain(len, cap, 0) {
            return Ok(());
        }
        let message = format!("{{0}} valid {what} exceed the capacity of {{1}}");
        let plain = what.split(' ').next().unwrap_or(what);
        let help = Some(format!("declare the tile with at least {{0}} {plain}, or write a smaller part of it"));
        let cond = self.compare(CmpOp::Le, len, cap, span);
        self.check(cond, CheckData { code: codes::EXCEEDS_CAPACITY, message, span, help }, vec![len, cap], span)?;
        self.facts.le(len, cap, 0);
        Ok(())
    }

    /// The target has the location; which one it lacks is told once in a kernel, and all of the matrix unit's together.
    pub(crate) fn check_location(&mut self, loc: Loc, span: Span) -> ElabResult<()> {
        let Err(missing) = ptoc_isa::check_there(self.target, loc) else { return Ok(()) };
        let told = |l: &Loc| *l == loc || missing.of_matrix && ptoc_isa::of_matrix(*l);
        if !self.absent.iter().any(told) {
            self.absent.push(loc);
            self.diags.push(missing.diagnostic(self.b.kernel().host, span));
        }
        Err(ErrorReported)
    }

    /// A dtype that the target does not have, as `d` says: told once in a kernel, and where a parameter of the kernel
    /// says it, there; not if the author has written the dtype itself.
    pub(crate) fn absent_dtype<T>(&mut self, dtype: DType, d: Diagnostic, written: bool) -> ElabResult<T> {
        if self.absent_dtypes.contains(&dtype) {
            return Err(ErrorReported);
        }
        self.absent_dtypes.push(dtype);
        let parameter = self.parameters.iter().find(|p| p.1 == dtype && !written);
        let d = match (parameter, d.span) {
            (Some((name, _, span)), Some(at)) => ptoc_isa::absent_parameter(self.target, name, dtype, (*span, at)),
            _ => d,
        };
        self.absent_places.push((dtype, d.span));
        self.report(d)
    }

    /// PTO's rules for the shape and dtype of a tile on the target.
    pub(crate) fn check_tile_type(&mut self, ty: TileType, span: Span) -> ElabResult<()> {
        self.check_tile_type_of(ty, None, span, false)
    }

    /// The same, of a tile whose valid shape may be said; `written`: its dtype is, too.
    fn check_tile_type_of(
        &mut self,
        ty: TileType,
        valid: Option<(Value, Value)>,
        span: Span,
        written: bool,
    ) -> ElabResult<()> {
        self.check_location(ty.loc, span)?;
        let violations = ptoc_isa::check_tile_type(self.target, ty);
        if violations.is_empty() {
            return Ok(());
        }
        let subject = format!("`{ty}`");
        if ty.loc == Loc::Acc {
            self.refused.push(ty.dtype);
        }
        let known = |v: Option<Value>| v.and_then(|v| self.const_index(v));
        let (rows, cols) = (known(valid.map(|v| v.0)), known(valid.map(|v| v.1)));
        for v in violations {
            let absent = matches!(v.rule, ptoc_isa::TypeRule::DTypeAbsent { .. });
            let d = v.holding(rows, cols).diagnostic(&subject, span);
            let _: ElabResult<()> = if absent { self.absent_dtype(ty.dtype, d, written) } else { self.report(d) };
        }
        Err(ErrorReported)
    }

    /// The tile type that `e` denotes, perhaps an array `T[n]`.
    pub(crate) fn tile_spec(&mut self, e: &Expr) -> ElabResult<TileSpec> {
        if let ExprKind::Index(base, dims) = &*e.kind
            && let ExprKind::Name(n) = &*base.kind
            && DType::from_name(n).is_some()
        {
            let d = Diagnostic::error(codes::BAD_TILE_TYPE, e.span, "this is the type of a tensor, not of a tile")
                .with_label("names no location");
            let d = match &dims[..] {
                [_, _] => d.with_help(format!("a tile type is `Location<dtype, rows, cols>`: `Vec<{n}, ..>`")),
                _ => d.with_help("a tile type is `Location<dtype, rows, cols>`, for example `Vec<f32, 16, 64>`"),
            };
            return self.report(d);
        }
        match self.expr(e)? {
            Val::TileType(t) => Ok((*t).clone()),
            Val::Poison => Err(ErrorReported),
            other => {
                let d = Diagnostic::error(
                    codes::BAD_TILE_TYPE,
                    e.span,
                    format!("expected a tile type, found {}", other.describe()),
                )
                .with_help("a tile type is `Location<dtype, rows, cols>`, for example `Vec<f32, 16, 64>`");
                self.report(d)
            }
        }
    }

    /// A tile type that the compiler chooses: rounded up to a legal one.
    pub(crate) fn hidden_type(&self, loc: Loc, dtype: DType, rows: u32, cols: u32) -> TileType {
        let (r, c) = ptoc_isa::round_up_to_legal(self.target, loc, dtype, rows, cols);
        TileType { loc, dtype, rows: r, cols: c, order: self.hidden_order(loc, dtype, rows, cols), layout: None }
    }

    fn hidden_order(&self, loc: Loc, dtype: DType, rows: u32, cols: u32) -> Order {
        if matches!(loc, Loc::Vec | Loc::Lanes) && cols == 1 {
            ptoc_isa::default_order(loc, dtype, rows.max(2), 1)
        } else {
            Order::Nd
        }
    }

    /// A block without a place: an extent.
    pub(crate) fn extent_val(&self, cap: u32, len: Value) -> Val {
        Val::Block(Rc::new(TileBlock { cap, len, place: None }))
    }
}

/// Whether it is the name of a dtype itself, and not of a parameter.
pub(super) fn names_dtype(e: &Expr) -> bool {
    matches!(&*e.kind, ExprKind::Name(n) if DType::from_name(n).is_some())
}

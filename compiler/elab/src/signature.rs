//! A kernel's signature: static parameters, dimensions, arguments, `where`; and the instance that results.

use super::tensors::ArgLayout;
use super::types::names_dtype;
use super::{ElabResult, Elaborator, ErrorReported, PlaceMode};
use crate::Bindings;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Affine, Builder, Elem, Stored, TensorData, TensorDir, TensorId, Ty, Value};
use ptoc_isa::{BinOp, Target};
use ptoc_layout::Condition;
use ptoc_names::builtins::Word;
use ptoc_names::{ItemId, Modules};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use ptoc_values::{Binding, Val, View};
use rustc_hash::{FxHashMap, FxHashSet};

/// One extent of a tensor argument, as the launch must find it.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgDim {
    /// Binds (or must equal) this dimension.
    Dim(Name),
    /// Must be this number.
    Const(i64),
    /// Must be this value of the prologue.
    Computed(Value),
}

impl ArgDim {
    /// Whether it is this dimension.
    pub fn is_dim(&self, name: &str) -> bool {
        matches!(self, ArgDim::Dim(n) if n == name)
    }
}

/// A tensor argument.
#[derive(Clone, Debug)]
pub struct TensorArg {
    /// The name.
    pub name: Name,
    /// In the kernel.
    pub id: TensorId,
    /// Element type.
    pub dtype: DType,
    /// Use.
    pub dir: TensorDir,
    /// Extents of the array, one for each mode.
    pub dims: Vec<ArgDim>,
    /// How it is stored, where that is not in C order.
    pub layout: Option<ArgLayout>,
    /// The declaration.
    pub span: Span,
}

/// A scalar argument.
#[derive(Clone, Debug)]
pub struct ScalarArg {
    /// The name.
    pub name: Name,
    /// The type.
    pub ty: Ty,
    /// The kernel has a default for it.
    pub has_default: bool,
    /// A value from `-D`, as bits.
    pub given: Option<u64>,
    /// The declaration.
    pub span: Span,
}

impl<'a> Elaborator<'a> {
    /// Of one kernel or program for a target, with nothing elaborated yet.
    pub fn new(modules: &'a Modules, target: &'a Target, bindings: &'a Bindings, id: ItemId) -> Elaborator<'a> {
        let (name, span) = match &modules.item(id).kind {
            ItemKind::Kernel(k) | ItemKind::Program(k) => (k.name.name.clone(), k.name.span),
            _ => ("?".into(), Span::default()),
        };
        let b = Builder::new(name, span, target.name.as_str());
        let env = ptoc_values::Env::new(b.scope_cell());
        Elaborator {
            modules,
            target,
            bindings,
            b,
            diags: Vec::new(),
            deferred: Vec::new(),
            env,
            facts: ptoc_ir::analysis::facts::Facts::default(),
            valid: FxHashMap::default(),
            valid_reads: Vec::new(),
            module: id.module,
            calls: Vec::new(),
            around: Vec::new(),
            arguments: Vec::new(),
            inlined: Vec::new(),
            deduced: Vec::new(),
            captured_variables: Vec::new(),
            exits: Vec::new(),
            loops: Vec::new(),
            stages: 1,
            grid_done: None,
            lets: FxHashMap::default(),
            unknown: None,
            stored: Vec::new(),
            worked: false,
            in_prologue: true,
            in_program: matches!(modules.item(id).kind, ItemKind::Program(_)),
            undecided: false,
            failing: None,
            fuel: super::fuel::Fuel::default(),
            specialised: Vec::new(),
            waits: Vec::new(),
            unbounded: None,
            dims: FxHashMap::default(),
            declared: FxHashMap::default(),
            place: PlaceMode::Mixed,
            rest: None,
            vector: None,
            operand_names: Vec::new(),
            given_scratch: None,
            refused_places: Vec::new(),
            sync: super::sync::SyncState::default(),
            refused: Vec::new(),
            absent: Vec::new(),
            absent_dtypes: Vec::new(),
            absent_places: Vec::new(),
            parameters: Vec::new(),
            elsewhere: false,
            pending_gm: None,
            wrong_sizes: Vec::new(),
            told_arguments: Vec::new(),
            loads: Vec::new(),
            patterns: FxHashMap::default(),
            pads: FxHashMap::default(),
            transposes: FxHashMap::default(),
            padded_loads: FxHashMap::default(),
            cx: ptoc_layout::Cx::default(),
            ints: FxHashMap::default(),
            ints_log: Vec::new(),
            rest_uses: Vec::new(),
            tv_layouts: FxHashMap::default(),
            thread_uses: Vec::new(),
            mma_uses: Vec::new(),
            constant_loops: FxHashMap::default(),
            where_failed: false,
            size_names: FxHashMap::default(),
            size_origins: FxHashMap::default(),
            names: Vec::new(),
        }
    }

    /// Enters the frame of a kernel, whose declaration is at `item`.
    pub fn begin_kernel(&mut self, item: Span, k: &KernelItem) {
        self.env.push_frame();
        self.sync.item = Some(Span::new(item.file, item.start, item.start));
        stored(&k.body, &mut self.stored);
    }

    /// Ends what [`Elaborator::begin_kernel`] began: checks that need the whole kernel.
    pub fn finish_kernel(&mut self) {
        self.finish_places();
        self.finish_pins();
        if !self.diags.iter().any(Diagnostic::is_error) {
            self.diags.append(&mut self.deferred);
            self.warn_of_uncovered();
            self.warn_of_other_threads();
            self.warn_of_idle_threads();
        }
        self.env.pop_frame();
        self.names = self.name_facts();
    }

    /// Dimensions, scalar arguments, tensors; all are bound.
    pub fn arguments(&mut self, k: &KernelItem) -> (Vec<TensorArg>, Vec<ScalarArg>, ElabResult<()>) {
        self.dimensions(k);
        let mut failed = false;
        let mut scalars = Vec::new();
        for p in k.params.iter().filter(|p| !is_tensor(&p.ty)) {
            match self.scalar_argument(p) {
                Ok(s) => scalars.push(s),
                Err(_) => {
                    failed = true;
                    self.env.define(p.name.name.clone(), Binding::Let(Val::Poison), p.name.span);
                }
            }
        }
        self.where_dimensions(k);
        let mut tensors = Vec::new();
        for p in k.params.iter().filter(|p| is_tensor(&p.ty)) {
            let argument = self.is_absent(p).and_then(|absent| match absent {
                false => self.tensor_argument(p).map(Some),
                true => {
                    let name = p.name.name.clone();
                    self.env.define(name.clone(), Binding::Let(Val::Absent(name)), p.name.span);
                    Ok(None)
                }
            });
            match argument {
                Ok(t) => tensors.extend(t),
                Err(_) => {
                    failed = true;
                    self.env.define(p.name.name.clone(), Binding::Let(Val::Poison), p.name.span);
                }
            }
        }
        (tensors, scalars, if failed { Err(ErrorReported) } else { Ok(()) })
    }

    /// Bare names in tensor types that nothing else defines are dimensions.
    pub fn dimensions(&mut self, k: &KernelItem) {
        let params: FxHashSet<&Name> = k.params.iter().map(|p| &p.name.name).collect();
        for p in &k.params {
            let ExprKind::Index(_, dims) = &*p.ty.kind else { continue };
            for d in dims {
                self.dimensions_in(&d.value, &params);
            }
        }
    }

    /// A bare name, or the bare names in the shape of a layout.
    fn dimensions_in(&mut self, e: &Expr, params: &FxHashSet<&Name>) {
        let n = match &*e.kind {
            ExprKind::Name(n) => n,
            ExprKind::Layout(e, _) | ExprKind::Paren(e) => return self.dimensions_in(e, params),
            ExprKind::Tuple(list) => return list.iter().for_each(|e| self.dimensions_in(e, params)),
            _ => return,
        };
        if params.contains(n) || self.names_constant(n) || self.env.get(n).is_some() || is_word(n) {
            return;
        }
        let v = match self.bindings.fixed.get(n) {
            Some(c) => self.idx(*c),
            None => {
                let v = self.b.dim(n.clone(), e.span);
                self.dims.insert(v, n.clone());
                // Where data and blocks are is known when a kernel is compiled, and so is every size.
                if self.target.has_banks() {
                    let _ = self.static_int(&Val::Scalar(v), e.span, "a dimension");
                }
                v
            }
        };
        self.facts.ge_const(v, 0);
        self.facts.dimension(v);
        self.env.define(n.clone(), Binding::Let(Val::Scalar(v)), e.span);
    }

    /// Whether `n` is a constant of the module. Other items are no extents, so a dimension may have their name.
    pub(crate) fn names_constant(&self, n: &Name) -> bool {
        let item = self.modules.get(self.module).scope.get(n);
        item.is_some_and(|id| matches!(self.modules.item(*id).kind, ItemKind::Const(_)))
    }

    /// `where NB == ceil_div(N, B1)` defines `NB`, if no shape binds it by bare use.
    pub fn where_dimensions(&mut self, k: &KernelItem) {
        let params: FxHashSet<&Name> = k.params.iter().map(|p| &p.name.name).collect();
        for e in &k.wheres {
            let ExprKind::Binary(BinaryOp::Eq, a, b) = &*e.kind else { continue };
            for (name, value) in [(a, b), (b, a)] {
                let ExprKind::Name(n) = &*name.kind else { continue };
                if params.contains(n) || self.env.get(n).is_some() || self.names_constant(n) || is_word(n) {
                    continue;
                }
                let v = self.expr(value).and_then(|v| self.index_of(&v, value.span));
                let v = v.map_or(Val::Poison, Val::Scalar);
                self.env.define(n.clone(), Binding::Let(v), name.span);
                break;
            }
        }
    }

    /// What functions take and the launch of a kernel does not.
    fn value_of_functions(&mut self, p: &Param) -> ElabResult<()> {
        let n = &p.name.name;
        let (what, help) = match &*p.ty.kind {
            ExprKind::FnType => ("a function", format!("make it a static parameter: `kernel name<fn {n}>(..)`")),
            ExprKind::Static(..) => {
                ("a tile", format!("write `{n}: in f32[M, N]` and load its windows: `Vec({n}.tile(i, j))`"))
            }
            ExprKind::Index(..) => {
                ("an array of tiles", "declare it in the kernel: `let t = tile Vec<f32, 16, 64>[2];`".into())
            }
            ExprKind::Tuple(_) if p.ty.record_type().is_some() => (
                "a record",
                format!(
                    "pass its fields one by one; one of constants is `kernel name<const {n} = (x = 1, y = 2)>(..)`"
                ),
            ),
            _ => return Ok(()),
        };
        let message = format!("the arguments of a launch are tensors and scalars, `{n}` is {what}");
        let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, p.ty.span, message);
        self.report(d.with_label(format!("{what}, for parameters of functions")).with_help(help))
    }

    /// A scalar parameter of a kernel: its type, its default, and what the launch gives.
    pub fn scalar_argument(&mut self, p: &Param) -> ElabResult<ScalarArg> {
        self.value_of_functions(p)?;
        if let Some((dir, at)) = &p.dir {
            let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, p.ty.span, "a scalar argument has no direction")
                .with_label("a scalar: a tensor has extents")
                .with_secondary(*at, "for tensors only");
            let end = Span::new(p.ty.span.file, p.ty.span.end, p.ty.span.end);
            let d = d.with_fix("for a tensor, give its extents", end, "[N]");
            let word = Span::new(at.file, at.start, p.ty.span.start);
            return self.report(match dir {
                Dir::In => d.with_fix("for a scalar, leave the direction out", word, ""),
                _ => d,
            });
        }
        let ty = self.scalar_type(&p.ty)?;
        let given = match self.bindings.defs.get(&p.name.name).cloned() {
            Some(e) => {
                let v = self.expr(&e)?;
                let x = self.scalar_of(&v, ty, e.span)?;
                self.b.const_of(x).map(|c| c.bits)
            }
            None => None,
        };
        let value = self.b.scalar_param(p.name.name.clone(), ty, p.name.span);
        if let Some(e) = &p.default {
            let v = self.expr(e)?;
            let x = self.scalar_of(&v, ty, e.span)?;
            self.b.set_scalar_default(value, x);
        }
        self.env.define(p.name.name.clone(), Binding::Let(Val::Scalar(value)), p.name.span);
        Ok(ScalarArg { name: p.name.name.clone(), ty, has_default: p.default.is_some(), given, span: p.span })
    }

    fn tensor_argument(&mut self, p: &Param) -> ElabResult<TensorArg> {
        let Some((dir, _)) = p.dir else {
            let d = Diagnostic::error(
                codes::BAD_PARAMETER_TYPE,
                p.ty.span,
                format!("tensor `{}` needs a direction", p.name.name),
            )
            .with_label("`in`, `out` or `inout`?")
            .with_fix(
                "say how it is used",
                Span::new(p.ty.span.file, p.ty.span.start, p.ty.span.start),
                if self.stored.contains(&p.name.name) { "out " } else { "in " },
            );
            return self.report(d);
        };
        let ExprKind::Index(base, dims) = &*p.ty.kind else { return Err(ErrorReported) };
        let dtype = self.dtype(base)?;
        if let Some(d) = ptoc_isa::check_tensor_dtype(self.target, dtype, base.span) {
            return self.absent_dtype(dtype, d, names_dtype(base));
        }
        let mut values = Vec::new();
        for d in dims {
            values.push((self.expr(&d.value)?, d.value.span));
        }
        let dir = match dir {
            Dir::In => TensorDir::In,
            Dir::Out => TensorDir::Out,
            Dir::InOut => TensorDir::InOut,
        };
        let layout = self.layout_in_type(&values)?;
        let mut stored = None;
        let mut extents = Vec::new();
        match &layout {
            Some(l) => {
                let known = self.check_layout(l, (&p.name.name, dtype, dir, p.ty.span))?;
                let (window, length) = self.stored_window(l, known.as_ref(), p.span)?;
                extents.extend(window.modes.iter().map(|m| (m.extent, p.ty.span)));
                stored = Some((window, length, l.swizzle));
            }
            None => {
                for (v, at) in &values {
                    extents.push((self.index_of(v, *at)?, *at));
                }
            }
        }
        let mut args = Vec::new();
        for (k, (v, at)) in extents.iter().enumerate() {
            self.facts.ge_const(*v, 0);
            let bare = layout.is_some() || dims.get(k).is_some_and(|d| matches!(&*d.value.kind, ExprKind::Name(_)));
            args.push(match (self.dims.get(v).filter(|_| bare), self.const_index(*v)) {
                (Some(n), _) => ArgDim::Dim(n.clone()),
                (_, Some(c)) => {
                    if c < 0 {
                        return self.error(codes::BAD_EXTENT, *at, format!("an extent of {c}"));
                    }
                    ArgDim::Const(c)
                }
                _ => ArgDim::Computed(*v),
            });
        }
        let shape: Vec<Value> = match &stored {
            Some((_, length, _)) => vec![*length],
            None => extents.iter().map(|e| e.0).collect(),
        };
        self.facts.tensor(extents.iter().map(|e| e.0).collect());
        let id = self.b.tensor(TensorData {
            name: p.name.name.clone(),
            dtype,
            dir,
            shape: shape.clone(),
            optional: p.default.is_some(),
            place: None,
            disjoint: false,
            stored: stored.as_ref().map(|(window, _, swizzle)| Stored {
                extents: window.leaves().into_iter().map(|l| l.extent).collect(),
                at: Affine { start: window.starts[0], strides: window.leaves().into_iter().map(|l| l.by[0]).collect() },
                swizzle: *swizzle,
            }),
            span: p.name.span,
        });
        let view = match stored {
            Some((window, _, swizzle)) => {
                let view = View { tensor: id, dtype, elem: Elem::Whole(dtype), swizzle, window };
                self.declared.insert(id, view.clone());
                view
            }
            None => self.whole(id, dtype, &shape, p.span),
        };
        self.env.define(p.name.name.clone(), Binding::Let(Val::View(view.into())), p.name.span);
        Ok(TensorArg { name: p.name.name.clone(), id, dtype, dir, dims: args, layout, span: p.span })
    }

    /// `#[place(..)]`, `#[sync(..)]`, `#[disjoint(..)]` and `#[on(host)]`.
    pub fn attributes(&mut self, attrs: &[Attr], tensors: &[TensorArg]) -> ElabResult<()> {
        for a in attrs {
            if self.rest_argument(a)? {
                continue;
            }
            let word = match a.args.first() {
                Some(AttrArg::Name(n)) => n.name.as_str(),
                _ => "",
            };
            match (a.name.name.as_str(), word) {
                ("place", "manual") => self.place = PlaceMode::Manual,
                ("place", "auto") => self.place = PlaceMode::Auto,
                ("place", "planned") => self.place = PlaceMode::Planned,
                ("sync", "auto") => {}
                ("sync", "manual") => {
                    self.b.kernel_mut().sync = ptoc_ir::tile::SyncMode::Manual;
                    self.sync.manual = Some(a.span);
                }
                (name @ ("place" | "sync"), word) => {
                    let span = match a.args.first() {
                        Some(AttrArg::Name(n)) => n.span,
                        Some(AttrArg::Str(_, at)) => *at,
                        _ => a.span,
                    };
                    let what = if name == "sync" { "the pipes are ordered" } else { "tiles are placed" };
                    let d = match word {
                        "" => Diagnostic::error(codes::BAD_ATTRIBUTE, span, format!("`{name}` by whom?")),
                        _ => Diagnostic::error(codes::BAD_ATTRIBUTE, span, format!("`{name}` has no mode `{word}`")),
                    }
                    .with_label("not understood")
                    .with_note(format!(
                        "{what} by the compiler, `#[{name}(auto)]`, or by the author, `#[{name}(manual)]`"
                    ));
                    let modes: &[&str] =
                        if name == "sync" { &["auto", "manual"] } else { &["auto", "manual", "planned"] };
                    let d = match ptoc_diagnostics::suggest(word, modes.iter().copied()) {
                        Some(best) if !word.is_empty() => {
                            d.with_suggestion(format!("did you mean `{best}`?"), span, best)
                        }
                        _ => d,
                    };
                    return self.report(d);
                }
                ("on", "host") => {
                    if !self.target.has_host() {
                        let d = Diagnostic::error(
                            codes::NO_BANKS,
                            a.span,
                            format!(
                                "`#[on(host)]` is for kernels beside units in memory, and {} has none",
                                self.target.name
                            ),
                        )
                        .with_label("for PIM targets")
                        .with_help("choose one with `--target`, or leave it out");
                        return self.report(d);
                    }
                }
                ("on", word) => {
                    let d =
                        Diagnostic::error(codes::BAD_ATTRIBUTE, a.span, format!("a kernel does not run on `{word}`"))
                            .with_label("not understood")
                            .with_help(
                                "`#[on(host)]` is run by the host; all others by the units, as `grid .. on` says",
                            );
                    return self.report(d);
                }
                ("disjoint", name) => match tensors.iter().find(|t| t.name == name) {
                    Some(t) if t.dir != TensorDir::In => {
                        let id = t.id;
                        self.b.kernel_mut().tensors[id].disjoint = true;
                    }
                    _ => {
                        let d = Diagnostic::error(
                            codes::BAD_ATTRIBUTE,
                            a.span,
                            "`#[disjoint(tensor, \"why\")]` names a tensor that is written",
                        )
                        .with_note(format!(
                            "the arguments are: {}",
                            tensors.iter().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ")
                        ));
                        return self.report(d);
                    }
                },
                _ => {
                    let d = Diagnostic::error(
                        codes::BAD_ATTRIBUTE,
                        a.span,
                        format!("unknown attribute `{}({word})`", a.name.name),
                    )
                    .with_note(
                        "kernels take #[place(auto | manual | planned)], #[sync(auto | manual)], \
                        #[disjoint(tensor, \"why\")], #[on(host)]",
                    );
                    return self.report(d);
                }
            }
        }
        Ok(())
    }

    /// A `where` over dimensions and scalars: checked at launch, and believed from here on.
    pub fn where_condition(&mut self, e: &Expr) -> ElabResult<()> {
        let v = self.expr(e)?;
        if let Val::Bool(holds) = v {
            if holds {
                return Ok(());
            }
            let mut d = Diagnostic::error(codes::WHERE_VIOLATED, e.span, "this `where` condition does not hold")
                .with_label("this is false");
            if let ExprKind::Binary(op, a, b) = &*e.kind
                && let (Ok(x), Ok(y)) = (self.expr(a), self.expr(b))
            {
                d = d.with_note(format!("it says {} {} {}", self.show(&x), op.symbol(), self.show(&y)));
            }
            return self.report(d);
        }
        let cond = self.bool_of(&v, e.span)?;
        let (message, args) = match &*e.kind {
            ExprKind::Binary(op, a, b) if super::scalars::comparison(*op).is_some() => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                let number = |s: &Self, v: &Val| match v {
                    Val::Int(_) => true,
                    Val::Scalar(v) => s.ty(*v) == Ty::Index,
                    _ => false,
                };
                if number(self, &x) && number(self, &y) {
                    let args = vec![self.index_of(&x, a.span)?, self.index_of(&y, b.span)?];
                    (format!("this `where` does not hold for the launch: {{0}} {} {{1}} is false", op.symbol()), args)
                } else {
                    ("this `where` does not hold for the launch".to_string(), Vec::new())
                }
            }
            _ => ("this `where` does not hold for the launch".to_string(), Vec::new()),
        };
        let data = ptoc_ir::tile::CheckData { code: codes::WHERE_FAILED, message, span: e.span, help: None };
        self.check(cond, data, args, e.span)?;
        self.believe(e);
        Ok(())
    }

    /// What a condition that was checked says about `index` values.
    fn believe(&mut self, e: &Expr) {
        let ExprKind::Binary(op, a, b) = &*e.kind else { return };
        if *op == BinaryOp::And {
            self.believe(a);
            self.believe(b);
            return;
        }
        let (Ok(x), Ok(y)) = (self.expr(a), self.expr(b)) else { return };
        let is_index = |s: &Self, v: &Val| match v {
            Val::Int(_) => true,
            Val::Scalar(v) => s.ty(*v) == Ty::Index,
            _ => false,
        };
        if !is_index(self, &x) || !is_index(self, &y) {
            return;
        }
        let (Ok(x), Ok(y)) = (self.index_of(&x, a.span), self.index_of(&y, b.span)) else { return };
        match op {
            BinaryOp::Le => self.facts.le(x, y, 0),
            BinaryOp::Lt => self.facts.le(x, y, -1),
            BinaryOp::Ge => self.facts.le(y, x, 0),
            BinaryOp::Gt => self.facts.le(y, x, -1),
            BinaryOp::Eq => {
                self.facts.le(x, y, 0);
                self.facts.le(y, x, 0);
            }
            _ => {}
        }
        let fact = match (op, self.facts.definition(x)) {
            (BinaryOp::Eq, Some((BinOp::Rem, n, d))) if self.const_index(y) == Some(0) => {
                Condition::Divides(self.int_of(d), self.int_of(n))
            }
            (BinaryOp::Eq, _) => Condition::Eq(self.int_of(x), self.int_of(y)),
            (BinaryOp::Le, _) => Condition::Le(self.int_of(x), self.int_of(y)),
            (BinaryOp::Ge, _) => Condition::Le(self.int_of(y), self.int_of(x)),
            _ => return,
        };
        self.cx.assume(fact);
    }
}

/// Words are no dimensions, but those that mean something only in one place: `X` in projections, `ND` in tile types,
/// `Up` in TCI.
fn is_word(n: &Name) -> bool {
    ptoc_names::builtins::word(n).is_some_and(|w| !matches!(w, Word::Skip | Word::Order(_) | Word::Choice(_)))
}

/// The tensors that TSTORE writes in `b`.
fn stored(b: &Block, out: &mut Vec<Name>) {
    fn root(e: &Expr) -> Option<&Name> {
        match &*e.kind {
            ExprKind::Name(n) => Some(n),
            ExprKind::Field(e, _) | ExprKind::Call(e, _) | ExprKind::Index(e, _) | ExprKind::Paren(e) => root(e),
            _ => None,
        }
    }
    for s in &b.stmts {
        match &s.kind {
            StmtKind::Expr(e) => {
                if let ExprKind::Call(f, args) = &*e.kind
                    && matches!(&*f.kind, ExprKind::Name(n) if n == "TSTORE" || n == "copy")
                {
                    out.extend(args.first().and_then(|a| root(&a.value)).cloned());
                }
            }
            StmtKind::Assign { target, .. } => out.extend(root(target).cloned()),
            StmtKind::For { body, .. }
            | StmtKind::Pipeline { body, .. }
            | StmtKind::While { body, .. }
            | StmtKind::Role { body, .. } => stored(body, out),
            StmtKind::If(i) => stored(&i.then, out),
            _ => {}
        }
    }
}

/// Whether an argument for a parameter of this type stays a place: an element of a tensor is not read.
pub(super) fn takes_a_window(ty: &Expr) -> bool {
    match &*ty.kind {
        ExprKind::Index(..) => true,
        ExprKind::Name(n) => n == "view",
        _ => false,
    }
}

/// A tensor's type is `dtype[..]`; `Vec<..>[..]` is that of an array of tiles.
pub fn is_tensor(ty: &Expr) -> bool {
    matches!(&*ty.kind, ExprKind::Index(base, _) if !matches!(&*base.kind, ExprKind::Static(..)))
}

//! A kernel's signature: static parameters, dimensions, arguments, `where`; and the instance that results.

use super::env::Binding;
use super::{Elab, FUEL, PlaceMode, R, Reported};
use crate::builtins::Word;
use crate::modules::{ItemId, Modules};
use crate::value::{Mode, Val, View};
use crate::{Bindings, Outcome};
use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, Span, codes, suggest};
use ptoc_ir::oracle::{Condition, Equation};
use ptoc_ir::tile::{Builder, Kernel, TensorData, TensorDir, TensorId, Ty, Value};
use ptoc_isa::{BinOp, Target};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

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
    /// Extents.
    pub dims: Vec<ArgDim>,
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
    /// Has the kernel a default?
    pub has_default: bool,
    /// A value from `-D`, as bits.
    pub given: Option<u64>,
    /// The declaration.
    pub span: Span,
}

/// A kernel with its static parameters fixed, ready for the passes.
#[derive(Debug)]
pub struct Instance {
    /// Tile IR.
    pub kernel: Kernel,
    /// Tensor arguments in order.
    pub tensors: Vec<TensorArg>,
    /// Scalar arguments in order.
    pub scalars: Vec<ScalarArg>,
    /// Static parameters and their values, for messages.
    pub statics: Vec<(Name, String)>,
    /// Dimensions that were needed as constants: the instance is for these values only.
    pub fixed: Vec<(Name, i64)>,
    /// `ensures`.
    pub ensures: Vec<Equation>,
    /// `where` conditions over the contents of tensors.
    pub conditions: Vec<Condition>,
}

/// Elaborates the kernel `id` for `target`. Dimensions that size tiles are made constants: those are found as they are
/// met, so the walk is repeated until no new one appears.
pub fn instantiate(modules: &Modules, id: ItemId, target: &Target, bindings: &Bindings) -> Outcome<Instance> {
    let mut bindings = bindings.clone();
    loop {
        let mut e = Elab::new(modules, target, &bindings, id);
        let instance = e.kernel(id);
        let new: Vec<(Name, i64)> =
            e.specialised.iter().filter(|(n, _)| !bindings.fixed.contains_key(n)).cloned().collect();
        if new.is_empty() {
            let waits = std::mem::take(&mut e.waits);
            let mut diagnostics = std::mem::take(&mut e.diags);
            let errors = diagnostics.iter().any(Diagnostic::is_error);
            if !errors && !waits.is_empty() {
                diagnostics.push(waiting(&modules.item(id).kind, &waits));
            }
            let instance = if errors || !waits.is_empty() { None } else { instance.ok() };
            return Outcome { result: instance, diagnostics, waits: waits.into_iter().map(|w| w.0).collect() };
        }
        for (n, v) in new {
            bindings.fixed.insert(n, v);
        }
    }
}

fn waiting(item: &ItemKind, waits: &[(Name, Span)]) -> Diagnostic {
    let name = match item {
        ItemKind::Kernel(k) | ItemKind::Program(k) => k.name.name.clone(),
        _ => "?".into(),
    };
    let list = waits.iter().map(|w| format!("`{}`", w.0)).collect::<Vec<_>>().join(", ");
    let defs = waits.iter().map(|w| format!("-D {}=..", w.0)).collect::<Vec<_>>().join(" ");
    Diagnostic::note(codes::DEPENDS_ON_DIMENSION, waits[0].1, format!("`{name}` was not checked beyond here: tile sizes depend on {list}"))
        .with_label("needs a number")
        .with_help(format!("give it: `{defs}`"))
}

impl<'a> Elab<'a> {
    pub(crate) fn new(modules: &'a Modules, target: &'a Target, bindings: &'a Bindings, id: ItemId) -> Elab<'a> {
        let (name, span) = match &modules.item(id).kind {
            ItemKind::Kernel(k) | ItemKind::Program(k) => (k.name.name.clone(), k.name.span),
            _ => ("?".into(), Span::default()),
        };
        Elab {
            modules,
            target,
            bindings,
            b: Builder::new(name, span, target.name.as_str()),
            diags: Vec::new(),
            env: super::env::Env::default(),
            facts: super::facts::Facts::default(),
            valid: FxHashMap::default(),
            valid_reads: Vec::new(),
            module: id.module,
            calls: Vec::new(),
            inlined: Vec::new(),
            loops: Vec::new(),
            stages: 1,
            grid_done: false,
            worked: false,
            in_prologue: true,
            fuel: FUEL,
            specialised: Vec::new(),
            waits: Vec::new(),
            dims: FxHashMap::default(),
            place: PlaceMode::Mixed,
            refused: Vec::new(),
            pending_gm: None,
        }
    }

    fn kernel(&mut self, id: ItemId) -> R<Instance> {
        let modules = self.modules;
        let item = modules.item(id);
        let ItemKind::Kernel(k) = &item.kind else { return Err(Reported) };
        self.env.push_frame();
        let statics = self.kernel_statics(k)?;
        let (mut tensors, scalars) = self.arguments(k)?;
        self.attributes(&item.attrs, &tensors)?;
        let conditions = self.wheres(k)?;
        let ensures = self.ensures(k, &tensors);
        let r = self.kernel_body(&k.body);
        self.finish_places();
        self.env.pop_frame();
        let (ensures, ()) = (ensures?, r?);
        tensors.retain(|t| t.dir != TensorDir::Scratch);
        let fixed: Vec<(Name, i64)> = self.bindings.fixed.iter().map(|(n, v)| (n.clone(), *v)).collect();
        let b = std::mem::replace(&mut self.b, Builder::new("", Span::default(), ""));
        Ok(Instance { kernel: b.finish(), tensors, scalars, statics, fixed, ensures, conditions })
    }

    /// Static parameters from the bindings or their defaults.
    pub(crate) fn kernel_statics(&mut self, k: &KernelItem) -> R<Vec<(Name, String)>> {
        let mut shown = Vec::new();
        for p in &k.statics {
            let given = self.bindings.statics.get(&p.name.name).cloned();
            let v = match given {
                Some(v) => self.static_value(p, v, p.span)?,
                None => match self.bindings.defs.get(&p.name.name) {
                    Some(e) => {
                        let e = e.clone();
                        let v = self.expr(&e)?;
                        self.static_value(p, v, e.span)?
                    }
                    None => self.static_default(p, &k.name)?,
                },
            };
            if let StaticKind::Const { tune, .. } = &p.kind {
                for t in tune {
                    let v = self.expr(t)?;
                    self.static_value(p, v, t.span)?;
                }
            }
            shown.push((p.name.name.clone(), self.show_static(&v)));
            self.env.define(p.name.name.clone(), Binding::Let(v), p.name.span);
        }
        Ok(shown)
    }

    fn show_static(&self, v: &Val) -> String {
        match v {
            Val::Word(Word::DType(d)) => d.to_string(),
            Val::Fn(id) => crate::modules::item_name(self.modules.item(*id)).map_or("?".into(), |n| n.name.to_string()),
            v => self.show(v),
        }
    }

    /// Static arguments of a call: positional, named, defaults.
    pub fn eval_statics(&mut self, params: &[StaticParam], args: &[Arg], name: &Ident) -> R<Vec<(Name, Val, Span)>> {
        let mut given: IndexMap<usize, (Val, Span)> = IndexMap::new();
        for (k, a) in args.iter().enumerate() {
            let slot = match &a.name {
                None => k,
                Some(n) => match params.iter().position(|p| p.name.name == n.name) {
                    Some(s) => s,
                    None => return self.unknown_static(params, n, name),
                },
            };
            if slot >= params.len() {
                let message = format!("`{}` has {} static parameters, {} given", name.name, params.len(), args.len());
                return self.error(codes::UNKNOWN_STATIC, a.value.span, message);
            }
            let v = self.expr(&a.value)?;
            given.insert(slot, (v, a.value.span));
        }
        let mut out = Vec::new();
        for (k, p) in params.iter().enumerate() {
            let v = match given.swap_remove(&k) {
                Some((v, at)) => self.static_value(p, v, at)?,
                None => self.static_default(p, name)?,
            };
            out.push((p.name.name.clone(), v, p.name.span));
        }
        Ok(out)
    }

    pub(crate) fn unknown_static<T>(&mut self, params: &[StaticParam], n: &Ident, name: &Ident) -> R<T> {
        let names: Vec<&str> = params.iter().map(|p| p.name.name.as_str()).collect();
        let mut d = Diagnostic::error(codes::UNKNOWN_STATIC, n.span, format!("`{}` has no static parameter `{}`", name.name, n.name));
        d = match suggest(&n.name, names.iter().copied()) {
            Some(s) => d.with_fix(format!("did you mean `{s}`?"), n.span, s),
            None if names.is_empty() => d.with_note("it has none"),
            None => d.with_note(format!("it has: {}", names.join(", "))),
        };
        self.report(d)
    }

    fn static_default(&mut self, p: &StaticParam, name: &Ident) -> R<Val> {
        let default = match &p.kind {
            StaticKind::Const { default: Some(e), .. } | StaticKind::Type { default: Some(e) } => {
                let v = self.expr(e)?;
                return self.static_value(p, v, e.span);
            }
            StaticKind::Fn { default: Some(n) } => self.name(&n.name, n.span)?,
            _ => {
                let n = &p.name.name;
                let d = Diagnostic::error(codes::MISSING_STATIC, p.span, format!("`{}` needs a value for `{n}`", name.name))
                    .with_label("no default")
                    .with_help(format!("give it: `-D {n}=..`, or `{}<{n} = ..>(..)` in a call", name.name));
                return self.report(d);
            }
        };
        self.static_value(p, default, p.span)
    }

    /// The value of a static parameter must be of its kind.
    fn static_value(&mut self, p: &StaticParam, v: Val, at: Span) -> R<Val> {
        let n = &p.name.name;
        match (&p.kind, v) {
            (_, Val::Poison) => Err(Reported),
            (StaticKind::Type { .. }, v @ Val::Word(Word::DType(_))) => Ok(v),
            (StaticKind::Type { .. }, v) => {
                self.error(codes::TYPE_MISMATCH, at, format!("`{n}` is a dtype, this is {}", v.describe()))
            }
            (StaticKind::Fn { .. }, v @ (Val::Fn(_) | Val::Builtin(_))) => Ok(v),
            (StaticKind::Fn { .. }, v) => {
                self.error(codes::TYPE_MISMATCH, at, format!("`{n}` is a function, this is {}", v.describe()))
            }
            (StaticKind::Const { ty: Some(t), .. }, v) => {
                if matches!(&*t.kind, ExprKind::Name(w) if w == "layout") {
                    return self.not_yet(t.span, "layouts as static parameters");
                }
                let ty = self.scalar_type(t)?;
                if ty == Ty::Index {
                    return Ok(Val::Int(self.static_int(&v, at, &format!("`{n}`"))?));
                }
                let x = self.scalar_of(&v, ty, at)?;
                Ok(self.fold(x))
            }
            (StaticKind::Const { .. }, v @ (Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Tuple(_) | Val::List(_))) => Ok(v),
            (StaticKind::Const { .. }, v @ Val::Scalar(_)) => {
                if let Val::Scalar(x) = &v
                    && matches!(self.ty(*x), Ty::D(d) if d.is_float())
                    && self.b.const_of(*x).is_some()
                {
                    return Ok(v);
                }
                Ok(Val::Int(self.static_int(&v, at, &format!("`{n}`"))?))
            }
            (StaticKind::Const { .. }, v) => {
                self.error(codes::TYPE_MISMATCH, at, format!("`{n}` is a constant, this is {}", v.describe()))
            }
        }
    }

    /// Dimensions, scalar arguments, tensors; all are bound.
    pub(crate) fn arguments(&mut self, k: &KernelItem) -> R<(Vec<TensorArg>, Vec<ScalarArg>)> {
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
        let mut tensors = Vec::new();
        for p in k.params.iter().filter(|p| is_tensor(&p.ty)) {
            match self.tensor_argument(p) {
                Ok(t) => tensors.push(t),
                Err(_) => {
                    failed = true;
                    self.env.define(p.name.name.clone(), Binding::Let(Val::Poison), p.name.span);
                }
            }
        }
        if failed { Err(Reported) } else { Ok((tensors, scalars)) }
    }

    /// Bare names in tensor types that nothing else defines are dimensions.
    fn dimensions(&mut self, k: &KernelItem) {
        for p in &k.params {
            let ExprKind::Index(_, dims) = &*p.ty.kind else { continue };
            for d in dims {
                let ExprKind::Name(n) = &*d.value.kind else { continue };
                let scalar = k.params.iter().any(|p| p.name.name == *n);
                let item = self.modules.get(self.module).scope.contains_key(n);
                if scalar || item || self.env.get(n).is_some() || crate::builtins::word(n).is_some() {
                    continue;
                }
                let v = match self.bindings.fixed.get(n) {
                    Some(c) => self.idx(*c),
                    None => {
                        let v = self.b.dim(n.clone(), d.value.span);
                        self.dims.insert(v, n.clone());
                        v
                    }
                };
                self.facts.ge_const(v, 0);
                self.env.define(n.clone(), Binding::Let(Val::Scalar(v)), d.value.span);
            }
        }
    }

    fn scalar_argument(&mut self, p: &Param) -> R<ScalarArg> {
        if let Some((_, at)) = &p.dir {
            let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, p.ty.span, "a scalar argument has no direction")
                .with_help("remove `in`; results are written to tensors")
                .with_secondary(*at, "for tensors only");
            return self.report(d);
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

    fn tensor_argument(&mut self, p: &Param) -> R<TensorArg> {
        if let Some(at) = &p.at {
            return self.not_yet(at.span, "placement of tensors (`at`, for PIM targets)");
        }
        if let Some(d) = &p.default {
            return self.not_yet(d.span, "optional tensor arguments");
        }
        let Some((dir, _)) = p.dir else {
            let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, p.ty.span, format!("tensor `{}` needs a direction", p.name.name))
                .with_fix("say how it is used: `in`, `out` or `inout`", Span::new(p.ty.span.file, p.ty.span.start, p.ty.span.start), "in ");
            return self.report(d);
        };
        let ExprKind::Index(base, dims) = &*p.ty.kind else { return Err(Reported) };
        let dtype = self.dtype(base)?;
        if !self.target.has_dtype(dtype) && dtype != DType::Bool {
            let list = self.target.dtypes.iter().map(|d| d.name()).collect::<Vec<_>>().join(", ");
            let d = Diagnostic::error(codes::DTYPE_MISMATCH, base.span, format!("{} has no `{dtype}`", self.target.name))
                .with_note(format!("it has: {list}"));
            return self.report(d);
        }
        let mut args = Vec::new();
        let mut shape = Vec::new();
        for d in dims {
            if matches!(&*d.value.kind, ExprKind::Layout(..) | ExprKind::Tuple(_)) {
                return self.not_yet(d.value.span, "layouts of tensors");
            }
            let v = self.expr(&d.value)?;
            let v = self.index_of(&v, d.value.span)?;
            self.facts.ge_const(v, 0);
            args.push(match (&*d.value.kind, self.dims.get(&v), self.const_index(v)) {
                (ExprKind::Name(_), Some(n), _) => ArgDim::Dim(n.clone()),
                (_, _, Some(c)) => {
                    if c < 0 {
                        return self.error(codes::BAD_EXTENT, d.value.span, format!("an extent of {c}"));
                    }
                    ArgDim::Const(c)
                }
                _ => ArgDim::Computed(v),
            });
            shape.push(v);
        }
        let dir = match dir {
            Dir::In => TensorDir::In,
            Dir::Out => TensorDir::Out,
            Dir::InOut => TensorDir::InOut,
        };
        let id = self.b.tensor(TensorData {
            name: p.name.name.clone(),
            dtype,
            dir,
            shape: shape.clone(),
            optional: false,
            disjoint: false,
            span: p.name.span,
        });
        let view = self.whole(id, dtype, &shape, p.span);
        self.env.define(p.name.name.clone(), Binding::Let(Val::View(view.into())), p.name.span);
        Ok(TensorArg { name: p.name.name.clone(), id, dtype, dir, dims: args, span: p.span })
    }

    pub(crate) fn whole(&mut self, tensor: TensorId, dtype: DType, shape: &[Value], span: Span) -> View {
        let zero = self.idx(0);
        let mut stride = self.idx(1);
        let mut modes = Vec::new();
        for v in shape.iter().rev() {
            modes.push(Mode { extent: *v, cap: None, stride });
            stride = self.bin(BinOp::Mul, stride, *v, span);
        }
        modes.reverse();
        View { tensor, dtype, offset: zero, modes }
    }

    fn attributes(&mut self, attrs: &[Attr], tensors: &[TensorArg]) -> R<()> {
        for a in attrs {
            let word = match a.args.first() {
                Some(AttrArg::Name(n)) => n.name.as_str(),
                _ => "",
            };
            match (a.name.name.as_str(), word) {
                ("place", "manual") => self.place = PlaceMode::Manual,
                ("place", "auto") => self.place = PlaceMode::Auto,
                ("sync", "auto") => {}
                ("sync", "manual") => return self.not_yet(a.span, "`#[sync(manual)]` (explicit synchronisation)"),
                ("on", _) => return self.not_yet(a.span, "`#[on(..)]` (PIM targets)"),
                ("disjoint", name) => match tensors.iter().find(|t| t.name == name) {
                    Some(t) if t.dir != TensorDir::In => {
                        let id = t.id;
                        self.b.kernel_mut().tensors[id].disjoint = true;
                    }
                    _ => {
                        let d = Diagnostic::error(codes::BAD_ATTRIBUTE, a.span, "`#[disjoint(tensor, \"why\")]` names a tensor that is written")
                            .with_note(format!("the arguments are: {}", tensors.iter().map(|t| t.name.as_str()).collect::<Vec<_>>().join(", ")));
                        return self.report(d);
                    }
                },
                _ => {
                    let d = Diagnostic::error(codes::BAD_ATTRIBUTE, a.span, format!("unknown attribute `{}({word})`", a.name.name))
                        .with_note("kernels take #[place(auto | manual)], #[sync(auto | manual)], #[disjoint(tensor, \"why\")]");
                    return self.report(d);
                }
            }
        }
        Ok(())
    }

    /// `where`: on dimensions and scalars it is checked at launch (and believed); on contents it is an oracle's.
    pub(crate) fn wheres(&mut self, k: &KernelItem) -> R<Vec<Condition>> {
        let mut conditions = Vec::new();
        let mut failed = false;
        for e in &k.wheres {
            let mut names = Vec::new();
            crate::names::index_names(e, &mut names);
            if has_index(e) {
                match self.condition(e) {
                    Ok(c) => conditions.push(c),
                    Err(_) => failed = true,
                }
                continue;
            }
            failed |= self.where_condition(e).is_err();
        }
        if failed { Err(Reported) } else { Ok(conditions) }
    }

    fn where_condition(&mut self, e: &Expr) -> R<()> {
        let v = self.expr(e)?;
        if let Val::Bool(holds) = v {
            if holds {
                return Ok(());
            }
            let mut d = Diagnostic::error(codes::WHERE_VIOLATED, e.span, "this `where` condition does not hold").with_label("this is false");
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
                match (self.index_of(&x, a.span), self.index_of(&y, b.span)) {
                    (Ok(x), Ok(y)) => (format!("the launch must satisfy this `where`, and has {{0}} {} {{1}}", op.symbol()), vec![x, y]),
                    _ => ("the launch must satisfy this `where`".to_string(), Vec::new()),
                }
            }
            _ => ("the launch must satisfy this `where`".to_string(), Vec::new()),
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
    }

    /// A parameter of an inlined function meets its argument.
    pub fn bind_param(&mut self, p: &Param, v: Val, at: Span) -> R<Val> {
        if matches!(v, Val::Poison) {
            return Err(Reported);
        }
        let mismatch = |s: &mut Self, want: &str, v: &Val| {
            let d = Diagnostic::error(codes::TYPE_MISMATCH, at, format!("`{}` is {want}, this is {}", p.name.name, v.describe()))
                .with_secondary(p.span, "the parameter");
            s.report(d)
        };
        match (&*p.ty.kind, v) {
            (ExprKind::Name(n), v) if n == "block" => match v {
                Val::Block(_) => Ok(v),
                v => mismatch(self, "a block", &v),
            },
            (ExprKind::Static(loc, args), v) => {
                let Val::Tile(t) = v else { return mismatch(self, "a tile", &v) };
                self.bind_tile(loc, args, &t, p, at)?;
                Ok(Val::Tile(t))
            }
            (ExprKind::Index(base, dims), v) => {
                let Val::View(view) = v else { return mismatch(self, "a window of a tensor", &v) };
                self.bind_view(base, dims, &view, p, at)?;
                Ok(Val::View(view))
            }
            (_, v) => {
                let ty = self.scalar_type(&p.ty)?;
                match v {
                    Val::Int(i) if ty == Ty::Index => Ok(Val::Int(i)),
                    Val::Tile(t) if Ty::D(t.ty.dtype) == ty || (ty == Ty::Index && t.ty.dtype.is_int()) => Ok(Val::Tile(t)),
                    Val::Mask(m, n) if ty == Ty::BOOL => Ok(Val::Mask(m, n)),
                    Val::Tile(t) => {
                        let d = Diagnostic::error(codes::DTYPE_MISMATCH, at, format!("`{}` is `{ty}`, this is a tile of `{}`", p.name.name, t.ty.dtype))
                            .with_secondary(p.span, "the parameter")
                            .with_help(format!("convert it by name: `{ty}(..)`"));
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

    fn bind_tile(&mut self, loc: &Expr, args: &[Arg], t: &crate::value::TileVal, p: &Param, at: Span) -> R<()> {
        let Val::Word(Word::Loc(want)) = self.expr(loc)? else {
            return self.error(codes::BAD_TILE_TYPE, loc.span, "expected a location such as `Vec`");
        };
        if want != t.ty.loc {
            let d = Diagnostic::error(codes::LOCATION_MISMATCH, at, format!("`{}` lives in {want}, this tile in {}", p.name.name, t.ty.loc))
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

    fn bind_dtype(&mut self, e: &Expr, have: DType, p: &Param, at: Span) -> R<()> {
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
            && crate::builtins::word(n).is_none()
        {
            self.env.define_outer(n.clone(), Binding::Let(Val::Word(Word::DType(have))), e.span);
            return Ok(());
        }
        let want = self.dtype(e)?;
        if want == have {
            return Ok(());
        }
        let d = Diagnostic::error(codes::DTYPE_MISMATCH, at, format!("`{}` holds `{want}`, this holds `{have}`", p.name.name))
            .with_secondary(p.span, "the parameter");
        self.report(d)
    }

    fn bind_extent(&mut self, e: &Expr, cap: u32, len: Value, what: &str, p: &Param, at: Span) -> R<()> {
        if let ExprKind::Name(n) = &*e.kind
            && self.env.get(n).is_none()
            && !self.modules.get(self.module).scope.contains_key(n)
        {
            let v = self.extent_val(cap, len);
            self.env.define_outer(n.clone(), Binding::Let(v), e.span);
            return Ok(());
        }
        let (want, want_len) = self.extent(e, "an extent")?;
        if want != cap {
            let d = Diagnostic::error(codes::CAPACITY_MISMATCH, at, format!("`{}` has {want} {what}, this tile {cap}", p.name.name))
                .with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        self.same_length(want_len, len, what, at, None)
    }

    fn bind_view(&mut self, base: &Expr, dims: &[Arg], view: &View, p: &Param, at: Span) -> R<()> {
        self.bind_dtype(base, view.dtype, p, at)?;
        if dims.len() != view.modes.len() {
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, format!("`{}` has {} modes, this window {}", p.name.name, dims.len(), view.modes.len()))
                .with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        for (d, m) in dims.iter().zip(&view.modes) {
            if let ExprKind::Name(n) = &*d.value.kind
                && self.env.get(n).is_none()
                && !self.modules.get(self.module).scope.contains_key(n)
            {
                self.env.define_outer(n.clone(), Binding::Let(Val::Scalar(m.extent)), d.value.span);
                continue;
            }
            let v = self.expr(&d.value)?;
            let v = match v {
                Val::Block(b) => b.len,
                v => self.index_of(&v, d.value.span)?,
            };
            self.same_length(v, m.extent, "extents", at, None)?;
        }
        Ok(())
    }

    /// Statements of a kernel: those before `grid` belong to the launch, the rest to a block.
    fn kernel_body(&mut self, body: &Block) -> R<()> {
        let grid = body.stmts.iter().position(|s| matches!(s.kind, StmtKind::Grid { .. }));
        self.env.push();
        let mut failed = false;
        if grid.is_none() {
            self.b.begin_body();
            self.in_prologue = false;
        }
        for (k, s) in body.stmts.iter().enumerate() {
            failed |= match &s.kind {
                StmtKind::Grid { vars, clauses } if Some(k) == grid => {
                    let r = self.grid(vars, clauses, s.span);
                    self.b.begin_body();
                    self.in_prologue = false;
                    if r.is_err() {
                        for (v, _) in vars {
                            self.env.define(v.name.clone(), Binding::Let(Val::Poison), v.span);
                        }
                    }
                    r.is_err()
                }
                StmtKind::Return(None) => {
                    let d = Diagnostic::error(codes::BAD_RETURN, s.span, "`return` in a kernel's body").with_help("use `if` around the rest");
                    self.report::<()>(d).is_err()
                }
                _ => self.stmt(s).is_err(),
            };
        }
        if let Some(e) = &body.tail {
            failed |= match self.expr(e) {
                Ok(Val::Unit) => false,
                Ok(v) => self.error::<()>(codes::BAD_RETURN, e.span, format!("a kernel gives no value, this is {}", v.describe())).is_err(),
                Err(_) => true,
            };
        }
        self.env.pop();
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn grid(&mut self, vars: &[(Ident, Expr)], clauses: &[GridClause], span: Span) -> R<()> {
        if self.grid_done {
            return self.error(codes::GRID_MISUSE, span, "a kernel has one `grid`");
        }
        self.grid_done = true;
        let mut ranges = Vec::new();
        for (name, e) in vars {
            let (extent, v) = match self.expr(e)? {
                Val::Tiles(t) => (t.count, Val::Tiles(t)),
                Val::Range(lo, hi) => {
                    let n = self.bin(BinOp::Sub, hi, lo, e.span);
                    (n, Val::Range(lo, hi))
                }
                Val::Poison => return Err(Reported),
                other => {
                    let d = Diagnostic::error(codes::GRID_MISUSE, e.span, format!("`{}` runs over {}", name.name, other.describe()))
                        .with_help("a grid runs over `tiles(n, size)` or `0..n`");
                    return self.report(d);
                }
            };
            ranges.push((name, extent, v));
        }
        self.clauses(clauses, vars)?;
        self.b.begin_body();
        for (name, extent, v) in ranges {
            let i = self.b.grid_dim(name.name.clone(), extent, name.span);
            self.facts.ge_const(i, 0);
            self.facts.le(i, extent, -1);
            let v = match v {
                Val::Tiles(t) => self.block_at(&t, i, name.span),
                Val::Range(lo, hi) => {
                    let at = self.bin(BinOp::Add, lo, i, name.span);
                    if at != i {
                        self.facts.le(lo, at, 0);
                    }
                    if self.const_index(at).is_none() {
                        self.facts.le(at, hi, -1);
                    }
                    Val::Scalar(at)
                }
                _ => return Err(Reported),
            };
            self.env.define(name.name.clone(), Binding::Let(v), name.span);
        }
        Ok(())
    }

    /// `raster(along = N, swizzle = 4)`: checked, without effect yet.
    fn clauses(&mut self, clauses: &[GridClause], vars: &[(Ident, Expr)]) -> R<()> {
        for c in clauses {
            match c {
                GridClause::On(e) => return self.not_yet(e.span, "`on` (assignment of blocks to units, for PIM targets)"),
                GridClause::Option(n, args) if n.name == "raster" => {
                    for a in args {
                        match a.name.as_ref().map(|n| n.name.as_str()) {
                            Some("along") => {
                                self.expr(&a.value)?;
                            }
                            Some("swizzle") => {
                                let v = self.expr(&a.value)?;
                                self.static_extent(&v, a.value.span, "the swizzle")?;
                            }
                            _ => {
                                let d = Diagnostic::error(codes::BAD_ATTRIBUTE, a.value.span, "`raster` takes `along = ..` and `swizzle = n`")
                                    .with_help(format!("for example `raster(along = {}, swizzle = 4)`", vars.first().map_or("N", |v| v.0.name.as_str())));
                                return self.report(d);
                            }
                        }
                    }
                }
                GridClause::Option(n, _) => {
                    let d = Diagnostic::error(codes::BAD_ATTRIBUTE, n.span, format!("`grid` has no clause `{}`", n.name))
                        .with_note("it has `raster(along = .., swizzle = ..)` and `on ..`");
                    return self.report(d);
                }
            }
        }
        Ok(())
    }
}

/// A tensor's type is `dtype[..]`.
pub(crate) fn is_tensor(ty: &Expr) -> bool {
    matches!(&*ty.kind, ExprKind::Index(..))
}

fn has_index(e: &Expr) -> bool {
    match &*e.kind {
        ExprKind::Index(..) => true,
        ExprKind::Paren(a) | ExprKind::Unary(_, a) | ExprKind::Field(a, _) => has_index(a),
        ExprKind::Binary(_, a, b) => has_index(a) || has_index(b),
        ExprKind::Call(_, args) => args.iter().any(|a| has_index(&a.value)),
        _ => false,
    }
}

//! Programs: kernels launched in order, over the program's arguments and tensors of its own. Everything about a launch
//! but the contents is known here: extents are constants, so a program is elaborated for given dimensions.

use super::env::Binding;
use super::signature::{ArgDim, Instance, ScalarArg, TensorArg, instantiate};
use super::{ElabResult, Elaborator, ErrorReported};
use crate::value::{Val, View};
use crate::{Bindings, ElaborationOutcome};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{ElementPlacement, TensorDir, TensorId};
use ptoc_isa::Target;
use ptoc_names::resolve::mentions;
use ptoc_names::{ItemId, Modules};
use ptoc_syntax::ast::*;
use ptoc_tensor::DType;

/// A tensor that a program makes.
#[derive(Clone, Debug)]
pub struct ProgramTensor {
    /// The name.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// Every element's first value, as bits; `None`: written before it is read.
    pub fill: Option<u64>,
    /// Where it is in the memory of a PIM target.
    pub place: Option<ElementPlacement>,
    /// The declaration.
    pub span: Span,
}

/// What a launch gets for a tensor argument.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum TensorSource {
    /// An argument of the program, by position in [`ProgramInstance::tensors`].
    Arg(usize),
    /// A tensor of the program, by position in [`ProgramInstance::locals`].
    Local(usize),
}

/// One launch.
#[derive(Debug)]
pub struct ProgramStep {
    /// The kernel.
    pub instance: Instance,
    /// Its item.
    pub kernel: ItemId,
    /// What it was elaborated with.
    pub bindings: Bindings,
    /// One source for each of the instance's tensors.
    pub tensors: Vec<TensorSource>,
    /// Scalar arguments that are given, as bits.
    pub scalars: Vec<(Name, u64)>,
    /// Tensors of the kernel that have their placement from elsewhere in the program.
    pub elsewhere: Vec<TensorId>,
    /// The call.
    pub span: Span,
}

/// A program for given dimensions.
#[derive(Debug)]
pub struct ProgramInstance {
    /// The name.
    pub name: Name,
    /// Tensor arguments.
    pub tensors: Vec<TensorArg>,
    /// Scalar arguments.
    pub scalars: Vec<ScalarArg>,
    /// Tensors of its own, in order of declaration.
    pub locals: Vec<ProgramTensor>,
    /// Launches in order.
    pub steps: Vec<ProgramStep>,
    /// Dimensions that it was elaborated for.
    pub fixed: Vec<(Name, i64)>,
}

/// Where a tensor is.
struct Placed {
    source: TensorSource,
    place: ElementPlacement,
    /// Who says so.
    said: Span,
    /// What it says it with.
    defaults: Vec<DefaultConst>,
}

/// A const parameter that a placement uses and the launch does not give: its value is the default.
#[derive(Clone)]
struct DefaultConst {
    name: Name,
    span: Span,
    kernel: Name,
}

#[derive(Default)]
struct Parts {
    sources: Vec<(TensorId, TensorSource, TensorDir, Name)>,
    locals: Vec<ProgramTensor>,
    steps: Vec<ProgramStep>,
    /// Tensors that have a value by now: inputs, filled ones, and what a launch has written.
    written: Vec<TensorSource>,
    /// Where tensors are, and who says so: their declaration, or the first kernel that places its parameter.
    places: Vec<Placed>,
    /// A launch was refused: who writes what is not known any more.
    failed: bool,
    /// Extents of its own tensors depend on dimensions that are not known: launches are looked at, and nothing is
    /// produced.
    waiting: bool,
}

/// Elaborates the program `id` and every kernel that it launches.
pub fn instantiate_program(
    modules: &Modules,
    id: ItemId,
    target: &Target,
    bindings: &Bindings,
) -> ElaborationOutcome<ProgramInstance> {
    let mut bindings = bindings.clone();
    for (n, v) in bindings.dims.clone() {
        bindings.fixed.insert(n, v);
    }
    let mut e = Elaborator::new(modules, target, &bindings, id);
    let result = e.program(id);
    e.explain(result.is_err());
    let waits = std::mem::take(&mut e.waits);
    let mut diagnostics = std::mem::take(&mut e.diags);
    let errors = diagnostics.iter().any(Diagnostic::is_error);
    if !errors && let Some((_, at)) = waits.first() {
        let list = waits.iter().map(|w| format!("-D {}=..", w.0)).collect::<Vec<_>>().join(" ");
        diagnostics.push(
            Diagnostic::note(codes::DEPENDS_ON_DIMENSION, *at, "a program is checked for given dimensions")
                .with_label("not checked beyond here")
                .with_help(format!("give them: `{list}`")),
        );
    }
    let result = if errors || !waits.is_empty() { None } else { result.ok() };
    ElaborationOutcome { result, diagnostics, waits: waits.into_iter().map(|w| w.0).collect(), names: e.name_facts() }
}

impl Placed {
    /// A tensor's declaration says where it is.
    fn declared(source: TensorSource, place: &ElementPlacement, said: Span) -> Placed {
        Placed { source, place: place.clone(), said, defaults: Vec::new() }
    }
}

/// The const parameters by which the placement of a parameter has its default values.
fn defaults_of(k: &KernelItem, parameter: &Name, bindings: &Bindings) -> Vec<DefaultConst> {
    let Some(at) = k.params.iter().find(|p| p.name.name == *parameter).and_then(|p| p.at.as_ref()) else {
        return Vec::new();
    };
    let used = k.statics.iter().filter(|s| {
        let default = matches!(s.kind, StaticKind::Const { default: Some(_), .. });
        default && !bindings.statics.contains_key(&s.name.name) && mentions(at, &s.name.name)
    });
    used.map(|s| DefaultConst { name: s.name.name.clone(), span: s.span, kernel: k.name.name.clone() }).collect()
}

impl Elaborator<'_> {
    fn program(&mut self, id: ItemId) -> ElabResult<ProgramInstance> {
        let modules = self.modules;
        let ItemKind::Program(k) = &modules.item(id).kind else { return Err(ErrorReported) };
        self.env.push_frame();
        self.kernel_statics(k)?;
        let (tensors, scalars, arguments) = self.arguments(k);
        arguments?;
        // Scalars are constants here: from `-D`, or the default.
        for s in &scalars {
            let bits = s.given.or_else(|| {
                let p = self.b.kernel().scalars.iter().find(|p| p.name == s.name)?;
                self.b.const_of(p.default?).map(|c| c.bits)
            });
            match bits {
                Some(bits) => {
                    let v = self.constant(ptoc_ir::tile::Const { ty: s.ty, bits });
                    self.env.define(s.name.clone(), Binding::Let(Val::Scalar(v)), s.span);
                }
                None => self.waits.push((s.name.clone(), s.span)),
            }
        }
        self.wheres(k)?;
        self.argument_places(k)?;
        let mut parts = Parts::default();
        for (i, t) in tensors.iter().enumerate() {
            parts.sources.push((t.id, TensorSource::Arg(i), t.dir, t.name.clone()));
            if let Some(place) = &self.b.kernel().tensors[t.id].place {
                parts.places.push(Placed::declared(TensorSource::Arg(i), place, t.span));
            }
            if t.dir != TensorDir::Out {
                parts.written.push(TensorSource::Arg(i));
            }
        }
        self.env.push();
        let mut failed = false;
        for s in &k.body.stmts {
            failed |= self.program_stmt(s, &mut parts).is_err();
        }
        if let Some(e) = &k.body.tail {
            failed |= self.launch(e, &mut parts).is_err();
        }
        self.env.pop();
        self.env.pop_frame();
        if failed || parts.waiting {
            return Err(ErrorReported);
        }
        for (i, t) in tensors.iter().enumerate() {
            if !parts.written.contains(&TensorSource::Arg(i)) {
                let d = Diagnostic::error(codes::TENSOR_UNWRITTEN, t.span, format!("no launch writes `{}`", t.name))
                    .with_label("an `out` argument")
                    .with_help("pass it to a kernel that writes it, or declare it `inout`");
                return self.report(d);
            }
        }
        Self::spread_places(&mut parts);
        let fixed = self.bindings.fixed.iter().map(|(n, v)| (n.clone(), *v)).collect();
        Ok(ProgramInstance {
            name: k.name.name.clone(),
            tensors,
            scalars,
            locals: parts.locals,
            steps: parts.steps,
            fixed,
        })
    }

    fn program_stmt(&mut self, s: &Stmt, parts: &mut Parts) -> ElabResult<()> {
        match &s.kind {
            StmtKind::Let { names, value, .. } if matches!(&*value.kind, ExprKind::Tensor { .. }) => {
                for n in names {
                    let v = self.local_tensor(n, value, parts);
                    self.env.define(n.name.clone(), Binding::Let(v.as_ref().map_or(Val::Poison, Clone::clone)), n.span);
                    v?;
                }
                Ok(())
            }
            StmtKind::Let { .. } | StmtKind::LetTuple { .. } | StmtKind::Const(_) => self.stmt(s),
            StmtKind::Expr(e) => {
                let launched = self.launch(e, parts);
                parts.failed |= launched.is_err();
                launched
            }
            StmtKind::Error => Err(ErrorReported),
            _ => {
                let d =
                    Diagnostic::error(codes::TYPE_MISMATCH, s.span, "a program declares tensors and launches kernels")
                        .with_help("put this into a kernel");
                self.report(d)
            }
        }
    }

    fn local_tensor(&mut self, n: &Ident, e: &Expr, parts: &mut Parts) -> ElabResult<Val> {
        let ExprKind::Tensor { ty, at, over, fill } = &*e.kind else { return Err(ErrorReported) };
        let ExprKind::Index(base, dims) = &*ty.kind else {
            let d = Diagnostic::error(codes::BAD_PARAMETER_TYPE, ty.span, "expected a tensor type")
                .with_help("for example `tensor f32[M, N]`");
            return self.report(d);
        };
        let dtype = self.dtype(base)?;
        let mut shape = Vec::new();
        let mut values = Vec::new();
        for d in dims {
            let v = self.expr(&d.value)?;
            let i = match self.static_int(&v, d.value.span, "an extent of a tensor") {
                Ok(i) => i,
                // What is not there yet is not there for any extent.
                Err(ErrorReported) if !self.waits.is_empty() => {
                    parts.waiting = true;
                    shape.push(1);
                    let extent = self.index_of(&v, d.value.span)?;
                    values.push(extent);
                    continue;
                }
                Err(ErrorReported) => return Err(ErrorReported),
            };
            let Ok(i) = i64::try_from(i).map_err(|_| ()).and_then(|i| if i < 0 { Err(()) } else { Ok(i) }) else {
                return self.error(codes::BAD_EXTENT, d.value.span, format!("an extent of {i}"));
            };
            shape.push(i);
            values.push(self.idx(i));
        }
        if shape.iter().try_fold(1i64, |a, b| a.checked_mul(*b)).is_none_or(|n| n > 1 << 40) {
            return self.error(codes::BAD_EXTENT, ty.span, "the tensor has more elements than memory could hold");
        }
        let fill = match fill {
            None => None,
            Some(f) => {
                let v = self.expr(f)?;
                let x = self.scalar_of(&v, ptoc_ir::tile::Ty::D(dtype), f.span)?;
                match self.b.const_of(x) {
                    Some(c) => Some(c.bits),
                    None => return self.error(codes::NOT_CONSTANT, f.span, "`fill` must be a constant"),
                }
            }
        };
        let id = self.b.tensor(ptoc_ir::tile::TensorData {
            name: n.name.clone(),
            dtype,
            dir: TensorDir::InOut,
            shape: values.clone(),
            optional: false,
            place: None,
            disjoint: false,
            stored: None,
            span: n.span,
        });
        if let Some(at) = at {
            self.tensor_place(id, &n.name, at, over.as_ref())?;
        }
        parts.sources.push((id, TensorSource::Local(parts.locals.len()), TensorDir::InOut, n.name.clone()));
        if fill.is_some() {
            parts.written.push(TensorSource::Local(parts.locals.len()));
        }
        let place = self.b.kernel().tensors[id].place.clone();
        if let Some(place) = &place {
            parts.places.push(Placed::declared(TensorSource::Local(parts.locals.len()), place, n.span));
        }
        parts.locals.push(ProgramTensor { name: n.name.clone(), dtype, shape, fill, place, span: n.span });
        Ok(Val::View(self.whole(id, dtype, &values, n.span).into()))
    }

    /// `kernel<..>(..);`
    fn launch(&mut self, e: &Expr, parts: &mut Parts) -> ElabResult<()> {
        let modules = self.modules;
        let target = |s: &Self, callee: &Expr| match &*callee.kind {
            ExprKind::Name(n) => s.modules.get(s.module).scope.get(n).copied(),
            _ => None,
        };
        let ExprKind::Call(callee, args) = &*e.kind else {
            let d = Diagnostic::error(codes::UNUSED_VALUE, e.span, "this has no effect")
                .with_help("a program launches kernels: `kernel(a, b);`");
            return self.report(d);
        };
        let (base, statics): (&Expr, &[Arg]) = match &*callee.kind {
            ExprKind::Static(b, s) => (b, s),
            _ => (callee, &[]),
        };
        let kernel = target(self, base).and_then(|id| match &modules.item(id).kind {
            ItemKind::Kernel(k) => Some((id, k)),
            _ => None,
        });
        let Some((id, k)) = kernel else {
            if let Some(id) = target(self, base)
                && matches!(modules.item(id).kind, ItemKind::Program(_))
            {
                return self.not_yet(e.span, "programs that launch programs");
            }
            return match self.expr(e)? {
                Val::Unit => Ok(()),
                other => {
                    let d = Diagnostic::error(
                        codes::UNUSED_VALUE,
                        e.span,
                        format!("this computes {} and drops it", other.describe()),
                    );
                    self.report(d)
                }
            };
        };
        let mut bindings = Bindings::default();
        for (i, a) in statics.iter().enumerate() {
            let p = match &a.name {
                None => k.statics.get(i),
                Some(n) => k.statics.iter().find(|p| p.name.name == n.name),
            };
            let Some(p) = p else {
                let n = a.name.clone().unwrap_or(Ident { name: "?".into(), span: a.value.span });
                return self.unknown_static(&k.statics, &n, &k.name);
            };
            let v = self.expr(&a.value)?;
            let v = self.portable(v, a.value.span)?;
            bindings.statics.insert(p.name.name.clone(), v);
            bindings.places.insert(p.name.name.clone(), a.value.span);
        }
        let mut given: Vec<Option<(Val, Span)>> = vec![None; k.params.len()];
        for (i, a) in args.iter().enumerate() {
            let slot = match &a.name {
                None => Some(i),
                Some(n) => k.params.iter().position(|p| p.name.name == n.name),
            };
            match slot {
                Some(s) if s < given.len() && given[s].is_none() => {
                    given[s] = Some((self.maybe_absent(&a.value)?, a.value.span))
                }
                _ => return self.kernel_arity(k, args.len(), e.span),
            }
        }
        let windows = k.params.iter().zip(&given).filter_map(|(p, v)| match v {
            Some((Val::View(view), at)) if super::signature::is_tensor(&p.ty) && !self.is_whole(view) => Some(*at),
            _ => None,
        });
        if let Some(at) = windows.collect::<Vec<_>>().first() {
            return self.not_yet(*at, "windows of tensors as arguments of a launch");
        }
        let mut sources: Vec<(TensorSource, Span, DType)> = Vec::new();
        let mut scalars = Vec::new();
        for (p, v) in k.params.iter().zip(&given) {
            match (super::signature::is_tensor(&p.ty), v) {
                (true, Some((Val::View(view), at))) => {
                    let source = self.tensor_source(view, p, *at, parts)?;
                    if sources.iter().any(|(s, ..)| *s == source.0) {
                        return self.aliasing(p, *at, &source.1);
                    }
                    self.bind_dims(id, p, view, *at, &mut bindings)?;
                    if p.default.is_some() {
                        bindings.given.push(p.name.name.clone());
                    }
                    sources.push((source.0, *at, view.dtype));
                }
                (true, Some((Val::Absent(_) | Val::Nothing, _)) | None) if p.default.is_some() => {}
                (true, Some((Val::Absent(name), at))) => {
                    let declared = self.env.get(name).map_or(*at, |(_, s)| s);
                    return self.absent_used(name, *at, declared);
                }
                (true, Some((other, at))) => {
                    let message = format!("`{}` is a tensor, this is {}", p.name.name, other.describe());
                    return self.error(codes::TYPE_MISMATCH, *at, message);
                }
                (false, Some((v, at))) => {
                    let ty = self.scalar_type(&p.ty)?;
                    let x = self.scalar_of(v, ty, *at)?;
                    match self.b.const_of(x) {
                        Some(c) => scalars.push((p.name.name.clone(), c.bits)),
                        None => {
                            self.static_int(v, *at, "a scalar argument of a launch")?;
                        }
                    }
                }
                (false, None) if p.default.is_some() => {}
                (_, None) => return self.kernel_arity(k, args.len(), e.span),
            }
        }
        let outcome = instantiate(self.modules, id, self.target, &bindings);
        self.diags.extend(outcome.diagnostics);
        let mut instance = outcome.result.ok_or(ErrorReported)?;
        self.all_bound(&instance, &bindings, e.span)?;
        for (t, (_, at, dtype)) in instance.tensors.iter().zip(&sources) {
            if t.dtype != *dtype {
                let d = Diagnostic::error(
                    codes::DTYPE_MISMATCH,
                    *at,
                    format!("`{}` of `{}` holds `{}`, this holds `{dtype}`", t.name, k.name.name, t.dtype),
                )
                .with_secondary(t.span, "the parameter");
                return self.report(d);
            }
        }
        for (t, (source, at, _)) in instance.tensors.iter().zip(&sources) {
            if t.dir != TensorDir::Out && !parts.failed && !parts.written.contains(source) {
                let name = parts.sources.iter().find(|s| s.1 == *source).map_or("?".into(), |s| s.3.clone());
                let d = Diagnostic::error(
                    codes::TENSOR_UNWRITTEN,
                    *at,
                    format!("`{name}` is read before any launch has written it"),
                )
                .with_label(format!("`{}` reads it", k.name.name))
                .with_secondary(t.span, "read as this argument")
                .with_help("launch what writes it first, or give it a value: `tensor .. fill 0`");
                return self.report(d);
            }
        }
        self.launch_places(&mut instance, &sources, k, &bindings, parts)?;
        let writes = instance.tensors.iter().zip(&sources).filter(|(t, _)| t.dir != TensorDir::In);
        parts.written.extend(writes.map(|(_, (source, ..))| *source));
        let tensors = sources.into_iter().map(|(s, ..)| s).collect();
        parts.steps.push(ProgramStep {
            instance,
            kernel: id,
            bindings,
            tensors,
            scalars,
            elsewhere: Vec::new(),
            span: e.span,
        });
        Ok(())
    }

    /// A tensor is in one place in the whole program: what a parameter says must be that, what it leaves open becomes
    /// it.
    fn launch_places(
        &mut self,
        instance: &mut Instance,
        sources: &[(TensorSource, Span, DType)],
        k: &KernelItem,
        bindings: &Bindings,
        parts: &mut Parts,
    ) -> ElabResult<()> {
        for (t, (source, at, _)) in instance.tensors.iter().zip(sources) {
            let wanted = instance.kernel.tensors[t.id].place.clone();
            let known = parts.places.iter().find(|p| p.source == *source);
            match (wanted, known) {
                (Some(place), None) => {
                    let defaults = defaults_of(k, &t.name, bindings);
                    parts.places.push(Placed { source: *source, place, said: *at, defaults });
                }
                (Some(wanted), Some(known)) if wanted.normal() != known.place.normal() => {
                    let mut d = Diagnostic::error(
                        codes::PLACE_DIFFERS,
                        *at,
                        format!("`{}` of `{}` is placed otherwise than this tensor", t.name, instance.kernel.name),
                    )
                    .with_label("another placement")
                    .with_secondary(known.said, "placed here")
                    .with_note(format!("the parameter is at {wanted}, the tensor at {}", known.place));
                    let own = defaults_of(k, &t.name, bindings);
                    let said: Vec<&DefaultConst> = own.iter().chain(&known.defaults).collect();
                    for (n, c) in said.iter().enumerate().filter(|(n, c)| said[..*n].iter().all(|o| o.span != c.span)) {
                        let which = if n < own.len() { "this launch" } else { "an earlier launch" };
                        d = d.with_secondary(c.span, format!("{which} gives no `{}`, so this is its value", c.name));
                    }
                    let d = match said.first() {
                        Some(c) => d.with_help(format!(
                            "give `{}` the value that is meant: `{}<{} = ..>(..)`",
                            c.name, c.kernel, c.name
                        )),
                        None => d,
                    };
                    let d = d.with_help(
                        "declare a tensor with the parameter's placement, and launch a kernel that copies into it",
                    );
                    return self.report(d);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Every launch knows where its tensors are, also if a later one says so.
    fn spread_places(parts: &mut Parts) {
        let Parts { places, steps, locals, .. } = parts;
        let place_of = |source| places.iter().find(|p| p.source == source).map(|p| p.place.clone());
        for step in steps {
            for (t, source) in step.instance.tensors.iter().zip(&step.tensors) {
                let place = &mut step.instance.kernel.tensors[t.id].place;
                if place.is_none() {
                    *place = place_of(*source);
                    step.elsewhere.extend(place.is_some().then_some(t.id));
                }
            }
        }
        for (k, local) in locals.iter_mut().enumerate() {
            local.place = place_of(TensorSource::Local(k));
        }
    }

    fn tensor_source(&mut self, view: &View, p: &Param, at: Span, parts: &Parts) -> ElabResult<(TensorSource, Name)> {
        let Some((_, source, dir, name)) = parts.sources.iter().find(|s| s.0 == view.tensor).cloned() else {
            return Err(ErrorReported);
        };
        let writes = matches!(p.dir, Some((Dir::Out | Dir::InOut, _)));
        if writes && dir == TensorDir::In {
            let d = Diagnostic::error(
                codes::NOT_WRITABLE,
                at,
                format!("`{name}` is `in`, and `{}` is written", p.name.name),
            )
            .with_help("declare it `inout`, or pass a tensor of the program");
            return self.report(d);
        }
        Ok((source, name))
    }

    fn aliasing<T>(&mut self, p: &Param, at: Span, name: &Name) -> ElabResult<T> {
        let d = Diagnostic::error(
            codes::ALIASING_ARGUMENTS,
            at,
            format!("`{name}` is passed twice, the second time for `{}`", p.name.name),
        )
        .with_label("passed again")
        .with_note("arguments of a launch never alias")
        .with_help("pass a tensor of the program's own: `let t = tensor f32[M, N];`");
        self.report(d)
    }

    /// Dimensions that bare names of the parameter's extents bind; a layout of the parameter has one for each mode.
    fn bind_dims(
        &mut self,
        kernel: ItemId,
        p: &Param,
        view: &View,
        at: Span,
        bindings: &mut Bindings,
    ) -> ElabResult<()> {
        let Some(axes) = axes(&p.ty, |n| self.names_value(kernel, n)) else { return Ok(()) };
        if axes.len() != view.modes.len() {
            let message = format!(
                "`{}` has {}, this tensor has {}",
                p.name.name,
                super::labels::count(axes.len(), "mode", "modes"),
                view.modes.len()
            );
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, message).with_secondary(p.span, "the parameter");
            return self.report(d);
        }
        for (d, m) in axes.into_iter().zip(&view.modes) {
            let ExprKind::Name(n) = &*d.kind else { continue };
            let i = self.static_int(&Val::Scalar(m.extent), at, "an extent")?;
            let i = i64::try_from(i).map_err(|_| ErrorReported)?;
            match bindings.dims.insert(n.clone(), i) {
                Some(old) if old != i => {
                    let d = Diagnostic::error(
                        codes::SHAPE_MISMATCH,
                        at,
                        format!("`{n}` is {old} from an earlier argument, and {i} here"),
                    )
                    .with_secondary(p.span, "the parameter");
                    return self.report(d);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Is `n` a value in the kernel's signature, and no dimension?
    fn names_value(&self, kernel: ItemId, n: &Name) -> bool {
        let constant = self.modules.get(kernel.module).scope.contains_key(n);
        constant
            || match &self.modules.item(kernel).kind {
                ItemKind::Kernel(k) => k.statics.iter().any(|s| s.name.name == *n),
                _ => false,
            }
    }

    /// Every dimension of a launch comes from the extents of its arguments.
    fn all_bound(&mut self, instance: &Instance, bindings: &Bindings, at: Span) -> ElabResult<()> {
        let missing = instance.kernel.dims.values().find(|d| !bindings.dims.contains_key(&d.name));
        let Some(d) = missing else { return Ok(()) };
        let (name, place) = (d.name.clone(), d.span);
        let d = Diagnostic::error(
            codes::MISSING_DIMENSION,
            at,
            format!("the size of `{name}` is not known: no argument of this launch has it"),
        )
        .with_secondary(place, "inside a mode, so no extent is it")
        .with_help(format!("make `{name}` a mode of its own, or a `const` parameter"));
        self.report(d)
    }

    /// A value without ties to this elaboration.
    fn portable(&mut self, v: Val, at: Span) -> ElabResult<Val> {
        match v {
            Val::Scalar(_) => match self.int_const(&v) {
                Some(i) => Ok(Val::Int(i)),
                None => {
                    let i = self.static_int(&v, at, "a static argument")?;
                    Ok(Val::Int(i))
                }
            },
            Val::Tuple(l) => Ok(Val::Tuple(l.into_iter().map(|v| self.portable(v, at)).collect::<ElabResult<_>>()?)),
            v @ (Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Word(_) | Val::Fn(_) | Val::Builtin(_)) => Ok(v),
            Val::Algebra(a) if is_static(&a) => Ok(Val::Algebra(a)),
            other => self.error(
                codes::NOT_CONSTANT,
                at,
                format!("a static argument is a constant, this is {}", other.describe()),
            ),
        }
    }

    fn kernel_arity<T>(&mut self, k: &KernelItem, given: usize, span: Span) -> ElabResult<T> {
        let names: Vec<&str> = k.params.iter().map(|p| p.name.name.as_str()).collect();
        let d = Diagnostic::error(
            codes::WRONG_ARGUMENTS,
            span,
            format!(
                "`{}` takes {}, {given} given",
                k.name.name,
                super::labels::count(names.len(), "argument", "arguments")
            ),
        )
        .with_secondary(k.name.span, format!("{}({})", k.name.name, names.join(", ")));
        self.report(d)
    }
}

/// The extents in a tensor's type, one for each mode; `None` where only its layout's value says how many there are.
fn axes(ty: &Expr, is_value: impl Fn(&Name) -> bool) -> Option<Vec<&Expr>> {
    let ExprKind::Index(_, dims) = &*ty.kind else { return Some(Vec::new()) };
    let [one] = &dims[..] else { return Some(dims.iter().map(|d| &d.value).collect()) };
    match &*one.value.kind {
        ExprKind::Layout(shape, _) => Some(match &*shape.kind {
            ExprKind::Tuple(list) => list.iter().collect(),
            ExprKind::Paren(e) => vec![e],
            _ => vec![shape],
        }),
        ExprKind::Name(n) if is_value(n) => None,
        ExprKind::Call(..) => None,
        _ => Some(vec![&one.value]),
    }
}

/// Does nothing in it belong to the elaboration that made it?
fn is_static(a: &ptoc_layout::Value) -> bool {
    use ptoc_layout::Value as V;
    match a {
        V::Layout(l) => l.is_static(),
        V::Composed(c) => c.layout.is_static() && c.offset.as_const().is_some(),
        V::Swizzle(_) => true,
        _ => false,
    }
}

impl ArgDim {
    /// Whether it is this dimension.
    pub fn is_dim(&self, name: &str) -> bool {
        matches!(self, ArgDim::Dim(n) if n == name)
    }
}

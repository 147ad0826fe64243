//! Launches: what a kernel gets for its parameters, and the kernel elaborated for that.

use super::stmts::Flow;
use super::windows::Passed;
use super::written::Written;
use super::{LaunchSite, Parts, ProgramElaborator, ProgramNode, ProgramStep, ScalarSource, Source};
use crate::instance::{Instance, instantiate};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{Bindings, ElabResult, ErrorReported, count, is_tensor};
use ptoc_ir::tile::{Const, Region, TensorDir, Ty};
use ptoc_names::ItemId;
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, RecordVal, Val, View};

/// Parameters and dimensions that reports show of a launch.
const SHOWN: usize = 6;

/// Launches of a program, those of its loops one by one.
const MOST_LAUNCHES: usize = 4096;

impl ProgramElaborator<'_> {
    /// `kernel<..>(..);`
    pub(super) fn launch(&mut self, e: &Expr, parts: &mut Parts) -> ElabResult<Flow> {
        let modules = self.elab.modules;
        let target = |s: &Self, callee: &Expr| match &*callee.kind {
            ExprKind::Name(n) => s.elab.modules.get(s.elab.module).scope.get(n).copied(),
            _ => None,
        };
        let ExprKind::Call(callee, args) = &*e.kind else {
            let d = Diagnostic::error(codes::UNUSED_VALUE, e.span, "this has no effect")
                .with_help("a program launches kernels: `kernel(a, b);`");
            return self.elab.report(d);
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
                return self.call_program(id, (statics, args), e.span, parts);
            }
            return match self.elab.expr(e)? {
                Val::Unit => Ok(Flow::Next),
                other => {
                    let d = Diagnostic::error(
                        codes::UNUSED_VALUE,
                        e.span,
                        format!("this computes {} and drops it", other.describe()),
                    );
                    self.elab.report(d)
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
                return self.elab.unknown_static(&k.statics, &n, &k.name);
            };
            let v = self.elab.expr(&a.value)?;
            let v = self.portable(v, a.value.span)?;
            bindings.statics.insert(p.name.name.clone(), v);
            bindings.places.insert(p.name.name.clone(), a.value.span);
        }
        for p in &k.statics {
            if let Some(set) = self.set_for(k, p).filter(|_| !bindings.statics.contains_key(&p.name.name)) {
                bindings.defs.insert(p.name.name.clone(), set);
            }
        }
        let given = self.launch_arguments(k, args, e.span)?;
        let known = |n: &Name| bindings.statics.contains_key(n) || bindings.defs.contains_key(n);
        for (p, v, at) in self.elab.deduce_types(&k.statics, &k.params, &given, known)? {
            bindings.statics.insert(p.name.name.clone(), v);
            bindings.places.insert(p.name.name.clone(), at);
        }
        let mut passed: Vec<Passed> = Vec::new();
        let mut scalars = Vec::new();
        // Dimensions that only windows of late extents have.
        let mut late = Vec::new();
        for (p, v) in k.params.iter().zip(&given) {
            match (is_tensor(&p.ty), v) {
                (true, Some((Val::View(view), at))) => {
                    let Source { source, len, .. } = self.tensor_source(view, p, *at, parts)?;
                    let batch = self.as_batch(id, p, view, *at);
                    let passed_as = batch.as_ref().filter(|_| !self.elab.is_whole(view)).unwrap_or(view);
                    let one = self.passed(passed_as, (source, len), *at, parts)?;
                    self.inputs_stay(p, &one, parts)?;
                    self.bind_dims(id, p, batch.as_ref().unwrap_or(view), &one, (&mut bindings, &mut late))?;
                    if p.default.is_some() {
                        bindings.given.push(p.name.name.clone());
                    }
                    passed.push(one);
                }
                (true, Some((Val::Absent(_) | Val::Nothing, _)) | None) if p.default.is_some() => {}
                (true, Some((Val::Absent(name), at))) => {
                    let declared = self.elab.env.get(name).map_or(*at, |(_, s)| s);
                    return self.elab.absent_used(name, *at, declared);
                }
                (true, Some((Val::Poison, _))) => return Err(ErrorReported),
                (true, Some((other, at))) => {
                    let message = format!("`{}` is a tensor, this is {}", p.name.name, other.describe());
                    return self.elab.error(codes::TYPE_MISMATCH, *at, message);
                }
                (false, Some((v, at))) => {
                    let ty = self.parameter_type(id, &p.ty, &bindings)?;
                    let x = self.elab.scalar_of(v, ty, *at)?;
                    match self.elab.b.const_of(x) {
                        Some(c) => scalars.push((p.name.name.clone(), ScalarSource::Known(c.bits))),
                        // A scalar argument without a value, which the check waits for.
                        None if !self.elab.waits.is_empty() => {}
                        None => {
                            let host = self.computed_late(x, &Region::default(), *at, parts)?;
                            scalars.push((p.name.name.clone(), ScalarSource::Late(host)));
                        }
                    }
                }
                (false, None) if p.default.is_some() => {}
                (_, None) => return self.kernel_arity(k, args.len(), e.span),
            }
        }
        late.retain(|n: &Name| !bindings.dims.contains_key(n));
        let mut instance = self.instance((id, &k.name.name), (&bindings, &late), e.span, parts)?;
        self.all_bound(&instance, (&bindings, &late), e.span)?;
        self.dtypes_agree(k, &instance, &passed, &bindings)?;
        self.do_not_alias(&instance, &passed, parts)?;
        self.are_written(k, &instance, &passed, parts)?;
        self.launch_places(&mut instance, &passed, k, &bindings, parts)?;
        for (t, p) in instance.tensors.iter().zip(&passed).filter(|(t, _)| t.dir != TensorDir::In) {
            let len = parts.sources.iter().find(|s| s.source == p.source).map_or(0, |s| s.len);
            debug_assert_eq!(t.dtype, p.dtype);
            // Which elements a window has that is moved, or of late extents, is not known: it adds none.
            if !p.is_known() {
                parts.note_moved(p.source, p.at);
            } else {
                let written = Written::with(parts.written.remove(&p.source), p.window.as_ref(), len);
                parts.written.insert(p.source, written);
            }
        }
        let sites = self.launch_sites(k, (&bindings, &given), e.span);
        self.demand_checks(parts)?;
        let moved = passed.iter().enumerate().filter_map(|(n, p)| Some((n, p.moved.as_ref()?.host.clone()))).collect();
        let lengths = passed.iter().enumerate().filter_map(|(n, p)| Some((n, p.lengths.clone()?))).collect();
        let (tensors, windows) = passed.into_iter().map(|p| (p.source, p.window)).unzip();
        parts.order.push(ProgramNode::Launch(parts.steps.len()));
        parts.steps.push(ProgramStep {
            instance,
            kernel: id,
            bindings,
            tensors,
            windows,
            moved,
            lengths,
            scalars,
            elsewhere: Vec::new(),
            undecided: self.elab.undecided,
            span: e.span,
            sites,
        });
        Ok(Flow::Next)
    }

    /// What a definition `KERNEL.NAME` says of a static parameter, for launches that do not give it.
    pub(super) fn set_for(&self, k: &KernelItem, p: &StaticParam) -> Option<Expr> {
        let defs = &self.elab.bindings.defs;
        let dotted = |name: &Name| {
            name.split_once('.').is_some_and(|(of, own)| of == k.name.name.as_str() && own == p.name.name.as_str())
        };
        defs.iter().find(|(name, _)| dotted(name)).map(|(_, set)| set.clone())
    }

    /// A launch and the calls that lead there, with what is known of their parameters.
    fn launch_sites(
        &self,
        k: &KernelItem,
        (bindings, given): (&Bindings, &[Option<(Val, Span)>]),
        span: Span,
    ) -> Vec<LaunchSite> {
        let known = |name: &Name, v: &Val| Some(format!("{name} = {}", self.elab.known_text(v)?));
        let scalars = k.params.iter().zip(given).filter(|(p, _)| !is_tensor(&p.ty));
        let scalars = scalars.filter_map(|(p, v)| known(&p.name.name, &v.as_ref()?.0));
        let statics = k.statics.iter().filter_map(|p| known(&p.name.name, bindings.statics.get(&p.name.name)?));
        let dims = bindings.dims.iter().map(|(name, n)| format!("{name} = {n}"));
        let launch = LaunchSite {
            name: k.name.name.clone(),
            span,
            with: statics.chain(scalars).chain(dims).take(SHOWN).collect(),
        };
        let calls = self.elab.env.calls().into_iter().map(|call| {
            let with = call.names.iter().filter_map(|(name, binding, _)| match binding {
                Binding::Let(v) => known(name, v),
                Binding::Var(..) => None,
            });
            LaunchSite { name: call.function.clone(), span: call.span, with: with.take(SHOWN).collect() }
        });
        [launch].into_iter().chain(calls).collect()
    }

    /// The kernel, elaborated once for equal bindings of one place.
    fn instance(
        &mut self,
        (id, name): (ItemId, &Name),
        (bindings, late): (&Bindings, &[Name]),
        at: Span,
        parts: &mut Parts,
    ) -> ElabResult<Instance> {
        if parts.steps.len() == MOST_LAUNCHES {
            let message = format!("the program has more than {MOST_LAUNCHES} launches");
            let d = Diagnostic::error(codes::OUT_OF_FUEL, at, message)
                .with_label("one more")
                .with_note("loops of a program are unrolled: each iteration has launches of its own")
                .with_help("loop inside of the kernel: `for k in 0..n { .. }`");
            return self.elab.report(d);
        }
        let Bindings { defs, dims, given, statics, places, .. } = bindings;
        let key = (id, format!("{defs:?} {dims:?} {given:?} {statics:?} {places:?}"));
        if let Some(known) = parts.instances.get(&key) {
            return Ok(known.clone());
        }
        let outcome = instantiate(self.elab.modules, id, self.elab.target, bindings);
        if let Some(waited) = outcome.waits.iter().find(|n| late.contains(n)) {
            let sizes = outcome.diagnostics.iter().find(|d| d.code == codes::DEPENDS_ON_DIMENSION);
            let sizes = sizes.and_then(|d| d.span);
            return self.late_size(waited, sizes, at);
        }
        let told: Vec<_> = outcome.diagnostics.into_iter().map(|d| self.launched(d, name, at)).collect();
        self.elab.diags.extend(told);
        let instance = outcome.result.ok_or(ErrorReported)?;
        parts.instances.insert(key, instance.clone());
        Ok(instance)
    }

    /// An error in a kernel of another file with the launches that have led there: the last one is the author's.
    fn launched(&self, d: Diagnostic, kernel: &Name, at: Span) -> Diagnostic {
        let calls = self.elab.env.calls();
        let authors = calls.last().map_or(at, |call| call.span);
        if !d.is_error() || d.span.is_none_or(|s| s.file == authors.file) {
            return d;
        }
        let launches = calls.iter().map(|call| (call.function, call.span));
        std::iter::once((kernel, at))
            .chain(launches)
            .fold(d, |d, (name, at)| d.with_secondary(at, format!("`{name}` is launched here")))
    }

    /// A dimension that sizes tiles, and that only windows of late extents have.
    fn late_size<T>(&mut self, name: &Name, sizes: Option<Span>, at: Span) -> ElabResult<T> {
        let message = format!("`{name}` sizes a tile, and is known only when the program runs");
        let d = Diagnostic::error(codes::NOT_CONSTANT, at, message).with_label("a window whose extent is computed");
        let d = sizes.into_iter().fold(d, |d, sizes| d.with_secondary(sizes, format!("`{name}` has to be known here")));
        let blocks = format!("take blocks of it in the kernel, `i in tiles({name}, 16)`");
        self.elab.report(d.with_help(format!("{blocks}, or pass a window of a length that is known")))
    }

    /// The type of a scalar parameter, which may be a `type` parameter of its kernel.
    fn parameter_type(&mut self, kernel: ItemId, ty: &Expr, bindings: &Bindings) -> ElabResult<Ty> {
        let outside = std::mem::replace(&mut self.elab.module, kernel.module);
        self.elab.env.push_frame();
        for (name, v) in &bindings.statics {
            self.elab.env.define(name.clone(), Binding::Let(v.clone()), ty.span);
        }
        let ty = self.elab.scalar_type(ty);
        self.elab.env.pop_frame();
        self.elab.module = outside;
        ty
    }

    fn dtypes_agree(
        &mut self,
        k: &KernelItem,
        instance: &Instance,
        passed: &[Passed],
        bindings: &Bindings,
    ) -> ElabResult<()> {
        for (t, p) in instance.tensors.iter().zip(passed) {
            if t.dtype != p.dtype {
                let message =
                    format!("`{}` of `{}` holds `{}`, this holds `{}`", t.name, k.name.name, t.dtype, p.dtype);
                let d = Diagnostic::error(codes::DTYPE_MISMATCH, p.at, message).with_secondary(t.span, "the parameter");
                let parameter = k.params.iter().find(|p| p.name.name == t.name).map(|p| &*p.ty.kind);
                let base = match parameter {
                    Some(ExprKind::Index(base, _)) => Some(&*base.kind),
                    _ => None,
                };
                let said = match base {
                    Some(ExprKind::Name(n)) => bindings.places.get(n).map(|at| (n, *at)),
                    _ => None,
                };
                return self.elab.report(match said {
                    Some((n, at)) => d.with_secondary(at, format!("`{n}` is `{}` by this argument", t.dtype)),
                    None => d,
                });
            }
        }
        Ok(())
    }

    /// What one argument writes no other one has.
    fn do_not_alias(&mut self, instance: &Instance, passed: &[Passed], parts: &Parts) -> ElabResult<()> {
        let arguments: Vec<_> = instance.tensors.iter().zip(passed).collect();
        for (n, (t, p)) in arguments.iter().enumerate() {
            let source = parts.sources.iter().find(|s| s.source == p.source);
            let name = source.map_or_else(|| "?".into(), |s| s.name.clone());
            for (other, q) in &arguments[..n] {
                if (t.dir == TensorDir::In && other.dir == TensorDir::In) || !self.meet_in(p, q) {
                    continue;
                }
                return self.aliasing(&name, (&other.name, &t.name), (q, p));
            }
        }
        Ok(())
    }

    /// Two parameters that are given the same elements.
    pub(super) fn aliasing<T>(
        &mut self,
        name: &Name,
        (first, second): (&Name, &Name),
        (q, p): (&Passed, &Passed),
    ) -> ElabResult<T> {
        let moved = p.moved.is_some() || q.moved.is_some();
        let longest = p.lengths.is_some() || q.lengths.is_some();
        let message = match p.window.is_some() || q.window.is_some() {
            true if moved || longest => {
                format!("windows of `{name}` for `{first}` and `{second}` may have elements in common")
            }
            true => format!("windows of `{name}` for `{first}` and `{second}` have elements in common"),
            false => format!("`{name}` is passed twice, the second time for `{second}`"),
        };
        let d = Diagnostic::error(codes::ALIASING_ARGUMENTS, p.at, message)
            .with_label("passed again")
            .with_secondary(q.at, format!("for `{first}`"));
        let d = match moved {
            true => d.with_note("where they begin is known when the program runs, and not how far they are apart"),
            false => d,
        };
        let d = match longest {
            true => d.with_note(
                "how long they are is known when the program runs: until then they are as long as they can be",
            ),
            false => d,
        };
        let d = d
            .with_note("what a launch writes is no other argument of it; one tensor may be several `in` arguments")
            .with_help("pass a tensor of the program's own: `let t = tensor f32[M, N];`");
        self.elab.report(d)
    }

    /// What is read has a value.
    fn are_written(&mut self, k: &KernelItem, instance: &Instance, passed: &[Passed], parts: &Parts) -> ElabResult<()> {
        for (t, p) in instance.tensors.iter().zip(passed) {
            if t.dir == TensorDir::Out || parts.failed {
                continue;
            }
            let Some(source) = parts.sources.iter().find(|s| s.source == p.source) else { continue };
            self.is_read(k, source, p, t.span, parts)?;
        }
        Ok(())
    }

    /// `k` reads an argument for the parameter there.
    pub(super) fn is_read(
        &mut self,
        k: &KernelItem,
        source: &Source,
        p: &Passed,
        parameter: Span,
        parts: &Parts,
    ) -> ElabResult<()> {
        let name = &source.name;
        let message = match parts.written.get(&p.source).map(|w| w.lacks(p.fixed(), source.len)) {
            Some(None) => return Ok(()),
            Some(Some(gap)) => {
                let at = self.coordinates(source.id, gap);
                format!("element {at:?} of `{name}` is read before any launch has written it")
            }
            None if source.len == 0 => return Ok(()),
            None if parts.written_on_some(p.source) => {
                format!("`{name}` is read, and no launch writes it on some path to here")
            }
            None => format!("`{name}` is read before any launch has written it"),
        };
        let d = Diagnostic::error(codes::TENSOR_UNWRITTEN, p.at, message)
            .with_label(format!("`{}` reads it", k.name.name))
            .with_secondary(parameter, "read as this argument")
            .with_help("launch what writes it first, or give it a value: `tensor .. fill 0`");
        self.elab.report(parts.say_paths(d, p.source))
    }

    pub(super) fn tensor_source(&mut self, view: &View, p: &Param, at: Span, parts: &Parts) -> ElabResult<Source> {
        let Some(source) = parts.sources.iter().find(|s| s.id == view.tensor).cloned() else {
            return Err(ErrorReported);
        };
        let writes = matches!(p.dir, Some((Dir::Out | Dir::InOut, _)));
        if writes && source.dir == TensorDir::In {
            let message = format!("`{}` is `in`, and `{}` is written", source.name, p.name.name);
            let d = Diagnostic::error(codes::NOT_WRITABLE, at, message)
                .with_help("declare it `inout`, or pass a tensor of the program");
            return self.elab.report(d);
        }
        Ok(source)
    }

    /// The view with a last mode of 1, where the parameter has one mode more: (M, N) is a batch (M, N, 1). A vector is
    /// no matrix of one column.
    fn as_batch(&mut self, kernel: ItemId, p: &Param, view: &View, at: Span) -> Option<View> {
        let axes = axes(&p.ty, |n| self.names_value(kernel, n))?;
        let rank = view.modes.len();
        let one = match &*axes.last()?.kind {
            ExprKind::Name(n) => !self.names_value(kernel, n),
            ExprKind::Int(n) => *n == 1,
            _ => false,
        };
        if rank < 2 || axes.len() != rank + 1 || !one {
            return None;
        }
        let name = &p.name.name;
        let message =
            format!("`{name}` has {} modes, this tensor {rank}: it is taken with a last extent of 1", rank + 1);
        let d = Diagnostic::note(codes::APPENDED_MODE, at, message)
            .with_label("a batch of one")
            .with_secondary(p.span, "the parameter");
        // Once for each parameter.
        if !self.elab.diags.iter().any(|d| d.code == codes::APPENDED_MODE && d.labels.iter().any(|l| l.span == p.span))
        {
            self.elab.diags.push(d);
        }
        let mut out = view.clone();
        let mode = self.elab.single(&out.window, 1);
        out.window.modes.push(mode);
        Some(out)
    }

    /// Dimensions that bare names of the parameter's extents bind; a layout of the parameter has one for each mode.
    fn bind_dims(
        &mut self,
        kernel: ItemId,
        p: &Param,
        view: &View,
        passed: &Passed,
        (bindings, late): (&mut Bindings, &mut Vec<Name>),
    ) -> ElabResult<()> {
        let at = passed.at;
        let Some(axes) = axes(&p.ty, |n| self.names_value(kernel, n)) else { return Ok(()) };
        if axes.len() != view.modes.len() {
            let message = format!(
                "`{}` has {}, this tensor has {}",
                p.name.name,
                count(axes.len(), "mode", "modes"),
                view.modes.len()
            );
            let d = Diagnostic::error(codes::RANK_MISMATCH, at, message).with_secondary(p.span, "the parameter");
            return self.elab.report(d);
        }
        for (mode, (d, m)) in axes.into_iter().zip(&view.modes).enumerate() {
            let ExprKind::Name(n) = &*d.kind else { continue };
            if passed.is_late(mode) {
                late.push(n.clone());
                continue;
            }
            let i = self.elab.static_int(&Val::Scalar(m.extent), at, "an extent")?;
            let i = i64::try_from(i).map_err(|_| ErrorReported)?;
            match bindings.dims.insert(n.clone(), i) {
                Some(old) if old != i => {
                    let d = Diagnostic::error(
                        codes::SHAPE_MISMATCH,
                        at,
                        format!("`{n}` is {old} from an earlier argument, and {i} here"),
                    )
                    .with_secondary(p.span, "the parameter");
                    return self.elab.report(d);
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Whether `n` is a value in the kernel's signature, and no dimension.
    fn names_value(&self, kernel: ItemId, n: &Name) -> bool {
        let constant = self.elab.modules.get(kernel.module).scope.contains_key(n);
        constant
            || match &self.elab.modules.item(kernel).kind {
                ItemKind::Kernel(k) => k.statics.iter().any(|s| s.name.name == *n),
                _ => false,
            }
    }

    /// Every dimension of a launch comes from the extents of its arguments.
    fn all_bound(&mut self, instance: &Instance, (bindings, late): (&Bindings, &[Name]), at: Span) -> ElabResult<()> {
        let bound = |name: &str| bindings.dims.contains_key(name) || late.iter().any(|n| n == name);
        let missing = instance.kernel.dims.values().find(|d| !bound(&d.name));
        let Some(d) = missing else { return Ok(()) };
        let (name, place) = (d.name.clone(), d.span);
        let d = Diagnostic::error(
            codes::MISSING_DIMENSION,
            at,
            format!("the size of `{name}` is not known: no argument of this launch has it"),
        )
        .with_secondary(place, "inside a mode, so no extent is it")
        .with_help(format!("make `{name}` a mode of its own, or a `const` parameter"));
        self.elab.report(d)
    }

    /// A value without ties to this elaboration.
    fn portable(&mut self, v: Val, at: Span) -> ElabResult<Val> {
        match v {
            Val::Scalar(x) => match (self.elab.int_const(&v), self.elab.b.const_of(x)) {
                (Some(i), _) => Ok(Val::Int(i)),
                // A float that is rounded already is exact as a literal.
                (None, Some(Const { ty: Ty::D(d), bits })) if d.is_float() => {
                    Ok(Val::Float(ptoc_tensor::scalar::bits_to_f64(d, bits)))
                }
                (None, Some(Const { ty: Ty::BOOL, bits })) => Ok(Val::Bool(bits != 0)),
                _ => {
                    let i = self.elab.static_int(&v, at, "a static argument")?;
                    Ok(Val::Int(i))
                }
            },
            Val::Tuple(l) => Ok(Val::Tuple(l.into_iter().map(|v| self.portable(v, at)).collect::<ElabResult<_>>()?)),
            Val::Record(r) => {
                let fields = r.fields.iter().map(|(n, v)| Ok((n.clone(), self.portable(v.clone(), at)?)));
                Ok(Val::Record(RecordVal::new(fields.collect::<ElabResult<_>>()?).into()))
            }
            Val::Closure(c) => {
                let mut c = (*c).clone();
                for (name, v, _) in &mut c.captured {
                    let held = std::mem::replace(v, Val::Poison);
                    if !self.elab.is_constant(&held) {
                        let d = Diagnostic::error(codes::NOT_CONSTANT, at, "a static argument is a constant")
                            .with_label(format!("the closure captures `{name}`, which is known when the program runs"));
                        return self.elab.report(d);
                    }
                    *v = self.portable(held, at)?;
                }
                Ok(Val::Closure(c.into()))
            }
            v @ (Val::Int(_) | Val::Float(_) | Val::Bool(_) | Val::Word(_) | Val::Fn(_) | Val::Builtin(_)) => Ok(v),
            Val::Algebra(a) if is_static(&a) => Ok(Val::Algebra(a)),
            other => self.elab.error(
                codes::NOT_CONSTANT,
                at,
                format!("a static argument is a constant, this is {}", other.describe()),
            ),
        }
    }

    pub(super) fn kernel_arity<T>(&mut self, k: &KernelItem, given: usize, span: Span) -> ElabResult<T> {
        let names: Vec<&str> = k.params.iter().map(|p| p.name.name.as_str()).collect();
        let d = Diagnostic::error(
            codes::WRONG_ARGUMENTS,
            span,
            format!("`{}` takes {}, {given} given", k.name.name, count(names.len(), "argument", "arguments")),
        )
        .with_secondary(k.name.span, format!("{}({})", k.name.name, names.join(", ")));
        self.elab.report(d)
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

/// Whether nothing in it belongs to the elaboration that made it.
fn is_static(a: &ptoc_layout::Value) -> bool {
    use ptoc_layout::Value as V;
    match a {
        V::Layout(l) => l.is_static(),
        V::Composed(c) => c.layout.is_static() && c.offset.as_const().is_some(),
        V::Swizzle(_) => true,
        _ => false,
    }
}

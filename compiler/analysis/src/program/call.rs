//! Programs launched by programs: the callee's launches, here, on windows of the caller's tensors.

use super::stmts::Flow;
use super::windows::Passed;
use super::written::Written;
use super::{Parts, ProgramElaborator, Source};
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_elab::{ElabResult, ErrorReported, is_tensor};
use ptoc_names::ItemId;
use ptoc_syntax::ast::*;
use ptoc_values::{Binding, Val};

/// Programs in programs, at most.
const MOST_CALLS: usize = 32;

/// A program that is being launched by another one.
pub(super) struct CalledProgram {
    pub item: ItemId,
    /// What its `in` parameters stand for, with their names: its launches do not write that.
    pub inputs: Vec<(Name, Passed)>,
}

/// A tensor that a program is given, and how it uses it.
struct GivenTensor<'k> {
    param: &'k Param,
    source: Source,
    passed: Passed,
}

impl GivenTensor<'_> {
    fn is(&self, dir: Dir) -> bool {
        matches!(self.param.dir, Some((d, _)) if d == dir)
    }
}

impl ProgramElaborator<'_> {
    /// `program<..>(..);` inside of a program.
    pub(super) fn call_program(
        &mut self,
        id: ItemId,
        (statics, args): (&[Arg], &[Arg]),
        span: Span,
        parts: &mut Parts,
    ) -> ElabResult<Flow> {
        self.elab.step(span)?;
        let modules = self.elab.modules;
        let ItemKind::Program(k) = &modules.item(id).kind else { return Err(ErrorReported) };
        if id == parts.item || parts.called.len() >= MOST_CALLS || parts.called.iter().any(|c| c.item == id) {
            let d = Diagnostic::error(codes::RECURSION, span, format!("`{}` launches itself", k.name.name))
                .with_label("this would never end")
                .with_secondary(k.name.span, "the launches of a program stand where it is called")
                .with_help("use a loop");
            return self.elab.report(d);
        }
        let statics = self.elab.given_statics(&k.statics, statics, &k.name)?;
        let given = self.launch_arguments(k, args, span)?;
        // Defaults have the names of the program's own file.
        let outside = std::mem::replace(&mut self.elab.module, id.module);
        let statics = self.program_statics(k, statics, &given);
        self.elab.module = outside;
        let statics = statics?;
        let tensors = self.given_tensors(k, &given, parts)?;
        self.demand_checks(parts)?;
        self.tensors_do_not_alias(&tensors)?;
        self.inputs_are_written(k, &tensors, parts)?;
        // An `out` argument starts without a value.
        for t in tensors.iter().filter(|t| t.is(Dir::Out)) {
            let known = parts.written.remove(&t.passed.source);
            if let Some(left) = Written::without(known, t.passed.window.as_ref(), t.source.len) {
                parts.written.insert(t.passed.source, left);
            }
        }
        let outputs: Vec<_> = tensors.iter().filter(|t| t.is(Dir::Out)).map(|t| (t.param, t.source.clone())).collect();
        let windows: Vec<_> = tensors.iter().filter(|t| t.is(Dir::Out)).map(|t| t.passed.window.clone()).collect();
        let inputs = tensors.into_iter().filter(|t| t.is(Dir::In));
        let inputs = inputs.map(|t| (t.param.name.name.clone(), t.passed)).collect();
        parts.called.push(CalledProgram { item: id, inputs });
        let module = std::mem::replace(&mut self.elab.module, id.module);
        self.elab.env.push_call(k.name.name.clone(), span);
        for (name, v, at) in statics {
            self.elab.env.define(name, Binding::Let(v), at);
        }
        let result = self.bind_and_launch(k, given, parts);
        self.elab.env.pop_frame();
        self.elab.module = module;
        parts.called.pop();
        if result? == Flow::Left {
            return Ok(Flow::Left);
        }
        for ((param, source), window) in outputs.iter().zip(&windows) {
            let gap = match parts.written.get(&source.source) {
                Some(w) => w.lacks(window.as_ref(), source.len),
                None => (source.len > 0).then_some(0),
            };
            if gap.is_some() && !parts.failed && !parts.waiting {
                let message = format!("`{}` leaves elements of `{}` without a value", k.name.name, param.name.name);
                let d = Diagnostic::error(codes::TENSOR_UNWRITTEN, param.span, message)
                    .with_label("an `out` argument")
                    .with_secondary(span, "launched here")
                    .with_help("pass it to a kernel that writes it, or declare it `inout`");
                return self.elab.report(d);
            }
        }
        Ok(Flow::Next)
    }

    /// Static parameters of a called program: given, deduced from its tensors, defaults.
    fn program_statics(
        &mut self,
        k: &KernelItem,
        given: Vec<Option<(Val, Span)>>,
        arguments: &[Option<(Val, Span)>],
    ) -> ElabResult<Vec<(Name, Val, Span)>> {
        let mut out = Vec::new();
        let types = self.elab.deduce_types(&k.statics, &k.params, arguments, |_| false)?;
        for (p, given) in k.statics.iter().zip(given) {
            let deduced = || types.iter().find(|(q, ..)| q.span == p.span).map(|(_, v, at)| (v.clone(), *at));
            let v = match (given.or_else(deduced), self.set_for(k, p)) {
                (Some((v, at)), _) => self.elab.static_value(p, v, at)?,
                (None, Some(set)) => {
                    let v = self.elab.expr(&set)?;
                    self.elab.static_value(p, v, set.span)?
                }
                (None, None) => self.elab.static_default(p, &k.name)?,
            };
            out.push((p.name.name.clone(), v, p.name.span));
        }
        Ok(out)
    }

    /// The arguments in the order of the parameters.
    pub(super) fn launch_arguments(
        &mut self,
        k: &KernelItem,
        args: &[Arg],
        span: Span,
    ) -> ElabResult<Vec<Option<(Val, Span)>>> {
        let mut given: Vec<Option<(Val, Span)>> = vec![None; k.params.len()];
        for (i, a) in args.iter().enumerate() {
            let slot = match &a.name {
                None => Some(i),
                Some(n) => k.params.iter().position(|p| p.name.name == n.name),
            };
            match slot {
                Some(s) if s < given.len() && given[s].is_none() => {
                    given[s] = Some((self.elab.maybe_absent(&a.value)?, a.value.span))
                }
                _ => return self.kernel_arity(k, args.len(), span),
            }
        }
        if k.params.iter().zip(&given).any(|(p, v)| v.is_none() && p.default.is_none()) {
            return self.kernel_arity(k, args.len(), span);
        }
        Ok(given)
    }

    fn given_tensors<'k>(
        &mut self,
        k: &'k KernelItem,
        given: &[Option<(Val, Span)>],
        parts: &Parts,
    ) -> ElabResult<Vec<GivenTensor<'k>>> {
        let mut out = Vec::new();
        for (param, v) in k.params.iter().zip(given).filter(|(p, _)| is_tensor(&p.ty)) {
            if let Some(at) = &param.at {
                return self.elab.not_yet(at.span, "placements of parameters of programs that programs launch");
            }
            let Some((Val::View(view), at)) = v else { continue };
            let source = self.tensor_source(view, param, *at, parts)?;
            let passed = self.passed(view, (source.source, source.len), *at, parts)?;
            if !passed.is_known() && matches!(param.dir, Some((Dir::Out, _))) {
                let message = "a window that the program finds when it runs is no `out` argument of a program";
                let d = Diagnostic::error(codes::LAUNCH_WINDOW, *at, message)
                    .with_secondary(param.span, "the parameter")
                    .with_help("declare it `inout`, or launch the kernels on the window");
                return self.elab.report(d);
            }
            self.inputs_stay(param, &passed, parts)?;
            out.push(GivenTensor { param, source, passed });
        }
        Ok(out)
    }

    fn tensors_do_not_alias(&mut self, tensors: &[GivenTensor<'_>]) -> ElabResult<()> {
        for (n, t) in tensors.iter().enumerate() {
            for other in &tensors[..n] {
                if !(t.is(Dir::In) && other.is(Dir::In)) && self.meet_in(&t.passed, &other.passed) {
                    let names = (&other.param.name.name, &t.param.name.name);
                    return self.aliasing(&t.source.name, names, (&other.passed, &t.passed));
                }
            }
        }
        Ok(())
    }

    fn inputs_are_written(&mut self, k: &KernelItem, tensors: &[GivenTensor<'_>], parts: &Parts) -> ElabResult<()> {
        for t in tensors.iter().filter(|t| !t.is(Dir::Out) && !parts.failed) {
            self.is_read(k, &t.source, &t.passed, t.param.span, parts)?;
        }
        Ok(())
    }

    /// What a launch writes is no `in` parameter of the program that launches it.
    pub(super) fn inputs_stay(&mut self, p: &Param, passed: &Passed, parts: &Parts) -> ElabResult<()> {
        if !matches!(p.dir, Some((Dir::Out | Dir::InOut, _))) {
            return Ok(());
        }
        let inputs = parts.called.last().map_or(&[][..], |c| &c.inputs[..]);
        let Some((name, _)) = inputs.iter().find(|(_, input)| self.meet_in(input, passed)) else { return Ok(()) };
        let message = format!("`{name}` is `in`, and `{}` is written", p.name.name);
        let d = Diagnostic::error(codes::NOT_WRITABLE, passed.at, message)
            .with_help("declare it `inout`, or pass a tensor of the program");
        self.elab.report(d)
    }

    /// Parameters, then the launches.
    fn bind_and_launch(
        &mut self,
        k: &KernelItem,
        given: Vec<Option<(Val, Span)>>,
        parts: &mut Parts,
    ) -> ElabResult<Flow> {
        // Extents may speak of any other parameter, so those are bound first.
        let (tensors, scalars): (Vec<_>, Vec<_>) = k.params.iter().zip(given).partition(|(p, _)| is_tensor(&p.ty));
        for (p, v) in scalars.into_iter().chain(tensors) {
            let v = match v {
                Some((v @ (Val::Absent(_) | Val::Nothing), _)) if p.default.is_some() => v,
                None if is_tensor(&p.ty) => Val::Absent(p.name.name.clone()),
                Some((v, at)) => {
                    let v = self.elab.bind_param(p, v, at)?;
                    self.kept(v, at, parts)?
                }
                None => {
                    let e = p.default.as_ref().ok_or(ErrorReported)?;
                    let v = self.elab.expr(e)?;
                    self.elab.bind_param(p, v, e.span)?
                }
            };
            self.elab.env.define(p.name.name.clone(), Binding::Let(v), p.name.span);
        }
        self.called_wheres(k, parts)?;
        let around = std::mem::take(&mut parts.loops);
        self.elab.env.push();
        let flow = self.program_stmts(&k.body, parts);
        self.elab.env.pop();
        parts.loops = around;
        flow
    }
}

//! What the launches of a program leave unwritten, and a later one reads.

use crate::launch;
use crate::session::Session;
use ptoc_analysis::{ProgramInstance, ProgramStep, ScalarSource, TensorSource};
use ptoc_checks::blocks;
use ptoc_diagnostics::{Code, Diagnostic, Span, codes};
use ptoc_ir::tile::{Kernel, TensorDir, TensorId};
use ptoc_layout::Storage;
use ptoc_syntax::ast::Name;

/// A tensor that a launch leaves unwritten in part, or may.
struct Left {
    source: TensorSource,
    code: Code,
    kernel: Name,
    /// Which elements have been written by now, as far as that is known.
    written: Option<Vec<bool>>,
}

/// One launch.
pub(crate) struct UnwrittenLaunch {
    kernel: Kernel,
    tensors: Vec<TensorSource>,
    /// Those of which it gets a window.
    windows: Vec<bool>,
    span: Span,
    /// Its dimensions, where they are known.
    dims: Option<Vec<i64>>,
    /// Bits of its scalars; `None`: the default.
    scalars: Vec<Option<u64>>,
}

/// The tensors of a program as its launches go by.
pub(crate) struct Unwritten {
    /// Names and shapes of the arguments, then those of the program's own tensors.
    arguments: Vec<(Name, Option<Vec<usize>>)>,
    locals: Vec<(Name, Option<Vec<usize>>)>,
    left: Vec<Left>,
}

impl Unwritten {
    pub fn new(program: &ProgramInstance) -> Unwritten {
        let fixed = program.fixed.iter().cloned().collect();
        let shape = |dims: &[_]| dims.iter().map(|d| launch::extent(d, &fixed)).collect();
        let own = |shape: &[i64]| shape.iter().map(|&n| usize::try_from(n).ok()).collect();
        Unwritten {
            arguments: program.tensors.iter().map(|t| (t.name.clone(), shape(&t.dims))).collect(),
            locals: program.locals.iter().map(|t| (t.name.clone(), own(&t.shape))).collect(),
            left: Vec::new(),
        }
    }

    fn tensor(&self, source: TensorSource) -> &(Name, Option<Vec<usize>>) {
        match source {
            TensorSource::Arg(n) => &self.arguments[n],
            TensorSource::Local(n) => &self.locals[n],
        }
    }

    /// A launch, before the passes take its kernel.
    pub fn of(&self, step: &ProgramStep) -> UnwrittenLaunch {
        let shape = |(source, window): (&TensorSource, &Option<Storage>)| match window {
            Some(window) => window.shape().iter().map(|&n| usize::try_from(n).ok()).collect(),
            None => self.tensor(*source).1.clone(),
        };
        let shapes: Option<Vec<Vec<usize>>> = step.tensors.iter().zip(&step.windows).map(shape).collect();
        let given = |name: &Name| match step.scalars.iter().find(|(n, _)| n == name) {
            Some((_, ScalarSource::Known(bits))) => Some(*bits),
            _ => None,
        };
        let late = step.scalars.iter().any(|(_, s)| matches!(s, ScalarSource::Late(_)));
        let shapes = shapes.filter(|_| !late);
        UnwrittenLaunch {
            kernel: step.instance.kernel.clone(),
            tensors: step.tensors.clone(),
            windows: step.windows.iter().map(Option::is_some).collect(),
            span: step.span,
            dims: shapes.map(|shapes| launch::step_dims(step, &shapes)),
            scalars: step.instance.scalars.iter().map(|s| given(&s.name).or(s.given)).collect(),
        }
    }

    /// Warns of what a launch reads that the earlier ones have not written for certain. `told` is what was said of its
    /// kernel.
    pub fn launched(&mut self, session: &mut Session, step: &UnwrittenLaunch, told: &[Diagnostic]) {
        let kernel = &step.kernel;
        let leaving = |span: Span| told.iter().find(|d| leaves(d, span)).map(|d| d.code);
        let known = |l: &[Left], s: &TensorSource| l.iter().any(|l| l.source == *s);
        let concerned = kernel.tensors.values().zip(&step.tensors);
        let concerned = concerned.filter(|(t, s)| leaving(t.span).is_some() || known(&self.left, s)).count() > 0;
        if !concerned {
            return;
        }
        // Which elements of its tensors it writes for certain.
        let budget = session.budget.kernel();
        let written = step.dims.as_ref().and_then(|dims| blocks::written(kernel, dims, &step.scalars, &budget));
        session.budget.settle(&budget);
        let writes = |tensor: TensorId| written.as_ref()?.get(&tensor).cloned();
        for (((id, t), source), window) in kernel.tensors.iter().zip(&step.tensors).zip(&step.windows) {
            let before = self.left.iter().position(|l| l.source == *source).map(|at| self.left.swap_remove(at));
            // Elements of a window are not those of its tensor.
            let own = writes(id).filter(|_| !window);
            let earlier = before.as_ref().and_then(|l| l.written.clone());
            let written = match (&before, own, earlier) {
                (Some(_), Some(own), Some(earlier)) if own.len() == earlier.len() => {
                    Some(own.iter().zip(&earlier).map(|(a, b)| *a || *b).collect::<Vec<bool>>())
                }
                (None, own, _) => own,
                // What is known alone.
                (Some(_), own, earlier) => own.or(earlier),
            };
            let whole = written.as_ref().is_some_and(|w| !w.contains(&false));
            let Some(before) = before else {
                if let (Some(code), false) = (leaving(t.span), whole) {
                    self.left.push(Left { source: *source, code, kernel: kernel.name.as_str().into(), written });
                }
                continue;
            };
            // One warning for a tensor: what it reads is taken for written from there on.
            if blocks::reads(kernel, id) {
                session.diagnostics.push(self.read(&before, step.span));
            } else if !whole && (t.dir != TensorDir::Out || leaving(t.span).is_some()) {
                let (code, kernel) = match leaving(t.span) {
                    Some(code) => (code, kernel.name.as_str().into()),
                    None => (before.code, before.kernel),
                };
                self.left.push(Left { source: *source, code, kernel, written });
            }
        }
    }

    fn read(&self, left: &Left, span: Span) -> Diagnostic {
        let Left { source, code, kernel, .. } = left;
        let sure = *code == codes::UNWRITTEN_ELEMENTS;
        let what = if sure { "has not written" } else { "is not proved to have written" };
        let name = &self.tensor(*source).0;
        let message = format!("this launch reads `{name}`, of which the launch of `{kernel}` {what} every element");
        Diagnostic::warning(*code, span, message)
            .with_label("reads what may not be there")
            .with_help(format!("let `{kernel}` write all of it, or give the tensor a `fill`"))
    }
}

/// Whether it says of the tensor declared there that elements are not written.
fn leaves(d: &Diagnostic, tensor: Span) -> bool {
    let about = d.span == Some(tensor) || d.labels.iter().any(|l| l.span == tensor);
    about && matches!(d.code, codes::UNWRITTEN_ELEMENTS | codes::COVER_NOT_PROVED)
}

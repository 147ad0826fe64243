//! What a kernel is made of, without a launch: its check, its memories, its stages; and results held to `ensures`.

use super::arrays::Call;
use super::{Callable, Report, Specialization, on_large_stack};
use crate::check::check_entry;
use crate::launch::{CompiledPlan, Plan, RunOptions, Tolerance, Verified, verify};
use crate::maps::maps_of;
use crate::session::{CompilationUnit, EntryPoint, Failed, Session};
use crate::stages::{Stage, text_of};
use ptoc_diagnostics::{Diagnostic, FileId, SourceMap, codes, list};
use ptoc_placement::MemoryMap;
use ptoc_tensor::Tensor;
use std::sync::Arc;

/// The memories of a kernel, or of each kernel that a program launches, with the texts that they point to.
#[derive(Debug)]
pub struct Memories {
    /// In the order of launches.
    pub maps: Vec<MemoryMap>,
    /// The texts.
    pub sources: SourceMap,
    /// The file of the kernel.
    pub file: FileId,
}

impl Callable {
    /// Everything that `ptoc check` says of it with its constants.
    pub fn check(&self) -> Report {
        self.inspected(|session, unit, entry| {
            check_entry(session, unit, entry);
            Ok(())
        })
        .map_or_else(|report| report, |((), report)| report)
    }

    /// Where its tiles are, and when. Sizes that it needs for that are among its constants.
    ///
    /// # Errors
    /// It is refused, or a size is missing.
    pub fn memories(&self) -> Result<Memories, Report> {
        on_large_stack(|| {
            let mut session = self.session(&Call::of(self.signature()))?;
            let made =
                self.entered(&mut session, &mut |session, unit, entry| Ok((maps_of(session, unit, entry)?, unit.file)));
            match made {
                Ok((maps, file)) => Ok(Memories { maps, sources: std::mem::take(&mut session.sources), file }),
                Err(Failed) => Err(Report::of_session(&mut session)),
            }
        })
    }

    /// The text of a stage of its compilation, as `ptoc emit --stage` prints it.
    ///
    /// # Errors
    /// There is no such stage, it is refused, or a size is missing.
    pub fn stage(&self, name: &str) -> Result<String, Report> {
        let Some(stage) = Stage::named(name).filter(|s| !matches!(s, Stage::Tokens | Stage::Ast)) else {
            let all = Stage::all();
            let known = all.iter().filter(|(s, ..)| !matches!(s, Stage::Tokens | Stage::Ast));
            let d = Diagnostic::global(codes::BACKEND_TARGET, format!("a kernel has no stage `{name}`"));
            return Err(self.report(d.with_help(format!("the stages are {}", list(known.map(|(_, name, _)| *name))))));
        };
        let shown = self.inspected(|session, unit, entry| match stage {
            Stage::Of(backend, stage) if stage.plan => {
                let plan = Plan::without_arrays(session, unit, entry, &[])?;
                Ok(backend.emit_plan(session, &plan, stage)?.text)
            }
            stage => text_of(session, unit, entry, stage, Vec::new()),
        });
        let (text, report) = shown?;
        if report.diagnostics().iter().any(Diagnostic::is_error) { Err(report) } else { Ok(text) }
    }

    /// Something of the kernel in a session of its constants, and what was found on the way.
    fn inspected<T: Send>(
        &self,
        look: impl Fn(&mut Session, &CompilationUnit, &EntryPoint<'_>) -> Result<T, Failed> + Sync,
    ) -> Result<(T, Report), Report> {
        on_large_stack(|| {
            let mut session = self.session(&Call::of(self.signature()))?;
            let made = self.entered(&mut session, &mut |session, unit, entry| look(session, unit, entry));
            let report = Report::of_session(&mut session);
            made.map(|made| (made, report.clone())).map_err(|Failed| report)
        })
    }

    /// Loads the kernel into a session.
    fn entered<T>(
        &self,
        session: &mut Session,
        look: &mut dyn FnMut(&mut Session, &CompilationUnit, &EntryPoint<'_>) -> Result<T, Failed>,
    ) -> Result<T, Failed> {
        let unit = self.load(session)?;
        let entry = unit.entry(Some(&self.signature().name), "check").or_else(|d| session.fail(*d))?;
        look(session, &unit, &entry)
    }
}

impl Specialization {
    /// Executes a call on copies of its arrays, and holds what comes out to the kernel's `ensures`.
    ///
    /// # Errors
    /// There is no `ensures`, the launch fails, or the results are not what it says.
    ///
    /// # Safety
    /// As for [`Specialization::run`], but nothing is written.
    pub unsafe fn verify(
        &self,
        callable: &Callable,
        call: &Call,
        tolerance: Tolerance,
        threads: usize,
    ) -> Result<Vec<Verified>, Report> {
        if !self.has_values_of(call) {
            let exact = callable.specialize_exactly(call)?;
            // SAFETY: the caller's promise, for code of this very call.
            return unsafe { exact.verify(callable, call, tolerance, threads) };
        }
        if self.plan().specification.ensures.is_empty() {
            let name = &callable.signature().name;
            let message = format!("{} `{name}` has no `ensures`", callable.signature().word);
            let d = Diagnostic::global(codes::NOTHING_TO_VERIFY, message);
            return Err(callable.report(d.with_help("write one, or compare its results yourself")));
        }
        on_large_stack(|| {
            // SAFETY: the caller's promise.
            let mut tensors = unsafe { self.copies(call) }?;
            let before = tensors.clone();
            let mut session = callable.session(call)?;
            session.sources = SourceMap::new();
            let mut run = || -> Result<Vec<Verified>, Failed> {
                self.plan().check_inputs(&mut session, &tensors)?;
                let compiled = CompiledPlan::new(&mut session, self.plan(), callable.backend())?;
                let options = RunOptions { threads, ..RunOptions::default() };
                compiled.run(&mut session, &mut tensors, &options, &mut |_| {}, None)?;
                verify(&mut session, self.plan(), &before, &tensors, tolerance)
            };
            let verified = run();
            let found = std::mem::take(&mut session.diagnostics);
            verified.map_err(|Failed| Report::new(found, Arc::clone(self.sources())))
        })
    }

    /// The arrays of a call in C order, in memory of their own; zeros for outputs that it has not.
    ///
    /// # Safety
    /// As for [`Specialization::run`], but nothing is written.
    unsafe fn copies(&self, call: &Call) -> Result<Vec<Tensor>, Report> {
        let mut tensors = Vec::new();
        for ((n, a), view) in self.plan().arguments.iter().enumerate().zip(self.views(call)) {
            let made = match (view, self.storage(n)) {
                (Some(view), None) => {
                    // SAFETY: the caller's promise.
                    let lent = unsafe { Tensor::lent(a.dtype, &a.shape, view.data) };
                    // A clone has memory of its own.
                    lent.clone()
                }
                (Some(view), Some(storage)) => {
                    let length = usize::try_from(storage.len()).unwrap_or(usize::MAX);
                    // SAFETY: the caller's promise; the array lies as the storage says.
                    let lent = unsafe { Tensor::lent(a.dtype, &[length], view.data) };
                    lent.and_then(|lent| {
                        let mut own = Tensor::zeros(a.dtype, &a.shape)?;
                        storage.gather(a.dtype.size(), lent.bytes(), own.bytes_mut());
                        Ok(own)
                    })
                }
                _ => Tensor::zeros(a.dtype, &a.shape),
            };
            tensors.push(made.map_err(|e| self.report(*super::specialization::too_large(a, &e)))?);
        }
        Ok(tensors)
    }
}

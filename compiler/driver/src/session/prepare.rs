//! The passes of a kernel, for a command that shows it and for a launch.

use super::{CompilationUnit, Session};
use crate::repair::KernelSource;
use ptoc_analysis::debug::DebugInfo;
use ptoc_analysis::{Bindings, Instance};
use ptoc_diagnostics::{Diagnostic, SourceMap, codes};
use ptoc_ir::tile::{Kernel, TensorId};
use ptoc_names::ItemId;
use ptoc_opt::pass::PassOptions;
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Request;
use ptoc_placement::MemoryMap;
use std::time::Duration;

/// Where an instance comes from: what repairs are tried on.
#[derive(Clone, Copy, Debug)]
pub struct RepairOrigin<'u> {
    /// The file.
    pub unit: &'u CompilationUnit,
    /// The kernel.
    pub kernel: ItemId,
    /// What it was elaborated with.
    pub bindings: &'u Bindings,
}

/// What the passes of a launch know of its sizes.
#[derive(Clone, Copy, Debug)]
pub struct LaunchSizes<'l> {
    /// Values of the dimensions, in the kernel's order.
    pub dims: &'l [i64],
    /// Bits of the scalar arguments; `None`: the default.
    pub scalars: &'l [Option<u64>],
    /// No scalar comes late.
    pub all_known: bool,
}

impl<'u> RepairOrigin<'u> {
    fn source<'s>(&self, sources: &'s SourceMap) -> KernelSource<'s>
    where
        'u: 's,
    {
        KernelSource { sources, modules: &self.unit.modules, kernel: self.kernel, bindings: self.bindings }
    }
}

impl Session {
    /// The memories of an instance, planned without limit if it does not fit, and what there is to say of it.
    pub fn map(&mut self, instance: Instance, origin: &RepairOrigin<'_>) -> (Option<MemoryMap>, Vec<Diagnostic>) {
        let begin = self.clock.now();
        let author = origin.source(&self.sources);
        let budget = self.budget.kernel();
        let (map, found) = ptoc_passes::pipeline::map(instance.kernel, &self.target, &author, &budget);
        self.budget.settle(&budget);
        self.passes(begin);
        (map, found.into_iter().map(|d| instance.debug.called_from(d)).collect())
    }

    /// All passes.
    pub fn prepare(&mut self, kernel: Kernel, debug: &DebugInfo, origin: &RepairOrigin<'_>) -> Option<Prepared> {
        let begin = self.clock.now();
        let author = origin.source(&self.sources);
        let budget = self.budget.kernel();
        let options = PassOptions { verify: self.verify_ir, recorder: self.recorder.as_ref() };
        let request = Request { pipeline: self.pipeline, author: &author, budget: &budget, options };
        let result = ptoc_passes::pipeline::pipeline_of(kernel, &self.target, request);
        self.budget.settle(&budget);
        self.prepared(begin, result, debug)
    }

    /// All passes for a launch with these dimensions and scalars: of one that is watched, hazards are told and do not
    /// keep it from running.
    pub fn prepare_to_run(
        &mut self,
        instance: Instance,
        origin: &RepairOrigin<'_>,
        launch: LaunchSizes<'_>,
    ) -> Option<Prepared> {
        if let Some(prepared) = self.cache.prepared(&instance.kernel, (self.watched, self.pipeline)) {
            return self.launched(prepared, launch, &instance.debug);
        }
        let elaborated = instance.kernel.clone();
        let begin = self.clock.now();
        let author = origin.source(&self.sources);
        let budget = self.budget.kernel();
        let options = PassOptions { verify: self.verify_ir, recorder: self.recorder.as_ref() };
        let request = Request { pipeline: self.pipeline, author: &author, budget: &budget, options };
        let result = match self.watched {
            true => ptoc_passes::pipeline::pipeline_to_run(instance.kernel, &self.target, request),
            false => ptoc_passes::pipeline::pipeline_of(instance.kernel, &self.target, request),
        };
        self.budget.settle(&budget);
        self.passes(begin);
        match result {
            Ok(prepared) => {
                self.cache.keep(elaborated, (self.watched, self.pipeline), &prepared);
                self.launched(prepared, launch, &instance.debug)
            }
            Err(mut errors) => {
                if errors.iter().any(|d| d.code == codes::BLOCK_RACE) {
                    self.in_words_of_the_launch(&elaborated, launch, &mut errors);
                }
                self.diagnostics.extend(errors.into_iter().map(|d| instance.debug.called_from(d)));
                None
            }
        }
    }

    /// What passes have left for a launch. Where it is not proved that blocks are apart, and nobody watches, the
    /// launch's own sizes may show that they are not.
    fn launched(&mut self, mut prepared: Prepared, launch: LaunchSizes<'_>, debug: &DebugInfo) -> Option<Prepared> {
        let mut warnings = std::mem::take(&mut prepared.warnings);
        let mut races = Vec::new();
        if !self.watched && warnings.iter().any(|d| d.code == codes::BLOCKS_NOT_PROVED) {
            races = self.races(&prepared.placed.kernel, launch);
        }
        warnings.retain(|d| d.code != codes::BLOCKS_NOT_PROVED || !races.iter().any(|r| r.span == d.span));
        let raced = !races.is_empty();
        self.diagnostics.extend(races.into_iter().chain(warnings).map(|d| debug.called_from(d)));
        (!raced).then_some(prepared)
    }

    fn races(&mut self, kernel: &Kernel, LaunchSizes { dims, scalars, all_known }: LaunchSizes<'_>) -> Vec<Diagnostic> {
        if !all_known {
            return Vec::new();
        }
        let budget = self.budget.kernel();
        let found = ptoc_checks::blocks::in_launch(kernel, &self.target, dims, scalars, &budget);
        self.budget.settle(&budget);
        found
    }

    /// The `out` tensors of which a launch may leave elements unwritten.
    pub fn unfilled(&mut self, kernel: &Kernel) -> Vec<TensorId> {
        if let Some(known) = self.cache.unfilled(kernel) {
            return known.to_vec();
        }
        let budget = self.budget.kernel();
        let found = ptoc_checks::blocks::unfilled(kernel, &budget);
        self.budget.settle(&budget);
        self.cache.keep_unfilled(kernel, &found);
        found
    }

    /// Races that sizes of the compiler's choice have shown, with the launch's own where they show the same.
    fn in_words_of_the_launch(&mut self, kernel: &Kernel, launch: LaunchSizes<'_>, errors: &mut [Diagnostic]) {
        let own = self.races(kernel, launch);
        for d in errors.iter_mut().filter(|d| d.code == codes::BLOCK_RACE) {
            match own.iter().find(|o| o.message == d.message) {
                Some(own) => *d = own.clone(),
                None if launch.all_known => {
                    d.notes.push(ptoc_checks::blocks::elsewhere(kernel, launch.dims, launch.scalars))
                }
                None => {}
            }
        }
    }

    /// Records that passes have run since `begin`, all together and one by one.
    fn passes(&mut self, begin: Duration) {
        self.clock.phase("passes", begin);
        for pass in ptoc_passes::clock::take() {
            self.clock.part(pass.name, pass.begin, pass.length);
        }
    }

    fn prepared(
        &mut self,
        begin: Duration,
        result: Result<Prepared, Vec<Diagnostic>>,
        debug: &DebugInfo,
    ) -> Option<Prepared> {
        self.passes(begin);
        match result {
            Ok(mut prepared) => {
                let warnings = std::mem::take(&mut prepared.warnings);
                self.diagnostics.extend(warnings.into_iter().map(|d| debug.called_from(d)));
                Some(prepared)
            }
            Err(errors) => {
                self.diagnostics.extend(errors.into_iter().map(|d| debug.called_from(d)));
                None
            }
        }
    }
}

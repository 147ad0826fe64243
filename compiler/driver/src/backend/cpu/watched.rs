//! Launches with the sanitizer: machine code that tells what it does, and the shadow state that judges it.

use super::{Cpu, arguments, failed, wrong_backend};
use crate::launch::{BackendLaunch, Plan, PlannedLaunch, unwritten};
use crate::session::{Failed, Session};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_exec::PrintEvent;
use ptoc_interp::sanitize::{Options, Sanitizer};
use ptoc_ir::tile::Kernel;
use ptoc_isa::Loc;
use std::sync::Arc;

/// A launch's machine code, compiled to be watched.
pub(super) struct Watched {
    /// The kernel that it was made of, with the checks of its code.
    kernel: Kernel,
    checks: Vec<u32>,
    code: ptoc_cpu::CompiledKernel,
}

/// The code of all launches of a plan. Those of one kernel share it.
pub(super) fn compile(session: &mut Session, plan: &Plan) -> Result<Vec<Arc<Watched>>, Failed> {
    let mut out: Vec<Arc<Watched>> = Vec::new();
    for (n, step) in plan.steps.iter().enumerate() {
        let Some(module) = &step.module else {
            let d = wrong_backend(&session.target, &Cpu);
            return session.fail(d);
        };
        let same = |other: &PlannedLaunch| other.module.as_ref().is_some_and(|m| Arc::ptr_eq(m, module));
        if let Some(known) = plan.steps[..n].iter().position(same) {
            out.push(Arc::clone(&out[known]));
            continue;
        }
        let begin = session.clock.now();
        let mut kernel = Kernel::clone(&step.kernel);
        let lowered = ptoc_lower::lower_watched(&mut kernel, &step.placement, &session.target);
        let module = match lowered {
            Ok(module) => module,
            Err(errors) => {
                session.diagnostics.extend(errors);
                return Err(Failed);
            }
        };
        let (vectors, exact) = (session.vectors, session.exact);
        let options = ptoc_cpu::Options { vectors, exact, ..Default::default() };
        let compiled = ptoc_cpu::compile(&module, &options);
        session.clock.phase("machine code", begin);
        match compiled {
            Ok(code) => {
                let checks = module.checks.iter().map(|row| row.id).collect();
                out.push(Arc::new(Watched { kernel, checks, code }));
            }
            Err(d) => return session.fail(d),
        }
    }
    Ok(out)
}

impl Watched {
    /// Bytes of machine code.
    pub fn code_size(&self) -> usize {
        self.code.code_size()
    }

    /// Bytes of arena that each thread needs.
    pub fn arena(&self) -> u64 {
        self.code.arena()
    }

    /// Launches a step and judges it.
    pub fn launch(&self, launch: &mut BackendLaunch<'_, '_>) -> Result<(), Box<Diagnostic>> {
        let BackendLaunch { session, step, used, buffers, options: run, print, .. } = launch;
        let params = step.params();
        let tensors = arguments(step, used, buffers);
        let memory: Vec<usize> = tensors.iter().map(|t| t.data.expose_provenance()).collect();
        let target = ptoc_placement::memories::seen_by(&self.kernel, &session.target).into_owned();
        let options = Options {
            dims: &step.dims,
            scalars: &step.scalars,
            tensors: &memory,
            storage: &step.storage,
            capacity: Loc::ALL.into_iter().map(|loc| (loc, target.memory(loc).capacity)).collect(),
        };
        let sanitizer = Sanitizer::new(&self.kernel, &options).map_err(|trap| Box::new(trap.to_diagnostic()))?;
        let mut sink = |event: PrintEvent| {
            if let Some(print) = print {
                print(&event.line());
            }
        };
        let threads = run.threads;
        let launch = ptoc_exec::LaunchArgs { params: &params, tensors: &tensors, threads, print: Some(&mut sink) };
        // SAFETY: as in `execute`; this code is made of the same kernel, and carries the same checks.
        let ended = unsafe { self.code.launch_watched(launch, Some(&sanitizer)) };
        let trapped = |trap: &ptoc_interp::Trap| Box::new(step.trapped(trap.to_diagnostic()));
        match (ended, sanitizer.finish()) {
            // A check fails before what the monitor has not been told yet.
            (Err(e @ ptoc_exec::LaunchError::Check(_)), found) => match found {
                Err(trap) if trap.code != codes::TRAP_OVERLAP => Err(trapped(&trap)),
                _ => Err(failed(step, &self.kernel, |row| self.checks[row], e)),
            },
            (_, Err(trap)) => Err(trapped(&trap)),
            (Err(e), Ok(_)) => Err(failed(step, &self.kernel, |row| self.checks[row], e)),
            (Ok(()), Ok(holes)) => {
                for hole in &holes {
                    session.diagnostics.push(unwritten(step, hole));
                }
                Ok(())
            }
        }
    }
}

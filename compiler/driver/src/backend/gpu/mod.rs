//! PTX on an NVIDIA GPU: what is compiled here, is launched on a [`card`], or on the interpreter of PTX for whoever
//! takes a stand-in ([`Session::stand_in`]).

mod arrays;
mod build;
mod card;
mod interpreted;
mod launch;
#[cfg(feature = "cpu")]
mod launcher;
mod limits;
mod resident;
mod sass;

use super::{Backend, Capabilities, Compiled, DeviceLimits, Listing, Refusal, Timed, wrong_backend, wrong_stage};
use crate::build::{BuildUnit, Built, Form, Request};
use crate::launch::{Plan, PlannedLaunch};
use crate::session::{Failed, Session};
use crate::stages::BackendStage;
use arrays::Arrays;
use launch::{Code, Kernels, Machine};
use ptoc_diagnostics::{Diagnostic, SourceMap, Span, codes};
use ptoc_gpu::{GPU_PASSES, Options, RefusalCode, Refused};
use ptoc_ir::loops::Module;
use ptoc_ir::tile::Kernel;
use ptoc_isa::Target;
use ptoc_opt::rings::straight;
use ptoc_opt::{fragments, matrix_unit};
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Pipeline;
use ptoc_ptx::LineTable;
use std::sync::Arc;

/// The backend: loop IR to PTX, which the driver assembles, and launches on the first device.
pub(super) struct Gpu;

const STAGES: [BackendStage; 3] = [
    BackendStage { name: "loop", about: "Loop IR", plan: false, extension: None },
    BackendStage { name: "ptx", about: "PTX", plan: false, extension: Some("ptx") },
    BackendStage {
        name: "sass",
        about: "SASS, the card's own instructions (needs ptxas and nvdisasm)",
        plan: false,
        extension: None,
    },
];

impl Backend for Gpu {
    fn name(&self) -> &'static str {
        "gpu"
    }

    fn about(&self) -> &'static str {
        "PTX on an NVIDIA GPU"
    }

    fn serves(&self, target: &Target) -> bool {
        target.gpu.is_some()
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { timed: Some(Timed::Device), ..Capabilities::default() }
    }

    unsafe fn read_from(
        &self,
        (device, stream): (i32, u64),
        address: u64,
        bytes: &mut [u8],
    ) -> Result<(), Box<Diagnostic>> {
        // SAFETY: the caller's promise.
        unsafe { resident::read((device, stream), address, bytes) }.map_err(|e| {
            let message = format!("memory of cuda:{device} cannot be read: {}", e.message);
            Box::new(Diagnostic::global(codes::GPU_FAILED, message).with_help(e.code.remedy()))
        })
    }

    fn pipeline(&self) -> Option<Pipeline> {
        Some(Pipeline::Loops(GPU_PASSES))
    }

    fn stages(&self) -> &'static [BackendStage] {
        &STAGES
    }

    fn refuses(&self, prepared: &Prepared) -> Option<Box<Diagnostic>> {
        let (module, kernel) = (prepared.module.as_ref()?, &prepared.placed.kernel);
        if let Err(refused) = ptoc_gpu::compile(module, &Options::default()) {
            return Some(Box::new(told(refused, kernel)));
        }
        // The sizes of a launch may prove it.
        let unproved = || {
            let message = format!(
                "what `{}` does with its bytes is not proved: launches on a GPU, where no access is watched, are \
                 refused unless their sizes prove it",
                kernel.name
            );
            Diagnostic::warning(codes::BACKEND_TARGET, kernel.span, message).with_help(super::PROVABLE)
        };
        prepared.placed.watched.then(|| Box::new(unproved()))
    }

    fn emit_kernel(&self, session: &mut Session, prepared: &Prepared, stage: &BackendStage) -> Result<String, Failed> {
        let Some(module) = &prepared.module else {
            let d = wrong_stage(&session.target, stage.name);
            return session.fail(d);
        };
        if stage.name == "loop" {
            return Ok(super::loop_text(session, prepared, module));
        }
        let kernel = &prepared.placed.kernel;
        match compiled(session, kernel, module) {
            Ok(code) => {
                let text = reason(session, kernel) + &text(&session.sources, &code, kernel);
                if stage.name == "ptx" {
                    return Ok(text);
                }
                sass::of(&text).or_else(|d| session.fail(d))
            }
            Err(refused) => session.fail(told(refused, kernel)),
        }
    }

    fn listing(&self, session: &mut Session, prepared: &Prepared) -> Result<Option<Listing>, Failed> {
        let [_, ptx, _] = &STAGES;
        let text = self.emit_kernel(session, prepared, ptx)?;
        let lines = text.lines().map(|text| (text.to_owned(), Vec::new())).collect();
        Ok(Some(Listing { name: ptx.name.into(), about: ptx.about.into(), lines }))
    }

    fn forms(&self) -> &'static [Form] {
        &build::FORMS
    }

    fn build(&self, session: &mut Session, unit: &BuildUnit, request: &Request) -> Result<Built, Failed> {
        build::build(session, unit, request).or_else(|d| session.fail(*d))
    }

    fn compile(&self, session: &mut Session, plan: &Plan) -> Result<Compiled, Failed> {
        let mut kernels: Vec<Arc<Code>> = Vec::new();
        for (n, step) in plan.steps.iter().enumerate() {
            let begin = session.clock.now();
            let Some(module) = &step.module else {
                let d = wrong_backend(&session.target, &Gpu);
                return session.fail(d);
            };
            // Launches of one kernel share its code.
            let same = |other: &PlannedLaunch| other.module.as_ref().is_some_and(|m| Arc::ptr_eq(m, module));
            if let Some(known) = plan.steps[..n].iter().position(same) {
                kernels.push(Arc::clone(&kernels[known]));
                continue;
            }
            if let Some(known) = session.cache.code::<Code>(module, (session.vectors, session.exact)) {
                kernels.push(known);
                continue;
            }
            let compiled = compiled(session, &step.kernel, module);
            session.clock.phase("PTX", begin);
            match compiled {
                Ok(code) => {
                    let ptx = text(&session.sources, &code, &step.kernel);
                    let code = Arc::new(Code::new(code, ptx));
                    session.cache.keep_code(module, (session.vectors, session.exact), &code);
                    kernels.push(code);
                }
                Err(refused) => return session.fail(told(refused, &step.kernel)),
            }
        }
        let machine = Machine::choose(session.stand_in);
        Ok(Compiled::Launches(Box::new(Kernels { kernels, machine, arrays: Arrays::default() })))
    }

    fn device_limits(&self, bytes: usize) -> Option<DeviceLimits> {
        limits::measure(bytes).ok()
    }

    fn home(&self) -> Option<&'static str> {
        Some("sm90")
    }

    fn machine(&self, stand_in: bool) -> Option<String> {
        Some(Machine::choose(stand_in).to_string())
    }

    fn refusal(&self, target: &Target) -> Refusal {
        let why = format!("`{}` is no GPU, and its kernels have the tiles of another machine", target.name);
        Refusal { why, instead: Some(format!("give {}", super::registry::targets_of(&Gpu))) }
    }
}

/// A kernel as PTX: on the tensor cores, if it is a product that they take, and the session allows it.
fn compiled(session: &Session, kernel: &Kernel, module: &Module) -> Result<ptoc_gpu::Compiled, Refused> {
    ptoc_gpu::compile_kernel(kernel, &session.target, module, session.exact, &Options::default())
}

/// The text of a kernel, with the places that its instructions are made for. What is made for none in particular, such
/// as the loop over blocks, is at the kernel's name.
fn text(sources: &SourceMap, code: &ptoc_gpu::Compiled, kernel: &Kernel) -> String {
    let mut lines = LineTable::default();
    for site in &code.sites {
        let span = if *site == Span::default() { kernel.span } else { *site };
        let at = sources.position(span.file, span.start);
        lines.push(sources.name(span.file), at.line, at.column);
    }
    ptoc_ptx::print_with_lines(&code.kernel, &lines)
}

/// A comment that says why the products of a kernel are not on the tensor cores, if they could be.
fn reason(session: &Session, kernel: &Kernel) -> String {
    let one = matrix_unit::find(&straight(kernel), &session.target).map(|_| ());
    // Of several products, what hinders them counts.
    let found = one.or_else(|one| match fragments::find(kernel, &session.target) {
        Ok(_) => Ok(()),
        Err(several) => Err(if several.is_empty() { one } else { several }),
    });
    match found {
        Err(why) if !session.exact && !why.is_empty() => {
            format!("// Products are chains of multiply-adds, not on the tensor cores: {why}.\n")
        }
        _ => String::new(),
    }
}

/// A kernel that has no PTX, at what has none, or at its name.
fn told(refused: Refused, kernel: &Kernel) -> Diagnostic {
    let span = if refused.span == Span::default() { kernel.span } else { refused.span };
    let d = Diagnostic::error(codes::GPU_NOT_TRANSLATED, span, refused.message)
        .with_note("the GPU backend has no translation for it");
    let instead = match refused.code {
        RefusalCode::Print => "leave the `print` out for the GPU; `--backend interp` prints",
        RefusalCode::Watch => "leave out what watches the kernel; `--backend interp` runs it",
        RefusalCode::Rank => "count two dimensions of the grid as one; `--backend interp` runs it",
        RefusalCode::Parameters => {
            "make tensors of one shape one tensor with a dimension more; `--backend interp` runs it"
        }
        RefusalCode::Invalid | RefusalCode::Internal => "`--backend interp` runs it",
    };
    d.with_help(instead)
}

//! The registry: the table of all backends, and who of them is meant. A machine that a feature leaves out has a
//! stand-in in the table, which can be asked for, and is not offered.

use super::left_out::present;
use super::{BackendRef, Refusal, interp};
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_isa::Target;
use std::sync::RwLock;

/// Machine code on this host.
#[cfg(feature = "cpu")]
pub const CPU: BackendRef = &super::cpu::Cpu;
/// Who says that it was left out.
#[cfg(not(feature = "cpu"))]
pub const CPU: BackendRef = &super::left_out::CPU;
/// PTX on an NVIDIA GPU.
#[cfg(feature = "gpu")]
pub const GPU: BackendRef = &super::gpu::Gpu;
/// Who says that it was left out.
#[cfg(not(feature = "gpu"))]
pub const GPU: BackendRef = &super::left_out::GPU;
/// Command streams on simulated units in memory.
#[cfg(feature = "pim")]
pub const PIM: BackendRef = &super::pim::Pim;
/// Who says that it was left out.
#[cfg(not(feature = "pim"))]
pub const PIM: BackendRef = &super::left_out::PIM;
/// The reference interpreter.
pub const INTERP: BackendRef = &interp::Interp;

/// The machines. A target's default is the first one here that serves it.
const MACHINES: [BackendRef; 3] = [CPU, GPU, PIM];

/// Those of other crates.
static REGISTERED: RwLock<Vec<BackendRef>> = RwLock::new(Vec::new());

/// Adds a backend of another crate, before anyone asks for it. One of a name that is there already changes nothing.
pub fn register(backend: BackendRef) {
    let mut registered = REGISTERED.write().unwrap_or_else(|poisoned| poisoned.into_inner());
    let known = MACHINES.iter().chain(registered.iter()).chain([&INTERP]).any(|b| b.name() == backend.name());
    if !known {
        registered.push(backend);
    }
}

/// All backends that are there: the machines, then the interpreter, which serves every target.
pub fn all() -> Vec<BackendRef> {
    with_left_out().into_iter().filter(|b| b.left_out().is_none()).collect()
}

/// All backends, with those that this build leaves out.
pub fn with_left_out() -> Vec<BackendRef> {
    let registered = REGISTERED.read().unwrap_or_else(|poisoned| poisoned.into_inner());
    MACHINES.into_iter().chain(registered.iter().copied()).chain([INTERP]).collect()
}

/// The backend of this name; it may be left out.
pub fn named(name: &str) -> Option<BackendRef> {
    with_left_out().into_iter().find(|b| b.name() == name)
}

/// The backends that run kernels for a target, its default first.
pub fn serving(target: &Target) -> Vec<BackendRef> {
    all().into_iter().filter(|b| b.serves(target)).collect()
}

/// The default of a target; it may be left out.
pub fn default_of(target: &Target) -> BackendRef {
    with_left_out().into_iter().find(|b| b.serves(target)).unwrap_or(INTERP)
}

/// The backend that is asked for, if it serves the target, or the target's default.
pub fn choose(target: &Target, asked: Option<BackendRef>) -> Result<BackendRef, Box<Diagnostic>> {
    match asked {
        None => present(default_of(target)),
        Some(backend) if backend.serves(target) || backend.left_out().is_some() => present(backend),
        Some(backend) => Err(wrong_backend(target, backend).into()),
    }
}

/// A backend that does not have the numbers of this target.
pub fn wrong_backend(target: &Target, asked: BackendRef) -> Diagnostic {
    let (asked, Refusal { why, instead }) = (asked.name(), asked.refusal(target));
    let others: Vec<String> = serving(target).iter().map(|b| format!("`--backend {}`", b.name())).collect();
    let others = format!("use {}", others.join(" or "));
    Diagnostic::global(codes::BACKEND_TARGET, format!("the backend `{asked}` does not run kernels for {}", target.name))
        .with_note(why)
        .with_help(match instead {
            Some(instead) => format!("{instead}; or {others}"),
            None => others,
        })
}

/// A stage of `emit` that kernels for this target do not have.
pub fn wrong_stage(target: &Target, stage: &str) -> Diagnostic {
    let machine = default_of(target);
    let has = |b: &BackendRef| b.stages().iter().any(|s| s.name == stage);
    let owner = with_left_out().into_iter().find(has);
    if let Some(part) = machine.left_out().or_else(|| owner.and_then(|b| b.left_out())) {
        return part.refused();
    }
    let message = format!("a kernel for {} has no stage `{stage}`", target.name);
    let mut d = Diagnostic::global(codes::BACKEND_TARGET, message);
    // Who names another back end's stage means its targets; but kernels of units in memory are for nothing else.
    let names = |b: &&BackendRef| b.name() != machine.name() && has(b);
    if let Some(other) = MACHINES.iter().find(names).filter(|_| !machine.capabilities().limits) {
        return d.with_help(format!("`{stage}` is a stage of `{}`: give {}", other.name(), targets_of(*other)));
    }
    let Refusal { why, instead } = machine.other_stages(target);
    d = d.with_note(why);
    match instead {
        Some(instead) => d.with_help(instead),
        None => d,
    }
}

/// The targets that a backend serves, as flags.
pub(super) fn targets_of(backend: BackendRef) -> String {
    let served = Target::all().iter().filter(|t| backend.serves(t)).map(|t| format!("`--target {}`", t.name));
    served.collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The parser lists names, too: those of `// run:` lines.
    #[test]
    fn lists_of_names_agree() {
        let mut own: Vec<&str> = MACHINES.iter().chain([&INTERP]).map(|b| b.name()).collect();
        let mut written = ptoc_syntax::directive::BACKENDS;
        own.sort_unstable();
        written.sort_unstable();
        assert_eq!(own, written);
    }

    #[test]
    fn every_target_has_a_machine_and_the_interpreter() {
        for target in Target::all() {
            let serving = with_left_out().into_iter().filter(|b| b.serves(target));
            let serving: Vec<&str> = serving.map(|b| b.name()).collect();
            assert!(matches!(serving[..], ["cpu" | "gpu" | "pim", "interp"]), "{}: {serving:?}", target.name);
        }
    }
}

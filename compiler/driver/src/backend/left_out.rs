//! Parts of ptoc that its features leave out, and backends that stand for machines which are not there.
//!
//! A target without its machine is still a target: kernels for it are checked, placed and interpreted. What asks for
//! the machine gets a diagnostic that says how ptoc is built with it, and never another backend in its place.

use super::{Backend, BackendRef, Compiled, Listing};
#[cfg(any(test, not(feature = "cpu")))]
use crate::build::CPU_FORMS;
use crate::build::Form;
use crate::launch::Plan;
use crate::session::{Failed, Session};
use crate::stages::BackendStage;
use ptoc_diagnostics::{Diagnostic, FileId, Span, codes};
use ptoc_isa::{Preset, Target};
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::Pipeline;

/// What a feature adds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    /// The feature, as Cargo has it.
    pub feature: &'static str,
    /// What it is, in some words.
    pub about: &'static str,
}

impl Part {
    /// Machine code on this host.
    pub const CPU: Part = Part { feature: "cpu", about: "machine code for this processor" };
    /// PTX on NVIDIA's cards.
    pub const GPU: Part = Part { feature: "gpu", about: "PTX on an NVIDIA GPU" };
    /// Units in memory.
    pub const PIM: Part = Part { feature: "pim", about: "command streams on simulated units in memory" };
    /// Files for C.
    pub const OBJECTS: Part = Part { feature: "objects", about: "objects and libraries for C and C++ programs" };

    /// The error of who asks for it, where it was left out.
    pub fn refused(&self) -> Diagnostic {
        let Part { feature, about } = self;
        Diagnostic::global(codes::LEFT_OUT, format!("this ptoc was built without `{feature}`: {about}")).with_help(
            format!(
                "build it with the feature: `cargo install --path compiler/ptoc --features {feature}`, or `features = \
                 [\"{feature}\"]` in the Cargo.toml of a program that depends on it"
            ),
        )
    }
}

/// A backend that was left out: who it would be, and nothing of what it does.
#[cfg_attr(
    all(feature = "cpu", feature = "gpu", feature = "pim", not(test)),
    allow(dead_code, reason = "all machines are there")
)]
pub(super) struct LeftOut {
    part: Part,
    name: &'static str,
    serves: fn(&Target) -> bool,
    home: Option<&'static str>,
    stages: &'static [BackendStage],
    forms: &'static [Form],
}

/// In place of [`CPU`](super::CPU).
#[cfg(any(test, not(feature = "cpu")))]
pub(super) const CPU: LeftOut = LeftOut {
    part: Part::CPU,
    name: "cpu",
    serves: |target| !target.is_pim() && target.gpu.is_none(),
    home: Some("a2a3"),
    stages: &[stage("clif", false), stage("asm", false)],
    forms: &CPU_FORMS,
};

/// In place of [`GPU`](super::GPU).
#[cfg(any(test, not(feature = "gpu")))]
pub(super) const GPU: LeftOut = LeftOut {
    part: Part::GPU,
    name: "gpu",
    serves: |target| target.gpu.is_some(),
    home: Some("sm90"),
    stages: &[stage("ptx", false), stage("sass", false)],
    forms: &[form("ptx"), form("cubin")],
};

/// In place of [`PIM`](super::PIM).
#[cfg(any(test, not(feature = "pim")))]
pub(super) const PIM: LeftOut = LeftOut {
    part: Part::PIM,
    name: "pim",
    serves: Target::is_pim,
    home: None,
    stages: &[stage("pim", true)],
    forms: &[],
};

#[cfg(any(test, not(all(feature = "cpu", feature = "gpu", feature = "pim"))))]
const fn stage(name: &'static str, plan: bool) -> BackendStage {
    BackendStage { name, about: "", plan, extension: None }
}

#[cfg(any(test, not(feature = "gpu")))]
const fn form(extension: &'static str) -> Form {
    Form { extension, about: "" }
}

impl Backend for LeftOut {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.part.about
    }

    fn left_out(&self) -> Option<&Part> {
        Some(&self.part)
    }

    fn serves(&self, target: &Target) -> bool {
        (self.serves)(target)
    }

    fn home(&self) -> Option<&'static str> {
        self.home
    }

    fn preset(&self, _: &str, at: Span) -> Result<Preset, Box<Diagnostic>> {
        Err(Box::new(Diagnostic { span: Some(at), ..self.part.refused() }))
    }

    fn memory(&self, file: FileId, _: &str, _: &Target) -> Result<Preset, Vec<Diagnostic>> {
        Err(vec![Diagnostic { span: Some(Span::new(file, 0, 0)), ..self.part.refused() }])
    }

    fn pipeline(&self) -> Option<Pipeline> {
        None
    }

    fn stages(&self) -> &'static [BackendStage] {
        self.stages
    }

    fn listing(&self, _: &mut Session, _: &Prepared) -> Result<Option<Listing>, Failed> {
        Ok(None)
    }

    fn forms(&self) -> &'static [Form] {
        self.forms
    }

    fn compile(&self, session: &mut Session, _: &Plan) -> Result<Compiled, Failed> {
        session.fail(self.part.refused())
    }
}

/// A backend that is there, or why it is not.
pub(super) fn present(backend: BackendRef) -> Result<BackendRef, Box<Diagnostic>> {
    match backend.left_out() {
        None => Ok(backend),
        Some(part) => Err(Box::new(part.refused())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend;

    /// What stands for a machine has its name, its targets, its stages and its files.
    #[cfg(all(feature = "cpu", feature = "gpu", feature = "pim"))]
    #[test]
    fn stand_ins_agree_with_their_machines() {
        for (left_out, machine) in
            [(&CPU as BackendRef, backend::CPU), (&GPU as BackendRef, backend::GPU), (&PIM as BackendRef, backend::PIM)]
        {
            assert_eq!(left_out.name(), machine.name());
            assert_eq!(left_out.home(), machine.home());
            for target in Target::all() {
                assert_eq!(left_out.serves(target), machine.serves(target), "{}", target.name);
            }
            // Loop IR is a stage of several.
            let own = machine.stages().iter().filter(|s| s.name != "loop").map(|s| (s.name, s.plan));
            assert!(left_out.stages().iter().map(|s| (s.name, s.plan)).eq(own));
            assert!(left_out.forms().iter().map(|f| f.extension).eq(machine.forms().iter().map(|f| f.extension)));
        }
    }

    #[test]
    fn asking_for_one_says_what_to_build() {
        let mut session = Session::new("sm90", &[]).expect("there is such a target");
        let message = "this ptoc was built without `gpu`: PTX on an NVIDIA GPU";
        let refused = present(&GPU).expect_err("it is left out");
        assert_eq!((refused.code, &*refused.message), (codes::LEFT_OUT, message));
        assert!(refused.fixes.iter().any(|fix| fix.message.contains("--features gpu")), "{refused:?}");
        assert!(present(backend::INTERP).is_ok());
        session.select(&GPU);
        assert!(!session.diagnostics.has_errors());
    }
}

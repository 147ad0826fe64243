//! One compilation: sources, the target, definitions, diagnostics; and loading a file.

mod elaborate;
mod prepare;
mod unit;

pub use elaborate::Waiting;
pub use prepare::{LaunchSizes, RepairOrigin};
pub use unit::{CompilationUnit, EntryPoint, extents, type_span};

use crate::backend::{self, BackendRef};
use crate::cache::Cache;
use crate::defs::{Definition, Definitions};
use crate::devices;
use crate::files::{self, FileLoader, OpenTexts};
use crate::library::Scalar;
use crate::project::{FoundProject, Lints};
use crate::trace::Clock;
use crate::tuning::TuningUse;
use ptoc_analysis::{Bindings, NameFact};
use ptoc_diagnostics::{Budget, Diagnostic, Diagnostics, SourceMap, codes, list};
use ptoc_isa::Target;
use ptoc_names::{ItemId, Modules};
use ptoc_opt::pass::Recorder;
use ptoc_passes::pipeline::Pipeline;
use ptoc_pto::write::Level;
use ptoc_syntax::ast::Name;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// The target of a session that names none.
pub const DEFAULT_TARGET: &str = "a2a3";

/// Who asks, for the words of messages about what was given.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Front {
    /// A command: what is given is given by flags.
    #[default]
    Command,
    /// A program that calls a kernel as a function, with arguments.
    Call,
}

impl Front {
    /// What a definition of `name` begins with.
    pub fn name(self, name: &str) -> String {
        match self {
            Front::Command => format!("-D {name}"),
            Front::Call => name.to_owned(),
        }
    }

    /// A definition of `name` whose value is to be filled in.
    pub fn definition(self, name: &str) -> String {
        format!("{}=..", self.name(name))
    }

    /// What is between definitions.
    pub fn separator(self) -> &'static str {
        match self {
            Front::Command => " ",
            Front::Call => ", ",
        }
    }
}

/// What went wrong is among the diagnostics.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Failed;

/// The state of a compilation.
#[derive(Debug)]
pub struct Session {
    /// Every text that a span can point into.
    pub sources: SourceMap,
    /// What was found so far and not shown yet.
    pub diagnostics: Diagnostics,
    /// The target, with the capacities that `-D` gives it.
    pub target: Target,
    /// `-D`
    pub definitions: Definitions,
    /// Steps that the analyses of all kernels have.
    pub budget: Budget,
    /// Those of compile-time evaluation.
    pub evaluation: Rc<Budget>,
    /// When each phase ran.
    pub clock: Clock,
    /// Launches are for the interpreter, which watches the pipes: hazards do not keep them from running.
    pub watched: bool,
    /// What is made of a placed kernel: for the target's default backend, or for one that was selected.
    pub pipeline: Pipeline,
    /// Of machine code.
    pub vectors: ptoc_exec::Vectors,
    /// Machine code has the interpreter's bits in products of f16 and bf16 too.
    pub exact: bool,
    /// Of launches on units in memory the kernel's item, and what it was elaborated with.
    pub(crate) origins: Vec<(ItemId, Bindings)>,
    /// Arguments that stay in a memory with units from run to run.
    pub resident: Vec<String>,
    /// The source files that were read, which no output may replace.
    pub read: Vec<PathBuf>,
    /// Levels of warnings.
    pub lints: Lints,
    /// Who asks.
    pub front: Front,
    /// Scalar arguments that only the launch is told, and the compilation is not.
    pub scalars: Vec<(Name, Scalar)>,
    /// What an editor has open.
    pub open: OpenTexts,
    /// What elaborations have found out about names.
    pub names: Vec<NameFact>,
    /// What is compiled already.
    pub cache: Cache,
    /// Verifies the IR after each pass.
    pub verify_ir: bool,
    /// Keeps the IR after each pass that changed it.
    pub recorder: Option<Recorder>,
    /// Where a backend's machine is not there, a model of it will do, if the backend has one: what tests ask for.
    pub stand_in: bool,
    /// How much PTO text or PTO C++ says of places and order; each has its own default.
    pub pto_level: Option<Level>,
    /// Stored results of tuning that launches may use.
    pub tuning: Option<TuningUse>,
    /// What is worth a line and no diagnostic: stored results that were used.
    pub notes: Vec<String>,
    /// The command, as far as one would write it again, for what is shown of a kernel.
    pub command: Option<String>,
}

/// Steps of compile-time evaluation (statements, unrolled iterations, inlined calls) of all kernels of a file.
const EVALUATION: u64 = 1_000_000;

impl Session {
    /// A session for a target and definitions. An unknown target is the caller's mistake and not the input's, so it is
    /// returned; what is wrong with a definition is among the diagnostics.
    pub fn new(target: &str, definitions: &[Definition]) -> Result<Session, Box<Diagnostic>> {
        Session::in_project(FoundProject::default(), Some(target), definitions)
    }

    /// A session for a file of a project, whose target and definitions count where none are given. What is wrong with
    /// the project is among the diagnostics.
    pub fn in_project(
        found: FoundProject,
        target: Option<&str>,
        definitions: &[Definition],
    ) -> Result<Session, Box<Diagnostic>> {
        let FoundProject { project, mut sources, mut diagnostics } = found;
        let target = target.or(project.target.as_deref()).unwrap_or(DEFAULT_TARGET);
        let mut target = devices::find(target, &mut sources, &mut diagnostics)?;
        let definitions = Definitions::parse(definitions, &project, &mut target, &mut sources, &mut diagnostics);
        let pipeline = backend::default_of(&target).pipeline().unwrap_or(Pipeline::Placed);
        Ok(Session {
            sources,
            diagnostics,
            target,
            definitions,
            budget: Budget::default(),
            evaluation: Rc::new(Budget::of(EVALUATION)),
            clock: Clock::start(),
            watched: false,
            pipeline,
            vectors: ptoc_exec::Vectors::Auto,
            exact: true,
            origins: Vec::new(),
            resident: Vec::new(),
            cache: Cache::default(),
            verify_ir: false,
            recorder: None,
            stand_in: false,
            pto_level: None,
            tuning: None,
            notes: Vec::new(),
            command: None,
            names: Vec::new(),
            front: Front::default(),
            scalars: Vec::new(),
            open: OpenTexts::default(),
            read: project.files,
            lints: project.lints,
        })
    }

    /// Kernels are prepared for this backend from now on, if it serves the target.
    pub fn select(&mut self, backend: BackendRef) {
        if let Some(pipeline) = backend.pipeline().filter(|_| backend.serves(&self.target)) {
            self.pipeline = pipeline;
        }
    }

    /// Steps that are left, of analyses and of compile-time evaluation, as far as one kernel may take them.
    pub fn steps_left(&self) -> [u64; 2] {
        [self.budget.left(), self.evaluation.left()]
    }

    /// Takes steps that were taken before for the same.
    pub fn take_steps(&mut self, [analyses, evaluation]: [u64; 2]) {
        self.budget.take(analyses);
        self.evaluation.take(evaluation);
    }

    /// Another launch begins, for which there are all steps again.
    pub fn renew_steps(&mut self) {
        self.budget = Budget::default();
        self.evaluation = Rc::new(Budget::of(EVALUATION));
    }

    /// Whether there were too few since this was asked last.
    pub fn was_short(&mut self) -> bool {
        let evaluation = self.evaluation.was_short();
        self.budget.was_short() || evaluation
    }

    /// Adds an error and fails.
    pub fn fail<T>(&mut self, diagnostic: Diagnostic) -> Result<T, Failed> {
        // A text with mistakes may have lost the kernel by them.
        let lost = [codes::WHICH_KERNEL, codes::UNKNOWN_KERNEL].contains(&diagnostic.code);
        if !(lost && self.diagnostics.has_errors()) {
            self.diagnostics.push(diagnostic);
        }
        Err(Failed)
    }

    /// Reads a file and what it imports, and checks names. Only a file that cannot be read is a failure; mistakes in
    /// it are among the diagnostics.
    pub fn load(&mut self, path: &Path) -> Result<CompilationUnit, Failed> {
        if let Some((name, text)) = library(path) {
            return Ok(self.load_text(Path::new(name), text.to_owned()));
        }
        match files::read_source(path) {
            Ok(text) => Ok(self.load_text(path, text)),
            Err(d) if path.to_str().is_some_and(|p| p.starts_with("std::")) => {
                let known = ptoc_stdlib::MODULES.iter().map(|(at, ..)| format!("std::{}", at.join("::")));
                let known: Vec<String> = known.collect();
                let list = list(known.iter().map(String::as_str));
                self.fail(Diagnostic { fixes: Vec::new(), ..d }.with_note(format!("the standard library has {list}")))
            }
            Err(d) => self.fail(d),
        }
    }

    /// Like [`Session::load`], for commands that do not look at test lines: one that is malformed is worth a warning.
    pub fn load_code(&mut self, path: &Path) -> Result<CompilationUnit, Failed> {
        let unit = self.load(path)?;
        self.diagnostics.soften(|d| matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND));
        Ok(unit)
    }

    /// [`Session::load`] for a text that is already there; `path` says where imports are looked for.
    pub fn load_text(&mut self, path: &Path, text: String) -> CompilationUnit {
        // What mends an import mends the uses of its name, so the two are told together.
        let mut found = Vec::new();
        let mut unit = self.parse_into(path, text, &mut found);
        unit.modules.give(self.definitions.names());
        let begin = self.clock.now();
        ptoc_names::check_names(&unit.modules, &mut found);
        if crate::pto::is_pto(&path.display().to_string()) {
            // Numbers of PTO text have no names that somebody chose.
            found.retain(|d| d.code != codes::UNUSED_NAME);
        }
        self.clock.phase("names", begin);
        self.diagnostics.extend(found);
        unit
    }

    /// The first half of [`Session::load_text`]: trees, and what is wrong with syntax and imports.
    pub fn parse_text(&mut self, path: &Path, text: String) -> CompilationUnit {
        let mut found = Vec::new();
        let unit = self.parse_into(path, text, &mut found);
        self.diagnostics.extend(found);
        unit
    }

    fn parse_into(&mut self, path: &Path, text: String, found: &mut Vec<Diagnostic>) -> CompilationUnit {
        let begin = self.clock.now();
        let file = self.sources.add(path.display().to_string(), text.clone());
        if crate::pto::is_pto(&path.display().to_string()) {
            self.diagnostics.translated(file, crate::pto::in_words_of_the_text);
            found.extend(crate::pto::other_target(file, &text, &self.target.name));
        }
        let mut loader = FileLoader::new(&mut self.sources, file, path, &self.open);
        let modules = Modules::load(file, &text, &mut loader, found);
        self.read.extend(loader.into_paths());
        self.clock.phase("parse", begin);
        CompilationUnit { path: path.to_owned(), file, modules }
    }
}

/// The module of the standard library that `std::scan` names, unless there is a file of that name.
fn library(path: &Path) -> Option<(&'static str, &'static str)> {
    let segments: Vec<&str> = path.to_str()?.strip_prefix("std::")?.split("::").collect();
    ptoc_stdlib::module(&segments).filter(|_| !path.exists())
}

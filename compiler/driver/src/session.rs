//! One compilation: sources, the target, definitions, diagnostics; and what loading a file gives.

use crate::backend::{self, BackendRef};
use crate::cache::Cache;
use crate::defs::{self, Definition, Definitions};
use crate::files::{self, FileLoader, OpenTexts};
use crate::repair::Source;
use crate::trace::Clock;
use ptoc_analysis::debug::DebugInfo;
use ptoc_analysis::{Bindings, Instance, NameFact, Outcome, ProgramInstance};
use ptoc_diagnostics::{Budget, Diagnostic, Diagnostics, FileId, Fix, SourceMap, Span, codes, list, suggest};
use ptoc_ir::tile::{Kernel, TensorId};
use ptoc_isa::{Loc, Target};
use ptoc_names::{ItemId, Modules, WORD_NAMES};
use ptoc_opt::pass::{PassOptions, Recorder};
use ptoc_passes::pipeline::{Pipeline, Request};
use ptoc_placement::MemoryMap;
use ptoc_syntax::ast::{Expr, ExprKind, Ident, ItemKind, KernelItem, Name, Param};
use ptoc_tensor::DType;
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// The target of a session that names none.
pub const DEFAULT_TARGET: &str = "a2a3";

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
    pub vectors: ptoc_cpu::Vectors,
    /// Machine code has the interpreter's bits in products of f16 and bf16 too.
    pub exact: bool,
    /// The source files that were read, which no output may replace.
    pub read: Vec<PathBuf>,
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
    /// The command, as far as one would write it again, for what is shown of a kernel.
    pub command: Option<String>,
}

/// Steps of compile-time evaluation (statements, unrolled iterations, inlined calls) of all kernels of a file.
const EVALUATION: u64 = 1_000_000;

/// A number for a dimension, where a command is proposed.
const EXAMPLE: i64 = 128;

/// A file with everything that it imports.
#[derive(Debug)]
pub struct Unit {
    /// The path as it was given.
    pub path: PathBuf,
    /// The file.
    pub file: FileId,
    /// Its tree and those of its imports.
    pub modules: Modules,
}

/// A kernel or program of a unit.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'u> {
    /// The item.
    pub id: ItemId,
    /// The declaration.
    pub item: &'u KernelItem,
    /// A program, and no kernel.
    pub program: bool,
}

impl Session {
    /// A session for a target and definitions. An unknown target is the caller's mistake and not the input's, so it is
    /// returned; what is wrong with a definition is among the diagnostics.
    pub fn new(target: &str, definitions: &[Definition]) -> Result<Session, Box<Diagnostic>> {
        let mut target = Target::builtin(target)?.clone();
        let (mut sources, mut diagnostics) = (SourceMap::new(), Diagnostics::new());
        let definitions = Definitions::parse(definitions, &mut target, &mut sources, &mut diagnostics);
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
            vectors: ptoc_cpu::Vectors::Auto,
            exact: true,
            cache: Cache::default(),
            verify_ir: false,
            recorder: None,
            stand_in: false,
            command: None,
            names: Vec::new(),
            open: OpenTexts::default(),
            read: Vec::new(),
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

    /// Since this was asked last, were there too few?
    pub fn was_short(&mut self) -> bool {
        let evaluation = self.evaluation.was_short();
        self.budget.was_short() || evaluation
    }

    /// Adds an error and fails.
    pub fn fail<T>(&mut self, diagnostic: Diagnostic) -> Result<T, Failed> {
        self.diagnostics.push(diagnostic);
        Err(Failed)
    }

    /// Reads a file and what it imports, and checks names. Only a file that cannot be read is a failure; mistakes in
    /// it are among the diagnostics.
    pub fn load(&mut self, path: &Path) -> Result<Unit, Failed> {
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
    pub fn load_code(&mut self, path: &Path) -> Result<Unit, Failed> {
        let unit = self.load(path)?;
        self.diagnostics.soften(|d| matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND));
        Ok(unit)
    }

    /// [`Session::load`] for a text that is already there; `path` says where imports are looked for.
    pub fn load_text(&mut self, path: &Path, text: String) -> Unit {
        // What mends an import mends the uses of its name, so the two are told together.
        let mut found = Vec::new();
        let mut unit = self.parse_into(path, text, &mut found);
        unit.modules.give(self.definitions.names());
        let begin = self.clock.now();
        ptoc_names::check_names(&unit.modules, &mut found);
        self.clock.phase("names", begin);
        self.diagnostics.extend(found);
        unit
    }

    /// The first half of [`Session::load_text`]: trees, and what is wrong with syntax and imports.
    pub fn parse_text(&mut self, path: &Path, text: String) -> Unit {
        let mut found = Vec::new();
        let unit = self.parse_into(path, text, &mut found);
        self.diagnostics.extend(found);
        unit
    }

    fn parse_into(&mut self, path: &Path, text: String, found: &mut Vec<Diagnostic>) -> Unit {
        let begin = self.clock.now();
        let file = self.sources.add(path.display().to_string(), text.clone());
        let mut loader = FileLoader::new(&mut self.sources, file, path, &self.open);
        let modules = Modules::load(file, &text, &mut loader, found);
        self.read.extend(loader.into_paths());
        self.clock.phase("parse", begin);
        Unit { path: path.to_owned(), file, modules }
    }

    /// Errors for definitions that mean nothing to any of these kernels.
    pub fn check_definitions(&mut self, entries: &[Entry<'_>], unit: &Unit) {
        let who = match entries {
            [only] => format!("`{}` has nothing", only.item.name.name),
            _ => format!("no kernel of `{}` has anything", unit.path.display()),
        };
        let known: Vec<Name> = entries.iter().flat_map(|e| e.settable(unit)).collect();
        self.check_known(&known, &who);
    }

    /// Errors for definitions of names that are not `known`. `who` has "nothing called so".
    pub fn check_known(&mut self, known: &[Name], who: &str) {
        let mut seen: HashSet<&str> = HashSet::new();
        let names: Vec<&str> = known.iter().map(Name::as_str).filter(|n| seen.insert(n)).collect();
        for name in self.definitions.values.keys().filter(|n| !seen.contains(n.as_str())) {
            let mut d = Diagnostic::global(codes::UNKNOWN_DEFINITION, format!("-D {name}: {who} called `{name}`"));
            d = match names.is_empty() {
                true => d.with_note("nothing can be set but capacities, such as `-D capacity.Vec=262144`"),
                false => {
                    let all = list(names.iter().copied());
                    d.with_note(format!("`-D` sets {all}, or a capacity such as `capacity.Vec`"))
                }
            };
            if let Some(near) = suggest(name, names.iter().copied()) {
                d = d.with_help(format!("did you mean `-D {near}=..`?"));
            } else if let Some(loc) = Loc::ALL.into_iter().find(|l| l.name().eq_ignore_ascii_case(name)) {
                d = d.with_help(format!("did you mean `-D capacity.{loc}=..`?"));
            }
            self.diagnostics.push(d);
        }
    }

    /// Bindings for a kernel: definitions, with those of dimensions as numbers.
    pub fn bindings(&mut self, entry: &Entry<'_>, unit: &Unit) -> Result<Bindings, Failed> {
        let mut bindings = Bindings::default();
        bindings.steps = Some(Rc::clone(&self.evaluation));
        let dims = entry.dimensions(unit);
        let mut failed = false;
        for (name, expr) in &self.definitions.values {
            if !dims.iter().any(|d| d.name == *name) {
                bindings.defs.insert(name.clone(), expr.clone());
                continue;
            }
            match defs::dimension(name, expr) {
                Ok(n) => {
                    bindings.dims.insert(name.clone(), n);
                }
                Err(d) => {
                    self.diagnostics.push(d);
                    failed = true;
                }
            }
        }
        if failed { Err(Failed) } else { Ok(bindings) }
    }

    /// Elaborates a kernel. `waiting` says what it means that the kernel needs the number of a dimension.
    pub fn instantiate(&mut self, unit: &Unit, id: ItemId, bindings: &Bindings, waiting: Waiting) -> Option<Instance> {
        let begin = self.clock.now();
        let outcome = ptoc_analysis::instantiate(&unit.modules, id, &self.target, bindings);
        self.clock.phase("elaborate", begin);
        self.outcome(outcome, waiting)
    }

    /// Elaborates a program.
    pub fn instantiate_program(
        &mut self,
        unit: &Unit,
        id: ItemId,
        bindings: &Bindings,
        waiting: Waiting,
    ) -> Option<ProgramInstance> {
        let begin = self.clock.now();
        let outcome = ptoc_analysis::instantiate_program(&unit.modules, id, &self.target, bindings);
        self.clock.phase("elaborate", begin);
        self.outcome(outcome, waiting)
    }

    fn outcome<T>(&mut self, outcome: Outcome<T>, waiting: Waiting) -> Option<T> {
        self.names.extend(outcome.names);
        for mut d in outcome.diagnostics {
            if d.code == codes::DEPENDS_ON_DIMENSION && waiting == Waiting::IsError {
                self.nothing_to_show(&mut d, &outcome.waits);
            }
            self.diagnostics.push(d);
        }
        outcome.result
    }

    /// What was a note of a check keeps this command from showing anything.
    fn nothing_to_show(&self, d: &mut Diagnostic, waits: &[Name]) {
        d.severity = ptoc_diagnostics::Severity::Error;
        let Some(command) = self.command.as_ref().filter(|_| !waits.is_empty()) else { return };
        let names: Vec<String> = waits.iter().map(|n| format!("`{n}`")).collect();
        let given: String = waits.iter().map(|n| format!(" -D {n}={EXAMPLE}")).collect();
        let names = names.join(", ");
        d.message = format!("there is nothing to show yet: tile sizes depend on {names}, which only the launch knows");
        d.fixes.clear();
        d.fixes.push(Fix { message: format!("give it, for example `{command}{given}`"), edits: Vec::new() });
    }

    /// The memories of an instance, planned without limit if it does not fit, and what there is to say of it.
    pub fn map(&mut self, instance: Instance, origin: &Origin<'_>) -> (Option<MemoryMap>, Vec<Diagnostic>) {
        let begin = self.clock.now();
        let author = origin.source(&self.sources);
        let budget = self.budget.kernel();
        let (map, found) = ptoc_passes::pipeline::map(instance.kernel, &self.target, &author, &budget);
        self.budget.settle(&budget);
        self.passes(begin);
        (map, found.into_iter().map(|d| instance.debug.called_from(d)).collect())
    }

    /// All passes.
    pub fn prepare(&mut self, kernel: Kernel, debug: &DebugInfo, origin: &Origin<'_>) -> Option<ptoc_passes::Prepared> {
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
        origin: &Origin<'_>,
        launch: (&[i64], &[Option<u64>]),
    ) -> Option<ptoc_passes::Prepared> {
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
    fn launched(
        &mut self,
        mut prepared: ptoc_passes::Prepared,
        launch: (&[i64], &[Option<u64>]),
        debug: &DebugInfo,
    ) -> Option<ptoc_passes::Prepared> {
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

    fn races(&mut self, kernel: &Kernel, (dims, scalars): (&[i64], &[Option<u64>])) -> Vec<Diagnostic> {
        let budget = self.budget.kernel();
        let found = ptoc_checks::blocks::in_launch(kernel, &self.target, dims, scalars, &budget);
        self.budget.settle(&budget);
        found
    }

    /// The `out` tensors of which a launch may leave elements unwritten.
    pub fn unfilled(&mut self, kernel: &Kernel) -> Vec<TensorId> {
        let budget = self.budget.kernel();
        let found = ptoc_checks::blocks::unfilled(kernel, &budget);
        self.budget.settle(&budget);
        found
    }

    /// Races that sizes of the compiler's choice have shown, with the launch's own where they show the same.
    fn in_words_of_the_launch(&mut self, kernel: &Kernel, launch: (&[i64], &[Option<u64>]), errors: &mut [Diagnostic]) {
        let own = self.races(kernel, launch);
        for d in errors.iter_mut().filter(|d| d.code == codes::BLOCK_RACE) {
            match own.iter().find(|o| o.message == d.message) {
                Some(own) => *d = own.clone(),
                None => d.notes.push(ptoc_checks::blocks::elsewhere(kernel, launch.0, launch.1)),
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
        result: Result<ptoc_passes::Prepared, Vec<Diagnostic>>,
        debug: &DebugInfo,
    ) -> Option<ptoc_passes::Prepared> {
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

/// Where an instance comes from: what repairs are tried on.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'u> {
    /// The file.
    pub unit: &'u Unit,
    /// The kernel.
    pub kernel: ItemId,
    /// What it was elaborated with.
    pub bindings: &'u Bindings,
}

impl<'u> Origin<'u> {
    fn source<'s>(&self, sources: &'s SourceMap) -> Source<'s>
    where
        'u: 's,
    {
        Source { sources, modules: &self.unit.modules, kernel: self.kernel, bindings: self.bindings }
    }
}

/// The module of the standard library that `std::scan` names, unless there is a file of that name.
fn library(path: &Path) -> Option<(&'static str, &'static str)> {
    let segments: Vec<&str> = path.to_str()?.strip_prefix("std::")?.split("::").collect();
    ptoc_stdlib::module(&segments).filter(|_| !path.exists())
}

/// What it means that a kernel cannot be elaborated before the numbers of some dimensions are known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Waiting {
    /// That the rest of it is not checked.
    IsNote,
    /// That there is nothing to compile.
    IsError,
}

impl Unit {
    /// Kernels and programs, in source order.
    pub fn entries(&self) -> Vec<Entry<'_>> {
        let program = |id| matches!(self.modules.item(id).kind, ItemKind::Program(_));
        self.modules.entries().map(|(id, item)| Entry { id, item, program: program(id) }).collect()
    }

    /// The entry of that name; without a name, the only one. `command` is for the message's example.
    pub fn entry(&self, name: Option<&str>, command: &str) -> Result<Entry<'_>, Box<Diagnostic>> {
        let entries = self.entries();
        let names: Vec<&str> = entries.iter().map(|e| e.item.name.name.as_str()).collect();
        let path = self.path.display();
        let Some(name) = name else {
            return match &entries[..] {
                [only] => Ok(*only),
                [] => Err(Box::new(
                    Diagnostic::global(codes::WHICH_KERNEL, format!("`{path}` has no kernel"))
                        .with_help("a kernel begins with `kernel NAME(ARGUMENTS) {`"),
                )),
                _ => Err(Box::new(
                    Diagnostic::global(
                        codes::WHICH_KERNEL,
                        format!("`{path}` has {} kernels: which one?", names.len()),
                    )
                    .with_note(format!("it has {}", list(names.iter().copied())))
                    .with_help(format!("name one: `ptoc {command} {path} {}`", names[0])),
                )),
            };
        };
        if let Some(found) = entries.iter().find(|e| e.item.name.name == name) {
            return Ok(*found);
        }
        let mut d = Diagnostic::global(codes::UNKNOWN_KERNEL, format!("`{path}` has no kernel `{name}`"));
        d = match names.is_empty() {
            true => d.with_note("it has no kernel at all"),
            false => d.with_note(format!("it has {}", list(names.iter().copied()))),
        };
        if let Some(near) = suggest(name, names.iter().copied()) {
            d = d.with_help(format!("did you mean `{near}`?"));
        }
        Err(Box::new(d))
    }
}

impl Entry<'_> {
    /// The dimensions, each where it is first used: bare names in the types of tensors that nothing else defines.
    /// This is the rule of the analysis, needed here before there is an instance.
    pub fn dimensions(&self, unit: &Unit) -> Vec<Ident> {
        let mut found: Vec<Ident> = Vec::new();
        let item = self.item;
        let given = item.statics.iter().map(|s| &s.name.name).chain(item.params.iter().map(|p| &p.name.name));
        // Names that are none, or are found already.
        let mut taken: HashSet<&Name> = given.collect();
        for param in &self.item.params {
            for extent in extents(param).unwrap_or_default() {
                self.add_dimensions(extent, unit, &mut taken, &mut found);
            }
        }
        found
    }

    /// Those of an extent: a name, or names in the shape of a layout.
    fn add_dimensions<'e>(&self, extent: &'e Expr, unit: &Unit, taken: &mut HashSet<&'e Name>, found: &mut Vec<Ident>) {
        match &*extent.kind {
            ExprKind::Name(name) if taken.insert(name) && is_free(name, unit, self.id.module) => {
                found.push(Ident { name: name.clone(), span: extent.span });
            }
            ExprKind::Layout(e, _) | ExprKind::Paren(e) => self.add_dimensions(e, unit, taken, found),
            ExprKind::Tuple(list) => list.iter().for_each(|e| self.add_dimensions(e, unit, taken, found)),
            _ => {}
        }
    }

    /// The extents of a tensor argument's array, one for each mode; `None` where the layout's value says how many there
    /// are.
    pub fn axes<'p>(&self, param: &'p Param, unit: &Unit) -> Option<Vec<&'p Expr>> {
        let extents = extents(param).unwrap_or_default();
        let [one] = extents[..] else { return Some(extents) };
        match &*one.kind {
            ExprKind::Layout(shape, _) => Some(match &*shape.kind {
                ExprKind::Tuple(list) => list.iter().collect(),
                ExprKind::Paren(e) => vec![e],
                _ => vec![shape],
            }),
            ExprKind::Name(n) if !self.is_dimension(n, unit) => None,
            ExprKind::Call(..) => None,
            _ => Some(extents),
        }
    }

    /// Is a bare name in a tensor's type a dimension?
    pub fn is_dimension(&self, name: &Name, unit: &Unit) -> bool {
        let item = self.item;
        !(item.statics.iter().any(|s| s.name.name == *name) || item.params.iter().any(|p| p.name.name == *name))
            && is_free(name, unit, self.id.module)
    }

    /// Everything that `-D` can set: static parameters, scalar arguments, dimensions.
    pub fn settable(&self, unit: &Unit) -> Vec<Name> {
        let statics = self.item.statics.iter().map(|s| s.name.name.clone());
        let scalars = self.item.params.iter().filter(|p| extents(p).is_none()).map(|p| p.name.name.clone());
        statics.chain(scalars).chain(self.dimensions(unit).into_iter().map(|d| d.name)).collect()
    }

    /// The tensor arguments in order.
    pub fn tensors(&self) -> impl Iterator<Item = &Param> {
        self.item.params.iter().filter(|p| extents(p).is_some())
    }

    /// A static parameter without a default that no definition sets.
    pub fn missing_static(&self, definitions: &Definitions) -> Option<&Ident> {
        use ptoc_syntax::ast::StaticKind as K;
        let missing = |kind: &K| match kind {
            K::Const { default, .. } | K::Type { default } => default.is_none(),
            K::Fn { default } => default.is_none(),
        };
        let found =
            self.item.statics.iter().find(|s| missing(&s.kind) && !definitions.values.contains_key(&s.name.name));
        found.map(|s| &s.name)
    }

    /// `kernel` or `program`.
    pub fn word(&self) -> &'static str {
        if self.program { "program" } else { "kernel" }
    }
}

/// Does neither the module nor the language know a name?
fn is_free(name: &Name, unit: &Unit, module: ptoc_names::ModuleId) -> bool {
    !(unit.modules.get(module).scope.contains_key(name)
        || WORD_NAMES.contains(&name.as_str())
        || DType::from_name(name).is_some()
        || Loc::from_name(name).is_some())
}

/// The extents in a tensor's type; `None` for a scalar argument.
pub fn extents(param: &Param) -> Option<Vec<&Expr>> {
    match &*param.ty.kind {
        ExprKind::Index(_, dims) => Some(dims.iter().map(|d| &d.value).collect()),
        _ => None,
    }
}

/// The span of an argument's type.
pub fn type_span(param: &Param) -> Span {
    param.ty.span
}

//! A kernel with its constants, which is compiled once for each kind of call.

use super::arrays::{Argument, Call, check_strides};
use super::rebinding::Rebinding;
use super::signature::{Library, Parameter, ParameterKind, Signature};
use super::specialization::SpecialCode;
use super::{Report, Specialization, on_large_stack};
use crate::backend::{self, BackendRef};
use crate::cache::Cache;
use crate::defs::Definition;
use crate::files::ArrayFile;
use crate::launch::{Arrays, CompiledPlan, Plan};
use crate::lock;
use crate::session::{CompilationUnit, EntryPoint, Failed, Front, Session};
use crate::tuning::{TuningSlot, TuningUse};
use ptoc_diagnostics::{Diagnostic, codes, list, suggest};
use ptoc_syntax::ast::Name;
use rustc_hash::FxHashMap;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// How a kernel is compiled.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The target.
    pub target: String,
    /// What executes; without one the target's first machine.
    pub backend: Option<String>,
    /// `--exact`: products of narrow floats are chains of fused multiply-adds, and go to no matrix unit.
    pub exact: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { target: crate::session::DEFAULT_TARGET.into(), backend: None, exact: false }
    }
}

impl Options {
    /// Refuses what is not there, before a kernel is asked for.
    ///
    /// # Errors
    /// There is no such target or backend, or the backend does not serve the target.
    pub fn check(&self) -> Result<(), Report> {
        self.backend().map(drop).map_err(|d| Report::of(*d, Arc::default()))
    }

    /// What executes kernels of these options.
    fn backend(&self) -> Result<BackendRef, Box<Diagnostic>> {
        let session = Session::new(&self.target, &[])?;
        let asked = match &self.backend {
            None => None,
            Some(name) => Some(backend::named(name).ok_or_else(|| no_backend(name))?),
        };
        backend::choose(&session.target, asked)
    }
}

/// A kernel or program of a library, with values of its static parameters.
#[derive(Debug)]
pub struct Callable {
    library: Arc<Library>,
    signature: Arc<Signature>,
    options: Options,
    backend: BackendRef,
    definitions: Vec<Definition>,
    /// Code by [`Call::key`], without values of scalars where these share it.
    compiled: Mutex<FxHashMap<Box<[u64]>, Arc<Specialization>>>,
    /// Code by what a kernel is elaborated to. It is held while a thread compiles: what others wait for may be the
    /// same.
    cache: Mutex<Cache>,
    /// The same kernel for arrays of a device, where this one is for the host.
    on_device: OnceLock<Result<Arc<Callable>, Report>>,
    /// The same kernel with more constants, by what they were given as.
    variants: Mutex<FxHashMap<Vec<Definition>, Arc<Callable>>>,
}

/// Kernels with more constants that are kept. Beyond, all are forgotten.
const VARIANTS: usize = 256;

/// The target of arrays on a GPU.
const DEVICE_TARGET: &str = "sm90";

/// Kinds of calls whose code is found without elaborating the kernel. Beyond, all are forgotten; the code is not.
const KEPT: usize = 1024;

impl Callable {
    /// A kernel with constants: values of static parameters and sizes of dimensions, as expressions of the language.
    ///
    /// # Errors
    /// There is no such kernel, target or backend, or a constant of that name.
    pub fn new(
        library: &Arc<Library>,
        name: &str,
        definitions: Vec<Definition>,
        options: Options,
    ) -> Result<Callable, Report> {
        let signature = Arc::clone(library.signature(name)?);
        let refuse = |d: Diagnostic| Report::of(d, Arc::clone(library.sources()));
        let backend = options.backend().map_err(|d| refuse(*d))?;
        for definition in &definitions {
            if !signature.is_constant(&definition.name) && !definition.name.contains('.') {
                return Err(refuse(no_constant(&signature, &definition.name)));
            }
        }
        let (compiled, cache, on_device, variants) = Default::default();
        Ok(Callable {
            library: Arc::clone(library),
            signature,
            options,
            backend,
            definitions,
            compiled,
            cache,
            on_device,
            variants,
        })
    }

    /// The same kernel with more constants, of which the last of a name counts. The same constants give the same
    /// kernel, with its code.
    ///
    /// # Errors
    /// There is no constant of that name.
    pub fn with(&self, definitions: Vec<Definition>) -> Result<Arc<Callable>, Report> {
        if let Some(known) = lock(&self.variants).get(&definitions) {
            return Ok(Arc::clone(known));
        }
        let made = Arc::new(self.with_new(definitions.clone())?);
        let mut variants = lock(&self.variants);
        if variants.len() >= VARIANTS {
            variants.clear();
        }
        Ok(Arc::clone(variants.entry(definitions).or_insert(made)))
    }

    fn with_new(&self, definitions: Vec<Definition>) -> Result<Callable, Report> {
        let given: HashSet<&str> = definitions.iter().map(|d| d.name.as_str()).collect();
        let mut all: Vec<Definition> =
            self.definitions.iter().filter(|d| !given.contains(d.name.as_str())).cloned().collect();
        all.extend(definitions);
        Callable::new(&self.library, &self.signature.name, all, self.options.clone())
    }

    /// The same kernel for arrays on a device: for the target `sm90`, unless this one has a target of GPUs.
    ///
    /// # Errors
    /// It has constants that the other target does not take, or a target whose units have memory of their own.
    pub fn for_device(self: &Arc<Callable>) -> Result<Arc<Callable>, Report> {
        if self.backend.name() == "gpu" {
            return Ok(Arc::clone(self));
        }
        let made = self.on_device.get_or_init(|| {
            if self.options.backend.is_some() || self.backend.capabilities().units {
                let (target, backend) = (&self.options.target, self.backend.name());
                let message = format!("kernels for `{target}` on `{backend}` do not run on arrays of a CUDA device");
                let d = Diagnostic::global(codes::ARRAY_NOT_TAKEN, message);
                return Err(self.report(d.with_help("load them with `target=\"sm90\"`, or pass `x.cpu()`")));
            }
            let options = Options { target: DEVICE_TARGET.into(), backend: None, ..self.options.clone() };
            let of = (&self.library, &*self.signature.name);
            Callable::new(of.0, of.1, self.definitions.clone(), options).map(Arc::new)
        });
        made.clone()
    }

    /// Reads memory of a device, for a kernel that is [for it](Callable::for_device), once what is in the stream before
    /// is done, which is waited for.
    ///
    /// # Errors
    /// What the device's driver says.
    ///
    /// # Safety
    /// The stream is one of the device, and there are so many bytes at the address.
    pub unsafe fn read_from(
        &self,
        (device, stream): (i32, u64),
        address: *const u8,
        bytes: &mut [u8],
    ) -> Result<(), Report> {
        let address = address.expose_provenance() as u64;
        // SAFETY: the caller's promise.
        unsafe { self.backend.read_from((device, stream), address, bytes) }.map_err(|d| self.report(*d))
    }

    /// The file.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// What it takes.
    pub fn signature(&self) -> &Signature {
        &self.signature
    }

    /// How it is compiled.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// What executes it.
    pub fn backend(&self) -> BackendRef {
        self.backend
    }

    /// Its constants.
    pub fn definitions(&self) -> &[Definition] {
        &self.definitions
    }

    /// A report of one diagnostic about a call, which points into the library.
    pub fn report(&self, d: Diagnostic) -> Report {
        Report::of(d, Arc::clone(self.library.sources()))
    }

    /// The code for calls like this one, if it is compiled already. `key` is room for the call's, which it is
    /// afterwards.
    pub fn known(&self, call: &Call, key: &mut Vec<u64>) -> Option<Arc<Specialization>> {
        let compiled = lock(&self.compiled);
        let mut find = |values| {
            call.key(&self.signature, values, key);
            compiled.get(&key[..]).map(Arc::clone)
        };
        match self.signature.parameters.iter().all(Parameter::is_tensor) {
            true => find(true),
            false => find(false).or_else(|| find(true)),
        }
    }

    /// The code for calls like this one, compiled if there is none yet. Outputs may be missing: their shapes are then
    /// what the inputs make them, see [`Specialization::missing_outputs`].
    ///
    /// # Errors
    /// The arguments do not fit the kernel, or it is refused for them.
    pub fn specialize(&self, call: &Call) -> Result<Arc<Specialization>, Report> {
        let key = &mut Vec::new();
        if let Some(known) = self.known(call, key) {
            return Ok(known);
        }
        let mut cache = lock(&self.cache);
        // Another thread may have compiled it meanwhile.
        if let Some(known) = self.known(call, key) {
            return Ok(known);
        }
        let made = Arc::new(self.compile_cached(call, &mut cache)?);
        if made.rebinds() {
            call.key(&self.signature, false, key);
        }
        let mut compiled = lock(&self.compiled);
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert(key[..].into(), Arc::clone(&made));
        Ok(made)
    }

    /// The place of the results of tuning of calls like this one; `None` if they are not stored.
    ///
    /// # Errors
    /// The arguments do not fit the kernel.
    pub fn tuning_slot(&self, call: &Call) -> Result<Option<TuningSlot>, Report> {
        on_large_stack(|| {
            let mut session = self.session(call)?;
            let made = self.load(&mut session).and_then(|unit| {
                let entry = unit.entry(Some(&self.signature.name), "run").or_else(|d| session.fail(*d))?;
                let arrays = self.heads(&mut session, &unit, &entry, call);
                let on = (self.backend, ptoc_exec::Pool::default_threads());
                TuningSlot::of(&mut session, (&unit, &entry), &arrays, on)
            });
            made.map_err(|Failed| Report::of_session(&mut session))
        })
    }

    /// The code for this call and its values of scalars, whatever there is for others; it is not kept.
    ///
    /// # Errors
    /// As for [`Callable::specialize`].
    pub(super) fn specialize_exactly(&self, call: &Call) -> Result<Specialization, Report> {
        self.compile_cached(call, &mut lock(&self.cache))
    }

    fn compile_cached(&self, call: &Call, cache: &mut Cache) -> Result<Specialization, Report> {
        let taken = Mutex::new(std::mem::take(cache));
        let made = on_large_stack(|| self.compile(call, &taken));
        *cache = taken.into_inner().unwrap_or_else(PoisonError::into_inner);
        made
    }

    /// A session for the definitions of a call.
    pub(super) fn session(&self, call: &Call) -> Result<Session, Report> {
        let mut definitions = self.definitions.clone();
        definitions.extend(self.deduced(call));
        let mut scalars = Vec::new();
        for (parameter, argument) in self.signature.parameters.iter().zip(&call.arguments) {
            let Some(Argument::Scalar(scalar)) = argument else { continue };
            // What a program launches may depend on it; a kernel's code as a rule does not, and is compiled once.
            match self.signature.word == "program" || parameter.in_where {
                true => definitions.push(Definition { name: parameter.name.clone(), value: scalar.text() }),
                false => scalars.push((Name::new(&parameter.name), *scalar)),
            }
        }
        let mut session = Session::new(&self.options.target, &definitions).map_err(|d| self.report(*d))?;
        session.front = Front::Call;
        session.scalars = scalars;
        session.select(self.backend);
        session.watched = self.backend.capabilities().watches;
        session.exact = self.options.exact;
        session.tuning = TuningUse::of(self.backend, ptoc_exec::Pool::default_threads());
        Ok(session)
    }

    /// Types that nothing defines, from the arrays whose elements they are.
    fn deduced(&self, call: &Call) -> Vec<Definition> {
        let mut found: Vec<Definition> = Vec::new();
        for (n, parameter) in self.signature.parameters.iter().enumerate() {
            let (ParameterKind::Tensor { element, .. }, Some(array)) = (&parameter.kind, call.array(n)) else {
                continue;
            };
            let open = self.signature.statics.iter().any(|s| s.is_type && s.name == *element)
                && !self.definitions.iter().chain(&found).any(|d| d.name == *element);
            if open {
                found.push(Definition { name: element.clone(), value: array.dtype.to_string() });
            }
        }
        found
    }

    fn compile(&self, call: &Call, cache: &Mutex<Cache>) -> Result<Specialization, Report> {
        let mut session = self.session(call)?;
        session.cache = std::mem::take(&mut *lock(cache));
        let made = self.compile_in(&mut session, call);
        *lock(cache) = std::mem::take(&mut session.cache);
        match made {
            Ok(Ok(made)) => {
                let warnings = std::mem::take(&mut session.diagnostics);
                // What was said may be about these values.
                let rebinding = match warnings.iter().next() {
                    None if made.1.shared.is_some() => Rebinding::of(&made.0, &self.signature, call),
                    _ => None,
                };
                let sources = Arc::new(std::mem::take(&mut session.sources));
                let warnings = Report::new(warnings, Arc::clone(&sources));
                let mut made = Specialization::new(made, rebinding, self, sources, warnings);
                made.notes = Mutex::new(std::mem::take(&mut session.notes));
                Ok(made)
            }
            Ok(Err(d)) => Err(self.report(*d)),
            Err(Failed) => Err(Report::of_session(&mut session)),
        }
    }

    /// The library's text in a session. Imports are read anew.
    pub(super) fn load(&self, session: &mut Session) -> Result<CompilationUnit, Failed> {
        let unit = session.load_text(self.library.path(), self.library.text().to_owned());
        session.diagnostics.soften(|d| matches!(d.code, codes::MALFORMED_DIRECTIVE | codes::UNKNOWN_BACKEND));
        if session.diagnostics.has_errors() { Err(Failed) } else { Ok(unit) }
    }

    /// The plan of a call, and its code for any thread, if there is such. What is wrong with the call alone is
    /// returned.
    fn compile_in(
        &self,
        session: &mut Session,
        call: &Call,
    ) -> Result<Result<super::specialization::Made, Box<Diagnostic>>, Failed> {
        let unit = self.load(session)?;
        let entry = unit.entry(Some(&self.signature.name), "run").or_else(|d| session.fail(*d))?;
        let arrays = self.heads(session, &unit, &entry, call);
        let plan = Plan::new(session, &unit, &entry, &arrays, false)?;
        for (n, parameter) in self.signature.parameters.iter().enumerate() {
            let Some(array) = call.array(n) else { continue };
            let argument = plan.arguments.iter().position(|a| a.name == *parameter.name);
            let storage = match (&plan.steps[..], argument) {
                ([step], Some(argument)) if !plan.program => step.storage[argument].as_ref(),
                _ => None,
            };
            if let Err(d) = check_strides(parameter, array, storage) {
                return Ok(Err(d));
            }
        }
        let compiled = CompiledPlan::new(session, &plan, self.backend)?;
        let code = SpecialCode {
            shared: compiled.shared(),
            device: compiled.on_device(),
            workspace: compiled.workspace().clone(),
        };
        drop(compiled);
        Ok(Ok((plan, code)))
    }

    /// The arrays of a call, by argument.
    fn heads(&self, session: &mut Session, unit: &CompilationUnit, entry: &EntryPoint<'_>, call: &Call) -> Arrays {
        let mut arrays = Arrays::new();
        for (n, param) in entry.item.params.iter().enumerate() {
            let Some(array) = call.array(n) else { continue };
            let head = ArrayFile::lent(array.dtype, &array.shape);
            let rank = entry.axes(param, unit).map(|axes| axes.len());
            let batch = rank != Some(array.shape.len()) && entry.has_batch(param, array.shape.len());
            arrays.insert(
                param.name.name.to_string(),
                match batch {
                    true => crate::launch::batch_of_one(session, param, head),
                    false => head,
                },
            );
        }
        arrays
    }
}

fn no_backend(name: &str) -> Diagnostic {
    let all = backend::all();
    let names: Vec<&str> = all.iter().map(|b| b.name()).collect();
    Diagnostic::global(codes::BACKEND_TARGET, format!("there is no backend `{name}`"))
        .with_help(format!("the backends are {}", list(names)))
}

fn no_constant(signature: &Signature, name: &str) -> Diagnostic {
    let Signature { word, name: of, .. } = signature;
    let message = format!("{word} `{of}` has no static parameter or dimension `{name}`");
    let statics = signature.statics.iter().map(|s| s.name.as_str());
    let known: Vec<&str> = statics.chain(signature.dimensions.iter().map(String::as_str)).collect();
    let mut d = Diagnostic::global(codes::UNKNOWN_DEFINITION, message);
    d = match (signature.parameter(name), known.is_empty()) {
        (Some(_), _) => d.with_note(format!("`{name}` is an argument of its calls")),
        (None, true) => d.with_note("it has none"),
        (None, false) => d.with_note(format!("it has {}", list(known.iter().copied()))),
    };
    match suggest(name, known) {
        Some(near) => d.with_help(format!("did you mean `{near}`?")),
        None => d,
    }
}

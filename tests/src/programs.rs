//! The programs of the repository, in process: every `// run:` line made ready, and every kernel on every target.

use ptoc_analysis::TensorSource;
use ptoc_driver::defs::Definition;
use ptoc_driver::files::ArrayFile;
use ptoc_driver::launch::{Arrays, Plan, open_arrays};
use ptoc_driver::session::{RepairOrigin, Session, Waiting};
use ptoc_interp::{InterpreterLaunch, Options, TensorArg};
use ptoc_ir::tile::Kernel;
use ptoc_isa::{Loc, Target};
use ptoc_placement::PlacedKernel;
use ptoc_syntax::Directive;
use ptoc_syntax::directive::Settings;
use ptoc_tensor::Tensor;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Arrays of a test, by argument.
pub type Given = BTreeMap<String, Tensor>;

/// The arrays as a launch takes them.
pub fn arrays_of(given: &Given) -> Arrays {
    given.iter().map(|(name, tensor)| (name.clone(), ArrayFile::of(tensor.clone(), "given"))).collect()
}

/// The `.tile` files of `examples` and `tests/language`, sorted.
pub fn files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<_> = ["language", "../examples"]
        .iter()
        .filter_map(|d| std::fs::read_dir(root.join(d)).ok())
        .flat_map(|d| d.filter_map(|e| Some(e.ok()?.path())))
        .filter(|p| p.extension().is_some_and(|e| e == "tile"))
        .collect();
    files.sort();
    assert!(files.len() >= 12, "the programs are gone");
    files
}

/// A `// run:` line that compiles.
pub struct Prepared {
    /// File and line.
    pub name: String,
    /// With the sources and the target.
    pub session: Session,
    /// Ready to run.
    pub plan: Plan,
    /// The arguments before.
    pub before: Vec<Tensor>,
}

fn definitions(settings: &Settings) -> Vec<Definition> {
    let plain = settings.params.iter().map(|b| (b.name.name.to_string(), b));
    let capacities = settings.capacities.iter().map(|b| (format!("capacity.{}", b.name.name), b));
    let machine = settings.machine.iter().map(|b| (b.name.name.to_string(), b));
    plain.chain(capacities).chain(machine).map(|(name, b)| Definition { name, value: b.value.to_string() }).collect()
}

/// The `// run:` lines of a file that this compiler takes (others are `ptoc test`'s business).
pub fn runs(path: &Path) -> Vec<Prepared> {
    runs_of(path, &std::fs::read_to_string(path).expect("UTF-8"))
}

/// [`runs`] of a text.
pub fn runs_of(path: &Path, text: &str) -> Vec<Prepared> {
    let mut sources = ptoc_diagnostics::SourceMap::new();
    let file = sources.add(path.display().to_string(), text);
    let mut out = Vec::new();
    for directive in ptoc_syntax::parse(file, text).directives {
        let Directive::Run(run) = directive else { continue };
        let target = run.settings.target.as_ref().map_or("a2a3", |t| t.name.as_str());
        let Ok(mut session) = Session::new(target, &definitions(&run.settings)) else { continue };
        let unit = session.load_text(path, text.to_owned());
        let Ok(entry) = unit.entry(Some(&run.kernel.name), "run") else { continue };
        session.check_definitions(&[entry], &unit);
        let directory = path.parent().unwrap_or(Path::new(""));
        let inputs: Vec<_> =
            run.inputs.iter().map(|b| (b.name.name.to_string(), directory.join(b.value.as_str()))).collect();
        let Ok(mut arrays) = open_arrays(&mut session, &entry, "", &inputs) else { continue };
        let Ok(plan) = Plan::new(&mut session, &unit, &entry, &arrays, true) else { continue };
        let seed = run.settings.seed.map_or(0, |(seed, _)| seed);
        let Ok(before) = plan.tensors(&mut session, &mut arrays, seed) else { continue };
        let line = sources.position(file, run.span.start).line;
        let name = format!("{}:{line} {} on {target}", path.display(), run.kernel.name);
        out.push(Prepared { name, session, plan, before });
    }
    out
}

/// A kernel of a file, placed for a target.
pub struct Placed {
    /// File, kernel and target.
    pub name: String,
    /// The target.
    pub target: Target,
    /// With addresses.
    pub placed: PlacedKernel,
}

/// Every kernel of a file (and every step of its programs) that compiles without definitions, on every target.
pub fn kernels(path: &Path) -> Vec<Placed> {
    let text = std::fs::read_to_string(path).expect("UTF-8");
    kernels_of(path, &text)
}

/// [`kernels`] of a text.
pub fn kernels_of(path: &Path, text: &str) -> Vec<Placed> {
    let mut out = Vec::new();
    for target in Target::pto() {
        let mut session = Session::new(&target.name, &[]).expect("built in");
        let unit = session.load_text(path, text.to_owned());
        if session.diagnostics.has_errors() {
            continue;
        }
        for entry in unit.entries() {
            let Ok(bindings) = session.bindings(&entry, &unit) else { continue };
            let instances: Vec<_> = if entry.program {
                let program = session.instantiate_program(&unit, entry.id, &bindings, Waiting::IsError);
                program.into_iter().flat_map(|p| p.kernels()).collect()
            } else {
                let instance = session.instantiate(&unit, entry.id, &bindings, Waiting::IsError);
                instance.into_iter().map(|i| (i, entry.id, bindings.clone())).collect()
            };
            for (instance, kernel, bindings) in instances {
                let name = format!("{} {} on {}", path.display(), instance.kernel.name, target.name);
                if let Some(prepared) = session.prepare(
                    instance.kernel,
                    &instance.debug,
                    &RepairOrigin { unit: &unit, kernel, bindings: &bindings },
                ) {
                    out.push(Placed { name, target: session.target.clone(), placed: prepared.placed });
                }
            }
        }
    }
    out
}

impl Prepared {
    /// Calls `f` with the first launch, if it takes the arguments as they are.
    pub fn first_launch<T>(&self, f: impl FnOnce(&Kernel, &Target, &mut InterpreterLaunch<'_>) -> T) -> Option<T> {
        let step = self.plan.steps.first()?;
        let mut tensors = Vec::new();
        for (i, &source) in step.tensors.iter().enumerate() {
            let laid = step.storage.get(i).and_then(Option::as_ref);
            let (TensorSource::Arg(arg), None, None) = (source, laid, &step.windows[i]) else { return None };
            let t = &self.before[arg];
            // A matrix may be a batch of one.
            let shape = step.shapes[i].iter().map(|&n| n as u64).collect();
            tensors.push(TensorArg { dtype: t.dtype(), shape, data: t.bytes().to_vec() });
        }
        let target = &*ptoc_opt::fragments::seen_by(&step.kernel, &self.session.target);
        let mut launch = InterpreterLaunch {
            tensors,
            dims: step.dims.clone(),
            scalars: step.scalars.iter().map(|&bits| Some(bits)).collect(),
            options: Options {
                capacity: Loc::ALL.into_iter().map(|loc| (loc, target.memory(loc).capacity)).collect(),
                ..Options::default()
            },
            print: &mut |_| {},
        };
        Some(f(&step.kernel, target, &mut launch))
    }
}

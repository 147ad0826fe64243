//! Mutants of correct kernels: one synchronisation less, or one address elsewhere.
//!
//! The author's order of pipes is judged twice, by programs that share nothing: the compiler looks at every execution
//! without running any, and the interpreter watches one, with vector clocks. For every kernel of
//! `tests/hazards/correct` and every manual kernel among the programs, each single deletion of a synchronisation and
//! each single move of an address is enumerated. The compiler reports a mutant, as an error or as not proved, if and
//! only if the interpreter stops or the results have other bits.
//!
//! That holds both ways only where the launches show everything that a kernel may do: full tiles, more iterations than
//! buffers twice over, every branch. The `// run:` lines of the files see to that.

use ptoc_diagnostics::Diagnostic;
use ptoc_interp::{InterpreterLaunch, Options, Order, Pipes, TensorArg};
use ptoc_ir::tile::text::{Spans, print};
use ptoc_ir::tile::{AddrKind, Kernel, Op, Region, Stmt, SyncMode, Tile, adds_floats};
use ptoc_isa::Target;
use ptoc_isa::check_address;
use ptoc_passes::pipeline;
use ptoc_placement::memories::{align, capacity};
use ptoc_placement::placement::pitch;
use ptoc_placement::{physical, placement};
use ptoc_tensor::DType;
use ptoc_tests::programs::runs_of;
use ptoc_tests_budget::one_in;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Of so many mutants of a kernel one is looked at in the small tier of tests.
const USUAL: usize = 5;

/// A correct kernel with its launches.
struct Subject {
    name: String,
    target: Target,
    kernel: Kernel,
    launches: Vec<Given>,
}

/// Arguments of a launch, and the results of the kernel as it is.
struct Given {
    tensors: Vec<TensorArg>,
    dims: Vec<i64>,
    scalars: Vec<Option<u64>>,
    options: Options,
    want: Vec<TensorArg>,
}

impl Given {
    /// The results, or the code of the trap.
    fn run(&self, kernel: &Kernel, target: &Target, order: Order) -> Result<Vec<TensorArg>, &'static str> {
        let pipes = Pipes { order, barrier: target.pipes.barrier.clone(), ..Pipes::default() };
        let mut launch = InterpreterLaunch {
            tensors: self.tensors.clone(),
            dims: self.dims.clone(),
            scalars: self.scalars.clone(),
            options: Options { pipes: Some(pipes), ..self.options.clone() },
            print: &mut |_| {},
        };
        match ptoc_interp::run(kernel, &mut launch) {
            Ok(_) => Ok(launch.tensors),
            Err(trap) => Err(trap.code.as_str()),
        }
    }
}

/// Whether the results are the same. Floats that are added atomically may be rounded in any order.
fn same(kernel: &Kernel, got: &[TensorArg], want: &[TensorArg]) -> bool {
    let close = |(got, want): (&TensorArg, &TensorArg)| {
        let numbers = |t: &TensorArg| {
            let numbers = t.data.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
            numbers.collect::<Vec<f32>>()
        };
        let pairs = || numbers(got).into_iter().zip(numbers(want));
        got == want || got.dtype == DType::F32 && pairs().all(|(a, b)| (a - b).abs() <= 1e-5 * (1.0 + b.abs()))
    };
    got == want || adds_floats(kernel) && got.iter().zip(want).all(close)
}

/// One change.
struct Mutant {
    change: String,
    moved: bool,
    kernel: Kernel,
}

/// What a judge says: nothing, or why not.
type Verdict = Option<String>;

impl Subject {
    fn compiler(&self, kernel: &Kernel) -> Verdict {
        let found = match pipeline::place(kernel.clone(), &self.target) {
            Ok((_, warnings)) => warnings,
            Err(errors) => errors,
        };
        // What is tested while the kernel runs is no mistake.
        let told = found.iter().map(|d: &Diagnostic| d.code.as_str()).filter(|code| !code.starts_with("PA-"));
        let mut codes: BTreeSet<&str> = told.collect();
        // What elaboration says of an address that the author has written.
        for (_, data) in &kernel.tiles {
            let AddrKind::Fixed(all) = &data.addr else { continue };
            let wrong = all.iter().flat_map(|&a| check_address(&self.target, data.ty, i128::from(a)));
            codes.extend(wrong.map(|v| v.kind.code().as_str()));
        }
        (!codes.is_empty()).then(|| codes.into_iter().collect::<Vec<_>>().join(" "))
    }

    /// Stops at the first launch that shows something.
    fn interpreter(&self, kernel: &Kernel) -> Verdict {
        // Where a memory has no bytes, or none that begin there, nothing needs to run.
        for (_, data) in &kernel.tiles {
            let AddrKind::Fixed(all) = &data.addr else { continue };
            let (unit, size) = (align(&self.target, data.ty.loc), capacity(&self.target, data.ty.loc));
            if all.iter().any(|a| a % unit != 0 || a + pitch(data, unit) > size) {
                return Some("no such place".to_owned());
            }
        }
        for order in [Order::Program, Order::Late] {
            for (n, given) in self.launches.iter().enumerate() {
                match given.run(kernel, &self.target, order) {
                    Err(code) => return Some(format!("{code} in launch {n}")),
                    Ok(got) if !same(kernel, &got, &given.want) => return Some(format!("other bits in launch {n}")),
                    Ok(_) => {}
                }
            }
        }
        None
    }

    fn mutants(&self) -> Vec<Mutant> {
        let mut out = Vec::new();
        let mut hidden = BTreeSet::new();
        scratch(&self.kernel.body, &mut hidden);
        let total = count(&self.kernel.body);
        for n in 0..total {
            let mut kernel = self.kernel.clone();
            let mut left = n;
            let stmt = delete(&mut kernel.body, &mut left).expect("there are so many");
            let Op::Sync(sync) = &stmt.op else { unreachable!("a synchronisation") };
            let event = sync.event().map(|e| format!(" {}", self.kernel.events[e.event].name)).unwrap_or_default();
            out.push(Mutant { change: format!("without {}{event}, number {n}", sync.word()), moved: false, kernel });
        }
        for (tile, data) in self.kernel.tiles.iter().filter(|(tile, _)| !hidden.contains(tile)) {
            let AddrKind::Fixed(all) = &data.addr else { continue };
            for (element, &from) in all.iter().enumerate() {
                for to in self.places(tile, element, from, &hidden) {
                    let mut kernel = self.kernel.clone();
                    if let AddrKind::Fixed(all) = &mut kernel.tiles[tile].addr {
                        all[element] = to;
                    }
                    let change = format!("{}[{element}] from {from:#x} to {to:#x}", data.name);
                    out.push(Mutant { change, moved: true, kernel });
                }
            }
        }
        out
    }

    /// Where an element may be moved to: onto each other one of the memory, halfway over it from both sides, between
    /// two addresses that the memory has, and over its end.
    fn places(&self, tile: Tile, element: usize, from: u64, hidden: &BTreeSet<Tile>) -> BTreeSet<u64> {
        let data = &self.kernel.tiles[tile];
        let loc = data.ty.loc;
        let (unit, end) = (align(&self.target, loc), capacity(&self.target, loc));
        let bytes = pitch(data, unit);
        let mut out = BTreeSet::from([from + unit / 2, end - bytes / 2 / unit * unit]);
        let neighbours = self.kernel.tiles.iter().filter(|(t, d)| d.ty.loc == loc && !hidden.contains(t));
        for (other, neighbour) in neighbours {
            let AddrKind::Fixed(all) = &neighbour.addr else { continue };
            for (_, &at) in all.iter().enumerate().filter(|&(e, _)| (other, e) != (tile, element)) {
                out.insert(at);
                out.insert(at + pitch(neighbour, unit) / 2 / unit * unit);
                out.extend(at.checked_sub(bytes / 2 / unit * unit));
            }
        }
        out.remove(&from);
        out
    }
}

fn regions(op: &Op) -> Vec<&Region> {
    match op {
        Op::For(f) => vec![&f.body],
        Op::If(i) => vec![&i.then, &i.els],
        Op::While(w) => vec![&w.head, &w.body],
        Op::Scope(s) => vec![&s.body],
        _ => Vec::new(),
    }
}

fn regions_mut(op: &mut Op) -> Vec<&mut Region> {
    match op {
        Op::For(f) => vec![&mut f.body],
        Op::If(i) => vec![&mut i.then, &mut i.els],
        Op::While(w) => vec![&mut w.head, &mut w.body],
        Op::Scope(s) => vec![&mut s.body],
        _ => Vec::new(),
    }
}

/// Synchronisations of a region and of those in it.
fn count(region: &[Stmt]) -> usize {
    let inner = |s: &Stmt| regions(&s.op).into_iter().map(|r| count(r)).sum::<usize>();
    region.iter().map(|s| usize::from(matches!(s.op, Op::Sync(_))) + inner(s)).sum()
}

/// Takes out the synchronisation after `left` others.
fn delete(region: &mut Region, left: &mut usize) -> Option<Stmt> {
    for at in 0..region.len() {
        if matches!(region[at].op, Op::Sync(_)) {
            if *left == 0 {
                return Some(region.remove(at));
            }
            *left -= 1;
        }
        for inner in regions_mut(&mut region[at].op) {
            if let Some(found) = delete(inner, left) {
                return Some(found);
            }
        }
    }
    None
}

/// Scratch tiles are the planner's business, wherever the author's are; so they are out of the way here.
fn hide_scratch(kernel: &mut Kernel, target: &Target) {
    let mut hidden = BTreeSet::new();
    scratch(&kernel.body, &mut hidden);
    let mut below: BTreeMap<&str, u64> = BTreeMap::new();
    for tile in hidden {
        let data = &mut kernel.tiles[tile];
        let end = below.entry(data.ty.loc.name()).or_insert_with(|| capacity(target, data.ty.loc) / 2);
        *end -= pitch(data, align(target, data.ty.loc));
        data.addr = AddrKind::Fixed(vec![*end]);
    }
}

fn scratch(region: &[Stmt], out: &mut BTreeSet<Tile>) {
    for stmt in region {
        if let Op::Inst(inst) = &stmt.op {
            out.extend(inst.scratch.iter().map(|t| t.tile));
        }
        regions(&stmt.op).into_iter().for_each(|r| scratch(r, out));
    }
}

/// Launches of programs whose own lines are about other things: small tiles, more iterations than buffers twice over.
const LAUNCHES: [(&str, &str); 2] = [
    (
        "language/double_buffer.tile",
        "\
// run: scale_flags interp BN=16 M=64 N=80 s=2.5 seed=1
// run: scale_ring  interp BN=16 M=64 N=80 s=2.5 seed=1
",
    ),
    (
        "../examples/schedules.tile",
        "\
// run: basic       interp BM=16 BN=16 BK=16 M=16 N=16 K=80 seed=1
// run: basic       interp BM=16 BN=16 BK=16 M=16 N=16 K=112 STAGES=3 seed=1
// run: pingpong    interp BM=16 BN=16 BK=16 M=16 N=80 K=48 seed=1
// run: cooperative interp BM=16 BN=16 BK=16 M=16 N=32 K=80 seed=1
",
    ),
];

/// The manual kernels of a file, physical, with the launches of its `// run:` lines. Runs of one instance are one
/// subject.
fn subjects(path: &Path, text: &str) -> Vec<Subject> {
    let mut out: BTreeMap<String, Subject> = BTreeMap::new();
    for run in runs_of(path, text) {
        run.first_launch(|kernel, target, launch| {
            if kernel.sync != SyncMode::Manual {
                return;
            }
            let plan = placement::plan(kernel, target).expect("it was placed before");
            let mut kernel = physical(kernel, &plan, target);
            hide_scratch(&mut kernel, target);
            let name = format!("{} {}", path.file_stem().unwrap_or_default().display(), kernel.name);
            let mut given = Given {
                tensors: launch.tensors.clone(),
                dims: launch.dims.clone(),
                scalars: launch.scalars.clone(),
                options: launch.options.clone(),
                want: Vec::new(),
            };
            let want = given.run(&kernel, target, Order::Program);
            given.want = want.unwrap_or_else(|code| panic!("{}: {code}", run.name));
            // The numbers of a line are defaults of its instance.
            let mut same = kernel.clone();
            same.scalars.iter_mut().for_each(|s| s.default = None);
            same.prologue.clear();
            let key = format!("{} {}", target.name, print(&same, Spans::Omit));
            let new = || Subject { name, target: target.clone(), kernel, launches: Vec::new() };
            out.entry(key).or_insert_with(new).launches.push(given);
        });
    }
    out.into_values().collect()
}

/// Numbers of one subject or of all.
#[derive(Default)]
struct Tally {
    deleted: usize,
    moved: usize,
    reported: usize,
    harmless: Vec<String>,
    different: Vec<String>,
}

fn judge(subject: &Subject) -> Tally {
    let mut tally = Tally::default();
    let as_it_is = subject.compiler(&subject.kernel).or_else(|| subject.interpreter(&subject.kernel));
    if let Some(verdict) = as_it_is {
        tally.different.push(format!("{} is not correct: {verdict}", subject.name));
        return tally;
    }
    for mutant in subject.mutants().into_iter().step_by(one_in(USUAL)) {
        let (compiler, interpreter) = (subject.compiler(&mutant.kernel), subject.interpreter(&mutant.kernel));
        let what = format!("{}: {}", subject.name, mutant.change);
        match mutant.moved {
            true => tally.moved += 1,
            false => tally.deleted += 1,
        }
        match (&compiler, &interpreter) {
            (Some(_), Some(_)) => tally.reported += 1,
            (None, None) => tally.harmless.push(what),
            _ => {
                let say = |v: &Verdict| v.clone().unwrap_or_else(|| "fine".to_owned());
                tally.different.push(format!(
                    "{what}\n    compiler: {}, interpreter: {}",
                    say(&compiler),
                    say(&interpreter)
                ));
            }
        }
    }
    tally
}

/// All subjects, on as many threads as there are.
fn judge_all(subjects: &[Subject]) -> Tally {
    let (next, all) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(subject) = subjects.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let one = judge(subject);
                    let mut all = all.lock().expect("no thread has panicked");
                    all.deleted += one.deleted;
                    all.moved += one.moved;
                    all.reported += one.reported;
                    all.harmless.extend(one.harmless);
                    all.different.extend(one.different);
                }
            });
        }
    });
    all.into_inner().expect("no thread has panicked")
}

/// The correct manual kernels, with launches.
fn all_subjects() -> Vec<Subject> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files: Vec<PathBuf> = std::fs::read_dir(root.join("hazards/correct"))
        .expect("the kernels")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|x| x == "tile"))
        .collect();
    files.sort();
    let read = |path: &Path| std::fs::read_to_string(path).expect("UTF-8");
    let mut all: Vec<Subject> = files.iter().flat_map(|path| subjects(path, &read(path))).collect();
    for (name, lines) in LAUNCHES {
        let path = root.join(name);
        let text = read(&path).replace("// run:", "// not here:");
        all.extend(subjects(&path, &format!("{text}\n{lines}")));
    }
    all
}

/// Kernels from which one synchronisation is left out and of which more than one error is told: the mutant, and the
/// errors.
const TOLD_MORE_THAN_ONCE: [(&str, usize); 0] = [];

/// One synchronisation left out is one mistake.
#[test]
fn one_left_out_synchronisation_is_one_error() {
    let (mut all, mut more) = (BTreeMap::<usize, usize>::new(), Vec::new());
    for subject in all_subjects() {
        for mutant in subject.mutants().into_iter().filter(|m| !m.moved).step_by(one_in(USUAL)) {
            let Err(found) = pipeline::place(mutant.kernel, &subject.target) else { continue };
            let errors: Vec<&Diagnostic> = found.iter().filter(|d| d.is_error()).collect();
            *all.entry(errors.len()).or_default() += 1;
            if errors.len() > 1 {
                let told: Vec<String> = errors.iter().map(|d| format!("{} {}", d.code, d.message)).collect();
                more.push((format!("{}: {}", subject.name, mutant.change), told));
            }
        }
    }
    let names: BTreeMap<String, usize> = more.iter().map(|(name, told)| (name.clone(), told.len())).collect();
    let listed: BTreeMap<String, usize> = TOLD_MORE_THAN_ONCE.iter().map(|(n, k)| ((*n).to_owned(), *k)).collect();
    let shown: Vec<String> = more.iter().map(|(name, told)| format!("{name}\n    {}", told.join("\n    "))).collect();
    println!("{all:?}");
    assert!(names == listed, "{} mutants with more than one error: {all:?}\n{}", more.len(), shown.join("\n"));
}

#[test]
fn the_compiler_and_the_interpreter_agree_on_every_mutant() {
    let mut all = all_subjects();
    // What takes longest begins first.
    all.sort_by_key(|s| std::cmp::Reverse(count(&s.kernel.body)));
    let subjects = all;
    assert!(subjects.len() >= 65, "only {} kernels", subjects.len());
    let mut tally = judge_all(&subjects);
    tally.harmless.sort();
    tally.different.sort();
    println!(
        "{} kernels: {} deletions, {} moves; {} reported by both, {} harmless:\n{}",
        subjects.len(),
        tally.deleted,
        tally.moved,
        tally.reported,
        tally.harmless.len(),
        tally.harmless.join("\n")
    );
    assert!(tally.different.is_empty(), "{} disagreements:\n{}", tally.different.len(), tally.different.join("\n"));
    let of = one_in(USUAL);
    assert!(tally.deleted >= 500 / of && tally.moved >= 1000 / of, "{} {}", tally.deleted, tally.moved);
}

//! From text to results in process: the front of the command line, the interpreter, machine code.

use ptoc_cpu::Vectors;
use ptoc_diagnostics::{Diagnostic, render};
use ptoc_driver::defs::Definition;
use ptoc_driver::session::{RepairOrigin, Session, Waiting};
use ptoc_ir::loops::Module;
use ptoc_isa::{Loc, Target};
use ptoc_passes::pipeline::Pipeline;
use ptoc_placement::PlacedKernel;
use ptoc_tensor::{DType, Tensor, scalar};
use std::fmt;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// A kernel after all passes, with machine code.
pub struct Built {
    /// Tile IR as the analysis made it.
    pub source: ptoc_ir::tile::Kernel,
    /// With checks and addresses.
    pub placed: PlacedKernel,
    pub target: Target,
    dims: Vec<String>,
    /// Names of the tensor arguments.
    arguments: Vec<String>,
    module: std::sync::Arc<Module>,
    /// At every width of vectors that the machine has, the widest first.
    code: Vec<ptoc_cpu::CompiledKernel>,
}

/// Why there is nothing to run.
pub struct Refused {
    pub codes: Vec<&'static str>,
    pub text: String,
}

impl fmt::Debug for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}\n{}", self.codes, self.text)
    }
}

/// What stopped a launch: the code and the message.
pub type Stop = (String, String);

fn session(target: &str, defs: &[(&str, &str)]) -> Session {
    let definitions: Vec<Definition> =
        defs.iter().map(|(n, v)| Definition { name: (*n).into(), value: (*v).into() }).collect();
    Session::new(target, &definitions).expect("a target that exists")
}

fn refused(session: Session) -> Refused {
    let found: Vec<Diagnostic> = session.diagnostics.into_sorted();
    let errors = found.iter().filter(|d| d.is_error());
    Refused {
        codes: errors.map(|d| d.code.as_str()).collect(),
        text: found.iter().map(|d| render::terminal(d, &session.sources, false, 120)).collect(),
    }
}

/// A kernel after all passes.
pub struct Middle {
    session: Session,
    /// Tile IR as the analysis made it.
    pub source: ptoc_ir::tile::Kernel,
    /// Names of the tensor arguments.
    arguments: Vec<String>,
    pub prepared: ptoc_passes::Prepared,
}

/// Compiles the only kernel of `text` as far as a back end begins, which wants this `pipeline`; unless given, the
/// target's own. Dimensions that size tiles are among `dims`, all others stay symbolic.
pub fn prepare(
    text: &str,
    target: &str,
    defs: &[(&str, &str)],
    dims: &[(&str, i64)],
    pipeline: Option<Pipeline>,
) -> Result<Middle, Refused> {
    let mut s = session(target, defs);
    s.pipeline = pipeline.unwrap_or(s.pipeline);
    let unit = s.load_text(Path::new("kernel.tile"), text.to_owned());
    if s.diagnostics.has_errors() {
        return Err(refused(s));
    }
    let entries = unit.entries();
    let [entry] = &entries[..] else { panic!("one kernel a text, and not {}\n{text}", entries.len()) };
    let Ok(mut bindings) = s.bindings(entry, &unit) else { return Err(refused(s)) };
    bindings.dims.extend(dims.iter().map(|(n, v)| ((*n).into(), *v)));
    let Some(instance) = s.instantiate(&unit, entry.id, &bindings, Waiting::IsError) else { return Err(refused(s)) };
    let source = instance.kernel.clone();
    let arguments = instance.tensors.iter().map(|t| t.name.to_string()).collect();
    let Some(prepared) = s.prepare(
        instance.kernel,
        &instance.debug,
        &RepairOrigin { unit: &unit, kernel: entry.id, bindings: &bindings },
    ) else {
        return Err(refused(s));
    };
    Ok(Middle { session: s, source, arguments, prepared })
}

/// Compiles the only kernel of `text` to machine code, as [`prepare`] takes it.
pub fn build(text: &str, target: &str, defs: &[(&str, &str)], dims: &[(&str, i64)]) -> Result<Built, Refused> {
    let Middle { session: mut s, source, arguments, prepared } = prepare(text, target, defs, dims, None)?;
    let ptoc_passes::Prepared { placed, module, .. } = prepared;
    let module = module.expect("a target of PTO's");
    let widths = [Vectors::Bits512, Vectors::Bits256, Vectors::Bits128].into_iter().filter(|v| ptoc_cpu::available(*v));
    // The widest is stored and loaded, as by two processes; the others are what was compiled.
    let stored = StoredOnce::default();
    let compiled = widths.enumerate().map(|(n, vectors)| {
        let options = ptoc_cpu::Options { vectors, ..Default::default() };
        let store = (n == 0).then_some((&stored as &dyn ptoc_cpu::CodeStore, "this build"));
        let fresh = ptoc_cpu::compile_or_load(&module, &options, store)?;
        if n > 0 || !stored.holds_any() {
            return Ok(fresh);
        }
        let loaded = ptoc_cpu::compile_or_load(&module, &options, store)?;
        assert!(stored.was_loaded(), "the key of equal code differs");
        assert_eq!((loaded.code_size(), loaded.nests()), (fresh.code_size(), fresh.nests()));
        Ok(loaded)
    });
    let code = match compiled.collect() {
        Ok(code) => code,
        Err(d) => {
            s.diagnostics.push(d);
            return Err(refused(s));
        }
    };
    let dims = source.dims.values().map(|d| d.name.to_string()).collect();
    Ok(Built { source, placed, target: s.target, dims, arguments, module, code })
}

/// Machine code of one kernel.
#[derive(Default)]
struct StoredOnce {
    code: Mutex<Option<(String, Vec<u8>)>>,
    loaded: AtomicBool,
}

impl StoredOnce {
    fn holds_any(&self) -> bool {
        self.code.lock().expect("no panic").is_some()
    }

    fn was_loaded(&self) -> bool {
        self.loaded.load(Ordering::Relaxed)
    }
}

impl ptoc_cpu::CodeStore for StoredOnce {
    fn load(&self, key: &str) -> Option<Vec<u8>> {
        let code = self.code.lock().expect("no panic");
        let found = code.as_ref().filter(|(known, _)| known == key).map(|(_, bytes)| bytes.clone());
        self.loaded.store(found.is_some(), Ordering::Relaxed);
        found
    }

    fn store(&self, key: &str, code: &[u8]) {
        *self.code.lock().expect("no panic") = Some((key.to_owned(), code.to_vec()));
    }
}

/// `ptoc check` of a text: codes of errors, sorted; and everything that was said.
pub fn check(text: &str, target: &str, defs: &[(&str, &str)]) -> Refused {
    let mut s = session(target, defs);
    let unit = s.load_text(Path::new("kernel.tile"), text.to_owned());
    let entries = unit.entries();
    s.check_definitions(&entries, &unit);
    for entry in &entries {
        ptoc_driver::check::check_entry(&mut s, &unit, entry);
    }
    refused(s)
}

/// What a call of the command line gives.
pub struct Outcome {
    pub status: u8,
    pub out: String,
    pub err: String,
}

/// Calls `ptoc` with these words.
pub fn command<S: AsRef<std::ffi::OsStr>>(words: &[S]) -> Outcome {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let words = words.iter().map(|w| w.as_ref().to_owned());
    let words = std::iter::once("ptoc".into()).chain(words);
    let status = ptoc_cli::execute(words, &mut ptoc_cli::io::Io::new(&mut out, &mut err));
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    Outcome { status, out: text(out), err: text(err) }
}

impl Built {
    /// The loop IR.
    pub fn module(&self) -> &Module {
        &self.module
    }

    fn dims(&self, dims: &[(&str, i64)]) -> Vec<i64> {
        let value = |name: &String| dims.iter().find(|(n, _)| n == name).map_or(0, |(_, v)| *v);
        self.dims.iter().map(value).collect()
    }

    /// Runs on the interpreter. `tensors` are all arguments, in order; the result is all of them afterwards.
    pub fn interpret(&self, dims: &[(&str, i64)], tensors: &[Tensor]) -> Result<Vec<Tensor>, Stop> {
        self.interpret_with(ptoc_interp::Options::default(), dims, tensors).map(|(results, _)| results)
    }

    /// The same, and what was not written.
    fn interpret_with(
        &self,
        options: ptoc_interp::Options,
        dims: &[(&str, i64)],
        tensors: &[Tensor],
    ) -> Result<(Vec<Tensor>, Vec<ptoc_interp::Unwritten>), Stop> {
        interpret(&self.placed.kernel, &self.target, options, self.dims(dims), tensors)
    }

    /// Machine code with the sanitizer says what the interpreter says, with one thread, and with two stops where that
    /// does; and what is known to be filled is. What differs, in words.
    pub fn sanitized(&self, dims: &[(&str, i64)], tensors: &[Tensor]) -> Result<(), String> {
        let options = ptoc_interp::Options { overlap: true, ..ptoc_interp::Options::default() };
        let want = self.interpret_with(options, dims, tensors);
        let mut kernel = self.placed.kernel.clone();
        let module = ptoc_lower::lower_watched(&mut kernel, &self.placed.placement, &self.target)
            .map_err(|errors| format!("it is not lowered to be watched: {errors:?}"))?;
        let code = ptoc_cpu::compile(&module, &ptoc_cpu::Options::default()).map_err(|d| d.message)?;
        let numbers = self.dims(dims);
        let none: Vec<Option<u64>> = kernel.scalars.iter().map(|_| None).collect();
        let Ok(values) = ptoc_interp::prologue(&kernel, &numbers, &none) else { return Ok(()) };
        let scalars: Vec<u64> = kernel.scalars.iter().map(|p| values[p.value.as_u32() as usize]).collect();
        let params: Vec<i64> = numbers.iter().copied().chain(scalars.iter().map(|&bits| bits as i64)).collect();
        for threads in [1, 2] {
            let mut after = tensors.to_vec();
            let args: Vec<_> = after.iter_mut().map(|t| ptoc_exec::TensorArg::new(t.bytes_mut())).collect();
            let memory: Vec<usize> = args.iter().map(|t| t.data.expose_provenance()).collect();
            let options = ptoc_interp::sanitize::Options {
                dims: &numbers,
                scalars: &scalars,
                tensors: &memory,
                storage: &[],
                capacity: Loc::ALL.into_iter().map(|loc| (loc, self.target.memory(loc).capacity)).collect(),
            };
            let sanitizer = ptoc_interp::sanitize::Sanitizer::new(&kernel, &options).map_err(|trap| trap.message)?;
            let launch = ptoc_exec::LaunchArgs { params: &params, tensors: &args, threads, print: None };
            // SAFETY: as in `execute_one`.
            let ended = unsafe { code.launch_watched(launch, Some(&sanitizer)) };
            let who = format!("the sanitizer with {threads} threads");
            match (&want, ended, sanitizer.finish()) {
                (Ok((want, unwritten)), Ok(()), Ok(holes)) => {
                    let differs = want.iter().zip(&after).find_map(|(want, got)| difference(want, got));
                    if let Some(differs) = differs {
                        return Err(format!("{who}: {differs}"));
                    }
                    if *unwritten != holes {
                        return Err(format!("{who} sees {holes:?}, the interpreter {unwritten:?}"));
                    }
                    let open = ptoc_checks::blocks::unfilled(&kernel, &ptoc_diagnostics::Budget::default());
                    if let Some(hole) = holes.iter().find(|hole| !open.contains(&hole.tensor)) {
                        return Err(format!("{hole:?} of a tensor that is said to be filled"));
                    }
                }
                (Err((code, message)), _, Err(trap)) => {
                    let same = trap.code.as_str() == code && (threads > 1 || trap.message == *message);
                    if !same {
                        return Err(format!(
                            "{who}: {} {}, the interpreter: {code} {message}",
                            trap.code, trap.message
                        ));
                    }
                }
                // A check of the code's own.
                (Err(_), Err(_), Ok(_)) => {}
                (want, ended, found) => {
                    let want = want.as_ref().map(|_| ());
                    return Err(format!("{who}: {ended:?}, {found:?}; the interpreter: {want:?}"));
                }
            }
        }
        Ok(())
    }

    /// Runs the machine code of every width; their results are the same, or this panics.
    pub fn execute(&self, dims: &[(&str, i64)], tensors: &[Tensor], threads: usize) -> Result<Vec<Tensor>, Stop> {
        let mut runs = self.code.iter().map(|code| self.execute_one(code, dims, tensors, threads));
        let first = runs.next().expect("every machine has a width");
        for (n, other) in runs.enumerate() {
            let same = match (&first, &other) {
                (Ok(one), Ok(two)) => one.iter().zip(two).find_map(|(a, b)| difference(a, b)),
                (Err(one), Err(two)) if one == two => None,
                (one, two) => Some(format!("{:?} and {:?}", one.as_ref().err(), two.as_ref().err())),
            };
            assert_eq!(same, None, "the widest vectors and number {} of the narrower ones differ", n + 1);
        }
        first
    }

    /// Runs the machine code of every width with each array between pages that nobody may touch.
    pub fn execute_guarded(
        &self,
        dims: &[(&str, i64)],
        tensors: &[Tensor],
        threads: usize,
    ) -> Result<Vec<Tensor>, Stop> {
        let run = |code| {
            let mut pages: Vec<Guarded> = tensors.iter().map(Guarded::new).collect();
            let args: Vec<_> = pages.iter_mut().map(|p| ptoc_exec::TensorArg::new(p.bytes())).collect();
            self.launch(code, dims, &args, threads)?;
            let after = tensors.iter().zip(&mut pages);
            Ok(after.map(|(t, p)| Tensor::from_bytes(t.dtype(), t.shape(), p.bytes()).expect("as long")).collect())
        };
        let mut runs = self.code.iter().map(run);
        let first: Result<Vec<Tensor>, Stop> = runs.next().expect("every machine has a width");
        for other in runs {
            let same = match (&first, &other) {
                (Ok(one), Ok(two)) => one.iter().zip(two).all(|(a, b)| difference(a, b).is_none()),
                (one, two) => one.as_ref().err() == two.as_ref().err(),
            };
            assert!(same, "widths differ: {:?} and {:?}", first.as_ref().err(), other.as_ref().err());
        }
        first
    }

    fn execute_one(
        &self,
        code: &ptoc_cpu::CompiledKernel,
        dims: &[(&str, i64)],
        tensors: &[Tensor],
        threads: usize,
    ) -> Result<Vec<Tensor>, Stop> {
        let mut after = tensors.to_vec();
        let args: Vec<ptoc_exec::TensorArg> =
            after.iter_mut().map(|t| ptoc_exec::TensorArg::new(t.bytes_mut())).collect();
        self.launch(code, dims, &args, threads)?;
        Ok(after)
    }

    fn launch(
        &self,
        code: &ptoc_cpu::CompiledKernel,
        dims: &[(&str, i64)],
        args: &[ptoc_exec::TensorArg],
        threads: usize,
    ) -> Result<(), Stop> {
        let dims = self.dims(dims);
        let none: Vec<Option<u64>> = self.placed.kernel.scalars.iter().map(|_| None).collect();
        let stop = |trap: ptoc_interp::Trap| (trap.code.as_str().to_owned(), trap.message);
        let values = ptoc_interp::prologue(&self.placed.kernel, &dims, &none).map_err(stop)?;
        let scalars = self.placed.kernel.scalars.iter().map(|p| values[p.value.as_u32() as usize] as i64);
        let params: Vec<i64> = dims.iter().copied().chain(scalars).collect();
        let launch = ptoc_exec::LaunchArgs { params: &params, tensors: args, threads, print: None };
        // SAFETY: `args` point to arrays that live as long; their shapes are those of the arguments for these
        // dimensions, and no two are the same.
        match unsafe { code.launch(launch) } {
            Ok(()) => Ok(()),
            Err(e) => Err(match ptoc_driver::backend::diagnose(e) {
                Ok(d) => (d.code.as_str().to_owned(), d.message),
                Err(failure) => {
                    let row = &self.module.checks[failure.check as usize];
                    let check = &self.placed.kernel.checks[ptoc_ir::tile::CheckId::from_u32(row.id)];
                    (check.code.as_str().to_owned(), format!("{} {:?}", check.message, failure.args))
                }
            }),
        }
    }
}

impl Middle {
    /// Runs on the interpreter, as [`Built::interpret`].
    pub fn interpret(&self, dims: &[(&str, i64)], tensors: &[Tensor]) -> Result<Vec<Tensor>, Stop> {
        self.interpret_with(ptoc_interp::Options::default(), dims, tensors)
    }

    /// The same where the target's matrix unit may be used.
    pub fn interpret_on_unit(&self, dims: &[(&str, i64)], tensors: &[Tensor]) -> Result<Vec<Tensor>, Stop> {
        let numerics = ptoc_opt::matrix_unit::numerics(&self.prepared.placed.kernel, &self.session.target);
        let options = ptoc_interp::Options {
            matrix_unit: numerics.sums,
            exponential: numerics.exponential,
            rewritten: true,
            ..Default::default()
        };
        let kernel = numerics.kernel.as_ref().unwrap_or(&self.prepared.placed.kernel);
        self.interpret_kernel(kernel, options, dims, tensors)
    }

    fn interpret_with(
        &self,
        options: ptoc_interp::Options,
        dims: &[(&str, i64)],
        tensors: &[Tensor],
    ) -> Result<Vec<Tensor>, Stop> {
        self.interpret_kernel(&self.prepared.placed.kernel, options, dims, tensors)
    }

    fn interpret_kernel(
        &self,
        kernel: &ptoc_ir::tile::Kernel,
        options: ptoc_interp::Options,
        dims: &[(&str, i64)],
        tensors: &[Tensor],
    ) -> Result<Vec<Tensor>, Stop> {
        let value = |name: &str| dims.iter().find(|(n, _)| *n == name).map_or(0, |(_, v)| *v);
        let numbers = kernel.dims.values().map(|d| value(&d.name)).collect();
        interpret(kernel, &self.session.target, options, numbers, tensors).map(|(results, _)| results)
    }
}

/// Runs a kernel on the interpreter: all arguments afterwards, and what was not written.
fn interpret(
    kernel: &ptoc_ir::tile::Kernel,
    target: &Target,
    options: ptoc_interp::Options,
    dims: Vec<i64>,
    tensors: &[Tensor],
) -> Result<(Vec<Tensor>, Vec<ptoc_interp::Unwritten>), Stop> {
    let args = tensors.iter().map(|t| {
        let shape = t.shape().iter().map(|&n| n as u64).collect();
        ptoc_interp::TensorArg { dtype: t.dtype(), shape, data: t.bytes().to_vec() }
    });
    let capacity = Loc::ALL.into_iter().map(|loc| (loc, target.memory(loc).capacity)).collect();
    let mut launch = ptoc_interp::InterpreterLaunch {
        tensors: args.collect(),
        dims,
        scalars: kernel.scalars.iter().map(|_| None).collect(),
        options: ptoc_interp::Options { capacity, ..options },
        print: &mut |_| {},
    };
    let stop = |trap: ptoc_interp::Trap| (trap.code.as_str().to_owned(), trap.message);
    let outcome = ptoc_interp::run(kernel, &mut launch).map_err(stop)?;
    let results = launch.tensors.iter().map(|t| {
        let shape: Vec<usize> = t.shape.iter().map(|&n| n as usize).collect();
        Tensor::from_bytes(t.dtype, &shape, &t.data).expect("as long as before")
    });
    Ok((results.collect(), outcome.unwritten))
}

/// An array at the end of its pages, between pages without access.
struct Guarded {
    pages: region::Allocation,
    start: usize,
    len: usize,
}

impl Guarded {
    fn new(tensor: &Tensor) -> Guarded {
        let (page, len) = (region::page::size(), tensor.bytes().len());
        let inner = region::page::ceil(len as *const u8) as usize;
        let mut pages = region::alloc(inner + 2 * page, region::Protection::READ_WRITE).expect("memory");
        let base = pages.as_mut_ptr::<u8>();
        for guard in [base, base.wrapping_add(page + inner)] {
            // SAFETY: these pages are ours, and nothing lies on them.
            unsafe { region::protect(guard, page, region::Protection::NONE) }.expect("a page");
        }
        let mut out = Guarded { pages, start: page + inner - len, len };
        out.bytes().copy_from_slice(tensor.bytes());
        out
    }

    fn bytes(&mut self) -> &mut [u8] {
        let at = self.pages.as_mut_ptr::<u8>().wrapping_add(self.start);
        // SAFETY: the bytes between the guards are readable, writable and initialised (pages start as zeros).
        unsafe { std::slice::from_raw_parts_mut(at, self.len) }
    }
}

/// The first element in which two tensors differ, NaN being equal to NaN.
pub fn difference(one: &Tensor, two: &Tensor) -> Option<String> {
    if one.bytes() == two.bytes() && one.shape() == two.shape() {
        return None;
    }
    if (one.dtype(), one.shape()) != (two.dtype(), two.shape()) {
        return Some(format!("{} and {}", one.signature(), two.signature()));
    }
    let d = one.dtype();
    let nan = |bits| d.is_float() && scalar::is_nan(d, bits);
    let differs = |i: &usize| {
        let (a, b) = (one.get_bits(*i), two.get_bits(*i));
        a != b && !(nan(a) && nan(b))
    };
    let at = (0..one.len()).find(differs)?;
    let show = |t: &Tensor| scalar::format_bits(d, t.get_bits(at));
    let count = (0..one.len()).filter(differs).count();
    Some(format!(
        "{count} of {} elements of {d}, first {:?}: {} ({:#x}) and {} ({:#x})",
        one.len(),
        one.unravel(at),
        show(one),
        one.get_bits(at),
        show(two),
        two.get_bits(at)
    ))
}

/// Runs everywhere; all must agree on every argument. The interpreter's results, or what stopped it.
pub fn agree(
    built: &Built,
    dims: &[(&str, i64)],
    tensors: &[Tensor],
    threads: &[usize],
) -> Result<Result<Vec<Tensor>, Stop>, String> {
    let want = match built.interpret(dims, tensors) {
        Ok(want) => want,
        Err(stop) => return Ok(Err(stop)),
    };
    for &n in threads {
        let got = built.execute(dims, tensors, n).map_err(|(code, m)| {
            format!("machine code with {n} threads stops with {code}: {m}; the interpreter does not")
        })?;
        for ((name, want), got) in built.arguments.iter().zip(&want).zip(&got) {
            if let Some(d) = difference(want, got) {
                return Err(format!("`{name}` differs between interp and cpu ({n} threads): {d}"));
            }
        }
    }
    Ok(Ok(want))
}

/// A repeatable sequence of numbers.
pub struct Noise(u64);

impl Noise {
    pub fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    /// SplitMix64.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
}

/// What an array holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Content {
    /// Corners of the type among ordinary numbers: NaN, infinities, both zeros, subnormals, extremes.
    Wild,
    /// Small numbers, of which sums and products do not overflow.
    Tame,
}

/// An array of noise.
pub fn noise(dtype: DType, shape: &[usize], content: Content, seed: u64) -> Tensor {
    let mut rng = Noise::new(seed);
    let bits = |_| {
        let r = rng.next();
        let small = (r >> 40 & 0xff) as i64 - 128;
        if dtype == DType::Bool {
            return r & 1;
        }
        match content {
            Content::Tame if dtype.is_float() => scalar::bits_from_f64(dtype, small as f64 / 64.0),
            Content::Tame => {
                let small = if dtype.is_signed_int() { small / 8 } else { small.abs() / 8 };
                scalar::bits_from_i128(dtype, small.into())
            }
            Content::Wild if dtype.is_float() => {
                let special = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.5];
                match r % 8 {
                    0 => scalar::bits_from_f64(dtype, special[(r >> 8) as usize % special.len()]),
                    // Any bits but those of a NaN: a payload may come through or not.
                    1 => {
                        let bits = r >> 16 & (u64::MAX >> (64 - 8 * dtype.size()));
                        if scalar::is_nan(dtype, bits) { 0 } else { bits }
                    }
                    2 => 1 + (r >> 16 & 7),
                    3 | 4 => scalar::bits_from_f64(dtype, small as f64 / 8.0),
                    _ => scalar::bits_from_f64(dtype, (r >> 20) as f64 / (1u64 << 40) as f64 - 8.0),
                }
            }
            Content::Wild => match r % 6 {
                0 => scalar::bits_from_i128(dtype, i128::from(r >> 8 & 3) - 1),
                1 => {
                    let (lo, hi) = scalar::integer_range(dtype).expect("an integer");
                    scalar::bits_from_i128(dtype, if r & 64 == 0 { lo } else { hi })
                }
                2 | 3 => scalar::bits_from_i128(dtype, small.into()),
                _ => r >> 16 & (u64::MAX >> (64 - 8 * dtype.size())) | (r << 48 & mask64(dtype)),
            },
        }
    };
    Tensor::from_fn(dtype, shape, bits).expect("small")
}

fn mask64(dtype: DType) -> u64 {
    if dtype.size() == 8 { 0xffff << 48 } else { 0 }
}

//! Builds small kernels and runs them three times: tile IR on the interpreter, loop IR on its evaluator (which checks
//! every address), and the machine code made of it.

use ptoc_checks::capacity::NoSource;
use ptoc_diagnostics::{Budget, FileId, Span};
use ptoc_interp::{InterpreterLaunch, Options, TensorArg};
use ptoc_ir::loops::eval::{self, Memory};
use ptoc_ir::loops::{self, Module};
use ptoc_ir::scalar;
use ptoc_ir::tile::verify::verify;
use ptoc_ir::tile::{
    AddrKind, Builder, Inst, InstAttrs, Kernel, Op, Operand, TensorData, TensorDir, TensorId, Tile, TileData, TileRef,
    Value, ViewRef,
};
use ptoc_isa::{Loc, Order, Target, TileType, lookup};
use ptoc_passes::Prepared;
use ptoc_passes::pipeline::{Pipeline, Request, pipeline_to_run};
use ptoc_tensor::DType;

pub fn at(n: u32) -> Span {
    Span::new(FileId(0), n, n + 1)
}

pub fn a5() -> &'static Target {
    Target::builtin("a5").unwrap()
}

/// A kernel under construction: a builder with shorthands. Every statement gets a span of its own.
pub struct K {
    pub b: Builder,
    next: u32,
}

impl K {
    pub fn new(name: &str) -> K {
        K { b: Builder::new(name, at(0), "a5"), next: 10 }
    }

    pub fn span(&mut self) -> Span {
        self.next += 10;
        at(self.next)
    }

    pub fn c(&mut self, n: i64) -> Value {
        self.b.index_const(n)
    }

    pub fn dim(&mut self, name: &str) -> Value {
        let span = self.span();
        self.b.dim(name, span)
    }

    pub fn tensor(&mut self, name: &str, dtype: DType, dir: TensorDir, shape: &[Value]) -> TensorId {
        let span = self.span();
        let (shape, name) = (shape.to_vec(), name.into());
        self.b.tensor(TensorData {
            name,
            dtype,
            dir,
            shape,
            optional: false,
            disjoint: false,
            stored: None,
            place: None,
            span,
        })
    }

    pub fn tile(&mut self, name: &str, loc: Loc, dtype: DType, (rows, cols): (u32, u32), order: Order) -> Tile {
        self.place(name, TileType { loc, dtype, rows, cols, order, layout: None }, AddrKind::Auto, 1, 1)
    }

    pub fn place(&mut self, name: &str, ty: TileType, addr: AddrKind, count: u32, stages: u32) -> Tile {
        let span = self.span();
        let name = name.into();
        let tile = self.b.tile(TileData { name, ty, count, stages, addr, hidden: false, span });
        self.b.emit(Op::Alloc { tile }, span);
        tile
    }

    /// The whole tensor of this shape, row-major.
    pub fn view(&mut self, tensor: TensorId, rows: Value, cols: Value) -> ViewRef {
        let (zero, one) = (self.c(0), self.c(1));
        ViewRef { tensor, offset: zero, shape: vec![rows, cols], strides: vec![cols, one] }
    }

    pub fn r(&self, tile: Tile, valid: (Value, Value)) -> TileRef {
        self.b.tile_ref(tile, valid)
    }

    pub fn inst(&mut self, name: &str, operands: Vec<Operand>, attrs: InstAttrs) {
        let span = self.span();
        let instr = lookup(name).unwrap_or_else(|| panic!("{name} is in the table"));
        self.b.inst(Inst { instr, operands, scratch: Vec::new(), attrs }, span);
    }

    pub fn tiles(&mut self, name: &str, tiles: &[TileRef]) {
        self.inst(name, tiles.iter().map(|t| Operand::Tile(*t)).collect(), InstAttrs::default());
    }

    pub fn load(&mut self, tile: TileRef, view: ViewRef) {
        self.inst("TLOAD", vec![Operand::Tile(tile), Operand::View(view)], InstAttrs::default());
    }

    pub fn store(&mut self, view: ViewRef, tile: TileRef) {
        self.inst("TSTORE", vec![Operand::View(view), Operand::Tile(tile)], InstAttrs::default());
    }

    pub fn finish(self) -> Kernel {
        let kernel = self.b.finish();
        if let Err(errors) = verify(&kernel) {
            panic!("{kernel}\n{:?}", errors);
        }
        kernel
    }
}

/// Arguments of a run.
#[derive(Default, Clone)]
pub struct Args {
    pub dims: Vec<i64>,
    pub scalars: Vec<u64>,
    pub tensors: Vec<TensorArg>,
}

pub fn tensor(dtype: DType, shape: &[u64], bits: impl IntoIterator<Item = u64>) -> TensorArg {
    let n: u64 = shape.iter().product();
    let data = bits.into_iter().take(n as usize).flat_map(|b| b.to_le_bytes()[..dtype.size()].to_vec()).collect();
    TensorArg { dtype, shape: shape.to_vec(), data }
}

/// Bits that reach the corners of a dtype, repeatable.
pub fn noise(dtype: DType, seed: u64) -> impl Iterator<Item = u64> {
    let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0u64..).map(move |n| {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        let ty = ptoc_ir::tile::Ty::D(dtype);
        if dtype == DType::Bool {
            return x >> 20 & 1;
        }
        if !dtype.is_float() {
            let bits = if n % 5 == 0 { x >> 40 & 3 } else { x };
            return bits & scalar::mask(ty);
        }
        match n % 11 {
            3 => scalar::from_f32(dtype, f32::INFINITY),
            5 => scalar::from_f32(dtype, f32::NAN),
            7 => scalar::from_f32(dtype, -0.0),
            8 => scalar::from_f32(dtype, (x >> 60) as f32 - 7.5),
            9 => x & scalar::mask(ty),
            _ => scalar::from_f32(dtype, ((x >> 40) as f32 / 8388608.0 - 1.0) * 20.0),
        }
    })
}

/// Values without infinities and NaN, of moderate size.
pub fn tame(dtype: DType, seed: u64) -> impl Iterator<Item = u64> {
    noise(DType::I32, seed).map(move |n| {
        let n = n as u32 as i32;
        if dtype.is_float() { scalar::from_f32(dtype, n as f32 / 1e9) } else { noise_int(dtype, n) }
    })
}

fn noise_int(dtype: DType, n: i32) -> u64 {
    scalar::from_int(ptoc_ir::tile::Ty::D(dtype), i128::from(n >> 16))
}

/// How a compiled run ends.
#[derive(Debug, PartialEq, Eq)]
pub enum End {
    /// The data of all tensors.
    Done(Vec<Vec<u8>>),
    /// The code of the failed check.
    Failed(String),
}

pub fn run_interpreter(kernel: &Kernel, args: &Args) -> End {
    let mut launch = InterpreterLaunch {
        tensors: args.tensors.clone(),
        dims: args.dims.clone(),
        scalars: args.scalars.iter().map(|s| Some(*s)).collect(),
        options: Options::default(),
        print: &mut |_| {},
    };
    match ptoc_interp::run(kernel, &mut launch) {
        Ok(_) => End::Done(launch.tensors.into_iter().map(|t| t.data).collect()),
        Err(trap) => End::Failed(format!("{} {}", trap.code, trap.message)),
    }
}

pub fn run_lowered(prepared: &Prepared, args: &Args) -> End {
    run_lowered_with(prepared, args, &|_, _| String::new())
}

/// As [`run_lowered`], with the whole message of a failed check.
pub fn run_lowered_and_tell(prepared: &Prepared, args: &Args) -> End {
    run_lowered_with(prepared, args, &|text, args| {
        let fill = |text: String, (n, x): (usize, &i64)| text.replace(&format!("{{{n}}}"), &x.to_string());
        format!(" {}", args.iter().enumerate().fold(text.to_owned(), fill))
    })
}

fn run_lowered_with(prepared: &Prepared, args: &Args, tell: &dyn Fn(&str, &[i64]) -> String) -> End {
    let module: &Module = prepared.module.as_ref().expect("a target of PTO's");
    let mut memory =
        Memory { tensors: args.tensors.iter().map(buffer).collect(), arena: vec![0xab; module.arena as usize] };
    let params: Vec<i64> = args.dims.iter().copied().chain(args.scalars.iter().map(|s| *s as i64)).collect();
    let failed = |stop: eval::EvalStop| match stop {
        eval::EvalStop::Check { check, args } => {
            let id = module.checks[check as usize].id;
            let data = prepared.placed.kernel.checks.values().nth(id as usize).expect("a row of the table");
            End::Failed(format!("{}{}", data.code, tell(&data.message, &args)))
        }
        other => panic!("{other:?}\n{}", loops::text::print(module, false)),
    };
    let mut prints = Vec::new();
    let extents = match eval::run(module, &module.launch, &params, &mut memory, &mut prints, 1 << 20) {
        Ok(extents) => extents,
        Err(stop) => return failed(stop),
    };
    // Where blocks join, three at a time.
    let joins = |d: usize| module.spread.contains(&(d as u32));
    let spans: Vec<i64> = (0..extents.len()).map(|d| if joins(d) { 3 } else { 1 }).collect();
    let calls: Vec<i64> = extents.iter().zip(&spans).map(|(e, s)| (e.max(&0) + s - 1) / s).collect();
    for n in 0..calls.iter().product() {
        let mut rest = n;
        let mut coords: Vec<i64> = calls
            .iter()
            .zip(&spans)
            .rev()
            .map(|(calls, span)| {
                let c = rest % calls;
                rest /= calls;
                c * span
            })
            .collect();
        coords.reverse();
        let lengths: Vec<i64> = match module.spread.is_empty() {
            true => Vec::new(),
            false => coords.iter().zip(&extents).zip(&spans).map(|((c, e), s)| (e - c).min(*s)).collect(),
        };
        let params: Vec<i64> = params.iter().copied().chain(coords).chain(lengths).collect();
        if let Err(stop) = eval::run(module, &module.block, &params, &mut memory, &mut prints, 1 << 28) {
            return failed(stop);
        }
    }
    End::Done(memory.tensors)
}

/// Compiles for `target`, or shows why not.
pub fn compile(kernel: &Kernel, target: &Target) -> Prepared {
    // Elements that meet are for the interpreter to find.
    let budget = Budget::default();
    let request = Request::new(&NoSource, &budget, Pipeline::of(target));
    let prepared = match pipeline_to_run(kernel.clone(), target, request) {
        Ok(prepared) => prepared,
        Err(errors) => panic!("{kernel}\n{errors:#?}"),
    };
    if let Err(errors) = verify(&prepared.placed.kernel) {
        panic!("{}\n{errors:?}", prepared.placed);
    }
    if let Err(errors) = loops::verify(prepared.module.as_ref().expect("a target of PTO's")) {
        panic!("{}\n{errors:#?}", loops::text::print(prepared.module.as_ref().expect("a target of PTO's"), false));
    }
    prepared
}

/// Both ways must end with the same bits (any NaN equals any other).
pub fn agree(kernel: &Kernel, target: &Target, args: &Args) {
    let prepared = compile(kernel, target);
    let (want, got) = (run_interpreter(kernel, args), run_lowered(&prepared, args));
    let show =
        || format!("{kernel}\n{}", loops::text::print(prepared.module.as_ref().expect("a target of PTO's"), false));
    let (End::Done(want), End::Done(got)) = (&want, &got) else {
        panic!("{want:?}\n{got:?}\n{}", show());
    };
    compare(args, want, got, &show);
    // So does the same kernel about bytes.
    let bytes = ptoc_placement::physical(&prepared.placed.kernel, &prepared.placed.placement, target);
    if let Err(errors) = verify(&bytes) {
        panic!("{bytes}\n{errors:?}");
    }
    match run_interpreter(&bytes, args) {
        End::Done(physical) => compare(args, want, &physical, &|| format!("{bytes}")),
        end => panic!("{end:?}\n{bytes}"),
    }
    // Machine code takes longer to make than to test: a third of the kernels, always the same ones.
    let letters: u64 = kernel.to_string().bytes().map(u64::from).sum();
    if letters.is_multiple_of(3) {
        // One of the widths that the machine has.
        let widths = ptoc_cpu::Vectors::NAMES.map(|(_, v)| v).into_iter().filter(|v| ptoc_cpu::available(*v));
        let widths: Vec<_> = widths.collect();
        let machine = run_machine(&prepared, args, widths[letters as usize / 3 % widths.len()]);
        compare(args, got, &machine, &show);
    }
}

/// The machine code's results. Only for what the evaluator has run without leaving its memory.
fn run_machine(prepared: &Prepared, args: &Args, vectors: ptoc_cpu::Vectors) -> Vec<Vec<u8>> {
    let options = ptoc_cpu::Options { vectors, ..ptoc_cpu::Options::default() };
    let kernel =
        ptoc_cpu::compile(prepared.module.as_ref().expect("a target of PTO's"), &options).expect("loop IR compiles");
    let mut data: Vec<Vec<u8>> = args.tensors.iter().map(buffer).collect();
    let params: Vec<i64> = args.dims.iter().copied().chain(args.scalars.iter().map(|s| *s as i64)).collect();
    let tensors: Vec<_> = data.iter_mut().map(|d| ptoc_exec::TensorArg::new(d)).collect();
    let launch = ptoc_exec::LaunchArgs { params: &params, tensors: &tensors, threads: 1, print: None };
    // SAFETY: the buffers have the shapes that the kernel was made for, and the evaluator found no access outside.
    unsafe { kernel.launch(launch) }.expect("the evaluator came to the end");
    data
}

fn buffer(t: &TensorArg) -> Vec<u8> {
    let size = t.shape.iter().product::<u64>() as usize * t.dtype.size();
    if t.data.is_empty() { vec![0xcd; size] } else { t.data.clone() }
}

fn compare(args: &Args, want: &[Vec<u8>], got: &[Vec<u8>], show: &dyn Fn() -> String) {
    for ((arg, want), got) in args.tensors.iter().zip(want).zip(got) {
        let size = arg.dtype.size();
        for (n, (w, g)) in want.chunks(size).zip(got.chunks(size)).enumerate() {
            let bits = |x: &[u8]| x.iter().rev().fold(0u64, |a, b| a << 8 | u64::from(*b));
            let (w, g) = (bits(w), bits(g));
            let nan = |x| arg.dtype.is_float() && scalar::to_f32(arg.dtype, x).is_nan();
            if w != g && !(nan(w) && nan(g)) {
                let text = |x| scalar::display(ptoc_ir::tile::Ty::D(arg.dtype), x);
                panic!("element {n}: wanted {} ({w:#x}), got {} ({g:#x})\n{}", text(w), text(g), show());
            }
        }
    }
}

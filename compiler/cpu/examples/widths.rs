//! Element-wise bodies at each width of vectors, on tiles that stay in the first cache, and the time to compile them.
//!
//! `cargo run --release -p ptoc-cpu --example widths [--asm]`
//!
//! Widths take turns, and each figure is a median over the turns, in the thread's own processor time.

use ptoc_cpu::{CompiledKernel, Options, Vectors, available, compile};
use ptoc_diagnostics::FileId;
use ptoc_exec::{LaunchArgs, TensorArg};
use ptoc_ir::loops::text;
use ptoc_isa::math::{self, MathOp, Ty};
use ptoc_isa::{CmpOp, UnOp};
use std::fmt::Write as _;
use std::ops::Range;
use std::time::{Duration, Instant};

const WIDTHS: [Vectors; 3] = [Vectors::Bits128, Vectors::Bits256, Vectors::Bits512];
/// Rows and columns of a tile.
const ROWS: i64 = 16;
const COLS: i64 = 64;

/// Time of this thread on a processor.
fn now() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the function only writes to the record that it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A published program on the register `x`, results in registers from `first` on; gives the last one.
fn program(op: UnOp, x: u32, first: u32, out: &mut String) -> u32 {
    let program = math::program(op).expect("it is published");
    let mut regs: Vec<u32> = Vec::new();
    for (n, op) in program.ops.iter().enumerate() {
        let r = |id: &math::Id| format!("r{}", regs[id.index()]);
        let two = |name: &str, a, b| format!("{name} {}, {}", r(a), r(b));
        let one = |name: &str, a| format!("{name} {}", r(a));
        let text = match op {
            MathOp::Second => unreachable!("a function of one argument"),
            MathOp::Arg => {
                regs.push(x);
                continue;
            }
            MathOp::F32(c) => format!("const {:#x}", c.to_bits()),
            MathOp::I32(c) => format!("const {c}"),
            MathOp::Add(a, b) | MathOp::IAdd(a, b) => two("add", a, b),
            MathOp::Sub(a, b) | MathOp::ISub(a, b) => two("sub", a, b),
            MathOp::Mul(a, b) => two("mul", a, b),
            MathOp::Div(a, b) => two("div", a, b),
            MathOp::Min(a, b) => two("min", a, b),
            MathOp::Max(a, b) => two("max", a, b),
            MathOp::Scale(a, b) => two("scale", a, b),
            MathOp::Sqrt(a) => one("sqrt", a),
            MathOp::Fma(a, b, c) => format!("fma {}, {}, {}", r(a), r(b), r(c)),
            MathOp::Rint(a) => one("rint", a),
            MathOp::ToInt(a) => one("f_to_i32", a),
            MathOp::ToFloat(a) => one("i_to_f", a),
            MathOp::Bits(a) | MathOp::FromBits(a) => one("bits", a),
            MathOp::And(a, b) => two("and", a, b),
            MathOp::Or(a, b) => two("or", a, b),
            MathOp::Xor(a, b) => two("xor", a, b),
            MathOp::Shl(a, b) => two("shl", a, b),
            MathOp::Shr(a, b) => two("shr", a, b),
            MathOp::Cmp(op, a, b) => {
                let name = match op {
                    CmpOp::Eq => "eq",
                    CmpOp::Ne => "ne",
                    CmpOp::Lt => "lt",
                    CmpOp::Le => "le",
                    CmpOp::Gt => "gt",
                    CmpOp::Ge => "ge",
                };
                two(name, a, b)
            }
            MathOp::Select { cond, a, b } => format!("select {}, {}, {}", r(cond), r(a), r(b)),
        };
        let ty = match program.types[n] {
            Ty::F32 => "f32",
            Ty::I32 => "i32",
            Ty::Bool => "bool",
        };
        let dst = first + n as u32;
        let _ = writeln!(out, "r{dst}: {ty} = {text}");
        regs.push(dst);
    }
    regs[regs.len() - 1]
}

/// Loop IR of a body that computes `r{result}` from `r100` (tensor 0) and `r101` (tensor 1).
fn module(body: &str, result: u32, ty: &str) -> String {
    let size = if ty == "f32" { 4 } else { 2 };
    let row = COLS * size;
    format!(
        "kernel \"bench\"\ntensor \"A\"\ntensor \"B\"\ntensor \"C\"\narena 0\nlaunch \"l\" (r0: i64) {{\n}}\n\
         block \"b\" (r0: i64) {{\nlabels 2\nr1: i64 = const 0\nr2: i64 = const {ROWS}\nr3: i64 = const {COLS}\n\
         r4: i64 = const {row}\nfor l0 r5: i64 in r1..r0 step 1 {{\nfor l1 r6: i64 in r1..r2 step 1 {{\n\
         r7: i64 = mul r6, r4\nlanes r8: i64 in r3 {{\nr100: f32 = load {ty} t0[r7, stride {size}]\n\
         r101: f32 = load {ty} t1[r7, stride {size}]\n{body}store {ty} t2[r7, stride {size}], r{result}\n}}\n}}\n}}\n\
         }}\n"
    )
}

fn bodies() -> Vec<(&'static str, String, &'static str)> {
    let mut all = Vec::new();
    let mut add = |name, body: &str, result, ty| all.push((name, module(body, result, ty), ty));
    add("a + b", "r110: f32 = add r100, r101\n", 110, "f32");
    let chain = "r110: f32 = mul r100, r101\nr111: f32 = add r110, r100\nr112: f32 = const 0.5\n\
                 r113: f32 = mul r111, r112\nr114: f32 = const 0.0\nr115: f32 = max r113, r114\n\
                 r116: f32 = sub r115, r101\nr117: f32 = min r116, r100\n";
    add("chain of 6", chain, 117, "f32");
    add("chain of 6", chain, 117, "f16");
    add("chain of 6", chain, 117, "bf16");
    for (name, op) in [("exp", UnOp::Exp), ("tanh", UnOp::Tanh), ("erf", UnOp::Erf)] {
        let mut body = String::new();
        let result = program(op, 100, 200, &mut body);
        add(name, &body, result, "f32");
    }
    // 0.5 x (1 + erf(x / sqrt 2)) + b
    let mut body = "r110: f32 = const 0.70710677\nr111: f32 = mul r100, r110\n".to_owned();
    let erf = program(UnOp::Erf, 111, 200, &mut body);
    let _ = write!(
        body,
        "r112: f32 = const 1.0\nr113: f32 = add r{erf}, r112\nr114: f32 = const 0.5\nr115: f32 = mul r100, r114\n\
         r116: f32 = fma r113, r115, r101\n"
    );
    add("bias + GELU(erf)", &body, 116, "f32");
    all
}

/// A copy on a cache line's boundary, as tiles are.
fn aligned(bytes: &[u8], storage: &mut Vec<u8>) -> std::ops::Range<usize> {
    *storage = vec![0; bytes.len() + 64];
    let from = storage.as_ptr().align_offset(64);
    storage[from..from + bytes.len()].copy_from_slice(bytes);
    from..from + bytes.len()
}

fn run(kernel: &CompiledKernel, tensors: &mut [Vec<u8>], places: &[Range<usize>], turns: i64) -> f64 {
    let args: Vec<TensorArg> =
        tensors.iter_mut().zip(places).map(|(t, at)| TensorArg::new(&mut t[at.clone()])).collect();
    let launch = LaunchArgs { params: &[turns], tensors: &args, threads: 1, print: None };
    let begin = now();
    // SAFETY: the modules above stay inside these tensors.
    unsafe { kernel.launch(launch) }.expect("no checks");
    (now() - begin).as_secs_f64() / turns as f64
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let asm = std::env::args().any(|a| a == "--asm");
    println!("{:<24} {:>22} {:>24} {:>22}", "", "GB/s at 128, 256, 512", "ratio to 128", "compile us");
    for (name, source, ty) in bodies() {
        let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
        let (mut kernels, mut compile_times) = (Vec::new(), Vec::new());
        for vectors in WIDTHS.into_iter().filter(|v| available(*v)) {
            let options = Options { vectors, text: asm, ..Options::default() };
            let mut times = Vec::new();
            let mut kernel = None;
            for _ in 0..40 {
                let start = Instant::now();
                kernel = Some(compile(&module, &options).unwrap_or_else(|e| panic!("{e:?}")));
                times.push(start.elapsed().as_secs_f64() * 1e6);
            }
            let kernel = kernel.expect("compiled above");
            if let Some(text) = kernel.text() {
                println!("{}\n{}", text.clif, ptoc_cpu::listing::print(&text.code, |_| String::new()));
            }
            kernels.push(kernel);
            compile_times.push(median(times));
        }
        let size = if ty == "f32" { 4 } else { 2 };
        let count = ROWS * COLS;
        let data = |seed: i64| -> Vec<u8> {
            let number = |n: i64| ((n * 7919 + seed) % 1000) as f32 / 250.0 - 2.0;
            (0..count)
                .flat_map(|n| match ty {
                    "f32" => number(n).to_le_bytes().to_vec(),
                    "f16" => half::f16::from_f32(number(n)).to_le_bytes().to_vec(),
                    _ => half::bf16::from_f32(number(n)).to_le_bytes().to_vec(),
                })
                .collect()
        };
        let mut tensors = [const { Vec::new() }; 3];
        let sources = [data(1), data(2), vec![0; (count * size) as usize]];
        let places: Vec<_> = sources.iter().zip(&mut tensors).map(|(s, t)| aligned(s, t)).collect();
        let turns = 20_000;
        let mut times = vec![Vec::new(); kernels.len()];
        for _ in 0..15 {
            for (kernel, times) in kernels.iter().zip(&mut times) {
                times.push(run(kernel, &mut tensors, &places, turns));
            }
        }
        let seconds: Vec<f64> = times.into_iter().map(median).collect();
        let bytes = (3 * count * size) as f64;
        let rates: Vec<String> = seconds.iter().map(|s| format!("{:.1}", bytes / s / 1e9)).collect();
        let ratios: Vec<String> = seconds.iter().map(|s| format!("{:.2}", seconds[0] / s)).collect();
        let compile: Vec<String> = compile_times.iter().map(|us| format!("{us:.0}")).collect();
        println!(
            "{:<24} {:>22} {:>24} {:>22}",
            format!("{name}, {ty}"),
            rates.join(" "),
            ratios.join(" "),
            compile.join(" ")
        );
    }
}

//! Generic copies against memcpy of the same bytes, on one thread: medians of interleaved runs.
//!
//! `cargo run --release -p ptoc-passes --example copies [name]`

use ptoc_cpu::{CompiledKernel, Options, compile};
use ptoc_diagnostics::{FileId, Span};
use ptoc_exec::{LaunchArgs, TensorArg};
use ptoc_ir::tile::{Affine, Builder, Copy, Elem, NestAccess, TensorData, TensorDir, TensorId, Ty, Value};
use ptoc_isa::Target;
use ptoc_passes::pipeline;
use ptoc_tensor::DType;
use std::time::Instant;

/// A copy between two tensors: extents, and strides of both sides in elements.
struct Case {
    name: &'static str,
    dtype: DType,
    extents: Vec<i64>,
    dst: Vec<i64>,
    src: Vec<i64>,
}

/// Row-major strides of these extents, listed for the axes in another order.
fn strides(extents: &[i64], order: &[usize]) -> Vec<i64> {
    let mut out = vec![0; extents.len()];
    let mut next = 1;
    for &a in order.iter().rev() {
        out[a] = next;
        next *= extents[a];
    }
    out
}

/// Axes `extents`, stored in order `src` and to be stored in order `dst` (slowest first).
fn permuted(name: &'static str, dtype: DType, extents: &[i64], dst: &[usize], src: &[usize]) -> Case {
    Case { name, dtype, extents: extents.into(), dst: strides(extents, dst), src: strides(extents, src) }
}

/// The kernel, with numbers known to the compiler or not.
fn build(case: &Case, known: bool) -> (CompiledKernel, Vec<i64>) {
    let span = Span::new(FileId(0), 0, 1);
    let mut b = Builder::new("copy", span, "a5");
    let mut params = Vec::new();
    let mut number = |b: &mut Builder, n: i64, dims: &mut Vec<(i64, Value)>| {
        if known || n == 1 {
            return b.index_const(n);
        }
        if let Some((_, v)) = dims.iter().find(|(m, _)| *m == n) {
            return *v;
        }
        let v = b.scalar_param(format!("n{n}"), Ty::Index, span);
        params.push(n);
        dims.push((n, v));
        v
    };
    let mut dims = Vec::new();
    let count: i64 = case.extents.iter().product();
    let size = number(&mut b, count, &mut dims);
    let tensor = |b: &mut Builder, name: &str| -> TensorId {
        let (name, shape) = (name.into(), vec![size]);
        let dir = TensorDir::InOut;
        b.tensor(TensorData {
            name,
            dtype: case.dtype,
            dir,
            shape,
            optional: false,
            disjoint: false,
            stored: None,
            place: None,
            span,
        })
    };
    let (x, y) = (tensor(&mut b, "x"), tensor(&mut b, "y"));
    let mut numbers =
        |b: &mut Builder, all: &[i64]| -> Vec<Value> { all.iter().map(|&n| number(b, n, &mut dims)).collect() };
    let (extents, dst, src) = (numbers(&mut b, &case.extents), numbers(&mut b, &case.dst), numbers(&mut b, &case.src));
    b.begin_body();
    let start = b.index_const(0);
    let side = |tensor, strides| NestAccess::Tensor {
        tensor,
        elem: Elem::Whole(case.dtype),
        at: Affine { start, strides },
        swizzle: None,
        tables: Vec::new(),
    };
    let (dst, src) = (side(y, dst), side(x, src));
    b.copy(Copy { extents, dst, src, guards: Vec::new(), fill: None, covers: false }, span);
    let target = Target::builtin("a5").expect("a5 is built in");
    let prepared = pipeline(b.finish(), target).unwrap_or_else(|e| panic!("{e:?}"));
    if std::env::var_os("SHOW").is_some() {
        println!("{}", ptoc_ir::loops::text::print(prepared.module.as_ref().expect("a target of PTO's"), false));
    }
    (compile(prepared.module.as_ref().expect("a target of PTO's"), &Options::default()).expect("it compiles"), params)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    let only = std::env::args().nth(1);
    let f32s = DType::F32;
    let cases = [
        permuted("contiguous", f32s, &[4096, 4096], &[0, 1], &[0, 1]),
        permuted("transpose f32", f32s, &[4096, 4096], &[1, 0], &[0, 1]),
        permuted("transpose f32, odd", f32s, &[4099, 4091], &[1, 0], &[0, 1]),
        permuted("transpose f16", DType::F16, &[4096, 8192], &[1, 0], &[0, 1]),
        permuted("transpose u8", DType::U8, &[8192, 8192], &[1, 0], &[0, 1]),
        permuted("transpose i64", DType::I64, &[2048, 4096], &[1, 0], &[0, 1]),
        permuted("transpose pairs", f32s, &[2048, 4096, 2], &[1, 0, 2], &[0, 1, 2]),
        permuted("transpose fours", f32s, &[2048, 2048, 4], &[1, 0, 2], &[0, 1, 2]),
        permuted("transpose eights", f32s, &[1024, 2048, 8], &[1, 0, 2], &[0, 1, 2]),
        permuted("NCHW to NHWC, C = 64", f32s, &[16, 64, 112, 112], &[0, 2, 3, 1], &[0, 1, 2, 3]),
        permuted("NHWC to NCHW, C = 64", f32s, &[16, 64, 112, 112], &[0, 1, 2, 3], &[0, 2, 3, 1]),
        permuted("NCHW to NHWC, C = 3", f32s, &[32, 3, 384, 384], &[0, 2, 3, 1], &[0, 1, 2, 3]),
        permuted("NHWC to NCHW, C = 3", f32s, &[32, 3, 384, 384], &[0, 1, 2, 3], &[0, 2, 3, 1]),
        permuted("NHWC to NCHW, C = 3, u8", DType::U8, &[64, 3, 512, 512], &[0, 1, 2, 3], &[0, 2, 3, 1]),
        permuted("(a, b, c) to (c, b, a)", f32s, &[256, 256, 256], &[2, 1, 0], &[0, 1, 2]),
        permuted("(a, b, c) to (b, a, c)", f32s, &[512, 512, 64], &[1, 0, 2], &[0, 1, 2]),
    ];
    println!("{:<28} {:>9} {:>9} {:>7}  {:>9} {:>7}", "copy", "memcpy ms", "known ms", "ratio", "launch ms", "ratio");
    for case in cases.iter().filter(|c| only.as_ref().is_none_or(|o| c.name.contains(o.as_str()))) {
        let bytes = case.extents.iter().product::<i64>() as usize * case.dtype.size();
        let kernels = [true, false].map(|known| build(case, known));
        let mut x: Vec<u8> = (0..bytes).map(|i| ((i * 7) >> 3) as u8).collect();
        let mut y = vec![0u8; bytes];
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..11 {
            let start = Instant::now();
            y.copy_from_slice(&x);
            times[0].push(start.elapsed().as_secs_f64());
            for (n, (kernel, params)) in kernels.iter().enumerate() {
                let args = [TensorArg::new(&mut x), TensorArg::new(&mut y)];
                let start = Instant::now();
                let launch = LaunchArgs { params, tensors: &args, threads: 1, print: None };
                // SAFETY: both tensors have the elements that the nest goes over.
                unsafe { kernel.launch(launch) }.expect("no checks");
                times[1 + n].push(start.elapsed().as_secs_f64());
            }
        }
        let [base, known, unknown] = times.map(|t| median(t) * 1e3);
        println!(
            "{:<28} {base:>9.2} {known:>9.2} {:>6.0}%  {unknown:>9.2} {:>6.0}%",
            case.name,
            100.0 * base / known,
            100.0 * base / unknown
        );
    }
}

//! Arrays in, arrays out, through the command line: what the numbers are held to, and that nothing about them or about
//! diagnostics depends on chance.

use crate::engine::{Noise, Outcome, command};
use ptoc_tensor::{DType, Tensor, npy, scalar};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder with a kernel and arrays.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new(text: &str) -> Bench {
        let bench = Bench { folder: tempfile::tempdir().expect("a folder") };
        std::fs::write(bench.path("k.tile"), text).expect("written");
        bench
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn put(&self, name: &str, tensor: &Tensor) {
        std::fs::write(self.path(name).with_extension("npy"), npy::write(tensor)).expect("written");
    }

    /// `ptoc run` with these arrays; gives the output `y`.
    #[track_caller]
    fn run(&self, flags: &[&str], inputs: &[(&str, &Tensor)], out: DType) -> Tensor {
        let mut words = vec!["run".to_owned(), self.path("k.tile").display().to_string()];
        words.extend(flags.iter().map(|f| (*f).to_owned()));
        for (name, tensor) in inputs {
            self.put(name, tensor);
            words.extend(["--in".into(), format!("{name}={}", self.path(name).with_extension("npy").display())]);
        }
        words.extend(["--out".into(), format!("y={}", self.path("y.npy").display())]);
        let outcome = command(&words);
        assert_eq!(outcome.status, 0, "{}{}", outcome.out, outcome.err);
        let file = std::fs::read(self.path("y.npy")).expect("written");
        npy::read(&file, Some(out)).expect("an array")
    }
}

fn f32s(n: usize, seed: u64, of: impl Fn(&mut Noise) -> f32) -> Vec<f32> {
    let mut rng = Noise::new(seed);
    (0..n).map(|_| of(&mut rng)).collect()
}

/// In -1..1, with all 24 bits.
fn unit(rng: &mut Noise) -> f32 {
    (rng.next() >> 39) as f32 / (1u64 << 24) as f32 - 1.0
}

/// Of any size, corners among them.
fn any(rng: &mut Noise) -> f32 {
    let r = rng.next();
    match r % 16 {
        0 => [0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 1.0, f32::MAX, f32::MIN_POSITIVE]
            [(r >> 8) as usize % 8],
        1 => f32::from_bits(1 + (r >> 40) as u32 % 0x7f_ffff),
        2..=5 => f32::from_bits((r >> 32) as u32),
        _ => unit(rng) * [1.0, 10.0, 88.0, 1000.0][(r >> 8) as usize % 4],
    }
}

/// How many f32 numbers lie between two; 0 for two NaN.
fn ulps(a: f32, b: f32) -> u64 {
    let ordered = |x: f32| {
        let bits = i64::from(x.to_bits());
        if bits < 1 << 31 { bits } else { (1 << 31) - bits }
    };
    match (a.is_nan(), b.is_nan()) {
        (true, true) => 0,
        (false, false) => ordered(a).abs_diff(ordered(b)),
        _ => u64::MAX,
    }
}

const MAP: &str = "kernel k(x: in f32[M, N], y: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let v = Vec(x.tile(i, j));
    TSTORE(y.tile(i, j), RESULT);
}
";

const SCALARS: &str = "kernel k(x: in f32[M, N], y: out f32[M, N]) {
    grid (r in 0..M, j in tiles(N, 64));
    for c in j {
        let v = x[r, c];
        y[r, c] = RESULT;
    }
}
";

/// Element-wise functions are within 4 units in the last place of the f64 result, on any numbers, on both backends.
#[test]
fn elementwise_f32_is_within_4_ulp() {
    type F = fn(f64) -> f64;
    let tiles: [(&str, F); 8] = [
        ("exp(v)", f64::exp),
        ("log(v)", f64::ln),
        ("sqrt(v)", f64::sqrt),
        ("rsqrt(v)", |x| 1.0 / x.sqrt()),
        ("recip(v)", |x| 1.0 / x),
        ("3.0 / v", |x| 3.0 / x),
        ("v / 0.7", |x| x / f64::from(0.7f32)),
        ("abs(v)", f64::abs),
    ];
    let scalars: [(&str, F); 5] =
        [("exp(v)", f64::exp), ("log(v)", f64::ln), ("tanh(v)", f64::tanh), ("sin(v)", f64::sin), ("cos(v)", f64::cos)];
    let all = tiles.iter().map(|f| (MAP, f)).chain(scalars.iter().map(|f| (SCALARS, f)));
    for (n, (text, (result, exact))) in all.enumerate() {
        let bench = Bench::new(&text.replace("RESULT", result));
        let periodic = matches!(*result, "sin(v)" | "cos(v)");
        let numbers = f32s(33 * 129, n as u64, |rng| if periodic { unit(rng) * 1000.0 } else { any(rng) });
        let x = Tensor::from_slice(&[33, 129], &numbers).expect("an array");
        let mut bits = BTreeSet::new();
        for backend in ["cpu", "interp"] {
            let y = bench.run(&["--backend", backend, "--threads", "2"], &[("x", &x)], DType::F32);
            let y = y.as_slice::<f32>().expect("f32");
            for (&x, &got) in numbers.iter().zip(y) {
                let want = exact(f64::from(x)) as f32;
                assert!(ulps(got, want) <= 4, "{result} of {x:e} on {backend} is {got:e}, not {want:e}");
            }
            bits.insert(y.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<u32>>());
        }
        assert_eq!(bits.len(), 1, "{result} differs between the backends");
    }
}

/// All 65536 numbers of f16 (and of bf16 where it computes): rounded results, off by at most the last place, and exact
/// where the result is one rounding of an exact one.
#[test]
fn halves_are_within_their_rounding() {
    type F = fn(f64) -> f64;
    let cases: [(&str, DType, &str, F, u64); 11] = [
        ("a2a3", DType::F16, "exp(v)", f64::exp, 1),
        ("a2a3", DType::F16, "log(v)", f64::ln, 1),
        ("a2a3", DType::F16, "rsqrt(v)", |x| 1.0 / x.sqrt(), 1),
        ("a2a3", DType::F16, "sqrt(v)", f64::sqrt, 0),
        ("a2a3", DType::F16, "recip(v)", |x| 1.0 / x, 0),
        ("a2a3", DType::F16, "v / 3.0", |x| x / 3.0, 0),
        (
            "a2a3",
            DType::F16,
            "v * 0.75 + 1.5",
            |x| scalar::bits_to_f64(DType::F16, scalar::bits_from_f64(DType::F16, x * 0.75)) + 1.5,
            0,
        ),
        ("a2a3", DType::F16, "f16(f32(v))", |x| x, 0),
        ("a5", DType::BF16, "v * 0.75", |x| x * 0.75, 1),
        ("a5", DType::BF16, "v + 1.5", |x| x + 1.5, 0),
        ("a5", DType::BF16, "bf16(f32(v) * 1.0)", |x| x, 0),
    ];
    for (target, dtype, result, exact, allowed) in cases {
        let text = MAP.replace("f32[", &format!("{dtype}[")).replace("RESULT", result);
        let bench = Bench::new(&text);
        let x = Tensor::from_fn(dtype, &[256, 256], |i| i as u64).expect("an array");
        let y = bench.run(&["--target", target], &[("x", &x)], dtype);
        let ordered = |bits: u64| if bits < 0x8000 { bits as i64 } else { 0x8000 - bits as i64 };
        for i in 0..x.len() {
            let want = scalar::bits_from_f64(dtype, exact(x.get_f64(i)));
            let got = y.get_bits(i);
            let nan = |bits| scalar::is_nan(dtype, bits);
            let near =
                nan(got) && nan(want) || !nan(got) && !nan(want) && ordered(got).abs_diff(ordered(want)) <= allowed;
            assert!(near, "{result} of {dtype} {:#06x} is {got:#06x}, not {want:#06x}", i);
        }
    }
}

const GEMM: &str = "kernel k<type T = f32, type A = f32, const BK = 64>(a: in T[M, K], b: in T[K, N], y: out A[M, N]) {
    grid (m in tiles(M, 32), n in tiles(N, 32));
    let acc = tile Acc<A, m, n>;
    acc = ZERO;
    for k in tiles(K, BK) { TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n))); }
    TSTORE(y.tile(m, n), acc);
}
";

/// K = 4096: within 1e-5 of the f64 result's norm in f32, exact in i8.
#[test]
fn long_products() {
    let (m, n, k) = (37, 41, 4096);
    let bench = Bench::new(&GEMM.replace("ZERO", "0.0"));
    let (a, b) = (f32s(m * k, 1, unit), f32s(k * n, 2, unit));
    let tensors =
        (Tensor::from_slice(&[m, k], &a).expect("an array"), Tensor::from_slice(&[k, n], &b).expect("an array"));
    let y = bench.run(&["--threads", "2"], &[("a", &tensors.0), ("b", &tensors.1)], DType::F32);
    let (mut error, mut norm) = (0.0, 0.0);
    for i in 0..m {
        for j in 0..n {
            let want: f64 = (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum();
            error += (y.get_f64(i * n + j) - want).powi(2);
            norm += want * want;
        }
    }
    assert!(error.sqrt() <= 1e-5 * norm.sqrt(), "off by {:e} of the norm", (error / norm).sqrt());
    // Another size of block is another kernel, but the same chain of multiply-adds.
    let other = bench.run(&["-D", "BK=32", "--threads", "1"], &[("a", &tensors.0), ("b", &tensors.1)], DType::F32);
    assert_eq!(y, other, "k ascends whatever the blocks are");

    let bench = Bench::new(&GEMM.replace("ZERO", "0"));
    let int = |shape: &[usize], seed| {
        let mut rng = Noise::new(seed);
        Tensor::from_fn(DType::I8, shape, |_| rng.next() & 0xff).expect("an array")
    };
    let (a, b) = (int(&[m, k], 3), int(&[k, n], 4));
    let y = bench.run(&["-D", "T=i8", "-D", "A=i32"], &[("a", &a), ("b", &b)], DType::I32);
    for i in 0..m {
        for j in 0..n {
            let want: i128 = (0..k).map(|l| a.get_i128(i * k + l) * b.get_i128(l * n + j)).sum();
            assert_eq!(y.get_i128(i * n + j), want, "[{i}, {j}]");
        }
    }
}

/// Counters that all blocks share give the same counts in whatever order the blocks run.
#[test]
fn integer_atomics_are_deterministic() {
    let bench = Bench::new(
        "kernel k(v: in i32[N], y: inout i32[7, 16]) {
    grid (i in tiles(N, 8));
    for r in i {
        let b = index(v[r]) % 16;
        atomic_add(y[0, b], v[r]);
        atomic_max(y[1, b], v[r]);
        atomic_min(y[2, b], v[r]);
        atomic_and(y[3, b], v[r]);
        atomic_or(y[4, b], v[r]);
        atomic_xor(y[5, b], v[r]);
        atomic_add(y[6, 0], 1);
    }
}
",
    );
    let mut rng = Noise::new(7);
    let values: Vec<i32> = (0..5003).map(|_| rng.next() as i32).collect();
    let start: Vec<i32> = (0..112).map(|_| rng.next() as i32).collect();
    let mut want = start.clone();
    for &v in &values {
        let b = v.rem_euclid(16) as usize;
        let ops: [fn(i32, i32) -> i32; 6] =
            [i32::wrapping_add, i32::max, i32::min, |a, b| a & b, |a, b| a | b, |a, b| a ^ b];
        for (k, op) in ops.into_iter().enumerate() {
            want[16 * k + b] = op(want[16 * k + b], v);
        }
    }
    want[96] = want[96].wrapping_add(values.len() as i32);
    let v = Tensor::from_slice(&[values.len()], &values).expect("an array");
    let y = Tensor::from_slice(&[7, 16], &start).expect("an array");
    for threads in ["1", "2", "4", "4", "4"] {
        let got = bench.run(&["--threads", threads], &[("v", &v), ("y", &y)], DType::I32);
        assert_eq!(got.as_slice::<i32>().expect("i32"), want, "{threads} threads");
    }
    let got = bench.run(&["--backend", "interp"], &[("v", &v), ("y", &y)], DType::I32);
    assert_eq!(got.as_slice::<i32>().expect("i32"), want);
}

/// Float atomics run in block order on one thread: as the interpreter.
#[test]
fn float_atomics_on_one_thread_run_in_block_order() {
    let bench = Bench::new(
        "kernel k(v: in f32[N], y: inout f32[1]) {
    grid (i in tiles(N, 8));
    for r in i { atomic_add(y[0], v[r]); }
}
",
    );
    let v = Tensor::from_slice(&[1001], &f32s(1001, 9, unit)).expect("an array");
    let y = Tensor::zeros(DType::F32, &[1]).expect("an array");
    let run = |flags: &[&str]| bench.run(flags, &[("v", &v), ("y", &y)], DType::F32);
    assert_eq!(run(&["--threads", "1"]), run(&["--backend", "interp"]));
}

/// Results of whole kernels: the same sums of bytes with 1, 2 and 3 threads, and on the interpreter.
#[test]
fn outputs_do_not_depend_on_threads() {
    let calls = [
        "examples/softmax.tile softmax_long -D M=20 -D N=300",
        "examples/gemm.tile gemm_bias_act -D M=70 -D N=130 -D K=65",
        "examples/attention.tile attention -D M=33 -D N=40 -D H=2",
        "examples/gather.tile gather -D R=20 -D C=70 -D P=33",
        "tests/language/rmsnorm.tile rmsnorm -D M=13 -D N=600",
        "tests/language/linear.tile linear -D M=70 -D N=20 -D K=70",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    for call in calls {
        let mut words: Vec<String> = call.split_whitespace().map(str::to_owned).collect();
        words[0] = root.join(&words[0]).display().to_string();
        let mut seen = BTreeSet::new();
        for flags in [["--threads", "1"], ["--threads", "2"], ["--threads", "3"], ["--backend", "interp"]] {
            let mut words: Vec<String> = std::iter::once("run".to_owned()).chain(words.clone()).collect();
            words.extend(flags.map(str::to_owned));
            words.extend(["--random", "5", "--json"].map(str::to_owned));
            let Outcome { status, out, err } = command(&words);
            assert_eq!(status, 0, "{words:?}\n{err}");
            let report: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            seen.insert(report["outputs"].to_string());
        }
        assert_eq!(seen.len(), 1, "{call}: {seen:#?}");
        assert!(seen.iter().all(|s| s.contains("sha256")), "{seen:?}");
    }
}

fn tiles_below(folder: &Path, out: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            tiles_below(&path, out);
        } else if path.extension().is_some_and(|e| e == "tile") {
            out.push(path);
        }
    }
}

/// The same program and target give the same codes, order and spans; and those are in the order
/// of the source.
#[test]
fn diagnostics_are_deterministic() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository");
    let mut files = Vec::new();
    for folder in ["tests/ui", "tests/language", "examples"] {
        tiles_below(&root.join(folder), &mut files);
    }
    assert!(files.len() > 100);
    let mut reports = 0;
    for path in files {
        for target in ["a2a3", "kirin9030"] {
            let name = path.display().to_string();
            let words = ["check", &name, "--target", target, "--message-format", "json"];
            let (one, two) = (command(&words), command(&words));
            assert_eq!((one.status, &one.out, &one.err), (two.status, &two.out, &two.err), "{name} on {target}");
            let mut last = (0, 0);
            for line in one.err.lines() {
                let d: serde_json::Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
                reports += 1;
                let start = &d["span"]["start"];
                if d["file"].as_str() != Some(&name) || start.is_null() {
                    continue;
                }
                let place = (start["line"].as_u64().expect("a line"), start["column"].as_u64().expect("a column"));
                assert!(place >= last, "{name} on {target}: {place:?} after {last:?}\n{}", one.err);
                last = place;
            }
        }
    }
    assert!(reports > 200, "{reports}");
}

/// An unknown target lists those that exist.
#[test]
fn an_unknown_target_lists_those_that_exist() {
    let bench = Bench::new("kernel k(x: in f32[M]) { grid (i in tiles(M, 16)); }\n");
    let file = bench.path("k.tile").display().to_string();
    for command_name in ["check", "run", "emit"] {
        let outcome = command(
            &[command_name, &file, "--target", "a4", "--stage", "ir"][..if command_name == "emit" { 6 } else { 4 }],
        );
        assert!(outcome.status != 0, "{command_name}");
        for name in ["a2a3", "a5", "kirin9030", "kirinx90"] {
            assert!(outcome.err.contains(name), "{command_name}: {}", outcome.err);
        }
    }
}

/// Programs that once went wrong: their `// run:` and `// check:` lines pass.
#[test]
fn programs_that_once_went_wrong() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let outcome = command(&["test".to_owned(), folder.display().to_string()]);
    assert_eq!(outcome.status, 0, "{}{}", outcome.out, outcome.err);
    assert!(outcome.out.lines().count() > 2, "{}", outcome.out);
}

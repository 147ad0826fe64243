//! `--exact`: products of f16 and bf16 on processors with a matrix unit, and without it.

use super::Sandbox;

const PRODUCT: &str = "\
kernel product<type T = bf16, const BM = 64, const BK = 64>(A: in T[M, K], B: in T[K, N], C: out f32[M, N])
{
    grid (m in tiles(M, BM), n in tiles(N, BM));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(K, BK) {
        TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n)));
    }
    TSTORE(C.tile(m, n), acc);
}
";

/// Sizes that the compiler knows, so that no block of the grid is shorter than the others.
const KNOWN: &str = "\
kernel known<type T = bf16>(A: in T[128, 128], B: in T[128, 256], C: out f32[128, 256])
{
    grid (m in tiles(128, 64), n in tiles(256, 64));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(128, 64) {
        TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n)));
    }
    TSTORE(C.tile(m, n), acc);
}
";

const K: usize = 200;

/// With the flag the bits are the interpreter's; without it they are where `spec/numerics.md` says that they may be.
#[test]
fn bits_and_their_bound() {
    let s = Sandbox::new();
    s.file("k.tile", PRODUCT);
    for (ty, parts) in [("bf16", 1), ("f16", 4)] {
        let run = |how: &str| {
            let args = format!(
                "run k.tile product -D T={ty} -D M=150 -D N=96 -D K={K} --random 5 --out C=c.npy --backend {how}"
            );
            let output = s.command(&args).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let c = s.read("c.npy");
            let floats = c.bytes().chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
            floats.collect::<Vec<f32>>()
        };
        let (want, exact, fast) = (run("interp"), run("cpu --exact"), run("cpu"));
        let bits = |c: &[f32]| c.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
        assert_eq!(bits(&want), bits(&exact), "{ty}");
        // Random inputs are in [-1, 1), so the sum of magnitudes is at most K; both may be off by as much.
        let roundings = (parts * K.div_ceil(32) + 16 + K) as f32;
        let bound = roundings * (K as f32) * 2f32.powi(-24) * 1.001;
        for (n, (x, y)) in want.iter().zip(&fast).enumerate() {
            assert!((x - y).abs() <= bound, "{ty}, {n}: {x} and {y}");
        }
    }
}

/// The number of threads decides how many blocks a call computes, and the sanitizer runs each step on its own: neither
/// changes a bit, whether the processor has a matrix unit or not, also where parts are too small for it to pay.
#[test]
fn bits_do_not_depend_on_threads() {
    let s = Sandbox::new();
    s.file("k.tile", PRODUCT);
    let odd = [[1, 1, 64], [3, 17, 17], [17, 65, 100], [65, 65, 65], [128, 128, 64], [200, 200, 128], [129, 1, 200]];
    let long = [[5, 513, 65], [65, 200, 513], [513, 513, 64]];
    s.file("known.tile", KNOWN);
    let run = |args: &str| {
        let output = s.command(&format!("run {args} --random 5 --out C=c.npy")).output().unwrap();
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        s.read("c.npy").bytes().to_vec()
    };
    let alike = |args: &str, ways: &[&str]| {
        let one = run(&format!("{args} --threads 1"));
        for way in ways {
            assert!(run(&format!("{args} {way}")) == one, "{args}: {way}");
        }
    };
    for ty in ["bf16", "f16"] {
        for [m, n, k] in odd {
            for (b, bk) in [(64, 64), (128, 64), (64, 48)] {
                let args = format!("k.tile product -D T={ty} -D BM={b} -D BK={bk} -D M={m} -D N={n} -D K={k}");
                alike(&args, &["--threads 2", "--threads 16", "--threads 1 --sanitize", "--threads 3 --sanitize"]);
            }
        }
        for [m, n, k] in long {
            for b in [64, 128] {
                let args = format!("k.tile product -D T={ty} -D BM={b} -D M={m} -D N={n} -D K={k}");
                alike(&args, &["--threads 2", "--threads 3", "--threads 16"]);
            }
        }
        alike(&format!("known.tile known -D T={ty}"), &["--threads 3", "--threads 16", "--threads 2 --sanitize"]);
    }
}

/// On a GPU's target the interpreter adds as tensor cores do, to the bit, unless `--exact` is said; `emit` shows which
/// code that is, and why a kernel is not on them.
#[test]
fn tensor_cores() {
    let s = Sandbox::new();
    s.file("k.tile", PRODUCT);
    s.file("small.tile", PRODUCT.replace("const BM = 64", "const BM = 48"));
    let run = |how: &str| {
        let args =
            format!("run k.tile product -D M=70 -D N=40 -D K={K} --random 5 --out C=c.npy --backend interp {how}");
        let output = s.command(&args).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let c = s.read("c.npy");
        c.bytes().chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<u32>>()
    };
    let (chain, exact, unit) = (run(""), run("--target sm90 --exact"), run("--target sm90"));
    assert_eq!(chain, exact);
    assert_ne!(chain, unit);
    for (x, y) in chain.iter().zip(&unit) {
        let (x, y) = (f32::from_bits(*x), f32::from_bits(*y));
        assert!((x - y).abs() <= (K as f32) * (K + K.div_ceil(16) * 4) as f32 * 2f32.powi(-24), "{x} and {y}");
    }
    let emit = |args: &str| {
        let output = s.command(&format!("emit {args} --target sm90 --stage ptx")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(emit("k.tile").contains("wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16"));
    assert!(!emit("k.tile --exact").contains("wgmma"));
    let text = emit("small.tile");
    let why = "// Products are chains of multiply-adds, not on the tensor cores: a block has 48 rows,";
    assert!(text.starts_with(why) && !text.contains("wgmma"), "{text}");
}

//! `--exact`: products of f16 and bf16 on processors with a matrix unit, and without it.

use super::Sandbox;

const PRODUCT: &str = "\
kernel product<type T = bf16>(A: in T[M, K], B: in T[K, N], C: out f32[M, N])
{
    grid (m in tiles(M, 64), n in tiles(N, 64));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(K, 64) {
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

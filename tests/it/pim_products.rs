//! Products of matrices on units in memory: which operand lies in the banks follows from the sizes, in whatever order
//! operands are stored, and the bits are the interpreter's.

use crate::engine::command;
use proptest::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::LazyLock;

const KERNELS: &str =
    "kernel plain<const BM = 16, const BN = 16>(A: in TYPE[M, K], B: in TYPE[K, N], C: out TYPE[M, N]) {
    grid (m in tiles(M, BM), n in tiles(N, BN));
    TSTORE(C.tile(m, n), matmul(Left(A.tile(m, _)), Right(B.tile(_, n))));
}
kernel other<const BM = 16, const BN = 16>(A: in TYPE[M, K], B: in TYPE[N, K], C: out TYPE[M, N]) {
    grid (n in tiles(N, BN), m in tiles(M, BM));
    TSTORE(C.tile(m, n), matmul(Left(A.tile(m, _)), Right(B.T.tile(_, n))));
}
kernel vector<const BM = 8>(A: in TYPE[M, K], B: in TYPE[K], C: out TYPE[M]) {
    grid (m in tiles(M, BM));
    TSTORE(col(C).tile(m, _), matmul(Left(A.tile(m, _)), Right(col(B).tile(_, _))));
}
kernel row<const BM = 8>(A: in TYPE[K, M], B: in TYPE[K], C: out TYPE[M]) {
    grid (m in tiles(M, BM));
    TSTORE(C.tile(m), matmul(Left(B.tile(_)), Right(A.tile(_, m))));
}
";

/// What follows a product, and products that are added: HBM-PIM's units do both.
const MORE: &str = "kernel bias<const BN = 16>(A: in f16[M, K], B: in f16[K, N], b: in f16[N], C: out f16[M, N]) {
    grid (n in tiles(N, BN));
    for m in 0..M {
        TSTORE(C[m, _].tile(n), max(Vec(matmul(Left(A[m, _].tile(_)), Right(B.tile(_, n)))) + Vec(b.tile(n)), 0.0));
    }
}
kernel parts<const BM = 16, const BN = 16>(A: in f16[M, K], B: in f16[K, N], C: out f16[M, N]) {
    grid (m in tiles(M, BM), n in tiles(N, BN));
    let acc = tile Acc<f16, m, n>;
    acc = 0.0;
    for k in tiles(K, 32) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
    TSTORE(C.tile(m, n), acc);
}
";

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_products");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

static FILES: LazyLock<[String; 2]> = LazyLock::new(|| {
    let f16 = KERNELS.replace("TYPE", "f16") + MORE;
    [("f16.tile", f16), ("bf16.tile", KERNELS.replace("TYPE", "bf16"))]
        .map(|(name, text)| file(name, &text).display().to_string())
});

fn run(target: &str, kernel: &str, sizes: [u32; 3], backend: &str) -> (u8, String, Value) {
    let [m, k, n] = sizes;
    let sizes = [format!("M={m}"), format!("K={k}"), format!("N={n}")];
    let path = &FILES[usize::from(target == "gddr6-aim")];
    let mut words = vec!["run", path, kernel, "--target", target, "--backend", backend, "--random", "5", "--json"];
    let used = if matches!(kernel, "vector" | "row") { 2 } else { 3 };
    sizes[..used].iter().for_each(|s| words.extend(["-D", s]));
    let o = command(&words);
    (o.status, o.err, serde_json::from_str(&o.out).unwrap_or_default())
}

fn agree(target: &str, kernel: &str, sizes: [u32; 3]) -> Result<Value, TestCaseError> {
    let (status, told, meant) = run(target, kernel, sizes, "interp");
    prop_assert_eq!(status, 0, "{}", told);
    let (status, told, got) = run(target, kernel, sizes, "pim");
    prop_assert_eq!(status, 0, "{} {} {:?}: {}", target, kernel, sizes, told);
    prop_assert!(meant["outputs"]["C"]["sha256"].is_string());
    prop_assert_eq!(&meant["outputs"]["C"]["sha256"], &got["outputs"]["C"]["sha256"], "{} {:?}", kernel, sizes);
    Ok(got)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(10, 60)))]

    #[test]
    fn random_sizes_give_the_bits(
        target in prop::sample::select(vec!["hbm-pim", "lpddr5-pim", "gddr6-aim"]),
        kernel in prop::sample::select(vec!["plain", "other", "vector", "row", "bias", "parts"]),
        sizes in (1u32..50, prop_oneof![1u32..40, 1u32..300], 1u32..50),
    ) {
        prop_assume!(target != "gddr6-aim" || !matches!(kernel, "bias" | "parts"));
        agree(target, kernel, [sizes.0, sizes.1, sizes.2])?;
    }
}

/// One line on either side, one element of each, sizes that divide nothing.
#[test]
fn edges() {
    for target in ["hbm-pim", "gddr6-aim"] {
        for sizes in [[1, 1, 1], [1, 300, 70], [70, 300, 1], [40, 33, 5], [5, 33, 40], [1, 1, 17], [33, 1, 2]] {
            for kernel in ["plain", "other", "vector", "row"] {
                agree(target, kernel, sizes).unwrap_or_else(|e| panic!("{target} {kernel} {sizes:?}: {e}"));
            }
        }
    }
}

/// A product with a vector is the contraction that sums of products are: the same commands for either order.
#[test]
fn a_product_with_a_vector_is_near_its_bound() {
    for kernel in ["vector", "row"] {
        let got = agree("hbm-pim", kernel, [1024, 1024, 1]).unwrap_or_else(|e| panic!("{kernel}: {e}"));
        let exec = &got["stats"]["report"]["kinds"]["exec"];
        let factor = exec["bound"]["factor"].as_f64().expect("a bound");
        assert!((1.0..1.05).contains(&factor), "{kernel}: {factor}");
    }
}

/// Of a single block the smaller operand comes from the host, and rows lie beside each other.
#[test]
fn single_blocks() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hbm_pim.tile").display().to_string();
    for (m, most) in [(1, 1.1), (8, 1.1)] {
        let m = format!("M={m}");
        let words = ["run", &path, "gemv", "--target", "hbm-pim", "-D", &m, "-D", "K=3000", "--timing-only", "--json"];
        let o = command(&words);
        assert_eq!(o.status, 0, "{}", o.err);
        let v: Value = serde_json::from_str(&o.out).expect("JSON");
        let factor = v["stats"]["report"]["kinds"]["exec"]["bound"]["factor"].as_f64().expect("a bound");
        assert!(factor < most, "{m}: {factor}");
    }
}

/// Sums of products in every order of their operands, transposed or not, and products of matrices of which both lie
/// across k: the bits of the interpreter.
const ORDERS: &str = "kernel lines(A: in f16[K, M], x: in f16[K], C: out f16[M]) {
    grid (m in tiles(M, 8));
    TSTORE(col(C).tile(m, _), rowsum(Vec(A.T.tile(m, _)) * Vec(x.tile(_))));
}
kernel turned(A: in f16[K, M], x: in f16[K], C: out f16[M]) {
    grid (m in tiles(M, 8));
    TSTORE(col(C).tile(m, _), rowsum(Vec(x.tile(_)) * Vec(A.tile(_, m)).T));
}
kernel columns(A: in f16[K, M], x: in f16[K], C: out f16[M]) {
    grid (m in tiles(M, 16));
    TSTORE(C.tile(m), colsum(Vec(col(x).tile(_, _)) * Vec(A.tile(_, m))));
}
kernel columns_turned(A: in f16[M, K], x: in f16[K], C: out f16[M]) {
    grid (m in tiles(M, 16));
    TSTORE(C.tile(m), colsum(Vec(A.T.tile(_, m)) * Vec(col(x).tile(_, _))));
}
kernel across(A: in f16[K, M], B: in f16[K, N], C: out f16[M, N]) {
    grid (m in tiles(M, 16), n in tiles(N, 16));
    TSTORE(C.tile(m, n), matmul(Left(A.T.tile(m, _)), Right(B.tile(_, n))));
}
";

fn orders_agree(kernel: &str, [m, k, n]: [u32; 3]) -> Result<(), TestCaseError> {
    let path = file("orders.tile", ORDERS).display().to_string();
    let mut sizes = vec![format!("M={m}"), format!("K={k}")];
    sizes.extend((kernel == "across").then(|| format!("N={n}")));
    let hash = |backend: &str| {
        let mut words =
            vec!["run", &path, kernel, "--target", "hbm-pim", "--backend", backend, "--random", "5", "--json"];
        sizes.iter().for_each(|s| words.extend(["-D", s]));
        let o = command(&words);
        prop_assert_eq!(o.status, 0, "{} {:?}: {}", kernel, &sizes, o.err);
        let v: Value = serde_json::from_str(&o.out).expect("JSON");
        Ok(v["outputs"]["C"]["sha256"].as_str().map(str::to_owned))
    };
    let meant = hash("interp")?;
    prop_assert!(meant.is_some());
    prop_assert_eq!(meant, hash("pim")?, "{} {:?}", kernel, &sizes);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(6, 40)))]

    #[test]
    fn any_order_gives_the_bits(
        kernel in prop::sample::select(vec!["lines", "turned", "columns", "columns_turned", "across"]),
        sizes in (1u32..60, prop_oneof![1u32..40, 1u32..300], 1u32..40),
    ) {
        orders_agree(kernel, [sizes.0, sizes.1, sizes.2])?;
    }
}

/// One line, one element, several units and rounds.
#[test]
fn orders_at_their_edges() {
    for kernel in ["lines", "turned", "columns", "columns_turned", "across"] {
        for sizes in [[1, 1, 1], [1, 40, 3], [40, 1, 17], [32, 16, 2], [40, 33, 37]] {
            orders_agree(kernel, sizes).unwrap_or_else(|e| panic!("{kernel} {sizes:?}: {e}"));
        }
    }
}

/// More blocks along n than there are units, and several along m: a unit without a block waits until all units go on
/// to the next rows of A, which the host brings to all of them at once.
#[test]
fn more_blocks_than_units() {
    let cases = [
        ("hbm-pim", "plain", [32, 8, 2049]),
        ("hbm-pim", "plain", [17, 8, 2064]),
        ("lpddr5-pim", "plain", [32, 8, 257]),
        ("lpddr5-pim", "plain", [33, 33, 529]),
        ("lpddr5-pim", "other", [32, 8, 264]),
    ];
    for (target, kernel, sizes) in cases {
        agree(target, kernel, sizes).unwrap_or_else(|e| panic!("{target} {kernel} {sizes:?}: {e}"));
    }
}

/// Sums of one product, whose last block is a single row; results one beside the other, a single one a block.
#[test]
fn blocks_of_one_element() {
    let text = "kernel left<const BM = 8>(a: in f16[M, K], x: in f16[K], y: out f16[M]) {
    grid (m in tiles(M, BM));
    TSTORE(col(y).tile(m, _), rowsum(Vec(x.tile(_)) * Vec(a.tile(m, _))));
}
kernel across<const BM = 8>(a: in f16[M, K], x: in f16[B, K], y: out f16[M, B]) {
    grid (m in tiles(M, BM));
    for b in 0..B { TSTORE(col(y[_, b]).tile(m, _), rowsum(Vec(a.tile(m, _)) * Vec(x[b, _].tile(_)))); }
}
kernel down<const BM = 8>(a: in f16[M, K], x: in f16[B, K], y: out f16[B, M]) {
    grid (m in tiles(M, BM));
    for b in 0..B { TSTORE(col(y[b, _]).tile(m, _), rowsum(Vec(a.tile(m, _)) * Vec(x[b, _].tile(_)))); }
}
";
    let path = file("single.tile", text).display().to_string();
    let cases: [(&str, &str, &[&str]); 8] = [
        ("left", "lpddr5-pim", &["M=155", "K=1", "BM=2"]),
        ("left", "hbm-pim", &["M=17", "K=1"]),
        ("left", "hbm-pim", &["M=1", "K=1"]),
        ("across", "hbm-pim", &["M=17", "K=1", "B=8"]),
        ("across", "hbm-pim", &["M=1", "K=100", "B=7"]),
        ("across", "hbm-pim", &["M=1", "K=100", "B=40"]),
        ("down", "hbm-pim", &["M=1", "K=100", "B=3"]),
        ("down", "lpddr5-pim", &["M=9", "K=33", "B=20"]),
    ];
    for (kernel, target, sizes) in cases {
        let [interp, pim] = ["interp", "pim"].map(|backend| {
            let mut words =
                vec!["run", &path, kernel, "--target", target, "--backend", backend, "--random", "5", "--json"];
            sizes.iter().for_each(|s| words.extend(["-D", s]));
            let o = command(&words);
            assert_eq!(o.status, 0, "{kernel} {target} {sizes:?} {backend}: {}", o.err);
            serde_json::from_str::<Value>(&o.out).expect("JSON")["outputs"]["y"]["sha256"].as_str().map(str::to_owned)
        });
        assert!(interp.is_some() && interp == pim, "{kernel} {target} {sizes:?}");
    }
}

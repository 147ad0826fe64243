//! Clusters of blocks: bits that do not change, what the interpreter counts as shared (row 43), what is refused, and
//! that nothing can be left out of the code that shares.

use crate::deletions::deletions;
use crate::engine::{Content, check, command, noise};
use crate::ptx::{Ptx, build_unit};
use ptoc_ptx::{Op, Sm90};
use ptoc_tensor::{DType, Tensor};
use ptoc_tests_budget::cases;
use serde_json::Value;

/// A product whose blocks are in clusters of so many rows and columns.
#[derive(Clone, Copy, Debug)]
struct Clustered {
    factors: DType,
    tile: [u32; 3],
    cluster: [u32; 2],
    /// A is [K, M], B is [N, K].
    turned: [bool; 2],
    raster: bool,
    /// Matrices of a batch, along a dimension in front.
    batch: bool,
}

impl Clustered {
    fn new(tile: [u32; 3], cluster: [u32; 2]) -> Clustered {
        Clustered { factors: DType::F16, tile, cluster, turned: [false; 2], raster: false, batch: false }
    }

    fn text(&self) -> String {
        let Clustered { factors, tile: [bm, bn, bk], cluster: [cm, cn], turned: [a, b], raster, batch } = *self;
        let (left, of_a) = if a { ("K, M", "Mat(a.T.tile(m, k))") } else { ("M, K", "a.tile(m, k)") };
        let (right, of_b) = if b { ("N, K", "b.T.tile(k, n)") } else { ("K, N", "b.tile(k, n)") };
        let raster = if raster { " raster(along = m, swizzle = 2)" } else { "" };
        let (mode, grid) = if batch { ("L, ", "l in 0..L, ") } else { ("", "") };
        let of = |window: &str| if batch { window.replace(".tile(", "[l, _, _].tile(") } else { window.to_owned() };
        format!(
            "kernel product(a: in {factors}[{mode}{left}], b: in {factors}[{mode}{right}], c: out f32[{mode}M, N]) {{
                 grid ({grid}m in tiles(M, {bm}), n in tiles(N, {bn})){raster} cluster(m = {cm}, n = {cn});
                 let acc = tile Acc<f32, m, n>;
                 acc = 0.0;
                 pipeline(stages = 3) for k in tiles(K, {bk}) {{
                     TMATMUL_ACC(acc, acc, Left({}), Right({}));
                 }}
                 TSTORE({}, acc);
             }}",
            of(of_a),
            of(of_b),
            of("c.tile(m, n)")
        )
    }

    fn tensors(&self, [m, n, k]: [usize; 3], seed: u64) -> Vec<Tensor> {
        let [a, b] = self.turned;
        let shape = |turned: bool, x: usize, y: usize| {
            let two = if turned { [y, x] } else { [x, y] };
            if self.batch { vec![3, two[0], two[1]] } else { two.to_vec() }
        };
        vec![
            noise(self.factors, &shape(a, m, k), Content::Tame, seed),
            noise(self.factors, &shape(b, k, n), Content::Tame, seed + 1),
            Tensor::zeros(DType::F32, &shape(false, m, n)).expect("small"),
        ]
    }

    fn check(&self, size: [usize; 3], seeds: std::ops::Range<u64>) -> Result<(), String> {
        let text = self.text();
        let (middle, ptx) = build_unit(&text, &[]).map_err(|why| format!("{why}\n{text}"))?;
        if ptx.code.abi.cluster != self.cluster.iter().product::<u32>() || !multicasts(&ptx) {
            return Err(format!("nothing is shared\n{text}"));
        }
        let [m, n, k] = size.map(|n| n as i64);
        let dims = [("M", m), ("N", n), ("K", k), ("L", 3)];
        let dims = &dims[..if self.batch { 4 } else { 3 }];
        let tensors = self.tensors(size, seeds.start);
        let want = middle.interpret_on_unit(dims, &tensors).map_err(|(code, why)| format!("{code}: {why}"))?;
        for seed in seeds {
            let name = format!("cluster_{}_{:?}_{size:?}_{seed}", self.factors, self.cluster);
            let name: String = name.chars().map(|c| if c.is_alphanumeric() { c } else { '_' }).collect();
            ptx.gives(dims, &tensors, &want, (&name, seed)).map_err(|why| format!("{self:?} {size:?}: {why}"))?;
        }
        Ok(())
    }
}

fn multicasts(ptx: &Ptx) -> bool {
    ptx.code.kernel.insts().any(|inst| matches!(inst.op, Op::Sm90(Sm90::TensorMulticast(_))))
}

/// Whole clusters and cut ones, both majors of both operands, in other orders of blocks, in batches; operands that bulk
/// copies cannot bring, which every block of the cluster brings for itself.
#[test]
fn results_have_the_interpreters_bits() {
    let bf16 = Clustered { factors: DType::BF16, ..Clustered::new([128, 64, 64], [2, 1]) };
    let all = [
        (Clustered::new([64, 64, 64], [2, 1]), [200, 136, 136]),
        (Clustered::new([64, 64, 64], [1, 2]), [64, 136, 200]),
        (Clustered::new([64, 64, 64], [2, 2]), [136, 200, 72]),
        (bf16, [264, 72, 328]),
        (Clustered { turned: [true, true], ..Clustered::new([64, 64, 64], [2, 2]) }, [200, 72, 136]),
        (Clustered { turned: [true, false], ..Clustered::new([64, 64, 64], [4, 2]) }, [264, 72, 136]),
        (Clustered { raster: true, ..Clustered::new([64, 64, 64], [1, 2]) }, [330, 264, 64]),
        (Clustered { batch: true, ..Clustered::new([64, 64, 64], [2, 1]) }, [72, 72, 72]),
        // Rows that are no multiples of 16 bytes.
        (Clustered::new([64, 64, 64], [2, 2]), [130, 67, 133]),
        (Clustered::new([64, 64, 64], [2, 1]), [130, 64, 133]),
        (Clustered::new([64, 64, 64], [2, 1]), [130, 64, 0]),
    ];
    for (n, (product, size)) in all.into_iter().enumerate() {
        product.check(size, n as u64..n as u64 + 2).unwrap_or_else(|e| panic!("{e}"));
    }
}

/// The same of random shapes and sizes.
#[test]
fn random_clusters_have_the_interpreters_bits() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (state >> 33) % n
    };
    for case in 0..cases(4u64, 60) {
        let tile = [64 << below(2), 64 << below(2), 64].map(|n| n as u32);
        let cluster = [[2, 1], [1, 2], [2, 2], [4, 1], [1, 4], [4, 2]][below(6) as usize];
        let product = Clustered {
            factors: [DType::F16, DType::BF16][below(2) as usize],
            turned: [below(2) == 0, below(2) == 0],
            raster: below(2) == 0,
            batch: false,
            ..Clustered::new(tile, cluster)
        };
        let mut size = [1 + below(300), 1 + below(300), below(200)].map(|n| n as usize);
        if below(3) > 0 {
            size = size.map(|n| n.next_multiple_of(8));
        }
        product.check(size, case..case + 1).unwrap_or_else(|e| panic!("case {case}: {e}"));
    }
}

/// Every barrier, wait, fence, commit and arrival is needed: without it a launch is refused, or wrong, in one of some
/// orders.
#[test]
fn nothing_can_be_left_out() {
    let product = Clustered::new([64, 64, 64], [2, 1]);
    let (middle, ptx) = build_unit(&product.text(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let all = deletions(&ptx.code.kernel);
    let launches = [[200, 64, 456], [130, 67, 133]].map(|size| {
        let [m, n, k] = size.map(|n| n as i64);
        let (dims, tensors) = ([("M", m), ("N", n), ("K", k)], product.tensors(size, 3));
        let want = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
        (dims, tensors, want)
    });
    let mut kept = Vec::new();
    for (name, kernel) in &all {
        let without = ptx.with_kernel(kernel.clone());
        let found = (0..8).any(|seed| {
            launches.iter().any(|(dims, tensors, want)| without.gives(dims, tensors, want, ("deleted", seed)).is_err())
        });
        if !found {
            kept.push(name);
        }
    }
    assert!(all.len() >= 15, "{}", all.len());
    assert!(kept.is_empty(), "{kept:?}");
}

/// Addresses of shared memory begin with the CTA's rank, for which descriptors of operands have no room: in PTX's
/// interpreter as on a card. With an operand of two parts the distance between them is another then.
#[test]
fn ranks_are_left_out_of_descriptors() {
    let product = Clustered::new([64, 128, 64], [2, 1]);
    let (middle, ptx) = build_unit(&product.text(), &[]).unwrap_or_else(|e| panic!("{e}"));
    let text = ptoc_ptx::print(&ptx.code.kernel);
    let kept = ptoc_ptx::parse(&text.replace(", 262143;", ", -1;")).expect("PTX");
    assert_ne!(ptoc_ptx::print(&kept), text);
    let (dims, tensors) = ([("M", 128), ("N", 128), ("K", 64)], product.tensors([128, 128, 64], 3));
    let want = middle.interpret_on_unit(&dims, &tensors).unwrap_or_else(|e| panic!("{e:?}"));
    ptx.gives(&dims, &tensors, &want, ("ranks", 1)).unwrap_or_else(|e| panic!("{e}"));
    assert!(ptx.with_kernel(kept).gives(&dims, &tensors, &want, ("ranks_kept", 1)).is_err());
}

/// Counts of a run on the interpreter.
fn counted(text: &str, defs: &[&str]) -> Value {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("product.tile");
    std::fs::write(&file, text).expect("written");
    let mut words: Vec<String> = vec!["run".into(), file.display().to_string(), "product".into()];
    let more = "--target sm90 --backend interp --random 1 --stats --json";
    words.extend(more.split(' ').map(str::to_owned));
    words.extend(defs.iter().flat_map(|d| ["-D".to_owned(), (*d).to_owned()]));
    let outcome = command(&words);
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    let json: Value = serde_json::from_str(&outcome.out).expect("JSON");
    json["stats"].clone()
}

#[test]
fn row_43_traffic_of_multicast_clusters() {
    let sizes = ["M=512", "N=256", "K=64"];
    let bytes = |stats: &Value, tensor: &str, what: &str| stats["tensors"][tensor][what].as_u64().expect("bytes");
    for [cm, cn] in [[4, 2], [2, 1], [1, 2], [2, 2]] {
        let stats = counted(&Clustered::new([128, 128, 64], [cm, cn]).text(), &sizes);
        for (tensor, of) in [("product.a", cn), ("product.b", cm)] {
            let (read, fetched) = (bytes(&stats, tensor, "read"), bytes(&stats, tensor, "fetched"));
            assert_eq!(fetched * u64::from(of), read, "{cm} x {cn}: {tensor}");
        }
        // A cluster of 4 x 2 blocks of 128 x 128 covers 512 x 256.
        assert_eq!(stats["clusters"], 8 / (cm * cn), "{cm} x {cn}");
        assert_eq!(bytes(&stats, "product.c", "written"), 4 * 512 * 256);
    }
    // Without clusters everyone fetches what he reads.
    let stats = counted(&Clustered::new([128, 128, 64], [1, 1]).text(), &sizes);
    assert_eq!(bytes(&stats, "product.a", "read"), bytes(&stats, "product.a", "fetched"));
    assert!(stats.get("clusters").is_none());
    // A cut cluster shares what is there: of three rows of blocks two are together, and one is alone.
    let stats = counted(&Clustered::new([128, 128, 64], [2, 1]).text(), &["M=384", "N=128", "K=64"]);
    assert_eq!((bytes(&stats, "product.b", "read"), bytes(&stats, "product.b", "fetched")), (3 << 14, 2 << 14));
}

/// Loads that differ are not shared: a window that moves with the block, or one that is loaded again.
#[test]
fn what_differs_is_fetched_by_everyone() {
    let text = "kernel product(x: in f32[N], t: in f32[64], y: out f32[N]) {
        grid (i in tiles(N, 64)) cluster(i = 2);
        let a = Vec(x.tile(i));
        for r in 0..3 { a += Vec(t); }
        TSTORE(y.tile(i), a);
    }";
    let stats = counted(text, &["N=256"]);
    assert_eq!(stats["tensors"]["product.x"], serde_json::json!({"read": 1024, "fetched": 1024, "written": 0}));
    // Each of 4 blocks loads the table three times; of two blocks one fetches it, each time.
    assert_eq!(stats["tensors"]["product.t"], serde_json::json!({"read": 3072, "fetched": 1536, "written": 0}));
}

#[test]
fn what_is_refused() {
    let text = |clause: &str| {
        format!(
            "kernel k(x: in f32[M, N], y: out f32[M, N]) {{
                 grid (m in tiles(M, 64), n in tiles(N, 64)) {clause};
                 TSTORE(y.tile(m, n), Vec(x.tile(m, n)));
             }}"
        )
    };
    for (clause, target, code, words) in [
        ("cluster(m = 2)", "a2a3", "E0225", "blocks on a2a3 share no loads: there are no clusters"),
        ("cluster(m = 2)", "a5", "E0225", "blocks on a5 share no loads: there are no clusters"),
        ("cluster(m = 4, n = 4)", "sm90", "E0306", "a cluster of 4 x 4 = 16 blocks; sm90 has 8 at most"),
        ("cluster(m = 3)", "sm90", "E0306", "3 blocks of a cluster are no power of two"),
        ("cluster(2, 4)", "sm90", "E0225", "`cluster` takes numbers of blocks along dimensions of the grid"),
        ("cluster(m = 2, M = 2)", "sm90", "E0225", "`cluster` counts blocks along `m` twice"),
        ("cluster(m = 2) cluster(n = 2)", "sm90", "E0225", "`cluster` is given twice"),
        ("cluster(x = 2)", "sm90", "E0225", "`cluster` names no single dimension of the grid"),
        ("cluster(q = 2)", "sm90", "E0101", "q"),
    ] {
        let refused = check(&text(clause), target, &[]);
        assert_eq!(refused.codes, [code], "{clause}: {}", refused.text);
        assert!(refused.text.contains(words), "{clause}: {}", refused.text);
    }
    for (clause, target) in [("cluster(m = 1, n = 1)", "a2a3"), ("cluster(M = 4, N = 2)", "sm90"), ("cluster()", "a5")]
    {
        let refused = check(&text(clause), target, &[]);
        assert!(refused.codes.is_empty(), "{clause}: {}", refused.text);
    }
}

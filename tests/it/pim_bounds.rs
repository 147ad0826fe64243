//! How far streams of HBM-PIM are from what their commands take at least; and what units refuse whatever the sizes.

use crate::engine::command;
use proptest::prelude::*;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_bounds");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn run(path: &Path, kernel: &str, backend: &str, defs: &[&str]) -> Value {
    let path = path.display().to_string();
    let mut words = vec!["run", &path, kernel, "--target", "hbm-pim", "--backend", backend, "--random", "5", "--json"];
    defs.iter().for_each(|d| words.extend(["-D", d]));
    let o = command(&words);
    assert_eq!(o.status, 0, "{kernel} {defs:?}: {}", o.err);
    serde_json::from_str(&o.out).expect("JSON")
}

/// So many times the bound, of each kind of step.
fn factors(ran: &Value) -> Vec<(String, f64)> {
    let kinds = ran["stats"]["report"]["kinds"].as_object().expect("kinds");
    kinds.iter().filter_map(|(name, k)| Some((name.clone(), k["bound"]["factor"].as_f64()?))).collect()
}

/// Kernels of the examples with the most that their column commands take, in times of the bound: each number may only
/// go down.
const EXAMPLES: [(&str, &str, &[&str], f64); 9] = [
    ("examples/hbm_pim.tile", "add", &["N=1048576"], 1.06),
    ("examples/hbm_pim.tile", "mul", &["N=1048576"], 1.06),
    ("examples/hbm_pim.tile", "relu", &["N=1048576"], 1.04),
    ("examples/hbm_pim.tile", "axpy", &["N=1048576"], 1.06),
    ("examples/hbm_pim.tile", "sub", &["N=1048576"], 1.06),
    ("examples/hbm_pim.tile", "col_sums", &["M=256", "N=4096"], 1.03),
    ("examples/hbm_pim.tile", "row_sums", &["M=1024", "N=1024"], 1.04),
    ("examples/hbm_pim.tile", "gemv", &["M=1024", "K=1024"], 1.05),
    ("examples/hbm_gemm.tile", "gemm", &["N=1024", "K=1024", "B=1"], 1.05),
];

#[test]
fn examples_against_their_bounds() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut wrong = Vec::new();
    for (path, kernel, defs, most) in EXAMPLES {
        let ran = run(&root.join(path), kernel, "pim", defs);
        for (kind, factor) in factors(&ran) {
            assert!(factor >= 1.0, "{kernel} {kind}: {factor}");
            // What the host moves is served by its own policy.
            if kind == "exec" && (factor > most || factor < most - 0.03) {
                wrong.push(format!("{kernel}: {factor:.3}, and {most} is stated"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Kernels of the examples at sizes from a few elements to some hundred thousand: no step, the host's among them, takes
/// more than 1.1 times its bound. Where short rows end in a part of a burst, the sums of its lanes are instructions one
/// by one, which programs of several parts are written for: those are further from it, and not over the second number.
#[test]
fn no_stream_is_far_from_its_bound() {
    let pim = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hbm_pim.tile");
    let gemm = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hbm_gemm.tile");
    let mut all: Vec<(&Path, &str, Vec<String>, f64)> = Vec::new();
    for n in [17, 256, 1000, 2048, 5000, 8192, 32_768, 131_072, 262_144] {
        for kernel in ["add", "sub", "mul", "relu", "axpy"] {
            all.push((&pim, kernel, vec![format!("N={n}")], 1.1));
        }
    }
    for (m, n) in [(4, 64), (64, 1024), (37, 1000), (256, 4096)] {
        all.push((&pim, "col_sums", vec![format!("M={m}"), format!("N={n}")], 1.1));
    }
    for (m, n, most) in [(256, 256, 1.1), (1024, 256, 1.1), (1024, 1024, 1.1), (16, 64, 1.12), (50, 70, 1.17)] {
        all.push((&pim, "row_sums", vec![format!("M={m}"), format!("N={n}")], most));
    }
    let whole = [(128, 256), (256, 1024), (1000, 1000), (4096, 1024), (100, 70)].map(|(m, k)| (m, k, 1.1));
    // A single block of few rows.
    let few = [(1, 100, 1.1), (2, 500, 1.14), (3, 5000, 1.1), (5, 3000, 1.1), (7, 5000, 1.1)];
    for (m, k, most) in whole.into_iter().chain(few) {
        all.push((&pim, "gemv", vec![format!("M={m}"), format!("K={k}")], most));
    }
    for (m, k, b, most) in [(1024, 1024, 8, 1.1), (256, 512, 3, 1.1), (256, 200, 3, 1.26)] {
        all.push((&pim, "gemvs", vec![format!("M={m}"), format!("K={k}"), format!("B={b}")], most));
    }
    for (n, k, b) in [(1024, 1024, 1), (4096, 1024, 1), (1024, 1024, 4)] {
        all.push((&gemm, "gemm", vec![format!("N={n}"), format!("K={k}"), format!("B={b}")], 1.1));
    }
    let mut wrong = Vec::new();
    for (path, kernel, defs, most) in all {
        let path = path.display().to_string();
        let mut words = vec!["run", &path, kernel, "--target", "hbm-pim", "--timing-only", "--json"];
        defs.iter().for_each(|d| words.extend(["-D", d]));
        let o = command(&words);
        assert_eq!(o.status, 0, "{kernel} {defs:?}: {}", o.err);
        let ran: Value = serde_json::from_str(&o.out).expect("JSON");
        for (kind, factor) in factors(&ran) {
            if !(1.0..=most).contains(&factor) {
                wrong.push(format!("{kernel} {}, {kind}: {factor:.3}", defs.join(" ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A refresh that the last command of an exec has waited for is behind its end, and none of the step that follows.
#[test]
fn a_refresh_behind_a_step() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hbm_pim.tile");
    for m in [71, 72, 75, 79, 80] {
        let size = format!("M={m}");
        let defs = [&size, "K=772", "device.preset=lpddr5_6400", "unit.fence_data=0"];
        for (kind, factor) in factors(&run(&path, "gemv", "pim", &defs)) {
            assert!(factor >= 1.0, "M={m}, {kind}: {factor}");
        }
    }
}

/// Sums of products, the short results of which are read while a refresh comes due.
const SUMS: &str = "kernel mv(a: in f16[M, K], x: in f16[K], y: out f16[M]) {
    grid (m in tiles(M, 8));
    TSTORE(col(y).tile(m, _), rowsum(Vec(a.tile(m, _)) * Vec(x.tile(_))));
}
kernel mvs(a: in f16[M, K], x: in f16[B, K], y: out f16[B, M]) {
    grid (m in tiles(M, 8));
    for b in 0..B {
        TSTORE(col(y[b, _]).tile(m, _), rowsum(Vec(a.tile(m, _)) * Vec(x[b, _].tile(_))));
    }
}
kernel dotrows(a: in f16[M, K], b: in f16[M, K], y: out f16[M]) {
    grid (m in tiles(M, 8));
    TSTORE(col(y).tile(m, _), rowsum(Vec(a.tile(m, _)) * Vec(b.tile(m, _))));
}
kernel mmt(a: in f16[M, K], b: in f16[N, K], c: out f16[M, N]) {
    grid (m in tiles(M, 8), n in tiles(N, 16));
    TSTORE(c.tile(m, n), matmul(Left(a.tile(m, _)), Right(b.T.tile(_, n))));
}
";

/// The same for AiM.
const AIM_SUMS: &str = "kernel mmt(a: in bf16[M, K], b: in bf16[N, K], c: out bf16[M, N]) {
    grid (m in tiles(M, 16), n in tiles(N, 16));
    TSTORE(c.tile(m, n), matmul(Left(a.tile(m, _)), Right(b.T.tile(_, n))));
}
kernel dotrows(a: in bf16[M, K], b: in bf16[M, K], y: out bf16[M]) {
    grid (m in tiles(M, 16));
    TSTORE(col(y).tile(m, _), bf16(rowsum(f32(Vec(a.tile(m, _))) * f32(Vec(b.tile(m, _))))));
}
";

/// Units of AiM on another DRAM, whose sums take the host longer than steps take.
const AIM_UNIT: &str = "kind = \"aim\"\nlanes = 16\nbanks = 1\noperations = [\"MOV\", \"DOT\", \"RELU\"]\n\
    rounding = \"fused\"\nbuffer = 512\nlatency = LATENCY\nclock = 500\nact_weight = 1\n";

/// Such a device: a described one is of HBM-PIM.
fn aim_device(preset: &str, latency: u32) -> String {
    let unit = AIM_UNIT.replace("LATENCY", &latency.to_string());
    let text = crate::pim_devices::described(preset, &[], &unit, "stacks = 1\nchannels = 2\n");
    file(&format!("aim_{preset}_{latency}.toml"), &text).display().to_string()
}

/// Sizes by name.
type Sizes<'s> = &'s [(&'s str, u32)];

/// What is under 1 of a run for its time: kinds of steps with their factors.
fn under(kernel: &str, target: &str, sizes: Sizes<'_>) -> Vec<(String, f64)> {
    let aim = target.contains("aim");
    let path = file(if aim { "aim_sums.tile" } else { "sums.tile" }, if aim { AIM_SUMS } else { SUMS });
    let path = path.display().to_string();
    let defs: Vec<String> = sizes.iter().map(|(name, n)| format!("{name}={n}")).collect();
    let mut words = vec!["run", &path, kernel, "--target", target, "--timing-only", "--json"];
    defs.iter().for_each(|d| words.extend(["-D", d]));
    let o = command(&words);
    assert_eq!(o.status, 0, "{kernel} {target} {defs:?}: {}", o.err);
    let ran: Value = serde_json::from_str(&o.out).expect("JSON");
    factors(&ran).into_iter().filter(|(_, factor)| *factor < 1.0).collect()
}

/// Refreshes that come due while the last data of a step is under way, or while the host takes sums of AiM's units,
/// which no bank is needed for.
#[test]
fn refreshes_beside_data() {
    let aim = aim_device("lpddr5_6400", 16);
    let cases: [(&str, &str, Sizes<'_>); 7] = [
        ("mv", "hbm-pim", &[("M", 16), ("K", 365)]),
        ("mv", "hbm-pim", &[("M", 16), ("K", 366)]),
        ("mv", "lpddr5-pim", &[("M", 8), ("K", 310)]),
        ("dotrows", "lpddr5-pim", &[("M", 16), ("K", 97)]),
        ("mmt", &aim, &[("M", 138), ("K", 64), ("N", 64)]),
        ("mmt", &aim, &[("M", 138), ("K", 16), ("N", 64)]),
        ("dotrows", &aim, &[("M", 91), ("K", 1)]),
    ];
    for (kernel, target, sizes) in cases {
        assert_eq!(under(kernel, target, sizes), [], "{kernel} {target} {sizes:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(24, 200)))]

    /// No step of a device as shipped, nor of AiM's units on another DRAM, is faster than its bound.
    #[test]
    fn no_step_is_under_its_bound(
        (m, k, n) in (1u32..200, 1u32..1200, 1u32..80),
        target in prop::sample::select(vec!["hbm-pim", "lpddr5-pim", "gddr6-aim", "hbm2_2000", "lpddr5_6400"]),
        latency in 1u32..60,
        kernel in 0usize..4,
    ) {
        let preset = target.contains('_').then(|| aim_device(target, latency));
        let target = preset.as_deref().unwrap_or(target);
        let (kernel, sizes) = match (kernel, target.contains("aim")) {
            (0, _) | (2.., true) => ("mmt", vec![("M", m.min(80)), ("K", k % 150 + 1), ("N", n)]),
            (1, _) => ("dotrows", vec![("M", m), ("K", k)]),
            (2, false) => ("mv", vec![("M", m), ("K", k)]),
            _ => ("mvs", vec![("M", m), ("K", k), ("B", n % 5 + 1)]),
        };
        prop_assert_eq!(under(kernel, target, &sizes), [], "{} {} {:?}", kernel, target, sizes);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(8, 40)))]

    /// Nothing is faster than the bound, whatever the memory and who is refreshed.
    #[test]
    fn no_stream_is_under_its_bound(
        n in 1u32..60_000,
        preset in prop::sample::select(vec!["hbm2_2000", "hbm2_samsung_pim", "hbm3_6400", "lpddr5_6400"]),
        refresh in prop::sample::select(vec!["off", "all", "bank"]),
        weight in 1u32..9,
        kernel in prop::sample::select(vec!["add", "axpy", "relu"]),
    ) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hbm_pim.tile");
        let defs = [format!("N={n}"), format!("device.preset={preset}"), format!("device.refresh={refresh}"),
            format!("unit.act_weight={weight}")];
        let defs: Vec<&str> = defs.iter().map(String::as_str).collect();
        let ran = run(&path, kernel, "pim", &defs);
        for (kind, factor) in factors(&ran) {
            prop_assert!(factor >= 1.0, "{kind}: {factor}");
        }
    }

    /// Nor are sums along rows, whose bounds know of rows and turns what registers ask for.
    #[test]
    fn no_sum_is_under_its_bound(
        (m, k, b) in (prop_oneof![1u32..12, 1u32..300], prop_oneof![1u32..300, 1u32..3000], 1u32..5),
        preset in prop::sample::select(vec!["hbm2_2000", "hbm2_samsung_pim", "hbm3_6400", "lpddr5_6400"]),
        refresh in prop::sample::select(vec!["off", "all"]),
        fences in 0u32..2,
        kernel in prop::sample::select(vec!["gemv", "gemvs", "row_sums"]),
    ) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/hbm_pim.tile");
        let defs = [format!("M={m}"), format!("{}={k}", if kernel == "row_sums" { "N" } else { "K" }),
            format!("device.preset={preset}"), format!("device.refresh={refresh}"),
            format!("unit.fence_data={fences}"), format!("B={b}")];
        let count = defs.len() - usize::from(kernel != "gemvs");
        let defs: Vec<&str> = defs[..count].iter().map(String::as_str).collect();
        let ran = run(&path, kernel, "pim", &defs);
        for (kind, factor) in factors(&ran) {
            prop_assert!(factor >= 1.0, "{kernel} {m} {k} {b}, {kind}: {factor}");
        }
    }

    /// Tiles at numbers, some of which have registers in common: the bits of the interpreter, which has bytes.
    #[test]
    fn tiles_bound_to_registers(
        places in prop::collection::vec(0u32..7, 3),
        (m, rows) in (1u32..40, 1u32..3),
        store in prop::sample::select(vec!["GrfA", "GrfB", "Vec"]),
    ) {
        let [a, b, c] = [0, 1, 2].map(|n| 32 * (places[n] % (9 - rows)));
        // What is loaded to registers comes from the host, and to all units at once.
        let load = |to: &str, from: &str| match store {
            "Vec" => format!("TLOAD({to}, {from}.tile(i, _));\n"),
            _ => format!("TMOV({to}, Bank({from}.tile(i, _)));\n"),
        };
        let text = format!(
            "kernel k(p: in f16[M, 16], q: in f16[M, 16], y: out f16[M, 16], z: out f16[M, 16]) {{\n\
             grid (i in tiles(M, {rows}));\n\
             let s = tile {store}<f16, i, 16>;\nlet t = tile {store}<f16, i, 16>;\nlet u = tile {store}<f16, i, 16>;\n\
             TASSIGN(s, {a});\nTASSIGN(t, {b});\nTASSIGN(u, {c});\n\
             {}TADDS(u, s, 1.0);\nTSTORE(y.tile(i, _), u);\n\
             {}TMULS(u, t, 0.5);\nTSTORE(z.tile(i, _), u);\n}}\n",
            load("s", "p"),
            load("t", "q")
        );
        let path = file(&format!("bound_{a}_{b}_{c}_{m}_{rows}_{store}.tile"), &text);
        let size = format!("M={m}");
        let [interp, pim] = ["interp", "pim"].map(|backend| run(&path, "k", backend, &[&size]));
        for output in ["y", "z"] {
            prop_assert!(interp["outputs"][output]["sha256"].is_string());
            prop_assert_eq!(&interp["outputs"][output]["sha256"], &pim["outputs"][output]["sha256"]);
        }
        let _ = std::fs::remove_file(path);
    }
}

/// TADD on bound tiles, as in PTO's memories.
#[test]
fn a_sum_of_bound_tiles() {
    let text = "kernel k(a: in f16[N], b: in f16[N], c: out f16[N]) {\n    grid (i in tiles(N, 64));\n    \
        let x = tile Vec<f16, 1, i>;\n    let y = tile Vec<f16, 1, i>;\n    let z = tile Vec<f16, 1, i>;\n    \
        TASSIGN(x, 0x0);\n    TASSIGN(y, 0x80);\n    TASSIGN(z, 0x100);\n    TLOAD(x, a.tile(i));\n    \
        TLOAD(y, b.tile(i));\n    TADD(z, x, y);\n    TSTORE(c.tile(i), z);\n}\n";
    let path = file("bound_sum.tile", text);
    let on = |target: &str, backend: &str| {
        let path = path.display().to_string();
        let words =
            ["run", &path, "k", "--target", target, "--backend", backend, "--random", "5", "--json", "-D", "N=4096"];
        let o = command(&words);
        assert_eq!(o.status, 0, "{target}: {}", o.err);
        serde_json::from_str::<Value>(&o.out).expect("JSON")["outputs"]["c"]["sha256"].as_str().map(str::to_owned)
    };
    let all = [on("hbm-pim", "pim"), on("hbm-pim", "interp"), on("a5", "cpu")];
    assert!(all[0].is_some() && all.iter().all(|hash| *hash == all[0]), "{all:?}");
}

/// A value that another tile was written over is read: the interpreter ends the run, and units are not asked.
#[test]
fn lost_values_of_bound_tiles() {
    let kernel = |places: [u32; 3], body: &str| {
        let [x, y, z] = places;
        format!(
            "kernel k(a: in f16[N], b: in f16[N], c: out f16[N]) {{\n    grid (i in tiles(N, 128));\n    \
             let x, y, z = tile Vec<f16, 1, i>;\n    TASSIGN(x, {x}); TASSIGN(y, {y}); TASSIGN(z, {z});\n    \
             TLOAD(x, a.tile(i)); TLOAD(y, b.tile(i));\n    {body}\n    TSTORE(c.tile(i), z);\n}}\n"
        )
    };
    let cases = [
        ("alias", kernel([0, 256, 0], "TADD(z, x, y); TADD(z, z, x);"), 1),
        ("part", kernel([0, 128, 512], "TADD(z, x, y);"), 1),
        ("once", kernel([0, 256, 0], "TADD(z, x, y);"), 0),
        ("apart", kernel([0, 256, 512], "TADD(z, x, y); TADD(z, z, x);"), 0),
    ];
    for (name, text, status) in cases {
        let path = file(&format!("{name}.tile"), &text).display().to_string();
        for backend in ["interp", "pim"] {
            let words =
                ["run", &path, "k", "--target", "hbm-pim", "--backend", backend, "--random", "3", "-D", "N=1000"];
            let o = command(&words);
            assert_eq!((o.status, o.err.contains("error[PA-1014]")), (status, status == 1), "{name}: {}", o.err);
        }
    }
}

/// What no size mends is refused without sizes; what a condition keeps from happening is left to the launch.
#[test]
fn refusals_without_sizes() {
    let check = |body: &str, target: &str| {
        let text = format!(
            "kernel k(a: in f16[N], c: out f16[N], s: i32 = 0) {{\n    grid (i in tiles(N, 64));\n    let x = \
             Vec(a.tile(i));\n    {body}\n}}\n"
        );
        let path = file("unsized.tile", &text).display().to_string();
        let o = command(&["check", &path, "--target", target]);
        (o.status, o.err)
    };
    let store = "TSTORE(c.tile(i), x);";
    for body in [
        "x = exp(x);",
        "x = x / (x + 1.0);",
        "x = min(x, x * x);",
        "x = max(x, x * 2.0);",
        "for j in 0..2 { x = sqrt(x); }",
    ] {
        let (status, told) = check(&format!("{body} {store}"), "hbm-pim");
        assert!(status == 1 && told.contains("error[E1320]"), "{body}: {status} {told}");
        assert_eq!(told.matches("error[").count(), 1, "{told}");
    }
    for body in ["x = max(x, 0.0);", "x = x * x - 1.0;", "if s > 0 { x = exp(x); }"] {
        let (status, told) = check(&format!("{body} {store}"), "hbm-pim");
        assert!(status == 0 && !told.contains("error["), "{body}: {told}");
    }
    // Without their width rows cannot be read at all; that their maximum is none of a unit's, no width changes.
    let rows = |statement: &str| {
        let text = format!(
            "kernel k(a: in f16[M, N], b: in f16[M], c: out f16[M, N], d: out f16[M]) {{\n    \
             grid (m in tiles(M, 8));\n    {statement}\n}}\n"
        );
        let path = file("unsized_rows.tile", &text).display().to_string();
        let o = command(&["check", &path, "--target", "hbm-pim"]);
        (o.status, o.err)
    };
    for (statement, status) in [
        ("TSTORE(col(d).tile(m, _), rowmax(Vec(a.tile(m, _))));", 1),
        ("TSTORE(c.tile(m, _), Vec(a.tile(m, _)) + Vec(col(b).tile(m, _)));", 1),
        ("TSTORE(col(d).tile(m, _), rowsum(Vec(a.tile(m, _))));", 0),
        ("TSTORE(c.tile(m, _), Vec(a.tile(m, _)) * Vec(col(b).tile(m, _)));", 0),
    ] {
        let (got, told) = rows(statement);
        assert_eq!(
            (got, told.matches("error[E1320]").count()),
            (status, usize::from(status == 1)),
            "{statement}: {told}"
        );
    }
    let (status, told) = check(store, "gddr6-aim");
    assert!(status == 1 && told.contains("error[E1320]") && told.contains("is f16"), "{told}");
}

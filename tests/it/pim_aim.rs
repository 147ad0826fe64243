//! Units with an adder tree: sums of products on devices of random files give the interpreter's bits and keep the
//! rules of their DRAM; what is no such sum is refused with a place; steps are near their bounds.

use crate::engine::command;
use crate::pim_devices::{described, numbers};
use proptest::prelude::*;
use ptoc_pim_sim::dram::Config;
use ptoc_pim_sim::dram::presets::PRESETS;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_aim");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

/// Both orders of operands, rows and columns, several vectors, a line that several share, and a sum of what another
/// launch gave.
const KERNELS: &str = "kernel gemv<const BM = 4>(A: in bf16[M, K], x: in bf16[K], y: out bf16[M]) {
    grid (m in tiles(M, BM));
    TSTORE(col(y).tile(m, _), bf16(rowsum(<<Vec(A.tile(m, _)) | Vec(x.tile(_))>>)));
}
kernel turned<const BM = 16>(A: in bf16[K, M], x: in bf16[K], y: out bf16[M]) {
    grid (m in tiles(M, BM));
    TSTORE(y.tile(m), max(bf16(colsum(<<Vec(col(x).tile(_, _)) | Vec(A.tile(_, m))>>)), 0.0));
}
kernel several<const BM = 4>(A: in bf16[M, K], x: in bf16[2, K], y: out bf16[2, M]) {
    grid (m in tiles(M, BM));
    for b in 0..2 {
        TSTORE(col(y[b, _]).tile(m, _), bf16(rowsum(<<Vec(x[b, _].tile(_)) | Vec(A.tile(m, _))>>)));
    }
}
kernel heads<const BM = 4>(A: in bf16[3, M, K], x: in bf16[3, K], y: out bf16[3, M]) {
    grid (h in 0..3, m in tiles(M, BM));
    TSTORE(col(y[h, _]).tile(m, _), bf16(rowsum(<<Vec(A[h, _, _].tile(m, _)) | Vec(x[h, _].tile(_))>>)));
}
#[on(host)]
kernel halves(x: in bf16[N], y: out bf16[N]) { TSTORE(y.tile(_), bf16(f32(Vec(x.tile(_))) * 0.5)); }
program chain(A: in bf16[M, K], x: in bf16[K], W: in bf16[K, M], y: out bf16[M]) {
    let h, z = tensor bf16[M];
    let g = tensor bf16[K];
    gemv(A, x, h);
    halves(h, z);
    gemv(W, z, g);
    gemv(A, g, y);
}
";

/// The kernels of units that round products, and of those that do not.
static FILES: LazyLock<[String; 2]> = LazyLock::new(|| {
    [("exact.tile", ") * f32("), ("rounds.tile", " * ")].map(|(name, times)| {
        let text = KERNELS.replace("<<", "f32(").replace(">>", ")").replace(" | ", times);
        file(name, &text).display().to_string()
    })
});

fn run(
    target: &str,
    rounds: bool,
    kernel: &str,
    (m, k): (u32, u32),
    backend: &str,
    more: &[&str],
) -> (u8, String, Value) {
    let sizes = [format!("M={m}"), format!("K={k}")];
    let path = &FILES[usize::from(rounds)];
    let mut words = vec!["run", path, kernel, "--target", target, "--backend", backend, "--random", "5", "--json"];
    sizes.iter().for_each(|s| words.extend(["-D", s]));
    words.extend(more);
    let o = command(&words);
    (o.status, o.err, serde_json::from_str(&o.out).unwrap_or_default())
}

/// The interpreter's bits, and a timeline, for which the checker looks at every command.
fn agree(target: &str, rounds: bool, kernel: &str, sizes: (u32, u32)) -> Result<Value, TestCaseError> {
    let trace = file("trace.json", "").with_file_name(format!("{kernel}_{}_{}.json", sizes.0, sizes.1));
    let name = trace.display().to_string();
    let (status, told, meant) = run(target, rounds, kernel, sizes, "interp", &[]);
    prop_assert_eq!(status, 0, "{}", told);
    let (status, told, got) = run(target, rounds, kernel, sizes, "pim", &["--trace", &name]);
    let _ = std::fs::remove_file(trace);
    prop_assert_eq!(status, 0, "{}", told);
    prop_assert!(meant["outputs"]["y"]["sha256"].is_string());
    prop_assert_eq!(&meant["outputs"]["y"]["sha256"], &got["outputs"]["y"]["sha256"], "{} {:?}", kernel, sizes);
    let kinds = got["stats"]["report"]["kinds"].as_object().expect("kinds");
    // What the host moves is nothing of AiM's.
    let units = kinds.iter().filter(|(name, _)| *name == "exec");
    for (kind, factor) in units.filter_map(|(name, k)| Some((name, k["bound"]["factor"].as_f64()?))) {
        prop_assert!(factor >= 1.0, "{} {:?}, {}: {}", kernel, sizes, kind, factor);
    }
    Ok(got)
}

/// A device of the units' kind with a DRAM of its own.
fn device(
    preset: &str,
    numbers: &[(String, u32)],
    (buffer, latency, rounds): (u32, u32, bool),
    channels: u32,
) -> String {
    let unit = format!(
        "kind = \"aim\"\nclock = 500\nlanes = 16\nbanks = 1\noperations = [\"DOT\", \"RELU\"]\nrounding = \"{}\"\n\
         buffer = {buffer}\nlatency = {latency}\nact_weight = 1\n",
        if rounds { "each" } else { "fused" }
    );
    let text = described(preset, numbers, &unit, &format!("stacks = 1\nchannels = {channels}\n"));
    text.replacen("[unit]", "[memory.Vec]\ncapacity = 8388608\n\n[unit]", 1)
}

fn narrow() -> Vec<&'static str> {
    let burst = |name: &str| Config::preset(name).expect("a preset").org.burst_bytes();
    PRESETS.iter().map(|p| p.name).filter(|name| burst(name) == 32).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(12, 60)))]

    #[test]
    fn random_devices_give_the_bits_and_keep_the_rules(
        preset in prop::sample::select(narrow()),
        numbers in numbers(),
        unit in (prop::sample::select(vec![32u32, 64, 256, 1000, 2048, 4096]), 1u32..80, any::<bool>()),
        channels in 1u32..4,
        sizes in (1u32..90, prop_oneof![1u32..40, 1u32..1500]),
        kernel in prop::sample::select(vec!["gemv", "turned", "several", "heads", "chain"]),
    ) {
        let path = file(&format!("{preset}_{}_{}.toml", sizes.0, sizes.1), &device(preset, &numbers, unit, channels));
        let target = path.display().to_string();
        let listed = command(&["targets", &target]);
        prop_assert_eq!(listed.status, 0, "{}", listed.err);
        agree(&target, unit.2, kernel, sizes)?;
        let _ = std::fs::remove_file(path);
    }
}

/// Sizes that divide nothing, on the device that comes with the compiler.
#[test]
fn sizes_of_all_kinds() {
    for sizes in [(1, 1), (17, 3), (33, 1025), (64, 64), (100, 3000)] {
        for kernel in ["gemv", "turned", "several", "heads", "chain"] {
            agree("gddr6-aim", false, kernel, sizes).unwrap_or_else(|e| panic!("{kernel} {sizes:?}: {e}"));
        }
    }
}

/// Rows change within long lines, and hide what goes through the buffer; short lines have copies of it, which are
/// written between the MACs of others; a row stays open for all vectors that fit into it.
#[test]
fn steps_are_near_their_bounds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/aim.tile").display().to_string();
    let sizes = [(1, 1), (1, 1000), (16, 64), (17, 3), (100, 3000), (128, 128), (512, 256), (512, 4096), (2048, 16)];
    let one = sizes.iter().flat_map(|(m, k)| ["gemv", "gemv_t", "neurons"].map(|kernel| (kernel, *m, *k, 1)));
    let vectors = [(64, 64, 8), (256, 200, 3), (512, 1024, 8), (512, 4096, 4), (2048, 64, 8)];
    for (kernel, m, k, b) in one.chain(vectors.map(|(m, k, b)| ("gemvs", m, k, b))) {
        let sizes = [format!("M={m}"), format!("K={k}"), format!("B={b}")];
        let mut words = vec!["run", &path, kernel, "--target", "gddr6-aim", "--timing-only", "--json"];
        let given = if kernel == "gemvs" { &sizes[..] } else { &sizes[..2] };
        given.iter().for_each(|s| words.extend(["-D", s]));
        let o = command(&words);
        assert_eq!(o.status, 0, "{}", o.err);
        let got: Value = serde_json::from_str(&o.out).expect("JSON");
        let factor = got["stats"]["report"]["kinds"]["exec"]["bound"]["factor"].as_f64().expect("a bound");
        assert!((1.0..1.1).contains(&factor), "{kernel} {given:?}: {factor}");
    }
}

/// Each kernel has one thing that no sum of products is.
#[test]
fn what_the_units_do_not_do() {
    let head = |out: &str| {
        format!(
            "kernel k(A: in bf16[M, K], x: in bf16[K], {out}) {{ grid (m in tiles(M, 16)); \
             let v = f32(Vec(x.tile(_))); let a = f32(Vec(A.tile(m, _))); "
        )
    };
    for (n, (body, code, says)) in [
        ("TSTORE(z.tile(m, _), bf16(a + a));", "E1320", "TADD"),
        ("TSTORE(z.tile(m, _), bf16(exp(a)));", "E1320", "TEXP"),
        ("TSTORE(z.tile(m, _), bf16(a * v));", "E1320", "not converted"),
        ("TSTORE(col(y).tile(m, _), bf16(rowsum(a)));", "E1320", "no products"),
        (
            "TSTORE(col(y).tile(m, _), bf16(rowsum(f32(Vec(A.tile(m, _)) * Vec(x.tile(_))))));",
            "E1320",
            "rounded to bf16",
        ),
        ("TSTORE(col(y).tile(m, _), bf16(rowsum(a * v) * 2.0));", "E1320", "TMULS"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = file(
            &format!("refused_{n}.tile"),
            &format!("{}{body} }}\n", head(if body.contains("(z") { "z: out bf16[M, K]" } else { "y: out bf16[M]" })),
        )
        .display()
        .to_string();
        let o = command(&["check", &path, "--target", "gddr6-aim", "-D", "M=64", "-D", "K=64"]);
        assert!(o.status == 1 && o.err.contains(code) && o.err.contains(says), "{body}: {}{}", o.out, o.err);
        assert_eq!(o.err.matches("error[").count(), 1, "{body}: {}", o.err);
    }
    // What depends on no size is told without sizes.
    for (n, (dtype, value, says)) in
        [("bf16", "bf16(exp(v))", "TEXP"), ("bf16", "bf16(v + v)", "TADD"), ("f16", "f16(v)", "is f16")]
            .into_iter()
            .enumerate()
    {
        let text = format!(
            "kernel k(a: in {dtype}[N], y: out {dtype}[N]) {{ grid (n in tiles(N, 64)); let v = f32(Vec(a.tile(n))); \
             TSTORE(y.tile(n), {value}); }}\n"
        );
        let path = file(&format!("any_size_{n}.tile"), &text).display().to_string();
        let o = command(&["check", &path, "--target", "gddr6-aim"]);
        assert!(o.status == 1 && o.err.contains("E1320") && o.err.contains(says), "{value}: {}{}", o.out, o.err);
    }
}

/// A matrix that is there from runs before, and elements behind the end of its lines: what a dead array has left in
/// their bursts counts nothing.
#[test]
fn resident_matrices_and_bursts_that_end_early() {
    let text = "kernel gemv(A: in bf16[M, K], x: in bf16[K], y: out bf16[M]) { grid (m in tiles(M, 16)); \
                TSTORE(col(y).tile(m, _), bf16(rowsum(f32(Vec(A.tile(m, _))) * f32(Vec(x.tile(_)))))); }\n\
                program two(B: in bf16[M, N], u: in bf16[N], A: in bf16[M, K], x: in bf16[K], h: out bf16[M],\n\
                y: out bf16[M]) {\n\
                gemv(B, u, h); gemv(A, x, y); }\n";
    let path = file("two.tile", text).display().to_string();
    let words = ["run", &path, "two", "--target", "gddr6-aim", "-D", "M=64", "-D", "N=32", "-D", "K=19", "--json"];
    // Infinities in the first matrix, whose rows the second one takes.
    let folder = Path::new(&path).parent().expect("a folder");
    let npy = folder.join("b.npy").display().to_string();
    let header = "{'descr': '<u2', 'fortran_order': False, 'shape': (64, 32), }";
    let padded = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((padded.len() as u16).to_le_bytes());
    bytes.extend(padded.as_bytes());
    (0..64 * 32).for_each(|_| bytes.extend(0x7f80u16.to_le_bytes()));
    std::fs::write(&npy, bytes).expect("written");
    let given = format!("B={npy}");
    let shas = |backend: &str, more: &[&str]| {
        let words = [&words[..], &["--backend", backend, "--random", "3", "--in", &given], more].concat();
        let o = command(&words);
        assert_eq!(o.status, 0, "{}", o.err);
        let v: Value = serde_json::from_str(&o.out).expect("JSON");
        // Which NaN the first product gives is not fixed.
        v["outputs"]["y"]["sha256"].clone()
    };
    let meant = shas("interp", &[]);
    assert_eq!(meant, shas("pim", &[]));
    assert_eq!(meant, shas("pim", &["--resident", "A"]));
}

//! What launches on HBM-PIM's units leave unused, told with a change that was tried: no false alarms where kernels fill
//! the device, and each change that is proposed does what is said of it.

use crate::engine::command;
use serde_json::Value;
use std::path::{Path, PathBuf};

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).display().to_string()
}

fn file(name: &str, text: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("pim_usage");
    std::fs::create_dir_all(&folder).expect("a folder for tests");
    let path = folder.join(name);
    std::fs::write(&path, text).expect("written");
    path
}

fn check(path: &str, defs: &[&str]) -> String {
    let mut words = vec!["check", path, "--target", "hbm-pim"];
    defs.iter().for_each(|d| words.extend(["-D", d]));
    let o = command(&words);
    assert_eq!(o.status, 0, "{defs:?}: {}", o.err);
    o.err
}

/// A run for its time: its JSON, and what is told beside it.
fn timed(path: &str, kernel: &str, defs: &[&str]) -> (Value, String) {
    let mut words = vec!["run", path, kernel, "--target", "hbm-pim", "--timing-only", "--json"];
    defs.iter().for_each(|d| words.extend(["-D", d]));
    let o = command(&words);
    assert_eq!(o.status, 0, "{kernel} {defs:?}: {}", o.err);
    (serde_json::from_str(&o.out).expect("JSON"), o.err)
}

/// Cycles of the units' commands.
fn exec(path: &str, kernel: &str, defs: &[&str]) -> f64 {
    timed(path, kernel, defs).0["stats"]["report"]["kinds"]["exec"]["cycles"].as_f64().expect("cycles")
}

fn told(path: &str, kernel: &str, defs: &[&str]) -> String {
    timed(path, kernel, defs).1
}

const ADD: &str = "kernel add<const BN = 256>(a: in f16[N], b: in f16[N], c: out f16[N])
    ensures c[i] == a[i] + b[i]
{
    grid (i in tiles(N, BN));
    TSTORE(c.tile(i), Vec(a.tile(i)) + Vec(b.tile(i)));
}
";

/// The number behind `NAME = ` of a proposal.
fn proposed(told: &str, name: &str) -> String {
    let (_, rest) = told.split_once(&format!("`{name} = ")).unwrap_or_else(|| panic!("{told}"));
    rest.split('`').next().unwrap_or_default().to_owned()
}

/// Too few blocks for the units, and blocks that leave registers empty: what is proposed is as much faster as is said.
#[test]
fn other_sizes_of_blocks() {
    let add = file("add.tile", ADD).display().to_string();
    for (n, bn, code) in [("32768", "2048", "W1301"), ("262144", "32", "W1303"), ("65536", "4096", "W1301")] {
        let defs = [format!("N={n}"), format!("BN={bn}")];
        let told = check(&add, &defs.each_ref().map(String::as_str));
        assert!(told.contains(&format!("warning[{code}]")), "{defs:?}: {told}");
        let better = format!("BN={}", proposed(&told, "BN"));
        let [before, after] = [bn, &better[3..]].map(|bn| exec(&add, "add", &[&defs[0], &format!("BN={bn}")]));
        assert!(after < 0.95 * before, "N={n}: {before} with {bn}, {after} with {better}");
    }
    // Eight rows of the matrix have a block where sixteen leave half of the units without one.
    let gemv = example("hbm_pim.tile");
    let more = told(&gemv, "gemv", &["M=1024", "K=512", "BM=16"]);
    assert!(more.contains("warning[W1301]: `gemv` works on 64 of 128 units"), "{more}");
    assert!(more.contains("less than 1000"), "{more}");
    assert_eq!(proposed(&more, "BM"), "8", "{more}");
    // What saves a few hundred clocks is not worth a word.
    for (kernel, sizes) in [("gemv", ["M=1024", "K=64", "BM=16"]), ("add", ["N=4096", "BN=256", "device.stacks=1"])] {
        let little = told(&gemv, kernel, &sizes);
        assert!(!little.contains("W130"), "{kernel}: {little}");
    }
}

/// Where blocks leave registers empty, and no row is opened twice, it is the turns that are told.
#[test]
fn turns_and_no_rows() {
    let text = ADD.replace("Vec(a.tile(i)) + Vec(b.tile(i))", "max(Vec(a.tile(i)) + Vec(b.tile(i)), 0.0)");
    let text = text.replace("    ensures c[i] == a[i] + b[i]\n", "");
    let path = file("turns.tile", &text).display().to_string();
    let told = check(&path, &["N=262144", "BN=48"]);
    assert!(told.contains("warning[W1303]: `add` turns from reads to writes"), "{told}");
}

/// Where an author's placement opens rows for each burst.
#[test]
fn places_of_the_author() {
    let text = "fn far(N: index) -> layout { ((16, (2, 4), 16, N / 2048)) : ((2@byte, (2@bank, 1@bg), 1@pch, 1@row)) }
kernel k(a: in f16[N] at far(N), b: in f16[N] at far(N), c: out f16[N] at far(N)) {
    grid (i in tiles(N, 16)) on ((2, 4), 16, N / 2048) : ((2@bank, 1@bg), 1@pch, 0);
    TSTORE(c.tile(i), Vec(a.tile(i)) + Vec(b.tile(i)));
}
";
    let path = file("far.tile", text).display().to_string();
    let told = check(&path, &["N=65536"]);
    assert!(told.contains("warning[W1303]") && told.contains("without `at` and `on`"), "{told}");
}

/// Bursts of a few elements.
#[test]
fn thin_bursts() {
    let text = "kernel k(a: in f16[M, N], c: out f16[M, N]) {
    grid (i in tiles(M, 16));
    TSTORE(c.tile(i, _), Vec(a.tile(i, _)) * 2.0);
}
";
    let path = file("thin.tile", text).display().to_string();
    for (columns, lanes) in [("4", 16), ("17", 32)] {
        let told = check(&path, &["M=4096", &format!("N={columns}")]);
        let says = format!("rows of `a` have {columns} elements, and take bursts of {lanes} lanes");
        assert!(told.contains("warning[W1302]") && told.contains(&says), "{told}");
    }
    for columns in ["16", "31", "64"] {
        let told = check(&path, &["M=4096", &format!("N={columns}")]);
        assert!(!told.contains("W1302"), "{told}");
    }
}

/// Sizes that fill the device, and sizes that no other blocks would spread further.
#[test]
fn no_false_alarms() {
    let one: [(&str, &str, &[&str]); 6] = [
        ("hbm_pim.tile", "add", &["N=1048576"]),
        ("hbm_pim.tile", "relu", &["N=262144"]),
        ("hbm_pim.tile", "axpy", &["N=17"]),
        ("hbm_pim.tile", "gemv", &["M=1024", "K=1024"]),
        ("hbm_pim.tile", "row_sums", &["M=4096", "N=256"]),
        ("hbm_gemm.tile", "gemm", &["N=1024", "K=1024", "B=1"]),
    ];
    for (name, kernel, defs) in one {
        let told = told(&example(name), kernel, defs);
        for code in ["W1301", "W1302", "W1303"] {
            assert!(!told.contains(code), "{name} {defs:?}: {told}");
        }
    }
}

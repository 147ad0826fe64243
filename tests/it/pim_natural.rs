//! Kernels for HBM-PIM as anyone writes them: their bits on any size and device, and how far their streams are from
//! what their commands take at least.

use crate::engine::command;
use proptest::prelude::*;
use serde_json::Value;
use std::path::Path;

/// The report of a run, with more words.
fn run(kernel: &str, defs: &[String], more: &[&str]) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("pim/natural.tile").display().to_string();
    let mut words = vec!["run", &path, kernel, "--target", "hbm-pim", "--json"];
    defs.iter().for_each(|d| words.extend(["-D", d]));
    words.extend(more);
    let o = command(&words);
    assert_eq!(o.status, 0, "{kernel} {defs:?}: {}", o.err);
    serde_json::from_str(&o.out).expect("JSON")
}

/// Cycles of a kind of step, and so many times its bound.
fn factors(ran: &Value) -> impl Iterator<Item = (&str, u64, f64)> {
    let kinds = ran["stats"]["report"]["kinds"].as_object().expect("kinds");
    kinds.iter().filter_map(|(name, k)| Some((&name[..], k["cycles"].as_u64()?, k["bound"]["factor"].as_f64()?)))
}

fn definitions(sizes: &str) -> Vec<String> {
    sizes.split(' ').map(str::to_owned).collect()
}

/// Kernels, sizes, and the most that their column commands take, in times of the bound: each may only go down. What is
/// over 1.1 has lines of a few bursts, of which results fill the registers before operands do, or ends of loops that
/// are programs of their own.
const STREAMS: [(&str, &str, f64); 40] = [
    ("bias", "M=16 N=64", 1.1),
    ("bias", "M=256 N=256", 1.1),
    ("bias", "M=100 N=1000", 1.1),
    ("bias", "M=1000 N=100", 1.1),
    ("bias", "M=64 N=4096", 1.1),
    ("fma3", "N=17", 1.1),
    ("fma3", "N=8192", 1.13),
    ("fma3", "N=100000", 1.11),
    ("gate", "M=256 K=256", 1.1),
    ("gate", "M=1024 K=1024", 1.1),
    ("gate", "M=100 K=70", 1.1),
    ("gate", "M=1024 K=64", 1.15),
    ("matvec", "M=1 K=100", 1.1),
    ("matvec", "M=1 K=1000", 1.12),
    ("matvec", "M=2 K=500", 1.1),
    ("matvec", "M=7 K=5000", 1.1),
    ("matvec", "M=12 K=3000", 1.1),
    ("matvec", "M=100 K=1000", 1.1),
    ("matvec", "M=1024 K=128", 1.1),
    ("matvec", "M=1024 K=64", 1.11),
    ("matvec", "M=4096 K=64", 1.19),
    ("matvec", "M=4096 K=16", 1.31),
    ("matvec", "M=1000 K=1000", 1.1),
    ("product", "M=16 K=1024 N=16", 1.1),
    ("product", "M=64 K=256 N=256", 1.1),
    ("product", "M=64 K=64 N=64", 1.3),
    ("product", "M=128 K=32 N=128", 1.31),
    ("product", "M=128 K=16 N=64", 1.25),
    ("product", "M=100 K=100 N=50", 1.42),
    ("rowmean", "M=256 N=256", 1.1),
    ("rowmean", "M=1000 N=100", 1.14),
    ("rowmean", "M=64 N=4096", 1.1),
    ("squares", "M=256 N=256", 1.1),
    ("squares", "M=1000 N=100", 1.11),
    ("vecmat", "K=64 N=64", 1.12),
    ("vecmat", "K=256 N=256", 1.15),
    ("vecmat", "K=1024 N=64", 1.1),
    ("vecmat", "K=1024 N=1024", 1.11),
    ("vecmat", "K=1000 N=100", 1.1),
    ("vecmat", "K=37 N=1000", 1.15),
];

/// `cargo test .. natural_streams -- --nocapture` prints the table.
#[test]
fn natural_streams_against_their_bounds() {
    let mut wrong = Vec::new();
    for (kernel, sizes, most) in STREAMS {
        let ran = run(kernel, &definitions(sizes), &["--timing-only"]);
        for (kind, cycles, factor) in factors(&ran) {
            assert!(factor >= 1.0, "{kernel} {sizes}, {kind}: {factor}");
            if kind == "exec" {
                println!("{kernel:8} {sizes:20} {cycles:8} {factor:.3}");
                if factor > most {
                    wrong.push(format!("{kernel} {sizes}: {factor:.3}, and {most} is stated"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(16, 80)))]

    /// The interpreter's bits, and never less than the bound.
    #[test]
    fn the_bits_of_the_interpreter(
        kernel in prop::sample::select(STREAMS.map(|s| s.0).to_vec()),
        (m, k) in (prop_oneof![1u32..20, 1u32..200], prop_oneof![1u32..40, 1u32..300]),
        n in prop_oneof![1u32..40, 1u32..150],
        refresh in prop::sample::select(vec!["off", "all", "bank"]),
        preset in prop::sample::select(vec!["hbm2_2000", "hbm2_samsung_pim", "hbm3_6400", "lpddr5_6400"]),
    ) {
        let sizes = match kernel {
            "product" => format!("M={m} K={k} N={n}"),
            "matvec" | "gate" => format!("M={m} K={k}"),
            "vecmat" => format!("K={k} N={n}"),
            "fma3" => format!("N={}", m * k),
            _ => format!("M={m} N={k}"),
        };
        let mut defs = definitions(&sizes);
        defs.extend([format!("device.refresh={refresh}"), format!("device.preset={preset}")]);
        let [interp, pim] = ["interp", "pim"].map(|b| run(kernel, &defs, &["--backend", b, "--random", "7"]));
        prop_assert!(pim["outputs"].as_object().is_some_and(|o| !o.is_empty()));
        prop_assert_eq!(&interp["outputs"], &pim["outputs"], "{} {:?}", kernel, defs);
        for (kind, _, factor) in factors(&pim) {
            prop_assert!(factor >= 1.0, "{} {:?}, {}: {}", kernel, defs, kind, factor);
        }
    }
}

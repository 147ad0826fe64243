//! HBM-PIM at the sizes of a language model's layers, and simulation on several threads.

use crate::engine::command;
use serde_json::Value;
use std::path::Path;

fn example(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(name).display().to_string()
}

/// Layers whose blocks were too many statements to follow, and batches. A block that stands for the others is gone
/// through once a round.
#[test]
fn layers_compile() {
    let layers: [(&str, &str, &[&str]); 5] = [
        ("hbm_pim.tile", "gemv", &["M=11008", "K=4096"]),
        ("hbm_pim.tile", "gemv", &["M=4096", "K=11008"]),
        ("hbm_pim.tile", "gemv", &["M=16384", "K=8192"]),
        ("hbm_gemm.tile", "gemm", &["N=16384", "K=8192", "B=1"]),
        ("hbm_gemm.tile", "gemm", &["N=4096", "K=4096", "B=8"]),
    ];
    for (name, kernel, defs) in layers {
        let path = example(name);
        let mut words = vec!["emit", &path, kernel, "--target", "hbm-pim", "--stage", "pim"];
        defs.iter().for_each(|d| words.extend(["-D", d]));
        let o = command(&words);
        assert_eq!(o.status, 0, "{kernel} {defs:?}: {}", o.err);
        // Programs repeat what they do: a few for each time that sums are turned.
        let programs = o.out.lines().filter(|line| line.contains(" crf ")).count();
        assert!(programs <= 64, "{kernel} {defs:?}: {programs} programs");
    }
}

/// Results, commands, times and energies do not depend on the number of threads.
#[test]
fn threads_change_nothing() {
    let runs: [(&str, &str, &str, &[&str]); 5] = [
        ("hbm_pim.tile", "add", "hbm-pim", &["N=70000"]),
        ("hbm_pim.tile", "gemv", "hbm-pim", &["M=1000", "K=520"]),
        ("hbm_gemm.tile", "gemm", "hbm-pim", &["N=1024", "K=512", "B=2"]),
        ("sampling.tile", "transplat", "geopim", &["B=2", "H=8", "W=8", "Q=24", "S=32"]),
        ("sampling.tile", "moved", "geopim", &["B=2", "H=8", "W=8", "C=32", "Q=24", "S=16"]),
    ];
    for (name, kernel, target, defs) in runs {
        let path = example(name);
        let on = |threads: &str| {
            let mut words =
                vec!["run", &path, kernel, "--target", target, "--backend", "pim", "--random", "3", "--json"];
            words.extend(["--threads", threads]);
            defs.iter().for_each(|d| words.extend(["-D", d]));
            let o = command(&words);
            assert_eq!(o.status, 0, "{kernel} {defs:?}: {}", o.err);
            let ran: Value = serde_json::from_str(&o.out).expect("JSON");
            let (outputs, report) = (ran["outputs"].clone(), ran["stats"]["report"].clone());
            assert!(outputs.is_object() && report["cycles"].as_f64() > Some(0.0), "{}", o.out);
            (outputs, report)
        };
        let one = on("1");
        for threads in ["2", "5"] {
            assert_eq!(on(threads), one, "{kernel} {defs:?} on {threads} threads");
        }
    }
}

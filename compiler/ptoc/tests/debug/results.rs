//! Whoever looks on changes nothing: outputs, counts and diagnostics are the same.

use super::call;

/// Kernels of all kinds, with a line on which every tile and loop has been.
const RUNS: [&str; 12] = [
    "calls.tile -D M=8",
    "straight.tile -D M=18 -D N=70",
    "examples/gemm.tile gemm -D M=65 -D N=33 -D K=97",
    "examples/gemm.tile gemm_bias_act -D M=17 -D N=5 -D K=9 -D act=silu",
    "examples/gemm.tile gemm_i8 -D M=33 -D N=65 -D K=127",
    "examples/attention.tile -D H=1 -D M=17 -D N=50 -D D=16 -D BM=16 -D BN=16",
    "examples/split_k.tile matmul_split -D M=8 -D N=8 -D K=130 -D SPLIT=2",
    "examples/softmax.tile softmax -D M=9 -D N=40",
    "examples/layernorm.tile layernorm -D M=9 -D N=40",
    "examples/transpose.tile transpose -D M=9 -D N=40",
    "examples/reduce.tile -D M=9 -D N=40",
    "examples/rmsnorm.tile -D M=9 -D N=40",
];

#[test]
fn a_debugger_changes_no_results() {
    let mut compared = 0;
    for run in RUNS {
        let dir = tempfile::TempDir::new().unwrap();
        let results = |name: &str, extra: &[&str], input: &str| {
            let trace = dir.path().join(name).display().to_string();
            let words = ["run"].into_iter().chain(run.split_whitespace());
            let args: Vec<&str> =
                words.chain(["--random", "5", "--trace", &trace]).chain(extra.iter().copied()).collect();
            call(&args, input, false)
        };
        let plain = results("a", &["--backend", "interp", "--json"], "");
        if plain.0 != 0 {
            // Not every file of examples has one kernel, or these dimensions.
            continue;
        }
        compared += 1;
        let shown = results("b", &["--backend", "interp"], "");
        // Every statement is a stop, with all that can be asked there.
        let all = "info locals\ntiles\nwhere\nstep\n".repeat(200) + "break TSTORE\ncontinue 3\nstep 1000000000\n";
        let stepped = results("c", &["--step"], &all);
        assert_eq!(stepped.0, 0, "{run}: {}", stepped.2);
        assert_eq!(stepped.2, shown.2, "{run}");
        assert!(stepped.1.ends_with(&shown.1), "{run}:\n{}\nis not the end of\n{}", shown.1, stepped.1);
    }
    assert!(compared >= 7, "only {compared} kernels could run");
}

//! `ptoc dram`: golden runs, reports, command traces, and what is wrong with inputs.

use super::Sandbox;
use serde_json::Value;
use std::fs;
use std::path::Path;

macro_rules! snapshot {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($text));
    };
}

impl Sandbox {
    /// Copies a golden file.
    fn golden(&self, name: &str) {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/dram").join(name);
        fs::copy(&from, self.path().join(name)).unwrap_or_else(|e| panic!("{}: {e}", from.display()));
    }

    fn json(&self, name: &str) -> Value {
        serde_json::from_str(&fs::read_to_string(self.path().join(name)).unwrap()).unwrap()
    }

    /// The object that a call prints; the call must succeed and say nothing else.
    fn printed(&self, args: &str) -> Value {
        let output = self.command(args).output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && err.is_empty(), "{args}: {err}");
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// A small trace: two rows of a bank, another bank, a write.
const SMALL: &str = "# a comment\nR 0 0 5 0\nR 0 0 5 1\n\nW 1 2 7 3   # and another\nR 0 0 6 0\n";

#[test]
fn golden_results_of_the_in_order_policy() {
    let s = Sandbox::new();
    s.golden("hbm2_2000.json");
    let golden = s.json("hbm2_2000.json");
    for (trace, results) in golden["results"].as_object().unwrap() {
        s.golden(&format!("{trace}.txt"));
        let want = &results["inorder"];
        for config in ["hbm2_2000", "hbm2_2000.json"] {
            let args = format!("dram {trace}.txt --config {config} --policy inorder --json --commands c.json");
            let got = s.printed(&args);
            for (key, want) in [
                ("last_cmd_tick", "last_cmd_tick"),
                ("commands", "cmds"),
                ("hits", "hits"),
                ("misses", "misses"),
                ("conflicts", "conflicts"),
            ]
            .map(|(key, name)| (key, &want[name]))
            {
                assert_eq!(&got[key], want, "{trace}: {key}");
            }
            let commands = s.json("c.json");
            assert_eq!(commands.as_array().unwrap()[..64], want["first64"].as_array().unwrap()[..], "{trace}");
        }
        let checked = s.printed(&format!("dram {trace}.txt --check-trace c.json --config hbm2_2000 --strict --json"));
        assert_eq!(checked["violations"], 0, "{trace}");
    }
}

#[test]
fn reports() {
    let s = Sandbox::new();
    for name in ["t05_faw_act_per_read.txt", "t06_rw_alternate.txt"] {
        s.golden(name);
    }
    s.file("small.txt", SMALL);
    s.file("none.txt", "# nothing\n");
    s.file("bytes.txt", "R 0\nR 32\nW 0x40\nR 96\n");
    snapshot!(s.runs(&[
        "dram small.txt --config hbm2_2000",
        "dram small.txt --config hbm2_2000 --json",
        "dram none.txt --config hbm2_2000",
        "dram none.txt --config hbm2_2000 --json",
        "dram bytes.txt --config hbm3_6400",
        "dram t05_faw_act_per_read.txt --config hbm2_2000 --policy frfcfs --refresh on",
        "dram t06_rw_alternate.txt --config hbm2_samsung_pim --policy frfcfs --page closed --refresh per-bank",
        "dram t06_rw_alternate.txt --config hbm2_2000 --policy frfcfs --queues 8,4 --drain 0.5,0",
        "dram --presets",
    ]));
    assert!(s.run("dram --presets hbm3_6400").contains("nRCDRD"));
}

#[test]
fn command_traces_are_checked() {
    let s = Sandbox::new();
    s.file("small.txt", SMALL);
    s.file("other.txt", "R 0 0 5 0\nR 0 0 5 1\nR 0 0 5 1\nW 1 2 7 4\nR 0 0 6 0\n");
    assert!(s.run("dram small.txt --config hbm2_2000 --commands good.json --trace p.json").contains("exit 0"));
    // The second RD a tick earlier, a row that is not open, a bank that does not exist.
    s.file(
        "bad.json",
        "[[0,\"ACT\",0,0,5,0],\n [15,\"RD\",0,0,5,0],\n [18,\"RD\",0,0,5,1],\n [30,\"RD\",0,0,9,1],\n \
        [31,\"ACT\",0,7,0,0]]\n",
    );
    s.file("wrong.json", "[[0,\"ACT\",0,0,5],\n [1.5,\"RD\",0,0,5,0],\n [2,\"PRE\",0,0,5,0]]\n");
    s.file("cut.json", "[[0,\"ACT\",0,0,5,0],\n");
    snapshot!(s.runs(&[
        "dram --check-trace good.json",
        "dram small.txt --check-trace good.json --config hbm2_2000 --json",
        "dram other.txt --check-trace good.json --config hbm2_2000",
        "dram --check-trace good.json --config hbm2_samsung_pim --refresh on",
        "dram --check-trace bad.json --config hbm2_2000",
        "dram --check-trace bad.json --json",
        "dram --check-trace bad.json --message-format json",
        "dram --check-trace wrong.json",
        "dram --check-trace cut.json",
        "dram --check-trace missing.json",
    ]));
    let events = s.json("p.json");
    let events = events["traceEvents"].as_array().unwrap();
    assert!(events.iter().any(|e| e["name"] == "row 5" && e["ph"] == "X" && e["tid"] == 3), "{events:?}");
    // Many violations are not all shown.
    let many: Vec<String> = (0..100).map(|n| format!("[{n},\"RD\",0,0,0,0]")).collect();
    s.file("many.json", format!("[{}]", many.join(",")));
    let run = s.run("dram --check-trace many.json --config hbm2_2000");
    assert!(run.contains("199 violations") && run.matches("error[").count() < 30 && run.contains("179 more"), "{run}");
}

#[test]
fn inputs_that_are_wrong() {
    let s = Sandbox::new();
    s.file("small.txt", SMALL);
    s.file(
        "bad.txt",
        "R 0 0 0\nX 0 0 0 0\nR 0 0 0 32\nR 0 4 0 0\nR 0x7fffffff00\nR 1 2 x 3\nR 0 0 0 1 2 3 4 5\nW -1\n",
    );
    s.file("latin1.txt", b"R 0 0 0 0\n# caf\xe9\n");
    s.file("bad.toml", "[org]\nbank = 4\nrow = -1\n[timing_nCK]\nnCL = \"x\"\nnFOO = 3\n");
    s.file("cut.toml", "[org\nbank = 4\n");
    s.file("bad.json", "{\"org\": {\"bank\": 4}, \"timing_nCK\": [1]}\n");
    let preset = s.run("dram --presets hbm2_2000");
    let preset = preset.split_once("-- stdout\n").unwrap().1;
    s.file("energy.toml", format!("{preset}\n[energy]\nidd0_mA = 30\n"));
    s.file("unit.toml", format!("{preset}\n[energy]\nidd0 = 65\n"));
    s.golden("t05_faw_act_per_read.txt");
    s.file("short.toml", preset.replace("nRREFD = 8", "nRREFD = 8\nnRTW = 5"));
    s.file("starved.toml", preset.replace("nREFI = 3900", "nREFI = 100"));
    snapshot!(s.runs(&[
        "dram bad.txt --config hbm2_2000",
        "dram bad.txt --config hbm2_2000 --message-format json",
        "dram latin1.txt --config hbm2_2000",
        "dram missing.txt --config hbm2_2000",
        "dram small.txt --config hbm2_200",
        "dram small.txt --config bad.toml",
        "dram small.txt --config cut.toml",
        "dram small.txt --config bad.json",
        "dram small.txt --config energy.toml",
        "dram small.txt --config unit.toml",
        "dram t05_faw_act_per_read.txt --config starved.toml --refresh on",
        "dram small.txt --config short.toml --json",
        "dram small.txt --config hbm2_2000 --map (row:3)",
        "dram small.txt --config hbm2_2000 --map (",
        "dram --presets hbm",
    ]));
}

#[test]
fn calls_that_are_wrong() {
    let s = Sandbox::new();
    s.file("small.txt", SMALL);
    snapshot!(s.runs(&[
        "dram",
        "dram small.txt",
        "dram --config hbm2_2000",
        "dram small.txt --config hbm2_2000 --policy fifo",
        "dram small.txt --config hbm2_2000 --refresh maybe",
        "dram small.txt --config hbm2_2000 --queues 0,4",
        "dram small.txt --config hbm2_2000 --drain 0.2,0.8",
        "dram small.txt --config hbm2_2000 --strict",
        "dram small.txt --config hbm2_2000 --commands a.json --check-trace a.json",
    ]));
}

/// The list of a configuration that overrides its parameters is held to them.
#[test]
fn an_own_list_of_constraints_is_held_to_the_parameters() {
    let s = Sandbox::new();
    s.golden("hbm2_2000.json");
    s.golden("t03_conflict_onebank.txt");
    let mut config = s.json("hbm2_2000.json");
    config.as_object_mut().unwrap().remove("results");
    config["constraints_override"] = true.into();
    s.file("same.json", config.to_string());
    assert!(!s.run("dram t03_conflict_onebank.txt --config same.json").contains("E1109"));
    // ACT to RD: 15.
    let list = config["constraints"].as_array_mut().unwrap();
    list.iter_mut().find(|c| c[1] == serde_json::json!([0]) && c[2] == serde_json::json!([3, 5])).unwrap()[3] =
        14.into();
    s.file("low.json", config.to_string());
    let run = s.run("dram t03_conflict_onebank.txt --config low.json");
    assert!(run.contains("exit 0") && run.contains("warning[E1109]") && run.contains("tRCD: command 1, RD"), "{run}");
}

#[test]
fn files_appear_whole_or_not_at_all() {
    let s = Sandbox::new();
    s.file("small.txt", SMALL);
    s.file("bad.txt", "R 0 0 0\n");
    let before = s.listing();
    for args in [
        "dram bad.txt --config hbm2_2000 --commands c.json --trace p.json",
        "dram small.txt --config hbm2_2000 --commands c.json --trace no/such/p.json",
        "dram small.txt --config hbm2_2000 --commands c.json --trace c.json",
        "dram small.txt --config nothing --commands c.json",
    ] {
        let run = s.run(args);
        assert!(run.contains("exit 1"), "{run}");
        assert_eq!(s.listing(), before, "{args}");
    }
    assert!(s.run("dram small.txt --config hbm2_2000 --commands c.json --trace p.json").contains("exit 0"));
    assert!(s.path().join("c.json").exists() && s.path().join("p.json").exists());
}

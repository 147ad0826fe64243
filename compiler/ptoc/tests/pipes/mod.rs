//! `ptoc run --schedule`, `--stats` and `--trace` of kernels that order their pipes, and what `ptoc test` does with
//! them.

mod schedules;

use super::Sandbox;
use serde_json::Value;
use std::fs;

/// y = s * x through rings of so many buffers.
const RING: &str = "\
#[sync(manual)]
kernel scale<const N = 2>(x: in f32[R, C], y: out f32[R, C], s: f32)
    ensures y[i, j] == s * x[i, j]
{
    grid (i in tiles(R, 16));
    let loads = ring<MTE2, V>(tile Vec<f32, i, 128>[N]);
    let stores = ring<V, MTE3>(tile Vec<f32, i, 128>[N]);
    for j in tiles(C, 128) {
        let p = loads.acquire().valid(i, j);
        TLOAD(p, x.tile(i, j));
        loads.commit();
        let u = loads.wait().valid(i, j);
        let q = stores.acquire().valid(i, j);
        TMULS(q, u, s);
        loads.release();
        stores.commit();
        TSTORE(y.tile(i, j), stores.wait().valid(i, j));
        stores.release();
    }
}
";

const CALL: &str = "--random 1 -D R=40 -D C=1024 -D s=2.0";

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.file("ring.tile", RING);
    s.file(
        "race.tile",
        RING.replace("        loads.commit();\n", "")
            .replace("loads.wait()", "p")
            .replace("        loads.release();\n", ""),
    );
    s
}

fn json(s: &Sandbox, args: &str) -> Value {
    let output = s.command(args).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The same bits in every order and on the other backend, and the model's time falls with the number of buffers.
#[test]
fn orders_and_buffers() {
    let s = sandbox();
    let cpu = json(&s, &format!("run ring.tile --json {CALL}"));
    assert!(cpu["stats"].get("pipes").is_none());
    let mut cycles = Vec::new();
    for n in 1..4 {
        let of = |order: &str| json(&s, &format!("run ring.tile --json --backend interp {order} -D N={n} {CALL}"));
        let first = of("");
        assert_eq!(first["outputs"], cpu["outputs"]);
        for order in ["program", "late", "random", "random:5"] {
            let other = of(&format!("--schedule {order}"));
            assert_eq!(other["outputs"], first["outputs"], "{order}");
            assert_eq!(other["stats"]["pipes"], first["stats"]["pipes"], "{order}");
        }
        let model = &first["stats"]["pipes"][0];
        assert_eq!((&model["model"], &model["blocks"], &model["cores"]), (&true.into(), &3.into(), &24.into()));
        let loads = model["pipes"].as_array().unwrap().iter().find(|p| p["pipe"] == "MTE2").unwrap();
        assert_eq!(loads["instructions"], 24);
        cycles.push(model["block_cycles"].as_u64().unwrap());
    }
    assert!(cycles[1] < cycles[0] && cycles[2] <= cycles[1], "{cycles:?}");
}

/// Pipes that the compiler orders: two stages are faster than one, and three are no slower.
#[test]
fn pipelines() {
    let s = sandbox();
    let text = "kernel scale(x: in f32[R, C], y: out f32[R, C], s: f32) {
        grid (i in tiles(R, 16));
        pipeline(stages = 2) for j in tiles(C, 128) {
            let p = tile Vec<f32, i, 128>;
            let q = tile Vec<f32, i, 128>;
            TLOAD(p.valid(i, j), x.tile(i, j));
            TMULS(q.valid(i, j), p.valid(i, j), s);
            TSTORE(y.tile(i, j), q.valid(i, j));
        }
    }";
    let mut cycles = Vec::new();
    for n in 1..4 {
        s.file("pipeline.tile", text.replace("stages = 2", &format!("stages = {n}")));
        let plain = json(&s, &format!("run pipeline.tile --json --backend interp {CALL}"));
        assert!(plain["stats"].get("pipes").is_none());
        for order in ["--stats", "--schedule late", "--schedule random:3"] {
            let ordered = json(&s, &format!("run pipeline.tile --json --backend interp {order} {CALL}"));
            assert_eq!(ordered["outputs"], plain["outputs"]);
            cycles.push(ordered["stats"]["pipes"][0]["block_cycles"].as_u64().unwrap());
        }
    }
    assert!(cycles[3] < cycles[0] && cycles[6] <= cycles[3], "{cycles:?}");
    assert!(cycles.chunks(3).all(|n| n[0] == n[1] && n[0] == n[2]), "{cycles:?}");
}

/// More stages than there are flags use as many copies as there are flags, take no longer than those, and are told.
#[test]
fn stages_beyond_the_flags() {
    let s = sandbox();
    let text = "kernel scale(x: in f32[R, C], y: out f32[R, C], s: f32) {
        grid (i in tiles(R, 16));
        pipeline(stages = N) for j in tiles(C, 32) { TSTORE(y.tile(i, j), s * Vec(x.tile(i, j))); }
    }";
    let mut cycles = Vec::new();
    for n in [2, 8, 9, 12] {
        s.file("pipeline.tile", text.replace('N', &n.to_string()));
        let told = s.run("check pipeline.tile");
        assert_eq!(told.contains("warning[W0263]"), n > 8, "{told}");
        let run = json(&s, &format!("run pipeline.tile --json --backend interp --stats {CALL}"));
        cycles.push(run["stats"]["pipes"][0]["block_cycles"].as_u64().unwrap());
    }
    assert!(cycles[1] <= cycles[0] && cycles[2] == cycles[1] && cycles[3] == cycles[1], "{cycles:?}");
}

/// Two loads an iteration and eight iterations under way take more flags than there are.
#[test]
fn flags_that_are_shared_are_listed() {
    let s = sandbox();
    let text = "kernel product<const S = 8>(A: in f16[M, K], B: in f16[K, N], C: out f32[M, N]) {
        grid (m in tiles(M, 32), n in tiles(N, 32));
        let acc = tile Acc<f32, m, n>;
        acc = 0.0;
        pipeline(stages = S) for k in tiles(K, 16) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
        TSTORE(C.tile(m, n), acc);
    }";
    s.file("product.tile", text);
    let line = "# line 5: one flag from MTE2 to MTE1 for 8 iterations, as a2a3 has 8 from one pipe to another\n";
    for (stages, told) in [(2, false), (4, false), (8, true)] {
        let listing = s.run(&format!("emit product.tile --stage sync -D S={stages}"));
        assert_eq!(listing.contains(line), told, "{listing}");
    }
}

#[test]
fn stats_as_text() {
    let s = sandbox();
    let text = s.run(&format!("run ring.tile --stats --backend interp {CALL}"));
    let model = &text[text.find("pipes of").expect("a model")..];
    insta::assert_snapshot!(model);
    let cpu = s.run(&format!("run ring.tile --stats {CALL}"));
    assert!(cpu.contains("with `--backend interp`"), "{cpu}");
}

/// A lane for each pipe of the first block, apart from the phases of the compiler.
#[test]
fn traces() {
    let s = sandbox();
    s.run(&format!("run ring.tile --backend interp --trace t.json {CALL}"));
    let trace: Value = serde_json::from_slice(&fs::read(s.path().join("t.json")).unwrap()).unwrap();
    let events = trace["traceEvents"].as_array().unwrap();
    let lanes: Vec<&str> = (events.iter())
        .filter(|e| e["name"] == "thread_name" && e["pid"] == 2)
        .map(|e| e["args"]["name"].as_str().unwrap())
        .collect();
    assert_eq!(lanes, ["V", "MTE2", "MTE3"]);
    let count = |name: &str| events.iter().filter(|e| e["name"] == name && e["ph"] == "X" && e["pid"] == 2).count();
    assert_eq!((count("TLOAD"), count("TMULS"), count("TSTORE")), (8, 8, 8));
}

/// The page of a run: the block that the trace has, its flags and stalls, beside the source. It is the interpreter's,
/// also where nobody names a backend, and the same each time.
#[test]
fn pages() {
    let s = sandbox();
    let said = s.run(&format!("run ring.tile --target a5 --html p.html {CALL}"));
    assert!(said.contains("exit 0") && said.contains("on interp (a5"), "{said}");
    let page = fs::read_to_string(s.path().join("p.html")).unwrap();
    s.run(&format!("run ring.tile --target a5 --html q.html --trace t.json {CALL}"));
    assert!(page == fs::read_to_string(s.path().join("q.html")).unwrap(), "two runs write two pages");
    let data = page.split("class=\"data\">").nth(1).unwrap().split("</script>").next().unwrap();
    let data: Value = serde_json::from_str(data).unwrap();
    let lanes = data["lanes"].as_array().unwrap();
    let pipes: Vec<&str> = lanes.iter().map(|lane| lane["pipe"].as_str().unwrap()).collect();
    assert_eq!(pipes, ["V", "MTE2", "MTE3"]);
    let count = |key: &str, width: usize| {
        lanes.iter().map(|lane| lane[key].as_array().unwrap().len() / width).collect::<Vec<_>>()
    };
    assert_eq!(count("slices", 5), [8, 8, 8]);
    assert!(count("stalls", 4).iter().all(|n| *n > 0), "{:?}", count("stalls", 4));
    // Each of eight steps waits for a load, a place to store to, and a result; loads wait from the third on, as there
    // are two buffers.
    let signals = data["signals"].as_array().unwrap().len() / 7;
    assert!(signals >= 4 * 8 - 2 * 2, "{signals}");
    let json = json(&s, &format!("run ring.tile --target a5 --backend interp --json {CALL}"));
    let trace: Value = serde_json::from_slice(&fs::read(s.path().join("t.json")).unwrap()).unwrap();
    let of_trace = trace["traceEvents"].as_array().unwrap().iter().filter(|e| e["ph"] == "X" && e["pid"] == 2).count();
    assert_eq!(of_trace, 24);
    assert!(data["cycles"].as_u64() <= json["stats"]["pipes"][0]["block_cycles"].as_u64());
    for wanted in ["ring.tile:13", "for a flag of MTE2", "a model of time, not a measurement", "waits "] {
        assert!(page.contains(wanted), "{wanted}");
    }
    insta::assert_snapshot!(s.runs(&[
        &format!("run ring.tile --backend cpu --html p.html {CALL}"),
        &format!("run ring.tile --target sm90 --html p.html {CALL}"),
        &format!("run ring.tile --html p.html --step {CALL}"),
    ]));
}

/// Perfetto's own format has what the JSON has.
#[test]
fn traces_of_perfetto() {
    let s = sandbox();
    s.run(&format!("run ring.tile --backend interp --trace t.pftrace {CALL}"));
    let bytes = fs::read(s.path().join("t.pftrace")).unwrap();
    // `Trace.packet`, and no JSON.
    assert_eq!(bytes[0], 0x0a);
    for name in ["first block of scale (model)", "TMULS", "MTE3", "ptoc"] {
        assert!(bytes.windows(name.len()).any(|w| w == name.as_bytes()), "{name}");
    }
}

#[test]
fn races_are_the_same_in_every_order() {
    let s = sandbox();
    let call = |order: &str| s.run(&format!("run race.tile --backend interp {order} {CALL}"));
    let text = call("");
    insta::assert_snapshot!(text);
    let errors = |text: String| text.split_once("-- stderr").map(|(_, errors)| errors.to_owned());
    let first = errors(text);
    for order in ["program", "late", "random:1", "random:2"] {
        assert_eq!(errors(call(&format!("--schedule {order}"))), first, "{order}");
    }
}

#[test]
fn test_lines_run_in_every_order() {
    let s = sandbox();
    let line = "// run: scale interp,cpu R=20 C=300 s=2.5 seed=1\n";
    s.file("good_test.tile", format!("{line}{RING}"));
    s.file("bad_test.tile", format!("{line}{}", fs::read_to_string(s.path().join("race.tile")).unwrap()));
    insta::assert_snapshot!(s.runs(&["test good_test.tile", "test bad_test.tile"]));
}

#[test]
fn wrong_calls() {
    let s = sandbox();
    insta::assert_snapshot!(s.runs(&[
        "run ring.tile --schedule late",
        "run ring.tile --backend interp --schedule soon",
        "run ring.tile --backend interp --schedule random:x",
        "run ring.tile --backend interp --schedule late:3",
    ]));
}

/// A kernel with a hazard: refused where nobody watches, as by `check`; the interpreter shows what comes of it.
#[test]
fn hazards_keep_a_kernel_from_the_cpu() {
    let s = sandbox();
    for call in ["check race.tile", "emit race.tile --stage loop"] {
        let told = s.run(call);
        assert!(told.contains("exit 1") && told.contains("error[E056"), "{call}: {told}");
    }
    for backend in ["", "--backend cpu"] {
        let told = s.run(&format!("run race.tile {backend} {CALL}"));
        assert!(told.contains("exit 1") && told.contains("error[E056"), "{backend}: {told}");
        assert!(!told.contains("warning[E056") && !told.contains("stdout"), "{backend}: {told}");
    }
    let note = "an error on other backends; the interpreter runs the kernel";
    let told = s.run(&format!("run race.tile --backend interp {CALL}"));
    assert!(told.contains("warning[E056") && !told.contains("error[E056"), "{told}");
    assert_eq!(told.matches(note).count(), 1, "{told}");
    let told = s.run(&format!("run race.tile --backend interp --schedule late {CALL}"));
    assert!(told.contains("exit 1") && told.contains("error[PA-112") && told.contains(note), "{told}");
    // A `run:` line stands for what `ptoc run` does.
    for (name, line) in [("cpu", "interp,cpu"), ("interp", "interp")] {
        let text = fs::read_to_string(s.path().join("race.tile")).unwrap();
        s.file(&format!("{name}.tile"), format!("// run: scale {line} R=40 C=1024 s=2.0 seed=1\n{text}"));
        let told = s.run(&format!("test {name}.tile"));
        assert_eq!(told.contains("does not compile"), name == "cpu", "{told}");
    }
}

//! `ptoc bench` and `--time-passes`: what is counted is exact, what is timed is only there.

use super::Sandbox;
use ptoc_tensor::{DType, Tensor, npy};
use serde_json::Value;

const KERNELS: &str = "\
/// y = s * x + x
kernel scale<const BM = 16 tune [8, 16, 1024], const BN = 128 tune [64, 128]>(x: in f32[M, N], y: out f32[M, N], s: \
f32 = 2.0)
{
    grid (i in tiles(M, BM), j in tiles(N, BN));
    let t = Vec(x.tile(i, j));
    TSTORE(y.tile(i, j), s * t + t);
}

kernel product<const B = 32 tune [4096]>(a: in f16[M, K], b: in f16[K, N], c: out f32[M, N]) {
    grid (m in tiles(M, B), n in tiles(N, 32));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(K, 32) {
        TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n)));
    }
    TSTORE(c.tile(m, n), acc);
}

kernel twice(x: inout i32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let t = Vec(x.tile(i, j));
    TSTORE(x.tile(i, j), t + t);
}

kernel counted(n: in i32[1], y: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    t = 1.0;
    for k in 0..index(n[0]) {
        t = t + 1.0;
    }
    TSTORE(y.tile(i, j), t);
}

program both(x: in f32[M, N], y: out f32[M, N]) {
    let t = tensor f32[M, N];
    scale(x, t);
    scale(t, y);
}
";

/// A product with a vector for units in memory, whose sums are of f16.
pub(crate) const GEMV: &str = "\
kernel gemv<const BM = 16 tune [4, 8, 16]>(A: in f16[M, K], x: in f16[K], y: out f16[M])
    ensures y[m] == sum<k>(A[m, k] * x[k])
{
    grid (m in tiles(M, BM));
    let v = Vec(x.tile(_));
    TSTORE(col(y).tile(m, _), rowsum(Vec(A.tile(m, _)) * v));
}
";

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.file("k.tile", KERNELS);
    s
}

fn json(s: &Sandbox, args: &str) -> Value {
    let output = s.command(&format!("bench k.tile {args} --seconds 0.01 --json")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Work is that of the valid shapes, whatever the blocks: tails count as what they are.
#[test]
fn work_is_counted() {
    let s = sandbox();
    let work = |args: &str| {
        let report = json(&s, args);
        let n = |field: &str| report["work"][field].as_u64().unwrap_or_else(|| panic!("{report}"));
        let counts = [n("product_flops"), n("product_ints"), n("flops"), n("ints")];
        (counts, report["memory"]["bytes"].as_u64().unwrap())
    };
    assert_eq!(work("scale -D M=37 -D N=201"), ([0, 0, 2 * 37 * 201, 0], 2 * 4 * 37 * 201));
    assert_eq!(work("scale -D M=37 -D N=201 -D BM=8 -D BN=64").0, [0, 0, 2 * 37 * 201, 0]);
    let product = |m: u64, k: u64, n: u64| [2 * m * k * n, 0, 0, 0];
    assert_eq!(work("product -D M=65 -D K=97 -D N=33"), (product(65, 97, 33), 2 * (65 + 33) * 97 + 4 * 65 * 33));
    assert_eq!(work("product -D M=65 -D K=0 -D N=33").0, product(65, 0, 33));
    assert_eq!(work("twice -D M=20 -D N=70"), ([0, 0, 0, 20 * 70], 2 * 4 * 20 * 70));
    assert_eq!(work("both -D M=20 -D N=70").0, [0, 0, 2 * 2 * 20 * 70, 0]);
}

/// Of an argument a launch reads what its windows have, each element once.
#[test]
fn windows_count_what_is_read() {
    let s = sandbox();
    let source = "kernel part(x: in f32[M, N], y: out f32[M, K]) where K <= N {
            grid (i in tiles(M, 8));
            let t = Vec(x[_, 0..64].tile(i, _)) + Vec(x[_, 32..96].tile(i, _));
            TSTORE(y[_, 0..64].tile(i, _), t);
        }
        kernel front(x: in f32[N], y: inout f32[N]) where N >= 128 {
            TSTORE(y[0..64], Vec(x[64..128]));
        }
        kernel column(x: in f32[M, N], j: index, y: out f32[M, 1]) where 0 <= j, j < N {
            grid (i in tiles(M, 8));
            TSTORE(y.tile(i, _), Vec(x[_, j..j + 1].tile(i, _)));
        }
        kernel product(A: in f32[M, K], B: in f32[K, N], C: out f32[M, 64]) where N >= 64 {
            grid (m in tiles(M, 64));
            let acc = tile Acc<f32, m, 64>;
            acc = 0.0;
            for k in tiles(K, 64) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B[_, 0..64].tile(k, _))); }
            TSTORE(C.tile(m, _), acc);
        }";
    s.file("w.tile", source);
    let bytes = |args: &str| {
        let output = s.command(&format!("bench w.tile {args} --seconds 0.01 --json")).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let report: Value = serde_json::from_slice(&output.stdout).unwrap();
        report["memory"]["bytes"].as_u64().unwrap() / 4
    };
    assert_eq!(bytes("part -D M=20 -D N=1000 -D K=64"), 20 * (96 + 64));
    // What is written is the window as well, of an array that was there before; and it is not read.
    assert_eq!(bytes("front -D N=4096"), 64 + 64);
    assert_eq!(bytes("column -D M=20 -D N=300 -D j=7"), 20 + 20);
    assert_eq!(bytes("product -D M=100 -D K=200 -D N=512"), 100 * 200 + 200 * 64 + 100 * 64);
}

/// Numbers of turns that are read from an array are known, unless the launch writes it.
#[test]
fn turns_are_read_from_arrays() {
    let s = sandbox();
    s.file("n.npy", npy::write(&Tensor::from_fn(DType::I32, &[1], |_| 3).unwrap()));
    let report = json(&s, "counted -D M=20 -D N=70 --in n=n.npy");
    assert_eq!(report["work"]["flops"], 3 * 20 * 70, "{report}");
    s.file("w.tile", KERNELS.replace("counted(n: in i32[1]", "counted(n: inout i32[1]"));
    let output = s.command("bench w.tile counted -D M=20 -D N=70 --in n=n.npy --seconds 0.01 --json").output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(report["work"]["unknown"].as_str().unwrap().contains("depends on what the kernel"), "{report}");
    assert!(report["roofline"].is_null() && report["run_ms"]["median"].as_f64().unwrap() > 0.0, "{report}");
}

#[test]
fn a_report_has_all_its_fields() {
    let s = sandbox();
    let report = json(&s, "scale -D M=64 -D N=256 --threads 1");
    let run = &report["run_ms"];
    let at = |name: &str| run[name].as_f64().unwrap();
    assert!(
        0.0 < at("min") && at("min") <= at("median") && at("median") <= at("p90") && at("p90") <= at("p99"),
        "{run}"
    );
    assert!(run["launches"].as_u64().unwrap() >= 5);
    assert_eq!((&report["threads"], &report["blocks"]), (&Value::from(1), &Value::from(8)));
    let phases: Vec<&String> = report["compile_ms"].as_object().unwrap().keys().collect();
    for phase in ["parse", "elaborate", "passes", "machine code"] {
        assert!(phases.iter().any(|p| *p == phase), "{phases:?}");
    }
    assert!(report["roofline"]["fraction"].as_f64().unwrap() > 0.0, "{report}");
    let text = s.run("bench k.tile scale -D M=64 -D N=256 --threads 1 --seconds 0.01");
    for head in
        ["scale on cpu (a2a3): M=64 N=256, 8 blocks, 1 thread", "\ncompile ", "\nlaunch ", "\nwork ", "\nmachine "]
    {
        assert!(text.contains(head), "{text}");
    }
}

/// What is read and written starts from the same array in every launch: doubled a hundred times it would be 0.
#[test]
fn arguments_that_are_changed_are_restored() {
    let s = sandbox();
    let report = json(&s, "twice -D M=16 -D N=64 --threads 1");
    assert!(report["run_ms"]["launches"].as_u64().unwrap() >= 5);
}

#[test]
fn tuning_tries_what_fits() {
    let s = sandbox();
    let report = json(&s, "scale -D M=64 -D N=256 --tune");
    let sizes = |list: &Value| -> Vec<(String, String)> {
        let text = |v: &Value, name: &str| v["values"][name].as_str().unwrap().to_owned();
        let mut found: Vec<_> = list.as_array().unwrap().iter().map(|v| (text(v, "BM"), text(v, "BN"))).collect();
        found.sort();
        found
    };
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    assert_eq!(sizes(&report["measured"]), [pair("16", "128"), pair("16", "64"), pair("8", "128"), pair("8", "64")]);
    assert_eq!(sizes(&report["discarded"]), [pair("1024", "128"), pair("1024", "64")]);
    let discarded = &report["discarded"][0];
    assert!(discarded["code"].as_str().unwrap().starts_with("SA-035"), "{discarded}");
    // A parameter that is given is not open.
    let report = json(&s, "scale -D M=64 -D N=256 -D BN=64 --tune");
    assert_eq!(report["measured"].as_array().unwrap().len(), 2);
    let text = s.run("bench k.tile scale -D M=64 -D N=256 -D BM=8 --tune --seconds 0.01");
    assert!(text.contains("discarded") || text.contains("best: -D BN="), "{text}");
}

/// The best as source: with a single candidate that is not the default, the edit is known.
#[test]
fn the_best_is_shown_as_source() {
    let s = sandbox();
    let text = KERNELS.replace("const BN = 128 tune [64, 128]", "const BN: i64 = 128 tune [64]");
    s.file("one.tile", text);
    let text = s.run("bench one.tile scale -D M=64 -D N=256 -D BM=8 --tune --seconds 0.01");
    let source = text.split_once("as source").expect("it differs").1;
    assert!(
        source.contains("- kernel scale<const BM = 16 tune [8, 16, 1024], const BN: i64 = 128 tune [64]>"),
        "{text}"
    );
    assert!(
        source.contains("+ kernel scale<const BM = 16 tune [8, 16, 1024], const BN: i64 = 64 tune [64]>"),
        "{text}"
    );
}

/// Units in memory are simulated once, since every run takes as many cycles: those of `ptoc run`.
#[test]
fn units_in_memory_are_measured_by_cycles() {
    let s = Sandbox::new();
    s.file("gemv.tile", GEMV);
    let call = |args: &str| {
        let output = s.command(args).output().unwrap();
        assert!(output.status.success(), "{args}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let sizes = "-D M=100 -D K=500 --target hbm-pim";
    let bench: Value = serde_json::from_str(&call(&format!("bench gemv.tile {sizes} --json"))).unwrap();
    let run: Value = serde_json::from_str(&call(&format!("run gemv.tile {sizes} --random 1 --json --stats"))).unwrap();
    assert_eq!(bench["cycles"], run["stats"]["cycles"]);
    assert_eq!(bench["report"], run["stats"]["report"]);
    assert_eq!(bench["verified"]["elements"], 100);
    let text = call(&format!("bench gemv.tile {sizes}"));
    for what in ["gemv on pim (hbm-pim): M=100 K=500, 7 blocks", " of the bound ", "verified 100 elements", "host "] {
        assert!(text.contains(what), "{what}: {text}");
    }
    // Of weights that are there before the run nothing is written.
    let resident: Value = serde_json::from_str(&call(&format!("bench gemv.tile {sizes} --resident A --json"))).unwrap();
    let of = |report: &Value| report["cycles"].as_u64().unwrap();
    assert!(of(&resident) < of(&bench) && resident["report"]["resident"][0]["array"] == "A", "{resident}");
}

#[test]
fn mistakes_of_calls() {
    let s = sandbox();
    s.file(
        "long.tile",
        KERNELS.replace(
            "tune [8, 16, 1024]",
            &format!("tune [{}]", (1..=600).map(|n| n.to_string()).collect::<Vec<_>>().join(", ")),
        ),
    );
    let mut settings = insta::Settings::clone_current();
    settings.set_omit_expression(true);
    settings.bind(|| {
        insta::assert_snapshot!(s.runs(&[
            "bench k.tile twice -D M=16 -D N=64 --tune",
            "bench k.tile scale -D M=16 -D N=64 -D BM=8 -D BN=64 --tune",
            "bench k.tile product -D M=16 -D N=64 -D K=8 --tune",
            "bench long.tile scale -D M=16 -D N=64 --tune --exhaustive",
            "bench k.tile scale -D M=16",
            "bench k.tile",
            "bench k.tile scale -D M=16 -D N=16 --seconds 0",
            "bench k.tile scale -D M=16 -D N=16 --backend interp",
            "bench k.tile scale -D M=16 -D N=16 --resident x",
            "bench k.tile scale -D M=16 -D N=16 -D N=8",
            "bench k.tile scale -D M=16 -D N=16 --in z=z.npy",
        ]));
    });
}

/// The backend of the target is asked, and says what it misses: here there is no card, or there is one and it runs.
#[test]
fn a_gpu_is_measured_or_missed() {
    let s = sandbox();
    for call in ["bench k.tile scale -D M=16 -D N=64 -D BM=8 -D BN=64", "bench k.tile scale -D M=16 -D N=64 --tune"] {
        let text = s.run(&format!("{call} --target sm90 --seconds 0.01"));
        let measured = text.contains("scale on gpu (sm90): ") && text.contains("exit 0");
        let missed = text.contains("error[E0731]") && text.contains("help: ") && text.contains("exit 1");
        assert!(measured || missed, "{text}");
    }
}

#[test]
fn passes_are_timed() {
    let s = sandbox();
    let text = s.run("check k.tile --time-passes");
    let (_, table) = text.split_once("-- stderr").expect("the table is no result");
    for row in ["parse ", "elaborate ", "passes ", "  placement ", "  bytes ", "total "] {
        assert!(table.lines().any(|l| l.starts_with(row) && l.contains(" ms")), "{row}: {table}");
    }
    for call in ["run k.tile scale --random 1 -D M=16 -D N=64", "emit k.tile scale --stage loop", "mem k.tile scale"] {
        let text = s.run(&format!("{call} --time-passes"));
        assert!(text.contains("\npasses ") && text.contains("\ntotal "), "{text}");
    }
}

/// A program compiles a kernel once for all launches of it; what it is elaborated to decides what is the same.
#[test]
fn a_kernel_is_compiled_once() {
    let s = sandbox();
    let text = "\
kernel scale<const F = 2>(x: in f32[M, N], y: out f32[M, N]) {
    grid (i in tiles(M, 8), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * f32(F));
}
program once(x: in f32[M, N], y: out f32[M, N]) {
    scale(x, y);
}
program thrice(x: in f32[M, N], y: out f32[M, N]) {
    let a = tensor f32[M, N];
    let b = tensor f32[M, N];
    scale(x, a);
    scale(a, b);
    scale(b, y);
}
program both(x: in f32[M, N], y: out f32[M, N]) {
    let a = tensor f32[M, N];
    scale<F = 3>(x, a);
    scale(a, y);
}
";
    s.file("launches.tile", text);
    let run = |program: &str| {
        let said =
            s.run(&format!("run launches.tile {program} -D M=9 -D N=70 --random 1 --backend cpu --json --time-passes"));
        let counted = |word: &str| {
            let line = said.lines().find(|l| l.starts_with(word)).unwrap_or_else(|| panic!("{word}: {said}"));
            line.split_once(" x ").map_or(1, |(_, n)| n.trim().parse::<u32>().expect("a number"))
        };
        let (_, bytes) = said.split_once("\"code_bytes\":").unwrap_or_else(|| panic!("{said}"));
        let bytes: u64 = bytes.chars().take_while(char::is_ascii_digit).collect::<String>().parse().expect("a number");
        (counted("passes "), counted("machine code "), counted("run scale "), bytes)
    };
    let (one, three, both) = (run("once"), run("thrice"), run("both"));
    assert_eq!((one.0, one.1, one.2), (1, 1, 1));
    assert_eq!((three.0, three.1, three.2, three.3), (1, 1, 3, one.3));
    assert_eq!((both.0, both.1, both.2), (2, 2, 2));
    assert!(both.3 > one.3);
}

#[test]
fn each_launch_of_a_program_has_its_time_and_share() {
    let s = Sandbox::new();
    let program = "
program layers(x: in f32[M, N], y: out f32[M, N]) {
    let t = tensor f32[3, M, N];
    scale(x, t[0, _, _]);
    for l in 1..3 { scale(t[l - 1, _, _], t[l, _, _]); }
    scale(t[2, _, _], y);
}
";
    s.file("k.tile", format!("{KERNELS}{program}"));
    let report = json(&s, "layers -D M=7 -D N=5");
    let launches = report["launches"].as_array().unwrap();
    let counts: Vec<u64> = launches.iter().map(|l| l["count"].as_u64().unwrap()).collect();
    assert_eq!(counts, [1, 2, 1]);
    let shares: f64 = launches.iter().map(|l| l["share"].as_f64().unwrap()).sum();
    assert!((shares - 1.0).abs() < 1e-9, "{report}");
    let lines: Vec<u64> = launches.iter().map(|l| l["line"].as_u64().unwrap()).collect();
    assert_eq!([lines[1] - lines[0], lines[2] - lines[1]], [1, 1]);
    // 35 elements are no whole cache lines, so windows are copied.
    assert!(report["copies_ms"].as_f64().unwrap() > 0.0, "{report}");
    assert!(json(&s, "scale -D M=7 -D N=5")["launches"].as_array().unwrap().is_empty());
}

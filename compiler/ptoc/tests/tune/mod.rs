//! Stored results of tuning: what one process measures the next one uses.

use super::Sandbox;
use serde_json::Value;
use std::fs;

const SCALE: &str = "\
kernel scale<const BN = 64 tune [32, 64]>(x: in f32[N], y: out f32[N])
    where N % BN == 0
    ensures y[i] == x[i] * 2.0
{
    grid (i in tiles(N, BN));
    TSTORE(y.tile(i), Vec(x.tile(i)) * 2.0);
}
";

/// A sandbox with a directory of results of its own, and a call in it.
fn call(s: &Sandbox, args: &str) -> (bool, String, String) {
    let output = s.command(args).env("PTOC_TUNING", s.path().join("data")).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.success(), text(output.stdout), text(output.stderr))
}

fn good(s: &Sandbox, args: &str) -> (String, String) {
    let (success, out, err) = call(s, args);
    assert!(success, "{args}: {out}{err}");
    (out, err)
}

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.file("scale.tile", SCALE);
    s
}

const TUNE: &str = "bench scale.tile -D N=4096 --tune --seconds 0.01";

/// The fixed result of a test, in place of what was measured.
fn set(s: &Sandbox, best: &str) {
    let path = s.path().join("data/tuning.jsonl");
    let mut line: Value = serde_json::from_str(fs::read_to_string(&path).unwrap().trim()).unwrap();
    line["best"]["BN"] = best.into();
    line["stored"] = 1_795_910_400u64.into();
    fs::write(path, format!("{line}\n")).unwrap();
}

#[test]
fn a_second_process_tunes_nothing() {
    let s = sandbox();
    let (first, said) = good(&s, TUNE);
    assert!(first.contains("2 configurations of BN") && said.contains("stored in "), "{first}{said}");
    let kept = fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 1);
    let (second, _) = good(&s, TUNE);
    let best = |text: &str| text.lines().find(|line| line.starts_with("best: ")).unwrap().to_owned();
    assert!(second.contains("tuned before, nothing was measured"), "{second}");
    assert_eq!(best(&first), best(&second));
    assert_eq!(fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap(), kept);
    let (json, _) = good(&s, &format!("{TUNE} --json"));
    let json: Value = serde_json::from_str(&json).unwrap();
    assert!(json["stored"].is_string() && json["measured"].as_array().unwrap().is_empty(), "{json}");
    // Other sizes, another text and `--retune` are measured.
    for again in [format!("{TUNE} --retune"), TUNE.replace("4096", "2048")] {
        assert!(good(&s, &again).0.contains("2 configurations of BN"), "{again}");
    }
    s.file("scale.tile", SCALE.replace("2.0", "3.0"));
    assert!(good(&s, TUNE).0.contains("2 configurations of BN"));
}

/// On a simulated device configurations are told apart by its cycles: once is enough, the fewest win, and what is
/// stored is of any machine. Weights that are there before are another case.
#[test]
fn units_in_memory_are_tuned_by_cycles() {
    let s = Sandbox::new();
    s.file("gemv.tile", crate::bench::GEMV);
    let tune = "bench gemv.tile -D M=1024 -D K=128 --target hbm-pim --tune";
    let (json, _) = good(&s, &format!("{tune} --json"));
    let json: Value = serde_json::from_str(&json).unwrap();
    let rows = json["measured"].as_array().unwrap();
    let cycles: Vec<u64> = rows.iter().map(|row| row["cycles"].as_u64().unwrap()).collect();
    assert!(rows.len() == 3 && cycles.is_sorted() && json["best"] == rows[0]["values"], "{json}");
    assert!(json["best"]["BM"] == "8" && rows[0]["fastest"] == true && rows[1]["fastest"] == false, "{json}");
    let (again, _) = good(&s, tune);
    assert!(again.contains("tuned before, nothing was measured\nbest: -D BM=8\n"), "{again}");
    let (table, _) = good(&s, &format!("{tune} --retune"));
    assert!(table.contains(&format!(" 8 {:>11} ", cycles[0])) && table.contains("    cycles       time\n"), "{table}");
    let (_, said) = good(&s, "run gemv.tile -D M=1024 -D K=128 --target hbm-pim --random 1");
    assert!(said.contains("tuned: BM=8, stored "), "{said}");
    // Of other weights, so to speak.
    assert!(good(&s, &format!("{tune} --resident A")).0.contains("3 configurations of BM"));
}

/// A program has the lists of the kernels that it launches; what is stored for it is used by its launches.
#[test]
fn a_program_is_tuned_through_its_kernels() {
    let s = Sandbox::new();
    let program = "\nprogram twice(x: in f32[N], y: out f32[N])\n    ensures y[i] == x[i] * 4.0\n{\n    \
        let t = tensor f32[N];\n    scale(x, t);\n    scale(t, y);\n}\n\n\
        program four(x: in f32[N], y: out f32[N]) {\n    let t = tensor f32[N];\n    twice(x, t);\n    \
        scale<BN = 64>(t, y);\n}\n";
    s.file("scale.tile", format!("{SCALE}{program}"));
    let tune = "bench scale.tile twice -D N=4096 --tune --seconds 0.01";
    let (first, said) = good(&s, tune);
    assert!(first.contains("2 configurations of scale.BN") && said.contains("stored in "), "{first}{said}");
    assert!(first.contains("best: -D scale.BN=") && !first.contains("not verified"), "{first}");
    assert!(good(&s, tune).0.contains("tuned before, nothing was measured"));
    let path = s.path().join("data/tuning.jsonl");
    let stored = fs::read_to_string(&path).unwrap().replace("\"scale.BN\":\"64\"", "\"scale.BN\":\"32\"");
    fs::write(&path, stored).unwrap();
    let blocks = |args: &str| {
        let (out, err) = good(&s, &format!("run scale.tile {args} --random 1 -D N=4096 --json"));
        let json: Value = serde_json::from_str(&out).unwrap();
        (json["stats"]["blocks"].as_u64().unwrap(), err.contains("tuned: scale.BN=32, stored "))
    };
    // What is set counts, for launches that do not give it, also in programs that are launched.
    assert_eq!(blocks("twice --verify"), (2 * 128, true));
    assert_eq!(blocks("twice --verify -D scale.BN=64"), (2 * 64, false));
    assert_eq!(blocks("four -D scale.BN=32"), (2 * 128 + 64, false));
    let (success, _, err) = call(&s, "run scale.tile twice --random 1 -D N=4096 -D scale.BM=32");
    assert!(!success && err.contains("did you mean `-D scale.BN=..`?"), "{err}");
    // The tables of `profile` have the same lists.
    let (table, _) = good(&s, "profile scale.tile twice -D N=64,128 -D scale.BN=32,64 --seconds 0.005");
    assert_eq!(table.matches("exact").count(), 4, "{table}");
}

/// What `profile --tune` measures is stored for each size, and neither it nor the tuner measures that again.
#[test]
fn a_table_of_tune_lists_is_stored() {
    let s = sandbox();
    let table = "profile scale.tile -D N=2048,8192 --tune --seconds 0.005";
    let (first, said) = good(&s, table);
    assert!(first.matches("exact").count() == 4 && said.matches("stored in ").count() == 2, "{first}{said}");
    let best = |text: &str| -> Vec<String> {
        let flags = |line: &str| line.split(" (a tie").next().unwrap().to_owned();
        text.lines().filter(|line| line.starts_with("best for")).map(flags).collect()
    };
    let kept = fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap();
    assert_eq!(kept.lines().count(), 2);
    let (second, said) = good(&s, table);
    assert!(second.matches("stored 20").count() == 2 && !second.contains("exact"), "{second}");
    assert!(said.contains("2 rows not shown: the problem was tuned before; `--retune` measures it"), "{said}");
    assert_eq!(best(&first), best(&second));
    assert_eq!(fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap(), kept);
    assert!(good(&s, &TUNE.replace("4096", "2048")).0.contains("tuned before"));
    assert!(good(&s, "run scale.tile --random 1 -D N=8192").1.contains("tuned: BN="));
    // And the other way round.
    good(&s, TUNE);
    assert!(good(&s, "profile scale.tile -D N=4096 --tune --seconds 0.005").0.contains("stored 20"));
    assert_eq!(good(&s, &format!("{table} --retune")).0.matches("exact").count(), 4);
    // Other lists than those of the source are a table, and no tuning.
    let (listed, said) = good(&s, "profile scale.tile -D N=1024 -D BN=32,64 --seconds 0.005");
    assert!(listed.matches("exact").count() == 2 && !said.contains("stored"), "{listed}{said}");
    // In a file the problem is complete.
    good(&s, &format!("{table} --out t.csv"));
    let (_, said) = good(&s, &format!("{table} --out t.csv --resume"));
    assert!(said.contains("4 rows were there already"), "{said}");
}

/// A call that goes on with a table tries what failed again; what was measured stays, whatever is stored.
#[test]
fn what_failed_is_tried_again() {
    let s = Sandbox::new();
    let fails = "kernel some<const BM = 16 tune [16, 32]>(x: in i32[M, N], y: out i32[M, N])\n    \
        ensures y[m, n] == x[m, n]\n{\n    grid (m in tiles(M, BM));\n    let t = Vec(x.tile(m, _));\n    \
        assert(BM == 16 || M < 64, \"no\");\n    TSTORE(y.tile(m, _), t);\n}\n";
    s.file("some.tile", fails);
    let table = "profile some.tile -D M=32,64 -D N=64 --tune --threads 1 --seconds 0.005 --out t.csv";
    let (success, _, err) = call(&s, table);
    assert!(!success, "{err}");
    let path = s.path().join("t.csv");
    let rows = || fs::read_to_string(&path).unwrap().lines().map(str::to_owned).collect::<Vec<_>>();
    let whole = rows();
    let of = |rows: &[String], status: &str| rows.iter().filter(|row| row.contains(&format!(",{status},"))).count();
    assert_eq!((of(&whole, "ok"), of(&whole, "failed")), (3, 1), "{whole:?}");
    let (success, out, err) = call(&s, &format!("{table} --resume"));
    assert!(!success && err.contains("3 rows were there already") && out.contains("failed: "), "{out}{err}");
    assert_eq!(rows(), whole);
    // It failed by mistake: its problem is measured, and its rows take the places of those that were there.
    let mended = whole.iter().map(|row| row.replace(",ok,", ",failed,") + "\n").collect::<String>();
    fs::write(&path, mended).unwrap();
    let (success, _, err) = call(&s, &format!("{table} --resume"));
    assert!(!success && !err.contains("already"), "{err}");
    assert_eq!((rows().len(), of(&rows(), "ok"), of(&rows(), "failed")), (5, 3, 1), "{:?}", rows());
    // What is missing is measured, though it is stored.
    fs::write(&path, whole[..3].iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    call(&s, &format!("{table} --resume"));
    assert_eq!((rows().len(), of(&rows(), "ok"), of(&rows(), "failed")), (5, 3, 1), "{:?}", rows());
}

/// Three tunes agree, or one of them says that there is a tie.
#[test]
fn three_tunes_agree_or_say_tie() {
    let s = Sandbox::new();
    // What `A` is makes no difference, and `B` makes one that no disturbance hides.
    let kernel = "kernel turns<const A = 1 tune [1, 2, 3], const B = 1 tune [1, 400]>\n    \
        (x: in f32[N], y: out f32[N])\n    \
        ensures y[i] == x[i]\n{\n    static_assert(A > 0, \"{A}\");\n    grid (i in tiles(N, 1024));\n    \
        let t = Vec(x.tile(i));\n    for k in 0..B { t = max(t, -t); t = Vec(x.tile(i)); }\n    \
        TSTORE(y.tile(i), t);\n}\n";
    s.file("turns.tile", kernel);
    let reports: Vec<Value> = (0..3)
        .map(|_| {
            let (json, _) = good(&s, "bench turns.tile -D N=1024 --tune --retune --seconds 0.2 --threads 1 --json");
            serde_json::from_str(&json).unwrap()
        })
        .collect();
    let ties = |report: &Value| report["measured"].as_array().unwrap().iter().filter(|m| m["fastest"] == true).count();
    let agree = reports.iter().all(|report| report["best"] == reports[0]["best"]);
    assert!(agree || reports.iter().any(|report| ties(report) > 1), "{reports:?}");
    assert!(reports.iter().all(|report| report["best"]["B"] == "1"), "{reports:?}");
}

/// A kernel that is wrong for `BM` 64.
const OFF: &str = "\
kernel off<const BM = 16 tune [16, 64]>(x: in f32[M, N], y: out f32[M, N])
    ensures y[m, n] == x[m, n]
{
    grid (m in tiles(M, BM));
    let t = Vec(x.tile(m, _));
    if BM == 64 { TSTORE(y.tile(m, _), t + 0.001); } else { TSTORE(y.tile(m, _), t); }
}
";

/// What was stored without a comparison, or under a wider tolerance, is nothing to a call that compares, nor to
/// launches.
#[test]
fn a_result_counts_as_far_as_it_was_verified() {
    let s = Sandbox::new();
    s.file("off.tile", OFF);
    let sizes = "off.tile -D M=64 -D N=64 --threads 1";
    let wrong = |s: &Sandbox| {
        let path = s.path().join("data/tuning.jsonl");
        let mut line: Value = serde_json::from_str(fs::read_to_string(&path).unwrap().trim()).unwrap();
        line["best"]["BM"] = "64".into();
        fs::write(path, format!("{line}\n")).unwrap();
    };
    let run = format!("run {sizes} --random 1 --verify");
    good(&s, &format!("profile {sizes} --tune --no-verify --seconds 0.005"));
    wrong(&s);
    let (_, said) = good(&s, &run);
    assert!(said.starts_with("not tuned: what was stored on 20") && said.contains("was not verified;"), "{said}");
    // Who does not compare takes it.
    let table = format!("profile {sizes} --tune --seconds 0.005");
    assert!(good(&s, &format!("{table} --no-verify")).0.contains("stored 20"));
    let (tuned, _) = good(&s, &format!("bench {sizes} --tune --seconds 0.01"));
    assert!(tuned.contains("discarded: E0713") && tuned.contains("best: -D BM=16"), "{tuned}");
    assert!(good(&s, &run).1.starts_with("tuned: BM=16"));
    // A tolerance that hides it.
    let wide = format!("bench {sizes} --tune --seconds 0.01 --rtol 1 --atol 1");
    let (tuned, _) = good(&s, &format!("{wide} --retune"));
    assert!(!tuned.contains("discarded"), "{tuned}");
    wrong(&s);
    assert!(good(&s, &wide).0.contains("best: -D BM=64"));
    let (_, said) = good(&s, &run);
    assert!(said.contains("was verified with --rtol 1 --atol 1 alone;"), "{said}");
    for narrower in ["--rtol 1 --atol 1e-4", "--atol 1", ""] {
        wrong(&s);
        let (tuned, _) = good(&s, &format!("bench {sizes} --tune --seconds 0.01 {narrower}"));
        assert!(!tuned.contains("tuned before"), "{narrower}: {tuned}");
        good(&s, &format!("{wide} --retune"));
    }
}

/// A kernel that leaves out the last of the products: no configuration is measured, and the error says where.
#[test]
fn a_wrong_product_is_excluded() {
    let s = Sandbox::new();
    let product = "kernel product<const BM = 32 tune [16, 32], const LAST = 0 tune [0, 1]>\n    \
        (a: in f32[M, K], b: in f32[K, N], c: out f32[M, N])\n    ensures c[m, n] == sum<k>(a[m, k] * b[k, n])\n{\n    \
        grid (m in tiles(M, BM), n in tiles(N, 32));\n    let acc = tile Acc<f32, m, n>;\n    acc = 0.0;\n    \
        for k in tiles(K - LAST, 32) { TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n))); }\n    \
        TSTORE(c.tile(m, n), acc);\n}\n";
    s.file("product.tile", product);
    let sizes = "product.tile -D M=32 -D N=32 -D K=33 --seconds 0.01";
    let (tuned, _) = good(&s, &format!("bench {sizes} --tune"));
    let wrong: Vec<&str> = tuned.lines().filter(|line| line.contains("discarded: E0713")).collect();
    assert_eq!(wrong.len(), 2, "{tuned}");
    let places = |line: &str| line.contains("the worst is [") && line.contains("error ") && line.contains("expected ");
    assert!(wrong.iter().all(|line| places(line)) && tuned.contains("-D LAST=0\n"), "{tuned}");
    let (success, _, err) = call(&s, &format!("bench {sizes} --tune -D LAST=1"));
    assert!(!success && err.contains("error[E0716]") && err.contains("the worst is ["), "{err}");
    // A table is measured again, and as red, though the best is stored: by a tuner, or by a table.
    for more in ["", "", "--retune"] {
        let (success, table, _) = call(&s, &format!("profile {sizes} --tune {more}"));
        assert!(!success && table.matches("wrong: E0713").count() == 2 && table.contains("-D LAST=0"), "{table}");
    }
}

const LISTS: &str = "\
kernel scale<const BM = 16 tune [1, 2, 4, 8, 16],
             const BN = 64 tune [32, 64, 128, 256, 512], const U = 0 tune [0, 1, 2]>
    (x: in f32[M, N], y: out f32[M, N])
    ensures y[i, j] == 2 * x[i, j]
{
    static_assert(BM * BN <= 4096, \"a tile of {BM} rows is too large\");
    grid (i in tiles(M, BM), j in tiles(N, BN));
    let t = Vec(x.tile(i, j));
    for k in 0..U {
        t = t * 2.0;
        t = t * 0.5;
    }
    TSTORE(y.tile(i, j), t * 2.0);
}
";

/// Of 75 configurations a search looks at some. By cycles it is the same each time, and comes to what all come to.
#[test]
fn a_search_tries_some_of_many() {
    let s = Sandbox::new();
    s.file("lists.tile", LISTS);
    let table = "profile lists.tile -D M=64 -D N=512 --tune --by cycles --target a5";
    let rows = |args: &str| -> Vec<Value> {
        let json: Value = serde_json::from_str(&good(&s, &format!("{table} --json {args}")).0).unwrap();
        json["rows"].as_array().unwrap().clone()
    };
    let (some, all) = (rows(""), rows("--exhaustive"));
    let of = |rows: &[Value], status: &str| rows.iter().filter(|row| row["status"] == status).count();
    assert_eq!((some.len(), all.len(), of(&all, "skipped"), of(&all, "refused")), (75, 75, 0, 3));
    assert!(of(&some, "skipped") > 20 && of(&some, "ok") > 20, "{some:?}");
    let least = |rows: &[Value]| rows.iter().filter_map(|row| row["cycles"].as_u64()).min().unwrap();
    let fastest = some.iter().find(|row| row["fastest"] == true).unwrap();
    assert_eq!((least(&some), fastest["cycles"].as_u64().unwrap()), (least(&all), least(&all)));
    assert_eq!(rows(""), some);
    let (text, said) = good(&s, table);
    assert!(said.contains(" rows not shown: the search did not look at it") && !text.contains("skipped"), "{said}");
    // By the clock.
    let tune = "bench lists.tile -D M=64 -D N=512 --tune --seconds 0.02 --threads 1";
    let json: Value = serde_json::from_str(&good(&s, &format!("{tune} --json")).0).unwrap();
    let search = &json["search"];
    assert!(search["configurations"] == 75 && search["tried"].as_u64().unwrap() < 75, "{search}");
    assert!(search["starts"] == 4 && search["optima"].as_u64().unwrap() > 0, "{search}");
    let (text, _) = good(&s, &format!("{tune} --retune --exhaustive"));
    assert!(text.contains("75 configurations of BM, BN, U") && !text.contains("search: "), "{text}");
    assert_eq!(text.matches("discarded: E0302").count(), 3, "{text}");
}

/// What the model of time leaves no hope for is not measured, by a margin that is said.
#[test]
fn the_model_of_time_prunes() {
    let s = Sandbox::new();
    s.file("lists.tile", LISTS);
    let tune = "bench lists.tile -D M=64 -D N=512 -D BN=64 -D U=0 --tune --retune --seconds 0.01";
    let dropped = |args: &str| -> Vec<String> {
        let json: Value = serde_json::from_str(&good(&s, &format!("{tune} --json {args}")).0).unwrap();
        let discarded = json["discarded"].as_array().unwrap().iter().filter(|d| d["code"] == "E0770");
        discarded.map(|d| format!("{}: {}", d["values"]["BM"], d["message"])).collect()
    };
    // Without a target that is asked for, and with `off`, the clock alone counts.
    assert!(dropped("").is_empty() && dropped("--target a5 --prune off").is_empty());
    let by_two = dropped("--target a5");
    assert_eq!(by_two.len(), 3, "{by_two:?}");
    assert!(by_two[0].starts_with("\"1\": ") && by_two[0].contains(" cycles by the target's model of time, "));
    assert!(by_two[0].contains(" of -D BM=16; the margin is 2"), "{by_two:?}");
    assert!(dropped("--target a5 --prune 1").len() == 4 && dropped("--target a5 --prune 4").len() < 3);
    let table = "profile lists.tile -D M=64 -D N=512 -D BN=64 -D U=0 -D BM=1,16 --seconds 0.01 --target a5";
    assert!(!good(&s, table).0.contains("E0770"));
    let (text, _) = good(&s, &format!("{table} --prune 2"));
    assert!(text.contains("refused: E0770") && text.contains("best: -D BM=16"), "{text}");
}

#[test]
fn launches_use_what_is_stored_and_say_so() {
    let s = sandbox();
    good(&s, TUNE);
    set(&s, "32");
    let said = "tuned: BN=32, stored 2026-11-29";
    let run = "run scale.tile --random 1 --verify -D N=";
    let (_, err) = good(&s, &format!("{run}4096"));
    assert!(err.starts_with(said), "{err}");
    assert!(good(&s, &format!("{run}3200")).1.contains(said), "a size of the same class");
    assert!(!good(&s, &format!("{run}2048")).1.contains("tuned"), "a size of another class");
    assert!(!good(&s, &format!("{run}4096 -D BN=64")).1.contains("tuned"), "what is given wins");
    assert!(!good(&s, &format!("{run}4096 --backend interp")).1.contains("tuned"), "another backend");
    assert!(good(&s, "bench scale.tile -D N=4096 --seconds 0.01").1.contains(said));
    let blocks = |args: &str| {
        let json: Value = serde_json::from_str(&good(&s, args).0).unwrap();
        json["stats"]["blocks"].clone()
    };
    assert_eq!(blocks(&format!("{run}4096 --json")), 128);
    assert_eq!(blocks(&format!("{run}4096 --json -D BN=64")), 64);
    for (options, list) in [("--vectors 128", "N=4096 --vectors 128 on"), ("--exact", "N=4096 --exact on")] {
        assert!(!good(&s, &format!("{run}4096 {options}")).1.contains("tuned"), "{options}");
        assert!(good(&s, &format!("{TUNE} {options}")).0.contains("2 configurations of BN"), "{options}");
        assert!(good(&s, &format!("{run}4096 {options}")).1.contains("tuned: BN="), "{options}");
        assert!(good(&s, "tune --list").0.contains(list), "{list}");
    }
    // A result for another text is told, and not used.
    s.file("scale.tile", SCALE.replace("i] * 2.0", "i] * 3.0").replace(") * 2.0", ") * 3.0"));
    let (_, err) = good(&s, &format!("{run}4096"));
    assert!(err.starts_with("not tuned: `scale` has changed since 2026-11-29, when BN=32 was stored;"), "{err}");
    assert_eq!(blocks(&format!("{run}4096 --json")), 64);
}

#[test]
fn a_result_from_the_future_is_replaced() {
    let s = sandbox();
    good(&s, TUNE);
    let path = s.path().join("data/tuning.jsonl");
    let mut line: Value = serde_json::from_str(fs::read_to_string(&path).unwrap().trim()).unwrap();
    line["stored"] = 4_107_542_400u64.into();
    fs::write(&path, format!("{line}\n")).unwrap();
    good(&s, &format!("{TUNE} --retune"));
    let (again, _) = good(&s, TUNE);
    assert!(again.contains("tuned before") && !again.contains("stored 2100"), "{again}");
}

#[test]
fn results_move_between_directories() {
    let s = sandbox();
    good(&s, TUNE);
    set(&s, "32");
    let (list, _) = good(&s, "tune --list");
    assert!(list.contains("scale N=4096 on cpu (a2a3): BN=32") && list.contains("stored 2026-11-29"), "{list}");
    assert!(good(&s, "tune --export all.jsonl").0.starts_with("1 result written to all.jsonl"));
    assert!(good(&s, "tune other --list").0.starts_with("no results in "));
    assert!(good(&s, "tune other --clear").0.starts_with("0 results dropped"));
    assert!(good(&s, "tune --clear").0.starts_with("1 result dropped"));
    assert!(good(&s, "tune --list").0.starts_with("no results in "));
    assert!(good(&s, "tune --import all.jsonl all.jsonl").0.starts_with("1 result added to "));
    assert!(good(&s, "tune --import all.jsonl").0.contains("0 replaced, 1 not newer than what was there"));
    assert_eq!(good(&s, "tune --list").0, list);
    let json: Value = serde_json::from_str(&good(&s, "tune --list --json").0).unwrap();
    assert_eq!(json["best"]["BN"], "32");
}

/// What takes thousands of times as long as another is not measured, and the report says so; a launch that would go on
/// for a million times as long is ended.
#[test]
fn what_takes_too_long_is_given_up() {
    let s = Sandbox::new();
    let slow = "kernel slow<const TURNS = 1 tune [1, 20000, 4000000, 2]>(x: in f32[N], y: out f32[N])
    ensures y[i] == y[i]
{
    grid (i in tiles(N, 64));
    let t = Vec(x.tile(i));
    for k in 0..TURNS { TMULS(t, t, 0.999); }
    TSTORE(y.tile(i), t);
}
";
    s.file("slow.tile", slow);
    let (tuned, _) = good(&s, "bench slow.tile -D N=4096 --tune --seconds 0.01 --threads 1");
    let given_up: Vec<&str> = tuned.lines().filter(|line| line.contains("discarded: E0771")).collect();
    assert_eq!(given_up.len(), 2, "{tuned}");
    assert!(given_up.iter().any(|line| line.contains("a launch takes") && line.contains(" times the ")), "{tuned}");
    assert!(given_up.iter().any(|line| line.contains("a launch was ended after 100")), "{tuned}");
    assert!(tuned.contains("2 configurations") || tuned.contains("best: "), "{tuned}");
    // It is no failure: the best is stored, and a table by a search says the same.
    let (again, _) = good(&s, "bench slow.tile -D N=4096 --tune --seconds 0.01 --threads 1");
    assert!(again.contains("tuned before, nothing was measured"), "{again}");
}

#[test]
fn wrong_calls() {
    let s = sandbox();
    s.file("no.jsonl", "{\"version\":1}\n");
    s.file("data/tuning.jsonl", "nonsense\n");
    insta::assert_snapshot!(s.runs(&["tune", "tune --list --clear", "tune --list", "bench scale.tile --retune"]));
    let place = s.path().display().to_string();
    // A launch goes on, and so does all that needs no broken line.
    let (_, err) = good(&s, "run scale.tile --random 1 -D N=64");
    assert!(err.contains("warning[W0769]: line 1 of"), "{err}");
    let told: Vec<String> = ["tune --list", "tune --import no.jsonl", "tune --import none.jsonl", "tune --clear"]
        .iter()
        .map(|args| {
            let (_, out, err) = call(&s, args);
            format!("$ ptoc {args}\n{out}{err}").replace(&place, "DIRECTORY")
        })
        .collect();
    insta::assert_snapshot!("damaged", told.concat());
}

/// Results beside a broken line are used, stored and dropped.
#[test]
fn a_broken_line_stands_in_nobodys_way() {
    let s = sandbox();
    s.file("data/tuning.jsonl", "nonsense\n");
    good(&s, TUNE);
    assert!(good(&s, TUNE).0.contains("tuned before"));
    let (_, err) = good(&s, "run scale.tile --random 1 -D N=4096");
    assert!(err.contains("warning[W0769]: line 2 of") && err.contains("tuned: BN="), "{err}");
    assert!(good(&s, "tune scale --clear").0.starts_with("1 result dropped"));
    assert_eq!(fs::read_to_string(s.path().join("data/tuning.jsonl")).unwrap(), "nonsense\n");
    assert!(good(&s, "tune --clear").0.starts_with("0 results, and 1 broken line, dropped"));
    assert!(good(&s, "tune --list").1.is_empty());
}

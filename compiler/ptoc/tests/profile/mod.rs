//! `ptoc profile`: which rows there are, which kernels are told to be wrong, and what is on disk after an interruption.
//! Numbers are those of the list of capabilities that ptoc is held to.

use super::Sandbox;
use serde_json::Value;
use std::collections::HashSet;
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// A kernel, one that is wrong for every size, and one that is wrong where `B` is 32.
const KERNELS: &str = "\
kernel scale<const B = 16 tune [8, 16, 32], type T = f32>(x: in T[M, N], y: out T[M, N])
    ensures y[i, j] == 2 * x[i, j]
{
    grid (i in tiles(M, B), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * 2);
}

kernel wrong<const B = 16>(x: in f32[M, N], y: out f32[M, N])
    ensures y[i, j] == 2 * x[i, j]
{
    grid (i in tiles(M, B), j in tiles(N, 64));
    if B == 32 {
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * 2.001);
    } else {
        TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * 2.0);
    }
}
";

fn sandbox() -> Sandbox {
    let s = Sandbox::new();
    s.file("k.tile", KERNELS);
    s
}

/// Status, standard output, and standard error of a call.
fn profile(s: &Sandbox, args: &str) -> (Option<i32>, String, String) {
    let output = s.command(&format!("profile k.tile {args} --seconds 0.005 --threads 1")).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    (output.status.code(), text(&output.stdout), text(&output.stderr))
}

fn json(s: &Sandbox, args: &str) -> Value {
    let (_, out, err) = profile(s, &format!("{args} --json"));
    serde_json::from_str(&out).unwrap_or_else(|e| panic!("{e}: {out}{err}"))
}

/// Values of the rows, with their status.
fn rows(report: &Value) -> Vec<String> {
    let text = |v: &Value| v.as_str().unwrap().to_owned();
    let row = |row: &Value| {
        let values: Vec<String> = row["values"].as_object().unwrap().values().map(text).collect();
        format!("{} {}", values.join(" "), text(&row["status"]))
    };
    report["rows"].as_array().unwrap().iter().map(row).collect()
}

#[test]
fn row_90_ranges_and_lists() {
    let s = sandbox();
    let all = "scale -D M=64:128:64 -D N=64:200:*3 -D B=8,16 --enumerate";
    let report = json(&s, all);
    let expected = [
        "64 64 8 listed",
        "64 64 16 listed",
        "64 192 8 listed",
        "64 192 16 listed",
        "128 64 8 listed",
        "128 64 16 listed",
        "128 192 8 listed",
        "128 192 16 listed",
    ];
    assert_eq!(rows(&report), expected);
    // A constant is a configuration, wherever it stands.
    assert_eq!(rows(&json(&s, "scale -D B=8,16 -D M=64:128:64 -D N=64:200:*3 --enumerate")), expected);
    let (status, out, _) = profile(&s, all);
    assert_eq!((status, out.lines().count()), (Some(0), 1 + 8), "{out}");
    // `tune` lists, and whole configurations.
    assert_eq!(rows(&json(&s, "scale -D M=64 -D N=64 --tune --enumerate")), ["8 listed", "16 listed", "32 listed"]);
    s.file("c.csv", "B,T\n8,f16\n32,f32\n");
    let report = json(&s, "scale -D M=64 -D N=64,128 --configurations c.csv --enumerate");
    assert_eq!(rows(&report), ["64 8 f16 listed", "64 32 f32 listed", "128 8 f16 listed", "128 32 f32 listed"]);
}

#[test]
fn a_dry_run_says_what_is_refused() {
    let s = sandbox();
    let report = json(&s, "scale -D M=64 -D N=64 -D B=16,1024 --dry-run");
    assert_eq!(rows(&report), ["16 compiles", "1024 refused"]);
    let refused = &report["rows"][1];
    assert!(refused["code"].as_str().unwrap().starts_with("SA-035"), "{refused}");
    assert!(report["rows"][0]["launches"].is_null(), "{report}");
}

/// An array beside `ensures`, or in its place: for the problem that it fits, and as `ptoc run` compares.
#[test]
fn results_are_compared_with_an_array() {
    let s = sandbox();
    s.file("k.tile", KERNELS.replace("    ensures y[i, j] == 2 * x[i, j]\n", ""));
    s.run("run k.tile wrong -D M=64 -D N=64 -D B=16 --random 1 --out y=y.npy");
    let sizes = "wrong -D M=64 -D N=64 -D B=16,32 --expect y=y.npy";
    let (status, out, err) = profile(&s, sizes);
    assert!(status == Some(1) && out.contains("exact"), "{out}{err}");
    let wrong = out.lines().find(|line| line.contains("wrong: ")).unwrap_or_else(|| panic!("{out}"));
    assert!(wrong.contains("`y` is not `y.npy`: ") && wrong.trim_start().starts_with("32"), "{wrong}");
    assert_eq!(rows(&json(&s, &format!("{sizes} --rtol 0.01"))), ["16 ok", "32 ok"]);
    // Other sizes are refused with the error of `ptoc run`, and so is what names no result.
    let report = json(&s, "wrong -D M=64,128 -D N=64 -D B=16 --expect y=y.npy");
    assert_eq!(rows(&report), ["64 ok", "128 refused"]);
    let refused = s.run("run k.tile wrong -D M=128 -D N=64 -D B=16 --random 1 --expect y=y.npy");
    let (code, message) = (report["rows"][1]["code"].as_str().unwrap(), report["rows"][1]["message"].as_str().unwrap());
    assert!(refused.contains(&format!("error[{code}]: {message}")), "{refused}");
    let (status, out, err) = profile(&s, "wrong -D M=64 -D N=64 --expect x=y.npy");
    assert!(status == Some(1) && out.is_empty() && err.matches("error[").count() == 1, "{out}{err}");
    let (status, _, err) = profile(&s, "wrong -D M=64 -D N=64 --expect y=y.npy --no-verify");
    assert!(status == Some(2), "{err}");
}

/// Of a table that is read by number a launch moves what it finds; a kernel that memory bounds has a rate of bytes.
#[test]
fn a_gather_moves_what_it_finds() {
    let s = Sandbox::new();
    let kernel = "kernel gather(table: in f32[R, C], row: in i32[P], y: out f32[P, C])\n    \
        where 0 <= row[p] && row[p] < R\n    ensures y[p, c] == table[row[p], c]\n{\n    \
        grid (p in tiles(P, 16), c in tiles(C, 64));\n    \
        let first = Vec(col(row).tile(p, _)) * i32(C);\n    let t = tile Vec<f32, p, c>;\n    \
        MGATHER(t, table, first + iota(1, c));\n    TSTORE(y.tile(p, c), t);\n}\n\n\
        kernel by_row(table: in f32[R, C], row: in i32[P], y: out f32[P, C])\n    \
        where 0 <= row[p] && row[p] < R\n    ensures y[p, c] == table[row[p], c]\n{\n    \
        grid (p in 0..P);\n    TSTORE(y[p, _].tile(_), Vec(table[index(row[p]), _].tile(_)));\n}\n";
    s.file("k.tile", kernel);
    for name in ["gather", "by_row"] {
        let bytes = |rows: u32| {
            let report = json(&s, &format!("{name} -D R={rows} -D C=64 -D P=16"));
            report["rows"][0]["bytes"].as_u64().unwrap_or_else(|| panic!("{report}"))
        };
        let own = 16 * 4 + 16 * 64 * 4;
        // 16 rows of the table are read, or all of it.
        assert_eq!((bytes(100_000), bytes(8)), (own + 16 * 64 * 4, own + 8 * 64 * 4), "{name}");
        let measured = s.command(&format!("bench k.tile {name} -D R=100000 -D C=64 -D P=16 --seconds 0.01 --json"));
        let report = { measured }.output().unwrap();
        let report: Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["memory"]["bytes"], own + 16 * 64 * 4, "{report}");
        let of_limit = report["roofline"]["fraction"].as_f64().unwrap();
        assert!(of_limit < 1.0, "{report}");
    }
    let row = json(&s, "gather -D R=100000 -D C=64 -D P=16");
    let (_, text, _) = profile(&s, "gather -D R=100000 -D C=64 -D P=16");
    assert_eq!(row["rows"][0]["bound"] == "memory", text.contains("B/s"), "{text}{row}");
}

/// Limits that are measured by code without optimisations are none, and that is said; cycles have none.
#[test]
fn a_debug_build_says_so() {
    let s = sandbox();
    let said = |args: &str| profile(&s, &format!("scale -D M=64 -D N=64 {args}")).2.contains("a debug build of ptoc");
    assert_eq!((said(""), said("--by cycles --target a5")), (cfg!(debug_assertions), false));
}

#[test]
fn row_91_a_wrong_kernel_is_not_measured() {
    let s = sandbox();
    let (status, out, err) = profile(&s, "wrong -D M=64 -D N=64 -D B=16,32");
    assert_eq!(status, Some(1), "{out}{err}");
    let wrong = out.lines().find(|line| line.contains("wrong:")).unwrap_or_else(|| panic!("{out}"));
    assert!(wrong.trim_start().starts_with("32"), "{out}");
    // With its error, and where it is.
    assert!(wrong.contains("E0713") && wrong.contains("the worst is [") && wrong.contains("error 0.0"), "{out}");
    assert!(out.contains("exact") && out.contains("best: -D B=16"), "{out}");
    // A tolerance is honoured.
    let report = json(&s, "wrong -D M=64 -D N=64 -D B=16,32 --rtol 0.01");
    assert_eq!(rows(&report), ["16 ok", "32 ok"]);
    let error = report["rows"][1]["max_error"].as_f64().unwrap();
    assert!(error > 0.0 && report["rows"][0]["max_error"] == 0.0, "{report}");
    let report = json(&s, "wrong -D M=64 -D N=64 -D B=32 --no-verify");
    assert!(report["rows"][0]["status"] == "ok" && report["rows"][0]["compared"].is_null(), "{report}");
    // The tuner crowns none either.
    let tuned = s.command("bench k.tile wrong -D M=64 -D N=64 --seconds 0.01 --tune").output().unwrap();
    assert!(!tuned.status.success(), "nothing to tune");
    s.file("t.tile", KERNELS.replace("wrong<const B = 16>", "wrong<const B = 16 tune [16, 32]>"));
    let tuned = s.run("bench t.tile wrong -D M=64 -D N=64 --seconds 0.01 --tune");
    assert!(tuned.contains("discarded") && tuned.contains("best: -D B=16"), "{tuned}");
}

#[test]
fn row_92_the_best_of_each_problem() {
    let s = sandbox();
    let report = json(&s, "scale -D M=64,128 -D N=64 -D B=8,16,32 --top 2 --by cycles");
    let cycles = |row: &Value| row["cycles"].as_u64().unwrap();
    let rows = report["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.chunks(2).all(|two| cycles(&two[0]) <= cycles(&two[1])), "{report}");
    let (_, out, _) = profile(&s, "scale -D M=64,128 -D N=64 -D B=8,16,32 --by cycles");
    assert!(out.contains("best for M=64: -D B=") && out.contains("best for M=128: -D B="), "{out}");
}

/// The configurations of a `tune` list by simulated cycles: the same one is the fastest each time.
#[test]
fn row_89_the_fastest_by_cycles() {
    let s = sandbox();
    let call = || profile(&s, "scale -D M=64 -D N=64 --tune --by cycles --target a5");
    let (status, out, err) = call();
    assert_eq!(status, Some(0), "{err}");
    let cycles: Vec<u64> = out.lines().filter_map(|l| l.split_whitespace().nth(1)?.parse().ok()).collect();
    assert_eq!(cycles.len(), 3, "{out}");
    let best = (0..3).min_by_key(|n| cycles[*n]).unwrap();
    assert!(out.contains(&format!("best: -D B={}", ["8", "16", "32"][best])), "{out}");
    assert!((0..2).all(|_| call().1 == out));
}

/// Of those that tie the source's own values stay, however the others are named.
#[test]
fn the_defaults_stay_in_a_tie() {
    let s = Sandbox::new();
    let kernel = "kernel same<const A = 2 tune [1, 2, 3], const B = 16>(x: in f32[N], y: out f32[N])\n    \
        ensures y[i] == x[i]\n{\n    static_assert(A > 0, \"{A}\");\n    grid (i in tiles(N, 64));\n    \
        TSTORE(y.tile(i), Vec(x.tile(i)));\n}\n\n\
        program one(x: in f32[N], y: out f32[N])\n    ensures y[i] == x[i]\n{\n    same(x, y);\n}\n";
    s.file("k.tile", kernel);
    s.file("c.csv", "A,B\n3,16\n0x2,0x10\n");
    let stay = |n| format!(" (a tie of {n}: the defaults are among them, and stay)");
    for (args, best) in [
        ("same -D A=3,2,1", format!("best: -D A=2{}", stay(3))),
        ("same --tune -D B=8,16", format!("best: -D B=16 -D A=2{}", stay(6))),
        ("same --configurations c.csv", format!("best: -D A=0x2 -D B=0x10{}", stay(2))),
        ("one -D same.A=1:3", format!("best: -D same.A=2{}", stay(3))),
        ("same -D A=3,1", "best: -D A=3 (a tie of 2: the first of them)".to_owned()),
    ] {
        let (status, out, err) = profile(&s, &format!("{args} -D N=64 --by cycles --target a5"));
        assert!(status == Some(0) && out.contains(&best), "{args}: {out}{err}");
    }
}

/// Units in memory are measured by cycles without being told, and their sums in f16 are held to what roundings come to:
/// one that lacks an addend is told.
#[test]
fn sums_of_units_are_right() {
    let s = sandbox();
    s.file("k.tile", crate::bench::GEMV);
    let (status, out, err) = profile(&s, "gemv -D M=1024 -D K=512,1024 --target hbm-pim");
    assert!(status == Some(0) && out.matches("error ").count() == 2, "{out}{err}");
    let (status, _, err) = profile(&s, "gemv -D M=1024 -D K=512 --target hbm-pim --by time");
    assert!(status == Some(1) && err.contains("leave `--by` out"), "{err}");
    s.file("k.tile", crate::bench::GEMV.replace("sum<k>(", "A[m, 0] + sum<k>("));
    let (status, out, _) = profile(&s, "gemv -D M=1024 -D K=1024 --target hbm-pim");
    assert!(status == Some(1) && out.contains("wrong: E0713"), "{out}");
}

/// By cycles two calls give the same bytes, on the model of time and on units in memory.
#[test]
fn cycles_are_the_same_each_time() {
    let s = sandbox();
    let add = "kernel add<const BN = 256>(x: in f16[N], y: in f16[N], z: out f16[N])\n";
    let ensures = "    ensures z[i] == x[i] + y[i]\n";
    let body = "{\n    grid (i in tiles(N, BN));\n    TSTORE(z.tile(i), Vec(x.tile(i)) + Vec(y.tile(i)));\n}\n";
    s.file("u.tile", format!("{add}{ensures}{body}"));
    for args in [
        "k.tile scale -D M=64,100 -D N=64,130 -D B=8,32 --by cycles --target a5",
        "u.tile add -D N=512,1024,4096:8192:2048,100:103 --by cycles --target hbm-pim",
    ] {
        let call = |out: &str| {
            let output = s.command(&format!("profile {args} --out {out}")).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let table = s.path().join(out);
            let text = fs::read(&table).unwrap();
            fs::remove_file(table).unwrap();
            (output.stdout, text)
        };
        let (first, second) = (call("1.csv"), call("2.csv"));
        assert_eq!(first, second);
        let lines = String::from_utf8(first.1).unwrap();
        assert!(lines.lines().count() > 8 && lines.lines().skip(1).all(|line| line.contains(",ok,")), "{lines}");
    }
}

/// Wherever a call was stopped, the next one adds what is missing, and nothing twice.
#[test]
fn an_interrupted_table_is_resumed() {
    let s = sandbox();
    let args = "scale -D M=64,100 -D N=64,130 -D B=8,32";
    let (status, _, err) = profile(&s, &format!("{args} --out t.csv"));
    assert_eq!(status, Some(0), "{err}");
    let path = s.path().join("t.csv");
    let whole = fs::read_to_string(&path).unwrap();
    let keys = |text: &str| -> Vec<String> {
        let cells = |line: &str| line.split(',').take(7).collect::<Vec<_>>().join(",");
        text.lines().map(cells).collect()
    };
    assert_eq!(keys(&whole).len(), 1 + 8);
    let all: HashSet<String> = keys(&whole).into_iter().collect();
    assert_eq!(all.len(), 9);
    let lengths = [0, 1, whole.find('\n').unwrap(), whole.len() / 3, whole.len() / 2, whole.len() - 1, whole.len()];
    for length in lengths {
        fs::write(&path, &whole[..length]).unwrap();
        let (status, _, err) = profile(&s, &format!("{args} --out t.csv --resume"));
        assert_eq!(status, Some(0), "{length}: {err}");
        let now = keys(&fs::read_to_string(&path).unwrap());
        assert_eq!(now.len(), 9, "{length}");
        assert_eq!(now.into_iter().collect::<HashSet<_>>(), all, "{length}");
    }
    // A file that is there is not lost by mistake.
    let (status, _, err) = profile(&s, &format!("{args} --out t.csv"));
    assert!(status == Some(1) && err.contains("--resume"), "{err}");
    let (status, _, err) = profile(&s, "scale -D M=64 -D B=8 -D N=64,128 --out t.csv --append");
    assert!(status == Some(1) && err.contains("another table"), "{err}");
    // What was measured of another source is not this one's.
    s.file("k.tile", format!("{KERNELS}\n// changed\n"));
    let (status, _, err) = profile(&s, &format!("{args} --out t.csv --resume"));
    assert_eq!(status, Some(0), "{err}");
    assert_eq!(keys(&fs::read_to_string(&path).unwrap()).len(), 1 + 16);
}

/// Two processes do not write one table: the second one names the first. Who is killed leaves no lock.
#[cfg(unix)]
#[test]
fn a_table_has_one_writer() {
    let s = sandbox();
    let args = "scale -D M=64,100 -D N=64 -D B=8 --out t.csv";
    let mut first = s.command(&format!("profile k.tile {args} --seconds 60 --threads 1"));
    let mut first = first.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let lock = s.path().join(".t.csv.lock");
    while fs::read_to_string(&lock).unwrap_or_default().is_empty() {
        assert!(first.try_wait().unwrap().is_none());
        std::thread::sleep(Duration::from_millis(1));
    }
    for option in ["", "--resume", "--append"] {
        let (status, out, err) = profile(&s, &format!("{args} {option}"));
        let other = format!("cannot write `t.csv`: process {} measures into it", first.id());
        assert!(status == Some(1) && out.is_empty() && err.contains(&other), "{out}{err}");
    }
    first.kill().unwrap();
    first.wait().unwrap();
    assert_eq!(profile(&s, &format!("{args} --resume")).0, Some(0));
    assert!(!lock.exists());
    assert_eq!(fs::read_to_string(s.path().join("t.csv")).unwrap().lines().count(), 3);
}

/// Each call with `--append` adds a set of rows; a complete one stays, and the last one counts.
#[test]
fn appended_rows_stay() {
    let s = sandbox();
    let args = "scale -D M=64,100 -D N=64 -D B=8,32 --by cycles --target a5 --out t.csv";
    for option in ["", "--append"] {
        assert_eq!(profile(&s, &format!("{args} {option}")).0, Some(0));
    }
    let path = s.path().join("t.csv");
    let whole = fs::read_to_string(&path).unwrap();
    assert_eq!(whole.lines().count(), 1 + 8);
    let (_, _, err) = profile(&s, &format!("{args} --resume"));
    assert!(err.contains("4 rows were there already"), "{err}");
    assert_eq!(fs::read_to_string(&path).unwrap(), whole);
    // The second set was interrupted.
    for lines in 1..=4 {
        let some: String = whole.lines().take(1 + 4 + lines).map(|line| format!("{line}\n")).collect();
        fs::write(&path, some).unwrap();
        assert_eq!(profile(&s, &format!("{args} --resume")).0, Some(0));
        let complete: String = whole.lines().take(1 + 4 + lines / 2 * 2).map(|line| format!("{line}\n")).collect();
        assert_eq!(fs::read_to_string(&path).unwrap(), complete, "{lines}");
    }
}

/// A sweep that is ended at any moment, again and again, and resumed: each row is there once.
#[cfg(unix)]
#[test]
fn a_sweep_that_is_killed_is_resumed() {
    let s = Sandbox::new();
    s.file(
        "gemm.tile",
        "kernel gemm<const BM = 16, const BN = 16, const BK = 16>\n    \
         (a: in f32[M, K], b: in f32[K, N], c: out f32[M, N])\n    \
         ensures c[m, n] == sum<k>(a[m, k] * b[k, n])\n{\n    grid (m in tiles(M, BM), n in tiles(N, BN));\n    \
         let acc = tile Acc<f32, m, n>;\n    acc = 0.0;\n    for k in tiles(K, BK) {\n        \
         TMATMUL_ACC(acc, acc, Left(a.tile(m, k)), Right(b.tile(k, n)));\n    }\n    TSTORE(c.tile(m, n), acc);\n}\n",
    );
    // 20 problems of 6 configurations.
    let args = "profile gemm.tile -D M=16:80:16 -D N=16:64:16 -D K=32 -D BM=16,32 -D BN=16 -D BK=16,32,64 \
                --by cycles --target a5 --out t.csv --resume";
    let path = s.path().join("t.csv");
    let length = || fs::metadata(&path).map_or(0, |m| m.len());
    let keys = |text: &str| -> Vec<String> {
        let cells = |line: &str| line.split(',').take(10).collect::<Vec<_>>().join(",");
        text.lines().skip(1).map(cells).collect()
    };
    let mut kills = 0;
    for n in 0..8u64 {
        let mut child = s.command(args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        // Some time after it has written something: moments that have nothing to do with problems.
        let (before, begin) = (length(), Instant::now());
        let ended = loop {
            match child.try_wait().unwrap() {
                Some(status) => break Some(status),
                None if length() > before && begin.elapsed().as_millis() as u64 % 23 == n * 3 => break None,
                None => std::thread::sleep(Duration::from_millis(1)),
            }
        };
        if let Some(status) = ended {
            assert!(status.success());
            break;
        }
        child.kill().unwrap();
        child.wait().unwrap();
        kills += 1;
    }
    assert!(kills > 0);
    let table = s.command(args).output().unwrap();
    assert!(table.status.success());
    let there = String::from_utf8(table.stderr).unwrap();
    assert!(there.contains(" rows were there already"), "{there}");
    let whole = keys(&fs::read_to_string(&path).unwrap());
    assert_eq!(whole.len(), 20 * 6, "after {kills} kills");
    assert_eq!(whole.iter().collect::<HashSet<_>>().len(), 20 * 6);
    let again = s.command(args).output().unwrap();
    assert!(String::from_utf8(again.stderr).unwrap().contains("120 rows were there already"));
}

/// What was kept counts: for the status, the best, and the other files. What was only listed is measured.
#[test]
fn what_a_file_has_counts() {
    let s = sandbox();
    let args = "wrong -D M=64 -D N=64 -D B=16,32 --out t.csv";
    assert_eq!(profile(&s, &format!("{args} --enumerate")).0, Some(0));
    let (status, out, _) = profile(&s, &format!("{args} --resume"));
    assert!(status == Some(1) && out.contains("exact") && out.contains("wrong:"), "{out}");
    let (status, again, err) = profile(&s, &format!("{args} --resume --out t.xml"));
    assert!(status == Some(1) && err.contains("2 rows were there already"), "{err}");
    assert_eq!(again, out);
    let junit = fs::read_to_string(s.path().join("t.xml")).unwrap();
    assert!(junit.contains("tests=\"2\" failures=\"1\""), "{junit}");
    // Another tolerance is another table.
    let report = json(&s, &format!("{args} --resume --rtol 0.01"));
    assert_eq!(rows(&report), ["16 ok", "32 ok"]);
}

/// What is in the file by hand, or by half, is told, and not mended in silence.
#[test]
fn other_files_are_left_alone() {
    let s = sandbox();
    let args = "scale -D M=64,100 -D N=64 -D B=8 --by cycles --target a5 --out t.csv";
    assert_eq!(profile(&s, args).0, Some(0));
    let path = s.path().join("t.csv");
    let whole = fs::read(&path).unwrap();
    for (text, words) in [
        ([&whole[..], b"a note\n"].concat(), "line 4 has 1 cells"),
        (b"garbage".to_vec(), "its first line is not this table's"),
        (b"\xff\xfe\n".to_vec(), "it is no text"),
    ] {
        for option in ["--append", "--resume"] {
            fs::write(&path, &text).unwrap();
            let (status, _, err) = profile(&s, &format!("{args} {option}"));
            assert!(status == Some(1) && err.contains(words), "{err}");
            assert_eq!(fs::read(&path).unwrap(), text);
        }
    }
    // A row without its line end is a row, and one that ends within a letter is none.
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(profile(&s, &format!("{args} --append")).0, Some(0));
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 1 + 4);
    let torn = [&whole[..], "wrong,\u{e9}".as_bytes()].concat();
    fs::write(&path, &torn[..torn.len() - 1]).unwrap();
    assert_eq!(profile(&s, &format!("{args} --resume")).0, Some(0));
    assert_eq!(fs::read(&path).unwrap(), whole);
    // Nothing is left over where something else is wrong.
    for more in ["--out no.csv --out no.txt", "--out no.csv --out none/x.json", "--out no.csv --out two.csv"] {
        let (status, _, err) = profile(&s, &format!("scale -D M=64,100 -D N=64 --by cycles {more}"));
        assert!(status == Some(1) && err.matches("error[").count() == 1, "{err}");
        assert!(!s.path().join("no.csv").exists(), "{more}");
    }
}

#[test]
fn values_that_are_none_are_refused() {
    let s = sandbox();
    let report = json(&s, "scale -D M=64 -D N=64 -D B=8,(3 --dry-run");
    assert_eq!(rows(&report), ["8 compiles", "(3 refused"]);
    // Sizes in a file are problems, like sizes elsewhere.
    s.file("c.csv", "M,B\n64,8\n64,16\n128,8\n64,8\n");
    let (_, out, _) = profile(&s, "scale -D N=64 --configurations c.csv --by cycles --target a5");
    assert!(out.lines().count() == 1 + 3 + 1 && out.contains("best for M=64: -D B="), "{out}");
    let (status, _, err) = profile(&s, "scale -D M=64 -D N=64 --configurations c.csv");
    assert!(status == Some(1) && err.contains("error[E0718]"), "{err}");
    let (status, _, err) = profile(&s, "scale -D M=1:4000 -D N=1:4000 -D B=8 --enumerate");
    assert!(status == Some(1) && err.contains("error[E0715]"), "{err}");
    let (status, _, err) = profile(&s, "wrong -D M=64 -D N=64 --tune");
    assert!(status == Some(1) && err.contains("error[E0714]"), "{err}");
}

#[test]
fn tables_of_other_forms() {
    let s = sandbox();
    let args = "wrong -D M=64 -D N=64 -D B=16,32,4096 --out t.md --out t.xml --out t.json";
    let (status, out, _) = profile(&s, args);
    assert_eq!(status, Some(1), "{out}");
    let read = |name: &str| fs::read_to_string(s.path().join(name)).unwrap();
    let markdown = read("t.md");
    assert!(markdown.starts_with("| B | median | best | rate | of limit | result |\n|---|--:"), "{markdown}");
    assert_eq!(markdown.lines().count(), 2 + 3);
    let junit = read("t.xml");
    assert!(junit.contains("<testsuite name=\"wrong\" tests=\"3\" failures=\"1\" skipped=\"1\" time="), "{junit}");
    assert!(junit.contains("name=\"B=32\"") && junit.contains("<failure message=\""), "{junit}");
    let report: Value = serde_json::from_str(&read("t.json")).unwrap();
    assert_eq!(rows(&report), ["16 ok", "32 wrong", "4096 refused"]);
    let (status, _, err) = profile(&s, "scale -D M=64 -D N=64 --out t.txt");
    assert!(status == Some(1) && err.contains("its suffix names no form"), "{err}");
}

#[test]
fn wrong_calls() {
    let s = sandbox();
    let (status, _, err) = profile(&s, "scale -D M=9:3 -D N=64");
    assert!(status == Some(2) && err.contains("ends before it begins"), "{err}");
    for range in ["-5:5", "1.5:3"] {
        let (status, _, err) = profile(&s, &format!("scale -D M={range} -D N=64"));
        assert!(status == Some(2) && err.contains(&format!("`{range}` is no range: `FIRST:LAST`")), "{err}");
    }
    let (status, _, err) = profile(&s, "scale -D M=64 -D N=64 -D C=1,2");
    assert!(status == Some(1) && err.matches("error[").count() == 1, "{err}");
    let (status, _, err) = profile(&s, "scale -D M=64 -D N=64 --configurations none.csv");
    assert!(status == Some(1) && err.contains("none.csv"), "{err}");
    let (status, _, err) = profile(&s, "scale -D M=64 -D N=64 --by cycles --backend cpu");
    assert!(status == Some(1) && err.contains("counts no cycles"), "{err}");
}

/// Speed over size: a line for each configuration, and those of others.
#[test]
fn plots() {
    let s = sandbox();
    let cycles = "scale -D M=64:256:*2 -D N=64 -D B=8,16 --by cycles --target a5 --backend interp";
    let (status, _, err) = profile(&s, &format!("{cycles} --plot p.svg"));
    assert_eq!(status, Some(0), "{err}");
    let svg = fs::read_to_string(s.path().join("p.svg")).unwrap();
    for wanted in ["scale on interp (a5)", "cycles (less is better)", ">B=8<", ">B=16<", ">64<", ">256<", ">M<"] {
        assert!(svg.contains(wanted), "{wanted}: {svg}");
    }
    // Three points for each of two configurations, and one each in the legend.
    assert_eq!(svg.matches("<circle").count(), 2 * 3 + 2);
    profile(&s, &format!("{cycles} --plot q.svg"));
    assert_eq!(svg, fs::read_to_string(s.path().join("q.svg")).unwrap(), "two calls write two pictures");
    // Others by the clock, at the sizes that they have; `0x40` is 64.
    s.file("peers.csv", "M,other,third\n0x40,0.5,0.25\n128,0.6,0.3\n4096,1,1\n");
    let (status, _, err) =
        profile(&s, "scale -D M=64:256:*2 -D N=64 -D B=16 --plot p.svg --peers peers.csv --out t.csv");
    assert_eq!(status, Some(0), "{err}");
    let svg = fs::read_to_string(s.path().join("p.svg")).unwrap();
    let speed = ["GOP/s (more is better)", "GB/s (more is better)"].iter().any(|words| svg.contains(words));
    assert!(speed && svg.contains(">other<") && svg.contains(">third<"), "{svg}");
    assert_eq!((svg.matches("<circle").count(), svg.matches("<rect x").count()), (3 + 1, 2 * (2 + 1)));
    assert!(s.path().join("t.csv").exists());
    s.file("bad.csv", "M,other\n64,fast\n");
    s.file("far.csv", "M,other\n65,1\n");
    let one = "scale -D M=64 -D N=64 -D B=8,16 --by cycles --target a5 --backend interp --plot r.svg --out r.json";
    for (args, why) in [
        (one.to_owned(), "there is nothing to plot: there are no two sizes"),
        (format!("{cycles} --plot r.png"), "a plot's name ends in .svg"),
        (format!("{cycles} --plot r.svg --peers peers.csv"), "peers have milliseconds, and the table has cycles"),
        ("scale -D M=64,128 -D N=64 --plot r.svg --peers bad.csv".to_owned(), "`fast` of peer `other` is no number"),
        ("scale -D M=64,128 -D N=64 --plot r.svg --peers far.csv".to_owned(), "peer `other` has no size of the table"),
        ("scale -D M=64,128 -D N=64 --plot r.svg --peers none.csv".to_owned(), "cannot read `none.csv`"),
    ] {
        let (status, out, err) = profile(&s, &args);
        assert!(status == Some(1) && err.contains(why), "{args}: {err}");
        // Before anything was measured.
        assert!(
            out.is_empty() && !s.path().join("r.svg").exists() && !s.path().join("r.json").exists(),
            "{args}: {out}"
        );
    }
    // Where one size alone was measured the table is there, and no plot.
    let one = "scale -D M=64,128 -D N=64 -D B=8 --plot r.svg --out r.json";
    s.file("k.tile", KERNELS.replace("y: out T[M, N])\n", "y: out T[M, N])\n    where M == 64\n"));
    let (status, out, err) = profile(&s, one);
    assert!(status == Some(1) && err.contains("no two sizes of which a configuration was measured"), "{out}{err}");
    assert!(s.path().join("r.json").exists() && !s.path().join("r.svg").exists());
}

#[test]
fn equal_values_are_one() {
    let s = sandbox();
    // A size with one value is no column.
    assert_eq!(rows(&json(&s, "scale -D M=64 -D N=64,0x40,6_4 -D B=8,0x8,16 --enumerate")), ["8 listed", "16 listed"]);
    s.file("c.csv", "B,N\n8,64\n0x8,0x40\n");
    assert_eq!(rows(&json(&s, "scale -D M=64 --configurations c.csv --enumerate")), ["64 8 listed"]);
}

/// A mistake that all cases have is told once, and nothing is measured.
#[test]
fn one_mistake_is_told_once() {
    let s = sandbox();
    s.file("k.tile", KERNELS.replace("Vec(x.tile(i, j)) * 2)", "Vec(x.tile(i, j)) * z)"));
    let (status, out, err) = profile(&s, "scale -D M=64,128 -D N=64 -D B=8,16");
    assert!(status == Some(1) && !out.contains("refused"), "{out}{err}");
    assert_eq!(err.matches("error[").count(), 1, "{err}");
    // One that elaboration finds.
    s.file("k.tile", KERNELS.replace("j in tiles(N, 64)", "j in tiles(N, 0)"));
    let (status, out, err) = profile(&s, "scale -D M=64,128 -D N=64 -D B=8,16");
    assert!(status == Some(1) && out.is_empty(), "{out}{err}");
    assert!(err.matches("error[").count() == 1 && err.contains("so it is with all 4 cases"), "{err}");
    // What is wrong with some is no reason to leave out the others.
    s.file("k.tile", KERNELS);
    let (status, out, _) = profile(&s, "wrong -D M=64 -D N=64 -D B=16,32");
    assert!(status == Some(1) && out.contains("exact") && out.contains("wrong"), "{out}");
}

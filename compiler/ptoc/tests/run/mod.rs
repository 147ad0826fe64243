//! `ptoc run`: arrays in, results out, comparisons.

use super::{ADD, Sandbox, snapshot};
use ptoc_tensor::{DType, Tensor, npy};
use std::fs;
use std::process::Stdio;

/// What is too large for an 8-bit float becomes the largest number of it, by whatever way, and `ensures` says the same.
#[test]
fn conversions_to_floats_of_8_bits_are_verified() {
    let s = Sandbox::new();
    s.file(
        "k.tile",
        "kernel k(x: in i16[16, 32], y: out f8e4m3[16, 32])\n    ensures y[i, j] == f8e4m3(x[i, j])\n\
         {\n    TSTORE(y, f8e4m3(Vec(x)));\n}\n",
    );
    // Without `.sat`: NaN, which is not what `ensures` says.
    s.file(
        "nan.tile",
        "kernel k(x: in i16[16, 32], y: out f8e4m3[16, 32])\n    ensures y[i, j] == f8e4m3(x[i, j])\n\
         {\n    let d = tile Vec<f8e4m3, 16, 32>;\n    TCVT(d, f32(Vec(x)), saturate = false);\n    TSTORE(y, d);\n}\n",
    );
    s.array("x.npy", DType::I16, &[16, 32]);
    let shown = s.run("run k.tile --target a5 --in x=x.npy --verify");
    assert!(shown.contains("exit 0") && shown.contains("512 elements as expected"), "{shown}");
    let shown = s.run("run nan.tile --target a5 --in x=x.npy --verify");
    assert!(shown.contains("exit 1") && shown.contains("expected 448"), "{shown}");
    // Where `ensures` names no conversion, the value is rounded as one by name would.
    for (name, exit) in [("k.tile", "exit 0"), ("nan.tile", "exit 1")] {
        let text = fs::read_to_string(s.path().join(name)).unwrap();
        s.file("plain.tile", text.replace("== f8e4m3(x[i, j])", "== x[i, j]"));
        let shown = s.run("run plain.tile --target a5 --in x=x.npy --verify");
        assert!(shown.contains(exit), "{name}: {shown}");
    }
}

/// A number of threads that no launch has, negative ones too, is an error that says which there are.
#[test]
fn numbers_of_threads() {
    let s = Sandbox::new();
    s.file("add.tile", ADD);
    for threads in ["-1", "100000", "1e3", "99999999999999999999"] {
        let shown = s.run(&format!("run add.tile --random 1 --threads {threads}"));
        assert!(!shown.contains("exit 0") && shown.contains("it is a number from 0 (one a core) to"), "{shown}");
    }
}

/// Equations between expressions, conditions and tolerances of a clause: what fails, and what holds.
#[test]
fn clauses_of_several_elements() {
    let s = Sandbox::new();
    s.file(
        "wrong.tile",
        "kernel k(x: in f32[8], order: in i32[8], y: out f32[8], s: out f32[2])\n    \
         ensures sorted<i>(-y[i]),\n            y[i] >= 0.5,\n            permutation<i>(y[i], x[i]),\n            \
         y[order[i]] == x[7 - i],\n            sum<j>(s[j]) == sum<i>(x[i]),\n            \
         close(s[j], 1.0, rtol = 1e-3)\n\
         {\n    let a = Vec(x);\n    TSTORE(y, a);\n    \
         s[0] = a[0, 0];\n    s[1] = a[0, 1];\n}\n",
    );
    s.file(
        "right.tile",
        "kernel k(x: in f32[8], y: out f32[8])\n    \
         ensures y[i] >= x[i], close(y[i], x[i], atol = 1.0), sum<i>(y[i] - x[i]) == 8.0\n\
         {\n    TSTORE(y, Vec(x) + 1.0);\n}\n",
    );
    s.array("x.npy", DType::F32, &[8]);
    s.array("order.npy", DType::I32, &[8]);
    let shown = s.run("run wrong.tile --in x=x.npy --in order=order.npy --verify");
    for said in [
        "this `ensures` is false, first for i = 1",
        "this `ensures` is false, first for i = 0",
        "this `ensures` does not hold for 8 of 8 values of the indices; the worst is i = 0: the left side is 0.0, the",
        "this `ensures` does not hold: the left side is 1.0, the right side 28.0",
        "`s` is not what `ensures` says",
        "exit 1",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    let shown = s.run("run right.tile --in x=x.npy --verify");
    assert!(shown.contains("exit 0") && shown.contains("y: 8 elements as expected"), "{shown}");
}

#[test]
fn run_shows_its_results() {
    let s = Sandbox::new();
    snapshot!(s.runs(&[
        "run add.tile add --in a=a.npy --in b=b.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --backend interp --stats",
        "run add.tile add --in a=a.npy --random 7 --json",
        "run add.tile add --in a=a.npy --random 7 --json --backend interp",
        "run add.tile scale --in x=a.npy -D s=0.5 --target kirin9030",
        "run add.tile add --random 1 -D M=0 -D N=5",
    ]));
}

#[test]
fn outputs_appear_together() {
    let s = Sandbox::new();
    snapshot!(s.run("run add.tile add --in a=a.npy --in b=b.npy --out c=c.npy --trace t.json --verify"));
    let c = s.read("c.npy");
    assert_eq!(c.to_f64s(), (0..12).map(|i| 2.0 * f64::from(i)).collect::<Vec<_>>());
    let trace: serde_json::Value = serde_json::from_slice(&fs::read(s.path().join("t.json")).unwrap()).unwrap();
    let names: Vec<&str> =
        trace["traceEvents"].as_array().unwrap().iter().map(|e| e["name"].as_str().unwrap()).collect();
    for phase in ["parse", "elaborate", "passes", "machine code", "run add"] {
        assert!(names.contains(&phase), "{names:?}");
    }
    assert_eq!(s.listing(), ["a.npy", "add.tile", "b.npy", "c.npy", "t.json"]);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |name: &str| fs::metadata(s.path().join(name)).unwrap().permissions().mode();
        assert_eq!(mode("c.npy"), mode("a.npy"), "an output has the permissions of any new file");
    }
}

#[test]
fn nothing_is_written_when_something_is_wrong() {
    let s = Sandbox::new();
    s.file("c.npy", "old");
    s.file("dir/keep", "");
    snapshot!(s.runs(&[
        "run add.tile add --in a=a.npy --in b=b.npy --out c=no/dir/c.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --out c=dir",
        "run add.tile add --in a=a.npy --in b=b.npy --out c=c.npy --trace c.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --out c=c.npy --trace no/t.json",
        "run add.tile add --in a=a.npy --in b=missing.npy --out c=c.npy",
        "emit add.tile add --stage ir -o no/x.ir",
    ]));
    assert_eq!(fs::read(s.path().join("c.npy")).unwrap(), b"old");
    assert_eq!(s.listing(), ["a.npy", "add.tile", "b.npy", "c.npy", "dir"]);
}

#[cfg(unix)]
#[test]
fn devices_and_links_are_written_through() {
    let s = Sandbox::new();
    std::os::unix::fs::symlink("real.npy", s.path().join("link.npy")).unwrap();
    s.file("real.npy", "old");
    let run = s.run("run add.tile add --in a=a.npy --in b=b.npy --out c=link.npy --trace /dev/null");
    assert!(run.contains("exit 0"), "{run}");
    assert_eq!(s.read("real.npy").shape(), [3, 4]);
    assert!(fs::symlink_metadata(s.path().join("link.npy")).unwrap().is_symlink());
}

#[test]
fn arrays_that_do_not_fit() {
    let s = Sandbox::new();
    s.array("half.npy", DType::F16, &[3, 4]);
    s.array("long.npy", DType::F32, &[5, 4]);
    s.array("flat.npy", DType::F32, &[12]);
    s.array("cube.npy", DType::F32, &[1, 3, 4]);
    let whole = fs::read(s.path().join("a.npy")).unwrap();
    s.file("short.npy", &whole[..whole.len() - 5]);
    s.file("head.npy", &whole[..40]);
    s.file("text.npy", "1 2 3\n");
    snapshot!(s.runs(&[
        "run add.tile add --in a=half.npy --in b=b.npy",
        "run add.tile add --in a=a.npy --in b=long.npy",
        "run add.tile add --in a=flat.npy --in b=cube.npy",
        "run add.tile add --in a=short.npy --in b=head.npy",
        "run add.tile add --in a=text.npy --in b=missing.npy",
        "run add.tile add --in a=a.npy --random 1 -D M=7",
        "run add.tile add --in a=a.npy",
        "run add.tile add",
        "run add.tile add --random 1 -D M=3",
        "run add.tile add --random 1",
    ]));
}

/// (M, N) is a batch of one; a vector is no matrix.
#[test]
fn batches_of_one() {
    let s = Sandbox::new();
    s.file(
        "batch.tile",
        "kernel k(x: in f32[M, N, L], y: in f32[M, N, L], z: out f32[M, N, L])\n    \
        ensures z[i, j, l] == x[i, j, l] + y[i, j, l]\n{\n    \
        grid (m in tiles(M, 16), n in tiles(N, 16), l in 0..L);\n    let t, u = tile Vec<f32, m, n>;\n    \
        copy(t, x[_, _, l].tile(m, n));\n    copy(u, y[_, _, l].tile(m, n));\n    t += u;\n    \
        copy(z[_, _, l].tile(m, n), t);\n}\n",
    );
    s.array("m.npy", DType::F32, &[3, 4]);
    s.array("one.npy", DType::F32, &[3, 4, 1]);
    s.array("two.npy", DType::F32, &[3, 4, 2]);
    s.array("v.npy", DType::F32, &[3]);
    snapshot!(s.runs(&[
        "run batch.tile --verify --in x=m.npy --in y=m.npy --out z=z.npy",
        "run batch.tile --verify --in x=m.npy --in y=one.npy --expect z=z.npy",
        "run batch.tile --in x=m.npy --in y=two.npy",
        "run batch.tile --in x=v.npy --in y=m.npy",
    ]));
}

#[test]
fn extents_that_are_computed_or_constant() {
    let s = Sandbox::new();
    s.file(
        "half.tile",
        "kernel k(x: in u8[N, K / 2], y: in f32[4], z: out f32[K]) where K >= 2 {\n    \
        grid (j in tiles(K, 64));\n    let t = tile Vec<f32, 1, j>;\n    TEXPANDS(t, 1.0);\n    TSTORE(z.tile(j), t);\n\
        }\n",
    );
    s.array("x.npy", DType::U8, &[3, 8]);
    s.array("y4.npy", DType::F32, &[4]);
    s.array("y5.npy", DType::F32, &[5]);
    snapshot!(s.runs(&[
        "run half.tile --in x=x.npy --in y=y4.npy -D K=16",
        "run half.tile --in x=x.npy --in y=y5.npy -D K=18",
        "run half.tile --in x=x.npy --in y=y4.npy -D K=1",
    ]));
}

#[test]
fn names_that_do_not_exist() {
    let s = Sandbox::new();
    snapshot!(s.runs(&[
        "run add.tile",
        "run add.tile scal",
        "run add.tile nothing_like_it",
        "run add.tile scale --in x=a.npy",
        "run add.tile scale --in x=a.npy --in s=b.npy -D s=1.0",
        "run add.tile add --in A=a.npy --in b=b.npy",
        "run add.tile add --in c=a.npy --in a=a.npy --in a=a.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --out b=x.npy --expect d=a.npy",
        "run add.tile add --target a7",
        "run add.tile add --target geopim",
        "run add.tile add --backend gpu",
        "run add.tile add --backend pim",
        "run add.tile add --threads many",
        "run add.tile add --vectors 100",
        "run add.tile add --rtol -1",
        "run add.tile scale --random 1 -D M=2 -D N=2 -D s=1.0 --verify",
    ]));
    s.file("empty.tile", "");
    snapshot!(s.run("run empty.tile"));
}

#[test]
fn comparisons() {
    let s = Sandbox::new();
    let want = |f: &dyn Fn(usize) -> f64| Tensor::from_f64s(DType::F32, &[3, 4], &(0..12).map(f).collect::<Vec<_>>());
    s.file("same.npy", npy::write(&want(&|i| 2.0 * i as f64).unwrap()));
    s.file("near.npy", npy::write(&want(&|i| 2.0 * i as f64 + if i == 7 { 0.25 } else { 0.0 }).unwrap()));
    s.array("wide.npy", DType::F32, &[3, 5]);
    snapshot!(s.runs(&[
        "run add.tile add --in a=a.npy --in b=b.npy --expect c=same.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --expect c=near.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --expect c=near.npy --atol 0.25 --out c=c.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --expect c=near.npy --rtol 0.01 --json",
        "run add.tile add --in a=a.npy --in b=b.npy --expect c=wide.npy",
        "run add.tile add --in a=a.npy --in b=b.npy --expect c=near.npy --atol 0.25 --verify --out c=c.npy",
    ]));
    s.file("wrong.tile", ADD.replace("c[i, j] == a[i, j] + b", "c[i, j] == a[i, j] - b"));
    s.file("outside.tile", ADD.replace("c[i, j] == a[i, j] + b[i, j]", "c[i, j] == a[i, j + 1] + b[i, j]"));
    snapshot!(s.runs(&[
        "run wrong.tile add --in a=a.npy --in b=b.npy --verify --backend interp",
        "run outside.tile add --in a=a.npy --in b=b.npy --verify",
    ]));
}

const GATHER: &str = "\
kernel gather(table: in f32[R], idx: in i32[M, N], y: out f32[M, N])
    where 0 <= idx[i, j], idx[i, j] < R
    ensures y[i, j] == table[idx[i, j]]
{
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let t = tile Vec<f32, i, j>;
    MGATHER(t, table, Vec(idx.tile(i, j)));
    TSTORE(y.tile(i, j), t);
}
";

#[test]
fn data_keep_to_where() {
    let s = Sandbox::new();
    s.file("gather.tile", GATHER);
    s.array("idx.npy", DType::I32, &[3, 4]);
    snapshot!(s.runs(&[
        "run gather.tile --random 5 -D M=2 -D N=3 -D R=4 --verify",
        "run gather.tile --random 5 --in idx=idx.npy -D R=12 --verify",
        "run gather.tile --random 5 --in idx=idx.npy -D R=11",
        "run gather.tile --random 5 -D M=2 -D N=3 -D R=0",
        "run gather.tile --random 5 -D M=0 -D N=3 -D R=0",
    ]));
}

#[test]
fn programs_run_their_launches_in_order() {
    let s = Sandbox::new();
    let program = "
program twice(x: in f32[M, N], y: out f32[M, N]) {
    let t = tensor f32[M, N];
    scale(x, 2.0, t);
    add(t, x, y);
}
";
    s.file("p.tile", format!("{ADD}{program}"));
    snapshot!(s.runs(&[
        "check p.tile",
        "run p.tile twice --in x=a.npy",
        "run p.tile twice --in x=a.npy --backend interp --json",
        "run p.tile twice --in x=a.npy --verify",
    ]));
}

#[test]
fn results_of_programs_are_held_to_their_ensures() {
    let s = Sandbox::new();
    let program = |says: &str| {
        format!(
            "{ADD}
program twice(x: in f32[M, N], y: out f32[M, N])
    ensures y[i, j] == {says}
{{
    let t = tensor f32[M, N];
    scale(x, 2.0, t);
    add(t, x, y);
}}
"
        )
    };
    s.file("right.tile", program("3.0 * x[i, j]"));
    s.file("wrong.tile", program("4.0 * x[i, j]"));
    for backend in ["cpu", "interp"] {
        let run = |file: &str| s.run(&format!("run {file} twice --in x=a.npy --verify --backend {backend}"));
        let (right, wrong) = (run("right.tile"), run("wrong.tile"));
        assert!(right.contains("exit 0"), "{right}");
        assert!(wrong.contains("exit 1") && wrong.contains("ensures y[i, j] == 4.0"), "{wrong}");
    }
}

#[test]
fn prints_go_to_standard_error() {
    let s = Sandbox::new();
    s.file(
        "p.tile",
        "kernel k(x: in f32[M, N], s: f32 = 1.5, y: out f32[M, N]) {\n    \
        grid (i in tiles(M, 2), j in tiles(N, 64));\n    let v = Vec(x.tile(i, j));\n    \
        print(\"block\", i.index, s);\n    TSTORE(y.tile(i, j), v);\n}\n",
    );
    let (cpu, interp) =
        (s.run("run p.tile --in x=a.npy --json"), s.run("run p.tile --in x=a.npy --json --backend interp --threads 1"));
    let printed = |text: &str| text.split("-- stderr\n").nth(1).unwrap().to_owned();
    assert_eq!(printed(&cpu), printed(&interp));
    assert!(printed(&cpu).starts_with("block 0 1.5\n"), "{cpu}");
}

/// What the `where` of a launched program demands, of scalars and of contents that launches have written: the report
/// names the calls.
#[test]
fn conditions_of_launched_programs() {
    let s = Sandbox::new();
    s.file(
        "p.tile",
        "kernel numbers(y: out i32[8], top: i32, last: i32) {
    for i in 0..8 { y[i] = i32(i); }
    y[2] = top;
    y[7] = last;
}

kernel reversed(x: in i32[N], y: out i32[N]) {
    for i in 0..N { y[i] = x[N - 1 - i]; }
}

program inner(x: in i32[N], y: out i32[N], n: i32, most: i32)
    where x[i] <= most, n < 7
{
    reversed(x, y);
}

program middle(x: in i32[N], y: out i32[N], n: i32) {
    inner(x, y, n + 1, n + 2);
}

program outer(y: out i32[8], top: i32, last: i32) {
    let t = tensor i32[8];
    numbers(t, top, last);
    middle(t, y, t[7]);
}
",
    );
    let right = s.run("run p.tile outer -D top=0 -D last=5");
    assert!(right.contains("exit 0"), "{right}");
    snapshot!(s.runs(&[
        "run p.tile outer -D top=0 -D last=6",
        "run p.tile outer -D top=10 -D last=4",
        "run p.tile outer -D top=10 -D last=4 --backend interp",
    ]));
}

/// `perf` finds the functions of machine code by name, where its variable is set.
#[cfg(target_os = "linux")]
#[test]
fn a_map_for_perf() {
    let s = Sandbox::new();
    let call = |set: bool| {
        let mut command = s.command("run add.tile add --in a=a.npy --in b=b.npy");
        match set {
            true => command.env("PERF_BUILDID_DIR", s.path()),
            false => command.env_remove("PERF_BUILDID_DIR"),
        };
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let map = std::path::PathBuf::from(format!("/tmp/perf-{}.map", child.id()));
        assert!(child.wait().unwrap().success());
        let text = fs::read_to_string(&map).ok();
        let _ = fs::remove_file(&map);
        text
    };
    let text = call(true).expect("a map");
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(3, ' ').collect();
        assert!(u64::from_str_radix(fields[0], 16).is_ok() && u64::from_str_radix(fields[1], 16).is_ok(), "{line}");
    }
    for name in ["add.launch", "add.block", "nest"] {
        assert!(text.contains(name), "{name}: {text}");
    }
    assert_eq!(call(false), None);
}

/// What launches demand of arrays that no launch writes is tested before the first of them.
#[test]
fn contents_are_tested_before_the_first_launch() {
    let s = Sandbox::new();
    s.file(
        "b.tile",
        "kernel says(x: in f32[N], y: out f32[N]) { print(\"ran\"); copy(y, x); }\n\
         kernel small(t: in i32[N], y: out f32[N]) where 0 <= t[i], t[i] < 5 {\n    \
         for i in 0..N { y[i] = f32(t[i]); }\n}\n\
         kernel sevens(t: out i32[N]) { for i in 0..N { t[i] = 7; } }\n\
         program given(x: in f32[N], t: in i32[N], y: out f32[N], z: out f32[N]) { says(x, y); small(t, z); }\n\
         program made(x: in f32[N], y: out f32[N], z: out f32[N]) {\n    \
         let t = tensor i32[N];\n    sevens(t);\n    says(x, y);\n    small(t, z);\n}\n\
         program perhaps(x: in f32[N], t: in i32[N], y: inout f32[N], z: inout f32[N]) {\n    \
         says(x, y);\n    if y[0] > 100.0 { small(t, z); }\n}\n",
    );
    let ran = |args: &str| {
        let run = s.run(&format!("run b.tile {args} -D N=4 --random 1 --threads 1"));
        (run.contains("exit 0"), run.matches("ran\n").count(), run.contains("`where`"))
    };
    assert_eq!(ran("given"), (false, 0, true));
    assert_eq!(ran("made"), (false, 1, true));
    assert_eq!(ran("perhaps"), (true, 1, false));
}

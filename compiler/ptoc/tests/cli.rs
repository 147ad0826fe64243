//! The binary as a script sees it: exit status, standard output, standard error.

mod addresses;
mod asm;
mod bench;
mod debug;
mod dram;
mod exact;
mod explain;
#[cfg(unix)]
mod files;
mod format;
mod layout;
mod lsp;
mod overflow;
mod pipes;
mod readme;
mod sanitize;
mod sim;
mod tensors;
mod words;

use ptoc_tensor::{DType, Tensor, npy};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// Kernels for most of the tests.
const ADD: &str = "\
/// c = a + b
kernel add<const ROWS = 16>(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N])
    ensures c[i, j] == a[i, j] + b[i, j]
{
    grid (i in tiles(M, ROWS), j in tiles(N, 64));
    TSTORE(c.tile(i, j), Vec(a.tile(i, j)) + Vec(b.tile(i, j)));
}

kernel scale(x: in f32[M, N], s: f32, y: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    TSTORE(y.tile(i, j), Vec(x.tile(i, j)) * s);
}
";

/// A directory of its own; everything is named relative to it.
struct Sandbox {
    dir: TempDir,
}

impl Sandbox {
    fn new() -> Sandbox {
        let sandbox = Sandbox { dir: TempDir::new().unwrap() };
        sandbox.file("add.tile", ADD);
        sandbox.array("a.npy", DType::F32, &[3, 4]);
        sandbox.array("b.npy", DType::F32, &[3, 4]);
        sandbox
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// 0, 1, 2, ..
    fn array(&self, name: &str, dtype: DType, shape: &[usize]) {
        let tensor = Tensor::from_fn(dtype, shape, |i| ptoc_tensor::scalar::bits_from_i128(dtype, i as i128)).unwrap();
        self.file(name, npy::write(&tensor));
    }

    fn read(&self, name: &str) -> Tensor {
        npy::read(&fs::read(self.path().join(name)).unwrap(), None).unwrap()
    }

    fn command(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptoc"));
        command.current_dir(self.path()).args(args.split_whitespace());
        command.env_remove("COLUMNS").env_remove("NO_COLOR");
        command
    }

    /// Status, standard output and standard error of a call, in this order.
    fn run(&self, args: &str) -> String {
        let output = self.command(args).output().unwrap();
        let mut text = format!("$ ptoc {args}\nexit {}\n", output.status.code().unwrap());
        for (name, bytes) in [("stdout", output.stdout), ("stderr", output.stderr)] {
            let bytes = String::from_utf8(bytes).unwrap();
            if !bytes.is_empty() {
                let _ = write!(text, "-- {name}\n{bytes}");
            }
        }
        text
    }

    /// Several calls, one after another.
    fn runs(&self, calls: &[&str]) -> String {
        calls.iter().map(|args| self.run(args)).collect::<Vec<_>>().join("\n")
    }

    /// Names of all files, sorted.
    fn listing(&self) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(self.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

/// A snapshot in which times and sizes of machine code do not show.
macro_rules! snapshot {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        settings.add_filter(r"\d+\.\d+ ms", "[time] ms");
        settings.add_filter(r#""(compile_ms|run_ms|code_bytes|threads)":[0-9.e-]+"#, r#""$1":"[n]""#);
        settings.add_filter(r"(?m)^(compile_ms|run_ms|code_bytes|threads) +[0-9.]+$", "$1 [n]");
        settings.set_omit_expression(true);
        settings.bind(|| insta::assert_snapshot!($text));
    };
}
use snapshot;

#[test]
fn check_says_what_it_has_seen() {
    let s = Sandbox::new();
    s.file("bad.tile", ADD.replace("Vec(a.tile", "Vec(aa.tile"));
    s.file("none.tile", "//! nothing yet\n");
    s.file("wait.tile", "kernel k<const R>(x: in f32[R, 8]) { }\nkernel w(x: in f32[M, N], y: out f32[M, N]) {\n    grid (i in tiles(M, 8));\n    TSTORE(y.tile(i, _), Vec(x.tile(i, _)));\n}\n");
    snapshot!(s.runs(&[
        "check add.tile",
        "check add.tile bad.tile none.tile",
        "check wait.tile",
        "check wait.tile -D R=4 -D N=64",
        "check add.tile -D ROWS=32 -D M=100 --target a5",
    ]));
}

#[test]
fn check_reports_json_lines() {
    let s = Sandbox::new();
    s.file(
        "bad.tile",
        ADD.replace("TSTORE(c.tile(i, j), Vec(a.tile", "let ß = 1;\n    TSTORE(c.tile(i, j), Vec(aa.tile"),
    );
    snapshot!(s.run("check bad.tile --message-format json"));
}

#[test]
fn warnings_can_be_denied() {
    let s = Sandbox::new();
    s.file(
        "w.tile",
        ADD.replace("    grid (i in tiles(M, ROWS)", "    let unused = 3;\n    grid (i in tiles(M, ROWS)"),
    );
    snapshot!(s.runs(&[
        "check w.tile",
        "check w.tile --deny W0110",
        "check w.tile --deny warnings",
        "check w.tile --deny E0101",
        "check w.tile --deny W9999",
        "run w.tile add --random 1 -D M=2 -D N=2 --out c=c.npy --deny warnings",
    ]));
    assert!(!s.path().join("c.npy").exists());
}

#[test]
fn definitions_must_mean_something() {
    let s = Sandbox::new();
    s.file("other.tile", "kernel k<const R = 2>(x: in f32[M, N]) { }\n");
    snapshot!(s.runs(&[
        "check add.tile -D ROW=32",
        "check add.tile other.tile -D ROW=32 -D s=(",
        "check add.tile other.tile -D R=32 -D ROWS=8",
        "check add.tile -D Vec=1024",
        "check add.tile -D capacity.Vek=1024",
        "check add.tile -D capacity.Vec=f32",
        "check add.tile -D capacity.Vec=1024",
        "check add.tile -D M=f32",
        "check add.tile -D M=-1",
        "check add.tile -D ROWS=(1",
        "check add.tile -D ROWS=f32",
        "check add.tile -D ROWS",
        "check add.tile -D =3",
        "check add.tile -D s=2.5 -D N=2*64",
        "check add.tile -D N=64 -D M=3 -D N=128",
        "run add.tile add -D capacity.Vec=4096 -D capacity.Vec=4096",
    ]));
}

#[test]
fn sources_that_cannot_be_read() {
    let s = Sandbox::new();
    s.file("latin1.tile", b"// caf\xe9\nkernel");
    s.file("dir/x.tile", "use lib::missing::f;\nuse std::no::f;\n");
    snapshot!(s.runs(&[
        "check missing.tile",
        "check ad.tile",
        "check no/such/dir.tile",
        "check dir",
        "check a.npy",
        "check latin1.tile",
        "check dir/x.tile",
        "run missing.tile",
        "emit missing.tile --stage ast",
        "test missing.tile",
    ]));
}

#[test]
fn imports() {
    let s = Sandbox::new();
    s.file("main.tile", "use lib::math::double;\nuse std::act::gelu;\n\nkernel k(x: in f32[M, N], y: out f32[M, N])\n    ensures y[i, j] == gelu(double(x[i, j]))\n{\n    grid (i in tiles(M, 16), j in tiles(N, 64));\n    TSTORE(y.tile(i, j), gelu(double(Vec(x.tile(i, j)))));\n}\n");
    s.file("lib/math.tile", "use more::two;\n\nfn double(x: f32) -> f32 { x * two }\n");
    s.file("lib/more.tile", "const two: f32 = 2.0;\n");
    snapshot!(s.runs(&["check main.tile", "run main.tile --random 1 -D M=2 -D N=3 --verify --rtol 1e-5 --atol 1e-6"]));
    s.file("lib/more.tile", "const two: f32 = ;\n");
    snapshot!(s.run("check main.tile"));
}

/// `more::x` beside the root and `more::x` beside `sub/s.tile` are two files.
#[test]
fn one_path_in_two_directories() {
    let s = Sandbox::new();
    s.file("more/x.tile", "fn f(x: f32) -> f32 { x + 1.0 }");
    s.file("sub/more/x.tile", "fn f(x: f32) -> f32 { x + 2.0 }");
    s.file("sub/s.tile", "use more::x::f;\nfn g(x: f32) -> f32 { f(x) }");
    s.file(
        "k.tile",
        "use more::x::f;\nuse sub::s::g;\nkernel k(x: in f32[N], y: out f32[N])\n    ensures y[i] == 2.0 * x[i] + 3.0\n\
         {\n    grid (i in tiles(N, 8));\n    let t = Vec(x.tile(i));\n    TSTORE(y.tile(i), f(t) + g(t));\n}\n",
    );
    s.array("x.npy", DType::F32, &[5]);
    let shown = s.run("run k.tile --in x=x.npy --verify");
    assert!(shown.contains("exit 0") && shown.contains("5 elements as expected"), "{shown}");
}

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

#[test]
fn extents_that_are_computed_or_constant() {
    let s = Sandbox::new();
    s.file("half.tile", "kernel k(x: in u8[N, K / 2], y: in f32[4], z: out f32[K]) where K >= 2 {\n    grid (j in tiles(K, 64));\n    let t = tile Vec<f32, 1, j>;\n    TEXPANDS(t, 1.0);\n    TSTORE(z.tile(j), t);\n}\n");
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
fn missing_const_without_default() {
    let s = Sandbox::new();
    s.file("k.tile", ADD.replace("const ROWS = 16", "const ROWS"));
    snapshot!(
        s.runs(&["run k.tile add --in a=a.npy --in b=b.npy", "run k.tile add --in a=a.npy --in b=b.npy -D ROWS=8"])
    );
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
fn prints_go_to_standard_error() {
    let s = Sandbox::new();
    s.file("p.tile", "kernel k(x: in f32[M, N], s: f32 = 1.5, y: out f32[M, N]) {\n    grid (i in tiles(M, 2), j in tiles(N, 64));\n    let v = Vec(x.tile(i, j));\n    print(\"block\", i.index, s);\n    TSTORE(y.tile(i, j), v);\n}\n");
    let (cpu, interp) =
        (s.run("run p.tile --in x=a.npy --json"), s.run("run p.tile --in x=a.npy --json --backend interp --threads 1"));
    let printed = |text: &str| text.split("-- stderr\n").nth(1).unwrap().to_owned();
    assert_eq!(printed(&cpu), printed(&interp));
    assert!(printed(&cpu).starts_with("block 0 1.5\n"), "{cpu}");
}

/// A kernel whose tiles need a dimension: what to write is said, as it would be written.
#[test]
fn a_missing_dimension_comes_with_the_command() {
    let s = Sandbox::new();
    s.file(
        "wide.tile",
        "kernel w(x: in f32[M, N], y: out f32[M, N]) {\n    grid (i in tiles(M, 8));\n    let t = tile Vec<f32, i, N>;\n    \
         TLOAD(t, x.tile(i, _));\n    TSTORE(y.tile(i, _), t);\n}\n",
    );
    for (call, command) in [
        ("emit wide.tile --stage sync", "ptoc emit --stage sync wide.tile -D N=128"),
        ("emit wide.tile w --stage loop --target a5", "ptoc emit --stage loop wide.tile w --target a5 -D N=128"),
        ("mem wide.tile -D capacity.Vec=65536", "ptoc mem wide.tile -D capacity.Vec=65536 -D N=128"),
        ("mem wide.tile --source", "ptoc mem --source wide.tile -D N=128"),
    ] {
        let told = s.run(call);
        assert!(told.contains("exit 1") && told.contains("error[E0307]") && told.contains("depend on `N`"), "{told}");
        let flat: String = told.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(&format!("`{command}`")), "{told}");
        assert!(s.run(command.strip_prefix("ptoc ").unwrap()).contains("exit 0"), "{command}");
    }
}

/// What was given on the command line stands there once, so the help says what to write in its place.
#[test]
fn a_value_that_does_not_fit_is_named_as_it_was_given() {
    let s = Sandbox::new();
    s.file(
        "big.tile",
        "kernel k<const X = 32>(a: in f32[M, N], c: out f32[M, N]) {\n    grid (i in tiles(M, 256), j in tiles(N, X));\n    \
         let x, y = tile Vec<f32, i, j>;\n    TLOAD(x, a.tile(i, j));\n    TADDS(y, x, 1.0);\n    TADD(y, y, x);\n    \
         TSTORE(c.tile(i, j), y);\n}\n",
    );
    let told = s.run("check big.tile -D X=128");
    assert!(told.contains("error[E0401]") && told.contains("with `-D X=64` in place of `-D X=128`"), "{told}");
    assert!(s.run("check big.tile -D X=64").contains("exit 0"));
}

/// Tiles of a function come once for each call: the map says of which.
#[test]
fn tiles_of_functions_name_their_call() {
    let s = Sandbox::new();
    s.file(
        "soft.tile",
        "\
fn soft(x: Vec<f32, 16, 64>, y: Vec<f32, 16, 64>) {
    let t = tile Vec<f32, 16, 64>;
    TADDS(t, x, 1.0);
    let u = tile Vec<f32, 16, 64>;
    TMULS(u, t, 2.0);
    TADD(y, u, t);
}
fn twice(x: Vec<f32, 16, 64>, y: Vec<f32, 16, 64>) {
    soft(x, y);
    soft(y, x);
}
kernel k(a: in f32[M, N], c: out f32[M, N]) {
    grid (i in tiles(M, 16), j in tiles(N, 64));
    let x = tile Vec<f32, 16, 64>;
    let y = tile Vec<f32, 16, 64>;
    TLOAD(x.valid(i, j), a.tile(i, j));
    soft(x, y);
    twice(y, x);
    TSTORE(c.tile(i, j), x.valid(i, j));
}
",
    );
    snapshot!(s.run("mem soft.tile"));
}

/// Kernels for units in memory: which backends run them, and what has no meaning there.
#[test]
fn targets_with_units() {
    let s = Sandbox::new();
    s.file(
        "unit.tile",
        "kernel k(a: in f16[32, 16] at ((8, 4), 16):((1@row, 1@unit), 2@byte), c: out f16[32, 16])\n    ensures c[i, j] == a[i, j] + a[i, j]\n{\n    grid (i in tiles(32, 8)) on 4:1@unit;\n    let x = GrfA(a.tile(i, _));\n    TSTORE(c.tile(i, _), x + Bank(a.tile(i, _)));\n}\n",
    );
    snapshot!(s.runs(&[
        "check unit.tile --target hbm-pim",
        "run unit.tile --target hbm-pim --backend interp --random 1 --verify --json",
        "run unit.tile --target hbm-pim --backend cpu",
        "run add.tile --backend pim",
        "emit unit.tile --stage asm --target hbm-pim",
        "mem unit.tile --source --target hbm-pim",
        "check unit.tile",
    ]));
}

/// What the backend of units in memory refuses, a check refuses too; what it cannot look at yet is said.
#[test]
fn checks_for_units() {
    let s = Sandbox::new();
    s.file(
        "refused.tile",
        "kernel div(a: in f16[N], c: out f16[N], s: f16) {\n    grid (i in tiles(N, 64));\n    TSTORE(c.tile(i), s / Vec(a.tile(i)));\n}\n",
    );
    s.file(
        "given.tile",
        "kernel k(feat: in f16[4, 4, 16], geo: in f16[4, 4], attn: in f16[4, S], offs: in f16[4, S, 2] = none, y: out f16[4, 16]) {\n    grid (q in 0..4) on 4:1@unit;\n    let acc = tile Vec<f32, 1, 16>;\n    TSAMPLE(acc, feat, geo[q, _], attn[q, _], offs[q, _, _]);\n    TSTORE(y[q, _], f16(acc));\n}\n",
    );
    snapshot!(s.runs(&[
        "check refused.tile --target hbm-pim",
        "check refused.tile --target hbm-pim -D N=64",
        "check refused.tile --target hbm-pim -D N=64 -D s=1.0",
        "check add.tile --target geopim -D M=2 -D N=16 -D s=1.0",
        "emit given.tile --stage pim --target geopim -D S=3",
        "emit given.tile --stage pim --target geopim -D S=3 --given offs",
        "emit given.tile --stage ir --target geopim -D S=3 --given off",
        "emit add.tile add --stage ir --given a",
        "run add.tile --backend pim,interp",
    ]));
    let program = "kernel two(a: in f16[32, 16], c: out f16[32, 16]) {\n    grid (i in tiles(32, 8)) on 4:1@unit;\n    TSTORE(c.tile(i, _), Vec(a.tile(i, _)) * 2.0);\n}\n#[on(host)]\nkernel half(a: in f16[32, 16], c: out f16[32, 16]) {\n    grid (i in tiles(32, 8));\n    TSTORE(c.tile(i, _), Vec(a.tile(i, _)) / 2.0);\n}\nprogram both(a: in f16[32, 16], c: out f16[32, 16]) {\n    let t = tensor f16[32, 16];\n    two(a, t);\n    half(t, c);\n}\n";
    s.file("host.tile", program);
    let says = |kernel: &str| {
        let run = s.run(&format!("run host.tile {kernel} --target hbm-pim --backend pim --random 1"));
        let line = run.lines().find(|l| l.contains(" on pim (")).unwrap_or_else(|| panic!("{run}"));
        line.split_once(": compiled").expect("a time").0.to_owned()
    };
    assert_eq!(says("two"), "two on pim (hbm-pim)");
    assert_eq!(says("half"), "half on pim (hbm-pim; a kernel of the host: no unit takes part)");
    assert_eq!(says("both"), "both on pim (hbm-pim; 1 of 2 launches by the host)");
}

#[test]
fn emit_shows_every_stage() {
    let s = Sandbox::new();
    for stage in ["tokens", "ast", "ir", "placed", "loop", "clif", "asm"] {
        let run = s.run(&format!("emit add.tile add --stage {stage}"));
        assert!(run.contains("exit 0") && run.contains("-- stdout"), "{stage}: {run}");
        s.run(&format!("emit add.tile add --stage {stage} -o {stage}.txt"));
        let (_, printed) = run.split_once("-- stdout\n").unwrap();
        assert_eq!(fs::read_to_string(s.path().join(format!("{stage}.txt"))).unwrap(), printed, "{stage}");
    }
    // What is said of bounds has the place of the access.
    let loops = s.run("emit add.tile add --stage loop");
    for row in ["bounds \"c\" proof at 6:5\n", "bounds \"a\" proof at 6:26\n", "bounds \"b\" proof at 6:46\n"] {
        assert!(loops.contains(row), "{row}{loops}");
    }
    s.file("wait.tile", "kernel w(x: in f32[M, N], y: out f32[M, N]) {\n    grid (i in tiles(M, 8));\n    TSTORE(y.tile(i, _), Vec(x.tile(i, _)));\n}\n");
    s.file("bad.tile", "kernel k( {\n");
    snapshot!(s.runs(&[
        "emit add.tile add --stage placed",
        "emit add.tile --stage ir",
        "emit add.tile add --stage pto",
        "emit add.tile add --stage nothing",
        "emit wait.tile --stage ir",
        "emit bad.tile --stage tokens",
        "emit bad.tile --stage ir -o bad.ir",
    ]));
    assert!(!s.path().join("bad.ir").exists());
}

#[test]
fn emit_shows_the_ir_between_passes() {
    let s = Sandbox::new();
    // It goes over its rows again: its grid is split, and its rows are pipelined.
    s.file("softmax.tile", include_str!("../../../examples/softmax.tile"));
    let printed = |words: &str| {
        let run = s.run(&format!("emit softmax.tile softmax -D N=4096 {words}"));
        run.split_once("-- stdout\n").unwrap_or_else(|| panic!("{run}")).1.to_owned()
    };
    let all = printed("--print-after-all --verify-ir");
    let names: Vec<&str> = all.lines().filter_map(|l| l.strip_prefix("# after ")).collect();
    let order: Vec<&str> = ptoc_driver::stages::steps().into_iter().map(|s| s.0).collect();
    assert!(names.iter().zip(&names[1..]).all(|(a, b)| {
        let place = |n: &str| order.iter().position(|o| *o == n).unwrap_or_else(|| panic!("no step {n}"));
        place(a) < place(b)
    }));
    for name in ["elaboration", "placement", "grid-split", "lowering", "row-pipelining"] {
        assert!(names.contains(&name), "{names:?}");
        let after = printed(&format!("--stage after:{name}"));
        assert!(all.contains(&format!("# after {name}\n{after}\n")), "{after}");
    }
    // The pass that splits the grid leaves tiles of one row, and what follows it has its kernel.
    assert!(!printed("--stage after:address-checks").eq(&printed("--stage after:grid-split")));
    let unchanged = printed("--stage after:lazy-gather");
    assert!(unchanged.starts_with("# lazy-gather changed nothing: as after grid-split\n"), "{unchanged}");
    // Loops are the last form, and the table of bounds belongs to `--stage loop`.
    assert!(printed("--stage loop").contains("spread"));
    snapshot!(s.runs(&[
        "emit add.tile add --stage after:nothing",
        "emit add.tile add",
        "emit add.tile add --stage after:grid-split --target hbm-pim -D M=16 -D N=64",
        "emit add.tile add --stage placed --print-after-all",
    ]));
}

#[test]
fn emit_makes_a_page_of_the_passes() {
    let s = Sandbox::new();
    let source = include_str!("../../../examples/softmax.tile");
    s.file("softmax.tile", source);
    let run = s.run("emit softmax.tile softmax -D N=4096 --html trace.html");
    assert!(run.contains("exit 0") && !run.contains("-- stdout"), "{run}");
    let page = fs::read_to_string(s.path().join("trace.html")).unwrap();
    // A stage for each of the passes that `--print-after-all` shows, and then machine code.
    let all = s.run("emit softmax.tile softmax -D N=4096 --print-after-all");
    let mut names: Vec<&str> = all.lines().filter_map(|l| l.strip_prefix("# after ")).collect();
    names.push("machine code");
    let stages: Vec<&str> = page.split("<section class=\"stage\"").skip(1).collect();
    let headings: Vec<&str> =
        stages.iter().map(|s| s.split_once("<h2>").unwrap().1.split_once(" <small>").unwrap().0).collect();
    assert_eq!(headings, names);
    // Every stage has lines that stem from the exponential, and no line stems from what is not there.
    let exp = 1 + source.lines().position(|l| l.contains("e.tile(_, j) = exp(")).unwrap();
    for (stage, name) in stages.iter().zip(&names) {
        let places = stage.split("data-at=\"").skip(1).flat_map(|at| at.split_once('"').unwrap().0.split(' '));
        let lines: Vec<usize> = places.map(|at| at.strip_prefix("0:").expect(at).parse().unwrap()).collect();
        // What is decided of fusion is said in words.
        assert!(lines.contains(&exp) || *name == "fusion", "{name}");
        assert!(lines.iter().all(|n| (1..=source.lines().count()).contains(n)), "{name}");
    }
    assert_eq!(page.matches(&format!("<li data-at=\"0:{exp}\" tabindex=\"0\">")).count(), 1);
    // Units in memory have no machine code; what is refused leaves no page.
    s.run("emit add.tile add --target hbm-pim -D M=16 -D N=64 --html units.html");
    let units = fs::read_to_string(s.path().join("units.html")).unwrap();
    assert!(units.contains("placement") && !units.contains("machine code"), "{units}");
    s.file("bad.tile", "kernel k( {\n");
    snapshot!(s.runs(&[
        "emit add.tile add --html a.html --stage asm",
        "emit add.tile add --html a.html --print-after-all",
        "emit add.tile add --html a.html -o b.html",
        "emit bad.tile --html bad.html",
    ]));
    assert!(!s.path().join("a.html").exists() && !s.path().join("bad.html").exists());
}

#[test]
fn test_lines() {
    let s = Sandbox::new();
    s.file("sub/data.npy", fs::read(s.path().join("a.npy")).unwrap());
    let lines = "
// run: add interp,cpu M=20 N=70 seed=1
// run: add interp a=data.npy b=data.npy c==data.npy
// run: add cpu a=data.npy b=data.npy c==data.npy atol=100
// run: add interp,pim M=1 N=1
// run: scale interp,cpu M=3 N=3
// run: scale interp,cpu M=3 N=3 s=2.0 ROWS=3
// run: nobody interp M=3
// run: add interp,cpu target=a9 M=1 N=1
// run: add nowhere M=1
// check: add
// check: add ROWS=4096 => capacity
// check: add ROWS=4096
// check: add => SA-0353, dtype
";
    s.file("sub/t.tile", format!("{ADD}{lines}"));
    s.file("sub/deeper/u.tile", format!("{ADD}// check: add capacity.Vec=0x100 => SA-0352\n"));
    s.file("sub/not.txt", "// run: x y\n");
    snapshot!(s.run("test sub"));
    snapshot!(s.runs(&["test add.tile", "test missing.tile add.tile", "test sub/deeper"]));
}

#[test]
fn a_test_line_is_no_obstacle() {
    let s = Sandbox::new();
    s.file("odd.tile", format!("// run: scale\n// check: add a=\n// run: add tpu M=1\n{ADD}"));
    snapshot!(s.runs(&[
        "run odd.tile add --in a=a.npy --in b=b.npy --out c=c.npy",
        "emit odd.tile add --stage loop --deny E0040 -o loop.txt",
        "check odd.tile",
    ]));
}

#[test]
fn wrong_calls_and_what_is_for_later() {
    let s = Sandbox::new();
    snapshot!(s.runs(&[
        "--help",
        "run --help",
        "",
        "frobnicate",
        "check",
        "fmt --check add.tile",
        "lsp",
        "mem add.tile",
        "sim x.pim",
        "bench add.tile",
    ]));
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = s.run(&format!("completions {shell}"));
        assert!(script.contains("exit 0") && script.contains("ptoc"), "{shell}");
    }
}

#[test]
fn colours_only_where_they_are_wanted() {
    let s = Sandbox::new();
    assert!(!s.run("check missing.tile").contains('\x1b'));
    assert!(s.run("check missing.tile --color always").contains('\x1b'));
    assert!(!s.run("check missing.tile --color never").contains('\x1b'));
}

#[test]
fn a_reader_that_has_gone_is_no_panic() {
    let s = Sandbox::new();
    for args in [
        "explain --list",
        "targets",
        "emit add.tile add --stage clif",
        "run add.tile add --random 1 -D M=3 -D N=3",
        "--help",
    ] {
        let mut child = s.command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(0) && !err.contains("panicked"), "{args}: {err}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_told() {
    let s = Sandbox::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = s.command("targets").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("E0742"));
}

#[test]
fn deep_and_huge_input() {
    let s = Sandbox::new();
    let deep = format!("kernel k(x: in f32[M]) {{ let a = {}1{}; }}\n", "(".repeat(100_000), ")".repeat(100_000));
    s.file("deep.tile", deep);
    let huge = format!("kernel k(x: in f32[{}]) {{ }}\n", "9".repeat(400));
    s.file("huge.tile", huge);
    for (args, code) in [
        ("check deep.tile", "E0011"),
        ("emit deep.tile --stage ast", "E0011"),
        ("run deep.tile --random 1 -D M=1", "E0011"),
        ("check huge.tile", "E0006"),
    ] {
        let run = s.run(args);
        assert!(
            run.contains("exit 1") && run.contains(&format!("error[{code}]")),
            "{args}: {}",
            &run[..run.len().min(2000)]
        );
    }
    let run = s.run(&format!("check add.tile -D ROWS={}1{}", "(".repeat(20_000), ")".repeat(20_000)));
    assert!(run.contains("exit 1"), "{}", &run[run.len() - 2000..]);
    let run = s.run("run add.tile add --random 1 -D M=4000000000 -D N=4000000000");
    assert!(run.contains("exit 1") && run.contains("E0708"), "{run}");
}

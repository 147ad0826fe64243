//! The command line with one backend more.

use ptoc_cli::io::Io;
use ptoc_tests_backend::{RECORD, given};
use serde_json::Value;

const SAXPY: &str = "
kernel saxpy<const B = 16>(a: in f32[M, N], b: in f32[M, N], c: out f32[M, N])
    ensures c[i, j] == 2.0 * a[i, j] + b[i, j]
{
    grid (i in tiles(M, B), j in tiles(N, 32));
    let x = Vec(a.tile(i, j));
    let y = Vec(b.tile(i, j));
    TSTORE(c.tile(i, j), 2.0 * x + y);
}

kernel total(a: in f32[M, 64], s: out f32[M, 1])
{
    grid (i in tiles(M, 16));
    let x = tile Vec<f32, i, 64>;
    let r = tile Vec<f32, i, 1>;
    TLOAD(x, a.tile(i, _));
    TROWSUM(r, x);
    TSTORE(s.tile(i, _), r);
}
";

/// `ptoc` with these words about the file: status, standard output, standard error.
fn call(name: &str, words: &[&str]) -> (u8, String, String) {
    ptoc_driver::backend::register(RECORD);
    let folder = std::env::temp_dir().join(format!("ptoc-tests-backend-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the source");
    let file = folder.join(format!("{name}.tile"));
    std::fs::write(&file, SAXPY).expect("it can be written");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let words = words.iter().map(|w| w.replace("FILE", &file.display().to_string()));
    let words = std::iter::once("ptoc".to_owned()).chain(words).map(Into::into);
    let status = ptoc_cli::execute(words, &mut Io::new(&mut out, &mut err));
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    (status, text(out), text(err))
}

fn outputs(name: &str, backend: &str) -> Value {
    let sizes = ["-D", "M=37", "-D", "N=70", "--random", "3", "--verify", "--rtol", "1e-6", "--json"];
    let words: Vec<&str> = ["run", "FILE", "saxpy", "--backend", backend].into_iter().chain(sizes).collect();
    let (status, out, err) = call(name, &words);
    assert_eq!(status, ptoc_cli::DONE, "{err}");
    let run: Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!(run["backend"], backend);
    run["outputs"].clone()
}

/// The results have the interpreter's bits, and the IR was recorded.
#[test]
fn kernels_run_on_it() {
    assert_eq!(outputs("run", "record"), outputs("run", "interp"));
    let all = given("saxpy");
    let one = all.first().expect("it was compiled");
    assert!(one.tile_ir.contains("tload") || one.tile_ir.contains("TLOAD"), "{}", one.tile_ir);
    assert!(one.loop_ir.contains("lanes"), "{}", one.loop_ir);
}

/// What it does not execute is a diagnostic.
#[test]
fn it_refuses_what_it_cannot_do() {
    let (status, _, err) =
        call("refuse", &["run", "FILE", "total", "--backend", "record", "-D", "M=16", "--random", "1"]);
    assert_eq!(status, ptoc_cli::ERRORS);
    assert!(err.contains("executes element-wise kernels, and `total`"), "{err}");
    let (status, _, err) = call("target", &["run", "FILE", "saxpy", "--backend", "record", "--target", "geopim"]);
    assert_eq!(status, ptoc_cli::WRONG_CALL);
    assert!(err.contains("the backend `record` does not run kernels for geopim"), "{err}");
    assert!(err.contains("use `--backend pim` or `--backend interp`"), "{err}");
}

/// Help, stages, targets and passes know it, and defaults stay what they are.
#[test]
fn the_command_line_knows_it() {
    let (_, help, _) = call("help", &["run", "--help"]);
    assert!(help.contains("- record: Records IR and evaluates it"), "{help}");
    let (_, help, _) = call("help", &["emit", "--help"]);
    assert!(help.contains("- ops: "), "{help}");
    let (status, ops, err) = call("ops", &["emit", "FILE", "saxpy", "--stage", "ops"]);
    assert_eq!(status, ptoc_cli::DONE, "{err}");
    assert!(ops.contains("lanes") && ops.contains("store") && !ops.contains("reduce"), "{ops}");
    let (_, targets, _) = call("targets", &["targets", "a2a3", "--json"]);
    let targets: Value = serde_json::from_str(&targets).expect("JSON");
    let backends = targets.pointer("/backends").or_else(|| targets.pointer("/0/backends"));
    assert_eq!(backends, Some(&serde_json::json!(["cpu", "record", "interp"])), "{targets}");
    let (status, out, err) =
        call("default", &["run", "FILE", "saxpy", "-D", "M=4", "-D", "N=4", "--random", "1", "--json"]);
    assert_eq!(status, ptoc_cli::DONE, "{err}");
    assert!(out.contains("\"backend\":\"cpu\""), "{out}");
}

//! Kernels as C++ against pto-isa. `tests/scripts/pto_cpp.py` compiles and runs them where there is a checkout of it;
//! here are the text, its addresses and its order, and what is refused.

use ptoc_driver::session::Session;
use ptoc_driver::stages::{Level, Stage, text_of};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn example(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples").join(file)
}

/// A stage of a kernel, or the codes and messages of its errors.
fn made(path: &Path, text: String, kernel: &str, target: &str, stage: Stage, level: Level) -> Result<String, String> {
    let mut session = Session::new(target, &[]).expect("a target");
    session.pto_level = Some(level);
    let unit = session.load_text(path, text);
    let entry = unit.entry(Some(kernel), "emit").expect("the kernel");
    let made = text_of(&mut session, &unit, &entry, stage, Vec::new());
    let errors: Vec<String> =
        session.diagnostics.iter().filter(|d| d.is_error()).map(|d| format!("{} {}", d.code, d.message)).collect();
    made.map_err(|_| errors.join("\n"))
}

fn cpp(file: &str, kernel: &str, target: &str, level: Level) -> String {
    let path = example(file);
    let text = std::fs::read_to_string(&path).expect("readable");
    let text = made(&path, text, kernel, target, Stage::PtoCpp, level).expect("it can be said");
    // The version changes, and what is made does not.
    text.replace(&format!("ptoc {}.", env!("CARGO_PKG_VERSION")), "ptoc.")
}

#[test]
fn snapshots() {
    insta::assert_snapshot!("cpp_add_auto", cpp("add.tile", "add_auto", "a2a3", Level::Explicit));
    insta::assert_snapshot!("cpp_gemm", cpp("gemm.tile", "gemm", "a5", Level::Explicit));
    insta::assert_snapshot!("cpp_rmsnorm", cpp("rmsnorm.tile", "rmsnorm", "a2a3", Level::Automatic));
    insta::assert_snapshot!("cpp_by_rings", cpp("double_buffer.tile", "by_rings", "a2a3", Level::Explicit));
}

/// Runs the command line; its standard output.
fn ptoc(args: &[&str]) -> (u8, String, String) {
    let (mut shown, mut err) = (Vec::new(), Vec::new());
    let mut io = ptoc_cli::io::Io::new(&mut shown, &mut err);
    let args = std::iter::once("ptoc").chain(args.iter().copied()).map(Into::into);
    let status = ptoc_cli::execute(args, &mut io);
    (status, String::from_utf8_lossy(&shown).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

/// Places of tiles: memory and first byte.
type Places = BTreeSet<(String, u64)>;

/// What `ptoc mem` says.
fn planned(file: &str, kernel: &str, target: &str) -> Places {
    let path = example(file).display().to_string();
    let (status, shown, err) = ptoc(&["mem", &path, kernel, "--target", target, "--json"]);
    assert_eq!(status, ptoc_cli::DONE, "{err}");
    let json: serde_json::Value = serde_json::from_str(&shown).expect("JSON");
    let mut places = Places::new();
    for memory in json["memories"].as_array().expect("memories") {
        let location = memory["location"].as_str().expect("a location");
        for tile in memory["tiles"].as_array().expect("tiles") {
            let ranges = tile["ranges"].as_array().expect("ranges").iter();
            places.extend(ranges.map(|r| (location.to_owned(), r[0].as_u64().expect("a byte"))));
        }
    }
    places
}

/// What the tiles of the C++ are bound to: a declaration, then `TASSIGN<addr>(name);`.
fn assigned(text: &str) -> Places {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let bound = lines.windows(2).filter_map(|pair| {
        let addr = pair[1].strip_prefix("TASSIGN<0x")?.split('>').next()?;
        let location = pair[0].strip_prefix("Tile<TileType::")?.split(',').next()?;
        Some((location.to_owned(), u64::from_str_radix(addr, 16).expect("an address")))
    });
    bound.collect()
}

#[test]
fn addresses_are_those_of_the_plan() {
    let kernels = [
        ("add.tile", "add_auto", "a2a3"),
        ("gemm.tile", "gemm", "a2a3"),
        ("gemm.tile", "gemm_f16", "a5"),
        ("softmax.tile", "softmax_long", "a2a3"),
        ("transpose.tile", "transpose", "a2a3"),
        ("attention.tile", "attention", "a5"),
        ("double_buffer.tile", "by_rings", "a2a3"),
    ];
    for (file, kernel, target) in kernels {
        let text = cpp(file, kernel, target, Level::Explicit);
        assert_eq!(assigned(&text), planned(file, kernel, target), "{file} {kernel}");
    }
}

#[test]
fn the_automatic_form_has_neither_addresses_nor_flags() {
    for (file, kernel) in [("add.tile", "add_auto"), ("gemm.tile", "gemm"), ("rmsnorm.tile", "rmsnorm")] {
        let text = cpp(file, kernel, "a2a3", Level::Automatic);
        assert!(!text.contains("TASSIGN") && !text.contains("_flag(") && !text.contains("_barrier("), "{text}");
        assert!(text.contains("#ifndef __PTO_AUTO__"), "{text}");
    }
}

/// Words of order in a text, one after the other.
fn order<'t>(text: &'t str, words: &[(&str, &'static str)]) -> Vec<&'static str> {
    let word = |line: &'t str| words.iter().find(|(w, _)| line.trim_start().starts_with(w)).map(|(_, kind)| *kind);
    text.lines().filter_map(word).collect()
}

/// Flags and barriers of the C++ are those of PTO text of level 3, one by one.
#[test]
fn order_is_that_of_level_3() {
    let in_cpp = [("set_flag(", "set"), ("wait_flag(", "wait"), ("pipe_barrier(", "barrier")];
    let in_text = [("pto.set_flag", "set"), ("pto.wait_flag", "wait"), ("pto.barrier", "barrier")];
    let kernels =
        [("gemm.tile", "gemm", "a2a3"), ("softmax.tile", "softmax_long", "a2a3"), ("rope.tile", "rope_halves", "a5")];
    for (file, kernel, target) in kernels {
        let path = example(file);
        let source = std::fs::read_to_string(&path).expect("readable");
        let text = made(&path, source, kernel, target, Stage::Pto, Level::Explicit).expect("it can be said");
        let wanted = order(&text, &in_text);
        assert!(wanted.len() > 4, "{file} {kernel}");
        assert_eq!(order(&cpp(file, kernel, target, Level::Explicit), &in_cpp), wanted, "{file} {kernel}");
    }
}

#[test]
fn what_is_refused() {
    // `one_entry`: its name stands in its row alone.
    let sum_of_three = concat!("TADD", "C");
    let wide = "kernel k(x: in f32[16, 64], y: out f32[16, 64])\n{\n    let a = tile Vec<f32, 16, 64>;\n    \
                let d = tile Vec<f32, 16, 128, valid = (16, 64)>;\n    TLOAD(a, x);\n    SUM(d, a, a, a);\n    \
                TSTORE(y, d);\n}\n"
        .replace("SUM", sum_of_three);
    let refused = made(Path::new("k.tile"), wide, "k", "a2a3", Stage::PtoCpp, Level::Explicit);
    let message = refused.expect_err("the function has one type for its tiles");
    assert!(
        message.starts_with("E1406 ") && message.contains(&format!("`{sum_of_three}` of tiles of different types")),
        "{message}"
    );
    for target in ["sm90", "geopim", "hbm-pim"] {
        let path = example("add.tile");
        let text = std::fs::read_to_string(&path).expect("readable");
        for stage in [Stage::Pto, Stage::PtoCpp] {
            let refused = made(&path, text.clone(), "add_auto", target, stage, Level::Automatic);
            let message = refused.expect_err("it is no target of PTO's");
            assert!(message.starts_with("E1407 ") && message.contains(target), "{message}");
        }
    }
}

/// An accumulator that is 0 at first is begun by the first product, and a sum without any ends the launch.
#[test]
fn accumulators_begin_with_a_product() {
    let text = cpp("gemm.tile", "gemm", "a5", Level::Automatic);
    for part in ["TMATMUL(acc, a, b);", "TMATMUL_ACC(acc, acc, a, b);", "end_launch();"] {
        assert_eq!(text.lines().filter(|l| l.trim() == part).count(), 1, "{part}\n{text}");
    }
    assert!(!text.contains("TEXPANDS"), "{text}");
}

#[test]
fn files_are_built_by_their_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let (unit, header) = (folder.path().join("add_pto.cpp"), folder.path().join("add.h"));
    let (source, unit_name) = (example("add.tile").display().to_string(), unit.display().to_string());
    let args = ["build", &source, "add_auto", "-o", &unit_name, "--header", &header.display().to_string()];
    let (status, _, err) = ptoc(&args);
    assert_eq!(status, ptoc_cli::DONE, "{err}");
    let text = std::fs::read_to_string(&unit).expect("the unit");
    let header = std::fs::read_to_string(&header).expect("the header");
    let head = "extern \"C\" void launch_add_auto(uint32_t blocks, void* stream, void* a, void* b, void* c, int64_t M, \
                int64_t N)";
    assert!(text.contains(&format!("{head}\n{{")) && header.contains(&format!("{head};")), "{text}\n{header}");
    // A kernel that is refused leaves no file.
    let other = folder.path().join("attention_pto.cpp").display().to_string();
    let source = example("attention.tile").display().to_string();
    let (status, _, err) = ptoc(&["build", &source, "attention", "--target", "a2a3", "-o", &other]);
    assert_eq!(status, ptoc_cli::ERRORS, "{err}");
    assert!(err.contains("E1405") && !Path::new(&other).exists(), "{err}");
}

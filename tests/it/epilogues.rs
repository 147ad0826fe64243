//! `std::epilogue`: what is refused and with which words, storage as `ptoc mem` reports it, traffic as the interpreter
//! counts it. Results are held to numpy's by the lines of `tests/language/epilogues.tile`.

use crate::engine::{Outcome, build, check, command};
use ptoc_tensor::{DType, Tensor};
use serde_json::Value;
use std::path::Path;

fn program() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("language/epilogues.tile").display().to_string()
}

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("language/data");
    format!("{}={}", name, folder.join(format!("epilogue_{}.npy", name.to_lowercase())).display())
}

/// A call on the program of `tests/language`, with definitions and other words.
fn call(verb: &str, kernel: &str, defs: &[&str], more: &[&str]) -> Outcome {
    let mut words = vec![verb.to_owned(), program()];
    if verb != "check" {
        words.push(kernel.to_owned());
    }
    words.extend(["--target", "a5"].map(str::to_owned));
    words.extend(defs.iter().flat_map(|d| ["-D".to_owned(), (*d).to_owned()]));
    words.extend(more.iter().map(|w| (*w).to_owned()));
    command(&words)
}

fn json(outcome: Outcome) -> Value {
    assert_eq!(outcome.status, 0, "{}", outcome.err);
    serde_json::from_str(&outcome.out).expect("JSON")
}

/// A kernel that is nothing but an assertion.
fn asserts(names: &str, condition: &str) -> String {
    let uses: String = names.split(' ').map(|n| format!("use std::epilogue::{n};\n")).collect();
    format!("{uses}kernel k(y: out i32[1]) {{\n    static_assert({condition});\n    y[0] = 0;\n}}\n")
}

/// What is said of a program with errors; empty of one without.
fn said(text: &str) -> String {
    let refused = check(text, "a5", &[]);
    if refused.codes.is_empty() { String::new() } else { refused.text }
}

#[test]
fn blocks_of_blocks_are_written_where_they_are_read() {
    let text = "kernel k(x: in f32[M, N], c: in f32[M, N], y: out f32[M, N], s: f32) {
        grid (m in tiles(M, 64), n in tiles(N, 64));
        for j in tiles(n.len, 32) { for i in tiles(m.len, 64) {
            let t = Vec(x.tile(m, n).tile(i, j));
            if s != 0.0 { t += s * Vec(c.tile(m, n).tile(i, j)); }
            TSTORE(y.tile(m, n).tile(i, j), t);
        } }
    }";
    let found = check(text, "a5", &[]);
    assert!(found.codes.is_empty() && !found.text.contains("E0502"), "{}", found.text);
    // What only a third block would write is read in the second one.
    let text = text.replace("y.tile(m, n).tile(i, j), t)", "y.tile(m, n).tile(i, j), u)");
    let unwritten =
        text.replace("for j in", "let u = tile Vec<f32, 64, 32>; for j in").replace("u);", "u.valid(i, j));");
    let found = check(&unwritten, "a5", &[]);
    assert!(found.text.contains("E0501") || found.text.contains("E0502"), "{}", found.text);
}

#[test]
fn row_31_storage_of_stages_and_barriers() {
    assert_eq!(said(&asserts("storage", "storage(8192, 8192, 4, 2) == 49200")), "");
    assert_eq!(said(&asserts("storage", "storage(8192, 8192, 4, 2, reuse = true) == 32816")), "");
    // What the kernel takes is what the function says.
    for (defs, bytes) in [(&[][..], 49200), (&["REUSE=true"], 32816), (&["SC=6", "SD=3"], 73800), (&["EM=32"], 24624)] {
        let map = json(call("mem", "late", defs, &["--json"]));
        let memories = map["memories"].as_array().expect("memories");
        let tiles = memories.iter().flat_map(|m| m["tiles"].as_array().expect("tiles"));
        let stages = tiles.filter(|t| t["name"] == "source" || t["name"] == "result");
        let buffers: u64 = stages.map(|t| t["bytes"].as_u64().expect("bytes")).sum();
        assert_eq!(buffers + map["barrier_bytes"].as_u64().expect("bytes"), bytes, "{defs:?}");
    }
    let text = call("mem", "late", &[], &[]).out;
    assert!(text.contains("transaction barriers  48 bytes, beside the tiles: full[4] 32, ready[2] 16\n"), "{text}");
}

#[test]
fn row_44_subtiles() {
    let of = |tile: &str, count: u64| said(&asserts("subtiles", &format!("subtiles({tile}) == {count}")));
    assert_eq!(of("128, 128, 64, 64", 4), "");
    assert_eq!(of("128, 256, 64, 64", 8), "");
    assert_eq!(of("128, 96, 64, 24", 8), "");
    assert_eq!(of("128, 96, 64, 32", 6), "");
    assert!(of("128, 128, 48, 64", 4).contains("subtiles of 48 rows do not divide a tile of 128"));
    assert!(of("128, 128, 64, 48", 4).contains("subtiles of 48 columns do not divide a tile of 128"));
    assert!(of("128, 120, 64, 30", 8).contains("rows of 30 columns are stored neither by 128 bits"));
}

#[test]
fn row_45_the_automatic_plan() {
    let rows = [
        ("128, 128, 16, 16", "64, 32, 8, 16, true, 4, 2, false"),
        ("128, 128, 16, 16, threads = 256", "128, 32, 4, 16, true, 4, 2, false"),
        ("128, 256, 0, 16, threads = 256", "128, 32, 8, 16, false, 4, 2, true"),
        ("128, 128, 8, 8", "64, 64, 4, 32, false, 4, 2, false"),
        ("64, 32, 16, 16", "64, 32, 1, 16, true, 2, 1, false"),
        // By the rules, and not in the table: a divisor that is no power of two has small powers of two.
        ("128, 40, 16, 16", "64, 8, 10, 4, true, 4, 2, false"),
        ("128, 24, 0, 32", "64, 24, 2, 12, false, 2, 2, true"),
    ];
    const FIELDS: [&str; 8] = ["rows", "cols", "subtiles", "fragment", "reuse", "stages_c", "stages_d", "delay"];
    for (of, expected) in rows {
        let fields = FIELDS.iter().zip(expected.split(", ")).map(|(f, v)| format!("plan({of}).{f} == {v}"));
        let all = fields.collect::<Vec<_>>().join(" && ");
        assert_eq!(said(&asserts("plan", &all)), "", "{of}");
    }
    assert_ne!(said(&asserts("plan", "plan(64, 32, 16, 16).stages_c == 1")), "");
}

/// Bytes that a run of `fused` reads and writes in memory.
fn traffic(defs: &[&str], c: bool) -> (u64, u64) {
    let mut more: Vec<String> = ["--backend", "interp", "--stats", "--json"].map(str::to_owned).into();
    for name in ["A", "B", "C"].into_iter().filter(|n| c || *n != "C") {
        more.extend(["--in".to_owned(), data(name)]);
    }
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    let stats = &json(call("run", "fused", defs, &more))["stats"];
    (stats["bytes_read"].as_u64().expect("bytes"), stats["bytes_written"].as_u64().expect("bytes"))
}

#[test]
fn row_46_nothing_of_c_is_read_where_beta_is_0() {
    let (with, written) = traffic(&["alpha=0.5", "beta=2.0"], true);
    let (without, same) = traffic(&["alpha=0.5", "beta=0.0"], true);
    // 70 x 75 elements of f32.
    assert_eq!((with - without, written), (4 * 70 * 75, same));
    assert_eq!(without, traffic(&["alpha=0.5"], false).0);
}

#[test]
fn row_47_an_absent_c_has_no_buffer() {
    let source = std::fs::read_to_string(program()).expect("the program");
    let tiles = |text: &str| -> Vec<String> {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("fused.tile");
        std::fs::write(&file, text).expect("written");
        let map = json(command(&["mem", &file.display().to_string(), "fused", "--target", "a5", "--json"]));
        let memories = map["memories"].as_array().expect("memories").iter();
        let all = memories.flat_map(|m| m["tiles"].as_array().expect("tiles"));
        all.map(|t| t["name"].as_str().expect("a name").to_owned()).collect()
    };
    // `c` is the subtile of C that `std::epilogue::linear` loads.
    assert!(!tiles(&source).contains(&"c".to_owned()));
    assert!(tiles(&source.replace("C: in f32[M, N] = none,", "C: in f32[M, N],")).contains(&"c".to_owned()));
}

#[test]
fn row_48_one_auxiliary_tensor() {
    let source = std::fs::read_to_string(program()).expect("the program");
    assert_eq!(said(&source), "");
    let inner = "biased_rows(rows.tile(m), linear()));\n    store<EM = 64>(D.tile(m, n), acc, f);\n}\n\n// run: masked";
    assert!(source.contains(inner));
    let both = said(&source.replace(inner, &format!("saved(D.tile(m, n), {}", inner.replacen("));", ")));", 1))));
    assert!(both.contains("an epilogue has one auxiliary tensor, and this one 2"), "{both}");
    // Bits are packed from registers: nothing of their kind is staged in memory that the chip moves by itself.
    let map = json(call("mem", "masked", &[], &["--json"]));
    assert_eq!(map["barrier_bytes"], 0);
}

#[test]
fn row_49_the_failing_condition_is_named() {
    let of = |arguments: &str| said(&asserts("storage", &format!("storage({arguments}) > 0")));
    assert_eq!(of("8192, 8192, 2, 2, reuse = true"), "");
    assert!(of("8192, 8192, 2, 3, reuse = true").contains("D takes the buffers of C: it has 3 stages, C 2"));
    assert!(of("8192, 4096, 4, 2, reuse = true").contains("a stage of C has 8192 bytes, one of D 4096"));
    assert!(of("0, 8192, 4, 2, reuse = true").contains("D takes the buffers of C, and there is no C"));
    assert_eq!(of("8192, 8192, 3, 2, reuse = true, delay = true"), "");
    let deadlock = of("8192, 8192, 2, 2, reuse = true, delay = true");
    assert!(deadlock.contains("deadlock: a store waits for the next subtile"), "{deadlock}");
    assert_eq!(of("8192, 8192, 2, 2, delay = true"), "");
    assert_eq!(of("8192, 4096, 2, 3"), "");
}

const RESIDUE: &str = "
use std::epilogue::linear;
use std::epilogue::store;

#[disjoint(D, \"the guards are nobody's\")]
kernel k(A: in f16[M, K], B: in f16[K, N], D: inout f32[MG, NG])
    where MG >= M, NG >= N
{
    grid (m in tiles(M, 128), n in tiles(N, 128));
    let acc = tile Acc<f32, m, n>;
    acc = 0.0;
    for k in tiles(K, 64) { TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }
    store<EM = 64>(D.tile(m, n), acc, linear());
}";

#[test]
fn row_50_guards_stay_untouched() {
    let (m, n, k, guard) = (2050, 2050, 2, 5);
    let dims = [("M", m), ("N", n), ("K", k), ("MG", m + guard), ("NG", n + guard)];
    let built = match build(RESIDUE, "a5", &[], &dims) {
        Ok(built) => built,
        Err(refused) => panic!("{:?}", refused.codes),
    };
    let [m, n, k, mg, ng] = dims.map(|d| d.1 as usize);
    // Small integers: 1.0 to 5.0 of A, 1.0 and 2.0 of B.
    let half = |x: usize| [0x3c00, 0x4000, 0x4200, 0x4400, 0x4500][x];
    let a = Tensor::from_fn(DType::F16, &[m, k], |i| half(i % 5)).expect("small");
    let b = Tensor::from_fn(DType::F16, &[k, n], |i| half(i % 2)).expect("small");
    let guards = Tensor::from_fn(DType::F32, &[mg, ng], |_| 12345f32.to_bits().into()).expect("small");
    let after = built.execute(&dims, &[a, b, guards], 1).expect("runs");
    let d = &after[2];
    for at in 0..mg * ng {
        let (i, j) = (at / ng, at % ng);
        let product = |l: usize| ((i * k + l) % 5 + 1) * ((l * n + j) % 2 + 1);
        let expected = if i < m && j < n { (0..k).map(product).sum() } else { 12345 };
        assert_eq!(f32::from_bits(d.get_bits(at) as u32), expected as f32, "[{i}, {j}]");
    }
}

#[test]
fn row_51_rows_are_aligned_to_16_bytes() {
    let of = |dtype: &str, pitch: usize, given: &str| {
        let text = format!(
            "use std::epilogue::aligned;
            kernel k(C: in {dtype}[(M, 3) : ({pitch}, 1)]{given}, y: out i32[1]) {{
                static_assert(aligned(C));
                y[0] = 0;
            }}"
        );
        said(&text)
    };
    assert!(of("u8", 15, "").contains("rows are 15 bytes apart, which is no multiple of 16"));
    assert!(of("f16", 4, "").contains("rows are 8 bytes apart"));
    assert_eq!(of("f16", 8, ""), "");
    assert_eq!(of("f32", 4, ""), "");
    // Both launches are checked: with the array, and without.
    assert!(of("f16", 4, " = none").contains("rows are 8 bytes apart"));
    assert_eq!(of("f16", 8, " = none"), "");
    assert_eq!(said(&asserts("aligned", "aligned()")), "");
}

/// A product whose epilogue has one node, with a tensor `x` of some shape.
fn with_node(x: &str, node: &str) -> String {
    format!(
        "use std::epilogue::biased;
        use std::epilogue::biased_rows;
        use std::epilogue::flagged;
        use std::epilogue::joined;
        use std::epilogue::linear;
        use std::epilogue::saved;
        use std::epilogue::store;

        kernel k(A: in f16[M, K], B: in f16[K, N], {x}, D: out f32[M, N]) {{
            grid (m in tiles(M, 64), n in tiles(N, 64));
            let acc = tile Acc<f32, m, n>;
            acc = 0.0;
            for k in tiles(K, 64) {{ TMATMUL_ACC(acc, acc, Left(A.tile(m, k)), Right(B.tile(k, n))); }}
            store(D.tile(m, n), acc, {node});
        }}"
    )
}

#[test]
fn a_whole_tensor_is_no_window_of_a_block() {
    let cases = [
        ("x: in f32[M, N]", "linear(1.0, 1.0, x)", "130 x 70, the block 64 x 64"),
        ("x: in f32[M, N]", "joined(x, |a, b| a * b, linear())", "130 x 70, the block 64 x 64"),
        ("x: inout f16[M, N]", "saved(x, linear())", "130 x 70, the block 64 x 64"),
        ("x: in f32[N]", "biased(x, linear())", "a vector of 70, the block 64"),
        ("x: in f32[M]", "biased_rows(x, linear())", "a vector of 130, the block 64"),
        ("x: inout u8[M, ceil_div(N, 8)]", "flagged(x, |a| a > 0.0, linear())", "130 x 9, the block 64 x 8"),
    ];
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("k.tile").display().to_string();
    for (x, node, expected) in cases {
        std::fs::write(&file, with_node(x, node)).expect("written");
        for backend in ["interp", "cpu"] {
            let sizes = ["--random", "1", "-D", "M=130", "-D", "N=70", "-D", "K=64"];
            let words = ["run", file.as_str(), "k", "--target", "a5", "--backend", backend];
            let outcome = command(&[&words[..], &sizes[..]].concat());
            assert_eq!(outcome.status, 1, "{node} on {backend}: {}", outcome.err);
            assert!(outcome.err.contains("PA-1109") && outcome.err.contains(expected), "{node}: {}", outcome.err);
            assert!(outcome.err.contains("`store` is called here"), "{node}: {}", outcome.err);
        }
    }
    // Where the sizes are known when it is compiled, it is said then.
    let known = with_node("x: in f32[128, 128]", "linear(1.0, 1.0, x)").replace("[M, N]", "[128, 128]");
    let known = known.replace("[M, K]", "[128, K]").replace("[K, N]", "[K, 128]").replace("tiles(M", "tiles(128");
    let known = check(&known.replace("tiles(N", "tiles(128"), "a5", &[]);
    assert!(known.codes.contains(&"PA-1109"), "{}", known.text);
    // The window of the block is right, and so is a tensor that is no larger than one.
    let bits = "x.tile(m, tiles(ceil_div(N, 8), 8)[n.index])";
    let windows = ["x.tile(m, n)", "x.tile(m, n)", "x.tile(m, n)", "x.tile(n)", "x.tile(m)", bits];
    for ((x, node, _), window) in cases.iter().zip(windows) {
        let found = check(&with_node(x, &node.replace('x', window)), "a5", &[]);
        assert!(found.codes.is_empty(), "{node}: {}", found.text);
    }
}

/// Where the end of an array cuts a byte of bits, all that is stored of it is known to be written: nothing is doubtful,
/// and machines that watch no access run it.
#[test]
fn bits_of_ragged_blocks_are_written() {
    let x = "x: inout u8[M, ceil_div(N, 8)]";
    let text = with_node(x, "flagged(x.tile(m, tiles(ceil_div(N, 8), 8)[n.index]), |a| a > 0.0, linear())");
    let sizes = ["3", "8", "70", "133"].map(|n| vec![("N", n), ("K", "64")]);
    for subtile in ["EM = 64, STAGES = 1", "EM = 32, EN = 16"] {
        let text = text.replace("store(", &format!("store<{subtile}>("));
        for defs in sizes.iter().chain([&Vec::new()]) {
            for target in ["a5", "sm90"] {
                let found = check(&text, target, defs);
                let doubt = ["E0501", "E0502"].iter().any(|code| found.text.contains(code));
                assert!(found.codes.is_empty() && !doubt, "{subtile}, {defs:?}: {}", found.text);
            }
        }
    }
}

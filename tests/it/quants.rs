//! `std::quant`: the plan and its words, what a scale reaches, what is refused, and bytes that stay as they are.
//! Results are held to numpy's and to `ensures` by the lines of `tests/language/quantised.tile`.

use crate::engine::{Outcome, check, command};
use std::path::Path;

fn program() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("language/quantised.tile").display().to_string()
}

fn run(kernel: &str, words: &[&str]) -> Outcome {
    command(&[&["run", &program(), kernel][..], words].concat())
}

fn data(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("language/data");
    folder.join(format!("quant_{name}.npy")).display().to_string()
}

/// The header of a file in the format of numpy, and its elements of two bytes.
fn halves(file: &Path) -> (Vec<u8>, Vec<u16>) {
    let bytes = std::fs::read(file).expect("an array");
    let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let elements = bytes[start..].chunks(2).map(|b| u16::from_le_bytes([b[0], b[1]])).collect();
    (bytes[..start].to_vec(), elements)
}

#[test]
fn row_52_all_values_come_back_in_both_orders() {
    for order in ["(2, 4):(4, 1)", "8:1", "(2, 2, 2):(4, 2, 1)"] {
        let outcome = run(
            "there_and_back",
            &["--random", "1", "-D", "N=64", "-D", "K=256", "-D", &format!("ORDER={order}"), "--verify"],
        );
        assert_eq!(outcome.status, 0, "{order}: {}", outcome.err);
        assert!(outcome.out.contains("16384 elements as expected, exactly"), "{}", outcome.out);
    }
    // The shuffle stores 0 2 4 6 1 3 5 7, and its inverse finds each of them.
    let text = "kernel k(y: out i32[1]) {
        const ORDER = (2, 4):(4, 1);
        const INVERSE = right_inverse(ORDER);
        static_assert(eval(INVERSE, 0) == 0 && eval(INVERSE, 1) == 2 && eval(INVERSE, 2) == 4 && eval(INVERSE, 3) == 6
            && eval(INVERSE, 4) == 1 && eval(INVERSE, 5) == 3 && eval(INVERSE, 6) == 5 && eval(INVERSE, 7) == 7);
        for i in 0..8 { assert(eval(INVERSE, eval(ORDER, i)) == i, \"{i}\"); }
        y[0] = 0;
    }";
    let checked = check(text, "a2a3", &[]);
    assert!(checked.codes.is_empty(), "{}", checked.text);
}

#[test]
fn row_53_the_plan_takes_the_vector_path_and_says_why() {
    let sizes = ["--random", "1", "-D", "N=4096", "-D", "K=4096", "-D", "EXPLAIN=true"];
    let one = run("four", &[&sizes[..], &["-D", "M=1", "--verify", "--rtol", "2e-3", "--atol", "2e-2"]].concat());
    assert_eq!(one.status, 0, "{}", one.err);
    assert!(one.out.contains("y: 4096 elements as expected"), "{}", one.out);
    let words = "the vector path, because the rows of X are fewer than the 8 columns of a matrix instruction: 1\n";
    assert!(one.err.contains(words), "{}", one.err);
    assert!(one.err.contains("weights of 4 bits in loads of 128 bits; groups of 128 along K = 4096\n"), "{}", one.err);
    let many = run("four", &["--random", "1", "-D", "N=64", "-D", "K=256", "-D", "EXPLAIN=true", "-D", "M=8"]);
    assert!(many.err.contains("the matrix path, because the rows of X fill"), "{}", many.err);
}

#[test]
fn row_54_a_scale_changes_the_outputs_that_depend_on_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (head, scales) = halves(Path::new(&data("scales")));
    // 24 rows of two groups: double the scale of row 7, group 1 (the exponent counts 1 more).
    let mut changed = scales.clone();
    changed[7 * 2 + 1] += 0x0400;
    let file = folder.path().join("scales.npy");
    let bytes: Vec<u8> = head.into_iter().chain(changed.iter().flat_map(|h| h.to_le_bytes())).collect();
    std::fs::write(&file, bytes).expect("written");
    let result = |x: &str, scales: &str| {
        let out = folder.path().join("y.npy");
        let arrays = [("W", data("shuffled")), ("zeros", data("zeros")), ("x", data(x)), ("scales", scales.to_owned())];
        let mut words: Vec<String> = arrays.iter().flat_map(|(n, f)| ["--in".to_owned(), format!("{n}={f}")]).collect();
        words.extend(["--out".to_owned(), format!("y={}", out.display())]);
        let outcome = run("four", &words.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(outcome.status, 0, "{}", outcome.err);
        halves(&out).1
    };
    for (x, rows) in [("x", 1), ("x9", 9)] {
        let (before, after) = (result(x, &data("scales")), result(x, &file.display().to_string()));
        let differ: Vec<usize> = (0..before.len()).filter(|i| before[*i] != after[*i]).collect();
        assert_eq!(differ, (0..rows).map(|m| m * 24 + 7).collect::<Vec<_>>());
    }
    let refused = run("four", &["--random", "1", "-D", "M=1", "-D", "N=64", "-D", "K=200"]);
    assert_eq!(refused.status, 1);
    assert!(refused.err.contains("K % G == 0"), "{}", refused.err);
}

#[test]
fn row_55_bytes_are_moved_as_they_are() {
    let kinds = [("i8", "a2a3"), ("u8", "a2a3"), ("f8e4m3", "a5"), ("f8e5m2", "a5")];
    for (dtype, target) in kinds {
        for backend in ["cpu", "interp"] {
            // A file of numpy's says which bytes are signed; 8-bit floats come as plain bytes.
            let mut bytes = std::fs::read(data("e4m3")).expect("an array");
            if dtype == "i8" {
                let at = bytes.windows(3).position(|w| w == b"|u1").expect("the dtype");
                bytes[at + 1] = b'i';
            }
            let folder = tempfile::tempdir().expect("a folder");
            let (source, copy) = (folder.path().join("x.npy"), folder.path().join("y.npy"));
            std::fs::write(&source, &bytes).expect("written");
            let t = format!("T={dtype}");
            let (x, y) = (format!("x={}", source.display()), format!("y={}", copy.display()));
            let outcome = run("moved", &["--target", target, "--backend", backend, "-D", &t, "--in", &x, "--out", &y]);
            assert_eq!(outcome.status, 0, "{dtype}: {}", outcome.err);
            let tail = |b: &[u8]| b[b.len() - 256..].to_vec();
            let copied = tail(&std::fs::read(&copy).expect("written"));
            assert_eq!(copied, (0..=255).collect::<Vec<u8>>(), "{dtype} on {backend}");
        }
    }
}

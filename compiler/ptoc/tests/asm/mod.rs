//! Machine code of the examples as it is shown: all of it decodes, jumps stay inside, and the lines that it is said to
//! stem from are there.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A kernel, and what the first of its `// run:` lines on machine code asks for.
struct Example {
    file: PathBuf,
    kernel: String,
    options: Vec<String>,
}

fn examples() -> Vec<Example> {
    let mut out: Vec<Example> = Vec::new();
    let files = fs::read_dir(root().join("examples")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|e| e == "tile")).collect();
    files.sort();
    for file in files {
        for line in fs::read_to_string(&file).unwrap().lines() {
            let words = line.strip_prefix("// run:").map(|rest| rest.split("//").next().unwrap_or_default());
            let Some(mut words) = words.map(str::split_whitespace) else { continue };
            let (Some(kernel), Some(backends)) = (words.next(), words.next()) else { continue };
            let known = out.iter().any(|e| e.file == file && e.kernel == kernel);
            // What arrays give is not said in the line.
            if known || !backends.split(',').any(|b| b == "cpu") || line.contains(".npy") {
                continue;
            }
            let mut options = Vec::new();
            for (name, value) in words.filter_map(|word| word.split_once('=')) {
                match name {
                    "seed" | "rtol" | "atol" => {}
                    "target" => options.extend(["--target".to_owned(), value.to_owned()]),
                    _ => options.extend(["-D".to_owned(), format!("{name}={value}")]),
                }
            }
            out.push(Example { file: file.clone(), kernel: kernel.to_owned(), options });
        }
    }
    out
}

/// The lines of an example, or of a file of the standard library.
fn source(name: &str) -> Vec<String> {
    let path = match name.strip_prefix("<std>/") {
        Some(module) => root().join("stdlib").join(module),
        None => root().join("examples").join(name),
    };
    let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    text.lines().map(str::to_owned).collect()
}

/// `L3`, `C1`
fn labels(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_' && c != '.');
    let number =
        |w: &str| w.strip_prefix(['L', 'C']).is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    words.filter(|w| number(w)).collect()
}

#[test]
fn all_of_it_decodes_and_names_lines_that_there_are() {
    let examples = examples();
    assert!(examples.len() > 60, "{}", examples.len());
    let (mut functions, mut places) = (0, 0);
    let mut sources: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for bits in ["128", "256", "512"] {
        for Example { file, kernel, options } in &examples {
            let mut command = Command::new(env!("CARGO_BIN_EXE_ptoc"));
            command.arg("emit").arg(file).args([kernel, "--stage", "asm", "--vectors", bits]).args(options);
            let output = command.output().unwrap();
            let (text, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8_lossy(&output.stderr));
            // A machine without such vectors.
            if said.contains("E0720") {
                continue;
            }
            let of = format!("{} {kernel}, {bits} bits", file.display());
            assert!(output.status.success(), "{of}: {said}");
            for function in text.split("\n\n") {
                functions += 1;
                let defined: BTreeSet<&str> = function.lines().filter_map(|l| l.strip_suffix(':')).collect();
                for line in function.lines().filter(|l| l.starts_with(' ')) {
                    assert!(!line.contains("(bad)"), "{of}: {line}");
                    assert!(labels(line).is_subset(&defined), "{of}: {line}\n{function}");
                    let target = line.split_whitespace().nth(1).is_some_and(|w| w.starts_with('j') || w == "call");
                    assert!(!target || !line.contains(" 0x"), "{of}: no label for {line}");
                }
            }
            for comment in text.lines().filter_map(|l| l.strip_prefix("; ")) {
                let Some((name, rest)) = comment.split_once(".tile:") else { continue };
                let (number, shown) = rest.split_once("  ").unwrap();
                let lines = sources.entry(name.to_owned()).or_insert_with(|| source(&format!("{name}.tile")));
                let number: usize = number.parse().unwrap();
                assert_eq!(lines[number - 1].trim(), shown, "{of}: {comment}");
                assert!(!shown.is_empty() && !shown.starts_with("//") && shown != "}", "{of}: {comment}");
                places += 1;
            }
        }
    }
    assert!(functions > 300 && places > 1000, "{functions} {places}");
}

#[test]
fn each_line_of_a_kernel_is_there() {
    let run = |words: &[&str]| {
        let file = root().join("examples/softmax.tile");
        let mut command = Command::new(env!("CARGO_BIN_EXE_ptoc"));
        let output = command.arg("emit").arg(file).args(["softmax", "-D", "N=1100"]).args(words).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let text = run(&["--stage", "asm", "--vectors", "128"]);
    for line in
        ["e.tile(_, j) = exp(e.tile(_, j) - top);", "total += rowsum(e.tile(_, j));", "let share = 1.0 / total;"]
    {
        assert!(text.lines().any(|l| l.starts_with("; softmax.tile:") && l.ends_with(line)), "{line}\n{text}");
    }
    // Calls are by name, and constants behind the code.
    assert!(text.contains("ptoc_copy") && text.contains("softmax.launch: "), "{text}");
    assert!(text.contains("\nC1:\n"), "{text}");
}

//! Every test line of `examples`, as PTX.

use crate::harness::{How, Outcome, examples, language, lines, run, run_on_unit, with_stack};
use ptoc_gpu::MOST_SHARED;
use std::path::PathBuf;

/// What became of the lines of some files.
#[derive(Default)]
struct Tally {
    same: usize,
    elsewhere: usize,
    refused: Vec<String>,
    wrong: Vec<String>,
}

fn tally(files: &[PathBuf], how: How) -> Tally {
    let mut tally = Tally::default();
    for (f, file) in files.iter().enumerate() {
        for (n, (line, directive)) in lines(file).into_iter().enumerate() {
            let place = format!("{}: {line}", file.file_name().unwrap_or_default().to_string_lossy());
            // Another order for each line.
            let how = How { seed: how.seed + n as u64, file: 2 * f + how.file, line: n, ..how };
            match run(file, &directive, how) {
                Outcome::Same => tally.same += 1,
                Outcome::Elsewhere => tally.elsewhere += 1,
                Outcome::Refused(why) => tally.refused.push(format!("{place}: {why}")),
                Outcome::Wrong(why) => tally.wrong.push(format!("{place}: {why}")),
            }
        }
    }
    tally
}

/// The lines of every second file, so that two tests share the work.
fn half(how: How) {
    let files: Vec<PathBuf> = examples().into_iter().skip(how.file).step_by(2).collect();
    let tally = with_stack(|| tally(&files, how));
    println!("{} lines have the interpreter's bits, {} are for other machines", tally.same, tally.elsewhere);
    tally.refused.iter().for_each(|line| println!("no translation: {line}"));
    assert!(tally.wrong.is_empty(), "{}", tally.wrong.join("\n"));
    // All that the language has today and examples use, on targets that have no units in memory.
    assert!(tally.refused.is_empty(), "{}", tally.refused.join("\n"));
    assert!(tally.same > 80, "{} lines", tally.same);
}

#[test]
fn lines_of_the_first_half() {
    half(How::default());
}

#[test]
fn lines_of_the_second_half() {
    half(How { file: 1, ..How::default() });
}

/// Lines whose kernels are on the tensor cores of target sm90, as `ptoc run` takes them there, in two orders.
#[test]
fn lines_on_tensor_cores() {
    let mut files = examples();
    files.extend(language());
    let (mut wrong, mut kernels) = (Vec::new(), 0);
    with_stack(|| {
        for (f, file) in files.iter().enumerate() {
            for (n, (line, directive)) in lines(file).into_iter().enumerate() {
                let how = How { file: f, line: n, seed: 3 + n as u64, ctas: 1 + (n % 3) as u32, ..How::default() };
                match run_on_unit(file, &directive, how) {
                    Ok(count) => kernels += count.unwrap_or(0),
                    Err(why) => wrong.push(format!("{}: {line}: {why}", file.display())),
                }
            }
        }
    });
    println!("{kernels} launches on the tensor cores");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(kernels > 60, "{kernels}");
}

/// With more threads than partials, and hardly any shared memory: spaces move to scratch memory.
#[test]
fn other_threads_and_homes() {
    let some = ["softmax", "layernorm", "gemm", "topk", "gather", "int8", "reduce", "transpose", "split_k", "fp8"];
    let mut files = examples();
    files.retain(|f| some.iter().any(|s| f.file_stem().is_some_and(|stem| stem.to_string_lossy().starts_with(s))));
    for how in [
        How { threads: 256, shared: 16 << 10, ctas: 2, seed: 5, file: 0, line: 0 },
        How { threads: 96, shared: MOST_SHARED, ctas: 1, seed: 9, file: 0, line: 0 },
    ] {
        let tally = with_stack(|| tally(&files, how));
        assert!(tally.wrong.is_empty(), "{how:?}: {}", tally.wrong.join("\n"));
        assert!(tally.same > 50, "{} lines", tally.same);
    }
}

//! Every instruction on every dtype that a target takes, written as a kernel: machine code gives the interpreter's
//! bits, and both are what a second, simple model says.

pub mod case;
mod model;

use crate::engine::{Content, agree, build};
use case::{Case, Sizes, cases, expectations};
use model::meets;
use ptoc_isa::{DTypeRule, Instr, InstrId, Target};
use ptoc_tensor::scalar::format_bits;
use std::fmt::Write as _;

/// A tail of 1 in every mode; one element; empty grids; K = 0 and 1; whole blocks; one row, one column.
pub const SIZES: [Sizes; 8] = [
    Sizes { rows: 33, cols: 97, depth: 33 },
    Sizes { rows: 1, cols: 1, depth: 1 },
    Sizes { rows: 0, cols: 5, depth: 3 },
    Sizes { rows: 5, cols: 0, depth: 0 },
    Sizes { rows: 3, cols: 2, depth: 0 },
    Sizes { rows: 32, cols: 96, depth: 32 },
    Sizes { rows: 1, cols: 70, depth: 1 },
    Sizes { rows: 40, cols: 1, depth: 65 },
];

/// `None` if all is well.
fn run(case: &Case, target: &Target) -> Option<String> {
    let built = match build(&case.text, &target.name, &[], &[]) {
        Ok(built) => built,
        Err(refused) => return Some(format!("{}: refused\n{refused:?}{}", case.label, case.text)),
    };
    for (n, sizes) in SIZES.into_iter().enumerate().filter(|(_, s)| !case.even || s.cols % 2 == 0) {
        let contents: &[Content] = if n == 0 { &[Content::Wild, Content::Tame] } else { &[Content::Wild] };
        for &content in contents {
            let seed = |k: usize| (n * 31 + k * 7 + usize::from(content == Content::Tame)) as u64;
            let tensors: Vec<_> =
                case.args.iter().enumerate().map(|(k, a)| a.tensor(sizes, content, seed(k))).collect();
            let fail = |why: String| Some(format!("{} with {sizes:?}, {content:?}: {why}\n{}", case.label, case.text));
            let got = match agree(&built, &sizes.dims(), &tensors, &[1, 2]) {
                Ok(Ok(got)) => got,
                Ok(Err((code, message))) => return fail(format!("stopped with {code}: {message}")),
                Err(why) => return fail(why),
            };
            let Some(wants) = expectations(case, content, &tensors) else { continue };
            let outputs = case.args.iter().zip(&got).filter(|(a, _)| a.out);
            for (k, ((_, got), wants)) in outputs.zip(&wants).enumerate() {
                let d = got.dtype();
                let wrong = |i: &usize| !meets(d, got.get_bits(*i), wants[*i]);
                if let Some(i) = (0..got.len()).find(wrong) {
                    let place = got.unravel(i);
                    let bits = format_bits(d, got.get_bits(i));
                    return fail(format!("output {k} at {place:?} is {bits}, the model says {:?}", wants[i]));
                }
            }
        }
    }
    None
}

/// Whether the row has kernels here. What only units in memory have no PTO target runs: `pim_language` compares it.
pub fn covers(id: &InstrId) -> bool {
    use ptoc_isa::Sem;
    let elsewhere = matches!(
        id.get().sem,
        Sem::Sample
            | Sem::Cells(_)
            | Sem::Named(_)
            | Sem::Scatter
            | Sem::Fixpipe(_)
            | Sem::GatherRows
            | Sem::ScatterRows
            | Sem::Prefetch
    );
    !elsewhere && id.get().shape != ptoc_isa::ShapeRule::Gemv
}

/// Runs the rows of the table that `mine` picks; each must have kernels.
fn all(target: &str, mine: impl Fn(usize, &Instr) -> bool) {
    let target = Target::builtin(target).expect("a target");
    let (mut wrong, mut count) = (String::new(), 0);
    for (_, id) in InstrId::all().filter(covers).enumerate().filter(|(n, id)| mine(*n, id.get())) {
        let cases = cases(target, id);
        // Some are of one family only.
        let absent = ptoc_isa::allowed_dtypes(target, id.get()).is_some_and(|d| d.is_empty())
            || ptoc_isa::allowed_tuples(target, id.get()).is_some_and(|t| t.is_empty());
        if cases.is_empty() && !absent {
            writeln!(wrong, "{}: no kernel could be written for it on {}", id.get().name, target.name).expect("fits");
        }
        count += cases.len();
        for case in cases {
            if let Some(why) = run(&case, target) {
                writeln!(wrong, "{why}").expect("fits");
            }
        }
    }
    println!("{count} kernels on {}", target.name);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn instructions_on_a2a3() {
    all("a2a3", |n, _| n % 2 == 0);
}

#[test]
fn more_instructions_on_a2a3() {
    all("a2a3", |n, _| n % 2 == 1);
}

#[test]
fn instructions_on_a5() {
    all("a5", |n, _| n % 2 == 0);
}

#[test]
fn more_instructions_on_a5() {
    all("a5", |n, _| n % 2 == 1);
}

/// The vector unit is that of a5; the matrix unit and the moves are their own.
#[test]
fn matrix_instructions_and_moves_on_the_kirins() {
    for target in ["kirin9030", "kirinx90"] {
        all(target, |_, i| matches!(i.dtypes, DTypeRule::Matmul | DTypeRule::Move));
    }
}

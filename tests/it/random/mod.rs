//! Random programs: what the analysis and the passes accept gives the same bits on the interpreter, as machine code
//! with one thread and with two, and as PTX; its text forms come back as they were; its plan passes the independent
//! checker.
//!
//! The full budget is 1,000 programs.

mod ast;
mod forms;
mod gene;
mod grow;
mod stmts;

use crate::engine::{Built, Content, agree, build, difference, noise};
use ast::Program;
use gene::{Genome, genome};
use grow::grow;
use proptest::test_runner::{Config, TestCaseError, TestRunner};
use ptoc_checks::plan_check;
use ptoc_diagnostics::FileId;
use ptoc_ir::tile::text::{Spans, parse, print};
use ptoc_placement::PlacedKernel;
use ptoc_tensor::Tensor;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

/// Room for the analysis of deep expressions in an unoptimised build.
const STACK: usize = 64 << 20;

fn dims(g: &Genome) -> Vec<(&'static str, i64)> {
    let (m, n, k) = (i64::from(g.sizes.0), i64::from(g.sizes.1), i64::from(g.sizes.2));
    let (rows, cols) = g.block_sizes();
    let blocks = |n: i64, b: i64| n.div_euclid(b) + i64::from(n % b != 0);
    vec![("M", m), ("N", n), ("K", k), ("MB", blocks(m, rows)), ("NB", blocks(n, cols)), ("N8", blocks(n, 8))]
}

fn tensors(g: &Genome, program: &Program, dims: &[(&str, i64)]) -> Vec<Tensor> {
    let size = |e: &&str| {
        let found = dims.iter().find(|(n, _)| n == e).map(|(_, v)| *v as usize);
        found.unwrap_or_else(|| e.parse().expect("a dimension or a number"))
    };
    let one = |(k, p): (usize, &ast::Param)| {
        let shape: Vec<usize> = p.shape.iter().map(size).collect();
        // Half of the arrays hold numbers that stay ordinary, so that not everything becomes NaN.
        let content = if (usize::from(g.seed) + k) % 4 == 0 { Content::Wild } else { Content::Tame };
        if p.dir == "out" {
            Tensor::zeros(p.dtype, &shape).expect("small")
        } else {
            noise(p.dtype, &shape, content, u64::from(g.seed) * 64 + k as u64)
        }
    };
    program.params.iter().enumerate().map(one).collect()
}

fn texts_come_back(built: &Built) -> Result<(), String> {
    let text = print(&built.source, Spans::Keep);
    let again = parse(&text, FileId(0)).map_err(|d| format!("tile IR does not parse: {}\n{text}", d.message))?;
    if print(&again, Spans::Keep) != text {
        return Err(format!("tile IR does not print as it was:\n{text}"));
    }
    ptoc_ir::tile::verify::verify(&built.source).map_err(|e| format!("tile IR does not verify: {e:?}\n{text}"))?;
    ptoc_ir::tile::verify::verify(&built.placed.kernel)
        .map_err(|e| format!("placed tile IR does not verify: {e:?}"))?;
    let text = built.placed.print(Spans::Keep);
    let again = PlacedKernel::parse(&text, FileId(0))
        .map_err(|d| format!("placed IR does not parse: {}\n{text}", d.message))?;
    if again.print(Spans::Keep) != text {
        return Err(format!("placed tile IR does not print as it was:\n{text}"));
    }
    Ok(())
}

/// What became of a program.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Fate {
    Ran,
    Refused(&'static str),
    Trapped,
}

/// The kernel about bytes gives the same results.
fn physical_agrees(mut built: Built, dims: &[(&str, i64)], tensors: &[Tensor], want: &[Tensor]) -> Result<(), String> {
    let kernel = ptoc_placement::physical(&built.placed.kernel, &built.placed.placement, &built.target);
    built.placed.kernel = kernel;
    let shown = |why: String| format!("{why}\n{}", built.placed.kernel);
    let got = built.interpret(dims, tensors).map_err(|(code, m)| shown(format!("physical: {code} {m}")))?;
    match want.iter().zip(&got).find_map(|(want, got)| difference(want, got)) {
        Some(why) => Err(shown(format!("physical: {why}"))),
        None => Ok(()),
    }
}

fn try_one(g: &Genome) -> Result<Fate, String> {
    let program = grow(g);
    let text = program.to_string();
    let dims = dims(g);
    let target = g.target;
    let shown = |why: String| format!("{why}\non {target} with {dims:?}\n{text}");
    if std::env::var_os("SHOW_ALL").is_some() {
        eprintln!("{text}");
    }
    let built = match build(&text, target, &[], &dims) {
        Ok(built) => built,
        Err(refused) => {
            let code = refused.codes.first().copied().unwrap_or("?");
            // The generator keeps to the grammar and to names, and the passes have no excuse for a plan of their own.
            if std::env::var_os("SHOW_REFUSED").is_some() {
                eprintln!("{refused:?}\n{text}");
            }
            if code.starts_with("E00") || code.starts_with("E01") || refused.codes.contains(&"E0402") {
                return Err(shown(format!("{refused:?}")));
            }
            return Ok(Fate::Refused(code));
        }
    };
    texts_come_back(&built).map_err(shown)?;
    let faults = plan_check::check(&built.placed.kernel, &built.placed.placement, &built.target);
    if !faults.is_empty() {
        return Err(shown(format!("the plan does not pass the checker: {faults:?}")));
    }
    // One in eight, for the sake of time.
    if g.seed % 8 == 1 {
        built.sanitized(&dims, &tensors(g, &program, &dims)).map_err(shown)?;
    }
    match agree(&built, &dims, &tensors(g, &program, &dims), &[1, 2]).map_err(shown)? {
        Ok(want) => {
            let tensors = tensors(g, &program, &dims);
            physical_agrees(built, &dims, &tensors, &want).map_err(shown)?;
            let seed = u64::from(g.seed);
            let ptx = crate::ptx::build(&text, target, &dims, seed).map_err(shown)?;
            ptx.gives(&dims, &tensors, &want, (&format!("random_{seed}"), seed)).map_err(shown)?;
            Ok(Fate::Ran)
        }
        Err(stop) => {
            if std::env::var_os("SHOW_REFUSED").is_some() {
                eprintln!("{stop:?}\n{text}");
            }
            Ok(Fate::Trapped)
        }
    }
}

#[test]
fn programs_give_the_same_bits_everywhere() {
    std::thread::Builder::new().stack_size(STACK).spawn(random_programs).expect("a thread").join().expect("as it says");
}

fn random_programs() {
    let cases = ptoc_tests_budget::cases(90, 1000);
    let config = Config { cases, max_shrink_iters: 3000, failure_persistence: None, ..Config::default() };
    let fates: RefCell<BTreeMap<Fate, u32>> = RefCell::default();
    let shrinking = Cell::new(false);
    let mut runner = TestRunner::new(config);
    let guarded = |g: &Genome| {
        let caught = std::panic::catch_unwind(|| try_one(g));
        caught.unwrap_or_else(|_| Err(format!("a panic (above) on {}\n{}", g.target, grow(g))))
    };
    let result = runner.run(&genome(), |g| match guarded(&g) {
        Ok(fate) => {
            if !shrinking.get() {
                *fates.borrow_mut().entry(fate).or_default() += 1;
            }
            Ok(())
        }
        Err(why) => {
            shrinking.set(true);
            Err(TestCaseError::fail(why))
        }
    });
    if let Err(e) = result {
        match e {
            proptest::test_runner::TestError::Fail(why, _) => panic!("{why}"),
            other => panic!("{other}"),
        }
    }
    let fates = fates.into_inner();
    println!("{fates:?}");
    let count = |f: &dyn Fn(&Fate) -> bool| fates.iter().filter(|(k, _)| f(k)).map(|(_, n)| n).sum::<u32>();
    let (ran, trapped) = (count(&|f| *f == Fate::Ran), count(&|f| *f == Fate::Trapped));
    assert!(10 * trapped <= 3 * cases, "{trapped} of {cases} programs stopped: {fates:?}");
    assert!(10 * ran >= 6 * cases, "only {ran} of {cases} programs ran: {fates:?}");
}

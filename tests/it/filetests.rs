//! Filetests: IR in, a pass, lines of its output, as Cranelift's filetests and LLVM's `lit` tests.
//!
//! Every `tests/filetests/NAME/*.ir` is one. It looks so:
//!
//! ```text
//! ; pass: copy-propagation
//! ; A comment: what this file is about, and for a near miss, why the pass must not fire.
//! kernel ...
//! placement {
//!   ...
//! }
//! ; check: trowsum t2[
//! ; nextln: tadd t1[
//! ; not: tmov
//! ```
//!
//! The first line names the passes that are run, the last of which has the folder's name. It stands alone but where a
//! pass needs what text does not say: `grid-split, lowering, row-pipelining`. The IR is as `ptoc emit --stage
//! after:NAME` prints it; without a table of addresses, the runner places it.
//!
//! | directive | what it says of the output |
//! |---|---|
//! | `check: TEXT` | `TEXT` is there, behind what the directive before it matched |
//! | `nextln: TEXT` | `TEXT` is in the next line |
//! | `not: TEXT` | `TEXT` is not between the matches of the directives beside it |
//! | `unchanged` | the pass reports that it changed nothing |
//! | `error: CODE TEXT` | a verifier, or the pass, refuses the kernel with this code and these words |
//!
//! White space is one blank, and `...` in a `TEXT` is anything within a line. Lines that begin with `;` or `#` are no
//! IR. Before and after each pass the IR is verified: tile IR by its verifier, by the plan checker, and, behind
//! `bounds`, for accesses that are neither proved nor checked; loop IR by its own.

mod itself;
mod text;

use ptoc_checks::{bounds, plan_check};
use ptoc_diagnostics::{Analysis, Budget, Diagnostic, FileId, Span};
use ptoc_ir::loops::{self, Module};
use ptoc_ir::tile::Kernel;
use ptoc_ir::tile::text::Spans;
use ptoc_ir::tile::verify::{VerifyError, verify, verify_rewritten};
use ptoc_isa::Target;
use ptoc_lower::row_pipelining;
use ptoc_opt::analyses::Analyses;
use ptoc_opt::pass::{Context, RewriteUnit};
use ptoc_opt::{copy_propagation, fusion};
use ptoc_passes::pipeline::{CPU_PASSES, place};
use ptoc_placement::PlacedKernel;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use text::{Failure, Kind, Test, fail, matches, squeezed};

/// What the passes left.
struct Output {
    ir: String,
    /// What it does not say, as comments.
    notes: String,
    /// The last pass reported a change.
    changed: bool,
}

enum Stage {
    Tile(RewriteUnit),
    Loop(Module, Option<usize>),
}

/// Runs the passes, and verifies before and behind each.
fn run(test: &Test) -> Result<Output, Vec<Diagnostic>> {
    let (mut stage, target) = read(test)?;
    let mut notes = String::new();
    let mut changed = false;
    for name in &test.passes {
        let made = name == "bounds";
        let strict = made || name == copy_propagation::PASS.name;
        verified(&stage, target, strict, !made)?;
        let before = printed(&stage);
        (stage, changed) = step(stage, name, target, &mut notes)?;
        verified(&stage, target, made, true)?;
        assert!(changed || before == printed(&stage), "{name} reports no change, and there is one");
    }
    Ok(Output { ir: printed(&stage), notes, changed })
}

/// The kernel of a file.
fn read(test: &Test) -> Result<(Stage, &'static Target), Vec<Diagnostic>> {
    let one = |d: Diagnostic| vec![d];
    let mut placed = PlacedKernel::parse(&test.ir, FileId(0)).map_err(one)?;
    let target = Target::find(&placed.kernel.target).map_err(one)?;
    if !test.ir.contains("\nplacement {") {
        refused(&placed.kernel, true)?;
        placed = place(placed.kernel, target)?.0;
    }
    Ok((Stage::Tile(RewriteUnit::new(placed.kernel, placed.placement)), target))
}

/// One pass: what it leaves, and whether it changed anything. What text does not say is noted.
fn step(stage: Stage, name: &str, target: &Target, notes: &mut String) -> Result<(Stage, bool), Vec<Diagnostic>> {
    let budget = Budget::default();
    let account = budget.account(Analysis::Lowering);
    match (name, stage) {
        ("bounds", Stage::Tile(mut unit)) => {
            let (kernel, verdict) = bounds::settled(&unit.kernel, target, account);
            let changed = kernel.is_some();
            unit.kernel = kernel.unwrap_or(unit.kernel);
            let _ = writeln!(notes, "// bounds: {} proved, {} checked", verdict.proved, verdict.checked);
            Ok((Stage::Tile(unit), changed))
        }
        ("lowering", Stage::Tile(unit)) => {
            let (module, _) = ptoc_lower::lower(&unit, Analyses::of(&unit, target), target)?;
            Ok((Stage::Loop(module, unit.rows.map(|r| r.dim)), true))
        }
        (fusion::NAME, Stage::Tile(unit)) => {
            let decided = Analyses::of(&unit, target).fusion.text(&unit.kernel);
            decided.lines().for_each(|l| notes.push_str(&format!("//{}\n", l.trim_start_matches('#'))));
            Ok((Stage::Tile(unit), !decided.is_empty()))
        }
        (row_pipelining::NAME, Stage::Loop(mut module, rows)) => {
            let changed = rows.is_some_and(|dim| row_pipelining::run(&mut module, dim));
            Ok((Stage::Loop(module, rows), changed))
        }
        (name, Stage::Tile(mut unit)) => {
            let pass = CPU_PASSES.iter().find(|p| p.name == name).expect("a step between bounds and lowering");
            let changed = (pass.run)(&mut unit, &Context { target, account });
            if let (Some(rows), "grid-split") = (&unit.rows, name) {
                let _ = writeln!(notes, "// rows along dimension {}", rows.dim);
                for next in &rows.next {
                    let _ = writeln!(notes, "// the next row is fetched of {}", next.view.tensor);
                }
            }
            if name == "lazy-gather" {
                let mut located: Vec<_> = unit.gathers.located.iter().collect();
                located.sort_by_key(|(t, _)| **t);
                for (tile, at) in located {
                    let sum = at.sum.map_or(String::new(), |(c, r)| format!(", indices {} + {}", c.tile, r.tile));
                    let _ = writeln!(notes, "// row pointers in place of {tile}{sum}");
                }
            }
            Ok((Stage::Tile(unit), changed))
        }
        (name, Stage::Loop(..)) => unreachable!("{name} runs before lowering"),
    }
}

fn printed(stage: &Stage) -> String {
    match stage {
        Stage::Tile(unit) => {
            let (kernel, placement) = (unit.kernel.clone(), unit.placement.clone());
            PlacedKernel { kernel, placement, watched: false }.print(Spans::Omit)
        }
        Stage::Loop(module, _) => loops::text::print(module, false),
    }
}

/// The verifier of tile IR. `strict`: operands are in the memories that the instruction's row says.
fn refused(kernel: &Kernel, strict: bool) -> Result<(), Vec<Diagnostic>> {
    let found = if strict { verify(kernel) } else { verify_rewritten(kernel) };
    let report = |e: VerifyError| Diagnostic::error(e.code, e.span, e.message);
    found.map_err(|errors| errors.into_iter().map(report).collect())
}

/// The verifiers: of the IR, of the plan, and of accesses, once there are checks in front of them.
fn verified(stage: &Stage, target: &Target, strict: bool, bounded: bool) -> Result<(), Vec<Diagnostic>> {
    let unit = match stage {
        Stage::Loop(module, _) => return loops::verify(module),
        Stage::Tile(unit) => unit,
    };
    refused(&unit.kernel, strict)?;
    // Spill storage is behind what a memory holds.
    let faults = plan_check::check(&unit.kernel, &unit.placement, target);
    let faults = faults.into_iter().filter(|f| !matches!(f, plan_check::PlanFault::Outside(..)));
    let found: Vec<_> = faults.map(|f| f.diagnostic(&unit.kernel)).collect();
    if !found.is_empty() {
        return Err(found);
    }
    if bounded { bounds::verify(&unit.kernel, target) } else { Ok(()) }
}

/// Judges a file by its text.
fn judge(text: &str) -> Result<(), Failure> {
    let test = Test::parse(text)?;
    let wanted = test.find(Kind::Error);
    let output = match (run(&test), wanted) {
        (Ok(output), None) => output,
        (Ok(output), Some(d)) => return fail(d.line, format!("error: nothing refuses it\n{}", output.ir)),
        (Err(found), Some(d)) => {
            let (code, words) = d.text.split_once(' ').unwrap_or((&d.text, ""));
            let fits = |f: &Diagnostic| f.code.as_str() == code && squeezed(&f.message).contains(words);
            return match found.iter().any(fits) {
                true => Ok(()),
                false => fail(d.line, format!("error: refused, but as\n{}", told(&found, &test.ir))),
            };
        }
        (Err(found), None) => return fail(1, format!("refused:\n{}", told(&found, &test.ir))),
    };
    match (test.find(Kind::Unchanged), output.changed) {
        (Some(d), true) => return fail(d.line, format!("unchanged: the pass made\n{}", output.ir)),
        (None, false) => return fail(1, "the pass changed nothing, and there is no `unchanged`"),
        _ => {}
    }
    matches(&test.directives, &(output.ir + &output.notes))
}

fn told(found: &[Diagnostic], ir: &str) -> String {
    let place = |span: Option<Span>| match span.filter(|s| s.end > 0) {
        Some(span) => format!("line {}: ", 1 + ir[..span.start as usize].matches('\n').count()),
        None => String::new(),
    };
    found.iter().map(|d| format!("  {}{} {}\n", place(d.span), d.code, d.message)).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("filetests")
}

fn entries(path: &Path) -> Vec<PathBuf> {
    let mut out: Vec<_> = std::fs::read_dir(path).expect("a folder").map(|e| e.expect("an entry").path()).collect();
    out.sort();
    out
}

#[test]
fn files() {
    let mut wrong = String::new();
    let mut counts: Vec<(String, usize)> = Vec::new();
    for directory in entries(&folder()) {
        let pass = directory.file_name().expect("a name").to_string_lossy().into_owned();
        let files = entries(&directory);
        for file in &files {
            let text = std::fs::read_to_string(file).expect("UTF-8");
            let name = format!("{pass}/{}", file.file_name().expect("a name").to_string_lossy());
            let judged = match Test::parse(&text) {
                Ok(test) if test.passes.last() != Some(&pass) => fail(1, format!("the folder is that of `{pass}`")),
                _ => judge(&text),
            };
            if let Err(Failure { line, what }) = judged {
                let _ = writeln!(wrong, "{name}:{line}: {what}");
            }
        }
        counts.push((pass, files.len()));
    }
    assert!(wrong.is_empty(), "{wrong}");
    let named = CPU_PASSES.iter().map(|p| p.name).chain(["bounds", "lowering", row_pipelining::NAME]);
    for name in named {
        let count = counts.iter().find(|c| c.0 == name).map_or(0, |c| c.1);
        assert!(count >= 3, "{name} has {count} files: one where it fires, a near miss, what the verifiers say");
    }
}

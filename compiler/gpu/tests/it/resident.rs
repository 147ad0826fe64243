//! Rows that stay in registers.

use crate::harness::{bound, examples, lines_of, lowered, with_stack};
use ptoc_gpu::{Options, compile};

/// The text of an example's kernel.
pub fn ptx(file: &str, line: &str) -> String {
    let path = examples().into_iter().find(|p| p.file_stem().is_some_and(|s| s == file)).expect("an example");
    let (_, directive) = lines_of(&path, format!("// run: {line}\n")).swap_remove(0);
    let (_, plan, _) = bound(&path, &directive).unwrap_or_else(|e| panic!("{line}: {e}"));
    let module = lowered(&plan.steps[0]);
    let code = compile(&module, &Options::default()).unwrap_or_else(|e| panic!("{line}: {e}"));
    ptoc_ptx::print(&code.kernel)
}

fn count(text: &str, what: &str) -> usize {
    text.lines().filter(|l| l.trim_start().starts_with(what)).count()
}

/// Of a row's vectors only those that are summed go to shared memory, and none comes back.
#[test]
fn rows_of_a_block_stay_in_registers() {
    with_stack(|| {
        for (file, line) in [
            ("softmax", "softmax interp M=4 N=4096 BM=1 BN=4096"),
            ("rmsnorm", "rmsnorm_row interp M=4 N=4096 BM=1 BN=4096"),
            ("layernorm", "layernorm_row interp M=4 N=4096 BM=1 BN=4096"),
        ] {
            let text = ptx(file, line);
            assert_eq!(count(&text, "ld.shared.v4"), 0, "{line}");
            assert!(count(&text, "st.shared.v4") > 0, "{line}: sums have an order, and go through memory");
        }
    });
}

/// A row whose elements are no whole number of vectors for each thread is in shared memory, as all rows of blocks that
/// have several.
#[test]
fn other_rows_are_in_memory() {
    with_stack(|| {
        for line in ["softmax interp M=4 N=4100 BM=1 BN=4100", "softmax interp M=4 N=4096 BM=2 BN=4096"] {
            assert!(count(&ptx("softmax", line), "ld.shared.v4") > 0, "{line}");
        }
    });
}

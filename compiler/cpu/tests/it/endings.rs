//! Rows whose sum ends with them, against the evaluator.

use crate::make::{agree, data, widths};
use ptoc_cpu::{Options, compile};
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{MemTy, Module, text, verify};

/// Rows of tensor `source`, 1200 bytes apart, joined with partials of the first space by `op`, and reduced to elements
/// of t1 that are `step` bytes apart.
struct Case {
    op: &'static str,
    identity: &'static str,
    source: usize,
    step: usize,
    /// A step of each element's own.
    element: &'static str,
    behind: &'static str,
}

const SUM: Case = Case { op: "add", identity: "0.0", source: 0, step: 4, element: "mul r13, r13", behind: "" };

fn rows(case: &Case) -> Module {
    let Case { op, identity, source, step, element, behind } = case;
    let text = format!(
        "kernel \"rows\"\ntensor \"T0\"\ntensor \"T1\"\narena 16384\nspace \"partials\" at 0 size 16384\n\
         launch \"l\" (r0: i64, r1: i64) {{\n}}\nblock \"b\" (r0: i64, r1: i64) {{\n  labels 1\n  r2: i64 = const 0\n  \
         r3: i64 = const 256\n  r4: i64 = const 64\n  r5: i64 = const 1200\n  r6: i64 = mul r0, r4\n  \
         lanes r7: i64 in r6 {{\n    r8: f32 = const {identity}\n    store f32 s0[r2, stride 4], r8\n  }}\n  \
         for l0 r9: i64 in r2..r0 step 1 {{\n    r10: i64 = mul r9, r5\n    r11: i64 = mul r9, r3\n    \
         lanes r12: i64 in r1 {{\n      r13: f32 = load f32 t{source}[r10, stride 4]\n      \
         r14: f32 = {element}\n      join {op} f32 s0[r11], r14\n    }}\n  }}\n  \
         reduce {op} f32 (r0, r4), d t1[r2] {step}, a s0[r2] (256, 4)\n{behind}}}\n"
    );
    let module = text::parse(&text, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{text}"));
    module
}

/// Whether the partials are reduced by themselves.
fn apart(module: &Module) -> bool {
    widths().all(|vectors| {
        let options = Options { text: true, vectors, ..Options::default() };
        let kernel = compile(module, &options).unwrap();
        kernel.text().unwrap().code.iter().any(|f| f.lines.iter().any(|line| line.text.contains("ptoc_reduce")))
    })
}

fn check(module: &Module, what: &str) {
    for (rows, cols) in
        [(0, 5), (1, 0), (3, 0), (1, 1), (2, 15), (5, 16), (3, 63), (4, 64), (2, 65), (7, 128), (3, 200), (33, 299)]
    {
        let tensors = [data(MemTy::F32, 1200 * 34, rows as u32 + 1), data(MemTy::F32, 1200 * 34, 7)];
        agree(module, &[rows, cols], &tensors).unwrap_or_else(|e| panic!("{what} {rows} x {cols}: {e}"));
    }
}

#[test]
fn rows_end_with_their_sum() {
    for case in [SUM, Case { element: "neg r13", ..SUM }, Case { step: 12, ..SUM }] {
        let module = rows(&case);
        assert!(!apart(&module), "{}", case.element);
        check(&module, case.element);
    }
}

/// Extremes go by their routine.
#[test]
fn extremes_of_rows() {
    for (op, identity) in [("max", "0xff800000"), ("min", "0x7f800000")] {
        let module = rows(&Case { op, identity, ..SUM });
        assert!(apart(&module), "{op}");
        check(&module, op);
    }
}

/// Results go where later rows read, but behind all of them.
#[test]
fn results_in_the_way_of_rows() {
    let module = rows(&Case { source: 1, ..SUM });
    assert!(!apart(&module));
    check(&module, "in place");
}

/// Partials that something else reads are what they would be.
#[test]
fn partials_that_are_read() {
    let behind = "  r15: f32 = load f32 s0[r3]\n  r16: i64 = const 4000\n  store f32 t1[r16], r15\n";
    let module = rows(&Case { behind, ..SUM });
    assert!(apart(&module));
    check(&module, "read");
}

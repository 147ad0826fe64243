//! Scans of rows and columns, which become calls of a routine, against the evaluator.

use crate::make::{agree, data, widths};
use ptoc_cpu::{Options, compile};
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{MemTy, Module, text, verify};

/// Rows of t0, `from` bytes apart, or columns of such rows, scanned into those of t1 that are `to` bytes apart (in
/// place: both are t1).
struct Case {
    op: &'static str,
    ty: MemTy,
    exclusive: bool,
    from: usize,
    to: usize,
    in_place: bool,
    columns: bool,
}

const PLAIN: Case =
    Case { op: "add", ty: MemTy::F32, exclusive: false, from: 400, to: 400, in_place: false, columns: false };

fn scan(case: &Case, behind: &str) -> Module {
    let (name, size) = (case.ty.name(), case.ty.size());
    let reg = if matches!(case.ty, MemTy::F32 | MemTy::F16) { "f32" } else { "i32" };
    let zero = if reg == "f32" { "-0.0" } else { "7" };
    let source = if case.in_place { 1 } else { 0 };
    let (round, with) = match (case.ty, case.op) {
        (MemTy::F16, "add" | "max") => ("      r15: f32 = round_f16 r14\n", "r15"),
        _ => ("", "r14"),
    };
    let stored = if case.exclusive { "r8" } else { with };
    let [row, col] = if case.columns { ["r9", "r7"] } else { ["r7", "r9"] };
    let body = format!(
        "r2: i64 = const 0\nr3: i64 = const {}\nr4: i64 = const {}\nr5: i64 = const {size}\nr6: {reg} = const {zero}\n\
         for l0 r7: i64 in r2..r0 step 1 {{\n  set m0, r6\n  for l1 r9: i64 in r2..r1 step 1 {{\n    \
         r8: {reg} = get m0\n    r10: i64 = mul {row}, r3\n    r11: i64 = mul {col}, r5\n    \
         r12: i64 = add r10, r11\n    r13: {reg} = load {name} t{source}[r12]\n    r14: {reg} = {} r8, r13\n{round}    \
         r16: i64 = mul {row}, r4\n    r17: i64 = add r11, r16\n    store {name} t1[r17], {stored}\n    \
         set m0, {with}\n  }}\n}}\n{behind}",
        case.from, case.to, case.op
    );
    let source = format!(
        "kernel \"scan\"\ntensor \"T0\"\ntensor \"T1\"\narena 0\nlaunch \"l\" (r0: i64, r1: i64) {{\n}}\n\
         block \"b\" (r0: i64, r1: i64) {{\n  var m0: {reg}\n  labels 2\n{body}}}\n"
    );
    let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    verify(&module).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    module
}

/// Whether the routine is called.
fn called(module: &Module) -> bool {
    widths().any(|vectors| {
        let options = Options { text: true, vectors, ..Options::default() };
        let kernel = compile(module, &options).unwrap();
        kernel.text().unwrap().code.iter().any(|f| f.lines.iter().any(|line| line.text.contains("ptoc_scan")))
    })
}

#[test]
fn scans_of_every_type() {
    for ty in [MemTy::F32, MemTy::F16, MemTy::I32] {
        let unsigned: &[&str] = if ty == MemTy::I32 { &["max_u", "min_u"] } else { &[] };
        for op in ["add", "max", "min"].iter().chain(unsigned) {
            for (exclusive, columns) in [(false, false), (true, false), (false, true), (true, true)] {
                let module = scan(&Case { op, ty, exclusive, columns, ..PLAIN }, "");
                assert!(called(&module), "{op} {}", ty.name());
                for (lines, places) in
                    [(0, 5), (1, 0), (1, 70), (3, 33), (4, 16), (15, 17), (16, 32), (33, 100), (40, 1), (100, 90)]
                {
                    let tensors = [data(ty, 400 * 101, places as u32 + 1), vec![9; 400 * 101]];
                    agree(&module, &[lines, places], &tensors)
                        .unwrap_or_else(|e| panic!("{op} {} {exclusive} {columns} {lines}x{places}: {e}", ty.name()));
                }
            }
        }
    }
}

/// In place, rows that overlap, and results that are the elements of later steps.
#[test]
fn scans_whose_results_are_elements() {
    for (from, to, in_place) in
        [(400, 400, true), (400, 404, true), (404, 400, true), (0, 400, true), (100, 100, false)]
    {
        for columns in [false, true] {
            let module = scan(&Case { from, to, in_place, columns, ..PLAIN }, "");
            for (lines, places) in [(3, 33), (16, 32), (33, 100)] {
                let tensors = [data(MemTy::F32, 404 * 101, 3), data(MemTy::F32, 404 * 101, 5)];
                agree(&module, &[lines, places], &tensors)
                    .unwrap_or_else(|e| panic!("{from} {to} {columns} {lines}x{places}: {e}"));
            }
        }
    }
}

/// A sum that is read behind the loop is not the routine's.
#[test]
fn the_last_sum_is_read() {
    let module = scan(&PLAIN, "r18: f32 = get m0\nstore f32 t1[r2], r18\n");
    assert!(!called(&module));
    let tensors = [data(MemTy::F32, 400 * 20, 3), vec![0; 400 * 20]];
    agree(&module, &[20, 30], &tensors).unwrap();
}

//! What the verifier refuses.

use super::{parsed, with_body};
use crate::loops::{FunctionEntry, verify};
use ptoc_diagnostics::{Code, codes};

fn refused(body: &str) -> Vec<(Code, String)> {
    match verify(&parsed(&with_body(body))) {
        Ok(()) => vec![],
        Err(errors) => errors.into_iter().map(|e| (e.code, e.message)).collect(),
    }
}

#[test]
fn each_rule() {
    let (ty, def) = (codes::LOOP_IR_TYPE, codes::LOOP_IR_DEFINITION);
    let (control, lanes, reference) = (codes::LOOP_IR_CONTROL, codes::LOOP_IR_LANES, codes::LOOP_IR_REFERENCE);
    let f = "r2: f32 = const 1.0\n";
    let i = "r3: i32 = const 1\n";
    let b = "r4: bool = const true\n";
    for (body, code, message) in [
        // Types.
        ("F r5: f32 = and r2, r2", ty, "and: r2 is f32, i32 or i64 or bool is needed"),
        ("F r5: f32 = add r2, r0", ty, "add: r0 is i64, f32 is needed"),
        ("F r5: i32 = add r2, r2", ty, "add: r5 is i32, not f32"),
        ("B r5: bool = add r4, r4", ty, "add: r4 is bool"),
        ("F r5: bool = lt_u r2, r2", ty, "lt_u: r2 is f32"),
        ("B r5: bool = lt r4, r4", ty, "lt: r4 is bool"),
        ("F r5: f32 = lt r2, r2", ty, "lt: r5 is f32, not bool"),
        ("I r5: f32 = sqrt r3", ty, "sqrt: r3 is i32"),
        ("I r5: i32 = fma r3, r3, r3", ty, "fma: r3 is i32"),
        ("I r5: i32 = select r3, r3, r3", ty, "the condition of select: r3 is i32, bool is needed"),
        ("B F r5: f32 = select r4, r2, r0", ty, "select: r0 is i64, f32 is needed"),
        ("I r5: i64 = wrap r3", ty, "wrap: r3 is i32, i64 is needed"),
        ("I r5: i32 = bits r3", ty, "bits: r5 is i32, not f32"),
        ("F set m0, r2", ty, "set: r2 is f32, i64 is needed"),
        ("r5: i64 = get m1", ty, "get: r5 is i64, not f32"),
        ("r5: f32 = load i32 t0[r0]", ty, "load: r5 is f32, not i32"),
        ("F store i8 t0[r0], r2", ty, "store: r2 is f32, i32 is needed"),
        ("I r5: i32 = load i32 t0[r3]", ty, "the offset of an address: r3 is i32, i64 is needed"),
        ("F r5: f32 = atomic and f32 t0[r0], r2", ty, "atomic and on f32"),
        ("F r5: f32 = atomic xor f16 t0[r0], r2", ty, "atomic xor on f16"),
        ("r5: i64 = atomic cas i64 t0[r0], r1", ty, "`expected` belongs to cas"),
        ("r5: i64 = atomic add i64 t0[r0], r1, expected r1", ty, "`expected` belongs to cas"),
        ("F lanes r5: i64 in r0 {\njoin and f32 t0[r0], r2\n}", ty, "join: there is no and of f32 partials"),
        ("I lanes r5: i64 in r0 {\njoin add i8 t0[r0], r3\n}", ty, "join: there is no add of i8 partials"),
        ("I lanes r5: i64 in r0 {\njoin add f32 t0[r0], r3\n}", ty, "join: r3 is i32, f32 is needed"),
        ("F lanes r5: i64 in r0 {\njoin add f32 t0[r0, stride 4], r2\n}", lanes, "partials are at one address"),
        ("F join add f32 t0[r0], r2", lanes, "partials are at one address, and those of lanes"),
        ("I if r3 {\n}", ty, "the condition of if"),
        ("I check r3, 0 ()", ty, "the condition of check"),
        ("B F check r4, 0 (r2)", ty, "an argument of check: r2 is f32"),
        ("B check r4, 0 (r0, r0, r0, r0, r0)", ty, "at most 4 numbers, not 5"),
        ("F print i32 r2", ty, "print: r2 is f32"),
        (
            "contract i16 (r0, r0, r0), d i32 t0[r0] (4, 4), start zero, a t0[r0] (4, 4), b t0[r0] (4, 4)",
            ty,
            "contract: operands of i16",
        ),
        (
            "contract f32 (r0, r0, r0), d i32 t0[r0] (4, 4), start zero, a t0[r0] (4, 4), b t0[r0] (4, 4)",
            ty,
            "contract: the product is f32, the result i32",
        ),
        (
            "contract i32 (r0, r0, r0), d i32 t0[r0] (4, 4), start f32 t0[r0] (4, 4), a t0[r0] (4, 4), b t0[r0] (4, 4)",
            ty,
            "contract: the product is i32, the start f32",
        ),
        ("reduce mul f32 (r0, r0), d t0[r0] 4, a t0[r0] (4, 4)", ty, "reduce: there is no mul of f32"),
        ("reduce max_u i8 (r0, r0), d t0[r0] 4, a t0[r0] (4, 4)", ty, "reduce: there is no max_u of i8"),
        (
            "sort i32 (r0, r0), d t0[r0] (8, 4), a t0[r0] (4, 4), index t0[r0] (4, 4)",
            ty,
            "sort: records of i32, f32 or f16 is needed",
        ),
        ("F merge f32 d t0[r0] 4, runs t0[r0] 4 r0 of r2", ty, "a count of merge: r2 is f32"),
        (
            "merge f32 d t0[r0] 4, list t0[r0] 4 r0, list t0[r0] 4 r0, list t0[r0] 4 r0, list t0[r0] 4 r0, \
             list t0[r0] 4 r0",
            ty,
            "merge: 5 lists, 4 are the most",
        ),
        (
            "r5: i64 = gather zero f32 (r0, r0), d t0[r0] (4, 4), from t0[r0] r0, by t0[r0] (4, 4)",
            ty,
            "gather: bits are moved",
        ),
        (
            "F r5: i64 = gather zero i32 (r0, r0), d t0[r0] (4, 4), from t0[r0] r2, by t0[r0] (4, 4)",
            ty,
            "the table of gather",
        ),
        (
            "r5: i64 = gather zero i32 (r0, r0), d t0[r0] (4, 4), from t0[r0] r0, by t0[r0] (4, 4), plus t0[r0] (0, 4)",
            ty,
            "gather: what is added",
        ),
        // Definitions.
        ("r5: i64 = add r6, r0\nr6: i64 = const 1", def, "add: r6 has no value yet"),
        ("F r2: f32 = get m1", def, "get: r2 is defined twice"),
        ("B if r4 {\nr5: i64 = const 1\n}\nr6: i64 = add r5, r5", def, "add: r5 belongs to a region that has ended"),
        ("for l0 r5: i64 in r0..r1 step 1 {\n}\nset m0, r5", def, "set: r5 belongs to a region"),
        ("lanes r5: i64 in r0 {\n}\nset m0, r5", def, "set: r5 belongs to a region"),
        ("while l0 {\nr5: bool = get m2\n} r5 {\n}\nset m2, r5", def, "set: r5 belongs to a region"),
        // Control.
        ("break l0", control, "break: l0 is no enclosing loop"),
        ("scope l0 {\ncontinue l0\n}", control, "continue: l0 is no enclosing loop"),
        ("for l0 r5: i64 in r0..r1 step 1 {\nleave l0\n}", control, "leave: l0 is no enclosing scope"),
        ("scope l0 {\n}\nscope l0 {\n}", control, "l0 labels two statements"),
        ("for l0 r5: i64 in r0..r1 step 0 {\n}", control, "for: a step of 0"),
        // Lanes.
        ("r5: f32 = load f32 t0[r0, stride 4]", lanes, "load: a stride outside `lanes`"),
        ("lanes r5: i64 in r0 {\nr6: f32 = load f32 t0[r5]\n}", lanes, "the offset r5 differs between lanes"),
        (
            "lanes r5: i64 in r0 {\nr6: f32 = load f32 t0[r0, stride r5]\n}",
            lanes,
            "the stride r5 differs between lanes",
        ),
        ("lanes r5: i64 in r0 {\nset m0, r5\n}", lanes, "`lanes` holds only arithmetic, loads and stores"),
        ("lanes r5: i64 in r0 {\nlanes r6: i64 in r0 {\n}\n}", lanes, "`lanes` holds only"),
        // References.
        ("r5: f32 = load f32 t2[r0]", reference, "load: there is no tensor t2"),
        ("r5: f32 = load f32 s2[r0]", reference, "load: there is no space s2"),
        ("B check r4, 2 ()", reference, "there is no check 2"),
    ] {
        let source = body.replace("F ", f).replace("I ", i).replace("B ", b);
        let errors = refused(&format!("{source}\n"));
        assert!(!errors.is_empty(), "`{body}` was accepted");
        assert_eq!(errors[0].0, code, "`{body}`: {errors:?}");
        assert!(errors[0].1.contains(message), "`{body}`: {errors:?}");
    }
}

#[test]
fn uniform_values_of_a_body_may_be_offsets() {
    let body = "lanes r5: i64 in r0 {
  r6: i64 = const 4
  r7: i64 = add r6, r0
  r8: i64 = load i64 t0[r7]
  r9: f32 = load f32 t0[r8, stride r6, gather r5]
}
";
    assert_eq!(refused(body), vec![]);
    // A load behind a store may read what its lane stored: it is not uniform.
    let body = "lanes r5: i64 in r0 {
  store i64 t1[r0, stride 8], r5
  r8: i64 = load i64 t1[r1]
  r9: f32 = load f32 t0[r8]
}
";
    assert_eq!(refused(body).len(), 1);
}

/// The table of bounds is held to the code of the block function.
#[test]
fn what_bounds_are_known_by() {
    let code = "  r2: bool = lt r0, r1\n  check r2, 1 (r0, r1)\n  r3: f32 = load f32 t0[r0] @0:10..20\n  \
        store f32 s0[r0], r3 @0:30..40\n";
    let with = |rows: &str| {
        let text = with_body(code).replace("launch \"", &format!("{rows}launch \""));
        verify(&parsed(&text)).map_err(|e| e[0].message.clone())
    };
    assert_eq!(with(""), Ok(()), "it says nothing");
    assert_eq!(with("bounds \"A\" proof @0:10..20\n"), Ok(()));
    assert_eq!(with("bounds \"A\" checks 1 @0:10..20\nbounds \"v\" intervals @0:30..40\n"), Ok(()));
    let refused = with("bounds \"A\" checks 0 1 @0:10..20\n").unwrap_err();
    assert!(refused.contains("`A` is in bounds by check 0, which the block function does not have"), "{refused}");
    assert!(with("bounds \"A\" checks 9 @0:10..20\n").unwrap_err().contains("by check 9"));
    let refused = with("bounds \"B\" proof @0:10..20\n").unwrap_err();
    assert!(refused.contains("load: nothing says by what accesses of `A` are in bounds"), "{refused}");
}

#[test]
fn the_tables() {
    let good = parsed(&with_body(""));
    assert_eq!(verify(&good), Ok(()));
    let broken = |change: &dyn Fn(&mut crate::loops::Module)| {
        let mut module = good.clone();
        change(&mut module);
        verify(&module).unwrap_err()[0].message.clone()
    };
    assert!(broken(&|m| m.arena = 128).contains("space s1 `Mat` at 128 with 128 bytes"));
    assert!(broken(&|m| m.spaces.values_mut().next().unwrap().offset = 3).contains("multiples of 64"));
    assert!(broken(&|m| m.spaces.values_mut().next().unwrap().size = u64::MAX - 63).contains("space s0"));
    assert!(broken(&|m| m.arena = u64::MAX).contains("an arena of"));
    assert!(broken(&|m| m.block.entry = FunctionEntry::Launch).contains("not a launch and a block"));
    assert!(broken(&|m| m.launch.results.clear()).contains("the block function has 2 parameters"));
    assert!(broken(&|m| m.block.results = m.block.params.clone()).contains("no results"));
    let many = "r2: i64 = add r9, r9\n".repeat(100);
    assert_eq!(refused(&format!("{many}r9: i64 = const 1\n")).len(), 20, "no more than twenty reports");
}

//! Checks that fail, and what is refused.

use crate::make::agree;
use ptoc_diagnostics::FileId;
use ptoc_gpu::{Arguments, Options, RefusalCode, compile, extents};
use ptoc_ir::loops::eval::EvalStop;
use ptoc_ir::loops::{Module, text};
use ptoc_ptx::sim::{self, Global, SimLaunch};

/// Blocks on a grid of 3 x r0; block (i, j) fails check 1 with (i, j) where t0, an i32 array, is 1 in element 3 i + j.
fn failing() -> Module {
    let source = r#"kernel "k"
tensor "A"
arena 0
check 7
check 8
launch "k.launch" (r0: i64) -> (r1, r0) {
  r1: i64 = const 3
  r2: i64 = const 1
  r3: bool = ge r0, r2
  check r3, 0 (r0)
}
block "k.block" (r0: i64, r1: i64, r2: i64) {
  r3: i64 = mul r1, r0
  r4: i64 = add r3, r2
  r5: i64 = const 4
  r6: i64 = mul r4, r5
  r7: i32 = load i32 t0[r6]
  r8: i32 = const 0
  r9: bool = eq r7, r8
  check r9, 1 (r1, r2)
  r10: i32 = const 2
  store i32 t0[r6], r10
}
"#;
    text::parse(source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"))
}

#[test]
fn the_first_block_that_fails_is_reported() {
    let module = failing();
    let code = compile(&module, &Options { threads: Some(64), ..Options::default() }).expect("it compiles");
    let grid = extents(&module, &[5]).expect("a grid");
    assert_eq!(grid, [3, 5]);
    for (ctas, seed) in (1..9).zip(0..) {
        let mut global = Global::default();
        let mut array = [0u8; 60];
        // Blocks (1, 2), (2, 0) and (2, 4).
        for at in [7, 10, 14] {
            array[4 * at] = 1;
        }
        let tensors = [global.add(array.to_vec())];
        let status = global.add(code.abi.status(ctas));
        let arguments = Arguments { tensors: &tensors, params: &[5], extents: &grid, status, scratch: 0 };
        let params = code.abi.arguments(&arguments);
        let (kernel, shared) = (&code.kernel, code.abi.shared);
        let launch = SimLaunch {
            kernel,
            ctas,
            shared,
            params: &params,
            seed,
            fuel: 1 << 20,
            races: true,
            aligned: true,
            keep_nan: false,
        };
        sim::run(&launch, &mut global).unwrap_or_else(|e| panic!("{e}"));
        let failure = code.abi.failure(&global.buffers[1], &grid, ctas).expect("a failure");
        assert_eq!((failure.check, failure.block), (1, Some(7)), "{ctas} CTAs");
        assert_eq!((failure.args, failure.coords), (vec![1, 2], vec![1, 2]));
        // Blocks below it have run.
        assert!((0..7).all(|n| global.buffers[0][4 * n] == 2), "{ctas} CTAs");
    }
}

#[test]
fn a_launch_that_fails_does_not_reach_the_device() {
    assert_eq!(extents(&failing(), &[0]), Err(EvalStop::Check { check: 0, args: vec![0] }));
}

fn refusal(body: &str) -> RefusalCode {
    let source = format!(
        "kernel \"k\"\ntensor \"A\"\narena 64\nspace \"Vec\" at 0 size 64\nlaunch \"k.launch\" (r0: i64) {{\n}}\n\
         block \"k.block\" (r0: i64) {{\n{body}}}\n"
    );
    let module = text::parse(&source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}\n{source}"));
    compile(&module, &Options::default()).expect_err("it is refused").code
}

#[test]
fn what_has_no_translation_says_so() {
    assert_eq!(refusal("print \"x\"\n"), RefusalCode::Print);
    assert_eq!(refusal("r1: i64 = load i64 t3[r0]\n"), RefusalCode::Invalid);
    let mut names: Vec<&str> = RefusalCode::ALL.iter().map(|c| c.name()).collect();
    names.dedup();
    assert_eq!(names.len(), RefusalCode::ALL.len());
}

#[test]
fn options_that_no_launch_has() {
    for threads in [0, 32, 100, 2048] {
        let refused =
            compile(&failing(), &Options { threads: Some(threads), ..Options::default() }).expect_err("refused");
        assert_eq!(refused.code, RefusalCode::Invalid);
    }
}

/// Behind a scope, what a loop in it has told may still be read when the next scalar is told.
#[test]
fn scalars_are_told_one_after_the_other() {
    let source = r#"kernel "k"
tensor "A"
arena 0
launch "k.launch" (r0: i64) {
}
block "k.block" (r0: i64) {
  var m0: i64
  labels 2
  r1: i64 = const 0
  r2: i64 = const 3
  r3: i32 = const 5
  scope l0 {
    set m0, r2
    while l1 {
      r4: i64 = get m0
      r5: i64 = const 1
      r6: i64 = sub r4, r5
      set m0, r6
      r7: bool = gt r4, r1
    } r7 {
      store i32 t0[r1], r3
    }
  }
  r8: i64 = const 4
  r9: i32 = atomic add i32 t0[r8], r3
  r10: i64 = get m0
  r11: i32 = wrap r10
  r12: i32 = add r9, r11
  store i32 t0[r1], r12
}
"#;
    let module = text::parse(source, FileId(0)).unwrap_or_else(|e| panic!("{e:?}"));
    agree(&module, &[0], &[vec![7; 8]]).unwrap_or_else(|e| panic!("{e}"));
}

//! Printing and parsing.

use super::{parsed, with_body};
use crate::loops::text::{parse, print};
use crate::loops::verify;
use ptoc_diagnostics::{FileId, codes};

/// Every statement, in the printer's own spelling.
const EVERYTHING: &str = concat!(
    r#"  r2: i64 = const -9223372036854775808
  r3: i32 = const -1 @0:3..9
  r4: f32 = const 1e-45
  r5: f32 = const -0.0
  r6: f32 = const 0x7fc00001
  r7: bool = const true
  r8: i32 = const 0xffffffffffffffff
  r9: i32 = add r3, r8
  r10: f32 = fma r4, r5, r6
  r11: bool = lt_u r3, r8
  r12: f32 = select r11, r4, r10
  r13: f32 = round_bf16 r12
  r14: i32 = f_to_u32 r13
  r15: i64 = get m0
  set m1, r13
  r16: f32 = load bf16 t0[r0]
  store i8 s1[r15, gather r2], r14
  r17: i32 = atomic add i32 t1[r0], r3
  r18: i32 = atomic max unsigned u8 t1[r0], r3
  r19: i64 = atomic cas i64 t1[r0], r0, expected r2
  for l0 r20: i64 in r0..r1 step 4 @1:10..20 {
    if r7 @1:12..14 {
      break l0
    } else {
      continue l0
    }
    if r7 {
    }
  }
  lanes r21: i64 in r0 @2:0..5 {
    r22: f32 = load f16 t0[r0, stride 2] @2:1..4
    r23: f32 = load f32 t0[r0, stride r1, gather r21]
    r24: f32 = mul r22, r23
    store f32 s0[r0, stride -4], r24
    join max f32 s1[r1], r24
  }
  while l1 {
    r25: bool = get m2
  } r25 {
    r26: bool = not r25
    set m2, r26
  }
  scope l2 {
    leave l2
  }
  contract f32 (r0, r1, r2), d f16 t1[r0] (64, 2), start zero, a s0[r0] (16, 4), b s1[r0] (32, 4)
  contract i32 (r0, r1, r2), d i32 t1[r0] (64, 4), start i16 t0[r1] (0, 2), a s0[r0] (16, 4), b s1[r0] (32, 4)
  contract bf16 (r0, r1, r2), d f32 t1[r0] (64, 4), start zero, a s0[r0] (16, 2), b s1[r0] (32, 2), part of (r2, r0, r1)
  reduce max_u i32 (r0, r1), d t1[r0] 4, a s0[r1] (64, 4)
  r27: i64 = gather clamp i16 (r0, r1), d s1[r0] (64, 2), from t0[r0] r1, by unsigned s0[r1] (64, 4)
"#,
    "  r28: i64 = gather zero i32 (r0, r1), d s1[r0] (64, 4), from t0[r0] r1, by s0[r1] (4, 0), plus s0[r0] \
     (0, 4), places s1[r0] 8\n",
    "  sort f16 (r0, r1), d s1[r0] (64, 2), a s0[r0] (32, 2), index s0[r1] (64, 4)\n",
    "  merge f32 d s1[r0] 4, list s0[r0] 4 r1\n  merge f32 d s1[r0] 4, list s0[r0] 4 r1, list t0[r1] 8 r2\n",
    "  merge f16 d s1[r0] 2, runs s0[r0] 2 r1 of r2\n",
    r#"  watch 0 ()
  watch 7 (r0, r1), s0[r0] (64, 4), t0[r0, gather r1] (0, -2)
  check r7, 1 ()
  check r7, 0 (r0, r1)
  print "say \"hi\"\\\n", bool r7, unsigned i32 r3, matrix f32 t0[r0] (r0, r1) (16, 4)
  print
"#
);

#[test]
fn printing_and_parsing_are_inverse() {
    let text = with_body(EVERYTHING).replace("check 7", "raster 0 4\ncluster 2\ncheck 7");
    let module = parsed(&text);
    assert_eq!(print(&module, true), text);
    assert_eq!(verify(&module), Ok(()));
    let rows = "bounds \"A\" proof @0:3..9\nbounds \"t\" intervals\nbounds \"B\" checks 0 1 @1:2..3\n";
    let bounded = text.replace("launch \"", &format!("{rows}launch \""));
    assert_eq!(print(&parsed(&bounded), true), bounded);
    // Places are for readers, with spans or without.
    let rows = "bounds \"A\" proof at 3:18\nbounds \"B\" checks 0 1 at \"std/a \\\"b.tile\" 12:1\n";
    let placed = print(&parsed(&text), false).replace("launch \"", &format!("{rows}launch \""));
    assert_eq!(print(&parsed(&placed), false), placed);
    let spans = placed.replace("at 3:18", "at 3:18 @0:3..9");
    assert_eq!(print(&parsed(&spans), true), spans);
    for wrong in ["at 3", "at 3:", "at :4", "at \"a\"", "at 3:18:1"] {
        assert!(parse(&placed.replace("at 3:18", wrong), FileId(0)).is_err(), "{wrong}");
    }
    // Without spans the same statements remain.
    let bare = print(&module, false);
    assert!(!bare.contains('@'));
    assert_eq!(print(&parsed(&bare), true), bare);
}

#[test]
fn registers_that_nothing_defines_keep_their_types() {
    let text =
        with_body("  labels 4\n").replace("  labels 4\n  labels 4\n", "  labels 4\n  reg r2: f32\n  reg r3: bool\n");
    let module = parsed(&text);
    assert_eq!(module.block.regs.len(), 4);
    assert_eq!(print(&module, true), text);
    // Skipped numbers become registers of some type.
    assert_eq!(parsed(&with_body("r5: i64 = const 1\n")).block.regs.len(), 6);
}

#[test]
fn comments_and_layout_do_not_matter() {
    let one = parsed(&with_body("  r2: i64 = add r0, r1 // the sum\n"));
    let two = parsed(&with_body("r2:i64=add r0,r1"));
    assert_eq!(print(&one, true), print(&two, true));
}

#[test]
fn mistakes_are_located() {
    for (body, at, message) in [
        ("r2: i32 = add r0\n}", "}", "expected `,`, found `}`"),
        ("r2: i32 = frobnicate r0", "frobnicate", "there is no operation `frobnicate`"),
        ("r2: i33 = add r0, r1", "i33", "expected a register type: i32, i64, f32 or bool, found `i33`"),
        (
            "r2: i64 = const 99999999999999999999",
            "99999999999999999999",
            "expected an i64, found `99999999999999999999`",
        ),
        ("r2: i32 = const 0x1ffffffffffffffff", "0x1ffffffffffffffff", "expected at most 64 bits, found"),
        ("r2: bool = const 1", "1", "expected `true` or `false`, found `1`"),
        ("r999999: i64 = const 1", "r999999", "there is no register `r999999`"),
        ("r02: i64 = const 1", "r02", "expected a register, found `r02`"),
        ("r2: i64 = get m3", "m3", "there is no variable `m3`"),
        ("break l4", "l4", "there is no label `l4`"),
        ("set m0, r9", "k.block\"", "r9 is used in `k.block` but nothing says its type"),
        ("r0: f32 = get m1", "r0", "r0 is both i64 and f32"),
        ("store f8 t0[r0], r1", "f8", "expected a memory type, found `f8`"),
        ("store f32 t0[r0, stride 4, r1], r1", "r1]", "expected `gather`, found `r1`"),
        ("check r0, 0 (r0 r1)", "r1)", "expected `,`, found `r1`"),
        ("leave l0 @0:9..3", "9", "a span from 9 back to 3"),
        ("print \"a\\q\"", "\"a\\q\"", "the only escapes are"),
        ("print \"a", "\"a", "this text has no closing quote"),
        ("set m0, r0;", ";", "loop IR has no `;`"),
        ("set m0, é", "é", "loop IR has no `é`"),
        ("}", "}", "expected the end of the text, found `}`"),
    ] {
        let text = with_body(&format!("{body}\n"));
        let Err(error) = parse(&text, FileId(3)) else { panic!("`{body}` was accepted") };
        assert!(error.message.starts_with(message), "`{body}`: {}", error.message);
        assert_eq!(error.code, codes::LOOP_IR_SYNTAX);
        let span = error.span.unwrap();
        assert_eq!(span.file, FileId(3));
        let found = &text[span.start as usize..];
        // The last mistake's place is the brace behind the body; a function's name is looked for from its keyword.
        let found = found.strip_prefix("block \"").unwrap_or(found);
        assert!(found.starts_with(at), "`{body}`: at `{}`", &found[..found.len().min(20)]);
    }
    let deep = "scope l0 {\n".repeat(300);
    assert!(parse(&with_body(&deep), FileId(0)).unwrap_err().message.contains("nested"));
    assert!(parse("", FileId(0)).unwrap_err().message.contains("the end of the text"));
}

#[test]
fn no_text_makes_the_parser_panic() {
    let text = with_body(EVERYTHING);
    for end in (0..text.len()).filter(|end| text.is_char_boundary(*end)) {
        let _ = parse(&text[..end], FileId(0));
    }
    // Each token dropped, doubled, or replaced by another.
    let words: Vec<&str> = text.split_inclusive([' ', '\n', ',', '(', '[']).collect();
    for n in 0..words.len() {
        for with in ["", "r", "{ ", "} ", "\"", "-1 ", "0x", "r4294967295 ", "1.e", "@ ", "s4294967295["] {
            let mutant = [&words[..n], &[with], &words[n + 1..]].concat().concat();
            if let Ok(module) = parse(&mutant, FileId(0)) {
                let _ = verify(&module);
                let _ = print(&module, true);
            }
        }
    }
}

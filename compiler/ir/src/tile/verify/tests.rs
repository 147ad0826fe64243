//! One kernel that passes, and for every invariant a change of it that does not.

mod nests;

use super::*;
use crate::tile::text::parse;
use ptoc_diagnostics::FileId;

/// Has one of everything that the changes below need.
const GOOD: &str = r#"
kernel "k" target "a2a3"
dim d0 "M": v0: index
scalar "s": v1: f32 default v6
tensor g0 "a" in f32 [v0]
tensor g1 "c" out f32 [v0]
tensor g2 "n" inout i32 [v2]
var m0 "x": f32
tile t0 "x" Vec<f32, 16, 64>
tile t1 "y" Vec<f32, 16, 64>
tile t2 "m" Vec<bool, 16, 64>
tile t3 "r" Vec<f32, 1, 64>
tile t4 "c" Vec<f32, 16, 1, DN>
tile t5 "p" Vec<f32, 16, 64> dynamic
tile t6 "l" Left<f16, 16, 32>
tile t7 "w" Right<f16, 32, 64>
tile t8 "acc" Acc<f32, 16, 64>
tile t9 "b" Bias<f32, 1, 64>
tile t10 "i" Vec<i32, 16, 64>
tile t11 "arr" Vec<f32, 8, 8> count 2 at [0x0, 0x100]
check c0 PA-1003 "row {0}" help "below {1}"
label l0
label l1
label l2
prologue {
  v2: index = const 1
  v3: index = const 16
  v4: index = const 0
  v5: bool = const true
  v6: f32 = const 1.5
  v7: index = add v0, v2
  check c0, v5, v0, v7
}
grid [v8: index "i" < v7]
body {
  v9: index = min v0, v3
  alloc t0
  alloc t1
  alloc t2
  alloc t3
  alloc t4
  alloc t5
  alloc t6
  alloc t7
  alloc t8
  alloc t9
  alloc t10
  alloc t11
  assign t5, v4
  tload t0[16x64 v9, v3], g0[v4 + (v9, v3):(v2, v2)]
  tadd t1[16x64 v9, v3], t0[16x64 v9, v3], t0[16x64 v9, v3]
  tcmp.lt t2[16x64 v9, v3], t0[16x64 v9, v3], t1[16x64 v9, v3]
  tsel t0[16x64 v9, v3], t2[16x64 v9, v3], t0[16x64 v9, v3], t1[16x64 v9, v3]
  tadds.rev t0[16x64 v9, v3], t0[16x64 v9, v3], v1
  trowsum t4[16x1 v9, v2], t0[16x64 v9, v3]
  tcolsum t3[1x64 v2, v3], t0[16x64 v9, v3]
  trowexpandsub t0[16x64 v9, v3], t0[16x64 v9, v3], t4[16x1 v9, v2]
  tcolexpandsub t0[16x64 v9, v3], t0[16x64 v9, v3], t3[1x64 v2, v3]
  tcvt.rint.sat t10[16x64 v9, v3], t0[16x64 v9, v3]
  mgather.clamp t0[16x64 v9, v3], g0[v4 + (v0):(v2)], t10[16x64 v9, v3]
  tmatmul_bias t8[16x64 v9, v3], t6[16x32 v9, v2], t7[32x64 v2, v3], t9[1x64 v2, v3]
  tmatmul_acc t8[16x64 v9, v3], t8[16x64 v9, v3], t6[16x32 v9, v2], t7[32x64 v2, v3]
  tstore.atomic g1[v4 + (v9, v3):(v2, v2)], t8[16x64 v9, v3]
  texpands t8[16x64 v9, v3], v1
  v10: f32 = tileget t11#v2[8x8 v2, v2 at v2, v2], v4, v4
  tileset t11[8x8 v2, v2], v4, v4, v10
  v11: f32 = load g0[v4]
  store g1[v4], v11
  v12: i32 = load g2[v4]
  v13: i32 = atomic.cas g2[v4], v12 expect v12
  set m0, v11
  v14: f32 = get m0
  v15: bool = lt v14, v11
  v16: f32 = select v15, v14, v11
  v17: i32 = convert.trunc v16
  v18: i32 = bitcast v16
  for l0 v19: index in v4..v9 {
    if v15 {
      break l0
    } else {
      continue l0
    }
  }
  while l1 {
    v20: bool = not v15
  } do v20 {
    v21: bool = xor v20, v15
  }
  scope l2 {
    leave l2
  }
  print "x ", v16, t0[16x64 v9, v3]
}
"#;

fn errors(text: &str) -> Vec<VerifyError> {
    let kernel = parse(text, FileId(0)).unwrap_or_else(|d| panic!("{} {}\n{text}", d.message, d.code));
    verify(&kernel).err().unwrap_or_default()
}

/// Replaces `from`, which must be there once, and expects exactly these codes.
fn change(from: &str, to: &str, codes: &[&str]) {
    assert_eq!(GOOD.matches(from).count(), 1, "`{from}` must occur once");
    let found = errors(&GOOD.replace(from, to));
    let got: Vec<_> = found.iter().map(|e| e.code.as_str()).collect();
    assert_eq!(got, codes, "{from} -> {to}: {found:#?}");
}

#[test]
fn the_good_kernel_passes() {
    assert_eq!(errors(GOOD), []);
}

#[test]
fn declarations() {
    change("count 2 at [0x0, 0x100]", "count 2 at [0x0]", &["E0815"]);
    change("t1 \"y\" Vec<f32, 16, 64>", "t1 \"y\" Vec<f32, 16, 64> count 0", &["E0815"]);
    change("t1 \"y\" Vec<f32, 16, 64>", "t1 \"y\" Vec<f32, 16, 64> stages 0", &["E0815"]);
    change("t2 \"m\" Vec<bool", "t2 \"m\" Mat<bool", &["E0815", "E0809", "E0809"]);
    change("t1 \"y\" Vec<f32, 16, 64>", "t1 \"y\" Vec<f32, 4000000000, 4000000000>", &["E0815"]);
    change("out f32 [v0]", "out f32 [v9]", &["E0805"]);
    change("out f32 [v0]", "out f32 [v6]", &["E0807"]);
    change("\"i\" < v7", "\"i\" < v5", &["E0807"]);
    change("\"c\" out f32", "\"c\" scratch f32", &["E0815"]);
    change("assign t5,", "assign t1,", &["E0815"]);
    change("in v4..v9 {", "in v4..v9 stages 0 {", &["E0815"]);
}

#[test]
fn values() {
    change("v17: i32 = convert.trunc v16", "v17: i32 = convert.trunc v18", &["E0805"]);
    change("print \"x \", v16", "print v21", &["E0805"]);
    change("print \"x \", v16", "print v19", &["E0805"]);
    change("v14: f32 = get m0", "v14: f32 = get m0\n v14: f32 = get m0", &["E0806"]);
    change("v7: index = add v0, v2", "v7: index = add v0, v6", &["E0807"]);
    change("v20: bool = not v15", "v20: bool = neg v15", &["E0807"]);
    change("v15: bool = lt v14, v11", "v15: bool = lt v14, v12", &["E0807"]);
    change("v15: bool = lt v14, v11", "v15: i8 = lt v14, v11", &["E0807"; 5]);
    change("v18: i32 = bitcast v16", "v18: i64 = bitcast v16", &["E0807"]);
    change("select v15,", "select v14,", &["E0807"]);
    change("store g1[v4], v11", "store g1[v4], v2", &["E0807"]);
    change("store g1[v4], v11", "store g1[v11], v11", &["E0807"]);
    change("atomic.cas g2[v4], v12 expect v12", "atomic.cas g2[v4], v12", &["E0809"]);
    change("v13: i32 = atomic.cas g2[v4], v12 expect v12", "v13: f32 = atomic.and g1[v4], v11", &["E0807"]);
    change("default v6", "default v2", &["E0807"]);
    // The default is not there yet where the argument is used.
    change("v6: f32 = const 1.5", "v6: f32 = neg v1", &["E0805"]);
    change("const true", "const.i8 1", &["E0807"]);
}

#[test]
fn entities() {
    change("set m0, v11", "set m1, v11", &["E0804"]);
    change("alloc t10\n", "alloc t10\n alloc t99\n", &["E0804"]);
    change("load g0[v4]", "load g9[v4]", &["E0804"]);
    change("check c0, v5", "check c1, v5", &["E0804"]);
    change("leave l2", "leave l3", &["E0808"]);
    change("scope l2 {\n    leave l2", "scope l3 {\n    leave l3", &["E0804"]);
}

#[test]
fn structure() {
    change("leave l2", "break l2", &["E0808"]);
    change("leave l2", "leave l0", &["E0808"]);
    change("scope l2 {\n    leave l2", "scope l1 {\n    leave l1", &["E0806"]);
    change("v20: bool = not v15", "v20: bool = not v15\n break l1", &["E0808"]);
    change("check c0, v5, v0, v7", "alloc t0", &["E0813"]);
    change("check c0, v5, v0, v7", "check c0, v5, v0", &["E0818"]);
    change("check c0, v5, v0, v7", "check c0, v0, v0, v7", &["E0807"]);
    let mut kernel = parse(GOOD, FileId(0)).unwrap();
    for _ in 0..MAX_DEPTH + 50 {
        let then = std::mem::take(&mut kernel.body);
        let op = Op::If(Box::new(crate::tile::If { cond: cranelift_entity::EntityRef::new(5), then, els: vec![] }));
        kernel.body.push(crate::tile::Stmt { op, span: Span::default() });
    }
    let found = verify(&kernel).unwrap_err();
    assert_eq!(found.iter().map(|e| e.code.as_str()).collect::<Vec<_>>(), ["E0803"]);
}

#[test]
fn tiles_and_tensors() {
    change("alloc t8", "alloc t0", &["E0814"; 5]);
    change("store g1[v4], v11", "store g0[v4], v11", &["E0816"]);
    change("tstore.atomic g1", "tstore.atomic g0", &["E0816"]);
    change("t11#v2[8x8", "t11#v3[8x8", &["E0812"]);
    change("tileset t11[8x8 v2, v2]", "tileset t11[8x9 v2, v2]", &["E0812"]);
    change("tileset t11[8x8 v2, v2]", "tileset t11[8x8 v2, v3]", &["E0812"]);
    change("at v2, v2]", "at v2, v3]", &["E0812"]);
    change("g0[v4 + (v0):(v2)]", "g0[v4 + (v0):(v2, v2)]", &["E0812"]);
    change(
        "tload t0[16x64 v9, v3], g0[v4 + (v9, v3):(v2, v2)]",
        "tload t0[16x64 v9, v3], g0[v4 + (v9):(v2)]",
        &["E0812"],
    );
}

#[test]
fn instructions() {
    let row = "tadd t1[16x64 v9, v3], t0[16x64 v9, v3], t0[16x64 v9, v3]";
    change(row, "tadd t1[16x64 v9, v3], t0[16x64 v9, v3]", &["E0809"]);
    change(row, "tadd t1[16x64 v9, v3], t0[16x64 v9, v3], v1", &["E0809"]);
    change(row, "tadd t1[16x64 v9, v3], t0[16x64 v9, v3], t8[16x64 v9, v3]", &["E0809"]);
    change(row, "tadd t1[16x64 v9, v3], t0[16x64 v9, v3], t10[16x64 v9, v3]", &["E0810"]);
    change(row, "tadd t1[16x64 v9, v3], t0[16x64 v9, v3], t0[16x64 v3, v3]", &["E0811"]);
    change(row, "tadd.rint t1[16x64 v9, v3], t0[16x64 v9, v3], t0[16x64 v9, v3]", &["E0817"]);
    change(row, "tadd t2[16x64 v9, v3], t2[16x64 v9, v3], t2[16x64 v9, v3]", &["E0810"]);
    change(row, "texp t10[16x64 v9, v3], t10[16x64 v9, v3]", &["E0810"]);
    change(row, "tassign t1[16x64 v9, v3], v4", &["E0809"]);
    change("tcmp.lt", "tcmp", &["E0817"]);
    change("tcvt.rint.sat", "tcvt.sat", &["E0817"]);
    change("mgather.clamp", "mgather", &["E0817"]);
    change(
        "tadds.rev t0[16x64 v9, v3], t0[16x64 v9, v3], v1",
        "tadds t0[16x64 v9, v3], t0[16x64 v9, v3], v2",
        &["E0810"],
    );
    change("tcmp.lt t2[16x64 v9, v3], t0", "tcmp.lt t1[16x64 v9, v3], t0", &["E0810"]);
    change(
        "t2[16x64 v9, v3], t0[16x64 v9, v3], t1[16x64 v9, v3]\n  tadds",
        "t0[16x64 v9, v3], t0[16x64 v9, v3], t1[16x64 v9, v3]\n  tadds",
        &["E0810"],
    );
    change("trowsum t4[16x1 v9, v2]", "trowsum t4[16x1 v3, v2]", &["E0811"]);
    change("tcolsum t3[1x64 v2, v3]", "tcolsum t3[1x64 v2, v2]", &["E0811"]);
    change("t4[16x1 v9, v2]\n  tcolexpandsub", "t4[16x1 v3, v2]\n  tcolexpandsub", &["E0811"]);
    change("t3[1x64 v2, v3]\n  tcvt", "t0[16x64 v9, v3]\n  tcvt", &["E0811"]);
    change("(v0):(v2)], t10[16x64 v9, v3]", "(v0):(v2)], t10[16x64 v9, v2]", &["E0811"]);
    change("(v0):(v2)], t10[16x64 v9, v3]", "(v0):(v2)], t1[16x64 v9, v3]", &["E0810"]);
    change("t7[32x64 v2, v3], t9", "t7[32x64 v3, v3], t9", &["E0811"]);
    change("t7[32x64 v2, v3], t9", "t7[16x64 v2, v3], t9", &["E0811"]);
    change("t9[1x64 v2, v3]", "t9[1x64 v4, v3]", &["E0811"]);
    change("t9 \"b\" Bias<f32", "t9 \"b\" Bias<i32", &["E0810"]);
    change("t8[16x64 v9, v3], t8[16x64 v9, v3], t6", "t8[16x64 v9, v3], t8[16x64 v9, v2], t6", &["E0811"]);
}

/// Half-precision biases widen on their way into an f32 table; elsewhere a move keeps the dtype.
#[test]
fn moves_into_the_bias_table_widen() {
    let with = |from: &str, to: &str| {
        let text = GOOD.replace("check c0 PA", &format!("tile t12 \"h\" Mat<{from}, 1, 64>\ncheck c0 PA"));
        let text = text.replace("  alloc t11", "  alloc t11\n  alloc t12");
        errors(&text.replace("  tmatmul_bias", &format!("  tmov {to}[1x64 v2, v3], t12[1x64 v2, v3]\n  tmatmul_bias")))
    };
    assert_eq!(with("f16", "t9"), []);
    assert_eq!(with("bf16", "t9"), []);
    assert_eq!(with("i32", "t9").iter().map(|e| e.code.as_str()).collect::<Vec<_>>(), ["E0810"]);
    assert_eq!(with("f16", "t3").iter().map(|e| e.code.as_str()).collect::<Vec<_>>(), ["E0810"]);
}

/// Equal constants count as equal shapes, whichever value they are.
#[test]
fn equal_constants_are_equal_lengths() {
    let text = GOOD.replace("v4: index = const 0", "v4: index = const 0\n v22: index = const 16");
    let text = text.replace("t10[16x64 v9, v3], t0[16x64 v9, v3]", "t10[16x64 v9, v22], t0[16x64 v9, v3]");
    assert_eq!(errors(&text), []);
}

/// A kernel for units in memory.
const PLACED: &str = concat!(
    r#"
kernel "k" target "geopim"
on [(2:1@unit, 3:0)]
tensor g0 "map" in f16 [v0, v0, v1] at [(8:8@row), (8:1@row), (16:2@byte, 2:1@col)] over unit
tensor g1 "geo" in f16 [v2]
tensor g2 "attn" in f16 [v3]
tensor g3 "offs" in f16 [v3, v4]
tile t0 "acc" Vec<f32, 1, 32>
prologue {
  v0: index = const 8
  v1: index = const 32
  v2: index = const 4
  v3: index = const 16
  v4: index = const 2
  v5: index = const 0
  v6: index = const 1
  v7: index = const 6
  v8: index = const 256
}
grid [v9: index "i" < v7]
body {
  alloc t0
"#,
    "  tsample.clamp.fold t0[1x32 v6, v1], g0[v5 + (v0, v0, v1):(v8, v1, v6)], g1[v5 + (v2):(v6)], \
     g2[v5 + (v3):(v6)], g3[v5 + (v3, v4):(v4, v6)]\n",
    r#"}
"#
);

#[test]
fn placements_and_samples() {
    assert_eq!(errors(PLACED), []);
    let change = |from: &str, to: &str, codes: &[&str]| {
        assert!(PLACED.contains(from), "{from}");
        let found: Vec<_> = errors(&PLACED.replacen(from, to, 1)).iter().map(|e| e.code.as_str()).collect();
        assert_eq!(found, codes, "{from} -> {to}");
    };
    change(", (8:1@row), (16", ", (16", &["E0815"]);
    change("(8:1@row)", "(4:1@row)", &["E0815"]);
    change("(8:1@row)", "(8:1@bank)", &["E0815"]);
    change("over unit", "", &[]);
    change("[(2:1@unit, 3:0)]", "[(2:1@unit)]", &["E0815"]);
    change("2:1@unit", "2:1@row", &["E0815"]);
    change("3:0)]", "3:0)] over unit", &["E0815"]);
    change(", g3[v5 + (v3, v4):(v4, v6)]", "", &[]);
    change(", g2[v5 + (v3):(v6)], g3[v5 + (v3, v4):(v4, v6)]", "", &["E0809"]);
    change("g3[v5 + (v3, v4):(v4, v6)]", "g3[v5 + (v2, v4):(v4, v6)]", &["E0811"]);
    change("g1[v5 + (v2):(v6)]", "g1[v5 + (v3):(v6)]", &["E0811"]);
    change("(v0, v0, v1):(v8, v1, v6)", "(v0, v1):(v1, v6)", &["E0811"]);
    change("\"geo\" in f16", "\"geo\" in f32", &["E0810"]);
    change(".clamp", "", &["E0817"]);
    change(".fold", "", &["E0817"]);
}

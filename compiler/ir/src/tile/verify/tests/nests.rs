//! Copies, products along nests, and tiles with layouts.

use super::errors;

const GOOD: &str = concat!(
    r#"
kernel "k" target "a2a3"
tensor g0 "x" in f16 [v1]
tensor g1 "y" inout f32 [v1]
tensor g2 "rows" in i64 [v1]
tensor g3 "packed" in u8 [v1]
tensor g4 "flags" in bool [v1]
tile t0 "s" Vec<f16, 4, 16, (4,16):(1,4)>
tile t1 "u" Mat<u8, 4, 32, Sw<2,0,3> o 0 o (4,32):(32,1)>
tile t2 "plain" Vec<f16, 4, 16>
tile t3 "two" Vec<f16, 4, 16> count 2
tile t4 "acc" Acc<f32, 16, 16>
prologue {
  v0: index = const 0
  v1: index = const 16
  v2: index = const 1
  v3: index = const 4
  v4: f16 = const 0.5
  v5: u8 = const 1
  v7: index = const -4
}
grid [v6: index "i" < v1]
body {
  alloc t0
  alloc t1
  alloc t2
  alloc t3
  alloc t4
"#,
    "  copy [v1, v3] t0[4x16 v3, v1] at (v0 + (v0, v2), v0 + (v2, v0)) from \
     g0.f16[v0 + (v2, v1) + table.zero g2[v6 + (v0, v2)] by v1 below v3] swizzle (1, 0, 2) where v0 + \
     (v2, v0) < v6 fill v4 covers\n",
    r#"  copy [] t1[4x32 v2, v2] at (v0 + (), v0 + ()) from g3.u4[v6 + ()]
  copy [v2] t3[4x16 v2, v2] at (v0 + (v0), v0 + (v0)) from t3#v2[4x16 v2, v2] at (v0 + (v0), v0 + (v0))
  copy [v3] g1.f16[v6 + (v2)] from t0[4x16 v2, v2] at (v0 + (v0), v0 + (v2))
"#,
    "  mma [v1][v3][v1] g1.f32[v0 + (v1, v2, v0)], g0.f16[v0 + (v1, v0, v2)], t2[4x16 v3, v1] at \
     (v0 + (v0, v2, v0), v0 + (v0, v0, v2))\n",
    r#"  tmov t2[4x16 v3, v1], t2[4x16 v3, v1]
}
"#
);

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
fn tiles_with_layouts() {
    change("Vec<f16, 4, 16, (4,16):(1,4)>", "Vec<f16, 4, 16, (4,8):(1,4)>", &["E0815"]);
    change("Vec<f16, 4, 16, (4,16):(1,4)>", "Left<f16, 4, 16, (4,16):(1,4)>", &["E0815"]);
    change(
        "t2 \"plain\" Vec<f16, 4, 16>",
        "t2 \"plain\" Vec<bool, 4, 16, (4,16):(1,4)>",
        &["E0815", "E0810", "E0809", "E0809"],
    );
    change("t2 \"plain\" Vec<f16, 4, 16>", "t2 \"plain\" Vec<f16, 4, 16, (4,16):(16,1)>", &["E0809", "E0809"]);
}

#[test]
fn nests() {
    change("copy [v1, v3] t0", "copy [v1] t0", &["E0812"; 5]);
    change("copy [v3] g1", "copy [v4] g1", &["E0807"]);
    change("copy [v2] t3", "copy [v7] t3", &["E0812"]);
    change("g1.f16[v6 + (v2)]", "g1.f16[v6 + (v2, v2)]", &["E0812"]);
    change("g1.f16[v6 + (v2)]", "g1.f16[v4 + (v2)]", &["E0807"]);
    change("g1.f16[v6 + (v2)]", "g1.f16[v6 + (v4)]", &["E0807"]);
    change("< v6 fill", "< v4 fill", &["E0807"]);
    change("where v0 + (v2, v0)", "where v0 + (v2)", &["E0812"]);
    change("by v1 below v3", "by v4 below v3", &["E0807"]);
    change("by v1 below v3", "by v1 below v4", &["E0807"]);
    change("g2[v6 + (v0, v2)]", "g2[v6 + ()]", &["E0812"]);
    change("at (v0 + (), v0 + ())", "at (v0 + (v0), v0 + ())", &["E0812"]);
    change("alloc t1\n", "", &["E0814"]);
    change("g3.u4[v6", "g9.u4[v6", &["E0804"]);
}

#[test]
fn copies() {
    change("fill v4", "fill v5", &["E0807"]);
    change("g1.f16[v6 + (v2)]", "g1.f32[v6 + (v2)]", &["E0810"]);
    change("g1.f16[v6 + (v2)]", "g0.f16[v6 + (v2)]", &["E0816"]);
    change("g1.f16[v6 + (v2)]", "g1.i4[v6 + (v2)]", &["E0810", "E0810"]);
    change("g3.u4[v6", "g3.i4[v6", &["E0810"]);
    change("g3.u4[v6", "g3.u8[v6", &[]);
    change("table.zero g2", "table.zero g0", &["E0810"]);
    change("table.zero g2", "table.zero g4", &["E0810"]);
    change("g1.f16[v6 + (v2)]", "g1.f16[v6 + (v2) + table.zero g2[v6 + (v2)] by v2 below v2]", &["E0817"]);
    change("g1.f16[v6 + (v2)]", "g1.f16[v6 + (v2) + table.wrap g2[v6 + (v2)] by v2 below v2]", &[]);
    change("at (v0 + (v0), v0 + (v2))\n", "at (v0 + (v0), v0 + (v2)) covers\n", &["E0809"]);
    // Parts of one tile may be apart; where they are not, the copy ends with PA-1072.
    change("from t3#v2[", "from t3[", &[]);
}

#[test]
fn products() {
    change("g1.f32[v0 + (v1, v2, v0)]", "g1.i32[v0 + (v1, v2, v0)]", &["E0810"]);
    change("g1.f32[v0 + (v1, v2, v0)]", "g1.f16[v0 + (v1, v2, v0)]", &[]);
    change("g0.f16[v0 + (v1, v0, v2)]", "g0.bf16[v0 + (v1, v0, v2)]", &["E0810"]);
    change("g1.f32[v0 + (v1, v2, v0)]", "g0.f32[v0 + (v1, v2, v0)]", &["E0816"]);
    change("g1.f32[v0 + (v1, v2, v0)]", "g1.f32[v0 + (v1, v2, v2)]", &["E0812"]);
    change("g0.f16[v0 + (v1, v0, v2)]", "g0.f16[v0 + (v1, v6, v2)]", &["E0812"]);
    change("t2[4x16 v3, v1] at (v0 + (v0,", "t2[4x16 v3, v1] at (v0 + (v2,", &["E0812"]);
    change("mma [v1][v3][v1]", "mma [v1][v3][v1, v1]", &["E0812"; 4]);
    change("g1.f32[v0 + (v1, v2, v0)]", "t2[4x16 v3, v1] at (v0 + (v2, v0, v0), v0 + (v0, v2, v0))", &["E0809"]);
}

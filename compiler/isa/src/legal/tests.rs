use super::*;
use crate::{CmpOp, InstrId, Loc, MemorySpace, Order, Pipe, Target, TileType, lookup, pipe_of};
use ptoc_diagnostics::{Diagnostic, FileId, Span};
use ptoc_tensor::DType::{self, *};

mod assign;
mod layout;

fn target(name: &str) -> &'static Target {
    Target::builtin(name).expect("a built-in target")
}

fn instr(name: &str) -> InstrId {
    lookup(name).expect("in the table")
}

fn tile(loc: Loc, dtype: DType, rows: u32, cols: u32) -> TileType {
    TileType { loc, dtype, rows, cols, order: default_order(loc, dtype, rows, cols), layout: None }
}

fn at() -> Span {
    Span::new(FileId(0), 0, 1)
}

/// The report as a few lines of text.
fn show(d: &Diagnostic) -> String {
    let mut out = format!("{}: {}\n", d.code, d.message);
    if !d.label.is_empty() {
        out += &format!("    ^ {}\n", d.label);
    }
    for note in &d.notes {
        out += &format!("    note: {note}\n");
    }
    for fix in &d.fixes {
        out += &format!("    help: {}\n", fix.message);
    }
    out
}

fn type_codes(t: &str, ty: TileType) -> Vec<String> {
    check_tile_type(target(t), ty).iter().map(|v| v.code().to_string()).collect()
}

#[test]
fn legal_tile_types() {
    for t in Target::pto() {
        for ty in [
            tile(Loc::Vec, F32, 16, 64),
            tile(Loc::Vec, F32, 16, 1),
            tile(Loc::Vec, Bool, 3, 5),
            tile(Loc::Vec, I8, 1, 32),
            tile(Loc::Mat, F16, 3, 16),
            tile(Loc::Left, F16, 64, 128),
            tile(Loc::Left, F16, 1, 128),
            tile(Loc::Left, I8, 16, 32),
            tile(Loc::Right, F16, 128, 64),
            tile(Loc::Acc, I32, 16, 16),
            tile(Loc::Bias, I32, 1, 16),
            tile(Loc::Scaling, U64, 1, 16),
        ] {
            assert_eq!(check_tile_type(t, ty), [], "{ty} on {}", t.name);
        }
    }
    assert_eq!(check_tile_type(target("a5"), tile(Loc::Left, F32, 16, 8)), []);
    assert_eq!(check_tile_type(target("a5"), tile(Loc::Right, F32, 8, 16)), []);
}

#[test]
fn illegal_tile_types() {
    let dn = |ty: TileType| TileType { order: Order::Dn, ..ty };
    let nd = |ty: TileType| TileType { order: Order::Nd, ..ty };
    assert_eq!(type_codes("a2a3", nd(tile(Loc::Vec, F32, 16, 1))), ["E0603"]);
    assert_eq!(type_codes("a2a3", dn(tile(Loc::Vec, F32, 12, 2))), ["E0603"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Bias, F32, 1, 24)), ["E0603"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Scaling, F32, 1, 48)), ["E0603"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Left, F16, 8, 16)), ["E0604"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Right, F16, 8, 16)), ["E0604"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Acc, F32, 16, 8)), ["E0604"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Vec, F32, 0, 8)), ["E0605"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Mat, Bool, 8, 8)), ["E0606"]);
    assert_eq!(type_codes("a2a3", dn(tile(Loc::Vec, Bool, 8, 8))), ["E0606"]);
    assert_eq!(type_codes("kirin9030", tile(Loc::Vec, BF16, 16, 16)), ["E0601"]);
    assert_eq!(type_codes("kirin9030", tile(Loc::Acc, F32, 16, 16)), ["E0602"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Acc, F16, 16, 16)), ["E0602"]);
    assert_eq!(type_codes("a2a3", tile(Loc::Left, I16, 16, 16)), ["E0602"]);
}

#[test]
fn messages_about_tile_types() {
    let cases = [
        ("a2a3", TileType { order: Order::Nd, ..tile(Loc::Vec, F32, 16, 1) }),
        ("a2a3", tile(Loc::Vec, F32, 16, 100)),
        ("a2a3", TileType { order: Order::Dn, ..tile(Loc::Vec, F16, 4, 2) }),
        ("a2a3", tile(Loc::Left, F16, 24, 20)),
        ("kirin9030", tile(Loc::Acc, F32, 128, 128)),
        ("kirinx90", tile(Loc::Vec, BF16, 16, 16)),
        ("a5", tile(Loc::Mat, Bool, 16, 16)),
        ("a5", tile(Loc::Vec, F32, 0, 8)),
        ("a5", tile(Loc::Bias, F32, 1, 24)),
    ];
    let text: Vec<String> = cases
        .into_iter()
        .flat_map(|(t, ty)| check_tile_type(target(t), ty))
        .map(|v| show(&v.diagnostic("tile `x`", at())))
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

#[test]
fn what_the_compiler_makes_is_legal() {
    for t in Target::pto() {
        for loc in Loc::ALL {
            for dtype in t.dtypes.iter().copied().chain([Bool]) {
                if t.cube_dtypes(loc).is_some_and(|c| !c.contains(&dtype)) || (dtype == Bool && loc != Loc::Vec) {
                    continue;
                }
                for (r, c) in [(1, 1), (8, 64), (16, 1), (17, 33), (100, 130), (1, 1000), (5, 1)] {
                    if t.memory(loc).one_row && r > 1 {
                        continue;
                    }
                    let (rows, cols) = round_up_to_legal(t, loc, dtype, r, c);
                    assert!(rows >= r && cols >= c);
                    let ty = TileType { loc, dtype, rows, cols, order: default_order(loc, dtype, r, c), layout: None };
                    assert_eq!(check_tile_type(t, ty), [], "{ty} on {}", t.name);
                }
            }
        }
        // The operands of a matrix product agree, whatever their sizes are.
        let triple = t.triples[0];
        for (m, n, k) in [(8, 64, 64), (1, 17, 1), (70, 70, 70)] {
            let (am, ak) = round_up_to_legal(t, Loc::Left, triple.left, m, k);
            let (bk, bn) = round_up_to_legal(t, Loc::Right, triple.right, k, n);
            let (cm, cn) = round_up_to_legal(t, Loc::Acc, triple.acc, m, n);
            assert_eq!((am, ak, bn), (cm, bk, cn));
        }
    }
    assert_eq!(round_up_to_legal(target("a2a3"), Loc::Left, F16, 8, 64), (16, 64));
    assert_eq!(round_up_to_legal(target("a2a3"), Loc::Vec, F32, 12, 1), (16, 1));
    assert_eq!(round_up_to_legal(target("a2a3"), Loc::Bias, F32, 1, 130), (1, 144));
    // In Mat lie the boxes of Left, where there is such a unit.
    for (name, rows) in [("a2a3", 32), ("a5", 32), ("sm90", 24)] {
        assert_eq!(round_up_to_legal(target(name), Loc::Mat, F32, 24, 48), (rows, 48), "{name}");
        assert_eq!(round_up_to_legal(target(name), Loc::Mat, F32, 1, 48), (1, 48), "{name}");
        let ty = |rows| TileType { loc: Loc::Mat, dtype: F32, rows, cols: 48, order: Order::Nd, layout: None };
        assert_eq!(storage_of(target(name), ty(24)), ty(rows), "{name}");
        assert_eq!(storage_of(target(name), ty(1)), ty(1), "{name}");
    }
}

fn dtype_code(t: &str, name: &str, given: &[DType], cmp: Option<CmpOp>) -> Option<String> {
    check_dtypes(target(t), instr(name), given, cmp).map(|v| v.code().to_string())
}

/// Where no chain of TCVTs rounds once, the report says what two steps would do.
#[test]
fn a_missing_conversion_proposes_two_roundings() {
    let report = |to: DType, from: DType| {
        let id = crate::lookup("TCVT").unwrap();
        let v = crate::check_dtypes(Target::builtin("a2a3").unwrap(), id, &[to, from], None).unwrap();
        format!("{:?}", v.diagnostic(at()).fixes)
    };
    assert!(report(F16, I32).contains("`f16(f32(...))`: the value is then rounded twice"), "{}", report(F16, I32));
    assert!(!report(U8, F32).contains("twice"), "{}", report(U8, F32));
    // An integer that goes through a float does not wrap, which a conversion between integers would.
    let both = report(I8, I16);
    assert!(both.contains("`i8(f32(...))`") && both.contains("saturates") && !both.contains("2^24"), "{both}");
    assert!(report(I8, I32).contains("saturates, and beyond 2^24 it is rounded first"), "{}", report(I8, I32));
}

#[test]
fn a_conversion_to_its_own_dtype_is_a_copy() {
    let id = crate::lookup("TCVT").unwrap();
    let v = crate::check_dtypes(Target::builtin("a2a3").unwrap(), id, &[F16, F16], None).unwrap();
    let said = format!("{:?}", v.diagnostic(at()).fixes);
    assert!(said.contains("TMOV(dst, a)") && !said.contains("two steps"), "{said}");
}

/// What a float of 8 bits holds f32 holds too, and goes on from there.
#[test]
fn floats_of_8_bits_become_integers() {
    let id = crate::lookup("TCVT").unwrap();
    let v = crate::check_dtypes(Target::builtin("a5").unwrap(), id, &[I8, F8E4M3], None).unwrap();
    let said = format!("{:?}", v.diagnostic(at()).fixes);
    assert!(said.contains("`i8(...)` goes through f32, i16 and f16 by itself"), "{said}");
}

/// A pair that a move takes with a scale alone.
#[test]
fn a_move_that_quantises_is_proposed() {
    let said = |from, to, pair: (DType, DType)| {
        let v = crate::check_move(Target::builtin("a2a3").unwrap(), from, to, pair.0, pair.1).unwrap_err();
        format!("{:?}", v.diagnostic(at()).fixes)
    };
    assert!(said(Loc::Acc, Loc::Mat, (F32, I8)).contains("with a scale"), "{}", said(Loc::Acc, Loc::Mat, (F32, I8)));
    assert!(!said(Loc::Acc, Loc::Mat, (F32, I16)).contains("with a scale"));
    assert!(!said(Loc::Mat, Loc::Left, (F32, I8)).contains("with a scale"));
}

#[test]
fn dtypes_of_instructions() {
    let ok = |t: &str, name: &str, given: &[DType]| {
        assert_eq!(dtype_code(t, name, given, None), None, "{name} {given:?} on {t}");
    };
    let bad = |t: &str, name: &str, given: &[DType], code: &str| {
        assert_eq!(dtype_code(t, name, given, None).as_deref(), Some(code), "{name} {given:?} on {t}");
    };
    ok("a2a3", "TADD", &[F32; 3]);
    bad("a2a3", "TADD", &[U8; 3], "E0607");
    ok("a5", "TADD", &[U8; 3]);
    bad("a2a3", "TADD", &[F32, F32, F16], "E0607");
    ok("a5", "TADD", &[BF16; 3]);
    bad("kirinx90", "TADD", &[BF16; 3], "E0607");
    ok("kirinx90", "TADD", &[I64; 3]);
    ok("a2a3", "TAND", &[Bool; 3]);
    ok("a2a3", "TADDS", &[F16; 3]);
    bad("a2a3", "TEXP", &[I32; 2], "E0607");
    ok("a2a3", "TCVT", &[F16, F32]);
    bad("a2a3", "TCVT", &[F32, U8], "E0615");
    bad("kirin9030", "TCVT", &[BF16, F32], "E0615");
    ok("a2a3", "TSEL", &[F32, Bool, F32, F32]);
    bad("a2a3", "TSEL", &[F32, U8, F32, F32], "E0607");
    bad("a2a3", "TSEL", &[U8, Bool, U8, U8], "E0607");
    ok("a5", "TSEL", &[U8, Bool, U8, U8]);
    ok("a2a3", "TMATMUL", &[F32, F16, F16]);
    bad("kirin9030", "TMATMUL", &[F32, F16, F16], "E0614");
    ok("kirin9030", "TMATMUL_ACC", &[F16, F16, F16, F16]);
    ok("a2a3", "TMATMUL_ACC", &[F32, F32, BF16, BF16]);
    bad("a2a3", "TMATMUL_BIAS", &[F32, F16, F16, F16], "E0607");
    ok("a2a3", "MGATHER", &[F16, F16, I32]);
    bad("a2a3", "MGATHER", &[F16, F16, I16], "E0607");
    assert_eq!(dtype_code("a2a3", "TCMP", &[Bool, I32, I32], Some(CmpOp::Eq)), None);
    assert_eq!(dtype_code("a2a3", "TCMP", &[Bool, I32, I32], Some(CmpOp::Lt)).as_deref(), Some("E0608"));
    assert_eq!(dtype_code("a5", "TCMP", &[Bool, I32, I32], Some(CmpOp::Lt)), None);
    assert_eq!(dtype_code("a2a3", "TCMP", &[U8, F32, F32], Some(CmpOp::Lt)).as_deref(), Some("E0607"));
    assert_eq!(dtype_code("a2a3", "TCMP", &[Bool, U8, U8], Some(CmpOp::Lt)).as_deref(), Some("E0607"));
}

#[test]
fn messages_about_dtypes() {
    let cases = [
        ("a2a3", "TADD", vec![U8; 3], None),
        ("a2a3", "TADD", vec![BF16; 3], None),
        ("a2a3", "TADD", vec![F32, F32, F16], None),
        ("kirin9030", "TADD", vec![BF16; 3], None),
        ("a2a3", "TCMP", vec![Bool, I32, I32], Some(CmpOp::Le)),
        ("a2a3", "TCVT", vec![F32, U8], None),
        ("a2a3", "TCVT", vec![U32, F32], None),
        ("kirin9030", "TMATMUL", vec![F32, F16, F16], None),
        ("a2a3", "TSEL", vec![F32, U8, F32, F32], None),
        ("a2a3", "MGATHER", vec![F32, F32, I64], None),
    ];
    let text: Vec<String> = cases
        .into_iter()
        .map(|(t, name, given, cmp)| {
            show(&check_dtypes(target(t), instr(name), &given, cmp).expect("illegal").diagnostic(at()))
        })
        .collect();
    insta::assert_snapshot!(text.join("\n"));
}

fn conversion(t: &str, from: DType, to: DType) -> Option<String> {
    let hops = conversion_path(target(t), from, to)?;
    Some(
        hops.iter()
            .map(|h| format!("{}>{}{}", h.from, h.to, if h.saturate == Some(true) { " sat" } else { "" }))
            .collect::<Vec<_>>()
            .join(", "),
    )
}

#[test]
fn conversions_in_steps() {
    let path = |t, a, b| conversion(t, a, b).unwrap_or("none".into());
    assert_eq!(path("a2a3", F32, F32), "");
    assert_eq!(path("a2a3", F32, F16), "f32>f16");
    assert_eq!(path("a2a3", U8, F32), "u8>f16, f16>f32");
    assert_eq!(path("a2a3", I8, I32), "i8>f16, f16>i32");
    // Unpacked bytes.
    for t in ["a2a3", "a5"] {
        assert_eq!(path(t, U8, F32), "u8>f16, f16>f32");
        assert_eq!(path(t, U8, F16), "u8>f16");
        assert_eq!(path(t, U8, I32), "u8>f16, f16>i32");
    }
    assert_eq!((path("a2a3", U8, U16), path("a5", U8, U16)), ("none".into(), "u8>u16".into()));
    // Not through f16, which would round twice, but through i16, which holds every i8.
    assert_eq!(path("a2a3", F32, I8), "f32>i16, i16>f16 sat, f16>i8 sat");
    assert_eq!(path("a5", F32, U8), "f32>i16, i16>u8 sat");
    assert_eq!(path("a5", F8E4M3, I8), "f8e4m3>f32, f32>i16, i16>f16 sat, f16>i8 sat");
    assert_eq!(path("a5", F8E5M2, F8E4M3), "f8e5m2>f32, f32>f8e4m3");
    assert_eq!(path("a2a3", BF16, F16), "bf16>f32, f32>f16");
    assert_eq!(path("a2a3", F16, BF16), "f16>f32, f32>bf16");
    assert_eq!(path("a5", I64, U8), "i64>i32, i32>u8");
    assert_eq!(path("a2a3", U32, F32), "none");
    assert_eq!(path("a2a3", I16, I64), "i16>f32, f32>i64");
    assert_eq!(path("kirin9030", F16, BF16), "none");
}

/// Every chain computes what one conversion would: tried on the values where that could fail.
#[test]
fn chains_round_once() {
    let range = |d: DType| match d {
        I8 => (-128.0, 127.0),
        U8 => (0.0, 255.0),
        I16 => (-32768.0, 32767.0),
        U16 => (0.0, 65535.0),
        I32 => (-2147483648.0, 2147483647.0),
        U32 => (0.0, 4294967295.0),
        I64 => (-9223372036854775808.0, 9223372036854775807.0),
        _ => (0.0, 18446744073709551615.0),
    };
    // Saturating, truncating conversion of a real number that is an f64; f16 as a rounding to 11 bits.
    let step = |x: f64, to: DType| match to {
        F32 => f64::from(x as f32),
        F16 => round_to_bits(x, 11),
        BF16 => round_to_bits(x, 8),
        d => x.trunc().clamp(range(d).0, range(d).1),
    };
    for t in Target::pto() {
        for from in [F16, BF16, F32].into_iter().filter(|d| t.has_dtype(*d)) {
            for to in t.dtypes.iter().copied() {
                let Some(hops) = conversion_path(t, from, to) else { continue };
                for x in [
                    0.0, 0.5, -0.5, 1.75, 126.9, 127.5, 128.0, 254.9, 255.5, -128.5, 2049.0, 40000.0, -40000.0,
                    65000.0, 2047.75,
                ] {
                    let x = step(x, from);
                    let chained = hops.iter().fold(x, |v, h| step(v, h.to));
                    assert_eq!(chained, step(x, to), "{x} {from} -> {to} on {}: {hops:?}", t.name);
                }
            }
        }
    }
}

fn round_to_bits(x: f64, bits: i32) -> f64 {
    if x == 0.0 {
        return x;
    }
    let scale = 2f64.powi(x.abs().log2().floor() as i32 + 1 - bits);
    (x / scale).round_ties_even() * scale
}

fn way(t: &str, from: impl Into<MemorySpace>, to: impl Into<MemorySpace>, dtype: DType) -> String {
    match shortest_path(target(t), from, to, dtype) {
        Some(hops) => hops.iter().map(|h| format!("{} {}", h.instr.get().name, h.to)).collect::<Vec<_>>().join(", "),
        None => "none".into(),
    }
}

#[test]
fn ways_between_places() {
    use Loc::*;
    for t in ["a2a3", "a5", "kirin9030", "kirinx90"] {
        assert_eq!(way(t, MemorySpace::Gm, Left, F16), "TLOAD Mat, TMOV Left");
        assert_eq!(way(t, MemorySpace::Gm, Right, I8), "TLOAD Mat, TMOV Right");
        assert_eq!(way(t, MemorySpace::Gm, Vec, F32), "TLOAD Vec");
        assert_eq!(way(t, MemorySpace::Gm, Bias, I32), "TLOAD Mat, TMOV Bias");
        assert_eq!(way(t, Vec, Vec, F32), "");
        assert_eq!(way(t, Vec, MemorySpace::Gm, F32), "TSTORE GM");
        assert_eq!(way(t, Bias, Vec, I32), "none");
    }
    assert_eq!(way("a2a3", Acc, Vec, F32), "TSTORE GM, TLOAD Vec");
    assert_eq!(way("a5", Acc, Vec, F32), "TMOV Vec");
    assert_eq!(way("kirin9030", Acc, Vec, F16), "TMOV Vec");
    assert_eq!(way("kirin9030", Acc, Vec, F32), "none");
    assert_eq!(way("a5", Vec, Left, F16), "TMOV Mat, TMOV Left");
    assert_eq!(way("a2a3", Vec, Left, F16), "TSTORE GM, TLOAD Mat, TMOV Left");
    assert_eq!(way("a2a3", Mat, Vec, F16), "TSTORE GM, TLOAD Vec");
    assert_eq!(way("a5", Mat, Vec, F16), "none");
    assert_eq!(way("a2a3", MemorySpace::Gm, Left, I32), "none");
    assert_eq!(way("kirin9030", MemorySpace::Gm, Vec, BF16), "none");
}

#[test]
fn ways_that_convert() {
    let path = |t: &str, from: Loc, a: DType, to: MemorySpace, b: DType| {
        shortest_conversion(target(t), from, a, to, b).map(|hops| {
            hops.iter()
                .map(|h| format!("{} {} {}", h.instr.get().name, h.to, h.to_dtype))
                .collect::<Vec<_>>()
                .join(", ")
        })
    };
    assert_eq!(path("a2a3", Loc::Acc, F32, Loc::Left.into(), F16).unwrap(), "TMOV Mat f16, TMOV Left f16");
    assert_eq!(path("a2a3", Loc::Acc, F32, Loc::Vec.into(), F16).unwrap(), "TSTORE GM f16, TLOAD Vec f16");
    assert_eq!(path("a5", Loc::Acc, F32, Loc::Vec.into(), BF16).unwrap(), "TMOV Vec bf16");
    assert_eq!(path("a5", Loc::Vec, F16, Loc::Bias.into(), F32).unwrap(), "TMOV Mat f16, TMOV Bias f32");
    assert_eq!(path("a2a3", Loc::Vec, F32, Loc::Vec.into(), F16), None);
}

#[test]
fn moves() {
    let go =
        |t: &str, from: MemorySpace, to: MemorySpace, a, b| check_move(target(t), from, to, a, b).map(|i| i.get().name);
    use Loc::*;
    assert_eq!(go("a2a3", MemorySpace::Gm, Vec.into(), F32, F32), Ok("TLOAD"));
    assert_eq!(go("a2a3", Acc.into(), MemorySpace::Gm, F32, F16), Ok("TSTORE"));
    assert_eq!(go("a5", Acc.into(), Vec.into(), F32, F32), Ok("TMOV"));
    assert_eq!(go("a2a3", Vec.into(), Vec.into(), Bool, Bool), Ok("TMOV"));
    let codes = [
        go("a2a3", MemorySpace::Gm, Left.into(), F16, F16),
        go("a2a3", Acc.into(), Vec.into(), F32, F32),
        go("a2a3", Acc.into(), MemorySpace::Gm, F32, I16),
        go("a2a3", Vec.into(), MemorySpace::Gm, F32, F16),
        go("a5", Mat.into(), MemorySpace::Gm, F16, F16),
        go("a2a3", Bias.into(), Vec.into(), F32, F32),
        go("a2a3", Vec.into(), MemorySpace::Gm, Bool, Bool),
        go("a2a3", Mat.into(), Scaling.into(), F32, F32),
    ];
    let text: std::vec::Vec<String> = codes.into_iter().map(|r| show(&r.unwrap_err().diagnostic(at()))).collect();
    insta::assert_snapshot!(text.join("\n"));
    for loc in [Bias, Scaling] {
        assert_eq!(type_codes("a2a3", tile(loc, F32, 2, 32)), ["E0616"]);
        assert!(type_codes("a2a3", tile(loc, F32, 1, 32)).is_empty());
    }
}

#[test]
fn limits() {
    let check = |name: &str, tiles: &[TileType]| -> Vec<String> {
        check_limits(target("a2a3"), instr(name), tiles).iter().map(|v| v.diagnostic(at()).message).collect()
    };
    assert!(check("TLOAD", &[tile(Loc::Vec, I8, 4095, 32)]).is_empty());
    assert_eq!(
        check("TLOAD", &[tile(Loc::Vec, I8, 4096, 32)]),
        ["TLOAD on a2a3 takes 1 to 4095 rows of a Vec tile, and this is 4096"]
    );
    assert!(check("TLOAD", &[tile(Loc::Mat, I8, 16384, 32)]).is_empty());
    assert_eq!(check("TLOAD", &[tile(Loc::Mat, I8, 16385, 32)]).len(), 1);
    assert_eq!(check("TSTORE", &[tile(Loc::Acc, F32, 8208, 4096)]).len(), 2);
    let matmul = |m, k, n| {
        check("TMATMUL", &[tile(Loc::Acc, F32, m, n), tile(Loc::Left, F16, m, k), tile(Loc::Right, F16, k, n)])
    };
    assert!(matmul(4080, 16, 16).is_empty());
    assert_eq!(matmul(4096, 4096, 4096).len(), 3);
    assert_eq!(check("TEXPANDS", &[tile(Loc::Mat, I8, 32768, 32)]).len(), 1);
    assert!(check("TEXPANDS", &[tile(Loc::Vec, I8, 32768, 32)]).is_empty());
}

#[test]
fn pipes() {
    use Loc::*;
    let p = |name: &str, src, dst| pipe_of(instr(name), src, dst);
    assert_eq!(p("TADD", Some(Vec), Some(Vec)), Pipe::V);
    assert_eq!(p("TLOAD", None, Some(Mat)), Pipe::Mte2);
    assert_eq!(p("TSTORE", Some(Vec), None), Pipe::Mte3);
    assert_eq!(p("TSTORE", Some(Acc), None), Pipe::Fix);
    assert_eq!(p("TMOV", Some(Mat), Some(Left)), Pipe::Mte1);
    assert_eq!(p("TMOV", Some(Mat), Some(Bias)), Pipe::Mte1);
    assert_eq!(p("TMOV", Some(Mat), Some(Scaling)), Pipe::Fix);
    assert_eq!(p("TMOV", Some(Acc), Some(Vec)), Pipe::Fix);
    assert_eq!(p("TMOV", Some(Vec), Some(Mat)), Pipe::Fix);
    assert_eq!(p("TMOV", Some(Vec), Some(Vec)), Pipe::V);
    assert_eq!(p("TMATMUL", Some(Left), Some(Acc)), Pipe::M);
    assert_eq!(p("TEXPANDS", None, Some(Mat)), Pipe::Mte2);
    assert_eq!(p("TEXPANDS", None, Some(Vec)), Pipe::V);
    assert_eq!(p("TASSIGN", None, Some(Vec)), Pipe::S);
    for pipe in Pipe::ALL {
        assert_eq!(Pipe::from_name(pipe.name()), Some(pipe));
    }
}

#[test]
fn scratch_tiles() {
    let of = |t: &str, name: &str, src| scratch_type(target(t), instr(name), src, src);
    let src = tile(Loc::Vec, F32, 20, 64);
    assert_eq!(of("a2a3", "TADD", src), None);
    assert_eq!(of("a2a3", "TROWSUM", src), Some(src));
    assert_eq!(of("a5", "TROWSUM", src), None);
    assert_eq!(of("a2a3", "TTRANS", src), Some(tile(Loc::Vec, F32, 64, 32)));
    let bytes = tile(Loc::Vec, I8, 20, 64);
    assert_eq!(of("a2a3", "TTRANS", bytes), Some(tile(Loc::Vec, I8, 64, 32)));
    assert_eq!(check_tile_type(target("a2a3"), of("a2a3", "TTRANS", bytes).unwrap()), []);
}

#[test]
fn locations() {
    let check = |name: &str, operand, ty| check_location(target("a5"), instr(name), operand, ty);
    assert_eq!(check("TADD", 1, tile(Loc::Vec, F32, 16, 16)), None);
    assert_eq!(check("TADDS", 2, tile(Loc::Mat, F32, 16, 16)), None, "a scalar");
    assert_eq!(check("TLOAD", 0, tile(Loc::Left, F16, 16, 16)), None, "a move");
    let text = [
        check("TADD", 1, tile(Loc::Acc, F32, 16, 16)),
        check("TADD", 0, tile(Loc::Mat, F32, 16, 16)),
        check("TMATMUL", 1, tile(Loc::Vec, F16, 16, 16)),
        check("TEXPANDS", 0, tile(Loc::Acc, F32, 16, 16)),
    ]
    .map(|v| show(&v.expect("illegal").diagnostic("tile `x`", at())));
    insta::assert_snapshot!(text.join("\n"));
}

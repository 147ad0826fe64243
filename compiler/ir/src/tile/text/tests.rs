mod random;

use super::*;
use crate::tile::{
    Builder, CheckData, Inst, InstAttrs, Kernel, Op, Operand, TensorData, TensorDir, Ty, ViewRef, verify,
};
use ptoc_diagnostics::{FileId, Span, codes};
use ptoc_isa::{BinOp, CmpOp, Loc, Order, TileType, lookup};
use ptoc_tensor::DType;
use random::{Random, random_kernel};

const HERE: FileId = FileId(3);

fn round_trip(k: &Kernel) {
    let text = print(k, Spans::Keep);
    let back = parse(&text, HERE).unwrap_or_else(|d| panic!("{} at {:?}\n{text}", d.message, d.span));
    assert_eq!(&back, k, "{text}");
    assert_eq!(print(&back, Spans::Keep), text);
    let bare = print(k, Spans::Omit);
    let back = parse(&bare, HERE).unwrap_or_else(|d| panic!("{} at {:?}\n{bare}", d.message, d.span));
    assert_eq!(print(&back, Spans::Omit), bare);
}

#[test]
fn random_kernels_round_trip() {
    for seed in 0..600 {
        let k = random_kernel(0x9e37_79b9_7f4a_7c15u64.wrapping_mul(seed + 1));
        round_trip(&k);
        // Whatever is wrong with it, the verifier says so and does not panic.
        let _ = verify::verify(&k);
    }
}

/// Damaged text gives a diagnostic inside the text, or parses; it never panics, and neither does the verifier.
#[test]
fn damaged_text_is_refused_politely() {
    let mut r = Random(99);
    for seed in 0..60 {
        let text = print(&random_kernel(0x1234_5678_9abc_def1u64.wrapping_mul(seed + 1)), Spans::Keep);
        for _ in 0..20 {
            let mut bytes = text.clone().into_bytes();
            for _ in 0..1 + r.below(3) {
                let at = r.below(bytes.len());
                match r.below(3) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes[at] = *r.pick(b"v0t9 {}[]()<>\"@.:,x#-+\n"),
                    _ => {
                        bytes.remove(at);
                        if bytes.is_empty() {
                            bytes.push(b' ');
                        }
                    }
                }
            }
            let damaged = String::from_utf8_lossy(&bytes).into_owned();
            match parse(&damaged, HERE) {
                Ok(k) => drop(verify::verify(&k)),
                Err(d) => {
                    let span = d.span.expect("a place");
                    assert!(span.file == HERE && span.end as usize <= damaged.len());
                    assert!(d.code.as_str().starts_with("E08"));
                }
            }
        }
    }
}

#[test]
fn places_of_errors() {
    let head = "kernel \"k\" target \"a5\"\n";
    let tail = "prologue {\n}\ngrid []\nbody {\n}\n";
    let body = |s: &str| format!("{head}{}", tail.replace("body {\n", &format!("body {{\n{s}\n")));
    let cases = [
        (format!("{head}tile t1 \"x\""), "t1", "E0801", "expected `t0`, found `t1`"),
        (format!("{head}tile t0 \"x\" Moon<f32, 1, 1>\n{tail}"), "Moon", "E0802", "`Moon` is no location"),
        (format!("{head}tile t0 \"x\" Vec<f33, 1, 1>\n{tail}"), "f33", "E0802", "`f33` is no type"),
        (
            format!("{head}tile t0 \"x\" Vec<f32, 2, 2, (2,2):(0,1)>\n{tail}"),
            "(2,2):(0",
            "E0801",
            "no tile's layout: tile",
        ),
        (format!("{head}tile t0 \"x\" Vec<f32, 2, 2, (2,2):>\n{tail}"), "(2,2):>", "E0801", "no tile's layout"),
        (format!("{head}tile t0 \"x\" Vec<f32, 2, 2, Sw<1,0"), "", "E0801", "expected `>`"),
        (body("copy [] g0.x4[v0 + ()]"), "x4", "E0802", "`x4` is no type of an element"),
        (body("copy [] g0.u4[v0 + () + table.mirror"), "mirror", "E0802", "`mirror` does not say"),
        (body("copy [] v0"), "v0", "E0801", "expected a side such as"),
        (body("copy [] g0.u4[v0 + ()] swizzle (3, 0, 1)"), "(3, 0, 1)", "E0801", "the two fields of 3 bits overlap"),
        (format!("{head}check c0 XX-1 \"x\"\n{tail}"), "XX-1", "E0802", "`XX-1` is no diagnostic code"),
        (body("tplus t0[1x1 v0, v0]"), "tplus", "E0802", "`tplus` is no statement and no instruction"),
        (body("TADD t0[1x1 v0, v0]"), "TADD", "E0802", "`TADD` is no statement"),
        (body("v0: index = const 1.5"), "1.5", "E0801", "expected a constant of type index"),
        (body("v0: i8 = const 128"), "128", "E0801", "expected a constant of type i8"),
        (body("v0: index = const 1\nset m0, v9"), "v9", "E0804", "there is no value v9"),
        (body("v0: index = const 1\nv0: i8 = const 1"), "v0: i8", "E0806", "v0 is defined twice, and differently"),
        (body("break l99999999999"), "l99999999999", "E0801", "expected a label"),
        (body("print \"open"), "\"open", "E0801", "a string that does not end well"),
        (body("%"), "%", "E0801", "'%' is no part of tile IR"),
        (format!("{head}{tail}more"), "more", "E0801", "expected the end of the text, found `more`"),
    ];
    for (text, place, code, message) in cases {
        let d = parse(&text, HERE).expect_err(&text);
        assert_eq!(d.code.as_str(), code, "{}", d.message);
        assert!(d.message.contains(message), "{} / {message}", d.message);
        let at = d.span.expect("a place").start as usize;
        assert!(text[at..].starts_with(place), "{:?} / {place}", &text[at..]);
    }
}

#[test]
fn depth_and_length() {
    let deep = |n: usize| {
        let open = "scope l0 {\n".repeat(n);
        let close = "}\n".repeat(n);
        format!("kernel \"k\" target \"a5\"\nlabel l0\nprologue {{\n}}\ngrid []\nbody {{\n{open}{close}}}\n")
    };
    assert!(parse(&deep(verify::MAX_DEPTH - 1), HERE).is_ok());
    // As deep as is allowed goes through everything that walks regions, on a test's small stack.
    let conditions: String = "if v0 {\n".repeat(verify::MAX_DEPTH - 1);
    let text = deep(0)
        .replace("prologue {\n", "prologue {\nv0: bool = const true\n")
        .replace("body {\n", &format!("body {{\n{conditions}print \"here\"\n{}", "}\n".repeat(verify::MAX_DEPTH - 1)));
    let k = parse(&text, HERE).expect("allowed");
    assert_eq!(verify::verify(&k), Ok(()));
    assert_eq!(print(&k, Spans::Omit).matches("if v0").count(), verify::MAX_DEPTH - 1);
    assert_eq!(parse(&deep(100_000), HERE).unwrap_err().code, codes::IR_TOO_DEEP);
    // Linear: this takes no noticeable time.
    let lines: String = (0..50_000).map(|n| format!("v{n}: index = const {n}\n")).collect();
    let text = format!("kernel \"k\" target \"a5\"\nprologue {{\n{lines}}}\ngrid []\nbody {{\n}}\n");
    assert_eq!(parse(&text, HERE).unwrap().values.len(), 50_000);
}

#[test]
fn a_readable_kernel() {
    let at = |n| Span::new(FileId(0), n, n + 4);
    let mut b = Builder::new("scale", at(0), "a2a3");
    let m = b.dim("M", at(10));
    let s = b.scalar_param("s", Ty::D(DType::F32), at(20));
    let half = b.float_const(DType::F32, 0.5);
    b.set_scalar_default(s, half);
    let mut data = TensorData {
        name: "x".into(),
        dtype: DType::F32,
        dir: TensorDir::In,
        shape: vec![m],
        optional: false,
        place: None,
        disjoint: false,
        stored: None,
        span: at(30),
    };
    let x = b.tensor(data.clone());
    (data.name, data.dir) = ("y".into(), TensorDir::Out);
    let y = b.tensor(data);
    let width = b.index_const(64);
    let blocks = b.ceil_div(m, width, at(40));
    let i = b.grid_dim("i", blocks, at(41));
    b.begin_body();
    let start = b.mul(i, width, at(50));
    let rest = b.sub(m, start, at(51));
    let len = b.binary(BinOp::Min, rest, width, at(52));
    b.name_value(len, "i.len");
    let ty = TileType { loc: Loc::Vec, dtype: DType::F32, rows: 1, cols: 64, order: Order::Nd, layout: None };
    let t = b.auto_tile("t", ty, at(60));
    b.emit(Op::Alloc { tile: t }, at(60));
    let one = b.index_const(1);
    let t = b.tile_ref(t, (one, len));
    let view = |tensor| Operand::View(ViewRef { tensor, offset: start, shape: vec![one, len], strides: vec![m, one] });
    for (name, operands) in [
        ("TLOAD", vec![Operand::Tile(t), view(x)]),
        ("TMULS", vec![Operand::Tile(t), Operand::Tile(t), Operand::Scalar(s)]),
        ("TSTORE", vec![view(y), Operand::Tile(t)]),
    ] {
        let instr = lookup(name).expect("an instruction");
        b.inst(Inst { instr, operands, scratch: vec![], attrs: InstAttrs::default() }, at(70));
    }
    let ok = b.compare(CmpOp::Le, start, m, at(80));
    let check = CheckData {
        code: codes::TRAP_TENSOR_OUT_OF_BOUNDS,
        message: "{0} is beyond {1}".into(),
        span: at(81),
        help: None,
    };
    b.check(ok, check, vec![start, m], at(80));
    let k = b.finish();
    assert_eq!(verify::verify(&k), Ok(()));
    round_trip(&k);
    insta::assert_snapshot!(print(&k, Spans::Omit));
    insta::assert_snapshot!("a_readable_kernel_with_spans", print(&k, Spans::Keep));
}

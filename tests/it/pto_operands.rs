//! Operands of instructions as PTO text has them, and buffers as pto-isa's headers take them.

use crate::pto::written;
use ptoc_driver::session::Session;
use ptoc_driver::stages::{Level, Stage, text_of};
use std::path::Path;

const LEVELS: [Level; 3] = [Level::Automatic, Level::Placed, Level::Explicit];

/// The texts of a kernel at all levels, each of which is printed again as it was.
fn texts(source: &str, kernel: &str, target: &str) -> [String; 3] {
    LEVELS.map(|level| {
        let text = written(Path::new("k.tile"), source.into(), Some(kernel), target, level).expect("it can be said");
        let again = written(Path::new("k.pto"), text.clone(), None, target, level).expect("it is read");
        assert_eq!(again, text, "{kernel} {target} {level:?}");
        text
    })
}

/// The kernel as C++, or its errors.
fn cpp(source: &str, kernel: &str, target: &str) -> Result<String, String> {
    let mut session = Session::new(target, &[]).expect("a target");
    session.pto_level = Some(Level::Explicit);
    let unit = session.load_text(Path::new("k.tile"), source.into());
    let entry = unit.entry(Some(kernel), "emit").expect("the kernel");
    let made = text_of(&mut session, &unit, &entry, Stage::PtoCpp, Vec::new());
    let errors = session.diagnostics.iter().filter(|d| d.is_error()).map(|d| format!("{} {}", d.code, d.message));
    made.map_err(|_| errors.collect::<Vec<_>>().join("\n"))
}

const KERNELS: &str = include_str!("pto_operands/kernels.txt");

/// A slope is an `f32` by the operation's definition, of tiles of `f16`, too.
#[test]
fn slopes_are_f32() {
    for target in ["a2a3", "a5"] {
        for text in texts(KERNELS, "slopes", target) {
            let slopes = text.lines().filter(|l| l.contains("pto.tlrelu"));
            assert!(slopes.clone().count() == 3 && slopes.clone().all(|l| l.contains(">, f32) outs(")), "{text}");
            // What was an `f32` is that, and the number of 16 bits is as it was rounded.
            assert!(slopes.clone().any(|l| l.contains(", %r : ")), "{text}");
            assert!(text.contains("arith.constant 9.9975586e-02 : f32"), "{text}");
        }
    }
}

#[test]
fn destinations_that_are_read_stand_once() {
    for (kernel, op, targets) in [
        ("updates", "pto.taxpy ins(%0, %s : ", &["a2a3", "a5"][..]),
        ("scatters", "pto.tscatter ins(%0, %2 : ", &["a2a3", "a5"]),
        ("inserts", "pto.tinsert ins(%b, %c2, %c0 : ", &["a5"]),
    ] {
        for target in targets {
            let text = &texts(KERNELS, kernel, target)[0];
            assert!(text.contains(op) || text.contains(&op.replace("%0", "%a")), "{text}");
        }
    }
}

#[test]
fn columns_stand_first_where_the_source_has_them() {
    for target in ["a2a3", "a5"] {
        for text in texts(KERNELS, "columns_first", target) {
            assert!(text.contains("pto.trowexpandsub ins(%c, %"), "{text}");
            assert!(text.contains("pto.trowexpanddiv ins(%c, %"), "{text}");
        }
    }
}

/// A reshape is a view and a move in the text, also where tiles have addresses.
#[test]
fn reshapes_are_views_that_are_moved() {
    const RESHAPE: &str = "\
kernel k(x: in f32[16, 64], y: out f32[32, 32]) {
    let a = Vec(x.tile(tiles(16, 16)[0], _));
    let o = tile Vec<f32, 32, 32>;
    TRESHAPE(o, a * 2.0);
    TSTORE(y.tile(tiles(32, 32)[0], _), o);
}
";
    for target in ["a2a3", "a5"] {
        for text in texts(RESHAPE, "k", target) {
            assert!(text.contains(" = pto.treshape ") && text.contains("pto.tmov ins("), "{text}");
        }
    }
}

/// PTOAS asks for a byte for each element of what a leaky rectifier works in.
#[test]
fn what_is_worked_in_is_as_large_as_ptoas_asks() {
    let text = &texts(KERNELS, "leaks", "a2a3")[0];
    let line = text.lines().find(|l| l.contains("pto.tprelu")).unwrap_or_default();
    assert!(line.contains("!pto.tile_buf<vec, 8x64xui8>) outs("), "{text}");
}

/// Operands of products lie in Mat as boxes of 16 rows, also where those of Right have 8.
#[test]
fn buffers_of_boxes_are_whole_boxes() {
    for text in texts(KERNELS, "product", "a5") {
        assert!(text.contains("!pto.tile_buf<mat, 32x48xf32"), "{text}");
        assert!(!text.contains("!pto.tile_buf<mat, 24x48xf32"), "{text}");
    }
    for target in ["a2a3", "a5"] {
        let text = cpp(KERNELS, "product", target).expect("it can be said");
        assert!(text.contains("Tile<TileType::Mat, float, 32, 48, BLayout::ColMajor, "), "{text}");
    }
    // On a2a3 both sides of a move are as large.
    let why = written(Path::new("k.tile"), KERNELS.into(), Some("product"), "a2a3", Level::Automatic);
    assert!(why.is_err_and(|why| why.starts_with("E1405 ")));
}

/// The simulator of the headers has functions that take tiles of one type alone.
#[test]
fn tiles_of_one_type_where_the_headers_ask_for_it() {
    let text = cpp(KERNELS, "windows", "a2a3").expect("it can be said");
    for line in [
        "Tile<TileType::Vec, float, 8, 32, BLayout::RowMajor, 4> v2_view;",
        "TSUBVIEW(v2_view, v2, 0, 0);",
        "TADD(v4, v2_view, v5);",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
    for (kernel, what) in [
        ("narrow", "`TADD` of tiles of different types"),
        ("remainders", "of tiles of different types"),
        ("greatest", "`TCOLMAX` of `int32_t`"),
        ("scattered", "`TSCATTER` to rows"),
    ] {
        let why = cpp(KERNELS, kernel, "a2a3").expect_err(kernel);
        assert!(why.starts_with("E1406 ") && why.contains(what), "{kernel}: {why}");
    }
}

/// Tiles at addresses are declared once, in front of all loops: a tile that is written anew in each iteration destroys
/// nothing of the one before.
#[test]
fn tiles_on_common_bytes_take_turns() {
    const PRODUCTS: &str = "\
kernel turns(a: in f16[64, T], b: in f16[T, 64], l: in f16[16, 64], r: in f16[16, T], o: inout f32[16, 64], \
d: out f32[16, T]) where T >= 1 {
    for t in tiles(T, 32) {
        TSTORE(d.tile(tiles(16, 16)[0], t), matmul(Left(l.tile(tiles(16, 16)[0], _)), Right(a.tile(_, t))));
        TSTORE(o.tile(tiles(16, 16)[0], _), matmul(Left(r.tile(tiles(16, 16)[0], t)), Right(b.tile(t, _))));
    }
}
";
    for target in ["a2a3", "a5"] {
        texts(PRODUCTS, "turns", target);
    }
    // A value that is still wanted is destroyed.
    let kernel = |first: &str, last: &str| {
        format!(
            "kernel k(a: in f16[16, 16], b: in i8[16, 32], y: out f32[64, 16]) {{
    let l = tile Left<f16, 16, 16> at 0x0;
    let q = tile Left<i8, 16, 32> at 0x0;
    let r = Right(a[_, _]);
    {first}
    for i in tiles(64, 16) {{
        TMOV(q, Mat(b[_, _]));
        {last}
        TSTORE(y.tile(i, _), matmul(l, r));
    }}
}}
"
        )
    };
    let checked = |text: String| {
        let mut session = Session::new("a2a3", &[]).expect("a target");
        let unit = session.load_text(Path::new("k.tile"), text);
        let entry = unit.entry(None, "check").expect("the kernel");
        ptoc_driver::check::check_entry(&mut session, &unit, &entry);
        let errors = session.diagnostics.iter().filter(|d| d.is_error());
        errors.map(|d| d.code.to_string()).collect::<Vec<_>>()
    };
    let mov = "TMOV(l, Mat(a[_, _]));";
    assert_eq!(checked(kernel("", mov)), [""; 0]);
    assert_eq!(checked(kernel(mov, "")), ["E0452"]);
    let part = "TMOV(l.valid(8, 16), Mat(a[0 .. 8, _]));";
    assert_eq!(checked(kernel(mov, part)), ["E0452"]);
}

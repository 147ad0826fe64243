use super::*;
use crate::{Env, Points, eval_expr, parse_value};
use std::collections::BTreeMap;

fn layout(text: &str) -> Layout {
    match parse_value(text).unwrap() {
        Value::Layout(l) => l,
        v => panic!("{v}"),
    }
}

fn eval(text: &str) -> String {
    eval_expr(&Cx::default(), &Env::new(), text).map_or_else(|e| e.located(text), |v| v.to_string())
}

/// Who has each element of the tile: (thread, value), by the side's layout.
fn holders(copy: &TiledCopy, side: CopySide) -> BTreeMap<i64, (i64, i64)> {
    let tv = copy.tv(&Cx::default(), side).unwrap();
    let threads = tv.mode(0).unwrap().size().unwrap().as_const().unwrap();
    let points = Points::of_layout(&tv).unwrap();
    (0..points.size()).map(|i| (points.offset_at(i).unwrap(), (i % threads, i / threads))).collect()
}

#[test]
fn each_element_is_moved_once() {
    for (threads, values) in
        [("(32,8):(1,32)", "(4,1):(1,4)"), ("(16,8):(8,1)", "(1,8):(1,1)"), ("(4,(2,2)):(4,(1,2))", "(2,2):(2,1)")]
    {
        let copy = TiledCopy::new(&Cx::default(), CopyAtom::single(), &layout(threads), &layout(values)).unwrap();
        let size = copy.layout().size().unwrap().as_const().unwrap();
        let held = holders(&copy, CopySide::Src);
        assert!(held.keys().copied().eq(0..size), "{threads} {values}");
        assert_eq!(held, holders(&copy, CopySide::Dst));
    }
}

#[test]
fn loads_of_fragments() {
    // ldmatrix.x4: thread t reads row t of 8 elements; afterwards it has two neighbours of each of four 8 x 8 matrices.
    // (CUTLASS `copy_traits_sm75.hpp`, SM75_U32x4_LDSM_N, in elements of 16 bits.)
    let cx = Cx::default();
    let atom = CopyAtom::new(layout("(32,8):(8,1)"), layout("(32,(2,4)):(2,(1,64))"), CopySide::Dst).unwrap();
    // The A operand of m16n8k16: what thread and value have in the destination is what the MMA reads.
    let tv = layout("((4,8),(2,2,2)):((32,1),(16,8,128))");
    let copy = TiledCopy::of_tv(&cx, atom, tv.clone(), vec![16.into(), 16.into()]).unwrap();
    let points = Points::of_layout(&tv).unwrap();
    let dst = holders(&copy, CopySide::Dst);
    assert!((0..256).all(|i| dst[&points.offset_at(i).unwrap()] == (i % 32, i / 32)));
    // In the source each thread has a row of one of the four 8 x 8 matrices, 8 columns in order.
    let src = holders(&copy, CopySide::Src);
    for (element, (thread, value)) in src {
        let (row, column) = (element % 16, element / 16);
        assert_eq!((row, column), (thread % 16, thread / 16 * 8 + value));
    }
}

#[test]
fn partitions() {
    let part = "tiled_copy_partition((16,8):(8,1), (1,4):(1,1), (32,64):(64,1), 9)";
    assert_eq!(eval(part), "68 o ((1,4),2,2):((0,1),1024,32)");
    assert_eq!(eval("tiled_copy_tiler((16,8):(8,1), (1,4):(1,1))"), "<16,32>");
    assert_eq!(eval("tiled_copy_tiler(32:1, 4:1)"), "<128>");
    assert_eq!(eval("tiled_copy_tv(32:1, 4:1)"), "(32,(1,4)):(4,(0,1))");
}

#[test]
fn refusals() {
    for (text, part) in [
        (
            "tiled_copy_tv((16,8):(8,2), (1,4):(1,1))",
            "(16,8):(8,2) does not number its 128 threads, each once from 0 on; (16,8):(1,16) does",
        ),
        ("tiled_copy_tv((16,8):(8,1), (2,4):(1,1))", "does not number its 8 values"),
        ("tiled_copy_tv((16,0):(1,16), (2,4):(1,2))", "tiled_copy_tv: "),
        ("tiled_copy_partition((16,8):(8,1), (1,4):(1,1), (32,64):(64,1), 128)", "index 128 is outside of extent 128"),
        ("tiled_copy_partition((16,8):(8,1), (1,4):(1,1), 64:1, 1)", "64:1 has 1 mode, the tile has 2"),
        ("tiled_copy_tv(4, (2,4))", "argument 1 must be a layout"),
    ] {
        let got = eval(text);
        assert!(got.contains(part), "{text}: {got}");
    }
    let e = CopyAtom::new(layout("(32,8):(8,1)"), layout("(16,16):(16,1)"), CopySide::Src).unwrap_err();
    assert_eq!(e.message, "source (32,8):(8,1) and destination (16,16):(16,1) have other numbers of threads or values");
    let e = CopyAtom::new(layout("(32,8):(8,1)"), layout("(32,8):(8,2)"), CopySide::Src).unwrap_err();
    assert_eq!(e.message, "(32,8):(8,2) does not give each of its 256 elements once");
    let atom = CopyAtom::new(layout("(4,2):(2,1)"), layout("(4,2):(1,4)"), CopySide::Src).unwrap();
    let e = TiledCopy::new(&Cx::default(), atom, &layout("(2,3):(1,2)"), &layout("(2,1):(1,1)")).unwrap_err();
    assert_eq!(e.message, "6 threads are no multiple of the 4 of one instruction");
}

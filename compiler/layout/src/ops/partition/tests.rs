use super::*;
use crate::{Env, Points, Stride, eval_expr};
use std::collections::BTreeSet;

fn eval(text: &str) -> String {
    eval_expr(&Cx::default(), &Env::new(), text).map_or_else(|e| e.located(text), |v| v.to_string())
}

#[test]
fn tiles_of_a_problem() {
    // A is 256 x 128 of (M,N,K), tiles are 64 x 64 x 32: row 1, all of K.
    let a = "local_tile_proj((256,128):(128,1), (64,64,32), (1,0,_), (1,X,1))";
    assert_eq!(eval(a), "8192 o (64,32,4):(128,1,32)");
    assert_eq!(eval("local_tile((256,128):(128,1), (64,32), (1))"), "8192 o (64,32,4):(128,1,32)");
    // A single index counts the tiles as one mode.
    assert_eq!(eval("local_tile((8,6):(1,8), (4,3), 3)"), "28 o (4,3):(1,8)");
    assert_eq!(eval("local_tile(1000:1, 128, 7)"), "896 o (128):(1)");
    assert_eq!(eval("local_tile(1000:1, 128, _)"), "0 o (128,8):(1,128)");
    assert_eq!(eval("inner_partition((8,6):(1,8), (4,3), (1,1))"), eval("local_tile((8,6):(1,8), (4,3), (1,1))"));
    assert_eq!(eval("outer_partition((8,6):(1,8), (4,3), (1,2))"), "17 o (2,2):(4,24)");
    // Modes beyond the tiler follow the tile.
    assert_eq!(eval("local_tile((8,6,5):(1,8,48), (4,3), (1,1))"), "28 o (4,3,5):(1,8,48)");
    assert_eq!(eval("local_tile(Sw<2,0,3> o 0 o (8,8):(8,1), (4,4), (1,1))"), "Sw<2,0,3> o 36 o (4,4):(8,1)");
    assert_eq!(
        eval("local_tile(make_identity_layout((128,128)), (64,32), (1,_))"),
        "(64,0) o (64,32,4):(1@0,1@1,32@1)"
    );
}

#[test]
fn threads_parts() {
    // Tile 128 x 8 with 32 x 8 threads: thread 0 has rows 0, 32, 64, 96; all threads together have the tile.
    assert_eq!(eval("local_partition((128,8):(1,128), (32,8):(1,32), 0)"), "0 o (4,1):(32,0)");
    let mut seen = BTreeSet::new();
    for thread in 0..256 {
        let text = format!("local_partition((128,8):(1,128), (32,8):(1,32), {thread})");
        let part = Points::of(&eval_expr(&Cx::default(), &Env::new(), &text).unwrap()).unwrap();
        assert!((0..part.size()).all(|i| seen.insert(part.offset_at(i).unwrap())));
    }
    assert!(seen.into_iter().eq(0..1024));
    // Threads that differ in N only share A.
    let a = |thread: i64| eval(&format!("local_partition_proj((16,8):(1,16), (4,2,2):(1,4,8), {thread}, (1,X,1))"));
    assert_eq!(a(1), "1 o (4,4):(4,32)");
    assert_eq!(a(5), a(1));
    assert_ne!(a(9), a(1));
}

#[test]
fn symbolic_tiles() {
    let (m, k, i, t) = (
        Int::var(1, "M", 64, 0, None),
        Int::var(2, "K", 32, 0, None),
        Int::var(3, "i", 1, 0, None),
        Int::var(4, "t", 1, 0, Some(255)),
    );
    let cx = Cx::default();
    let shape = Tuple::Node(vec![m.into(), k.clone().into()]);
    let a = Layout::new(shape, Tuple::Node(vec![Tuple::Leaf(Stride::int(k)), Tuple::Leaf(Stride::from(1))])).unwrap();
    let at = Tuple::Node(vec![Tuple::Leaf(CoordLeaf::At(i)), Tuple::Leaf(CoordLeaf::Keep)]);
    let tile = local_tile(&cx, &a, &Tiler::of_shape(&IntTuple::flat(&[64, 32])), &at).unwrap();
    assert_eq!(tile.to_string(), "64*K*i o (64,32,K/32):(K,1,32)");
    let threads = super::super::compact(&IntTuple::flat(&[32, 8])).unwrap();
    let part = local_partition(&cx, &tile.layout, &threads, &t).unwrap();
    assert_eq!(part.layout.to_string(), "(2,4,K/32):(32*K,8,32)");
}

#[test]
fn refusals() {
    for (text, part) in [
        (
            "local_tile((8,6):(1,8), (4,3), (2,0))",
            "column 33: local_tile: mode 0: index 2 is outside of extent 2: there are (2,2) tiles",
        ),
        ("local_tile((8,6):(1,8), (4,3), (0,0,0))", "coordinate (0,0,0) has 3 entries for 2 modes"),
        ("local_tile((8,6):(1,8), (4,3), (-1,0))", "index -1 is below 0"),
        ("local_tile((8,6):(1,8), (0,3), (0,0))", "local_tile: "),
        ("local_tile(4, (4,3), (0,0))", "column 12: local_tile: argument 1 must be a layout, not an integer"),
        ("local_tile_proj((8,6):(1,8), (4,3), (0,0), (1,X,1))", "argument 2 has 2 modes, the projection 3"),
        ("local_tile_proj((8,6):(1,8), (4,9,3), (2,0,0), (1,X,1))", "mode 0: index 2"),
        // The projection's mode 1 is the problem's mode 2.
        ("local_tile_proj((8,6):(1,8), (4,9,3), (0,0,2), (1,X,1))", "local_tile_proj: mode 2: index 2"),
        ("local_tile_proj((8,6):(1,8), (4,9,3), (0,0,2), 3)", "argument 4 must be a projection, not an integer"),
        ("local_partition((8,6):(1,8), (2,3):(0,1), 1)", "no thread would have the second"),
        ("local_partition((8,6):(1,8), (2,3):(1,2), 6)", "thread 6 is not in (2,3):(1,2), whose threads are 0 to 5"),
        ("local_partition((8,6):(1,8), (2,3):(1,2), -1)", "thread -1 is not in"),
        ("local_partition((8,6):(1,8), (2,3,4):(1,2,6), 0)", "local_partition: "),
        ("predicates((8,6), (4,4))", "`predicates` takes 3 arguments"),
        ("predicates((8000,6), (8000,4), (0,0))", "32000 elements are not known now, or more than 4096"),
    ] {
        let got = eval(text);
        assert!(got.contains(part), "{text}: {got}");
    }
}

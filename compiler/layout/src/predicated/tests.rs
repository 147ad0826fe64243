use super::*;
use crate::{Value, parse_value};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn value(text: &str) -> Value {
    parse_value(text).unwrap()
}

fn layout(text: &str) -> Layout {
    match value(text) {
        Value::Layout(l) => l,
        v => panic!("{v}"),
    }
}

fn tiler(text: &str) -> Tiler {
    Tiler::of_shape(&value(text).as_ints().unwrap())
}

fn coord(text: &str) -> Coord {
    value(text).as_coord().unwrap()
}

#[test]
fn a_tile_over_the_edge() {
    // The round-up example: (10,6) by <4,4>, tile (2,1) has rows 8 to 11 and columns 4 to 7.
    let cx = Cx::default();
    let tile = Predicated::new(layout("(10,6):(1,10)")).local_tile(&cx, &tiler("(4,4)"), &coord("(2,1)")).unwrap();
    assert_eq!(tile.coords().to_string(), "(8,4) o (4,4):(1@0,1@1)");
    assert_eq!(tile.data().unwrap().to_string(), "48 o (4,4):(1,10)");
    let there: Vec<String> = tile
        .predicates(&cx, 64)
        .unwrap()
        .chunks(4)
        .map(|c| c.iter().map(|b| if *b { '#' } else { '.' }).collect())
        .collect();
    assert_eq!(there, ["##..", "##..", "....", "...."]);
    let open: Vec<String> = tile.open(&cx).unwrap().iter().map(Condition::to_string).collect();
    assert_eq!(open, ["12 <= 10", "8 <= 6"]);
    let inner = Predicated::new(layout("(10,6):(1,10)")).local_tile(&cx, &tiler("(4,4)"), &coord("(1,0)")).unwrap();
    assert_eq!(inner.open(&cx).unwrap(), []);
    // 2050 by 128: the last tile has 2.
    let last = Predicated::new(layout("2050:1")).local_tile(&cx, &tiler("128"), &coord("16")).unwrap();
    assert_eq!(last.predicates(&cx, 128).unwrap().iter().filter(|b| **b).count(), 2);
    // A thread's part of a tile.
    let part = tile.local_partition(&cx, &layout("(2,2):(1,2)"), &Int::Const(1)).unwrap();
    assert_eq!(part.data().unwrap().to_string(), "49 o (2,2):(2,20)");
    assert_eq!(part.predicates(&cx, 64).unwrap(), [true, false, false, false]);
    assert_eq!(part.coordinate(&cx, &IntTuple::flat(&[1, 1])).unwrap().to_string(), "(11,6)");
}

#[test]
fn symbolic_extents() {
    let cx = Cx::default();
    let (m, n) = (Int::var(1, "M", 1, 0, None), Int::var(2, "N", 1, 0, None));
    let (i, j) = (Int::var(3, "i", 1, 0, None), Int::var(4, "j", 1, 0, None));
    let data = Layout::new(
        Tuple::Node(vec![m.clone().into(), n.clone().into()]),
        Tuple::Node(vec![Tuple::Leaf(Stride::int(n.clone())), Tuple::Leaf(Stride::from(1))]),
    )
    .unwrap();
    let at = |n: &Int| Tuple::Leaf(crate::CoordLeaf::At(n.clone()));
    let tile = Predicated::new(data).local_tile(&cx, &tiler("(16,64)"), &Tuple::Node(vec![at(&i), at(&j)])).unwrap();
    assert_eq!(tile.data().unwrap().to_string(), "16*N*i+64*j o (16,64):(N,1)");
    let open: Vec<String> = tile.open(&cx).unwrap().iter().map(Condition::to_string).collect();
    assert_eq!(open, ["16*i+16 <= M", "64*j+64 <= N"]);
    // What the launch tells decides.
    let mut known = Cx::default();
    known.assume(Condition::Le(i.mul(&Int::Const(16)).unwrap().add(&Int::Const(16)).unwrap(), m));
    assert_eq!(tile.open(&known).unwrap().len(), 1);
    assert_eq!(tile.contains(&known, &IntTuple::flat(&[3, 0])).unwrap(), Truth::Unknown);
}

#[test]
fn foreign_modes_are_refused() {
    let p = Predicated::new(layout("(4,8):(1,4)"));
    let e = p.map(|_| Ok(layout("(4,8):(1@0,1@2)"))).unwrap().data().unwrap_err();
    assert_eq!(e.message, "stride 1@2 is no coordinate of shape (4,8)");
    assert!(p.predicates(&Cx::default(), 31).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(70, 200), ..ProptestConfig::default() })]

    /// All tiles and threads together have each element of the original once, where the original has it.
    #[test]
    fn tiles_have_each_element_once(
        shape in proptest::collection::vec(1..12i64, 1..4),
        tile in proptest::collection::vec(1..6i64, 3),
        thr in proptest::collection::vec(1..4i64, 3),
    ) {
        let cx = Cx::default();
        let rank = shape.len();
        let data = ops::compact_right(&IntTuple::flat(&shape)).unwrap();
        let tiler = Tiler::of_shape(&IntTuple::flat(&tile[..rank]));
        let threads = ops::compact(&IntTuple::flat(&thr[..rank])).unwrap();
        let count: i64 = thr[..rank].iter().product();
        let whole = Predicated::new(data.clone());
        let tiles = whole.zipped_divide(&cx, &tiler).unwrap().coords().layout.mode(1).unwrap().size().unwrap();
        let mut seen = BTreeSet::new();
        for t in 0..tiles.as_const().unwrap() {
            let tile = whole.local_tile(&cx, &tiler, &Tuple::Leaf(crate::CoordLeaf::At(t.into()))).unwrap();
            for x in 0..count {
                // Threads that do not divide the tile run over its edge, into the next: their predicate is the tile's.
                if (0..rank).any(|k| tile_extent(&tile, k) % thr[k] != 0) {
                    continue;
                }
                let part = tile.local_partition(&cx, &threads, &x.into()).unwrap();
                let at = part.data().unwrap();
                for (i, there) in part.predicates(&cx, 1 << 12).unwrap().into_iter().enumerate() {
                    let index = IntTuple::from(i as i64);
                    let c = part.coordinate(&cx, &index).unwrap();
                    let inside = c.leaves().iter().zip(&shape).all(|(x, n)| x.as_const().unwrap() < *n);
                    prop_assert_eq!(there, inside);
                    if there {
                        let offset = at.eval(&cx, &index).unwrap();
                        prop_assert_eq!(&offset, &data.eval(&cx, &c).unwrap());
                        prop_assert!(seen.insert(offset.as_int().unwrap().as_const().unwrap()));
                    }
                }
            }
        }
        if (0..rank).all(|k| tile[k] % thr[k] == 0) {
            prop_assert_eq!(seen.into_iter().collect::<Vec<_>>(), (0..shape.iter().product()).collect::<Vec<_>>());
        }
    }
}

fn tile_extent(tile: &Predicated, k: usize) -> i64 {
    tile.coords().layout.mode(k).unwrap().size().unwrap().as_const().unwrap()
}

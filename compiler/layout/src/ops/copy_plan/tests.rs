use super::*;
use crate::{IntTuple, parse_value};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn layout(text: &str) -> Layout {
    match parse_value(text).unwrap() {
        Value::Layout(l) => l,
        other => panic!("{other} is no layout"),
    }
}

fn plan(dst: &str, src: &str, bytes: u32) -> String {
    match copy_plan(&Cx::default(), &layout(dst), &layout(src), bytes, bytes) {
        Ok(p) => p.to_string(),
        Err(e) => format!("{:?} {e}", e.kind),
    }
}

#[test]
fn units() {
    // NCHW to NHWC, as one logical shape (N,C,H,W) with permuted strides.
    let nchw = "(32,64,224,224):(3211264,50176,224,1)";
    let nhwc = "(32,64,224,224):(3211264,1,14336,64)";
    assert_eq!(
        plan(nhwc, nchw, 4),
        "4 bytes; 32 (dst 12845056, src 12845056); 50176 (dst 256, src 4) fast in src; 64 (dst 4, src 200704) fast in \
        dst"
    );
    assert_eq!(plan(nchw, nchw, 4), "32 bytes; 12845056 (dst 32, src 32) fast in both");
    assert_eq!(plan("(8,4):(1,8)", "(8,4):(1,8)", 1), "32 bytes");
    // An odd tail: 37 bytes are units of 1; 5 floats units of 4, 6 of 8.
    assert_eq!(plan("37:1", "37:1", 1), "1 byte; 37 (dst 1, src 1) fast in both");
    assert_eq!(plan("5:1", "5:1", 4), "4 bytes; 5 (dst 4, src 4) fast in both");
    assert_eq!(plan("(6,3):(1,8)", "(6,3):(1,6)", 4), "8 bytes; 3 (dst 32, src 24); 3 (dst 8, src 8) fast in both");
    // Rows that do not begin at multiples of the unit.
    assert_eq!(plan("(8,3):(1,9)", "(8,3):(1,8)", 2), "2 bytes; 3 (dst 18, src 16); 8 (dst 2, src 2) fast in both");
    // Elements wider than a unit, and of no power of two.
    assert_eq!(
        plan("(3,4):(4,1)", "(3,4):(1,3)", 64),
        "32 bytes; 3 (dst 256, src 64); 4 (dst 64, src 192); 2 (dst 32, src 32) fast in both"
    );
    assert_eq!(plan("2:2", "2:1", 12), "4 bytes; 2 (dst 24, src 12); 3 (dst 4, src 4) fast in both");
}

#[test]
fn edges() {
    assert_eq!(plan("():()", "():()", 8), "8 bytes");
    assert_eq!(plan("(1,1):(7,9)", "(1,1):(0,3)", 4), "4 bytes");
    assert_eq!(plan("(4,0,3):(0,0,0)", "(4,0,3):(1,4,4)", 4), "nothing");
    // The source may repeat itself.
    assert_eq!(
        plan("(4,3):(1,4)", "(4,3):(0,1)", 4),
        "4 bytes; 3 (dst 16, src 4) fast in src; 4 (dst 4, src 0) fast in dst"
    );
    // Backwards on both sides is forwards.
    assert_eq!(plan("8:-1", "8:-1", 4), "32 bytes from (dst -28, src -28)");
    assert_eq!(plan("8:-1", "8:1", 4), "4 bytes from (dst -28, src 28); 8 (dst 4, src -4) fast in dst");
    // Another nesting of the same modes.
    assert_eq!(
        plan("(24,2):(1,24)", "((4,6),2):((6,1),24)", 1),
        "1 byte; 2 (dst 24, src 24); 6 (dst 4, src 1) fast in src; 4 (dst 1, src 6) fast in dst"
    );
    assert_eq!(plan("((2,2),6):((1,2),4)", "(4,6):(1,4)", 1), "8 bytes; 3 (dst 8, src 8) fast in both");
}

#[test]
fn refusals() {
    let refused = |dst, src, bytes| plan(dst, src, bytes);
    assert_eq!(
        refused("(4,3):(1,0)", "(4,3):(1,4)", 4),
        "NotInjective copy_plan: mode 1: stride 0 puts 3 elements of the destination at one offset"
    );
    assert_eq!(
        refused("(4,(3,2)):(1,(4,8))", "(4,6):(1,4)", 4),
        "NotInjective copy_plan: mode 1.1: two elements of the destination have one offset: 2:8 falls among the 12 \
        offsets that the modes of smaller strides span"
    );
    assert_eq!(
        refused("(2,3,5):(1,2,6)", "(5,3,2):(1,5,15)", 4),
        "Size copy_plan: mode 0: 5 elements in the source and 2 in the destination"
    );
    assert_eq!(
        refused("(2,3):(1,2)", "(2,3,1):(1,2,0)", 4),
        "Profile copy_plan: the source (2,3,1) has 3 modes, the destination (2,3) has 2 modes"
    );
    assert_eq!(
        refused("((4,3),2):((1,4),12)", "((6,2),2):((1,6),12)", 4),
        "Divisibility copy_plan: mode 0: the source counts by 6 and the destination by 4, no multiples"
    );
    assert_eq!(refused("4:1@0", "4:1", 4), "Kind copy_plan: stride 1@0 is a coordinate, not a distance in memory");
    assert_eq!(refused("4:1", "4:1", 0), "Domain copy_plan: an element has 0 bytes");
    assert_eq!(
        refused("(4,2):(1,9223372036854775807)", "(4,2):(1,4)", 4),
        "Overflow arithmetic: 9223372036854775807 * 4 does not fit 64 bits"
    );
    // Interleaved without overlap.
    assert_eq!(refused("(2,2):(2,3)", "(2,2):(1,2)", 1), "1 byte; 2 (dst 3, src 2); 2 (dst 2, src 1) fast in src");
}

#[test]
fn symbols() {
    let n = |k: u64, name: &str| Int::var(k, name, 1, 0, None);
    let (a, b, c) = (n(1, "A"), n(2, "B"), n(3, "C"));
    let cx = Cx::default();
    let shape = Tuple::Node([&a, &b, &c].map(|x| Tuple::Leaf(x.clone())).to_vec());
    let of = |strides: [Int; 3]| {
        let stride = Tuple::Node(strides.into_iter().map(|d| Tuple::Leaf(Stride::int(d))).collect());
        Layout::new(shape.clone(), stride).unwrap()
    };
    let rows = of([b.mul(&c).unwrap(), c.clone(), Int::ONE]);
    let columns = of([Int::ONE, a.clone(), a.mul(&b).unwrap()]);
    let text = |d: &Layout, s: &Layout, n| copy_plan(&cx, d, s, n, n).unwrap().to_string();
    assert_eq!(text(&rows, &rows, 4), "4 bytes; A*B*C (dst 4, src 4) fast in both");
    assert_eq!(
        text(&columns, &rows, 4),
        "4 bytes; B (dst 4*A, src 4*C); C (dst 4*A*B, src 4) fast in src; A (dst 4, src 4*B*C) fast in dst"
    );
    // Multiples that are known widen the unit.
    let mut cx = Cx::default();
    cx.assume(Condition::Divides(Int::Const(8), c.clone()));
    let p = copy_plan(&cx, &rows, &rows, 4, 4).unwrap();
    assert_eq!((p.unit, p.align, p.axes.len()), (32, 4, 1));
    // An extent that may be more than 1 at stride 0.
    let e = copy_plan(&cx, &of([Int::ZERO, c.clone(), Int::ONE]), &rows, 4, 4).unwrap_err();
    assert_eq!((e.kind, e.condition), (ErrorKind::Undecided, Some(Condition::Le(a, Int::ONE))));
}

/// The coordinates of a shape, all extents known, leftmost fastest.
fn each_coord(shape: &IntTuple, mut f: impl FnMut(&[i64])) {
    let extents: Vec<i64> = shape.leaves().into_iter().filter_map(Int::as_const).collect();
    let mut at = vec![0; extents.len()];
    for i in 0..extents.iter().product() {
        let mut rest: i64 = i;
        for (x, n) in at.iter_mut().zip(&extents) {
            (*x, rest) = (rest % n, rest / n);
        }
        f(&at);
    }
}

/// All pairs of bytes that a nest visits, the destination's first.
fn visited(plan: &CopyPlan) -> BTreeMap<i64, i64> {
    let mut pairs = BTreeMap::new();
    if plan.empty {
        return pairs;
    }
    let number = |n: &Int| n.as_const().unwrap();
    let shape = Tuple::Node(plan.axes.iter().map(|a| Tuple::Leaf(a.extent.clone())).collect());
    each_coord(&shape, |at| {
        let (mut d, mut s) = (number(&plan.dst_start), number(&plan.src_start));
        for (x, a) in at.iter().zip(&plan.axes) {
            d += x * number(&a.dst);
            s += x * number(&a.src);
        }
        for byte in 0..i64::from(plan.unit) {
            assert_eq!(pairs.insert(d + byte, s + byte), None, "a byte is written twice");
        }
    });
    pairs
}

fn naive(dst: &Layout, src: &Layout, element: i64) -> BTreeMap<i64, i64> {
    let strides = |l: &Layout| -> Vec<i64> { l.leaves().iter().map(|(_, d)| d.scale.as_const().unwrap()).collect() };
    let (d, s) = (strides(dst), strides(src));
    let mut pairs = BTreeMap::new();
    each_coord(dst.shape(), |at| {
        let sum = |strides: &[i64]| at.iter().zip(strides).map(|(x, d)| x * d).sum::<i64>() * element;
        for byte in 0..element {
            pairs.insert(sum(&d) + byte, sum(&s) + byte);
        }
    });
    pairs
}

/// Extents of 0 to 8 modes; both sides' order of the modes, gaps between them and directions; bytes.
fn copies() -> impl Strategy<Value = (Layout, Layout, u32)> {
    let side = |rank| {
        let order = Just((0..rank).collect::<Vec<usize>>()).prop_shuffle();
        (order, proptest::collection::vec((0..3i64, prop::bool::weighted(0.15)), rank))
    };
    (0..=8usize)
        .prop_flat_map(move |rank| {
            let most = [0i64, 40, 12, 7, 5, 4, 3, 3, 2][rank];
            (proptest::collection::vec(0..=most, rank), side(rank), side(rank), 0..6usize)
        })
        .prop_map(|(mut extents, dst, src, bytes): (Vec<i64>, _, _, usize)| {
            // Few empty ones.
            let zeros = extents.iter().filter(|n| **n == 0).count();
            if zeros > 1 {
                extents.iter_mut().for_each(|n| *n = (*n).max(1));
            }
            let strides = |(order, gaps): (Vec<usize>, Vec<(i64, bool)>)| {
                let mut strides = vec![0; extents.len()];
                let mut next = 1;
                for k in order {
                    let (gap, back) = gaps[k];
                    let step = if gap == 2 { next + 1 } else { next };
                    strides[k] = if back { -step } else { step };
                    next = step * extents[k].max(1);
                }
                strides
            };
            let (d, s) = (strides(dst), strides(src));
            let of = |strides: Vec<i64>| {
                let shape = Tuple::Node(extents.iter().map(|&n| Tuple::Leaf(Int::Const(n))).collect());
                let stride = Tuple::Node(strides.into_iter().map(|d| Tuple::Leaf(Stride::from(d))).collect());
                Layout::new(shape, stride).unwrap()
            };
            (of(d), of(s), [1, 2, 4, 8, 3, 16][bytes])
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ptoc_tests_budget::cases(130, 400), ..ProptestConfig::default() })]

    #[test]
    fn same_pairs_as_the_naive_nest((dst, src, bytes) in copies()) {
        let plan = copy_plan(&Cx::default(), &dst, &src, bytes, bytes).unwrap();
        prop_assert_eq!(visited(&plan), naive(&dst, &src, bytes.into()), "{} from {}: {}", dst, src, plan);
        // The innermost loop walks unit by unit on a side that has such a loop.
        let unit = Int::Const(plan.unit.into());
        if plan.axes.iter().any(|a| a.dst == unit) {
            prop_assert_eq!(&plan.axes.last().unwrap().dst, &unit);
        } else if plan.axes.iter().any(|a| a.src == unit) {
            prop_assert_eq!(&plan.axes.last().unwrap().src, &unit);
        }
        // No two loops could be one.
        for a in &plan.axes {
            for b in &plan.axes {
                let goes_on = |x: &Int, y: &Int| a.extent.mul(x).unwrap() == *y;
                prop_assert!(!(goes_on(&a.dst, &b.dst) && goes_on(&a.src, &b.src)), "{}", plan);
            }
        }
    }

    /// The exact answer on small layouts whose modes overlap or interleave.
    #[test]
    fn injective_as_by_counting(modes in proptest::collection::vec((1..5i64, -9..10i64), 0..5)) {
        let shape = Tuple::Node(modes.iter().map(|m| Tuple::Leaf(Int::Const(m.0))).collect());
        let stride = Tuple::Node(modes.iter().map(|m| Tuple::Leaf(Stride::from(m.1))).collect());
        let l = Layout::new(shape.clone(), stride).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        let mut apart = true;
        each_coord(&shape, |at| {
            apart &= seen.insert(at.iter().zip(&modes).map(|(x, m)| x * m.1).sum::<i64>());
        });
        let cx = Cx::default();
        prop_assert_eq!(crate::ops::inject::is_injective(&cx, &l).unwrap(), apart);
        let onto = seen.iter().copied().eq(0..modes.iter().map(|m| m.0).product());
        prop_assert_eq!(crate::ops::inject::is_bijection(&cx, &l).unwrap(), onto && apart);
    }
}

#[test]
fn modes_factored_in_other_ways() {
    let cx = Cx::default();
    let sides = [
        ("(24,6):(1,24)", "((4,6),6):((36,6),1)"),
        ("((2,12),6):((6,12),1)", "((4,3,2),(3,2)):((1,24,4),(72,8))"),
        ("(((2,2),(3,2)),(2,3)):(((1,100),(2,6)),(12,200))", "((4,6),6):((0,1),6)"),
        ("((24,1),(1,6)):((1,7),(9,24))", "(24,(6,1)):(-1,(24,0))"),
    ];
    for (dst, src) in sides {
        let (dst, src) = (layout(dst), layout(src));
        let plan = copy_plan(&cx, &dst, &src, 2, 2).unwrap();
        let points = |l: &Layout| crate::Points::of_layout(l).unwrap();
        let (d, s) = (points(&dst), points(&src));
        // Indices count the modes of both sides alike.
        let want: BTreeMap<i64, i64> = (0..d.size())
            .flat_map(|i| [0, 1].map(|byte| (d.offset_at(i).unwrap() * 2 + byte, s.offset_at(i).unwrap() * 2 + byte)))
            .collect();
        assert_eq!(visited(&plan), want, "{dst} {src}: {plan}");
    }
}

use super::*;
use crate::{Env, eval_expr, parse_value};

fn blocks(dst: &str, src: &str, most: i64) -> String {
    match eval_expr(&Cx::default(), &Env::default(), &format!("copy_blocks({dst}, {src}, {most})")) {
        Ok(v) => v.to_string(),
        Err(e) => format!("error: {e}"),
    }
}

#[test]
fn both_sides_are_covered() {
    // A transposition: a square of both fast axes.
    assert_eq!(blocks("(100,200):(1,100)", "(100,200):(200,1)", 4096), "(<_,_>,(0,1),<64,64>)");
    // The pixels of a plane are one axis on both sides, and channels the other fast one.
    let (nchw, nhwc) = ("(2,37,9,11):(3663,99,11,1)", "(2,37,9,11):(3663,1,407,37)");
    assert_eq!(blocks(nhwc, nchw, 4096), "(<_,_,_,_>,(1,(3,2),0),<37,99,1>)");
    assert_eq!(blocks(nhwc, nchw, 512), "(<_,_,_,_>,(1,(3,2),0),<32,16,1>)");
    // Rows of the destination are whole lines, so the rest of the block goes along the source, in equal parts.
    let (src, dst) = ("(32,48,64,40):(122880,2560,40,1)", "(32,48,64,40):(1,32,1536,98304)");
    assert_eq!(blocks(dst, src, 16384), "(<_,_,_,_>,(0,3,2,1),<32,40,8,1>)");
    assert_eq!(blocks("(32,48,64,40):(1920,1,61440,48)", src, 16384), "(<_,_,_,_>,(1,3,2,0),<48,40,8,1>)");
    assert_eq!(blocks("(32,48,64,40):(2560,81920,1,64)", src, 16384), "(<_,_,_,_>,(2,3,1,0),<64,40,4,1>)");
    assert_eq!(blocks("(100,400):(1,100)", "(100,400):(400,1)", 16384), "(<_,_>,(0,1),<64,256>)");
    // In a row on both sides: one axis, and as much of it as may be.
    assert_eq!(blocks("(8,9,100):(900,100,1)", "(8,9,100):(900,100,1)", 4096), "(<_,_,_>,((2,1,0)),<4096>)");
    // A repeated source.
    assert_eq!(blocks("(64,50):(1,64)", "(64,50):(0,1)", 256), "(<_,_>,(0,1),<16,16>)");
    // Nothing but rows that are apart on both sides.
    assert_eq!(blocks("(5,7):(100,3)", "(5,7):(70,2)", 16), "(<_,_>,(1,0),<7,2>)");
}

#[test]
fn modes_are_refined() {
    let nested = blocks("((4,6),5):((1,20),4)", "((12,2),5):((5,60),1)", 64);
    assert_eq!(nested, "(<(4,3,2):(1,4,12),_>,(0,3,(1,2)),<4,5,2>)");
    assert_eq!(blocks("(1,(1,1),6):(7,(8,9),1)", "(1,1,6):(0,0,1)", 64), "(<_,1:0,_>,((2,0,1)),<6>)");
    assert_eq!(blocks("(1,1):(7,9)", "(1,1):(0,0)", 64), "(<_,_>,((0,1)),<1>)");
    assert_eq!(blocks("8:1", "8:2", 64), "(<_>,(0),<8>)");
    assert_eq!(blocks("():()", "():()", 64), "(<>,(),<>)");
    assert_eq!(blocks("(4,0):(1,4)", "(4,0):(0,1)", 64), "(<_,_>,(0,1),<4,1>)");
}

#[test]
fn what_is_no_copy() {
    for (dst, src) in [("(4,5):(1,4)", "(4,6):(1,4)"), ("(4,5):(1,4)", "20:1"), ("((4,6)):((1,4))", "((3,8)):((1,3))")]
    {
        let e = blocks(dst, src, 64);
        assert!(e.contains("copy_blocks"), "{e}");
    }
    assert!(blocks("4:1", "4:1", 0).contains("a block of 0 elements"));
}

#[test]
fn symbols_are_long() {
    let n = |id, name: &str| Int::var(id, name, 1, 0, None);
    let (a, b, c) = (n(1, "A"), n(2, "B"), n(3, "C"));
    let layout = |strides: [Int; 3]| {
        let leaves = [&a, &b, &c].into_iter().zip(strides).map(|(n, d)| Layout::leaf(n.clone(), Stride::int(d)));
        Layout::of_modes(leaves.collect())
    };
    let row = layout([b.mul(&c).unwrap(), c.clone(), Int::ONE]);
    let col = layout([Int::ONE, a.clone(), a.mul(&b).unwrap()]);
    let plan = copy_blocks(&Cx::default(), &col, &row, 4096).unwrap();
    assert_eq!(plan.value().to_string(), "(<_,_,_>,(0,2,1),<64,64,1>)");
    let same = copy_blocks(&Cx::default(), &row, &row, 4096).unwrap();
    assert_eq!(same.value().to_string(), "(<_,_,_>,((2,1,0)),<4096>)");
}

/// Random permutations with gaps: what the module's description promises.
#[test]
fn boxes_are_bounded_and_cut_little() {
    let mut state = 7u64;
    let mut random = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    for _ in 0..500 {
        let rank = random(6) as usize;
        let extents: Vec<i64> = (0..rank).map(|_| [1, 2, 3, 5, 7, 8, 31, 97][random(8) as usize]).collect();
        let mut side = || {
            let mut order: Vec<usize> = (0..rank).collect();
            (0..rank).for_each(|k| order.swap(k, random(rank as u64) as usize));
            let mut strides = vec![0; rank];
            let mut step = 1;
            for k in order {
                strides[k] = step;
                step *= extents[k] + random(2) as i64;
            }
            let text = |v: &[i64]| v.iter().map(i64::to_string).collect::<Vec<_>>().join(",");
            format!("({}):({})", text(&extents), text(&strides))
        };
        let (dst, src) = (side(), side());
        let parse = |t: &str| match parse_value(t).unwrap() {
            Value::Layout(l) => l,
            v => panic!("{v}"),
        };
        let most = 1 << random(13);
        let plan = copy_blocks(&Cx::default(), &parse(&dst), &parse(&src), most).unwrap();
        assert!(plan.block.iter().product::<i64>() <= most, "{dst} {src} {most}: {plan:?}");
        let extent = |g: &Vec<usize>| g.iter().map(|k| extents[*k]).product::<i64>();
        let pairs: Vec<(i64, i64)> = plan.order.iter().map(extent).zip(plan.block.iter().copied()).collect();
        assert!(pairs.iter().filter(|(n, b)| *b > 1 && b < n).count() <= 2, "{dst} {src} {most}: {plan:?}");
        let elements: i64 = extents.iter().product();
        assert!(pairs.iter().map(|(n, b)| (n / b) * b).product::<i64>() <= elements);
        // The axis of stride 1 of either side, if it has one, is a block's.
        for side in [&dst, &src] {
            let layout = parse(side);
            let fast = layout.leaves().iter().position(|(n, d)| !n.is(1) && d.scale.is(1));
            let group = fast.and_then(|k| plan.order.iter().position(|g| g.contains(&k)));
            assert!(most < 4 || group.is_none_or(|g| plan.block[g] > 1), "{dst} {src} {most}: {plan:?}");
        }
        let mut named: Vec<usize> = plan.order.concat();
        named.sort_unstable();
        assert_eq!(named, (0..rank).collect::<Vec<_>>(), "{dst} {src}");
        // Something is gained on both sides: a block is not a few elements where it could be many.
        assert!(
            most < 16 || plan.block.iter().product::<i64>() >= elements.min(most / 8),
            "{dst} {src} {most}: {plan:?}"
        );
    }
}

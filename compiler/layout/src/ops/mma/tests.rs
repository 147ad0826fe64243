use super::*;
use crate::{Env, Points, eval_expr, parse_value};
use std::collections::BTreeSet;

fn layout(text: &str) -> Layout {
    match parse_value(text).unwrap() {
        Value::Layout(l) => l,
        v => panic!("{v}"),
    }
}

fn atom(name: &str, shape: [i64; 3], thr: &str, [a, b, c]: [&str; 3]) -> MmaAtom {
    let types = ["f32", "f16", "f16", "f32"].map(str::to_string);
    MmaAtom { name: name.into(), shape, types, thr: layout(thr), a: layout(a), b: layout(b), c: layout(c) }
}

fn ampere() -> MmaAtom {
    let c = "((4,8),(2,2)):((32,1),(16,8))";
    let a = "((4,8),(2,2,2)):((32,1),(16,8,128))";
    atom("AMPERE", [16, 8, 16], "32:1", [a, "((4,8),(2,2)):((16,1),(8,64))", c])
}

fn volta() -> MmaAtom {
    let c = "((2,2,2),(2,2,2)):((1,16,4),(8,2,32))";
    atom("VOLTA", [8, 8, 4], "(4,2):(1,16)", ["(8,4):(1,8)", "((4,2),4):((8,4),1)", c])
}

/// Four threads, of which each two share a row of A and a row of B.
fn shared() -> MmaAtom {
    atom("SHARED", [2, 2, 1], "4:1", ["((2,2),1):((1,0),0)", "((2,2),1):((0,1),0)", "(4,1):(1,0)"])
}

fn fma() -> MmaAtom {
    atom("FMA", [1, 1, 1], "1:0", ["(1,1):(0,0)"; 3])
}

fn env() -> Env {
    let mut env = Env::new();
    for atom in [ampere(), volta(), shared(), fma()] {
        env.insert(atom.name.clone(), Value::Atom(Arc::new(atom)));
    }
    MmaAtom::operands().for_each(|(name, value)| env.insert(name, value));
    env
}

fn eval(text: &str) -> String {
    match eval_expr(&Cx::default(), &env(), text) {
        Ok(v) => v.to_string(),
        Err(e) => e.located(text),
    }
}

fn mma(text: &str) -> TiledMma {
    match eval_expr(&Cx::default(), &env(), text) {
        Ok(Value::Mma(m)) => m.as_ref().clone(),
        Ok(v) => panic!("{v}"),
        Err(e) => panic!("{}", e.located(text)),
    }
}

/// The product as the atoms compute it from the threads' values, on matrices of `tiles` tiles in M, N and K.
fn product(mma: &TiledMma, tiles: [i64; 3]) -> (Vec<i64>, Vec<i64>) {
    let cx = Cx::default();
    let extent: Vec<i64> = (0..3).map(|k| mma.tile_size(k).unwrap() * tiles[k]).collect();
    let entry = |i: i64| (i * 37 + 11) % 23 - 7;
    let matrix = |operand: Operand| {
        let [x, y] = operand.modes();
        super::super::compact_right(&IntTuple::flat(&[extent[x], extent[y]])).unwrap()
    };
    let vmnk = Points::of_layout(&mma.thr_layout_vmnk().unwrap()).unwrap();
    let inner = mma.atom.thr.size().unwrap().as_const().unwrap();
    let sides: Vec<i64> = (0..3).map(|k| mma.side(k).unwrap()).collect();
    let part = |operand: Operand, thread: i64| {
        let window = mma.partition_of(&cx, operand, &matrix(operand), thread).unwrap();
        let sizes = window.layout.modes().iter().map(|m| m.size().unwrap().as_const().unwrap()).collect::<Vec<_>>();
        (Points::of(&Value::Window(window)).unwrap(), sizes)
    };
    let mut c = vec![0i64; (extent[0] * extent[1]) as usize];
    for block in 0..sides.iter().product() {
        // Machine threads of this atom, in the atom's order.
        let threads: Vec<i64> = (0..inner).map(|t| vmnk.offset_at(t + inner * block).unwrap()).collect();
        let [a, b, d] = Operand::ALL.map(|operand| threads.iter().map(|&t| part(operand, t)).collect::<Vec<_>>());
        let (rest_m, rest_n, rest_k) = (a[0].1[1], b[0].1[1], a[0].1[2]);
        assert_eq!((rest_m, rest_n, rest_k), (d[0].1[1], d[0].1[2], b[0].1[2]));
        // The elements of the operand's atom at a repetition: where they lie in memory.
        let gather = |operand: Operand, parts: &[(Points, Vec<i64>)], i: i64, j: i64| {
            let [x, y] = operand.modes();
            let tv = Points::of_layout(mma.atom.tv(operand)).unwrap();
            let mut at = vec![None; (mma.atom.shape[x] * mma.atom.shape[y]) as usize];
            for (t, (points, sizes)) in parts.iter().enumerate() {
                for v in 0..sizes[0] {
                    let element = tv.offset_at(t as i64 + inner * v).unwrap() as usize;
                    let lies = points.offset_at(v + sizes[0] * (i + sizes[1] * j)).unwrap();
                    assert!(at[element].is_none_or(|known| known == lies), "threads disagree about an element");
                    at[element] = Some(lies);
                }
            }
            at.into_iter().map(|n| n.unwrap()).collect::<Vec<i64>>()
        };
        for (i, j, k) in (0..rest_m).flat_map(|i| (0..rest_n).flat_map(move |j| (0..rest_k).map(move |k| (i, j, k)))) {
            let (a, b, d) = (gather(Operand::A, &a, i, k), gather(Operand::B, &b, j, k), gather(Operand::C, &d, i, j));
            let [m, n, kk] = mma.atom.shape;
            for (x, y, z) in (0..m).flat_map(|x| (0..n).flat_map(move |y| (0..kk).map(move |z| (x, y, z)))) {
                let (p, q) = (entry(a[(x + z * m) as usize]), entry(b[(y + z * n) as usize] + 5));
                c[d[(x + y * m) as usize] as usize] += p * q;
            }
        }
    }
    let mut naive = vec![0i64; c.len()];
    for x in 0..extent[0] {
        for y in 0..extent[1] {
            for z in 0..extent[2] {
                naive[(x * extent[1] + y) as usize] += entry(x * extent[2] + z) * entry(y * extent[2] + z + 5);
            }
        }
    }
    (c, naive)
}

#[test]
fn products_equal_the_naive_ones() {
    for (text, tiles) in [
        ("tiled_mma(AMPERE)", [1, 1, 1]),
        ("tiled_mma(AMPERE, (2,2,1), (32,32,16))", [2, 1, 2]),
        ("tiled_mma(AMPERE, (2,1,2), _)", [1, 2, 1]),
        ("tiled_mma(VOLTA, (2,2,1), (32,32,4))", [1, 1, 2]),
        ("tiled_mma(VOLTA, (1,2,1):(1,1,2), (_,_,8))", [1, 1, 1]),
        // Rows in another order: each thread's values of two atoms are neighbours.
        ("tiled_mma(VOLTA, (2,1,1), <(4,4,2):(1,8,4),_,_>)", [2, 1, 1]),
        ("tiled_mma(SHARED, (2,2,2):(4,1,2), (8,4,4))", [1, 2, 3]),
        ("tiled_mma(FMA, (4,2,1):(2,1,1), (4,4,3))", [2, 2, 1]),
    ] {
        let (got, want) = product(&mma(text), tiles);
        assert_eq!(got, want, "{text}");
    }
}

#[test]
fn what_a_tiling_is() {
    // Atom 8x8x4, atoms 2x2, tiler 32x32x4 are 16 atoms.
    let text = "tiled_mma(VOLTA, (2,2,1), (32,32,4))";
    let m = mma(text);
    assert_eq!((m.atom_count().unwrap(), m.thread_count().unwrap()), (16, 32));
    assert_eq!(eval(&format!("thr_layout_vmnk({text})")), "((4,2),2,2,1):((1,16),4,8,0)");
    assert_eq!(eval(&format!("thr_vmnk({text}, 29)")), "(5,1,1,0)");
    assert_eq!(eval(&format!("tile_size({text}, 1)")), "32");
    assert_eq!(eval(&format!("fragment_C({text}, (64, 32))")), "(32,64)");
    assert_eq!(
        eval(&format!("partition_C({text}, (32,32):(32,1), 29)")),
        eval("mma_partition(VOLTA, (2,2,1), (32,32,4), C, (32,32):(32,1), 29)")
    );
    // Behind a swizzle and from a start on, the layout is partitioned all the same.
    assert_eq!(
        eval(&format!("partition_B({text}, Sw<2,2,3> o 0 o (32,4):(4,1), 1)")),
        "Sw<2,2,3> o 1 o (4,2,1):(4,64,0)"
    );
    assert_eq!(eval(&format!("partition_B({text}, 100 o (32,4):(4,1), 1)")), "101 o (4,2,1):(4,64,0)");
}

/// Every (thread, value) of each operand reaches each element of the tile; those of C once for each atom in K.
#[test]
fn thread_value_layouts_cover_the_tile() {
    // Atoms side by side in K hold the same elements of C.
    assert_eq!(
        eval("tv_C(tiled_mma(VOLTA, (1,2,2)))"),
        "(((2,2),(2,2),2),((2,2,2),(1,1))):(((1,16),(64,0),4),((8,2,32),(0,0)))"
    );
    for text in
        ["tiled_mma(AMPERE, (2,2,1), (32,32,16))", "tiled_mma(VOLTA, (2,2,1), (32,32,4))", "tiled_mma(SHARED, (2,1,2))"]
    {
        let m = mma(text);
        for operand in Operand::ALL {
            let [x, y] = operand.modes();
            let points = Points::of_layout(&m.tv(operand).unwrap()).unwrap();
            let size = m.tile_size(x).unwrap() * m.tile_size(y).unwrap();
            let reached: BTreeSet<i64> = (0..points.size()).map(|i| points.offset_at(i).unwrap()).collect();
            assert!(reached.into_iter().eq(0..size), "{text} {operand:?}");
            if operand == Operand::C {
                assert_eq!(points.size(), size * m.side(2).unwrap(), "{text}");
            }
        }
    }
}

#[test]
fn refusals() {
    // A tiler that is no multiple names mode and numbers.
    assert_eq!(
        eval("tiled_mma(VOLTA, (2,2,1), (40,32,4))"),
        "column 28: tiled_mma: mode 0: tiler 40 in mode M is no multiple of 8 * 2 = 16; 32 or 48 would fit"
    );
    assert_eq!(
        eval("tiled_mma(AMPERE, (1,2,1), (16,8,16))"),
        "column 32: tiled_mma: mode 1: tiler 8 in mode N is no multiple of 8 * 2 = 16; 16 would fit"
    );
    for (text, part) in [
        (
            "tiled_mma(VOLTA, (1,3,1))",
            "leave gaps among the threads ((4,2),1,3,1):((1,16),0,4,0): only the first 12 of 28 have a place in order",
        ),
        ("tiled_mma(AMPERE, (2,2))", "the atoms (2,2):(1,2) have 2 modes, not three"),
        (
            "tiled_mma(AMPERE, (2,2,1):(1,1,1))",
            "(2,2,1):(1,1,1) does not number the 4 atoms 0 to 3, each once; (2,2,1):(1,2,0) does",
        ),
        ("tiled_mma(AMPERE, (2,2,0))", "is empty"),
        ("tiled_mma(AMPERE, (2,2,1), (32,32))", "the tiler has 2 entries, not three"),
        ("tiled_mma(AMPERE, (2,2,1), <32:2,_,_>)", "tiler 32:2 in mode M is no order of the elements 0 to 31"),
        ("tiled_mma(AMPERE, (2,2,1), <<32,1>,_,_>)", "tiler <32,1> in mode M has modes of its own"),
        ("tiled_mma(AMPERE, (2,2,1), (0,_,_))", "tiler 0 in mode M is no multiple of 16 * 2 = 32"),
        ("tiled_mma(AMPERE, (4611686018427387904,2,1))", "does not fit 64 bits"),
        ("tiled_mma(32:1)", "argument 1 must be an MMA atom, not a layout"),
        ("tile_size(tiled_mma(AMPERE), 3)", "there is no mode 3; M is mode 0, N is 1, K is 2"),
        ("thr_vmnk(tiled_mma(AMPERE), 32)", "thread 32 is not one of the 32 threads, 0 to 31"),
        ("partition_C(tiled_mma(AMPERE), 128:1)", "128:1 has 1 mode, C is (M,N)"),
        ("partition_C(tiled_mma(AMPERE), (16,8):(8,1), 40)", "thread 40 is not one of the 32 threads"),
        ("fragment_C(tiled_mma(AMPERE), (24,8))", "extent 24 in mode M is no multiple of the tiler's 16"),
        ("mma_tv(AMPERE, (1,1,1), (_,_,_), (1,1,1))", "argument 4 must be A, B or C, not a tuple"),
    ] {
        let got = eval(text);
        assert!(got.starts_with("column ") && got.contains(part), "{text}: {got}");
    }
}

#[test]
fn symbolic_matrices() {
    let m = mma("tiled_mma(AMPERE, (2,2,1), (32,32,16))");
    let (rows, stride) = (Int::var(1, "M", 32, 0, None), Int::var(2, "N", 32, 0, None));
    let shape = Tuple::Node(vec![rows.into(), stride.clone().into()]);
    let strides = Tuple::Node(vec![Tuple::Leaf(Stride::int(stride)), Tuple::Leaf(Stride::from(1))]);
    let c = Layout::new(shape, strides).unwrap();
    assert_eq!(
        m.partition(&Cx::default(), Operand::C, &c).unwrap().to_string(),
        "((4,8,2,2),((2,2),M/32,2*(N/32))):((2,N,16*N,8),((1,8*N),32*N,16))"
    );
}

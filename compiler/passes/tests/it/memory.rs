//! Memory: matrix products, views, windows, tile arrays, addresses of every kind, overlap, gathers.

use crate::harness::*;
use ptoc_ir::tile::{AddrKind, InstAttrs, Op, Operand, TensorDir, TileRef, Ty, Value, ViewRef};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, Loc, Oob, Order, RoundMode, TileType};
use ptoc_tensor::DType;

/// C = start + A B over blocks of K, with tails in every dimension; `start` is zero, a bias, or what C holds.
fn gemm(ab: DType, acc: DType, bias: bool, pipelined: u32) -> ptoc_ir::tile::Kernel {
    let mut k = K::new("gemm");
    let span = k.span();
    let (m, n, depth) = (k.dim("M"), k.dim("N"), k.dim("K"));
    let a = k.tensor("A", ab, TensorDir::In, &[m, depth]);
    let b = k.tensor("B", ab, TensorDir::In, &[depth, n]);
    let one = k.c(1);
    let row = k.tensor("bias", acc, TensorDir::In, &[one, n]);
    let c = k.tensor("C", acc, TensorDir::Out, &[m, n]);
    let (bm, bn, bk, zero) = (k.c(16), k.c(32), k.c(32), k.c(0));
    let (gm, gn) = (k.b.ceil_div(m, bm, span), k.b.ceil_div(n, bn, span));
    let (i, j) = (k.b.grid_dim("i", gm, span), k.b.grid_dim("j", gn, span));
    k.b.begin_body();
    let (i0, j0) = (k.b.mul(i, bm, span), k.b.mul(j, bn, span));
    let len = |k: &mut K, total, start, block| {
        let rest = k.b.sub(total, start, at(1));
        k.b.binary(BinOp::Min, rest, block, at(1))
    };
    let (ml, nl) = (len(&mut k, m, i0, bm), len(&mut k, n, j0, bn));
    let d = k.tile("acc", Loc::Acc, acc, (16, 32), Order::Nd);
    let dr = k.r(d, (ml, nl));
    let bias_tile = bias.then(|| {
        let stage = k.tile("bias1", Loc::Mat, acc, (1, 32), Order::Nd);
        let tile = k.tile("bias0", Loc::Bias, acc, (1, 32), Order::Nd);
        let (stage, tile) = (k.r(stage, (one, nl)), k.r(tile, (one, nl)));
        k.load(stage, ViewRef { tensor: row, offset: j0, shape: vec![one, nl], strides: vec![n, one] });
        k.tiles("TMOV", &[tile, stage]);
        tile
    });
    let steps = k.b.ceil_div(depth, bk, span);
    let label = k.b.label(span);
    let kk = k.b.new_value(Ty::Index, Some("k".into()), span);
    k.b.push_region();
    k.b.define_here(kk);
    let k0 = k.b.mul(kk, bk, span);
    let kl = len(&mut k, depth, k0, bk);
    let ty = |loc, rows, cols| TileType { loc, dtype: ab, rows, cols, order: Order::Nd, layout: None };
    let a1 = k.place("a1", ty(Loc::Mat, 16, 32), AddrKind::Auto, 1, pipelined);
    let b1 = k.place("b1", ty(Loc::Mat, 32, 32), AddrKind::Auto, 1, pipelined);
    let a0 = k.place("a0", ty(Loc::Left, 16, 32), AddrKind::Auto, 1, pipelined);
    let b0 = k.place("b0", ty(Loc::Right, 32, 32), AddrKind::Auto, 1, pipelined);
    let (a1, a0) = (k.r(a1, (ml, kl)), k.r(a0, (ml, kl)));
    let (b1, b0) = (k.r(b1, (kl, nl)), k.r(b0, (kl, nl)));
    let at_a = k.b.mul(i0, depth, span);
    let at_a = k.b.add(at_a, k0, span);
    k.load(a1, ViewRef { tensor: a, offset: at_a, shape: vec![ml, kl], strides: vec![depth, one] });
    let at_b = k.b.mul(k0, n, span);
    let at_b = k.b.add(at_b, j0, span);
    k.load(b1, ViewRef { tensor: b, offset: at_b, shape: vec![kl, nl], strides: vec![n, one] });
    k.tiles("TMOV", &[a0, a1]);
    k.tiles("TMOV", &[b0, b1]);
    let first = k.b.compare(CmpOp::Eq, kk, zero, span);
    k.b.push_region();
    match bias_tile {
        Some(t) => k.tiles("TMATMUL_BIAS", &[dr, a0, b0, t]),
        None => k.tiles("TMATMUL", &[dr, a0, b0]),
    }
    let then = k.b.pop_region();
    k.b.push_region();
    k.tiles("TMATMUL_ACC", &[dr, dr, a0, b0]);
    let els = k.b.pop_region();
    k.b.emit(Op::If(Box::new(ptoc_ir::tile::If { cond: first, then, els })), span);
    let body = k.b.pop_region();
    let f = ptoc_ir::tile::For { label, index: kk, lo: zero, hi: steps, stages: pipelined, body };
    k.b.emit(Op::For(Box::new(f)), span);
    let at_c = k.b.mul(i0, n, span);
    let at_c = k.b.add(at_c, j0, span);
    k.store(ViewRef { tensor: c, offset: at_c, shape: vec![ml, nl], strides: vec![n, one] }, dr);
    k.finish()
}

fn gemm_args(ab: DType, acc: DType, (m, n, k): (u64, u64, u64)) -> Args {
    Args {
        dims: vec![m as i64, n as i64, k as i64],
        scalars: vec![],
        tensors: vec![
            tensor(ab, &[m, k], tame(ab, 1)),
            tensor(ab, &[k, n], tame(ab, 2)),
            tensor(acc, &[1, n], tame(acc, 3)),
            tensor(acc, &[m, n], []),
        ],
    }
}

#[test]
fn matrix_products() {
    let triples = [
        (DType::F16, DType::F32),
        (DType::BF16, DType::F32),
        (DType::F32, DType::F32),
        (DType::I8, DType::I32),
        (DType::F16, DType::F16),
        (DType::F8E4M3, DType::F32),
        (DType::F8E5M2, DType::F32),
    ];
    for (ab, acc) in triples {
        for (bias, stages) in [(false, 1), (true, 2)] {
            let kernel = gemm(ab, acc, bias, stages);
            for shape in [(16, 32, 32), (20, 50, 70), (1, 3, 1), (0, 4, 5)] {
                agree(&kernel, a5(), &gemm_args(ab, acc, shape));
            }
        }
    }
}

#[test]
fn an_empty_reduction_is_a_launch_error() {
    let kernel = gemm(DType::F16, DType::F32, true, 2);
    let prepared = compile(&kernel, a5());
    assert!(prepared.warnings.is_empty(), "{:?}", prepared.warnings);
    let args = gemm_args(DType::F16, DType::F32, (16, 32, 0));
    assert_eq!(run_lowered(&prepared, &args), End::Failed("PA-1041".into()));
    let check = prepared.placed.kernel.checks.values().last().unwrap();
    assert_eq!(check.message, "K = {0} leaves tile `acc` unwritten: the loop over `k` does not run");
    // The interpreter says so as well.
    assert!(matches!(run_interpreter(&kernel, &args), End::Failed(_)));
    assert_eq!(
        run_interpreter(&prepared.placed.kernel, &args),
        End::Failed("PA-1041 K = 0 leaves tile `acc` unwritten: the loop over `k` does not run".into())
    );
}

/// Loads and stores through transposed and strided views, into tiles of both orders and into masks.
#[test]
fn views_with_strides() {
    for dtype in DType::ALL {
        for (order, turned) in [(Order::Nd, false), (Order::Nd, true), (Order::Dn, false), (Order::Dn, true)] {
            if dtype == DType::Bool && order == Order::Dn {
                continue;
            }
            let mut k = K::new("views");
            let (r, c) = (k.dim("R"), k.dim("C"));
            let (one, two, three) = (k.c(1), k.c(2), k.c(3));
            let (x_shape, y_shape) = if turned { ([c, r], [r, c]) } else { ([r, c], [c, r]) };
            let x = k.tensor("x", dtype, TensorDir::In, &x_shape);
            let y = k.tensor("y", dtype, TensorDir::InOut, &y_shape);
            k.b.begin_body();
            let t = k.tile("t", Loc::Vec, dtype, (32, 32), order);
            // Every second row from row 2 on, columns from 3 on.
            let down = k.b.sub(r, two, at(1));
            let rows = k.b.ceil_div(down, two, at(1));
            let cols = k.b.sub(c, three, at(1));
            let (rs, cs) = if turned { (one, r) } else { (c, one) };
            let offset = |k: &mut K, rs, cs| {
                let a = k.b.mul(two, rs, at(1));
                let b = k.b.mul(three, cs, at(1));
                k.b.add(a, b, at(1))
            };
            let from = offset(&mut k, rs, cs);
            let step = k.b.mul(two, rs, at(1));
            let tr = k.r(t, (rows, cols));
            k.load(tr, ViewRef { tensor: x, offset: from, shape: vec![rows, cols], strides: vec![step, cs] });
            let (rs, cs) = if turned { (c, one) } else { (one, r) };
            let to = offset(&mut k, rs, cs);
            let step = k.b.mul(two, rs, at(1));
            k.store(ViewRef { tensor: y, offset: to, shape: vec![rows, cols], strides: vec![step, cs] }, tr);
            let kernel = k.finish();
            let (r, c) = (20u64, 30u64);
            let swap = |a: u64, b: u64| if turned { [b, a] } else { [a, b] };
            let args = Args {
                dims: vec![r as i64, c as i64],
                scalars: vec![],
                tensors: vec![tensor(dtype, &swap(r, c), noise(dtype, 4)), tensor(dtype, &swap(c, r), noise(dtype, 5))],
            };
            agree(&kernel, a5(), &args);
        }
    }
}

fn ty(dtype: DType, rows: u32, cols: u32, order: Order) -> TileType {
    TileType { loc: Loc::Vec, dtype, rows, cols, order, layout: None }
}

/// One instruction on tiles at addresses that overlap: sources are read whole before the destination is written.
#[test]
fn overlapping_operands() {
    let f32s = |rows, cols, order| ty(DType::F32, rows, cols, order);
    let nd = Order::Nd;
    // (instruction, tiles with addresses: destination first). All see the same 8 KiB of loaded data.
    let full = f32s(8, 32, nd);
    let cases: Vec<(&str, Vec<(TileType, u64)>)> = vec![
        ("TADD", vec![(full, 0), (full, 0), (full, 0)]),
        ("TADD", vec![(full, 128), (full, 0), (full, 256)]),
        ("TADD", vec![(full, 0), (full, 32), (full, 992)]),
        ("TMUL", vec![(f32s(8, 32, Order::Dn), 0), (full, 0), (full, 0)]),
        ("TCVT", vec![(ty(DType::F16, 8, 32, nd), 512), (full, 0)]),
        ("TCVT", vec![(ty(DType::F16, 8, 32, nd), 0), (full, 0)]),
        ("TCVT", vec![(ty(DType::I32, 8, 32, nd), 0), (full, 0)]),
        ("TTRANS", vec![(f32s(32, 8, nd), 0), (full, 0)]),
        ("TTRANS", vec![(f32s(32, 8, nd), 64), (full, 0)]),
        ("TROWSUM", vec![(f32s(8, 1, Order::Dn), 96), (full, 0)]),
        ("TROWSUM", vec![(f32s(8, 1, Order::Dn), 0), (full, 0)]),
        ("TCOLSUM", vec![(f32s(1, 32, nd), 0), (full, 0)]),
        ("TCOLMAX", vec![(f32s(1, 32, nd), 128), (full, 0)]),
        ("TROWEXPAND", vec![(full, 0), (f32s(8, 1, Order::Dn), 0)]),
        ("TROWEXPAND", vec![(full, 0), (f32s(8, 1, Order::Dn), 512)]),
        ("TROWEXPANDSUB", vec![(full, 0), (full, 0), (f32s(8, 1, Order::Dn), 0)]),
        ("TCOLEXPANDSUB", vec![(full, 0), (full, 0), (f32s(1, 32, nd), 0)]),
        ("TCOLEXPAND", vec![(full, 0), (f32s(1, 32, nd), 128)]),
        ("TMOV", vec![(full, 64), (full, 0)]),
    ];
    for dynamic in [false, true] {
        for (name, tiles) in &cases {
            let mut k = K::new(name);
            let span = k.span();
            let base = k.b.scalar_param("base", Ty::Index, span);
            let (rows, cols) = (k.c(32), k.c(64));
            let x = k.tensor("x", DType::F32, TensorDir::In, &[rows, cols]);
            let y = k.tensor("y", DType::F32, TensorDir::Out, &[rows, cols]);
            k.b.begin_body();
            let all = k.place("all", f32s(32, 64, nd), AddrKind::Fixed(vec![0]), 1, 1);
            let all = k.r(all, (rows, cols));
            let view = k.view(x, rows, cols);
            k.load(all, view);
            let refs: Vec<TileRef> = tiles
                .iter()
                .map(|(ty, at)| {
                    let addr = if dynamic { AddrKind::Dynamic } else { AddrKind::Fixed(vec![*at]) };
                    let tile = k.place("t", *ty, addr, 1, 1);
                    if dynamic {
                        let at = k.c(*at as i64);
                        let addr = k.b.add(base, at, span);
                        k.b.emit(Op::Assign { tile, element: None, addr }, span);
                    }
                    k.b.whole(tile)
                })
                .collect();
            let round = (*name == "TCVT").then_some(RoundMode::Rint);
            let operands = refs.iter().map(|t| Operand::Tile(*t)).collect();
            k.inst(name, operands, InstAttrs { round, ..InstAttrs::default() });
            let view = k.view(y, rows, cols);
            k.store(view, all);
            let args = Args {
                dims: vec![],
                scalars: vec![0],
                tensors: vec![tensor(DType::F32, &[32, 64], tame(DType::F32, 6)), tensor(DType::F32, &[32, 64], [])],
            };
            agree(&k.finish(), a5(), &args);
        }
    }
}

/// Windows of one tile, tile arrays with run-time elements, uneven addresses, single elements.
#[test]
fn windows_and_elements() {
    let nd = Order::Nd;
    let kinds = [
        AddrKind::Auto,
        AddrKind::Fixed(vec![0x1000, 0x2000, 0x3000]),
        AddrKind::Fixed(vec![0x3000, 0x1000, 0x2020]),
        AddrKind::Dynamic,
    ];
    for kind in kinds {
        for dtype in [DType::F32, DType::U8, DType::Bool, DType::BF16] {
            let mut k = K::new("windows");
            let span = k.span();
            let (n, rows, cols) = (k.dim("N"), k.c(8), k.c(32));
            let x = k.tensor("x", dtype, TensorDir::In, &[n, rows, cols]);
            let y = k.tensor("y", dtype, TensorDir::Out, &[n, rows, cols]);
            k.b.begin_body();
            let tiles = k.place("ring", ty(dtype, 8, 32, nd), kind.clone(), 3, 1);
            let (zero, one, three, four) = (k.c(0), k.c(1), k.c(3), k.c(4));
            if kind == AddrKind::Dynamic {
                for (e, at) in [(0, 0x40i64), (1, 0x1040), (2, 0x2040)] {
                    let (e, addr) = (k.c(e), k.c(at));
                    k.b.emit(Op::Assign { tile: tiles, element: Some(e), addr }, span);
                }
            }
            // Fill all, then read in another order.
            for pass in 0..2 {
                let label = k.b.label(span);
                let i = k.b.new_value(Ty::Index, Some("i".into()), span);
                k.b.push_region();
                k.b.define_here(i);
                let shifted = if pass == 0 { i } else { k.b.add(i, one, span) };
                let e = k.b.binary(BinOp::Rem, shifted, three, span);
                let per = k.b.mul(rows, cols, span);
                let whole = TileRef { element: Some(e), ..k.r(tiles, (rows, cols)) };
                let offset = k.b.mul(if pass == 0 { e } else { i }, per, span);
                let view = |tensor| ViewRef { tensor, offset, shape: vec![rows, cols], strides: vec![cols, one] };
                if pass == 0 {
                    k.load(whole, view(x));
                } else {
                    // A window of itself, shifted: rows 1.. to rows 0.., then one element by hand.
                    let seven = k.c(7);
                    let window = |origin: (Value, Value)| TileRef {
                        element: Some(e),
                        origin: Some(origin),
                        rows: 7,
                        cols: 28,
                        valid: (seven, four),
                        ..whole
                    };
                    k.tiles("TMOV", &[window((zero, one)), window((one, three))]);
                    let got = k.b.tile_get(whole, three, four, span);
                    k.b.emit(Op::TileSet { tile: whole, row: zero, col: one, value: got }, span);
                    k.store(view(y), whole);
                }
                let body = k.b.pop_region();
                let f = ptoc_ir::tile::For { label, index: i, lo: zero, hi: n, stages: 1, body };
                k.b.emit(Op::For(Box::new(f)), span);
            }
            let kernel = k.finish();
            let args = Args {
                dims: vec![3],
                scalars: vec![],
                tensors: vec![tensor(dtype, &[3, 8, 32], noise(dtype, 8)), tensor(dtype, &[3, 8, 32], [])],
            };
            agree(&kernel, a5(), &args);
        }
    }
}

fn gather(oob: Oob, idx: DType, dtype: DType) -> ptoc_ir::tile::Kernel {
    let mut k = K::new("gather");
    let (n, m) = (k.dim("N"), k.dim("M"));
    let (r, c, one) = (k.c(4), k.c(16), k.c(1));
    let table = k.tensor("table", dtype, TensorDir::In, &[n, m]);
    let index = k.tensor("index", idx, TensorDir::In, &[r, c]);
    let out = k.tensor("out", dtype, TensorDir::Out, &[r, c]);
    k.b.begin_body();
    let i = k.tile("idx", Loc::Vec, idx, (4, 16), Order::Nd);
    let d = k.tile("d", Loc::Vec, dtype, (4, 16), Order::Nd);
    let (i, d) = (k.r(i, (r, c)), k.r(d, (r, c)));
    let view = k.view(index, r, c);
    k.load(i, view);
    // The table transposed: element (a, b) of the view is element (b, a) of the tensor.
    let zero = k.c(0);
    let turned = ViewRef { tensor: table, offset: zero, shape: vec![m, n], strides: vec![one, m] };
    let attrs = InstAttrs { oob: Some(oob), ..InstAttrs::default() };
    k.inst("MGATHER", vec![Operand::Tile(d), Operand::View(turned), Operand::Tile(i)], attrs);
    let view = k.view(out, r, c);
    k.store(view, d);
    k.finish()
}

#[test]
fn gathers() {
    for (idx, dtype) in [(DType::I32, DType::F32), (DType::U32, DType::I8), (DType::I32, DType::U64)] {
        for oob in Oob::ALL {
            let kernel = gather(*oob, idx, dtype);
            for (n, m) in [(6u64, 5u64), (1, 1), (0, 3)] {
                let total = n * m;
                let inside = *oob == Oob::Undefined;
                let indices = noise(idx, 3)
                    .map(|x| if inside { x % total.max(1) } else { x % 61 + u64::from(x > 1 << 31) * 0xffff_ffc0 });
                let args = Args {
                    dims: vec![n as i64, m as i64],
                    scalars: vec![],
                    tensors: vec![
                        tensor(dtype, &[n, m], noise(dtype, 12)),
                        tensor(idx, &[4, 16], indices.map(|x| x & 0xffff_ffff)),
                        tensor(dtype, &[4, 16], []),
                    ],
                };
                if total == 0 && *oob != Oob::Zero {
                    let got = run_lowered(&compile(&kernel, a5()), &args);
                    assert_eq!(got, End::Failed("PA-1042".into()));
                } else {
                    agree(&kernel, a5(), &args);
                }
            }
        }
    }
}

#[test]
fn a_gather_outside_names_the_index() {
    let kernel = gather(Oob::Undefined, DType::I32, DType::F32);
    let prepared = compile(&kernel, a5());
    let mut index = vec![0u64; 64];
    index[17] = 30;
    let args = Args {
        dims: vec![6, 5],
        scalars: vec![],
        tensors: vec![
            tensor(DType::F32, &[6, 5], noise(DType::F32, 12)),
            tensor(DType::I32, &[4, 16], index),
            tensor(DType::F32, &[4, 16], []),
        ],
    };
    assert_eq!(run_lowered(&prepared, &args), End::Failed("PA-1042".into()));
}

fn scatter(oob: Oob, idx: DType, dtype: DType, atomic: Option<AtomicOp>) -> ptoc_ir::tile::Kernel {
    let mut k = K::new("scatter");
    let (n, m) = (k.dim("N"), k.dim("M"));
    let (r, c, one, zero) = (k.c(4), k.c(16), k.c(1), k.c(0));
    let table = k.tensor("table", dtype, TensorDir::InOut, &[n, m]);
    let index = k.tensor("index", idx, TensorDir::In, &[r, c]);
    let x = k.tensor("x", dtype, TensorDir::In, &[r, c]);
    k.b.begin_body();
    let i = k.tile("idx", Loc::Vec, idx, (4, 16), Order::Nd);
    let a = k.tile("a", Loc::Vec, dtype, (4, 32), Order::Nd);
    let (i, a) = (k.r(i, (r, c)), k.r(a, (r, c)));
    let (from, values) = (k.view(index, r, c), k.view(x, r, c));
    k.load(i, from);
    k.load(a, values);
    // The table transposed, as in `gather`.
    let turned = ViewRef { tensor: table, offset: zero, shape: vec![m, n], strides: vec![one, m] };
    let attrs = InstAttrs { oob: Some(oob), atomic, ..InstAttrs::default() };
    k.inst("MSCATTER", vec![Operand::View(turned), Operand::Tile(a), Operand::Tile(i)], attrs);
    k.finish()
}

/// Many elements meet: the last one stays, or all are joined.
#[test]
fn scatters() {
    let ops = [None, Some(AtomicOp::Add), Some(AtomicOp::Max), Some(AtomicOp::Min)];
    for (idx, dtype) in
        [(DType::I32, DType::F32), (DType::U32, DType::U8), (DType::I32, DType::I16), (DType::U32, DType::BF16)]
    {
        for (oob, op) in Oob::ALL.iter().flat_map(|oob| ops.map(|op| (*oob, op))) {
            let updates = dtype.is_int() || (dtype == DType::F32 && op == Some(AtomicOp::Add));
            if op.is_some() && !updates {
                continue;
            }
            let kernel = scatter(oob, idx, dtype, op);
            for (n, m) in [(6u64, 5u64), (1, 1), (0, 3)] {
                let total = n * m;
                let inside = oob == Oob::Undefined;
                let indices = noise(idx, 3)
                    .map(|x| if inside { x % total.max(1) } else { x % 61 + u64::from(x > 1 << 31) * 0xffff_ffc0 });
                // Sums of small numbers: those of floats are exact.
                let values = |seed| -> Box<dyn Iterator<Item = u64>> {
                    if op.is_some() { Box::new(tame(dtype, seed)) } else { Box::new(noise(dtype, seed)) }
                };
                let args = Args {
                    dims: vec![n as i64, m as i64],
                    scalars: vec![],
                    tensors: vec![
                        tensor(dtype, &[n, m], values(12)),
                        tensor(idx, &[4, 16], indices.map(|x| x & 0xffff_ffff)),
                        tensor(dtype, &[4, 16], values(9)),
                    ],
                };
                if total == 0 && oob != Oob::Zero {
                    let got = run_lowered(&compile(&kernel, a5()), &args);
                    assert_eq!(got, End::Failed("PA-1042".into()));
                } else {
                    agree(&kernel, a5(), &args);
                }
            }
        }
    }
}

/// Stores from Acc convert; atomic stores add.
#[test]
fn stores_convert_and_add() {
    for (acc, out) in
        [(DType::F32, DType::F16), (DType::F32, DType::BF16), (DType::I32, DType::I32), (DType::F32, DType::F32)]
    {
        for atomic_add in [false, true] {
            if atomic_add && out != acc {
                continue;
            }
            let mut k = K::new("acc");
            let (r, c) = (k.c(16), k.c(16));
            let y = k.tensor("y", out, TensorDir::InOut, &[r, c]);
            let (ab, one) = (if acc == DType::I32 { DType::I8 } else { DType::F32 }, k.c(1));
            let x = k.tensor("x", ab, TensorDir::In, &[r, c]);
            let _ = one;
            k.b.begin_body();
            let tile = |k: &mut K, name: &str, loc, dtype| {
                let t = k.tile(name, loc, dtype, (16, 16), Order::Nd);
                k.r(t, (r, c))
            };
            let m = tile(&mut k, "m", Loc::Mat, ab);
            let (a, b, d) =
                (tile(&mut k, "a", Loc::Left, ab), tile(&mut k, "b", Loc::Right, ab), tile(&mut k, "d", Loc::Acc, acc));
            let view = k.view(x, r, c);
            k.load(m, view);
            k.tiles("TMOV", &[a, m]);
            k.tiles("TMOV", &[b, m]);
            k.tiles("TMATMUL", &[d, a, b]);
            let view = k.view(y, r, c);
            let attrs = InstAttrs { atomic: atomic_add.then_some(AtomicOp::Add), ..InstAttrs::default() };
            k.inst("TSTORE", vec![Operand::View(view), Operand::Tile(d)], attrs);
            let args = Args {
                dims: vec![],
                scalars: vec![],
                tensors: vec![tensor(out, &[16, 16], tame(out, 21)), tensor(ab, &[16, 16], tame(ab, 22))],
            };
            agree(&k.finish(), a5(), &args);
        }
    }
}

//! Whole kernels: the grid, tails, control, windows, addresses, atomics, printing.

use super::*;
use ptoc_ir::tile::{AddrKind, TileData, TileRef, ViewRef};
use ptoc_isa::{AtomicOp, BinOp, CmpOp, Oob, UnOp};

/// `c = a + b` over `tiles(M, 4), tiles(N, 8)`, with tails.
pub(crate) fn add_kernel() -> Kernel {
    let mut b = Builder::new("add", at(0), "a2a3");
    let (m, n) = (b.dim("M", at(1)), b.dim("N", at(2)));
    let shape = vec![m, n];
    let mut g = |name: &str, dir| {
        let (optional, disjoint) = (false, false);
        b.tensor(TensorData {
            name: name.into(),
            dtype: DType::F32,
            dir,
            shape: shape.clone(),
            optional,
            place: None,
            disjoint,
            stored: None,
            span: at(3),
        })
    };
    let (ga, gb, gc) = (g("a", TensorDir::In), g("b", TensorDir::In), g("c", TensorDir::Out));
    let (four, eight, one) = (b.index_const(4), b.index_const(8), b.index_const(1));
    let (bm, bn) = (b.ceil_div(m, four, at(4)), b.ceil_div(n, eight, at(5)));
    let (i, j) = (b.grid_dim("i", bm, at(4)), b.grid_dim("j", bn, at(5)));
    b.begin_body();
    let (row, col) = (b.mul(i, four, at(6)), b.mul(j, eight, at(6)));
    let (rest_r, rest_c) = (b.sub(m, row, at(7)), b.sub(n, col, at(7)));
    let valid = (b.binary(BinOp::Min, rest_r, four, at(7)), b.binary(BinOp::Min, rest_c, eight, at(7)));
    let start = b.mul(row, n, at(8));
    let offset = b.add(start, col, at(8));
    let tiles: Vec<_> = ["x", "y", "z"].iter().map(|name| alloc(&mut b, name, vec_ty(DType::F32, 4, 8))).collect();
    let t: Vec<_> = tiles.iter().map(|&t| Operand::Tile(b.tile_ref(t, valid))).collect();
    let view = |tensor| Operand::View(ViewRef { tensor, offset, shape: vec![valid.0, valid.1], strides: vec![n, one] });
    let none = InstAttrs::default();
    inst(&mut b, "TLOAD", vec![t[0].clone(), view(ga)], none, at(9));
    inst(&mut b, "TLOAD", vec![t[1].clone(), view(gb)], none, at(10));
    inst(&mut b, "TADD", vec![t[2].clone(), t[0].clone(), t[1].clone()], none, at(11));
    inst(&mut b, "TSTORE", vec![view(gc), t[2].clone()], none, at(12));
    b.finish()
}

#[test]
fn a_grid_with_tails() {
    let kernel = add_kernel();
    for (m, n) in [(1u64, 1u64), (9, 13), (8, 16), (0, 5), (5, 0)] {
        let xs: Vec<f32> = (0..m * n).map(|x| x as f32).collect();
        let a = arg(DType::F32, &[m, n], &f32s(&xs));
        let c = TensorArg::empty(DType::F32, vec![m, n]);
        let (outcome, got) = run_with(&kernel, vec![a.clone(), a, c], &[m as i64, n as i64]).unwrap();
        assert_eq!(got, f32s(&xs.iter().map(|x| 2.0 * x).collect::<Vec<_>>()));
        let blocks = m.div_ceil(4) * n.div_ceil(8);
        assert_eq!(outcome.stats.blocks, blocks);
        assert_eq!(outcome.stats.instructions.get("TADD").copied().unwrap_or(0), blocks);
        assert_eq!((outcome.stats.bytes_read, outcome.stats.bytes_written), (8 * m * n, 4 * m * n));
        assert!(outcome.unwritten.is_empty());
    }
}

#[test]
fn loops_with_break_continue_while_and_scope() {
    // sum of odd i below 10 that are not 5, then halved while above 3, by a scope that leaves early
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::I64, TensorDir::Out, &[2]);
    b.begin_body();
    let [zero, one, two, three, five, ten] = [0, 1, 2, 3, 5, 10].map(|n| b.index_const(n));
    let (sum, steps) = (b.var("sum", Ty::Index), b.var("steps", Ty::Index));
    b.set(sum, zero, at(1));
    b.set(steps, zero, at(1));
    b.for_loop("i", (zero, ten), 1, at(2), |b, label, i| {
        let odd = b.binary(BinOp::Rem, i, two, at(3));
        let even = b.compare(CmpOp::Eq, odd, zero, at(3));
        b.if_else(even, at(3), |b| b.emit(Op::Continue(label), at(3)), |_| {});
        let is_five = b.compare(CmpOp::Eq, i, five, at(4));
        b.if_else(is_five, at(4), |b| b.emit(Op::Continue(label), at(4)), |_| {});
        let nine = b.index_const(9);
        let last = b.compare(CmpOp::Eq, i, nine, at(4));
        b.if_else(last, at(4), |b| b.emit(Op::Break(label), at(4)), |_| {});
        let s = b.get(sum, at(5));
        let s = b.add(s, i, at(5));
        b.set(sum, s, at(5));
    });
    b.while_loop(
        at(6),
        |b, _| {
            let s = b.get(sum, at(6));
            b.compare(CmpOp::Gt, s, three, at(6))
        },
        |b, _| {
            let s = b.get(sum, at(7));
            let s = b.binary(BinOp::Div, s, two, at(7));
            b.set(sum, s, at(7));
            let n = b.get(steps, at(7));
            let n = b.add(n, one, at(7));
            b.set(steps, n, at(7));
        },
    );
    b.scope(at(8), |b, label| {
        let n = b.get(steps, at(8));
        let some = b.compare(CmpOp::Gt, n, zero, at(8));
        b.if_else(some, at(8), |b| b.emit(Op::Leave(label), at(8)), |_| {});
        b.set(sum, zero, at(9));
    });
    for (n, var) in [sum, steps].into_iter().enumerate() {
        let v = b.get(var, at(10));
        let value = b.convert(v, Ty::D(DType::I64), ptoc_isa::RoundMode::Rint, false, at(10));
        let offset = b.index_const(n as i64);
        b.emit(Op::Store { tensor: out, offset, value }, at(10));
    }
    let kernel = b.finish();
    // 1 + 3 + 7 = 11, 5, 2
    let (_, got) = run_with(&kernel, vec![TensorArg::empty(DType::I64, vec![2])], &[]).unwrap();
    assert_eq!(got, [2, 2]);
}

fn fixed(b: &mut Builder, name: &str, ty: TileType, addr: u64) -> Tile {
    let addr = AddrKind::Fixed(vec![addr]);
    let tile = b.tile(TileData { name: name.into(), ty, count: 1, stages: 1, addr, hidden: false, span: at(1) });
    b.emit(Op::Alloc { tile }, at(1));
    tile
}

#[test]
fn vec_tiles_on_the_same_bytes_alias_exactly() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::U8, TensorDir::Out, &[4]);
    b.begin_body();
    let f = fixed(&mut b, "f", vec_ty(DType::F32, 1, 8), 64);
    let u = fixed(&mut b, "u", vec_ty(DType::U8, 1, 32), 64);
    let (f, u) = (b.whole(f), b.whole(u));
    let (zero, value) = (b.index_const(0), b.float_const(DType::F32, 1.0));
    b.emit(Op::TileSet { tile: f, row: zero, col: zero, value }, at(2));
    for n in 0..4 {
        let n = b.index_const(n);
        let value = b.tile_get(u, zero, n, at(3));
        b.emit(Op::Store { tensor: out, offset: n, value }, at(4));
    }
    let (_, got) = run_with(&b.finish(), vec![TensorArg::empty(DType::U8, vec![4])], &[]).unwrap();
    assert_eq!(got, [0, 0, 0x80, 0x3f]);
}

#[test]
fn run_time_addresses_and_arrays() {
    // t[1] is bound to the bytes that u occupies.
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::I32, TensorDir::Out, &[1]);
    b.begin_body();
    let ty = vec_ty(DType::I32, 1, 8);
    let t = b.tile(TileData {
        name: "t".into(),
        ty,
        count: 2,
        stages: 1,
        addr: AddrKind::Dynamic,
        hidden: false,
        span: at(1),
    });
    b.emit(Op::Alloc { tile: t }, at(1));
    let u = fixed(&mut b, "u", ty, 32);
    let (zero, one, addr) = (b.index_const(0), b.index_const(1), b.index_const(32));
    b.emit(Op::Assign { tile: t, element: None, addr: zero }, at(2));
    b.emit(Op::Assign { tile: t, element: Some(one), addr }, at(2));
    let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 42 });
    let tile = TileRef { element: Some(one), ..b.whole(t) };
    b.emit(Op::TileSet { tile, row: zero, col: zero, value }, at(3));
    let u = b.whole(u);
    let value = b.tile_get(u, zero, zero, at(4));
    b.emit(Op::Store { tensor: out, offset: zero, value }, at(5));
    let (_, got) = run_with(&b.finish(), vec![TensorArg::empty(DType::I32, vec![1])], &[]).unwrap();
    assert_eq!(got, [42]);
}

#[test]
fn windows_orders_and_masks_with_addresses() {
    // A 2 x 2 window at (1, 1) of a DN tile, compared with itself into a mask at an address, selected back.
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::F32, TensorDir::Out, &[2, 2]);
    b.begin_body();
    let none = InstAttrs::default();
    let t = alloc(&mut b, "t", TileType { order: Order::Dn, ..vec_ty(DType::F32, 8, 4) });
    let m = fixed(&mut b, "m", vec_ty(DType::Bool, 2, 8), 96);
    let whole = b.whole(t);
    for_each(&mut b, (8, 4), at(1), |b, row, col, n| {
        let value = b.convert(n, Ty::D(DType::F32), ptoc_isa::RoundMode::Rint, false, at(1));
        b.emit(Op::TileSet { tile: whole, row, col, value }, at(1));
    });
    let (one, two) = (b.index_const(1), b.index_const(2));
    let w = TileRef { origin: Some((one, one)), rows: 2, cols: 2, ..b.tile_ref(t, (two, two)) };
    let mask = TileRef { cols: 2, ..b.tile_ref(m, (two, two)) };
    let attrs = InstAttrs { cmp: Some(CmpOp::Eq), ..none };
    inst(&mut b, "TCMP", vec![Operand::Tile(mask), Operand::Tile(w), Operand::Tile(w)], attrs, at(2));
    let d = alloc(&mut b, "d", vec_ty(DType::F32, 2, 8));
    let d = b.tile_ref(d, (two, two));
    inst(&mut b, "TSEL", [d, mask, w, w].map(Operand::Tile).to_vec(), none, at(3));
    let zero = b.index_const(0);
    let view = ViewRef { tensor: out, offset: zero, shape: vec![two, two], strides: vec![two, one] };
    inst(&mut b, "TSTORE", vec![Operand::View(view), Operand::Tile(d)], none, at(4));
    let (_, got) = run_with(&b.finish(), vec![TensorArg::empty(DType::F32, vec![2, 2])], &[]).unwrap();
    assert_eq!(got, f32s(&[5.0, 6.0, 9.0, 10.0]));
}

fn gather_kernel(oob: Oob) -> Kernel {
    let mut b = Builder::new("gather", at(0), "a2a3");
    let table = tensor(&mut b, "table", DType::F32, TensorDir::In, &[3, 4]);
    let idx = tensor(&mut b, "idx", DType::I32, TensorDir::In, &[1, 4]);
    let out = tensor(&mut b, "out", DType::F32, TensorDir::Out, &[1, 4]);
    b.begin_body();
    let none = InstAttrs::default();
    let [zero, one, two, three, four] = [0, 1, 2, 3, 4].map(|n| b.index_const(n));
    let (i, d) = (alloc(&mut b, "i", vec_ty(DType::I32, 1, 8)), alloc(&mut b, "d", vec_ty(DType::F32, 1, 8)));
    let (i, d) = (b.tile_ref(i, (one, four)), b.tile_ref(d, (one, four)));
    let line =
        |tensor| Operand::View(ViewRef { tensor, offset: zero, shape: vec![one, four], strides: vec![four, one] });
    inst(&mut b, "TLOAD", vec![Operand::Tile(i), line(idx)], none, at(1));
    // The table's columns 1 and 2 of each row: a strided 3 x 2 list.
    let view = ViewRef { tensor: table, offset: one, shape: vec![three, two], strides: vec![four, one] };
    let attrs = InstAttrs { oob: Some(oob), ..none };
    inst(&mut b, "MGATHER", vec![Operand::Tile(d), Operand::View(view), Operand::Tile(i)], attrs, at(2));
    inst(&mut b, "TSTORE", vec![line(out), Operand::Tile(d)], none, at(3));
    b.finish()
}

#[test]
fn gathers_in_every_mode() {
    let table: Vec<f32> = (0..12).map(|x| x as f32).collect();
    let run = |oob, idx: [i32; 4]| {
        let idx: Vec<u64> = idx.iter().map(|&x| u64::from(x as u32)).collect();
        let args = vec![
            arg(DType::F32, &[3, 4], &f32s(&table)),
            arg(DType::I32, &[1, 4], &idx),
            TensorArg::empty(DType::F32, vec![1, 4]),
        ];
        run_with(&gather_kernel(oob), args, &[]).map(|(_, bits)| bits)
    };
    assert_eq!(run(Oob::Undefined, [0, 3, 5, 2]).unwrap(), f32s(&[1.0, 6.0, 10.0, 5.0]));
    let wild = [-1, 6, 100, 0];
    assert_eq!(run(Oob::Clamp, wild).unwrap(), f32s(&[1.0, 10.0, 10.0, 1.0]));
    assert_eq!(run(Oob::Wrap, wild).unwrap(), f32s(&[10.0, 1.0, 9.0, 1.0]));
    assert_eq!(run(Oob::Zero, wild).unwrap(), f32s(&[0.0, 0.0, 0.0, 1.0]));
    let trap = run(Oob::Undefined, wild).unwrap_err();
    assert_eq!((trap.code, trap.span), (codes::GATHER_INDEX, at(2)));
    assert!(
        trap.message.starts_with("index -1 in `") && trap.message.contains("[0, 0] is outside the 6 elements of `"),
        "{}",
        trap.message
    );
}

#[test]
fn atomics_over_blocks() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::I32, TensorDir::InOut, &[8]);
    let n = b.index_const(5);
    let i = b.grid_dim("i", n, at(1));
    b.begin_body();
    let v = b.convert(i, Ty::D(DType::I32), ptoc_isa::RoundMode::Rint, false, at(2));
    let two = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 2 });
    for (n, &op) in AtomicOp::ALL.iter().enumerate() {
        let offset = b.index_const(n as i64);
        let dst = b.new_value(Ty::D(DType::I32), None, at(3));
        let expected = (op == AtomicOp::Cas).then_some(two);
        b.emit(Op::Atomic { dst, op, tensor: out, offset, expected, value: v }, at(3));
    }
    let minus_one = u64::from(u32::MAX);
    let start = arg(DType::I32, &[8], &[10, 2, 2, 7, 0, 0, 9, 2]);
    let (_, got) = run_with(&b.finish(), vec![start], &[]).unwrap();
    assert_eq!(AtomicOp::ALL.len(), 8);
    assert_eq!(got, [20, 4, 0, 0, 7, 4, 4, 0]);
    assert_ne!(got[0], minus_one);
}

#[test]
fn scalar_arguments_defaults_and_printing() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let d = b.dim("D", at(1));
    let scale = b.scalar_param("scale", Ty::D(DType::F32), at(2));
    let f = b.convert(d, Ty::D(DType::F32), ptoc_isa::RoundMode::Rint, false, at(2));
    let default = b.unary(UnOp::Rsqrt, f, at(2));
    b.set_scalar_default(scale, default);
    let twice = b.add(scale, scale, at(3));
    b.begin_body();
    let t = alloc(&mut b, "t", vec_ty(DType::I16, 2, 16));
    let two = b.index_const(2);
    let t = b.tile_ref(t, (two, two));
    let s = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I16), bits: 0xffff });
    inst(&mut b, "TEXPANDS", vec![Operand::Tile(t), Operand::Scalar(s)], InstAttrs::default(), at(4));
    use ptoc_ir::tile::PrintPart::{Scalar, Text, Tile};
    b.emit(Op::Print { parts: vec![Text("twice ".into()), Scalar(twice), Text(" ".into()), Tile(t)] }, at(5));
    let kernel = b.finish();
    let print = |given: Option<u64>| {
        let mut text = String::new();
        let mut sink = |line: &str| text.push_str(line);
        let mut launch = InterpreterLaunch {
            tensors: vec![],
            dims: vec![16],
            scalars: vec![given],
            options: Options::default(),
            print: &mut sink,
        };
        run(&kernel, &mut launch).unwrap();
        text
    };
    assert_eq!(print(None), "twice 0.5 [[-1, -1], [-1, -1]]\n");
    assert_eq!(print(Some(u64::from(3f32.to_bits()))), "twice 6 [[-1, -1], [-1, -1]]\n");
}

#[test]
fn accumulators_are_converted_when_stored() {
    for (acc, acc_bits, to, want) in [
        (DType::F32, u64::from(1.000_1f32.to_bits()), DType::F16, ptoc_ir::scalar::from_f32(DType::F16, 1.000_1)),
        (DType::F32, u64::from((-2.5f32).to_bits()), DType::I32, u64::from(-2i32 as u32)),
        (DType::I32, u64::from(-7i32 as u32), DType::BF16, ptoc_ir::scalar::from_f32(DType::BF16, -7.0)),
        (DType::I32, 7, DType::I32, 7),
    ] {
        let mut b = Builder::new("k", at(0), "a2a3");
        let out = tensor(&mut b, "out", to, TensorDir::Out, &[1, 1]);
        b.begin_body();
        let t = alloc(&mut b, "acc", TileType { loc: Loc::Acc, ..vec_ty(acc, 16, 16) });
        let one = b.index_const(1);
        let zero = b.index_const(0);
        let t = b.tile_ref(t, (one, one));
        let s = b.constant(ptoc_ir::tile::Const { ty: Ty::D(acc), bits: acc_bits });
        inst(&mut b, "TEXPANDS", vec![Operand::Tile(t), Operand::Scalar(s)], InstAttrs::default(), at(4));
        let view = ViewRef { tensor: out, offset: zero, shape: vec![one, one], strides: vec![one, one] };
        inst(&mut b, "TSTORE", vec![Operand::View(view), Operand::Tile(t)], InstAttrs::default(), at(5));
        let (_, got) = run_with(&b.finish(), vec![TensorArg::empty(to, vec![1, 1])], &[]).unwrap();
        assert_eq!(got, [want], "{acc} to {to}");
    }
}

/// As deep as is allowed goes through the interpreter on a test's small stack.
#[test]
fn depth() {
    let depth = verify::MAX_DEPTH - 1;
    let text = format!(
        "kernel \"k\" target \"a5\"\nlabel l0\nprologue {{\nv0: bool = const true\n}}\ngrid []\nbody {{\n\
        {}print \"here\"\n{}}}\n",
        "if v0 {\n".repeat(depth),
        "}\n".repeat(depth)
    );
    let kernel = ptoc_ir::tile::text::parse(&text, FileId(3)).expect("allowed");
    let mut lines = Vec::new();
    let mut sink = |line: &str| lines.push(line.to_owned());
    let mut launch = InterpreterLaunch {
        tensors: vec![],
        dims: vec![],
        scalars: vec![],
        options: Options::default(),
        print: &mut sink,
    };
    assert!(run(&kernel, &mut launch).is_ok());
    assert_eq!(lines, ["here\n"]);
}

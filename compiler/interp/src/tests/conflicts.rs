//! How copies and products along nests end early.

use super::nests::{affine, copy, finish, layout, tensor_side, tile_side};
use super::*;
use ptoc_diagnostics::Code;
use ptoc_ir::tile::{AddrKind, Copy, Elem, Guard, NestAccess, Table, TileData};
use ptoc_isa::Oob;

const I32: Elem = Elem::Whole(DType::I32);

/// A body over `in` and `out` of eight i32 each, the latter `dir`.
fn trap_with(dir: TensorDir, blocks: i64, f: impl FnOnce(&mut Builder, TensorId, TensorId, Value)) -> Option<Trap> {
    let mut b = Builder::new("k", at(0), "a2a3");
    let x = tensor(&mut b, "in", DType::I32, TensorDir::In, &[2, 4]);
    let y = tensor(&mut b, "out", DType::I32, dir, &[2, 4]);
    let extent = b.index_const(blocks);
    let i = b.grid_dim("i", extent, at(0));
    b.begin_body();
    f(&mut b, x, y, i);
    let data = if dir == TensorDir::InOut {
        vec![arg(DType::I32, &[2, 4], &[0, 1, 2, 3, 4, 5, 6, 7]); 2]
    } else {
        vec![arg(DType::I32, &[2, 4], &[0; 8]), TensorArg::empty(DType::I32, vec![2, 4])]
    };
    run_with(&finish(b), data, &[]).err()
}

fn expect(trap: Option<Trap>, code: Code, message: &str) {
    let trap = trap.expect("a trap");
    assert_eq!((trap.code, trap.span), (code, at(9)), "{}", trap.message);
    assert_eq!(trap.message, message);
}

/// One copy from `in` to `out`.
fn one(f: impl FnOnce(&mut Builder, TensorId, TensorId) -> Copy) -> Option<Trap> {
    trap_with(TensorDir::Out, 1, |b, x, y, _| {
        let c = f(b, x, y);
        b.copy(c, at(9));
    })
}

#[test]
fn outside_of_tensors() {
    let trap = one(|b, x, y| {
        let (dst, src) = (tensor_side(b, y, I32, 0, &[1]), tensor_side(b, x, I32, 1, &[1]));
        copy(b, &[8], dst, src)
    });
    expect(trap, codes::TRAP_TENSOR_OUT_OF_BOUNDS, "read of element 8 of tensor in, which has 8 elements");
    let trap = one(|b, x, y| {
        let (dst, src) = (tensor_side(b, y, I32, -1, &[1]), tensor_side(b, x, I32, 0, &[1]));
        copy(b, &[8], dst, src)
    });
    expect(trap, codes::TRAP_TENSOR_OUT_OF_BOUNDS, "write of element -1 of tensor out, which has 8 elements");
    // No sum wraps round.
    let trap = one(|b, x, y| {
        let (dst, src) = (tensor_side(b, y, I32, 0, &[1]), tensor_side(b, x, I32, 2, &[i64::MAX]));
        copy(b, &[2], dst, src)
    });
    expect(trap, codes::TRAP_TENSOR_OUT_OF_BOUNDS, "read of element -1 of tensor in, which has 8 elements");
    // An element of another width must lie inside as a whole.
    let trap = one(|b, x, y| {
        let i64s = Elem::Whole(DType::I64);
        let (dst, src) = (tensor_side(b, y, i64s, 0, &[1]), tensor_side(b, x, i64s, 0, &[1]));
        copy(b, &[5], dst, src)
    });
    expect(
        trap,
        codes::TRAP_TENSOR_OUT_OF_BOUNDS,
        "read of element 4 of tensor in (seen as i64), which has 4 elements",
    );
    let trap = one(|b, x, y| {
        let (dst, src) = (tensor_side(b, y, Elem::Whole(DType::U8), 0, &[0]), tensor_side(b, x, Elem::U4, 64, &[1]));
        copy(b, &[1], dst, src)
    });
    expect(
        trap,
        codes::TRAP_TENSOR_OUT_OF_BOUNDS,
        "read of element 64 of tensor in (seen as u4), which has 64 elements",
    );
}

/// Where a guard fails nothing of the source is touched; with a fill the destination is.
#[test]
fn guards_do_not_shield_the_fill() {
    let trap = |fill: bool| {
        one(|b, x, y| {
            let (dst, src) = (tensor_side(b, y, I32, 0, &[1]), tensor_side(b, x, I32, 0, &[1]));
            let mut c = copy(b, &[9], dst, src);
            c.guards.push(Guard { at: affine(b, 0, &[1]), bound: b.index_const(8) });
            c.fill = fill.then(|| b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 0 }));
            c
        })
    };
    assert_eq!(trap(false), None);
    expect(trap(true), codes::TRAP_TENSOR_OUT_OF_BOUNDS, "write of element 8 of tensor out, which has 8 elements");
}

#[test]
fn outside_of_tiles() {
    let trap = trap_with(TensorDir::Out, 1, |b, x, _, _| {
        let t = alloc(b, "t", vec_ty(DType::I32, 2, 8));
        let [zero, one] = [0, 1].map(|n| b.index_const(n));
        let window = ptoc_ir::tile::TileRef { origin: Some((one, zero)), rows: 2, ..b.tile_ref(t, (one, zero)) };
        let (dst, src) = (tile_side(b, window, &[1], &[0]), tensor_side(b, x, I32, 0, &[1]));
        let c = copy(b, &[2], dst, src);
        b.copy(c, at(9));
    });
    let message = "element (1, 0) of a window of 2 x 8 at (1, 0) of tile `t`, which has 2 x 8";
    expect(trap, codes::TRAP_TILE_OUT_OF_BOUNDS, message);
}

#[test]
fn unwritten_sources() {
    let trap = trap_with(TensorDir::Out, 1, |b, _, y, _| {
        let t = alloc(b, "t", TileType { layout: layout("(2,4):(1,2)"), ..vec_ty(DType::I32, 2, 4) });
        let t = b.whole(t);
        let (zero, value) = (b.index_const(0), b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 1 }));
        b.emit(Op::TileSet { tile: t, row: zero, col: zero, value }, at(1));
        let (dst, src) = (tensor_side(b, y, I32, 0, &[1]), tile_side(b, t, &[0], &[1]));
        let c = copy(b, &[4], dst, src);
        b.copy(c, at(9));
    });
    expect(trap, codes::TRAP_POISON_READ_TILE, "read of element (0, 1) of tile `t`, which nothing has written");
    // Three bytes of an element do not make it.
    let trap = trap_with(TensorDir::Out, 1, |b, x, y, _| {
        let u8s = Elem::Whole(DType::U8);
        let (dst, src) = (tensor_side(b, y, u8s, 8, &[1]), tensor_side(b, x, u8s, 8, &[1]));
        let c = copy(b, &[7], dst, src);
        b.copy(c, at(1));
        let two = b.index_const(2);
        b.load(y, two, at(1));
        let three = b.index_const(3);
        b.load(y, three, at(9));
    });
    expect(trap, codes::TRAP_POISON_READ_TENSOR, "read of out[0, 3], which nothing has written");
}

#[test]
fn elements_that_meet() {
    let trap = one(|b, x, y| {
        let (dst, src) = (tensor_side(b, y, I32, 0, &[1, 2]), tensor_side(b, x, I32, 0, &[1, 2]));
        copy(b, &[3, 2], dst, src)
    });
    expect(trap, codes::COPY_CONFLICT, "out[0, 2] is written twice by one copy");
    // One tensor, moved by one element: the second point writes what the first read.
    let shifted = |to: i64, from: i64, elem: Elem| {
        trap_with(TensorDir::InOut, 1, |b, _, y, _| {
            let (dst, src) = (tensor_side(b, y, elem, to, &[1]), tensor_side(b, y, elem, from, &[1]));
            let c = copy(b, &[3], dst, src);
            b.copy(c, at(9));
        })
    };
    expect(shifted(0, 1, I32), codes::COPY_CONFLICT, "out[0, 1] is read and written by one copy");
    expect(shifted(1, 0, I32), codes::COPY_CONFLICT, "out[0, 1] is read and written");
    assert_eq!(shifted(4, 1, I32), None);
    let message = "element 1 of out (seen as i16) is read and written";
    expect(shifted(1, 0, Elem::Whole(DType::I16)), codes::COPY_CONFLICT, message);
}

/// A table that is written while it is used, and one that names a place twice.
#[test]
fn tables_that_meet() {
    let scatter = |entries: [u64; 2], own: bool| {
        let mut b = Builder::new("k", at(0), "a2a3");
        let x = tensor(&mut b, "in", DType::I32, TensorDir::In, &[2]);
        let y = tensor(&mut b, "out", DType::I32, TensorDir::InOut, &[2]);
        b.begin_body();
        let (one, two) = (b.index_const(1), b.index_const(2));
        let lookup = Table {
            tensor: if own { y } else { x },
            at: affine(&mut b, 0, &[1]),
            stride: one,
            extent: two,
            oob: Oob::Undefined,
        };
        let dst = NestAccess::Tensor {
            tensor: y,
            elem: I32,
            at: affine(&mut b, 0, &[0]),
            swizzle: None,
            tables: vec![lookup],
        };
        let src = tensor_side(&mut b, x, I32, 0, &[1]);
        let c = copy(&mut b, &[2], dst, src);
        b.copy(c, at(9));
        run_with(&finish(b), vec![arg(DType::I32, &[2], &entries); 2], &[]).err()
    };
    assert_eq!(scatter([1, 0], false), None);
    expect(scatter([1, 1], false), codes::COPY_CONFLICT, "out[1] is written twice by one copy");
    expect(scatter([1, 0], true), codes::COPY_CONFLICT, "element 1 of table out is read and written");
    expect(scatter([0, 2], false), codes::TABLE_ENTRY, "in[1] is 2, and entries of this table are indices below 2");
}

/// Tiles at common addresses: only elements that really meet are an error.
#[test]
fn aliased_tiles() {
    let moved = |to: u64, rows: i64| {
        trap_with(TensorDir::Out, 1, |b, x, _, _| {
            let mut place = |name: &str, addr| {
                let addr = AddrKind::Fixed(vec![addr]);
                let ty = vec_ty(DType::I32, 2, 8);
                let (count, stages) = (1, 1);
                let tile = b.tile(TileData { name: name.into(), ty, count, stages, addr, hidden: false, span: at(1) });
                b.emit(Op::Alloc { tile }, at(1));
                b.whole(tile)
            };
            let (s, d) = (place("s", 0), place("d", to));
            for row in 0..2 {
                let (dst, src) = (tile_side(b, s, &[0], &[1]), tensor_side(b, x, I32, 0, &[1]));
                let dst = match dst {
                    NestAccess::Tile { tile, col, .. } => NestAccess::Tile { tile, row: affine(b, row, &[0]), col },
                    other => other,
                };
                let c = copy(b, &[8], dst, src);
                b.copy(c, at(1));
            }
            let (dst, src) = (tile_side(b, d, &[0, 1], &[1, 0]), tile_side(b, s, &[0, 1], &[1, 0]));
            let c = copy(b, &[8, rows], dst, src);
            b.copy(c, at(9));
        })
    };
    assert_eq!(moved(64, 2), None);
    assert_eq!(moved(32, 1), None);
    expect(moved(32, 2), codes::COPY_CONFLICT, "element (1, 0) of tile `s` is read and written");
    expect(moved(0, 1), codes::COPY_CONFLICT, "element (0, 0) of tile `d` is read and written by one copy");
}

#[test]
fn claims_that_are_not_true() {
    let trap = trap_with(TensorDir::Out, 1, |b, x, _, _| {
        let t = alloc(b, "t", vec_ty(DType::I32, 2, 8));
        let t = b.whole(t);
        let (dst, src) = (tile_side(b, t, &[0], &[1]), tensor_side(b, x, I32, 0, &[1]));
        let mut c = copy(b, &[8], dst, src);
        c.covers = true;
        b.copy(c, at(9));
    });
    let message = "a copy that is said to cover tile `t` writes 8 of its 16 valid elements";
    expect(trap, codes::TRAP_INVALID_IR, message);
    let trap = trap_with(TensorDir::Out, 2, |b, x, y, i| {
        let (dst, src) = (tensor_side(b, y, I32, 0, &[1]), tensor_side(b, x, I32, 0, &[1]));
        let mut c = copy(b, &[1], dst, src);
        c.extents[0] = b.unary(ptoc_isa::UnOp::Neg, i, at(1));
        b.copy(c, at(9));
    });
    expect(trap, codes::TRAP_INVALID_IR, "axis 0 of a copy has extent -1");
}

/// Two blocks may write different bytes of one element, but not the same.
#[test]
fn races_by_the_byte() {
    let halves = |step: i64| {
        trap_with(TensorDir::Out, 2, |b, x, y, i| {
            let i16s = Elem::Whole(DType::I16);
            let (mut dst, src) = (tensor_side(b, y, i16s, 0, &[2]), tensor_side(b, x, i16s, 0, &[2]));
            let step = b.index_const(step);
            let start = b.mul(i, step, at(1));
            if let NestAccess::Tensor { at, .. } = &mut dst {
                at.start = start;
            }
            let c = copy(b, &[8], dst, src);
            b.copy(c, at(9));
        })
    };
    assert_eq!(halves(1), None);
    let message = "write of out[0, 1] (seen as i16) by block 1, which block 0 uses as well";
    expect(halves(2), codes::TRAP_BLOCK_RACE, message);
}

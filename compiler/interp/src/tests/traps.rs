//! Every way in which a run ends early.

use super::control::add_kernel;
use super::*;
use ptoc_diagnostics::Code;
use ptoc_ir::tile::{AddrKind, CheckData, TileData, TileRef, ViewRef};
use ptoc_isa::CmpOp;

/// A body over one `out` tensor of four i32, built by `f`.
fn body(f: impl FnOnce(&mut Builder, TensorId)) -> Kernel {
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::I32, TensorDir::Out, &[4]);
    b.begin_body();
    f(&mut b, out);
    b.finish()
}

fn trap_of(kernel: &Kernel) -> Trap {
    run_with(kernel, vec![TensorArg::empty(DType::I32, vec![4])], &[]).expect_err("a trap")
}

fn expect(kernel: &Kernel, code: Code, span: Span, text: &str) {
    let trap = trap_of(kernel);
    assert_eq!((trap.code, trap.span), (code, span), "{}", trap.message);
    assert!(trap.message.contains(text), "{}", trap.message);
}

fn two_by_two(b: &mut Builder) -> TileRef {
    let t = alloc(b, "t", vec_ty(DType::I32, 2, 8));
    let two = b.index_const(2);
    b.tile_ref(t, (two, two))
}

#[test]
fn poison_of_tiles() {
    let k = body(|b, _| {
        let t = two_by_two(b);
        let (zero, one) = (b.index_const(0), b.index_const(1));
        let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 1 });
        b.emit(Op::TileSet { tile: t, row: zero, col: zero, value }, at(1));
        b.emit(Op::TileSet { tile: t, row: zero, col: one, value }, at(1));
        inst(b, "TADD", [t, t, t].map(Operand::Tile).to_vec(), InstAttrs::default(), at(2));
    });
    expect(&k, codes::TRAP_POISON_READ_TILE, at(2), "element (1, 0) of tile `t`, which nothing has written");
    // `alloc` poisons again.
    let k = body(|b, _| {
        let t = alloc(b, "t", vec_ty(DType::I32, 1, 8));
        let t = b.whole(t);
        let zero = b.index_const(0);
        let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 1 });
        b.emit(Op::TileSet { tile: t, row: zero, col: zero, value }, at(1));
        b.emit(Op::Alloc { tile: t.tile }, at(2));
        b.tile_get(t, zero, zero, at(3));
    });
    expect(&k, codes::TRAP_POISON_READ_TILE, at(3), "(0, 0)");
}

#[test]
fn tile_bounds() {
    let k = body(|b, _| {
        let t = two_by_two(b);
        let (zero, two) = (b.index_const(0), b.index_const(2));
        b.tile_get(t, zero, two, at(1));
    });
    expect(&k, codes::TRAP_TILE_OUT_OF_BOUNDS, at(1), "element (0, 2) of tile `t`, valid 2 x 2");
    let k = body(|b, out| {
        let t = two_by_two(b);
        let zero = b.index_const(0);
        let v = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 9 });
        b.emit(Op::Store { tensor: out, offset: zero, value: v }, at(1));
        let loaded = b.load(out, zero, at(2));
        let nine = b.convert(loaded, Ty::Index, ptoc_isa::RoundMode::Rint, false, at(2));
        let t = TileRef { valid: (t.valid.0, nine), ..t };
        inst(b, "TEXPANDS", vec![Operand::Tile(t), Operand::Scalar(v)], InstAttrs::default(), at(3));
    });
    expect(&k, codes::TRAP_TILE_OUT_OF_BOUNDS, at(3), "9 valid columns from 0, in a window of 8");
}

#[test]
fn tensor_bounds_and_poison() {
    let k = body(|b, out| {
        let four = b.index_const(4);
        b.load(out, four, at(1));
    });
    expect(&k, codes::TRAP_TENSOR_OUT_OF_BOUNDS, at(1), "element 4 of tensor out, which has 4 elements");
    let k = body(|b, out| {
        let minus = b.index_const(-1);
        b.load(out, minus, at(1));
    });
    expect(&k, codes::TRAP_TENSOR_OUT_OF_BOUNDS, at(1), "element -1");
    let k = body(|b, out| {
        let three = b.index_const(3);
        b.load(out, three, at(1));
    });
    expect(&k, codes::TRAP_POISON_READ_TENSOR, at(1), "out[3], which nothing has written");
    let k = body(|b, out| {
        let t = two_by_two(b);
        let (one, two) = (b.index_const(1), b.index_const(2));
        let v = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 9 });
        inst(b, "TEXPANDS", vec![Operand::Tile(t), Operand::Scalar(v)], InstAttrs::default(), at(1));
        let view = ViewRef { tensor: out, offset: one, shape: vec![two, two], strides: vec![two, one] };
        inst(b, "TSTORE", vec![Operand::View(view), Operand::Tile(t)], InstAttrs::default(), at(2));
    });
    expect(&k, codes::TRAP_TENSOR_OUT_OF_BOUNDS, at(2), "write of element 4");
}

fn dynamic(b: &mut Builder) -> Tile {
    let ty = vec_ty(DType::I32, 1, 8);
    let t = b.tile(TileData {
        name: "t".into(),
        ty,
        count: 1,
        stages: 1,
        addr: AddrKind::Dynamic,
        hidden: false,
        span: at(1),
    });
    b.emit(Op::Alloc { tile: t }, at(1));
    t
}

#[test]
fn addresses() {
    let assign = |addr| {
        body(|b, _| {
            let t = dynamic(b);
            let addr = b.index_const(addr);
            b.emit(Op::Assign { tile: t, element: None, addr }, at(2));
        })
    };
    expect(&assign(33), codes::TRAP_BAD_TILE_ADDRESS, at(2), "address 33 (alignment 32)");
    expect(&assign(-32), codes::TRAP_BAD_TILE_ADDRESS, at(2), "address -32");
    let mut sink = |_: &str| {};
    let mut launch = InterpreterLaunch {
        tensors: vec![TensorArg::empty(DType::I32, vec![4])],
        dims: vec![],
        scalars: vec![],
        options: Options { capacity: vec![(Loc::Vec, 64)], ..Options::default() },
        print: &mut sink,
    };
    assert!(run(&assign(32), &mut launch).is_ok());
    let trap = run(&assign(64), &mut launch).unwrap_err();
    assert_eq!(trap.code, codes::TRAP_BAD_TILE_ADDRESS);
    assert!(trap.message.contains("in a memory of 64 bytes"), "{}", trap.message);
    let k = body(|b, _| {
        let t = dynamic(b);
        let (t, zero) = (b.whole(t), b.index_const(0));
        b.tile_get(t, zero, zero, at(3));
    });
    expect(&k, codes::TRAP_UNASSIGNED_TILE, at(3), "`t`");
}

#[test]
fn bytes_that_are_not_observable() {
    let fixed = |b: &mut Builder, name: &str, ty| {
        let addr = AddrKind::Fixed(vec![0]);
        let tile = b.tile(TileData { name: name.into(), ty, count: 1, stages: 1, addr, hidden: false, span: at(1) });
        b.emit(Op::Alloc { tile }, at(1));
        b.whole(tile)
    };
    let k = body(|b, _| {
        let left = |dtype, cols| TileType { loc: Loc::Left, ..vec_ty(dtype, 16, cols) };
        let (x, y) = (fixed(b, "x", left(DType::F32, 16)), fixed(b, "y", left(DType::F16, 32)));
        let zero = b.index_const(0);
        let value = b.float_const(DType::F32, 1.0);
        b.emit(Op::TileSet { tile: x, row: zero, col: zero, value }, at(2));
        b.tile_get(x, zero, zero, at(3));
        b.tile_get(y, zero, zero, at(4));
    });
    expect(&k, codes::TRAP_TYPE_CONFUSED_BYTES, at(4), "is read where Left<f32, 16, 16> was written");
    let k = body(|b, _| {
        let (x, m) = (fixed(b, "x", vec_ty(DType::U8, 1, 32)), fixed(b, "m", vec_ty(DType::Bool, 1, 256)));
        let zero = b.index_const(0);
        let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::U8), bits: 1 });
        b.emit(Op::TileSet { tile: x, row: zero, col: zero, value }, at(2));
        b.tile_get(m, zero, zero, at(3));
    });
    expect(&k, codes::TRAP_TYPE_CONFUSED_BYTES, at(3), "plain data was written");
}

#[test]
fn failed_checks_show_their_numbers() {
    let k = body(|b, out| {
        let zero = b.index_const(0);
        let v = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 9 });
        b.emit(Op::Store { tensor: out, offset: zero, value: v }, at(1));
        let x = b.load(out, zero, at(1));
        let ok = b.compare(CmpOp::Lt, x, v, at(2));
        let data = CheckData {
            code: codes::TRAP_TENSOR_OUT_OF_BOUNDS,
            message: "{0} is not below {1}, it is {0}".into(),
            span: at(77),
            help: Some("less than {1}".into()),
        };
        assert!(b.check(ok, data.clone(), vec![x, v], at(3)));
        let yes = b.bool_const(true);
        assert!(!b.check(yes, data, vec![], at(4)));
    });
    let trap = trap_of(&k);
    assert_eq!((trap.code, trap.span), (codes::TRAP_TENSOR_OUT_OF_BOUNDS, at(77)));
    assert_eq!((trap.message.as_str(), trap.help.as_deref()), ("9 is not below 9, it is 9", Some("less than 9")));
    assert_eq!(trap.block, Some(vec![]));
}

#[test]
fn fuel_and_memory() {
    let forever = body(|b, _| {
        b.while_loop(at(1), |b, _| b.bool_const(true), |_, _| {});
    });
    let mut sink = |_: &str| {};
    let mut launch = InterpreterLaunch {
        tensors: vec![TensorArg::empty(DType::I32, vec![4])],
        dims: vec![],
        scalars: vec![],
        options: Options { fuel: Some(1000), ..Options::default() },
        print: &mut sink,
    };
    let trap = run(&forever, &mut launch).unwrap_err();
    assert_eq!((trap.code, trap.span), (codes::TRAP_OUT_OF_FUEL, at(1)));
    // Blocks that do nothing count as well.
    let text = "kernel \"k\" target \"a2a3\"\nprologue {\n v0: index = const 4000000000\n}\n\
                grid [v1: index \"i\" < v0]\nbody {\n}\n";
    let blocks = ptoc_ir::tile::text::parse(text, ptoc_diagnostics::FileId(0)).unwrap();
    assert_eq!(
        run(&blocks, &mut InterpreterLaunch { tensors: vec![], ..launch }).unwrap_err().code,
        codes::TRAP_OUT_OF_FUEL
    );
    let huge = body(|b, _| {
        alloc(b, "t", vec_ty(DType::I32, 1 << 20, 1 << 14));
    });
    expect(&huge, codes::TRAP_MEMORY_LIMIT, at(901), "`t`");
    let far = body(|b, _| {
        let t = dynamic(b);
        let addr = b.index_const(1 << 60);
        b.emit(Op::Assign { tile: t, element: None, addr }, at(2));
        let (t, zero) = (b.whole(t), b.index_const(0));
        b.tile_get(t, zero, zero, at(3));
    });
    expect(&far, codes::TRAP_MEMORY_LIMIT, at(3), "`t`");
    // An extent that no memory holds.
    let trap = run_with(&add_kernel(), vec![TensorArg::empty(DType::F32, vec![]); 3], &[1 << 40, 1 << 40]).unwrap_err();
    assert_eq!(trap.code, codes::TRAP_MEMORY_LIMIT);
}

#[test]
fn launches_that_do_not_fit() {
    let k = add_kernel();
    let t = |m: u64, n: u64| arg(DType::F32, &[m, n], &vec![0; (m * n) as usize]);
    let cases: [(Vec<TensorArg>, &[i64], &str); 6] = [
        (vec![t(2, 2), t(2, 2)], &[2, 2], "has 3 tensors, the launch 2"),
        (vec![t(2, 2), t(2, 3), t(2, 2)], &[2, 2], "tensor b is f32[2, 2], the launch gives f32[2, 3]"),
        (vec![t(2, 2), t(2, 2), t(2, 2)], &[2], "2 dimensions, the launch 1"),
        (vec![t(2, 2), t(2, 2), t(2, 2)], &[2, -1], "dimension N is -1"),
        (vec![t(2, 2), arg(DType::I32, &[2, 2], &[0; 4]), t(2, 2)], &[2, 2], "the launch gives i32"),
        (
            vec![t(2, 2), TensorArg { data: vec![0; 3], ..t(2, 2) }, t(2, 2)],
            &[2, 2],
            "has 16 bytes, the launch gives 3",
        ),
    ];
    for (tensors, dims, text) in cases {
        let trap = run_with(&k, tensors, dims).unwrap_err();
        assert_eq!(trap.code, codes::TRAP_LAUNCH_MISMATCH, "{}", trap.message);
        assert!(trap.message.contains(text), "{} / {text}", trap.message);
    }
}

#[test]
fn races_between_blocks() {
    let kernel = |read: bool| {
        let mut b = Builder::new("k", at(0), "a2a3");
        let out = tensor(&mut b, "out", DType::I32, TensorDir::InOut, &[4]);
        let n = b.index_const(2);
        let i = b.grid_dim("i", n, at(1));
        b.begin_body();
        let zero = b.index_const(0);
        let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 9 });
        if read {
            let one = b.index_const(1);
            let other = b.sub(one, i, at(2));
            b.load(out, other, at(2));
            b.emit(Op::Store { tensor: out, offset: i, value }, at(3));
        } else {
            b.emit(Op::Store { tensor: out, offset: zero, value }, at(3));
        }
        b.finish()
    };
    let go = |k: &Kernel| run_with(k, vec![arg(DType::I32, &[4], &[0; 4])], &[]).unwrap_err();
    let trap = go(&kernel(false));
    assert_eq!((trap.code, trap.span, trap.block), (codes::TRAP_BLOCK_RACE, at(3), Some(vec![1])));
    assert!(trap.message.contains("write of out[0] by block 1, which block 0 uses as well"), "{}", trap.message);
    let trap = go(&kernel(true));
    assert_eq!((trap.code, trap.span), (codes::TRAP_BLOCK_RACE, at(2)));
}

#[test]
fn outputs_that_stay_unwritten_are_reported() {
    let k = body(|b, out| {
        let one = b.index_const(1);
        let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 9 });
        b.emit(Op::Store { tensor: out, offset: one, value }, at(3));
    });
    let (outcome, _) = run_with(&k, vec![TensorArg::empty(DType::I32, vec![4])], &[]).unwrap();
    assert_eq!((outcome.unwritten[0].count, &outcome.unwritten[0].first[..]), (3, &[0u64][..]));
}

#[test]
fn scratch_is_poison_in_every_block() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let n = b.index_const(2);
    let scratch = tensor(&mut b, "tmp", DType::I32, TensorDir::Scratch, &[4]);
    let i = b.grid_dim("i", n, at(1));
    b.begin_body();
    let zero = b.index_const(0);
    let first = b.compare(CmpOp::Eq, i, zero, at(2));
    let value = b.constant(ptoc_ir::tile::Const { ty: Ty::D(DType::I32), bits: 9 });
    b.if_else(first, at(2), |b| b.emit(Op::Store { tensor: scratch, offset: zero, value }, at(3)), |_| {});
    b.load(scratch, zero, at(4));
    let trap = run_with(&b.finish(), vec![], &[]).unwrap_err();
    assert_eq!((trap.code, trap.block), (codes::TRAP_POISON_READ_TENSOR, Some(vec![1])));
}

#[test]
fn invalid_ir_is_not_run() {
    let mut k = body(|_, _| {});
    k.body.push(ptoc_ir::tile::Stmt { op: Op::Break(cranelift_entity::EntityRef::new(0)), span: at(5) });
    expect(&k, codes::TRAP_INVALID_IR, at(5), "E0808");
}

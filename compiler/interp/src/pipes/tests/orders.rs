//! Orders: what may come when.

use super::{kernel, launch, orders, pipes};
use crate::{InterpreterLaunch, Options, Order, TensorArg, run};
use ptoc_ir::tile::{AddrKind, Op, Operand};
use ptoc_tensor::DType;

/// Values and addresses are those of the moment of issue, in every order.
#[test]
fn operands_are_captured() {
    let script = "\
tile a 0x0 0x100
tile b 0x200 0x300
event full MTE2 V 2
event ready V MTE3 2
for j 2 {
mod k j 2
load a[k] j
set full[k]
wait full[k]
muls b[k] a[k]
set ready[k]
wait ready[k]
store j b[k]
}";
    let fixed = kernel(script);
    let (result, bits, _) = launch(&fixed, None);
    result.expect("a run");
    // The same with addresses that are bound in each iteration.
    let mut dynamic = kernel(script);
    let tile = dynamic.tiles.keys().next().expect("a tile");
    dynamic.tiles[tile].addr = AddrKind::Dynamic;
    dynamic.tiles[tile].count = 1;
    let address =
        dynamic.values.push(ptoc_ir::tile::ValueData { ty: ptoc_ir::tile::Ty::Index, name: None, span: dynamic.span });
    for stmt in &mut dynamic.body {
        let Op::For(x) = &mut stmt.op else { continue };
        for stmt in &mut x.body {
            if let Op::Inst(inst) = &mut stmt.op {
                for operand in &mut inst.operands {
                    if let Operand::Tile(t) = operand
                        && t.tile == tile
                    {
                        t.element = None;
                    }
                }
            }
        }
        let (span, index) = (dynamic.span, x.index);
        let step = ptoc_ir::tile::Value::from_u32(1);
        // 64 * j floats further: v1 is 64, and an f32 has 4 bytes; 256 j = 64 * (j * 4).
        let four = dynamic.values.push(ptoc_ir::tile::ValueData { ty: ptoc_ir::tile::Ty::Index, name: None, span });
        let product = dynamic.values.push(ptoc_ir::tile::ValueData { ty: ptoc_ir::tile::Ty::Index, name: None, span });
        let ops = [
            Op::Const { dst: four, value: ptoc_ir::tile::Const::index(256) },
            Op::Binary { dst: address, op: ptoc_isa::BinOp::Mul, a: index, b: four },
            Op::Binary { dst: product, op: ptoc_isa::BinOp::Add, a: address, b: step },
            Op::Assign { tile, element: None, addr: address },
        ];
        for op in ops.into_iter().rev() {
            x.body.insert(0, ptoc_ir::tile::Stmt { op, span });
        }
    }
    for k in [&fixed, &dynamic] {
        for order in orders() {
            let (result, data, _) = launch(k, Some(pipes(order)));
            result.unwrap_or_else(|t| panic!("{order:?}: {}", t.message));
            assert_eq!(data, bits, "{order:?}");
        }
    }
}

/// As late as possible is late: a store that nobody waits for is not yet done when S reads what it leaves.
#[test]
fn late_is_late() {
    let k = kernel("tile a 0x0\ntile b 0x100\nevent e MTE2 S\nload a 0\nload b 1\nset e\nwait e\nprint a");
    for order in orders() {
        let (result, _, printed) = launch(&k, Some(pipes(order)));
        result.expect("a run");
        assert!(printed.starts_with("[[0, 1"), "{printed}");
    }
}

#[test]
fn seeds_are_orders() {
    // Racing stores of which the last one wins.
    let k = kernel(
        "tile a 0x0\ntile b 0x100\nevent e MTE2 MTE3\nevent f MTE2 FIX\nload a 0\nload b 1\nset e\nwait e\nstore 0 a",
    );
    let mut launch = InterpreterLaunch {
        tensors: vec![TensorArg { dtype: DType::F32, shape: vec![1024], data: vec![0; 4096] }; 2],
        dims: Vec::new(),
        scalars: Vec::new(),
        options: Options { pipes: Some(pipes(Order::Random(3))), ..Options::default() },
        print: &mut |_| {},
    };
    run(&k, &mut launch).expect("a run");
}

/// Bounds and poison are reported as without pipes, in every order.
#[test]
fn other_traps() {
    let poison = kernel("tile a 0x0\ntile b 0x100\nmuls b a");
    let outside = kernel("tile a 0x0\nload a 16");
    for (k, code) in [(&poison, "PA-1004"), (&outside, "PA-1001")] {
        let plain = launch(k, None).0.expect_err("a trap");
        for order in orders() {
            let trap = launch(k, Some(pipes(order))).0.expect_err("a trap");
            assert_eq!(
                (trap.code, &trap.message, trap.span),
                (plain.code, &plain.message, plain.span),
                "{order:?} {code}"
            );
        }
    }
}

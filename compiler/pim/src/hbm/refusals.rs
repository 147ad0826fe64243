//! What an HBM-PIM unit does not do, whatever the sizes: the words for it, and a look at a kernel whose sizes are not
//! known.

use super::contraction;
use crate::advice;
use ptoc_diagnostics::{Diagnostic, Span, codes};
use ptoc_ir::tile::{Inst, Kernel, Op, Operand, Region, Tile};
use ptoc_isa::{BinOp, Expr, Order, Reduce, Sem, TileType, UnOp};
use ptoc_tensor::DType;

/// The unit has nothing for this.
pub(super) fn cannot(kernel: &Kernel, span: Span, message: String) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(codes::UNIT_CANNOT, span, message)
            .with_label("no instruction of the unit")
            .with_note("a unit adds and multiplies 16 lanes of f16, and takes their max with 0; every operation rounds")
            .with_help(advice::host(kernel)),
    )
}

/// There is no such instruction.
pub(super) fn lacks(kernel: &Kernel, span: Span, name: &str) -> Box<Diagnostic> {
    cannot(kernel, span, format!("an HBM-PIM unit has no {name}"))
}

/// A nest of loops over elements, which TLOAD and TSTORE may do as well.
pub(super) fn no_copy(kernel: &Kernel, span: Span) -> Box<Diagnostic> {
    let message = "an HBM-PIM unit has no `copy` of element by element";
    Box::new(
        Diagnostic::error(codes::UNIT_CANNOT, span, message)
            .with_label("no instruction of the unit")
            .with_note("a unit reads and writes bursts of 16 elements of its own banks")
            .with_help(format!(
                "where rows stay rows, copy by a tile: `TSTORE(to, Vec(from))`; or {}",
                advice::host(kernel)
            )),
    )
}

/// A unit's MAD and MAC round the product.
pub(super) fn no_fused(kernel: &Kernel, span: Span, name: &str) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(codes::UNIT_CANNOT, span, format!("an HBM-PIM unit has no {name}"))
            .with_label("no instruction of the unit")
            .with_note(format!("{name} rounds once; a unit's MAC rounds the product and then the sum"))
            .with_help(format!(
                "write `z + a * s` if two roundings will do, which units have; or {}",
                advice::host(kernel)
            )),
    )
}

/// Operations that the units lack, with what they would do instead.
pub(super) fn cannot_combine(kernel: &Kernel, op: BinOp, name: &str, span: Span) -> Box<Diagnostic> {
    if !matches!(op, BinOp::Max | BinOp::Min) {
        return lacks(kernel, span, name);
    }
    let (word, instead) = match op {
        BinOp::Max => ("max", "a + max(b - a, 0.0)"),
        _ => ("min", "a - max(a - b, 0.0)"),
    };
    let message = format!("an HBM-PIM unit has no {name}");
    Box::new(
        Diagnostic::error(codes::UNIT_CANNOT, span, message)
            .with_label("no instruction of the unit")
            .with_note(format!(
                "a unit compares with 0 alone, by MOV with relu; `{instead}` is `{word}(a, b)` only where no \
                 operation rounds, and may be NaN for infinities"
            ))
            .with_help(format!("write `{instead}` if that will do, or {}", advice::host(kernel))),
    )
}

/// The first statement that every block reaches and that no unit does, whatever the sizes. What stands under a
/// condition may never happen, so only the sizes of a launch tell.
pub fn at_any_size(kernel: &Kernel) -> Option<Box<Diagnostic>> {
    in_region(kernel, &kernel.body)
}

/// Whether the result has several columns, which lie in lanes whatever the sizes: nothing turns tiles of the kernel.
fn several_columns(kernel: &Kernel, inst: &Inst) -> bool {
    let several = |ty: &TileType| ty.cols > 1 && ty.order == Order::Nd;
    matches!(inst.operands.first(), Some(Operand::Tile(t)) if several(&kernel.tiles[t.tile].ty))
        && contraction::turns_nothing(kernel)
}

/// Whether a tile is certain to hold numbers of an array, whoever wrote it last, and not one number in all lanes: which
/// TEXPANDS makes, and moves and sums of a single row keep.
fn varies(kernel: &Kernel, tile: Tile) -> bool {
    let mut writers = Vec::new();
    written_by(&kernel.body, tile, &mut writers);
    let certain = |inst: &&Inst| {
        matches!(
            inst.instr.get().sem,
            Sem::Load
                | Sem::Matmul
                | Sem::Unary(_)
                | Sem::Binary(_)
                | Sem::BinaryScalar(_)
                | Sem::ColExpandBinary(_)
                | Sem::RowExpandBinary(_)
        )
    };
    !writers.is_empty() && writers.iter().all(certain)
}

/// The instructions whose result is the tile.
fn written_by<'k>(region: &'k Region, tile: Tile, out: &mut Vec<&'k Inst>) {
    for stmt in region {
        if let Op::Inst(inst) = &stmt.op
            && matches!(inst.operands.first(), Some(Operand::Tile(t)) if t.tile == tile)
        {
            out.push(inst);
        }
        stmt.op.regions().for_each(|r| written_by(r, tile, out));
    }
}

fn in_region(kernel: &Kernel, region: &Region) -> Option<Box<Diagnostic>> {
    region.iter().find_map(|stmt| match &stmt.op {
        Op::For(x) => in_region(kernel, &x.body),
        Op::Scope(x) => in_region(kernel, &x.body),
        Op::Inst(inst) => instruction(kernel, inst, stmt.span),
        Op::Copy(_) => Some(no_copy(kernel, stmt.span)),
        Op::Mma(_) => Some(lacks(kernel, stmt.span, "matrix product")),
        Op::Print { .. } => Some(lacks(kernel, stmt.span, "`print`")),
        _ => None,
    })
}

fn instruction(kernel: &Kernel, inst: &Inst, span: Span) -> Option<Box<Diagnostic>> {
    let row = inst.instr.get();
    let tiles = inst.operands.iter().filter_map(|o| match o {
        Operand::Tile(t) => Some(&kernel.tiles[t.tile]),
        _ => None,
    });
    if let Some(tile) = tiles.clone().find(|t| t.ty.dtype != DType::F16) {
        let name = if tile.hidden { "this value".into() } else { format!("`{}`", tile.name) };
        let message = format!("{name} is {}, and HBM-PIM's units compute in f16", tile.ty.dtype);
        return Some(cannot(kernel, span, message));
    }
    if matches!(row.sem.expr(), Some(Expr::Fma(..))) {
        return Some(no_fused(kernel, span, row.name));
    }
    if let (Sem::Binary(BinOp::Max), [_, a, b]) = (row.sem, &inst.operands[..])
        && [a, b].iter().all(|o| matches!(o, Operand::Tile(t) if varies(kernel, t.tile)))
    {
        return Some(cannot_combine(kernel, BinOp::Max, row.name, span));
    }
    // A column of elements lies in lanes, and lines beside it are multiplied with them as scalars alone.
    if matches!(row.sem, Sem::RowExpandBinary(op) if op != BinOp::Mul) && several_columns(kernel, inst) {
        return Some(lacks(kernel, span, &format!("{}: a lane does not reach other lanes", row.name)));
    }
    match row.sem {
        Sem::Binary(op) | Sem::BinaryScalar(op) | Sem::ColExpandBinary(op) | Sem::RowExpandBinary(op) => match op {
            // A maximum with 0 is one, which only its operands tell.
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Max => None,
            _ => Some(cannot_combine(kernel, op, row.name, span)),
        },
        Sem::Unary(UnOp::Neg | UnOp::Relu)
        | Sem::Load
        | Sem::Store
        | Sem::Expand
        | Sem::Move
        | Sem::Transpose
        | Sem::ColExpand
        | Sem::RowExpand
        | Sem::Matmul
        | Sem::MatmulAcc
        | Sem::ColReduce(Reduce::Sum)
        | Sem::RowReduce(Reduce::Sum) => None,
        _ => Some(lacks(kernel, span, row.name)),
    }
}

//! Which statements a monitor is told of, and what it is told: one list, which the lowering and the monitor read.

use super::tensors::ElementUse;
use cranelift_entity::EntitySet;
use ptoc_ir::tile::{
    Elem, Kernel, NestAccess, Op, Operand, PrintPart, Region, Stmt, TensorDir, TensorId, TileRef, Value,
};
use ptoc_isa::{Role, Sem};
use ptoc_tensor::DType;

/// The statements of a kernel's body that touch memory, in the order of the text: a site is a statement's number among
/// them.
pub fn sites(kernel: &Kernel) -> Vec<&Stmt> {
    fn walk<'k>(region: &'k Region, out: &mut Vec<&'k Stmt>) {
        for stmt in region {
            if is_watched(&stmt.op) {
                out.push(stmt);
            }
            stmt.op.regions().for_each(|region| walk(region, out));
        }
    }
    let mut out = Vec::new();
    walk(&kernel.body, &mut out);
    out
}

/// Whether the statement touches memory, or says where a tile is.
fn is_watched(op: &Op) -> bool {
    match op {
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::TileGet { .. }
        | Op::TileSet { .. }
        | Op::Alloc { .. }
        | Op::Assign { .. }
        | Op::Copy(_)
        | Op::Mma(_) => true,
        Op::Inst(inst) => !matches!(inst.instr.get().sem, Sem::Assign | Sem::Prefetch),
        Op::Print { parts } => parts.iter().any(|p| matches!(p, PrintPart::Tile(_))),
        _ => false,
    }
}

/// The values that a monitor knows by itself: those of the prologue, places in the grid, constants.
pub fn known(kernel: &Kernel) -> EntitySet<Value> {
    fn constants(region: &Region, out: &mut EntitySet<Value>) {
        for stmt in region {
            if let Op::Const { dst, .. } = stmt.op {
                out.insert(dst);
            }
            stmt.op.regions().for_each(|region| constants(region, out));
        }
    }
    let mut out = EntitySet::with_capacity(kernel.values.len());
    constants(&kernel.body, &mut out);
    let arguments = kernel.dims.values().map(|d| d.value).chain(kernel.scalars.iter().map(|s| s.value));
    let prologue = kernel.prologue.iter().filter_map(|stmt| stmt.op.def());
    let grid = kernel.grid.iter().map(|d| d.index);
    for value in arguments.chain(prologue).chain(grid) {
        out.insert(value);
    }
    out
}

/// The values that a monitor is told when the statement is executed, in this order.
pub fn arguments(stmt: &Stmt, known: &EntitySet<Value>) -> Vec<Value> {
    let mut out = Vec::new();
    let mut add = |value: Value| {
        if !known.contains(value) && !out.contains(&value) {
            out.push(value);
        }
    };
    match &stmt.op {
        // What is moved says nothing about where.
        Op::Load { offset, .. } | Op::Store { offset, .. } | Op::Atomic { offset, .. } => add(*offset),
        Op::TileGet { tile, row, col, .. } | Op::TileSet { tile, row, col, .. } => {
            tile.for_each_value(&mut add);
            add(*row);
            add(*col);
        }
        Op::Print { parts } => parts.iter().for_each(|part| {
            if let PrintPart::Tile(tile) = part {
                tile.for_each_value(&mut add);
            }
        }),
        op => op.for_each_use(&mut add),
    }
    out
}

/// How a statement uses a tensor: reads and writes of elements of that dtype (`None`: the tensor's own).
pub(super) fn tensor_uses(stmt: &Stmt, tensor: TensorId) -> Vec<(ElementUse, Option<DType>)> {
    let mut out = Vec::new();
    let mut add = |kind: ElementUse, of: TensorId, dtype: Option<DType>| {
        if of == tensor {
            out.push((kind, dtype));
        }
    };
    let mut side = |kind: ElementUse, access: &NestAccess| {
        if let NestAccess::Tensor { tensor, elem, .. } = access {
            let bytes = if let Elem::Whole(dtype) = elem { *dtype } else { DType::U8 };
            add(kind, *tensor, Some(bytes));
        }
        access.tables().for_each(|t| add(ElementUse::Read, t, None));
    };
    match &stmt.op {
        Op::Load { tensor, .. } => add(ElementUse::Read, *tensor, None),
        Op::Store { tensor, .. } => add(ElementUse::Write, *tensor, None),
        Op::Atomic { tensor, .. } => add(ElementUse::Atomic, *tensor, None),
        Op::Copy(copy) => {
            side(ElementUse::Read, &copy.src);
            side(ElementUse::Write, &copy.dst);
        }
        Op::Mma(mma) => {
            [&mma.a, &mma.b, &mma.acc].into_iter().for_each(|access| side(ElementUse::Read, access));
            side(ElementUse::Write, &mma.acc);
        }
        Op::Inst(inst) => {
            let store = if inst.attrs.atomic.is_some() { ElementUse::Atomic } else { ElementUse::Write };
            for (spec, operand) in inst.instr.get().operands.iter().zip(&inst.operands) {
                if let Operand::View(v) = operand {
                    add(if spec.role == Role::Dst { store } else { ElementUse::Read }, v.tensor, None);
                }
            }
        }
        _ => {}
    }
    out
}

/// Whether the kernel updates elements of a tensor atomically.
pub fn updates(kernel: &Kernel, tensor: TensorId) -> bool {
    sites(kernel).into_iter().any(|stmt| tensor_uses(stmt, tensor).iter().any(|(kind, _)| *kind == ElementUse::Atomic))
}

/// Memory of the running block that says where a statement goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Data {
    /// Elements of a tile: indices.
    Tile(TileRef),
    /// A buffer of the block in global memory: a table.
    Scratch(TensorId),
}

/// What a monitor may look at when the statement is executed, in this order.
pub fn data(kernel: &Kernel, stmt: &Stmt) -> Vec<Data> {
    let tables = |sides: &[&NestAccess]| {
        let tables = sides.iter().flat_map(|side| side.tables());
        tables.filter(|t| kernel.tensors[*t].dir == TensorDir::Scratch).map(Data::Scratch).collect()
    };
    match &stmt.op {
        Op::Copy(copy) => tables(&[&copy.dst, &copy.src]),
        Op::Mma(mma) => tables(&[&mma.acc, &mma.a, &mma.b]),
        Op::Inst(inst) => {
            let tile = |k: usize| match inst.operands.get(k) {
                Some(Operand::Tile(t)) => Some(Data::Tile(*t)),
                _ => None,
            };
            match inst.instr.get().sem {
                Sem::GatherRows | Sem::ScatterRows | Sem::Gather | Sem::ScatterTo => tile(2).into_iter().collect(),
                Sem::Cells(_) => (1..inst.operands.len()).filter_map(tile).collect(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    }
}

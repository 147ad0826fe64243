//! The table of routines that emitted code calls: symbols, signatures and addresses. Their code is `ptoc-kernels`.

use crate::effects::dtype;
use cranelift_codegen::ir::types::{I64, Type};
use ptoc_ir::loops::{BinOp, MemTy, Module};
use ptoc_kernels::{self as kernels, LINE, PRODUCT_PARAMS, ReduceOp};

/// Bytes of a module's arena up to where a routine's panels begin.
pub(crate) fn arena(module: &Module) -> u64 {
    module.arena.next_multiple_of(LINE as u64)
}

/// A routine. All take i64 only (addresses too) and give nothing, or one i64.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Routine {
    /// Rows of bytes: destination, source, rows, bytes of a row, bytes from row to row of both, whether past the
    /// caches.
    Copy,
    /// Elements of 1, 2, 4 or 8 bytes: destination, source, rows, columns, bytes from row to row of both, from column
    /// to column of both, whether past the caches.
    Move(u32),
    /// f16 to f32: destination, source, rows, columns, bytes from row to row of both.
    FromF16,
    /// f32 to f16, to nearest even: like `FromF16`.
    ToF16,
    /// Matrix product: see [`ptoc_kernels::product`].
    Matmul,
    /// Reduction of rows: see [`ptoc_kernels::reduce`].
    Reduce(BinOp, MemTy),
    /// Rows or columns, each element joined with all before it: see [`ptoc_kernels::scan`].
    Scan(BinOp, MemTy),
    /// Elements of 1, 2, 4 or 8 bytes of a table: see [`ptoc_kernels::gather`].
    Gather(u32),
    /// The same where rows may stay in the table: see [`ptoc_kernels::locate`].
    Locate(u32),
    /// Lists of records with f16 or f32 values, put in order: see [`ptoc_kernels::sort`].
    Sort(MemTy),
    /// Four lists of them merged: see [`ptoc_kernels::merge`].
    Merge(MemTy),
    /// Neighbouring lists: see [`ptoc_kernels::merge_runs`].
    MergeRuns(MemTy),
}

/// Where code that calls routines will run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Available {
    /// On this machine.
    Here,
    /// On one that has AVX2, FMA and F16C.
    Wide,
    /// On any that is supported.
    Least,
}

impl Available {
    /// Whether a routine may stand for a nest that could be emitted as well.
    ///
    /// Code for other machines copies rows itself: what needs no routine is linked without the runtime's library.
    pub(crate) fn moves(self, routine: Routine) -> bool {
        match (self, routine) {
            (Available::Here, _) => routine.address().is_some(),
            (_, Routine::Copy) => false,
            (_, Routine::FromF16 | Routine::ToF16) => self == Available::Wide,
            _ => true,
        }
    }

    /// Whether there are vectors wider than Cranelift's.
    pub(crate) fn wide(self) -> bool {
        match self {
            Available::Here => kernels::wide(),
            Available::Wide => true,
            Available::Least => false,
        }
    }
}

impl Routine {
    /// Its symbol.
    pub(crate) fn name(self) -> String {
        match self {
            Routine::Copy => "ptoc_copy".into(),
            Routine::Move(size) => format!("ptoc_move_{size}"),
            Routine::FromF16 => "ptoc_from_f16".into(),
            Routine::ToF16 => "ptoc_to_f16".into(),
            Routine::Matmul => "ptoc_matmul".into(),
            Routine::Gather(size) => format!("ptoc_gather_{size}"),
            Routine::Locate(size) => format!("ptoc_locate_{size}"),
            Routine::Reduce(op, ty) => format!("ptoc_reduce_{}_{}", op.name(), ty.name()),
            Routine::Scan(op, ty) => format!("ptoc_scan_{}_{}", op.name(), ty.name()),
            Routine::Sort(ty) => format!("ptoc_sort_{}", ty.name()),
            Routine::Merge(ty) => format!("ptoc_merge_{}", ty.name()),
            Routine::MergeRuns(ty) => format!("ptoc_merge_runs_{}", ty.name()),
        }
    }

    /// Its parameters.
    pub(crate) fn params(self) -> &'static [Type] {
        match self {
            Routine::FromF16 | Routine::ToF16 | Routine::MergeRuns(_) => &[I64; 6],
            Routine::Copy | Routine::Reduce(..) => &[I64; 7],
            Routine::Scan(..) => &[I64; 10],
            Routine::Move(_) => &[I64; 9],
            Routine::Matmul => &[I64; PRODUCT_PARAMS],
            Routine::Gather(_) | Routine::Sort(_) => &[I64; 11],
            Routine::Merge(_) => &[I64; 14],
            Routine::Locate(_) => &[I64; 16],
        }
    }

    /// What it gives.
    pub(crate) fn results(self) -> &'static [Type] {
        if let Routine::Gather(_) | Routine::Locate(_) = self { &[I64] } else { &[] }
    }

    /// Every routine.
    pub(crate) fn all() -> Vec<Routine> {
        let mut all = vec![Routine::Copy, Routine::FromF16, Routine::ToF16, Routine::Matmul];
        for size in [1, 2, 4, 8] {
            all.extend([Routine::Move(size), Routine::Gather(size), Routine::Locate(size)]);
        }
        for ty in [MemTy::F16, MemTy::F32] {
            all.extend([Routine::Sort(ty), Routine::Merge(ty), Routine::MergeRuns(ty)]);
        }
        let reduced = MemTy::ALL.into_iter().filter(|ty| *ty != MemTy::Bool);
        all.extend(reduced.flat_map(|ty| [BinOp::Add, BinOp::Max, BinOp::Min].map(|op| Routine::Reduce(op, ty))));
        let wide = [MemTy::I32, MemTy::I64].into_iter();
        all.extend(wide.flat_map(|ty| [BinOp::MaxU, BinOp::MinU].map(|op| Routine::Reduce(op, ty))));
        for ty in [MemTy::F32, MemTy::F16, MemTy::I32] {
            let ops = [BinOp::Add, BinOp::Max, BinOp::Min, BinOp::MaxU, BinOp::MinU].into_iter();
            all.extend(ops.filter(|op| scan(*op, ty).is_some()).map(|op| Routine::Scan(op, ty)));
        }
        all
    }

    /// The routine of that name, at its address.
    pub(crate) fn find(name: &str) -> Option<*const u8> {
        Routine::all().into_iter().find(|r| r.name() == name).and_then(Routine::address)
    }

    /// Its code for the machine at hand; none if the machine lacks the instructions.
    pub(crate) fn address(self) -> Option<*const u8> {
        match self {
            Routine::Copy => Some(kernels::copy()),
            Routine::Move(size) => kernels::strided(size),
            Routine::Gather(size) => kernels::gather(size),
            Routine::Locate(size) => kernels::locate(size),
            Routine::FromF16 => kernels::from_f16(),
            Routine::ToF16 => kernels::to_f16(),
            Routine::Matmul => Some(kernels::product()),
            Routine::Reduce(op, ty) => reduction(op, ty),
            Routine::Scan(op, ty) => scan(op, ty),
            Routine::Sort(ty) => Some(kernels::sort(ty == MemTy::F16)),
            Routine::Merge(ty) => Some(kernels::merge(ty == MemTy::F16)),
            Routine::MergeRuns(ty) => Some(kernels::merge_runs(ty == MemTy::F16)),
        }
    }
}

/// The reduction of elements of this type.
fn reduction(op: BinOp, ty: MemTy) -> Option<*const u8> {
    let (op, unsigned) = joined(op)?;
    kernels::reduce(op, dtype(ty, unsigned))
}

/// The scan of elements of this type.
fn scan(op: BinOp, ty: MemTy) -> Option<*const u8> {
    let (op, unsigned) = joined(op)?;
    // Floats have no operators without a sign.
    if unsigned && ty != MemTy::I32 { None } else { kernels::scan(op, dtype(ty, unsigned)) }
}

/// What joins elements, and whether they are numbers without a sign; integers have one but for the operators that say
/// otherwise.
fn joined(op: BinOp) -> Option<(ReduceOp, bool)> {
    Some(match op {
        BinOp::Add => (ReduceOp::Add, false),
        BinOp::Max => (ReduceOp::Max, false),
        BinOp::Min => (ReduceOp::Min, false),
        BinOp::MaxU => (ReduceOp::Max, true),
        BinOp::MinU => (ReduceOp::Min, true),
        _ => return None,
    })
}

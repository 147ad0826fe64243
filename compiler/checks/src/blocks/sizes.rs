//! Sizes of launches that are tried: small, with more than one block where that is possible, and with tiles that are
//! cut.

use super::space::KernelIndex;
use super::trial::Sizes;
use ptoc_ir::tile::{Const, Op, Region, ScalarParam, Ty, Value};
use ptoc_isa::BinOp;
use ptoc_tensor::DType;
use rustc_hash::FxHashSet;

/// Dimensions of which several numbers are tried.
const VARIED: usize = 8;
/// Scalar arguments of which several are tried.
const SCALARS: usize = 8;
/// Launches that are tried.
const MOST: usize = 96;

/// What is tried, the most promising first.
pub(super) fn candidates<'k>(code: &KernelIndex<'k>) -> impl Iterator<Item = Sizes> + use<'k> {
    let kernel = code.kernel;
    let mut axes: Vec<Vec<i64>> = Vec::new();
    for (n, dim) in kernel.dims.values().enumerate() {
        axes.push(if n < VARIED { of_dimension(code, dim.value) } else { vec![2] });
    }
    let mut varied = 0;
    for param in &kernel.scalars {
        axes.push(match (param.default, kernel.values[param.value].ty) {
            // The first means: by default.
            (Some(_), _) => vec![0],
            (None, Ty::Index) if varied < SCALARS => {
                varied += 1;
                vec![1, 2, 0, 3]
            }
            (None, _) => vec![1],
        });
    }
    // Of all combinations those whose positions are the lowest.
    let mut all: Vec<Vec<usize>> = vec![Vec::new()];
    for axis in axes.iter().filter(|axis| axis.len() > 1) {
        all = all.iter().flat_map(|at| (0..axis.len()).map(move |k| [&at[..], &[k]].concat())).collect();
        all.sort_by_key(|at| at.iter().sum::<usize>());
        all.truncate(MOST);
    }
    all.into_iter().map(move |at| {
        let mut at = at.into_iter();
        let mut numbers = axes.iter().map(|axis| axis[if axis.len() > 1 { at.next().unwrap_or(0) } else { 0 }]);
        let dims: Vec<i64> = numbers.by_ref().take(kernel.dims.len()).collect();
        let given = |(p, n): (&ScalarParam, i64)| p.default.is_none().then(|| bits(kernel.values[p.value].ty, n));
        Sizes { dims, scalars: kernel.scalars.iter().zip(numbers).map(given).collect() }
    })
}

/// A small number as a scalar.
fn bits(ty: Ty, n: i64) -> u64 {
    match ty {
        Ty::Index => Const::index(n).bits,
        Ty::D(d) if d.is_float() => ptoc_ir::scalar::convert(Ty::Index, ty, n as u64, ptoc_isa::RoundMode::Rint, true),
        Ty::D(DType::Bool) => u64::from(n != 0),
        Ty::D(_) => ptoc_ir::scalar::from_int(ty, i128::from(n)),
    }
}

fn of_dimension(code: &KernelIndex<'_>, dim: Value) -> Vec<i64> {
    let (mut by, mut of) = (FxHashSet::default(), FxHashSet::from_iter([dim]));
    divisors(code, &code.kernel.prologue, &mut of, &mut by);
    divisors(code, &code.kernel.body, &mut of, &mut by);
    let mut by: Vec<i64> = by.into_iter().filter(|n| (2..=512).contains(n)).collect();
    by.sort_unstable();
    let mut out = Vec::new();
    let mut push = |n: i64| {
        if !out.contains(&n) {
            out.push(n);
        }
    };
    for tile in by.iter().rev() {
        [tile + 1, 3 * tile + 1, *tile].into_iter().for_each(&mut push);
    }
    if let Some(tile) = by.last() {
        [1, 2 * tile, tile - 1, 2 * tile + 1, 4 * tile].into_iter().for_each(&mut push);
    }
    [2, 1, 3, 8, 4, 16, 64].into_iter().for_each(&mut push);
    out
}

/// The constants by which something is divided that depends on the dimension; `of` are the values that do.
fn divisors(code: &KernelIndex<'_>, region: &Region, of: &mut FxHashSet<Value>, out: &mut FxHashSet<i64>) {
    for stmt in region {
        if let Op::Binary { op: BinOp::Div | BinOp::Rem, a, b, .. } = stmt.op
            && of.contains(&a)
        {
            out.extend(code.defs.number(b));
        }
        if let Some(v) = stmt.op.def().filter(|_| stmt.op.is_pure()) {
            let mut depends = false;
            stmt.op.for_each_use(&mut |u| depends = depends || of.contains(&u));
            if depends {
                of.insert(v);
            }
        }
        stmt.op.regions().for_each(|r| divisors(code, r, of, out));
    }
}

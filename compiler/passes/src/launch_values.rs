//! Evaluates a kernel's prologue for a launch: the defaults of scalar arguments, the shapes of tensors, the grid. What
//! runs compiled code needs these before the code runs; the meaning is that of `ptoc_ir::scalar`, as everywhere.

use cranelift_entity::SecondaryMap;
use ptoc_ir::scalar;
use ptoc_ir::tile::{CheckId, Kernel, Op, Value};
use smol_str::SmolStr;

/// What a launch makes of the prologue.
#[derive(Clone, Debug, Default)]
pub struct LaunchValues {
    /// Bits of the scalar arguments in order, defaults filled in.
    pub scalars: Vec<u64>,
    /// Bits of every value of the prologue that is known.
    pub values: SecondaryMap<Value, Option<u64>>,
    /// The first check that fails, with its arguments' bits.
    pub failed: Option<(CheckId, Vec<u64>)>,
}

impl LaunchValues {
    /// An `index`.
    pub fn index(&self, value: Value) -> Option<i64> {
        self.values[value].map(|bits| bits as i64)
    }
}

/// Evaluates the prologue with the dimensions' values and the scalar arguments that are given, both in order. `Err` is
/// the name of an argument that is neither given nor has a default.
pub fn evaluate(kernel: &Kernel, dims: &[i64], given: &[Option<u64>]) -> Result<LaunchValues, SmolStr> {
    let mut values: SecondaryMap<Value, Option<u64>> = SecondaryMap::new();
    for (dim, value) in kernel.dims.values().zip(dims) {
        values[dim.value] = Some(*value as u64);
    }
    for (n, scalar) in kernel.scalars.iter().enumerate() {
        let bits = given.get(n).copied().flatten();
        if bits.is_none() && scalar.default.is_none() {
            return Err(scalar.name.clone());
        }
        values[scalar.value] = bits.map(|b| b & scalar::mask(kernel.values[scalar.value].ty));
    }
    let defaults = |values: &mut SecondaryMap<Value, Option<u64>>| {
        for s in &kernel.scalars {
            if values[s.value].is_none() {
                values[s.value] = s.default.and_then(|d| values[d]);
            }
        }
    };
    let mut failed = None;
    for stmt in &kernel.prologue {
        defaults(&mut values);
        if let Op::Check { cond, check, args } = &stmt.op {
            if values[*cond] == Some(0) && failed.is_none() {
                failed = Some((*check, args.iter().map(|a| values[*a].unwrap_or(0)).collect()));
            }
        } else if let Some(dst) = stmt.op.def() {
            values[dst] = pure(kernel, &stmt.op, &values);
        }
    }
    defaults(&mut values);
    let scalars = kernel.scalars.iter().map(|s| values[s.value].unwrap_or(0)).collect();
    Ok(LaunchValues { scalars, values, failed })
}

/// The result of a pure operation; `None` if an operand is not known.
fn pure(kernel: &Kernel, op: &Op, values: &SecondaryMap<Value, Option<u64>>) -> Option<u64> {
    let ty = |v: Value| kernel.values[v].ty;
    match *op {
        Op::Const { value, .. } => Some(value.bits),
        Op::Unary { op, a, .. } => scalar::unary(op, ty(a), values[a]?),
        Op::Binary { op, a, b, .. } => scalar::binary(op, ty(a), values[a]?, values[b]?),
        Op::Compare { op, a, b, .. } => Some(u64::from(scalar::compare(op, ty(a), values[a]?, values[b]?))),
        Op::Select { cond, a, b, .. } => values[if values[cond]? & 1 == 1 { a } else { b }],
        Op::Convert { dst, a, round, saturate } => {
            let (from, to) = (ty(a), ty(dst));
            Some(scalar::convert(from, to, values[a]?, round, scalar::saturates(from, to, saturate)))
        }
        Op::Bitcast { a, .. } => values[a],
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptoc_diagnostics::{Span, codes};
    use ptoc_ir::tile::{Builder, CheckData, Ty};
    use ptoc_isa::{BinOp, CmpOp, RoundMode, UnOp};
    use ptoc_tensor::DType;

    #[test]
    fn defaults_follow_dimensions() {
        let at = Span::default();
        let mut b = Builder::new("k", at, "a2a3");
        let d = b.dim("D", at);
        let scale = b.scalar_param("scale", Ty::D(DType::F32), at);
        let twice = b.scalar_param("twice", Ty::D(DType::F32), at);
        let needed = b.scalar_param("n", Ty::Index, at);
        let x = b.convert(d, Ty::D(DType::F32), RoundMode::Rint, false, at);
        let root = b.unary(UnOp::Sqrt, x, at);
        b.set_scalar_default(scale, root);
        let sum = b.binary(BinOp::Add, scale, scale, at);
        b.set_scalar_default(twice, sum);
        let three = b.index_const(3);
        let cond = b.compare(CmpOp::Lt, needed, three, at);
        let check = CheckData { code: codes::EMPTY_LOOP, message: String::new(), span: at, help: None };
        b.check(cond, check, vec![needed], at);
        b.begin_body();
        let k = b.finish();
        let f = |x: f32| u64::from(x.to_bits());
        let got = evaluate(&k, &[64], &[None, None, Some(2)]).unwrap();
        assert_eq!((got.scalars, got.failed), (vec![f(8.0), f(16.0), 2], None));
        let got = evaluate(&k, &[64], &[Some(f(0.5)), None, Some(7)]).unwrap();
        assert_eq!(got.scalars, [f(0.5), f(1.0), 7]);
        assert_eq!(got.failed.unwrap().1, [7]);
        assert_eq!(got.values[sum], Some(f(1.0)));
        assert_eq!(evaluate(&k, &[64], &[]), Err("n".into()));
    }

    impl PartialEq for LaunchValues {
        fn eq(&self, other: &LaunchValues) -> bool {
            (&self.scalars, &self.failed) == (&other.scalars, &other.failed)
        }
    }
}

//! Swizzles as operands.

use super::Op;
use super::args::Args;
use super::composition;
use crate::{Composed, Cx, ErrorKind, Int, LayoutError, Result, Swizzle, Value};

const OP: &str = "composition";

/// `outer` after `inner`, if that is one swizzle: shifts are equal, what `inner` changes `outer` does not read, and the
/// bits that exactly one of them reads are in a row. (The masks combine by XOR.)
pub fn compose_swizzles(outer: Swizzle, inner: Swizzle) -> Result<Swizzle> {
    if outer.is_identity() {
        return Ok(inner);
    }
    if inner.is_identity() {
        return Ok(outer);
    }
    let refuse =
        |message: String, help: &str| Err(LayoutError::new(ErrorKind::Domain, OP, message).in_arg(1).with_help(help));
    if outer.shift() != inner.shift() {
        let message = format!("{outer} and {inner} shift by {} and {}", outer.shift(), inner.shift());
        return refuse(message, "only swizzles with the same shift make one swizzle");
    }
    let shift = outer.shift();
    let target = |s: Swizzle| match shift >= 0 {
        true => s.source_mask() >> shift,
        false => s.source_mask() << -shift,
    };
    if target(inner) & outer.source_mask() != 0 {
        let message = format!("{inner} changes bits that {outer} reads");
        return refuse(message, "apply them one after the other");
    }
    let mask = outer.source_mask() ^ inner.source_mask();
    if mask == 0 {
        return Swizzle::new(0, 0, 0);
    }
    let low = mask.trailing_zeros();
    let bits = mask.count_ones();
    if mask >> low != (1i64 << bits) - 1 {
        let message = format!("together {outer} and {inner} move bits that are not in a row");
        return refuse(message, "apply them one after the other");
    }
    let base = i64::from(low) - i64::from(shift.max(0));
    Swizzle::new(i64::from(bits), base, i64::from(shift)).map_err(|e| e.of(OP))
}

/// Compositions with a swizzle in them.
pub(crate) fn compose(cx: &Cx, args: Args<'_>) -> Result<Value> {
    match (args.value(0)?, args.value(1)?) {
        (Value::Swizzle(s), Value::Layout(l)) => {
            Ok(Value::Composed(Composed { swizzle: *s, offset: Int::ZERO, layout: l.clone() }))
        }
        (Value::Swizzle(s), Value::Swizzle(t)) => Ok(Value::Swizzle(compose_swizzles(*s, *t)?)),
        (Value::Swizzle(s), Value::Composed(c)) => {
            Ok(Value::Composed(Composed { swizzle: compose_swizzles(*s, c.swizzle)?, ..c.clone() }))
        }
        (Value::Swizzle(_), _) => Err(args.wrong(1, "a layout or a swizzle")),
        (Value::Layout(a), Value::Composed(c)) if c.swizzle.is_identity() && c.offset.is(0) => {
            let tiler = crate::Tiler::Layout(c.layout.clone());
            Ok(Value::Layout(composition(cx, a, &tiler)?))
        }
        _ => {
            let got = args.value(1)?;
            let message = format!("a layout after {got} is no layout: strides do not follow XOR");
            Err(LayoutError::new(ErrorKind::Kind, OP, message)
                .in_arg(1)
                .with_help("a swizzle comes last: composition(swizzle, layout)"))
        }
    }
}

pub(crate) static OPS: &[Op] = &[
    Op {
        name: "swizzle",
        usage: "swizzle(Sw<B,M,S>, n)",
        doc: "The swizzled offset; of three numbers: the swizzle with these fields.",
        arity: (2, 3),
        eval: |_, v| {
            let args = Args::new("swizzle", v);
            if args.len() == 3 {
                let fields = (args.constant(0)?, args.constant(1)?, args.constant(2)?);
                return Ok(Value::Swizzle(Swizzle::new(fields.0, fields.1, fields.2)?));
            }
            let s = args.swizzle(0)?;
            match args.int(1)? {
                n if s.is_identity() => Ok(Value::Int(n.clone())),
                _ => Ok(Value::Int(Int::Const(s.apply(args.constant(1)?)))),
            }
        },
    },
    Op {
        name: "swizzle_layout",
        usage: "swizzle_layout(Sw<B,M,S>, offset, A)",
        doc: "The layout behind the swizzle: coordinate -> swizzle(offset + A(coordinate)).",
        arity: (3, 3),
        eval: |_, v| {
            let args = Args::new("swizzle_layout", v);
            let layout = args.layout(2)?.clone();
            if layout.has_basis() {
                return Err(args.wrong(2, "a layout of plain strides"));
            }
            Ok(Value::Composed(Composed { swizzle: args.swizzle(0)?, offset: args.int(1)?.clone(), layout }))
        },
    },
];

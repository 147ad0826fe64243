//! Expressions over what is known while a kernel is stopped: conditions of breakpoints, and `print`.

use super::names::find;
use super::numbers::Cell;
use super::slice::{Index, Selection, number};
use super::values::Look;
use ptoc_analysis::debug::NameMeaning;
use ptoc_diagnostics::FileId;
use ptoc_ir::scalar;
use ptoc_ir::tile::Ty;
use ptoc_syntax::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use ptoc_tensor::DType;

/// A value of an expression. Numbers of all types mix freely here.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Scalar {
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A truth value.
    Bool(bool),
}

impl std::fmt::Display for Scalar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Scalar::Int(n) => n.fmt(f),
            Scalar::Float(x) => write!(f, "{x:?}"),
            Scalar::Bool(b) => b.fmt(f),
        }
    }
}

/// Parses an expression of the language.
pub fn parse(text: &str) -> Result<Expr, String> {
    let (expr, problems) = ptoc_syntax::parse_expr(FileId(u32::MAX), text);
    match problems.into_iter().find(ptoc_diagnostics::Diagnostic::is_error) {
        Some(d) => Err(format!("`{text}`: {}", d.message)),
        None => Ok(expr),
    }
}

/// Evaluates it.
pub fn evaluate(look: &Look<'_>, e: &Expr) -> Result<Scalar, String> {
    match &*e.kind {
        ExprKind::Int(n) => Ok(Scalar::Int(*n)),
        ExprKind::Float(x, _) => Ok(Scalar::Float(*x)),
        ExprKind::Bool(b) => Ok(Scalar::Bool(*b)),
        ExprKind::Paren(e) => evaluate(look, e),
        ExprKind::Name(n) => name(look, n),
        ExprKind::Field(base, field) => match &*base.kind {
            ExprKind::Name(n) => member(look, n, &field.name),
            _ => Err(format!("`.{}` stands after a name", field.name)),
        },
        ExprKind::Index(..) => element(look, e),
        ExprKind::Unary(UnaryOp::Neg, e) => match evaluate(look, e)? {
            Scalar::Int(n) => Ok(Scalar::Int(n.wrapping_neg())),
            Scalar::Float(x) => Ok(Scalar::Float(-x)),
            Scalar::Bool(_) => Err("`-` of a truth value".into()),
        },
        ExprKind::Unary(UnaryOp::Not, e) => Ok(Scalar::Bool(!truth(evaluate(look, e)?)?)),
        ExprKind::Binary(op, a, b) => binary(look, *op, a, b),
        _ => Err("an expression here has numbers, names, `k.len`, `t[i, j]`, operators and parentheses".into()),
    }
}

/// Evaluates a condition.
pub fn holds(look: &Look<'_>, e: &Expr) -> Result<bool, String> {
    evaluate(look, e).and_then(truth)
}

fn truth(s: Scalar) -> Result<bool, String> {
    match s {
        Scalar::Bool(b) => Ok(b),
        other => Err(format!("`{other}` is no truth value; compare it, as in `k == 2`")),
    }
}

fn typed((ty, bits): (Ty, u64)) -> Scalar {
    match ty {
        Ty::D(DType::Bool) => Scalar::Bool(bits & 1 == 1),
        ty if scalar::float(ty).is_some() => Scalar::Float(scalar::to_f64(ty, bits)),
        ty => Scalar::Int(scalar::to_int(ty, bits)),
    }
}

/// A block by itself is its number.
fn name(look: &Look<'_>, n: &str) -> Result<Scalar, String> {
    match &find(look.debug, look.from, n)?.what {
        NameMeaning::Scalar(v) => Ok(typed(look.scalar(*v))),
        NameMeaning::Var(v) => Ok(typed((look.state.kernel().vars[*v].ty, look.state.var(*v)))),
        NameMeaning::Block(b) => Ok(Scalar::Int(i128::from(look.index(b.place.map_or(b.len, |p| p[0]))))),
        NameMeaning::Text(text) => match parse(text).map(|e| *e.kind) {
            Ok(ExprKind::Int(n)) => Ok(Scalar::Int(n)),
            Ok(ExprKind::Float(x, _)) => Ok(Scalar::Float(x)),
            Ok(ExprKind::Bool(b)) => Ok(Scalar::Bool(b)),
            Ok(ExprKind::Unary(UnaryOp::Neg, e)) => match *e.kind {
                ExprKind::Int(n) => Ok(Scalar::Int(n.wrapping_neg())),
                ExprKind::Float(x, _) => Ok(Scalar::Float(-x)),
                _ => Err(format!("`{n}` is `{text}`, which is no number")),
            },
            _ => Err(format!("`{n}` is `{text}`, which is no number")),
        },
        NameMeaning::Event(event) => look.event_value(event, &Selection { name: n.into(), brackets: Vec::new() }),
        NameMeaning::Tile(_) | NameMeaning::View(_) => Err(format!("`{n}` has elements; name one, as in `{n}[0, 0]`")),
        other => Err(format!("`{n}` is {}, which is no number", look.value(other))),
    }
}

fn member(look: &Look<'_>, n: &str, field: &str) -> Result<Scalar, String> {
    let NameMeaning::Block(b) = &find(look.debug, look.from, n)?.what else {
        return Err(format!("`{n}` is no block: only a block has `.index`, `.start`, `.end`, `.len` and `.first`"));
    };
    let index = |v| Ok(Scalar::Int(i128::from(look.index(v))));
    match (field, b.place) {
        ("len", _) => index(b.len),
        ("index", Some(p)) => index(p[0]),
        ("start", Some(p)) => index(p[1]),
        ("end", Some(p)) => index(p[2]),
        ("first", Some(p)) => Ok(Scalar::Bool(look.index(p[0]) == 0)),
        _ => Err(format!("a block has `.index`, `.start`, `.end`, `.len` and `.first`, not `.{field}`")),
    }
}

/// `t[0, 3]`, `p[b][0, 3]`, `full[b]`
fn element(look: &Look<'_>, e: &Expr) -> Result<Scalar, String> {
    let (mut brackets, mut base) = (Vec::new(), e);
    while let ExprKind::Index(inner, args) = &*base.kind {
        let indices = args.iter().map(|a| number(look, &a.value).map(Index::At));
        brackets.push(indices.collect::<Result<Vec<_>, String>>()?);
        base = inner;
    }
    brackets.reverse();
    let ExprKind::Name(name) = &*base.kind else { return Err("an element is `NAME[i, j]`".into()) };
    let selection = Selection { name: name.to_string(), brackets };
    if let NameMeaning::Event(event) = &find(look.debug, look.from, name)?.what {
        return look.event_value(event, &selection);
    }
    let Some(array) = look.array(&selection)? else { return Err(format!("`{name}` has no elements")) };
    if !array.shape().is_empty() {
        return Err(format!("`{name}` has more axes than there are indices"));
    }
    match look.cell(&array.source, &array.index(&[])) {
        Cell::Bits(bits) => Ok(typed((Ty::D(array.dtype), bits))),
        Cell::Unwritten => Err(format!("nothing has written this element of `{name}`")),
        Cell::Foreign => Err(format!("the bytes of this element of `{name}` are of another type")),
        Cell::None => Err(format!("`{name}` does not have this element")),
    }
}

fn binary(look: &Look<'_>, op: BinaryOp, a: &Expr, b: &Expr) -> Result<Scalar, String> {
    use BinaryOp as O;
    let left = evaluate(look, a)?;
    // What is right of `&&` may not exist if the left side is false.
    match op {
        O::And => return Ok(Scalar::Bool(truth(left)? && truth(evaluate(look, b)?)?)),
        O::Or => return Ok(Scalar::Bool(truth(left)? || truth(evaluate(look, b)?)?)),
        _ => {}
    }
    let right = evaluate(look, b)?;
    let cannot = || Err(format!("`{left} {} {right}` has no value", op.symbol()));
    match (left, right) {
        (Scalar::Bool(x), Scalar::Bool(y)) => match op {
            O::Eq => Ok(Scalar::Bool(x == y)),
            O::Ne => Ok(Scalar::Bool(x != y)),
            _ => cannot(),
        },
        (Scalar::Int(x), Scalar::Int(y)) => {
            let shift = u32::try_from(y).ok();
            let found = match op {
                O::Add => x.checked_add(y),
                O::Sub => x.checked_sub(y),
                O::Mul => x.checked_mul(y),
                // Floors, as everywhere in the language.
                O::Div => x.checked_div_euclid(y).map(|q| if y < 0 && x.rem_euclid(y) != 0 { q - 1 } else { q }),
                O::Rem => x.checked_rem_euclid(y).map(|r| if y < 0 && r != 0 { r + y } else { r }),
                O::BitAnd => Some(x & y),
                O::BitOr => Some(x | y),
                O::BitXor => Some(x ^ y),
                O::Shl => shift.and_then(|s| x.checked_shl(s)),
                O::Shr => shift.and_then(|s| x.checked_shr(s)),
                _ => return Ok(Scalar::Bool(compare(op, x.partial_cmp(&y)))),
            };
            found.map_or_else(cannot, |n| Ok(Scalar::Int(n)))
        }
        (Scalar::Bool(_), _) | (_, Scalar::Bool(_)) => cannot(),
        (x, y) => {
            let float = |s| match s {
                Scalar::Float(x) => x,
                Scalar::Int(n) => n as f64,
                Scalar::Bool(_) => f64::NAN,
            };
            let (x, y) = (float(x), float(y));
            match op {
                O::Add => Ok(Scalar::Float(x + y)),
                O::Sub => Ok(Scalar::Float(x - y)),
                O::Mul => Ok(Scalar::Float(x * y)),
                O::Div => Ok(Scalar::Float(x / y)),
                O::Eq | O::Ne | O::Lt | O::Le | O::Gt | O::Ge => Ok(Scalar::Bool(compare(op, x.partial_cmp(&y)))),
                _ => cannot(),
            }
        }
    }
}

fn compare(op: BinaryOp, order: Option<std::cmp::Ordering>) -> bool {
    match op {
        BinaryOp::Eq => order == Some(std::cmp::Ordering::Equal),
        BinaryOp::Ne => order != Some(std::cmp::Ordering::Equal),
        BinaryOp::Lt => order.is_some_and(std::cmp::Ordering::is_lt),
        BinaryOp::Le => order.is_some_and(std::cmp::Ordering::is_le),
        BinaryOp::Gt => order.is_some_and(std::cmp::Ordering::is_gt),
        _ => order.is_some_and(std::cmp::Ordering::is_ge),
    }
}

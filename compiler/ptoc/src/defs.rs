//! `-D NAME=VALUE`: values as expressions, capacities, and the whole numbers among them.

use indexmap::IndexMap;
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, Span, codes};
use ptoc_isa::Target;
use ptoc_syntax::ast::{BinaryOp, Expr, ExprKind, Name, UnaryOp};

/// One definition as it came: from the command line or from a test line.
#[derive(Clone, Debug)]
pub struct Definition {
    /// `BM`, `capacity.Vec`
    pub name: String,
    /// The text of an expression.
    pub value: String,
}

/// Definitions, parsed.
#[derive(Clone, Debug, Default)]
pub struct Definitions {
    /// Everything but capacities, by name, the last of a name counts.
    pub values: IndexMap<Name, Expr>,
    /// Where each stands, for messages.
    pub places: IndexMap<Name, Span>,
}

impl Definitions {
    /// Parses definitions, each as a source file of its own called `<-D NAME>`, and applies capacities to the target.
    pub fn parse(
        definitions: &[Definition],
        target: &mut Target,
        sources: &mut SourceMap,
        out: &mut Diagnostics,
    ) -> Definitions {
        let mut parsed = Definitions::default();
        for d in definitions {
            let file = sources.add(format!("<-D {}>", d.name), d.value.as_str());
            let (expr, diagnostics) = ptoc_syntax::parse_expr(file, &d.value);
            let errors = diagnostics.iter().any(Diagnostic::is_error);
            out.extend(diagnostics);
            if errors {
                continue;
            }
            match d.name.strip_prefix("capacity.") {
                Some(location) => match capacity(target, location, &expr) {
                    Ok(changed) => *target = changed,
                    Err(problem) => {
                        out.push(problem);
                    }
                },
                None => {
                    let span = Span::new(file, 0, d.value.len() as u32);
                    parsed.values.insert(Name::new(&d.name), expr);
                    parsed.places.insert(Name::new(&d.name), span);
                }
            }
        }
        parsed
    }
}

fn capacity(target: &Target, location: &str, expr: &Expr) -> Result<Target, Diagnostic> {
    let bytes = integer(expr).and_then(|n| u64::try_from(n).ok()).ok_or_else(|| {
        Diagnostic::error(codes::BAD_SIZE, expr.span, format!("the capacity of `{location}` is no number of bytes"))
            .with_help(format!("for example `-D capacity.{location}=0x20000`"))
    })?;
    target.clone().override_capacity(location, bytes)
}

/// The value of an expression of whole numbers only; `None` if it is anything else or leaves the range of `i64`.
pub fn integer(expr: &Expr) -> Option<i64> {
    fn value(expr: &Expr) -> Option<i128> {
        match &*expr.kind {
            ExprKind::Int(n) => Some(*n),
            ExprKind::Paren(e) => value(e),
            ExprKind::Unary(UnaryOp::Neg, e) => value(e)?.checked_neg(),
            ExprKind::Binary(op, a, b) => {
                let (a, b) = (value(a)?, value(b)?);
                match op {
                    BinaryOp::Add => a.checked_add(b),
                    BinaryOp::Sub => a.checked_sub(b),
                    BinaryOp::Mul => a.checked_mul(b),
                    BinaryOp::Div if b > 0 => Some(a.div_euclid(b)),
                    BinaryOp::Shl => u32::try_from(b).ok().filter(|&n| n < 63).and_then(|n| a.checked_mul(1 << n)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
    value(expr).and_then(|n| i64::try_from(n).ok())
}

/// The size that `-D` gives a dimension.
pub fn dimension(name: &str, expr: &Expr) -> Result<i64, Diagnostic> {
    integer(expr).filter(|&n| n >= 0).ok_or_else(|| {
        Diagnostic::error(codes::BAD_SIZE, expr.span, format!("`{name}` is a dimension, and this is no size"))
            .with_label("a whole number, 0 or more")
            .with_help(format!("for example `-D {name}=128`"))
    })
}

//! Scalars of a kernel's text as expressions: those of type `index` are sums of products in one order.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

/// Operations without an effect, whose results are expressions.
pub const PURE: [&str; 37] = [
    "const", "add", "sub", "mul", "div", "rem", "min", "max", "and", "or", "xor", "shl", "shr", "eq", "ne", "lt", "le",
    "gt", "ge", "select", "bitcast", "neg", "not", "abs", "exp", "log", "sqrt", "rsqrt", "recip", "floor", "ceil",
    "trunc", "rint", "tanh", "sin", "cos", "get",
];

/// Terms of a sum: the factors of each, in order, and how often it is added.
type Terms = BTreeMap<Vec<String>, i128>;

/// Most terms that are taken apart.
const MOST: usize = 64;

/// A scalar.
#[derive(Clone, Debug)]
pub struct Expr {
    pub text: String,
    /// The sum that it is.
    terms: Terms,
}

impl Expr {
    /// A value that is one word.
    pub fn of(text: impl Into<String>) -> Expr {
        let text = short(text.into());
        let terms = match text.parse::<i128>() {
            Ok(0) => Terms::new(),
            Ok(n) => [(Vec::new(), n)].into(),
            Err(_) => [(vec![text.clone()], 1)].into(),
        };
        Expr { text, terms }
    }

    /// The number of type `index` that it is.
    fn number(&self) -> Option<i128> {
        self.text.parse().ok()
    }

    fn sum(mut terms: Terms) -> Expr {
        terms.retain(|_, n| *n != 0);
        let term = |(factors, n): (&Vec<String>, &i128)| match (factors.len(), n) {
            (0, n) => n.to_string(),
            (_, 1) => factors.join(" * "),
            (_, n) => format!("{n} * {}", factors.join(" * ")),
        };
        let text: Vec<String> = terms.iter().map(term).collect();
        let text = match text.len() {
            0 => "0".to_owned(),
            1 => text[0].clone(),
            _ => format!("({})", text.join(" + ")),
        };
        Expr { text: short(text), terms }
    }

    fn plus(&self, other: &Expr, sign: i128) -> Expr {
        let mut terms = self.terms.clone();
        for (factors, n) in &other.terms {
            *terms.entry(factors.clone()).or_default() += sign * n;
        }
        Expr::sum(terms)
    }

    fn times(&self, other: &Expr) -> Option<Expr> {
        let mut terms = Terms::new();
        for (a, n) in &self.terms {
            for (b, m) in &other.terms {
                let mut factors = [a.clone(), b.clone()].concat();
                factors.sort();
                *terms.entry(factors).or_default() += n.checked_mul(*m)?;
            }
        }
        (terms.len() <= MOST).then(|| Expr::sum(terms))
    }

    /// What an operation makes of its operands, in a type.
    pub fn made(op: &str, ty: &str, operands: &[Expr], words: &str) -> Expr {
        match (op, operands) {
            ("const", _) if ty == "index" => Expr::of(words),
            ("const", _) => Expr::of(format!("{ty} {words}")),
            ("add", [a, b]) if ty == "index" => a.plus(b, 1),
            ("sub", [a, b]) if ty == "index" => a.plus(b, -1),
            ("neg", [a]) if ty == "index" => Expr::of("0").plus(a, -1),
            // It goes with a division that rounds down.
            ("rem", [a, b]) if ty == "index" => {
                let quotient = Expr::made("div", ty, operands, words);
                quotient.times(b).map_or_else(|| Expr::listed(ty, op, operands), |whole| a.plus(&whole, -1))
            }
            // What variables hold may be constants in the text.
            ("eq" | "ne" | "lt" | "le" | "gt" | "ge", [a, b]) if a.number().is_some() && b.number().is_some() => {
                let (a, b) = (a.number(), b.number());
                let holds = match op {
                    "eq" => a == b,
                    "ne" => a != b,
                    "lt" => a < b,
                    "le" => a <= b,
                    "gt" => a > b,
                    _ => a >= b,
                };
                Expr::of(format!("bool {holds}"))
            }
            ("select", [c, a, _]) if c.text == "bool true" => a.clone(),
            ("select", [c, _, b]) if c.text == "bool false" => b.clone(),
            ("mul", [a, b]) if ty == "index" => a.times(b).unwrap_or_else(|| Expr::listed(ty, op, operands)),
            ("add" | "mul" | "min" | "max" | "and" | "or" | "xor" | "eq" | "ne", [_, _]) => {
                Expr::listed(ty, op, operands)
            }
            _ => {
                let list: Vec<&str> = operands.iter().map(|o| o.text.as_str()).collect();
                Expr::of(format!("{ty} {op}({})", list.join(", ")))
            }
        }
    }

    /// Operands whose order does not count.
    fn listed(ty: &str, op: &str, operands: &[Expr]) -> Expr {
        let mut list: Vec<&str> = operands.iter().map(|o| o.text.as_str()).collect();
        list.sort_unstable();
        Expr::of(format!("{ty} ({})", list.join(&format!(" {op} "))))
    }
}

/// Long expressions are told apart by a hash.
fn short(text: String) -> String {
    if text.len() <= 120 {
        return text;
    }
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("#{:016x}", hasher.finish())
}

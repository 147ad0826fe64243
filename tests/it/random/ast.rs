//! Kernel pieces as a tree, and their text.

use ptoc_tensor::DType;
use std::fmt::{self, Display, Formatter, Write as _};

/// The form of a tile value within a block of rows and a block of columns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Full,
    Column,
    Row,
}

/// The blocks around a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Blocks {
    pub rows: &'static str,
    pub cols: &'static str,
}

impl Blocks {
    pub fn extents(self, form: Form) -> String {
        match form {
            Form::Full => format!("{}, {}", self.rows, self.cols),
            Form::Column => format!("{}, 1", self.rows),
            Form::Row => format!("1, {}", self.cols),
        }
    }
}

/// A tile value.
#[derive(Clone, Debug)]
pub enum Expr {
    /// A tile or a window of one, as text.
    Tile(String),
    /// `Vec(view)`
    Load(String),
    /// `a + b`
    Infix(&'static str, Box<Expr>, Box<Expr>),
    /// `max(a, b)`
    Prefix(String, Vec<Expr>),
    /// With a scalar on the right, or on the left.
    WithScalar(&'static str, Box<Expr>, Scalar, bool),
    /// `if a < b { x } else { y }`
    Select(&'static str, Box<[Expr; 4]>),
    /// The second operand is a scalar: `if a < 1.0 { x } else { y }`
    SelectScalar(&'static str, Box<Expr>, Scalar, Box<[Expr; 2]>),
    /// `mapped(a, |v| v * s + 0.5)`
    Mapped(Box<Expr>, Scalar),
    /// `iota(i, 1)`
    Iota(String),
    /// `Vec(matmul(Left(a), Right(view)))`
    Product(Box<Expr>, String),
}

/// A scalar value.
#[derive(Clone, Debug)]
pub enum Scalar {
    Text(String),
    Infix(&'static str, Box<Scalar>, Box<Scalar>),
    Prefix(&'static str, Vec<Scalar>),
}

/// A statement.
#[derive(Clone, Debug)]
pub enum Stmt {
    /// Anything that stands on a line.
    Line(String),
    /// `t = e;`, `t += e;`
    Assign(String, &'static str, Expr),
    /// `let t = e;`
    Let(String, Expr),
    /// `TADD(t, a, b);`
    Inst(&'static str, Vec<String>),
    Set(String, &'static str, Scalar),
    If(Scalar, Vec<Stmt>, Vec<Stmt>),
    /// A loop: its head, its body.
    Loop(String, Vec<Stmt>),
    /// A condition that leaves or repeats the loop around it.
    Jump(Scalar, &'static str),
}

/// A kernel.
#[derive(Clone, Debug)]
pub struct Program {
    pub functions: Vec<&'static str>,
    pub params: Vec<Param>,
    pub grid: String,
    pub body: Vec<Stmt>,
}

/// A parameter.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Param {
    pub name: String,
    pub dir: &'static str,
    pub dtype: DType,
    pub shape: Vec<&'static str>,
}

/// Whether it is an operator, and not a function.
pub fn is_infix(op: &str) -> bool {
    !op.starts_with(|c: char| c.is_ascii_alphabetic())
}

fn list<T: Display>(f: &mut Formatter<'_>, items: &[T]) -> fmt::Result {
    for (i, x) in items.iter().enumerate() {
        write!(f, "{}{x}", if i == 0 { "" } else { ", " })?;
    }
    Ok(())
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Expr::Tile(t) => f.write_str(t),
            Expr::Load(v) => write!(f, "Vec({v})"),
            Expr::Infix(op, a, b) => write!(f, "({a} {op} {b})"),
            Expr::Prefix(name, args) => {
                write!(f, "{name}(")?;
                list(f, args)?;
                f.write_char(')')
            }
            Expr::WithScalar(op, a, s, false) if is_infix(op) => write!(f, "({a} {op} {s})"),
            Expr::WithScalar(op, a, s, true) if is_infix(op) => write!(f, "({s} {op} {a})"),
            Expr::WithScalar(op, a, s, false) => write!(f, "{op}({a}, {s})"),
            Expr::WithScalar(op, a, s, true) => write!(f, "{op}({s}, {a})"),
            Expr::Select(op, e) => write!(f, "(if {} {op} {} {{ {} }} else {{ {} }})", e[0], e[1], e[2], e[3]),
            Expr::SelectScalar(op, a, s, e) => write!(f, "(if {a} {op} {s} {{ {} }} else {{ {} }})", e[0], e[1]),
            Expr::Mapped(a, s) => write!(f, "mapped({a}, |v| v * {s} + 0.5)"),
            Expr::Iota(extents) => write!(f, "iota({extents})"),
            Expr::Product(a, view) => write!(f, "Vec(matmul(Left({a}), Right({view})))"),
        }
    }
}

impl Display for Scalar {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Text(t) => f.write_str(t),
            Scalar::Infix(op, a, b) => write!(f, "({a} {op} {b})"),
            Scalar::Prefix(name, args) => {
                write!(f, "{name}(")?;
                list(f, args)?;
                f.write_char(')')
            }
        }
    }
}

impl Stmt {
    fn print(&self, f: &mut Formatter<'_>, depth: usize) -> fmt::Result {
        let pad = "    ".repeat(depth);
        match self {
            Stmt::Line(text) => writeln!(f, "{pad}{text}"),
            Stmt::Assign(t, op, e) => writeln!(f, "{pad}{t} {op} {e};"),
            Stmt::Let(t, e) => writeln!(f, "{pad}let {t} = {e};"),
            Stmt::Inst(name, args) => writeln!(f, "{pad}{name}({});", args.join(", ")),
            Stmt::Set(v, op, s) => writeln!(f, "{pad}{v} {op} {s};"),
            Stmt::Jump(c, word) => writeln!(f, "{pad}if {c} {{ {word}; }}"),
            Stmt::If(c, then, els) => {
                writeln!(f, "{pad}if {c} {{")?;
                then.iter().try_for_each(|s| s.print(f, depth + 1))?;
                if !els.is_empty() {
                    writeln!(f, "{pad}}} else {{")?;
                    els.iter().try_for_each(|s| s.print(f, depth + 1))?;
                }
                writeln!(f, "{pad}}}")
            }
            Stmt::Loop(head, body) => {
                writeln!(f, "{pad}{head} {{")?;
                body.iter().try_for_each(|s| s.print(f, depth + 1))?;
                writeln!(f, "{pad}}}")
            }
        }
    }
}

impl Display for Param {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} {}[", self.name, self.dir, self.dtype)?;
        list(f, &self.shape)?;
        f.write_char(']')
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for function in &self.functions {
            writeln!(f, "{function}\n")?;
        }
        f.write_str("kernel k(")?;
        list(f, &self.params)?;
        writeln!(f, ") {{\n    {}", self.grid)?;
        self.body.iter().try_for_each(|s| s.print(f, 1))?;
        f.write_str("}\n")
    }
}

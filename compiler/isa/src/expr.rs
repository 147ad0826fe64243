//! The meaning of an element-wise instruction as data: an expression that makes one element of the destination of one
//! element of each source. The verifier types it, the interpreter evaluates it, the lowering emits it, and the
//! reference prints it; no other place says what such an instruction computes.
//!
//! Floats are computed in f32 and rounded once, by the destination. Integers are computed in their dtype, and every
//! operation wraps.

use crate::{BinOp, CmpOp, Instr, OperandKind, Sem, UnOp};

/// A node. Its type is that of its operands; both sides of an operation have one type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expr {
    /// The element of the operand at this position of the row (sources count from 1).
    Arg(usize),
    /// A whole number, of the type of that source.
    Number(i32, usize),
    /// `a op b`
    Bin(BinOp, &'static Expr, &'static Expr),
    /// `op a`
    Un(UnOp, &'static Expr),
    /// `a * b + c`, of floats rounded once (in f32), of integers wrapping.
    Fma(&'static Expr, &'static Expr, &'static Expr),
    /// `a` to the power `b`: of floats the published program, of integers (of up to 32 bits) wrapping, and for `b`
    /// below 0 what 1 divided by the power is.
    Pow(&'static Expr, &'static Expr),
    /// `a op b`, a truth value.
    Cmp(CmpOp, &'static Expr, &'static Expr),
    /// The comparison that the instruction's mode names.
    CmpMode(&'static Expr, &'static Expr),
    /// `c ? a : b`
    Select(&'static Expr, &'static Expr, &'static Expr),
    /// To another type.
    Convert(&'static Expr, To),
}

/// A conversion within an expression.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To {
    /// To the destination's dtype, rounded and saturated as the instruction's modes say. Of an operand, as it is
    /// stored.
    Mode,
    /// To the destination's dtype: nearest, ties to even; what is too large in magnitude becomes the largest finite
    /// value.
    Narrow,
    /// Integers of up to 32 bits to i32; floats stay.
    Wide,
    /// To f32: nearest, ties to even.
    F32,
}

/// Which element of an operand goes with element (i, j) of the destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Read {
    /// Element (i, j).
    Whole,
    /// Element (i, 0).
    Column,
    /// Element (0, j).
    Row,
    /// Element (j, i).
    Turned,
}

impl Expr {
    /// Whether it contains a node for which `test` holds.
    pub fn any(&self, test: &dyn Fn(&Expr) -> bool) -> bool {
        test(self) || self.parts().iter().flatten().any(|e| e.any(test))
    }

    /// Whether it means the same with operands `i` and `j` exchanged. `mirrored`: and with the mode's comparison
    /// mirrored.
    pub fn exchanges(&self, i: usize, j: usize, mirrored: bool) -> bool {
        self.alike(
            self,
            &|k| {
                if k == i {
                    j
                } else if k == j {
                    i
                } else {
                    k
                }
            },
            mirrored,
        )
    }

    /// Whether it is `other`, if its operands are those that `to` says.
    fn alike(&self, other: &Expr, to: &dyn Fn(usize) -> usize, mirrored: bool) -> bool {
        let same = |a: &Expr, b: &Expr| a.alike(b, to, mirrored);
        match (*self, *other) {
            (Expr::Arg(a), Expr::Arg(b)) => to(a) == b,
            (Expr::Number(n, a), Expr::Number(m, b)) => n == m && to(a) == b,
            (Expr::Bin(op, a, b), Expr::Bin(o, c, d)) => {
                op == o && (same(a, c) && same(b, d) || op.commutes() && same(a, d) && same(b, c))
            }
            (Expr::Fma(a, b, x), Expr::Fma(c, d, y)) => {
                same(x, y) && (same(a, c) && same(b, d) || same(a, d) && same(b, c))
            }
            (Expr::CmpMode(a, b), Expr::CmpMode(c, d)) if mirrored => same(a, d) && same(b, c),
            (Expr::CmpMode(a, b), Expr::CmpMode(c, d)) | (Expr::Pow(a, b), Expr::Pow(c, d)) => same(a, c) && same(b, d),
            (Expr::Cmp(op, a, b), Expr::Cmp(o, c, d)) => op == o && same(a, c) && same(b, d),
            (Expr::Un(op, a), Expr::Un(o, b)) => op == o && same(a, b),
            (Expr::Convert(a, x), Expr::Convert(b, y)) => x == y && same(a, b),
            (Expr::Select(a, b, x), Expr::Select(c, d, y)) => same(a, c) && same(b, d) && same(x, y),
            _ => false,
        }
    }

    fn parts(&self) -> [Option<&'static Expr>; 3] {
        match *self {
            Expr::Arg(_) | Expr::Number(..) => [None; 3],
            Expr::Un(_, a) | Expr::Convert(a, _) => [Some(a), None, None],
            Expr::Bin(_, a, b) | Expr::Pow(a, b) | Expr::Cmp(_, a, b) | Expr::CmpMode(a, b) => [Some(a), Some(b), None],
            Expr::Fma(a, b, c) | Expr::Select(a, b, c) => [Some(a), Some(b), Some(c)],
        }
    }

    /// The largest part of several operations that occurs more than once.
    fn repeated(&self) -> Option<Expr> {
        let mut all = Vec::new();
        self.collect(&mut all);
        let twice = |e: &&Expr| {
            all.iter().filter(|x| x == e).count() > 1 && e.any(&|x| matches!(x, Expr::Bin(..) | Expr::Un(..)))
        };
        all.iter().filter(twice).max_by_key(|e| e.size()).copied()
    }

    fn collect(&self, out: &mut Vec<Expr>) {
        out.push(*self);
        self.parts().iter().flatten().for_each(|e| e.collect(out));
    }

    fn size(&self) -> usize {
        1 + self.parts().iter().flatten().map(|e| e.size()).sum::<usize>()
    }

    /// As a formula; `name` writes the operands. `outer` is how tightly the context binds (0: not at all).
    /// `short`: a part that is called `r`.
    fn write(&self, name: &dyn Fn(usize) -> String, short: Option<Expr>, outer: u8) -> String {
        if short == Some(*self) {
            return "r".to_owned();
        }
        let at = |e: &Expr, level: u8| e.write(name, short, level);
        let call = |f: &str, list: &[&Expr]| {
            let list: Vec<String> = list.iter().map(|e| at(e, 0)).collect();
            format!("{f}({})", list.join(", "))
        };
        let infix =
            |level: u8, op: &str, a: &Expr, b: &Expr| (level, format!("{} {op} {}", at(a, level), at(b, level + 1)));
        const TIGHT: u8 = 9;
        let (level, text) = match self {
            Expr::Arg(k) => (TIGHT, name(*k)),
            Expr::Number(n, _) => (TIGHT, n.to_string()),
            Expr::Bin(op, a, b) => match op {
                BinOp::Add => infix(5, "+", a, b),
                BinOp::Sub => infix(5, "-", a, b),
                BinOp::Mul => infix(6, "*", a, b),
                BinOp::Div => infix(6, "/", a, b),
                BinOp::Rem => (TIGHT, call("fmod", &[a, b])),
                BinOp::Max => (TIGHT, call("max", &[a, b])),
                BinOp::Min => (TIGHT, call("min", &[a, b])),
                BinOp::And => infix(3, "&", a, b),
                BinOp::Or => infix(2, "|", a, b),
                BinOp::Xor => infix(2, "^", a, b),
                BinOp::Shl => infix(4, "<<", a, b),
                BinOp::Shr => infix(4, ">>", a, b),
            },
            Expr::Un(op, a) => match op {
                UnOp::Neg => (7, format!("-{}", at(a, 7))),
                UnOp::Not => (7, format!("~{}", at(a, 7))),
                UnOp::Abs => (TIGHT, format!("|{}|", at(a, 0))),
                UnOp::Relu => (TIGHT, format!("max({}, 0)", at(a, 0))),
                UnOp::Rsqrt => (6, format!("1 / sqrt({})", at(a, 0))),
                UnOp::Recip => (6, format!("1 / {}", at(a, 7))),
                op => (TIGHT, call(op.name(), &[a])),
            },
            Expr::Pow(a, b) => (TIGHT, call("pow", &[a, b])),
            Expr::Fma(a, b, c) => (5, format!("{} * {} + {}", at(a, 6), at(b, 7), at(c, 6))),
            Expr::Cmp(op, a, b) => {
                let sign = op.sign();
                (1, format!("{} {sign} {}", at(a, 2), at(b, 2)))
            }
            Expr::CmpMode(a, b) => (1, format!("{} cmp {}", at(a, 2), at(b, 2))),
            Expr::Select(c, a, b) => (0, format!("{} ? {} : {}", at(c, 1), at(a, 1), at(b, 1))),
            Expr::Convert(a, To::Mode) => (TIGHT, call("convert", &[a])),
            Expr::Convert(a, To::Narrow) => (TIGHT, call("narrow", &[a])),
            Expr::Convert(a, To::Wide) => return at(a, outer),
            Expr::Convert(a, To::F32) => (TIGHT, call("f32", &[a])),
        };
        if level < outer { format!("({text})") } else { text }
    }
}

impl Instr {
    /// The meaning as a formula.
    pub fn formula(&self) -> String {
        if let Sem::Cells(cells) = self.sem {
            return cells.formula(self);
        }
        if let Sem::Fixpipe(fixpipe) = self.sem {
            return fixpipe.formula(self);
        }
        let Some(expr) = self.sem.expr() else { return self.meaning.to_owned() };
        let name = |k: usize| {
            let spec = &self.operands[k];
            match (spec.kind, self.read(k)) {
                (OperandKind::Scalar(_), _) => "s".to_owned(),
                _ if self.updates && k + 1 == self.operands.len() => "dst[i, j]".to_owned(),
                (_, Read::Whole) => format!("{}[i, j]", spec.name),
                (_, Read::Column) => format!("{}[i, 0]", spec.name),
                (_, Read::Row) => format!("{}[0, j]", spec.name),
                (_, Read::Turned) => format!("{}[j, i]", spec.name),
            }
        };
        let short = expr.repeated();
        let mut out = format!("dst[i, j] = {}", expr.write(&name, short, 0));
        if let Some(part) = short {
            out.push_str(&format!(", r = {}", part.write(&name, None, 0)));
        }
        if self.scalar_first {
            let swapped = |k: usize| name(if (1..=2).contains(&k) { 3 - k } else { k });
            out.push_str(&format!(", or {}", expr.write(&swapped, short, 0)));
        }
        out
    }
}

//! The operations that instructions, scalars, both IRs and the interpreter share. Their meaning on each dtype is in
//! `spec/numerics.md`.

pub use ptoc_abi::Oob;
use std::fmt;

macro_rules! named_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal),* $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        #[allow(missing_docs, reason = "the names say it")]
        pub enum $name { $($(#[$vmeta])* $variant),* }
        impl $name {
            /// Every one.
            pub const ALL: &'static [$name] = &[$($name::$variant),*];
            /// The name in IR text.
            pub fn name(self) -> &'static str { match self { $($name::$variant => $text),* } }
            /// The one with that name.
            pub fn from_name(name: &str) -> Option<$name> {
                match name { $($text => Some($name::$variant),)* _ => None }
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result { f.write_str(self.name()) }
        }
    };
}

named_enum! {
    /// Two operands of one type, result of that type.
    BinOp {
        /// a + b
        Add = "add",
        /// a - b
        Sub = "sub",
        /// a * b
        Mul = "mul",
        /// a / b: IEEE for floats, truncation for fixed-width integers, floor for `index`; integer x/0 is all ones.
        Div = "div",
        /// Remainder that goes with `Div`; integer x % 0 is x.
        Rem = "rem",
        /// Larger; NaN if either is NaN; +0 above -0.
        Max = "max",
        /// Smaller; NaN if either is NaN; -0 below +0.
        Min = "min",
        /// Bitwise and (logical for `bool`).
        And = "and",
        /// Bitwise or.
        Or = "or",
        /// Bitwise exclusive or.
        Xor = "xor",
        /// Left shift; a count of the width or more (taken as unsigned) gives 0.
        Shl = "shl",
        /// Right shift, arithmetic for signed types; a count of the width or more gives 0 or the sign.
        Shr = "shr",
    }
}

named_enum! {
    /// One operand, result of the same type.
    UnOp {
        /// -a; integers wrap.
        Neg = "neg",
        /// Bitwise complement (logical for `bool`).
        Not = "not",
        /// Absolute value; the smallest integer stays itself.
        Abs = "abs",
        /// max(a, 0): NaN stays NaN.
        Relu = "relu",
        /// e^a
        Exp = "exp",
        /// Natural logarithm.
        Log = "log",
        /// Square root, correctly rounded.
        Sqrt = "sqrt",
        /// 1 / sqrt(a): two rounded f32 operations.
        Rsqrt = "rsqrt",
        /// 1 / a, one rounded operation.
        Recip = "recip",
        /// Largest integral value not above a.
        Floor = "floor",
        /// Smallest integral value not below a.
        Ceil = "ceil",
        /// Integral part.
        Trunc = "trunc",
        /// Nearest integral value, ties to even.
        Rint = "rint",
        /// Hyperbolic tangent.
        Tanh = "tanh",
        /// Gauss error function.
        Erf = "erf",
        /// Sine.
        Sin = "sin",
        /// Cosine.
        Cos = "cos",
    }
}

named_enum! {
    /// Comparisons; every one but `Ne` is false if either side is NaN.
    CmpOp { Eq = "eq", Ne = "ne", Lt = "lt", Le = "le", Gt = "gt", Ge = "ge" }
}

impl BinOp {
    /// As operators write it; none for what is a function.
    pub fn symbol(self) -> Option<&'static str> {
        Some(match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::Div => "/",
            BinOp::Rem => "%",
            BinOp::And => "&",
            BinOp::Or => "|",
            BinOp::Xor => "^",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::Max | BinOp::Min => return None,
        })
    }

    /// Whether `a op b` is always `b op a`.
    pub fn commutes(self) -> bool {
        !matches!(self, BinOp::Sub | BinOp::Div | BinOp::Rem | BinOp::Shl | BinOp::Shr)
    }
}

impl CmpOp {
    /// As formulas write it.
    pub fn sign(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
        }
    }

    /// The comparison of integers that holds where this one does not. (Of floats it is another one where a side is
    /// NaN.)
    pub fn opposite(self) -> CmpOp {
        match self {
            CmpOp::Eq => CmpOp::Ne,
            CmpOp::Ne => CmpOp::Eq,
            CmpOp::Lt => CmpOp::Ge,
            CmpOp::Ge => CmpOp::Lt,
            CmpOp::Gt => CmpOp::Le,
            CmpOp::Le => CmpOp::Gt,
        }
    }

    /// The comparison that says the same with its sides exchanged.
    pub fn mirrored(self) -> CmpOp {
        match self {
            CmpOp::Lt => CmpOp::Gt,
            CmpOp::Le => CmpOp::Ge,
            CmpOp::Gt => CmpOp::Lt,
            CmpOp::Ge => CmpOp::Le,
            CmpOp::Eq | CmpOp::Ne => self,
        }
    }
}

named_enum! {
    /// Reductions along a row or a column.
    Reduce {
        /// Rows: 64 strided partials from +0, then a halving tree. Columns: ascending rows.
        Sum = "sum",
        /// Largest; NaN if any is NaN.
        Max = "max",
        /// Smallest; NaN if any is NaN.
        Min = "min",
        /// From 1, ascending.
        Prod = "prod",
    }
}

named_enum! {
    /// PTO's rounding modes of a conversion.
    RoundMode {
        /// Nearest, ties to even (also PTO's NONE).
        Rint = "rint",
        /// Nearest, ties away from zero.
        Round = "round",
        /// Towards minus infinity.
        Floor = "floor",
        /// Towards plus infinity.
        Ceil = "ceil",
        /// Towards zero.
        Trunc = "trunc",
        /// Inexact results take the odd neighbour.
        Odd = "odd",
    }
}

named_enum! {
    /// How the f32 factors of a product are rounded before they are multiplied.
    Factors {
        /// To HF32: 11 bits of the fraction are kept.
        Hf32 = "hf32",
        /// To TF32: 10 bits of the fraction are kept.
        Tf32 = "tf32",
    }
}

impl Factors {
    /// The bits of the fraction that are dropped.
    pub fn dropped(self) -> u32 {
        match self {
            Factors::Hf32 => 12,
            Factors::Tf32 => 13,
        }
    }

    /// The factor that an f32 becomes: the nearest; of two equally near ones the even one if `even`, else the one that
    /// is larger in magnitude. What is no number stays as it is.
    pub fn rounded(self, bits: u32, even: bool) -> u32 {
        let drop = self.dropped();
        if bits & 0x7fff_ffff > 0x7f80_0000 {
            return bits;
        }
        let half = if even { (1 << (drop - 1)) - 1 + (bits >> drop & 1) } else { 1 << (drop - 1) };
        bits.wrapping_add(half) & !((1 << drop) - 1)
    }
}

named_enum! {
    /// Read-modify-write of one element of a tensor; the result is the old value.
    AtomicOp {
        Add = "add", Max = "max", Min = "min", And = "and", Or = "or", Xor = "xor", Exchange = "exchange", Cas = "cas",
    }
}

impl AtomicOp {
    /// Whether several of these leave the same value whatever their order. Integers do; a sum of floats up to rounding.
    pub fn commutes(self) -> bool {
        !matches!(self, AtomicOp::Exchange | AtomicOp::Cas)
    }
}

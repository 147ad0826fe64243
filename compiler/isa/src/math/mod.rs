//! Published programs of the transcendental functions. They are data: the interpreter evaluates them with
//! [`MathProgram::eval`], the lowering turns each [`MathOp`] into one operation of loop IR, and so all backends agree
//! bit for bit. `scripts/fit_math.py` computes the coefficients; it says how.
//!
//! The bounds are measured against f64: log, tanh and erf on every f32 where they are not trivial, exp on every third,
//! pow on a quarter of a million pairs, half of them with results all over the range, sin and cos on every seventh and
//! around all multiples of pi/2. `PTOC_MATH_STEP` repeats it.

mod build;
mod coefficients;
mod exp_log;
mod power;
mod program;
mod sigmoid;
mod trig;

pub use exp_log::EXPONENTIAL;
pub use program::{Id, MathOp, MathProgram, Ty, scale};

use crate::UnOp;
use std::sync::LazyLock;

/// How a kernel computes the exponential of f32.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Exponential {
    /// By its published program.
    #[default]
    Program,
    /// By a GPU's special function unit ([`ptoc_tensor::ex2`]): e^x is 2^(x log2 e).
    SpecialFunctionUnit,
}

static PROGRAMS: LazyLock<Vec<(UnOp, MathProgram)>> = LazyLock::new(|| {
    vec![
        (UnOp::Exp, exp_log::exp()),
        (UnOp::Log, exp_log::log()),
        (UnOp::Tanh, sigmoid::tanh()),
        (UnOp::Erf, sigmoid::erf()),
        (UnOp::Sin, trig::sin()),
        (UnOp::Cos, trig::cos()),
    ]
});

/// The program of a function; `None` for operations that are one or two correctly rounded operations already.
pub fn program(op: UnOp) -> Option<&'static MathProgram> {
    PROGRAMS.iter().find(|(o, _)| *o == op).map(|(_, p)| p)
}

static POW: LazyLock<MathProgram> = LazyLock::new(power::pow);

/// The program of the power function, which has two arguments ([`MathProgram::eval2`]).
pub fn pow() -> &'static MathProgram {
    &POW
}

/// Every function of one argument that has a program, with it.
pub fn programs() -> &'static [(UnOp, MathProgram)] {
    &PROGRAMS
}

#[cfg(test)]
mod tests;

//! Published programs of the transcendental functions. They are data: the interpreter evaluates them with
//! [`Program::eval`], the lowering turns each [`MathOp`] into one operation of loop IR, and so all backends agree bit
//! for bit. `scripts/fit_math.py` computes the coefficients; it says how.

mod build;
mod coefficients;
mod exp_log;
mod program;
mod sigmoid;
mod trig;

pub use program::{Id, MathOp, Program, Ty};

use crate::UnOp;
use std::sync::LazyLock;

static PROGRAMS: LazyLock<Vec<(UnOp, Program)>> = LazyLock::new(|| {
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
pub fn program(op: UnOp) -> Option<&'static Program> {
    PROGRAMS.iter().find(|(o, _)| *o == op).map(|(_, p)| p)
}

/// Every function that has a program, with it.
pub fn programs() -> &'static [(UnOp, Program)] {
    &PROGRAMS
}

#[cfg(test)]
mod tests;

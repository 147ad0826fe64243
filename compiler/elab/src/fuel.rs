//! Steps of compile-time evaluation: what a kernel may take, and what is said of one that takes more.

use super::{ElabResult, Elaborator, ErrorReported};
use ptoc_diagnostics::{Analysis, Diagnostic, Span, codes};

/// Steps of one kernel: statements, expressions, unrolled iterations, inlined calls.
const FUEL: u32 = 200_000;

/// Steps that are left, and what the others were taken for.
pub(crate) struct Fuel {
    left: u32,
    /// Steps in iterations of unrolled loops.
    unrolled: u32,
    /// Steps in inlined functions, outside of unrolled loops.
    inlined: u32,
    /// Unrolled loops around.
    unrolling: u32,
}

impl Default for Fuel {
    fn default() -> Fuel {
        Fuel { left: FUEL, unrolled: 0, inlined: 0, unrolling: 0 }
    }
}

impl Fuel {
    /// What is said when nothing is left: what most steps were taken for is what can be changed.
    fn spent(&self, span: Span) -> Diagnostic {
        let told = |message: String| Diagnostic::error(codes::OUT_OF_FUEL, span, message);
        let plain = FUEL - self.unrolled - self.inlined;
        if plain >= self.unrolled.max(self.inlined) {
            return told(format!("the kernel is too long: it has more than {FUEL} statements and expressions"))
                .with_label("it is read up to here")
                .with_help("write what repeats once, in a loop over a range: `for k in 0..n { .. }`")
                .with_help("or make several kernels of it, and launch them one after the other");
        }
        let d = told(format!("compile-time evaluation takes more than {FUEL} steps"));
        match self.unrolled >= self.inlined {
            true => d
                .with_note("a loop over a list is unrolled: its body is evaluated for every element")
                .with_help("loop over a range, `for k in 0..n { .. }`, which is not unrolled"),
            false => d
                .with_note("a function is inlined: its body is evaluated for every call")
                .with_help("call it once, in a loop over a range: `for k in 0..n { .. }`"),
        }
    }
}

impl Elaborator<'_> {
    /// Steps from here on are an iteration's of an unrolled loop.
    pub fn begin_unrolled(&mut self) {
        self.fuel.unrolling += 1;
    }

    /// Ends what [`Elaborator::begin_unrolled`] began.
    pub fn end_unrolled(&mut self) {
        self.fuel.unrolling -= 1;
    }

    /// Uses up a step of compile-time evaluation.
    pub fn step(&mut self, span: Span) -> ElabResult<()> {
        if self.fuel.left == 0 {
            return Err(ErrorReported);
        }
        self.fuel.left -= 1;
        match self.fuel.unrolling > 0 {
            true => self.fuel.unrolled += 1,
            false => self.fuel.inlined += u32::from(!self.calls.is_empty()),
        }
        ptoc_diagnostics::work(1);
        if let Some(all) = &self.bindings.steps
            && all.spend(Analysis::Elaboration, 1).is_err()
        {
            self.fuel.left = 0;
            let message = "compile-time evaluation of all kernels of this file took too many steps";
            let d = Diagnostic::error(codes::OUT_OF_FUEL, span, message)
                .with_note("the kernels before this one have taken most of them")
                .with_help("check fewer kernels at a time: put some of them into another file");
            return self.report(d);
        }
        match self.fuel.left {
            0 => self.report(self.fuel.spent(span)),
            _ => Ok(()),
        }
    }
}

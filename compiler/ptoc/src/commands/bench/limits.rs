//! The limits of this machine that a kernel is held against, measured beside it.

use ptoc_exec::machine::{self, Operation};
use ptoc_ir::loops::work::Work;

/// Rates at most, by as many threads as the kernel has.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The processor.
    pub name: String,
    /// Operations a second: fused multiply-adds of f32.
    pub fma: f64,
    /// Operations a second: dot products of i8, where the machine has some.
    pub dot: Option<f64>,
    /// Bytes a second, read and written, when as many bytes are copied as the kernel's arrays have.
    pub copy: f64,
}

impl Limits {
    /// Measures them: some tens of milliseconds.
    pub fn measure(bytes: usize, threads: usize) -> Limits {
        Limits {
            name: machine::name(),
            fma: machine::peak(Operation::FmaF32, threads).unwrap_or(f64::NAN),
            dot: machine::peak(Operation::DotI8, threads),
            copy: machine::copy_bandwidth(bytes, threads),
        }
    }

    /// The higher of two measurements: what slowed one down was other work.
    pub fn best(&self, other: &Limits) -> Limits {
        Limits {
            name: self.name.clone(),
            fma: self.fma.max(other.fma),
            dot: self.dot.zip(other.dot).map(|(a, b)| a.max(b)),
            copy: self.copy.max(other.copy),
        }
    }

    /// The operation that bounds this work, and its rate.
    pub fn arithmetic(&self, work: &Work) -> (&'static str, f64) {
        let ints = work.product_ints > work.total() / 2;
        match self.dot.filter(|_| ints) {
            Some(dot) => ("dot products of i8", dot),
            None => ("fused multiply-adds of f32", self.fma),
        }
    }
}

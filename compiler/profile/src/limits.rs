//! The limits of this machine, or of its device, that a kernel is held against, measured beside it.

use ptoc_driver::backend::DeviceLimits;
use ptoc_exec::machine::{self, Operation};
use ptoc_ir::loops::work::OpCount;

/// Rates at most, by as many threads as the kernel has.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The processor, or the device.
    pub name: String,
    /// Operations a second: fused multiply-adds of f32.
    pub fma: f64,
    /// Operations a second: dot products of i8, where the machine has some.
    pub dot: Option<f64>,
    /// Operations a second of the matrix unit on bf16 and on i8, where there is one that may be used.
    pub tiles_bf16: Option<f64>,
    /// See there.
    pub tiles_i8: Option<f64>,
    /// Bytes a second, read and written, when as many bytes are copied as the kernel's arrays have.
    pub copy: f64,
}

impl Limits {
    /// Measures them: some tens of milliseconds. `exact`: the matrix unit multiplies no halves.
    pub fn measure(bytes: usize, threads: usize, exact: bool) -> Limits {
        let tiles = |operation| machine::peak(operation, threads);
        Limits {
            name: machine::name(),
            fma: machine::peak(Operation::FmaF32, threads).unwrap_or(f64::NAN),
            dot: machine::peak(Operation::DotI8, threads),
            tiles_bf16: if exact { None } else { tiles(Operation::TilesBf16) },
            tiles_i8: tiles(Operation::TilesI8),
            copy: machine::copy_bandwidth(bytes, threads),
        }
    }

    /// Those of a device, which has no unit that products may use.
    pub fn of_device(device: DeviceLimits) -> Limits {
        let DeviceLimits { name, copy, fma } = device;
        Limits { name, fma, dot: None, tiles_bf16: None, tiles_i8: None, copy }
    }

    /// The higher of two measurements: what slowed one down was other work.
    pub fn best(&self, other: &Limits) -> Limits {
        Limits {
            name: self.name.clone(),
            fma: self.fma.max(other.fma),
            dot: higher(self.dot, other.dot),
            tiles_bf16: higher(self.tiles_bf16, other.tiles_bf16),
            tiles_i8: higher(self.tiles_i8, other.tiles_i8),
            copy: self.copy.max(other.copy),
        }
    }

    /// Seconds that a launch takes at least: all operations at the peak, or all bytes copied.
    pub fn least(&self, work: &OpCount, bytes: u64) -> f64 {
        (work.total() as f64 / self.arithmetic(work).1).max(bytes as f64 / self.copy)
    }

    /// Whether memory is what bounds a launch.
    pub fn is_bound_by_memory(&self, work: &OpCount, bytes: u64) -> bool {
        bytes as f64 / self.copy > work.total() as f64 / self.arithmetic(work).1
    }

    /// The operation that bounds this work, and its rate. f16 take the matrix unit four products for one.
    pub fn arithmetic(&self, work: &OpCount) -> (&'static str, f64) {
        let most = |part: u64| part > work.total() / 2;
        let fma = ("fused multiply-adds of f32", self.fma);
        if most(work.product_ints) {
            let tiles = self.tiles_i8.map(|rate| ("products of i8 on the matrix unit", rate));
            return tiles.or(self.dot.map(|rate| ("dot products of i8", rate))).unwrap_or(fma);
        }
        match self.tiles_bf16 {
            Some(rate) if most(work.product_bf16) => ("products of bf16 on the matrix unit", rate),
            Some(rate) if most(work.product_f16) && rate / 4.0 > self.fma => {
                ("products of f16 on the matrix unit", rate / 4.0)
            }
            _ => fma,
        }
    }
}

fn higher(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.zip(b).map(|(a, b)| a.max(b))
}

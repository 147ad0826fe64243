//! Arguments of `ptoc run`.

use super::{CompileArgs, OneBackend, parse_file, parse_threads, parse_tolerance, parse_vectors};
use crate::commands::complete;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
#[cfg(feature = "debugger")]
use ptoc_debugger::PrintTile;
use ptoc_driver::backend::{self, BackendRef};
use ptoc_driver::launch::parse_order;
use ptoc_interp::Order;
use std::path::PathBuf;

/// `ptoc run`
#[derive(Args, Debug)]
pub struct RunArgs {
    /// Source file: the language, F.tile, or PTO text, F.pto
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Kernel or program; may be left out if the file has only one
    #[arg(value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// What executes the kernel
    #[arg(long, value_parser = OneBackend, value_name = "BACKEND", help = backend_help())]
    pub backend: Option<BackendRef>,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Read the array of an argument
    #[arg(long = "in", value_name = "NAME=F.npy", value_parser = parse_file)]
    #[arg(add = ArgValueCompleter::new(complete::inputs))]
    pub input: Vec<(String, PathBuf)>,
    /// Write the array of an argument
    #[arg(long = "out", value_name = "NAME=F.npy", value_parser = parse_file)]
    #[arg(add = ArgValueCompleter::new(complete::outputs))]
    pub output: Vec<(String, PathBuf)>,
    /// Compare a result with an array
    #[arg(long, value_name = "NAME=F.npy", value_parser = parse_file)]
    pub expect: Vec<(String, PathBuf)>,
    /// Compare the results with the kernel's `ensures`, evaluated in f64
    #[arg(long)]
    pub verify: bool,
    /// Relative tolerance of comparisons
    #[arg(long, value_name = "R", default_value = "0", value_parser = parse_tolerance, allow_negative_numbers = true)]
    pub rtol: f64,
    /// Absolute tolerance of comparisons
    #[arg(long, value_name = "A", default_value = "0", value_parser = parse_tolerance, allow_negative_numbers = true)]
    pub atol: f64,
    /// Fill inputs that were not given with random numbers
    #[arg(long, value_name = "SEED")]
    pub random: Option<u64>,
    /// Threads (0: one a core)
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_threads, allow_negative_numbers = true)]
    pub threads: usize,
    /// Simulate the time of units in memory alone: nothing is computed, inputs are not needed, and there are no results
    #[arg(long, conflicts_with_all = ["input", "output", "expect", "verify", "random", "sanitize", "schedule"])]
    #[cfg_attr(feature = "debugger", arg(conflicts_with_all = ["step", "print_tile"]))]
    pub timing_only: bool,
    /// Inputs that are in a memory with units from runs before, such as weights: the host does not write them
    #[arg(long, value_name = "NAME", value_delimiter = ',', add = ArgValueCompleter::new(complete::inputs))]
    pub resident: Vec<String>,
    /// Bits of the vectors in machine code: auto, 128, 256 or 512
    #[arg(long, value_name = "BITS", default_value = "auto", value_parser = parse_vectors)]
    pub vectors: ptoc_exec::Vectors,
    /// Make f16 and bf16 matrix products chains of multiply-adds: do not use a matrix unit (AMX, tensor cores)
    #[arg(long)]
    pub exact: bool,
    /// Watch each access to tiles and tensors: what is unwritten, out of bounds, overlapping or used by two blocks ends
    /// the run
    #[arg(long)]
    pub sanitize: bool,
    /// In which order the interpreter runs the pipes of a kernel: `program`, `late` or `random[:SEED]`
    #[arg(long, value_name = "ORDER", value_parser = parse_order, add = ArgValueCompleter::new(complete::orders))]
    pub schedule: Option<Order>,
    /// Show times and counts
    #[arg(long)]
    pub stats: bool,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// The debugger.
    #[cfg(feature = "debugger")]
    #[command(flatten)]
    pub debug: DebugArgs,
    /// Write one page about the run: pipes, flags and stalls in the model's time; on units in memory time, rows,
    /// bandwidth, energy
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    #[cfg_attr(feature = "debugger", arg(conflicts_with_all = ["step", "print_tile"]))]
    pub html: Option<PathBuf>,
    /// The page has commands of the memory one by one from this tick on, as many as fit
    #[arg(long, value_name = "TICK", default_value_t = 0, requires = "html", hide_default_value = true)]
    pub html_from: u64,
    /// Write a trace of the compilation and the run: Perfetto's format to F.perfetto-trace, otherwise Chrome's JSON
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
}

impl RunArgs {
    /// The flag by which someone wants to look on, which the interpreter alone allows.
    #[cfg(feature = "debugger")]
    pub fn looks_on(&self) -> Option<&'static str> {
        let prints = (!self.debug.print_tile.is_empty()).then_some("--print-tile");
        if self.debug.step { Some("--step") } else { prints }
    }

    /// There is none.
    #[cfg(not(feature = "debugger"))]
    pub fn looks_on(&self) -> Option<&'static str> {
        None
    }
}

/// What `--backend` of `ptoc run` is, with the defaults that this build has.
fn backend_help() -> String {
    let mut defaults = vec!["cpu"];
    defaults.extend(backend::GPU.left_out().is_none().then_some("gpu for sm90"));
    defaults.extend(backend::PIM.left_out().is_none().then_some("pim for targets with units in memory"));
    let interp = if cfg!(feature = "debugger") { "; interp with --step and --print-tile" } else { "" };
    format!("What executes the kernel [default: {}{interp}]", defaults.join(", "))
}

/// Flags of `ptoc run` by which someone looks on.
#[cfg(feature = "debugger")]
#[derive(Args, Debug)]
pub struct DebugArgs {
    /// Debug on the interpreter: commands come from standard input (`help` lists them; spec/debugging.md)
    #[arg(long, conflicts_with_all = ["json", "stats", "sanitize", "schedule"])]
    pub step: bool,
    /// Print a tile, or a slice NAME[0:4, 0:8], on standard error whenever the statement on that line has run
    #[arg(long, value_name = "NAME@LINE", value_parser = PrintTile::parse)]
    #[arg(conflicts_with_all = ["sanitize", "schedule"])]
    pub print_tile: Vec<PrintTile>,
}

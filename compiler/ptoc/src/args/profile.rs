//! Arguments of `ptoc bench` and `ptoc profile`.

use super::{CompileArgs, OneBackend, parse_file, parse_threads, parse_tolerance, parse_vectors};
use crate::commands::complete;
use clap::{Args, ValueHint};
use clap_complete::engine::ArgValueCompleter;
use ptoc_driver::backend::BackendRef;
use ptoc_profile::profile::By;
use std::path::PathBuf;

/// Arguments of a kernel that is measured, and what launches it.
#[derive(Args, Debug)]
pub struct LaunchArgs {
    /// Read the array of an argument; inputs that are not given are random
    #[arg(long = "in", value_name = "NAME=F.npy", value_parser = parse_file)]
    pub input: Vec<(String, PathBuf)>,
    /// Where random inputs start from
    #[arg(long, value_name = "SEED", default_value = "1")]
    pub random: u64,
    /// What executes it, of those that its target has (default: the target's own)
    #[arg(long, value_parser = OneBackend, value_name = "BACKEND")]
    pub backend: Option<BackendRef>,
    /// Threads (0: one a core)
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_threads, allow_negative_numbers = true)]
    pub threads: usize,
    /// Bits of the vectors in machine code: auto, 128, 256 or 512
    #[arg(long, value_name = "BITS", default_value = "auto", value_parser = parse_vectors)]
    pub vectors: ptoc_exec::Vectors,
    /// Make f16 and bf16 matrix products chains of multiply-adds: do not use a matrix unit (AMX, tensor cores)
    #[arg(long)]
    pub exact: bool,
}

/// How values of `tune` lists are tried.
#[derive(Args, Debug)]
pub struct TuneSearchArgs {
    /// With --tune, measure again what is stored for these sizes
    #[arg(long, requires = "tune")]
    pub retune: bool,
    /// With --tune, try every combination: of more than 64 a search chooses some otherwise
    #[arg(long, requires = "tune")]
    pub exhaustive: bool,
    /// Leave out what takes FACTOR times the cycles of the best by the target's model of time; `off` leaves out nothing
    /// [default: 2 for `bench --tune --target T`, else off]
    #[arg(long, value_name = "FACTOR", value_parser = parse_margin)]
    pub prune: Option<Margin>,
}

/// A factor, or none.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Margin(pub Option<f64>);

/// `ptoc bench`
#[derive(Args, Debug)]
#[command(after_help = "What the figures mean: spec/bench.md.")]
pub struct BenchArgs {
    /// Source file: the language, F.tile, or PTO text, F.pto
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Kernel or program; may be left out if the file has only one
    #[arg(value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Arguments, and what launches them.
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// How long to launch the kernel again and again
    #[arg(long, value_name = "S", default_value = "1", value_parser = parse_seconds)]
    pub seconds: f64,
    /// Inputs that are in a memory with units before, such as weights: the cycles are those without writing them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub resident: Vec<String>,
    /// Try combinations of the `tune` lists that `-D` leaves open, and show the best as source
    #[arg(long)]
    pub tune: bool,
    /// How to tune.
    #[command(flatten)]
    pub search: TuneSearchArgs,
    /// Relative tolerance of the `ensures` that `--tune` holds results to (default: what roundings may come to)
    #[arg(long, value_name = "R", value_parser = parse_tolerance, allow_negative_numbers = true)]
    pub rtol: Option<f64>,
    /// Absolute tolerance
    #[arg(long, value_name = "A", value_parser = parse_tolerance, allow_negative_numbers = true)]
    pub atol: Option<f64>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
}

/// `ptoc profile`
#[derive(Args, Debug)]
#[command(after_help = "\
Values of -D: `-D M=256:4096:256` (both ends, and a step), `-D M=64:4096:*2` (a factor), `-D BM=64,128` (a list).
Every problem is tried with every configuration. What the table says: spec/profile.md.")]
pub struct ProfileArgs {
    /// Source file: the language, F.tile, or PTO text, F.pto
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Kernel or program; may be left out if the file has only one
    #[arg(value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Whole configurations: a file with a line of names and a line of values for each, with commas between them
    #[arg(long, value_name = "F.csv", value_hint = ValueHint::FilePath)]
    pub configurations: Option<PathBuf>,
    /// Try the values of `tune` lists that nothing else sets
    #[arg(long)]
    pub tune: bool,
    /// How to tune.
    #[command(flatten)]
    pub search: TuneSearchArgs,
    /// Arguments, and what launches them.
    #[command(flatten)]
    pub launch: LaunchArgs,
    /// What counts: the clock, `time`, or `cycles` of the simulated device (else of the target's model of time), which
    /// are the same in every run (default: cycles on targets with units in memory, else time)
    #[arg(long, value_name = "WHAT", value_parser = parse_by)]
    pub by: Option<By>,
    /// How long to launch each configuration
    #[arg(long, value_name = "S", default_value = "0.2", value_parser = parse_seconds)]
    pub seconds: f64,
    /// Compare a result with an array too, for the sizes that it fits
    #[arg(long, value_name = "NAME=F.npy", value_parser = parse_file, conflicts_with = "no_verify")]
    pub expect: Vec<(String, PathBuf)>,
    /// Inputs that are in a memory with units before, such as weights: the cycles are those without writing them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub resident: Vec<String>,
    /// Do not hold results to `ensures`
    #[arg(long)]
    pub no_verify: bool,
    /// Relative tolerance of `ensures` that have none of their own (default: what roundings may come to)
    #[arg(long, value_name = "R", value_parser = parse_tolerance, allow_negative_numbers = true)]
    pub rtol: Option<f64>,
    /// Absolute tolerance
    #[arg(long, value_name = "A", value_parser = parse_tolerance, allow_negative_numbers = true)]
    pub atol: Option<f64>,
    /// List the cases, and do no more
    #[arg(long, conflicts_with = "dry_run")]
    pub enumerate: bool,
    /// Check and compile the cases, and launch none
    #[arg(long)]
    pub dry_run: bool,
    /// Show only the best of each problem, best first
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub top: Option<u32>,
    /// Write the table to a file: .csv (row by row, as they are measured), .json, .md, or .xml (JUnit)
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    pub out: Vec<PathBuf>,
    /// Draw speed over size: a line for each configuration, or of more than six for the best
    #[arg(long, value_name = "F.svg", value_hint = ValueHint::FilePath, conflicts_with_all = ["enumerate", "dry_run"])]
    pub plot: Option<PathBuf>,
    /// Lines of others in the plot: a line of names (sizes and peers), then sizes and milliseconds
    #[arg(long, value_name = "F.csv", value_hint = ValueHint::FilePath, requires = "plot")]
    pub peers: Option<PathBuf>,
    /// Go on with the .csv file of an interrupted call: what it has is not measured again
    #[arg(long, conflicts_with = "append")]
    pub resume: bool,
    /// Add rows to the .csv file
    #[arg(long)]
    pub append: bool,
    /// Print the table as JSON
    #[arg(long)]
    pub json: bool,
}

fn parse_margin(text: &str) -> Result<Margin, String> {
    match text.parse::<f64>() {
        _ if text == "off" => Ok(Margin(None)),
        Ok(x) if x >= 1.0 && x.is_finite() => Ok(Margin(Some(x))),
        _ => Err("it is a factor of 1 or more, or `off`".into()),
    }
}

fn parse_by(text: &str) -> Result<By, String> {
    match text {
        "time" => Ok(By::Time),
        "cycles" => Ok(By::Cycles),
        _ => Err("it is `time` or `cycles`".into()),
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x > 0.0 && x <= 3600.0 => Ok(x),
        Ok(_) => Err("more than 0, at most 3600".into()),
        Err(e) => Err(e.to_string()),
    }
}

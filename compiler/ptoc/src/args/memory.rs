//! Arguments of the commands about memories: `ptoc sim` and `ptoc dram`.

use super::{MessageFormat, parse_file, parse_threads};
use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// `ptoc sim`
#[derive(Args, Debug)]
#[command(after_help = "Streams are described in spec/stream.md.")]
pub struct SimArgs {
    /// A command stream, text or binary
    #[arg(value_name = "STREAM.pim", value_hint = ValueHint::FilePath)]
    pub stream: PathBuf,
    /// A DRAM device in place of the stream's: a preset (see `ptoc dram --presets`), or a TOML or JSON file
    #[arg(long, value_name = "C")]
    pub config: Option<String>,
    /// Read an array that the stream takes
    #[arg(long = "in", value_name = "NAME=F.npy", value_parser = parse_file)]
    pub input: Vec<(String, PathBuf)>,
    /// Write an array that the stream gives
    #[arg(long = "out", value_name = "NAME=F.npy", value_parser = parse_file)]
    pub output: Vec<(String, PathBuf)>,
    /// Print where the time and the energy went
    #[arg(long, conflicts_with = "json")]
    pub stats: bool,
    /// Print the same as JSON
    #[arg(long)]
    pub json: bool,
    /// Threads on which channels are simulated, with the same results (0: one a core)
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_threads, allow_negative_numbers = true)]
    pub threads: usize,
    /// Write one page with timeline, rows, roofline, attribution and energy
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// The page has commands of the memory one by one from this tick on, as many as fit
    #[arg(long, value_name = "TICK", default_value_t = 0, requires = "html", hide_default_value = true)]
    pub html_from: u64,
    /// Write the timeline, a track for each bank and unit: Perfetto's format to F.perfetto-trace, otherwise Chrome's
    /// JSON
    #[arg(long, value_name = "F.json", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Form of the diagnostics on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `ptoc dram`
#[derive(Args, Debug)]
#[command(after_help = "Traces, configurations and reports are described in spec/dram.md.")]
pub struct DramArgs {
    /// Requests, one a line: `R|W bankgroup bank row column`
    #[arg(value_name = "TRACE.txt", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present_any = ["check_trace", "presets"])]
    pub requests: Option<PathBuf>,
    /// A preset (see `--presets`), or a TOML or JSON file with `org` and `timing_nCK`
    #[arg(long, value_name = "C", required_unless_present_any = ["check_trace", "presets"])]
    pub config: Option<String>,
    /// In which order requests are served
    #[arg(long, value_enum, value_name = "POLICY", default_value = "inorder")]
    pub policy: DramPolicy,
    /// Whether the banks are refreshed
    #[arg(long, value_enum, value_name = "WHEN", default_value = "off")]
    pub refresh: DramRefresh,
    /// Under frfcfs, whether a row stays open when no waiting request needs it
    #[arg(long, value_enum, value_name = "POLICY", default_value = "open")]
    pub page: DramPage,
    /// Under frfcfs, entries of the read queue and of the write queue
    #[arg(long, value_name = "READS,WRITES", default_value = "32,32", value_parser = parse_queues)]
    pub queues: (usize, usize),
    /// Under frfcfs, shares of the write queue at which writes begin and cease to drain
    #[arg(long, value_name = "HIGH,LOW", default_value = "0.8,0.2", value_parser = parse_drain)]
    pub drain: (f64, f64),
    /// Where byte addresses lie: a layout from burst numbers to places
    #[arg(long, value_name = "LAYOUT")]
    pub map: Option<String>,
    /// Threads for devices of several channels (0: one a core)
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_threads, allow_negative_numbers = true)]
    pub threads: usize,
    /// Write the commands as JSON: `[[tick,"CMD",bankgroup,bank,row,column],...]`
    #[arg(long, value_name = "F.json", value_hint = ValueHint::FilePath, conflicts_with = "check_trace")]
    pub commands: Option<PathBuf>,
    /// Check the commands in this file instead of simulating; with TRACE.txt also that they serve its requests
    #[arg(long, value_name = "F.json", value_hint = ValueHint::FilePath)]
    pub check_trace: Option<PathBuf>,
    /// With --check-trace, check also what device models leave to the controller
    #[arg(long, requires = "check_trace")]
    pub strict: bool,
    /// Write the commands as a timeline: Perfetto's format to F.perfetto-trace, otherwise Chrome's JSON
    #[arg(long, value_name = "F.json", value_hint = ValueHint::FilePath)]
    pub trace: Option<PathBuf>,
    /// Print the results as JSON
    #[arg(long)]
    pub json: bool,
    /// Form of the diagnostics on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
    /// List the presets, or print the configuration of one
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "")]
    #[arg(conflicts_with_all = ["requests", "config", "check_trace"])]
    pub presets: Option<String>,
}

/// `--policy`
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DramPolicy {
    /// Strict program order, one command a tick
    Inorder,
    /// First ready, first come first served, with read and write queues
    Frfcfs,
}

/// `--refresh`
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DramRefresh {
    /// All banks of a pseudo-channel every tREFI
    On,
    /// Never
    Off,
    /// One bank after the other, every tREFIpb
    PerBank,
}

/// `--page`
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum DramPage {
    /// It does
    Open,
    /// It is closed by the last access
    Closed,
}

/// `A,B`
fn parse_two<T: std::str::FromStr<Err: ToString>>(text: &str) -> Result<(T, T), String> {
    let (a, b) = text.split_once(',').ok_or("two numbers with a comma between them")?;
    let number = |text: &str| text.trim().parse::<T>().map_err(|e| e.to_string());
    Ok((number(a)?, number(b)?))
}

fn parse_queues(text: &str) -> Result<(usize, usize), String> {
    let (reads, writes) = parse_two::<usize>(text)?;
    match (1..=1024).contains(&reads) && (1..=1024).contains(&writes) {
        true => Ok((reads, writes)),
        false => Err("a queue has 1 to 1024 entries".into()),
    }
}

fn parse_drain(text: &str) -> Result<(f64, f64), String> {
    let (high, low) = parse_two::<f64>(text)?;
    match 0.0 <= low && low <= high && high <= 1.0 {
        true => Ok((high, low)),
        false => Err("0 <= LOW <= HIGH <= 1".into()),
    }
}

//! The command line, as clap sees it. What a feature leaves out is not there, and [`left_out`] knows its words.

pub mod left_out;
#[cfg(feature = "pim")]
mod memory;
#[cfg(feature = "profile")]
mod profile;
mod run;

use crate::commands::complete;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum, ValueHint};
use clap_complete::engine::ArgValueCompleter;
#[cfg(feature = "pim")]
pub use memory::{DramArgs, DramPage, DramPolicy, DramRefresh, SimArgs};
#[cfg(feature = "profile")]
pub use profile::{BenchArgs, Margin, ProfileArgs};
use ptoc_diagnostics::suggest;
use ptoc_driver::backend::{self, BackendRef};
use ptoc_driver::stages::{self, Level, Stage};
#[cfg(feature = "debugger")]
pub use run::DebugArgs;
pub use run::RunArgs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// What the exit status means.
const STATUS: &str = "Exit status: 0 done; 1 the input has errors, or a comparison failed; 2 the call is wrong,
and nothing was read.";

/// `ptoc`
#[derive(Parser, Debug)]
#[command(name = "ptoc", version, about = "Compiler for tile kernels", max_term_width = 100)]
#[command(after_help = STATUS)]
pub struct Cli {
    /// When to use colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value = "auto")]
    pub color: ColorWhen,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What clap cannot check: a name is defined once.
    pub fn check(&self) -> Result<(), clap::Error> {
        let (command, define) = match &self.command {
            Command::Check(args) => ("check", &args.compile.define),
            Command::Run(args) => ("run", &args.compile.define),
            Command::Emit(args) => ("emit", &args.compile.define),
            #[cfg(feature = "objects")]
            Command::Build(args) => ("build", &args.compile.define),
            Command::Mem(args) => ("mem", &args.compile.define),
            #[cfg(feature = "profile")]
            Command::Bench(args) => ("bench", &args.compile.define),
            #[cfg(feature = "profile")]
            Command::Profile(args) => ("profile", &args.compile.define),
            Command::Man(ManArgs { command: Some(asked), .. }) => return known_command(asked),
            _ => return Ok(()),
        };
        let fail = |message: String| {
            let mut cli = Cli::command();
            cli.build();
            let command = cli.find_subcommand_mut(command).expect("it was parsed");
            Err(command.error(ErrorKind::ArgumentConflict, message))
        };
        if let Command::Run(args) = &self.command
            && let Some(why) = args.wrong()
        {
            return fail(why.into());
        }
        if let Command::Check(args) = &self.command
            && (args.fix || args.watch)
            && args.files.iter().any(|file| file.as_os_str() == "-")
        {
            let flag = if args.fix { "--fix" } else { "--watch" };
            return fail(format!("'{flag}' is for files, and '-' is standard input"));
        }
        if let Command::Check(args) = &self.command
            && args.watch
            && args.compile.message_format == MessageFormat::Sarif
        {
            return fail("a SARIF document is written at the end, and '--watch' has none".into());
        }
        #[cfg(feature = "profile")]
        if let Command::Profile(args) = &self.command {
            for (name, value) in &args.compile.define {
                if let Err(why) = ptoc_profile::sizes(value) {
                    return fail(format!("invalid value '{name}={value}' for '-D <NAME=VALUES>': {why}"));
                }
            }
        }
        for (n, (name, value)) in define.iter().enumerate() {
            let Some((_, first)) = define[..n].iter().find(|(earlier, _)| earlier == name) else { continue };
            let message = format!("'-D {name}' is given twice: '-D {name}={first}' and '-D {name}={value}'");
            return fail(message);
        }
        Ok(())
    }
}

/// Refuses a word that is no command.
fn known_command(asked: &str) -> Result<(), clap::Error> {
    let cli = Cli::command();
    let names: Vec<&str> = cli.get_subcommands().map(clap::Command::get_name).collect();
    if names.contains(&asked) {
        return Ok(());
    }
    let near = suggest(asked, names.iter().copied()).map_or(String::new(), |near| format!("; did you mean '{near}'?"));
    Err(Cli::command().error(ErrorKind::InvalidValue, format!("there is no command '{asked}'{near}")))
}

/// `--color`
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ColorWhen {
    /// On terminals, unless NO_COLOR is set
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// The subcommands.
#[derive(Subcommand, Debug)]
pub enum Command {
    /// Check source files
    Check(CheckArgs),
    /// Compile a kernel and run it on arrays
    Run(Box<RunArgs>),
    /// Show what a compilation stage makes of a kernel
    Emit(EmitArgs),
    /// Compile a kernel to a file that C and C++ programs link
    #[cfg(feature = "objects")]
    Build(BuildArgs),
    /// Show what is in the memories of a kernel's target, where, and when
    Mem(MemArgs),
    /// Run the `// run:`, `// check:` and `// trap:` lines of source files
    Test(TestArgs),
    /// Write a ptoc.toml to begin with
    Init(InitArgs),
    /// Explain a diagnostic code or an instruction
    Explain(ExplainArgs),
    /// List the targets and their memories
    Targets(TargetsArgs),
    /// Evaluate an expression of the layout algebra
    Layout(LayoutArgs),
    /// Serve a trace of requests on a DRAM device, to the tick
    #[cfg(feature = "pim")]
    Dram(Box<DramArgs>),
    /// Execute a command stream on a memory with units in it: results, time, energy
    #[cfg(feature = "pim")]
    Sim(SimArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print a manual page
    Man(ManArgs),
    /// Measure a kernel on this machine, against what the machine can do
    #[cfg(feature = "profile")]
    Bench(BenchArgs),
    /// Verify and measure a table of problem sizes and configurations
    #[cfg(feature = "profile")]
    Profile(Box<ProfileArgs>),
    /// Show, export, import or drop stored results of tuning
    Tune(TuneArgs),
    /// Put source files into canonical form
    Fmt(FmtArgs),
    /// Write PTO text as source of the language
    Import(ImportArgs),
    /// Serve an editor by the Language Server Protocol, over standard input and output
    #[cfg(feature = "server")]
    Lsp(LspArgs),
    /// Debug kernels from an editor by the Debug Adapter Protocol, over standard input and output
    #[cfg(feature = "debugger")]
    Dap(DapArgs),
}

/// `ptoc dap`
#[cfg(feature = "debugger")]
#[derive(Args, Debug)]
#[command(after_help = "What can be launched, and how editors are set up: spec/debugging.md.")]
pub struct DapArgs {
    /// What editors add to name the way; there is no other
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// `ptoc lsp`
#[cfg(feature = "server")]
#[derive(Args, Debug)]
#[command(after_help = "What is served, and how editors are set up: spec/lsp.md.")]
pub struct LspArgs {
    /// What editors add to name the way; there is no other
    #[arg(long, hide = true)]
    pub stdio: bool,
}

/// What every command that compiles takes.
#[derive(Args, Clone, Debug)]
pub struct CompileArgs {
    /// Target to compile for: a name of `ptoc targets`, or the path of a file that describes a device with units in
    /// memory (./mydevice.toml; spec/devices.md) [default: that of ptoc.toml, else a2a3]
    #[arg(long, value_name = "T", add = ArgValueCompleter::new(complete::targets))]
    pub target: Option<String>,
    /// Set a const, type or fn parameter, a scalar argument, a dimension, a capacity (-D capacity.Vec=262144), or a
    /// number of units in memory or of that memory (-D unit.clock=300, -D device.stacks=6; spec/targets.md lists them)
    #[arg(short = 'D', value_name = "NAME=VALUE", value_parser = parse_definition)]
    #[arg(add = ArgValueCompleter::new(complete::definitions))]
    pub define: Vec<(String, String)>,
    /// Form of the diagnostics on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
    /// Make errors of warnings: of one code, or of all (`warnings`)
    #[arg(long, value_name = "CODE|warnings", add = ArgValueCompleter::new(complete::codes))]
    pub deny: Vec<String>,
    /// Show on standard error how long each phase and each pass took
    #[arg(long)]
    pub time_passes: bool,
    /// Verify the IR after each pass, as debug builds always do
    #[arg(long)]
    pub verify_ir: bool,
}

impl CompileArgs {
    /// `ptoc WHAT FILE [KERNEL]` with the target and the definitions that were given, for a shell.
    pub fn command(&self, what: &str, file: &Path, kernel: Option<&str>) -> String {
        let mut words = vec!["ptoc".to_owned(), what.to_owned(), quoted(&file.display().to_string())];
        words.extend(kernel.map(quoted));
        if let Some(target) = &self.target {
            words.extend(["--target".to_owned(), quoted(target)]);
        }
        for (name, value) in &self.define {
            words.extend(["-D".to_owned(), quoted(&format!("{name}={value}"))]);
        }
        words.join(" ")
    }
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// `--message-format`
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum MessageFormat {
    /// With excerpts of the source
    Human,
    /// One JSON object a line
    Json,
    /// One SARIF 2.1.0 document
    Sarif,
}

/// `ptoc check`
#[derive(Args, Debug)]
pub struct CheckArgs {
    /// Source files, F.tile and F.pto, and directories to search for them; `-` is standard input
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Write fixes that are certain into the files; guesses are left to you
    #[arg(long)]
    pub fix: bool,
    /// Check again whenever a file changes
    #[arg(long, conflicts_with = "fix")]
    pub watch: bool,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
}

/// The name of a registered backend; a list of them has its own message.
#[derive(Clone, Copy, Debug)]
struct OneBackend;

impl OneBackend {
    fn values() -> Vec<PossibleValue> {
        // What is left out is understood, and not offered.
        let value = |b: BackendRef| PossibleValue::new(b.name()).help(b.about()).hide(b.left_out().is_some());
        backend::with_left_out().into_iter().map(value).collect()
    }
}

impl TypedValueParser for OneBackend {
    type Value = BackendRef;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<BackendRef, clap::Error> {
        let names = value.to_string_lossy();
        if !names.contains(',') {
            let name =
                PossibleValuesParser::new(OneBackend::values()).parse_ref(command, arg, names.as_ref().as_ref())?;
            return Ok(backend::named(&name).expect("the name of a registered backend"));
        }
        let message = format!(
            "'--backend' takes one backend, and '{names}' is a list: run each by itself; or write the line \
             `// run: KERNEL {names} seed=1` into the file, and `ptoc test` runs all of them and compares their results"
        );
        Err(command.clone().error(ErrorKind::InvalidValue, message))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(OneBackend::values().into_iter()))
    }
}

/// `ptoc build`
#[cfg(feature = "objects")]
#[derive(Args, Debug)]
#[command(after_help = "What is built, and how it is linked and called: spec/build.md. PTO C++: spec/pto.md.")]
pub struct BuildArgs {
    /// Source file: the language, F.tile, or PTO text, F.pto
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Kernel; may be left out if the file has only one
    #[arg(value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// The file that is written; its name says what it is
    #[arg(short = 'o', long = "output", value_name = "F", value_hint = ValueHint::FilePath)]
    #[arg(long_help = forms_help())]
    pub output: PathBuf,
    /// Write the header of the function too
    #[arg(long, value_name = "F.h", value_hint = ValueHint::FilePath)]
    pub header: Option<PathBuf>,
    /// For a GPU: write a launcher in C too, with the code in it, which `--header` declares
    #[arg(long, value_name = "F.c", value_hint = ValueHint::FilePath, requires = "header")]
    pub launcher: Option<PathBuf>,
    /// Write a file for pkg-config too, which names the library where it is now
    #[arg(long, value_name = "F.pc", value_hint = ValueHint::FilePath)]
    pub pkg_config: Option<PathBuf>,
    /// The name of the function, if it is not to be the kernel's
    #[arg(long, value_name = "NAME")]
    pub symbol: Option<String>,
    /// An optional tensor argument (`= none`) that callers give; without it, it is absent
    #[arg(long, value_name = "NAME")]
    pub given: Vec<String>,
    /// For PTO C++ (3 if not given): what it says of places and order
    #[arg(long, value_name = "LEVEL")]
    pub pto_level: Option<PtoLevel>,
    /// With `--launcher`: products are chains of multiply-adds, not on the tensor cores
    #[arg(long)]
    pub exact: bool,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
}

/// The forms that can be built.
#[cfg(feature = "objects")]
fn forms_help() -> String {
    use ptoc_driver::build;
    let forms = build::forms();
    let mut lines: Vec<String> = forms.iter().map(|f| format!("  .{:<6} {}", f.extension, f.about)).collect();
    lines.push(format!("  {} C++ against the headers of pto-isa, for a compiler of PTO's targets", build::PTO_SUFFIX));
    format!("The file that is written; its name says what it is:\n{}", lines.join("\n"))
}

/// `ptoc tune`
#[derive(Args, Debug)]
#[command(group = clap::ArgGroup::new("what").required(true))]
#[command(after_help = "What is stored, where, and when it is used: spec/profile.md.")]
pub struct TuneArgs {
    /// Only results of this kernel
    #[arg(value_name = "KERNEL")]
    pub kernel: Option<String>,
    /// Show the results
    #[arg(long, group = "what")]
    pub list: bool,
    /// Write the results to a file, one line of JSON each
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath, group = "what")]
    pub export: Option<PathBuf>,
    /// Add the results of files that were exported; of two for the same the newer one stays
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath, group = "what", num_args = 1..)]
    pub import: Vec<PathBuf>,
    /// Drop the results
    #[arg(long, group = "what")]
    pub clear: bool,
    /// Print the results as JSON
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// `ptoc emit`
#[derive(Args, Debug)]
#[command(after_help = "What PTO text and PTO C++ can say, and how both are compiled: spec/pto.md.")]
pub struct EmitArgs {
    /// Source file: the language, F.tile, or PTO text, F.pto
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Kernel; may be left out if the file has only one
    #[arg(value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// Which stage
    #[arg(long, value_name = "STAGE", value_parser = StageArg::parser())]
    #[arg(required_unless_present_any = ["print_after_all", "html"])]
    pub stage: Option<StageArg>,
    /// Show the IR after every pass that changed it
    #[arg(long, conflicts_with = "stage")]
    pub print_after_all: bool,
    /// Write a page of the kernel after every pass that changed it, down to machine code, beside its source
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["stage", "print_after_all", "output"])]
    pub html: Option<PathBuf>,
    /// An optional tensor argument (`= none`) that the launch gives; without it, it is absent
    #[arg(long, value_name = "NAME")]
    pub given: Vec<String>,
    /// Bits of the vectors in machine code: auto, 128, 256 or 512
    #[arg(long, value_name = "BITS", default_value = "auto", value_parser = parse_vectors)]
    pub vectors: ptoc_exec::Vectors,
    /// For a GPU: show code that uses no tensor cores, as `run --exact` launches it
    #[arg(long)]
    pub exact: bool,
    /// Inputs that are in a memory with units from runs before: the stream does not write them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub resident: Vec<String>,
    /// For PTO text (2 if not given) and PTO C++ (3): what it says of places and order
    #[arg(long, value_name = "LEVEL")]
    pub pto_level: Option<PtoLevel>,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Write to a file instead of standard output
    #[arg(short = 'o', value_name = "F", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `--pto-level`. Level 1 is of values instead of buffers; PTOAS reads no text of it. In C++ level 2 is the automatic
/// form, and level 3 the manual one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum PtoLevel {
    /// Buffers without addresses and flags: who compiles it places them and orders the pipes (text: ptoas
    /// --pto-level=level2 --enable-insert-sync; C++: the headers' automatic mode)
    #[value(name = "2")]
    Automatic,
    /// Buffers with the addresses of ptoc's plan, without flags: PTOAS orders the pipes (ptoas --pto-level=level3
    /// --enable-insert-sync); text alone
    #[value(name = "placed")]
    Placed,
    /// Buffers with the addresses of ptoc's plan, and flags where they are needed (text: ptoas --pto-level=level3)
    #[value(name = "3")]
    Explicit,
}

impl From<PtoLevel> for Level {
    fn from(level: PtoLevel) -> Level {
        match level {
            PtoLevel::Automatic => Level::Automatic,
            PtoLevel::Placed => Level::Placed,
            PtoLevel::Explicit => Level::Explicit,
        }
    }
}

/// `--stage`
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum StageArg {
    /// A form of the kernel.
    Stage(Stage),
    /// `after:PASS`: IR as the pass left it.
    After(&'static str),
}

impl StageArg {
    /// `after:PASS` of every pass, made once: the parser of arguments keeps names for as long as the process runs.
    fn passes() -> &'static [(&'static str, &'static str, &'static str)] {
        static PASSES: LazyLock<Vec<(&str, &str, &str)>> = LazyLock::new(|| {
            let steps = stages::steps().into_iter();
            steps.map(|(name, about)| (&*format!("after:{name}").leak(), name, about)).collect()
        });
        &PASSES
    }

    /// Parses the words that there are.
    fn parser() -> impl TypedValueParser<Value = StageArg> {
        // What is left out is understood, and not offered.
        let value = |(stage, name, about): (Stage, &'static str, &'static str)| {
            PossibleValue::new(name).help(about).hide(stage.is_left_out())
        };
        let forms = Stage::with_left_out().into_iter().map(value);
        let passes = StageArg::passes().iter().map(|(word, _, about)| PossibleValue::new(*word).help(*about));
        PossibleValuesParser::new(forms.chain(passes)).try_map(|word| {
            let pass = StageArg::passes().iter().find(|p| p.0 == word).map(|p| StageArg::After(p.1));
            pass.or_else(|| Stage::named(&word).map(StageArg::Stage)).ok_or("there is no such stage")
        })
    }
}

/// `ptoc mem`
#[derive(Args, Debug)]
pub struct MemArgs {
    /// Source file: the language, F.tile, or PTO text, F.pto
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Kernel or program; may be left out if the file has only one
    #[arg(value_name = "KERNEL", add = ArgValueCompleter::new(complete::kernels))]
    pub kernel: Option<String>,
    /// Target, definitions, diagnostics.
    #[command(flatten)]
    pub compile: CompileArgs,
    /// Print the map as JSON (its fields: spec/memory.md)
    #[arg(long, conflicts_with_all = ["html", "svg"])]
    pub json: bool,
    /// Write one page with a picture of every memory beside the source
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    pub html: Option<PathBuf>,
    /// Write the pictures alone
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Print the file with an address for each automatic tile; it compiles to the same placement
    #[arg(long, conflicts_with_all = ["json", "html", "svg"])]
    pub source: bool,
    /// Where `--source` goes instead of standard output
    #[arg(short = 'o', long, value_name = "F", requires = "source", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
}

/// `ptoc test`
#[derive(Args, Debug)]
pub struct TestArgs {
    /// Source files, F.tile and F.pto, and directories to search for them
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Threads (0: one a core)
    #[arg(long, value_name = "N", default_value = "0", value_parser = parse_threads)]
    pub threads: usize,
    /// Bits of the vectors in machine code: auto, 128, 256 or 512
    #[arg(long, value_name = "BITS", default_value = "auto", value_parser = parse_vectors)]
    pub vectors: ptoc_exec::Vectors,
    /// Run machine code a second time, with the sanitizer, which watches each access to tiles and tensors
    #[arg(long)]
    pub sanitize: bool,
    /// Run the `// run:` lines on the interpreter and this backend, whatever they name: for its own target where it
    /// does not serve the line's; lines for units in memory stay there
    #[arg(long, value_parser = OneBackend, value_name = "BACKEND")]
    pub backend: Option<BackendRef>,
    /// Run only the lines that have this in their text or in their file's name; one of several is enough
    #[arg(long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Files that are tested at the same time (0: one a core)
    #[arg(long, value_name = "N", default_value = "1", value_parser = parse_threads)]
    pub jobs: usize,
    /// Show how long each line took
    #[arg(long)]
    pub times: bool,
    /// Write what became of the lines to a file, in JUnit's form
    #[arg(long, value_name = "F.xml", value_hint = ValueHint::FilePath)]
    pub junit: Option<PathBuf>,
    /// Print what became of the lines as JSON
    #[arg(long)]
    pub json: bool,
    /// Form of the diagnostics on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `ptoc fmt`
#[derive(Args, Debug)]
#[command(after_help = "What is canonical: spec/format.md.")]
pub struct FmtArgs {
    /// Source files, F.tile and F.pto, and directories to search for them; `-` is standard input, and the result goes
    /// to standard output
    #[arg(required = true, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub paths: Vec<PathBuf>,
    /// Change nothing: list the files that are not in canonical form, with their first line that is not
    #[arg(long)]
    pub check: bool,
    /// Form of the diagnostics on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `ptoc import`
#[derive(Args, Debug)]
#[command(after_help = "What becomes of PTO text: spec/pto.md.")]
pub struct ImportArgs {
    /// A file of PTO text, F.pto: the basic form, or level 1, 2 or 3
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
    /// Write to a file instead of standard output
    #[arg(short = 'o', long = "output", value_name = "F.tile", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Form of the diagnostics on standard error
    #[arg(long, value_enum, value_name = "FORMAT", default_value = "human")]
    pub message_format: MessageFormat,
}

/// `ptoc init`
#[derive(Args, Debug)]
#[command(after_help = "What it may say: spec/project.md.")]
pub struct InitArgs {
    /// The folder
    #[arg(value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
}

/// `ptoc explain`
#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// A code (SA-0353), its name, or an instruction (TADD)
    #[arg(value_name = "CODE", required_unless_present = "list", conflicts_with = "list")]
    #[arg(add = ArgValueCompleter::new(complete::pages))]
    pub code: Option<String>,
    /// List all codes
    #[arg(long)]
    pub list: bool,
}

/// `ptoc targets`
#[derive(Args, Debug)]
pub struct TargetsArgs {
    /// Only this target
    #[arg(value_name = "NAME", add = ArgValueCompleter::new(complete::targets))]
    pub name: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// `ptoc layout`
#[derive(Args, Debug)]
pub struct LayoutArgs {
    /// An expression in CuTe's notation: 'zipped_divide((128,64):(1,128), <32:1,16:1>)'
    #[arg(value_name = "EXPR", required_unless_present_any = ["batch", "list"])]
    pub expr: Option<String>,
    /// Print the value as JSON
    #[arg(long, conflicts_with = "svg")]
    pub json: bool,
    /// Draw a layout, a thread-value layout with its tile (`tv(layout, (M,N))`), an MMA atom or a tiled MMA
    #[arg(long, value_name = "F", value_hint = ValueHint::FilePath)]
    pub svg: Option<PathBuf>,
    /// Read expressions from standard input, one a line, and print one JSON object a line
    #[arg(long, conflicts_with_all = ["expr", "svg"])]
    pub batch: bool,
    /// List the operations
    #[arg(long, conflicts_with_all = ["expr", "svg", "json", "batch"])]
    pub list: bool,
}

/// `ptoc man`
#[derive(Args, Debug)]
pub struct ManArgs {
    /// The command that it is about; without one, ptoc itself
    #[arg(value_name = "COMMAND", conflicts_with = "dir", add = ArgValueCompleter::new(complete::commands))]
    pub command: Option<String>,
    /// Write all pages into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

/// `ptoc completions`
#[derive(Args, Debug)]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

fn split(text: &str) -> Result<(&str, &str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() && !value.is_empty() => Ok((name.trim(), value)),
        Some(_) => Err("both sides of `=` must be there".into()),
        None => Err("there is no `=`".into()),
    }
}

fn parse_definition(text: &str) -> Result<(String, String), String> {
    split(text).map(|(name, value)| (name.to_owned(), value.to_owned()))
}

fn parse_file(text: &str) -> Result<(String, PathBuf), String> {
    split(text).map(|(name, value)| (name.to_owned(), PathBuf::from(value)))
}

fn parse_threads(text: &str) -> Result<usize, String> {
    let most = ptoc_exec::Pool::most_threads();
    match text.parse::<usize>() {
        Ok(n) if n <= most => Ok(n),
        _ => Err(format!("it is a number from 0 (one a core) to {most}")),
    }
}

fn parse_vectors(text: &str) -> Result<ptoc_exec::Vectors, String> {
    let names = ptoc_exec::Vectors::NAMES;
    let found = names.iter().find(|(name, _)| *name == text).map(|(_, vectors)| *vectors);
    found.ok_or_else(|| "it is `auto`, `128`, `256` or `512`".into())
}

fn parse_tolerance(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(x) if x >= 0.0 => Ok(x),
        Ok(_) => Err("a tolerance is 0 or more".into()),
        Err(e) => Err(e.to_string()),
    }
}

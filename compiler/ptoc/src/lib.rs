//! The command line of ptoc as a library: arguments and output. `main.rs` is a shell around [`execute`].
//!
//! [`args`] has what clap parses, [`commands`] a file for each subcommand. What they do is in the driver, the views,
//! the debugger and the language server, which are crates of their own.

#![forbid(unsafe_code)]

pub mod args;
pub mod commands;
pub mod io;
pub mod progress;

// `ptoc build` puts parts of its static library into archives; so Cargo makes that library with this program.
#[cfg(feature = "objects")]
use ptoc_native as _;

use args::{Cli, Command};
use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use io::Io;
use progress::Progress;
use ptoc_diagnostics::{Diagnostic, Diagnostics, SourceMap, codes};
use ptoc_driver::{STACKS, files};
use std::ffi::OsString;
use std::io::{BufReader, IsTerminal, stderr, stdin, stdout};
use std::thread;
use std::time::Instant;

/// Done.
pub const DONE: u8 = 0;
/// The input has errors, or a comparison failed.
pub const ERRORS: u8 = 1;
/// The call is wrong.
pub const WRONG_CALL: u8 = 2;

/// Runs one call on the streams of this process.
pub fn execute_here(args: impl IntoIterator<Item = OsString>) -> u8 {
    let (mut out, mut err) = (stdout(), stderr());
    // https://no-color.org: any value but the empty one.
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    // A dumb terminal has no escape sequences.
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    let wanted = !unwanted && !dumb;
    let (color, color_out) = (err.is_terminal() && wanted, out.is_terminal() && wanted);
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|&c| c > 0);
    let mut input = BufReader::new(stdin());
    let ci = std::env::var_os("CI").is_some_and(|v| !v.is_empty());
    let progress = err.is_terminal() && !ci && !dumb;
    let interactive = stdin().is_terminal() && out.is_terminal();
    let mut io = Io::new(&mut out, &mut err);
    io.input = Some(&mut input);
    io.interactive = interactive;
    io.progress = progress.then(|| Progress::new(Instant::now()));
    io.terminal = interactive && !dumb;
    io.color = color;
    io.color_out = color_out;
    io.width = columns.unwrap_or(io.width);
    execute(args, &mut io)
}

/// Answers a shell that asks for completions, which it does by the environment, and ends the process then.
pub fn complete_here() {
    if std::env::var_os(commands::COMPLETE).is_none() {
        return;
    }
    let complete = || CompleteEnv::with_factory(Cli::command).var(commands::COMPLETE).complete();
    // Files are parsed for it.
    let worker = STACKS.iter().find_map(|&stack| thread::Builder::new().stack_size(stack).spawn(complete).ok());
    match worker {
        Some(worker) => drop(worker.join()),
        None => complete(),
    }
}

/// Carries the library of routines in a program that is installed. One that is being worked on finds it beside itself.
fn carry_routines() {
    #[cfg(all(feature = "objects", not(debug_assertions)))]
    if let Some(library) = ptoc_native_archive::routines!() {
        ptoc_driver::build::archive::carry(library);
    }
}

/// Runs one call, program name first, and returns the exit status. The work is done on a thread with a large stack.
pub fn execute(args: impl IntoIterator<Item = OsString>, io: &mut Io<'_>) -> u8 {
    carry_routines();
    let args: Vec<OsString> = args.into_iter().collect();
    let cli = Cli::try_parse_from(&args).and_then(|cli| cli.check().map(|()| cli));
    let status = match cli {
        Ok(cli) => {
            io.set_color(cli.color);
            on_large_stack(&cli.command, io)
        }
        Err(e) => match crate::args::left_out::explained(&e, &args) {
            Some(d) => {
                commands::show(d, io, crate::args::MessageFormat::Human);
                WRONG_CALL
            }
            None => usage(&e, io),
        },
    };
    io.finish();
    match io.failed.take() {
        Some(e) => {
            let d = Diagnostic::global(
                codes::CANNOT_WRITE,
                format!("cannot write to standard output: {}", files::reason(&e)),
            );
            let mut found = Diagnostics::new();
            found.push(d.with_help("make room, or send the results elsewhere"));
            io.report(found, &SourceMap::new(), args::MessageFormat::Human);
            status.max(ERRORS)
        }
        None => status,
    }
}

fn on_large_stack(command: &Command, io: &mut Io<'_>) -> u8 {
    for stack in STACKS {
        let status = thread::scope(|scope| {
            let worker = thread::Builder::new().name("ptoc".into()).stack_size(stack);
            let handle = worker.spawn_scoped(scope, || dispatch(command, io)).ok()?;
            // A panic has told its story already; the status is that of a process that panics.
            Some(handle.join().unwrap_or(101))
        });
        if let Some(status) = status {
            return status;
        }
    }
    dispatch(command, io)
}

fn dispatch(command: &Command, io: &mut Io<'_>) -> u8 {
    match command {
        Command::Check(args) => commands::check::check(args, io),
        Command::Run(args) => commands::run::run(args, io),
        Command::Emit(args) => commands::emit::emit(args, io),
        #[cfg(feature = "objects")]
        Command::Build(args) => commands::build::build(args, io),
        Command::Test(args) => commands::test::test(args, io),
        Command::Init(args) => commands::init::init(args, io),
        Command::Explain(args) => commands::explain::explain(args, io),
        Command::Targets(args) => commands::targets::targets(args, io),
        Command::Man(args) => commands::man::man(args, io),
        Command::Completions(args) => commands::completions(args.shell, io),
        Command::Mem(args) => commands::mem::mem(args, io),
        Command::Layout(args) => commands::layout::layout(args, io),
        #[cfg(feature = "pim")]
        Command::Sim(args) => commands::sim::sim(args, io),
        #[cfg(feature = "pim")]
        Command::Dram(args) => commands::dram::dram(args, io),
        #[cfg(feature = "profile")]
        Command::Bench(args) => commands::bench::bench(args, io),
        #[cfg(feature = "profile")]
        Command::Profile(args) => commands::profile::profile(args, io),
        Command::Tune(args) => commands::tune::tune(args, io),
        Command::Fmt(args) => commands::fmt::fmt(args, io),
        Command::Import(args) => commands::import::import(args, io),
        #[cfg(feature = "server")]
        Command::Lsp(_) => ptoc_lsp::stdio::serve(std::io::BufReader::new(std::io::stdin()), io.out),
        #[cfg(feature = "debugger")]
        Command::Dap(_) => ptoc_dap::serve(std::io::BufReader::new(std::io::stdin()), io.out),
    }
}

/// Help and version are results; anything else is a wrong call.
fn usage(e: &clap::Error, io: &mut Io<'_>) -> u8 {
    if e.use_stderr() {
        let text = e.render();
        let text = if io.color { text.ansi().to_string() } else { text.to_string() };
        io.note(&text);
        return WRONG_CALL;
    }
    io.print(&e.render().to_string());
    DONE
}

//! `ptoc`: see the library.

use std::io::{self, IsTerminal};
use std::process::ExitCode;

/// Compilation is many small allocations that live briefly.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let (mut out, mut err) = (io::stdout(), io::stderr());
    // https://no-color.org: any value but the empty one.
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty());
    let wanted = !unwanted && std::env::var_os("TERM").is_none_or(|t| t != "dumb");
    let (color, color_out) = (err.is_terminal() && wanted, out.is_terminal() && wanted);
    let columns = std::env::var("COLUMNS").ok().and_then(|c| c.parse().ok()).filter(|&c| c > 0);
    let mut input = io::BufReader::new(io::stdin());
    let interactive = io::stdin().is_terminal() && out.is_terminal();
    let mut io = ptoc::io::Io::new(&mut out, &mut err);
    io.input = Some(&mut input);
    io.interactive = interactive;
    io.color = color;
    io.color_out = color_out;
    io.width = columns.unwrap_or(io.width);
    ExitCode::from(ptoc::execute(std::env::args_os(), &mut io))
}

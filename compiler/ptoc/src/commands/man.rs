//! `ptoc man`: manual pages, made of what clap knows.

use super::show;
use crate::args::{Cli, ManArgs, MessageFormat};
use crate::io::Io;
use crate::{DONE, ERRORS};
use clap::CommandFactory;
use clap_mangen::Man;
use ptoc_driver::files::Outputs;

/// Prints a page, or writes all of them.
pub fn man(args: &ManArgs, io: &mut Io<'_>) -> u8 {
    let pages = pages();
    if let Some(folder) = &args.dir {
        let mut outputs = Outputs::new();
        let mut write = |(name, text): &(String, Vec<u8>)| {
            let n = outputs.plan(&folder.join(format!("{name}.1")))?;
            outputs.write(n, text)
        };
        return match pages.iter().try_for_each(&mut write).and_then(|()| outputs.commit()) {
            Ok(()) => {
                io.print(&format!("{} pages are written to {}\n", pages.len(), folder.display()));
                DONE
            }
            Err(d) => {
                show(d, io, MessageFormat::Human);
                ERRORS
            }
        };
    }
    let wanted = args.command.as_ref().map_or("ptoc".to_owned(), |command| format!("ptoc-{command}"));
    // Another word was refused with the call.
    if let Some((_, text)) = pages.iter().find(|(name, _)| *name == wanted) {
        io.print(&String::from_utf8_lossy(text));
    }
    DONE
}

/// All pages by name: of the program and of each command.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut cli = Cli::command().disable_help_subcommand(true);
    cli.build();
    let page = |name: String, command: clap::Command| {
        let mut text = Vec::new();
        let usage = command.clone().render_usage().to_string();
        // clap keeps names for as long as the process runs; memory takes what is written.
        let command = command.name(&*name.clone().leak()).version(env!("CARGO_PKG_VERSION"));
        let _ = Man::new(command.disable_help_subcommand(true)).render(&mut text);
        (name, with_synopsis(&text, &usage))
    };
    let commands: Vec<clap::Command> = cli.get_subcommands().filter(|c| c.get_name() != "help").cloned().collect();
    let all = commands.into_iter().map(|command| page(format!("ptoc-{}", command.get_name()), command));
    std::iter::once(page("ptoc".into(), cli.clone())).chain(all).collect()
}

/// A page whose synopsis is clap's usage: that of the page names options without their values.
fn with_synopsis(page: &[u8], usage: &str) -> Vec<u8> {
    const TITLE: &str = ".SH SYNOPSIS\n";
    let page = String::from_utf8_lossy(page).into_owned();
    let Some((before, rest)) = page.split_once(TITLE) else { return page.into_bytes() };
    let after = rest.find(".SH ").map_or("", |at| &rest[at..]);
    let words = usage.trim_start_matches("Usage:").split_whitespace().collect::<Vec<_>>().join(" ");
    let words = words.replace('\\', "\\e").replace('-', "\\-");
    format!("{before}{TITLE}{words}\n{after}").into_bytes()
}

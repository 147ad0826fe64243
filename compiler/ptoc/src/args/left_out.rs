//! Words of the command line that come with a feature. Where a build leaves it out, who writes one is told so.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use ptoc_diagnostics::Diagnostic;
use ptoc_driver::backend::Part;
use std::ffi::OsString;

/// What a feature adds to the command line.
struct Words {
    part: Part,
    /// It is there.
    present: bool,
    commands: &'static [&'static str],
    /// Flags, each with its command.
    flags: &'static [(&'static str, &'static str)],
}

/// The language server.
const SERVER: Part = Part { feature: "server", about: "the language server" };
/// The debugger.
const DEBUGGER: Part = Part { feature: "debugger", about: "the debugger" };

/// Measurements.
const PROFILE: Part = Part { feature: "profile", about: "measurements" };

/// All of them. Backends and stages are values, which their arguments know.
static WORDS: [Words; 5] = [
    Words { part: Part::OBJECTS, present: cfg!(feature = "objects"), commands: &["build"], flags: &[] },
    Words { part: Part::PIM, present: cfg!(feature = "pim"), commands: &["sim", "dram"], flags: &[] },
    Words { part: PROFILE, present: cfg!(feature = "profile"), commands: &["bench", "profile"], flags: &[] },
    Words { part: SERVER, present: cfg!(feature = "server"), commands: &["lsp"], flags: &[] },
    Words {
        part: DEBUGGER,
        present: cfg!(feature = "debugger"),
        commands: &["dap"],
        flags: &[("run", "--step"), ("run", "--print-tile")],
    },
];

/// What to say of a call that is wrong for no reason but that something was left out.
pub fn explained(error: &clap::Error, args: &[OsString]) -> Option<Diagnostic> {
    let word = match error.kind() {
        ErrorKind::InvalidSubcommand => ContextKind::InvalidSubcommand,
        ErrorKind::UnknownArgument => ContextKind::InvalidArg,
        _ => return None,
    };
    let Some(ContextValue::String(word)) = error.get(word) else { return None };
    of_word(word, args, |words| !words.present).map(Part::refused)
}

/// The part that a word is of, among those that are asked about.
fn of_word(word: &str, args: &[OsString], asked: impl Fn(&Words) -> bool) -> Option<&'static Part> {
    let flag = |(command, flag): &(&str, &str)| *flag == word && args.iter().any(|a| a.to_str() == Some(*command));
    let found = WORDS.iter().filter(|words| asked(words));
    let mut found = found.filter(|words| words.commands.contains(&word) || words.flags.iter().any(flag));
    found.next().map(|words| &words.part)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Cli;
    use clap::CommandFactory;

    /// The words are those that clap has, or would have.
    #[test]
    fn words_are_those_of_the_command_line() {
        let cli = Cli::command();
        let command = |name: &str| cli.get_subcommands().find(|c| c.get_name() == name);
        for words in &WORDS {
            for name in words.commands {
                assert_eq!(command(name).is_some(), words.present, "{name}");
            }
            for (name, flag) in words.flags {
                let has = |c: &clap::Command| c.get_arguments().any(|a| a.get_long() == flag.strip_prefix("--"));
                assert_eq!(command(name).is_some_and(has), words.present, "{name} {flag}");
            }
        }
    }

    #[test]
    fn words_have_parts() {
        let args = |text: &str| text.split(' ').map(OsString::from).collect::<Vec<_>>();
        let part = |word, text| of_word(word, &args(text), |_| true).map(|part| part.feature);
        assert_eq!(part("lsp", "ptoc lsp"), Some("server"));
        assert_eq!(part("--step", "ptoc run a.tile --step"), Some("debugger"));
        assert_eq!(part("--step", "ptoc check a.tile --step"), None);
        assert_eq!(part("lps", "ptoc lps"), None);
        let d = DEBUGGER.refused();
        assert!(d.message.starts_with("this ptoc was built without `debugger`"), "{}", d.message);
    }
}

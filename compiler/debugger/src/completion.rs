//! What Tab completes at the debugger's prompt, by the command that stands before.

use super::command::{COMMANDS, resolve};
use super::debugger::Debugger;
use super::names::visible;
use super::stop::StopPlace;

/// What the next line may have, each list sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Names that are visible.
    pub names: Vec<String>,
    /// What a run can stop at by its name.
    pub places: Vec<String>,
}

/// Arguments of `info`.
const INFO: [&str; 2] = ["breaks", "locals"];

impl Completions {
    /// At a stop, from where the debugger looks.
    pub fn new(debugger: &Debugger, stop: &StopPlace<'_>) -> Completions {
        let from = stop.views().get(debugger.level).map_or(stop.look.from, |view| view.0);
        let names = visible(stop.look.debug, from).into_iter().map(|n| n.name.to_string());
        Completions { names: sorted(names), places: sorted(stop.program.places().map(str::to_owned)) }
    }

    /// Where the word begins that the text before the cursor ends with, and what it may become.
    pub fn complete(&self, before: &str) -> (usize, Vec<String>) {
        let begin = before.trim_end_matches(|c: char| c.is_alphanumeric() || c == '_').len();
        let (head, word) = before.split_at(begin);
        let fits = |all: &[String]| all.iter().filter(|w| w.starts_with(word)).cloned().collect();
        let Some(first) = head.split_whitespace().next() else {
            return (begin, fits(&commands()));
        };
        let condition = head.contains(" if ");
        let found = match resolve(first) {
            Ok("break") if !condition => fits(&self.places),
            Ok("info") => fits(&INFO.map(str::to_owned)),
            Ok("help") => fits(&commands()),
            _ => fits(&self.names),
        };
        (begin, found)
    }
}

fn commands() -> Vec<String> {
    sorted(COMMANDS.iter().map(|c| c.0.to_owned()))
}

fn sorted(words: impl Iterator<Item = String>) -> Vec<String> {
    let mut words: Vec<String> = words.collect();
    words.sort();
    words.dedup();
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_by_command() {
        let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
        let offer = Completions { names: list(&["M", "acc", "k"]), places: list(&["TMATMUL", "acc", "gemm"]) };
        let complete = |before| offer.complete(before);
        assert_eq!(complete("he"), (0, list(&["help"])));
        assert_eq!(complete("  he"), (2, list(&["help"])));
        assert_eq!(complete("break TMAT"), (6, list(&["TMATMUL"])));
        assert_eq!(complete("b ac"), (2, list(&["acc"])));
        assert_eq!(complete("break gemm if a"), (14, list(&["acc"])));
        assert_eq!(complete("info lo"), (5, list(&["locals"])));
        assert_eq!(complete("i "), (2, list(&["breaks", "locals"])));
        assert_eq!(complete("help ti"), (5, list(&["tiles"])));
        assert_eq!(complete("print é + a"), (11, list(&["acc"])));
        assert_eq!(complete("print TMAT"), (6, list(&[])));
        assert_eq!(complete("print acc["), (10, list(&["M", "acc", "k"])));
    }
}

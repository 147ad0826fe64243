//! The test budget: how many cases random suites try, and how much of a list exhaustive suites go through.
//!
//! Tiers, told apart by [`VARIABLE`]. Without it a suite does enough to notice what is plainly broken, in a time
//! that one waits for. `quarter` is the fixed, bounded amount that `.ci/run` does before anything is taken: a fourth of
//! `full`, and no less than the small one. A number is so many times the full amount, for a night.
//!
//! All tiers begin with the same seeds: what the small one tries, the full one tries too.

#![forbid(unsafe_code)]

use std::fmt::Debug;

/// The environment variable that says how much is tried: unset, `quarter`, `full`, or so many times the full amount.
pub const VARIABLE: &str = "PTOC_TEST_BUDGET";

/// What [`VARIABLE`] says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Budget {
    Usual,
    Quarter,
    Full { times: u64 },
}

impl Budget {
    /// A wrong word stops the test: else it would pass with less than was asked for.
    fn parse(text: Option<&str>) -> Budget {
        match text {
            None | Some("") => Budget::Usual,
            Some("quarter") => Budget::Quarter,
            Some("full") => Budget::Full { times: 1 },
            Some(text) => match text.parse() {
                Ok(times) if times > 0 => Budget::Full { times },
                _ => panic!(
                    "{VARIABLE} is `{text}`: it has to be `quarter`, `full` or a number of times the full amount"
                ),
            },
        }
    }

    fn of_environment() -> Budget {
        Budget::parse(std::env::var(VARIABLE).ok().as_deref())
    }

    fn cases(self, usual: u64, full: u64) -> u64 {
        match self {
            Budget::Usual => usual,
            Budget::Quarter => usual.max(full / 4),
            Budget::Full { times } => full.saturating_mul(times),
        }
    }
}

/// Cases of a random suite, in the integer type that its caller counts in.
pub fn cases<N: TryFrom<u64, Error: Debug>>(usual: u64, full: u64) -> N {
    N::try_from(Budget::of_environment().cases(usual, full)).expect("a number of cases")
}

/// The step through a list that the full tier goes through whole: every `usual`th of it is tried otherwise.
pub fn one_in(usual: usize) -> usize {
    match Budget::of_environment() {
        Budget::Usual => usual,
        Budget::Quarter => usual.min(4),
        Budget::Full { .. } => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tiers() {
        assert_eq!(Budget::parse(None).cases(20, 100), 20);
        assert_eq!(Budget::parse(Some("")).cases(20, 100), 20);
        assert_eq!(Budget::parse(Some("quarter")).cases(20, 100), 25);
        assert_eq!(Budget::parse(Some("quarter")).cases(40, 100), 40);
        assert_eq!(Budget::parse(Some("full")).cases(20, 100), 100);
        assert_eq!(Budget::parse(Some("30")).cases(20, 100), 3000);
    }

    #[test]
    #[should_panic = "has to be `quarter`, `full` or a number"]
    fn a_wrong_word_is_told() {
        Budget::parse(Some("ful"));
    }
}

//! Configurations that take many times as long as the best so far: they are not measured.

use crate::format::{flag, time};
use ptoc_diagnostics::{Diagnostic, codes};
use std::cell::Cell;
use std::time::{Duration, Instant};

/// How many times the best launch so far the better one of a configuration may take.
const FACTOR: u32 = 10;
/// What takes less costs nothing to measure.
const LEAST: Duration = Duration::from_millis(1);
/// How many times the best so far a launch may take before it is ended, and how long at least.
const ENDED: u32 = 100;
const ENDED_LEAST: Duration = Duration::from_millis(100);

/// The fastest launch so far.
#[derive(Default)]
pub(crate) struct Patience(Option<(Duration, Vec<(String, String)>)>);

impl Patience {
    /// Does work with launches, of which one that takes too long is ended. The reason, if it was.
    pub fn watch<T>(&self, work: impl FnOnce() -> T) -> (T, Option<Box<Diagnostic>>) {
        let Some((best, _)) = &self.0 else { return (work(), None) };
        let limit = (*best * ENDED).max(ENDED_LEAST);
        // It is asked when a launch has taken a while, and not before.
        let (begin, ended) = (Cell::new(None::<Instant>), Cell::new(false));
        let stop = || {
            let first = begin.get().unwrap_or_else(Instant::now);
            begin.set(Some(first));
            ended.set(ended.get() || first.elapsed() > limit);
            ended.get()
        };
        let done = ptoc_exec::interruptible(&stop, work);
        let message = |best: &str| {
            format!("a launch was ended after {}; the best so far takes {best}", time(limit.as_secs_f64()))
        };
        let why = ended.get().then(|| self.given_up(message)).flatten();
        (done, why)
    }

    /// Whether a configuration is given up whose fastest launch took so long; if not it may be the best.
    pub fn judge(&mut self, own: Duration, of: &[(String, String)]) -> Option<Box<Diagnostic>> {
        let is_better = self.0.as_ref().is_none_or(|(best, _)| own < *best);
        if is_better && !own.is_zero() {
            self.0 = Some((own, of.to_vec()));
        }
        let (best, _) = self.0.as_ref()?;
        if own <= LEAST || own <= *best * FACTOR {
            return None;
        }
        let times = own.as_secs_f64() / best.as_secs_f64();
        self.given_up(|best| format!("a launch takes {}, {times:.0} times the {best}", time(own.as_secs_f64())))
    }

    fn given_up(&self, message: impl FnOnce(&str) -> String) -> Option<Box<Diagnostic>> {
        let (best, of) = self.0.as_ref()?;
        let flags: Vec<String> = of.iter().map(|(name, value)| flag(name, value)).collect();
        let of = match flags.is_empty() {
            true => "the best".to_owned(),
            false => flags.join(" "),
        };
        let message = message(&format!("{} of {of}", time(best.as_secs_f64())));
        let d = Diagnostic::global(codes::GIVEN_UP, message);
        Some(Box::new(d.with_help("`ptoc bench` with these definitions measures it all the same")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(n: u32) -> Vec<(String, String)> {
        vec![("BM".into(), n.to_string())]
    }

    #[test]
    fn what_takes_ten_times_as_long_is_given_up() {
        let mut patience = Patience::default();
        let ms = Duration::from_millis;
        assert!(patience.judge(ms(300), &of(1)).is_none(), "the first");
        assert!(patience.judge(ms(3), &of(2)).is_none());
        assert!(patience.judge(ms(30), &of(3)).is_none());
        let why = patience.judge(ms(300), &of(1)).unwrap();
        assert_eq!(why.code, codes::GIVEN_UP);
        assert!(why.message.contains("100 times the 3.000 ms of -D BM=2"), "{}", why.message);
        // What is as short as that is measured in no time.
        assert!(patience.judge(Duration::from_micros(2), &of(4)).is_none());
        assert!(patience.judge(Duration::from_micros(900), &of(5)).is_none());
    }

    #[test]
    fn a_launch_is_ended_after_a_hundred_times_the_best() {
        let mut patience = Patience::default();
        let (asked, why) = patience.watch(|| 1);
        assert!(asked == 1 && why.is_none());
        patience.judge(Duration::from_micros(10), &of(2));
        let (_, why) = patience.watch(|| ());
        assert!(why.is_none());
    }
}

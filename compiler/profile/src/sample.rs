//! Launches and their times.

use ptoc_driver::launch::{CompiledPlan, LaunchTimes, Locals};
use ptoc_driver::session::{Failed, Session};
use ptoc_tensor::Tensor;
use std::time::{Duration, Instant};

/// Launches at least, however long they take.
const LEAST: usize = 5;
/// Launches at most, however short they are.
const MOST: usize = 200_000;

/// A plan that has run once, so that its pages are there and its checks hold.
pub struct Rehearsal<'c, 'p> {
    plan: &'c CompiledPlan<'p>,
    locals: Locals,
    /// What arguments that are read and written held at first: every launch begins with it.
    first: Vec<(usize, Tensor)>,
    threads: usize,
    /// A launch has been made, so a device has the arrays.
    resident: bool,
    /// How long that launch took.
    pub took: Duration,
}

impl<'c, 'p> Rehearsal<'c, 'p> {
    /// Runs the plan once, on a copy of the tensors.
    pub fn new(
        session: &mut Session,
        plan: &'c CompiledPlan<'p>,
        tensors: &[Tensor],
        threads: usize,
    ) -> Result<Rehearsal<'c, 'p>, Failed> {
        let arguments = plan.plan().arguments.iter().enumerate();
        let both = arguments.filter(|(_, a)| a.is_input() && a.is_output());
        let first = both.map(|(i, _)| (i, tensors[i].clone())).collect();
        let locals = plan.locals(session)?;
        let mut rehearsal = Rehearsal { plan, locals, first, threads, resident: false, took: Duration::ZERO };
        rehearsal.took = rehearsal.launch(session, &mut tensors.to_vec())?.launches;
        Ok(rehearsal)
    }

    /// Launches once.
    pub fn launch(&mut self, session: &mut Session, tensors: &mut [Tensor]) -> Result<LaunchTimes, Failed> {
        for (i, first) in &self.first {
            tensors[*i].bytes_mut().copy_from_slice(first.bytes());
        }
        // What is restored has to go to the device again, and a program's tensors begin with what they are filled with.
        let resident = self.resident && self.first.is_empty() && self.locals.tensors.is_empty();
        self.resident = true;
        self.plan.time(session, tensors, &mut self.locals.tensors, self.threads, resident)
    }

    /// Launches again and again for about that long.
    pub fn launch_for(
        &mut self,
        session: &mut Session,
        tensors: &mut [Tensor],
        length: Duration,
    ) -> Result<Sample, Failed> {
        let (mut sample, begin) = (Sample::default(), Instant::now());
        // The first one of a stretch finds caches cold.
        self.launch(session, tensors)?;
        while sample.times.len() < LEAST || (begin.elapsed() < length && sample.times.len() < MOST) {
            sample.add(&self.launch(session, tensors)?);
        }
        sample.times.sort_unstable();
        Ok(sample)
    }
}

/// What was measured in a stretch of launches.
#[derive(Default)]
pub struct Sample {
    /// Times of the whole plan, in the end ascending.
    pub times: Vec<Duration>,
    /// Sums over the stretch, for each launch of the plan, and how often it was launched.
    pub steps: Vec<(Duration, u64)>,
    /// That of what is done around launches.
    pub around: Duration,
}

impl Sample {
    fn add(&mut self, times: &LaunchTimes) {
        self.times.push(times.launches);
        self.steps.resize(times.steps.len(), (Duration::ZERO, 0));
        for (sum, more) in self.steps.iter_mut().zip(&times.steps) {
            *sum = (sum.0 + more.0, sum.1 + more.1);
        }
        self.around += times.around;
    }
}

/// The time that this share of ascending times does not exceed.
pub fn percentile(times: &[Duration], share: f64) -> Duration {
    let at = (share * times.len() as f64).ceil() as usize;
    times.get(at.clamp(1, times.len().max(1)) - 1).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_times_that_were_measured() {
        let times: Vec<Duration> = (1..=10).map(Duration::from_millis).collect();
        let at = |share| percentile(&times, share).as_millis();
        assert_eq!([at(0.0), at(0.5), at(0.9), at(0.99), at(1.0)], [1, 5, 9, 10, 10]);
        assert_eq!(percentile(&times[..1], 0.5).as_millis(), 1);
    }
}

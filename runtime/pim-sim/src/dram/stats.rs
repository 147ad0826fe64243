//! What a simulation counts.

use super::command::Command;
use super::device::Cause;

/// Counts of one channel, or of several together.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Stats {
    /// Reads and writes that came.
    pub reads: u64,
    /// See `reads`.
    pub writes: u64,
    /// Commands issued, by id.
    pub commands: [u64; Command::COUNT],
    /// Requests that found their row open. In order, the bank's state counts when the request reaches the head; under
    /// FR-FCFS, when the first command for the request issues.
    pub hits: u64,
    /// Requests that found their bank closed.
    pub misses: u64,
    /// Requests that found another row open.
    pub conflicts: u64,
    /// Reads answered from the write queue.
    pub forwarded: u64,
    /// Writes merged into a waiting write to the same burst.
    pub coalesced: u64,
    /// The tick of the last RD or WR.
    pub last_cmd_tick: u64,
    /// The first tick after all data moved.
    pub end_tick: u64,
    /// Ticks that each pseudo-channel's data bus carried data.
    pub data_busy: Vec<u64>,
    /// Ticks between bursts in which a data bus stood still, by what bound the later burst.
    pub stalls: [u64; Cause::COUNT],
    /// Ticks from arrival to last data of each read.
    pub read_latency: Histogram,
}

impl Stats {
    /// Commands of a kind.
    pub fn count(&self, command: Command) -> u64 {
        self.commands[command as usize]
    }

    /// The share of time that data buses carried data, over those that carried any.
    pub fn utilisation(&self) -> f64 {
        let used = self.data_busy.iter().filter(|b| **b != 0).count() as u64;
        let ticks = self.end_tick.saturating_mul(used);
        if ticks == 0 { 0.0 } else { self.data_busy.iter().sum::<u64>() as f64 / ticks as f64 }
    }

    /// Adds another channel's counts; ticks are the later ones, data buses follow each other.
    pub fn merge(&mut self, other: &Stats) {
        self.reads += other.reads;
        self.writes += other.writes;
        self.hits += other.hits;
        self.misses += other.misses;
        self.conflicts += other.conflicts;
        self.forwarded += other.forwarded;
        self.coalesced += other.coalesced;
        self.last_cmd_tick = self.last_cmd_tick.max(other.last_cmd_tick);
        self.end_tick = self.end_tick.max(other.end_tick);
        self.data_busy.extend_from_slice(&other.data_busy);
        self.commands.iter_mut().zip(other.commands).for_each(|(a, b)| *a += b);
        self.stalls.iter_mut().zip(other.stalls).for_each(|(a, b)| *a += b);
        self.read_latency.merge(&other.read_latency);
    }
}

/// Values below this are counted exactly.
const EXACT: usize = 4096;
/// Above, each power of two has this many buckets: a percentile is exact to 0.2 %.
const PER_OCTAVE: usize = 512;

/// Counts of values by size.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
    sum: u64,
    max: u64,
}

impl Histogram {
    /// Counts a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        let bucket = Self::bucket(value);
        if bucket >= self.counts.len() {
            self.counts.resize((bucket + 1).next_power_of_two(), 0);
        }
        self.counts[bucket] += 1;
        self.total += 1;
        self.sum = self.sum.saturating_add(value);
        self.max = self.max.max(value);
    }

    #[inline]
    fn bucket(value: u64) -> usize {
        if value < EXACT as u64 {
            return value as usize;
        }
        let octave = value.ilog2() as usize - EXACT.ilog2() as usize;
        let within = (value >> (value.ilog2() - PER_OCTAVE.ilog2())) as usize - PER_OCTAVE;
        EXACT + octave * PER_OCTAVE + within
    }

    /// The least value of a bucket.
    fn floor(bucket: usize) -> u64 {
        if bucket < EXACT {
            return bucket as u64;
        }
        let (octave, within) = ((bucket - EXACT) / PER_OCTAVE, (bucket - EXACT) % PER_OCTAVE);
        ((PER_OCTAVE + within) as u64) << (EXACT.ilog2() - PER_OCTAVE.ilog2() + octave as u32)
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.total
    }

    /// The largest.
    pub fn max(&self) -> u64 {
        self.max
    }

    /// Their mean; 0 of none.
    pub fn mean(&self) -> f64 {
        if self.total == 0 { 0.0 } else { self.sum as f64 / self.total as f64 }
    }

    /// The value that a share `q` (0..=1) of all does not exceed (nearest rank).
    pub fn percentile(&self, q: f64) -> u64 {
        let rank = ((q.clamp(0.0, 1.0) * self.total as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return Self::floor(bucket).min(self.max);
            }
        }
        self.max
    }

    fn merge(&mut self, other: &Histogram) {
        if other.counts.len() > self.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        self.counts.iter_mut().zip(&other.counts).for_each(|(a, b)| *a += b);
        self.total += other.total;
        self.sum = self.sum.saturating_add(other.sum);
        self.max = self.max.max(other.max);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles() {
        let mut h = Histogram::default();
        (1..=100).for_each(|v| h.add(v));
        assert_eq!((h.percentile(0.5), h.percentile(0.99), h.percentile(1.0), h.percentile(0.0)), (50, 99, 100, 1));
        assert_eq!(h.mean(), 50.5);
        for value in [4095, 4096, 5000, 1 << 20, (1 << 40) + 12345, u64::MAX] {
            let floor = Histogram::floor(Histogram::bucket(value));
            assert!(floor <= value && (value - floor) as f64 <= value as f64 / 500.0, "{value} {floor}");
        }
        let mut far = Histogram::default();
        far.add(u64::MAX);
        assert_eq!(far.percentile(0.5), Histogram::floor(Histogram::bucket(u64::MAX)));
    }
}

//! Fewer slices: what lies within a stretch of time on one track becomes one slice.
//!
//! Every track gets the same share of what is allowed, and what it does not need is left to the others; so the track
//! of the steps stays as it is where those of the banks have millions of commands. A stretch has a power of two of
//! ticks, and the shortest is taken that suffices. Slices that reach over the end of a stretch stay, with what is in
//! them thinned out in the same way.

use crate::{Arguments, Slice, Text, Trace, Value};
use std::collections::BTreeMap;

/// The trace with about `most` slices, and what was done to it if anything was.
pub fn bounded(mut trace: Trace, most: usize) -> (Trace, Option<String>) {
    let before = trace.slices();
    if before <= most {
        return (trace, None);
    }
    let sizes = trace.processes.iter().flat_map(|p| &p.tracks).map(|t| t.slices.len());
    let share = share(sizes.collect(), most);
    let (mut tracks, mut widest) = (0, 0);
    let mut processes = std::mem::take(&mut trace.processes);
    for track in processes.iter_mut().flat_map(|p| &mut p.tracks).filter(|t| t.slices.len() > share) {
        let width = width(&track.slices, share);
        track.slices = Merge { trace: &mut trace, width }.level(&track.slices);
        (tracks, widest) = (tracks + 1, widest.max(width));
    }
    trace.processes = processes;
    let after = trace.slices();
    let note = format!(
        "{before} slices are {after} here: on {tracks} of the tracks what lies within up to {widest} ticks is one \
         slice, which says how many of what it stands for"
    );
    (trace, Some(note))
}

/// How many slices a track may have, so that all together have at most `most`.
fn share(mut sizes: Vec<usize>, most: usize) -> usize {
    sizes.sort_unstable();
    let (mut left, mut tracks) = (most, sizes.len());
    for size in sizes {
        if size > left / tracks {
            return (left / tracks).max(1);
        }
        (left, tracks) = (left - size, tracks - 1);
    }
    usize::MAX
}

/// The shortest stretch with which a track has at most so many slices, or all of its time.
fn width(slices: &[Slice], most: usize) -> u64 {
    let end = slices.iter().map(|s| s.end).max().unwrap_or(0);
    let mut width = 1u64;
    while width <= end && count(slices, width) > most {
        width *= 2;
    }
    width
}

/// Slices of the same level with all that is in them.
fn families(slices: &[Slice]) -> impl Iterator<Item = &[Slice]> {
    let depth = slices.first().map_or(0, |s| s.depth);
    slices.chunk_by(move |_, next| next.depth > depth)
}

/// The stretch in which a slice lies whole.
fn stretch(slice: &Slice, width: u64) -> Option<u64> {
    let last = slice.end.saturating_sub(1).max(slice.begin);
    (slice.begin / width == last / width).then_some(slice.begin / width)
}

/// How many slices [`Merge::level`] leaves.
fn count(slices: &[Slice], width: u64) -> usize {
    let (mut all, mut last) = (0, None);
    for family in families(slices) {
        let at = stretch(&family[0], width);
        all += match at {
            Some(_) if at == last => 0,
            // What it may be joined with is not known yet: it is one in any case, and its own are no more than that.
            Some(_) => 1,
            None => 1 + count(&family[1..], width),
        };
        last = at;
    }
    all
}

struct Merge<'t> {
    trace: &'t mut Trace,
    width: u64,
}

impl Merge<'_> {
    /// A level of slices, and all that is in them.
    fn level(&mut self, slices: &[Slice]) -> Vec<Slice> {
        let mut out = Vec::new();
        let mut run: Vec<&[Slice]> = Vec::new();
        let mut last = None;
        for family in families(slices) {
            let at = stretch(&family[0], self.width);
            if at.is_none() || at != last {
                self.close(&mut run, &mut out);
            }
            match at {
                Some(_) => run.push(family),
                None => {
                    out.push(family[0]);
                    out.extend(self.level(&family[1..]));
                }
            }
            last = at;
        }
        self.close(&mut run, &mut out);
        out
    }

    /// The slices of a stretch become one.
    fn close(&mut self, run: &mut Vec<&[Slice]>, out: &mut Vec<Slice>) {
        let all = std::mem::take(run);
        let (Some(first), Some(last)) = (all.first(), all.last()) else { return };
        // One by itself stays what it is.
        if all.len() == 1 && first.len() == 1 {
            return out.push(first[0]);
        }
        let mut classes: BTreeMap<Text, u64> = BTreeMap::new();
        all.iter().copied().flatten().for_each(|slice| *classes.entry(slice.class).or_default() += 1);
        let outer = first[0].class;
        let one = all.len() == 1 || classes.len() == 1;
        let name = match classes.len() {
            1 => format!("{} x {}", self.trace.name(outer), all.len()),
            _ if one => self.trace.name(first[0].name).to_owned(),
            _ => {
                let parts = classes.iter().map(|(class, n)| format!("{n} {}", self.trace.name(*class)));
                parts.collect::<Vec<_>>().join(", ")
            }
        };
        let merged = classes.values().sum();
        let mut arguments = vec![("merged", Value::Number(merged))];
        if one && classes.len() > 1 {
            let parts = classes.iter().map(|(class, n)| format!("{n} {}", self.trace.name(*class)));
            arguments.push(("of", Value::Text(Some(parts.collect::<Vec<_>>().join(", ")))));
        }
        let arguments: Arguments = self.trace.arguments(arguments);
        let (name, class) = (self.trace.text(&name), if one { outer } else { self.trace.text("several") });
        out.push(Slice { begin: first[0].begin, end: last[0].end, name, class, depth: first[0].depth, arguments });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Process, Track};

    /// Rows of 100 ticks with reads in them, and one track of steps.
    fn trace(rows: u64) -> Trace {
        let mut trace = Trace::default();
        let (row, read, step) = (trace.text("row"), trace.text("RD"), trace.text("step"));
        let slice =
            |begin, end, class, depth| Slice { begin, end, name: class, class, depth, arguments: Arguments::default() };
        let mut slices = Vec::new();
        for n in 0..rows {
            slices.push(slice(100 * n, 100 * n + 90, row, 0));
            slices.extend((0..8).map(|k| slice(100 * n + 10 * k, 100 * n + 10 * k + 4, read, 1)));
        }
        let steps = vec![slice(0, 50 * rows, step, 0), slice(50 * rows, 100 * rows, step, 0)];
        let track = |name: &str, slices| Track { name: name.into(), slices };
        let tracks = vec![track("steps", steps), track("bank", slices)];
        trace.push(Process { name: "p".into(), picoseconds: 1000, ticks: 1, tick: "tick", tracks });
        trace
    }

    /// Slices that the slices of a trace stand for.
    fn stands_for(trace: &Trace) -> u64 {
        let of = |slice: &Slice| match trace.arguments_of(slice) {
            [("merged", Value::Number(n)), ..] => *n,
            _ => 1,
        };
        trace.processes.iter().flat_map(|p| &p.tracks).flat_map(|t| &t.slices).map(of).sum()
    }

    #[test]
    fn small_traces_stay_as_they_are() {
        let (trace, note) = bounded(trace(10), 92);
        assert_eq!((trace.slices(), note), (92, None));
    }

    #[test]
    fn nothing_is_lost_and_the_bound_holds() {
        for most in [10, 50, 100, 300, 5000] {
            let (trace, note) = bounded(trace(1000), most);
            assert!(trace.slices() <= most, "{most}: {}", trace.slices());
            assert!(trace.slices() * 8 > most, "{most}: {}", trace.slices());
            assert_eq!(stands_for(&trace), 9002, "{most}");
            assert!(note.expect("a note").starts_with("9002 slices are "));
            assert_eq!(trace.processes[0].tracks[0].slices.len(), 2, "steps have room");
            let slices = &trace.processes[0].tracks[1].slices;
            for pair in slices.windows(2).filter(|p| p[0].depth == p[1].depth) {
                assert!(pair[0].end <= pair[1].begin, "{pair:?}");
            }
        }
    }

    #[test]
    fn merged_slices_say_what_they_stand_for() {
        let (reads, _) = bounded(trace(1000), 5000);
        let names = |trace: &Trace| {
            let all = trace.processes[0].tracks[1].slices.iter().map(|s| trace.name(s.name).to_owned());
            all.collect::<std::collections::BTreeSet<_>>()
        };
        assert!(names(&reads).contains("RD x 2"), "{:?}", names(&reads));
        let (rows, _) = bounded(trace(1000), 100);
        assert!(names(&rows).iter().any(|n| n.contains(" row, ") && n.contains(" RD")), "{:?}", names(&rows));
    }
}

//! A table as a picture: speed over size, a line for each configuration, and peers from a file.

use crate::best::top;
use crate::profile::{By, Cases, Problem};
use crate::sweep::same;
use crate::table::Line;
use ptoc_views::plot::{Plot, Series};
use std::collections::{BTreeMap, BTreeSet};

/// Configurations that have a line each; of more the best of each size has one.
const LINES: usize = 6;

/// Milliseconds of others, from a file.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Peers {
    /// Columns that are sizes, and those that are peers.
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The peers of a CSV: a line of names, sizes and peers, and a line for each size.
///
/// # Errors
/// What is wrong with the text, in words.
pub fn peers(text: &str) -> Result<Peers, String> {
    let all = crate::sweep::configurations(text)?;
    let names = all[0].iter().map(|(name, _)| name.clone()).collect();
    let rows = all.into_iter().map(|row| row.into_iter().map(|(_, value)| value).collect()).collect();
    Ok(Peers { names, rows })
}

/// What the vertical axis shows.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Measure {
    Operations,
    Bytes,
    Milliseconds,
    Cycles,
}

impl Measure {
    /// What all measured rows have: bytes where memory bounds them, time where nothing is counted.
    fn of(rows: &[&Line], by: By) -> Measure {
        let all = |name: &str| rows.iter().all(|row| row.number(name).is_some_and(|n| n > 0.0));
        match by {
            By::Cycles => Measure::Cycles,
            By::Time if rows.iter().all(|row| row.is_bound_by_memory()) && all("bytes") => Measure::Bytes,
            By::Time if all("operations") => Measure::Operations,
            By::Time if all("bytes") => Measure::Bytes,
            By::Time => Measure::Milliseconds,
        }
    }

    /// The value of a row, for the time that somebody takes.
    fn value(self, row: &Line, ms: f64) -> Option<f64> {
        Some(match self {
            Measure::Operations => row.number("operations")? / ms / 1e6,
            Measure::Bytes => row.number("bytes")? / ms / 1e6,
            Measure::Milliseconds => ms,
            Measure::Cycles => return None,
        })
    }

    fn own(self, row: &Line) -> Option<f64> {
        match self {
            Measure::Cycles => row.number("cycles"),
            _ => self.value(row, row.number("median_ms")?),
        }
    }

    fn label(self) -> &'static str {
        match self {
            Measure::Operations => "GOP/s (more is better)",
            Measure::Bytes => "GB/s (more is better)",
            Measure::Milliseconds => "milliseconds (less is better)",
            Measure::Cycles => "cycles (less is better)",
        }
    }
}

/// Holds a picture to its cases and peers, before anything is measured.
///
/// # Errors
/// Why there would be none, whatever is measured, in words.
pub fn check(cases: &Cases, by: By, peers: Option<&Peers>) -> Result<(), String> {
    let of = |problem: &Problem, name: &str| {
        let value = &problem.sizes.iter().find(|(known, _)| known == name)?.1;
        value.replace('_', "").parse::<f64>().ok().map(f64::to_bits)
    };
    let varies = |name: &&&String| {
        let values = cases.problems.iter().filter_map(|problem| of(problem, name));
        values.collect::<BTreeSet<_>>().len() > 1
    };
    let sizes: Vec<&String> = cases.problems.first().into_iter().flat_map(|p| &p.sizes).map(|(name, _)| name).collect();
    let axis = sizes.iter().find(varies).ok_or("there are no two sizes")?;
    peers.map_or(Ok(()), |peers| peers.check(cases, by, (axis, &sizes)))
}

/// The picture of a table.
///
/// # Errors
/// Why there is none, in words.
pub fn svg(title: &str, cases: &Cases, rows: &[Line], by: By, peers: Option<&Peers>) -> Result<String, String> {
    let measured: Vec<&Line> = rows.iter().filter(|row| row.status() == "ok").collect();
    let sizes: Vec<&String> = cases.problems.first().into_iter().flat_map(|p| &p.sizes).map(|(name, _)| name).collect();
    let value = |row: &Line, name: &str| {
        let at = cases.names.iter().position(|n| n == name)?;
        row.values.get(at)?.replace('_', "").parse::<f64>().ok()
    };
    let differs = |name: &&&String| {
        let all = measured.iter().filter_map(|row| value(row, name)).map(f64::to_bits);
        all.collect::<BTreeSet<_>>().len() > 1
    };
    let varying: Vec<&String> = sizes.iter().filter(differs).copied().collect();
    let Some(axis) = varying.first() else {
        return Err("there are no two sizes of which a configuration was measured".into());
    };
    let measure = Measure::of(&measured, by);
    // Sizes beside the axis that do not vary with it alone make lines of their own.
    let beside = |row: &Line| -> Vec<String> {
        let others = varying.iter().skip(1).filter(|name| value(row, name) != value(row, axis));
        others.filter_map(|name| Some(format!("{name}={}", value(row, name)?))).collect()
    };
    let own = |row: &Line| -> String {
        let names = cases.names.iter().zip(&row.values).filter(|(name, _)| !sizes.contains(name));
        names.map(|(name, value)| format!("{name}={value}")).chain(beside(row)).collect::<Vec<_>>().join(" ")
    };
    let best: Vec<Line> = top(rows, by, 1);
    let configurations: BTreeSet<String> = measured.iter().map(|row| own(row)).collect();
    let many = configurations.len() > LINES;
    let shown: Vec<&Line> = if many { best.iter().collect() } else { measured.clone() };
    let mut lines: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for row in shown {
        let name = match many {
            true => std::iter::once("best configuration".to_owned()).chain(beside(row)).collect::<Vec<_>>().join(" "),
            false if own(row).is_empty() => cases.kernel.clone(),
            false => own(row),
        };
        if let (Some(x), Some(y)) = (value(row, axis), measure.own(row)) {
            lines.entry(name).or_default().push((x, y));
        }
    }
    let mut series: Vec<Series> =
        lines.into_iter().map(|(name, points)| Series { name, points: sorted(points), peer: false }).collect();
    if let Some(peers) = peers {
        series.extend(peers.series(cases, &best, (axis, &sizes), measure)?);
    }
    let lockstep = varying.iter().skip(1).filter(|name| measured.iter().all(|r| value(r, name) == value(r, axis)));
    let x: Vec<&str> = std::iter::once(axis.as_str()).chain(lockstep.map(|name| name.as_str())).collect();
    Ok(Plot { title: title.into(), x: x.join(" = "), y: measure.label().into(), series }.svg())
}

fn sorted(mut points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// A time of a peer.
fn milliseconds(peer: &str, text: &str) -> Result<f64, String> {
    let ms = text.parse::<f64>().ok().filter(|ms| *ms > 0.0 && ms.is_finite());
    ms.ok_or_else(|| format!("`{text}` of peer `{peer}` is no number of milliseconds"))
}

impl Peers {
    /// What is wrong with the peers, whatever is measured.
    fn check(&self, cases: &Cases, by: By, (axis, sizes): (&String, &[&String])) -> Result<(), String> {
        if by == By::Cycles {
            return Err("peers have milliseconds, and the table has cycles".into());
        }
        let is_size = |name: &String| sizes.contains(&name);
        if !self.names.contains(axis) {
            return Err(format!("the peers' first line has no `{axis}`"));
        }
        if self.names.iter().all(is_size) {
            return Err("the peers' file has sizes alone: a column of milliseconds is missing".into());
        }
        let fits = |row: &Vec<String>, problem: &Problem| {
            self.names
                .iter()
                .zip(row)
                .filter(|(name, _)| is_size(name))
                .all(|(name, value)| problem.sizes.iter().any(|(known, own)| known == name && same(own, value)))
        };
        for (at, peer) in self.names.iter().enumerate().filter(|(_, name)| !is_size(name)) {
            self.rows.iter().try_for_each(|row| milliseconds(peer, &row[at]).map(drop))?;
            if !self.rows.iter().any(|row| cases.problems.iter().any(|problem| fits(row, problem))) {
                return Err(format!("peer `{peer}` has no size of the table"));
            }
        }
        Ok(())
    }

    /// A line for each peer, at the sizes of the table: `best` has a row for each of its problems.
    fn series(
        &self,
        cases: &Cases,
        best: &[Line],
        (axis, sizes): (&String, &[&String]),
        measure: Measure,
    ) -> Result<Vec<Series>, String> {
        let is_size = |name: &&String| sizes.contains(name);
        let mut out = Vec::new();
        for (at, peer) in self.names.iter().enumerate().filter(|(_, name)| !is_size(name)) {
            let mut points = Vec::new();
            for row in &self.rows {
                let ms = milliseconds(peer, &row[at])?;
                let fits = |line: &&Line| {
                    self.names.iter().zip(row).filter(|(name, _)| is_size(name)).all(|(name, value)| {
                        let own = cases.names.iter().position(|n| n == name).and_then(|n| line.values.get(n));
                        own.is_some_and(|own| same(own, value))
                    })
                };
                // Sizes that the table does not have are left out: nobody knows their operations.
                let Some(line) = best.iter().find(fits) else { continue };
                let x = cases.names.iter().position(|n| n == axis).and_then(|n| line.values[n].parse().ok());
                points.extend(x.zip(measure.value(line, ms)));
            }
            if points.is_empty() {
                return Err(format!("peer `{peer}` has no size of which a configuration was measured"));
            }
            out.push(Series { name: peer.clone(), points: sorted(points), peer: true });
        }
        Ok(out)
    }
}

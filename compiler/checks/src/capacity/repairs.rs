//! One change that would make the tiles fit: each was carried out and planned again.

use super::author::{FixContext as _, Parameter, Thrifty};
use super::sizes::any_too_large;
use crate::init;
use cranelift_entity::SecondaryMap;
use ptoc_diagnostics::{Diagnostic, Edit, Fix};
use ptoc_ir::tile::{AddrKind, Kernel, Tile};
use ptoc_isa::{Loc, Target};
use ptoc_placement::liveness::{Interval, Liveness, liveness};
use ptoc_placement::map::gaps;
use ptoc_placement::placement;
use ptoc_placement::placement::{Overflow, Placement, footprint};
use ptoc_placement::value_liveness::Holding;

/// Elaborations that one kernel's repairs may cost.
const BUDGET: usize = 24;
/// Tiles whose lives are shortened together.
const TOGETHER: usize = 16;
/// Parameters that are proposed for one memory.
const PROPOSALS: usize = 3;

/// What came of a value of a parameter.
struct Trial {
    parameter: usize,
    value: i64,
    /// Bytes used of each memory; `None` for one that overflows.
    extents: Vec<(Loc, Option<u64>)>,
    /// Every memory holds its tiles.
    fits: bool,
    /// Whether every memory of every other target holds its tiles too.
    everywhere: bool,
}

/// Everything that is known of a kernel that does not fit.
pub(super) struct Repairs<'k> {
    kernel: &'k Kernel,
    live: &'k Liveness,
    values: &'k SecondaryMap<Tile, Holding>,
    target: &'k Target,
    author: &'k Thrifty<'k>,
    parameters: Vec<Parameter>,
    trials: Vec<Trial>,
}

impl<'k> Repairs<'k> {
    /// Tries smaller values of every parameter.
    pub fn new(
        kernel: &'k Kernel,
        live: &'k Liveness,
        values: &'k SecondaryMap<Tile, Holding>,
        target: &'k Target,
        author: &'k Thrifty<'k>,
    ) -> Repairs<'k> {
        let parameters = author.parameters();
        let mut this = Repairs { kernel, live, values, target, author, parameters, trials: Vec::new() };
        let mut budget = BUDGET;
        for n in 0..this.parameters.len() {
            for value in this.parameters[n].candidates.clone() {
                if budget == 0 {
                    return this;
                }
                budget -= 1;
                let Some(mut trial) = this.attempt(n, value) else { continue };
                let fits = trial.fits;
                if fits {
                    let others = target.others();
                    trial.everywhere = others.clone().count() <= budget
                        && others.inspect(|_| budget -= 1).all(|t| {
                            let change = Some((&this.parameters[n], value));
                            author.elaborate(change, t).is_some_and(|k| judge(k, t).is_some_and(|o| o.is_ok()))
                        });
                }
                this.trials.push(trial);
                if fits {
                    break;
                }
            }
        }
        this
    }

    fn attempt(&self, parameter: usize, value: i64) -> Option<Trial> {
        let kernel = self.author.elaborate(Some((&self.parameters[parameter], value)), self.target)?;
        let here = |l: Loc| kernel.tiles.values().any(|t| self.target.home(t.ty.loc) == l);
        let locs: Vec<Loc> = Loc::ALL.into_iter().filter(|&l| here(l)).collect();
        let outcome = judge(kernel, self.target)?;
        let extents = locs.into_iter().map(|loc| match &outcome {
            Ok(plan) => (loc, plan.memory(loc).map(|m| m.extent)),
            Err(over) => (loc, over.iter().all(|o| o.loc != loc).then_some(0)),
        });
        let extents = extents.collect();
        Some(Trial { parameter, value, extents, fits: outcome.is_ok(), everywhere: false })
    }

    /// What would make `loc` hold its tiles.
    pub fn of(&self, overflow: &Overflow) -> Vec<Fix> {
        let mut out = self.parameters(overflow.loc);
        out.extend(self.stages(overflow.loc));
        out.extend(self.addresses(overflow.loc));
        out.extend(self.lifetimes(overflow));
        let others = self.targets(overflow.loc);
        if !others.is_empty() {
            out.push(Fix::advice(format!("another target has the room: {}", others.join(", "))));
        }
        if out.is_empty() {
            out.push(Fix::advice("make the tiles smaller, or end the life of one before the next is needed"));
        }
        out
    }

    /// Smaller values of parameters with which `loc` holds its tiles.
    pub fn parameters(&self, loc: Loc) -> Vec<Fix> {
        let mut out = Vec::new();
        for (n, parameter) in self.parameters.iter().enumerate() {
            let mut of = self.trials.iter().filter(|t| t.parameter == n);
            let here = |t: &&Trial| !t.extents.iter().any(|&(l, extent)| l == loc && extent.is_none());
            let Some(trial) = of.clone().find(|t| t.fits).or_else(|| of.find(here)) else { continue };
            let (name, value, old) = (&parameter.name, trial.value, parameter.value);
            let extent = trial.extents.iter().find(|(l, _)| *l == loc).and_then(|(_, e)| *e);
            let with = match extent {
                Some(bytes) if bytes > 0 => format!(", with {bytes} bytes"),
                _ => String::new(),
            };
            let reach = match (trial.fits, trial.everywhere) {
                (true, true) => ", on every target".to_owned(),
                (true, false) => String::new(),
                (false, _) => self.still(trial.extents.iter().filter(|(_, e)| e.is_none()).map(|(l, _)| *l)),
            };
            let message = match parameter.place {
                Some(_) => format!("it fits with `{name} = {value}` in place of {old}{with}{reach}"),
                None if parameter.launched => {
                    format!("it fits with `{name} = {value}` in place of {old} in this launch{with}{reach}")
                }
                // It was given on the command line, where it may stand once.
                None => format!("it fits with `-D {name}={value}` in place of `-D {name}={old}`{with}{reach}"),
            };
            let edits = parameter.place.map(|span| Edit { span, text: value.to_string() });
            out.push((trial.fits, Fix::suggestion(message, edits.into_iter().collect())));
        }
        // What mends everything goes first.
        out.sort_by_key(|(fits, _)| !fits);
        out.into_iter().map(|(_, fix)| fix).take(PROPOSALS).collect()
    }

    /// "; `Vec` and `Right` are still too small", in the names of the target.
    fn still(&self, locs: impl Iterator<Item = Loc>) -> String {
        let mut names: Vec<&str> = locs.map(|loc| short(self.target, loc)).collect();
        names.dedup();
        match names.split_last() {
            None => String::new(),
            Some((last, [])) => format!("; {last} is still too small"),
            Some((last, rest)) => format!("; {} and {last} are still too small", rest.join(", ")),
        }
    }

    /// What is said of a change with which `loc` holds its tiles; of its bytes nothing is known if other memories are
    /// too small.
    fn then(&self, loc: Loc, extent: u64) -> String {
        match extent {
            0 => format!("{} holds its tiles then", short(self.target, loc)),
            bytes => format!("it fits then, with {bytes} bytes"),
        }
    }

    /// See [`extent`]; `None` too if too much was tried.
    fn extent(&self, kernel: &Kernel, live: &Liveness, target: &Target, stages: u32, loc: Loc) -> Option<u64> {
        self.author.plans()?;
        extent(kernel, live, target, stages, loc)
    }

    fn stages(&self, loc: Loc) -> Option<Fix> {
        let of_loc = self.kernel.tiles.values().filter(|t| self.target.home(t.ty.loc) == loc);
        let most = of_loc.map(|t| t.stages).max().unwrap_or(1);
        for stages in (1..most).rev() {
            let Some(extent) = self.extent(self.kernel, self.live, self.target, stages, loc) else { continue };
            let with = if extent > 0 { format!(", with {extent} bytes") } else { String::new() };
            let others = match placement::plan_with(self.kernel, self.live, self.target, stages) {
                Ok(_) => String::new(),
                Err(overflows) => self.still(overflows.iter().map(|o| o.loc)),
            };
            let message = match stages {
                1 => format!("it fits without pipelining: `stages = 1`{with}{others}"),
                n => format!("it fits with `stages = {n}`{with}{others}"),
            };
            let mut changed = self.live.loops.iter().filter(|l| l.stages > stages);
            let edits: Option<Vec<Edit>> = changed.try_fold(Vec::new(), |mut edits: Vec<Edit>, l| {
                let edit = self.author.stages(l.span, stages)?;
                // A function that is called twice has one pipeline in the source.
                if !edits.contains(&edit) {
                    edits.push(edit);
                }
                Some(edits)
            });
            return Some(Fix::suggestion(message, edits.unwrap_or_default()));
        }
        None
    }

    /// Another address for one of the tiles that the author has placed; or none for all of them.
    fn addresses(&self, loc: Loc) -> Option<Fix> {
        let fixed = |t: &Tile| {
            let data = &self.kernel.tiles[*t];
            self.target.home(data.ty.loc) == loc && matches!(data.addr, AddrKind::Fixed(_))
        };
        let placed: Vec<Tile> = self.kernel.tiles.keys().filter(fixed).collect();
        let plan = |kernel: &Kernel| {
            self.author.plans()?;
            placement::plan_with(kernel, self.live, self.target, u32::MAX).ok()
        };
        for &tile in placed.iter().take(TOGETHER) {
            let mut kernel = self.kernel.clone();
            let old = std::mem::replace(&mut kernel.tiles[tile].addr, AddrKind::Auto);
            let (AddrKind::Fixed(old), Some(found)) = (old, plan(&kernel)) else { continue };
            let new = found.offsets[tile].clone();
            // Where it was put, with the rest around it.
            kernel.tiles[tile].addr = AddrKind::Fixed(new.clone());
            let Some(extent) = plan(&kernel).and_then(|p| Some(p.memory(loc)?.extent)) else { continue };
            let list = |all: &[u64]| all.iter().map(|a| format!("{a:#x}")).collect::<Vec<_>>().join(", ");
            let name = &kernel.tiles[tile].name;
            let (old, new) = (list(&old), list(&new));
            return Some(Fix::advice(format!("it fits with `{name}` at {new} in place of {old}, with {extent} bytes")));
        }
        let mut kernel = self.kernel.clone();
        placed.iter().for_each(|&t| kernel.tiles[t].addr = AddrKind::Auto);
        let extent = plan(&kernel).filter(|_| placed.len() > 1)?.memory(loc)?.extent;
        let names: Vec<String> = placed.iter().map(|&t| format!("`{}`", kernel.tiles[t].name)).collect();
        Some(Fix::advice(format!("it fits without the addresses of {}, with {extent} bytes", names.join(", "))))
    }

    /// Tiles that hold nothing at the fullest point, taken from there.
    fn lifetimes(&self, overflow: &Overflow) -> Option<Fix> {
        let idle: Vec<Tile> =
            overflow.live.iter().copied().filter(|&t| self.idle(t, overflow.peak_point).is_some()).collect();
        let mut idle = idle;
        let align = ptoc_placement::memories::align(self.target, overflow.loc);
        idle.sort_by_key(|&t| (std::cmp::Reverse(footprint(&self.kernel.tiles[t], align)), t));
        let one = idle.iter().find(|&&t| self.shortened(&[t], overflow.loc).is_some());
        if let Some(&tile) = one {
            let extent = self.shortened(&[tile], overflow.loc).unwrap_or(0);
            let how = self.how(tile, overflow.peak_point);
            return Some(Fix::advice(format!("{how}: {}", self.then(overflow.loc, extent))));
        }
        // Others that hold something here, but nothing at a point that would be the fullest instead.
        let wasteful = |&t: &Tile| {
            let data = &self.kernel.tiles[t];
            self.target.home(data.ty.loc) == overflow.loc
                && self.live.intervals[t].is_some_and(|held| {
                    !gaps(held, &self.values[t].live).is_empty()
                        && (held.start..=held.end).any(|p| self.idle(t, p).is_some())
                })
        };
        let mut chosen: Vec<Tile> = self.kernel.tiles.keys().filter(wasteful).collect();
        if chosen.len() > TOGETHER {
            return None;
        }
        let mut extent = self.shortened(&chosen, overflow.loc)?;
        for tile in chosen.clone() {
            let fewer: Vec<Tile> = chosen.iter().copied().filter(|&t| t != tile).collect();
            if let Some(bytes) = self.shortened(&fewer, overflow.loc) {
                (chosen, extent) = (fewer, bytes);
            }
        }
        let names: Vec<String> = chosen.iter().map(|&t| format!("`{}`", self.kernel.tiles[t].name)).collect();
        let names = match names.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => names.join(""),
        };
        let of = |&t: &Tile| self.home(t, overflow.peak_point);
        let first = chosen.first().and_then(of);
        let how = match first.filter(|_| chosen.iter().all(|t| of(t) == first)) {
            Some(n) => {
                let place =
                    self.author.line(self.live.loops[n].span).map_or_else(String::new, |n| format!(" of line {n}"));
                format!("declare {names} inside the loop{place}, which writes them anew each time")
            }
            None => format!("give the values of {names} tiles of their own, declared where they are written"),
        };
        Some(Fix::advice(format!("{how}: {}", self.then(overflow.loc, extent))))
    }

    /// The innermost loop around `point` (by number) in which all of a tile's life takes place although it is held
    /// around it.
    fn home(&self, tile: Tile, point: u32) -> Option<usize> {
        let held = self.live.intervals[tile]?;
        let holding = &self.values[tile];
        let touched = |r: Interval| holding.writes.iter().chain(&holding.reads).all(|&p| r.contains(p));
        let around = self.live.loops.iter().enumerate().filter(|(_, l)| l.range.contains(point));
        around.filter(|(_, l)| touched(l.range) && held.start <= l.range.start).map(|(n, _)| n).next_back()
    }

    /// The gap around `point` in which an automatic tile holds nothing: where its last value ends (if there was one)
    /// and where the next begins.
    fn idle(&self, tile: Tile, point: u32) -> Option<(Option<u32>, Option<u32>)> {
        idle(self.kernel, self.live, self.values, tile, point)
    }

    fn how(&self, tile: Tile, point: u32) -> String {
        let data = &self.kernel.tiles[tile];
        let line = |p: u32| self.live.spans.get(p as usize).and_then(|s| self.author.line(*s));
        let name = &data.name;
        if let Some(n) = self.home(tile, point) {
            let place = self.author.line(self.live.loops[n].span).map_or_else(String::new, |n| format!(" of line {n}"));
            return format!("declare `{name}` inside the loop{place}, which writes it anew each time");
        }
        match self.idle(tile, point) {
            Some((Some(_), Some(next))) => {
                let place = line(next).map_or_else(String::new, |n| format!(" from line {n} on"));
                format!("use another tile than `{name}`{place}, where it is written anew")
            }
            Some((None, Some(next))) => {
                let place = line(next).map_or_else(String::new, |n| format!(" of line {n}"));
                format!("declare `{name}` just before the write{place}, its first")
            }
            _ => format!("declare `{name}` in an inner block that ends with its last use"),
        }
    }

    /// Bytes used of `loc` if the tiles kept their bytes only while they hold something; `None` if that does not fit.
    fn shortened(&self, tiles: &[Tile], loc: Loc) -> Option<u64> {
        let (mut kernel, mut live) = (self.kernel.clone(), self.live.clone());
        for &tile in tiles {
            let held = live.intervals[tile]?;
            let mut runs = self.values[tile].live.iter().filter_map(|run| run.meet(held));
            live.intervals[tile] = runs.next();
            for run in runs {
                let data = kernel.tiles[tile].clone();
                let part = kernel.tiles.push(data);
                live.intervals[part] = Some(run);
            }
        }
        self.extent(&kernel, &live, self.target, u32::MAX, loc)
    }

    fn targets(&self, loc: Loc) -> Vec<String> {
        // Other targets need not share it out in the same way.
        let here = |l: &Loc| self.kernel.tiles.values().any(|t| t.ty.loc == *l);
        let locs: Vec<Loc> = self.target.sharing(loc).into_iter().filter(here).collect();
        let others = self.target.others().filter(|t| locs.iter().all(|l| t.capacity(*l) > 0));
        let fits = others.filter(|t| {
            let holds = |l: &Loc| self.extent(self.kernel, self.live, t, u32::MAX, t.home(*l)).is_some();
            let planned = locs.iter().all(holds);
            let known = self.author.line(self.kernel.span).is_some();
            // The target's own moves and temporaries count, if the source is at hand.
            planned
                && (!known
                    || self
                        .author
                        .elaborate(None, t)
                        .and_then(|k| judge(k, t))
                        .is_some_and(|o| locs.iter().all(|l| fits(&o, t.home(*l)))))
        });
        let room = |t: &Target| locs.iter().map(|l| format!("{} bytes of {l}", t.capacity(*l))).collect::<Vec<_>>();
        fits.map(|t| format!("{} ({})", t.name, room(t).join(", "))).collect()
    }
}

/// What advice calls a memory: `Vec`, or the name of a pool.
fn short(target: &Target, loc: Loc) -> &str {
    target.pool_of(loc).map_or(loc.name(), |pool| &pool.name)
}

fn fits(outcome: &Result<Placement, Vec<Overflow>>, loc: Loc) -> bool {
    match outcome {
        Ok(_) => true,
        Err(over) => over.iter().all(|o| o.loc != loc),
    }
}

/// See [`Repairs::idle`].
pub(super) fn idle(
    kernel: &Kernel,
    live: &Liveness,
    values: &SecondaryMap<Tile, Holding>,
    tile: Tile,
    point: u32,
) -> Option<(Option<u32>, Option<u32>)> {
    let data = &kernel.tiles[tile];
    let held = live.intervals[tile]?;
    let runs = &values[tile].live;
    if data.addr != AddrKind::Auto || data.stages > 1 || data.count > 1 || !held.contains(point) {
        return None;
    }
    if runs.is_empty() || runs.iter().any(|run| run.contains(point)) {
        return None;
    }
    let before = runs.iter().filter(|r| r.end < point).map(|r| r.end).max();
    let after = runs.iter().filter(|r| r.start > point).map(|r| r.start).min();
    Some((before, after))
}

/// The plan of a kernel, or what overflows; `None` if something else is wrong with it.
fn judge(mut kernel: Kernel, target: &Target) -> Option<Result<Placement, Vec<Overflow>>> {
    if any_too_large(&kernel, target) || init::check(&mut kernel).iter().any(Diagnostic::is_error) {
        return None;
    }
    Some(placement::plan_with(&kernel, &liveness(&kernel), target, u32::MAX))
}

/// Bytes used of `loc`, 0 if other memories are too small; `None` if this one is.
fn extent(kernel: &Kernel, live: &Liveness, target: &Target, stages: u32, loc: Loc) -> Option<u64> {
    match placement::plan_with(kernel, live, target, stages) {
        Ok(plan) => plan.memory(loc).map(|m| m.extent),
        Err(overflows) => overflows.iter().all(|o| o.loc != loc).then_some(0),
    }
}

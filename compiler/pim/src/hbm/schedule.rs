//! Rounds of blocks as commands: units in lock step, what the host turns between ([`super::turn`]), and when.

use super::chosen::moves;
use super::code::{self, Choice, Scalars, Trouble, UnitEvent};
use super::congruent::{Leader, follow};
use super::node::{BankBurst, Nodes};
use super::places::{Home, Places};
use super::program::{self, UnitGroup};
use super::trace::{Store, Tracer};
use super::turn::{Turn, Turns};
use super::{Res, emit, order, room};
use crate::Lines;
use crate::eval::BlockScalars;
use crate::slopes;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::{Kernel, TensorId};
use ptoc_isa::Loc;
use ptoc_pim_stream::Geometry;
use ptoc_pim_stream::stream::{ColumnOp, Pch, SourceLine};
use rustc_hash::{FxHashMap, FxHashSet};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// A block's unit and number, and what it stores.
type Traced = (Home, usize, Rc<Vec<Store>>);

/// Bursts that blocks store to, each in a bank of its unit.
pub type Stored = FxHashSet<(Home, BankBurst)>;

/// By units, their blocks by rounds: none where a unit waits for others.
pub type Dealt = BTreeMap<Home, Vec<Option<usize>>>;

/// What is done at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduledWork {
    /// Commands for the units.
    Commands(Vec<ColumnOp>),
    /// The host turns slots.
    Turn(Turn),
}

/// What happens one after the other.
enum SchedulePart {
    Strip(Vec<UnitGroup>),
    Turn(Turn),
}

/// A launch whose blocks and tensors have their places.
pub struct ScheduledLaunch<'l> {
    /// The kernel.
    pub kernel: &'l Kernel,
    /// The device.
    pub g: &'l Geometry,
    /// Of tensors.
    pub places: &'l Places,
    /// Coordinates of all blocks.
    pub blocks: &'l [Vec<i64>],
    /// Blocks of each unit, in order.
    pub dealt: &'l Dealt,
    /// Vectors of GRF_A and of GRF_B.
    pub registers: [usize; 2],
}

/// What a round has stored already, and what it stores when its slots are turned.
type WaitingRound = (FxHashSet<BankBurst>, Vec<Store>);

/// Stores that wait for slots to be turned.
#[derive(Default)]
struct Waiting {
    /// By rounds.
    rounds: Vec<WaitingRound>,
    reads: FxHashSet<BankBurst>,
    writes: FxHashSet<BankBurst>,
}

/// Slots that are turned at once, at most.
const SLOTS: u32 = 256;

impl ScheduledLaunch<'_> {
    /// What the units of these pseudo-channels do. Where blocks store goes to `stored`.
    pub fn works(
        &self,
        numbers: &mut BlockScalars<'_>,
        pchs: &BTreeSet<Pch>,
        lines: Lines<'_>,
        stored: &mut Stored,
    ) -> Res<Vec<ScheduledWork>> {
        let ScheduledLaunch { kernel, places, blocks, dealt, .. } = *self;
        let mut now = Coding {
            kernel,
            nodes: Nodes::default(),
            turns: Turns::new(places.free.start),
            scalars: Scalars::default(),
            chosen: FxHashMap::default(),
            registers: self.registers,
            interleaved: places.interleaved,
            parts: Vec::new(),
        };
        let mut waiting = Waiting::default();
        let own: Vec<(&Home, &Vec<Option<usize>>)> = dealt.iter().filter(|(h, _)| pchs.contains(&h.pch)).collect();
        let rounds = own.iter().map(|(_, blocks)| blocks.len()).max().unwrap_or(0);
        let grid = numbers.grid();
        for round in 0..rounds {
            // Blocks are compared within a round; the order of nodes is that of the source then.
            let first = now.nodes.next();
            let mut traced: Vec<Traced> = Vec::new();
            let mut here: Vec<(usize, Home)> =
                own.iter().filter_map(|(home, blocks)| Some(((*blocks.get(round)?)?, **home))).collect();
            here.sort_unstable_by_key(|(n, _)| *n);
            let (mut leaders, mut led): (Vec<Leader<'_>>, FxHashSet<u32>) = Default::default();
            for (n, home) in here {
                let at = &blocks[n];
                let class = slopes::around(&grid, at);
                let alike =
                    |l: &&Leader<'_>| class.is_some_and(|(c, _)| l.class == c) && l.stands_for(at, home, places);
                let stores = match leaders.iter().find(alike) {
                    Some(leader) => Rc::clone(&leader.stores),
                    None => {
                        let mut tracer = Tracer::new(kernel, &mut now.nodes, places, &mut now.turns, home);
                        // One of a class is enough: where it does not stand for the others, they are different.
                        let class = class.filter(|(c, _)| led.insert(*c));
                        let class = follow(numbers, at, class, &mut tracer)?;
                        let (hulls, stores) = tracer.finish()?;
                        let stores = Rc::new(stores);
                        if let (Some(class), false) = (class, hulls.unknown) {
                            let held = stores.iter().map(|s| places.elements(home, s.at)).collect();
                            let (hulls, stores) = (hulls.list, Rc::clone(&stores));
                            leaders.push(Leader { class, at, home, hulls, stores, held });
                        }
                        stores
                    }
                };
                stored.extend(stores.iter().map(|s| (home, s.at)));
                traced.push((home, n, stores));
            }
            let stores = lock_step(self, &now.nodes, &traced)?;
            idle_units(self, pchs, &traced, &stores)?;
            if now.turns.end() > places.free.end {
                let (needs, has) = (now.turns.end() - places.free.start, places.free.len());
                let message = format!("sums of rows take {needs} rows of every bank, and {has} are free in one piece");
                return Err(room(kernel, message));
            }
            let turned = now.nodes.that_need(first, |at| now.turns.is_turned(at));
            let reads = |stores: &[Store]| now.nodes.banks(stores.iter().map(|s| s.node));
            let mut late: FxHashSet<BankBurst> =
                stores.iter().filter(|s| turned[(s.node - first) as usize]).map(|s| s.at).collect();
            // What is overwritten is read first.
            loop {
                let waits: Vec<Store> = stores.iter().filter(|s| late.contains(&s.at)).copied().collect();
                let needed = reads(&waits);
                let before = late.len();
                late.extend(stores.iter().map(|s| s.at).filter(|at| !waits.is_empty() && needed.contains(at)));
                if late.len() == before {
                    break;
                }
            }
            let (late, early): (Vec<Store>, Vec<Store>) = stores.into_iter().partition(|s| late.contains(&s.at));
            let writes: FxHashSet<BankBurst> = early.iter().map(|s| s.at).collect();
            let clash = !reads(&early).is_disjoint(&waiting.writes)
                || !writes.is_disjoint(&waiting.writes)
                || !writes.is_disjoint(&waiting.reads);
            if !late.is_empty() {
                waiting.reads.extend(reads(&late));
            }
            if clash {
                let before = std::mem::take(&mut waiting.rounds);
                (waiting.reads, waiting.writes) = (reads(&late), FxHashSet::default());
                now.turn(before)?;
            }
            now.strips(&early, &FxHashSet::default())?;
            if !late.is_empty() {
                waiting.writes.extend(late.iter().map(|s| s.at));
                waiting.rounds.push((writes, late));
            }
            now.turns.next_round();
            now.nodes.forget();
            if now.turns.waiting() >= SLOTS {
                now.turn(std::mem::take(&mut waiting).rounds)?;
            }
        }
        now.turn(waiting.rounds)?;
        now.works(lines)
    }
}

/// What strips leave to those that follow: what the scalars hold, and by the number of stores how they are computed.
type State = (Scalars, FxHashMap<usize, Choice>);

/// Commands in the making.
struct Coding<'k> {
    kernel: &'k Kernel,
    nodes: Nodes,
    turns: Turns,
    /// What the units' scalar registers hold.
    scalars: Scalars,
    /// By the number of a round's stores, how they are computed.
    chosen: FxHashMap<usize, Choice>,
    registers: [usize; 2],
    interleaved: bool,
    parts: Vec<SchedulePart>,
}

impl Coding<'_> {
    fn strips(&mut self, stores: &[Store], overwritten: &FxHashSet<BankBurst>) -> Res {
        if stores.is_empty() {
            return Ok(());
        }
        let is_slot = |s: &Store| self.turns.is_stored(s.at);
        // The first round with slots decides.
        let slots = stores.iter().any(is_slot);
        let banks = match self.turns.bank {
            Some(bank) if slots => bank..bank + 1,
            None if slots => 0..2,
            _ => 0..1,
        };
        let compared = banks.len() > 1;
        let mut best: Option<(u64, u8, Vec<Vec<UnitGroup>>, State)> = None;
        for bank in banks {
            let to = |s: &Store| if is_slot(s) { Store { at: BankBurst { odd: bank, ..s.at }, ..*s } } else { *s };
            let moved: Vec<Store> = stores.iter().map(to).collect();
            let (mut scalars, mut chosen) = (self.scalars, self.chosen.clone());
            let unit = (self.registers, self.interleaved);
            let state = (&mut scalars, &mut chosen);
            let strips = coded(self.kernel, &self.nodes, unit, &moved, overwritten, state)?;
            let clocks = if compared { clocks(&strips) } else { 0 };
            if best.as_ref().is_none_or(|(least, ..)| clocks < *least) {
                best = Some((clocks, bank, strips, (scalars, chosen)));
            }
        }
        let Some((_, bank, strips, state)) = best else { return Ok(()) };
        if slots {
            self.turns.bank = Some(bank);
        }
        (self.scalars, self.chosen) = state;
        self.parts.extend(strips.into_iter().map(SchedulePart::Strip));
        Ok(())
    }

    /// Turns what waits, and does what waited for it.
    fn turn(&mut self, rounds: Vec<WaitingRound>) -> Res {
        if !rounds.is_empty() {
            self.parts.push(SchedulePart::Turn(self.turns.turn()));
        }
        rounds.iter().try_for_each(|(overwritten, stores)| self.strips(stores, overwritten))
    }

    fn works(self, lines: Lines<'_>) -> Res<Vec<ScheduledWork>> {
        let kernel = self.kernel;
        let (mut out, mut strips) = (Vec::new(), Vec::new());
        let commands = |strips: Vec<Vec<UnitGroup>>, out: &mut Vec<ScheduledWork>| -> Res {
            if strips.is_empty() {
                return Ok(());
            }
            let ops = emit::exec(&program::segments(strips), lines);
            out.push(ScheduledWork::Commands(ops.map_err(|e| room(kernel, format!("a word does not encode: {e}")))?));
            Ok(())
        };
        for part in self.parts {
            match part {
                SchedulePart::Strip(groups) => strips.push(groups),
                SchedulePart::Turn(turn) => {
                    commands(std::mem::take(&mut strips), &mut out)?;
                    out.push(ScheduledWork::Turn(turn));
                }
            }
        }
        commands(strips, &mut out)?;
        Ok(out)
    }
}

/// The stores that all blocks of a round do: the longest list. A block with fewer has those that it has in the same
/// order.
fn lock_step(launch: &ScheduledLaunch<'_>, nodes: &Nodes, traced: &[Traced]) -> Res<Vec<Store>> {
    let ScheduledLaunch { kernel, places, blocks, .. } = *launch;
    let named = |n: u32| format!("`{}`", kernel.tensors[TensorId::from_u32(n)].name);
    let burst = |at| places.show(kernel, at);
    let show = |s: &Store| (nodes.show(s.node, 3, &burst, &named), burst(s.at));
    let Some((_, leader, longest)) = traced.iter().max_by_key(|(_, n, s)| (s.len(), usize::MAX - n)) else {
        return Ok(Vec::new());
    };
    for (_, n, stores) in traced.iter().filter(|(.., stores)| !Rc::ptr_eq(stores, longest)) {
        let mut rest = longest.iter();
        for s in stores.iter() {
            let mut skipped = None;
            let found = rest.by_ref().any(|l| {
                let same = (l.at, l.node) == (s.at, s.node);
                skipped.get_or_insert(*l);
                same
            });
            if found {
                continue;
            }
            let (what, to) = show(s);
            let mut d = Diagnostic::error(codes::LOCK_STEP, s.span, "blocks that run in lock step do different things")
                .with_label(format!("not what block {:?} does", blocks[*leader]))
                .with_note(format!("block {:?} stores {what} to {to}", blocks[*n]));
            // Blocks that ask the host for different data.
            let own = nodes.brought(s.node);
            let other = skipped.map(|l| nodes.brought(l.node)).unwrap_or_default();
            let brought = own.difference(&other).min().map(|(n, _)| *n).filter(|_| skipped.is_some());
            d = match skipped.map(|l| show(&l)) {
                Some((what, to)) => {
                    d.with_note(format!("at that point block {:?} stores {what} to {to}", blocks[*leader]))
                }
                None => d.with_note(format!("block {:?} stores nothing more then", blocks[*leader])),
            };
            d = d.with_note(
                "one column command steps all units of a pseudo-channel, at one row and column of their banks",
            );
            if let Some(n) = brought {
                let (array, id) = (named(n), TensorId::from_u32(n));
                d = d.with_note(format!(
                    "{array} stays with the host, which brings the same of it to all units at once"
                ));
                let tiles = moves(kernel, id, |_| true);
                let help = match moves(kernel, id, |ty| matches!(ty.loc, Loc::GrfA | Loc::GrfB)) {
                    false if !tiles => format!(
                        "blocks with different numbers of {array} do not run at once: give them to one unit (a stride \
                         of 0 in `on`) or to different `pch`, or go over the rows in a loop inside of one block; or \
                         have the host write each number of {array} 16 times, so that units have them in their banks: \
                         `GrfA(Bank(view))` of that array"
                    ),
                    true => format!(
                        "read a block's own part of {array} from the unit's bank: `GrfA(Bank(view))` in place of \
                        `GrfA(view)`"
                    ),
                    false => format!(
                        "say where {array} is and who runs a block (`at`, `on`), so that each unit has its part"
                    ),
                };
                return Err(Box::new(d.with_secondary(kernel.tensors[id].span, "the argument").with_help(help)));
            }
            let help = match kernel.on {
                Some(_) => {
                    "let `on` give such blocks to one unit, one after the other (a stride of 0), or to different `pch`"
                }
                None => {
                    "say with `on` who runs a block: such ones on one unit, one after the other (a stride of 0), or in \
                    different `pch`"
                }
            };
            return Err(Box::new(d.with_help(help)));
        }
    }
    Ok(longest.to_vec())
}

/// Units that have no block, or a shorter one, store what the others do: it must meet no element.
fn idle_units(launch: &ScheduledLaunch<'_>, pchs: &BTreeSet<Pch>, traced: &[Traced], stores: &[Store]) -> Res {
    let ScheduledLaunch { kernel, g, places, blocks, .. } = *launch;
    let own: BTreeMap<Home, &[Store]> = traced.iter().map(|(h, _, s)| (*h, &s[..])).collect();
    for &pch in pchs {
        for unit in 0..g.banks_of_pch() / 2 {
            let home = Home { pch, unit };
            let done = own.get(&home).copied().unwrap_or_default();
            if done.len() == stores.len() {
                continue;
            }
            let mut rest = done.iter().peekable();
            for s in stores {
                if rest.next_if(|d| (d.at, d.node) == (s.at, s.node)).is_some() || places.elements(home, s.at) == 0 {
                    continue;
                }
                let stores = |t: &&Traced| t.2.iter().any(|d| (d.at, d.node) == (s.at, s.node));
                let first = traced.iter().find(stores).map_or(&[][..], |(_, n, _)| &blocks[*n][..]);
                let there = places.show(kernel, s.at);
                let here = traced.iter().find(|(h, ..)| *h == home).map(|(_, n, _)| &blocks[*n]);
                let (message, note, help) = match here {
                    Some(at) => (
                        format!(
                            "block {at:?} stores less than block {first:?}, and its unit {home} would store to {there} \
                            too"
                        ),
                        "units in lock step execute the same commands, whatever an `if` says",
                        format!("let one unit have these blocks, one after the other: `on {}`", in_turn(blocks)),
                    ),
                    None => (
                        format!(
                            "unit {home} would store to {there} too, where elements are that no block of this round has"
                        ),
                        "units without a block execute the same commands",
                        "let every unit of the pseudo-channels have a block in each round, or none at all".to_owned(),
                    ),
                };
                return Err(Box::new(
                    Diagnostic::error(codes::LOCK_STEP, s.span, message)
                        .with_label(format!("stored by block {first:?} and those in lock step with it"))
                        .with_note(note)
                        .with_help(help),
                ));
            }
        }
    }
    Ok(())
}

/// The layout that gives all blocks of a grid to one unit.
fn in_turn(blocks: &[Vec<i64>]) -> String {
    let dims = blocks.first().map_or(0, Vec::len);
    let extents: Vec<String> =
        (0..dims).map(|d| (blocks.iter().map(|at| at[d]).max().unwrap_or(0) + 1).to_string()).collect();
    format!("({}):({})", extents.join(", "), vec!["0"; dims].join(", "))
}

/// Ways to compute the stores of a round that are compared, at most.
const COMPARED: usize = 7;

/// Whether the events open a row twice.
fn opens_again(strips: &[Vec<UnitEvent>]) -> bool {
    let (mut open, mut rows, mut openings) = ([None; 2], FxHashSet::default(), 0);
    for event in strips.iter().flatten() {
        if let UnitEvent::Step { at, .. } = *event
            && open[usize::from(at.odd)].replace(at.row) != Some(at.row)
        {
            openings += 1;
            rows.insert((at.odd, at.row));
        }
    }
    openings > rows.len()
}

/// Strips as they are emitted.
fn grouped(strips: &[Vec<UnitEvent>]) -> Vec<Vec<UnitGroup>> {
    strips.iter().map(|events| program::groups(&order::ordered(events))).collect()
}

/// Clocks of strips by themselves, roughly: those of their commands, the writing of programs among them.
fn clocks(strips: &[Vec<UnitGroup>]) -> u64 {
    let nowhere = |_| SourceLine { file: 0, line: 0 };
    let ops = emit::exec(&program::segments(strips.to_vec()), &nowhere);
    ops.map_or(u64::MAX, |ops| emit::clocks(&ops))
}

/// Words of a program that is written by one command: less is not to be had.
const SHORT: usize = 8;

/// One way to compute the stores of a round.
struct Coded {
    clocks: u64,
    strips: Vec<Vec<UnitGroup>>,
    scalars: Scalars,
    choice: Choice,
}

/// Instructions for stores of a round, cut as small as the registers want. Sums that grow side by side may go through
/// the rows of what they add once, and one after the other each goes through all of them; they may be eight at a time
/// as one instruction, or each by itself. Where rows are opened twice, or a program is long, other ways are looked at,
/// too.
fn coded(
    kernel: &Kernel,
    nodes: &Nodes,
    (registers, interleaved): ([usize; 2], bool),
    stores: &[Store],
    overwritten: &FxHashSet<BankBurst>,
    (scalars, chosen): (&mut Scalars, &mut FxHashMap<usize, Choice>),
) -> Res<Vec<Vec<UnitGroup>>> {
    // What was best for as many stores of a round before is not looked for again.
    if let Some(choice) = chosen.get(&stores.len()) {
        let mut now = *scalars;
        if let Ok(events) = code::round(nodes, registers, stores, overwritten, &mut now, *choice) {
            *scalars = now;
            return Ok(grouped(&events));
        }
    }
    let mut trouble: Option<Trouble> = None;
    let elements = nodes.have_elements(stores.iter().map(|s| s.node));
    let mut stores = Cow::Borrowed(stores);
    loop {
        let (mut best, mut compared): (Option<Coded>, usize) = (None, 0);
        for choice in Choice::all(&stores, interleaved, elements) {
            let mut now = *scalars;
            match code::round(nodes, registers, &stores, overwritten, &mut now, choice) {
                Ok(events) => {
                    let strips = grouped(&events);
                    let alone = best.is_none() && !opens_again(&events) && program::is_short(&strips, SHORT);
                    let clocks = if alone { 0 } else { clocks(&strips) };
                    if best.as_ref().is_none_or(|b| clocks < b.clocks) {
                        best = Some(Coded { clocks, strips, scalars: now, choice });
                    }
                    compared += 1;
                    if alone || compared == COMPARED {
                        break;
                    }
                }
                // What a single store needs is what counts.
                Err(t) if choice.stores == 1 || trouble.is_none() => trouble = Some(t),
                Err(_) => {}
            }
        }
        if let Some(best) = best {
            *scalars = best.scalars;
            chosen.insert(stores.len(), best.choice);
            return Ok(best.strips);
        }
        match (trouble, &stores) {
            (Some(Trouble::Stale(_)), Cow::Borrowed(s)) => {
                stores = Cow::Owned(readers_first(nodes, s));
                trouble = None;
            }
            _ => break,
        }
    }
    let d = match trouble {
        Some(Trouble::Stale(span)) => {
            Diagnostic::error(codes::UNIT_REGISTERS, span, "a burst is overwritten before all uses of what it held")
                .with_label("needed again after that")
                .with_help(format!("store to another tensor, or {}", crate::advice::host(kernel)))
        }
        Some(Trouble::Registers(needed, span)) => {
            let have: usize = registers.iter().sum();
            let message = format!("at least {needed} vectors are live here, and a unit has {have} registers");
            Diagnostic::error(codes::UNIT_REGISTERS, span, message)
                .with_label("one more than there are")
                .with_note(match registers {
                    [a, b] if a == b => format!("GRF_A and GRF_B have {a} registers of 16 lanes each"),
                    [a, b] => format!("GRF_A has {a} registers of 16 lanes, and GRF_B {b}"),
                })
                .with_help(format!(
                    "compute in smaller steps and store between them, or {}",
                    crate::advice::host(kernel)
                ))
        }
        // Something is always tried.
        None => return Ok(Vec::new()),
    };
    Err(Box::new(d))
}

/// Stores in an order in which a burst is overwritten after everything that reads it, as far as there is one; else the
/// order that they have.
fn readers_first(nodes: &Nodes, stores: &[Store]) -> Vec<Store> {
    let writers: FxHashMap<BankBurst, usize> = stores.iter().enumerate().map(|(n, s)| (s.at, n)).collect();
    let mut waits = vec![0usize; stores.len()];
    let mut wakes: Vec<Vec<usize>> = vec![Vec::new(); stores.len()];
    for (n, s) in stores.iter().enumerate() {
        for at in nodes.banks(std::iter::once(s.node)) {
            if let Some(&w) = writers.get(&at).filter(|w| **w != n) {
                waits[w] += 1;
                wakes[n].push(w);
            }
        }
    }
    let mut left: BTreeSet<usize> = (0..stores.len()).collect();
    let mut ready: BTreeSet<usize> = left.iter().copied().filter(|n| waits[*n] == 0).collect();
    let mut out = Vec::with_capacity(stores.len());
    // Where stores wait for each other, the first one goes on; a strip that has them all reads before it stores.
    while let Some(n) = ready.pop_first().or_else(|| left.first().copied()) {
        if !left.remove(&n) {
            continue;
        }
        out.push(stores[n]);
        for &w in &wakes[n] {
            waits[w] -= 1;
            if waits[w] == 0 && left.contains(&w) {
                ready.insert(w);
            }
        }
    }
    out
}

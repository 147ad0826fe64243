//! The interpreter: executes a kernel as a card may, and not as one would like it to.
//!
//! Lanes have program counters of their own. Who runs next, and for how long, is drawn: a warp may run to its next
//! barrier while the others have not begun, and lanes of one warp may fall apart. All CTAs are there at once. Shared
//! memory begins with garbage. Each access is held to its memory's bounds and to its alignment, and, if that is asked
//! for, to the others' accesses ([`SimLaunch::races`]). A launch has the results of one order; run several.

mod access;
mod arith;
mod bulk;
mod clocks;
mod cluster;
mod code;
mod compute;
mod cp_async;
mod maps;
mod mbarrier;
mod memory;
mod mma;
mod races;
mod report;
mod waits;
mod warp;
mod wgmma;

pub use maps::{Swizzle, TensorMap};
pub use memory::{Global, Refusal};
pub use races::RaceAccess;
pub use report::{Other, SimFault, Waiting, Why};

use crate::kernel::PtxKernel;
use bulk::{BulkGroups, Copy};
use clocks::{CtaClocks, Shape};
use cluster::{ClusterBarrier, Message};
use code::SimKernel;
use mbarrier::Mbarrier;
use memory::{Arena, Device};
use races::{View, Who};
use std::collections::{BTreeMap, HashMap};
use waits::NamedBarrier;
use warp::Warp;
use wgmma::Products;

/// How a kernel is launched.
#[derive(Clone, Copy, Debug)]
pub struct SimLaunch<'a> {
    /// What.
    pub kernel: &'a PtxKernel,
    /// CTAs, in one dimension.
    pub ctas: u32,
    /// Bytes of shared memory whose size the kernel does not say.
    pub shared: u32,
    /// Bits of the parameters.
    pub params: &'a [u64],
    /// Which order.
    pub seed: u64,
    /// Instructions of warps until it is given up.
    pub fuel: u64,
    /// Races are faults.
    pub races: bool,
    /// Misaligned accesses are faults: their address is no multiple of their size. A card's are.
    pub aligned: bool,
    /// A NaN of f32 is what it is on this machine. A card makes it all ones, but for the sign.
    pub keep_nan: bool,
}

/// What a launch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Instructions, each of as many lanes of a warp as were together.
    pub issued: u64,
    /// Instructions of lanes.
    pub lanes: u64,
    /// Barriers that all threads of a CTA have passed.
    pub barriers: u64,
}

/// Numbers that look random, by splitmix64.
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Of an operation at the end of a CTA, whose shared memory is gone then.
const UNWAITED: &str = "nobody waits for it before the CTA ends";

/// A CTA.
struct Cta {
    number: u32,
    warps: Vec<Warp>,
    shared: Arena,
    /// One a thread.
    locals: Vec<Arena>,
    /// Barriers passed.
    epoch: u32,
    /// Lanes that wait at a barrier or have ended.
    arrived: u32,
    /// Of a kernel that has more than barriers of all threads.
    clocks: Option<CtaClocks>,
    mbarriers: BTreeMap<u64, Mbarrier>,
    named: BTreeMap<u64, NamedBarrier>,
    /// Bulk copies under way, and groups of bulk stores by thread.
    copies: Vec<Copy>,
    groups: HashMap<usize, BulkGroups>,
    /// Copies of each thread that it has not waited for.
    cp_async: BTreeMap<usize, Vec<cp_async::Pending>>,
    /// Warps of which lanes go on that have waited.
    woken: Vec<usize>,
}

/// What all threads see.
struct World<'a> {
    code: &'a SimKernel,
    launch: &'a SimLaunch<'a>,
    params: Vec<u8>,
    device: Device,
    /// Tensor maps by the addresses of their parameters.
    maps: Vec<(u64, TensorMap)>,
    /// Barriers of clusters.
    clusters: Vec<ClusterBarrier>,
    /// What goes to other CTAs of a cluster.
    messages: Vec<(u32, Message)>,
    stats: Stats,
    fuel: u64,
}

/// Runs a launch to its end.
///
/// # Errors
/// Where it does not get there, or does what nobody may rely on.
pub fn run(launch: &SimLaunch<'_>, global: &mut Global) -> Result<Stats, SimFault> {
    let kernel = launch.kernel;
    let code = SimKernel::new(kernel).map_err(|e| Why::Invalid(e.to_string()))?;
    if launch.params.len() != kernel.params.len() {
        let (want, got) = (kernel.params.len(), launch.params.len());
        return Err(Why::Arguments(format!("{got} parameters for {want}")).into());
    }
    let mut params = vec![0; code.params as usize];
    let mut end = 0;
    for (param, bits) in kernel.params.iter().zip(launch.params) {
        let at = usize::next_multiple_of(end, param.align() as usize);
        let size = (param.size() as usize).min(8);
        params[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        end = at + param.size() as usize;
    }
    let maps = tensor_maps(&code, launch, global)?;
    let mut random = Random(launch.seed);
    let mut ctas: Vec<Cta> = (0..launch.ctas).map(|number| Cta::new(number, &code, launch, random.next())).collect();
    let cluster = kernel.cluster.unwrap_or(1);
    if !launch.ctas.is_multiple_of(cluster) {
        return Err(Why::Arguments(format!("{} CTAs in clusters of {cluster}", launch.ctas)).into());
    }
    if code.clocked && launch.races {
        for cluster in ctas.chunks_mut(cluster as usize) {
            let shape = Shape { ctas: cluster.len() as u32, threads: kernel.threads };
            let first = CtaClocks::new(shape);
            let ranks = (0..).zip(cluster);
            ranks.for_each(|(rank, cta)| cta.clocks = Some(first.of_rank(rank, kernel.threads)));
        }
    }
    let clusters = vec![ClusterBarrier::default(); (launch.ctas / cluster) as usize];
    let device = Device::new(global, launch);
    let mut world = World {
        code: &code,
        launch,
        params,
        device,
        maps,
        clusters,
        messages: Vec::new(),
        stats: Stats::default(),
        fuel: launch.fuel,
    };
    let result = world.run(&mut ctas, &mut random);
    let stats = world.stats;
    world.device.back(global);
    result.map(|()| stats).map_err(|fault| fault.named(kernel))
}

/// The tensor maps that a launch is given.
fn tensor_maps(code: &SimKernel, launch: &SimLaunch<'_>, global: &Global) -> Result<Vec<(u64, TensorMap)>, SimFault> {
    let map = |(at, n): &(u64, usize)| {
        let name = &launch.kernel.params[*n].name;
        let none = || Why::Arguments(format!("`{name}` has no tensor map"));
        let map = global.maps.get(launch.params[*n] as usize).ok_or_else(none)?;
        match map.refused() {
            Some(message) => Err(Why::Arguments(format!("`{name}`: {message}")).into()),
            None => Ok((*at | bulk::PARAMS, map.clone())),
        }
    };
    code.maps.iter().map(map).collect()
}

impl Cta {
    fn new(number: u32, code: &SimKernel, launch: &SimLaunch<'_>, seed: u64) -> Cta {
        let threads = launch.kernel.threads;
        let shared = (code.shared + launch.shared) as usize;
        let warp = |n: u32| {
            let mut warp = Warp::new(n, code.registers);
            if code.multiplies {
                warp.products = Products::new(code.registers);
            }
            warp
        };
        Cta {
            number,
            warps: (0..threads / 32).map(warp).collect(),
            shared: Arena::poisoned(shared, launch, seed),
            locals: (0..threads).map(|n| Arena::private(code.local as usize, launch, seed ^ u64::from(n))).collect(),
            epoch: 0,
            arrived: 0,
            clocks: None,
            mbarriers: BTreeMap::new(),
            named: BTreeMap::new(),
            cp_async: BTreeMap::new(),
            copies: Vec::new(),
            groups: HashMap::new(),
            woken: Vec::new(),
        }
    }

    /// A lane, and what it knows.
    fn view(&self, w: usize, lane: usize, pc: u32) -> View {
        let thread = 32 * w + lane;
        let (time, clocks) = match &self.clocks {
            Some(clocks) => (clocks.time(thread), Some(clocks.of(thread))),
            None => (self.epoch, None),
        };
        View { who: Who::new(self.number, thread as u32, time, pc), clocks, sees: false }
    }

    /// All that are still there wait at a barrier: they go on. Those that have ended are not waited for.
    fn release(&mut self) -> bool {
        if self.arrived != 32 * self.warps.len() as u32 {
            return false;
        }
        let barriers = || self.warps.iter().flat_map(Warp::barriers);
        let Some(first) = barriers().next() else { return false };
        if barriers().any(|n| n != first) {
            return false;
        }
        let outcome = self.warps.iter().any(Warp::votes);
        self.arrived = self.warps.iter_mut().map(|warp| warp.resume(outcome)).sum();
        self.epoch += 1;
        if let Some(clocks) = &self.clocks {
            clocks.meet_at(0..32 * self.warps.len());
        }
        true
    }
}

/// When what is asynchronous happens: how often, between bursts of warps, and which first.
struct Pace {
    one_in: Option<usize>,
    newest: bool,
    stores_last: bool,
}

impl Pace {
    /// Half of the launches are late in all of it.
    fn new(random: &mut Random) -> Pace {
        let one_in = [Some(1), Some(4), None, None][random.below(4)];
        let which = random.below(3);
        Pace { one_in, newest: which == 1, stores_last: which == 2 }
    }
}

impl World<'_> {
    fn run(&mut self, ctas: &mut [Cta], random: &mut Random) -> Result<(), SimFault> {
        let warps = |c: usize, cta: &Cta| (0..cta.warps.len()).map(move |w| (c, w)).collect::<Vec<_>>();
        let pace = if self.code.clocked { Pace::new(random) } else { Pace::new(&mut Random(0)) };
        // Warps that can go on.
        let mut ready: Vec<(usize, usize)> = ctas.iter().enumerate().flat_map(|(c, cta)| warps(c, cta)).collect();
        loop {
            if !ready.is_empty() {
                let turn = random.below(ready.len());
                self.turn(ctas, &mut ready, turn, random)?;
            }
            let late = pace.one_in.is_some_and(|n| self.code.clocked && random.below(n) == 0);
            let moved = (late || ready.is_empty()) && self.happens(ctas, &pace, random)?;
            if self.code.clocked {
                self.deliver(ctas)?;
                for (c, cta) in ctas.iter_mut().enumerate() {
                    for w in std::mem::take(&mut cta.woken) {
                        if !std::mem::replace(&mut cta.warps[w].queued, true) {
                            ready.push((c, w));
                        }
                    }
                }
            }
            if ready.is_empty() && !moved {
                break;
            }
        }
        let waits = self.waiting(ctas);
        if let Some(first) = waits.first() {
            let at = Some(first.at.clone());
            return Err(SimFault { at, waits, ..Why::Deadlock.into() });
        }
        match ctas.iter().find_map(|cta| cta.clocks.as_ref()?.unwaited()) {
            Some(who) => Err(bulk::operation(who, mbarrier::Wrong::Undefined(UNWAITED.into()))),
            None if ctas.iter().any(|cta| !cta.cp_async.is_empty()) => Err(Why::Undefined(UNWAITED.into()).into()),
            None => Ok(()),
        }
    }

    /// A warp has a turn.
    fn turn(
        &mut self,
        ctas: &mut [Cta],
        ready: &mut Vec<(usize, usize)>,
        turn: usize,
        random: &mut Random,
    ) -> Result<(), SimFault> {
        let (c, w) = ready[turn];
        let cta = &mut ctas[c];
        // A short burst, a longer one, or as far as it gets.
        let burst = match random.below(4) {
            0 => 1 + random.below(3),
            1 => 1 + random.below(40),
            _ => 1 << 16,
        };
        let before = cta.warps[w].arrived();
        self.burst(cta, w, burst, random)?;
        cta.arrived = cta.arrived + cta.warps[w].arrived() - before;
        if cta.warps[w].ready() == 0 {
            ready.swap_remove(turn);
            cta.warps[w].queued = false;
        }
        if cta.release() {
            self.stats.barriers += 1;
            for (w, warp) in cta.warps.iter_mut().enumerate() {
                if warp.ready() != 0 && !std::mem::replace(&mut warp.queued, true) {
                    ready.push((c, w));
                }
            }
        }
        Ok(())
    }

    /// Something asynchronous happens; whether there was anything.
    fn happens(&mut self, ctas: &mut [Cta], pace: &Pace, random: &mut Random) -> Result<bool, SimFault> {
        let mut copies = Vec::new();
        let mut products = Vec::new();
        for (c, cta) in ctas.iter().enumerate() {
            copies.extend((0..cta.copies.len()).map(|n| (c, n)));
            products.extend((0..cta.warps.len()).filter(|w| cta.warps[*w].products.is_pending()).map(|w| (c, w)));
        }
        if pace.stores_last && copies.iter().any(|(c, n)| !ctas[*c].copies[*n].store) {
            copies.retain(|(c, n)| !ctas[*c].copies[*n].store);
        }
        if copies.is_empty() && products.is_empty() {
            return Ok(false);
        }
        let drawn = random.below(copies.len() + products.len());
        if let Some((c, w)) = drawn.checked_sub(copies.len()).map(|n| products[n]) {
            ctas[c].multiply(self, w)?;
            return Ok(true);
        }
        let (c, n) = if pace.newest { copies[copies.len() - 1] } else { copies[drawn] };
        ctas[c].step_copy(self, n)?;
        Ok(true)
    }

    /// The tensor map at an address.
    fn map(&self, at: u64) -> Option<&TensorMap> {
        self.maps.iter().find(|(known, _)| *known == at).map(|(_, map)| map)
    }
}

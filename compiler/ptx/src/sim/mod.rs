//! The interpreter: executes a kernel as a card may, and not as one would like it to.
//!
//! Lanes have program counters of their own. Who runs next, and for how long, is drawn: a warp may run to its next
//! barrier while the others have not begun, and lanes of one warp may fall apart. All CTAs are there at once. Shared
//! memory begins with garbage. Each access is held to its memory's bounds and to its alignment, and, if that is asked
//! for, to the others' accesses ([`SimLaunch::races`]). A launch has the results of one order; run several.

mod access;
mod arith;
mod code;
mod compute;
mod memory;
mod races;
mod warp;

pub use memory::{Global, Refusal};
pub use races::RaceAccess;

use crate::kernel::PtxKernel;
use crate::print::instruction;
use code::SimKernel;
use memory::{Arena, Device};
use std::fmt;
use warp::Warp;

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

/// Why a launch did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// The kernel is not valid.
    Invalid(String),
    /// The launch does not fit the kernel.
    Arguments(String),
    /// An access that is refused.
    Access(Refusal, u64),
    /// Lanes wait for others that do not come.
    Deadlock,
    /// It has taken too long.
    Fuel,
}

/// A launch that did not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimFault {
    /// Why.
    pub why: Why,
    /// The instruction: its number, its text, what it was made for.
    pub at: Option<(usize, String, u32)>,
    /// The CTA and the thread.
    pub thread: Option<(u32, u32)>,
    /// Of a race, the access that came before.
    pub other: Option<Other>,
}

/// An access that another races with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// What it did.
    pub access: RaceAccess,
    /// As [`SimFault::at`].
    pub at: (usize, String, u32),
    /// As [`SimFault::thread`].
    pub thread: (u32, u32),
}

impl fmt::Display for Other {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ((n, text, _), (cta, thread)) = (&self.at, self.thread);
        write!(f, "the {} at {n}: `{text}`, thread {thread} of CTA {cta}", self.access.name())
    }
}

impl fmt::Display for SimFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.why {
            Why::Invalid(message) | Why::Arguments(message) => write!(f, "{message}")?,
            Why::Access(Refusal::Bounds, at) => write!(f, "no memory at {at:#x}")?,
            Why::Access(Refusal::Alignment, at) => write!(f, "{at:#x} is not aligned")?,
            Why::Access(Refusal::Race, at) => write!(f, "a race at {at:#x}")?,
            Why::Deadlock => write!(f, "lanes wait for ever")?,
            Why::Fuel => write!(f, "out of steps")?,
        }
        if let Some((n, text, _)) = &self.at {
            write!(f, ", at {n}: `{text}`")?;
        }
        if let Some((cta, thread)) = self.thread {
            write!(f, ", thread {thread} of CTA {cta}")?;
        }
        if let Some(other) = &self.other {
            write!(f, ", with {other}")?;
        }
        Ok(())
    }
}

impl std::error::Error for SimFault {}

impl From<Why> for SimFault {
    fn from(why: Why) -> SimFault {
        SimFault { why, at: None, thread: None, other: None }
    }
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
}

/// What all threads see.
struct World<'a> {
    code: &'a SimKernel,
    launch: &'a SimLaunch<'a>,
    params: Vec<u8>,
    device: Device,
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
        let size = param.ty.size() as usize;
        let at = usize::next_multiple_of(end, size);
        params[at..at + size].copy_from_slice(&bits.to_le_bytes()[..size]);
        end = at + size;
    }
    let mut random = Random(launch.seed);
    let mut ctas: Vec<Cta> = (0..launch.ctas).map(|number| Cta::new(number, &code, launch, random.next())).collect();
    let device = Device::new(global, launch);
    let mut world = World { code: &code, launch, params, device, stats: Stats::default(), fuel: launch.fuel };
    let result = world.run(&mut ctas, &mut random);
    let stats = world.stats;
    world.device.back(global);
    let named = |at: &mut (usize, String, u32)| {
        if let Some(inst) = kernel.insts().nth(at.0) {
            (at.1, at.2) = (instruction(kernel, inst), inst.site);
        }
    };
    result.map(|()| stats).map_err(|mut fault| {
        fault.at.iter_mut().for_each(named);
        fault.other.iter_mut().for_each(|other| named(&mut other.at));
        fault
    })
}

impl Cta {
    fn new(number: u32, code: &SimKernel, launch: &SimLaunch<'_>, seed: u64) -> Cta {
        let threads = launch.kernel.threads;
        let shared = (code.shared + launch.shared) as usize;
        Cta {
            number,
            warps: (0..threads / 32).map(|n| Warp::new(n, code.registers)).collect(),
            shared: Arena::poisoned(shared, launch, seed),
            locals: (0..threads).map(|n| Arena::private(code.local as usize, launch, seed ^ u64::from(n))).collect(),
            epoch: 0,
            arrived: 0,
        }
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
        true
    }
}

impl World<'_> {
    fn run(&mut self, ctas: &mut [Cta], random: &mut Random) -> Result<(), SimFault> {
        let warps = |c: usize, cta: &Cta| (0..cta.warps.len()).map(move |w| (c, w)).collect::<Vec<_>>();
        // Warps that can go on.
        let mut ready: Vec<(usize, usize)> = ctas.iter().enumerate().flat_map(|(c, cta)| warps(c, cta)).collect();
        while !ready.is_empty() {
            let turn = random.below(ready.len());
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
            cta.arrived += cta.warps[w].arrived() - before;
            if cta.warps[w].ready() == 0 {
                ready.swap_remove(turn);
            }
            if cta.release() {
                self.stats.barriers += 1;
                // None of them was ready.
                ready.extend(warps(c, cta).into_iter().filter(|(_, w)| cta.warps[*w].ready() != 0));
            }
        }
        match ctas.iter().flat_map(|c| &c.warps).find_map(Warp::waiting) {
            None => Ok(()),
            Some(pc) => Err(SimFault { at: Some((pc, String::new(), 0)), ..Why::Deadlock.into() }),
        }
    }
}

//! Clusters: barriers of all their threads, arrivals and copies that go to another CTA.

use super::bulk::{Operands, operation};
use super::clocks::Clocks;
use super::mbarrier::Wrong;
use super::races::View;
use super::warp::Park;
use super::{Cta, SimFault, World};
use std::rc::Rc;

/// Where a CTA's rank begins in addresses of shared memory, of its own too: as on a card, where an operand's descriptor
/// has no room for it.
const RANK: u32 = 24;

/// An address of shared memory, in the CTA of a rank.
pub(super) fn there(at: u64, rank: u64) -> u64 {
    (at & ((1 << RANK) - 1)) | rank << RANK
}

/// The barrier of a cluster.
#[derive(Clone, Debug, Default)]
pub(super) struct ClusterBarrier {
    /// Threads that have arrived, and those that have ended.
    arrived: u32,
    ended: u32,
    /// How often all have arrived, and when each thread arrived last.
    turn: u32,
    turns: Vec<u32>,
    /// What those know who have arrived, and who had the turn before.
    open: Clocks,
    done: Clocks,
}

/// What goes to another CTA, when the one that sends it has had its turn.
#[derive(Debug)]
pub(super) enum Message {
    Arrive { at: u64, count: u64, view: View, told: Option<Rc<Clocks>> },
    Copy { operands: Operands, view: View },
    Barrier,
}

impl World<'_> {
    /// CTAs of a cluster.
    pub(super) fn cluster(&self) -> u32 {
        self.launch.kernel.cluster.unwrap_or(1)
    }

    fn barrier(&mut self, cta: &Cta) -> &mut ClusterBarrier {
        let number = cta.number / self.cluster();
        &mut self.clusters[number as usize]
    }

    /// A thread arrives at the barrier of its cluster.
    pub(super) fn arrive_in_cluster(&mut self, cta: &mut Cta, thread: usize) -> Result<(), Wrong> {
        let number = (cta.number % self.cluster() * self.launch.kernel.threads) as usize + thread;
        let told = cta.clocks.as_ref().map(|clocks| clocks.release(thread));
        let barrier = self.barrier(cta);
        if barrier.turns.len() <= number {
            barrier.turns.resize(number + 1, 0);
        }
        if barrier.turns[number] > barrier.turn {
            return Err(Wrong::Undefined("it arrives at the barrier of the cluster again before the others".into()));
        }
        barrier.turns[number] = barrier.turn + 1;
        barrier.arrived += 1;
        if let Some(told) = told {
            barrier.open.join(&told);
        }
        self.settle_cluster(cta);
        Ok(())
    }

    /// Threads end: nobody waits for them.
    pub(super) fn leave(&mut self, cta: &mut Cta, threads: u32) {
        if self.launch.kernel.cluster.is_some() {
            self.barrier(cta).ended += threads;
            self.settle_cluster(cta);
        }
    }

    fn settle_cluster(&mut self, cta: &Cta) {
        let size = self.cluster();
        let threads = size * self.launch.kernel.threads;
        let barrier = self.barrier(cta);
        if barrier.arrived == 0 || barrier.arrived + barrier.ended < threads {
            return;
        }
        barrier.turn += 1;
        barrier.arrived = 0;
        let open = std::mem::take(&mut barrier.open);
        barrier.done.join(&open);
        let first = cta.number / size * size;
        self.messages.extend((first..first + size).map(|cta| (cta, Message::Barrier)));
    }

    /// Whether all have arrived since the thread has.
    pub(super) fn passed_cluster(&mut self, cta: &mut Cta, thread: usize) -> bool {
        let number = (cta.number % self.cluster() * self.launch.kernel.threads) as usize + thread;
        let barrier = self.barrier(cta);
        let passed = barrier.turns.get(number).is_some_and(|turn| (1..=barrier.turn).contains(turn));
        if passed && let Some(clocks) = &cta.clocks {
            clocks.acquire(thread, &barrier.done);
        }
        passed
    }

    /// The CTA of the cluster that an address is in, and the address there.
    fn target(&self, cta: &Cta, at: u64) -> Result<(u32, u64), Wrong> {
        let size = self.cluster();
        match at >> RANK {
            rank if rank < u64::from(size) => Ok((cta.number / size * size + rank as u32, at & ((1 << RANK) - 1))),
            rank => Err(Wrong::Undefined(format!("there is no CTA {rank} in the cluster"))),
        }
    }

    /// A CTA's place in its cluster.
    pub(super) fn rank(&self, cta: &Cta) -> u64 {
        u64::from(cta.number % self.cluster())
    }

    /// Where an address is in a CTA's shared memory; beyond its end, where it is another CTA's.
    pub(super) fn own(&self, cta: &Cta, at: u64) -> u64 {
        at ^ self.rank(cta) << RANK
    }

    /// Arrivals at an `mbarrier` of another CTA.
    pub(super) fn arrive_there(&mut self, cta: &mut Cta, at: u64, count: u64, view: View) -> Result<(), Wrong> {
        let (to, at) = self.target(cta, at)?;
        let told = cta.clocks.as_ref().map(|clocks| clocks.release(view.who.thread()));
        self.messages.push((to, Message::Arrive { at, count, view, told }));
        Ok(())
    }

    /// A copy to the CTAs of a mask.
    pub(super) fn send(
        &mut self,
        cta: &mut Cta,
        w: usize,
        pc: u32,
        lane: usize,
        operands: Operands,
        mask: u16,
    ) -> Result<(), Wrong> {
        let size = self.cluster();
        let mut view = cta.view(w, lane, pc);
        if let Some(clocks) = &cta.clocks {
            view.clocks = Some(clocks.release(view.who.thread()));
        }
        if mask == 0 || u32::from(mask) >> size != 0 {
            return Err(Wrong::Undefined(format!("a mask {mask:#x} of a cluster of {size}")));
        }
        let first = cta.number / size * size;
        for rank in (0..size).filter(|rank| mask >> rank & 1 != 0) {
            let (operands, view) = (operands.clone(), view.clone());
            self.messages.push((first + rank, Message::Copy { operands, view }));
        }
        Ok(())
    }

    /// What was sent comes to where it goes.
    pub(super) fn deliver(&mut self, ctas: &mut [Cta]) -> Result<(), SimFault> {
        while !self.messages.is_empty() {
            for (to, message) in std::mem::take(&mut self.messages) {
                let cta = &mut ctas[to as usize];
                let over = cta.warps.iter().all(super::warp::Warp::has_ended);
                let (who, done) = match message {
                    Message::Barrier => {
                        cta.wake(|park| park == Park::Cluster);
                        continue;
                    }
                    Message::Arrive { view, .. } | Message::Copy { view, .. } if over => {
                        (view.who, Err(Wrong::Undefined(format!("CTA {to}, where it goes, has ended"))))
                    }
                    Message::Arrive { at, count, view, told } => (view.who, cta.arrives(at, count, &view, told)),
                    Message::Copy { operands, view } => (view.who, cta.load(view, operands)),
                };
                done.map_err(|wrong| operation(who, wrong))?;
            }
        }
        Ok(())
    }
}

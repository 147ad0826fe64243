//! Instructions that wait: for lanes of a warp, for threads of a CTA, for what is asynchronous. And what a report says
//! of lanes that wait for ever.

use super::clocks::Column;
use super::cluster::there;
use super::memory::Refused;
use super::mma::products_of_warp;
use super::races::RaceAccess;
use super::warp::{Park, each};
use super::{Cta, Random, SimFault, Waiting, Why, World};
use crate::sm90::Sm90;
use crate::types::Space;

/// How a warp goes on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Flow {
    /// All go on behind the instruction.
    Next,
    /// Each lane's program counter is up to date.
    Left,
}

/// A barrier by number, of some threads.
#[derive(Clone, Debug, Default)]
pub(super) struct NamedBarrier {
    count: u64,
    arrived: Vec<usize>,
}

impl Cta {
    /// Lets lanes that wait for something go on; where they are they find out.
    pub(super) fn wake(&mut self, so: impl Fn(Park) -> bool) {
        for (w, warp) in self.warps.iter_mut().enumerate() {
            if warp.unpark(&so) {
                self.woken.push(w);
            }
        }
    }

    /// What a lane waits for, in words.
    fn waits_for(&self, park: Park) -> String {
        match park {
            Park::Mbarrier(at, parity) => match self.mbarriers.get(&at) {
                Some(barrier) => format!("of the mbarrier at {at:#x} {}", barrier.state(parity)),
                None => format!("the mbarrier at {at:#x} has ended"),
            },
            Park::Named(number) => {
                let barrier = self.named.get(&number).cloned().unwrap_or_default();
                let (here, count) = (barrier.arrived.len(), barrier.count);
                format!("{here} of {count} threads are at barrier {number}")
            }
            Park::Cluster => "not all threads of the cluster are at its barrier".into(),
            Park::Cta => "not all threads of the CTA are at this barrier".into(),
            Park::Warp => "not all lanes of the warp are here".into(),
        }
    }

    /// Threads arrive at a barrier; those that wait there do so already.
    fn arrive_at(&mut self, number: u64, count: u64, thread: usize) -> Result<(), String> {
        let threads = 32 * self.warps.len() as u64;
        if number > 15 || count == 0 || count > threads || !count.is_multiple_of(32) {
            return Err(format!("barrier {number} of {count} threads"));
        }
        let barrier = self.named.entry(number).or_default();
        if barrier.arrived.is_empty() {
            barrier.count = count;
        }
        if barrier.count != count {
            return Err(format!("barrier {number} is one of {} threads and of {count}", barrier.count));
        }
        if barrier.arrived.contains(&thread) {
            return Err(format!("it arrives at barrier {number} again before the others"));
        }
        barrier.arrived.push(thread);
        if barrier.arrived.len() as u64 == count {
            let arrived = std::mem::take(&mut barrier.arrived);
            if let Some(clocks) = &self.clocks {
                clocks.meet_at(arrived.iter().copied());
            }
            self.wake(|park| park == Park::Named(number));
        }
        Ok(())
    }
}

impl World<'_> {
    /// An instruction of Hopper, of the lanes that are together, of which some do it.
    pub(super) fn sm90(
        &mut self,
        cta: &mut Cta,
        w: usize,
        pc: u32,
        op: Sm90,
        (does, mask): (u32, u32),
        random: &mut Random,
    ) -> Result<Flow, SimFault> {
        let step = &self.code.steps[pc as usize];
        if does == 0 {
            return Ok(Flow::Next);
        }
        let members = match op {
            _ if op.is_aligned() => Some(u32::MAX),
            Sm90::BarWarpSync | Sm90::ElectSync => {
                Some(self.values(cta, w, step.srcs[0])[does.trailing_zeros() as usize] as u32)
            }
            _ => None,
        };
        if let Some(members) = members {
            cta.warps[w].move_on(mask & !does, pc + 1);
            if self.gather(cta, w, pc, does, members)? {
                self.together(cta, w, pc, op, members)?;
            }
            return Ok(Flow::Left);
        }
        let first = 32 * w;
        match op {
            Sm90::FenceProxyAsync(space) => {
                let columns = [(Space::Shared, Column::Shared), (Space::Global, Column::Global)];
                let columns = columns.into_iter().filter(|(s, _)| space.is_none_or(|space| space == *s));
                for (lane, (_, column)) in each(does).flat_map(|lane| columns.clone().map(move |c| (lane, c))) {
                    cta.clocks.iter().for_each(|clocks| clocks.fence(first + lane, column));
                }
            }
            Sm90::FenceMbarrierInit => each(does).for_each(|lane| cta.fence_mbarriers(first + lane)),
            Sm90::BarSync | Sm90::BarArrive => {
                let (number, count) = (self.values(cta, w, step.srcs[0]), self.values(cta, w, step.srcs[1]));
                if op == Sm90::BarSync {
                    cta.warps[w].move_on(mask, pc + 1);
                    each(does).for_each(|lane| cta.warps[w].park(lane, pc, Park::Named(number[lane])));
                }
                for lane in each(does) {
                    let arrived = cta.arrive_at(number[lane], count[lane], first + lane);
                    arrived.map_err(|message| self.fault(cta, w, pc, lane, Why::Undefined(message)))?;
                }
                return Ok(if op == Sm90::BarSync { Flow::Left } else { Flow::Next });
            }
            Sm90::Mapa => {
                let (at, rank) = (self.values(cta, w, step.srcs[0]), self.values(cta, w, step.srcs[1]));
                each(does).for_each(|l| cta.warps[w].set_one(step.dsts[0], l, there(at[l], rank[l])));
            }
            Sm90::ClusterArrive => {
                // A card's warp arrives once: lanes that are elsewhere would be taken to have arrived, and would stand
                // still while the others wait.
                let near = |lane: usize| (pc..=pc + 1).contains(&cta.warps[w].at(lane));
                if !each(!does).all(near) {
                    let why =
                        "lanes of the warp are elsewhere, and a warp arrives at the barrier of the cluster as one";
                    return Err(self.fault(cta, w, pc, does.trailing_zeros() as usize, Why::Undefined(why.into())));
                }
                for lane in each(does) {
                    let arrived = self.arrive_in_cluster(cta, first + lane);
                    arrived.map_err(|wrong| self.wrong(cta, w, pc, lane, wrong))?;
                }
            }
            Sm90::ClusterWait => {
                let waits = each(does).filter(|lane| !self.passed_cluster(cta, first + lane));
                let waits = waits.fold(0, |mask, lane| mask | 1 << lane);
                each(waits).for_each(|lane| cta.warps[w].park(lane, pc, Park::Cluster));
                cta.warps[w].move_on(waits, pc);
                cta.warps[w].move_on(mask & !waits, pc + 1);
                return Ok(Flow::Left);
            }
            Sm90::PrefetchTensorMap => {
                let at = self.values(cta, w, step.srcs[0]);
                if let Some(lane) = each(does).find(|lane| self.map(at[*lane]).is_none()) {
                    let why = Why::Undefined(format!("there is no tensor map at {:#x}", at[lane]));
                    return Err(self.fault(cta, w, pc, lane, why));
                }
            }
            Sm90::CpAsync | Sm90::CpAsyncArrive | Sm90::CpAsyncWait => self.cp_async(cta, w, pc, op, does)?,
            Sm90::BulkLoad
            | Sm90::BulkStore
            | Sm90::TensorLoad(_)
            | Sm90::TensorMulticast(_)
            | Sm90::TensorStore(_)
            | Sm90::BulkCommit
            | Sm90::BulkWait { .. } => self.bulk(cta, w, pc, op, does)?,
            _ => {
                let parked = self.mbarrier(cta, w, pc, op, does, random)?;
                // Those that wait ask again.
                cta.warps[w].move_on(parked, pc);
                cta.warps[w].move_on(mask & !parked, pc + 1);
                // A loop that asks lets others go first.
                return Ok(if parked == 0 && op != Sm90::MbarrierTestWait { Flow::Next } else { Flow::Left });
            }
        }
        Ok(Flow::Next)
    }

    /// What the members of a mask do together.
    fn together(&mut self, cta: &mut Cta, w: usize, pc: u32, op: Sm90, members: u32) -> Result<(), SimFault> {
        let step = &self.code.steps[pc as usize];
        match op {
            Sm90::BarWarpSync => {
                let lanes = each(members).map(|lane| 32 * w + lane);
                if let Some(clocks) = &cta.clocks {
                    clocks.meet_at(lanes.collect::<Vec<_>>().into_iter());
                }
            }
            Sm90::ElectSync => {
                // Which one nobody may rely on, but it is the same each time.
                let nth = (self.launch.seed ^ u64::from(members)) % u64::from(members.count_ones());
                let leader = each(members).nth(nth as usize);
                each(members).for_each(|l| cta.warps[w].set_one(step.dsts[0], l, (Some(l) == leader).into()));
            }
            Sm90::LdMatrix { count, trans } | Sm90::StMatrix { count, trans } => {
                let loads = matches!(op, Sm90::LdMatrix { .. });
                let done = self.matrices(cta, w, pc, count.into(), trans, loads);
                done.map_err(|(refused, lane, at)| self.refused(cta, w, pc, lane, refused, at))?;
            }
            Sm90::SetMaxReg { .. } => {}
            Sm90::MmaSync(ty) => {
                let right: Vec<_> = step.all_srcs[4..6].iter().map(|src| self.values(cta, w, *src)).collect();
                let left: Vec<_> = step.all_srcs[..4].iter().map(|src| self.values(cta, w, *src)).collect();
                let sums: Vec<_> = step.all_srcs[6..].iter().map(|src| self.values(cta, w, *src)).collect();
                for (reg, sums) in step.all_dsts.iter().zip(products_of_warp(ty, &left, &right, &sums)) {
                    cta.warps[w].set(*reg, u32::MAX, &sums);
                }
            }
            _ => self.wgmma(cta, w, pc, op)?,
        }
        Ok(())
    }

    /// Matrices of 8 x 8 halves: lane `8 n + r` has the address of row `r` of matrix `n`; lane `l` has, of each, two
    /// neighbours of row `l / 4`, or of column `l / 4`.
    fn matrices(
        &self,
        cta: &mut Cta,
        w: usize,
        pc: u32,
        count: usize,
        trans: bool,
        loads: bool,
    ) -> Result<(), (Refused, usize, u64)> {
        let step = &self.code.steps[pc as usize];
        let at = self.values(cta, w, step.srcs[0]).map(|at| self.own(cta, at));
        let place = |lane: usize, half: usize| match trans {
            false => (lane / 4, lane % 4 * 2 + half),
            true => (lane % 4 * 2 + half, lane / 4),
        };
        for n in 0..count {
            let mut rows = [[0u8; 16]; 8];
            if !loads {
                let words = self.values(cta, w, step.all_srcs[1 + n]);
                for (lane, word) in words.into_iter().enumerate() {
                    for half in 0..2 {
                        let (row, column) = place(lane, half);
                        let bytes = ((word >> (16 * half)) as u16).to_le_bytes();
                        rows[row][2 * column..2 * column + 2].copy_from_slice(&bytes);
                    }
                }
            }
            for (r, row) in rows.iter_mut().enumerate() {
                let lane = 8 * n + r;
                let (view, access) = (cta.view(w, lane, pc), if loads { RaceAccess::Read } else { RaceAccess::Write });
                let bytes = cta.shared.touch(at[lane], 16, access, &view);
                let bytes = bytes.map_err(|refused| (refused, lane, at[lane]))?;
                if loads { row.copy_from_slice(bytes) } else { bytes.copy_from_slice(row) }
            }
            if loads {
                for lane in 0..32 {
                    let word = (0..2).fold(0, |word, half| {
                        let (row, column) = place(lane, half);
                        let bytes = [rows[row][2 * column], rows[row][2 * column + 1]];
                        word | u64::from(u16::from_le_bytes(bytes)) << (16 * half)
                    });
                    cta.warps[w].set_one(step.all_dsts[n], lane, word);
                }
            }
        }
        Ok(())
    }

    /// Who waits, where, and for what.
    pub(super) fn waiting(&self, ctas: &[Cta]) -> Vec<Waiting> {
        let mut all: Vec<Waiting> = Vec::new();
        for cta in ctas {
            let first = all.len();
            for (w, warp) in (0..).zip(&cta.warps) {
                let mut here: Vec<Waiting> = Vec::new();
                for (lane, pc, park) in warp.waiting() {
                    let on = cta.waits_for(park);
                    match here.iter_mut().find(|one| one.at.0 == pc as usize && one.on == on) {
                        Some(one) => one.lanes |= 1 << lane,
                        None => {
                            let at = (pc as usize, String::new(), 0);
                            here.push(Waiting { cta: cta.number, warps: vec![w], lanes: 1 << lane, at, on });
                        }
                    }
                }
                for one in here {
                    let same =
                        |known: &&mut Waiting| known.at.0 == one.at.0 && known.on == one.on && known.lanes == one.lanes;
                    match all[first..].iter_mut().find(same) {
                        Some(known) => known.warps.push(w),
                        None => all.push(one),
                    }
                }
            }
        }
        all
    }
}

//! The host's path: bursts through the FR-FCFS controllers of all channels.
//!
//! The host gathers elements into bursts and asks for each burst once: it has the whole array and may choose the order.
//! It goes row by row, in a row by the banks' number in their group, and then column by column over the bank groups: so
//! successive bursts are of other groups (tCCD_S), and while the banks of one number move data, those of the next one
//! change their rows. Bytes of a burst that hold no element are masked when it is written; AiM's units get zeros there.

use super::account::{Bucket, ColumnEvent};
use super::lanes::{CommandSource, Effect, Rules, Want, Work};
use super::log::Log;
use super::memory::ChannelMemory;
use super::{Fail, Machine, MachineStop};
use crate::dram::{Address, Request};
use ptoc_pim_stream::placement::Placed;
use ptoc_pim_stream::stream::{Action, BURST, Relayout, Role, SourceLine, TensorDecl, Transfer};
use ptoc_pim_stream::{ArrayPlacement, Geometry, UnitConfig};
use ptoc_tensor::Tensor;
use rustc_hash::FxHashSet;

/// Bursts, each once, in the order of their first elements.
#[derive(Default)]
struct Bursts {
    seen: FxHashSet<u64>,
    last: Option<u64>,
    list: Vec<u64>,
}

impl Bursts {
    fn add(&mut self, address: u64) {
        let burst = address / BURST as u64;
        if self.last != Some(burst) {
            self.last = Some(burst);
            if self.seen.insert(burst) {
                self.list.push(burst);
            }
        }
    }

    fn of(placed: &Placed) -> Bursts {
        let mut out = Bursts::default();
        placed.for_each(|a| out.add(a));
        out
    }
}

/// Channel and place of a burst of the device.
fn locate(g: &Geometry, burst: u64) -> (usize, Address) {
    let (mut rest, col) = (burst / u64::from(g.col), burst % u64::from(g.col));
    let mut take = |n: u32| {
        let digit = rest % u64::from(n);
        rest /= u64::from(n);
        digit
    };
    let row = take(g.row);
    let bank = take(g.bank);
    let bankgroup = take(g.bg);
    let pc = take(g.pch);
    let address =
        Address { pc: pc as u16, bankgroup: bankgroup as u16, bank: bank as u16, row: row as u32, column: col as u32 };
    (rest as usize, address)
}

impl Machine<'_> {
    pub(super) fn placed(&self, decl: &TensorDecl, placement: &ArrayPlacement) -> Result<Placed, MachineStop> {
        placement
            .resolve(&decl.shape, decl.dtype.size() as u32, &self.geometry, &self.stream.unit)
            .map_err(|m| MachineStop::new(Fail::Size, m))
    }

    /// An array's values in the memory, without a time.
    fn store(&mut self, t: &Transfer) -> Result<Placed, MachineStop> {
        let decl = &self.stream.tensors[t.tensor as usize];
        let placed = self.placed(decl, &t.placement)?;
        let bytes = self.arrays[t.tensor as usize].as_ref().map_or(&[][..], Tensor::bytes);
        let mut elements = bytes.chunks_exact(decl.dtype.size());
        let mut full = false;
        // A sum over all lanes of a burst takes those, too, that no element has.
        if matches!(self.stream.unit, UnitConfig::Aim(_)) {
            let bursts = Bursts::of(&placed).list;
            if bursts.len() as u64 * BURST as u64 > placed.elements() * decl.dtype.size() as u64 {
                for burst in bursts {
                    full |= self.dram.memory.write(burst * BURST as u64, &[0; BURST]).is_err();
                }
            }
        }
        placed.for_each(|a| {
            let Some(element) = elements.next() else { return };
            full |= self.dram.memory.write(a, element).is_err();
        });
        self.fits(full)?;
        Ok(placed)
    }

    /// An array that is there already.
    pub(super) fn resident(&mut self, t: &Transfer) -> Result<(), MachineStop> {
        let bursts = Bursts::of(&self.store(t)?);
        if t.placement.replicated {
            self.copies(&bursts.list);
        }
        Ok(())
    }

    /// The values of arrays that were there already and are changed, as they are left there.
    pub(super) fn left(&mut self) -> Result<(), MachineStop> {
        for step in &self.stream.steps {
            let Action::Resident(t) = &step.action else { break };
            let decl = &self.stream.tensors[t.tensor as usize];
            if decl.role == Role::InOut {
                let placed = self.placed(decl, &t.placement)?;
                self.fetch(t.tensor, decl, &placed);
            }
        }
        Ok(())
    }

    /// An array's values from the memory, without a time.
    fn fetch(&mut self, tensor: u32, decl: &TensorDecl, placed: &Placed) {
        let memory = &self.dram.memory;
        if let Some(array) = &mut self.arrays[tensor as usize] {
            let mut elements = array.bytes_mut().chunks_exact_mut(decl.dtype.size());
            placed.for_each(|a| {
                if let Some(element) = elements.next() {
                    memory.read_into(a, element);
                }
            });
        }
    }

    pub(super) fn write(&mut self, place: SourceLine, t: &Transfer, start: u64) -> Result<u64, MachineStop> {
        let placed = self.store(t)?;
        let size = self.stream.tensors[t.tensor as usize].dtype.size();
        self.dram.bytes().host_useful += placed.elements() * size as u64;
        let bursts = Bursts::of(&placed);
        match t.placement.replicated {
            false => self.serve(place, &bursts.list, true, start),
            true => self.broadcast(place, &bursts.list, start),
        }
    }

    pub(super) fn read(&mut self, place: SourceLine, t: &Transfer, start: u64) -> Result<u64, MachineStop> {
        let decl = &self.stream.tensors[t.tensor as usize];
        let placed = self.placed(decl, &t.placement)?;
        let size = decl.dtype.size();
        if !self.timing_only {
            self.own(t.tensor as usize)?;
        }
        self.fetch(t.tensor, decl, &placed);
        self.dram.bytes().host_useful += placed.elements() * size as u64;
        self.serve(place, &Bursts::of(&placed).list, false, start)
    }

    /// From one placement of an array to another.
    pub(super) fn shift(
        &mut self,
        place: SourceLine,
        tensor: u32,
        [from, to]: [&ArrayPlacement; 2],
        start: u64,
    ) -> Result<u64, MachineStop> {
        let decl = &self.stream.tensors[tensor as usize];
        let placed = [self.placed(decl, from)?, self.placed(decl, to)?];
        let mut pairs = Vec::with_capacity(placed[0].elements() as usize);
        placed[0].for_each(|a| pairs.push((a, 0)));
        let mut at = pairs.iter_mut();
        placed[1].for_each(|a| at.next().expect("as many elements").1 = a);
        self.copy(place, decl, &pairs, to.replicated, start)
    }

    pub(super) fn relayout(&mut self, place: SourceLine, r: &Relayout, start: u64) -> Result<u64, MachineStop> {
        let (src, dst) = (&self.stream.tensors[r.src as usize], &self.stream.tensors[r.dst as usize]);
        let (from, to) = (self.placed(src, &r.from)?, self.placed(dst, &r.to)?);
        let mut pairs = Vec::new();
        let mut index = vec![0u32; r.axes.len()];
        let [mut a, mut b] = r.start.map(u64::from);
        'all: loop {
            pairs.push((from.address(a), to.address(b)));
            for (i, axis) in index.iter_mut().zip(&r.axes).rev() {
                *i += 1;
                a += u64::from(axis.src);
                b += u64::from(axis.dst);
                if *i < axis.extent {
                    continue 'all;
                }
                a -= u64::from(axis.src) * u64::from(axis.extent);
                b -= u64::from(axis.dst) * u64::from(axis.extent);
                *i = 0;
            }
            break;
        }
        self.copy(place, src, &pairs, r.to.replicated, start)
    }

    /// Reads what the first addresses hold, then writes it to the second.
    fn copy(
        &mut self,
        place: SourceLine,
        decl: &TensorDecl,
        pairs: &[(u64, u64)],
        replicated: bool,
        start: u64,
    ) -> Result<u64, MachineStop> {
        let size = decl.dtype.size();
        let (mut reads, mut writes) = (Bursts::default(), Bursts::default());
        let mut values = vec![0; pairs.len() * size];
        for ((from, to), value) in pairs.iter().zip(values.chunks_exact_mut(size)) {
            self.dram.memory.read_into(*from, value);
            reads.add(*from);
            writes.add(*to);
        }
        let mut full = false;
        for ((_, to), value) in pairs.iter().zip(values.chunks_exact(size)) {
            full |= self.dram.memory.write(*to, value).is_err();
        }
        self.fits(full)?;
        self.dram.bytes().host_useful += 2 * values.len() as u64;
        let middle = self.serve(place, &reads.list, false, start)?;
        match replicated {
            false => self.serve(place, &writes.list, true, middle),
            true => self.broadcast(place, &writes.list, middle),
        }
    }

    fn fits(&self, full: bool) -> Result<(), MachineStop> {
        if full { Err(MachineStop::new(Fail::Size, super::FULL.into())) } else { Ok(()) }
    }

    /// Lets every channel serve its part; returns the tick when all have.
    pub(super) fn serve(
        &mut self,
        place: SourceLine,
        bursts: &[u64],
        write: bool,
        start: u64,
    ) -> Result<u64, MachineStop> {
        let mut requests: Vec<Vec<Request>> = vec![Vec::new(); self.dram.sessions.len()];
        for burst in bursts {
            let (channel, address) = locate(&self.geometry, *burst);
            requests[channel].push(Request { address, write });
        }
        self.dram.bytes().host_moved += bursts.len() as u64 * BURST as u64;
        let t = &self.dram.config.timing;
        let [busy, read, written] = [t.bl.max(t.ccd_s), t.cl + t.bl, t.cwl + t.bl].map(|n| self.dram.config.ticks(n));
        let own = requests.into_iter().enumerate().filter(|(_, own)| !own.is_empty());
        let ends = self.dram.each(own, (start, bursts.len()), |channel, mut requests| {
            // Successive bursts go to other pseudo-channels and bank groups, and rows change in one bank of each group
            // while another one is served.
            requests.sort_by_key(|Request { address: a, .. }| (a.row, a.bank, a.column, a.bankgroup, a.pc));
            let log = &mut *channel.log;
            let sink = |i: crate::dram::Issued, cause| {
                log.issued(&i, 1, true, place);
                if i.command.is_column() {
                    let pch = usize::from(i.address.pc);
                    let wait = Bucket::of(cause, Bucket::Column);
                    let data_end = i.tick + if i.command.is_read() { read } else { written };
                    let busy = (i.tick + busy, Bucket::Column);
                    log.account.column(pch, ColumnEvent { tick: i.tick, wait, fence: start, busy, data_end, place });
                }
            };
            let done = channel.session.serve(channel.config, channel.controller, start, requests.into_iter(), sink);
            done.map_err(|e| MachineStop::new(Fail::Time, e.to_string()))
        })?;
        Ok(ends.into_iter().max().unwrap_or(start))
    }

    /// What the first bank holds in these bursts, in the banks of all units, whose addresses come back.
    fn copies(&mut self, bursts: &[u64]) -> Vec<u64> {
        let g = self.geometry;
        let homes: Vec<u64> = (0..self.stream.unit.count(&g))
            .flat_map(|n| {
                let [channel, pch, bg, bank] = self.stream.unit.home(n, &g);
                (0..self.stream.unit.banks()).map(move |b| g.address([channel, pch, bg, bank + b], 0, 0))
            })
            .collect();
        let mut rows: Vec<u64> = bursts.iter().map(|b| b * BURST as u64 / g.row_bytes() * g.row_bytes()).collect();
        rows.sort_unstable();
        rows.dedup();
        for row in rows {
            homes.iter().for_each(|home| self.dram.memory.copy_row(row, home + row));
        }
        homes
    }

    /// One write to the first bank of every pseudo-channel is for all of its banks.
    fn broadcast(&mut self, place: SourceLine, bursts: &[u64], start: u64) -> Result<u64, MachineStop> {
        let g = self.geometry;
        let homes = self.copies(bursts);
        let mut used: Vec<(usize, usize)> =
            homes.iter().map(|h| locate(&g, h / BURST as u64)).map(|(c, a)| (c, usize::from(a.pc))).collect();
        used.sort_unstable();
        used.dedup();
        self.dram.bytes().host_moved += (bursts.len() * used.len() * BURST) as u64;
        let rules = Rules { act_weight: self.stream.unit.act_weight(), fence_data: true, waits: true, latency: 0 };
        let own = used.chunk_by(|(a, _), (b, _)| a == b).map(|own| (own[0].0, own));
        let ends = self.dram.each(own, (start, bursts.len() * used.len()), |channel, pcs| {
            let lane = |(_, pc): &(usize, usize)| Broadcast {
                pc: *pc,
                bursts,
                at: 0,
                banks: g.banks_of_pch(),
                columns: g.col,
                place,
            };
            let mut lanes: Vec<Broadcast<'_>> = pcs.iter().map(lane).collect();
            // All banks are closed for it, and after it: they have one state.
            let sources = lanes.iter_mut().map(|l| (l.pc, l as &mut dyn CommandSource));
            channel.run(rules, start, sources)
        })?;
        Ok(ends.into_iter().max().unwrap_or(start))
    }
}

/// Writes that all banks of a pseudo-channel take.
struct Broadcast<'b> {
    pc: usize,
    bursts: &'b [u64],
    /// 0: close; then the bursts; then close.
    at: usize,
    banks: u32,
    columns: u32,
    place: SourceLine,
}

impl CommandSource for Broadcast<'_> {
    fn place(&self) -> SourceLine {
        self.place
    }

    fn want(&self) -> Want {
        let n = self.bursts.len();
        match self.at {
            0 => Want::Close,
            at if at <= n => {
                let burst = self.bursts[at - 1];
                // Placements of replicated arrays lie in the first bank, so the burst's number is its place there.
                let (row, col) = (burst / u64::from(self.columns), burst % u64::from(self.columns));
                Want::Column { bank: [0, 0], row: row as u32, col: col as u32, write: true, banks: self.banks }
            }
            at if at == n + 1 => Want::Close,
            _ => Want::End,
        }
    }

    fn done(&mut self, _: &mut ChannelMemory<'_>, _: &mut Log) -> Result<Effect, MachineStop> {
        self.at += 1;
        Ok(Effect { bucket: Bucket::Column, place: self.place, host: true, work: Work::Other })
    }
}

//! What a channel's past commands ask of the next one.
//!
//! Per bank, bank group, SID and pseudo-channel the last command of each kind is kept, as the standards' state diagrams
//! and timing tables speak of them. [`Tracker::demands`] lists for a command every earlier one that it must keep a
//! distance from; [`Tracker::apply`] records it. Nothing here is taken from the engine's constraint list.

use super::rule::{Needs, Rule};
use crate::dram::{Address, Command, Config, Issued, Org, Standard};

/// The earliest tick of a command, because of command number `first`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Demand {
    pub rule: Rule,
    pub first: usize,
    /// The earliest first tick.
    pub tick: i64,
}

/// A state that a command needs and that is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StateFault {
    pub rule: Rule,
    /// The command that made the state; `None` for the state at the start.
    pub first: Option<usize>,
    /// The open row, if that is the matter.
    pub row: Option<u32>,
}

/// A past command: when it ended, and its number.
type Past = Option<(i64, usize)>;

/// Past refreshes, and refresh management.
#[derive(Clone, Copy, Debug, Default)]
struct Refreshed {
    refresh: Past,
    management: Past,
}

#[derive(Clone, Debug, Default)]
struct Bank {
    open: Option<(u32, usize)>,
    /// What closed it, while it is closed.
    closer: Option<usize>,
    act: Past,
    read: Past,
    write: Past,
    /// PREpb.
    pre: Past,
    /// RDA and WRA.
    auto: Columns,
    refresh: Refreshed,
}

/// Last column commands, for one bank group, one SID or the pseudo-channel.
#[derive(Clone, Debug, Default)]
struct Columns {
    read: Past,
    write: Past,
}

#[derive(Clone, Debug)]
struct Pseudo {
    banks: Vec<Bank>,
    groups: Vec<(Columns, Past)>,
    sids: Vec<Columns>,
    all: Columns,
    /// Ends of the last four ACTs, oldest first.
    acts: [Past; 4],
    /// RD and WR without auto-precharge: PREab waits for them.
    plain: Columns,
    /// RDA and WRA.
    auto: Columns,
    /// PREpb and PREab.
    pre: Past,
    pre_all: Past,
    /// REFab and RFMab.
    refresh: Refreshed,
    /// REFpb and RFMpb of any bank.
    refresh_one: Refreshed,
    open: usize,
}

/// The state of one channel.
#[derive(Clone, Debug)]
pub(crate) struct Tracker {
    org: Org,
    needs: Needs,
    held: [i64; Command::COUNT],
    strict: bool,
    /// JESD235 leaves the distance of per-bank refreshes to the controller; it and JESD79-4 know no tPPD.
    standard: Standard,
    pseudo: Vec<Pseudo>,
    /// When each bus is free, and who held it: row (or the only one), column.
    bus: [Past; 2],
    demands: Vec<Demand>,
}

impl Tracker {
    /// A channel with all banks closed for a long time.
    pub fn new(config: &Config, strict: bool) -> Tracker {
        let org = &config.org;
        let pseudo = Pseudo {
            banks: vec![Bank::default(); org.banks_per_pc() as usize],
            groups: vec![Default::default(); org.bankgroups_per_pc() as usize],
            sids: vec![Columns::default(); org.sid as usize],
            all: Columns::default(),
            acts: [None; 4],
            plain: Columns::default(),
            auto: Columns::default(),
            pre: None,
            pre_all: None,
            refresh: Refreshed::default(),
            refresh_one: Refreshed::default(),
            open: 0,
        };
        Tracker {
            needs: Needs::new(config.standard, &config.timing, config.tick_multiplier),
            held: config.command_ticks.map(i64::from),
            strict,
            standard: config.standard,
            pseudo: vec![pseudo; org.pseudochannel as usize],
            bus: [None; 2],
            demands: Vec::with_capacity(16),
            org: org.clone(),
        }
    }

    /// Whether the place exists.
    pub fn is_place(&self, command: Command, a: &Address) -> bool {
        let org = &self.org;
        let whole = command.is_all_bank();
        u32::from(a.pc) < org.pseudochannel
            && (whole
                || u32::from(a.bankgroup) < org.bankgroups_per_pc()
                    && u32::from(a.bank) < org.bank
                    && (command != Command::Act && !command.is_column() || a.row < org.row)
                    && (!command.is_column() || a.column < org.bursts_per_row()))
    }

    /// The tick in which a command takes effect: its last on the bus.
    fn end(&self, c: &Issued) -> i64 {
        c.tick.min(1 << 62) as i64 + self.held[c.command as usize] - 1
    }

    fn index(&self, a: &Address) -> usize {
        self.org.bank_index(a.bankgroup, a.bank) as usize
    }

    /// What the command's state is missing.
    pub fn state(&self, c: &Issued) -> Option<StateFault> {
        let p = &self.pseudo[usize::from(c.address.pc)];
        let fault = |rule, first, row| Some(StateFault { rule, first, row });
        match c.command {
            Command::RefAb | Command::RfmAb => {
                let (row, first) = p.banks.iter().filter_map(|b| b.open).max_by_key(|&(_, first)| first)?;
                fault(Rule::RefreshOpen, Some(first), Some(row))
            }
            Command::PreAb | Command::PrePb => None,
            _ => {
                let bank = &p.banks[self.index(&c.address)];
                match (c.command, bank.open) {
                    (Command::Act, Some((row, first))) => fault(Rule::BankOpen, Some(first), Some(row)),
                    (Command::RefPb | Command::RfmPb, Some((row, first))) => {
                        fault(Rule::RefreshOpen, Some(first), Some(row))
                    }
                    (command, None) if command.is_column() => fault(Rule::BankClosed, bank.closer, None),
                    (command, Some((row, first))) if command.is_column() && row != c.address.row => {
                        fault(Rule::OtherRow, Some(first), Some(row))
                    }
                    _ => None,
                }
            }
        }
    }

    /// Every distance that the command must keep, whether it does or not.
    pub fn demands(&mut self, c: &Issued) -> &[Demand] {
        let mut out = std::mem::take(&mut self.demands);
        out.clear();
        // A distance is between ends, a demand is for the first tick.
        let back = self.held[c.command as usize] - 1;
        let mut ask = |rule: Rule, past: Past, need: i64| {
            if let Some((end, first)) = past {
                out.push(Demand { rule, first, tick: end + need - back });
            }
        };
        let p = &self.pseudo[usize::from(c.address.pc)];
        match c.command {
            Command::Act => self.ask_act(p, &c.address, &mut ask),
            Command::PrePb | Command::PreAb => self.ask_pre(p, c, &mut ask),
            Command::Rd | Command::RdA | Command::Wr | Command::WrA => self.ask_column(p, c, &mut ask),
            Command::RefAb | Command::RfmAb => self.ask_refresh_all(p, &mut ask),
            Command::RefPb | Command::RfmPb => self.ask_refresh_one(p, c, &mut ask),
        }
        let bus = self.standard.bus(c.command);
        if let Some((free, first)) = self.bus[bus] {
            let rule = if self.standard.one_bus() { Rule::CommandBus } else { [Rule::RowBus, Rule::ColumnBus][bus] };
            out.push(Demand { rule, first, tick: free });
        }
        self.demands = out;
        &self.demands
    }

    fn ask_act(&self, p: &Pseudo, a: &Address, ask: &mut impl FnMut(Rule, Past, i64)) {
        let n = &self.needs;
        let bank = &p.banks[self.index(a)];
        ask(Rule::Rc, bank.act, n.rc);
        ask(Rule::RrdL, p.groups[usize::from(a.bankgroup)].1, n.rrd_l);
        ask(Rule::RrdS, p.acts[3], n.rrd_s);
        ask(Rule::Faw, p.acts[0], n.faw);
        ask(Rule::Rp, bank.pre, n.rp);
        ask(Rule::Rp, p.pre_all, n.rp_ab);
        self.ask_auto(&bank.auto, ask);
        self.ask_rfc(p.refresh, ask);
        self.ask_rfc_pb(bank.refresh, ask);
        self.ask_rrefd(p.refresh_one, ask);
    }

    fn ask_auto(&self, auto: &Columns, ask: &mut impl FnMut(Rule, Past, i64)) {
        let n = &self.needs;
        ask(Rule::ReadAutoPrecharge, auto.read, n.rtp + n.rp);
        ask(Rule::WriteAutoPrecharge, auto.write, n.write_to_precharge + n.rp);
    }

    fn ask_rfc(&self, r: Refreshed, ask: &mut impl FnMut(Rule, Past, i64)) {
        ask(Rule::Rfc, r.refresh, self.needs.rfc);
        ask(Rule::Rfc, r.management, self.needs.rfm_ab);
    }

    fn ask_rfc_pb(&self, r: Refreshed, ask: &mut impl FnMut(Rule, Past, i64)) {
        ask(Rule::RfcPb, r.refresh, self.needs.rfc_pb);
        ask(Rule::RfcPb, r.management, self.needs.rfm_pb);
    }

    fn ask_rrefd(&self, r: Refreshed, ask: &mut impl FnMut(Rule, Past, i64)) {
        ask(Rule::Rrefd, r.refresh, self.needs.rrefd);
        ask(Rule::Rrefd, r.management, self.needs.rrefd);
    }

    fn ask_pre(&self, p: &Pseudo, c: &Issued, ask: &mut impl FnMut(Rule, Past, i64)) {
        let n = &self.needs;
        let one = (c.command == Command::PrePb).then(|| &p.banks[self.index(&c.address)]);
        // Distances are the same for all banks, so that of the last command is the longest.
        ask(Rule::Ras, one.map_or(p.acts[3], |b| b.act), n.ras);
        ask(Rule::Rtp, one.map_or(p.plain.read, |b| b.read), n.rtp);
        ask(Rule::Wr, one.map_or(p.plain.write, |b| b.write), n.write_to_precharge);
        if self.standard.precharges_apart() && n.ppd > 0 {
            ask(Rule::Ppd, p.pre, n.ppd);
        }
        if one.is_none() || self.strict {
            self.ask_rfc(p.refresh, ask);
        }
        if self.strict {
            match one {
                Some(bank) => self.ask_rfc_pb(bank.refresh, ask),
                None => self.ask_rfc_pb(p.refresh_one, ask),
            }
        }
    }

    fn ask_column(&self, p: &Pseudo, c: &Issued, ask: &mut impl FnMut(Rule, Past, i64)) {
        let n = &self.needs;
        let a = &c.address;
        let bank = &p.banks[self.index(a)];
        let group = &p.groups[usize::from(a.bankgroup)].0;
        let read = c.command.is_read();
        let same = |columns: &Columns| if read { columns.read } else { columns.write };
        ask(Rule::Rcd, bank.act, if read { n.rcd_rd } else { n.rcd_wr });
        ask(Rule::CcdL, same(group), if read { n.ccd_l } else { n.ccd_l_wr });
        let sid = (u32::from(a.bankgroup) / self.org.bankgroup) as usize;
        for (other, columns) in p.sids.iter().enumerate() {
            if other != sid {
                ask(Rule::CcdR, same(columns), n.ccd_r);
            }
        }
        ask(Rule::CcdS, same(&p.sids[sid]), n.ccd_s);
        ask(Rule::BurstLength, same(&p.all), n.burst);
        if read {
            ask(Rule::WtrL, group.write, n.wtr_l);
            ask(Rule::WtrS, p.all.write, n.wtr_s);
        } else {
            ask(Rule::Rtw, p.all.read, n.rtw);
            ask(Rule::DataBus, p.all.read, n.data_bus);
        }
    }

    fn ask_refresh_all(&self, p: &Pseudo, ask: &mut impl FnMut(Rule, Past, i64)) {
        let n = &self.needs;
        ask(Rule::Rc, p.acts[3], n.rc);
        ask(Rule::Rp, p.pre, n.rp);
        ask(Rule::Rp, p.pre_all, n.rp_ab);
        self.ask_auto(&p.auto, ask);
        if self.strict {
            self.ask_rfc(p.refresh, ask);
            self.ask_rfc_pb(p.refresh_one, ask);
        }
    }

    fn ask_refresh_one(&self, p: &Pseudo, c: &Issued, ask: &mut impl FnMut(Rule, Past, i64)) {
        let n = &self.needs;
        let (command, bank) = (c.command, &p.banks[self.index(&c.address)]);
        ask(Rule::Rc, bank.act, n.rc);
        ask(Rule::RrdS, p.acts[3], n.rrd_s);
        ask(Rule::Rp, bank.pre, n.rp);
        if self.strict {
            ask(Rule::Rp, p.pre_all, n.rp_ab);
            self.ask_auto(&bank.auto, ask);
            self.ask_rfc(p.refresh, ask);
            self.ask_rfc_pb(bank.refresh, ask);
            match self.standard {
                Standard::Lpddr5 => ask(Rule::Pbr2Pbr, p.refresh_one.refresh, n.pbr2pbr),
                _ => self.ask_rrefd(p.refresh_one, ask),
            }
        } else if command == Command::RefPb {
            match self.standard {
                Standard::Lpddr5 => ask(Rule::Pbr2Pbr, p.refresh_one.refresh, n.pbr2pbr),
                Standard::Hbm3 | Standard::Gddr6 => ask(Rule::Rrefd, p.refresh_one.refresh, n.rrefd),
                Standard::Hbm2 | Standard::Ddr4 | Standard::Ddr5 => {}
            }
        }
    }

    /// Records command number `number`. Its place exists.
    pub fn apply(&mut self, c: &Issued, number: usize) {
        let end = self.end(c);
        let index = self.index(&c.address);
        let now = Some((end, number));
        // After an overlap the longer of the two still holds the bus.
        let bus = &mut self.bus[self.standard.bus(c.command)];
        if bus.is_none_or(|(free, _)| free < end + 1) {
            *bus = Some((end + 1, number));
        }
        let group = usize::from(c.address.bankgroup);
        let sid = group / self.org.bankgroup as usize;
        let p = &mut self.pseudo[usize::from(c.address.pc)];
        match c.command {
            Command::Act => {
                let bank = &mut p.banks[index];
                p.open += usize::from(bank.open.is_none());
                bank.open = Some((c.address.row, number));
                bank.act = now;
                p.groups[group].1 = now;
                p.acts.rotate_left(1);
                p.acts[3] = now;
            }
            Command::PrePb => {
                let bank = &mut p.banks[index];
                p.open -= usize::from(bank.open.is_some());
                bank.open = None;
                bank.closer = Some(number);
                bank.pre = now;
                p.pre = now;
            }
            Command::PreAb => {
                p.open = 0;
                for bank in &mut p.banks {
                    bank.open = None;
                    bank.closer = Some(number);
                }
                p.pre = now;
                p.pre_all = now;
            }
            Command::Rd | Command::Wr | Command::RdA | Command::WrA => {
                let read = c.command.is_read();
                let auto = matches!(c.command, Command::RdA | Command::WrA);
                let set = |columns: &mut Columns| *(if read { &mut columns.read } else { &mut columns.write }) = now;
                set(&mut p.all);
                set(&mut p.groups[group].0);
                set(&mut p.sids[sid]);
                let bank = &mut p.banks[index];
                match auto {
                    false => {
                        set(&mut p.plain);
                        *(if read { &mut bank.read } else { &mut bank.write }) = now;
                    }
                    true => {
                        p.open -= usize::from(bank.open.is_some());
                        bank.open = None;
                        bank.closer = Some(number);
                        set(&mut bank.auto);
                        set(&mut p.auto);
                    }
                }
            }
            Command::RefAb => p.refresh.refresh = now,
            Command::RfmAb => p.refresh.management = now,
            Command::RefPb => {
                p.banks[index].refresh.refresh = now;
                p.refresh_one.refresh = now;
            }
            Command::RfmPb => {
                p.banks[index].refresh.management = now;
                p.refresh_one.management = now;
            }
        }
    }
}

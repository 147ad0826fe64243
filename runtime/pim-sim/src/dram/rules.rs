//! The timing rules of DRAM as one table, and the constraint list that they give for a device.
//!
//! A rule says: after any command of `preceding`, a command of `following` to the same `level` (or, with `sibling`, to
//! another one under the same parent) waits for `latency`. The standards count between the ends of commands; the
//! constraint counts ticks between first cycles, so a longer preceding command adds and a longer following one
//! subtracts. Sources: JESD235, JESD238, JESD79-4, JESD79-5, JESD250 and JESD209-5 as tabulated by the public
//! models of established simulators.

use super::command::{Command, CommandSet};
use super::org::Org;
use super::standard::Standard;
use super::timing::Timing;

/// A level of the hierarchy at which a constraint holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The command buses.
    Channel,
    /// The data bus.
    PseudoChannel,
    /// A stack identifier.
    Sid,
    /// A bank group.
    BankGroup,
    /// A bank.
    Bank,
}

impl Level {
    /// The name in configuration files.
    pub const fn name(self) -> &'static str {
        match self {
            Level::Channel => "Channel",
            Level::PseudoChannel => "PseudoChannel",
            Level::Sid => "Sid",
            Level::BankGroup => "BankGroup",
            Level::Bank => "Bank",
        }
    }
}

/// A resolved constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Where it holds.
    pub level: Level,
    /// Commands that start it.
    pub preceding: CommandSet,
    /// Commands that wait.
    pub following: CommandSet,
    /// Ticks between first cycles; what is not positive forbids nothing.
    pub gap: i64,
    /// It counts from the `window`-th last preceding command; 1 is the last.
    pub window: u32,
    /// Whether it holds between different members of `level` under one parent, and not within one.
    pub sibling: bool,
    /// The timing parameters that it comes from.
    pub rule: &'static str,
}

/// Which devices have a rule.
#[derive(Clone, Copy, PartialEq, Eq)]
enum When {
    Always,
    /// HBM3 only.
    Hbm3,
    /// DDR5 only.
    Ddr5,
    /// GDDR6 only.
    Gddr6,
    /// LPDDR5 only.
    Lpddr5,
    /// Standards that keep precharges apart.
    Ppd,
    /// Standards with refresh of single banks.
    BankRefresh,
    /// Devices with more than one SID.
    Sids,
}

impl When {
    fn holds(self, standard: Standard, org: &Org) -> bool {
        match self {
            When::Always => true,
            When::Hbm3 => standard == Standard::Hbm3,
            When::Ddr5 => standard == Standard::Ddr5,
            When::Gddr6 => standard == Standard::Gddr6,
            When::Lpddr5 => standard == Standard::Lpddr5,
            When::Ppd => standard.precharges_apart(),
            When::BankRefresh => standard.refreshes_banks(),
            When::Sids => org.sid > 1,
        }
    }
}

/// One row of the table of rules; the latency is in clocks.
struct Rule {
    when: When,
    level: Level,
    preceding: &'static [Command],
    following: &'static [Command],
    latency: fn(&Timing) -> i64,
    window: u32,
    sibling: bool,
    name: &'static str,
}

const ACT: &[Command] = &[Command::Act];
const PRE: &[Command] = &[Command::PrePb];
const PREA: &[Command] = &[Command::PreAb];
const ANY_PRE: &[Command] = &[Command::PrePb, Command::PreAb];
const RD: &[Command] = &[Command::Rd];
const WR: &[Command] = &[Command::Wr];
const RDA: &[Command] = &[Command::RdA];
const WRA: &[Command] = &[Command::WrA];
const ANY_RD: &[Command] = &[Command::Rd, Command::RdA];
const ANY_WR: &[Command] = &[Command::Wr, Command::WrA];
const REFAB: &[Command] = &[Command::RefAb];
const REFPB: &[Command] = &[Command::RefPb];
const RFMAB: &[Command] = &[Command::RfmAb];
const RFMPB: &[Command] = &[Command::RfmPb];
const PREA_WAITS: &[Command] = &[Command::Act, Command::RefAb];
const AFTER_REFAB: &[Command] = &[Command::Act, Command::PreAb];

const fn rule(
    level: Level,
    preceding: &'static [Command],
    following: &'static [Command],
    name: &'static str,
    latency: fn(&Timing) -> i64,
) -> Rule {
    Rule { when: When::Always, level, preceding, following, latency, window: 1, sibling: false, name }
}

const fn only(when: When, rule: Rule) -> Rule {
    Rule { when, ..rule }
}

const fn siblings(rule: Rule) -> Rule {
    Rule { sibling: true, ..rule }
}

fn n(value: u32) -> i64 {
    i64::from(value)
}

/// WR to PRE: the data must be in, then written back.
fn write_recovery(t: &Timing) -> i64 {
    n(t.cwl) + n(t.bl) + n(t.wr)
}

/// The rules, coarse levels first.
#[rustfmt::skip]
static RULES: &[Rule] = {
    use Level::{Bank, BankGroup, PseudoChannel, Sid};
    &[
        rule(PseudoChannel, ANY_RD, ANY_RD, "nBL", |t| n(t.bl)),
        rule(PseudoChannel, ANY_WR, ANY_WR, "nBL", |t| n(t.bl)),
        rule(Sid, ANY_RD, ANY_RD, "nCCDS", |t| n(t.ccd_s)),
        rule(Sid, ANY_WR, ANY_WR, "nCCDS", |t| n(t.ccd_s)),
        only(When::Sids, siblings(rule(Sid, ANY_RD, ANY_RD, "nCCDR", |t| n(t.ccd_r)))),
        only(When::Sids, siblings(rule(Sid, ANY_WR, ANY_WR, "nCCDR", |t| n(t.ccd_r)))),
        rule(PseudoChannel, ANY_RD, ANY_WR, "nRTW", |t| n(t.rtw)),
        rule(PseudoChannel, ANY_WR, ANY_RD, "nCWL + nBL + nWTRS", |t| n(t.cwl) + n(t.bl) + n(t.wtr_s)),
        rule(PseudoChannel, RD, PREA, "nRTPL", |t| n(t.rtp)),
        rule(PseudoChannel, WR, PREA, "nCWL + nBL + nWR", write_recovery),
        rule(PseudoChannel, ACT, ACT, "nRRDS", |t| n(t.rrd_s)),
        Rule { window: 4, ..rule(PseudoChannel, ACT, ACT, "nFAW", |t| n(t.faw)) },
        rule(PseudoChannel, ACT, PREA, "nRAS", |t| n(t.ras)),
        rule(PseudoChannel, PREA, ACT, "nRP", |t| n(t.rp)),
        only(When::Ppd, rule(PseudoChannel, ANY_PRE, ANY_PRE, "nPPD", |t| n(t.ppd))),
        only(When::Lpddr5, rule(PseudoChannel, PREA, PREA_WAITS, "nRPab", |t| n(t.rp_ab))),
        rule(PseudoChannel, ACT, REFAB, "nRC", |t| n(t.rc)),
        rule(PseudoChannel, ANY_PRE, REFAB, "nRP", |t| n(t.rp)),
        rule(PseudoChannel, RDA, REFAB, "nRTPL + nRP", |t| n(t.rtp) + n(t.rp)),
        rule(PseudoChannel, WRA, REFAB, "nCWL + nBL + nWR + nRP", |t| write_recovery(t) + n(t.rp)),
        rule(PseudoChannel, REFAB, AFTER_REFAB, "nRFC", |t| n(t.rfc)),
        only(When::Hbm3, rule(PseudoChannel, REFPB, REFPB, "nRREFD", |t| n(t.rrefd))),
        only(When::Gddr6, rule(PseudoChannel, REFPB, REFPB, "nRREFD", |t| n(t.rrefd))),
        only(When::Lpddr5, rule(PseudoChannel, REFPB, REFPB, "nPBR2PBR", |t| n(t.pbr2pbr))),
        only(When::BankRefresh, rule(PseudoChannel, REFPB, ACT, "nRREFD", |t| n(t.rrefd))),
        only(When::BankRefresh, rule(PseudoChannel, ACT, REFPB, "nRRDS", |t| n(t.rrd_s))),
        only(When::Hbm3, rule(PseudoChannel, ACT, RFMAB, "nRC", |t| n(t.rc))),
        only(When::Hbm3, rule(PseudoChannel, ANY_PRE, RFMAB, "nRP", |t| n(t.rp))),
        only(When::Hbm3, rule(PseudoChannel, RDA, RFMAB, "nRTPL + nRP", |t| n(t.rtp) + n(t.rp))),
        only(When::Hbm3, rule(PseudoChannel, WRA, RFMAB, "nCWL + nBL + nWR + nRP", |t| write_recovery(t) + n(t.rp))),
        only(When::Hbm3, rule(PseudoChannel, RFMAB, AFTER_REFAB, "nRFMab", |t| n(t.rfm_ab))),
        only(When::Hbm3, rule(PseudoChannel, RFMPB, ACT, "nRREFD", |t| n(t.rrefd))),
        only(When::Hbm3, rule(PseudoChannel, ACT, RFMPB, "nRRDS", |t| n(t.rrd_s))),
        rule(BankGroup, ANY_RD, ANY_RD, "nCCDL", |t| n(t.ccd_l)),
        rule(BankGroup, ANY_WR, ANY_WR, "nCCDL", |t| n(t.ccd_l)),
        only(When::Ddr5, rule(BankGroup, ANY_WR, ANY_WR, "nCCDLWR", |t| n(t.ccd_l_wr))),
        rule(BankGroup, ANY_WR, ANY_RD, "nCWL + nBL + nWTRL", |t| n(t.cwl) + n(t.bl) + n(t.wtr_l)),
        rule(BankGroup, ACT, ACT, "nRRDL", |t| n(t.rrd_l)),
        rule(Bank, ACT, ACT, "nRC", |t| n(t.rc)),
        rule(Bank, ACT, ANY_RD, "nRCDRD", |t| n(t.rcd_rd)),
        rule(Bank, ACT, ANY_WR, "nRCDWR", |t| n(t.rcd_wr)),
        rule(Bank, ACT, PRE, "nRAS", |t| n(t.ras)),
        rule(Bank, PRE, ACT, "nRP", |t| n(t.rp)),
        rule(Bank, RD, PRE, "nRTPL", |t| n(t.rtp)),
        rule(Bank, WR, PRE, "nCWL + nBL + nWR", write_recovery),
        rule(Bank, RDA, ACT, "nRTPL + nRP", |t| n(t.rtp) + n(t.rp)),
        rule(Bank, WRA, ACT, "nCWL + nBL + nWR + nRP", |t| write_recovery(t) + n(t.rp)),
        only(When::BankRefresh, rule(Bank, REFPB, ACT, "nRFCpb", |t| n(t.rfc_pb))),
        only(When::BankRefresh, rule(Bank, ACT, REFPB, "nRC", |t| n(t.rc))),
        only(When::BankRefresh, rule(Bank, PRE, REFPB, "nRP", |t| n(t.rp))),
        only(When::Hbm3, rule(Bank, RFMPB, ACT, "nRFMpb", |t| n(t.rfm_pb))),
        only(When::Hbm3, rule(Bank, ACT, RFMPB, "nRC", |t| n(t.rc))),
        only(When::Hbm3, rule(Bank, PRE, RFMPB, "nRP", |t| n(t.rp))),
    ]
};

/// The constraint list of a device: occupancy of the two command buses, then the table's rules in its order.
///
/// Without SIDs the rules of a SID are those of the pseudo-channel.
pub fn derive(
    standard: Standard,
    org: &Org,
    timing: &Timing,
    tick_multiplier: u32,
    ticks: &[u32; Command::COUNT],
) -> Vec<Constraint> {
    let mut out = occupancy(standard, ticks);
    for rule in RULES {
        if !rule.when.holds(standard, org) {
            continue;
        }
        let level = if rule.level == Level::Sid && org.sid < 2 { Level::PseudoChannel } else { rule.level };
        let latency = (rule.latency)(timing) * i64::from(tick_multiplier);
        let gap = |p: Command, f: Command| latency + n(ticks[p as usize]) - n(ticks[f as usize]);
        // What has one gap shares a constraint; commands that differ in length make another one.
        let mut groups: Vec<(i64, CommandSet, CommandSet)> = Vec::new();
        for p in rule.preceding {
            let first = groups.len();
            for f in rule.following {
                let gap = gap(*p, *f);
                match groups[first..].iter_mut().find(|g| g.0 == gap) {
                    Some(group) => group.2.insert(*f),
                    None => groups.push((gap, CommandSet::of(&[*p]), CommandSet::of(&[*f]))),
                }
            }
            for group in groups.split_off(first) {
                match groups.iter_mut().find(|g| g.0 == group.0 && g.2 == group.2) {
                    Some(same) => same.1.insert(*p),
                    None => groups.push(group),
                }
            }
        }
        for (gap, preceding, following) in groups {
            out.push(Constraint {
                level,
                preceding,
                following,
                gap,
                window: rule.window,
                sibling: rule.sibling,
                rule: rule.name,
            });
        }
    }
    out
}

/// A command of several ticks keeps the others off its bus. Where rows and columns have a bus each, one of a tick needs
/// no rule: a bus takes one a tick. What shares one bus is kept apart here.
fn occupancy(standard: Standard, ticks: &[u32; Command::COUNT]) -> Vec<Constraint> {
    let mut out: Vec<Constraint> = Vec::new();
    let free = if standard.one_bus() { 0 } else { 1 };
    for bus in 0..2 {
        let mut of_bus = CommandSet::default();
        standard.commands().iter().filter(|c| standard.bus(**c) == bus).for_each(|c| of_bus.insert(*c));
        let first = out.len();
        for command in of_bus.iter().filter(|c| ticks[*c as usize] > free) {
            let gap = n(ticks[command as usize]);
            match out[first..].iter_mut().find(|c| c.gap == gap) {
                Some(constraint) => constraint.preceding.insert(command),
                None => out.push(Constraint {
                    level: Level::Channel,
                    preceding: CommandSet::of(&[command]),
                    following: of_bus,
                    gap,
                    window: 1,
                    sibling: false,
                    rule: "command bus",
                }),
            }
        }
    }
    out
}

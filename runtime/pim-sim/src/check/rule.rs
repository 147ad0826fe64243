//! The rules by name, and how many clocks each asks for.
//!
//! A clock count here is between the ends of two commands: a command that holds its bus for several ticks takes effect
//! in its last one (JESD235, JESD238: the timing diagrams count from the edge that completes a command). [`Needs`] is
//! computed from the named parameters alone.

use crate::dram::{Standard, Timing};

/// What a command may have broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the documentation of each is its row in `Rule::describe`
pub enum Rule {
    Address,
    BankClosed,
    OtherRow,
    BankOpen,
    RefreshOpen,
    RowBus,
    ColumnBus,
    CommandBus,
    DataBus,
    BurstLength,
    Rcd,
    Ras,
    Rc,
    Rp,
    RrdS,
    RrdL,
    Faw,
    CcdS,
    CcdL,
    CcdR,
    Rtw,
    WtrS,
    WtrL,
    Rtp,
    Wr,
    ReadAutoPrecharge,
    WriteAutoPrecharge,
    Ppd,
    Rfc,
    RfcPb,
    Rrefd,
    Pbr2Pbr,
    RefreshCount,
}

/// What a rule belongs to when time is attributed to causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// The data bus moves a burst.
    Data,
    /// Column commands too close in a bank group: tCCD.
    Ccd,
    /// A row is closed, opened or kept open: tRCD, tRP, tRAS, tRC, tRTP, tWR.
    Row,
    /// Activations too close: tFAW, tRRD.
    Faw,
    /// The data bus changes direction: tWTR, read to write.
    Turnaround,
    /// The banks are being refreshed.
    Refresh,
    /// The command bus is held.
    Bus,
    /// No rule: the controller had nothing to issue, or its policy held it back.
    Controller,
}

impl Cause {
    /// All, in the order of reports.
    pub const ALL: [Cause; 8] = [
        Cause::Data,
        Cause::Ccd,
        Cause::Row,
        Cause::Faw,
        Cause::Turnaround,
        Cause::Refresh,
        Cause::Bus,
        Cause::Controller,
    ];

    /// The word in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::Data => "data",
            Cause::Ccd => "tCCD",
            Cause::Row => "tRCD/tRP",
            Cause::Faw => "tFAW/tRRD",
            Cause::Turnaround => "turnaround",
            Cause::Refresh => "refresh",
            Cause::Bus => "command bus",
            Cause::Controller => "controller",
        }
    }
}

impl Rule {
    /// The standard's name, the parameters that it is made of, what it asks for, and its cause.
    const fn row(self) -> (&'static str, &'static [&'static str], &'static str, Cause) {
        use Cause as C;
        match self {
            Rule::Address => ("address", &[], "the place exists in the device", C::Controller),
            Rule::BankClosed => ("open row", &[], "RD and WR go to a bank with an open row", C::Row),
            Rule::OtherRow => ("open row", &[], "RD and WR go to the row that is open", C::Row),
            Rule::BankOpen => ("closed bank", &[], "ACT goes to a closed bank", C::Row),
            Rule::RefreshOpen => ("closed bank", &[], "what is refreshed is closed", C::Refresh),
            Rule::RowBus => ("row bus", &[], "row commands of a channel share one bus", C::Bus),
            Rule::ColumnBus => ("column bus", &[], "column commands of a channel share one bus", C::Bus),
            Rule::CommandBus => ("command bus", &[], "commands of a channel share one bus", C::Bus),
            Rule::DataBus => ("data bus", &["nCL", "nBL", "nCWL"], "bursts of RD and WR do not overlap", C::Turnaround),
            Rule::BurstLength => ("tBL", &["nBL"], "bursts in one direction do not overlap", C::Data),
            Rule::Rcd => ("tRCD", &["nRCDRD", "nRCDWR"], "ACT to RD or WR, same bank", C::Row),
            Rule::Ras => ("tRAS", &["nRAS"], "ACT to PRE, same bank", C::Row),
            Rule::Rc => ("tRC", &["nRC"], "ACT to ACT or refresh, same bank", C::Row),
            Rule::Rp => ("tRP", &["nRP", "nRPab"], "PRE to ACT or refresh, same bank", C::Row),
            Rule::RrdS => ("tRRD_S", &["nRRDS"], "ACT to ACT, other bank group", C::Faw),
            Rule::RrdL => ("tRRD_L", &["nRRDL"], "ACT to ACT, same bank group", C::Faw),
            Rule::Faw => ("tFAW", &["nFAW"], "at most four ACTs in a window", C::Faw),
            Rule::CcdS => ("tCCD_S", &["nCCDS"], "RD to RD, WR to WR, other bank group", C::Ccd),
            Rule::CcdL => ("tCCD_L", &["nCCDL", "nCCDLWR"], "RD to RD, WR to WR, same bank group", C::Ccd),
            Rule::CcdR => ("tCCD_R", &["nCCDR"], "RD to RD, WR to WR, other SID", C::Ccd),
            Rule::Rtw => ("tRTW", &["nRTW"], "RD to WR", C::Turnaround),
            Rule::WtrS => ("tWTR_S", &["nCWL", "nBL", "nWTRS"], "WR to RD, other bank group", C::Turnaround),
            Rule::WtrL => ("tWTR_L", &["nCWL", "nBL", "nWTRL"], "WR to RD, same bank group", C::Turnaround),
            Rule::Rtp => ("tRTP", &["nRTPL"], "RD to PRE", C::Row),
            Rule::Wr => ("tWR", &["nCWL", "nBL", "nWR"], "WR to PRE", C::Row),
            Rule::ReadAutoPrecharge => ("tRTP + tRP", &["nRTPL", "nRP"], "RDA to ACT or refresh", C::Row),
            Rule::WriteAutoPrecharge => ("tWR + tRP", &["nCWL", "nBL", "nWR", "nRP"], "WRA to ACT or refresh", C::Row),
            Rule::Ppd => ("tPPD", &["nPPD"], "PRE to PRE of a pseudo-channel", C::Row),
            Rule::Rfc => ("tRFC", &["nRFC", "nRFMab"], "after REFab or RFMab", C::Refresh),
            Rule::RfcPb => ("tRFCpb", &["nRFCpb", "nRFMpb"], "after REFpb or RFMpb, same bank", C::Refresh),
            Rule::Rrefd => ("tRREFD", &["nRREFD"], "after REFpb or RFMpb, other bank", C::Refresh),
            Rule::Pbr2Pbr => ("tpbR2pbR", &["nPBR2PBR"], "REFpb to REFpb, other bank", C::Refresh),
            Rule::RefreshCount => ("tREFI", &["nREFI"], "refreshes are not postponed by more than 8", C::Refresh),
        }
    }

    /// The standard's name: `tRCD`.
    pub const fn name(self) -> &'static str {
        self.row().0
    }

    /// The configuration's parameters that may enter: `nRCDRD`. A violation names those that did.
    pub const fn parameters(self) -> &'static [&'static str] {
        self.row().1
    }

    /// What it asks for, in a few words.
    pub const fn describe(self) -> &'static str {
        self.row().2
    }

    /// Where waiting for it is counted.
    pub const fn cause(self) -> Cause {
        self.row().3
    }

    /// Whether it counts ticks between two commands; the others are about what the banks hold, places and counts.
    pub const fn is_timing(self) -> bool {
        !matches!(
            self,
            Rule::Address | Rule::BankClosed | Rule::OtherRow | Rule::BankOpen | Rule::RefreshOpen | Rule::RefreshCount
        )
    }
}

/// Clocks between the ends of two commands, for every rule that has them.
#[derive(Clone, Debug)]
pub(super) struct Needs {
    pub rcd_rd: i64,
    pub rcd_wr: i64,
    pub ras: i64,
    pub rc: i64,
    pub rp: i64,
    pub rp_ab: i64,
    pub rrd_s: i64,
    pub rrd_l: i64,
    pub faw: i64,
    pub ccd_s: i64,
    pub ccd_l: i64,
    pub ccd_l_wr: i64,
    pub ccd_r: i64,
    pub burst: i64,
    pub rtw: i64,
    /// Read data must have left the bus when write data comes.
    pub data_bus: i64,
    pub wtr_s: i64,
    pub wtr_l: i64,
    pub rtp: i64,
    /// From the end of WR, through its data, to PRE.
    pub write_to_precharge: i64,
    pub ppd: i64,
    pub rfc: i64,
    pub rfc_pb: i64,
    pub rfm_ab: i64,
    pub rfm_pb: i64,
    pub rrefd: i64,
    pub pbr2pbr: i64,
}

impl Needs {
    /// In ticks: every clock count times the ticks of a clock.
    pub fn new(standard: Standard, t: &Timing, ticks: u32) -> Needs {
        let m = |clocks: i64| clocks * i64::from(ticks);
        let n = |clocks: u32| m(i64::from(clocks));
        let write_data = i64::from(t.cwl) + i64::from(t.bl);
        Needs {
            rcd_rd: n(t.rcd_rd),
            rcd_wr: n(t.rcd_wr),
            ras: n(t.ras),
            rc: n(t.rc),
            rp: n(t.rp),
            rp_ab: n(if standard == Standard::Lpddr5 { t.rp_ab } else { t.rp }),
            rrd_s: n(t.rrd_s),
            rrd_l: n(t.rrd_l),
            faw: n(t.faw),
            ccd_s: n(t.ccd_s),
            ccd_l: n(t.ccd_l),
            ccd_l_wr: n(if standard == Standard::Ddr5 { t.ccd_l_wr } else { t.ccd_l }),
            ccd_r: n(t.ccd_r),
            burst: n(t.bl),
            rtw: n(t.rtw),
            data_bus: m(i64::from(t.cl) + i64::from(t.bl) - i64::from(t.cwl)),
            wtr_s: m(write_data + i64::from(t.wtr_s)),
            wtr_l: m(write_data + i64::from(t.wtr_l)),
            rtp: n(t.rtp),
            write_to_precharge: m(write_data + i64::from(t.wr)),
            ppd: n(t.ppd),
            rfc: n(t.rfc),
            rfc_pb: n(t.rfc_pb),
            rfm_ab: n(t.rfm_ab),
            rfm_pb: n(t.rfm_pb),
            rrefd: n(t.rrefd),
            pbr2pbr: n(t.pbr2pbr),
        }
    }
}

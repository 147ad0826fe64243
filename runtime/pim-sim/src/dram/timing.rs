//! The named timing parameters, in clocks of the device (nCK).

/// Declares [`Timing`] and the table of its names, so that a parameter is written once.
macro_rules! timing {
    ($($(#[doc = $doc:literal])+ $field:ident = $name:literal $(| $alias:literal)* , $need:ident;)*) => {
        /// The timing parameters in nCK (`rate` in Mb/s a pin, `tck_ps` in picoseconds). Optional ones are resolved.
        #[allow(missing_docs)] // each field has the doc of its table row
        #[derive(Clone, Debug, PartialEq, Eq, Default)]
        pub struct Timing { $($(#[doc = $doc])+ pub $field: u32,)* }

        impl Timing {
            /// Name, other spellings, whether a file must give it.
            pub const PARAMETERS: &'static [Parameter] = &[
                $(Parameter { name: $name, aliases: &[$($alias),*], need: Need::$need, doc: concat!($($doc),+) },)*
            ];

            /// The parameter of that name (the main spelling).
            pub fn get(&self, name: &str) -> Option<u32> {
                match name { $($name => Some(self.$field),)* _ => None }
            }

            /// Sets the parameter of that name; false if there is none.
            pub fn set(&mut self, name: &str, value: u32) -> bool {
                match name { $($name => self.$field = value,)* _ => return false }
                true
            }
        }
    };
}

/// Whether a configuration file must give a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// It must be there.
    Required,
    /// It must be there where the standard refreshes single banks.
    OfBankRefresh,
    /// It follows from others where it is absent.
    Optional,
}

/// One row of the table of parameters.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name in files.
    pub name: &'static str,
    /// Other spellings in use.
    pub aliases: &'static [&'static str],
    /// Whether a file must give it.
    pub need: Need,
    /// What it is.
    pub doc: &'static str,
}

timing! {
    /// Data rate in Mb/s a pin.
    rate = "rate", Required;
    /// Clock period in picoseconds.
    tck_ps = "tCK_ps", Required;
    /// Clocks that a burst occupies the data bus.
    bl = "nBL", Required;
    /// RD to first data (RL).
    cl = "nCL", Required;
    /// WR to first data (WL).
    cwl = "nCWL", Required;
    /// ACT to RD, same bank.
    rcd_rd = "nRCDRD", Required;
    /// ACT to WR, same bank.
    rcd_wr = "nRCDWR", Required;
    /// PRE to ACT, same bank.
    rp = "nRP", Required;
    /// ACT to PRE, same bank.
    ras = "nRAS", Required;
    /// ACT to ACT, same bank.
    rc = "nRC", Required;
    /// End of write data to PRE, same bank.
    wr = "nWR", Required;
    /// RD to PRE, same bank.
    rtp = "nRTPL" | "nRTP", Required;
    /// RD to RD or WR to WR, other bank group.
    ccd_s = "nCCDS", Required;
    /// RD to RD or WR to WR, same bank group.
    ccd_l = "nCCDL", Required;
    /// WR to WR, same bank group (DDR5); nCCDL where absent.
    ccd_l_wr = "nCCDLWR" | "nCCDL_WR", Optional;
    /// RD to RD or WR to WR, other SID; nCCDS where absent.
    ccd_r = "nCCDR", Optional;
    /// ACT to ACT, other bank group.
    rrd_s = "nRRDS", Required;
    /// ACT to ACT, same bank group.
    rrd_l = "nRRDL", Required;
    /// Window that holds at most four ACTs of a pseudo-channel.
    faw = "nFAW", Required;
    /// End of write data to RD, other bank group.
    wtr_s = "nWTRS", Required;
    /// End of write data to RD, same bank group.
    wtr_l = "nWTRL", Required;
    /// RD to WR; nCL + nBL + 2 - nCWL where absent.
    rtw = "nRTW", Optional;
    /// PREab to ACT or refresh (LPDDR5); nRP where absent.
    rp_ab = "nRPab", Optional;
    /// PRE to PRE of a pseudo-channel (not HBM2, DDR4); 0 is no such rule.
    ppd = "nPPD", Optional;
    /// REFab to the next command of the pseudo-channel.
    rfc = "nRFC", Required;
    /// REFpb to ACT, same bank.
    rfc_pb = "nRFCpb", OfBankRefresh;
    /// RFMab to the next command (HBM3); nRFC where absent.
    rfm_ab = "nRFMab", Optional;
    /// RFMpb to ACT, same bank (HBM3); nRFCpb where absent.
    rfm_pb = "nRFMpb", Optional;
    /// REFpb to ACT of another bank.
    rrefd = "nRREFD", OfBankRefresh;
    /// REFpb to REFpb of another bank (LPDDR5); nRREFD where absent.
    pbr2pbr = "nPBR2PBR", Optional;
    /// Average interval between REFab.
    refi = "nREFI", Required;
    /// Average interval between REFpb: HBM2 of the channel, nREFI over all its banks where absent; the
    /// others of each pseudo-channel, nREFI over its banks where absent.
    refi_pb = "nREFIpb", Optional;
}

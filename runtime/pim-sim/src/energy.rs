//! Energy of a command trace: a number of picojoules for each command, and power in the background.
//!
//! Two models, chosen by the configuration's `energy` table. **IDD** (the default) is the calculation of Micron
//! TN-40-07 and of DRAMPower: currents of the data sheet's loops over the time that the timing parameters give. **Per
//! bit** uses the published energies of an HBM2 access by its path (O'Connor et al., "Fine-Grained DRAM", MICRO 2017,
//! in the form in which the AttAcc simulator quotes them) for activation and data; refresh and background stay with the
//! currents.
//!
//! The currents are those that public HBM2 models use (DRAMsim3 `HBM2_8Gb_x128.ini`, PIMeval's HBM2 parameters);
//! vendors publish none. They are of one 128-bit channel, which moves 64 bytes in a burst. A pseudo-channel is half of
//! it: it has half of the energy of a burst, of a refresh and of the background. An activation is of one row, whoever
//! owns it.
//!
//! mA x V x ns = pJ.

use crate::dram::{Command, Config, Issued};

/// Supply voltage and currents of a 128-bit channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Currents {
    /// V
    pub vdd: f64,
    /// One bank is activated and precharged without pause, mA.
    pub idd0: f64,
    /// Precharged standby, mA.
    pub idd2n: f64,
    /// Active standby, mA.
    pub idd3n: f64,
    /// Reading without pause, mA.
    pub idd4r: f64,
    /// Writing without pause, mA.
    pub idd4w: f64,
    /// Refreshing all banks, mA.
    pub idd5ab: f64,
}

impl Currents {
    /// The currents of the public HBM2 models. They have IDD4W = 500 mA beside IDD4R = 390 mA.
    pub const HBM2: Currents =
        Currents { vdd: 1.2, idd0: 65.0, idd2n: 40.0, idd3n: 55.0, idd4r: 390.0, idd4w: 500.0, idd5ab: 250.0 };
    /// None, for standards whose configurations give all of them.
    const NONE: Currents =
        Currents { vdd: 0.0, idd0: 0.0, idd2n: 0.0, idd3n: 0.0, idd4r: 0.0, idd4w: 0.0, idd5ab: 0.0 };
    /// Bytes of a burst when HBM2's IDD4R and IDD4W were taken.
    pub const BURST_BYTES: f64 = 64.0;
    /// Bits of the channel whose currents HBM2's are. Those of other standards are of the channel that is described.
    pub const CHANNEL_BITS: f64 = 128.0;
}

/// Energy of a bit by its path from the array to the host, pJ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PerBit {
    /// Activation and precharge, for each bit of the row.
    pub row: f64,
    /// The array and its sense amplifiers.
    pub cell: f64,
    /// From the column decoder to the bank group's multiplexer.
    pub bank_group: f64,
    /// From there to the global I/O.
    pub global: f64,
    /// Through-silicon vias.
    pub tsv: f64,
    /// Interposer and PHY.
    pub interposer: f64,
}

impl PerBit {
    /// Fine-Grained DRAM's HBM2.
    pub const HBM2: PerBit =
        PerBit { row: 0.11, cell: 0.44, bank_group: 1.01, global: 1.23, tsv: 0.5, interposer: 0.3 };

    /// All of the path of a bit that the host reads, activation left out.
    pub fn host(&self) -> f64 {
        self.cell + self.bank_group + self.global + self.tsv + self.interposer
    }
}

/// Picojoules of each command and milliwatts of the background, for one pseudo-channel of a device.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// ACT and the precharge that it will need.
    pub activate: f64,
    /// One burst read.
    pub read: f64,
    /// One burst written.
    pub write: f64,
    /// REFab and RFMab.
    pub refresh_all: f64,
    /// REFpb and RFMpb.
    pub refresh_one: f64,
    /// Power while a row is open.
    pub active_mw: f64,
    /// Power while none is.
    pub idle_mw: f64,
}

/// What is wrong with the `energy` table of a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableError {
    /// The key.
    pub key: String,
    /// What is wrong.
    pub message: String,
}

/// The keys of the `energy` table: what each sets, in the unit that its name ends with.
pub const KEYS: &[(&str, &str)] = &[
    ("vdd_V", "supply voltage of the IDD model"),
    ("idd0_mA", "current of one bank that is activated and precharged without pause"),
    ("idd2n_mA", "current in precharged standby"),
    ("idd3n_mA", "current in active standby"),
    ("idd4r_mA", "current of reading without pause"),
    ("idd4w_mA", "current of writing without pause"),
    ("idd5ab_mA", "current of refreshing all banks"),
    (
        "row_pJ_per_bit",
        "activation and precharge for each bit of a row; with any key of this kind the model is per bit",
    ),
    ("cell_pJ_per_bit", "array and sense amplifiers"),
    ("bank_group_pJ_per_bit", "column decoder to the bank group's multiplexer"),
    ("global_pJ_per_bit", "multiplexer to the global I/O"),
    ("tsv_pJ_per_bit", "through-silicon vias"),
    ("interposer_pJ_per_bit", "interposer and PHY"),
];

impl Model {
    /// The IDD model of a device.
    pub fn idd(c: &Currents, config: &Config) -> Model {
        let t = &config.timing;
        let ns = |clocks: u32| f64::from(clocks) * f64::from(t.tck_ps) / 1000.0;
        let stacked = config.standard.has_stack_levels();
        let half = if stacked { f64::from(config.org.channel_width) / Currents::CHANNEL_BITS } else { 1.0 };
        // Each loop's current less what flows anyway. IDD0 runs over a whole tRC = tRAS + tRP, with a row open in tRAS
        // and closed in tRP; it is not tRP alone, which would make the difference negative.
        let activate = c.vdd * (c.idd0 * (ns(t.ras) + ns(t.rp)) - c.idd3n * ns(t.ras) - c.idd2n * ns(t.rp));
        let share = if stacked { f64::from(config.org.burst_bytes()) / Currents::BURST_BYTES } else { 1.0 };
        let refresh_all = c.vdd * (c.idd5ab - c.idd3n) * ns(t.rfc) * half;
        Model {
            activate,
            read: c.vdd * (c.idd4r - c.idd3n) * ns(t.bl) * share,
            write: c.vdd * (c.idd4w - c.idd3n) * ns(t.bl) * share,
            refresh_all,
            // The same rows of one bank.
            refresh_one: refresh_all / f64::from(config.org.banks_per_pc()),
            active_mw: c.vdd * c.idd3n * half,
            idle_mw: c.vdd * c.idd2n * half,
        }
    }

    /// The per-bit model; refresh and background as in the IDD model.
    pub fn per_bit(bits: &PerBit, c: &Currents, config: &Config) -> Model {
        let burst = f64::from(config.org.burst_bytes()) * 8.0;
        let row = burst * f64::from(config.org.bursts_per_row());
        let access = bits.host() * burst;
        Model { activate: bits.row * row, read: access, write: access, ..Model::idd(c, config) }
    }

    /// The model that the configuration's `energy` table chooses and sets; its keys are [`KEYS`].
    pub fn of(config: &Config) -> Result<Model, TableError> {
        let stacked = config.standard.has_stack_levels();
        let known = if stacked { Currents::HBM2 } else { Currents::NONE };
        let (mut c, mut b, mut per_bit) = (known, PerBit::HBM2, false);
        let missing = KEYS.iter().map(|(key, _)| *key).filter(|key| !key.ends_with("_per_bit"));
        if let Some(key) = missing.into_iter().find(|key| !stacked && !config.energy.contains_key(*key)) {
            let message = format!("{} has no currents of its own, so a file gives all of them", config.standard.name());
            return Err(TableError { key: key.into(), message });
        }
        for (key, &value) in &config.energy {
            let error = |message: String| TableError { key: key.clone(), message };
            let place = match key.as_str() {
                "vdd_V" => &mut c.vdd,
                "idd0_mA" => &mut c.idd0,
                "idd2n_mA" => &mut c.idd2n,
                "idd3n_mA" => &mut c.idd3n,
                "idd4r_mA" => &mut c.idd4r,
                "idd4w_mA" => &mut c.idd4w,
                "idd5ab_mA" => &mut c.idd5ab,
                "row_pJ_per_bit" => &mut b.row,
                "cell_pJ_per_bit" => &mut b.cell,
                "bank_group_pJ_per_bit" => &mut b.bank_group,
                "global_pJ_per_bit" => &mut b.global,
                "tsv_pJ_per_bit" => &mut b.tsv,
                "interposer_pJ_per_bit" => &mut b.interposer,
                _ => return Err(error("there is no such key".into())),
            };
            if !value.is_finite() || !(0.0..=1e6).contains(&value) {
                return Err(error(format!("{value} is not between 0 and 1000000")));
            }
            per_bit |= key.ends_with("_per_bit");
            *place = value;
        }
        let model = if per_bit { Model::per_bit(&b, &c, config) } else { Model::idd(&c, config) };
        let parts = [
            ("idd0_mA", "an activation", model.activate),
            ("idd4r_mA", "a read", model.read),
            ("idd4w_mA", "a write", model.write),
            ("idd5ab_mA", "a refresh", model.refresh_all),
        ];
        match parts.iter().find(|(.., energy)| *energy < 0.0) {
            None => Ok(model),
            Some((key, what, energy)) => Err(TableError {
                key: (*key).into(),
                message: format!(
                    "{what} has {energy:.1} pJ: the loop's current is below the standby currents that flow anyway"
                ),
            }),
        }
    }
}

/// Picojoules by what took them.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Energy {
    /// ACT and PRE.
    pub activate: f64,
    /// Bursts read.
    pub read: f64,
    /// Bursts written.
    pub write: f64,
    /// Refresh.
    pub refresh: f64,
    /// Standby, with and without open rows.
    pub background: f64,
    /// Ticks, summed over pseudo-channels, in which a row was open.
    pub open_ticks: u64,
}

impl Energy {
    /// All of it.
    pub fn total(&self) -> f64 {
        self.activate + self.read + self.write + self.refresh + self.background
    }

    /// Adds another channel's.
    pub fn add(&mut self, other: &Energy) {
        self.activate += other.activate;
        self.read += other.read;
        self.write += other.write;
        self.refresh += other.refresh;
        self.background += other.background;
        self.open_ticks += other.open_ticks;
    }
}

/// The energy of one channel's commands, which are sorted by tick, over `ticks` ticks.
pub fn of_trace(model: &Model, config: &Config, trace: &[Issued], ticks: u64) -> Energy {
    let mut energy = Energy::default();
    for c in trace {
        match c.command {
            Command::Act => energy.activate += model.activate,
            Command::PrePb | Command::PreAb => {}
            Command::Rd | Command::RdA => energy.read += model.read,
            Command::Wr | Command::WrA => energy.write += model.write,
            Command::RefAb | Command::RfmAb => energy.refresh += model.refresh_all,
            Command::RefPb | Command::RfmPb => energy.refresh += model.refresh_one,
        }
    }
    energy.open_ticks = open_ticks(config, trace, ticks);
    let all = ticks.saturating_mul(u64::from(config.org.pseudochannel));
    let ns = config.tick_ps() / 1000.0;
    let idle = all.saturating_sub(energy.open_ticks);
    // mW x ns = pJ.
    energy.background = (energy.open_ticks as f64 * model.active_mw + idle as f64 * model.idle_mw) * ns;
    energy
}

/// Ticks in which a row of a pseudo-channel is open, summed over pseudo-channels.
fn open_ticks(config: &Config, trace: &[Issued], ticks: u64) -> u64 {
    let banks = config.org.banks_per_pc() as usize;
    let mut sum = 0u64;
    for pc in 0..config.org.pseudochannel {
        let mut open = vec![false; banks];
        let (mut count, mut since) = (0usize, 0u64);
        for c in trace.iter().filter(|c| u32::from(c.address.pc) == pc && c.tick < ticks) {
            let Some(index) =
                usize::try_from(config.org.bank_index(c.address.bankgroup, c.address.bank)).ok().filter(|&n| n < banks)
            else {
                continue;
            };
            let before = count;
            match c.command {
                Command::Act if !open[index] => {
                    open[index] = true;
                    count += 1;
                }
                Command::PrePb | Command::RdA | Command::WrA if open[index] => {
                    open[index] = false;
                    count -= 1;
                }
                Command::PreAb => {
                    open.fill(false);
                    count = 0;
                }
                _ => {}
            }
            match (before, count) {
                (0, 1..) => since = c.tick,
                (1.., 0) => sum = sum.saturating_add(c.tick.saturating_sub(since)),
                _ => {}
            }
        }
        if count > 0 {
            sum = sum.saturating_add(ticks.saturating_sub(since));
        }
    }
    sum
}

/// Picojoules of a unit beside a bank.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UnitModel {
    /// A burst between the bank's sense amplifiers and the unit.
    pub access: f64,
    /// An f16 operation of one lane.
    pub operation: f64,
}

impl UnitModel {
    /// An access costs what the array does in the per-bit model (0.44 pJ a bit, or the configuration's
    /// `cell_pJ_per_bit`): it leaves the bank on no bus. An operation is 0.499 pJ, PIMeval's constant for an fp16 unit
    /// of Aquabolt-XL.
    pub fn of(config: &Config) -> UnitModel {
        let bit = config.energy.get("cell_pJ_per_bit").copied().unwrap_or(PerBit::HBM2.cell);
        UnitModel { access: bit * f64::from(config.org.burst_bytes()) * 8.0, operation: 0.499 }
    }
}

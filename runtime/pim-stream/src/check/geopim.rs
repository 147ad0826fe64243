//! Descriptors, parameters and the driver's commands: what GeoPIM's units can hold and reach.

use super::{Checker, FaultKind, Said, Wrong, fault};
use crate::driver::{CommandKind, DriverCommand};
use crate::register;
use crate::stream::*;
use crate::unit::UnitConfig;
use ptoc_tensor::DType;

/// Bytes of an f16.
const F16: u64 = 2;

impl Checker<'_> {
    pub(super) fn descriptor(&mut self, d: &Descriptor) -> Said {
        self.needs("geopim", "a descriptor")?;
        let UnitConfig::GeoPim(unit) = self.stream.unit else { return Ok(()) };
        let counts = [
            ("height", d.height),
            ("width", d.width),
            ("channels", d.channels),
            ("tile_channels", d.tile_channels),
            ("batch", d.batch),
            ("units", d.units),
            ("queries", d.queries),
        ];
        for (name, value) in counts {
            if !(1..=65535).contains(&value) {
                return fault(FaultKind::Command, format!("{name} is {value}; it may be 1 to 65535"));
            }
        }
        if !d.channels.is_multiple_of(d.tile_channels) {
            return fault(
                FaultKind::Command,
                format!("{} channels are no whole tiles of {}", d.channels, d.tile_channels),
            );
        }
        if !d.units.is_multiple_of(d.batch) {
            return fault(
                FaultKind::Command,
                format!("{} units cannot be shared by {} batch items equally", d.units, d.batch),
            );
        }
        let most = self.stream.unit.count(self.g);
        if u64::from(d.first_unit) + u64::from(d.units) > u64::from(most) {
            let last = u64::from(d.first_unit) + u64::from(d.units) - 1;
            return fault(FaultKind::Unit, format!("unit {last} does not exist; there are {most}"));
        }
        let tile = 4 * u64::from(d.tile_channels) * F16;
        if tile > u64::from(unit.buffer_bytes) {
            let message = format!(
                "a tile of 4 neighbours x {} channels x 2 bytes takes {tile} bytes; half of the tile buffer has {}",
                d.tile_channels, unit.buffer_bytes
            );
            return fault(FaultKind::Unit, message);
        }
        if !d.tile_channels.is_multiple_of(unit.lanes) {
            let message = format!("{} lanes do not divide a tile of {} channels", unit.lanes, d.tile_channels);
            return fault(FaultKind::Unit, message);
        }
        let (needed, what) = match d.order {
            // One tile is computed while the one before is written.
            LoopOrder::Outer => (2 * d.tile_channels, "two tiles' channels live at a time"),
            _ => (d.channels, "all channels live until the query ends"),
        };
        if needed > unit.acc_regs {
            let message = format!(
                "order={} needs {needed} accumulators, because {what}; the unit has {}",
                d.order.name(),
                unit.acc_regs
            );
            return fault(FaultKind::Unit, message);
        }
        if d.order == LoopOrder::Neighbour && !d.fold {
            let message = "order=neighbour needs fold=1: without it a tile's value takes all four neighbours at once";
            return fault(FaultKind::Unit, message);
        }
        self.map(d)?;
        self.descriptor = Some(*d);
        Ok(())
    }

    fn map(&self, d: &Descriptor) -> Said {
        let row = self.g.row_bytes();
        let pixel = u64::from(d.channels) * F16;
        let align = match d.map {
            MapLayout::Pixels => u64::from(self.g.burst),
            MapLayout::Patches => {
                if !d.height.is_multiple_of(2) || !d.width.is_multiple_of(2) {
                    let message = format!("a map of {} x {} pixels is no whole 2 x 2 patches", d.height, d.width);
                    return fault(FaultKind::Command, message);
                }
                if 4 * pixel > row {
                    return fault(
                        FaultKind::Place,
                        format!("a patch of 4 pixels x {pixel} bytes does not fit in a row of {row}"),
                    );
                }
                row
            }
        };
        if !d.feature.is_multiple_of(align) {
            return fault(
                FaultKind::Place,
                format!("the map begins at {:#x}, which is no multiple of {align}", d.feature),
            );
        }
        let items = if d.items == Items::All { d.batch } else { 1 };
        self.in_bank("the map", d.feature, d.item_bytes(row).saturating_mul(u64::from(items)))
    }

    /// Bytes of a unit's own bank.
    fn in_bank(&self, what: &str, address: u64, bytes: u64) -> Said {
        let bank = self.g.bank_bytes();
        match address.checked_add(bytes) {
            Some(end) if end <= bank => Ok(()),
            _ => fault(FaultKind::Place, format!("{what} takes {bytes} bytes from {address:#x}; a bank has {bank:#x}")),
        }
    }

    pub(super) fn params(&mut self, p: &Params) -> Said {
        self.needs("geopim", "params")?;
        let Some(d) = self.descriptor else {
            return fault(FaultKind::Order, "params come after a descriptor, which says whose queries they are");
        };
        self.given(p.geo)?;
        let t = self.tensor(p.geo)?;
        if t.dtype != DType::F16 || t.shape.last() != Some(&4) {
            return fault(FaultKind::Array, format!("`{}` has to be f16 with four numbers a query", t.name));
        }
        let queries = t.elements().unwrap_or(0) / 4;
        let each = queries / u64::from(d.batch);
        let units = each.div_ceil(u64::from(d.queries)) * u64::from(d.batch);
        if each * u64::from(d.batch) != queries || units != u64::from(d.units) {
            let message = format!(
                "{queries} queries in {} batch items, {} a unit, take {units} units; the descriptor has {}",
                d.batch, d.queries, d.units
            );
            return fault(FaultKind::Command, message);
        }
        if p.samples == 0 {
            return fault(FaultKind::Command, "a query has at least one sample");
        }
        let (n, samples) = (u64::from(d.queries), u64::from(p.samples));
        let align = register::SIZE as u64;
        if !p.address.is_multiple_of(align) {
            return fault(
                FaultKind::Place,
                format!("entries begin at {:#x}, which is no multiple of {align}", p.address),
            );
        }
        self.in_bank("the parameters", p.address, n * align)?;
        self.strided("the weights", p.weights, n, samples * F16)?;
        if let Some(offsets) = p.offsets {
            self.strided("the offsets", offsets, n, samples * 2 * F16)?;
        }
        self.params = Some(*p);
        self.told = None;
        Ok(())
    }

    fn strided(&self, what: &str, (address, stride): (u64, u32), n: u64, bytes: u64) -> Said {
        if !address.is_multiple_of(F16) || !u64::from(stride).is_multiple_of(F16) {
            return fault(FaultKind::Place, format!("{what} begin at odd bytes"));
        }
        self.in_bank(what, address, (n - 1) * u64::from(stride) + bytes)
    }

    pub(super) fn driver(&mut self, command: &DriverCommand) -> Said {
        self.needs("geopim", "a driver's command")?;
        self.host_steps()?;
        command.check().or_else(|e| fault(FaultKind::Command, e.to_string()))?;
        let addresses = [
            ("the parameters", command.params),
            ("the weights", command.weights),
            ("the offsets", command.offsets),
            ("the output", command.output),
        ];
        for (what, address) in addresses {
            self.in_bank(what, address, 1)?;
        }
        self.driver.push(command).or_else(|message| fault(FaultKind::Order, message))?;
        let known = self.said_before(command)?;
        agrees(command, &known)?;
        match command.kind {
            CommandKind::Load => self.told = Some(known),
            CommandKind::Execute => {
                self.computed.insert(command.output, known);
                self.pending = true;
            }
            CommandKind::Read => self.pending = false,
        }
        Ok(())
    }

    /// The command as it follows from the steps before it. What it does not decide by itself has to agree.
    fn said_before(&self, command: &DriverCommand) -> Said<DriverCommand> {
        let (Some(d), Some(p)) = (self.descriptor, self.params) else {
            let message = "a LOAD comes after params: the units would load entries that nobody wrote";
            return fault(FaultKind::Order, message);
        };
        match command.kind {
            CommandKind::Load => Ok(DriverCommand {
                // It is below 65536.
                queries: d.queries as u16,
                samples: u32::from(p.samples),
                params: p.address,
                weights: p.weights.0,
                offsets: p.offsets.map_or(0, |o| o.0),
                has_offsets: p.offsets.is_some(),
                ..DriverCommand::new(CommandKind::Load)
            }),
            CommandKind::Execute => {
                let Some(told) = self.told else {
                    let message = "these params came after the last LOAD: the units have other entries";
                    return fault(FaultKind::Order, message);
                };
                if u32::from(command.queries) > d.queries {
                    let message =
                        format!("an EXECUTE of {} queries a unit; the descriptor has {}", command.queries, d.queries);
                    return fault(FaultKind::Command, message);
                }
                Ok(DriverCommand {
                    queries: command.queries,
                    output: command.output,
                    kind: CommandKind::Execute,
                    ..told
                })
            }
            // It is one of them, as the sequence was right.
            CommandKind::Read => Ok(self.computed.get(&command.output).copied().unwrap_or(*command)),
        }
    }
}

/// Fields that a command repeats are what was said before. 0 says nothing.
fn agrees(command: &DriverCommand, known: &DriverCommand) -> Said {
    let name = match command.kind {
        CommandKind::Load => "LOAD",
        CommandKind::Execute => "EXECUTE",
        CommandKind::Read => "READ",
    };
    if command.kind == CommandKind::Load && command.output != 0 {
        let message = format!("LOAD has `output={:#x}`, and brings nothing back", command.output);
        let help = "leave it out: EXECUTE names the output".into();
        return Err(Wrong { kind: FaultKind::Command, message, help });
    }
    let field = |(name, said, known): (&'static str, u64, u64), hex: bool| {
        let text = |n: u64| if hex { format!("{name}={n:#x}") } else { format!("{name}={n}") };
        (name, said, known, text(said), text(known))
    };
    let numbers = [
        ("queries", u64::from(command.queries), u64::from(known.queries)),
        ("samples", u64::from(command.samples), u64::from(known.samples)),
    ];
    let addresses = [
        ("params", command.params, known.params),
        ("weights", command.weights, known.weights),
        ("offsets", command.offsets, known.offsets),
    ];
    let fields = numbers.map(|f| field(f, false)).into_iter().chain(addresses.map(|f| field(f, true)));
    for (what, said, wanted, said_text, wanted_text) in fields {
        // Whether samples have offsets is a flag of LOAD and EXECUTE, which is told where it is left out, too.
        let left_out =
            what == "offsets" && command.kind != CommandKind::Read && !command.has_offsets && known.has_offsets;
        if said == wanted || (said == 0 && !left_out) {
            continue;
        }
        let source = match (command.kind, what) {
            (CommandKind::Read, "queries") => "its EXECUTE",
            (_, "queries") => "the descriptor",
            _ => "`params`",
        };
        let has = |n: u64, text: &str| if n == 0 { format!("no {what}") } else { format!("`{text}`") };
        let message = format!("{name} has {}, and {source} has {}", has(said, &said_text), has(wanted, &wanted_text));
        let help = match (wanted, left_out) {
            (0, _) => format!("leave `{what}` out"),
            (_, true) => format!("add `{wanted_text}`"),
            _ => format!("write `{wanted_text}`"),
        };
        return Err(Wrong { kind: FaultKind::Command, message, help });
    }
    Ok(())
}

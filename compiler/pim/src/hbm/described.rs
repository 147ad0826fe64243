//! Units as a target describes them: which of them this generator makes code for, and whether code uses what they have.

use super::Res;
use crate::LaunchFragment;
use ptoc_diagnostics::{Diagnostic, codes};
use ptoc_ir::tile::Kernel;
use ptoc_isa::{Device, HbmUnit, ProcessingUnit, Rounding, Target, UnitOperation};
use ptoc_pim_stream::crf::{Alu, ENTRIES, Instruction};
use ptoc_pim_stream::mode::{CRF_COLUMNS, GRF_B_COLUMNS, REGISTER_ROW};
use ptoc_pim_stream::stream::{Action, BURST, ColumnOp, Data};

/// Vectors that a register file of an instruction word's three bits has at most.
const REGISTERS: u32 = 8;
/// Scalars of each kind in the burst that holds them.
const SCALARS: u32 = 8;
/// Banks of a group: modes change by writes to so many of the first one.
const BANKS: u32 = 4;
/// Columns that a row has at least: the last one holds registers.
const COLUMNS: u32 = *GRF_B_COLUMNS.end() + 1;

/// Refuses units that are not of HBM-PIM's shape: their lanes are a burst, their instructions have its fields.
pub fn fits(kernel: &Kernel, unit: &ProcessingUnit, hbm: &HbmUnit, device: &Device) -> Res {
    let lanes = BURST as u32 / 2;
    let banks = device.banks.is_multiple_of(2) && device.banks >= BANKS;
    let wrong = [
        (unit.lanes != lanes, format!("`unit.lanes` is {}: a burst has {lanes} f16", unit.lanes)),
        (unit.banks != 2, format!("`unit.banks` is {}: a unit has an even and an odd bank", unit.banks)),
        (!banks, format!("a bank group has {} banks: code is for an even number of {BANKS} at least", device.banks)),
        (
            hbm.registers > REGISTERS,
            format!("`unit.registers` is {}: an instruction names {REGISTERS} of a file", hbm.registers),
        ),
        (
            hbm.instructions != ENTRIES as u32,
            format!("`unit.instructions` is {}: four bursts of words are {ENTRIES}", hbm.instructions),
        ),
        (hbm.scalars != SCALARS, format!("`unit.scalars` is {}: a burst has {SCALARS} of each kind", hbm.scalars)),
        (unit.rounding != Rounding::Each, "`unit.rounding` is `fused`: products are rounded before sums".to_owned()),
        (
            device.burst_bytes != BURST as u32,
            format!("a burst of the DRAM has {} bytes, and streams have {BURST}", device.burst_bytes),
        ),
        (
            device.bursts < COLUMNS,
            format!("a row of the DRAM has {} bursts, and registers lie in the first {COLUMNS}", device.bursts),
        ),
    ];
    match wrong.into_iter().find(|(wrong, _)| *wrong) {
        None => Ok(()),
        Some((_, why)) => Err(not_coded(kernel, why)),
    }
}

/// E1326: the target is described, and nothing here makes code for such units.
pub fn not_coded(kernel: &Kernel, why: String) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(codes::UNIT_NOT_CODED, kernel.span, format!("no code is made for units like this: {why}"))
            .with_label("for the units of this target")
            .with_help(
                "the interpreter says what the kernel means: `--backend interp`; or let the host run it: `#[on(host)]`",
            ),
    )
}

/// Units of a kind that has no generator.
pub fn only_described(kernel: &Kernel, target: &Target, unit: &ProcessingUnit) -> Box<Diagnostic> {
    let operations: Vec<&str> = unit.operations.iter().map(UnitOperation::name).collect();
    let why = format!("`{}` describes them ({}), and that is all", target.name, operations.join(", "));
    not_coded(kernel, why)
}

/// Refuses code whose programs use an operation that the target does not list.
pub fn uses_what_is_there(kernel: &Kernel, unit: &ProcessingUnit, made: &LaunchFragment) -> Res {
    let missing = words(made).flat_map(needs).find(|o| !unit.operations.has(*o));
    let Some(operation) = missing else { return Ok(()) };
    let there: Vec<&str> = unit.operations.iter().map(UnitOperation::name).collect();
    let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
    let message = format!("this takes {} of the units, which `unit.operations` does not have", operation.name());
    Err(Box::new(
        Diagnostic::error(codes::UNIT_OPERATION, kernel.span, message)
            .with_label("code for this kernel")
            .with_note(format!("the operations that it has: {there}"))
            .with_help("let the host run the kernel: `#[on(host)]`; or describe units that have it"),
    ))
}

/// The instructions of all programs, as they are written to the units.
fn words(made: &LaunchFragment) -> impl Iterator<Item = Instruction> + '_ {
    let ops = made.steps.iter().flat_map(|step| match &step.action {
        Action::Exec(exec) => &exec.ops[..],
        _ => &[],
    });
    let programs = ops.filter_map(|op| match op {
        ColumnOp::Wr { at, data: Data::Bytes(bytes), .. }
            if at.row == REGISTER_ROW && CRF_COLUMNS.contains(&at.col) =>
        {
            Some(bytes)
        }
        _ => None,
    });
    let of_bytes = |bytes: &[u8; BURST]| {
        let words = bytes.as_chunks::<4>().0.iter().map(|word| Instruction::decode(u32::from_le_bytes(*word)).ok());
        words.collect::<Vec<_>>()
    };
    programs.flat_map(of_bytes).flatten()
}

fn needs(word: Instruction) -> Vec<UnitOperation> {
    let Instruction::Alu { op, relu, .. } = word else { return Vec::new() };
    let own = match op {
        Alu::Add => UnitOperation::Add,
        Alu::Mul => UnitOperation::Mul,
        Alu::Mac => UnitOperation::Mac,
        Alu::Mad => UnitOperation::Mad,
        Alu::Mov => UnitOperation::Mov,
        Alu::Fill => UnitOperation::Fill,
    };
    let relu = relu.then_some(UnitOperation::Relu);
    std::iter::once(own).chain(relu).collect()
}

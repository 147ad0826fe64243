//! Bytes to lines: x86-64 instructions with labels and symbols, and the constants behind them.

use super::ListingLine;
use crate::codegen::Made;
use cranelift_module::{FuncId, ModuleDeclarations, ModuleReloc, ModuleRelocTarget};
use iced_x86::{
    Code, Decoder, DecoderOptions, Formatter, Instruction, IntelFormatter, OpKind, SymbolResolver, SymbolResult,
};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Begins a line of constants.
pub(super) const DATA: &str = "db ";

/// Bytes of a line of constants.
const ROW: usize = 16;

/// What operands are called instead of by their numbers.
struct Symbols {
    /// Of what the linker fills in, by the address of the instruction.
    relocated: FxHashMap<u64, String>,
    /// Of places in the function.
    labels: BTreeMap<u64, String>,
}

impl SymbolResolver for Symbols {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _operand: u32,
        instruction_operand: Option<u32>,
        address: u64,
        _address_size: u32,
    ) -> Option<SymbolResult<'_>> {
        let kind = instruction.op_kind(instruction_operand?);
        let place = is_branch(kind) || (kind == OpKind::Memory && instruction.is_ip_rel_memory_operand());
        if let Some(name) = self.relocated.get(&instruction.ip()) {
            return (place || kind == OpKind::Immediate64).then(|| SymbolResult::with_str(address, name));
        }
        let label = self.labels.get(&address).filter(|_| place)?;
        Some(SymbolResult::with_str(address, label))
    }
}

fn is_branch(kind: OpKind) -> bool {
    matches!(kind, OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64)
}

/// The lines of a function, without sources.
pub(super) fn lines(made: &Made, names: &ModuleDeclarations) -> Vec<ListingLine> {
    let bytes = &made.bytes;
    let relocated = |instruction: &Instruction| {
        let range = instruction.ip()..instruction.next_ip();
        made.relocs.iter().find(|reloc| range.contains(&u64::from(reloc.offset)))
    };
    // Constants stand behind the code, and each is read by an instruction: so code ends where the first of them is.
    let mut end = made.code.unwrap_or(bytes.len()) as u64;
    let mut instructions = Vec::new();
    let (mut jumps, mut constants) = (BTreeSet::new(), BTreeSet::new());
    let mut decoder = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE);
    while decoder.can_decode() && decoder.ip() < end {
        let instruction = decoder.decode();
        let target = relocated(&instruction).is_none();
        if target && instruction.is_ip_rel_memory_operand() {
            let constant = instruction.ip_rel_memory_address();
            if (instruction.next_ip()..bytes.len() as u64).contains(&constant) {
                constants.insert(constant);
                end = end.min(constant);
            }
        } else if target && is_branch(instruction.op0_kind()) {
            jumps.insert(instruction.near_branch_target());
        }
        instructions.push(instruction);
    }
    let code = without_padding(&mut instructions, bytes, end);
    let named = |prefix: char, places: &BTreeSet<u64>| {
        (1..).zip(places).map(|(n, at)| (*at, format!("{prefix}{n}"))).collect::<Vec<_>>()
    };
    let labels: BTreeMap<u64, String> = named('L', &jumps).into_iter().chain(named('C', &constants)).collect();
    let names = instructions.iter().filter_map(|i| Some((i.ip(), symbol(relocated(i)?, names)))).collect();
    let resolver = Symbols { relocated: names, labels: labels.clone() };
    let mut formatter = IntelFormatter::with_options(Some(Box::new(resolver)), None);
    let options = formatter.options_mut();
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_uppercase_hex(false);
    options.set_space_after_operand_separator(true);
    options.set_show_branch_size(false);
    options.set_first_operand_char_index(12);
    let mut lines = Vec::with_capacity(instructions.len());
    for instruction in &instructions {
        let mut text = String::new();
        formatter.format(instruction, &mut text);
        let (from, to) = (instruction.ip() as usize, instruction.next_ip() as usize);
        lines.push(line(from, bytes[from..to].to_vec(), text, &labels));
    }
    constants.insert(code);
    let ends = constants.iter().skip(1).copied().chain([bytes.len() as u64]);
    for (from, to) in constants.iter().zip(ends) {
        let (from, to) = (*from as usize, to as usize);
        for (n, row) in bytes[from..to].chunks(ROW).enumerate() {
            lines.push(line(from + n * ROW, row.to_vec(), data(row), &labels));
        }
    }
    lines
}

fn line(offset: usize, bytes: Vec<u8>, text: String, labels: &BTreeMap<u64, String>) -> ListingLine {
    ListingLine { offset: offset as u32, label: labels.get(&(offset as u64)).cloned(), bytes, text, spans: Vec::new() }
}

/// Constants as a line.
fn data(row: &[u8]) -> String {
    let mut text = DATA.to_owned();
    for (n, byte) in row.iter().enumerate() {
        let _ = write!(text, "{}0x{byte:02x}", if n == 0 { "" } else { ", " });
    }
    text
}

/// Takes away what was decoded of the zeros that align the constants: behind the last instruction nothing is reached.
/// Gives where the constants begin, padding included.
fn without_padding(instructions: &mut Vec<Instruction>, bytes: &[u8], end: u64) -> u64 {
    let zeros = |from: u64| bytes[from as usize..end as usize].iter().all(|byte| *byte == 0);
    let ends = |i: &Instruction| matches!(i.code(), Code::Ud2 | Code::Retnq | Code::Jmp_rel8_64 | Code::Jmp_rel32_64);
    let last = instructions.iter().rposition(|i| ends(i) && i.next_ip() <= end && zeros(i.next_ip()));
    if let Some(last) = last {
        instructions.truncate(last + 1);
    }
    instructions.last().map_or(end, Instruction::next_ip)
}

/// The name of what a relocation refers to.
fn symbol(reloc: &ModuleReloc, names: &ModuleDeclarations) -> String {
    match reloc.name {
        ModuleRelocTarget::User { namespace: 0, index } => {
            let id = FuncId::from_u32(index);
            names.get_function_decl(id).linkage_name(id).into_owned()
        }
        ModuleRelocTarget::LibCall(call) => call.to_string(),
        ref other => other.to_string(),
    }
}

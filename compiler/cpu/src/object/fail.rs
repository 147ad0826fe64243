//! What a call says when it fails: the table of messages, and the function that fills the status.

use super::Interface;
use super::code::{Code, Maker};
use super::layout::CStatus;
use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::types::{I32, I64};
use cranelift_codegen::ir::{InstBuilder, MemFlagsData, Value};
use cranelift_module::{FuncId, Linkage};

/// Rows of the table: those of the kernel's checks, then those of the function's own.
pub(super) struct Messages {
    rows: Vec<(i32, String)>,
}

/// A row of the table.
#[derive(Clone, Copy)]
pub(super) struct Row(i64);

impl Messages {
    pub(super) fn new(interface: &Interface) -> Messages {
        Messages { rows: interface.checks.iter().map(|c| (c.number, c.message.clone())).collect() }
    }

    /// A row for a message.
    pub(super) fn row(&mut self, number: i32, message: impl Into<String>) -> Row {
        let new = (number, message.into());
        let at = self.rows.iter().position(|row| *row == new).unwrap_or_else(|| {
            self.rows.push(new);
            self.rows.len() - 1
        });
        Row(at as i64)
    }

    /// Defines the table, and the function that `id` is declared as: it takes the status, the row, how many numbers
    /// there are, where they are, and the block; it gives the number of the code.
    pub(super) fn define(&self, maker: &mut Maker, symbol: &str, id: FuncId) -> Result<(), String> {
        let mut text = Vec::new();
        let mut table = Vec::new();
        let mut offsets = Vec::new();
        for (number, message) in &self.rows {
            offsets.push(text.len() as i64);
            // A message ends with its first zero.
            text.extend(message.bytes().filter(|&b| b != 0));
            text.push(0);
            table.extend(i64::from(*number).to_le_bytes());
            table.extend([0; 8]);
        }
        if text.is_empty() {
            (text, table) = (vec![0], vec![0; 16]);
        }
        let text = maker.data(&format!("{symbol}.messages"), false, text, &[])?;
        let addresses: Vec<_> = offsets.iter().enumerate().map(|(n, at)| (16 * n as u32 + 8, text, *at)).collect();
        let table = maker.data(&format!("{symbol}.errors"), false, table, &addresses)?;
        maker.function(id, &FAIL, Some(I32), |code, args| {
            let [status, row, count, numbers, block] = args[..] else { return };
            let table = code.data(table);
            let offset = code.b.ins().imul_imm_s(row, 16);
            let row = code.b.ins().iadd(table, offset);
            let number = code.load(row, 0);
            let number = code.b.ins().ireduce(I32, number);
            let wanted = code.is_int(IntCC::NotEqual, status, 0);
            code.when(wanted, |code| {
                code.store(number, status, CStatus::CODE);
                let few = code.b.ins().ireduce(I32, count);
                code.store(few, status, CStatus::COUNT);
                code.store(block, status, CStatus::BLOCK);
                let message = code.load(row, 8);
                code.store(message, status, CStatus::MESSAGE);
                for n in 0..4 {
                    let meant = code.is_int(IntCC::UnsignedGreaterThan, count, n);
                    let zero = code.int(0);
                    code.store(zero, status, CStatus::NUMBERS + 8 * n as i32);
                    code.when(meant, |code| {
                        let value = code.load(numbers, 8 * n as i32);
                        code.store(value, status, CStatus::NUMBERS + 8 * n as i32);
                    });
                }
            });
            code.b.ins().return_(&[number]);
        })
    }
}

const FAIL: [cranelift_codegen::ir::Type; 5] = [I64; 5];

/// Declares the function that fills the status.
pub(super) fn declare(maker: &mut Maker, symbol: &str) -> Result<FuncId, String> {
    maker.declare(&format!("{symbol}.fail"), Linkage::Local, &FAIL, Some(I32))
}

impl Code<'_> {
    /// Fills the status with a row of the function's own; gives the number of its code.
    pub(super) fn refuse(&mut self, fail: FuncId, status: Value, row: Row, numbers: &[Value]) -> Value {
        let room = self.room(8 * numbers.len() as u32);
        for (n, value) in numbers.iter().enumerate() {
            self.b.ins().store(MemFlagsData::trusted(), *value, room, 8 * n as i32);
        }
        let (row, count, block) = (self.int(row.0), self.int(numbers.len() as i64), self.int(-1));
        self.call(fail, &[status, row, count, room, block]).unwrap_or(row)
    }

    /// Fills the status with the check that a [`ptoc_abi::Status`] has; gives the number of its code.
    pub(super) fn report(&mut self, fail: FuncId, status: Value, check: Value, block: Value) -> Value {
        use ptoc_abi::Status;
        use std::mem::offset_of;
        let flags = MemFlagsData::trusted();
        let [row, count] = [offset_of!(Status, check), offset_of!(Status, count)].map(|offset| {
            let value = self.b.ins().load(I32, flags, check, offset as i32);
            self.b.ins().uextend(I64, value)
        });
        let numbers = self.plus(check, offset_of!(Status, args) as i64);
        self.call(fail, &[status, row, count, numbers, block]).unwrap_or(row)
    }
}

//! Rows that end with their reduction: partials in registers from the first lane to the result.

use super::lower::Lower;
use super::ops::VOp;
use super::program::{Ending, Mask, MemOperand, VReg};
use super::unroll_and_jam::Turn;
use crate::nest;
use ptoc_ir::loops::PARTIALS;

impl Lower {
    /// The code around a row. `turn`: several steps, perhaps with the partials in registers.
    pub(crate) fn ending(&mut self, ending: &nest::Ending, turn: Option<&Turn>) -> Ending {
        self.tail = false;
        let bytes = self.isa().bytes();
        let places = (0..PARTIALS as i32 * 4 / bytes).map(|n| MemOperand::Pointer {
            pointer: ending.partials,
            scale: 0,
            disp: n * bytes,
        });
        let identity = self.int(ending.identity);
        places.clone().for_each(|place| self.store(VOp::Store, place, &[identity], Mask::All));
        let fill = std::mem::take(&mut self.out);
        let sums: Vec<VReg> = turn.iter().flat_map(|turn| &turn.sums).map(|sum| sum.reg).collect();
        if !sums.is_empty() {
            self.end(ending, sums);
        }
        let of_sums = std::mem::take(&mut self.out);
        let loaded = places.map(|place| self.load(VOp::Load, place, Mask::All)).collect();
        self.end(ending, loaded);
        Ending { identity: ending.identity, fill, of_sums, of_memory: std::mem::take(&mut self.out) }
    }

    /// Adds to each partial the one half of them further on, down to one, which is stored.
    fn end(&mut self, ending: &nest::Ending, mut all: Vec<VReg>) {
        while all.len() > 1 {
            let upper = all.split_off(all.len() / 2);
            all = all.into_iter().zip(upper).map(|(a, b)| self.ins(VOp::AddF, &[a, b])).collect();
        }
        let upper = self.high(all[0]);
        let mut value = self.ins(VOp::AddF, &[all[0], upper]);
        if self.is_512() {
            let upper = self.imm(VOp::Quarter, &[value], 1);
            value = self.ins(VOp::AddF, &[value, upper]);
        }
        for upper in [0x0e, 0x01] {
            let upper = self.imm(VOp::PermF, &[value], upper);
            value = self.ins(VOp::AddF, &[value, upper]);
        }
        let place = MemOperand::Pointer { pointer: ending.result, scale: 0, disp: 0 };
        self.store(VOp::StoreOne, place, &[value], Mask::All);
    }
}

//! An element as the body of a nest has it.

use crate::code::FunctionBuilder;
use crate::nest::Stored;
use ptoc_ir::loops::{Addr, BinOp, LTy, MemTy, Reg};

/// Where an element is, as code inside the loops sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Elem {
    pub(super) addr: Addr,
    pub(super) stored: Stored,
    /// Half bytes: by how much to shift the byte, an i32.
    pub(super) shift: Option<Reg>,
    /// A table has no such element, so that it is zero.
    pub(super) missing: bool,
}

impl Elem {
    pub(crate) fn load(&self, code: &mut FunctionBuilder) -> Reg {
        if self.missing {
            let ty = if let Stored::Whole(ty) = self.stored { ty.reg() } else { LTy::I32 };
            return code.bits(ty, 0);
        }
        match (self.stored, self.shift) {
            (Stored::Whole(ty), _) => code.load(ty, self.addr),
            (Stored::Half { signed }, shift) => {
                let byte = code.load(MemTy::U8, self.addr);
                let shift = shift.unwrap_or_else(|| code.i32(0));
                let (shifted, low) = (code.bin(BinOp::ShrU, byte, shift), code.i32(15));
                let half = code.bin(BinOp::And, shifted, low);
                if !signed {
                    return half;
                }
                let sign = code.i32(8);
                let flipped = code.bin(BinOp::Xor, half, sign);
                code.bin(BinOp::Sub, flipped, sign)
            }
        }
    }

    pub(crate) fn store(&self, code: &mut FunctionBuilder, value: Reg) {
        // Half bytes are read only.
        if let Stored::Whole(ty) = self.stored {
            code.store(ty, self.addr, value);
        }
    }

    /// The element that lies `bytes` further on.
    pub(crate) fn further(self, code: &mut FunctionBuilder, bytes: i64) -> Elem {
        if bytes == 0 {
            return self;
        }
        let more = match self.addr.gather {
            Some(gather) => code.plus(gather, bytes),
            // A constant, so that no lane has to compute where it is.
            None => code.int(bytes),
        };
        Elem { addr: Addr { gather: Some(more), ..self.addr }, ..self }
    }
}

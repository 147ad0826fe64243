//! Conditions that are checked in a block: all threads compute them alike. A block that fails ends its CTA, and nothing
//! may be on its way to shared memory then: the producer ends at the same statement as the consumers, who have waited
//! for every window in front of it, and for their products.

use super::Code;
use crate::abi::SLOT;
use ptoc_ir::tile::{CheckId, Op, Region, Value};
use ptoc_opt::fragments::filled_by;
use ptoc_ptx::{Address, Arith, AtomOp, Class, Cmp, Op as Ptx, Round, Sm90, Space, Src, Type, VReg};

/// Arguments that a failure tells at most.
const ARGUMENTS: usize = SLOT - 1;

impl Code<'_> {
    /// Whether something in a region may end a block.
    pub(super) fn may_fail(&self, region: &Region) -> bool {
        let paged =
            |op: &Op| filled_by(op).is_some_and(|t| self.plan.loads.iter().any(|l| l.filled == t && l.is_paged()));
        let stores = |op: &Op| filled_by(op).is_none();
        let own = |op: &Op| match op {
            Op::Check { .. } => true,
            Op::Copy(_) => paged(op) || stores(op),
            _ => false,
        };
        region.iter().any(|s| own(&s.op) || s.op.regions().any(|r| self.may_fail(r)))
    }

    /// Unless a condition holds the block fails.
    pub(super) fn check(&mut self, cond: Value, check: CheckId, args: &[Value]) -> Option<()> {
        let Src::Reg(cond) = self.value(cond)? else { return None };
        let row = self.checks.iter().position(|(id, _)| *id == check.as_u32())?;
        let on = self.b.label();
        self.b.bra_if(cond, true, on);
        if !self.produces {
            let args: Vec<VReg> = args.iter().take(ARGUMENTS).map(|v| self.word(*v)).collect::<Option<_>>()?;
            self.report(row, &args);
        }
        self.b.bra(self.done);
        self.b.place(on);
        Some(())
    }

    /// The first consumer leaves the arguments of a failure, and the status learns of it. What it does not wait for
    /// here, nobody has issued.
    pub(super) fn report(&mut self, row: usize, args: &[VReg]) {
        if !self.pending.is_empty() {
            self.b.sm90(Sm90::WgmmaWait(0), &[], &[]);
        }
        let first = self.b.setp(Cmp::Eq, Type::U32, self.thread, Src::Imm(0));
        self.b.bra_if(first, false, self.done);
        let (block, ctas) = (self.block, self.ctas);
        let cta = self.b.arith(Arith::Rem, Type::U64, &[block.into(), ctas.into()]);
        let words = [cta.into(), Src::Imm(8 * SLOT as u64), self.status.into()];
        let slot = self.b.arith(Arith::MadLo, Type::U64, &words);
        let count = self.b.mov(Type::B64, Src::Imm(args.len() as u64));
        for (n, word) in (1..).zip([count].into_iter().chain(args.iter().copied())) {
            self.b.st(Space::Global, Type::B64, Address { disp: 8 * n, ..Address::at(slot) }, word);
        }
        let number = self.b.arith(Arith::Shl, Type::B64, &[block.into(), Src::Imm(32)]);
        let number = self.b.arith(Arith::Or, Type::B64, &[number.into(), Src::Imm(row as u64)]);
        let old = self.b.reg(Class::B64);
        let at = Src::Addr(Address::at(self.status));
        self.b.push(Ptx::Atom(Space::Global, AtomOp::Min, Type::U64), &[old], &[at, number.into()]);
    }

    /// An argument of a check as 64 bits.
    fn word(&mut self, v: Value) -> Option<VReg> {
        let src = self.value(v)?;
        Some(match src {
            Src::Reg(reg) => match self.b.class(reg) {
                Class::B64 => reg,
                Class::B32 => self.b.cvt(Type::S64, Type::S32, Round::None, reg),
                Class::F32 => {
                    let bits = self.b.bits(Class::B32, reg);
                    self.long(bits)
                }
                Class::Pred => self.b.selp(Type::B64, Src::Imm(1), Src::Imm(0), reg),
                _ => return None,
            },
            other => self.b.mov(Type::B64, other),
        })
    }
}

//! Products of a warp-group: the left operand from shared memory, or from registers as it was computed.

use super::loads::Ring;
use super::{Code, ROWS};
use ptoc_opt::contraction::{From, Product};
use ptoc_ptx::{Arith, MmaType, Sm90, Src, VReg, Wgmma};
use ptoc_tensor::DType;

/// Depth of an instruction.
const STEP: u32 = 16;

/// Where an operand is.
enum Factors {
    /// The low half of a descriptor, and the ring.
    Window(VReg, usize),
    /// Four registers a step.
    Registers(Vec<VReg>),
}

impl Code<'_> {
    /// `d = a b`, or `d + a b`, which is then under way.
    pub(super) fn issue(&mut self, p: &Product, start: From) -> Option<()> {
        let ring = |c: &Self, tile| c.rings.iter().position(|r| r.operand == tile);
        let right = ring(self, p.b.tile)?;
        let a = match ring(self, p.a.tile) {
            Some(n) => {
                let (turned, part) = (self.rings[n].turned, self.rings[n].part);
                let (to, ..) = self.slot(n);
                // 64 rows: of lines, or a part of all.
                let mine = self.at(self.group, if turned { part } else { ROWS * 128 }, to);
                Factors::Window(self.low(mine, n), n)
            }
            None => {
                self.fill(&p.a, 0)?;
                let valid = self.value(p.b.valid.0)?;
                // Lines along the depth have zeros beyond it.
                let across = !self.rings[right].turned;
                if across && self.defs.number(p.b.valid.0) != Some(p.b.rows.into()) && !self.is_whole(p.b.valid.0) {
                    let valid = self.long_reg(valid);
                    self.clear_lines(right, valid);
                }
                Factors::Registers(self.tile(p.a.tile)?)
            }
        };
        let (to, ..) = self.slot(right);
        let b = self.low(to, right);
        let sums = self.tile(p.d.tile)?;
        let ty = if self.plan.factors == DType::BF16 { MmaType::Bf16 } else { MmaType::F16 };
        let product = Wgmma {
            a_in_regs: matches!(a, Factors::Registers(_)),
            trans_a: matches!(a, Factors::Window(_, n) if self.rings[n].turned),
            // Columns, and not k, are neighbours.
            trans_b: !self.rings[right].turned,
            ..Wgmma::new(p.d.cols as u16, ty)
        };
        self.b.sm90(Sm90::WgmmaFence, &[], &[]);
        for step in 0..p.a.cols / STEP {
            let mut srcs = match &a {
                Factors::Window(low, n) => vec![self.descriptor(*low, offset(&self.rings[*n], !product.trans_a, step))],
                Factors::Registers(regs) => regs[4 * step as usize..][..4].iter().map(|r| Src::Reg(*r)).collect(),
            };
            let adds = if step == 0 && start == From::Zero { self.no } else { self.yes };
            srcs.push(self.descriptor(b, offset(&self.rings[right], !product.trans_b, step)));
            srcs.push(adds.into());
            self.b.sm90(Sm90::Wgmma(product), &sums, &srcs);
        }
        let computed = matches!(a, Factors::Registers(_)).then_some(p.a.tile);
        self.commit([p.d.tile].into_iter().chain(computed).collect());
        self.forget(p.d.tile);
        Some(())
    }

    /// The low half of the descriptor of a window: its address, and from a part to the next.
    fn low(&mut self, at: VReg, ring: usize) -> VReg {
        let leading = self.rings[ring].part >> 4 & 0x3fff;
        let low = self.u32(Arith::Shr, at, 4);
        self.u32(Arith::Or, low, leading << 16)
    }

    /// Lines of 128 bytes, swizzled, eight of them 1024 bytes from the next eight.
    fn descriptor(&mut self, low: VReg, offset: u32) -> Src {
        let low = self.u32(Arith::Add, low, offset >> 4);
        let high = self.b.mov(ptoc_ptx::Type::U32, Src::Imm(1 << 30 | 1024 >> 4));
        self.b.pair(low, high).into()
    }
}

/// Where a step of 16 begins in a window, along its lines or across them.
fn offset(ring: &Ring, along: bool, step: u32) -> u32 {
    match along {
        true => step / 4 * ring.part + step % 4 * 2 * STEP,
        false => step * 128 * STEP,
    }
}

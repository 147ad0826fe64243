//! Addresses, loads and stores.
//!
//! An address is a register and a displacement. Those of shared memory have 32 bits, all others 64; offsets of loop IR
//! have 64 and are cut, which is harmless: what they lead to lies inside the memory.

use crate::allocation::Home;
use crate::dependences::{Key, Touched};
use crate::emit::Emit;
use ptoc_ir::loops::{Addr, Base, LTy, MemTy, Reg, Stride};
use ptoc_ptx::{AddrBase, Address, Arith, Class, Cmp, Round, Space, Src, Type, VReg};

/// A place in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GpuAddress {
    pub(crate) space: Space,
    pub(crate) reg: VReg,
    pub(crate) disp: i32,
}

impl GpuAddress {
    pub(crate) fn address(self) -> Address {
        Address { base: AddrBase::Reg(self.reg), disp: self.disp }
    }

    /// The element so many further, a few.
    pub(crate) fn behind(self, elements: u64, ty: MemTy) -> GpuAddress {
        GpuAddress { disp: self.disp + (elements * u64::from(ty.size())) as i32, ..self }
    }
}

/// A number in 32 bits (cut, if it does not fit) and in 64.
pub(crate) type Index = (VReg, VReg);

impl Emit<'_> {
    /// `place + bytes`.
    pub(crate) fn further(&mut self, place: GpuAddress, bytes: i64) -> GpuAddress {
        if place.space == Space::Shared {
            return GpuAddress { disp: place.disp.wrapping_add(bytes as i32), ..place };
        }
        match i32::try_from(i64::from(place.disp).saturating_add(bytes)) {
            Ok(disp) => GpuAddress { disp, ..place },
            Err(_) => GpuAddress { reg: self.u64(Arith::Add, place.reg, Src::Imm(bytes as u64)), ..place },
        }
    }

    /// `place + offset`.
    pub(crate) fn moved(&mut self, place: GpuAddress, offset: VReg) -> GpuAddress {
        let reg = match place.space {
            Space::Shared => {
                let offset = self.b.cvt(Type::U32, Type::U64, Round::None, offset);
                self.b.arith(Arith::Add, Type::U32, &[place.reg.into(), offset.into()])
            }
            _ => self.u64(Arith::Add, place.reg, offset),
        };
        GpuAddress { reg, ..place }
    }

    /// `place + index * stride`, the stride in bytes.
    pub(crate) fn along(&mut self, place: GpuAddress, index: Index, stride: Stride) -> GpuAddress {
        let stride = match stride {
            Stride::Const(0) => return place,
            Stride::Const(n) => Src::Imm(n as u64),
            Stride::Reg(reg) => self.src(reg),
        };
        let (small, large) = index;
        let reg = match (place.space, stride) {
            (Space::Shared, Src::Reg(stride)) => {
                let stride = self.b.cvt(Type::U32, Type::U64, Round::None, stride);
                self.b.arith(Arith::MadLo, Type::U32, &[small.into(), stride.into(), place.reg.into()])
            }
            (Space::Shared, stride) => self.b.arith(Arith::MadLo, Type::U32, &[small.into(), stride, place.reg.into()]),
            (_, stride) => self.b.arith(Arith::MadLo, Type::U64, &[large.into(), stride, place.reg.into()]),
        };
        GpuAddress { reg, ..place }
    }

    /// Base and offset of an address.
    pub(crate) fn origin(&mut self, base: Base, offset: Reg) -> GpuAddress {
        let start = match base {
            Base::Tensor(n) => GpuAddress { space: Space::Global, reg: self.tensors[n as usize], disp: 0 },
            Base::Space(space) => match self.homes.find(space, offset) {
                (Home::Shared(at), from) => {
                    GpuAddress { space: Space::Shared, reg: self.smem, disp: at as i32 - from as i32 }
                }
                (Home::Scratch(at), from) => {
                    let scratch = GpuAddress { space: Space::Global, reg: self.scratch, disp: 0 };
                    self.further(scratch, at as i64 - from as i64)
                }
            },
        };
        match self.known(offset) {
            Some(bytes) => self.further(start, bytes as i64),
            None => {
                let offset = self.reg(offset);
                self.moved(start, offset)
            }
        }
    }

    /// An address; inside `Lanes` that of the thread's lane.
    pub(crate) fn address(&mut self, addr: &Addr) -> GpuAddress {
        let mut place = self.origin(addr.base, addr.offset);
        if let Some(lane) = self.lane {
            place = match (lane.plus, addr.stride) {
                (0, stride) => self.along(place, lane.first, stride),
                (plus, Stride::Const(stride)) => {
                    let place = self.along(place, lane.first, addr.stride);
                    self.further(place, plus as i64 * stride)
                }
                (plus, stride) => {
                    let lane = self.u64(Arith::Add, lane.first.1, Src::Imm(plus));
                    let lane = (self.low(lane), lane);
                    self.along(place, lane, stride)
                }
            };
        }
        match addr.gather.map(|g| (g, self.known(g))) {
            Some((_, Some(bytes))) => self.further(place, bytes as i64),
            Some((gather, None)) => {
                let gather = self.reg(gather);
                self.moved(place, gather)
            }
            None => place,
        }
    }

    /// Loads an element into a register of its type.
    pub(crate) fn load(&mut self, ty: MemTy, place: GpuAddress) -> VReg {
        let (space, at) = (place.space, place.address());
        match ty {
            MemTy::Bool => {
                let byte = self.b.ld(space, Type::U8, at);
                self.b.setp(Cmp::Ne, Type::U32, byte, Src::Imm(0))
            }
            MemTy::I8 => self.b.ld(space, Type::S8, at),
            MemTy::U8 | MemTy::F8E4M3 | MemTy::F8E5M2 => self.b.ld(space, Type::U8, at),
            MemTy::I16 | MemTy::U16 => {
                let ty = if ty == MemTy::I16 { Type::S16 } else { Type::U16 };
                let dst = self.b.reg(Class::B32);
                self.b.push(ptoc_ptx::Op::Ld(space, ty), &[dst], &[Src::Addr(at)]);
                dst
            }
            MemTy::I32 => self.b.ld(space, Type::B32, at),
            MemTy::I64 => self.b.ld(space, Type::B64, at),
            MemTy::F16 => {
                let half = self.b.ld(space, Type::B16, at);
                let value = self.b.cvt(Type::F32, Type::F16, Round::None, half);
                self.loaded.insert(value, half);
                value
            }
            MemTy::BF16 => {
                let half = self.b.ld(space, Type::B16, at);
                self.bf16(half)
            }
            MemTy::F32 => self.b.ld(space, Type::F32, at),
        }
    }

    /// A value as a float of 16 bits: f16, or else bf16.
    pub(crate) fn half(&mut self, ty: MemTy, value: VReg) -> VReg {
        let ty = if ty == MemTy::F16 { Type::F16 } else { Type::BF16 };
        match self.halves.get(&(value, ty)) {
            Some(half) => *half,
            None => self.b.cvt(ty, Type::F32, Round::Rn, value),
        }
    }

    /// Stores a register as an element; under a guard, if there is one.
    pub(crate) fn store(&mut self, ty: MemTy, place: GpuAddress, value: VReg, guard: Option<(VReg, bool)>) {
        let (value, as_ty) = match ty {
            MemTy::Bool => (self.b.selp(Type::B32, Src::Imm(1), Src::Imm(0), value), Type::U8),
            MemTy::I8 | MemTy::U8 | MemTy::F8E4M3 | MemTy::F8E5M2 => (value, Type::U8),
            MemTy::I16 | MemTy::U16 => (value, Type::U16),
            MemTy::I32 => (value, Type::B32),
            MemTy::I64 => (value, Type::B64),
            MemTy::F16 | MemTy::BF16 => (self.half(ty, value), Type::B16),
            MemTy::F32 => (value, Type::F32),
        };
        let before = std::mem::replace(&mut self.b.guard, guard);
        self.b.st(place.space, as_ty, place.address(), value);
        self.b.guard = before;
    }

    /// A load outside `Lanes`: every thread loads, unless other CTAs may be writing there; then one does.
    pub(crate) fn scalar_load(&mut self, dst: Reg, ty: MemTy, addr: &Addr) {
        let key = self.keys().of(addr);
        if self.solo || !self.broadcast.contains(&key) {
            let mut read = Touched::default();
            read.reads.insert(key);
            self.order(&read);
            let place = self.address(addr);
            let value = self.load(ty, place);
            return self.define(dst, value);
        }
        let mut solo = Touched::default();
        solo.solo_reads.insert(key);
        solo.solo_writes.insert(Key::Control);
        self.order(&solo);
        let place = self.address(addr);
        let value = self.load(ty, place);
        let value = self.tell(ty.reg(), value);
        self.define(dst, value);
    }

    /// The first thread's value of a register, in every thread. What is written to memory for it has been ordered.
    pub(crate) fn tell(&mut self, ty: LTy, value: VReg) -> VReg {
        match ty {
            LTy::Bool => {
                let number = self.b.selp(Type::B32, Src::Imm(1), Src::Imm(0), value);
                let number = self.broadcast(number, Type::B32);
                self.b.setp(Cmp::Ne, Type::U32, number, Src::Imm(0))
            }
            _ => self.broadcast(value, crate::emit::whole(ty)),
        }
    }

    /// A store outside `Lanes`: the first thread's.
    pub(crate) fn scalar_store(&mut self, ty: MemTy, addr: &Addr, value: Reg) {
        let mut solo = Touched::default();
        solo.solo_writes.insert(self.keys().of(addr));
        self.order(&solo);
        let place = self.address(addr);
        let value = self.reg(value);
        let guard = (!self.solo).then_some((self.first, true));
        self.store(ty, place, value, guard);
    }
}

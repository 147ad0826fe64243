//! Instructions, and what each asks of its operands.

use crate::kernel::{Label, VReg};
use crate::sm90::{Slot, Sm90};
use crate::table::{Arith, Operands, wide};
use crate::types::{Class, Space, Type};

/// A comparison. Those of floats are false on NaN, but for `Neu`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Floats: different, or one of them NaN.
    Neu,
    /// Floats: one of them is NaN.
    Nan,
}

impl Cmp {
    /// The modifier.
    pub fn name(self) -> &'static str {
        match self {
            Cmp::Eq => "eq",
            Cmp::Ne => "ne",
            Cmp::Lt => "lt",
            Cmp::Le => "le",
            Cmp::Gt => "gt",
            Cmp::Ge => "ge",
            Cmp::Neu => "neu",
            Cmp::Nan => "nan",
        }
    }
}

/// How a conversion rounds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Round {
    /// It is exact, or of integers.
    None,
    /// To nearest even.
    Rn,
    /// To an integer, nearest even.
    Rni,
    /// To an integer, towards zero.
    Rzi,
    /// To an integer, down.
    Rmi,
    /// To an integer, up.
    Rpi,
}

impl Round {
    /// The modifier, with its dot.
    pub fn name(self) -> &'static str {
        match self {
            Round::None => "",
            Round::Rn => ".rn",
            Round::Rni => ".rni",
            Round::Rzi => ".rzi",
            Round::Rmi => ".rmi",
            Round::Rpi => ".rpi",
        }
    }
}

/// What an atomic instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub enum AtomOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
}

impl AtomOp {
    /// The modifier.
    pub fn name(self) -> &'static str {
        match self {
            AtomOp::Add => "add",
            AtomOp::Min => "min",
            AtomOp::Max => "max",
            AtomOp::And => "and",
            AtomOp::Or => "or",
            AtomOp::Xor => "xor",
            AtomOp::Exch => "exch",
            AtomOp::Cas => "cas",
        }
    }

    /// Types that it has.
    pub fn types(self) -> &'static [Type] {
        match self {
            AtomOp::Add => &[Type::U32, Type::S32, Type::U64],
            AtomOp::Min | AtomOp::Max => &[Type::U32, Type::S32, Type::U64, Type::S64],
            AtomOp::And | AtomOp::Or | AtomOp::Xor | AtomOp::Exch => &[Type::B32, Type::B64],
            AtomOp::Cas => &[Type::B16, Type::B32, Type::B64],
        }
    }
}

/// From which lane a shuffle takes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Shfl {
    /// `lane + b`.
    Down,
    /// `lane ^ b`.
    Bfly,
    /// `b`.
    Idx,
}

impl Shfl {
    /// The modifier.
    pub fn name(self) -> &'static str {
        match self {
            Shfl::Down => "down",
            Shfl::Bfly => "bfly",
            Shfl::Idx => "idx",
        }
    }
}

/// A register that the machine fills.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Special {
    /// The thread in its CTA.
    Tid,
    /// Threads of a CTA.
    Ntid,
    /// The CTA.
    Ctaid,
    /// How many there are.
    Nctaid,
    /// The lane in its warp.
    Laneid,
    /// The CTA in its cluster.
    ClusterCtarank,
    /// The cluster.
    Clusterid,
    /// How many there are.
    Nclusterid,
}

impl Special {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Special::Tid => "%tid.x",
            Special::Ntid => "%ntid.x",
            Special::Ctaid => "%ctaid.x",
            Special::Nctaid => "%nctaid.x",
            Special::Laneid => "%laneid",
            Special::ClusterCtarank => "%cluster_ctarank",
            Special::Clusterid => "%clusterid.x",
            Special::Nclusterid => "%nclusterid.x",
        }
    }
}

/// What an instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    /// Computes, as its row of the table says.
    Arith(Arith, Type),
    /// Copies a register, a number, a special register, or the address of a symbol.
    Mov(Type),
    /// The same bits in a register of another class.
    Bits(Type),
    /// Two halves as a word, the low one first.
    Pack,
    /// Two words as 64 bits, the low one first.
    Pair,
    /// Two f32 rounded to a word of two f16 or bf16; the first operand is the high half.
    Cvt2(Type),
    /// A comparison.
    Setp(Cmp, Type),
    /// `c ? a : b`
    Selp(Type),
    /// A conversion.
    Cvt {
        /// The result's type.
        to: Type,
        /// The operand's.
        from: Type,
        /// How.
        round: Round,
    },
    /// A generic address as one of this memory.
    CvtaTo(Space),
    /// The address of a parameter as a generic one.
    CvtaParam,
    /// Loads as many neighbours as it has results: 1, 2 or 4.
    Ld(Space, Type),
    /// Stores as many neighbours as it has operands behind the address: 1, 2 or 4.
    St(Space, Type),
    /// Read, modify, write; the result is the old value.
    Atom(Space, AtomOp, Type),
    /// Exchanges 32 bits in a warp: value, lane or distance, clamp, mask of members.
    Shfl(Shfl),
    /// All threads of the CTA, at this barrier.
    Bar(u32),
    /// The same, and whether a predicate holds in any of them.
    BarOr(u32),
    /// An instruction that completes later, or that orders those.
    Sm90(Sm90),
    /// A jump.
    Bra,
    /// The thread's end.
    Ret,
}

/// Where an address begins.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AddrBase {
    /// A register: `b64`, or for shared memory `b32`.
    Reg(VReg),
    /// A parameter.
    Param(u32),
    /// A symbol.
    Symbol(u32),
}

/// `[base + disp]`
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Address {
    /// Where it begins.
    pub base: AddrBase,
    /// Bytes.
    pub disp: i32,
}

/// An operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Src {
    /// A register.
    Reg(VReg),
    /// A number: its bits.
    Imm(u64),
    /// A special register.
    Special(Special),
    /// The address of a symbol.
    Symbol(u32),
    /// The address of a parameter, in the memory of parameters.
    Param(u32),
    /// A place in memory.
    Addr(Address),
    /// Where to jump.
    Label(Label),
}

impl From<VReg> for Src {
    fn from(reg: VReg) -> Src {
        Src::Reg(reg)
    }
}

/// An instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inst {
    /// Only where this predicate is so.
    pub guard: Option<(VReg, bool)>,
    /// What.
    pub op: Op,
    /// Results.
    pub dsts: Vec<VReg>,
    /// Operands.
    pub srcs: Vec<Src>,
    /// What the emitter makes it for, in its own numbers: reports name it.
    pub site: u32,
}

/// What may stand in a place of an instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OperandClass {
    /// A register of this class, or a number.
    Value(Class),
    /// A register of this class.
    Reg(Class),
    /// A register of this class, a number, a special register or a symbol.
    Any(Class),
    /// Any register of this many bits.
    Width(u32),
    /// A value in memory goes through a register of its class, or of a wider one of bits.
    Memory(Type),
    /// A place in this memory.
    Addr(Space),
    /// A label.
    Label,
}

/// The shape of an instruction.
#[derive(Clone, Debug)]
pub struct InstForm {
    /// The mnemonic.
    pub name: String,
    /// Results; a memory instruction may have two or four of the one.
    pub dsts: Vec<OperandClass>,
    /// Operands, likewise.
    pub srcs: Vec<OperandClass>,
    /// The type in which numbers are printed.
    pub ty: Type,
}

impl Op {
    /// What the instruction looks like; `None` where there is none of that type.
    pub fn form(self) -> Option<InstForm> {
        let form = |name: String, dsts: &[OperandClass], srcs: &[OperandClass], ty| InstForm {
            name,
            dsts: dsts.into(),
            srcs: srcs.into(),
            ty,
        };
        Some(match self {
            Op::Arith(arith, ty) => {
                let row = arith.row();
                if !row.types.contains(&ty) {
                    return None;
                }
                let same = OperandClass::Value(ty.class());
                let (dst, srcs) = match row.operands {
                    Operands::Same => (ty.class(), vec![same; row.arity]),
                    Operands::Shift => (ty.class(), vec![same, OperandClass::Value(Class::B32)]),
                    Operands::Wide => {
                        let twice = wide(ty).class();
                        let mut srcs = vec![same; 2];
                        srcs.extend((row.arity == 3).then_some(OperandClass::Value(twice)));
                        (twice, srcs)
                    }
                };
                form(format!("{}.{ty}", row.name), &[OperandClass::Reg(dst)], &srcs, ty)
            }
            Op::Mov(ty) => {
                let whole = matches!(
                    ty,
                    Type::Pred | Type::B16 | Type::B32 | Type::U32 | Type::B64 | Type::U64 | Type::F32 | Type::F64
                );
                if !whole {
                    return None;
                }
                form(format!("mov.{ty}"), &[OperandClass::Reg(ty.class())], &[OperandClass::Any(ty.class())], ty)
            }
            Op::Bits(ty) => {
                let width = OperandClass::Width(8 * ty.size());
                let known = matches!(ty, Type::B32 | Type::B64);
                known.then(|| form(format!("mov.{ty}"), &[width], &[width], ty))?
            }
            Op::Pack => {
                let half = OperandClass::Reg(Class::B16);
                form("mov.b32".into(), &[OperandClass::Reg(Class::B32)], &[half, half], Type::B16)
            }
            Op::Pair => {
                let word = OperandClass::Reg(Class::B32);
                form("mov.b64".into(), &[OperandClass::Reg(Class::B64)], &[word, word], Type::B32)
            }
            Op::Cvt2(ty) => {
                let (word, value) = (OperandClass::Reg(Class::B32), OperandClass::Reg(Class::F32));
                let known = matches!(ty, Type::F16 | Type::BF16);
                known.then(|| form(format!("cvt.rn.{ty}x2.f32"), &[word], &[value, value], Type::F32))?
            }
            Op::Setp(cmp, ty) => {
                let float = matches!(ty, Type::F32 | Type::F64);
                let int = matches!(
                    ty,
                    Type::S32 | Type::U32 | Type::S64 | Type::U64 | Type::B32 | Type::B64 | Type::B16 | Type::U16
                );
                let bits = matches!(ty, Type::B16 | Type::B32 | Type::B64);
                let fits = match cmp {
                    Cmp::Neu | Cmp::Nan => float,
                    Cmp::Eq | Cmp::Ne => float || int,
                    _ => float || (int && !bits),
                };
                let value = OperandClass::Value(ty.class());
                fits.then(|| {
                    form(format!("setp.{}.{ty}", cmp.name()), &[OperandClass::Reg(Class::Pred)], &[value, value], ty)
                })?
            }
            Op::Selp(ty) => {
                let known =
                    matches!(ty, Type::B16 | Type::B32 | Type::U32 | Type::B64 | Type::U64 | Type::F32 | Type::F64);
                let value = OperandClass::Value(ty.class());
                let srcs = [value, value, OperandClass::Reg(Class::Pred)];
                known.then(|| form(format!("selp.{ty}"), &[OperandClass::Reg(ty.class())], &srcs, ty))?
            }
            Op::Cvt { to, from, round } => {
                if !conversion(to, from, round) {
                    return None;
                }
                let name = format!("cvt{}.{to}.{from}", round.name());
                form(name, &[OperandClass::Reg(to.class())], &[OperandClass::Reg(from.class())], from)
            }
            Op::CvtaTo(space) => {
                let known = matches!(space, Space::Global | Space::Shared | Space::Local);
                let address = OperandClass::Reg(Class::B64);
                known.then(|| form(format!("cvta.to.{}.u64", space.name()), &[address], &[address], Type::U64))?
            }
            Op::CvtaParam => {
                let address = OperandClass::Reg(Class::B64);
                form("cvta.param.u64".into(), &[address], &[address], Type::U64)
            }
            Op::Ld(space, ty) => {
                let known = ty.size() > 0 && !matches!(ty, Type::F16 | Type::BF16);
                let name = format!("ld.{}", space.name());
                known.then(|| form(name, &[OperandClass::Memory(ty)], &[OperandClass::Addr(space)], ty))?
            }
            Op::St(space, ty) => {
                let known = ty.size() > 0 && !matches!(ty, Type::F16 | Type::BF16) && space != Space::Param;
                let name = format!("st.{}", space.name());
                known.then(|| form(name, &[], &[OperandClass::Addr(space), OperandClass::Memory(ty)], ty))?
            }
            Op::Atom(space, op, ty) => {
                if !op.types().contains(&ty) || !matches!(space, Space::Global | Space::Shared) {
                    return None;
                }
                let value = OperandClass::Value(ty.class());
                let mut srcs = vec![OperandClass::Addr(space), value];
                srcs.extend((op == AtomOp::Cas).then_some(value));
                let name = format!("atom.{}.{}.{ty}", space.name(), op.name());
                form(name, &[OperandClass::Reg(ty.class())], &srcs, ty)
            }
            Op::Shfl(mode) => {
                let number = OperandClass::Value(Class::B32);
                let srcs = [OperandClass::Reg(Class::B32), number, number, number];
                form(format!("shfl.sync.{}.b32", mode.name()), &[OperandClass::Reg(Class::B32)], &srcs, Type::B32)
            }
            Op::Bar(n) => (n < 16).then(|| form(format!("bar.sync {n}"), &[], &[], Type::B32))?,
            Op::BarOr(n) => {
                let pred = OperandClass::Reg(Class::Pred);
                (n < 16).then(|| form("bar.red.or.pred".into(), &[pred], &[pred], Type::Pred))?
            }
            Op::Sm90(op) => sm90(op)?,
            Op::Bra => form("bra".into(), &[], &[OperandClass::Label], Type::B32),
            Op::Ret => form("ret".into(), &[], &[], Type::B32),
        })
    }
}

/// The operands of an instruction of Hopper, as its text has them.
fn sm90(op: Sm90) -> Option<InstForm> {
    let (mut dsts, mut srcs) = (Vec::new(), Vec::new());
    for slot in op.slots()? {
        match slot {
            Slot::Dst(class) | Slot::DstBehindSink(class) => dsts.push(class),
            Slot::Dsts(class, n) => dsts.extend(std::iter::repeat_n(class, n)),
            Slot::Src(class) => srcs.push(class),
            Slot::Srcs(class, n) => srcs.extend(std::iter::repeat_n(class, n)),
            Slot::Map(rank) => {
                srcs.push(OperandClass::Reg(Class::B64));
                srcs.extend(std::iter::repeat_n(OperandClass::Reg(Class::B32), rank));
            }
            Slot::Sink | Slot::Literal(_) => {}
        }
    }
    Some(InstForm { name: op.name(), dsts, srcs, ty: Type::S32 })
}

/// Whether there is such a conversion, that says all of how it rounds.
fn conversion(to: Type, from: Type, round: Round) -> bool {
    let int = |ty: Type| !ty.is_float() && !matches!(ty, Type::Pred | Type::B8 | Type::B16 | Type::B32 | Type::B64);
    let wide = |ty: Type| matches!(ty, Type::F32 | Type::F64);
    let to_whole = matches!(round, Round::Rni | Round::Rzi | Round::Rmi | Round::Rpi);
    match (from.is_float(), to.is_float()) {
        (false, false) => int(from) && int(to) && round == Round::None,
        (false, true) => int(from) && from.size() >= 4 && wide(to) && round == Round::Rn,
        (true, false) => wide(from) && int(to) && to.size() >= 4 && to_whole,
        (true, true) if to == from => wide(from) && to_whole,
        // bf16 widens by its bits.
        (true, true) if to.size() > from.size() => from != Type::BF16 && round == Round::None,
        (true, true) => (from == Type::F32 || to == Type::F32) && round == Round::Rn,
    }
}

//! Vector programs: straight-line code on virtual registers for some lanes of a nest.

use super::Isa;
use super::ops::VOp;
use super::unroll_and_jam::Turn;
use std::fmt;

/// A virtual register; each is defined once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct VReg(pub(crate) u32);

impl fmt::Debug for VReg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// Kinds of registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Class {
    Vector,
    /// `k1` to `k7` (AVX-512).
    Mask,
}

/// Where a value may be fetched from at any time.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Home {
    /// Four bytes of the pool, for all lanes.
    Const(u32),
    /// Eight.
    ConstQ(u64),
    /// A vector of the pool, by its number.
    Table(u32),
    /// Four bytes of a parameter (by its number), for all lanes.
    Param(u32),
    /// Eight.
    ParamQ(u32),
    /// Which lanes of the tail exist, as a vector (AVX2).
    Tail,
    /// A slot of the frame, filled before the first row, by the row's code, or when a register was needed.
    Slot(u32),
}

/// Where a memory operand lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemOperand {
    /// `pointer + lane * scale + disp`
    Pointer { pointer: u32, scale: u8, disp: i32 },
    /// `pointer + (lane mod 64) * 4`: partials of a reduction.
    Partials { pointer: u32 },
    /// `pointer + lane / 2 + disp`: the word of eight half bytes that a lane's is in.
    Words { pointer: u32, disp: i32 },
    /// An area of the frame: 0 to 2, `disp` bytes in.
    Area { area: u8, disp: i32 },
}

/// Which lanes an instruction works on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Mask {
    #[default]
    All,
    /// Those of this mask register; others are 0, or the first operand of a blend.
    Reg(VReg),
    /// The lanes of the tail.
    Tail,
    /// The upper half of them.
    TailHigh,
}

/// Bytes from lane to lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Gap {
    Const(i64),
    /// A parameter.
    Param(u32),
}

/// Between memory and area 0: whole steps of lanes that are loaded from places evenly apart by vectors, all else one
/// lane at a time, by general registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Copy {
    pub(crate) pointer: u32,
    pub(crate) disp: i64,
    pub(crate) gap: Gap,
    /// Bytes of an element, in memory and in the area.
    pub(crate) size: u8,
    /// Area 1 holds offsets (eight bytes a lane).
    pub(crate) gather: bool,
    /// Whether it goes to memory, not from it.
    pub(crate) store: bool,
    /// Whether it is for the lanes of the tail alone.
    pub(crate) tail: bool,
}

impl Copy {
    /// Whether lanes are inserted into vectors: where they are apart fits an address.
    pub(crate) fn inserts(&self) -> bool {
        let near = match self.gap {
            Gap::Const(bytes) => bytes.checked_mul(16).is_some_and(|all| i32::try_from(all).is_ok()),
            Gap::Param(_) => true,
        };
        near && !(self.store || self.gather || self.tail)
    }
}

/// What a lane-by-lane computation does: operands in areas 0 and 1, the result in area 2.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Scalar {
    Div(ptoc_ir::loops::BinOp),
    /// i64 or u64 to f32, and back.
    FromLong {
        signed: bool,
    },
    ToLong {
        signed: bool,
    },
}

/// What an instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    Vector(VOp),
    /// The step's first lane, in all lanes; 64 bits wide or 32.
    Index {
        wide: bool,
    },
    Copy(Copy),
    /// Pointer `to`, one of the program's own, becomes pointer `base` and the i64 at pointer `word` + `disp`.
    Seek {
        to: u32,
        base: u32,
        word: u32,
        disp: i32,
    },
    /// `wide`: 64-bit integers.
    Scalar {
        what: Scalar,
        wide: bool,
    },
    /// In a turn: unless all bits of its operand are 0, the turn goes on with this group of its whole steps.
    Guard {
        group: usize,
    },
}

/// The statement of a nest's body that an instruction stems from, by its number. It is for listings alone: instructions
/// that differ in nothing else are equal.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Origin(pub(crate) Option<u32>);

impl PartialEq for Origin {
    fn eq(&self, _: &Origin) -> bool {
        true
    }
}

/// An instruction.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct Ins {
    pub(crate) action: Action,
    pub(crate) dst: Option<VReg>,
    /// Operands in registers; with `place`, the others.
    pub(crate) args: Vec<VReg>,
    /// The last operand of a load, the first of a store.
    pub(crate) place: Option<MemOperand>,
    pub(crate) imm: Option<u8>,
    pub(crate) mask: Mask,
    pub(crate) origin: Origin,
}

impl Ins {
    /// Every register read.
    pub(crate) fn reads(&self) -> impl Iterator<Item = VReg> + '_ {
        let mask = if let Mask::Reg(reg) = self.mask { Some(reg) } else { None };
        self.args.iter().copied().chain(mask)
    }
}

/// A virtual register.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VData {
    pub(crate) class: Class,
    /// Set for what is known before the first row.
    pub(crate) home: Option<Home>,
}

/// A nest's code.
#[derive(Clone, Debug)]
pub(crate) struct NestProgram {
    pub(crate) isa: Isa,
    /// See [`Isa::multishift`].
    pub(crate) multishift: bool,
    pub(crate) regs: Vec<VData>,
    /// Vectors of the pool: their 32-bit lanes.
    pub(crate) tables: Vec<Vec<u32>>,
    /// Pointers of its own, numbered behind the nest's: each row sets them first.
    pub(crate) seeks: u32,
    /// What all lanes share, once a row.
    pub(crate) row: Vec<Ins>,
    /// Several steps at once, while there are as many lanes.
    pub(crate) turn: Option<Turn>,
    /// A whole step.
    pub(crate) main: Vec<Ins>,
    /// The last lanes of a row.
    pub(crate) tail: Vec<Ins>,
    /// What a row does that ends with its reduction.
    pub(crate) ending: Option<Ending>,
}

/// The code of [`crate::nest::Ending`].
#[derive(Clone, Debug)]
pub(crate) struct Ending {
    /// The bits that partials start with.
    pub(crate) identity: u32,
    /// Fills the partials in memory.
    pub(crate) fill: Vec<Ins>,
    /// Joins the turn's partials, which are in registers, and stores the result; nothing without a turn that has them.
    pub(crate) of_sums: Vec<Ins>,
    /// Joins those in memory.
    pub(crate) of_memory: Vec<Ins>,
}

impl NestProgram {
    pub(crate) fn new(isa: Isa) -> NestProgram {
        let (row, main, tail) = (Vec::new(), Vec::new(), Vec::new());
        NestProgram {
            isa,
            multishift: false,
            regs: Vec::new(),
            tables: Vec::new(),
            seeks: 0,
            row,
            turn: None,
            main,
            tail,
            ending: None,
        }
    }

    pub(crate) fn class(&self, reg: VReg) -> Class {
        self.regs[reg.0 as usize].class
    }

    pub(crate) fn reg(&mut self, class: Class) -> VReg {
        self.regs.push(VData { class, home: None });
        VReg(self.regs.len() as u32 - 1)
    }

    /// The register of what has a home, the same for equal ones.
    pub(crate) fn homed(&mut self, home: Home) -> VReg {
        if let Some(n) = self.regs.iter().position(|r| r.home == Some(home)) {
            return VReg(n as u32);
        }
        self.regs.push(VData { class: Class::Vector, home: Some(home) });
        VReg(self.regs.len() as u32 - 1)
    }

    /// A vector of the pool.
    pub(crate) fn table(&mut self, lanes: Vec<u32>) -> VReg {
        let known = self.tables.iter().position(|t| *t == lanes);
        let n = known.unwrap_or_else(|| {
            self.tables.push(lanes);
            self.tables.len() - 1
        });
        self.homed(Home::Table(n as u32))
    }

    /// Whether a pointer is used for more than what all lanes share.
    pub(crate) fn steps_through(&self, n: u32) -> bool {
        use MemOperand::{Partials, Pointer, Words};
        self.main.iter().chain(&self.tail).any(|ins| {
            matches!(ins.place, Some(Pointer { pointer, .. } | Partials { pointer } | Words { pointer, .. })
                if pointer == n)
                || matches!(ins.action, Action::Copy(copy) if copy.pointer == n)
        })
    }

    /// Removes what nobody reads. `main` and `tail` see what `row` defines.
    pub(crate) fn sweep(&mut self) {
        let mut read = vec![false; self.regs.len()];
        for section in [&mut self.tail, &mut self.main, &mut self.row] {
            sweep(section, &mut read);
        }
    }
}

/// Removes what of a section nobody reads: neither what follows in it nor what has `read` set, where the section's own
/// reads are noted.
pub(crate) fn sweep(section: &mut Vec<Ins>, read: &mut [bool]) {
    let mut kept = Vec::with_capacity(section.len());
    while let Some(ins) = section.pop() {
        let needed = ins.dst.is_none_or(|dst| read[dst.0 as usize]);
        if needed {
            ins.reads().for_each(|reg| read[reg.0 as usize] = true);
            kept.push(ins);
        }
    }
    kept.reverse();
    *section = kept;
}

impl fmt::Display for Ins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(dst) = self.dst {
            write!(f, "{dst:?} = ")?;
        }
        match self.action {
            Action::Vector(op) => f.write_str(op.info().text)?,
            Action::Index { wide } => write!(f, "index.i{}", if wide { 64 } else { 32 })?,
            Action::Copy(c) => {
                let (from, to) = if c.store { ("area0", "memory") } else { ("memory", "area0") };
                let how = if c.inserts() { "insert" } else { "copy" };
                write!(f, "{how}{} {from} to {to}, pointer{} + {}", 8 * c.size, c.pointer, c.disp)?;
                match c.gap {
                    Gap::Const(bytes) => write!(f, " + {bytes} a lane")?,
                    Gap::Param(n) => write!(f, " + param{n} a lane")?,
                }
                if c.gather {
                    f.write_str(" + area1")?;
                }
                if c.tail {
                    f.write_str(", tail")?;
                }
            }
            Action::Seek { to, base, word, disp } => {
                write!(f, "pointer{to} = pointer{base} + memory, pointer{word} + {disp}")?;
            }
            Action::Guard { group } => write!(f, "go on with whole {group} if any bit of")?,
            Action::Scalar { what, wide } => {
                let bits = if wide { 64 } else { 32 };
                match what {
                    Scalar::Div(op) => write!(f, "lanewise {}.i{bits}", op.name())?,
                    Scalar::FromLong { signed } => write!(f, "lanewise from_i64 signed {signed}")?,
                    Scalar::ToLong { signed } => write!(f, "lanewise to_i64 signed {signed}")?,
                }
            }
        }
        for (n, arg) in self.args.iter().enumerate() {
            write!(f, "{} {arg:?}", if n == 0 { "" } else { "," })?;
        }
        if let Some(imm) = self.imm {
            write!(f, ", {imm:#x}")?;
        }
        match self.place {
            Some(MemOperand::Pointer { pointer, scale, disp }) => {
                write!(f, " [pointer{pointer} + lane*{scale} + {disp}]")?
            }
            Some(MemOperand::Partials { pointer }) => write!(f, " [pointer{pointer} + lane%64*4]")?,
            Some(MemOperand::Words { pointer, disp }) => write!(f, " [pointer{pointer} + lane/2 + {disp}]")?,
            Some(MemOperand::Area { area, disp }) => write!(f, " [area{area} + {disp}]")?,
            None => {}
        }
        match self.mask {
            Mask::All => Ok(()),
            Mask::Reg(reg) => write!(f, " where {reg:?}"),
            Mask::Tail => f.write_str(" where tail"),
            Mask::TailHigh => f.write_str(" where tail, upper half"),
        }
    }
}

impl fmt::Display for NestProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, reg) in self.regs.iter().enumerate() {
            if let Some(home) = reg.home {
                writeln!(f, "  v{n} = {home:x?}")?;
            }
        }
        let turn: &[Ins] = self.turn.as_ref().map_or(&[], |t| &t.body);
        for sum in self.turn.iter().flat_map(|t| &t.sums) {
            writeln!(f, "  {:?} = partials [pointer{} + {}]", sum.reg, sum.pointer, sum.disp)?;
        }
        let whole = self.turn.iter().flat_map(|t| t.whole.iter().enumerate());
        let whole = whole.map(|(n, group)| (format!("whole {n}"), &**group));
        let sections = [("row".to_owned(), &*self.row), ("turn".to_owned(), turn)].into_iter().chain(whole);
        for (name, section) in sections.chain([("step".to_owned(), &*self.main), ("tail".to_owned(), &*self.tail)]) {
            if !section.is_empty() {
                writeln!(f, " {name}")?;
            }
            for ins in section {
                writeln!(f, "  {ins}")?;
            }
        }
        Ok(())
    }
}

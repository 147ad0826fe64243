//! A kernel: parameters, symbols, registers, and lines.

use crate::inst::Inst;
use crate::types::{Class, Space, Type};
use cranelift_entity::{PrimaryMap, entity_impl};

/// A virtual register. It may be written more than once.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VReg(u32);
entity_impl!(VReg, "v");

/// A place to jump to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Label(u32);
entity_impl!(Label, "L");

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name, of letters, digits, `_` and `$`.
    pub name: String,
    /// Its type; of a tensor map that of its bytes.
    pub ty: Type,
    /// It is a tensor map: 128 bytes, which only bulk copies look into.
    pub map: bool,
}

impl Param {
    /// Bytes.
    pub fn size(&self) -> u32 {
        if self.map { 128 } else { self.ty.size() }
    }

    /// What its place is a multiple of.
    pub fn align(&self) -> u32 {
        if self.map { 64 } else { self.ty.size() }
    }
}

/// Memory with a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Shared or local.
    pub space: Space,
    /// A power of two.
    pub align: u32,
    /// Bytes; `None` is shared memory whose size the launch says, of which there may be one.
    pub size: Option<u32>,
}

/// A line of the body.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyItem {
    /// Where jumps lead.
    Label(Label),
    /// An instruction.
    Inst(Inst),
    /// Text for who reads the code.
    Comment(String),
}

/// An entry of a module.
#[derive(Clone, Debug, Default)]
pub struct PtxKernel {
    /// Its name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Threads of a CTA, all in one dimension.
    pub threads: u32,
    /// CTAs that a multiprocessor shall have registers for: `ptxas` may give a thread all that this leaves. Unless
    /// given, it aims at many threads, and rather spills.
    pub resident: Option<u32>,
    /// CTAs of a cluster, which are on processors that reach each other's shared memory; `None` for no clusters.
    pub cluster: Option<u32>,
    /// Shared and local memory.
    pub symbols: Vec<Symbol>,
    /// Registers.
    pub regs: PrimaryMap<VReg, Class>,
    /// Labels.
    pub labels: PrimaryMap<Label, ()>,
    /// The code.
    pub body: Vec<BodyItem>,
}

impl PtxKernel {
    /// Instructions in order.
    pub fn insts(&self) -> impl Iterator<Item = &Inst> {
        self.body.iter().filter_map(|item| match item {
            BodyItem::Inst(inst) => Some(inst),
            _ => None,
        })
    }
}

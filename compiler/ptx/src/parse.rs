//! The parser of what [`print()`](crate::print::print) prints: one kernel a module, an instruction a line.
//!
//! It is for tests and tools that begin with text. What it reads prints as the same text, without its line table;
//! registers may have other numbers among all classes, since text numbers each class apart.

use crate::inst::{AddrBase, Address, AtomOp, Cmp, Inst, Op, Round, Shfl, Special, Src};
use crate::kernel::{BodyItem, Label, Param, PtxKernel, Symbol, VReg};
use crate::sm90::{Slot, Sm90};
use crate::table::TABLE;
use crate::types::{Class, Space, Type};
use cranelift_entity::EntityRef;
use std::collections::HashMap;
use std::fmt;

/// Why a text is not read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ParseError {
    /// The line, from 1 on.
    pub line: usize,
    /// What is wrong with it.
    pub message: String,
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)
    }
}

impl std::error::Error for ParseError {}

const TYPES: [Type; 18] = [
    Type::Pred,
    Type::B8,
    Type::B16,
    Type::B32,
    Type::B64,
    Type::U8,
    Type::U16,
    Type::U32,
    Type::U64,
    Type::S8,
    Type::S16,
    Type::S32,
    Type::S64,
    Type::F16,
    Type::BF16,
    Type::F32,
    Type::F64,
    Type::F16x2,
];
const SPACES: [Space; 4] = [Space::Global, Space::Shared, Space::Local, Space::Param];
const SPECIALS: [Special; 8] = [
    Special::Tid,
    Special::Ntid,
    Special::Ctaid,
    Special::Nctaid,
    Special::Laneid,
    Special::ClusterCtarank,
    Special::Clusterid,
    Special::Nclusterid,
];
const CMPS: [Cmp; 8] = [Cmp::Eq, Cmp::Ne, Cmp::Lt, Cmp::Le, Cmp::Gt, Cmp::Ge, Cmp::Neu, Cmp::Nan];
const ROUNDS: [Round; 6] = [Round::None, Round::Rn, Round::Rni, Round::Rzi, Round::Rmi, Round::Rpi];
const ATOMS: [AtomOp; 8] =
    [AtomOp::Add, AtomOp::Min, AtomOp::Max, AtomOp::And, AtomOp::Or, AtomOp::Xor, AtomOp::Exch, AtomOp::Cas];

/// Every instruction by its mnemonic, but for those whose operands decide: moves of bits, loads, stores, barriers.
fn mnemonics() -> HashMap<String, Op> {
    let mut all = Vec::new();
    for ty in TYPES {
        all.extend(TABLE.iter().map(|row| Op::Arith(row.arith, ty)));
        all.extend(CMPS.map(|cmp| Op::Setp(cmp, ty)));
        all.extend([Op::Mov(ty), Op::Selp(ty)]);
        all.extend(TYPES.iter().flat_map(|from| ROUNDS.map(|round| Op::Cvt { to: ty, from: *from, round })));
        all.extend(SPACES.iter().flat_map(|space| ATOMS.map(|op| Op::Atom(*space, op, ty))));
    }
    all.extend(SPACES.map(Op::CvtaTo));
    all.extend([Shfl::Down, Shfl::Bfly, Shfl::Idx].map(Op::Shfl));
    all.extend([Op::Bra, Op::Ret, Op::CvtaParam, Op::Cvt2(Type::F16), Op::Cvt2(Type::BF16)]);
    all.into_iter().filter_map(|op| Some((op.form()?.name, op))).collect()
}

/// Reads a module of one kernel.
///
/// # Errors
/// The first line that is none of what the printer writes.
pub fn parse(text: &str) -> Result<PtxKernel, ParseError> {
    let mut parser =
        Parser { kernel: PtxKernel::default(), mnemonics: mnemonics(), registers: HashMap::new(), line: 0 };
    for (n, line) in text.lines().enumerate() {
        parser.line = n + 1;
        parser.line(line.trim())?;
    }
    match parser.kernel.name.is_empty() {
        true => parser.error("there is no `.entry`"),
        false => Ok(parser.kernel),
    }
}

struct Parser {
    kernel: PtxKernel,
    mnemonics: HashMap<String, Op>,
    registers: HashMap<String, VReg>,
    line: usize,
}

/// The part of a text between two others, the first of which begins it.
fn between<'t>(text: &'t str, before: &str, after: &str) -> Option<&'t str> {
    text.strip_prefix(before)?.strip_suffix(after)
}

fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Option<T> {
    all.iter().copied().find(|one| name(*one) == text)
}

/// `a, {b, c}, d` at its outer commas.
fn operands(text: &str) -> Vec<&str> {
    let (mut out, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, c) in text.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                out.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    out.push(text[begin..].trim());
    out.retain(|o| !o.is_empty());
    out
}

/// The parts of `{a, b}`; of what has no braces, itself.
fn parts(text: &str) -> Vec<&str> {
    between(text, "{", "}").map_or_else(|| vec![text], operands)
}

impl Parser {
    fn error<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError { line: self.line, message: message.into() })
    }

    fn need<T>(&self, found: Option<T>, what: &str) -> Result<T, ParseError> {
        found.map_or_else(|| self.error(format!("expected {what}")), Ok)
    }

    fn number<T: std::str::FromStr>(&self, text: &str) -> Result<T, ParseError> {
        self.need(text.trim().parse().ok(), &format!("a number in place of `{text}`"))
    }

    fn line(&mut self, line: &str) -> Result<(), ParseError> {
        let skipped = [".version", ".target", ".address_size", ".file ", ".loc "];
        let skipped = skipped.iter().any(|word| line.starts_with(word));
        if line.is_empty() || skipped || matches!(line, "{" | "}" | ")" | ".explicitcluster") {
            return Ok(());
        }
        if let Some(comment) = line.strip_prefix("//") {
            let comment = comment.strip_prefix(' ').unwrap_or(comment);
            self.kernel.body.push(BodyItem::Comment(comment.to_owned()));
        } else if let Some(name) = between(line, ".visible .entry ", "(") {
            name.clone_into(&mut self.kernel.name);
        } else if let Some(param) = line.strip_prefix(".param .") {
            let param = self.need(param.trim_end_matches(',').split_once(' '), "a parameter's name")?;
            let map = param.1.strip_prefix("64 .b8 ").and_then(|name| name.strip_suffix("[128]"));
            let param = match (param, map) {
                (("align", _), Some(name)) => Param { name: name.to_owned(), ty: Type::B8, map: true },
                ((ty, name), _) => {
                    let ty = self.need(named(&TYPES, Type::name, ty), "a type")?;
                    Param { name: name.to_owned(), ty, map: false }
                }
            };
            self.kernel.params.push(param);
        } else if let Some(threads) = between(line, ".maxntid ", ", 1, 1") {
            self.kernel.threads = self.number(threads)?;
        } else if let Some(resident) = line.strip_prefix(".minnctapersm ") {
            self.kernel.resident = Some(self.number(resident)?);
        } else if let Some(cluster) = between(line, ".reqnctapercluster ", ", 1, 1") {
            self.kernel.cluster = Some(self.number(cluster)?);
        } else if let Some(regs) = between(line, ".reg .", ">;") {
            self.declare(regs)?;
        } else if line.starts_with(".extern .shared") || line.starts_with(".shared") || line.starts_with(".local") {
            self.symbol(line)?;
        } else if let Some(label) = between(line, "$L", ":") {
            let label = self.label(label)?;
            self.kernel.body.push(BodyItem::Label(label));
        } else {
            let inst = self.need(line.strip_suffix(';'), "`;`")?;
            let inst = self.inst(inst)?;
            self.kernel.body.push(BodyItem::Inst(inst));
        }
        Ok(())
    }

    /// `b32 %r<12`
    fn declare(&mut self, text: &str) -> Result<(), ParseError> {
        let (class, rest) = self.need(text.split_once(" %"), "a class and `%`")?;
        let class = self.need(named(&Class::ALL, Class::declared, class), "a class of registers")?;
        let (prefix, count) = self.need(rest.split_once('<'), "`<`")?;
        for n in 0..self.number::<u32>(count)? {
            let reg = self.kernel.regs.push(class);
            self.registers.insert(format!("%{prefix}{n}"), reg);
        }
        Ok(())
    }

    /// `.shared .align 16 .b8 name[64];`
    fn symbol(&mut self, line: &str) -> Result<(), ParseError> {
        let text = line.strip_prefix(".extern ").unwrap_or(line);
        let (space, rest) = self.need(text.split_once(" .align "), "`.align`")?;
        let (align, rest) = self.need(rest.split_once(" .b8 "), "`.b8`")?;
        let (name, size) = self.need(rest.strip_suffix("];").and_then(|r| r.split_once('[')), "`[` and `];`")?;
        let space = self.need(named(&SPACES, Space::name, space.trim_start_matches('.')), "a memory")?;
        let size = if size.is_empty() { None } else { Some(self.number(size)?) };
        let align = self.number(align)?;
        self.kernel.symbols.push(Symbol { name: name.to_owned(), space, align, size });
        Ok(())
    }

    fn label(&mut self, number: &str) -> Result<Label, ParseError> {
        let number: usize = self.number(number)?;
        if number > 1 << 24 {
            return self.error("a label's number is too large");
        }
        while self.kernel.labels.len() <= number {
            self.kernel.labels.push(());
        }
        Ok(Label::new(number))
    }

    fn inst(&mut self, text: &str) -> Result<Inst, ParseError> {
        let (guard, text) = match text.strip_prefix('@') {
            Some(rest) => {
                let (reg, rest) = self.need(rest.split_once(' '), "an instruction behind the guard")?;
                let (reg, so) = reg.strip_prefix('!').map_or((reg, true), |reg| (reg, false));
                (Some((self.reg(reg)?, so)), rest)
            }
            None => (None, text),
        };
        let (name, rest) = text.split_once(' ').unwrap_or((text, ""));
        let words = operands(rest);
        let (op, dsts, srcs) = self.parsed(name, &words)?;
        Ok(Inst { guard, op, dsts, srcs, site: 0 })
    }

    /// The instruction of a mnemonic and its operands.
    fn parsed(&mut self, name: &str, words: &[&str]) -> Result<(Op, Vec<VReg>, Vec<Src>), ParseError> {
        match (name, words) {
            ("bar.sync", [n]) => return Ok((Op::Bar(self.number(n)?), Vec::new(), Vec::new())),
            ("bar.red.or.pred", [dst, n, src]) => {
                let op = Op::BarOr(self.number(n)?);
                return Ok((op, vec![self.reg(dst)?], vec![self.src(src, Type::Pred)?]));
            }
            ("mov.b32" | "mov.b64", [dst, src]) => return self.moved(name, dst, src),
            _ => {}
        }
        for (mnemonic, loads) in [("ld.", true), ("st.", false)] {
            if let Some(rest) = name.strip_prefix(mnemonic) {
                return self.memory(rest, words, loads);
            }
        }
        if let Some(op) = Sm90::read(name, words) {
            return self.slots(op, words);
        }
        let op = self.need(self.mnemonics.get(name).copied(), &format!("an instruction in place of `{name}`"))?;
        let form = self.need(op.form(), "an instruction of this type")?;
        if words.len() != form.dsts.len() + form.srcs.len() {
            return self.error(format!("`{name}` has {} operands", form.dsts.len() + form.srcs.len()));
        }
        let (dsts, srcs) = words.split_at(form.dsts.len());
        let dsts = dsts.iter().map(|w| self.reg(w)).collect::<Result<_, _>>()?;
        let srcs = srcs.iter().map(|w| self.src(w, form.ty)).collect::<Result<_, _>>()?;
        Ok((op, dsts, srcs))
    }

    /// A copy, the bits of another class, or two halves.
    fn moved(&mut self, name: &str, dst: &str, src: &str) -> Result<(Op, Vec<VReg>, Vec<Src>), ParseError> {
        let ty = if name == "mov.b32" { Type::B32 } else { Type::B64 };
        let dst = self.reg(dst)?;
        if src.starts_with('{') {
            let half = if ty == Type::B32 { Type::B16 } else { Type::B32 };
            let halves = parts(src).into_iter().map(|w| self.src(w, half)).collect::<Result<Vec<_>, _>>()?;
            return match (ty, halves.len()) {
                (Type::B32, 2) => Ok((Op::Pack, vec![dst], halves)),
                (_, 2) => Ok((Op::Pair, vec![dst], halves)),
                _ => self.error("two halves are expected"),
            };
        }
        let src = self.src(src, ty)?;
        let class = |reg: VReg| self.kernel.regs[reg];
        let other = matches!(src, Src::Reg(reg) if class(reg) != ty.class()) || class(dst) != ty.class();
        Ok((if other { Op::Bits(ty) } else { Op::Mov(ty) }, vec![dst], vec![src]))
    }

    /// An instruction of Hopper: what stands in its places.
    fn slots(&mut self, op: Sm90, words: &[&str]) -> Result<(Op, Vec<VReg>, Vec<Src>), ParseError> {
        let slots = self.need(op.slots(), "an instruction that there is")?;
        if slots.len() != words.len() {
            return self.error(format!("`{}` has {} operands", op.name(), slots.len()));
        }
        let (mut dsts, mut srcs) = (Vec::new(), Vec::new());
        for (slot, word) in slots.into_iter().zip(words) {
            match slot {
                Slot::Dst(_) => dsts.push(self.reg(word)?),
                Slot::DstBehindSink(_) => {
                    let word = self.need(word.strip_prefix("_|"), "`_|`")?;
                    dsts.push(self.reg(word)?);
                }
                Slot::Dsts(..) => {
                    for part in self.need(between(word, "{", "}").map(operands), "registers in braces")? {
                        dsts.push(self.reg(part)?);
                    }
                }
                Slot::Src(_) => srcs.push(self.src(word, Type::S32)?),
                Slot::Srcs(..) => {
                    for part in self.need(between(word, "{", "}").map(operands), "registers in braces")? {
                        srcs.push(self.src(part, Type::S32)?);
                    }
                }
                Slot::Map(_) => {
                    let inner = self.need(between(word, "[", "]"), "a tensor map and coordinates")?;
                    for part in operands(inner).into_iter().flat_map(parts) {
                        srcs.push(self.src(part, Type::S32)?);
                    }
                }
                Slot::Sink if *word == "_" => {}
                Slot::Literal(n) if word.parse() == Ok(n) => {}
                Slot::Sink | Slot::Literal(_) => return self.error(format!("an operand that is not `{word}`")),
            }
        }
        Ok((Op::Sm90(op), dsts, srcs))
    }

    /// A load or a store: `global.v4.b32`.
    fn memory(&mut self, name: &str, words: &[&str], loads: bool) -> Result<(Op, Vec<VReg>, Vec<Src>), ParseError> {
        let mut modifiers = name.split('.');
        let space = self.need(modifiers.next().and_then(|s| named(&SPACES, Space::name, s)), "a memory")?;
        let ty = self.need(modifiers.next_back().and_then(|t| named(&TYPES, Type::name, t)), "a type")?;
        let count = match modifiers.next() {
            None => 1,
            Some("v2") => 2,
            Some("v4") => 4,
            Some(_) => return self.error("expected `.v2` or `.v4`"),
        };
        let [first, second] = *words else { return self.error("a register and an address are expected") };
        let (values, address) = if loads { (first, second) } else { (second, first) };
        let values = parts(values);
        if values.len() != count {
            return self.error(format!("expected {count} values"));
        }
        let address = self.src(address, ty)?;
        if loads {
            let dsts = values.into_iter().map(|w| self.reg(w)).collect::<Result<_, _>>()?;
            return Ok((Op::Ld(space, ty), dsts, vec![address]));
        }
        let mut srcs = vec![address];
        for value in values {
            srcs.push(self.src(value, ty)?);
        }
        Ok((Op::St(space, ty), Vec::new(), srcs))
    }

    fn reg(&self, text: &str) -> Result<VReg, ParseError> {
        self.need(self.registers.get(text).copied(), &format!("a register that is declared, in place of `{text}`"))
    }

    fn src(&mut self, text: &str, ty: Type) -> Result<Src, ParseError> {
        if let Some(special) = named(&SPECIALS, Special::name, text) {
            return Ok(Src::Special(special));
        }
        if let Some(label) = text.strip_prefix("$L") {
            return self.label(label).map(Src::Label);
        }
        if let Some(address) = between(text, "[", "]") {
            let (base, disp) = address.split_once('+').unwrap_or((address, "0"));
            let disp = self.number(disp)?;
            return Ok(Src::Addr(Address { base: self.base(base)?, disp }));
        }
        if text.starts_with('%') {
            return self.reg(text).map(Src::Reg);
        }
        if let Some(n) = self.kernel.params.iter().position(|p| p.name == text) {
            return Ok(Src::Param(n as u32));
        }
        if let Some(n) = self.kernel.symbols.iter().position(|s| s.name == text) {
            return Ok(Src::Symbol(n as u32));
        }
        self.immediate(text, ty).map(Src::Imm)
    }

    fn base(&self, text: &str) -> Result<AddrBase, ParseError> {
        if text.starts_with('%') {
            return self.reg(text).map(AddrBase::Reg);
        }
        let symbol = self.kernel.symbols.iter().position(|s| s.name == text);
        let param = self.kernel.params.iter().position(|p| p.name == text);
        let base = symbol.map(|n| AddrBase::Symbol(n as u32)).or(param.map(|n| AddrBase::Param(n as u32)));
        self.need(base, &format!("a register, a parameter or a symbol in place of `{text}`"))
    }

    /// The bits of a number as it is printed for a type.
    fn immediate(&self, text: &str, ty: Type) -> Result<u64, ParseError> {
        let hex = |prefix: &str| text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, 16).ok());
        match ty {
            Type::F32 => self.need(hex("0f"), "a float: `0f` and its bits"),
            Type::F64 => self.need(hex("0d"), "a float: `0d` and its bits"),
            Type::S64 | Type::B64 | Type::U64 => Ok(self.number::<i64>(text)? as u64),
            _ => Ok(u64::from(self.number::<i64>(text)? as u32)),
        }
    }
}

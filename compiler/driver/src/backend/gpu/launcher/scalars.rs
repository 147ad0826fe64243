//! A launch function as C: a few statements on scalars, which the host of a program without ptoc evaluates.
//!
//! Integers are unsigned in C, whose signed overflow is undefined; booleans are 0 or 1. What an operation means where C
//! leaves it open is said in `helpers.c`.

use ptoc_ir::loops::{Addr, Base, BinOp, Cast, CmpOp, Func, LTy, MemTy, Module, Op, Reg, Region, Stride, UnOp};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// A statement that no launch function has.
#[derive(Debug)]
pub(super) struct Unexpected(pub(super) &'static str);

/// A function's text.
#[derive(Debug)]
pub(super) struct Text {
    /// Its statements, and the declarations of what they use.
    pub(super) body: String,
    /// The definitions of the helpers that it calls.
    pub(super) helpers: String,
    /// It calls functions of C's mathematics.
    pub(super) math: bool,
}

/// Functions that the text may call, one behind an empty line, each behind those that it calls itself.
const HELPERS: &str = include_str!("helpers.c");

/// Writes a launch function. `params` is an array of its parameters, `extents` one of its results, `numbers` and
/// `count` what a failed check says; that returns its row, and the end is -1. Helpers begin with `prefix`.
///
/// # Errors
/// It has a statement that is about more than scalars.
pub(super) fn of(module: &Module, prefix: &str) -> Result<Text, Unexpected> {
    let func = &module.launch;
    let mut used = BTreeSet::new();
    loop {
        let before = used.len();
        func.results.iter().for_each(|r| _ = used.insert(*r));
        uses(&func.body, &mut used);
        if used.len() == before {
            break;
        }
    }
    let mut w = Writer {
        module,
        func,
        prefix,
        used,
        helpers: BTreeSet::new(),
        math: false,
        out: String::new(),
        depth: 1,
        defined: BTreeSet::new(),
    };
    for (n, r) in func.params.iter().enumerate().filter(|(_, r)| w.used.contains(r)).collect::<Vec<_>>() {
        w.defined.insert(*r);
        w.line(&format!("r{} = (uint64_t)params[{n}];", r.as_u32()));
    }
    w.region(&func.body)?;
    for (n, r) in func.results.iter().enumerate() {
        w.line(&format!("extents[{n}] = (int64_t)r{};", r.as_u32()));
    }
    w.line("(void)params, (void)extents, (void)numbers, (void)count;");
    w.line("return -1;");
    let mut body = String::new();
    for ty in [LTy::I64, LTy::I32, LTy::Bool, LTy::F32] {
        let of_type = w.defined.iter().filter(|r| func.regs[**r].ty == ty);
        let names: Vec<String> = of_type.map(|r| format!("r{} = 0", r.as_u32())).collect();
        for names in names.chunks(8) {
            let _ = writeln!(body, "    {} {};", c(ty), names.join(", "));
        }
    }
    for (var, data) in func.vars.iter() {
        let _ = writeln!(body, "    {} m{} = 0;", c(data.ty), var.as_u32());
    }
    if w.out.contains("arena") {
        let _ = writeln!(body, "    unsigned char arena[{}] = {{0}};", module.arena);
    }
    let mut helpers = String::new();
    for text in HELPERS.rsplit("\n\n") {
        let name = text.split('(').next().and_then(|head| head.rsplit("NAME_").next()).unwrap_or_default();
        if w.helpers.contains(name) || helpers.contains(&format!("NAME_{name}(")) {
            helpers = format!("{}\n\n{helpers}", text.trim_end());
        }
    }
    let math = w.math || w.helpers.contains("scale");
    Ok(Text { body: body + &w.out, helpers, math })
}

fn c(ty: LTy) -> &'static str {
    match ty {
        LTy::I32 | LTy::Bool => "uint32_t",
        LTy::I64 => "uint64_t",
        LTy::F32 => "float",
    }
}

/// What statements that have to be there use; of others it is not asked.
fn uses(region: &Region, used: &mut BTreeSet<Reg>) {
    for stmt in region.iter().rev() {
        match &stmt.op {
            Op::Unary { dst, a, .. } | Op::Cast { dst, a, .. } if used.contains(dst) => {
                used.insert(*a);
            }
            Op::Binary { dst, a, b, .. } | Op::Compare { dst, a, b, .. } if used.contains(dst) => used.extend([*a, *b]),
            Op::Fma { dst, a, b, c } | Op::Select { dst, cond: a, a: b, b: c } if used.contains(dst) => {
                used.extend([*a, *b, *c]);
            }
            Op::Load { dst, addr, .. } if used.contains(dst) => {
                used.insert(addr.offset);
            }
            Op::Set { value, .. } => {
                used.insert(*value);
            }
            Op::Store { addr, value, .. } => used.extend([addr.offset, *value]),
            Op::Check { cond, args, .. } => used.extend(args.iter().chain([cond]).copied()),
            Op::If(i) => {
                used.insert(i.cond);
            }
            _ => {}
        }
        stmt.op.regions().for_each(|r| uses(r, used));
    }
}

struct Writer<'a> {
    module: &'a Module,
    func: &'a Func,
    prefix: &'a str,
    used: BTreeSet<Reg>,
    defined: BTreeSet<Reg>,
    helpers: BTreeSet<&'static str>,
    math: bool,
    out: String,
    depth: usize,
}

impl Writer<'_> {
    fn line(&mut self, text: &str) {
        let _ = writeln!(self.out, "{}{text}", "    ".repeat(self.depth));
    }

    /// A call of a helper.
    fn call(&mut self, name: &'static str, args: &str) -> String {
        self.helpers.insert(name);
        format!("{}{name}({args})", self.prefix)
    }

    /// A call of a function of C's mathematics.
    fn math(&mut self, name: &str, args: &str) -> String {
        self.math = true;
        format!("{name}({args})")
    }

    fn ty(&self, r: Reg) -> LTy {
        self.func.regs[r].ty
    }

    /// The value of a register as a signed one of 64 bits, in an unsigned type.
    fn wide(&self, r: Reg) -> String {
        match self.ty(r) {
            LTy::I32 => format!("(uint64_t)(int32_t)r{}", r.as_u32()),
            _ => format!("r{}", r.as_u32()),
        }
    }

    fn set(&mut self, dst: Reg, value: &str) {
        self.defined.insert(dst);
        self.line(&format!("r{} = {value};", dst.as_u32()));
    }

    fn inside(&mut self, region: &Region) -> Result<(), Unexpected> {
        self.depth += 1;
        let done = self.region(region);
        self.depth -= 1;
        done
    }

    fn region(&mut self, region: &Region) -> Result<(), Unexpected> {
        for stmt in region {
            self.statement(&stmt.op)?;
        }
        Ok(())
    }

    fn statement(&mut self, op: &Op) -> Result<(), Unexpected> {
        let unused = |dst: &Reg| !self.used.contains(dst);
        match op {
            Op::Const { dst, .. }
            | Op::Unary { dst, .. }
            | Op::Binary { dst, .. }
            | Op::Fma { dst, .. }
            | Op::Compare { dst, .. }
            | Op::Select { dst, .. }
            | Op::Cast { dst, .. }
            | Op::Get { dst, .. }
            | Op::Load { dst, .. }
                if unused(dst) => {}
            Op::Const { dst, bits } => {
                let value = match self.ty(*dst) {
                    LTy::I64 => format!("UINT64_C({bits})"),
                    LTy::I32 => format!("{}u", *bits as u32),
                    LTy::Bool => u32::from(*bits != 0).to_string(),
                    LTy::F32 => self.call("to_f", &format!("{:#x}u", *bits as u32)),
                };
                self.set(*dst, &value);
            }
            Op::Unary { dst, op, a } => {
                let value = self.unary(*op, *a);
                self.set(*dst, &value);
            }
            Op::Binary { dst, op, a, b } => {
                let value = self.binary(*op, *a, *b);
                self.set(*dst, &value);
            }
            Op::Fma { dst, a, b, c } => {
                let value = self.math("fmaf", &format!("r{}, r{}, r{}", a.as_u32(), b.as_u32(), c.as_u32()));
                self.set(*dst, &value);
            }
            Op::Compare { dst, op, a, b } => {
                let value = self.compare(*op, *a, *b);
                self.set(*dst, &value);
            }
            Op::Select { dst, cond, a, b } => {
                self.set(*dst, &format!("r{} ? r{} : r{}", cond.as_u32(), a.as_u32(), b.as_u32()));
            }
            Op::Cast { dst, op, a } => {
                let value = self.cast(*op, *a);
                self.set(*dst, &value);
            }
            Op::Get { dst, var } => self.set(*dst, &format!("m{}", var.as_u32())),
            Op::Set { var, value } => self.line(&format!("m{} = r{};", var.as_u32(), value.as_u32())),
            Op::Load { dst, ty, addr } => self.load(*dst, *ty, addr)?,
            Op::Store { ty, addr, value } => self.store(*ty, addr, *value)?,
            Op::Check { cond, check, args } => {
                self.line(&format!("if (!r{}) {{", cond.as_u32()));
                self.depth += 1;
                for (n, arg) in args.iter().enumerate() {
                    self.line(&format!("numbers[{n}] = (int64_t)r{};", arg.as_u32()));
                }
                self.line(&format!("*count = {};", args.len()));
                self.line(&format!("return {check};"));
                self.depth -= 1;
                self.line("}");
            }
            Op::If(i) => {
                self.line(&format!("if (r{}) {{", i.cond.as_u32()));
                self.inside(&i.then)?;
                if !i.els.is_empty() {
                    self.line("} else {");
                    self.inside(&i.els)?;
                }
                self.line("}");
            }
            // Nothing repeats in front of the grid.
            Op::For(_) | Op::While(_) | Op::Scope(_) | Op::Break(_) | Op::Leave(_) | Op::Continue(_) => {
                return Err(Unexpected("a loop"));
            }
            Op::Watch(_) | Op::Fetch { .. } => {}
            Op::Join { .. } | Op::Nibble { .. } | Op::Lanes(_) => return Err(Unexpected("lanes")),
            Op::Atomic(_) => return Err(Unexpected("an atomic operation")),
            Op::Contract(_) | Op::Reduce(_) | Op::Gather(_) | Op::Sort(_) | Op::Merge(_) => {
                return Err(Unexpected("an operation on matrices"));
            }
            Op::Print { .. } => return Err(Unexpected("`print`")),
        }
        Ok(())
    }

    /// The place of an element in the arena.
    fn place(&self, addr: &Addr) -> Result<String, Unexpected> {
        let Base::Space(space) = addr.base else { return Err(Unexpected("elements of an array")) };
        if addr.gather.is_some() || addr.stride != Stride::Const(0) {
            return Err(Unexpected("lanes"));
        }
        Ok(format!("arena + {} + r{}", self.module.spaces[space].offset, addr.offset.as_u32()))
    }

    fn load(&mut self, dst: Reg, ty: MemTy, addr: &Addr) -> Result<(), Unexpected> {
        let place = self.place(addr)?;
        let raw = match ty.size() {
            1 => "uint8_t",
            2 => "uint16_t",
            4 => "uint32_t",
            _ => "uint64_t",
        };
        let value = match ty {
            MemTy::Bool => "raw != 0".to_owned(),
            MemTy::I8 => "(uint32_t)(int8_t)raw".to_owned(),
            MemTy::I16 => "(uint32_t)(int16_t)raw".to_owned(),
            MemTy::F16 => self.call("from_half", "raw"),
            MemTy::BF16 => self.call("to_f", "(uint32_t)raw << 16"),
            MemTy::F32 => self.call("to_f", "raw"),
            MemTy::F8E4M3 | MemTy::F8E5M2 => return Err(Unexpected("8-bit floats in memory")),
            MemTy::U8 | MemTy::U16 | MemTy::I32 | MemTy::I64 => "raw".to_owned(),
        };
        self.defined.insert(dst);
        self.line(&format!("{{ {raw} raw; memcpy(&raw, {place}, sizeof raw); r{} = {value}; }}", dst.as_u32()));
        Ok(())
    }

    fn store(&mut self, ty: MemTy, addr: &Addr, value: Reg) -> Result<(), Unexpected> {
        let place = self.place(addr)?;
        let value = format!("r{}", value.as_u32());
        let (raw, value) = match ty {
            MemTy::Bool | MemTy::I8 | MemTy::U8 => ("uint8_t", format!("(uint8_t){value}")),
            MemTy::I16 | MemTy::U16 => ("uint16_t", format!("(uint16_t){value}")),
            MemTy::I32 => ("uint32_t", value),
            MemTy::I64 => ("uint64_t", value),
            MemTy::F32 => ("float", value),
            MemTy::F16 => ("uint16_t", format!("(uint16_t){}", self.call("to_half", &value))),
            MemTy::BF16 => ("uint16_t", format!("(uint16_t){}", self.call("to_bf16", &value))),
            MemTy::F8E4M3 | MemTy::F8E5M2 => return Err(Unexpected("8-bit floats in memory")),
        };
        self.line(&format!("{{ {raw} raw = {value}; memcpy({place}, &raw, sizeof raw); }}"));
        Ok(())
    }

    fn unary(&mut self, op: UnOp, a: Reg) -> String {
        let x = format!("r{}", a.as_u32());
        let float = self.ty(a) == LTy::F32;
        match op {
            UnOp::Neg if float => format!("-{x}"),
            UnOp::Neg => format!("0 - {x}"),
            UnOp::Not if self.ty(a) == LTy::Bool => format!("{x} ^ 1"),
            UnOp::Not => format!("~{x}"),
            UnOp::Abs if float => self.math("fabsf", &x),
            UnOp::Abs => format!("{x} >> {} ? 0 - {x} : {x}", if self.ty(a) == LTy::I32 { 31 } else { 63 }),
            UnOp::Sqrt => self.math("sqrtf", &x),
            UnOp::Floor => self.math("floorf", &x),
            UnOp::Ceil => self.math("ceilf", &x),
            UnOp::Trunc => self.math("truncf", &x),
            UnOp::Rint => self.math("rintf", &x),
            UnOp::RoundF16 => {
                let half = self.call("to_half", &x);
                self.call("from_half", &half)
            }
            UnOp::RoundBf16 => {
                let half = self.call("to_bf16", &x);
                self.call("to_f", &format!("{half} << 16"))
            }
        }
    }

    fn binary(&mut self, op: BinOp, a: Reg, b: Reg) -> String {
        let (x, y) = (format!("r{}", a.as_u32()), format!("r{}", b.as_u32()));
        let (sx, sy) = (self.wide(a), self.wide(b));
        let signed = format!("{sx}, {sy}");
        let bits = if self.ty(a) == LTy::I32 { 32 } else { 64 };
        let ty = self.ty(a);
        let narrow = |text: String| if ty == LTy::I32 { format!("(uint32_t){text}") } else { text };
        let larger = |op: &str| format!("(int64_t)({sx}) {op} (int64_t)({sy}) ? {x} : {y}");
        match op {
            BinOp::Add => format!("{x} + {y}"),
            BinOp::Sub => format!("{x} - {y}"),
            BinOp::Mul => format!("{x} * {y}"),
            BinOp::Div if ty == LTy::F32 => format!("{x} / {y}"),
            BinOp::Div => narrow(self.call("div_s", &signed)),
            BinOp::DivU => format!("{y} ? {x} / {y} : 0 - ({}){}", c(ty), 1),
            BinOp::DivFloor => narrow(self.call("div_floor", &signed)),
            BinOp::Rem => narrow(self.call("rem_s", &signed)),
            BinOp::RemU => format!("{y} ? {x} % {y} : {x}"),
            BinOp::RemFloor => narrow(self.call("rem_floor", &signed)),
            BinOp::Max if ty == LTy::F32 => self.call("max_f", &format!("{x}, {y}")),
            BinOp::Min if ty == LTy::F32 => format!("-{}", self.call("max_f", &format!("-{x}, -{y}"))),
            BinOp::Max => larger(">"),
            BinOp::Min => larger("<"),
            BinOp::MaxU => format!("{x} > {y} ? {x} : {y}"),
            BinOp::MinU => format!("{x} < {y} ? {x} : {y}"),
            BinOp::And => format!("{x} & {y}"),
            BinOp::Or => format!("{x} | {y}"),
            BinOp::Xor => format!("{x} ^ {y}"),
            BinOp::Shl => format!("{y} < {bits} ? {x} << {y} : 0"),
            BinOp::ShrU => format!("{y} < {bits} ? {x} >> {y} : 0"),
            BinOp::Shr => narrow(self.call("shr_s", &format!("{sx}, {y}"))),
            BinOp::Scale if ty == LTy::F32 => {
                self.math = true;
                self.call("scale", &format!("{x}, {y}"))
            }
            BinOp::Scale => x,
        }
    }

    fn compare(&mut self, op: CmpOp, a: Reg, b: Reg) -> String {
        let (x, y) = (format!("r{}", a.as_u32()), format!("r{}", b.as_u32()));
        let ty = self.ty(a);
        let (sign, unsigned) = match op {
            CmpOp::Eq => ("==", true),
            CmpOp::Ne => ("!=", true),
            CmpOp::Lt => ("<", false),
            CmpOp::Le => ("<=", false),
            CmpOp::Gt => (">", false),
            CmpOp::Ge => (">=", false),
            CmpOp::LtU => ("<", true),
            CmpOp::LeU => ("<=", true),
            CmpOp::GtU => (">", true),
            CmpOp::GeU => (">=", true),
        };
        match ty {
            LTy::I32 | LTy::I64 if !unsigned => {
                let as_signed = if ty == LTy::I32 { "(int32_t)" } else { "(int64_t)" };
                format!("{as_signed}{x} {sign} {as_signed}{y}")
            }
            _ => format!("{x} {sign} {y}"),
        }
    }

    fn cast(&mut self, op: Cast, a: Reg) -> String {
        let x = format!("r{}", a.as_u32());
        let signed = if self.ty(a) == LTy::I32 { "(int32_t)" } else { "(int64_t)" };
        match op {
            Cast::Sext => format!("(uint64_t)(int32_t){x}"),
            Cast::Wrap => format!("(uint32_t){x}"),
            Cast::IToF => format!("(float){signed}{x}"),
            Cast::UToF => format!("(float){x}"),
            Cast::FToI32 => {
                let args = format!("{x}, -2147483648.0f, 2147483648.0f, UINT64_C(0x80000000), 0x7fffffffu");
                format!("(uint32_t){}", self.call("to_int", &args))
            }
            Cast::FToU32 => {
                format!("(uint32_t){}", self.call("to_int", &format!("{x}, 0, 4294967296.0f, 0, 0xffffffffu")))
            }
            Cast::FToI64 => {
                let args =
                    format!("{x}, -9223372036854775808.0f, 9223372036854775808.0f, UINT64_C(1) << 63, INT64_MAX");
                self.call("to_int", &args)
            }
            Cast::FToU64 => self.call("to_u64", &x),
            Cast::Bits if self.ty(a) == LTy::F32 => self.call("of_f", &x),
            Cast::Bits => self.call("to_f", &x),
            Cast::IToB => format!("{x} != 0"),
            Cast::Zext | Cast::BToI => x,
        }
    }
}

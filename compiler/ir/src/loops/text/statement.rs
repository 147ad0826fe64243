//! The parser's statements.

use super::lex::TokenKind;
use super::parse::{Parser, Result};
use crate::loops::{
    Addr, Atomic, Base, BinOp, Cast, CmpOp, Contract, For, Gather, If, LTy, Lanes, Lists, MAX_DEPTH, Merge, Op,
    PrintPart, Records, Reduce, Reg, Region, Scope, Sort, Start, Stmt, Stride, UnOp, Watch, While,
};
use ptoc_isa::{AtomicOp, Oob};

impl Parser<'_> {
    /// Statements up to the closing brace, which is taken.
    pub(super) fn region(&mut self, depth: usize) -> Result<Region> {
        if depth > MAX_DEPTH {
            return self.wanted(&format!("at most {MAX_DEPTH} nested regions"));
        }
        let mut region = Region::new();
        while !self.take("}") {
            region.push(self.statement(depth)?);
        }
        Ok(region)
    }

    fn braces(&mut self, depth: usize) -> Result<Region> {
        self.expect("{")?;
        self.region(depth + 1)
    }

    /// Regions recurse through small functions only, so that deep nesting fits the stack.
    fn statement(&mut self, depth: usize) -> Result<Stmt> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return self.wanted("a statement or `}`");
        }
        match token.text {
            "for" => self.counted(depth),
            "lanes" => self.lanes(depth),
            "if" => self.conditional(depth),
            "while" => self.conditional_loop(depth),
            "scope" => self.scope(depth),
            _ => {
                let op = self.flat()?;
                Ok(Stmt { op, span: self.span()? })
            }
        }
    }

    fn counted(&mut self, depth: usize) -> Result<Stmt> {
        self.expect("for")?;
        let label = self.label()?;
        let index = self.typed_reg()?.0;
        self.expect("in")?;
        let lo = self.reg()?;
        self.expect("..")?;
        let hi = self.reg()?;
        self.expect("step")?;
        let step = self.number("a step")?;
        let span = self.span()?;
        let body = self.braces(depth)?;
        Ok(Stmt { op: Op::For(Box::new(For { label, index, lo, hi, step, body })), span })
    }

    fn lanes(&mut self, depth: usize) -> Result<Stmt> {
        self.expect("lanes")?;
        let lane = self.typed_reg()?.0;
        self.expect("in")?;
        let count = self.reg()?;
        let span = self.span()?;
        let body = self.braces(depth)?;
        Ok(Stmt { op: Op::Lanes(Box::new(Lanes { lane, count, body })), span })
    }

    fn conditional(&mut self, depth: usize) -> Result<Stmt> {
        self.expect("if")?;
        let cond = self.reg()?;
        let span = self.span()?;
        let then = self.braces(depth)?;
        let els = if self.take("else") { self.braces(depth)? } else { Region::new() };
        Ok(Stmt { op: Op::If(Box::new(If { cond, then, els })), span })
    }

    fn conditional_loop(&mut self, depth: usize) -> Result<Stmt> {
        self.expect("while")?;
        let label = self.label()?;
        let span = self.span()?;
        let head = self.braces(depth)?;
        let cond = self.reg()?;
        let body = self.braces(depth)?;
        Ok(Stmt { op: Op::While(Box::new(While { label, head, cond, body })), span })
    }

    fn scope(&mut self, depth: usize) -> Result<Stmt> {
        self.expect("scope")?;
        let label = self.label()?;
        let span = self.span()?;
        let body = self.braces(depth)?;
        Ok(Stmt { op: Op::Scope(Box::new(Scope { label, body })), span })
    }

    /// A statement without regions, up to its span.
    fn flat(&mut self) -> Result<Op> {
        let token = self.peek();
        let keywords = [
            "set", "store", "break", "continue", "leave", "contract", "reduce", "check", "print", "fetch", "join",
            "watch", "sort", "merge",
        ];
        if keywords.contains(&token.text) {
            self.advance();
        }
        Ok(match token.text {
            "set" => {
                let var = self.var()?;
                self.expect(",")?;
                Op::Set { var, value: self.reg()? }
            }
            "store" => {
                let ty = self.mem_ty()?;
                let addr = self.addr()?;
                self.expect(",")?;
                Op::Store { ty, addr, value: self.reg()? }
            }
            "fetch" => {
                let ty = self.mem_ty()?;
                Op::Fetch { ty, addr: self.addr()? }
            }
            "join" => {
                let op = self.reduction()?;
                let ty = self.mem_ty()?;
                let addr = self.addr()?;
                self.expect(",")?;
                Op::Join { op, ty, addr, value: self.reg()? }
            }
            "break" => Op::Break(self.label()?),
            "continue" => Op::Continue(self.label()?),
            "leave" => Op::Leave(self.label()?),
            "contract" => self.contract()?,
            "reduce" => self.reduce()?,
            "sort" => self.sort()?,
            "merge" => self.merge()?,
            "check" => {
                let cond = self.reg()?;
                self.expect(",")?;
                let check = self.number("a check's number")?;
                self.expect("(")?;
                Op::Check { cond, check, args: self.list(")", Parser::reg)? }
            }
            "print" => self.print()?,
            "watch" => self.watch()?,
            _ => {
                let (dst, ty) = self.typed_reg()?;
                self.expect("=")?;
                self.definition(dst, ty)?
            }
        })
    }

    /// What stands behind `r3: f32 =`.
    fn definition(&mut self, dst: Reg, ty: LTy) -> Result<Op> {
        let token = self.peek();
        if token.kind != TokenKind::Word {
            return self.wanted("an operation");
        }
        let name = token.text;
        self.advance();
        Ok(match name {
            "const" => Op::Const { dst, bits: self.constant(ty)? },
            "fma" => {
                let [a, b, c] = self.regs()?;
                Op::Fma { dst, a, b, c }
            }
            "select" => {
                let [cond, a, b] = self.regs()?;
                Op::Select { dst, cond, a, b }
            }
            "get" => Op::Get { dst, var: self.var()? },
            "load" => {
                let ty = self.mem_ty()?;
                Op::Load { dst, ty, addr: self.addr()? }
            }
            "nibble" => {
                let addr = self.addr()?;
                let mut moves = [0; 3];
                for n in &mut moves {
                    self.expect(",")?;
                    *n = self.number("how far a bit moves a half byte")?;
                }
                Op::Nibble { dst, addr, moves }
            }
            "atomic" => self.atomic(dst)?,
            "gather" => self.gather(dst)?,
            _ => {
                if let Some(op) = UnOp::from_name(name) {
                    let [a] = self.regs()?;
                    Op::Unary { dst, op, a }
                } else if let Some(op) = BinOp::from_name(name) {
                    let [a, b] = self.regs()?;
                    Op::Binary { dst, op, a, b }
                } else if let Some(op) = CmpOp::from_name(name) {
                    let [a, b] = self.regs()?;
                    Op::Compare { dst, op, a, b }
                } else if let Some(op) = Cast::from_name(name) {
                    let [a] = self.regs()?;
                    Op::Cast { dst, op, a }
                } else {
                    return Self::bad(token, format!("there is no operation `{name}`"));
                }
            }
        })
    }

    /// Registers with commas between them.
    fn regs<const N: usize>(&mut self) -> Result<[Reg; N]> {
        let mut regs = [Reg::from_u32(0); N];
        for (n, reg) in regs.iter_mut().enumerate() {
            if n > 0 {
                self.expect(",")?;
            }
            *reg = self.reg()?;
        }
        Ok(regs)
    }

    fn constant(&mut self, ty: LTy) -> Result<u64> {
        let token = self.peek();
        if let Some(hex) = token.text.strip_prefix("0x").filter(|_| token.kind == TokenKind::Number) {
            return match u64::from_str_radix(hex, 16) {
                Ok(bits) => {
                    self.advance();
                    Ok(bits)
                }
                Err(_) => self.wanted("at most 64 bits"),
            };
        }
        Ok(match ty {
            LTy::I64 => self.number::<i64>("an i64")? as u64,
            LTy::I32 => u64::from(self.number::<i32>("an i32")? as u32),
            LTy::F32 => {
                let value = self.number::<f32>("an f32")?;
                u64::from(value.to_bits())
            }
            LTy::Bool if self.take("true") => 1,
            LTy::Bool if self.take("false") => 0,
            LTy::Bool => return self.wanted("`true` or `false`"),
        })
    }

    fn addr(&mut self) -> Result<Addr> {
        let base =
            if self.peek().text.starts_with('s') { Base::Space(self.space()?) } else { Base::Tensor(self.tensor()?) };
        self.expect("[")?;
        let offset = self.reg()?;
        let mut addr = Addr { base, offset, stride: Stride::Const(0), gather: None };
        if self.take("]") {
            return Ok(addr);
        }
        self.expect(",")?;
        if self.take("stride") {
            addr.stride = self.stride()?;
            if self.take("]") {
                return Ok(addr);
            }
            self.expect(",")?;
        }
        self.expect("gather")?;
        addr.gather = Some(self.reg()?);
        self.expect("]")?;
        Ok(addr)
    }

    fn atomic(&mut self, dst: Reg) -> Result<Op> {
        let token = self.peek();
        let Some(op) = AtomicOp::from_name(token.text).filter(|_| token.kind == TokenKind::Word) else {
            return self.wanted("an atomic operation");
        };
        self.advance();
        let unsigned = self.take("unsigned");
        let ty = self.mem_ty()?;
        let addr = self.addr()?;
        self.expect(",")?;
        let value = self.reg()?;
        let mut expected = None;
        if self.take(",") {
            self.expect("expected")?;
            expected = Some(self.reg()?);
        }
        Ok(Op::Atomic(Box::new(Atomic { dst, op, unsigned, ty, addr, expected, value })))
    }

    /// `(512, 4)`
    fn pair(&mut self) -> Result<(i64, i64)> {
        self.expect("(")?;
        let first = self.number("a stride")?;
        self.expect(",")?;
        let second = self.number("a stride")?;
        self.expect(")")?;
        Ok((first, second))
    }

    /// `512` or `r3`
    fn stride(&mut self) -> Result<Stride> {
        Ok(match self.peek().kind {
            TokenKind::Number => Stride::Const(self.number("a stride")?),
            _ => Stride::Reg(self.reg()?),
        })
    }

    /// `(r3, 4)`
    fn strides(&mut self) -> Result<(Stride, Stride)> {
        self.expect("(")?;
        let first = self.stride()?;
        self.expect(",")?;
        let second = self.stride()?;
        self.expect(")")?;
        Ok((first, second))
    }

    fn contract(&mut self) -> Result<Op> {
        let ab_ty = self.mem_ty()?;
        self.expect("(")?;
        let [m, n, k] = self.regs()?;
        self.expect(")")?;
        self.expect(",")?;
        self.expect("d")?;
        let d_ty = self.mem_ty()?;
        let d = self.addr()?;
        let d_strides = self.strides()?;
        self.expect(",")?;
        self.expect("start")?;
        let start = if self.take("zero") {
            Start::Zero
        } else {
            let ty = self.mem_ty()?;
            let addr = self.addr()?;
            let (row, col) = self.strides()?;
            Start::At { addr, row, col, ty }
        };
        self.expect(",")?;
        self.expect("a")?;
        let a = self.addr()?;
        let a_strides = self.strides()?;
        self.expect(",")?;
        self.expect("b")?;
        let b = self.addr()?;
        let b_strides = self.strides()?;
        let mut part_of = None;
        if self.take(",") {
            ["part", "of", "("].into_iter().try_for_each(|token| self.expect(token))?;
            part_of = Some(self.regs()?);
            self.expect(")")?;
        }
        let contract = Contract { m, n, k, d, d_strides, d_ty, start, a, a_strides, b, b_strides, ab_ty, part_of };
        Ok(Op::Contract(Box::new(contract)))
    }

    /// What joins two elements.
    fn reduction(&mut self) -> Result<BinOp> {
        let token = self.peek();
        let Some(op) = BinOp::from_name(token.text).filter(|_| token.kind == TokenKind::Word) else {
            return self.wanted("an operation");
        };
        self.advance();
        Ok(op)
    }

    fn reduce(&mut self) -> Result<Op> {
        let op = self.reduction()?;
        let ty = self.mem_ty()?;
        self.expect("(")?;
        let [rows, cols] = self.regs()?;
        self.expect(")")?;
        self.expect(",")?;
        self.expect("d")?;
        let d = self.addr()?;
        let d_stride = self.number("a stride")?;
        self.expect(",")?;
        self.expect("a")?;
        let a = self.addr()?;
        let a_strides = self.pair()?;
        Ok(Op::Reduce(Box::new(Reduce { op, ty, rows, cols, d, d_stride, a, a_strides })))
    }

    fn gather(&mut self, dst: Reg) -> Result<Op> {
        let token = self.peek();
        let Some(oob) = Oob::from_name(token.text).filter(|_| token.kind == TokenKind::Word) else {
            return self.wanted("what an index outside means");
        };
        self.advance();
        let ty = self.mem_ty()?;
        self.expect("(")?;
        let [rows, cols] = self.regs()?;
        self.expect(")")?;
        self.expect(",")?;
        self.expect("d")?;
        let d = self.addr()?;
        let d_strides = self.pair()?;
        self.expect(",")?;
        self.expect("from")?;
        let table = self.addr()?;
        let total = self.reg()?;
        self.expect(",")?;
        self.expect("by")?;
        let unsigned = self.take("unsigned");
        let index = self.addr()?;
        let index_strides = self.pair()?;
        let (mut plus, mut places) = (None, None);
        while self.take(",") {
            if plus.is_none() && places.is_none() && self.take("plus") {
                plus = Some((self.addr()?, self.pair()?));
                continue;
            }
            self.expect("places")?;
            places = Some((self.addr()?, self.number("a stride")?));
            break;
        }
        Ok(Op::Gather(Box::new(Gather {
            dst,
            oob,
            ty,
            rows,
            cols,
            d,
            d_strides,
            table,
            total,
            index,
            unsigned,
            index_strides,
            plus,
            places,
        })))
    }

    fn sort(&mut self) -> Result<Op> {
        let ty = self.mem_ty()?;
        self.expect("(")?;
        let [rows, cols] = self.regs()?;
        self.expect(")")?;
        let mut matrix = |name: &str| -> Result<(Addr, (i64, i64))> {
            self.expect(",")?;
            self.expect(name)?;
            Ok((self.addr()?, self.pair()?))
        };
        let (d, d_strides) = matrix("d")?;
        let (a, a_strides) = matrix("a")?;
        let (index, index_strides) = matrix("index")?;
        Ok(Op::Sort(Box::new(Sort { ty, rows, cols, d, d_strides, a, a_strides, index, index_strides })))
    }

    fn merge(&mut self) -> Result<Op> {
        let ty = self.mem_ty()?;
        self.expect("d")?;
        let d = self.addr()?;
        let d_stride = self.number("a stride")?;
        self.expect(",")?;
        let lists = if self.take("runs") {
            let all = self.records()?;
            self.expect("of")?;
            Lists::Runs { all, length: self.reg()? }
        } else {
            let mut lists = Vec::new();
            loop {
                self.expect("list")?;
                lists.push(self.records()?);
                if !self.take(",") {
                    break Lists::Each(lists);
                }
            }
        };
        Ok(Op::Merge(Box::new(Merge { ty, d, d_stride, lists })))
    }

    fn records(&mut self) -> Result<Records> {
        Ok(Records { at: self.addr()?, stride: self.number("a stride")?, count: self.reg()? })
    }

    fn watch(&mut self) -> Result<Op> {
        let site = self.number("a statement's number")?;
        self.expect("(")?;
        let args = self.list(")", Parser::reg)?;
        let mut data = Vec::new();
        while self.take(",") {
            data.push((self.addr()?, self.pair()?));
        }
        Ok(Op::Watch(Box::new(Watch { site, args, data })))
    }

    fn print(&mut self) -> Result<Op> {
        let mut parts = Vec::new();
        if !self.starts_part() {
            return Ok(Op::Print { parts });
        }
        loop {
            parts.push(self.part()?);
            if !self.take(",") {
                return Ok(Op::Print { parts });
            }
        }
    }

    /// `print` may have no parts; the next statement never starts with one of these.
    fn starts_part(&self) -> bool {
        let token = self.peek();
        let words = ["unsigned", "matrix"];
        token.kind == TokenKind::Text
            || token.kind == TokenKind::Word
                && (words.contains(&token.text) || crate::loops::MemTy::from_name(token.text).is_some())
    }

    fn part(&mut self) -> Result<PrintPart> {
        if self.peek().kind == TokenKind::Text {
            return Ok(PrintPart::Text(self.text()?));
        }
        let matrix = self.take("matrix");
        let unsigned = self.take("unsigned");
        let ty = self.mem_ty()?;
        if !matrix {
            return Ok(PrintPart::Scalar { value: self.reg()?, ty, unsigned });
        }
        let addr = self.addr()?;
        self.expect("(")?;
        let [rows, cols] = self.regs()?;
        self.expect(")")?;
        let (row_stride, col_stride) = self.pair()?;
        Ok(PrintPart::Matrix { addr, ty, unsigned, rows, cols, row_stride, col_stride })
    }
}

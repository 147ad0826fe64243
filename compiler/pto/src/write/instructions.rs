//! Instructions.

use super::build::Given;
use super::{Res, Writer, unsaid};
use crate::attr::{Attr, AttrValue, Spelling};
use crate::lexer::Word;
use crate::ops::{Count, Dps, Form, Kind, OPS, Op as Row};
use crate::types::Type;
use ptoc_ir::tile::{Const, Inst, InstAttrs, Op, Operand, Ty, Value};
use ptoc_isa::{AtomicOp, Instr, Loc, Oob, OperandKind, Order, RoundMode};
use ptoc_tensor::DType;
use rustc_hash::FxHashMap;

/// Second forms of rows that are written as the first one is.
const SAME_FORM: [&str; 5] =
    ["TEXTRACT_TO_LEFT", "TEXTRACT_TO_RIGHT", "TEXTRACT_FROM_ACC", "TINSERT_TO_MAT", "TINSERT_FROM_ACC"];

/// Instructions whose text is another form than the language has.
const UNSAID: [&str; 6] = ["TFILLPAD", "TFILLPAD_INPLACE", "TFILLPAD_EXPAND", "THISTOGRAM", "TRANDOM", "TMRGSORT"];

/// Operations that are no instructions, and are written.
const WRITTEN: [&str; 30] = [
    "func.return",
    "pto.addptr",
    "pto.make_tensor_view",
    "pto.partition_view",
    "pto.load_scalar",
    "pto.store_scalar",
    "pto.alloc_tile",
    "pto.subset",
    "pto.set_validshape",
    "pto.tgetval",
    "pto.tsetval",
    "pto.get_block_idx",
    "pto.get_block_num",
    "pto.set_flag",
    "pto.wait_flag",
    "pto.set_flag_dyn",
    "pto.wait_flag_dyn",
    "pto.barrier",
    "pto.trap",
    "pto.tassign",
    "pto.tprint",
    "arith.constant",
    "arith.select",
    "arith.negf",
    "scf.for",
    "scf.if",
    "scf.while",
    "scf.yield",
    "scf.condition",
    "arith.index_cast",
];

/// Whether the writer has a use for an operation.
pub fn is_written(row: &Row) -> bool {
    let never = ["arith.ceildivsi", "arith.ceildivui", "arith.maxnumf", "arith.minnumf", "arith.bitcast", "arith.remf"];
    WRITTEN.contains(&row.name)
        || (row.name.starts_with("arith.") && !never.contains(&row.name) && row.name != "arith.index_castui")
        || row.instr.is_some_and(|i| !UNSAID.contains(&i.get().name))
}

/// The slot of an operand of an instruction whose sources change places.
fn turned(slot: &'static str) -> &'static str {
    match slot {
        "src" => "scalar",
        "scalar" => "src",
        "src0" => "src1",
        "src1" => "src0",
        slot => slot,
    }
}

/// A constant of 16 bits as an `f32`.
fn widened(value: Const) -> Const {
    let float = match value.ty {
        Ty::D(DType::BF16) => half::bf16::from_bits(value.bits as u16).to_f32(),
        _ => half::f16::from_bits(value.bits as u16).to_f32(),
    };
    Const { ty: Ty::D(DType::F32), bits: u64::from(float.to_bits()) }
}

/// A word as an attribute of an enumeration that MLIR prints.
fn word(of: &'static str, word: &str) -> AttrValue {
    AttrValue::Enum(Spelling::Inner, Word::new_static(of), Word::new(word))
}

impl Writer<'_> {
    pub(super) fn instruction(&mut self, inst: &Inst) -> Res<()> {
        let instr = inst.instr.get();
        if UNSAID.contains(&instr.name) {
            return unsaid(self.span, format!("`{}` as the language has it", instr.name));
        }
        if instr.name == "TRESHAPE" {
            return self.reshape(inst);
        }
        let row = OPS.iter().find(|op| op.instr.is_some_and(|i| i.get().name == self.row_name(instr)));
        let Some((row, Form::Dps(dps))) = row.map(|row| (row, &row.form)) else {
            return unsaid(self.span, format!("`{}`", instr.name));
        };
        if instr.name == "TEXPANDS"
            && let Some(Operand::Tile(t)) = inst.operands.first()
            && self.kernel.tiles[t.tile].ty.loc == Loc::Acc
        {
            let what = "an accumulator that starts at a number, unless that is 0 and what uses it first is a product \
                which every iteration comes to; begin with `if k.first { TMATMUL(..) } else { TMATMUL_ACC(..) }`";
            return unsaid(self.span, what);
        }
        let tile = |o: &Operand| match o {
            Operand::Tile(t) => Some(&self.kernel.tiles[t.tile].ty),
            _ => None,
        };
        let tiles = || inst.operands.iter().filter_map(tile);
        if instr.name.starts_with("TEXTRACT")
            && tiles().all(|ty| ty.loc == Loc::Vec)
            && tiles().any(|ty| ty.order != Order::Nd)
        {
            return unsaid(self.span, "`TEXTRACT` from Vec to Vec of columns: PTOAS has it of rows");
        }
        let (attrs, skipped) = self.attributes(row, inst)?;
        let mut given: Vec<Given> = Vec::new();
        let lies = inst.operands.iter().any(|o| matches!(o, Operand::Tile(t) if self.lies(t)));
        // A destination that is read, too, is an operand once more, and stands in the text once.
        let again =
            usize::from(instr.updates && inst.operands.len() > 1 && inst.operands.last() == inst.operands.first());
        let operands = &inst.operands[..inst.operands.len() - skipped - again];
        // Windows stand in front of what is said to be valid of tiles: their places may have to be computed.
        let mut windows = FxHashMap::default();
        for (k, operand) in operands.iter().enumerate() {
            if let Operand::View(view) = operand {
                let is_window = !instr.name.starts_with('M');
                windows.insert(k, if is_window { self.window(view, lies)? } else { self.view(view)? });
            }
        }
        for (k, operand) in operands.iter().enumerate() {
            let (name, ty) = match windows.remove(&k) {
                Some(window) => window,
                None => self.argument(operand)?,
            };
            given.push(("", name, Some(ty)));
        }
        self.slots(dps, instr, &mut given)?;
        for (given, operand) in given.iter_mut().zip(operands) {
            let is_number = dps.ins.iter().any(|s| s.name == given.0 && s.kind == Kind::Scalar);
            if let (Operand::Scalar(v), Some(Type::Index), true) = (operand, &given.2, is_number) {
                let (name, ty) = self.integer(*v)?;
                *given = (given.0, name, Some(ty));
            }
            if let (Operand::Scalar(v), "slope", super::Form::Text) = (operand, given.0, self.form) {
                let (name, ty) = self.in_f32(*v)?;
                *given = (given.0, name, Some(ty));
            }
        }
        if inst.attrs.reversed {
            given.iter_mut().for_each(|g| g.0 = turned(g.0));
        }
        self.scratch(dps, inst, &mut given)?;
        let order = |slot: &str| dps.ins.iter().chain(&dps.outs).position(|s| s.name == slot);
        given.sort_by_key(|g| order(g.0));
        let mut op = self.row_op(row, given);
        op.attrs = attrs;
        self.push(op);
        Ok(())
    }

    /// A reshape is another tile in the language, and another view of the same bytes in the text: the view is moved.
    fn reshape(&mut self, inst: &Inst) -> Res<()> {
        let [dst, src] = &inst.operands[..] else { return unsaid(self.span, "`TRESHAPE` of other operands") };
        let ((dst, dst_type), (src, src_type)) = (self.argument(dst)?, self.argument(src)?);
        let full = |ty: &Type| match ty {
            Type::TileBuf(tile) => tile.valid == (Some(tile.rows), Some(tile.cols)),
            _ => false,
        };
        if !full(&dst_type) || !full(&src_type) {
            return unsaid(self.span, "`TRESHAPE` of tiles that are not valid in full");
        }
        let op = self.op("pto.treshape", vec![("src", src, Some(src_type))]);
        let name = self.names.number();
        let view = self.define(op, name, Some(dst_type.clone()));
        let moved = vec![("src", view, Some(dst_type.clone())), ("dst", dst, Some(dst_type))];
        let op = self.op("pto.tmov", moved);
        self.push(op);
        Ok(())
    }

    /// The name of the table's row that stands in `ops.txt` for this one.
    fn row_name(&self, instr: &Instr) -> &'static str {
        match instr.name {
            n if SAME_FORM.contains(&n) => instr.written_name(),
            "TGATHER_MASK" => "TGATHER",
            n => n,
        }
    }

    fn argument(&mut self, operand: &Operand) -> Res<(Word, Type)> {
        match operand {
            Operand::Tile(tile) => self.tile(tile),
            Operand::View(view) => self.view(view),
            Operand::Scalar(v) => Ok((self.value(*v)?, self.ty(*v, self.span)?)),
        }
    }

    /// An `index` as an integer, which is what the dialect's operations ask for: the one that it was made of, if there
    /// is one.
    fn integer(&mut self, v: Value) -> Res<(Word, Type)> {
        let ty = |word: &'static str| Type::Element(Word::new_static(word));
        if let Some(n) = self.number(v) {
            let ty = ty(if i32::try_from(n).is_ok() { "i32" } else { "i64" });
            return Ok((self.constant(AttrValue::Int(i128::from(n), Some(ty.clone())), &ty), ty));
        }
        if let Some(Op::Convert { a, .. }) = self.defs.of(v)
            && matches!(self.kernel.values[*a].ty, Ty::D(d) if d.is_signed_int())
        {
            return Ok((self.value(*a)?, self.ty(*a, self.span)?));
        }
        let op = self.op("arith.index_cast", vec![("in", self.value(v)?, Some(Type::Index))]);
        let name = self.names.number();
        Ok((self.define(op, name, Some(ty("i64"))), ty("i64")))
    }

    /// A float as an `f32`, which a slope is: the one that it was rounded from, if there is one.
    fn in_f32(&mut self, v: Value) -> Res<(Word, Type)> {
        let ty = Type::Element(Word::new_static("f32"));
        let half = |d: DType| matches!(d, DType::F16 | DType::BF16);
        if !matches!(self.kernel.values[v].ty, Ty::D(d) if half(d)) {
            return Ok((self.value(v)?, self.ty(v, self.span)?));
        }
        let name = match self.defs.of(v) {
            Some(Op::Convert { a, round: RoundMode::Rint, saturate: false, .. })
                if self.kernel.values[*a].ty == Ty::D(DType::F32) =>
            {
                self.value(*a)?
            }
            Some(Op::Const { value, .. }) => self.literal(widened(*value))?,
            _ => {
                let given = vec![("in", self.value(v)?, Some(self.ty(v, self.span)?))];
                let (op, number) = (self.op("arith.extf", given), self.names.number());
                self.define(op, number, Some(ty.clone()))
            }
        };
        Ok((name, ty))
    }

    /// Operands in the order of the table are what is written, then what is read, without storage to work in.
    fn slots(&self, dps: &Dps, instr: &Instr, given: &mut [Given]) -> Res<()> {
        let slots: Vec<&str> = dps
            .outs
            .iter()
            .chain(&dps.ins)
            .filter(|s| s.name != "tmp" && s.count == Count::One)
            .map(|s| s.name)
            .collect();
        // A slot that may be left out is taken if there is one operand more.
        let optional = dps.ins.iter().filter(|s| s.name != "tmp" && s.count == Count::Optional).map(|s| s.name);
        let slots: Vec<&str> = slots.into_iter().chain(optional).take(given.len()).collect();
        if slots.len() != given.len() {
            return unsaid(self.span, format!("`{}` with {} operands", instr.name, given.len()));
        }
        given.iter_mut().zip(slots).for_each(|(g, slot)| g.0 = slot);
        Ok(())
    }

    /// Storage to work in: what the target wants, or a source's tile where the text wants a name and the target none.
    fn scratch(&mut self, dps: &Dps, inst: &Inst, given: &mut Vec<Given>) -> Res<()> {
        let Some(slot) = dps.ins.iter().find(|s| s.name == "tmp") else { return Ok(()) };
        if let Some(tile) = inst.scratch.first() {
            let (name, ty) = self.tile(tile)?;
            given.push(("tmp", name, Some(ty)));
            return Ok(());
        }
        // A gather by indices has a tile of their type to work in.
        let gather = inst.instr.get().name == "TGATHER";
        if slot.count == Count::One || gather {
            let source = given.iter().find(|g| {
                let read = if gather { g.0 == "by" } else { dps.ins.iter().any(|s| s.name == g.0) };
                read && matches!(g.2, Some(Type::TileBuf(_)))
            });
            match source.cloned() {
                Some((_, name, ty)) => given.push(("tmp", name, ty)),
                None => return unsaid(self.span, format!("`{}` without storage to work in", inst.instr.get().name)),
            }
        }
        Ok(())
    }

    /// Attributes, and how many operands at the end they stand for.
    fn attributes(&mut self, row: &Row, inst: &Inst) -> Res<(Vec<Attr>, usize)> {
        let instr = inst.instr.get();
        let InstAttrs { cmp, round, saturate, reversed, oob, fold, atomic, factors, relu, stepwise } = inst.attrs;
        // A scalar in front of the tile is divided by it.
        let reversed = reversed && !["pto.tdivs", "pto.trowexpandsub", "pto.trowexpanddiv"].contains(&row.name);
        if reversed || fold.is_some() || factors.is_some() || stepwise {
            return unsaid(self.span, format!("this mode of `{}`", instr.name));
        }
        let mut attrs = Vec::new();
        if let Some(cmp) = cmp {
            attrs.push(self.attr("cmpMode", word("cmp", cmp.name())));
        }
        if let Some(round) = round {
            let name = match round {
                RoundMode::Rint => "RINT",
                RoundMode::Round => "ROUND",
                RoundMode::Floor => "FLOOR",
                RoundMode::Ceil => "CEIL",
                RoundMode::Trunc => "TRUNC",
                RoundMode::Odd => "ODD",
            };
            attrs.push(self.attr("rmode", word("round_mode", name)));
        }
        if let Some(saturate) = saturate {
            attrs.push(self.attr("sat_mode", word("saturation_mode", if saturate { "ON" } else { "OFF" })));
        }
        if row.name == "pto.tquant" {
            attrs.push(self.attr("quant_type", word("quant_type", "INT8_SYM")));
        }
        let scatters = row.name == "pto.mscatter";
        if let Some(oob) = oob {
            let name = match oob {
                Oob::Undefined => "undefined",
                Oob::Clamp => "clamp",
                Oob::Wrap => "wrap",
                // Of what is scattered nothing is stored there.
                Oob::Zero if scatters => "skip",
                Oob::Zero => "zero",
            };
            let (attr, of) = if scatters { ("scatterOob", "scatter_oob") } else { ("gatherOob", "gather_oob") };
            attrs.push(self.attr(attr, word(of, name)));
        }
        match atomic {
            None => {}
            Some(AtomicOp::Add) if !scatters => attrs.push(self.attr("atomicType", word("atomic_type", "atomic_add"))),
            Some(op @ (AtomicOp::Add | AtomicOp::Max | AtomicOp::Min)) if scatters => {
                attrs.push(self.attr("scatterAtomicOp", word("scatter_atomic_op", op.name())));
            }
            Some(op) => return unsaid(self.span, format!("a `{}` that updates by `{op}`", instr.name)),
        }
        if relu {
            attrs.push(self.attr("reluPreMode", word("relu_pre_mode", "normal_relu")));
        }
        let skipped = self.choice(inst, &mut attrs)?;
        let Form::Dps(dps) = &row.form else { return Ok((attrs, skipped)) };
        if let Some(attr) = attrs.iter().find(|a| !dps.attrs.contains(&a.name.as_str())) {
            return unsaid(self.span, format!("this mode of `{}` (`{}`)", instr.name, attr.name));
        }
        Ok((attrs, skipped))
    }

    /// An operand that is a word in the language, and an attribute in the text.
    fn choice(&mut self, inst: &Inst, attrs: &mut Vec<Attr>) -> Res<usize> {
        let instr = inst.instr.get();
        let Some((spec, operand)) = instr.operands.last().zip(inst.operands.last()) else { return Ok(0) };
        let (OperandKind::Choice(words), Operand::Scalar(v)) = (spec.kind, operand) else { return Ok(0) };
        let number = self.defs.number(*v);
        let Some((chosen, _)) = words.iter().find(|(_, n)| Some(*n) == number) else {
            return unsaid(self.span, format!("this `{}` of `{}`", spec.name, instr.name));
        };
        match (instr.name, *chosen) {
            ("TCI", "Down") => attrs.push(self.attr("descending", AttrValue::Bool(true))),
            ("TCI", _) => {}
            ("TTRI", side) => {
                let upper = AttrValue::Int(i128::from(side == "Upper"), Some(Type::Element(Word::new_static("i32"))));
                attrs.push(self.attr("upperOrLower", upper));
            }
            ("TGATHER_MASK", pattern) => {
                let value = AttrValue::Enum(Spelling::Dotted, Word::new_static("mask_pattern"), Word::new(pattern));
                attrs.push(self.attr("maskPattern", value));
            }
            _ => return unsaid(self.span, format!("`{}` of `{}`", spec.name, instr.name)),
        }
        Ok(1)
    }
}

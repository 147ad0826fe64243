//! Operations in order, loops and branches.

use super::{Printer, Res, types, unsaid};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::ops::Form;
use crate::tree::{Op, Region};
use crate::types::Type;

/// The end of the launch.
const TRAP: &str = "AICORE inline void end_launch()\n{\n#ifdef __CPU_SIM\n    std::abort();\n#else\n    \
    trap();\n#endif\n}\n";

impl Printer<'_> {
    pub(super) fn ops(&mut self, ops: &[Op]) -> Res<()> {
        ops.iter().try_for_each(|op| self.op(op))
    }

    fn op(&mut self, op: &Op) -> Res<()> {
        self.note_types(op);
        let name = op.row.name;
        if !matches!(name, "arith.constant" | "pto.make_tensor_view" | "pto.partition_view" | "func.return") {
            self.comment(op);
        }
        match name {
            "func.return" => Ok(()),
            "arith.constant" => self.constant(op),
            "pto.make_tensor_view" => self.view(op),
            "pto.partition_view" => self.part(op),
            "pto.addptr" => {
                let (to, ty) = self.result(op)?;
                let text = format!("{} + {}", self.operand(op, "ptr")?, self.operand(op, "offset")?);
                self.line(format!("{} = {text};", types::param(&ty, &to, "__gm__ ")));
                Ok(())
            }
            "pto.load_scalar" => {
                let text = format!("{}[{}]", self.operand(op, "ptr")?, self.operand(op, "offset")?);
                self.define(op, text)
            }
            "pto.store_scalar" => {
                let (value, ptr) = (self.operand(op, "value")?, self.operand(op, "ptr")?);
                self.line(format!("{ptr}[{}] = {value};", self.operand(op, "offset")?));
                Ok(())
            }
            "pto.alloc_tile" => self.alloc(op),
            "pto.tassign" => {
                // The result is another name of the tile.
                let tile = self.operand(op, "tile")?;
                self.line(format!("TASSIGN({tile}, {});", self.operand(op, "addr")?));
                self.identifiers.set(op.results[0].name.clone(), tile);
                Ok(())
            }
            "pto.subset" => self.subset(op),
            "pto.treshape" => self.reshape(op),
            "pto.set_validshape" => {
                let (rows, cols) = (self.operand(op, "valid_row")?, self.operand(op, "valid_col")?);
                self.line(format!("{}.SetValidShape({rows}, {cols});", self.operand(op, "source")?));
                Ok(())
            }
            "pto.tgetval" => {
                let text = format!("{}.GetValue({})", self.operand(op, "src")?, self.operand(op, "offset")?);
                self.define(op, text)
            }
            "pto.tsetval" => {
                let (at, value) = (self.operand(op, "offset")?, self.operand(op, "val")?);
                self.line(format!("{}.SetValue({at}, {value});", self.operand(op, "dst")?));
                Ok(())
            }
            "pto.tprint" => {
                self.line(format!("TPRINT({});", self.operand(op, "src")?));
                Ok(())
            }
            "pto.trap" => {
                self.helpers.insert(TRAP);
                self.line("end_launch();");
                Ok(())
            }
            "pto.get_block_idx" => self.define(op, "get_block_idx()".into()),
            "pto.get_block_num" => self.define(op, "get_block_num()".into()),
            "pto.barrier" => {
                self.line(format!("pipe_barrier({});", word(op, "pipe")));
                Ok(())
            }
            "pto.set_flag" | "pto.wait_flag" | "pto.set_flag_dyn" | "pto.wait_flag_dyn" => self.flag(op),
            "scf.for" => self.for_loop(op),
            "scf.if" => self.branch(op),
            "scf.while" => self.while_loop(op),
            _ if name.starts_with("arith.") => self.scalar(op),
            _ => match &op.row.form {
                Form::Dps(dps) if op.row.instr.is_some() => self.instruction(op, dps),
                _ => unsaid(op.span, format!("`{name}`")),
            },
        }
    }

    fn flag(&mut self, op: &Op) -> Res<()> {
        let call = if op.row.name.starts_with("pto.set_flag") { "set_flag" } else { "wait_flag" };
        let id = match op.operand("event_id") {
            Some(id) => format!("static_cast<event_t>({})", self.value(&id.value.name)),
            None => word(op, "event_id"),
        };
        self.line(format!("{call}({}, {}, {id});", word(op, "src_pipe"), word(op, "dst_pipe")));
        Ok(())
    }

    /// A value that is not assigned to again.
    pub(super) fn define(&mut self, op: &Op, text: String) -> Res<()> {
        let (name, ty) = self.result(op)?;
        self.line(format!("const {} {name} = {text};", types::scalar(&ty, op.span)?));
        Ok(())
    }

    // ---- regions ---------------------------------------------------------------------------------------------------

    /// Variables for results, with their first values.
    fn variables(&mut self, op: &Op, inits: &[String]) -> Res<Vec<String>> {
        let mut names = Vec::new();
        for (n, result) in op.results.iter().enumerate() {
            let ty = types::scalar(self.ty(&result.name, op.span)?, op.span)?;
            let name = self.identifiers.give(&result.name, &result.name);
            match inits.get(n) {
                Some(init) => self.line(format!("{ty} {name} = {init};")),
                None => self.line(format!("{ty} {name};")),
            }
            names.push(name);
        }
        Ok(names)
    }

    fn inits(&self, op: &Op) -> Vec<String> {
        op.operands_of("inits").map(|o| self.value(&o.value.name)).collect()
    }

    /// Copies of the variables, which the arguments of a block are called after.
    fn arguments(&mut self, region: &Region, skip: usize, vars: &[String]) -> Res<()> {
        for (arg, var) in region.args.iter().skip(skip).zip(vars) {
            let Some(ty) = &arg.ty else { continue };
            self.types.insert(arg.name.clone(), ty.ty.clone());
            let name = self.identifiers.give(&arg.name, &arg.name);
            self.line(format!("const {} {name} = {var};", types::scalar(&ty.ty, arg.span)?));
        }
        Ok(())
    }

    /// A block in braces. What its last operation hands on is assigned to the variables.
    fn block(&mut self, region: &Region, vars: &[String]) -> Res<()> {
        let (ops, last) = match region.ops.split_last() {
            Some((last, ops)) if matches!(last.row.name, "scf.yield" | "scf.condition") => (ops, Some(last)),
            _ => (&region.ops[..], None),
        };
        self.ops(ops)?;
        let Some(last) = last else { return Ok(()) };
        let given: Vec<String> = last.operands_of("values").map(|o| self.value(&o.value.name)).collect();
        for (var, value) in vars.iter().zip(given) {
            self.line(format!("{var} = {value};"));
        }
        if let Some(condition) = last.operand("condition") {
            self.line(format!("if (!{}) break;", self.value(&condition.value.name)));
        }
        Ok(())
    }

    fn inner(&mut self, f: impl FnOnce(&mut Self) -> Res<()>) -> Res<()> {
        self.depth += 1;
        let result = f(self);
        self.depth -= 1;
        result
    }

    fn for_loop(&mut self, op: &Op) -> Res<()> {
        let vars = self.variables(op, &self.inits(op))?;
        let bounds = [self.operand(op, "lower")?, self.operand(op, "upper")?, self.operand(op, "step")?];
        let [region] = &op.regions[..] else { return unsaid(op.span, "a loop without a body") };
        let Some(index) = region.args.first() else { return unsaid(op.span, "a loop without an index") };
        self.types.insert(index.name.clone(), Type::Index);
        let name = self.identifiers.give(&index.name, &index.name);
        let [lower, upper, step] = bounds;
        let next = if step == "1" { format!("++{name}") } else { format!("{name} += {step}") };
        self.line(format!("for (int64_t {name} = {lower}; {name} < {upper}; {next}) {{"));
        self.inner(|p| {
            p.arguments(region, 1, &vars)?;
            p.block(region, &vars)
        })?;
        self.line("}");
        Ok(())
    }

    fn branch(&mut self, op: &Op) -> Res<()> {
        let vars = self.variables(op, &[])?;
        self.line(format!("if ({}) {{", self.operand(op, "condition")?));
        for (n, region) in op.regions.iter().enumerate() {
            if n > 0 {
                self.line("} else {");
            }
            self.inner(|p| p.block(region, &vars))?;
        }
        self.line("}");
        Ok(())
    }

    fn while_loop(&mut self, op: &Op) -> Res<()> {
        let vars = self.variables(op, &self.inits(op))?;
        let [head, body] = &op.regions[..] else { return unsaid(op.span, "a loop without a body") };
        self.line("while (true) {");
        self.inner(|p| {
            p.arguments(head, 0, &vars)?;
            p.block(head, &vars)?;
            p.arguments(body, 0, &vars)?;
            p.block(body, &vars)
        })?;
        self.line("}");
        Ok(())
    }
}

/// The word of an enumeration.
pub(super) fn word(op: &Op, attr: &str) -> String {
    match op.attr(attr).and_then(|a| a.value.as_ref()) {
        Some(AttrValue::Enum(_, _, word)) => word.to_string(),
        other => other.map(ToString::to_string).unwrap_or_else(|| Word::default().to_string()),
    }
}

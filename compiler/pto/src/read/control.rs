//! Loops and branches.

use super::arith::type_name;
use super::meaning::{Meaning, Scalar};
use super::{Reader, Res, not_read};
use crate::lexer::Word;
use crate::tree::{BlockArg, Op, Region};
use crate::types::Type;
use ptoc_diagnostics::Span;
use rustc_hash::FxHashMap;

/// A variable that a loop or a branch gives values to; a tile is always the same one.
enum Carried {
    Var { name: Word, ty: Type },
    Same(Meaning),
}

impl Reader<'_> {
    pub(super) fn control(&mut self, op: &Op) -> Res<()> {
        match op.row.name {
            "scf.for" => self.for_loop(op),
            "scf.if" => self.branch(op),
            "scf.while" => self.while_loop(op),
            // What ends a block is read with the block.
            _ => Ok(()),
        }
    }

    /// A variable for each initial value.
    fn carry(&mut self, args: &[BlockArg], inits: Vec<Meaning>, span: Span) -> Res<Vec<Carried>> {
        let mut carried = Vec::new();
        for (arg, init) in args.iter().zip(inits) {
            carried.push(match init {
                Meaning::Scalar(s) => {
                    let Some(ty) = type_name(&s.ty) else {
                        return not_read(arg.span, format!("a loop that carries a `{}` is not read", s.ty));
                    };
                    let name = self.give(&arg.name);
                    self.out.line(&format!("var {name}: {ty} = {};", s.text), span);
                    self.variables.insert(name.clone());
                    Carried::Var { name, ty: s.ty }
                }
                Meaning::Tile(_) | Meaning::View(_) => Carried::Same(init),
                _ => return not_read(arg.span, "a loop that carries a pointer or a part is not read"),
            });
        }
        Ok(carried)
    }

    fn meanings(&self, op: &Op, slot: &str) -> Res<Vec<Meaning>> {
        op.operands_of(slot).map(|o| self.meaning(&o.value).cloned()).collect()
    }

    fn carried_meaning(carried: &Carried) -> Meaning {
        match carried {
            Carried::Same(meaning) => meaning.clone(),
            Carried::Var { name, ty } => Meaning::Scalar(Scalar {
                text: name.to_string(),
                ty: ty.clone(),
                constant: None,
                natural: false,
                product: None,
            }),
        }
    }

    /// `a = x;` for what the block ends with. All are computed before the first is given.
    fn give_back(&mut self, carried: &[Carried], region: &Region) -> Res<()> {
        let Some(end) = region.ops.last().filter(|op| op.row.name == "scf.yield") else { return Ok(()) };
        let values = self.meanings(end, "values")?;
        let mut assignments = Vec::new();
        for (carried, value) in carried.iter().zip(values) {
            match (carried, value) {
                (Carried::Var { name, .. }, Meaning::Scalar(s)) if s.text == name.as_str() => {}
                (Carried::Var { name, .. }, Meaning::Scalar(s)) => assignments.push((name.clone(), s.text)),
                (Carried::Same(first), value) if same_storage(first, &value) => {}
                _ => {
                    let message = "a tile or view that is another one after each iteration is not read";
                    return not_read(end.span, message);
                }
            }
        }
        if assignments.len() > 1 {
            for (_, value) in &mut assignments {
                let name = self.give("next");
                self.out.line(&format!("let {name} = {value};"), end.span);
                *value = name.to_string();
            }
        }
        for (name, value) in assignments {
            self.out.line(&format!("{name} = {value};"), end.span);
        }
        Ok(())
    }

    fn for_loop(&mut self, op: &Op) -> Res<()> {
        if let Some(grid) = self.grid.take_if(|g| std::ptr::eq(g.looped, op)) {
            return self.grid_loop(&grid);
        }
        let region = &op.regions[0];
        let (index, args) = (&region.args[0], &region.args[1..]);
        let bound = |r: &Self, slot| r.scalar(&r.operand(op, slot)?.value);
        let (lower, upper, step) = (bound(self, "lower")?, bound(self, "upper")?, bound(self, "step")?);
        let inits = self.meanings(op, "inits")?;
        let carried = self.carry(args, inits, op.name_span)?;
        self.enter(region, true);
        let i = self.give(&index.name);
        let (at, natural) = self.loop_head(&i, [&lower, &upper, &step], index.ty.as_ref().map(|t| &t.ty), op.name_span);
        let ty = index.ty.as_ref().map_or(Type::Index, |t| t.ty.clone());
        let scalar = Scalar { text: at, ty, constant: None, natural, product: None };
        self.define(&index.name, vec![Meaning::Scalar(scalar)]);
        for (arg, carried) in args.iter().zip(&carried) {
            self.define(&arg.name, vec![Self::carried_meaning(carried)]);
        }
        self.ops(region)?;
        self.give_back(&carried, region)?;
        self.leave(region);
        self.out.close("}", op.span);
        self.results(op, carried.iter().map(Self::carried_meaning).collect());
        Ok(())
    }

    /// Opens the loop; the expression of its index, and whether that is never negative.
    fn loop_head(
        &mut self,
        i: &Word,
        [lower, upper, step]: [&Scalar; 3],
        ty: Option<&Type>,
        span: Span,
    ) -> (String, bool) {
        let natural = lower.natural && step.natural;
        let to_index = |s: &Scalar| match (s.constant, &s.ty) {
            (Some(n), _) => n.to_string(),
            (None, Type::Index) => s.text.clone(),
            (None, _) => format!("index({})", s.text),
        };
        let (lo, hi) = (to_index(lower), to_index(upper));
        let typed = |text: String| match ty.and_then(type_name).filter(|n| n != "index") {
            Some(name) => format!("{name}({text})"),
            None => text,
        };
        if step.constant == Some(1) {
            self.out.open(&format!("for {i} in {lo} .. {hi} {{"), span);
            return (typed(i.to_string()), natural);
        }
        let step = to_index(step);
        let n = self.give(&format!("{i}_n"));
        let count =
            if lo == "0" { format!("ceil_div({hi}, {step})") } else { format!("ceil_div({hi} - {lo}, {step})") };
        self.out.open(&format!("for {n} in 0 .. {count} {{"), span);
        let at = if lo == "0" { format!("{n} * {step}") } else { format!("{lo} + {n} * {step}") };
        self.out.line(&format!("let {i} = {at};"), span);
        (typed(i.to_string()), natural)
    }

    fn branch(&mut self, op: &Op) -> Res<()> {
        let condition = self.scalar(&self.operand(op, "condition")?.value)?;
        if let [region] = &op.regions[..]
            && let [trap] = &region.ops[..]
            && trap.row.name == "pto.trap"
        {
            // What does not end the launch holds from here on.
            let holds = match condition.text.strip_prefix('!') {
                Some(holds) => holds.to_string(),
                None => format!("!({})", condition.text),
            };
            self.out.line(&format!("assert({holds}, \"`pto.trap` ends the launch\");"), trap.span);
            return Ok(());
        }
        // A value that a branch may not give has one before it.
        let mut carried = Vec::new();
        for (i, ty) in op.result_types.iter().enumerate() {
            if !ty.ty.is_scalar() {
                carried.push(None);
                continue;
            }
            let Some(name) = type_name(&ty.ty) else {
                return not_read(ty.span, format!("numbers of `{}` are not read", ty.ty));
            };
            let var = self.give(op.results.get(i).map_or("value", |r| &r.name));
            let zero = if name == "bool" { "false".to_string() } else { format!("{name}(0)") };
            self.out.line(&format!("var {var}: {name} = {};", if name == "index" { "0" } else { &zero }), op.name_span);
            carried.push(Some(Carried::Var { name: var, ty: ty.ty.clone() }));
        }
        self.out.open(&format!("if {} {{", condition.text), op.name_span);
        let mut tiles: Vec<Vec<Meaning>> = Vec::new();
        for (n, region) in op.regions.iter().enumerate() {
            if n > 0 {
                self.out.reopen("} else {", op.name_span);
            }
            self.enter(region, false);
            // A variable may be another one where that is asked.
            let asked = if self.variables.iter().any(|v| condition.text.contains(v.as_str())) {
                None
            } else {
                Some(&condition.text)
            };
            let asked = asked.map(|text| if n > 0 { format!("!({text})") } else { text.clone() });
            self.conditions.push(asked.unwrap_or_else(|| "true".into()));
            self.ops(region)?;
            self.conditions.pop();
            tiles.push(self.branch_end(&mut carried, region)?);
            self.scopes.pop();
        }
        op.regions.iter().for_each(|r| self.forget(r));
        self.out.close("}", op.span);
        let mut results = Vec::new();
        for (i, carried) in carried.iter().enumerate() {
            match carried {
                Some(carried) => results.push(Self::carried_meaning(carried)),
                None => {
                    let all: Vec<&Meaning> = tiles.iter().filter_map(|t| t.get(i)).collect();
                    let same = all.len() == 2 && same_storage(all[0], all[1]);
                    match all.first().filter(|_| same) {
                        Some(first) => results.push((*first).clone()),
                        None => {
                            return not_read(op.name_span, "a branch that gives one of two tiles or views is not read");
                        }
                    }
                }
            }
        }
        self.results(op, results);
        Ok(())
    }

    /// Assigns the numbers that a branch ends with; gives all that it ends with.
    fn branch_end(&mut self, carried: &mut [Option<Carried>], region: &Region) -> Res<Vec<Meaning>> {
        let Some(end) = region.ops.last().filter(|op| op.row.name == "scf.yield") else { return Ok(Vec::new()) };
        let values = self.meanings(end, "values")?;
        for (carried, value) in carried.iter().zip(&values) {
            if let (Some(Carried::Var { name, .. }), Meaning::Scalar(s)) = (carried, value) {
                self.out.line(&format!("{name} = {};", s.text), end.span);
            }
        }
        Ok(values)
    }

    fn while_loop(&mut self, op: &Op) -> Res<()> {
        let (head, body) = (&op.regions[0], &op.regions[1]);
        let inits = self.meanings(op, "inits")?;
        let carried = self.carry(&head.args, inits, op.name_span)?;
        if is_condition(head) {
            return self.plain_while(op, &carried);
        }
        let go = self.give("go");
        self.out.line(&format!("var {go} = true;"), op.name_span);
        // What the head hands on, to the body and to what follows.
        let Some(end) = head.ops.last().filter(|op| op.row.name == "scf.condition") else {
            return not_read(op.span, "a loop without a condition is not read");
        };
        let mut handed = Vec::new();
        for ty in &op.result_types {
            let Some(name) = type_name(&ty.ty) else {
                return not_read(ty.span, format!("a loop that gives a `{}` is not read", ty.ty));
            };
            let var = self.give("passed");
            let zero = if name == "bool" { "false".to_string() } else { format!("{name}(0)") };
            self.out.line(&format!("var {var}: {name} = {zero};"), op.name_span);
            handed.push(Carried::Var { name: var, ty: ty.ty.clone() });
        }
        self.out.open(&format!("while {go} {{"), op.name_span);
        self.enter(head, true);
        self.forget(body);
        for (arg, carried) in head.args.iter().zip(&carried) {
            self.define(&arg.name, vec![Self::carried_meaning(carried)]);
        }
        self.ops(head)?;
        let condition = self.scalar(&self.operand(end, "condition")?.value)?;
        self.out.line(&format!("{go} = {};", condition.text), end.span);
        for (handed, value) in handed.iter().zip(self.meanings(end, "values")?) {
            if let (Carried::Var { name, .. }, Meaning::Scalar(s)) = (handed, value) {
                self.out.line(&format!("{name} = {};", s.text), end.span);
            }
        }
        self.leave(head);
        self.out.open(&format!("if {go} {{"), op.name_span);
        self.enter(body, true);
        for (arg, handed) in body.args.iter().zip(&handed) {
            self.define(&arg.name, vec![Self::carried_meaning(handed)]);
        }
        self.ops(body)?;
        self.give_back(&carried, body)?;
        self.leave(body);
        self.out.close("}", op.span);
        self.out.close("}", op.span);
        self.results(op, handed.iter().map(Self::carried_meaning).collect());
        Ok(())
    }

    /// A loop whose head is a condition, and hands on what it is given.
    fn plain_while(&mut self, op: &Op, carried: &[Carried]) -> Res<()> {
        let (head, body) = (&op.regions[0], &op.regions[1]);
        self.enter(body, true);
        for region in [head, body] {
            for (arg, carried) in region.args.iter().zip(carried) {
                self.define(&arg.name, vec![Self::carried_meaning(carried)]);
            }
        }
        let outer = std::mem::replace(&mut self.inlined, true);
        let computed = self.ops(head);
        self.inlined = outer;
        computed?;
        let condition = head.ops.last().and_then(|end| end.operand("condition"));
        let text = match condition {
            Some(condition) => self.scalar(&condition.value)?.text,
            None => return not_read(op.span, "a loop without a condition is not read"),
        };
        let defines = |inner: &&Op| condition.is_some_and(|c| inner.results.iter().any(|r| r.name == c.value.name));
        let place = head.ops.iter().find(defines).map_or(op.name_span, |inner| inner.span);
        self.out.open_pieces(&[("while ", op.name_span), (&text, place), (" {", op.name_span)], op.name_span);
        self.ops(body)?;
        self.give_back(carried, body)?;
        self.leave(body);
        self.out.close("}", op.span);
        self.results(op, carried.iter().map(Self::carried_meaning).collect());
        Ok(())
    }

    /// Defines the results of control flow, several of which may have one name.
    fn results(&mut self, op: &Op, meanings: Vec<Meaning>) {
        let mut meanings = meanings.into_iter();
        for result in &op.results {
            let own = meanings.by_ref().take(result.count.unwrap_or(1) as usize).collect();
            self.define(&result.name.clone(), own);
        }
    }
}

/// Most operations of a condition that stands where it is asked, each counted as often as it is written.
const MAX_CONDITION: usize = 32;

/// Whether the head of a loop computes its condition alone, which is short, and hands on its arguments in order.
fn is_condition(head: &Region) -> bool {
    let Some((end, ops)) = head.ops.split_last().filter(|(end, _)| end.row.name == "scf.condition") else {
        return false;
    };
    let args = head.args.iter().map(|arg| &arg.name);
    if !end.operands_of("values").map(|o| &o.value.name).eq(args) {
        return false;
    }
    let mut sizes = FxHashMap::default();
    ops.iter().all(|op| {
        let own: usize = op.operands.iter().filter_map(|o| sizes.get(&o.value.name)).sum::<usize>() + 1;
        sizes.extend(op.results.iter().map(|r| (r.name.clone(), own)));
        op.row.name.starts_with("arith.") && own <= MAX_CONDITION
    })
}

/// Whether two values are one tile, tiles of one type at one address, or one view.
fn same_storage(a: &Meaning, b: &Meaning) -> bool {
    match (a, b) {
        (Meaning::Tile(a), Meaning::Tile(b)) => {
            a.text == b.text || (a.addr.is_some() && a.addr == b.addr && a.ty == b.ty && a.is_whole() && b.is_whole())
        }
        (Meaning::View(a), Meaning::View(b)) => a == b,
        _ => false,
    }
}

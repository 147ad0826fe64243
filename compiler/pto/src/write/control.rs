//! Statements, the grid, loops and branches.

use super::{Level, Res, Writer, unsaid};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{self, BlockArg, Region, ResultName};
use crate::types::{Type, Typed};
use ptoc_diagnostics::codes;
use ptoc_ir::tile::{
    AddrKind, For, If, Kernel, Op, PrintPart, Region as Statements, Stmt, SyncOp, Ty, Value, Var, While,
};
use rustc_hash::FxHashMap;

impl Writer<'_> {
    /// A loop over all blocks that begins at this core's number.
    pub(super) fn grid(&mut self) -> Res<()> {
        let kernel = self.kernel;
        if kernel.grid.is_empty() {
            return self.body();
        }
        let mut count: Option<Word> = None;
        for dim in &kernel.grid {
            let extent = self.value(dim.extent)?;
            count = Some(match count {
                Some(before) => self.index_op("arith.muli", before, extent),
                None => extent,
            });
        }
        let Some(count) = count else { return Ok(()) };
        let first = self.block_number("pto.get_block_idx");
        let step = self.block_number("pto.get_block_num");
        let index = match &kernel.grid[..] {
            [only] => self.names.give(&only.name),
            _ => self.names.give("block"),
        };
        let (region, ()) = self.block(|w| {
            w.coordinates(&index)?;
            w.body()?;
            // One core runs several blocks: the next one begins when this one is done.
            let ended = matches!(kernel.body.last().map(|s| &s.op), Some(Op::Sync(SyncOp::Barrier(None))));
            if w.level == Level::Explicit && !ended {
                w.barrier(None);
            }
            Ok(())
        })?;
        self.push_for(index, [first, count, step], region, Vec::new(), Vec::new());
        Ok(())
    }

    /// Numbers of a block along the dimensions of the grid, the last one fastest.
    fn coordinates(&mut self, index: &Word) -> Res<()> {
        let kernel = self.kernel;
        let mut rest = index.clone();
        for (n, dim) in kernel.grid.iter().enumerate().rev() {
            self.naturals.insert(dim.index);
            let name = match n {
                0 => rest.clone(),
                _ => {
                    let extent = self.value(dim.extent)?;
                    let own = self.named_index_op("arith.remsi", rest.clone(), extent.clone(), &dim.name);
                    // It says what the grid is, whether or not the body asks for it.
                    self.declared.insert(own.clone());
                    rest = self.named_index_op(
                        "arith.floordivsi",
                        rest,
                        extent,
                        if n == 1 { kernel.grid[0].name.as_str() } else { "rest" },
                    );
                    self.declared.insert(rest.clone());
                    own
                }
            };
            self.known(dim.index, name);
        }
        Ok(())
    }

    /// The body of a block. Bytes at addresses that no statement begins are declared first, behind what has to hold.
    fn body(&mut self) -> Res<()> {
        let check = |op: &Op| matches!(op, Op::Check { .. });
        let passes = |op: &Op| op.is_pure() || check(op) || (self.bytes && matches!(op, Op::Alloc { .. }));
        let asking = self.kernel.body.iter().take_while(|s| passes(&s.op)).count();
        let asked = match self.kernel.grid.is_empty() {
            true => self.kernel.body[..asking].iter().rposition(|s| check(&s.op)).map_or(0, |last| last + 1),
            // In front of a grid it is asked once.
            false => 0,
        };
        let (first, rest) = self.kernel.body.split_at(asked);
        self.listed(first)?;
        let begun = begun(&self.kernel.body);
        for (tile, data) in &self.kernel.tiles {
            let used = self.uses.contains_key(&tile);
            if used && (self.bytes || !begun.contains(&tile)) && matches!(data.addr, AddrKind::Fixed(_)) {
                self.alloc(tile)?;
            }
        }
        self.listed(rest)
    }

    fn block_number(&mut self, name: &'static str) -> Word {
        let i64 = Type::Element(Word::new_static("i64"));
        let op = self.op(name, Vec::new());
        let number = self.names.number();
        let number = self.define(op, number, None);
        let op = self.op("arith.index_cast", vec![("in", number, Some(i64))]);
        let index = self.names.number();
        self.define(op, index, Some(Type::Index))
    }

    pub(super) fn index_op(&mut self, name: &'static str, a: Word, b: Word) -> Word {
        self.named_index_op(name, a, b, "")
    }

    fn named_index_op(&mut self, op: &'static str, a: Word, b: Word, name: &str) -> Word {
        let op = self.op(op, vec![("lhs", a, Some(Type::Index)), ("rhs", b, Some(Type::Index))]);
        let name = if name.is_empty() { self.names.number() } else { self.names.give(name) };
        self.define(op, name, None)
    }

    pub(super) fn statements(&mut self, region: &Statements) -> Res<()> {
        self.listed(region)
    }

    fn listed(&mut self, statements: &[Stmt]) -> Res<()> {
        statements.iter().try_for_each(|stmt| self.at(stmt.span, |w| w.statement(&stmt.op)))
    }

    fn statement(&mut self, op: &Op) -> Res<()> {
        match op {
            Op::Get { dst, var } => {
                let Some(name) = self.vars.get(var).cloned() else {
                    return unsaid(self.span, "a variable before it has a value");
                };
                self.known(*dst, name);
                Ok(())
            }
            Op::Set { var, value } => {
                let name = self.value(*value)?;
                self.vars.insert(*var, name);
                Ok(())
            }
            Op::Load { dst, tensor, offset } => self.element_access(*tensor, *offset, Some(*dst), None),
            Op::Store { tensor, offset, value } => self.element_access(*tensor, *offset, None, Some(*value)),
            Op::TileGet { dst, tile, row, col } => self.tile_element(tile, *row, *col, Some(*dst), None),
            Op::TileSet { tile, row, col, value } => self.tile_element(tile, *row, *col, None, Some(*value)),
            Op::Alloc { .. } if self.bytes => Ok(()),
            Op::Alloc { tile } => self.alloc(*tile),
            Op::Inst(inst) => self.instruction(inst),
            Op::Sync(sync) if self.level == Level::Explicit => self.sync(sync),
            Op::Sync(_) => unsaid(self.span, "flags at this level"),
            // What the source says has to hold: `assert`, and `where`, on which proofs rest.
            Op::Check { cond, check, .. }
                if [codes::ASSERTION_FAILED, codes::WHERE_FAILED].contains(&self.kernel.checks[*check].code) =>
            {
                self.trap(*cond)
            }
            // What else has to hold is the reader's to check again.
            Op::Check { .. } => Ok(()),
            Op::For(f) => self.for_loop(f),
            Op::If(i) => self.branch(i),
            Op::While(w) => self.while_loop(w),
            Op::Scope(s) if s.role.is_none() && !ptoc_ir::tile::jumps(&s.body) => self.statements(&s.body),
            Op::Scope(_) | Op::Leave(_) => unsaid(self.span, "a `return` in the middle of a function"),
            Op::Break(_) => unsaid(self.span, "`break`"),
            Op::Continue(_) => unsaid(self.span, "`continue`"),
            Op::Atomic { .. } => unsaid(self.span, "an atomic update of one element"),
            Op::Copy(_) => unsaid(self.span, "`copy`, a move element by element"),
            Op::Mma(_) => unsaid(self.span, "`mma`, a product element by element"),
            Op::Assign { .. } => unsaid(self.span, "an address that the launch gives"),
            Op::Print { parts } => self.print(parts),
            _ => self.scalar(op),
        }
    }

    /// The end of the launch unless the condition holds.
    fn trap(&mut self, cond: Value) -> Res<()> {
        let ty = Type::Element(Word::new_static("i1"));
        let yes = self.constant(AttrValue::Bool(true), &ty);
        let operands = vec![("lhs", self.value(cond)?, Some(ty.clone())), ("rhs", yes, Some(ty))];
        let not = self.op("arith.xori", operands);
        let number = self.names.number();
        let broken = self.define(not, number, None);
        let (region, ()) = self.block(|w| {
            w.simple("pto.trap", &[]);
            Ok(())
        })?;
        let mut op = self.op("scf.if", vec![("condition", broken, None)]);
        op.regions.push(region);
        self.push(op);
        Ok(())
    }

    fn print(&mut self, parts: &[PrintPart]) -> Res<()> {
        let [PrintPart::Tile(tile)] = parts else { return unsaid(self.span, "`print` of other than one tile") };
        let (name, ty) = self.tile(tile)?;
        let op = self.op("pto.tprint", vec![("src", name, Some(ty))]);
        self.push(op);
        Ok(())
    }

    // ---- loops and branches ----------------------------------------------------------------------------------------

    /// Variables that statements give values to which others see, in order.
    fn assigned(&self, regions: &[&Statements]) -> Vec<Var> {
        let mut found = Vec::new();
        regions.iter().for_each(|r| assigned(r, &mut found));
        found.retain(|var| {
            let inside: usize = regions.iter().map(|r| reads(r, *var)).sum();
            inside < self.reads.get(var).copied().unwrap_or(0) || regions.iter().any(|r| is_read_first(r, *var))
        });
        found.sort();
        found
    }

    fn var_type(&self, var: Var) -> Res<Type> {
        self.scalar_type(self.kernel.vars[var].ty, self.span)
    }

    /// What a variable holds; zero if nothing was given to it yet.
    fn var_value(&mut self, var: Var) -> Res<Word> {
        if let Some(name) = self.vars.get(&var) {
            return Ok(name.clone());
        }
        let ty = self.var_type(var)?;
        let zero = match self.kernel.vars[var].ty {
            Ty::BOOL => AttrValue::Bool(false),
            Ty::D(d) if d.is_float() => AttrValue::Float(Word::new_static("0.0e+00"), Some(ty.clone())),
            _ => AttrValue::Int(0, Some(ty.clone())),
        };
        Ok(self.constant(zero, &ty))
    }

    fn yield_vars(&mut self, name: &'static str, first: Option<Word>, vars: &[Var]) -> Res<()> {
        let mut given = Vec::new();
        given.extend(first.map(|condition| ("condition", condition, None)));
        for var in vars {
            given.push(("values", self.var_value(*var)?, Some(self.var_type(*var)?)));
        }
        if !given.is_empty() {
            let op = self.op(name, given);
            self.push(op);
        }
        Ok(())
    }

    /// New names for variables: arguments of a block, or results.
    fn fresh(&mut self, vars: &[Var]) -> Res<Vec<(Word, Type)>> {
        let mut fresh = Vec::new();
        for var in vars {
            let name = self.names.give(&self.kernel.vars[*var].name.clone());
            self.vars.insert(*var, name.clone());
            fresh.push((name, self.var_type(*var)?));
        }
        Ok(fresh)
    }

    fn args(&self, fresh: &[(Word, Type)]) -> Vec<BlockArg> {
        let span = self.span;
        let arg = |(name, ty): &(Word, Type)| BlockArg {
            name: name.clone(),
            span,
            ty: Some(Typed { ty: ty.clone(), span }),
            attrs: Vec::new(),
        };
        fresh.iter().map(arg).collect()
    }

    fn for_loop(&mut self, f: &For) -> Res<()> {
        let vars = self.assigned(&[&f.body]);
        let inits = vars.iter().map(|v| self.var_value(*v)).collect::<Res<Vec<Word>>>()?;
        let bounds = [self.value(f.lo)?, self.value(f.hi)?, self.index(1)];
        if self.defs.number(f.lo).is_some_and(|n| n >= 0) {
            self.naturals.insert(f.index);
        }
        self.forget_shapes();
        let index = self.name_of(f.index);
        let mut carried = Vec::new();
        let (mut region, ()) = self.block(|w| {
            w.known(f.index, index.clone());
            carried = w.fresh(&vars)?;
            w.statements(&f.body)?;
            w.yield_vars("scf.yield", None, &vars)
        })?;
        self.forget_shapes();
        region.args = self.args(&carried);
        let results = self.fresh(&vars)?;
        self.push_for(index, bounds, region, inits, results);
        Ok(())
    }

    fn push_for(
        &mut self,
        index: Word,
        bounds: [Word; 3],
        mut region: Region,
        inits: Vec<Word>,
        results: Vec<(Word, Type)>,
    ) {
        let [lower, upper, step] = bounds;
        let mut given = vec![("lower", lower, None), ("upper", upper, None), ("step", step, None)];
        given.extend(inits.into_iter().map(|v| ("inits", v, None)));
        let mut op = self.op("scf.for", given);
        region.args.insert(0, BlockArg { name: index, span: self.span, ty: None, attrs: Vec::new() });
        self.give_results(&mut op, results);
        op.regions.push(region);
        self.push(op);
    }

    fn give_results(&self, op: &mut crate::tree::Op, results: Vec<(Word, Type)>) {
        for (name, ty) in results {
            op.results.push(ResultName { name, count: None, span: self.span });
            op.result_types.push(Typed { ty, span: self.span });
        }
    }

    fn branch(&mut self, i: &If) -> Res<()> {
        let vars = self.assigned(&[&i.then, &i.els]);
        let condition = self.value(i.cond)?;
        // A variable without a value has one behind the branch if both give it.
        for var in &vars {
            let value = self.var_value(*var)?;
            self.vars.insert(*var, value);
        }
        let before = self.vars.clone();
        let mut regions = Vec::new();
        for side in [&i.then, &i.els] {
            if side.is_empty() && !regions.is_empty() && vars.is_empty() {
                break;
            }
            self.forget_shapes();
            self.vars.clone_from(&before);
            let (region, ()) = self.block(|w| {
                w.statements(side)?;
                w.yield_vars("scf.yield", None, &vars)
            })?;
            regions.push(region);
        }
        self.forget_shapes();
        self.vars = before;
        let results = self.fresh(&vars)?;
        let mut op = self.op("scf.if", vec![("condition", condition, None)]);
        self.give_results(&mut op, results);
        op.regions = regions;
        self.push(op);
        Ok(())
    }

    fn while_loop(&mut self, l: &While) -> Res<()> {
        let vars = self.assigned(&[&l.head, &l.body]);
        let inits = vars.iter().map(|v| self.var_value(*v)).collect::<Res<Vec<Word>>>()?;
        // The body sees values of the head.
        let handed: Vec<Value> = self.used_of_head(l);
        self.forget_shapes();
        let mut heads = Vec::new();
        let (mut head, condition) = self.block(|w| {
            heads = w.fresh(&vars)?;
            w.statements(&l.head)?;
            let condition = w.value(l.cond)?;
            w.yield_vars("scf.condition", Some(condition.clone()), &vars)?;
            Ok(condition)
        })?;
        // Where it is read, the condition is one expression.
        let defines = |op: &tree::Op| op.results.iter().any(|r| r.name == condition);
        if let Some(source) = head.ops.iter().find(|op| defines(op)).map(|op| op.source.clone()) {
            let inner = head.ops.iter_mut().filter(|op| op.row.name != "scf.condition");
            inner.for_each(|op| op.source = source.clone());
        }
        if !handed.is_empty() {
            return unsaid(self.span, "a `while` whose body uses what its condition computes");
        }
        head.args = self.args(&heads);
        self.forget_shapes();
        let mut bodies = Vec::new();
        let (mut body, ()) = self.block(|w| {
            bodies = w.fresh(&vars)?;
            w.statements(&l.body)?;
            w.yield_vars("scf.yield", None, &vars)
        })?;
        self.forget_shapes();
        body.args = self.args(&bodies);
        let results = self.fresh(&vars)?;
        let mut op = self.op("scf.while", inits.into_iter().map(|v| ("inits", v, None)).collect());
        self.give_results(&mut op, results);
        op.regions = vec![head, body];
        self.push(op);
        Ok(())
    }

    /// Values that the head of a loop defines and its body uses.
    fn used_of_head(&self, l: &While) -> Vec<Value> {
        let defined: Vec<Value> = l.head.iter().filter_map(|s| s.op.def()).collect();
        let mut used = Vec::new();
        uses(&l.body, &mut |v| {
            if defined.contains(&v) {
                used.push(v);
            }
        });
        used
    }
}

fn uses(region: &Statements, f: &mut dyn FnMut(Value)) {
    for stmt in region {
        stmt.op.for_each_use(f);
        stmt.op.regions().for_each(|r| uses(r, f));
    }
}

pub(super) fn assigned(region: &Statements, found: &mut Vec<Var>) {
    for stmt in region {
        if let Op::Set { var, .. } = &stmt.op
            && !found.contains(var)
        {
            found.push(*var);
        }
        stmt.op.regions().for_each(|r| assigned(r, found));
    }
}

/// How often a variable is asked for.
fn reads(region: &Statements, var: Var) -> usize {
    let own = |op: &Op| usize::from(matches!(op, Op::Get { var: v, .. } if *v == var));
    region.iter().map(|s| own(&s.op) + s.op.regions().map(|r| reads(r, var)).sum::<usize>()).sum()
}

/// Whether a variable may be asked for before statements give it a value.
fn is_read_first(region: &Statements, var: Var) -> bool {
    for stmt in region {
        match &stmt.op {
            Op::Get { var: v, .. } if *v == var => return true,
            Op::Set { var: v, .. } if *v == var => return false,
            op if op.regions().any(|r| is_read_first(r, var)) => return true,
            _ => {}
        }
    }
    false
}

/// How often each variable is asked for.
pub(super) fn reads_of(kernel: &Kernel) -> FxHashMap<Var, usize> {
    let mut found = FxHashMap::default();
    [&kernel.prologue, &kernel.body].into_iter().for_each(|r| all_reads(r, &mut found));
    found
}

fn all_reads(region: &Statements, found: &mut FxHashMap<Var, usize>) {
    for stmt in region {
        if let Op::Get { var, .. } = &stmt.op {
            *found.entry(*var).or_default() += 1;
        }
        stmt.op.regions().for_each(|r| all_reads(r, found));
    }
}

/// Tiles whose life a statement begins.
fn begun(region: &Statements) -> Vec<ptoc_ir::tile::Tile> {
    let mut found = Vec::new();
    for stmt in region {
        if let Op::Alloc { tile } = &stmt.op {
            found.push(*tile);
        }
        stmt.op.regions().for_each(|r| found.extend(begun(r)));
    }
    found
}

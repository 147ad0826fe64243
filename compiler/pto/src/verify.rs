//! What a tree has to be beyond its syntax: values are defined once and before their use, operands have the types that
//! the text says, and blocks end as they must.

pub(crate) mod constraints;
mod contracts;
mod numbers;
mod rules;

use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Function, Module, Op, Operand, Region, Value};
use crate::types::{Extent, TileBuf, Type, Typed};
use ptoc_diagnostics::{Diagnostic, Span, codes, suggest};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// The functions of a module by their names, the first one of each.
type Functions<'m> = BTreeMap<&'m str, &'m Function>;

/// The target that a module names, if it does.
fn arch_of(module: &Module) -> Option<constraints::Arch> {
    let attr = module.attrs.iter().find(|a| a.name == "pto.target_arch")?;
    match attr.value.as_ref()? {
        AttrValue::Str(name) => Some(constraints::Arch::named(name.trim_matches('"'))),
        _ => None,
    }
}

/// What is wrong with a module, at most one error a function.
pub fn check(module: &Module) -> Vec<Diagnostic> {
    let arch = arch_of(module);
    let functions = module.functions();
    let mut by_name = Functions::new();
    for f in &functions {
        by_name.entry(&f.name).or_insert(*f);
    }
    let mut out = Vec::new();
    let mut names: FxHashMap<&str, Span> = FxHashMap::default();
    for f in functions {
        if let Some(first) = names.insert(&f.name, f.name_span) {
            // Modules in a module may repeat a name: one has the other's declaration.
            if !module.items.iter().any(|i| matches!(i, crate::tree::Item::Module(_))) {
                let d = Diagnostic::error(codes::PTO_VALUE, f.name_span, format!("`@{}` is defined twice", f.name));
                out.push(d.with_secondary(first, "first definition"));
                continue;
            }
        }
        let mut checker =
            Checker { functions: &by_name, arch, constants: FxHashMap::default(), scopes: vec![FxHashMap::default()] };
        if let Err(d) = checker.function(f) {
            out.push(*d);
        }
    }
    out
}

type Res<T> = Result<T, Box<Diagnostic>>;

pub(crate) fn err<T>(code: ptoc_diagnostics::Code, span: Span, message: impl Into<String>) -> Res<T> {
    Err(Box::new(Diagnostic::error(code, span, message)))
}

struct Definition {
    types: Vec<Option<Type>>,
    span: Span,
    /// Whether it is a tile that was allocated, or a view of one.
    allocated: bool,
}

struct Checker<'m> {
    functions: &'m Functions<'m>,
    /// The target, if the module names it.
    arch: Option<constraints::Arch>,
    /// Constants that are whole numbers.
    constants: FxHashMap<Word, i128>,
    /// What is defined, inner regions last.
    scopes: Vec<FxHashMap<Word, Definition>>,
}

impl Checker<'_> {
    fn function(&mut self, f: &Function) -> Res<()> {
        for param in &f.params {
            self.define(&param.name, vec![param.ty.as_ref().map(|t| t.ty.clone())], param.span)?;
        }
        match &f.body {
            Some(body) => {
                self.ops(body)?;
                contracts::pipes(f, &|name| self.functions.get(name).map(|f| contracts::reserves(f)))?;
                self.ends(body, "func.return", &f.results, f.span)
            }
            None => Ok(()),
        }
    }

    fn define(&mut self, name: &Word, types: Vec<Option<Type>>, span: Span) -> Res<()> {
        // MLIR allows a name once in a function, outside of regions that do not see each other.
        if let Some(first) = self.scopes.iter().rev().find_map(|s| s.get(name)) {
            let d = Diagnostic::error(codes::PTO_VALUE, span, format!("`%{name}` is defined twice"));
            return Err(Box::new(d.with_label("second definition").with_secondary(first.span, "first definition")));
        }
        // What the name was in a region that is closed is something else.
        self.constants.remove(name);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), Definition { types, span, allocated: false });
        }
        Ok(())
    }

    fn region(&mut self, region: &Region) -> Res<()> {
        self.scopes.push(FxHashMap::default());
        for arg in &region.args {
            self.define(&arg.name, vec![arg.ty.as_ref().map(|t| t.ty.clone())], arg.span)?;
        }
        self.ops(region)?;
        self.scopes.pop();
        Ok(())
    }

    fn ops(&mut self, region: &Region) -> Res<()> {
        region.ops.iter().try_for_each(|op| self.op(op))
    }

    /// The type of a value where it is used; `None` if the text does not say it.
    fn type_of(&self, value: &Value) -> Res<Option<Type>> {
        let Some(found) = self.scopes.iter().rev().find_map(|s| s.get(&value.name)) else {
            let mut d = Diagnostic::error(codes::PTO_VALUE, value.span, format!("nothing defines `%{}`", value.name));
            let known = self.scopes.iter().flat_map(|s| s.keys()).map(|n| n.as_str());
            if let Some(near) = suggest(&value.name, known) {
                d = d.with_help(format!("did you mean `%{near}`?"));
            }
            return Err(Box::new(d));
        };
        let index = value.index.unwrap_or(0) as usize;
        match found.types.get(index) {
            Some(ty) => Ok(ty.clone()),
            None => {
                let message = format!("`%{}` is {} values, and this is number {index}", value.name, found.types.len());
                err(codes::PTO_VALUE, value.span, message)
            }
        }
    }

    fn op(&mut self, op: &Op) -> Res<()> {
        let mut types = Vec::with_capacity(op.operands.len());
        for operand in &op.operands {
            let ty = self.operand(operand)?;
            types.push(ty);
        }
        rules::check(op, &types, self.functions, &self.constants)?;
        contracts::check(op, &types)?;
        constraints::check(op, &types, self.arch, constraints::Text::Read)?;
        self.source_of_valid_shape(op)?;
        for region in &op.regions {
            self.region(region)?;
        }
        self.regions_end(op)?;
        let mut results = result_types(op, &types);
        if op.row.name == "pto.partition_view" && results.is_empty() {
            results.push(self.part(op, &types));
        }
        if let (Some(Some(Type::TileBuf(of))), Some(Some(Type::TileBuf(part)))) = (types.first(), results.first_mut())
            && op.row.name == "pto.subset"
        {
            let offset = |o: &Operand| self.constants.get(&o.value.name).and_then(|n| i64::try_from(*n).ok());
            let offsets: Vec<Extent> = op.operands_of("offsets").map(offset).collect();
            part.valid = part_valid(of, (part.rows, part.cols), &offsets);
        }
        self.results(op, results)?;
        let allocated = match op.row.name {
            "pto.alloc_tile" | "pto.declare_tile" => true,
            "pto.treshape" | "pto.bitcast" => op.operands.iter().any(|o| self.is_allocated(&o.value)),
            _ => false,
        };
        for result in op.results.iter().filter(|_| allocated) {
            let scope = self.scopes.last_mut();
            scope.and_then(|s| s.get_mut(&result.name)).into_iter().for_each(|d| d.allocated = true);
        }
        if let Some(n) = op.attr("value").and_then(|a| a.value.as_ref()?.int()) {
            self.constants.extend(op.results.iter().map(|r| (r.name.clone(), n)));
        }
        Ok(())
    }

    fn is_allocated(&self, value: &Value) -> bool {
        self.scopes.iter().rev().find_map(|s| s.get(&value.name)).is_some_and(|d| d.allocated)
    }

    /// `isLocallyBoundTileSource` of PTOAS: what is valid changes of a tile that is allocated here, or of a view of it.
    fn source_of_valid_shape(&self, op: &Op) -> Res<()> {
        let Some(source) = op.operand("source").filter(|_| op.row.name == "pto.set_validshape") else { return Ok(()) };
        if self.is_allocated(&source.value) {
            return Ok(());
        }
        let message = format!("`%{}` is not allocated here: what is valid of it cannot be changed", source.value.name);
        let note = "`pto.set_validshape` takes what `pto.alloc_tile` or `pto.declare_tile` gives, and `pto.treshape` \
                    and `pto.bitcast` of that; the result of `pto.tassign` is as valid as the tile that it binds";
        let d = Diagnostic::error(codes::PTO_TYPE, source.value.span, message);
        Err(Box::new(d.with_note(note)))
    }

    /// The type of a part that does not say it: its sizes, as far as they are constants.
    fn part(&self, op: &Op, types: &[Option<Type>]) -> Option<Type> {
        let element = types.first()?.as_ref()?.element()?.clone();
        let size = |o: &Operand| self.constants.get(&o.value.name).and_then(|n| i64::try_from(*n).ok());
        Some(Type::PartitionView(op.operands_of("sizes").map(size).collect(), element))
    }

    fn operand(&self, operand: &Operand) -> Res<Option<Type>> {
        let defined = self.type_of(&operand.value)?;
        match (&operand.ty, defined) {
            (Some(said), Some(defined)) if !same(&said.ty, &defined) => {
                let message = format!(
                    "`%{}` is {}, and not {}",
                    operand.value.name,
                    defined.with_article(),
                    said.ty.with_article()
                );
                let mut d = Diagnostic::error(codes::PTO_TYPE, said.span, message);
                if matches!(
                    (&said.ty, &defined),
                    (Type::Tile(..), Type::TileBuf(_)) | (Type::TileBuf(_), Type::Tile(..))
                ) {
                    d = d.with_note("`!pto.tile` is a value (level 1), `!pto.tile_buf` a buffer (levels 2 and 3)");
                }
                Err(Box::new(d.with_secondary(operand.value.span, "used here")))
            }
            (Some(said), None) => Ok(Some(said.ty.clone())),
            (_, defined) => Ok(defined),
        }
    }

    fn results(&mut self, op: &Op, types: Vec<Option<Type>>) -> Res<()> {
        let named: usize = op.results.iter().map(|r| r.count.unwrap_or(1) as usize).sum();
        if named != types.len() && (types.is_empty() || !op.results.is_empty()) {
            let (name, n) = (op.row.name, types.len());
            let message = format!("`{name}` has {n} results here, and {named} are named");
            return err(codes::PTO_VALUE, op.span, message);
        }
        let mut types = types.into_iter();
        for result in &op.results {
            let own: Vec<_> = types.by_ref().take(result.count.unwrap_or(1) as usize).collect();
            self.define(&result.name, own, result.span)?;
        }
        Ok(())
    }

    /// Whether the blocks of control flow yield what they must.
    fn regions_end(&self, op: &Op) -> Res<()> {
        match op.row.name {
            "scf.if" => {
                if !op.result_types.is_empty() && op.regions.len() < 2 {
                    return err(codes::PTO_TYPE, op.span, "an `scf.if` with results has an `else`");
                }
                op.regions.iter().try_for_each(|r| self.ends(r, "scf.yield", &op.result_types, op.span))
            }
            "scf.for" => self.ends(&op.regions[0], "scf.yield", &op.result_types, op.span),
            "scf.while" => {
                self.ends(&op.regions[0], "scf.condition", &op.result_types, op.span)?;
                let carried: Vec<Typed> = op.regions[0].args.iter().filter_map(|a| a.ty.clone()).collect();
                self.ends(&op.regions[1], "scf.yield", &carried, op.span)
            }
            _ => Ok(()),
        }
    }

    /// Whether a block ends with that operation and values of those types. It may be left out where there are none.
    fn ends(&self, region: &Region, with: &str, types: &[Typed], whole: Span) -> Res<()> {
        let early = region.ops.iter().rev().skip(1).find(|op| ENDS.contains(&op.row.name));
        if let Some(early) = early {
            return err(codes::PTO_TYPE, early.name_span, format!("`{}` stands at the end of a block", early.row.name));
        }
        let last = region.ops.last().filter(|op| ENDS.contains(&op.row.name));
        let Some(last) = last else {
            let optional = types.is_empty() && with == "scf.yield";
            return if optional {
                Ok(())
            } else {
                err(codes::PTO_TYPE, whole, format!("a block here ends with `{with}`"))
            };
        };
        if last.row.name != with {
            let message = format!("this block ends with `{with}`, and not with `{}`", last.row.name);
            return err(codes::PTO_TYPE, last.name_span, message);
        }
        let given: Vec<&Operand> = last.operands_of("values").collect();
        if given.len() != types.len() {
            let message = format!("{} values are needed here, and there are {}", types.len(), given.len());
            return err(codes::PTO_TYPE, last.span, message);
        }
        for (operand, ty) in given.iter().zip(types) {
            if let Some(said) = operand.ty.as_ref().filter(|said| !same(&said.ty, &ty.ty)) {
                let message = format!("this is {}, and {} is needed", said.ty.with_article(), ty.ty.with_article());
                return err(codes::PTO_TYPE, said.span, message);
            }
        }
        Ok(())
    }
}

/// What ends blocks.
const ENDS: [&str; 3] = ["func.return", "scf.yield", "scf.condition"];

/// Whether two types are one, however they are spelled.
pub(crate) fn same(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::TileBuf(a), Type::TileBuf(b)) => TileBuf { short: b.short, ..(**a).clone() } == **b,
        _ => a == b,
    }
}

/// Types of what an operation defines; `None` where the text does not say it.
pub(crate) fn result_types(op: &Op, operands: &[Option<Type>]) -> Vec<Option<Type>> {
    if !op.result_types.is_empty() {
        return op.result_types.iter().map(|t| Some(t.ty.clone())).collect();
    }
    let first = || operands.first().cloned().flatten();
    match op.row.name {
        "arith.constant" => vec![match op.attr("value").and_then(|a| a.value.as_ref()) {
            Some(AttrValue::Int(_, ty) | AttrValue::Float(_, ty)) => ty.clone(),
            _ => Some(Type::Element(Word::new_static("i1"))),
        }],
        "arith.cmpi" | "arith.cmpf" => vec![Some(Type::Element(Word::new_static("i1")))],
        "arith.select" => vec![operands.get(1).cloned().flatten()],
        "pto.get_block_idx" | "pto.get_block_num" | "pto.get_subblock_idx" | "pto.get_subblock_num" => {
            vec![Some(Type::Element(Word::new_static("i64")))]
        }
        "pto.eventid_array_get" => vec![Some(Type::Index)],
        "pto.subset" => vec![first().map(|ty| subset(op, ty))],
        name if name.starts_with("arith.") => vec![first()],
        _ => Vec::new(),
    }
}

/// What the type of a part of a tile says of what is valid in it, as `SubsetOp::inferReturnTypes` of PTOAS has it: an
/// extent is known where that of the tile and the offset are.
pub(crate) fn part_valid(of: &TileBuf, (rows, cols): (i64, i64), offsets: &[Extent]) -> (Extent, Extent) {
    let extent = |size: i64, valid: Extent, offset: Option<&Extent>| {
        let (valid, offset) = (valid?, (*offset?)?);
        // Where a tile is wider than what is valid of it, parts repeat with that period.
        let left = if valid > 0 { valid - offset.rem_euclid(valid) } else { 0 };
        Some(size.min(left))
    };
    (extent(rows, of.valid.0, offsets.first()), extent(cols, of.valid.1, offsets.get(1)))
}

/// The type of a part of a tile, all of which is valid.
fn subset(op: &Op, ty: Type) -> Type {
    let sizes = op.sizes();
    match (ty, &sizes[..]) {
        (Type::TileBuf(tile), [Some(rows), Some(cols)]) => {
            Type::TileBuf(Box::new(TileBuf { rows: *rows, cols: *cols, valid: (Some(*rows), Some(*cols)), ..*tile }))
        }
        (ty, _) => ty,
    }
}

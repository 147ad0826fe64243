//! Calls: what is called stands in the place of the call. Functions of the dialect call no function that calls them.
//! What that comes to is counted first, so that a short text does not become an endless one.

use super::{Res, not_read};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Function, Module, Op, Operand, Region, Value};
use ptoc_diagnostics::{Diagnostic, Span};
use rustc_hash::{FxHashMap, FxHashSet};

/// Most operations of a function with what it calls, and of all kernels of a module that call others.
const MAX_OPS: usize = 100_000;

/// Calls within calls.
const MAX_CALLS: usize = 64;

/// Names of functions that others call: these are no kernels, unless they say that they are an entry.
pub(super) fn called(module: &Module) -> FxHashSet<Word> {
    let mut names = FxHashSet::default();
    for body in module.functions().iter().filter_map(|f| f.body.as_ref()) {
        calls(body, &mut |callee, _| {
            names.insert(callee.clone());
        });
    }
    let is_entry = |f: &&Function| f.attrs.iter().any(|a| a.name == "pto.entry");
    let entries: FxHashSet<&Word> = module.functions().into_iter().filter(is_entry).map(|f| &f.name).collect();
    names.retain(|name| !entries.contains(name));
    names
}

fn callee(op: &Op) -> Option<&Word> {
    match op.attr("callee").filter(|_| op.row.name == "func.call")?.value.as_ref()? {
        AttrValue::Symbol(name) => Some(name),
        _ => None,
    }
}

fn calls(region: &Region, f: &mut dyn FnMut(&Word, Span)) {
    for op in &region.ops {
        if let Some(name) = callee(op) {
            f(name, op.span);
        }
        op.regions.iter().for_each(|r| calls(r, f));
    }
}

/// How many operations functions have with what they call.
pub(super) struct Sizes<'m> {
    functions: FxHashMap<&'m Word, &'m Function>,
    known: FxHashMap<&'m Word, Result<usize, Diagnostic>>,
    /// Functions whose size is being found.
    open: Vec<&'m Word>,
    /// Operations of functions that were expanded.
    expanded: usize,
}

impl<'m> Sizes<'m> {
    pub fn of(module: &'m Module) -> Sizes<'m> {
        let mut functions = FxHashMap::default();
        for f in module.functions().into_iter().filter(|f| f.body.is_some()) {
            functions.entry(&f.name).or_insert(f);
        }
        Sizes { functions, known: FxHashMap::default(), open: Vec::new(), expanded: 0 }
    }

    /// The size of a function, if it does not call itself, and what it calls is there.
    pub fn size(&mut self, f: &'m Function) -> Res<usize> {
        if let Some(known) = self.known.get(&f.name) {
            return known.clone().map_err(Box::new);
        }
        self.open.push(&f.name);
        let mut size = 0;
        let found = f.body.as_ref().map_or(Ok(()), |body| self.region(body, &mut size)).map(|()| size);
        self.open.pop();
        self.known.insert(&f.name, found.clone().map_err(|d| *d));
        found
    }

    fn region(&mut self, region: &'m Region, size: &mut usize) -> Res<()> {
        for op in &region.ops {
            *size += match callee(op) {
                Some(name) => 1 + self.called(op, name)?,
                None => 1,
            };
            if *size > MAX_OPS {
                return not_read(op.span, format!("a function of more than {MAX_OPS} operations with what it calls"));
            }
            for region in &op.regions {
                self.region(region, size)?;
            }
        }
        Ok(())
    }

    fn called(&mut self, op: &Op, name: &Word) -> Res<usize> {
        let Some(f) = self.functions.get(name).copied() else {
            return not_read(op.span, format!("`@{name}` is declared, and is not in this file"));
        };
        if self.open.contains(&name) {
            return not_read(op.span, format!("`@{name}` calls itself: there is no stack on a core"));
        }
        if self.open.len() >= MAX_CALLS {
            return not_read(op.span, format!("calls that are nested more than {MAX_CALLS} levels deep"));
        }
        self.size(f)
    }
}

/// The function without calls; `None` if it has none.
pub(super) fn expanded<'m>(f: &'m Function, sizes: &mut Sizes<'m>) -> Res<Option<Function>> {
    let size = sizes.size(f)?;
    let Some(body) = &f.body else { return Ok(None) };
    let mut any = false;
    calls(body, &mut |_, _| any = true);
    if !any {
        return Ok(None);
    }
    sizes.expanded += size;
    if sizes.expanded > MAX_OPS {
        return not_read(f.name_span, format!("more than {MAX_OPS} operations of functions with what they call"));
    }
    let mut inliner = Inliner { functions: &sizes.functions, calls: 0 };
    let body = inliner.region(body, &mut Names::default())?;
    Ok(Some(Function { body: Some(body), ..f.clone() }))
}

/// What values are called where a function stands in the place of a call.
#[derive(Clone, Default)]
struct Names {
    /// Arguments and results, which are other values.
    values: FxHashMap<(Word, u32), Value>,
    /// What is put behind all other names.
    suffix: String,
}

impl Names {
    fn word(&self, name: &Word) -> Word {
        if self.suffix.is_empty() { name.clone() } else { Word::new(format!("{name}{}", self.suffix)) }
    }

    fn value(&self, value: &Value) -> Value {
        match self.values.get(&(value.name.clone(), value.index.unwrap_or(0))) {
            Some(other) => Value { span: value.span, ..other.clone() },
            None => Value { name: self.word(&value.name), ..value.clone() },
        }
    }
}

struct Inliner<'s, 'm> {
    functions: &'s FxHashMap<&'m Word, &'m Function>,
    calls: u32,
}

impl Inliner<'_, '_> {
    fn region(&mut self, region: &Region, names: &mut Names) -> Res<Region> {
        let mut args = region.args.clone();
        args.iter_mut().for_each(|arg| arg.name = names.word(&arg.name));
        let mut ops = Vec::with_capacity(region.ops.len());
        for op in &region.ops {
            match callee(op) {
                Some(name) => self.call(op, name, names, &mut ops)?,
                None => {
                    let op = self.op(op, names)?;
                    ops.push(op);
                }
            }
        }
        Ok(Region { args, ops })
    }

    fn op(&mut self, op: &Op, names: &mut Names) -> Res<Op> {
        let mut made = op.clone();
        made.operands.iter_mut().for_each(|o| o.value = names.value(&o.value));
        made.results.iter_mut().for_each(|r| r.name = names.word(&r.name));
        made.regions = op.regions.iter().map(|r| self.region(r, names)).collect::<Res<_>>()?;
        Ok(made)
    }

    fn call(&mut self, op: &Op, name: &Word, names: &mut Names, ops: &mut Vec<Op>) -> Res<()> {
        let found = self.functions.get(name).copied();
        let Some((callee, body)) = found.and_then(|f| Some((f, f.body.as_ref()?))) else {
            return not_read(op.span, format!("`@{name}` is declared, and is not in this file"));
        };
        self.calls += 1;
        let mut inner = Names { values: FxHashMap::default(), suffix: format!(".{name}{}", self.calls) };
        for (param, operand) in callee.params.iter().zip(&op.operands) {
            inner.values.insert((param.name.clone(), 0), names.value(&operand.value));
        }
        let mut made = self.region(body, &mut inner)?;
        let mut given: Vec<Operand> = Vec::new();
        if made.ops.last().is_some_and(|op| op.row.name == "func.return") {
            given = made.ops.pop().map(|op| op.operands).unwrap_or_default();
        }
        let mut given = given.into_iter();
        for result in &op.results {
            for index in 0..result.count.unwrap_or(1) {
                if let Some(value) = given.next() {
                    names.values.insert((result.name.clone(), index), value.value);
                }
            }
        }
        ops.append(&mut made.ops);
        Ok(())
    }
}

//! Calls: what is called stands in the place of the call. Functions of the dialect call no function that calls them.

use super::{Res, not_read};
use crate::attr::AttrValue;
use crate::lexer::Word;
use crate::tree::{Function, Module, Op, Operand, Region, Value};
use ptoc_diagnostics::Span;
use rustc_hash::{FxHashMap, FxHashSet};

/// Most operations of a function with what it calls.
const MAX_OPS: usize = 100_000;

/// Names of functions that others call: these are no kernels, unless they say that they are an entry.
pub(super) fn called(module: &Module) -> FxHashSet<Word> {
    let mut names = FxHashSet::default();
    for body in module.functions().iter().filter_map(|f| f.body.as_ref()) {
        calls(body, &mut |callee, _| {
            names.insert(callee.clone());
        });
    }
    let entry = |name: &Word| {
        let mut named = module.functions().into_iter().filter(|f| f.name == *name);
        named.any(|f| f.attrs.iter().any(|a| a.name == "pto.entry"))
    };
    names.retain(|name| !entry(name));
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

/// The function without calls; `None` if it has none.
pub(super) fn expanded(module: &Module, f: &Function) -> Res<Option<Function>> {
    let Some(body) = &f.body else { return Ok(None) };
    let mut any = false;
    calls(body, &mut |_, _| any = true);
    if !any {
        return Ok(None);
    }
    let mut inliner = Inliner { functions: module.functions(), open: vec![f.name.clone()], calls: 0, ops: 0 };
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

struct Inliner<'m> {
    functions: Vec<&'m Function>,
    /// Functions whose calls are being replaced.
    open: Vec<Word>,
    calls: u32,
    ops: usize,
}

impl Inliner<'_> {
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
        self.ops += 1;
        if self.ops > MAX_OPS {
            return not_read(op.span, format!("a function of more than {MAX_OPS} operations with what it calls"));
        }
        let mut made = op.clone();
        made.operands.iter_mut().for_each(|o| o.value = names.value(&o.value));
        made.results.iter_mut().for_each(|r| r.name = names.word(&r.name));
        made.regions = op.regions.iter().map(|r| self.region(r, names)).collect::<Res<_>>()?;
        Ok(made)
    }

    fn call(&mut self, op: &Op, name: &Word, names: &mut Names, ops: &mut Vec<Op>) -> Res<()> {
        let found = self.functions.iter().copied().find(|f| f.name == *name && f.body.is_some());
        let Some((callee, body)) = found.and_then(|f| Some((f, f.body.as_ref()?))) else {
            return not_read(op.span, format!("`@{name}` is declared, and is not in this file"));
        };
        if self.open.contains(name) {
            return not_read(op.span, format!("`@{name}` calls itself: there is no stack on a core"));
        }
        self.calls += 1;
        let mut inner = Names { values: FxHashMap::default(), suffix: format!(".{name}{}", self.calls) };
        for (param, operand) in callee.params.iter().zip(&op.operands) {
            inner.values.insert((param.name.clone(), 0), names.value(&operand.value));
        }
        self.open.push(name.clone());
        let mut made = self.region(body, &mut inner)?;
        self.open.pop();
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

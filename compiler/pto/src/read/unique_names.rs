//! Names that are defined once in a function. MLIR allows a name in every region that does not see the other ones, and
//! its printer numbers values so. What reads a function goes by names, and not by regions.

use crate::lexer::Word;
use crate::tree::{Function, Item, Module, Region};
use rustc_hash::{FxHashMap, FxHashSet};

/// The module with a name of its own for each value of a function; `None` if it is so. The first value of a name keeps
/// it.
pub(super) fn renamed(module: &Module) -> Option<Module> {
    let repeats = |f: &&Function| {
        let mut once = true;
        let mut seen = FxHashSet::default();
        each_definition(f, &mut |name| once &= seen.insert(name));
        !once
    };
    module.functions().iter().any(repeats).then(|| {
        let mut module = module.clone();
        rename(&mut module);
        module
    })
}

fn rename(module: &mut Module) {
    for item in &mut module.items {
        match item {
            Item::Module(inner) => rename(inner),
            Item::Function(f) => {
                let mut renamer = Renamer { fresh: Fresh::of(f), defined: FxHashSet::default(), scopes: Vec::new() };
                renamer.defined.extend(f.params.iter().map(|p| p.name.clone()));
                f.body.iter_mut().for_each(|body| renamer.region(body));
            }
        }
    }
}

/// Names that a function has not.
#[derive(Default)]
pub(super) struct Fresh {
    taken: FxHashSet<Word>,
    /// The last number behind a name.
    numbers: FxHashMap<Word, usize>,
}

impl Fresh {
    pub fn of(f: &Function) -> Fresh {
        let mut taken = FxHashSet::default();
        each_definition(f, &mut |name| {
            taken.insert(name.clone());
        });
        Fresh { taken, numbers: FxHashMap::default() }
    }

    /// The name with a number, which is that of no other value.
    pub fn name(&mut self, like: &Word) -> Word {
        let number = self.numbers.entry(like.clone()).or_insert(1);
        loop {
            *number += 1;
            let name = Word::new(format!("{like}_{number}"));
            if self.taken.insert(name.clone()) {
                return name;
            }
        }
    }
}

fn each_definition<'f>(f: &'f Function, found: &mut dyn FnMut(&'f Word)) {
    f.params.iter().for_each(|p| found(&p.name));
    f.body.iter().for_each(|body| in_region(body, found));
}

fn in_region<'f>(region: &'f Region, found: &mut dyn FnMut(&'f Word)) {
    region.args.iter().for_each(|arg| found(&arg.name));
    for op in &region.ops {
        op.regions.iter().for_each(|r| in_region(r, found));
        op.results.iter().for_each(|r| found(&r.name));
    }
}

struct Renamer {
    fresh: Fresh,
    /// Names that a value has.
    defined: FxHashSet<Word>,
    /// New names by the old ones, inner regions last.
    scopes: Vec<FxHashMap<Word, Word>>,
}

impl Renamer {
    fn region(&mut self, region: &mut Region) {
        self.scopes.push(FxHashMap::default());
        region.args.iter_mut().for_each(|arg| self.define(&mut arg.name));
        for op in &mut region.ops {
            for operand in &mut op.operands {
                let name = &mut operand.value.name;
                if let Some(new) = self.scopes.iter().rev().find_map(|s| s.get(name)) {
                    *name = new.clone();
                }
            }
            op.regions.iter_mut().for_each(|r| self.region(r));
            op.results.iter_mut().for_each(|r| self.define(&mut r.name));
        }
        self.scopes.pop();
    }

    fn define(&mut self, name: &mut Word) {
        if self.defined.insert(name.clone()) {
            return;
        }
        let new = self.fresh.name(name);
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.clone(), new.clone());
        }
        *name = new;
    }
}

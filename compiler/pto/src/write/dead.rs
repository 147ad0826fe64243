//! The last walks over what was written. Dead code elimination: values that nothing uses, as those that only run-time
//! checks wanted, elements of arrays that nothing is in, and numbers that a loop hands on for nobody. Numbers that are
//! the same in each iteration stand in front of their loop, and each in front of the first operation that asks for it
//! ([`super::schedule`]), as in the IR of a text that is read. Then values without a name are numbered without gaps.

use crate::lexer::Word;
use crate::tree::{Op, Operand, Region};
use crate::types::Type;
use rustc_hash::{FxHashMap, FxHashSet};

/// Drops pure operations whose results are not used, but for these, and elements of arrays that nothing is in.
pub(super) fn eliminate(ops: &mut Vec<Op>, kept: &FxHashSet<Word>, elements: &FxHashSet<Word>) {
    let mut uses = FxHashMap::default();
    uses.extend(kept.iter().map(|name| (name.clone(), 1)));
    // All elements are declared of an array whose number a loop knows.
    let mut arrays = Vec::new();
    bound(ops, &mut arrays);
    let spare = |op: &Op| {
        let known = op.results.first().is_some_and(|r| elements.contains(&r.name));
        known && op.result_types.first().is_some_and(|t| !arrays.contains(&t.ty))
    };
    count(ops, &mut uses);
    while unhanded(ops, &mut uses) {}
    sweep(ops, &mut uses, &spare);
}

/// Types of tiles that are bound to addresses of the launch.
fn bound(ops: &[Op], arrays: &mut Vec<Type>) {
    for op in ops {
        arrays.extend(op.result_types.first().filter(|_| op.row.name == "pto.tassign").map(|t| t.ty.clone()));
        op.regions.iter().for_each(|r| bound(&r.ops, arrays));
    }
}

/// Drops numbers that `scf.for` hands from iteration to iteration where none asks for them, nor what follows. Whether
/// there were any.
fn unhanded(ops: &mut [Op], uses: &mut FxHashMap<Word, u32>) -> bool {
    let mut changed = false;
    for op in ops {
        for region in &mut op.regions {
            changed |= unhanded(&mut region.ops, uses);
        }
        if op.row.name != "scf.for" {
            continue;
        }
        for n in (0..op.results.len()).rev() {
            let result = op.results[n].name.clone();
            let [region] = &mut op.regions[..] else { continue };
            let (Some(arg), Some(last)) = (region.args.get(n + 1), region.ops.last_mut()) else { continue };
            let Some(given) = last.operands.get(n).map(|o| o.value.name.clone()) else { continue };
            // It may hand itself on.
            let own = u32::from(given == arg.name);
            let times = |name: &Word| uses.get(name).copied().unwrap_or_default();
            if times(&result) > 0 || times(&arg.name) > own {
                continue;
            }
            let inits = op.operands.iter().position(|o| o.slot == "inits").unwrap_or_default();
            let init = op.operands.remove(inits + n).value.name;
            for name in [&init, &given] {
                uses.entry(name.clone()).and_modify(|n| *n = n.saturating_sub(1));
            }
            last.operands.remove(n);
            if last.operands.is_empty() {
                region.ops.pop();
            }
            region.args.remove(n + 1);
            op.results.remove(n);
            op.result_types.remove(n);
            changed = true;
        }
    }
    changed
}

fn count(ops: &[Op], uses: &mut FxHashMap<Word, u32>) {
    for op in ops {
        for operand in &op.operands {
            *uses.entry(operand.value.name.clone()).or_default() += 1;
        }
        op.regions.iter().for_each(|r| count(&r.ops, uses));
    }
}

/// Uses come behind definitions, so one walk from the end finds what becomes unused, too.
fn sweep(ops: &mut Vec<Op>, uses: &mut FxHashMap<Word, u32>, spare: &dyn Fn(&Op) -> bool) {
    for n in (0..ops.len()).rev() {
        let op = &mut ops[n];
        op.regions.iter_mut().for_each(|r| sweep(&mut r.ops, uses, spare));
        let used = op.results.iter().any(|r| uses.get(&r.name).is_some_and(|n| *n > 0));
        if used || !(is_pure(op) || spare(op)) {
            continue;
        }
        for operand in &ops[n].operands {
            if let Some(n) = uses.get_mut(&operand.value.name) {
                *n -= 1;
            }
        }
        ops.remove(n);
    }
}

pub(super) fn is_pure(op: &Op) -> bool {
    op.row.name.starts_with("arith.")
        || ["pto.make_tensor_view", "pto.partition_view", "pto.addptr", "pto.get_block_idx", "pto.get_block_num"]
            .contains(&op.row.name)
}

/// Moves numbers of places and addresses in front of loops whose iterations do not change them, and of branches: of all
/// but the loop over blocks. What stands several times is written once, but for the names in `kept`.
pub(super) fn hoist(ops: &mut Vec<Op>, kept: &FxHashSet<Word>) {
    outwards(ops, &steps_over_blocks(ops));
    common(ops, kept, &mut FxHashMap::default(), &mut FxHashMap::default());
}

/// The number of cores, and what is made of it: the step of the loop over blocks.
fn steps_over_blocks(ops: &[Op]) -> FxHashSet<Word> {
    let mut steps = FxHashSet::default();
    for op in ops {
        let cast = op.row.name == "arith.index_cast" && op.operands.iter().all(|o| steps.contains(&o.value.name));
        if op.row.name == "pto.get_block_num" || cast {
            steps.extend(op.results.iter().map(|r| r.name.clone()));
        }
    }
    steps
}

/// Whether an operation can be carried out where nothing asks for it: it is of numbers that places and addresses are
/// made of, and never traps.
fn is_free(op: &Op) -> bool {
    const FREE: [&str; 8] = [
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.minsi",
        "arith.maxsi",
        "arith.cmpi",
        "arith.select",
        "arith.index_cast",
    ];
    let place = |ty: &Type| *ty == Type::Index || matches!(ty, Type::Element(e) if e.as_str() == "i64");
    FREE.contains(&op.row.name) && op.operands.iter().all(|o| o.ty.as_ref().is_none_or(|t| place(&t.ty)))
}

/// The operation, its operands, its attributes and the type of its result.
type Key = (&'static str, Vec<Word>, String);

/// Gives numbers that are computed several times the name of the first. `known` has those that are seen here.
fn common(ops: &mut [Op], kept: &FxHashSet<Word>, known: &mut FxHashMap<Key, Word>, names: &mut FxHashMap<Word, Word>) {
    let mut own = Vec::new();
    for op in ops {
        for operand in &mut op.operands {
            if let Some(first) = names.get(&operand.value.name) {
                operand.value.name = first.clone();
            }
        }
        let pure = op.row.name.starts_with("arith.") && op.row.name != "arith.constant";
        if let Some(result) = op.results.first().filter(|_| pure) {
            let operands = op.operands.iter().map(|o| o.value.name.clone()).collect();
            let rest = op.attrs.iter().map(ToString::to_string).chain(op.result_types.iter().map(|t| t.ty.to_string()));
            let key = (op.row.name, operands, rest.collect());
            match known.get(&key) {
                Some(first) if !kept.contains(&result.name) => {
                    names.insert(result.name.clone(), first.clone());
                }
                Some(_) => {}
                None => {
                    own.push(key.clone());
                    known.insert(key, result.name.clone());
                }
            }
        }
        op.regions.iter_mut().for_each(|r| common(&mut r.ops, kept, known, names));
    }
    own.iter().for_each(|key| drop(known.remove(key)));
}

fn outwards(ops: &mut Vec<Op>, over_blocks: &FxHashSet<Word>) {
    let mut at = 0;
    while at < ops.len() {
        ops[at].regions.iter_mut().for_each(|r| outwards(&mut r.ops, over_blocks));
        let blocks = ops[at].operand("step").is_some_and(|o| over_blocks.contains(&o.value.name));
        if !blocks && ["scf.for", "scf.if"].contains(&ops[at].row.name) {
            let moved: Vec<Op> = ops[at].regions.iter_mut().flat_map(invariants).collect();
            let count = moved.len();
            ops.splice(at..at, moved);
            at += count;
        }
        at += 1;
    }
}

/// Takes the numbers out of a region whose operands it does not define.
fn invariants(body: &mut Region) -> Vec<Op> {
    let mut defined: FxHashSet<Word> = body.args.iter().map(|a| a.name.clone()).collect();
    let mut moved = Vec::new();
    for op in std::mem::take(&mut body.ops) {
        if is_free(&op) && op.operands.iter().all(|o| !defined.contains(&o.value.name)) {
            moved.push(op);
        } else {
            defined.extend(op.results.iter().map(|r| r.name.clone()));
            body.ops.push(op);
        }
    }
    moved
}

/// Operations whose operands may change places.
const COMMUTES: [&str; 13] = [
    "arith.addi",
    "arith.addf",
    "arith.muli",
    "arith.mulf",
    "arith.minsi",
    "arith.minui",
    "arith.minimumf",
    "arith.maxsi",
    "arith.maxui",
    "arith.maximumf",
    "arith.andi",
    "arith.ori",
    "arith.xori",
];

/// Such operands stand in the order of the text, constants last: so they do in the IR of a text that is read.
pub(super) fn order(ops: &mut [Op]) {
    let mut places = FxHashMap::default();
    ops.iter_mut().for_each(|op| ordered(op, &mut places));
}

fn ordered(op: &mut Op, places: &mut FxHashMap<Word, usize>) {
    if COMMUTES.contains(&op.row.name) {
        // An argument of the function stands in front of all.
        let place = |o: &Operand| places.get(&o.value.name).copied().unwrap_or(0);
        if let [a, b] = &mut op.operands[..]
            && place(a) > place(b)
        {
            std::mem::swap(&mut a.value, &mut b.value);
        }
    }
    for region in &mut op.regions {
        for arg in &region.args {
            places.insert(arg.name.clone(), places.len() + 1);
        }
        region.ops.iter_mut().for_each(|op| ordered(op, places));
    }
    let constant = op.row.name == "arith.constant";
    for result in &op.results {
        places.insert(result.name.clone(), if constant { usize::MAX } else { places.len() + 1 });
    }
}

/// Numbers the values whose names are numbers, in the order of the text.
pub(super) fn renumber(ops: &mut [Op]) {
    let mut numbers = Numbers::default();
    ops.iter().for_each(|op| numbers.of(op));
    ops.iter_mut().for_each(|op| rename(op, &numbers.names));
}

/// Whether a value has a number for a name.
pub(super) fn is_number(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_digit())
}

/// New names of values, and how many there are of numbers and of constants that have no short name, which stand in
/// their order, too.
#[derive(Default)]
struct Numbers {
    names: FxHashMap<Word, Word>,
    numbers: usize,
    constants: usize,
}

impl Numbers {
    fn name(&mut self, name: &Word) {
        let new = if name.starts_with("cst") {
            self.constants += 1;
            format!("cst_{}", self.constants - 1)
        } else if is_number(name) {
            self.numbers += 1;
            (self.numbers - 1).to_string()
        } else {
            return;
        };
        self.names.insert(name.clone(), Word::new(new));
    }

    fn of(&mut self, op: &Op) {
        op.results.iter().for_each(|r| self.name(&r.name));
        for region in &op.regions {
            region.args.iter().for_each(|arg| self.name(&arg.name));
            region.ops.iter().for_each(|op| self.of(op));
        }
    }
}

fn rename(op: &mut Op, names: &FxHashMap<Word, Word>) {
    let new = |name: &mut Word| {
        if let Some(n) = names.get(name) {
            *name = n.clone();
        }
    };
    op.results.iter_mut().for_each(|r| new(&mut r.name));
    op.operands.iter_mut().for_each(|o| new(&mut o.value.name));
    for region in &mut op.regions {
        region.args.iter_mut().for_each(|arg| new(&mut arg.name));
        region.ops.iter_mut().for_each(|op| rename(op, names));
    }
}

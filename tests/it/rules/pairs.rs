//! Rules of targets that are about pairs of dtypes: conversions, what leaves the accumulator, and products of rounded
//! factors. Each pair has a program of its own.

use super::{Program, Rule, has_all, moved, on_tiles};
use crate::differential::case::tiles_of;
use ptoc_isa::{InstrId, Loc, MemorySpace, MoveRule, Sem, ShapeRule, Target, Triple};
use ptoc_tensor::DType;

/// A rule for each pair of dtypes with that source: one that the target takes, and one that it refuses and another
/// takes; and, for all that nobody takes, the first of them.
fn of_pairs(
    target: &'static Target,
    from: DType,
    takes: &dyn Fn(&Target) -> Vec<(DType, DType)>,
    program: &dyn Fn(&'static Target, (DType, DType)) -> Option<Program>,
    rule: &mut dyn FnMut((&'static Target, Program), Program),
) {
    let of = |t: &Target| takes(t).into_iter().filter(|p| p.0 == from && has_all(target, &[p.1])).collect::<Vec<_>>();
    let mine = of(target);
    let mut others: Vec<(DType, DType)> = Vec::new();
    for pair in Target::pto().iter().flat_map(of) {
        if !mine.contains(&pair) && !others.contains(&pair) {
            others.push(pair);
        }
    }
    let nobody = |d: &&DType| **d != from && !mine.contains(&(from, **d)) && !others.contains(&(from, **d));
    let refused: Vec<(DType, DType)> =
        others.iter().copied().chain(target.dtypes.iter().find(nobody).map(|d| (from, *d))).collect();
    let taken: Vec<(&'static Target, (DType, DType))> = match (mine.is_empty(), others.first()) {
        (false, _) => mine.iter().map(|p| (target, *p)).collect(),
        (true, Some(p)) => Target::pto().iter().find(|t| of(t).contains(p)).map(|t| (t, *p)).into_iter().collect(),
        (true, None) => return,
    };
    for k in 0..taken.len().max(refused.len()) {
        let (there, pair) = taken[k.min(taken.len() - 1)];
        if let (Some(takes), Some(refuses)) = (program(there, pair), program(target, refused[k.min(refused.len() - 1)]))
        {
            rule((there, takes), refuses);
        }
    }
}

/// TCVT, pair by pair.
pub(super) fn of_conversions(target: &'static Target, out: &mut Vec<Rule>) {
    let id = InstrId::all().find(|id| id.get().sem == Sem::Convert).expect("TCVT");
    let pairs = |t: &Target| tiles_of(t, id.get()).iter().map(|tiles| (tiles[1], tiles[0])).collect();
    let program = |_: &'static Target, (from, to)| {
        let text = on_tiles(id.get(), &(vec![to, from], None), false);
        Some(Program { suffix: format!("_{from}_to_{to}"), text })
    };
    for &from in &target.dtypes {
        of_pairs(target, from, &pairs, &program, &mut |takes, refuses| {
            let takes = Some(takes);
            out.push(Rule { group: "conversions", name: "tcvt".to_owned(), takes, refuses });
        });
    }
}

/// What leaves the accumulator, with a scale and without, pair by pair. Of what it never holds nothing moves out.
pub(super) fn of_results(target: &'static Target, out: &mut Vec<Rule>) {
    let acc = MemorySpace::Tile(Loc::Acc);
    for to in [MemorySpace::Gm, MemorySpace::Tile(Loc::Mat), MemorySpace::Tile(Loc::Vec)] {
        for quantised in [false, true] {
            let pairs = |t: &Target| {
                let of = |m: &MoveRule| if quantised { m.quantised.clone() } else { m.pairs.clone() };
                t.move_rule(acc, to).map(of).unwrap_or_default()
            };
            let program = |t: &'static Target, pair| moved(t, (acc, to, quantised), pair);
            let name = format!("acc_to_{}{}", to.to_string().to_lowercase(), if quantised { "_scaled" } else { "" });
            for from in target.accumulators() {
                of_pairs(target, from, &pairs, &program, &mut |takes, refuses| {
                    out.push(Rule { group: "results", name: name.clone(), takes: Some(takes), refuses });
                });
            }
        }
    }
}

/// Factors are rounded of f32 alone, where there are such products.
pub(super) fn of_factors(target: &'static Target, out: &mut Vec<Rule>) {
    let single = |t: &&Triple| t.left == DType::F32;
    let there = |t: &&'static Target| t.triples.iter().any(|t| single(&t));
    let taker = Some(target).filter(there).or_else(|| Target::pto().iter().find(there)).expect("some target");
    let rounded = *taker.triples.iter().find(single).expect("of f32");
    let exact = *target.triples.iter().find(|t| !single(t)).expect("of others");
    for id in InstrId::all().filter(|id| id.get().sem.multiplies()) {
        let row = id.get();
        for word in row.modes.iter().filter(|m| m.words.contains(&"HF32")).flat_map(|m| m.words) {
            let rows = if row.shape == ShapeRule::Gemv { 1 } else { 16 };
            let program = |t: Triple| {
                let text = crate::multiplied::kernel(id, t, &[(*word).to_owned()], [rows, 32, 32]);
                let text = text.strip_prefix("kernel k").expect("a kernel").to_owned();
                Program { suffix: format!("_{}_{}_{}", t.acc, t.left, t.right), text }
            };
            out.push(Rule {
                group: "factors",
                name: format!("{}_{}", row.name.to_lowercase(), word.to_lowercase()),
                takes: Some((taker, program(rounded))),
                refuses: program(exact),
            });
        }
    }
}

//! Kernels that only move elements. A kernel of the host that does nothing else is a `relayout` step of its stream: a
//! nest of loops in which the elements of both arrays move by fixed distances. Where windows overlap or stop at a
//! border (the halo of regions), it is several.

use ptoc_ir::tile::{Kernel, Op, Operand, Region, TensorDir, TensorId};
use ptoc_isa::Sem;
use ptoc_pim_stream::stream::RelayoutAxis;

/// The tensors that it reads and writes, if the kernel moves the elements of one to another: loads, stores, moves
/// between tiles, transpositions and copies, at places that depend on no data. Of an `inout` destination it may write a
/// part, and reads nothing.
pub fn ends(kernel: &Kernel) -> Option<(TensorId, TensorId)> {
    let of = |dir| kernel.tensors.iter().filter(move |(_, t)| t.dir == dir).map(|(id, _)| id);
    let dst = of(TensorDir::Out).chain(of(TensorDir::InOut)).next();
    let (Some(src), Some(dst)) = (of(TensorDir::In).next(), dst) else { return None };
    let same = kernel.tensors[src].dtype == kernel.tensors[dst].dtype;
    (kernel.tensors.len() == 2 && same && moves(&kernel.body, dst)).then_some((src, dst))
}

fn moves(region: &Region, dst: TensorId) -> bool {
    region.iter().all(|s| match &s.op {
        Op::Inst(inst) => {
            let sem = inst.instr.get().sem;
            let reads = |o: &Operand| matches!(o, Operand::View(v) if v.tensor == dst) && sem == Sem::Load;
            inst.attrs.atomic.is_none()
                && !inst.operands.iter().any(reads)
                && matches!(sem, Sem::Assign | Sem::Load | Sem::Store | Sem::Move | Sem::Transpose)
        }
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::TileGet { .. }
        | Op::TileSet { .. }
        | Op::Mma(_)
        | Op::Print { .. } => false,
        Op::For(f) => moves(&f.body, dst),
        Op::If(i) => moves(&i.then, dst) && moves(&i.els, dst),
        Op::While(w) => moves(&w.head, dst) && moves(&w.body, dst),
        Op::Scope(s) => moves(&s.body, dst),
        _ => true,
    })
}

/// Loops, and the elements of the source and the destination with which they begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nest {
    /// The source's first element, and the destination's.
    pub start: [u32; 2],
    /// The loops, outermost first.
    pub axes: Vec<RelayoutAxis>,
}

/// Most nests of a kernel.
const NESTS: usize = 64;

/// The nests by which every element of a destination of this shape, in C order, gets element `map[n]` of the source.
/// `None` if there are none, or too many: the distances are not fixed, or go backwards.
pub fn nests(map: &[u32], shape: &[u32]) -> Option<Vec<Nest>> {
    let found = within(map, 0, shape)?;
    (!found.is_empty() && found.len() <= NESTS).then_some(found)
}

/// The nest by which the elements of a destination that have a source get it; those that have none lie before and
/// behind all others. `None` if there is none.
pub fn part(map: &[Option<u32>]) -> Option<Vec<Nest>> {
    let first = map.iter().position(Option::is_some)?;
    let last = map.iter().rposition(Option::is_some)?;
    let own: Vec<u32> = map[first..=last].iter().copied().collect::<Option<_>>()?;
    Some(vec![Nest { start: [own[0], u32::try_from(first).ok()?], axes: nest(&own)? }])
}

/// The nests of a part that begins with this element of the destination: one, or those of its parts along the first
/// dimension.
fn within(map: &[u32], first: u32, shape: &[u32]) -> Option<Vec<Nest>> {
    if let Some(axes) = nest(map) {
        return Some(vec![Nest { start: [map[0], first], axes }]);
    }
    let (&extent, inner) = shape.split_first()?;
    let size = map.len() / (extent as usize).max(1);
    if size == 0 {
        return None;
    }
    let mut out: Vec<Nest> = Vec::new();
    // Rounds of the last nest along this dimension; 0 if it takes no more.
    let mut rounds = 0;
    for (n, part) in map.chunks_exact(size).enumerate() {
        let found = within(part, first + (n * size) as u32, inner)?;
        let last = out.last_mut().filter(|_| rounds > 0 && found.len() == 1);
        let [next, ..] = &found[..] else { return None };
        let joined = last.is_some_and(|last| match rounds {
            1 if last.axes == next.axes && next.start[0] >= last.start[0] => {
                let outer = RelayoutAxis { extent: 2, src: next.start[0] - last.start[0], dst: size as u32 };
                last.axes.insert(0, outer);
                true
            }
            2.. => {
                let by = |a: RelayoutAxis| u64::from(last.start[0]) + u64::from(a.extent) * u64::from(a.src);
                let goes_on = last.axes[1..] == next.axes && by(last.axes[0]) == u64::from(next.start[0]);
                last.axes[0].extent += u32::from(goes_on);
                goes_on
            }
            _ => false,
        });
        rounds = match (joined, found.len()) {
            (true, _) => rounds + 1,
            (false, 1) => 1,
            _ => 0,
        };
        if !joined {
            out.extend(found);
            if out.len() > NESTS {
                return None;
            }
        }
    }
    Some(out)
}

/// The loops, outermost first, by which every element of the destination, in C order, gets element `map[n]` of the
/// source; both begin with their first. `None` if there are none: the distances are not fixed, or go backwards.
fn nest(map: &[u32]) -> Option<Vec<RelayoutAxis>> {
    let total = map.len();
    let base = *map.first()?;
    let mut axes = Vec::new();
    // Elements of a round of the next loop.
    let mut done = 1;
    while done < total {
        let step = map[done].checked_sub(base)?;
        // A round is the first one, moved.
        let follows = |n: usize| {
            let by = u64::from(step) * n as u64;
            let round = map.get(n * done..(n + 1) * done)?;
            round.iter().zip(map).all(|(a, b)| u64::from(*a) == u64::from(*b) + by).then_some(())
        };
        let rounds = 1 + (1..).take_while(|n| follows(*n).is_some()).count();
        if rounds == 1 || !total.is_multiple_of(done * rounds) {
            return None;
        }
        axes.push(RelayoutAxis { extent: rounds as u32, src: step, dst: done as u32 });
        done *= rounds;
    }
    if axes.is_empty() {
        axes.push(RelayoutAxis { extent: 1, src: 0, dst: 0 });
    }
    axes.reverse();
    Some(axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: u32, src: u32, dst: u32) -> RelayoutAxis {
        RelayoutAxis { extent, src, dst }
    }

    /// Regions of a map of 12 rows of 5 numbers with a halo of rows around them, clamped at the borders or cut off.
    #[test]
    fn regions_with_a_halo() {
        for (regions, rows, halo) in [(3u32, 4u32, 1u32), (4, 3, 2), (2, 6, 0), (1, 12, 3)] {
            let height = rows + 2 * halo;
            let mut map = Vec::new();
            for r in 0..regions {
                for y in 0..height {
                    let from = (r * rows + y).saturating_sub(halo).min(11);
                    map.extend((0..5).map(|x| from * 5 + x));
                }
            }
            let found = nests(&map, &[regions, height, 5]).expect("loops");
            let most = if halo == 0 { 1 } else { 7 };
            assert!(found.len() <= most, "{regions} {rows} {halo}: {found:?}");
            let mut carried = vec![u32::MAX; map.len()];
            for n in &found {
                let [src, dst] = n.start;
                let reach = n.axes.iter().map(|a| (a.extent - 1) * a.dst).sum::<u32>() as usize + 1;
                let moved = carried_out(&n.axes, reach);
                for (k, from) in moved.iter().enumerate().filter(|(_, from)| **from != u32::MAX) {
                    let to = &mut carried[dst as usize + k];
                    assert_eq!(*to, u32::MAX, "once");
                    *to = src + from;
                }
            }
            assert_eq!(carried, map, "{found:?}");
        }
    }

    /// What the nest does, carried out.
    fn carried_out(axes: &[RelayoutAxis], total: usize) -> Vec<u32> {
        let mut map = vec![u32::MAX; total];
        let rounds: u32 = axes.iter().map(|a| a.extent).product();
        for n in 0..rounds {
            let (mut rest, mut src, mut dst) = (n, 0, 0);
            for a in axes.iter().rev() {
                src += rest % a.extent * a.src;
                dst += rest % a.extent * a.dst;
                rest /= a.extent;
            }
            map[dst as usize] = src;
        }
        map
    }

    /// Every order of three dimensions of several sizes, ones among them.
    #[test]
    fn permutations() {
        for shape in [[2u32, 3, 4], [1, 5, 2], [4, 4, 4], [3, 1, 1], [1, 1, 1], [2, 2, 6]] {
            for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
                let strides = [shape[1] * shape[2], shape[2], 1];
                let mut map = Vec::new();
                for i in 0..shape[order[0]] {
                    for j in 0..shape[order[1]] {
                        for k in 0..shape[order[2]] {
                            map.push([i, j, k].iter().zip(order).map(|(n, d)| n * strides[d]).sum());
                        }
                    }
                }
                let axes = nest(&map).unwrap_or_else(|| panic!("{shape:?} {order:?}"));
                assert_eq!(carried_out(&axes, map.len()), map, "{shape:?} {order:?}: {axes:?}");
            }
        }
        assert_eq!(nest(&[0, 3, 1, 4, 2, 5]), Some(vec![axis(3, 1, 2), axis(2, 3, 1)]));
        // One element for all, and every other one.
        assert_eq!(nest(&[0, 0, 0]), Some(vec![axis(3, 0, 1)]));
        assert_eq!(nest(&[0, 2, 4]), Some(vec![axis(3, 2, 1)]));
    }

    /// A row of a cache, and what is no stretch of it.
    #[test]
    fn a_part_of_the_destination() {
        let row: Vec<Option<u32>> = (0..12).map(|n| (4..8).contains(&n).then(|| n - 4)).collect();
        assert_eq!(part(&row), Some(vec![Nest { start: [0, 4], axes: vec![axis(4, 1, 1)] }]));
        let column: Vec<Option<u32>> = (0..12).map(|n| (n % 4 == 0).then_some(n / 4)).collect();
        assert_eq!((part(&column), part(&[None, None])), (None, None));
    }

    #[test]
    fn what_is_no_nest() {
        for map in [&[][..], &[0, 2, 1], &[3, 2, 1, 0], &[0, 1, 2, 4], &[0, 1, 2, 3, 5, 4]] {
            assert_eq!(nest(map), None, "{map:?}");
        }
        let scattered: Vec<u32> = (0..1000).map(|n| n * 7919 % 1000).collect();
        assert_eq!(nests(&scattered, &[10, 100]), None);
        assert_eq!(nests(&[], &[0]), None);
    }
}

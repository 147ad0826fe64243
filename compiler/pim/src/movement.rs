//! Kernels that only move elements. A kernel of the host that does nothing else is a `relayout` step of its stream: a nest of loops in
//! which the elements of both arrays move by fixed distances.

use ptoc_ir::tile::{Kernel, Op, Region, TensorDir, TensorId};
use ptoc_isa::Sem;
use ptoc_pim_stream::stream::Axis;

/// The tensors that it reads and writes, if the kernel moves the elements of one to another: loads, stores, moves between tiles,
/// transpositions and copies, at places that depend on no data.
pub fn ends(kernel: &Kernel) -> Option<(TensorId, TensorId)> {
    let of = |dir| kernel.tensors.iter().filter(move |(_, t)| t.dir == dir).map(|(id, _)| id);
    let (Some(src), Some(dst)) = (of(TensorDir::In).next(), of(TensorDir::Out).next()) else { return None };
    let same = kernel.tensors[src].dtype == kernel.tensors[dst].dtype;
    (kernel.tensors.len() == 2 && same && moves(&kernel.body)).then_some((src, dst))
}

fn moves(region: &Region) -> bool {
    region.iter().all(|s| match &s.op {
        Op::Inst(inst) => {
            let sem = inst.instr.get().sem;
            !inst.attrs.atomic_add && matches!(sem, Sem::Assign | Sem::Load | Sem::Store | Sem::Move | Sem::Transpose)
        }
        Op::Load { .. }
        | Op::Store { .. }
        | Op::Atomic { .. }
        | Op::TileGet { .. }
        | Op::TileSet { .. }
        | Op::Mma(_)
        | Op::Print { .. } => false,
        Op::For(f) => moves(&f.body),
        Op::If(i) => moves(&i.then) && moves(&i.els),
        Op::While(w) => moves(&w.head) && moves(&w.body),
        Op::Scope(s) => moves(&s.body),
        _ => true,
    })
}

/// The nest of loops, outermost first, by which every element of the destination, in C order, gets element `map[n]` of the source.
/// `None` if there is none: the distances are not fixed, or go backwards, or the first element comes from elsewhere.
pub fn nest(map: &[u32]) -> Option<Vec<Axis>> {
    let total = map.len();
    if total == 0 || map[0] != 0 {
        return None;
    }
    let mut axes = Vec::new();
    // Elements of a round of the next loop.
    let mut done = 1;
    while done < total {
        let step = map[done];
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
        axes.push(Axis { extent: rounds as u32, src: step, dst: done as u32 });
        done *= rounds;
    }
    if axes.is_empty() {
        axes.push(Axis { extent: 1, src: 0, dst: 0 });
    }
    axes.reverse();
    Some(axes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(extent: u32, src: u32, dst: u32) -> Axis {
        Axis { extent, src, dst }
    }

    /// What the nest does, carried out.
    fn carried_out(axes: &[Axis], total: usize) -> Vec<u32> {
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

    #[test]
    fn what_is_no_nest() {
        for map in [&[][..], &[1, 2, 3], &[0, 2, 1], &[3, 2, 1, 0], &[0, 1, 2, 4], &[0, 1, 2, 3, 5, 4]] {
            assert_eq!(nest(map), None, "{map:?}");
        }
    }
}

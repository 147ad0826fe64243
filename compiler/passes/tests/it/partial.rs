//! Partial operations with either source the larger one, instructions of two results, and results over sources.

use crate::harness::*;
use ptoc_ir::tile::{InstAttrs, Operand, TensorDir, TileRef};
use ptoc_isa::{Loc, Order};
use ptoc_tensor::DType::{self, F16, F32, I16, I32};

/// Runs `name` on tiles of these dtypes and valid shapes, each loaded with noise first. `same` is the tile that stands
/// at each operand: equal numbers are one tile. The operands `results` are stored afterwards.
fn case(name: &str, operands: &[(DType, (i64, i64))], same: &[usize], results: &[usize], seed: u64) {
    let mut k = K::new(name);
    let mut args = Args::default();
    let count = same.iter().max().map_or(0, |n| n + 1);
    let of = |tile: usize| operands[same.iter().position(|s| *s == tile).expect("it stands somewhere")];
    let cap = (8u32, 96u32);
    let mut tensors = Vec::new();
    let [rows, cols] = [k.c(i64::from(cap.0)), k.c(i64::from(cap.1))];
    for tile in 0..count {
        let input = k.tensor(&format!("in{tile}"), of(tile).0, TensorDir::In, &[rows, cols]);
        args.tensors.push(tensor(of(tile).0, &[cap.0.into(), cap.1.into()], noise(of(tile).0, seed + tile as u64)));
        tensors.push(input);
    }
    let mut outs = Vec::new();
    for &result in results {
        let (d, (r, c)) = operands[result];
        let shape = [k.c(r), k.c(c)];
        outs.push(k.tensor(&format!("out{result}"), d, TensorDir::Out, &shape));
        args.tensors.push(tensor(d, &[r as u64, c as u64], []));
    }
    k.b.begin_body();
    let mut tiles = Vec::new();
    for (tile, t) in tensors.iter().enumerate() {
        let place = k.tile("x", Loc::Vec, of(tile).0, cap, Order::Nd);
        let (whole, view) = (k.r(place, (rows, cols)), k.view(*t, rows, cols));
        k.load(whole, view);
        tiles.push(place);
    }
    let refs: Vec<TileRef> = operands
        .iter()
        .zip(same)
        .map(|((_, (r, c)), tile)| {
            let valid = (k.c(*r), k.c(*c));
            k.r(tiles[*tile], valid)
        })
        .collect();
    k.inst(name, refs.iter().map(|r| Operand::Tile(*r)).collect(), InstAttrs::default());
    for (&result, out) in results.iter().zip(outs) {
        let valid = refs[result].valid;
        let view = k.view(out, valid.0, valid.1);
        k.store(view, refs[result]);
    }
    agree(&k.finish(), a5(), &args);
}

#[test]
fn either_source_may_be_the_larger_one() {
    for (n, name) in ["TPARTADD", "TPARTMUL", "TPARTMAX", "TPARTMIN"].into_iter().enumerate() {
        for d in [F32, F16, I32] {
            for (small, at) in [((3, 40), 0), ((8, 1), 1), ((0, 60), 2), ((5, 70), 3)] {
                let large = (5.max(small.0), 70);
                for same in [[0, 1, 2], [0, 0, 1], [0, 1, 0]] {
                    let seed = (n * 100 + at) as u64;
                    case(name, &[(d, large), (d, large), (d, small)], &same, &[0], seed);
                    case(name, &[(d, large), (d, small), (d, large)], &same, &[0], seed);
                }
            }
        }
    }
}

#[test]
fn pairs_over_their_sources() {
    let (large, small) = ((6, 70), (4, 33));
    for name in ["TPARTARGMAX", "TPARTARGMIN"] {
        for (d, i) in [(F32, I32), (F16, I16)] {
            for (a, b) in [(large, small), (small, large)] {
                let operands = [(d, large), (d, a), (d, b), (i, large), (i, a), (i, b)];
                for same in [[0, 1, 2, 3, 4, 5], [0, 0, 1, 2, 2, 3], [0, 1, 0, 2, 3, 2], [0, 1, 0, 2, 2, 3]] {
                    case(name, &operands, &same, &[0, 3], 7);
                }
            }
        }
    }
}

#[test]
fn streams_over_their_sources() {
    for d in [F32, F16, I16, DType::U8] {
        for shape in [(8, 96), (3, 34), (1, 2), (2, 0)] {
            let operands = [(d, shape); 4];
            for name in ["TINTERLEAVE", "TDEINTERLEAVE"] {
                for same in [[0, 1, 2, 3], [0, 1, 0, 1], [0, 1, 1, 0], [0, 1, 2, 1], [0, 1, 2, 2]] {
                    case(name, &operands, &same, &[0, 1], 9);
                }
            }
            let half = (shape.0, shape.1 / 2);
            for same in [[0, 1, 2], [0, 1, 0], [0, 1, 1]] {
                case("TDEINTERLEAVE_ONE", &[(d, half), (d, half), (d, shape)], &same, &[0, 1], 11);
            }
        }
    }
}

#[test]
fn extremes_with_their_places() {
    for name in ["TROWARGMAX_VALUES", "TROWARGMIN_VALUES"] {
        for (d, i) in [(F32, I32), (F16, I32), (I32, I32), (I16, DType::U32)] {
            for shape in [(8, 96), (5, 33), (1, 1), (4, 0)] {
                let operands = [(d, (shape.0, 1)), (i, (shape.0, 1)), (d, shape)];
                for same in [[0, 1, 2], [0, 1, 0]] {
                    case(name, &operands, &same, &[0, 1], 13);
                }
            }
        }
    }
}

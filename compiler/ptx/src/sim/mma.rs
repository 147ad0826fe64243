//! Products of a warp, all of whose operands are registers (`mma.sync`). They add as those of a warp-group do
//! (`tests/bench/peers/matrix_unit.py` measures both).

use super::warp::Values;
use super::wgmma::fragment;
use crate::sm90::MmaType;
use ptoc_tensor::matrix_unit::Factor;

/// The sums of 16 rows and 8 columns, in four registers: two neighbours of a row, and those eight rows below. The right
/// operand's registers have two neighbours along k each, of column `lane / 4`, the second those of k from 8 on.
pub(super) fn products_of_warp(ty: MmaType, left: &[Values], right: &[Values], before: &[Values]) -> Vec<Values> {
    const DEPTH: usize = 16;
    let left = fragment(ty, left);
    let mut columns = [[Factor::ZERO; DEPTH]; 8];
    for (n, words) in right.iter().enumerate() {
        for (lane, word) in words.iter().enumerate() {
            for half in 0..2 {
                let factor = ty.factor((*word >> (16 * half)) as u32 & 0xffff);
                columns[lane / 4][8 * n + lane % 4 * 2 + half] = factor;
            }
        }
    }
    let sums = before.iter().enumerate().map(|(n, before)| {
        std::array::from_fn(|lane| {
            let (row, column) = (lane / 4 + n / 2 * 8, lane % 4 * 2 + n % 2);
            let row = &left[row * DEPTH..][..DEPTH];
            let sum = ty
                .profile()
                .zip(ty.factors())
                .map(|(profile, ty)| profile.add((ty, ty), row, &columns[column], before[lane] as u32));
            u64::from(sum.unwrap_or_default())
        })
    });
    sums.collect()
}

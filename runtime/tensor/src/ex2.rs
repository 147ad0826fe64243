//! The base-2 exponential of a GPU's special function unit, PTX's `ex2.approx.ftz.f32`, to the bit: as it was measured
//! on an H200, on every fraction that it tells apart (`spec/design/gpu.md`). The reference interpreter and the
//! interpreter of PTX both compute with this.
//!
//! The argument is cut off to 23 binary places, towards zero if it is positive, away from it if it is negative and no
//! integer. The upper six places of the fraction choose a row of a table, the other 17 are x in a quadratic
//! interpolation, c0 + c1 x + c2 x^2, whose square comes from a squarer without its lower columns. What is beyond 23
//! places of the result is cut off.

use std::f32::consts::LOG2_E;

/// Places of an argument and of a result.
const PLACES: u32 = 23;
/// Places that choose a row.
const INDEX: u32 = 6;
/// Those that are interpolated.
const OFFSET: u32 = PLACES - INDEX;
/// Columns of the squarer below this weight are left out.
const COLUMN: u32 = 19;
/// Places of a sum behind those of a result, and of c0 behind them.
const GUARD: u32 = 15;
const FIRST: u32 = 2;
/// What is added to each c0, in the unit of a sum.
const OFFSET_OF_FIRST: u32 = 6114;

/// 2^x, of magnitude 2^-126 at least, else 0. 2^-0 and 2 to what is subnormal are 1; NaN is 0x7fffffff.
pub fn ex2(x: f32) -> f32 {
    if x.is_nan() {
        return f32::from_bits(0x7fff_ffff);
    }
    // Beyond these all results are the same, and what is below has 31 digits.
    let whole = (f64::from(x.clamp(-256.0, 256.0)).abs() * f64::from(1 << PLACES)) as i32;
    let fraction = whole & ((1 << PLACES) - 1);
    let x = match (x < 0.0, fraction) {
        (false, _) => whole,
        (true, 0) => -whole,
        (true, _) => !whole,
    };
    let exponent = (x >> PLACES) + 127;
    match exponent {
        ..=0 => 0.0,
        255.. => f32::INFINITY,
        _ => f32::from_bits((exponent as u32) << PLACES | interpolated(x as u32 & ((1 << PLACES) - 1))),
    }
}

/// e^x as 2^(x log2 e), the product rounded to nearest.
pub fn exp(x: f32) -> f32 {
    ex2(x * LOG2_E)
}

/// e^(a - b) as 2^(a log2 e - b log2 e): the second product is rounded to nearest, the rest once.
pub fn exp_of_difference(a: f32, b: f32) -> f32 {
    ex2(a.mul_add(LOG2_E, -(b * LOG2_E)))
}

/// The digits of 2^f behind the point, of a fraction f in places.
fn interpolated(fraction: u32) -> u32 {
    let (c0, c1, c2) = ROWS[(fraction >> OFFSET) as usize];
    let x = fraction & ((1 << OFFSET) - 1);
    let first = (c0 << (GUARD - FIRST)) + u64::from(OFFSET_OF_FIRST);
    let sum = first + u64::from(c1) * u64::from(x) + u64::from(c2) * (square(x) >> COLUMN);
    (sum >> GUARD) as u32
}

/// x^2 without the products of digits whose weight is below that of [`COLUMN`].
fn square(x: u32) -> u64 {
    (0..OFFSET).filter(|n| x >> n & 1 == 1).fold(0, |sum, n| {
        // Digit n with itself, and twice with each of those above it: of these only heavy ones.
        let from = (n + 1).max(COLUMN.saturating_sub(n + 1));
        let above = u64::from(x) >> from << from;
        let own = if 2 * n >= COLUMN { 1 << (2 * n) } else { 0 };
        sum + own + (above << (n + 1))
    })
}

/// c0, c1 and c2 of 2^(r / 64 + x) - 1: in units of 2^-25, 2^-38 and, of the square in units of 2^-46 above
/// [`COLUMN`], 2^-38 again.
#[rustfmt::skip]
const ROWS: [(u64, u32, u32); 64] = [
    (3, 22713, 494), (365386, 22960, 501), (734750, 23210, 506), (1108133, 23463, 511),
    (1485586, 23718, 518), (1867145, 23977, 521), (2252860, 24238, 527), (2642777, 24502, 532),
    (3036940, 24768, 541), (3435393, 25038, 546), (3838184, 25311, 551), (4245365, 25586, 559),
    (4656977, 25865, 564), (5073072, 26147, 568), (5493699, 26431, 577), (5918905, 26719, 583),
    (6348741, 27010, 589), (6783258, 27304, 596), (7222505, 27602, 600), (7666538, 27902, 609),
    (8115404, 28206, 615), (8569160, 28513, 622), (9027854, 28824, 627), (9491545, 29138, 633),
    (9960285, 29455, 641), (10434129, 29776, 647), (10913133, 30100, 655), (11397354, 30428, 661),
    (11886846, 30759, 670), (12381669, 31094, 677), (12881882, 31432, 686), (13387539, 31775, 691),
    (13898703, 32121, 699), (14415435, 32471, 705), (14937793, 32824, 715), (15465837, 33182, 721),
    (15999633, 33543, 730), (16539242, 33908, 739), (17084727, 34277, 748), (17636150, 34651, 753),
    (18193579, 35028, 763), (18757078, 35409, 773), (19326714, 35795, 779), (19902551, 36185, 787),
    (20484659, 36579, 796), (21073106, 36977, 806), (21667961, 37380, 813), (22269293, 37787, 822),
    (22877175, 38198, 833), (23491674, 38614, 842), (24112865, 39035, 849), (24740822, 39460, 858),
    (25375616, 39889, 870), (26017322, 40324, 877), (26666015, 40763, 887), (27321773, 41207, 896),
    (27984672, 41655, 909), (28654788, 42109, 917), (29332202, 42568, 925), (30016992, 43031, 938),
    (30709240, 43500, 946), (31409026, 43973, 959), (32116431, 44452, 969), (32831540, 44936, 980),
];

#[cfg(test)]
mod tests {
    use super::{PLACES, ex2, exp};

    /// CRC-32, as zlib has it.
    fn crc32(bytes: impl Iterator<Item = u8>) -> u32 {
        let table: Vec<u32> =
            (0..256).map(|n| (0..8).fold(n, |c, _| c >> 1 ^ if c & 1 == 1 { 0xedb8_8320 } else { 0 })).collect();
        !bytes.fold(!0, |c: u32, b| table[((c ^ u32::from(b)) & 255) as usize] ^ c >> 8)
    }

    /// All 2^23 results from 1 to 2, by their checksum on an H200 (2026-11-30).
    #[test]
    fn every_fraction_has_the_bits_of_the_card() {
        let results = (0..1u32 << PLACES).map(|n| ex2(1.0 + n as f32 / (1u32 << PLACES) as f32));
        assert_eq!(crc32(results.flat_map(|y| y.to_bits().to_le_bytes())), 0x6764_86cd);
    }

    #[test]
    fn the_exponential_is_near() {
        for n in -870..=880 {
            let x = n as f32 / 10.0 + 0.037;
            let (y, exact) = (f64::from(exp(x)), f64::from(x).exp());
            let bound = (f64::from(x.abs()) + 2.0) * 2f64.powi(-23);
            assert!((y / exact - 1.0).abs() <= bound, "{x}: {y} and {exact}");
        }
    }
}

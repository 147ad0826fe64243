//! What a unit adds up: pixels times shares times attention, in f32 (`spec/numerics.md`, samples).

use super::Sample;
use crate::units::vector::mul;
use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// The accumulators of a query, one f32 a channel.
#[derive(Clone, Debug)]
pub struct Accumulators {
    sums: Vec<f32>,
    /// A neighbour's channels, the sample's, and a place to round them: slices are converted as a whole, by the
    /// machine's own instructions where it has them.
    pixel: Vec<f32>,
    value: Vec<f32>,
    rounded: Vec<f16>,
}

/// Each number rounded to f16.
fn round(values: &mut [f32], rounded: &mut [f16]) {
    rounded.convert_from_f32_slice(values);
    rounded.convert_to_f32_slice(values);
}

impl Accumulators {
    /// Cleared, for so many channels.
    pub fn new(channels: usize) -> Accumulators {
        let zeros = vec![0.0; channels];
        Accumulators { sums: zeros.clone(), pixel: zeros.clone(), value: zeros, rounded: vec![f16::ZERO; channels] }
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.sums.fill(0.0);
    }

    /// Adds a sample, attention folded into the shares: `acc += f32(attention * share) * f32(pixel)` for each neighbour
    /// in turn. The product of the two f16 numbers is rounded to f16; that with the pixel is exact in f32.
    ///
    /// `pixel(n)` has the channels of neighbour n; a neighbour that is outside is not asked for and adds nothing but
    /// the product with 0.
    pub fn add_folded<'p>(&mut self, sample: &Sample, attention: u16, pixel: impl Fn(usize) -> &'p [u16]) {
        for (n, neighbour) in sample.neighbours.iter().enumerate() {
            let weight = f16::from_bits(mul(attention, neighbour.share)).to_f32();
            self.take(neighbour.pixel.map(|_| pixel(n)));
            for (acc, value) in self.sums.iter_mut().zip(&self.pixel) {
                *acc += weight * value;
            }
        }
    }

    /// Adds a sample as the design does: the bilinear value in f16, every product and every sum rounded, neighbours in
    /// order, then `acc += f32(attention) * f32(value)`.
    pub fn add_unfolded<'p>(&mut self, sample: &Sample, attention: u16, pixel: impl Fn(usize) -> &'p [u16]) {
        for (n, neighbour) in sample.neighbours.iter().enumerate() {
            let share = f16::from_bits(neighbour.share).to_f32();
            self.take(neighbour.pixel.map(|_| pixel(n)));
            self.pixel.iter_mut().for_each(|value| *value *= share);
            round(&mut self.pixel, &mut self.rounded);
            if n == 0 {
                self.value.copy_from_slice(&self.pixel);
                continue;
            }
            for (sum, term) in self.value.iter_mut().zip(&self.pixel) {
                *sum += term;
            }
            round(&mut self.value, &mut self.rounded);
        }
        let attention = f16::from_bits(attention).to_f32();
        for (acc, value) in self.sums.iter_mut().zip(&self.value) {
            *acc += attention * value;
        }
    }

    /// The channels of a neighbour; zeros of one outside.
    fn take(&mut self, pixel: Option<&[u16]>) {
        match pixel {
            Some(bits) => bits.reinterpret_cast::<f16>().convert_to_f32_slice(&mut self.pixel),
            None => self.pixel.fill(0.0),
        }
    }

    /// The sums, rounded to f16. What is no number is the one NaN 0x7e00: which NaN an operation gives is not fixed.
    pub fn output(&self) -> Vec<u16> {
        self.sums.iter().map(|x| if x.is_nan() { 0x7e00 } else { f16::from_f32(*x).to_bits() }).collect()
    }

    /// The sums.
    pub fn values(&self) -> &[f32] {
        &self.sums
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Border, Map, Query};
    use super::*;
    use proptest::prelude::*;

    fn h(x: f32) -> u16 {
        f16::from_f32(x).to_bits()
    }

    /// A map whose value at (x, y), channel c is a + b x + d y + c: bilinear sampling gives it exactly.
    fn plane(map: &Map) -> Vec<u16> {
        let mut out = Vec::new();
        for y in 0..map.height {
            for x in 0..map.width {
                out.extend((0..map.channels).map(|c| h(1.0 + 2.0 * x as f32 - y as f32 + c as f32)));
            }
        }
        out
    }

    const MAP: Map = Map { width: 8, height: 8, channels: 4, base: 0, border: Border::Clamp };

    fn run(samples: &[(f32, f32, f32)], fold: bool, map: &Map) -> Accumulators {
        let data = plane(map);
        let mut acc = Accumulators::new(map.channels as usize);
        for &(x, y, a) in samples {
            let sample = Query { reference: (h(x), h(y)), stride: (0, 0) }.sample(0, None, map);
            let pixel = |n: usize| {
                let at = map.address(sample.neighbours[n].pixel.unwrap()) as usize / 2;
                &data[at..at + map.channels as usize]
            };
            match fold {
                true => acc.add_folded(&sample, h(a), pixel),
                false => acc.add_unfolded(&sample, h(a), pixel),
            }
        }
        acc
    }

    /// Which NaN an operation gives depends on the machine; a result has one.
    #[test]
    fn there_is_one_nan() {
        for fold in [true, false] {
            for bits in [0x7e00u16, 0xfe01, 0x7c00, 0xfc00] {
                let mut acc = Accumulators::new(1);
                let sample = Query { reference: (h(1.0), h(1.0)), stride: (0, 0) }.sample(0, None, &MAP);
                let data = [bits];
                match fold {
                    true => acc.add_folded(&sample, 0, |_| &data),
                    false => acc.add_unfolded(&sample, 0, |_| &data),
                }
                assert_eq!(acc.output(), [0x7e00], "{bits:#x}");
            }
        }
    }

    #[test]
    fn planes_are_sampled_exactly() {
        for fold in [true, false] {
            let acc = run(&[(2.25, 3.5, 0.5), (0.0, 0.0, 2.0), (6.75, 1.0, 0.25)], fold, &MAP);
            let plane = |x: f32, y: f32, c: f32| 1.0 + 2.0 * x - y + c;
            let want = |c: f32| 0.5 * plane(2.25, 3.5, c) + 2.0 * plane(0.0, 0.0, c) + 0.25 * plane(6.75, 1.0, c);
            assert_eq!(acc.values(), [want(0.0), want(1.0), want(2.0), want(3.0)]);
            assert_eq!(acc.output()[1], h(want(1.0)));
        }
    }

    #[test]
    fn zeros_outside() {
        let map = Map { border: Border::Zero, ..MAP };
        for fold in [true, false] {
            assert_eq!(run(&[(-5.0, 2.0, 1.0)], fold, &map).values(), [0.0; 4]);
            // Half of the pixel at the edge, (7, 2): 1 + 14 - 2 = 13.
            assert_eq!(run(&[(7.5, 2.0, 1.0)], fold, &map).values(), [6.5, 7.0, 7.5, 8.0]);
        }
    }

    proptest! {
        /// Both ways are within the tolerance of f16 of the sum in f64.
        #[test]
        fn sums_are_near_the_exact_ones(
            points in prop::collection::vec((0.0f32..7.0, 0.0f32..7.0, -1.0f32..1.0), 1..40),
        ) {
            let exact: Vec<f64> = (0..4).map(|c| {
                points.iter().map(|&(x, y, a)| {
                    let [x, y, a] = [x, y, a].map(|v| f16::from_f32(v).to_f64());
                    a * (1.0 + 2.0 * x - y + f64::from(c))
                }).sum()
            }).collect();
            let size: f64 = points.iter().map(|p| f64::from(p.2.abs()) * 20.0).sum();
            for fold in [true, false] {
                for (got, want) in run(&points, fold, &MAP).values().iter().zip(&exact) {
                    prop_assert!((f64::from(*got) - want).abs() <= 4e-3 * size + 1e-6, "{got} {want}");
                }
            }
        }
    }
}

//! Where a sample lies: its coordinates, the four pixels around it and their shares (`spec/numerics.md`, samples).

use crate::units::vector::{add, mul};
use half::f16;

/// What lies outside of the map.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Border {
    /// The nearest pixel of the edge.
    #[default]
    Clamp,
    /// Zeros, which are not read.
    Zero,
}

/// A feature map in the bank: channel-last, `width * channels * 2` bytes a row of pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Map {
    /// Pixels of a row, at least 1.
    pub width: u32,
    /// Rows, at least 1.
    pub height: u32,
    /// Channels of a pixel, f16 each.
    pub channels: u32,
    /// The first byte.
    pub base: u64,
    /// What lies outside.
    pub border: Border,
}

/// Where a query's samples lie, in pixels; all bits of f16.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Query {
    /// The first sample.
    pub reference: (u16, u16),
    /// The step from sample to sample.
    pub stride: (u16, u16),
}

/// One of the four pixels.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Neighbour {
    /// Column and row in the map; `None` outside of it where the border is zero.
    pub pixel: Option<(u32, u32)>,
    /// Its share of the sample, f16.
    pub share: u16,
}

/// A sample.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sample {
    /// Coordinates, f16.
    pub at: (u16, u16),
    /// (x0, y0), (x1, y0), (x0, y1), (x1, y1).
    pub neighbours: [Neighbour; 4],
}

impl Query {
    /// Sample number `s`, moved by `offset` if samples have offsets.
    ///
    /// Every operation rounds to f16: `ref + s * stride`, then the offset. A coordinate that is no number stands for
    /// pixel 0, with shares that are no numbers.
    pub fn sample(&self, s: u16, offset: Option<(u16, u16)>, map: &Map) -> Sample {
        let step = f16::from_f32(f32::from(s)).to_bits();
        let along = |reference: u16, stride: u16, offset: Option<u16>| {
            let x = add(reference, mul(step, stride));
            offset.map_or(x, |o| add(x, o))
        };
        let x = along(self.reference.0, self.stride.0, offset.map(|o| o.0));
        let y = along(self.reference.1, self.stride.1, offset.map(|o| o.1));
        let ((x0, wx), (y0, wy)) = (split(x, map.width), split(y, map.height));
        let neighbours = std::array::from_fn(|n| {
            let (dx, dy) = (n % 2, n / 2);
            let pixel =
                match (inside(x0 + dx as i64, map.width, map.border), inside(y0 + dy as i64, map.height, map.border)) {
                    (Some(x), Some(y)) => Some((x, y)),
                    _ => None,
                };
            Neighbour { pixel, share: mul(part(wx, dx), part(wy, dy)) }
        });
        Sample { at: (x, y), neighbours }
    }
}

impl Map {
    /// The byte at which a pixel begins.
    pub fn address(&self, (x, y): (u32, u32)) -> u64 {
        let pixel = u64::from(y) * u64::from(self.width) + u64::from(x);
        self.base + pixel * u64::from(self.channels) * 2
    }
}

/// The pixel before a coordinate and the way from there, f16. Far outside the pixel is -2 or `extent`, so that the next
/// one is outside too.
fn split(x: u16, extent: u32) -> (i64, u16) {
    let floor = f16::from_bits(x).to_f32().floor();
    let way = add(x, f16::from_f32(-floor).to_bits());
    // The conversion saturates, and makes 0 of NaN.
    ((floor as i64).clamp(-2, i64::from(extent)), way)
}

/// 1 - way, or the way.
fn part(way: u16, far: usize) -> u16 {
    if far == 0 { add(f16::ONE.to_bits(), way ^ 0x8000) } else { way }
}

fn inside(at: i64, extent: u32, border: Border) -> Option<u32> {
    let clamped = at.clamp(0, i64::from(extent) - 1);
    (clamped == at || border == Border::Clamp).then_some(clamped as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn h(x: f32) -> u16 {
        f16::from_f32(x).to_bits()
    }

    fn f(x: u16) -> f32 {
        f16::from_bits(x).to_f32()
    }

    const MAP: Map = Map { width: 8, height: 4, channels: 128, base: 0x1000, border: Border::Clamp };

    /// Computed by hand.
    #[test]
    fn coordinates_neighbours_and_shares() {
        let q = Query { reference: (h(1.0), h(0.5)), stride: (h(0.75), h(0.25)) };
        let s = q.sample(3, None, &MAP);
        assert_eq!((f(s.at.0), f(s.at.1)), (3.25, 1.25));
        assert_eq!(s.neighbours.map(|n| n.pixel), [Some((3, 1)), Some((4, 1)), Some((3, 2)), Some((4, 2))]);
        assert_eq!(s.neighbours.map(|n| f(n.share)), [0.5625, 0.1875, 0.1875, 0.0625]);
        // Eight pixels of 256 bytes a row: pixels 11, 12, 19 and 20.
        let addresses = s.neighbours.map(|n| MAP.address(n.pixel.unwrap()));
        assert_eq!(addresses, [0x1b00, 0x1c00, 0x2300, 0x2400]);
        let moved = q.sample(3, Some((h(-1.0), h(0.5))), &MAP);
        assert_eq!((f(moved.at.0), f(moved.at.1)), (2.25, 1.75));
        assert_eq!(moved.neighbours[3].pixel, Some((3, 2)));
    }

    /// Row 74: on and beyond each edge.
    #[test]
    fn borders() {
        let zero = Map { border: Border::Zero, ..MAP };
        let at = |x: f32, y: f32, map: &Map| {
            let q = Query { reference: (h(x), h(y)), stride: (0, 0) };
            q.sample(0, None, map).neighbours.map(|n| n.pixel)
        };
        assert_eq!(at(7.0, 3.0, &MAP), [Some((7, 3)); 4]);
        assert_eq!(at(7.0, 3.0, &zero), [Some((7, 3)), None, None, None]);
        assert_eq!(at(-0.5, 0.0, &MAP), [Some((0, 0)), Some((0, 0)), Some((0, 1)), Some((0, 1))]);
        assert_eq!(at(-0.5, 0.0, &zero), [None, Some((0, 0)), None, Some((0, 1))]);
        assert_eq!(at(-1.5, -9.0, &zero), [None; 4]);
        assert_eq!(at(60000.0, 60000.0, &MAP), [Some((7, 3)); 4]);
        assert_eq!(at(f32::INFINITY, f32::NEG_INFINITY, &zero), [None; 4]);
        assert_eq!(at(f32::NAN, 1.0, &MAP)[0], Some((0, 1)));
    }

    /// At 1024 the spacing of f16 is 1, so fractions are gone: the model must show it.
    #[test]
    fn coordinates_are_rounded_to_f16() {
        let map = Map { width: 4096, height: 4096, ..MAP };
        let q = Query { reference: (h(1024.0), h(32.0)), stride: (h(0.25), h(0.01)) };
        let s = q.sample(1, None, &map);
        assert_eq!(f(s.at.0), 1024.0);
        assert_eq!(f(s.at.1), 32.0);
    }

    proptest! {
        #[test]
        fn shares_add_up_and_pixels_exist(x in -20.0f32..20.0, y in -20.0f32..20.0, sx in -1.0f32..1.0, s in 0u16..50) {
            let q = Query { reference: (h(x), h(y)), stride: (h(sx), h(0.1)) };
            for map in [MAP, Map { border: Border::Zero, ..MAP }] {
                let sample = q.sample(s, None, &map);
                let sum: f32 = sample.neighbours.iter().map(|n| f(n.share)).sum();
                prop_assert!((sum - 1.0).abs() < 2e-3, "{sum}");
                for (x, y) in sample.neighbours.iter().filter_map(|n| n.pixel) {
                    prop_assert!(x < map.width && y < map.height);
                }
            }
        }

        #[test]
        fn any_bits_give_pixels_inside(bits: [u16; 4], offset: Option<(u16, u16)>, s: u16) {
            let [a, b, c, d] = bits;
            let q = Query { reference: (a, b), stride: (c, d) };
            for (x, y) in q.sample(s, offset, &MAP).neighbours.iter().filter_map(|n| n.pixel) {
                prop_assert!(x < MAP.width && y < MAP.height);
            }
        }
    }
}

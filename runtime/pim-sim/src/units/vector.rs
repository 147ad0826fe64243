//! Vectors of 16 f16, the 32 bytes of one burst.

use half::f16;

/// Lanes of a vector.
pub const LANES: usize = 16;
/// Bytes of a vector.
pub const BYTES: usize = 32;

/// A vector; lane 0 is in the first two bytes of a burst, little-endian.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Vector(pub [u16; LANES]);

impl Vector {
    /// The lanes of a burst.
    pub fn from_bytes(bytes: &[u8; BYTES]) -> Vector {
        Vector(std::array::from_fn(|i| u16::from_le_bytes([bytes[2 * i], bytes[2 * i + 1]])))
    }

    /// The burst.
    pub fn to_bytes(self) -> [u8; BYTES] {
        let mut out = [0; BYTES];
        for (two, lane) in out.chunks_exact_mut(2).zip(self.0) {
            two.copy_from_slice(&lane.to_le_bytes());
        }
        out
    }

    /// Every lane the same.
    pub fn splat(lane: u16) -> Vector {
        Vector([lane; LANES])
    }

    /// Lane by lane.
    pub fn zip(self, other: Vector, f: impl Fn(u16, u16) -> u16) -> Vector {
        Vector(std::array::from_fn(|i| f(self.0[i], other.0[i])))
    }
}

/// a + b, rounded once to nearest even. The f32 sum of two f16 numbers, rounded again, is the correctly rounded one:
/// f32 has more than twice the bits of f16 and two (Figueroa, "When is double rounding innocuous?").
pub fn add(a: u16, b: u16) -> u16 {
    f16::from_f32(f16::from_bits(a).to_f32() + f16::from_bits(b).to_f32()).to_bits()
}

/// a * b, rounded once to nearest even; the f32 product is exact.
pub fn mul(a: u16, b: u16) -> u16 {
    f16::from_f32(f16::from_bits(a).to_f32() * f16::from_bits(b).to_f32()).to_bits()
}

/// max(a, 0): NaN stays, -0 becomes 0.
pub fn relu(a: u16) -> u16 {
    let x = f16::from_bits(a);
    if x.is_nan() || !x.is_sign_negative() { a } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(x: f32) -> u16 {
        f16::from_f32(x).to_bits()
    }

    #[test]
    fn bursts_round_trip() {
        let bytes: [u8; BYTES] = std::array::from_fn(|i| i as u8 * 7);
        assert_eq!(Vector::from_bytes(&bytes).to_bytes(), bytes);
        assert_eq!(Vector::from_bytes(&bytes).0[1], u16::from_le_bytes([14, 21]));
    }

    /// Sums and products against f64, in which both are exact, over pairs that cover every exponent.
    #[test]
    fn sums_and_products_are_rounded_once() {
        let mut numbers: Vec<u16> = (0..=u16::MAX).step_by(97).collect();
        numbers.extend([0, 0x8000, 1, 0x03ff, 0x0400, 0x3c00, 0x7bff, 0x7c00, 0xfc00, 0xfbff]);
        for &a in &numbers {
            for &b in numbers.iter().step_by(3) {
                let (x, y) = (f16::from_bits(a).to_f64(), f16::from_bits(b).to_f64());
                for (got, exact) in [(add(a, b), x + y), (mul(a, b), x * y)] {
                    let want = f16::from_f64(exact);
                    let same = f16::from_bits(got).is_nan() && want.is_nan() || got == want.to_bits();
                    assert!(same, "{x} and {y}: {got:#x} in place of {:#x}", want.to_bits());
                }
            }
        }
    }

    #[test]
    fn relu_of_signs_and_nan() {
        assert_eq!([relu(bits(-1.5)), relu(bits(2.0)), relu(0x8000), relu(0xfe00)], [0, bits(2.0), 0, 0xfe00]);
    }
}

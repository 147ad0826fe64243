//! The parameter register of a GeoPIM unit: one query, 256 bits, little-endian, fields from bit 0 on
//! in the order of [`Parameters`]; the last 46 bits are reserved and 0.

use crate::word::{Field, WordError};

/// Bytes of an entry.
pub const SIZE: usize = 32;
/// Entries of a unit's register: queries that can be loaded ahead.
pub const ENTRIES: usize = 4;

/// A query as a unit holds it. Coordinates are the bits of f16, in pixels; addresses are bytes and have 48 bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Parameters {
    /// Number of the query.
    pub query: u16,
    /// Samples to take.
    pub samples: u16,
    /// The next one.
    pub current: u16,
    /// Where sampling begins, x.
    pub ref_x: u16,
    /// Where sampling begins, y.
    pub ref_y: u16,
    /// Step from sample to sample, x.
    pub stride_x: u16,
    /// Step from sample to sample, y.
    pub stride_y: u16,
    /// Attention weights, one f16 a sample.
    pub weights: u64,
    /// Offsets, two f16 a sample.
    pub offsets: u64,
    /// The entry holds a query.
    pub valid: bool,
    /// Samples have offsets.
    pub has_offsets: bool,
}

/// Bits of the two addresses.
const ADDRESS: [Field; 2] =
    [Field::new("the address of the weights", 112, 48), Field::new("the address of the offsets", 160, 48)];
const FLAGS: u32 = 208;
const RESERVED: u32 = 210;

impl Parameters {
    /// The entry, if everything fits its field.
    pub fn encode(&self) -> Result<[u8; SIZE], WordError> {
        let mut out = [0; SIZE];
        for (n, half) in self.halves().into_iter().enumerate() {
            out[2 * n..2 * n + 2].copy_from_slice(&half.to_le_bytes());
        }
        for (field, value) in ADDRESS.into_iter().zip([self.weights, self.offsets]) {
            field.check(value)?;
            let first = field.low as usize / 8;
            out[first..first + 6].copy_from_slice(&value.to_le_bytes()[..6]);
        }
        out[FLAGS as usize / 8] = u8::from(self.valid) | u8::from(self.has_offsets) << 1;
        Ok(out)
    }

    fn halves(&self) -> [u16; 7] {
        [self.query, self.samples, self.current, self.ref_x, self.ref_y, self.stride_x, self.stride_y]
    }

    /// The query of an entry.
    pub fn decode(bytes: &[u8]) -> Result<Parameters, WordError> {
        let b: &[u8; SIZE] = bytes.try_into().map_err(|_| WordError::Length {
            what: "a parameter entry",
            wanted: SIZE,
            found: bytes.len(),
        })?;
        let half = |n: usize| u16::from_le_bytes([b[2 * n], b[2 * n + 1]]);
        let address = |f: Field| {
            let first = f.low as usize / 8;
            b[first..first + 6].iter().rev().fold(0, |a, &x| a << 8 | u64::from(x))
        };
        let tail = b[FLAGS as usize / 8..].iter().rev().fold(0, |a, &x| a << 8 | u64::from(x));
        let reserved = tail >> (RESERVED - FLAGS);
        if reserved != 0 {
            return Err(WordError::Reserved { field: "bits 210 to 255 of a parameter entry", value: reserved });
        }
        Ok(Parameters {
            query: half(0),
            samples: half(1),
            current: half(2),
            ref_x: half(3),
            ref_y: half(4),
            stride_x: half(5),
            stride_y: half(6),
            weights: address(ADDRESS[0]),
            offsets: address(ADDRESS[1]),
            valid: tail & 1 != 0,
            has_offsets: tail & 2 != 0,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The fields take exactly 256 bits.
    #[test]
    fn fields_fill_the_register() {
        let bits = 7 * 16 + ADDRESS.iter().map(|f| f.bits).sum::<u32>() + 2 + (256 - RESERVED);
        assert_eq!(bits, 256);
        assert_eq!(ADDRESS[0].low, 7 * 16);
        assert_eq!(ADDRESS[1].low, ADDRESS[0].low + 48);
        assert_eq!(FLAGS, ADDRESS[1].low + 48);
        let ones = Parameters {
            query: !0,
            samples: !0,
            current: !0,
            ref_x: !0,
            ref_y: !0,
            stride_x: !0,
            stride_y: !0,
            weights: (1 << 48) - 1,
            offsets: (1 << 48) - 1,
            valid: true,
            has_offsets: true,
        };
        let mut expected = [0xff; SIZE];
        expected[26..].copy_from_slice(&[3, 0, 0, 0, 0, 0]);
        assert_eq!(ones.encode(), Ok(expected));
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let p = Parameters { weights: 1 << 48, ..Parameters::default() };
        assert_eq!(
            p.encode().unwrap_err().to_string(),
            "the address of the weights is 0x1000000000000, and has 48 bits: at most 0xffffffffffff"
        );
        let mut bytes = Parameters::default().encode().unwrap();
        bytes[26] = 4;
        assert!(matches!(Parameters::decode(&bytes), Err(WordError::Reserved { value: 1, .. })));
        assert!(matches!(Parameters::decode(&bytes[1..]), Err(WordError::Length { found: 31, .. })));
    }

    proptest! {
        #[test]
        fn entries_round_trip(halves: [u16; 7], weights: u64, offsets: u64, valid: bool, has_offsets: bool) {
            let [query, samples, current, ref_x, ref_y, stride_x, stride_y] = halves;
            let (weights, offsets) = (weights >> 16, offsets >> 16);
            let p = Parameters {
                query, samples, current, ref_x, ref_y, stride_x, stride_y, weights, offsets, valid, has_offsets,
            };
            prop_assert_eq!(Parameters::decode(&p.encode().unwrap()), Ok(p));
        }
    }
}

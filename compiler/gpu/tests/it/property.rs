//! Random functions: PTX and the evaluator of loop IR agree.

use crate::generate::{Generator, INPUT, OUTPUT, PLACE};
use crate::make::agree;
use proptest::prelude::*;
use ptoc_ir::loops::{text, verify};

/// Bytes that hold many interesting floats and integers.
fn input(len: i64, seed: u32) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let words =
        [0x3f80_0000, 0x8000_0000, 0x7f80_0000, 0x0000_3c00, 0x0000_7bff, 0xc2c8_0000, 0x4b00_0001, 0x0001_0001];
    let mut out = Vec::new();
    while out.len() < len as usize {
        let word: u32 = match next() % 4 {
            0 => next(),
            1 => words[next() as usize % words.len()],
            2 => ((next() % 2001) as f32 / 8.0 - 125.0).to_bits(),
            _ => next() % 256,
        };
        out.extend(word.to_le_bytes());
    }
    out
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: crate::make::cases(192),
        max_shrink_iters: 400,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn ptx_agrees_with_the_evaluator(choices in proptest::collection::vec(any::<u8>(), 0..500), seed in any::<u32>()) {
        let module = Generator::module(&choices);
        if let Err(errors) = verify(&module) {
            prop_assert!(false, "{errors:?}");
        }
        let printed = text::print(&module, false);
        let mut place = input(PLACE, seed ^ 5);
        // The float cell of the atomics.
        place[PLACE as usize - 8..].copy_from_slice(&[0; 8]);
        let tensors = [input(INPUT, seed), vec![0; OUTPUT as usize], place];
        if let Err(why) = agree(&module, &[i64::from(seed % 100), 0], &tensors) {
            prop_assert!(false, "{why}\n{printed}");
        }
    }
}

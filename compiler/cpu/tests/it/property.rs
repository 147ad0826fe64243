//! Random functions: machine code and evaluator agree, text and data agree.

use crate::generate::{Generator, INPUT, OUTPUT, PLACE, input};
use crate::make::agree;
use proptest::prelude::*;
use ptoc_diagnostics::FileId;
use ptoc_ir::loops::{text, verify};

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ptoc_tests_budget::cases(32, 96),
        max_shrink_iters: 400,
        ..ProptestConfig::default()
    })]

    #[test]
    fn machine_code_agrees_with_the_evaluator(
        choices in proptest::collection::vec(any::<u8>(), 0..500),
        seed in any::<u32>(),
    ) {
        let module = Generator::module(&choices);
        if let Err(errors) = verify(&module) {
            prop_assert!(false, "{errors:?}\n{}", text::print(&module, false));
        }
        let printed = text::print(&module, true);
        let parsed = text::parse(&printed, FileId(0)).map_err(|e| TestCaseError::fail(format!("{e:?}\n{printed}")))?;
        prop_assert_eq!(&text::print(&parsed, true), &printed);
        prop_assert_eq!(&parsed.block.body, &module.block.body);
        let mut place = input(PLACE, seed ^ 5);
        // The float cell of the atomics.
        place[PLACE as usize - 8..].copy_from_slice(&[0; 8]);
        let tensors = [input(INPUT, seed), vec![0; OUTPUT as usize], place];
        if let Err(why) = agree(&module, &[i64::from(seed % 100), 0], &tensors) {
            prop_assert!(false, "{why}\n{printed}");
        }
    }
}

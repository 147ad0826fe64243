#![no_main]

mod mutate;

use libfuzzer_sys::{fuzz_crossover, fuzz_mutator, fuzz_target};

fuzz_target!(|data: &[u8]| ptoc_fuzz::pto(data));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    mutate::mutate(data, size, max_size, seed)
});

fuzz_crossover!(|a: &[u8], b: &[u8], out: &mut [u8], seed: u32| { mutate::crossover(a, b, out, seed) });

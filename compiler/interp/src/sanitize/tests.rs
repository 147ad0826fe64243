//! The sanitizer beside the interpreter: told of every statement before the interpreter executes it, it must say what
//! that says.

use super::*;

use crate::{End, Observer, RunningKernel, TensorArg};
use ptoc_diagnostics::{Code, codes};
use ptoc_ir::tile::{Elem, TileRef};
use rustc_hash::FxHashMap;
use std::ops::ControlFlow;

/// What the sanitizer finds.
const FOUND: [Code; 10] = [
    codes::TRAP_POISON_READ_TILE,
    codes::TRAP_TILE_OUT_OF_BOUNDS,
    codes::TRAP_TENSOR_OUT_OF_BOUNDS,
    codes::TRAP_BAD_TILE_ADDRESS,
    codes::TRAP_UNASSIGNED_TILE,
    codes::TRAP_TYPE_CONFUSED_BYTES,
    codes::TRAP_POISON_READ_TENSOR,
    codes::TRAP_BLOCK_RACE,
    codes::TRAP_OVERLAP,
    codes::TRAP_OWN_SOURCE,
];

/// Tells a watcher what the interpreter is about to do, in the place of machine code.
struct Teller<'s> {
    sites: FxHashMap<*const Stmt, u32>,
    list: Vec<(Vec<Value>, Vec<Data>)>,
    watcher: Box<dyn Watcher + 's>,
    goes_on: bool,
}

impl Teller<'_> {
    /// The elements of a tile as machine code has them in memory.
    fn tile(state: &RunningKernel<'_>, t: &TileRef) -> (Vec<u8>, i64, i64) {
        let number = |v: Value| state.value(v) as i64;
        let size = state.kernel().tiles[t.tile].ty.dtype.size();
        let (row, col) = t.origin.map_or((0, 0), |(r, c)| (number(r), number(c)));
        let (rows, cols) = (number(t.valid.0).max(0), number(t.valid.1).max(0));
        let mut bytes = Vec::new();
        for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
            let element = t.element.map_or(0, number) as usize;
            let bits = state.element(t.tile, element, (row + i) as usize, (col + j) as usize).unwrap_or(0);
            bytes.extend(&bits.to_le_bytes()[..size]);
        }
        (bytes, cols * size as i64, size as i64)
    }

    fn tensor(state: &RunningKernel<'_>, tensor: TensorId) -> (Vec<u8>, i64, i64) {
        let dtype = state.kernel().tensors[tensor].dtype;
        let count = state.shape(tensor).iter().product::<u64>() as i64;
        let element = |n| state.tensor_element(tensor, Elem::Whole(dtype), n).unwrap_or(0).to_le_bytes();
        ((0..count).flat_map(|n| element(n)[..dtype.size()].to_vec()).collect(), 0, 0)
    }
}

impl Observer for Teller<'_> {
    fn block(&mut self, state: &RunningKernel<'_>) -> ControlFlow<()> {
        self.watcher.block(u64::from(state.block_number()), state.block());
        ControlFlow::Continue(())
    }

    fn before(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()> {
        if let (true, Some(&site)) = (self.goes_on, self.sites.get(&std::ptr::from_ref(stmt))) {
            let (arguments, data) = &self.list[site as usize];
            let mut values: Vec<i64> = arguments.iter().map(|&v| state.value(v) as i64).collect();
            let mut memory = Vec::new();
            for data in data {
                let (bytes, row, col) = match data {
                    Data::Tile(t) => Teller::tile(state, t),
                    Data::Scratch(t) => Teller::tensor(state, *t),
                };
                values.extend([bytes.as_ptr().expose_provenance() as i64, row, col]);
                memory.push(bytes);
            }
            self.goes_on = self.watcher.statement(site, &values);
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, _: &RunningKernel<'_>, _: &Stmt) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// Runs the kernel on the interpreter with the sanitizer beside it, and compares what they say.
pub(crate) fn beside(kernel: &Kernel, tensors: &[TensorArg], dims: &[i64], scalars: &[Option<u64>]) {
    let mut print = |_: &str| {};
    let options = crate::Options { overlap: true, ..crate::Options::default() };
    let (tensors, bits) = (tensors.to_vec(), scalars.iter().map(|s| s.unwrap_or(0)).collect::<Vec<u64>>());
    let memory: Vec<usize> = tensors.iter().map(|t| t.data.as_ptr().expose_provenance()).collect();
    // Their data is what tables are looked up in; the interpreter takes a copy.
    let mut launch = crate::InterpreterLaunch {
        tensors: tensors.clone(),
        dims: dims.to_vec(),
        scalars: scalars.to_vec(),
        options,
        print: &mut print,
    };
    // Of monstrous arrays the limit of memory is the interpreter's question.
    let monstrous = tensors.iter().any(|t| t.shape.iter().fold(1u64, |n, &e| n.saturating_mul(e)) > 1 << 24);
    if monstrous || ptoc_ir::tile::verify::verify(kernel).is_err() || scalars.iter().any(Option::is_none) {
        return;
    }
    let options = Options { dims, scalars: &bits, tensors: &memory, storage: &[], capacity: Vec::new() };
    let Ok(sanitizer) = Sanitizer::new(kernel, &options) else { return };
    let list = sites(kernel);
    let numbers = list.iter().map(|stmt| std::ptr::from_ref(*stmt)).zip(0..).collect();
    let known = known(kernel);
    let list = list.into_iter().map(|stmt| (arguments(stmt, &known), data(kernel, stmt))).collect();
    let mut teller = Teller { sites: numbers, list, watcher: sanitizer.watcher(), goes_on: true };
    let ended = crate::run_observed(kernel, &mut launch, &mut teller);
    drop(teller);
    drop(tensors);
    let text = || ptoc_ir::tile::text::print(kernel, ptoc_ir::tile::text::Spans::Omit);
    match (ended, sanitizer.finish()) {
        (Ok(outcome), Ok(holes)) => assert_eq!(outcome.unwritten, holes, "{}", text()),
        (Err(End::Trap(want)), Err(got)) => assert_eq!(got, want, "{}", text()),
        (Err(End::Trap(trap)), Ok(_)) => {
            let checked = kernel.checks.values().any(|check| check.code == trap.code);
            let found = (FOUND.contains(&trap.code) || trap.code == codes::COPY_CONFLICT) && !checked;
            assert!(!found, "the sanitizer does not find {} {}\n{}", trap.code, trap.message, text());
        }
        (Ok(_), Err(got)) => panic!("the sanitizer finds {} {}\n{}", got.code, got.message, text()),
        (Err(End::Stopped), _) => unreachable!("nobody stops the run"),
    }
}

//! Observers see every statement, values and elements, and change nothing.

use super::control::add_kernel;
use super::*;
use ptoc_ir::tile::{Stmt, Tile, TileRef, ViewRef};
use std::ops::ControlFlow;

/// Notes what it sees; ends the run before statement `stop`.
#[derive(Default)]
struct Notes {
    blocks: Vec<Vec<i64>>,
    before: usize,
    after: usize,
    /// Element (0, 0) of tile `z`, before and after every TADD.
    sums: Vec<(Result<u64, Unread>, Result<u64, Unread>)>,
    stop: Option<usize>,
    trap: Option<Trap>,
}

fn z(state: &RunningKernel<'_>) -> Result<u64, Unread> {
    let tile = state.kernel().tiles.iter().find(|(_, t)| t.name == "z").map(|(id, _)| id).expect("a tile");
    state.element(tile, 0, 0, 0)
}

fn is_add(stmt: &Stmt) -> bool {
    matches!(&stmt.op, Op::Inst(i) if i.instr == lookup("TADD").expect("an instruction"))
}

impl Observer for Notes {
    fn block(&mut self, state: &RunningKernel<'_>) -> ControlFlow<()> {
        assert_eq!(self.blocks.len(), state.block_number() as usize);
        self.blocks.push(state.block().to_vec());
        ControlFlow::Continue(())
    }

    fn before(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()> {
        if self.stop == Some(self.before) {
            return ControlFlow::Break(());
        }
        self.before += 1;
        if is_add(stmt) {
            self.sums.push((z(state), Err(Unread::Outside)));
        }
        ControlFlow::Continue(())
    }

    fn after(&mut self, state: &RunningKernel<'_>, stmt: &Stmt) -> ControlFlow<()> {
        self.after += 1;
        if is_add(stmt) {
            self.sums.last_mut().expect("noted").1 = z(state);
        }
        ControlFlow::Continue(())
    }

    fn trapped(&mut self, _: &RunningKernel<'_>, trap: &Trap) {
        self.trap = Some(trap.clone());
    }
}

fn run_noted(
    kernel: &Kernel,
    tensors: Vec<TensorArg>,
    dims: &[i64],
    notes: &mut Notes,
) -> (Result<InterpreterOutcome, End>, Vec<u8>) {
    let mut sink = |_: &str| {};
    let mut launch = InterpreterLaunch {
        tensors,
        dims: dims.to_vec(),
        scalars: Vec::new(),
        options: Options::default(),
        print: &mut sink,
    };
    let result = run_observed(kernel, &mut launch, notes);
    (result, launch.tensors.last().map(|t| t.data.clone()).unwrap_or_default())
}

fn floats() -> Vec<TensorArg> {
    let data: Vec<u64> = (0..5 * 9).map(|n| u64::from((n as f32).to_bits())).collect();
    let input = || arg(DType::F32, &[5, 9], &data);
    vec![input(), input(), TensorArg::empty(DType::F32, vec![5, 9])]
}

#[test]
fn every_statement_is_seen_and_nothing_changes() {
    let kernel = add_kernel();
    let mut notes = Notes::default();
    let (result, data) = run_noted(&kernel, floats(), &[5, 9], &mut notes);
    let (outcome, want) = run_with(&kernel, floats(), &[5, 9]).expect("it runs");
    assert_eq!(result.expect("it runs").stats, outcome.stats);
    assert_eq!(elements(DType::F32, &data), want);
    assert_eq!(notes.blocks, [[0, 0], [0, 1], [1, 0], [1, 1]]);
    assert_eq!(notes.before, notes.after);
    assert_eq!(notes.before, 4 * kernel.body.len());
    // Elements (0, 0), (0, 8), (4, 0), (4, 8) of x + x; a new block's tile is poison.
    let sums: Vec<_> = [0f32, 16.0, 72.0, 88.0].map(|x| (Err(Unread::Unwritten), Ok(u64::from(x.to_bits())))).into();
    assert_eq!(notes.sums, sums);
    assert_eq!(notes.trap, None);
}

#[test]
fn an_observer_ends_the_run() {
    let kernel = add_kernel();
    let mut notes = Notes { stop: Some(5), ..Notes::default() };
    let (result, _) = run_noted(&kernel, floats(), &[5, 9], &mut notes);
    assert_eq!(result.expect_err("stopped"), End::Stopped);
    assert_eq!((notes.before, notes.after), (5, 5));
    assert_eq!(notes.trap, None, "it knows that it has ended the run");
}

#[test]
fn an_observer_is_told_of_a_trap() {
    let mut b = Builder::new("k", at(0), "a2a3");
    let out = tensor(&mut b, "out", DType::F32, TensorDir::Out, &[2, 2]);
    b.begin_body();
    let tile: Tile = alloc(&mut b, "z", vec_ty(DType::F32, 2, 8));
    let (zero, one, two) = (b.index_const(0), b.index_const(1), b.index_const(2));
    let t: TileRef = b.tile_ref(tile, (two, two));
    let view = ViewRef { tensor: out, offset: zero, shape: vec![two, two], strides: vec![two, one] };
    inst(&mut b, "TSTORE", vec![Operand::View(view), Operand::Tile(t)], InstAttrs::default(), at(3));
    let kernel = b.finish();
    let mut notes = Notes::default();
    let (result, _) = run_noted(&kernel, vec![TensorArg::empty(DType::F32, vec![2, 2])], &[], &mut notes);
    let End::Trap(trap) = result.expect_err("poison") else { panic!("not stopped") };
    assert_eq!(trap.code, ptoc_diagnostics::codes::TRAP_POISON_READ_TILE);
    assert_eq!(notes.trap, Some(trap));
    assert_eq!(notes.before, notes.after + 1);
}

//! Lanes that are joined and stored: with rows that follow each other in one place, and with rows of their own.

use crate::make::{Build, agree, space, strided, tensor};
use ptoc_ir::loops::{BinOp, For, LTy, Lanes, MemTy, Module, Op};

const ROWS: i64 = 2;
const COLS: i64 = 80;

/// Each row is stored to a space, `apart` bytes behind the one before, and joined with partials of its own.
fn rows(apart: i64) -> Module {
    let mut f = Build::new(0);
    let [zero, rows, cols] = [0, ROWS, COLS].map(|n| f.i64(n));
    let [of_row, of_partials, of_store] = [4 * COLS, 256, apart].map(|n| f.i64(n));
    let label = f.labels.push(());
    let index = f.reg(LTy::I64);
    f.open.push(Vec::new());
    let [from, partials, to] = [of_row, of_partials, of_store].map(|by| f.binary(BinOp::Mul, index, by));
    let lane = f.reg(LTy::I64);
    f.open.push(Vec::new());
    let x = f.load(MemTy::F32, strided(tensor(0, from), 4));
    f.store(MemTy::F32, strided(space(0, to), 4), x);
    f.push(Op::Join { op: BinOp::Add, ty: MemTy::F32, addr: tensor(1, partials), value: x });
    let body = f.open.pop().expect("the lanes");
    f.push(Op::Lanes(Box::new(Lanes { lane, count: cols, body })));
    let body = f.open.pop().expect("the loop");
    f.push(Op::For(Box::new(For { label, index, lo: zero, hi: rows, step: 1, body })));
    f.module(2)
}

fn sums(apart: i64) {
    let x: Vec<u8> = (0..ROWS * COLS).flat_map(|n| (n as f32 + 0.5).to_le_bytes()).collect();
    let partials = vec![0; 256 * ROWS as usize];
    agree(&rows(apart), &[], &[x, partials]).unwrap_or_else(|why| panic!("rows {apart} bytes apart: {why}"));
}

#[test]
fn rows_that_follow_each_other_in_one_place() {
    sums(0);
}

#[test]
fn rows_with_places_of_their_own() {
    sums(4 * COLS);
}

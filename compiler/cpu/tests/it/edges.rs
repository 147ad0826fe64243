//! Tensors that end, or begin, where the memory does: no access may touch a byte that is not its lanes'.

use crate::make::{Build, compiled, strided, tensor, widths};
use ptoc_exec::{LaunchArgs, TensorArg};
use ptoc_ir::loops::eval::{Memory, run};
use ptoc_ir::loops::{BinOp, For, LTy, Lanes, MemTy, Module, Op};
use region::Protection;

/// Pages that may be used, between two that may not.
struct Fenced {
    pages: region::Allocation,
    page: usize,
}

impl Fenced {
    fn new(bytes: usize) -> Fenced {
        let page = region::page::size();
        let inside = bytes.div_ceil(page).max(1) * page;
        let pages = region::alloc(inside + 2 * page, Protection::READ_WRITE).expect("some pages");
        let first = pages.as_ptr::<u8>();
        // SAFETY: both pages belong to the allocation, and nothing is kept in them.
        unsafe {
            region::protect(first, page, Protection::NONE).expect("the first page");
            region::protect(first.add(page + inside), page, Protection::NONE).expect("the last page");
        }
        Fenced { pages, page }
    }

    /// The first bytes, or the last ones.
    fn bytes(&mut self, count: usize, last: bool) -> &mut [u8] {
        let inside = self.pages.len() - 2 * self.page;
        let from = if last { inside - count } else { 0 };
        // SAFETY: the range lies between the two protected pages, and is borrowed as long as the allocation.
        unsafe { std::slice::from_raw_parts_mut(self.pages.as_mut_ptr::<u8>().add(self.page + from), count) }
    }
}

/// `t1[i, j] = t0[i, j]`, rows one after the other, elements forwards or backwards, with a known count or another.
fn moves(from: MemTy, to: MemTy, backwards: bool, known: Option<i64>, count: i64) -> Module {
    let mut f = Build::new(2);
    let zero = f.i64(0);
    let (a_size, b_size) = (i64::from(from.size()), i64::from(to.size()));
    let cols = known.map_or(f.params[1], |n| f.i64(n));
    let last = f.i64(if backwards { (count - 1).max(0) } else { 0 });
    let (a_step, b_step) = (f.i64(count * a_size), f.i64(count * b_size));
    let (a_size_reg, b_size_reg) = (f.i64(a_size), f.i64(b_size));
    let (a_last, b_last) = (f.binary(BinOp::Mul, last, a_size_reg), f.binary(BinOp::Mul, last, b_size_reg));
    let label = f.labels.push(());
    let (index, rows) = (f.reg(LTy::I64), f.params[0]);
    f.open.push(vec![]);
    let (a, b) = (f.binary(BinOp::Mul, index, a_step), f.binary(BinOp::Mul, index, b_step));
    let (a, b) = (f.binary(BinOp::Add, a, a_last), f.binary(BinOp::Add, b, b_last));
    let lane = f.reg(LTy::I64);
    f.open.push(vec![]);
    let sign = if backwards { -1 } else { 1 };
    let x = f.load(from, strided(tensor(0, a), sign * a_size));
    // Not a mere copy, which would be a routine.
    let y = match from.reg() {
        LTy::Bool => f.def(LTy::Bool, |dst| Op::Unary { dst, op: ptoc_ir::loops::UnOp::Not, a: x }),
        ty => f.def(ty, |dst| Op::Unary { dst, op: ptoc_ir::loops::UnOp::Neg, a: x }),
    };
    f.store(to, strided(tensor(1, b), sign * b_size), y);
    let body = f.open.pop().unwrap();
    f.push(Op::Lanes(Box::new(Lanes { lane, count: cols, body })));
    let body = f.open.pop().unwrap();
    f.push(Op::For(Box::new(For { label, index, lo: zero, hi: rows, step: 1, body })));
    f.module(2)
}

fn check(module: &Module, params: &[i64], input: &[u8], out: usize, last: bool) {
    let mut memory = Memory { tensors: vec![input.to_vec(), vec![0x5a; out]], arena: vec![0; module.arena as usize] };
    run(module, &module.block, params, &mut memory, &mut Vec::new(), 10_000_000).expect("inside");
    let (mut a, mut b) = (Fenced::new(input.len()), Fenced::new(out));
    for vectors in widths() {
        let kernel = compiled(module, vectors);
        a.bytes(input.len(), last).copy_from_slice(input);
        b.bytes(out, last).fill(0x5a);
        let args = [TensorArg::new(a.bytes(input.len(), last)), TensorArg::new(b.bytes(out, last))];
        let launch = LaunchArgs { params, tensors: &args, threads: 1, print: None };
        // SAFETY: the evaluator has checked every access.
        unsafe { kernel.launch(launch) }.expect("no checks");
        assert!(b.bytes(out, last) == memory.tensors[1], "{vectors:?} {params:?}, last {last}");
    }
}

#[test]
fn nothing_beyond_the_last_lane_is_touched() {
    let bytes: Vec<u8> = (0..2048u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 17) as u8 & 0x3f).collect();
    let types = MemTy::ALL.into_iter().flat_map(|from| MemTy::ALL.into_iter().map(move |to| (from, to)));
    for (n, (from, to)) in types.filter(|(from, to)| from.reg() == to.reg()).enumerate() {
        for count in 0..=70i64 {
            // Every count for a type with itself, some for conversions.
            if from != to && (count + n as i64) % 7 != 0 {
                continue;
            }
            let rows = 1 + count % 3;
            let elements = (rows * count) as usize;
            let input: Vec<u8> = match from {
                MemTy::Bool => bytes[..elements].iter().map(|b| b & 1).collect(),
                _ => bytes.iter().cycle().take(elements * from.size() as usize).copied().collect(),
            };
            let known = (count % 2 == 1).then_some(count);
            let backwards = count % 5 == 4;
            let module = moves(from, to, backwards, known, count);
            let out = elements * to.size() as usize;
            for last in [true, false] {
                check(&module, &[rows, count], &input, out, last);
            }
        }
    }
}

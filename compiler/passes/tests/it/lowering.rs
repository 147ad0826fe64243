//! Every instruction on every dtype, tails and windows included: the lowered code gives the interpreter's bits.

use crate::harness::*;
use ptoc_ir::tile::{InstAttrs, Operand, TensorDir, Ty, Value};
use ptoc_isa::{CmpOp, DTypeRule, InstrId, Loc, OperandKind, Order, Read, RoundMode, Sem};
use ptoc_tensor::DType;

const TILES: [DType; 11] = [
    DType::I8,
    DType::U8,
    DType::I16,
    DType::U16,
    DType::I32,
    DType::U32,
    DType::I64,
    DType::U64,
    DType::F16,
    DType::BF16,
    DType::F32,
];

/// Shapes: valid rows and columns, known to the compiler or not, in a capacity of 8 x 96.
const SHAPES: [(i64, i64, bool); 3] = [(8, 96, true), (5, 70, false), (1, 33, false)];

/// A kernel that loads `inputs`, applies one instruction and stores the result. Shapes of inputs and output are
/// given by a function of (rows, columns).
struct Case<'a> {
    name: &'a str,
    inputs: Vec<(DType, Shape)>,
    out: (DType, Shape),
    scalar: Option<(DType, u64)>,
    attrs: InstAttrs,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Full,
    Column,
    Row,
    Turned,
}

impl Shape {
    fn of<T: Copy>(self, (r, c): (T, T), one: T) -> (T, T) {
        match self {
            Shape::Full => (r, c),
            Shape::Column => (r, one),
            Shape::Row => (one, c),
            Shape::Turned => (c, r),
        }
    }
}

fn run_case(case: &Case, (rows, cols, known): (i64, i64, bool), order: Order, seed: u64) {
    let mut k = K::new(case.name);
    let (r, c): (Value, Value) = if known { (k.c(rows), k.c(cols)) } else { (k.dim("R"), k.dim("C")) };
    let one = k.c(1);
    let scalar = case.scalar.map(|(d, _)| {
        let span = k.span();
        k.b.scalar_param("s", Ty::D(d), span)
    });
    let mut args = Args { dims: if known { vec![] } else { vec![rows, cols] }, ..Args::default() };
    args.scalars.extend(case.scalar.map(|(_, bits)| bits));
    let mut tensors = Vec::new();
    for (n, (dtype, shape)) in case.inputs.iter().enumerate() {
        let (h, w) = shape.of((r, c), one);
        tensors.push(k.tensor(&format!("in{n}"), *dtype, TensorDir::In, &[h, w]));
        let (h, w) = shape.of((rows as u64, cols as u64), 1);
        args.tensors.push(tensor(*dtype, &[h, w], noise(*dtype, seed + n as u64)));
    }
    let out_shape = case.out.1.of((r, c), one);
    let out = k.tensor("out", case.out.0, TensorDir::Out, &[out_shape.0, out_shape.1]);
    let (h, w) = case.out.1.of((rows as u64, cols as u64), 1);
    args.tensors.push(tensor(case.out.0, &[h, w], []));
    k.b.begin_body();
    let capacity = |s: Shape| s.of((8, 96), 1);
    let order_of = |s: Shape| if s == Shape::Column { Order::Dn } else { order };
    let mut sources = Vec::new();
    for ((dtype, shape), &t) in case.inputs.iter().zip(&tensors) {
        let tile = k.tile("x", Loc::Vec, *dtype, capacity(*shape), order_of(*shape));
        let valid = shape.of((r, c), one);
        let (tile, view) = (k.r(tile, valid), k.view(t, valid.0, valid.1));
        k.load(tile, view);
        sources.push(tile);
    }
    let d = k.tile("d", Loc::Vec, case.out.0, capacity(case.out.1), order_of(case.out.1));
    let d = k.r(d, out_shape);
    // Tiles and the scalar, each where the row has it; an update finds the last input in its destination.
    let row = ptoc_isa::lookup(case.name).unwrap().get();
    let mut next = sources.iter().copied();
    let mut operands = vec![Operand::Tile(d)];
    for spec in &row.written()[1..] {
        operands.push(match spec.kind {
            OperandKind::Scalar(_) => Operand::Scalar(scalar.unwrap()),
            _ => Operand::Tile(next.next().unwrap()),
        });
    }
    if row.updates {
        operands.push(Operand::Tile(d));
        let (old, full) = (tensors[tensors.len() - 1], (r, c));
        let view = k.view(old, full.0, full.1);
        k.load(d, view);
    }
    k.inst(case.name, operands, case.attrs);
    let view = k.view(out, out_shape.0, out_shape.1);
    k.store(view, d);
    agree(&k.finish(), a5(), &args);
}

fn exists(op: ptoc_isa::BinOp, d: DType) -> bool {
    ptoc_ir::scalar::binary_exists(op, Ty::D(d))
}

/// The dtypes of the tiles that the author of an element-wise row may write, and of its scalar; on `d`, or, where the
/// row lists them, those that begin with it.
fn forms(row: &ptoc_isa::Instr, d: DType) -> Vec<(Vec<DType>, DType)> {
    let tiles = row.tiles_written();
    let lists: Vec<Vec<DType>> = match row.dtypes {
        DTypeRule::Tuples => {
            let lists = ptoc_isa::InstructionSet::builtin().flat_map(|set| set.list(row));
            let mut all: Vec<Vec<DType>> = lists.filter(|t| t[0] == d).cloned().collect();
            all.sort();
            all.dedup();
            all
        }
        DTypeRule::Mask => {
            let mut list = vec![d; tiles];
            list[usize::from(!row.sem.compares())] = DType::Bool;
            vec![list]
        }
        _ => vec![vec![d; tiles]],
    };
    let with_scalar = lists.into_iter().map(|list| {
        let fixed = row.operands.iter().find_map(|o| if let OperandKind::Scalar(d) = o.kind { d } else { None });
        let scalar = fixed.unwrap_or(list[list.len() - 1]);
        (list, scalar)
    });
    let fits = |(list, scalar): &(Vec<DType>, DType)| {
        let mut next = list.iter();
        let mut all: Vec<DType> = Vec::new();
        for spec in row.written() {
            all.push(if spec.is_tile() { *next.next().unwrap() } else { *scalar });
        }
        if row.updates {
            all.push(all[0]);
        }
        d != DType::Bool && row.sem.expr().is_some_and(|e| ptoc_ir::formula::fits(&e, &all))
    };
    with_scalar.filter(fits).collect()
}

/// Runs an instruction wherever it exists; dtypes are not restricted to a target's.
fn everywhere(id: InstrId) {
    let row = id.get();
    for (n, d) in TILES.into_iter().chain([DType::Bool]).enumerate() {
        let full = (d, Shape::Full);
        let plain = InstAttrs::default();
        let mut cases: Vec<Case> = Vec::new();
        let mut case = |inputs: Vec<(DType, Shape)>, out, attrs| {
            cases.push(Case { name: row.name, inputs, out, scalar: None, attrs });
        };
        match row.sem {
            Sem::Map(_) => {
                for (tiles, scalar) in forms(row, d) {
                    let modes =
                        if row.sem.compares() { CmpOp::ALL.iter().copied().map(Some).collect() } else { vec![None] };
                    for cmp in modes {
                        for bits in
                            noise(scalar, 77).take(if row.tiles_written() < row.written().len() { 3 } else { 1 })
                        {
                            let shape = |k: usize| match row.read(k) {
                                Read::Column => Shape::Column,
                                Read::Row => Shape::Row,
                                _ => Shape::Full,
                            };
                            let positions = row.operands.iter().enumerate().filter(|(_, o)| o.is_tile()).skip(1);
                            let inputs = tiles[1..].iter().chain(row.updates.then_some(&tiles[0]));
                            let inputs = inputs.zip(positions).map(|(d, (k, _))| (*d, shape(k))).collect();
                            cases.push(Case {
                                name: row.name,
                                inputs,
                                out: (tiles[0], Shape::Full),
                                scalar: Some((scalar, bits)),
                                attrs: InstAttrs { cmp, ..plain },
                            });
                        }
                    }
                }
            }
            Sem::Binary(op) if exists(op, d) => case(vec![full, full], full, plain),
            Sem::Unary(op) if ptoc_ir::scalar::unary_exists(op, Ty::D(d)) => case(vec![full], full, plain),
            Sem::Compare if d != DType::Bool => {
                for cmp in CmpOp::ALL {
                    let attrs = InstAttrs { cmp: Some(*cmp), ..plain };
                    case(vec![full, full], (DType::Bool, Shape::Full), attrs);
                }
            }
            Sem::Select if d != DType::Bool => case(vec![(DType::Bool, Shape::Full), full, full], full, plain),
            Sem::RowReduce(_) if d != DType::Bool => case(vec![full], (d, Shape::Column), plain),
            Sem::ColReduce(_) if d != DType::Bool => case(vec![full], (d, Shape::Row), plain),
            Sem::RowArg(_) if d != DType::Bool => case(vec![full], (DType::I32, Shape::Column), plain),
            Sem::ColArg(_) if d != DType::Bool => case(vec![full], (DType::U32, Shape::Row), plain),
            Sem::PairSum if d.is_float() => case(vec![full], full, plain),
            Sem::RowExpand if d != DType::Bool => case(vec![(d, Shape::Column)], full, plain),
            Sem::ColExpand if d != DType::Bool => case(vec![(d, Shape::Row)], full, plain),
            Sem::RowExpandBinary(op) if exists(op, d) && d != DType::Bool => {
                case(vec![full, (d, Shape::Column)], full, plain);
            }
            Sem::ColExpandBinary(op) if exists(op, d) && d != DType::Bool => {
                case(vec![full, (d, Shape::Row)], full, plain);
            }
            Sem::Transpose if d != DType::Bool => case(vec![full], (d, Shape::Turned), plain),
            Sem::BinaryScalar(op) if exists(op, d) && d != DType::Bool => {
                for reversed in [false, true] {
                    for bits in noise(d, 77).take(3) {
                        cases.push(Case {
                            name: row.name,
                            inputs: vec![full],
                            out: full,
                            scalar: Some((d, bits)),
                            attrs: InstAttrs { reversed, ..plain },
                        });
                    }
                }
            }
            Sem::Expand => {
                let bits = noise(d, 5).nth(8).unwrap();
                cases.push(Case { name: row.name, inputs: vec![], out: full, scalar: Some((d, bits)), attrs: plain });
            }
            _ => {}
        }
        for (m, case) in cases.iter().enumerate() {
            for (s, shape) in SHAPES.into_iter().enumerate() {
                let order = if (n + m + s) % 4 == 3 && d != DType::Bool { Order::Dn } else { Order::Nd };
                run_case(case, shape, order, (n * 100 + m * 10 + s) as u64);
            }
        }
    }
}

#[test]
fn every_instruction_on_vec_tiles() {
    for id in InstrId::all() {
        everywhere(id);
    }
}

#[test]
fn conversions_in_every_mode() {
    for from in TILES {
        for to in TILES {
            if from == to {
                continue;
            }
            for (n, round) in RoundMode::ALL.iter().enumerate() {
                let case = Case {
                    name: "TCVT",
                    inputs: vec![(from, Shape::Full)],
                    out: (to, Shape::Full),
                    scalar: None,
                    attrs: InstAttrs {
                        round: Some(*round),
                        saturate: [None, Some(true), Some(false)][n % 3],
                        ..InstAttrs::default()
                    },
                };
                run_case(&case, SHAPES[0], Order::Nd, n as u64 + 3);
                let flipped = Case {
                    attrs: InstAttrs { saturate: [Some(false), None, Some(true)][n % 3], ..case.attrs },
                    ..case
                };
                run_case(&flipped, SHAPES[1], Order::Nd, n as u64 + 17);
            }
        }
    }
}

/// c = a + b with a tail, as text: one loop of lanes an operation, offsets folded.
#[test]
fn text_of_an_addition() {
    let mut k = K::new("add");
    let span = k.span();
    let (m, n) = (k.dim("M"), k.c(64));
    let tensors = ["a", "b", "c"].map(|name| {
        let dir = if name == "c" { TensorDir::Out } else { TensorDir::In };
        k.tensor(name, DType::F32, dir, &[m, n])
    });
    let sixteen = k.c(16);
    let blocks = k.b.ceil_div(m, sixteen, span);
    let i = k.b.grid_dim("i", blocks, span);
    k.b.begin_body();
    let start = k.b.mul(i, sixteen, span);
    let rest = k.b.sub(m, start, span);
    let rows = k.b.binary(ptoc_isa::BinOp::Min, rest, sixteen, span);
    let offset = k.b.mul(start, n, span);
    let tiles = ["x", "y", "z"].map(|name| {
        let tile = k.tile(name, Loc::Vec, DType::F32, (16, 64), Order::Nd);
        k.r(tile, (rows, n))
    });
    let view = |k: &mut K, t: usize| ptoc_ir::tile::ViewRef { offset, ..k.view(tensors[t], rows, n) };
    for (t, tile) in tiles.iter().enumerate().take(2) {
        let view = view(&mut k, t);
        k.load(*tile, view);
    }
    k.tiles("TADD", &[tiles[2], tiles[0], tiles[1]]);
    let out = view(&mut k, 2);
    k.store(out, tiles[2]);
    let prepared = compile(&k.finish(), a5());
    insta::assert_snapshot!(ptoc_ir::loops::text::print(prepared.module.as_ref().expect("a target of PTO's"), false));
}

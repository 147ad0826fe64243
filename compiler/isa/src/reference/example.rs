//! A kernel that uses an instruction, for its page. Instructions on Vec tiles get one from their row; the few others
//! have one written here by their meaning.

use crate::{DTypeRule, Instr, OperandKind, Read, Role, Sem, ShapeRule, Target, allowed_dtypes, allowed_tuples};
use ptoc_tensor::DType;
use std::fmt::Write as _;

/// The name of a target that takes it, and the text; `None` for what needs more than a kernel (units in memory).
pub(super) fn example(row: &Instr) -> Option<(&'static str, String)> {
    let body = match row.sem {
        Sem::Sample => return None,
        Sem::Cells(cells) => cells.example,
        Sem::Named(named) => named.example,
        Sem::Fixpipe(fixpipe) => fixpipe.example,
        Sem::Assign => {
            "a: in f32[M, N], result: out f32[M, N]|let t = tile Vec<f32, i, j>;|TASSIGN(t, 0x0);|\
            TLOAD(t, a.tile(i, j));|TSTORE(result.tile(i, j), t);"
        }
        Sem::Load | Sem::Store => {
            "a: in f32[M, N], result: out f32[M, N]|let t = tile Vec<f32, i, j>;|TLOAD(t, a.tile(i, j));|\
            TSTORE(result.tile(i, j), t);"
        }
        Sem::Move => {
            "a: in f32[M, N], result: out f32[M, N]|let t = Vec(a.tile(i, j));|let d = tile Vec<f32, i, j>;|\
            TMOV(d, t);|TSTORE(result.tile(i, j), d);"
        }
        Sem::Gather => {
            "table: in f32[K], idx: in i32[M, N], result: out f32[M, N]|let idx = Vec(idx.tile(i, j));|\
            let d = tile Vec<f32, i, j>;|MGATHER(d, table, idx, oob = Zero);|TSTORE(result.tile(i, j), d);"
        }
        Sem::GatherRows => {
            "table: in f32[K, N], idx: in i32[M], result: out f32[M, N]|let rows = Vec(idx.tile(i));|\
            let d = tile Vec<f32, i, j>;|MGATHER(d, table.tile(_, j), rows, Row, Clamp);|TSTORE(result.tile(i, j), d);"
        }
        Sem::ScatterRows => {
            "a: in f32[M, N], result: out f32[M, N]|let a = Vec(a.tile(i, j));|\
            let idx = tile Vec<i32, 1, 32, valid = (1, i.len)>;|TCI(idx, i32(i.len - 1), Down);|\
            MSCATTER(result.tile(i, j), a, idx, Row);"
        }
        Sem::Prefetch => {
            "a: in f32[M, N], result: out f32[M, N]|TPREFETCH_ASYNC(a.tile(i, j));|let t = Vec(a.tile(i, j));|\
            TSTORE(result.tile(i, j), t);"
        }
        Sem::ScatterTo => {
            "a: in f32[M, N], result: out f32[RB, N]|let a = Vec(a[i.start, _].tile(j));|\
            let idx = tile Vec<i32, 1, j>;|TCI(idx, i32(j.len - 1), Down);|\
            MSCATTER(result[i.index, _].tile(j), a, idx);"
        }
        Sem::Scatter => {
            "a: in f32[M, N], result: out f32[M, N]|let dst = tile Vec<f32, i, j>;|TEXPANDS(dst, 0.0);|\
            let a = Vec(a.tile(i, j));|let rows = tile Vec<i32, i, j>;|TEXPANDS(rows, 0);|TSCATTER(dst, a, rows);|\
            TSTORE(result.tile(i, j), dst);"
        }
        Sem::Matmul if row.shape == ShapeRule::Gemv => {
            "a: in f16[32], b: in f16[32, N], result: out f32[RB, N], x: in f16[M]|\
            let acc = tile Acc<f32, 16, j, valid = (1, j)>;|TGEMV(acc, Left(a), Right(b.tile(_, j)));|\
            TSTORE(result[i.index, _].tile(j), acc);"
        }
        Sem::MatmulBias if row.shape == ShapeRule::Gemv => {
            "a: in f16[32], b: in f16[32, N], bias: in f32[N], result: out f32[RB, N], x: in f16[M]|\
            let acc = tile Acc<f32, 16, j, valid = (1, j)>;|\
            TGEMV_BIAS(acc, Left(a), Right(b.tile(_, j)), Bias(bias.tile(j)));|TSTORE(result[i.index, _].tile(j), acc);"
        }
        Sem::MatmulAcc if row.shape == ShapeRule::Gemv => {
            "a: in f16[K], b: in f16[K, N], result: out f32[RB, N], x: in f16[M]|\
            let acc = tile Acc<f32, 16, j, valid = (1, j)>;|acc = 0.0;|\
            for k in tiles(K, 32) {|    TGEMV_ACC(acc, acc, Left(a.tile(k)), Right(b.tile(k, j)));|}|\
            TSTORE(result[i.index, _].tile(j), acc);"
        }
        Sem::Matmul => {
            "a: in f16[M, 32], b: in f16[32, N], result: out f32[M, N]|let acc = tile Acc<f32, i, j>;|\
            TMATMUL(acc, Left(a.tile(i, _)), Right(b.tile(_, j)));|TSTORE(result.tile(i, j), acc);"
        }
        Sem::MatmulBias => {
            "a: in f16[M, 32], b: in f16[32, N], bias: in f32[N], result: out f32[M, N]|let acc = tile Acc<f32, i, j>;|\
            TMATMUL_BIAS(acc, Left(a.tile(i, _)), Right(b.tile(_, j)), Bias(bias.tile(j)));|\
            TSTORE(result.tile(i, j), acc);"
        }
        Sem::MatmulAcc => {
            "a: in f16[M, K], b: in f16[K, N], result: out f32[M, N]|let acc = tile Acc<f32, i, j>;|acc = 0.0;|\
            for k in tiles(K, 32) {|    TMATMUL_ACC(acc, acc, Left(a.tile(i, k)), Right(b.tile(k, j)));|}|\
            TSTORE(result.tile(i, j), acc);"
        }
        Sem::DeinterleaveOne => {
            "x: in f32[M, N], result: out f32[CB, M]|let src = Vec(x.tile(i, j));|let odd = tile Vec<f32, i, j>;|\
            let even = tile Vec<f32, i, j>;|TDEINTERLEAVE(odd, even, src);|let sums = tile Vec<f32, i, 1>;|\
            TROWSUM(sums, even);|TSTORE(col(result[j.index, _]).tile(i, _), sums);"
        }
        _ => return of_vec_tiles(row),
    };
    let mut parts = body.split('|');
    let params = parts.next()?;
    let lines: Vec<&str> = parts.collect();
    Some(("a5", kernel(params, &lines)))
}

fn kernel<S: AsRef<str>>(params: &str, lines: &[S]) -> String {
    let mut out = format!("kernel example({params}) {{\n    grid (i in tiles(M, 32), j in tiles(N, 64));\n");
    for line in lines {
        writeln!(out, "    {}", line.as_ref()).expect("a string takes it");
    }
    out.push_str("}\n");
    out
}

/// The dtypes of the tiles of an example: f32 where it can be.
fn tiles(target: &Target, row: &Instr) -> Option<Vec<DType>> {
    let count = row.tiles_written();
    match row.dtypes {
        DTypeRule::Tuples => {
            let list = allowed_tuples(target, row)?;
            list.iter().find(|t| t.contains(&DType::F32)).or(list.first()).map(|t| t.to_vec())
        }
        DTypeRule::Pairs => Some(vec![DType::F16, DType::F32]),
        DTypeRule::Same | DTypeRule::Mask => {
            let list = allowed_dtypes(target, row)?;
            let best = [DType::F32, DType::I32].into_iter().find(|d| list.contains(d));
            let d = best.or(list.first().copied())?;
            let mut all = vec![d; count];
            if matches!(row.dtypes, DTypeRule::Mask) {
                all[usize::from(!row.sem.compares())] = DType::Bool;
            }
            Some(all)
        }
        _ => None,
    }
}

fn of_vec_tiles(row: &Instr) -> Option<(&'static str, String)> {
    let (target, dtypes) = Target::pto().iter().find_map(|t| Some((t.name.as_str(), tiles(t, row)?)))?;
    let (mut params, mut lines, mut names) = (Vec::new(), Vec::new(), Vec::new());
    let mut next = dtypes.iter().copied();
    let (mut results, mut stores) = (Vec::new(), Vec::new());
    for (k, spec) in row.written().iter().enumerate() {
        if let OperandKind::Scalar(d) = spec.kind {
            let float = d.unwrap_or(*dtypes.last()?).is_float();
            names.push(if float { "2.0" } else { "2" }.to_owned());
            continue;
        }
        let d = next.next()?;
        let name = spec.name;
        // The second source of a partial operation is half as wide.
        let half = row.shape == ShapeRule::Part && name.starts_with('b');
        names.push(if half { format!("{name}.valid({name}.rows, {name}.cols / 2)") } else { name.to_owned() });
        if spec.role == Role::Dst {
            let result = if k == 0 { "result".to_owned() } else { format!("result_{name}") };
            let (extents, form, window) = match row.shape {
                ShapeRule::RowReduce => ("CB, M", "i, 1", format!("col({result}[j.index, _]).tile(i, _)")),
                ShapeRule::ColReduce => ("RB, N", "1, j", format!("{result}[i.index, _].tile(j)")),
                ShapeRule::Transpose => ("N, M", "j, i", format!("{result}.tile(j, i)")),
                _ => ("M, N", "i, j", format!("{result}.tile(i, j)")),
            };
            if row.updates {
                params.push(format!("x: in {d}[{extents}]"));
                lines.push(format!("let {name} = Vec(x.tile(i, j));"));
            } else {
                lines.push(format!("let {name} = tile Vec<{d}, {form}>;"));
            }
            let stored = if d == DType::Bool { *dtypes.last()? } else { d };
            results.push(format!("{result}: out {stored}[{extents}]"));
            stores.push(format!("TSTORE({window}, {name});"));
            continue;
        }
        if d == DType::Bool {
            // A mask comes of a comparison.
            let data = *dtypes.last()?;
            params.push(format!("{name}: in {data}[M, N]"));
            lines.push(format!("let {name} = Vec({name}.tile(i, j)) > 0.0;"));
            continue;
        }
        let (extents, window) = match row.read(k) {
            Read::Column => ("M", format!("col({name}).tile(i, _)")),
            Read::Row => ("N", format!("{name}.tile(j)")),
            _ => ("M, N", format!("{name}.tile(i, j)")),
        };
        params.push(format!("{name}: in {d}[{extents}]"));
        lines.push(format!("let {name} = Vec({window});"));
    }
    let mode = if row.sem.compares() { ", LT" } else { "" };
    lines.push(format!("{}({}{mode});", row.written_name(), names.join(", ")));
    if dtypes[0] == DType::Bool {
        // What a mask is for.
        let data = *dtypes.last()?;
        lines.push(format!("let chosen = tile Vec<{data}, i, j>;"));
        lines.push(format!("TSEL(chosen, dst, a, {});", if names.len() > 2 && names[2] == "b" { "b" } else { "a" }));
        stores[0] = stores[0].replace(", dst)", ", chosen)");
    }
    lines.extend(stores);
    params.extend(results);
    Some((target, kernel(&params.join(", "), &lines)))
}

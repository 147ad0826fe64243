//! The page of an instruction, from its row of the table.

use super::example::example;
use super::{error_bound, put};
use crate::{
    AtomicOp, DTypeRule, Instr, Loc, OperandKind, Pipe, PipeRule, Role, Scratch, Sem, ShapeRule, TABLE, Target,
    allowed_dtypes, lookup, math, pipe_of, tcvt_pairs, text,
};
use ptoc_tensor::DType;

/// `spec/instructions/NAME.md`.
pub fn instruction_page(row: &Instr) -> String {
    page(row, &|name| format!("[{name}]({name}.md)"))
}

/// The same without links: what `ptoc explain NAME` prints.
pub fn instruction_text(row: &Instr) -> String {
    page(row, &|name| name.to_owned())
}

fn page(row: &Instr, link: &dyn Fn(&str) -> String) -> String {
    let mut out = format!("# {}\n\n{}\n\n```\n{}\n```\n\n", row.usage(), row.doc, row.formula());
    put(&mut out, format_args!("* Operands: {}.\n", operand_list(row)));
    for m in row.modes {
        put(&mut out, format_args!("* {}: {}.\n", text::either(m.words.iter().map(|w| format!("`{w}`"))), m.doc));
    }
    put(&mut out, format_args!("* Shapes: {}.\n", shape(row)));
    dtypes(&mut out, row);
    if row.modes.iter().any(|m| m.words.contains(&"atomic = true")) {
        updates(&mut out, row);
    }
    put(&mut out, format_args!("* Pipe: {}.\n", pipe(row)));
    if let Some(wanted) = scratch(row.scratch) {
        let on: Vec<&str> = Target::all().iter().filter(|t| t.instructions.scratch).map(|t| t.name.as_str()).collect();
        let verb = if on.len() == 1 { "wants" } else { "want" };
        put(&mut out, format_args!("* Scratch: {} {verb} {wanted}; the compiler adds it.\n", text::list(on)));
    }
    if let Some(id) = lookup(row.name) {
        let there = |t: &&Target| {
            !(allowed_dtypes(t, row).is_some_and(|d| d.is_empty())
                || crate::allowed_tuples(t, row).is_some_and(|d| d.is_empty()))
        };
        let apart = Target::all().iter().filter(there).filter(|t| crate::check_overlap(t, id, 1).is_some());
        let apart: Vec<&str> = apart.map(|t| t.name.as_str()).collect();
        if !apart.is_empty() {
            put(&mut out, format_args!("* The destination must not be a source on {}.\n", text::list(apart)));
        }
    }
    for p in programs(row) {
        put(&mut out, format_args!("* Error of {}: {}\n", p.name, error_bound(p)));
    }
    for part in crate::left_out(row.name) {
        put(&mut out, format_args!("* Left out: {}: {}.\n", part.what, part.why));
    }
    put(&mut out, format_args!("* Source: {}.\n", row.source));
    if let Some((target, text)) = example(row) {
        put(&mut out, format_args!("\n```tile target={target}\n{text}```\n"));
    }
    let related = related(row);
    if !related.is_empty() {
        let links = text::joined(related.iter().map(|r| link(r.name)));
        put(&mut out, format_args!("\nSee also: {links}.\n"));
    }
    out
}

/// Instructions of the same beginning: TADDS beside TADD; or, of those without, of the same meaning.
fn related(row: &Instr) -> Vec<&'static Instr> {
    let stem = |name: &'static str| {
        let name = name.trim_end_matches("_ACC").trim_end_matches("_BIAS");
        name.strip_suffix('S').filter(|tile| lookup(tile).is_some()).unwrap_or(name)
    };
    let own = TABLE.iter().find(|r| r.name == row.name).map_or("", |r| stem(r.name));
    let near = |r: &&Instr| r.name != row.name && (r.name.starts_with(own) || own.starts_with(stem(r.name)));
    let all: Vec<&Instr> = TABLE.iter().filter(near).collect();
    let same = |r: &&Instr| r.name != row.name && std::mem::discriminant(&r.sem) == std::mem::discriminant(&row.sem);
    match all.is_empty() {
        true => TABLE.iter().filter(same).filter(|r| r.source == row.source).take(8).collect(),
        false => all,
    }
}

fn pipe(row: &Instr) -> String {
    match row.pipe {
        _ if matches!(row.sem, Sem::Fixpipe(_)) => Pipe::Fix.to_string(),
        PipeRule::Store => {
            let reads = |loc: &Loc| row.operands.iter().any(|o| o.role == Role::Src && o.takes(*loc));
            match reads(&Loc::Acc) {
                true => {
                    let others = text::list([Loc::Vec, Loc::Mat].iter().filter(|l| reads(l)));
                    format!("{} from {others}, {} from Acc", Pipe::Mte3, Pipe::Fix)
                }
                false => Pipe::Mte3.to_string(),
            }
        }
        PipeRule::Move => "by the locations, as pipes.md lists them".to_owned(),
        _ => {
            let Some(id) = lookup(row.name) else { return String::new() };
            let plain = pipe_of(id, None, None);
            match pipe_of(id, None, Some(Loc::Mat)) {
                other if other != plain && row.operands[0].takes(Loc::Mat) => format!("{plain}, {other} in Mat"),
                _ => plain.to_string(),
            }
        }
    }
}

fn scratch(kind: Scratch) -> Option<&'static str> {
    Some(match kind {
        Scratch::None => return None,
        Scratch::LikeSource => "a tile like the source",
        Scratch::LikeResult => "a tile like the result",
        Scratch::Places => "a tile for the bits of a mask and a number for each element of the source",
        Scratch::Bytes => "a tile with a byte for each element of the source",
        Scratch::Remainder => "a row of a little more than the source's columns",
        Scratch::Transpose => "a tile as large as the result",
    })
}

fn operand_list(row: &Instr) -> String {
    let one = |o: &crate::OperandSpec| {
        let what = match o.kind {
            OperandKind::Tile(locs) if locs.len() == Loc::ALL.len() => "a tile in any location".to_string(),
            OperandKind::Tile(locs) => format!("a tile in {}", text::either(locs)),
            OperandKind::View => "a window of a tensor".to_string(),
            OperandKind::Scalar(None) if matches!(row.dtypes, DTypeRule::Tuples) => {
                let last = row.written().iter().rev().find(|o| o.is_tile()).map_or("dst", |o| o.name);
                format!("a scalar of the dtype of `{last}`")
            }
            OperandKind::Scalar(None) => "a scalar of the same dtype".to_string(),
            OperandKind::Scalar(Some(d)) => format!("a scalar of {d}"),
            OperandKind::Address => "a byte address".to_string(),
            OperandKind::Index => "an index".to_string(),
            OperandKind::Choice(words) => text::either(words.iter().map(|(w, n)| format!("`{w}` ({n})"))),
            OperandKind::Pad => "a scalar of the same dtype, `Zero`, `Max` or `Min`".to_string(),
        };
        format!("`{}` {what}", o.name)
    };
    let mut list: Vec<String> = row.written().iter().map(one).collect();
    if row.updates {
        list[0].push_str(", read too");
    }
    list.join(", ")
}

fn shape(row: &Instr) -> String {
    let own = match row.shape {
        ShapeRule::Own => Some("`dst` keeps its valid shape"),
        ShapeRule::Fixpipe if !row.sem.needs().is_empty() => {
            Some("`dst` keeps its valid shape, a table of scales has the window's columns")
        }
        ShapeRule::Whole => Some("`dst` becomes valid as a whole"),
        ShapeRule::Fixpipe if matches!(row.sem, Sem::Fixpipe(f) if f.by_column(row)) => {
            Some("one valid shape for `a` and what is written, `scale` is 1 x c")
        }
        _ => None,
    };
    match own {
        Some(own) => {
            let demands = crate::cells::demands(row);
            std::iter::once(own.to_owned())
                .chain(demands.iter().map(|d| format!("`{d}`")))
                .collect::<Vec<_>>()
                .join("; ")
        }
        None => fixed_shape(row.shape).to_owned(),
    }
}

fn fixed_shape(rule: ShapeRule) -> &'static str {
    match rule {
        // `shape` has said it.
        ShapeRule::Own | ShapeRule::Whole => "",
        ShapeRule::Counted => "`dst` keeps its valid shape r x c, `a` has r rows, `k` and `counts` are r x 1",
        ShapeRule::Gemv => "`dst` is 1 x n, `a` 1 x k, `b` k x n, a bias 1 x n; capacities agree as well",
        ShapeRule::RowParams => "`dst` and `a` are r x c, what follows r x 1",
        ShapeRule::Free => "none",
        ShapeRule::Same => "one valid shape for all",
        ShapeRule::RowReduce => "`a` is r x c, what is written r x 1",
        ShapeRule::ColReduce => "`a` is r x c, what is written 1 x c",
        ShapeRule::RowExpand => "`dst` is r x c, the small operand r x 1",
        ShapeRule::ColExpand => "`dst` is r x c, the small operand 1 x c",
        ShapeRule::Transpose => "`a` is r x c, `dst` c x r",
        ShapeRule::Part => {
            "one of `a` and `b` has the valid shape of `dst`, the other one lies within it; indices have the shapes of \
            their values"
        }
        ShapeRule::EvenColumns => "one valid shape for all, with an even number of columns",
        ShapeRule::Halves => "`src` is r x c with an even c, the others r x c/2",
        ShapeRule::Fixpipe => "one valid shape for all",
        ShapeRule::Matmul => "`dst` is m x n, `a` m x k, `b` k x n, a bias 1 x n; capacities agree as well",
        ShapeRule::Scattered => "`a` and `idx` have one valid shape",
        ShapeRule::GatherRows => "`dst` is r x c, `idx` 1 x r or r x 1, `table` has c columns",
        ShapeRule::ScatterRows => "`a` is r x c, `idx` 1 x r or r x 1, `table` has c columns",
        ShapeRule::Gather => "`dst` and `idx` have one valid shape",
        ShapeRule::Sample => "`dst` is 1 x c, `map` h x w x c, `geo` 4, `attn` s, `offs` s x 2",
    }
}

fn dtypes(out: &mut String, row: &Instr) {
    let columns = || Target::all().iter().map(|t| (t, allowed_dtypes(t, row).unwrap_or_default()));
    match row.dtypes {
        DTypeRule::Same | DTypeRule::Mask => {
            let what = match row.sem {
                _ if !matches!(row.dtypes, DTypeRule::Mask) => "Dtypes, one for all",
                sem if sem.compares() => "Dtypes of what is compared (the mask is bool)",
                _ => "Dtypes of all but the mask, which is bool",
            };
            put(out, format_args!("* {what}:\n"));
            for (names, list) in grouped(columns()) {
                put(out, format_args!("  * {names}: {}.\n", text::list(&list)));
            }
            let only = |t: &'static Target| lookup(row.name).map_or(&[][..], |id| t.instructions.equal_only(id));
            if row.dtypes == DTypeRule::Mask {
                for (t, only) in Target::all().iter().map(|t| (t, only(t))).filter(|(_, only)| !only.is_empty()) {
                    put(out, format_args!("  * {} compares {} with `eq` only.\n", t.name, text::list(only)));
                }
            }
        }
        DTypeRule::Pairs => {
            for (names, pairs) in grouped(Target::all().iter().map(|t| (t, tcvt_pairs(t)))) {
                put(out, format_args!("* Conversions on {names}:\n"));
                for from in DType::ALL {
                    let to: Vec<DType> = pairs.iter().filter(|(a, _)| *a == from).map(|(_, b)| *b).collect();
                    if !to.is_empty() {
                        put(out, format_args!("  * {from} to {}.\n", text::list(to)));
                    }
                }
            }
        }
        DTypeRule::Tuples => {
            let names = text::joined(row.written().iter().filter(|o| o.is_tile()).map(|o| format!("`{}`", o.name)));
            put(out, format_args!("* Dtypes, as ({names}):\n"));
            let each = Target::all().iter().map(|t| {
                let tuples = crate::allowed_tuples(t, row).unwrap_or_default();
                (t, tuples.iter().map(|t| format!("({})", text::joined(t.iter()))).collect::<Vec<_>>())
            });
            for (names, list) in grouped(each) {
                put(out, format_args!("  * {names}: {}.\n", text::list(&list)));
            }
            equal_only(out, row);
        }
        DTypeRule::Matmul => out.push_str("* Dtypes: the combinations of the target's matrix unit (targets.md).\n"),
        DTypeRule::Move => out.push_str("* Dtypes: with the locations, those of the target's moves (targets.md).\n"),
        DTypeRule::Fixpipe => match row.sem {
            Sem::Fixpipe(f) if f.quantised => {
                out.push_str("* Dtypes: with the locations, those of the target's quantising moves (targets.md).\n");
                if f.by_column(row) {
                    out.push_str("* Dtypes of `scale`, what the target moves to Scaling:\n");
                    for (names, list) in grouped(Target::pto().iter().map(|t| (t, crate::scales(t)))) {
                        put(out, format_args!("  * {names}: {}.\n", text::list(&list)));
                    }
                }
            }
            _ => out.push_str("* Dtypes: with the locations, those of the target's moves (targets.md).\n"),
        },
        DTypeRule::Gather => out.push_str("* Dtypes: any for data; the index is i32 or u32.\n"),
        DTypeRule::Sample => out.push_str("* Dtypes: `dst` is f32, all windows are f16.\n"),
        DTypeRule::Any => out.push_str("* Dtypes: any.\n"),
    }
}

/// Which elements it updates where they are, and how.
fn updates(out: &mut String, row: &Instr) {
    let Some(id) = lookup(row.name) else { return };
    let ops = [(AtomicOp::Add, "true"), (AtomicOp::Max, "Max"), (AtomicOp::Min, "Min")];
    put(
        out,
        format_args!(
            "* Dtypes with `atomic` (PTO's pages leave them open: here all numbers but 8-bit floats, which nothing \
            adds):\n"
        ),
    );
    let each = Target::pto().iter().map(|t| {
        let made = ops.iter().filter(|(op, _)| crate::check_atomic(t, id, *op, DType::I32).is_none());
        let made: Vec<String> = made.map(|(_, word)| format!("`{word}`")).collect();
        (t, vec![format!("{} with {}", text::list(crate::updated_dtypes(t)), text::either(made))])
    });
    for (names, list) in grouped(each) {
        put(out, format_args!("  * {names}: {}.\n", text::list(&list)));
    }
}

/// Which of the lists a target compares for equality alone.
fn equal_only(out: &mut String, row: &Instr) {
    let Some(id) = lookup(row.name).filter(|_| row.sem.compares()) else { return };
    for t in Target::all() {
        let refused = |l: &&[DType]| crate::check_dtypes(t, id, l, Some(crate::CmpOp::Gt)).is_some();
        let mut of: Vec<DType> = Vec::new();
        for list in crate::allowed_tuples(t, row).unwrap_or_default().into_iter().filter(refused) {
            of.extend(list.get(1).filter(|d| !of.contains(d)));
        }
        if !of.is_empty() {
            put(out, format_args!("  * {} compares {} with `EQ` only.\n", t.name, text::list(&of)));
        }
    }
}

/// Targets with equal lists together.
fn grouped<'a, T: PartialEq>(columns: impl Iterator<Item = (&'a Target, Vec<T>)>) -> Vec<(String, Vec<T>)> {
    let mut groups: Vec<(Vec<&str>, Vec<T>)> = Vec::new();
    for (t, list) in columns {
        match groups.iter_mut().find(|(_, l)| *l == list) {
            Some((names, _)) => names.push(&t.name),
            None => groups.push((vec![&t.name], list)),
        }
    }
    groups.into_iter().map(|(names, list)| (text::list(names), list)).collect()
}

/// The published programs that the expression calls.
fn programs(row: &Instr) -> Vec<&'static math::MathProgram> {
    let Some(expr) = row.sem.expr() else { return Vec::new() };
    let calls = |op| expr.any(&|e| matches!(e, crate::Expr::Un(o, _) if *o == op));
    let power = expr.any(&|e| matches!(e, crate::Expr::Pow(..))).then(math::pow);
    math::programs().iter().filter(|(op, _)| calls(*op)).map(|(_, p)| p).chain(power).collect()
}

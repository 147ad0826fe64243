//! Rules of targets: where the targets differ in what an instruction takes, there are two programs for each target in
//! `tests/ui/rules`, one that it takes and one that it refuses. The list of rules is derived here, from the instruction
//! table and the targets' files; the programs are written from it (`UPDATE_RULES=1`) and committed, and `ui.rs` holds
//! what is said about them.
//!
//! `tests/ui/rules/TARGET_GROUP.tile` has a kernel `NAME_takes..` and a kernel `NAME_refuses..` for each rule of the
//! group. A row that a target has not at all is taken by another target, whose file has its kernel.

mod pairs;

use crate::differential::case::tiles_of;
use crate::engine::check;
use ptoc_isa::{
    AtomicOp, CmpOp, Instr, InstrId, Loc, MemorySpace, MoveRule, OperandKind, Read, Role, Sem, ShapeRule, Target,
    Triple, allowed_dtypes, check_dtypes, check_overlap,
};
use ptoc_tensor::DType;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// What two programs of a target show.
struct Rule {
    group: &'static str,
    name: String,
    /// With the target that takes it.
    takes: Option<(&'static Target, Program)>,
    refuses: Program,
}

/// A kernel without its name: what follows the name is in the text.
#[derive(Clone)]
pub(crate) struct Program {
    /// `_i16`
    suffix: String,
    pub(crate) text: String,
}

const ROWS: usize = 32;
const COLS: usize = 64;

fn group(row: &Instr) -> &'static str {
    match row.source {
        "pto_isa 5.2" => "tile_with_tile",
        "pto_isa 5.3" => "tile_with_scalar",
        "pto_isa 5.4" => "reductions",
        "pto_isa 5.5" => "memory",
        "pto_isa 5.6" => "products",
        "pto_isa 5.7" => "movement",
        _ => "irregular",
    }
}

/// The dtypes of an instruction's tiles and its comparison.
pub(crate) type Form = (Vec<DType>, Option<CmpOp>);

pub(crate) fn forms(target: &Target, id: InstrId) -> Vec<Form> {
    let row = id.get();
    let words: Vec<&str> = row.modes.iter().flat_map(|m| m.words).copied().collect();
    let compared = CmpOp::ALL.iter().copied().filter(|c| words.contains(&c.name().to_uppercase().as_str()));
    let modes: Vec<Option<CmpOp>> = if row.sem.compares() { compared.map(Some).collect() } else { vec![None] };
    let all = tiles_of(target, row).into_iter();
    all.flat_map(|t| modes.iter().map(move |m| (t.clone(), *m)).collect::<Vec<_>>())
        .filter(|(t, cmp)| check_dtypes(target, id, t, *cmp).is_none())
        .collect()
}

pub(crate) fn has_all(target: &Target, tiles: &[DType]) -> bool {
    tiles.iter().all(|d| *d == DType::Bool || target.has_dtype(*d))
}

/// Whether the target has tiles of these dtypes where the instruction has its operands. If not, that is a rule of
/// tiles.
pub(crate) fn has_tiles(target: &Target, id: InstrId, tiles: &[DType]) -> bool {
    let specs = id.get().written().iter().filter(|o| o.is_tile());
    let there = |kind: OperandKind, d: DType| match kind {
        OperandKind::Tile(&[loc]) => target.cube_dtypes(loc).is_none_or(|list| list.contains(&d)),
        _ => true,
    };
    has_all(target, tiles) && specs.zip(tiles).all(|(o, d)| there(o.kind, *d))
}

fn suffix((tiles, cmp): &Form) -> String {
    let mut names: Vec<&str> = Vec::new();
    for d in tiles {
        if names.last() != Some(&d.name()) {
            names.push(d.name());
        }
    }
    names.extend(cmp.map(|c| c.name()));
    format!("_{}", names.join("_"))
}

/// Instructions on Vec tiles, from their rows.
fn on_tiles(row: &Instr, (tiles, cmp): &Form, over: bool) -> String {
    let (mut params, mut body, mut operands, mut stores) = (Vec::new(), String::new(), Vec::new(), String::new());
    let mut next = tiles.iter();
    for (k, spec) in row.written().iter().enumerate() {
        if let OperandKind::Scalar(d) = spec.kind {
            operands.push(if d.unwrap_or(*tiles.last().expect("a tile")).is_float() { "2.0" } else { "2" }.to_owned());
            continue;
        }
        let d = *next.next().expect("a dtype for each tile");
        let name = if spec.name == "x" { "t" } else { spec.name };
        let (r, c) = match (row.shape, spec.role) {
            (ShapeRule::RowReduce, Role::Dst) => (ROWS, 1),
            (ShapeRule::ColReduce, Role::Dst) => (1, COLS),
            (ShapeRule::Transpose, Role::Dst) => (COLS, ROWS),
            (ShapeRule::Halves, Role::Dst) => (ROWS, COLS / 2),
            _ => match row.read(k) {
                Read::Column => (ROWS, 1),
                Read::Row => (1, COLS),
                Read::Whole | Read::Turned => (ROWS, COLS),
            },
        };
        let (extents, window) = match (r, c) {
            (r, 1) => (format!("{r}"), "col(@)".to_owned()),
            (1, c) => (format!("{c}"), "@".to_owned()),
            (r, c) => (format!("{r}, {c}"), "@".to_owned()),
        };
        let of = |tensor: &str| window.replace('@', tensor);
        operands.push(name.to_owned());
        if spec.role == Role::Src {
            let source = if d == DType::Bool { DType::F32 } else { d };
            params.push(format!("x_{name}: in {source}[{extents}]"));
            let value = format!("Vec({})", of(&format!("x_{name}")));
            let value = if d == DType::Bool { format!("{value} > 0.0") } else { value };
            writeln!(body, "    let {name} = {value};").expect("fits");
            continue;
        }
        if row.updates {
            params.push(format!("x_{name}: in {d}[{extents}]"));
            writeln!(body, "    let {name} = Vec({});", of(&format!("x_{name}"))).expect("fits");
        } else {
            writeln!(body, "    let {name} = tile Vec<{d}, {r}, {c}>;").expect("fits");
        }
        let stored = if d == DType::Bool { DType::F32 } else { d };
        params.push(format!("y_{name}: out {stored}[{extents}]"));
        if d == DType::Bool {
            // A mask is seen by what it selects.
            writeln!(stores, "    let chosen = tile Vec<{stored}, {r}, {c}>;").expect("fits");
            writeln!(stores, "    let ones = tile Vec<{stored}, {r}, {c}>;\n    TEXPANDS(ones, 1.0);").expect("fits");
            writeln!(stores, "    let zeros = tile Vec<{stored}, {r}, {c}>;\n    TEXPANDS(zeros, 0.0);").expect("fits");
            writeln!(stores, "    TSEL(chosen, {name}, ones, zeros);\n    TSTORE(y_{name}, chosen);").expect("fits");
        } else {
            writeln!(stores, "    TSTORE({}, {name});", of(&format!("y_{name}"))).expect("fits");
        }
    }
    if over {
        // The first source is the destination too.
        operands[0] = operands[1].clone();
        let (dst, src) = (row.operands[0].name, &operands[1]);
        stores = stores.replace(&format!(", {dst})"), &format!(", {src})"));
        body = body
            .lines()
            .filter(|l| !l.contains(&format!("let {dst} = tile")))
            .fold(String::new(), |all, l| all + l + "\n");
    }
    let word = cmp.map_or(String::new(), |c| format!(", {}", c.name().to_uppercase()));
    format!(
        "({}) {{\n{body}    {}({}{word});\n{stores}}}\n",
        params.join(", "),
        row.written_name(),
        operands.join(", ")
    )
}

/// The program that runs a form of a row; none of rows that other rules are about.
pub(crate) fn program(id: InstrId, form: &Form) -> Option<Program> {
    let row = id.get();
    let text = match row.sem {
        Sem::Cells(_) | Sem::Named(_) | Sem::Scatter => {
            let text = crate::placed::kernel_of(id, &form.0, form.1)?;
            text.strip_prefix("kernel k")?.to_owned()
        }
        sem if sem.gathers() || sem.scatters() => return None,
        _ if row.written().iter().all(|o| {
            matches!(o.kind, OperandKind::Tile(at) if at.contains(&Loc::Vec))
                || matches!(o.kind, OperandKind::Scalar(_))
        }) =>
        {
            on_tiles(row, form, false)
        }
        _ => return None,
    };
    Some(Program { suffix: suffix(form), text })
}

/// Dtypes of rows, and comparisons.
fn of_dtypes(target: &'static Target, out: &mut Vec<Rule>) {
    let targets = Target::pto();
    let apart = |sem: Sem| matches!(sem, Sem::Sample | Sem::Convert);
    for id in InstrId::all().filter(|id| !apart(id.get().sem) && id.get().tiles_written() > 0) {
        let row = id.get();
        let mine = forms(target, id);
        let elsewhere = targets.iter().flat_map(|t| forms(t, id).into_iter().map(move |f| (t, f)));
        let others: Vec<(&Target, Form)> =
            elsewhere.filter(|(_, f)| !mine.contains(f) && has_tiles(target, id, &f.0)).collect();
        // Programs of a comparison that the row has not at all say no more than those of a dtype.
        let Some((_, refused)) = others.first() else { continue };
        let taken = mine.first().map(|f| (target, f));
        let taken = taken.or_else(|| others.first().map(|(t, f)| (*t, f)));
        let Some(refuses) = program(id, refused) else { continue };
        let takes = taken.and_then(|(t, f)| Some((t, program(id, f)?)));
        out.push(Rule { group: group(row), name: row.name.to_lowercase(), takes, refuses });
        // And of one that it has for other dtypes.
        if row.sem.compares() && !mine.is_empty() {
            let mode = others.iter().find(|(_, f)| mine.iter().any(|m| m.0 == f.0));
            if let Some((_, f)) = mode
                && let (Some(refuses), Some(takes)) =
                    (program(id, f), mine.iter().find(|m| m.0 == f.0).and_then(|m| program(id, m)))
            {
                let name = format!("{}_mode", row.name.to_lowercase());
                out.push(Rule { group: group(row), name, takes: Some((target, takes)), refuses });
            }
        }
    }
}

fn of_absent_dtypes(target: &'static Target, out: &mut Vec<Rule>) {
    let all: BTreeSet<DType> = Target::pto().iter().flat_map(|t| t.dtypes.clone()).collect();
    let copy = |d: DType| Program {
        suffix: String::new(),
        text: format!("(x: in {d}[8, 64], y: out f32[8, 64]) {{\n    let t = Vec(x);\n    TSTORE(y, f32(t));\n}}\n"),
    };
    for d in all.into_iter().filter(|d| !target.has_dtype(*d)) {
        let has = Target::pto().iter().find(|t| t.has_dtype(d)).expect("a target has it");
        out.push(Rule { group: "dtypes", name: d.name().to_owned(), takes: Some((has, copy(d))), refuses: copy(d) });
    }
}

/// A product of two windows.
pub(crate) fn product(t: &Triple) -> Program {
    Program {
        suffix: format!("_{}_{}_{}", t.acc, t.left, t.right),
        text: format!(
            "(a: in {1}[16, 32], b: in {2}[32, 32], y: out {0}[16, 32]) {{\n    let acc = tile Acc<{0}, 16, 32>;\n    \
             TMATMUL(acc, Left(a), Right(b));\n    TSTORE(y, acc);\n}}\n",
            t.acc, t.left, t.right
        ),
    }
}

fn of_triples(target: &'static Target, out: &mut Vec<Rule>) {
    let known = |t: &&Triple| [t.acc, t.left, t.right].iter().all(|d| target.has_dtype(*d));
    let all: Vec<&Triple> = Target::pto().iter().flat_map(|t| &t.triples).collect();
    for refused in all.into_iter().filter(known).filter(|t| !target.triples.contains(t)) {
        if out.iter().any(|r| r.name == "tmatmul" && r.refuses.suffix == product(refused).suffix) {
            continue;
        }
        let takes = target.triples.first().map(|t| (target, product(t)));
        out.push(Rule { group: "products", name: "tmatmul".to_owned(), takes, refuses: product(refused) });
    }
}

/// A tile of a move, filled; and one that is looked at.
pub(crate) fn moved(
    target: &Target,
    rule: (MemorySpace, MemorySpace, bool),
    (from, to): (DType, DType),
) -> Option<Program> {
    let (source, dest, quantised) = rule;
    let (mut params, mut body) = (Vec::new(), String::new());
    let one_row = matches!(dest, MemorySpace::Tile(Loc::Bias | Loc::Scaling));
    // Rows of a table of scales are whole lines of 128 bytes.
    let (r, c) = match dest {
        MemorySpace::Tile(Loc::Scaling) => (1, 64.max(128 / to.size())),
        _ if one_row => (1, 64),
        _ => (32, 32),
    };
    match source {
        MemorySpace::Tile(Loc::Acc) => {
            let triple = target.triples.iter().find(|t| t.acc == from)?;
            params.push(format!("a: in {}[{r}, {c}], b: in {}[{c}, {c}]", triple.left, triple.right));
            writeln!(body, "    let s = tile Acc<{from}, {r}, {c}>;\n    TMATMUL(s, Left(a), Right(b));")
                .expect("fits");
        }
        MemorySpace::Tile(loc) => {
            params.push(format!("x: in {from}[{r}, {c}]"));
            writeln!(body, "    let s = {loc}(x);").expect("fits");
        }
        MemorySpace::Gm => return None,
    }
    let scale = if quantised { ", 0.5" } else { "" };
    match dest {
        MemorySpace::Gm => {
            params.push(format!("y: out {to}[{r}, {c}]"));
            writeln!(body, "    TSTORE(y, s{scale});").expect("fits");
        }
        MemorySpace::Tile(loc) => {
            writeln!(body, "    let d = tile {loc}<{to}, {r}, {c}>;\n    TMOV(d, s{scale});").expect("fits");
        }
    }
    let suffix = if from == to { format!("_{from}") } else { format!("_{from}_{to}") };
    Some(Program { suffix, text: format!("({}) {{\n{body}}}\n", params.join(", ")) })
}

fn of_moves(target: &'static Target, out: &mut Vec<Rule>) {
    let pairs = |m: &MoveRule, q: bool| if q { m.quantised.clone() } else { m.pairs.clone() };
    let ways: BTreeSet<(String, String)> = Target::pto()
        .iter()
        .flat_map(|t| t.moves.iter().map(|m| (m.from.to_string(), m.to.to_string())))
        .filter(|(from, _)| from != "GM")
        .collect();
    for (from, to) in ways.into_iter().filter(|w| w.0 != Loc::Acc.name()) {
        for quantised in [false, true] {
            let rules =
                |t: &'static Target| t.moves.iter().filter(|m| m.from.to_string() == from && m.to.to_string() == to);
            let mine: Vec<(DType, DType)> = rules(target).flat_map(|m| pairs(m, quantised)).collect();
            let mut others = Target::pto()
                .iter()
                .flat_map(|t| rules(t).map(move |m| (t, m)))
                .flat_map(|(t, m)| pairs(m, quantised).into_iter().map(move |p| (t, (m.from, m.to, quantised), p)));
            let refused = others.find(|(_, _, p)| !mine.contains(p) && has_all(target, &[p.0, p.1]));
            let Some((other, way, pair)) = refused else { continue };
            let Some(refuses) = moved(target, way, pair) else { continue };
            let takes = match mine.first() {
                Some(p) => moved(target, way, *p).map(|p| (target, p)),
                None => moved(other, way, pair).map(|p| (other, p)),
            };
            let name =
                format!("{}_to_{}{}", from.to_lowercase(), to.to_lowercase(), if quantised { "_scaled" } else { "" });
            out.push(Rule { group: "moves", name, takes, refuses });
        }
    }
}

fn of_overlaps(target: &'static Target, out: &mut Vec<Rule>) {
    for id in InstrId::all() {
        let row = id.get();
        if check_overlap(target, id, 1).is_none() || Target::pto().iter().all(|t| check_overlap(t, id, 1).is_some()) {
            continue;
        }
        let numbers = allowed_dtypes(target, row).and_then(|l| l.into_iter().find(|d| *d != DType::Bool));
        let Some(d) = numbers else { continue };
        let form = (vec![d; row.tiles_written()], None);
        let program = |over| Program {
            suffix: if over { "_over_its_source" } else { "_beside" }.to_owned(),
            text: on_tiles(row, &form, over),
        };
        let name = format!("{}_dst", row.name.to_lowercase());
        out.push(Rule { group: "overlaps", name, takes: Some((target, program(false))), refuses: program(true) });
    }
}

fn of_updates(target: &'static Target, out: &mut Vec<Rule>) {
    let program = |word: &str| Program {
        suffix: format!("_{}", word.rsplit(' ').next().expect("a word").to_lowercase()),
        text: format!(
            "(a: in i32[8, 64], at: in i32[8, 64], t: inout i32[K]) {{\n    \
            MSCATTER(t, Vec(a), Vec(at), Skip, atomic = {word});\n}}\n"
        ),
    };
    for (op, word) in [(AtomicOp::Max, "Max"), (AtomicOp::Min, "Min")] {
        if !target.scatters_by(op) {
            out.push(Rule {
                group: "memory",
                name: "mscatter".to_owned(),
                takes: Some((target, program("true"))),
                refuses: program(word),
            });
        }
    }
}

/// Bytes of the memories: a tile at the end of each, and one beyond it; or one in a memory that is not there.
fn of_memories(target: &'static Target, out: &mut Vec<Rule>) {
    for loc in Loc::ALL.into_iter().filter(|l| !Loc::UNIT.contains(l)) {
        let capacity = target.capacity(loc);
        let (d, rows, cols): (DType, u32, u32) = match loc {
            Loc::Vec => (DType::F32, 8, 64),
            Loc::Mat => (DType::F16, 32, 32),
            Loc::Acc => (DType::I32, 16, 16),
            Loc::Bias => (DType::I32, 1, 16),
            Loc::Scaling => (DType::U64, 1, 16),
            _ => (DType::I8, 32, 32),
        };
        let bytes = u64::from(rows * cols) * d.size() as u64;
        let at = |suffix: &str, address: u64| Program {
            suffix: suffix.to_owned(),
            text: format!(
                "(x: in f32[8, 64]) {{\n    let t = tile {loc}<{d}, {rows}, {cols}>;\n    TASSIGN(t, {address});\n}}\n"
            ),
        };
        let name = loc.name().to_lowercase();
        if capacity == 0 {
            let Some(there) = Target::pto().iter().find(|t| t.capacity(loc) > 0) else { continue };
            out.push(Rule {
                group: "memories",
                name,
                takes: Some((there, at("_is_there", 0))),
                refuses: at("_is_not_there", 0),
            });
        } else if bytes <= capacity {
            let takes = Some((target, at("_at_its_end", capacity - bytes)));
            out.push(Rule { group: "memories", name, takes, refuses: at("_beyond_its_end", capacity - bytes + 32) });
        }
    }
}

/// Limits of instructions, as far as a memory is large enough to go beyond them.
fn of_limits(target: &'static Target, out: &mut Vec<Rule>) {
    let program = |n: u32, text: String| Program { suffix: format!("_{n}"), text };
    let mut add = |name: &str, (most, beyond): (u32, u32), there: bool, text: &dyn Fn(u32) -> String| {
        if there {
            let takes = Some((target, program(most, text(most))));
            out.push(Rule { group: "limits", name: name.to_owned(), takes, refuses: program(beyond, text(beyond)) });
        }
    };
    let room = |loc: Loc, bytes: u32| u64::from(bytes) <= target.capacity(loc);
    let limits = &target.limits;
    let rows =
        |table: &[(Loc, u32)], loc: Loc| table.iter().find(|(l, _)| *l == loc).map_or(u32::MAX / 64, |(_, n)| *n);
    let most = rows(&limits.load_rows, Loc::Vec);
    add("rows_of_a_load", (most, most + 1), room(Loc::Vec, 32 * (most + 1)), &|n| {
        format!("(x: in i8[{n}, 32]) {{\n    let t = tile Vec<i8, {n}, 32>;\n    TLOAD(t, x);\n}}\n")
    });
    let most = rows(&limits.load_rows, Loc::Mat);
    add("rows_of_a_load_to_mat", (most, most + 16), room(Loc::Mat, 32 * (most + 16)), &|n| {
        format!("(x: in i8[{n}, 32]) {{\n    let t = tile Mat<i8, {n}, 32>;\n    TLOAD(t, x);\n}}\n")
    });
    // Depths are whole boxes.
    let most = *limits.matmul_extent.end();
    let (most, beyond) = (most / 32 * 32, most.next_multiple_of(32));
    add("depth_of_a_product", (most, beyond), room(Loc::Left, 16 * beyond) && room(Loc::Right, 16 * beyond), &|n| {
        format!(
            "(a: in i8[16, {n}], b: in i8[{n}, 16], y: out i32[16, 16]) {{\n    let acc = tile Acc<i32, 16, 16>;\n    \
             TMATMUL(acc, Left(a), Right(b));\n    TSTORE(y, acc);\n}}\n"
        )
    });
    let most = *limits.store_cols.end();
    let (most, beyond) = (most / 16 * 16, most.next_multiple_of(16));
    add("columns_of_a_store", (most, beyond), room(Loc::Acc, 64 * beyond), &|n| {
        format!(
            "(y: out i32[16, {n}]) {{\n    let acc = tile Acc<i32, 16, {n}>;\n    acc = 0;\n    TSTORE(y, acc);\n}}\n"
        )
    });
    let most = u32::try_from(*limits.fill_blocks.end()).expect("small");
    let (most, beyond) = (most / 16 * 16, most.next_multiple_of(16));
    add("blocks_of_a_fill", (most, beyond), room(Loc::Mat, 32 * beyond), &|n| {
        format!("() {{\n    let t = tile Mat<i8, {n}, 32>;\n    TEXPANDS(t, 0);\n}}\n")
    });
}

/// All rules of a target.
fn rules(target: &'static Target) -> Vec<Rule> {
    let mut out = Vec::new();
    of_dtypes(target, &mut out);
    of_absent_dtypes(target, &mut out);
    of_triples(target, &mut out);
    of_moves(target, &mut out);
    pairs::of_conversions(target, &mut out);
    pairs::of_results(target, &mut out);
    pairs::of_factors(target, &mut out);
    of_overlaps(target, &mut out);
    of_updates(target, &mut out);
    of_memories(target, &mut out);
    of_limits(target, &mut out);
    out
}

/// What the target refuses, with names.
pub(crate) fn refused(target: &'static Target) -> Vec<(String, Program)> {
    rules(target).into_iter().map(|r| (r.name, r.refuses)).collect()
}

fn file(target: &Target, group: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("ui/rules").join(format!("{}_{group}.tile", target.name))
}

fn kernel(name: &str, verb: &str, p: &Program) -> String {
    let whole = if p.suffix.is_empty() { String::new() } else { p.suffix.clone() };
    format!("kernel {name}_{verb}{whole}{}", p.text)
}

/// The kernels of a file, each with its name.
fn kernels(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    for part in text.split("\nkernel ").skip(1) {
        let name = part.split('(').next().expect("a name").to_owned();
        out.push((name, format!("kernel {part}")));
    }
    out
}

#[test]
fn every_rule_of_a_target_has_a_program_that_it_takes_and_one_that_it_refuses() {
    // What each file should have.
    let mut files: BTreeMap<PathBuf, (&'static Target, Vec<String>, usize)> = BTreeMap::new();
    let mut without = Vec::new();
    for target in Target::pto() {
        for rule in rules(target) {
            let Some((taker, takes)) = &rule.takes else {
                without.push(format!("{} {}", target.name, rule.name));
                continue;
            };
            let mut add = |t: &'static Target, text: String, refused: usize| {
                let (_, list, errors) = files.entry(file(t, rule.group)).or_insert((t, Vec::new(), 0));
                if !list.contains(&text) {
                    list.push(text);
                    *errors += refused;
                }
            };
            add(taker, kernel(&rule.name, "takes", takes), 0);
            add(target, kernel(&rule.name, "refuses", &rule.refuses), 1);
        }
    }
    assert!(without.is_empty(), "{without:#?}");
    let (mut wrong, mut count) = (String::new(), 0);
    for (path, (target, list, errors)) in &files {
        let text = format!(
            "// target: {}\n// errors: {errors}\n// What {} takes and what it refuses (tests/it/rules.rs).\n\n{}",
            target.name,
            target.name,
            list.join("\n")
        );
        if std::env::var_os("UPDATE_RULES").is_some() {
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, &text).expect("writable");
        }
        let there = std::fs::read_to_string(path).unwrap_or_default();
        let have = kernels(&there);
        for wanted in kernels(&text) {
            count += 1;
            let Some((name, text)) = have.iter().find(|k| k.0 == wanted.0) else {
                writeln!(
                    wrong,
                    "{}: no kernel {} (`UPDATE_RULES=1 cargo test -p ptoc-tests rules` writes it)",
                    path.display(),
                    wanted.0
                )
                .expect("fits");
                continue;
            };
            let found = check(text, &target.name, &[]);
            let refused = name.contains("_refuses");
            // One error, and it is a matter of the target.
            let legality =
                |c: &&str| c.starts_with("E06") || c.starts_with("SA-") || **c == *"E0105" || c.starts_with("E04");
            if found.codes.len() != usize::from(refused) || !found.codes.iter().all(legality) {
                writeln!(wrong, "{}: {name}: {:?}\n{}{text}", path.display(), found.codes, found.text).expect("fits");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(count > 250, "{count}");
}

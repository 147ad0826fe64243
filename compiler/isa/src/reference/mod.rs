//! The reference pages: `spec/instructions.md` with a page for each instruction, and `spec/targets.md`, generated from
//! the table and the target files.

mod example;
mod page;

pub use page::{instruction_page, instruction_text};

use crate::{
    Instr, Loc, MemorySpace, NOT_YET, Otherwise, Pipe, PipeTimes, TABLE, Target, UnitKind, math, otherwise, text,
};
use ptoc_tensor::DType;
use std::fmt::Write as _;

/// `spec/instructions.md`.
pub fn reference_markdown() -> String {
    let mut out = String::from(
        "# Instructions\n\n\
         Generated from `compiler/isa` (`UPDATE_SPEC=1 cargo test -p ptoc-isa spec`). Do not edit.\n\n\
         An instruction is written as a statement, destination first: `TADD(z, x, y);`. Tiles have one valid shape \
         unless the shape rule says otherwise. Modes stand after the operands, those in brackets may be left out. Each \
         has a page, which `ptoc explain` prints too.\n\n| instruction | operands | meaning |\n|---|---|---|\n",
    );
    for row in TABLE {
        put(
            &mut out,
            format_args!(
                "| [{0}](instructions/{0}.md) | {1} | `{2}` |\n",
                row.name,
                operands(row),
                in_table(&row.formula())
            ),
        );
    }
    out.push_str(
        "\n## Math programs\n\nFunctions that are not one rounded operation are published straight-line programs in \
        f32 (`compiler/isa/src/math`); f16 is computed in f32 and rounded.\n\n",
    );
    for p in math::programs().iter().map(|(_, p)| p).chain([math::pow()]) {
        put(&mut out, format_args!("* `{}`, {} operations: {}\n", p.name, p.ops.len(), error_bound(p)));
    }
    let absent = |what: fn(Option<Otherwise>) -> bool| {
        text::list(NOT_YET.iter().filter(|n| what(otherwise(n))).map(|n| format!("`{n}`")))
    };
    out.push_str("\n## Not there\n\n");
    if NOT_YET.iter().any(|n| otherwise(n).is_none()) {
        let not_yet = absent(|o| o.is_none());
        put(&mut out, format_args!("Instructions of PTO that ptoc does not have yet (E0901): {not_yet}.\n\n"));
    }
    put(&mut out, format_args!("Not instructions, but there in another way:\n\n"));
    for (name, how) in NOT_YET.iter().filter_map(|n| Some((n, otherwise(n)?))) {
        if let Otherwise::As(how) = how {
            put(&mut out, format_args!("* `{name}`: {how}\n"));
        }
    }
    let left_out = absent(|o| matches!(o, Some(Otherwise::LeftOut(_))));
    put(&mut out, format_args!("\nNot part of the language ([coverage.md](coverage.md) says why): {left_out}.\n"));
    out
}

/// `spec/targets.md`.
pub fn targets_markdown() -> String {
    let mut out = String::from(TARGETS_HEAD);
    let all = Target::pto();
    let header: Vec<&str> = all.iter().map(|t| t.name.as_str()).collect();
    put(
        &mut out,
        format_args!(
            "\n## Memories\n\nBytes; a dash: the target has no such memory. Every tile starts at a multiple of 32 \
            bytes. The storage of a declared tile\n\
            is padded to whole rows of these multiples and whole boxes, unless it has a `layout` of its own; units in \
            memory pad nothing.\n\n| location | memory | {} |\n|---|---|{}\n",
            header.join(" | "),
            "---|".repeat(all.len())
        ),
    );
    for loc in Loc::ALL.into_iter().filter(|l| !Loc::UNIT.contains(l)) {
        let cells: Vec<String> = all
            .iter()
            .map(|t| match t.capacity(loc) {
                0 => "-".to_string(),
                n => n.to_string(),
            })
            .collect();
        put(&mut out, format_args!("| {loc} | {} | {} |\n", all[0].memory(loc).name, cells.join(" | ")));
    }
    times(&mut out, all);
    for t in all {
        target(&mut out, t);
    }
    for t in Target::all().iter().filter(|t| t.gpu.is_some()) {
        target(&mut out, t);
        memories(&mut out, t);
    }
    for t in Target::all().iter().filter(|t| t.has_units()) {
        in_memory(&mut out, t);
    }
    out
}

/// The memories of a target that is not among those of the table.
fn memories(out: &mut String, t: &Target) {
    put(out, format_args!("\n| location | memory | bytes |\n|---|---|---|\n"));
    for loc in Loc::ALL.into_iter().filter(|l| t.capacity(*l) > 0) {
        let m = t.memory(loc);
        let shared = t.pool_of(loc).map_or(String::new(), |pool| {
            let others: Vec<_> = pool.locations.iter().filter(|l| **l != loc).collect();
            format!(", one memory with {} (pool `{}`)", text::list(others), pool.name)
        });
        put(out, format_args!("| {loc} | {}{shared} | {} |\n", m.name, m.capacity));
    }
}

/// A target whose units are in the memory.
fn in_memory(out: &mut String, t: &Target) {
    let (Some(unit), Some(d)) = (&t.unit, &t.device) else { return };
    put(out, format_args!("\n## {}\n\n{}.\n\n", t.name, t.description));
    put(
        out,
        format_args!(
            "* Instruction table: column {}, less the dtypes that are not there. What a unit itself cannot do is the \
            backend's to say.\n",
            t.instructions.name
        ),
    );
    put(out, format_args!("* Dtypes: {}, and bool for masks in Vec.\n", text::list(&t.dtypes)));
    let kind = match unit.kind {
        UnitKind::GeoPim(g) => format!(
            "{} channels a tile, {} halves of the tile buffer, parameters of {} queries",
            g.tile_channels, g.buffers, g.parameters
        ),
        UnitKind::HbmPim(h) => format!(
            "{} instructions (CRF), {} vectors in each of GRF_A and GRF_B, {} scalars in each of SRF_M and SRF_A",
            h.instructions, h.registers, h.scalars
        ),
        UnitKind::Aim(a) => format!(
            "a buffer of {} bytes for all units of a channel, {} clocks from a product to its sum",
            a.buffer, a.latency
        ),
        UnitKind::Described => "described, without code".to_owned(),
    };
    put(
        out,
        format_args!(
            "* Units: {}, one for {} of the banks; {} lanes, {} MHz; {kind}.\n",
            d.units(unit),
            match unit.banks {
                1 => "each".to_string(),
                n => format!("every {n}"),
            },
            unit.lanes,
            unit.clock
        ),
    );
    let ranges = [
        ("channel", d.all_channels()),
        ("pch", d.all_pseudo_channels()),
        ("bg", d.bank_groups.into()),
        ("bank", d.banks.into()),
        ("row", d.rows.into()),
        ("col", d.bursts.into()),
        ("byte", d.burst_bytes.into()),
        ("unit", d.units(unit)),
    ];
    let ranges = text::list(ranges.iter().map(|(name, n)| format!("`{name}` 0 to {}", n - 1)));
    put(out, format_args!("* Memory: preset `{}` (dram.md); coordinates of placements: {ranges}.\n", d.preset));
    put(
        out,
        format_args!(
            "* A kernel of the host has {} bytes of Vec, and no other location.\n",
            t.host().capacity(Loc::Vec)
        ),
    );
    out.push_str("\n| location | memory | bytes |\n|---|---|---|\n");
    for loc in Loc::ALL.into_iter().filter(|l| t.capacity(*l) > 0 && *l != Loc::Lanes) {
        put(out, format_args!("| {loc} | {} | {} |\n", t.memory(loc).name, t.capacity(loc)));
    }
    moves(out, t);
    out.push_str("\n| `-D` | what | here | may be |\n|---|---|---|---|\n");
    for s in t.settings() {
        put(out, format_args!("| `{}` | {} | {} | {} |\n", s.name, s.what, s.value, s.allowed));
    }
}

/// The model of time, a column a target.
fn times(out: &mut String, all: &[Target]) {
    let models: Vec<&PipeTimes> = all.iter().filter_map(|t| t.pipes.time.as_ref()).collect();
    let header: Vec<&str> = all.iter().filter(|t| t.pipes.time.is_some()).map(|t| t.name.as_str()).collect();
    out.push_str(TIME_HEAD);
    put(out, format_args!("| | {} |\n|---|{}\n", header.join(" | "), "---|".repeat(models.len())));
    let mut row = |name: String, number: &dyn Fn(&PipeTimes) -> u32| {
        let cells: Vec<String> = models.iter().map(|m| number(m).to_string()).collect();
        put(out, format_args!("| {name} | {} |\n", cells.join(" | ")));
    };
    row("clock, MHz".into(), &|m| m.clock);
    row("cores".into(), &|m| m.cores);
    row("cycles to issue an instruction".into(), &|m| m.issue);
    row("cycles from a set to its wait".into(), &|m| m.sync);
    for pipe in Pipe::ALL {
        row(format!("startup of {pipe}, cycles"), &|m| m.startup[pipe as usize]);
    }
    for pipe in Pipe::ALL.into_iter().filter(|p| !matches!(p, Pipe::S | Pipe::M)) {
        row(format!("{pipe}, bytes a cycle"), &|m| m.bytes[pipe as usize]);
    }
    for size in [1, 2, 4] {
        let macs = |m: &PipeTimes| m.macs.iter().find(|(s, _)| *s == size).map_or(0, |&(_, n)| n);
        row(format!("products a cycle, {}-bit operands", 8 * size), &macs);
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("writing to a string does not fail");
}

/// Code in a cell of a table: a bare bar would end the cell.
fn in_table(code: &str) -> String {
    code.replace('|', "\\|")
}

fn operands(row: &Instr) -> String {
    row.written().iter().map(|o| o.name).collect::<Vec<_>>().join(", ")
}

fn error_bound(p: &math::MathProgram) -> String {
    let domain = match p.domain {
        d if d.is_infinite() => String::new(),
        d => format!(" for |x| up to {d}"),
    };
    format!("at most {} ulp in f32{domain}. {}", p.max_ulp, p.doc)
}

fn target(out: &mut String, t: &Target) {
    put(out, format_args!("\n## {}\n\n{}.\n\n", t.name, t.description));
    let set = &t.instructions.name;
    put(out, format_args!("* Instruction table: column {set}. Masks are packed into {}.\n", t.mask_unit));
    put(out, format_args!("* Dtypes: {}, and bool for masks in Vec.\n", text::list(&t.dtypes)));
    put(out, format_args!("* Matrix unit: {}.\n", text::list(t.triples.iter().map(|x| format!("`{x}`")))));
    for (factors, p) in &t.matrix_unit {
        let (block, addends, sum) = (p.block, p.addend_digits, p.sum_digits);
        put(
            out,
            format_args!(
                "* Sums of products of {factors} on it: {block} products at once, {addends} digits of each behind the \
                 greatest exponent, {sum} of the sum.\n"
            ),
        );
    }
    for loc in Loc::ALL {
        let m = t.memory(loc);
        if !m.fractal.is_empty() {
            let boxes = m.fractal.iter().map(|(size, r, c)| format!("{r} x {c} for {}-bit elements", 8 * size));
            put(out, format_args!("* Boxes in {loc}: {}.\n", text::list(boxes)));
        }
        if m.one_row {
            put(out, format_args!("* {loc} tiles have one row, a multiple of {} bytes.\n", m.row_align));
        }
    }
    for pool in t.pools() {
        let (locations, bytes) = (text::list(&pool.locations), t.capacity(pool.locations[0]));
        put(out, format_args!("* One memory, `{}`: {locations} share {bytes} bytes.\n", pool.name));
    }
    let l = &t.limits;
    let rows = |limited: &[(Loc, u32)]| match limited {
        [] => "as many as fit".to_owned(),
        limited => text::list(limited.iter().map(|(loc, n)| format!("{n} in {loc}"))),
    };
    put(
        out,
        format_args!(
            "* Limits: m, k and n {} to {}; rows of TLOAD {}; rows of TSTORE {}, columns from Acc {} to {}; TEXPANDS \
            fills {} to {} blocks of 32 bytes in Mat.\n",
            l.matmul_extent.start(),
            l.matmul_extent.end(),
            rows(&l.load_rows),
            rows(&l.store_rows),
            l.store_cols.start(),
            l.store_cols.end(),
            l.fill_blocks.start(),
            l.fill_blocks.end(),
        ),
    );
    moves(out, t);
}

fn moves(out: &mut String, t: &Target) {
    out.push_str("\n| move | instruction | dtypes |\n|---|---|---|\n");
    for m in &t.moves {
        let same: Vec<DType> = m.pairs.iter().filter(|(a, b)| a == b).map(|(a, _)| *a).collect();
        let mut kinds: Vec<String> = match same.len() {
            n if n == t.dtypes.len() => vec!["all".into()],
            _ => same.iter().map(|d| d.to_string()).collect(),
        };
        kinds.extend(m.pairs.iter().filter(|(a, b)| a != b).map(|(a, b)| format!("{a} to {b}")));
        kinds.extend(m.quantised.iter().map(|(a, b)| format!("{a} to {b} with a scale")));
        let mask = (m.from, m.to) == (MemorySpace::Tile(Loc::Vec), MemorySpace::Tile(Loc::Vec));
        let more = if mask { ", and bool" } else { "" };
        put(out, format_args!("| {} to {} | {} | {}{more} |\n", m.from, m.to, m.instr.get().name, kinds.join(", ")));
    }
}

const TARGETS_HEAD: &str = "# Targets\n\n\
Generated from `compiler/isa/targets` (`UPDATE_SPEC=1 cargo test -p ptoc-isa spec`). Do not edit.\n\n\
A target is a TOML file of the compiler. Devices with units in memory are described in files of one's own, too:\n\
`--target ./mine.toml` names one, and [devices.md](devices.md) says what it has. It has a `base`, `hbm-pim` or\n\
`geopim`, and what differs from that; `lpddr5-pim` and `gddr6-aim` are such files.\n\n\
* `name`, `description`; `family`: the instruction set, `a2a3` or `a5` (the column of the instruction table),\n  \
or `pim`: units in the memory, whose set is `a5`; `instructions`, which may be left out: another\n  \
set than the family's; `dtypes`; `mask_unit`, the unsigned type into which the bits of a mask are packed.\n\
* `[memory.LOCATION]` for each of PTO's nine locations (`pim`: for those that are there): `name` of the memory, \
`capacity` in bytes (0: there is none), `align` of\n  \
tile addresses; `row_align`, of which a row of an unboxed row-major tile (a column of a column-major one) is a \
multiple,\n  `align` if not given; `one_row = true` for tables; `fractal`, for Left, Right and Acc: \
`{ element bytes = [rows, columns] }`\n  of a box.\n\
* `[pool.NAME]`, for locations that share one memory: `capacity` and `align`, which those with `pool = \"NAME\"` then \
do\n  \
not have themselves. Their tiles are placed together, and have no bytes in common as long as they live.\n\
* `[cube]`: `triples` of accumulator, left and right dtype.\n\
* `[limits]`: sizes that instructions take, as the sections below show them.\n\
* `[pipes]`: `barrier` names the pipes on which dependent instructions need `barrier(..)` between them, `flags` is \
the\n  number of flags from one pipe to another.\n\
* `[pipes.time]`, which may be left out: the model of time of `ptoc run --stats`. `clock` in MHz, `cores` that share \
the blocks,\n  `issue` cycles an instruction, `sync` cycles from a set to the end of its wait, `startup` cycles and \
`bytes` a cycle by\n  pipe, `macs` (multiply-adds a cycle) by bytes of an element.\n\
* `[[move]]`: `instr` (TLOAD, TMOV or TSTORE), `from` and `to` (a location or GM), `same` (dtypes that move unchanged; \
`[\"all\"]`),\n  `pairs` (dtypes that change on the way), `quantised` (from Acc: pairs that it takes with a scale).\n\
* `[gpu]`, of targets whose kernels are compiled to PTX: `capability`, the least compute capability of a device, as\n  \
`[major, minor]`; `exponential = \"ex2.approx.ftz\"`, which may be left out: kernels of several products take \
exponentials by this\n  instruction, and not by the program of numerics.md; `cluster`, which may be left out: blocks \
of a cluster at most.\n\
* `[[matrix_unit]]`, which may be left out: how a matrix unit adds products of `factors` that is no chain of \
multiply-adds (numerics.md): `block`\n  products at once, of each `addend_digits` behind the greatest exponent, \
`sum_digits` of the sum.\n\
* For family `pim`: `[unit]`, with `kind` (`geopim`, `hbm-pim`, `aim` or `described`), `clock` in MHz, `lanes`, \
`banks` that a unit is\n  beside of, and the numbers of its kind; `[device]`, the DRAM by the name of a \
`preset` and its organisation, `rows`\n  being those that data may have; `[host]`, with `vec`, the bytes of Vec of a \
kernel that the host runs.\n\n\
An instruction set is a TOML file too, in `targets/instructions`, so that targets share it. It says what instructions\n\
take; what they mean is in the instruction table, which no target touches:\n\n\
* `[dtypes]`: a list for each instruction, empty where it is not there. An entry is the dtype of all operands but \
masks,\n  \
`\"from to\"` of a conversion, or the dtypes of the tiles in order, as the instruction's page has them; or the name \
of\n  \
a set. A target leaves out what it has no dtype for.\n\
* `[sets]`: names for lists that several instructions share.\n\
* `[equal_only]`: for comparisons, the dtypes that are compared for equality alone.\n\
* `scratch`: do instructions want the scratch tiles of their pages? `in_place`: may every element-wise instruction \
write\n  \
over a source? `scatter`: the updates that MSCATTER makes, of `Add`, `Max` and `Min`.\n\n\
`-D capacity.LOCATION=BYTES` overrides one capacity, of a pool by its name or that of a location in it; \
`-D unit.NAME=VALUE` and `-D device.NAME=VALUE` set numbers of a `pim` target,\n\
which its section lists, and `ptoc targets`. Both stand in test lines as well. A conversion such as `Left(view)` takes \
the shortest way over the moves.\n";

const TIME_HEAD: &str = "\n## Time\n\n\
`ptoc run --stats` times the pipes with these numbers. They are **a model: plausible, and not measured** on any \
machine. It says how\n\
pipes overlap and what waits for what; its microseconds are no promise. A cube of 16 x 16 x 16 products of 16-bit \
operands a cycle,\n\
vectors of 256 bytes, a clock and a number of cores are assumed for a2a3 without a source to cite; all other\n\
numbers are ours.\n\n\
* An instruction takes the startup of its pipe, and the bytes of its largest operand (products, on M) over the pipe's \
rate.\n\
* A pipe takes what is queued on it in order: when it is free, the issuer has come to it, and what it waits for is \
there. One that needs\n  `barrier(..)` takes the next while the startup of the one before runs.\n\
* The issuer takes its cycles for every instruction; synchronisation costs it nothing. What S does holds it up.\n\
* A core has one unit of each kind, which the roles of a kernel share: it takes what has been ready longest \
(pipes.md).\n\
* Blocks go to the core that is free first. There are no bank conflicts or caches, and cores do not share bandwidth.\n\
\n";

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn spec_file(name: &str, text: &str) {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec").join(name);
        if std::env::var_os("UPDATE_SPEC").is_some() {
            std::fs::create_dir_all(path.parent().expect("has one")).expect("spec/ is writable");
            std::fs::write(&path, text).expect("the page is writable");
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "spec/{name} is out of date: run `UPDATE_SPEC=1 cargo test -p ptoc-isa spec`");
    }

    #[test]
    fn spec_pages_are_up_to_date() {
        spec_file("instructions.md", &reference_markdown());
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/instructions");
        for row in TABLE {
            spec_file(&format!("instructions/{}.md", row.name), &instruction_page(row));
        }
        // No page of an instruction that is gone.
        for entry in std::fs::read_dir(dir).expect("spec/instructions/") {
            let name = entry.expect("readable").file_name().to_string_lossy().into_owned();
            assert!(TABLE.iter().any(|r| format!("{}.md", r.name) == name), "spec/instructions/{name} is of nothing");
        }
        spec_file("targets.md", &targets_markdown());
        spec_file("coverage.md", &crate::coverage_markdown());
    }
}

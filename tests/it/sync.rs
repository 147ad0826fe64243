//! Synchronisation in the language: what it becomes in tile IR, that it does not change results, and what
//! `spec/pipes.md` says of pipes and words (`UPDATE_SPEC=1` writes its tables anew).

use crate::engine::command;
use ptoc_analysis::{Bindings, instantiate};
use ptoc_diagnostics::FileId;
use ptoc_ir::tile::text::{Spans, print};
use ptoc_ir::tile::{EventKind, Kernel, Op, Purpose, Region, SyncMode, SyncOp};
use ptoc_isa::{InstrId, Loc, MemorySpace, OperandKind, Pipe, PipeRule, Role, Target, pipe_of};
use ptoc_names::{Modules, NoImports, SyncFn, check_names};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn file(name: &str) -> String {
    root().join(name).display().to_string()
}

/// A kernel of the file by its name, without the others.
fn kernel_of(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(root().join(path)).expect("UTF-8");
    let at = text.find(&format!("kernel {name}<")).expect("the kernel");
    let from = text[..at].rfind("#[sync").filter(|a| text[*a..at].lines().count() == 1).unwrap_or(at);
    let end = text[at..].find("\n}\n").expect("its end") + at + 3;
    text[from..end].to_owned()
}

/// The only kernel of `text` as elaboration leaves it, or the codes of its errors. Whether its synchronisation is
/// enough is not looked at.
fn elaborated(text: &str, target: &Target) -> Result<Kernel, Vec<&'static str>> {
    let mut found = Vec::new();
    let modules = Modules::load(FileId(0), text, &mut NoImports, &mut found);
    check_names(&modules, &mut found);
    let (id, _) = modules.entries().next().expect("a kernel");
    let outcome = instantiate(&modules, id, target, &Bindings::default());
    found.extend(outcome.diagnostics);
    let codes: Vec<&'static str> = found.iter().filter(|d| d.is_error()).map(|d| d.code.as_str()).collect();
    if !codes.is_empty() {
        return Err(codes);
    }
    let kernel = outcome.result.expect("no errors").kernel;
    if let Err(errors) = ptoc_ir::tile::verify::verify(&kernel) {
        panic!("{errors:?}\n{kernel}");
    }
    Ok(kernel)
}

fn a2a3() -> &'static Target {
    Target::builtin("a2a3").expect("a target")
}

/// The words of the synchronisations below a region, in order.
fn words(region: &Region, out: &mut Vec<&'static str>) {
    for s in region {
        match &s.op {
            Op::Sync(sync) => out.push(sync.word()),
            op => op.regions().for_each(|r| words(r, out)),
        }
    }
}

#[test]
fn rings_and_flags_in_tile_ir() {
    for name in ["scale_flags", "scale_ring"] {
        let made = elaborated(&kernel_of("tests/language/double_buffer.tile", name), a2a3()).expect("it compiles");
        assert_eq!(made.sync, SyncMode::Manual);
        let text = print(&made, Spans::Omit);
        insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!(name, text);
        });
    }
    let text = kernel_of("tests/language/double_buffer.tile", "scale_pipeline");
    let made = elaborated(&text, a2a3()).expect("it compiles");
    assert_eq!(made.sync, SyncMode::Auto);
    assert!(made.events.is_empty());
}

/// Full, ragged, prime, single, empty.
const SHAPES: [(u32, u32); 9] =
    [(64, 512), (100, 300), (67, 131), (1, 1), (61, 383), (129, 127), (0, 300), (64, 0), (3, 1025)];

#[test]
fn synchronisation_does_not_change_results() {
    let kernels = ["scale_flags", "scale_ring", "scale_pipeline"].map(|k| ("tests/language/double_buffer.tile", k));
    let more = ["by_roles", "by_transactions", "by_pto_names"].map(|k| ("examples/double_buffer.tile", k));
    for (m, n) in SHAPES {
        let mut seen = BTreeSet::new();
        for (path, kernel) in kernels.iter().chain(&more) {
            for backend in ["interp", "cpu"] {
                let (m, n) = (format!("M={m}"), format!("N={n}"));
                let path = file(path);
                let done = command(&[
                    "run",
                    &path,
                    kernel,
                    "-D",
                    &m,
                    "-D",
                    &n,
                    "-D",
                    "s=2.5",
                    "--random",
                    "7",
                    "--backend",
                    backend,
                    "--verify",
                    "--json",
                ]);
                assert_eq!(done.status, 0, "{kernel} {m} {n} on {backend}: {}", done.err);
                let report: serde_json::Value = serde_json::from_str(&done.out).expect("JSON");
                seen.insert(report["outputs"]["y"]["sha256"].to_string());
            }
        }
        assert_eq!(seen.len(), 1, "{m} x {n}: {seen:?}");
    }
}

/// The drain stands at the end of the block that declares the ring, whatever that is.
#[test]
fn rings_are_drained_where_their_scope_ends() {
    let text = "fn copied(x: f32[R, C], y: f32[R, C]) {
            let r = ring<MTE2, MTE3>(tile Vec<f32, 16, 64>[2]);
            TLOAD(r.acquire().valid(16, 64), x);
            r.commit();
            TSTORE(y, r.wait());
            r.release();
        }
        #[sync(manual)]
        kernel k(x: in f32[64, 64], y: out f32[64, 64]) {
            grid (i in tiles(64, 16), j in tiles(64, 64));
            copied(x.tile(i, j), y.tile(i, j));
            if i.first { let one = ring<V, MTE3>(tile Vec<f32, 16, 64>); }
            for n in 0..2 {
                let two = ring<V, MTE2>(tile Vec<f32, 16, 64>[2] at [0x8000, 0x9000]);
                while n > 5 { let three = ring<MTE3, MTE2>(tile Vec<f32, 16, 64>); }
            }
            barrier();
        }";
    let made = elaborated(text, a2a3()).expect("it compiles");
    let mut seen = Vec::new();
    words(&made.body, &mut seen);
    let s = "set";
    let w = "wait";
    let want = [s, s, w, s, w, s, w, w, s, w, s, s, s, w, w, w, "barrier"];
    assert_eq!(seen, want, "{}", print(&made, Spans::Omit));
    let rings: Vec<(String, Purpose, u32)> =
        made.events.values().map(|e| (e.name.to_string(), e.purpose, e.count)).collect();
    assert_eq!(rings.len(), 8);
    assert_eq!(rings[0], ("r".into(), Purpose::RingFull, 2));
    assert_eq!(rings[1], ("r".into(), Purpose::RingEmpty, 2));
}

/// A shape that a role has read from memory is its own; one that it computed is known after it.
#[test]
fn valid_shapes_and_roles() {
    let text = |inside: &str| {
        format!(
            "#[sync(manual)]
            kernel k(x: in f32[M, 64], n: in i64[M], y: out f32[M, 64]) {{
                grid (i in tiles(M, 16), j in tiles(64, 64));
                let t = tile Vec<f32, 16, 64>;
                let loaded = event<MTE2, MTE3>;
                role loader {{ {inside} set(loaded); }}
                role storer {{ wait(loaded); TSTORE(y.tile(i, j), t); }}
            }}"
        )
    };
    elaborated(&text("TLOAD(t, x.tile(i, j));"), a2a3()).expect("the shape is the block's");
    let read = "let r = index(n[i.start]); TLOAD(t, x.tile(tiles(r, 16)[0], j));";
    assert_eq!(elaborated(&text(read), a2a3()).err(), Some(vec!["E0218"]));
}

/// What PTO's names mean.
#[test]
fn names_of_pto() {
    let body = |inside: &str| {
        format!(
            "#[sync(manual)]
             kernel k(x: in f32[16, 64], y: out f32[16, 64]) {{
                 grid (i in tiles(16, 16), j in tiles(64, 64));
                 let t = Vec(x.tile(i, j));
                 let e, f = event<V, MTE3>;
                 let r = ring<V, MTE3>(tile Vec<f32, i, j>[3]);
                 {inside}
                 TSTORE(y.tile(i, j), t);
             }}"
        )
    };
    let ops = |inside: &str| {
        let made = elaborated(&body(inside), a2a3()).expect("it compiles");
        print(&made, Spans::Omit)
    };
    for (pto, own) in [
        ("TSYNC(e);", "wait(e);"),
        ("TSYNC(e, f);", "wait(e); wait(f);"),
        ("TSYNC(V);", "barrier(V);"),
        ("TSYNC();", "barrier();"),
        ("TEXPANDS(TALLOC(r), 1.0); TPUSH(r);", "TEXPANDS(r.acquire(), 1.0); r.commit();"),
        ("TPUSH(r, t);", "TMOV(r.acquire(), t); r.commit();"),
        (
            "TPUSH(r, t); TSTORE(y.tile(i, j), TPOP(r)); TFREE(r);",
            "TPUSH(r, t); TSTORE(y.tile(i, j), r.wait()); r.release();",
        ),
    ] {
        assert_eq!(ops(pto), ops(own), "{pto}");
    }
    // A name of the file's own comes first, also where a pipe could stand.
    let v = "let V = event<MTE2, V>; set(V); TSYNC(V);";
    assert!(ops(v).contains("sync wait e4"), "{}", ops(v));
}

#[test]
fn transaction_barriers_in_tile_ir() {
    let text = "#[sync(manual)]
        kernel k(x: in f32[64, 64], y: out f32[64, 64]) {
            grid (i in tiles(64, 16), j in tiles(64, 64));
            let b = mbarrier<MTE2, V>(arrivals = 2)[2];
            let one = mbarrier<V, MTE2>(arrivals = 0xF_FFFF);
            let k = i.index % 2;
            arrive(b[k]);
            expect(b[k], 64);
            arrive_and_expect(b[0], bytes(Vec<f32, 16, 64>));
            complete(b[1], 64);
            wait(b[k], k);
            arrive(one);
            TSTORE(y.tile(i, j), Vec(x.tile(i, j)));
        }";
    let made = elaborated(text, a2a3()).expect("it compiles");
    let mut seen = Vec::new();
    words(&made.body, &mut seen);
    assert_eq!(seen, ["arrive", "expect", "arrive_expect", "complete", "wait_phase", "arrive"]);
    let kinds: Vec<EventKind> = made.events.values().map(|e| e.kind).collect();
    assert_eq!(kinds, [EventKind::Barrier { arrivals: 2 }, EventKind::Barrier { arrivals: 0xF_FFFF }]);
    // Ranges are proved: nothing is left to check.
    assert!(made.checks.is_empty());
}

#[test]
fn roles_by_name() {
    let text = "#[sync(manual)]
        kernel k(x: in f32[64, 64], y: out f32[64, 64]) {
            grid (i in tiles(64, 16), j in tiles(64, 64));
            let role = tile Vec<f32, i, j>;
            let full = event<MTE2, MTE3>;
            role at { TLOAD(role, x.tile(i, j)); set(full); }
            role on { wait(full); TSTORE(y.tile(i, j), role); }
            role at { barrier(MTE2); }
        }";
    let made = elaborated(text, a2a3()).expect("it compiles");
    let names: Vec<&str> = made.roles.values().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["at", "on"]);
    let scopes = made.body.iter().filter_map(|s| match &s.op {
        Op::Scope(scope) => scope.role.map(|r| made.roles[r].name.to_string()),
        _ => None,
    });
    assert_eq!(scopes.collect::<Vec<_>>(), ["at", "on", "at"]);
}

/// A pipe that has no work on the target.
#[test]
fn pipes_of_the_target() {
    let errors = |pipe: &str, without: &[Loc]| {
        let text = format!(
            "#[sync(manual)]
            kernel k(x: in f32[64, 64], y: out f32[64, 64]) {{
                grid (i in tiles(64, 16), j in tiles(64, 64));
                let e = event<MTE2, {pipe}>;
                set(e);
                wait(e);
            }}"
        );
        let target = without.iter().fold(a2a3().clone(), |t, l| t.with_capacity(*l, 0));
        elaborated(&text, &target).err().unwrap_or_default()
    };
    let unknown = vec!["E0551"];
    assert_eq!(errors("M", &[]), Vec::<&str>::new());
    assert_eq!(errors("M", &[Loc::Acc]), unknown);
    // From Vec to Mat.
    assert_eq!(errors("FIX", &[Loc::Acc]), Vec::<&str>::new());
    assert_eq!(errors("FIX", &[Loc::Acc, Loc::Mat]), unknown);
    assert_eq!(errors("MTE1", &[Loc::Mat]), unknown);
    assert_eq!(errors("S", &[Loc::Mat]), Vec::<&str>::new());
    // Nothing to load to, and nothing to store from.
    assert_eq!(errors("MTE3", &[Loc::Vec, Loc::Mat]), ["E0551", "E0551"]);
}

/// Where the first source and the destination of an instruction may be.
fn ends(id: InstrId) -> Vec<(Loc, Loc)> {
    let locs = |role: Role| match id.get().operands.iter().find(|o| o.role == role).map(|o| o.kind) {
        Some(OperandKind::Tile(locs)) => locs,
        _ => &[],
    };
    locs(Role::Src).iter().flat_map(|from| locs(Role::Dst).iter().map(move |to| (*from, *to))).collect()
}

/// Which instructions run on which pipe, as a table.
fn pipes() -> String {
    let mut rows: Vec<(Pipe, Vec<String>)> = Pipe::ALL.map(|p| (p, Vec::new())).into();
    let mut add = |pipe: Pipe, text: String| {
        let row = rows.iter_mut().find(|r| r.0 == pipe).expect("a pipe");
        if !row.1.contains(&text) {
            row.1.push(text);
        }
    };
    // Pipes are those of PTO's targets, and a unit in memory has none.
    for id in InstrId::all().filter(|id| id.get().sem != ptoc_isa::Sem::Sample) {
        let i = id.get();
        match i.pipe {
            // The targets' tables of moves have TMOV's paths; of others operands say where they are.
            PipeRule::Move if Target::pto().iter().any(|t| t.moves.iter().any(|m| m.instr == id)) => {}
            // All of them are from Acc.
            PipeRule::Move | PipeRule::Store if matches!(i.sem, ptoc_isa::Sem::Fixpipe(_)) => {
                add(pipe_of(id, Some(Loc::Acc), None), format!("`{}`", i.name));
            }
            PipeRule::Move => {
                for (from, to) in ends(id) {
                    add(pipe_of(id, Some(from), Some(to)), format!("`{}` from {from} to {to}", i.name));
                }
            }
            PipeRule::Store if i.sem == ptoc_isa::Sem::Store => {}
            // Binding an address is the issuer's.
            _ => add(pipe_of(id, None, None), format!("`{}`", i.name)),
        }
    }
    for rule in Target::pto().iter().flat_map(|t| &t.moves) {
        let loc = |p: MemorySpace| match p {
            MemorySpace::Gm => None,
            MemorySpace::Tile(l) => Some(l),
        };
        let i = rule.instr.get();
        if matches!(i.pipe, PipeRule::Store | PipeRule::Move) {
            let to = if rule.to == MemorySpace::Gm { String::new() } else { format!(" to {}", rule.to) };
            add(pipe_of(rule.instr, loc(rule.from), loc(rule.to)), format!("`{}` from {}{to}", i.name, rule.from));
        }
    }
    let what = |p: Pipe| match p {
        Pipe::S => "scalar: the issuer",
        Pipe::V => "vector",
        Pipe::M => "cube",
        Pipe::Mte1 => "L1 to L0",
        Pipe::Mte2 => "global memory to the chip",
        Pipe::Mte3 => "the chip to global memory",
        Pipe::Fix => "out of L0C",
    };
    let mut out = "| pipe | is | does |\n|---|---|---|\n".to_owned();
    for (pipe, mut list) in rows {
        if pipe == Pipe::Mte2 {
            list.push("`TEXPANDS` of a Mat tile".into());
        }
        let _ = writeln!(out, "| {pipe} | {} | {} |", what(pipe), list.join(", "));
    }
    out
}

fn words_table() -> String {
    let mut out = "| | |\n|---|---|\n".to_owned();
    for f in SyncFn::ALL {
        let (usage, doc) = f.reference();
        let _ = writeln!(out, "| `{}` | {doc} |", usage.join("`, `"));
    }
    out
}

#[test]
fn tables_of_the_chapter_are_current() {
    let page = root().join("spec/pipes.md");
    let text = std::fs::read_to_string(&page).expect("UTF-8");
    let mut new = text.clone();
    for (name, table) in [("pipes", pipes()), ("words", words_table())] {
        let (begin, end) = (format!("<!-- begin: {name} -->\n"), format!("<!-- end: {name} -->"));
        let from = new.find(&begin).expect("its begin") + begin.len();
        let to = new.find(&end).expect("its end");
        new.replace_range(from..to, &table);
    }
    if std::env::var_os("UPDATE_SPEC").is_some() {
        std::fs::write(&page, &new).expect("written");
    } else {
        let anew = "`UPDATE_SPEC=1 cargo test -p ptoc-tests sync` writes the tables anew";
        let lines = text.lines().zip(new.lines()).find(|(old, new)| old != new);
        let (old, new_line) = lines.unwrap_or(("", "more lines, or fewer"));
        assert!(text == new, "spec/pipes.md is out of date: {anew}\nthere {old}\nnow   {new_line}");
    }
}

/// `ptoc explain` knows the words, and they are no instructions.
#[test]
fn words_are_explained() {
    for f in SyncFn::ALL {
        let done = command(&["explain", f.name()]);
        assert_eq!(done.status, 0, "{}", done.err);
        assert!(f.reference().0.iter().all(|u| done.out.contains(u)), "{}", done.out);
        assert!(ptoc_isa::lookup(f.name()).is_none() && !ptoc_isa::NOT_YET.contains(&f.name()));
        assert_eq!(SyncFn::from_name(f.name()), Some(f));
    }
    assert!(matches!(SyncOp::Barrier(None).word(), "barrier"));
}

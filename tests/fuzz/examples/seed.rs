//! Writes the seeds of all targets below `tests/fuzz/corpus`: programs, examples, broken programs, examples of pages,
//! and the IR that the compiler makes of them. `corpus/*.dict` gets the words and short lines of these texts.

use ptoc_analysis::{Bindings, instantiate};
use ptoc_diagnostics::{Code, Diagnostic, SourceMap, examples};
use ptoc_fuzz::front::Library;
use ptoc_ir::loops;
use ptoc_ir::tile::text::{Spans, print};
use ptoc_isa::Target;
use ptoc_names::{Modules, check_names};
use ptoc_passes::Prepared;
use ptoc_pim_sim::dram::mapping::Mapping;
use ptoc_pim_sim::dram::presets::PRESETS;
use ptoc_pim_sim::dram::trace::{parse_requests, write_commands};
use ptoc_pim_sim::dram::{Config, Controller, simulate};
use ptoc_pto::write::{Form, Level, write};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Texts longer than this take too long to mutate.
const LONGEST: usize = 12_000;

fn tile_files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display())) {
        let path = entry.expect("a directory entry").path();
        if path.is_dir() {
            tile_files(&path, out);
        } else if path.extension().is_some_and(|e| e == "tile") {
            out.push(path);
        }
    }
}

fn save(target: &str, text: &str) {
    if text.len() > LONGEST {
        return;
    }
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&dir).expect("a directory");
    let name = text.bytes().fold(5381u64, |h, b| h.wrapping_mul(33) ^ u64::from(b));
    fs::write(dir.join(format!("seed-{name:016x}")), text).expect("written");
}

/// A dictionary for libFuzzer: the words of these texts, and lines of up to 60 bytes.
fn dictionary(target: &str, texts: &[String], most: usize) {
    let mut words = BTreeSet::new();
    for text in texts {
        for line in text.lines().filter(|l| !l.trim_start().starts_with("//")) {
            if (4..=60).contains(&line.trim().len()) {
                words.insert(line.trim());
            }
            let parts = line.split_inclusive(|c: char| !c.is_alphanumeric() && c != '_');
            words.extend(parts.flat_map(|p| [p, p.trim_end_matches(|c: char| !c.is_alphanumeric())]));
        }
    }
    // A long dictionary is a thin one: short words first.
    let mut words: Vec<&str> = words.into_iter().filter(|w| !w.trim().is_empty() && w.len() <= 60).collect();
    words.sort_by_key(|w| w.len());
    words.truncate(most);
    let quote = |w: &str| {
        w.bytes()
            .map(|b| if b.is_ascii_alphanumeric() { (b as char).to_string() } else { format!("\\x{b:02x}") })
            .collect::<String>()
    };
    let lines: Vec<String> = words.iter().map(|w| format!("\"{}\"", quote(w))).collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(format!("{target}.dict"));
    fs::write(path, lines.join("\n") + "\n").expect("written");
}

/// The texts that were saved for a target.
fn saved(target: &str) -> Vec<String> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    let files = fs::read_dir(dir).expect("a directory").map(|e| e.expect("a directory entry").path());
    let seeds = files.filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with("seed-")));
    seeds.map(|p| fs::read_to_string(p).expect("readable")).collect()
}

/// A kernel as PTO text, at both levels.
fn pto(prepared: &Prepared, target: &Target) {
    let placed = &prepared.placed;
    let bytes = ptoc_placement::physical(&placed.kernel, &placed.placement, target);
    let ordered = ptoc_opt::sync::insert(bytes, target);
    for (kernel, level) in [(&placed.kernel, Level::Automatic), (&ordered, Level::Explicit)] {
        if let Ok(module) = write(kernel, Form::Text, level, &|_| None) {
            save("pto", &ptoc_pto::print(&module));
        }
    }
}

/// The IR of every kernel in `text`, and its PTO text.
fn irs(text: &str) {
    let mut sources = SourceMap::default();
    let file = sources.add("seed.tile", text);
    let mut found = Vec::new();
    let modules = Modules::load(file, text, &mut Library { sources: &mut sources }, &mut found);
    check_names(&modules, &mut found);
    if found.iter().any(Diagnostic::is_error) {
        return;
    }
    for target in ["a2a3", "kirin9030", "a5"].map(|t| Target::builtin(t).expect("built in")) {
        for (id, _) in modules.entries() {
            let mut bindings = Bindings::default();
            for _ in 0..4 {
                let outcome = instantiate(&modules, id, target, &bindings);
                for name in outcome.waits {
                    bindings.dims.insert(name, 32);
                }
                let Some(instance) = outcome.result else { continue };
                // The IRs of two targets are enough.
                let both = target.name != "a5";
                if both {
                    save("ir_text", &print(&instance.kernel, Spans::Omit));
                }
                let Ok(prepared) = ptoc_passes::pipeline(instance.kernel, target) else { break };
                if let Some(module) = prepared.module.as_ref().filter(|_| both) {
                    save("loop_text", &loops::text::print(module, false));
                }
                pto(&prepared, target);
                break;
            }
        }
    }
}

/// Presets with short traces, and the commands that serve them.
fn dram(root: &Path) {
    let golden = root.join("tests/golden/dram");
    let mut traces: Vec<PathBuf> =
        fs::read_dir(golden).expect("a directory").map(|e| e.expect("an entry").path()).collect();
    traces.retain(|p| p.extension().is_some_and(|e| e == "txt"));
    traces.sort();
    for (n, preset) in PRESETS.iter().enumerate() {
        let config = Config::preset(preset.name).expect("a preset");
        for path in &traces {
            let text = fs::read_to_string(path).expect("readable");
            let requests: Vec<&str> = text.lines().skip(7 * n).take(20).collect();
            let requests = requests.join("\n");
            let mapping = Mapping::interleaved(&config);
            let parsed = parse_requests(&config, &mapping, &requests).expect("golden traces fit");
            let mut commands = Vec::new();
            simulate(&config, &Controller::default(), parsed[0].iter().copied(), |c| commands.push(c))
                .expect("it runs");
            let commands = write_commands([&commands[..]]);
            let map = "(pseudochannel:2, bankgroup:4, column:32, bank:4, row:32768)";
            save("dram", &format!("{}\n---\n{requests}\n---\n{commands}\n---\n{map}", preset.text));
        }
    }
}

fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = Vec::new();
    for dir in ["tests/language", "examples", "tests/ui", "tests/bytes", "tests/hazards"] {
        tile_files(&root.join(dir), &mut paths);
    }
    let mut texts: Vec<String> = paths.iter().map(|p| fs::read_to_string(p).expect("readable")).collect();
    for info in Code::all() {
        texts.extend(examples(info.page).iter().map(|e| e.text.to_string()));
    }
    for text in &texts {
        save("source_to_ir", text);
        save("exec_diff", text);
        save("plan", text);
        irs(text);
    }
    dram(&root);
    for target in ["source_to_ir", "exec_diff", "plan", "ir_text", "loop_text", "dram", "pto"] {
        dictionary(target, &saved(target), 3000);
    }
}

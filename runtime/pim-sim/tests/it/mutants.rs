//! Command streams that are right but for one change: a line left out, doubled or exchanged, a number or a word
//! altered.
//!
//! Whatever comes of it is told at a place, once; what has no fault runs to its end or stops with a reason.

use ptoc_pim_sim::machine::{Options, device, run};
use ptoc_pim_stream::stream::{Action, Role};
use ptoc_pim_stream::{Stream, StreamFault};
use ptoc_tensor::{Tensor, random};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;

/// The streams that are changed: hand-written ones of each kind of units.
fn seeds() -> Vec<(String, String)> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests");
    let mut paths = vec![tests.join("pim/add.pim.txt")];
    let corpus = std::fs::read_dir(tests.join("corpus/machine")).expect("a directory");
    paths.extend(corpus.map(|e| e.expect("an entry").path()).filter(|p| name(p).starts_with("seed-")));
    paths.sort();
    let read = |p: std::path::PathBuf| (name(&p), std::fs::read_to_string(&p).expect("text"));
    paths.into_iter().map(read).collect()
}

fn name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// Runs of letters and digits.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut out: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices() {
        match out.last_mut().filter(|w| w.end == at) {
            Some(w) if c.is_ascii_alphanumeric() || c == '_' => w.end = at + 1,
            _ if c.is_ascii_alphanumeric() || c == '_' => out.push(at..at + 1),
            _ => {}
        }
    }
    out
}

/// Each text with one change, and what the change is.
fn mutants(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|l| format!("{l}\n")).collect::<String>();
    let mut out = Vec::new();
    for n in 0..lines.len() {
        let mut less = lines.clone();
        less.remove(n);
        out.push((format!("without line {}: {}", n + 1, lines[n]), join(&less)));
        let mut more = lines.clone();
        more.insert(n, lines[n]);
        out.push((format!("line {} twice: {}", n + 1, lines[n]), join(&more)));
        if n + 1 < lines.len() {
            let mut other = lines.clone();
            other.swap(n, n + 1);
            out.push((format!("line {} after the next: {}", n + 1, lines[n]), join(&other)));
        }
    }
    let all = words(text);
    let known: BTreeSet<&str> = all.iter().map(|w| &text[w.clone()]).filter(|w| !is_number(w)).collect();
    for (n, w) in all.iter().enumerate() {
        let word = &text[w.clone()];
        let line = text[..w.start].matches('\n').count() + 1;
        let mut with = |new: String| {
            if new != word {
                let what = format!("line {line}: {new} for {word} in {}", lines[line - 1]);
                out.push((what, format!("{}{new}{}", &text[..w.start], &text[w.end..])));
            }
        };
        match number(word) {
            Some(value) => {
                for other in [0, value.wrapping_add(1), value.saturating_sub(1), value.wrapping_mul(2), 65536, 1 << 40]
                {
                    with(if word.starts_with("0x") { format!("{other:#x}") } else { other.to_string() });
                }
            }
            // Another word of the stream, by turns.
            None => {
                with(known.iter().cycle().skip(n % known.len().max(1)).nth(1).map_or(String::new(), |w| (*w).into()))
            }
        }
    }
    out
}

fn number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

fn is_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

/// What a stream's text is: no stream, one with faults, or one that can be executed.
fn faults(text: &str) -> Option<(Stream, Vec<StreamFault>)> {
    let stream = match Stream::parse(text) {
        Ok(parsed) => parsed.stream,
        Err(e) => {
            assert!(
                e.line > 0 && e.column > 0 && text.get(e.bytes.clone()).is_some() && !e.message.is_empty(),
                "{e:?}"
            );
            return None;
        }
    };
    let config = match device::config(&stream.device) {
        Ok(config) => config,
        Err(e) => {
            assert!(!e.message.is_empty());
            return None;
        }
    };
    let g = device::geometry(&config);
    let found = stream.check(&g);
    if found.is_empty() {
        stream.unordered(&g);
        stream.unwritten(&g);
    }
    Some((stream, found))
}

#[test]
fn one_change_is_one_fault() {
    let mut said = Vec::new();
    for (seed, text) in seeds() {
        let (_, found) = faults(&text).expect("a stream");
        assert_eq!(found, [], "{seed}");
        for (what, text) in mutants(&text) {
            let Some((_, found)) = faults(&text) else { continue };
            if found.len() > 1 {
                let all: Vec<String> = found.iter().map(|f| format!("    {:?} {f}", f.kind)).collect();
                said.push(format!("{seed}, {what}\n{}", all.join("\n")));
            }
        }
    }
    assert!(said.is_empty(), "{} changes have more than one fault:\n{}", said.len(), said.join("\n"));
}

/// What has no fault runs, or stops with a reason and a step.
#[test]
fn changed_streams_run_or_stop() {
    let mut ran = 0;
    for (seed, text) in seeds() {
        for (what, text) in mutants(&text).into_iter().step_by(7) {
            let Some((stream, found)) = faults(&text) else { continue };
            if !found.is_empty() || !is_short(&stream) {
                continue;
            }
            let config = device::config(&stream.device).expect("it was there");
            let inputs = stream.tensors.iter().map(given).collect();
            match run(&stream, &config, inputs, Options { threads: 1, ..Options::default() }) {
                Ok(outcome) => assert!(outcome.report.ns().is_finite(), "{seed}, {what}"),
                Err(stop) => assert!(!stop.message.is_empty(), "{seed}, {what}"),
            }
            ran += 1;
        }
    }
    assert!(ran > 100, "{ran}");
}

/// A stream that runs with refreshes runs with the same results if they are further apart; numbers at which each
/// refresh finds a row that was opened for nothing do not stop it.
#[test]
fn refreshes_further_apart_stop_nothing() {
    let rfc = 260;
    for (seed, text) in seeds() {
        let device = text.lines().find(|l| l.starts_with("device")).expect("it has one").to_owned();
        let others: Vec<&str> = device.split_whitespace().filter(|w| !w.starts_with("refresh=")).collect();
        let outputs = |refresh: &str| {
            let text = text.replace(&device, &format!("{} {refresh}", others.join(" ")));
            let stream = Stream::parse(&text).expect("as before").stream;
            let config = device::config(&stream.device).expect("a preset");
            let inputs = stream.tensors.iter().map(given).collect();
            run(&stream, &config, inputs, Options::default()).ok().map(|o| o.outputs)
        };
        let alone = outputs("refresh=off");
        let gaps: Vec<u64> = (20..160).collect();
        let runs = |gap: &u64| outputs(&format!("refresh=all nRFC={rfc} nREFI={}", rfc + gap));
        let results: Vec<_> = gaps.iter().map(runs).collect();
        let first = results.iter().position(Option::is_some).expect("one is long enough");
        for (gap, result) in gaps.iter().zip(&results).skip(first) {
            assert!(*result == alone, "{seed}: nREFI - nRFC = {gap}, though it runs with {}", gaps[first]);
        }
    }
}

fn given(t: &ptoc_pim_stream::stream::TensorDecl) -> Option<Tensor> {
    let shape: Vec<usize> = t.shape.iter().map(|e| *e as usize).collect();
    matches!(t.role, Role::In | Role::InOut).then(|| random(t.dtype, &shape, 1, &t.name).expect("a short array"))
}

/// So much is executed in no time.
fn is_short(stream: &Stream) -> bool {
    let bytes: u64 = stream.tensors.iter().map(|t| t.bytes().unwrap_or(u64::MAX / 64)).sum();
    let work = stream.steps.iter().map(|s| match &s.action {
        Action::Exec(e) => e.ops.len() as u64 * e.pchs.len() as u64 * 8,
        Action::Descriptor(d) => u64::from(d.units) * u64::from(d.queries) + u64::from(d.height) * u64::from(d.width),
        Action::Driver(c) => u64::from(c.queries) * u64::from(c.samples) * 64,
        _ => 64,
    });
    bytes <= 1 << 16 && work.sum::<u64>() <= 1 << 14
}

use super::*;
use ptoc_interp::{BlockTimeline, EventElement, Lane, Moment, Signal, Slice, Stall, StallInterval};
use ptoc_isa::Pipe;

const TEXT: &str = "TLOAD(a, x)\nset(e)\nwait(e)\nTADD(b, a, a) // <b>\n";

/// A load of role 1, and an addition of role 2 that waits for it.
fn timing(lines: [Span; 4]) -> Timing {
    let [load, set, wait, add] = lines;
    let slice = |role, pipe, name, begin, free, end, span| Slice { role, pipe, name, begin, free, end, span };
    let moment = |role, pipe, cycle, span| Moment { role, pipe, cycle, span };
    let cause = Cause::Event(Pipe::Mte2);
    Timing {
        clock: 1000,
        cores: 2,
        blocks: 3,
        cycles: 300,
        longest: 100,
        makespan: 200,
        lanes: vec![Lane { role: 1, pipe: Pipe::Mte2, busy: 180, count: 3 }],
        stalls: vec![Stall { span: wait, role: 2, pipe: Pipe::V, cause, cycles: 162 }],
        first: BlockTimeline {
            slices: vec![slice(1, Pipe::Mte2, "TLOAD", 1, 51, 61, load), slice(2, Pipe::V, "TADD", 64, 80, 100, add)],
            stalls: vec![StallInterval { role: 2, pipe: Pipe::V, cause, begin: 10, end: 64, span: wait }],
            signals: vec![Signal {
                event: EventElement { event: 0, element: 1 },
                set: moment(1, Pipe::Mte2, 61, set),
                wait: moment(2, Pipe::V, 64, wait),
            }],
            cycles: 100,
            lost_from: None,
        },
    }
}

fn example(lost_from: Option<u64>) -> String {
    let mut sources = SourceMap::default();
    let file = sources.add("k.tile", TEXT);
    let starts = [0, 12, 19, 27];
    let mut timing = timing(starts.map(|at| Span::new(file, at, at + 3)));
    timing.first.lost_from = lost_from;
    let (roles, events) = (["loader".to_owned(), "adder".to_owned()], [("e".to_owned(), true)]);
    page("k", "a5", &[PipeRun { kernel: "k", roles: &roles, events: &events, timing: &timing }], &sources)
}

fn data(page: &str) -> serde_json::Value {
    let from = page.split("class=\"data\">").nth(1).expect("data");
    serde_json::from_str(from.split("</script>").next().expect("an end")).expect("JSON")
}

#[test]
fn lanes_stalls_and_flags_are_there() {
    let page = example(None);
    let data = data(&page);
    let lane = |n: usize| (data["lanes"][n]["role"].as_str(), data["lanes"][n]["pipe"].as_str());
    assert_eq!([lane(0), lane(1)], [(Some("loader"), Some("MTE2")), (Some("adder"), Some("V"))]);
    assert_eq!(data["lanes"][0]["slices"], serde_json::json!([1, 50, 10, 0, 0]));
    assert_eq!(data["lanes"][1]["stalls"], serde_json::json!([10, 54, 0, 2]));
    assert_eq!(data["signals"], serde_json::json!([61, 3, 0, 1, 0, 3, 2]));
    assert_eq!(data["events"], serde_json::json!(["e[1]"]));
    assert_eq!(data["causes"], serde_json::json!([["event", "for a flag of MTE2"]]));
    assert_eq!(data["places"][2], serde_json::json!(["F0L3", "k.tile:3"]));
    for wanted in ["<code>TADD(b, a, a) // &lt;b&gt;</code>", "+ 54.0 %", "54.0 %<td><a href=\"#F0L3\">"] {
        assert!(page.contains(wanted), "{wanted}: {page}");
    }
}

#[test]
fn what_is_not_there_is_told() {
    assert!(!example(None).contains("those that come later"));
    assert!(example(Some(100)).contains("The first 2 instructions are here, up to cycle 100"));
}

#[test]
fn the_page_needs_nothing_from_outside() {
    for reference in ["http:", "https:", "src=", "@import", "url(", "//cdn"] {
        assert!(!example(None).contains(reference), "{reference}");
    }
}

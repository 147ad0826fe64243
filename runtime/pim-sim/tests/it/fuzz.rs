//! Broken texts: an error with a place, never a panic.

use proptest::prelude::*;
use ptoc_pim_sim::check::{self, CommandTrace};
use ptoc_pim_sim::dram::presets::PRESETS;
use ptoc_pim_sim::dram::{Address, Config, Controller, Mapping, Request, simulate, trace};
use ptoc_pim_sim::located::InputError;

use crate::support::{golden, preset};

fn is_located(text: &str, errors: &[InputError]) {
    assert!(!errors.is_empty());
    for error in errors {
        assert!(error.line >= 1 && error.line <= text.matches('\n').count() + 1, "{error:?}");
        let line = text.split('\n').nth(error.line - 1).unwrap();
        assert!(error.column >= 1 && error.column <= line.chars().count() + 1, "{error:?}");
        assert!(error.bytes.end <= text.len() && text.get(error.bytes.clone()).is_some(), "{error:?}");
        assert!(!error.message.is_empty());
    }
}

fn read_config(text: &str) {
    match Config::parse("fuzz", text) {
        Ok(loaded) => {
            // What reads also runs, as far as its sizes let a test go.
            let config = loaded.config;
            if config.org.banks_per_pc() * config.org.pseudochannel <= 256 {
                let requests = [0, 1, 0].map(|row| Request {
                    write: row == 1,
                    address: Address { row: row.min(config.org.row - 1), ..Address::default() },
                });
                for controller in [Controller::in_order(), Controller::default()] {
                    let _ = simulate(&config, &controller, requests, |_| {});
                }
            }
            is_located_or_none(text, &loaded.warnings);
        }
        Err(errors) => is_located(text, &errors),
    }
}

fn is_located_or_none(text: &str, warnings: &[InputError]) {
    if !warnings.is_empty() {
        is_located(text, warnings);
    }
}

/// A text with a few pieces replaced, removed or doubled.
fn mutated(base: String) -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        "[-0-9\\[\\]{},:\"=.#@() \n]{0,4}",
        prop::sample::select(vec![
            "-1",
            "99999999999999999999",
            "1e400",
            "null",
            "[]",
            "{}",
            "\"\"",
            "é",
            "nFAW",
            "\u{feff}",
            "0x"
        ])
        .prop_map(String::from),
    ];
    (Just(base), prop::collection::vec((any::<prop::sample::Index>(), 0usize..6, piece), 1..4)).prop_map(
        |(mut text, edits)| {
            for (at, length, piece) in edits {
                let boundaries: Vec<usize> = text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
                let from = at.index(boundaries.len());
                let to = (from + length).min(boundaries.len() - 1);
                text.replace_range(boundaries[from]..boundaries[to], &piece);
            }
            text
        },
    )
}

/// The golden file without its results, which nothing reads.
fn small_golden() -> String {
    let mut value: serde_json::Value = serde_json::from_str(&golden("hbm2_2000.json")).unwrap();
    value.as_object_mut().unwrap().remove("results");
    serde_json::to_string_pretty(&value).unwrap()
}

const REQUESTS: &str = "R 0 0 0 0\nW 1 3 12 31 # a write\n\nR 0 1 2 3 100 7\nR 0x1f40\nW 4096\n";
const COMMANDS: &str =
    "[[0,\"ACT\",0,0,5,0],\n [15,\"RD\",0,0,5,1],\n [40,\"PREpb\",0,0,5,1,0],\n [60,\"REFab\",0,0,0,0,1,0]]\n";
const MAPPING: &str = "(column:2, bankgroup:4, channel:1, column:16, pseudochannel:2, bank:4, row:32768)";

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ptoc_tests_budget::cases(130, 400)))]

    #[test]
    fn toml_configurations(text in (0..PRESETS.len()).prop_flat_map(|i| mutated(PRESETS[i].text.to_owned()))) {
        read_config(&text);
    }

    #[test]
    fn json_configurations(text in mutated(small_golden())) {
        read_config(&text);
    }

    #[test]
    fn any_text(text in "\\PC{0,60}") {
        read_config(&text);
        read_config(&format!("{{{text}"));
        let config = preset("hbm2_2000");
        if let Err(error) = Mapping::parse(&config, &text) {
            is_located(&text, &[error]);
        }
        if let Err(errors) = trace::parse_requests(&config, &Mapping::interleaved(&config), &text) {
            is_located(&text, &errors);
        }
        if let Err(errors) = CommandTrace::parse(&config, &text) {
            is_located(&text, &errors);
        }
    }

    #[test]
    fn requests(text in mutated(REQUESTS.to_owned())) {
        let config = preset("hbm2_2000");
        match trace::parse_requests(&config, &Mapping::interleaved(&config), &text) {
            Ok(channels) => prop_assert!(channels.iter().flatten().all(|r| r.outside(&config).is_none())),
            Err(errors) => is_located(&text, &errors),
        }
    }

    #[test]
    fn command_traces(text in mutated(COMMANDS.to_owned())) {
        let config = preset("hbm2_2000");
        match CommandTrace::parse(&config, &text) {
            Ok(trace) => drop(check::check(&config, &trace.channels[0], check::Options::default())),
            Err(errors) => is_located(&text, &errors),
        }
    }

    #[test]
    fn mappings(text in mutated(MAPPING.to_owned())) {
        let config = preset("hbm2_2000");
        match Mapping::parse(&config, &text) {
            Ok(mapping) => prop_assert_eq!(mapping.bytes(), Mapping::interleaved(&config).bytes()),
            Err(error) => is_located(&text, &[error]),
        }
    }
}

#[test]
fn what_is_said_of_broken_requests() {
    let config = preset("hbm2_2000");
    let text = "X 0 0 0 0\nR 0 0 0\nR 0 4 0 0\nR 0 0 x 0\nR 0 0 0 32\nR 0x10000000000\nR 1 2 3 4 5 6 7\nR -1\nR\n\
        R 0 2 0 0 0 0\n";
    let errors = trace::parse_requests(&config, &Mapping::interleaved(&config), text).unwrap_err();
    let shown: Vec<String> = errors.iter().map(|e| e.to_string()).collect();
    insta::assert_snapshot!(shown.join("\n"));
}

#[test]
fn what_is_said_of_broken_mappings() {
    let config = preset("hbm2_2000");
    let shown: Vec<String> = [
        "",
        "(column:32, bankgroup:4, pseudochannel:2, bank:4)",
        "(column:32, bankgroup:4, pseudochannel:2, bank:4, row:65536)",
        "(colum:32)",
        "(32:column)",
        "(32,4,2,4,32768):(1@column,1@bankgroup,1@pseudochannel,1@bank)",
        "(32,4,2,4,32768):(2@column,1@bankgroup,1@pseudochannel,1@bank,1@row)",
        "(32,4,2,4,32768):(1,1@bankgroup,1@pseudochannel,1@bank,1@row)",
        "(column:0)",
        "(column:32, bankgroup:4, pseudochannel:2, bank:4, row:32768) x",
    ]
    .iter()
    .map(|text| format!("{text}\n    {}", Mapping::parse(&config, text).unwrap_err()))
    .collect();
    insta::assert_snapshot!(shown.join("\n"));
}

/// Both spellings give one mapping, and every burst is reached once.
#[test]
fn mappings_are_one_to_one() {
    let mut config = preset("hbm2_2000");
    config.org.row = 4;
    config.org.channel = 3;
    let named = "(column:2, bankgroup:4, channel:3, column:16, pseudochannel:2, bank:4, row:4)";
    let strides = "(2,4,3,16,2,4,4):(1@column,1@bankgroup,1@channel,2@column,1@pseudochannel,1@bank,1@row)";
    let mapping = Mapping::parse(&config, named).unwrap();
    assert_eq!(mapping, Mapping::parse(&config, strides).unwrap());
    for mapping in [mapping.clone(), Mapping::interleaved(&config)] {
        let bursts = mapping.bytes() as u64 / 32;
        assert_eq!(bursts, 32 * 4 * 3 * 2 * 4 * 4);
        let all: std::collections::HashSet<_> = (0..bursts).map(|b| mapping.resolve(b * 32 + 5).unwrap()).collect();
        assert_eq!(all.len() as u64, bursts);
        assert_eq!(mapping.resolve(bursts * 32), None);
        assert_eq!(mapping.resolve(u64::MAX), None);
    }
    // Bursts 0 and 1 are neighbours in a row, 2 is in the next bank group, 8 in the next channel.
    let at = |burst: u64| mapping.resolve(burst * 32).unwrap();
    assert_eq!(at(1), (0, Address { column: 1, ..Address::default() }));
    assert_eq!(at(2), (0, Address { bankgroup: 1, ..Address::default() }));
    assert_eq!(at(8), (1, Address::default()));
    assert_eq!(at(24), (0, Address { column: 2, ..Address::default() }));
}

/// A trace over two channels keeps each channel's order, and an address goes where the mapping says.
#[test]
fn requests_by_channel() {
    let mut config = preset("hbm2_2000");
    config.org.channel = 2;
    let mapping = Mapping::interleaved(&config);
    let text = "R 1 0 2 1 7 3\nW 0\nr 0x20\n  # nothing\nR 3 3 1 1 # bank group 3\n";
    let channels = trace::parse_requests(&config, &mapping, text).unwrap();
    let at = |pc, bankgroup, bank, row, column| Address { pc, bankgroup, bank, row, column };
    let request = |write, address| Request { write, address };
    assert_eq!(channels[0], [request(true, Address::default()), request(false, at(0, 3, 3, 1, 1))]);
    assert_eq!(channels[1], [request(false, at(0, 2, 1, 7, 3)), request(false, Address::default())]);
}

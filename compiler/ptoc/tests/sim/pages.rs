//! The pages of runs: what is in them, packed, and that each stands alone.

use super::*;

/// Checks that every element of a page is closed, in its order. Returns the contents of its data scripts.
fn well_formed(page: &str) -> Vec<Value> {
    let (mut open, mut data, mut rest) = (Vec::new(), Vec::new(), page);
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>') || open.last() == Some(&"code"), "a stray `>` in {:?}", &rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.find('>').expect("a tag ends");
        let (tag, after) = (&rest[..end], &rest[end + 1..]);
        let name = tag.split([' ', '\n']).next().unwrap();
        rest = after;
        match name {
            "!doctype" | "meta" | "td" | "th" => {}
            _ if tag.ends_with('/') => {}
            "script" | "style" => {
                let close = rest.find(&format!("</{name}>")).expect("it is closed");
                if tag.contains("application/json") {
                    data.push(serde_json::from_str(&rest[..close]).expect("JSON"));
                }
                rest = &rest[close + name.len() + 3..];
            }
            _ if name.starts_with('/') => {
                assert_eq!(open.pop(), Some(&name[1..]), "near {:?}", &rest[..rest.len().min(60)])
            }
            _ => open.push(name),
        }
    }
    assert!(open.is_empty(), "{open:?}");
    data
}

/// Columns of numbers that a page has packed: base64 of DEFLATE of LEB128.
fn unpacked(text: &str, count: usize, columns: usize) -> Vec<Vec<u64>> {
    const DIGITS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let (mut packed, mut bits, mut held) = (Vec::new(), 0u32, 0);
    for digit in text.trim_end_matches('=').chars() {
        bits = bits << 6 | DIGITS.find(digit).expect("a digit") as u32;
        held += 6;
        if held >= 8 {
            held -= 8;
            packed.push((bits >> held) as u8);
        }
    }
    let bytes = miniz_oxide::inflate::decompress_to_vec(&packed).expect("DEFLATE");
    let mut numbers = bytes
        .split_inclusive(|byte| byte & 128 == 0)
        .map(|n| n.iter().rev().fold(0u64, |all, byte| all << 7 | u64::from(byte & 127)));
    let columns = (0..columns).map(|_| numbers.by_ref().take(count).collect()).collect();
    assert_eq!(numbers.next(), None);
    columns
}

/// The commands of a page: tick, number of the command, bank.
fn commands_of(data: &Value) -> Vec<[u64; 3]> {
    let mut all = Vec::new();
    for chunk in data["kept"].as_array().unwrap() {
        let n = |at: usize| chunk[at].as_u64().unwrap();
        let columns = unpacked(chunk[5].as_str().unwrap(), n(2) as usize, data["columns"].as_u64().unwrap() as usize);
        let mut tick = n(0);
        for ((ticks, number), bank) in columns[0].iter().zip(&columns[1]).zip(&columns[2]) {
            tick += ticks;
            all.push([tick, *number, bank + n(3)]);
        }
        assert_eq!(tick, n(1));
    }
    all.sort_unstable();
    all
}

/// A page stands alone, is the same each time, and has every command.
#[test]
fn pages() {
    let s = sandbox();
    let said = s.run(&format!("sim add.pim.txt {ARRAYS} --html a.html --trace t.json"));
    assert!(said.contains("exit 0"), "{said}");
    s.run(&format!("sim add.pim.txt {ARRAYS} --html b.html"));
    let [page, again] = ["a.html", "b.html"].map(|f| fs::read_to_string(s.path().join(f)).unwrap());
    assert!(page == again, "two runs write two pages");
    for outside in ["http:", "https:", "src=", "@import", "url(", "//cdn"] {
        assert!(!page.contains(outside), "{outside}");
    }
    let data = well_formed(&page);
    let [data] = &data[..] else { panic!("one run") };
    let json: Value =
        serde_json::from_str(s.run(&format!("sim add.pim {ARRAYS} --json")).split("stdout\n").nth(1).unwrap()).unwrap();
    assert_eq!(data["ticks"], json["cycles"]);
    let commands: u64 = json["commands"].as_object().unwrap().values().map(|n| n.as_u64().unwrap()).sum();
    let kept = commands_of(data);
    assert_eq!(kept.len() as u64, commands);
    assert!(kept.is_sorted_by_key(|k| k[0]) && kept.iter().all(|k| k[0] < json["cycles"].as_u64().unwrap()));
    let names: Vec<&str> = data["commands"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    for (name, count) in json["commands"].as_object().unwrap() {
        let own = kept.iter().filter(|k| names[k[1] as usize] == name).count();
        assert_eq!(own as u64, count.as_u64().unwrap(), "{name}");
    }
    assert_eq!(data["until"], Value::Null);
    assert_eq!(data["banks"].as_array().unwrap().len(), 16);
    assert_eq!(data["steps"].as_array().unwrap().len(), 4);
    // 48 steps of units take tCCD_L in eight of sixteen banks.
    let bins = data["banks"].as_array().unwrap().iter().flat_map(|b| b[2].as_array().unwrap());
    assert_eq!(bins.map(|b| b[7].as_u64().unwrap()).sum::<u64>(), 48 * 4 * 8);
    for wanted in ["Where the time went", "class=\"roof\"", "add.tile:6", "host, streaming", "pseudo-channel 0.0"] {
        assert!(page.contains(wanted), "{wanted}");
    }
}

/// A long run has its past in bins, and each command packed: the page stays small.
#[test]
fn pages_of_long_runs() {
    let s = sandbox();
    let at = "(16,2,2,4,32,4,256):(2@byte,1@channel,1@pch,1@bg,1@col,1@bank,1@row)";
    let size = "[16,2,2,4,32,4,256]";
    let text = format!(
        "pim-stream 1\ndevice hbm2_2000 channel=2\nunit none\ntensor a f16{size} in\nwrite a at {at}\n\
        write a at {at} row=300\n"
    );
    s.file("long.txt", text);
    s.array("a.npy", DType::F16, &[16, 2, 2, 4, 32, 4, 256]);
    let said = s.run("sim long.txt --in a=a.npy --html p.html");
    assert!(said.contains("exit 0"), "{said}");
    let page = fs::read_to_string(s.path().join("p.html")).unwrap();
    let data = well_formed(&page);
    let kept = commands_of(&data[0]);
    let writes = 2 * 2 * 2 * 4 * 32 * 4 * 256;
    assert!(kept.len() > writes && data[0]["until"].is_null());
    assert!(page.contains("commands are there one by one.") && page.contains("Counts are of bins of"));
    let bins = data[0]["banks"].as_array().unwrap().iter().flat_map(|b| b[2].as_array().unwrap());
    assert_eq!(bins.map(|b| b[3].as_u64().unwrap()).sum::<u64>(), writes as u64, "every WR is in a bin");
    assert!(page.len() < 4_000_000, "{}", page.len());

    // Of what a page has no room for another one can be written.
    let from = data[0]["ticks"].as_u64().unwrap() / 2;
    let said = s.run(&format!("sim long.txt --in a=a.npy --html p.html --html-from {from}"));
    assert!(said.contains("exit 0"), "{said}");
    let page = fs::read_to_string(s.path().join("p.html")).unwrap();
    let data = well_formed(&page);
    let later: Vec<_> = commands_of(&data[0]);
    assert_eq!(later, kept.into_iter().filter(|k| k[0] >= from).collect::<Vec<_>>());
    assert_eq!((data[0]["since"].as_u64(), &data[0]["until"]), (Some(from), &Value::Null));
    let wanted = format!("commands are there one by one from tick {from} on (");
    assert!(page.contains(&wanted) && page.contains("<code>--html-from TICK</code> writes a page"), "{wanted}");
    let said = s.run("sim long.txt --in a=a.npy --html-from 5");
    assert!(said.contains("--html <F>") && said.contains("exit 2"), "{said}");
}

/// `ptoc run` writes the page, with the source; of other backends there is nothing to write.
#[test]
fn pages_of_kernels() {
    let s = Sandbox::new();
    s.file("double.tile", DOUBLE);
    let said = s.run("run double.tile --target hbm-pim -D N=4096 --random 1 --html p.html");
    assert!(said.contains("exit 0"), "{said}");
    let page = fs::read_to_string(s.path().join("p.html")).unwrap();
    assert_eq!(well_formed(&page).len(), 1);
    assert!(page.contains("<li id=\"F0L5\">") && page.contains("class=\"heat\""));
    fs::remove_file(s.path().join("p.html")).unwrap();
    snapshot!(s.runs(&[
        "run double.tile --target hbm-pim -D N=4096 --random 1 --html p.html --backend interp",
        "run double.tile --target hbm-pim -D N=4096 --random 1 --html none/p.html",
    ]));
    assert!(!s.path().join("p.html").exists());
}

/// Every bank has a copy of the map, and ten units look at theirs: those banks are shown, with the others of their
/// pseudo-channel.
#[test]
fn a_page_shows_the_banks_at_work() {
    let s = Sandbox::new();
    s.file("sampling.tile", include_str!("../../../../examples/sampling.tile"));
    let sizes = "-D B=2 -D H=8 -D W=8 -D Q=18 -D S=4";
    let said = s.run(&format!("run sampling.tile transplat --target geopim {sizes} --random 1 --html p.html"));
    assert!(said.contains("exit 0"), "{said}");
    let page = fs::read_to_string(s.path().join("p.html")).unwrap();
    assert!(page.contains("496 banks of pseudo-channels in which no unit computes are left out."));
    assert!(page.contains("<summary>16 banks</summary>"));
    // Rows 77 and 78: each bank with a unit has its states in order, and when each tile is fetched and computed: one
    // after the other, and the next is fetched before the one at hand is computed.
    let data = well_formed(&page);
    let states: Vec<&str> = data[0]["stateNames"].as_array().unwrap().iter().map(|n| n.as_str().unwrap()).collect();
    let numbers = |value: &Value| value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect::<Vec<_>>();
    let (mut queries, mut tiles, mut overlapping) = (0, 0, 0);
    for bank in data[0]["banks"].as_array().unwrap().iter().filter(|b| b[3][0].is_u64()) {
        let own: Vec<&str> = numbers(&bank[3]).chunks(5).map(|s| states[s[2] as usize]).collect();
        assert_eq!((own[0], own[1], *own.last().unwrap()), ("IDLE", "LOAD", "DONE"));
        let pairs = own.windows(2).filter(|pair| pair[0] == "PROCESS").map(|pair| pair[1]);
        assert!(pairs.into_iter().all(|next| next == "OUTPUT"), "{own:?}");
        queries += own.iter().filter(|s| **s == "OUTPUT").count();
        tiles += numbers(&bank[3]).chunks(5).map(|s| s[4]).sum::<u64>();
        let mut before = 0;
        for chunk in bank[4].as_array().unwrap() {
            let [states, from, _, count, first] = [0, 1, 2, 3, 4].map(|n| chunk[n].as_u64().unwrap());
            assert_eq!((states, first), (0, 0), "tiles, from the first one on");
            let columns = unpacked(chunk[5].as_str().unwrap(), count as usize, 4);
            let mut fetch = from;
            let steps = columns[0].iter().zip(&columns[1]).zip(&columns[2]).zip(&columns[3]);
            for (((ahead, load), wait), length) in steps {
                fetch += ahead;
                let begin = fetch + load + wait;
                assert!(begin >= before, "lanes compute one tile at a time");
                overlapping += usize::from(fetch < before);
                before = begin + length;
            }
        }
    }
    assert_eq!((queries, tiles), (2 * 18, 2 * 18 * 4 * 8), "eight tiles of 16 channels a sample");
    assert!(overlapping > 2 * 18 * 4 * 8 / 2, "{overlapping}");
}

//! Kernels of level 3 in the form that is compared: a tile is bytes of its memory, a flag is a number between two
//! pipes, whatever declares them. The barrier that a block ends with is the text's, which runs several on a core.

use super::tree::{definition, is_id};
use std::collections::{BTreeMap, HashMap};

/// Values from this number on are made here.
const MADE: usize = 900_000;

/// A tile's type and the addresses of its elements.
struct Tile {
    ty: String,
    at: Vec<i64>,
}

/// A flag's pipes and the number of its first one.
struct Flag {
    pipes: String,
    first: i64,
}

#[derive(Default)]
struct Bytes {
    tiles: HashMap<String, Tile>,
    flags: HashMap<String, Flag>,
    numbers: HashMap<String, i64>,
    /// Numbers that variables have been set to since the last brace.
    set: HashMap<String, i64>,
    /// Numbers of tiles by their type and place.
    places: BTreeMap<String, usize>,
    /// How many flags each pair of pipes has.
    counts: HashMap<String, i64>,
    made: usize,
}

/// The kernel's text, of `--stage sync`, with tiles and flags by their bytes and numbers.
pub fn by_bytes(text: &str) -> String {
    let mut bytes = Bytes::default();
    let begin = text.lines().position(|l| l.starts_with("kernel ")).unwrap_or(0);
    let lines: Vec<&str> = text.lines().skip(begin).collect();
    for line in &lines {
        bytes.declared(line.trim());
    }
    let last = lines.iter().rposition(|l| l.trim() == "sync barrier all" && l.starts_with("  s"));
    let ends = |n: usize| Some(n) == last && lines[n + 1..].iter().all(|l| l.trim() == "}");
    let left_out = ["tile ", "event ", "alloc ", "alias "];
    let kept = |line: &str| !left_out.iter().any(|w| line.trim().starts_with(w));
    let mut body: Vec<String> = Vec::new();
    for (_, line) in lines.iter().enumerate().filter(|(n, line)| kept(line) && !ends(*n)) {
        bytes.statement(line, &mut body);
    }
    let tiles =
        bytes.places.iter().map(|(place, n)| format!("tile t{n} {}", place.split('@').next().unwrap_or_default()));
    let at = body.iter().position(|l| l.starts_with("prologue") || l.starts_with("body")).unwrap_or(0);
    let (head, rest) = body.split_at(at);
    head.iter().cloned().chain(tiles).chain(rest.iter().cloned()).collect::<Vec<_>>().join("\n")
}

/// A line without names in quotes.
fn bare(line: &str) -> String {
    line.split('"').step_by(2).collect::<Vec<_>>().join("").replace("  ", " ")
}

impl Bytes {
    fn declared(&mut self, line: &str) {
        let bare = bare(line);
        let words: Vec<&str> = bare.split_whitespace().collect();
        match words.first().copied() {
            Some("tile") => {
                let (ty, at) = bare.split_once(" at [").unwrap_or((&bare, ""));
                let ty = ty.split_once(words[1]).map_or("", |t| t.1).split(" count ").next().unwrap_or_default();
                let number = |n: &str| i64::from_str_radix(n.trim().trim_start_matches("0x"), 16).ok();
                let at = at.split(']').next().unwrap_or_default().split(',').filter_map(number).collect();
                self.tiles.insert(words[1].to_owned(), Tile { ty: ty.trim().to_owned(), at });
            }
            Some("event") => {
                let word = |w: &str| words.iter().position(|x| *x == w).and_then(|n| words.get(n + 1)).copied();
                let pipes = format!("{}_{}", word("from").unwrap_or("?"), word("to").unwrap_or("?"));
                let count = word("count").and_then(|n| n.parse().ok()).unwrap_or(1);
                let first = self.counts.entry(pipes.clone()).or_default();
                let flag = Flag { pipes, first: *first };
                *first += count;
                self.flags.insert(words[1].to_owned(), flag);
            }
            _ => {
                if let Some((value, "index", "const", n)) = definition(&bare) {
                    self.numbers.extend(n.parse().ok().map(|n| (value.to_owned(), n)));
                }
            }
        }
    }

    /// `t0#v3`, `t0`: the tile of that type and place, and the number if that is no constant.
    fn tile(&mut self, name: &str, element: Option<&str>) -> String {
        let tile = &self.tiles[name];
        let known = match element {
            None => Some(0),
            Some(v) => self.numbers.get(v).copied(),
        };
        let (place, rest) = match known.and_then(|n| tile.at.get(usize::try_from(n).ok()?)) {
            Some(at) => (format!("{}@{at:#x}", tile.ty), String::new()),
            // The distance between elements tells arrays apart that begin at one address.
            None => {
                (format!("{}@{:?}", tile.ty, &tile.at[..2.min(tile.at.len())]), format!("#{}", element.unwrap_or("?")))
            }
        };
        let next = self.places.len();
        let n = *self.places.entry(place).or_insert(next);
        format!("t{n}{rest}")
    }

    /// What a variable was set to is a constant until a loop or a branch begins or ends.
    fn variable(&mut self, text: &str) {
        if text.ends_with('{') || text.starts_with('}') {
            self.set.clear();
        } else if let Some((name, value)) = text.strip_prefix("set ").and_then(|s| s.split_once(", ")) {
            match self.numbers.get(value) {
                Some(n) => self.set.insert(name.to_owned(), *n),
                None => self.set.remove(name),
            };
        } else if let Some((value, _, "get", name)) = definition(text)
            && let Some(n) = self.set.get(name)
        {
            self.numbers.insert(value.to_owned(), *n);
        }
    }

    fn statement(&mut self, line: &str, body: &mut Vec<String>) {
        let text = bare(line);
        self.variable(text.trim());
        let indent = &line[..line.len() - line.trim_start().len()];
        if let Some((verb, flag)) = text.trim().strip_prefix("sync ").and_then(|s| s.split_once(' '))
            && let Some(known) = self.flags.get(flag.split('#').next().unwrap_or_default())
        {
            let (pipes, first) = (known.pipes.clone(), known.first);
            let element = flag.split_once('#').map(|f| f.1);
            // Its number is a value of its own.
            self.made += 2;
            let (c, sum) = (format!("v{}", MADE + self.made), format!("v{}", MADE + self.made + 1));
            body.push(format!("{indent}{c}: index = const {first}"));
            body.extend(element.map(|v| format!("{indent}{sum}: index = add {v}, {c}")));
            body.push(format!("{indent}sync {verb} {pipes} {}", if element.is_some() { sum } else { c }));
            return;
        }
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '"')) {
            out += &rest[..at];
            // Names in quotes stay.
            if let Some(quoted) = rest[at..].strip_prefix('"') {
                let end = at + 2 + quoted.find('"').unwrap_or(quoted.len().saturating_sub(1));
                out += &rest[at..end];
                rest = &rest[end..];
                continue;
            }
            let end = rest[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').map_or(rest.len(), |n| at + n);
            let word = &rest[at..end];
            rest = &rest[end..];
            if !is_id(word, 't') || !self.tiles.contains_key(word) {
                out += word;
                continue;
            }
            let element = rest.strip_prefix('#').map(|r| {
                let end = r.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(r.len());
                (&r[..end], &r[end..])
            });
            let (number, behind) = element.map_or((None, rest), |(n, behind)| (Some(n), behind));
            rest = behind;
            out += &self.tile(word, number);
        }
        body.push(out + rest);
    }
}

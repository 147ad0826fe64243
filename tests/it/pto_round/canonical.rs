//! A kernel's text in the form that is compared: scalars as expressions, variables as values that loops carry and
//! branches give, tiles and loops numbered by their use.

use super::expr::Expr;
use super::tree::{Needed, Node, assigned, assignment, definition, ids, is_id, is_pure, middles, parse};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Clone, Default)]
struct Canonical<'n> {
    /// Whether tiles have their numbers by where they are declared.
    by_place: bool,
    needed: Option<&'n Needed>,
    values: BTreeMap<String, Expr>,
    /// What variables hold here.
    vars: BTreeMap<String, Expr>,
    /// Numbers of tiles, loops and events, in the order of their use.
    ids: BTreeMap<String, String>,
    types: BTreeMap<String, String>,
    counts: BTreeMap<char, usize>,
    /// Tensors that something is loaded from, and that something is stored to.
    read: BTreeSet<String>,
    written: BTreeSet<String>,
    /// Scalars that were named, other than those of type `index`.
    scalars: usize,
    lines: Vec<String>,
}

/// The lines that are compared.
pub fn canonical(text: &str) -> Vec<String> {
    compared(text, false)
}

/// The same of a text whose tiles are declared in the order of their places: their numbers are these.
pub fn canonical_by_place(text: &str) -> Vec<String> {
    compared(text, true)
}

fn compared(text: &str, by_place: bool) -> Vec<String> {
    let lines: Vec<String> = text.lines().map(|l| nameless(l.trim())).collect();
    let mut nodes = parse(&mut lines.iter().map(String::as_str).peekable());
    middles(&mut nodes);
    let needed = Needed::of(&nodes);
    let mut c = Canonical { needed: Some(&needed), by_place, ..Canonical::default() };
    c.names(text);
    // Tables stand in front of what the prologue computes of the sizes.
    let (prologue, rest): (Vec<&Node>, Vec<&Node>) =
        nodes.iter().partition(|n| matches!(n, Node::Block(r) if r[0].0 == "prologue"));
    for node in prologue.into_iter().chain(rest) {
        match node {
            Node::Block(regions) if ["prologue", "body"].contains(&regions[0].0.as_str()) => {
                c.region(&regions[0].1, &BTreeSet::new());
            }
            Node::Block(regions) => regions.iter().for_each(|(head, r)| {
                c.lines.push(head.clone());
                c.region(r, &BTreeSet::new());
            }),
            Node::Line(line) => c.header(line),
        }
    }
    folded(c.lines)
}

/// A line without the names in quotes and what follows ` hidden` and ` stages`.
fn nameless(line: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in line.chars() {
        match c {
            '"' => {
                inside = !inside;
                if inside && out.ends_with(' ') {
                    out.pop();
                }
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    let out = out.replace(" hidden", "");
    match out.find(" stages ") {
        Some(at) => {
            let rest = out[at + 8..].trim_start_matches(|c: char| c.is_ascii_digit());
            format!("{}{rest}", &out[..at])
        }
        None => out,
    }
}

impl Canonical<'_> {
    /// Dimensions, and scalars of type `index`, which are dimensions where an array has them, are known by their names;
    /// other scalars by their place.
    fn names(&mut self, text: &str) {
        for line in text.lines().map(str::trim) {
            let name = line.split('"').nth(1).unwrap_or_default();
            let kind = line.split([' ', ':']).next().unwrap_or_default();
            let bare = nameless(line);
            if ["dim", "scalar"].contains(&kind) {
                let word = |w: &&str| is_id(w, 'v');
                let ty = bare.rsplit(": ").next().and_then(|ty| ty.split(' ').next()).unwrap_or_default();
                let known = if ty == "index" {
                    Expr::of(format!("dim {name}"))
                } else {
                    // Numbers of the text have no sign.
                    self.scalars += 1;
                    let own = Expr::of(format!("scalar {}", self.scalars));
                    if ty.starts_with('u') { Expr::made("convert.rint", ty, &[own], "") } else { own }
                };
                if let Some(value) = bare.split([' ', ':']).find(word) {
                    self.values.insert(value.to_owned(), known);
                }
            } else if kind != "tensor" {
                let stored = bare.starts_with("tstore") || bare.starts_with("store ") || bare.starts_with("mscatter");
                let set = if stored { &mut self.written } else { &mut self.read };
                set.extend(ids(&bare, 'g').map(str::to_owned));
                if bare.contains("atomic") {
                    self.read.extend(ids(&bare, 'g').map(str::to_owned));
                    self.written.extend(ids(&bare, 'g').map(str::to_owned));
                }
            }
        }
    }

    fn value(&self, name: &str) -> Expr {
        self.values.get(name).cloned().unwrap_or_else(|| Expr::of(name))
    }

    fn id(&mut self, name: &str) -> String {
        if let Some(known) = self.ids.get(name) {
            return known.clone();
        }
        let kind = name.chars().next().unwrap_or('?').to_ascii_uppercase();
        let ty = self.types.get(name).map(|t| format!(":{t}")).unwrap_or_default();
        let made = format!("{}{ty}", self.next(kind));
        self.ids.insert(name.to_owned(), made.clone());
        made
    }

    fn next(&mut self, kind: char) -> String {
        let n = self.counts.entry(kind).or_default();
        *n += 1;
        format!("{kind}{}", *n - 1)
    }

    /// `[1x128 v1, v2]` without the capacity, where the tile is made of boxes, whole ones in the text.
    fn boxed(&self, text: &str) -> String {
        let mut out = String::new();
        for (n, part) in text.split('[').enumerate() {
            let id = out.rsplit([' ', '(']).next().unwrap_or_default();
            let boxes = ["Mat<", "Left<", "Right<", "Acc<"];
            let is_boxed = self.types.get(id).is_some_and(|ty| boxes.iter().any(|b| ty.starts_with(b)));
            let kept = match part.split_once(' ') {
                Some((_, valid)) if n > 0 && is_boxed => valid,
                _ => part,
            };
            out += if n > 0 { "[" } else { "" };
            out += kept;
        }
        out
    }

    /// `(1, v5):(v4, v3)], t1[8x1 v1, v5]`: a column that is moved from or to a vector as a row of it.
    fn upright(&self, text: &str) -> String {
        let Some(at) = text.find("x1 ") else { return text.to_owned() };
        let end = text[at..].find(']').map_or(text.len(), |n| at + n);
        let Some((rows, cols)) = text[at + 3..end].split_once(", ").filter(|(_, c)| !c.contains(' ')) else {
            return text.to_owned();
        };
        if self.value(rows).text != "1" || self.value(cols).text == "1" {
            return text.to_owned();
        }
        let turned = format!("{}x1 {cols}, {rows}{}", &text[..at], &text[end..]);
        let pair = |s: &str| s.split_once(", ").map(|(a, b)| format!("{b}, {a}"));
        let Some(colon) = turned.find("):(") else { return turned };
        let begin = turned[..colon].rfind('(').map_or(0, |n| n + 1);
        let close = turned[colon + 3..].find(')').map_or(turned.len(), |n| colon + 3 + n);
        match (pair(&turned[begin..colon]), pair(&turned[colon + 3..close])) {
            (Some(shape), Some(strides)) => {
                format!("{}{shape}):({strides}{}", &turned[..begin], &turned[close..])
            }
            _ => turned,
        }
    }

    /// Every value as its expression, every tile, loop and event with its number.
    fn renamed(&mut self, text: &str) -> String {
        let text = self.strides_of_one(&self.upright(&self.boxed(text)));
        let mut out = String::new();
        let mut word = String::new();
        for c in text.chars().chain([' ']) {
            if c.is_ascii_alphanumeric() || c == '_' {
                word.push(c);
                continue;
            }
            if is_id(&word, 'v') {
                out += &self.value(&word).text;
            } else if ['t', 'l', 'e'].iter().any(|k| is_id(&word, *k)) {
                let known = self.id(&word);
                out += &known;
            } else {
                out += &word;
            }
            word.clear();
            out.push(c);
        }
        out.trim_end().to_owned()
    }

    /// The stride of a mode of one element does not count: `+ (v1, v2):(v3, v4)`, where `v1` is 1.
    fn strides_of_one(&self, text: &str) -> String {
        let mut out = text.to_owned();
        let mut from = 0;
        while let Some(at) = out[from..].find("):(").map(|at| from + at) {
            let begin = out[..at].rfind('(').map_or(0, |n| n + 1);
            let end = out[at + 3..].find(')').map_or(out.len(), |n| at + 3 + n);
            let extents: Vec<&str> = out[begin..at].split(", ").collect();
            let strides = out[at + 3..end].split(", ").enumerate();
            let kept: Vec<&str> = strides
                .map(|(n, s)| if extents.get(n).is_some_and(|e| self.value(e).text == "1") { "_" } else { s })
                .collect();
            let kept = kept.join(", ");
            out.replace_range(at + 3..end, &kept);
            from = at + 3 + kept.len();
        }
        out
    }

    fn header(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first().copied().unwrap_or_default().trim_end_matches(':') {
            "tile" | "event" => {
                // Where tiles are is not said at level 2.
                let ty = words[2..].join(" ");
                let ty = ty.split(" at [").next().unwrap_or_default().to_owned();
                self.types.insert(words[1].trim_end_matches(':').into(), ty);
                if self.by_place {
                    self.id(words[1]);
                }
            }
            "" | "check" | "unused" | "label" | "kernel" | "dim" | "scalar" | "var" | "pin" | "}" => {}
            "grid" => self.grid(line),
            "tensor" => {
                // The text does not say what is done with an array, nor that blocks write other elements of it.
                let (read, written) = (self.read.contains(words[1]), self.written.contains(words[1]));
                let line = self.renamed(line).replace(" disjoint", "");
                let mut words: Vec<&str> = line.split(' ').collect();
                words[2] = match (read, written) {
                    (_, false) => "in",
                    (false, true) => "out",
                    (true, true) => "inout",
                };
                let line = words.join(" ");
                self.lines.push(line);
            }
            _ => {
                let line = self.renamed(line);
                self.lines.push(line);
            }
        }
    }

    fn grid(&mut self, bare: &str) {
        let inside = bare.split_once('[').map_or("", |p| p.1).split(']').next().unwrap_or_default().to_owned();
        let mut extents = Vec::new();
        for (n, dim) in inside.split(", ").filter(|d| !d.is_empty()).enumerate() {
            let value = dim.split(':').next().unwrap_or_default().trim().to_owned();
            extents.push(self.value(dim.rsplit("< ").next().unwrap_or_default().trim()).text);
            self.values.insert(value, Expr::of(format!("block {n}")));
        }
        self.lines.push(format!("grid {}", extents.join(", ")));
    }

    /// Statements, behind which the variables in `live` hold something needed.
    fn region(&mut self, nodes: &[Node], live: &BTreeSet<String>) {
        let Some(needed) = self.needed else { return };
        for (n, node) in nodes.iter().enumerate() {
            match node {
                Node::Line(line) => self.statement(line),
                Node::Block(regions) => {
                    let behind = needed.live(&nodes[n + 1..], live);
                    match regions[0].0.split(' ').next().unwrap_or_default() {
                        "if" => self.branch(regions, &behind),
                        "for" | "while" => self.looped(regions, &behind),
                        _ => {
                            let head = self.renamed(&regions[0].0);
                            self.lines.push(format!("{head} {{"));
                            self.region(&regions[0].1, &behind);
                            self.lines.push("}".into());
                        }
                    }
                }
            }
        }
    }

    /// What a variable holds.
    fn held(&self, var: &str) -> Expr {
        self.vars.get(var).cloned().unwrap_or_else(|| Expr::of("nothing"))
    }

    fn looped(&mut self, regions: &[(String, Vec<Node>)], behind: &BTreeSet<String>) {
        let Some(needed) = self.needed else { return };
        let live = needed.live_loop(regions, behind);
        let mut set = BTreeSet::new();
        regions.iter().for_each(|(_, r)| assigned(r, &mut set));
        let mut carried: Vec<String> = set.iter().filter(|v| live.contains(*v)).cloned().collect();
        if carried.len() > 1 {
            // Variables have no order of their own: it is that of what they begin with and become.
            let mut trial = self.clone();
            trial.vars.extend(carried.iter().map(|v| (v.clone(), Expr::of("carried"))));
            drop(trial.bodies(regions, &live, behind));
            carried.sort_by_cached_key(|v| (self.held(v).text, trial.held(v).text));
        }
        let words: Vec<&str> = regions[0].0.split_whitespace().collect();
        let label = self.id(words[1]);
        let inits: Vec<String> = carried.iter().map(|v| self.held(v).text).collect();
        for (k, var) in carried.iter().enumerate() {
            self.vars.insert(var.clone(), Expr::of(format!("{label}.{k}")));
        }
        let left = self.bodies(regions, &live, behind);
        let nexts: Vec<String> = carried.iter().map(|v| self.held(v).text).collect();
        for (k, (init, next)) in inits.into_iter().zip(nexts).enumerate() {
            self.lines.push(format!("carried {label}.{k} = {init}, {next}"));
        }
        self.lines.push("}".into());
        for var in &set {
            self.vars.remove(var);
            // What a `while` is left with is what its condition saw.
            let held = left.as_ref().and_then(|left| left.get(var)).cloned();
            let carried = carried.iter().position(|v| v == var).map(|k| Expr::of(format!("{label}.{k}")));
            self.vars.extend(held.or(carried).map(|held| (var.clone(), held)));
        }
    }

    /// The regions of a loop; what variables hold where a condition is asked.
    fn bodies(
        &mut self,
        regions: &[(String, Vec<Node>)],
        live: &BTreeSet<String>,
        behind: &BTreeSet<String>,
    ) -> Option<BTreeMap<String, Expr>> {
        let mut left = None;
        let words: Vec<&str> = regions[0].0.split_whitespace().collect();
        let label = self.id(words[1]);
        if words[0] == "for" {
            self.values.insert(words[2].trim_end_matches(':').to_owned(), Expr::of(label.clone()));
            let bounds = words.iter().skip_while(|w| **w != "in").skip(1).copied().collect::<Vec<_>>().join(" ");
            let bounds = self.renamed(&bounds);
            self.lines.push(format!("for {label} in {bounds} {{"));
        } else {
            self.lines.push(format!("while {label} {{"));
        }
        for (n, (head, region)) in regions.iter().enumerate() {
            if n > 0 {
                let head = self.renamed(head);
                self.lines.push(format!("}} {head} {{"));
                left = Some(self.vars.clone());
            }
            self.region(region, &live.union(behind).cloned().collect());
        }
        left
    }

    fn branch(&mut self, regions: &[(String, Vec<Node>)], behind: &BTreeSet<String>) {
        let mut set = BTreeSet::new();
        regions.iter().for_each(|(_, r)| assigned(r, &mut set));
        let name = self.next('I');
        let head = self.renamed(&regions[0].0);
        self.lines.push(format!("{head} {{"));
        let before = self.vars.clone();
        let mut sides = Vec::new();
        for n in 0..2 {
            self.vars.clone_from(&before);
            if let Some((_, region)) = regions.get(n) {
                if n > 0 {
                    self.lines.push("} else {".into());
                }
                self.region(region, behind);
                if n > 0 && self.lines.last().is_some_and(|l| l == "} else {") {
                    self.lines.pop();
                }
            }
            sides.push(self.vars.clone());
        }
        self.lines.push("}".into());
        self.vars = before;
        let held =
            |side: &BTreeMap<String, Expr>, var: &str| side.get(var).cloned().unwrap_or_else(|| Expr::of("nothing"));
        let given = set.iter().filter(|v| behind.contains(*v));
        let mut given: Vec<_> = given.map(|v| (held(&sides[0], v), held(&sides[1], v), v.clone())).collect();
        given.sort_by_cached_key(|(a, b, _)| (a.text.clone(), b.text.clone()));
        self.vars.retain(|var, _| !set.contains(var));
        for (k, (a, b, var)) in given.into_iter().enumerate() {
            if a.text == b.text {
                self.vars.insert(var, a);
                continue;
            }
            self.lines.push(format!("given {name}.{k} = {head}: {}, {}", a.text, b.text));
            self.vars.insert(var, Expr::of(format!("{name}.{k}")));
        }
    }

    /// `t0[16x64 v1, v2], v3, v4`: an element by its number in the tile's buffer, which is what the text says.
    fn numbered(&mut self, args: &str) -> Option<String> {
        let (tile, rest) = args.split_once("], ")?;
        let mut parts = rest.split(", ");
        let (row, col) = (self.value(parts.next()?), self.value(parts.next()?));
        let id = tile.split(['[', ' ']).next()?;
        let ty = self.types.get(id)?.clone();
        let mut extents = ty.split_once('<')?.1.trim_end_matches('>').split(", ").skip(1);
        let (rows, cols) = (extents.next()?, extents.next()?);
        let columns = ty.ends_with("DN>");
        let (major, minor, width) = if columns { (col, row, rows) } else { (row, col, cols) };
        let sizes = [major, Expr::of(width)];
        let number = Expr::made("add", "index", &[Expr::made("mul", "index", &sizes, ""), minor], "");
        let value: Vec<String> = parts.map(|v| self.value(v).text).collect();
        Some(format!("{}] {} {}", self.renamed(tile), number.text, value.join(" ")))
    }

    fn statement(&mut self, line: &str) {
        if line.starts_with("check ") {
            return;
        }
        if let Some(args) = line.strip_prefix("tileset ").and_then(|args| self.numbered(args)) {
            self.lines.push(format!("tileset {args}"));
            return;
        }
        if let Some((var, value)) = assignment(line) {
            let held = self.value(value);
            self.vars.insert(var.to_owned(), held);
            return;
        }
        let Some((value, ty, op, args)) = definition(line) else {
            let line = self.renamed(line);
            self.lines.push(line);
            return;
        };
        if !is_pure(op) {
            let line = match (op == "tileget").then(|| self.numbered(args)).flatten() {
                Some(args) => format!("tileget {args}"),
                None => self.renamed(&format!("{op} {args}")),
            };
            let name = self.next('%');
            self.lines.push(format!("{name}: {ty} = {line}"));
            self.values.insert(value.into(), Expr::of(name));
            return;
        }
        let expr = match op {
            "get" => self.held(args),
            _ => {
                let operands: Vec<Expr> = args.split(", ").map(|a| self.value(a)).collect();
                Expr::made(op, ty, &operands, args)
            }
        };
        self.values.insert(value.into(), expr);
    }
}

/// An accumulator that is 0 and then added to is one that begins with its first product: `if first {mul} else {add}`.
/// A branch with nothing in it is none.
fn folded(lines: Vec<String>) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    for line in lines {
        let zero = (line.contains(":Acc<f32") && line.ends_with(", f32 0.0"))
            || (line.contains(":Acc<i32") && line.ends_with(", i32 0"));
        if line.starts_with("texpands ") && zero {
            continue;
        }
        out.push(line);
        let is_branch = |out: &[String]| match out {
            [.., head, first, middle, more, end] => {
                head.starts_with("if ")
                    && first.split_once(' ').is_some_and(|(name, rest)| {
                        let dst = rest.split("], ").next().unwrap_or_default();
                        let added = format!("{name}_acc {dst}], ");
                        more.starts_with(&added) && more.ends_with(rest.get(dst.len() + 1..).unwrap_or("?"))
                    })
                    && middle == "} else {"
                    && end == "}"
            }
            _ => false,
        };
        if is_branch(&out) {
            let added = out.swap_remove(out.len() - 2);
            out.truncate(out.len() - 4);
            out.push(added);
        } else if matches!(&out[..], [.., head, end] if head.starts_with("if ") && end == "}") {
            out.truncate(out.len() - 2);
        }
    }
    out
}

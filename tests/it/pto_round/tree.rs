//! A kernel's text as a tree of statements, and which of its variables are needed.

use super::expr::PURE;
use std::collections::BTreeSet;

/// A statement, or one with regions.
#[derive(Clone, Debug)]
pub enum Node {
    Line(String),
    /// `if v3 {..} else {..}`, `for l0 ..`, `while l0 {..} do v3 {..}`: heads and regions.
    Block(Vec<(String, Vec<Node>)>),
}

/// The statements of lines up to the end of their region.
pub fn parse<'l>(lines: &mut std::iter::Peekable<impl Iterator<Item = &'l str>>) -> Vec<Node> {
    let mut nodes = Vec::new();
    while let Some(line) = lines.peek().copied() {
        if line.starts_with('}') {
            break;
        }
        lines.next();
        let Some(head) = line.strip_suffix(" {") else {
            nodes.push(Node::Line(line.to_owned()));
            continue;
        };
        let mut regions = vec![(head.to_owned(), parse(lines))];
        while let Some(more) = lines.next().and_then(|l| l.strip_prefix("} ")).and_then(|l| l.strip_suffix(" {")) {
            regions.push((more.to_owned(), parse(lines)));
        }
        nodes.push(Node::Block(regions));
    }
    nodes
}

/// `v3: index = add v1, v2`: the value, its type, the operation, its operands.
pub fn definition(line: &str) -> Option<(&str, &str, &str, &str)> {
    let (left, right) = line.split_once(" = ")?;
    let (value, ty) = left.split_once(": ").unwrap_or((left, ""));
    let (op, args) = right.split_once(' ').unwrap_or((right, ""));
    is_id(value, 'v').then_some((value, ty, op, args))
}

/// Whether a definition has no effect.
pub fn is_pure(op: &str) -> bool {
    PURE.contains(&op) || op.starts_with("convert") || op.starts_with("const")
}

/// `set m0, v3`
pub fn assignment(line: &str) -> Option<(&str, &str)> {
    let (var, value) = line.strip_prefix("set ")?.split_once(", ")?;
    is_id(var, 'm').then_some((var, value))
}

/// Whether a word is a letter and a number.
pub fn is_id(word: &str, first: char) -> bool {
    word.strip_prefix(first).is_some_and(|d| !d.is_empty() && d.bytes().all(|b| b.is_ascii_digit()))
}

/// The words of a line that are letters and numbers.
pub fn ids(line: &str, first: char) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(move |w| is_id(w, first))
}

/// Values and variables that something with an effect needs.
#[derive(Default)]
pub struct Needed {
    pub values: BTreeSet<String>,
    pub vars: BTreeSet<String>,
}

impl Needed {
    pub fn of(nodes: &[Node]) -> Needed {
        let mut needed = Needed::default();
        loop {
            let before = needed.values.len() + needed.vars.len();
            needed.nodes(nodes);
            if needed.values.len() + needed.vars.len() == before {
                return needed;
            }
        }
    }

    fn nodes(&mut self, nodes: &[Node]) {
        for node in nodes.iter().rev() {
            match node {
                Node::Line(line) => self.line(line),
                Node::Block(regions) => {
                    for (head, region) in regions.iter().rev() {
                        self.nodes(region);
                        self.values.extend(ids(head, 'v').map(str::to_owned));
                    }
                }
            }
        }
    }

    fn line(&mut self, line: &str) {
        if line.starts_with("check ") {
            return;
        }
        let used = match (definition(line), assignment(line)) {
            (Some((value, _, op, args)), _) if is_pure(op) => {
                if !self.values.contains(value) {
                    return;
                }
                if op == "get" {
                    self.vars.insert(args.to_owned());
                }
                args
            }
            (Some((_, _, _, args)), _) => args,
            (None, Some((var, value))) => {
                if !self.vars.contains(var) {
                    return;
                }
                value
            }
            (None, None) => line,
        };
        self.values.extend(ids(used, 'v').map(str::to_owned));
    }

    /// Variables that hold something needed in front of statements, if those in `live` do behind them.
    pub fn live(&self, nodes: &[Node], live: &BTreeSet<String>) -> BTreeSet<String> {
        let mut live = live.clone();
        for node in nodes.iter().rev() {
            match node {
                Node::Line(line) => {
                    if let Some((var, _)) = assignment(line) {
                        live.remove(var);
                    } else if let Some((value, _, "get", var)) = definition(line)
                        && self.values.contains(value)
                    {
                        live.insert(var.to_owned());
                    }
                }
                Node::Block(regions) => live = self.live_block(regions, &live),
            }
        }
        live
    }

    fn live_block(&self, regions: &[(String, Vec<Node>)], behind: &BTreeSet<String>) -> BTreeSet<String> {
        let head = &regions[0].0;
        if head.starts_with("if ") {
            let mut live = self.live(&regions[0].1, behind);
            match regions.get(1) {
                Some((_, other)) => live.extend(self.live(other, behind)),
                None => live.extend(behind.iter().cloned()),
            }
            return live;
        }
        self.live_loop(regions, behind)
    }

    /// Variables that hold something needed where an iteration begins.
    pub fn live_loop(&self, regions: &[(String, Vec<Node>)], behind: &BTreeSet<String>) -> BTreeSet<String> {
        let mut live = BTreeSet::new();
        loop {
            let ended = live.union(behind).cloned().collect();
            let before = match regions {
                [(_, body)] => self.live(body, &ended).union(behind).cloned().collect(),
                [(_, head), (_, body)] => {
                    let body = self.live(body, &live);
                    self.live(head, &body.union(behind).cloned().collect())
                }
                _ => return live,
            };
            let before: BTreeSet<String> = before;
            if before.is_subset(&live) {
                return live;
            }
            live.extend(before);
        }
    }
}

/// Variables that statements give values to.
pub fn assigned(nodes: &[Node], found: &mut BTreeSet<String>) {
    for node in nodes {
        match node {
            Node::Line(line) => found.extend(assignment(line).map(|(var, _)| var.to_owned())),
            Node::Block(regions) => regions.iter().for_each(|(_, r)| assigned(r, found)),
        }
    }
}

/// `set m, true; while m {..; set m, c; if m {..}}` is `while {..} do c {..}`: a loop that is left in its middle.
pub fn middles(nodes: &mut [Node]) {
    for node in nodes.iter_mut() {
        if let Node::Block(regions) = node {
            regions.iter_mut().for_each(|(_, r)| middles(r));
        }
    }
    for node in nodes.iter_mut() {
        if let Some(made) = middle(node) {
            *node = made;
        }
    }
}

fn middle(node: &Node) -> Option<Node> {
    let Node::Block(regions) = node else { return None };
    let [(head, test), (until, body)] = &regions[..] else { return None };
    let var = |line: &Node, value: &str| match line {
        Node::Line(line) => definition(line).filter(|d| d.0 == value && d.2 == "get").map(|d| d.3.to_owned()),
        Node::Block(_) => None,
    };
    let go = until.strip_prefix("do ")?;
    let [only] = &test[..] else { return None };
    let go = var(only, go).filter(|_| head.starts_with("while "))?;
    let [first @ .., again, Node::Block(rest)] = &body[..] else { return None };
    let [(asked, rest)] = &rest[..] else { return None };
    var(again, asked.strip_prefix("if ")?).filter(|v| *v == go)?;
    // Between the condition and the question stand only values that are handed on.
    let set = first.iter().rposition(|n| matches!(n, Node::Line(l) if assignment(l).is_some_and(|a| a.0 == go)))?;
    let Node::Line(line) = &first[set] else { return None };
    let condition = assignment(line)?.1.to_owned();
    let head_region = first.iter().enumerate().filter(|(n, _)| *n != set).map(|(_, node)| node.clone()).collect();
    Some(Node::Block(vec![(head.clone(), head_region), (format!("do {condition}"), rest.clone())]))
}

//! From a located document to a [`Config`]: every mistake is reported, each once.

use std::collections::BTreeMap;

use super::{Config, Loaded};
use crate::dram::command::{Command, CommandSet};
use crate::dram::org::Org;
use crate::dram::rules::{self, Constraint, Level};
use crate::dram::standard::Standard;
use crate::dram::timing::{Need, Parameter, Timing};
use crate::located::{self, InputError, Node, Value, nearest};

/// Keys of the document that mean something here, or are known to mean nothing here.
const KEYS: &[&str] = &[
    "name",
    "source",
    "standard",
    "org",
    "timing_nCK",
    "tick_multiplier",
    "command_cycles_ticks",
    "commands",
    "levels",
    "constraints",
    "constraints_override",
    "constraints_note",
    "read_latency_ticks",
    "results",
    "energy",
];

pub(super) fn read(name: &str, text: &str) -> Result<Loaded, Vec<InputError>> {
    let document = located::parse(text).map_err(|e| vec![e])?;
    of_node(name, text, &document)
}

pub(super) fn of_node(name: &str, text: &str, document: &Node) -> Result<Loaded, Vec<InputError>> {
    let mut reader = Reader { text, document, errors: Vec::new(), warnings: Vec::new() };
    let config = reader.config(name);
    match config {
        Some(config) if reader.errors.is_empty() => Ok(Loaded { config, warnings: reader.warnings }),
        _ => {
            debug_assert!(!reader.errors.is_empty(), "a configuration is refused with a reason");
            Err(reader.errors)
        }
    }
}

struct Reader<'a> {
    text: &'a str,
    document: &'a Node,
    errors: Vec<InputError>,
    warnings: Vec<InputError>,
}

impl<'a> Reader<'a> {
    fn error(&self, node: &Node, path: &str, message: impl Into<String>) -> InputError {
        InputError::at(self.text, node.bytes.clone(), message).path(path)
    }

    fn fail(&mut self, node: &Node, path: &str, message: impl Into<String>) {
        let error = self.error(node, path, message);
        self.errors.push(error);
    }

    /// An integer of the range, or an error.
    fn integer(&mut self, node: &Node, path: &str, range: std::ops::RangeInclusive<u32>) -> Option<u32> {
        let Value::Int(value) = node.value else {
            self.fail(node, path, format!("this should be an integer, not {}", node.value.kind()));
            return None;
        };
        match u32::try_from(value) {
            Ok(v) if range.contains(&v) => Some(v),
            _ => {
                self.fail(node, path, format!("{value} is outside {}..={}", range.start(), range.end()));
                None
            }
        }
    }

    fn table(&mut self, name: &str) -> Option<&'a Node> {
        match self.document.get(name) {
            None => {
                let whole = InputError::at(self.text, 0..0, format!("the table `{name}` is missing")).path(name);
                self.errors.push(whole.help("`org` and `timing_nCK` describe a device; see the presets"));
                None
            }
            Some(node) if matches!(node.value, Value::Table(_)) => Some(node),
            Some(node) => {
                self.fail(node, name, format!("this should be a table, not {}", node.value.kind()));
                None
            }
        }
    }

    fn unknown(&self, bytes: std::ops::Range<usize>, path: String, what: &str, known: &[&str]) -> InputError {
        let name = path.rsplit('.').next().unwrap_or_default().to_owned();
        let error = InputError::at(self.text, bytes, format!("there is no {what} `{name}`")).path(path);
        match nearest(&name, known.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.help(format!("known are {}", known.join(", "))),
        }
    }

    fn config(&mut self, default_name: &str) -> Option<Config> {
        let document = self.document;
        if let Value::Table(entries) = &document.value {
            for (key, _) in entries {
                if !KEYS.contains(&key.name.as_str()) {
                    let warning = self.unknown(key.bytes.clone(), key.name.clone(), "use for", KEYS);
                    self.warnings.push(warning);
                }
            }
        } else {
            self.fail(document, "", format!("a configuration is a table, not {}", document.value.kind()));
            return None;
        }
        let name = match document.get("name") {
            None => default_name.to_owned(),
            Some(Node { value: Value::Text(name), .. }) => name.clone(),
            Some(node) => {
                self.fail(node, "name", format!("this should be a string, not {}", node.value.kind()));
                return None;
            }
        };
        let tick_multiplier = match document.get("tick_multiplier") {
            None => Some(1),
            Some(node) => self.integer(node, "tick_multiplier", 1..=Config::MAX_TICK_MULTIPLIER),
        };
        let standard = self.standard(tick_multiplier.unwrap_or(1));
        let org = self.org(standard);
        let timing = self.timing(standard, org.as_ref());
        let (org, timing, tick_multiplier) = (org?, timing?, tick_multiplier?);
        if standard.half_clocks() && tick_multiplier % 2 != 0 {
            let at = document.get("tick_multiplier").unwrap_or(document);
            let message = format!("{} has commands of half a clock: the ticks of a clock are even", standard.name());
            let error = self.error(at, "tick_multiplier", message);
            self.errors.push(error.help("give `tick_multiplier = 2`, or `standard = \"HBM2\"`"));
            return None;
        }
        let command_ticks = self.command_ticks(standard, tick_multiplier)?;
        let energy = self.energy()?;
        let constraints = rules::derive(standard, &org, &timing, tick_multiplier, &command_ticks);
        let mut config = Config { name, standard, org, timing, tick_multiplier, command_ticks, constraints, energy };
        self.explicit_constraints(&mut config)?;
        if let Some(node) = document.get("read_latency_ticks") {
            let given = self.integer(node, "read_latency_ticks", 0..=u32::MAX)?;
            let want = config.read_latency();
            if u64::from(given) != want {
                let warning =
                    self.error(node, "read_latency_ticks", format!("nCL + nBL are {want} ticks, not {given}"));
                self.warnings.push(warning.help("the timing parameters are used"));
            }
        }
        Some(config)
    }

    /// The given standard, or the one that the parameters speak of.
    fn standard(&mut self, tick_multiplier: u32) -> Standard {
        match self.document.get("standard") {
            Some(Node { value: Value::Text(s), .. }) if Standard::from_name(s).is_some() => {
                Standard::from_name(s).unwrap_or(Standard::Hbm2)
            }
            Some(node) => {
                let names: Vec<String> = Standard::ALL.iter().map(|s| format!("\"{}\"", s.name())).collect();
                self.fail(node, "standard", format!("this should be one of {}", names.join(", ")));
                Standard::Hbm2
            }
            None => {
                let timing = self.document.get("timing_nCK");
                let has = |name: &str| timing.is_some_and(|t| t.get(name).is_some());
                if tick_multiplier == 2 || has("nPPD") || has("nRTW") { Standard::Hbm3 } else { Standard::Hbm2 }
            }
        }
    }

    fn org(&mut self, standard: Standard) -> Option<Org> {
        let table = self.table("org")?;
        let errors_before = self.errors.len();
        /// Name, bounds, value where absent.
        const FIELDS: &[(&str, u32, u32, Option<u32>)] = &[
            ("channel", 1, 1024, Some(1)),
            ("pseudochannel", 1, Org::MAX_PSEUDOCHANNELS, Some(1)),
            ("sid", 1, 16, Some(1)),
            ("bankgroup", 1, 64, None),
            ("bank", 1, 64, None),
            ("row", 1, 1 << 24, None),
            ("column", 1, 1 << 16, None),
            ("dq", 1, 4096, None),
            ("channel_width", 1, 4096, Some(0)),
            ("density", 0, 1 << 24, Some(0)),
        ];
        let mut misspelt = Vec::new();
        if let Value::Table(entries) = &table.value {
            let names: Vec<&str> = FIELDS.iter().map(|f| f.0).collect();
            for (key, _) in entries {
                if !names.contains(&key.name.as_str()) {
                    misspelt.extend(nearest(&key.name, names.iter().copied()));
                    let error = self.unknown(key.bytes.clone(), format!("org.{}", key.name), "count", &names);
                    self.errors.push(error);
                }
            }
        }
        let values: Vec<u32> = FIELDS
            .iter()
            .map(|(name, low, high, default)| {
                let path = format!("org.{name}");
                match (table.get(name), default) {
                    (Some(node), _) => self.integer(node, &path, *low..=*high).unwrap_or(*low),
                    (None, Some(default)) => *default,
                    // Reported as misspelt, so not as missing too.
                    (None, None) if misspelt.contains(name) => *low,
                    (None, None) => {
                        self.fail(table, &path, format!("`{name}` is missing"));
                        *low
                    }
                }
            })
            .collect();
        let &[channel, pseudochannel, sid, bankgroup, bank, row, column, dq, channel_width, density] = &values[..]
        else {
            unreachable!("one value for each field");
        };
        let org = Org {
            channel,
            pseudochannel,
            sid,
            bankgroup,
            bank,
            row,
            column,
            dq,
            channel_width: if channel_width == 0 { dq } else { channel_width },
            density,
            burst_length: standard.prefetch(),
        };
        if self.errors.len() > errors_before {
            return None;
        }
        if org.banks_per_pc() > Org::MAX_BANKS {
            let banks = org.banks_per_pc();
            self.fail(
                table,
                "org",
                format!("{sid} x {bankgroup} x {bank} = {banks} banks are more than {}", Org::MAX_BANKS),
            );
        }
        if !standard.has_stack_levels() {
            for (name, count) in [("pseudochannel", pseudochannel), ("sid", sid)] {
                if count > 1 {
                    let node = table.get(name).unwrap_or(table);
                    let error = self.error(
                        node,
                        &format!("org.{name}"),
                        format!("{} has one rank here, and no {name}: this should be 1", standard.name()),
                    );
                    self.errors.push(error.help("ranks that share a bus are not modelled; describe one of them"));
                }
            }
        }
        if !org.column.is_multiple_of(org.burst_length) {
            let node = table.get("column").unwrap_or(table);
            let error = self.error(
                node,
                "org.column",
                format!(
                    "{column} columns are no multiple of the {} that one {} burst moves",
                    org.burst_length,
                    standard.name()
                ),
            );
            self.errors.push(error.help("`column` counts units of `dq` bits, not bursts"));
        }
        if !(org.burst_length * org.channel_width).is_multiple_of(8) {
            let node = table.get("channel_width").or(table.get("dq")).unwrap_or(table);
            self.fail(
                node,
                "org.channel_width",
                format!("a burst of {} x {} bits is not whole bytes", org.burst_length, org.channel_width),
            );
        }
        (self.errors.len() == errors_before).then_some(org)
    }

    fn timing(&mut self, standard: Standard, org: Option<&Org>) -> Option<Timing> {
        let table = self.table("timing_nCK")?;
        let errors_before = self.errors.len();
        let mut timing = Timing::default();
        let mut given: Vec<&'static str> = Vec::new();
        if let Value::Table(entries) = &table.value {
            for (key, node) in entries {
                let path = format!("timing_nCK.{}", key.name);
                let row =
                    Timing::PARAMETERS.iter().find(|p| p.name == key.name || p.aliases.contains(&key.name.as_str()));
                let Some(Parameter { name, .. }) = row else {
                    let known: Vec<&str> = Timing::PARAMETERS.iter().map(|p| p.name).collect();
                    if let Some(meant) = nearest(&key.name, known.iter().copied()) {
                        given.push(meant); // reported as misspelt, so not as missing too
                    }
                    let error = self.unknown(key.bytes.clone(), path, "timing parameter", &known);
                    self.errors.push(error);
                    continue;
                };
                if given.contains(name) {
                    let error = InputError::at(
                        self.text,
                        key.bytes.clone(),
                        format!("`{name}` is given twice, by two spellings"),
                    );
                    self.errors.push(error.path(path));
                    continue;
                }
                let low = u32::from(matches!(*name, "rate" | "tCK_ps" | "nBL" | "nREFI" | "nREFIpb"));
                if let Some(value) = self.integer(node, &path, low..=Config::MAX_TIMING) {
                    timing.set(name, value);
                }
                given.push(name);
            }
        }
        let missing: Vec<&str> = Timing::PARAMETERS
            .iter()
            .filter(|p| match p.need {
                Need::Required => true,
                Need::OfBankRefresh => standard.refreshes_banks(),
                Need::Optional => false,
            })
            .filter(|p| !given.contains(&p.name))
            .map(|p| p.name)
            .collect();
        if !missing.is_empty() {
            let error = self.error(table, "timing_nCK", format!("missing: {}", missing.join(", ")));
            self.errors.push(error.help("every named timing parameter is given in clocks"));
        }
        if self.errors.len() > errors_before {
            return None;
        }
        let has = |name: &str| given.contains(&name);
        if !has("nCCDLWR") {
            timing.ccd_l_wr = timing.ccd_l;
        }
        if !has("nRPab") {
            timing.rp_ab = timing.rp;
        }
        if !has("nPBR2PBR") {
            timing.pbr2pbr = timing.rrefd;
        }
        if !has("nCCDR") {
            timing.ccd_r = timing.ccd_s;
        }
        if !has("nRTW") {
            timing.rtw = (timing.cl + timing.bl + 2).saturating_sub(timing.cwl);
        }
        if !has("nRFMab") {
            timing.rfm_ab = timing.rfc;
        }
        if !has("nRFMpb") {
            timing.rfm_pb = timing.rfc_pb;
        }
        if !has("nREFIpb") {
            let banks = org.map_or(1, |org| match standard {
                Standard::Hbm2 => org.banks_per_pc() * org.pseudochannel,
                _ => org.banks_per_pc(),
            });
            timing.refi_pb = timing.refi.div_ceil(banks);
        }
        let apart = (timing.cl + timing.bl).saturating_sub(timing.cwl);
        if timing.rtw < apart {
            let node = table.get("nRTW").unwrap_or(table);
            let message = format!("the data of a WR {} clocks after a RD meets the RD's on the bus", timing.rtw);
            let warning = self.error(node, "timing_nCK.nRTW", message);
            self.warnings.push(warning.help(format!("nCL + nBL - nCWL = {apart} clocks keep them apart")));
        }
        self.unused(standard, table, &timing, &given);
        Some(timing)
    }

    /// Parameters of rules that the standard does not have.
    fn unused(&mut self, standard: Standard, table: &'a Node, timing: &Timing, given: &[&'static str]) {
        let name = standard.name();
        let rules = [
            ("nPPD", timing.ppd != 0 && !standard.precharges_apart(), "between precharges"),
            ("nCCDLWR", standard != Standard::Ddr5, "for writes of a bank group alone"),
            ("nRPab", standard != Standard::Lpddr5, "for precharges of all banks alone"),
            ("nPBR2PBR", standard != Standard::Lpddr5, "between refreshes of banks alone"),
        ];
        for (parameter, unused, what) in rules {
            if unused && given.contains(&parameter) {
                let node = table.get(parameter).unwrap_or(table);
                let path = format!("timing_nCK.{parameter}");
                let warning = self.error(node, &path, format!("{name} has no rule {what}"));
                self.warnings.push(warning.help("it is not used"));
            }
        }
    }

    fn command_ticks(&mut self, standard: Standard, tick_multiplier: u32) -> Option<[u32; Command::COUNT]> {
        let mut ticks = standard.command_ticks(tick_multiplier);
        let commands = self.commands(standard)?;
        let Some(node) = self.document.get("command_cycles_ticks") else { return Some(ticks) };
        let path = "command_cycles_ticks";
        let Value::List(items) = &node.value else {
            self.fail(node, path, format!("this should be a list, not {}", node.value.kind()));
            return None;
        };
        if items.len() != commands.len() {
            self.fail(node, path, format!("{} numbers for {} commands", items.len(), commands.len()));
            return None;
        }
        for (i, (item, command)) in items.iter().zip(&commands).enumerate() {
            ticks[*command as usize] = self.integer(item, &format!("{path}[{i}]"), 1..=64)?;
        }
        Some(ticks)
    }

    /// The commands of the file in their order, by which its lists count.
    fn commands(&mut self, standard: Standard) -> Option<Vec<Command>> {
        let Some(node) = self.document.get("commands") else { return Some(standard.commands().to_vec()) };
        let Value::List(items) = &node.value else {
            self.fail(node, "commands", format!("this should be a list, not {}", node.value.kind()));
            return None;
        };
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            let path = format!("commands[{i}]");
            let command = match &item.value {
                Value::Text(name) => Command::from_name(name),
                _ => None,
            };
            match command {
                Some(command) if out.contains(&command) => {
                    self.fail(item, &path, format!("{} is here twice", command.name()))
                }
                Some(command) => out.push(command),
                None => {
                    let names: Vec<&str> = Command::ALL.iter().map(|c| c.name()).collect();
                    let error =
                        self.error(item, &path, "this is no command").help(format!("known are {}", names.join(", ")));
                    self.errors.push(error);
                }
            }
        }
        (out.len() == items.len()).then_some(out)
    }

    fn energy(&mut self) -> Option<BTreeMap<String, f64>> {
        let mut out = BTreeMap::new();
        let Some(node) = self.document.get("energy") else { return Some(out) };
        let Value::Table(entries) = &node.value else {
            self.fail(node, "energy", format!("this should be a table, not {}", node.value.kind()));
            return None;
        };
        for (key, node) in entries {
            match node.value {
                Value::Int(i) => out.insert(key.name.clone(), i as f64),
                Value::Float(f) => out.insert(key.name.clone(), f),
                _ => {
                    self.fail(
                        node,
                        &format!("energy.{}", key.name),
                        format!("this should be a number, not {}", node.value.kind()),
                    );
                    return None;
                }
            };
        }
        Some(out)
    }

    /// Reads `constraints`, if given, and compares it with the derived list or puts it in its place.
    fn explicit_constraints(&mut self, config: &mut Config) -> Option<()> {
        let wins = match self.document.get("constraints_override") {
            None => false,
            Some(Node { value: Value::Bool(b), .. }) => *b,
            Some(node) => {
                self.fail(node, "constraints_override", "this should be true or false");
                return None;
            }
        };
        let Some(node) = self.document.get("constraints") else { return Some(()) };
        let Value::List(items) = &node.value else {
            self.fail(node, "constraints", format!("this should be a list, not {}", node.value.kind()));
            return None;
        };
        let commands = self.commands(config.standard)?;
        let levels = self.levels(config)?;
        let errors_before = self.errors.len();
        let mut given: Vec<(&Node, Constraint)> = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match constraint(item, &commands, &levels) {
                // A rule between SIDs forbids nothing where there is one.
                Ok(c) if c.level == Level::Sid && config.org.sid < 2 => {
                    if !c.sibling {
                        given.push((item, Constraint { level: Level::PseudoChannel, ..c }));
                    }
                }
                Ok(c) => given.push((item, c)),
                Err((at, message)) => self.fail(at, &format!("constraints[{i}]"), message),
            }
        }
        if self.errors.len() > errors_before {
            return None;
        }
        let same = |a: &Constraint, b: &Constraint| {
            Constraint { rule: "", ..a.clone() } == Constraint { rule: "", ..b.clone() }
        };
        if wins {
            config.constraints = given.into_iter().map(|(_, c)| c).collect();
            return Some(());
        }
        let mut rest = config.constraints.clone();
        let mut extra = Vec::new();
        for (item, c) in given {
            match rest.iter().position(|r| same(r, &c)) {
                Some(at) => drop(rest.remove(at)),
                None => extra.push(item),
            }
        }
        if !extra.is_empty() || !rest.is_empty() {
            let at = extra.first().copied().unwrap_or(node);
            let first = rest.first().map_or(String::new(), |r| format!(", among these {} of {} ticks", r.rule, r.gap));
            let warning = self.error(
                at,
                "constraints",
                format!(
                    "{} of these constraints do not follow from `timing_nCK`, and {} that do are not here{first}",
                    extra.len(),
                    rest.len()
                ),
            );
            self.warnings
                .push(warning.help("`timing_nCK` is used; `constraints_override = true` uses the list instead"));
        }
        Some(())
    }

    /// The levels of the file in their order, by which constraints count; none for rows and columns.
    fn levels(&mut self, config: &Config) -> Option<Vec<Option<Level>>> {
        const ALL: [Level; 5] = [Level::Channel, Level::PseudoChannel, Level::Sid, Level::BankGroup, Level::Bank];
        let Some(node) = self.document.get("levels") else {
            return Some(ALL.into_iter().filter(|l| *l != Level::Sid || config.org.sid > 1).map(Some).collect());
        };
        let Value::List(items) = &node.value else {
            self.fail(node, "levels", format!("this should be a list, not {}", node.value.kind()));
            return None;
        };
        let mut out = Vec::new();
        for (i, item) in items.iter().enumerate() {
            match &item.value {
                Value::Text(name) if name == "Row" || name == "Column" => out.push(None),
                Value::Text(name) if ALL.iter().any(|l| l.name() == name) => {
                    out.push(ALL.into_iter().find(|l| l.name() == name));
                }
                _ => {
                    let error = self.error(item, &format!("levels[{i}]"), "this is no level");
                    self.errors.push(error.help("known are Channel, PseudoChannel, Sid, BankGroup, Bank, Row, Column"));
                    return None;
                }
            }
        }
        Some(out)
    }
}

/// One entry of `constraints`: `[level, preceding, following, ticks, window, sibling]`, the last two optional.
fn constraint<'n>(
    item: &'n Node,
    commands: &[Command],
    levels: &[Option<Level>],
) -> Result<Constraint, (&'n Node, String)> {
    let form = "a constraint is [level, preceding, following, ticks, window, sibling]";
    let Value::List(parts) = &item.value else { return Err((item, form.to_owned())) };
    if !(4..=6).contains(&parts.len()) {
        return Err((item, format!("{form}, not {} values", parts.len())));
    }
    let Value::Int(level) = parts[0].value else {
        return Err((&parts[0], "the level should be an integer".to_owned()));
    };
    let level = usize::try_from(level).ok().and_then(|l| levels.get(l).copied()).flatten();
    let Some(level) = level else { return Err((&parts[0], "constraints hold at no such level".to_owned())) };
    let set = |node: &'n Node| {
        let Value::List(items) = &node.value else {
            return Err((node, "this should be a list of command ids".to_owned()));
        };
        let mut set = CommandSet::default();
        for id in items {
            let command = match id.value {
                Value::Int(i) => usize::try_from(i).ok().and_then(|i| commands.get(i)),
                _ => None,
            };
            match command {
                Some(command) => set.insert(*command),
                None => return Err((id, format!("this should be a command id below {}", commands.len()))),
            }
        }
        Ok(set)
    };
    let limit = i64::from(Config::MAX_TIMING) * 64;
    let gap = match parts[3].value {
        Value::Int(gap) if (-limit..=limit).contains(&gap) => gap,
        _ => return Err((&parts[3], format!("the ticks should be an integer of at most {limit}"))),
    };
    let window = match parts.get(4).map(|n| &n.value) {
        None => 1,
        Some(Value::Int(w @ 1..=64)) => *w as u32,
        Some(_) => return Err((&parts[4], "the window should be an integer in 1..=64".to_owned())),
    };
    let sibling = match parts.get(5).map(|n| &n.value) {
        None => false,
        Some(Value::Bool(b)) => *b,
        Some(_) => return Err((&parts[5], "sibling should be true or false".to_owned())),
    };
    if sibling && level == Level::Channel {
        return Err((&parts[0], "channels have no siblings: they share nothing".to_owned()));
    }
    Ok(Constraint {
        level,
        preceding: set(&parts[1])?,
        following: set(&parts[2])?,
        gap,
        window,
        sibling,
        rule: "constraints",
    })
}

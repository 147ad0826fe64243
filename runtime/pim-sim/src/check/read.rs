//! Reads the JSON of a command trace, `[[tick, "CMD", bankgroup, bank, row, column], ...]`, keeping where each command
//! stands. A seventh element is the pseudo-channel and an eighth the channel.

use crate::dram::{Address, Command, Config, Issued};
use crate::located::{self, InputError, Node, Value, nearest};
use std::ops::Range;

/// Errors of one text that are reported.
const MOST_ERRORS: usize = 50;

/// A command trace as it was written, by channel.
#[derive(Clone, Debug, Default)]
pub struct CommandTrace {
    /// The commands of each channel, in the order of the text.
    pub channels: Vec<Vec<Issued>>,
    /// The bytes of the text that spell them, likewise.
    pub bytes: Vec<Vec<Range<usize>>>,
}

impl CommandTrace {
    /// Commands of all channels.
    pub fn len(&self) -> usize {
        self.channels.iter().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Reads a trace for a device. That a bank or row exists is the checker's to say.
    pub fn parse(config: &Config, text: &str) -> Result<CommandTrace, Vec<InputError>> {
        let document = located::parse_json(text).map_err(|e| vec![e])?;
        let Value::List(list) = &document.value else {
            let message = format!("a command trace is a list of commands, not {}", document.value.kind());
            return Err(vec![InputError::at(text, document.bytes, message).help(FORM)]);
        };
        let channels = config.org.channel as usize;
        let mut out = CommandTrace { channels: vec![Vec::new(); channels], bytes: vec![Vec::new(); channels] };
        let mut errors = Vec::new();
        for (n, node) in list.iter().enumerate() {
            match command(config, text, node) {
                Ok((channel, issued)) => {
                    out.channels[channel].push(issued);
                    out.bytes[channel].push(node.bytes.clone());
                }
                Err(e) if errors.len() < MOST_ERRORS => errors.push(e.path(format!("[{n}]"))),
                Err(_) => break,
            }
        }
        if errors.is_empty() { Ok(out) } else { Err(errors) }
    }
}

/// The form that a help shows.
const FORM: &str = "a command is `[tick, \"CMD\", bankgroup, bank, row, column]`, with pseudo-channel and channel \
                    after it if they are not 0";

fn command(config: &Config, text: &str, node: &Node) -> Result<(usize, Issued), InputError> {
    let at = |node: &Node, message: String| InputError::at(text, node.bytes.clone(), message);
    let Value::List(parts) = &node.value else {
        return Err(at(node, format!("a command is a list, not {}", node.value.kind())).help(FORM));
    };
    if !(6..=8).contains(&parts.len()) {
        return Err(at(node, format!("a command has 6 to 8 elements, this one {}", parts.len())).help(FORM));
    }
    let number = |n: usize, what: &str, below: u64| match parts.get(n).map(|p| (p, &p.value)) {
        None => Ok(0),
        Some((_, &Value::Int(v))) if u64::try_from(v).is_ok_and(|v| v < below) => Ok(v as u64),
        Some((part, Value::Int(v))) => Err(at(part, format!("{what} {v} is outside 0..={}", below - 1))),
        Some((part, value)) => Err(at(part, format!("the {what} is an integer, not {}", value.kind()))),
    };
    let tick = number(0, "tick", 1 << 62)?;
    let Value::Text(name) = &parts[1].value else {
        return Err(at(&parts[1], format!("the command's name is a string, not {}", parts[1].value.kind())));
    };
    let Some(command) = Command::from_name(name) else {
        let names = Command::ALL.map(Command::name);
        let e = at(&parts[1], format!("there is no command `{name}`"));
        return Err(match nearest(name, names.into_iter()) {
            Some(near) => e.help(format!("did you mean `{near}`?")),
            None => e.help(format!("the commands are {}", names.join(", "))),
        });
    };
    let address = Address {
        bankgroup: number(2, "bank group", 1 << 16)? as u16,
        bank: number(3, "bank", 1 << 16)? as u16,
        row: number(4, "row", 1 << 32)? as u32,
        column: number(5, "column", 1 << 32)? as u32,
        pc: number(6, "pseudo-channel", 1 << 16)? as u16,
    };
    let channel = number(7, "channel", u64::from(config.org.channel))?;
    Ok((channel as usize, Issued { tick, command, address }))
}

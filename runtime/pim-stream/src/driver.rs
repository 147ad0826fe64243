//! Commands of the driver: LOAD, EXECUTE and READ, 44 bytes little-endian and without padding.
//!
//! | offset | field | bytes |
//! |---|---|---|
//! | 0 | type: 0 LOAD, 1 EXECUTE, 2 READ | 1 |
//! | 1 | reserved, 0 | 1 |
//! | 2 | queries | 2 |
//! | 4 | samples of each query, at most 65535: the unit counts them in 16 bits | 4 |
//! | 8, 16, 24, 32 | addresses of parameters, weights, offsets, output; 48 bits used, 0 for none | 8 each |
//! | 40 | flags: bit 0, there are offsets | 4 |

use crate::word::{WordError, number, split};
use std::collections::BTreeSet;
use std::fmt;

/// Bytes of a command on the wire.
pub const SIZE: usize = 44;
/// Bits of an address.
pub const ADDRESS_BITS: u32 = 48;

/// What a command asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CommandKind {
    /// Brings operands to the units.
    Load,
    /// Lets them work.
    Execute,
    /// Brings the results back.
    Read,
}

impl CommandKind {
    const ALL: [CommandKind; 3] = [CommandKind::Load, CommandKind::Execute, CommandKind::Read];

    /// The word of the text form.
    pub fn name(self) -> &'static str {
        match self {
            CommandKind::Load => "load",
            CommandKind::Execute => "execute",
            CommandKind::Read => "read",
        }
    }
}

/// A command. Addresses are bytes of the device's memory; 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DriverCommand {
    /// What it asks for.
    pub kind: CommandKind,
    /// Number of queries.
    pub queries: u16,
    /// Samples of each query, at most 65535.
    pub samples: u32,
    /// Parameter entries.
    pub params: u64,
    /// Attention weights.
    pub weights: u64,
    /// Offsets of samples.
    pub offsets: u64,
    /// Where results go.
    pub output: u64,
    /// Samples have offsets.
    pub has_offsets: bool,
}

impl DriverCommand {
    /// A command without operands.
    pub fn new(kind: CommandKind) -> DriverCommand {
        DriverCommand { kind, queries: 0, samples: 0, params: 0, weights: 0, offsets: 0, output: 0, has_offsets: false }
    }

    /// What is wrong with the command by itself: ranges, and operands that its kind must have or must not.
    pub fn check(&self) -> Result<(), WordError> {
        if self.samples > u32::from(u16::MAX) {
            return Err(WordError::Range { field: "samples", value: u64::from(self.samples), bits: 16 });
        }
        for (field, value) in self.addresses() {
            if value >> ADDRESS_BITS != 0 {
                return Err(WordError::Range { field, value, bits: ADDRESS_BITS });
            }
        }
        let conflict = |message: &str| Err(WordError::Conflict(message.to_owned()));
        if self.has_offsets && self.kind != CommandKind::Read && self.offsets == 0 {
            return conflict("the flag says that samples have offsets, and there is no address of them");
        }
        if !self.has_offsets && self.offsets != 0 {
            return conflict("there is an address of offsets, and the flag says that samples have none");
        }
        match self.kind {
            CommandKind::Load if self.params == 0 => conflict("a load needs the address of the parameters"),
            CommandKind::Load if self.weights == 0 => conflict("a load needs the address of the weights"),
            CommandKind::Execute if self.queries == 0 => conflict("an execute needs at least one query"),
            CommandKind::Execute if self.samples == 0 => conflict("an execute needs at least one sample a query"),
            CommandKind::Execute if self.output == 0 => conflict("an execute needs the address of the output"),
            CommandKind::Read if self.output == 0 => conflict("a read needs the address of the output"),
            _ => Ok(()),
        }
    }

    fn addresses(&self) -> [(&'static str, u64); 4] {
        [("params", self.params), ("weights", self.weights), ("offsets", self.offsets), ("output", self.output)]
    }

    /// The wire form of a command that [`Self::check`] accepts.
    pub fn encode(&self) -> Result<[u8; SIZE], WordError> {
        self.check()?;
        let mut out = [0; SIZE];
        out[0] = self.kind as u8;
        out[2..4].copy_from_slice(&self.queries.to_le_bytes());
        out[4..8].copy_from_slice(&self.samples.to_le_bytes());
        for (n, (_, address)) in self.addresses().into_iter().enumerate() {
            out[8 + 8 * n..16 + 8 * n].copy_from_slice(&address.to_le_bytes());
        }
        out[40..].copy_from_slice(&u32::from(self.has_offsets).to_le_bytes());
        Ok(out)
    }

    /// The command of 44 bytes.
    pub fn decode(bytes: &[u8]) -> Result<DriverCommand, WordError> {
        let wire: &[u8; SIZE] = bytes.try_into().map_err(|_| WordError::Length {
            what: "a driver command",
            wanted: SIZE,
            found: bytes.len(),
        })?;
        let kind = *CommandKind::ALL.get(usize::from(wire[0])).ok_or(WordError::Code {
            field: "type",
            value: u64::from(wire[0]),
            known: "0 is LOAD, 1 EXECUTE, 2 READ",
        })?;
        if wire[1] != 0 {
            return Err(WordError::Reserved { field: "the reserved byte", value: u64::from(wire[1]) });
        }
        let word = |at: usize| u32::from_le_bytes(wire[at..at + 4].try_into().expect("four bytes"));
        let address = |n: usize| u64::from_le_bytes(wire[8 + 8 * n..16 + 8 * n].try_into().expect("eight bytes"));
        let flags = word(40);
        if flags > 1 {
            return Err(WordError::Reserved { field: "flags above bit 0", value: u64::from(flags & !1) });
        }
        let command = DriverCommand {
            kind,
            queries: u16::from_le_bytes([wire[2], wire[3]]),
            samples: word(4),
            params: address(0),
            weights: address(1),
            offsets: address(2),
            output: address(3),
            has_offsets: flags == 1,
        };
        command.check()?;
        Ok(command)
    }

    /// The command of a line such as `execute queries=4 samples=32 output=0x8000`.
    pub fn parse(line: &str) -> Result<DriverCommand, WordError> {
        let mut words = split(line).into_iter();
        let wrong = |at: usize, message: String| Err(WordError::Text { message, at });
        let Some((at, word)) = words.next() else { return wrong(0, "a command begins with its kind".into()) };
        let Some(kind) = CommandKind::ALL.into_iter().find(|k| k.name() == word) else {
            return wrong(at, format!("`{word}` is none of load, execute and read"));
        };
        let mut command = DriverCommand::new(kind);
        let mut seen: Vec<&str> = Vec::new();
        for (at, word) in words {
            let Some((name, value)) = word.split_once('=') else {
                return wrong(at, format!("`{word}` is no `field=value`"));
            };
            if seen.contains(&name) {
                return wrong(at, format!("`{name}` is given twice"));
            }
            let place = at + name.len() + 1;
            let value = number(place, value)?;
            match name {
                "queries" => match u16::try_from(value) {
                    Ok(n) => command.queries = n,
                    Err(_) => return Err(WordError::Range { field: "queries", value, bits: 16 }),
                },
                "samples" => match u32::try_from(value) {
                    Ok(n) => command.samples = n,
                    Err(_) => return Err(WordError::Range { field: "samples", value, bits: 16 }),
                },
                "params" => command.params = value,
                "weights" => command.weights = value,
                "offsets" => (command.offsets, command.has_offsets) = (value, true),
                "output" => command.output = value,
                _ => return wrong(at, format!("a command has no `{name}`")),
            }
            seen.push(name);
        }
        command.check()?;
        Ok(command)
    }
}

impl fmt::Display for DriverCommand {
    /// What [`DriverCommand::parse`] reads; fields that are 0 are left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        for (name, n) in [("queries", u32::from(self.queries)), ("samples", self.samples)] {
            if n != 0 {
                write!(f, " {name}={n}")?;
            }
        }
        for (name, address) in self.addresses() {
            if address != 0 || (name == "offsets" && self.has_offsets) {
                write!(f, " {name}={address:#x}")?;
            }
        }
        Ok(())
    }
}

/// Why a sequence of commands cannot be executed: the first command that is to blame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SequenceError {
    /// Its position.
    pub command: usize,
    /// One sentence.
    pub message: String,
}

/// What the commands so far allow.
#[derive(Clone, Debug, Default)]
pub struct Sequence {
    loaded: Option<DriverCommand>,
    results: BTreeSet<u64>,
    last: u64,
}

impl Sequence {
    /// Adds a command, if it may come now; otherwise one sentence, and nothing changes.
    pub fn push(&mut self, command: &DriverCommand) -> Result<(), String> {
        command.check().map_err(|e| e.to_string())?;
        match command.kind {
            CommandKind::Load => self.loaded = Some(*command),
            CommandKind::Execute => {
                let Some(load) = self.loaded else {
                    return Err("an execute before any load: nothing to work on".into());
                };
                if command.has_offsets && !load.has_offsets {
                    return Err("the samples have offsets, and the last load brought none".into());
                }
                self.results.insert(command.output);
                self.last = command.output;
            }
            CommandKind::Read if !self.results.contains(&command.output) => {
                return Err(match self.results.is_empty() {
                    true => "a read before any execute: there is no result".into(),
                    false => {
                        format!("no execute wrote to {:#x}; the last one wrote to {:#x}", command.output, self.last)
                    }
                });
            }
            CommandKind::Read => {}
        }
        Ok(())
    }
}

/// Checks an order of commands before anything runs: operands are loaded before the units work, and results are read
/// where units have written them.
pub fn check_sequence(commands: &[DriverCommand]) -> Result<(), SequenceError> {
    let mut sequence = Sequence::default();
    commands
        .iter()
        .enumerate()
        .try_for_each(|(n, c)| sequence.push(c).map_err(|message| SequenceError { command: n, message }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn load() -> DriverCommand {
        DriverCommand { params: 0x1000, weights: 0x2000, ..DriverCommand::new(CommandKind::Load) }
    }

    fn execute() -> DriverCommand {
        DriverCommand { queries: 4, samples: 32, output: 0x8000, ..DriverCommand::new(CommandKind::Execute) }
    }

    fn read() -> DriverCommand {
        DriverCommand { output: 0x8000, ..DriverCommand::new(CommandKind::Read) }
    }

    #[test]
    fn wire_form() {
        let c = DriverCommand { offsets: 0x1234_5678_9abc, has_offsets: true, ..execute() };
        let wire = c.encode().unwrap();
        assert_eq!(wire.len(), 44);
        assert_eq!(wire[..8], [1, 0, 4, 0, 32, 0, 0, 0]);
        assert_eq!(wire[24..32], [0xbc, 0x9a, 0x78, 0x56, 0x34, 0x12, 0, 0]);
        assert_eq!(wire[40..], [1, 0, 0, 0]);
        assert_eq!(DriverCommand::decode(&wire), Ok(c));
    }

    #[test]
    fn malformed_commands_are_refused() {
        let says = |r: Result<[u8; SIZE], WordError>| r.unwrap_err().to_string();
        assert_eq!(
            says(DriverCommand { samples: 65536, ..execute() }.encode()),
            "samples is 0x10000, and has 16 bits: at most 0xffff"
        );
        assert_eq!(
            says(DriverCommand { output: 1 << 48, ..execute() }.encode()),
            "output is 0x1000000000000, and has 48 bits: at most 0xffffffffffff"
        );
        assert!(says(DriverCommand { has_offsets: true, ..load() }.encode()).contains("no address of them"));
        assert!(
            says(DriverCommand { offsets: 64, ..load() }.encode()).contains("the flag says that samples have none")
        );
        assert!(says(DriverCommand { params: 0, ..load() }.encode()).contains("address of the parameters"));
        assert!(says(DriverCommand { output: 0, ..read() }.encode()).contains("address of the output"));
        let mut wire = execute().encode().unwrap();
        wire[0] = 3;
        assert_eq!(DriverCommand::decode(&wire).unwrap_err().to_string(), "type is 3: 0 is LOAD, 1 EXECUTE, 2 READ");
        wire[0] = 1;
        wire[1] = 9;
        assert_eq!(DriverCommand::decode(&wire).unwrap_err().to_string(), "the reserved byte must be 0, and is 0x9");
        wire[1] = 0;
        wire[41] = 1;
        assert_eq!(DriverCommand::decode(&wire).unwrap_err().to_string(), "flags above bit 0 must be 0, and is 0x100");
        assert_eq!(
            DriverCommand::decode(&wire[..43]).unwrap_err().to_string(),
            "a driver command takes 44 bytes, found 43"
        );
    }

    #[test]
    fn results_are_read_after_they_are_computed() {
        assert_eq!(check_sequence(&[load(), execute(), read()]), Ok(()));
        let at = |commands: &[DriverCommand]| check_sequence(commands).unwrap_err();
        assert_eq!(at(&[load(), read(), execute()]).command, 1);
        assert!(at(&[load(), read()]).message.contains("before any execute"));
        assert!(at(&[execute()]).message.contains("before any load"));
        assert!(
            at(&[load(), execute(), DriverCommand { output: 64, ..read() }])
                .message
                .contains("no execute wrote to 0x40")
        );
        let offsets = DriverCommand { offsets: 0x4000, has_offsets: true, ..execute() };
        assert!(at(&[load(), offsets]).message.contains("brought none"));
    }

    #[test]
    fn text_that_is_no_command() {
        let at = |line: &str| match DriverCommand::parse(line).unwrap_err() {
            WordError::Text { at, .. } => at,
            other => panic!("{other}"),
        };
        assert_eq!(at(""), 0);
        assert_eq!(at("  jump"), 2);
        assert_eq!(at("read output"), 5);
        assert_eq!(at("read output=12 size=4"), 15);
        assert_eq!(at("read output=1q"), 12);
        assert_eq!(at("read output=1 output=2"), 14);
    }

    proptest! {
        #[test]
        fn forms_round_trip(kind in 0usize..3, queries: u16, samples in 0u32..65536, addresses: [u64; 4], flag: bool) {
            let [params, weights, offsets, output] = addresses.map(|a| a >> 16);
            let kind = CommandKind::ALL[kind];
            let offsets = if flag { offsets } else { 0 };
            let command = DriverCommand { kind, queries, samples, params, weights, offsets, output, has_offsets: flag };
            if let Ok(wire) = command.encode() {
                prop_assert_eq!(DriverCommand::decode(&wire), Ok(command));
                prop_assert_eq!(DriverCommand::parse(&command.to_string()), Ok(command));
            }
        }

        #[test]
        fn bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..50)) {
            if let Ok(command) = DriverCommand::decode(&bytes) {
                prop_assert_eq!(command.encode().unwrap().to_vec(), bytes);
            }
        }

        #[test]
        fn text_never_panics(text in "\\PC{0,60}|(load|execute|read)( \
            (queries|samples|params|offsets)=[0-9x]{1,20}){0,4}") {
            let _ = DriverCommand::parse(&text);
        }
    }
}

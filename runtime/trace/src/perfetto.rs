//! Perfetto's format: a protobuf message `Trace` of `TracePacket`s. The fields that are written, by their numbers in
//! Perfetto's schema (`protos/perfetto/trace`), are in [`field`]; the encoding is protobuf's wire format. Names are
//! interned: each is written once, and events have its number.

use crate::{Process, Slice, Text, Trace, Value};
use rustc_hash::FxHashMap;

/// Numbers of fields.
mod field {
    /// `Trace.packet`
    pub const PACKET: u32 = 1;
    /// `TracePacket.timestamp`, in nanoseconds.
    pub const TIMESTAMP: u32 = 8;
    /// `TracePacket.trusted_packet_sequence_id`
    pub const SEQUENCE: u32 = 10;
    /// `TracePacket.track_event`
    pub const TRACK_EVENT: u32 = 11;
    /// `TracePacket.interned_data`
    pub const INTERNED: u32 = 12;
    /// `TracePacket.sequence_flags`
    pub const FLAGS: u32 = 13;
    /// `TracePacket.track_descriptor`
    pub const DESCRIPTOR: u32 = 60;
    /// `TrackDescriptor.uuid`, `.name`, `.process`, `.parent_uuid`, `.child_ordering`, `.sibling_order_rank`
    pub const DESCRIPTOR_FIELDS: [u32; 6] = [1, 2, 3, 5, 11, 12];
    /// `ProcessDescriptor.pid`, `.process_name`
    pub const PROCESS_FIELDS: [u32; 2] = [1, 6];
    /// `TrackEvent.category_iids`, `.debug_annotations`, `.type`, `.name_iid`, `.track_uuid`
    pub const EVENT_FIELDS: [u32; 5] = [3, 4, 9, 10, 11];
    /// `DebugAnnotation.name_iid`, `.uint_value`, `.string_value`
    pub const ANNOTATION_FIELDS: [u32; 3] = [1, 3, 6];
    /// `InternedData.event_categories`, `.event_names`, `.debug_annotation_names`
    pub const INTERNED_FIELDS: [u32; 3] = [1, 2, 3];
}

/// `TrackEvent.Type`
const SLICE_BEGIN: u64 = 1;
const SLICE_END: u64 = 2;
const INSTANT: u64 = 3;
/// `TracePacket.SequenceFlags`: interned data begin anew; the packet needs them.
const CLEARED: u64 = 1;
const NEEDED: u64 = 2;
/// `TrackDescriptor.ChildTracksOrdering.EXPLICIT`
const EXPLICIT: u64 = 3;
/// The one sequence of the file.
const SEQUENCE_ID: u64 = 1;

/// A protobuf message.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push((n & 0x7f) as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn number(&mut self, field: u32, n: u64) -> &mut Message {
        self.varint(u64::from(field) << 3);
        self.varint(n);
        self
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) -> &mut Message {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
        self
    }

    fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) -> &mut Message {
        let mut inner = Message::default();
        write(&mut inner);
        self.bytes(field, &inner.0)
    }
}

/// Numbers of interned texts of one kind.
#[derive(Default)]
struct Interned<K>(FxHashMap<K, u64>);

impl<K: std::hash::Hash + Eq> Interned<K> {
    /// The number, and whether it is new.
    fn number(&mut self, of: K) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let number = *self.0.entry(of).or_insert(next);
        (number, number == next)
    }
}

/// The bytes of a file.
pub fn packets(trace: &Trace, note: Option<&str>) -> Vec<u8> {
    let mut writer = Writer {
        trace,
        out: Message::default(),
        names: Interned::default(),
        classes: Interned::default(),
        keys: Interned::default(),
    };
    writer.packet(|p| {
        p.number(field::FLAGS, CLEARED);
    });
    let mut uuid = 0;
    for (number, process) in (1..).zip(trace.processes()) {
        uuid += 1;
        let parent = uuid;
        writer.process(parent, number, &process.name);
        for (rank, track) in (0..).zip(&process.tracks) {
            uuid += 1;
            writer.track(uuid, parent, rank, &track.name);
            writer.slices(process, uuid, &track.slices);
        }
    }
    if let Some(note) = note {
        writer.note(uuid + 1, note);
    }
    writer.out.0
}

struct Writer<'t> {
    trace: &'t Trace,
    out: Message,
    names: Interned<Text>,
    classes: Interned<Text>,
    keys: Interned<&'static str>,
}

impl<'t> Writer<'t> {
    fn packet(&mut self, write: impl FnOnce(&mut Message)) {
        self.out.message(field::PACKET, |p| {
            p.number(field::SEQUENCE, SEQUENCE_ID);
            write(p);
        });
    }

    fn process(&mut self, uuid: u64, number: u64, name: &str) {
        let [own, title, process, _, ordering, _] = field::DESCRIPTOR_FIELDS;
        self.packet(|p| {
            p.message(field::DESCRIPTOR, |d| {
                d.number(own, uuid).bytes(title, name.as_bytes()).number(ordering, EXPLICIT);
                d.message(process, |d| {
                    let [pid, title] = field::PROCESS_FIELDS;
                    d.number(pid, number).bytes(title, name.as_bytes());
                });
            });
        });
    }

    fn track(&mut self, uuid: u64, parent: u64, rank: u64, name: &str) {
        let [own, title, _, above, _, order] = field::DESCRIPTOR_FIELDS;
        self.packet(|p| {
            p.message(field::DESCRIPTOR, |d| {
                d.number(own, uuid).bytes(title, name.as_bytes()).number(above, parent).number(order, rank);
            });
        });
    }

    /// A mark at the beginning that says what the file leaves out.
    fn note(&mut self, uuid: u64, note: &str) {
        let [own, title, ..] = field::DESCRIPTOR_FIELDS;
        self.packet(|p| {
            p.message(field::DESCRIPTOR, |d| {
                d.number(own, uuid).bytes(title, note.as_bytes());
            });
        });
        let [_, _, kind, _, track] = field::EVENT_FIELDS;
        self.packet(|p| {
            p.number(field::TIMESTAMP, 0).message(field::TRACK_EVENT, |e| {
                e.number(kind, INSTANT).number(track, uuid);
            });
        });
    }

    fn slices(&mut self, process: &Process, track: u64, slices: &[Slice]) {
        // Ends of the slices that are open, the innermost last.
        let mut open: Vec<u64> = Vec::new();
        for slice in slices {
            while open.len() > usize::from(slice.depth) {
                let end = open.pop().unwrap_or(0);
                self.end(track, end);
            }
            let begin = process.ns(slice.begin);
            let around = open.last().copied().unwrap_or(u64::MAX);
            open.push(process.ns(slice.end.max(slice.begin)).min(around));
            self.begin(process, track, begin, slice);
        }
        while let Some(end) = open.pop() {
            self.end(track, end);
        }
    }

    fn begin(&mut self, process: &Process, track: u64, ns: u64, slice: &Slice) {
        let trace = self.trace;
        let arguments: Vec<(&'static str, Value)> = trace.all_arguments(process, slice).collect();
        let (name, new_name) = self.names.number(slice.name);
        let (class, new_class) = self.classes.number(slice.class);
        let keys: Vec<(u64, bool)> = arguments.iter().map(|(key, _)| self.keys.number(key)).collect();
        let [class_field, annotations, kind, name_field, track_field] = field::EVENT_FIELDS;
        let mut interned = Message::default();
        let [categories, names, annotation_names] = field::INTERNED_FIELDS;
        let mut intern = |of: u32, number: u64, text: &str| {
            interned.message(of, |m| {
                m.number(1, number).bytes(2, text.as_bytes());
            });
        };
        if new_class {
            intern(categories, class, trace.name(slice.class));
        }
        if new_name {
            intern(names, name, trace.name(slice.name));
        }
        for ((key, _), (number, _)) in arguments.iter().zip(&keys).filter(|(_, (_, new))| *new) {
            intern(annotation_names, *number, key);
        }
        self.packet(|p| {
            p.number(field::FLAGS, NEEDED).number(field::TIMESTAMP, ns);
            if !interned.0.is_empty() {
                p.bytes(field::INTERNED, &interned.0);
            }
            p.message(field::TRACK_EVENT, |e| {
                e.number(kind, SLICE_BEGIN)
                    .number(track_field, track)
                    .number(name_field, name)
                    .number(class_field, class);
                for ((_, value), (key, _)) in arguments.iter().zip(&keys) {
                    let [key_field, number, text] = field::ANNOTATION_FIELDS;
                    e.message(annotations, |a| {
                        a.number(key_field, *key);
                        match value {
                            Value::Number(n) => a.number(number, *n),
                            Value::Text(t) => a.bytes(text, t.as_deref().unwrap_or("none").as_bytes()),
                        };
                    });
                }
            });
        });
    }

    fn end(&mut self, track: u64, ns: u64) {
        let [_, _, kind, _, track_field] = field::EVENT_FIELDS;
        self.packet(|p| {
            p.number(field::TIMESTAMP, ns).message(field::TRACK_EVENT, |e| {
                e.number(kind, SLICE_END).number(track_field, track);
            });
        });
    }
}

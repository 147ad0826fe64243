//! Objects without what only debuggers read: most of a Rust library.

/// Offsets of fields in the header of a 64-bit ELF file, and in a section's header.
mod field {
    pub const TYPE: usize = 0x10;
    pub const SECTIONS_AT: usize = 0x28;
    pub const SECTION_SIZE: usize = 0x3a;
    pub const SECTIONS: usize = 0x3c;
    pub const NAMES: usize = 0x3e;
    pub const HEADER: usize = 0x40;
    pub const KIND: usize = 0x04;
    pub const FLAGS: usize = 0x08;
    pub const OFFSET: usize = 0x18;
    pub const SIZE: usize = 0x20;
    pub const INFO: usize = 0x2c;
    pub const ALIGNMENT: usize = 0x30;
}

/// Kinds of sections, and the flag of those that are loaded.
const PROGBITS: u64 = 1;
const RELA: u64 = 4;
const NOBITS: u64 = 8;
const ALLOC: u64 = 2;

/// A relocatable object of 64-bit ELF, little-endian, whose sections that are not loaded, and their relocations, are
/// empty; `None` if it is something else. Sections keep their numbers, so nothing that refers to one changes.
pub fn stripped(data: &[u8]) -> Option<Vec<u8>> {
    let relocatable = data.starts_with(b"\x7fELF\x02\x01") && number(data, field::TYPE, 2)? == 1;
    if !relocatable || number(data, field::SECTION_SIZE, 2)? != field::HEADER as u64 {
        return None;
    }
    let (table, count) = (number(data, field::SECTIONS_AT, 8)? as usize, number(data, field::SECTIONS, 2)? as usize);
    let headers = data.get(table..table.checked_add(count.checked_mul(field::HEADER)?)?)?;
    let mut headers: Vec<Vec<u8>> = headers.chunks(field::HEADER).map(<[u8]>::to_vec).collect();
    let names = headers.get(number(data, field::NAMES, 2)? as usize)?;
    let names = data.get(number(names, field::OFFSET, 8)? as usize..)?;
    let mut dropped = Vec::new();
    for header in &headers {
        let name = names.get(number(header, 0, 4)? as usize..)?;
        let idle = number(header, field::KIND, 4)? == PROGBITS && number(header, field::FLAGS, 8)? & ALLOC == 0;
        dropped.push(idle && !name.starts_with(b".note"));
    }
    let mut out = data.get(..field::HEADER)?.to_vec();
    for n in 0..count {
        let header = &headers[n];
        let (kind, at) = (number(header, field::KIND, 4)?, number(header, field::OFFSET, 8)? as usize);
        let of_dropped = kind == RELA && dropped.get(number(header, field::INFO, 4)? as usize).copied()?;
        let mut size = number(header, field::SIZE, 8)?;
        if dropped[n] || of_dropped {
            size = 0;
        }
        let alignment = number(header, field::ALIGNMENT, 8)?.clamp(1, 4096) as usize;
        out.resize(out.len().next_multiple_of(alignment), 0);
        let place = out.len() as u64;
        if kind != NOBITS {
            out.extend(data.get(at..at.checked_add(size as usize)?)?);
        }
        put(&mut headers[n], field::OFFSET, place)?;
        put(&mut headers[n], field::SIZE, size)?;
    }
    out.resize(out.len().next_multiple_of(8), 0);
    let table = out.len() as u64;
    headers.iter().for_each(|h| out.extend(h));
    put(&mut out, field::SECTIONS_AT, table)?;
    Some(out)
}

/// The number of so many bytes at an offset.
fn number(data: &[u8], at: usize, bytes: usize) -> Option<u64> {
    let mut whole = [0; 8];
    whole[..bytes].copy_from_slice(data.get(at..at.checked_add(bytes)?)?);
    Some(u64::from_le_bytes(whole))
}

/// Writes 64 bits at an offset.
fn put(data: &mut [u8], at: usize, value: u64) -> Option<()> {
    data.get_mut(at..at + 8)?.copy_from_slice(&value.to_le_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use super::stripped;
    use object::{Object as _, ObjectSection as _, ObjectSymbol as _};

    /// An object with a function, a call of another one, and notes for debuggers.
    fn object() -> Vec<u8> {
        use object::write::{Object, Relocation, Symbol, SymbolSection};
        use object::{Architecture, BinaryFormat, Endianness, RelocationFlags, SectionKind, SymbolFlags, SymbolKind};
        let mut made = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
        let text = made.add_section(Vec::new(), b".text".to_vec(), SectionKind::Text);
        let notes = made.add_section(Vec::new(), b".debug_info".to_vec(), SectionKind::Debug);
        made.append_section_data(text, &[0xc3; 40], 16);
        made.append_section_data(notes, &[7; 5000], 1);
        let mut symbol = |name: &str, section| {
            made.add_symbol(Symbol {
                name: name.into(),
                value: 0,
                size: 0,
                kind: SymbolKind::Text,
                scope: object::SymbolScope::Linkage,
                weak: false,
                section,
                flags: SymbolFlags::None,
            })
        };
        let function = symbol("f", SymbolSection::Section(text));
        let other = symbol("g", SymbolSection::Undefined);
        let absolute = RelocationFlags::Elf { r_type: object::elf::R_X86_64_64 };
        for (section, symbol) in [(text, other), (notes, function)] {
            let relocation = Relocation { offset: 8, symbol, addend: 0, flags: absolute };
            made.add_relocation(section, relocation).expect("it fits");
        }
        made.write().expect("it is whole")
    }

    #[test]
    fn what_is_loaded_stays() {
        let whole = object();
        let small = stripped(&whole).expect("it is ELF");
        assert!(small.len() + 5000 <= whole.len(), "{} of {}", small.len(), whole.len());
        let [before, after] = [&whole, &small].map(|data| object::File::parse(&data[..]).expect("it is whole"));
        let text = |file: &object::File<'_>| {
            let section = file.section_by_name(".text").expect("it has one");
            let calls: Vec<_> = section.relocations().map(|(at, r)| (at, r.target(), r.addend())).collect();
            (section.index(), section.data().expect("it is there").to_vec(), calls)
        };
        assert_eq!(text(&before), text(&after));
        let notes = after.section_by_name(".debug_info").expect("its number stays");
        assert!(notes.size() == 0 && notes.relocations().count() == 0);
        let names = |file: &object::File<'_>| file.symbols().map(|s| s.name().map(str::to_owned)).collect::<Vec<_>>();
        assert_eq!(names(&before), names(&after));
    }

    #[test]
    fn other_files_are_not_taken() {
        let whole = object();
        for end in (0..whole.len()).step_by(7) {
            // What is cut off is an error or the tail; nothing panics.
            let _ = stripped(&whole[..end]);
        }
        assert_eq!(stripped(b"!<arch>\n"), None);
        assert_eq!(stripped(&[]), None);
    }
}

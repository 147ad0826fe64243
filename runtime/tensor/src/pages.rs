//! Memory for elements: whole cache lines, large arrays in large pages.

use crate::memory;
use bytemuck::{Pod, Zeroable};
use std::io::{self, Read};

/// A cache's line. Arrays begin at one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
#[repr(C, align(64))]
pub(crate) struct Line(pub(crate) [u8; 64]);

/// From so many bytes on an allocation is asked to lie in large pages (the limit is numpy's): one that is walked across
/// its rows would otherwise miss an entry of the address cache at nearly every step.
#[cfg(target_os = "linux")]
const LARGE: usize = 4 << 20;

/// Zeros; `None` if there is not so much memory.
pub(crate) fn zeroed(lines: usize) -> Option<Vec<Line>> {
    memory::holds(lines.checked_mul(size_of::<Line>())?).then_some(())?;
    #[cfg(target_os = "linux")]
    if lines >= LARGE / size_of::<Line>() {
        let mut data = in_large_pages(lines)?;
        data.resize(lines, Line::zeroed());
        return Some(data);
    }
    bytemuck::try_zeroed_vec(lines).ok()
}

/// Bytes from a source until there are `bytes` of them or it ends, and how many came; `None` if there is not so much
/// memory. A source that ends early leaves fewer lines. Memory is touched as bytes arrive: a pipe that claims much and
/// brings little costs little.
pub(crate) fn filled_from(bytes: usize, source: &mut impl Read) -> io::Result<Option<(Vec<Line>, usize)>> {
    /// Lines that are zeroed before they are filled: they stay in the cache in between.
    const AT_ONCE: usize = (1 << 20) / size_of::<Line>();
    let lines = bytes.div_ceil(size_of::<Line>());
    let Some(mut data) = room(lines) else { return Ok(None) };
    let mut found = 0;
    while data.len() < lines {
        let begin = data.len();
        data.resize((begin + AT_ONCE).min(lines), Line::zeroed());
        let place: &mut [u8] = bytemuck::cast_slice_mut(&mut data[begin..]);
        let wanted = place.len().min(bytes - found);
        let came = read_full(source, &mut place[..wanted])?;
        found += came;
        if came < wanted {
            break;
        }
    }
    Ok(Some((data, found)))
}

/// Fills `place` as far as the source goes, and returns how far.
fn read_full(source: &mut impl Read, place: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < place.len() {
        match source.read(&mut place[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// Room for lines, of which nothing is touched.
fn room(lines: usize) -> Option<Vec<Line>> {
    memory::holds(lines.checked_mul(size_of::<Line>())?).then_some(())?;
    #[cfg(target_os = "linux")]
    if lines >= LARGE / size_of::<Line>() {
        return in_large_pages(lines);
    }
    let mut data = Vec::new();
    data.try_reserve_exact(lines).ok()?;
    Some(data)
}

/// The same lines once more.
pub(crate) fn copied(lines: &[Line]) -> Vec<Line> {
    #[cfg(target_os = "linux")]
    if size_of_val(lines) >= LARGE
        && let Some(mut data) = in_large_pages(lines.len())
    {
        data.extend_from_slice(lines);
        return data;
    }
    lines.to_vec()
}

/// Room for lines. The request has to come before the first touch, and the allocator's own zeroed memory has been
/// touched.
#[cfg(target_os = "linux")]
fn in_large_pages(lines: usize) -> Option<Vec<Line>> {
    let mut data: Vec<Line> = Vec::new();
    data.try_reserve_exact(lines).ok()?;
    // SAFETY: asking of no more than one page.
    let page = usize::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(1);
    let start = (data.as_ptr() as usize).next_multiple_of(page);
    let end = (data.as_ptr() as usize + lines * size_of::<Line>()) / page * page;
    if start < end {
        // SAFETY: whole pages of the allocation, of which nothing is used yet; the advice changes no contents. A system
        // that does not take it says so, and that is all.
        let _ = unsafe { libc::madvise(start as *mut libc::c_void, end - start, libc::MADV_HUGEPAGE) };
    }
    Some(data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_every_size() {
        for bytes in [0, 64, 4096, (4 << 20) - 64, 4 << 20, (9 << 20) + 64] {
            let lines = zeroed(bytes / 64).unwrap();
            assert_eq!(lines.len(), bytes / 64);
            assert!(lines.iter().all(|l| l.0 == [0; 64]));
            assert_eq!(copied(&lines), lines);
        }
        assert!(zeroed(usize::MAX / 128).is_none());
    }
}

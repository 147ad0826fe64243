//! Memory that can still be had. Systems promise more than they have and end the process that takes them at their word,
//! so large requests are held against what is free before anything is touched.

/// Requests below so many bytes are not looked at: asking the system takes longer than many of them.
const LARGE: usize = 256 << 20;

/// Whether so many bytes can be had. Yes, if nothing is known.
pub fn holds(bytes: usize) -> bool {
    bytes < LARGE || available().is_none_or(|free| bytes as u64 <= free)
}

/// Bytes that can be had without ending other programs, as the kernel estimates them: free memory, caches that can be
/// dropped and free swap, or less where a control group allows less. `None` if the system does not say.
#[cfg(target_os = "linux")]
pub fn available() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = field(&info, "MemAvailable:")? * 1024 + field(&info, "SwapFree:").unwrap_or(0) * 1024;
    Some(group().map_or(machine, |group| group.min(machine)))
}

/// See above.
#[cfg(not(target_os = "linux"))]
pub fn available() -> Option<u64> {
    None
}

/// What the control groups of this process leave, version 2: the least over the group and those that it is in.
#[cfg(target_os = "linux")]
fn group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let root = std::path::Path::new("/sys/fs/cgroup");
    root.join(path).ancestors().take_while(|at| at.starts_with(root)).filter_map(left).min()
}

/// What one control group leaves: its limit less what it uses, but for files in its cache that nobody uses.
#[cfg(target_os = "linux")]
fn left(group: &std::path::Path) -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(group.join(name)).ok();
    let limit: u64 = read("memory.max")?.trim().parse().ok()?;
    let used: u64 = read("memory.current")?.trim().parse().ok()?;
    let cached = read("memory.stat").and_then(|stat| field(&stat, "inactive_file")).unwrap_or(0);
    Some(limit.saturating_sub(used.saturating_sub(cached)))
}

/// The number behind a word at the beginning of a line.
#[cfg(target_os = "linux")]
fn field(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_fits_and_what_is_absurd_does_not() {
        assert!(holds(4096));
        if let Some(free) = available() {
            assert!(free > 1 << 20);
            assert!(!holds(usize::MAX));
            assert!(crate::Tensor::zeros(crate::DType::U8, &[1 << 46]).is_err());
        }
    }
}

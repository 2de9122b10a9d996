//! How much memory there is, and how much of it a table may take.

use std::fs;

/// Bytes as users write them: 500M, 4G, 1.5G, or a number of bytes.
pub(crate) fn size(s: &str) -> Result<u64, String> {
    let text = s.trim().trim_end_matches(['b', 'B']);
    let (number, unit) = match text.to_ascii_uppercase().chars().last() {
        Some('K') => (&text[..text.len() - 1], 1e3),
        Some('M') => (&text[..text.len() - 1], 1e6),
        Some('G') => (&text[..text.len() - 1], 1e9),
        Some('T') => (&text[..text.len() - 1], 1e12),
        _ => (text, 1.0),
    };
    match number.trim().parse::<f64>() {
        Ok(n) if n * unit >= 1.0 && n.is_finite() => Ok((n * unit) as u64),
        _ => Err("give a size such as 500M or 4G".to_owned()),
    }
}

/// Three quarters of the machine's memory, or of what its container may use; no limit where neither is known.
pub(crate) fn default_limit() -> u64 {
    let machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text));
    let container = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"]
        .iter()
        .filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok())
        .min();
    machine.into_iter().chain(container).min().map_or(u64::MAX / 4, |bytes| bytes / 4 * 3)
}

/// The line `MemTotal:  16316412 kB`.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kb| kb.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::{default_limit, size, total};

    #[test]
    fn sizes_are_read_as_they_are_written() {
        assert_eq!(size("500M"), Ok(500_000_000));
        assert_eq!(size("4g"), Ok(4_000_000_000));
        assert_eq!(size("1.5GB"), Ok(1_500_000_000));
        assert_eq!(size("4096"), Ok(4096));
        assert!(size("much").is_err() && size("0").is_err() && size("-1G").is_err() && size("").is_err());
        assert_eq!(total("MemTotal:  16316412 kB\nMemFree: 1 kB\n"), Some(16_708_005_888));
        assert!(default_limit() > 0);
    }
}

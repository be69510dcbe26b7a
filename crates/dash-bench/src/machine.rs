//! The machine as the header of the table names it: figures without it mean nothing.

use std::path::Path;

use crate::device::Device;

/// Processor, cores, memory, kernel, load.
pub fn lines() -> Vec<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let field = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_once(':'))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let kernel = nix::sys::utsname::uname()
        .map(|name| format!("{} {}", name.sysname().display(), name.release().display()));
    vec![
        format!(
            "{}, {cores} cores, memory {}",
            field(&read("/proc/cpuinfo"), "model name"),
            field(&read("/proc/meminfo"), "MemTotal")
        ),
        format!("{}, load {}", kernel.unwrap_or_default(), read("/proc/loadavg").trim()),
    ]
}

/// The file system of a folder, whether it has a journal, and the cache of its device.
pub fn file_system(folder: &Path) -> String {
    file_system_on(folder, Device::of(folder).as_ref())
}

/// The same, on a device that is known.
pub fn file_system_on(folder: &Path, device: Option<&Device>) -> String {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let kind = mounts
        .lines()
        .filter_map(|line| {
            let mut words = line.split(' ').skip(1);
            let (point, kind) = (words.next()?, words.next()?);
            folder.starts_with(point).then_some((point.len(), kind))
        })
        .max_by_key(|(depth, _)| *depth)
        .map_or("unknown", |(_, kind)| kind);
    let Some(device) = device else {
        return format!("{kind}, no device that counts flushes");
    };
    let journal = match (kind, device.journal()) {
        ("ext4", Some(_)) => " with a journal",
        ("ext4", None) => " without a journal",
        _ => "",
    };
    format!("{kind}{journal} on {}, cache: {}", device.name, device.cache())
}

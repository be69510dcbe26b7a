//! What an ELF file says of itself: for which machine it is, what it needs, what it exports.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use object::elf::{self, FileHeader64};
use object::read::elf::{Dyn, FileHeader, Sym};
use object::{Endianness, read::StringTable};

/// What was found in a file.
#[derive(Debug, Default)]
pub struct Elf {
    /// `e_machine`.
    pub machine: u16,
    /// The libraries that it is linked with.
    pub needed: BTreeSet<String>,
    /// The symbols that it defines for others.
    pub exports: BTreeSet<String>,
    /// Whether `dlclose` leaves it where it is.
    pub stays: bool,
    /// The newest version of glibc that it asks for; none where it asks for no glibc.
    pub glibc: Option<(u32, u32)>,
    /// Symbols that it can't do without, of no library that it was linked with.
    pub nowhere: BTreeSet<String>,
}

type Header = FileHeader64<Endianness>;

impl Elf {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// If it is no ELF file of 64 bits in little-endian order, or can't be read.
    pub fn read(path: &Path) -> Result<Self> {
        let data = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&data).with_context(|| format!("{} as an ELF file", path.display()))
    }

    fn parse(data: &[u8]) -> Result<Self> {
        let header = Header::parse(data)?;
        let endian = header.endian()?;
        ensure!(endian == Endianness::Little, "it is not little-endian");
        let sections = header.sections(endian, data)?;
        let mut found = Self { machine: header.e_machine(endian).0, ..Self::default() };
        if let Some((entries, link)) = sections.dynamic(endian, data)? {
            let strings = sections.strings(endian, data, link)?;
            found.read_dynamic(endian, entries, strings)?;
        }
        let symbols = sections.symbols(endian, data, elf::SHT_DYNSYM)?;
        let versions = sections.versions(endian, data)?;
        for (index, symbol) in symbols.enumerate() {
            let name = String::from_utf8_lossy(symbol.name(endian, symbols.strings())?);
            let version = match &versions {
                Some(versions) => {
                    versions.version(versions.version_index(endian, index).index())?
                }
                None => None,
            };
            if let Some(version) = version {
                let version = String::from_utf8_lossy(version.name());
                found.glibc = found.glibc.max(glibc_version(&version));
            }
            if symbol.is_definition(endian, symbols.strings()) {
                found.exports.insert(name.into_owned());
            } else if symbol.st_bind() == elf::STB_GLOBAL && version.is_none() {
                found.nowhere.insert(name.into_owned());
            }
        }
        Ok(found)
    }

    fn read_dynamic<D: Dyn<Endian = Endianness>>(
        &mut self,
        endian: Endianness,
        entries: &[D],
        strings: StringTable<'_>,
    ) -> Result<()> {
        for entry in entries {
            match entry.d_tag(endian) {
                elf::DT_NEEDED => {
                    let name = entry.string(endian, strings)?;
                    self.needed.insert(String::from_utf8_lossy(name).into_owned());
                }
                elf::DT_FLAGS_1 => self.stays = entry.val(endian) & elf::DF_1_NODELETE.0 != 0,
                _ => {}
            }
        }
        Ok(())
    }
}

/// The version that `GLIBC_2.17` stands for.
fn glibc_version(name: &str) -> Option<(u32, u32)> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.').map_while(|part| part.parse().ok());
    Some((numbers.next()?, numbers.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_glibc_are_numbers() {
        assert_eq!(glibc_version("GLIBC_2.2.5"), Some((2, 2)));
        assert!(glibc_version("GLIBC_2.17") > glibc_version("GLIBC_2.4"));
        assert_eq!(glibc_version("GCC_3.0"), None);
    }
}

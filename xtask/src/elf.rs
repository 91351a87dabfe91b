//! What is in a linked firmware: sections and symbols.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use object::{
    Object, ObjectSection, ObjectSegment, ObjectSymbol, RelocationTarget, SectionKind, SymbolIndex,
    SymbolKind,
};

/// Parts of symbol names that mean a panic or an allocator.
const FORBIDDEN: [&str; 11] = [
    "core::panicking",
    "panic_fmt",
    "panic_bounds_check",
    "unwrap_failed",
    "expect_failed",
    "_fail::",
    "rust_begin_unwind",
    "panic_path_reached",
    "__rust_alloc",
    "__rust_realloc",
    "alloc::",
];

/// A firmware's ELF file.
pub struct Firmware {
    bytes: Vec<u8>,
}

/// Bytes by kind of memory.
pub struct Sizes {
    /// Code.
    pub text: u64,
    rodata: u64,
    data: u64,
    bss: u64,
}

impl Sizes {
    /// What stays in a ROM: code, constants, and what variables begin with.
    pub fn rom(&self) -> u64 {
        self.text + self.rodata + self.data
    }

    /// Variables, without stack.
    pub fn ram(&self) -> u64 {
        self.data + self.bss
    }
}

impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            text,
            rodata,
            data,
            bss,
        } = self;
        write!(
            f,
            "text {text} B, rodata {rodata} B, data {data} B, bss {bss} B"
        )
    }
}

impl Firmware {
    /// What a ROM from address 0 on holds, in words of 32 bits as `$readmemh` reads them, zeros to the end.
    pub fn rom_words(&self, size: usize) -> Result<String> {
        let mut rom = vec![0; size];
        for segment in self.parse()?.segments() {
            let (bytes, at) = (segment.data()?, segment.address() as usize);
            // What begins with bytes and lies elsewhere (variables) would have to be copied from the ROM.
            if bytes.is_empty() {
                continue;
            }
            let place = rom
                .get_mut(at..)
                .and_then(|rest| rest.get_mut(..bytes.len()));
            place
                .with_context(|| format!("{} bytes at {at:#x} are not in the ROM", bytes.len()))?
                .copy_from_slice(bytes);
        }
        let words = rom.chunks_exact(4).map(|word| {
            let word = word.try_into().unwrap_or_default();
            format!("{:08x}\n", u32::from_le_bytes(word))
        });
        Ok(words.collect())
    }

    pub fn read(file: &Path) -> Result<Self> {
        let bytes = fs::read(file).with_context(|| format!("reading {}", file.display()))?;
        let firmware = Self { bytes };
        if firmware.parse()?.symbols().next().is_none() {
            bail!(
                "{} has no symbols: nothing can be said about it",
                file.display()
            );
        }
        Ok(firmware)
    }

    fn parse(&self) -> Result<object::File<'_>> {
        object::File::parse(&*self.bytes).context("not an ELF file")
    }

    pub fn sizes(&self) -> Result<Sizes> {
        let mut sizes = Sizes {
            text: 0,
            rodata: 0,
            data: 0,
            bss: 0,
        };
        for section in self.parse()?.sections() {
            // What riscv-rt calls the rest of the RAM is no variable.
            if section.name() == Ok(".stack") {
                continue;
            }
            match section.kind() {
                SectionKind::Text => sizes.text += section.size(),
                SectionKind::ReadOnlyData | SectionKind::ReadOnlyString => {
                    sizes.rodata += section.size()
                }
                SectionKind::Data => sizes.data += section.size(),
                SectionKind::UninitializedData => sizes.bss += section.size(),
                _ => {}
            }
        }
        Ok(sizes)
    }

    /// One line for each forbidden symbol, and each function that refers to it.
    pub fn forbidden(&self) -> Result<Vec<String>> {
        let file = self.parse()?;
        let mut found = BTreeSet::new();
        for symbol in file.symbols() {
            if let Some(name) = forbidden(symbol.name().unwrap_or_default()) {
                found.insert(format!("contains {name}"));
            }
        }
        let functions = Functions::of(&file);
        // The linker was told to keep relocations: each names the place and what it refers to.
        for section in file.sections() {
            for (address, relocation) in section.relocations() {
                let RelocationTarget::Symbol(index) = relocation.target() else {
                    continue;
                };
                if let Some(name) = symbol_name(&file, index).as_deref().and_then(forbidden) {
                    let user = functions.at(address).unwrap_or("?");
                    if forbidden(user).is_none() {
                        found.insert(format!("{} refers to {name}", demangled(user)));
                    }
                }
            }
        }
        Ok(found.into_iter().collect())
    }
}

fn symbol_name(file: &object::File<'_>, index: SymbolIndex) -> Option<String> {
    file.symbol_by_index(index)
        .ok()?
        .name()
        .ok()
        .map(str::to_owned)
}

fn demangled(name: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(name))
}

fn forbidden(name: &str) -> Option<String> {
    let name = demangled(name);
    FORBIDDEN
        .iter()
        .any(|part| name.contains(part))
        .then_some(name)
}

/// Functions by address.
struct Functions<'a> {
    sorted: Vec<(u64, u64, &'a str)>,
}

impl<'a> Functions<'a> {
    fn of(file: &object::File<'a>) -> Self {
        let mut sorted: Vec<(u64, u64, &str)> = file
            .symbols()
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            // The lowest bit of a Thumb function's address says only that it is Thumb.
            .map(|symbol| {
                (
                    symbol.address() & !1,
                    symbol.size(),
                    symbol.name().unwrap_or_default(),
                )
            })
            .collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    fn at(&self, address: u64) -> Option<&'a str> {
        let after = self.sorted.partition_point(|&(start, ..)| start <= address);
        let &(start, size, name) = self.sorted.get(after.checked_sub(1)?)?;
        (address - start < size).then_some(name)
    }
}

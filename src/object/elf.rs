//! An ELF file: its sections and symbols, checked once, and the data of sections as DWARF
//! readers need it, decompressed and relocated.

use std::borrow::Cow;

use object::LittleEndian as LE;
use object::elf;
use object::pod::Pod;
use object::read::ReadRef;
use object::read::elf::{FileHeader as _, SectionHeader as _, Sym as _};

use super::bytes::Bytes;
use super::chip::Target;
use super::error::{Fault, Problem};
use super::inflate::{Allowance, Compression};
use super::place::Vaddr;

type Header = elf::FileHeader64<LE>;

/// Where code sections of a relocatable file may start, in bytes.
const CODE_ALIGNMENT: u64 = 256;

/// An ELF file whose tables were checked.
#[derive(Clone, Debug)]
pub struct Elf {
    data: Bytes,
    /// `e_machine`.
    pub machine: u16,
    /// Whether the file is an object before linking, whose addresses are offsets in sections.
    pub relocatable: bool,
    /// The target, for AMDGPU files whose header names a known one.
    pub target: Option<Target>,
    /// The sections, in the order of their table.
    pub sections: Vec<Section>,
    /// The symbols that have a place in a section, of `.symtab` and `.dynsym`.
    pub symbols: Vec<Symbol>,
}

/// A section of an ELF file.
#[derive(Clone, Debug)]
pub struct Section {
    /// The name.
    pub name: Box<str>,
    /// `sh_type`.
    pub kind: u32,
    /// `sh_flags`.
    pub flags: u64,
    /// The address it is loaded at; 0 when it is not loaded. Code of a relocatable file is given
    /// addresses from 0 on.
    pub address: Vaddr,
    /// Where its data is in the file, in bytes.
    pub offset: u64,
    /// The size of its data, in bytes.
    pub size: u64,
    link: u32,
    info: u32,
}

/// A symbol of an ELF file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Symbol {
    /// The name.
    pub name: Box<str>,
    /// What it names.
    pub kind: SymbolKind,
    /// The index of its section in [`Elf::sections`].
    pub section: usize,
    /// Its address; in a relocatable file, its offset in the section.
    pub address: Vaddr,
    /// Its size in bytes; 0 where the file does not say.
    pub size: u64,
}

/// What a symbol names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SymbolKind {
    /// A function.
    Function,
    /// Data, such as a kernel descriptor.
    Object,
    /// A label.
    Label,
}

/// Whether data starts as an ELF file does.
pub fn is_elf(data: &[u8]) -> bool {
    data.starts_with(&elf::ELFMAG)
}

fn read_table<'a, T: Pod>(
    data: &'a [u8],
    offset: u64,
    count: u64,
    what: &'static str,
) -> Result<&'a [T], Fault> {
    let size = count.saturating_mul(size_of::<T>() as u64);
    let outside = || Fault::out_of_bounds(offset, what, size);
    let count = usize::try_from(count).map_err(|_| outside())?;
    data.read_slice_at(offset, count).map_err(|()| outside())
}

/// The text that starts at `at` in a string table.
fn text_at(strings: &[u8], at: u32) -> Option<Box<str>> {
    let rest = strings.get(at as usize..)?;
    let end = rest.iter().position(|&byte| byte == 0)?;
    Some(String::from_utf8_lossy(&rest[..end]).into())
}

impl Elf {
    /// Reads the tables of a 64-bit little-endian ELF file.
    ///
    /// # Errors
    /// The file is cut off, or a table or section reaches outside it.
    pub fn parse(data: Bytes) -> Result<Self, Fault> {
        let size = size_of::<Header>() as u64;
        let header = Header::parse(&*data).map_err(|_| {
            if (data.len() as u64) < size {
                Fault::new(data.len() as u64, Problem::EndsEarly("the ELF header".into()))
            } else {
                Fault::malformed(4, "this is no 64-bit little-endian ELF file")
            }
        })?;
        let machine = header.e_machine(LE).0;
        let abi_version = header.e_ident.abi_version;
        let mut elf = Elf {
            machine,
            relocatable: header.e_type(LE) == elf::ET_REL,
            target: (machine == elf::EM_AMDGPU.0)
                .then(|| Target::from_flags(header.e_flags(LE).0, abi_version))
                .flatten(),
            sections: read_sections(header, &data)?,
            symbols: Vec::new(),
            data: data.clone(),
        };
        if elf.relocatable {
            elf.place_code();
        }
        elf.symbols = elf.read_symbols()?;
        Ok(elf)
    }

    /// Gives every code section of a relocatable file addresses of its own, from 0 on, so that
    /// an address means one place.
    fn place_code(&mut self) {
        let mut next = Vaddr(0);
        for section in self.sections.iter_mut().filter(|section| section.is_code()) {
            section.address = next;
            next = Vaddr(next.plus(section.size).0.next_multiple_of(CODE_ALIGNMENT));
        }
    }

    /// Whether the file is for AMDGPU.
    pub fn is_amdgpu(&self) -> bool {
        self.machine == elf::EM_AMDGPU.0
    }

    /// The whole file.
    pub fn data(&self) -> &Bytes {
        &self.data
    }

    /// The section with a name.
    pub fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|section| &*section.name == name)
    }

    /// A section's bytes as they are in the file; none for sections without data.
    pub fn raw(&self, section: &Section) -> &[u8] {
        if section.kind == elf::SHT_NOBITS.0 {
            return &[];
        }
        let start = section.offset as usize;
        self.data.get(start..start + section.size as usize).unwrap_or_default()
    }

    fn read_symbols(&self) -> Result<Vec<Symbol>, Fault> {
        let mut symbols = Vec::new();
        for section in &self.sections {
            if [elf::SHT_SYMTAB.0, elf::SHT_DYNSYM.0].contains(&section.kind) {
                self.read_symbol_table(section, &mut symbols)?;
            }
        }
        symbols.sort_by(|a, b| {
            (a.section, a.address, a.kind, &a.name).cmp(&(b.section, b.address, b.kind, &b.name))
        });
        symbols
            .dedup_by(|a, b| a.section == b.section && a.address == b.address && a.name == b.name);
        Ok(symbols)
    }

    fn read_symbol_table(&self, table: &Section, out: &mut Vec<Symbol>) -> Result<(), Fault> {
        let count = table.size / size_of::<elf::Sym64<LE>>() as u64;
        let raw: &[elf::Sym64<LE>] =
            read_table(&self.data, table.offset, count, "the symbol table")?;
        let strings = self.sections.get(table.link as usize).map_or(&[][..], |s| self.raw(s));
        for (index, symbol) in raw.iter().enumerate() {
            let kind = match symbol.st_type() {
                elf::STT_FUNC => SymbolKind::Function,
                elf::STT_OBJECT => SymbolKind::Object,
                elf::STT_NOTYPE => SymbolKind::Label,
                _ => continue,
            };
            let section = usize::from(symbol.st_shndx(LE).0);
            if section == 0 || section >= self.sections.len() {
                continue;
            }
            let name = text_at(strings, symbol.st_name(LE)).ok_or_else(|| {
                let offset = index * size_of::<elf::Sym64<LE>>();
                let what = "a symbol's name is not in the string table";
                Fault::within(
                    table.name.to_string(),
                    offset as u64,
                    Problem::Malformed(what.into()),
                )
            })?;
            let address = self.symbol_address(symbol);
            out.push(Symbol { name, kind, section, address, size: symbol.st_size(LE) });
        }
        Ok(())
    }

    /// A section's data for a reader: decompressed, and in a relocatable file relocated.
    ///
    /// # Errors
    /// The data is damaged or takes more than is allowed; a relocation reaches outside it.
    pub fn contents(
        &self,
        section: &Section,
        allowance: &mut Allowance,
    ) -> Result<Cow<'_, [u8]>, Fault> {
        let mut data = self.decompressed(section, allowance)?;
        if self.relocatable {
            self.relocate(section, &mut data)?;
        }
        Ok(data)
    }

    fn decompressed(
        &self,
        section: &Section,
        allowance: &mut Allowance,
    ) -> Result<Cow<'_, [u8]>, Fault> {
        let raw = self.raw(section);
        let name = || Cow::from(section.name.to_string());
        let malformed =
            |what: &'static str| Fault::within(name(), 0, Problem::Malformed(what.into()));
        let (compression, size, packed) = if section.flags & elf::SHF_COMPRESSED.0 != 0 {
            let mut at = 0;
            let header = raw
                .read::<elf::CompressionHeader64<LE>>(&mut at)
                .map_err(|()| malformed("the compression header ends too early"))?;
            let compression = match header.ch_type.get(LE).0 {
                1 => Compression::Zlib,
                2 => Compression::Zstd,
                _ => return Err(malformed("the compression is neither zlib nor zstd")),
            };
            (compression, header.ch_size.get(LE), &raw[at as usize..])
        } else if let Some(rest) = raw.strip_prefix(b"ZLIB").filter(|_| section.is_old_compressed())
        {
            let (size, packed) = rest
                .split_first_chunk()
                .ok_or_else(|| malformed("the compression header ends too early"))?;
            (Compression::Zlib, u64::from_be_bytes(*size), packed)
        } else {
            return Ok(Cow::Borrowed(raw));
        };
        allowance
            .inflate(compression, packed, size)
            .map(Cow::Owned)
            .map_err(|fault| Fault { section: Some(name()), ..fault })
    }

    /// Applies the relocations of a section, as a link would that left sections where they are.
    fn relocate(&self, section: &Section, data: &mut Cow<'_, [u8]>) -> Result<(), Fault> {
        let index = self.sections.iter().position(|other| std::ptr::eq(other, section));
        let tables = self
            .sections
            .iter()
            .filter(|table| table.kind == elf::SHT_RELA.0 && Some(table.info as usize) == index);
        for table in tables {
            let count = table.size / size_of::<elf::Rela64<LE>>() as u64;
            let relocations: &[elf::Rela64<LE>] =
                read_table(&self.data, table.offset, count, "the relocation table")?;
            for relocation in relocations {
                let value = self
                    .relocated_value(table, relocation)
                    .and_then(|value| write_relocated(data.to_mut(), relocation, value));
                value.ok_or_else(|| {
                    let what =
                        Problem::Malformed("a relocation reaches outside its section".into());
                    Fault::within(section.name.to_string(), relocation.r_offset.get(LE), what)
                })?;
            }
        }
        Ok(())
    }

    fn relocated_value(&self, table: &Section, relocation: &elf::Rela64<LE>) -> Option<u64> {
        let symbols = self.sections.get(table.link as usize)?;
        let at = u64::from(relocation.r_sym(LE, false)) * size_of::<elf::Sym64<LE>>() as u64;
        let symbol: &elf::Sym64<LE> = self.raw(symbols).read_at(at).ok()?;
        let address = self.symbol_address(symbol);
        Some(address.0.wrapping_add_signed(relocation.r_addend.get(LE)))
    }

    /// The address of a symbol, whose value in a relocatable file is an offset in its section.
    fn symbol_address(&self, symbol: &elf::Sym64<LE>) -> Vaddr {
        let value = symbol.st_value(LE);
        let section = self.sections.get(usize::from(symbol.st_shndx(LE).0));
        match section.filter(|_| self.relocatable) {
            Some(section) => section.address.plus(value),
            None => Vaddr(value),
        }
    }
}

impl Section {
    pub(crate) fn is_old_compressed(&self) -> bool {
        self.name.starts_with(".zdebug_")
    }

    /// Whether the section holds code.
    pub fn is_code(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0 && self.kind != elf::SHT_NOBITS.0
    }

    /// Whether the section is loaded.
    pub fn is_loaded(&self) -> bool {
        self.flags & elf::SHF_ALLOC.0 != 0
    }
}

/// Writes a relocated value of 4 or 8 bytes; other kinds of relocation occur in code only.
fn write_relocated(data: &mut [u8], relocation: &elf::Rela64<LE>, value: u64) -> Option<()> {
    const ABS32_LO: u32 = 1;
    const ABS64: u32 = 3;
    const ABS32: u32 = 6;
    let width = match relocation.r_type(LE, false).0 {
        ABS32_LO | ABS32 => 4,
        ABS64 => 8,
        _ => return Some(()),
    };
    let start = usize::try_from(relocation.r_offset.get(LE)).ok()?;
    let place = data.get_mut(start..start.checked_add(width)?)?;
    place.copy_from_slice(&value.to_le_bytes()[..width]);
    Some(())
}

fn read_sections(header: &Header, data: &[u8]) -> Result<Vec<Section>, Fault> {
    let table = header.e_shoff(LE);
    let malformed = |error: object::Error| Fault::malformed(table, error.to_string());
    let count = header.shnum(LE, data).map_err(malformed)?;
    if table == 0 || count == 0 {
        return Ok(Vec::new());
    }
    let raw: &[elf::SectionHeader64<LE>] =
        read_table(data, table, u64::from(count), "the section header table")?;
    let names = header.shstrndx(LE, data).map_err(malformed)?;
    let strings = raw
        .get(names as usize)
        .map_or(&[][..], |section| section.data(LE, data).unwrap_or_default());
    let mut sections = Vec::with_capacity(raw.len());
    for (index, section) in raw.iter().enumerate() {
        let at = table + (index * size_of::<elf::SectionHeader64<LE>>()) as u64;
        let name = text_at(strings, section.sh_name(LE))
            .ok_or_else(|| Fault::malformed(at, "a section's name is not in the string table"))?;
        let section = Section {
            kind: section.sh_type(LE).0,
            flags: section.sh_flags(LE).0,
            address: Vaddr(section.sh_addr(LE)),
            offset: section.sh_offset(LE),
            size: section.sh_size(LE),
            link: section.sh_link(LE),
            info: section.sh_info(LE),
            name,
        };
        check_place(&section, data)?;
        sections.push(section);
    }
    Ok(sections)
}

fn check_place(section: &Section, data: &[u8]) -> Result<(), Fault> {
    let end = section.offset.checked_add(section.size);
    let inside = end.is_some_and(|end| end <= data.len() as u64);
    if inside || section.kind == elf::SHT_NOBITS.0 || section.kind == elf::SHT_NULL.0 {
        return Ok(());
    }
    let what = format!("section {}", section.name);
    Err(Fault::out_of_bounds(section.offset, what, section.size))
}

/// The size of the ELF file that `data` starts with: up to the end of its last table or section.
pub(crate) fn extent(data: &[u8]) -> Option<u64> {
    let header = Header::parse(data).ok()?;
    let tables = [
        (header.e_shoff(LE), u64::from(header.e_shnum(LE)) * u64::from(header.e_shentsize(LE))),
        (header.e_phoff(LE), u64::from(header.e_phnum(LE)) * u64::from(header.e_phentsize(LE))),
    ];
    let sections = header.section_headers(LE, data).ok()?.iter();
    let sections = sections.filter_map(|section| section.file_range(LE));
    tables
        .into_iter()
        .chain(sections)
        .try_fold(0, |end, (start, size)| Some(u64::max(end, start.checked_add(size)?)))
}

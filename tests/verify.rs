//! `siteline verify A B` finds a seeded difference and names its place.
#![cfg(feature = "llvm")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use siteline::object::{Elf, elf::SymbolKind};

fn siteline(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_siteline")).args(arguments).output().expect("siteline runs")
}

struct Built {
    folder: tempfile::TempDir,
    object: PathBuf,
    bytes: Vec<u8>,
}

fn build(options: &[&str]) -> Built {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let object = folder.path().join("k.hsaco");
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/flash_attention.mlir");
    let mut arguments = vec!["compile", example.to_str().unwrap(), "--chip", "gfx942", "-o"];
    arguments.push(object.to_str().unwrap());
    arguments.extend(options);
    let built = siteline(&arguments);
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let bytes = std::fs::read(&object).expect("the object is there");
    Built { folder, object, bytes }
}

impl Built {
    /// Compares with a copy that has the byte at an offset flipped.
    fn compare_flipped(&self, offset: usize) -> (Option<i32>, String) {
        let mut bytes = self.bytes.clone();
        bytes[offset] ^= 1;
        self.compare(&bytes)
    }

    fn compare(&self, bytes: &[u8]) -> (Option<i32>, String) {
        let other = self.folder.path().join("other.hsaco");
        std::fs::write(&other, bytes).expect("the copy can be written");
        let ran = siteline(&["verify", self.object.to_str().unwrap(), other.to_str().unwrap()]);
        (ran.status.code(), String::from_utf8(ran.stdout).expect("UTF-8"))
    }

    fn elf(&self) -> Elf {
        Elf::parse(self.bytes.clone().into()).expect("an ELF file")
    }

    fn section_offset(&self, name: &str) -> usize {
        self.elf().section(name).expect("the section is there").offset as usize
    }
}

#[test]
fn the_same_object_is_identical() {
    let built = build(&[]);
    let (status, said) = built.compare(&built.bytes);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.ends_with("identical\n") && said.contains("sha256:"), "{said}");
}

#[test]
fn a_flipped_bit_in_code_is_named_with_both_instructions() {
    let built = build(&[]);
    // The third instruction's first byte.
    let (status, said) = built.compare_flipped(built.section_offset(".text") + 12);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(".text differs at offset 0xc, in flash_attention+0xc"), "{said}");
    let instruction = |side: &str| {
        let line = said.lines().find(|line| line.trim_start().starts_with(side));
        line.and_then(|line| line.split_once(": "))
            .map(|(_, text)| text.to_owned())
            .expect("a line")
    };
    let (first, second) = (instruction("first"), instruction("second"));
    assert!(first.starts_with("s_") || first.starts_with("v_"), "{said}");
    assert_ne!(first, second, "{said}");
}

#[test]
fn a_flipped_bit_in_the_kernel_descriptor_is_named() {
    let built = build(&[]);
    let elf = built.elf();
    let descriptor = elf
        .symbols
        .iter()
        .find(|symbol| symbol.kind == SymbolKind::Object && symbol.name.ends_with(".kd"))
        .expect("the kernel has a descriptor");
    let section = &elf.sections[descriptor.section];
    let offset = section.offset + (descriptor.address.0 - section.address.0) + 48;
    let (status, said) = built.compare_flipped(offset as usize);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(".rodata differs at offset 0x30, in flash_attention.kd+0x30"), "{said}");
}

#[test]
fn a_flipped_bit_in_a_note_is_named() {
    let built = build(&[]);
    let (status, said) = built.compare_flipped(built.section_offset(".note") + 40);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(".note differs at offset 0x28"), "{said}");
}

#[test]
fn debug_sections_do_not_count_where_one_object_has_them() {
    let built = build(&["-g"]);
    let (status, said) = built.compare_flipped(built.section_offset(".debug_line") + 40);
    assert_eq!(status, Some(0), "{said}");
    assert!(said.contains("what is loaded"), "{said}");
    let (status, said) = built.compare_flipped(built.section_offset(".text") + 4);
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains(".text differs at offset 0x4, in flash_attention+0x4"), "{said}");
}

#[test]
fn bundles_are_compared_entry_by_entry() {
    let fixture = |name: &str| {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
        root.join("test/fixtures/object").join(name).display().to_string()
    };
    let compare = |a: &str, b: &str| {
        let ran = siteline(&["verify", &fixture(a), &fixture(b)]);
        (ran.status.code(), String::from_utf8(ran.stdout).expect("UTF-8"))
    };
    let (status, said) = compare("zstd.hipfb", "zstd2.hipfb");
    assert_eq!(status, Some(0), "{said}");
    for chip in ["gfx942", "gfx1100"] {
        let entry = format!("zstd2.hipfb, entry hipv4-amdgcn-amd-amdhsa--{chip} ");
        assert!(said.contains(&entry), "{said}");
    }
    assert!(said.ends_with("identical\n"), "{said}");
    let (status, said) = compare("nested.gfx942.hsaco", "zstd.hipfb");
    assert_eq!(status, Some(1), "{said}");
    assert!(said.contains("holds 2"), "{said}");
}

#[test]
fn what_is_no_code_object_is_an_error() {
    let built = build(&[]);
    let text = built.folder.path().join("text");
    std::fs::write(&text, "no object").expect("the file can be written");
    let ran = siteline(&["verify", built.object.to_str().unwrap(), text.to_str().unwrap()]);
    assert_eq!(ran.status.code(), Some(2));
    let said = String::from_utf8(ran.stderr).expect("UTF-8");
    assert!(said.starts_with("siteline: error: ") && said.contains("text"), "{said}");
    let alone = siteline(&["verify", built.object.to_str().unwrap()]);
    assert_eq!(alone.status.code(), Some(2));
}

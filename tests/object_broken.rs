//! Damaged files: an error each, never a panic, a hang or a lot of memory.

use std::io::Read;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use siteline::chain::Chains;
use siteline::fuzzing;
use siteline::object::{CodeObject, DECOMPRESSED_CAP, Elf, ObjectError, Problem};
use siteline::refine::{Options, refine};

fn fixture(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("test/fixtures/object");
    std::fs::read(folder.join(name)).unwrap()
}

/// Reads a file, and refines it: what cannot be read is not refined either.
fn read(data: Vec<u8>) -> Result<Vec<CodeObject>, ObjectError> {
    thread_local!(static OPTIONS: Options = Options::default());
    let refined = OPTIONS.with(|options| refine("broken", data.clone(), options));
    let read = CodeObject::read_all("broken", data, &mut Chains::new());
    assert!(read.is_ok() || refined.is_err(), "refined, though: {}", read.unwrap_err());
    read
}

fn error(data: Vec<u8>) -> ObjectError {
    command_fails(&data);
    read(data).expect_err("the file is damaged")
}

/// `siteline refine` says why, writes nothing, and leaves what was there.
fn command_fails(data: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    std::fs::write(&input, data).unwrap();
    for output in [&out, &input] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_siteline"));
        let done = command.arg("refine").arg(&input).arg("-o").arg(output).output().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(2), "{said}");
        assert!(said.contains(input.to_str().unwrap()) && said.lines().count() == 1, "{said}");
        assert!(std::fs::read(&input).unwrap() == data, "the input changed");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}

/// The most memory that this process had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn an_object_cut_anywhere_is_an_error() {
    let whole = fixture("nested.gfx942.hsaco");
    read(whole.clone()).unwrap();
    for end in 0..whole.len() {
        assert!(read(whole[..end].to_vec()).is_err(), "cut at {end}");
    }
}

#[test]
fn a_bundle_cut_anywhere_is_an_error() {
    for name in ["zstd.hipfb", "zstd2.hipfb"] {
        let whole = fixture(name);
        for end in 0..whole.len() {
            assert!(read(whole[..end].to_vec()).is_err(), "{name} cut at {end}");
        }
    }
}

/// Cuts debug sections instead of the file, so that each reader meets its own end of data.
#[test]
fn a_debug_section_cut_anywhere_is_no_panic() {
    let whole = fixture("nested.gfx942.hsaco");
    let elf = Elf::parse(whole.clone().into()).unwrap();
    let mut errors = 0;
    for (index, section) in elf.sections.iter().enumerate() {
        if !section.name.starts_with(".debug_") {
            continue;
        }
        for size in 0..section.size {
            let mut data = whole.clone();
            put(&mut data, section_header(&whole, index) + 32, size);
            errors += usize::from(read(data).is_err());
        }
    }
    assert!(errors > 100, "{errors}");
}

/// Where a section's header is in the file.
fn section_header(data: &[u8], index: usize) -> usize {
    u64::from_le_bytes(data[40..48].try_into().unwrap()) as usize + index * 64
}

fn put(data: &mut [u8], at: usize, number: u64) {
    data[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

/// The place of a section's header by its name.
fn header_of(data: &[u8], name: &str) -> usize {
    let elf = Elf::parse(data.to_vec().into()).unwrap();
    let index = elf.sections.iter().position(|section| &*section.name == name).unwrap();
    section_header(data, index)
}

#[test]
fn sections_that_reach_outside_are_named() {
    for (field, number) in [(24, u64::MAX), (32, u64::MAX), (24, 1 << 40), (32, 1 << 40)] {
        let mut data = fixture("nested.gfx942.hsaco");
        let header = header_of(&data, ".debug_line");
        put(&mut data, header + field, number);
        let message = error(data).to_string();
        assert!(
            message.contains("section .debug_line") && message.contains("outside"),
            "{message}"
        );
    }
}

#[test]
fn huge_tables_are_refused() {
    // The offset of the section headers, and their number through the first one's size.
    let mut data = fixture("nested.gfx942.hsaco");
    put(&mut data, 40, u64::MAX - 10);
    error(data);
    let mut data = fixture("nested.gfx942.hsaco");
    let first = section_header(&data, 0);
    data[60..62].copy_from_slice(&[0, 0]);
    put(&mut data, first + 32, u64::MAX);
    error(data);
}

/// Puts other bytes in the place of a section.
fn with_section(name: &str, change: impl FnOnce(&mut [u8])) -> Vec<u8> {
    let mut data = fixture("nested.gfx942.hsaco");
    let elf = Elf::parse(data.clone().into()).unwrap();
    let section = elf.section(name).unwrap();
    let start = section.offset as usize;
    change(&mut data[start..start + section.size as usize]);
    data
}

#[test]
fn a_line_program_without_an_end_is_an_error() {
    // The last bytes are DW_LNE_end_sequence: 0, 1, 1. Copies of rows take its place.
    let data = with_section(".debug_line", |line| {
        let size = line.len();
        line[size - 3..].fill(1);
    });
    let fault = error(data).fault;
    assert_eq!(fault.section.as_deref(), Some(".debug_line"));
    assert!(matches!(fault.problem, Problem::Malformed(_)), "{fault}");
}

#[test]
fn a_line_program_of_a_huge_length_is_an_error() {
    let data =
        with_section(".debug_line", |line| line[..4].copy_from_slice(&[0xef, 255, 255, 255]));
    let fault = error(data).fault;
    assert!(matches!(fault.problem, Problem::EndsEarly(_)), "{fault}");
    let data = with_section(".debug_info", |info| {
        info[..12].fill(255);
    });
    error(data);
}

/// A function whose abstract origin is itself, in DWARF 4 made by hand.
#[test]
fn descriptions_in_a_circle_are_an_error() {
    let abbreviations: &[u8] = &[
        1, 0x11, 1, 0, 0, // 1: a compilation unit with children
        2, 0x2e, 0, 0x31, 0x13, 0x11, 0x01, 0x12, 0x06, 0, 0, // 2: a subprogram
        0,
    ];
    let mut unit = vec![4, 0, 0, 0, 0, 0, 8, 1];
    let itself = (unit.len() + 4) as u32;
    unit.push(2);
    unit.extend(itself.to_le_bytes());
    unit.extend(0x1a00u64.to_le_bytes());
    unit.extend(4u32.to_le_bytes());
    unit.push(0);
    let mut info = (unit.len() as u32).to_le_bytes().to_vec();
    info.extend(unit);
    let mut data = with_section(".debug_abbrev", |section| {
        section[..abbreviations.len()].copy_from_slice(abbreviations);
    });
    let header = header_of(&data, ".debug_info");
    put(&mut data, header + 32, info.len() as u64);
    let start = Elf::parse(data.clone().into()).unwrap().section(".debug_info").unwrap().offset;
    data[start as usize..][..info.len()].copy_from_slice(&info);
    let message = error(data).to_string();
    assert!(message.contains("a function's description refers to itself"), "{message}");
}

/// Each of many units names its own place in one long abbreviation table, which they all read.
#[test]
fn tables_that_units_share_are_not_read_without_end() {
    let unit = |offset: u32| {
        let mut unit = 8u32.to_le_bytes().to_vec();
        unit.extend([4, 0]);
        unit.extend(offset.to_le_bytes());
        unit.extend([8, 0]);
        unit
    };
    let info: Vec<u8> = (0..40_000).flat_map(|index| unit(index * 5)).collect();
    let table = [1u8, 0x11, 0, 0, 0].repeat(40_000);
    let mut data = fixture("nested.gfx942.hsaco");
    for (name, bytes) in [(".debug_info", info), (".debug_abbrev", table)] {
        let header = header_of(&data, name);
        let end = data.len() as u64;
        put(&mut data, header + 24, end);
        put(&mut data, header + 32, bytes.len() as u64);
        data.extend(bytes);
    }
    let start = Instant::now();
    let read = CodeObject::read_all("broken", data.clone(), &mut Chains::new());
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    let fault = error(data).fault;
    assert_eq!(read.unwrap_err().fault, fault);
    assert!(matches!(fault.problem, Problem::TooMuchWork(_)), "{fault}");
}

/// A compressed bundle of version 3 that claims a size and holds zeros.
fn bomb(claimed: u64, real: u64) -> Vec<u8> {
    let body = zstd::encode_all(std::io::repeat(0).take(real), 1).unwrap();
    let mut bundle = b"CCOB\x03\0\x01\0".to_vec();
    bundle.extend((body.len() as u64 + 32).to_le_bytes());
    bundle.extend(claimed.to_le_bytes());
    bundle.extend([0; 8]);
    bundle.extend(body);
    bundle
}

#[test]
fn a_bomb_is_refused_and_takes_little_memory() {
    let before = most_memory();
    let message = error(bomb(DECOMPRESSED_CAP + 1, 1 << 20)).to_string();
    assert!(
        message.contains("more than 536870912 bytes, the most that siteline reads"),
        "{message}"
    );
    error(bomb(u64::MAX, 1 << 20));
    // It claims little and gives much.
    let message = error(bomb(1000, 1 << 30)).to_string();
    assert!(message.contains("gives more than the 1000 bytes"), "{message}");
    assert!(most_memory() - before < 256 << 20, "{} bytes", most_memory() - before);
}

#[test]
fn edited_files_never_panic() {
    for name in ["nested.gfx942.hsaco", "nested.gfx1100.hsaco", "gemms.mlirbc", "fat.o"] {
        let whole = fixture(name);
        arbtest::arbtest(|unstructured| {
            let edits: Vec<(u16, u8)> = unstructured.arbitrary()?;
            let edited = fuzzing::edited(&whole, &edits);
            fuzzing::code_objects(&edited);
            fuzzing::refined(&edited);
            Ok(())
        })
        .budget_ms(2_000);
    }
}

#[test]
fn any_bytes_never_panic() {
    arbtest::arbtest(|unstructured| {
        let kind: u8 = unstructured.arbitrary()?;
        let start: &[u8] = match kind % 5 {
            0 => b"\x7fELF\x02\x01\x01\x40",
            1 => b"__CLANG_OFFLOAD_BUNDLE__",
            2 => b"CCOB",
            3 => b"gpu.binary @k [\"\\7FELF",
            _ => b"",
        };
        let rest: Vec<u8> = unstructured.arbitrary()?;
        let bytes = [start, &rest].concat();
        fuzzing::code_objects(&bytes);
        fuzzing::refined(&bytes);
        Ok(())
    })
    .budget_ms(2_000);
}

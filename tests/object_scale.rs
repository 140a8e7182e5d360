//! Large objects: read and looked up whole in time and memory that grow with their rows.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use siteline::chain::Chains;
use siteline::object::{CodeObject, Vaddr};

#[path = "support/generated.rs"]
mod generated;

use generated::{Size, TEXT, addresses, object};

const MILLION: Size = Size { rows: 1_000_000, inlined: 100_000 };
/// Names the object to read in a process of its own.
const OBJECT: &str = "SITELINE_SCALE_OBJECT";

fn read(data: Vec<u8>, chains: &mut Chains) -> CodeObject {
    CodeObject::read_all("generated", data, chains).unwrap().pop().unwrap()
}

#[test]
fn what_is_generated_is_what_was_asked_for() {
    let size = Size { rows: 20_000, inlined: 2_000 };
    let mut chains = Chains::new();
    let object = read(object(size), &mut chains);
    let debug = object.debug.as_ref().unwrap();
    assert_eq!(object.functions.len(), 2);
    assert_eq!(debug.row_count(), 20_000);
    assert_eq!(debug.scope_count(), 2_002);
    let levels = |at: u64| {
        let chain = debug.chain_at(Vaddr(TEXT + 4 * at), &mut chains).unwrap();
        chains.frames(chain).count()
    };
    let depths: Vec<usize> = (0..12).map(levels).collect();
    assert_eq!(depths[..4], [2, 3, 4, 4]);
}

/// The most memory that this process had, in bytes.
fn most_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

/// Runs in a process of its own, which another test starts.
#[test]
#[ignore = "the other process of a_million_rows_take_64_bytes_each"]
fn child() {
    let Some(path) = std::env::var_os(OBJECT) else { return };
    let empty = most_memory();
    let start = Instant::now();
    let data = std::fs::read(path).unwrap();
    let mut chains = Chains::new();
    let object = read(data, &mut chains);
    let debug = object.debug.as_ref().unwrap();
    let mapped = addresses(MILLION).filter(|&a| debug.chain_at(Vaddr(a), &mut chains).is_some());
    let mapped = mapped.count() as u64;
    let time = start.elapsed();
    let bytes = most_memory() - empty;
    println!(
        "{mapped} rows, {} scopes, {} chains in {time:?}, {bytes} bytes, {} a row",
        debug.scope_count(),
        chains.len(),
        bytes / mapped
    );
    assert_eq!(mapped, u64::from(MILLION.rows));
    assert!(bytes <= 64 * mapped, "{bytes} bytes");
    let most = Duration::from_secs(if cfg!(debug_assertions) { 60 } else { 1 });
    assert!(time < most, "{time:?}");
}

#[test]
fn a_million_rows_take_64_bytes_each() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object(MILLION)).unwrap();
    let program = std::env::current_exe().unwrap();
    let output = run_child(&program, file.path());
    let text = String::from_utf8(output.stdout).unwrap();
    print!("{text}");
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1000000 rows"), "{text}");
}

fn run_child(program: &Path, object: &Path) -> std::process::Output {
    Command::new(program)
        .args(["child", "--exact", "--ignored", "--nocapture"])
        .env(OBJECT, object)
        .output()
        .unwrap()
}

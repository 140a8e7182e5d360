//! Reading, measuring and comparing traces.

use std::fs;
use std::path::Path;

use siteline::att::metrics::WeightBy;
use siteline::att::waves::{Wave, files};
use siteline::att::{RowKind, Trace};
use siteline::leaf::LeafTable;

#[path = "support/att.rs"]
mod support;

use support::{SMALL, capture, code_json, fails, json, siteline, small_folder};

fn close(value: &serde_json::Value, expected: f64, digits: i32) -> bool {
    let scale = 10f64.powi(digits);
    value.as_f64().is_some_and(|value| (value * scale).round() == (expected * scale).round())
}

#[test]
fn the_seed_s_captures_have_the_seed_s_numbers() {
    for (name, definition, expected) in [
        ("before_code.json", "flash_attn_func.py:257", (7, 0.7615, 0.9606, 2.01, 0.7615)),
        ("after_code.json", "flash_attn_func.py:258", (31, 0.4891, 0.5784, 8.24, 0.4891)),
    ] {
        let Some(path) = capture(name) else { return };
        let path = path.to_str().unwrap();
        let report = json(&["report", path, "--json", "--definition", definition]);
        let (lines, top1, top2, effective, on_definition) = expected;
        assert_eq!(report["schema"], 1);
        assert_eq!((&report["rows"], &report["mapped_rows"]), (&2070.into(), &2069.into()));
        assert_eq!(report["lines"], lines, "{name}");
        assert!(close(&report["top1_share"], top1, 4), "{}", report["top1_share"]);
        assert!(close(&report["top2_share"], top2, 4), "{}", report["top2_share"]);
        assert!(close(&report["effective_lines"], effective, 2), "{}", report["effective_lines"]);
        assert!(close(&report["definition_line_share"], on_definition, 4));
        assert_eq!(report["leaves"]["mfma"]["rows"], 64);
        assert_eq!(report["leaves"]["mfma"]["lines"], if lines == 7 { 1 } else { 4 });
        assert_eq!(report["leaves"]["asm"], serde_json::Value::Null);
        let waits = &report["leaves"]["wait"]["definition_line_share"];
        assert!(lines == 7 || close(waits, 0.238, 3), "{waits}");
    }
}

#[test]
fn the_seed_s_mfma_weight_moved_from_the_helper_to_its_call_sites() {
    let (Some(a), Some(b)) = (capture("before_code.json"), capture("after_code.json")) else {
        return;
    };
    let diff = json(&["diff", a.to_str().unwrap(), b.to_str().unwrap(), "--json"]);
    let comparison = &diff["comparison"];
    assert_eq!(comparison["same_code"], true);
    assert_eq!(comparison["matched"], 2069);
    assert_eq!(comparison["matched_share"], 1.0);
    let moves = comparison["moves"].as_array().unwrap();
    let mfma: Vec<_> = moves.iter().filter(|found| found["class"] == "mfma").collect();
    let to: Vec<_> = mfma
        .iter()
        .map(|found| (found["to"]["line"].as_u64(), found["rows"].as_u64().unwrap()))
        .collect();
    assert_eq!(to, [(Some(746), 16), (Some(745), 16), (Some(1116), 16), (Some(1117), 16)]);
    assert!(mfma.iter().all(|found| found["from"]["line"] == 283));
    let weights: Vec<_> = mfma.iter().map(|found| found["weight_b"].as_u64().unwrap()).collect();
    assert_eq!(weights, [106_776, 21_352, 21_292, 14_992]);
}

#[test]
fn the_seed_s_wave_files_name_80_waits() {
    for name in ["after_wave_se0_sm0_sl0_wv0.json", "after_wave_se0_sm0_sl1_wv0.json"] {
        let (Some(path), Some(code)) = (capture(name), capture("after_code.json")) else { return };
        let trace = Trace::read(&code, &LeafTable::default()).unwrap();
        let wave = Wave::read(&path).unwrap();
        let mut rows: Vec<_> = wave.waits.iter().map(|wait| wait.row).collect();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows.len(), 80);
        let by_line_number = trace.by_line_number();
        for row in rows {
            let row = &trace.rows[by_line_number[&row]];
            assert!(trace.isa(row).starts_with("s_waitcnt"), "{}", trace.isa(row));
        }
    }
}

fn made_up(folder: &Path) -> String {
    small_folder(folder);
    folder.to_str().unwrap().into()
}

#[test]
fn a_made_up_trace_is_read_whole() {
    let folder = tempfile::tempdir().unwrap();
    made_up(folder.path());
    let trace = Trace::read(folder.path(), &LeafTable::default()).unwrap();
    assert!(trace.has_samples);
    let names: Vec<_> = trace.kernels.iter().map(|kernel| trace.kernel_name(kernel)).collect();
    assert_eq!(names, ["made_up_0", "_Z5otherPi"]);
    assert_eq!(trace.kernels[0].rows, 0..11);
    let chain = trace.rows[2].chain.unwrap();
    assert_eq!(trace.chains.display(chain).to_string(), "/src/made_up.py:5 <- /src/made_up.py:7");
    let mov = &trace.rows[3];
    assert_eq!((mov.codeobj, mov.vaddr, mov.hit, mov.latency), (4, 5904, 10, 400));
    assert_eq!((mov.stall, mov.idle, mov.samples), (390, 0, 9));
    let kinds: Vec<_> = trace.rows.iter().filter(|r| r.kind == RowKind::Padding).collect();
    assert_eq!(kinds.len(), 2);
    assert_eq!(trace.rows[11].chain, None);
    assert_eq!(files(folder.path()).unwrap().len(), 1);
}

#[test]
fn a_made_up_trace_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let path = made_up(folder.path());
    let report = json(&["report", &path, "--json", "--kernel", "made_up_0"]);
    assert_eq!(report["rows"], 9);
    assert_eq!(report["padding_rows"], 2);
    assert_eq!(report["mapped_rows"], 6);
    assert_eq!(report["chained_rows"], 2);
    assert_eq!(report["weight"], 560);
    assert_eq!(report["lines"], 4);
    assert_eq!(report["kernels"][0]["definition_line"]["line"], 2, "from the saved source");
    assert_eq!(report["definition_line_share"], 10.0 / 560.0);
    assert_eq!(report["line_zero_share"], 10.0 / 560.0);
    assert_eq!(report["unmapped_share"], 20.0 / 560.0);
    assert_eq!(report["top_lines"][0]["line"], 8);
    assert_eq!(report["leaves"]["mfma"]["lines"], 1);
    let all = json(&["report", &path, "--json"]);
    assert_eq!(all["rows"], 12);
    assert_eq!(all["definition_line_share"], serde_json::Value::Null, "the other's is unknown");
    assert_eq!(all["library_share"], 25.0 / 590.0);
    for (weight, total) in
        [("stall", 500), ("latency", 685), ("instructions", 10), ("hit", 90), ("samples", 15)]
    {
        let report = json(&["report", &path, "--json", "--weight", weight]);
        assert_eq!((&report["weight"], &report["weight_by"]), (&total.into(), &weight.into()));
    }
}

#[test]
fn pc_sampling_alone_weighs_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    let header = format!("{}, PC_Issued, PC_Stalled, Stall_Reasons", support::HEADER);
    let text = format!(
        r#"{{"code":[["s_nop 0",0,1,"k.py:1",2,8,0,0,0,0,2,3,[0,1]]],"header":"{header}"}}"#
    );
    fs::write(&path, text).unwrap();
    let trace = Trace::read(&path, &LeafTable::default()).unwrap();
    assert_eq!(WeightBy::suiting(&trace), WeightBy::Samples);
    assert_eq!(WeightBy::Samples.weights(&trace), [5]);
}

#[test]
fn conditions_decide_the_exit_status() {
    let folder = tempfile::tempdir().unwrap();
    let path = made_up(folder.path());
    let met = siteline(&["report", &path, "--require", "lines>=4", "--require", "mfma.lines=1"]);
    assert_eq!(met.status.code(), Some(0));
    let error = fails(&["report", &path, "--require", "mfma.lines>=2"], 1);
    assert_eq!(error, "siteline: not met: mfma.lines>=2, it is 1\n");
    let error = fails(&["report", &path, "--require", "definition_line_share<=0.5"], 1);
    assert!(error.contains("not known"), "{error}");
    fails(&["report", &path, "--require", "lines"], 2);
    fails(&["report", &path, "--weight", "colour"], 2);
}

#[test]
fn other_code_is_matched_by_text_and_then_by_mnemonic() {
    let folder = tempfile::tempdir().unwrap();
    let path = made_up(folder.path());
    let other = folder.path().join("other.json");
    let text = SMALL
        .replace("v_mov_b32_e32 v3, v4", "v_mov_b32_e32 v3, v5")
        .replace("\"s_barrier\"", "\"s_sleep 1\"")
        .replace("/src/made_up.py:6", "/src/made_up.py:7");
    fs::write(&other, text).unwrap();
    let output = siteline(&["diff", &path, other.to_str().unwrap(), "--json"]);
    assert_eq!(output.status.code(), Some(1), "other code");
    let diff: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let comparison = &diff["comparison"];
    assert_eq!(comparison["same_code"], false);
    assert_eq!((&comparison["matched"], &comparison["same_text"]), (&9.into(), &8.into()));
    assert_eq!(comparison["matched_share"], 0.9);
    assert_eq!(comparison["moved"], 1);
    assert_eq!(comparison["moves"][0]["to"]["line"], 7);
    let same = json(&["diff", &path, &path, "--json"]);
    assert_eq!(same["comparison"]["same_code"], true);
    assert_eq!(same["comparison"]["moves"], serde_json::json!([]));
}

/// The message for a `code.json` with this text.
fn message(text: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    fs::write(&path, text).unwrap();
    let error = fails(&["report", path.to_str().unwrap()], 2);
    assert!(error.contains("code.json'"), "{error}");
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

fn with_row(row: &str) -> String {
    format!(r#"{{"code":[["s_nop 0",0,1,"",4,8,0,0,0,0],{row}],"header":"{}"}}"#, support::HEADER)
}

#[test]
fn broken_files_are_said_with_their_place() {
    for (text, part) in [
        ("", "not complete JSON"),
        (&SMALL[..700], "not complete JSON (EOF"),
        ("[1, 2]", "not a code table"),
        ("{}", "'code' is missing or null"),
        (r#"{"code":null,"header":"ISA"}"#, "'code' is missing or null"),
        (r#"{"code":7}"#, "row 0 of 'code'"),
        (r#"{"code":[],"header":7}"#, "'header' is neither"),
        (r#"{"code":[],"header":"ISA, Source"}"#, "no column 'LineNumber'"),
        (&with_row("7"), "row 1 of 'code': invalid type: integer `7`, expected a row"),
        (&with_row(r#"{"ISA":1}"#), "row 1 of 'code': invalid type: map"),
        (&with_row(r#"["s_nop 0",0,1]"#), "row 1 of 'code': it has 3 cells"),
        (&with_row(r#"[7,0,1,"",4,8,0,0,0,0]"#), "row 1 of 'code', column ISA"),
        (&with_row(r#"["s",0,1,7,4,8,0,0,0,0]"#), "row 1 of 'code': column Source: expected text"),
        (&with_row(r#"["s",0,1,"",4,8,1.5,0,0,0]"#), "column Hit: invalid type: floating point"),
        (&with_row(r#"["s",0,1,"",4,-8,0,0,0,0]"#), "column Vaddr: -8 is negative"),
        (&with_row(r#"["s",0,9999999999,"",4,8,0,0,0,0]"#), "LineNumber does not fit"),
        (&with_row(r#"["s",0,1,"",4,8,"9",0,0,0]"#), "column Hit: invalid type: string"),
    ] {
        let message = message(text);
        assert!(message.contains(part), "{message} has no {part}");
    }
    let folder = tempfile::tempdir().unwrap();
    let error = fails(&["report", folder.path().to_str().unwrap()], 2);
    assert!(error.contains("holds no code.json"), "{error}");
    let error = fails(&["report", "no/such/place"], 2);
    assert!(error.contains("cannot read 'no/such/place'"), "{error}");
}

#[test]
fn odd_counts_and_sources_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    fs::write(&path, with_row(r#"["s",0,1,"nonsense",4,8,-1,0,-7,0]"#)).unwrap();
    let output = siteline(&["report", path.to_str().unwrap(), "--json"]);
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["weight"], 0);
    assert_eq!(report["warnings"]["negative_counts"], 2);
    assert_eq!(report["warnings"]["unreadable_sources"], 1);
    let warnings = String::from_utf8(output.stderr).unwrap();
    assert!(warnings.contains("2 negative counts, read as 0"), "{warnings}");
}

#[test]
fn counts_that_do_not_fit_a_sum_saturate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    let max = u64::MAX;
    fs::write(&path, with_row(&format!(r#"["s",0,1,"k.py:1",4,8,{max},{max},{max},0]"#))).unwrap();
    let report = json(&["report", path.to_str().unwrap(), "--json"]);
    assert_eq!(report["weight"], max);
    assert_eq!(report["top1_share"], 1.0);
}

#[test]
fn no_broken_text_makes_it_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    let mut state = 1_u64;
    let mut random = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    for round in 0..2_000 {
        let mut bytes = SMALL.as_bytes().to_vec();
        if round % 2 == 0 {
            bytes.truncate(random(bytes.len()));
        }
        for _ in 0..random(4) {
            let at = random(bytes.len().max(1));
            let new = b"\"[]{},:-0 ;>\\\xff"[random(14)];
            if let Some(byte) = bytes.get_mut(at) {
                *byte = new;
            }
        }
        fs::write(&path, &bytes).unwrap();
        let _ = Trace::read(&path, &LeafTable::default());
    }
}

#[test]
fn a_million_rows_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    let row = r#"["s_nop 0",0,1,"k.py:1",4,8,1,1,1,1],"#;
    let rows = row.repeat(1_000_000);
    fs::write(&path, format!(r#"{{"code":[{}]}}"#, rows.trim_end_matches(','))).unwrap();
    let trace = Trace::read(&path, &LeafTable::default()).unwrap();
    assert_eq!(trace.rows.len(), 1_000_000);
}

#[test]
fn generated_traces_are_of_the_documented_form() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("code.json");
    fs::write(&path, code_json(12_000)).unwrap();
    let report = json(&["report", path.to_str().unwrap(), "--json"]);
    assert_eq!(report["rows"], 12_003);
    assert_eq!(report["kernels"][2]["name"], "made_up_kernel_2");
    assert_eq!(report["warnings"]["unreadable_sources"], 0);
}

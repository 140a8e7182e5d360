//! One test for each rule of the site model.

use super::*;

const KERNEL: &str = "k.py";

/// Chains written as `line` or `file:line` or `function@line`, innermost first.
struct Case {
    chains: Chains,
    settings: Settings,
    symbol: Option<&'static str>,
    definition: Option<&'static str>,
    uses: Vec<(ChainId, Class)>,
}

impl Case {
    fn new(policy: &str) -> Self {
        let settings = Settings { policy: policy.parse().unwrap(), ..Settings::default() };
        let (chains, uses) = (Chains::new(), Vec::new());
        Case { chains, settings, symbol: None, definition: None, uses }
    }

    fn frame(&mut self, text: &str) -> Frame {
        let (function, place) = match text.split_once('@') {
            Some((function, place)) => (Some(function), place),
            None => (None, text),
        };
        let (file, line) = place.rsplit_once(':').unwrap_or((KERNEL, place));
        self.chains.frame(file, line.parse().unwrap(), 1, function)
    }

    fn add(&mut self, class: Class, text: &str) -> ChainId {
        let frames: Vec<Frame> = text.split(" < ").map(|frame| self.frame(frame)).collect();
        let chain = self.chains.intern(frames).unwrap();
        self.uses.push((chain, class));
        chain
    }

    fn sites(&mut self) -> Sites {
        let definition = self.definition.map(|text| self.frame(text).line());
        let kernel = Kernel { symbol: self.symbol, definition };
        let mut model = SiteModel::new(&self.settings, kernel);
        for &(chain, class) in &self.uses {
            model.add(&mut self.chains, chain, class);
        }
        model.choose(&self.chains)
    }

    /// The sites of all chains in the order they were added, as `file:line < file:line`.
    fn shown(&mut self) -> Vec<String> {
        let sites = self.sites();
        let show = |&(chain, class): &(ChainId, Class)| {
            let site = sites.site(chain, class).unwrap();
            let lines = self.chains.frames(site).map(|frame| {
                let file = self.chains.str(frame.file);
                if file == KERNEL {
                    frame.line.to_string()
                } else {
                    format!("{file}:{}", frame.line)
                }
            });
            lines.collect::<Vec<_>>().join(" < ")
        };
        self.uses.iter().map(show).collect()
    }
}

fn distinct(uses: &[(Class, &str)]) -> Vec<String> {
    let mut case = Case::new("distinct");
    for &(class, text) in uses {
        case.add(class, text);
    }
    case.shown()
}

#[test]
fn the_same_helper_from_two_sites_gives_way_to_them() {
    let shown = distinct(&[(Class::Mfma, "7 < 21"), (Class::Mfma, "7 < 22")]);
    assert_eq!(shown, ["21", "22"]);
}

#[test]
fn nested_helpers_give_way_only_as_far_as_it_tells_more_apart() {
    // _mfma (7) is called from mfma_acc (11 and 12), which is called from 21 and 22.
    let uses = ["7 < 11 < 21", "7 < 12 < 21", "7 < 11 < 22", "7 < 12 < 22"];
    let uses: Vec<_> = uses.into_iter().map(|text| (Class::Mfma, text)).collect();
    assert_eq!(distinct(&uses), ["21", "21", "22", "22"]);
    // A helper body with two calls, called once: its own lines tell more apart than the call.
    let shown = distinct(&[(Class::Mfma, "7 < 11 < 21"), (Class::Mfma, "7 < 12 < 21")]);
    assert_eq!(shown, ["11 < 21", "12 < 21"]);
}

#[test]
fn a_helper_used_once_is_shown_at_its_call() {
    assert_eq!(distinct(&[(Class::Wait, "7 < 21")]), ["21"]);
    let with_other_helper = distinct(&[(Class::Wait, "7 < 21"), (Class::Wait, "8 < 21")]);
    assert_eq!(with_other_helper, ["7 < 21", "8 < 21"]);
}

#[test]
fn a_single_chain_shows_its_outermost_frame() {
    assert_eq!(distinct(&[(Class::Mfma, "7 < 11 < 21")]), ["21"]);
}

#[test]
fn a_loop_body_called_once_keeps_its_leaves_apart() {
    let uses = [(Class::Mfma, "40 < 90"), (Class::Mfma, "41 < 90"), (Class::Wait, "42 < 90")];
    // The wait is alone in its class, but its call is shared with other leaves.
    assert_eq!(distinct(&uses), ["40 < 90", "41 < 90", "42 < 90"]);
}

#[test]
fn classes_are_counted_apart() {
    // The helper's line holds one wait and one MFMA; each is alone in its class.
    let uses = [(Class::Mfma, "7 < 21"), (Class::Wait, "7 < 21"), (Class::Mfma, "7 < 22")];
    assert_eq!(distinct(&uses), ["21", "21", "22"]);
}

#[test]
fn other_operations_do_not_count_for_leaves() {
    let uses = [(Class::Mfma, "7 < 21"), (Class::Other, "7 < 22"), (Class::Other, "7 < 23")];
    assert_eq!(distinct(&uses), ["21", "22", "23"]);
    let mut case = Case::new("distinct");
    let mfma = case.add(Class::Mfma, "7 < 21");
    case.add(Class::Other, "8 < 21");
    case.add(Class::Other, "9 < 21");
    let sites = case.sites();
    // 21 occurs in one chain of all leaf classes, as 7 does: the outermost of equals.
    assert_eq!(case.chains.innermost(sites.site(mfma, Class::Mfma).unwrap()).line, 21);
}

#[test]
fn recursion_counts_a_line_once_a_chain_and_takes_its_outermost_frame() {
    let shown = distinct(&[(Class::Mfma, "7 < 9 < 9 < 9 < 21"), (Class::Mfma, "7 < 21")]);
    assert_eq!(shown, ["9 < 21", "21"]);
    let mut case = Case::new("unique");
    case.add(Class::Mfma, "9 < 9 < 21");
    assert_eq!(case.shown(), ["21"], "9 has several sequences of outer lines");
}

#[test]
fn a_line_that_is_both_the_kernels_and_a_helpers_gives_way() {
    // A one-line lambda on line 21 is called there and from 22.
    let shown = distinct(&[(Class::Mfma, "21 < 21"), (Class::Mfma, "21 < 22")]);
    assert_eq!(shown, ["21", "22"]);
}

#[test]
fn two_columns_on_one_line_are_one_line() {
    let mut case = Case::new("distinct");
    let frames = [case.chains.frame(KERNEL, 7, 1, None), case.chains.frame(KERNEL, 21, 5, None)];
    let other = [case.chains.frame(KERNEL, 7, 1, None), case.chains.frame(KERNEL, 21, 40, None)];
    for frames in [frames, other] {
        let chain = case.chains.intern(frames).unwrap();
        case.uses.push((chain, Class::Mfma));
    }
    let sites = case.sites();
    let line = case.frame("21").line();
    assert_eq!(sites.chains_at(line, Class::Mfma), 1);
    assert!(!sites.is_ambiguous(line, Class::Mfma));
}

#[test]
fn a_library_frame_is_not_chosen_while_another_exists() {
    let lib = "/usr/lib/python3.11/functools.py:388";
    for policy in ["distinct", "unique", "innermost", "outermost", "depth:9", "skip:k.py"] {
        let mut case = Case::new(policy);
        case.add(Class::Mfma, &format!("{lib} < 7 < {lib} < 21 < {lib}"));
        let shown = case.shown();
        assert!(!shown[0].starts_with(lib), "{policy}: {shown:?}");
    }
}

#[test]
fn only_library_frames_are_chosen_from_as_any_others() {
    let mut case = Case::new("innermost");
    case.add(Class::Mfma, "/usr/lib/python3.11/a.py:1 < /usr/lib/python3.11/b.py:2");
    assert_eq!(case.shown(), ["/usr/lib/python3.11/a.py:1 < /usr/lib/python3.11/b.py:2"]);
}

#[test]
fn the_kernels_own_file_is_never_library() {
    let own = "/v/site-packages/flydsl/kernels/gemm.py";
    let mut case = Case::new("innermost");
    case.definition = Some("/v/site-packages/flydsl/kernels/gemm.py:10");
    case.add(Class::Mfma, &format!("/v/site-packages/flydsl/expr.py:5 < {own}:20"));
    assert_eq!(case.shown(), [format!("{own}:20")]);
    assert!(!case.sites().is_library(case.chains.find_sym(own).unwrap()));
}

#[test]
fn library_paths_are_told_from_the_authors() {
    let library = Library::new(["*/vendor/*"]).unwrap();
    for path in [
        "/usr/lib/python3.11/functools.py",
        "/root/.pyenv/versions/3.11.7/lib/python3.11/contextlib.py",
        "/v/lib/python3.11/site-packages/flydsl/expr/numeric.py",
        "/v/build-fly/python_packages/flydsl/expr/numeric.py",
        "/v/lib/python3/dist-packages/torch/_tensor.py",
        "/opt/rocm-6.4/include/hip/hip_runtime.h",
        "/usr/lib/clang/22/include/__clang_hip_math.h",
        "<frozen importlib._bootstrap>",
        "-",
        "/src/vendor/x.py",
    ] {
        assert!(library.contains(path), "{path}");
    }
    for path in [
        "/v/lib/python3.11/site-packages/mykernels/gemm.py",
        "/home/me/flydsl/kernels/gemm.py",
        "k.py",
    ] {
        assert!(!library.contains(path), "{path}");
    }
}

#[test]
fn host_frames_are_cut_before_anything_else() {
    let mut case = Case::new("outermost");
    case.symbol = Some("gemm_kernel_0");
    case.add(Class::Mfma, "h@7 < make.<locals>.gemm_kernel@21 < launch@90 < <module>@99");
    assert_eq!(case.shown(), ["21"]);
    let mut unnamed = Case::new("outermost");
    unnamed.symbol = Some("gemm_kernel_0");
    unnamed.add(Class::Mfma, "7 < 21 < 90");
    assert_eq!(unnamed.shown(), ["90"], "without names no frame is the host's");
}

#[test]
fn the_kernel_is_found_by_the_last_part_of_its_name() {
    assert!(is_kernel_function("gemm", "gemm"));
    assert!(is_kernel_function("make.<locals>.gemm", "gemm_0"));
    assert!(is_kernel_function("ns::gemm", "gemm"));
    assert!(is_kernel_function("gemm_0", "gemm_0"));
    assert!(!is_kernel_function("gemm", "gemm_tail"));
    assert!(!is_kernel_function("gemm.helper", "gemm"));
}

#[test]
fn frames_of_control_flow_statements_are_dropped() {
    let mut case = Case::new("outermost");
    case.symbol = Some("k");
    let lib = "/v/site-packages/flydsl/compiler/ast_rewriter.py";
    case.add(
        Class::Mfma,
        &format!("k.<locals>.__then_4@25 < dispatch@{lib}:100 < k.<locals>.__for_body_2@24 < loop@{lib}:80 < k@20"),
    );
    let shown = case.shown();
    assert_eq!(shown, ["25"]);
    let sites = case.sites();
    let (chain, class) = case.uses[0];
    let frame = case.chains.innermost(sites.site(chain, class).unwrap());
    assert_eq!(frame.function.map(|f| case.chains.str(f)), Some("k"), "it belongs to the kernel");
}

#[test]
fn generated_names_are_recognised() {
    for name in
        ["__then_4", "k.<locals>.__else_12", "__for_body_0", "__while_before_1", "__while_after_2"]
    {
        assert!(is_control_flow_function(name), "{name}");
    }
    for name in ["__then", "then_4", "__init__", "__for_body_x", "__thenceforth_1"] {
        assert!(!is_control_flow_function(name), "{name}");
    }
}

#[test]
fn each_policy_picks_its_frame() {
    for (policy, site) in [
        ("innermost", "h.py:7 < 11 < 21"),
        ("outermost", "21"),
        ("file:k.py", "11 < 21"),
        ("file:*.cpp", "21"),
        ("skip:h.py", "11 < 21"),
        ("skip:*", "21"),
        ("depth:0", "21"),
        ("depth:1", "11 < 21"),
        ("depth:2", "h.py:7 < 11 < 21"),
        ("depth:3", "21"),
    ] {
        let mut case = Case::new(policy);
        case.add(Class::Mfma, "h.py:7 < 11 < 21");
        assert_eq!(case.shown(), [site], "{policy}");
    }
}

#[test]
fn unique_takes_the_innermost_line_with_one_sequence_outside() {
    let mut case = Case::new("unique");
    case.add(Class::Mfma, "7 < 11 < 21");
    case.add(Class::Mfma, "7 < 12 < 21");
    case.add(Class::Mfma, "8 < 21");
    case.add(Class::Wait, "9 < 30");
    assert_eq!(case.shown(), ["11 < 21", "12 < 21", "8 < 21", "9 < 30"]);
    let mut none = Case::new("unique");
    none.add(Class::Mfma, "7 < 7 < 7");
    none.add(Class::Mfma, "7");
    assert_eq!(none.shown(), ["7", "7"]);
}

#[test]
fn classes_outside_the_list_keep_their_chain() {
    let mut case = Case::new("outermost");
    case.settings.leaves = "mfma".parse().unwrap();
    case.add(Class::Mfma, "7 < 21");
    case.add(Class::Wait, "7 < 21");
    assert_eq!(case.shown(), ["21", "7 < 21"]);
}

#[test]
fn a_line_shown_for_two_chains_of_its_class_is_ambiguous() {
    let mut case = Case::new("innermost");
    case.add(Class::Mfma, "7 < 21");
    case.add(Class::Mfma, "7 < 22");
    case.add(Class::Wait, "7 < 23");
    case.add(Class::Wait, "8 < 23");
    let sites = case.sites();
    let seven = case.frame("7").line();
    assert_eq!(sites.chains_at(seven, Class::Mfma), 2);
    assert!(sites.is_ambiguous(seven, Class::Mfma));
    assert!(!sites.is_ambiguous(seven, Class::Wait));
    assert_eq!(sites.lines(Class::Wait).count(), 2);
    assert_eq!(sites.chains_at(case.frame("99").line(), Class::Mfma), 0);
}

#[test]
fn a_chain_that_was_not_added_has_no_site() {
    let mut case = Case::new("distinct");
    let known = case.add(Class::Mfma, "7 < 21");
    let sites = case.sites();
    let other = case.add(Class::Mfma, "8 < 21");
    assert_eq!(sites.site(other, Class::Mfma), None);
    assert_eq!(sites.site(known, Class::Wait), None);
}

#[test]
fn no_chains_make_no_sites() {
    let mut case = Case::new("distinct");
    let sites = case.sites();
    assert_eq!(sites.lines(Class::Mfma).count(), 0);
}

#[test]
fn the_order_of_adding_does_not_matter() {
    let uses = ["7 < 11 < 21", "7 < 12 < 21", "7 < 11 < 22", "8 < 22"];
    let shown = |order: &[usize]| {
        let mut case = Case::new("distinct");
        order.iter().for_each(|&at| {
            case.add(Class::Mfma, uses[at]);
        });
        let mut shown: Vec<_> = order.iter().copied().zip(case.shown()).collect();
        shown.sort();
        shown
    };
    assert_eq!(shown(&[0, 1, 2, 3]), shown(&[3, 1, 0, 2]));
}

#[test]
fn policies_are_read_and_printed() {
    for text in
        ["distinct", "unique", "innermost", "outermost", "file:*.py", "skip:*/lib/*", "depth:2"]
    {
        assert_eq!(text.parse::<Policy>().unwrap().to_string(), text);
    }
    for (text, message) in [
        ("best", "unknown policy 'best'"),
        ("best:1", "unknown policy 'best:1'"),
        ("depth:-1", "policy 'depth:-1': depth takes"),
        ("depth:", "policy 'depth:': depth takes"),
        ("file:", "glob '': it is empty"),
        ("file:[", "glob '['"),
    ] {
        let error = text.parse::<Policy>().unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn effective_lines_are_the_exponent_of_the_entropy() {
    assert_eq!(effective_lines([]), 0.0);
    assert_eq!(effective_lines([0.0]), 0.0);
    assert!((effective_lines([5.0]) - 1.0).abs() < 1e-12);
    assert!((effective_lines([1.0, 1.0, 1.0, 1.0]) - 4.0).abs() < 1e-12);
    assert!((effective_lines([3.0, 1.0]) - 1.754_765_350_603_323).abs() < 1e-12);
}

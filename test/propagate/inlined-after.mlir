// What a later inliner puts around a site stays outside it; restore takes it along.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-restore)' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefix=RESTORE
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-report)' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

gpu.module @m {
  gpu.func @k() kernel {
    // The site is k.py:20, chosen before the function was inlined at k.py:50.
    // RESTORE: rocdl.s.barrier loc(callsite(callsite("k.py":7:1 at "k.py":20:1) at "k.py":50:1))
    rocdl.s.barrier loc(callsite(fused<loc(callsite("k.py":7:1 at "k.py":20:1))>["k.py":20:1] at "k.py":50:1))
    // A site in the middle keeps its own callers; the whole was inlined at k.py:51.
    // RESTORE: rocdl.s.barrier loc(callsite(callsite("k.py":7:1 at callsite("k.py":21:1 at "k.py":30:1)) at "k.py":51:1))
    rocdl.s.barrier loc(callsite(callsite(fused<loc(callsite("k.py":7:1 at callsite("k.py":21:1 at "k.py":30:1)))>["k.py":21:1] at "k.py":30:1) at "k.py":51:1))
    // Not inlined: the callers outside the site are of the original.
    // RESTORE: rocdl.s.barrier loc(callsite("k.py":7:1 at callsite("k.py":22:1 at "k.py":30:1)))
    rocdl.s.barrier loc(callsite(fused<loc(callsite("k.py":7:1 at callsite("k.py":22:1 at "k.py":30:1)))>["k.py":22:1] at "k.py":30:1))
    // Two sites that CSE merged.
    // RESTORE: rocdl.s.barrier loc(fused[callsite("k.py":7:1 at "k.py":23:1), callsite("k.py":7:1 at "k.py":24:1)])
    rocdl.s.barrier loc(fused[fused<loc(callsite("k.py":7:1 at "k.py":23:1))>["k.py":23:1], fused<loc(callsite("k.py":7:1 at "k.py":24:1))>["k.py":24:1]])
    gpu.return loc("k.py":1:1)
  } loc("k.py":1:1)
}

// Five chains of four operations: the fused one has two.
// REPORT: "barrier": {
// REPORT-NEXT: "operations": 4
// REPORT-NEXT: "chains": 5

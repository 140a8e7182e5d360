// Without originals a mark takes their place: the second run leaves the sites alone, though the
// chains that are left would give other counts.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{origin=drop})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{origin=drop})' --mlir-print-debuginfo > %t.once
// RUN: %siteline-opt %t.once --pass-pipeline='builtin.module(siteline{origin=drop})' --mlir-print-debuginfo | diff %t.once -
// RUN: %siteline-opt %t.once --pass-pipeline='builtin.module(siteline{policy=outermost})' --mlir-print-debuginfo | diff %t.once -
// RUN: %siteline-opt %t.once --pass-pipeline='builtin.module(siteline-restore)' --mlir-print-debuginfo | diff %t.once -

gpu.module @m {
  gpu.func @k() kernel {
    // CHECK: rocdl.s.barrier loc(callsite(fused<"siteline.site">["k.py":10:1] at "k.py":20:1))
    rocdl.s.barrier loc(callsite("k.py":10:1 at "k.py":20:1))
    // CHECK: rocdl.s.barrier loc(callsite(fused<"siteline.site">["k.py":10:1] at "k.py":30:1))
    rocdl.s.barrier loc(callsite("k.py":10:1 at "k.py":30:1))
    // Three chains of k.py:20, three of k.py:30, two of k.py:10.
    // CHECK: rocdl.s.barrier loc(fused<"siteline.site">["k.py":20:1])
    rocdl.s.barrier loc(callsite("h.py":1:1 at "k.py":20:1))
    rocdl.s.barrier loc(callsite("h.py":2:1 at "k.py":20:1))
    rocdl.s.barrier loc(callsite("h.py":1:1 at "k.py":30:1))
    rocdl.s.barrier loc(callsite("h.py":2:1 at "k.py":30:1))
    rocdl.s.barrier loc(callsite("h.py":1:1 at "k.py":40:1))
    rocdl.s.barrier loc(callsite("h.py":2:1 at "k.py":40:1))
    rocdl.s.barrier loc(callsite("h.py":1:1 at "k.py":41:1))
    rocdl.s.barrier loc(callsite("h.py":2:1 at "k.py":41:1))
    // CHECK: rocdl.s.setprio 1 loc("k.py":50:1)
    rocdl.s.setprio 1 loc("k.py":50:1)
    gpu.return loc("k.py":1:1)
  } loc("k.py":1:1)
}

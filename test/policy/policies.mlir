// Each policy on one chain of three frames and on a helper called twice.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=distinct})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=OUTER
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=outermost})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=OUTER
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=depth:0})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=OUTER
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=innermost})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=INNER
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=file:h.py})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=INNER
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=unique})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=MIDDLE
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=skip:h.py})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=MIDDLE
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=file:g.py})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=MIDDLE
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=depth:1})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=MIDDLE
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=innermost library=*/h.py,h.py})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=MIDDLE
// Only waits get a site:
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{leaves=wait+mfma})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=INNER
// Another policy starts from the originals again:
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=outermost},siteline{infer=false policy=unique})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s --check-prefixes=MIDDLE
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false policy=outermost},siteline{infer=false policy=innermost})' --mlir-print-debuginfo > %t.again
// RUN: %siteline-opt %s --mlir-print-debuginfo | diff - %t.again

gpu.module @m {
  gpu.func @k() kernel {
    // OUTER: rocdl.s.barrier loc(fused<{{.+}}>["k.py":20:1])
    // MIDDLE: rocdl.s.barrier loc(callsite(fused<{{.+}}>["g.py":7:1] at "k.py":20:1))
    // INNER: rocdl.s.barrier loc(callsite("h.py":3:1 at callsite("g.py":7:1 at "k.py":20:1)))
    rocdl.s.barrier loc(callsite("h.py":3:1 at callsite("g.py":7:1 at "k.py":20:1)))
    // OUTER: rocdl.s.barrier loc(fused<{{.+}}>["k.py":21:1])
    // MIDDLE: rocdl.s.barrier loc(callsite(fused<{{.+}}>["g.py":8:1] at "k.py":21:1))
    // INNER: rocdl.s.barrier loc(callsite("h.py":3:1 at callsite("g.py":8:1 at "k.py":21:1)))
    rocdl.s.barrier loc(callsite("h.py":3:1 at callsite("g.py":8:1 at "k.py":21:1)))
    gpu.return loc("k.py":1:1)
  } loc("k.py":1:1)
}

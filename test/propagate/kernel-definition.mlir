// The function's own location becomes its definition: what is outside it is host code. Host
// frames are cut from the operations, where function names tell them.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline,siteline-restore)' --mlir-print-debuginfo > %t.restored
// RUN: %siteline-opt %s --mlir-print-debuginfo | diff - %t.restored

gpu.module @m {
  gpu.func @k_0() kernel {
    // CHECK: rocdl.s.barrier loc(fused<loc({{.+}})>["make.<locals>.k"("k.py":21:1)])
    rocdl.s.barrier loc(callsite("h"("k.py":7:1) at callsite("make.<locals>.k"("k.py":21:1) at callsite("launch"("run.py":5:1) at "<module>"("run.py":9:1)))))
    // CHECK: rocdl.s.barrier loc(fused<loc({{.+}})>["make.<locals>.k"("k.py":22:1)])
    rocdl.s.barrier loc(callsite("h"("k.py":7:1) at callsite("make.<locals>.k"("k.py":22:1) at callsite("launch"("run.py":5:1) at "<module>"("run.py":9:1)))))
    gpu.return
  // CHECK: } loc(fused<loc(callsite("make.<locals>.k"("k.py":1:1) at "<module>"("run.py":9:1)))>["make.<locals>.k"("k.py":1:1)])
  } loc(callsite("make.<locals>.k"("k.py":1:1) at "<module>"("run.py":9:1)))
}

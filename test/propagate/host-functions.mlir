// Host functions are left alone; a gpu.launch in one is device code.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s

module attributes {gpu.container_module} {
  // CHECK-LABEL: func.func @host
  func.func @host(%n: index) {
    // CHECK: arith.constant 1 : index loc(callsite("k.py":7:1 at "k.py":20:1))
    %c1 = arith.constant 1 : index loc(callsite("k.py":7:1 at "k.py":20:1))
    %c2 = arith.constant 2 : index loc(callsite("k.py":7:1 at "k.py":21:1))
    gpu.launch blocks(%bx, %by, %bz) in (%gx = %c1, %gy = %c1, %gz = %c1)
               threads(%tx, %ty, %tz) in (%sx = %c1, %sy = %c1, %sz = %c1) {
      // CHECK: rocdl.s.barrier loc(fused<loc(callsite("k.py":7:1 at "k.py":30:1))>["k.py":30:1])
      rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":30:1))
      rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":31:1))
      gpu.terminator
    }
    return
  }
  // CHECK-LABEL: gpu.module @m
  gpu.module @m {
    // A helper that is a function of its own has its own chains.
    // CHECK-LABEL: func.func private @helper
    func.func private @helper() {
      // CHECK: rocdl.s.barrier loc(fused<loc(callsite("k.py":7:1 at "k.py":40:1))>["k.py":40:1])
      rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":40:1))
      return
    }
    // CHECK-LABEL: gpu.func @k
    gpu.func @k() kernel {
      // CHECK: rocdl.s.barrier loc(fused<loc(callsite("k.py":7:1 at "k.py":50:1))>["k.py":50:1])
      rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":50:1))
      gpu.return
    }
  }
}

// The pass runs on any operation: a module, a gpu.module, a function.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-propagate)' --mlir-print-debuginfo > %t.module
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(gpu.module(siteline-propagate))' --mlir-print-debuginfo | diff %t.module -
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(gpu.module(gpu.func(siteline-propagate)))' --mlir-print-debuginfo | diff %t.module -
// RUN: %siteline-opt %s --pass-pipeline='any(siteline-propagate)' --mlir-print-debuginfo | diff %t.module -
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo | diff %t.module -
// RUN: FileCheck %s < %t.module

gpu.module @m {
  gpu.func @a() kernel {
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":20:1))
    gpu.return
  }
  gpu.func @b() kernel {
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":30:1))
    gpu.return
  }
}

// CHECK-DAG: fused<{{.+}}>[

// Operations without a usable location get the site of the operation that they belong to.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-infer)' --mlir-print-debuginfo --mlir-print-local-scope > %t.inferred
// RUN: FileCheck %s < %t.inferred
// A second run changes nothing, nor does a second run of the whole pipeline:
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-infer,siteline-infer)' --mlir-print-debuginfo --mlir-print-local-scope | diff %t.inferred -
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo --mlir-print-local-scope > %t.whole
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline,siteline)' --mlir-print-debuginfo --mlir-print-local-scope | diff %t.whole -
// The originals come back:
// RUN: %siteline-opt %s --mlir-print-debuginfo --mlir-print-local-scope > %t.plain
// RUN: %siteline-opt %t.inferred --pass-pipeline='builtin.module(siteline-restore)' --mlir-print-debuginfo --mlir-print-local-scope | diff %t.plain -
// Inferring can be turned off:
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-propagate)' --mlir-print-debuginfo --mlir-print-local-scope > %t.propagated
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false})' --mlir-print-debuginfo --mlir-print-local-scope | diff %t.propagated -
// Without originals only the mark stays:
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{origin=drop})' --mlir-print-debuginfo --mlir-print-local-scope > %t.dropped
// RUN: FileCheck %s --check-prefix=DROPPED < %t.dropped
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{origin=drop},siteline,siteline{origin=drop})' --mlir-print-debuginfo --mlir-print-local-scope | diff %t.dropped -
// The command has both passes by default:
// RUN: %siteline opt %s | FileCheck %s --check-prefix=COMMAND
// RUN: %siteline opt %s --no-infer | FileCheck %s --check-prefix=OFF

// COMMAND: "siteline.inferred"
// OFF-NOT: "siteline.inferred"

gpu.module @m {
  // CHECK-LABEL: gpu.func @users
  gpu.func @users(%p: memref<8xf32>) kernel {
    rocdl.s.barrier loc("k.py":20:1)
    // A line of only users leads to the store.
    // CHECK: arith.constant 1 : index loc(fused<"siteline.inferred">[fused<loc(unknown)>["k.py":21:1]])
    // DROPPED: arith.constant 1 : index loc(fused<"siteline.inferred">["k.py":21:1])
    %a = arith.constant 1 : index loc(unknown)
    // CHECK: arith.addi {{.*}} loc(fused<"siteline.inferred">[fused<loc("k.py":10:1)>["k.py":21:1]])
    %b = arith.addi %a, %a : index loc("k.py":10:1)
    // CHECK: arith.constant {{.*}} loc(callsite("h.py":2:1 at "k.py":21:9))
    %f = arith.constant 2.0 : f32 loc(callsite("h.py":2:1 at "k.py":21:9))
    rocdl.s.barrier loc("k.py":19:1)
    memref.store %f, %p[%b] : memref<8xf32> loc("k.py":21:1)
    // CHECK: gpu.return loc(fused<"siteline.inferred">[fused<loc("k.py":10:1)>["k.py":21:1]])
    gpu.return loc("k.py":10:1)
  } loc("k.py":10:1)

  // CHECK-LABEL: gpu.func @operands
  gpu.func @operands(%p: memref<8xf32>, %i: index) kernel {
    // CHECK: memref.load {{.*}} loc(callsite("h.py":3:1 at "k.py":22:1))
    %v = memref.load %p[%i] : memref<8xf32> loc(callsite("h.py":3:1 at "k.py":22:1))
    rocdl.s.barrier loc("k.py":23:1)
    // Two users, so what made its operand; a call site stays one, marked inside.
    // CHECK: arith.addf {{.*}} loc(callsite(fused<"siteline.inferred">[fused<loc(unknown)>["h.py":3:1]] at "k.py":22:1))
    %w = arith.addf %v, %v : f32 loc(unknown)
    rocdl.s.barrier loc("k.py":24:1)
    memref.store %w, %p[%i] : memref<8xf32> loc("k.py":25:1)
    memref.store %w, %p[%i] : memref<8xf32> loc("k.py":26:1)
    gpu.return loc("k.py":27:1)
  } loc("k.py":10:1)

  // CHECK-LABEL: gpu.func @neighbours
  gpu.func @neighbours() kernel {
    // CHECK: s.barrier loc(fused<"siteline.inferred">[fused<loc(unknown)>["k.py":30:1]])
    rocdl.s.barrier loc(unknown)
    rocdl.s.barrier loc("k.py":30:1)
    // CHECK: s.barrier loc("k.py":30:1)
    // Only library frames: the nearer one.
    // CHECK-NEXT: s.barrier loc(fused<"siteline.inferred">[fused<loc("/usr/lib/python3.11/functools.py":388:1)>["k.py":30:1]])
    rocdl.s.barrier loc("/usr/lib/python3.11/functools.py":388:1)
    // CHECK-NEXT: s.barrier loc(fused<"siteline.inferred">[fused<loc(unknown)>["k.py":31:1]])
    rocdl.s.barrier loc(unknown)
    rocdl.s.barrier loc("k.py":31:1)
    // Of two, the one behind.
    // CHECK: s.barrier loc(fused<"siteline.inferred">[fused<loc(unknown)>["k.py":32:1]])
    rocdl.s.barrier loc(unknown)
    gpu.return loc("k.py":32:1)
  } loc("k.py":10:1)

  // CHECK-LABEL: gpu.func @regions
  gpu.func @regions(%c: i1) kernel {
    scf.if %c {
      // CHECK: s.barrier loc(fused<"siteline.inferred">[fused<loc(unknown)>["k.py":40:1]])
      rocdl.s.barrier loc(unknown)
      scf.yield loc(unknown)
    } loc("k.py":40:1)
    cf.br ^next loc("k.py":41:1)
  ^next:
    // A block in which nothing has a location.
    // CHECK: gpu.return loc(fused<"siteline.inferred">[fused<loc(unknown)>["k.py":41:1]])
    gpu.return loc(unknown)
  } loc("k.py":10:1)

  // Nothing to infer from: left alone.
  // CHECK-LABEL: gpu.func @nothing
  gpu.func @nothing() kernel {
    // CHECK-NEXT: gpu.return loc(unknown)
    gpu.return loc(unknown)
  } loc("k.py":10:1)
}

// Every kind of location, nested in every way, is read as a chain; each operation here has two
// chains of its class through one helper line, so the outer frame is its site.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false})' --mlir-print-debuginfo --mlir-print-local-scope | FileCheck %s
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline{infer=false})' --mlir-print-debuginfo > %t.once
// RUN: %siteline-opt %t.once --pass-pipeline='builtin.module(siteline{infer=false})' --mlir-print-debuginfo | diff %t.once -
// RUN: %siteline-opt %t.once --pass-pipeline='builtin.module(siteline-restore)' --mlir-print-debuginfo > %t.restored
// RUN: %siteline-opt %s --mlir-print-debuginfo | diff - %t.restored
// RUN: %siteline-opt %s > %t.plain
// RUN: %siteline-opt %t.once | diff %t.plain -

// CHECK-LABEL: gpu.func @k
// A block argument has a location too.
// CHECK-SAME: %{{.+}}: i32 loc(fused<loc(callsite("k.py":7:1 at "k.py":20:1))>["k.py":20:1])
gpu.module @m {
  gpu.func @k(%arg: i32 loc(callsite("k.py":7:1 at "k.py":20:1))) kernel {
    // A range keeps its end.
    // CHECK: rocdl.s.barrier loc(fused<loc(callsite("k.py":7:1 at "k.py":21:1 to 22:9))>["k.py":21:1 to 22:9])
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":21:1 to 22:9))

    // Names of functions stay with their frames.
    // CHECK: rocdl.s.barrier loc(fused<loc(callsite("h"("k.py":7:1) at "k"("k.py":23:1)))>["k"("k.py":23:1)])
    rocdl.s.barrier loc(callsite("h"("k.py":7:1) at "k"("k.py":23:1)))

    // A name around a call site is that of the innermost frame.
    // CHECK: rocdl.s.barrier loc(fused<loc("h"(callsite("k.py":7:1 at "k.py":24:1)))>["k.py":24:1])
    rocdl.s.barrier loc("h"(callsite("k.py":7:1 at "k.py":24:1)))

    // A call site on the left is the same chain as one on the right.
    // CHECK: rocdl.s.barrier loc(callsite(fused<loc(callsite(callsite("k.py":7:1 at "k.py":25:1) at "k.py":90:1))>["k.py":25:1] at "k.py":90:1))
    rocdl.s.barrier loc(callsite(callsite("k.py":7:1 at "k.py":25:1) at "k.py":90:1))
    // CHECK: rocdl.s.barrier loc(callsite(fused<loc(callsite("k.py":7:1 at callsite("k.py":26:1 at "k.py":90:1)))>["k.py":26:1] at "k.py":90:1))
    rocdl.s.barrier loc(callsite("k.py":7:1 at callsite("k.py":26:1 at "k.py":90:1)))

    // Children with one site: that one.
    // CHECK: rocdl.s.barrier loc(fused<loc(fused[callsite("k.py":7:1 at "k.py":27:1), callsite("k.py":7:9 at "k.py":27:1)])>["k.py":27:1])
    rocdl.s.barrier loc(fused[callsite("k.py":7:1 at "k.py":27:1), callsite("k.py":7:9 at "k.py":27:1)])

    // Children with different sites: their nearest common caller.
    // CHECK: rocdl.s.barrier loc(fused<loc(fused[callsite("k.py":28:1 at "k.py":95:1), callsite("k.py":29:1 at "k.py":95:1)])>["k.py":95:1])
    rocdl.s.barrier loc(fused[callsite("k.py":28:1 at "k.py":95:1), callsite("k.py":29:1 at "k.py":95:1)])

    // Without a common caller: the site of the first child, never line 0.
    // CHECK: rocdl.s.barrier loc(fused<loc(fused["k.py":30:1, "k.py":31:1])>["k.py":30:1])
    rocdl.s.barrier loc(fused["k.py":30:1, "k.py":31:1])

    // Metadata of a front end's own is no obstacle.
    // CHECK: rocdl.s.barrier loc(fused<loc(fused<"mine">[callsite("k.py":7:1 at "k.py":32:1)])>["k.py":32:1])
    rocdl.s.barrier loc(fused<"mine">[callsite("k.py":7:1 at "k.py":32:1)])

    // A fused location inside a call site.
    // CHECK: rocdl.s.barrier loc(fused<loc(callsite(fused["k.py":7:1, "k.py":8:1] at "k.py":33:1))>["k.py":33:1])
    rocdl.s.barrier loc(callsite(fused["k.py":7:1, "k.py":8:1] at "k.py":33:1))

    // Unknown parts leave what is known.
    // CHECK: rocdl.s.barrier loc(unknown)
    rocdl.s.barrier loc(unknown)
    // CHECK: rocdl.s.barrier loc(fused<loc(callsite(unknown at "k.py":34:1))>["k.py":34:1])
    rocdl.s.barrier loc(callsite(unknown at "k.py":34:1))
    // CHECK: rocdl.s.barrier loc(fused<loc(callsite("k.py":35:1 at unknown))>["k.py":35:1])
    rocdl.s.barrier loc(callsite("k.py":35:1 at unknown))
    // MLIR itself leaves unknown children out.
    // CHECK: rocdl.s.barrier loc("k.py":36:1)
    rocdl.s.barrier loc(fused[unknown, "k.py":36:1])

    // Explicit positions stay, named or not.
    // CHECK: rocdl.s.barrier loc("k.py":37:1)
    rocdl.s.barrier loc("k.py":37:1)
    // CHECK: rocdl.s.barrier loc("x"("k.py":38:1))
    rocdl.s.barrier loc("x"("k.py":38:1))
    gpu.return loc("k.py":1:1)
  } loc("k.py":1:1)
}

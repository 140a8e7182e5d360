// What MLIR does with locations on the way to DWARF, and what it gets from siteline instead: the
// line of each instruction, through upstream's or siteline's own scopes.

// RUN: %siteline compile %s --chip gfx942 --emit asm -g -o %t.s && FileCheck %s < %t.s
// RUN: %siteline verify %s --chip gfx942 | FileCheck %s --check-prefix=SAME
// SAME: {{^}}identical{{$}}

gpu.module @m {
  gpu.func @k() kernel {
    // 1. A helper's line gives way to its call sites.
    // CHECK: .loc{{	[01]}} 20
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":20:1))
    // CHECK: .loc{{	[01]}} 21
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(callsite("k.py":7:1 at "k.py":21:1))

    // 5. Fused locations with different lines do not become line 0.
    // CHECK: .loc{{	[01]}} 22
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(fused["k.py":22:1, "k.py":23:1])
    // Fused call sites with different callers: line 0 upstream.
    // CHECK: .loc{{	[01]}} 24
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(fused[callsite("k.py":7:1 at "k.py":24:1), callsite("k.py":7:1 at "k.py":25:1)])

    // 6. A name around a call site, which keeps the caller only upstream.
    // CHECK: .loc{{	[01]}} 26
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc("f"(callsite("k.py":26:1 at "k.py":90:1)))
    // CHECK: .loc{{	[01]}} 27
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc("f"(callsite("k.py":27:1 at "k.py":90:1)))
    // A caller that is unknown loses nothing of the callee.
    // CHECK: .loc{{	[01]}} 28
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(callsite("k.py":28:1 at unknown))
    // A callee that is unknown crashes upstream's scope pass; the caller is what is known.
    // CHECK: .loc{{	[01]}} 29
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(callsite(unknown at "k.py":29:1))

    // 7. Metadata of a front end is no obstacle.
    // CHECK: .loc{{	[01]}} 30
    // CHECK-NEXT: s_barrier
    rocdl.s.barrier loc(fused<"mine">["k.py":30:1])
    gpu.return loc("k.py":31:1)
  } loc("k.py":1:1)
}

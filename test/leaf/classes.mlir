// Operations of every leaf class, those of other dialects than rocdl included.

// RUN: %siteline-opt %s --allow-unregistered-dialect --pass-pipeline='builtin.module(siteline-report)' -o /dev/null 2>&1 | FileCheck %s
// RUN: %siteline-opt %s --allow-unregistered-dialect --mlir-print-op-generic | %siteline opt - --passes report --report-output %t.json -o %t.out && FileCheck %s < %t.json

// CHECK: "asm": {
// CHECK-NEXT: "operations": 1,
// CHECK: "barrier": {
// CHECK-NEXT: "operations": 4,
// CHECK: "dma": {
// CHECK-NEXT: "operations": 3,
// CHECK: "lds": {
// CHECK-NEXT: "operations": 4,
// CHECK: "mfma": {
// CHECK-NEXT: "operations": 4,
// CHECK: "sched": {
// CHECK-NEXT: "operations": 4,
// CHECK: "wait": {
// CHECK-NEXT: "operations": 4,

gpu.module @m {
  gpu.func @k(%lds: !llvm.ptr<3>, %global: !llvm.ptr<1>, %rsrc: !llvm.ptr<8>,
              %a: vector<4xf16>, %c: vector<16xf32>, %i: i32, %x: index,
              %tile: memref<64xf16, #gpu.address_space<workgroup>>, %far: memref<64xf16>) kernel {
    %m0 = rocdl.mfma.f32.32x32x8f16 %a, %a, %c, %i, %i, %i : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    %m1 = amdgpu.mfma 32x32x8 %a * %a + %c {abid = 0 : i32, cbsz = 0 : i32} blgp = none : vector<4xf16>, vector<4xf16>, vector<16xf32>
    %m2 = llvm.call_intrinsic "llvm.amdgcn.mfma.f32.32x32x8f16"(%a, %a, %c, %i, %i, %i) : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
    "tt.dot"() : () -> ()

    rocdl.s.waitcnt 0
    rocdl.s.wait.dscnt 0
    llvm.inline_asm has_side_effects "s_waitcnt vmcnt(0)", "" : () -> ()
    amdgpu.memory_counter_wait load(0)

    rocdl.s.barrier
    gpu.barrier
    rocdl.s.barrier.signal id = -1
    llvm.inline_asm has_side_effects "s_nop 0\0As_barrier", "" : () -> ()

    rocdl.raw.ptr.buffer.load.lds %rsrc, %lds, %i, %i, %i, %i, %i
    rocdl.load.to.lds %global, %lds, 4, 0, 0 : !llvm.ptr<1>
    "fly.copy"(%far, %tile) : (memref<64xf16>, memref<64xf16, #gpu.address_space<workgroup>>) -> ()

    %l0 = llvm.load %lds : !llvm.ptr<3> -> f32
    %l1 = memref.load %tile[%x] : memref<64xf16, #gpu.address_space<workgroup>>
    %l2 = vector.load %tile[%x] : memref<64xf16, #gpu.address_space<workgroup>>, vector<4xf16>
    %l3 = rocdl.ds.read.tr16.b64 %lds : <3> -> vector<4xf16>

    rocdl.sched.barrier 0
    rocdl.sched.group.barrier 8, 4, 0
    rocdl.iglp.opt 0
    rocdl.s.setprio 1

    // Neither loads of other memory nor stores are leaves.
    %o0 = llvm.load %global : !llvm.ptr<1> -> f32
    %o1 = memref.load %far[%x] : memref<64xf16>
    llvm.store %o0, %lds : f32, !llvm.ptr<3>
    llvm.inline_asm has_side_effects "v_nop", "" : () -> ()
    gpu.return
  }
}

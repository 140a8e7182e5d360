// A helper called from two sites gives way to them; what is used once stays.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo | FileCheck %s
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo > %t.once
// RUN: %siteline-opt %t.once --pass-pipeline='builtin.module(siteline)' --mlir-print-debuginfo | diff %t.once -
// RUN: %siteline-opt %s > %t.plain
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline)' | diff %t.plain -

gpu.module @m {
  // CHECK-LABEL: gpu.func @k
  gpu.func @k() kernel {
    // CHECK: rocdl.s.barrier loc(#[[FIRST:.+]])
    rocdl.s.barrier loc(#first)
    // CHECK: rocdl.s.barrier loc(#[[SECOND:.+]])
    rocdl.s.barrier loc(#second)
    // A helper that is used once is no worse than its call site, which is chosen as the outer
    // of equals.
    // CHECK: rocdl.sched.barrier 0 loc(#[[ONCE:.+]])
    rocdl.sched.barrier 0 loc(#once)
    // CHECK: rocdl.s.setprio 1 loc(#[[PLAIN:.+]])
    rocdl.s.setprio 1 loc(#plain)
    gpu.return loc(#def)
  } loc(#def)
}
#def = loc("k.py":1:1)
#helper = loc("k.py":7:3)
#k21 = loc("k.py":21:1)
#k22 = loc("k.py":22:1)
#first = loc(callsite(#helper at #k21))
#second = loc(callsite(#helper at #k22))
#once = loc(callsite("k.py":9:3 at "k.py":30:1))
#plain = loc("k.py":31:1)

// CHECK-DAG: #[[HELPER:.+]] = loc("k.py":7:3)
// CHECK-DAG: #[[K21:.+]] = loc("k.py":21:1)
// CHECK-DAG: #[[K22:.+]] = loc("k.py":22:1)
// CHECK-DAG: #[[CALL1:.+]] = loc(callsite(#[[HELPER]] at #[[K21]]))
// CHECK-DAG: #[[CALL2:.+]] = loc(callsite(#[[HELPER]] at #[[K22]]))
// CHECK-DAG: #[[FIRST]] = loc(fused<#[[CALL1]]>[#[[K21]]])
// CHECK-DAG: #[[SECOND]] = loc(fused<#[[CALL2]]>[#[[K22]]])
// CHECK-DAG: #[[K30:.+]] = loc("k.py":30:1)
// CHECK-DAG: #[[ONCE]] = loc(fused<#{{.+}}>[#[[K30]]])
// CHECK-DAG: #[[PLAIN]] = loc("k.py":31:1)

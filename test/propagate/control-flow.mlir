// Frames of bodies that a front end makes out of `if`, `for` and `while`: where they have no names,
// the sources say which line is the statement around which. The line of a statement is then no
// frame, and no site even for `outermost`.

// RUN: sed 's,@DIR@,%S/Inputs,' %s > %t.mlir
// RUN: %siteline-opt %t.mlir --pass-pipeline='builtin.module(siteline-propagate{policy=outermost origin=drop})' --mlir-print-debuginfo | FileCheck %s
// Where the source cannot be read, the statement is the outermost frame.
// RUN: sed 's,@DIR@,/nowhere,' %s > %t.gone.mlir
// RUN: %siteline-opt %t.gone.mlir --pass-pipeline='builtin.module(siteline-propagate{policy=outermost origin=drop})' --mlir-print-debuginfo | FileCheck %s --check-prefix=GONE

// CHECK-DAG: #[[A:.+]] = loc("{{.*}}control_flow.py":7:1)
// CHECK-DAG: #[[B:.+]] = loc("{{.*}}control_flow.py":8:1)
// CHECK-DAG: #[[C:.+]] = loc("{{.*}}control_flow.py":9:1)
// CHECK-DAG: #[[D:.+]] = loc("{{.*}}control_flow.py":11:1)
// CHECK-DAG: = loc(fused<"siteline.site">[#[[A]]])
// CHECK-DAG: = loc(fused<"siteline.site">[#[[B]]])
// CHECK-DAG: = loc(fused<"siteline.site">[#[[C]]])
// CHECK-DAG: = loc(fused<"siteline.site">[#[[D]]])
// CHECK-NOT: fused<"siteline.site">
// GONE-DAG: #[[FOR:.+]] = loc("/nowhere/control_flow.py":5:1)
// GONE-DAG: #[[WHILE:.+]] = loc("/nowhere/control_flow.py":10:1)
// GONE-DAG: = loc(fused<"siteline.site">[#[[FOR]]])
// GONE-DAG: = loc(fused<"siteline.site">[#[[WHILE]]])

#helper = loc("@DIR@/control_flow.py":3:1)
#library = loc("/x/site-packages/flydsl/compiler/ast_rewriter.py":99:1)
#for = loc(callsite(#library at "@DIR@/control_flow.py":5:1))
#if = loc(callsite(#library at callsite("@DIR@/control_flow.py":6:1 at #for)))
#while = loc(callsite(#library at "@DIR@/control_flow.py":10:1))

func.func @kernel() {
  rocdl.s.barrier loc(callsite(#helper at callsite("@DIR@/control_flow.py":7:1 at #if)))
  rocdl.s.barrier loc(callsite(#helper at callsite("@DIR@/control_flow.py":8:1 at #if)))
  rocdl.s.barrier loc(callsite(#helper at callsite("@DIR@/control_flow.py":9:1 at #for)))
  rocdl.s.barrier loc(callsite(#helper at callsite("@DIR@/control_flow.py":11:1 at #while)))
  return loc("@DIR@/control_flow.py":1:1)
} loc("@DIR@/control_flow.py":1:1)

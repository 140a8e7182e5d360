// Scopes made here survive a later stock scope pass.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-scopes)' --mlir-print-debuginfo > %t.scoped
// RUN: %siteline-opt %t.scoped --pass-pipeline='builtin.module(ensure-debug-info-scope-on-llvm-func{emission-kind=LineTablesOnly},siteline-scopes)' --mlir-print-debuginfo | mlir-translate --mlir-to-llvmir | FileCheck %s

// CHECK-DAG: !DILocation(line: 2, column: 1, scope: ![[H:[0-9]+]], inlinedAt: ![[ATG:[0-9]+]])
// CHECK-DAG: ![[H]] = distinct !DISubprogram(name: "h.py:2",
// CHECK-DAG: ![[ATG]] = !DILocation(line: 3, column: 1, scope: ![[G:[0-9]+]], inlinedAt: ![[ATK:[0-9]+]])
// CHECK-DAG: ![[G]] = distinct !DISubprogram(name: "g.py:3",
// CHECK-DAG: ![[ATK]] = !DILocation(line: 4, column: 1, scope: ![[K:[0-9]+]])
// CHECK-DAG: ![[K]] = distinct !DISubprogram(name: "k", linkageName: "k",

llvm.func @k() attributes {rocdl.kernel} {
  rocdl.s.barrier loc(callsite("h.py":2:1 at callsite("g.py":3:1 at "k.py":4:1)))
  llvm.return loc("k.py":5:1)
} loc("k.py":1:1)

// The report's JSON: counts by class, and every chain with its site.

// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-report{output=%t.json})' > %t.out
// RUN: %siteline-opt %s | diff %t.out -
// RUN: FileCheck %s < %t.json

// CHECK:      "schema": 1,
// CHECK-NEXT: "policy": "distinct",
// CHECK:      "name": "k",
// CHECK-NEXT: "kernel": true,
// CHECK-NEXT: "definition": "k.py:1",
// CHECK-NEXT: "operations": 4,
// CHECK-NEXT: "with_chain": 3,
// CHECK:      "barrier": {
// CHECK-NEXT:   "operations": 2,
// CHECK-NEXT:   "chains": 2,
// CHECK-NEXT:   "lines": 1,
// CHECK-NEXT:   "effective_lines": 1.0,
// CHECK-NEXT:   "site_lines": 2,
// CHECK-NEXT:   "site_effective_lines": 2.0,
// CHECK-NEXT:   "ambiguous_lines": 0
// CHECK:      "class": "barrier",
// CHECK-NEXT: "operations": 1,
// CHECK:      "file": "k.py",
// CHECK-NEXT: "line": 7,
// CHECK-NEXT: "column": 3,
// CHECK-NEXT: "function": "h"
// CHECK:      "site": 1,
// CHECK-NEXT: "shown": "k.py:7"

gpu.module @m {
  gpu.func @k() kernel {
    rocdl.s.barrier loc(callsite("h"("k.py":7:3) at "k.py":21:1))
    rocdl.s.barrier loc(callsite("h"("k.py":7:3) at "k.py":22:1))
    rocdl.s.setprio 1 loc(unknown)
    gpu.return loc("k.py":1:1)
  } loc("k.py":1:1)
}

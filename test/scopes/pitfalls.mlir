// What upstream's scope pass loses, merges to line 0 or crashes on shows the right line.

// RUN: %siteline compile %s --chip gfx942 -g --no-sites -O 0 --emit llvm | FileCheck %s
// RUN: %siteline compile %s --chip gfx942 -g --no-sites -O 0 --emit llvm | not grep 'DILocation(line: 0'
// RUN: %siteline-opt %s --pass-pipeline='builtin.module(siteline-scopes)' --mlir-print-debuginfo | FileCheck %s --check-prefix=MLIR

gpu.module @m {
  // A call site of a global is no location of an instruction, and stays.
  llvm.mlir.global internal @lds() {addr_space = 3 : i32} : !llvm.array<16 x i8> loc(callsite("h.py":1:1 at "k.py":2:1))

  // CHECK-LABEL: define amdgpu_kernel void @k
  llvm.func @k(%p: !llvm.ptr<1>) attributes {rocdl.kernel} {
    %c = llvm.mlir.constant(1 : i32) : i32 loc("k.py":1:1)
    // The unknown part is left out; upstream crashes.
    // CHECK: store {{.*}} !dbg ![[UNKNOWNCALLEE:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(callsite(unknown at "k.py":20:1))
    // CHECK: store {{.*}} !dbg ![[UNKNOWNCALLER:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(callsite("h.py":3:1 at unknown))
    // A name around a call site names its innermost frame, and keeps both.
    // CHECK: store {{.*}} !dbg ![[NAMED:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc("named"(callsite("h.py":4:1 at "k.py":22:1)))
    // Fused call sites with one caller: the caller.
    // CHECK: store {{.*}} !dbg ![[COMMON:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused[callsite("h.py":5:1 at "k.py":23:1), callsite("h.py":6:1 at "k.py":23:1)])
    // With one line: that one, with its column.
    // CHECK: store {{.*}} !dbg ![[SAME:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused["k.py":24:7, "k.py":24:9])
    // With nothing in common: the first.
    // CHECK: store {{.*}} !dbg ![[FIRST:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused[callsite("h.py":5:1 at "k.py":25:1), callsite("h.py":5:1 at "k.py":26:1)])
    // A range is where it starts.
    // CHECK: store {{.*}} !dbg ![[RANGE:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc("k.py":27:1 to 28:5)
    // Metadata of any kind on a call site changes nothing.
    // CHECK: store {{.*}} !dbg ![[META:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused<"mark">[callsite("h.py":7:1 at "k.py":29:1)])
    // One original in a one-child fused location is history: the child is shown.
    // CHECK: store {{.*}} !dbg ![[SITE:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused<loc(callsite("h.py":8:1 at "k.py":30:1))>["k.py":30:1])
    // Two sites with their originals, merged into one by CSE: their common line.
    // CHECK: store {{.*}} !dbg ![[MERGED:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused[fused<loc(callsite("h.py":8:1 at "k.py":31:1))>["k.py":31:1], fused<loc(callsite("h.py":9:1 at "k.py":31:1))>["k.py":31:1]])
    // One number in two files: two lines, of which the first is shown, in its own file.
    // CHECK: store {{.*}} !dbg ![[FILES:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(fused["g.py":32:1, "k.py":32:1])
    // A caller in a file of its own stays in it.
    // CHECK: store {{.*}} !dbg ![[OTHER:[0-9]+]]
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(callsite("h.py":9:1 at callsite("g.py":33:1 at "k.py":34:1)))
    // Unknown: no line.
    // CHECK: store volatile i32 1, ptr addrspace(1) %{{[0-9]+}}, align 4{{$}}
    llvm.store volatile %c, %p : i32, !llvm.ptr<1> loc(unknown)
    // A call must have a line.
    // CHECK: call void @helper(), !dbg ![[CALL:[0-9]+]]
    llvm.call @helper() : () -> () loc(unknown)
    llvm.return loc(unknown)
  } loc("k.py":10:1)

  // A function without a location has a scope all the same.
  // CHECK: define internal void @helper() {{.*}}!dbg ![[HELPER:[0-9]+]]
  llvm.func internal @helper() {
    rocdl.s.barrier loc("h.py":40:1)
    llvm.return loc(unknown)
  } loc(unknown)

  // CHECK-DAG: ![[UNKNOWNCALLEE]] = !DILocation(line: 20, column: 1, scope: ![[K:[0-9]+]])
  // CHECK-DAG: ![[UNKNOWNCALLER]] = !DILocation(line: 3, column: 1, scope: ![[H:[0-9]+]])
  // CHECK-DAG: ![[NAMED]] = !DILocation(line: 4, column: 1, scope: ![[N:[0-9]+]], inlinedAt: ![[N22:[0-9]+]])
  // CHECK-DAG: ![[N]] = distinct !DISubprogram(name: "named",
  // CHECK-DAG: ![[N22]] = !DILocation(line: 22, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[COMMON]] = !DILocation(line: 23, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[SAME]] = !DILocation(line: 24, column: 7, scope: ![[K]])
  // CHECK-DAG: ![[FIRST]] = !DILocation(line: 5, column: 1, scope: ![[H5:[0-9]+]], inlinedAt: ![[AT25:[0-9]+]])
  // CHECK-DAG: ![[AT25]] = !DILocation(line: 25, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[RANGE]] = !DILocation(line: 27, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[META]] = !DILocation(line: 7, column: 1, scope: ![[H7:[0-9]+]], inlinedAt: ![[AT29:[0-9]+]])
  // CHECK-DAG: ![[AT29]] = !DILocation(line: 29, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[SITE]] = !DILocation(line: 30, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[MERGED]] = !DILocation(line: 31, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[FILES]] = !DILocation(line: 32, column: 1, scope: ![[G:[0-9]+]])
  // CHECK-DAG: ![[G]] = distinct !DILexicalBlockFile(scope: ![[K]], file: ![[GFILE:[0-9]+]],
  // CHECK-DAG: ![[GFILE]] = !DIFile(filename: "g.py",
  // CHECK-DAG: ![[OTHER]] = !DILocation(line: 9, column: 1, scope: ![[H9:[0-9]+]], inlinedAt: ![[AT33:[0-9]+]])
  // CHECK-DAG: ![[AT33]] = !DILocation(line: 33, column: 1, scope: ![[G33:[0-9]+]], inlinedAt: ![[AT34:[0-9]+]])
  // CHECK-DAG: ![[G33]] = distinct !DISubprogram(name: "g.py:33", {{.*}}file: ![[GFILE]],
  // CHECK-DAG: ![[AT34]] = !DILocation(line: 34, column: 1, scope: ![[K]])
  // CHECK-DAG: ![[CALL]] = !DILocation(line: 10, scope: ![[K]])
}
// The children of a fused location are kept.
// MLIR-DAG: #[[A:.+]] = loc("k.py":24:7)
// MLIR-DAG: #[[BOTH:.+]] = loc(fused[#[[A]], #{{.+}}])
// MLIR-DAG: = loc(fused<#[[BOTH]]>[#[[A]]])

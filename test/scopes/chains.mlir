// Every frame of a chain gets the subprogram of its function, in its file; the outermost is in
// the function's own.

// RUN: split-file %s %t && cd %t
// RUN: %siteline-opt k.mlir --pass-pipeline='builtin.module(siteline-scopes)' --mlir-print-debuginfo > scoped.mlir
// RUN: FileCheck k.mlir < scoped.mlir
// RUN: %siteline-opt scoped.mlir --pass-pipeline='builtin.module(siteline-scopes)' --mlir-print-debuginfo > again.mlir
// RUN: diff scoped.mlir again.mlir
// RUN: %siteline compile k.mlir --chip gfx942 -g --no-sites -o k.hsaco
// RUN: llvm-dwarfdump --verify k.hsaco | FileCheck k.mlir --check-prefix=VERIFY
// RUN: %siteline compile k.mlir --chip gfx942 -g --no-sites -O 0 --emit llvm | FileCheck k.mlir --check-prefix=LLVM

//--- helpers.py
def deep(a):
    return barrier()


class Tile:
    @decorated
    def load(self):
        def one(at):
            return deep(at)

        return one(0)
//--- k.mlir
// VERIFY: No errors.

// Three levels, none lost: deep <- one <- load <- the kernel.
// LLVM: define amdgpu_kernel void @k(){{.*}} !dbg ![[K:[0-9]+]]
// LLVM: call void @llvm.amdgcn.s.barrier(), !dbg ![[BARRIER:[0-9]+]]
// LLVM: call void @llvm.amdgcn.s.barrier(), !dbg ![[NAMED:[0-9]+]]
// LLVM: call void @llvm.amdgcn.s.barrier(), !dbg ![[NOSOURCE:[0-9]+]]
// LLVM: call void @llvm.amdgcn.s.barrier(), !dbg ![[OWNFILE:[0-9]+]]
// LLVM-DAG: ![[K]] = distinct !DISubprogram(name: "k", linkageName: "k", scope: ![[KFILE:[0-9]+]], file: ![[KFILE]], line: 10,
// LLVM-DAG: ![[BARRIER]] = !DILocation(line: 2, column: 12, scope: ![[DEEP:[0-9]+]], inlinedAt: ![[AT1:[0-9]+]])
// LLVM-DAG: ![[DEEP]] = distinct !DISubprogram(name: "deep", scope: ![[HFILE:[0-9]+]], file: ![[HFILE]], line: 1,
// LLVM-DAG: ![[HFILE]] = !DIFile(filename: "helpers.py", directory: "")
// LLVM-DAG: ![[AT1]] = !DILocation(line: 9, column: 20, scope: ![[ONE:[0-9]+]], inlinedAt: ![[AT2:[0-9]+]])
// LLVM-DAG: ![[ONE]] = distinct !DISubprogram(name: "Tile.load.<locals>.one", {{.*}}line: 8,
// LLVM-DAG: ![[AT2]] = !DILocation(line: 11, column: 16, scope: ![[LOAD:[0-9]+]], inlinedAt: ![[AT3:[0-9]+]])
// LLVM-DAG: ![[LOAD]] = distinct !DISubprogram(name: "Tile.load", {{.*}}line: 7,
// LLVM-DAG: ![[AT3]] = !DILocation(line: 20, column: 3, scope: ![[K]])
// The front end's names come first; a file that is not there gives no line.
// LLVM-DAG: ![[NAMED]] = !DILocation(line: 2, column: 12, scope: ![[RENAMED:[0-9]+]],
// LLVM-DAG: ![[RENAMED]] = distinct !DISubprogram(name: "renamed", scope: ![[HFILE]], file: ![[HFILE]], type:
// LLVM-DAG: ![[NOSOURCE]] = !DILocation(line: 5, column: 1, scope: ![[PLACE:[0-9]+]],
// LLVM-DAG: ![[PLACE]] = distinct !DISubprogram(name: "gone.py:5", {{.*}}line: 5,
// A frame in another file than its function is in that file.
// LLVM-DAG: ![[OWNFILE]] = !DILocation(line: 3, column: 1, scope: ![[OTHER:[0-9]+]])
// LLVM-DAG: ![[OTHER]] = distinct !DILexicalBlockFile(scope: ![[K]], file: ![[OTHERFILE:[0-9]+]], discriminator: 0)
// LLVM-DAG: ![[OTHERFILE]] = !DIFile(filename: "dir/other.py", directory: "")

// CHECK: llvm.func @k
// CHECK-NEXT: rocdl.s.barrier loc(#[[LOC:.+]])
// CHECK: #[[LOC]] = loc(callsite(#{{.+}} at #

gpu.module @m {
  llvm.func @k() attributes {rocdl.kernel} {
    rocdl.s.barrier loc(callsite("helpers.py":2:12 at callsite("helpers.py":9:20 at callsite("helpers.py":11:16 at "k.py":20:3))))
    rocdl.s.barrier loc(callsite("renamed"("helpers.py":2:12) at "k.py":21:3))
    rocdl.s.barrier loc(callsite("gone.py":5:1 at "k.py":22:3))
    rocdl.s.barrier loc("dir/other.py":3:1)
    llvm.return loc("k.py":23:1)
  } loc("k.py":10:1)
}

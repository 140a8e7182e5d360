//===- Passes.td - The passes of siteline ------------------*- tablegen -*-===//
//
// Every pass and option of siteline, defined once: mlir-tblgen makes the C++
// bases of the passes and docs/passes.md from it.
//
//===----------------------------------------------------------------------===//

#ifndef SITELINE_PASSES
#define SITELINE_PASSES

include "mlir/Pass/PassBase.td"

class SitelineOptions {
  list<Option> sites = [
    Option<"policy", "policy", "std::string", [{"distinct"}],
      "How the site of a chain is chosen: distinct, unique, innermost, "
      "outermost, file:GLOB, skip:GLOB or depth:N">,
    Option<"leaves", "leaves", "std::string", [{"all"}],
      "Classes that get a site, separated by '+': mfma, wait, barrier, dma, "
      "lds, sched, asm, other, all">,
    ListOption<"leaf", "leaf", "std::string",
      "Operation names to count to a leaf class, as CLASS=GLOB">,
    ListOption<"library", "library", "std::string",
      "Globs for paths of code that the kernel's author did not write">
  ];
}

def SitelinePropagate : Pass<"siteline-propagate"> {
  let summary = "Set every operation's location to its site";
  let description = [{
    Sets the location of every operation and block argument of the device
    functions to its site, the frame of its chain that a profiler should show.
    Frames outside the site stay as call sites; host frames, and frames of
    statements whose bodies a front end turned into functions, are left out.
    The latter are known by the generated functions' names; where frames have
    none, from the source, where it can be read: the line of an `if`, `for` or
    `while` right outside a line of its body.

    The original location becomes metadata of a one-child fused location around
    the innermost frame, where `siteline-restore` finds it:

    ```mlir
    // helper <- first call <- kernel, the helper being called from two sites:
    loc(callsite("k.py":7:1 at callsite("k.py":11:1 at "k.py":21:1)))
    // becomes, under the policy `distinct`:
    loc(callsite(fused<loc(callsite(...))>["k.py":11:1] at "k.py":21:1))
    ```

    A location that is a plain file position was set explicitly and stays.
    Locations that carry a debug-info scope stay. Running the pass twice changes
    nothing, and running it with another policy gives that policy's sites, since
    sites are always chosen from the originals.

    Without an `origin` to keep, a mark takes its place, so that a second run
    leaves the site alone.
  }];
  let options = !listconcat(SitelineOptions<>.sites, [
    Option<"origin", "origin", "std::string", [{"keep"}],
      "What becomes of original locations: keep (as metadata) or drop">
  ]);
}

def SitelineRestore : Pass<"siteline-restore"> {
  let summary = "Put original locations back";
  let description = [{
    Replaces every location that siteline set by the original that it kept.
    After `siteline-propagate` with `origin=keep`, this gives the input back.
  }];
}

def SitelineInfer : Pass<"siteline-infer"> {
  let summary = "Give operations without a usable location one that is inferred";
  let description = [{
    An operation whose location is unknown, has only library frames, or is the
    line of the function itself gets the site of the operation that it belongs
    to: the first of these that has one.

    1. The only user, followed from user to user: a constant or index
       arithmetic is made for what it feeds.
    2. The last of the operations in the same block that define its operands: a
       conversion of a result belongs to what made the result.
    3. The nearest operation in the block; of two, the one behind.
    4. The operation around the region.
    5. The nearest operation in the function, for blocks without any location.

    Inferred locations are marked, with the original inside, so that
    `siteline-restore` finds it:
    `fused<"siteline.inferred">[fused<original>["k.py":11:1]]`. They are never
    taken for the site of another operation, so a second run changes nothing.
  }];
  let options = [
    ListOption<"library", "library", "std::string",
      "Globs for paths of code that the kernel's author did not write">,
    Option<"origin", "origin", "std::string", [{"keep"}],
      "What becomes of original locations: keep (as metadata) or drop">
  ];
}

def SitelineScopes : Pass<"siteline-scopes"> {
  let summary = "Give functions in the LLVM dialect scopes for line tables";
  let description = [{
    Takes the place of `ensure-debug-info-scope-on-llvm-func`, just before the
    translation to LLVM IR. Every function of every chain gets one subprogram:
    named as the chain's name locations say, else as the source says (the `def`
    around the line, in a Python file that can be read), else `file:line`; in its
    own file, with the line of its definition where the source says it. All
    levels of a chain stay, as `inlinedAt`. Only line tables are asked for.

    A fused location shows the one line of its children, or their nearest common
    caller, or the first; never line 0. What it was stays as metadata. Parts of a
    call site that are unknown are left out. Inferred locations carry the
    discriminator 0x517e11e. Functions that have a scope stay as they are.
  }];
  let options = [
    ListOption<"library", "library", "std::string",
      "Globs for paths of code that the kernel's author did not write">
  ];
}

def SitelineReport : Pass<"siteline-report"> {
  let summary = "Print chains, sites and coverage as JSON";
  let description = [{
    Prints one JSON document with the chains of every device function, the site
    that the policy chooses for each, what the locations show now, and counts by
    leaf class. Changes nothing.

    `schema` is the number of the form, now 1, and `policy` the policy. Each of
    `functions` has `name`, `kernel` (whether it is marked as one), `definition`
    (`file:line`, or null), `operations`, `with_chain` (operations that have a
    chain), and:

    - `classes`: for each leaf class its `operations`, distinct `chains`, `lines`
      and `effective_lines` that the locations show now, `site_lines` and
      `site_effective_lines` that the sites are on, and `ambiguous_lines`, the
      sites that two or more chains of the class share.
    - `chains`: for each distinct chain its `class`, how many `operations` have
      it, its `frames` (innermost first, each with `file`, `line`, `column` and
      `function`), which of them is the `site`, and what is `shown` now.
  }];
  let options = !listconcat(SitelineOptions<>.sites, [
    Option<"output", "output", "std::string", [{"-"}],
      "The file to write; '-' is standard error">
  ]);
}

#endif // SITELINE_PASSES

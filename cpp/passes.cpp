//===- passes.cpp - Pass classes over Rust functions ----------------------===//
//
// Each pass parses its options and calls one Rust function, which the command
// line calls too. What that function reports becomes a diagnostic.
//
//===----------------------------------------------------------------------===//

#include "passes.h"

#include "mlir/IR/Operation.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/ADT/StringRef.h"

#include "siteline/src/plugin.rs.h"

#include <algorithm>
#include <mutex>

namespace siteline {
#define GEN_PASS_DECL
#include "Passes.h.inc"
#define GEN_PASS_DEF_SITELINEINFER
#define GEN_PASS_DEF_SITELINEPROPAGATE
#define GEN_PASS_DEF_SITELINEREPORT
#define GEN_PASS_DEF_SITELINERESTORE
#define GEN_PASS_DEF_SITELINESCOPES
#include "Passes.h.inc"
} // namespace siteline

using namespace mlir;

namespace {

rust::Vec<rust::String> toRust(llvm::ArrayRef<std::string> texts) {
  rust::Vec<rust::String> result;
  for (const std::string &text : texts)
    result.push_back(rust::String::lossy(text));
  return result;
}

/// The options that choose sites. Lists of classes use '+', since a comma ends
/// an option's value in a textual pipeline.
siteline::SiteOptions siteOptions(llvm::StringRef policy, std::string leaves,
                                  llvm::ArrayRef<std::string> leaf,
                                  llvm::ArrayRef<std::string> library) {
  std::replace(leaves.begin(), leaves.end(), '+', ',');
  return {rust::String::lossy(policy.data(), policy.size()),
          rust::String::lossy(leaves), toRust(leaf), toRust(library)};
}

size_t address(Operation *op) { return reinterpret_cast<size_t>(op); }

/// Turns what a Rust function reports into a diagnostic.
void finish(Pass &pass, Operation *op, const siteline::Report &report,
            llvm::function_ref<void()> fail) {
  if (report.ok)
    return;
  op->emitError() << pass.getArgument() << ": "
                  << llvm::StringRef(report.message.data(),
                                     report.message.size());
  fail();
}

struct Propagate : siteline::impl::SitelinePropagateBase<Propagate> {
  using SitelinePropagateBase::SitelinePropagateBase;

  void runOnOperation() override {
    Operation *op = getOperation();
    auto report = siteline::run_propagate(address(op), siteOptions(policy, leaves, leaf, library),
                                          rust::String::lossy(origin));
    finish(*this, op, report, [&] { signalPassFailure(); });
  }
};

struct Infer : siteline::impl::SitelineInferBase<Infer> {
  using SitelineInferBase::SitelineInferBase;

  void runOnOperation() override {
    Operation *op = getOperation();
    auto report = siteline::run_infer(address(op), toRust(library),
                                      rust::String::lossy(origin));
    finish(*this, op, report, [&] { signalPassFailure(); });
  }
};

struct Restore : siteline::impl::SitelineRestoreBase<Restore> {
  using SitelineRestoreBase::SitelineRestoreBase;

  void runOnOperation() override {
    Operation *op = getOperation();
    finish(*this, op, siteline::run_restore(address(op)),
           [&] { signalPassFailure(); });
  }
};

struct Scopes : siteline::impl::SitelineScopesBase<Scopes> {
  using SitelineScopesBase::SitelineScopesBase;

  void runOnOperation() override {
    Operation *op = getOperation();
    finish(*this, op, siteline::run_scopes(address(op), toRust(library)),
           [&] { signalPassFailure(); });
  }
};

struct Report : siteline::impl::SitelineReportBase<Report> {
  using SitelineReportBase::SitelineReportBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    Operation *op = getOperation();
    auto report = siteline::run_report(address(op), siteOptions(policy, leaves, leaf, library),
                                       rust::String::lossy(output));
    finish(*this, op, report, [&] { signalPassFailure(); });
  }
};

/// The options of the `siteline` pipeline: those of its passes.
struct PipelineOptions : PassPipelineOptions<PipelineOptions> {
  Option<std::string> policy{*this, "policy", llvm::cl::init("distinct")};
  Option<std::string> leaves{*this, "leaves", llvm::cl::init("all")};
  ListOption<std::string> leaf{*this, "leaf"};
  ListOption<std::string> library{*this, "library"};
  Option<std::string> origin{*this, "origin", llvm::cl::init("keep")};
  Option<bool> infer{*this, "infer", llvm::cl::init(true)};
};

void buildPipeline(OpPassManager &manager, const PipelineOptions &options) {
  siteline::SitelinePropagateOptions propagate;
  propagate.policy = options.policy;
  propagate.leaves = options.leaves;
  propagate.leaf.assign(options.leaf.begin(), options.leaf.end());
  propagate.library.assign(options.library.begin(), options.library.end());
  propagate.origin = options.origin;
  manager.addPass(std::make_unique<Propagate>(propagate));
  if (!options.infer)
    return;
  siteline::SitelineInferOptions infer;
  infer.library = propagate.library;
  infer.origin = options.origin;
  manager.addPass(std::make_unique<Infer>(infer));
}

} // namespace

void siteline::register_passes() {
  static std::once_flag once;
  std::call_once(once, [] {
    PassRegistration<Propagate>();
    PassRegistration<Infer>();
    PassRegistration<Restore>();
    PassRegistration<Scopes>();
    PassRegistration<::Report>();
    PassPipelineRegistration<PipelineOptions>(
        "siteline", "Give every operation its site", buildPipeline);
  });
}

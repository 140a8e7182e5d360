//===- driver.cpp - What the driver needs and no C API has ----------------===//

#include "driver.h"

#include "mlir/CAPI/IR.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

static llvm::StringRef toRef(rust::Str text) {
  return {text.data(), text.size()};
}

size_t siteline::parse_module(size_t context, rust::Slice<const uint8_t> source,
                              rust::Str name) {
  auto *mlirContext = reinterpret_cast<MLIRContext *>(context);
  llvm::StringRef text(reinterpret_cast<const char *>(source.data()),
                       source.size());
  auto module = parseSourceString<ModuleOp>(
      text, ParserConfig(mlirContext, /*verifyAfterParse=*/true), toRef(name));
  return module ? reinterpret_cast<size_t>(module.release().getOperation()) : 0;
}

bool siteline::is_amdgpu_chip(rust::Str chip) {
  llvm::Triple triple("amdgcn-amd-amdhsa");
  std::string error;
  const auto *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return false;
  std::unique_ptr<llvm::MCSubtargetInfo> info(
      target->createMCSubtargetInfo(triple, "", ""));
  return info && info->isCPUStringValid(toRef(chip));
}

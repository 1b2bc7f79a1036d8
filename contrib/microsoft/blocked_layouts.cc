// SPDX-License-Identifier: Apache-2.0
// com.microsoft.nchwc: what onnxruntime writes when it is asked to save a model that it has
// optimised for the machine it runs on. Weights and values are stored in blocks of as many
// channels as that machine's vectors hold, 4, 8 or 16, and the file does not say how many.
#include "contrib/microsoft/families.h"

namespace onward::microsoft {
namespace {

constexpr std::string_view kBlockedDomain = "com.microsoft.nchwc";

std::vector<Expr> Blocked(const Call& call) {
  return call.Refuse(
      "stores channels in blocks of a size that depends on the machine the file was written on, "
      "and that the file does not tell; fix: optimise the original model again at level extended "
      "(ORT_ENABLE_EXTENDED), which keeps the standard's layout");
}

}  // namespace

void RegisterBlockedLayouts(FunctionLibrary& library) {
  for (const char* op : {"Conv", "MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool",
                         "ReorderInput", "ReorderOutput", "Upsample"}) {
    library.Add(op, Define(Blocked, 0), kBlockedDomain);
  }
}

}  // namespace onward::microsoft

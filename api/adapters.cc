// SPDX-License-Identifier: Apache-2.0
#include "onward/adapters.h"

#include <utility>

#include "api/access.h"
#include "core/base/status.h"
#include "training_info/adapters/files.h"
#include "training_info/export.h"

namespace onward::api {
namespace {

MergeMode ModeOf(AdapterMerge how) {
  switch (how) {
    case AdapterMerge::kFloatWeights: return MergeMode::kFloat;
    case AdapterMerge::kDequantize: return MergeMode::kDequantize;
    case AdapterMerge::kRemove: return MergeMode::kDrop;
  }
  return MergeMode::kFloat;
}

}  // namespace

Result<std::vector<Adapter>> Adapters(const Model& model) {
  return Converted<std::vector<Adapter>>(
      [&] { return AdaptersOf(Access::FromModel(model)); },
      [](std::vector<onward::Adapter> found) {
        std::vector<Adapter> adapters;
        for (onward::Adapter& a : found) {
          adapters.push_back(
              {std::move(a.target), std::move(a.a), std::move(a.b), a.rank, a.alpha});
        }
        return adapters;
      });
}

Result<MergedAdapters> MergeAdapters(const Model& model, AdapterMerge how,
                                     const Environment& environment) {
  return Converted<MergedAdapters>(
      [&]() -> absl::StatusOr<MergedModel> {
        ONWARD_ASSIGN_OR_RETURN(const PlainModel plain, ExportPlain(Access::FromModel(model)));
        return WithAdaptersMerged(plain.model, ModeOf(how), Access::FromEnvironment(environment));
      },
      [](MergedModel done) {
        return MergedAdapters{Access::ToModel(std::move(done.model)), std::move(done.merged.merged),
                              std::move(done.merged.kept)};
      });
}

Result<Model> ExtractAdapters(const Model& trained) {
  return ConvertedModel([&] { return AdaptersApart(Access::FromModel(trained)); });
}

Result<Model> ApplyAdapters(const Model& model, const Model& adapters,
                            const Environment& environment) {
  return Converted<Model>(
      [&] {
        return WithAdapters(Access::FromModel(model), Access::FromModel(adapters),
                            Access::FromEnvironment(environment));
      },
      [](AppliedModel applied) { return Access::ToModel(std::move(applied.model)); });
}

}  // namespace onward::api

// SPDX-License-Identifier: Apache-2.0
#include "data/pictures/picture_preparation.h"

#include <filesystem>
#include <set>
#include <system_error>

namespace onward {
namespace {

bool AreFiles(const std::string& kind) { return kind == "images" || kind == "tar"; }

bool ArePictures(const std::string& kind) {
  const std::set<std::string> arrays = {"idx", "mnist", "cifar", "digits", "fashion"};
  return AreFiles(kind) || arrays.contains(kind);
}

void ApplySize(const PicturePreparation& p, DataOptions* o) {
  if (!o->pictures.size) {
    o->pictures.size = Shape{p.height, p.width};
    o->pictures.fit = p.fit;
  }
  if (o->pictures.channels == 0 && (p.channels == 1 || p.channels == 3)) {
    o->pictures.channels = static_cast<int>(p.channels);
  }
}

}  // namespace

const PicturePreparation* PicturesKnown(const DataContext& context, const std::string& kind) {
  const Preparation* known = context.preparation;
  return known != nullptr && known->pictures && ArePictures(kind) ? &*known->pictures : nullptr;
}

void ApplyToFiles(const PicturePreparation& p, DataSpec* spec) {
  DataOptions& o = spec->options;
  if (AreFiles(spec->kind)) ApplySize(p, &o);
  if (o.scales()) return;
  o.scale = p.scale;
  o.shift = p.shift;
  o.mean = p.mean;
  o.std = p.deviation;
}

void ApplyToArrays(const PicturePreparation& p, const LoadedData& data, DataSpec* spec) {
  if (AreFiles(spec->kind) || data.arrays.empty()) return;
  const Shape& stored = data.arrays[0].rows->shape();
  if (stored.rank() == 3 && stored != Shape{p.channels, p.height, p.width}) {
    ApplySize(p, &spec->options);
  }
}

void TakeUnlabelled(const DataContext& context, DataSpec* spec) {
  std::error_code error;
  if (!context.labels_optional || spec->kind != "images" || spec->options.label ||
      !std::filesystem::is_directory(spec->path, error)) {
    return;
  }
  for (std::filesystem::directory_iterator it(spec->path, error), end; !error && it != end;
       it.increment(error)) {
    std::error_code unknown;
    if (it->is_directory(unknown)) return;
  }
  spec->options.label = "none";
}

std::optional<PicturePreparation> PicturesOf(const DataSpec& spec, const LoadedData& data) {
  if (!ArePictures(spec.kind) || data.arrays.empty()) return std::nullopt;
  const RowSource& rows = *data.arrays[0].rows;
  if (rows.dtype() != DType::kUint8 || rows.shape().rank() != 3) return std::nullopt;
  const DataOptions& o = spec.options;
  PicturePreparation p;
  p.channels = o.pictures.channels != 0 ? o.pictures.channels : rows.shape()[0];
  p.height = o.pictures.size ? (*o.pictures.size)[0] : rows.shape()[1];
  p.width = o.pictures.size ? (*o.pictures.size)[1] : rows.shape()[2];
  p.fit = o.pictures.fit;
  p.scale = o.scale.value_or(data.arrays[0].default_scale);
  p.shift = o.shift.value_or(0);
  p.mean = o.mean;
  p.deviation = o.std;
  return p;
}

}  // namespace onward

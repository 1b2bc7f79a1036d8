// SPDX-License-Identifier: Apache-2.0
#include "data/mixing.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status.h"
#include "core/tensor/dispatch.h"
#include "data/dataset_view.h"
#include "data/pictures/picture_arrays.h"

namespace onward {
namespace {

constexpr int64_t kStream = 0x6d6978;  // of what a batch draws, beside those of its examples

Shape ExampleShape(const Tensor& batch) { return Shape(batch.shape().dims().subspan(1)); }

// Marsaglia, Tsang: "A simple method for generating gamma variables"; below 1 by a power of a
// uniform variable.
double DrawGamma(double shape, Random& random) {
  if (shape < 1) {
    const double boost = std::pow(1 - random.Uniform(), 1 / shape);
    return DrawGamma(shape + 1, random) * boost;
  }
  const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
  while (true) {
    const double u1 = 1 - random.Uniform(), u2 = random.Uniform();
    const double x = std::sqrt(-2 * std::log(u1)) * std::cos(2 * std::numbers::pi * u2);
    const double v = std::pow(1 + c * x, 3);
    if (v <= 0) continue;
    if (std::log(1 - random.Uniform()) < x * x / 2 + d - d * v + d * std::log(v)) return d * v;
  }
}

// A patch of about 1 - weight of the area, somewhere; what lies outside is cut off.
Patch DrawPatch(double weight, int64_t height, int64_t width, Random& random) {
  const auto range = [&](int64_t side, int64_t* begin, int64_t* length) {
    const auto middle = static_cast<int64_t>(random.Below(static_cast<uint64_t>(side)));
    const int64_t cut = std::llround(static_cast<double>(side) * std::sqrt(1 - weight));
    *begin = std::max<int64_t>(0, middle - cut / 2);
    *length = std::min(side, middle - cut / 2 + cut) - *begin;
  };
  Patch patch;
  range(height, &patch.top, &patch.height);
  range(width, &patch.left, &patch.width);
  return patch;
}

class SoftLabels : public DatasetView {
 public:
  SoftLabels(std::shared_ptr<const Dataset> data, int64_t classes, size_t label)
      : DatasetView(std::move(data)), classes_(classes), label_(label), hints_(base().hints()) {}

  std::vector<FieldInfo> fields() const override {
    std::vector<FieldInfo> fields = base().fields();
    fields[label_].dtype = DType::kFloat;
    fields[label_].shape = {classes_};
    return fields;
  }
  int64_t classes() const override { return classes_; }
  bool rows_are_independent() const override {
    return !hints_.mixes() && base().rows_are_independent();
  }

  // Mixing is done here, and asked for no more.
  TrainingHints hints() const override { return {.balance = hints_.balance}; }

  absl::Status Fill(absl::Span<const int64_t> indices, std::vector<Tensor>* batch) const override {
    std::vector<Tensor> hard = Hard(batch);
    ONWARD_RETURN_IF_ERROR(base().Fill(indices, &hard));
    return Soften(std::move(hard), batch);
  }
  absl::Status FillVaried(absl::Span<const int64_t> indices, absl::Span<const uint64_t> keys,
                          std::vector<Tensor>* batch) const override {
    std::vector<Tensor> hard = Hard(batch);
    ONWARD_RETURN_IF_ERROR(base().FillVaried(indices, keys, &hard));
    ONWARD_RETURN_IF_ERROR(Soften(std::move(hard), batch));
    if (hints_.mixes() && keys.size() > 1) Mix(keys, batch);
    return absl::OkStatus();
  }

 private:
  // The tensors of a batch to be filled again, but for the label, which has another type.
  std::vector<Tensor> Hard(std::vector<Tensor>* batch) const {
    std::vector<Tensor> hard = *batch;
    if (label_ < hard.size()) hard[label_] = Tensor();
    return hard;
  }

  absl::Status Soften(std::vector<Tensor> hard, std::vector<Tensor>* batch) const {
    const Tensor labels = std::move(hard[label_]);
    const Shape shape{labels.elements(), classes_};
    Tensor soft;
    if (label_ < batch->size()) soft = std::move((*batch)[label_]);
    if (soft.dtype() != DType::kFloat || soft.shape() != shape) soft = Tensor(DType::kFloat, shape);
    std::fill_n(soft.data<float>(), soft.elements(), 0.0f);
    for (int64_t i = 0; i < labels.elements(); ++i) {
      const int64_t label = labels.data<int64_t>()[i];
      if (label >= classes_) {
        return absl::InvalidArgumentError(
            absl::StrCat(source(), ": label ", label, " is outside the ", classes_, " classes"));
      }
      if (label >= 0) soft.data<float>()[i * classes_ + label] = 1;
    }
    *batch = std::move(hard);
    (*batch)[label_] = std::move(soft);
    return absl::OkStatus();
  }

  void Mix(absl::Span<const uint64_t> keys, std::vector<Tensor>* batch) const {
    Random random(keys.front(), static_cast<uint64_t>(kStream));
    const bool both = hints_.mixup > 0 && hints_.cutmix > 0;
    const bool cut = both ? random.Uniform() < 0.5 : hints_.cutmix > 0;
    double weight = DrawBeta(cut ? hints_.cutmix : hints_.mixup, random);
    for (size_t k = 0; k < batch->size(); ++k) {
      Tensor& field = (*batch)[k];
      if (k == label_ || !IsFloating(field.dtype())) continue;
      if (!cut) {
        MixRows(weight, &field);
      } else if (const auto layout = LayoutOf(ExampleShape(field)); layout.has_value()) {
        const auto [height, width, channels] = layout->info;
        const Patch patch = DrawPatch(weight, height, width, random);
        weight = 1 - static_cast<double>(patch.height * patch.width) /
                         static_cast<double>(height * width);
        SwapPatches(patch, &field);
        break;  // the label can follow one picture
      }
    }
    MixRows(weight, &(*batch)[label_]);
  }

  int64_t classes_;
  size_t label_;
  TrainingHints hints_;
};

absl::Status CheckCanMix(const Dataset& data) {
  const TrainingHints hints = data.hints();
  bool floats = false, pictures = false;
  for (const FieldInfo& f : data.fields()) {
    if (f.is_label || !IsFloating(f.dtype)) continue;
    floats = true;
    pictures |= LayoutOf(f.shape).has_value();
  }
  if (hints.mixes() && !floats) {
    return absl::InvalidArgumentError(absl::StrCat(
        data.source(), ": mixup and cutmix need inputs that are floats (scale=1/255)"));
  }
  if (hints.cutmix > 0 && !pictures) {
    return absl::InvalidArgumentError(absl::StrCat(data.source(), ": cutmix needs pictures"));
  }
  return absl::OkStatus();
}

}  // namespace

void MixRows(double weight, Tensor* batch) {
  const int64_t rows = batch->shape()[0];
  const int64_t each = batch->shape().elements(1, batch->shape().rank());
  DispatchFloating(batch->dtype(), [&]<typename T>() {
    for (int64_t i = 0; i < rows / 2; ++i) {
      T* a = batch->data<T>() + i * each;
      T* b = batch->data<T>() + (rows - 1 - i) * each;
      for (int64_t k = 0; k < each; ++k) {
        const double x = static_cast<double>(a[k]), y = static_cast<double>(b[k]);
        a[k] = FromDouble<T>(weight * x + (1 - weight) * y);
        b[k] = FromDouble<T>(weight * y + (1 - weight) * x);
      }
    }
  });
}

void SwapPatches(const Patch& patch, Tensor* batch) {
  const Shape example = ExampleShape(*batch);
  const int axis = LayoutOf(example)->height_axis();
  const int64_t rows = batch->shape()[0], each = example.elements();
  const int64_t planes = example.elements(0, axis);
  const int64_t inner = example.elements(axis + 2, example.rank());
  const int64_t height = example[axis], width = example[axis + 1];
  const size_t item = DTypeBits(batch->dtype()) / 8;
  for (int64_t i = 0; i < rows / 2; ++i) {
    for (int64_t p = 0; p < planes; ++p) {
      for (int64_t y = patch.top; y < patch.top + patch.height; ++y) {
        const int64_t at = ((p * height + y) * width + patch.left) * inner;
        char* a = batch->data<char>() + static_cast<size_t>(i * each + at) * item;
        char* b = batch->data<char>() + static_cast<size_t>((rows - 1 - i) * each + at) * item;
        std::swap_ranges(a, a + static_cast<size_t>(patch.width * inner) * item, b);
      }
    }
  }
}

double DrawBeta(double alpha, Random& random) {
  const double a = DrawGamma(alpha, random), b = DrawGamma(alpha, random);
  return a + b > 0 ? a / (a + b) : 1;
}

absl::StatusOr<std::unique_ptr<Dataset>> WithSoftLabels(std::shared_ptr<const Dataset> data,
                                                        int64_t classes) {
  const std::vector<FieldInfo> fields = data->fields();
  size_t label = 0;
  while (label < fields.size() && !fields[label].is_label) ++label;
  if (label == fields.size() || fields[label].dtype != DType::kInt64 ||
      fields[label].shape.rank() != 0 || data->classes() == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(data->source(), ": labels as probabilities need one class for each example"));
  }
  ONWARD_RETURN_IF_ERROR(CheckCanMix(*data));
  return std::make_unique<SoftLabels>(std::move(data), classes, label);
}

}  // namespace onward

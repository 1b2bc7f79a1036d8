// SPDX-License-Identifier: Apache-2.0
// The one door to tensor data outside a model file. Everything is checked on
// the opened file: no way out of the model's folder, no links, no devices.
#ifndef ONWARD_CORE_ONNX_IO_EXTERNAL_DATA_H_
#define ONWARD_CORE_ONNX_IO_EXTERNAL_DATA_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/onnx_io/weights.h"

namespace onward {

struct ExternalKey {
  std::string key, value;
};

class ExternalData {
 public:
  // `folder` is the model file's folder ("" = current). `held` are the weights that the
  // model has beside its message; null: none.
  explicit ExternalData(std::string folder, const Weights* held = nullptr)
      : folder_(std::move(folder)), held_(held) {}

  const Weights* held() const { return held_; }

  // Exactly `bytes` bytes as the entries (location, offset, length) say: mapped where they are
  // many and lie well enough for kernels, read otherwise. All together stay within three
  // quarters of the machine's memory.
  absl::StatusOr<Weights::Bytes> Get(const std::vector<ExternalKey>& entries, size_t bytes) const;

 private:
  absl::StatusOr<std::shared_ptr<const WeightFile>> Open(const std::string& location) const;

  std::string folder_;
  const Weights* held_;
  mutable size_t total_ = 0;
  mutable std::map<std::string, std::shared_ptr<const WeightFile>> files_;
};

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_EXTERNAL_DATA_H_

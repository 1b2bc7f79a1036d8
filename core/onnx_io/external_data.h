// SPDX-License-Identifier: Apache-2.0
// The one door to tensor data outside a model file. Everything is checked on
// the opened file: no way out of the model's folder, no links, no devices.
#ifndef ONWARD_CORE_ONNX_IO_EXTERNAL_DATA_H_
#define ONWARD_CORE_ONNX_IO_EXTERNAL_DATA_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace onward {

struct ExternalKey {
  std::string key, value;
};

class ExternalData {
 public:
  // `folder` is the model file's folder ("" = current). `owner` keeps the model
  // itself alive, so that tensors may refer to bytes inside it; null: they copy.
  explicit ExternalData(std::string folder, std::shared_ptr<void> owner = nullptr)
      : folder_(std::move(folder)), owner_(std::move(owner)) {}

  const std::shared_ptr<void>& owner() const { return owner_; }

  // Reads exactly `bytes` bytes as the entries (location, offset, length) say,
  // into memory that `allocate` returns once it is known that they are there.
  // All reads together stay within three quarters of the machine's memory.
  absl::Status Read(const std::vector<ExternalKey>& entries, size_t bytes,
                    const std::function<void*()>& allocate) const;

 private:
  std::string folder_;
  std::shared_ptr<void> owner_;
  mutable size_t total_ = 0;
};

}  // namespace onward

#endif  // ONWARD_CORE_ONNX_IO_EXTERNAL_DATA_H_

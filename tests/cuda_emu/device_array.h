// SPDX-License-Identifier: Apache-2.0
// Device memory for tests, and the state they start from.
#pragma once

#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/cuda_emu/control.h"

namespace onward::cuda {

template <class T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    EXPECT_EQ(cudaMalloc(reinterpret_cast<void**>(&data_), size * sizeof(T)), cudaSuccess);
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    EXPECT_EQ(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice),
              cudaSuccess);
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* get() const { return data_; }
  size_t size() const { return size_; }
  // Waits for the default stream, and for those that block.
  std::vector<T> Values() const {
    std::vector<T> values(size_);
    EXPECT_EQ(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost),
              cudaSuccess);
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// .cu files report their accesses unless another sanitizer is in the way.
inline bool AccessesAreChecked() {
#if defined(__SANITIZE_ADDRESS__) || defined(ONWARD_THREAD_SANITIZER)
  return false;
#else
  return true;
#endif
}

// Every test starts with the plain schedule and no failures, and leaves nothing behind.
class EmulatorTest : public testing::Test {
 protected:
  void SetUp() override {
    testing::FLAGS_gtest_death_test_style = "fast";
    OnwardEmuReset();
    before_ = Counters();
  }
  void TearDown() override {
    OnwardEmuReset();
    EXPECT_EQ(Counters().live_bytes, before_.live_bytes);
    EXPECT_EQ(Counters().live_host_bytes, before_.live_host_bytes);
    EXPECT_EQ(Counters().live_objects, before_.live_objects);
  }
  static OnwardEmuCounters Counters() {
    OnwardEmuCounters counters;
    OnwardEmuGetCounters(&counters);
    return counters;
  }

 private:
  OnwardEmuCounters before_;
};

}  // namespace onward::cuda

// SPDX-License-Identifier: Apache-2.0
// Handles, statuses and strided tensors of the fake cuDNN.
#include "tests/cuda_emu/cudnn_types.h"

#include <functional>
#include <numeric>
#include <set>
#include <utility>

namespace onward::cuda_emu {
namespace {

std::set<cudnnHandle_t>& Handles() {
  static auto* handles = new std::set<cudnnHandle_t>;
  return *handles;
}

// Calls f(offset) for every element, the last dimension fastest.
template <class F>
void ForEachOffset(const Tensor& tensor, F f) {
  const int rank = static_cast<int>(tensor.dims.size());
  std::vector<int> index(rank, 0);
  const int64_t count = Count(tensor.dims);
  int64_t offset = 0;
  for (int64_t i = 0; i < count; ++i) {
    f(offset);
    for (int d = rank - 1; d >= 0; --d) {
      offset += tensor.strides[d];
      if (++index[d] < tensor.dims[d]) break;
      offset -= static_cast<int64_t>(index[d]) * tensor.strides[d];
      index[d] = 0;
    }
  }
}

}  // namespace

std::optional<Element> ElementOf(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_FLOAT: return Element::kFloat;
    case CUDNN_DATA_DOUBLE: return Element::kDouble;
    case CUDNN_DATA_HALF: return Element::kHalf;
    case CUDNN_DATA_BFLOAT16: return Element::kBfloat16;
    default: return std::nullopt;
  }
}

int64_t Count(const std::vector<int>& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<int64_t>());
}

Tensor DenseTensor(cudnnDataType_t type, const std::vector<int>& dims) {
  Tensor tensor = {type, dims, std::vector<int>(dims.size(), 1)};
  for (size_t d = dims.size(); d-- > 1;) tensor.strides[d - 1] = tensor.strides[d] * dims[d];
  return tensor;
}

DnnCall::DnnCall(const char* name, cudnnHandle_t handle) : name_(name), handle_(handle) {}

cudnnStatus_t DnnCall::Begin() const {
  if (!Handles().contains(handle_)) return CUDNN_STATUS_NOT_INITIALIZED;
  if (!BeginLibraryCall()) return CUDNN_STATUS_EXECUTION_FAILED;
  const CUstream_st* stream = Resolve(handle_->stream);
  if (stream == nullptr || stream->device != handle_->device) return CUDNN_STATUS_EXECUTION_FAILED;
  return CUDNN_STATUS_SUCCESS;
}

void DnnCall::Check(const char* what, const void* data, size_t bytes, Use use) const {
  CheckDeviceRange(name_, what, data, bytes, handle_->device, use);
}

void DnnCall::Check(const char* what, const void* data, const Tensor& tensor, Use use) const {
  int64_t last = 0;
  for (size_t d = 0; d < tensor.dims.size(); ++d) {
    last += static_cast<int64_t>(tensor.dims[d] - 1) * tensor.strides[d];
  }
  Check(what, data, static_cast<size_t>(last + 1) * SizeOf(*ElementOf(tensor.type)), use);
}

cudnnStatus_t DnnCall::Queue(std::function<void()> work) const {
  return QueueLibraryWork(name_, Resolve(handle_->stream), std::move(work))
             ? CUDNN_STATUS_SUCCESS
             : CUDNN_STATUS_EXECUTION_FAILED;
}

double ReadScalar(const void* scalar, cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? *static_cast<const double*>(scalar)
                                   : *static_cast<const float*>(scalar);
}

template <class C>
std::vector<C> Gather(const Tensor& tensor, const void* data) {
  std::vector<C> values;
  values.reserve(Count(tensor.dims));
  WithType(*ElementOf(tensor.type), [&](auto* type) {
    const auto* elements = static_cast<decltype(type)>(const_cast<void*>(data));
    ForEachOffset(tensor,
                  [&](int64_t offset) { values.push_back(static_cast<C>(elements[offset])); });
  });
  return values;
}

template <class C>
void Scatter(const Tensor& tensor, void* data, const std::vector<C>& values, double alpha,
             double beta) {
  WithType(*ElementOf(tensor.type), [&](auto* type) {
    using T = std::remove_pointer_t<decltype(type)>;
    T* elements = static_cast<T*>(data);
    const C* value = values.data();
    ForEachOffset(tensor, [&](int64_t offset) {
      C result = static_cast<C>(alpha) * *value++;
      if (beta != 0) result += static_cast<C>(beta) * static_cast<C>(elements[offset]);
      elements[offset] = static_cast<T>(result);
    });
  });
}

template std::vector<float> Gather(const Tensor&, const void*);
template std::vector<double> Gather(const Tensor&, const void*);
template void Scatter(const Tensor&, void*, const std::vector<float>&, double, double);
template void Scatter(const Tensor&, void*, const std::vector<double>&, double, double);

}  // namespace onward::cuda_emu

using namespace onward::cuda_emu;

extern "C" {

cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  Entry entry;
  if (handle == nullptr) return CUDNN_STATUS_BAD_PARAM;
  if (Record(cudaSuccess) != cudaSuccess) return CUDNN_STATUS_NOT_INITIALIZED;
  if (ShallFail(kOnwardEmuLibrary)) return CUDNN_STATUS_NOT_INITIALIZED;
  *handle = new cudnnContext{CurrentDevice()};
  Handles().insert(*handle);
  ++GetState().counters.live_objects;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  Entry entry;
  if (!Handles().contains(handle)) return CUDNN_STATUS_BAD_PARAM;
  FinishDevice(handle->device);
  Handles().erase(handle);
  delete handle;
  --GetState().counters.live_objects;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  Entry entry;
  if (!Handles().contains(handle)) return CUDNN_STATUS_BAD_PARAM;
  handle->stream = stream;
  return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  Entry entry;
  if (!Handles().contains(handle)) return CUDNN_STATUS_BAD_PARAM;
  *stream = handle->stream;
  return CUDNN_STATUS_SUCCESS;
}

size_t cudnnGetVersion() { return CUDNN_VERSION; }

const char* cudnnGetErrorString(cudnnStatus_t status) {
  switch (status) {
    case CUDNN_STATUS_SUCCESS: return "CUDNN_STATUS_SUCCESS";
    case CUDNN_STATUS_NOT_INITIALIZED: return "CUDNN_STATUS_NOT_INITIALIZED";
    case CUDNN_STATUS_BAD_PARAM: return "CUDNN_STATUS_BAD_PARAM";
    case CUDNN_STATUS_NOT_SUPPORTED: return "CUDNN_STATUS_NOT_SUPPORTED";
    case CUDNN_STATUS_EXECUTION_FAILED: return "CUDNN_STATUS_EXECUTION_FAILED";
    default: return "CUDNN_STATUS_UNKNOWN";
  }
}

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
#include "core/cuda/optimizer/rules.cuh"
#include "core/cuda/optimizer/step.h"
#include "core/cuda/types.cuh"

namespace onward::cuda {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kPart = 16 * kThreads;  // elements of one block
// Of one launch: parameters have 32 kB. Most models have fewer tensors, so that a step is one
// launch; a table that is no larger than it has to be is handed over sooner.
constexpr int kFewTensors = 44, kManyTensors = 256;

// Block b works on the tensor t with first_block[t] <= b < first_block[t + 1].
template <int kTensors>
struct Table {
  StepTensor tensors[kTensors];
  int first_block[kTensors + 1];
  int count;
};

__device__ double RateOf(const StepParameters& p) {
  switch (p.rate_type) {
    case DType::kDouble: return *static_cast<const double*>(p.rate);
    case DType::kFloat16: return Read(*static_cast<const __half*>(p.rate));
    case DType::kBFloat16: return Read(*static_cast<const __nv_bfloat16*>(p.rate));
    default: return *static_cast<const float*>(p.rate);
  }
}

template <class T>
__device__ bool IsFinite(T value) {
  const Compute<T> x = Read(value);
  return x - x == Compute<T>(0);
}

template <class T>
__device__ void Put(T value, void* to, int64_t at, uint32_t* flag) {
  if (to == nullptr) return;
  if (flag == nullptr) {
    static_cast<T*>(to)[at] = value;
  } else if (!IsFinite(value)) {
    atomicExch(flag, 1u);
  }
}

template <class T, class Rule, int kTensors>
__global__ void Step(Table<kTensors> table, StepParameters parameters, uint32_t* flags,
                     int flag_kinds) {
  using C = Compute<T>;
  __shared__ Rule shared_rule;
  if (threadIdx.x == 0) {
    shared_rule =
        Rule::At(parameters, RateOf(parameters), parameters.step == nullptr ? 0 : *parameters.step);
  }
  __syncthreads();
  if (parameters.stop != nullptr && *parameters.stop != 0) return;
  const Rule rule = shared_rule;
  const int block = static_cast<int>(blockIdx.x);
  int t = 0, last = table.count - 1;
  while (t < last) {
    const int middle = (t + last + 1) / 2;
    if (block >= table.first_block[middle]) {
      t = middle;
    } else {
      last = middle - 1;
    }
  }
  const StepTensor& tensor = table.tensors[t];
  const int64_t begin = (block - table.first_block[t]) * kPart;
  const int64_t end = begin + kPart < tensor.elements ? begin + kPart : tensor.elements;
  uint32_t* const flag = flags == nullptr ? nullptr : flags + tensor.index;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads) {
    C x = Read(static_cast<const T*>(tensor.x)[i]);
    C state[Rule::kStates + 1];
    for (int k = 0; k < Rule::kStates; ++k) {
      state[k] = Read(static_cast<const T*>(tensor.state[k])[i]);
    }
    rule(x, Read(static_cast<const T*>(tensor.g)[i]), state);
    Put(Write<T>(x), tensor.new_x, i, flag);
    for (int k = 0; k < Rule::kStates; ++k) {
      Put(Write<T>(state[k]), tensor.new_state[k], i,
          flag == nullptr ? nullptr : flag + (1 + k) * flag_kinds);
    }
  }
}

template <class T, class Rule, int kTensors>
cudaError_t RunTables(const StepParameters& parameters, const StepTensor* tensors, int count,
                      uint32_t* flags, int flag_kinds, cudaStream_t stream) {
  for (int next = 0; next < count;) {
    Table<kTensors> table = {};
    for (; next < count && table.count < kTensors; ++next) {
      if (tensors[next].elements == 0) continue;
      const int64_t blocks =
          table.first_block[table.count] + (tensors[next].elements + kPart - 1) / kPart;
      if (blocks > std::numeric_limits<int>::max()) break;
      table.tensors[table.count] = tensors[next];
      table.first_block[++table.count] = static_cast<int>(blocks);
    }
    if (table.count == 0) return next < count ? cudaErrorInvalidValue : cudaSuccess;
    const cudaError_t error = Launch(
        Step<T, Rule, kTensors>, {static_cast<unsigned>(table.first_block[table.count]), kThreads},
        stream, table, parameters, flags, flag_kinds);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace

cudaError_t RunStep(const StepParameters& parameters, DType dtype, const StepTensor* tensors,
                    int count, uint32_t* flags, int flag_kinds, cudaStream_t stream) {
  return DispatchReal(dtype, [&]<class T>() {
    using C = Compute<T>;
    const auto run = [&]<class Rule>() {
      constexpr auto few = RunTables<T, Rule, kFewTensors>, many = RunTables<T, Rule, kManyTensors>;
      return (count > kFewTensors ? many : few)(parameters, tensors, count, flags, flag_kinds,
                                                stream);
    };
    switch (parameters.rule) {
      case StepRule::kSgd: return run.template operator()<SgdRule<C>>();
      case StepRule::kAdagrad: return run.template operator()<AdagradRule<C>>();
      case StepRule::kMomentum: return run.template operator()<MomentumRule<C>>();
      case StepRule::kAdam: return run.template operator()<AdamRule<C>>();
      case StepRule::kAdamW: return run.template operator()<AdamWRule<C>>();
    }
    return cudaErrorInvalidValue;
  });
}

}  // namespace onward::cuda

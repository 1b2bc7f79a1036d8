// SPDX-License-Identifier: Apache-2.0
// A chain of element-wise operators as data, small enough to be a kernel's parameter: each thread
// takes an element through all steps, and only what somebody else reads is written.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_CHAIN_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_CHAIN_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/cuda/elementwise/opcode.h"

namespace onward::cuda {

enum class Type : uint8_t {
  kFloat,
  kHalf,
  kBFloat16,
  kBool,
  kDouble,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUint8,
  kUint16,
  kUint32,
  kUint64,
};

// What an operator computes with. Narrow integers are computed in 64 bits and cut off.
enum class Domain : uint8_t { kFloat, kDouble, kSigned, kUnsigned };

inline constexpr int kMaxChainInputs = 16;
inline constexpr int kMaxChainOutputs = 8;
inline constexpr int kMaxChainSteps = 40;
inline constexpr int kMaxChainRank = 8;

struct Step {
  Op op = Op::kIdentity;
  Domain domain = Domain::kFloat;  // of the operands; a condition of kWhere is a bool
  Type result = Type::kFloat;      // what the result is rounded to
  bool keeps = false;              // a later step reads the result
  int8_t output = -1;              // where it is written, if anywhere
  // k >= 0 is input k, ~k the result of step k.
  int8_t operands[3] = {0, 0, 0};
  double parameters[2] = {0, 0};
};

struct ChainProgram {
  int64_t elements = 0;
  int rank = 0;
  int inputs = 0;
  int steps = 0;
  // All types are float, a 16-bit float or bool: registers are floats, bools are 0 and 1.
  bool in_float = false;
  int64_t dims[kMaxChainRank] = {};  // of the results, outermost first
  int64_t strides[kMaxChainInputs][kMaxChainRank] = {};
  const void* input[kMaxChainInputs] = {};
  Type input_type[kMaxChainInputs] = {};
  void* output[kMaxChainOutputs] = {};
  Step step[kMaxChainSteps] = {};
};
static_assert(sizeof(ChainProgram) <= 4096, "kernel parameters");

cudaError_t LaunchChain(const ChainProgram& program, cudaStream_t stream);

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_CHAIN_H_

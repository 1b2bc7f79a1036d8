// SPDX-License-Identifier: Apache-2.0
// What a step of a chain computes, by number: the same in factories and in device code.
#ifndef ONWARD_CORE_CUDA_ELEMENTWISE_OPCODE_H_
#define ONWARD_CORE_CUDA_ELEMENTWISE_OPCODE_H_

#include <cstdint>

namespace onward::cuda {

enum class Op : uint8_t {
  kIdentity,  // rounds or converts to the result's type
  // One operand.
  kNeg,
  kAbs,
  kSign,
  kReciprocal,
  kSqrt,
  kFloor,
  kCeil,
  kRound,
  kExp,
  kLog,
  kErf,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kTanh,
  kAsinh,
  kAcosh,
  kAtanh,
  kNot,
  kBitwiseNot,
  kIsNaN,
  kIsInf,  // parameters: negative, positive
  kRelu,
  kLeakyRelu,        // alpha
  kThresholdedRelu,  // alpha
  kElu,              // alpha
  kSelu,             // alpha, gamma
  kCelu,             // alpha
  kSigmoid,
  kHardSigmoid,  // alpha, beta
  kHardSwish,
  kSoftplus,
  kSoftsign,
  kSwish,  // alpha
  kMish,
  kGelu,
  kGeluTanh,
  kShrink,    // bias, lambd
  kDivideBy,  // the divisor
  // Two operands.
  kAdd,
  kSub,
  kMul,
  kDiv,
  kTruncatedMod,
  kFlooredMod,
  kPow,
  kPowUnsigned,  // of integers, the exponent without sign
  kMin,
  kMax,
  kPRelu,
  kEqual,
  kGreater,
  kGreaterOrEqual,
  kLess,
  kLessOrEqual,
  kAnd,
  kOr,
  kXor,
  kShiftLeft,   // the operands' bits
  kShiftRight,  // the operands' bits
  kReluGrad,
  kGeluGrad,
  kGeluTanhGrad,
  // Three operands.
  kWhere,
  kClipGrad,
  // Known to factories alone: made of the steps above (program.cc).
  kSum,
  kMean,
  kClip,  // parameters: whether there is a minimum, a maximum
};

}  // namespace onward::cuda

#endif  // ONWARD_CORE_CUDA_ELEMENTWISE_OPCODE_H_

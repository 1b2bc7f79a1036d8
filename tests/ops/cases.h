// SPDX-License-Identifier: Apache-2.0
// The operator tables, one per family, as core/ops and autograd/rules have them.
#ifndef ONWARD_TESTS_OPS_CASES_H_
#define ONWARD_TESTS_OPS_CASES_H_

#include <utility>
#include <vector>

#include "tests/support/op_case.h"

namespace onward {

// A row of a function of ai.onward.
inline OpCase Own(const char* name, std::vector<Arg> args, Attributes attributes = {}) {
  return Case(name, std::move(args), std::move(attributes)).Own();
}
// An element type as attributes spell it.
inline int64_t Code(DType dtype) { return static_cast<int64_t>(dtype); }

std::vector<OpCase> ElementwiseCases();
std::vector<OpCase> ActivationCases();
std::vector<OpCase> ReduceCases();
std::vector<OpCase> ShapeCases();
std::vector<OpCase> IndexCases();
std::vector<OpCase> MatMulCases();
std::vector<OpCase> ConvCases();
std::vector<OpCase> PoolCases();
std::vector<OpCase> NormCases();
std::vector<OpCase> AttentionCases();
std::vector<OpCase> RnnCases();
std::vector<OpCase> LossCases();
std::vector<OpCase> QuantizeCases();
std::vector<OpCase> ImageCases();
std::vector<OpCase> SignalCases();
std::vector<OpCase> TextCases();
std::vector<OpCase> MlCases();
// All of these.
std::vector<OpCase> OpCases();
// Operators of other runtimes, which have bodies and no kernels.
std::vector<OpCase> ContribCases();

// Operators whose schemas or bodies leave double out, so that differences are taken in float.
std::vector<OpCase> SingleCases();

// Quantization and small types: their rules are straight through, which no difference
// quotient can tell, and their schemas know no double. See quantize_test.cc.
std::vector<OpCase> QuantizeForwardCases();
// Real numbers to real numbers without a rule: roundings, reductions of scatters, gradients.
std::vector<OpCase> UnruledCases();
// Onward's functions in the gradients of pictures.
std::vector<OpCase> ImageGradientCases();
// Numbers of boxes.
std::vector<OpCase> UnruledImageCases();
// Text and ai.onnx.ml, whose results are not compared in double.
std::vector<OpCase> TextForwardCases();
std::vector<OpCase> MlForwardCases();
// As large as it takes for kernels to cut up their work.
std::vector<OpCase> LargeCases();
// The same of functions whose bodies round every step to 16 bits, where a kernel rounds once.
std::vector<OpCase> LargeFunctionCases();
// Everything of the above that is computed but not differentiated, but the large ones.
std::vector<OpCase> ForwardCases();

}  // namespace onward

#endif  // ONWARD_TESTS_OPS_CASES_H_

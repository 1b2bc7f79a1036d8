// SPDX-License-Identifier: Apache-2.0
// One convolution for tests of own kernels on activations in blocks of 8 channels:
// its data, its results in double, and a way to run a kernel on it.
#ifndef ONWARD_TESTS_SUPPORT_CONV_CASE_H_
#define ONWARD_TESTS_SUPPORT_CONV_CASE_H_

#include <gtest/gtest.h>

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "absl/types/span.h"
#include "core/device/kernel.h"
#include "core/device/plan/window.h"

namespace onward {

struct ConvCase {
  int64_t n, c, k, h, w;
  int64_t kernel = 1, stride = 1;
  std::vector<int64_t> pads = {0, 0, 0, 0};  // top, left, bottom, right
  bool depthwise = false;
  bool bias = false;

  int64_t out_h() const { return (h + pads[0] + pads[2] - kernel) / stride + 1; }
  int64_t out_w() const { return (w + pads[1] + pads[3] - kernel) / stride + 1; }
  Shape x_shape() const { return {n, c, h, w}; }
  Shape w_shape() const { return {k, depthwise ? 1 : c, kernel, kernel}; }
  Shape y_shape() const { return {n, k, out_h(), out_w()}; }
  Node node() const;
  ConvGeometry geometry() const;
};
std::ostream& operator<<(std::ostream& out, const ConvCase& p);
// For INSTANTIATE_TEST_SUITE_P.
std::string ConvCaseName(const testing::TestParamInfo<ConvCase>& info);

// The largest error within `tolerance` of the largest value.
void ExpectNear(absl::Span<const float> got, const std::vector<double>& expected, double tolerance);

class ConvKernelTest : public testing::TestWithParam<ConvCase> {
 protected:
  // `tolerance`: of results, relative to the largest value.
  explicit ConvKernelTest(double tolerance);

  struct Input {
    Shape shape;
    Tensor data;  // undefined: omitted
  };
  Input X() const;
  Input W() const;
  Input Dy() const;  // also serves as a residual
  Input Bias() const;

  // y, with bias where `bias` says so; dx, dw and db of dy.
  std::vector<double> Expected(bool bias) const;
  std::vector<double> ExpectedInputGrad() const;
  std::vector<double> ExpectedWeightGrad() const;
  std::vector<double> ExpectedBiasGrad() const;

  // Runs a kernel over a workspace full of NaN, three times, the last one over inputs that it
  // may write over; its outputs, which must have the same bits every time. `blocked`: they get
  // whole blocks of channels.
  std::vector<Tensor> Run(const KernelFactory& factory, const std::vector<Input>& inputs,
                          const std::vector<Shape>& outputs, bool blocked, int constant = -1);
  // Runs a kernel whose one output is an activation, and compares that.
  void ExpectActivation(const KernelFactory& factory, const std::vector<Input>& inputs,
                        const Shape& shape, const std::vector<double>& expected, int constant = -1);
  void ExpectWeights(const Tensor& got, const std::vector<double>& expected) const {
    ExpectNear(got.values<float>(), expected, tolerance_);
  }

  Node node_;
  std::vector<float> x_, w_, dy_, bias_;

 private:
  // Calls f(x index, w index, y index) for every multiplication of the convolution.
  template <typename F>
  void ForProducts(const F& f) const;

  double tolerance_;
  std::map<std::string, int> opsets_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_CONV_CASE_H_

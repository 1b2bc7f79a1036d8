// SPDX-License-Identifier: Apache-2.0
#include "tests/ops/cases.h"

namespace onward {
namespace {

const Attributes kInverse = {{"inverse", 1}};
const Attributes kOnesided = {{"onesided", 1}};
const Attributes kRealInverse = {{"inverse", 1}, {"onesided", 1}};

std::vector<OpCase> DftCases() {
  return {
      Case("DFT", {Real({2, 5, 1})}).Unknown({0}),
      Case("DFT_complex", {Real({2, 6, 2})}),
      Case("DFT_four", {Real({1, 8, 1})}),
      Case("DFT_onesided", {Real({2, 8, 1})}, kOnesided).Unknown({0}),
      Case("DFT_onesided_odd", {Real({1, 7, 1})}, kOnesided),
      Case("DFT_inverse", {Real({2, 5, 2})}, kInverse),
      Case("DFT_inverse_real", {Real({1, 4, 1})}, kInverse),
      Case("DFT_real_inverse", {Real({2, 5, 2})}, kRealInverse),
      Case("DFT_real_inverse_odd", {Real({1, 4, 2}), Int(7)}, kRealInverse),
      Case("DFT_real_inverse_cut", {Real({1, 5, 2}), Int(4)}, kRealInverse),
      Case("DFT_longer", {Real({1, 4, 1}), Int(6)}),
      Case("DFT_shorter", {Real({2, 6, 2}), Int(4)}),
      Case("DFT_onesided_longer", {Real({1, 4, 1}), Int(7)}, kOnesided),
      Case("DFT_inverse_shorter", {Real({1, 6, 2}), Int(4)}, kInverse),
      Case("DFT_axis", {Real({3, 2, 2, 1}), Omitted(), Int(0)}),
      Case("DFT_middle_axis", {Real({2, 3, 2, 2}), Int(4), Int(-3)}).Unknown({0}),
      Case("DFT_fed_axis", {Real({3, 2, 2, 1}), Omitted(), Fed({}, {0})}).DataDependent(),
      Case("DFT_fed_middle_axis", {Real({2, 3, 2, 2}), Int(4), Fed({}, {-3})}).DataDependent(),
      Case("DFT_fed_last_axis", {Real({2, 3, 2}), Int(2), Fed({}, {1})}, kInverse).DataDependent(),
      Case("DFT_fed_axis_real_inverse", {Real({3, 2, 2}), Int(5), Fed({}, {0})}, kRealInverse)
          .DataDependent(),
      Case("DFT_plain", {Real({4, 2})}),
      Case("DFT_one", {Real({2, 1, 1})}),
      Case("DFT_real_inverse_one", {Real({2, 1, 2}), Int(1)}, kRealInverse),
      // A prime that Eigen would take as n^2 operations.
      Case("DFT_prime", {Real({1, 67, 1})}, kOnesided),
  };
}

std::vector<OpCase> StftCases() {
  return {
      Case("STFT", {Real({2, 10, 1}), Int(3), Real({4})}).Unknown({0}),
      Case("STFT_plain", {Real({1, 8, 1}), Int(2), Omitted(), Int(5)}),
      Case("STFT_both", {Real({1, 8, 1}), Int(2), Real({4}), Int(4)}, {{"onesided", 0}}),
      Case("STFT_complex", {Real({1, 7, 2}), Int(2), Real({3})}, {{"onesided", 0}}),
      // onnx infers no shape here.
      Case("STFT_whole", {Real({1, 6, 1}), Int(1)}).DataDependent(),
  };
}

}  // namespace

std::vector<OpCase> SignalCases() {
  std::vector<OpCase> cases = DftCases();
  for (OpCase& c : StftCases()) cases.push_back(std::move(c));
  return cases;
}

}  // namespace onward

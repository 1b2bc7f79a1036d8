// SPDX-License-Identifier: Apache-2.0
// One row of an operator table and everything that is checked of it: a row names
// an operator, its attributes and what its inputs look like; the numbers are drawn
// from the row's name, so a row is the same on every machine.
#ifndef ONWARD_TESTS_SUPPORT_OP_CASE_H_
#define ONWARD_TESTS_SUPPORT_OP_CASE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "autograd/rule.h"
#include "core/base/shape.h"
#include "core/graph/graph.h"
#include "core/tensor/tensor.h"

namespace onward {

// One input of a row.
struct Arg {
  enum class Kind { kReal, kIntegers, kFlags, kConstantReal, kConstant, kTrue, kOmitted };
  Kind kind = Kind::kOmitted;
  Shape shape;
  double low = 0, high = 0;
  std::vector<double> kinks;   // values to keep away from
  std::vector<double> values;  // of constants, and of integers that are given
  DType integers = DType::kInt64;
};

// Fed and, unless the row says otherwise, differentiated. Values are distinct.
Arg Real(Shape shape, double low = -2, double high = 2, std::vector<double> kinks = {0});
Arg Positive(Shape shape);  // in [0.5, 2.5]
// Fed, not differentiated.
Arg Below(Shape shape, int64_t bound, DType dtype = DType::kInt64);  // integers in [0, bound)
Arg Fed(Shape shape, std::vector<int64_t> values, DType dtype = DType::kInt64);
Arg Flags(Shape shape);
// Constants of the graph.
Arg Ints(std::vector<int64_t> values);
Arg Ints(Shape shape, std::vector<int64_t> values);
Arg Int(int64_t value);
Arg FloatList(std::vector<double> values);  // float, whatever the type of the row
Arg Number(double value);                   // a scalar of the row's float type
Arg ConstantNumbers(Shape shape, std::vector<double> values);  // of the row's float type
Arg True();
Arg Omitted();

struct OpCase {
  std::string name;  // "MaxPool_ceil": the operator, what is special
  std::string op;
  std::vector<Arg> args;
  Attributes attributes;
  int outputs = 1;
  std::vector<int> used = {0};  // the outputs that the loss depends on
  std::vector<int> by;          // differentiated inputs; empty: every Real
  std::vector<int> unknown;     // checked again with their first dimension unknown
  bool data_dependent = false;  // the shape of the result is known at run time only
  std::string domain = {};

  OpCase Outputs(int count, std::vector<int> used_ones);
  OpCase By(std::vector<int> inputs);
  OpCase Unknown(std::vector<int> inputs);
  OpCase DataDependent();
  OpCase Own();  // a function of ai.onward
};

// The operator is the name up to the first '_'.
OpCase Case(std::string name, std::vector<Arg> args, Attributes attributes = {});
void PrintTo(const OpCase& c, std::ostream* out);

// Reports through gtest:
//   the inferred types are those of the results;
//   float agrees with double, in the result and in the gradient;
//   the gradient agrees with central differences;
//   it stays the same with Onward's functions inlined, which is then a valid graph of standard
//   operators;
//   the gradient of the gradient agrees with central differences.
void CheckCase(const OpCase& c);

// A row's gradient by all that it is differentiated by, as a graph whose outputs they are, and
// what to feed it: c0, c1, ... are what arrives for the results.
struct CaseGraph {
  Graph graph;
  std::map<std::string, Tensor> feeds;
};
CaseGraph GradientGraph(const OpCase& c, DType dtype);
CaseGraph GradientGraph(const OpCase& c, DType dtype, const RuleTable& rules);

// A row, or its gradient by all that it is differentiated by, run again and again with
// other numbers.
class CaseRun {
 public:
  enum class Of { kResults, kGradients };
  CaseRun(const OpCase& c, DType dtype, Of of = Of::kResults);
  ~CaseRun();

  // What is fed real numbers, and how many: of a gradient, what arrives for the results;
  // else the inputs x0, x1, ... that are not there for their shape alone.
  const std::vector<std::pair<std::string, int64_t>>& reals() const;
  double At(const std::string& input, int64_t element) const;
  void Set(const std::string& input, const std::vector<double>& values);
  // All results, as they are and with one element of one input replaced.
  std::vector<Tensor> Results();
  std::vector<Tensor> With(const std::string& input, int64_t element, double value);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_OP_CASE_H_

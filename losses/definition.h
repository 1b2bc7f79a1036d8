// SPDX-License-Identifier: Apache-2.0
// The table behind loss.h: what each loss takes and how it is built. A new loss is a
// function that returns its LossDef, and a line in loss.cc.
#ifndef ONWARD_LOSSES_DEFINITION_H_
#define ONWARD_LOSSES_DEFINITION_H_

#include <string>
#include <vector>

#include "core/base/spec.h"
#include "losses/loss.h"

namespace onward {

struct WordOption {
  std::string name;
  std::vector<std::string> words;  // the first is the default
};

// What the label of a loss is.
enum class LabelKind {
  kLikeOutput,  // its type and shape
  kClasses,     // int64 class numbers, without the class axis
  kClassEach,   // int64, one for each example
  kNumberEach,  // of the output's type, one for each example
  kSequences,   // int64 [N, S], padded
  kNone,
};

struct LossDef;

// One loss while it is built. Options are valid and the label fits.
struct LossCall {
  GraphBuilder& b;
  const LossDef& def;
  const LossSpec& spec;
  std::vector<Expr> outputs;
  Expr label;

  const Expr& output() const { return outputs[0]; }
  // Options as given, or their defaults.
  double Number(const std::string& option) const;
  std::string Word(const std::string& option) const;
  bool Is(const std::string& option, const char* word) const { return Word(option) == word; }
  bool On(const std::string& option) const { return Number(option) != 0; }
  bool Given(const std::string& option) const { return spec.options.contains(option); }
  // A list of numbers as a tensor of this shape and the output's type.
  Expr List(const std::string& option, std::vector<int64_t> shape) const;
  // The mean over all elements or, with reduction=sum, their sum: a scalar.
  Expr Reduced(const Expr& each) const;
};

struct LossDef {
  std::string name;
  std::string summary = "";
  LabelKind labels = LabelKind::kLikeOutput;
  // Where options or the number of outputs decide; null: `labels`.
  LabelKind (*labels_of)(const LossSpec& spec, size_t outputs) = nullptr;
  std::vector<size_t> outputs = {1};  // how many it may take; the first is the default
  std::vector<NumberOption> numbers = {};
  std::vector<WordOption> words = {};
  std::vector<std::string> lists = {};  // of numbers: 1/2.5/3
  std::vector<std::string> reductions = {"mean", "sum"};
  Expr (*build)(const LossCall& call) = nullptr;
};

LossDef CrossEntropyLoss();
LossDef NllLoss();
LossDef CtcLoss();
LossDef FocalLoss();
LossDef BceLoss();
LossDef MseLoss();
LossDef L1Loss();
LossDef HuberLoss();
LossDef SmoothL1Loss();
LossDef HingeLoss();
LossDef KlLoss();
LossDef PoissonLoss();
LossDef GaussianNllLoss();
LossDef CosineLoss();
LossDef TripletLoss();
LossDef ContrastiveLoss();
LossDef DiceLoss();
LossDef IouLoss();

// log(max(p, t)), where t is so small that 1/t is still finite: a probability that
// rounded to zero costs a lot, but not infinitely much.
Expr ClampedLog(const Expr& p);
// softplus(-x) and softplus(x): -log of sigmoid(x) and of 1 - sigmoid(x), without overflow
// or cancellation.
Expr MinusLogSigmoid(const Expr& x);
Expr MinusLogOneMinusSigmoid(const Expr& x);

}  // namespace onward

#endif  // ONWARD_LOSSES_DEFINITION_H_

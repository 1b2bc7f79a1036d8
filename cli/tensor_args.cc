// SPDX-License-Identifier: Apache-2.0
#include "cli/tensor_args.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/paths.h"
#include "core/base/status.h"
#include "core/onnx_io/value_file.h"
#include "data/arrays/npy.h"
#include "data/dataset.h"

namespace onward {
namespace {

std::string InputNames(const std::vector<NamedType>& inputs) {
  return absl::StrJoin(inputs, ", ", [](std::string* out, const NamedType& v) {
    absl::StrAppend(out, v.name, " (", v.type.ToString(), ")");
  });
}

// "0.01", "true", "1,2,3" or "[1, 2, 3]" as the declared type.
absl::StatusOr<Tensor> ParseLiteral(const std::string& text, const NamedType& input) {
  const DType dtype = input.type.dtype == DType::kUndefined ? DType::kFloat : input.type.dtype;
  std::string body = text;
  const bool list = !body.empty() && body.front() == '[' && body.back() == ']';
  if (list) body = body.substr(1, body.size() - 2);
  std::vector<double> values;
  for (absl::string_view part : absl::StrSplit(body, ',')) {
    double v = 0;
    const absl::string_view word = absl::StripAsciiWhitespace(part);
    if (word == "true" || word == "false") {
      v = word == "true";
    } else if (!absl::SimpleAtod(word, &v)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input '", input.name, "': '", text, "' is neither a file (.npy, .pb) nor a number"));
    }
    values.push_back(v);
  }
  Shape shape;
  if (list || values.size() > 1 || input.type.rank() == 1)
    shape = Shape{static_cast<int64_t>(values.size())};
  Tensor numbers = Tensor::FromValues<double>(shape, absl::Span<const double>(values));
  return ConvertTensor(numbers, dtype);
}

absl::StatusOr<Value> ParseValue(const std::string& text, const NamedType& input) {
  if (!input.type.is_tensor()) {
    if (IsTensorFile(text)) return ReadValue(text, input.type);
    return absl::InvalidArgumentError(absl::StrCat("input '", input.name, "' is ",
                                                   input.type.ToString(),
                                                   ": give a .pb file, not '", text, "'"));
  }
  Tensor tensor;
  if (IsTensorFile(text)) {
    ONWARD_ASSIGN_OR_RETURN(Value value, ReadValue(text, input.type));
    tensor = *value.tensor();
  } else {
    ONWARD_ASSIGN_OR_RETURN(tensor, ParseLiteral(text, input));
  }
  if (input.type.dtype == DType::kUndefined || input.type.dtype == tensor.dtype()) return tensor;
  auto converted = ConvertTensor(tensor, input.type.dtype);
  if (!converted.ok()) {
    return Annotate(converted.status(), absl::StrCat("input '", input.name, "'"));
  }
  return Value(*std::move(converted));
}

std::string TensorSummary(const Tensor& tensor) {
  std::string text = absl::StrCat(DTypeName(tensor.dtype()), tensor.shape().ToString());
  auto values = ToDoubles(tensor);
  if (!values.ok() || values->empty()) return text;
  const auto [low, high] = std::minmax_element(values->begin(), values->end());
  double sum = 0;
  for (double v : *values) sum += v;
  if (values->size() > 1) {
    absl::StrAppend(&text, absl::StrFormat("  min %.6g  max %.6g  mean %.6g", *low, *high,
                                           sum / static_cast<double>(values->size())));
  }
  absl::StrAppend(&text, "  ");
  for (size_t i = 0; i < values->size() && i < 8; ++i)
    absl::StrAppend(&text, i ? ", " : "", absl::StrFormat("%.6g", (*values)[i]));
  if (values->size() > 8) absl::StrAppend(&text, ", ...");
  return text;
}

}  // namespace

bool IsTensorFile(const std::string& value) {
  return absl::EndsWith(value, ".npy") || absl::EndsWith(value, ".pb");
}

absl::StatusOr<Value> ReadValue(const std::string& path, const ValueType& type) {
  if (absl::EndsWith(path, ".pb")) return ReadValueFile(path, type);
  ONWARD_ASSIGN_OR_RETURN(Tensor tensor, ReadNpy(path));
  return Value(std::move(tensor));
}

absl::StatusOr<ValueMap> ParseValueArguments(const std::vector<std::string>& arguments,
                                             const std::vector<NamedType>& inputs,
                                             const std::vector<NamedType>& overridable) {
  ValueMap values;
  std::vector<NamedType> known = inputs;
  known.insert(known.end(), overridable.begin(), overridable.end());
  for (const std::string& argument : arguments) {
    // Names may hold '=', so the longest declared name wins.
    const NamedType* input = nullptr;
    for (const NamedType& in : known) {
      if (absl::StartsWith(argument, absl::StrCat(in.name, "=")) &&
          (input == nullptr || in.name.size() > input->name.size())) {
        input = &in;
      }
    }
    std::string value;
    if (input != nullptr) {
      value = argument.substr(input->name.size() + 1);
    } else if (inputs.size() == 1 && argument.find('=') == std::string::npos) {
      input = &inputs[0];
      value = argument;
    } else {
      return absl::InvalidArgumentError(absl::StrCat(
          "--input ", argument, ": no such input; the inputs are ", InputNames(inputs)));
    }
    ONWARD_ASSIGN_OR_RETURN(values[input->name], ParseValue(value, *input));
  }
  return values;
}

std::string Summary(const Value& value) {
  if (value.tensor() != nullptr) return TensorSummary(*value.tensor());
  std::string text = value.ToString();
  const Sequence* items = value.sequence();
  if (value.map() != nullptr) {
    absl::StrAppend(&text, "\n  keys  ", TensorSummary(value.map()->keys));
    items = &value.map()->values;
  }
  if (const SparseTensor* sparse = value.sparse()) {
    absl::StrAppend(&text, "\n  indices  ", TensorSummary(sparse->indices), "\n  values  ",
                    TensorSummary(sparse->values));
  }
  for (size_t i = 0; items != nullptr && i < items->items.size(); ++i) {
    absl::StrAppend(&text, "\n  [", i, "]  ",
                    absl::StrReplaceAll(Summary(items->items[i]), {{"\n", "\n  "}}));
  }
  return text;
}

std::string FileNameFor(const std::string& value) {
  std::string name = value;
  for (char& c : name) {
    if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-')
      c = '_';
  }
  // File systems take 255 bytes, endings and temporary files' names included.
  name.resize(std::min<size_t>(name.size(), 200));
  return name.empty() || name[0] == '.' ? "_" + name : name;
}

absl::Status WriteOutputs(const ValueMap& outputs, const std::string& folder,
                          const std::vector<std::string>& files) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return absl::InvalidArgumentError(
        absl::StrCat("cannot create folder '", folder, "': ", error.message()));
  std::set<std::string> taken;
  struct Planned {
    std::string path, name;
    const Value* value;
  };
  std::vector<Planned> planned;
  for (const auto& [name, value] : outputs) {
    const std::string ending = value.tensor() != nullptr ? ".npy" : ".pb";
    const std::string wanted = FileNameFor(name);
    std::string file = wanted;
    for (int n = 2; !taken.insert(file).second; ++n) file = absl::StrCat(wanted, "_", n);
    if (file != wanted) {
      std::cerr << "note: output '" << name << "' is written as " << file << ending << ", since "
                << wanted << ending << " is another\n";
    }
    planned.push_back({(std::filesystem::path(folder) / (file + ending)).string(), name, &value});
    ONWARD_RETURN_IF_ERROR(RefuseToReplace(planned.back().path, files));
  }
  for (const auto& [path, name, value] : planned) {
    ONWARD_RETURN_IF_ERROR(value->tensor() != nullptr
                               ? WriteNpy(path, *value->tensor())
                               : WriteValueFile(*value, value->type(), name, path));
  }
  return absl::OkStatus();
}

}  // namespace onward

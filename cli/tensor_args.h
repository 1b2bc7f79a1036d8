// SPDX-License-Identifier: Apache-2.0
// Values on the command line: NAME=FILE (.npy, .pb) or NAME=LITERAL.
#ifndef ONWARD_CLI_TENSOR_ARGS_H_
#define ONWARD_CLI_TENSOR_ARGS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/graph/graph.h"
#include "core/runtime/session.h"

namespace onward {

// The name may be left out where `inputs` has one entry; `overridable` ones
// (initializers that are inputs too) are always named. Files are converted to
// the declared element type only where the number cannot change (a literal
// always takes the declared type). What is not a tensor comes from a .pb file.
absl::StatusOr<ValueMap> ParseValueArguments(const std::vector<std::string>& arguments,
                                             const std::vector<NamedType>& inputs,
                                             const std::vector<NamedType>& overridable = {});

// Whether a tensor argument's value is the name of a file, not a literal.
bool IsTensorFile(const std::string& value);

// .npy or .pb, by extension; `type` says which message the latter holds.
absl::StatusOr<Value> ReadValue(const std::string& path, const ValueType& type);

// "float[1, 10] min -3.2 max 11.0 mean 0.41" and the first values; of a container a line
// for each item.
std::string Summary(const Value& value);

// A file name for a value: everything but letters, digits, '.', '_' and '-'
// becomes '_'; the first 200 of them.
std::string FileNameFor(const std::string& value);

// Writes each as DIR/<name>.npy, or .pb if it is not a tensor; a name that is taken gets a
// number, with a note. None is written over one of `files`, which the command reads or
// writes (NAME=FILE, or FILE).
absl::Status WriteOutputs(const ValueMap& outputs, const std::string& folder,
                          const std::vector<std::string>& files);

}  // namespace onward

#endif  // ONWARD_CLI_TENSOR_ARGS_H_

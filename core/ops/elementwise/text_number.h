// SPDX-License-Identifier: Apache-2.0
// Numbers as text and back, the way numpy writes them: the shortest decimal that
// reads back as the same number, "True" and "False", "inf" and "nan".
#ifndef ONWARD_CORE_OPS_ELEMENTWISE_TEXT_NUMBER_H_
#define ONWARD_CORE_OPS_ELEMENTWISE_TEXT_NUMBER_H_

#include <optional>
#include <string>

#include "core/base/dtype.h"

namespace onward {

std::string NumberText(bool value);
std::string NumberText(int64_t value);
std::string NumberText(uint64_t value);
std::string NumberText(float value);
std::string NumberText(double value);
std::string NumberText(Float16 value);
std::string NumberText(BFloat16 value);

// nullopt for text that is no number. Integers saturate; a text with a fraction
// or an exponent is rounded towards zero. Booleans may also be spelled out.
std::optional<double> ParseDouble(const std::string& text);
std::optional<float> ParseFloat(const std::string& text);
template <typename T>  // int64_t or uint64_t
std::optional<T> ParseInteger(const std::string& text);
std::optional<bool> ParseBool(const std::string& text);

}  // namespace onward

#endif  // ONWARD_CORE_OPS_ELEMENTWISE_TEXT_NUMBER_H_

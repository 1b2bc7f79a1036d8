// SPDX-License-Identifier: Apache-2.0
#include "data/arrays/npy_header.h"

#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status.h"

namespace onward {
namespace {

class HeaderReader {
 public:
  HeaderReader(absl::string_view text, absl::string_view name) : text_(text), name_(name) {}

  absl::StatusOr<NpyHeader> Read() {
    if (!Skip("{")) return NpyError(name_, "its header is not a dictionary");
    while (!Skip("}")) {
      ONWARD_ASSIGN_OR_RETURN(const std::string key, Quoted());
      if (!Skip(":")) return NpyError(name_, "its header lacks a ':'");
      if (key == "descr") {
        ONWARD_RETURN_IF_ERROR(ReadType());
      } else if (key == "fortran_order") {
        ONWARD_RETURN_IF_ERROR(ReadOrder());
      } else if (key == "shape") {
        ONWARD_RETURN_IF_ERROR(ReadShape());
      } else {
        return NpyError(name_, absl::StrCat("unknown header key '", key, "'"));
      }
      Skip(",");
    }
    if (!seen_type_ || !seen_order_ || !seen_shape_) {
      return NpyError(name_, "its header lacks descr, fortran_order or shape");
    }
    return header_;
  }

 private:
  bool Skip(absl::string_view token) {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    return absl::ConsumePrefix(&text_, token);
  }

  absl::StatusOr<std::string> Quoted() {
    text_ = absl::StripLeadingAsciiWhitespace(text_);
    if (text_.empty() || (text_[0] != '\'' && text_[0] != '"')) {
      return NpyError(name_, "a quoted word is missing in its header");
    }
    const size_t end = text_.find(text_[0], 1);
    if (end == absl::string_view::npos) {
      return NpyError(name_, "a quote in its header is not closed");
    }
    std::string word(text_.substr(1, end - 1));
    text_.remove_prefix(end + 1);
    return word;
  }

  absl::Status ReadType() {
    if (Skip("[")) {
      return absl::UnimplementedError(absl::StrCat(
          name_, ": holds records (a structured dtype); save each field as an array of its own"));
    }
    ONWARD_ASSIGN_OR_RETURN(const std::string descr, Quoted());
    seen_type_ = true;
    int64_t size = 0;
    if (descr.size() < 3 || !absl::SimpleAtoi(descr.substr(2), &size) || size < 0 ||
        size > (1 << 28)) {
      if (descr == "|O" || descr == "O") return ObjectError();
      return NpyError(name_, absl::StrCat("unknown type '", descr, "'"));
    }
    const char order = descr[0], kind = descr[1];
    if (kind == 'O') return ObjectError();
    if (!absl::StrContains("<>|=", order)) {
      return NpyError(name_, absl::StrCat("unknown type '", descr, "'"));
    }
    header_.item_bytes = static_cast<int>(size);
    if (kind == 'U' || kind == 'S') {
      header_.dtype = DType::kString;
      header_.utf32 = kind == 'U';
      header_.item_bytes *= kind == 'U' ? 4 : 1;
      if (order == '>' && kind == 'U') header_.swap_unit = 4;
      return absl::OkStatus();
    }
    header_.dtype = NumericType(kind, size);
    if (header_.dtype == DType::kUndefined) {
      return absl::UnimplementedError(
          absl::StrCat(name_, ": has elements of type '", descr, "', which no ONNX type matches"));
    }
    if (order == '>') header_.swap_unit = static_cast<int>(kind == 'c' ? size / 2 : size);
    return absl::OkStatus();
  }

  absl::Status ObjectError() const {
    return absl::InvalidArgumentError(absl::StrCat(
        name_,
        ": holds Python objects, which cannot be loaded safely; convert it to a numeric array"));
  }

  static DType NumericType(char kind, int64_t size) {
    switch (kind) {
      case 'f':
        return size == 4   ? DType::kFloat
               : size == 8 ? DType::kDouble
               : size == 2 ? DType::kFloat16
                           : DType::kUndefined;
      case 'i':
        return size == 8   ? DType::kInt64
               : size == 4 ? DType::kInt32
               : size == 2 ? DType::kInt16
               : size == 1 ? DType::kInt8
                           : DType::kUndefined;
      case 'u':
        return size == 8   ? DType::kUint64
               : size == 4 ? DType::kUint32
               : size == 2 ? DType::kUint16
               : size == 1 ? DType::kUint8
                           : DType::kUndefined;
      case 'b': return size == 1 ? DType::kBool : DType::kUndefined;
      case 'c':
        return size == 8 ? DType::kComplex64 : size == 16 ? DType::kComplex128 : DType::kUndefined;
      default: return DType::kUndefined;
    }
  }

  absl::Status ReadOrder() {
    seen_order_ = true;
    header_.fortran = Skip("True");
    if (!header_.fortran && !Skip("False")) {
      return NpyError(name_, "fortran_order is not True or False");
    }
    return absl::OkStatus();
  }

  absl::Status ReadShape() {
    seen_shape_ = true;
    if (!Skip("(")) return NpyError(name_, "its shape is not a tuple");
    while (!Skip(")")) {
      text_ = absl::StripLeadingAsciiWhitespace(text_);
      size_t digits = 0;
      while (digits < text_.size() && absl::ascii_isdigit(text_[digits])) ++digits;
      int64_t dim = 0;
      if (digits == 0 || !absl::SimpleAtoi(text_.substr(0, digits), &dim)) {
        return NpyError(name_, "its shape holds something other than sizes");
      }
      text_.remove_prefix(digits);
      Skip("L");
      header_.shape.push_back(dim);
      if (header_.shape.rank() > 32) return NpyError(name_, "it has more than 32 axes");
      if (!Skip(",")) {
        if (!Skip(")")) return NpyError(name_, "its shape is not a tuple");
        break;
      }
    }
    return absl::OkStatus();
  }

  absl::string_view text_;
  absl::string_view name_;
  NpyHeader header_;
  bool seen_type_ = false, seen_order_ = false, seen_shape_ = false;
};

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view text, absl::string_view name) {
  return HeaderReader(text, name).Read();
}

absl::Status NpyError(absl::string_view name, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": not a readable .npy array: ", what));
}

}  // namespace onward

// SPDX-License-Identifier: Apache-2.0
// How the library reports what went wrong. Nothing in it throws, and nothing that a
// file, a model or an argument holds ends the process.
//
// Threads: a Status or Result is a value; use one from one thread at a time.
#ifndef ONWARD_STATUS_H_
#define ONWARD_STATUS_H_

#include <cstdio>
#include <cstdlib>
#include <iosfwd>
#include <optional>
#include <string>
#include <utility>

// What the library offers is declared in onward::api; write onward::Tensor. Only its
// own sources, which have a namespace onward of their own, tell the two apart.
namespace onward {
namespace api {}
#ifndef ONWARD_LIBRARY
using namespace api;
#endif
}  // namespace onward

namespace onward::api {

// What kind of thing went wrong. The numbers do not change.
enum class StatusCode {
  kOk = 0,
  kCancelled = 1,           // somebody asked to stop
  kUnknown = 2,             // none of the others
  kInvalidArgument = 3,     // the file, the model or an argument is wrong
  kNotFound = 5,            // no such file or name
  kAlreadyExists = 6,       // the name is taken
  kPermissionDenied = 7,    // the operating system says no
  kResourceExhausted = 8,   // not enough memory or disk
  kFailedPrecondition = 9,  // not now, not here: a model without training, a CPU without AVX2
  kAborted = 10,            // stopped half way; nothing was changed
  kOutOfRange = 11,         // past the end
  kUnimplemented = 12,      // an operator, type or gradient that is not there yet
  kInternal = 13,           // a fault of Onward itself: please report it
  kUnavailable = 14,        // try again later
  kDataLoss = 15,           // a file is cut short or damaged
};

// Done, or an error with a message that names file, node and remedy.
class [[nodiscard]] Status {
 public:
  Status() = default;                           // done
  Status(StatusCode code, std::string message)  // kOk drops the message
      : code_(code), message_(code == StatusCode::kOk ? std::string() : std::move(message)) {}

  bool ok() const { return code_ == StatusCode::kOk; }
  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }  // empty when ok

 private:
  StatusCode code_ = StatusCode::kOk;
  std::string message_;
};

// The message, or "ok".
std::ostream& operator<<(std::ostream& out, const Status& status);

// Prints the message and ends the program: what Result does when it is asked for a
// value it does not have.
[[noreturn]] inline void EndForLackOfValue(const Status& status) {
  std::fprintf(stderr, "onward: %s\n", status.message().c_str());
  std::abort();
}

// A T, or the reason why there is none. Ask ok() before taking the value: without one,
// value(), * and -> print the message and end the program.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  // `error` must not be ok.
  Result(Status error) : status_(std::move(error)) {
    if (status_.ok()) status_ = Status(StatusCode::kInternal, "a Result without value or error");
  }

  bool ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }  // ok where there is a value

  T& value() & { return Checked(*this); }
  const T& value() const& { return Checked(*this); }
  T&& value() && { return std::move(Checked(*this)); }

  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  template <typename Self>
  static auto& Checked(Self& self) {
    if (!self.ok()) EndForLackOfValue(self.status_);
    return *self.value_;
  }

  Status status_;
  std::optional<T> value_;
};

}  // namespace onward::api

#endif  // ONWARD_STATUS_H_

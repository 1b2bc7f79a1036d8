// SPDX-License-Identifier: Apache-2.0
// What is made of constants once and kept: weights packed, transformed, reordered or folded. The
// plans of a program share it, so that a graph that meets other shapes neither makes it again nor
// holds it twice.
#ifndef ONWARD_CORE_DEVICE_ARRANGEMENTS_H_
#define ONWARD_CORE_DEVICE_ARRANGEMENTS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/types/span.h"
#include "core/tensor/tensor.h"

namespace onward {

class Arrangements {
 public:
  // What `make` gives of these constants, or what it gave before, if somebody still holds that.
  // `form` says all else that decides its contents.
  template <typename T>
  std::shared_ptr<const T> Get(absl::Span<const Tensor* const> constants, std::string form,
                               absl::FunctionRef<T()> make) {
    form.append(typeid(T).name());
    std::shared_ptr<const T> made = std::static_pointer_cast<const T>(Find(constants, form));
    if (made != nullptr) return made;
    made = std::make_shared<const T>(make());
    Keep(constants, std::move(form), made);
    return made;
  }

 private:
  // Constants are told apart by their types and where they lie, which holds as long as they are
  // held here, too.
  struct Entry {
    std::vector<Tensor> constants;
    std::weak_ptr<const void> made;
  };
  using Key = std::pair<std::vector<const void*>, std::string>;
  static Key KeyOf(absl::Span<const Tensor* const> constants, std::string form);
  std::shared_ptr<const void> Find(absl::Span<const Tensor* const> constants,
                                   const std::string& form) const;
  void Keep(absl::Span<const Tensor* const> constants, std::string form,
            const std::shared_ptr<const void>& made);

  std::map<Key, Entry> entries_;
  size_t sweep_at_ = 64;  // entries: then those that nobody holds are dropped
};

// A tensor of what was made, which holds all of it.
inline Tensor Held(const Tensor& part, const std::shared_ptr<const void>& made) {
  return Tensor(part.dtype(), part.shape(), const_cast<void*>(part.raw()),
                std::const_pointer_cast<void>(made));
}

// A constant input of a node that a kernel is made for; or none.
class ConstantInput {
 public:
  ConstantInput() = default;
  ConstantInput(const Tensor* tensor, Arrangements* arrangements)
      : tensor_(tensor), arrangements_(arrangements) {}
  explicit operator bool() const { return tensor_ != nullptr; }
  const Tensor& operator*() const { return *tensor_; }

  // What `make` gives of it (Arrangements::Get).
  template <typename T>
  std::shared_ptr<const T> Arranged(std::string form, absl::FunctionRef<T()> make) const {
    if (arrangements_ == nullptr) return std::make_shared<const T>(make());
    return arrangements_->Get<T>({&tensor_, 1}, std::move(form), make);
  }

 private:
  const Tensor* tensor_ = nullptr;
  Arrangements* arrangements_ = nullptr;
};

}  // namespace onward

#endif  // ONWARD_CORE_DEVICE_ARRANGEMENTS_H_

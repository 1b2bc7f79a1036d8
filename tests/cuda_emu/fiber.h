// SPDX-License-Identifier: Apache-2.0
// Stacks that the scheduler switches between, known to the address sanitizer where it is there.
#pragma once

#include <boost/context/detail/fcontext.hpp>
#include <cstddef>

#include "tests/cuda_emu/access_check.h"

namespace onward::cuda_emu {

class Fiber {
 public:
  using Body = void (*)();

  Fiber();
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Called by the scheduler: goes on in the fiber (in body(), if it has not begun) until it
  // suspends. The body never returns.
  void Resume(Body body);
  // Called in the running fiber.
  static void Suspend();

  Bytes stack() const;

 private:
  static void Enter(boost::context::detail::transfer_t transfer);

  char* stack_;  // its lowest page faults
  size_t size_;  // of what is above that
  boost::context::detail::fcontext_t context_ = nullptr;
  void* fake_stack_ = nullptr;
};

}  // namespace onward::cuda_emu

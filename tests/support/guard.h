// SPDX-License-Identifier: Apache-2.0
// Bounds on what a hostile file may cost the process that reads it.
#ifndef ONWARD_TESTS_SUPPORT_GUARD_H_
#define ONWARD_TESTS_SUPPORT_GUARD_H_

#include <sys/resource.h>

#include <cstddef>
#include <string>

namespace onward {

// Whether the library is built with sanitizers, which make everything several times dearer.
bool Sanitized();

// While it lives, the process may map two more GiB and spend so many seconds on
// each thing it tries; past that it dies of SIGALRM. A fatal signal first names
// what was being tried. One at a time. Under sanitizers bounds are as much wider as these are
// dearer.
class Guard {
 public:
  explicit Guard(unsigned seconds = 10);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard();

  void Trying(const std::string& what);
  // By how much the peak of resident memory has risen.
  size_t GrownBytes() const;

 private:
  unsigned seconds_;
  rlimit before_;
  size_t peak_;
};

}  // namespace onward

#endif  // ONWARD_TESTS_SUPPORT_GUARD_H_

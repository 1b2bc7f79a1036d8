// SPDX-License-Identifier: Apache-2.0
// What code compiled with -fsanitize=thread calls for its accesses. The names and signatures are
// the compiler's.
#include <cstddef>
#include <cstdint>

#include "tests/cuda_emu/access_check.h"

using onward::cuda_emu::CheckAccess;

// What is wider than 8 bytes is structs of at most that alignment, and vectors, which the CPU wants
// aligned, too.
constexpr size_t AlignmentOf(size_t bytes) { return bytes < 8 ? bytes : 8; }

// One function for each size; names cannot be made by templates.
#define ONWARD_EMU_PLAIN(size)                                                               \
  void __tsan_read##size(void* p) { CheckAccess(p, size, false, false, AlignmentOf(size)); } \
  void __tsan_write##size(void* p) { CheckAccess(p, size, true, false, AlignmentOf(size)); } \
  void __tsan_unaligned_read##size(void* p) { CheckAccess(p, size, false, false); }          \
  void __tsan_unaligned_write##size(void* p) { CheckAccess(p, size, true, false); }

#define ONWARD_EMU_READ_MODIFY_WRITE(bits, name)                                                \
  uint##bits##_t __tsan_atomic##bits##_##name(volatile uint##bits##_t* p, uint##bits##_t value, \
                                              int) {                                            \
    CheckAccess(const_cast<uint##bits##_t*>(p), bits / 8, true, true);                          \
    return __atomic_##name(p, value, __ATOMIC_SEQ_CST);                                         \
  }

#define ONWARD_EMU_COMPARE_EXCHANGE(bits, kind)                                               \
  int __tsan_atomic##bits##_compare_exchange_##kind(                                          \
      volatile uint##bits##_t* p, uint##bits##_t* expected, uint##bits##_t value, int, int) { \
    CheckAccess(const_cast<uint##bits##_t*>(p), bits / 8, true, true);                        \
    return __atomic_compare_exchange_n(p, expected, value, false, __ATOMIC_SEQ_CST,           \
                                       __ATOMIC_SEQ_CST);                                     \
  }

#define ONWARD_EMU_ATOMICS(bits)                                                                  \
  uint##bits##_t __tsan_atomic##bits##_load(const volatile uint##bits##_t* p, int) {              \
    CheckAccess(const_cast<uint##bits##_t*>(p), bits / 8, false, true);                           \
    return __atomic_load_n(p, __ATOMIC_SEQ_CST);                                                  \
  }                                                                                               \
  void __tsan_atomic##bits##_store(volatile uint##bits##_t* p, uint##bits##_t value, int) {       \
    CheckAccess(const_cast<uint##bits##_t*>(p), bits / 8, true, true);                            \
    __atomic_store_n(p, value, __ATOMIC_SEQ_CST);                                                 \
  }                                                                                               \
  uint##bits##_t __tsan_atomic##bits##_exchange(volatile uint##bits##_t* p, uint##bits##_t value, \
                                                int) {                                            \
    CheckAccess(const_cast<uint##bits##_t*>(p), bits / 8, true, true);                            \
    return __atomic_exchange_n(p, value, __ATOMIC_SEQ_CST);                                       \
  }                                                                                               \
  ONWARD_EMU_READ_MODIFY_WRITE(bits, fetch_add)                                                   \
  ONWARD_EMU_READ_MODIFY_WRITE(bits, fetch_sub)                                                   \
  ONWARD_EMU_READ_MODIFY_WRITE(bits, fetch_and)                                                   \
  ONWARD_EMU_READ_MODIFY_WRITE(bits, fetch_or)                                                    \
  ONWARD_EMU_READ_MODIFY_WRITE(bits, fetch_xor)                                                   \
  ONWARD_EMU_COMPARE_EXCHANGE(bits, strong)                                                       \
  ONWARD_EMU_COMPARE_EXCHANGE(bits, weak)

extern "C" {

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_atomic_thread_fence(int) {}
void __tsan_atomic_signal_fence(int) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_read_range(void* p, size_t bytes) { CheckAccess(p, bytes, false, false); }
void __tsan_write_range(void* p, size_t bytes) { CheckAccess(p, bytes, true, false); }

ONWARD_EMU_PLAIN(1)
ONWARD_EMU_PLAIN(2)
ONWARD_EMU_PLAIN(4)
ONWARD_EMU_PLAIN(8)
ONWARD_EMU_PLAIN(16)
ONWARD_EMU_ATOMICS(8)
ONWARD_EMU_ATOMICS(16)
ONWARD_EMU_ATOMICS(32)
ONWARD_EMU_ATOMICS(64)

}  // extern "C"

// SPDX-License-Identifier: Apache-2.0
#include "core/device/cpu.h"

#include <atomic>

namespace onward {
namespace {

std::atomic<size_t> memory_limit = 0;
std::atomic<bool> exact_convolutions = false;

}  // namespace

void SetMemoryLimit(size_t bytes) { memory_limit = bytes; }
size_t ChosenMemoryLimit() { return memory_limit; }

void UseExactConvolutions(bool exact) { exact_convolutions = exact; }
bool ExactConvolutions() { return exact_convolutions; }

}  // namespace onward

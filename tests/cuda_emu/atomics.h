// SPDX-License-Identifier: Apache-2.0
// Atomic operations of the emulated device, for the types that hardware has them for.
#pragma once

#include <atomic>
#include <type_traits>

namespace onward::cuda_emu {

using Unsigned64 = unsigned long long;

template <class T, class... Allowed>
inline constexpr bool kOneOf = (std::is_same_v<T, Allowed> || ...);

// Stores f(old); returns old.
template <class T, class F>
T Update(T* address, F f) {
  std::atomic_ref<T> cell(*address);
  T old = cell.load(std::memory_order_relaxed);
  while (!cell.compare_exchange_weak(old, f(old), std::memory_order_relaxed)) {
  }
  return old;
}

}  // namespace onward::cuda_emu

template <class T>
T atomicAdd(T* address, std::type_identity_t<T> value) {
  static_assert(
      onward::cuda_emu::kOneOf<T, float, double, int, unsigned, onward::cuda_emu::Unsigned64>);
  return onward::cuda_emu::Update(address, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicSub(T* address, std::type_identity_t<T> value) {
  static_assert(onward::cuda_emu::kOneOf<T, int, unsigned>);
  return onward::cuda_emu::Update(address, [value](T old) { return static_cast<T>(old - value); });
}
template <class T>
T atomicMax(T* address, std::type_identity_t<T> value) {
  static_assert(
      onward::cuda_emu::kOneOf<T, int, unsigned, long long, onward::cuda_emu::Unsigned64>);
  return onward::cuda_emu::Update(address, [value](T old) { return old > value ? old : value; });
}
template <class T>
T atomicMin(T* address, std::type_identity_t<T> value) {
  static_assert(
      onward::cuda_emu::kOneOf<T, int, unsigned, long long, onward::cuda_emu::Unsigned64>);
  return onward::cuda_emu::Update(address, [value](T old) { return old < value ? old : value; });
}
template <class T>
T atomicExch(T* address, std::type_identity_t<T> value) {
  static_assert(onward::cuda_emu::kOneOf<T, float, int, unsigned, onward::cuda_emu::Unsigned64>);
  return onward::cuda_emu::Update(address, [value](T) { return value; });
}
template <class T>
T atomicCAS(T* address, std::type_identity_t<T> compare, std::type_identity_t<T> value) {
  static_assert(
      onward::cuda_emu::kOneOf<T, int, unsigned, unsigned short, onward::cuda_emu::Unsigned64>);
  std::atomic_ref<T>(*address).compare_exchange_strong(compare, value, std::memory_order_relaxed);
  return compare;
}
template <class T>
T atomicAnd(T* address, std::type_identity_t<T> value) {
  static_assert(onward::cuda_emu::kOneOf<T, int, unsigned, onward::cuda_emu::Unsigned64>);
  return onward::cuda_emu::Update(address, [value](T old) { return old & value; });
}
template <class T>
T atomicOr(T* address, std::type_identity_t<T> value) {
  static_assert(onward::cuda_emu::kOneOf<T, int, unsigned, onward::cuda_emu::Unsigned64>);
  return onward::cuda_emu::Update(address, [value](T old) { return old | value; });
}

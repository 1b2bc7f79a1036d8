// SPDX-License-Identifier: Apache-2.0
// What this machine can do at most, as measured by the fastest code at hand.
#ifndef ONWARD_BENCHMARKS_MACHINE_H_
#define ONWARD_BENCHMARKS_MACHINE_H_

namespace onward {

struct Machine {
  double flops = 0;      // per second: the faster of Onward's and oneDNN's float product, 1024^3
  double bandwidth = 0;  // bytes per second: a copy beyond the caches, reads and writes counted
};

// On all threads; takes about two seconds.
Machine MeasureMachine();

}  // namespace onward

#endif  // ONWARD_BENCHMARKS_MACHINE_H_

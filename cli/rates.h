// SPDX-License-Identifier: Apache-2.0
// What `onward train --find-lr` shows of its search.
#ifndef ONWARD_CLI_RATES_H_
#define ONWARD_CLI_RATES_H_

#include "absl/status/status.h"
#include "cli/args.h"
#include "trainer/run/find_rate.h"

namespace onward {

// The suggestion on standard output, with --json the curve too; the curve to --log and, drawn, to
// --report.
absl::Status ShowRates(const Args& args, const RateSearch& search);

}  // namespace onward

#endif  // ONWARD_CLI_RATES_H_

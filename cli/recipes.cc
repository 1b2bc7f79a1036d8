// SPDX-License-Identifier: Apache-2.0
// onward losses, onward optimizers, onward schedules, onward initializers: what make-trainable and
// train know by name, with options and defaults.
#include <iostream>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "losses/loss.h"
#include "optimizers/optimizer.h"
#include "optimizers/schedule.h"
#include "trainer/report/log/jsonl.h"
#include "training_info/initializers/initializer.h"

namespace onward {
namespace {

void PrintText(const std::vector<Description>& all) {
  for (const Description& d : all) {
    std::cout << d.name << ": " << d.summary << "\n";
    for (const OptionDescription& o : d.options) {
      std::cout << "    " << o.name << " (" << o.otherwise << "): " << o.expects << "\n";
    }
  }
}

void PrintJson(const std::vector<Description>& all) {
  for (const Description& d : all) {
    JsonWriter w;
    w.BeginObject().Field("name", d.name).Field("summary", d.summary).Key("options").BeginArray();
    for (const OptionDescription& o : d.options) {
      w.BeginObject()
          .Field("name", o.name)
          .Field("default", o.otherwise)
          .Field("expects", o.expects)
          .EndObject();
    }
    std::cout << w.EndArray().EndObject().text() << "\n";
  }
}

void PrintMarkdown(const std::vector<Description>& all) {
  std::cout << "| name | what | options (defaults) |\n|---|---|---|\n";
  for (const Description& d : all) {
    std::cout << "| `" << d.name << "` | " << d.summary << " | ";
    for (size_t i = 0; i < d.options.size(); ++i) {
      const OptionDescription& o = d.options[i];
      std::cout << (i == 0 ? "" : "; ") << "`" << o.name << "` (" << o.otherwise
                << "): " << o.expects;
    }
    std::cout << " |\n";
  }
}

Command RecipesCommand(const std::string& name, std::vector<Description> (*describe)()) {
  return {.name = name,
          .summary = absl::StrCat("table of ", name, ": what they are, options, defaults"),
          .arguments = {},
          .flags = {Flag::Switch("json", "print one JSON object for each"),
                    Flag::Switch("markdown", "print the table of docs/training-recipes.md")},
          .example = absl::StrCat("onward ", name),
          .run = [describe](const Args& args) -> absl::StatusOr<int> {
            const std::vector<Description> all = describe();
            args.Has("json")       ? PrintJson(all)
            : args.Has("markdown") ? PrintMarkdown(all)
                                   : PrintText(all);
            return 0;
          }};
}

}  // namespace

Command LossesCommand() { return RecipesCommand("losses", DescribeLosses); }
Command OptimizersCommand() { return RecipesCommand("optimizers", DescribeOptimizers); }
Command SchedulesCommand() { return RecipesCommand("schedules", DescribeSchedules); }
Command InitializersCommand() { return RecipesCommand("initializers", DescribeInitializers); }

}  // namespace onward

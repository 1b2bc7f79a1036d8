// SPDX-License-Identifier: Apache-2.0
// The page as a browser shows it: on a desktop and a phone, light and dark.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "absl/strings/str_replace.h"
#include "core/base/json.h"
#include "core/onnx_io/model.h"
#include "tests/cli/journey.h"
#include "tests/support/classified.h"
#include "tests/support/text_model.h"

namespace onward::report_looks_test {

// Tells the page around it what became of the report: how much is wider than the window, what the
// matrix takes of its place, the smallest letters of its names, and the faintest text.
constexpr char kMeasure[] = R"js(<script>
const rgb = (c) => c.match(/[\d.]+/g).map(Number);
const light = (c) => {
  const [r, g, b] = c.slice(0, 3).map((v) => v / 255)
      .map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const behind = (e) => {
  for (; e; e = e.parentElement) {
    const c = rgb(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
let faintest = 99, faint = '';
for (const e of document.querySelectorAll('body *:not(script):not(option)')) {
  const drawn = e instanceof SVGElement;
  const text = [...e.childNodes].some((n) => n.nodeType == 3 && n.textContent.trim());
  if (!text || e.tagName == 'title' || e.matches('.on, .off, button:disabled')) continue;
  const s = getComputedStyle(e);
  if (s.display == 'none' || !e.getClientRects().length) continue;
  const a = light(rgb(drawn ? s.fill : s.color)), b = light(behind(e));
  const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (contrast < faintest) faintest = contrast, faint = e.outerHTML.slice(0, 80);
}
const m = document.querySelector('.matrix'), root = document.documentElement;
const letters = [...m.querySelectorAll('.name')].map((t) =>
    parseFloat(getComputedStyle(t).fontSize) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b));
// How far the text beside a marked step stands out of its chart, which cuts it off.
const right = (e) => e.getBoundingClientRect().right;
const cut = [...document.querySelectorAll('line.mark + text')].map(
    (t) => right(t) -
        Math.max(...[...t.ownerSVGElement.querySelectorAll('line.axis')].map(right)));
parent.postMessage({
  window: innerWidth, dark: matchMedia('(prefers-color-scheme: dark)').matches,
  wider: root.scrollWidth - root.clientWidth, matrix: m.scrollWidth, place: m.clientWidth,
  rows: m.querySelector('.rows').getBoundingClientRect().width,
  letters: Math.min(...letters), names: m.querySelectorAll('.name').length,
  marks: cut.length, cut: Math.max(...cut), faintest, faint
}, '*');
</script></body>)js";

constexpr char kHost[] = R"html(<!DOCTYPE html><body style="margin:0">
<script>
const all = [];
addEventListener('message', (e) => {
  all.push(e.data);
  if (all.length == 2) document.body.textContent = 'MEASURED' + JSON.stringify(all) + 'END';
});
</script>
<iframe src="page.html" style="width:1280px;height:900px;border:0"></iframe>
<iframe src="page.html" style="width:390px;height:844px;border:0"></iframe>
</body>)html";

std::string Browser() {
  const char* named = std::getenv("ONWARD_CHROMIUM");
  return named != nullptr ? named : "chromium";
}

class ReportLooks : public Journey {
 protected:
  void SetUp() override {
    if (std::system((Browser() + " --version > /dev/null 2>&1").c_str()) != 0) {
      GTEST_SKIP() << "no Chromium: name one in ONWARD_CHROMIUM; how reports look is NOT tested "
                      "here";
    }
  }

  // The report of a run with so many classes, as the page that measures itself.
  void MakePage(int64_t classes) {
    std::vector<std::string> names;
    for (int64_t c = 0; c < classes; ++c) names.push_back(absl::StrCat("long-name of ", c));
    ASSERT_TRUE(WriteModel(TextModel(LinearClassifier(classes, classes)), Path("m.onnx")).ok());
    scratch_.Write("d.csv", ClassifiedCsv(names, 4 * classes));
    const std::string data = "'csv:" + Path("d.csv") + "?label=label'";
    Must("train " + Path("m.onnx") + " --quiet --overwrite --epochs 2 --data " + data + " --eval " +
         data + " --report " + Path("r.html") + " -o " + Path("out.onnx"));
    std::string page = scratch_.Read("r.html");
    const size_t policy = page.find("<meta http-equiv=\"Content-Security-Policy\"");
    ASSERT_NE(policy, std::string::npos);
    page.erase(policy, page.find('>', policy) + 1 - policy);
    scratch_.Write("page.html", absl::StrReplaceAll(page, {{"</body>", kMeasure}}));
    scratch_.Write("host.html", kHost);
  }

  std::vector<Json> Measured(bool dark) {
    const CommandResult r = RunOnward(
        "timeout -s KILL 100 " + Browser(),
        absl::StrCat("--headless --no-sandbox --disable-gpu --virtual-time-budget=10000 ",
                     "--window-size=1700,1000 --blink-settings=preferredColorScheme=", dark ? 0 : 1,
                     " --user-data-dir=", Path("profile"), " --dump-dom file://",
                     Path("host.html")));
    const size_t begin = r.output.find("MEASURED"), end = r.output.find("END</body>");
    if (begin == std::string::npos || end == std::string::npos) {
      ADD_FAILURE() << r.output << r.errors;
      return {};
    }
    const auto all = ParseJson(absl::StrReplaceAll(r.output.substr(begin + 8, end - begin - 8),
                                                   {{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}}));
    EXPECT_TRUE(all.ok()) << all.status();
    return all.ok() ? all->items() : std::vector<Json>{};
  }
};

TEST_F(ReportLooks, IsLegibleEverywhere) {
  for (const int64_t classes : {10, 65}) {
    MakePage(classes);
    if (HasFatalFailure()) return;
    for (const bool dark : {false, true}) {
      const std::vector<Json> windows = Measured(dark);
      ASSERT_EQ(windows.size(), 2u);
      for (const Json& w : windows) {
        const auto number = [&](const char* name) { return w.Find(name)->number(); };
        SCOPED_TRACE(absl::StrCat(classes, " classes, ", number("window"), " wide, ",
                                  dark ? "dark" : "light"));
        EXPECT_EQ(w.Find("dark")->truth(), dark);
        EXPECT_LE(number("wider"), 0);
        EXPECT_GE(number("letters"), 11.5);
        EXPECT_EQ(number("names"), 2 * classes);
        // Names that stay when the matrix is scrolled leave it half of the place.
        EXPECT_LE(number("rows"), 0.5 * number("place"));
        const bool desktop = number("window") > 1000;
        EXPECT_LE(desktop ? number("matrix") : 0, number("place"));
        EXPECT_GE(number("marks"), 1);
        EXPECT_LE(number("cut"), 0);
        // What WCAG asks of text.
        EXPECT_GE(number("faintest"), 4.5) << w.Find("faint")->text();
      }
    }
  }
}

}  // namespace onward::report_looks_test

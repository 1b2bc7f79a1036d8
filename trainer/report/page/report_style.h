// SPDX-License-Identifier: Apache-2.0
// The report's style sheet: light and dark by the reader's preference, and
// light on paper.
#ifndef ONWARD_TRAINER_REPORT_PAGE_REPORT_STYLE_H_
#define ONWARD_TRAINER_REPORT_PAGE_REPORT_STYLE_H_

namespace onward {

inline constexpr char kReportStyle[] = R"css(
:root { color-scheme: light dark;
  --page: #f6f7f9; --card: #ffffff; --ink: #1b2330; --soft: #5d6878; --rule: #e1e5eb;
  --grid: #edf0f4;
  --train: #2563c9; --eval: #b9560f; --rate: #277f53; --hit: #2563c9; --miss: #c24a08;
  --well: #f0f2f6;
  --run0: #2563c9; --run1: #b9560f; --run2: #277f53; --run3: #a33fb5;
  --run4: #b3261e; --run5: #7a6a00; --run6: #0f7f8f; --run7: #6b4fd0; }
@media (prefers-color-scheme: dark) { :root {
  --page: #12161c; --card: #1a2029; --ink: #e4e9f0; --soft: #98a4b5; --rule: #2c3541;
  --grid: #262e39;
  --train: #6ea3f7; --eval: #f0954e; --rate: #5cc492; --hit: #4d86e0; --miss: #e06a24;
  --well: #232b36;
  --run0: #6ea3f7; --run1: #f0954e; --run2: #5cc492; --run3: #d488e3;
  --run4: #f08a83; --run5: #d3bf4a; --run6: #5cc7d6; --run7: #a794f2; } }
@media print { :root { color-scheme: light;
  --page: #ffffff; --card: #ffffff; --ink: #000000; --soft: #444c58; --rule: #c9ced6;
  --grid: #e4e7ec;
  --train: #1f56b3; --eval: #b9560f; --rate: #1f7048; --hit: #2563c9; --miss: #c24a08;
  --well: #f2f3f5;
  --run0: #2563c9; --run1: #b9560f; --run2: #277f53; --run3: #a33fb5;
  --run4: #b3261e; --run5: #7a6a00; --run6: #0f7f8f; --run7: #6b4fd0; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  sans-serif; }
main { max-width: 1080px; margin: 0 auto; padding: 36px 24px 48px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0; letter-spacing: -0.01em;
  overflow-wrap: anywhere; }
h2 { font-size: 18px; margin: 36px 0 12px; }
h3 { font-size: 15px; margin: 0; font-weight: 600; }
h3 small { font-weight: 400; font-size: 13px; color: var(--soft); margin-left: 8px; }
.early { margin: 16px 0 0; padding: 10px 14px; background: var(--card);
  border: 1px solid var(--rule); border-left: 4px solid var(--miss); border-radius: 6px;
  overflow-wrap: anywhere; }
.card.warned { border-left: 4px solid var(--miss); } ul { margin: 0; padding-left: 18px;
  overflow-wrap: anywhere; } li + li { margin-top: 4px; }
.subtitle { color: var(--soft); margin: 6px 0 0; overflow-wrap: anywhere; }
.card, .chart, .figure { background: var(--card); border: 1px solid var(--rule);
  border-radius: 10px; }
.card { padding: 18px 20px; overflow-x: auto; }
.card + .card { margin-top: 14px; }
.figures { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 14px;
  margin-top: 24px; }
.figure { padding: 14px 18px; }
.figure b { display: block; font-size: 27px; line-height: 1.25; font-weight: 650;
  letter-spacing: -0.01em;
  font-variant-numeric: tabular-nums; overflow-wrap: anywhere; }
.figure span { color: var(--soft); font-size: 13px; display: block; overflow-wrap: anywhere; }
.chart { margin: 0 0 14px; padding: 16px 18px 10px; position: relative; }
.chart > svg { touch-action: pan-y; cursor: crosshair; }
.chart figcaption { display: flex; flex-wrap: wrap; gap: 4px 20px; align-items: baseline;
  justify-content: space-between; margin-bottom: 6px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(380px, 1fr)); gap: 14px;
  align-items: start; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; color: var(--soft); font-size: 13px; }
.key { display: inline-block; width: 18px; height: 3px; border-radius: 2px; margin-right: 6px;
  vertical-align: middle; }
.key.raw { background: var(--train); opacity: .35; } .key.train { background: var(--train); }
.key.eval { background: var(--eval); } .key.rate { background: var(--rate); }
.key.even { background: var(--soft); }
.zoom { display: flex; gap: 4px; margin-left: auto; }
.zoom button { font: inherit; font-size: 12px; line-height: 1; min-width: 26px; padding: 5px 7px;
  color: var(--ink); background: var(--well); border: 1px solid var(--rule); border-radius: 5px;
  cursor: pointer; }
.zoom button:disabled { opacity: .4; cursor: default; }
.tip { display: none; position: absolute; z-index: 1; pointer-events: none; max-width: 92%;
  background: var(--card); border: 1px solid var(--soft); border-radius: 6px; padding: 5px 9px;
  font-size: 13px; line-height: 1.45; font-variant-numeric: tabular-nums;
  box-shadow: 0 2px 8px rgb(0 0 0 / .25); }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-family: inherit; fill: var(--ink); }
.tick { font-size: 12px; fill: var(--soft); font-variant-numeric: tabular-nums; }
.grid { stroke: var(--grid); } .axis { stroke: var(--soft); stroke-opacity: .6; }
.line { fill: none; stroke-linejoin: round; stroke-linecap: round; stroke-width: 2.2; }
.line.raw { stroke: var(--train); stroke-width: .8; opacity: .35; }
.line.train { stroke: var(--train); } .line.eval { stroke: var(--eval); } .line.rate {
  stroke: var(--rate); }
.line.even { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 5 4; }
.points { fill: none; stroke-linecap: round; stroke-width: 5; stroke-opacity: .45; }
.points.eval { stroke: var(--eval); }
.mark { stroke: var(--soft); stroke-dasharray: 3 3; } .selection { fill: var(--train); opacity: .15; }
.line.run0 { stroke: var(--run0); } .dot.run0, svg .end.run0 { fill: var(--run0); } .key.run0 {
  background: var(--run0); }
.line.run1 { stroke: var(--run1); } .dot.run1, svg .end.run1 { fill: var(--run1); } .key.run1 {
  background: var(--run1); }
.line.run2 { stroke: var(--run2); } .dot.run2, svg .end.run2 { fill: var(--run2); } .key.run2 {
  background: var(--run2); }
.line.run3 { stroke: var(--run3); } .dot.run3, svg .end.run3 { fill: var(--run3); } .key.run3 {
  background: var(--run3); }
.line.run4 { stroke: var(--run4); } .dot.run4, svg .end.run4 { fill: var(--run4); } .key.run4 {
  background: var(--run4); }
.line.run5 { stroke: var(--run5); } .dot.run5, svg .end.run5 { fill: var(--run5); } .key.run5 {
  background: var(--run5); }
.line.run6 { stroke: var(--run6); } .dot.run6, svg .end.run6 { fill: var(--run6); } .key.run6 {
  background: var(--run6); }
.line.run7 { stroke: var(--run7); } .dot.run7, svg .end.run7 { fill: var(--run7); } .key.run7 {
  background: var(--run7); }
.line.thin { stroke-width: 1; opacity: .45; }
.dot { stroke: var(--card); stroke-width: 1.2; } .dot.eval { fill: var(--eval); } .dot.train {
  fill: var(--train); } .dot.rate { fill: var(--rate); }
.end { font-size: 13px; font-weight: 600; font-variant-numeric: tabular-nums; }
svg .end.train { fill: var(--train); } svg .end.eval { fill: var(--eval); } svg .end.rate {
  fill: var(--rate); }
.note { color: var(--soft); font-size: 13px; margin: 8px 0 4px; }
.split { display: grid; grid-template-columns: minmax(0, 1.25fr) minmax(300px, 1fr); gap: 28px;
  align-items: start; }
@media (max-width: 1100px) { .split { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 860px) { .pair { grid-template-columns: minmax(0, 1fr); } }
.field { fill: var(--well); } .hit { fill: var(--hit); } .miss { fill: var(--miss); }
.single { max-width: 680px; }
.matrix { display: flex; overflow-x: auto; padding-bottom: 6px; }
.matrix > svg { flex: none; overflow: hidden; }
.matrix .rows { position: sticky; left: 0; background: var(--card); }
.name { font-size: 12px; } svg .on { fill: #ffffff; } .confusion text {
  font-variant-numeric: tabular-nums; }
table { border-collapse: collapse; width: 100%; font-size: 14px; }
th { text-align: left; font-weight: 600; color: var(--soft); font-size: 13px; }
th, td { padding: 5px 10px 5px 0; border-bottom: 1px solid var(--rule); vertical-align: top;
  overflow-wrap: anywhere; }
tr:last-child td { border-bottom: 0; }
td:first-child { overflow-wrap: break-word; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; padding-right: 0;
  padding-left: 10px; white-space: nowrap; }
td.k { color: var(--soft); white-space: nowrap; width: 1%; padding-right: 22px; }
code, pre, .hash { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono",
  monospace; font-size: 13px; }
pre { background: var(--well); border-radius: 7px; padding: 10px 14px; margin: 4px 0 14px;
  white-space: pre-wrap; overflow-wrap: anywhere; }
pre.alone { margin: 0; }
.hash { color: var(--soft); font-size: 12px; }
details { margin-top: 12px; } summary { cursor: pointer; color: var(--soft); font-size: 14px; }
.spark { width: 110px; height: 22px; margin: 0 10px; overflow: visible; display: inline-block;
  vertical-align: middle; }
.spark path { fill: none; stroke: var(--train); stroke-width: 1.5; }
.share { display: inline-block; height: 9px; border-radius: 2px; background: var(--train);
  min-width: 1px; vertical-align: middle; }
.operators td:last-child { width: 30%; min-width: 90px; padding-left: 14px; }
h3.below { margin: 22px 0 6px; } .fits { min-width: 0; }
dl { display: grid; grid-template-columns: minmax(110px, max-content) 1fr; gap: 6px 20px; margin: 0;
  font-size: 14px; } dt { font-weight: 600; } dd { margin: 0; color: var(--soft); }
.wrong { display: grid; grid-template-columns: repeat(auto-fill, minmax(96px, 1fr));
  gap: 16px 12px; }
.wrong figure { margin: 0; text-align: center; font-size: 13px; line-height: 1.35;
  overflow-wrap: anywhere; }
.wrong img { width: 88px; height: 88px; object-fit: contain; image-rendering: pixelated;
  background: var(--well); border-radius: 6px; display: block; margin: 0 auto 6px; }
img.grid { width: 100%; max-width: 760px; image-rendering: pixelated; display: block; }
.wrong b { color: var(--miss); } .wrong span { color: var(--soft); display: block; }
footer { color: var(--soft); font-size: 13px; margin-top: 36px; }
@media (max-width: 640px) { .chart .tick, .chart .end { font-size: 16px; }
  .wide .tick, .wide .end { font-size: 22px; } main {
  padding: 24px 12px; } .card { padding: 14px 12px; } .chart { padding: 12px 10px 8px; }
  td.k { white-space: normal; width: 34%; padding-right: 12px; } dl { display: block; } dd {
  margin-bottom: 8px; } }
@page { margin: 14mm; }
@media print { .zoom, .tip { display: none; } main { max-width: none; padding: 0; } body { font-size: 12px; } h2 {
  margin-top: 22px; break-after: avoid; }
  .card, .chart, .figure, .wrong figure { break-inside: avoid; } * { print-color-adjust: exact;
  -webkit-print-color-adjust: exact; } }
)css";

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_REPORT_STYLE_H_

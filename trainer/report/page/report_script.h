// SPDX-License-Identifier: Apache-2.0
// The report's script: values under the pointer, and a part of a chart at a time. Without it the
// page shows the same drawings. It reads the data-chart attribute that report_chart.cc writes.
#ifndef ONWARD_TRAINER_REPORT_PAGE_REPORT_SCRIPT_H_
#define ONWARD_TRAINER_REPORT_PAGE_REPORT_SCRIPT_H_

namespace onward {

inline constexpr char kReportScript[] = R"js(
"use strict";
const element = (name, attributes, text) => {
  const e = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const key in attributes) e.setAttribute(key, attributes[key]);
  if (text !== undefined) e.textContent = text;
  return e;
};

// Ticks at 1, 2 or 5 times a power of ten.
const niceTicks = (low, high, wanted) => {
  const rough = (high - low) / wanted, power = Math.pow(10, Math.floor(Math.log10(rough)));
  const step = power * [1, 2, 5, 10].find(f => f * power >= rough * 0.99);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; ++k) ticks.push(k * step || 0);
  return ticks;
};

const logTicks = (low, high) => {
  const ticks = [];
  for (let p = Math.pow(10, Math.floor(Math.log10(low))); p <= high; p *= 10) {
    for (const f of high / low < 2000 ? [1, 2, 5] : [1]) {
      if (f * p >= low && f * p <= high) ticks.push(f * p);
    }
  }
  return ticks;
};

const numberText = (v, digits) => {
  const short = Number(v.toPrecision(digits));
  return Math.abs(short) >= 1e4 ? short.toLocaleString("en") : String(short);
};

class Chart {
  constructor(figure) {
    this.figure = figure;
    Object.assign(this, JSON.parse(figure.dataset.chart));
    this.all = {xs: this.xs, ys: this.ys};
    this.svg = figure.querySelector("svg");
    this.over = this.svg.appendChild(element("g", {class: "over"}));
    this.first = ["axes", "lines", "ends"].map(n => this.svg.querySelector("g." + n));
    this.now = this.first.slice(0, 2).map(g => g.cloneNode(false));
    this.tip = figure.appendChild(document.createElement("div"));
    this.tip.className = "tip";
    this.addButtons();
    if (this.width > 600 && this.svg.clientWidth > 0 && this.svg.clientWidth < 560) this.narrow();
    this.svg.addEventListener("pointermove", e => this.move(e));
    this.svg.addEventListener("pointerdown", e => this.press(e));
    this.svg.addEventListener("pointerup", e => this.release(e));
    this.svg.addEventListener("pointerleave", () => this.clear());
    this.svg.addEventListener("dblclick", () => this.zoom(null));
  }

  // On a phone: letters keep their size, the drawing has fewer units.
  narrow() {
    const less = this.width - 480;
    this.width = 480;
    this.figure.classList.remove("wide");
    this.svg.setAttribute("viewBox", "0 0 480 " + this.height);
    this.svg.querySelector("clipPath rect").setAttribute("width", 484 - this.left - this.right);
    this.first[2].setAttribute("transform", "translate(" + -less + " 0)");
    this.draw();
    for (let i = 0; i < 2; ++i) this.first[i].replaceChildren(...this.now[i].childNodes);
  }

  addButtons() {
    const box = this.figure.querySelector("figcaption").appendChild(document.createElement("div"));
    box.className = "zoom";
    const add = (text, name, act) => {
      const b = box.appendChild(document.createElement("button"));
      b.type = "button";
      b.textContent = text;
      b.title = name;
      b.setAttribute("aria-label", name + ": " + this.svg.getAttribute("aria-label"));
      b.addEventListener("click", act);
      return b;
    };
    add("+", "Zoom in (or drag over a stretch)", () => this.closer(0.5));
    this.farther = add("−", "Zoom out", () => this.closer(2));
    this.whole = add("all", "Show all (or double-click)", () => this.zoom(null));
    this.farther.disabled = this.whole.disabled = true;
  }

  x(v) {
    const [low, high] = this.xs;
    return this.left + (v - low) / (high - low) * (this.width - this.left - this.right);
  }
  y(v) {
    const [low, high] = this.ys;
    const part = this.logarithmic ? Math.log(Math.max(v, 1e-300) / low) / Math.log(high / low)
                                  : (v - low) / (high - low);
    return this.height - this.bottom - part * (this.height - this.top - this.bottom);
  }
  // Where the pointer is, in the drawing and in the data.
  at(event) {
    const box = this.svg.getBoundingClientRect(), scale = this.width / box.width;
    const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
    const inner = Math.min(Math.max(x, this.left), this.width - this.right);
    const share = (inner - this.left) / (this.width - this.left - this.right);
    return {x: inner, y, value: this.xs[0] + share * (this.xs[1] - this.xs[0])};
  }

  nearest(line, at) {
    let best = null, least = Infinity;
    for (const p of line.points) {
      if (p[1] === null || p[0] < this.xs[0] || p[0] > this.xs[1]) continue;
      const dx = this.x(p[0]) - at.x, dy = line.scattered ? this.y(p[1]) - at.y : 0;
      if (dx * dx + dy * dy < least) [best, least] = [p, dx * dx + dy * dy];
    }
    return best;
  }
  text(v) {
    return this.percent ? (100 * v).toFixed(2) + "%" : numberText(v, 4);
  }

  move(event) {
    this.clear();
    const at = this.at(event);
    if (this.start !== undefined) this.over.append(this.selection(this.start, at));
    const found = this.lines.map(line => [line, this.nearest(line, at)]).filter(f => f[1]);
    if (!found.length) return;
    const x = found.reduce((a, b) =>
      Math.abs(this.x(b[1][0]) - at.x) < Math.abs(this.x(a[1][0]) - at.x) ? b : a)[1][0];
    const row = (style, text) => {
      const r = this.tip.appendChild(document.createElement("div"));
      if (style) r.appendChild(document.createElement("i")).className = "key " + style;
      r.append(text);
    };
    row("", this.x_text(x));
    for (const [line, p] of found) {
      if (line.scattered && p[0] !== x) continue;
      row(line.style, line.name + " " + this.text(p[1]));
      this.over.append(element("circle", {class: "dot " + line.style, cx: this.x(p[0]),
        cy: Math.max(this.top - 4, this.y(p[1])), r: 4}));
    }
    this.over.prepend(element("line", {class: "mark", x1: this.x(x), x2: this.x(x), y1: this.top,
      y2: this.height - this.bottom}));
    this.place(this.x(x));
  }
  x_text(v) {
    return this.x_title + " " + (this.whole_x ? v.toLocaleString("en") : numberText(v, 4));
  }
  place(x) {
    this.tip.style.display = "block";
    const box = this.svg.getBoundingClientRect(), outer = this.figure.getBoundingClientRect();
    const at = box.left - outer.left + x / this.width * box.width;
    const room = outer.width - this.tip.offsetWidth - 6;
    const beside = at + 14 > room ? at - this.tip.offsetWidth - 14 : at + 14;
    this.tip.style.left = Math.min(Math.max(beside, 6), Math.max(room, 6)) + "px";
    this.tip.style.top = box.top - outer.top + 4 + "px";
  }
  clear() {
    this.tip.replaceChildren();
    this.tip.style.display = "none";
    this.over.replaceChildren();
  }

  selection(a, b) {
    return element("rect", {class: "selection", x: Math.min(a.x, b.x), y: this.top,
      width: Math.abs(a.x - b.x), height: this.height - this.top - this.bottom});
  }
  press(event) {
    if (event.pointerType !== "touch" && event.button === 0) this.start = this.at(event);
  }
  release(event) {
    const start = this.start, end = this.at(event);
    this.start = undefined;
    if (!start || Math.abs(start.x - end.x) < 8) return;
    this.zoom([Math.min(start.value, end.value), Math.max(start.value, end.value)]);
  }
  closer(factor) {
    const [low, high] = this.xs, middle = (low + high) / 2, half = (high - low) / 2 * factor;
    const [first, last] = this.all.xs;
    if (2 * half >= last - first) return this.zoom(null);
    const begin = Math.min(Math.max(middle - half, first), last - 2 * half);
    this.zoom([begin, begin + 2 * half]);
  }

  zoom(xs) {
    const inside = xs && this.lines.some(l => l.points.some(p => p[0] >= xs[0] && p[0] <= xs[1]));
    this.clear();
    this.xs = inside ? xs : this.all.xs;
    this.ys = inside ? this.rangeOf(xs) : this.all.ys;
    this.farther.disabled = this.whole.disabled = !inside;
    this.first[2].style.display = inside ? "none" : "";
    if (inside) this.draw();
    for (let i = 0; i < 2; ++i) {
      const [old, fresh] = inside ? [this.first[i], this.now[i]] : [this.now[i], this.first[i]];
      if (old.parentNode) old.replaceWith(fresh);
    }
  }
  rangeOf(xs) {
    const values = [];
    this.lines.forEach(l => l.points.forEach(p => {
      if (p[1] !== null && p[0] >= xs[0] && p[0] <= xs[1]) values.push(p[1]);
    }));
    const low = Math.min(...values), high = Math.max(...values);
    if (!values.length) return this.all.ys;
    if (this.logarithmic && low > 0) return [low * 0.9, high * 1.1];
    const pad = high > low ? 0.06 * (high - low) : Math.abs(high) * 0.1 || 1;
    if (this.percent) return [Math.max(0, low - pad), Math.min(1, Math.max(high + pad, low + 1e-3))];
    return [low - pad, high + pad];
  }

  draw() {
    const right = this.width - this.right, bottom = this.height - this.bottom;
    const [axes, lines] = this.now;
    axes.replaceChildren();
    lines.replaceChildren();
    const [low, high] = this.ys;
    const far = this.logarithmic && high > 5 * low;
    for (const t of far ? logTicks(low, high) : niceTicks(low, high, 5)) {
      axes.append(element("line", {class: "grid", x1: this.left, x2: right, y1: this.y(t),
        y2: this.y(t)}), element("text", {class: "tick", "text-anchor": "end", x: this.left - 8,
        y: this.y(t) + 4}, this.percent ? numberText(100 * t, 4) + "%" : numberText(t, 4)));
    }
    for (const t of niceTicks(this.xs[0], this.xs[1], this.width / 110)) {
      if (this.whole_x && Math.abs(t - Math.round(t)) > 1e-9) continue;
      axes.append(element("text", {class: "tick", "text-anchor": "middle", x: this.x(t),
        y: bottom + 18}, this.whole_x ? Math.round(t).toLocaleString("en") : numberText(t, 4)));
    }
    axes.append(element("line", {class: "axis", x1: this.left, x2: right, y1: bottom, y2: bottom}),
      element("text", {class: "tick", "text-anchor": "middle", x: (this.left + right) / 2,
        y: this.height - 6}, this.x_title));
    for (const [x, text] of this.marks) {
      const left = this.x(x) > 0.7 * this.width;
      lines.append(element("line", {class: "mark", x1: this.x(x), x2: this.x(x), y1: this.top,
        y2: bottom}), element("text", {class: "tick", "text-anchor": left ? "end" : "start",
        x: this.x(x) + (left ? -5 : 5), y: this.top + 10}, text));
    }
    for (const line of this.lines) lines.append(...this.trace(line));
  }
  trace(line) {
    let path = "", down = false;
    const dots = [];
    for (const [x, y] of line.points) {
      if (y === null) {
        down = false;
        continue;
      }
      const here = this.x(x).toFixed(1) + " " + this.y(y).toFixed(1);
      path += line.scattered ? "M" + here + "h0" : (down ? "L" : "M") + here;
      down = true;
      if (line.dots && x >= this.xs[0] && x <= this.xs[1]) {
        dots.push(element("circle", {class: "dot " + line.style, cx: this.x(x), cy: this.y(y), r: 3}));
      }
    }
    const kind = line.scattered ? "points " : "line ";
    return [element("path", {class: kind + line.style, d: path}), ...dots];
  }
}

document.querySelectorAll("figure[data-chart]").forEach(figure => new Chart(figure));
)js";

}  // namespace onward

#endif  // ONWARD_TRAINER_REPORT_PAGE_REPORT_SCRIPT_H_

// Charts of lines and bands, drawn as SVG at the width that there is.

import { h, s, number, whole } from "./dom.js";

const LEFT = 52, RIGHT = 12, TOP = 22, BOTTOM = 38;
// Pixels that the label of a mark may take.
const LABEL = 76;

/** Return round numbers that divide an interval into about `count` parts. */
export function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const rough = span / Math.max(count, 1);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((one) => one >= rough);
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * span; i++) found.push(+(i * step).toPrecision(12));
  return found;
}

/** Return how the numbers of an axis are written: all in the same unit. */
function writer(values) {
  const size = Math.max(...values.map(Math.abs), 0);
  const [unit, name] = size >= 1e6 ? [1e6, "M"] : size >= 1e4 ? [1e3, "k"] : [1, ""];
  return (value) => (value === 0 ? "0" : number(value / unit, 5) + name);
}

function path(x, y, points) {
  let text = "";
  let open = false;
  for (const [a, b] of points) {
    if (b === null || b === undefined || !isFinite(b)) { open = false; continue; }
    text += `${open ? "L" : "M"}${x(a).toFixed(1)} ${y(b).toFixed(1)}`;
    open = true;
  }
  return text;
}

/**
 * A chart. `draw` takes lines `{x, y, low?, high?, colour, dash?, width?, fade?, fill?}`, domains, and marks:
 * upright lines `{x, colour, dash?, label?}`. `options.onZoom(low, high)` makes stretches of the axis selectable, `options.onPick(x)`
 * reports clicks.
 */
export class Chart {
  constructor({ height = 240, x, y, ...options }) {
    Object.assign(this, { height, names: { x, y }, options });
    this.svg = s("svg", { role: "img", height });
    this.tip = h("div", { class: "tip", hidden: true, "aria-hidden": "true" });
    this.element = h("div", { class: "chart" }, this.svg, this.tip);
    new ResizeObserver(() => this.data && this.render()).observe(this.element);
    this.listen();
  }

  draw(data) {
    this.data = data;
    this.svg.setAttribute("aria-label", data.label ?? this.names.y);
    this.render();
  }

  render() {
    const width = this.element.clientWidth;
    if (!width) return;
    const { xDomain, yDomain, lines = [], marks = [], bars = [], spans = [], dots = [] } = this.data;
    const bottom = this.height - BOTTOM;
    const scale = ([low, high], from, to) => (value) => from + ((value - low) / ((high - low) || 1)) * (to - from);
    const x = (this.x = scale(xDomain, LEFT, width - RIGHT));
    const y = (this.y = scale(yDomain, bottom, TOP));
    this.width = width;
    const id = (this.id ??= `clip${Math.random().toString(36).slice(2)}`);
    const clip = s("clipPath", { id }, s("rect", { x: LEFT, y: TOP - 4, width: Math.max(width - LEFT - RIGHT, 0), height: bottom - TOP + 5 }));
    const inside = s("g", { "clip-path": `url(#${id})` });
    for (const one of spans) inside.append(s("rect", { x: LEFT, width: Math.max(width - LEFT - RIGHT, 0), y: y(one.high), height: Math.max(y(one.low) - y(one.high), 0), fill: one.colour, opacity: 0.1 }));
    for (const one of bars) inside.append(s("rect", { x: x(one.from) + 0.5, width: Math.max(x(one.to) - x(one.from) - 1, 0.5), y: y(one.value), height: Math.max(y(yDomain[0]) - y(one.value), 0), fill: one.colour, opacity: 0.75 }));
    for (const line of lines) inside.append(...this.line(line, bottom));
    for (const mark of marks) inside.append(s("line", { x1: x(mark.x), x2: x(mark.x), y1: TOP - 4, y2: bottom, stroke: mark.colour, "stroke-width": mark.width ?? 1.4, "stroke-dasharray": mark.dash ?? "", opacity: mark.opacity ?? 1, class: mark.class }));
    for (const dot of dots) {
      if (dot.low !== undefined) inside.append(s("line", { x1: x(dot.x), x2: x(dot.x), y1: y(dot.low), y2: y(dot.high), stroke: dot.colour, "stroke-width": 1.8 }));
      inside.append(s("circle", { cx: x(dot.x), cy: y(dot.y), r: 3.5, fill: dot.colour }));
    }
    this.hover = s("g");
    this.svg.replaceChildren(clip, ...this.axes(x, y, bottom), inside, ...this.labels(marks, x), this.hover);
  }

  line(line, bottom) {
    const { x, y } = this;
    const found = [];
    const points = line.x.map((at, i) => [at, line.y[i]]);
    if (line.low) {
      const up = line.x.map((at, i) => [at, line.high[i]]);
      const down = line.x.map((at, i) => [at, line.low[i]]).reverse();
      found.push(s("path", { d: `${path(x, y, up)}${path(x, y, down).replace("M", "L")}Z`, fill: line.colour, opacity: 0.16 }));
    }
    for (const fill of line.fills ?? []) {
      const part = points.filter(([at]) => at >= fill.from && at <= fill.to);
      if (part.length > 1) found.push(s("path", { d: `${path(x, y, part)}L${x(part.at(-1)[0])} ${bottom}L${x(part[0][0])} ${bottom}Z`, fill: line.colour, opacity: fill.opacity }));
    }
    const shared = { stroke: line.colour, "stroke-width": line.width ?? 1.8, "stroke-dasharray": line.dash ?? "", opacity: line.opacity ?? 1 };
    if (points.length === 1) found.push(s("circle", { cx: x(points[0][0]), cy: y(points[0][1]), r: 3.5, fill: line.colour }));
    found.push(s("path", { d: path(x, y, points), fill: "none", "stroke-linejoin": "round", ...shared, class: line.class ?? "line" }));
    return found;
  }

  axes(x, y, bottom) {
    const { xDomain, yDomain } = this.data;
    const right = this.width - RIGHT;
    const found = [];
    const [across, up] = [this.data.xTicks ?? ticks(...xDomain, Math.max(this.width / 110, 2)), ticks(...yDomain, Math.max(this.height / 55, 2))];
    const [place, size] = [writer(across), writer(up)];
    for (const at of up) {
      found.push(s("line", { x1: LEFT, x2: right, y1: y(at), y2: y(at), class: "grid" }));
      found.push(s("text", { x: LEFT - 8, y: y(at) + 4, "text-anchor": "end", text: size(at) }));
    }
    for (const at of across) {
      found.push(s("text", { x: x(at), y: bottom + 17, "text-anchor": "middle", text: place(at) }));
      found.push(s("line", { x1: x(at), x2: x(at), y1: bottom, y2: bottom + 4, class: "base" }));
    }
    found.push(s("line", { x1: LEFT, x2: right, y1: bottom, y2: bottom, class: "base" }));
    found.push(s("text", { x: right, y: bottom + 34, "text-anchor": "end", class: "axis-name", text: this.names.x }));
    return found;
  }

  labels(marks, x) {
    const placed = marks.filter((mark) => mark.label && x(mark.x) >= LEFT && x(mark.x) <= this.width - RIGHT).sort((a, b) => a.x - b.x);
    return placed.map((mark, i) => {
      // Neighbours that are close are written to either side.
      const crowded = i + 1 < placed.length && x(placed[i + 1].x) - x(mark.x) < LABEL;
      const end = crowded || x(mark.x) > this.width - LABEL;
      return s("text", { x: x(mark.x) + (end ? 3 : -3), y: TOP - 9, "text-anchor": end ? "end" : "start", text: mark.label });
    });
  }

  listen() {
    let from = null;
    const at = (event) => event.clientX - this.svg.getBoundingClientRect().left;
    const value = (pixel) => {
      const [low, high] = this.data.xDomain;
      const share = (pixel - LEFT) / (this.width - LEFT - RIGHT);
      return low + Math.min(Math.max(share, 0), 1) * (high - low);
    };
    this.svg.addEventListener("pointerdown", (event) => {
      if (event.button || !this.data || event.pointerType === "touch") return;
      from = at(event);
      if (this.options.onZoom) this.svg.setPointerCapture(event.pointerId);
    });
    this.svg.addEventListener("pointermove", (event) => {
      if (!this.data || !this.hover) return;
      const now = at(event);
      const dragged = from !== null && this.options.onZoom && Math.abs(now - from) > 4;
      if (dragged) {
        this.hover.replaceChildren(s("rect", { class: "zoom", x: Math.min(from, now), width: Math.abs(now - from), y: TOP, height: this.height - BOTTOM - TOP }));
        this.tip.hidden = true;
      } else this.point(value(now));
    });
    this.svg.addEventListener("pointerup", (event) => {
      if (from === null && event.pointerType !== "touch") return;
      const now = at(event);
      const start = from ?? now;
      from = null;
      if (this.options.onZoom && Math.abs(now - start) > 8) this.options.onZoom(...[value(start), value(now)].sort((a, b) => a - b));
      else this.options.onPick?.(value(now));
    });
    this.svg.addEventListener("pointerleave", () => {
      this.tip.hidden = true;
      this.hover?.replaceChildren();
    });
  }

  /** Show the values of all lines at a place. */
  point(place) {
    const lines = (this.data.lines ?? []).filter((line) => line.name && line.x.length);
    if (!lines.length) return;
    const nearest = (line) => line.x.reduce((best, one, i) => (Math.abs(one - place) < Math.abs(line.x[best] - place) ? i : best), 0);
    const shown = this.data.xTicks ? place : lines[0].x[nearest(lines[0])];
    this.hover.replaceChildren(s("line", { class: "cross", x1: this.x(shown), x2: this.x(shown), y1: TOP, y2: this.height - BOTTOM }));
    this.tip.replaceChildren(
      h("div", { class: "faint", text: `${this.names.x} ${this.names.x === "steps" ? whole(shown) : number(shown)}` }),
      ...lines.map((line) => {
        const i = nearest(line);
        const mark = h("i", { class: "swatch" });
        mark.style.borderTopColor = line.colour;
        const range = line.low && line.low[i] !== line.high[i] ? ` (${number(line.low[i], 3)} to ${number(line.high[i], 3)})` : "";
        return h("div", {}, mark, h("span", { text: line.name }), h("b", { text: number(line.y[i]) + range }));
      }),
    );
    this.tip.hidden = false;
    const middle = this.x(shown) > this.width / 2;
    this.tip.style.left = middle ? "" : `${this.x(shown) + 12}px`;
    this.tip.style.right = middle ? `${this.width - this.x(shown) + 12}px` : "";
    this.tip.style.top = "14px";
  }
}

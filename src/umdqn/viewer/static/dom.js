// Elements, numbers and colours. All text reaches the page as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "text") element.textContent = value;
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make an element: `h("p", {class: "note", text: "..."})`. */
export const h = (tag, properties = {}, ...children) => fill(document.createElement(tag), properties, children);

/** Make an element of a drawing. */
export const s = (tag, properties = {}, ...children) => fill(document.createElementNS(SVG, tag), properties, children);

/** Format a number with some significant digits; a dash where there is none. */
export function number(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e6 || size < 1e-4)) return value.toExponential(Math.max(digits - 2, 0)).replace("-", "−");
  return value.toLocaleString("en", { maximumSignificantDigits: digits }).replace("-", "−");
}

export const whole = (value) => (value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en"));

/** Format a length of time. */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 129600) return `${(seconds / 3600).toFixed(seconds < 36000 ? 1 : 0)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export const ago = (time) => (time ? `${duration(Math.max(Date.now() / 1000 - time, 0))} ago` : "–");

/** The colour of the i-th action or run, as a variable of the style sheet. */
export const colour = (index) => `var(--c${index % 7})`;

/** The dash pattern of the i-th line: colours repeat after seven. */
export const dash = (index) => ["", "6 3", "2 3"][Math.floor(index / 7) % 3];

export function swatch(index) {
  const mark = h("i", { class: "swatch", "aria-hidden": "true" });
  mark.style.borderTopColor = colour(index);
  if (dash(index)) mark.style.borderTopStyle = "dashed";
  return mark;
}

/** Tell screen readers something. */
export function say(text) {
  document.getElementById("said").textContent = text;
}

export const note = (text, kind = "") => h("p", { class: `note ${kind}`, role: kind === "bad" ? "alert" : null, text });

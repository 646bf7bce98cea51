// The frame: which view is shown, light or dark, and whether the server answers.

import { h } from "./dom.js";
import { current, onMove } from "./state.js";
import { showRuns } from "./runs.js";
import { showRun } from "./run.js";
import { showComparison } from "./compare.js";

const THEMES = ["system", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");
let leave = () => {};

function remembered() {
  try {
    return localStorage.getItem("umdqn-theme") ?? "system";
  } catch {
    return "system";
  }
}

function paint(theme) {
  const shown = theme === "system" ? (dark.matches ? "dark" : "light") : theme;
  document.documentElement.dataset.theme = shown;
  const button = document.getElementById("theme");
  button.textContent = { system: "Auto", light: "Light", dark: "Dark" }[theme];
  button.setAttribute("aria-label", `Colours: ${theme}. Change`);
}

function themes() {
  let theme = remembered();
  paint(theme);
  dark.addEventListener("change", () => paint(theme));
  document.getElementById("theme").addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    try {
      localStorage.setItem("umdqn-theme", theme);
    } catch { /* not remembered where storage is forbidden */ }
    paint(theme);
  });
}

function trail(parts) {
  const nav = document.getElementById("trail");
  nav.replaceChildren(...parts.flatMap((part) => [
    h("span", { "aria-hidden": "true", text: "/" }),
    part.to ? h("a", { href: part.to, "data-link": true, text: part.text }) : h("span", { class: "here", text: part.text, "aria-current": "page" }),
  ]));
  document.title = parts.length ? `${parts.at(-1).text} · umdqn` : "umdqn";
}

function live(text, lost = false) {
  const place = document.getElementById("live");
  if (place.textContent !== text) place.textContent = text;
  place.classList.toggle("lost", lost);
}

function route() {
  leave();
  const main = document.getElementById("main");
  main.replaceChildren();
  const query = current();
  const frame = { main, trail, live };
  if (query.get("compare") !== null) leave = showComparison(frame, query.getAll("run"));
  else if (query.get("run")) leave = showRun(frame, query.get("run"));
  else leave = showRuns(frame);
}

themes();
onMove(route);
route();

// The laws of all actions: of a chosen state, at a chosen checkpoint, for a chosen seed.

import { h, note, number, say, whole } from "./dom.js";
import { ask, latest } from "./api.js";
import { Episode } from "./episode.js";
import { Panels } from "./panels.js";
import { picker, TITLES } from "./picker.js";
import { get, set } from "./state.js";

const MILLISECONDS_A_CHECKPOINT = 500;

export class Laws {
  constructor(info, onStep) {
    Object.assign(this, { id: info.run.id, onStep, checkpoints: [], mapped: null, timer: null, clicked: null });
    this.step = get("step") === null ? null : +get("step");
    this.seed = get("seed") ?? String(info.seeds[0] ?? 0);
    this.state = get("state");
    this.scene = get("at") === null ? null : { episode: get("episode", "0"), played: get("played"), at: get("at") };
    this.slider = h("input", { type: "range", min: 0, value: 0, "aria-label": "Checkpoint", oninput: () => this.choose(this.checkpoints[+this.slider.value]) });
    this.output = h("output");
    this.play = h("button", { type: "button", text: "Watch it learn", onclick: () => (this.timer ? this.pause() : this.run()) });
    this.seeds = h("select", { "aria-label": "Seed", onchange: (event) => { this.seed = event.target.value; set({ seed: this.seed }); this.refresh(); } }, ...info.seeds.map((seed) => h("option", { value: seed, text: `seed ${seed}` })));
    this.seeds.value = this.seed;
    this.seeds.hidden = info.seeds.length < 2;
    this.age = h("div", { class: "age" }, this.play, this.slider, this.output);
    this.problem = h("div", {}, note("Preparing the laws: reading the newest checkpoint and compiling. This takes a few seconds the first time."));
    this.body = h("div", { hidden: true });
    this.element = h("section", { class: "card", id: "laws", "aria-label": "Laws", "aria-busy": "true" }, h("div", { class: "head" }, h("h2", { text: "Laws of the return" }), h("span", { class: "faint where" }), h("div", { class: "push" }, this.seeds)), this.problem, this.body);
    this.where = this.element.querySelector(".where");
    this.refresh = latest(() => this.load());
    this.beside = latest(() => this.loadBeside());
    this.follow(info.checkpoints);
  }

  /** The checkpoint that is shown: the chosen one, else the newest. */
  get shown() {
    return this.step ?? this.checkpoints.at(-1) ?? null;
  }

  /** Take the checkpoints that there are now. */
  follow(checkpoints) {
    const before = this.shown;
    if (this.step !== null && checkpoints.length && !checkpoints.includes(this.step)) this.step = null;
    this.checkpoints = checkpoints;
    this.slider.max = Math.max(checkpoints.length - 1, 0);
    this.place();
    if (!checkpoints.length) this.problem.replaceChildren(note("No checkpoint yet: laws can be looked at once there is one."));
    else if (!this.opened) this.open();
    else if (this.shown !== before) this.refresh();
  }

  place() {
    const index = this.checkpoints.indexOf(this.shown);
    this.slider.value = index;
    this.slider.disabled = this.play.disabled = this.checkpoints.length < 2;
    const newest = this.shown === this.checkpoints.at(-1);
    this.slider.setAttribute("aria-valuetext", `step ${this.shown}`);
    this.output.replaceChildren(`step ${whole(this.shown)}`, h("small", { text: newest ? "newest checkpoint" : `checkpoint ${index + 1} of ${this.checkpoints.length}` }));
    this.onStep(this.shown);
  }

  choose(step) {
    this.clicked = performance.now();
    this.step = step === this.checkpoints.at(-1) ? null : step;
    set({ step: this.step });
    this.place();
    this.refresh();
  }

  /** Choose the checkpoint nearest to a step. */
  near(step) {
    if (this.checkpoints.length) this.choose(this.checkpoints.reduce((best, one) => (Math.abs(one - step) < Math.abs(best - step) ? one : best)));
  }

  run() {
    this.play.textContent = "Pause";
    let index = this.checkpoints.indexOf(this.shown);
    if (index === this.checkpoints.length - 1) index = -1;
    const turn = () => {
      index += 1;
      this.choose(this.checkpoints[index]);
      if (index >= this.checkpoints.length - 1) this.pause();
    };
    this.timer = setInterval(turn, MILLISECONDS_A_CHECKPOINT);
    turn();
  }

  pause() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "Watch it learn";
  }

  async open() {
    this.opened = true;
    try {
      this.about = await ask("open", { run: this.id });
    } catch (error) {
      this.opened = error.status !== 0;
      this.problem.replaceChildren(note(error.message, error.status === 0 ? "bad" : ""));
      this.element.removeAttribute("aria-busy");
      return;
    }
    const { about } = this;
    this.panels = new Panels(about.actions, about.decision);
    this.picker = picker(about.picker, about.actions, (state) => this.look(state));
    this.episode = new Episode(this.id, about.actions, about.no_environment, (scene) => this.stepped(scene));
    this.episode.where = () => ({ step: this.shown, seed: this.seed });
    this.problem.replaceChildren(...(about.expectations ? [note("This agent learns expectations, not laws: there is one number for each action.")] : []));
    this.body.replaceChildren(this.age, h("div", { class: "laws" }, this.side(), this.panels.charts), this.panels.table);
    this.body.hidden = false;
    if (!this.scene) this.state ??= about.picker.start ?? null;
    if (this.state && this.picker) this.picker.reflect(this.state);
    if (this.scene) {
      this.tab("episode");
      this.episode.begin(+this.scene.episode, { at: +this.scene.at, played: this.scene.played });
    } else this.refresh();
  }

  side() {
    this.tabs = {};
    const tabs = [...(this.picker ? [["state", TITLES[this.about.picker.kind], this.picker.element]] : []), ["episode", "Episode", this.episode.element]];
    const list = tabs.map(([key, title, panel]) => {
      panel.id = `panel-${key}`;
      panel.setAttribute("role", panel.getAttribute("role") ?? "tabpanel");
      const button = h("button", { type: "button", role: "tab", text: title, "aria-controls": panel.id, onclick: () => this.tab(key) });
      this.tabs[key] = { button, panel };
      return button;
    });
    this.tab(tabs[0][0]);
    return h("div", { class: "side" }, h("div", { class: "tabs", role: "tablist", "aria-label": "How the state is chosen" }, list), ...tabs.map(([, , panel]) => panel));
  }

  tab(chosen) {
    for (const [key, { button, panel }] of Object.entries(this.tabs)) {
      button.setAttribute("aria-selected", String(key === chosen));
      panel.hidden = key !== chosen;
      if (key !== chosen) panel.style.display = "none"; else panel.style.display = "";
    }
  }

  look(state) {
    this.clicked = performance.now();
    Object.assign(this, { state, scene: null });
    set({ state, episode: null, played: null, at: null });
    this.refresh();
  }

  stepped({ episode, played, at, observation }) {
    this.clicked = performance.now();
    this.scene = { episode, played, at };
    this.state = null;
    set({ state: null, episode, played, at });
    if (observation && this.picker) {
      const one = this.about.picker.kind === "sliders" ? null : observation.indexOf(1);
      this.picker.reflect(observation.length > 2 && one !== null ? String(one) : observation.join(","));
    }
    this.refresh();
  }

  get question() {
    return { run: this.id, step: this.shown, seed: this.seed, ...(this.scene ?? { state: this.state }) };
  }

  async load() {
    if (!this.panels || (this.state === null && !this.scene)) return;
    const question = this.question;
    const clicked = this.clicked;
    let data;
    try {
      data = await ask("laws", question);
    } catch (error) {
      this.problem.replaceChildren(note(error.message, "bad"));
      return;
    }
    if (!this.about.expectations) this.problem.replaceChildren();
    const key = JSON.stringify([question.state, question.episode, question.at]);
    const same = this.exactOf === this.exactKey(question);
    this.panels.show(data, same ? this.panels.exact : null);
    this.where.textContent = this.scene ? `step ${whole(this.episode.scene.number + 1)} of episode ${+this.scene.episode + 1}` : `state ${this.state}`;
    this.element.removeAttribute("aria-busy");
    this.element.dataset.shown = `${key}@${data.step}#${data.seed}`;
    if (clicked !== null) this.element.dataset.milliseconds = (performance.now() - clicked).toFixed(1);
    say(`${this.where.textContent}, step ${whole(data.step)}: greedy ${this.about.actions[data.greedy]}, mean ${number(data.laws[data.greedy].mean)}`);
    this.beside();
  }

  exactKey(question) {
    return JSON.stringify([question.state, question.episode, question.played, question.at, this.about.truth === "an optimal policy" || [question.step, question.seed]]);
  }

  /** Load what may take longer than the laws: exact ones, and the greedy actions of all cells. */
  async loadBeside() {
    const question = this.question;
    const [exactKey, mapKey] = [this.exactKey(question), `${question.step}#${question.seed}`];
    try {
      if (this.about.picker.kind === "grid" && this.mapped !== mapKey) {
        this.picker.paint((await ask("map", { run: this.id, step: question.step, seed: question.seed })).states);
        this.mapped = mapKey;
      }
      if (this.about.truth && !this.about.expectations && this.exactOf !== exactKey) {
        const exact = await ask("exact", question);
        if (exactKey !== this.exactKey(this.question)) return;
        this.exactOf = exactKey;
        this.panels.show(this.panels.data, exact.laws.length ? exact : null);
      }
    } catch (error) {
      this.problem.replaceChildren(note(error.message, "warn"));
    }
  }

  leave() {
    this.pause();
    this.episode?.stop();
  }
}

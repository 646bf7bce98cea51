// Stepping through an episode of the greedy policy, with its pictures.

import { h, number, note, whole } from "./dom.js";
import { ask, url } from "./api.js";

const MILLISECONDS = 350;

/** A player. `onScene(scene)` is told which scene is shown: `{episode, played, at}` for questions. */
export class Episode {
  constructor(run, actions, refused, onScene) {
    Object.assign(this, { run, actions, onScene, data: null, at: 0, number: 0, timer: null });
    this.picture = h("img", { alt: "", hidden: true });
    this.text = h("p", { class: "faint" });
    this.range = h("input", { type: "range", min: 0, value: 0, "aria-label": "Step of the episode", oninput: () => { this.stop(); this.show(+this.range.value); } });
    this.go = h("button", { type: "button", text: "Play", onclick: () => (this.timer ? this.stop() : this.start()) });
    const step = (by, text, label) => h("button", { type: "button", text, "aria-label": label, onclick: () => { this.stop(); this.show(this.at + by); } });
    this.buttons = h("div", { class: "row" }, step(-1, "‹", "Previous step"), step(1, "›", "Next step"), this.go, h("button", { type: "button", class: "quiet", text: "Another episode", onclick: () => this.begin(this.number + 1) }));
    this.first = h("button", { type: "button", class: "main", text: "Play an episode", onclick: () => this.begin(0) });
    this.problem = h("div");
    this.player = h("div", { class: "film", hidden: true }, this.picture, this.range, this.text, this.buttons);
    this.element = h("div", { class: "film" }, refused ? note(`No episodes: ${refused}. Watch them with umdqn watch.`) : this.first, this.problem, this.player);
  }

  /** Play an episode with what a checkpoint has learned, or fetch it again. */
  async begin(number, { at = 0, played = null } = {}) {
    const { step, seed } = this.where();
    this.first.disabled = true;
    this.first.textContent = "Playing…";
    this.stop();
    try {
      const name = { run: this.run, episode: number, played: played ?? step, seed };
      const data = await ask("episode", name);
      Object.assign(this, { data, number, name });
    } catch (error) {
      this.problem.replaceChildren(note(error.message, "bad"));
      this.first.textContent = "Play an episode";
      return;
    } finally {
      this.first.disabled = false;
    }
    this.problem.replaceChildren();
    this.first.hidden = true;
    this.player.hidden = false;
    this.range.max = this.data.scenes.length - 1;
    this.show(at);
  }

  show(at) {
    const { scenes, steps, total, terminated } = this.data;
    this.at = Math.min(Math.max(at, 0), scenes.length - 1);
    const { scene } = this;
    this.range.value = this.at;
    this.picture.hidden = !scene.picture;
    if (scene.picture) this.picture.src = url("picture", { ...this.name, at: this.at });
    const action = this.actions[scene.action];
    this.picture.alt = `The environment before step ${scene.number + 1}`;
    const end = this.at === scenes.length - 1 ? ` Then the episode ${terminated ? "ends" : "is cut"}, with return ${number(total)}.` : "";
    this.text.textContent = `Step ${whole(scene.number + 1)} of ${whole(steps)}: takes ${action}, reward ${number(scene.reward, 3)}; return so far ${number(scene.before, 4)}.${end}`;
    this.range.setAttribute("aria-valuetext", `step ${scene.number + 1} of ${steps}`);
    this.onScene({ episode: this.number, played: this.name.played, at: this.at, observation: scene.observation });
  }

  /** The scene that is shown. */
  get scene() {
    return this.data.scenes[this.at];
  }

  start() {
    if (this.at === this.data.scenes.length - 1) this.show(0);
    this.go.textContent = "Pause";
    this.timer = setInterval(() => {
      this.show(this.at + 1);
      if (this.at === this.data.scenes.length - 1) this.stop();
    }, MILLISECONDS);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.go.textContent = "Play";
  }
}

/** Finding: the nearest state of a kind from here, the shortest counterexample, and the run message by message. */
import * as api from "./api.js";
import { byId, counted, make, tell } from "./dom.js";
import { ask, askLines } from "./server.js";

/** How a property is found, by its kind. */
const FOUND = {
  always: "fails",
  final: "fails where nothing can happen",
  sometimes: "is witnessed",
  recoverable: "has its goal",
  eventually: "has its goal",
};

export class Finder {
  /** @param {import("./walk.js").Walk} walk
   *  @param {(job: api.Job, path: number[]) => Promise<void>} open */
  constructor(walk, open) {
    this.walk = walk;
    this.open = open;
    /** @type {AbortController | null} */
    this.running = null;
    byId("finder").addEventListener("submit", (event) => {
      event.preventDefault();
      this.ahead();
    });
    byId("goal").addEventListener("change", () => this.choose());
    byId("whole").addEventListener("click", () => this.whole());
    byId("refine").addEventListener("click", () => this.refine());
    byId("cancel").addEventListener("click", () => this.running?.abort());
  }

  /** @param {api.Job} job */
  offer(job) {
    const option = (goal, text) => make("option", { value: JSON.stringify(goal) }, text);
    const group = (label, options) => make("optgroup", { label }, ...options);
    const properties = job.properties.map(({ name, kind }) =>
      option({ type: "property", name }, `${name} ${FOUND[kind]}`),
    );
    byId("goal").replaceChildren(
      group("a property", properties),
      group("an end", [option({ type: "end" }, "nothing can happen")]),
      group("a move", [
        option({ type: "words", text: "" }, "a move with these words …"),
        ...job.actions.map((name) => option({ type: "action", name }, `${name} happens`)),
      ]),
    );
    byId("results").replaceChildren();
    this.said("");
    this.choose();
  }

  choose() {
    byId("words").hidden = JSON.parse(byId("goal").value).type !== "words";
  }

  /** @param {api.View} view
   *  @param {api.Job} job */
  showFor(view, job) {
    byId("refine").hidden = !job.refines || !view.findings.some(isOfSafety);
  }

  /** @param {string} text */
  said(text) {
    byId("progress").firstElementChild.textContent = text;
  }

  async ahead() {
    const goal = JSON.parse(byId("goal").value);
    if (goal.type === "words") goal.text = byId("words").value.trim();
    if (goal.type === "words" && !goal.text) return byId("words").focus();
    const { job, path } = this.walk.view;
    const done = await this.search("find", { job, path, goal });
    if (!done) return;
    const states = counted(done.states, "state");
    const seen = `${states} seen, to depth ${done.depth}`;
    if (done.path) {
      if (await this.walk.go(job, done.path)) this.said(`Found ${counted(done.moves, "move")} ahead (${seen}).`);
    } else if (done.whole) this.said(`Not ahead of here: all ${states} that can be reached were seen.`);
    else this.said(`Not found so far: ${done.why} (${seen}).`);
  }

  async whole() {
    const { job } = this.walk.view;
    const done = await this.search("whole", { job });
    if (!done) return;
    this.said(`${done.sentence} (${counted(done.states, "state")}, to depth ${done.depth})`);
    const result = (found) => {
      const onclick = () => this.walk.go(job, found.path);
      return make("li", {}, make("button", { class: found.good ? "good" : "bad", onclick }, found.headline));
    };
    byId("results").replaceChildren(...done.found.map(result));
    const first = done.found.find((found) => !found.good);
    if (first) await this.walk.go(job, first.path);
  }

  async refine() {
    const { job, path, findings } = this.walk.view;
    const found = findings.find(isOfSafety);
    this.said("Looking for the messages …");
    byId("refine").disabled = true;
    try {
      const fine = await ask("/api/refine", { job, path, finding: found.property });
      await this.open(fine.job, fine.path);
      this.said(`The same run message by message: ${counted(fine.path.length, "move")}.`);
    } catch (error) {
      this.said("");
      tell(error.message, "bad");
    } finally {
      byId("refine").disabled = false;
    }
  }

  /**
   * A search that may be cancelled; what it came to, or null.
   * @param {"find" | "whole"} what
   * @param {object} body
   */
  async search(what, body) {
    this.running?.abort();
    const own = (this.running = new AbortController());
    byId("results").replaceChildren();
    byId("cancel").hidden = false;
    this.said("Looking …");
    try {
      return await askLines(`/api/${what}`, body, own.signal, ({ states, depth }) => {
        if (this.running === own) this.said(`Looking: ${counted(states, "state")} seen, at depth ${depth} …`);
      });
    } catch (error) {
      if (this.running !== own) return null;
      this.said(error.name === "AbortError" ? "Cancelled." : "");
      if (error.name !== "AbortError") tell(error.message, "bad");
      return null;
    } finally {
      if (this.running === own) {
        this.running = null;
        byId("cancel").hidden = true;
      }
    }
  }
}

/** @param {api.Finding} finding */
function isOfSafety(finding) {
  return !["recoverable", "eventually"].includes(finding.kind);
}

/** An exported page searches nothing; it says what it holds. This file has the place of the searches. */
import { byId, counted } from "./dom.js";

export class Finder {
  offer() {}

  /** @param {{cut: boolean, states: number}} view
   *  @param {import("./api.js").Job} job */
  showFor(view, job) {
    const liveness = job.properties.some(({ kind }) => ["recoverable", "eventually"].includes(kind));
    byId("held").textContent = `All ${counted(view.states, "state")} of this scenario are in this file. `
      + (liveness ? "Whether a run never reaches its goal is not judged here. " : "")
      + `To search them, and to save a run: quorate explore ${job.file || "FILE"}`;
    byId("cut").hidden = !view.cut;
  }
}

/**
 * The walk that the page shows: which moves were taken, which may be taken forward again, and its address.
 *
 * The address after # is that of the walk at any time, so that reloading, the browser's own back, and a link that is
 * passed on all show the same. The server is asked anew for each walk; of two answers the page shows that of the last
 * question.
 */
import * as api from "./api.js";
import { tell } from "./dom.js";
import { ask } from "./server.js";

export class Walk {
  /** @param {(view: api.View) => void} show */
  constructor(show) {
    /** @type {api.View | null} */
    this.view = null;
    /** @type {number[]} */
    this.ahead = [];
    this.show = show;
    this.asked = 0;
    window.addEventListener("popstate", (event) => this.follow(event.state?.ahead ?? []));
  }

  /**
   * Show a walk. Returns whether it is shown.
   * @param {string} job
   * @param {number[]} path
   * @param {{ahead?: number[], check?: string | null, history?: "push" | "replace" | "keep"}} [how]
   */
  async go(job, path, { ahead = [], check = null, history: kind = "push" } = {}) {
    const asked = ++this.asked;
    try {
      const view = await ask("/api/walk", { job, path, check });
      if (asked !== this.asked) return false;
      this.view = view;
      this.ahead = ahead;
      if (kind === "push") history.pushState({ ahead }, "", `#${view.link}`);
      if (kind === "replace") history.replaceState({ ahead }, "", `#${view.link}`);
      this.show(view);
      return true;
    } catch (error) {
      if (asked === this.asked) tell(error.message, "bad");
      return false;
    }
  }

  /**
   * Show what the address says; returns whether it says anything that can be shown.
   * @param {number[]} ahead
   */
  async follow(ahead) {
    const [job, path, check] = location.hash.slice(1).split("/");
    if (!job) return false;
    const ordinals = path ? path.split(".").map(Number) : [];
    if (!check || ordinals.some((ordinal) => !Number.isInteger(ordinal))) {
      tell("this link is not whole; copy it once more", "bad");
      return false;
    }
    return this.go(job, ordinals, { ahead, check, history: "keep" });
  }

  /** @param {number} ordinal */
  take(ordinal) {
    if (!this.view) return;
    const again = this.ahead[0] === ordinal;
    this.go(this.view.job, [...this.view.path, ordinal], { ahead: again ? this.ahead.slice(1) : [] });
  }

  /** @param {number} step */
  backTo(step) {
    if (!this.view || step < 0 || step >= this.view.path.length) return;
    const { job, path } = this.view;
    this.go(job, path.slice(0, step), { ahead: [...path.slice(step), ...this.ahead] });
  }

  back() {
    if (this.view) this.backTo(this.view.path.length - 1);
  }

  forward() {
    if (this.ahead.length) this.take(this.ahead[0]);
  }
}

/**
 * The guided story of a run: the text of the stop that the walk is at. Which stop that is follows from the walk alone,
 * so links, reloading and the browser's own back need nothing else. The language is that of the browser until another is chosen.
 */
import { byId } from "./dom.js";
import { language, speak } from "./language.js";

/** @typedef {import("./api.js").Job} Job */

const NAMES = { en: "English", zh: "中文" };
const TOLD = {
  en: { stop: (place, all) => `stop ${place} of ${all}`, next: "Next →", story: (title) => `Next story: ${title} →` },
  zh: { stop: (place, all) => `第 ${place} 站，共 ${all} 站`, next: "下一站 →", story: (title) => `下一个故事：${title} →` },
};

/**
 * The walk to the first stop of a run; its first state, if it has no story.
 * @param {Job | undefined} job
 */
export function firstPath(job) {
  return job?.story?.stops[0].path ?? [];
}

export class Story {
  /** @param {import("./walk.js").Walk} walk
   *  @param {Map<string, Job>} jobs */
  constructor(walk, jobs) {
    this.walk = walk;
    this.jobs = jobs;
    /** @type {Job | null} */
    this.job = null;
    /** @type {import("./language.js").Language} */
    this.chosen = kept() ?? (navigator.language.startsWith("zh") ? "zh" : "en");
    byId("previous").addEventListener("click", () => this.previous());
    byId("following").addEventListener("click", () => this.next());
    byId("language").addEventListener("click", () => this.turn());
  }

  /** @param {Job} job  one with a story */
  titleOf(job) {
    return job.story.title[this.chosen];
  }

  /**
   * Give the page the language that was chosen, if the run has a story: without one there is no button to choose.
   * @param {Job} job
   */
  speakFor(job) {
    speak(job.story ? this.chosen : "en");
  }

  /** @param {import("./api.js").View} view
   *  @param {Job} job */
  show(view, job) {
    this.job = job;
    byId("story").hidden = !job.story;
    if (!job.story) return;
    const { stops } = job.story;
    const passed = stops.filter((stop) => stop.path.every((ordinal, place) => ordinal === view.path[place])).length;
    this.place = Math.max(0, passed - 1);
    this.left = stops[this.place].path.length !== view.path.length;
    const words = TOLD[language()];
    byId("story-title").textContent = this.titleOf(job);
    byId("stop").textContent = words.stop(this.place + 1, stops.length);
    byId("told").textContent = stops[this.place].text[language()];
    byId("left").hidden = !this.left;
    byId("previous").disabled = !this.place && !this.left;
    const other = this.place + 1 < stops.length ? null : this.after();
    byId("following").textContent = other ? words.story(this.titleOf(other)) : words.next;
    byId("following").disabled = this.place + 1 === stops.length && !other;
    byId("language").lang = language() === "en" ? "zh" : "en";
    byId("language").textContent = NAMES[byId("language").lang];
  }

  /** The run with a story after this one. */
  after() {
    const told = [...this.jobs.values()].filter((job) => job.story);
    return told[told.indexOf(this.job) + 1] ?? null;
  }

  next() {
    const { stops } = this.job.story;
    if (this.place + 1 < stops.length) return this.walk.go(this.job.key, stops[this.place + 1].path);
    const other = this.after();
    if (other) this.walk.go(other.key, firstPath(other));
  }

  previous() {
    const place = this.left ? this.place : this.place - 1;
    if (place >= 0) this.walk.go(this.job.key, this.job.story.stops[place].path);
  }

  turn() {
    this.chosen = this.chosen === "en" ? "zh" : "en";
    keep(this.chosen);
    for (const option of byId("jobs").options) {
      const job = this.jobs.get(option.value);
      if (job.story) option.textContent = this.titleOf(job);
    }
    this.walk.show(this.walk.view);
  }
}

/** @returns {"en" | "zh" | null} */
function kept() {
  try {
    const language = localStorage.getItem("language");
    return language === "en" || language === "zh" ? language : null;
  } catch {
    return null; // a browser may refuse to store anything for a file
  }
}

/** @param {string} language */
function keep(language) {
  try {
    localStorage.setItem("language", language);
  } catch {
    // the choice lasts as long as the page
  }
}

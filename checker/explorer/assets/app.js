/** The explorer's page: puts its parts together, and hears its keys. */
import * as api from "./api.js";
import { byId, copy, make, tell } from "./dom.js";
import { closeMenu, offerFiles, takeFiles } from "./files.js";
import { Finder } from "./find.js";
import { said } from "./language.js";
import { Moves } from "./moves.js";
import { showRun, showTruths, stepOf } from "./run.js";
import { ask } from "./server.js";
import { showState } from "./state.js";
import { Story, firstPath } from "./story.js";
import { Walk } from "./walk.js";

/** @type {Map<string, api.Job>} */
const jobs = new Map();
/** @type {api.Format[]} */
let formats = [];
/** @type {api.Job | null} */
let shown = null;

const walk = new Walk(show);
const moves = new Moves((ordinal) => walk.take(ordinal), preview);
const finder = new Finder(walk, open);
const story = new Story(walk, jobs);

/** @param {api.View} view */
function show(view) {
  const job = jobs.get(view.job);
  if (!job) return;
  tell("");
  story.speakFor(job);
  if (job !== shown) showJob(job);
  showRun(view, walk.ahead.length);
  showTruths(view, job.properties);
  moves.show(view.moves, walk.ahead[0] ?? -1);
  preview(null);
  offerFiles(view, formats);
  finder.showFor(view, job);
  story.show(view, job);
  byId("back").disabled = byId("reset").disabled = !view.path.length;
  byId("forward").disabled = !walk.ahead.length;
}

/** @param {api.Job} job */
function showJob(job) {
  shown = job;
  document.title = `${job.name} – explorer`;
  byId("title").textContent = job.name;
  const told = [placeOf(job), `grain: ${job.grain}`, expectationOf(job), ...job.bounds];
  byId("about").textContent = told.filter(Boolean).join(" · ");
  byId("said").textContent = job.about;
  byId("bounds").replaceChildren(...job.bounds.map((bound) => make("li", {}, bound)));
  const choice = byId("jobs");
  const option = (each) => make("option", { value: each.key }, entryOf(each));
  choice.replaceChildren(...[...jobs.values()].map(option));
  choice.value = job.key;
  choice.title = entryOf(job);
  byId("jobs-label").hidden = jobs.size < 2;
  finder.offer(job);
}

/**
 * The entry of a scenario in the chooser: its name, its folder and file, the expected verdict, and the grain.
 * @param {api.Job} job
 */
function entryOf(job) {
  if (job.story) return story.titleOf(job);
  return [job.name, placeOf(job), expectationOf(job), `grain: ${job.grain}`].filter(Boolean).join(" · ");
}

/** @param {api.Job} job */
function placeOf(job) {
  return [job.folder, job.file].filter(Boolean).join("/");
}

/** @param {api.Job} job */
function expectationOf(job) {
  return job.expected ? `expected: ${job.expected}` : "";
}

/** @param {api.Move | null} move */
function preview(move) {
  if (walk.view) showState(walk.view.lanes, walk.view.path.length, move);
}

/**
 * Show a walk of a job that the page may not know yet.
 * @param {api.Job} job
 * @param {number[]} path
 */
async function open(job, path) {
  if (!jobs.has(job.key)) {
    jobs.set(job.key, job);
    shown = null;
  }
  await walk.go(job.key, path);
}

/**
 * Show a job from its beginning: the first stop of its story, if it has one.
 * @param {string} key
 * @param {number[]} path
 * @param {"push" | "replace"} kind
 */
function openStart(key, path = [], kind = "push") {
  return walk.go(key, path.length ? path : firstPath(jobs.get(key)), { history: kind });
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  const target = /** @type {HTMLElement} */ (event.target);
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (target === byId("filter")) return inFilter(event);
  if (target.matches("input, select, textarea")) return;
  if (event.key === "Enter" && target.closest("button, summary, a")) return; // Enter presses the focused control
  const act = {
    ArrowDown: () => moves.step(1),
    ArrowUp: () => moves.step(-1),
    Enter: () => moves.takeChosen(),
    Backspace: () => walk.back(),
    ArrowLeft: () => (shown?.story ? story.previous() : walk.back()),
    ArrowRight: () => (shown?.story ? story.next() : walk.forward()),
    Home: () => walk.backTo(0),
    "/": () => byId("filter").focus(),
    "?": () => byId("keys").showModal(),
    Escape: closeMenu,
  }[event.key];
  if (!act) return;
  event.preventDefault();
  act();
}

/** @param {KeyboardEvent} event */
function inFilter(event) {
  if (event.key === "ArrowDown") moves.step(1);
  else if (event.key === "Enter") {
    byId("moves").querySelector("button.move")?.focus();
    moves.takeChosen();
  } else if (event.key === "Escape") {
    byId("filter").value = "";
    moves.draw();
    moves.step(1);
  } else return;
  event.preventDefault();
}

async function begin() {
  byId("back").addEventListener("click", () => walk.back());
  byId("forward").addEventListener("click", () => walk.forward());
  byId("reset").addEventListener("click", () => walk.backTo(0));
  byId("copy").addEventListener("click", () => copy(location.href, byId("copy"), said("Copied", "已复制")));
  byId("help").addEventListener("click", () => byId("keys").showModal());
  byId("jobs").addEventListener("change", () => openStart(byId("jobs").value));
  byId("picture").addEventListener("click", (event) => {
    if (event.target.closest("a")) event.preventDefault();
    walk.backTo(stepOf(event));
  });
  document.addEventListener("keydown", pressed);
  takeFiles(open);
  try {
    /** @type {api.Jobs} */
    const told = await ask("/api/jobs");
    for (const job of told.jobs) jobs.set(job.key, job);
    formats = told.formats;
    if (await walk.follow(history.state?.ahead ?? [])) return;
    const stale = location.hash ? byId("message").textContent : "";
    if (told.start.job) await openStart(told.start.job, told.start.path, "replace");
    if (stale) tell(stale.replace(/×$/, ""), "bad");
  } catch (error) {
    tell(error.message, "bad");
  }
}

begin();

/**
 * What the page asks of its server; `checker/explorer/handlers.py` says what each answer is. Every function here throws an
 * Error with a message for the reader.
 */

import { ask, askLines } from "./server.js";

/** @typedef {{name: string, kind: string, meaning: string}} PropertyOfJob */
/** @typedef {{key: string, name: string, file: string, folder: string, about: string, grain: string, bounds: string[],
 *   expected: string | null, actions: string[], properties: PropertyOfJob[], refines: boolean}} Job */
/** @typedef {{lane: string, field: string, before: string | null, after: string | null}} Change */
/** @typedef {{ordinal: number, action: string, caption: string, lane: string, changes: Change[], drawn: string[],
 *   back_to: number | null, last: boolean, turns: {property: string, truth: string}[]}} Move */
/** @typedef {{name: string, fields: {name: string, text: string, changed: boolean}[], gone: string[]}} Lane */
/** @typedef {{name: string, kind: string, truth: string, clause?: string, values?: [string, string][]}} Truth */
/** @typedef {{property: string, kind: string, good: boolean, headline: string, clause: string,
 *   values: [string, string][], path?: number[]}} Finding */
/** @typedef {{job: string, path: number[], link: string, picture: string,
 *   lanes: Lane[], properties: Truth[], findings: Finding[], moves: Move[]}} View */

/** @typedef {{name: string, suffix: string}} Format */

/** @returns {Promise<{jobs: Job[], start: {job: string, path: number[]}, formats: Format[]}>} */
export function jobs() {
  return ask("/api/jobs");
}

/**
 * @param {string} job
 * @param {number[]} path
 * @param {string | null} [check]
 * @returns {Promise<View>}
 */
export function walk(job, path, check = null) {
  return ask("/api/walk", { job, path, check });
}

/**
 * @param {string} name
 * @param {string} text
 * @returns {Promise<{job: Job, path: number[], headline: string, verified: string[]}>}
 */
export function load(name, text) {
  return ask("/api/load", { name, text });
}

/**
 * @param {string} job
 * @param {number[]} path
 * @param {string} finding
 * @returns {Promise<{job: Job, path: number[]}>}
 */
export function refine(job, path, finding) {
  return ask("/api/refine", { job, path, finding });
}

/**
 * A search: `progress` is called while it goes on, and whoever aborts the signal has ended it.
 * @param {"find" | "whole"} what
 * @param {object} body
 * @param {AbortSignal} signal
 * @param {(seen: {states: number, depth: number}) => void} progress
 * @returns {Promise<any>}
 */
export function search(what, body, signal, progress) {
  return askLines(`/api/${what}`, body, signal, progress);
}

/**
 * The address of a walk as a file. `finding` is the property it ends in, or "" for a walk that is none.
 * @param {View} view
 * @param {string} format
 * @param {string} finding
 * @param {boolean} shown
 */
export function fileAddress(view, format, finding, shown) {
  const asked = new URLSearchParams({ job: view.job, path: view.path.join("."), format, as: finding });
  if (shown) asked.set("show", "1");
  return `/api/file?${asked}`;
}

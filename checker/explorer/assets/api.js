/** The types of the answers of the server; `checker/explorer/handlers.py` gives them. */

/** @typedef {{name: string, kind: string, meaning: string}} PropertyOfJob */
/** @typedef {{key: string, name: string, file: string, folder: string, about: string, grain: string, bounds: string[],
 *   expected: string | null, actions: string[], properties: PropertyOfJob[], refines: boolean, story: Story | null}} Job */
/** @typedef {{en: string, zh: string}} Words */
/** @typedef {{title: Words, stops: {path: number[], text: Words}[]}} Story */
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

/** @typedef {{jobs: Job[], start: {job: string, path: number[]}, formats: Format[]}} Jobs */
/** @typedef {{job: Job, path: number[], headline: string, verified: string[]}} Loaded */

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

/**
 * The language of the page: that of the story, and English without a story. Captions of moves, names of properties and the
 * reports of the checker are English in both.
 */

/** @typedef {"en" | "zh"} Language */

const ATTRIBUTES = ["title", "placeholder", "aria-label"];
/** @type {Language} */
let spoken = "en";

/** @returns {Language} */
export function language() {
  return spoken;
}

/**
 * A text of a script in the language of the page.
 * @template T
 * @param {T} en
 * @param {T} zh
 * @returns {T}
 */
export function said(en, zh) {
  return spoken === "zh" ? zh : en;
}

/**
 * Change the language, and with it the fixed texts: `data-zh` of an element is its Chinese text, and `data-zh-title` the
 * Chinese value of its attribute `title`.
 * @param {Language} chosen
 */
export function speak(chosen) {
  spoken = chosen;
  document.documentElement.lang = chosen;
  for (const element of document.querySelectorAll("[data-zh]")) {
    const texts = /** @type {HTMLElement} */ (element).dataset;
    texts.en ??= element.textContent ?? "";
    element.textContent = texts[chosen] ?? "";
  }
  for (const name of ATTRIBUTES) {
    for (const element of document.querySelectorAll(`[data-zh-${name}]`)) {
      if (!element.hasAttribute(`data-en-${name}`)) element.setAttribute(`data-en-${name}`, element.getAttribute(name) ?? "");
      element.setAttribute(name, element.getAttribute(`data-${chosen}-${name}`) ?? "");
    }
  }
}

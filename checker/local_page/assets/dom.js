/** Small helpers to build elements. Text is always text: nothing is ever read as markup here. */

/**
 * The element of that id; it must be there.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`there is no element ${id}`);
  return found;
}

/**
 * A new element. Of `attributes` those that begin with "on" are listeners; false and null leave one out.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null)} children
 * @returns {any}
 */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value !== false && value !== null) element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/**
 * A number of things, in words: `1 move`, `2 moves`.
 * @param {number} count
 * @param {string} what
 */
export function counted(count, what) {
  return `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
}

/**
 * A button that copies a text; on itself it says that it has done so, also to those who hear the page.
 * @param {() => string} text
 * @param {string} label
 * @param {string} [word]
 */
export function copyButton(text, label, word = "Copy") {
  const button = make("button", { type: "button", class: "copy", "aria-label": label, "aria-live": "polite" }, word);
  button.addEventListener("click", () => copy(text(), button));
  return button;
}

/**
 * @param {string} text
 * @param {HTMLElement} button  it says for a moment that the text is copied
 * @param {string} [done]
 */
export async function copy(text, button, done = "Copied") {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    tell(`The browser does not let this page copy. Copy it from here: ${text}`);
    return;
  }
  if (button.textContent === done) return;
  const name = button.textContent;
  button.textContent = done;
  setTimeout(() => { if (button.textContent === done) button.textContent = name; }, 2000);
}

/**
 * Something to tell the reader; nothing takes it away again.
 * @param {string} text
 * @param {"" | "bad" | "good"} [kind]
 */
export function tell(text, kind = "") {
  const place = byId("message");
  place.hidden = !text;
  place.className = kind;
  place.replaceChildren(
    text,
    make("button", { class: "close", "aria-label": "Close this message", onclick: () => tell("") }, "×"),
  );
}

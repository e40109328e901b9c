/** The run so far: the picture that every trace has, what it ends in, and each property at its end. */
import { byId, counted, make } from "./dom.js";

/** @typedef {import("./api.js").View} View */
/** @typedef {import("./api.js").Finding} Finding */

const SVG = "http://www.w3.org/2000/svg";

/** The words and the sign of each truth; the signs are those of the picture. */
const TRUTHS = {
  holds: ["✓", "holds"],
  fails: ["✗", "fails"],
  trivial: ["·", "says nothing here"],
  witnessed: ["★", "witnessed"],
  "not witnessed": ["–", "not witnessed"],
  reached: ["●", "has its goal"],
  open: ["○", "wants its goal"],
};

/**
 * @param {View} view
 * @param {number} ahead  how many moves may be taken forward again
 */
export function showRun(view, ahead) {
  const steps = view.path.length;
  const place = steps ? counted(steps, "move") : "the first state";
  byId("place").textContent = ahead ? `${place}, ${ahead} more forward` : place;
  byId("findings").replaceChildren(...view.findings.map(banner));
  showPicture(view.picture);
}

/** @param {string} svg */
function showPicture(svg) {
  const place = byId("picture");
  const parsed = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement;
  const picture = /** @type {any} */ (document.importNode(parsed, true));
  const width = Number(picture.getAttribute("width"));
  const heads = headsOf(picture, width);
  heads.style.minWidth = picture.style.minWidth = `${width}px`; // its letters have 12 px at this width
  place.replaceChildren(heads, picture);
  place.scrollTop = place.scrollHeight;
  place.onscroll = () => showHeads(place, heads, picture);
  place.onscroll();
}

/**
 * The names of the lanes once more, for the upper edge of the panel. They stay there while the picture scrolls.
 * @param {any} picture
 * @param {number} width
 */
function headsOf(picture, width) {
  const lanes = [...picture.querySelectorAll(".lane")];
  const heightOf = (lane) => Number(lane.querySelector("rect").getAttribute("y"));
  const top = Math.min(...lanes.map(heightOf));
  const strip = document.createElementNS(SVG, "svg");
  strip.setAttribute("class", "quorate-trace");
  strip.setAttribute("viewBox", `0 ${top - 3} ${width} 26`);
  const paper = document.createElementNS(SVG, "rect");
  const shape = { class: "paper", x: 0, y: top - 3, width, height: 26 };
  for (const [name, value] of Object.entries(shape)) paper.setAttribute(name, String(value));
  strip.append(paper, ...lanes.filter((lane) => heightOf(lane) === top).map((lane) => lane.cloneNode(true)));
  return make("div", { class: "heads", "aria-hidden": "true", "data-top": top }, strip);
}

/**
 * Show the names at the upper edge only while those of the picture are out of sight.
 * @param {HTMLElement} place
 * @param {any} heads
 * @param {any} picture
 */
function showHeads(place, heads, picture) {
  const scale = picture.getBoundingClientRect().width / Number(picture.getAttribute("width"));
  heads.hidden = place.scrollTop <= Number(heads.dataset.top) * scale;
}

/** The end of the run stays in sight when the window changes its size. */
new ResizeObserver(() => byId("picture").scrollTo({ top: byId("picture").scrollHeight })).observe(byId("picture"));

/**
 * Which step of the picture an event is about; -1 if it is about none.
 * @param {Event} event
 */
export function stepOf(event) {
  const target = /** @type {Element} */ (event.target);
  const place = target.closest("[data-step]");
  return place ? Number(place.getAttribute("data-step")) : -1;
}

/** @param {Finding} finding */
function banner(finding) {
  return make(
    "div",
    { class: finding.good ? "finding good" : "finding bad", role: finding.good ? "note" : "alert" },
    make("strong", {}, finding.headline),
    make("span", {}, told(finding.clause, finding.values)),
  );
}

/**
 * @param {string} clause
 * @param {[string, string][]} values
 */
function told(clause, values) {
  return values.length ? `${clause}: ${values.map(([name, value]) => `${name} = ${value}`).join(", ")}` : clause;
}

/**
 * The properties in their order, those that fail first, because the list can be longer than its panel.
 * @param {import("./api.js").Truth[]} properties
 */
function failingFirst(properties) {
  const fails = (each) => each.truth === "fails";
  return [...properties.filter(fails), ...properties.filter((each) => !fails(each))];
}

/**
 * @param {View} view
 * @param {import("./api.js").PropertyOfJob[]} properties
 */
export function showTruths(view, properties) {
  const meanings = new Map(properties.map((each) => [each.name, each.meaning]));
  const toldAbove = new Map(view.findings.map((found) => [found.property, found]));
  byId("truths").replaceChildren(
    ...failingFirst(view.properties).map((each) => {
      const ended = toldAbove.get(each.name);
      const never = Boolean(ended && each.truth === "open"); // the state is not wrong by itself, the run is
      const [sign, word] = never ? ["✗", "never on this run"] : TRUTHS[each.truth] ?? ["?", each.truth];
      return make(
        "li",
        { class: `truth-${never ? "fails" : each.truth.replaceAll(" ", "-")}`, title: meanings.get(each.name) ?? "" },
        make("span", { class: "sign", "aria-hidden": "true" }, sign),
        make("span", { class: "name" }, each.name, make("small", {}, ` ${each.kind}`)),
        make("span", { class: "word" }, word),
        each.clause && !ended ? make("p", {}, told(each.clause, each.values ?? [])) : null,
      );
    }),
  );
}

/** The run so far: the picture that every trace has, what it ends in, and each property at its end. */
import { byId, counted, make } from "./dom.js";

/** @typedef {import("./api.js").View} View */
/** @typedef {import("./api.js").Finding} Finding */

const SMALLEST = 0.68; // of its own size; smaller letters are not read with ease

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
  picture.style.minWidth = `${SMALLEST * Number(picture.getAttribute("width"))}px`;
  place.replaceChildren(picture);
  place.scrollTop = place.scrollHeight;
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

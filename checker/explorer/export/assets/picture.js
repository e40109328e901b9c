/**
 * The picture of a walk without a server: what `checker/traces/svg` draws there, from the steps of an exported space.
 * `tests/browser/test_export.py` compares the two on random walks. A walk has no loop here, and the page its heading.
 *
 * @typedef {{kind: string, lane: string, text: string, peer: string | null, message?: number | null}} Event
 * @typedef {{number: number, caption: string, lanes: import("./api.js").Lane[], events: Event[], truth: string[],
 *   changed: Record<string, [string, string][]>}} Step  `changed`: the new fields of each lane that changes
 * @typedef {{number: number, sender: string, receiver: string, text: string, fate: string,
 *   sent: number | null, ended: number | null}} Message
 */
const MONO = 0.61, SANS = 0.56, BOLD = 0.65, SIZE = 12.5, SMALL = 12;
const LINE = 15, SLOT = 17, NUMBER = 28, CAPTION = 160, TRUTH = 17, LIFE = 16;
const BESIDE = 9, PADDING = 10, CHANNEL = 14, MARK = -4, EDGE = 14, FIRST = 14, FOOT = 42, PREFIX = "p-";
const NOT_SHOWN = "Shown: step 0 has every field of a lane, later steps those that change; "
  + "of the rest of the state (what a channel holds, say) only messages are shown.";
const TURNS = { fails: "fails", witnessed: "is witnessed", holds: "holds again", reached: "has its goal" };
const MEANING = {
  holds: "holds", fails: "fails", trivial: "says nothing", witnessed: "witnessed", "not witnessed": "not witnessed",
  reached: "has its goal", open: "wants its goal",
};
const SIGNS = {
  holds: '<path d="M-4 0.5L-1 3.5L4.5 -3.5"/>',
  fails: '<circle r="6.5"/><path d="M-3 -3L3 3M-3 3L3 -3"/>',
  trivial: '<circle r="1.8"/>',
  witnessed: '<path d="M0 -6.5L1.9 -2L6.4 -2L2.8 1L4.1 5.6L0 2.9L-4.1 5.6L-2.8 1L-6.4 -2L-1.9 -2Z"/>',
  "not witnessed": '<path d="M-3.5 0H3.5"/>',
  reached: '<circle r="4.5"/>',
  open: '<circle r="4.5"/>',
};
const FATES = { deliver: "arrives", lost: "lost", removed: "removed" };
const CUTS = { cut: "cut: ", heal: "whole again: " };
const WIDE = /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\u{1f300}-\u{1faff}\u{20000}-\u{3fffd}]/gu;
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#x27;" };

// -- text ----------------------------------------------------------------------------------------------------

const cells = (text) => [...text].length + (text.match(WIDE) ?? []).length;
const columnsIn = (width, size, ratio) => Math.max(4, Math.trunc(width / (size * ratio)));
const escaped = (text) => text.replace(/[&<>"']/g, (each) => ENTITIES[each]);
const most = (...values) => values.reduce((one, other) => Math.max(one, other));
const unique = (values) => [...new Set(values)];
const n = (value) => String(Math.round(value * 10) / 10);
const xy = (value) => value.toFixed(1);

function shortened(text, columns) {
  const words = text.split(/\s+/).filter(Boolean).join(" ");
  if (cells(words) <= columns) return words;
  let start = [...words].slice(0, Math.max(0, columns - 1));
  while (start.length && cells(start.join("")) > columns - 1) start = start.slice(0, -1);
  return `${start.join("").trimEnd()}…`;
}

function wrapped(text, columns, lines) {
  const words = text.split(/\s+/).filter(Boolean).flatMap((word) => pieces(word, columns));
  const filled = [""];
  for (const [place, word] of words.entries()) {
    const longer = `${filled.at(-1)} ${word}`.trim();
    if (cells(longer) <= columns) filled[filled.length - 1] = longer;
    else if (filled.length < lines) filled.push(word);
    else {
      filled[filled.length - 1] = shortened([filled.at(-1), ...words.slice(place)].join(" "), columns);
      break;
    }
  }
  return filled;
}

function pieces(word, columns) {
  const letters = [...word];
  if (cells(word) <= columns) return [word];
  const step = cells(word) === letters.length ? columns : Math.max(1, columns >> 1);
  return Array.from({ length: Math.ceil(letters.length / step) }, (_, place) =>
    letters.slice(place * step, (place + 1) * step).join(""));
}

// -- shapes --------------------------------------------------------------------------------------------------

const text = (x, y, words, kind, more = "") =>
  `<text x="${n(x)}" y="${n(y)}" class="${kind}"${more}>${escaped(words)}</text>`;
const line = (x1, y1, x2, y2, kind) =>
  `<line x1="${n(x1)}" y1="${n(y1)}" x2="${n(x2)}" y2="${n(y2)}" class="${kind}"/>`;
const box = (x, y, width, height, kind, radius = 3) =>
  `<rect x="${n(x)}" y="${n(y)}" width="${n(width)}" height="${n(height)}" class="${kind}"${radius === null ? "" : ` rx="${n(radius)}"`}/>`;
const dot = (x, y, r) => `<circle cx="${n(x)}" cy="${n(y)}" r="${r}" class="dot"/>`;
const title = (words) => `<title>${escaped(words)}</title>`;
const cross = (x, y) => `<path d="M${xy(x - 5)} ${xy(y - 5)}l10 10m0 -10l-10 10" class="cross"/>`;

function head(x, y, dx, dy) {
  const length = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / length, dy / length];
  const [bx, by] = [x - 9 * ux, y - 9 * uy];
  const corners = [[x, y], [bx - 4 * uy, by + 4 * ux], [bx + 4 * uy, by - 4 * ux]];
  return `<path d="M${corners.map(([cx, cy]) => `${xy(cx)} ${xy(cy)}`).join("L")}Z" class="head"/>`;
}

function sign(x, y, truth, property = "") {
  const words = property ? title(`${property}: ${MEANING[truth]}`) : "";
  const kind = truth.replaceAll(" ", "-");
  return `<g class="truth ${kind}" transform="translate(${xy(x)} ${xy(y)})">${words}${SIGNS[truth]}</g>`;
}

// -- messages ------------------------------------------------------------------------------------------------

/**
 * The events of each step with the numbers of their messages; a presenter may not know the receiver of a lost one.
 * @param {Event[][]} steps
 * @returns {Event[][]}
 */
export function numbered(steps) {
  /** @type {Map<string, Event[]>} */
  const waiting = new Map();
  let last = 0;
  const between = (one, other) => {
    const key = JSON.stringify([one, other]);
    return waiting.get(key) ?? waiting.set(key, []).get(key);
  };
  const taken = (pairs, words) => {
    for (const [one, other] of pairs) {
      const queue = between(one, other);
      const place = queue.findIndex((each) => each.text === words);
      if (place >= 0) return [one, other, queue.splice(place, 1)[0].message];
    }
    return [...pairs[0], ++last];
  };
  const anywhere = (event) => {
    const own = [...waiting.values()].flat().filter((each) => each.lane === event.lane && each.text === event.text);
    if (!own.length) return [];
    const sent = own.reduce((one, other) => (one.message <= other.message ? one : other));
    const queue = between(sent.lane, sent.peer);
    queue.splice(queue.indexOf(sent), 1);
    const arrival = { kind: "deliver", lane: sent.peer, text: sent.text, peer: sent.lane, message: sent.message };
    return [event.kind === "lost" ? { ...sent, kind: "lost" } : arrival];
  };
  const one = (event) => {
    if (event.kind === "late" || (event.kind === "lost" && event.peer === null)) return anywhere(event);
    if (event.peer === null || !["send", "deliver", "lost", "removed"].includes(event.kind)) return [event];
    const [forward, backward] = [[event.lane, event.peer], [event.peer, event.lane]];
    if (event.kind === "send") {
      const sent = { ...event, message: ++last };
      between(event.lane, event.peer).push(sent);
      return [sent];
    }
    if (event.kind === "deliver") return [{ ...event, message: taken([backward], event.text)[2] }];
    const [lane, peer, message] = taken([forward, backward], event.text);
    return [{ ...event, lane, peer, message }];
  };
  return steps.map((events) => events.flatMap(one));
}

/** @param {Step[]} steps
 *  @returns {Message[]} */
function messagesOf(steps) {
  /** @type {Map<number, Message>} */
  const lives = new Map();
  for (const step of steps) {
    for (const event of step.events) {
      if (event.message == null || event.peer === null) continue;
      const [sender, receiver] = event.kind === "deliver" ? [event.peer, event.lane] : [event.lane, event.peer];
      const fresh = { number: event.message, sender, receiver, text: event.text, fate: "on its way", sent: null, ended: null };
      const message = lives.get(event.message) ?? lives.set(event.message, fresh).get(event.message);
      if (event.kind === "send") message.sent = step.number;
      else [message.ended, message.fate] = [step.number, FATES[event.kind]];
    }
  }
  return [...lives.values()];
}

function sentence({ number, sender, receiver, text: words, sent, ended, fate }) {
  const begin = sent === null ? "under way from the start" : `sent in step ${sent}`;
  const end = ended === null ? fate : `${fate} in step ${ended}`;
  return `m${number} ${sender} -> ${receiver}: ${words}; ${begin}, ${end}`;
}

// -- layout --------------------------------------------------------------------------------------------------

class Layout {
  /** @param {Step[]} steps
   *  @param {string[]} properties */
  constructor(steps, properties) {
    this.steps = steps;
    this.properties = properties;
    this.messages = messagesOf(steps);
    const named = steps.flatMap((step) => step.lanes.map((lane) => lane.name));
    const peers = steps.flatMap((step) => step.events.flatMap(({ lane, peer }) => [lane, peer]));
    this.lanes = unique([...named, ...peers.filter((name) => name !== null)]);
    if (!this.lanes.length) this.lanes = ["model"];
    this.lanesLeft = EDGE + NUMBER + CAPTION;
    const words = [
      ...steps.flatMap((step) => Object.values(step.changed).flat().map(([name, value]) => `${name} ${value}`)),
      ...this.messages.map((message) => `m${message.number} ${message.text}`),
      ...steps.flatMap((step) => step.events.filter(({ kind }) => kind !== "note").map((event) => event.text)),
      ...this.lanes,
    ];
    const need = most(0, ...words.map(cells)) * SMALL * MONO + BESIDE + PADDING + CHANNEL + 1;
    this.laneWidth = Math.round(most(144, Math.min(285, 720 / this.lanes.length, need)));
    this.truthsLeft = this.lanesLeft + this.lanes.length * this.laneWidth + 6;
    this.width = this.truthsLeft + properties.length * TRUTH + EDGE;
    this.top = most(34, most(0, ...properties.map((name) => Math.min(24, cells(name)))) * SMALL * BOLD + 12);
    let top = this.top;
    this.rows = steps.map((step) => {
      const row = this.row(step, top);
      top += row.height;
      return row;
    });
    this.bottom = top;
  }

  life(lane) {
    return this.lanesLeft + this.lanes.indexOf(lane) * this.laneWidth + LIFE;
  }

  box(lane, block) {
    const left = this.life(lane) + (["changes", "note"].includes(block.kind) ? BESIDE : MARK);
    const columns = most(...block.lines.map(([name, words]) => cells(name ? `${name} ${words}` : words)));
    return [left, block.top, left + columns * SMALL * MONO + PADDING, block.top + block.height];
  }

  turns(step) {
    const before = this.steps[step.number - 1]?.truth ?? [];
    return this.properties
      .filter((_, place) => step.truth[place] !== before[place] && step.truth[place] in TURNS
        && (step.truth[place] !== "holds" || before[place] === "fails"))
      .map((name) => `${name} ${TURNS[step.truth[this.properties.indexOf(name)]]}`);
  }

  row(step, top) {
    const caption = wrapped(step.caption, columnsIn(CAPTION - 14, SIZE, SANS), 5);
    const remarks = this.turns(step).flatMap((turn) => wrapped(turn, 21, 3));
    const [ends, sends] = this.ends(top + FIRST, this.messages.filter((message) => message.ended === step.number));
    const sending = this.messages.filter(({ sent }) => sent === step.number).map(({ sender }) => sends.get(sender) ?? top + FIRST);
    let low = most(top + FIRST - 4, ...[...ends.values()].map((y) => y + FIRST), ...sending.map((y) => y + 5));
    const bands = [];
    for (const [kind, pairs] of linked(step)) {
      low = bands.length || ends.size ? low + SLOT : top + FIRST;
      bands.push({ kind, pairs, y: low });
    }
    low += bands.some(({ kind }) => kind !== "between") || (bands.length && sending.length) ? 14 : 8;
    const blocks = new Map(this.lanes.map((lane) => [lane, this.blocks(step, lane, low)]));
    low = most(low, ...[...blocks.values()].flat().map((block) => block.top + block.height));
    const words = top + 9 + 16 * caption.length + 14 * remarks.length;
    return { step, top, height: most(low, words, top + 24) + 7 - top, caption, remarks, ends, bands, blocks, sends };
  }

  /** The heights of the ends of messages, from `top` down, and of the sendings of their receivers, below labels beside. */
  ends(top, ending) {
    const [ends, sends, slots] = [new Map(), new Map(), new Map()];
    const taken = (key) => slots.get(key) ?? 0;
    for (const message of ending) {
      const place = this.lanes.indexOf(message.receiver);
      const gap = this.lanes.indexOf(message.sender) <= place ? place - 1 : place;
      const slot = most(taken(message.receiver), taken(gap));
      slots.set(message.receiver, slot + 1).set(gap, slot + 1);
      ends.set(message.number, top + SLOT * slot);
    }
    for (const [place, lane] of this.lanes.entries())
      if (taken(lane)) sends.set(lane, top + SLOT * most(...[lane, place - 1, place].map(taken)) + 4);
    return [ends, sends];
  }

  blocks(step, lane, top) {
    const columns = columnsIn(this.laneWidth - BESIDE - PADDING - CHANNEL, SMALL, MONO);
    const blocks = [];
    for (const event of step.events.filter((each) => each.lane === lane)) {
      const marked = event.text.length > 2 && event.text.startsWith("*") && event.text.endsWith("*");
      const noted = event.kind === "note" && event.text !== step.caption;
      if (!noted && !["crash", "start", "decide"].includes(event.kind)) continue;
      const whole = noted && marked ? event.text.slice(1, -1) : event.text;
      const lines = wrapped(whole, columns, 4).map((words) => ["", words]);
      const block = { kind: noted ? (marked ? "marked" : "note") : event.kind, lines, whole, top, height: lines.length * LINE + 5 };
      blocks.push(block);
      top += block.height + 4;
    }
    const changed = step.changed[lane] ?? [];
    if (changed.length) {
      const lines = changed.flatMap(([name, value]) => fieldLines(name, value, columns));
      const fields = step.lanes.find((each) => each.name === lane)?.fields ?? [];
      const whole = [`${lane} after step ${step.number}`, ...fields.map((field) => `${field.name} = ${field.whole}`)].join("\n");
      blocks.push({ kind: "changes", lines, whole, top, height: lines.length * LINE + 6 });
    }
    return blocks;
  }
}

function fieldLines(name, value, columns) {
  const label = wrapped(name, most(4, columns - 4), 1)[0];
  const rest = columns - cells(label) - 1;
  const fits = cells(value) <= rest;
  const beside = fits || rest >= 12;
  const [first, ...more] = beside ? wrapped(value, most(4, rest), fits ? 1 : 4) : ["", ...wrapped(value, columns - 1, 4)];
  return [[label, first], ...more.map((words) => ["", ` ${words}`])];
}

function linked(step) {
  const of = (kind) => step.events.filter((event) => event.kind === kind);
  const between = of("note").filter(({ lane, peer }) => peer !== null && peer !== lane);
  return [["cut", of("cut")], ["heal", of("heal")], ["between", between]]
    .filter(([, events]) => events.length)
    .map(([kind, events]) => [kind, events.map(({ lane, peer }) => [lane, peer ?? lane])]);
}

// -- arrows --------------------------------------------------------------------------------------------------

/** Routes of arrows around boxes; the rules are those of `checker/traces/svg/arrows.py`. */
class Routes {
  constructor(boxes, lives) {
    this.boxes = boxes;
    this.lives = lives;
    this.tracks = [];
  }

  route(start, end) {
    if (this.free([start, end])) return [start, end];
    const [[x1, y1], [x2, y2]] = [start, end];
    const [top, low] = [y1 + 8, y2 - 5];
    let shared = null;
    for (const track of top < low ? this.candidates(x1, x2) : []) {
      const side = Math.min(8, Math.abs(track - x1)) * (x2 > x1 ? 1 : -1);
      const corners = [start, [x1 + side, top], [track, top], [track, low], end];
      if (!this.free(corners)) continue;
      if (!this.tracks.some(([x, from, to]) => Math.abs(x - track) < 4 && top < to && from < low)) {
        this.tracks.push([track, top, low]);
        return corners;
      }
      shared ??= corners;
    }
    return shared ?? [start, end];
  }

  candidates(x1, x2) {
    const lives = this.lives.filter((x) => x >= Math.min(x1, x2) - 25 && x <= Math.max(x1, x2) + 25);
    const gaps = lives.slice(1).map((right, place) => [lives[place], right]);
    const tracks = [];
    for (const [left, right] of x2 > x1 ? gaps.reverse() : gaps)
      for (let track = right - 8; track >= left + 12; track -= 4) tracks.push(track);
    return tracks;
  }

  free(corners) {
    return !corners.slice(1).some((end, place) => this.boxes.some((each) => crosses(corners[place], end, each)));
  }
}

function crosses([x1, y1], [x2, y2], [left, top, right, bottom]) {
  let [begin, end] = [0, 1];
  for (const [position, length, low, high] of [[x1, x2 - x1, left - 2, right + 2], [y1, y2 - y1, top - 2, bottom + 2]]) {
    if (length === 0) {
      if (!(low < position && position < high)) return false;
      continue;
    }
    const [first, second] = [(low - position) / length, (high - position) / length].sort((one, other) => one - other);
    [begin, end] = [most(begin, first), Math.min(end, second)];
  }
  return begin < end;
}

/** @param {Layout} places */
function arrows(places) {
  const rows = new Map(places.rows.map((row) => [row.step.number, row]));
  const boxes = places.rows.flatMap((row) => [...row.blocks].flatMap(([lane, stack]) => stack.map((each) => places.box(lane, each))));
  const lives = places.lanes.map((lane) => places.life(lane));
  const routes = new Routes(boxes, lives);
  const start = ({ sender, sent }) => {
    const row = rows.get(sent);
    return [places.life(sender), row ? row.sends.get(sender) ?? row.top + FIRST : places.top - 4];
  };
  const sideOf = ({ sender, receiver }) => (places.life(receiver) >= places.life(sender) ? 1 : -1);
  const endOf = (message) => {
    const [x, side] = [places.life(message.receiver), -sideOf(message)];
    return [x + side * (message.fate === "arrives" ? 0 : 20), rows.get(message.ended).ends.get(message.number), side];
  };
  const group = (message, inside) => {
    const data = [["message", message.number], ["sent", message.sent], ["ended", message.ended]]
      .filter(([, value]) => value !== null).map(([name, value]) => ` data-${name}="${value}"`).join("");
    const kind = message.ended === null ? "under-way" : message.fate;
    return `<g id="${PREFIX}m${message.number}" class="message ${kind}"${data}>${title(sentence(message))}${inside}</g>`;
  };
  const shaft = (message) => {
    const [x, y] = start(message);
    if (message.ended === null) {
      const end = x + sideOf(message) * 26;
      return group(message, line(x, y, end, y, "shaft") + dot(x, y, 3) + head(end, y, end - x, 0));
    }
    const [x2, y2] = endOf(message);
    const corners = routes.route([x, y], [x2, y2]);
    const [bx, by] = corners.at(-2);
    const points = corners.map((each) => each.map(n).join(",")).join(" ");
    const drawn = corners.length > 2 ? `<polyline points="${points}" class="shaft"/>` : line(x, y, x2, y2, "shaft");
    const last = { lost: cross(x2, y2), removed: "", arrives: head(x2, y2, x2 - bx, y2 - by) }[message.fate];
    return group(message, drawn + dot(x, y, 3) + last);
  };
  const label = (x, y, side, name, more, whole, kind) => {
    const nearest = lives.reduce((one, other) => (Math.abs(other - x) < Math.abs(one - x) ? other : one));
    const columns = columnsIn(places.laneWidth - Math.abs(x - nearest) - CHANNEL, SMALL, SANS);
    const words = (name ? `<tspan class="id">${escaped(name)}</tspan> ` : "") + escaped(shortened(more, columns - cells(name) - 1));
    const anchor = side < 0 ? "end" : "start";
    return `<text x="${n(x)}" y="${n(y)}" class="label${kind}" text-anchor="${anchor}">${title(whole)}${words}</text>`;
  };
  const ended = places.messages.filter((message) => message.ended !== null);
  const labels = ended.map((message) => {
    const [x, y, side] = endOf(message);
    const fate = message.fate === "arrives" ? "" : ` ${message.fate}`;
    return label(x + side * 9, y + 12, side, `m${message.number}${fate}`, message.text, sentence(message), fate);
  });
  const stubs = new Map();
  for (const message of places.messages.filter((each) => each.ended === null)) {
    const key = JSON.stringify([...start(message), sideOf(message)]);
    stubs.set(key, [...(stubs.get(key) ?? []), message]);
  }
  const waiting = [...stubs].map(([key, messages]) => {
    const [x, y, side] = JSON.parse(key);
    const words = messages.map(({ number, receiver }) => `m${number} to ${receiver}`).join(", ");
    return label(x + side * 30, y + 4, side, "", words, messages.map(sentence).join("\n"), " under-way");
  });
  return [...places.messages.map(shaft), ...labels, ...waiting];
}

function bandDrawn(places, { kind, pairs, y }) {
  const lanes = unique(pairs.flat()).sort((one, other) => places.lanes.indexOf(one) - places.lanes.indexOf(other));
  const ends = lanes.map((lane) => places.life(lane));
  const [one, other] = sides(pairs);
  const marks = lanes.map((lane, place) => box(ends[place] - 4, y - 4, 8, 8, other.includes(lane) ? "end second" : "end", null));
  const named = other.length ? [one, other].map((side) => [...side].sort().join(", ")).join(" | ") : pairs.map((pair) => pair.join(" - ")).join(", ");
  const words = (CUTS[kind] ?? "") + named;
  const room = columnsIn(places.truthsLeft - ends[0] - 20, SMALL, SANS);
  const told = kind in CUTS ? title(words) + text(ends[0] + 9, y + 13, shortened(words, room), `label ${kind}`) : "";
  return `<g class="band ${kind}">${line(ends[0], y, ends.at(-1), y, "")}${marks.join("")}${told}</g>`;
}

/** The two sides of cut links, if all of one side have lost all of the other; otherwise one side with all lanes. */
function sides(pairs) {
  const [first, second] = pairs[0];
  const side = unique([first, ...pairs.filter((pair) => pair.includes(second)).map(([a, b]) => (b === second ? a : b))]);
  const rest = unique(pairs.flat()).filter((lane) => !side.includes(lane));
  const key = (pair) => JSON.stringify([...pair].sort());
  const crossed = side.flatMap((one) => rest.map((other) => key([one, other])));
  const whole = rest.length && unique([...pairs.map(key), ...crossed]).length === unique(pairs.map(key)).length
    && crossed.length === unique(pairs.map(key)).length;
  return whole ? [side, rest] : [[...side, ...rest], []];
}

// -- the picture ---------------------------------------------------------------------------------------------

/**
 * One `<svg>` element, as text.
 * @param {{title: string, steps: Step[], properties: string[], found: string, ended: boolean}} run
 *   `found`: the property of the finding that the run ends in; `ended`: whether it ends in one
 */
export function picture({ title: words, steps, properties, found, ended }) {
  const places = new Layout(steps, properties);
  const last = steps.length - 1;
  const turnsBad = ({ step }) => (ended && step.number === last)
    || step.truth.some((truth, place) => truth === "fails" && steps[step.number - 1]?.truth[place] !== "fails");
  const back = (row) => {
    const number = row.step.number;
    const kind = ["row", number % 2 ? "odd" : "even", ...(turnsBad(row) ? ["turn"] : []), ...(number === last ? ["selected"] : [])].join(" ");
    return `<rect id="${PREFIX}step-${number}" data-step="${number}" x="${n(EDGE - 2)}" y="${n(row.top)}"`
      + ` width="${n(places.width - EDGE - 4)}" height="${n(row.height)}" class="${kind}"/>`;
  };
  const foot = footOf(places);
  const height = Math.round(places.bottom + FOOT + 16 * foot.length);
  const width = Math.round(places.width);
  const parts = [
    title(words),
    box(0, 0, places.width, places.bottom + FOOT + 16 * foot.length, "paper", 0),
    ...places.rows.map(back),
    ...lanesDrawn(places, found),
    ...places.rows.map((row) => stepDrawn(places, row, turnsBad(row))),
    ...arrows(places),
    ...foot,
  ];
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}"`
    + ` role="img" class="quorate-trace">\n${parts.join("\n")}\n</svg>`;
}

function footOf(places) {
  let low = places.bottom + FOOT;
  const truths = Object.keys(MEANING).filter((truth) => places.steps.some((step) => step.truth.includes(truth)));
  const lines = [];
  if (truths.length) {
    let x = EDGE;
    const signs = truths.map((truth) => {
      const drawn = sign(x + 7, low - 4, truth) + text(x + 18, low, MEANING[truth], "foot");
      x += 36 + MEANING[truth].length * 12 * SANS;
      return drawn;
    });
    lines.push(`<g class="legend">${signs.join("")}</g>`);
    low += 16;
  }
  const columns = columnsIn(places.width - 2 * EDGE, SMALL, SANS);
  return [...lines, ...wrapped(NOT_SHOWN, columns, 3).map((words, place) => text(EDGE, low + 16 * place, words, "foot"))];
}

function lanesDrawn(places, found) {
  const parts = [];
  for (const lane of places.lanes) {
    const x = places.life(lane);
    for (const [top, bottom, up] of spans(places, lane)) parts.push(line(x, top, x, bottom, up ? "life" : "life down"));
    const name = shortened(lane, columnsIn(places.laneWidth - LIFE - 14, SIZE, BOLD));
    for (const y of [places.top - 25, places.bottom + 4]) {
      const frame = box(x - 10, y, cells(name) * SIZE * BOLD + 14, 20, "lane-box", 4);
      parts.push(`<g class="lane">${title(lane)}${frame}${text(x - 2, y + 14, name, "lane-name")}</g>`);
    }
  }
  for (const [place, name] of places.properties.entries()) {
    const [x, y] = [places.truthsLeft + (place + 0.5) * TRUTH + 4, places.top - 6];
    const turned = ` transform="translate(${xy(x)} ${xy(y)}) rotate(-90)"`;
    const kind = name === found ? "property found" : "property";
    parts.push(`<text class="${kind}"${turned}>${title(name)}${escaped(shortened(name, 24))}</text>`);
  }
  return parts;
}

/** The spans of a lane, up or down, as [top, bottom, up]. */
function spans(places, lane) {
  const turns = places.rows.flatMap((row) => row.step.events
    .filter((event) => event.lane === lane && ["crash", "start"].includes(event.kind))
    .map((event) => [row.sends.get(lane) ?? row.top + FIRST, event.kind === "start"]));
  const first = places.steps[0].lanes.find((each) => each.name === lane)?.fields.find((field) => field.name === "state");
  let [top, up] = [places.top - 6, !turns[0]?.[1] && first?.whole !== "down"];
  const parts = [];
  for (const [y, isUp] of turns) {
    parts.push([top, y, up]);
    [top, up] = [y, isUp];
  }
  return [...parts, [top, places.bottom + 6, up]];
}

function stepDrawn(places, row, bad) {
  const { step, top } = row;
  const x = EDGE + NUMBER - 10;
  const parts = [title(`step ${step.number}: ${step.caption}`)];
  parts.push(`<a href="#${PREFIX}step-${step.number}">${text(x, top + 18, String(step.number), "number")}</a>`);
  let low = top + 18;
  for (const words of row.caption) {
    parts.push(text(x + 10, low, words, "caption"));
    low += 16;
  }
  for (const words of row.remarks) {
    parts.push(text(x + 10, low, words, bad ? "told bad" : "told"));
    low += 14;
  }
  parts.push(...dots(places, row), ...row.bands.map((band) => bandDrawn(places, band)));
  for (const [lane, stack] of row.blocks) parts.push(...stack.map((block) => blockDrawn(places, lane, block)));
  for (const [place, name] of places.properties.entries())
    parts.push(sign(places.truthsLeft + (place + 0.5) * TRUTH, top + 14, step.truth[place], name));
  return `<g class="step" data-step="${step.number}">${parts.join("")}</g>`;
}

/** The dots of the lanes that act in a step: at an arrival, at a sending, or at the top of the row. */
function dots(places, { step, top, ends, sends }) {
  const quiet = ["lost", "removed", "send", "deliver", "cut", "heal"];
  const busy = step.number ? Object.keys(step.changed).filter((lane) => !sends.has(lane)) : [];
  const marked = step.events.filter((event) => !quiet.includes(event.kind)).map((event) => event.lane);
  const arrived = step.events.filter((event) => event.kind === "deliver" && ends.has(event.message));
  const spots = [...[...busy, ...marked].map((lane) => [lane, top + FIRST]), ...arrived.map((event) => [event.lane, ends.get(event.message)])];
  const order = ([one, y1], [other, y2]) => (one < other ? -1 : one > other ? 1 : y1 - y2);
  const drawn = spots.sort(order).map(([lane, y]) => dot(places.life(lane), y, 3.6));
  return unique(drawn);
}

function blockDrawn(places, lane, block) {
  const [x, top, right, bottom] = places.box(lane, block);
  const lines = block.lines.map(([name, words], place) => {
    const label = name ? `<tspan class="field">${escaped(name)}</tspan> ` : "";
    return `<text x="${n(x + 5)}" y="${n(block.top + LINE * (place + 1) - 1.5)}">${label}${escaped(words)}</text>`;
  });
  return `<g class="block ${block.kind}" data-lane="${escaped(lane)}">${title(block.whole)}${box(x, top, right - x, bottom - top, "", 3)}${lines.join("")}</g>`;
}

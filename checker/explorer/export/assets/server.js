/**
 * The answers of an exported page, which has no server: the space of each job is in an element of the page, as
 * `checker/explorer/export/space.py` writes it. This file has the place of `checker/local_page/assets/server.js`.
 */
import { numbered, picture } from "./picture.js";

/** @type {Record<string, string>} */
const ENDINGS = { always: "violated", final: "deadlock", sometimes: "witnessed" };
const SAID = ["fails", "witnessed", "reached"];
/** @type {Map<string, any>} */
const spaces = new Map();

const read = (id) => JSON.parse(document.getElementById(id)?.textContent ?? "null");

/**
 * @param {string} path
 * @param {any} [body]
 * @returns {Promise<any>}
 */
export async function ask(path, body) {
  return path === "/api/walk" ? viewOf(body) : read("space-jobs");
}

function spaceOf(key) {
  const space = spaces.get(key) ?? read(`space-${key}`);
  if (!space?.states) throw new Error(`this link is of another run (${key}) than those of this page; ask for the page that it was made on`);
  spaces.set(key, space);
  return space;
}

function viewOf({ job, path, check }) {
  const space = spaceOf(job);
  const moves = movesAlong(space, path);
  if (check !== null && check !== space.check) throw new Error("this link was made on another page: its moves may lead to another state; begin anew");
  const walked = [0, ...moves.map(([, target]) => target)];
  const now = walked.at(-1);
  const steps = stepsOf(space, moves, walked);
  const findings = findingsOf(space, now, path.length);
  const lanes = lanesOf(space, now);
  const last = steps.at(-1);
  for (const lane of path.length ? lanes : []) {
    const changed = last.fields[lane.name] ?? [];
    lane.fields = lane.fields.map((field) => ({ ...field, changed: changed.includes(field.name) }));
    lane.gone = changed.filter((name) => !lane.fields.some((field) => field.name === name));
  }
  const headline = findings[0]?.headline ?? `walked: ${path.length === 1 ? "1 move" : `${path.length} moves`}, without a finding`;
  const run = { title: `${space.name}: ${headline}`, steps, found: findings[0]?.property ?? "", ended: findings.length > 0 };
  return {
    job,
    path,
    link: `${job}/${path.join(".")}/${space.check}`,
    picture: picture({ ...run, properties: space.properties.map(({ name }) => name) }),
    lanes,
    properties: space.properties.map((property, place) => ({ ...property, truth: truthsOf(space, now)[place], ...answerOf(space, now, place) })),
    findings,
    moves: (movesOf(space, now) ?? []).map((move, ordinal) => moveView(space, walked, move, ordinal)),
    cut: movesOf(space, now) === null,
    states: space.states.length,
  };
}

// -- the space -----------------------------------------------------------------------------------------------

/** The moves of a state as [effect, target]; null at the depth where the exported space ends. */
function movesOf(space, state) {
  const flat = space.states[state][2];
  return flat && Array.from({ length: flat.length / 2 }, (_, place) => [space.effects[flat[2 * place]], flat[2 * place + 1]]);
}

function movesAlong(space, path) {
  let state = 0;
  return path.map((ordinal, place) => {
    const moves = movesOf(space, state) ?? [];
    if (!moves[ordinal]) {
      const choice = moves.length ? `only ${moves.length} can happen` : "nothing can happen";
      throw new Error(`step ${place + 1} is move number ${ordinal}, and ${choice} there; begin anew`);
    }
    state = moves[ordinal][1];
    return moves[ordinal];
  });
}

const truthsOf = (space, state) => space.truths[space.states[state][1]][0];

function answerOf(space, state, place) {
  const answer = space.truths[space.states[state][1]][1][place];
  return answer ? { clause: answer[0], values: answer[1] } : {};
}

function lanesOf(space, state) {
  return space.states[state][0].map((id) => {
    const [name, fields] = space.lanes[id];
    const field = ([called, whole, text]) => ({ name: called, text, whole, changed: false });
    return { name, fields: fields.map((each) => field(space.fields[each])), gone: [] };
  });
}

/** The finding that each property has in the last state; whether a run never reaches its goal is not judged here. */
function findingsOf(space, state, depth) {
  const found = space.properties.flatMap(({ name, kind }, place) => {
    const answer = answerOf(space, state, place);
    if (!(kind in ENDINGS) || answer.clause === undefined) return [];
    return [{ property: name, kind, good: kind === "sometimes", headline: `${ENDINGS[kind]}: ${name} at depth ${depth}`, ...answer }];
  });
  const order = Object.keys(ENDINGS);
  return found.sort((one, other) => order.indexOf(one.kind) - order.indexOf(other.kind));
}

/** The steps for the picture: of step 0 every field is a change. `fields` are the names of those that change. */
function stepsOf(space, moves, walked) {
  const drawn = moves.map(([effect]) => effect.events.map((id) => event(space.events[id])));
  const events = numbered([[], ...drawn]);
  return walked.map((state, number) => {
    const lanes = lanesOf(space, state);
    const changes = number ? moves[number - 1][0].changes.map((id) => space.changes[id])
      : lanes.flatMap((lane) => lane.fields.map((field) => [lane.name, field.name, null, field.whole]));
    /** @type {Record<string, [string, string][]>} */
    const changed = {};
    /** @type {Record<string, string[]>} */
    const fields = {};
    for (const [lane, field, , after] of changes) {
      (changed[lane] ??= []).push(after === null ? [`no ${field}`, ""] : [field, after]);
      (fields[lane] ??= []).push(field);
    }
    const caption = number ? moves[number - 1][0].caption : "at first";
    return { number, caption, lanes, changed, fields, events: events[number], truth: truthsOf(space, state) };
  });
}

const event = ([kind, lane, text, peer]) => ({ kind, lane, text, peer });

function moveView(space, walked, [effect, target], ordinal) {
  const [now, then] = [truthsOf(space, walked.at(-1)), truthsOf(space, target)];
  const back = walked.indexOf(target);
  const change = ([lane, field, before, after]) => ({ lane, field, before, after });
  return {
    ordinal,
    action: effect.action,
    caption: effect.caption,
    lane: effect.lane,
    changes: effect.changes.map((id) => change(space.changes[id])),
    drawn: effect.drawn,
    back_to: back < 0 ? null : back,
    last: movesOf(space, target)?.length === 0,
    turns: space.properties
      .map(({ name }, place) => ({ property: name, truth: then[place] }))
      .filter(({ truth }, place) => SAID.includes(truth) && (truth === "fails" || truth !== now[place])),
  };
}

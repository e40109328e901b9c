/** The fields of a question beside its files. The server says which there are: they are options of the command. */
import { byId, make } from "./dom.js";

/** @typedef {{name: string, label: string, help: string, example: string, switch: boolean, repeated: boolean,
 *   choices: [string, string][]}} Field */

/** @param {Field[]} fields */
export function showFields(fields) {
  byId("fields").replaceChildren(...fields.map((field) => {
    const input = { id: field.name, "aria-describedby": `${field.name}-help` };
    return make(
      "div",
      { class: "field", "data-field": field.name },
      make("label", { for: field.name }, field.label),
      field.choices.length
        ? make("select", input, ...field.choices.map(([value, text]) => make("option", { value }, text)))
        : make("input", { ...input, type: field.switch ? "checkbox" : "text", placeholder: field.example }),
      make("small", { id: `${field.name}-help` }, field.help),
      make("p", { class: "error", role: "alert", hidden: true }),
    );
  }));
}

/**
 * The names and values of the fields that are filled in.
 * @param {Field[]} fields
 * @returns {[string, string][]}
 */
export function filledIn(fields) {
  return fields.flatMap(({ name, repeated, switch: isSwitch }) => {
    const input = byId(name);
    if (isSwitch) return input.checked ? [[name, ""]] : [];
    const value = input.value.trim();
    return (repeated ? value.split(/[\s,]+/) : [value]).filter((each) => each).map((each) => [name, each]);
  });
}

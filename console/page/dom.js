// The one place where elements are made and filled: text only, made visible, never markup.

import { visible } from "./visible.js";

const LONG = 4000; // characters of one text that are shown at once

/**
 * An element with attributes and children. A child that is no element becomes text; null and false are left out. An
 * attribute that is a function listens to the event of its name.
 */
export function el(tag, attributes = {}, ...children) {
  return completed(document.createElement(tag), attributes, children);
}

/** The same for an element of SVG. */
export function svg(tag, attributes = {}, ...children) {
  return completed(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function completed(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name, value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, visible(String(value)));
  }
  made.append(...children.flat().filter((one) => one !== null && one !== false && one !== undefined).map(asNode));
  return made;
}

/** Replace what an element shows. */
export function fill(target, ...children) {
  target.replaceChildren(...el("div", {}, ...children).childNodes);
}

/** Some lines of text as they are, each made visible. */
export function lines(text, label) {
  const made = el("pre", { tabindex: 0, role: "region", "aria-label": label });
  made.textContent = text.split("\n").map(visible).join("\n");
  return made;
}

/** A text that may be long: the cut says how much is missing, and a button shows it. */
export function long(text, label) {
  const whole = visible(String(text));
  const made = el("span", { class: "text" });
  made.textContent = whole.length > LONG ? whole.slice(0, LONG) : whole;
  if (whole.length <= LONG) return made;
  const more = el("button", { type: "button", class: "small", "aria-label": `Show all of ${label}`, click: () => {
    made.textContent = whole;
    more.remove();
  } }, `… show ${whole.length - LONG} characters more`);
  return el("span", { class: "cut" }, made, more);
}

/** Names and values, one below the other. `rows`: [name, value or element]. */
export function facts(rows, attributes = {}) {
  return el("dl", { class: "facts", ...attributes }, rows.map(([name, value]) => el("div", {},
    el("dt", {}, name), el("dd", {}, value instanceof Node || Array.isArray(value) ? value : long(value, name)))));
}

/** A labelled field of a form. */
export function field(label, attributes, hint = null) {
  const input = el("input", { autocomplete: "off", spellcheck: "false", ...attributes });
  const hintId = hint === null ? null : `${attributes.id}-hint`;
  if (hintId !== null) input.setAttribute("aria-describedby", hintId);
  return el("p", { class: "field" }, el("label", { for: attributes.id }, label), input,
    hint === null ? null : el("small", { id: hintId }, hint));
}

/** A labelled field of several lines. */
export function area(label, attributes, hint) {
  const hintId = `${attributes.id}-hint`;
  return el("p", { class: "field" }, el("label", { for: attributes.id }, label),
    el("textarea", { autocomplete: "off", spellcheck: "false", "aria-describedby": hintId, ...attributes }),
    el("small", { id: hintId }, hint));
}

/** A labelled choice. `options`: [value, text]. */
export function choice(label, id, options, chosen) {
  return el("p", { class: "field" }, el("label", { for: id }, label), el("select", { id, name: id },
    options.map(([value, text]) => el("option", { value, selected: value === chosen }, text))));
}

/** Tell those who do not see the page. */
export function say(text) {
  document.getElementById("said").textContent = visible(text);
}

/** What went wrong, read out at once. */
export function problem(text) {
  return el("p", { class: "problem", role: "alert" }, text);
}

/** Ask a question in a dialog; true when `yes` was pressed. */
export function confirmed(title, yes, kind, ...children) {
  return new Promise((resolve) => {
    const dialog = el("dialog", { "aria-labelledby": "question" },
      el("h2", { id: "question" }, title), ...children,
      el("div", { class: "buttons" },
        el("button", { type: "button", autofocus: true, click: () => dialog.close("no") }, "Go back"),
        el("button", { type: "button", class: kind, click: () => dialog.close("yes") }, yes)));
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(dialog.returnValue === "yes");
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(visible(String(child)));
}

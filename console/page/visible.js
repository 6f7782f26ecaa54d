// Text that came from elsewhere, so that a person sees every character of it.
//
// What could hide, disguise or reorder is written as \uXXXX, as gatectl does. Every text that dom.js puts into the page
// goes through `visible`: no view has to remember it.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}\p{Zl}\p{Zp}\p{Zs}\p{Default_Ignorable_Code_Point}\u2800]/u;
const OVERLAY = new RegExp( // strikes out or encloses the character that carries it
  "[\\p{Me}\\u0334-\\u0338\\u1cd4\\u1ce2-\\u1ce8\\u1dfb\\u20d2\\u20d3\\u20d8-\\u20da\\u20e5\\u20e6\\u20ea\\u20eb"
  + "\\u{10a39}\\u{16af0}-\\u{16af4}\\u{1bc9e}\\u{1d167}-\\u{1d169}]",
  "u",
);
const MARK = /\p{M}/u;
const TO_THE_LEFT =
  /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u;
const OF_NO_SCRIPT = /[\p{M}\s]/u;
const MOST_MARKS = 4; // on one character, more than any script needs

/** The same text with what can't be seen, or is seen as something else, as \uXXXX. */
export function visible(text) {
  if (/^[ -~]*$/.test(text)) return text;
  const characters = [...text];
  const isMixed = TO_THE_LEFT.test(text)
    && characters.some((one) => !TO_THE_LEFT.test(one) && !OF_NO_SCRIPT.test(one));
  let shown = "";
  let marks = 0;
  let hasBase = false;
  for (const one of characters) {
    let isShown;
    if (MARK.test(one)) {
      marks += 1;
      isShown = hasBase && marks <= MOST_MARKS && !HIDDEN.test(one) && !OVERLAY.test(one);
    } else {
      marks = 0;
      isShown = one === " " || (!HIDDEN.test(one) && !(isMixed && TO_THE_LEFT.test(one)));
      hasBase = isShown && one !== " " && one !== "\\";
    }
    shown += isShown ? one : escaped(one);
  }
  return shown;
}

/** A value as one line of JSON in ASCII: lossless, and nothing in it can hide. */
export function asciiJson(value, indent) {
  const text = JSON.stringify(value, null, indent) ?? "null";
  return text.replace(/[^\n -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** A value in a line of facts: `-` for nothing, words for truth, names with commas. */
export function plain(value) {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (Array.isArray(value) && value.every((one) => typeof one === "string")) return value.join(", ") || "-";
  return typeof value === "object" ? asciiJson(value) : String(value);
}

function escaped(one) {
  const code = one.codePointAt(0);
  return code <= 0xffff ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}

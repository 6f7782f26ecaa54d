// RFC 8785: the one form of a JSON value that is hashed and signed; and the encodings that proofs need.

/** The canonical text. Throws for what has none. */
export function canonical(value) {
  if (value === null || typeof value === "boolean" || typeof value === "string") return stated(value);
  if (typeof value === "number") {
    if (!Number.isFinite(value) || (Number.isInteger(value) && !Number.isSafeInteger(value))) throw new Error("no form");
    return JSON.stringify(value); // ECMAScript's own form of numbers is that of the RFC
  }
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  // Names are sorted by UTF-16 units, as ECMAScript compares texts.
  return `{${Object.keys(value).sort().map((name) => `${stated(name)}:${canonical(value[name])}`).join(",")}}`;
}

/** base64url without padding. */
export function b64url(bytes) {
  return btoa(String.fromCharCode(...new Uint8Array(bytes)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** SHA-256 of a text in UTF-8. */
export function sha256(text) {
  return crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
}

/** In hexadecimal. */
export function hex(bytes) {
  return [...new Uint8Array(bytes)].map((one) => one.toString(16).padStart(2, "0")).join("");
}

function stated(text) {
  if (typeof text === "string" && !text.isWellFormed()) throw new Error("no form"); // lone surrogates
  return JSON.stringify(text);
}

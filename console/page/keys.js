// The operator's key: made here, kept by the browser, never to be taken out of it.
//
// A key belongs to one gateway, by the address that its proofs are made for: a console that suddenly speaks for another
// one finds no key. Only the key and the operator's name are kept; the API key never is.

import { b64url, hex, sha256 } from "./canonical.js";

const NAME = /^[a-z0-9][a-z0-9_-]{0,31}$/;
const ALGORITHM = { name: "ECDSA", namedCurve: "P-256" };

/** Whether this may be an operator's name. */
export const isName = (text) => NAME.test(text);

/** What is kept for this gateway: {gateway, name, key, jwk, thumbprint}; undefined before there is a key. */
export async function kept(gateway) {
  return asked((await store("readonly")).get(gateway));
}

/** Addresses of all gateways that this browser has a key for, at this console's address. */
export async function gateways() {
  return asked((await store("readonly")).getAllKeys());
}

/** Make a key for this gateway and keep it. Returns what is kept. */
export async function make(gateway, name) {
  const pair = await crypto.subtle.generateKey(ALGORITHM, false, ["sign"]);
  const made = await described(gateway, name, pair.privateKey, pair.publicKey);
  await asked((await store("readwrite")).add(made));
  if (navigator.storage?.persist) await navigator.storage.persist();
  return made;
}

/**
 * Keep a key that a sign-in link has brought, PKCS #8 in base64, in place of the same operator's. Returns what is kept;
 * undefined, and nothing changes, where this browser has a key of another operator.
 */
export async function adopt(gateway, name, encoded) {
  const bytes = Uint8Array.from(atob(encoded), (one) => one.charCodeAt(0));
  const copied = await crypto.subtle.importKey("pkcs8", bytes, ALGORITHM, true, ["sign"]);
  const key = await crypto.subtle.importKey("pkcs8", bytes, ALGORITHM, false, ["sign"]);
  const brought = await described(gateway, name, key, copied);
  const before = await kept(gateway);
  if (before !== undefined && before.name !== name) return undefined;
  await asked((await store("readwrite")).put(brought));
  return brought;
}

async function described(gateway, name, key, copied) {
  const { kty, crv, x, y } = await crypto.subtle.exportKey("jwk", copied);
  const thumbprint = b64url(await sha256(JSON.stringify({ crv, kty, x, y }))); // RFC 7638: members in this order
  return { gateway, name, key, jwk: { kty, crv, x, y }, thumbprint };
}

/** Forget the key: it is gone for ever. */
export async function forget(gateway) {
  await asked((await store("readwrite")).delete(gateway));
}

/** An API key for this name, and what the gateway's configuration has of it. */
export async function apiKey(name) {
  const key = `key-${name}-${hex(crypto.getRandomValues(new Uint8Array(16)))}`;
  return { key, digest: hex(await sha256(key)) };
}

/** A compact JWS by this key. */
export async function signed(held, type, claims) {
  const parts = [{ typ: type, alg: "ES256", jwk: held.jwk }, claims]
    .map((one) => b64url(new TextEncoder().encode(JSON.stringify(one))));
  const text = parts.join(".");
  const bytes = new TextEncoder().encode(text);
  return `${text}.${b64url(await crypto.subtle.sign({ name: "ECDSA", hash: "SHA-256" }, held.key, bytes))}`;
}

function asked(request) {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

async function store(mode) {
  const opening = indexedDB.open("gateway-console", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("keys", { keyPath: "gateway" });
  return (await asked(opening)).transaction("keys", mode).objectStore("keys");
}

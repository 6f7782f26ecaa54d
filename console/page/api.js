// Requests to the gateway by way of the console: each with a proof of its own, made here.
//
// The API key is in this module's memory alone, from sign-in until the page is locked, reloaded or left for too long.

import { b64url, canonical, hex, sha256 } from "./canonical.js";
import { signed } from "./keys.js";

const LOCK_AFTER = 30 * 60 * 1000; // milliseconds without a key, a click or a touch
const MOST_SECONDS = 660;
const NOT_HASHED = new Set([
  "state", "status", "claimed_by", "claimed_at", "completed_at", "receipt_id", "deny_reason", "error_code",
  "approval_signature", "approvals", "caps", "shown_hash",
]);
let session = null; // {held, token, lock}
let idle = 0;

/** A refusal: of the gateway, of the console, or of the network (`status` 0). */
export class Refused extends Error {
  constructor(status, code, answer, headers) {
    super(code);
    this.status = status;
    this.code = code;
    this.answer = answer;
    this.traceId = headers?.get("x-trace-id") ?? null;
    this.retryAfter = Number(headers?.get("retry-after") ?? 0);
  }
}

/** Begin a session. `lock` is called when it ends. */
export function signIn(held, token, lock) {
  session = { held, token, lock };
  touched();
}

/** End the session: the API key is forgotten. */
export function signOut(why = "") {
  const ended = session;
  forgetSession();
  ended?.lock(why);
}

/** The same before anything was shown: nobody is told. */
export function forgetSession() {
  session = null;
  clearTimeout(idle);
}

export const isSignedIn = () => session !== null;
export const operatorName = () => session?.held.name ?? null;

/** Read something of the operator's. */
export const get = (path, query = {}, abort = null) => proved("GET", path, query, undefined, abort);

/** Ask for something to be done or worked out. `body`: what is sent as JSON, or the JSON text itself. */
export const post = (path, body, abort = null) => proved("POST", path, {}, body, abort);

/** What a sign-in link brings, once: {name, api_key, private_key}. */
export const useLink = (secret) => sent("POST", "/sign-in", {}, null, { "Content-Type": "application/json" }, { secret });

/** Read what needs no proof: the actions. */
export const open = (path, abort = null) => sent("GET", path, {}, abort);

/** What is registered, as an array (`compat.actions_envelope` wraps it). */
export async function actionList(abort) {
  const answer = await open("/v1/actions", abort);
  return Array.isArray(answer) ? answer : answer.actions;
}

/** Whether a detail shows what it says to show. */
export async function isAsShown(detail) {
  try {
    return detail.shown_hash === `sha256:${hex(await sha256(canonical(shownOf(detail))))}`;
  } catch {
    return false;
  }
}

/**
 * Decide about a held call, by the operator's signature of exactly the detail that is given here.
 * `more`: learn_domain and learn_path for an approval, reason for a denial.
 */
export async function decide(detail, decision, more = {}) {
  const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value));
  if (!(await isAsShown(detail))) throw new Refused(0, "shown_mismatch", null);
  const { held } = session;
  const signature = await signed(held, "approval+jws", {
    aud: held.gateway, approval_id: detail.approval_id, action_id: detail.action_id, plan_hash: detail.plan_hash,
    shown_hash: detail.shown_hash, decision, iat: Math.floor(Date.now() / 1000), operator: held.name, ...given,
  });
  const path = `/v1/approvals/${detail.approval_id}/${decision}`;
  return decision === "deny"
    ? proved("POST", path, {}, { ...given, signature })
    : proved("POST", path, given, { signature });
}

function shownOf(detail) {
  return Object.fromEntries(Object.entries(detail).filter(([name]) => !NOT_HASHED.has(name)));
}

async function proved(method, path, query, body, abort) {
  if (session === null) throw new Refused(0, "locked", null);
  const { held, token } = session;
  const proof = await signed(held, "dpop+jwt", {
    jti: uuid7(), htm: method, htu: held.gateway + path, iat: Math.floor(Date.now() / 1000),
    ath: b64url(await sha256(token)),
  });
  const headers = { Authorization: `DPoP ${token}`, DPoP: proof };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return sent(method, path, query, abort, headers, body);
}

async function sent(method, path, query, abort, headers = {}, body = undefined) {
  const search = new URLSearchParams(Object.entries(query).filter(([, value]) => value)).toString();
  const limit = AbortSignal.timeout(MOST_SECONDS * 1000);
  let answer;
  try {
    answer = await fetch(search ? `${path}?${search}` : path, {
      method, headers, body: typeof body === "object" ? JSON.stringify(body) : body, cache: "no-store",
      credentials: "omit", redirect: "error", referrerPolicy: "no-referrer",
      signal: abort ? AbortSignal.any([abort, limit]) : limit,
    });
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new Refused(0, "console_unreachable", null);
  }
  let content;
  try {
    content = await answer.json();
  } catch (error) {
    if (abort?.aborted) throw error;
    throw new Refused(answer.status, "not_understood", null, answer.headers);
  }
  if (!answer.ok) throw new Refused(answer.status, String(content?.error ?? "not_understood"), content, answer.headers);
  return content;
}

/** A UUID of version 7 (RFC 9562 §5.7): milliseconds, then 74 random bits. */
function uuid7() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  new DataView(bytes.buffer).setUint16(0, Math.floor(Date.now() / 2 ** 32));
  new DataView(bytes.buffer).setUint32(2, Date.now() % 2 ** 32);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}

function touched() {
  if (session === null) return;
  clearTimeout(idle);
  idle = setTimeout(() => signOut("Locked: nothing was pressed for half an hour."), LOCK_AFTER);
}

for (const event of ["keydown", "pointerdown"]) addEventListener(event, touched, { passive: true });

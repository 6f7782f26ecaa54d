// Asking again and again: one request at a time, none while the page is hidden, slower while it fails.

import { told } from "./words.js";

const SLOWEST = 30_000;

/** Call `ask` every `pause` milliseconds until `abort`. `failed` is told what went wrong, and null once it goes well. */
export async function poll(ask, pause, abort, failed = () => {}) {
  let wait = pause;
  while (!abort.aborted) {
    if (!document.hidden) {
      try {
        await ask();
        wait = pause;
        failed(null);
      } catch (error) {
        if (abort.aborted) return;
        wait = Math.min(SLOWEST, Math.max(wait * 2, (error.retryAfter || 0) * 1000));
        failed(told(error));
      }
    }
    await pausing(wait, abort);
  }
}

function pausing(milliseconds, abort) {
  return new Promise((resolve) => {
    const timer = setTimeout(done, milliseconds);
    function done() {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
      abort.removeEventListener("abort", done);
      resolve();
    }
    function seen() {
      if (!document.hidden) done();
    }
    document.addEventListener("visibilitychange", seen);
    abort.addEventListener("abort", done);
  });
}

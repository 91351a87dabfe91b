/** The page's end of the worker: a request, and a promise of its answer. */

import type { Answer, Answers, Request } from "./records";

export class Simulator {
  private readonly worker = new Worker(new URL("./worker.ts", import.meta.url), { type: "module" });
  private readonly waiting = new Map<number, { done: (value: never) => void; failed: (error: Error) => void }>();
  private last = 0;

  constructor() {
    this.worker.addEventListener("message", (event: MessageEvent<Answer>) => {
      const { id, value, error } = event.data;
      const waits = this.waiting.get(id);
      this.waiting.delete(id);
      if (error !== undefined) waits?.failed(new Error(error));
      else waits?.done(value as never);
    });
    this.worker.addEventListener("error", (event) => {
      const error = new Error(event.message || "the simulator's worker could not be started");
      this.waiting.forEach((waits) => waits.failed(error));
      this.waiting.clear();
    });
  }

  ask<R extends Request>(request: R): Promise<Answers[R["kind"]]> {
    this.last += 1;
    const id = this.last;
    return new Promise((done, failed) => {
      this.waiting.set(id, { done, failed });
      this.worker.postMessage({ id, request });
    });
  }
}

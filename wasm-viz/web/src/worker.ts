/** The simulator's side: holds the runs, lets them go on, and sends what the page draws. */

import init, { Explorer, conversation_hash } from "./wasm/metaroce_explorer.js";
import moduleUrl from "./wasm/metaroce_explorer_bg.wasm?url";
import type { Answers, Frame, Opening, Plan, Request, SideFrame, View } from "./records";

/** A frame is sent after so many milliseconds, however far the runs are then. */
const BUDGET_MS = 11;
const TRANSFERS = 512;
const SPANS = 400;

const ready = init({ module_or_path: moduleUrl });
let sides: Explorer[] = [];

function open(opening: Opening): Explorer[] {
  const opened: Explorer[] = [];
  try {
    opening.overrides.forEach((overrides, side) => {
      const interventions = opening.interventions[side] ?? "";
      const seed = BigInt(opening.seed);
      opened.push(new Explorer(opening.name, opening.toml, overrides, seed, interventions));
    });
    opened.forEach((side, index) => side.seek(opening.ps, index === 0 ? opening.events : 0));
  } catch (error) {
    opened.forEach((side) => side.free());
    throw error;
  }
  return opened;
}

function plan(side: Explorer): Plan {
  return {
    transport: side.transport(),
    hosts: side.hosts(),
    switches: side.switches(),
    links: side.links(),
    pairs: side.pairs(),
  };
}

/** The time of a run that is not over, else of the one that took longest. */
function now(): number {
  const going = sides.find((side) => !side.is_over());
  return going ? going.elapsed_ps() : Math.max(0, ...sides.map((side) => side.elapsed_ps()));
}

function sideFrame(side: Explorer, view: View): SideFrame {
  return {
    packets: side.packets(),
    ports: side.ports(),
    counters: side.counters(),
    connection: side.connection(view.from, view.to),
    transfers: view.details ? side.transfers(TRANSFERS) : null,
    goodput: view.details ? side.goodput(SPANS) : null,
  };
}

function frame(view: View, began: number): Frame {
  return {
    ps: now(),
    events: sides[0]?.events() ?? 0,
    over: sides.every((side) => side.is_over()),
    interventions: sides.map((side) => side.interventions()),
    sides: sides.map((side) => sideFrame(side, view)),
    took: performance.now() - began,
  };
}

/** Lets all sides go on to a time, in pieces, as long as there is time for it. */
function advance(to: number, began: number): void {
  const from = now();
  const pieces = Math.max(1, Math.ceil((to - from) / 2e6));
  for (let piece = 1; piece <= pieces; piece += 1) {
    const until = from + ((to - from) * piece) / pieces;
    sides.forEach((side) => side.advance(until));
    if (performance.now() - began > BUDGET_MS) return;
  }
}

function step(): void {
  const leader = sides.find((side) => !side.is_over());
  leader?.step();
  sides.forEach((side) => {
    if (leader && side !== leader) side.advance(leader.elapsed_ps());
  });
}

/** Links are those of all sides, a packet is of one. */
function act(side: number, text: string): void {
  const concerned = text.startsWith("drop") ? sides.slice(side, side + 1) : sides;
  concerned.forEach((one) => one.act(text));
}

function measure(opening: Opening): Answers["measure"] {
  const [run] = open({ ...opening, overrides: opening.overrides.slice(0, 1) });
  if (!run) throw new Error("nothing to measure");
  const began = performance.now();
  run.advance(1e15);
  const ms = performance.now() - began;
  const counters = run.counters();
  const measured = {
    hops: counters[10] ?? 0,
    ms,
    hash: run.hash(),
    done: counters[8] ?? 0,
    tasks: counters[9] ?? 0,
  };
  run.free();
  return measured;
}

function answer(request: Request): Answers[Request["kind"]] {
  const began = performance.now();
  switch (request.kind) {
    case "open": {
      const opened = open(request.opening);
      sides.forEach((side) => side.free());
      sides = opened;
      return { plans: sides.map(plan), frame: frame(request.view, began) };
    }
    case "frame":
      if (request.ps > 0) advance(now() + request.ps, began);
      return frame(request.view, began);
    case "step":
      step();
      return frame(request.view, began);
    case "seek":
      sides.forEach((side, index) => side.seek(request.ps, index === 0 ? request.events : 0));
      return frame(request.view, began);
    case "act":
      act(request.side, request.text);
      return frame(request.view, began);
    case "hash":
      return sides.map((side) => side.hash());
    case "conversation":
      return conversation_hash();
    case "measure":
      return measure(request.opening);
  }
}

function buffers(value: unknown): Transferable[] {
  const frame = (value as { frame?: Frame }).frame ?? (value as Frame);
  return (frame.sides ?? []).flatMap((side) =>
    [side.packets, side.ports, side.counters, side.connection, side.transfers, side.goodput]
      .filter((array) => array !== null)
      .map((array) => array.buffer),
  );
}

self.addEventListener("message", (event: MessageEvent<{ id: number; request: Request }>) => {
  const { id, request } = event.data;
  ready
    .then(() => {
      const value = answer(request);
      self.postMessage({ id, value }, { transfer: typeof value === "object" ? buffers(value) : [] });
    })
    .catch((error: unknown) => self.postMessage({ id, error: String(error instanceof Error ? error.message : error) }));
});

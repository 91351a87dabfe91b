/** What tests and the curious may ask the page: `window.__explorer`. It tells what is, and does nothing. */

import type { FabricView } from "./fabric";
import { type Frame, type Measured, type Opening, PACKET, PORT } from "./records";
import type { Simulator } from "./simulator";

interface Page {
  simulator: Simulator;
  frame: () => Frame | null;
  opening: () => Opening;
  playing: () => boolean;
  idle: () => Promise<unknown>;
  fabrics: () => FabricView[];
}

export interface Probe {
  /** Milliseconds from navigation to the first drawn frame; 0: not yet. */
  coldStartMs: number;
  /** Resolves when the worker has answered all that was asked. */
  settled: () => Promise<void>;
  playing: () => boolean;
  frame: () => Frame | null;
  /** The hashes of the sides, from the worker. */
  hashes: () => Promise<string[]>;
  conversation: () => Promise<string>;
  /** Runs a scenario to its end in the worker. */
  measure: (opening: Partial<Opening>) => Promise<Measured>;
  /** Frames drawn with new content in each full second since the last call. */
  rates: () => number[];
  /** A packet of a side on the wire with data, and where it is on the screen. */
  packetOnScreen: (side: number) => { id: number; x: number; y: number } | null;
  linkOnScreen: (side: number, link: number) => { x: number; y: number };
  port: (side: number, port: number) => number[];
  linkPorts: (link: number) => [number, number];
}

declare global {
  interface Window {
    __explorer?: Probe;
  }
}

export function installProbe(page: Page): { drawn: () => void; tick: (time: number) => void; ready: () => void } {
  let drawn = 0;
  let second = 0;
  let rates: number[] = [];
  const probe: Probe = {
    coldStartMs: 0,
    settled: async () => {
      // What is waited for may ask for more.
      for (let last: unknown; last !== page.idle(); ) {
        last = page.idle();
        await last;
      }
    },
    playing: page.playing,
    frame: page.frame,
    hashes: () => page.simulator.ask({ kind: "hash" }),
    conversation: () => page.simulator.ask({ kind: "conversation" }),
    measure: (opening) => page.simulator.ask({ kind: "measure", opening: { ...page.opening(), ...opening, ps: 0, events: 0 } }),
    rates: () => {
      const all = rates;
      rates = [];
      second = 0;
      return all;
    },
    packetOnScreen: (side) => {
      const frame = page.frame()?.sides[side];
      const fabric = page.fabrics()[side];
      if (!frame || !fabric) return null;
      const box = fabric.root.querySelector("canvas")?.getBoundingClientRect();
      for (let at = 0; at < frame.packets.length; at += PACKET) {
        const id = frame.packets[at] ?? 0;
        const place = fabric.packet(frame, id);
        const along = frame.packets[at + 2] ?? 0;
        // One that the pointer would take, and not a neighbour of it.
        if (!box || !place || !((frame.packets[at + 4] ?? 0) & 1) || along < 0.2 || along > 0.8) continue;
        const hit = fabric.at(place.x, place.y);
        if (hit?.kind === "packet" && hit.id === id) return { id, x: box.left + place.x, y: box.top + place.y };
      }
      return null;
    },
    linkOnScreen: (side, link) => page.fabrics()[side]?.middle(link) ?? { x: 0, y: 0 },
    port: (side, port) => Array.from(page.frame()?.sides[side]?.ports.subarray(port * PORT, (port + 1) * PORT) ?? []),
    linkPorts: (link) => {
      const links = page.fabrics()[0]?.plan.links;
      return [links?.[link * 8 + 3] ?? 0, links?.[link * 8 + 4] ?? 0];
    },
  };
  window.__explorer = probe;
  return {
    drawn: () => {
      drawn += 1;
    },
    tick: (time) => {
      if (!second || !page.playing()) {
        [second, drawn] = [page.playing() ? time : 0, 0];
      } else if (time - second >= 1000) {
        rates.push((drawn * 1000) / (time - second));
        [second, drawn] = [time, 0];
      }
    },
    ready: () => {
      probe.coldStartMs = performance.now();
    },
  };
}

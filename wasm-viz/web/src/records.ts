/** The records that the module fills (wasm-viz/src/view.rs), and what goes between the page and its worker. */

export const LINK = 8;
export const PACKET = 7;
export const PORT = 8;
export const CONNECTION = 8;
export const PATH = 18;
export const TRANSFER = 21;
export const CELLS = 64;

export const Flag = { data: 1, marked: 2, again: 4, trimmed: 8 } as const;
export const STATES = ["unused", "active", "draining", "suspect", "fencing", "reopening"] as const;

/** What does not change while a run lasts. */
export interface Plan {
  transport: string;
  hosts: number;
  switches: number;
  links: Uint32Array;
  pairs: Uint32Array;
}

/** One transport at a time of its run. */
export interface SideFrame {
  packets: Float32Array;
  ports: Float32Array;
  counters: Float64Array;
  connection: Uint32Array;
  /** Only now and then. */
  transfers: Uint32Array | null;
  goodput: Float32Array | null;
}

/** A moment of all sides. */
export interface Frame {
  ps: number;
  events: number;
  over: boolean;
  /** Milliseconds that the worker needed. */
  took: number;
  interventions: string[];
  sides: SideFrame[];
}

/** What is simulated. */
export interface Opening {
  name: string;
  toml: string;
  /** By side: overrides, one a line. */
  overrides: string[];
  seed: number;
  /** By side. */
  interventions: string[];
  ps: number;
  /** Of the first side; 0: all that are due. */
  events: number;
}

/** What a frame is to show. */
export interface View {
  from: number;
  to: number;
  details: boolean;
}

export type Request =
  | { kind: "open"; opening: Opening; view: View }
  | { kind: "frame"; ps: number; view: View }
  | { kind: "step"; view: View }
  | { kind: "seek"; ps: number; events: number; view: View }
  | { kind: "act"; side: number; text: string; view: View }
  | { kind: "hash" }
  | { kind: "conversation" }
  | { kind: "measure"; opening: Opening };

/** How fast the simulator is here. */
export interface Measured {
  hops: number;
  ms: number;
  hash: string;
  done: number;
  tasks: number;
}

export interface Answers {
  open: { plans: Plan[]; frame: Frame };
  frame: Frame;
  step: Frame;
  seek: Frame;
  act: Frame;
  hash: string[];
  conversation: string;
  measure: Measured;
}

export type Answer = { id: number; value?: unknown; error?: string };

/** The state of the page in its address: what makes the run, and what is looked at. */

import { FIRST, PRESETS } from "./scenarios";

export interface State {
  scenario: string;
  seed: number;
  /** 0: as the scenario says. */
  paths: number;
  compare: boolean;
  /** Time, picoseconds, and events of the first side. */
  ps: number;
  events: number;
  /** By side. */
  interventions: string[];
  speed: number;
  /** The connection that is shown. */
  pair: string;
}

const whole = (text: string | null, least: number, most: number, otherwise: number): number => {
  const number = text === null || !/^\d+$/.test(text) ? NaN : Number(text);
  return number >= least && number <= most ? number : otherwise;
};

export function read(address: string): State {
  const query = new URLSearchParams(address.replace(/^[#?]/, ""));
  const scenario = query.get("scenario") ?? FIRST;
  return {
    scenario: scenario in PRESETS ? scenario : FIRST,
    seed: whole(query.get("seed"), 0, 2 ** 32 - 1, 1),
    paths: whole(query.get("paths"), 1, 64, 0),
    compare: query.get("compare") === "1",
    ps: whole(query.get("t"), 0, 1e15, 0),
    events: whole(query.get("n"), 0, 1e15, 0),
    interventions: [query.get("i") ?? "", query.get("j") ?? ""],
    speed: whole(query.get("speed"), 0, 12, 4),
    pair: query.get("pair") ?? "",
  };
}

export function write(state: State): string {
  const query = new URLSearchParams();
  query.set("scenario", state.scenario);
  query.set("seed", String(state.seed));
  if (state.paths) query.set("paths", String(state.paths));
  if (state.compare) query.set("compare", "1");
  query.set("t", String(Math.round(state.ps)));
  query.set("n", String(state.events));
  if (state.interventions[0]) query.set("i", state.interventions[0]);
  if (state.compare && state.interventions[1]) query.set("j", state.interventions[1]);
  if (state.speed !== 4) query.set("speed", String(state.speed));
  if (state.pair) query.set("pair", state.pair);
  return `#${query.toString()}`;
}

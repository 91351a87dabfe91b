/** The scenarios that the page offers. */

import allToAll from "../../scenarios/all-to-all.toml?raw";
import incast from "../../scenarios/incast.toml?raw";
import pair from "../../scenarios/pair.toml?raw";
import permutation from "../../scenarios/permutation.toml?raw";
import collectives from "../../../scenarios/collectives.toml?raw";

export interface Preset {
  title: string;
  toml: string;
  /** Overrides, one a line. */
  set: string;
}

export const PRESETS: Record<string, Preset> = {
  permutation: { title: "Permutation, 16 hosts", toml: permutation, set: "" },
  pair: { title: "One flow, four spines", toml: pair, set: "" },
  incast: { title: "Incast, 15 to 1", toml: incast, set: "" },
  "all-to-all": { title: "All-to-all, 8 hosts", toml: allToAll, set: "" },
  // The reference of all targets: the same hash everywhere.
  collectives: {
    title: "Ring all-reduce, 64 hosts",
    toml: collectives,
    set: "workload.size_bytes=256KiB\nworkload.repeat=1",
  },
};

export const FIRST = "permutation";

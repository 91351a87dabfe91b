/** Where hosts, switches and links are on the canvas: hosts below, each switch above what is joined to it. */

import { LINK, type Plan } from "./records";

export interface Spot {
  x: number;
  y: number;
  name: string;
  host: boolean;
  number: number;
}

/** One direction of a link. */
export interface Way {
  port: number;
  link: number;
  from: Spot;
  to: Spot;
  /** A unit along it, and how far both its ends are. */
  ux: number;
  uy: number;
  x0: number;
  y0: number;
  length: number;
}

export interface Layout {
  hosts: Spot[];
  switches: Spot[];
  /** By port. */
  ways: (Way | undefined)[];
  /** By link: both directions. */
  links: { up: Way; down: Way }[];
  /** Half the width of a node. */
  radius: number;
}

interface Ends {
  lower: { host: boolean; number: number };
  upper: { host: boolean; number: number };
  up: number;
  down: number;
}

export function ends(plan: Plan): Ends[] {
  const all: Ends[] = [];
  for (let at = 0; at < plan.links.length; at += LINK) {
    const [kind = 0, lower = 0, upper = 0, up = 0, down = 0] = plan.links.subarray(at, at + LINK);
    all.push({
      lower: { host: (kind & 1) === 0, number: lower },
      upper: { host: (kind & 2) !== 0, number: upper },
      up,
      down,
    });
  }
  return all;
}

export function layout(plan: Plan, width: number, height: number): Layout {
  const links = ends(plan);
  const ranks = new Array<number>(plan.switches).fill(1);
  for (let changed = true; changed; ) {
    changed = false;
    for (const link of links) {
      if (link.lower.host || link.upper.host) continue;
      const least = (ranks[link.lower.number] ?? 1) + 1;
      if ((ranks[link.upper.number] ?? 1) < least && least < 8) {
        ranks[link.upper.number] = least;
        changed = true;
      }
    }
  }
  const top = Math.max(1, ...ranks);
  const [left, right, above, below] = [34, 34, 40, 44];
  const row = (rank: number): number => height - below - ((height - above - below) * rank) / top;
  const spread = (index: number, count: number): number => left + ((width - left - right) * (index + 0.5)) / count;
  const hosts: Spot[] = Array.from({ length: plan.hosts }, (_, number) => ({
    x: spread(number, plan.hosts),
    y: row(0),
    name: `h${number}`,
    host: true,
    number,
  }));
  const switches: Spot[] = ranks.map((rank, number) => {
    const same = ranks.flatMap((other, index) => (other === rank ? [index] : []));
    return {
      x: spread(same.indexOf(number), same.length),
      y: row(rank),
      name: `s${number}`,
      host: false,
      number,
    };
  });
  const radius = Math.max(5, Math.min(15, (width - left - right) / Math.max(plan.hosts, 1) / 2 - 2));
  const made: Layout = { hosts, switches, ways: [], links: [], radius };
  links.forEach((link, index) => {
    const lower = (link.lower.host ? hosts : switches)[link.lower.number];
    const upper = (link.upper.host ? hosts : switches)[link.upper.number];
    if (!lower || !upper) return;
    const up = way(link.up, index, lower, upper, radius);
    const down = way(link.down, index, upper, lower, radius);
    made.ways[link.up] = up;
    made.ways[link.down] = down;
    made.links[index] = { up, down };
  });
  return made;
}

/** Each direction keeps to its right. */
function way(port: number, link: number, from: Spot, to: Spot, radius: number): Way {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const distance = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / distance, dy / distance];
  const aside = Math.min(3.4, radius / 3);
  const gap = radius + 3;
  return {
    port,
    link,
    from,
    to,
    ux,
    uy,
    x0: from.x + ux * gap - uy * aside,
    y0: from.y + uy * gap + ux * aside,
    length: Math.max(1, distance - 2 * gap),
  };
}

/** The name of a link, from below. */
export function linkName(plan: Plan, link: number): string {
  const one = ends(plan)[link];
  if (!one) return `link ${link}`;
  const name = (end: { host: boolean; number: number }): string => `${end.host ? "h" : "s"}${end.number}`;
  return `${name(one.lower)} – ${name(one.upper)}`;
}

/** The fabric on its canvas: links, nodes, queues, packets, and what is under the pointer. */

import { type Sheet, fit, sheet } from "./canvas";
import { type Layout, type Way, layout } from "./layout";
import { Flag, PACKET, PORT, type Plan, type SideFrame } from "./records";
import { colours, pathColour } from "./theme";

export type Hit =
  | { kind: "packet"; id: number; path: number; flags: number; from: number; to: number }
  | { kind: "link"; link: number }
  | { kind: "host"; host: number };

/** A packet that was lost, for a moment. */
interface Loss {
  x: number;
  y: number;
  at: number;
}

const LOSS_MS = 700;
/** Ticks of a queue that are drawn. */
const TICKS = 26;

export class FabricView {
  readonly root = document.createElement("figure");
  private readonly title = document.createElement("figcaption");
  private readonly sheet: Sheet;
  /** All that seldom changes. */
  private readonly still: Sheet;
  private stillKey = "";
  private places: Layout | null = null;
  private frame: SideFrame | null = null;
  private drops: Float32Array | null = null;
  private losses: Loss[] = [];
  private hovered: Hit | null = null;
  /** The connection that is shown: its hosts. */
  pair: [number, number] = [-1, -1];

  constructor(
    readonly side: number,
    readonly plan: Plan,
    onHit: (side: number, hit: Hit, x: number, y: number) => void,
  ) {
    const canvas = document.createElement("canvas");
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", `Fabric with ${this.name()}: ${plan.hosts} hosts, ${plan.switches} switches`);
    this.sheet = sheet(canvas);
    this.still = sheet(document.createElement("canvas"));
    this.root.append(this.title, canvas);
    this.title.dataset["transport"] = plan.transport;
    canvas.addEventListener("pointermove", (event) => {
      this.hovered = this.at(event.offsetX, event.offsetY);
      canvas.style.cursor = this.hovered ? "pointer" : "default";
      canvas.title = this.hovered ? this.describe(this.hovered) : "";
    });
    canvas.addEventListener("pointerleave", () => {
      this.hovered = null;
    });
    canvas.addEventListener("click", (event) => {
      const hit = this.at(event.offsetX, event.offsetY);
      if (hit) onHit(side, hit, event.clientX, event.clientY);
    });
  }

  name(): string {
    return { metaroce: "MetaRoCE", rocev2: "RoCEv2" }[this.plan.transport] ?? this.plan.transport;
  }

  /** Colours tell paths apart; of transports with one path, senders. */
  private colour(path: number, from: number): string {
    return pathColour(this.plan.transport === "metaroce" ? path : from % 16);
  }

  private describe(hit: Hit): string {
    if (hit.kind === "host") return `Host ${hit.host}: show its connection`;
    if (hit.kind === "link") return "Cut, slow or make lossy";
    const what = hit.flags & Flag.data ? "data" : "acknowledgment";
    return `Drop this packet: ${what}, path ${hit.path}, h${hit.from} → h${hit.to}`;
  }

  update(frame: SideFrame): void {
    const now = performance.now();
    const { drops } = this;
    if (drops && this.places) {
      for (let port = 0; port * PORT < frame.ports.length; port += 1) {
        const lost = (frame.ports[port * PORT + 4] ?? 0) - (drops[port] ?? 0);
        const way = this.places.ways[port];
        if (lost > 0 && way) {
          for (let i = 0; i < Math.min(lost, 4); i += 1) {
            const along = way.length * (0.12 + 0.08 * i);
            this.losses.push({ x: way.x0 + way.ux * along, y: way.y0 + way.uy * along, at: now });
          }
        }
      }
    }
    this.drops = Float32Array.from({ length: frame.ports.length / PORT }, (_, port) => frame.ports[port * PORT + 4] ?? 0);
    this.frame = frame;
    const [done = 0, tasks = 0] = [frame.counters[8], frame.counters[9]];
    const text = `${this.name()} · ${done} of ${tasks} done`;
    if (this.title.textContent !== text) this.title.textContent = text;
  }

  /** Forgets what was seen: the next frame is of another time. */
  jump(): void {
    this.drops = null;
    this.losses = [];
  }

  draw(): void {
    if (fit(this.sheet) || !this.places) {
      this.places = layout(this.plan, this.sheet.width, this.sheet.height);
      this.stillKey = "";
    }
    const { context, width, height } = this.sheet;
    const { places, frame } = this;
    if (!frame || width === 0) return;
    this.drawStill(places, frame);
    context.globalCompositeOperation = "copy";
    context.drawImage(this.still.canvas, 0, 0, width, height);
    context.globalCompositeOperation = "source-over";
    this.drawPackets(context, places, frame);
    this.drawNodes(context, places);
    this.drawLosses(context);
    this.drawHovered(context, places, frame);
  }

  private drawStill(places: Layout, frame: SideFrame): void {
    const { canvas, width, height } = this.sheet;
    let key = `${canvas.width}x${canvas.height}${colours().dark}`;
    for (let at = 0; at < frame.ports.length; at += PORT) {
      key += `${frame.ports[at + 5]},${frame.ports[at + 6]},${frame.ports[at + 7]};`;
    }
    if (key === this.stillKey) return;
    this.stillKey = key;
    this.still.canvas.width = canvas.width;
    this.still.canvas.height = canvas.height;
    const { context } = this.still;
    context.setTransform(canvas.width / width, 0, 0, canvas.height / height, 0, 0);
    const look = colours();
    context.fillStyle = look.panel;
    context.fillRect(0, 0, width, height);
    places.links.forEach(({ up, down }, link) => {
      const state = this.linkState(frame, link);
      for (const way of [up, down]) {
        context.setLineDash(state === "cut" ? [3, 5] : state === "lossy" ? [8, 4] : []);
        context.strokeStyle = { cut: look.lost, slow: look.slow, lossy: look.lossy, sound: look.line }[state];
        context.lineWidth = state === "sound" ? 1 : 1.8;
        context.beginPath();
        context.moveTo(way.x0, way.y0);
        context.lineTo(way.x0 + way.ux * way.length, way.y0 + way.uy * way.length);
        context.stroke();
      }
    });
    context.setLineDash([]);
  }

  linkState(frame: SideFrame, link: number): "cut" | "slow" | "lossy" | "sound" {
    const port = this.places?.links[link]?.up.port ?? 0;
    const [up, mbps, loss] = frame.ports.subarray(port * PORT + 5, port * PORT + 8);
    if (!up) return "cut";
    if ((loss ?? 0) > 0) return "lossy";
    return mbps !== this.plan.links[link * 8 + 7] ? "slow" : "sound";
  }

  private drawNodes(context: CanvasRenderingContext2D, places: Layout): void {
    const look = colours();
    const { radius } = places;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `600 ${radius >= 12 ? 11 : 9}px ${FONT}`;
    for (const spot of [...places.switches, ...places.hosts]) {
      const chosen = spot.host && this.pair.includes(spot.number);
      context.fillStyle = chosen ? look.accent : look.node;
      context.strokeStyle = chosen ? look.accent : look.edge;
      context.lineWidth = 1.2;
      context.beginPath();
      if (spot.host) context.roundRect(spot.x - radius, spot.y - radius * 0.8, 2 * radius, 1.6 * radius, 4);
      else context.roundRect(spot.x - radius * 1.25, spot.y - radius * 0.85, 2.5 * radius, 1.7 * radius, radius * 0.85);
      context.fill();
      context.stroke();
      if (radius >= 9) {
        context.fillStyle = chosen ? look.panel : look.text;
        context.fillText(spot.name, spot.x, spot.y + 0.5);
      }
    }
  }

  private place(way: Way, place: number): [number, number] {
    if (place >= 0) return [way.x0 + way.ux * way.length * place, way.y0 + way.uy * way.length * place];
    const along = 4 + Math.min(-place - 1, TICKS) * 2.6;
    return [way.x0 + way.ux * along - way.uy * 6.5, way.y0 + way.uy * along + way.ux * 6.5];
  }

  private drawPackets(context: CanvasRenderingContext2D, places: Layout, frame: SideFrame): void {
    const look = colours();
    const { packets } = frame;
    const size = places.radius >= 12 ? 3.6 : 2.6;
    for (let at = 0; at < packets.length; at += PACKET) {
      const way = places.ways[packets[at + 1] ?? 0];
      const place = packets[at + 2] ?? 0;
      if (!way || place < -TICKS) continue;
      const flags = packets[at + 4] ?? 0;
      const [x, y] = this.place(way, place);
      context.fillStyle = this.colour(packets[at + 3] ?? 0, packets[at + 5] ?? 0);
      if (place < 0) {
        context.fillRect(x - 1.8, y - 1.8, 3.6, 3.6);
        if (flags & Flag.marked) {
          context.fillStyle = look.marked;
          context.fillRect(x - 1.2 - way.uy * 4, y - 1.2 + way.ux * 4, 2.4, 2.4);
        }
      } else if (flags & Flag.data) {
        context.fillRect(x - size, y - size, 2 * size, 2 * size);
        if (flags & Flag.again) {
          context.strokeStyle = look.text;
          context.lineWidth = 1.4;
          context.strokeRect(x - size - 1, y - size - 1, 2 * size + 2, 2 * size + 2);
        }
        if (flags & Flag.marked) {
          context.fillStyle = look.marked;
          context.fillRect(x - 1.6, y - 1.6, 3.2, 3.2);
        }
      } else {
        context.fillRect(x - 1.5, y - 1.5, 3, 3);
      }
    }
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `600 10px ${FONT}`;
    context.fillStyle = look.faint;
    places.ways.forEach((way) => {
      const waiting = way ? (frame.ports[way.port * PORT] ?? 0) : 0;
      if (way && waiting > 8) {
        const [x, y] = this.place(way, -Math.min(waiting, TICKS) - 5);
        context.fillText(String(waiting), x, y);
      }
    });
  }

  private drawLosses(context: CanvasRenderingContext2D): void {
    const now = performance.now();
    this.losses = this.losses.filter((loss) => now - loss.at < LOSS_MS).slice(-200);
    context.strokeStyle = colours().lost;
    context.lineWidth = 2;
    for (const loss of this.losses) {
      const age = (now - loss.at) / LOSS_MS;
      const r = 4 + 5 * age;
      context.globalAlpha = 1 - age;
      context.beginPath();
      context.moveTo(loss.x - r, loss.y - r);
      context.lineTo(loss.x + r, loss.y + r);
      context.moveTo(loss.x + r, loss.y - r);
      context.lineTo(loss.x - r, loss.y + r);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  private drawHovered(context: CanvasRenderingContext2D, places: Layout, frame: SideFrame): void {
    const hit = this.hovered;
    if (!hit) return;
    context.strokeStyle = colours().accent;
    context.lineWidth = 2;
    if (hit.kind === "link") {
      const way = places.links[hit.link]?.up;
      if (!way) return;
      context.globalAlpha = 0.35;
      context.lineWidth = 10;
      context.beginPath();
      context.moveTo(way.from.x, way.from.y);
      context.lineTo(way.to.x, way.to.y);
      context.stroke();
      context.globalAlpha = 1;
    } else if (hit.kind === "packet") {
      const found = this.packet(frame, hit.id);
      if (!found) return;
      context.beginPath();
      context.arc(found.x, found.y, 8, 0, 2 * Math.PI);
      context.stroke();
    }
  }

  /** Where a packet is now. */
  packet(frame: SideFrame, id: number): { x: number; y: number } | null {
    for (let at = 0; at < frame.packets.length; at += PACKET) {
      const way = this.places?.ways[frame.packets[at + 1] ?? 0];
      if (frame.packets[at] === id && way) {
        const [x, y] = this.place(way, frame.packets[at + 2] ?? 0);
        return { x, y };
      }
    }
    return null;
  }

  /** The middle of a link, and the edge of the canvas that it counts from. */
  middle(link: number): { x: number; y: number } {
    const way = this.places?.links[link]?.up;
    const box = this.sheet.canvas.getBoundingClientRect();
    const [x, y] = way ? [(way.from.x + way.to.x) / 2, (way.from.y + way.to.y) / 2] : [0, 0];
    return { x: box.left + x, y: box.top + y };
  }

  at(x: number, y: number): Hit | null {
    const { places, frame } = this;
    if (!places || !frame) return null;
    let best: Hit | null = null;
    let least = 7 * 7;
    const { packets } = frame;
    for (let i = 0; i < packets.length; i += PACKET) {
      const way = places.ways[packets[i + 1] ?? 0];
      const place = packets[i + 2] ?? 0;
      if (!way || place < -TICKS) continue;
      const [px, py] = this.place(way, place);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) {
        least = distance;
        const [id = 0, , , path = 0, flags = 0, from = 0, to = 0] = packets.subarray(i, i + PACKET);
        best = { kind: "packet", id, path, flags, from, to };
      }
    }
    if (best) return best;
    const host = places.hosts.find((spot) => Math.hypot(spot.x - x, spot.y - y) <= places.radius + 2);
    if (host) return { kind: "host", host: host.number };
    let link = -1;
    let near = 8;
    places.links.forEach(({ up }, index) => {
      const [dx, dy] = [x - up.from.x, y - up.from.y];
      const along = dx * up.ux + dy * up.uy;
      const aside = Math.abs(dy * up.ux - dx * up.uy);
      const length = Math.hypot(up.to.x - up.from.x, up.to.y - up.from.y);
      if (aside < near && along > 8 && along < length - 8) {
        near = aside;
        link = index;
      }
    });
    return link < 0 ? null : { kind: "link", link };
  }
}

export const FONT = 'ui-sans-serif, system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

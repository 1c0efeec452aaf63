// A proxy that treats requests badly: it delays, cuts, refuses and answers for the server.

import { createServer, type IncomingMessage, type ServerResponse, request as send } from "node:http";
import type { AddressInfo } from "node:net";
import { Dice } from "../test/virtual-time.js";

const FAULTS = ["delay", "cut_before", "cut_after", "cut_body", "429", "503", "bad_gateway"] as const;
export type Fault = (typeof FAULTS)[number];

export class FaultyProxy {
  /** How many of the requests are treated badly, from 0 to 1. */
  badness = 0;
  /** Whether the server sees no tags: `If-None-Match` is dropped. */
  dropsTags = false;
  readonly done: Record<Fault | "none", number> = {
    delay: 0,
    cut_before: 0,
    cut_after: 0,
    cut_body: 0,
    "429": 0,
    "503": 0,
    bad_gateway: 0,
    none: 0,
  };
  readonly #dice: Dice;
  readonly #upstream: () => string;
  readonly #server = createServer((request, response) => this.#handle(request, response));

  private constructor(seed: number, upstream: () => string) {
    this.#dice = new Dice(seed);
    this.#upstream = upstream;
  }

  /** In front of a server, whose address may change. It is empty while the server is away. */
  static async start(seed: number, upstream: () => string): Promise<FaultyProxy> {
    const proxy = new FaultyProxy(seed, upstream);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get baseUrl(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  stop(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  #handle(request: IncomingMessage, response: ServerResponse): void {
    const fault = this.#dice.chance(this.badness) ? (FAULTS[this.#dice.upTo(FAULTS.length)] ?? "delay") : "none";
    this.done[fault] += 1;
    const delayMs = fault === "delay" ? this.#dice.upTo(400) : 0;
    if (fault === "cut_before") response.destroy();
    else if (fault === "429") refuse(response, 429, "rate_limited");
    else if (fault === "503") refuse(response, 503, "overloaded");
    else if (fault === "bad_gateway") response.writeHead(502, { "content-type": "text/html" }).end("<h1>502 Bad Gateway</h1>");
    else setTimeout(() => this.#forward(request, response, fault), delayMs);
  }

  #forward(request: IncomingMessage, response: ServerResponse, fault: Fault | "none"): void {
    const { method, url } = request;
    const headers = { ...request.headers };
    if (this.dropsTags) delete headers["if-none-match"];
    const base = this.#upstream();
    if (base === "") {
      response.destroy();
      return;
    }
    const upstream = send(`${base}${url}`, { method, headers, agent: false }, async (answer) => {
      const chunks: Buffer[] = [];
      for await (const chunk of answer) chunks.push(chunk as Buffer);
      const body = Buffer.concat(chunks);
      if (fault !== "cut_after") response.writeHead(answer.statusCode ?? 500, answer.headers);
      if (fault === "cut_after") response.destroy();
      else if (fault === "cut_body" && body.length > 0)
        response.write(body.subarray(0, body.length / 2), () => response.destroy());
      else response.end(body);
    });
    // The server is away, or the client has gone: the other side hears of it.
    upstream.on("error", () => response.destroy());
    response.on("close", () => upstream.destroy());
    request.pipe(upstream);
  }
}

function refuse(response: ServerResponse, status: number, code: string): void {
  const body = { type: `/problems/${code}`, status, title: "Refused", detail: "By the proxy.", code };
  response.writeHead(status, { "content-type": "application/problem+json", "retry-after": "1" }).end(JSON.stringify(body));
}

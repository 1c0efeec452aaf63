// A server for one test: it answers each request with the next handler.

import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { onTestFinished } from "vitest";

export type Handler = (request: IncomingMessage & { body: string }, response: ServerResponse) => void;

export interface Stub {
  baseUrl: string;
  requests: (IncomingMessage & { body: string })[];
}

/** The last handler answers all further requests. */
export async function serve(...handlers: Handler[]): Promise<Stub> {
  const requests: Stub["requests"] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += String(chunk);
    const received = Object.assign(request, { body });
    requests.push(received);
    (handlers[requests.length - 1] ?? handlers.at(-1))?.(received, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, requests };
}

export function json(status: number, body: unknown, headers: Record<string, string> = {}): Handler {
  return (_, response) => {
    const type = status >= 400 ? "application/problem+json" : "application/json";
    response.writeHead(status, { "content-type": type, ...headers }).end(JSON.stringify(body));
  };
}

export function problem(status: number, code: string, headers: Record<string, string> = {}): Handler {
  return json(status, { type: `/problems/${code}`, status, title: "Title", detail: "Detail.", code }, headers);
}

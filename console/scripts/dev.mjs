// Serves the console from its sources, and everything else from a running server:
//   node scripts/dev.mjs http://127.0.0.1:8080 [port]
// A reload of the page builds it again.

import { createServer, request } from "node:http";
import { bundle } from "./build.mjs";

const [target, port = "0"] = process.argv.slice(2);
if (!target) throw new Error("name the server: node scripts/dev.mjs http://127.0.0.1:8080");

const TYPES = { html: "text/html; charset=utf-8", js: "text/javascript; charset=utf-8", css: "text/css; charset=utf-8" };
// As src/app/console.rs sends it.
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
  "base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

let files = new Map();

async function answerFile(name, response) {
  if (name === "index.html") files = await bundle();
  const contents = files.get(name);
  if (!contents) return response.writeHead(404).end();
  const type = TYPES[name.split(".").at(-1)];
  response.writeHead(200, { "content-type": type, "content-security-policy": POLICY, "cache-control": "no-store" }).end(contents);
}

function pass(incoming, outgoing) {
  const url = new URL(incoming.url, target);
  const { method, headers } = incoming;
  const onward = request(url, { method, headers: { ...headers, host: url.host } }, (answer) => {
    outgoing.writeHead(answer.statusCode, answer.headers);
    answer.pipe(outgoing);
  });
  onward.on("error", () => outgoing.destroy());
  outgoing.on("close", () => onward.destroy());
  incoming.pipe(onward);
}

const server = createServer((incoming, outgoing) => {
  const file = /^\/console\/([a-z.]*)$/.exec(incoming.url.split("?")[0]);
  if (!file) return pass(incoming, outgoing);
  answerFile(file[1] || "index.html", outgoing).catch((error) => outgoing.writeHead(500).end(String(error)));
});
server.listen(Number(port), "127.0.0.1", () => process.stdout.write(`http://127.0.0.1:${server.address().port}/console/\n`));

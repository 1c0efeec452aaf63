// The console: a page over the HTTP API, served by the server itself.

import { render } from "preact";
import { createRoute } from "./route.js";
import { Session } from "./session.js";
import { Shell } from "./shell.js";

const root = document.getElementById("app");
if (root) {
  const session = new Session();
  session.start();
  render(<Shell session={session} route={createRoute()} />, root);
}

// The official conformance suite for servers, at each revision of the protocol.
//
// An agent for the suite has the tools that it calls by name, which are those of an upstream server, server/suite.py.
// not-applicable-REVISION.yaml lists the scenarios that do not apply, with reasons. The suite fails if another scenario
// fails or warns, and if a listed one passes.

import { spawnSync } from "node:child_process";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

import * as kit from "./kit.mjs";

const REVISIONS = ["2025-11-25", "2026-07-28"];
const AGENT = "conformance";

const { text: token } = await kit.operator("POST", "tokens", { agent: AGENT, name: "conformance suite" });
const url = kit.endpoint(AGENT);
// The server's process starts with the first call of an agent, and the suite waits only half a second for some results.
await fetch(url, {
  method: "POST",
  headers: {
    authorization: `Bearer ${token}`,
    accept: "application/json, text/event-stream",
    "content-type": "application/json",
  },
  body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params: { name: "test_simple_text" } }),
});
const failed = REVISIONS.filter((revision) => {
  console.log(`\n--- ${revision}`);
  const options = ["server", "--url", url, "--suite", "all", "--spec-version", revision];
  options.push("--expected-failures", `not-applicable-${revision}.yaml`);
  options.push("--output-dir", mkdtempSync(join(tmpdir(), "toolbelt-conformance-")));
  const env = {
    ...process.env,
    CONFORMANCE_URL: url,
    CONFORMANCE_TOKEN: token,
    NODE_OPTIONS: `--import=${pathToFileURL("bearer.mjs")}`,
  };
  const { status, stdout, stderr } = spawnSync("conformance", options, { env, encoding: "utf8" });
  // Print everything on failure, else only the summary.
  console.log(status === 0 ? stdout.slice(stdout.indexOf("=== SUMMARY")) : stdout + stderr);
  return status !== 0;
});
if (failed.length) console.error(`The conformance suite failed at ${failed.join(", ")}.`);
process.exit(failed.length ? 1 : 0);

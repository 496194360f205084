// What do all parts of Node need: where Toolbelt is, and an operator's hand on its switches? As kit.py, for Python.

const { TOOLBELT_ADDRESS, TOOLBELT_AGENT, TOOLBELT_TOKEN, TOOLBELT_OTHER_AGENT, TOOLBELT_OTHER_TOKEN } = process.env;

export const ADDRESS = TOOLBELT_ADDRESS;
export const AGENT = TOOLBELT_AGENT;
export const OTHER_AGENT = TOOLBELT_OTHER_AGENT;
export const TOKENS = { [AGENT]: TOOLBELT_TOKEN, [OTHER_AGENT]: TOOLBELT_OTHER_TOKEN };
export const INVALID_PARAMS = -32602;
// Longer than anything here takes: a wait that reaches it is a defect.
const MILLISECONDS = 20_000;

/** Say where an agent's endpoint is, for clients that keep a session and for those that keep none. */
export function endpoint(agent, session = "") {
  return `${ADDRESS}/mcp/${agent}${session ? `/s/${session}` : ""}`;
}

/** Return a new name for a conversation. */
export function session() {
  return `interop-${crypto.randomUUID().slice(0, 12)}`;
}

/** Ask the HTTP API as the operator. */
export async function operator(method, path, body) {
  const answer = await fetch(`${ADDRESS}/api/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${process.env.TOOLBELT_OPERATOR_TOKEN}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

/** Flip an agent's switch of a toolkit, as an operator does; null clears it. */
export async function flip(toolkit, on, agent = AGENT) {
  await set(`switches/${toolkit}`, on, agent);
}

/** Override a tool for an agent, as an operator does; null clears it. */
export async function override(tool, on, agent = AGENT) {
  await set(`overrides/${tool}`, on, agent);
}

async function set(where, on, agent) {
  if (on === null) await operator("DELETE", `agents/${agent}/${where}`);
  else await operator("PUT", `agents/${agent}/${where}`, { on, confirm: true });
}

/** Do something with a toolkit's switch off, and leave it as it was. */
export async function withSwitchOff(toolkit, act) {
  const before = (await operator("GET", `agents/${AGENT}/tools-config`))[toolkit] ?? null;
  await flip(toolkit, false);
  try {
    return await act();
  } finally {
    await flip(toolkit, before);
  }
}

/** Let the list of the agent's clients grow by load_tools while something is done, instead of dispatching. */
export async function whileListing(act) {
  await operator("PATCH", `agents/${AGENT}`, { changes: { mcp_loading: "list" } });
  try {
    return await act();
  } finally {
    await operator("PATCH", `agents/${AGENT}`, { changes: { mcp_loading: "dispatch" } });
  }
}

const META_TOOLS = ["call_tool", "list_toolkits", "load_tools", "search_tools", "unload_tools"];

/** Name those of the tools that are the desk's or Toolbelt's own; the demo gives every agent a few more. */
export function own(tools) {
  return tools.map((tool) => tool.name).filter((name) => name.startsWith("desk__") || META_TOOLS.includes(name));
}

/** How often a client heard that its list of tools changed. */
export class Changes {
  count = 0;
  #waiting = [];

  hear() {
    this.count += 1;
    this.#waiting = this.#waiting.filter(({ count, resolve }) => this.count < count || resolve());
  }

  /** Wait until it heard of that many. */
  async reach(count) {
    if (this.count >= count) return;
    await inTime(new Promise((resolve) => this.#waiting.push({ count, resolve })), `${count} changes of the list`);
  }
}

export async function inTime(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited for ${what} in vain`)), MILLISECONDS);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

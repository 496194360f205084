// What all Node parts share: Toolbelt's address, and an operator's changes. The equivalent of kit.py.

const { TOOLBELT_ADDRESS, TOOLBELT_AGENT, TOOLBELT_TOKEN, TOOLBELT_OTHER_AGENT, TOOLBELT_OTHER_TOKEN } = process.env;

export const ADDRESS = TOOLBELT_ADDRESS;
export const AGENT = TOOLBELT_AGENT;
export const OTHER_AGENT = TOOLBELT_OTHER_AGENT;
export const TOKENS = { [AGENT]: TOOLBELT_TOKEN, [OTHER_AGENT]: TOOLBELT_OTHER_TOKEN };
// Longer than anything here takes, so a wait that reaches it is a defect.
const TIMEOUT_MS = 20_000;

/** Return the address of an agent's endpoint, or of a session at it. */
export function endpoint(agent, session = "") {
  return `${ADDRESS}/mcp/${agent}${session ? `/s/${session}` : ""}`;
}

/** Return a new session key. */
export function session() {
  return `interop-${crypto.randomUUID().slice(0, 12)}`;
}

/** Send a request to the HTTP API as the operator. */
export async function operator(method, path, body) {
  const response = await fetch(`${ADDRESS}/api/v1/${path}`, {
    method,
    headers: { authorization: `Bearer ${process.env.TOOLBELT_OPERATOR_TOKEN}`, "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return text ? JSON.parse(text) : null;
}

/** Set an agent's switch of a toolkit, as an operator does; null resets it. */
export async function flip(toolkit, on, agent = AGENT) {
  await set(`switches/${toolkit}`, on, agent);
}

/** Override a tool for an agent, as an operator does; null resets it. */
export async function override(tool, on, agent = AGENT) {
  await set(`overrides/${tool}`, on, agent);
}

async function set(path, on, agent) {
  if (on === null) await operator("DELETE", `agents/${agent}/${path}`);
  else await operator("PUT", `agents/${agent}/${path}`, { on, confirm: true });
}

/** Run an action with a toolkit's switch off, and restore the switch. */
export async function withSwitchOff(toolkit, action) {
  const before = (await operator("GET", `agents/${AGENT}/tools-config`))[toolkit] ?? null;
  await flip(toolkit, false);
  try {
    return await action();
  } finally {
    await flip(toolkit, before);
  }
}

/** Run an action while load_tools extends the list of the agent's clients, instead of dispatching calls. */
export async function whileListing(action) {
  await operator("PATCH", `agents/${AGENT}`, { changes: { mcp_loading: "list" } });
  try {
    return await action();
  } finally {
    await operator("PATCH", `agents/${AGENT}`, { changes: { mcp_loading: "dispatch" } });
  }
}

/** Run an action while a person is asked about calls of a tool with these arguments, a condition of a gate rule. */
export async function whileAsking(tool, when, action) {
  await operator("POST", "gate-rules", { key: "interop-ask", effect: "ask", tools: [tool], when });
  try {
    return await action();
  } finally {
    await operator("DELETE", "gate-rules/interop-ask");
  }
}

/** Decide about the call that waits for approval, once there is one: approve it, or reject it with a note. */
export async function decide(note) {
  const until = Date.now() + TIMEOUT_MS;
  for (;;) {
    const { items } = await operator("GET", `approvals?agent=${AGENT}`);
    if (items.length) {
      const path = `agents/${AGENT}/approvals/${items[0].id}`;
      if (note === undefined) await operator("POST", `${path}/approve`, { shown: items[0].shown });
      else await operator("POST", `${path}/reject`, { note });
      return;
    }
    if (Date.now() > until) throw new Error("no call waits for approval");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const META_TOOLS = ["call_tool", "list_toolkits", "load_tools", "search_tools", "unload_tools"];

/** Return the names of the desk's tools and of Toolbelt's own, without the demo's. */
export function testedTools(tools) {
  return tools.map((tool) => tool.name).filter((name) => name.startsWith("desk__") || META_TOOLS.includes(name));
}

/** The number of times that a client was notified of a changed list. */
export class Changes {
  count = 0;
  #waiting = [];

  /** Record a notification. */
  record() {
    this.count += 1;
    this.#waiting = this.#waiting.filter(({ count, resolve }) => this.count < count || resolve());
  }

  /** Wait until the client was notified this many times. */
  async waitFor(count) {
    if (this.count >= count) return;
    await inTime(new Promise((resolve) => this.#waiting.push({ count, resolve })), `${count} changes of the list`);
  }
}

/** Await a promise, with a time limit. */
export async function inTime(promise, what) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out waiting for ${what}`)), TIMEOUT_MS);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

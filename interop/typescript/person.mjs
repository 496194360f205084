// A person who logs in to Toolbelt with a browser of their own, and allows what a client asks.

import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { promisify } from "node:util";

import * as kit from "./kit.mjs";

/** Run a command of manage.py on the server's database, and return its output. */
async function manage(...args) {
  const { command, environment } = JSON.parse(readFileSync(process.env.TOOLBELT_MANAGE, "utf-8"));
  // Not blocking, so that connections that the server closes meanwhile are noticed.
  return (await promisify(execFile)(command[0], [...command.slice(1), ...args], { env: environment })).stdout;
}

/** Return the text of the first match's first group. */
function found(text, pattern) {
  const match = text.match(pattern);
  assert.ok(match, text);
  return match[1].replaceAll("&amp;", "&");
}

export class Person {
  asked = 0;
  #cookies = new Map();

  /** Create an operator. */
  static async create() {
    const person = new Person();
    person.name = `person-${crypto.randomUUID().slice(0, 8)}`;
    const output = await manage("user", "create", person.name, "--generate", "--role", "operator");
    person.password = output.trim();
    return person;
  }

  async #fetch(url, body) {
    const response = await fetch(url, {
      method: body ? "POST" : "GET",
      redirect: "manual",
      headers: {
        cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join("; "),
        ...(body ? { "content-type": "application/x-www-form-urlencoded", referer: url } : {}),
      },
      body: body ? new URLSearchParams(body) : undefined,
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name, value] = line.match(/^([^=]+)=([^;]*)/);
      this.#cookies.set(name, value);
    }
    return response;
  }

  async #form(url, fields) {
    const page = await (await this.#fetch(url)).text();
    return await this.#fetch(url, {
      csrfmiddlewaretoken: found(page, /name="csrfmiddlewaretoken" value="([^"]+)"/),
      ...fields,
    });
  }

  /** Open the address that a client opens in a browser, log in if need be, and allow. Return the code. */
  async allow(address) {
    this.asked += 1;
    const first = await this.#fetch(address);
    if (first.status === 302) {
      const login = new URL(first.headers.get("location"), kit.ADDRESS);
      const next = login.searchParams.get("next");
      const after = await this.#form(login, { username: this.name, password: this.password, next });
      assert.equal(after.headers.get("location"), next);
    }
    const page = await (await this.#form(address, { allow: "yes" })).text();
    const back = new URL(found(page, /id="back" href="([^"]+)"/));
    assert.equal(back.searchParams.get("iss"), kit.ADDRESS);
    return back;
  }
}

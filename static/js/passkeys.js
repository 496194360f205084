// Passkeys (WebAuthn): asks the browser for one, and sends it with the form. The browser's data is binary, the
// server's is base64url. A form has `data-passkey`: "get" with `data-asks`, the address of what to ask, or "create"
// with `data-asked`, what to ask.
(() => {
  "use strict";

  const decode = (text) =>
    Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (each) => each.charCodeAt(0)).buffer;
  const encode = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");
  const withIds = (list) => (list ?? []).map((each) => ({ ...each, id: decode(each.id) }));

  async function get(form) {
    const answer = await fetch(form.dataset.asks, { headers: { Accept: "application/json" } });
    if (!answer.ok) throw new Error(`${form.dataset.asks} answered ${answer.status}`);
    const { publicKey } = await answer.json();
    const { id, rawId, type, response, authenticatorAttachment } = await navigator.credentials.get({
      publicKey: {
        ...publicKey,
        challenge: decode(publicKey.challenge),
        allowCredentials: withIds(publicKey.allowCredentials),
      },
    });
    return {
      id,
      rawId: encode(rawId),
      type,
      authenticatorAttachment,
      clientExtensionResults: {},
      response: {
        clientDataJSON: encode(response.clientDataJSON),
        authenticatorData: encode(response.authenticatorData),
        signature: encode(response.signature),
        userHandle: response.userHandle ? encode(response.userHandle) : null,
      },
    };
  }

  async function create(form) {
    const { publicKey } = JSON.parse(form.dataset.asked);
    const made = await navigator.credentials.create({
      publicKey: {
        ...publicKey,
        challenge: decode(publicKey.challenge),
        user: { ...publicKey.user, id: decode(publicKey.user.id) },
        excludeCredentials: withIds(publicKey.excludeCredentials),
      },
    });
    return {
      id: made.id,
      rawId: encode(made.rawId),
      type: made.type,
      authenticatorAttachment: made.authenticatorAttachment,
      clientExtensionResults: made.getClientExtensionResults(),
      response: {
        clientDataJSON: encode(made.response.clientDataJSON),
        attestationObject: encode(made.response.attestationObject),
        transports: made.response.getTransports?.() ?? [],
      },
    };
  }

  const WORDS = {
    InvalidStateError: "This device has a passkey for your account already.",
    NotSupportedError: "This device cannot make a passkey. Use another one, or an authenticator app.",
    SecurityError: "Passkeys need an address with https and a host name, or localhost.",
  };
  const waiting = new WeakSet();

  document.addEventListener("submit", async (event) => {
    const form = event.target;
    if (!form.dataset.passkey || form.elements.credential.value) return;
    event.preventDefault();
    if (waiting.has(form)) return;
    waiting.add(form);
    const problem = form.querySelector("[data-passkey-problem]");
    problem.textContent = "";
    try {
      if (!window.PublicKeyCredential) throw new DOMException("", "SecurityError");
      const credential = await (form.dataset.passkey === "get" ? get : create)(form);
      form.elements.credential.value = JSON.stringify(credential);
      form.submit();
    } catch (error) {
      problem.textContent =
        WORDS[error.name] ?? "Your device gave no passkey. Try again, or choose another way.";
    } finally {
      waiting.delete(form);
    }
  });

  // The back button shows the page as it was when it was left.
  addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("[data-passkey]")) form.elements.credential.value = "";
  });
})();

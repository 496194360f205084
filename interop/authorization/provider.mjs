// npm oidc-provider as authorization server, and an MCP server of the official SDK that believes its tokens alone.
// Access tokens live for SECONDS. POST /end ends all grants, as an account's owner does on a page of theirs.

import { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } from "@modelcontextprotocol/sdk/server/auth/router.js";
import { InvalidTokenError } from "@modelcontextprotocol/sdk/server/auth/errors.js";
import { requireBearerAuth } from "@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js";
import { createMcpExpressApp } from "@modelcontextprotocol/sdk/server/express.js";
import { McpServer } from "@modelcontextprotocol/sdk/server/mcp.js";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import { Provider } from "oidc-provider";

const { PORT, ISSUER_PORT, SECONDS } = process.env;
const issuer = `http://127.0.0.1:${ISSUER_PORT}`;
const address = new URL(`http://127.0.0.1:${PORT}/mcp`);
const grants = new Map();
const refreshed = [];

const provider = new Provider(issuer, {
  findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  scopes: ["openid", "offline_access"],
  pkce: { required: () => true },
  rotateRefreshToken: true,
  cookies: { keys: [crypto.randomUUID()] },
  features: {
    devInteractions: { enabled: true },
    registration: { enabled: true },
    revocation: { enabled: true },
    resourceIndicators: {
      enabled: true,
      getResourceServerInfo(ctx, resource) {
        if (resource !== address.href) throw new Error(`unknown resource ${resource}`);
        return { scope: "notes notes:write", accessTokenFormat: "opaque", accessTokenTTL: Number(SECONDS) };
      },
    },
  },
});
provider.on("grant.success", (ctx) => {
  const { Grant } = ctx.oidc.entities;
  grants.set(Grant.jti, Grant);
  if (ctx.oidc.params.grant_type === "refresh_token") refreshed.push(ctx.oidc.params.refresh_token);
});
provider.listen(Number(ISSUER_PORT), "127.0.0.1");

const verifier = {
  async verifyAccessToken(text) {
    const token = await provider.AccessToken.find(text);
    const isOurs = token && !token.isExpired && [token.aud].flat().includes(address.href);
    if (!isOurs || !(await provider.Grant.find(token.grantId))) throw new InvalidTokenError("not a valid token");
    return { token: text, clientId: token.clientId, scopes: token.scope.split(" "), expiresAt: token.exp, extra: { account: token.accountId } };
  },
};

function server() {
  const made = new McpServer({ name: "notes", version: "1" });
  const said = (text) => ({ content: [{ type: "text", text }] });
  made.registerTool("whoami", { description: "Return the account." }, ({ authInfo }) => said(authInfo.extra.account));
  made.registerTool("write", { description: "Keep a note." }, ({ authInfo }) => said(`kept for ${authInfo.extra.account}`));
  return made;
}

const app = createMcpExpressApp();
const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(address);
const required = (...requiredScopes) => requireBearerAuth({ verifier, requiredScopes, resourceMetadataUrl });
const [reading, writing] = [required("notes"), required("notes", "notes:write")];
const oauthMetadata = await (await fetch(`${issuer}/.well-known/openid-configuration`)).json();
app.use(mcpAuthMetadataRouter({ oauthMetadata, resourceServerUrl: address, scopesSupported: ["notes"] }));
app.post("/end", async (request, response) => {
  for (const grant of grants.values()) await grant.destroy();
  grants.clear();
  response.json({});
});
app.get("/state", (request, response) => void response.json({ refreshes: refreshed.length, used: new Set(refreshed).size, grants: grants.size }));
app.post(
  "/mcp",
  (request, response, next) => (request.body?.params?.name === "write" ? writing : reading)(request, response, next),
  async (request, response) => {
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
    response.on("close", () => void transport.close());
    await server().connect(transport);
    await transport.handleRequest(request, response, request.body);
  },
);
app.all("/mcp", (request, response) => void response.status(405).end());
app.listen(Number(PORT), "127.0.0.1", () => console.log("ready"));

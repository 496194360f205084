"""What a secret looks like: the names of settings that hold one, and the forms of secrets themselves.

Everything that refuses, withholds or masks a secret by its looks asks this module. A name is read word by word
(``apiKey``, ``X-Api-Key`` and ``AWS_SECRET_ACCESS_KEY`` all end in the words *key*), and its last word decides what it
names: a ``token`` is a secret, a ``token_count`` is not. A value is recognized by the form that a provider gives its
secrets, or because it is long and random.

Numbers, words, paths, dates, UUIDs, ULIDs and hexadecimal hashes are no secrets by their form: half of all ids and
checksums look like that. Where a name says that it holds a secret, they count. A long random text is no secret where
the name says that it is an id, a hash or an address, as in ``spreadsheet_id``.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import re2

from toolbelt.core import variables

WITHHELD = "[withheld]"
# How deeply values are searched.
MAX_DEPTH = 100

# A whole word that names a secret, wherever it is in a name: also without a separator, as in PGPASSWORD or authtoken.
_SECRETS = frozenset(
    "secret secrets password passwords passwort passwd passphrase passcode pwd pw credential credentials cred creds"  # noqa: SIM905
    " apikey apikeys apisecret apitoken accesskey secretkey privatekey accesstoken authtoken bearertoken refreshtoken"
    " sessiontoken cookie cookies authorization jwt otp totp sessionid clientsecret connectionstring".split()
)
_ENDINGS = (
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "secretkey",
    "accesskey",
    "accesstoken",
    "authtoken",
)
# A word that names a secret if it is the last one.
_LAST = frozenset("pass pat auth signature sig sas dsn".split())  # noqa: SIM905
# Before key or tokens, one of these makes it a secret: a bare key is that of a dictionary, and tokens are counted.
_KEY_KINDS = frozenset(
    "api access private secret signing signature encryption encrypt decryption auth authentication authorization"  # noqa: SIM905
    " account admin master service subscription license licence shared ssh gpg pgp deploy webhook hmac aes rsa jwt app"
    " application client consumer developer security session function functions role anon product server ingest write"
    " integration storage bot personal token root tls ssl refresh bearer push vapid session"
    # Providers whose secrets are called after them.
    " openai anthropic claude gemini google gcp aws azure github gitlab slack discord telegram stripe twilio sendgrid"
    " mailgun openrouter groq mistral cohere huggingface hf deepl deepseek serper serpapi tavily exa brave firecrawl"
    " pinecone datadog sentry notion linear airtable figma algolia supabase firebase mapbox xai perplexity replicate"
    " elevenlabs".split()
)
# Before a key in capitals, which is most likely a variable of the environment, only these make it none.
_PLAIN_KEYS = frozenset(
    "primary foreign public sort partition cache row object group order index lookup map json issue project parent"  # noqa: SIM905
    " entity field column table config routing idempotency dedupe unique natural range hash shortcut hot modifier"
    " message feature flag metric tag label space board epic name file path record item event data state publishable"
    " translation dictionary user host".split()
)
# Before token: where a list continues, or a word of a model's vocabulary.
_PLAIN_TOKENS = frozenset(
    "page next previous prev continuation cursor sync progress cancel cancellation eos bos pad unk mask sep cls stop"  # noqa: SIM905
    " start end special first last per max min".split()
)
# As the last word: it is a fact about a secret, not the secret.
_FACTS = frozenset(
    "count counts limit limits max min number type types kind method mode scheme strategy policy format"  # noqa: SIM905
    " style url urls uri endpoint address host domain region server issuer audience scope scopes provider"
    " source location file files path dir directory folder name names label title description prompt"
    " placeholder hint field fields header param parameter column variable var env user username login"
    " email owner id ids ref reference version versions length size budget window usage used cost price"
    " rate ttl age expiry expires expiration lifetime timeout seconds minutes hours days at date time"
    " status state enabled disabled required optional needed allowed visible rotation manager store"
    " storage vault prefix suffix position offset index estimate parallelism algorithm alg encoding parser"
    " splitter scanning scanner detection check validation page pages pattern regex example template".split()
)
# With these words before it, an id is a secret.
_SECRET_IDS = frozenset({"session", "secret"})
# As the last word, they say nothing: a token_value is a token.
_EMPTY = frozenset("value values string text raw plain plaintext new old current default".split())  # noqa: SIM905
_QUESTIONS = frozenset(
    [
        "is",
        "has",
        "use",
        "uses",
        "require",
        "requires",
        "need",
        "needs",
        "show",
        "hide",
        "allow",
        "with",
        "no",
    ]
)
# As the last word: the value is long and random, but identifies something.
_IDENTIFIERS = frozenset(
    "id ids uuid guid cid ulid hash hashes digest sha sha1 sha256 sha512 md5 checksum etag commit revision rev version"  # noqa: SIM905
    " fingerprint cursor url urls uri href link address path file slug name email image images model schema sid ref"
    " account wallet tx transaction block did arn icon logo thumbnail query regex pattern next page".split()
)
# In the name of a header: even a short value may be a secret.
_HEADER_WORDS = frozenset("key keys auth session sign signature secret token".split())  # noqa: SIM905

_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+|[^\W\d_]+")

# The forms of secrets that are recognized anywhere in a text. None of them may match an ordinary word.
_KNOWN_FORMS = (
    r"\bgh[pousr]_\w{20,}",
    r"\bgithub_pat_\w{20,}",
    r"\bgl(?:pat|dt|rt|cbt|ptt|soat|ft|agent)-[\w-]{16,}",
    r"\bsk-(?:[A-Za-z0-9]+[-_]){0,4}[A-Za-z0-9]{16,}",
    r"\b[sr]k_(?:live|test|prod)_[A-Za-z0-9]{10,}",
    r"\bwhsec_[A-Za-z0-9+/]{16,}",
    r"\bxox[abeoprs](?:\.xox[abp])?-[\w-]{10,}",
    r"\bxapp-[\w-]{10,}",
    r"\b(?:AKIA|ASIA|ABIA|ACCA)[0-9A-Z]{16}\b",
    r"\bAIza[\w-]{30,}",
    r"\bya29\.[\w-]{20,}",
    r"\bGOCSPX-[\w-]{20,}",
    r"\bhf_[A-Za-z0-9]{20,}",
    r"\bnpm_[A-Za-z0-9]{30,}",
    r"\bpypi-[\w-]{30,}",
    r"\brubygems_[0-9a-f]{40,}",
    r"\bdckr_(?:pat|oat)_[\w-]{20,}",
    r"\bSG\.[\w-]{16,}\.[\w-]{16,}",
    r"\bshp(?:at|ss|ca|pa)_[0-9a-fA-F]{24,}",
    r"\bdo[opr]_v1_[0-9a-f]{40,}",
    r"\blin_(?:api|oauth)_\w{20,}",
    r"\bntn_[A-Za-z0-9]{30,}",
    r"\bfigd_[\w-]{20,}",
    r"\bATATT3[\w=-]{20,}",
    r"\bdapi[0-9a-f]{32}",
    r"\bgl(?:sa|c)_[\w+/=]{20,}",
    r"\bhv[sbr]\.[\w-]{20,}",
    r"\btskey-[\w-]{16,}",
    r"\bsbp_[0-9a-f]{32,}",
    r"\bgsk_[A-Za-z0-9]{20,}",
    r"\bxai-[A-Za-z0-9]{20,}",
    r"\bpplx-[A-Za-z0-9]{20,}",
    r"\btvly-[\w-]{16,}",
    r"\bnvapi-[\w-]{20,}",
    r"\br8_[A-Za-z0-9]{30,}",
    r"\bPMAK-[0-9a-f-]{40,}",
    r"\bNRAK-[A-Z0-9]{20,}",
    r"\bAGE-SECRET-KEY-1[0-9A-Z]{20,}",
    # Toolbelt's own tokens.
    r"\btb_[0-9A-Za-z]{57}",
    # A bot of Telegram; a JSON Web Token; addresses that are secrets as a whole.
    r"\b\d{8,10}:AA[\w-]{32,}",
    r"\beyJ[\w-]{10,}\.[\w-]{10,}(?:\.[\w-]*)?",
    r"\bhooks\.slack\.com/(?:services|workflows|triggers)/[\w/]{16,}",
    r"\bdiscord(?:app)?\.com/api/webhooks/\d+/[\w-]{20,}",
    r"-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?(?:-----END [A-Z0-9 ]*-----|\z)",
    # With a scheme. Basic is checked by what it encodes, because it is also a word.
    r"(?i:\bbearer\s+[\w.~+/-]*\d[\w.~+/-]*=*)",
)
_USERINFO = r"(?i:\b[a-z][a-z0-9+.-]*://[^\s/?#@:]*:([^\s/?#@]+)@)"
# In a connection string: Server=x;Password=y, AccountKey=….
_ASSIGNED = (
    r"(?i:(?:^|[\s;&?,'\"])(?:password|passwd|pwd|passphrase|accountkey|sharedaccesskey|sharedaccesssignature"
    r"|client_?secret|api_?key|access_?token|secret_?key)\s*=\s*([^;&\s'\"]+))"
)
_ESCAPED = "$${"
# What may surround a reference without being a secret.
_SCHEME = re.compile(r"(?:(?:bearer|basic|token|digest|api-?key)\s*)?[:\s]*", re.IGNORECASE)
_NOTHING = re.compile(
    r"|true|false|on|off|yes|no|none|null|auto|default|inherit|optional|required|\*{3,}|x{3,}|<[^>]*>|\.\.\.|…|\[withheld\]",
    re.IGNORECASE,
)
# A path: /run/token, ~/.netrc, ./key.pem, C:\key.pem. Not /x, with which a secret in base64 may begin.
_PATH = re.compile(r"(?:[.~]{1,2}/|/[^\s/=+]+/|[A-Za-z]:\\)[^\s=]*")
_BASIC = re.compile(r"\bbasic\s+([A-Za-z0-9+/]{8,}={0,2})", re.IGNORECASE)

_UUID = re.compile(r"[0-9a-f]{8}(?:-?[0-9a-f]{4}){3}-?[0-9a-f]{12}", re.IGNORECASE)
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_HEXADECIMAL = re.compile(r"(?:0x)?[0-9a-f]+", re.IGNORECASE)
_CANDIDATE = re.compile(r"[A-Za-z0-9+/=_-]{20,}")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_CHANGE = re.compile(r"(?<=[A-Za-z])(?=\d)|(?<=\d)(?=[A-Za-z])")
# How long random text must be to count, and how much information a character of it has, in bits.
_MIN_RANDOM = 20
_MIN_ENTROPY = 3.4
# Longer texts are documents or data, of which only the known forms are searched.
_MAX_RANDOM_TEXT = 4_096


def _compile(form: str) -> Any:
    options = re2.Options()
    options.log_errors = False
    return re2.compile(form, options=options)


_known = _compile("|".join(_KNOWN_FORMS))
_password_in_url = _compile(_USERINFO)
_assigned = _compile(_ASSIGNED)


def words(name: str) -> tuple[str, ...]:
    """Return the words of a name in lower case, however it joins them: ``apiKey`` has the words api and key."""
    return tuple(word.lower() for word in _WORD.findall(name))


@functools.lru_cache(4_096)
def is_name(name: str) -> bool:
    """Return whether a setting, argument, header or variable with this name holds a secret."""
    found = [word for word in words(name) if not word.isdigit()]
    if not found or (len(found) > 1 and found[0] in _QUESTIONS):
        return False
    while len(found) > 1 and found[-1] in _EMPTY:
        found.pop()
    *before, last = found
    previous = before[-1] if before else ""
    if last == "id" and previous in (*_SECRET_IDS, "key"):
        # Of a pair such as AWS_ACCESS_KEY_ID, both are withheld.
        return previous in _SECRET_IDS or bool(_KEY_KINDS.intersection(before))
    if last in _FACTS:
        return False
    if any(word in _SECRETS or word.endswith(_ENDINGS) for word in found):
        return True
    if last in ("key", "keys"):
        if previous in _KEY_KINDS:
            return True
        return bool(before) and name.isupper() and previous not in _PLAIN_KEYS
    if last == "tokens":
        return previous in _KEY_KINDS
    if last == "token":
        return previous not in _PLAIN_TOKENS
    return last in _LAST


@functools.lru_cache(1_024)
def is_header_name(name: str) -> bool:
    """Return whether even a short value of a header with this name may be a secret."""
    found = words(name)
    return is_name(name) or (bool(_HEADER_WORDS.intersection(found)) and found[-1] not in _FACTS)


def is_value(text: str, *, name: str = "") -> bool:
    """Return whether a text is or contains a secret, by its form.

    References to variables are none. With the ``name`` of an id or an address, random text is none either.
    """
    return has_known_form(text) or (not _is_identifier(name) and _has_random_part(text))


def has_known_form(text: str) -> bool:
    """Return whether a text contains a secret in a form that is well known: a provider's prefix, a private key, a
    password in a URL or a connection string.
    """
    if len(text) < 6:
        return False
    literal = variables.written_out(text)
    if _known.search(literal):
        return True
    for expression in (_password_in_url, _assigned):
        if any(_is_written_out(match.group(1)) for match in expression.finditer(text)):
            return True
    return any(_encodes_password(match[1]) for match in _BASIC.finditer(literal))


def is_secret(name: str, value: Any) -> bool:
    """Return whether a setting's value is, or may be, a secret that is written out.

    ``name`` may be a path of names. A reference to a variable (``${NAME}``, also after a scheme as in ``Bearer
    ${NAME}``), an empty value, a switch and the path of a file are none.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    text = str(value).strip()
    if _NOTHING.fullmatch(text):
        return False
    if isinstance(value, str) and is_value(text, name=name):
        return True
    return is_name(name) and _is_written_out(text) and not _is_path(text)


def is_reference(text: str) -> bool:
    """Return whether a text is a reference to a variable, ``${NAME}``, and nothing else but a scheme before it."""
    return not _is_literal(text)


def masked(text: str) -> str:
    """Return a text with each secret of a well-known form withheld."""
    if len(text) < 6:
        return text
    text = _known.sub(WITHHELD, text)
    for expression in (_password_in_url, _assigned):
        for match in reversed([*expression.finditer(text)]):
            begin, end = match.span(1)
            if _is_written_out(match.group(1)):
                text = f"{text[:begin]}{WITHHELD}{text[end:]}"
    return _BASIC.sub(lambda match: WITHHELD if _encodes_password(match[1]) else match[0], text)


def withheld(name: str, value: Any, depth: int = 0) -> Any:
    """Return a setting's value with each secret in it replaced by :data:`WITHHELD`; what is nested deeper than anything
    that is stored is withheld as a whole.
    """
    if isinstance(value, Mapping | list | tuple) and depth > MAX_DEPTH:
        return WITHHELD
    match value:
        case Mapping():
            return {key: withheld(_name_of(name, key, value), item, depth + 1) for key, item in value.items()}
        case list() | tuple():
            return [withheld(name, item, depth + 1) for item in value]
    return WITHHELD if is_secret(name, value) else value


def secrets_in(value: Any, name: str = "", at: tuple[str | int, ...] = ()) -> Iterator[tuple[Any, Any]]:
    """Yield the place of each secret in a setting's value, as a path, and the secret; not below :data:`MAX_DEPTH`."""
    if len(at) > MAX_DEPTH:
        return
    match value:
        case Mapping():
            for key, item in value.items():
                yield from secrets_in(item, _name_of(name, key, value), (*at, key))
        case list() | tuple():
            for position, item in enumerate(value):
                yield from secrets_in(item, name, (*at, position))
        case _ if is_secret(name, value):
            yield at, value


def _name_of(name: str, key: Any, value: Mapping[Any, Any]) -> str:
    """Return the name of an item of a mapping; of ``{"name": "Authorization", "value": …}``, the name that it gives."""
    stated = value.get("name", value.get("key")) if key == "value" else None
    return f"{name}.{stated if isinstance(stated, str) else key}"


def _is_literal(text: str) -> bool:
    """Return whether a text is more than references to variables and a scheme."""
    if "${" not in text or _ESCAPED in text:
        return True
    literal = variables.written_out(text).strip()
    return literal == text.strip() or not _SCHEME.fullmatch(literal)


def _is_path(text: str) -> bool:
    return bool(_PATH.fullmatch(text)) and not any(map(_is_random, re.split(r"[/\\]", text)))


def _is_written_out(text: str) -> bool:
    """Return whether what should be a secret is one, rather than a reference, or a URL whose password is one."""
    in_url = _password_in_url.search(text)
    return text != WITHHELD and _is_literal(text if in_url is None else in_url.group(1))


def _encodes_password(text: str) -> bool:
    try:
        decoded = base64.b64decode(text + "=" * (-len(text) % 4), validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        return False
    return ":" in decoded and decoded.isprintable()


def _is_identifier(name: str) -> bool:
    found = words(name)
    return bool(found) and found[-1] in _IDENTIFIERS and not is_name(name)


def _has_random_part(text: str) -> bool:
    """Return whether a word of the text is long and random. Addresses, paths and data are not examined."""
    if not _MIN_RANDOM <= len(text) <= _MAX_RANDOM_TEXT or text.startswith("data:"):
        return False
    return any(
        "://" not in word and not _PATH.fullmatch(word) and _is_random(part)
        for word in text.split()
        for part in _CANDIDATE.findall(word)
    )


def _is_random(word: str) -> bool:
    if _UUID.fullmatch(word) or _ULID.fullmatch(word) or _HEXADECIMAL.fullmatch(word.replace("-", "")):
        return False
    pieces = [
        piece
        for piece in _PIECE.findall(word)
        if len(piece) >= 8 and not _HEXADECIMAL.fullmatch(piece) and len(_CHANGE.findall(piece)) >= 2
    ]
    random = "".join(pieces)
    return len(random) >= _MIN_RANDOM and _entropy(random) >= _MIN_ENTROPY


def _entropy(text: str) -> float:
    """Return the information of a character in bits, by how often each occurs."""
    counts = Counter(text).values()
    return -sum(count / len(text) * math.log2(count / len(text)) for count in counts)

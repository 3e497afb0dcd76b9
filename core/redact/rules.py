"""What a secret looks like: formats that issuers document, and values that are named or placed as a secret.

Everything here is linear in the length of the text: a pattern begins at a literal and is bounded behind it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

_CHARS = {
    "upper": "A-Z0-9",
    "hex": "a-f0-9",
    "alnum": "A-Za-z0-9",
    "word": "A-Za-z0-9_-",
    "dotted": "A-Za-z0-9_.-",
    "base64": "A-Za-z0-9_+/=-",
}
_FORMATS = """
aws-key             16 upper   ABIA ACCA AKIA ASIA
alibaba-key         16 alnum   LTAI
google-key          35 word    AIza
google-secret       24 word    GOCSPX-
google-token        20 dotted  ya29.
anthropic-key       20 word    sk-ant-
openai-key          20 word    sk-proj- sk-svcacct- sk-admin-
openrouter-key      32 hex     sk-or-v1-
groq-key            40 alnum   gsk_
xai-key             40 alnum   xai-
perplexity-key      40 alnum   pplx-
huggingface-token   30 alnum   hf_ api_org_
replicate-token     30 alnum   r8_
github-token        30 alnum   ghp_ gho_ ghu_ ghs_ ghr_
github-token        40 word    github_pat_
gitlab-token        20 dotted  glpat- glptt- gldt- glrt- glcbt- glsoat- gloas- glagent- glft- glimt- glffct-
atlassian-token     40 base64  ATATT3 ATCTT3
bitbucket-token     28 alnum   ATBB
slack-token         20 dotted  xoxb- xoxp- xoxa- xoxe- xoxe. xoxr- xoxs- xoxc- xoxd- xapp-
stripe-key          16 alnum   sk_live_ sk_test_ rk_live_ rk_test_
webhook-secret      24 base64  whsec_
sendgrid-key        40 dotted  SG.
brevo-key           60 word    xkeysib- xsmtpsib-
npm-token           36 alnum   npm_
pypi-token          50 word    pypi-AgE
rubygems-key        40 hex     rubygems_
clojars-token       60 hex     CLOJARS_
docker-token        20 word    dckr_pat_ dckr_oat_
digitalocean-token  60 hex     dop_v1_ doo_v1_ dor_v1_
heroku-key          36 word    HRKU-
databricks-token    32 hex     dapi
shopify-token       32 hex     shpat_ shpca_ shppa_ shpss_
square-token        22 word    sq0atp- sq0csp-
linear-key          32 alnum   lin_api_
notion-token        40 alnum   ntn_
figma-token         40 word    figd_
postman-key         50 word    PMAK-
newrelic-key        27 upper   NRAK-
grafana-token       32 base64  glsa_ glc_
sentry-token        60 base64  sntrys_ sntryu_
vault-token         24 word    hvs. hvb. hvr.
pulumi-token        40 hex     pul-
planetscale-token   32 dotted  pscale_tkn_ pscale_pw_ pscale_oauth_
supabase-token      20 word    sb_secret_
supabase-token      40 hex     sbp_
doppler-token       40 dotted  dp.pt. dp.st. dp.ct. dp.sa.
dynatrace-token     80 dotted  dt0c01.
tailscale-key       20 word    tskey-
age-key             58 upper   AGE-SECRET-KEY-1
1password-token     60 base64  ops_eyJ
netlify-token       36 alnum   nfp_
sonar-token         40 hex     sqp_ squ_ sqa_
buildkite-token     40 word    bkua_
artifactory-key     60 alnum   AKCp
easypost-key        54 alnum   EZAK EZTK
aws-bedrock-key     100 base64 ABSK
airtable-token      78 dotted  pat
apify-token         30 alnum   apify_api_
cerebras-key        40 alnum   csk-
fly-token           60 base64  fm2_
langfuse-key        30 word    sk-lf-
langsmith-key       40 word    lsv2_pt_ lsv2_sk_
mapbox-token        60 dotted  sk.eyJ
neon-key            60 alnum   napi_
nvidia-key          60 word    nvapi-
pinecone-key        60 word    pcsk_
posthog-key         40 alnum   phx_
prefect-token       32 alnum   pnu_
render-key          28 alnum   rnd_
tavily-key          28 word    tvly-
vercel-token        32 word    vcp_ vci_ vca_ vcr_ vck_
api-key             32 alnum   sk-
"""
"""Kind, the fewest characters behind the prefix, which ones, the prefixes: as the issuers document them, in places a
few characters less, because tokens have been made longer and never shorter."""


RUN = re.compile(r"[A-Za-z0-9_.-]{20,}")
"""What may hold a token: no token of these formats is shorter than 20 characters, its prefix included."""
WORD_START = re.compile(r"(?:(?<=\\)[nrt]|(?<![A-Za-z0-9]))(?=[A-Za-z0-9]{2})")
"""Where a token may begin in a run: also behind the escaped line end of a text within a text."""


@dataclass(frozen=True, slots=True)
class Format:
    """Tokens that begin with `prefix`; `rest` is a pattern of what follows it."""

    kind: str
    prefix: str
    rest: str

    def end(self, text: str, at: int) -> tuple[int, bool]:
        """How far the text from `at` on has the form of such a token, and whether it is one: a name has no digits."""
        start = at + len(self.prefix)
        # Compiled when the first token is met: that is seldom, and there are many formats.
        match = re.compile(self.rest).match(text, start) if text.startswith(self.prefix, at) else None
        return (match.end(), any(map(str.isdigit, match[0]))) if match else (at, False)


def _formats() -> dict[str, tuple[Format, ...]]:
    found: dict[str, list[Format]] = {}
    for line in _FORMATS.strip().splitlines():
        kind, least, chars, *prefixes = line.split()
        # An access key of AWS is never longer: a longer run of capitals is something else.
        size = f"{{{least}}}(?![A-Za-z0-9])" if kind == "aws-key" else f"{{{least},}}"
        for prefix in prefixes:
            found.setdefault(prefix[:3], []).append(Format(kind, prefix, f"[{_CHARS[chars]}]{size}"))
    return {start: tuple(formats) for start, formats in found.items()}


FORMATS = _formats()
"""The formats by the first three characters of their prefixes."""

PLACED = (
    ("url-password", "://", re.compile(r"://[^\s:@/\"'<>]{0,100}:(?P<value>[^\s@/\"'<>]{1,200})@")),
    ("slack-webhook", "hooks.slack.com/", re.compile(r"hooks.slack.com/(?:services|workflows)/(?P<value>[\w/]{20,})")),
    ("discord-webhook", "/api/webhooks/", re.compile(r"/api/webhooks/\d{5,25}/(?P<value>[\w-]{40,200})")),
    ("telegram-token", ":AA", re.compile(r":(?P<value>AA[\w-]{32,36})(?![\w-])")),
    ("netrc-password", "login ", re.compile(r"login\s{1,9}\S{1,100}\s{1,9}password\s{1,9}(?P<value>\S{4,200})")),
    ("azure-signature", "sig=", re.compile(r"sig=(?P<value>[A-Za-z0-9%/+]{43,100}(?:=|%3[dD])?)")),
)  # fmt: skip
"""Kind, a literal to look for, and the pattern at that place."""

AUTHORIZATION = re.compile(
    r"(?:[Aa]uthorization|AUTHORIZATION)\\{0,3}[\"']?\s{0,3}[:=]\s{0,3}\\{0,3}[\"']?(?:Bearer|bearer|Basic|basic|Token|token)"
    r"\s{1,3}(?P<value>[\w.~+/=-]{8,4000})|[Bb]earer\s{1,3}(?P<bare>[\w.~+/=-]{20,4000})"
)

STEM = re.compile(
    "pass|Pass|PASS|pwd|Pwd|_PWD|secret|Secret|SECRET|token|Token|TOKEN|credential|Credential|CREDENTIAL|key|Key|KEY"
)
"""Where a word may be that says that a value is secret: literals, which are found fast."""
WORD = re.compile(
    r"(?P<password>[Pp]ass(?:[Ww]ord|wd|[Pp]hrase|[Cc]ode)|PASS(?:WORD|WD|PHRASE|CODE)|(?<=_)PASS|[Pp]wd|_PWD)"
    r"|(?P<secret>[Ss]ecret(?:[_-]?[Kk]ey)?|SECRET(?:_?KEY)?|[Cc]redentials?|CREDENTIALS?)"
    r"|(?P<token>[Tt]oken|TOKEN)|(?P<key>[Kk]ey|KEY)"
)
"""Such a word, at the end of a name or in front of more capitals; a key counts behind one of `KEY_OF` only."""
KEY_OF = re.compile(r"(?:api|access|private|encryption|signing|auth|account|master|deploy)[_ -]?\Z", re.IGNORECASE)
_BARE = r"\s\"'`\\,;&<>(){}\[\]|$"
VALUE = re.compile(
    r"(?P<more>_?[A-Z0-9_]{0,24})\\{0,3}[\"'`\]]{0,2}"
    r"(?P<sep>\s{0,3}(?::=|=>|[:=])\s{0,3}|\s{1,3}is\s{1,3}|\s)"
    r"(?:(?P<quote>\\{0,3}[\"'`])(?P<quoted>[^\"'`\\\n]{4,200})(?P=quote)"
    rf"|(?P<bare>[^{_BARE}-][^{_BARE}]{{3,200}}))"
)
"""What follows such a word: more of the name, a separator, a value in quotes or a bare one."""
OPTION = re.compile(r"--[\w-]{0,30}\Z")
"""A command-line option, whose value a space may set off."""

_PLACEHOLDER = re.compile(
    r"[<$\{%\[*#@.]|x{3,}|(?:your|my|some|the|test|fake|dummy|example|sample|change|enter|insert|todo|placeholder"
    r"|redacted|replace|none|null|nil|true|false|undefined|empty|env|process|secret|token|pass|user|admin|required"
    r"|optional|string)[^0-9]*\Z",
    re.IGNORECASE,
)
_ELISIONS = ("...", "…", "***", "xxxx", "XXXX")
"""What stands where a secret would stand."""
_NAME = re.compile(r"[A-Za-z_]+(?:[._-][A-Za-z_][A-Za-z0-9_]*)*")
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
How: TypeAlias = Literal["variable", "quoted", "bare"]
"""How a value is given: `NAME=value` in capitals, in quotes, or bare."""
_PATH_BITS = 4.4
"""Paths have less entropy per character; keys in base64, of which one in 64 begins with a slash, have more."""
LEAST_BITS = 3.0
"""Entropy per character from which a value is called random: names and words have less, keys of 16 characters more."""

JWT_RUN = re.compile(r"[\w.-]*")
"""A JSON web token and whatever is joined to it: header and claims begin alike, both being JSON objects."""
PEM_HEAD = re.compile(r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----")
PEM_STEP = re.compile(
    r"(?:\\[nrt]|\d{1,6}→|[\s\"'+>|→,])*+"
    r"(?:(?P<end>-----END [A-Z0-9 ]{0,40}-----)|[A-Z][A-Za-z-]{2,20}: [^\n\\]{1,120}"
    r"|(?P<data>[A-Za-z0-9+/]{1,2000}={0,2}))"
)
"""A line of a private key, or its end; lines may be numbered, quoted, or joined by escaped line ends."""
PEM_STEPS = 2_000
PEM_LEAST_CHARS = 12
PEM_LINE_CHARS = 40
"""A private key without an end (cut off) goes as far as its lines have this length."""


def is_random(value: str, least_chars: int) -> bool:
    """Whether a value that is named as a secret can be one: long enough, letters and digits, neither name nor path."""
    return (
        len(value) >= least_chars
        and any(c.isdigit() for c in value)
        and any(c.isalpha() for c in value)
        and not _is_other(value)
        and not _UUID.fullmatch(value)
        and _bits(value) >= LEAST_BITS
    )


def is_password(value: str, how: How) -> bool:
    """Whether a value that is named as a password can be one.

    A variable's value is taken for one as it is; in code and prose a word of letters is a name, a type, or a word.
    """
    if len(value) < 6 or _is_other(value):
        return False
    return how == "variable" or not (value.isalpha() or (how == "bare" and _NAME.fullmatch(value)))


def _is_other(value: str) -> bool:
    """Prose, paths, addresses, placeholders."""
    return (
        any(c.isspace() for c in value)
        or value.startswith(("./", "~/", "../"))
        or (value.startswith("/") and _bits(value) < _PATH_BITS)
        or "://" in value
        or is_placeholder(value)
    )


def is_placeholder(value: str) -> bool:
    """Whether a value only says where a secret would stand."""
    return _PLACEHOLDER.match(value) is not None or any(sign in value for sign in _ELISIONS)


def _bits(value: str) -> float:
    counts = Counter(value)
    return -sum(n / len(value) * math.log2(n / len(value)) for n in counts.values())

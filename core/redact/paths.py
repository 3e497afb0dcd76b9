"""Files whose content is a secret, by their names: they are never shown unasked."""

from __future__ import annotations

import re

_SECRET = re.compile(
    r"(^|/)(\.env(rc|[._-][^/]*)?|\.pgpass|\.my\.cnf|\.htpasswd|\.netrc|\.npmrc|\.pypirc|\.git-credentials|\.dockercfg"
    r"|[^/]*kubeconfig|\.vault-token|\.?(credentials?|secrets?)(\.[^/]*)?|auth\.json|id_(rsa|dsa|ecdsa|ed25519)([._-][^/]*)?"
    r"|\.?\w*_history|\.history|\.\w*hi?st|[^/]*\.(env|tfvars|tfvars\.json|pem|key|p12|pfx|ppk|jks|keystore|kdbx|asc|gpg))$"
    r"|(^|/)(\.(ssh|aws|azure|gnupg|kube|docker|env|secrets?)|secrets?|\.config/(gh|gcloud))/",
    re.IGNORECASE,
)
_SECRET_WORD = re.compile(
    r"(^|[/._-])(secrets?|passwords?|passwd|credentials?|tokens?|api[_-]?keys?|service[_-]?account[^/.]*)([._-][^/]*)?"
    r"\.(json5?|ya?ml|toml|ini|cfg|conf|cnf|properties|txt|csv|xml|env)$",
    re.IGNORECASE,
)
"""In the name of a file that holds settings or plain text; in that of a program or a page it is a subject."""


def may_hold_secrets(path: str) -> bool:
    """Whether a file, by its path with forward slashes, may hold secrets."""
    return bool(_SECRET.search(path) or _SECRET_WORD.search(path))

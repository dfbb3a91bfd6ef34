"""Taking secrets out of text before it becomes memory.

The rules are here, one row each, and not a library's: the libraries that find secrets (detect-secrets, for one) scan
files of code, weigh entropy, read settings and verify over the network, while this needs a pure function over one
message whose result never changes from run to run, since hashes of it are kept. A rule names a *form* that hardly
anything but a secret has: a vendor's prefix, a header, a credential in an address, an assignment to a name that says
so. "The password is on the card" is memory and stays; "password=hunter2" is not.

Every expression is bounded, or takes what it has looked at, so that a hostile message costs no more than its length.
"""

from __future__ import annotations

import re
from functools import lru_cache

from ahocorasick_rs import AhoCorasick
from attrs import frozen

__all__ = ["REDACTED", "RULES", "RedactionRule", "completed", "conceal", "is_redacted", "redact"]

#: What stands where a secret stood. Nothing of the secret is kept, not its length either.
REDACTED = "[redacted]"


@frozen(eq=False)
class RedactionRule:
    """One form of secret. Of a match only the group ``secret`` is replaced; ``hint`` is a text that it must contain.

    A hint saves the search of a text that cannot match. Hints are in lower case and match any.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]


def _rule(name: str, hints: tuple[str, ...], pattern: str, flags: int = 0) -> RedactionRule:
    return RedactionRule(name, hints, re.compile(pattern, flags))


def _prefixed(prefixes: str, body: str) -> str:
    """A token with a vendor's prefix, that does not begin within a word."""
    return rf"(?<![0-9A-Za-z])(?P<secret>(?:{prefixes}){body})"


_CHAR = r"[0-9A-Za-z_-]"
#: A value in an assignment: quoted, or up to a blank or separator; not one that only points to a secret.
_VALUE = r"(?!\$|<|\[redacted\])(?P<secret>[^\s\"'`,;&]{4,})"

#: The rules in the order in which they are applied: whole blocks first, assignments by name last.
RULES = (
    _rule(
        "private key",
        ("private key-----",),
        r"(?P<secret>-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]{0,40}PRIVATE KEY-----|\Z))",
        re.DOTALL,
    ),
    _rule("age key", ("age-secret-key-",), _prefixed("AGE-SECRET-KEY-1", "[0-9A-Z]{20,}")),
    _rule(
        "JSON web token",
        ("eyj",),
        # What follows a run of these characters is looked at once, not once for each beginning in it.
        rf"(?<!{_CHAR})(?={_CHAR}*+\.{_CHAR}{{8,}}+\.){_CHAR}*?(?<![0-9A-Za-z])"
        rf"(?P<secret>eyJ{_CHAR}{{8,}}+\.{_CHAR}{{8,}}+\.{_CHAR}*)",
    ),
    _rule(
        "OpenAI, Anthropic, OpenRouter, Stripe",
        ("sk-", "sk_", "rk_"),
        _prefixed("sk-|sk_(?:live|test)_|rk_(?:live|test)_", rf"(?={_CHAR}{{0,64}}[0-9]){_CHAR}{{16,}}"),
    ),
    _rule(
        "GitHub, GitLab",
        ("gh", "glpat-", "github_pat_"),
        _prefixed("gh[oprsu]_|github_pat_|glpat-", rf"{_CHAR}{{16,}}"),
    ),
    _rule("Slack", ("xox", "xapp-"), _prefixed("xox[abeprs]-|xapp-", r"[0-9A-Za-z.-]{10,}")),
    _rule("Slack webhook", ("hooks.slack.com",), r"hooks\.slack\.com/services/(?P<secret>[0-9A-Za-z/]{20,})"),
    _rule("AWS access key id", ("akia", "asia"), _prefixed("AKIA|ASIA", "[0-9A-Z]{16}(?![0-9A-Za-z])")),
    _rule("Google", ("aiza", "ya29.", "gocspx-"), _prefixed(r"AIza|ya29\.|GOCSPX-", rf"{_CHAR}{{20,}}")),
    _rule(
        "package registries and model hubs",
        ("npm_", "pypi-", "hf_", "gsk_", "dop_v1_", "tskey-"),
        _prefixed("npm_|pypi-AgE|hf_|gsk_|dop_v1_|tskey-(?:auth|api)-", rf"{_CHAR}{{16,}}"),
    ),
    _rule("SendGrid", ("sg.",), _prefixed(r"SG\.", rf"{_CHAR}{{16,}}\.{_CHAR}{{16,}}")),
    _rule("Telegram bot", (":aa",), r"(?<![0-9A-Za-z])(?P<secret>[0-9]{8,10}:AA[0-9A-Za-z_-]{33})(?![0-9A-Za-z_-])"),
    _rule(
        "authorization header",
        ("bearer", "basic"),
        r"\b(?:bearer|basic) +(?P<secret>(?=[0-9A-Za-z._~+/-]{0,64}[0-9=])[0-9A-Za-z._~+/=-]{16,})",
        re.IGNORECASE,
    ),
    _rule(
        "credentials in an address",
        ("://",),
        r"\b[A-Za-z][A-Za-z0-9+.-]{1,30}://(?P<secret>[^\s/@:\"'<>]*:[^\s/@\"'<>]+)@",
    ),
    _rule(
        "query parameter",
        ("token=", "key=", "auth=", "secret=", "password=", "sig=", "signature="),
        r"[?&](?:access_token|api_?key|auth|client_secret|key|password|sig|signature|token)="
        r"(?P<secret>[^\s&#\"'<>\[]{4,})",
        re.IGNORECASE,
    ),
    _rule(
        "environment variable",
        ("key=", "token=", "secret=", "password=", "passwd=", "credentials="),
        rf"\b[A-Z0-9_]{{0,60}}(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIALS)=[\"'`]?{_VALUE}",
    ),
    _rule(
        "command line",
        ("--",),
        rf"(?<![0-9A-Za-z-])--(?:api-?key|auth|password|passwd|secret|token)[= ]+[\"'`]?{_VALUE}",
        re.IGNORECASE,
    ),
    _rule(
        "assignment",
        ("key", "token", "secret", "passw", "passphrase"),
        r"\b(?:[a-z0-9]{0,30}[_-]?)?(?:api[_-]?key|secret[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?token"
        r"|access[_-]?token|refresh[_-]?token|bot[_-]?token|client[_-]?secret|password|passwd|passphrase)"
        rf"[\"'`]? ?[:=] ?[\"'`]?{_VALUE}",
        re.IGNORECASE,
    ),
    _rule(
        "JSON member",
        ('"token"', '"secret"', '"pass"'),
        r"\"(?:token|secret|pass)\" ?: ?\"(?!\[redacted\])(?P<secret>[^\"]{4,})\"",
        re.IGNORECASE,
    ),
)


#: What OpenClaw puts in the place of a secret: all of a short one, or what is between its first six and last four.
_MASKS = re.compile(r"(?<!\*)\*{3}(?!\*)|[^\s\u2026]{6}\u2026[^\s\u2026]{4}")
#: What ends within a mask.
_CUT_MASK = re.compile(
    "(?:" + "|".join(re.escape(REDACTED[:size]) for size in range(9, 0, -1)) + r"|(?<!\*)\*{1,2}"
    r"|[^\s\u2026]{6}\u2026[^\s\u2026]{0,3})\Z"
)
#: What OpenClaw takes for a secret and we do not.
_FOREIGN_RULES = (
    _rule(
        "any assignment",
        ("key", "token", "secret", "password", "passwd"),
        r"\b[0-9A-Za-z_]{0,60}(?:key|token|secret|password|passwd) ?[=:] ?[\"'`]?(?P<secret>[^\s\"'`\\]+)",
        re.IGNORECASE,
    ),
    _rule(
        "any JSON member",
        ('key"', 'token"', 'secret"', 'password"', 'passwd"'),
        r"\"(?:api_?key|(?:access_?|refresh_?)?token|secret|password|passwd)\" ?: ?\"(?P<secret>[^\"]+)\"",
        re.IGNORECASE,
    ),
    _rule(
        "any option",
        ("--",),
        r"--(?:api[-_]?key|token|secret|password|passwd)[= ][\"'`]?(?P<secret>[^\s\"'`]+)",
        re.IGNORECASE,
    ),
    _rule("any bearer", ("bearer",), r"\bbearer +(?P<secret>[0-9a-z._+=/-]{8,})", re.IGNORECASE),
    _rule(
        "any prefixed token",
        ("sk-", "ghp_", "github_pat_", "xox", "xapp-", "gsk_", "aiza", "pplx-", "npm_"),
        rf"\b(?P<secret>(?:sk-|ghp_|github_pat_|xox[a-z]-|xapp-|gsk_|AIza|pplx-|npm_){_CHAR}{{8,}})",
        re.IGNORECASE,
    ),
    _rule("any numbered token", (":",), rf"\b(?P<secret>[0-9]{{6,}}:{_CHAR}{{20,}})"),
)


def completed(text: str) -> str:
    """A text that was cut, where the cut may have gone through a mask with that mask whole."""
    return _CUT_MASK.sub(REDACTED, text)


def is_redacted(text: str) -> bool:
    """Whether something in the text stands, or may stand, where a secret stood."""
    return REDACTED in text or _MASKS.search(text) is not None


def conceal(text: str) -> str:
    """Each line as it is compared with what was redacted, by us or by OpenClaw (D2, F03): no secret of either, and
    ``REDACTED`` for every mask.
    """
    return "\n".join(map(_concealed, text.split("\n")))


def _concealed(line: str) -> str:
    return redact(redact(_MASKS.sub(REDACTED, line)), _FOREIGN_RULES)


def redact(text: str, rules: tuple[RedactionRule, ...] = RULES) -> str:
    """``text`` with ``REDACTED`` in place of every secret that a rule knows. Idempotent."""
    automaton, owners = _hints(rules)
    found = {owners[hit[0]] for hit in automaton.find_matches_as_indexes(text.lower(), overlapping=True)}
    for position in sorted(found):
        text = rules[position].pattern.sub(_blank_out, text)
    return text


@lru_cache(maxsize=8)
def _hints(rules: tuple[RedactionRule, ...]) -> tuple[AhoCorasick, tuple[int, ...]]:
    """All hints as one automaton, and which rule each of them is of."""
    hints = [(hint, position) for position, rule in enumerate(rules) for hint in rule.hints]
    return AhoCorasick([hint for hint, _ in hints]), tuple(position for _, position in hints)


def _blank_out(match: re.Match[str]) -> str:
    start, end = match.start("secret") - match.start(), match.end("secret") - match.start()
    return match[0][:start] + REDACTED + match[0][end:]

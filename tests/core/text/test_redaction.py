"""Secrets do not become memory, and what only talks about secrets does."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memprov.core.text import redact
from memprov.core.text.redaction import REDACTED, RULES

A, D = "aB3dE5fG7hJ9kL1m", "0123456789abcdef"

#: Rule -> a text that holds the secret between « and ».
SECRETS = {
    "private key": "key: «-----BEGIN RSA PRIVATE KEY----- MIIEow -----END RSA PRIVATE KEY-----» ok",
    "age key": f"«AGE-SECRET-KEY-1{'Q' * 40}» is it",
    "JSON web token": f"use «eyJhbGciOi{A}.eyJzdWIi{A}.{A}{A}» now",
    "OpenAI, Anthropic, OpenRouter, Stripe": f"my key is «sk-ant-{A}{A}», thanks",
    "GitHub, GitLab": f"token «ghp_{A}{A}aaaa» here",
    "Slack": "bot «xoxb-123456789012-abcdefABCDEF» posts",
    "Slack webhook": f"post to https://hooks.slack.com/services/«T000/B000/{A}»",
    "AWS access key id": "with «AKIAIOSFODNN7EXAMPLE» in it",
    "Google": f"maps «AIza{A}{A}abc» works",
    "package registries and model hubs": f"publish with «npm_{A}{A}aaaa».",
    "SendGrid": f"mail by «SG.{A}aaaaaa.{A}{A}»",
    "Telegram bot": "bot «123456789:AAabcdefghijklmnopqrstuvwxyz0123456» runs",
    "authorization header": f"curl -H 'Authorization: Bearer «{D}{A}»'",
    "credentials in an address": "see postgres://«ana:hunter2»@db.example.org/x",
    "query parameter": "open https://example.org/x?id=1&token=«abcd1234»&y=2",
    "environment variable": "export OPENAI_API_KEY=«abcd1234efgh»",
    "command line": "run it --password «hunter2!» please",
    "assignment": 'set "db_password": "«hunter2»" and go',
    "JSON member": '{"token": "«abcd1234»"}',
}


def test_every_rule_has_an_example() -> None:
    assert SECRETS.keys() == {rule.name for rule in RULES}


@pytest.mark.parametrize("name", list(SECRETS))
def test_each_rule_takes_the_secret_and_nothing_else(name: str) -> None:
    before, rest = SECRETS[name].split("«")
    secret, after = rest.split("»")
    rule = next(rule for rule in RULES if rule.name == name)
    assert redact(before + secret + after, (rule,)) == before + REDACTED + after
    assert secret not in redact(before + secret + after)


@pytest.mark.parametrize(
    "text",
    [
        "Please remember the Wexcombe locker code is on the blue card.",
        "The password is on the card, and the key is under the mat.",
        "I forgot my password; can you reset the token?",
        "Basic troubleshooting and a bearer of internationalization",
        "task-management and disk-encryption, sk-learn-estimators-pipeline",
        "meet at 10:30:45, ratio 123456789:10",
        "the secret: we leave at dawn",
        "https://example.org/notes?key=on the wall",
        "password=${SECRET} and password=<yours>",
        "C'est la clé: elle est sous le paillasson",
    ],
)
def test_talk_about_secrets_is_memory(text: str) -> None:
    assert redact(text) == text


pieces = st.lists(
    st.sampled_from([text.replace("«", "").replace("»", "") for text in SECRETS.values()])
    | st.sampled_from(["password=", "token=", "://", "@", "--", "sk-", "eyJ", REDACTED, " ", "'", '"'])
    | st.text(max_size=8),
    max_size=6,
).map("".join)


@given(pieces)
def test_redacting_twice_changes_nothing(text: str) -> None:
    once = redact(text)
    assert redact(once) == once


@pytest.mark.parametrize(
    "unit",
    ["-----BEGIN PRIVATE KEY-----", "password=", "password: ", "eyJaaaaaaaa.", "sk-", "a://b:", "A_", "?token=",
     "bearer ", "xoxb-", "0123456789:AA", "aaaaaaaaaa_"],
)  # fmt: skip
def test_a_hostile_message_costs_no_more_than_its_length(unit: str) -> None:
    def cost(count: int) -> float:
        start = time.perf_counter()
        redact(unit * count)
        return time.perf_counter() - start

    cost(100)
    size = 200_000 // len(unit)
    assert min(cost(size) for _ in range(2)) < 5.0  # quadratic cost would be minutes

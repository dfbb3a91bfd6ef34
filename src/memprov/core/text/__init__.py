"""How memory text is read and written: one reading of lines, comments, labels and quotations for everybody.

``lines`` says what a line and a byte range is; ``markers`` and ``references`` read the two ways in which a text names
where it came from; ``outline``, ``document`` and ``sections`` find the entry below a marker and the
part that a label owns.
``corpus`` reads what ingestion copied, ``quotation`` finds it again elsewhere, and ``gate`` says of bytes
that there is nothing to find. ``neutralising``, ``redaction``, ``scaffolding``, ``concepts`` and ``entry_keys`` are the
other direction: what text must pass before it becomes memory. Nothing here knows of stores or plans, and what is read
here is never changed but by cutting whole ranges.
"""

from memprov.core.text.concepts import concept_tags
from memprov.core.text.corpus import (
    CorpusScan,
    corpus_gate,
    corpus_owner,
    corpus_said,
    corpus_snippet,
    scan_corpus,
    strip_prefix,
)
from memprov.core.text.document import Document, Entry, Run, promotion_keys
from memprov.core.text.entry_keys import (
    claim_hash,
    claim_key,
    collapse,
    diary_key,
    query_hash,
    ranged_key,
    seen_hash,
    strip_speaker,
)
from memprov.core.text.gate import Gate
from memprov.core.text.lines import (
    WSP,
    Spans,
    byte_spans,
    cut,
    digest,
    is_readable,
    json_text,
    line_spans,
    to_bytes,
    to_text,
    u16_length,
)
from memprov.core.text.markers import (
    CommentKind,
    comments,
    lineage_marker,
    mentions_promotion,
    promotion_lines,
    promotion_marker,
    readable_key,
)
from memprov.core.text.neutralising import html_table, neutralise, neutralise_inline, one_line, plain
from memprov.core.text.quotation import MIN_SNIPPET_UNITS, LookalikeMatcher, QuotationMatcher, Sieve, Snippet, normalise
from memprov.core.text.redaction import redact
from memprov.core.text.references import (
    Label,
    SessionMatcher,
    named_sessions,
    references_session,
    session_id_from_file_name,
)
from memprov.core.text.scaffolding import is_generated, is_memory_echo, unwrap
from memprov.core.text.sections import Sections, machine_lines
from memprov.core.text.terms import query_terms, stands_alone

__all__ = [
    "MIN_SNIPPET_UNITS",
    "WSP",
    "CommentKind",
    "CorpusScan",
    "Document",
    "Entry",
    "Gate",
    "Label",
    "LookalikeMatcher",
    "QuotationMatcher",
    "Run",
    "Sections",
    "SessionMatcher",
    "Sieve",
    "Snippet",
    "Spans",
    "byte_spans",
    "claim_hash",
    "claim_key",
    "collapse",
    "comments",
    "concept_tags",
    "corpus_gate",
    "corpus_owner",
    "corpus_said",
    "corpus_snippet",
    "cut",
    "diary_key",
    "digest",
    "html_table",
    "is_generated",
    "is_memory_echo",
    "is_readable",
    "json_text",
    "line_spans",
    "lineage_marker",
    "machine_lines",
    "mentions_promotion",
    "named_sessions",
    "neutralise",
    "neutralise_inline",
    "normalise",
    "one_line",
    "plain",
    "promotion_keys",
    "promotion_lines",
    "promotion_marker",
    "query_hash",
    "query_terms",
    "ranged_key",
    "readable_key",
    "redact",
    "references_session",
    "scan_corpus",
    "seen_hash",
    "session_id_from_file_name",
    "stands_alone",
    "strip_prefix",
    "strip_speaker",
    "to_bytes",
    "to_text",
    "u16_length",
    "unwrap",
]

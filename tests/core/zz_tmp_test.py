from hypothesis import given, settings, strategies as st
from memprov.core.scrub import *
from memprov.testing.strategies import *
from tests.core import plain_oracles
@settings(max_examples=3000, deadline=None)
@given(memory_texts(), st.sets(st.sampled_from(ENTRY_KEYS)))
def test_a(text, keys):
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    exp = mark+plain_oracles.less_entries(text[len(mark):], keys)
    if exp == mark and text[len(mark):]: exp = ""
    assert scrub_text(text, ScrubRules("main", (), keys)).text == exp

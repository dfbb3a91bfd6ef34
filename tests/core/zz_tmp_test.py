from hypothesis import given, settings, strategies as st, event
from memprov.core.scrub import *
from memprov.core.document import Document
from memprov.testing.strategies import *
K=("k","k1","k2","k3")
S=settings(max_examples=2500, deadline=None)
R=lambda keys=(),ids=(),sn=():ScrubRules("main",ids,keys,sn)
@S
@given(memory_texts(entry_keys=K,session_ids=("s1","s2"),sentences=SENTENCES[:1]), st.sets(st.sampled_from(K)), st.sets(st.sampled_from(K)))
def test_order(text,a,b):
    x=scrub_text(scrub_text(text,R(a)).text,R(b)).text
    y=scrub_text(text,R(a|b)).text
    event("changed" if y!=text else "same")
    assert x==y
    # monotone
    import difflib
    assert len(y)<=len(scrub_text(text,R(a)).text)
@S
@given(memory_texts(), scrub_rules())
def test_idem(text, rules):
    s=scrub_text(text,rules)
    t=scrub_text(s.text,rules)
    assert t.text==s.text
    event("changed" if s.text!=text else "same")
@S
@given(memory_texts())
def test_nest(text):
    d=Document(text)
    last=None
    for e in d.entries:
        assert e.first<=e.head<e.last
        if last and e.first<last.last: assert e.last==last.last and e.first>=last.head
        else: last=e
@S
@given(written_texts(), st.sets(st.sampled_from(SESSION_IDS)),st.sets(st.sampled_from(SESSION_IDS)))
def test_written(text,a,b):
    assert scrub_text(scrub_text(text,R(ids=a)).text,R(ids=b)).text==scrub_text(text,R(ids=a|b)).text

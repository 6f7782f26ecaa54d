"""The examples of RFC 6570 §3.2, without prefixes and fragments. Members of objects are in the order of their names."""

from contextlib import suppress
from typing import Any
from urllib.parse import quote

import pytest
import uritemplate
from hypothesis import given
from hypothesis import strategies as st

from frontend.errors import GateError
from frontend.manifests.expressions import OPERATORS, TemplateRefused, read_expression

VARIABLES: dict[str, Any] = {
    "count": ["one", "two", "three"], "dom": ["example", "com"], "dub": "me/too", "hello": "Hello World!",
    "half": "50%", "var": "value", "who": "fred", "base": "http://example.com/home/", "path": "/foo/bar",
    "list": ["red", "green", "blue"], "keys": {"semi": ";", "dot": ".", "comma": ","}, "v": "6", "x": "1024",
    "y": "768", "empty": "", "empty_keys": {}, "undef": None,
}  # fmt: skip
EXAMPLES = """
count one,two,three
count* one,two,three
/count /one,two,three
/count* /one/two/three
;count ;count=one,two,three
;count* ;count=one;count=two;count=three
?count ?count=one,two,three
?count* ?count=one&count=two&count=three
&count* &count=one&count=two&count=three
var value
hello Hello%20World%21
half 50%25
empty
undef
x,y 1024,768
x,hello,y 1024,Hello%20World%21,768
x,empty 1024,
x,undef 1024
undef,y 768
list red,green,blue
list* red,green,blue
keys comma,%2C,dot,.,semi,%3B
keys* comma=%2C,dot=.,semi=%3B
+var value
+hello Hello%20World!
base http%3A%2F%2Fexample.com%2Fhome%2F
+base http://example.com/home/
+empty
+undef
+path /foo/bar
+x,hello,y 1024,Hello%20World!,768
+path,x /foo/bar,1024
+list red,green,blue
+list* red,green,blue
+keys comma,,,dot,.,semi,;
+keys* comma=,,dot=.,semi=;
.who .fred
.who,who .fred.fred
.half,who .50%25.fred
.dom* .example.com
.var .value
.empty .
.undef
.list .red,green,blue
.list* .red.green.blue
.keys .comma,%2C,dot,.,semi,%3B
.keys* .comma=%2C.dot=..semi=%3B
.empty_keys
.empty_keys*
/who /fred
/who,who /fred/fred
/half,who /50%25/fred
/who,dub /fred/me%2Ftoo
/var /value
/var,empty /value/
/var,undef /value
/var,x /value/1024
/list /red,green,blue
/list* /red/green/blue
/keys /comma,%2C,dot,.,semi,%3B
/keys* /comma=%2C/dot=./semi=%3B
;who ;who=fred
;half ;half=50%25
;empty ;empty
;v,empty,who ;v=6;empty;who=fred
;v,bar,who ;v=6;who=fred
;x,y ;x=1024;y=768
;x,y,empty ;x=1024;y=768;empty
;x,y,undef ;x=1024;y=768
;list ;list=red,green,blue
;list* ;list=red;list=green;list=blue
;keys ;keys=comma,%2C,dot,.,semi,%3B
;keys* ;comma=%2C;dot=.;semi=%3B
?who ?who=fred
?half ?half=50%25
?x,y ?x=1024&y=768
?x,y,empty ?x=1024&y=768&empty=
?x,y,undef ?x=1024&y=768
?list ?list=red,green,blue
?list* ?list=red&list=green&list=blue
?keys ?keys=comma,%2C,dot,.,semi,%3B
?keys* ?comma=%2C&dot=.&semi=%3B
&who &who=fred
&half &half=50%25
&x &x=1024
&x,y,empty &x=1024&y=768&empty=
&x,y,undef &x=1024&y=768
&list &list=red,green,blue
&list* &list=red&list=green&list=blue
&keys &keys=comma,%2C,dot,.,semi,%3B
&keys* &comma=%2C&dot=.&semi=%3B
"""
RESERVED = ":/?#[]@!$&'()*+,;="


def expanded(text: str, request: dict[str, Any]) -> str:
    safe = RESERVED if text.startswith("+") else ""
    return read_expression(text).expand(request, lambda _, value: quote(value, safe=safe + "~"))


@pytest.mark.parametrize("example", EXAMPLES.strip().splitlines())
def test_the_published_examples_hold(example: str) -> None:
    text, _, expected = example.partition(" ")
    assert expanded(text, VARIABLES) == expected
    assert str(read_expression(text)) == f"{{{text}}}"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, "?a=true"), (7, "?a=7"), (1.0, "?a=1"), (None, ""), ([], ""), ([None], ""), ({"b": None}, ""),
        ([1, None, False], "?a=1,false"), ("", "?a="), ([""], "?a="),
    ],
)  # fmt: skip
def test_values_of_json_are_written_as_their_text_or_left_out(value: Any, expected: str) -> None:
    assert expanded("?a", {"a": value}) == expected


def test_a_percent_encoded_name_takes_the_property_that_it_stands_for() -> None:
    assert expanded("?f%5Bid%5D*", {"f[id]": [1, 2]}) == "?f%5Bid%5D=1&f%5Bid%5D=2"


@pytest.mark.parametrize("value", [[[1]], [{}], {"b": [1]}])
def test_a_value_in_a_value_has_no_place(value: Any) -> None:
    with pytest.raises(GateError) as refused:
        expanded("?a", {"a": value})
    assert refused.value.extra["reason"] == "/a: can't be sent where the template puts it (type)"


scalars = st.text(max_size=8).filter(lambda text: "%" not in text)
items = scalars.filter(bool)
values = (
    st.none()
    | scalars
    | st.lists(items, min_size=1, max_size=3)
    | st.dictionaries(items, items, min_size=1, max_size=3)
)


@given(st.sampled_from(sorted(OPERATORS)), st.sampled_from(["a", "a*", "a,b", "b*,a"]), values, values)
def test_any_values_expand_as_the_library_expands_them(sign: str, names: str, a: Any, b: Any) -> None:
    expected = uritemplate.expand(f"{{{sign}{names}}}", a=a, b=b)
    assert expanded(sign + names, {"a": a, "b": b}) == expected


@given(st.text("ab,*:%5B[]{}+./;?&#=! ", max_size=8) | st.text(max_size=8))
def test_any_text_is_an_expression_or_refused(text: str) -> None:
    with suppress(TemplateRefused):
        assert read_expression(text).variables
